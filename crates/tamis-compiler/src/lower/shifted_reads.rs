//! Pieces of one fiber that are read at several offsets: `A[i-1] and A[i] and A[i+1]`.
//!
//! - *In common*: where nothing but presence is stored, and all of neighbouring offsets are needed, what they have in common is each
//!   run with its ends drawn in. One list is walked instead of several copies of it. Runs that touch are one run here.
//! - *Meeting*: where pieces of several offsets are the same piece, so is all that lies below them. It is asked at each overlap, since
//!   what is the same is read once then.
//! - *Between*: where the outermost offsets are at two pieces that touch, each of the others is at one of these. If an operator takes all of them, and
//!   takes nothing twice, these two are all that it takes, as long as they are: one turn instead of one for each offset.

use super::Lowerer;
use super::node::{Access, Node, Source, Step, visit_steps};
use super::region::{COPIES, Region};
use super::segments::Walker;
use super::simplify;
use tamis_ir::algebra::{DType, Op, Value};
use tamis_ir::kernel::{ExprId, Stmt};
use tamis_ir::looplet::{Extents, Looplet, Payload, Pieces};
use tamis_ir::program::TensorId;

/// Copies of one list of runs, of which the one that is moved furthest up says where a common run begins, and the one that is moved
/// furthest down where it ends.
pub(super) struct Common {
    late: Pieces,
    early: Pieces,
}

