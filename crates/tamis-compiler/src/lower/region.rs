//! Loops over regions: the lowerer takes the looplets of a region apart, by priority, until none is
//! left, and emits the loop.
//!
//! In: the steps of a loop body and a range of its index. Out: kernel statements for that range.
//! Subregions share the loop's index, and their bodies are simplified separately.

use super::Lowerer;
use super::assign::declared;
use super::bind::{BoundStorage, is_grouped};
use super::node::{Node, PartialAccess, ReadSource, Step, map_steps, visit_steps};
use super::simplify;
use tamis_ir::algebra::{DType, Op, Value};
use tamis_ir::diag::{Code, Diagnostic};
use tamis_ir::kernel::{ExprId, Stmt};
use tamis_ir::looplet::{Fiber, Located, Looplet, Payload, Phase, Segments, Spike};
use tamis_ir::program::{IndexId, Protocol, TensorId};
use tamis_tensor::levels::{LEVELS, LevelType, level_type};

/// A loop's index over `[start, stop)`.
#[derive(Clone, Copy)]
pub(super) struct Region {
    pub(super) index: IndexId,
    pub(super) start: ExprId,
    pub(super) stop: ExprId,
    /// The region covers every dimension that the index subscripts.
    pub(super) whole: bool,
    /// The region is a single coordinate.
    pub(super) point: bool,
    /// The region is not empty.
    pub(super) filled: bool,
    /// The subregions of the loop cover the whole loop together.
    pub(super) shared: bool,
    /// The region has few coordinates, so code size matters more than speed.
    pub(super) short: bool,
    /// The region is a chunk of a strip-mined loop, of this length unless it is the last chunk.
    pub(super) chunk: Option<u64>,
    /// The loop may still be specialised where reductions are final.
    pub(super) unversioned: bool,
}

impl Region {
    /// The common properties of subregions between the ends of segments.
    pub(super) fn subregion(self) -> Region {
        Region { whole: false, point: false, filled: true, shared: false, chunk: None, ..self }
    }
}

/// The presence of a cursor's element at the loop's coordinate.
#[derive(Clone, Copy)]
pub(super) struct Presence {
    /// The condition that it is present; none if it always is.
    pub(super) cond: Option<ExprId>,
    pub(super) group_stop: Option<ExprId>,
    /// The position may be loaded from in any case.
    pub(super) safe: bool,
}

