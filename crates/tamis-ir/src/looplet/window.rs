//! Windows: a level is asked not for one coordinate but for a stretch of them that moves with a loop.
//!
//! The subscript `a*i + b*k + c` is *reduced* by the outer of its two loops, say `i`, and *resolved* by the inner one. Along `i`,
//! a fiber is described by which windows `{a*i + b*k + c : k}` meet what is stored: a stored coordinate `x` is met by those
//! `i` whose window reaches `x` and does not begin behind it, one stretch of them. What holds there is the fiber itself,
//! from the first stored coordinate on that the window meets; along `k` it is described as always. Where a window lies
//! inside of one run, all of its coordinates hold the same, and the subscript is resolved before its inner loop.
//!
//! A subscript `a*i + c` without an inner index has windows of one coordinate, and is resolved by `i`.

use super::{Extents, Looplet, Payload, Phase, Pieces, Spike, Stepper};
use crate::DType;
use crate::algebra::Op;
use crate::kernel::{Builder, ExprId, Kernel};

/// What a subscript covers at an index `i`: from `stride * i + low` to `stride * i + last`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    /// How far it moves with the index.
    pub stride: u64,
    /// Where it begins at index 0.
    pub low: ExprId,
    /// Where it ends at index 0; not before it begins.
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

    /// Where the window of an index begins.
    pub fn begin(&self, b: &mut Builder, i: ExprId) -> ExprId {
        let stride = b.int(self.stride as i64);
        let at = b.call_in(Op::Mul, DType::I64, &[i, stride]);
        b.add(at, self.low)
    }

    /// As text, with the names of a kernel.
    pub fn show(&self, kernel: &Kernel) -> String {
        let stride = if self.stride == 1 { String::new() } else { format!("{}*", self.stride) };
        match self.open {
            true => format!("windows {stride}i + {} to {}", kernel.show(self.low), kernel.show(self.last)),
            false => format!("at {stride}i + {}", kernel.show(self.low)),
        }
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
            Looplet::Block { base, stride } => {
                if window.open || stride != 1 {
                    return window.open.then_some(Looplet::Run(Payload::Window(None)));
                }
                Looplet::Block { base: b.add(base, window.low), stride: window.stride }
            }
            Looplet::Stepper(list) => Looplet::Pieces(points(list, window, false)?),
            Looplet::Jumper(list) => Looplet::Pieces(points(list, window, true)?),
            Looplet::Pieces(pieces) if pieces.window.is_none() => {
                Looplet::Pieces(Pieces { window: Some(window), ..pieces })
            }
            Looplet::Pieces(_) => return None,
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

    /// Whether all of it is looked up.
    pub fn is_lookup(&self) -> bool {
        match self {
            Looplet::Lookup => true,
            Looplet::Thunk { body, .. } => body.is_lookup(),
            Looplet::Switch { then, .. } => then.is_lookup(),
            _ => false,
        }
    }

    /// Whether it does not say by itself where the dimension begins and ends.
    pub fn is_endless(&self) -> bool {
        match self {
            Looplet::Lookup | Looplet::Block { .. } => true,
            Looplet::Pieces(pieces) => pieces.consecutive(),
            Looplet::Thunk { body, .. } => body.is_endless(),
            Looplet::Switch { then, .. } => then.is_endless(),
            _ => false,
        }
    }

    /// Whether what holds along the loop is a window, somewhere.
    pub fn is_window(&self) -> bool {
        match self {
            Looplet::Run(payload) => matches!(payload, Payload::Window(_)),
            Looplet::Pieces(pieces) => pieces.overlapping(),
            Looplet::Sequence { phases, .. } => phases.iter().any(|phase| phase.body.is_window()),
            Looplet::Thunk { body, .. } => body.is_window(),
            Looplet::Switch { then, .. } => then.is_window(),
            _ => false,
        }
    }

    /// The same fiber, without what lies before a position; what is left is known to begin at `sought` or behind it.
    pub fn starting(self, b: &mut Builder, start: ExprId, sought: ExprId) -> Looplet {
        match self {
            Looplet::Stepper(list) => Looplet::Stepper(Stepper { start, sought: Some(sought), ..list }),
            Looplet::Jumper(list) => Looplet::Jumper(Stepper { start, sought: Some(sought), ..list }),
            Looplet::Pieces(pieces) => Looplet::Pieces(Pieces { start, sought: Some(sought), ..pieces }),
            Looplet::Thunk { preamble, body } => {
                Looplet::Thunk { preamble, body: Box::new(body.starting(b, start, sought)) }
            }
            Looplet::Switch { cond, then, guarded } => {
                // Where the fiber is absent, there is no position in it, and its list is empty.
                let zero = b.int(0);
                let there = b.call_in(Op::Select, DType::I64, &[cond, start, zero]);
                Looplet::Switch {
                    cond,
                    then: Box::new(then.starting(b, start, sought)),
                    guarded: Box::new(guarded.starting(b, there, sought)),
                }
            }
            other => other,
        }
    }
}

/// A phase whose spike is taken apart: what lies before it, and the one coordinate.
fn unfolded(b: &mut Builder, Phase { stop, body }: Phase, window: Window) -> Vec<Phase> {
    let Looplet::Spike(Spike { body, tail, at }) = body else { return vec![Phase { stop, body }] };
    let one = b.int(1);
    let after = b.add(at, one);
    // No window of several coordinates lies inside of one.
    let tail = if window.open { Payload::Window(None) } else { tail };
    vec![
        Phase { stop: Some(at), body: Looplet::Run(body) },
        Phase { stop: stop.or(Some(after)), body: Looplet::Run(tail) },
    ]
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
        sought: list.sought,
    })
}
