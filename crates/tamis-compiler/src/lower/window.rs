//! Windows: affine subscripts of several loops, `a*i + b*k + c`, and the coordinates that they
//! cover before all loops are entered.
//!
//! In: an access and a loop that moves its next subscript together with other loops. Out: a looplet
//! in windows: each coordinate of the loop meets a contiguous range of stored coordinates. The
//! inner loops continue from the position that the outer loop found.

use super::Lowerer;
use super::node::{Node, PartialAccess, Projection, ReadSource, Step, Sub, visit_steps};
use super::run_algebra::depends;
use super::simplify;
use tamis_ir::algebra::{DType, Op, Value};
use tamis_ir::diag::{Code, Diagnostic};
use tamis_ir::kernel::ExprId;
use tamis_ir::looplet::{Looplet, Payload, Window};
use tamis_ir::program::IndexId;

/// The largest coefficient of windows.
const LARGEST: u64 = 1 << 24;

/// An affine sum over loop indices.
struct AffineSum {
    /// The indices of loops that are not entered yet, including the current one, with their
    /// coefficients.
    open: Vec<(IndexId, i64)>,
    /// Known terms, with their coefficients.
    known: Vec<(i64, Node)>,
}

impl AffineSum {
    fn of(known: Node) -> AffineSum {
        AffineSum { open: Vec::new(), known: vec![(1, known)] }
    }

    fn times(mut self, by: i64) -> Option<AffineSum> {
        // Larger products of indices might wrap around; such subscripts are looked up one by one.
        if by.unsigned_abs() > LARGEST {
            return None;
        }
        for (_, coefficient) in &mut self.open {
            *coefficient = coefficient.checked_mul(by)?;
        }
        for (coefficient, _) in &mut self.known {
            *coefficient = coefficient.checked_mul(by)?;
        }
        Some(self)
    }

    fn plus(mut self, other: AffineSum) -> Option<AffineSum> {
        for (index, coefficient) in other.open {
            match self.open.iter_mut().find(|(i, _)| *i == index) {
                Some((_, affine_sum)) => *affine_sum = affine_sum.checked_add(coefficient)?,
                None => self.open.push((index, coefficient)),
            }
        }
        self.known.extend(other.known);
        self.open.retain(|(_, coefficient)| *coefficient != 0);
        Some(self)
    }
}

/// The coordinates that a subscript covers before a loop is entered.
pub(super) struct Footprint {
    /// The coefficient of the loop's index.
    pub(super) stride: i64,
    /// The least and the greatest coordinate at index 0.
    pub(super) low: ExprId,
    pub(super) last: ExprId,
    /// True if other loops move it, too.
    pub(super) open: bool,
}

/// The coordinates that a subscript covers inside of a loop, while other loops that move it are not
/// entered.
pub(super) struct OpenFootprint {
    /// These loops, with their coefficients.
    pub(super) terms: Vec<(IndexId, i64)>,
    /// The least and the greatest coordinate.
    pub(super) low: ExprId,
    pub(super) last: ExprId,
}

