//! Operators: what they are called in C, and which need a helper to mean the same.

use super::expr::{Prec, wrap};
use super::{Printer, helpers, value_type};
use tamis_ir::algebra::Op;
use tamis_ir::kernel::{Expr, ExprId};
use tamis_ir::{DType, Kind};

impl Printer<'_> {
    pub(super) fn compare(&mut self, op: Op, common: DType, a: ExprId, b: ExprId) -> (String, Prec) {
        let symbol = match op {
            Op::Eq => "==",
            Op::Ne => "!=",
            Op::Lt => "<",
            Op::Le => "<=",
            Op::Gt => ">",
            _ => ">=",
        };
        let (from, to) = (self.kernel.exprs.dtype(a), self.kernel.exprs.dtype(b));
        // Compilers know the range of a coordinate, and that a value equals itself.
        let decided = matches!(
            (self.kernel.expr(a), self.kernel.expr(b)),
            (Expr::Load(..), Expr::Const(_)) | (Expr::Const(_), Expr::Load(..))
        );
        if a == b || decided {
            self.helper(helpers::quiet());
        }
        let (x, y) = if from.kind().max(to.kind()) <= Kind::Int {
            match (from, to) {
                (DType::I64, DType::I64) => self.index_pair(a, b, (Prec::Sum, Prec::Sum)),
                (x, y) if x == y => {
                    self.helper(helpers::quiet());
                    (self.expr(a, Prec::Sum), self.expr(b, Prec::Sum))
                }
                (x, y) => {
                    self.helper(helpers::quiet());
                    let wide = if x == DType::U64 || y == DType::U64 { "__int128" } else { "int64_t" };
                    let (x, y) = (self.expr(a, Prec::Unary), self.expr(b, Prec::Unary));
                    (format!("({wide}){x}"), format!("({wide}){y}"))
                }
            }
        } else if common.kind() == Kind::Complex && matches!(op, Op::Lt | Op::Gt) {
            return ("false".into(), Prec::Primary);
        } else {
            (self.converted(a, common, Prec::Sum), self.converted(b, common, Prec::Sum))
        };
        // Complex numbers without an order are only ever equal.
        let symbol = if common.kind() == Kind::Complex && op != Op::Ne { "==" } else { symbol };
        (format!("{x} {symbol} {y}"), Prec::Compare)
    }

    pub(super) fn predicate(&mut self, op: Op, id: ExprId) -> (String, Prec) {
        let dtype = self.kernel.exprs.dtype(id);
        let name = match op {
            Op::IsNan => "isnan",
            Op::IsInf => "isinf",
            _ => "isfinite",
        };
        match dtype.kind() {
            Kind::Bool | Kind::Int => {
                // The operand is evaluated for nothing, so that no variable is left unused.
                let value = self.expr(id, Prec::Unary);
                (format!("((void){value}, {})", op == Op::IsFinite), Prec::Primary)
            }
            Kind::Float => (format!("{name}({}) != 0", self.expr(id, Prec::Lowest)), Prec::Compare),
            Kind::Complex => {
                let helper = self.helper(helpers::complex_predicate(name, dtype));
                (format!("{helper}({})", self.expr(id, Prec::Lowest)), Prec::Primary)
            }
        }
    }

    /// Applies an operator to operands converted to its type.
    pub(super) fn apply(&mut self, id: ExprId, op: Op, dtype: DType, operands: &[ExprId]) -> (String, Prec) {
        match operands {
            [a] => self.unary(op, dtype, *a),
            [a, b] if !matches!(op, Op::Choose) => match self.infix(id, op, dtype, *a, *b) {
                Some(found) => found,
                None => {
                    let helper = self.binary_helper(op, dtype);
                    let (a, b) = (self.converted(*a, dtype, Prec::Lowest), self.converted(*b, dtype, Prec::Lowest));
                    (format!("{helper}({a}, {b})"), Prec::Primary)
                }
            },
            _ if op == Op::Choose => {
                let helper = self.helper(helpers::choose(dtype));
                let mut values: Vec<String> =
                    operands.iter().map(|e| self.converted(*e, dtype, Prec::Lowest)).collect();
                if values.len() == 2 {
                    values.push(self.constant(tamis_ir::Value::zero(dtype), Prec::Lowest));
                }
                (format!("{helper}({})", values.join(", ")), Prec::Primary)
            }
            _ => {
                // min and max of many, from the left.
                let helper = self.binary_helper(op, dtype);
                let values: Vec<String> = operands.iter().map(|e| self.converted(*e, dtype, Prec::Lowest)).collect();
                let folded = values.into_iter().reduce(|a, b| format!("{helper}({a}, {b})"));
                (folded.unwrap_or_default(), Prec::Primary)
            }
        }
    }

    /// The operator as C writes it between operands, where it means the same.
    fn infix(&mut self, id: ExprId, op: Op, dtype: DType, a: ExprId, b: ExprId) -> Option<(String, Prec)> {
        let (symbol, prec) = match op {
            Op::Add => ("+", Prec::Sum),
            Op::Sub => ("-", Prec::Sum),
            Op::Mul => ("*", Prec::Product),
            Op::Div => ("/", Prec::Product),
            Op::BitAnd => ("&", Prec::Lowest),
            Op::BitOr => ("|", Prec::Lowest),
            Op::BitXor => ("^", Prec::Lowest),
            Op::Min if dtype == DType::Bool => ("&", Prec::Lowest),
            Op::Max if dtype == DType::Bool => ("|", Prec::Lowest),
            _ => return None,
        };
        let bitwise = prec == Prec::Lowest;
        let around = match prec {
            Prec::Lowest => (Prec::Unary, Prec::Unary),
            Prec::Sum => (Prec::Sum, Prec::Product),
            other => (other, Prec::Unary),
        };
        let plain = match dtype.kind() {
            Kind::Float => true,
            // Products and quotients of C treat infinities in their own way.
            Kind::Complex => matches!(op, Op::Add | Op::Sub),
            Kind::Bool => bitwise,
            Kind::Int => bitwise || matches!(dtype, DType::U32 | DType::U64) || self.facts.is_index(id),
        };
        if bitwise {
            self.helper(helpers::quiet());
        }
        let narrow = dtype.kind() == Kind::Int && dtype.size() < 4;
        if !plain && !(narrow && !(op == Op::Mul && dtype == DType::U16)) {
            return None;
        }
        let (x, y) = if dtype == DType::I64 && self.facts.is_index(id) && !bitwise {
            self.index_pair(a, b, around)
        } else {
            (self.converted(a, dtype, around.0), self.converted(b, dtype, around.1))
        };
        let text = format!("{x} {symbol} {y}");
        if narrow {
            // Computed as `int`, where it fits, and cut.
            return Some((format!("({})({text})", value_type(dtype)), Prec::Unary));
        }
        Some((text, prec))
    }

    fn binary_helper(&mut self, op: Op, dtype: DType) -> String {
        match (op, dtype.kind()) {
            (Op::Pow | Op::Atan2 | Op::Hypot, Kind::Float) => self.library(op, dtype),
            _ => self.helper(helpers::binary(op, dtype)),
        }
    }

    /// A function of the C library.
    fn library(&mut self, op: Op, dtype: DType) -> String {
        let name = match op {
            Op::Abs if dtype.kind() == Kind::Float => "fabs",
            // The C library's rounding with ties to even is that of the default rounding mode.
            Op::Round => "rint",
            _ => op.info().name,
        };
        let complex = dtype.kind() == Kind::Complex;
        let name = if complex { format!("c{name}") } else { name.to_string() };
        if dtype.real() == DType::F32 { format!("{name}f") } else { name }
    }

    fn unary(&mut self, op: Op, dtype: DType, a: ExprId) -> (String, Prec) {
        let function = |name: String, argument: String| (format!("{name}({argument})"), Prec::Primary);
        let itself = |p: &mut Self| (p.converted(a, dtype, Prec::Unary), Prec::Unary);
        match (op, dtype.kind()) {
            (Op::BitNot, Kind::Bool) => (format!("!{}", self.converted(a, dtype, Prec::Unary)), Prec::Unary),
            (Op::Imag, Kind::Complex) => {
                let name = if dtype == DType::C64 { "cimagf" } else { "cimag" };
                function(name.into(), self.converted(a, dtype, Prec::Lowest))
            }
            (Op::Imag, _) => {
                let value = self.converted(a, dtype, Prec::Unary);
                let zero = self.constant(tamis_ir::Value::zero(dtype), Prec::Unary);
                (format!("((void){value}, {zero})"), Prec::Primary)
            }
            (Op::Real, Kind::Complex) => {
                function(super::expr::real_part(dtype).into(), self.converted(a, dtype, Prec::Lowest))
            }
            (Op::Conj, Kind::Complex) => {
                let name = if dtype == DType::C64 { "conjf" } else { "conj" };
                function(name.into(), self.converted(a, dtype, Prec::Lowest))
            }
            (_, Kind::Bool) | (Op::Real | Op::Conj, _) => itself(self),
            (Op::Floor | Op::Ceil | Op::Round | Op::Trunc, Kind::Int) => itself(self),
            (Op::Abs | Op::Relu, Kind::Int) if !dtype.is_signed_int() => itself(self),
            (Op::Neg, Kind::Float | Kind::Complex) => {
                let text = self.converted(a, dtype, Prec::Unary);
                // Two signs in a row would be another operator.
                let text = if text.starts_with('-') { wrap(text, Prec::Lowest, Prec::Unary) } else { text };
                (format!("-{text}"), Prec::Unary)
            }
            (Op::Sign | Op::Relu | Op::Sigmoid | Op::BitNot, _) | (Op::Abs | Op::Neg, Kind::Int) => {
                let helper = self.helper(helpers::unary(op, dtype));
                function(helper, self.converted(a, dtype, Prec::Lowest))
            }
            _ => {
                let name = self.library(op, dtype);
                function(name, self.converted(a, dtype, Prec::Lowest))
            }
        }
    }
}
