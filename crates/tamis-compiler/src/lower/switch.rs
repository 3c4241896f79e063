//! Switches: whether there is anything at all is asked outside the loop, where that leaves nothing to do otherwise.

use super::Lowerer;
use super::node::{Node, Step, map_steps};
use super::region::Region;
use tamis_ir::kernel::{ExprId, Stmt};
use tamis_ir::looplet::Looplet;

impl Lowerer<'_> {
    pub(super) fn switch(
        &mut self,
        region: Region,
        steps: Vec<Step>,
        id: u32,
        cond: ExprId,
        then: Looplet,
        guarded: Looplet,
    ) {
        if !self.idle_without(&steps, &[id]) {
            // There is something to do in both cases; the loop is written once.
            let steps = self.set_looplet(steps, id, &guarded);
            return self.region(region, steps);
        }
        let certain = map_steps(steps, &mut |node| match node {
            Node::Access(mut access) if access.id == id => {
                access.looplet = Some(then.clone());
                access.present = None;
                Node::Access(access)
            }
            other => other,
        });
        let then = self.under(|this| this.region(region, certain));
        if !then.is_empty() {
            self.b.emit(Stmt::If { cond, then, otherwise: Vec::new() });
        }
    }
}
