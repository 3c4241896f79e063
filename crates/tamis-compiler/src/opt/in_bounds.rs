//! In-bounds analysis: the elements of buffers that are known to exist. It justifies loads that a
//! pass adds; bounds checks of subscripts are avoided by the lowerer (`lower/random_access.rs`).
//!
//! A pass may add a load only where this analysis proves that the element exists. Buffers never
//! shrink, so an element that was accessed exists from then on; a buffer that grew to a length has
//! that many elements; callers assume lengths of inputs and bounds of the coordinates stored in
//! them.

use super::effects::{Effects, WriteTimes};
use rustc_hash::{FxHashMap, FxHashSet};
use tamis_ir::DType;
use tamis_ir::algebra::{Op, Value};
use tamis_ir::kernel::rewrite::{evaluated_first, is_always_there};
use tamis_ir::kernel::{Assumption, Block, BufferId, Expr, ExprId, Kernel, Role, Stmt, VarId, VectorExpr};

/// A pass that tracks in-bounds elements on its walk through a kernel.
pub(super) trait InBoundsPass {
    /// The kernel under construction and the in-bounds facts.
    fn parts(&mut self) -> (&Kernel, &mut InBounds);

    fn block(&mut self, block: Block) -> Block;

    /// Visits the blocks of a statement. Their facts are dropped afterwards, since a block may not
    /// run.
    fn inside(&mut self, stmt: &mut Stmt) {
        let (kernel, reach) = self.parts();
        reach.pass(kernel, stmt);
        let again = matches!(stmt, Stmt::For { .. } | Stmt::While { .. });
        for inner in stmt.blocks_mut() {
            let effects = Effects::of(inner);
            if again {
                self.parts().1.forget(&effects);
            }
            let mark = self.parts().1.enter();
            *inner = self.block(std::mem::take(inner));
            let (_, reach) = self.parts();
            reach.leave(mark);
            reach.forget(&effects);
        }
    }
}

/// The maximum depth of a proof.
const DEEPEST: usize = 6;

/// Elements that are known to exist at the current program point.
pub(super) struct InBounds {
    pub(super) times: WriteTimes,
    assumptions: Vec<Assumption>,
    /// The time of the last access to an element.
    there: FxHashMap<(BufferId, ExprId), u64>,
    /// Undo log of `there`, for rollback at the end of a block.
    trail: Vec<((BufferId, ExprId), Option<u64>)>,
    /// Lower bounds of buffer lengths, and the times since when they hold.
    lengths: Vec<(BufferId, ExprId, u64)>,
    /// Ranges of loop counters and definitions of immutable variables.
    declared: FxHashMap<VarId, (Declared, u64)>,
}

#[derive(Clone, Copy)]
enum Declared {
    Counter(ExprId, ExprId),
    Value(ExprId),
    /// A lower bound search: the first position whose element is not below the key.
    Found(BufferId, ExprId),
}

/// A program point for rollback.
#[derive(Clone, Copy)]
pub(super) struct InBoundsCheckpoint(usize, usize);

impl InBounds {
    pub(super) fn new(kernel: &Kernel) -> InBounds {
        let lengths = kernel.assumptions.iter().filter_map(|fact| match fact {
            Assumption::Length { buffer, least } => Some((*buffer, *least, 0)),
            _ => None,
        });
        InBounds {
            times: WriteTimes::new(kernel),
            assumptions: kernel.assumptions.clone(),
            there: FxHashMap::default(),
            trail: Vec::new(),
            lengths: lengths.collect(),
            declared: FxHashMap::default(),
        }
    }

    // Queries

    /// True if an element exists at the current program point.
    pub(super) fn has(&self, kernel: &Kernel, buffer: BufferId, index: ExprId) -> bool {
        self.proves(kernel, buffer, index, DEEPEST)
    }

    /// A lower bound of a buffer's current length.
    pub(super) fn length(&self, kernel: &Kernel, buffer: BufferId) -> Option<ExprId> {
        let known = self
            .lengths
            .iter()
            .rev()
            .find(|(other, len, at)| *other == buffer && self.times.unchanged(kernel, *len, *at));
        known.map(|(_, len, _)| *len)
    }

    fn proves(&self, kernel: &Kernel, buffer: BufferId, index: ExprId, depth: usize) -> bool {
        is_always_there(kernel.buffer(buffer), kernel.expr(index))
            || self.there.get(&(buffer, index)).is_some_and(|at| self.times.unchanged(kernel, index, *at))
            || depth > 0
                && (self.is_short_enough(kernel, buffer, index, depth) || self.is_beside(kernel, buffer, index, depth))
    }

