//! KernelParser of expressions in kernel text. Nothing is folded: the kernel has what is written.

use super::header::{dtype, merge_operator};
use super::{KernelParser, KernelTokenKind, MAX_DEPTH, NamedEntries, TokenCursor, wrong};
use crate::algebra::{DType, Kind, Op, TABLE, Value};
use crate::diag::{Diagnostic, Span};
use crate::kernel::build::result_type;
use crate::kernel::verify::{accepts, vector_fits};
use crate::kernel::{Expr, ExprId, VectorExpr};
use num_complex::Complex;
use std::collections::HashMap;
use std::sync::LazyLock;

static BY_NAME: LazyLock<HashMap<&'static str, Op>> = LazyLock::new(|| {
    let conversions = DType::ALL.into_iter().map(|dtype| (dtype.name(), Op::Cast(dtype)));
    TABLE.iter().map(|row| (row.name, row.op)).chain(conversions).collect()
});

static BY_SYMBOL: LazyLock<HashMap<&'static str, Op>> = LazyLock::new(|| {
    let binary = TABLE.iter().filter(|row| (row.arity.0..=row.arity.1).contains(&2));
    binary.filter_map(|row| Some((row.symbol?, row.op))).collect()
});

/// The operator of a name.
pub(super) fn operator(name: &str) -> Option<Op> {
    BY_NAME.get(name).copied()
}

impl KernelParser {
    /// An expression: an operand, or two with a symbol between them.
    pub(crate) fn expr(&mut self, c: &mut TokenCursor) -> Result<ExprId, Diagnostic> {
        let first = self.operand(c)?;
        let Some(op) = symbol(c) else { return Ok(first) };
        let span = c.span();
        c.at += 1;
        let operand = if c.eat(":") { Some(dtype(c)?) } else { None };
        let second = self.operand(c)?;
        if symbol(c).is_some() {
            let help = "put one of the operators and its operands in parentheses";
            return Err(wrong("an operator has two operands", c.span(), help));
        }
        self.call(span, op, operand, vec![first, second])
    }

    fn operand(&mut self, c: &mut TokenCursor) -> Result<ExprId, Diagnostic> {
        if c.depth >= MAX_DEPTH {
            let message = format!("the expression is nested more than {MAX_DEPTH} deep");
            return Err(wrong(message, c.span(), "name a part of it by `let`"));
        }
        c.depth += 1;
        let found = self.operand_within(c);
        c.depth -= 1;
        found
    }

    fn operand_within(&mut self, c: &mut TokenCursor) -> Result<ExprId, Diagnostic> {
        if c.eat("(") {
            let inner = self.expr(c)?;
            c.expect(")")?;
            return Ok(inner);
        }
        if let Some(value) = self.literal(c)? {
            return Ok(self.kernel.exprs.intern(Expr::Const(value), value.dtype(), 1));
        }
        if matches!(c.peek(), Some(KernelTokenKind::Word(_)))
            && matches!(c.peek_second(), Some(KernelTokenKind::Punct("(" | ":")))
        {
            return self.function(c);
        }
        let (name, span) = c.name()?;
        match self.names.get(&name).copied() {
            Some(NamedEntries::Var(var)) => {
                let info = self.kernel.var(var);
                let (dtype, lanes) = (info.dtype, info.lanes);
                Ok(self.kernel.exprs.intern(Expr::Var(var), dtype, lanes))
            }
            Some(NamedEntries::BufferInfo(buffer)) => {
                let index = self.index_in_brackets(c, span)?;
                let dtype = self.kernel.buffer(buffer).elem.dtype();
                let lanes = self.kernel.exprs.lanes(index);
                Ok(self.kernel.exprs.intern(Expr::Load(buffer, index), dtype, lanes))
            }
            None => {
                let known = self.names.keys().map(String::as_str);
                let help = match crate::diag::did_you_mean(&name, known) {
                    Some(meant) => format!("did you mean `{meant}`?"),
                    None => "declare it before this line".to_string(),
                };
                Err(wrong(format!("there is no variable or buffer `{name}`"), span, help))
            }
        }
    }

