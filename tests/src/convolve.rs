//! Convolution test support: inputs, loop orders, and comparison with the interpreter.

use crate::generate::Input;
use crate::lowered::{Engine, Stage, run_stage, visits};
use crate::random::Random;
use tamis_ir::interp::{self, Operand, Options};
use tamis_ir::{DType, Program, Value};
use tamis_tensor::Tensor;

/// The statement budget of a kernel.
const BUDGET: u64 = 50_000_000;

/// The interpreter's result as a dense tensor.
///
/// # Panics
/// If the interpreter fails.
pub fn expected(program: &Program, tensors: &[Tensor]) -> Vec<Vec<Value>> {
    let operands: Vec<&dyn Operand> = tensors.iter().map(|t| t as &dyn Operand).collect();
    let options = Options { strict: false, budget: Some(5_000_000) };
    let outcome = interp::run(program, &operands, options).unwrap_or_else(|d| panic!("{}", d.render(false)));
    outcome.results.iter().filter_map(|grid| grid.to_values()).collect()
}

/// Compiles, runs and compares a program.
///
/// # Panics
/// If the results differ.
pub fn check(text: &str, tensors: &[Tensor], engine: Engine) {
    let program = Program::parse(text).unwrap_or_else(|d| panic!("{text}\n{}", d.render(false)));
    let wanted = expected(&program, tensors);
    let formats: Vec<String> = tensors.iter().map(|t| t.format().to_string()).collect();
    let made = run_stage(&program, tensors, Stage::Optimised, engine);
    let (lowered, got) = made.unwrap_or_else(|problem| panic!("{formats:?}\n{text}\n{problem:?}"));
    assert_eq!(wanted, got, "{formats:?}\n{text}\n{}", lowered.kernel);
}

/// The trip count of a loop, in a program whose result is correct.
///
/// # Panics
/// If the result is wrong.
pub fn visited(text: &str, tensors: &[Tensor], index: &str) -> u64 {
    let program = Program::parse(text).unwrap_or_else(|d| panic!("{text}\n{}", d.render(false)));
    check(text, tensors, Engine::Interpreter(BUDGET));
    visits(&program, tensors, index).unwrap_or_else(|problem| panic!("{problem:?}\n{text}"))
}

/// Random integers with a given density of nonzeros.
pub fn random(seed: u64, shape: &[u64], one_in: usize) -> Input {
    let mut random = Random(seed);
    let count: u64 = shape.iter().product();
    let value = |random: &mut Random| if random.one_in(one_in) { 1 + random.below(5) as i64 } else { 0 };
    let values = (0..count).map(|_| Value::I64(value(&mut random))).collect();
    Input { shape: shape.to_vec(), values, dtype: DType::I64 }
}

/// All permutations of some words.
pub fn orders(words: &[&'static str]) -> Vec<Vec<&'static str>> {
    let Some((last, rest)) = words.split_last() else { return vec![Vec::new()] };
    let mut all = Vec::new();
    for order in orders(rest) {
        for at in 0..=order.len() {
            let mut longer = order.clone();
            longer.insert(at, *last);
            all.push(longer);
        }
    }
    all
}

/// A family of convolutions that differ in loop order and formats.
#[derive(Clone, Debug)]
pub struct Family<'a> {
    /// The loops.
    pub loops: &'a [&'static str],
    /// The innermost statement, with `I`, `F` and `O`.
    pub body: &'a str,
    /// The shape of `I`.
    pub input: &'a [u64],
    /// The shape of `F`.
    pub filter: &'a [u64],
    /// Formats of `I`: all are tried.
    pub formats: &'a [&'a str],
    /// Formats of `F`, cycled through.
    pub filters: &'a [&'a str],
    /// Declarations of `O`, cycled through.
    pub results: &'a [&'a str],
    /// The number of loop orders per format; all of them if `TAMIS_ALL_ORDERS` is set.
    pub most: usize,
}

impl Family<'_> {
    /// Compares every convolution of the family with the interpreter; returns their number.
    ///
    /// # Panics
    /// If the results differ.
    pub fn check(&self) -> usize {
        let all = orders(self.loops);
        let most = if std::env::var_os("TAMIS_ALL_ORDERS").is_some() { all.len() } else { self.most };
        let mut tried = 0;
        for (f, format) in self.formats.iter().enumerate() {
            for k in sample(all.len(), most, f as u64) {
                let (result, filter) =
                    (self.results[(k + f) % self.results.len()], self.filters[k % self.filters.len()]);
                let text = format!(
                    "def f(I, F):\n    O = tensor({result})\n    for {} in _:\n        {}\n    return O\n",
                    all[k].join(", "),
                    self.body
                );
                let input = random(7 + k as u64, self.input, 3).tensor(format);
                let weights = random(3, self.filter, 2).tensor(filter);
                let (input, weights) = match (input, weights) {
                    (Ok(input), Ok(weights)) => (input, weights),
                    (input, weights) => panic!("{format}, {filter}: {:?} {:?}", input.err(), weights.err()),
                };
                check(&text, &[input, weights], Engine::Interpreter(BUDGET));
                tried += 1;
            }
        }
        tried
    }
}

/// A deterministic sample of these numbers, or all of them.
fn sample(count: usize, most: usize, seed: u64) -> Vec<usize> {
    let mut numbers: Vec<usize> = (0..count).collect();
    if count <= most {
        return numbers;
    }
    let mut random = Random(seed);
    for k in 0..most {
        let other = k + random.below(count - k);
        numbers.swap(k, other);
    }
    numbers.truncate(most);
    numbers
}
