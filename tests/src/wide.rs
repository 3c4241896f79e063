//! Generator of random loop programs over the whole language: every operator and value type, every
//! rule for extents, all kinds of fill values, scalars, nested temporaries, several results. Most
//! are well-formed: see [`ACCEPTABLE`].
//!
//! The generator tracks upper bounds of the kinds of values (`Kind::Float` includes integers), so
//! that operands suit their operators. Only types that meet by promotion (`i64` and `u64` in `f64`)
//! are unexpected.

mod expressions;

use crate::generate::{Case, Input, enlarged, formats};
use crate::random::Random;
use num_complex::Complex;
use std::fmt::Write;
use tamis_ir::{Code, DType, Kind, Value};

/// Valid diagnostics of generated programs: types that promotion makes incompatible (E0301, E0302,
/// E0305), literals that meet a narrow type (E0306), windows larger than their tensor (E0405),
/// scatters out of bounds (E1001, E1002).
pub const ACCEPTABLE: &[Code] = &[
    Code::E0301,
    Code::E0302,
    Code::E0305,
    Code::E0306,
    Code::E0307,
    Code::E0405,
    Code::E1001,
    Code::E1002,
    Code::E1003,
];

/// The number of axes.
const AXES: usize = 3;

#[derive(Clone)]
struct Variable {
    name: String,
    /// The axis of each dimension.
    axes: Vec<usize>,
    /// The maximum kind of its values.
    kind: Kind,
}

/// The target of a loop nest.
#[derive(Clone)]
struct WriteTarget {
    /// The element as text.
    place: String,
    kind: Kind,
    /// The type, if it is declared.
    dtype: Option<DType>,
}

struct Writer {
    random: Random,
    /// The sizes of the axes before padding: what is generated depends on these.
    sizes: Vec<u64>,
    padding: u64,
    text: String,
    /// Readable tensors: parameters, and finished results.
    readable: Vec<Variable>,
    /// The number of parameters among them.
    params: usize,
    /// Loop indices in scope, with their axes.
    indices: Vec<(String, usize)>,
    /// Names bound in scope, and readable scalars.
    lets: Vec<(String, Kind)>,
    names: usize,
}

/// A random program and its inputs, from a seed.
///
/// ```
/// let case = tamis_tests::wide::case(1);
/// assert!(tamis_ir::Program::parse(&case.text).is_ok());
/// ```
pub fn case(seed: u64) -> Case {
    padded(seed, 0)
}

/// [`case`], with every axis larger by `padding`: the same loops over the same stored elements.
pub fn padded(seed: u64, padding: u64) -> Case {
    let mut random = Random(seed ^ 0x7461_6d69_7300_0000);
    let sizes = (0..AXES).map(|_| *random.pick(&[0, 1, 2, 3, 4, 5, 3, 4, 2, 3])).collect();
    let mut w = Writer {
        random,
        sizes,
        padding,
        text: String::new(),
        readable: Vec::new(),
        params: 0,
        indices: Vec::new(),
        lets: Vec::new(),
        names: 0,
    };
    let mut inputs = Vec::new();
    let hostile = w.random.one_in(4);
    for name in ["A", "B", "x", "y"].into_iter().take(1 + w.random.below(4)) {
        let rank = *w.random.pick(&[0, 1, 1, 2, 2, 3]);
        let axes: Vec<usize> = (0..rank).map(|_| w.random.below(AXES)).collect();
        let shape = axes.iter().map(|a| w.sizes[*a]).collect();
        let larger: Vec<u64> = axes.iter().map(|a| w.padded_size(*a)).collect();
        let input = w.input(shape, hostile).padded(&larger);
        w.readable.push(Variable { name: name.to_string(), axes, kind: input.dtype.kind() });
        inputs.push((name.to_string(), input));
    }
    w.params = inputs.len();
    let names: Vec<&str> = inputs.iter().map(|(name, _)| name.as_str()).collect();
    let _ = writeln!(w.text, "def program({}):", names.join(", "));
    let mut results = Vec::new();
    for _ in 0..1 + w.random.below(3) {
        if w.random.one_in(6) {
            results.extend(w.stencil());
        } else {
            results.extend(w.group());
        }
    }
    if results.is_empty() {
        results.extend(w.group());
    }
    let _ = writeln!(w.text, "    return {}", results.join(", "));
    Case { text: w.text, inputs }
}

