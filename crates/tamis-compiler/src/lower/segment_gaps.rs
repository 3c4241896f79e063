//! Gaps of unions of segments: decides where a union splits, so that regions without work, or with
//! the same work everywhere, are one step.
//!
//! In: the segments and coordinate lists of a loop, and its body. Out: decisions, and the body where
//! no moving segment is present. This file emits no code of its own.

use super::Lowerer;
use super::node::{Node, Step, visit_steps};
use super::region::{COPIES, Region};
use super::run_algebra::depends;
use super::segments::SegmentCursor;
use super::simplify;
use tamis_ir::kernel::ExprId;
use tamis_ir::looplet::{Extents, Payload, Segments, Stepper};

impl Lowerer<'_> {
    /// True if a split at every coordinate of the lists leaves constant gaps, or gaps without work.
    pub(super) fn splits_into_constant_gaps(&mut self, region: Region, steps: &[Step], ids: &[u32]) -> bool {
        let rest = self.without(steps, ids);
        rest.is_empty() || self.collapses(region.index, &rest)
    }

    /// True if some run, where no other segment is present, has work at coordinates of the lists
    /// only.
    pub(super) fn lists_bound_runs(
        &mut self,
        steps: &[Step],
        found: &[(u32, Segments)],
        lists: &[(u32, Stepper)],
    ) -> bool {
        found.iter().any(|(id, segments)| {
            let others = found.iter().map(|(other, _)| *other).filter(|other| other != id);
            let lists = lists.iter().map(|(id, _)| *id);
            let alone: Vec<u32> = others.clone().chain(lists).collect();
            let others: Vec<u32> = others.collect();
            !matches!(segments.extents, Extents::Blocks { .. } | Extents::Points(..))
                && self.idle_without(steps, &alone)
                && !self.idle_without(steps, &others)
        })
    }

    /// True if gaps between segments are lowered separately: iterations in a gap are all the same,
    /// so a gap is one step, and iterations inside of segments are not.
    pub(super) fn separates_gaps(
        &mut self,
        region: Region,
        found: &[(u32, Segments)],
        steps: &[Step],
        gaps: &[Step],
    ) -> bool {
        if self.copies * 2 > COPIES || !self.collapses(region.index, gaps) {
            return false;
        }
        let zero = self.b.int(0);
        let mut inside = steps.to_vec();
        for (id, segments) in found {
            if segments.overlapping() || segments.set().is_some() || segments.child(&mut self.b, zero).is_none() {
                return true;
            }
            inside = self.replace(inside, *id, &Payload::Fill, None);
        }
        !self.collapses(region.index, &inside)
    }

    /// The presence of segments whose contents vary along the subregion, and the statements where
    /// none of them is present, if those collapse into one iteration and the others do not.
    pub(super) fn constant_part(
        &mut self,
        subregion: Region,
        cursors: &[SegmentCursor],
        ends: &[ExprId],
        present: &[Option<ExprId>],
        steps: &[Step],
    ) -> (Vec<ExprId>, Option<Vec<Step>>) {
        // Coordinate lists and runs have constant contents.
        let may_move =
            |w: &SegmentCursor| matches!(w.segments.extents, Extents::Blocks { .. }) || w.segments.scale != 1;
        let windows = cursors.iter().any(|w| w.segments.window.is_some() || w.segments.set().is_some());
        if windows || self.copies * 2 > COPIES || !cursors.iter().any(may_move) {
            return (Vec::new(), None);
        }
        let before = self.b.clone();
        let entered = self.enter_all(steps.to_vec(), cursors, ends, present);
        self.b = before;
        let mut ids: Vec<u32> = Vec::new();
        visit_steps(&entered, &mut |node| {
            if let Node::Access(access) = node
                && depends(node, subregion.index)
            {
                ids.push(access.id);
            }
        });
        let moves = |cursor: &SegmentCursor| ids.contains(&cursor.id);
        let moving: Option<Vec<ExprId>> =
            cursors.iter().zip(present).filter(|(cursor, _)| moves(cursor)).map(|(_, present)| *present).collect();
        let Some(moving) = moving.filter(|moving| !moving.is_empty()) else { return (Vec::new(), None) };
        let gone: Vec<u32> = cursors.iter().filter(|cursor| moves(cursor)).map(|cursor| cursor.id).collect();
        let rest = self.without(steps, &gone);
        let kept: Vec<usize> = (0..cursors.len()).filter(|k| !moves(&cursors[*k])).collect();
        let mut constant_part = rest;
        for k in kept {
            let q = self.b.get(cursors[k].position);
            constant_part = self.enter(constant_part, cursors[k].id, &cursors[k].segments, (q, ends[k]), present[k]);
        }
        let constant_part = simplify::steps(constant_part, self.policy);
        let same = !constant_part.is_empty() && self.collapses(subregion.index, &constant_part);
        (moving, same.then_some(constant_part))
    }
}