    /// `[INDEX]`
    fn index_in_brackets(&mut self, c: &mut TokenCursor, span: Span) -> Result<ExprId, Diagnostic> {
        c.expect("[")?;
        let index = self.expr(c)?;
        if self.kernel.exprs.dtype(index) != DType::I64 {
            return Err(wrong("an index is an i64", span, "convert it: `i64(...)`"));
        }
        c.expect("]")?;
        Ok(index)
    }

    /// `ramp`, `splat`, `masked` or `reduce`, with its operands in parentheses.
    fn vector(&mut self, c: &mut TokenCursor, name: &str) -> Result<ExprId, Diagnostic> {
        let span = c.span();
        c.at += 1;
        c.expect("(")?;
        let (vector, dtype, lanes) = match name {
            "ramp" => {
                let start = self.expr(c)?;
                c.expect(",")?;
                let step = match self.literal(c)? {
                    Some(Value::I64(step)) => step,
                    _ => return Err(c.expected("an integer")),
                };
                c.expect(",")?;
                let lanes = c.number()?;
                (VectorExpr::Ramp { start, step, lanes }, DType::I64, lanes)
            }
            "splat" => {
                let value = self.expr(c)?;
                c.expect(",")?;
                let lanes = c.number()?;
                (VectorExpr::Splat { value, lanes }, self.kernel.exprs.dtype(value), lanes)
            }
            "masked" => {
                let span = c.span();
                let buffer = self.buffer(c)?;
                let index = self.index_in_brackets(c, span)?;
                c.expect(",")?;
                let mask = self.expr(c)?;
                c.expect(",")?;
                let otherwise = self.expr(c)?;
                let (dtype, lanes) = (self.kernel.buffer(buffer).elem.dtype(), self.kernel.exprs.lanes(index));
                (VectorExpr::Masked { buffer, index, mask, otherwise }, dtype, lanes)
            }
            _ => {
                let op = merge_operator(c)?;
                c.expect(",")?;
                let value = self.expr(c)?;
                (VectorExpr::Reduce { op, value }, self.kernel.exprs.dtype(value), 1)
            }
        };
        c.expect(")")?;
        if !vector_fits(&self.kernel, vector) {
            let help = "vectors have a power of two of lanes, at most 64; all operands have as many, or are single";
            return Err(wrong(format!("the operands of `{name}` do not fit"), span, help));
        }
        Ok(self.kernel.exprs.intern(Expr::Vector(vector), dtype, lanes))
    }

