//! Asymptotic work of random programs: padding operands with fill values adds no work, or the
//! compiler warns.
//!
//! All tensors of these programs are sparse along every dimension. Each program runs on small
//! operands and on the same operands padded with their fill values. If both results have the same
//! elements, no iteration beyond the padding is necessary, whatever the extents of the loops. A
//! kernel that executes more statements nonetheless lost the sparsity of an operand; then a warning
//! (E0607, E0611) must name the loop. The generators of other tests take part with their own
//! programs: each makes the same program for larger dimensions.

use std::collections::HashMap;
use std::fmt::Write;
use tamis_compiler::lower::ParamLayout;
use tamis_compiler::pipeline;
use tamis_ir::interp::{self, Operand, Options};
use tamis_ir::program::{
    Block, Checked, Expr, ExprId, IndexId, LoopExtent, ParamType, Protocol, StmtKind, Storage, VarId,
};
use tamis_ir::{DType, Diagnostic, Format, FormatSpec, Program, Value};
use tamis_tensor::{Tensor, ValueArray};
use tamis_tests::generate::Case;
use tamis_tests::lowered::{self, RunError};
use tamis_tests::random::Random;
use tamis_tests::{affine, blank, early_exit, gather, generate, statements, wide};

/// The sizes of all dimensions, before and after padding.
const SIZES: [u64; 2] = [8, 56];

/// Non-fill elements have smaller coordinates than this: shifted reads stay in bounds before
/// padding, too.
const STORED: u64 = 5;

/// Formats without dense levels, by rank.
fn formats(rank: usize) -> &'static [&'static str] {
    match rank {
        0 => &["dense"],
        1 => &["sparse", "sparse", "hash", "sparse_runs", "blocks"],
        2 => &["dcsr", "dcsr", "dcsc", "coo", "hash, hash", "sparse, blocks", "sparse, sparse_runs"],
        _ => &["csf", "coo", "hash, sparse, sparse", "sparse, sparse, blocks"],
    }
}

/// An operand: its elements before padding, and its fill value.
struct Padded {
    name: &'static str,
    format: &'static str,
    elements: Vec<(Vec<u64>, f64)>,
    rank: usize,
    fill: f64,
}

impl Padded {
    fn new(random: &mut Random, name: &'static str, rank: usize, fill: f64) -> Padded {
        let cells = STORED.pow(rank as u32);
        // Values of both signs, so that no condition and no extremum hides what a loop does.
        let mut values: Vec<f64> = [6.0, -4.0, 1.5].to_vec();
        values.extend((0..random.below(cells as usize / 2)).map(|_| random.below(9) as f64 - 3.0));
        let mut elements: Vec<(Vec<u64>, f64)> = Vec::new();
        for value in values {
            let cell = random.below(cells as usize) as u64;
            let place: Vec<u64> = (0..rank as u32).rev().map(|k| cell / STORED.pow(k) % STORED).collect();
            if elements.iter().all(|(other, _)| *other != place) {
                elements.push((place, value));
            }
        }
        let formats = formats(rank);
        let format = formats[random.below(formats.len())];
        Padded { name, format, elements, rank, fill }
    }

    /// The operand for dimensions of a size, with other values for another `variant`.
    fn tensor(&self, size: u64, variant: usize) -> Tensor {
        let shape = vec![size; self.rank];
        let mut values = vec![Value::F64(self.fill); size.pow(self.rank as u32) as usize];
        for (k, (place, value)) in self.elements.iter().enumerate() {
            let value = match variant {
                0 => *value,
                1 => -value - 0.5,
                _ => 2.5 + k as f64,
            };
            values[place.iter().fold(0, |cell, at| cell * size + at) as usize] = Value::F64(value);
        }
        let format = Format::parse(self.format, self.rank).unwrap();
        let values = ValueArray::from_values(&values, DType::F64);
        Tensor::from_dense(&shape, values, &format, Value::F64(self.fill)).unwrap()
    }
}

