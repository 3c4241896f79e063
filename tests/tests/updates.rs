//! Tests of update operators on targets of every format and of several fill values, with values
//! that are identities or annihilators, under the sparse policy and in strict arithmetic. Unwritten
//! elements count as unstored, in compiled code as in the interpreter.

use tamis::compile::CompileOptions;
use tamis_ir::algebra::{Op, TABLE, Typing};
use tamis_ir::interp::{self, Operand, Options};
use tamis_ir::{DType, Program, Value};
use tamis_tensor::Tensor;
use tamis_tests::conform::{Data, Expected, Judge, formats};
use tamis_tests::lowered::{self, Engine, Stage};

const INTERPRETED: Engine = Engine::Interpreter(3_000_000);

/// One program in this many is compiled to machine code, with and without checks; the others run in
/// the kernel interpreter, which checks every access, too.
const SHARE: usize = 40;

/// An update operator in the syntax of the language, with its properties.
struct Updater {
    written: String,
    dtypes: &'static [DType],
    literals: &'static [&'static str],
    fills: &'static [&'static str],
}

/// All update operators.
fn updaters() -> Vec<Updater> {
    let rows = TABLE.iter().filter(|row| row.op.can_update());
    let updater = |row: &tamis_ir::algebra::OpInfo| {
        let written = match row.symbol.filter(|_| Op::infix(row.symbol.unwrap_or("")) == Some(row.op)) {
            Some(symbol) => format!("{symbol}="),
            None => format!("{}=", row.name),
        };
        match row.typing {
            Typing::Bitwise | Typing::Shift => {
                Updater { written, dtypes: &[DType::I64], literals: &["0", "1", "-1"], fills: &["0", "1", "-1"] }
            }
            Typing::Logical => {
                Updater { written, dtypes: &[DType::Bool], literals: &["False", "True"], fills: &["False", "True"] }
            }
            typing => Updater {
                written,
                dtypes: match typing {
                    Typing::Arithmetic { complex: true } => &[DType::F64, DType::F32, DType::C128],
                    _ => &[DType::F64, DType::F32],
                },
                literals: &["0", "1", "-0.0", "nan", "inf", "-inf"],
                fills: &["0", "1", "inf", "-inf", "nan"],
            },
        }
    };
    // Truth values of numbers.
    let numbers = |of: Updater| match of.dtypes {
        [DType::Bool] => {
            let dtypes = &[DType::F64, DType::I64];
            let other = Updater { written: of.written.clone(), dtypes, literals: of.literals, fills: &["0", "1", "2"] };
            vec![of, other]
        }
        _ => vec![of],
    };
    rows.map(updater).flat_map(numbers).collect()
}

/// A row of special values, an empty row, and the special values in another order; the last column
/// is not stored.
fn operand() -> Data {
    let values = [0.0, 2.0, -0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 4.0];
    let row = |i: u64| (0..7u64).map(move |j| (vec![i, j], values[((j + 3 * i) % 7) as usize]));
    let (cells, numbers) = row(0).chain(row(2)).unzip();
    Data { what: "values that matter", shape: vec![3, 8], cells, numbers }
}

/// A program with one target per fill value, and the forms of its writes.
fn program(updater: &Updater, dtype: DType, format: &str, order: &str, body: usize) -> String {
    let op = &updater.written;
    let place = if format.contains(',') { "i,j" } else { ["j", "7 - j"][body % 2] };
    let (mut declared, mut updates, mut names) = (String::new(), String::new(), Vec::new());
    for (k, fill) in updater.fills.iter().enumerate() {
        let shape = if format.contains(',') { "(3, 8)" } else { "(8,)" };
        declared += &format!("    C{k} = tensor(\"{format}\", fill={fill}, dtype=\"{dtype}\", shape={shape})\n");
        let literal = updater.literals[(body / 4 + k) % updater.literals.len()];
        let indent = "            ";
        updates += &match body % 4 {
            0 => format!("{indent}C{k}[{place}] {op} A[i,j]\n"),
            // A written element is stored.
            1 => format!("{indent}C{k}[{place}] {op} A[i,j]\n{indent}C{k}[{place}] {op} A[i,j]\n"),
            // Decided statically.
            2 => format!("{indent}C{k}[{place}] {op} {literal}\n"),
            // After another write of any kind.
            _ => {
                let first = if (body / 4).is_multiple_of(2) { op } else { "=" };
                let first = format!("{indent}if A[i,j] != 0:\n{indent}    C{k}[{place}] {first} {literal}\n");
                format!("{first}{indent}C{k}[{place}] {op} A[i,j]\n")
            }
        };
        names.push(format!("C{k}"));
    }
    let [outer, inner] = if order == "i, j" { ["i", "j"] } else { ["j", "i"] };
    let extent = |index: &str| if index == "i" { "range(0, 3)" } else { "range(0, 8)" };
    format!(
        "def f(A):\n{declared}    for {outer} in {}:\n        for {inner} in {}:\n{updates}    return {}\n",
        extent(outer),
        extent(inner),
        names.join(", ")
    )
}

