//! C expressions: printing with precedence, and with only the conversions that C needs.

use super::{Printer, helpers, value_type};
use tamis_ir::algebra::{Form, Op};
use tamis_ir::kernel::{BufferId, Elem, Expr, ExprId};
use tamis_ir::{DType, Value};

/// Operator precedence; an operand of lower precedence needs parentheses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Prec {
    Lowest,
    Choice,
    Or,
    And,
    Compare,
    Sum,
    Product,
    Unary,
    Primary,
}

impl Printer<'_> {
    /// Prints an expression of exactly its type, in parentheses if its precedence is below `least`.
    pub(super) fn expr(&mut self, id: ExprId, least: Prec) -> String {
        self.written += 1;
        if self.written > super::MAX_EXPRESSIONS {
            // The text is discarded from here on.
            return String::new();
        }
        let (text, prec) = match self.kernel.expr(id) {
            Expr::Const(value) => return self.constant(*value, least),
            Expr::Var(var) => (self.vars[var.index()].clone(), Prec::Primary),
            Expr::Load(buffer, index) => {
                let element = self.element(*buffer, *index);
                match self.kernel.buffer(*buffer).elem {
                    Elem::Value(DType::Bool) => (format!("{element} != 0"), Prec::Compare),
                    Elem::Value(_) => (element, Prec::Primary),
                    Elem::Index(_) => (format!("(int64_t){element}"), Prec::Unary),
                }
            }
            Expr::Call(op, operand, operands) => self.call(id, *op, *operand, operands),
            // Legalisation leaves no vectors.
            Expr::Vector(_) => ("0".into(), Prec::Primary),
        };
        wrap(text, prec, least)
    }

    /// Prints an expression where C converts implicitly: coordinates need no cast.
    pub(super) fn implicit(&mut self, id: ExprId) -> String {
        match self.kernel.expr(id) {
            Expr::Load(buffer, index) => match self.kernel.buffer(*buffer).elem {
                Elem::Value(DType::Bool) => self.expr(id, Prec::Lowest),
                _ => self.element(*buffer, *index),
            },
            _ => self.expr(id, Prec::Lowest),
        }
    }

    /// Prints an expression next to an `int64_t` in a comparison or a sum.
    pub(super) fn expr_in_comparison(&mut self, id: ExprId) -> String {
        self.beside(id, Prec::Sum)
    }

    /// Prints an operand next to an `int64_t`, to which C converts narrower coordinates.
    fn beside(&mut self, id: ExprId, least: Prec) -> String {
        match self.kernel.expr(id) {
            Expr::Load(buffer, index) => match self.kernel.buffer(*buffer).elem {
                Elem::Index(width) if width.size() < 8 => self.element(*buffer, *index),
                _ => self.expr(id, least),
            },
            _ => self.expr(id, least),
        }
    }

    /// Prints an element as an lvalue.
    pub(super) fn element(&mut self, buffer: BufferId, index: ExprId) -> String {
        let index = self.implicit(index);
        format!("{}[{index}]", self.buffers[buffer.index()].data)
    }

    /// Prints an operand converted to a type.
    pub(super) fn converted(&mut self, id: ExprId, dtype: DType, least: Prec) -> String {
        let from = self.kernel.exprs.dtype(id);
        if from == dtype {
            return self.expr(id, least);
        }
        let (text, prec) = self.cast(id, dtype);
        wrap(text, prec, least)
    }

    /// Prints two `i64` operands of an operator: at most one of them needs a cast.
    pub(super) fn index_pair(&mut self, a: ExprId, b: ExprId, least: (Prec, Prec)) -> (String, String) {
        let wide = |p: &Self, e: ExprId| match p.kernel.expr(e) {
            Expr::Var(_) | Expr::Call(..) => p.kernel.exprs.dtype(e) == DType::I64,
            _ => false,
        };
        let (a_wide, b_wide) = (wide(self, a), wide(self, b));
        let x = if b_wide { self.beside(a, least.0) } else { self.expr(a, least.0) };
        let y = if a_wide { self.beside(b, least.1) } else { self.expr(b, least.1) };
        (x, y)
    }

    /// Prints a conversion with the semantics of `Value::cast`.
    pub(super) fn cast(&mut self, id: ExprId, to: DType) -> (String, Prec) {
        use tamis_ir::Kind::*;
        let from = self.kernel.exprs.dtype(id);
        if from == to {
            return (self.expr(id, Prec::Unary), Prec::Unary);
        }
        let ty = self.ty(to);
        if to == DType::Bool {
            return (format!("{} != 0", self.expr(id, Prec::Sum)), Prec::Compare);
        }
        match (from.kind(), to.kind()) {
            (Float, Int) => {
                let helper = self.helper(helpers::saturate(to));
                (format!("{helper}({})", self.expr(id, Prec::Lowest)), Prec::Primary)
            }
            (Complex, Int) => {
                let helper = self.helper(helpers::saturate(to));
                let value = self.expr(id, Prec::Lowest);
                (format!("{helper}({}({value}))", real_part(from)), Prec::Primary)
            }
            (Complex, Float) => {
                let value = format!("{}({})", real_part(from), self.expr(id, Prec::Lowest));
                if from.real() == to { (value, Prec::Primary) } else { (format!("({ty}){value}"), Prec::Unary) }
            }
            (Bool | Int | Float, Complex) => {
                let (make, part) = (make_complex(to), value_type(to.real()));
                let value = self.expr(id, Prec::Unary);
                (format!("{make}(({part}){value}, 0)"), Prec::Primary)
            }
            (_, kind) => {
                // Compilers know the range of a widened narrow integer, and warn about comparisons
                // with it.
                if kind == Int {
                    self.helper(helpers::disable_warnings());
                }
                (format!("({ty}){}", self.expr(id, Prec::Unary)), Prec::Unary)
            }
        }
    }

    /// Prints the test that an expression is nonzero.
    pub(super) fn truth(&mut self, id: ExprId, least: Prec) -> String {
        if self.kernel.exprs.dtype(id) == DType::Bool {
            return self.expr(id, least);
        }
        let (text, prec) = self.cast(id, DType::Bool);
        wrap(text, prec, least)
    }

    pub(super) fn constant(&mut self, value: Value, least: Prec) -> String {
        let (text, prec) = self.literal(value);
        wrap(text, prec, least)
    }

    fn literal(&mut self, value: Value) -> (String, Prec) {
        let signed = |text: String| {
            let prec = if text.starts_with('-') { Prec::Unary } else { Prec::Primary };
            (text, prec)
        };
        match value {
            Value::Bool(x) => (x.to_string(), Prec::Primary),
            Value::I64(i64::MIN) => ("INT64_MIN".into(), Prec::Primary),
            Value::I64(x) if i32::try_from(x).is_ok_and(|x| x != i32::MIN) => signed(x.to_string()),
            Value::I64(x) => signed(if x < 0 { format!("-INT64_C({})", -x) } else { format!("INT64_C({x})") }),
            Value::I32(i32::MIN) => ("INT32_MIN".into(), Prec::Primary),
            Value::I8(_) | Value::I16(_) | Value::I32(_) | Value::U8(_) | Value::U16(_) => signed(value.to_string()),
            Value::U32(x) => (format!("{x}u"), Prec::Primary),
            Value::U64(x) => (format!("UINT64_C({x})"), Prec::Primary),
            Value::F32(x) => {
                let (text, prec) = self.float(f64::from(x), format!("{x:?}"));
                let suffix = if x.is_finite() { "f" } else { "" };
                (format!("{text}{suffix}"), prec)
            }
            Value::F64(x) => self.float(x, format!("{x:?}")),
            Value::C64(c) => {
                let (re, im) = (self.literal(Value::F32(c.re)).0, self.literal(Value::F32(c.im)).0);
                (format!("CMPLXF({re}, {im})"), Prec::Primary)
            }
            Value::C128(c) => {
                let (re, im) = (self.literal(Value::F64(c.re)).0, self.literal(Value::F64(c.im)).0);
                (format!("CMPLX({re}, {im})"), Prec::Primary)
            }
        }
    }

    fn float(&mut self, x: f64, shortest: String) -> (String, Prec) {
        if x.is_finite() {
            return (shortest, if x.is_sign_negative() { Prec::Unary } else { Prec::Primary });
        }
        match (x.is_nan(), x > 0.0) {
            (true, _) => ("NAN".into(), Prec::Primary),
            (_, true) => ("INFINITY".into(), Prec::Primary),
            _ => ("-INFINITY".into(), Prec::Unary),
        }
    }

    /// The name of a helper, which is added to the file once.
    pub(super) fn helper(&mut self, helper: helpers::Helper) -> String {
        if !self.helpers.iter().any(|(known, _)| *known == helper.name) {
            self.helpers.push((helper.name.clone(), helper.code));
        }
        helper.name
    }

    fn call(&mut self, id: ExprId, op: Op, operand: DType, operands: &[ExprId]) -> (String, Prec) {
        let info = op.info();
        match &info.form {
            Form::Elementwise(lowerings) => self.apply(id, op, lowerings, operand, operands),
            Form::Comparison(comparison) => self.compare(*comparison, operand, operands[0], operands[1]),
            Form::Predicate(predicate) => self.predicate(*predicate, operands[0]),
            Form::And => self.connective("&&", Prec::And, operands),
            Form::Or => self.connective("||", Prec::Or, operands),
            Form::Not => (format!("!{}", self.truth(operands[0], Prec::Unary)), Prec::Unary),
            Form::Select => {
                let condition = self.truth(operands[0], Prec::Or);
                let then = self.converted(operands[1], operand, Prec::Or);
                let otherwise = self.converted(operands[2], operand, Prec::Or);
                let text = format!("{condition} ? {then} : {otherwise}");
                // Integers narrower than `int` are promoted in a conditional.
                if operand.size() < 4 && operand != DType::Bool {
                    return (format!("({})({text})", value_type(operand)), Prec::Unary);
                }
                (text, Prec::Choice)
            }
            Form::Coalesce => {
                let text = self.converted(operands[0], operand, Prec::Unary);
                (text, Prec::Unary)
            }
            Form::Choose => {
                let helper = self.helper(helpers::choose(operand));
                let mut values: Vec<String> =
                    operands.iter().map(|e| self.converted(*e, operand, Prec::Lowest)).collect();
                if values.len() == 2 {
                    values.push(self.constant(Value::zero(operand), Prec::Lowest));
                }
                (format!("{helper}({})", values.join(", ")), Prec::Primary)
            }
            Form::Conversion(to) => self.cast(operands[0], *to),
            // The lowerer replaces user-defined operators by their bodies; the verifier knows.
            Form::Defined(_) => ("0".into(), Prec::Primary),
        }
    }

    fn connective(&mut self, symbol: &str, prec: Prec, operands: &[ExprId]) -> (String, Prec) {
        let parts: Vec<String> = operands.iter().map(|e| self.truth(*e, Prec::Compare)).collect();
        (parts.join(&format!(" {symbol} ")), prec)
    }
}

/// Adds parentheses if the precedence requires them.
pub(super) fn wrap(text: String, prec: Prec, least: Prec) -> String {
    if prec < least { format!("({text})") } else { text }
}

/// The C function for the real part.
pub(super) fn real_part(dtype: DType) -> &'static str {
    if dtype == DType::C64 { "crealf" } else { "creal" }
}

/// The C macro that constructs a complex number.
pub(super) fn make_complex(dtype: DType) -> &'static str {
    if dtype == DType::C64 { "CMPLXF" } else { "CMPLX" }
}
