//! Difference-bound constraints: facts of the form `a <= b + c` about integers, and their
//! consequences.
//!
//! An atom is the value of an expression at a program point. An assigned variable, or an element
//! that may have been written, is a new atom afterwards; facts about the old atom stay true of the
//! old value. A sum `a + c` is the atom `a` plus a constant only if it cannot wrap.

use super::effects::WriteTimes;
use rustc_hash::FxHashMap;
use tamis_ir::DType;
use tamis_ir::algebra::{Op, Value};
use tamis_ir::kernel::{Assumption, BufferId, Expr, ExprId, Kernel, VarId};

/// An immutable integer value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct DifferenceAtom(u32);

/// The atom that is 0.
const ZERO: DifferenceAtom = DifferenceAtom(0);

/// An atom plus a constant.
#[derive(Clone, Copy, Debug)]
pub(super) struct OffsetAtom {
    atom: DifferenceAtom,
    plus: i64,
}

/// The maximum number of edges that a proof follows.
const BUDGET: usize = 200;

/// The maximum depth of a proof.
const DEEPEST: usize = 8;

/// The maximum number of expressions that a proof expands.
const LOOKS: usize = 6;

/// Arithmetic on constants beyond this bound may wrap around.
const FAR: i64 = 1 << 62;

/// A program point for rollback.
#[derive(Clone, Copy)]
pub(super) struct BoundsCheckpoint(usize, usize);

pub(super) struct DifferenceBounds {
    assumptions: Vec<Assumption>,
    /// For each atom `a`, the `b` and `c` of `a <= b + c`.
    edges: Vec<Vec<(DifferenceAtom, i64)>>,
    /// Undo log: atoms in the order in which they got an edge.
    added: Vec<DifferenceAtom>,
    /// The atom of an expression, and the time of its creation.
    atoms: FxHashMap<ExprId, (DifferenceAtom, u64)>,
    /// Undo log of `atoms`.
    before: Vec<(ExprId, Option<(DifferenceAtom, u64)>)>,
    /// Definitions of immutable variables.
    declared: FxHashMap<VarId, (ExprId, u64)>,
    /// Loaded elements of increasing buffers: the atom and the index.
    increasing: Vec<(BufferId, DifferenceAtom, OffsetAtom)>,
}

impl DifferenceBounds {
    pub(super) fn new(kernel: &Kernel) -> DifferenceBounds {
        DifferenceBounds {
            assumptions: kernel.assumptions.clone(),
            edges: vec![Vec::new()],
            added: Vec::new(),
            atoms: FxHashMap::default(),
            before: Vec::new(),
            declared: FxHashMap::default(),
            increasing: Vec::new(),
        }
    }

    pub(super) fn enter(&self) -> BoundsCheckpoint {
        BoundsCheckpoint(self.added.len(), self.before.len())
    }

    /// Rolls back to a mark.
    pub(super) fn leave(&mut self, BoundsCheckpoint(added, before): BoundsCheckpoint) {
        while self.added.len() > added {
            if let Some(atom) = self.added.pop() {
                self.edges[atom.0 as usize].pop();
            }
        }
        while self.before.len() > before {
            if let Some((id, atom)) = self.before.pop() {
                match atom {
                    Some(atom) => self.atoms.insert(id, atom),
                    None => self.atoms.remove(&id),
                };
            }
        }
    }

    // Recording facts

    fn edge(&mut self, a: DifferenceAtom, b: DifferenceAtom, c: i64) {
        if a != b && (-FAR..=FAR).contains(&c) {
            self.edges[a.0 as usize].push((b, c));
            self.added.push(a);
        }
    }

    /// `a <= b + more`
    pub(super) fn learn(&mut self, a: OffsetAtom, b: OffsetAtom, more: i64) {
        if let Some(c) = b.plus.checked_sub(a.plus).and_then(|c| c.checked_add(more)) {
            self.edge(a.atom, b.atom, c);
        }
    }

    pub(super) fn learn_equal(&mut self, a: OffsetAtom, b: OffsetAtom) {
        self.learn(a, b, 0);
        self.learn(b, a, 0);
    }