/// The fill values of operands, and the update operators of results: no other fill value is the
/// identity of the rest of the expression.
const SEMIRINGS: [(f64, &str, &[&str]); 4] = [
    (0.0, "0.0", &["+=", "-=", "max=", "min="]),
    (0.0, "0.0", &["+="]),
    (f64::INFINITY, "inf", &["min="]),
    (f64::NEG_INFINITY, "-inf", &["max="]),
];

/// A random program of one loop nest over operands and a sparse result; `SIZE` stands for the size
/// of all dimensions.
struct PaddingGenerator {
    random: Random,
    semiring: usize,
    indices: Vec<&'static str>,
    lets: usize,
}

impl PaddingGenerator {
    fn index(&mut self) -> &'static str {
        self.indices[self.random.below(self.indices.len())]
    }

    fn read(&mut self) -> String {
        let (i, j) = (self.index(), self.index());
        let fill = SEMIRINGS[self.semiring].1;
        let matrix = *self.random.pick(&["A", "B"]);
        match self.random.below(12) {
            0..=4 if i != j => format!("{matrix}[{i},{j}]"),
            5 => format!("coalesce(x[~({i}-1)], {fill})"),
            6 if i != j => format!("coalesce({matrix}[~({i}+1),{j}], {fill})"),
            7 => format!("y[{i}]"),
            _ => format!("x[{i}]"),
        }
    }

    fn number(&mut self, depth: usize) -> String {
        if depth == 0 || self.random.one_in(4) {
            return match self.random.below(8) {
                0 => self.random.pick(&["2", "0.5", "-1", "3.0"]).to_string(),
                1 if self.lets > 0 => format!("d{}", self.random.below(self.lets)),
                _ => self.read(),
            };
        }
        let (a, mut b) = (self.number(depth - 1), self.number(depth - 1));
        if a == b {
            b = "2.5".into();
        }
        if self.semiring > 1 {
            return match self.random.below(6) {
                0..=2 => format!("({a} + {b})"),
                3 => format!("min({a}, {b})"),
                4 => format!("max({a}, {b})"),
                _ => format!("({a} if {} else {})", self.condition(), SEMIRINGS[self.semiring].1),
            };
        }
        match self.random.below(12) {
            0..=3 => format!("{a} * {b}"),
            4 | 5 => format!("({a} + {b})"),
            6 => format!("({a} - {b})"),
            7 => format!("min({a}, {b})"),
            8 => format!("max({a}, {b})"),
            9 => format!("select({}, {a}, {b})", self.condition()),
            10 => format!("({a} if {} else 0)", self.condition()),
            _ => format!("{}({a})", self.random.pick(&["abs", "relu", "-"])),
        }
    }

    fn condition(&mut self) -> String {
        let (i, j, read) = (self.index(), self.index(), self.read());
        match self.random.below(8) {
            0 | 1 if i != j => format!("{i} {} {j}", self.random.pick(&["<", "<=", "==", "!=", ">"])),
            2 => format!("{i} {} 3", self.random.pick(&["<", "!=", "=="])),
            3 => format!("{read} != 0"),
            4 => format!("{read} > 1 and {i} != 1"),
            5 => format!("{read} > 1 or {} > 0", self.read()),
            _ => format!("{read} > {}", self.random.below(3)),
        }
    }

    fn program(mut self) -> String {
        let mut text = String::from("def f(A, B, x, y):\n");
        let loops = self.indices.clone();
        let rank = self.random.below(3).min(loops.len());
        let mut subscripts = loops.clone();
        if self.random.one_in(2) {
            subscripts.reverse();
        }
        subscripts.truncate(rank);
        if rank == 0 {
            let _ = writeln!(text, "    R = scalar({})", SEMIRINGS[self.semiring].1);
        } else {
            let format = *self.random.pick(formats(rank));
            let fill = SEMIRINGS[self.semiring].1;
            let _ = writeln!(text, "    R = tensor(\"{format}\", fill={fill}, shape=({}))", "SIZE,".repeat(rank));
        }
        let place = if rank == 0 { "R".to_string() } else { format!("R[{}]", subscripts.join(",")) };
        self.indices.clear();
        let mut pad = "    ".to_string();
        for index in loops {
            self.indices.push(index);
            let _ = writeln!(text, "{pad}for {index} in range(SIZE):");
            pad += "    ";
            if self.random.one_in(6) {
                let value = self.number(1);
                let _ = writeln!(text, "{pad}d{} = {value}", self.lets);
                self.lets += 1;
            }
            if self.random.one_in(5) {
                let _ = writeln!(text, "{pad}if {}:", self.condition());
                pad += "    ";
            }
        }
        let value = self.number(3);
        let op = *self.random.pick(SEMIRINGS[self.semiring].2);
        let _ = writeln!(text, "{pad}{place} {op} {value}\n    return R");
        text
    }
}

