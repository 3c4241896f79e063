//! Symbolic loop extents: sizes of dimensions. A split or fused loop no longer defines the sizes of
//! the tensors that its index subscripts, so their declarations state them instead.

use super::edit::ProgramEdit;
use rustc_hash::{FxHashMap, FxHashSet};
use tamis_ir::Value;
use tamis_ir::diag::{Code, Diagnostic, Result};
use tamis_ir::program::{
    Access, Expr, ExprId, Extent, IndexId, Program, Stmt, StmtKind, Storage, TensorId, VarId, visit_block,
};

/// Equivalence classes of indices and dimensions of equal size: they meet in bare subscripts of
/// loops with inferred extents.
pub(super) struct Classes {
    parent: Vec<usize>,
    offsets: Vec<usize>,
    /// For each class, by its root, a symbolic size.
    sizes: FxHashMap<usize, Size>,
    /// Sizes of dimensions that are inferred from writes.
    written: FxHashMap<(TensorId, usize), ExprId>,
}

/// A symbolic size of a class.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Size {
    /// The size of a parameter's dimension.
    Of(TensorId, usize),
    /// A size that a declaration states.
    Declared(ExprId),
}

impl Classes {
    pub(super) fn of(program: &Program) -> Classes {
        let mut nodes = program.indices.len();
        let mut offsets = Vec::new();
        for info in &program.tensors {
            offsets.push(nodes);
            nodes += info.rank;
        }
        let mut classes = Classes {
            parent: (0..nodes).collect(),
            offsets,
            sizes: FxHashMap::default(),
            written: written_sizes(program),
        };
        let inferred = inferred(program);
        for access in accesses(program) {
            for (dim, subscript) in access.subscripts.iter().enumerate() {
                if let Expr::Index(index) = program.expr(subscript.expr)
                    && inferred.contains(index)
                    && !subscript.permissive
                {
                    let (a, b) =
                        (classes.find(index.index()), classes.find(classes.offsets[access.tensor.index()] + dim));
                    classes.parent[a] = b;
                }
            }
        }
        for (k, info) in program.tensors.iter().enumerate() {
            let shape = info.declaration.as_ref().and_then(|declaration| declaration.shape.as_ref());
            for dim in 0..info.rank {
                let size = match (&info.declaration, shape.and_then(|shape| shape.get(dim))) {
                    (None, _) => Size::Of(TensorId(k as u32), dim),
                    (Some(_), Some(size)) => Size::Declared(*size),
                    (Some(_), None) => continue,
                };
                let root = classes.find(classes.offsets[k] + dim);
                classes.sizes.entry(root).or_insert(size);
            }
        }
        classes
    }

    fn find(&self, mut node: usize) -> usize {
        while self.parent[node] != node {
            node = self.parent[node];
        }
        node
    }

    pub(super) fn size(&self, index: IndexId) -> Option<Size> {
        // An index that a command added later has no class.
        (index.index() < self.parent.len())
            .then(|| self.find(index.index()))
            .and_then(|root| self.sizes.get(&root).copied())
    }

    /// True if two dimensions are in the same class.
    pub(super) fn same(&self, a: (TensorId, usize), b: (TensorId, usize)) -> bool {
        let node = |(tensor, dim): (TensorId, usize)| {
            let next = self.offsets.get(tensor.index() + 1).copied().unwrap_or(self.parent.len());
            self.offsets.get(tensor.index()).map(|offset| offset + dim).filter(|node| *node < next)
        };
        node(a).zip(node(b)).is_some_and(|(a, b)| self.find(a) == self.find(b))
    }

    pub(super) fn size_of_dim(&self, tensor: TensorId, dim: usize) -> Option<Size> {
        let offset = self.offsets.get(tensor.index())?;
        self.sizes.get(&self.find(offset + dim)).copied()
    }
}

/// Sizes of dimensions whose writes all cover one range up to its end.
fn written_sizes(program: &Program) -> FxHashMap<(TensorId, usize), ExprId> {
    let mut stops: FxHashMap<IndexId, ExprId> = FxHashMap::default();
    let mut sizes: FxHashMap<(TensorId, usize), Option<ExprId>> = FxHashMap::default();
    program.visit(&mut |stmt: &Stmt| match &stmt.kind {
        StmtKind::For { index, extent: Extent::Range(start, stop), .. } => {
            let reached = match (program.expr(*start), program.expr(*stop)) {
                (Expr::Literal(Value::I64(0)), Expr::Size(..)) => true,
                (Expr::Literal(Value::I64(start)), Expr::Literal(Value::I64(stop))) => {
                    *start >= 0 && (start < stop || (*start, *stop) == (0, 0))
                }
                _ => false,
            };
            if reached {
                stops.insert(*index, *stop);
            }
        }
        StmtKind::Assign { target, .. } => {
            for (dim, subscript) in target.subscripts.iter().enumerate() {
                let size = match program.expr(subscript.expr) {
                    Expr::Index(index) => stops.get(index).copied(),
                    _ => None,
                };
                let known = sizes.entry((target.tensor, dim)).or_insert(size);
                *known = known.filter(|known| Some(*known) == size);
            }
        }
        _ => {}
    });
    sizes.into_iter().filter_map(|(dim, size)| Some((dim, size?))).collect()
}

