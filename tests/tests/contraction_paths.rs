//! Random index notation: the chosen plan (substituted temporaries, contraction path, fused loops)
//! never executes many more statements than the statements as they were written.

use std::fmt::Write;
use tamis::notation::Pins;
use tamis::tensor::{Combine, Coordinates};
use tamis::{Format, Notation, Tensor, Value};
use tamis_tests::lowered;
use tamis_tests::random::Random;

/// Index variables and their extents.
const INDICES: [(&str, u64); 5] = [("i", 24), ("j", 20), ("k", 16), ("l", 12), ("m", 6)];

/// How many times as many statements the chosen plan may execute. The cost model estimates the
/// stored elements of temporaries; it need not be exact.
const FACTOR: u64 = 2;

/// Statements that do not count: set-up of temporaries and loops.
const CONSTANT: u64 = 300;

/// An operand or temporary: its name and the indices of its dimensions.
type Access = (String, Vec<usize>);

struct StatementGenerator {
    random: Random,
    readable: Vec<Access>,
    operands: Vec<Access>,
}

impl StatementGenerator {
    /// A tensor that shares an index with those before, if there are any: a temporary or an operand,
    /// which may be new.
    fn access(&mut self, used: &[usize]) -> Access {
        let fits = |(_, dims): &&Access| used.is_empty() || dims.iter().any(|d| used.contains(d));
        let known: Vec<Access> = self.readable.iter().filter(fits).cloned().collect();
        if !known.is_empty() && !self.random.one_in(2) {
            return self.random.pick(&known).clone();
        }
        let rank = *self.random.pick(&[1, 2, 2, 2, 3]);
        let mut dims: Vec<usize> = Vec::new();
        if !used.is_empty() {
            dims.push(*self.random.pick(used));
        }
        while dims.len() < rank {
            let dim = self.random.below(INDICES.len());
            if !dims.contains(&dim) {
                dims.push(dim);
            }
        }
        if self.random.one_in(2) {
            dims.reverse();
        }
        let made = (format!("A{}", self.operands.len()), dims);
        self.operands.push(made.clone());
        self.readable.push(made.clone());
        made
    }

    fn product(&mut self, used: &mut Vec<usize>) -> String {
        let count = 1 + self.random.below(4);
        let mut factors = Vec::new();
        for _ in 0..count {
            let (name, dims) = self.access(used);
            used.extend(&dims);
            factors.push(text_of(&name, &dims));
        }
        used.sort_unstable();
        used.dedup();
        factors.join(" * ")
    }

    fn statement(&mut self, target: &str) -> String {
        let mut used = Vec::new();
        let product = self.product(&mut used);
        let mut free: Vec<usize> = used.iter().copied().filter(|_| self.random.one_in(2)).collect();
        free.truncate(3);
        let reduced: Vec<&str> = used.iter().filter(|d| !free.contains(d)).map(|d| INDICES[*d].0).collect();
        let mut body = match reduced.is_empty() {
            true => product,
            false => format!("sum[{}]({product})", reduced.join(",")),
        };
        if self.random.one_in(4) {
            body = format!("{}({body})", self.random.pick(&["abs", "relu", "sqrt", "-"]));
        }
        let fitting: Vec<Access> =
            self.readable.iter().filter(|(_, dims)| dims.iter().all(|d| free.contains(d))).cloned().collect();
        if !fitting.is_empty() && self.random.one_in(3) {
            let (name, dims) = self.random.pick(&fitting).clone();
            body = format!("{body} {} {}", self.random.pick(&["*", "+", "-"]), text_of(&name, &dims));
        }
        let statement = format!("{} = {body}", text_of(target, &free));
        self.readable.push((target.to_string(), free));
        statement
    }
}

fn text_of(name: &str, dims: &[usize]) -> String {
    let names: Vec<&str> = dims.iter().map(|d| INDICES[*d].0).collect();
    if names.is_empty() { name.to_string() } else { format!("{name}[{}]", names.join(",")) }
}

fn formats(rank: usize) -> &'static [&'static str] {
    match rank {
        1 => &["dense", "sparse"],
        2 => &["dense", "csr", "csc", "dcsr", "csr"],
        _ => &["dense", "csf", "dense, dense, sparse", "coo"],
    }
}

