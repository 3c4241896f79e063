//! Dead code elimination and dead store elimination.
//!
//! Roots are outputs, failures and exits. A statement is live if a live statement reads its result
//! or if it controls a live statement; writes to scratch memory that no live statement reads are
//! removed. An assignment that is overwritten before it is read is removed, and so is a store to an
//! element that is stored again first. A declaration moves to its first live assignment; a variable
//! that is never assigned afterwards becomes a constant.

use super::effects::Effects;
use super::index_facts::IndexFacts;
use super::{Editor, Options};
use tamis_ir::Value;
use tamis_ir::kernel::{Block, BufferId, Expr, ExprId, Kernel, LabelId, Role, Stmt, VarId};

/// The number of statements searched for the assignment that a declaration can sink to.
const NEAR: usize = 64;

pub(super) fn run(kernel: Kernel, options: &Options) -> Kernel {
    let needed = Liveness::of(&kernel);
    let (editor, mut body) = Editor::new(kernel, options);
    sweep(&mut body, &mut needed.iter().copied());
    let vars = editor.kernel().vars.len();
    let known = IndexFacts::of(editor.kernel(), &body);
    let mut pass = DeadStores { editor, known, labels: Vec::new(), overwritten: Vec::new() };
    let body = pass.block(body, &mut VarSet::new(vars));
    let mut editor = pass.editor;
    let mut assigned = vec![false; vars];
    body.iter().for_each(|stmt| {
        stmt.visit(&mut |stmt| {
            if let Stmt::Assign { var, .. } = stmt {
                assigned[var.index()] = true;
            }
        });
    });
    for (k, assigned) in assigned.into_iter().enumerate() {
        editor.set_mutable(VarId(k as u32), assigned);
    }
    editor.finish(body)
}

// Liveness of statements

/// A statement in the liveness analysis.
struct LivenessNode {
    parent: Option<usize>,
    exprs: Vec<ExprId>,
    scans: Vec<BufferId>,
    needed: bool,
}

#[derive(Default)]
struct Liveness {
    nodes: Vec<LivenessNode>,
    /// Statements that declare or assign each variable.
    definitions: Vec<Vec<usize>>,
    /// Statements that write each buffer.
    writers: Vec<Vec<usize>>,
    seen: Vec<bool>,
    open: Vec<usize>,
}

impl Liveness {
    /// The liveness of each statement, in preorder.
    fn of(kernel: &Kernel) -> Vec<bool> {
        let mut search = Liveness {
            definitions: vec![Vec::new(); kernel.vars.len()],
            writers: vec![Vec::new(); kernel.buffers.len()],
            seen: vec![false; kernel.exprs.len()],
            ..Liveness::default()
        };
        search.collect(kernel, &kernel.body, None);
        while let Some(node) = search.open.pop() {
            if std::mem::replace(&mut search.nodes[node].needed, true) {
                continue;
            }
            search.open.extend(search.nodes[node].parent);
            for buffer in std::mem::take(&mut search.nodes[node].scans) {
                search.read(buffer);
            }
            let mut exprs = std::mem::take(&mut search.nodes[node].exprs);
            while let Some(id) = exprs.pop() {
                if std::mem::replace(&mut search.seen[id.index()], true) {
                    continue;
                }
                match kernel.expr(id) {
                    Expr::Const(_) => {}
                    Expr::Var(var) => search.open.append(&mut search.definitions[var.index()]),
                    Expr::Load(buffer, index) => {
                        search.read(*buffer);
                        exprs.push(*index);
                    }
                    Expr::Call(_, _, operands) => exprs.extend(operands),
                    Expr::Vector(vector) => {
                        vector.buffer().into_iter().for_each(|buffer| search.read(buffer));
                        exprs.extend(vector.operands());
                    }
                }
            }
        }
        search.nodes.iter().map(|node| node.needed).collect()
    }

    fn read(&mut self, buffer: BufferId) {
        self.open.append(&mut self.writers[buffer.index()]);
    }