/// The mismatch between a kernel and the reference interpreter.
fn difference(program: &Program, tensors: &[Tensor], strict: bool) -> Option<String> {
    let operands: Vec<&dyn Operand> = tensors.iter().map(|t| t as &dyn Operand).collect();
    let expected = match interp::run(program, &operands, Options { strict, budget: None }) {
        Ok(outcome) => outcome.results,
        Err(d) => return Some(d.render(false)),
    };
    let stage = if strict { Stage::Strict } else { Stage::Optimised };
    let (lowered, results) = match lowered::run_stage(program, tensors, stage, INTERPRETED) {
        Ok(made) => made,
        Err(problem) => return Some(format!("{problem:?}")),
    };
    for (k, (wanted, got)) in expected.iter().zip(&results).enumerate() {
        let wanted = wanted.to_values()?;
        if !wanted.iter().zip(got).all(|(a, b)| tamis_tests::conform::close(*a, *b)) || wanted.len() != got.len() {
            return Some(format!("C{k}: wanted\n{wanted:?}\ngot\n{got:?}\n{}", lowered.kernel));
        }
    }
    (expected.len() != results.len()).then(|| "results are missing".into())
}

/// Every operator, format, fill value, order and policy.
fn check_updates(formats: &[String]) {
    let mut judge = Judge::default();
    let mut failures = Vec::new();
    let (data, mut number) = (operand(), 0);
    for (u, updater) in updaters().iter().enumerate() {
        for (f, format) in formats.iter().enumerate() {
            for strict in [false, true] {
                for (o, order) in ["i, j", "j, i"].iter().enumerate() {
                    for half in 0..2 {
                        number += 1;
                        // All bodies of an operator, distributed over its formats.
                        let body = 2 * half + (f + o) % 2 + 4 * ((f + u) % 6);
                        let dtype = updater.dtypes[(f + half) % updater.dtypes.len()];
                        let input = ["dcsr", "csr", "dense"][(f + o + half) % 3];
                        let Some(a) = data.tensor(input, dtype, Value::zero(dtype)) else { continue };
                        let text = program(updater, dtype, format, order, body);
                        let parsed = Program::parse(&text).unwrap_or_else(|d| panic!("{text}\n{}", d.render(false)));
                        if let Some(problem) = difference(&parsed, std::slice::from_ref(&a), strict) {
                            failures.push(format!("strict: {strict}, A: {input}\n{text}{problem}"));
                        }
                        if number % SHARE == 0 {
                            for check in [false, true] {
                                let options = CompileOptions { strict, check, ..CompileOptions::default() };
                                judge.case_with("an update", &text, &[vec![a.clone()]], options, Expected::Same);
                            }
                        }
                    }
                }
            }
        }
    }
    let shown: Vec<&str> = failures.iter().take(4).map(String::as_str).collect();
    assert!(failures.is_empty(), "{} of {number} fail\n\n{}", failures.len(), shown.join("\n\n"));
    judge.verdict(number / SHARE);
}

/// Levels of one coordinate hold too few elements.
fn roomy(rank: usize) -> Vec<String> {
    formats(rank).into_iter().filter(|f| !f.contains("singleton") || f.contains("nonunique")).collect()
}

#[test]
fn updates_of_vectors() {
    check_updates(&roomy(1));
}

#[test]
fn updates_of_matrices() {
    check_updates(&roomy(2));
}

/// Scalars that know whether they were written, and those that always were. (What a short-circuit
/// scalar does not look at any more does not count, so it is left out here.)
#[test]
fn updates_of_scalars() {
    let (data, mut failures) = (operand(), Vec::new());
    for updater in updaters() {
        for (d, dtype) in updater.dtypes.iter().enumerate() {
            for kind in ["scalar", "sparse_scalar"] {
                for (f, fill) in updater.fills.iter().enumerate() {
                    // Up to the first entries, so that the scalar is not always NaN; and by a
                    // literal, once or twice.
                    let op = &updater.written;
                    let literal = updater.literals[(f + d) % updater.literals.len()];
                    let text = format!(
                        "def f(A):\n    C = tensor(\"dense\", dtype=\"{dtype}\", shape=(3, 8))\n    for i in range(0, 3):\n        for j in range(0, 8):\n            s = {kind}({fill}, dtype=\"{dtype}\")\n            s {op} A[i,j]\n            if j > 3:\n                s {op} {literal}\n            C[i,j] = s\n    return C\n"
                    );
                    let parsed = Program::parse(&text).unwrap_or_else(|d| panic!("{text}\n{}", d.render(false)));
                    let Some(a) = data.tensor(["dcsr", "dense"][f % 2], *dtype, Value::zero(*dtype)) else { continue };
                    for strict in [false, true] {
                        if let Some(problem) = difference(&parsed, std::slice::from_ref(&a), strict) {
                            failures.push(format!("strict: {strict}\n{text}{problem}"));
                        }
                    }
                }
            }
        }
    }
    let shown: Vec<&str> = failures.iter().take(4).map(String::as_str).collect();
    assert!(failures.is_empty(), "{} fail\n\n{}", failures.len(), shown.join("\n\n"));
}
