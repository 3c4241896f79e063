//! Segments: contiguous ranges of coordinates, stored in order, each with one child or a block of
//! children.

use super::{Below, Edge, Window};
use crate::DType;
use crate::algebra::Op;
use crate::kernel::{BufferId, Builder, ExprId, VarId};

/// A coordinate after all others, with headroom for subtraction.
///
/// ```
/// use tamis_ir::looplet::NEVER;
/// assert!(NEVER - (-NEVER) > 0, "differences do not overflow");
/// ```
pub const NEVER: i64 = i64::MAX / 4;

/// Segments of a fiber, in order and without overlap.
///
/// ```
/// use tamis_ir::kernel::Kernel;
/// use tamis_ir::looplet::{Extents, Looplet};
/// let mut kernel = Kernel::parse("kernel f\n    in ends: index u32[]\n    in n: i64\nbegin\n")?;
/// let looplet = Looplet::parse(&mut kernel, "segments(run ends[0..n] * 4, covers)")?;
/// let Looplet::Segments(runs) = looplet else { panic!() };
/// assert!(runs.covers && runs.scale == 4 && matches!(runs.extents, Extents::Ends(_)));
/// # Ok::<(), tamis_ir::Diagnostic>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Segments {
    /// The position of the first segment of the fiber.
    pub start: ExprId,
    /// One past the position of the last segment.
    pub stop: ExprId,
    /// The bounds and the children of segments.
    pub extents: Extents,
    /// The segments cover the dimension without gaps.
    pub covers: bool,
    /// The number of loop coordinates per stored coordinate.
    pub scale: u64,
    /// The offset from a scaled stored coordinate to a loop coordinate.
    pub shift: Option<ExprId>,
    /// Other levels are moved to these segments by search.
    pub leads: bool,
    /// The windows that are the loop's coordinates; each segment then extends over the windows that
    /// meet it.
    pub window: Option<Window>,
    /// Stored coordinates are negated, and the positions of segments, too, so that both ascend.
    pub mirrored: bool,
    /// A loop coordinate that is before the end of every segment from `start` on.
    pub sought: Option<ExprId>,
    /// A loop coordinate that is after the start of every segment before `stop`.
    pub ended: Option<ExprId>,
}

/// The bounds and the children of segments. Segments are half-open intervals.
///
/// ```
/// use tamis_ir::kernel::{Builder, Kernel};
/// use tamis_ir::looplet::Looplet;
/// let mut kernel = Kernel::parse("kernel f\n    in ends: index u32[]\n    in n: i64\nbegin\n")?;
/// let looplet = Looplet::parse(&mut kernel, "segments(run ends[0..n])")?;
/// # use tamis_ir::{kernel::BufferId, looplet::Extents};
/// let Looplet::Segments(runs) = looplet else { panic!() };
/// assert_eq!(runs.extents, Extents::Ends(BufferId(0)));
/// # let _ = Builder::resume(kernel);
/// # Ok::<(), tamis_ir::Diagnostic>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Extents {
    /// One child each, from the end of the previous segment to an entry of the array.
    Ends(BufferId),
    /// One child each, from `starts` to `ends`.
    Runs {
        /// The array of starts.
        starts: BufferId,
        /// The array of ends.
        ends: BufferId,
    },
    /// A block of children, one for each coordinate.
    Blocks {
        /// The last coordinate of each segment.
        lasts: BufferId,
        /// The position of the first child of each segment; one more, for the end.
        offsets: BufferId,
    },
    /// One stored coordinate each.
    Points(BufferId, Below),
    /// The union of several fibers, from the nearest start to the nearest end. One segment exists
    /// at a time; the loop advances the fibers to the next one.
    Fibers {
        /// The id of the set of fibers.
        set: usize,
        /// The start of the segment.
        first: VarId,
        /// The end of the segment; one past its start if `None`.
        end: Option<VarId>,
    },
}