    fn collect(&mut self, kernel: &Kernel, block: &Block, parent: Option<usize>) {
        for stmt in block {
            let number = self.nodes.len();
            let mut exprs = Vec::new();
            stmt.each_expr(|id| exprs.push(id));
            let node = LivenessNode { parent, exprs, scans: stmt.scans().collect(), needed: false };
            if let Some(var) = stmt.declares() {
                self.definitions[var.index()].push(number);
            }
            match stmt {
                Stmt::Assign { var, .. } => self.definitions[var.index()].push(number),
                Stmt::Require { .. } | Stmt::Break(_) | Stmt::Barrier | Stmt::Prefetch { .. } => self.open.push(number),
                _ => {}
            }
            for buffer in stmt.writes() {
                self.writers[buffer.index()].push(number);
                if kernel.buffer(buffer).role == Role::Output {
                    self.open.push(number);
                }
            }
            self.nodes.push(node);
            stmt.blocks().for_each(|inner| self.collect(kernel, inner, Some(number)));
        }
    }
}

fn sweep(block: &mut Block, needed: &mut impl Iterator<Item = bool>) {
    block.retain_mut(|stmt| {
        let keep = needed.next().unwrap_or(true);
        // A dead statement contains no live one; its ids are consumed all the same.
        for inner in stmt.blocks_mut() {
            sweep(inner, needed);
        }
        keep
    });
}

// Dead stores

/// A set of variables.
#[derive(Clone)]
struct VarSet(Vec<u64>);

impl VarSet {
    fn new(vars: usize) -> VarSet {
        VarSet(vec![0; vars.div_ceil(64)])
    }

    fn insert(&mut self, var: VarId) {
        self.0[var.index() / 64] |= 1 << (var.index() % 64);
    }

    fn remove(&mut self, var: VarId) -> bool {
        let had = self.contains(var);
        self.0[var.index() / 64] &= !(1 << (var.index() % 64));
        had
    }

    fn contains(&self, var: VarId) -> bool {
        self.0[var.index() / 64] & 1 << (var.index() % 64) != 0
    }

    fn extend(&mut self, other: &VarSet) {
        self.0.iter_mut().zip(&other.0).for_each(|(a, b)| *a |= b);
    }
}

struct DeadStores {
    editor: Editor,
    known: IndexFacts,
    /// The live-out variables of each labelled block.
    labels: Vec<(LabelId, VarSet)>,
    /// Elements that are overwritten before they are read.
    overwritten: Vec<(BufferId, ExprId)>,
}

impl DeadStores {
    /// Removes dead assignments of a block. `live`: live-out variables on entry, live-in variables
    /// on return.
    fn block(&mut self, block: Block, live: &mut VarSet) -> Block {
        // Backward walk: the last statement first.
        let mut out: Block = Vec::with_capacity(block.len());
        for stmt in block.into_iter().rev() {
            self.stmt(stmt, live, &mut out);
        }
        out.reverse();
        out
    }

