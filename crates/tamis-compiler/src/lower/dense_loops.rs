//! Detection of dense loops over sparse operands: warnings where sparsity does not bound the
//! iteration space.
//!
//! In: a loop that the lowerer is about to emit over every coordinate of a region, and its body in
//! that region. Out: at most one warning (E0611) per access of the program, with the extent, the
//! cause and remedies. A loop is reported if a sparse operand moves with its index, the body no
//! longer reads that operand (it holds its fill value), and something is still computed that no
//! dense tensor requires. This file emits no code.
//!
//! A dense tensor requires a loop nest if it moves with every loop that the sparse operand moves
//! with: `y[j] max= A[i,j]` updates the dense `y` once per `i` in the gaps of `A`, which is more
//! than any operand stores.

use super::Lowerer;
use super::node::{Node, ReadSource, Step, Sub, WriteTarget, visit_assigns, visit_steps};
use super::region::Region;
use super::run_algebra::depends;
use std::borrow::Cow;
use tamis_ir::diag::{Code, Diagnostic};
use tamis_ir::program::{IndexId, LoopExtent, StmtId, TensorId, VarId};

/// An access to a sparse level that a loop moves along.
#[derive(Clone, Debug)]
pub(super) struct SparseAccess {
    /// [`super::node::PartialAccess::own`].
    access: u32,
    tensor: TensorId,
    stmt: StmtId,
    /// The loops without explicit bounds that its subscripts move with.
    loops: Vec<IndexId>,
}

impl Lowerer<'_> {
    /// The accesses whose sparsity can bound the loop over an index, described by their looplets.
    pub(super) fn sparse_accesses(&self, index: IndexId, body: &[Step]) -> Vec<SparseAccess> {
        let mut found: Vec<SparseAccess> = Vec::new();
        visit_live(body, &mut |node| {
            let Node::Access(access) = node else { return };
            let ReadSource::Tensor(tensor, subs) = &access.source else { return };
            let Some(sub) = subs.get(access.level) else { return };
            let sparse = self.row(*tensor, access.level).is_some_and(|row| !row.capabilities.full);
            if access.looplet.is_some() && sparse && moves(sub, index) {
                let all = (0..self.bounded.len() as u32).map(IndexId).filter(|i| !self.bounded[i.index()]);
                let loops = all.filter(|i| subs.iter().any(|sub| moves(sub, *i))).collect();
                found.push(SparseAccess { access: access.own, tensor: *tensor, stmt: access.stmt, loops });
            }
        });
        found
    }

    /// Warns if a loop over a whole region visits more coordinates than its operands store.
    pub(super) fn warn_of_dense_loop(&mut self, region: Region, body: &[Step]) {
        let index = region.index;
        let Some(first) = self.sparse_along[index.index()].first().cloned() else { return };
        if region.short || self.warned.contains(&first.access) || self.reads_any(body, index) {
            return;
        }
        if self.stores_iterations(index, &first, body) {
            return;
        }
        self.warned.push(first.access);
        let warning = self.dense_loop_warning(index, &first, body);
        self.warnings.push(self.program.origin.attach(warning));
    }

    /// True if the dense tensors of a body store as much as the loop nest visits: one of them moves
    /// with every loop that the sparse operand moves with, and every enclosing loop moves one of
    /// them.
    fn stores_iterations(&self, index: IndexId, sparse: &SparseAccess, body: &[Step]) -> bool {
        let spanned = self.dense_spans(index, body, &sparse.loops);
        let around = (0..self.indices.len() as u32).map(IndexId);
        let repeated = around
            .filter(|outer| self.indices[outer.index()].is_some() && !self.bounded[outer.index()])
            .any(|outer| !self.is_used(body, outer));
        spanned && !repeated
    }

    /// True if a body still reads one of the sparse operands along a loop: they store this region.
    fn reads_any(&self, body: &[Step], index: IndexId) -> bool {
        let sparse = &self.sparse_along[index.index()];
        let mut found = false;
        visit_live(body, &mut |node| {
            found |= matches!(node, Node::Access(a) if sparse.iter().any(|other| other.access == a.own));
        });
        found
    }

    /// True if a tensor with a dense level along a loop moves with all of some loops.
    fn dense_spans(&self, index: IndexId, body: &[Step], loops: &[IndexId]) -> bool {
        let spans = |tensor: TensorId, subs: &[Sub]| {
            let dense = subs.iter().enumerate().any(|(level, sub)| {
                moves(sub, index) && self.row(tensor, level).is_none_or(|row| row.capabilities.full)
            });
            dense && loops.iter().all(|index| subs.iter().any(|sub| moves(sub, *index)))
        };
        any_tensor(body, &spans)
    }

    /// True if a body depends on an enclosing loop.
    fn is_used(&self, body: &[Step], outer: IndexId) -> bool {
        // Elements read in enclosing loops are values by now, and no longer name their indices.
        let mut values = false;
        visit_live(body, &mut |node| values |= matches!(node, Node::Value(_)));
        values || any_tensor(body, &|_, subs| subs.iter().any(|sub| moves(sub, outer)))
    }

    fn dense_loop_warning(&self, index: IndexId, sparse: &SparseAccess, body: &[Step]) -> Diagnostic {
        let program = self.program;
        let (name, loop_name) = (&program.tensor(sparse.tensor).name, &program.indices[index.index()]);
        let fill = self.bound[sparse.tensor.index()].fill;
        let extent = match self.checked.extents.loops.get(index.index()) {
            Some(LoopExtent::Static { start, stop }) => format!("all {} coordinates", stop - start),
            _ => "every coordinate".to_string(),
        };
        let message = format!("the loop over `{loop_name}` visits {extent}, not only those that `{name}` stores");
        let mut target: Option<&WriteTarget> = None;
        visit_assigns(body, &mut |written, _| {
            target.get_or_insert(written);
        });
        let d = Diagnostic::warning(Code::E0611, message)
            .label(program.origin.stmt(sparse.stmt), format!("`{name}` is read here"))
            .note(format!("where `{name}` holds its fill value {fill}, the statement still has an effect"));
        let guard = format!("guard the statement with `{name}[...] != {fill}` if only stored elements matter");
        let Some(target) = target else { return d.help(guard) };
        let written = &program.tensor(target.tensor).name;
        let sparse_result = target.subs.iter().enumerate().any(|(level, sub)| {
            moves(sub, index) && self.row(target.tensor, level).is_some_and(|row| !row.capabilities.full)
        });
        let d = match sparse_result {
            true => d
                .note(format!("`{written}` has a sparse level there, and stores every one of these elements"))
                .help(format!("store that dimension of `{written}` as `dense`, or as runs if neighbours are equal"))
                .help(format!("or give `{written}` the fill value that these elements have, if it is a constant")),
            false => d.help(format!("store `{name}` with a fill value for which the statement has no effect")),
        };
        d.help(format!("or {guard}"))
    }
}

