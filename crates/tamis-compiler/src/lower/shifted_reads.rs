//! Shifted reads: runs and segments of one fiber that are read at several offsets, as in `A[i-1]
//! and A[i] and A[i+1]`.
//!
//! - *Common runs*: if a level stores presence only, and all of several consecutive offsets are
//!   required, their intersection is each run with its ends drawn in. One cursor walks the list
//!   instead of one for each offset. Adjacent runs count as one run here.
//! - *Coinciding segments*: if segments at several offsets are the same segment, so is everything
//!   below them. A test at each overlap lets the body read it once.
//! - *Adjacent segments*: if the outermost offsets are at two adjacent segments, every other offset
//!   is at one of these. An idempotent operator over all of them then reads two segments, in one
//!   iteration instead of one for each offset.

use super::Lowerer;
use super::node::{Node, PartialAccess, ReadSource, Step, visit_steps};
use super::region::{COPIES, Region};
use super::segments::SegmentCursor;
use super::simplify;
use tamis_ir::algebra::{DType, Op, Value};
use tamis_ir::kernel::{ExprId, Stmt};
use tamis_ir::looplet::{Extents, Looplet, Payload, Segments};
use tamis_ir::program::TensorId;

/// A list of runs at its first and last offset: the copy shifted furthest up determines the start
/// of a common run, and the copy shifted furthest down its end.
pub(super) struct RunIntersection {
    late: Segments,
    early: Segments,
}