impl Writer {
    fn input(&mut self, shape: Vec<u64>, hostile: bool) -> Input {
        let dtype = *self.random.pick(&DType::ALL);
        let density = 1 + self.random.below(4);
        let cells: u64 = shape.iter().product();
        let values = (0..cells)
            .map(|_| {
                if self.random.below(4) >= density {
                    return Value::zero(dtype);
                }
                if hostile && self.random.one_in(5) {
                    return edge(&mut self.random, dtype);
                }
                let mut half = || (self.random.below(37) as f64 - 18.0) / 2.0;
                match dtype.kind() {
                    Kind::Complex => Value::C128(Complex::new(half(), half())).cast(dtype),
                    Kind::Float => Value::F64(half()).cast(dtype),
                    _ if dtype.is_unsigned_int() => Value::F64(half().abs()).cast(dtype),
                    _ => Value::F64(half().trunc()).cast(dtype),
                }
            })
            .collect();
        Input { shape, values, dtype }
    }

    /// The size of an axis in the program.
    fn padded_size(&self, axis: usize) -> u64 {
        enlarged(self.sizes[axis], self.padding)
    }

    fn fresh(&mut self, prefix: &str) -> String {
        self.names += 1;
        format!("{prefix}{}", self.names)
    }

    fn line(&mut self, depth: usize, text: &str) {
        let _ = writeln!(self.text, "{:1$}{text}", "", 4 * depth);
    }

    fn kind(&mut self) -> Kind {
        *self.random.pick(&[Kind::Bool, Kind::Int, Kind::Int, Kind::Float, Kind::Float, Kind::Float, Kind::Complex])
    }

    /// Declares a tensor (or, without axes, a scalar).
    fn declare(&mut self, depth: usize, prefix: &str, axes: Vec<usize>, with_shape: bool) -> (Variable, Option<DType>) {
        let kind = self.kind();
        let name = self.fresh(prefix);
        let fitting: Vec<DType> = DType::ALL.into_iter().filter(|t| t.kind() == kind).collect();
        let dtype = self.random.one_in(2).then(|| *self.random.pick(&fitting));
        let fill = self.fill(kind, dtype);
        let dtype_text = dtype.map(|t| format!(", dtype=\"{t}\"")).unwrap_or_default();
        let variable = Variable { name, axes, kind };
        let name = &variable.name;
        if variable.axes.is_empty() && !self.random.one_in(5) {
            let scalar = *self.random.pick(&["scalar", "sparse_scalar", "short_circuit_scalar"]);
            self.line(depth, &format!("{name} = {scalar}({fill}{dtype_text})"));
            return (variable, dtype);
        }
        let shape: Vec<String> = variable.axes.iter().map(|a| self.size(*a)).collect();
        let shape = match &shape[..] {
            _ if !with_shape => String::new(),
            [one] => format!(", shape=({one},)"),
            all => format!(", shape=({})", all.join(", ")),
        };
        let format = *self.random.pick(formats(variable.axes.len()));
        let leaf = !format.contains("->") && self.random.one_in(5);
        if kind == Kind::Bool && fill == "False" && !variable.axes.is_empty() && self.random.one_in(2) {
            // Levels that store `false`, too, are written like others.
            let levels = match variable.axes.len() {
                1 => ["bytemap", "dense", "runs", "band", "interval"],
                2 => ["dense, sparse", "dense, dense", "dense, band", "dense, singleton", "runs, blocks"],
                _ => [
                    "sparse, dense, hash",
                    "dense, dense, dense",
                    "sparse, band, dense",
                    "dense, sparse, runs",
                    "(i,j,k) -> (i/2, j, k, i%2): sparse, dense, dense, dense",
                ],
            };
            let levels = *self.random.pick(&levels);
            self.line(depth, &format!("{name} = tensor(\"{levels}; pattern\"{shape})"));
            return (variable, Some(DType::Bool));
        }
        let text = match leaf {
            true => format!("{name} = tensor(\"{format}; element({fill})\"{dtype_text}{shape})"),
            false if self.random.one_in(3) => format!("{name} = tensor(\"{format}\"{dtype_text}{shape})"),
            false => format!("{name} = tensor(\"{format}\", fill={fill}{dtype_text}{shape})"),
        };
        self.line(depth, &text);
        (variable, dtype)
    }

