//! Saturating arithmetic of subscripts: where a bounds check computes a subscript that leaves the integers, the subscript leaves its
//! dimension, too.
//!
//! Sizes and indices are assumed to be at most `LARGEST_SIZE`, unless the kernel is made for larger ones
//! (`pipeline::Specialisation`). A sum of a few of them and of small numbers cannot overflow, and is computed as it is written. Numbers
//! that are known only when the kernel runs, and numbers that are large, are added with saturation.

use super::Lowerer;
use super::node::{Access, Node, Part, Source, Step, visit_steps};
use super::run_algebra::depends;
use super::storage::MOST_ELEMENTS;
use tamis_ir::algebra::{DType, Op, Value};
use tamis_ir::kernel::{Elem, Expr, ExprId};
use tamis_ir::program::IndexId;

/// The largest size that is not huge. Memory holds no more, and multiples and sums of such numbers are far from overflowing.
const LARGEST_SIZE: u128 = 1 << 40;

/// No number that is nearer to 0 overflows, nor does its difference to another one.
const LARGEST: u128 = 1 << 62;

/// What nothing is known of.
const ANY: u128 = 1 << 63;

/// Whether sums of sizes, one of them this, may overflow.
pub fn is_huge(size: u64) -> bool {
    u128::from(size) > LARGEST_SIZE
}

