//! Lookups: no structure is left along the loop, so it goes over every coordinate, and levels are asked at each.

use super::Lowerer;
use super::bind::Stored;
use super::node::{Node, Source, Step, visit_steps};
use super::region::{COPIES, Presence, Region};
use tamis_ir::algebra::{DType, Op};
use tamis_ir::format::DimExpr;
use tamis_ir::kernel::{ExprId, Hint, LoopKind, Stmt};
use tamis_ir::looplet::{Located, Looplet, Payload};
use tamis_ir::program::IndexId;

/// Pieces up to this length are unrolled.
const SHORT: u64 = 8;

impl Lowerer<'_> {
    /// A loop over every coordinate.
    pub(super) fn lookups(&mut self, region: Region, steps: Vec<Step>) {
        if !region.point && self.repeats(region.index, &steps) {
            return self.repeat(region, steps);
        }
        if let Some(length) = region.piece.filter(|length| *length <= SHORT && self.copies * 2 <= COPIES) {
            return self.whole_pieces(region, length, steps);
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

    /// A loop over a short piece is written for pieces of full length, whose turns are counted, and for the last one.
    fn whole_pieces(&mut self, region: Region, length: u64, steps: Vec<Step>) {
        let length = self.b.int(length as i64);
        let end = self.b.add(region.start, length);
        if self.are_all_whole(region.index) {
            return self.lookups(Region { stop: end, filled: true, piece: None, ..region }, steps);
        }
        let full = self.b.call_in(Op::Eq, DType::I64, &[end, region.stop]);
        let copies = self.copies;
        self.copies *= 2;
        let mut parts = self.begin_parts();
        let region = Region { piece: None, ..region };
        let then = self.in_block(|this| this.lookups(Region { stop: end, filled: true, ..region }, steps.clone()));
        self.end_part(&mut parts);
        let otherwise = self.in_block(|this| this.lookups(region, steps));
        self.end_part(&mut parts);
        self.end_parts(parts);
        self.copies = copies;
        if !then.is_empty() || !otherwise.is_empty() {
            self.b.emit(Stmt::If { cond: full, then, otherwise });
        }
    }

    /// Whether no piece of a loop is shorter than the others: they are the blocks that a parameter is stored in, and these are whole.
    fn are_all_whole(&self, index: IndexId) -> bool {
        let (Some((_, length)), Some(limit)) = (self.pieces[index.index()], self.limits[index.index()]) else {
            return false;
        };
        self.program.params.iter().any(|tensor| {
            let Stored::Levels { format, .. } = &self.bound[tensor.index()].storage else { return false };
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

    /// What a program says about the loops that one of its own becomes. Whether they may run in vectors is decided when they are
    /// done (`opt::hints`).
    pub(super) fn hint(&self, index: IndexId) -> Hint {
        Hint { vectorise: self.attributes[index.index()].vectorize.is_some(), ..Hint::default() }
    }

    /// Whether a loop is to be unrolled as far as it goes.
    fn unrolls(&self, region: Region) -> bool {
        let length = self.b.distance(region.start, region.stop);
        let wanted = self.attributes[region.index.index()].unroll.map(i64::from);
        // Pieces are short when it is known how long they are.
        let piece = self.pieces[region.index.index()].map(|(_, length)| length.min(SHORT) as i64);
        length.zip(wanted.or(piece)).is_some_and(|(length, turns)| length <= turns)
    }

    /// Asks levels for a coordinate.
    pub(super) fn look_up(&mut self, i: ExprId, steps: Vec<Step>) -> Vec<Step> {
        let mut found: Vec<super::node::Access> = Vec::new();
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
            let Source::Tensor(tensor, subs) = &access.source else { continue };
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
