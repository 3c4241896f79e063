//! Masks over windows: an inequality of the indices of a window cuts the loops around its innermost
//! one, too.
//!
//! In: the body of a loop that moves a window, and masks such as `k < c - i` along an inner loop of
//! the same window. Out: the masks get the structure that they have along this loop: a run of
//! `false` where no iteration of the inner loop satisfies them, and nothing known elsewhere, so that
//! the inner loop decides.

use super::Lowerer;
use super::node::{Node, PartialAccess, ReadSource, Step, map_steps, visit_steps};
use super::run_algebra::depends;
use super::simplify;
use tamis_ir::algebra::{DType, Op, Value};
use tamis_ir::kernel::ExprId;
use tamis_ir::looplet::{Looplet, Payload, Phase};
use tamis_ir::program::IndexId;

impl Lowerer<'_> {
    /// Describes the masks of inner loops that move the same windows as this loop.
    pub(super) fn cut_windows(&mut self, index: IndexId, body: Vec<Step>) -> Vec<Step> {
        // The inner loops that windows along this loop are open in.
        let mut open: Vec<IndexId> = Vec::new();
        visit_steps(&body, &mut |node| {
            if let Node::Access(access) = node
                && access.looplet.is_some()
                && let ReadSource::Tensor(_, subs) = &access.source
            {
                for sub in subs.iter().skip(access.level).filter(|sub| depends(&sub.node, index)) {
                    sub.node.visit(&mut |node| match node {
                        Node::Index(i) if *i != index && self.indices[i.index()].is_none() => open.push(*i),
                        _ => {}
                    });
                }
            }
        });
        if open.is_empty() || self.huge {
            return body;
        }
        let mut masks: Vec<u32> = Vec::new();
        visit_steps(&body, &mut |node| match node {
            Node::Access(access) if matches!(access.source, ReadSource::Mask(..)) && !masks.contains(&access.id) => {
                masks.push(access.id);
            }
            _ => {}
        });
        // Other masks would only make copies of the loop.
        masks.retain(|id| {
            let rest = self.replace(body.clone(), *id, &Payload::Truth(false), None);
            simplify::steps(rest, self.policy).is_empty()
        });
        map_steps(body, &mut |node| match node {
            Node::Access(access) if masks.contains(&access.id) => {
                let looplet = self.outer_mask(&access, index, &open);
                Node::Access(Box::new(PartialAccess { looplet: looplet.or(access.looplet.clone()), ..*access }))
            }
            other => other,
        })
    }

    /// The structure of a mask of an inner loop along this loop.
    fn outer_mask(&mut self, access: &PartialAccess, index: IndexId, open: &[IndexId]) -> Option<Looplet> {
        let ReadSource::Mask(op, on, bound) = &access.source else { return None };
        if access.looplet.is_some() || !open.contains(on) {
            return None;
        }
        // `k < L // by` is `by*k < L - by + 1`, and `k <= L // by` is `by*k <= L`.
        let (bound, by) = match &**bound {
            Node::Call(Op::FloorDiv, DType::I64, operands) => match &operands[..] {
                [inner, Node::Known(Value::I64(by))] if *by > 0 => (inner, *by),
                _ => return None,
            },
            bound => (bound, 1),
        };
        let footprint = self.footprint(bound, index)?;
        let (start, stop) = self.extent_before(*on)?;
        let (zero, one) = (self.b.int(0), self.b.int(1));
        let end = self.b.sub(stop, one);
        let (start, end) = (self.plus_times(zero, start, by), self.plus_times(zero, end, by));
        let rounded = self.b.int(by - 1);
        // Along this loop, the bound is `stride * i` plus a term from `low` to `last`. No inner
        // iteration satisfies the mask where `stride * i` is at most `below`, or above `above`.
        let below = match op {
            Op::Lt => Some(self.b.add(start, rounded)),
            Op::Le | Op::Eq => Some(self.b.sub(start, one)),
            _ => None,
        };
        let above = match op {
            Op::Ge => Some(self.b.add(end, rounded)),
            Op::Eq => Some(end),
            Op::Gt => Some(self.b.sub(end, one)),
            _ => None,
        };
        let below = below.map(|value| self.b.sub(value, footprint.last));
        let above = above.map(|value| self.b.sub(value, footprint.low));
        let (first, end) = if footprint.stride > 0 { (below, above) } else { (above, below) };
        let nowhere = || Looplet::Run(Payload::Truth(false));
        let first =
            first.map(|limit| Phase { stop: Some(self.first_beyond(limit, footprint.stride)), body: nowhere() });
        let unknown = |stop| Phase { stop, body: Looplet::Run(Payload::Outside) };
        let end = end.map(|limit| self.first_beyond(limit, footprint.stride));
        let mut phases: Vec<Phase> = first.into_iter().chain([unknown(end)]).collect();
        if end.is_some() {
            phases.push(Phase { stop: None, body: nowhere() });
        }
        (phases.len() > 1).then_some(Looplet::Sequence { phases, inside: false })
    }

    /// The first index at which `stride * i` is above a limit or, if it decreases, at most the
    /// limit.
    fn first_beyond(&mut self, limit: ExprId, stride: i64) -> ExprId {
        let (zero, one) = (self.b.int(0), self.b.int(1));
        let quotient = match stride.abs() {
            1 => limit,
            by => {
                let by = self.b.int(by);
                self.b.call_in(Op::FloorDiv, DType::I64, &[limit, by])
            }
        };
        if stride > 0 { self.b.add(quotient, one) } else { self.b.sub(zero, quotient) }
    }
}
