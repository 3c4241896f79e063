//! Generator of random expressions over everything in scope, of a requested kind.

use super::{Variable, WriteTarget, Writer};
use tamis_ir::{DType, Kind};

const ARITHMETIC: &[&str] = &["+", "-", "*", "+", "-", "*", "//", "%", "**"];
const BITWISE: &[&str] = &["&", "|", "^"];
const COMPARISONS: &[&str] = &["<", "<=", "==", "!=", ">=", ">"];
/// Correctly rounded or exact operators.
const REAL_FUNCTIONS: &[&str] = &["abs", "sign", "relu", "floor", "ceil", "round", "trunc", "conj", "real", "imag"];
const FLOAT_FUNCTIONS: &[&str] = &[
    "sqrt", "cbrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos",
    "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "sigmoid",
];
const COMPLEX_FUNCTIONS: &[&str] = &["conj", "sign", "sqrt", "exp", "log", "sin", "cos", "tanh"];

impl Writer {
    /// An expression whose kind is at most `most`, with its kind.
    pub(super) fn value(&mut self, depth: usize, most: Kind) -> (String, Kind) {
        if depth == 0 || self.random.one_in(4) {
            return self.leaf(most);
        }
        match self.random.below(10) {
            // A lower kind is valid, too, and so is a widening cast.
            0 if most > Kind::Bool => {
                let lower = [Kind::Bool, Kind::Int, Kind::Float][self.random.below(most as usize)];
                self.value(depth, lower)
            }
            1 => {
                let (c, (a, x), (b, y)) =
                    (self.condition(depth - 1), self.value(depth - 1, most), self.value(depth - 1, most));
                let text = match self.random.one_in(2) {
                    true => format!("select({c}, {a}, {b})"),
                    false => format!("({a} if {c} else {b})"),
                };
                (text, x.max(y))
            }
            2 => {
                let ((a, x), (b, y)) = (self.value(depth - 1, most), self.value(depth - 1, most));
                let third = self.literal(x.min(Kind::Int));
                let text = match self.random.below(3) {
                    0 => format!("choose({a}, {b})"),
                    1 => format!("choose({a}, {b}, {third})"),
                    _ => format!("coalesce({a}, {b})"),
                };
                (text, x.max(y).max(Kind::Int.min(x)))
            }
            _ => match most {
                Kind::Bool => self.truth(depth),
                Kind::Int => self.integer(depth),
                Kind::Float => self.float(depth),
                Kind::Complex => self.complex(depth),
            },
        }
    }

    fn truth(&mut self, depth: usize) -> (String, Kind) {
        let text = match self.random.below(8) {
            0 => {
                let (a, b) = (self.value(depth - 1, Kind::Bool).0, self.value(depth - 1, Kind::Bool).0);
                let op = *self.random.pick(BITWISE);
                format!("({a} {op} {b})")
            }
            1 => format!("~({})", self.value(depth - 1, Kind::Bool).0),
            2 => {
                let (a, b) = (self.value(depth - 1, Kind::Bool).0, self.value(depth - 1, Kind::Bool).0);
                let op = *self.random.pick(&["min", "max"]);
                format!("{op}({a}, {b})")
            }
            3 => {
                let kind = self.kind();
                let op = *self.random.pick(&["isnan", "isinf", "isfinite", "bool", "logical_not"]);
                format!("{op}({})", self.value(depth - 1, kind).0)
            }
            _ => format!("({})", self.condition(depth - 1)),
        };
        (text, Kind::Bool)
    }

    /// A condition without parentheses.
    pub(super) fn condition(&mut self, depth: usize) -> String {
        let depth = depth.saturating_sub(1);
        if !self.indices.is_empty() && self.random.one_in(4) {
            let indices: Vec<String> = self.indices.iter().map(|(name, ..)| name.clone()).collect();
            return crate::masks::mask(&mut self.random, &indices, depth.min(2));
        }
        if self.indices.len() >= 2 && self.random.one_in(3) {
            let (a, b) = (self.random.pick(&self.indices).0.clone(), self.random.pick(&self.indices).0.clone());
            let op = *self.random.pick(COMPARISONS);
            return format!("{a} {op} {b}");
        }
        let mut value = |most| self.value(depth, most).0;
        let (a, b, c) = (value(Kind::Float), value(Kind::Float), value(Kind::Int));
        let any = value(Kind::Complex);
        let (first, second) = (*self.random.pick(COMPARISONS), *self.random.pick(COMPARISONS));
        match self.random.below(8) {
            0 => format!("({a}) {first} ({b}) and ({any}) != 0"),
            1 => format!("not ({a}) {first} ({b})"),
            2 => format!("({a}) {first} ({b}) or not ({c})"),
            3 => format!("({a}) {first} ({c}) {second} ({b})"),
            4 => format!("0 {first} ({c}) {second} ({a}) != ({b})"),
            5 => format!("({any}) == ({a})"),
            6 => any,
            _ => format!("({a}) {first} ({b})"),
        }
    }

