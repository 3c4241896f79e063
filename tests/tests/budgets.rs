//! Kernel budgets: size, growth with the number of operands, executed statements, and independence
//! of operand order.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use tamis_ir::interp::{self, Operand, Options};
use tamis_ir::{Format, Program, Value};
use tamis_tensor::{Tensor, ValueArray};
use tamis_tests::filetest::sections;
use tamis_tests::lowered::{self, Engine, RunError, Stage};
use tamis_tests::random::Random;

/// The size of a kernel: statements, and distinct expressions.
type Size = (usize, usize);

/// The size of the kernel, and its results.
type Outcome = (Size, Vec<Vec<Value>>);

fn lower(text: &str, tensors: &[Tensor], stage: Stage, budget: u64) -> Result<Outcome, RunError> {
    let program = Program::parse(text).unwrap_or_else(|d| panic!("{text}\n{}", d.render(false)));
    let (lowered, results) = lowered::run_stage(&program, tensors, stage, Engine::Interpreter(budget))?;
    Ok(((lowered.kernel.size(), lowered.kernel.exprs.len()), results))
}

fn must_lower(text: &str, tensors: &[Tensor], stage: Stage) -> Outcome {
    lower(text, tensors, stage, 3_000_000).unwrap_or_else(|problem| panic!("{text}\n{problem:?}"))
}

fn expected(text: &str, tensors: &[Tensor]) -> Vec<Vec<Value>> {
    let program = Program::parse(text).unwrap_or_else(|d| panic!("{text}\n{}", d.render(false)));
    let operands: Vec<&dyn Operand> = tensors.iter().map(|t| t as &dyn Operand).collect();
    let outcome =
        interp::run(&program, &operands, Options::default()).unwrap_or_else(|d| panic!("{}", d.render(false)));
    outcome.results.iter().map(|grid| grid.to_values().unwrap()).collect()
}

fn tensor(shape: &[u64], values: &[i64], format: &str) -> Tensor {
    let values: Vec<Value> = values.iter().map(|x| Value::I64(*x)).collect();
    let format = Format::parse(format, shape.len()).unwrap();
    let array = ValueArray::from_values(&values, tamis_ir::DType::I64);
    Tensor::from_dense(shape, array, &format, Value::I64(0)).unwrap()
}

/// A tensor of small integers, about a third of them nonzero; integer sums are exact in any order.
fn random_tensor(random: &mut Random, shape: &[u64], format: &str) -> Tensor {
    let cells = shape.iter().product::<u64>();
    let values: Vec<i64> = (0..cells).map(|_| if random.one_in(3) { random.below(7) as i64 - 3 } else { 0 }).collect();
    tensor(shape, &values, format)
}

/// The size of every kernel of the zoo as the pipeline makes it, for the first formats of its
/// inputs. A kernel that grows past its line in `tests/budgets/zoo.txt` fails; `TAMIS_BLESS=1`
/// writes the sizes as they are, to be read in the difference.
#[test]
fn kernels_of_the_zoo() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = folder.join("budgets/zoo.txt");
    let mut sizes: BTreeMap<String, Size> = BTreeMap::new();
    for section in sections(&folder.join("filetests/zoo.md")).unwrap() {
        let tensors: Vec<Tensor> = section.combinations[0].iter().map(|(_, tensor)| tensor.clone()).collect();
        let (size, _) = must_lower(&section.program, &tensors, Stage::Optimised);
        sizes.insert(section.heading, size);
    }
    if std::env::var_os("TAMIS_BLESS").is_some() {
        let mut table = String::from("# statements, expressions: kernels of tests/filetests/zoo.md\n");
        for (heading, (statements, expressions)) in &sizes {
            let _ = writeln!(table, "{statements:>4} {expressions:>4}  {heading}");
        }
        std::fs::write(&path, table).unwrap();
    }
    let table = std::fs::read_to_string(&path).unwrap();
    let mut budgets: BTreeMap<String, Size> = BTreeMap::new();
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        let mut words = line.split_whitespace();
        let mut number = || words.next().and_then(|word| word.parse().ok()).unwrap_or_else(|| panic!("{line}"));
        let size = (number(), number());
        budgets.insert(words.collect::<Vec<&str>>().join(" "), size);
    }
    let mut failures = String::new();
    for (heading, (statements, expressions)) in &sizes {
        match budgets.get(heading) {
            None => writeln!(failures, "{heading}: has no budget").unwrap(),
            Some((most, _)) if statements > most => {
                writeln!(failures, "{heading}: {statements} statements, its budget is {most}").unwrap();
            }
            Some((_, most)) if expressions > most => {
                writeln!(failures, "{heading}: {expressions} expressions, its budget is {most}").unwrap();
            }
            Some(_) => {}
        }
    }
    for heading in budgets.keys().filter(|heading| !sizes.contains_key(*heading)) {
        writeln!(failures, "{heading}: has a budget, but is not in the zoo").unwrap();
    }
    assert!(failures.is_empty(), "{failures}bless tests/budgets/zoo.txt if this is meant");
}

