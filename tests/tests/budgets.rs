//! Budgets: how large kernels may become, how they grow with the number of operands, how much they may do, and that
//! none of it depends on the order of operands. No test here looks at a clock.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use tamis_ir::interp::{self, Operand, Options};
use tamis_ir::{Format, Program, Value};
use tamis_tensor::{Tensor, ValueArray};
use tamis_tests::filetest::sections;
use tamis_tests::lowered::{self, Engine, Problem};
use tamis_tests::random::Random;

/// Statements and distinct expressions of the kernel, and its results.
fn lower(text: &str, tensors: &[Tensor], budget: u64) -> Result<((usize, usize), Vec<Vec<Value>>), Problem> {
    let program = Program::parse(text).unwrap_or_else(|d| panic!("{text}\n{}", d.render(false)));
    let (lowered, results) = lowered::run(&program, tensors, Engine::Interpreter(budget))?;
    Ok(((lowered.kernel.size(), lowered.kernel.exprs.len()), results))
}

fn must_lower(text: &str, tensors: &[Tensor]) -> ((usize, usize), Vec<Vec<Value>>) {
    lower(text, tensors, 3_000_000).unwrap_or_else(|problem| panic!("{text}\n{problem:?}"))
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

/// A tensor of small integers, about a third of which are not 0; integers add in any order.
fn random_tensor(random: &mut Random, shape: &[u64], format: &str) -> Tensor {
    let cells = shape.iter().product::<u64>();
    let values: Vec<i64> = (0..cells).map(|_| if random.one_in(3) { random.below(7) as i64 - 3 } else { 0 }).collect();
    tensor(shape, &values, format)
}

/// The size of every kernel of the zoo, for the first formats of its inputs. A kernel that grows past its line in
/// `tests/budgets/zoo.txt` fails; `TAMIS_BLESS=1` writes the sizes as they are, to be read in the difference.
#[test]
fn kernels_of_the_zoo() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = folder.join("budgets/zoo.txt");
    let mut sizes: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for section in sections(&folder.join("filetests/zoo.md")).unwrap() {
        let tensors: Vec<Tensor> = section.combinations[0].iter().map(|(_, tensor)| tensor.clone()).collect();
        let (size, _) = must_lower(&section.program, &tensors);
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
    let mut budgets: BTreeMap<String, (usize, usize)> = BTreeMap::new();
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

/// Programs over `n` operands: what is between them, and what they are.
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

/// Each further operand adds about what the one before it did: cases are merged, not multiplied.
#[test]
fn kernels_grow_with_their_operands_not_with_their_combinations() {
    let mut failures = String::new();
    for (name, operator, formats) in FAMILIES {
        // From the second round of formats on, an operand adds what its kind adds.
        let sizes: Vec<(usize, usize)> = (1..=2 * formats.len().max(4) + 1)
            .map(|n| {
                let (text, tensors) = family(operator, formats, n);
                let (size, results) = must_lower(&text, &tensors);
                assert_eq!(results, expected(&text, &tensors), "{name}, {n} operands");
                size
            })
            .collect();
        // Between growing with the number of operands and with its square; cases that multiply would double each time.
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

/// An expression of operators that do not mind the order of their operands.
#[derive(Clone, Debug)]
enum Tree {
    /// An operand by its number.
    Leaf(usize),
    Node(&'static str, Vec<Tree>),
}

impl Tree {
    fn random(random: &mut Random, leaves: &mut Vec<usize>) -> Tree {
        if leaves.len() <= 1 {
            return Tree::Leaf(leaves.pop().unwrap_or(0));
        }
        let op = *random.pick(&["+", "*", "+", "*", "max", "min"]);
        let parts = (2 + random.below(2)).min(leaves.len());
        let mut children: Vec<Vec<usize>> = vec![Vec::new(); parts];
        for (k, leaf) in leaves.drain(..).enumerate() {
            let part = if k < parts { k } else { random.below(parts) };
            children[part].push(leaf);
        }
        Tree::Node(op, children.iter_mut().map(|leaves| Tree::random(random, leaves)).collect())
    }

    /// The same with the operands of every node in another order.
    fn shuffled(&self, random: &mut Random) -> Tree {
        match self {
            Tree::Leaf(k) => Tree::Leaf(*k),
            Tree::Node(op, children) => {
                let mut children: Vec<Tree> = children.iter().map(|child| child.shuffled(random)).collect();
                for k in (1..children.len()).rev() {
                    children.swap(k, random.below(k + 1));
                }
                Tree::Node(op, children)
            }
        }
    }

    fn text(&self, reads: &[String]) -> String {
        match self {
            Tree::Leaf(k) => reads[*k].clone(),
            Tree::Node(op, children) => {
                let texts: Vec<String> = children.iter().map(|child| child.text(reads)).collect();
                match *op {
                    "max" | "min" => texts.iter().skip(1).fold(texts[0].clone(), |all, x| format!("{op}({all}, {x})")),
                    op => format!("({})", texts.join(&format!(" {op} "))),
                }
            }
        }
    }
}

/// Operands in another order: the same results from a kernel of the same size.
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
        // Both loops must be bounded by something.
        tensors.push(random_tensor(&mut random, &[rows, columns], "csr"));
        reads.push(format!("A{count}[i,j]"));
        let tree = Tree::random(&mut random, &mut (0..=count).collect());
        let params: Vec<String> = (0..=count).map(|k| format!("A{k}")).collect();
        let program = |tree: &Tree| {
            let update = if seed % 2 == 0 { "y[i] += " } else { "y[i] max= " };
            let body = tree.text(&reads);
            format!(
                "def f({}):\n    y = tensor(\"dense\")\n    for i, j in _:\n        {update}{body}\n    return y\n",
                params.join(", ")
            )
        };
        let text = program(&tree);
        let (size, results) = must_lower(&text, &tensors);
        assert_eq!(results, expected(&text, &tensors), "seed {seed}\n{text}");
        for _ in 0..3 {
            let other = program(&tree.shuffled(&mut random));
            let (other_size, other_results) = must_lower(&other, &tensors);
            assert_eq!(results, other_results, "seed {seed}\n{text}\n{other}");
            assert_eq!(size.0, other_size.0, "seed {seed}: statements of\n{text}\n{other}");
            compared += usize::from(text != other);
        }
    }
    assert!(compared > 600, "{compared}");
}
