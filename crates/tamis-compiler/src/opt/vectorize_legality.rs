//! Vectorisation legality: marks innermost loops whose iterations are independent, except for
//! reductions.
//!
//! The hint permits a back end to run several iterations at once and to reassociate sums, so strict
//! kernels get it only where order does not matter. A loop gets it if it also is profitable, that
//! is, if it reads or writes contiguous memory. A loop that a schedule asks to vectorize keeps its
//! hint wherever that is legal.

use super::Options;
use super::effects::Effects;
use rustc_hash::FxHashMap;
use tamis_ir::algebra::Op;
use tamis_ir::kernel::{Block, BufferId, Expr, ExprId, Kernel, Role, Stmt, VarId};
use tamis_ir::{DType, Kind};

pub(super) fn run(mut kernel: Kernel, options: &Options) -> Kernel {
    let mut body = std::mem::take(&mut kernel.body);
    Legality { kernel: &kernel, strict: options.strict }.block(&mut body);
    Kernel { body, ..kernel }
}

struct Legality<'a> {
    kernel: &'a Kernel,
    strict: bool,
}

/// The stride of a value along a loop.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum LoopStride {
    /// Loop-invariant.
    None,
    /// Unit stride.
    One,
    /// Unknown stride.
    Any,
}

impl Legality<'_> {
    fn block(&self, block: &mut Block) {
        for stmt in block {
            if let Stmt::For { var, body, hint, .. } = stmt {
                let wanted = hint.vectorise;
                hint.vectorise = self.is_independent(*var, body, wanted, false);
                if !wanted && !hint.vectorise {
                    hint.vectorise = self.is_independent(*var, body, false, true);
                    hint.short_trip = hint.vectorise;
                }
            }
            stmt.blocks_mut().for_each(|inner| self.block(inner));
        }
    }

    /// True if the iterations of a loop are independent and, unless the schedule requests vectors
    /// (`wanted`), vectorization is likely to be profitable. `gather`: accepts a sum of gathered
    /// elements.
    fn is_independent(&self, counter: VarId, body: &Block, wanted: bool, gather: bool) -> bool {
        let mut accesses = LoopAccesses {
            hints: self,
            effects: Effects::of(body),
            steps: FxHashMap::default(),
            known: FxHashMap::default(),
            loads: Vec::new(),
            stores: Vec::new(),
            neighbours: false,
            computes: false,
            wanted,
            gather,
            gathered: 0,
            sums: false,
        };
        if self.kernel.var(counter).mutable {
            return false;
        }
        accesses.steps.insert(counter, LoopStride::One);
        if !body.iter().all(|stmt| accesses.allows(stmt)) {
            return false;
        }
        // A gather loop loads one gathered element per iteration and writes nothing but the sum.
        if gather && !(accesses.sums && accesses.gathered == 1 && accesses.stores.is_empty()) {
            return false;
        }
        // A written buffer is accessed only at the iteration's own element, so iterations are
        // independent.
        let stores = accesses.stores;
        let own = |buffer: BufferId, index: ExprId| stores.iter().all(|(b, i)| *b != buffer || *i == index);
        (wanted || accesses.neighbours && accesses.computes)
            && accesses.loads.iter().all(|(buffer, index)| own(*buffer, *index))
            && stores.iter().all(|(buffer, index)| own(*buffer, *index))
    }

    /// True if an assignment is a reduction by an operator that may be reassociated.
    fn is_reduction(&self, var: VarId, value: ExprId, body: &Effects) -> bool {
        let Expr::Call(op, dtype, operands) = self.kernel.expr(value) else { return false };
        let [first, second] = operands[..] else { return false };
        let itself = |id: ExprId| *self.kernel.expr(id) == Expr::Var(var);
        let mut elsewhere = false;
        let other = if itself(first) { second } else { first };
        self.kernel.visit_expr(other, &mut |expr| elsewhere |= *expr == Expr::Var(var));
        let fits = match op {
            Op::Add | Op::Mul => dtype.kind() <= Kind::Int || !self.strict,
            Op::Sub => itself(first) && (dtype.kind() <= Kind::Int || !self.strict),
            Op::Min | Op::Max | Op::BitAnd | Op::BitOr | Op::BitXor => true,
            _ => false,
        };
        fits && !elsewhere
            && (itself(first) || itself(second))
            && self.kernel.exprs.dtype(first) == *dtype
            && self.kernel.var(var).dtype == *dtype
            && body.assigned.iter().filter(|other| **other == var).count() == 1
    }
}

