//! How levels are read by kernels: the looplet of one fiber, and where one coordinate of it is. Each row of
//! [`super::LEVELS`] names its functions.

use tamis_ir::DType;
use tamis_ir::algebra::Op;
use tamis_ir::kernel::{BufferId, ExprId, Stmt};
use tamis_ir::looplet::{Below, Fiber, Located, Looplet, Payload, Phase, Spike, Stepper};

/// `dense`: every coordinate is computed.
pub(super) fn dense(_: &mut Fiber) -> Looplet {
    Looplet::Lookup
}

/// `sparse`, `hash`: a list of coordinates; children lie at their places in it.
pub(super) fn compressed(fiber: &mut Fiber) -> Looplet {
    listed(fiber, Below::Position)
}

/// `bytemap`: the list of touched coordinates; children lie as in a dense level.
pub(super) fn bytemap(fiber: &mut Fiber) -> Looplet {
    let below = Below::Coordinate(fiber.dense_base());
    listed(fiber, below)
}

/// `singleton`: one coordinate, and the fill on both sides; below a group, one for each of its positions.
pub(super) fn singleton(fiber: &mut Fiber) -> Looplet {
    let crd = fiber.array("crd");
    if let Some(stop) = fiber.group_stop {
        let (start, below) = (fiber.position, Below::Position);
        return Looplet::Stepper(Stepper { coordinates: crd, start, stop, below, grouped: fiber.grouped });
    }
    let mut only = fiber.builder.load(crd, fiber.position);
    if let Some(present) = fiber.present {
        // An absent fiber has its coordinate behind all others, and no position to load one from.
        only = fiber.builder.call_in(Op::Select, DType::I64, &[present, only, fiber.extent]);
    }
    let (only, preamble) = named(fiber, "only", only);
    let one = fiber.builder.int(1);
    let after = fiber.builder.add(only, one);
    let spike = Spike { body: Payload::Fill, tail: Payload::Child(fiber.position), at: only };
    let body = Looplet::Sequence(vec![
        Phase { stop: Some(after), body: Looplet::Spike(spike) },
        Phase { stop: None, body: Looplet::Run(Payload::Fill) },
    ]);
    Looplet::Thunk { preamble: vec![preamble], body: Box::new(body) }
}

fn listed(fiber: &mut Fiber, below: Below) -> Looplet {
    let coordinates = fiber.array("crd");
    let (start, stop) = bounds(fiber);
    let (start, preamble_start) = named(fiber, "start", start);
    let (stop, preamble_stop) = named(fiber, "stop", stop);
    let body = Looplet::Stepper(Stepper { coordinates, start, stop, below, grouped: fiber.grouped });
    Looplet::Thunk { preamble: vec![preamble_start, preamble_stop], body: Box::new(body) }
}

/// Where the fiber's list starts and stops; an absent fiber has an empty one.
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

/// Finds `fiber.index` in a full level.
pub(super) fn locate_dense(fiber: &mut Fiber) -> Located {
    Located { position: fiber.dense_child(), present: fiber.present, group_stop: None }
}

/// Finds `fiber.index` in a list, by search.
pub(super) fn locate_compressed(fiber: &mut Fiber) -> Located {
    let crd = fiber.array("crd");
    let (start, stop) = bounds(fiber);
    search(fiber, crd, start, stop)
}

/// Finds `fiber.index` in a byte map, by its flag.
pub(super) fn locate_bytemap(fiber: &mut Fiber) -> Located {
    let flags = fiber.array("flags");
    let position = fiber.dense_child();
    let flag = fiber.builder.load(flags, position);
    let zero = fiber.builder.int(0);
    let set = fiber.builder.call_in(Op::Ne, DType::I64, &[flag, zero]);
    Located { position, present: Some(both(fiber, set)), group_stop: None }
}

/// Compares `fiber.index` with the one coordinate there is, or searches those of a group.
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

/// The condition, if the fiber is there at all.
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