    fn stmt(&mut self, mut stmt: Stmt, live: &mut VarSet, out: &mut Block) {
        match &mut stmt {
            Stmt::Let { var, .. } => {
                if !live.remove(*var) {
                    if let Some(declaration) = self.declaration_without_value(*var, out) {
                        self.define(*var);
                        out.push(declaration);
                    }
                    return;
                }
                self.define(*var);
            }
            Stmt::Assign { var, .. } => {
                if !live.remove(*var) {
                    return;
                }
                self.define(*var);
            }
            Stmt::Store { buffer, index, .. } => {
                if self.overwritten.contains(&(*buffer, *index)) {
                    return;
                }
                self.write(*buffer);
                self.overwritten.push((*buffer, *index));
            }
            Stmt::Fill { buffer, .. } | Stmt::MaskedStore { buffer, .. } => self.write(*buffer),
            Stmt::Update { buffer, .. } => {
                self.read(*buffer);
                self.write(*buffer);
            }
            // Other threads read what was stored before a barrier.
            Stmt::Barrier => self.overwritten.clear(),
            Stmt::Sort { buffer, flags, .. } => {
                self.read(*buffer);
                flags.iter().for_each(|flags| self.read(*flags));
                self.write(*buffer);
            }
            Stmt::Gemm(_) => {
                for buffer in stmt.scans() {
                    self.read(buffer);
                }
                stmt.writes().for_each(|buffer| self.write(buffer));
            }
            Stmt::Reset { .. } | Stmt::Insert { .. } | Stmt::Finalize { .. } => {
                if let Some(var) = stmt.declares() {
                    live.remove(var);
                    self.define(var);
                }
                for buffer in stmt.scans() {
                    self.read(buffer);
                    self.write(buffer);
                }
            }
            Stmt::Search { var, buffer, .. } => {
                let (var, buffer) = (*var, *buffer);
                live.remove(var);
                self.define(var);
                self.read(buffer);
            }
            Stmt::For { var, body, .. } => {
                let var = *var;
                *body = self.body(std::mem::take(body), None, live);
                live.remove(var);
                self.define(var);
            }
            Stmt::While { cond, body } => {
                let cond = *cond;
                *body = self.body(std::mem::take(body), Some(cond), live);
            }
            Stmt::If { then, otherwise, .. } => {
                let overwritten = self.overwritten.clone();
                let mut other = live.clone();
                *then = self.block(std::mem::take(then), live);
                let after_then = std::mem::replace(&mut self.overwritten, overwritten);
                *otherwise = self.block(std::mem::take(otherwise), &mut other);
                self.overwritten.retain(|element| after_then.contains(element));
                live.extend(&other);
                if then.is_empty() && otherwise.is_empty() {
                    return;
                }
            }
            Stmt::Labelled { label, body } => {
                self.labels.push((*label, live.clone()));
                *body = self.block(std::mem::take(body), live);
                self.labels.pop();
            }
            Stmt::Break(label) => {
                if let Some((_, after)) = self.labels.iter().rfind(|(known, _)| known == label) {
                    *live = after.clone();
                }
                self.overwritten.clear();
            }
            Stmt::Grow { .. } | Stmt::Require { .. } | Stmt::Prefetch { .. } => {}
        }
        stmt.each_expr(|id| self.evaluate(id, live));
        out.push(stmt);
    }

    /// The body of a loop: its reads are live at the back edge, too.
    fn body(&mut self, body: Block, cond: Option<ExprId>, live: &mut VarSet) -> Block {
        let effects = Effects::of(&body);
        let mut again = live.clone();
        let mut read = Vec::new();
        let kernel = self.editor.kernel();
        let mut look = |id: ExprId| {
            kernel.visit_expr(id, &mut |expr| match expr {
                Expr::Var(var) => again.insert(*var),
                Expr::Load(buffer, index) => read.push((*buffer, Some(*index))),
                _ => {}
            });
        };
        cond.into_iter().for_each(&mut look);
        body.iter().for_each(|stmt| {
            stmt.visit(&mut |stmt| {
                stmt.each_expr(&mut look);
            });
        });
        body.iter().for_each(|stmt| {
            stmt.visit(&mut |stmt| {
                read.extend(stmt.scans().map(|buffer| (buffer, None)));
            });
        });
        for var in &effects.declared {
            again.remove(*var);
        }
        // An element that is overwritten after the loop is dead before it, if the loop does not
        // access it.
        let mut after = std::mem::take(&mut self.overwritten);
        let (kernel, known) = (self.editor.kernel(), &self.known);
        let other = |read: Option<ExprId>, index: ExprId| {
            read.is_some_and(|read| known.is_below(kernel, known.meaning(kernel, read), index))
        };
        after.retain(|(buffer, index)| {
            read.iter().all(|(here, read)| here != buffer || other(*read, *index))
                && !effects.touch(kernel, *index)
                && effects.left.is_empty()
        });
        let body = self.block(body, &mut again);
        self.overwritten = after;
        live.extend(&again);
        body
    }

    fn evaluate(&mut self, id: ExprId, live: &mut VarSet) {
        let overwritten = &mut self.overwritten;
        self.editor.kernel().visit_expr(id, &mut |expr| match expr {
            Expr::Var(var) => live.insert(*var),
            Expr::Load(buffer, _) => overwritten.retain(|(other, _)| other != buffer),
            _ => {}
        });
    }

    fn read(&mut self, buffer: BufferId) {
        self.overwritten.retain(|(other, _)| *other != buffer);
    }

    /// Records an assignment: before it, an index that uses the variable denotes a different
    /// element.
    fn define(&mut self, var: VarId) {
        let kernel = self.editor.kernel();
        self.overwritten.retain(|(_, index)| {
            let mut names = false;
            kernel.visit_expr(*index, &mut |expr| names |= *expr == Expr::Var(var));
            !names
        });
    }