impl Lowerer<'_> {
    /// What all of these have in common, if they are neighbours in one fiber.
    pub(super) fn in_common(&self, steps: &[Step], found: &[(u32, Pieces)]) -> Option<Common> {
        let accesses: Vec<&Access> = found.iter().map(|(id, _)| access_of(steps, *id)).collect::<Option<_>>()?;
        let (first, rest) = accesses.split_first()?;
        let Source::Tensor(tensor, _) = &first.source else { return None };
        let leaf = self.row(*tensor, first.level + 1).is_none() && self.values(*tensor).is_none();
        if rest.is_empty() || !leaf || !rest.iter().all(|other| is_same_fiber(first, other)) {
            return None;
        }
        let mut moved: Vec<(i64, &Pieces)> = Vec::new();
        for (_, pieces) in found {
            let plain = matches!(pieces.extents, Extents::Runs { .. })
                && pieces.scale == 1
                && !pieces.leads
                && pieces.window.is_none();
            let by = self.shift_of(pieces)?;
            moved.push((by, plain.then_some(pieces)?));
        }
        moved.sort_by_key(|(by, _)| *by);
        // With an offset left out, two runs may have what lies between them in common.
        let dense = moved.windows(2).all(|pair| pair[0].0.checked_add(1) == Some(pair[1].0));
        let (early, late) = (moved.first()?.1, moved.last()?.1);
        dense.then(|| Common { late: late.clone(), early: early.clone() })
    }

    /// How far pieces are moved along the loop, if that is known.
    fn shift_of(&self, pieces: &Pieces) -> Option<i64> {
        match pieces.shift.map(|shift| self.b.as_constant(shift)) {
            None => Some(0),
            Some(Some(Value::I64(by))) => Some(by),
            _ => None,
        }
    }

    /// A loop over the runs that neighbours have in common.
    pub(super) fn each_in_common(&mut self, region: Region, ids: &[u32], common: &Common, steps: Vec<Step>) {
        let Common { late, early } = common;
        let stored = Pieces { shift: None, ..late.clone() };
        let (inner, steps) = self.inner(ids, steps);
        // A run that ends before the region does, moved up, is of no use to it, nor are those behind one that ends behind it, moved down.
        let one = self.b.int(1);
        let start = late.seek(&mut self.b, "from", late.start, region.start);
        let last = self.b.sub(region.stop, one);
        let last = early.seek(&mut self.b, "to", start, last);
        let after = self.b.add(last, one);
        let stop = self.b.call_in(Op::Min, DType::I64, &[after, late.stop]);
        let stop = self.b.name("stop", stop);
        let most = self.b.sub(stop, start);
        let reserved = self.reserve_parts(region, ids, &steps, most);
        let cursor = self.b.variable_from("q", start);
        let q = self.b.get(cursor);
        let next = self.b.add(q, one);
        let body = self.in_block(|this| {
            let first = late.piece(&mut this.b, q).first.unwrap_or(region.start);
            let first = this.b.call_in(Op::Max, DType::I64, &[first, region.start]);
            let first = this.b.name("first", first);
            let more = this.b.call_in(Op::Lt, DType::I64, &[next, stop]);
            let reached = stored.piece(&mut this.b, q).end;
            let begins = stored.piece(&mut this.b, next).first.unwrap_or(reached);
            let touch = this.b.call_in(Op::Le, DType::I64, &[begins, reached]);
            let joined = this.b.call_in(Op::And, DType::Bool, &[more, touch]);
            this.b.emit(Stmt::While { cond: joined, body: vec![Stmt::Assign { var: cursor, value: next }] });
            let end = early.piece(&mut this.b, q).end;
            let end = this.b.call_in(Op::Min, DType::I64, &[end, region.stop]);
            let end = this.b.name("end", end);
            let meet = this.b.call_in(Op::Lt, DType::I64, &[first, end]);
            let part = Region { start: first, stop: end, ..region.part() };
            let then = this.in_block(|this| {
                let mut steps = steps;
                for id in ids {
                    steps = this.replace(steps, *id, &Payload::Child(q), None);
                }
                this.part(part, &inner, steps);
            });
            this.b.emit(Stmt::If { cond: meet, then, otherwise: Vec::new() });
            this.b.assign(cursor, next);
        });
        self.unreserve(reserved);
        let cond = self.b.call_in(Op::Lt, DType::I64, &[q, stop]);
        self.b.emit(Stmt::While { cond, body });
    }

    /// Those of the walkers that go over one fiber, and whose children are the same wherever their pieces are, if there are two or more.
    pub(super) fn meeting(&self, steps: &[Step], walkers: &[Walker]) -> Vec<usize> {
        if self.copies * 2 > COPIES {
            return Vec::new();
        }
        let found: Vec<Option<&Access>> = walkers
            .iter()
            .map(|walker| {
                let single = matches!(walker.pieces.extents, Extents::Runs { .. } | Extents::Ends(_));
                access_of(steps, walker.id).filter(|access| single && self.has_below(access))
            })
            .collect();
        let alike = |k: usize| -> Vec<usize> {
            let same = |other: &Access| found[k].is_some_and(|a| is_same_fiber(a, other) && is_same_below(a, other));
            (0..found.len()).filter(|other| found[*other].is_some_and(same)).collect()
        };
        let most = (0..found.len()).map(alike).max_by_key(Vec::len).unwrap_or_default();
        if most.len() < 2 { Vec::new() } else { most }
    }

    /// Of three or more walkers that may meet, those that are ahead of and behind all others, if one operator takes all of them, and nothing twice.
    pub(super) fn outermost(&self, steps: &[Step], walkers: &[Walker], meeting: &[usize]) -> Option<(usize, usize)> {
        if meeting.len() < 3 || self.copies * 3 > COPIES {
            return None;
        }
        let mut shifts: Vec<(i64, usize)> = Vec::new();
        for k in meeting {
            let pieces = &walkers[*k].pieces;
            let plain = pieces.scale == 1 && !pieces.leads && !pieces.mirrored && pieces.window.is_none();
            let by = self.shift_of(pieces)?;
            shifts.push((by, plain.then_some(*k)?));
        }
        shifts.sort_unstable();
        let ids: Vec<u32> = meeting.iter().map(|k| walkers[*k].id).collect();
        let (last, first) = (shifts.first()?.1, shifts.last()?.1);
        are_a_set(steps, &ids).then_some((first, last))
    }

    /// Whether the second of two walkers over one fiber is at the piece behind that of the first, with nothing between them.
    pub(super) fn side_by_side(&mut self, first: &Walker, last: &Walker) -> ExprId {
        let (here, there, one) = (self.b.get(first.cursor), self.b.get(last.cursor), self.b.int(1));
        let next = self.b.add(here, one);
        let next = self.b.call_in(Op::Eq, DType::I64, &[next, there]);
        let stored = Pieces { shift: None, ..first.pieces.clone() };
        let end = stored.piece(&mut self.b, here).end;
        let both = match stored.piece(&mut self.b, there).first {
            Some(begins) => {
                let touch = self.b.call_in(Op::Eq, DType::I64, &[begins, end]);
                self.b.call_in(Op::And, DType::Bool, &[next, touch])
            }
            None => next,
        };
        self.b.name("between", both)
    }

    fn has_below(&self, access: &Access) -> bool {
        matches!(&access.source, Source::Tensor(tensor, _) if self.row(*tensor, access.level + 1).is_some())
    }

    /// Makes room for a coordinate or run in each of at most so many parts, if they take no more than that.
    pub(super) fn reserve_parts(
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
            // A block holds something for each of its coordinates.
            if !matches!(&access.looplet, Some(Looplet::Pieces(p)) if !matches!(p.extents, Extents::Blocks { .. })) {
                return Vec::new();
            }
            self.levels_of.insert(*id, access.level);
            inside = self.replace(inside, *id, &Payload::Child(zero), None);
        }
        let inside = simplify::steps(inside, self.policy);
        if !self.repeats(region.index, &inside) {
            return Vec::new();
        }
        self.reserve(region.index, &inside, most, ids)
    }

    /// How many pieces walkers have together: more than their overlaps, where there are two or more.
    pub(super) fn lengths(&mut self, walkers: &[Walker]) -> ExprId {
        let mut sum = self.b.int(0);
        for walker in walkers {
            let length = self.b.sub(walker.pieces.stop, walker.pieces.start);
            sum = self.b.add(sum, length);
        }
        sum
    }
}

