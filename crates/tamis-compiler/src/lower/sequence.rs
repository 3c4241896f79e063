//! Sequences: one phase after the other, each over its part of the region.

use super::Lowerer;
use super::node::Step;
use super::region::Region;
use tamis_ir::algebra::{DType, Op};
use tamis_ir::looplet::Phase;

/// Phases up to this length are short.
const SHORT: i64 = 4;

impl Lowerer<'_> {
    /// `inside`: the phases' ends are known not to decrease, and to lie in the dimension.
    pub(super) fn sequence(&mut self, region: Region, steps: Vec<Step>, id: u32, phases: Vec<Phase>, inside: bool) {
        let mut start = region.start;
        let mut before = Some(region.start);
        let (copies, zero) = (self.copies, self.b.int(0));
        self.copies *= phases.len();
        let mut parts = self.begin_parts();
        for phase in phases {
            let stop = match phase.stop {
                // It ends before the region starts.
                Some(stop)
                    if self.b.is_at_most(stop, region.start) || region.shared && self.b.is_at_most(stop, zero) =>
                {
                    continue;
                }
                Some(stop) if inside && region.whole => stop,
                // It goes on to the end of the region.
                Some(stop) if self.b.is_at_most(region.stop, stop) => region.stop,
                Some(stop) => {
                    let low = self.b.call_in(Op::Max, DType::I64, &[stop, start]);
                    let high = self.b.call_in(Op::Min, DType::I64, &[low, region.stop]);
                    self.b.name("phase", high)
                }
                None => region.stop,
            };
            let end = phase.stop.unwrap_or(region.stop);
            let length = before.and_then(|before| self.b.distance(before, end));
            let short = region.short || length.is_some_and(|length| length <= SHORT);
            before = phase.stop;
            let body = self.set_looplet(steps.clone(), id, &phase.body);
            let whole = region.whole && start == region.start && stop == region.stop;
            let piece = region.piece.filter(|_| start == region.start && stop == region.stop);
            self.region(Region { start, stop, whole, point: false, filled: false, short, piece, ..region }, body);
            self.end_part(&mut parts);
            start = stop;
            if stop == region.stop {
                break;
            }
        }
        self.end_parts(parts);
        self.copies = copies;
    }
}
