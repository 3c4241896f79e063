//! Runs: all coordinates of the region hold the same payload, so the access is resolved before the
//! loop.

use super::Lowerer;
use super::node::Step;
use super::region::Region;
use tamis_ir::looplet::Payload;

impl Lowerer<'_> {
    pub(super) fn run(&mut self, region: Region, steps: Vec<Step>, id: u32, payload: &Payload) {
        let steps = self.replace(steps, id, payload, None);
        self.region(region, steps);
    }
}