fn case(seed: u64) -> (String, Vec<Padded>) {
    let mut random = Random(seed ^ 0x7061_6464);
    let semiring = random.below(SEMIRINGS.len());
    let operands = [("A", 2), ("B", 2), ("x", 1), ("y", 1)];
    let operands = operands.map(|(name, rank)| Padded::new(&mut random, name, rank, SEMIRINGS[semiring].0)).into();
    let indices = ["i", "j", "k"][..1 + random.below(3)].to_vec();
    (PaddingGenerator { random, semiring, indices, lets: 0 }.program(), operands)
}

/// The interpreter's result: a scalar, or the elements that differ from the fill value.
fn elements(program: &Program, tensors: &[Tensor]) -> Option<Vec<(Vec<u64>, String)>> {
    let operands: Vec<&dyn Operand> = tensors.iter().map(|t| t as &dyn Operand).collect();
    let outcome = interp::run(program, &operands, Options { strict: false, budget: Some(400_000) }).ok()?;
    let (grid, result) = (outcome.results.first()?, program.results.first()?);
    let (size, rank) = (grid.shape().first().copied().unwrap_or(1), grid.shape().len());
    let fill = outcome.checked.types.fills[result.index()];
    let stored = |(_, value): &(usize, &Value)| rank == 0 || !value.same_number(fill);
    let place = |cell: u64| (0..rank as u32).rev().map(|k| cell / size.pow(k) % size).collect();
    let values = grid.to_values()?;
    Some(values.iter().enumerate().filter(stored).map(|(cell, v)| (place(cell as u64), v.to_string())).collect())
}

/// The number of statements that the kernel executes, and the compiler's warnings.
fn cost(program: &Program, tensors: &[Tensor]) -> Option<(u64, Vec<Diagnostic>)> {
    let executed = match lowered::count(program, tensors, 10_000_000) {
        Ok(executed) => executed,
        Err(RunError::Wrong(message)) => panic!("{message}\n{program}"),
        Err(_) => return None,
    };
    let types: Vec<ParamType> = tensors.iter().map(|t| interp::param_type(t)).collect();
    let layouts: Vec<ParamLayout> = tensors.iter().map(ParamLayout::of).collect();
    let made = pipeline::compile(program, &types, &layouts, pipeline::Options::default()).ok()?;
    Some((executed, made.warnings))
}

