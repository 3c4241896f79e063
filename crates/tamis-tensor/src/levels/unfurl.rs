//! Unfurling of levels: the looplet of one fiber in a kernel, and the location of one coordinate.
//! Each row of [`super::LEVELS`] names its functions.

use tamis_ir::DType;
use tamis_ir::algebra::Op;
use tamis_ir::kernel::{BufferId, ExprId, Stmt};
use tamis_ir::looplet::{Below, Extents, Fiber, Located, Looplet, Payload, Phase, Segments, Spike, Stepper};

/// `dense`: the position of every coordinate is computed.
pub(super) fn dense(_: &mut Fiber) -> Looplet {
    Looplet::Lookup
}

/// `sparse`, `hash`: a coordinate list; children are at its positions.
pub(super) fn compressed(fiber: &mut Fiber) -> Looplet {
    listed(fiber, Below::Position)
}

/// `bytemap`: the list of set coordinates; children are at the positions of a dense level.
pub(super) fn bytemap(fiber: &mut Fiber) -> Looplet {
    let below = Below::Coordinate(fiber.dense_base());
    listed(fiber, below)
}

/// `singleton`: one coordinate, and the fill on both sides; below a group, one coordinate for each
/// position.
pub(super) fn singleton(fiber: &mut Fiber) -> Looplet {
    let crd = fiber.array("crd");
    if let Some(stop) = fiber.group_stop {
        let (start, below) = (fiber.position, Below::Position);
        return list(fiber, crd, start, stop, below);
    }
    let mut only = fiber.builder.load(crd, fiber.position);
    if let Some(present) = fiber.present {
        // An absent fiber gets a coordinate after all others, because it has no position to load
        // one from.
        only = fiber.builder.call_in(Op::Select, DType::I64, &[present, only, fiber.extent]);
    }
    let (only, preamble) = named(fiber, "only", only);
    let one = fiber.builder.int(1);
    let after = fiber.builder.add(only, one);
    let spike = Spike { body: Payload::Fill, tail: Payload::Child(fiber.position), at: only };
    let phases = vec![
        Phase { stop: Some(after), body: Looplet::Spike(spike) },
        Phase { stop: None, body: Looplet::Run(Payload::Fill) },
    ];
    let body = Looplet::Sequence { phases, inside: false };
    Looplet::Thunk { preamble: vec![preamble], body: Box::new(body) }
}

/// `runs`: adjacent runs without gaps.
pub(super) fn runs(fiber: &mut Fiber) -> Looplet {
    let extents = Extents::Ends(fiber.array("end"));
    // An absent fiber has no runs.
    let covers = fiber.present.is_none();
    segments(fiber, extents, covers)
}

/// `sparse_runs`: runs, with the fill between them.
pub(super) fn sparse_runs(fiber: &mut Fiber) -> Looplet {
    let extents = Extents::Runs { starts: fiber.array("start"), ends: fiber.array("end") };
    segments(fiber, extents, false)
}

/// `blocks`: blocks, with the fill between them.
pub(super) fn blocks(fiber: &mut Fiber) -> Looplet {
    let extents = Extents::Blocks { lasts: fiber.array("crd"), offsets: fiber.array("ofs") };
    segments(fiber, extents, false)
}

/// `interval`: one run, and the fill on both sides.
pub(super) fn interval(fiber: &mut Fiber) -> Looplet {
    let (first, end) = ends_of_interval(fiber);
    let position = fiber.position;
    one_piece(fiber, first, end, |_, _| Looplet::Run(Payload::Child(position)))
}

/// `band`: one block, and the fill on both sides.
pub(super) fn band(fiber: &mut Fiber) -> Looplet {
    let (first, end, stop) = ends_of_band(fiber);
    one_piece(fiber, first, end, |fiber, end| Looplet::Block { base: fiber.builder.sub(stop, end), stride: 1 })
}