/// The bounds of one segment.
///
/// ```
/// use tamis_ir::{kernel::Builder, looplet::Segment};
/// let mut b = Builder::new("f");
/// let run = Segment { first: None, end: b.int(7) };
/// assert!(run.first.is_none(), "it starts where the one before it ends");
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Segment {
    /// The start; the end of the previous segment if `None`.
    pub first: Option<ExprId>,
    /// The end.
    pub end: ExprId,
}

impl Segments {
    /// True if each segment starts at the end of the previous one.
    ///
    /// ```
    /// use tamis_ir::kernel::{Builder, Kernel};
    /// use tamis_ir::looplet::Looplet;
    /// let text = "kernel f
    ///     in starts: index u32[]
    ///     in ends: index u32[]
    /// begin
    /// ";
    /// let mut kernel = Kernel::parse(text)?;
    /// let looplet = Looplet::parse(&mut kernel, "segments(run starts to ends[0..9])")?;
    /// let Looplet::Segments(runs) = looplet else { panic!() };
    /// assert!(!runs.consecutive(), "there may be gaps between runs");
    /// # let _ = Builder::resume(kernel);
    /// # Ok::<(), tamis_ir::Diagnostic>(())
    /// ```
    pub fn consecutive(&self) -> bool {
        matches!(self.extents, Extents::Ends(_))
    }

    /// True if each segment is one coordinate of the loop.
    ///
    /// ```
    /// use tamis_ir::kernel::{Builder, Kernel};
    /// use tamis_ir::looplet::Looplet;
    /// let mut kernel = Kernel::parse("kernel f\n    in crd: index u32[]\nbegin\n")?;
    /// let looplet = Looplet::parse(&mut kernel, "segments(point crd[0..9])")?;
    /// let Looplet::Segments(points) = looplet else { panic!() };
    /// assert!(points.is_points());
    /// # let _ = Builder::resume(kernel);
    /// # Ok::<(), tamis_ir::Diagnostic>(())
    /// ```
    pub fn is_points(&self) -> bool {
        matches!(self.extents, Extents::Points(..)) && self.scale == 1 && self.window.is_none()
    }

    /// True if a segment may start before the end of the previous one; it is then truncated to
    /// start there.
    ///
    /// ```
    /// use tamis_ir::kernel::{Builder, Kernel};
    /// use tamis_ir::looplet::Looplet;
    /// let mut kernel = Kernel::parse("kernel f\n    in crd: index u32[]\nbegin\n")?;
    /// let looplet = Looplet::parse(&mut kernel, "segments(point crd[0..9], windows i + 0 to 2)")?;
    /// let Looplet::Segments(points) = looplet else { panic!() };
    /// assert!(points.overlapping(), "windows of three coordinates");
    /// # let _ = Builder::resume(kernel);
    /// # Ok::<(), tamis_ir::Diagnostic>(())
    /// ```
    pub fn overlapping(&self) -> bool {
        self.set().is_some() || self.window.is_some_and(|window| window.open)
    }

    /// The id of the set of fibers, if the segments are their union.
    ///
    /// ```
    /// use tamis_ir::kernel::{Builder, Kernel};
    /// use tamis_ir::looplet::Looplet;
    /// let mut kernel = Kernel::parse("kernel f\n    in crd: index u32[]\nbegin\n")?;
    /// let looplet = Looplet::parse(&mut kernel, "segments(point crd[0..9])")?;
    /// let Looplet::Segments(points) = looplet else { panic!() };
    /// assert_eq!(points.set(), None);
    /// # let _ = Builder::resume(kernel);
    /// # Ok::<(), tamis_ir::Diagnostic>(())
    /// ```
    pub fn set(&self) -> Option<usize> {
        match self.extents {
            Extents::Fibers { set, .. } => Some(set),
            _ => None,
        }
    }