/// Programs over `n` operands: the operator between them, and the operands.
const FAMILIES: &[(&str, &str, &[&str])] = &[
    ("union of vectors", " + ", &["sparse"]),
    ("intersection of vectors", " * ", &["sparse"]),
    ("union of vectors, mixed", " + ", &["sparse", "hash", "bytemap", "dense"]),
    ("intersection of vectors, mixed", " * ", &["bytemap", "sparse", "dense", "hash"]),
    ("union of CSR", " + ", &["csr"]),
    ("intersection of CSR", " * ", &["csr"]),
    ("union of DCSR", " + ", &["dcsr"]),
    ("intersection of DCSR", " * ", &["dcsr"]),
    ("union of COO", " + ", &["coo"]),
    ("intersection of COO", " * ", &["coo"]),
    ("union of all kinds", " + ", &["dcsr", "csr", "coo", "csc", "dense"]),
    ("intersection of all kinds", " * ", &["csr", "coo", "dcsr", "dense", "csc"]),
    ("greatest of CSR", "max", &["csr"]),
];

fn family(operator: &str, formats: &[&str], n: usize) -> (String, Vec<Tensor>) {
    let mut random = Random(n as u64);
    let rank = if formats.contains(&"sparse") { 1 } else { 2 };
    let shape: Vec<u64> = [6, 7][..rank].to_vec();
    let tensors: Vec<Tensor> = (0..n).map(|k| random_tensor(&mut random, &shape, formats[k % formats.len()])).collect();
    let at = if rank == 1 { "[i]" } else { "[i,j]" };
    let names: Vec<String> = (0..n).map(|k| format!("A{k}")).collect();
    let reads: Vec<String> = names.iter().map(|name| format!("{name}{at}")).collect();
    let body = match operator {
        "max" => reads.iter().skip(1).fold(reads[0].clone(), |all, next| format!("max({all}, {next})")),
        operator => reads.join(operator),
    };
    let loops = if rank == 1 { "i" } else { "i, j" };
    let text = format!(
        "def f({}):\n    s = scalar(0)\n    for {loops} in _:\n        s += {body}\n    return s\n",
        names.join(", ")
    );
    (text, tensors)
}