/// The fill, a segment from `first` to `end`, and the fill again.
fn one_piece(
    fiber: &mut Fiber,
    first: ExprId,
    end: ExprId,
    holds: impl FnOnce(&mut Fiber, ExprId) -> Looplet,
) -> Looplet {
    let (first, first_named) = named(fiber, "first", first);
    let (end, end_named) = named(fiber, "end", end);
    let phases = vec![
        Phase { stop: Some(first), body: Looplet::Run(Payload::Fill) },
        Phase { stop: Some(end), body: holds(fiber, end) },
        Phase { stop: None, body: Looplet::Run(Payload::Fill) },
    ];
    let body = Looplet::Sequence { phases, inside: true };
    Looplet::Thunk { preamble: vec![first_named, end_named], body: Box::new(body) }
}

/// The bounds of the run of an interval; an absent fiber has an empty one.
fn ends_of_interval(fiber: &mut Fiber) -> (ExprId, ExprId) {
    let (starts, ends) = (fiber.array("start"), fiber.array("end"));
    let (first, end) = (fiber.builder.load(starts, fiber.position), fiber.builder.load(ends, fiber.position));
    (guarded(fiber, first), guarded(fiber, end))
}

/// The bounds of the block of a band, and the position after its last child; an absent fiber has an
/// empty block.
fn ends_of_band(fiber: &mut Fiber) -> (ExprId, ExprId, ExprId) {
    let (lasts, offsets, position) = (fiber.array("crd"), fiber.array("ofs"), fiber.position);
    let b = &mut *fiber.builder;
    let one = b.int(1);
    let next = b.add(position, one);
    let (from, to, last) = (b.load(offsets, position), b.load(offsets, next), b.load(lasts, position));
    // An empty band has a last coordinate, even if the dimension has none: it starts and ends after
    // it.
    let end = b.add(last, one);
    let end = b.call_in(Op::Min, DType::I64, &[end, fiber.extent]);
    let length = b.sub(to, from);
    let (end, length, to) = (guarded(fiber, end), guarded(fiber, length), guarded(fiber, to));
    (fiber.builder.sub(end, length), end, to)
}

/// A number that is 0 if the fiber is absent.
fn guarded(fiber: &mut Fiber, value: ExprId) -> ExprId {
    let zero = fiber.builder.int(0);
    match fiber.present {
        Some(present) => fiber.builder.call_in(Op::Select, DType::I64, &[present, value, zero]),
        None => value,
    }
}

fn listed(fiber: &mut Fiber, below: Below) -> Looplet {
    let coordinates = fiber.array("crd");
    with_bounds(fiber, |fiber, start, stop| list(fiber, coordinates, start, stop, below))
}

fn list(fiber: &Fiber, coordinates: BufferId, start: ExprId, stop: ExprId, below: Below) -> Looplet {
    let grouped = fiber.grouped;
    Looplet::Stepper(Stepper {
        coordinates,
        start,
        stop,
        below,
        grouped,
        shift: None,
        mirrored: false,
        descending: false,
        within: None,
        sought: None,
        ended: None,
        until: None,
    })
}

fn segments(fiber: &mut Fiber, extents: Extents, covers: bool) -> Looplet {
    with_bounds(fiber, |_, start, stop| {
        Looplet::Segments(Segments {
            start,
            stop,
            extents,
            covers,
            scale: 1,
            shift: None,
            leads: false,
            window: None,
            mirrored: false,
            sought: None,
            ended: None,
        })
    })
}

/// A looplet between the first and the end position of the fiber, which become variables.
fn with_bounds(fiber: &mut Fiber, body: impl FnOnce(&Fiber, ExprId, ExprId) -> Looplet) -> Looplet {
    let (start, stop) = bounds(fiber);
    let (start, preamble_start) = named(fiber, "start", start);
    let (stop, preamble_stop) = named(fiber, "stop", stop);
    let body = body(fiber, start, stop);
    Looplet::Thunk { preamble: vec![preamble_start, preamble_stop], body: Box::new(body) }
}

