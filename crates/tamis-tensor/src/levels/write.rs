//! Assembly of levels by kernels. Each row of [`super::LEVELS`] names its [`Write`].
//!
//! Coordinates are *appended* in storage order: [`Write::assemble`] reserves new parent positions,
//! [`Write::child`] returns the position of the next child, [`Write::commit`] stores its coordinate
//! after a write, [`Write::end`] closes a fiber, [`Write::freeze`] finalizes the arrays. Levels
//! whose child positions are computed from coordinates can also be written in any order:
//! [`Write::prepare`], [`Write::insert`], [`Write::finalize`].

use tamis_ir::DType;
use tamis_ir::algebra::{Op, Value};
use tamis_ir::kernel::{BufferId, Builder, Elem, ExprId, Stmt, VarId};
use tamis_ir::looplet::Writer;

/// The positions of children.
///
/// ```
/// use tamis_ir::format::LevelKind;
/// use tamis_tensor::levels::{Placement, level_type};
/// assert_eq!(level_type(LevelKind::Dense)?.write.placement(), Placement::Computed);
/// assert_eq!(level_type(LevelKind::Sparse)?.write.placement(), Placement::Appended);
/// # Ok::<(), tamis_ir::Diagnostic>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Placement {
    /// Computed from coordinates, so they may be written in any order.
    Computed,
    /// Consecutive.
    Appended,
    /// The position of the parent.
    Parent,
}

/// The operations that write one kind of level.
///
/// ```
/// use tamis_ir::Value;
/// use tamis_ir::format::LevelKind;
/// use tamis_ir::kernel::Builder;
/// use tamis_ir::looplet::Writer;
/// use tamis_tensor::levels::level_type;
/// let dense = level_type(LevelKind::Dense)?.write;
/// let mut b = Builder::new("f");
/// let count = b.variable("count", Value::I64(0));
/// let (extent, skipped) = (b.int(10), b.constant(Value::Bool(false)));
/// let (parent, coordinate) = (b.int(2), b.int(3));
/// let (arrays, reserved, parents, narrow) = (&[], true, true, false);
/// let (builder, name) = (&mut b, "y");
/// let mut w = Writer { builder, arrays, extent, count, skipped, reserved, parents, narrow, name };
/// assert_eq!(dense.child(&mut w, parent, coordinate), w.builder.int(23));
/// assert!(!dense.takes_runs() && !dense.lists());
/// # Ok::<(), tamis_ir::Diagnostic>(())
/// ```
pub trait Write: Sync {
    /// The positions of children.
    fn placement(&self) -> Placement;

    /// Reserves `count` parent positions from `start` on; returns the range of child positions that
    /// come into existence with them, if they do.
    fn assemble(&self, w: &mut Writer, start: ExprId, count: ExprId) -> Option<(ExprId, ExprId)>;

    /// The position of a coordinate that will be written.
    fn child(&self, w: &mut Writer, parent: ExprId, coordinate: ExprId) -> ExprId;

    /// True if [`Self::commit`] accepts a run of coordinates with one child.
    fn takes_runs(&self) -> bool {
        false
    }

    /// Stores a written coordinate; those up to `stop`, if it is the first of a run.
    fn commit(&self, _: &mut Writer, _parent: ExprId, _coordinate: ExprId, _stop: Option<ExprId>) {}

    /// Reserves capacity for this total number of coordinates, so that commits need not.
    fn reserve(&self, w: &mut Writer, count: ExprId) {
        for list in ["crd", "start", "end"] {
            let list = w.arrays.iter().find(|(name, _)| *name == list).map(|(_, buffer)| *buffer);
            if let Some(list) = list {
                grow(w, list, count, None);
            }
        }
    }

    /// Reserves capacity for this total number of parent positions; false if the level has no such
    /// array.
    fn reserve_parents(&self, w: &mut Writer, count: ExprId) -> bool {
        let pos = w.arrays.iter().find(|(name, _)| *name == "pos").map(|(_, buffer)| *buffer);
        if let Some(pos) = pos {
            let len = after(w, count);
            grow(w, pos, len, None);
        }
        pos.is_some()
    }

    /// Closes a fiber.
    fn end(&self, _: &mut Writer, _parent: ExprId) {}

    /// Finalizes the arrays; returns the number of child positions.
    fn freeze(&self, w: &mut Writer, parents: ExprId) -> ExprId;

    /// True if [`Self::insert`] must be called for every written coordinate.
    fn lists(&self) -> bool {
        false
    }

