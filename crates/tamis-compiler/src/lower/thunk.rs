//! Thunks: the preamble of a looplet runs once, before the loop.

use super::Lowerer;
use super::node::Step;
use super::region::Region;
use tamis_ir::kernel::Block;
use tamis_ir::looplet::Looplet;

impl Lowerer<'_> {
    pub(super) fn thunk(&mut self, region: Region, steps: Vec<Step>, id: u32, preamble: Block, body: Looplet) {
        preamble.into_iter().for_each(|stmt| self.b.emit(stmt));
        let steps = self.set_looplet(steps, id, &body);
        self.region(region, steps);
    }
}