    /// Records the definition of an immutable variable.
    pub(super) fn declare(&mut self, var: VarId, value: ExprId, times: &WriteTimes) {
        self.declared.insert(var, (value, times.now));
    }

    /// The current value of an `i64` expression as a term.
    pub(super) fn term(&mut self, kernel: &Kernel, times: &WriteTimes, id: ExprId) -> OffsetAtom {
        match kernel.expr(id) {
            Expr::Const(Value::I64(value)) => return OffsetAtom { atom: ZERO, plus: *value },
            Expr::Call(op @ (Op::Add | Op::Sub), DType::I64, operands) => {
                if let [base, constant] = operands[..]
                    && let Expr::Const(Value::I64(constant)) = kernel.expr(constant)
                    && kernel.exprs.dtype(base) == DType::I64
                    && (-FAR..=FAR).contains(constant)
                {
                    let constant = if *op == Op::Sub { -constant } else { *constant };
                    let base = self.term(kernel, times, base);
                    if let Some(plus) = base.plus.checked_add(constant)
                        && self.cannot_wrap(base, constant)
                    {
                        return OffsetAtom { atom: base.atom, plus };
                    }
                }
            }
            _ => {}
        }
        OffsetAtom { atom: self.atom(kernel, times, id), plus: 0 }
    }

    /// True if adding a constant cannot wrap around.
    fn cannot_wrap(&self, term: OffsetAtom, constant: i64) -> bool {
        if constant < 0 {
            // term >= -FAR is enough
            return self.reaches(ZERO, term.atom, term.plus.saturating_add(FAR));
        }
        if self.reaches(term.atom, ZERO, FAR.saturating_sub(term.plus)) {
            return true;
        }
        // Another i64 value is larger by at least as much, so the sum is representable.
        let headroom = -constant.saturating_add(term.plus);
        self.edges[term.atom.0 as usize].iter().any(|(_, c)| *c <= headroom)
    }

    fn atom(&mut self, kernel: &Kernel, times: &WriteTimes, id: ExprId) -> DifferenceAtom {
        if let Some((atom, at)) = self.atoms.get(&id)
            && times.unchanged(kernel, id, *at)
        {
            return *atom;
        }
        let atom = DifferenceAtom(self.edges.len() as u32);
        self.edges.push(Vec::new());
        let before = self.atoms.insert(id, (atom, times.now));
        self.before.push((id, before));
        self.describe(kernel, times, id, atom);
        atom
    }

    /// Records facts that hold unconditionally for a value.
    fn describe(&mut self, kernel: &Kernel, times: &WriteTimes, id: ExprId, atom: DifferenceAtom) {
        let own = OffsetAtom { atom, plus: 0 };
        let zero = OffsetAtom { atom: ZERO, plus: 0 };
        match kernel.expr(id) {
            Expr::Load(buffer, index) => {
                if kernel.buffer(*buffer).elem.is_index() {
                    self.learn(zero, own, 0);
                }
                for fact in self.assumptions.clone() {
                    match fact {
                        Assumption::Below { buffer: other, bound } if other == *buffer => {
                            let bound = self.term(kernel, times, bound);
                            self.learn(own, bound, -1);
                        }
                        Assumption::Nondecreasing(other) if other == *buffer => {
                            let index = self.term(kernel, times, *index);
                            self.learn_increasing(*buffer, atom, index);
                        }
                        _ => {}
                    }
                }
            }
            Expr::Call(Op::Min | Op::Max, DType::I64, operands) => {
                let least = matches!(kernel.expr(id), Expr::Call(Op::Min, ..));
                for operand in operands.clone() {
                    if kernel.exprs.dtype(operand) == DType::I64 {
                        let operand = self.term(kernel, times, operand);
                        if least { self.learn(own, operand, 0) } else { self.learn(operand, own, 0) }
                    }
                }
            }
            Expr::Call(Op::Mod, DType::I64, operands) => {
                if let Expr::Const(Value::I64(divisor)) = kernel.expr(operands[1])
                    && *divisor > 0
                {
                    self.learn(zero, own, 0);
                    self.learn(own, zero, *divisor - 1);
                }
            }
            Expr::Call(Op::Cast(DType::I64), from, operands) => {
                let from =
                    if kernel.exprs.dtype(operands[0]) == *from { *from } else { kernel.exprs.dtype(operands[0]) };
                if from == DType::Bool || from.is_unsigned_int() && from != DType::U64 {
                    self.learn(zero, own, 0);
                    self.learn(own, zero, u32::MAX.into());
                }
            }
            _ => {}
        }
    }