/// True if every loop has an operand that moves with it, in a condition or in the value of the
/// assignment. A loop without operands goes over all of its range, as it says.
fn every_loop_has_an_operand(text: &str) -> bool {
    let lines = || text.lines().map(str::trim);
    let used = |line: &&str| {
        line.starts_with("if ") || line.starts_with('R') && line.contains("= ") && !line.contains("tensor")
    };
    let reads: String =
        lines().filter(used).map(|line| line.split_once("= ").map_or(line, |(_, value)| value)).collect();
    let bound = |name: &str| lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = ")).unwrap_or_default();
    let reads = (0..4)
        .map(|k| format!("d{k}"))
        .fold(reads, |reads, name| if reads.contains(&name) { reads + bound(&name) } else { reads });
    let subscripts: Vec<&str> = reads.split('[').skip(1).filter_map(|read| read.split(']').next()).collect();
    lines()
        .filter_map(|line| line.strip_prefix("for "))
        .all(|header| subscripts.iter().any(|s| s.contains(&header[..1])))
}

#[test]
fn padding_with_fill_values_adds_no_work() {
    let number = |name: &str| std::env::var(name).ok().and_then(|n| n.parse().ok());
    let (first, last) = (number("TAMIS_START").unwrap_or(0), number("TAMIS_RANDOM").unwrap_or(600));
    let (mut compared, mut warned, mut silent) = (0, 0, Vec::new());
    for seed in first..last {
        let (text, operands) = case(seed);
        if !every_loop_has_an_operand(&text) {
            continue;
        }
        let programs = SIZES.map(|size| Program::parse(&text.replace("SIZE", &size.to_string())));
        let [Ok(small), Ok(large)] = programs else { panic!("{text}") };
        let tensors = |size: u64, variant| operands.iter().map(|o| o.tensor(size, variant)).collect::<Vec<Tensor>>();
        // The same result for several values means that it does not depend on them.
        let same = |variant| {
            let [before, after] = [(&small, SIZES[0]), (&large, SIZES[1])]
                .map(|(program, size)| elements(program, &tensors(size, variant)));
            before.is_some() && before == after
        };
        if !(0..3).all(same) {
            continue;
        }
        let costs = [(&small, SIZES[0]), (&large, SIZES[1])].map(|(program, size)| cost(program, &tensors(size, 0)));
        let [Some((before, _)), Some((after, warnings))] = costs else { continue };
        compared += 1;
        if after <= 2 * before + 30 {
            continue;
        }
        warned += 1;
        let formats: Vec<String> = operands.iter().map(|o| format!("{}: {}", o.name, o.format)).collect();
        if std::env::var("SHOW").is_ok() && !warnings.is_empty() {
            println!(
                "W {seed}: {before} {after} {} {formats:?}\n{text}",
                warnings.iter().map(|d| d.message.clone()).collect::<Vec<_>>().join("\n")
            );
        }
        if warnings.is_empty() {
            silent.push(format!(
                "seed {seed}: {before} statements, {after} after padding, and no warning\n{formats:?}\n{text}"
            ));
        }
    }
    println!("compared {compared}, warned {warned}");
    assert!(silent.is_empty(), "{}", silent.join("\n"));
}

/// Programs of other generators, before and after padding.
type Generator = fn(u64, u64) -> Case;

const GENERATORS: [(&str, Generator); 7] = [
    ("loop programs", generate::padded),
    ("early exits", early_exit::padded),
    ("wide programs", wide::padded),
    ("affine programs", affine::padded),
    ("gathers", gather::padded),
    ("blank reads", blank::padded),
    ("statements", statements::padded),
];

/// How much larger each dimension is before and after padding. The first one is not 0, so that
/// windows near the end of a dimension exist in both programs.
const PADDING: [u64; 2] = [16, 48];

/// A generated program whose tensors are sparse along every dimension.
struct Generated {
    program: Program,
    checked: Checked,
    tensors: Vec<Tensor>,
}

