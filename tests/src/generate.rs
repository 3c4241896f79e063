//! Generator of random loop programs that are well-formed by construction, with inputs.
//!
//! Every tensor dimension belongs to one of a few *axes* of fixed size, and a loop runs over one
//! axis, so that sizes always agree. Statements follow the lifecycle rule: a top-level statement
//! does not read what it writes.

use crate::masks::mask;
use crate::random::Random;
use std::fmt::Write;
use tamis_ir::interp::Grid;
use tamis_ir::{DType, Value};
use tamis_tensor::{Tensor, ValueArray};

/// A program with inputs.
#[derive(Clone, Debug)]
pub struct Case {
    /// The program text.
    pub text: String,
    /// Inputs by name, dense.
    pub inputs: Vec<(String, Input)>,
}

/// A dense input.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Input {
    pub shape: Vec<u64>,
    pub values: Vec<Value>,
    pub dtype: DType,
}

impl Input {
    /// The input in a format. Its fill value is 0, or the more frequent infinity.
    pub fn tensor(&self, format: &str) -> tamis_ir::diag::Result<Tensor> {
        let format = tamis_ir::Format::parse(format, self.shape.len())?;
        let values = ValueArray::from_values(&self.values, self.dtype);
        Tensor::from_dense(&self.shape, values, &format, self.fill())
    }

    fn fill(&self) -> Value {
        let zero = Value::zero(self.dtype);
        let ends = match self.dtype.kind() {
            tamis_ir::Kind::Float => vec![Value::F64(f64::INFINITY), Value::F64(f64::NEG_INFINITY)],
            _ => Vec::new(),
        };
        let count = |fill: Value| self.values.iter().filter(|value| value.same_number(fill)).count();
        let ends = ends.into_iter().map(|end| end.cast(self.dtype));
        ends.fold(zero, |fill, end| if count(end) > count(fill) { end } else { fill })
    }

    /// The same elements in a tensor of at least the same sizes; the others are its fill value.
    pub fn padded(&self, shape: &[u64]) -> Input {
        let mut values = vec![self.fill(); shape.iter().product::<u64>() as usize];
        for (cell, value) in self.values.iter().enumerate() {
            let (mut rest, mut place, mut stride) = (cell as u64, 0, 1);
            for (before, after) in self.shape.iter().zip(shape).rev() {
                place += rest % before * stride;
                rest /= before;
                stride *= after;
            }
            values[place as usize] = *value;
        }
        Input { shape: shape.to_vec(), values, dtype: self.dtype }
    }

    /// The input for the interpreter.
    pub fn grid(&self) -> Grid {
        Grid::from_values(&self.shape, &self.values)
    }
}

/// A size after padding. Empty dimensions stay empty.
pub(crate) fn enlarged(size: u64, padding: u64) -> u64 {
    if size == 0 { 0 } else { size + padding }
}

/// Formats for inputs and results, by rank.
pub fn formats(rank: usize) -> &'static [&'static str] {
    match rank {
        0 => &["dense"],
        1 => &[
            "dense",
            "sparse",
            "hash",
            "bytemap",
            "sparse[u8,u8]",
            "runs",
            "sparse_runs",
            "blocks",
            "band",
            "(i) -> (i/2, i%2): sparse, dense",
        ],
        2 => &[
            "dense",
            "csr",
            "csc",
            "dcsr",
            "dcsc",
            "coo",
            "hash, hash",
            "dense, bytemap",
            "bytemap, sparse",
            "sparse, dense",
            "(i,j) -> (j,i): dense, dense",
            "(i,j) -> (j,i): sparse(nonunique), singleton",
            "dense, runs",
            "runs, sparse_runs",
            "sparse_runs, band",
            "dense, blocks",
            "blocks, runs",
            "bsr(2,2)",
            "(i,j) -> (j-i, i): sparse, band",
        ],
        _ => &[
            "dense",
            "csf",
            "coo",
            "dense, dense, sparse",
            "(i,j,k) -> (k,i,j): sparse, hash, bytemap",
            "sparse, dense, sparse",
            "runs, sparse, blocks",
            "sparse_runs, runs, dense",
            "(i,j,k) -> (i/2, j, k/3, i%2, k%3): dense, sparse, sparse, dense, dense",
        ],
    }
}

