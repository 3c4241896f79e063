//! Conformance test support: formats with every level at every position, edge-case data, and a
//! judge that compares compiled programs with the interpreter.

use crate::lowered::{self, Engine, RunError};
use std::fmt::Write;
use tamis::compile::{CompileOptions, Executable, Signature};
use tamis::{Diagnostics, Program};
use tamis_compiler::lower::ParamLayout;
use tamis_compiler::pipeline::{self, Compilation, Specialisation};
use tamis_ir::format::Leaf;
use tamis_ir::interp;
use tamis_ir::program::ParamType;
use tamis_ir::{Code, DType, Format, Kind, Value};
use tamis_tensor::{Combine, Coordinates, IndexArray, Tensor, ValueArray};

/// Levels that are valid at every position.
pub const LEVELS: [&str; 9] =
    ["dense", "sparse", "hash", "bytemap", "runs", "sparse_runs", "interval", "blocks", "band"];

/// Formats of a rank: every level at every position; of rank 3, coordinate lists at every position
/// and some with structure.
pub fn every_format(rank: usize) -> Vec<String> {
    let mut found = combined(rank, if rank < 3 { &LEVELS } else { &LEVELS[..4] });
    if rank == 3 {
        let structured = [
            "dense, runs, sparse",
            "runs, dense, blocks",
            "sparse_runs, band, runs",
            "blocks, sparse, sparse_runs",
            "band, runs, dense",
            "interval, dense, band",
        ];
        found.extend(structured.map(String::from));
    }
    found
}

/// Formats of a rank with coordinate lists: each such level at every position.
pub fn formats(rank: usize) -> Vec<String> {
    combined(rank, &LEVELS[..4])
}

/// These levels at every position. Each kind of `singleton` is included; few tensors fit them.
fn combined(rank: usize, levels: &[&str]) -> Vec<String> {
    let mut found: Vec<String> = vec![String::new()];
    for _ in 0..rank {
        found = found
            .iter()
            .flat_map(|before| {
                levels.iter().map(move |level| match before.is_empty() {
                    true => (*level).to_string(),
                    false => format!("{before}, {level}"),
                })
            })
            .collect();
    }
    found.extend(singletons(rank).iter().map(|f| (*f).to_string()));
    found
}

fn singletons(rank: usize) -> &'static [&'static str] {
    match rank {
        1 => &["singleton"],
        2 => &[
            "sparse(nonunique), singleton",
            "(i,j) -> (j,i): sparse(nonunique), singleton",
            "dense, singleton",
            "sparse, singleton",
            "hash, singleton",
            "bytemap, singleton",
            "singleton, dense",
            "singleton, sparse",
            "singleton, hash",
            "singleton, bytemap",
            "singleton, singleton",
        ],
        3 => &[
            "sparse(nonunique), singleton, singleton",
            "dense, sparse(nonunique), singleton",
            "sparse, sparse(nonunique), singleton",
            "bytemap, sparse(nonunique), singleton",
            "sparse(nonunique), singleton, dense",
            "sparse(nonunique), singleton, sparse",
            "dense, singleton, sparse",
            "sparse, singleton, dense",
            "dense, sparse, singleton",
            "hash, dense, singleton",
            "(i,j,k) -> (k,i,j): sparse, dense, hash",
            "(i,j,k) -> (j,k,i): bytemap, sparse, sparse",
        ],
        _ => &[],
    }
}

/// A tensor as a list of entries; an entry may hold the fill value, and is stored nevertheless.
#[derive(Clone, Debug)]
pub struct Data {
    /// The description.
    pub what: &'static str,
    /// The sizes of the dimensions.
    pub shape: Vec<u64>,
    /// The coordinates in row-major order.
    pub cells: Vec<Vec<u64>>,
    /// A number per entry, from which its value is derived.
    pub numbers: Vec<f64>,
}