impl Lowerer<'_> {
    /// The runs that all these accesses have in common, if they read one fiber at consecutive
    /// offsets.
    pub(super) fn common_runs(&self, steps: &[Step], found: &[(u32, Segments)]) -> Option<RunIntersection> {
        let accesses: Vec<&PartialAccess> = found.iter().map(|(id, _)| access_of(steps, *id)).collect::<Option<_>>()?;
        let (first, rest) = accesses.split_first()?;
        let ReadSource::Tensor(tensor, _) = &first.source else { return None };
        let leaf = self.row(*tensor, first.level + 1).is_none() && self.values(*tensor).is_none();
        if rest.is_empty() || !leaf || !rest.iter().all(|other| is_same_fiber(first, other)) {
            return None;
        }
        let mut shifted: Vec<(i64, &Segments)> = Vec::new();
        for (_, segments) in found {
            let plain = matches!(segments.extents, Extents::Runs { .. })
                && segments.scale == 1
                && !segments.leads
                && segments.window.is_none();
            let by = self.shift_of(segments)?;
            shifted.push((by, plain.then_some(segments)?));
        }
        shifted.sort_by_key(|(by, _)| *by);
        // If an offset is left out, two runs may have the gap between them in common.
        let dense = shifted.windows(2).all(|pair| pair[0].0.checked_add(1) == Some(pair[1].0));
        let (early, late) = (shifted.first()?.1, shifted.last()?.1);
        dense.then(|| RunIntersection { late: late.clone(), early: early.clone() })
    }

    /// The offset of segments along the loop, if it is known.
    fn shift_of(&self, segments: &Segments) -> Option<i64> {
        match segments.shift.map(|shift| self.b.as_constant(shift)) {
            None => Some(0),
            Some(Some(Value::I64(by))) => Some(by),
            _ => None,
        }
    }

    /// A loop over the runs that shifted reads have in common.
    pub(super) fn each_common_run(&mut self, region: Region, ids: &[u32], common: &RunIntersection, steps: Vec<Step>) {
        let RunIntersection { late, early } = common;
        let stored = Segments { shift: None, ..late.clone() };
        let (inner, steps) = self.inner(ids, steps);
        // The loop starts at the first run that, shifted up, ends inside of the region; it ends
        // with the last run that, shifted down, starts inside.
        let one = self.b.int(1);
        let start = late.seek(&mut self.b, "from", late.start, region.start);
        let last = self.b.sub(region.stop, one);
        let last = early.seek(&mut self.b, "to", start, last);
        let after = self.b.add(last, one);
        let stop = self.b.call_in(Op::Min, DType::I64, &[after, late.stop]);
        let stop = self.b.name("stop", stop);
        let most = self.b.sub(stop, start);
        let reserved = self.reserve_segments(region, ids, &steps, most);
        let cursor = self.b.variable_from("q", start);
        let q = self.b.get(cursor);
        let next = self.b.add(q, one);
        let body = self.in_block(|this| {
            let first = late.segment(&mut this.b, q).first.unwrap_or(region.start);
            let first = this.b.call_in(Op::Max, DType::I64, &[first, region.start]);
            let first = this.b.name("first", first);
            let more = this.b.call_in(Op::Lt, DType::I64, &[next, stop]);
            let reached = stored.segment(&mut this.b, q).end;
            let begins = stored.segment(&mut this.b, next).first.unwrap_or(reached);
            let touch = this.b.call_in(Op::Le, DType::I64, &[begins, reached]);
            let joined = this.b.call_in(Op::And, DType::Bool, &[more, touch]);
            this.b.emit(Stmt::While { cond: joined, body: vec![Stmt::Assign { var: cursor, value: next }] });
            let end = early.segment(&mut this.b, q).end;
            let end = this.b.call_in(Op::Min, DType::I64, &[end, region.stop]);
            let end = this.b.name("end", end);
            let overlap = this.b.call_in(Op::Lt, DType::I64, &[first, end]);
            let subregion = Region { start: first, stop: end, ..region.subregion() };
            let then = this.in_block(|this| {
                let mut steps = steps;
                for id in ids {
                    steps = this.replace(steps, *id, &Payload::Child(q), None);
                }
                this.subregion(subregion, &inner, steps);
            });
            this.b.emit(Stmt::If { cond: overlap, then, otherwise: Vec::new() });
            this.b.assign(cursor, next);
        });
        self.unreserve(reserved);
        let cond = self.b.call_in(Op::Lt, DType::I64, &[q, stop]);
        self.b.emit(Stmt::While { cond, body });
    }

    /// The cursors over one fiber whose children are equal wherever their segments are, if there
    /// are at least two.
    pub(super) fn coinciding(&self, steps: &[Step], cursors: &[SegmentCursor]) -> Vec<usize> {
        if self.copies * 2 > COPIES {
            return Vec::new();
        }
        let found: Vec<Option<&PartialAccess>> = cursors
            .iter()
            .map(|cursor| {
                let single = matches!(cursor.segments.extents, Extents::Runs { .. } | Extents::Ends(_));
                access_of(steps, cursor.id).filter(|access| single && self.has_below(access))
            })
            .collect();
        let equal = |k: usize| -> Vec<usize> {
            let same =
                |other: &PartialAccess| found[k].is_some_and(|a| is_same_fiber(a, other) && is_same_below(a, other));
            (0..found.len()).filter(|other| found[*other].is_some_and(same)).collect()
        };
        let most = (0..found.len()).map(equal).max_by_key(Vec::len).unwrap_or_default();
        if most.len() < 2 { Vec::new() } else { most }
    }

    /// Of at least three coinciding cursors, the first and the last one by offset, if one
    /// idempotent operator reads all of them.
    pub(super) fn outermost(
        &self,
        steps: &[Step],
        cursors: &[SegmentCursor],
        coinciding: &[usize],
    ) -> Option<(usize, usize)> {
        if coinciding.len() < 3 || self.copies * 3 > COPIES {
            return None;
        }
        let mut shifts: Vec<(i64, usize)> = Vec::new();
        for k in coinciding {
            let segments = &cursors[*k].segments;
            let plain = segments.scale == 1 && !segments.leads && !segments.mirrored && segments.window.is_none();
            let by = self.shift_of(segments)?;
            shifts.push((by, plain.then_some(*k)?));
        }
        shifts.sort_unstable();
        let ids: Vec<u32> = coinciding.iter().map(|k| cursors[*k].id).collect();
        let (last, first) = (shifts.first()?.1, shifts.last()?.1);
        is_idempotent_reduction(steps, &ids).then_some((first, last))
    }

    /// True if the second of two cursors over one fiber is at the segment right after that of the
    /// first, without a gap.
    pub(super) fn are_adjacent(&mut self, first: &SegmentCursor, last: &SegmentCursor) -> ExprId {
        let (here, there, one) = (self.b.get(first.position), self.b.get(last.position), self.b.int(1));
        let next = self.b.add(here, one);
        let next = self.b.call_in(Op::Eq, DType::I64, &[next, there]);
        let stored = Segments { shift: None, ..first.segments.clone() };
        let end = stored.segment(&mut self.b, here).end;
        let both = match stored.segment(&mut self.b, there).first {
            Some(begins) => {
                let touch = self.b.call_in(Op::Eq, DType::I64, &[begins, end]);
                self.b.call_in(Op::And, DType::Bool, &[next, touch])
            }
            None => next,
        };
        self.b.name("between", both)
    }

    fn has_below(&self, access: &PartialAccess) -> bool {
        matches!(&access.source, ReadSource::Tensor(tensor, _) if self.row(*tensor, access.level + 1).is_some())
    }

    /// Reserves capacity for one coordinate or run in each of at most `most` subregions, if that
    /// suffices.
    pub(super) fn reserve_segments(
        &mut self,
        region: Region,
        ids: &[u32],
        steps: &[Step],
        most: ExprId,
    ) -> Vec<(TensorId, usize)> {
        let zero = self.b.int(0);
        let mut inside = steps.to_vec();
        for id in ids {
            let Some(access) = access_of(&inside, *id) else { return Vec::new() };
            // A block has an element for each of its coordinates.
            if !matches!(&access.looplet, Some(Looplet::Segments(p)) if !matches!(p.extents, Extents::Blocks { .. })) {
                return Vec::new();
            }
            self.levels_of.insert(*id, access.level);
            inside = self.replace(inside, *id, &Payload::Child(zero), None);
        }
        let inside = simplify::steps(inside, self.policy);
        if !self.collapses(region.index, &inside) {
            return Vec::new();
        }
        self.reserve(region.index, &inside, most, ids)
    }

    /// The total number of segments of all cursors: an upper bound on their overlaps, if there are
    /// at least two.
    pub(super) fn lengths(&mut self, cursors: &[SegmentCursor]) -> ExprId {
        let mut sum = self.b.int(0);
        for cursor in cursors {
            let length = self.b.sub(cursor.segments.stop, cursor.segments.start);
            sum = self.b.add(sum, length);
        }
        sum
    }
}