/// The access with this number, where pieces are left along the loop.
fn access_of(steps: &[Step], id: u32) -> Option<&Access> {
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

/// Whether an access that has come to pieces along this loop is nowhere outside of its tensor.
fn is_inside(node: &Node) -> bool {
    let Node::Access(access) = node else { return false };
    let Source::Tensor(_, subs) = &access.source else { return false };
    let below = subs.get(access.level + 1..).unwrap_or_default();
    access.missing.is_none() && below.iter().all(|sub| !sub.permissive || sub.inside)
}

/// Whether these accesses are operands of one operator, and nothing else, for which it does not matter in which order and how often it takes them.
fn are_a_set(steps: &[Step], ids: &[u32]) -> bool {
    /// The operands of an operator, and of those among them that are the same operator.
    fn operands<'a>(op: (Op, DType), nodes: &'a [Node], found: &mut Vec<&'a Node>) {
        for node in nodes {
            match node {
                Node::Call(inner, dtype, nodes) if (*inner, *dtype) == op => operands(op, nodes, found),
                // What is there is itself.
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

fn is_same_fiber(a: &Access, b: &Access) -> bool {
    let tensor = |access: &Access| match &access.source {
        Source::Tensor(tensor, _) => Some(*tensor),
        Source::Mask(..) => None,
    };
    tensor(a).is_some()
        && tensor(a) == tensor(b)
        && a.level == b.level
        && a.position == b.position
        && a.group_stop == b.group_stop
        && a.present == b.present
}

/// Whether the subscripts below the level that is looked at are the same.
fn is_same_below(a: &Access, b: &Access) -> bool {
    match (&a.source, &b.source) {
        (Source::Tensor(_, ours), Source::Tensor(_, theirs)) => ours.get(a.level + 1..) == theirs.get(b.level + 1..),
        _ => false,
    }
}
