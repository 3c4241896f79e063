//! How levels are read: the looplet of one fiber.

use tamis_ir::DType;
use tamis_ir::algebra::Op;
use tamis_ir::kernel::{ExprId, Stmt};
use tamis_ir::looplet::{Below, Fiber, Looplet, Payload, Phase, Stepper};

/// `dense`: every coordinate is computed.
pub fn dense(fiber: &mut Fiber) -> Looplet {
    Looplet::Lookup(Payload::Child(fiber.dense_child()))
}

/// `sparse`, `hash`: a list of coordinates; children lie at their places in it.
pub fn compressed(fiber: &mut Fiber) -> Looplet {
    let below = Below::Position;
    listed(fiber, below)
}

/// `bytemap`: the list of touched coordinates; children lie as in a dense level.
pub fn bytemap(fiber: &mut Fiber) -> Looplet {
    let below = Below::Coordinate(fiber.dense_base());
    listed(fiber, below)
}

fn listed(fiber: &mut Fiber, below: Below) -> Looplet {
    let (pos, coordinates) = (fiber.array("pos"), fiber.array("crd"));
    let one = fiber.builder.int(1);
    let next = fiber.builder.add(fiber.position, one);
    let (start, stop) = (fiber.builder.load(pos, fiber.position), fiber.builder.load(pos, next));
    let (start, preamble_start) = named(fiber, "start", start);
    let (stop, preamble_stop) = named(fiber, "stop", stop);
    let body = Looplet::Stepper(Stepper { coordinates, start, stop, below, grouped: fiber.grouped });
    Looplet::Thunk { preamble: vec![preamble_start, preamble_stop], body: Box::new(body) }
}

fn named(fiber: &mut Fiber, what: &str, value: ExprId) -> (ExprId, Stmt) {
    let var = fiber.builder.new_var(format!("{}_{what}", fiber.name), DType::I64, false);
    (fiber.builder.get(var), Stmt::Let { var, value })
}

/// `singleton`: one coordinate, and the fill on both sides.
pub fn singleton(fiber: &mut Fiber) -> Looplet {
    let crd = fiber.array("crd");
    if let Some(stop) = fiber.group_stop {
        // Below a group there is one coordinate for each of its positions.
        let (start, below) = (fiber.position, Below::Position);
        return Looplet::Stepper(Stepper { coordinates: crd, start, stop, below, grouped: fiber.grouped });
    }
    let only = fiber.builder.load(crd, fiber.position);
    let (only, preamble) = named(fiber, "only", only);
    let one = fiber.builder.int(1);
    let after = fiber.builder.add(only, one);
    let body = Looplet::Sequence(vec![
        Phase { stop: Some(only), body: Looplet::Run(Payload::Fill) },
        Phase { stop: Some(after), body: Looplet::Run(Payload::Child(fiber.position)) },
        Phase { stop: None, body: Looplet::Run(Payload::Fill) },
    ]);
    Looplet::Thunk { preamble: vec![preamble], body: Box::new(body) }
}

/// Where a coordinate is stored, for access without a loop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Located {
    /// The child position; meaningless where nothing is stored.
    pub position: ExprId,
    /// Whether anything is stored there; always, if there is no condition.
    pub present: Option<ExprId>,
}

/// Finds `fiber.index` in a full level.
pub fn locate_dense(fiber: &mut Fiber) -> Located {
    Located { position: fiber.dense_child(), present: None }
}

/// Finds `fiber.index` in a list, by search.
pub fn locate_compressed(fiber: &mut Fiber, parent_present: Option<ExprId>) -> Located {
    let (position, present) = search(fiber, parent_present);
    Located { position, present: Some(present) }
}

/// Finds `fiber.index` in a byte map, by its flag.
pub fn locate_bytemap(fiber: &mut Fiber, parent_present: Option<ExprId>) -> Located {
    let flags = fiber.array("flags");
    let position = fiber.dense_child();
    let b = &mut *fiber.builder;
    let flag = b.load(flags, position);
    let zero = b.int(0);
    let set = b.call_in(Op::Ne, DType::I64, &[flag, zero]);
    let present = match parent_present {
        Some(parent) => b.call_in(Op::And, DType::Bool, &[parent, set]),
        None => set,
    };
    Located { position, present: Some(present) }
}

/// Compares `fiber.index` with the one coordinate there is.
pub fn locate_singleton(fiber: &mut Fiber, parent_present: Option<ExprId>) -> Located {
    let crd = fiber.array("crd");
    let (position, index) = (fiber.position, fiber.index);
    let b = &mut *fiber.builder;
    let only = b.load(crd, position);
    let same = b.call_in(Op::Eq, DType::I64, &[only, index]);
    let present = match parent_present {
        Some(parent) => b.call_in(Op::And, DType::Bool, &[parent, same]),
        None => same,
    };
    Located { position, present: Some(present) }
}

fn search(fiber: &mut Fiber, parent_present: Option<ExprId>) -> (ExprId, ExprId) {
    let (pos, crd) = (fiber.array("pos"), fiber.array("crd"));
    let (position, index, name) = (fiber.position, fiber.index, fiber.name.to_string());
    let b = &mut *fiber.builder;
    let one = b.int(1);
    let next = b.add(position, one);
    let (mut start, mut stop) = (b.load(pos, position), b.load(pos, next));
    if let Some(parent) = parent_present {
        let zero = b.int(0);
        start = b.call_in(Op::Select, DType::I64, &[parent, start, zero]);
        stop = b.call_in(Op::Select, DType::I64, &[parent, stop, zero]);
    }
    let (start, stop) = (b.name(format!("{name}_start"), start), b.name(format!("{name}_stop"), stop));
    let var = b.new_var(format!("{name}_at"), DType::I64, false);
    b.emit(Stmt::Search { var, buffer: crd, start, stop, key: index });
    let at = b.get(var);
    let inside = b.call_in(Op::Lt, DType::I64, &[at, stop]);
    let found = b.load(crd, at);
    let same = b.call_in(Op::Eq, DType::I64, &[found, index]);
    let present = b.call_in(Op::And, DType::Bool, &[inside, same]);
    let present = b.name(format!("{name}_found"), present);
    (at, present)
}