#[derive(Clone)]
struct Variable {
    name: String,
    /// The axis of each dimension.
    axes: Vec<usize>,
}

struct LoopProgramGenerator {
    random: Random,
    /// The sizes of the axes before padding: what is generated depends on these.
    sizes: Vec<u64>,
    padding: u64,
    text: String,
    /// Readable tensors: parameters, and finished results.
    readable: Vec<Variable>,
    /// Loop indices in scope, with their axes.
    indices: Vec<(String, usize)>,
    /// Names bound in scope.
    lets: Vec<String>,
    /// The program defines its own operators.
    defines: bool,
    /// Scalars with elements that were read before their tensors were written.
    peeked: Vec<String>,
    names: usize,
}

/// User-defined operators that programs may use.
const OPERATORS: &str = "\
@op
def mixed(a, b):
    return a * 2 - b

@op(commutative)
def product(a, b):
    return a * b + 1

";

/// A random program and its inputs, from a seed.
pub fn case(seed: u64) -> Case {
    padded(seed, 0)
}

/// [`case`], with every axis larger by `padding`: the same loops over the same stored elements.
pub fn padded(seed: u64, padding: u64) -> Case {
    let mut random = Random(seed);
    let sizes = (0..3).map(|_| [0, 1, 2, 3, 4, 5, 3, 4][random.below(8)]).collect();
    let mut g = LoopProgramGenerator {
        random,
        sizes,
        padding,
        text: String::new(),
        readable: Vec::new(),
        indices: Vec::new(),
        lets: Vec::new(),
        defines: false,
        peeked: Vec::new(),
        names: 0,
    };
    g.defines = g.random.one_in(3);
    if g.defines {
        g.text += OPERATORS;
    }
    let mut inputs = Vec::new();
    for name in ["A", "B", "x"].into_iter().take(1 + g.random.below(3)) {
        let rank = g.random.below(4);
        let axes: Vec<usize> = (0..rank).map(|_| g.random.below(3)).collect();
        let shape: Vec<u64> = axes.iter().map(|a| g.sizes[*a]).collect();
        let larger: Vec<u64> = axes.iter().map(|a| g.size(*a)).collect();
        inputs.push((name.to_string(), g.input(shape).padded(&larger)));
        g.readable.push(Variable { name: name.to_string(), axes });
    }
    let names: Vec<&str> = inputs.iter().map(|(name, _)| name.as_str()).collect();
    let _ = writeln!(g.text, "def program({}):", names.join(", "));
    let mut results = Vec::new();
    for _ in 0..1 + g.random.below(3) {
        let result = g.result();
        results.push(result.name.clone());
        g.readable.push(result);
    }
    if g.random.one_in(4) {
        results.push(g.recurrence());
    }
    if g.random.one_in(3) {
        results.push(g.alias());
    }
    if g.random.one_in(4) {
        results.push(g.update());
    }
    results.append(&mut g.peeked);
    let _ = writeln!(g.text, "    return {}", results.join(", "));
    Case { text: g.text, inputs }
}

