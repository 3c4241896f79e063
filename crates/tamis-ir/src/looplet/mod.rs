//! Looplets: the structure of one access along one loop, as data.
//!
//! A looplet describes what a fiber holds over an extent `[start, stop)` of coordinates. It refers to a kernel under
//! construction by ids: cursors are variables, coordinates and positions are expressions, and the loop's index is the
//! expression that was given to whoever made the looplet. What it holds at a coordinate is a [`Payload`].
//!
//! | looplet | meaning |
//! |---|---|
//! | `Thunk` | statements to run once, before |
//! | `Switch` | what it is depends on a condition, tested outside the loop |
//! | `Run(v)` | every coordinate holds `v` |
//! | `Sequence` | one after the other |
//! | `Spike` | one thing everywhere but at the last coordinate |
//! | `Jumper` | a stepper that leads, and skips ahead by search |
//! | `Pieces` | stored stretches, in order, each with one thing or a block of things; between them, the fill |
//! | `Stepper` | a stored list of coordinates, in order; between them, the fill |
//! | `Fibers` | windows over several fibers at once |
//! | `Block` | things that lie next to each other, one for each coordinate |
//! | `Lookup` | the level is asked at each coordinate |

mod pieces;
mod text;
mod transform;
mod window;

pub use pieces::{Extents, NEVER, Piece, Pieces};
pub use window::Window;

use crate::kernel::{Block, BufferId, Builder, ExprId, VarId};

/// The payload of a looplet at a coordinate.
#[derive(Clone, Debug, PartialEq)]
pub enum Payload {
    /// Nothing is stored: the tensor's fill.
    Fill,
    /// The sub-fiber (or, below the last level, the value) at this position.
    Child(ExprId),
    /// A truth value (of a mask).
    Truth(bool),
    /// Outside of the tensor, where that is permitted.
    Missing,
    /// Outside of the tensor, where that is a mistake if it is read: each coordinate is checked when it is.
    Outside,
    /// The same fiber still: a window over it, one end of which may be known.
    Window(Option<Edge>),
}

/// An end of a window over a fiber.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Edge {
    /// Nothing in it lies before this position.
    From(ExprId),
    /// Nothing in it lies behind this position.
    To(ExprId),
}

/// The structure of one access along one loop.
#[derive(Clone, Debug, PartialEq)]
pub enum Looplet {
    /// Every coordinate holds the same.
    Run(Payload),
    /// The level is asked where each coordinate is.
    Lookup,
    /// One thing up to a coordinate, and another at it.
    Spike(Spike),
    /// One after the other; the last phase goes to the end.
    Sequence {
        /// The phases.
        phases: Vec<Phase>,
        /// The stops are known not to decrease, and to be inside of the dimension.
        inside: bool,
    },
    /// Stretches, one after the other; everything else holds the fill.
    Pieces(Pieces),
    /// Children that lie next to each other, or equally far apart.
    Block {
        /// The child of coordinate 0, if there were one.
        base: ExprId,
        /// The stride between the children of adjacent coordinates.
        stride: i64,
    },
    /// A sorted list of coordinates; everything else holds the fill.
    Stepper(Stepper),
    /// Windows over several fibers at once, because windows over levels above them are still open: the nearest coordinate
    /// of any of them is next.
    Fibers {
        /// The level that the windows are over.
        level: usize,
        /// The location of the children.
        window: Window,
        /// They go down, so that coordinates are taken with the other sign.
        mirrored: bool,
    },
    /// A stepper that leads: the others are brought to its coordinates by search.
    Jumper(Stepper),
    /// A choice by a condition that is invariant in the coordinate.
    Switch {
        /// The condition.
        cond: ExprId,
        /// The looplet if the condition is true.
        then: Box<Looplet>,
        /// The same structure under that condition: empty where it does not hold. For bodies that have work to do
        /// in both cases, and should not be written twice.
        guarded: Box<Looplet>,
    },
    /// Statements that set up the state of the looplet inside.
    Thunk {
        /// Declarations by `let`, run once.
        preamble: Block,
        /// The looplet that may use the state.
        body: Box<Looplet>,
    },
}

/// The same everywhere before a coordinate, and something else there; the extent ends with it, or before.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Spike {
    pub body: Payload,
    pub tail: Payload,
    /// The coordinate.
    pub at: ExprId,
}

/// A part of a sequence.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Phase {
    /// The end; the end of the extent if `None`.
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
    /// The payload at a position.
    pub below: Below,
    /// A coordinate may repeat; what lies below is then a range of positions.
    pub grouped: bool,
    /// The offset from a stored coordinate to a loop coordinate.
    pub shift: Option<ExprId>,
    /// Stored coordinates are taken with the other sign, and positions, too, so that both go up.
    pub mirrored: bool,
    /// It is mirrored, but positions are taken as they are, so that coordinates go down.
    pub turned: bool,
    /// The extent that `start` and `stop` are known to be cut to.
    pub within: Option<(ExprId, ExprId)>,
    /// The coordinate of the loop that no coordinate from `start` on lies before.
    pub sought: Option<ExprId>,
    /// The coordinate of the loop that all coordinates up to `stop` lie before.
    pub ended: Option<ExprId>,
    /// The list is left at the first coordinate of the loop that is not below this one (below it, if they go down).
    pub until: Option<ExprId>,
}