impl Lowerer<'_> {
    pub(super) fn lower_loop(&mut self, index: IndexId, start: ExprId, stop: ExprId, whole: bool, body: Vec<Step>) {
        let variables = self.b.kernel().vars.len();
        let (start, stop) = (self.b.name("start", start), self.b.name("stop", stop));
        let mut body = body;
        self.check_before(index, start, stop, &mut body);
        let written = self.begin_fibers(index, &body);
        let known = self.invariant_accesses(index, &body);
        if known.checked || self.must_run(index, &body) {
            self.if_any_iteration(start, stop, |this| {
                let body = this.resolve_invariant(index, body, &known);
                this.lower_iterations(index, (start, stop), whole, true, body);
            });
        } else {
            let body = self.resolve_invariant(index, body, &known);
            self.lower_iterations(index, (start, stop), whole, false, body);
        }
        self.end_fibers(index, &written);
        self.own_variables(index, variables);
    }

    /// Emits the iterations of a loop; `filled`: there is at least one.
    fn lower_iterations(
        &mut self,
        index: IndexId,
        (start, stop): (ExprId, ExprId),
        whole: bool,
        filled: bool,
        body: Vec<Step>,
    ) {
        let cursors = self.begin_cursors(index, start, &body);
        // Tensors that the body declares do not exist yet.
        let inner = declared(&body);
        let fill_outside = self.outside_is_fill(&body, index);
        let mut known: Vec<(PartialAccess, bool)> = Vec::new();
        let body = map_steps(body, &mut |node| match node {
            Node::Access(access) if matches!(&access.source, ReadSource::Tensor(t, _) if inner.contains(t)) => {
                Node::Access(access)
            }
            Node::Access(access) => {
                let fill_outside = fill_outside.contains(&access.id);
                Node::Access(Box::new(self.unfurl_once(*access, index, (start, stop), fill_outside, &mut known)))
            }
            other => other,
        });
        let body = self.cut_windows(index, body);
        self.warn_of_open_windows(&body, index);
        let body = self.limit_copies(body);
        self.report_looplets(index, &body);
        self.warn_of_wide_windows(index, &body);
        let sparse = self.sparse_accesses(index, &body);
        let around = std::mem::replace(&mut self.sparse_along[index.index()], sparse);
        self.depth += 1;
        let chunk = self.chunks[index.index()].map(|(_, length)| length);
        let shared = whole || self.partition_range(index).is_some();
        let (point, short, unversioned) = (false, false, true);
        self.region(Region { index, start, stop, whole, point, filled, shared, short, chunk, unversioned }, body);
        self.depth -= 1;
        self.sparse_along[index.index()] = around;
        self.cursors.truncate(cursors);
    }

    /// Limits the copies of a body, one for each phase of its sequences: beyond the limit, accesses
    /// lose their structure and are looked up.
    fn limit_copies(&mut self, body: Vec<Step>) -> Vec<Step> {
        let mut found: Vec<(u32, bool, Looplet)> = Vec::new();
        visit_steps(&body, &mut |node| {
            if let Node::Access(access) = node
                && let Some(looplet) = &access.looplet
                && found.iter().all(|(id, ..)| *id != access.id)
            {
                found.push((access.id, matches!(access.source, ReadSource::Mask(..)), looplet.clone()));
            }
        });
        // Without its structure, a tensor costs every coordinate of the loop, but a mask only a
        // comparison for each.
        found.sort_by_key(|(_, is_mask, _)| *is_mask);
        let mut copies = self.copies;
        let mut flat: Vec<u32> = Vec::new();
        for (id, _, looplet) in found {
            match copies * self.subregion_count(&body, id, &looplet) {
                more if more <= COPIES => copies = more,
                _ => flat.push(id),
            }
        }
        map_steps(body, &mut |node| match node {
            Node::Access(mut access) if flat.contains(&access.id) => {
                // A looked-up access must be in bounds.
                let inside = match &access.source {
                    ReadSource::Tensor(_, subs) => subs.get(access.level).is_some_and(|sub| sub.inside),
                    ReadSource::Mask(..) => false,
                };
                let window = access.looplet.as_ref().is_some_and(Looplet::is_window);
                access.looplet = (inside && !window).then_some(Looplet::Lookup);
                access.id = access.own;
                Node::Access(access)
            }
            other => other,
        })
    }

    /// The number of subregions with work that a looplet splits a loop into.
    pub(super) fn subregion_count(&mut self, steps: &[Step], id: u32, looplet: &Looplet) -> usize {
        match looplet {
            Looplet::Thunk { body, .. } => self.subregion_count(steps, id, body),
            Looplet::Switch { then, .. } => self.subregion_count(steps, id, then),
            Looplet::Sequence { phases, .. } => {
                let subregion_count: usize =
                    phases.iter().map(|phase| self.subregion_count(steps, id, &phase.body)).sum();
                subregion_count.max(1)
            }
            Looplet::Spike(_) => 2,
            Looplet::Segments(segments) if segments.splits() => 3,
            Looplet::Run(payload) => {
                let rest = self.replace(steps.to_vec(), id, payload, None);
                usize::from(!simplify::steps(rest, self.policy).is_empty())
            }
            _ => 1,
        }
    }

    /// Appends the looplets of a loop to the `looplets` report.
    fn report_looplets(&mut self, index: IndexId, body: &[Step]) {
        let pad = "    ".repeat(self.depth);
        let mut text = format!("{pad}for {}", self.program.indices[index.index()]);
        let mut seen = Vec::new();
        visit_steps(body, &mut |node| {
            if let Node::Access(access) = node
                && let Some(looplet) = &access.looplet
                && !seen.contains(&access.id)
            {
                seen.push(access.id);
                let what = match &access.source {
                    ReadSource::Tensor(tensor, _) => {
                        format!("{} level {}", self.program.tensor(*tensor).name, access.level)
                    }
                    ReadSource::Mask(op, ..) => format!("mask {}", op.info().name),
                };
                text += &format!("\n{pad}    {what}: {}", looplet.show(self.b.kernel()));
            }
        });
        self.looplets.push(text);
    }

    /// Describes an access whose next subscript is the loop's index. Accesses that move along the
    /// same fiber in the same way share one looplet and one id; they differ in inner levels only.
    fn unfurl_once(
        &mut self,
        access: PartialAccess,
        index: IndexId,
        extent: (ExprId, ExprId),
        fill_outside: bool,
        known: &mut Vec<(PartialAccess, bool)>,
    ) -> PartialAccess {
        if let Some((other, _)) =
            known.iter().find(|(other, same)| *same == fill_outside && moves_together(&access, other))
        {
            return PartialAccess { id: other.id, looplet: other.looplet.clone(), ..access };
        }
        let access = self.unfurl_access(access, index, extent, fill_outside);
        if access.looplet.is_some() {
            known.push((access.clone(), fill_outside));
        }
        access
    }

    fn unfurl_access(
        &mut self,
        mut access: PartialAccess,
        index: IndexId,
        extent: (ExprId, ExprId),
        fill_outside: bool,
    ) -> PartialAccess {
        match access.source.clone() {
            ReadSource::Mask(op, on, other) if on == index => {
                let mut depends = false;
                other.visit(&mut |n| depends |= matches!(n, Node::Index(i) if self.indices[i.index()].is_none()));
                if !depends {
                    let bound = self.integer(&other);
                    access.looplet = Some(self.mask(op, bound));
                }
            }
            ReadSource::Tensor(tensor, _) => {
                if let BoundStorage::Levels { .. } = self.bound[tensor.index()].storage {
                    let looplet = self.unfurl_affine(&access, index, extent, fill_outside);
                    access.looplet = looplet.or_else(|| self.unfurl_fiber_set(&access, index, fill_outside));
                }
            }
            _ => {}
        }
        access
    }

    pub(super) fn unfurl(
        &mut self,
        tensor: TensorId,
        access: &PartialAccess,
        protocol: Option<Protocol>,
    ) -> Option<Looplet> {
        if protocol == Some(Protocol::Follow) {
            return Some(Looplet::Lookup);
        }
        let position = access.position.unwrap_or(self.b.int(0));
        let at = Located { position, present: access.present, group_stop: access.group_stop };
        let zero = self.b.int(0);
        let lead = |looplet| if protocol == Some(Protocol::Gallop) { as_leading(looplet) } else { looplet };
        if protocol == Some(Protocol::Gallop) {
            self.check_gallop(tensor, access);
        }
        let guarded = self.fiber(tensor, access.level, at, zero, |row, fiber| (row.unfurl)(fiber)).map(lead)?;
        match access.present {
            None => Some(guarded),
            Some(cond) => {
                let certain = Located { present: None, ..at };
                let then =
                    self.fiber(tensor, access.level, certain, zero, |row, fiber| (row.unfurl)(fiber)).map(lead)?;
                Some(Looplet::Switch { cond, then: Box::new(then), guarded: Box::new(guarded) })
            }
        }
    }

    /// Reports a level that does not support galloping, and suggests those that do.
    fn check_gallop(&mut self, tensor: TensorId, access: &PartialAccess) {
        let Some(row) = self.row(tensor, access.level).filter(|row| !row.capabilities.gallop) else { return };
        let able = LEVELS.iter().filter(|row| row.capabilities.gallop);
        let able: Vec<String> = able.map(|row| format!("`{}`", row.kind.name())).collect();
        let name = &self.program.tensor(tensor).name;
        let d = Diagnostic::new(
            Code::E0608,
            format!("level {} of `{name}` is `{}`, which cannot gallop", access.level, row.kind.name()),
        )
        .label(self.program.origin.stmt(access.stmt), "used here")
        .help(format!("store that level as {}", able.join(" or ")))
        .help("or leave the protocol out: `walk` is the default, and `follow` works for every level");
        let d = self.program.origin.attach(d);
        if self.errors.iter().all(|e| e.message != d.message) {
            self.errors.push(d);
        }
    }

    /// Queries a level about one of its fibers.
    pub(super) fn fiber<T>(
        &mut self,
        tensor: TensorId,
        level: usize,
        at: Located,
        index: ExprId,
        query: impl FnOnce(&LevelType, &mut Fiber) -> T,
    ) -> Option<T> {
        let BoundStorage::Levels { format, arrays, .. } = self.bound[tensor.index()].storage.clone() else {
            return None;
        };
        let extent = *self.bound[tensor.index()].extents.get(level)?;
        let name = format!("{}{level}", self.program.tensor(tensor).name);
        let row = level_type(format.levels()[level].kind).ok()?;
        let mut fiber = Fiber {
            arrays: &arrays[level],
            position: at.position,
            group_stop: at.group_stop,
            present: at.present,
            grouped: is_grouped(&format, level),
            extent,
            index,
            name: &name,
            builder: &mut self.b,
        };
        Some(query(row, &mut fiber))
    }

    /// The looplet of a mask: a sequence of runs where `index op bound` holds or not.
    fn mask(&mut self, op: Op, bound: ExprId) -> Looplet {
        let one = self.b.int(1);
        let after = self.b.add(bound, one);
        let run = |value| Looplet::Run(Payload::Truth(value));
        let sequence = |phases| Looplet::Sequence { phases, inside: false };
        let two = |stop, first| {
            sequence(vec![Phase { stop: Some(stop), body: run(first) }, Phase { stop: None, body: run(!first) }])
        };
        match op {
            Op::Lt => two(bound, true),
            Op::Le => two(after, true),
            Op::Ge => two(bound, false),
            Op::Gt => two(after, false),
            _ => {
                let equal = op == Op::Eq;
                let spike = Spike { body: Payload::Truth(!equal), tail: Payload::Truth(equal), at: bound };
                sequence(vec![
                    Phase { stop: Some(after), body: Looplet::Spike(spike) },
                    Phase { stop: None, body: run(!equal) },
                ])
            }
        }
    }

    /// Lowers statements over a region.
    pub(super) fn region(&mut self, region: Region, steps: Vec<Step>) {
        let steps = simplify::steps(steps, self.policy);
        if steps.is_empty() {
            return;
        }
        let mut first: Option<&PartialAccess> = None;
        visit_steps(&steps, &mut |node| {
            if let Node::Access(access) = node
                && let Some(looplet) = &access.looplet
                && first.and_then(|f| f.looplet.as_ref()).is_none_or(|f| f.priority() < looplet.priority())
            {
                first = Some(access);
            }
        });
        let first = first.cloned();
        // Preambles and switches precede all versions of the loop.
        let set_up = first.as_ref().and_then(|access| access.looplet.as_ref());
        if region.unversioned && !matches!(set_up, Some(Looplet::Switch { .. } | Looplet::Thunk { .. })) {
            return self.short_circuit(Region { unversioned: false, ..region }, steps);
        }
        let Some((id, looplet)) = first.and_then(|access| Some((access.id, access.looplet?))) else {
            return self.lookups(region, steps);
        };
        match looplet {
            Looplet::Switch { cond, then, guarded } => self.switch(region, steps, id, cond, *then, *guarded),
            Looplet::Thunk { preamble, body } => self.thunk(region, steps, id, preamble, *body),
            Looplet::Run(payload) => self.run(region, steps, id, &payload),
            Looplet::Sequence { phases, inside } => self.sequence(region, steps, id, phases, inside),
            Looplet::Spike(spike) => self.spike(region, steps, id, spike),
            Looplet::Jumper(_) => self.jumpers(region, steps),
            Looplet::Fibers { level, window, mirrored } => self.fibers(region, steps, id, level, window, mirrored),
            Looplet::Segments(_) => self.segments(region, steps),
            Looplet::Stepper(_) => self.steppers(region, steps),
            Looplet::Block { .. } | Looplet::Lookup => self.lookups(region, steps),
        }
    }

    /// Lowers statements at one coordinate, in a new block: levels without structure locate the
    /// coordinate, and append slots open and close.
    pub(super) fn at(&mut self, index: IndexId, i: ExprId, steps: Vec<Step>) -> Vec<Stmt> {
        let before = self.indices[index.index()].replace(i);
        let mut guarded = false;
        let block = self.in_block(|this| {
            let (steps, some) = this.narrow_windows(index, steps, &|access| !is_looked_up(access));
            guarded |= this.visit_if(index, some, |this| {
                let watched = this.watched(index, &steps);
                let opened = this.open_slots(index, &steps);
                let looked_up = looked_up(&steps);
                let steps = this.look_up(i, steps);
                let (steps, some) = this.narrow_windows(index, steps, &|access| looked_up.contains(&access.own));
                let inner = this.visit_if(index, some, |this| {
                    this.steps(steps);
                    false
                });
                this.close_slots(opened);
                this.break_version(index, i, &watched);
                inner
            });
        });
        self.indices[index.index()] = before;
        if guarded { block } else { self.with_visit(index, block) }
    }

    /// Emits the body of a loop at one coordinate, under a condition if there is one; then visits
    /// are counted where it holds. Gives true if they are counted already.
    fn visit_if(&mut self, index: IndexId, some: Option<ExprId>, emit: impl FnOnce(&mut Self) -> bool) -> bool {
        let Some(cond) = some else { return emit(self) };
        let mut counted = false;
        let then = self.under(|this| counted = emit(this));
        let then = if counted { then } else { self.with_visit(index, then) };
        self.b.emit(Stmt::If { cond, then, otherwise: Vec::new() });
        true
    }

    /// Resolves an access by one level.
    pub(super) fn replace(
        &mut self,
        steps: Vec<Step>,
        id: u32,
        payload: &Payload,
        present: Option<Presence>,
    ) -> Vec<Step> {
        map_steps(steps, &mut |node| {
            let Node::Access(mut access) = node else { return node };
            if access.id != id {
                return Node::Access(access);
            }
            access.looplet = None;
            match (payload, &access.source) {
                (Payload::Truth(value), _) => Node::Known(Value::Bool(*value)),
                (Payload::Missing, _) => Node::Missing,
                // It is located and checked at each coordinate.
                (Payload::Outside, _) => {
                    access.id = access.own;
                    Node::Access(access)
                }
                (Payload::Fill, ReadSource::Tensor(tensor, subs)) => {
                    self.absent(*tensor, subs.get(access.level + 1..).unwrap_or_default())
                }
                (Payload::Child(position), _) => {
                    access.id = access.own;
                    access.level += 1;
                    access.position = Some(*position);
                    let cursors = access.fibers.iter().position(|fibers| fibers.level == access.level);
                    let cursors = cursors.map(|k| access.fibers.remove(k));
                    access.window = cursors.map(|fibers| (self.edge(&fibers, *position), fibers.loops));
                    access.group_stop = None;
                    access.safe = access.present.is_none() || access.safe;
                    if let Some(presence) = present {
                        access.group_stop = presence.group_stop;
                        access.safe &= presence.safe;
                        access.present = self.both(access.present, presence.cond);
                    }
                    Node::Access(access)
                }
                (Payload::Window(edge), _) => {
                    access.id = access.own;
                    access.window = edge.map(|edge| (edge, self.entered(&access) + 1));
                    // The whole window was found to be in bounds, unless that does not matter.
                    let level = access.level;
                    if let ReadSource::Tensor(_, subs) = &mut access.source
                        && let Some(sub) = subs.get_mut(level)
                    {
                        sub.inside |= !sub.permissive;
                    }
                    access.present = self.both(access.present, present.and_then(|presence| presence.cond));
                    Node::Access(access)
                }
                (Payload::Fill, ReadSource::Mask(..)) => Node::Access(access),
            }
        })
    }

    /// The conjunction of both conditions, if they exist.
    pub(super) fn both(&mut self, a: Option<ExprId>, b: Option<ExprId>) -> Option<ExprId> {
        match (a, b) {
            (Some(a), Some(b)) => Some(self.b.call_in(Op::And, DType::Bool, &[a, b])),
            (a, b) => a.or(b),
        }
    }

    /// Restricts the presence of an access by a condition.
    pub(super) fn guard(&mut self, steps: Vec<Step>, id: u32, cond: ExprId) -> Vec<Step> {
        map_steps(steps, &mut |node| match node {
            Node::Access(mut access) if access.id == id => {
                access.present = Some(match access.present {
                    Some(present) => self.b.call_in(Op::And, DType::Bool, &[present, cond]),
                    None => cond,
                });
                access.safe = false;
                Node::Access(access)
            }
            other => other,
        })
    }

    /// Replaces the looplet of an access.
    pub(super) fn set_looplet(&self, steps: Vec<Step>, id: u32, looplet: &Looplet) -> Vec<Step> {
        map_steps(steps, &mut |node| match node {
            Node::Access(mut access) if access.id == id => {
                access.looplet = Some(looplet.clone());
                Node::Access(access)
            }
            other => other,
        })
    }

    /// True if nothing is left of statements where these accesses hold their fill values.
    pub(super) fn idle_without(&mut self, steps: &[Step], ids: &[u32]) -> bool {
        self.without(steps, ids).is_empty()
    }

    /// The statements where these accesses hold their fill values, simplified.
    pub(super) fn without(&mut self, steps: &[Step], ids: &[u32]) -> Vec<Step> {
        let mut rest = steps.to_vec();
        for id in ids {
            rest = self.replace(rest, *id, &Payload::Fill, None);
        }
        simplify::steps(rest, self.policy)
    }
}

