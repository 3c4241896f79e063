//! Looplets: the structure of one access along one loop, as data.
//!
//! A looplet describes the contents of a fiber over an extent `[start, stop)` of coordinates. It
//! refers to a kernel under construction by ids: cursors are variables, coordinates and positions
//! are expressions, and the loop's index is an expression that the caller provides. The contents at
//! a coordinate are a [`Payload`].
//!
//! | looplet | meaning |
//! |---|---|
//! | `Thunk` | statements to run once, before |
//! | `Switch` | a choice by a loop-invariant condition |
//! | `Run(v)` | every coordinate holds `v` |
//! | `Sequence` | phases, one after the other |
//! | `Spike` | one payload everywhere but at the last coordinate |
//! | `Jumper` | a stepper that leads: other levels skip ahead to its coordinates by search |
//! | `Segments` | stored segments, in order, each with one child or a block of them; between them, the fill |
//! | `Stepper` | a stored coordinate list, in order; between its coordinates, the fill |
//! | `Fibers` | windows over several fibers at once |
//! | `Block` | contiguous children, one for each coordinate |
//! | `Lookup` | random access: each coordinate is located |

mod segments;
mod text;
mod transform;
mod window;

pub use segments::{Extents, NEVER, Segment, Segments};
pub use window::Window;

use crate::kernel::{Block, BufferId, Builder, ExprId, VarId};

/// The payload of a looplet at a coordinate.
///
/// ```
/// use tamis_ir::kernel::Kernel;
/// use tamis_ir::looplet::{Looplet, Payload};
/// let mut kernel = Kernel::parse("kernel f\nbegin\n")?;
/// assert_eq!(Looplet::parse(&mut kernel, "run(fill)")?, Looplet::Run(Payload::Fill));
/// # Ok::<(), tamis_ir::Diagnostic>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum Payload {
    /// Not stored: the tensor's fill.
    Fill,
    /// The sub-fiber (or, below the last level, the value) at this position.
    Child(ExprId),
    /// A truth value (of a mask).
    Truth(bool),
    /// Out of bounds of the tensor, where that is permitted.
    Missing,
    /// Out of bounds of the tensor, where a read is a mistake: each read is checked.
    Outside,
    /// The same fiber: a window over it, one end of which may be known.
    Window(Option<Edge>),
}

/// An end of a window over a fiber, as a position.
///
/// ```
/// use tamis_ir::kernel::{Builder, Kernel};
/// use tamis_ir::looplet::{Edge, Looplet, Payload};
/// let mut b = Builder::new("f");
/// let window = Looplet::Run(Payload::Window(Some(Edge::From(b.int(3)))));
/// assert_eq!(window.show(b.kernel()), "run(window(from 3))");
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Edge {
    /// The window starts at this position or after it.
    From(ExprId),
    /// The window ends at this position or before it.
    To(ExprId),
}