impl Generated {
    fn new(case: &Case, seed: u64) -> Option<Generated> {
        let mut random = Random(seed);
        let mut program = Program::parse(&case.text).ok()?;
        for info in &mut program.tensors {
            let Some(declaration) = &mut info.declaration else { continue };
            let Storage::Tensor(spec) = &mut declaration.storage else { continue };
            let rank = match &declaration.shape {
                Some(shape) => shape.len(),
                None => 1,
            };
            let format = spec.with_rank(rank).ok()?;
            let sparse = Format::parse(random.pick::<&str>(formats(rank)), rank).ok()?;
            let (map, levels) = (sparse.map().to_vec(), sparse.levels().to_vec());
            *spec = FormatSpec::from(Format::new(rank, map, levels, format.leaf()).ok()?);
        }
        let tensor = |(_, input): &(String, generate::Input)| {
            input.tensor(random.pick::<&str>(formats(input.shape.len()))).unwrap_or_else(|d| panic!("{d}"))
        };
        let tensors: Vec<Tensor> = case.inputs.iter().map(tensor).collect();
        let types: Vec<ParamType> = tensors.iter().map(|t| interp::param_type(t)).collect();
        let checked = program.check(&types).ok()?;
        Some(Generated { program, checked, tensors })
    }

    /// The elements of all results that differ from their fill values, unless that takes long.
    fn elements(&self) -> Option<Vec<(usize, Vec<u64>, String)>> {
        let operands: Vec<&dyn Operand> = self.tensors.iter().map(|t| t as &dyn Operand).collect();
        let outcome = interp::run(&self.program, &operands, Options { strict: false, budget: Some(300_000) }).ok()?;
        let mut found = Vec::new();
        for (number, (grid, result)) in outcome.results.iter().zip(&self.program.results).enumerate() {
            let fill = outcome.checked.types.fills[result.index()];
            for (cell, value) in grid.to_values()?.into_iter().enumerate() {
                let mut rest = cell as u64;
                let mut place: Vec<u64> = Vec::new();
                for size in grid.shape().iter().rev() {
                    place.push(rest % size);
                    rest /= size;
                }
                if place.is_empty() || !value.same_number(fill) {
                    found.push((number, place, value.to_string()));
                }
            }
        }
        Some(found)
    }

    /// Whether a sparse operand moves with every loop around an assignment that grows with padding:
    /// other loops go over all of their range, as they say.
    fn is_bounded_by_operands(&self, before: &Generated) -> bool {
        // Another schedule was chosen.
        if self.checked.extents.loops.len() != before.checked.extents.loops.len() {
            return false;
        }
        let loops = self.checked.extents.loops.iter().zip(&before.checked.extents.loops);
        let growing: Vec<bool> =
            loops.map(|(after, before)| after != before || matches!(after, LoopExtent::Dynamic)).collect();
        let mut lets = HashMap::new();
        self.assignments_are_bounded(&self.program.body, &growing, &mut Vec::new(), &mut Vec::new(), &mut lets)
    }

    fn assignments_are_bounded(
        &self,
        block: &Block,
        growing: &[bool],
        loops: &mut Vec<IndexId>,
        conditions: &mut Vec<ExprId>,
        lets: &mut HashMap<VarId, ExprId>,
    ) -> bool {
        block.iter().all(|stmt| match &stmt.kind {
            // Temporaries are made anew in every iteration.
            StmtKind::Declare(_) => loops.iter().all(|index| !growing[index.index()]),
            StmtKind::Let { var, value } => {
                lets.insert(*var, *value);
                true
            }
            StmtKind::For { index, body, .. } => {
                loops.push(*index);
                let bounded = self.assignments_are_bounded(body, growing, loops, conditions, lets);
                loops.pop();
                bounded
            }
            StmtKind::If { cond, then, otherwise } => {
                conditions.push(*cond);
                let bounded = self.assignments_are_bounded(then, growing, loops, conditions, lets)
                    && self.assignments_are_bounded(otherwise, growing, loops, conditions, lets);
                conditions.pop();
                bounded
            }
            StmtKind::Assign { value, .. } => {
                let mut moved = Vec::new();
                conditions.iter().chain([value]).for_each(|expr| self.moving_indices(*expr, false, lets, &mut moved));
                loops.iter().all(|index| !growing[index.index()] || moved.contains(index))
            }
        })
    }