impl LoopProgramGenerator {
    fn input(&mut self, shape: Vec<u64>) -> Input {
        let dtype =
            *self.random.pick(&[DType::F64, DType::F64, DType::F32, DType::I64, DType::I32, DType::U8, DType::Bool]);
        let cells: u64 = shape.iter().product();
        let density = 1 + self.random.below(4);
        // The fill value is an infinity, as in the tropical semirings.
        let infinite = dtype.kind() == tamis_ir::Kind::Float && self.random.one_in(5);
        let rest = *self.random.pick(&[f64::INFINITY, f64::NEG_INFINITY]);
        let values = (0..cells)
            .map(|_| {
                if infinite && self.random.below(4) >= density {
                    return Value::F64(rest).cast(dtype);
                }
                let number = if self.random.below(4) < density { self.random.below(19) as i64 - 9 } else { 0 };
                let number = if dtype == DType::U8 { number.abs() } else { number };
                let halves = dtype.kind() == tamis_ir::Kind::Float && self.random.one_in(2);
                Value::F64(number as f64 / if halves { 2.0 } else { 1.0 }).cast(dtype)
            })
            .collect();
        Input { shape, values, dtype }
    }

    /// The size of an axis in the program.
    fn size(&self, axis: usize) -> u64 {
        enlarged(self.sizes[axis], self.padding)
    }

    fn fresh(&mut self, prefix: &str) -> String {
        self.names += 1;
        format!("{prefix}{}", self.names)
    }

    fn line(&mut self, depth: usize, text: &str) {
        let _ = writeln!(self.text, "{:1$}{text}", "", 4 * depth);
    }

    /// Declares a result and writes it in one top-level statement.
    fn result(&mut self) -> Variable {
        if self.random.one_in(4) {
            let name = self.fresh("s");
            let kind = *self.random.pick(&["scalar", "sparse_scalar", "short_circuit_scalar"]);
            let start = *self.random.pick(&["0.0", "0", "1", "-inf", "2.5"]);
            self.line(1, &format!("{name} = {kind}({start})"));
            let target = Variable { name, axes: Vec::new() };
            self.nest(1, &target, 1 + self.random.0 as usize % 3);
            return target;
        }
        let rank = 1 + self.random.below(3);
        let axes: Vec<usize> = (0..rank).map(|_| self.random.below(3)).collect();
        let name = self.fresh("R");
        let format = *self.random.pick(formats(rank));
        let fill =
            *self.random.pick(&["", "", ", fill=inf", ", fill=1", ", dtype=\"f64\"", ", fill=-1.5, dtype=\"f32\""]);
        let shape: Vec<String> = axes.iter().map(|a| self.size(*a).to_string()).collect();
        let shape = if shape.len() == 1 { format!("({},)", shape[0]) } else { format!("({})", shape.join(", ")) };
        self.line(1, &format!("{name} = tensor(\"{format}\"{fill}, shape={shape})"));
        let target = Variable { name, axes };
        if self.random.one_in(6) {
            self.peek(&target);
        }
        let loops = rank + self.random.below(2);
        self.nest(1, &target, loops);
        target
    }

    /// A sum over a tensor that has not been written yet.
    fn peek(&mut self, variable: &Variable) {
        let name = self.fresh("p");
        self.line(1, &format!("{name} = scalar(0.0)"));
        let indices: Vec<String> = variable.axes.iter().map(|_| self.fresh("b")).collect();
        for (depth, (index, axis)) in indices.iter().zip(&variable.axes).enumerate() {
            self.line(1 + depth, &format!("for {index} in range({}):", self.size(*axis)));
        }
        let element = format!("{}[{}]", variable.name, indices.join(", "));
        self.line(1 + indices.len(), &format!("{name} += min({element}, 3) * 0.5"));
        self.peeked.push(name);
    }

