//! Windows: a level is asked not for one coordinate but for a stretch of them that moves with a loop.
//!
//! The subscript `a*i + b*k + c` is *reduced* by the outer of its two loops, say `i`, and *resolved* by the inner one. Along `i`,
//! a fiber is described by which windows `{a*i + b*k + c : k}` meet what is stored: a stored coordinate `x` is met by those
//! `i` whose window reaches `x` and does not begin behind it, one stretch of them. What holds there is the fiber itself,
//! from the first stored coordinate on that the window meets; along `k` it is described as always. Where a window lies
//! inside of one run, all of its coordinates hold the same, and the subscript is resolved before its inner loop.
//!
//! A subscript `a*i + c` without an inner index has windows of one coordinate, and is resolved by `i`.

use super::{Edge, Extents, Looplet, Payload, Phase, Pieces, Spike, Stepper};
use crate::DType;
use crate::algebra::Op;
use crate::kernel::{Builder, ExprId};

/// The coordinates that a subscript covers at index `i`: from `stride * i + low` to `stride * i + last`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    /// The stride: the distance that it moves per index.
    pub stride: u64,
    /// The start at index 0.
    pub low: ExprId,
    /// The last coordinate at index 0; not before the start.
    pub last: ExprId,
    /// Inner loops choose a coordinate of the window; else there is one only.
    pub open: bool,
}

impl Window {
    /// The first index whose window begins at a coordinate or behind it.
    pub fn from(&self, b: &mut Builder, x: ExprId) -> ExprId {
        self.up(b, x, self.low)
    }

    /// The first index whose window ends at a coordinate or behind it.
    pub fn reaching(&self, b: &mut Builder, x: ExprId) -> ExprId {
        self.up(b, x, self.last)
    }

