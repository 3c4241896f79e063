//! Detection of dense loops over sparse operands: warnings where sparsity does not bound the
//! iteration space.
//!
//! In: a loop that the lowerer is about to emit over every coordinate of a region, and its body in
//! that region. Out: at most one warning (E0611) per access of the program, with the extent, the
//! cause and remedies. A loop is reported if a sparse operand moves with its index, the body no
//! longer reads that operand (it holds its fill value), and something is still computed that no
//! dense tensor requires. A loop is also reported if it reads a sparse operand by random access
//! only, as `A[i, j % 3]` does, and nothing else bounds it. This file emits no code.
//!
//! A dense tensor requires a loop nest if it moves with every loop that the sparse operand moves
//! with: `y[j] max= A[i,j]` updates the dense `y` once per `i` in the gaps of `A`, which is more
//! than any operand stores.

use super::Lowerer;
use super::assign::declared;
use super::bind::{BoundStorage, is_grouped};
use super::node::{Node, PartialAccess, ReadSource, Step, Sub, WriteTarget, visit_assigns, visit_steps};
use super::region::Region;
use super::run_algebra::depends;
use std::borrow::Cow;
use tamis_ir::diag::{Code, Diagnostic};
use tamis_ir::looplet::Looplet;
use tamis_ir::program::{IndexId, LoopExtent, Protocol, StmtId, TensorId, VarId};

/// Windows of fewer coordinates are no reason for a warning.
const WIDE: u64 = 16;

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

/// The reason why a loop searches a sparse level instead of following it.
#[derive(Clone, Copy)]
enum SearchCause {
    /// The subscript is not affine.
    Subscript,
    /// The level groups equal coordinates.
    Groups,
    /// The loop would be split into too many parts.
    Copies,
}

