//! Subscripts that several loops make together, `a*i + b*k + c`: what they cover while some of the loops are not entered yet.

use super::Lowerer;
use super::node::{Access, Node, Part, Source, Step, Sub, visit_steps};
use super::run_algebra::depends;
use super::simplify;
use tamis_ir::algebra::{DType, Op, Value};
use tamis_ir::diag::{Code, Diagnostic};
use tamis_ir::kernel::ExprId;
use tamis_ir::looplet::{Looplet, Payload, Window};
use tamis_ir::program::IndexId;

/// The largest coefficient that windows are made of.
const LARGEST: u64 = 1 << 24;

/// A sum over loop indices.
struct Sum {
    /// What loops that are not entered yet add, the one that is about to be among them: their indices times these.
    open: Vec<(IndexId, i64)>,
    /// What is known already, times these.
    known: Vec<(i64, Node)>,
}

impl Sum {
    fn of(known: Node) -> Sum {
        Sum { open: Vec::new(), known: vec![(1, known)] }
    }

    fn times(mut self, by: i64) -> Option<Sum> {
        // Beyond, products of indices might wrap around; such subscripts are looked at one by one.
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

    fn plus(mut self, other: Sum) -> Option<Sum> {
        for (index, coefficient) in other.open {
            match self.open.iter_mut().find(|(i, _)| *i == index) {
                Some((_, sum)) => *sum = sum.checked_add(coefficient)?,
                None => self.open.push((index, coefficient)),
            }
        }
        self.known.extend(other.known);
        self.open.retain(|(_, coefficient)| *coefficient != 0);
        Some(self)
    }
}

/// What a subscript covers while a loop is about to be entered.
pub(super) struct Cover {
    /// How far it moves with the loop's index.
    pub(super) stride: i64,
    /// The least it is at index 0, and the greatest.
    pub(super) low: ExprId,
    pub(super) last: ExprId,
    /// Other loops move it, too.
    pub(super) open: bool,
}

/// What a subscript covers inside of a loop that other loops move it in.
pub(super) struct OpenCover {
    /// These loops, with how far each moves it.
    pub(super) terms: Vec<(IndexId, i64)>,
    /// The least it is, and the greatest.
    pub(super) low: ExprId,
    pub(super) last: ExprId,
}

impl Lowerer<'_> {
    /// What a subscript covers along a loop that is about to be entered, if it moves with it, and it is known how far the
    /// inner loops go that move it.
    pub(super) fn cover(&mut self, node: &Node, index: IndexId) -> Option<Cover> {
        let sum = self.sum(node, index)?;
        let stride = sum.open.iter().find(|(i, _)| *i == index).map(|(_, coefficient)| *coefficient)?;
        let (low, last, open) = self.least_and_greatest(sum, index)?;
        Some(Cover { stride, low, last, open })
    }

    /// What a subscript covers that a loop about to be entered does not move, but inner ones do.
    pub(super) fn cover_below(&mut self, node: &Node, index: IndexId) -> Option<(ExprId, ExprId)> {
        let sum = self.sum(node, index)?;
        let moved = sum.open.iter().any(|(i, _)| *i == index);
        let (low, last, open) = self.least_and_greatest(sum, index)?;
        (open && !moved).then_some((low, last))
    }

    /// The least that a sum is, apart from the index of a loop about to be entered, and the greatest; whether they differ.
    fn least_and_greatest(&mut self, sum: Sum, index: IndexId) -> Option<(ExprId, ExprId, bool)> {
        let mut low = self.b.int(0);
        for (coefficient, node) in &sum.known {
            let value = self.integer(node);
            low = self.plus_times(low, value, *coefficient);
        }
        let mut last = low;
        let one = self.b.int(1);
        let others: Vec<(IndexId, i64)> = sum.open.into_iter().filter(|(i, _)| *i != index).collect();
        for (other, coefficient) in &others {
            let (start, stop) = self.extent_before(*other)?;
            let end = self.b.sub(stop, one);
            let (least, greatest) = if *coefficient > 0 { (start, end) } else { (end, start) };
            low = self.plus_times(low, least, *coefficient);
            last = self.plus_times(last, greatest, *coefficient);
        }
        Some((low, last, !others.is_empty()))
    }