    /// Orders the elements of an increasing buffer by their indices.
    fn learn_increasing(&mut self, buffer: BufferId, atom: DifferenceAtom, index: OffsetAtom) {
        let known: Vec<(DifferenceAtom, OffsetAtom)> =
            self.increasing.iter().rev().filter(|(b, ..)| *b == buffer).take(4).map(|(_, a, i)| (*a, *i)).collect();
        for (other, at) in known {
            if at.atom == index.atom {
                let (low, high) = if at.plus <= index.plus { (other, atom) } else { (atom, other) };
                self.edge(low, high, 0);
            }
        }
        self.increasing.push((buffer, atom, index));
    }

    // Proofs

    /// True if `a <= b + c` follows.
    fn reaches(&self, a: DifferenceAtom, b: DifferenceAtom, c: i64) -> bool {
        self.search(a, b, c, DEEPEST, &mut { BUDGET })
    }

    fn search(&self, a: DifferenceAtom, b: DifferenceAtom, c: i64, depth: usize, budget: &mut usize) -> bool {
        if a == b && c >= 0 {
            return true;
        }
        if depth == 0 || *budget == 0 {
            return false;
        }
        *budget -= 1;
        // Recent facts are most likely to be relevant.
        self.edges[a.0 as usize]
            .iter()
            .rev()
            .any(|(next, step)| c.checked_sub(*step).is_some_and(|rest| self.search(*next, b, rest, depth - 1, budget)))
    }

    /// True if `a + more <= b` for the current values of `i64` expressions.
    pub(super) fn at_most(&mut self, kernel: &Kernel, times: &WriteTimes, a: ExprId, b: ExprId, more: i64) -> bool {
        self.looks(kernel, times, a, b, more, LOOKS)
    }

    fn looks(&mut self, kernel: &Kernel, times: &WriteTimes, a: ExprId, b: ExprId, more: i64, depth: usize) -> bool {
        let (x, y) = (self.term(kernel, times, a), self.term(kernel, times, b));
        let rest = y.plus.checked_sub(x.plus).and_then(|c| c.checked_sub(more));
        if rest.is_some_and(|c| self.reaches(x.atom, y.atom, c)) {
            return true;
        }
        if depth == 0 {
            return false;
        }
        // A minimum is bounded above by any operand, and below only by a bound of all operands.
        if let Some((op, operands)) = self.extreme(kernel, times, a) {
            let mut each = operands.iter().map(|e| self.looks(kernel, times, *e, b, more, depth - 1));
            let holds = if op == Op::Min { each.any(|holds| holds) } else { each.all(|holds| holds) };
            if holds {
                return true;
            }
        }
        if let Some((op, operands)) = self.extreme(kernel, times, b) {
            let mut each = operands.iter().map(|e| self.looks(kernel, times, a, *e, more, depth - 1));
            return if op == Op::Min { each.all(|holds| holds) } else { each.any(|holds| holds) };
        }
        false
    }

    /// The definition of a name, if it is still valid; any other expression is its own.
    pub(super) fn meaning(&self, kernel: &Kernel, times: &WriteTimes, id: ExprId) -> ExprId {
        let Expr::Var(var) = kernel.expr(id) else { return id };
        match self.declared.get(var) {
            Some((value, at)) if times.unchanged(kernel, *value, *at) => *value,
            _ => id,
        }
    }

    /// The operands of `min` and `max`, looking through names.
    fn extreme(&self, kernel: &Kernel, times: &WriteTimes, id: ExprId) -> Option<(Op, Vec<ExprId>)> {
        match kernel.expr(self.meaning(kernel, times, id)) {
            Expr::Call(op @ (Op::Min | Op::Max), DType::I64, operands)
                if operands.iter().all(|e| kernel.exprs.dtype(*e) == DType::I64) =>
            {
                Some((*op, operands.clone()))
            }
            _ => None,
        }
    }
}