/// The structure of one access along one loop.
///
/// ```
/// use tamis_ir::kernel::Kernel;
/// use tamis_ir::looplet::{Looplet, Payload};
/// let mut kernel = Kernel::parse("kernel f\n    in n: i64\nbegin\n")?;
/// let looplet = Looplet::parse(&mut kernel, "sequence[run(fill) to n, run(child(n))]")?;
/// let Looplet::Sequence { phases, .. } = looplet else { panic!() };
/// assert_eq!(phases[0].body, Looplet::Run(Payload::Fill));
/// # Ok::<(), tamis_ir::Diagnostic>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum Looplet {
    /// Every coordinate holds the same payload.
    Run(Payload),
    /// Random access: each coordinate is located.
    Lookup,
    /// One payload before a coordinate, and another one at it.
    Spike(Spike),
    /// Phases, one after the other; the last phase extends to the end.
    Sequence {
        /// The phases.
        phases: Vec<Phase>,
        /// The stops are non-decreasing and inside of the dimension.
        inside: bool,
    },
    /// Segments in order; all other coordinates hold the fill.
    Segments(Segments),
    /// Children at a constant stride, usually contiguous.
    Block {
        /// The child of coordinate 0, extrapolated if there is none.
        base: ExprId,
        /// The stride between the children of adjacent coordinates.
        stride: i64,
    },
    /// A sorted coordinate list; all other coordinates hold the fill.
    Stepper(Stepper),
    /// Windows over several fibers at once, because windows over outer levels are still open: the
    /// nearest coordinate of any of the fibers is next.
    Fibers {
        /// The level of the fibers.
        level: usize,
        /// The location of the children.
        window: Window,
        /// The windows move down, so coordinates are negated.
        mirrored: bool,
    },
    /// A stepper that leads: others are moved to its coordinates by search.
    Jumper(Stepper),
    /// A choice by a condition that is invariant in the coordinate.
    Switch {
        /// The condition.
        cond: ExprId,
        /// The looplet if the condition is true.
        then: Box<Looplet>,
        /// The same structure under that condition: empty if it is false. For loop bodies that are
        /// needed in both cases, so that they are emitted once.
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

/// One payload before a coordinate, and another one at it; the extent ends with it, or before.
///
/// ```
/// use tamis_ir::kernel::Builder;
/// use tamis_ir::looplet::{Looplet, Payload, Spike};
/// let mut b = Builder::new("f");
/// let (at, position) = (b.int(9), b.int(4));
/// let spike = Spike { body: Payload::Fill, tail: Payload::Child(position), at };
/// assert_eq!(Looplet::Spike(spike).show(b.kernel()), "spike(fill, child(4) at 9)");
/// ```
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Spike {
    pub body: Payload,
    pub tail: Payload,
    /// The coordinate.
    pub at: ExprId,
}

/// A phase of a sequence.
///
/// ```
/// use tamis_ir::kernel::Builder;
/// use tamis_ir::looplet::{Looplet, Payload, Phase};
/// let mut b = Builder::new("f");
/// let first = Phase { stop: Some(b.int(9)), body: Looplet::Run(Payload::Fill) };
/// let phases = vec![first, Phase { stop: None, body: Looplet::Lookup }];
/// let looplet = Looplet::Sequence { phases, inside: false };
/// assert_eq!(looplet.show(b.kernel()), "sequence[run(fill) to 9, lookup]");
/// ```
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Phase {
    /// The end; the end of the extent if `None`.
    pub stop: Option<ExprId>,
    pub body: Looplet,
}

/// A sorted coordinate list in a buffer: distinct coordinates, or (`grouped`) groups of equal ones.
///
/// ```
/// use tamis_ir::kernel::Kernel;
/// use tamis_ir::looplet::{Below, Looplet};
/// let mut kernel = Kernel::parse("kernel f\n    in crd: index u32[]\n    in n: i64\nbegin\n")?;
/// let looplet = Looplet::parse(&mut kernel, "stepper(crd[0..n], grouped)")?;
/// let Looplet::Stepper(list) = looplet else { panic!() };
/// assert!(list.grouped && list.below == Below::Position);
/// # Ok::<(), tamis_ir::Diagnostic>(())
/// ```
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
    /// Coordinates may repeat; the children of a group are a range of positions.
    pub grouped: bool,
    /// The offset from a stored coordinate to a loop coordinate.
    pub shift: Option<ExprId>,
    /// Stored coordinates are negated, and positions, too, so that both ascend.
    pub mirrored: bool,
    /// Mirrored, but positions are not negated, so coordinates descend.
    pub descending: bool,
    /// The extent that `start` and `stop` are already restricted to.
    pub within: Option<(ExprId, ExprId)>,
    /// A loop coordinate that is at or before every coordinate from `start` on.
    pub sought: Option<ExprId>,
    /// A loop coordinate that is after every coordinate before `stop`.
    pub ended: Option<ExprId>,
    /// Iteration breaks at the first loop coordinate that is at least this one (below it, if
    /// coordinates descend).
    pub until: Option<ExprId>,
}

impl Stepper {
    /// The coordinate of the loop at a position.
    ///
    /// ```
    /// use tamis_ir::kernel::{Builder, Kernel};
    /// use tamis_ir::looplet::Looplet;
    /// let text = "kernel f
    ///     in crd: index u32[]
    ///     in n: i64
    /// begin
    /// ";
    /// let mut kernel = Kernel::parse(text)?;
    /// let looplet = Looplet::parse(&mut kernel, "stepper(crd[0..n] + 1)")?;
    /// let Looplet::Stepper(list) = looplet else { panic!() };
    /// let (mut b, _) = Builder::resume(kernel);
    /// let first = list.coordinate(&mut b, list.start);
    /// assert_eq!(b.kernel().show(first), "crd[0] + 1");
    /// # Ok::<(), tamis_ir::Diagnostic>(())
    /// ```
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