    /// True if there is a segment at this position.
    ///
    /// ```
    /// use tamis_ir::kernel::{Builder, Kernel};
    /// use tamis_ir::looplet::Looplet;
    /// let text = "kernel f
    ///     in ends: index u32[]
    ///     in n: i64
    /// begin
    /// ";
    /// let mut kernel = Kernel::parse(text)?;
    /// let looplet = Looplet::parse(&mut kernel, "segments(run ends[0..n])")?;
    /// let Looplet::Segments(runs) = looplet else { panic!() };
    /// let (mut b, _) = Builder::resume(kernel);
    /// let has = runs.has(&mut b, runs.start);
    /// assert_eq!(b.kernel().show(has), "0 < n");
    /// # Ok::<(), tamis_ir::Diagnostic>(())
    /// ```
    pub fn has(&self, b: &mut Builder, q: ExprId) -> ExprId {
        match self.extents {
            Extents::Fibers { first, .. } => {
                let (first, never) = (b.get(first), b.int(NEVER));
                b.call_in(Op::Lt, DType::I64, &[first, never])
            }
            _ => b.call_in(Op::Lt, DType::I64, &[q, self.stop]),
        }
    }

    /// True if all windows inside of a segment have the same child.
    ///
    /// ```
    /// use tamis_ir::kernel::{Builder, Kernel};
    /// use tamis_ir::looplet::Looplet;
    /// let mut kernel = Kernel::parse("kernel f\n    in ends: index u32[]\nbegin\n")?;
    /// let looplet = Looplet::parse(&mut kernel, "segments(run ends[0..9], windows i + 0 to 2)")?;
    /// let Looplet::Segments(runs) = looplet else { panic!() };
    /// assert!(runs.splits());
    /// # let _ = Builder::resume(kernel);
    /// # Ok::<(), tamis_ir::Diagnostic>(())
    /// ```
    pub fn splits(&self) -> bool {
        self.overlapping() && matches!(self.extents, Extents::Ends(_) | Extents::Runs { .. })
    }

    /// The bounds of a segment, in coordinates of the loop.
    ///
    /// ```
    /// use tamis_ir::kernel::{Builder, Kernel};
    /// use tamis_ir::looplet::Looplet;
    /// let text = "kernel f
    ///     in starts: index u32[]
    ///     in ends: index u32[]
    /// begin
    /// ";
    /// let mut kernel = Kernel::parse(text)?;
    /// let looplet = Looplet::parse(&mut kernel, "segments(run starts to ends[0..9])")?;
    /// let Looplet::Segments(runs) = looplet else { panic!() };
    /// let (mut b, _) = Builder::resume(kernel);
    /// let run = runs.segment(&mut b, runs.start);
    /// assert_eq!(b.kernel().show(run.end), "ends[0]");
    /// # Ok::<(), tamis_ir::Diagnostic>(())
    /// ```
    pub fn segment(&self, b: &mut Builder, q: ExprId) -> Segment {
        let Segment { first, end } = self.stored(b, q);
        match self.window {
            Some(window) => {
                let first = first.map(|first| window.reaching(b, first));
                Segment { first, end: window.from(b, end) }
            }
            None => Segment { first, end },
        }
    }

    /// The bounds of the windows that lie inside of a segment; the start is `None` if they start
    /// with the segment.
    ///
    /// ```
    /// use tamis_ir::kernel::{Builder, Kernel};
    /// use tamis_ir::looplet::Looplet;
    /// let text = "kernel f
    ///     in starts: index u32[]
    ///     in ends: index u32[]
    /// begin
    /// ";
    /// let mut kernel = Kernel::parse(text)?;
    /// let looplet = Looplet::parse(&mut kernel, "segments(run starts to ends[0..9])")?;
    /// let Looplet::Segments(runs) = looplet else { panic!() };
    /// let (mut b, _) = Builder::resume(kernel);
    /// assert_eq!(runs.inside(&mut b, runs.start), None, "there are no windows");
    /// # Ok::<(), tamis_ir::Diagnostic>(())
    /// ```
    pub fn inside(&self, b: &mut Builder, q: ExprId) -> Option<Segment> {
        let window = self.window.filter(|window| window.open)?;
        let Segment { first, end } = self.stored(b, q);
        let first = first.map(|first| window.from(b, first));
        Some(Segment { first, end: window.reaching(b, end) })
    }