    /// Reserves `parents` positions, and clears earlier insertions, at the cost of their number:
    /// `reset` resets the sub-fiber of a coordinate.
    fn prepare(
        &self,
        w: &mut Writer,
        _list: BufferId,
        parents: ExprId,
        _reset: &mut dyn FnMut(&mut Builder, ExprId),
    ) -> ExprId {
        mul(w, parents, w.extent)
    }

    /// The position of a coordinate, which is listed if it is new; then `fresh` is true.
    fn insert(
        &self,
        w: &mut Writer,
        _list: BufferId,
        parent: ExprId,
        coordinate: ExprId,
        _fresh: Option<VarId>,
    ) -> ExprId {
        w.dense_child(parent, coordinate)
    }

    /// Finalizes the arrays after insertions; the list is sorted under an eventually constant
    /// condition. Returns the number of child positions.
    fn finalize(&self, w: &mut Writer, _list: BufferId, parents: ExprId, _sorts: ExprId) -> ExprId {
        mul(w, parents, w.extent)
    }
}

fn mul(w: &mut Writer, a: ExprId, b: ExprId) -> ExprId {
    w.builder.call_in(Op::Mul, DType::I64, &[a, b])
}

fn grow(w: &mut Writer, buffer: BufferId, len: ExprId, fill: Option<i64>) {
    w.builder.emit(Stmt::Grow { buffer, len, fill: fill.map(Value::I64) });
}

fn fill(w: &mut Writer, buffer: BufferId, start: ExprId, len: ExprId, value: i64) {
    let value = w.builder.int(value);
    w.builder.emit(Stmt::Fill { buffer, start, len, value });
}

/// Stores a position or coordinate, which must fit the width if the format specifies one
/// (`narrow`).
fn keep(b: &mut Builder, narrow: bool, buffer: BufferId, at: ExprId, value: ExprId) {
    let (elem, name) = (b.kernel().buffer(buffer).elem, b.kernel().buffer(buffer).name.clone());
    if let (true, Elem::Index(width)) = (narrow, elem)
        && let Ok(most) = i64::try_from(width.max())
    {
        let most = b.int(most);
        let cond = b.call_in(Op::Le, DType::I64, &[value, most]);
        let message =
            format!("a number in `{name}` does not fit {}, the width that its format specifies", width.name());
        b.emit(Stmt::Require { cond, message });
    }
    b.store(buffer, at, value);
}

fn after(w: &mut Writer, value: ExprId) -> ExprId {
    let one = w.builder.int(1);
    w.builder.add(value, one)
}

/// Reserves `pos` for parents from `start` on; all of them are empty so far.
fn assemble_pos(w: &mut Writer, start: ExprId, count: ExprId) {
    let pos = w.array("pos");
    let stop = w.builder.add(start, count);
    let len = after(w, stop);
    if !w.parents {
        grow(w, pos, len, None);
    }
    let zero = w.builder.int(0);
    if start == zero {
        w.builder.store(pos, zero, zero);
    }
    let first = after(w, start);
    let cond = w.skipped;
    let value = w.builder.int(0);
    w.builder.branch(cond, |b| b.emit(Stmt::Fill { buffer: pos, start: first, len: count, value }), |_| {});
}

fn end_pos(w: &mut Writer, parent: ExprId) {
    let (pos, next, count) = (w.array("pos"), after(w, parent), w.builder.get(w.count));
    keep(w.builder, w.narrow, pos, next, count);
}

/// Fibers that were never visited end at the end of the previous one.
fn freeze_pos(w: &mut Writer, parents: ExprId) {
    let (pos, zero, cond) = (w.array("pos"), w.builder.int(0), w.skipped);
    w.builder.branch(
        cond,
        |b| {
            b.count("p", zero, parents, |b, p| {
                let one = b.int(1);
                let next = b.add(p, one);
                let (before, here) = (b.load(pos, p), b.load(pos, next));
                let end = b.call_in(Op::Max, DType::I64, &[before, here]);
                b.store(pos, next, end);
            });
        },
        |_| {},
    );
}

fn append_crd(w: &mut Writer, coordinate: ExprId) {
    append(w, &[("crd", coordinate)]);
}

/// Appends a number to each of these arrays.
fn append(w: &mut Writer, lists: &[(&str, ExprId)]) {
    let count = w.builder.get(w.count);
    let next = after(w, count);
    for (name, value) in lists {
        let list = w.array(name);
        if !w.reserved {
            grow(w, list, next, None);
        }
        keep(w.builder, w.narrow, list, count, *value);
    }
    w.builder.assign(w.count, next);
}

/// `dense`: every coordinate exists.
pub(super) struct DenseWrite;

impl Write for DenseWrite {
    fn placement(&self) -> Placement {
        Placement::Computed
    }