/// Edge-case tensors of a rank: empty, dense, one entry, one row, sizes 0 and 1, stored zeros.
pub fn edges(rank: usize) -> Vec<Data> {
    let sizes = [4u64, 5, 3];
    let full = &sizes[..rank];
    let mut found = Vec::new();
    let mut add = |what, shape: &[u64], keep: &dyn Fn(&[u64], usize) -> bool, number: &dyn Fn(usize) -> f64| {
        let mut data = Data { what, shape: shape.to_vec(), cells: Vec::new(), numbers: Vec::new() };
        for (k, cell) in cells(shape).into_iter().enumerate() {
            if keep(&cell, k) {
                data.cells.push(cell);
                data.numbers.push(number(k));
            }
        }
        found.push(data);
    };
    let some = |k: usize| (k * 7 % 9) as f64 - 3.0;
    let nonzero = |k: usize| if k.is_multiple_of(2) { 2.0 + (k % 3) as f64 } else { -1.0 };
    add("a third", full, &|_, k| k * 5 % 7 < 3, &nonzero);
    add("empty", full, &|_, _| false, &nonzero);
    add("all stored", full, &|_, _| true, &nonzero);
    add("stored zeros", full, &|_, k| k % 2 == 0, &|k| if k % 4 == 0 { 0.0 } else { some(k) });
    add("one row", full, &|cell, _| cell[0] == 2, &nonzero);
    let last: Vec<u64> = full.iter().map(|n| n - 1).collect();
    add("the last entry", full, &|cell, _| cell == last, &nonzero);
    add(
        "one in each row",
        full,
        &|cell, _| cell.iter().skip(1).zip(&full[1..]).all(|(c, n)| *c == (2 * cell[0] + 1) % n),
        &nonzero,
    );
    let ones = vec![1; rank];
    add("size 1", &ones, &|_, _| true, &nonzero);
    for zero in 0..rank {
        let mut shape = full.to_vec();
        shape[zero] = 0;
        add("a dimension of size 0", &shape, &|_, _| true, &nonzero);
    }
    found
}

/// Structured tensors of a rank: runs of equal values, blocks, a band, a triangle, equal rows.
pub fn structured(rank: usize) -> Vec<Data> {
    let sizes = [7u64, 9, 4];
    let shape = if rank == 1 { vec![13] } else { sizes[..rank].to_vec() };
    let mut found = Vec::new();
    let mut add = |what, keep: &dyn Fn(&[u64]) -> bool, number: &dyn Fn(&[u64]) -> f64| {
        let cells: Vec<Vec<u64>> = cells(&shape).into_iter().filter(|cell| keep(cell)).collect();
        let numbers = cells.iter().map(|cell| number(cell)).collect();
        found.push(Data { what, shape: shape.clone(), cells, numbers });
    };
    let last = rank - 1;
    add("runs", &|_| true, &|cell| [2.0, 2.0, -1.0, 0.0][(cell[last] / 3 % 4) as usize]);
    add("runs with gaps", &|cell| cell[last] / 2 % 2 == 1, &|cell| (cell[last] / 4) as f64 + 1.0);
    add("blocks", &|cell| cell[last] % 5 < 3 && cell[0] != 2, &|cell| (cell.iter().sum::<u64>() % 5) as f64 - 2.0);
    add("a band", &|cell| cell[last].abs_diff(cell[0]) <= 2, &|cell| cell[last] as f64 - 3.0);
    add("an interval", &|cell| (3..8).contains(&cell[last]) && cell[0] > 1, &|_| 4.0);
    add("a triangle", &|cell| cell[last] <= cell[0], &|cell| 1.0 + cell[0] as f64);
    add("equal rows", &|cell| cell[last] % 3 == 0, &|cell| (cell[0] / 3) as f64 + cell[last] as f64);
    found
}

/// NaN and infinities, for floating-point types.
pub fn wild(rank: usize) -> Data {
    let shape = [4u64, 5, 3][..rank].to_vec();
    let wild = [f64::NAN, 1.0, f64::INFINITY, -0.0, f64::NEG_INFINITY, 2.0];
    let all = cells(&shape);
    let kept: Vec<Vec<u64>> = all.into_iter().enumerate().filter(|(k, _)| k % 3 != 1).map(|(_, cell)| cell).collect();
    let numbers = (0..kept.len()).map(|k| wild[k % wild.len()]).collect();
    Data { what: "NaN and infinities", shape, cells: kept, numbers }
}

fn cells(shape: &[u64]) -> Vec<Vec<u64>> {
    shape.iter().fold(vec![Vec::new()], |before, n| {
        before.iter().flat_map(|cell| (0..*n).map(|c| [cell.clone(), vec![c]].concat())).collect()
    })
}

/// The value derived from a number.
pub fn value(number: f64, dtype: DType) -> Value {
    match dtype.kind() {
        Kind::Bool => Value::Bool(number != 0.0),
        Kind::Complex => Value::C128(num_complex::Complex::new(number, 1.0 - number)).cast(dtype),
        Kind::Float => Value::F64(number / 2.0).cast(dtype),
        _ if dtype.is_unsigned_int() => Value::F64(number.abs()).cast(dtype),
        _ => Value::F64(number).cast(dtype),
    }
}