    /// The indices in subscripts of reads of tensors that may lead a loop.
    fn moving_indices(&self, expr: ExprId, within: bool, lets: &HashMap<VarId, ExprId>, moved: &mut Vec<IndexId>) {
        match self.program.expr(expr) {
            Expr::Index(index) if within => moved.push(*index),
            Expr::Var(var) => {
                if let Some(value) = lets.get(var) {
                    self.moving_indices(*value, within, lets, moved);
                }
            }
            Expr::Read(access) => {
                for subscript in access.subscripts.iter().filter(|s| s.protocol != Some(Protocol::Follow)) {
                    self.moving_indices(subscript.expr, true, lets, moved);
                }
            }
            Expr::Call(_, operands) => {
                operands.iter().for_each(|operand| self.moving_indices(*operand, within, lets, moved));
            }
            Expr::Index(_) | Expr::Literal(_) | Expr::Size(..) | Expr::Entry(_) => {}
        }
    }
}

#[test]
fn padding_generated_programs_adds_no_work() {
    let number = |name: &str| std::env::var(name).ok().and_then(|n| n.parse().ok());
    let (first, last) = (number("TAMIS_START").unwrap_or(0), number("TAMIS_RANDOM").unwrap_or(200));
    let mut silent = Vec::new();
    for (name, generator) in GENERATORS {
        let (mut compared, mut warned) = (0, 0);
        for seed in first..last {
            let cases = PADDING.map(|padding| generator(seed, padding));
            let [Some(small), Some(large)] = [0, 1].map(|k| Generated::new(&cases[k], seed)) else { continue };
            if !large.is_bounded_by_operands(&small) || small.elements().is_none_or(|e| large.elements() != Some(e)) {
                continue;
            }
            let [Some((before, _)), Some((after, warnings))] =
                [&small, &large].map(|case| cost(&case.program, &case.tensors))
            else {
                continue;
            };
            compared += 1;
            if after <= before + 24 {
                continue;
            }
            warned += 1;
            if warnings.is_empty() {
                silent.push(format!(
                    "{name}, seed {seed}: {before} statements, {after} after padding, and no warning\n{}",
                    large.program
                ));
            }
        }
        println!("{name}: compared {compared}, warned {warned}");
        assert!(compared > 0, "{name}");
    }
    assert!(silent.is_empty(), "{} programs\n{}", silent.len(), silent[..silent.len().min(12)].join("\n"));
}

/// The program for dimensions of a size, over vectors that store elements 1 and 3 only.
fn of_size(text: &str, size: u64, formats: &[&str]) -> (u64, Vec<Diagnostic>) {
    let program = Program::parse(&text.replace("SIZE", &size.to_string())).unwrap_or_else(|d| panic!("{text}\n{d:?}"));
    let values = |fill: f64| (0..size).map(move |k| if k == 1 || k == 3 { k as f64 + 0.5 } else { fill });
    let tensors: Vec<Tensor> = formats
        .iter()
        .map(|format| {
            let format = Format::parse(format, 1).unwrap();
            Tensor::from_dense(&[size], values(0.0).collect::<Vec<f64>>().into(), &format, Value::F64(0.0)).unwrap()
        })
        .collect();
    cost(&program, &tensors).unwrap()
}

/// A run that another operand bounds is not walked where that operand stores nothing.
#[test]
fn runs_are_walked_at_the_coordinates_of_other_operands() {
    for (run, value) in [("-2.0 * a[i] + s[0]", "a[i] + t[i] * b[i]"), ("a[i] * b[i] + s[0]", "b[i] * t[i] - a[i]")] {
        let text = format!(
            "def f(a, b, s):\n    t = tensor(\"sparse_runs\", shape=(SIZE,))\n    u = tensor(\"sparse\", shape=(SIZE,))\n    for i in _:\n        t[i] = {run}\n    for i in _:\n        u[i] = {value}\n    return u\n"
        );
        for formats in [["sparse", "sparse", "dense"], ["blocks", "hash", "dense"], ["sparse_runs", "sparse", "dense"]]
        {
            let [(before, _), (after, _)] = SIZES.map(|size| of_size(&text, size, &formats));
            assert!(after <= before + 12, "{formats:?}: {before} statements, {after} after padding\n{text}");
        }
    }
}