    /// The start of the window of an index.
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
    /// The structure along an index whose windows are asked for, where this is the structure along the coordinates in
    /// them; none if it has none that a looplet could say.
    pub fn reduced(self, b: &mut Builder, window: Window) -> Option<Looplet> {
        Some(match self {
            Looplet::Run(_) => self,
            // Every coordinate is there, so every window is; a single one is asked for where it is.
            Looplet::Lookup if window.open => Looplet::Run(Payload::Window(None)),
            Looplet::Lookup => self,
            Looplet::Block { .. } if window.open => Looplet::Run(Payload::Window(None)),
            Looplet::Block { base, stride } => {
                let by = b.int(stride);
                let moved = b.call_in(Op::Mul, DType::I64, &[window.low, by]);
                Looplet::Block { base: b.add(base, moved), stride: stride * window.stride as i64 }
            }
            Looplet::Stepper(list) => Looplet::Pieces(points(list, window, false)?),
            Looplet::Jumper(list) => Looplet::Pieces(points(list, window, true)?),
            Looplet::Pieces(pieces) if pieces.window.is_none() => {
                Looplet::Pieces(Pieces { window: Some(window), ..pieces })
            }
            Looplet::Pieces(_) | Looplet::Fibers { .. } => return None,
            Looplet::Spike(_) => Looplet::Sequence { phases: vec![Phase { stop: None, body: self }], inside: false }
                .reduced(b, window)?,
            Looplet::Sequence { phases, .. } => {
                let mut moved: Vec<Phase> = Vec::new();
                let phases: Vec<Phase> = phases.into_iter().flat_map(|phase| unfolded(b, phase, window)).collect();
                for Phase { stop, body } in phases {
                    // Windows that end before the phase does, then those that reach beyond it.
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

    /// True if all of it is looked up.
    pub fn is_lookup(&self) -> bool {
        match self {
            Looplet::Lookup => true,
            Looplet::Thunk { body, .. } => body.is_lookup(),
            Looplet::Switch { then, .. } => then.is_lookup(),
            _ => false,
        }
    }

    /// True if it does not say by itself where the dimension begins and ends.
    pub fn is_endless(&self) -> bool {
        match self {
            Looplet::Lookup | Looplet::Block { .. } => true,
            Looplet::Pieces(pieces) => pieces.consecutive(),
            Looplet::Thunk { body, .. } => body.is_endless(),
            Looplet::Switch { then, .. } => then.is_endless(),
            _ => false,
        }
    }

    /// True if what holds along the loop is a window, somewhere.
    pub fn is_window(&self) -> bool {
        match self {
            Looplet::Run(payload) => matches!(payload, Payload::Window(_)),
            Looplet::Pieces(pieces) => pieces.overlapping(),
            Looplet::Fibers { .. } => true,
            Looplet::Sequence { phases, .. } => phases.iter().any(|phase| phase.body.is_window()),
            Looplet::Thunk { body, .. } => body.is_window(),
            Looplet::Switch { then, .. } => then.is_window(),
            _ => false,
        }
    }

    /// The same fiber, without what lies on the other side of an edge of a window, along a loop from `start` to `stop`
    /// that goes over the window; from its end to its beginning, if it is to be mirrored.
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
            Looplet::Pieces(pieces) if pieces.consecutive() && mirrored => Looplet::Pieces(pieces),
            Looplet::Pieces(pieces) => {
                let (start, stop, sought, ended) = cut(b, pieces.start, pieces.stop);
                Looplet::Pieces(Pieces { start, stop, sought, ended, ..pieces })
            }
            Looplet::Thunk { preamble, body } => {
                Looplet::Thunk { preamble, body: Box::new(body.starting(b, edge, (start, stop), mirrored)) }
            }
            Looplet::Switch { cond, then, guarded } => {
                // An absent fiber has no position: its coordinate list is empty and starts at its end.
                let zero = b.int(0);
                let safe = match edge {
                    Edge::From(at) => {
                        let end = guarded.list_end().unwrap_or(zero);
                        Edge::From(b.call_in(Op::Select, DType::I64, &[cond, at, end]))
                    }
                    Edge::To(at) => {
                        let at = b.call_in(Op::Select, DType::I64, &[cond, at, zero]);
                        // One behind the last position is where nothing starts.
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

    /// One past the last position of a list.
    fn list_end(&self) -> Option<ExprId> {
        match self {
            Looplet::Stepper(list) | Looplet::Jumper(list) => Some(list.stop),
            Looplet::Pieces(pieces) => Some(pieces.stop),
            Looplet::Thunk { body, .. } => body.list_end(),
            _ => None,
        }
    }

    /// The structure along an index `i`, where this is the structure along `-i`; none if it has none that a looplet could say.
    pub fn mirrored(self, b: &mut Builder) -> Option<Looplet> {
        let one = b.int(1);
        let mut turned = |start: ExprId, stop: ExprId| (b.sub(one, stop), b.sub(one, start));
        Some(match self {
            Looplet::Run(_) | Looplet::Lookup => self,
            Looplet::Fibers { .. } => return None,
            Looplet::Block { base, stride } => Looplet::Block { base, stride: -stride },
            // Coordinates that repeat are found from their first one on.
            Looplet::Stepper(list) | Looplet::Jumper(list) if list.grouped || list.shift.is_some() => return None,
            Looplet::Stepper(list) => {
                let (start, stop) = turned(list.start, list.stop);
                Looplet::Stepper(Stepper { start, stop, mirrored: !list.mirrored, ..list })
            }
            Looplet::Jumper(list) => {
                let (start, stop) = turned(list.start, list.stop);
                Looplet::Jumper(Stepper { start, stop, mirrored: !list.mirrored, ..list })
            }
            Looplet::Pieces(pieces) if pieces.window.is_some() || pieces.shift.is_some() => return None,
            Looplet::Pieces(pieces) => {
                let (start, stop) = turned(pieces.start, pieces.stop);
                Looplet::Pieces(Pieces { start, stop, mirrored: !pieces.mirrored, ..pieces })
            }
            Looplet::Spike(_) => {
                Looplet::Sequence { phases: vec![Phase { stop: None, body: self }], inside: false }.mirrored(b)?
            }
            Looplet::Sequence { phases, .. } => {
                let phases: Vec<Phase> = phases.into_iter().flat_map(|phase| parted(b, phase)).collect();
                let begins = std::iter::once(None).chain(phases.iter().map(|phase| phase.stop));
                let begins: Vec<Option<ExprId>> = begins.take(phases.len()).collect();
                let mut turned = Vec::new();
                for (Phase { body, .. }, begin) in phases.into_iter().zip(begins).rev() {
                    let stop = begin.map(|at| b.sub(one, at));
                    turned.push(Phase { stop, body: body.mirrored(b)? });
                }
                Looplet::Sequence { phases: turned, inside: false }
            }
            Looplet::Switch { cond, then, guarded } => {
                Looplet::Switch { cond, then: Box::new(then.mirrored(b)?), guarded: Box::new(guarded.mirrored(b)?) }
            }
            Looplet::Thunk { preamble, body } => Looplet::Thunk { preamble, body: Box::new(body.mirrored(b)?) },
        })
    }
}

/// A phase whose spike is taken apart: what lies before it, and the one coordinate.
fn parted(b: &mut Builder, Phase { stop, body }: Phase) -> Vec<Phase> {
    let Looplet::Spike(Spike { body, tail, at }) = body else { return vec![Phase { stop, body }] };
    let one = b.int(1);
    let after = b.add(at, one);
    vec![
        Phase { stop: Some(at), body: Looplet::Run(body) },
        Phase { stop: stop.or(Some(after)), body: Looplet::Run(tail) },
    ]
}

/// A phase whose spike is taken apart, as windows see it.
fn unfolded(b: &mut Builder, phase: Phase, window: Window) -> Vec<Phase> {
    let spike = matches!(phase.body, Looplet::Spike(_));
    let mut parts = parted(b, phase);
    // No window of several coordinates lies inside of one.
    if let Some(last) = parts.last_mut().filter(|_| spike && window.open) {
        last.body = Looplet::Run(Payload::Window(None));
    }
    parts
}

/// Adds a phase; windows that follow each other are one phase.
fn push(phases: &mut Vec<Phase>, phase: Phase) {
    let window = Looplet::Run(Payload::Window(None));
    match phases.last_mut() {
        Some(last) if last.body == window && phase.body == window => *last = phase,
        _ => phases.push(phase),
    }
}

/// Each coordinate of a list is met by a stretch of windows.
fn points(list: Stepper, window: Window, leads: bool) -> Option<Pieces> {
    // Coordinates that repeat belong together, which only their own loop sees to.
    if list.grouped && !window.open {
        return None;
    }
    Some(Pieces {
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