    /// The bounds of a segment, in coordinates of the level.
    fn stored(&self, b: &mut Builder, q: ExprId) -> Segment {
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
            // Adjacent runs stay adjacent; the mirrored end of each is its stored start.
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
            Some(shift) => Segment { first: first.map(|first| b.add(first, shift)), end: b.add(end, shift) },
            None => Segment { first, end },
        }
    }

    /// A condition that a window meets a segment of one coordinate, and the window's index; `None`
    /// unless windows have one coordinate and a stride above 1.
    ///
    /// ```
    /// use tamis_ir::kernel::{Builder, Kernel};
    /// use tamis_ir::looplet::Looplet;
    /// let mut kernel = Kernel::parse("kernel f\n    in crd: index u32[]\nbegin\n")?;
    /// let looplet = Looplet::parse(&mut kernel, "segments(point crd[0..9], at 2*i + 0)")?;
    /// let Looplet::Segments(points) = looplet else { panic!() };
    /// let (mut b, _) = Builder::resume(kernel);
    /// let (meets, index) = points.point(&mut b, points.start).unwrap();
    /// assert_eq!(b.kernel().show(meets), "(crd[0] % 2) == 0");
    /// assert_eq!(b.kernel().show(index), "crd[0] // 2");
    /// # Ok::<(), tamis_ir::Diagnostic>(())
    /// ```
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

    /// The stored position of a segment.
    ///
    /// ```
    /// use tamis_ir::kernel::{Builder, Kernel};
    /// use tamis_ir::looplet::Looplet;
    /// let text = "kernel f
    ///     in ends: index u32[]
    ///     in n: i64
    /// begin
    /// ";
    /// let mut kernel = Kernel::parse(text)?;
    /// let looplet = Looplet::parse(&mut kernel, "mirrored segments(run ends[0..n])")?;
    /// let Looplet::Segments(runs) = looplet else { panic!() };
    /// let (mut b, _) = Builder::resume(kernel);
    /// let n = runs.number(&mut b, runs.stop);
    /// assert_eq!(b.kernel().show(n), "0 - n");
    /// # Ok::<(), tamis_ir::Diagnostic>(())
    /// ```
    pub fn number(&self, b: &mut Builder, q: ExprId) -> ExprId {
        if !self.mirrored {
            return q;
        }
        let zero = b.int(0);
        b.sub(zero, q)
    }

    /// The edge of the windows whose first segment is this one.
    ///
    /// ```
    /// use tamis_ir::kernel::{Builder, Kernel};
    /// use tamis_ir::looplet::Looplet;
    /// let mut kernel = Kernel::parse("kernel f\n    in crd: index u32[]\nbegin\n")?;
    /// let looplet = Looplet::parse(&mut kernel, "segments(point crd[0..9])")?;
    /// # use tamis_ir::looplet::Edge;
    /// let Looplet::Segments(points) = looplet else { panic!() };
    /// let (mut b, _) = Builder::resume(kernel);
    /// assert_eq!(points.edge(&mut b, points.start), Edge::From(points.start));
    /// # Ok::<(), tamis_ir::Diagnostic>(())
    /// ```
    pub fn edge(&self, b: &mut Builder, q: ExprId) -> Edge {
        match (self.mirrored, self.number(b, q)) {
            (true, number) => Edge::To(number),
            (false, number) => Edge::From(number),
        }
    }

    /// The child position of a segment, if it has one child.
    ///
    /// ```
    /// use tamis_ir::kernel::{Builder, Kernel};
    /// use tamis_ir::looplet::Looplet;
    /// let mut kernel = Kernel::parse("kernel f\n    in ends: index u32[]\nbegin\n")?;
    /// let looplet = Looplet::parse(&mut kernel, "segments(run ends[0..9])")?;
    /// let Looplet::Segments(runs) = looplet else { panic!() };
    /// let (mut b, _) = Builder::resume(kernel);
    /// assert_eq!(runs.child(&mut b, runs.start), Some(runs.start), "a value for each run");
    /// # Ok::<(), tamis_ir::Diagnostic>(())
    /// ```
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

    /// The offset from a loop coordinate (times the stride of its windows) to its child, if a
    /// segment holds a block.
    ///
    /// ```
    /// use tamis_ir::kernel::{Builder, Kernel};
    /// use tamis_ir::looplet::Looplet;
    /// let mut kernel = Kernel::parse("kernel f\n    in ends: index u32[]\nbegin\n")?;
    /// let looplet = Looplet::parse(&mut kernel, "segments(run ends[0..9])")?;
    /// let Looplet::Segments(runs) = looplet else { panic!() };
    /// let (mut b, _) = Builder::resume(kernel);
    /// assert_eq!(runs.base(&mut b, runs.start, runs.stop), None, "it holds no blocks");
    /// # Ok::<(), tamis_ir::Diagnostic>(())
    /// ```
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
                // A mirrored segment starts, in its own coordinates, at the last child.
                let (first, zero) = (self.stored(b, q).first, b.int(0));
                let last = b.sub(to, one);
                let base = b.add(last, first.unwrap_or(zero));
                window.map_or(base, |window| b.sub(base, window.low))
            }
        })
    }

    /// The distance between children of adjacent loop coordinates, if a segment holds a block.
    ///
    /// ```
    /// use tamis_ir::kernel::{Builder, Kernel};
    /// use tamis_ir::looplet::Looplet;
    /// let text = "kernel f
    ///     in lasts: index u32[]
    ///     in offsets: index u32[]
    /// begin
    /// ";
    /// let mut kernel = Kernel::parse(text)?;
    /// let text = "mirrored segments(block lasts from offsets[0..9])";
    /// let looplet = Looplet::parse(&mut kernel, text)?;
    /// let Looplet::Segments(blocks) = looplet else { panic!() };
    /// assert_eq!(blocks.stride(), -1);
    /// # let _ = Builder::resume(kernel);
    /// # Ok::<(), tamis_ir::Diagnostic>(())
    /// ```
    pub fn stride(&self) -> i64 {
        let stride = self.window.map_or(1, |window| window.stride as i64);
        if self.mirrored { -stride } else { stride }
    }

    /// The first segment from `start` on that ends after a loop coordinate.
    ///
    /// ```
    /// use tamis_ir::kernel::{Builder, Kernel};
    /// use tamis_ir::looplet::Looplet;
    /// let mut kernel = Kernel::parse("kernel f\n    in ends: index u32[]\nbegin\n")?;
    /// let looplet = Looplet::parse(&mut kernel, "segments(run ends[0..9])")?;
    /// let Looplet::Segments(runs) = looplet else { panic!() };
    /// let (mut b, _) = Builder::resume(kernel);
    /// let seven = b.int(7);
    /// runs.seek(&mut b, "q", runs.start, seven);
    /// assert!(b.finish().to_string().contains("search ends[0..9] for 8"));
    /// # Ok::<(), tamis_ir::Diagnostic>(())
    /// ```
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
            // The loop advances fibers one by one.
            Extents::Fibers { .. } => return start,
        };
        // No coordinate is negative, and no segment is empty.
        let least = i64::from(matches!(self.extents, Extents::Ends(_) | Extents::Runs { .. }));
        if b.as_constant(key).and_then(|key| key.as_i64()).is_some_and(|key| key <= least) {
            return start;
        }
        b.search(name, array, start, self.stop, key)
    }

    /// The same for mirrored segments: the last stored segment that starts at or before a
    /// coordinate.
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
                // The run with the coordinate, or the last one.
                let holds = b.search(name, ends, from, to, behind);
                let next = b.add(holds, one);
                let after = b.call_in(Op::Min, DType::I64, &[next, to]);
                // No run lies before coordinate 0.
                let none = b.call_in(Op::Lt, DType::I64, &[at, zero]);
                b.call_in(Op::Select, DType::I64, &[none, from, after])
            }
            Extents::Blocks { lasts, offsets } => {
                // The first block that does not end before the coordinate may start after it.
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
