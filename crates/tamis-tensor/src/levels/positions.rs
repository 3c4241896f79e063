//! Iteration over positions in kernels: the coordinate and the parent of a position, and the first
//! child of a parent (load balancing by nnz).
//!
//! A level whose child positions are all stored, and are numbered in storage order, has a
//! [`Positions`]; then the position of an element is its position below the last level.

use tamis_ir::DType;
use tamis_ir::algebra::Op;
use tamis_ir::kernel::{BufferId, ExprId};
use tamis_ir::looplet::{Fiber, Located};

/// Queries of a level by position. The argument of a method is in the fiber: a parent position, a
/// child position or an index.
///
/// ```
/// use tamis_ir::format::LevelKind;
/// use tamis_ir::kernel::Builder;
/// use tamis_ir::looplet::Fiber;
/// use tamis_tensor::levels::level_type;
/// let row = level_type(LevelKind::Dense)?.positions.unwrap();
/// let mut b = Builder::new("f");
/// let (position, extent, index) = (b.int(23), b.int(10), b.int(0));
/// let (arrays, group_stop, present, grouped) = (&[], None, None, false);
/// let (builder, name) = (&mut b, "A");
/// let mut element =
///     Fiber { builder, arrays, position, group_stop, present, grouped, extent, index, name };
/// assert_eq!(row.coordinate(&mut element, false), element.builder.int(3));
/// # Ok::<(), tamis_ir::Diagnostic>(())
/// ```
pub trait Positions: Sync {
    /// The first child position of the parent position `fiber.position`. One past the last parent
    /// is a valid argument: then the result is the number of children.
    fn start(&self, fiber: &mut Fiber) -> ExprId;

    /// The coordinate at the child position `fiber.position`; `alone` means that there is one
    /// parent only.
    fn coordinate(&self, fiber: &mut Fiber, alone: bool) -> ExprId;

    /// The parent position of `fiber.position`.
    fn parent(&self, fiber: &mut Fiber) -> Parent;

    /// The first child position whose coordinate is at least `fiber.index` (from -1 to the extent)
    /// in the fiber at `fiber.position`, if that fiber is stored; otherwise the insertion position
    /// of the fiber.
    fn bound(&self, fiber: &mut Fiber) -> Located;
}

/// The way to a parent position.
///
/// ```
/// use tamis_ir::format::LevelKind;
/// use tamis_ir::kernel::Builder;
/// use tamis_ir::looplet::Fiber;
/// use tamis_tensor::levels::{Parent, level_type};
/// let row = level_type(LevelKind::Dense)?.positions.unwrap();
/// let mut b = Builder::new("f");
/// let (position, extent, index) = (b.int(23), b.int(10), b.int(0));
/// let (arrays, group_stop, present, grouped) = (&[], None, None, false);
/// let (builder, name) = (&mut b, "A");
/// let mut element =
///     Fiber { builder, arrays, position, group_stop, present, grouped, extent, index, name };
/// assert_eq!(row.parent(&mut element), Parent::At(element.builder.int(2)));
/// # Ok::<(), tamis_ir::Diagnostic>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Parent {
    /// The position is computed.
    At(ExprId),
    /// The position is the last one whose children start at or before the child, by bisection in
    /// this buffer of starts, which ends with the number of children.
    Listed(BufferId),
}

/// `dense`: child positions are consecutive.
pub(super) struct DensePositions;

/// `sparse`, `hash`: `pos` holds the first child positions.
pub(super) struct CompressedPositions;

/// `singleton`: one child each.
pub(super) struct SingletonPositions;

impl Positions for DensePositions {
    fn start(&self, fiber: &mut Fiber) -> ExprId {
        fiber.dense_base()
    }

    fn coordinate(&self, fiber: &mut Fiber, alone: bool) -> ExprId {
        if alone {
            return fiber.position;
        }
        fiber.builder.call_in(Op::Mod, DType::I64, &[fiber.position, fiber.extent])
    }

    fn parent(&self, fiber: &mut Fiber) -> Parent {
        Parent::At(fiber.builder.call_in(Op::FloorDiv, DType::I64, &[fiber.position, fiber.extent]))
    }

