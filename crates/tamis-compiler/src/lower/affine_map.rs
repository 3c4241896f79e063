//! Affine maps of looplets: the structure of a level along a loop, under offsets, quotients,
//! remainders and differences.
//!
//! In: an access whose next subscript is an affine function of the loop's index. Out: the looplet
//! of the level in the coordinates of the loop, or none if the level has to be searched instead.
//! Subscripts in which several loops take part are windows (`window`).

use super::Lowerer;
use super::node::{Node, PartialAccess, Projection, ReadSource, Sub};
use super::run_algebra::depends;
use tamis_ir::algebra::{DType, Op, Value};
use tamis_ir::kernel::ExprId;
use tamis_ir::looplet::{Looplet, NEVER, Payload, Phase};
use tamis_ir::program::{IndexId, TensorId};

/// A level that stores coordinate `(i - shift) / scale` for loop index `i`.
struct AffineMap {
    scale: u64,
    shift: Option<ExprId>,
}

impl Lowerer<'_> {
    /// The structure of an access along a loop whose index moves the next level's coordinate up, by
    /// one in each iteration or in each `scale` iterations.
    ///
    /// The loop has this extent. `fill_outside`: reads out of bounds have the same effect as reads
    /// of elements that are not stored.
    pub(super) fn unfurl_affine(
        &mut self,
        access: &PartialAccess,
        index: IndexId,
        extent: (ExprId, ExprId),
        fill_outside: bool,
    ) -> Option<Looplet> {
        let clamped = self.clamped_access(access, index)?;
        let access = clamped.as_ref().unwrap_or(access);
        let ReadSource::Tensor(_, subs) = &access.source else { return None };
        let sub = subs.get(access.level)?;
        let counts_chunks = matches!(sub.projection, Projection::Quotient(by) if is_multiple(&sub.node, index, by));
        match sub.inside || sub.permissive || counts_chunks {
            true => self.unfurl_in_bounds(access, index, extent, fill_outside),
            false => self.unfurl_checked(access, index, extent),
        }
    }

    /// The structure of an access that may be out of bounds where a condition does not hold. In
    /// bounds, it is the structure of the level; each coordinate out of bounds is checked when it
    /// is reached.
    fn unfurl_checked(&mut self, access: &PartialAccess, index: IndexId, extent: (ExprId, ExprId)) -> Option<Looplet> {
        let ReadSource::Tensor(tensor, subs) = &access.source else { return None };
        let (tensor, sub) = (*tensor, subs.get(access.level)?);
        // An absent element must not hide a subscript that is still unchecked.
        let below = subs.get(access.level + 1..).unwrap_or_default();
        if sub.projection != Projection::Whole || below.iter().any(|other| other.dim == sub.dim || !other.inside) {
            return None;
        }
        let (window, mirrored) = self.window(sub, index)?;
        let mut inside = access.clone();
        if let ReadSource::Tensor(_, subs) = &mut inside.source {
            subs[access.level].inside = true;
        }
        let looplet = self.unfurl_in_bounds(&inside, index, extent, false)?;
        if looplet.is_lookup() {
            return None;
        }
        let (zero, one, size) = (self.b.int(0), self.b.int(1), self.bound[tensor.index()].dims[sub.dim]);
        let (low, high) = if mirrored { (self.b.sub(one, size), one) } else { (zero, size) };
        let (first, end) = (window.from(&mut self.b, low), window.reaching(&mut self.b, high));
        let bounded = bounded_by(looplet, first, end, Payload::Outside);
        if !window.open || self.b.is_at_most(window.low, window.last) {
            return Some(bounded);
        }
        // If inner loops have no iterations, nothing is read in any window.
        let some = self.b.call_in(Op::Le, DType::I64, &[window.low, window.last]);
        let (before, never) = (self.b.int(-NEVER), self.b.int(NEVER));
        let unread = self.b.call_in(Op::Select, DType::I64, &[some, before, never]);
        Some(preceded_by(bounded, unread, Payload::Fill))
    }

    fn unfurl_in_bounds(
        &mut self,
        access: &PartialAccess,
        index: IndexId,
        extent: (ExprId, ExprId),
        fill_outside: bool,
    ) -> Option<Looplet> {
        let ReadSource::Tensor(tensor, subs) = &access.source else { return None };
        let (tensor, sub) = (*tensor, subs.get(access.level)?);
        let counts_chunks = matches!(sub.projection, Projection::Quotient(by) if is_multiple(&sub.node, index, by));
        if sub.node == Node::Index(index) && sub.projection == Projection::Whole && sub.inside {
            return self.unfurl(tensor, access, sub.protocol);
        }
        // Unsorted coordinate lists cannot be clipped.
        if self.is_nonordered(tensor, access.level) {
            return None;
        }
        let Some(affine_map) = self.affine_map(tensor, sub, index) else {
            return self.unfurl_window(access, index, extent, fill_outside);
        };
        let looplet = self.unfurl(tensor, access, sub.protocol)?;
        let looplet = self.seen_through_window(access, looplet, extent, false);
        let mut looplet = looplet.affine_map(&mut self.b, affine_map.scale, affine_map.shift)?;
        if let (Projection::Minus(other), Some(shift)) = (&sub.projection, affine_map.shift)
            && !other.inside
            && looplet.is_endless()
            && !looplet.is_lookup()
        {
            // If the other dimension is out of bounds, the difference may be, too.
            let end = self.b.add(shift, self.bound[tensor.index()].extents[access.level]);
            looplet = bounded_by(looplet, shift, end, Payload::Fill);
        }
        if counts_chunks && !sub.inside {
            // Chunks beyond the end of the tensor are empty, so their contents do not matter.
            let (zero, extent) = (self.b.int(0), self.bound[tensor.index()].extents[access.level]);
            return Some(bounded_by(looplet, zero, extent, Payload::Fill));
        }
        if !sub.permissive || (fill_outside && access.window.is_some() && !looplet.is_endless()) {
            return Some(looplet);
        }
        // Permissive reads out of bounds are missing.
        let offset_from = self.offset_from(&sub.node, index)?;
        let (zero, size) = (self.b.int(0), self.bound[tensor.index()].dims[sub.dim]);
        let (first, end) = match offset_from {
            Some(offset_from) => (self.b.sub(zero, offset_from), self.b.sub(size, offset_from)),
            None => (zero, size),
        };
        Some(bounded_by(looplet, first, end, Payload::Missing))
    }

    fn affine_map(&mut self, tensor: TensorId, sub: &Sub, index: IndexId) -> Option<AffineMap> {
        let zero = self.b.int(0);
        match &sub.projection {
            Projection::Whole => {
                let offset_from = self.offset_from(&sub.node, index)?;
                let shift = offset_from.map(|offset_from| self.b.sub(zero, offset_from));
                Some(AffineMap { scale: 1, shift })
            }
            Projection::Quotient(by) => {
                if is_multiple(&sub.node, index, *by) {
                    return Some(AffineMap { scale: 1, shift: None });
                }
                let offset_from = self.offset_from(&sub.node, index)?;
                let shift = offset_from.map(|offset_from| self.b.sub(zero, offset_from));
                Some(AffineMap { scale: *by, shift })
            }
            // The remainder increases monotonically within a chunk only.
            Projection::Remainder(by, Some(chunk)) if sub.node == Node::Index(index) => {
                let chunk = self.indices[chunk.index()]?;
                let by = self.b.int(*by as i64);
                Some(AffineMap { scale: 1, shift: Some(self.b.call_in(Op::Mul, DType::I64, &[chunk, by])) })
            }
            Projection::Remainder(..) => None,
            Projection::Minus(other) if self.is_known(&other.node) => {
                let offset_from = self.offset_from(&sub.node, index)?;
                let start = offset_from.unwrap_or(zero);
                let stored = self.difference(tensor, start, other);
                Some(AffineMap { scale: 1, shift: Some(self.b.sub(zero, stored)) })
            }
            Projection::Minus(_) => None,
        }
    }

    /// The offset of an expression from an index, if it is a sum of that index and known terms.
    fn offset_from(&mut self, node: &Node, index: IndexId) -> Option<Option<ExprId>> {
        match node {
            Node::Index(i) if *i == index => Some(None),
            Node::Call(op @ (Op::Add | Op::Sub), DType::I64, operands) => {
                let [a, b] = &operands[..] else { return None };
                let (moving, known) = match (depends(a, index), depends(b, index)) {
                    (true, false) => (a, b),
                    (false, true) if *op == Op::Add => (b, a),
                    _ => return None,
                };
                if !self.is_known(known) {
                    return None;
                }
                let inner = self.offset_from(moving, index)?;
                let known = self.integer(known);
                let zero = self.b.int(0);
                let inner = inner.unwrap_or(zero);
                Some(Some(self.b.call_in(*op, DType::I64, &[inner, known])))
            }
            _ => None,
        }
    }

    /// True if an expression can be computed here cheaply: enclosing indices, sizes and constants.
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

    /// The value of an access where nothing is stored: the fill value, or missing where a
    /// permissive subscript of a lower level is out of bounds.
    pub(super) fn absent(&self, tensor: TensorId, inner: &[Sub]) -> Node {
        let fill = self.bound[tensor.index()].fill;
        let mut node = Node::Known(fill);
        for sub in inner.iter().filter(|sub| sub.permissive) {
            let compare = |op, other| Node::Call(op, DType::I64, vec![sub.node.clone(), other]);
            let low = compare(Op::Lt, Node::Known(Value::I64(0)));
            let high = compare(Op::Ge, Node::Size(tensor, sub.dim));
            let outside = Node::Call(Op::Or, DType::Bool, vec![low, high]);
            node = Node::Call(Op::Select, fill.dtype(), vec![outside, Node::Missing, node]);
        }
        node
    }

    /// The level coordinate of a subscript that is known to be in bounds.
    pub(super) fn stored_coordinate(&mut self, tensor: TensorId, sub: &Sub) -> ExprId {
        let at = self.integer(&sub.node);
        self.level_coordinate(tensor, sub, at)
    }

    /// The level coordinate of a dimension's coordinate that is in bounds.
    pub(super) fn level_coordinate(&mut self, tensor: TensorId, sub: &Sub, at: ExprId) -> ExprId {
        match &sub.projection {
            Projection::Whole => at,
            Projection::Quotient(by) => match &sub.node {
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
            Projection::Remainder(by, chunk) => {
                let by = self.b.int(*by as i64);
                match chunk.and_then(|chunk| self.indices[chunk.index()]) {
                    Some(chunk) => {
                        let first = self.b.call_in(Op::Mul, DType::I64, &[chunk, by]);
                        self.b.sub(at, first)
                    }
                    None => self.b.call_in(Op::Mod, DType::I64, &[at, by]),
                }
            }
            Projection::Minus(other) => {
                let stored = self.difference(tensor, at, other);
                if sub.inside && other.inside {
                    return stored;
                }
                // The other subscript is checked later, so the difference is clamped until then.
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

    /// `at - other`, counted from the least difference.
    pub(super) fn difference(&mut self, tensor: TensorId, at: ExprId, other: &Sub) -> ExprId {
        let one = self.b.int(1);
        let least = self.b.sub(self.bound[tensor.index()].dims[other.dim], one);
        let other = self.integer(&other.node);
        let difference = self.b.sub(at, other);
        self.b.add(difference, least)
    }
}

/// A structure from `first` to `end`, and another payload on either side. Preambles stay outermost.
pub(super) fn bounded_by(looplet: Looplet, first: ExprId, end: ExprId, outside: Payload) -> Looplet {
    let missing = || Looplet::Run(outside.clone());
    match looplet {
        Looplet::Thunk { preamble, body } => {
            Looplet::Thunk { preamble, body: Box::new(bounded_by(*body, first, end, outside)) }
        }
        // An absent fiber does not change that coordinates outside of it are missing.
        Looplet::Switch { guarded, .. } => bounded_by(*guarded, first, end, outside),
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

/// A structure from `first` on, and another payload before it. Preambles stay outermost.
fn preceded_by(looplet: Looplet, first: ExprId, before: Payload) -> Looplet {
    let phase = Phase { stop: Some(first), body: Looplet::Run(before.clone()) };
    match looplet {
        Looplet::Thunk { preamble, body } => {
            Looplet::Thunk { preamble, body: Box::new(preceded_by(*body, first, before)) }
        }
        Looplet::Sequence { mut phases, inside } => {
            phases.insert(0, phase);
            Looplet::Sequence { phases, inside }
        }
        other => Looplet::Sequence { phases: vec![phase, Phase { stop: None, body: other }], inside: false },
    }
}

/// True if an expression is an index times a constant.
fn is_multiple(node: &Node, index: IndexId, by: u64) -> bool {
    let by = Node::Known(Value::I64(by as i64));
    matches!(node, Node::Call(Op::Mul, _, operands)
        if operands.contains(&by) && operands.contains(&Node::Index(index)) && operands.len() == 2)
}