    /// A loop nest that ends in assignments to `target`.
    fn nest(&mut self, depth: usize, target: &Variable, loops: usize) {
        let before = (self.indices.len(), self.lets.len());
        let mut depth = depth;
        // The axes of the target, then any others.
        let mut axes: Vec<usize> = target.axes.clone();
        while axes.len() < loops {
            axes.push(self.random.below(3));
        }
        let swap = self.random.below(axes.len().max(1));
        if axes.len() > 1 {
            axes.swap(0, swap);
        }
        for axis in axes {
            let index = self.fresh("i");
            let n = self.size(axis);
            let extent = match self.random.below(5) {
                0 if self.sizes[axis] > 1 => format!("range(1, {n})"),
                _ => format!("range({n})"),
            };
            self.line(depth, &format!("for {index} in {extent}:"));
            depth += 1;
            self.indices.push((index, axis));
            if self.random.one_in(4) {
                let name = self.fresh("d");
                let value = self.number(2);
                self.line(depth, &format!("{name} = {value}"));
                self.lets.push(name);
            }
            if self.random.one_in(4) {
                let cond = self.condition(1);
                self.line(depth, &format!("if {cond}:"));
                depth += 1;
            }
        }
        if self.random.one_in(5) && !self.indices.is_empty() {
            self.workspace(depth, target);
        } else {
            self.assign(depth, target);
        }
        if self.random.one_in(6) {
            let cond = self.condition(1);
            self.line(depth, &format!("if {cond}:"));
            self.assign(depth + 1, target);
            if self.random.one_in(2) {
                self.line(depth, "else:");
                self.assign(depth + 1, target);
            }
        }
        self.indices.truncate(before.0);
        self.lets.truncate(before.1);
    }

    /// A temporary that is written, then read into the target.
    fn workspace(&mut self, depth: usize, target: &Variable) {
        let axis = self.random.below(3);
        let name = self.fresh("w");
        let format = *self.random.pick(&["dense", "bytemap", "hash"]);
        let n = self.size(axis);
        self.line(depth, &format!("{name} = tensor(\"{format}\", shape=({n},))"));
        let w = Variable { name, axes: vec![axis] };
        for round in 0..2 {
            let index = self.fresh("k");
            self.line(depth, &format!("for {index} in _:"));
            let element = format!("{}[{index}]", w.name);
            self.indices.push((index, axis));
            if round == 0 {
                self.assign_to(depth + 1, &element, None);
            } else {
                let place = self.access(target, true);
                self.readable.push(w.clone());
                self.assign_to(depth + 1, &place, Some(&element));
                self.readable.pop();
            }
            self.indices.pop();
        }
    }

    fn assign(&mut self, depth: usize, target: &Variable) {
        let place = self.access(target, true);
        self.assign_to(depth, &place, None);
    }

    fn assign_to(&mut self, depth: usize, place: &str, also: Option<&str>) {
        let mut value = self.number(3);
        if let Some(also) = also {
            value = format!("{also} + {value}");
        }
        let text = match self.random.below(9) {
            0 => format!("{place} = {value}"),
            1 => format!("{place} = max({place}, {value})"),
            2 => format!("{place} min= {value}"),
            3 => format!("{place} -= {value}"),
            4 => format!("{place} = choose({place}, {value}, -1)"),
            5 => format!("{place} or= {value}"),
            6 => format!("{place} and= {value}"),
            _ => format!("{place} += {value}"),
        };
        self.line(depth, &text);
    }

    /// An element with subscripts in bounds, in one of several forms.
    fn access(&mut self, variable: &Variable, write: bool) -> String {
        if variable.axes.is_empty() {
            return variable.name.clone();
        }
        let subscripts: Vec<String> = variable.axes.clone().iter().map(|axis| self.subscript(*axis, write)).collect();
        format!("{}[{}]", variable.name, subscripts.join(", "))
    }

    fn subscript(&mut self, axis: usize, write: bool) -> String {
        let fitting: Vec<String> =
            self.indices.iter().filter(|(_, a)| *a == axis).map(|(name, _)| name.clone()).collect();
        let all: Vec<String> = self.indices.iter().map(|(name, _)| name.clone()).collect();
        if !fitting.is_empty() && (write || !self.random.one_in(6)) {
            let index = self.random.pick(&fitting).clone();
            let protocol = *self.random.pick(&["", "", "", "", "follow", "walk", "gallop"]);
            return if protocol.is_empty() || write { index } else { format!("{protocol}({index})") };
        }
        // A computed subscript, modulo the size; an axis of size 0 has no executed loop around it.
        let n = self.size(axis).max(1);
        match all.len() {
            0 => "0".to_string(),
            _ => {
                let (a, b) = (self.random.pick(&all).clone(), self.random.pick(&all).clone());
                match self.random.below(3) {
                    0 => format!("({a} + {b}) % {n}"),
                    1 => format!("(2*{a} + 1) % {n}"),
                    _ => format!("{a} % {n}"),
                }
            }
        }
    }