    /// The stored position for a position of the loop.
    ///
    /// ```
    /// use tamis_ir::kernel::{Builder, Kernel};
    /// use tamis_ir::looplet::Looplet;
    /// let text = "kernel f
    ///     in crd: index u32[]
    ///     in n: i64
    /// begin
    /// ";
    /// let mut kernel = Kernel::parse(text)?;
    /// let looplet = Looplet::parse(&mut kernel, "stepper(-crd[0..n])")?;
    /// let Looplet::Stepper(list) = looplet else { panic!() };
    /// let (mut b, _) = Builder::resume(kernel);
    /// let n = list.position(&mut b, list.stop);
    /// assert_eq!(b.kernel().show(n), "0 - n", "a mirrored list is read backwards");
    /// # Ok::<(), tamis_ir::Diagnostic>(())
    /// ```
    pub fn position(&self, b: &mut Builder, position: ExprId) -> ExprId {
        if !self.mirrored || self.descending {
            return position;
        }
        let zero = b.int(0);
        b.sub(zero, position)
    }

    /// The first position from `start` on whose coordinate is at least `coordinate`.
    ///
    /// ```
    /// use tamis_ir::kernel::{Builder, Kernel};
    /// use tamis_ir::looplet::Looplet;
    /// let text = "kernel f
    ///     in crd: index u32[]
    ///     in n: i64
    /// begin
    /// ";
    /// let mut kernel = Kernel::parse(text)?;
    /// let looplet = Looplet::parse(&mut kernel, "stepper(crd[0..n])")?;
    /// let Looplet::Stepper(list) = looplet else { panic!() };
    /// let (mut b, _) = Builder::resume(kernel);
    /// let seven = b.int(7);
    /// list.seek(&mut b, "p", list.start, seven);
    /// assert!(b.finish().to_string().ends_with("let p = search crd[0..n] for 7\n"));
    /// # Ok::<(), tamis_ir::Diagnostic>(())
    /// ```
    pub fn seek(&self, b: &mut Builder, name: &str, start: ExprId, coordinate: ExprId) -> ExprId {
        self.seek_from(b, name, start, coordinate, false)
    }

    /// The same for the end of a range whose positions are iterated over.
    ///
    /// ```
    /// use tamis_ir::kernel::{Builder, Kernel};
    /// use tamis_ir::looplet::Looplet;
    /// let text = "kernel f
    ///     in crd: index u32[]
    ///     in n: i64
    ///     in i: i64
    /// begin
    /// ";
    /// let mut kernel = Kernel::parse(text)?;
    /// let looplet = Looplet::parse(&mut kernel, "stepper(crd[0..n])")?;
    /// let Looplet::Stepper(list) = looplet else { panic!() };
    /// let (mut b, _) = Builder::resume(kernel);
    /// let i = b.kernel().params[1];
    /// let i = b.get(i);
    /// list.seek_end(&mut b, "p", list.start, i);
    /// assert!(b.finish().to_string().ends_with("let p = search back crd[0..n] for i\n"));
    /// # Ok::<(), tamis_ir::Diagnostic>(())
    /// ```
    pub fn seek_end(&self, b: &mut Builder, name: &str, start: ExprId, coordinate: ExprId) -> ExprId {
        self.seek_from(b, name, start, coordinate, true)
    }

    fn seek_from(&self, b: &mut Builder, name: &str, start: ExprId, coordinate: ExprId, end: bool) -> ExprId {
        let key = match self.shift {
            Some(shift) => b.sub(coordinate, shift),
            None => coordinate,
        };
        if self.mirrored {
            // The last position whose stored coordinate is at most that of the key.
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
        // Iteration from the start of the list may cover all but its end, as in triangles.
        let back = end && start == self.start && constant.is_none();
        b.search_from(name, self.coordinates, [start, self.stop, key], back)
    }
}

/// The location of a stepper's child fibers.
///
/// ```
/// use tamis_ir::kernel::{Builder, Kernel};
/// use tamis_ir::looplet::Looplet;
/// let mut kernel = Kernel::parse("kernel f\n    in crd: index u32[]\n    in n: i64\nbegin\n")?;
/// let looplet = Looplet::parse(&mut kernel, "stepper(crd[0..n], below n)")?;
/// # use tamis_ir::looplet::Below;
/// let Looplet::Stepper(list) = looplet else { panic!() };
/// assert_eq!(list.below, Below::Coordinate(list.stop), "a table of all coordinates");
/// # let _ = Builder::resume(kernel);
/// # Ok::<(), tamis_ir::Diagnostic>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Below {
    /// At the position itself.
    Position,
    /// At `base + coordinate`.
    Coordinate(ExprId),
}