struct LoopAccesses<'a> {
    hints: &'a Legality<'a>,
    effects: Effects,
    steps: FxHashMap<VarId, LoopStride>,
    known: FxHashMap<ExprId, LoopStride>,
    loads: Vec<(BufferId, ExprId)>,
    stores: Vec<(BufferId, ExprId)>,
    /// True if there are contiguous loads or stores.
    neighbours: bool,
    /// True if the loop computes anything; a pure copy is memory-bound with or without vectors.
    computes: bool,
    /// True if the schedule requests vectors, profitable or not.
    wanted: bool,
    /// True if gathered loads are allowed.
    gather: bool,
    /// The number of gathered loads.
    gathered: usize,
    /// True if there is a floating-point sum.
    sums: bool,
}

impl LoopAccesses<'_> {
    fn allows(&mut self, stmt: &Stmt) -> bool {
        match stmt {
            Stmt::Let { var, value } => {
                let step = self.step(*value);
                self.steps.insert(*var, step);
                !self.hints.kernel.var(*var).mutable && self.reads_fit(*value)
            }
            Stmt::Assign { var, value } => {
                self.computes = true;
                self.sums |= matches!(self.hints.kernel.var(*var).dtype, DType::F64 | DType::F32);
                self.hints.is_reduction(*var, *value, &self.effects) && self.reads_no_sum(*value, Some(*var))
            }
            Stmt::Store { buffer, index, value } => {
                let neighbours = self.step(*index) == LoopStride::One;
                self.neighbours |= neighbours;
                self.stores.push((*buffer, *index));
                let kernel = self.hints.kernel;
                let tile = |buffer: BufferId| matches!(kernel.buffer(buffer).role, Role::Tile(_));
                self.computes |= match kernel.expr(*value) {
                    Expr::Load(from, _) => tile(*buffer) || tile(*from),
                    Expr::Const(_) => tile(*buffer),
                    _ => true,
                };
                neighbours && self.reads_fit(*value) && self.reads_fit(*index)
            }
            _ => false,
        }
    }

    fn reads_fit(&mut self, id: ExprId) -> bool {
        self.reads_no_sum(id, None)
    }

    /// Records the loads of an expression; false if it uses an unfinished sum.
    fn reads_no_sum(&mut self, id: ExprId, but: Option<VarId>) -> bool {
        let mut fits = true;
        let kernel = self.hints.kernel;
        let mut loads = Vec::new();
        kernel.visit_expr(id, &mut |expr| match expr {
            Expr::Var(var) => fits &= !self.effects.assigned.contains(var) || but == Some(*var),
            Expr::Load(buffer, index) => loads.push((*buffer, *index)),
            _ => {}
        });
        for (buffer, index) in loads {
            let step = self.step(index);
            self.neighbours |= step == LoopStride::One;
            // Gathers load lane by lane: vectors gain little and compile slowly, unless the
            // elements are indexed by a coordinate buffer and summed.
            let listed = || matches!(kernel.expr(index), Expr::Load(..) | Expr::Var(_));
            fits &= step != LoopStride::Any || self.wanted || (self.gather && listed());
            self.gathered += usize::from(step == LoopStride::Any);
            self.loads.push((buffer, index));
        }
        fits
    }

    fn step(&mut self, id: ExprId) -> LoopStride {
        if let Some(step) = self.known.get(&id) {
            return *step;
        }
        let kernel = self.hints.kernel;
        let step = match kernel.expr(id) {
            Expr::Const(_) => LoopStride::None,
            Expr::Vector(_) => LoopStride::Any,
            Expr::Var(var) => match self.steps.get(var) {
                Some(step) => *step,
                None if self.effects.assigned.contains(var) => LoopStride::Any,
                None => LoopStride::None,
            },
            Expr::Load(buffer, index) => {
                let fixed = self.step(*index) == LoopStride::None && !self.effects.written.contains(buffer);
                if fixed { LoopStride::None } else { LoopStride::Any }
            }
            Expr::Call(op, dtype, operands) => {
                let steps: Vec<LoopStride> = operands.iter().map(|e| self.step(*e)).collect();
                match (op, &steps[..]) {
                    _ if steps.iter().all(|step| *step == LoopStride::None) => LoopStride::None,
                    (Op::Add, [LoopStride::One, LoopStride::None] | [LoopStride::None, LoopStride::One])
                        if *dtype == DType::I64 =>
                    {
                        LoopStride::One
                    }
                    (Op::Sub, [LoopStride::One, LoopStride::None]) if *dtype == DType::I64 => LoopStride::One,
                    _ => LoopStride::Any,
                }
            }
        };
        // A variable is declared before its uses, so the recorded stride is final.
        self.known.insert(id, step);
        step
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Make;
    use super::*;
    use tamis_ir::Value;

    /// True if the loop over `i` gets a hint.
    fn hinted(strict: bool, body: impl FnOnce(&mut Make, ExprId)) -> bool {
        let mut make = Make::new();
        let (zero, n) = (make.int(0), make.n);
        make.count("i", zero, n, body);
        let kernel = run(make.b.finish(), &Options { strict, ..Options::default() });
        kernel.verify().unwrap();
        let mut found = false;
        kernel.visit(&mut |stmt| found |= matches!(stmt, Stmt::For { hint, .. } if hint.vectorise));
        found
    }

    /// `sum += x[i]`, where the sum is declared before the loop.
    fn sum(strict: bool) -> bool {
        let mut make = Make::new();
        let sum = make.b.variable("sum", Value::F64(0.0));
        let (zero, n) = (make.int(0), make.n);
        make.count("i", zero, n, |make, i| {
            let (so_far, x) = (make.b.get(sum), make.load(make.x, i));
            let more = make.call(Op::Add, &[so_far, x]);
            make.b.assign(sum, more);
        });
        let kernel = run(make.b.finish(), &Options { strict, ..Options::default() });
        kernel.to_string().contains("vector")
    }

    #[test]
    fn neighbours_and_sums() {
        assert!(hinted(true, |make, i| {
            let x = make.load(make.x, i);
            make.add_to(make.y, i, x);
        }));
        assert!(sum(false));
        assert!(!sum(true), "sums of floats in another order are other numbers");
    }

    /// A requested vectorization is legal-checked only, profitable or not.
    #[test]
    fn requested_vectors() {
        let vectorised_on_request = |body: fn(&mut Make, ExprId)| {
            let mut make = Make::new();
            let (zero, n) = (make.int(0), make.n);
            make.count("i", zero, n, body);
            let mut kernel = make.b.finish();
            let request = |stmt: &mut Stmt| {
                if let Stmt::For { hint, .. } = stmt {
                    hint.vectorise = true;
                }
            };
            kernel.body.iter_mut().for_each(request);
            run(kernel, &Options { strict: false, ..Options::default() }).to_string().contains("vector")
        };
        // y[i] = x[A_crd[i]] gathers, which is profitable only on request.
        let gather = |make: &mut Make, i: ExprId| {
            let place = make.load(make.crd, i);
            let x = make.load(make.x, place);
            make.add_to(make.y, i, x);
        };
        assert!(!hinted(false, gather) && vectorised_on_request(gather));
        // y[i + 1] = y[i] has a loop-carried dependence.
        assert!(!vectorised_on_request(|make, i| {
            let one = make.int(1);
            let (next, y) = (make.b.add(i, one), make.load(make.y, i));
            make.b.store(make.y, next, y);
        }));
    }

    #[test]
    fn loop_carried_dependences() {
        // y[i + 1] = y[i]
        assert!(!hinted(false, |make, i| {
            let one = make.int(1);
            let (next, y) = (make.b.add(i, one), make.load(make.y, i));
            make.b.store(make.y, next, y);
        }));
        // y[0] = y[0] + x[i]
        assert!(!hinted(false, |make, i| {
            let (zero, x) = (make.int(0), make.load(make.x, i));
            make.add_to(make.y, zero, x);
        }));
        // y[A_crd[i]] = x[i]
        assert!(!hinted(false, |make, i| {
            let (x, place) = (make.load(make.x, i), make.load(make.crd, i));
            make.b.store(make.y, place, x);
        }));
    }
}