impl Data {
    /// The data as a tensor; `None` if they do not fit the format.
    pub fn tensor(&self, format: &str, dtype: DType, fill: Value) -> Option<Tensor> {
        let format = Format::parse(format, self.shape.len()).unwrap_or_else(|d| panic!("{format}: {d}"));
        let pattern = format.leaf() == Leaf::Pattern;
        let kept: Vec<usize> = (0..self.cells.len()).filter(|k| !pattern || self.numbers[*k] != 0.0).collect();
        let column = |dim: usize| kept.iter().map(|k| self.cells[*k][dim] as u32).collect::<Vec<u32>>();
        let columns: Vec<IndexArray> = (0..self.shape.len()).map(|dim| column(dim).into()).collect();
        let values: Vec<Value> = kept.iter().map(|k| value(self.numbers[*k], dtype)).collect();
        let values = ValueArray::from_values(&values, dtype);
        let entries = Coordinates { shape: self.shape.clone(), columns, values };
        match Tensor::from_coordinates(&entries, &format, fill, Combine::Error) {
            Ok(tensor) => Some(tensor),
            Err(d) if d.code == Code::E0707 || (pattern && d.code == Code::E0709) => None,
            Err(d) => panic!("{} in {format}: {d}", self.what),
        }
    }
}

/// True if two values differ by no more than the order of additions explains.
pub fn close(a: Value, b: Value) -> bool {
    let (x, y) = (a.as_c128(), b.as_c128());
    let complex = matches!(a, Value::C64(_) | Value::C128(_)) && !x.is_finite() && !y.is_finite();
    let rough = if matches!(a, Value::F32(_) | Value::C64(_)) { 1e-5 } else { 1e-12 };
    complex || a.same_number(b) || (a.dtype() == b.dtype() && (x - y).norm() <= rough * (1.0 + x.norm()))
}

/// The failures and the numbers of comparisons.
#[derive(Debug, Default)]
pub struct Judge {
    /// Descriptions, with the programs.
    pub failures: Vec<String>,
    /// The number of compared calls.
    pub compared: usize,
    /// The number of calls in check mode.
    pub checked: usize,
    /// The number of programs that the compiler rejected as expected.
    pub refused: usize,
    /// The number of compiled programs.
    pub compiled: usize,
    cases: usize,
    share: usize,
}

/// The expected outcome of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// The interpreter's result or error code.
    Same,
    /// A diagnostic with this code, before execution.
    Refused(Code),
}

impl Judge {
    /// A judge for many cases: in check mode, a fraction of the cases becomes machine code, and the
    /// kernel interpreter, which checks every access as well, runs the others.
    pub fn sharing(share: usize) -> Judge {
        Judge { share, ..Judge::default() }
    }

    /// Compiles a program for tensors of one layout, as for users and in check mode, and calls both
    /// with each set of tensors.
    pub fn case(&mut self, what: &str, text: &str, sets: &[Vec<Tensor>], wanted: Expected) {
        self.cases += 1;
        if wanted != Expected::Same || self.cases.is_multiple_of(self.share.max(1)) {
            let check = CompileOptions { check: true, ..CompileOptions::default() };
            self.case_with(what, text, sets, check, wanted);
        } else {
            // Wrong machine code may abort the process, so check mode runs first.
            match interpret_kernel(text, sets) {
                Ok(()) => self.checked += sets.len(),
                Err(problem) => {
                    return self.failures.push(format!("{what}, in the kernel interpreter\n{text}{problem}"));
                }
            }
        }
        self.case_with(what, text, sets, CompileOptions::default(), wanted);
    }

