//! How what a level stores moves with a loop: subscripts with offsets, quotients and remainders, differences.

use super::Lowerer;
use super::node::{Access, Node, Part, Source, Sub};
use super::run_algebra::depends;
use tamis_ir::algebra::{DType, Op, Value};
use tamis_ir::kernel::ExprId;
use tamis_ir::looplet::{Looplet, Payload, Phase};
use tamis_ir::program::{IndexId, TensorId};

/// Along an index `i`, a level stores `(i - shift) / scale`.
struct Along {
    scale: u64,
    shift: Option<ExprId>,
}

impl Lowerer<'_> {
    /// The structure of an access along a loop whose index moves its next level's coordinate up, one by one (or one for
    /// several turns).
    ///
    /// The loop has this extent; `alike`, if it makes no difference whether a coordinate lies outside of the tensor or is
    /// not stored.
    pub(super) fn unfurl_along(
        &mut self,
        access: &Access,
        index: IndexId,
        extent: (ExprId, ExprId),
        alike: bool,
    ) -> Option<Looplet> {
        let tamed = self.tamed(access, index)?;
        let access = tamed.as_ref().unwrap_or(access);
        let Source::Tensor(_, subs) = &access.source else { return None };
        let sub = subs.get(access.level)?;
        let numbers_pieces = matches!(sub.part, Part::Quotient(by) if is_multiple(&sub.node, index, by));
        match sub.inside || sub.permissive || numbers_pieces {
            true => self.unfurl_inside(access, index, extent, alike),
            false => self.unfurl_checked(access, index, extent),
        }
    }

    /// The structure of an access that may leave its tensor where a condition does not hold: inside, what is stored there;
    /// outside, each coordinate is checked where it is reached.
    fn unfurl_checked(&mut self, access: &Access, index: IndexId, extent: (ExprId, ExprId)) -> Option<Looplet> {
        let Source::Tensor(tensor, subs) = &access.source else { return None };
        let (tensor, sub) = (*tensor, subs.get(access.level)?);
        // Nothing that is absent may hide a subscript that is still to be checked.
        let below = subs.get(access.level + 1..).unwrap_or_default();
        if sub.part != Part::Whole || below.iter().any(|other| other.dim == sub.dim || !other.inside) {
            return None;
        }
        let (window, mirrored) = self.window(sub, index)?;
        let mut inside = access.clone();
        if let Source::Tensor(_, subs) = &mut inside.source {
            subs[access.level].inside = true;
        }
        let looplet = self.unfurl_inside(&inside, index, extent, false)?;
        if looplet.is_lookup() {
            return None;
        }
        let (zero, one, size) = (self.b.int(0), self.b.int(1), self.bound[tensor.index()].dims[sub.dim]);
        let (low, high) = if mirrored { (self.b.sub(one, size), one) } else { (zero, size) };
        let (first, mut end) = (window.from(&mut self.b, low), window.reaching(&mut self.b, high));
        // Where inner loops have no iterations, no window lies inside.
        if window.open && !self.b.is_at_most(window.low, window.last) {
            let some = self.b.call_in(Op::Le, DType::I64, &[window.low, window.last]);
            end = self.b.call_in(Op::Select, DType::I64, &[some, end, first]);
        }
        Some(between(looplet, first, end, Payload::Outside))
    }

    fn unfurl_inside(
        &mut self,
        access: &Access,
        index: IndexId,
        extent: (ExprId, ExprId),
        alike: bool,
    ) -> Option<Looplet> {
        let Source::Tensor(tensor, subs) = &access.source else { return None };
        let (tensor, sub) = (*tensor, subs.get(access.level)?);
        let numbers_pieces = matches!(sub.part, Part::Quotient(by) if is_multiple(&sub.node, index, by));
        if sub.node == Node::Index(index) && sub.part == Part::Whole && sub.inside {
            return self.unfurl(tensor, access, sub.protocol);
        }
        // Lists in any order cannot be cut.
        if self.is_nonordered(tensor, access.level) {
            return None;
        }
        let Some(along) = self.along(tensor, sub, index) else {
            return self.unfurl_window(access, index, extent, alike);
        };
        let looplet = self.unfurl(tensor, access, sub.protocol)?;
        let looplet = self.seen_through_window(access, looplet, extent, false);
        let mut looplet = looplet.along(&mut self.b, along.scale, along.shift)?;
        if let (Part::Minus(other), Some(shift)) = (&sub.part, along.shift)
            && !other.inside
            && looplet.is_endless()
            && !looplet.is_lookup()
        {
            // Where the other dimension is outside, the difference may be, too.
            let end = self.b.add(shift, self.bound[tensor.index()].extents[access.level]);
            looplet = between(looplet, shift, end, Payload::Fill);
        }
        if numbers_pieces && !sub.inside {
            // Pieces behind the tensor are empty, so that it does not matter what they hold.
            let (zero, extent) = (self.b.int(0), self.bound[tensor.index()].extents[access.level]);
            return Some(between(looplet, zero, extent, Payload::Fill));
        }
        if !sub.permissive || (alike && access.window.is_some() && !looplet.is_endless()) {
            return Some(looplet);
        }
        // Outside of the tensor there is nothing.
        let offset = self.offset(&sub.node, index)?;
        let (zero, size) = (self.b.int(0), self.bound[tensor.index()].dims[sub.dim]);
        let (first, end) = match offset {
            Some(offset) => (self.b.sub(zero, offset), self.b.sub(size, offset)),
            None => (zero, size),
        };
        Some(between(looplet, first, end, Payload::Missing))
    }

    fn along(&mut self, tensor: TensorId, sub: &Sub, index: IndexId) -> Option<Along> {
        let zero = self.b.int(0);
        match &sub.part {
            Part::Whole => {
                let offset = self.offset(&sub.node, index)?;
                let shift = offset.map(|offset| self.b.sub(zero, offset));
                Some(Along { scale: 1, shift })
            }
            Part::Quotient(by) => {
                if is_multiple(&sub.node, index, *by) {
                    return Some(Along { scale: 1, shift: None });
                }
                let offset = self.offset(&sub.node, index)?;
                let shift = offset.map(|offset| self.b.sub(zero, offset));
                Some(Along { scale: *by, shift })
            }
            // The remainder goes up within a piece only.
            Part::Remainder(by, Some(number)) if sub.node == Node::Index(index) => {
                let number = self.indices[number.index()]?;
                let by = self.b.int(*by as i64);
                Some(Along { scale: 1, shift: Some(self.b.call_in(Op::Mul, DType::I64, &[number, by])) })
            }
            Part::Remainder(..) => None,
            Part::Minus(other) if self.is_known(&other.node) => {
                let offset = self.offset(&sub.node, index)?;
                let start = offset.unwrap_or(zero);
                let stored = self.difference(tensor, start, other);
                Some(Along { scale: 1, shift: Some(self.b.sub(zero, stored)) })
            }
            Part::Minus(_) => None,
        }
    }

    /// What is added to an index to make an expression, if the expression is such a sum.
    fn offset(&mut self, node: &Node, index: IndexId) -> Option<Option<ExprId>> {
        match node {
            Node::Index(i) if *i == index => Some(None),
            Node::Call(op @ (Op::Add | Op::Sub), DType::I64, operands) => {
                let [a, b] = &operands[..] else { return None };
                let (moving, fixed) = match (depends(a, index), depends(b, index)) {
                    (true, false) => (a, b),
                    (false, true) if *op == Op::Add => (b, a),
                    _ => return None,
                };
                if !self.is_known(fixed) {
                    return None;
                }
                let rest = self.offset(moving, index)?;
                let fixed = self.integer(fixed);
                let zero = self.b.int(0);
                let rest = rest.unwrap_or(zero);
                Some(Some(self.b.call_in(*op, DType::I64, &[rest, fixed])))
            }
            _ => None,
        }
    }

    /// Whether an expression can be computed here, and cheaply: indices of loops around, sizes and numbers.
    pub(super) fn is_known(&self, node: &Node) -> bool {
        match node {
            Node::Index(index) => self.indices[index.index()].is_some(),
            Node::Known(Value::I64(_)) | Node::Size(..) | Node::Value(_) => true,
            Node::Call(Op::Add | Op::Sub | Op::Mul | Op::Neg | Op::Min | Op::Max, DType::I64, operands) => {
                operands.iter().all(|n| self.is_known(n))
            }
            _ => false,
        }
    }

    /// What an access gives where nothing is stored: the fill, unless one of the subscripts that were not looked at yet
    /// lies outside, where that is permitted.
    pub(super) fn absent(&self, tensor: TensorId, rest: &[Sub]) -> Node {
        let fill = self.bound[tensor.index()].fill;
        let mut node = Node::Known(fill);
        for sub in rest.iter().filter(|sub| sub.permissive) {
            let compare = |op, other| Node::Call(op, DType::I64, vec![sub.node.clone(), other]);
            let low = compare(Op::Lt, Node::Known(Value::I64(0)));
            let high = compare(Op::Ge, Node::Size(tensor, sub.dim));
            let outside = Node::Call(Op::Or, DType::Bool, vec![low, high]);
            node = Node::Call(Op::Select, fill.dtype(), vec![outside, Node::Missing, node]);
        }
        node
    }

    /// What a level stores, where a subscript is known to be inside.
    pub(super) fn stored_coordinate(&mut self, tensor: TensorId, sub: &Sub) -> ExprId {
        let at = self.integer(&sub.node);
        self.part_of(tensor, sub, at)
    }

    /// What a level stores of a coordinate that is inside.
    pub(super) fn part_of(&mut self, tensor: TensorId, sub: &Sub, at: ExprId) -> ExprId {
        match &sub.part {
            Part::Whole => at,
            Part::Quotient(by) => match &sub.node {
                Node::Call(Op::Mul, _, operands) if operands[1] == Node::Known(Value::I64(*by as i64)) => {
                    self.integer(&operands[0])
                }
                Node::Call(Op::Mul, _, operands) if operands[0] == Node::Known(Value::I64(*by as i64)) => {
                    self.integer(&operands[1])
                }
                _ => {
                    let by = self.b.int(*by as i64);
                    self.b.call_in(Op::FloorDiv, DType::I64, &[at, by])
                }
            },
            Part::Remainder(by, number) => {
                let by = self.b.int(*by as i64);
                match number.and_then(|number| self.indices[number.index()]) {
                    Some(number) => {
                        let first = self.b.call_in(Op::Mul, DType::I64, &[number, by]);
                        self.b.sub(at, first)
                    }
                    None => self.b.call_in(Op::Mod, DType::I64, &[at, by]),
                }
            }
            Part::Minus(other) => {
                let stored = self.difference(tensor, at, other);
                if sub.inside && other.inside {
                    return stored;
                }
                // The other one is looked at later: until then, nothing may lie outside.
                let (zero, one) = (self.b.int(0), self.b.int(1));
                let (a, b) = (self.bound[tensor.index()].dims[sub.dim], self.bound[tensor.index()].dims[other.dim]);
                let sum = self.b.add(a, b);
                let two = self.b.add(one, one);
                let last = self.b.sub(sum, two);
                let low = self.b.call_in(Op::Max, DType::I64, &[stored, zero]);
                self.b.call_in(Op::Min, DType::I64, &[low, last])
            }
        }
    }

    /// `at - other`, counted from the least difference there is.
    pub(super) fn difference(&mut self, tensor: TensorId, at: ExprId, other: &Sub) -> ExprId {
        let one = self.b.int(1);
        let least = self.b.sub(self.bound[tensor.index()].dims[other.dim], one);
        let other = self.integer(&other.node);
        let difference = self.b.sub(at, other);
        self.b.add(difference, least)
    }
}

/// A structure from `first` to `end`, and something else on either side. What has to be set up is so before.
pub(super) fn between(looplet: Looplet, first: ExprId, end: ExprId, outside: Payload) -> Looplet {
    let missing = || Looplet::Run(outside.clone());
    match looplet {
        Looplet::Thunk { preamble, body } => {
            Looplet::Thunk { preamble, body: Box::new(between(*body, first, end, outside)) }
        }
        // Where the fiber is absent, what is outside of it is still missing.
        Looplet::Switch { guarded, .. } => between(*guarded, first, end, outside),
        looplet => {
            let phases = vec![
                Phase { stop: Some(first), body: missing() },
                Phase { stop: Some(end), body: looplet },
                Phase { stop: None, body: missing() },
            ];
            Looplet::Sequence { phases, inside: false }
        }
    }
}

/// Whether an expression is an index times a number.
fn is_multiple(node: &Node, index: IndexId, by: u64) -> bool {
    let by = Node::Known(Value::I64(by as i64));
    matches!(node, Node::Call(Op::Mul, _, operands)
        if operands.contains(&by) && operands.contains(&Node::Index(index)) && operands.len() == 2)
}
