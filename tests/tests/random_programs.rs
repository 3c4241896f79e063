//! Tests of random programs: printing round-trips, and results do not depend on the formats of
//! inputs.

use tamis_ir::interp::{self, Grid, Operand, Options};
use tamis_ir::{Code, Program, Value};
use tamis_tests::generate::{self, Case, formats};
use tamis_tests::random::Random;
use tamis_tests::wide;

const CASES: u64 = 2000;

/// Valid reasons to reject a generated program: divisions may have types that its result cannot
/// store.
fn acceptable(code: Code) -> bool {
    matches!(code, Code::E0302 | Code::E0306 | Code::E0307 | Code::E1001)
}

/// A generator of programs from seeds, and the valid reasons to reject its programs.
type ProgramSource = (fn(u64) -> Case, fn(Code) -> bool);

const PLAIN: ProgramSource = (generate::case, acceptable);
const WIDE: ProgramSource = (wide::case, |code| wide::ACCEPTABLE.contains(&code));

fn run(case: &Case, program: &Program, operands: &[&dyn Operand], acceptable: fn(Code) -> bool) -> Option<Vec<Grid>> {
    // Strict, so that results do not depend on what is stored.
    match interp::run(program, operands, Options { strict: true, budget: Some(1_000_000) }) {
        Ok(outcome) => Some(outcome.results),
        Err(errors) => {
            let codes: Vec<Code> = errors.0.iter().map(|d| d.code).collect();
            assert!(codes.iter().all(|c| acceptable(*c)), "{}\n{}", case.text, errors.render(false));
            None
        }
    }
}

#[test]
fn printing_round_trips() {
    printing_round_trips_from(PLAIN);
    printing_round_trips_from(WIDE);
}

fn printing_round_trips_from((case, _): ProgramSource) {
    for seed in 0..CASES {
        let case = case(seed);
        let program =
            Program::parse(&case.text).unwrap_or_else(|d| panic!("seed {seed}\n{}\n{}", case.text, d.render(false)));
        let printed = program.to_string();
        let again = Program::parse(&printed).unwrap_or_else(|d| panic!("seed {seed}\n{printed}\n{}", d.render(false)));
        assert!(again == program, "seed {seed}\n{}\n{printed}", case.text);
        assert_eq!(again.to_string(), printed, "seed {seed}");
    }
}

#[test]
fn results_do_not_depend_on_formats() {
    results_do_not_depend_on_formats_from(PLAIN);
}

#[test]
fn results_do_not_depend_on_formats_to_wide_programs() {
    results_do_not_depend_on_formats_from(WIDE);
}

fn results_do_not_depend_on_formats_from((case, acceptable): ProgramSource) {
    let mut compared = 0;
    for seed in 0..CASES / 2 {
        let case = case(seed);
        let program = Program::parse(&case.text).unwrap();
        let grids: Vec<Grid> = case.inputs.iter().map(|(_, input)| input.grid_or_tensor()).collect();
        let dense: Vec<&dyn Operand> = grids.iter().map(|g| g as &dyn Operand).collect();
        let Some(expected) = run(&case, &program, &dense, acceptable) else { continue };
        let mut random = Random(seed);
        let tensors: Vec<tamis_tensor::Tensor> = case
            .inputs
            .iter()
            .map(|(_, input)| {
                let format: &&str = random.pick(formats(input.shape.len()));
                input.tensor(format).unwrap()
            })
            .collect();
        let stored: Vec<&dyn Operand> = tensors.iter().map(|t| t as &dyn Operand).collect();
        let results = run(&case, &program, &stored, acceptable).expect("the same program on the same values");
        for (a, b) in expected.iter().zip(&results) {
            assert_eq!(a.shape(), b.shape(), "seed {seed}\n{}", case.text);
            let pairs = a.to_values().unwrap().into_iter().zip(b.to_values().unwrap());
            for (x, y) in pairs {
                assert!(x.same_number(y), "seed {seed}: {x} and {y}\n{}", case.text);
            }
        }
        compared += 1;
    }
    assert!(compared > CASES / 4, "only {compared} programs ran");
}

/// Dense inputs of size 0 have no values to infer a type from, so they are passed as tensors.
trait GridOrTensor {
    fn grid_or_tensor(&self) -> Grid;
}

impl GridOrTensor for tamis_tests::generate::Input {
    fn grid_or_tensor(&self) -> Grid {
        Grid::from_operand(&self.tensor("dense").unwrap())
    }
}

/// The interpreter's results fit the declared formats, and keep their values.
#[test]
fn results_in_their_formats() {
    results_in_their_formats_from(PLAIN);
    results_in_their_formats_from(WIDE);
}

fn results_in_their_formats_from((case, _): ProgramSource) {
    for seed in 0..CASES / 4 {
        let case = case(seed);
        let program = Program::parse(&case.text).unwrap();
        let tensors: Vec<tamis_tensor::Tensor> = case.inputs.iter().map(|(_, i)| i.tensor("dense").unwrap()).collect();
        let operands: Vec<&dyn Operand> = tensors.iter().map(|t| t as &dyn Operand).collect();
        let Ok(outcome) = interp::run(&program, &operands, Options::default()) else { continue };
        for (id, grid) in program.results.iter().zip(&outcome.results) {
            // Updated parameters keep their format, which is dense here.
            let declared = outcome.checked.formats[id.index()].clone();
            let format = declared.unwrap_or_else(|| tamis_ir::Format::dense(grid.shape().len()));
            let tensor = match tamis_tensor::Tensor::from_grid(grid, &format) {
                // A pattern whose levels store coordinates of false elements cannot hold such a
                // result.
                Err(d) if d.code == tamis_ir::Code::E0707 && format.leaf() == tamis_ir::format::Leaf::Pattern => {
                    continue;
                }
                tensor => tensor.unwrap(),
            };
            let mut position = vec![0; grid.shape().len()];
            let values = grid.to_values().unwrap();
            for value in values {
                let got: Value = tensor.get(&position).unwrap();
                assert!(got.same_number(value), "seed {seed}: {got} and {value} at {position:?}\n{}", case.text);
                for (i, n) in position.iter_mut().zip(grid.shape()).rev() {
                    *i += 1;
                    if *i < *n {
                        break;
                    }
                    *i = 0;
                }
            }
        }
    }
}
