//! Windows over fibers: contiguous ranges of coordinates that move with a loop (convolution).
//!
//! The subscript `a*i + b*k + c` is *reduced* by the outer of its two loops, say `i`, and
//! *resolved* by the inner one. Along `i`, a fiber is described by the windows `{a*i + b*k + c :
//! k}` that meet stored coordinates: a stored coordinate `x` is in a contiguous range of windows,
//! those that do not start after `x` and do not end before it. The payload of a window is the fiber
//! itself, from the first stored coordinate in the window on; along `k` the fiber is described as
//! usual. If a window lies inside of one run, all of its coordinates have the same payload, and the
//! subscript is resolved before its inner loop.
//!
//! A subscript `a*i + c` without an inner index has windows of one coordinate, and is resolved by
//! `i`.

use super::{Edge, Extents, Looplet, Payload, Phase, Segments, Spike, Stepper};
use crate::DType;
use crate::algebra::Op;
use crate::kernel::{Builder, ExprId};

/// The coordinates of a subscript at index `i`: from `stride * i + low` to `stride * i + last`.
///
/// ```
/// use tamis_ir::{kernel::Builder, looplet::Window};
/// let mut b = Builder::new("f");
/// let window = Window { stride: 2, low: b.int(0), last: b.int(4), open: true };
/// let (five, eight) = (b.int(5), b.int(8));
/// assert_eq!(window.begin(&mut b, five), b.int(10));
/// assert_eq!(window.reaching(&mut b, eight), b.int(2), "the window of 2 ends at 8");
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    /// The distance between adjacent windows.
    pub stride: u64,
    /// The start at index 0.
    pub low: ExprId,
    /// The last coordinate at index 0, not below `low`.
    pub last: ExprId,
    /// Inner loops select a coordinate of the window; otherwise it has one coordinate only.
    pub open: bool,
}

impl Window {
    /// The first index whose window starts at `x` or after it.
    ///
    /// ```
    /// use tamis_ir::{kernel::Builder, looplet::Window};
    /// let mut b = Builder::new("f");
    /// let window = Window { stride: 2, low: b.int(0), last: b.int(4), open: true };
    /// let seven = b.int(7);
    /// assert_eq!(window.from(&mut b, seven), b.int(4), "the window of 4 starts at 8");
    /// ```
    pub fn from(&self, b: &mut Builder, x: ExprId) -> ExprId {
        self.up(b, x, self.low)
    }

    /// The first index whose window ends at `x` or after it.
    ///
    /// ```
    /// use tamis_ir::{kernel::Builder, looplet::Window};
    /// let mut b = Builder::new("f");
    /// let window = Window { stride: 2, low: b.int(0), last: b.int(4), open: true };
    /// let seven = b.int(7);
    /// assert_eq!(window.reaching(&mut b, seven), b.int(2), "the window of 2 ends at 8");
    /// ```
    pub fn reaching(&self, b: &mut Builder, x: ExprId) -> ExprId {
        self.up(b, x, self.last)
    }

    /// The start of the window of an index.
    ///
    /// ```
    /// use tamis_ir::{kernel::Builder, looplet::Window};
    /// let mut b = Builder::new("f");
    /// let window = Window { stride: 2, low: b.int(1), last: b.int(4), open: true };
    /// let three = b.int(3);
    /// assert_eq!(window.begin(&mut b, three), b.int(7));
    /// ```
    pub fn begin(&self, b: &mut Builder, i: ExprId) -> ExprId {
        let stride = b.int(self.stride as i64);
        let at = b.call_in(Op::Mul, DType::I64, &[i, stride]);
        b.add(at, self.low)
    }

    /// `(x - by) / stride`, rounded up.
    fn up(&self, b: &mut Builder, x: ExprId, by: ExprId) -> ExprId {
        let distance = b.sub(x, by);
        if self.stride == 1 {
            return distance;
        }
        let (less, stride) = (b.int(self.stride as i64 - 1), b.int(self.stride as i64));
        let more = b.add(distance, less);
        b.call_in(Op::FloorDiv, DType::I64, &[more, stride])
    }
}