impl Looplet {
    /// The lowering priority: the greatest one present is lowered first.
    ///
    /// ```
    /// use tamis_ir::looplet::{Looplet, Payload};
    /// assert!(Looplet::Run(Payload::Fill).priority() > Looplet::Lookup.priority());
    /// ```
    pub fn priority(&self) -> u8 {
        match self {
            Looplet::Switch { .. } => 11,
            Looplet::Thunk { .. } => 10,
            Looplet::Run(_) => 9,
            Looplet::Sequence { .. } => 8,
            Looplet::Spike(_) => 7,
            // They are lowered to segments.
            Looplet::Fibers { .. } => 6,
            Looplet::Jumper(_) => 5,
            Looplet::Segments(_) => 4,
            Looplet::Stepper(_) => 3,
            Looplet::Block { .. } => 2,
            Looplet::Lookup => 1,
        }
    }
}

/// The result of locating a coordinate.
///
/// ```
/// use tamis_ir::{kernel::Builder, looplet::Located};
/// let mut b = Builder::new("f");
/// let dense = Located { position: b.int(12), present: None, group_stop: None };
/// assert!(dense.present.is_none(), "every coordinate is stored");
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Located {
    /// The child position; meaningless for a coordinate that is not stored.
    pub position: ExprId,
    /// True if the coordinate is stored; `None` if it always is.
    pub present: Option<ExprId>,
    /// One past the last child position, if the children are a group.
    pub group_stop: Option<ExprId>,
}

/// The context in which a level describes one of its fibers.
///
/// ```
/// use tamis_ir::kernel::Builder;
/// use tamis_ir::looplet::Fiber;
/// let mut b = Builder::new("f");
/// let (position, extent, index) = (b.int(2), b.int(10), b.int(3));
/// let (arrays, group_stop, present, grouped) = (&[], None, None, false);
/// let builder = &mut b;
/// let name = "A";
/// let mut row =
///     Fiber { builder, arrays, position, group_stop, present, grouped, extent, index, name };
/// assert_eq!(row.dense_child(), row.builder.int(23));
/// ```
pub struct Fiber<'a> {
    /// The kernel under construction.
    pub builder: &'a mut Builder,
    /// The level's arrays in the kernel, by name.
    pub arrays: &'a [(&'static str, BufferId)],
    /// The parent position of the fiber.
    pub position: ExprId,
    /// One past the last parent position, if the fiber lies below a group.
    pub group_stop: Option<ExprId>,
    /// True if the fiber exists; `None` if it always does.
    pub present: Option<ExprId>,
    /// Coordinates may repeat, because the level is nonunique or lies between a nonunique level and
    /// its last singleton.
    pub grouped: bool,
    /// The size of the dimension.
    pub extent: ExprId,
    /// The coordinate: the loop's index, or the subscript to locate.
    pub index: ExprId,
    /// A name for variables.
    pub name: &'a str,
}

impl Fiber<'_> {
    /// The array of that name.
    ///
    /// # Panics
    /// If the level was bound without it, which is a bug of the binder.
    ///
    /// ```
    /// use tamis_ir::kernel::{BufferId, Builder};
    /// use tamis_ir::looplet::Fiber;
    /// let mut b = Builder::new("f");
    /// let (position, extent, index) = (b.int(2), b.int(10), b.int(3));
    /// let (group_stop, present, grouped) = (None, None, false);
    /// let (arrays, builder, name) = (&[("crd", BufferId(4))], &mut b, "A");
    /// let row =
    ///     Fiber { builder, arrays, position, group_stop, present, grouped, extent, index, name };
    /// assert_eq!(row.array("crd"), BufferId(4));
    /// ```
    pub fn array(&self, name: &str) -> BufferId {
        match self.arrays.iter().find(|(n, _)| *n == name) {
            Some((_, buffer)) => *buffer,
            None => panic!("the level has no array `{name}`"),
        }
    }

    /// `position * extent + index`: the child of a dense level.
    ///
    /// ```
    /// use tamis_ir::kernel::Builder;
    /// use tamis_ir::looplet::Fiber;
    /// let mut b = Builder::new("f");
    /// let (position, extent, index) = (b.int(2), b.int(10), b.int(3));
    /// let (arrays, group_stop, present, grouped) = (&[], None, None, false);
    /// let (builder, name) = (&mut b, "A");
    /// let mut row =
    ///     Fiber { builder, arrays, position, group_stop, present, grouped, extent, index, name };
    /// assert_eq!(row.dense_child(), row.builder.int(23));
    /// ```
    pub fn dense_child(&mut self) -> ExprId {
        let base = self.dense_base();
        self.builder.add(base, self.index)
    }

    /// `position * extent`.
    ///
    /// ```
    /// use tamis_ir::kernel::Builder;
    /// use tamis_ir::looplet::Fiber;
    /// let mut b = Builder::new("f");
    /// let (position, extent, index) = (b.int(2), b.int(10), b.int(3));
    /// let (arrays, group_stop, present, grouped) = (&[], None, None, false);
    /// let (builder, name) = (&mut b, "A");
    /// let mut row =
    ///     Fiber { builder, arrays, position, group_stop, present, grouped, extent, index, name };
    /// assert_eq!(row.dense_base(), row.builder.int(20));
    /// ```
    pub fn dense_base(&mut self) -> ExprId {
        self.builder.call_in(crate::algebra::Op::Mul, crate::DType::I64, &[self.position, self.extent])
    }
}