    /// [`Judge::case`] for one compilation.
    pub fn case_with(
        &mut self,
        what: &str,
        text: &str,
        sets: &[Vec<Tensor>],
        options: CompileOptions,
        wanted: Expected,
    ) {
        let Some(first) = sets.first() else { return };
        let what = &format!("{what}, check: {}, strict: {}", options.check, options.strict);
        let mut tell = |message: String| {
            self.failures.push(format!("{what}\n{text}{message}"));
        };
        let program = match Program::parse(text) {
            Ok(program) => program,
            Err(d) => return tell(d.render(false)),
        };
        let signature = Signature::of(&first.iter().collect::<Vec<&Tensor>>());
        let executable = match (tamis::compile(&program, &signature, &options), wanted) {
            (Ok(executable), Expected::Same) => executable,
            (Ok(_), Expected::Refused(code)) => return tell(format!("is not refused with {code}")),
            (Err(d), Expected::Refused(code)) if d.0.iter().all(|d| d.code == code && !d.help.is_empty()) => {
                self.refused += 1;
                return;
            }
            (Err(d), _) => return tell(d.render(false)),
        };
        self.compiled += 1;
        // Wrong machine code may abort the process; the last printed case is then the culprit.
        let trace = std::env::var_os("TAMIS_TRACE").is_some();
        for set in sets {
            if trace {
                eprintln!("{what}\n{text}{set:?}");
            }
            let tensors: Vec<&Tensor> = set.iter().collect();
            match judge(&program, &executable, &tensors) {
                Ok(()) if options.check => self.checked += 1,
                Ok(()) => self.compared += 1,
                Err(problem) => {
                    let mut message = problem;
                    for tensor in &tensors {
                        let shown = tensor.to_coordinates();
                        let _ = write!(message, "\n{} {} {:?}", tensor.format(), tensor.dtype(), shown);
                    }
                    self.failures.push(format!("{what}\n{text}{message}"));
                    return;
                }
            }
        }
    }

    /// Panics if anything was wrong, or if too few cases were compared.
    pub fn verdict(self, least: usize) {
        let shown: Vec<&str> = self.failures.iter().take(12).map(String::as_str).collect();
        assert!(self.failures.is_empty(), "{} failures\n\n{}", self.failures.len(), shown.join("\n\n"));
        let Judge { compared, checked, refused, compiled, .. } = self;
        println!("{compared} calls and {checked} in check mode of {compiled} programs compared, {refused} refused");
        assert!(compared >= least, "only {compared} calls were compared");
        assert_eq!(checked, compared, "what is called is called in check mode, too");
    }
}

/// Runs the kernel of a program in check mode on each set of tensors, and compares with the
/// reference interpreter.
fn interpret_kernel(text: &str, sets: &[Vec<Tensor>]) -> Result<(), String> {
    let program = Program::parse(text).map_err(|d| d.render(false))?;
    let mut made: Vec<(Specialisation, Compilation)> = Vec::new();
    for set in sets {
        let results = interpret_set(&program, set, &mut made);
        let tensors: Vec<&Tensor> = set.iter().collect();
        let expected = oracle(&program, &tensors, false);
        // Finalization decides if runs fit an interval, outside of the
        // kernel.
        if results.is_ok() && expected.as_ref().is_err_and(|d| d.0.iter().all(|d| d.code == Code::E0707)) {
            continue;
        }
        compare_values(&results, &expected).map_err(|problem| format!("{set:?}\n{problem}"))?;
    }
    Ok(())
}

/// Sets of one layout share their kernels, as in the executable cache.
fn interpret_set(
    program: &Program,
    set: &[Tensor],
    made: &mut Vec<(Specialisation, Compilation)>,
) -> Result<Vec<Vec<Value>>, RunError> {
    let types: Vec<ParamType> = set.iter().map(|t| interp::param_type(t)).collect();
    let checked = program.check(&types).map_err(RunError::Refused)?;
    let layouts: Vec<ParamLayout> = set.iter().map(ParamLayout::of).collect();
    let wanted = Specialisation::of(program, &checked, &layouts);
    if made.iter().all(|(known, _)| *known != wanted) {
        let compiled = pipeline::compile(program, &types, &layouts, pipeline::Options::default());
        made.push((wanted.clone(), compiled.map_err(RunError::Refused)?));
    }
    let found = made.iter().find(|(known, _)| *known == wanted);
    let (_, Compilation { program, lowered, .. }) = found.ok_or_else(|| RunError::Wrong("no kernel".into()))?;
    // The lowered kernel may have workspaces, which have sizes, too.
    let checked = program.check(&types).map_err(RunError::Refused)?;
    lowered::run_compiled(program, set, lowered, &checked, Engine::Interpreter(3_000_000))
}

type Results = Result<tamis::Results, Diagnostics>;

fn oracle(program: &Program, tensors: &[&Tensor], strict: bool) -> Results {
    let names: Vec<&str> = program.params.iter().map(|id| program.tensor(*id).name.as_str()).collect();
    let inputs: Vec<(&str, &Tensor)> = names.iter().copied().zip(tensors.iter().copied()).collect();
    tamis::run(
        program,
        &inputs,
        &tamis::run::RunOptions { strict, interpret: true, ..tamis::run::RunOptions::default() },
    )
}