/// The bounds of the fiber's list; an absent fiber has an empty one.
fn bounds(fiber: &mut Fiber) -> (ExprId, ExprId) {
    let pos = fiber.array("pos");
    let (position, present) = (fiber.position, fiber.present);
    let b = &mut *fiber.builder;
    let (zero, one) = (b.int(0), b.int(1));
    let next = b.add(position, one);
    let (start, stop) = (b.load(pos, position), b.load(pos, next));
    match present {
        Some(present) => {
            let mut guard = |value| b.call_in(Op::Select, DType::I64, &[present, value, zero]);
            (guard(start), guard(stop))
        }
        None => (start, stop),
    }
}

fn named(fiber: &mut Fiber, what: &str, value: ExprId) -> (ExprId, Stmt) {
    let var = fiber.builder.new_var(format!("{}_{what}", fiber.name), DType::I64, false);
    (fiber.builder.get(var), Stmt::Let { var, value })
}

// One coordinate

/// Locates `fiber.index` in a dense level.
pub(super) fn locate_dense(fiber: &mut Fiber) -> Located {
    Located { position: fiber.dense_child(), present: fiber.present, group_stop: None }
}

/// Locates `fiber.index` in a coordinate list, by bisection.
pub(super) fn locate_compressed(fiber: &mut Fiber) -> Located {
    let crd = fiber.array("crd");
    let (start, stop) = bounds(fiber);
    search(fiber, crd, start, stop)
}

/// Locates `fiber.index` in a byte map, by its flag.
pub(super) fn locate_bytemap(fiber: &mut Fiber) -> Located {
    let flags = fiber.array("flags");
    let position = fiber.dense_child();
    let flag = fiber.builder.load(flags, position);
    let zero = fiber.builder.int(0);
    let set = fiber.builder.call_in(Op::Ne, DType::I64, &[flag, zero]);
    Located { position, present: Some(both(fiber, set)), group_stop: None }
}

/// Compares `fiber.index` with the only coordinate, or searches those of a group.
pub(super) fn locate_singleton(fiber: &mut Fiber) -> Located {
    let crd = fiber.array("crd");
    let position = fiber.position;
    if let Some(stop) = fiber.group_stop {
        return search(fiber, crd, position, stop);
    }
    let only = fiber.builder.load(crd, position);
    let same = fiber.builder.call_in(Op::Eq, DType::I64, &[only, fiber.index]);
    Located { position, present: Some(both(fiber, same)), group_stop: None }
}

/// Locates the run of `fiber.index`, by bisection: it always exists.
pub(super) fn locate_runs(fiber: &mut Fiber) -> Located {
    let end = fiber.array("end");
    let (position, _, _) = covering(fiber, end, 1);
    Located { position, present: fiber.present, group_stop: None }
}

/// Locates the run of `fiber.index`, by bisection.
pub(super) fn locate_sparse_runs(fiber: &mut Fiber) -> Located {
    let (starts, ends) = (fiber.array("start"), fiber.array("end"));
    let (position, inside, index) = covering(fiber, ends, 1);
    let first = fiber.builder.load(starts, position);
    let begun = fiber.builder.call_in(Op::Le, DType::I64, &[first, index]);
    let present = fiber.builder.call_in(Op::And, DType::Bool, &[inside, begun]);
    Located { position, present: Some(present), group_stop: None }
}

/// Locates the block of `fiber.index`, by bisection.
pub(super) fn locate_blocks(fiber: &mut Fiber) -> Located {
    let (lasts, offsets) = (fiber.array("crd"), fiber.array("ofs"));
    let (q, inside, index) = covering(fiber, lasts, 0);
    let b = &mut *fiber.builder;
    let one = b.int(1);
    let next = b.add(q, one);
    let (from, to, last) = (b.load(offsets, q), b.load(offsets, next), b.load(lasts, q));
    // The distance of positions from the end is the distance of coordinates from the last one.
    let back = b.sub(last, index);
    let stop = b.sub(to, one);
    let position = b.sub(stop, back);
    let begun = b.call_in(Op::Ge, DType::I64, &[position, from]);
    let present = b.call_in(Op::And, DType::Bool, &[inside, begun]);
    Located { position, present: Some(present), group_stop: None }
}