/// The context in which a level writes one of its fibers.
///
/// ```
/// use tamis_ir::kernel::Builder;
/// use tamis_ir::looplet::Writer;
/// use tamis_ir::{DType, Value};
/// let mut b = Builder::new("f");
/// let count = b.variable("count", Value::I64(0));
/// let (extent, skipped) = (b.int(10), b.constant(Value::Bool(false)));
/// let (arrays, reserved, parents, narrow) = (&[], true, true, false);
/// let (builder, name) = (&mut b, "y");
/// let w = Writer { builder, arrays, extent, count, skipped, reserved, parents, narrow, name };
/// assert_eq!(w.builder.dtype(w.extent), DType::I64);
/// ```
pub struct Writer<'a> {
    /// The kernel under construction.
    pub builder: &'a mut Builder,
    /// The level's arrays in the kernel, by name.
    pub arrays: &'a [(&'static str, BufferId)],
    /// The size of the dimension.
    pub extent: ExprId,
    /// The number of coordinates stored so far; 0 when the tensor is declared.
    pub count: VarId,
    /// An eventually constant condition: some parent position may not have been written.
    pub skipped: ExprId,
    /// Capacity for appended coordinates is reserved.
    pub reserved: bool,
    /// Capacity for appended positions of the parent level is reserved.
    pub parents: bool,
    /// The format specifies index widths, so a coordinate may not fit.
    pub narrow: bool,
    /// A name for variables.
    pub name: &'a str,
}

impl Writer<'_> {
    /// The array of that name.
    ///
    /// # Panics
    /// If the level was bound without it, which is a bug of the binder.
    ///
    /// ```
    /// use tamis_ir::Value;
    /// use tamis_ir::kernel::{BufferId, Builder};
    /// use tamis_ir::looplet::Writer;
    /// let mut b = Builder::new("f");
    /// let count = b.variable("count", Value::I64(0));
    /// let (extent, skipped) = (b.int(10), b.constant(Value::Bool(false)));
    /// let (reserved, parents, narrow) = (true, true, false);
    /// let (arrays, builder, name) = (&[("crd", BufferId(4))], &mut b, "y");
    /// let w =
    ///     Writer { builder, arrays, extent, count, skipped, reserved, parents, narrow, name };
    /// assert_eq!(w.array("crd"), BufferId(4));
    /// ```
    pub fn array(&self, name: &str) -> BufferId {
        match self.arrays.iter().find(|(n, _)| *n == name) {
            Some((_, buffer)) => *buffer,
            None => panic!("the level has no array `{name}`"),
        }
    }

    /// `parent * extent + coordinate`: the child of a dense level.
    ///
    /// ```
    /// use tamis_ir::Value;
    /// use tamis_ir::kernel::Builder;
    /// use tamis_ir::looplet::Writer;
    /// let mut b = Builder::new("f");
    /// let count = b.variable("count", Value::I64(0));
    /// let (extent, skipped) = (b.int(10), b.constant(Value::Bool(false)));
    /// let (row, column) = (b.int(2), b.int(3));
    /// let (arrays, reserved, parents, narrow) = (&[], true, true, false);
    /// let (builder, name) = (&mut b, "y");
    /// let mut w =
    ///     Writer { builder, arrays, extent, count, skipped, reserved, parents, narrow, name };
    /// assert_eq!(w.dense_child(row, column), w.builder.int(23));
    /// ```
    pub fn dense_child(&mut self, parent: ExprId, coordinate: ExprId) -> ExprId {
        let base = self.builder.call_in(crate::algebra::Op::Mul, crate::DType::I64, &[parent, self.extent]);
        self.builder.add(base, coordinate)
    }
}