impl Looplet {
    /// The structure along the index of windows, for a structure along the coordinates in them;
    /// `None` if no looplet describes it.
    ///
    /// ```
    /// use tamis_ir::kernel::{Builder, Kernel};
    /// use tamis_ir::looplet::Looplet;
    /// let mut kernel = Kernel::parse("kernel f\n    in crd: index u32[]\nbegin\n")?;
    /// let looplet = Looplet::parse(&mut kernel, "stepper(crd[0..9])")?;
    /// # use tamis_ir::looplet::Window;
    /// let (mut b, _) = Builder::resume(kernel);
    /// let window = Window { stride: 1, low: b.int(0), last: b.int(2), open: true };
    /// let windows = looplet.reduced(&mut b, window).unwrap();
    /// assert_eq!(windows.show(b.kernel()), "segments(point crd[0..9], windows i + 0 to 2)");
    /// # Ok::<(), tamis_ir::Diagnostic>(())
    /// ```
    pub fn reduced(self, b: &mut Builder, window: Window) -> Option<Looplet> {
        Some(match self {
            Looplet::Run(_) => self,
            // Every coordinate exists, so every window does; a single one is located.
            Looplet::Lookup if window.open => Looplet::Run(Payload::Window(None)),
            Looplet::Lookup => self,
            Looplet::Block { .. } if window.open => Looplet::Run(Payload::Window(None)),
            Looplet::Block { base, stride } => {
                let by = b.int(stride);
                let moved = b.call_in(Op::Mul, DType::I64, &[window.low, by]);
                Looplet::Block { base: b.add(base, moved), stride: stride * window.stride as i64 }
            }
            Looplet::Stepper(list) => Looplet::Segments(points(list, window, false)?),
            Looplet::Jumper(list) => Looplet::Segments(points(list, window, true)?),
            Looplet::Segments(segments) if segments.window.is_none() => {
                Looplet::Segments(Segments { window: Some(window), ..segments })
            }
            Looplet::Segments(_) | Looplet::Fibers { .. } => return None,
            Looplet::Spike(_) => Looplet::Sequence { phases: vec![Phase { stop: None, body: self }], inside: false }
                .reduced(b, window)?,
            Looplet::Sequence { phases, .. } => {
                let mut moved: Vec<Phase> = Vec::new();
                let phases: Vec<Phase> = phases.into_iter().flat_map(|phase| unfolded(b, phase, window)).collect();
                for Phase { stop, body } in phases {
                    // Windows that end before the phase does, then those that overlap its end.
                    let before = stop.map(|at| window.reaching(b, at));
                    push(&mut moved, Phase { stop: before, body: body.reduced(b, window)? });
                    if window.open && stop.is_some() {
                        let across = stop.map(|at| window.from(b, at));
                        push(&mut moved, Phase { stop: across, body: Looplet::Run(Payload::Window(None)) });
                    }
                }
                Looplet::Sequence { phases: moved, inside: false }
            }
            Looplet::Switch { cond, then, guarded } => Looplet::Switch {
                cond,
                then: Box::new(then.reduced(b, window)?),
                guarded: Box::new(guarded.reduced(b, window)?),
            },
            Looplet::Thunk { preamble, body } => Looplet::Thunk { preamble, body: Box::new(body.reduced(b, window)?) },
        })
    }

    /// True if every coordinate is located.
    ///
    /// ```
    /// use tamis_ir::looplet::{Looplet, Payload};
    /// assert!(Looplet::Lookup.is_lookup() && !Looplet::Run(Payload::Fill).is_lookup());
    /// ```
    pub fn is_lookup(&self) -> bool {
        match self {
            Looplet::Lookup => true,
            Looplet::Thunk { body, .. } => body.is_lookup(),
            Looplet::Switch { then, .. } => then.is_lookup(),
            _ => false,
        }
    }

    /// True if it does not restrict the extent to the dimension.
    ///
    /// ```
    /// use tamis_ir::looplet::{Looplet, Payload};
    /// assert!(Looplet::Lookup.is_endless() && !Looplet::Run(Payload::Fill).is_endless());
    /// ```
    pub fn is_endless(&self) -> bool {
        match self {
            Looplet::Lookup | Looplet::Block { .. } => true,
            Looplet::Segments(segments) => segments.consecutive(),
            Looplet::Thunk { body, .. } => body.is_endless(),
            Looplet::Switch { then, .. } => then.is_endless(),
            _ => false,
        }
    }

    /// True if some payload along the loop is a window.
    ///
    /// ```
    /// use tamis_ir::looplet::{Looplet, Payload};
    /// assert!(Looplet::Run(Payload::Window(None)).is_window());
    /// ```
    pub fn is_window(&self) -> bool {
        match self {
            Looplet::Run(payload) => matches!(payload, Payload::Window(_)),
            Looplet::Segments(segments) => segments.overlapping(),
            Looplet::Fibers { .. } => true,
            Looplet::Sequence { phases, .. } => phases.iter().any(|phase| phase.body.is_window()),
            Looplet::Thunk { body, .. } => body.is_window(),
            Looplet::Switch { then, .. } => then.is_window(),
            _ => false,
        }
    }

