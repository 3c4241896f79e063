//! Dilated windows: of `a*i + b*k + c` with `b > 1`, only every `b`-th coordinate belongs to the
//! window of `i`.
//!
//! A window is located by the contiguous range of coordinates that it covers, so a window may be
//! reached that stores elements only between its own coordinates. At each `i` the lowerer skips the
//! elements that no inner loop reaches. If none remains, it skips the body; otherwise the inner
//! loops continue from the first element in the window, so each element is visited once. Coordinate
//! lists and segments are narrowed this way, if nothing happens without them; other structures keep
//! their range.

use super::Lowerer;
use super::fiber_sets::unthunked;
use super::node::{Node, PartialAccess, Projection, ReadSource, Step, map_steps, visit_steps};
use super::window::OpenFootprint;
use tamis_ir::algebra::{DType, Op, Value};
use tamis_ir::kernel::{ExprId, Stmt};
use tamis_ir::looplet::{Edge, Located, Looplet, Segments, Stepper};
use tamis_ir::program::IndexId;

/// The coordinates that an inner loop adds to the start of a window: `count` multiples of `by`.
struct Dilation {
    by: i64,
    count: ExprId,
}

impl Lowerer<'_> {
    /// Moves the windows at a loop's index to their first element that inner loops reach. Gives a
    /// condition that there is one, unless it always holds or does not matter.
    pub(super) fn narrow_windows(&mut self, index: IndexId, steps: Vec<Step>) -> (Vec<Step>, Option<ExprId>) {
        let mut found: Vec<PartialAccess> = Vec::new();
        visit_steps(&steps, &mut |node| {
            if let Node::Access(access) = node
                && access.window.is_some()
                && found.iter().all(|other| other.id != access.id)
            {
                found.push((**access).clone());
            }
        });
        let (mut steps, mut all) = (steps, None);
        for access in found {
            if !self.idle_without(&steps, &[access.id]) {
                continue;
            }
            let Some((first, some)) = self.first_reached(index, &access) else { continue };
            steps = map_steps(steps, &mut |node| match node {
                Node::Access(mut other) if other.id == access.id && other.window == access.window => {
                    other.window = other.window.map(|(_, loops)| (Edge::From(first), loops));
                    Node::Access(other)
                }
                other => other,
            });
            all = self.both(all, Some(some));
        }
        (steps, all)
    }

    /// The first element of a dilated window that inner loops reach, and a condition that there is
    /// one.
    fn first_reached(&mut self, index: IndexId, access: &PartialAccess) -> Option<(ExprId, ExprId)> {
        let ReadSource::Tensor(tensor, subs) = &access.source else { return None };
        let (tensor, sub) = (*tensor, subs.get(access.level)?);
        let (Edge::From(first), loops) = access.window? else { return None };
        let plain = sub.projection == Projection::Whole
            && !sub.permissive
            && access.present.is_none()
            && access.fibers.is_empty();
        if !plain || loops != self.entered(access) {
            return None;
        }
        let inner = self.open_index(sub, index)?;
        let OpenFootprint { terms, low, last } = self.open_footprint(&sub.node, index, inner)?;
        let dilations = self.dilations(&terms)?;
        let position = access.position.unwrap_or(self.b.int(0));
        let at = Located { position, present: None, group_stop: access.group_stop };
        let zero = self.b.int(0);
        let looplet = self.fiber(tensor, access.level, at, zero, |row, fiber| (row.unfurl)(fiber))?;
        let (preamble, structure) = unthunked(looplet);
        let known = match (&structure, &dilations[..]) {
            (Looplet::Stepper(_), _) => true,
            (Looplet::Segments(segments), [_]) => segments.set().is_none() && !segments.consecutive(),
            _ => false,
        };
        if !known {
            return None;
        }
        preamble.into_iter().for_each(|stmt| self.b.emit(stmt));
        let (low, last) = (self.b.name("low", low), self.b.name("last", last));
        match (&structure, &dilations[..]) {
            (Looplet::Stepper(list), _) => Some(self.skip_elements(list, first, (low, last), &dilations)),
            (Looplet::Segments(segments), [single]) => Some(self.skip_segments(segments, first, (low, last), single)),
            _ => None,
        }
    }

    /// The dilations of the inner loops, if they do not reach every coordinate of the range.
    fn dilations(&mut self, open: &[(IndexId, i64)]) -> Option<Vec<Dilation>> {
        if open.iter().any(|(_, by)| by.unsigned_abs() < 2) {
            return None;
        }
        let one = self.b.int(1);
        let mut dilations = Vec::new();
        for (other, by) in open {
            let (start, stop) = self.extent_before(*other)?;
            let last = self.b.sub(stop, start);
            let count = self.b.call_in(Op::Max, DType::I64, &[last, one]);
            dilations.push(Dilation { by: i64::try_from(by.unsigned_abs()).ok()?, count });
        }
        // The check of an element is a loop over all dilations but one, so it is limited to two.
        (dilations.len() <= 2).then_some(dilations)
    }

    /// Skips segments between the coordinates of a window.
    fn skip_segments(
        &mut self,
        segments: &Segments,
        first: ExprId,
        (low, last): (ExprId, ExprId),
        dilation: &Dilation,
    ) -> (ExprId, ExprId) {
        let cursor = self.b.variable_from("reached", first);
        let (at, one, zero) = (self.b.get(cursor), self.b.int(1), self.b.int(0));
        let more = segments.has(&mut self.b, at);
        let segment = segments.segment(&mut self.b, at);
        let begin = segment.first.unwrap_or(low);
        let within = self.b.call_in(Op::Le, DType::I64, &[begin, last]);
        let alive = self.b.call_in(Op::And, DType::Bool, &[more, within]);
        // A segment lies between if the first window coordinate at or after its start lies beyond
        // its end.
        let distance = self.b.sub(begin, low);
        let distance = self.b.call_in(Op::Max, DType::I64, &[distance, zero]);
        let (by, less) = (self.b.int(dilation.by), self.b.int(dilation.by - 1));
        let up = self.b.add(distance, less);
        let times = self.b.call_in(Op::FloorDiv, DType::I64, &[up, by]);
        let up = self.b.call_in(Op::Mul, DType::I64, &[times, by]);
        let coordinate = self.b.add(low, up);
        let between = self.b.call_in(Op::Ge, DType::I64, &[coordinate, segment.end]);
        let cond = self.b.call_in(Op::And, DType::Bool, &[alive, between]);
        let next = self.b.add(at, one);
        self.b.emit(Stmt::While { cond, body: vec![Stmt::Assign { var: cursor, value: next }] });
        let some = self.b.name("some", alive);
        (at, some)
    }

    /// Skips elements of a coordinate list between the coordinates of a window. Gives the first
    /// other one, and a condition that it belongs to the window.
    fn skip_elements(
        &mut self,
        list: &Stepper,
        first: ExprId,
        (low, last): (ExprId, ExprId),
        dilations: &[Dilation],
    ) -> (ExprId, ExprId) {
        let cursor = self.b.variable_from("reached", first);
        let (at, one, zero) = (self.b.get(cursor), self.b.int(1), self.b.int(0));
        let more = self.b.call_in(Op::Lt, DType::I64, &[at, list.stop]);
        let here = list.coordinate(&mut self.b, at);
        let within = self.b.call_in(Op::Le, DType::I64, &[here, last]);
        let alive = self.b.call_in(Op::And, DType::Bool, &[more, within]);
        let distance = self.b.sub(here, low);
        let next = self.b.add(at, one);
        let step = Stmt::Assign { var: cursor, value: next };
        match dilations {
            [single] => {
                let by = self.b.int(single.by);
                let remainder = self.b.call_in(Op::Mod, DType::I64, &[distance, by]);
                let between = self.b.call_in(Op::Ne, DType::I64, &[remainder, zero]);
                let cond = self.b.call_in(Op::And, DType::Bool, &[alive, between]);
                self.b.emit(Stmt::While { cond, body: vec![step] });
            }
            [a, b, ..] => {
                // An element is reached if some iteration of the second loop needs an iteration of
                // the first that exists.
                let yes = self.b.constant(Value::Bool(true));
                let missed = self.b.variable_from("missed", yes);
                let still = self.b.get(missed);
                let cond = self.b.call_in(Op::And, DType::Bool, &[alive, still]);
                let body = self.in_block(|this| {
                    let iteration = this.b.new_var("t", DType::I64, false);
                    let t = this.b.get(iteration);
                    let (first, second) = (this.b.int(a.by), this.b.int(b.by));
                    let multiple = this.b.call_in(Op::Mul, DType::I64, &[t, second]);
                    let remainder = this.b.sub(distance, multiple);
                    let times = this.b.call_in(Op::FloorDiv, DType::I64, &[remainder, first]);
                    let left = this.b.call_in(Op::Mod, DType::I64, &[remainder, first]);
                    let whole = this.b.call_in(Op::Eq, DType::I64, &[left, zero]);
                    let above = this.b.call_in(Op::Ge, DType::I64, &[times, zero]);
                    let below = this.b.call_in(Op::Lt, DType::I64, &[times, a.count]);
                    let inside = this.b.call_in(Op::And, DType::Bool, &[above, below]);
                    let reached = this.b.call_in(Op::And, DType::Bool, &[whole, inside]);
                    let no = this.b.constant(Value::Bool(false));
                    let kept = this.b.call_in(Op::Select, DType::Bool, &[reached, no, still]);
                    let body = vec![Stmt::Assign { var: missed, value: kept }];
                    let hint = tamis_ir::kernel::Hint::default();
                    this.b.emit(Stmt::For { var: iteration, start: zero, stop: b.count, body, hint });
                    this.b.emit(Stmt::If { cond: still, then: vec![step], otherwise: Vec::new() });
                });
                self.b.emit(Stmt::While { cond, body });
            }
            [] => {}
        }
        let some = self.b.name("some", alive);
        (at, some)
    }
}
