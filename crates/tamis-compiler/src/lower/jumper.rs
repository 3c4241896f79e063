//! Jumpers: leapfrog (galloping) intersection of coordinate lists.
//!
//! Where all leading lists must agree, each one seeks the greatest coordinate of the others by
//! search. Elsewhere they are steppers.

use super::Lowerer;
use super::node::{Node, Step, map_steps};
use super::region::Region;
use super::stepper::Advance;
use tamis_ir::looplet::Looplet;

impl Lowerer<'_> {
    pub(super) fn jumpers(&mut self, region: Region, steps: Vec<Step>) {
        let steps = map_steps(steps, &mut |node| match node {
            Node::Access(mut access) => {
                if let Some(Looplet::Jumper(stepper)) = access.looplet {
                    access.looplet = Some(Looplet::Stepper(stepper));
                }
                Node::Access(access)
            }
            other => other,
        });
        self.coiterate(region, steps, Advance::Search);
    }
}