    fn fill(&mut self, kind: Kind, dtype: Option<DType>) -> &'static str {
        let fills: &[&'static str] = match kind {
            Kind::Bool => &["False", "False", "True"],
            Kind::Int if dtype.is_some_and(DType::is_unsigned_int) => &["0", "1", "200"],
            Kind::Int => &["0", "0", "1", "-1", "100"],
            Kind::Float => &["0", "0.0", "inf", "-inf", "nan", "1", "-1.5"],
            Kind::Complex => &["0", "0.0", "2.0j", "1.0-2.5j", "1"],
        };
        self.random.pick::<&str>(fills)
    }

    /// The size of an axis, in one of several forms.
    fn size(&mut self, axis: usize) -> String {
        let known: Vec<String> = self.readable[..self.params]
            .iter()
            .flat_map(|v| v.axes.iter().enumerate().map(move |(dim, a)| (v, dim, *a)))
            .filter(|(_, _, a)| *a == axis)
            .map(|(v, dim, _)| format!("{}.shape[{dim}]", v.name))
            .collect();
        // Only a subscripted parameter has a shape, so this is mostly a number.
        if known.is_empty() || !self.random.one_in(8) || !self.text.contains(&known[0].replace(".shape[", "[")) {
            return self.padded_size(axis).to_string();
        }
        known[0].clone()
    }

    /// One or two results, written by one loop nest.
    fn group(&mut self) -> Vec<String> {
        let rank = *self.random.pick(&[0, 1, 1, 2, 2, 3]);
        let axes: Vec<usize> = (0..rank).map(|_| self.random.below(AXES)).collect();
        let two = self.random.one_in(3);
        let (first, first_type) = self.declare(1, "R", axes.clone(), true);
        let second = two.then(|| {
            let kept = axes.iter().copied().filter(|_| self.random.one_in(2)).collect();
            self.declare(1, "S", kept, true)
        });
        let before = (self.indices.len(), self.lets.len());
        let mut loops: Vec<(usize, bool)> = axes.iter().map(|a| (*a, true)).collect();
        for _ in 0..self.random.below(3 - rank.min(2)) + usize::from(rank == 0) {
            let at = self.random.below(loops.len() + 1);
            loops.insert(at, (self.random.below(AXES), false));
        }
        let mut depth = 1;
        let mut places = Vec::new();
        for (axis, of_target) in loops {
            let index = self.fresh("p");
            let extent = self.extent(axis, of_target);
            self.line(depth, &format!("for {index} in {extent}:"));
            if of_target {
                places.push((index.clone(), axis, extent != "_"));
            }
            self.indices.push((index, axis));
            depth += 1;
            depth = self.prelude(depth);
        }
        let mut targets = vec![self.target(&first, first_type, &places)];
        if let Some((second, dtype)) = &second {
            targets.push(self.target(second, *dtype, &places));
        }
        for target in &targets {
            self.write(depth, target, 2);
        }
        self.indices.truncate(before.0);
        self.lets.truncate(before.1);
        let written = std::iter::once(first).chain(second.map(|(s, _)| s));
        let names = written.map(|v| {
            self.readable.push(v.clone());
            v.name
        });
        names.collect()
    }

    /// The bound of a loop over an axis. `_` only where a bare subscript of a declared tensor
    /// determines it.
    fn extent(&mut self, axis: usize, of_target: bool) -> String {
        let (n, small) = (self.padded_size(axis), self.sizes[axis]);
        let outer = self.indices.last().map(|(name, _)| name.clone());
        match (self.random.below(9), outer) {
            (0 | 1, _) if of_target => "_".to_string(),
            (2, _) if small > 1 => format!("range(1, {n})"),
            (3, Some(outer)) => format!("range(min({outer}, {n}), {n})"),
            (4, Some(outer)) => format!("range(min({outer} + 1, {n}))"),
            (5, _) if small > 1 => format!("range({n} // 2)"),
            (6, _) => {
                let (start, _) = self.value(1, Kind::Int);
                format!("range(i64({start}) % {}, {n})", n + 1)
            }
            _ => format!("range({})", self.size(axis)),
        }
    }

    /// Optional statements before the main statement of a nest: bound names, scalars, conditions.
    fn prelude(&mut self, mut depth: usize) -> usize {
        if self.random.one_in(4) {
            let name = self.fresh("d");
            let kind = self.kind();
            let (value, kind) = self.value(2, kind);
            self.line(depth, &format!("{name} = {value}"));
            self.lets.push((name, kind));
        }
        if self.random.one_in(6) {
            self.running_scalar(depth);
        }
        if self.random.one_in(5) {
            let condition = self.condition(2);
            self.line(depth, &format!("if {condition}:"));
            depth += 1;
        }
        depth
    }

    /// A plain scalar that a loop reads and writes.
    fn running_scalar(&mut self, depth: usize) {
        let name = self.fresh("t");
        let (start, dtype) =
            *self.random.pick(&[("0.5", "f64"), ("0", "f32"), ("1", "i32"), ("0", "i64"), ("2", "c128")]);
        let kind = dtype.parse().map_or(Kind::Float, DType::kind);
        self.line(depth, &format!("{name} = scalar({start}, dtype=\"{dtype}\")"));
        let axis = self.random.below(AXES);
        let index = self.fresh("k");
        self.line(depth, &format!("for {index} in range({}):", self.padded_size(axis)));
        self.indices.push((index, axis));
        self.lets.push((name.clone(), kind));
        let (value, _) = self.value(2, kind);
        self.line(depth + 1, &format!("{name} = {name} * 2 - ({value})"));
        if self.random.one_in(2) {
            let condition = self.condition(1);
            self.line(depth + 1, &format!("if {condition}:"));
            self.line(depth + 2, &format!("{name} += 1"));
        }
        self.indices.pop();
    }

    /// The target of a nest: subscripts are loop indices, or computed.
    fn target(&mut self, variable: &Variable, dtype: Option<DType>, places: &[(String, usize, bool)]) -> WriteTarget {
        let mut free: Vec<&(String, usize, bool)> = places.iter().collect();
        let mut subscripts = Vec::new();
        for axis in &variable.axes {
            // The first target has all axes, so every loop of inferred extent is a bare subscript
            // of it.
            let Some(at) = free.iter().position(|(_, a, _)| a == axis) else { continue };
            let (index, _, bounded) = free.remove(at);
            subscripts.push(match self.random.below(12) {
                0 if *bounded && self.sizes[*axis] > 0 => {
                    let (value, _) = self.value(1, Kind::Int);
                    format!("i64({value}) % {}", self.padded_size(*axis))
                }
                1 if *bounded => format!("~({index} - 1)"),
                2 if *bounded => format!("{} - 1 - {index}", self.padded_size(*axis)),
                _ => index.clone(),
            });
        }
        let place = match subscripts.len() {
            0 => variable.name.clone(),
            _ => format!("{}[{}]", variable.name, subscripts.join(", ")),
        };
        WriteTarget { place, kind: variable.kind, dtype }
    }

    /// One or several assignments to a target.
    fn write(&mut self, depth: usize, target: &WriteTarget, nesting: usize) {
        match self.random.below(if nesting == 0 { 5 } else { 9 }) {
            0 => {
                let count = 1 + self.random.below(3);
                for branch in 0..count {
                    let condition = self.condition(2);
                    self.line(depth, &format!("{} {condition}:", if branch == 0 { "if" } else { "elif" }));
                    self.write(depth + 1, target, nesting.saturating_sub(1));
                }
                if self.random.one_in(2) {
                    self.line(depth, "else:");
                    self.write(depth + 1, target, 0);
                }
            }
            5 => self.temporary(depth, target, nesting - 1),
            _ => self.assign(depth, target),
        }
    }

    /// A tensor that lives for one iteration: written, then read.
    fn temporary(&mut self, depth: usize, target: &WriteTarget, nesting: usize) {
        let axes: Vec<usize> = (0..1 + self.random.below(2)).map(|_| self.random.below(AXES)).collect();
        let (inner, dtype) = self.declare(depth, "w", axes.clone(), true);
        for reading in [false, true] {
            let before = (self.indices.len(), self.lets.len());
            let names: Vec<String> = axes.iter().map(|_| self.fresh("k")).collect();
            let together = self.random.one_in(2);
            if together {
                self.line(depth, &format!("for {} in _:", names.join(", ")));
            }
            let mut below = depth + 1;
            for (k, (name, axis)) in names.iter().zip(&axes).enumerate() {
                if !together {
                    self.line(depth + k, &format!("for {name} in range({}):", self.padded_size(*axis)));
                    below = depth + k + 1;
                }
                self.indices.push((name.clone(), *axis));
            }
            let place = format!("{}[{}]", inner.name, names.join(", "));
            if reading {
                self.lets.push((place, inner.kind));
                self.readable.push(inner.clone());
                // Subscripted once by bare indices, so that the extents are known.
                self.line(below, &format!("v{} = {}[{}]", self.names, inner.name, names.join(", ")));
                self.write(below, target, 0);
                self.readable.pop();
            } else {
                self.write(below, &WriteTarget { place, kind: inner.kind, dtype }, nesting);
                if together {
                    let kept = match inner.kind {
                        Kind::Bool => "|",
                        Kind::Complex => "+",
                        _ => "max",
                    };
                    let names = names.join(", ");
                    let zero = if inner.kind == Kind::Bool { "False" } else { "0" };
                    self.line(below, &format!("{}[{names}] {kept}= {zero}", inner.name));
                }
            }
            self.indices.truncate(before.0);
            self.lets.truncate(before.1);
        }
    }

    /// A tensor whose size follows from affine subscripts: the `valid` and `same` extents of a
    /// convolution.
    fn stencil(&mut self) -> Option<String> {
        let vectors: Vec<Variable> =
            self.readable[..self.params].iter().filter(|v| v.axes.len() == 1 && v.kind > Kind::Bool).cloned().collect();
        if vectors.is_empty() {
            return None;
        }
        let (a, b) = (self.random.pick(&vectors).clone(), self.random.pick(&vectors).clone());
        let name = self.fresh("P");
        self.line(1, &format!("{name} = tensor(\"dense\")"));
        let (i, k) = (self.fresh("p"), self.fresh("k"));
        let window = *self.random.pick(&["_", "range(2)", "range(3)", "range(1, 3)", "range(1)"]);
        self.line(1, &format!("for {i} in _:"));
        self.line(2, &format!("for {k} in {window}:"));
        let shift = self.random.below(3);
        let forms = [
            format!("{i} + {k}"),
            format!("2*{i} + {k}"),
            format!("{i} - {k} + {shift}"),
            format!("{i} + {k} - {shift}"),
            format!("{shift} + 3*{i} - {k}"),
            format!("{} - {i}", 2 + shift),
            format!("{i} + 2*{k}"),
        ];
        let subscript = self.random.pick(&forms).clone();
        let read = match self.random.one_in(2) {
            true => format!("{}[{subscript}]", a.name),
            false => format!("coalesce({}[~({subscript})], {})", a.name, self.literal(Kind::Int)),
        };
        let factor = if window == "_" { format!("{}[{k}]", b.name) } else { k };
        self.line(3, &format!("{name}[{i}] += {read} * {factor}"));
        Some(name)
    }
}

/// A boundary value of a type.
fn edge(random: &mut Random, dtype: DType) -> Value {
    let real = dtype.real();
    let numbers = [f64::INFINITY, f64::NEG_INFINITY, f64::NAN, -0.0, f64::MAX, f64::MIN, f64::MIN_POSITIVE, 1e-310];
    let mut pick = || Value::F64(*random.pick(&numbers)).cast(real);
    match (dtype.kind(), pick(), pick()) {
        (Kind::Complex, re, im) => Value::C128(Complex::new(re.as_c128().re, im.as_c128().re)).cast(dtype),
        (_, number, _) => number,
    }
}
