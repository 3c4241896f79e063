//! Sequences: consecutive phases, each lowered over its own subregion.

use super::Lowerer;
use super::node::Step;
use super::region::Region;
use tamis_ir::algebra::{DType, Op};
use tamis_ir::kernel::ExprId;
use tamis_ir::looplet::Phase;
use tamis_ir::program::{Expr, Program};

/// Phases up to this length are short.
const SHORT: i64 = 4;

/// Dimensions of at least this size are not small: padding at the two ends does not overlap.
pub(crate) const DISJOINT_PADDING: u64 = 4;

/// True if the program pads, so that the kernel is specialised for small dimensions.
pub(crate) fn pads(program: &Program) -> bool {
    program.exprs.ids().any(|id| match program.expr(id) {
        Expr::Read(access) => access.subscripts.iter().any(|subscript| subscript.permissive),
        _ => false,
    })
}

impl Lowerer<'_> {
    /// `inside`: the ends of phases are known to be nondecreasing, and in bounds.
    pub(super) fn sequence(&mut self, region: Region, steps: Vec<Step>, id: u32, phases: Vec<Phase>, inside: bool) {
        let mut start = region.start;
        let mut before = Some(region.start);
        let (copies, zero) = (self.copies, self.b.int(0));
        let working = phases.iter().filter(|phase| self.subregion_count(&steps, id, &phase.body) > 0).count();
        self.copies *= working.max(1);
        let mut completeness = self.begin_subregions();
        for phase in phases {
            let stop = match phase.stop {
                // The phase ends before the region starts.
                Some(stop) if self.is_at_most(stop, region.start) || region.shared && self.is_at_most(stop, zero) => {
                    continue;
                }
                Some(stop) if inside && region.whole => stop,
                // The phase extends to the end of the region.
                Some(stop) if self.is_at_most(region.stop, stop) => region.stop,
                Some(stop) => {
                    let low = match self.is_at_most(start, stop) {
                        true => stop,
                        false => self.b.call_in(Op::Max, DType::I64, &[stop, start]),
                    };
                    let high = match self.is_at_most(low, region.stop) {
                        true => low,
                        false => self.b.call_in(Op::Min, DType::I64, &[low, region.stop]),
                    };
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
            let chunk = region.chunk.filter(|_| start == region.start && stop == region.stop);
            self.region(Region { start, stop, whole, point: false, filled: false, short, chunk, ..region }, body);
            self.end_subregion(&mut completeness);
            start = stop;
            if stop == region.stop {
                break;
            }
        }
        self.end_subregions(completeness);
        self.copies = copies;
    }

    /// True if `a <= b`, by the form of these integers, or because a dimension is not small.
    fn is_at_most(&self, a: ExprId, b: ExprId) -> bool {
        let constant = |id: ExprId| self.b.as_constant(id).and_then(|value| value.as_i64());
        let by_size = || {
            let least = self.not_small.iter().filter_map(|size| self.b.distance(*size, b)).max()?;
            Some(constant(a)? <= DISJOINT_PADDING as i64 + least)
        };
        self.b.is_at_most(a, b) || by_size().unwrap_or(false)
    }
}
