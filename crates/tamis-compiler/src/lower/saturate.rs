//! Saturating arithmetic for bounds checks: a subscript that overflows is out of bounds, too.
//!
//! Sizes and indices are assumed to be at most `LARGEST_SIZE`, unless the kernel is specialised for
//! larger ones (`pipeline::Specialisation`). A sum of a few of them and of small constants cannot
//! overflow, and is computed as written. Values known only at run time, and large constants, are
//! added with saturation.

use super::Lowerer;
use super::node::{Node, PartialAccess, Projection, ReadSource, Step, visit_steps};
use super::run_algebra::depends;
use super::storage::MAX_ELEMENTS;
use tamis_ir::algebra::{DType, Op, Value};
use tamis_ir::kernel::{Elem, Expr, ExprId};
use tamis_ir::program::IndexId;

/// The largest size that is not huge. No memory holds more elements, and multiples and sums of such
/// sizes are far from overflow.
const LARGEST_SIZE: u128 = 1 << 40;

/// Integers up to this magnitude do not overflow, nor do their differences.
const LARGEST: u128 = 1 << 62;

/// The magnitude of unknown integers.
const ANY: u128 = 1 << 63;

/// True if sums of sizes that include this one may overflow.
pub(crate) fn is_huge(size: u64) -> bool {
    u128::from(size) > LARGEST_SIZE
}