/// True if an access is located at each coordinate of the loop.
fn is_looked_up(access: &PartialAccess) -> bool {
    matches!(access.looplet, Some(Looplet::Lookup | Looplet::Block { .. }))
}

/// The accesses that are located at each coordinate of the loop.
fn looked_up(steps: &[Step]) -> Vec<u32> {
    let mut found = Vec::new();
    visit_steps(steps, &mut |node| {
        if let Node::Access(access) = node
            && is_looked_up(access)
        {
            found.push(access.own);
        }
    });
    found
}

/// True if an access is at the same fiber as another one, and moves along it by the same
/// subscripts.
fn moves_together(a: &PartialAccess, b: &PartialAccess) -> bool {
    let same_fiber = a.level == b.level
        && a.position == b.position
        && a.group_stop == b.group_stop
        && a.present == b.present
        && a.safe == b.safe
        && a.missing == b.missing
        && a.window == b.window
        && a.fibers == b.fibers;
    match (&a.source, &b.source) {
        (ReadSource::Tensor(t, ours), ReadSource::Tensor(other, theirs)) => {
            // For fiber sets, windows over the levels between must be the same, too.
            let last = match &b.looplet {
                Some(Looplet::Fibers { level, .. }) => *level,
                _ => b.level,
            };
            same_fiber && t == other && ours.get(a.level..=last) == theirs.get(b.level..=last)
        }
        _ => a.id == b.id,
    }
}

/// The maximum number of copies of a body because of sequences around and in it.
pub(super) const COPIES: usize = 32;

/// The same structure, as a leading one (galloping).
fn as_leading(looplet: Looplet) -> Looplet {
    match looplet {
        Looplet::Stepper(stepper) => Looplet::Jumper(stepper),
        Looplet::Segments(segments) => Looplet::Segments(Segments { leads: true, ..segments }),
        Looplet::Thunk { preamble, body } => Looplet::Thunk { preamble, body: Box::new(as_leading(*body)) },
        other => other,
    }
}