/// Each further operand adds about as much as the previous one: cases are merged, not multiplied.
#[test]
fn kernels_grow_linearly_with_their_operands() {
    let mut failures = String::new();
    for (name, operator, formats) in FAMILIES {
        // From the second round of formats on, each operand adds the cost of its kind.
        let sizes: Vec<Size> = (1..=2 * formats.len().max(4) + 1)
            .map(|n| {
                let (text, tensors) = family(operator, formats, n);
                let (size, results) = must_lower(&text, &tensors, Stage::Lowered);
                assert_eq!(results, expected(&text, &tensors), "{name}, {n} operands");
                size
            })
            .collect();
        // Between linear and quadratic growth; a product of cases would double with each operand.
        for n in 2..=4 {
            let most = ((n + 1) as f64 / n as f64).powf(1.5);
            let ((before, exprs_before), (after, exprs_after)) = (sizes[n - 1], sizes[n]);
            let grown = |before: usize, after: usize| after as f64 > most * before as f64 + 4.0;
            if grown(before, after) || grown(exprs_before, exprs_after) {
                writeln!(failures, "{name}: {} operands: sizes {sizes:?} grow too fast", n + 1).unwrap();
            }
        }
        // Twice the operands, about twice the size.
        let (half, all) = (sizes[sizes.len() / 2], sizes[sizes.len() - 1]);
        if all.0 > 2 * half.0 + 8 || all.1 > 2 * half.1 + 16 {
            writeln!(failures, "{name}: sizes {sizes:?} grow faster than the number of operands").unwrap();
        }
    }
    assert!(failures.is_empty(), "{failures}");
}

/// An expression of commutative operators.
#[derive(Clone, Debug)]
enum ExprTree {
    /// An operand by its index.
    Leaf(usize),
    Node(&'static str, Vec<ExprTree>),
}

impl ExprTree {
    fn random(random: &mut Random, leaves: &mut Vec<usize>) -> ExprTree {
        if leaves.len() <= 1 {
            return ExprTree::Leaf(leaves.pop().unwrap_or(0));
        }
        let op = *random.pick(&["+", "*", "+", "*", "max", "min"]);
        let parts = (2 + random.below(2)).min(leaves.len());
        let mut children: Vec<Vec<usize>> = vec![Vec::new(); parts];
        for (k, leaf) in leaves.drain(..).enumerate() {
            let part = if k < parts { k } else { random.below(parts) };
            children[part].push(leaf);
        }
        ExprTree::Node(op, children.iter_mut().map(|leaves| ExprTree::random(random, leaves)).collect())
    }

    /// The same expression, with the operands of every node permuted.
    fn shuffled(&self, random: &mut Random) -> ExprTree {
        match self {
            ExprTree::Leaf(k) => ExprTree::Leaf(*k),
            ExprTree::Node(op, children) => {
                let mut children: Vec<ExprTree> = children.iter().map(|child| child.shuffled(random)).collect();
                for k in (1..children.len()).rev() {
                    children.swap(k, random.below(k + 1));
                }
                ExprTree::Node(op, children)
            }
        }
    }