impl Stepper {
    /// The coordinate of the loop at a position.
    pub fn coordinate(&self, b: &mut Builder, position: ExprId) -> ExprId {
        let position = self.position(b, position);
        let stored = b.load(self.coordinates, position);
        match (self.shift, self.mirrored) {
            (Some(shift), false) => b.add(stored, shift),
            (None, false) => stored,
            (shift, true) => {
                let zero = b.int(0);
                b.sub(shift.unwrap_or(zero), stored)
            }
        }
    }

    /// The storage of the coordinate at a position.
    pub fn position(&self, b: &mut Builder, position: ExprId) -> ExprId {
        if !self.mirrored || self.turned {
            return position;
        }
        let zero = b.int(0);
        b.sub(zero, position)
    }

    /// The first position from `start` on whose coordinate is not below one of the loop's.
    pub fn seek(&self, b: &mut Builder, name: &str, start: ExprId, coordinate: ExprId) -> ExprId {
        self.seek_from(b, name, start, coordinate, false)
    }

    /// The same, where the positions before it are gone through.
    pub fn seek_end(&self, b: &mut Builder, name: &str, start: ExprId, coordinate: ExprId) -> ExprId {
        self.seek_from(b, name, start, coordinate, true)
    }

    fn seek_from(&self, b: &mut Builder, name: &str, start: ExprId, coordinate: ExprId, end: bool) -> ExprId {
        let key = match self.shift {
            Some(shift) => b.sub(coordinate, shift),
            None => coordinate,
        };
        if self.mirrored {
            // The last position whose stored coordinate is not above that of the key.
            let one = b.int(1);
            let (from, to, key) = (b.sub(one, self.stop), b.sub(one, start), b.sub(one, key));
            let after = b.search(name, self.coordinates, from, to, key);
            return b.sub(one, after);
        }
        let constant = b.as_constant(key).and_then(|key| key.as_i64());
        // No coordinate is negative.
        if constant.is_some_and(|key| key <= 0) {
            return start;
        }
        // Of a list that is looked at from its start on, all but the end may be meant, as in triangles.
        let back = end && start == self.start && constant.is_none();
        b.search_from(name, self.coordinates, [start, self.stop, key], back)
    }
}

/// The location of a stepper's child fibers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Below {
    /// At the position itself.
    Position,
    /// At `base + coordinate`.
    Coordinate(ExprId),
}

impl Looplet {
    /// The lowering priority: the greatest one present is lowered first.
    pub fn priority(&self) -> u8 {
        match self {
            Looplet::Switch { .. } => 11,
            Looplet::Thunk { .. } => 10,
            Looplet::Run(_) => 9,
            Looplet::Sequence { .. } => 8,
            Looplet::Spike(_) => 7,
            // They become pieces.
            Looplet::Fibers { .. } => 6,
            Looplet::Jumper(_) => 5,
            Looplet::Pieces(_) => 4,
            Looplet::Stepper(_) => 3,
            Looplet::Block { .. } => 2,
            Looplet::Lookup => 1,
        }
    }
}

/// The storage of a coordinate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Located {
    /// The child position; meaningless where nothing is stored.
    pub position: ExprId,
    /// True if anything is stored there; always, if there is no condition.
    pub present: Option<ExprId>,
    /// One past the last child position, where they are a group.
    pub group_stop: Option<ExprId>,
}

/// The context in which a level describes one of its fibers.
pub struct Fiber<'a> {
    /// The kernel under construction.
    pub builder: &'a mut Builder,
    /// The level's arrays in the kernel, by name.
    pub arrays: &'a [(&'static str, BufferId)],
    /// The parent position of the fiber.
    pub position: ExprId,
    /// One past the last parent position, if the fiber lies below a group.
    pub group_stop: Option<ExprId>,
    /// True if the fiber is there at all; certainly, if there is no condition.
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

/// The context in which a level writes one of its fibers.
pub struct Writer<'a> {
    /// The kernel under construction.
    pub builder: &'a mut Builder,
    /// The level's arrays in the kernel, by name.
    pub arrays: &'a [(&'static str, BufferId)],
    /// The size of the dimension.
    pub extent: ExprId,
    /// The number of coordinates stored so far; 0 when the tensor is declared.
    pub count: VarId,
    /// A condition that is constant in the end: not every parent position is known to have been written.
    pub skipped: ExprId,
    /// There is room for what is appended.
    pub reserved: bool,
    /// There is room for the positions of the level above that are appended.
    pub parents: bool,
    /// The format says how wide numbers are, so some may not fit.
    pub narrow: bool,
    /// A name for variables.
    pub name: &'a str,
}

impl Writer<'_> {
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

    /// `parent * extent + coordinate`: where a full level keeps its children.
    pub fn dense_child(&mut self, parent: ExprId, coordinate: ExprId) -> ExprId {
        let base = self.builder.call_in(crate::algebra::Op::Mul, crate::DType::I64, &[parent, self.extent]);
        self.builder.add(base, coordinate)
    }
}