    /// A binary operation, occasionally without parentheses to test precedence.
    fn infix(&mut self, depth: usize, kind: Kind, ops: &[&str]) -> (String, Kind) {
        let ((a, x), (b, y)) = (self.value(depth - 1, kind), self.value(depth - 1, kind));
        let op = *self.random.pick(ops);
        let loose = ["+", "-", "*"].contains(&op) && self.random.one_in(4);
        let text = if loose { format!("{a} {op} {b}") } else { format!("({a} {op} {b})") };
        (text, if op == "/" { x.max(y).max(Kind::Float) } else { x.max(y).max(Kind::Int) })
    }

    fn call(&mut self, depth: usize, kind: Kind, functions: &[&str]) -> String {
        let operand = self.value(depth - 1, kind).0;
        let function = *self.random.pick(functions);
        format!("{function}({operand})")
    }

    fn integer(&mut self, depth: usize) -> (String, Kind) {
        let kind = Kind::Int;
        let text = match self.random.below(10) {
            0..=2 => self.infix(depth, kind, ARITHMETIC).0,
            3 => self.infix(depth, kind, BITWISE).0,
            4 => self.infix(depth, kind, &["<<", ">>"]).0,
            5 => self.call(depth, kind, REAL_FUNCTIONS),
            6 => format!("~({})", self.value(depth - 1, kind).0),
            7 => self.extremum(depth, kind),
            8 => {
                let names = ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "int32", "uint8"];
                let from = self.kind();
                self.call(depth, from, &names)
            }
            _ => self.negative(depth, kind),
        };
        (text, kind)
    }

    fn extremum(&mut self, depth: usize, kind: Kind) -> String {
        let count = 2 + self.random.below(2);
        let operands: Vec<String> = (0..count).map(|_| self.value(depth - 1, kind).0).collect();
        let op = *self.random.pick(&["min", "max", "minimum", "maximum"]);
        format!("{op}({})", operands.join(", "))
    }

    /// A negated expression, except `-nan`, which prints as `nan`.
    fn negative(&mut self, depth: usize, kind: Kind) -> String {
        match self.value(depth - 1, kind).0.as_str() {
            "nan" => "-inf".to_string(),
            other => format!("-({other})"),
        }
    }

    fn float(&mut self, depth: usize) -> (String, Kind) {
        let kind = Kind::Float;
        let text = match self.random.below(10) {
            0..=2 => self.infix(depth, kind, ARITHMETIC).0,
            3 => self.infix(depth, kind, &["/"]).0,
            4 => self.call(depth, kind, REAL_FUNCTIONS),
            5 => self.call(depth, kind, FLOAT_FUNCTIONS),
            6 => self.extremum(depth, kind),
            7 => {
                let from = self.kind();
                self.call(depth, from, &["f32", "f64", "float32"])
            }
            8 => {
                let (a, b) = (self.value(depth - 1, kind).0, self.value(depth - 1, kind).0);
                let op = *self.random.pick(&["atan2", "hypot", "pow", "sub", "mod"]);
                format!("{op}({a}, {b})")
            }
            _ => self.negative(depth, kind),
        };
        (text, kind)
    }

    fn complex(&mut self, depth: usize) -> (String, Kind) {
        let kind = Kind::Complex;
        let text = match self.random.below(8) {
            0..=2 => self.infix(depth, kind, &["+", "-", "*"]).0,
            3 => self.infix(depth, kind, &["/"]).0,
            4 => self.call(depth, kind, COMPLEX_FUNCTIONS),
            5 => self.call(depth, kind, &["c64", "c128", "abs", "real", "imag"]),
            6 => format!("({} ** {})", self.value(depth - 1, kind).0, self.literal(Kind::Int)),
            _ => self.negative(depth, kind),
        };
        (text, kind)
    }

    pub(super) fn literal(&mut self, most: Kind) -> String {
        let literals: &[&str] = match most {
            Kind::Bool => &["True", "False"],
            Kind::Int => &["0", "1", "2", "3", "1", "2", "True", "-1", "7"],
            Kind::Float => &["0", "1", "2", "0.5", "-1", "3.0", "1e-3", "inf", "nan", "-0.0", "2.5"],
            Kind::Complex => &["1", "0.5", "2.0j", "1.0-0.5j", "-1.0j", "2j"],
        };
        self.random.pick(literals).to_string()
    }

    fn leaf(&mut self, most: Kind) -> (String, Kind) {
        match self.random.below(6) {
            0 => return (self.literal(most), most),
            1 if most >= Kind::Int && !self.indices.is_empty() => {
                return (self.random.pick(&self.indices).0.clone(), Kind::Int);
            }
            2 if !self.lets.is_empty() => {
                let (name, kind) = self.random.pick(&self.lets).clone();
                return self.lowered(name, kind, most);
            }
            _ => {}
        }
        let variable = self.random.pick(&self.readable).clone();
        let text = self.read(&variable);
        self.lowered(text, variable.kind, most)
    }

    /// A value converted to a lower kind.
    fn lowered(&mut self, text: String, kind: Kind, most: Kind) -> (String, Kind) {
        if kind <= most {
            return (text, kind);
        }
        match kind {
            Kind::Complex => {
                let part = *self.random.pick(&["real", "imag", "abs"]);
                self.lowered(format!("{part}({text})"), Kind::Float, most)
            }
            Kind::Float => {
                let to = *self.random.pick(&["i64", "i32", "i8", "u8", "i64"]);
                self.lowered(format!("{to}({text})"), Kind::Int, most)
            }
            _ => (format!("({text} != 0)"), Kind::Bool),
        }
    }

    /// An element of a tensor; permissive where an axis is empty, and occasionally elsewhere.
    fn read(&mut self, variable: &Variable) -> String {
        if variable.axes.is_empty() {
            return variable.name.clone();
        }
        let permissive = variable.axes.iter().any(|a| self.sizes[*a] == 0) || self.random.one_in(6);
        let axes = variable.axes.clone();
        let subscripts: Vec<String> = axes.iter().map(|a| self.subscript(*a, permissive)).collect();
        let element = format!("{}[{}]", variable.name, subscripts.join(", "));
        if !permissive {
            return element;
        }
        let default = self.literal(variable.kind);
        format!("coalesce({element}, {default})")
    }

    fn subscript(&mut self, axis: usize, permissive: bool) -> String {
        let all: Vec<String> = self.indices.iter().map(|(name, _)| name.clone()).collect();
        if permissive {
            let shift = self.random.below(3);
            return match all.is_empty() {
                true => format!("~{shift}"),
                false => {
                    let index = self.random.pick(&all).clone();
                    let forms = [format!("~({index} - {shift})"), format!("~(2*{index})"), format!("~{index}")];
                    self.random.pick(&forms).clone()
                }
            };
        }
        let n = self.padded_size(axis).max(1);
        let fitting: Vec<String> =
            self.indices.iter().filter(|(_, a)| *a == axis).map(|(name, _)| name.clone()).collect();
        if !fitting.is_empty() && !self.random.one_in(5) {
            let index = self.random.pick(&fitting).clone();
            let protocol = *self.random.pick(&["", "", "", "", "follow", "walk", "gallop"]);
            return if protocol.is_empty() { index } else { format!("{protocol}({index})") };
        }
        if all.is_empty() {
            return (n - 1).to_string();
        }
        let (a, b) = (self.random.pick(&all).clone(), self.random.pick(&all).clone());
        match self.random.below(5) {
            0 => format!("({a} + {b}) % {n}"),
            1 => format!("(2*{a} + 1) % {n}"),
            2 => format!("({a} - {b}) % {n}"),
            // A gather: an element of another tensor is the subscript.
            3 => {
                let vectors: Vec<Variable> = self.readable.iter().filter(|v| v.axes.is_empty()).cloned().collect();
                match vectors.is_empty() {
                    true => format!("{a} % {n}"),
                    false => {
                        let name = self.random.pick(&vectors).name.clone();
                        format!("(i64({}) + {a}) % {n}", self.lowered(name, Kind::Complex, Kind::Float).0)
                    }
                }
            }
            _ => format!("i64({}) % {n}", self.leaf(Kind::Float).0),
        }
    }

    /// Assigns to or updates a target, by any operator that keeps its kind.
    pub(super) fn assign(&mut self, depth: usize, target: &WriteTarget) {
        let (mut value, _) = self.value(3, target.kind);
        if let Some(dtype) = target.dtype.filter(|t| DType::is_unsigned_int(*t)) {
            value = format!("{dtype}({value})");
        }
        let ops: &[&str] = match target.kind {
            Kind::Bool => &["", "|", "&", "^", "min", "max"],
            Kind::Int => &["", "+", "-", "*", "//", "%", "**", "<<", ">>", "&", "|", "^", "min", "max", "choose"],
            Kind::Float => &["", "+", "+", "-", "*", "/", "//", "%", "**", "min", "max", "choose", "hypot"],
            Kind::Complex => &["", "+", "+", "-", "*", "/", "choose"],
        };
        let place = &target.place;
        let text = match *self.random.pick(ops) {
            "" => format!("{place} = {value}"),
            "choose" => format!("{place} = choose({place}, {value}, 1)"),
            "hypot" => format!("{place} = hypot({place}, {value})"),
            op @ ("min" | "max") if self.random.one_in(2) => format!("{place} = {op}({value}, {place})"),
            op @ ("+" | "*") if self.random.one_in(3) => format!("{place} = {place} {op} ({value})"),
            op => format!("{place} {op}= {value}"),
        };
        self.line(depth, &text);
    }
}