fn tensor(random: &mut Random, dims: &[usize]) -> Tensor {
    let shape: Vec<u64> = dims.iter().map(|d| INDICES[*d].1).collect();
    let format = Format::parse(random.pick::<&str>(formats(dims.len())), dims.len()).unwrap();
    let one_in = if format.is_all_dense() { 1 } else { *random.pick(&[2, 8, 30]) };
    let cells: u64 = shape.iter().product();
    let mut columns: Vec<Vec<u64>> = vec![Vec::new(); shape.len()];
    let mut values = Vec::new();
    for cell in (0..cells).filter(|_| random.one_in(one_in)) {
        let mut rest = cell;
        for (column, n) in columns.iter_mut().zip(&shape).rev() {
            column.push(rest % n);
            rest /= n;
        }
        values.push(1.0 + (cell % 5) as f64);
    }
    let columns = columns.into_iter().map(Into::into).collect();
    let coordinates = Coordinates { shape, columns, values: values.into() };
    Tensor::from_coordinates(&coordinates, &format, Value::F64(0.0), Combine::Error).unwrap()
}

/// The statements that a plan executes, conversions included.
fn executed(notation: &Notation, refs: &[&Tensor], pins: &Pins) -> Option<(u64, String)> {
    let plan = tamis::notation::plan(notation, refs, pins).unwrap_or_else(|d| panic!("{}", d.render(false)));
    let made = tamis::notation::converted_operands(&plan, notation, refs).unwrap();
    let params: Vec<Tensor> = made.into_iter().map(|tensor| tensor.into_owned()).collect();
    let names = notation.params();
    let converted = plan.conversions.iter().filter_map(|c| names.iter().position(|name| *name == c.source));
    let converted: u64 = converted.map(|at| 4 * refs[at].nnz() as u64).sum();
    let count = lowered::count(&plan.program, &params, 40_000_000).ok()?;
    Some((count + converted, format!("{}{}", plan.comments(), plan.program)))
}

#[test]
fn plans_are_not_worse_than_the_statements_as_written() {
    let number = |name: &str| std::env::var(name).ok().and_then(|n| n.parse().ok());
    let (first, last) = (number("TAMIS_START").unwrap_or(0), number("TAMIS_RANDOM").unwrap_or(150));
    let (mut compared, mut better, mut worse) = (0, 0, Vec::new());
    for seed in first..last {
        let mut g =
            StatementGenerator { random: Random(seed ^ 0x0070_6174_6873), readable: Vec::new(), operands: Vec::new() };
        let count = 1 + g.random.below(4);
        let mut text = String::new();
        for k in 0..count {
            let _ = write!(text, "{}{}", if k > 0 { "; " } else { "" }, g.statement(&format!("T{k}")));
        }
        let Ok(notation) = Notation::parse(&text) else { panic!("{text}") };
        let operands = std::mem::take(&mut g.operands);
        let tensors: Vec<(String, Tensor)> =
            operands.iter().map(|(name, dims)| (name.clone(), tensor(&mut g.random, dims))).collect();
        let of = |name: &&str| tensors.iter().find(|(other, _)| other == name).map(|(_, tensor)| tensor);
        let Some(refs) = notation.params().iter().map(of).collect::<Option<Vec<&Tensor>>>() else { continue };
        let Some((written, loops)) = executed(&notation, &refs, &Pins { separate: true, ..Pins::default() }) else {
            continue;
        };
        let chosen = executed(&notation, &refs, &Pins::default());
        compared += 1;
        let Some((chosen, plan)) = chosen else {
            worse.push(format!("seed {seed}: {written} statements as written, too many as planned\n{text}"));
            continue;
        };
        better += usize::from(2 * chosen < written);
        if chosen > FACTOR * written + CONSTANT {
            let formats: Vec<String> = refs.iter().map(|t| format!("{} {}", t.format(), t.nnz())).collect();
            worse.push(format!(
                "seed {seed}: {chosen} statements, {written} as written\n{text}\n{formats:?}\n{plan}\n--- as written\n{loops}"
            ));
        }
    }
    println!("compared {compared}, much better {better}, worse {}", worse.len());
    assert!(worse.is_empty(), "{} of {compared}:\n{}", worse.len(), worse[..worse.len().min(4)].join("\n\n"));
    assert!(compared > (last - first) / 2 && better > 0, "{compared} compared, {better} better");
}