fn inferred(program: &Program) -> FxHashSet<IndexId> {
    let mut inferred = FxHashSet::default();
    program.visit(&mut |stmt| {
        if let StmtKind::For { index, extent: Extent::Infer, .. } = &stmt.kind {
            inferred.insert(*index);
        }
    });
    inferred
}

/// All accesses of statements.
pub(super) fn accesses(program: &Program) -> Vec<Access> {
    let mut found = Vec::new();
    program.visit(&mut |stmt| {
        program.visit_exprs(stmt, &mut |id| {
            if let Expr::Read(access) = program.expr(id) {
                found.push(access.clone());
            }
        });
        if let StmtKind::Assign { target, .. } = &stmt.kind {
            found.push(target.clone());
        }
    });
    found
}

/// The definitions of bound names.
pub(super) fn lets(program: &Program) -> FxHashMap<VarId, ExprId> {
    let mut lets = FxHashMap::default();
    program.visit(&mut |stmt| {
        if let StmtKind::Let { var, value } = &stmt.kind {
            lets.insert(*var, *value);
        }
    });
    lets
}

/// The loop indices that an expression depends on, directly or through bound names.
pub(super) fn indices(program: &Program, lets: &FxHashMap<VarId, ExprId>, id: ExprId) -> FxHashSet<IndexId> {
    let mut found = FxHashSet::default();
    let mut seen = FxHashSet::default();
    let mut open = vec![id];
    while let Some(id) = open.pop() {
        if !seen.insert(id) {
            continue;
        }
        match program.expr(id) {
            Expr::Index(index) => {
                found.insert(*index);
            }
            Expr::Var(var) => open.extend(lets.get(var)),
            other => open.extend(other.operands()),
        }
    }
    found
}

/// The tensors that an expression reads, directly or through bound names.
pub(super) fn reads(program: &Program, lets: &FxHashMap<VarId, ExprId>, id: ExprId) -> FxHashSet<TensorId> {
    let mut found = FxHashSet::default();
    let mut open = vec![id];
    let mut seen = FxHashSet::default();
    while let Some(id) = open.pop() {
        if !seen.insert(id) {
            continue;
        }
        match program.expr(id) {
            Expr::Var(var) => open.extend(lets.get(var)),
            other => {
                if let Expr::Read(access) = other {
                    found.insert(access.tensor);
                }
                open.extend(other.operands());
            }
        }
    }
    found
}