    /// Records a write to a buffer: before it, an index loaded from the buffer denotes a different
    /// element.
    fn write(&mut self, buffer: BufferId) {
        let kernel = self.editor.kernel();
        self.overwritten.retain(|(_, index)| {
            let mut reads = false;
            kernel.visit_expr(*index, &mut |expr| reads |= matches!(expr, Expr::Load(other, _) if *other == buffer));
            !reads
        });
    }

    /// The declaration of a variable whose initial value is never read, if it cannot sink to a
    /// later assignment. `later`: the statements after it, in reverse order.
    fn declaration_without_value(&mut self, var: VarId, later: &mut Block) -> Option<Stmt> {
        let kernel = self.editor.kernel();
        for stmt in later.iter_mut().rev().take(NEAR) {
            if !mentions(kernel, stmt, var) {
                continue;
            }
            if let Stmt::Assign { var: assigned, value } = stmt
                && *assigned == var
            {
                *stmt = Stmt::Let { var, value: *value };
                return None;
            }
            let zero = Value::zero(kernel.var(var).dtype);
            return Some(Stmt::Let { var, value: self.editor.constant(zero) });
        }
        if later.len() <= NEAR {
            return None;
        }
        let zero = Value::zero(kernel.var(var).dtype);
        Some(Stmt::Let { var, value: self.editor.constant(zero) })
    }
}

/// True if a statement, nested ones included, uses a variable.
fn mentions(kernel: &Kernel, stmt: &Stmt, var: VarId) -> bool {
    let mut found = false;
    stmt.visit(&mut |stmt| {
        found |= matches!(stmt, Stmt::Assign { var: other, .. } if *other == var);
        stmt.each_expr(|id| kernel.visit_expr(id, &mut |expr| found |= *expr == Expr::Var(var)));
    });
    found
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Make, after};
    use super::*;
    use tamis_ir::algebra::Op;

    #[test]
    fn unread_scratch() {
        let mut make = Make::new();
        let (zero, n, value) = (make.int(0), make.n, make.float(1.0));
        make.b.emit(Stmt::Grow { buffer: make.w, len: n, fill: None });
        make.count("i", zero, n, |make, i| make.add_to(make.w, i, value));
        make.count("j", zero, n, |make, j| make.b.store(make.y, j, value));
        assert_eq!(after(&[run], make), ["for j in 0..n", "    y[j] = 1.0"]);
    }

    #[test]
    fn declarations_move_to_the_value_that_matters() {
        let mut make = Make::new();
        let value = make.b.variable("value", Value::F64(0.0));
        let (zero, other) = (make.int(0), make.b.variable("other", Value::F64(0.0)));
        let x = make.load(make.x, zero);
        make.b.assign(other, x);
        make.b.assign(value, x);
        let sum = make.b.get(value);
        make.b.store(make.y, zero, sum);
        assert_eq!(after(&[run], make), ["let value: f64 = x[0]", "y[0] = value"]);
    }

    #[test]
    fn stores_that_are_overwritten() {
        let mut make = Make::new();
        let (zero, n, nothing) = (make.int(0), make.n, make.float(0.0));
        make.b.store(make.y, n, nothing);
        let sum = make.b.variable("sum", Value::F64(0.0));
        make.count("i", zero, n, |make, i| {
            let (so_far, x) = (make.b.get(sum), make.load(make.x, i));
            let more = make.call(Op::Add, &[so_far, x]);
            make.b.assign(sum, more);
        });
        let total = make.b.get(sum);
        make.b.store(make.y, n, total);
        let expected = ["var sum: f64 = 0.0", "for i in 0..n", "    sum = sum + x[i]", "y[n] = sum"];
        assert_eq!(after(&[run], make), expected);
    }

    #[test]
    fn stores_that_may_be_seen_stay() {
        let mut make = Make::new();
        let (zero, n, one) = (make.int(0), make.n, make.float(1.0));
        make.b.store(make.y, n, one);
        let seen = make.load(make.y, zero);
        make.b.store(make.y, n, seen);
        assert_eq!(after(&[run], make), ["y[n] = 1.0", "y[n] = y[0]"]);
    }
}
