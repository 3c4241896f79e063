//! Compressed levels (`sparse`, `hash`, `bytemap`): a partition `pos` of a coordinate list `crd`.

use super::{Enumeration, FiberRange, LevelArrays, Nodes, Shape, check};
use crate::memory::{reserve, zeroed};
use crate::{Index, IndexArray, with_indices};
use std::ops::Range;
use tamis_ir::diag::Result;
use tamis_ir::format::{LevelSpec, Width};

/// Fiber p holds the coordinates `crd[pos[p]..pos[p+1]]`.
///
/// Hard invariants, in the order [`Compressed::checked`] checks them:
/// - the widths are those that the format writes (E0701);
/// - `pos` has one number more than there are parent positions (E0701);
/// - `pos` starts at 0, never decreases, and ends at the length of `crd` (E0702);
/// - every coordinate is below the size of the dimension (E0703);
/// - the coordinates of a fiber are strictly increasing, or non-decreasing in a nonunique level
///   (E0704); in a nonordered level they are distinct, in any order (E0708).
#[derive(Debug)]
pub(super) struct Compressed {
    pub pos: IndexArray,
    pub crd: IndexArray,
    /// Coordinates are located by bisection.
    pub ordered: bool,
}

impl Compressed {
    pub fn checked(pos: IndexArray, crd: IndexArray, spec: &LevelSpec, shape: Shape) -> Result<Compressed> {
        check::width("pos", &pos, spec.pos)?;
        check::width("crd", &crd, spec.crd)?;
        check::length("pos", &pos, shape.parents.checked_add(1), "one number more than there are fibers")?;
        check::partition(&pos, "crd", crd.len())?;
        check::in_range(&crd, shape.extent)?;
        if spec.nonordered {
            check::distinct(&pos, &crd)?;
        } else {
            check::increasing(&pos, &crd, spec)?;
        }
        Ok(Compressed { pos, crd, ordered: !spec.nonordered })
    }

    /// Arrays that may be longer than needed: `pos` determines the length of `crd`.
    pub fn cut(pos: IndexArray, crd: IndexArray, spec: &LevelSpec, shape: Shape) -> Result<Compressed> {
        let pos = check::first("pos", pos, shape.parents.checked_add(1))?;
        let crd = check::first("crd", crd, usize::try_from(pos.get(shape.parents)).ok())?;
        Ok(Compressed { pos, crd, ordered: !spec.nonordered })
    }

    pub fn assemble(nodes: Nodes<'_>, spec: &LevelSpec) -> Result<Compressed> {
        let width = spec.crd.unwrap_or(Width::automatic(nodes.extent.saturating_sub(1)));
        let crd = IndexArray::with_width(nodes.coordinates, width)?;
        let pos = partition(nodes.parents, nodes.parent_count, spec.pos)?;
        Ok(Compressed { pos, crd, ordered: !spec.nonordered })
    }

    pub fn fiber(&self, parent: usize) -> Range<usize> {
        with_indices!(&self.pos, pos => pos[parent].to_usize()..pos[parent + 1].to_usize())
    }

    pub fn enumerate(&self, parents: &[usize], out: &mut Enumeration, position: impl Fn(usize, usize, u64) -> usize) {
        with_indices!(&self.pos, pos => with_indices!(&self.crd, crd => {
            for (k, parent) in parents.iter().enumerate() {
                let start = pos[*parent].to_usize();
                for (q, c) in crd[start..pos[parent + 1].to_usize()].iter().enumerate() {
                    out.push(k, c.to_u64(), position(*parent, start + q, c.to_u64()));
                }
            }
        }))
    }

    /// Contiguous coordinates with consecutive children are one segment.
    pub fn ranges(&self, parent: usize, each: &mut dyn FnMut(FiberRange)) {
        let fiber = self.fiber(parent);
        with_indices!(&self.crd, crd => {
            let mut at = fiber.start;
            while at < fiber.end {
                let first = crd[at].to_u64();
                let follows = |(k, c): &(u64, &_)| Index::to_u64(**c) == first + k;
                let length = (0u64..).zip(&crd[at..fiber.end]).take_while(follows).count();
                each(FiberRange { start: first, stop: first + length as u64, child: at, shared: false });
                at += length;
            }
        })
    }

    pub fn visit(&self, parent: usize, mut each: impl FnMut(u64, usize)) {
        let fiber = self.fiber(parent);
        with_indices!(&self.crd, crd => for q in fiber {
            each(crd[q].to_u64(), q);
        })
    }

    pub fn locate(&self, parents: Range<usize>, coordinate: u64) -> Range<usize> {
        if parents.is_empty() {
            return 0..0;
        }
        let fiber = self.fiber(parents.start);
        if !self.ordered {
            let found =
                with_indices!(&self.crd, crd => crd[fiber.clone()].iter().position(|c| c.to_u64() == coordinate));
            return found.map_or(0..0, |at| fiber.start + at..fiber.start + at + 1);
        }
        equal_range(&self.crd, fiber, coordinate)
    }

    pub fn arrays(&self) -> LevelArrays {
        LevelArrays::new([("pos", self.pos.clone()), ("crd", self.crd.clone())])
    }
}

/// The range of `coordinate` in a sorted range of `crd`.
pub(super) fn equal_range(crd: &IndexArray, within: Range<usize>, coordinate: u64) -> Range<usize> {
    with_indices!(crd, crd => {
        let part = &crd[within.clone()];
        let start = part.partition_point(|c| c.to_u64() < coordinate);
        let count = part[start..].partition_point(|c| c.to_u64() == coordinate);
        within.start + start..within.start + start + count
    })
}

/// The array `pos` for items with these parents, of which there are `count`.
pub(super) fn partition(parents: &[usize], count: usize, written: Option<Width>) -> Result<IndexArray> {
    Ok(match written.unwrap_or(Width::automatic(parents.len() as u64)) {
        Width::U8 => positions::<u8>(parents, count)?.into(),
        Width::U16 => positions::<u16>(parents, count)?.into(),
        Width::U32 => positions::<u32>(parents, count)?.into(),
        Width::U64 => positions::<u64>(parents, count)?.into(),
    })
}

/// Counting sort of parents: they are sorted, so one pass writes each position once.
fn positions<I: Index>(parents: &[usize], count: usize) -> Result<Vec<I>> {
    let total = parents.len();
    if total as u64 > I::WIDTH.max() {
        return Err(crate::arrays::too_wide(total as u64, I::WIDTH));
    }
    let Some(length) = count.checked_add(1) else {
        return Err(crate::memory::too_large(u64::MAX, size_of::<I>(), "`pos`"));
    };
    if total == 0 {
        return zeroed(length, "`pos`");
    }
    let mut pos: Vec<I> = reserve(length, "`pos`")?;
    pos.push(I::default());
    for (k, parent) in parents.iter().enumerate() {
        // Every fiber up to the node's own starts at or before it.
        while pos.len() <= *parent {
            pos.push(I::from_u64(k as u64));
        }
    }
    pos.resize(length, I::from_u64(total as u64));
    Ok(pos)
}
