//! Pieces: stretches of coordinates, stored one after the other, each of which holds one thing or a block of things.

use super::{Below, Edge, Window};
use crate::DType;
use crate::algebra::Op;
use crate::kernel::{BufferId, Builder, ExprId, VarId};

/// A coordinate behind all others, from which some can be subtracted.
pub const NEVER: i64 = i64::MAX / 4;

/// A list of stretches, in order and without overlap.
#[derive(Clone, Debug, PartialEq)]
pub struct Pieces {
    /// The first piece of the fiber.
    pub start: ExprId,
    /// One past the last piece.
    pub stop: ExprId,
    /// Where pieces begin and end, and what they hold.
    pub extents: Extents,
    /// Together they are all of the dimension.
    pub covers: bool,
    /// The number of loop coordinates per stored coordinate.
    pub scale: u64,
    /// The offset from a scaled stored coordinate to a loop coordinate.
    pub shift: Option<ExprId>,
    /// Others are brought to these pieces by search.
    pub leads: bool,
    /// The loop's coordinates are those of windows over all this; each piece reaches over those that meet it.
    pub window: Option<Window>,
    /// Stored coordinates are taken with the other sign, and the numbers of pieces,
    /// too, so that both go up.
    pub mirrored: bool,
    /// The coordinate of the loop that all pieces from `start` on end behind.
    pub sought: Option<ExprId>,
    /// The coordinate of the loop that all pieces up to `stop` begin before.
    pub ended: Option<ExprId>,
}

/// Where pieces begin and end, and what they hold. Ends are those of half-open intervals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Extents {
    /// One child each, up to `ends`, from where the piece before ends.
    Ends(BufferId),
    /// One child each, from `starts` to `ends`.
    Runs {
        /// The array of starts.
        starts: BufferId,
        /// The array of ends.
        ends: BufferId,
    },
    /// A child for each coordinate.
    Blocks {
        /// The last coordinate of each.
        lasts: BufferId,
        /// The position of the first child of each; one more, for the end.
        offsets: BufferId,
    },
    /// One stored coordinate each.
    Points(BufferId, Below),
    /// What several fibers hold together, from the nearest beginning to the nearest end. There is one piece at a time, and whoever has
    /// done with it brings the fibers to the next.
    Fibers {
        /// The number of the set.
        set: usize,
        /// Where the piece begins.
        first: VarId,
        /// Where it ends; behind its first coordinate, if there is none.
        end: Option<VarId>,
    },
}

/// What is known of one piece.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Piece {
    /// Where it begins; where the one before ends, if there is none.
    pub first: Option<ExprId>,
    /// The end.
    pub end: ExprId,
}

impl Pieces {
    /// True if each piece begins where the one before ends.
    pub fn consecutive(&self) -> bool {
        matches!(self.extents, Extents::Ends(_))
    }

    /// True if each piece is one coordinate of the loop.
    pub fn is_points(&self) -> bool {
        matches!(self.extents, Extents::Points(..)) && self.scale == 1 && self.window.is_none()
    }

    /// True if a piece may begin before the one before ends; it then begins where that ends.
    pub fn overlapping(&self) -> bool {
        self.set().is_some() || self.window.is_some_and(|window| window.open)
    }

    /// The set of fibers whose pieces these are.
    pub fn set(&self) -> Option<usize> {
        match self.extents {
            Extents::Fibers { set, .. } => Some(set),
            _ => None,
        }
    }

    /// True if there is a piece of this number.
    pub fn has(&self, b: &mut Builder, q: ExprId) -> ExprId {
        match self.extents {
            Extents::Fibers { first, .. } => {
                let (first, never) = (b.get(first), b.int(NEVER));
                b.call_in(Op::Lt, DType::I64, &[first, never])
            }
            _ => b.call_in(Op::Lt, DType::I64, &[q, self.stop]),
        }
    }

    /// True if windows inside of a piece all hold one thing.
    pub fn splits(&self) -> bool {
        self.overlapping() && matches!(self.extents, Extents::Ends(_) | Extents::Runs { .. })
    }

    /// Where a piece begins and ends, in coordinates of the loop.
    pub fn piece(&self, b: &mut Builder, q: ExprId) -> Piece {
        let Piece { first, end } = self.stored(b, q);
        match self.window {
            Some(window) => {
                let first = first.map(|first| window.reaching(b, first));
                Piece { first, end: window.from(b, end) }
            }
            None => Piece { first, end },
        }
    }