    /// True if an index is below a known lower bound of the length.
    fn is_short_enough(&self, kernel: &Kernel, buffer: BufferId, index: ExprId, depth: usize) -> bool {
        self.lengths.iter().any(|(other, len, at)| {
            *other == buffer && self.times.unchanged(kernel, *len, *at) && self.is_below(kernel, index, *len, depth - 1)
        })
    }

    /// True if another buffer of at most the same length has this element.
    fn is_beside(&self, kernel: &Kernel, buffer: BufferId, index: ExprId, depth: usize) -> bool {
        self.assumptions.iter().any(|fact| match fact {
            Assumption::Longer { buffer: longer, other, more } if *longer == buffer => {
                self.proves(kernel, *other, index, depth - 1)
                    || plus_constant(kernel, index).is_some_and(|(base, constant)| {
                        (0..=i64::from(*more)).contains(&constant) && self.proves(kernel, *other, base, depth - 1)
                    })
            }
            _ => false,
        })
    }

    /// True if `0 <= index < bound`.
    fn is_below(&self, kernel: &Kernel, index: ExprId, bound: ExprId, depth: usize) -> bool {
        if depth == 0 {
            return false;
        }
        let int = |id: ExprId| match kernel.expr(id) {
            Expr::Const(value) => value.as_i64(),
            _ => None,
        };
        if let Some((shorter, more)) = plus_constant(kernel, bound)
            && more >= 0
        {
            let (base, constant) = plus_constant(kernel, index).unwrap_or((index, 0));
            if self.is_below(kernel, index, shorter, depth - 1)
                || (0..=more).contains(&constant) && self.is_below(kernel, base, shorter, depth - 1)
            {
                return true;
            }
        }
        match kernel.expr(index) {
            Expr::Const(value) => {
                matches!((value.as_i64(), int(bound)), (Some(index), Some(bound)) if (0..bound).contains(&index))
            }
            Expr::Var(var) => match self.declared.get(var) {
                Some((Declared::Counter(start, stop), at)) => {
                    int(*start).is_some_and(|start| start >= 0)
                        && *stop == bound
                        && self.times.unchanged(kernel, bound, *at)
                }
                Some((Declared::Found(..), _)) => false,
                Some((Declared::Value(value), at)) => match kernel.expr(*value) {
                    // Every element of the buffer is below the bound, whenever it was loaded.
                    Expr::Load(buffer, _) => self.is_bounded(*buffer, bound),
                    _ => self.times.unchanged(kernel, *value, *at) && self.is_below(kernel, *value, bound, depth - 1),
                },
                None => false,
            },
            Expr::Load(buffer, _) => self.is_bounded(*buffer, bound),
            Expr::Vector(_) => false,
            // a * m + k < n * m
            Expr::Call(Op::Add, DType::I64, sum) => match (kernel.expr(sum[0]), kernel.expr(bound)) {
                (Expr::Call(Op::Mul, DType::I64, product), Expr::Call(Op::Mul, DType::I64, all)) => {
                    product[1] == all[1]
                        && self.is_below(kernel, product[0], all[0], depth - 1)
                        && self.is_below(kernel, sum[1], all[1], depth - 1)
                }
                _ => false,
            },
            // x - s < t - s
            Expr::Call(Op::Sub, DType::I64, from) => match kernel.expr(bound) {
                Expr::Call(Op::Sub, DType::I64, to) => {
                    from[1] == to[1] && self.is_between(kernel, from[0], to[1], to[0])
                }
                _ => false,
            },
            Expr::Call(..) => false,
        }
    }

    /// True if `low <= x < high`: a counter over that range, or an element between two lower-bound
    /// searches.
    fn is_between(&self, kernel: &Kernel, x: ExprId, low: ExprId, high: ExprId) -> bool {
        let same = |a: ExprId, b: ExprId, at: u64| a == b && self.times.unchanged(kernel, a, at);
        let declared = |id: ExprId| match kernel.expr(id) {
            Expr::Var(var) => self.declared.get(var).copied(),
            _ => None,
        };
        match declared(x) {
            Some((Declared::Counter(start, stop), at)) => same(start, low, at) && same(stop, high, at),
            Some((Declared::Value(value), _)) => {
                let Expr::Load(list, place) = kernel.expr(value) else { return false };
                let Some((Declared::Counter(from, to), _)) = declared(*place) else { return false };
                // A buffer that is not an input may have changed since.
                if kernel.buffer(*list).role != Role::Input {
                    return false;
                }
                let found = |place: ExprId, key: ExprId| match declared(place) {
                    Some((Declared::Found(other, looked_for), at)) => other == *list && same(looked_for, key, at),
                    _ => false,
                };
                found(from, low) && found(to, high)
            }
            _ => false,
        }
    }

    fn is_bounded(&self, buffer: BufferId, bound: ExprId) -> bool {
        self.assumptions.contains(&Assumption::Below { buffer, bound })
    }

    // Program points

