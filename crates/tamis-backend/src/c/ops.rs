//! C operators: the C operator or function of each kernel operator, and the ones that need a
//! helper.

use super::expr::{Prec, wrap};
use super::{Printer, helpers, value_type};
use tamis_ir::algebra::{
    BoolExpansion, C, ComparisonOp, ComplexExpansion, Elementary, Elementwise, FloatExpansion, IntExpansion, Lowering,
    Op, Predicate,
};
use tamis_ir::kernel::{Expr, ExprId};
use tamis_ir::{DType, Kind};

impl Printer<'_> {
    pub(super) fn compare(&mut self, op: ComparisonOp, common: DType, a: ExprId, b: ExprId) -> (String, Prec) {
        let symbol = match op {
            ComparisonOp::Eq => "==",
            ComparisonOp::Ne => "!=",
            ComparisonOp::Lt => "<",
            ComparisonOp::Le => "<=",
            ComparisonOp::Gt => ">",
            ComparisonOp::Ge => ">=",
        };
        let (from, to) = (self.kernel.exprs.dtype(a), self.kernel.exprs.dtype(b));
        // Compilers warn about comparisons with the known range of a coordinate, and of a value
        // with itself.
        let decided = matches!(
            (self.kernel.expr(a), self.kernel.expr(b)),
            (Expr::Load(..), Expr::Const(_)) | (Expr::Const(_), Expr::Load(..))
        );
        if a == b || decided {
            self.helper(helpers::disable_warnings());
        }
        let (x, y) = if from.kind().max(to.kind()) <= Kind::Int {
            match (from, to) {
                (DType::I64, DType::I64) => self.index_pair(a, b, (Prec::Sum, Prec::Sum)),
                (x, y) if x == y => {
                    self.helper(helpers::disable_warnings());
                    (self.expr(a, Prec::Sum), self.expr(b, Prec::Sum))
                }
                (x, y) => {
                    self.helper(helpers::disable_warnings());
                    let wide = if x == DType::U64 || y == DType::U64 { "__int128" } else { "int64_t" };
                    let (x, y) = (self.expr(a, Prec::Unary), self.expr(b, Prec::Unary));
                    (format!("({wide}){x}"), format!("({wide}){y}"))
                }
            }
        } else if common.kind() == Kind::Complex && matches!(op, ComparisonOp::Lt | ComparisonOp::Gt) {
            return ("false".into(), Prec::Primary);
        } else {
            (self.converted(a, common, Prec::Sum), self.converted(b, common, Prec::Sum))
        };
        // Complex numbers without an order are only ever equal.
        let symbol = if common.kind() == Kind::Complex && op != ComparisonOp::Ne { "==" } else { symbol };
        (format!("{x} {symbol} {y}"), Prec::Compare)
    }

    pub(super) fn predicate(&mut self, op: Predicate, id: ExprId) -> (String, Prec) {
        let dtype = self.kernel.exprs.dtype(id);
        let name = match op {
            Predicate::IsNan => "isnan",
            Predicate::IsInf => "isinf",
            Predicate::IsFinite => "isfinite",
        };
        match dtype.kind() {
            Kind::Bool | Kind::Int => {
                // The operand is evaluated and discarded, so that no variable is unused.
                let value = self.expr(id, Prec::Unary);
                (format!("((void){value}, {})", op == Predicate::IsFinite), Prec::Primary)
            }
            Kind::Float => (format!("{name}({}) != 0", self.expr(id, Prec::Lowest)), Prec::Compare),
            Kind::Complex => {
                let helper = self.helper(helpers::complex_predicate(name, dtype));
                (format!("{helper}({})", self.expr(id, Prec::Lowest)), Prec::Primary)
            }
        }
    }

    /// Applies an elementwise operator to operands converted to its type.
    pub(super) fn apply(
        &mut self,
        id: ExprId,
        op: Op,
        lowerings: &Elementwise,
        dtype: DType,
        operands: &[ExprId],
    ) -> (String, Prec) {
        let written = match dtype.kind() {
            Kind::Bool => self.lower(id, op, lowerings.bool, dtype, operands),
            Kind::Int => self.lower(id, op, lowerings.int, dtype, operands),
            Kind::Float => self.lower(id, op, lowerings.float, dtype, operands),
            Kind::Complex => self.lower(id, op, lowerings.complex, dtype, operands),
        };
        match (written, operands) {
            (CSpelling::Done(text, prec), _) => (text, prec),
            (CSpelling::Call(function), [a, b]) => {
                let (a, b) = (self.converted(*a, dtype, Prec::Lowest), self.converted(*b, dtype, Prec::Lowest));
                (format!("{function}({a}, {b})"), Prec::Primary)
            }
            (CSpelling::Call(function), [a]) => {
                (format!("{function}({})", self.converted(*a, dtype, Prec::Lowest)), Prec::Primary)
            }
            // An associative operator of many operands, from the left.
            (CSpelling::Call(function), _) => {
                let values: Vec<String> = operands.iter().map(|e| self.converted(*e, dtype, Prec::Lowest)).collect();
                let folded = values.into_iter().reduce(|a, b| format!("{function}({a}, {b})"));
                (folded.unwrap_or_default(), Prec::Primary)
            }
        }
    }

    /// An operator on operands of one kind.
    fn lower<E: ExpandInC>(
        &mut self,
        id: ExprId,
        op: Op,
        lowering: Lowering<E>,
        dtype: DType,
        operands: &[ExprId],
    ) -> CSpelling {
        match (lowering, operands) {
            // The verifier rejects such a kernel.
            (Lowering::Never, _) => CSpelling::Done("0".into(), Prec::Primary),
            (Lowering::Operand, _) => CSpelling::Done(self.converted(operands[0], dtype, Prec::Unary), Prec::Unary),
            (Lowering::Zero, _) => {
                let value = self.converted(operands[0], dtype, Prec::Unary);
                let zero = self.constant(tamis_ir::Value::zero(dtype), Prec::Unary);
                CSpelling::Done(format!("((void){value}, {zero})"), Prec::Primary)
            }
            (Lowering::Instruction { c, .. }, [a]) => {
                let text = self.converted(*a, dtype, Prec::Unary);
                // Two signs in a row would be another operator.
                let text = if text.starts_with(c) { wrap(text, Prec::Lowest, Prec::Unary) } else { text };
                CSpelling::Done(format!("{c}{text}"), Prec::Unary)
            }
            (Lowering::Instruction { c, .. }, [a, b]) => match self.infix(id, c, dtype, *a, *b) {
                Some((text, prec)) => CSpelling::Done(text, prec),
                None => CSpelling::Call(self.helper(helpers::wrapping(op, c, dtype))),
            },
            (Lowering::Instruction { c, .. }, _) => CSpelling::Call(self.helper(helpers::wrapping(op, c, dtype))),
            (Lowering::Intrinsic { c, .. } | Lowering::Call { c }, _) => match c {
                C::Function(name) => CSpelling::Call(library(name, dtype)),
                C::Expression(text) => {
                    CSpelling::Call(self.helper(helpers::expression(op, dtype, operands.len(), text)))
                }
                C::Body(text) => CSpelling::Call(self.helper(helpers::function(op, dtype, operands.len(), text))),
            },
            (Lowering::Expansion(expansion), _) => expansion.expand(self, op, dtype, operands),
        }
    }

    /// The operator as C writes it between operands, where it means the same.
    fn infix(&mut self, id: ExprId, symbol: &str, dtype: DType, a: ExprId, b: ExprId) -> Option<(String, Prec)> {
        let bitwise = matches!(symbol, "&" | "|" | "^");
        let prec = match symbol {
            _ if bitwise => Prec::Lowest,
            "+" | "-" => Prec::Sum,
            _ => Prec::Product,
        };
        let around = match prec {
            Prec::Lowest => (Prec::Unary, Prec::Unary),
            Prec::Sum => (Prec::Sum, Prec::Product),
            other => (other, Prec::Unary),
        };
        let plain = match dtype.kind() {
            Kind::Bool | Kind::Float | Kind::Complex => true,
            Kind::Int => bitwise || matches!(dtype, DType::U32 | DType::U64) || self.facts.is_index(id),
        };
        if bitwise {
            self.helper(helpers::disable_warnings());
        }
        let narrow = dtype.kind() == Kind::Int && dtype.size() < 4;
        // A product of 16-bit numbers overflows `int`.
        if !plain && !(narrow && !(symbol == "*" && dtype == DType::U16)) {
            return None;
        }
        let (x, y) = if dtype == DType::I64 && self.facts.is_index(id) && !bitwise {
            self.index_pair(a, b, around)
        } else {
            (self.converted(a, dtype, around.0), self.converted(b, dtype, around.1))
        };
        let text = format!("{x} {symbol} {y}");
        if narrow {
            // Computed as `int`, which cannot overflow, and truncated.
            return Some((format!("({})({text})", value_type(dtype)), Prec::Unary));
        }
        Some((text, prec))
    }
}