/// True if a predicate holds of a tensor that a body reads or writes, with its subscripts.
fn any_tensor(body: &[Step], holds: &dyn Fn(TensorId, &[Sub]) -> bool) -> bool {
    let mut found = false;
    visit_live(body, &mut |node| {
        if let Node::Access(access) = node
            && let ReadSource::Tensor(tensor, subs) = &access.source
        {
            found |= holds(*tensor, subs);
        }
    });
    visit_assigns(body, &mut |target, _| found |= holds(target.tensor, &target.subs));
    found
}

/// Visits the expressions that a body evaluates, except values of unused names.
fn visit_live(body: &[Step], visit: &mut dyn FnMut(&Node)) {
    let mut body = Cow::Borrowed(body);
    loop {
        let mut used: Vec<VarId> = Vec::new();
        visit_steps(&body, &mut |node| {
            if let Node::Var(var) = node {
                used.push(*var);
            }
        });
        let dead = |step: &Step| matches!(step, Step::Let(var, _) if !used.contains(var));
        if !any_step(&body, &dead) {
            return visit_steps(&body, &mut |node| visit(node));
        }
        drop_steps(body.to_mut(), &dead);
    }
}

fn any_step(body: &[Step], holds: &dyn Fn(&Step) -> bool) -> bool {
    body.iter().any(|step| {
        holds(step)
            || match step {
                Step::For(_, _, body) => any_step(body, holds),
                Step::If(_, then, otherwise) => any_step(then, holds) || any_step(otherwise, holds),
                _ => false,
            }
    })
}

fn drop_steps(body: &mut Vec<Step>, holds: &dyn Fn(&Step) -> bool) {
    body.retain(|step| !holds(step));
    for step in body {
        match step {
            Step::For(_, _, body) => drop_steps(body, holds),
            Step::If(_, then, otherwise) => {
                drop_steps(then, holds);
                drop_steps(otherwise, holds);
            }
            _ => {}
        }
    }
}

/// True if a subscript moves with a loop.
fn moves(sub: &Sub, index: IndexId) -> bool {
    sub.nodes().any(|node| depends(node, index))
}