fn compare_values(results: &Result<Vec<Vec<Value>>, RunError>, expected: &Results) -> Result<(), String> {
    let (results, expected) = match (results, expected) {
        (Ok(results), Ok(expected)) => (results, expected),
        (Err(RunError::Refused(a)), Err(b)) if a.0.first().map(|d| d.code) == b.0.first().map(|d| d.code) => {
            return Ok(());
        }
        // A result that does not fit its format fails in the kernel, or when its arrays are
        // checked.
        (Err(RunError::Required(_)), Err(_)) => return Ok(()),
        (Err(RunError::Wrong(reported)), Err(_)) if reported.starts_with("level ") => return Ok(()),
        // A level of one coordinate may be written twice if one of the values is the fill value: an
        // implementation that drops fill values succeeds.
        (Err(RunError::Required(reported)), Ok(_)) if reported.contains("one coordinate per fiber") => return Ok(()),
        (Err(problem), _) => return Err(format!("{problem:?}")),
        (Ok(_), Err(d)) => return Err(format!("the interpreter says\n{}", d.render(false))),
    };
    for ((name, wanted), got) in expected.iter().zip(results) {
        let values = wanted.to_dense().map_err(|d| d.render(false))?;
        let same = values.len() == got.len() && got.iter().enumerate().all(|(k, got)| close(values.get(k), *got));
        if !same {
            return Err(format!("{name}: wanted {values:?}\ngot {got:?}"));
        }
    }
    if expected.len() == results.len() { Ok(()) } else { Err("results are missing".into()) }
}

fn judge(program: &Program, executable: &Executable, tensors: &[&Tensor]) -> Result<(), String> {
    let expected = oracle(program, tensors, executable.options().strict);
    let (results, expected) = match (executable.call(tensors), expected) {
        (Ok(results), Ok(expected)) => (results, expected),
        (Err(a), Err(b)) if a.0.first().map(|d| d.code) == b.0.first().map(|d| d.code) => return Ok(()),
        (Ok(results), Err(d)) => {
            return Err(format!("gives {results:?}, but the interpreter says\n{}", d.render(false)));
        }
        // A level of one coordinate may be written twice if one of the values is the fill value: an
        // implementation that drops fill values succeeds.
        (Err(d), Ok(_)) if d.0.iter().all(|d| d.code == Code::E0707 && !d.help.is_empty()) => return Ok(()),
        (Err(d), Ok(_)) => return Err(format!("only the compiled program fails\n{}", d.render(false))),
        (Err(a), Err(b)) => return Err(format!("{}\nbut the interpreter says\n{}", a.render(false), b.render(false))),
    };
    for ((name, found), (_, wanted)) in results.iter().zip(&expected) {
        let same = found.shape() == wanted.shape()
            && found.dtype() == wanted.dtype()
            && found.format() == wanted.format()
            && found.fill().same_number(wanted.fill());
        if !same {
            return Err(format!("{name} is {}, not {}", found.summary(), wanted.summary()));
        }
        well_stored(found).map_err(|problem| format!("{name}: {problem}"))?;
        match found.first_difference(wanted, &close) {
            Ok(None) => {}
            Ok(Some((at, a, b))) => return Err(format!("{name}{at:?} is {a}, not {b}")),
            Err(d) => return Err(d.to_string()),
        }
    }
    Ok(())
}

/// Checks that the arrays of a result satisfy every invariant of its levels, including those that
/// the library assumes.
fn well_stored(tensor: &Tensor) -> Result<(), String> {
    let levels = (0..tensor.levels().len()).map(|k| tensor.level_arrays(k)).collect();
    let values = tensor.values().cloned();
    let made = Tensor::from_parts(tensor.shape(), tensor.format(), levels, values, tensor.fill());
    let made = made.map_err(|d| d.render(false))?;
    if made.nnz() != tensor.nnz() {
        return Err(format!("{} entries are reported, {} are stored", tensor.nnz(), made.nnz()));
    }
    if tensor.format().levels().iter().any(|level| level.nonordered) {
        // In any order; uniqueness was checked with the arrays.
        return Ok(());
    }
    // Entries in storage order: strictly increasing, so without duplicates.
    let mut before: Option<Vec<u64>> = None;
    let mut problem = None;
    tensor.for_each(&mut |at, _| {
        let here: Vec<u64> = tensor.format().map().iter().map(|stored| stored.store(tensor.shape(), at)).collect();
        if before.as_ref().is_some_and(|before| *before >= here) {
            problem = Some(format!("{here:?} comes after {before:?}"));
        }
        before = Some(here);
    });
    problem.map_or(Ok(()), Err)
}