    fn add(&mut self, buffer: BufferId, index: ExprId) {
        let before = self.there.insert((buffer, index), self.times.now);
        self.trail.push(((buffer, index), before));
    }

    /// Records the evaluation of an expression.
    fn evaluate(&mut self, kernel: &Kernel, id: ExprId) {
        certain_loads(kernel, id, &mut |buffer, index| self.add(buffer, index));
    }

    /// Records the evaluation of a statement's expressions, then its effects. Nothing is recorded
    /// about nested blocks.
    pub(super) fn pass(&mut self, kernel: &Kernel, stmt: &Stmt) {
        stmt.each_expr(|id| self.evaluate(kernel, id));
        self.times.pass(stmt);
        let now = self.times.now;
        match stmt {
            // An index that reads the buffer may denote a different element now.
            Stmt::Store { buffer, index, .. } if self.times.unchanged(kernel, *index, now - 1) => {
                self.add(*buffer, *index);
            }
            Stmt::Grow { buffer, len, .. } => self.lengths.push((*buffer, *len, now)),
            Stmt::Let { var, value } if !kernel.var(*var).mutable => {
                self.declared.insert(*var, (Declared::Value(*value), now));
            }
            Stmt::Search { var, buffer, key, .. } if !kernel.var(*var).mutable => {
                self.declared.insert(*var, (Declared::Found(*buffer, *key), now));
            }
            Stmt::For { var, start, stop, .. } if !kernel.var(*var).mutable => {
                self.declared.insert(*var, (Declared::Counter(*start, *stop), now));
            }
            _ => {}
        }
    }

    /// Enters a block.
    pub(super) fn enter(&self) -> InBoundsCheckpoint {
        InBoundsCheckpoint(self.trail.len(), self.lengths.len())
    }

    /// Leaves a block and drops its facts, since it may not have run.
    pub(super) fn leave(&mut self, InBoundsCheckpoint(trail, lengths): InBoundsCheckpoint) {
        while self.trail.len() > trail {
            if let Some((element, before)) = self.trail.pop() {
                match before {
                    Some(at) => self.there.insert(element, at),
                    None => self.there.remove(&element),
                };
            }
        }
        self.lengths.truncate(lengths);
    }

    /// Invalidates facts that code with these effects may change.
    pub(super) fn forget(&mut self, effects: &Effects) {
        self.times.forget(effects);
    }
}

/// `a` and `c` of `a + c`.
fn plus_constant(kernel: &Kernel, id: ExprId) -> Option<(ExprId, i64)> {
    match kernel.expr(id) {
        Expr::Call(Op::Add, DType::I64, operands) => match kernel.expr(operands[1]) {
            Expr::Const(Value::I64(constant)) => Some((operands[0], *constant)),
            _ => None,
        },
        _ => None,
    }
}

/// The elements that an expression reads unconditionally.
pub(super) fn certain_loads(kernel: &Kernel, id: ExprId, visit: &mut impl FnMut(BufferId, ExprId)) {
    let mut open = vec![id];
    let mut seen = FxHashSet::default();
    while let Some(id) = open.pop() {
        match kernel.expr(id) {
            Expr::Const(_) | Expr::Var(_) => {}
            _ if !seen.insert(id) => {}
            Expr::Load(buffer, index) => {
                visit(*buffer, *index);
                open.push(*index);
            }
            Expr::Call(op, dtype, operands) => {
                open.extend(&operands[..evaluated_first(*op, *dtype, operands)]);
            }
            // Of masked loads, only the mask is certain.
            Expr::Vector(VectorExpr::Masked { mask, .. }) => open.push(*mask),
            Expr::Vector(vector) => open.extend(vector.operands()),
        }
    }
}

/// The elements that a block accesses unconditionally when it runs.
pub(super) fn certain_accesses(kernel: &Kernel, block: &[Stmt], visit: &mut impl FnMut(BufferId, ExprId)) {
    for stmt in block {
        stmt.each_expr(|id| certain_loads(kernel, id, visit));
        if let Stmt::Store { buffer, index, .. } = stmt {
            visit(*buffer, *index);
        }
        // After a possible exit, execution is conditional.
        if !Effects::of(std::slice::from_ref(stmt)).left.is_empty() {
            return;
        }
    }
}

/// True if a counted loop has at least one iteration.
pub(super) fn runs(kernel: &Kernel, start: ExprId, stop: ExprId) -> bool {
    let int = |id| match kernel.expr(id) {
        Expr::Const(value) => Value::as_i64(*value),
        _ => None,
    };
    // Arithmetic on positions and coordinates does not overflow.
    matches!((int(start), int(stop)), (Some(a), Some(b)) if a < b)
        || plus_constant(kernel, stop).is_some_and(|(base, more)| base == start && more > 0)
}