impl Lowerer<'_> {
    /// The footprint of a subscript along a loop that is about to be entered and moves it, if the
    /// extents of the inner loops that move it are known.
    pub(super) fn footprint(&mut self, node: &Node, index: IndexId) -> Option<Footprint> {
        let affine_sum = self.affine_sum(node, index)?;
        let stride = affine_sum.open.iter().find(|(i, _)| *i == index).map(|(_, coefficient)| *coefficient)?;
        let (low, last, open) = self.range_of(affine_sum, index)?;
        Some(Footprint { stride, low, last, open })
    }

    /// The range of a subscript that only inner loops move, not the loop that is about to be
    /// entered.
    pub(super) fn footprint_below(&mut self, node: &Node, index: IndexId) -> Option<(ExprId, ExprId)> {
        let affine_sum = self.affine_sum(node, index)?;
        let moved = affine_sum.open.iter().any(|(i, _)| *i == index);
        let (low, last, open) = self.range_of(affine_sum, index)?;
        (open && !moved).then_some((low, last))
    }

    /// The least and the greatest value of a sum without the term of the loop's index; and true if
    /// they differ.
    fn range_of(&mut self, affine_sum: AffineSum, index: IndexId) -> Option<(ExprId, ExprId, bool)> {
        let mut low = self.b.int(0);
        for (coefficient, node) in &affine_sum.known {
            let value = self.integer(node);
            low = self.plus_times(low, value, *coefficient);
        }
        let mut last = low;
        let one = self.b.int(1);
        let others: Vec<(IndexId, i64)> = affine_sum.open.into_iter().filter(|(i, _)| *i != index).collect();
        for (other, coefficient) in &others {
            let (start, stop) = self.extent_before(*other)?;
            let end = self.b.sub(stop, one);
            let (least, greatest) = if *coefficient > 0 { (start, end) } else { (end, start) };
            low = self.plus_times(low, least, *coefficient);
            last = self.plus_times(last, greatest, *coefficient);
        }
        Some((low, last, !others.is_empty()))
    }

    /// The windows of a subscript along a loop, and true if they move down, so that the subscript
    /// is mirrored.
    pub(super) fn window(&mut self, sub: &Sub, index: IndexId) -> Option<(Window, bool)> {
        let Footprint { stride, low, last, open } = self.footprint(&sub.node, index)?;
        let (low, last) = (self.b.name("low", low), self.b.name("last", last));
        let size = stride.unsigned_abs();
        if stride > 0 {
            return Some((Window { stride: size, low, last, open }, false));
        }
        let zero = self.b.int(0);
        let (low, last) = (self.b.sub(zero, last), self.b.sub(zero, low));
        Some((Window { stride: size, low, last, open }, true))
    }

    /// The structure of an access along a loop that does not move its next coordinate one by one.
    pub(super) fn unfurl_window(
        &mut self,
        access: &PartialAccess,
        index: IndexId,
        extent: (ExprId, ExprId),
        fill_outside: bool,
    ) -> Option<Looplet> {
        let ReadSource::Tensor(tensor, subs) = &access.source else { return None };
        let (tensor, sub) = (*tensor, subs.get(access.level)?);
        match &sub.projection {
            Projection::Remainder(..) => return None,
            Projection::Minus(other) if !self.is_known(&other.node) => return None,
            _ => {}
        }
        let (window, mirrored) = self.window(sub, index)?;
        let looplet = self.unfurl(tensor, access, sub.protocol)?;
        let endless = looplet.is_endless();
        if looplet.is_lookup() && window.open && !sub.permissive {
            return None;
        }
        let zero = self.b.int(0);
        let looplet = self.seen_through_window(access, looplet, extent, mirrored);
        // In the coordinates of the subscript itself.
        let mut looplet = match &sub.projection {
            Projection::Quotient(by) => looplet.affine_map(&mut self.b, *by, None)?,
            Projection::Minus(other) => {
                let stored = self.difference(tensor, zero, other);
                let shift = self.b.sub(zero, stored);
                looplet.affine_map(&mut self.b, 1, Some(shift))?
            }
            _ => looplet,
        };
        if sub.permissive && (endless || !fill_outside) {
            let size = self.bound[tensor.index()].dims[sub.dim];
            looplet = super::affine_map::bounded_by(looplet, zero, size, Payload::Missing);
        }
        if mirrored {
            looplet = looplet.mirrored(&mut self.b)?;
        }
        let looplet = match window {
            // Single coordinates.
            Window { stride: 1, low, open: false, .. } => {
                let shift = self.b.sub(zero, low);
                let moved = looplet.clone().affine_map(&mut self.b, 1, Some(shift));
                // Mirrored segments cannot be shifted, so they are read through windows of one
                // coordinate.
                moved.or_else(|| looplet.reduced(&mut self.b, window))?
            }
            window => looplet.reduced(&mut self.b, window)?,
        };
        self.states[tensor.index()].order_matters = true;
        Some(looplet)
    }

    /// The part of a fiber at or after the known start of its window, or up to the known end.
    pub(super) fn seen_through_window(
        &mut self,
        access: &PartialAccess,
        looplet: Looplet,
        extent: (ExprId, ExprId),
        mirrored: bool,
    ) -> Looplet {
        match access.window {
            // Every loop entered since then has moved on to its own part of the window.
            Some((edge, loops)) if loops == self.entered(access) => {
                looplet.starting(&mut self.b, edge, extent, mirrored)
            }
            _ => looplet,
        }
    }

    /// The number of entered loops that move the next subscript of an access.
    pub(super) fn entered(&self, access: &PartialAccess) -> usize {
        self.entered_at(access, access.level)
    }

    /// The number of entered loops that move the subscript of a level.
    pub(super) fn entered_at(&self, access: &PartialAccess, level: usize) -> usize {
        let ReadSource::Tensor(_, subs) = &access.source else { return 0 };
        let mut found: Vec<IndexId> = Vec::new();
        if let Some(sub) = subs.get(level) {
            sub.node.visit(&mut |node| match node {
                Node::Index(i) if self.indices[i.index()].is_some() && !found.contains(i) => found.push(*i),
                _ => {}
            });
        }
        found.len()
    }

    /// The accesses whose reads out of bounds have the same effect as reads of elements that are
    /// not stored.
    pub(super) fn outside_is_fill(&mut self, steps: &[Step], index: IndexId) -> Vec<u32> {
        let mut permissive: Vec<u32> = Vec::new();
        visit_steps(steps, &mut |node| {
            if let Node::Access(access) = node
                && let ReadSource::Tensor(_, subs) = &access.source
                && subs.iter().skip(access.level).any(|sub| sub.permissive)
                && subs.iter().skip(access.level).any(|sub| depends(&sub.node, index))
                && !permissive.contains(&access.id)
            {
                permissive.push(access.id);
            }
        });
        permissive.retain(|id| {
            let fill = self.replace(steps.to_vec(), *id, &Payload::Fill, None);
            let missing = self.replace(steps.to_vec(), *id, &Payload::Missing, None);
            simplify::steps(fill, self.policy) == simplify::steps(missing, self.policy)
        });
        permissive
    }

    /// The bounds of a loop that is not entered yet, if they are known already.
    pub(super) fn extent_before(&mut self, index: IndexId) -> Option<(ExprId, ExprId)> {
        if !self.bounded[index.index()] {
            let (start, stop, _) = self.inferred(index);
            return Some((start, stop));
        }
        let (start, stop) = self.ranges[index.index()].clone()?;
        (self.is_known(&start) && self.is_known(&stop)).then(|| (self.integer(&start), self.integer(&stop)))
    }

    /// The loops that move a subscript and are not entered yet, with its footprint; `inner` is one
    /// of them, and `index` is entered.
    pub(super) fn open_footprint(&mut self, node: &Node, index: IndexId, inner: IndexId) -> Option<OpenFootprint> {
        let affine_sum = self.affine_sum(node, inner)?;
        let terms = affine_sum.open.clone();
        let (low, last, open) = self.range_of(affine_sum, index)?;
        open.then_some(OpenFootprint { terms, low, last })
    }

    /// True if a subscript is an affine sum of loop indices and known terms.
    pub(super) fn is_affine(&self, node: &Node) -> bool {
        let mut index = None;
        node.visit(&mut |node| {
            if let Node::Index(i) = node {
                index = Some(*i);
            }
        });
        index.is_some_and(|index| self.affine_sum(node, index).is_some_and(|sum| !sum.open.is_empty()))
    }

    fn affine_sum(&self, node: &Node, index: IndexId) -> Option<AffineSum> {
        let is_open = |i: IndexId| i == index || self.indices[i.index()].is_none();
        match node {
            Node::Index(i) if is_open(*i) => Some(AffineSum { open: vec![(*i, 1)], known: Vec::new() }),
            Node::Index(_) | Node::Known(Value::I64(_)) | Node::Size(..) | Node::Value(_) => {
                Some(AffineSum::of(node.clone()))
            }
            Node::Call(op, DType::I64, operands) => match (op, &operands[..]) {
                (Op::Cast(DType::I64), [a]) => self.affine_sum(a, index),
                (Op::Add, [a, b]) => self.affine_sum(a, index)?.plus(self.affine_sum(b, index)?),
                (Op::Sub, [a, b]) => self.affine_sum(a, index)?.plus(self.affine_sum(b, index)?.times(-1)?),
                (Op::Neg, [a]) => self.affine_sum(a, index)?.times(-1),
                (Op::Mul, [Node::Known(Value::I64(by)), a] | [a, Node::Known(Value::I64(by))]) => {
                    self.affine_sum(a, index)?.times(*by)
                }
                _ => self.is_known(node).then(|| AffineSum::of(node.clone())),
            },
            _ => None,
        }
    }

    /// `affine_sum + by * value`.
    pub(super) fn plus_times(&mut self, affine_sum: ExprId, value: ExprId, by: i64) -> ExprId {
        match by {
            _ if self.saturates => {
                let by = self.b.int(by);
                let product = self.saturating_mul(value, by);
                self.saturating_add(affine_sum, product)
            }
            1 => self.b.add(affine_sum, value),
            -1 => self.b.sub(affine_sum, value),
            _ => {
                let by = self.b.int(by);
                let product = self.b.call_in(Op::Mul, DType::I64, &[value, by]);
                self.b.add(affine_sum, product)
            }
        }
    }

    /// Warns of a loop that moves the subscript of a level whose fiber is not known yet, because a
    /// window over an outer level is still open: each window is searched for later.
    pub(super) fn warn_of_open_windows(&mut self, steps: &[Step], index: IndexId) {
        let mut found: Vec<PartialAccess> = Vec::new();
        visit_steps(steps, &mut |node| {
            if let Node::Access(access) = node
                && access.looplet.is_none()
                && found.iter().all(|other| other.id != access.id)
                && !self.warned.contains(&access.id)
            {
                found.push((**access).clone());
            }
        });
        for access in found {
            let ReadSource::Tensor(tensor, subs) = &access.source else { continue };
            let below = subs.iter().enumerate().skip(access.level + 1).find(|(level, sub)| {
                let searched = self.row(*tensor, *level).is_some_and(|row| !row.capabilities.random_access);
                searched && sub.projection == Projection::Whole && self.is_reduced_by(sub, index)
            });
            let (Some((level, sub)), Some(above)) = (below, subs.get(access.level)) else { continue };
            let (Some(inner), Some(outer)) = (self.open_index(sub, index), self.open_index(above, index)) else {
                continue;
            };
            self.warned.push(access.id);
            let program = self.program;
            let (name, named) = (&program.tensor(*tensor).name, |i: IndexId| &program.indices[i.index()]);
            let (index, inner, outer) = (named(index), named(inner), named(outer));
            let message = format!(
                "windows of `{name}` over `{outer}` are still active when `{index}` starts, so every window over `{inner}` is searched"
            );
            let d = Diagnostic::warning(Code::E0607, message)
                .label(program.origin.stmt(access.stmt), format!("`{name}` is read here"))
                .note(format!("each visit searches level {level}, about log2 of its entries per fiber, and empty windows are visited, too"))
                .help(format!("move the loop over `{outer}` outside the one over `{index}`"));
            self.warnings.push(program.origin.attach(d));
        }
    }

    /// True if a loop and an inner loop both move a subscript.
    fn is_reduced_by(&self, sub: &Sub, index: IndexId) -> bool {
        depends(&sub.node, index) && self.open_index(sub, index).is_some()
    }

    /// An index of a subscript whose loop is not entered, other than `index`.
    pub(super) fn open_index(&self, sub: &Sub, index: IndexId) -> Option<IndexId> {
        let mut found = None;
        sub.node.visit(&mut |node| match node {
            Node::Index(i) if *i != index && self.indices[i.index()].is_none() => found = Some(*i),
            _ => {}
        });
        found
    }
}