impl Lowerer<'_> {
    /// True if the arithmetic of a subscript may overflow.
    pub(super) fn may_overflow(&self, node: &Node) -> bool {
        matches!(node, Node::Call(Op::Add | Op::Sub | Op::Mul | Op::Neg, DType::I64, _))
            && self.magnitude(node) > LARGEST
    }

    /// True if a loop must not be entered without iterations: its start may wrap around, and it
    /// moves along levels that are searched for a range that begins there.
    pub(super) fn must_run(&self, index: IndexId, body: &[Step]) -> bool {
        let Some((start, _)) = &self.ranges[index.index()] else { return false };
        if self.magnitude(start) <= LARGEST {
            return false;
        }
        let mut searched = false;
        visit_steps(body, &mut |node| {
            if let Node::Access(access) = node
                && let ReadSource::Tensor(tensor, subs) = &access.source
                && let Some(sub) = subs.get(access.level)
                && depends(&sub.node, index)
            {
                // Coordinate lists are searched for the start itself, which is safe.
                let row = self.row(*tensor, access.level);
                searched |= sub.projection != Projection::Whole
                    || row.is_some_and(|row| !row.capabilities.random_access && !row.is_coordinate_list());
            }
        });
        searched
    }

    /// A number of iterations that further terms may be added to without overflow.
    pub(super) fn countable(&mut self, index: IndexId, iterations: ExprId) -> ExprId {
        let small = match &self.ranges[index.index()] {
            Some((start, stop)) => self.magnitude(start).max(self.magnitude(stop)) < LARGEST / 2,
            None => true,
        };
        if small && !self.huge {
            return iterations;
        }
        let high = self.b.int(MAX_ELEMENTS);
        self.limit_by(Op::Min, iterations, high)
    }

    /// Clamps the terms of a permissive subscript that may overflow, so that no sum overflows and
    /// coordinates out of bounds stay out of bounds. `None` if the coordinates have to be looked up
    /// one by one; `Some(None)` if nothing has to change.
    pub(super) fn clamped_access(&mut self, access: &PartialAccess, index: IndexId) -> Option<Option<PartialAccess>> {
        let ReadSource::Tensor(_, subs) = &access.source else { return Some(None) };
        let Some(sub) = subs.get(access.level) else { return Some(None) };
        if !sub.permissive || !depends(&sub.node, index) || !self.may_overflow(&sub.node) {
            return Some(None);
        }
        let mut clamped = 0;
        let node = self.clamp_terms(&sub.node.clone(), &mut clamped);
        // Several clamped terms might cancel.
        if self.huge || clamped > 1 || self.magnitude(&Node::Index(index)) > LARGEST_SIZE {
            return None;
        }
        let mut clamped_access = access.clone();
        if let ReadSource::Tensor(_, subs) = &mut clamped_access.source
            && let Some(sub) = subs.get_mut(access.level)
        {
            sub.node = node;
        }
        Some(Some(clamped_access))
    }

    fn clamp_terms(&mut self, node: &Node, clamped: &mut usize) -> Node {
        if self.magnitude(node) <= LARGEST / 2 {
            return node.clone();
        }
        if self.is_known(node) {
            *clamped += 1;
            let (low, high) = (self.b.int(-MAX_ELEMENTS), self.b.int(MAX_ELEMENTS));
            let value = self.integer(node);
            let value = self.clamped(value, low, high);
            return self.constant_of(value).map_or(Node::Value(value), |value| Node::Known(Value::I64(value)));
        }
        match node {
            Node::Call(op @ (Op::Add | Op::Sub | Op::Mul | Op::Neg), DType::I64, operands) => {
                Node::Call(*op, DType::I64, operands.iter().map(|operand| self.clamp_terms(operand, clamped)).collect())
            }
            _ => node.clone(),
        }
    }

    /// An upper bound of an integer's magnitude.
    fn magnitude(&self, node: &Node) -> u128 {
        let size = if self.huge { ANY } else { LARGEST_SIZE };
        let of_type = |dtype: DType| if dtype.size() < 8 { 1 << (8 * dtype.size()) } else { ANY };
        match node {
            Node::Known(value) => value.as_i64().map_or(ANY, |value| value.unsigned_abs().into()),
            Node::Size(..) | Node::Entry(_) => size,
            Node::Index(index) => match &self.ranges[index.index()] {
                Some((start, stop)) => self.magnitude(start).max(self.magnitude(stop)),
                None => size,
            },
            Node::Var(var) => self.vars[var.index()].as_ref().map_or(ANY, |node| self.magnitude(node)),
            Node::Value(value) => match self.b.kernel().expr(*value) {
                Expr::Const(value) => value.as_i64().map_or(ANY, |value| value.unsigned_abs().into()),
                Expr::Load(buffer, _) => match self.b.kernel().buffer(*buffer).elem {
                    Elem::Index(_) => size,
                    Elem::Value(dtype) => of_type(dtype),
                },
                _ => of_type(self.b.dtype(*value)),
            },
            Node::Missing => 0,
            Node::Access(access) => match &access.source {
                ReadSource::Tensor(tensor, _) => of_type(self.bound[tensor.index()].dtype),
                ReadSource::Mask(..) => 1,
            },
            Node::Call(_, dtype, _) if dtype.size() < 8 => of_type(*dtype),
            Node::Call(op, _, operands) => {
                let mut each = operands.iter().map(|operand| self.magnitude(operand));
                match op {
                    Op::Add | Op::Sub => each.fold(0, u128::saturating_add),
                    Op::Mul => each.fold(1, u128::saturating_mul),
                    Op::Neg | Op::Min | Op::Max | Op::Cast(DType::I64) => each.max().unwrap_or(ANY),
                    // A remainder is smaller than the divisor.
                    Op::Mod => each.next_back().unwrap_or(ANY),
                    Op::FloorDiv => each.next().unwrap_or(ANY),
                    _ => ANY,
                }
            }
        }
    }

    /// A subscript with saturating arithmetic.
    pub(super) fn saturated(&mut self, node: &Node) -> ExprId {
        match node {
            Node::Call(op, DType::I64, operands) if self.may_overflow(node) => match (op, &operands[..]) {
                (Op::Add, [a, b]) => {
                    let (a, b) = (self.saturated(a), self.saturated(b));
                    self.saturating_add(a, b)
                }
                (Op::Sub, [a, b]) => {
                    let (a, b) = (self.saturated(a), self.saturated(b));
                    self.saturating_sub(a, b)
                }
                (Op::Neg, [a]) => {
                    let (zero, a) = (self.b.int(0), self.saturated(a));
                    self.saturating_sub(zero, a)
                }
                (Op::Mul, [a, b]) => {
                    let (a, b) = (self.saturated(a), self.saturated(b));
                    self.saturating_mul(a, b)
                }
                _ => self.integer(node),
            },
            _ => self.integer(node),
        }
    }

    fn constant_of(&self, id: ExprId) -> Option<i64> {
        self.b.as_constant(id).and_then(|value| value.as_i64())
    }

    /// `a + b`, saturated.
    pub(super) fn saturating_add(&mut self, a: ExprId, b: ExprId) -> ExprId {
        if let (Some(a), Some(b)) = (self.constant_of(a), self.constant_of(b)) {
            return self.b.int(a.saturating_add(b));
        }
        let (a, b) = if self.constant_of(a).is_some() { (b, a) } else { (a, b) };
        let zero = self.b.int(0);
        let (low, high) = (self.b.int(i64::MIN), self.b.int(i64::MAX));
        let (up, down) = (self.limit_by(Op::Max, b, zero), self.limit_by(Op::Min, b, zero));
        let (low, high) = (self.difference_of(low, down), self.difference_of(high, up));
        let a = self.clamped(a, low, high);
        self.b.call_in(Op::Add, DType::I64, &[a, b])
    }

    /// `a - b`, saturated.
    pub(super) fn saturating_sub(&mut self, a: ExprId, b: ExprId) -> ExprId {
        match (self.constant_of(a), self.constant_of(b)) {
            (Some(a), Some(b)) => return self.b.int(a.saturating_sub(b)),
            (_, Some(b)) if b != i64::MIN => {
                let negative = self.b.int(-b);
                return self.saturating_add(a, negative);
            }
            _ => {}
        }
        let zero = self.b.int(0);
        let (low, high) = (self.b.int(i64::MIN), self.b.int(i64::MAX));
        let (up, down) = (self.limit_by(Op::Max, b, zero), self.limit_by(Op::Min, b, zero));
        let low = self.b.call_in(Op::Add, DType::I64, &[low, up]);
        let high = self.b.call_in(Op::Add, DType::I64, &[high, down]);
        let a = self.clamped(a, low, high);
        self.b.call_in(Op::Sub, DType::I64, &[a, b])
    }

    /// `a * b`, saturated.
    pub(super) fn saturating_mul(&mut self, a: ExprId, b: ExprId) -> ExprId {
        let (a, b) = if self.constant_of(a).is_some() { (b, a) } else { (a, b) };
        if let (Some(a), Some(b)) = (self.constant_of(a), self.constant_of(b)) {
            return self.b.int(a.saturating_mul(b));
        }
        let product = self.b.call_in(Op::Mul, DType::I64, &[a, b]);
        let (low, high) = (self.b.int(i64::MIN), self.b.int(i64::MAX));
        let (above, below) = match self.constant_of(b) {
            Some(0 | 1) => return product,
            Some(-1) => {
                let zero = self.b.int(0);
                return self.saturating_sub(zero, a);
            }
            Some(by) => {
                let ends = [i64::MIN / by, i64::MAX / by];
                let (low, high) = (self.b.int(ends[0].min(ends[1])), self.b.int(ends[0].max(ends[1])));
                let below = self.b.call_in(Op::Lt, DType::I64, &[a, low]);
                let above = self.b.call_in(Op::Gt, DType::I64, &[a, high]);
                if by > 0 { (above, below) } else { (below, above) }
            }
            None => {
                // Products this close to the limits are treated as larger ones.
                let float = |this: &mut Self, id| this.b.call_in(Op::Cast(DType::F64), DType::I64, &[id]);
                let (x, y) = (float(self, a), float(self, b));
                let size = self.b.call_in(Op::Mul, DType::F64, &[x, y]);
                let limit = self.b.constant(Value::F64(9.2e18));
                let negative = self.b.constant(Value::F64(-9.2e18));
                let above = self.b.call_in(Op::Gt, DType::F64, &[size, limit]);
                (above, self.b.call_in(Op::Lt, DType::F64, &[size, negative]))
            }
        };
        let product = self.b.call_in(Op::Select, DType::I64, &[below, low, product]);
        self.b.call_in(Op::Select, DType::I64, &[above, high, product])
    }

    fn limit_by(&mut self, op: Op, a: ExprId, b: ExprId) -> ExprId {
        self.b.call_in(op, DType::I64, &[a, b])
    }

    fn difference_of(&mut self, a: ExprId, b: ExprId) -> ExprId {
        self.b.call_in(Op::Sub, DType::I64, &[a, b])
    }

    /// `a`, clamped to `low..=high`.
    fn clamped(&mut self, a: ExprId, low: ExprId, high: ExprId) -> ExprId {
        let a = match self.constant_of(low) {
            Some(i64::MIN) => a,
            _ => self.limit_by(Op::Max, a, low),
        };
        match self.constant_of(high) {
            Some(i64::MAX) => a,
            _ => self.limit_by(Op::Min, a, high),
        }
    }
}
