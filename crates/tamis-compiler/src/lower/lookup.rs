//! Lookups: a dense loop over every coordinate, with random access to levels without structure.
//!
//! In: a region in which no looplet with structure is left. Out: a `for` loop, unrolled if it is
//! short, or no loop at all if all iterations collapse into one.

use super::Lowerer;
use super::bind::BoundStorage;
use super::node::{Node, ReadSource, Step, visit_steps};
use super::region::{COPIES, Presence, Region};
use tamis_ir::algebra::{DType, Op};
use tamis_ir::format::DimExpr;
use tamis_ir::kernel::{ExprId, Hint, LoopKind, Stmt};
use tamis_ir::looplet::{Located, Looplet, Payload};
use tamis_ir::program::IndexId;

/// Chunks up to this length are unrolled.
const SHORT: u64 = 8;

impl Lowerer<'_> {
    /// A loop over every coordinate.
    pub(super) fn lookups(&mut self, region: Region, steps: Vec<Step>) {
        if !region.point && self.collapses(region.index, &steps) {
            return self.collapse(region, steps);
        }
        if let Some(length) = region.chunk.filter(|length| *length <= SHORT && self.copies * 2 <= COPIES) {
            return self.full_chunks(region, length, steps);
        }
        if !region.point {
            self.warn_of_dense_loop(region, &steps);
        }
        let name = self.program.indices[region.index.index()].clone();
        let var = self.b.new_var(name, DType::I64, false);
        self.b.at_least(var, region.start);
        let i = self.b.get(var);
        let partial = usize::from(!region.shared);
        self.conditional += partial;
        let most = self.b.call_in(Op::Sub, DType::I64, &[region.stop, region.start]);
        let reserved = self.reserve(region.index, &steps, most, &[]);
        let body = self.at(region.index, i, steps);
        self.unreserve(reserved);
        self.conditional -= partial;
        if region.point {
            self.b.emit(Stmt::Let { var, value: region.start });
            body.into_iter().for_each(|stmt| self.b.emit(stmt));
        } else if !body.is_empty() {
            let body = self.visited_by(region.index, var, body);
            let hint = Hint {
                kind: if self.unrolls(region) { LoopKind::Unrolled } else { LoopKind::Serial },
                ..self.hint(region.index)
            };
            self.b.emit(Stmt::For { var, start: region.start, stop: region.stop, body, hint });
        }
    }

    /// Splits a loop over a short chunk into one for chunks of full length, which is unrolled, and
    /// one for the remainder.
    fn full_chunks(&mut self, region: Region, length: u64, steps: Vec<Step>) {
        let length = self.b.int(length as i64);
        let end = self.b.add(region.start, length);
        if self.has_full_chunks_only(region.index) {
            return self.lookups(Region { stop: end, filled: true, chunk: None, ..region }, steps);
        }
        let is_full = self.b.call_in(Op::Eq, DType::I64, &[end, region.stop]);
        let copies = self.copies;
        self.copies *= 2;
        let mut completeness = self.begin_subregions();
        let region = Region { chunk: None, ..region };
        let then = self.in_block(|this| this.lookups(Region { stop: end, filled: true, ..region }, steps.clone()));
        self.end_subregion(&mut completeness);
        let otherwise = self.in_block(|this| this.lookups(region, steps));
        self.end_subregion(&mut completeness);
        self.end_subregions(completeness);
        self.copies = copies;
        if !then.is_empty() || !otherwise.is_empty() {
            self.b.emit(Stmt::If { cond: is_full, then, otherwise });
        }
    }

    /// True if all chunks have full length: they are the blocks that a parameter is stored in, and
    /// the size is a multiple.
    fn has_full_chunks_only(&self, index: IndexId) -> bool {
        let (Some((_, length)), Some(limit)) = (self.chunks[index.index()], self.chunk_limits[index.index()]) else {
            return false;
        };
        self.program.params.iter().any(|tensor| {
            let BoundStorage::Levels { format, .. } = &self.bound[tensor.index()].storage else { return false };
            let shape = &self.checked.extents.shapes[tensor.index()];
            format.map().iter().any(|stored| match *stored {
                DimExpr::Div(dim, by) => {
                    by == length
                        && self.checked.is_one_size(limit, (*tensor, dim))
                        && shape.get(dim).is_some_and(|size| size % by == 0)
                }
                _ => false,
            })
        })
    }

    /// The hints that a program gives for a loop. `opt::vectorize_legality` decides later whether
    /// the loop may be vectorised.
    pub(super) fn hint(&self, index: IndexId) -> Hint {
        Hint { vectorise: self.attributes[index.index()].vectorize.is_some(), ..Hint::default() }
    }

    /// True if a loop is to be fully unrolled.
    fn unrolls(&self, region: Region) -> bool {
        let length = self.b.distance(region.start, region.stop);
        let requested = self.attributes[region.index.index()].unroll.map(i64::from);
        // Chunks of known length are short.
        let chunk = self.chunks[region.index.index()].map(|(_, length)| length.min(SHORT) as i64);
        length.zip(requested.or(chunk)).is_some_and(|(length, iterations)| length <= iterations)
    }

    /// Locates a coordinate in levels without structure.
    pub(super) fn look_up(&mut self, i: ExprId, steps: Vec<Step>) -> Vec<Step> {
        let mut found: Vec<super::node::PartialAccess> = Vec::new();
        visit_steps(&steps, &mut |node| {
            if let Node::Access(access) = node
                && matches!(access.looplet, Some(Looplet::Lookup | Looplet::Block { .. }))
                && found.iter().all(|other| other.id != access.id)
            {
                found.push((**access).clone());
            }
        });
        let mut steps = steps;
        for access in found {
            if let Some(Looplet::Block { base, stride }) = access.looplet {
                let stride = self.b.int(stride);
                let at = self.b.call_in(Op::Mul, DType::I64, &[i, stride]);
                let child = self.b.add(base, at);
                steps = self.replace(steps, access.id, &Payload::Child(child), None);
                continue;
            }
            let ReadSource::Tensor(tensor, subs) = &access.source else { continue };
            let tensor = *tensor;
            let i = match subs.get(access.level) {
                Some(sub) => self.stored_coordinate(tensor, sub),
                None => i,
            };
            let position = access.position.unwrap_or(self.b.int(0));
            let at = Located { position, present: access.present, group_stop: access.group_stop };
            self.check_search(tensor, access.level, access.stmt);
            let located = self.locate(tensor, access.level, at, i);
            let changed = located.present != access.present;
            let presence =
                Presence { cond: located.present.filter(|_| changed), group_stop: located.group_stop, safe: !changed };
            steps = self.replace(steps, access.id, &Payload::Child(located.position), Some(presence));
        }
        steps
    }
}