impl Lowerer<'_> {
    /// The accesses whose sparsity can bound the loop over an index, described by their looplets.
    pub(super) fn sparse_accesses(&self, index: IndexId, body: &[Step]) -> Vec<SparseAccess> {
        let mut found: Vec<SparseAccess> = Vec::new();
        visit_live(body, &mut |node| {
            let Node::Access(access) = node else { return };
            let ReadSource::Tensor(tensor, subs) = &access.source else { return };
            let level = walked_level(access);
            let Some(sub) = subs.get(level) else { return };
            let sparse = self.row(*tensor, level).is_some_and(|row| !row.capabilities.full);
            let leads = access.looplet.as_ref().is_some_and(|looplet| !looplet.is_lookup());
            if leads && sparse && moves(sub, index) {
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
        if region.short {
            return;
        }
        // Operands that still have structure here would bound the loop, unless the rest is busy.
        let mut structured: Vec<u32> = Vec::new();
        visit_live(body, &mut |node| {
            if let Node::Access(access) = node
                && access.looplet.as_ref().is_some_and(|looplet| !looplet.is_lookup())
            {
                structured.push(access.id);
            }
        });
        let rest: Vec<Step> = match structured.is_empty() {
            true => body.to_vec(),
            false => self.without(body, &structured),
        };
        let body = &rest[..];
        if body.is_empty() || self.reads_any(body, index) || (!structured.is_empty() && self.collapses(index, body)) {
            return;
        }
        if let Some((searched, cause)) = self.searched_access(index, body) {
            self.warned.push(searched.access);
            let warning = self.searched_loop_warning(index, &searched, cause);
            return self.warnings.push(self.program.origin.attach(warning));
        }
        let along = self.sparse_along[index.index()].first().cloned();
        let (first, is_read) = match along {
            Some(first) => (first, true),
            None => match self.unread_access(index, body) {
                Some(unread) => (unread, false),
                None => return,
            },
        };
        if self.warned.contains(&first.access) || self.stores_iterations(index, &first, body) {
            return;
        }
        self.warned.push(first.access);
        let warning = match is_read {
            true => self.dense_loop_warning(index, &first, body),
            false => self.unread_loop_warning(index, &first),
        };
        self.warnings.push(self.program.origin.attach(warning));
    }

    /// Records the accesses that simplification of the whole program removed, as the one in
    /// `0 * A[i]`.
    pub(super) fn record_unread(&mut self, before: &[Step], after: &[Step]) {
        let mut left: Vec<u32> = Vec::new();
        visit_live(after, &mut |node| {
            if let Node::Access(access) = node {
                left.push(access.own);
            }
        });
        let mut unread: Vec<PartialAccess> = Vec::new();
        visit_steps(before, &mut |node| {
            if let Node::Access(access) = node
                && !left.contains(&access.own)
            {
                unread.push((**access).clone());
            }
        });
        self.unread = unread;
    }

    /// A sparse access that a loop would move along, if simplification had not removed it from the
    /// statements of its body.
    fn unread_access(&self, index: IndexId, body: &[Step]) -> Option<SparseAccess> {
        let (mut written, mut stmts) = (declared(body), Vec::new());
        visit_assigns(body, &mut |target, _| {
            written.push(target.tensor);
            stmts.push(target.stmt);
        });
        self.unread.iter().find_map(|access| {
            let ReadSource::Tensor(tensor, subs) = &access.source else { return None };
            let level = subs.iter().position(|sub| moves(sub, index) && sub.protocol != Some(Protocol::Follow))?;
            let sparse = self.row(*tensor, level).is_some_and(|row| !row.capabilities.full);
            let all = (0..self.bounded.len() as u32).map(IndexId).filter(|i| !self.bounded[i.index()]);
            let loops = all.filter(|i| subs.iter().any(|sub| moves(sub, *i))).collect();
            (sparse && stmts.contains(&access.stmt) && !written.contains(tensor)).then_some(SparseAccess {
                access: access.own,
                tensor: *tensor,
                stmt: access.stmt,
                loops,
            })
        })
    }

    /// An access to a sparse level that a loop moves along by random access only, unless a dense
    /// tensor moves with all loops that lead there; and the cause.
    fn searched_access(&self, index: IndexId, body: &[Step]) -> Option<(SparseAccess, SearchCause)> {
        let mut written = declared(body);
        visit_assigns(body, &mut |target, _| written.push(target.tensor));
        let mut found: Option<(SparseAccess, SearchCause)> = None;
        visit_live(body, &mut |node| {
            let Node::Access(access) = node else { return };
            let ReadSource::Tensor(tensor, subs) = &access.source else { return };
            let Some(sub) = subs.get(access.level).filter(|sub| moves(sub, index)) else { return };
            let searched = matches!(access.looplet, None | Some(Looplet::Lookup))
                && sub.protocol != Some(Protocol::Follow)
                && self.row(*tensor, access.level).is_some_and(|row| !row.capabilities.full)
                && !written.contains(tensor)
                && ![access.id, access.own].iter().any(|id| self.warned.contains(id));
            if !searched || found.is_some() {
                return;
            }
            let all = (0..self.bounded.len() as u32).map(IndexId);
            let loops = all.filter(|i| subs[..=access.level].iter().any(|sub| moves(sub, *i))).collect();
            let cause = match &self.bound[tensor.index()].storage {
                _ if !self.is_affine(&sub.node) => SearchCause::Subscript,
                BoundStorage::Levels { format, .. } if is_grouped(format, access.level) => SearchCause::Groups,
                _ => SearchCause::Copies,
            };
            found = Some((SparseAccess { access: access.own, tensor: *tensor, stmt: access.stmt, loops }, cause));
        });
        found.filter(|(access, _)| !self.stores_iterations(index, access, body))
    }

    /// Warns of windows that cover much of a tensor, if another sparse operand stores few of their
    /// coordinates: the loop over windows knows nothing of it.
    pub(super) fn warn_of_wide_windows(&mut self, index: IndexId, body: &[Step]) {
        let mut found: Option<(PartialAccess, PartialAccess, IndexId, u64)> = None;
        let mut reads: Vec<PartialAccess> = Vec::new();
        visit_live(body, &mut |node| {
            if let Node::Access(access) = node
                && matches!(access.source, ReadSource::Tensor(..))
            {
                reads.push((**access).clone());
            }
        });
        for access in reads.iter().filter(|access| access.looplet.as_ref().is_some_and(Looplet::is_window)) {
            let ReadSource::Tensor(tensor, subs) = &access.source else { continue };
            let level = walked_level(access);
            let Some(sub) = subs.get(level).filter(|sub| moves(sub, index)) else { continue };
            let sparse = self.row(*tensor, level).is_some_and(|row| !row.capabilities.full);
            let (Some(inner), true) = (self.open_index(sub, index), sparse) else { continue };
            let Some(LoopExtent::Static { start, stop }) = self.checked.extents.loops.get(inner.index()) else {
                continue;
            };
            let (width, size) =
                ((stop - start).max(0) as u64, self.checked.extents.shapes[tensor.index()].get(sub.dim).copied());
            if width < WIDE || size.is_none_or(|size| width.saturating_mul(4) < size) {
                continue;
            }
            let other = reads.iter().find(|other| match &other.source {
                ReadSource::Tensor(tensor, subs) if other.own != access.own => {
                    subs.iter().enumerate().skip(other.level).any(|(level, sub)| {
                        sub.node == Node::Index(inner)
                            && self.row(*tensor, level).is_some_and(|row| !row.capabilities.full)
                    })
                }
                _ => false,
            });
            if let Some(other) = other.filter(|_| !self.warned.contains(&access.own)) {
                found = Some((access.clone(), other.clone(), inner, width));
            }
        }
        let Some((access, other, inner, width)) = found else { return };
        if !self.idle_without(body, &[other.id]) {
            return;
        }
        let (ReadSource::Tensor(tensor, _), ReadSource::Tensor(filter, _)) = (&access.source, &other.source) else {
            return;
        };
        self.warned.push(access.own);
        let program = self.program;
        let (name, filter) = (&program.tensor(*tensor).name, &program.tensor(*filter).name);
        let (index, inner) = (&program.indices[index.index()], &program.indices[inner.index()]);
        let message = format!(
            "the loop over `{index}` visits every window of `{name}` that stores an element, and windows are {width} coordinates wide"
        );
        let d = Diagnostic::warning(Code::E0611, message)
            .label(program.origin.stmt(access.stmt), format!("`{name}` is read here"))
            .note(format!("`{filter}` is sparse along `{inner}`, too, but only the inner loop follows it"))
            .help(
                "loop over the stored elements of both, and compute the coordinate of the result: `O[i] += A[i+k] * F[k]` is `O[~(x-k)] += A[x] * F[k]`, with loops over `k` and `x`",
            );
        self.warnings.push(program.origin.attach(d));
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

    fn searched_loop_warning(&self, index: IndexId, sparse: &SparseAccess, cause: SearchCause) -> Diagnostic {
        let program = self.program;
        let name = &program.tensor(sparse.tensor).name;
        let d = Diagnostic::warning(Code::E0611, self.extent_message(index, sparse.tensor))
            .label(program.origin.stmt(sparse.stmt), format!("`{name}` is read here"));
        let d = match cause {
            SearchCause::Subscript => d
                .note(format!(
                    "a subscript of `{name}` is not a sum of multiples of loop indices, so each element is searched for"
                ))
                .help(format!(
                    "loop over the coordinates of `{name}` and compute the others from them: instead of `A[j % 8]` with `j in range(16)`, write `A[k]` and `j = k + 8*m` with `m in range(2)`"
                )),
            SearchCause::Groups => d
                .note(format!(
                    "`{name}` lists a coordinate once for each of its elements, and the subscript has a stride, so each one is searched for"
                ))
                .help(format!("store `{name}` with a `sparse` or `dense` level there, as `dcsr` and `csr` do")),
            SearchCause::Copies => d
                .note(format!(
                    "the loop has too many parts to follow what `{name}` stores, so each element is searched for"
                ))
                .help("split the statement, so that each one has fewer shifted reads and comparisons"),
        };
        d.help(format!(
            "or store that dimension of `{name}` as `dense`, or write `follow(...)` if the search is intended"
        ))
    }

    fn unread_loop_warning(&self, index: IndexId, sparse: &SparseAccess) -> Diagnostic {
        let program = self.program;
        let name = &program.tensor(sparse.tensor).name;
        let fill = self.bound[sparse.tensor.index()].fill;
        Diagnostic::warning(Code::E0611, self.extent_message(index, sparse.tensor))
            .label(program.origin.stmt(sparse.stmt), format!("`{name}` is read here"))
            .note(format!(
                "the value does not depend on `{name}`, as `0 * {name}[...]` does not, so nothing bounds the loop"
            ))
            .help(format!("guard the statement with `{name}[...] != {fill}` if only stored elements matter"))
            .help("or write a constant to a tensor with that fill value, or to runs")
    }

    /// The first line of a warning.
    fn extent_message(&self, index: IndexId, tensor: TensorId) -> String {
        let (name, loop_name) = (&self.program.tensor(tensor).name, &self.program.indices[index.index()]);
        let extent = match self.checked.extents.loops.get(index.index()) {
            Some(LoopExtent::Static { start, stop }) => format!("all {} coordinates", stop - start),
            _ => "every coordinate".to_string(),
        };
        format!("the loop over `{loop_name}` visits {extent}, not only those that `{name}` stores")
    }

    fn dense_loop_warning(&self, index: IndexId, sparse: &SparseAccess, body: &[Step]) -> Diagnostic {
        let program = self.program;
        let name = &program.tensor(sparse.tensor).name;
        let fill = self.bound[sparse.tensor.index()].fill;
        let mut target: Option<&WriteTarget> = None;
        visit_assigns(body, &mut |written, _| {
            target.get_or_insert(written);
        });
        let d = Diagnostic::warning(Code::E0611, self.extent_message(index, sparse.tensor))
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

/// The level that a loop walks along.
fn walked_level(access: &PartialAccess) -> usize {
    match &access.looplet {
        Some(Looplet::Fibers { level, .. }) => *level,
        _ => access.level,
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
