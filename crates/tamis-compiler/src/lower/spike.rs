//! Spikes: one payload up to a coordinate, and another one at that coordinate.

use super::Lowerer;
use super::node::Step;
use super::region::Region;
use tamis_ir::algebra::{DType, Op};
use tamis_ir::kernel::Stmt;
use tamis_ir::looplet::{Looplet, Spike};

impl Lowerer<'_> {
    pub(super) fn spike(&mut self, region: Region, steps: Vec<Step>, id: u32, spike: Spike) {
        // The region may end before the spike.
        let low = self.b.call_in(Op::Max, DType::I64, &[spike.at, region.start]);
        let before = self.b.call_in(Op::Min, DType::I64, &[low, region.stop]);
        let before = self.b.name("before", before);
        let mut completeness = self.begin_subregions();
        let body = self.set_looplet(steps.clone(), id, &Looplet::Run(spike.body));
        self.region(Region { stop: before, whole: false, point: false, filled: false, chunk: None, ..region }, body);
        self.end_subregion(&mut completeness);
        let one = self.b.int(1);
        let after = self.b.add(spike.at, one);
        let tail = self.set_looplet(steps, id, &Looplet::Run(spike.tail));
        let point =
            Region { start: spike.at, stop: after, whole: false, point: true, filled: true, chunk: None, ..region };
        let then = self.in_block(|this| this.region(point, tail));
        self.end_subregion(&mut completeness);
        self.end_subregions(completeness);
        if !then.is_empty() {
            let above = self.b.call_in(Op::Le, DType::I64, &[region.start, spike.at]);
            let below = self.b.call_in(Op::Lt, DType::I64, &[spike.at, region.stop]);
            let cond = self.b.call_in(Op::And, DType::Bool, &[above, below]);
            self.b.emit(Stmt::If { cond, then, otherwise: Vec::new() });
        }
    }
}