    fn assemble(&self, w: &mut Writer, start: ExprId, count: ExprId) -> Option<(ExprId, ExprId)> {
        Some((mul(w, start, w.extent), mul(w, count, w.extent)))
    }

    fn child(&self, w: &mut Writer, parent: ExprId, coordinate: ExprId) -> ExprId {
        w.dense_child(parent, coordinate)
    }

    fn freeze(&self, w: &mut Writer, parents: ExprId) -> ExprId {
        mul(w, parents, w.extent)
    }
}

/// `sparse`, `hash`: a coordinate list.
pub(super) struct CompressedWrite;

impl Write for CompressedWrite {
    fn placement(&self) -> Placement {
        Placement::Appended
    }

    fn assemble(&self, w: &mut Writer, start: ExprId, count: ExprId) -> Option<(ExprId, ExprId)> {
        assemble_pos(w, start, count);
        None
    }

    fn child(&self, w: &mut Writer, _: ExprId, _: ExprId) -> ExprId {
        w.builder.get(w.count)
    }

    fn commit(&self, w: &mut Writer, _: ExprId, coordinate: ExprId, _: Option<ExprId>) {
        append_crd(w, coordinate);
    }

    fn end(&self, w: &mut Writer, parent: ExprId) {
        end_pos(w, parent);
    }

    fn freeze(&self, w: &mut Writer, parents: ExprId) -> ExprId {
        freeze_pos(w, parents);
        w.builder.get(w.count)
    }
}

/// `sparse_runs`: a list of runs.
pub(super) struct RunsWrite;

impl Write for RunsWrite {
    fn placement(&self) -> Placement {
        Placement::Appended
    }

    fn assemble(&self, w: &mut Writer, start: ExprId, count: ExprId) -> Option<(ExprId, ExprId)> {
        assemble_pos(w, start, count);
        None
    }

    fn child(&self, w: &mut Writer, _: ExprId, _: ExprId) -> ExprId {
        w.builder.get(w.count)
    }

    fn takes_runs(&self) -> bool {
        true
    }

    fn commit(&self, w: &mut Writer, _: ExprId, coordinate: ExprId, stop: Option<ExprId>) {
        let stop = stop.unwrap_or_else(|| after(w, coordinate));
        append(w, &[("start", coordinate), ("end", stop)]);
    }

    fn end(&self, w: &mut Writer, parent: ExprId) {
        end_pos(w, parent);
    }

    fn freeze(&self, w: &mut Writer, parents: ExprId) -> ExprId {
        freeze_pos(w, parents);
        w.builder.get(w.count)
    }
}

/// Levels that kernels write in another format and convert at the end: see `crate::written_as`.
pub(super) struct Unwritable;

impl Write for Unwritable {
    fn placement(&self) -> Placement {
        Placement::Appended
    }

    fn assemble(&self, _: &mut Writer, _: ExprId, _: ExprId) -> Option<(ExprId, ExprId)> {
        None
    }

    fn child(&self, _: &mut Writer, parent: ExprId, _: ExprId) -> ExprId {
        parent
    }

    fn freeze(&self, _: &mut Writer, parents: ExprId) -> ExprId {
        parents
    }
}

/// `singleton`: one coordinate for each parent; 0 if nothing is written.
pub(super) struct SingletonWrite;

impl Write for SingletonWrite {
    fn placement(&self) -> Placement {
        Placement::Parent
    }

    fn assemble(&self, w: &mut Writer, start: ExprId, count: ExprId) -> Option<(ExprId, ExprId)> {
        let crd = w.array("crd");
        let stop = w.builder.add(start, count);
        grow(w, crd, stop, None);
        fill(w, crd, start, count, 0);
        Some((start, count))
    }

    fn child(&self, _: &mut Writer, parent: ExprId, _: ExprId) -> ExprId {
        parent
    }

    fn commit(&self, w: &mut Writer, parent: ExprId, coordinate: ExprId, _: Option<ExprId>) {
        let (crd, len) = (w.array("crd"), after(w, parent));
        if !w.reserved {
            grow(w, crd, len, None);
        }
        keep(w.builder, w.narrow, crd, parent, coordinate);
    }

    fn freeze(&self, _: &mut Writer, parents: ExprId) -> ExprId {
        parents
    }
}

/// `bytemap`: a flag for every coordinate, and the list of set ones.
pub(super) struct BytemapWrite;

impl Write for BytemapWrite {
    fn placement(&self) -> Placement {
        Placement::Computed
    }