impl Lowerer<'_> {
    /// Whether the arithmetic of a subscript may overflow.
    pub(super) fn may_overflow(&self, node: &Node) -> bool {
        matches!(node, Node::Call(Op::Add | Op::Sub | Op::Mul | Op::Neg, DType::I64, _))
            && self.magnitude(node) > LARGEST
    }

    /// Whether a loop must not be entered without an iteration: what comes after its start may wrap around, and it goes over levels that are
    /// searched for where to start.
    pub(super) fn must_run(&self, index: IndexId, body: &[Step]) -> bool {
        let Some((start, _)) = &self.ranges[index.index()] else { return false };
        if self.magnitude(start) <= LARGEST {
            return false;
        }
        let mut searched = false;
        visit_steps(body, &mut |node| {
            if let Node::Access(access) = node
                && let Source::Tensor(tensor, subs) = &access.source
                && let Some(sub) = subs.get(access.level)
                && depends(&sub.node, index)
            {
                // Of lists, the start itself is searched for.
                let list = |name: &&str| ["pos", "crd"].contains(name);
                let row = self.row(*tensor, access.level);
                searched |= sub.part != Part::Whole
                    || row.is_some_and(|row| !row.capabilities.random_access && !row.arrays.iter().all(list));
            }
        });
        searched
    }

    /// A number of iterations of a loop that something may be added to.
    pub(super) fn countable(&mut self, index: IndexId, iterations: ExprId) -> ExprId {
        let small = match &self.ranges[index.index()] {
            Some((start, stop)) => self.magnitude(start).max(self.magnitude(stop)) < LARGEST / 2,
            None => true,
        };
        if small && !self.huge {
            return iterations;
        }
        let most = self.b.int(MOST_ELEMENTS);
        self.limit_by(Op::Min, iterations, most)
    }

    /// An access whose next subscript may lie outside of the tensor, and overflow: what is added to an index is brought so near that no sum
    /// overflows, but lies as much outside as before. `None` if the coordinates have to be looked at one by one; `Some(None)` if there
    /// is nothing to do.
    pub(super) fn tamed(&mut self, access: &Access, index: IndexId) -> Option<Option<Access>> {
        let Source::Tensor(_, subs) = &access.source else { return Some(None) };
        let Some(sub) = subs.get(access.level) else { return Some(None) };
        if !sub.permissive || !depends(&sub.node, index) || !self.may_overflow(&sub.node) {
            return Some(None);
        }
        let mut far = 0;
        let node = self.brought_near(&sub.node.clone(), &mut far);
        // Several of them may make up for each other.
        if self.huge || far > 1 || self.magnitude(&Node::Index(index)) > LARGEST_SIZE {
            return None;
        }
        let mut tamed = access.clone();
        if let Source::Tensor(_, subs) = &mut tamed.source
            && let Some(sub) = subs.get_mut(access.level)
        {
            sub.node = node;
        }
        Some(Some(tamed))
    }

    fn brought_near(&mut self, node: &Node, far: &mut usize) -> Node {
        if self.magnitude(node) <= LARGEST / 2 {
            return node.clone();
        }
        if self.is_known(node) {
            *far += 1;
            let (least, most) = (self.b.int(-MOST_ELEMENTS), self.b.int(MOST_ELEMENTS));
            let value = self.integer(node);
            let value = self.clamped(value, least, most);
            return self.constant_of(value).map_or(Node::Value(value), |value| Node::Known(Value::I64(value)));
        }
        match node {
            Node::Call(op @ (Op::Add | Op::Sub | Op::Mul | Op::Neg), DType::I64, operands) => {
                Node::Call(*op, DType::I64, operands.iter().map(|operand| self.brought_near(operand, far)).collect())
            }
            _ => node.clone(),
        }
    }

    /// How far an integer is from 0 at most.
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
                Source::Tensor(tensor, _) => of_type(self.bound[tensor.index()].dtype),
                Source::Mask(..) => 1,
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

    /// A subscript as a bounds check sees it.
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

    /// `a + b`
    pub(super) fn saturating_add(&mut self, a: ExprId, b: ExprId) -> ExprId {
        if let (Some(a), Some(b)) = (self.constant_of(a), self.constant_of(b)) {
            return self.b.int(a.saturating_add(b));
        }
        let (a, b) = if self.constant_of(a).is_some() { (b, a) } else { (a, b) };
        let zero = self.b.int(0);
        let (least, most) = (self.b.int(i64::MIN), self.b.int(i64::MAX));
        let (up, down) = (self.limit_by(Op::Max, b, zero), self.limit_by(Op::Min, b, zero));
        let (low, high) = (self.difference_of(least, down), self.difference_of(most, up));
        let a = self.clamped(a, low, high);
        self.b.call_in(Op::Add, DType::I64, &[a, b])
    }

    /// `a - b`
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
        let (least, most) = (self.b.int(i64::MIN), self.b.int(i64::MAX));
        let (up, down) = (self.limit_by(Op::Max, b, zero), self.limit_by(Op::Min, b, zero));
        let low = self.b.call_in(Op::Add, DType::I64, &[least, up]);
        let high = self.b.call_in(Op::Add, DType::I64, &[most, down]);
        let a = self.clamped(a, low, high);
        self.b.call_in(Op::Sub, DType::I64, &[a, b])
    }

    /// `a * b`
    pub(super) fn saturating_mul(&mut self, a: ExprId, b: ExprId) -> ExprId {
        let (a, b) = if self.constant_of(a).is_some() { (b, a) } else { (a, b) };
        if let (Some(a), Some(b)) = (self.constant_of(a), self.constant_of(b)) {
            return self.b.int(a.saturating_mul(b));
        }
        let product = self.b.call_in(Op::Mul, DType::I64, &[a, b]);
        let (least, most) = (self.b.int(i64::MIN), self.b.int(i64::MAX));
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
                // Exact enough: products this near the limits are taken for larger ones.
                let float = |this: &mut Self, id| this.b.call_in(Op::Cast(DType::F64), DType::I64, &[id]);
                let (x, y) = (float(self, a), float(self, b));
                let size = self.b.call_in(Op::Mul, DType::F64, &[x, y]);
                let limit = self.b.constant(Value::F64(9.2e18));
                let negative = self.b.constant(Value::F64(-9.2e18));
                let above = self.b.call_in(Op::Gt, DType::F64, &[size, limit]);
                (above, self.b.call_in(Op::Lt, DType::F64, &[size, negative]))
            }
        };
        let product = self.b.call_in(Op::Select, DType::I64, &[below, least, product]);
        self.b.call_in(Op::Select, DType::I64, &[above, most, product])
    }

    fn limit_by(&mut self, op: Op, a: ExprId, b: ExprId) -> ExprId {
        self.b.call_in(op, DType::I64, &[a, b])
    }

    fn difference_of(&mut self, a: ExprId, b: ExprId) -> ExprId {
        self.b.call_in(Op::Sub, DType::I64, &[a, b])
    }

    /// What is nearest to `a` from `low` to `high`.
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
