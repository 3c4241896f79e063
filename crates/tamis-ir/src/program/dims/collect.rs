//! Collection of subscripts; rule 1: dimensions that share a bare index have one size.

use super::super::{Access, Expr, ExprId, Extent, IndexId, Stmt, StmtKind, Subscript, TensorId};
use super::{DimInference, KnownSize, Site};
use crate::diag::{Code, Diagnostic, Span};

impl<'a> DimInference<'a> {
    pub(super) fn collect(&mut self) {
        let program = self.program;
        self.collect_block(&program.body, &mut Vec::new(), false);
    }

    pub(super) fn collect_block(&mut self, block: &'a [Stmt], loops: &mut Vec<IndexId>, guarded: bool) {
        let program = self.program;
        for stmt in block {
            for root in program.roots(stmt) {
                self.collect_reads(stmt, root, loops, guarded);
            }
            match &stmt.kind {
                StmtKind::Let { var, value } => {
                    self.lets.push((*var, *value));
                }
                StmtKind::For { index, extent, attributes, body } => {
                    let span = program.origin.indices.get(index).copied().unwrap_or_default();
                    self.bounds.extend(attributes.bound.map(|bound| (*index, bound, span)));
                    self.extents.insert(*index, (*extent, span));
                    loops.push(*index);
                    self.collect_block(body, loops, guarded);
                    loops.pop();
                }
                StmtKind::If { then, otherwise, .. } => {
                    self.collect_block(then, loops, true);
                    self.collect_block(otherwise, loops, true);
                }
                StmtKind::Assign { target, .. } => {
                    self.collect_access(target, program.origin.target(stmt.id), true, guarded, loops);
                }
                StmtKind::Declare(_) => {}
            }
        }
    }

    pub(super) fn collect_access(
        &mut self,
        access: &'a Access,
        span: Span,
        write: bool,
        guarded: bool,
        loops: &[IndexId],
    ) {
        for (dim, subscript) in access.subscripts.iter().enumerate() {
            self.sites.push(Site {
                tensor: access.tensor,
                dim,
                subscript,
                span,
                write,
                guarded,
                loops: loops.to_vec(),
            });
        }
    }

    /// Collects reads in an expression. Reads in lazily evaluated operands are guarded.
    pub(super) fn collect_reads(&mut self, stmt: &Stmt, id: ExprId, loops: &[IndexId], guarded: bool) {
        let program = self.program;
        match program.expr(id) {
            Expr::Read(access) => {
                let span = program.origin.expr(stmt.id, id);
                self.collect_access(access, span, false, guarded, loops);
                for subscript in &access.subscripts {
                    self.collect_reads(stmt, subscript.expr, loops, guarded);
                }
            }
            Expr::Entry(entry) => {
                for at in &entry.at {
                    self.collect_reads(stmt, *at, loops, guarded);
                }
            }
            Expr::Call(op, operands) => {
                for (k, operand) in operands.iter().enumerate() {
                    let optional = op.is_lazy() && k > 0;
                    self.collect_reads(stmt, *operand, loops, guarded || optional);
                }
            }
            _ => {}
        }
    }

    pub(super) fn find(&mut self, mut node: usize) -> usize {
        while self.parent[node] != node {
            self.parent[node] = self.parent[self.parent[node]];
            node = self.parent[node];
        }
        node
    }

    pub(super) fn dim_node(&self, tensor: TensorId, dim: usize) -> usize {
        self.offsets[tensor.index()] + dim
    }

    pub(super) fn inferred(&self, index: IndexId) -> bool {
        matches!(self.extents.get(&index), Some((Extent::Infer, _)))
    }

    /// The index that a subscript consists of, if its loop's extent is to be inferred.
    pub(super) fn bare(&self, subscript: &Subscript) -> Option<IndexId> {
        match self.program.expr(subscript.expr) {
            Expr::Index(index) if !subscript.permissive && self.inferred(*index) => Some(*index),
            _ => None,
        }
    }

    pub(super) fn unify(&mut self) {
        self.written_shapes();
        for k in 0..self.sites.len() {
            let site = &self.sites[k];
            let Some(index) = self.bare(site.subscript) else { continue };
            let (tensor, dim, span) = (site.tensor, site.dim, site.span);
            let a = self.find(index.index());
            let b = self.dim_node(tensor, dim);
            let b = self.find(b);
            self.union(a, b, tensor, dim, span, index);
        }
    }

    pub(super) fn union(&mut self, a: usize, b: usize, tensor: TensorId, dim: usize, span: Span, index: IndexId) {
        if a == b {
            return;
        }
        // Only the location of the constraint is new.
        if let Some(known) = &mut self.known[b]
            && known.span == self.program.origin.tensor(tensor)
        {
            known.span = span;
        }
        match (self.known[a].clone(), self.known[b].clone()) {
            (Some(x), Some(y)) if x.size != y.size => {
                let name = &self.program.indices[index.index()];
                let other = &self.program.tensor(tensor).name;
                let d = Diagnostic::new(
                    Code::E0402,
                    format!("`{name}` runs over dimensions of different sizes: {} and {}", x.size, y.size),
                );
                let mut d = d.label(span, format!("dimension {dim} of `{other}` is {}", y.size));
                if x.span != span {
                    d = d.label(x.span, x.reason.clone());
                } else {
                    d = d.note(x.reason.clone());
                }
                d = d.help("use tensors whose sizes agree");
                let least = x.size.min(y.size);
                d = d.help(format!("or bound the loop, in a loop program: `for {name} in range({least}):`"));
                self.error(d);
            }
            (known, None) => {
                self.parent[b] = a;
                self.known[a] = known;
            }
            (_, known) => {
                self.parent[b] = a;
                self.known[a] = known;
            }
        }
    }

    pub(super) fn written_shapes(&mut self) {
        let program = self.program;
        for (k, info) in program.tensors.iter().enumerate() {
            let tensor = TensorId(k as u32);
            let Some(shape) = info.declaration.as_ref().and_then(|d| d.shape.as_ref()) else { continue };
            let span = program.origin.tensor(tensor);
            for (dim, expr) in shape.iter().enumerate().take(self.ranks[k]) {
                match self.constant(*expr) {
                    Some(size) if size >= 0 => {
                        let reason = format!("`{}` is declared with {size} here", info.name);
                        let node = self.dim_node(tensor, dim);
                        self.known[node] = Some(KnownSize { start: 0, size: size as u64, span, reason });
                    }
                    Some(size) => {
                        let d = Diagnostic::new(Code::E0404, format!("a dimension cannot be {size}"))
                            .label(span, "negative");
                        self.error(d.help("write a size that is not negative"));
                    }
                    None => {
                        let d = Diagnostic::new(Code::E0403, "the shape depends on computed values");
                        let d = d.label(span, "not known before the program runs");
                        self.error(d.help("use integers, sizes of parameters (`A.shape[0]`) and scalar parameters (`i64(n)` unless they are i64)"));
                    }
                }
            }
        }
    }
}