/// The access with this id.
fn access_of(steps: &[Step], id: u32) -> Option<&PartialAccess> {
    let mut found = None;
    visit_steps(steps, &mut |node| {
        if let Node::Access(access) = node
            && access.id == id
        {
            found = Some(&**access);
        }
    });
    found
}

/// True if an access is known to be in bounds at this loop and below.
fn is_inside(node: &Node) -> bool {
    let Node::Access(access) = node else { return false };
    let ReadSource::Tensor(_, subs) = &access.source else { return false };
    let below = subs.get(access.level + 1..).unwrap_or_default();
    access.missing.is_none() && below.iter().all(|sub| !sub.permissive || sub.inside)
}

/// True if these accesses are operands of one idempotent, commutative and associative operator, and
/// are read nowhere else.
fn is_idempotent_reduction(steps: &[Step], ids: &[u32]) -> bool {
    /// The operands of nested calls of one operator.
    fn operands<'a>(op: (Op, DType), nodes: &'a [Node], found: &mut Vec<&'a Node>) {
        for node in nodes {
            match node {
                Node::Call(inner, dtype, nodes) if (*inner, *dtype) == op => operands(op, nodes, found),
                // An element in bounds is never missing, so `coalesce` gives its first operand.
                Node::Call(Op::Coalesce, _, nodes) if nodes.first().is_some_and(is_inside) => found.push(&nodes[0]),
                _ => found.push(node),
            }
        }
    }
    let is_one = |node: &Node| matches!(node, Node::Access(access) if ids.contains(&access.id));
    let (mut all, mut most) = (0, 0);
    visit_steps(steps, &mut |node| {
        all += usize::from(is_one(node));
        if let Node::Call(op, dtype, nodes) = node {
            let info = op.info();
            if info.idempotent && info.commutative && info.associative {
                let mut found = Vec::new();
                operands((*op, *dtype), nodes, &mut found);
                most = most.max(found.iter().filter(|node| is_one(node)).count());
            }
        }
    });
    all == ids.len() && most == all
}

fn is_same_fiber(a: &PartialAccess, b: &PartialAccess) -> bool {
    let tensor = |access: &PartialAccess| match &access.source {
        ReadSource::Tensor(tensor, _) => Some(*tensor),
        ReadSource::Mask(..) => None,
    };
    tensor(a).is_some()
        && tensor(a) == tensor(b)
        && a.level == b.level
        && a.position == b.position
        && a.group_stop == b.group_stop
        && a.present == b.present
}

/// True if the subscripts below the current level are equal.
fn is_same_below(a: &PartialAccess, b: &PartialAccess) -> bool {
    match (&a.source, &b.source) {
        (ReadSource::Tensor(_, ours), ReadSource::Tensor(_, theirs)) => {
            ours.get(a.level + 1..) == theirs.get(b.level + 1..)
        }
        _ => false,
    }
}