    /// The same fiber, restricted to one side of an edge of a window, along a loop from `start` to
    /// `stop` over the window; from its end to its start, if it is mirrored.
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
    /// # use tamis_ir::looplet::Edge;
    /// let (mut b, _) = Builder::resume(kernel);
    /// let (three, zero, ten) = (b.int(3), b.int(0), b.int(10));
    /// let rest = looplet.starting(&mut b, Edge::From(three), (zero, ten), false);
    /// assert_eq!(rest.show(b.kernel()), "stepper(crd[3..n], sought 0)");
    /// # Ok::<(), tamis_ir::Diagnostic>(())
    /// ```
    pub fn starting(self, b: &mut Builder, edge: Edge, (start, stop): (ExprId, ExprId), mirrored: bool) -> Looplet {
        let cut = |b: &mut Builder, from: ExprId, to: ExprId| {
            let (from, to) = match edge {
                Edge::From(at) => (at, to),
                Edge::To(at) => {
                    let one = b.int(1);
                    (from, b.add(at, one))
                }
            };
            let begins = matches!(edge, Edge::From(_)) != mirrored;
            (from, to, begins.then_some(start), (!begins).then_some(stop))
        };
        match self {
            Looplet::Stepper(list) => {
                let (start, stop, sought, ended) = cut(b, list.start, list.stop);
                Looplet::Stepper(Stepper { start, stop, sought, ended, ..list })
            }
            Looplet::Jumper(list) => {
                let (start, stop, sought, ended) = cut(b, list.start, list.stop);
                Looplet::Jumper(Stepper { start, stop, sought, ended, ..list })
            }
            Looplet::Segments(segments) if segments.consecutive() && mirrored => Looplet::Segments(segments),
            Looplet::Segments(segments) => {
                let (start, stop, sought, ended) = cut(b, segments.start, segments.stop);
                Looplet::Segments(Segments { start, stop, sought, ended, ..segments })
            }
            Looplet::Thunk { preamble, body } => {
                Looplet::Thunk { preamble, body: Box::new(body.starting(b, edge, (start, stop), mirrored)) }
            }
            Looplet::Switch { cond, then, guarded } => {
                // An absent fiber has no position: its coordinate list is empty and starts at its
                // end.
                let zero = b.int(0);
                let safe = match edge {
                    Edge::From(at) => {
                        let end = guarded.list_end().unwrap_or(zero);
                        Edge::From(b.call_in(Op::Select, DType::I64, &[cond, at, end]))
                    }
                    Edge::To(at) => {
                        let at = b.call_in(Op::Select, DType::I64, &[cond, at, zero]);
                        // No coordinate starts at one past the last position.
                        let less = b.int(-1);
                        Edge::To(b.call_in(Op::Select, DType::I64, &[cond, at, less]))
                    }
                };
                Looplet::Switch {
                    cond,
                    then: Box::new(then.starting(b, edge, (start, stop), mirrored)),
                    guarded: Box::new(guarded.starting(b, safe, (start, stop), mirrored)),
                }
            }
            other => other,
        }
    }

    /// One past the last position of a coordinate list.
    fn list_end(&self) -> Option<ExprId> {
        match self {
            Looplet::Stepper(list) | Looplet::Jumper(list) => Some(list.stop),
            Looplet::Segments(segments) => Some(segments.stop),
            Looplet::Thunk { body, .. } => body.list_end(),
            _ => None,
        }
    }