/// An operator in C.
enum CSpelling {
    /// The whole expression.
    Done(String, Prec),
    /// A function to be called on the operands.
    Call(String),
}

/// A function of the C library on a type.
fn library(name: &str, dtype: DType) -> String {
    let prefix = if dtype.kind() == Kind::Complex { "c" } else { "" };
    let suffix = if dtype.real() == DType::F32 { "f" } else { "" };
    format!("{prefix}{name}{suffix}")
}

/// An expansion of an operator in C.
trait ExpandInC {
    fn expand(self, printer: &mut Printer<'_>, op: Op, dtype: DType, operands: &[ExprId]) -> CSpelling;
}

impl ExpandInC for BoolExpansion {
    fn expand(self, printer: &mut Printer<'_>, _: Op, dtype: DType, operands: &[ExprId]) -> CSpelling {
        match self {
            BoolExpansion::Not => {
                CSpelling::Done(format!("!{}", printer.converted(operands[0], dtype, Prec::Unary)), Prec::Unary)
            }
        }
    }
}

impl ExpandInC for IntExpansion {
    fn expand(self, printer: &mut Printer<'_>, op: Op, dtype: DType, operands: &[ExprId]) -> CSpelling {
        if matches!(self, IntExpansion::Abs | IntExpansion::Relu) && !dtype.is_signed_int() {
            return CSpelling::Done(printer.converted(operands[0], dtype, Prec::Unary), Prec::Unary);
        }
        CSpelling::Call(printer.helper(helpers::int(self, op, dtype)))
    }
}

impl ExpandInC for FloatExpansion {
    fn expand(self, printer: &mut Printer<'_>, op: Op, dtype: DType, _: &[ExprId]) -> CSpelling {
        let text = match self {
            FloatExpansion::Relu => "a <= 0 ? 0 : a",
            FloatExpansion::Sign => "a < 0 || a > 0 ? copysign@(1, a) : a",
            FloatExpansion::Elementary(Elementary::Sigmoid) => "1 / (1 + exp@(-a))",
            FloatExpansion::Elementary(_) => return CSpelling::Call(library(op.info().name, dtype)),
        };
        CSpelling::Call(printer.helper(helpers::expression(op, dtype, 1, text)))
    }
}

impl ExpandInC for ComplexExpansion {
    fn expand(self, printer: &mut Printer<'_>, op: Op, dtype: DType, _: &[ExprId]) -> CSpelling {
        CSpelling::Call(match self {
            ComplexExpansion::Abs => library("abs", dtype),
            ComplexExpansion::Conjugate => {
                if dtype == DType::C64 {
                    "conjf".into()
                } else {
                    "conj".into()
                }
            }
            ComplexExpansion::Real => library("real", dtype),
            ComplexExpansion::Imaginary => library("imag", dtype),
            ComplexExpansion::Multiply => {
                let text = "MAKE(creal@(a) * creal@(b) - cimag@(a) * cimag@(b),\n        \
                            creal@(a) * cimag@(b) + cimag@(a) * creal@(b))";
                printer.helper(helpers::expression(op, dtype, 2, text))
            }
        })
    }
}