    /// A parameter that the program updates: in a nest like any other, or each element once from
    /// its old value.
    fn update(&mut self) -> String {
        let at = self.random.below(self.readable.iter().take_while(|v| !v.name.starts_with(['R', 's'])).count());
        let target = self.readable.remove(at);
        if self.random.one_in(2) {
            let more = self.random.below(2);
            self.nest(1, &target, target.axes.len() + more);
            return target.name;
        }
        let indices: Vec<String> = target.axes.iter().map(|_| self.fresh("u")).collect();
        let mut order = indices.clone();
        if self.random.one_in(3) {
            order.reverse();
        }
        for (depth, index) in order.iter().enumerate() {
            self.line(1 + depth, &format!("for {index} in _:"));
        }
        self.indices.extend(indices.iter().cloned().zip(target.axes.iter().copied()));
        let place =
            if indices.is_empty() { target.name.clone() } else { format!("{}[{}]", target.name, indices.join(", ")) };
        let own = self.random.one_in(2).then(|| place.clone());
        self.assign_to(1 + indices.len(), &place, own.as_deref());
        self.indices.truncate(self.indices.len() - indices.len());
        target.name
    }

    /// A vector with a recurrence: elements depend on earlier ones.
    fn recurrence(&mut self) -> String {
        let (name, index) = (self.fresh("R"), self.fresh("r"));
        let n = 1 + self.random.below(5);
        self.line(1, &format!("{name} = tensor(\"dense\", shape=({n},))"));
        self.line(1, &format!("for {index} in range({n}):"));
        self.indices.push((index.clone(), usize::MAX));
        let (value, back) = (self.number(1), self.random.below(4) as i64 - 1);
        if self.random.one_in(2) {
            let condition = self.condition(1);
            self.line(2, &format!("if {condition}:"));
            self.line(3, &format!("{name}[{index}] = 1.5"));
        }
        self.line(2, &format!("{name}[{index}] = {value} + 0.5 * coalesce({name}[~({index} - {back})], 2)"));
        if self.random.one_in(2) {
            self.line(2, &format!("{name}[{index}] += {name}[{index}] * 0.25"));
        }
        self.indices.pop();
        name
    }

    /// A small dense tensor that several loops subscript, each with its own index: which elements
    /// are the same is known only as the loops run, and another loop around does not subscript it.
    fn alias(&mut self) -> String {
        let name = self.fresh("X");
        let n = 2 + self.random.below(4);
        let rank = 1 + self.random.below(2);
        let loops = rank + 1 + self.random.below(2);
        let dtype = *self.random.pick(&["", "", ", dtype=\"f64\"", ", dtype=\"i64\""]);
        let shape = if rank == 1 { format!("({n},)") } else { format!("({n}, {n})") };
        self.line(1, &format!("{name} = tensor(\"dense\"{dtype}, shape={shape})"));
        let before = self.indices.len();
        let around = usize::from(!self.random.one_in(4));
        for k in 0..around + loops {
            let index = self.fresh("q");
            let from = usize::from(self.random.one_in(5));
            let extent = if k < around { "range(3)".to_string() } else { format!("range({from}, {n})") };
            self.line(1 + k, &format!("for {index} in {extent}:"));
            self.indices.push((index, usize::MAX));
        }
        let indices: Vec<String> = self.indices[before + around..].iter().map(|(name, _)| name.clone()).collect();
        let depth = 1 + around + loops;
        for _ in 0..1 + self.random.below(3) {
            let mut element = || {
                let subscripts: Vec<&str> = (0..rank).map(|_| self.random.pick(&indices).as_str()).collect();
                format!("{name}[{}]", subscripts.join(", "))
            };
            let (place, other) = (element(), element());
            let mut value = match dtype {
                ", dtype=\"i64\"" => format!("{} + 2*{}", self.random.pick(&indices), self.random.pick(&indices)),
                _ => self.number(1),
            };
            if self.random.one_in(2) {
                value = format!("{other} - {value}");
            }
            let op = *self.random.pick(&["+=", "+=", "-=", "max=", "min=", "="]);
            self.line(depth, &format!("{place} {op} {value}"));
        }
        self.indices.truncate(before);
        name
    }

