//! Switches (loop unswitching): the presence of a fiber is tested once, outside of the loop, if
//! nothing happens without it.

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
            // Both cases have work, so the loop is emitted once.
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