    /// The windows of a subscript along a loop, and whether they go down, so that it is mirrored.
    pub(super) fn window(&mut self, sub: &Sub, index: IndexId) -> Option<(Window, bool)> {
        let Cover { stride, low, last, open } = self.cover(&sub.node, index)?;
        let (low, last) = (self.b.name("low", low), self.b.name("last", last));
        let size = stride.unsigned_abs();
        if stride > 0 {
            return Some((Window { stride: size, low, last, open }, false));
        }
        let zero = self.b.int(0);
        let (low, last) = (self.b.sub(zero, last), self.b.sub(zero, low));
        Some((Window { stride: size, low, last, open }, true))
    }

    /// The structure of an access along a loop that does not move its next level's coordinate one by one.
    pub(super) fn unfurl_window(
        &mut self,
        access: &Access,
        index: IndexId,
        extent: (ExprId, ExprId),
        alike: bool,
    ) -> Option<Looplet> {
        let Source::Tensor(tensor, subs) = &access.source else { return None };
        let (tensor, sub) = (*tensor, subs.get(access.level)?);
        match &sub.part {
            Part::Remainder(..) => return None,
            Part::Minus(other) if !self.is_known(&other.node) => return None,
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
        // Along the subscript itself.
        let mut looplet = match &sub.part {
            Part::Quotient(by) => looplet.along(&mut self.b, *by, None)?,
            Part::Minus(other) => {
                let stored = self.difference(tensor, zero, other);
                let shift = self.b.sub(zero, stored);
                looplet.along(&mut self.b, 1, Some(shift))?
            }
            _ => looplet,
        };
        if sub.permissive && (endless || !alike) {
            let size = self.bound[tensor.index()].dims[sub.dim];
            looplet = super::affine_map::between(looplet, zero, size, Payload::Missing);
        }
        if mirrored {
            looplet = looplet.mirrored(&mut self.b)?;
        }
        let looplet = match window {
            // Coordinates one by one.
            Window { stride: 1, low, open: false, .. } => {
                let shift = self.b.sub(zero, low);
                let moved = looplet.clone().along(&mut self.b, 1, Some(shift));
                // Pieces that are mirrored are not moved, but seen through windows of one coordinate.
                moved.or_else(|| looplet.reduced(&mut self.b, window))?
            }
            window => looplet.reduced(&mut self.b, window)?,
        };
        self.states[tensor.index()].order_matters = true;
        Some(looplet)
    }

    /// A fiber from where the window over it starts, or up to where it ends, if that is known.
    pub(super) fn seen_through_window(
        &mut self,
        access: &Access,
        looplet: Looplet,
        extent: (ExprId, ExprId),
        mirrored: bool,
    ) -> Looplet {
        match access.window {
            // Every loop since then has moved on to its own part of the window.
            Some((edge, loops)) if loops == self.entered(access) => {
                looplet.starting(&mut self.b, edge, extent, mirrored)
            }
            _ => looplet,
        }
    }

    /// How many of the loops that move the next subscript of an access are entered.
    pub(super) fn entered(&self, access: &Access) -> usize {
        self.entered_at(access, access.level)
    }

    /// How many of the loops that move the subscript of a level are entered.
    pub(super) fn entered_at(&self, access: &Access, level: usize) -> usize {
        let Source::Tensor(_, subs) = &access.source else { return 0 };
        let mut found: Vec<IndexId> = Vec::new();
        if let Some(sub) = subs.get(level) {
            sub.node.visit(&mut |node| match node {
                Node::Index(i) if self.indices[i.index()].is_some() && !found.contains(i) => found.push(*i),
                _ => {}
            });
        }
        found.len()
    }

    /// Accesses for which it makes no difference whether a coordinate lies outside of the tensor or is not stored.
    pub(super) fn alike_outside(&mut self, steps: &[Step], index: IndexId) -> Vec<u32> {
        let mut permissive: Vec<u32> = Vec::new();
        visit_steps(steps, &mut |node| {
            if let Node::Access(access) = node
                && let Source::Tensor(_, subs) = &access.source
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

    /// From where to where a loop goes that is not entered yet, if that is known already.
    pub(super) fn extent_before(&mut self, index: IndexId) -> Option<(ExprId, ExprId)> {
        if !self.bounded[index.index()] {
            let (start, stop, _) = self.inferred(index);
            return Some((start, stop));
        }
        let (start, stop) = self.ranges[index.index()].clone()?;
        (self.is_known(&start) && self.is_known(&stop)).then(|| (self.integer(&start), self.integer(&stop)))
    }

    /// The loops that are not entered yet and move a subscript, with how far, and what it covers meanwhile; `inner` is one
    /// of them, and `index` is entered.
    pub(super) fn cover_of_open(&mut self, node: &Node, index: IndexId, inner: IndexId) -> Option<OpenCover> {
        let sum = self.sum(node, inner)?;
        let terms = sum.open.clone();
        let (low, last, open) = self.least_and_greatest(sum, index)?;
        open.then_some(OpenCover { terms, low, last })
    }

    fn sum(&self, node: &Node, index: IndexId) -> Option<Sum> {
        let is_open = |i: IndexId| i == index || self.indices[i.index()].is_none();
        match node {
            Node::Index(i) if is_open(*i) => Some(Sum { open: vec![(*i, 1)], known: Vec::new() }),
            Node::Index(_) | Node::Known(Value::I64(_)) | Node::Size(..) | Node::Value(_) => {
                Some(Sum::of(node.clone()))
            }
            Node::Call(op, DType::I64, operands) => match (op, &operands[..]) {
                (Op::Cast(DType::I64), [a]) => self.sum(a, index),
                (Op::Add, [a, b]) => self.sum(a, index)?.plus(self.sum(b, index)?),
                (Op::Sub, [a, b]) => self.sum(a, index)?.plus(self.sum(b, index)?.times(-1)?),
                (Op::Neg, [a]) => self.sum(a, index)?.times(-1),
                (Op::Mul, [Node::Known(Value::I64(by)), a] | [a, Node::Known(Value::I64(by))]) => {
                    self.sum(a, index)?.times(*by)
                }
                _ => self.is_known(node).then(|| Sum::of(node.clone())),
            },
            _ => None,
        }
    }

    /// `sum + by * value`.
    pub(super) fn plus_times(&mut self, sum: ExprId, value: ExprId, by: i64) -> ExprId {
        match by {
            _ if self.saturates => {
                let by = self.b.int(by);
                let product = self.saturating_mul(value, by);
                self.saturating_add(sum, product)
            }
            1 => self.b.add(sum, value),
            -1 => self.b.sub(sum, value),
            _ => {
                let by = self.b.int(by);
                let product = self.b.call_in(Op::Mul, DType::I64, &[value, by]);
                self.b.add(sum, product)
            }
        }
    }

    /// A loop reduces the subscript of a level whose fiber is not known yet, because a window over a level above is still
    /// open: later, each window is searched for.
    pub(super) fn warn_of_open_windows(&mut self, steps: &[Step], index: IndexId) {
        let mut found: Vec<Access> = Vec::new();
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
            let Source::Tensor(tensor, subs) = &access.source else { continue };
            let below = subs.iter().enumerate().skip(access.level + 1).find(|(level, sub)| {
                let searched = self.row(*tensor, *level).is_some_and(|row| !row.capabilities.random_access);
                searched && sub.part == Part::Whole && self.is_reduced_by(sub, index)
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

    /// Whether a loop moves a subscript that an inner one moves, too.
    fn is_reduced_by(&self, sub: &Sub, index: IndexId) -> bool {
        depends(&sub.node, index) && self.open_index(sub, index).is_some()
    }

    /// An index that a subscript waits for, other than this one.
    pub(super) fn open_index(&self, sub: &Sub, index: IndexId) -> Option<IndexId> {
        let mut found = None;
        sub.node.visit(&mut |node| match node {
            Node::Index(i) if *i != index && self.indices[i.index()].is_none() => found = Some(*i),
            _ => {}
        });
        found
    }
}