    /// An axis of size 0 can only be read permissively.
    fn reads(&mut self, variable: &Variable) -> String {
        if variable.axes.iter().any(|a| self.sizes[*a] == 0) || self.random.one_in(6) && !variable.axes.is_empty() {
            let subscripts: Vec<String> = variable
                .axes
                .clone()
                .iter()
                .map(|_| match self.indices.last() {
                    Some((index, _)) => format!("~({index} - {})", self.random.0 % 3),
                    None => "~0".to_string(),
                })
                .collect();
            let default = self.literal();
            return format!("coalesce({}[{}], {default})", variable.name, subscripts.join(", "));
        }
        self.access(variable, false)
    }

    fn literal(&mut self) -> String {
        (*self.random.pick(&["0", "1", "2", "0.5", "-1", "3.0", "True"])).to_string()
    }

    fn number(&mut self, depth: usize) -> String {
        if depth == 0 || self.random.one_in(3) {
            return match self.random.below(6) {
                0 => self.literal(),
                1 if !self.lets.is_empty() => self.random.pick(&self.lets).clone(),
                2 if !self.indices.is_empty() => self.random.pick(&self.indices).0.clone(),
                _ => {
                    let variable = self.random.pick(&self.readable).clone();
                    self.reads(&variable)
                }
            };
        }
        let (a, b) = (self.number(depth - 1), self.number(depth - 1));
        match self.random.below(16) {
            14 if self.defines => format!("mixed({a}, {b})"),
            15 if self.defines => format!("product({a}, {b})"),
            0..=2 => format!("{a} * {b}"),
            3 | 4 => format!("({a} + {b})"),
            5 => format!("({a} - {b})"),
            6 => format!("min({a}, {b})"),
            7 => format!("max({a}, {b})"),
            8 => format!("select({}, {a}, {b})", self.condition(depth - 1)),
            9 => format!("abs({a})"),
            10 => format!("relu({a} - {b})"),
            11 => format!("({a} if {} else {b})", self.condition(depth - 1)),
            12 => format!("-({a})"),
            _ => format!("f32({a})"),
        }
    }

    fn condition(&mut self, depth: usize) -> String {
        if !self.indices.is_empty() && self.random.one_in(2) {
            let indices: Vec<String> = self.indices.iter().map(|(name, _)| name.clone()).collect();
            return mask(&mut self.random, &indices, depth.min(2));
        }
        if self.indices.len() >= 2 && self.random.one_in(2) {
            let (a, b) = (self.random.pick(&self.indices).0.clone(), self.random.pick(&self.indices).0.clone());
            let op = *self.random.pick(&["<", "<=", "==", "!=", ">=", ">"]);
            return format!("{a} {op} {b}");
        }
        let (a, b) = (self.number(depth.min(1)), self.number(depth.min(1)));
        match self.random.below(5) {
            0 => format!("{a} < {b} and {b} != 0"),
            1 => format!("not {a} > {b}"),
            2 => format!("{a} == {b} or {a} > 1"),
            3 => format!("0 <= {a} < {b}"),
            _ => format!("{a} >= {b}"),
        }
    }
}