/// An operand whose values do not matter to a statement bounds no loop: that is reported.
#[test]
fn operands_that_do_not_matter_are_reported() {
    for (value, reported) in [
        ("0.0 * a[i] + s[0]", true),
        ("select(2 < 1, a[i], s[0] * i)", true),
        ("0.0 * a[i] + s[0] * b[i]", false),
        ("0.0 * a[i]", false),
        ("0.0 * a[i] + d[i]", false),
    ] {
        let text = format!(
            "def f(a, b, s, d):\n    u = tensor(\"sparse\", shape=(SIZE,))\n    for i in range(SIZE):\n        u[i] = {value}\n    return u\n"
        );
        let (_, warnings) = of_size(&text, SIZES[1], &["sparse", "sparse", "dense", "dense"]);
        let found = warnings.iter().any(|d| d.code == tamis_ir::Code::E0611 && d.message.contains("that `a` stores"));
        assert_eq!(found, reported, "{text}\n{warnings:?}");
        assert!(reported || warnings.is_empty(), "{text}\n{warnings:?}");
    }
}

/// A loop in which a sparse operand is only searched for is reported, unless a dense operand moves
/// with all of its loops or the program asks for the search.
#[test]
fn searches_in_each_iteration_are_reported() {
    for (value, reported) in [
        ("A[i, j % 2000] * x[j]", true),
        ("A[i, j // 2] * x[j]", true),
        ("A[i, p[j]] * x[j]", true),
        ("A[i, follow(j % 2000)] * x[j]", false),
        ("V[j % 2000] * x[j]", false),
        ("A[i, j // 2] * B[i, j]", false),
    ] {
        let operands = [("A", 2), ("B", 2), ("V", 1), ("p", 1), ("x", 1)];
        let operands: Vec<_> = operands.into_iter().filter(|(name, _)| value.contains(&format!("{name}["))).collect();
        let names: Vec<&str> = operands.iter().map(|(name, _)| *name).collect();
        let text = format!(
            "def f({}):\n    y = tensor(\"dense\", shape=(3,))\n    for i in range(3):\n        for j in range(4000):\n            y[i] += {value}\n    return y\n",
            names.join(", ")
        );
        let program = Program::parse(&text).unwrap_or_else(|d| panic!("{text}\n{}", d.render(false)));
        let tensors: Vec<Tensor> = operands
            .iter()
            .map(|(name, rank)| {
                let columns = if ["A", "V"].contains(name) { 2000 } else { 4000 };
                let shape = if *rank == 2 { vec![3, columns] } else { vec![columns] };
                let count = shape.iter().product::<u64>() as usize;
                let values = (0..count).map(|k| i64::from(k % 500 == 7)).collect::<Vec<i64>>();
                let format = match *name {
                    "A" | "B" => "csr",
                    "V" => "sparse",
                    _ => "dense",
                };
                let format = Format::parse(format, *rank).unwrap();
                Tensor::from_dense(&shape, values.into(), &format, Value::I64(0)).unwrap()
            })
            .collect();
        let (_, warnings) = cost(&program, &tensors).unwrap();
        let found = warnings.iter().any(|d| {
            let message = d.message.contains("visits all 4000 coordinates, not only those that `A` stores");
            message && d.code == tamis_ir::Code::E0611 && !d.help.is_empty()
        });
        assert_eq!(found, reported, "{text}\n{warnings:?}");
        assert!(reported || warnings.is_empty(), "{text}\n{warnings:?}");
    }
}