impl ProgramEdit<'_> {
    pub(super) fn size_expr(&mut self, size: Size) -> ExprId {
        match size {
            Size::Of(tensor, dim) => self.intern(Expr::Size(tensor, dim)),
            Size::Declared(expr) => expr,
        }
    }

    /// An upper bound of an index: the size of a dimension that it subscripts, or the end of its
    /// range.
    pub(super) fn size_along(&mut self, index: IndexId) -> Option<ExprId> {
        let classes = self.classes();
        if let Some(size) = classes.size(index) {
            return Some(self.size_expr(size));
        }
        for access in accesses(&self.program) {
            for (dim, subscript) in access.subscripts.iter().enumerate() {
                if *self.program.expr(subscript.expr) == Expr::Index(index)
                    && !subscript.permissive
                    && let Some(size) = classes.size_of_dim(access.tensor, dim)
                {
                    return Some(self.size_expr(size));
                }
            }
        }
        let stop = match &self.loop_of(index).ok()?.kind {
            StmtKind::For { extent: Extent::Range(_, stop), .. } => *stop,
            _ => return None,
        };
        let plain = match self.program.expr(stop) {
            Expr::Size(..) => true,
            Expr::Literal(Value::I64(n)) => *n >= 0,
            _ => false,
        };
        plain.then_some(stop)
    }

    /// The bounds of a loop as 64-bit expressions that may be duplicated.
    pub(super) fn bounds(&mut self, index: IndexId, arg: usize) -> Result<(ExprId, ExprId)> {
        let stmt = self.loop_of(index)?.clone();
        let name = self.program.indices[index.index()].clone();
        let StmtKind::For { extent, body, .. } = &stmt.kind else {
            return Err(self.no_extent(&name, arg));
        };
        let Extent::Range(start, stop) = *extent else {
            let size = self.classes().size(index);
            let Some(size) = size else { return Err(self.no_extent(&name, arg)) };
            let stop = self.size_expr(size);
            return Ok((self.int(0), self.wide(stop)));
        };
        let lets = lets(&self.program);
        let mut read = reads(&self.program, &lets, start);
        read.extend(reads(&self.program, &lets, stop));
        let mut written = None;
        visit_block(body, &mut |inner| {
            if let StmtKind::Assign { target, .. } = &inner.kind
                && read.contains(&target.tensor)
            {
                written.get_or_insert(inner);
            }
        });
        if let Some(written) = written {
            let message = format!("the bounds of `{name}` change while its loop runs");
            let d = self.fault(Code::E1204, message, Some(arg), "its bounds are evaluated once, before it starts");
            let d = d.note(format!("modified by {}", self.place(written)));
            return Err(d.help(format!(
                "bind the bounds to names before the loop, as in `n = s` and `for {name} in range(n):`"
            )));
        }
        Ok((self.wide(start), self.wide(stop)))
    }

    fn no_extent(&self, name: &str, arg: usize) -> Diagnostic {
        let message = format!("the extent of `{name}` is not the size of a parameter's dimension");
        let d = self.fault(Code::E1205, message, Some(arg), "its extent has no name");
        d.note("the extent follows from an affine subscript, from `~`, or from the values that are written")
            .help(format!("bound the loop in the program: `for {name} in range(n):`"))
    }

    /// Pins sizes in declarations after the loops over `changed` no longer define them. The sizes
    /// are those of the previous classes.
    pub(super) fn pin(&mut self, before: &Classes, changed: &[IndexId], arg: usize) -> Result<()> {
        let after = self.classes();
        let lets = lets(&self.program);
        self.check_dependents(before, changed, &lets, arg)?;
        for k in 0..self.program.tensors.len() {
            let info = &self.program.tensors[k];
            let (tensor, rank, name) = (TensorId(k as u32), info.rank, info.name.clone());
            let declared = info.declaration.as_ref();
            if !declared.is_some_and(|d| matches!(d.storage, Storage::Tensor(_)) && d.shape.is_none()) {
                continue;
            }
            let touched = (0..rank).any(|dim| {
                after.size_of_dim(tensor, dim).is_none()
                    && accesses(&self.program).iter().filter(|access| access.tensor == tensor).any(|access| {
                        let found = indices(&self.program, &lets, access.subscripts[dim].expr);
                        changed.iter().any(|index| found.contains(index))
                    })
            });
            if !touched {
                continue;
            }
            let mut shape = Vec::new();
            for dim in 0..rank {
                let size = before.size_of_dim(tensor, dim).or_else(|| after.size_of_dim(tensor, dim));
                let expr = match size {
                    Some(size) => Some(self.size_expr(size)),
                    None => before.written.get(&(tensor, dim)).copied(),
                };
                let Some(expr) = expr else {
                    let message = format!("the size of dimension {dim} of `{name}` would no longer be known");
                    let d = self.fault(Code::E1205, message, Some(arg), "its loop determines the size of the tensor");
                    return Err(d.help(format!("declare it with its shape: `{name} = tensor(..., shape=(...))`")));
                };
                shape.push(expr);
            }
            if let Some(declaration) = self.program.tensors[k].declaration.as_mut() {
                declaration.shape = Some(shape);
            }
        }
        Ok(())
    }

    /// Refuses a change that would leave another loop without an inferred extent.
    fn check_dependents(
        &self,
        before: &Classes,
        changed: &[IndexId],
        lets: &FxHashMap<VarId, ExprId>,
        arg: usize,
    ) -> Result<()> {
        for other in inferred(&self.program) {
            if before.size(other).is_some() {
                continue;
            }
            let together =
                accesses(&self.program).iter().flat_map(|access| access.subscripts.clone()).any(|subscript| {
                    let found = indices(&self.program, lets, subscript.expr);
                    found.contains(&other) && changed.iter().any(|index| found.contains(index))
                });
            if together {
                let name = &self.program.indices[other.index()];
                let message = format!("the extent of `{name}` follows from this loop, and would no longer be known");
                let d = self.fault(Code::E1205, message, Some(arg), "determines the extent of another loop");
                return Err(d.help(format!("bound the other loop in the program: `for {name} in range(n):`")));
            }
        }
        Ok(())
    }
}
