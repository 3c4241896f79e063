//! Sequences: one phase after the other, each over its part of the region.

use super::Lowerer;
use super::node::Step;
use super::region::Region;
use tamis_ir::algebra::{DType, Op};
use tamis_ir::looplet::Phase;

impl Lowerer<'_> {
    /// `inside`: the phases' ends are known not to decrease, and to lie in the dimension.
    pub(super) fn sequence(&mut self, region: Region, steps: Vec<Step>, id: u32, phases: Vec<Phase>, inside: bool) {
        let mut start = region.start;
        let copies = self.copies;
        self.copies *= phases.len();
        // No phase is sure to be the whole region.
        self.conditional += 1;
        for phase in phases {
            let stop = match phase.stop {
                Some(stop) if inside && region.whole => stop,
                Some(stop) => {
                    let low = self.b.call_in(Op::Max, DType::I64, &[stop, start]);
                    let high = self.b.call_in(Op::Min, DType::I64, &[low, region.stop]);
                    self.b.name("phase", high)
                }
                None => region.stop,
            };
            let body = self.set_looplet(steps.clone(), id, &phase.body);
            self.region(Region { start, stop, whole: false, point: false, filled: false, ..region }, body);
            start = stop;
        }
        self.conditional -= 1;
        self.copies = copies;
    }
}