    /// An operator by its name, with operands in parentheses.
    fn function(&mut self, c: &mut TokenCursor) -> Result<ExprId, Diagnostic> {
        let span = c.span();
        let Some(KernelTokenKind::Word(name)) = c.peek().cloned() else {
            return Err(c.expected("the name of an operator"));
        };
        if matches!(&*name, "ramp" | "splat" | "masked" | "reduce") {
            return self.vector(c, &name);
        }
        let Some(op) = operator(&name) else {
            let names = BY_NAME.keys().copied();
            let help = match crate::diag::did_you_mean(&name, names) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => "`tamis operators` lists the operators".to_string(),
            };
            return Err(wrong(format!("there is no operator `{name}`"), span, help));
        };
        c.at += 1;
        let operand = if c.eat(":") { Some(dtype(c)?) } else { None };
        c.expect("(")?;
        let mut operands = Vec::new();
        while !c.is_punct(")") {
            operands.push(self.expr(c)?);
            if !c.eat(",") {
                break;
            }
        }
        c.expect(")")?;
        self.call(span, op, operand, operands)
    }

    /// An operator on operands, which are converted to one type.
    fn call(
        &mut self,
        span: Span,
        op: Op,
        operand: Option<DType>,
        operands: Vec<ExprId>,
    ) -> Result<ExprId, Diagnostic> {
        let name = op.info().name;
        let (least, most) = op.info().arity;
        if !(least..=most).contains(&operands.len()) {
            let help = format!("`{name}` takes {least} to {most} operands");
            return Err(wrong(format!("`{name}` does not take {} operands", operands.len()), span, help));
        }
        let types = || converted(op, &operands).iter().map(|e| self.kernel.exprs.dtype(*e));
        let common = types().next().unwrap_or(DType::I64);
        let operand = match operand {
            Some(operand) => operand,
            None => match types().find(|dtype| *dtype != common) {
                None => common,
                Some(other) => {
                    let help = format!("name the type that they are converted to, as in `{name}:{other}`");
                    return Err(wrong(format!("the operands of `{name}` are {common} and {other}"), span, help));
                }
            },
        };
        if !accepts(op, operand, operands.len()) {
            let message = format!("`{name}` is not defined on {operand}");
            return Err(wrong(message, span, "convert the operands to another type"));
        }
        let lanes = self.kernel.exprs.most_lanes(&operands);
        if operands.iter().any(|operand| ![1, lanes].contains(&self.kernel.exprs.lanes(*operand))) {
            let message = format!("the operands of `{name}` have different numbers of lanes");
            return Err(wrong(message, span, "give all vectors the same number of lanes"));
        }
        let result = result_type(op, operand, operands.len());
        Ok(self.kernel.exprs.intern(Expr::Call(op, operand, operands), result, lanes))
    }

    /// A constant, if one comes next.
    pub(super) fn literal(&mut self, c: &mut TokenCursor) -> Result<Option<Value>, Diagnostic> {
        let (start, span) = (c.at, c.span());
        for complex in [DType::C64, DType::C128] {
            if c.is_word(complex.name()) && matches!(c.peek_second(), Some(KernelTokenKind::Punct("("))) {
                c.at += 2;
                let value = complex_literal(c, complex);
                if value.is_none() {
                    // A conversion.
                    c.at = start;
                }
                return Ok(value);
            }
        }
        if c.is_word("True") || c.is_word("False") {
            let value = c.is_word("True");
            c.at += 1;
            return Ok(Some(Value::Bool(value)));
        }
        let Some(number) = NumericLiteral::next(c) else {
            c.at = start;
            return Ok(None);
        };
        let dtype = if c.eat(":") {
            dtype(c)?
        } else if number.is_float() {
            DType::F64
        } else {
            DType::I64
        };
        match number.value(dtype) {
            Some(value) => Ok(Some(value)),
            None => Err(wrong(format!("the number is no {dtype}"), span.to(c.span()), "write a number of its type")),
        }
    }
}

/// The operands of an operator that are converted to one type: all but the condition of a select.
pub(super) fn converted(op: Op, operands: &[ExprId]) -> &[ExprId] {
    match op {
        Op::Select => operands.get(1..).unwrap_or_default(),
        _ => operands,
    }
}

/// The operator between two operands that comes next.
fn symbol(c: &TokenCursor) -> Option<Op> {
    match c.peek()? {
        KernelTokenKind::Punct(symbol) => BY_SYMBOL.get(symbol).copied(),
        KernelTokenKind::Word(word) => BY_SYMBOL.get(word.as_str()).copied(),
        KernelTokenKind::Quoted(_) | KernelTokenKind::Number(_) | KernelTokenKind::Str(_) => None,
    }
}

/// The parts of a complex constant behind its opening bracket; none if it is a conversion.
fn complex_literal(c: &mut TokenCursor, dtype: DType) -> Option<Value> {
    let part = dtype.real();
    let re = NumericLiteral::next(c)?.value(part)?;
    if !c.eat(",") {
        return None;
    }
    let im = NumericLiteral::next(c)?.value(part)?;
    if !c.eat(")") {
        return None;
    }
    match (re, im) {
        (Value::F32(re), Value::F32(im)) => Some(Value::C64(Complex::new(re, im))),
        (Value::F64(re), Value::F64(im)) => Some(Value::C128(Complex::new(re, im))),
        _ => None,
    }
}