    /// Where the windows begin and end that lie inside of a piece; where it begins, if they begin there.
    pub fn inside(&self, b: &mut Builder, q: ExprId) -> Option<Piece> {
        let window = self.window.filter(|window| window.open)?;
        let Piece { first, end } = self.stored(b, q);
        let first = first.map(|first| window.from(b, first));
        Some(Piece { first, end: window.reaching(b, end) })
    }

    /// Where a piece begins and ends, in coordinates of the level.
    fn stored(&self, b: &mut Builder, q: ExprId) -> Piece {
        let one = b.int(1);
        let last = self.mirrored.then(|| {
            let next = b.add(q, one);
            b.call_in(Op::Eq, DType::I64, &[next, self.stop])
        });
        let q = self.number(b, q);
        let (first, end) = match self.extents {
            Extents::Ends(ends) => (None, b.load(ends, q)),
            Extents::Runs { starts, ends } => (Some(b.load(starts, q)), b.load(ends, q)),
            Extents::Blocks { lasts, offsets } => {
                let last = b.load(lasts, q);
                let end = b.add(last, one);
                let next = b.add(q, one);
                let (from, to) = (b.load(offsets, q), b.load(offsets, next));
                let length = b.sub(to, from);
                (Some(b.sub(end, length)), end)
            }
            Extents::Points(coordinates, _) => {
                let first = b.load(coordinates, q);
                (Some(first), b.add(first, one))
            }
            Extents::Fibers { first, end, .. } => {
                let first = b.get(first);
                (Some(first), end.map(|end| b.get(end)).unwrap_or_else(|| b.add(first, one)))
            }
        };
        let mut scaled = |at: ExprId| {
            let scale = b.int(self.scale as i64);
            b.call_in(Op::Mul, DType::I64, &[at, scale])
        };
        let mut first = first.map(&mut scaled);
        let mut end = b.end_of_block(end, self.scale);
        if let Some(last) = last {
            // Runs that follow each other still do; each now ends where it began.
            let begin = match (first, self.extents) {
                (None, Extents::Ends(ends)) => {
                    let zero = b.int(0);
                    let before = b.sub(q, one);
                    let before = b.load(ends, before);
                    let begin = b.call_in(Op::Select, DType::I64, &[last, zero, before]);
                    let scale = b.int(self.scale as i64);
                    b.call_in(Op::Mul, DType::I64, &[begin, scale])
                }
                (first, _) => first.unwrap_or(end),
            };
            first = first.map(|_| b.sub(one, end));
            end = b.sub(one, begin);
        }
        match self.shift {
            Some(shift) => Piece { first: first.map(|first| b.add(first, shift)), end: b.add(end, shift) },
            None => Piece { first, end },
        }
    }

    /// Whether a window meets a piece of one coordinate, and which, if windows are of one coordinate and skip some.
    pub fn point(&self, b: &mut Builder, q: ExprId) -> Option<(ExprId, ExprId)> {
        let window = self.window.filter(|window| !window.open && window.stride > 1)?;
        if !matches!(self.extents, Extents::Points(..)) || self.scale != 1 {
            return None;
        }
        let (first, zero, stride) = (self.stored(b, q).first?, b.int(0), b.int(window.stride as i64));
        let distance = b.sub(first, window.low);
        let rest = b.call_in(Op::Mod, DType::I64, &[distance, stride]);
        let at = b.call_in(Op::FloorDiv, DType::I64, &[distance, stride]);
        Some((b.call_in(Op::Eq, DType::I64, &[rest, zero]), at))
    }

    /// The stored number of a piece.
    pub fn number(&self, b: &mut Builder, q: ExprId) -> ExprId {
        if !self.mirrored {
            return q;
        }
        let zero = b.int(0);
        b.sub(zero, q)
    }

    /// The edge of windows that a piece is the first to be met by.
    pub fn edge(&self, b: &mut Builder, q: ExprId) -> Edge {
        match (self.mirrored, self.number(b, q)) {
            (true, number) => Edge::To(number),
            (false, number) => Edge::From(number),
        }
    }

    /// The position below a piece, if it holds one thing.
    pub fn child(&self, b: &mut Builder, q: ExprId) -> Option<ExprId> {
        let q = self.number(b, q);
        match self.extents {
            Extents::Ends(_) | Extents::Runs { .. } | Extents::Points(_, Below::Position) => Some(q),
            Extents::Points(coordinates, Below::Coordinate(base)) => {
                let at = b.load(coordinates, q);
                Some(b.add(base, at))
            }
            Extents::Blocks { .. } | Extents::Fibers { .. } => None,
        }
    }

