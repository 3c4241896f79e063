//! Lookups: no structure is left along the loop, so it goes over every coordinate, and levels are asked at each.

use super::Lowerer;
use super::node::{Node, Source, Step, visit_steps};
use super::region::{Presence, Region};
use tamis_ir::algebra::{DType, Op};
use tamis_ir::kernel::{ExprId, Hint, Stmt};
use tamis_ir::looplet::{Located, Looplet, Payload};
use tamis_ir::program::IndexId;

impl Lowerer<'_> {
    /// A loop over every coordinate.
    pub(super) fn lookups(&mut self, region: Region, steps: Vec<Step>) {
        let name = self.program.indices[region.index.index()].clone();
        let var = self.b.new_var(name, DType::I64, false);
        let i = self.b.get(var);
        let partial = usize::from(!region.whole);
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
            let hint = Hint { unroll: self.unrolls(region), ..self.hint(region.index) };
            self.b.emit(Stmt::For { var, start: region.start, stop: region.stop, body, hint });
        }
    }

    /// What a program says about the loops that one of its own becomes. Whether they may run in vectors is decided when they are
    /// done (`opt::hints`).
    pub(super) fn hint(&self, index: IndexId) -> Hint {
        Hint { vectorise: self.attributes[index.index()].vectorize.is_some(), unroll: false }
    }

    /// Whether a loop is to be unrolled as far as it goes.
    fn unrolls(&self, region: Region) -> bool {
        let number = |id: ExprId| self.b.as_constant(id).and_then(|value| value.as_i64());
        let length = number(region.stop).zip(number(region.start)).and_then(|(stop, start)| stop.checked_sub(start));
        let wanted = self.attributes[region.index.index()].unroll;
        length.zip(wanted).is_some_and(|(length, turns)| length <= i64::from(turns))
    }

    /// Asks levels for a coordinate.
    pub(super) fn look_up(&mut self, i: ExprId, steps: Vec<Step>) -> Vec<Step> {
        let mut found: Vec<super::node::Access> = Vec::new();
        visit_steps(&steps, &mut |node| {
            if let Node::Access(access) = node
                && matches!(access.looplet, Some(Looplet::Lookup))
                && found.iter().all(|other| other.id != access.id)
            {
                found.push((**access).clone());
            }
        });
        let mut steps = steps;
        for access in found {
            let Source::Tensor(tensor, _) = access.source else { continue };
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
