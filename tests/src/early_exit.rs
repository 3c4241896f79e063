//! Generator of random loop programs with short-circuit reductions: several in one nest,
//! beside other statements, at any depth, final early, late, from the start or never.
//!
//! Annihilators are frequent: truth values come from comparisons with stored values, products meet
//! zeros, extrema meet infinities.

use crate::generate::{Case, Input, enlarged};
use crate::random::Random;
use std::fmt::Write;
use tamis_ir::{DType, Value};

/// A scalar of the program.
struct Scalar {
    name: String,
    kind: usize,
}

struct EarlyExitGenerator {
    random: Random,
    text: String,
    scalars: Vec<Scalar>,
    /// Results, with their index variables.
    results: Vec<(String, &'static str)>,
    names: usize,
}

/// Declarations of a scalar that is never final, and of one that is.
const STARTS: [[&str; 2]; 7] =
    [["False", "True"], ["True", "False"], ["1", "0"], ["-inf", "inf"], ["inf", "-inf"], ["-1", "5"], ["1.0", "0.0"]];

const FORMATS: [&str; 9] =
    ["dense", "csr", "csc", "dcsr", "hash, hash", "coo", "dense, runs", "sparse, dense", "dense, blocks"];
const VECTORS: [&str; 6] = ["dense", "sparse", "hash", "bytemap", "runs", "blocks"];

/// A random program and its inputs, from a seed.
pub fn case(seed: u64) -> Case {
    padded(seed, 0)
}

/// [`case`], with every dimension larger by `padding`: the same loops over the same stored elements.
pub fn padded(seed: u64, padding: u64) -> Case {
    let mut random = Random(seed);
    let size = |random: &mut Random| *random.pick(&[1u64, 2, 3, 5, 7, 9]);
    let (rows, columns) = (size(&mut random), size(&mut random));
    let inputs: Vec<(String, Input)> =
        [("A", vec![rows, columns]), ("B", vec![rows, columns]), ("x", vec![rows]), ("y", vec![columns])]
            .into_iter()
            .map(|(name, shape)| {
                let larger: Vec<u64> = shape.iter().map(|size| enlarged(*size, padding)).collect();
                (name.to_string(), input(&mut random, shape).padded(&larger))
            })
            .collect();
    let (rows, columns) = (enlarged(rows, padding), enlarged(columns, padding));
    let mut g = EarlyExitGenerator { random, text: String::new(), scalars: Vec::new(), results: Vec::new(), names: 0 };
    g.text += "def program(A, B, x, y):\n";
    for k in 0..1 + g.random.below(4) {
        let kind = g.random.below(STARTS.len());
        let start = STARTS[kind][usize::from(g.random.one_in(12))];
        let declared = if g.random.one_in(8) { "scalar" } else { "short_circuit_scalar" };
        let name = format!("s{k}");
        g.line(1, &format!("{name} = {declared}({start})"));
        g.scalars.push(Scalar { name, kind });
    }
    for k in 0..g.random.below(3) {
        let (name, indices) = (format!("R{k}"), *g.random.pick(&["i", "j", "i,j", "j,i", ""]));
        let format = match indices.len() {
            0 => None,
            1 => Some(*g.random.pick(&VECTORS)),
            _ => Some(*g.random.pick(&FORMATS)),
        };
        let shape: Vec<String> = indices
            .split(',')
            .filter(|i| !i.is_empty())
            .map(|i| (if i == "i" { rows } else { columns }).to_string())
            .collect();
        match format {
            Some(format) => g.line(1, &format!("{name} = tensor(\"{format}\", shape=({},))", shape.join(", "))),
            None => g.line(1, &format!("{name} = scalar(0.0)")),
        }
        g.results.push((name, indices));
    }
    g.nest();
    let mut returned: Vec<String> = g.scalars.iter().map(|scalar| scalar.name.clone()).collect();
    returned.extend(g.results.iter().map(|(name, _)| name.clone()));
    let _ = writeln!(g.text, "    return {}", returned.join(", "));
    Case { text: g.text, inputs }
}

fn input(random: &mut Random, shape: Vec<u64>) -> Input {
    let dtype = *random.pick(&[DType::F64, DType::F64, DType::I64, DType::U8, DType::Bool]);
    let density = 1 + random.below(4);
    let cells: u64 = shape.iter().product();
    let mut last = Value::zero(dtype);
    let values = (0..cells)
        .map(|_| {
            // Formats with runs are included.
            if !random.one_in(3) {
                last = match random.below(4) < density {
                    true => Value::F64(random.below(5) as f64).cast(dtype),
                    false => Value::zero(dtype),
                };
            }
            last
        })
        .collect();
    Input { shape, values, dtype }
}

impl EarlyExitGenerator {
    fn line(&mut self, depth: usize, text: &str) {
        let _ = writeln!(self.text, "{:1$}{text}", "", 4 * depth);
    }