    fn bound(&self, fiber: &mut Fiber) -> Located {
        let base = fiber.dense_base();
        let (index, extent, present) = (fiber.index, fiber.extent, fiber.present);
        let b = &mut *fiber.builder;
        let zero = b.int(0);
        let after = b.call_in(Op::Max, DType::I64, &[index, zero]);
        let inside = b.add(base, after);
        let above = b.call_in(Op::Ge, DType::I64, &[index, zero]);
        let below = b.call_in(Op::Lt, DType::I64, &[index, extent]);
        let exact = b.call_in(Op::And, DType::Bool, &[above, below]);
        let (position, exact) = match present {
            Some(present) => (
                b.call_in(Op::Select, DType::I64, &[present, inside, base]),
                b.call_in(Op::And, DType::Bool, &[present, exact]),
            ),
            None => (inside, exact),
        };
        Located { position, present: Some(exact), group_stop: None }
    }
}

impl Positions for CompressedPositions {
    fn start(&self, fiber: &mut Fiber) -> ExprId {
        let pos = fiber.array("pos");
        fiber.builder.load(pos, fiber.position)
    }

    fn coordinate(&self, fiber: &mut Fiber, _: bool) -> ExprId {
        let crd = fiber.array("crd");
        fiber.builder.load(crd, fiber.position)
    }

    fn parent(&self, fiber: &mut Fiber) -> Parent {
        Parent::Listed(fiber.array("pos"))
    }

    fn bound(&self, fiber: &mut Fiber) -> Located {
        let (pos, crd) = (fiber.array("pos"), fiber.array("crd"));
        let (position, present) = (fiber.position, fiber.present);
        let b = &mut *fiber.builder;
        let start = b.load(pos, position);
        let start = b.name(format!("{}_start", fiber.name), start);
        let one = b.int(1);
        let next = b.add(position, one);
        let mut stop = b.load(pos, next);
        if let Some(present) = present {
            stop = b.call_in(Op::Select, DType::I64, &[present, stop, start]);
        }
        searched(fiber, crd, start, stop)
    }
}

impl Positions for SingletonPositions {
    fn start(&self, fiber: &mut Fiber) -> ExprId {
        fiber.position
    }

    fn coordinate(&self, fiber: &mut Fiber, _: bool) -> ExprId {
        let crd = fiber.array("crd");
        fiber.builder.load(crd, fiber.position)
    }

    fn parent(&self, fiber: &mut Fiber) -> Parent {
        Parent::At(fiber.position)
    }

    fn bound(&self, fiber: &mut Fiber) -> Located {
        let crd = fiber.array("crd");
        let (position, present) = (fiber.position, fiber.present);
        let b = &mut *fiber.builder;
        let stop = match fiber.group_stop {
            Some(stop) => stop,
            None => {
                let one = b.int(1);
                let next = b.add(position, one);
                match present {
                    Some(present) => b.call_in(Op::Select, DType::I64, &[present, next, position]),
                    None => next,
                }
            }
        };
        searched(fiber, crd, position, stop)
    }
}

/// The first position in a range of a coordinate list whose coordinate is at least `fiber.index`.
fn searched(fiber: &mut Fiber, crd: BufferId, start: ExprId, stop: ExprId) -> Located {
    let (index, name, grouped) = (fiber.index, fiber.name, fiber.grouped);
    let b = &mut *fiber.builder;
    let stop = b.name(format!("{name}_stop"), stop);
    let at = b.search(format!("{name}_bound"), crd, start, stop, index);
    let inside = b.call_in(Op::Lt, DType::I64, &[at, stop]);
    let found = b.load(crd, at);
    let same = b.call_in(Op::Eq, DType::I64, &[found, index]);
    let present = b.call_in(Op::And, DType::Bool, &[inside, same]);
    let group_stop = grouped.then(|| {
        let one = b.int(1);
        let after = b.add(index, one);
        b.search(format!("{name}_end"), crd, at, stop, after)
    });
    Located { position: at, present: Some(present), group_stop }
}