    /// The structure along an index `i`, for a structure along `-i`; `None` if no looplet describes
    /// it.
    ///
    /// ```
    /// use tamis_ir::kernel::{Builder, Kernel};
    /// use tamis_ir::looplet::Looplet;
    /// let mut kernel = Kernel::parse("kernel f\n    in crd: index u32[]\nbegin\n")?;
    /// let looplet = Looplet::parse(&mut kernel, "stepper(crd[0..9])")?;
    /// let (mut b, _) = Builder::resume(kernel);
    /// let mirrored = looplet.mirrored(&mut b).unwrap();
    /// assert_eq!(mirrored.show(b.kernel()), "stepper(-crd[-8..1])");
    /// # Ok::<(), tamis_ir::Diagnostic>(())
    /// ```
    pub fn mirrored(self, b: &mut Builder) -> Option<Looplet> {
        let one = b.int(1);
        let mut negated = |start: ExprId, stop: ExprId| (b.sub(one, stop), b.sub(one, start));
        Some(match self {
            Looplet::Run(_) | Looplet::Lookup => self,
            Looplet::Fibers { .. } => return None,
            Looplet::Block { base, stride } => Looplet::Block { base, stride: -stride },
            // Groups of equal coordinates are located from their first one on.
            Looplet::Stepper(list) | Looplet::Jumper(list) if list.grouped || list.shift.is_some() => return None,
            Looplet::Stepper(list) => {
                let (start, stop) = negated(list.start, list.stop);
                Looplet::Stepper(Stepper { start, stop, mirrored: !list.mirrored, ..list })
            }
            Looplet::Jumper(list) => {
                let (start, stop) = negated(list.start, list.stop);
                Looplet::Jumper(Stepper { start, stop, mirrored: !list.mirrored, ..list })
            }
            Looplet::Segments(segments) if segments.window.is_some() || segments.shift.is_some() => return None,
            Looplet::Segments(segments) => {
                let (start, stop) = negated(segments.start, segments.stop);
                Looplet::Segments(Segments { start, stop, mirrored: !segments.mirrored, ..segments })
            }
            Looplet::Spike(_) => {
                Looplet::Sequence { phases: vec![Phase { stop: None, body: self }], inside: false }.mirrored(b)?
            }
            Looplet::Sequence { phases, .. } => {
                let phases: Vec<Phase> = phases.into_iter().flat_map(|phase| split_spike(b, phase)).collect();
                let begins = std::iter::once(None).chain(phases.iter().map(|phase| phase.stop));
                let begins: Vec<Option<ExprId>> = begins.take(phases.len()).collect();
                let mut reversed = Vec::new();
                for (Phase { body, .. }, begin) in phases.into_iter().zip(begins).rev() {
                    let stop = begin.map(|at| b.sub(one, at));
                    reversed.push(Phase { stop, body: body.mirrored(b)? });
                }
                Looplet::Sequence { phases: reversed, inside: false }
            }
            Looplet::Switch { cond, then, guarded } => {
                Looplet::Switch { cond, then: Box::new(then.mirrored(b)?), guarded: Box::new(guarded.mirrored(b)?) }
            }
            Looplet::Thunk { preamble, body } => Looplet::Thunk { preamble, body: Box::new(body.mirrored(b)?) },
        })
    }
}

/// Splits a phase with a spike in two: the run before the coordinate, and the coordinate.
fn split_spike(b: &mut Builder, Phase { stop, body }: Phase) -> Vec<Phase> {
    let Looplet::Spike(Spike { body, tail, at }) = body else { return vec![Phase { stop, body }] };
    let one = b.int(1);
    let after = b.add(at, one);
    vec![
        Phase { stop: Some(at), body: Looplet::Run(body) },
        Phase { stop: stop.or(Some(after)), body: Looplet::Run(tail) },
    ]
}

/// Splits a phase with a spike for windows over it.
fn unfolded(b: &mut Builder, phase: Phase, window: Window) -> Vec<Phase> {
    let spike = matches!(phase.body, Looplet::Spike(_));
    let mut parts = split_spike(b, phase);
    // No window of several coordinates lies inside of one coordinate.
    if let Some(last) = parts.last_mut().filter(|_| spike && window.open) {
        last.body = Looplet::Run(Payload::Window(None));
    }
    parts
}

/// Adds a phase; adjacent windows become one phase.
fn push(phases: &mut Vec<Phase>, phase: Phase) {
    let window = Looplet::Run(Payload::Window(None));
    match phases.last_mut() {
        Some(last) if last.body == window && phase.body == window => *last = phase,
        _ => phases.push(phase),
    }
}

/// Each coordinate of a list becomes a segment: the windows that meet it.
fn points(list: Stepper, window: Window, leads: bool) -> Option<Segments> {
    // Groups of equal coordinates need a loop of their own.
    if list.grouped && !window.open {
        return None;
    }
    Some(Segments {
        start: list.start,
        stop: list.stop,
        extents: Extents::Points(list.coordinates, list.below),
        covers: false,
        scale: 1,
        shift: list.shift,
        leads,
        window: Some(window),
        mirrored: list.mirrored,
        sought: list.sought,
        ended: list.ended,
    })
}