    /// What is added to a coordinate of the loop (times the stride of its windows) to find its child, if a piece holds a
    /// block.
    pub fn base(&self, b: &mut Builder, q: ExprId, end: ExprId) -> Option<ExprId> {
        let Extents::Blocks { offsets, .. } = self.extents else { return None };
        let one = b.int(1);
        let number = self.number(b, q);
        let next = b.add(number, one);
        let to = b.load(offsets, next);
        Some(match (self.window, self.mirrored) {
            (None, false) => b.sub(to, end),
            (Some(window), false) => {
                let end = self.stored(b, q).end;
                let base = b.sub(to, end);
                b.add(base, window.low)
            }
            (window, true) => {
                // It begins, in its own coordinates, where the last child is.
                let (first, zero) = (self.stored(b, q).first, b.int(0));
                let last = b.sub(to, one);
                let base = b.add(last, first.unwrap_or(zero));
                window.map_or(base, |window| b.sub(base, window.low))
            }
        })
    }

    /// How far children lie apart from one of the loop's coordinates to the next, if a piece holds a block.
    pub fn stride(&self) -> i64 {
        let stride = self.window.map_or(1, |window| window.stride as i64);
        if self.mirrored { -stride } else { stride }
    }

    /// The first piece from `start` on that ends behind a coordinate of the loop.
    pub fn seek(&self, b: &mut Builder, name: &str, start: ExprId, coordinate: ExprId) -> ExprId {
        let coordinate = match self.window {
            Some(window) => window.begin(b, coordinate),
            None => coordinate,
        };
        if self.mirrored {
            return self.seek_down(b, name, start, coordinate);
        }
        let mut key = match self.shift {
            Some(shift) => b.sub(coordinate, shift),
            None => coordinate,
        };
        if self.scale != 1 {
            let scale = b.int(self.scale as i64);
            key = b.call_in(Op::FloorDiv, DType::I64, &[key, scale]);
        }
        let one = b.int(1);
        let (array, key) = match self.extents {
            Extents::Ends(ends) | Extents::Runs { ends, .. } => (ends, b.add(key, one)),
            Extents::Blocks { lasts, .. } => (lasts, key),
            Extents::Points(coordinates, _) => (coordinates, key),
            // Fibers are brought forward one by one.
            Extents::Fibers { .. } => return start,
        };
        // No coordinate is negative, and no piece empty.
        let least = i64::from(matches!(self.extents, Extents::Ends(_) | Extents::Runs { .. }));
        if b.as_constant(key).and_then(|key| key.as_i64()).is_some_and(|key| key <= least) {
            return start;
        }
        b.search(name, array, start, self.stop, key)
    }

    /// The same, where signs are changed: the last stored piece that begins at a coordinate or before it.
    fn seek_down(&self, b: &mut Builder, name: &str, start: ExprId, coordinate: ExprId) -> ExprId {
        let (zero, one) = (b.int(0), b.int(1));
        let (from, to) = (b.sub(one, self.stop), b.sub(one, start));
        let mut at = match self.shift {
            Some(shift) => b.sub(shift, coordinate),
            None => b.sub(zero, coordinate),
        };
        if self.scale != 1 {
            let scale = b.int(self.scale as i64);
            at = b.call_in(Op::FloorDiv, DType::I64, &[at, scale]);
        }
        let behind = b.add(at, one);
        let after = match self.extents {
            Extents::Points(array, _) | Extents::Runs { starts: array, .. } => b.search(name, array, from, to, behind),
            Extents::Ends(ends) => {
                // The run that holds the coordinate, or the last one.
                let holds = b.search(name, ends, from, to, behind);
                let next = b.add(holds, one);
                let after = b.call_in(Op::Min, DType::I64, &[next, to]);
                // Before the first coordinate there is none.
                let none = b.call_in(Op::Lt, DType::I64, &[at, zero]);
                b.call_in(Op::Select, DType::I64, &[none, from, after])
            }
            Extents::Blocks { lasts, offsets } => {
                // The first block that does not end before the coordinate may begin behind it.
                let holds = b.search(name, lasts, from, to, at);
                let next = b.add(holds, one);
                let more = b.call_in(Op::Lt, DType::I64, &[holds, to]);
                let (last, begin, end) = (b.load(lasts, holds), b.load(offsets, holds), b.load(offsets, next));
                let length = b.sub(end, begin);
                let first = b.sub(last, length);
                let begun = b.call_in(Op::Lt, DType::I64, &[first, at]);
                let both = b.call_in(Op::And, DType::Bool, &[more, begun]);
                b.call_in(Op::Select, DType::I64, &[both, next, holds])
            }
            Extents::Fibers { .. } => return start,
        };
        let at = b.sub(one, after);
        b.name(name, at)
    }
}
