//! Looplets: the structure of one access along one loop, as data.
//!
//! A looplet describes what a fiber holds over an extent `[start, stop)` of coordinates. It refers to a kernel under
//! construction by ids: cursors are variables, coordinates and positions are expressions, and the loop's index is the
//! expression that was given to whoever made the looplet. What it holds at a coordinate is a [`Payload`].
//!
//! | looplet | meaning |
//! |---|---|
//! | `Run(v)` | every coordinate holds `v` |
//! | `Lookup(v)` | `v` is computed from the coordinate |
//! | `Sequence` | one after the other |
//! | `Stepper` | a stored list of coordinates, in order; between them, the fill |
//! | `Thunk` | statements to run once, before |

use crate::kernel::{Block, BufferId, Builder, ExprId, Kernel};

/// What a looplet holds at a coordinate.
#[derive(Clone, Debug, PartialEq)]
pub enum Payload {
    /// Nothing is stored: the tensor's fill.
    Fill,
    /// The sub-fiber (or, below the last level, the value) at this position.
    Child(ExprId),
    /// A truth value (of a mask).
    Truth(bool),
}

/// The structure of one access along one loop.
#[derive(Clone, Debug, PartialEq)]
pub enum Looplet {
    /// Every coordinate holds the same.
    Run(Payload),
    /// The payload depends on the coordinate.
    Lookup(Payload),
    /// One after the other; the last phase goes to the end.
    Sequence(Vec<Phase>),
    /// A sorted list of coordinates; everything else holds the fill.
    Stepper(Stepper),
    /// Statements that set up the state of the looplet inside.
    Thunk {
        /// Run once.
        preamble: Block,
        /// What may use the state.
        body: Box<Looplet>,
    },
}

/// A part of a sequence.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Phase {
    /// Where it ends; the extent's end if there is none.
    pub stop: Option<ExprId>,
    pub body: Looplet,
}

/// A sorted list of coordinates in a buffer: distinct, or (`grouped`) in groups of equal ones that belong together.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Stepper {
    /// The buffer that holds the coordinates.
    pub coordinates: BufferId,
    /// The first position of the fiber.
    pub start: ExprId,
    /// One past the last position.
    pub stop: ExprId,
    /// What lies below a position.
    pub below: Below,
    /// A coordinate may repeat; what lies below is then a range of positions.
    pub grouped: bool,
}

/// Where a stepper's sub-fibers are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Below {
    /// At the position itself.
    Position,
    /// At `base + coordinate`.
    Coordinate(ExprId),
}

impl Looplet {
    /// Which looplet is lowered first: the greatest present.
    pub fn priority(&self) -> u8 {
        match self {
            Looplet::Thunk { .. } => 5,
            Looplet::Run(_) => 4,
            Looplet::Sequence(_) => 3,
            Looplet::Stepper(_) => 2,
            Looplet::Lookup(_) => 1,
        }
    }

    /// A looplet as text, with the names of a kernel.
    pub fn show(&self, kernel: &Kernel) -> String {
        let payload = |p: &Payload| match p {
            Payload::Fill => "fill".to_string(),
            Payload::Child(position) => format!("child({})", kernel.show(*position)),
            Payload::Truth(value) => value.to_string(),
        };
        match self {
            Looplet::Run(p) => format!("run({})", payload(p)),
            Looplet::Lookup(p) => format!("lookup({})", payload(p)),
            Looplet::Sequence(phases) => {
                let phases = phases.iter().map(|phase| match phase.stop {
                    Some(stop) => format!("{} to {}", phase.body.show(kernel), kernel.show(stop)),
                    None => phase.body.show(kernel),
                });
                format!("sequence[{}]", phases.collect::<Vec<_>>().join(", "))
            }
            Looplet::Stepper(s) => {
                let name = &kernel.buffer(s.coordinates).name;
                format!("stepper({name}[{}..{}])", kernel.show(s.start), kernel.show(s.stop))
            }
            Looplet::Thunk { body, .. } => format!("thunk({})", body.show(kernel)),
        }
    }
}

/// Where a coordinate is stored.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Located {
    /// The child position; meaningless where nothing is stored.
    pub position: ExprId,
    /// Whether anything is stored there; always, if there is no condition.
    pub present: Option<ExprId>,
    /// One past the last child position, where they are a group.
    pub group_stop: Option<ExprId>,
}

/// What a level needs to describe one of its fibers.
pub struct Fiber<'a> {
    /// The kernel under construction.
    pub builder: &'a mut Builder,
    /// The level's arrays in the kernel, by name.
    pub arrays: &'a [(&'static str, BufferId)],
    /// The parent position of the fiber.
    pub position: ExprId,
    /// One past the last parent position, if the fiber lies below a group.
    pub group_stop: Option<ExprId>,
    /// Whether the fiber is there at all; certainly, if there is no condition.
    pub present: Option<ExprId>,
    /// Coordinates may repeat, because the level is nonunique or stands between such a level and its last singleton.
    pub grouped: bool,
    /// The size of the dimension.
    pub extent: ExprId,
    /// The coordinate: the loop's index, or the subscript that is looked up.
    pub index: ExprId,
    /// A name for variables.
    pub name: &'a str,
}

impl Fiber<'_> {
    /// The array of that name.
    ///
    /// # Panics
    /// If the level was bound without it, which is a bug of the binder.
    pub fn array(&self, name: &str) -> BufferId {
        match self.arrays.iter().find(|(n, _)| *n == name) {
            Some((_, buffer)) => *buffer,
            None => panic!("the level has no array `{name}`"),
        }
    }

    /// `position * extent + index`: where a full level keeps its children.
    pub fn dense_child(&mut self) -> ExprId {
        let base = self.dense_base();
        self.builder.add(base, self.index)
    }

    /// `position * extent`.
    pub fn dense_base(&mut self) -> ExprId {
        self.builder.call_in(crate::algebra::Op::Mul, crate::DType::I64, &[self.position, self.extent])
    }
}