/// Compares `fiber.index` with the bounds of the only run.
pub(super) fn locate_interval(fiber: &mut Fiber) -> Located {
    let (starts, ends, position, index) = (fiber.array("start"), fiber.array("end"), fiber.position, fiber.index);
    let b = &mut *fiber.builder;
    let (first, end) = (b.load(starts, position), b.load(ends, position));
    let begun = b.call_in(Op::Le, DType::I64, &[first, index]);
    let before = b.call_in(Op::Lt, DType::I64, &[index, end]);
    let covered = b.call_in(Op::And, DType::Bool, &[begun, before]);
    Located { position, present: Some(both(fiber, covered)), group_stop: None }
}

/// Compares `fiber.index` with the bounds of the only block.
pub(super) fn locate_band(fiber: &mut Fiber) -> Located {
    let (lasts, offsets, parent, index) = (fiber.array("crd"), fiber.array("ofs"), fiber.position, fiber.index);
    let b = &mut *fiber.builder;
    let one = b.int(1);
    let next = b.add(parent, one);
    let (from, to, last) = (b.load(offsets, parent), b.load(offsets, next), b.load(lasts, parent));
    let back = b.sub(last, index);
    let stop = b.sub(to, one);
    let position = b.sub(stop, back);
    let begun = b.call_in(Op::Ge, DType::I64, &[position, from]);
    let before = b.call_in(Op::Le, DType::I64, &[index, last]);
    let covered = b.call_in(Op::And, DType::Bool, &[begun, before]);
    Located { position, present: Some(both(fiber, covered)), group_stop: None }
}

/// The first segment whose entry in an array is at least `fiber.index + more`, and a condition that
/// it exists.
fn covering(fiber: &mut Fiber, array: BufferId, more: i64) -> (ExprId, ExprId, ExprId) {
    let (start, stop) = bounds(fiber);
    let (name, index) = (fiber.name, fiber.index);
    let b = &mut *fiber.builder;
    let stop = b.name(format!("{name}_stop"), stop);
    let more = b.int(more);
    let key = b.add(index, more);
    let at = b.search(format!("{name}_at"), array, start, stop, key);
    let inside = b.call_in(Op::Lt, DType::I64, &[at, stop]);
    (at, inside, index)
}

/// The condition, and that the fiber exists.
fn both(fiber: &mut Fiber, cond: ExprId) -> ExprId {
    match fiber.present {
        Some(present) => fiber.builder.call_in(Op::And, DType::Bool, &[present, cond]),
        None => cond,
    }
}

fn search(fiber: &mut Fiber, crd: BufferId, start: ExprId, stop: ExprId) -> Located {
    let (index, name, grouped) = (fiber.index, fiber.name, fiber.grouped);
    let b = &mut *fiber.builder;
    let (start, stop) = (b.name(format!("{name}_start"), start), b.name(format!("{name}_stop"), stop));
    let at = b.search(format!("{name}_at"), crd, start, stop, index);
    let inside = b.call_in(Op::Lt, DType::I64, &[at, stop]);
    let found = b.load(crd, at);
    let same = b.call_in(Op::Eq, DType::I64, &[found, index]);
    let present = b.call_in(Op::And, DType::Bool, &[inside, same]);
    let present = b.name(format!("{name}_found"), present);
    let group_stop = grouped.then(|| {
        let one = b.int(1);
        let after = b.add(index, one);
        b.search(format!("{name}_end"), crd, at, stop, after)
    });
    Located { position: at, present: Some(present), group_stop }
}