    fn text(&self, reads: &[String]) -> String {
        match self {
            ExprTree::Leaf(k) => reads[*k].clone(),
            ExprTree::Node(op, children) => {
                let texts: Vec<String> = children.iter().map(|child| child.text(reads)).collect();
                match *op {
                    "max" | "min" => texts.iter().skip(1).fold(texts[0].clone(), |all, x| format!("{op}({all}, {x})")),
                    op => format!("({})", texts.join(&format!(" {op} "))),
                }
            }
        }
    }
}

/// Permuted operands: the same results from a kernel of the same size.
#[test]
fn the_order_of_operands_does_not_matter() {
    let (rows, columns) = (5, 6);
    let matrix = ["csr", "dcsr", "coo", "csc", "dense", "dense, hash", "dense, bytemap"];
    let vector = ["sparse", "dense", "hash", "bytemap"];
    let mut compared = 0;
    for seed in 0..400 {
        let mut random = Random(seed);
        let count = 2 + random.below(4);
        let (mut tensors, mut reads) = (Vec::new(), Vec::new());
        for k in 0..count {
            let (shape, at, formats): (&[u64], _, &[&str]) = match random.below(6) {
                0 => (&[rows], "i", &vector),
                1 => (&[columns], "j", &vector),
                _ => (&[rows, columns], "i,j", &matrix),
            };
            let format = *random.pick(formats);
            tensors.push(random_tensor(&mut random, shape, format));
            reads.push(format!("A{k}[{at}]"));
        }
        // Both loops need a bound.
        tensors.push(random_tensor(&mut random, &[rows, columns], "csr"));
        reads.push(format!("A{count}[i,j]"));
        let tree = ExprTree::random(&mut random, &mut (0..=count).collect());
        let params: Vec<String> = (0..=count).map(|k| format!("A{k}")).collect();
        let program = |tree: &ExprTree| {
            let update = if seed % 2 == 0 { "y[i] += " } else { "y[i] max= " };
            let body = tree.text(&reads);
            format!(
                "def f({}):\n    y = tensor(\"dense\")\n    for i, j in _:\n        {update}{body}\n    return y\n",
                params.join(", ")
            )
        };
        let text = program(&tree);
        let (size, results) = must_lower(&text, &tensors, Stage::Lowered);
        assert_eq!(results, expected(&text, &tensors), "seed {seed}\n{text}");
        for _ in 0..3 {
            let other = program(&tree.shuffled(&mut random));
            let (other_size, other_results) = must_lower(&other, &tensors, Stage::Lowered);
            assert_eq!(results, other_results, "seed {seed}\n{text}\n{other}");
            assert_eq!(size.0, other_size.0, "seed {seed}: statements of\n{text}\n{other}");
            compared += usize::from(text != other);
        }
    }
    assert!(compared > 600, "{compared}");
}

/// A sparse vector with these entries.
fn vector(n: u64, entries: &[(u32, f64)], format: &str) -> Tensor {
    let entries = tamis_tensor::Coordinates {
        shape: vec![n],
        columns: vec![entries.iter().map(|(i, _)| *i).collect::<Vec<u32>>().into()],
        values: entries.iter().map(|(_, x)| *x).collect::<Vec<f64>>().into(),
    };
    let format = Format::parse(format, 1).unwrap();
    Tensor::from_coordinates(&entries, &format, Value::F64(0.0), tamis_tensor::Combine::Error).unwrap()
}

/// A matrix with one entry at the end of every `step`th row.
fn few(rows: u64, columns: u64, step: usize, format: &str) -> Tensor {
    let at: Vec<u32> = (0..rows as u32).step_by(step).collect();
    let entries = tamis_tensor::Coordinates {
        shape: vec![rows, columns],
        values: vec![1.0; at.len()].into(),
        columns: vec![at.clone().into(), vec![columns as u32 - 1; at.len()].into()],
    };
    let format = Format::parse(format, 2).unwrap();
    Tensor::from_coordinates(&entries, &format, Value::F64(0.0), tamis_tensor::Combine::Error).unwrap()
}

/// A work bound of a kernel: the statements executed on a large input with few entries.
struct WorkBound {
    what: &'static str,
    program: String,
    tensors: Vec<Tensor>,
    /// The sufficient number of statements.
    most: u64,
    /// True if the bound holds, or is only a goal.
    reached: bool,
}

fn works() -> Vec<WorkBound> {
    let over =
        |body: &str| format!("def f(a, b):\n    s = scalar(0.0)\n    for i in _:\n        {body}\n    return s\n");
    let masked = |mask: &str| {
        format!(
            "def f(A):\n    s = scalar(0.0)\n    for i, j in _:\n        if {mask}:\n            s += A[i,j]\n    return s\n"
        )
    };
    let spmv =
        "def f(A, x):\n    y = tensor(\"dense\")\n    for i, j in _:\n        y[i] += A[i,j] * x[j]\n    return y\n";
    let example = |name: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../examples/{name}.py"));
        std::fs::read_to_string(path).unwrap()
    };
    let n = 20_000;
    let all: Vec<(u32, f64)> = (0..n).map(|i| (i, 1.0)).collect();
    let ten: Vec<(u32, f64)> = (0..10).map(|i| (i * 1_900 + 7, 1.0)).collect();
    let zero: Vec<(u32, f64)> = (0..n).map(|i| (i, if i == 1 { 0.0 } else { 2.0 })).collect();
    let columns = u64::from(n);
    let (short, long) = (vector(columns, &ten, "sparse"), vector(columns, &all, "sparse"));
    let (dense, left_early) = (vector(columns, &all, "dense"), vector(columns, &zero, "dense"));
    let constant = "def f():\n    s = scalar(0)\n    for i in range(0, 20000):\n        s += 5\n    return s\n";
    let fills = "def f(a):\n    s = scalar(0.0)\n    for i in _:\n        s += a[i] + 2\n    return s\n";
    let product = "def f(a):\n    s = short_circuit_scalar(1.0)\n    for i in _:\n        s *= a[i]\n    return s\n";
    let work = |reached, what, program: &str, tensors: &[&Tensor], most| WorkBound {
        what,
        program: program.to_string(),
        tensors: tensors.iter().map(|t| (*t).clone()).collect(),
        most,
        reached,
    };
    let transposed = "def f(A):\n    B = tensor(\"dcsr\")\n    for i, j in _:\n        B[j,i] = A[i,j]\n    return B\n";
    let rows = 400;
    let (csr, dcsr) = (few(rows, columns, 4, "csr"), few(rows, columns, 4, "dcsr"));
    let (coo, square) = (few(rows, columns, 4, "coo"), few(rows, rows, 4, "dense"));
    let (left, right) = (few(100, 100, 4, "csr"), few(100, columns, 4, "csr"));
    vec![
        work(true, "SpMV, CSR: rows and entries", spmv, &[&csr, &dense], 8 * rows + 8 * rows / 4),
        work(true, "SpMV, DCSR: entries, not rows", spmv, &[&dcsr, &dense], 10 * rows / 4),
        work(true, "SpMV, COO: entries, not rows", spmv, &[&coo, &dense], 20 * rows / 4),
        work(true, "SpMV, a sparse vector: what is in both", spmv, &[&dcsr, &short], 20 * (rows / 4) * 10),
        work(true, "upper triangle, CSR: rows and entries", &masked("i <= j"), &[&csr], 10 * rows),
        work(true, "upper triangle, DCSR: entries", &masked("i <= j"), &[&dcsr], 14 * rows / 4),
        work(true, "upper triangle, dense: the triangle alone", &masked("i <= j"), &[&square], rows * rows * 11 / 20),
        work(true, "diagonal, dense: one visit per row", &masked("i == j"), &[&square], 8 * rows),
        work(true, "product of lists: both, once", &over("s += a[i] * b[i]"), &[&short, &long], 9 * columns),
        work(true, "band, dense: three visits per row", &masked("i - 1 <= j <= i + 1"), &[&square], 16 * rows),
        work(true, "galloping: the short list", &over("s += a[gallop(i)] * b[gallop(i)]"), &[&short, &long], 400),
        work(true, "following: the short list", &over("s += a[walk(i)] * b[follow(i)]"), &[&short, &long], 200),
        work(true, "the sum of a constant: one multiplication", constant, &[], 20),
        work(true, "fills between entries: one multiplication each", fills, &[&short], 400),
        work(true, "early exit: the first zero", product, &[&left_early], 40),
        work(true, "transposition: entries, not cells", transposed, &[&dcsr], 60 * rows / 4),
        work(true, "Gustavson: entries, not columns", &example("gustavson"), &[&left, &right], 4_000),
    ]
}

/// Kernels do work in proportion to stored entries. The table contains unmet goals, so that the
/// test reports when they are met.
#[test]
fn work_is_proportional_to_stored_entries() {
    let mut failures = String::new();
    for (work, stage) in works().iter().flat_map(|work| [(work, Stage::Lowered), (work, Stage::Optimised)]) {
        let (what, most) = (work.what, work.most);
        match (lower(&work.program, &work.tensors, stage, most), work.reached) {
            (Ok(_), true) | (Err(RunError::Budget), false) => {}
            (Err(RunError::Budget), true) => {
                writeln!(failures, "{what}: {stage:?}: more than {most} statements").unwrap()
            }
            (Ok(_), false) => writeln!(failures, "{what}: {stage:?}: is reached now: say so in the table").unwrap(),
            (Err(problem), _) => writeln!(failures, "{what}: {stage:?}: {problem:?}").unwrap(),
        }
    }
    assert!(failures.is_empty(), "{failures}");
}