    fn assemble(&self, w: &mut Writer, start: ExprId, count: ExprId) -> Option<(ExprId, ExprId)> {
        assemble_pos(w, start, count);
        let flags = w.array("flags");
        let (first, cells) = (mul(w, start, w.extent), mul(w, count, w.extent));
        let len = w.builder.add(first, cells);
        grow(w, flags, len, None);
        fill(w, flags, first, cells, 0);
        Some((first, cells))
    }

    fn child(&self, w: &mut Writer, parent: ExprId, coordinate: ExprId) -> ExprId {
        w.dense_child(parent, coordinate)
    }

    fn commit(&self, w: &mut Writer, parent: ExprId, coordinate: ExprId, _: Option<ExprId>) {
        let (flags, at, one) = (w.array("flags"), w.dense_child(parent, coordinate), w.builder.int(1));
        w.builder.store(flags, at, one);
        append_crd(w, coordinate);
    }

    fn end(&self, w: &mut Writer, parent: ExprId) {
        end_pos(w, parent);
    }

    fn freeze(&self, w: &mut Writer, parents: ExprId) -> ExprId {
        freeze_pos(w, parents);
        mul(w, parents, w.extent)
    }

    fn lists(&self) -> bool {
        true
    }

    fn prepare(
        &self,
        w: &mut Writer,
        list: BufferId,
        parents: ExprId,
        reset: &mut dyn FnMut(&mut Builder, ExprId),
    ) -> ExprId {
        let flags = w.array("flags");
        let cells = mul(w, parents, w.extent);
        // New flags are not set, and set flags are listed.
        grow(w, flags, cells, Some(0));
        // One more: see `insert`.
        let capacity = after(w, cells);
        grow(w, list, capacity, None);
        let (zero, count) = (w.builder.int(0), w.builder.get(w.count));
        w.builder.count("t", zero, count, |b, t| {
            let at = b.load(list, t);
            let at = b.name("at", at);
            b.store(flags, at, zero);
            reset(b, at);
        });
        w.builder.assign(w.count, zero);
        cells
    }

    fn insert(
        &self,
        w: &mut Writer,
        list: BufferId,
        parent: ExprId,
        coordinate: ExprId,
        fresh: Option<VarId>,
    ) -> ExprId {
        let flags = w.array("flags");
        let at = w.dense_child(parent, coordinate);
        let at = w.builder.name(format!("{}_at", w.name), at);
        let (one, number) = (w.builder.int(1), w.builder.get(w.count));
        // The branch on a new coordinate is unpredictable. So the coordinate is always stored, but
        // counted only if it is new.
        let flag = w.builder.load(flags, at);
        let new = w.builder.call_in(Op::Sub, DType::I64, &[one, flag]);
        if let Some(fresh) = fresh {
            let is_new = w.builder.call_in(Op::Eq, DType::I64, &[new, one]);
            w.builder.assign(fresh, is_new);
        }
        let next = w.builder.add(number, new);
        let next = w.builder.name(format!("{}_next", w.name), next);
        keep(w.builder, w.narrow, list, number, at);
        w.builder.assign(w.count, next);
        w.builder.store(flags, at, one);
        at
    }

    fn finalize(&self, w: &mut Writer, list: BufferId, parents: ExprId, sorts: ExprId) -> ExprId {
        let (pos, crd) = (w.array("pos"), w.array("crd"));
        let (zero, one, count) = (w.builder.int(0), w.builder.int(1), w.builder.get(w.count));
        let flags = Some(w.array("flags"));
        w.builder.branch(sorts, |b| b.emit(Stmt::Sort { buffer: list, start: zero, stop: count, flags }), |_| {});
        let len = after(w, parents);
        grow(w, pos, len, None);
        if list == crd {
            w.builder.store(pos, zero, zero);
            keep(w.builder, w.narrow, pos, one, count);
        } else {
            fill(w, pos, zero, len, 0);
            grow(w, crd, count, None);
            let (extent, narrow) = (w.extent, w.narrow);
            w.builder.count("t", zero, count, |b, t| {
                let key = b.load(list, t);
                let parent = b.call_in(Op::FloorDiv, DType::I64, &[key, extent]);
                let parent = b.name("p", parent);
                let base = b.call_in(Op::Mul, DType::I64, &[parent, extent]);
                let coordinate = b.call_in(Op::Sub, DType::I64, &[key, base]);
                keep(b, narrow, crd, t, coordinate);
                let (next, end) = (b.add(parent, one), b.add(t, one));
                keep(b, narrow, pos, next, end);
            });
            w.skipped = w.builder.constant(Value::Bool(true));
            freeze_pos(w, parents);
        }
        mul(w, parents, w.extent)
    }
}