/// A number of any type, as written.
enum NumericLiteral {
    /// With its sign.
    Digits(String),
    /// The sign.
    Infinite(bool),
    /// The bits, if they are not those of the usual NaN.
    Nan(Option<u64>),
}

impl NumericLiteral {
    fn next(c: &mut TokenCursor) -> Option<NumericLiteral> {
        let negative = c.eat("-");
        if c.eat_word("inf") {
            return Some(NumericLiteral::Infinite(negative));
        }
        if !negative && c.eat_word("nan") {
            let bits = match (c.peek(), c.peek_second()) {
                (Some(KernelTokenKind::Punct("(")), Some(KernelTokenKind::Number(bits))) => {
                    u64::from_str_radix(bits.strip_prefix("0x")?, 16)
                }
                _ => return Some(NumericLiteral::Nan(None)),
            };
            c.at += 2;
            return c.eat(")").then_some(NumericLiteral::Nan(Some(bits.ok()?)));
        }
        let Some(KernelTokenKind::Number(text)) = c.peek() else { return None };
        let digits = if negative { format!("-{text}") } else { text.clone() };
        c.at += 1;
        Some(NumericLiteral::Digits(digits))
    }

    fn is_float(&self) -> bool {
        match self {
            NumericLiteral::Digits(text) => text.contains(['.', 'e']),
            NumericLiteral::Infinite(_) | NumericLiteral::Nan(_) => true,
        }
    }

    fn value(&self, dtype: DType) -> Option<Value> {
        match (self, dtype) {
            (NumericLiteral::Digits(text), DType::F32) => text.parse().ok().map(Value::F32),
            (NumericLiteral::Digits(text), DType::F64) => text.parse().ok().map(Value::F64),
            (NumericLiteral::Digits(text), _) if dtype.kind() == Kind::Int => {
                let wide: i128 = text.parse().ok()?;
                match u64::try_from(wide) {
                    Ok(x) => Value::U64(x).cast_exact(dtype),
                    Err(_) => Value::I64(i64::try_from(wide).ok()?).cast_exact(dtype),
                }
            }
            (NumericLiteral::Infinite(negative), DType::F32 | DType::F64) => {
                let infinity = if *negative { f64::NEG_INFINITY } else { f64::INFINITY };
                Some(Value::F64(infinity).cast(dtype))
            }
            (NumericLiteral::Nan(None), DType::F32) => Some(Value::F32(f32::NAN)),
            (NumericLiteral::Nan(None), DType::F64) => Some(Value::F64(f64::NAN)),
            (NumericLiteral::Nan(Some(bits)), DType::F32) => {
                let value = f32::from_bits(u32::try_from(*bits).ok()?);
                value.is_nan().then_some(Value::F32(value))
            }
            (NumericLiteral::Nan(Some(bits)), DType::F64) => {
                let value = f64::from_bits(*bits);
                value.is_nan().then_some(Value::F64(value))
            }
            _ => None,
        }
    }
}

/// A float as text that reads back to the same bits.
fn float_text(value: Value) -> String {
    match value {
        Value::F32(x) if x.is_nan() && x.to_bits() != f32::NAN.to_bits() => format!("nan(0x{:x})", x.to_bits()),
        Value::F64(x) if x.is_nan() && x.to_bits() != f64::NAN.to_bits() => format!("nan(0x{:x})", x.to_bits()),
        other => other.to_string(),
    }
}

/// A constant as text, with its type unless that is `i64`, `f64` or `bool`.
pub(super) fn constant_text(value: Value) -> String {
    match value {
        Value::Bool(_) | Value::I64(_) => value.to_string(),
        Value::F64(_) => float_text(value),
        Value::C64(c) => format!("c64({}, {})", float_text(Value::F32(c.re)), float_text(Value::F32(c.im))),
        Value::C128(c) => format!("c128({}, {})", float_text(Value::F64(c.re)), float_text(Value::F64(c.im))),
        other => format!("{}:{}", float_text(other), other.dtype()),
    }
}