    fn fresh(&mut self, prefix: &str) -> String {
        self.names += 1;
        format!("{prefix}{}", self.names)
    }

    /// One or two top-level nests; the second updates only scalars, which may be final already.
    fn nest(&mut self) {
        let (outer, inner) = if self.random.one_in(3) { ("j", "i") } else { ("i", "j") };
        self.line(1, &format!("for {outer} in _:"));
        let before = self.text.len();
        let mut written: Vec<usize> = Vec::new();
        if self.random.one_in(2) {
            self.statements(2, &[outer], &mut written);
        }
        for _ in 0..1 + usize::from(self.random.one_in(4)) {
            self.inner(outer, inner, &mut written);
        }
        if self.random.one_in(3) {
            self.statements(2, &[outer], &mut written);
        }
        if self.text.len() == before {
            self.line(2, "pass");
        }
        if self.random.one_in(4) {
            let k = self.fresh("k");
            self.line(1, &format!("for {k} in _:"));
            let element = format!("x[{k}]");
            for scalar in 0..self.scalars.len() {
                self.update(2, scalar, &element);
            }
        }
    }

    fn inner(&mut self, outer: &'static str, inner: &'static str, written: &mut Vec<usize>) {
        let mut depth = 2;
        if self.random.one_in(6) {
            let cond = self.condition(&[outer]);
            self.line(depth, &format!("if {cond}:"));
            depth += 1;
        }
        let temporary = self.random.one_in(4).then(|| self.fresh("t"));
        if let Some(name) = &temporary {
            self.line(depth, &format!("{name} = scalar(0.0)"));
        }
        self.line(depth, &format!("for {inner} in _:"));
        let start = self.text.len();
        let mut body = depth + 1;
        if self.random.one_in(5) {
            let cond = self.condition(&[outer, inner]);
            self.line(body, &format!("if {cond}:"));
            body += 1;
        }
        if let Some(name) = &temporary {
            let element = self.element(&[outer, inner]);
            self.line(body, &format!("{name} += {element}"));
        }
        self.statements(body, &[outer, inner], written);
        if self.text.len() == start || self.text.ends_with(":\n") {
            self.line(body, "pass");
        }
        if let Some(name) = temporary {
            let scalar = self.random.below(self.scalars.len());
            self.update(depth, scalar, &name);
        }
    }

    /// Updates of scalars and results.
    fn statements(&mut self, depth: usize, around: &[&str], written: &mut Vec<usize>) {
        for scalar in 0..self.scalars.len() {
            if self.random.one_in(2) {
                let element = self.element(around);
                self.update(depth, scalar, &element);
            }
        }
        for k in 0..self.results.len() {
            let (name, indices) = self.results[k].clone();
            let fits = indices.split(',').filter(|i| !i.is_empty()).all(|i| around.contains(&i));
            if fits && !written.contains(&k) && self.random.one_in(2) {
                written.push(k);
                let element = self.element(around);
                let place = if indices.is_empty() { name } else { format!("{name}[{indices}]") };
                self.line(depth, &format!("{place} += {element}"));
            }
        }
    }

    fn update(&mut self, depth: usize, scalar: usize, element: &str) {
        let bound = self.random.below(4);
        let Scalar { name, kind } = &self.scalars[scalar];
        let text = match kind {
            0 => format!("{name} |= {element} > {bound}"),
            1 => format!("{name} &= {element} <= {bound}"),
            2 => format!("{name} *= select({element} == {bound}, 0, 2)"),
            3 => format!("{name} max= select({element} > {bound}, inf, {element})"),
            4 => format!("{name} min= select({element} > {bound}, -inf, {element})"),
            5 => format!("{name} = choose({name}, select({element} > {bound}, {bound}, -1), -1)"),
            _ => format!("{name} *= {element}"),
        };
        self.line(depth, &text);
    }

    /// An operand.
    fn element(&mut self, around: &[&str]) -> String {
        let mut found: Vec<&str> = Vec::new();
        if around.contains(&"i") {
            found.extend(["x[i]", "coalesce(x[~(i+1)], 2)", "i"]);
        }
        if around.contains(&"j") {
            found.extend(["y[j]", "coalesce(y[~(j-2)], 1)"]);
        }
        if around.len() == 2 {
            found.extend(["A[i,j]", "A[i,j]", "B[i,j]", "A[i,j] * B[i,j]", "A[i,j] * y[j]", "x[i] * B[i,j]"]);
        }
        (*self.random.pick(&found)).to_string()
    }

    fn condition(&mut self, around: &[&str]) -> String {
        match around.len() {
            2 => (*self.random.pick(&["i <= j", "i != j", "A[i,j] > 1", "y[j] > 0", "j < 3"])).to_string(),
            _ => format!("{} > 1", self.element(around)),
        }
    }
}
