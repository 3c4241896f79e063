//! Workspace insertion: a result that would be scattered into is accumulated in a temporary with
//! random access or sorting, then copied in storage order. The producer and the consumer share the
//! loops that iterate over the outermost levels in order, so the workspace only has the dimensions
//! that are produced out of order.

use super::classify::productions;
use crate::lower::{WriteMode, WritePlan};
use std::borrow::Cow;
use tamis_ir::format::{DimExpr, Format, FormatSpec, Ism, Leaf, LevelKind, LevelSpec, ShortName};
use tamis_ir::kernel::Merge;
use tamis_ir::program::{
    Access, Attributes, Block, Checked, Declaration, Expr, Extent, IndexId, Program, Stmt, StmtId, StmtKind, Storage,
    Subscript, TensorId, TensorInfo,
};
use tamis_tensor::levels::level_type;

/// The maximum number of elements of a dense workspace; beyond it, a sparse one is used.
pub(crate) const LARGEST_DENSE: u64 = 1 << 24;

/// The requested kind of workspace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum WorkspaceRequest {
    /// The kind that the compiler chooses.
    #[default]
    Any,
    /// A sparse workspace with this policy and capacity.
    Sparse(Ism),
}

/// An inserted workspace.
///
/// ```
/// use tamis_compiler::{lower::ParamLayout, pipeline};
/// use tamis_ir::{Format, Program, Value, interp};
/// use tamis_tensor::Tensor;
/// let program = Program::parse("
/// def product(A, B):
///     C = tensor('csr')
///     for i, k, j in _:
///         C[i,j] += A[i,k] * B[k,j]
///     return C
/// ")?;
/// let values = vec![0.0, 5.0, 0.0, 7.0].into();
/// let a = Tensor::from_dense(&[2, 2], values, &Format::csr(), Value::F64(0.0))?;
/// let params = [interp::param_type(&a), interp::param_type(&a)];
/// let layouts = [ParamLayout::of(&a), ParamLayout::of(&a)];
/// let compilation = pipeline::compile(&program, &params, &layouts, Default::default())?;
/// assert_eq!(compilation.inserted[0].shared, 1, "a workspace for each row");
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inserted {
    /// The result that the workspace replaces as scatter target.
    pub tensor: TensorId,
    /// The workspace.
    pub workspace: TensorId,
    /// The number of loops that producer and consumer share.
    pub shared: usize,
    /// The workspace's format.
    pub format: String,
    /// The reason for this format.
    pub why: String,
}

/// A scattered result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scattered {
    /// The tensor.
    pub tensor: TensorId,
    /// True if duplicates of an element can be merged later.
    pub merges: bool,
}

/// The results that these write plans would scatter into.
pub(crate) fn scattered(plans: &[Option<WritePlan>]) -> Vec<Scattered> {
    let plans = plans.iter().enumerate().filter_map(|(k, plan)| Some((TensorId(k as u32), plan.as_ref()?)));
    let wanted = plans.filter(|(_, plan)| plan.mode == WriteMode::Scatter && !plan.tests_fibers);
    wanted.map(|(tensor, plan)| Scattered { tensor, merges: plan.merge != Merge::Never }).collect()
}

/// The results that are scattered into, judged by loops and subscripts alone.
pub(crate) fn scattered_by_loops(program: &Program, checked: &Checked) -> Vec<Scattered> {
    let mut found: Vec<Scattered> = Vec::new();
    for production in productions(program, checked) {
        let tensor = production.tensor;
        if !production.appends() && !found.iter().any(|scattered| scattered.tensor == tensor) {
            found.push(Scattered { tensor, merges: true });
        }
    }
    found
}

/// The declared formats as kernels write them: levels that need whole fibers, and maps that divide
/// or combine dimensions, are written through simpler formats and finalized at the end.
pub(crate) fn as_written<'a>(program: &Program, checked: &'a Checked) -> Cow<'a, Checked> {
    let mut written = Cow::Borrowed(checked);
    for (k, format) in checked.formats.iter().enumerate() {
        if let Some(format) = format
            && program.tensors.get(k).is_some_and(|info| info.declaration.is_some())
        {
            let other = tamis_tensor::written_as(format);
            if other != *format {
                written.to_mut().formats[k] = Some(other);
            }
        }
    }
    written
}

/// Inserts a workspace for every scattered result for which the transformation is expressible: the
/// tensor is declared once and read only after its last write. `None` if there is no such tensor.
pub(crate) fn insert(
    program: &Program,
    checked: &Checked,
    scattered: &[Scattered],
    request: &WorkspaceRequest,
) -> Option<(Program, Vec<Inserted>)> {
    let mut result = program.clone();
    let mut inserted = Vec::new();
    for Scattered { tensor, merges } in scattered.iter().copied() {
        let k = tensor.index();
        let Some(format) = checked.formats.get(k).cloned().flatten().filter(|format| format.ism().is_none()) else {
            continue;
        };
        let Some(order) = format.dim_order() else { continue };
        // A result with random-access writes needs no workspace.
        let inserts = |level: &LevelSpec| level_type(level.kind).is_ok_and(|row| row.capabilities.insert);
        if format.levels().iter().all(inserts) {
            continue;
        }
        let mut next_stmt = 0;
        result.visit(&mut |stmt| next_stmt = next_stmt.max(stmt.id.0 + 1));
        let program = result.clone();
        let mut inserter = Inserter { program, tensor, order, format, checked, request, merges, next_stmt };
        if let Some(done) = inserter.insert() {
            result = inserter.program;
            inserted.push(done);
        }
    }
    if inserted.is_empty() {
        return None;
    }
    result.compact();
    Some((result, inserted))
}

struct Inserter<'a> {
    program: Program,
    tensor: TensorId,
    /// The dimension of each level.
    order: Vec<usize>,
    format: Format,
    checked: &'a Checked,
    request: &'a WorkspaceRequest,
    merges: bool,
    next_stmt: u32,
}

impl Inserter<'_> {
    fn insert(&mut self) -> Option<Inserted> {
        let mut body = std::mem::take(&mut self.program.body);
        let done = self.in_block(&mut body);
        self.program.body = body;
        done
    }

    /// Finds the block with the declaration and inserts the workspace there.
    fn in_block(&mut self, block: &mut Block) -> Option<Inserted> {
        let mut declarations = 0;
        self.program_declarations(block, &mut declarations);
        if declarations != 1 {
            return None;
        }
        if let Some(at) = block.iter().position(|stmt| stmt.kind == StmtKind::Declare(self.tensor)) {
            let later = &block[at + 1..];
            let first = later.iter().position(|stmt| self.writes(stmt))?;
            let last = later.iter().rposition(|stmt| self.writes(stmt))?;
            // Reads before the first write are the fill.
            if later[first..=last].iter().any(|stmt| self.reads(stmt)) {
                return None;
            }
            return self.share(block, at + 1, Vec::new());
        }
        for stmt in block {
            for inner in blocks(stmt) {
                let mut count = 0;
                self.program_declarations(inner, &mut count);
                if count == 1 {
                    return self.in_block(inner);
                }
            }
        }
        None
    }

    fn program_declarations(&self, block: &Block, count: &mut usize) {
        for stmt in block {
            visit(stmt, &mut |stmt| *count += usize::from(stmt.kind == StmtKind::Declare(self.tensor)));
        }
    }

    /// Descends through loops that iterate over the outermost levels in order, and inserts in the
    /// innermost of them.
    fn share(&mut self, block: &mut Block, from: usize, mut loops: Vec<IndexId>) -> Option<Inserted> {
        let writers: Vec<usize> = (from..block.len()).filter(|k| self.writes(&block[*k])).collect();
        // A loop over blocks is shared together with the loop inside a block.
        if let [only] = writers[..]
            && loops.len() + 1 < self.order.len()
            && let StmtKind::For { index: pieces, body, .. } = &mut block[only].kind
            && let inner = body.iter().position(|stmt| self.writes(stmt))
            && let Some(StmtKind::For { extent, .. }) = inner.map(|k| &body[k].kind)
            && self.program.piece_of(extent).is_some_and(|(number, _)| number == *pieces)
            && let Some(StmtKind::For { index, body: inside, .. }) = inner.map(|k| &body[k].kind)
            && self.is_subscript(inside, *index, self.order[loops.len()])
            && body.iter().filter(|stmt| self.writes(stmt)).count() == 1
        {
            return self.share(body, 0, loops);
        }
        if let [only] = writers[..]
            && loops.len() + 1 < self.order.len()
            && let StmtKind::For { index, body, .. } = &mut block[only].kind
        {
            let dim = self.order[loops.len()];
            if self.is_subscript(body, *index, dim) {
                loops.push(*index);
                return self.share(body, 0, loops);
            }
        }
        self.replace(block, writers[0], *writers.last()?, &loops)
    }

    /// True if all assignments to the tensor in a block subscript a dimension by an index.
    fn is_subscript(&self, block: &Block, index: IndexId, dim: usize) -> bool {
        let mut all = true;
        for stmt in block {
            visit(stmt, &mut |stmt| {
                if let StmtKind::Assign { target, .. } = &stmt.kind
                    && target.tensor == self.tensor
                {
                    let subscript = target.subscripts[dim];
                    let bare = self.program.expr(subscript.expr) == &Expr::Index(index);
                    all &= bare && !subscript.permissive;
                }
            });
        }
        all
    }

    /// Redirects the statements from the first to the last write to a new workspace, followed by
    /// the copy.
    fn replace(&mut self, block: &mut Block, first: usize, last: usize, loops: &[IndexId]) -> Option<Inserted> {
        let shared = loops.len();
        let (outer, inner) = (self.order[..shared].to_vec(), self.order[shared..].to_vec());
        let mut kept = inner.clone();
        kept.sort_unstable();
        let (spec, why) = self.choose(&inner, &kept);
        let workspace = self.declare(spec.clone(), &kept)?;
        let mut names: Vec<Option<IndexId>> = vec![None; self.order.len()];
        let mut origin = None;
        // Names of inner loops can be reused; those of enclosing loops cannot.
        let mut ending: Vec<IndexId> = Vec::new();
        for stmt in &block[first..=last] {
            visit(stmt, &mut |stmt| {
                if let StmtKind::For { index, .. } = &stmt.kind {
                    ending.push(*index);
                }
            });
        }
        for stmt in &mut block[first..=last] {
            self.redirect(stmt, workspace, &kept, &mut names, &mut origin);
        }
        names.iter_mut().for_each(|name| *name = name.filter(|index| ending.contains(index)));
        let span = origin?;
        let consumer = self.consumer(workspace, loops, &outer, &inner, &kept, &names, span);
        block.insert(last + 1, consumer);
        let declare = self.stmt(StmtKind::Declare(workspace), span);
        block.insert(first, declare);
        Some(Inserted { tensor: self.tensor, workspace, shared, format: spec.to_string(), why })
    }

    /// The format of a workspace over these dimensions (in storage order and in the tensor's
    /// order), and the reason.
    fn choose(&self, inner: &[usize], kept: &[usize]) -> (FormatSpec, String) {
        let leaf = self.format.leaf();
        let shape = self.checked.extents.shapes.get(self.tensor.index()).map_or(&[][..], Vec::as_slice);
        let size = inner.iter().fold(1u64, |size, dim| size.saturating_mul(shape.get(*dim).copied().unwrap_or(0)));
        let dense = inner.len() == 1 && size <= LARGEST_DENSE;
        let levels = &self.format.levels()[self.order.len() - inner.len()..];
        // The size of a dense workspace: that of one position of the result.
        let full = leaf != Leaf::Pattern
            && levels.iter().all(|level| level_type(level.kind).is_ok_and(|row| row.capabilities.full));
        // The kept dimension of each level.
        let map: Vec<usize> = inner.iter().map(|dim| kept.iter().position(|d| d == dim).unwrap_or(0)).collect();
        let natural = map.iter().enumerate().all(|(k, d)| k == *d);
        let map: Vec<DimExpr> = map.into_iter().map(DimExpr::Dim).collect();
        let (ism, why) = match self.request {
            WorkspaceRequest::Sparse(ism) => (ism.clone(), "as requested".to_string()),
            WorkspaceRequest::Any if full && natural => {
                let why = format!("the unordered dimensions, {size} elements, are stored densely");
                return (FormatSpec::AnyRank(ShortName::Dense, leaf), why);
            }
            WorkspaceRequest::Any if dense => {
                let format = Format::uniform(LevelKind::Bytemap, 1).with_leaf(leaf);
                let why = format!("one dimension of {size} elements is out of order, which fits a dense workspace");
                return (FormatSpec::Fixed(format), why);
            }
            WorkspaceRequest::Any => {
                let out = match inner {
                    [_] => "one dimension, too large for a dense workspace, is out of order".to_string(),
                    _ => format!("{} dimensions are out of order", inner.len()),
                };
                // Without a merge, duplicates must be found at insertion, so the workspace is a
                // hash table.
                let policy = if self.merges { "coord" } else { "hash" };
                (Ism { policy: policy.to_string(), capacity: None, pipelined: false }, out)
            }
        };
        if natural {
            return (FormatSpec::Ism(ism, leaf), why);
        }
        (FormatSpec::Fixed(Format::workspace(map, ism, leaf)), why)
    }

    fn declare(&mut self, spec: FormatSpec, kept: &[usize]) -> Option<TensorId> {
        let info = self.program.tensor(self.tensor);
        let declaration = info.declaration.clone()?;
        let shape = declaration.shape.map(|shape| kept.iter().map(|dim| shape[*dim]).collect());
        let declaration = Declaration { storage: Storage::Tensor(spec), shape, ..declaration };
        let name = fresh(&self.program, &format!("{}_w", info.name));
        let id = TensorId(self.program.tensors.len() as u32);
        self.program.tensors.push(TensorInfo { name, rank: kept.len(), declaration: Some(declaration) });
        if let Some(span) = self.program.origin.tensors.get(&self.tensor).copied() {
            self.program.origin.tensors.insert(id, span);
        }
        Some(id)
    }

    /// Redirects assignments from the tensor to the workspace.
    fn redirect(
        &self,
        stmt: &mut Stmt,
        workspace: TensorId,
        kept: &[usize],
        names: &mut [Option<IndexId>],
        origin: &mut Option<StmtId>,
    ) {
        if let StmtKind::Assign { target, .. } = &mut stmt.kind
            && target.tensor == self.tensor
        {
            origin.get_or_insert(stmt.id);
            for (name, subscript) in names.iter_mut().zip(&target.subscripts) {
                if let (None, Expr::Index(index)) = (&name, self.program.expr(subscript.expr)) {
                    *name = Some(*index);
                }
            }
            let subscripts = kept.iter().map(|dim| target.subscripts[*dim]).collect();
            *target = Access { tensor: workspace, subscripts };
        }
        for inner in blocks(stmt) {
            inner.iter_mut().for_each(|stmt| self.redirect(stmt, workspace, kept, names, origin));
        }
    }

    /// The consumer: loops that copy the workspace in the order of the tensor's levels.
    #[allow(clippy::too_many_arguments)]
    fn consumer(
        &mut self,
        workspace: TensorId,
        loops: &[IndexId],
        outer: &[usize],
        inner: &[usize],
        kept: &[usize],
        names: &[Option<IndexId>],
        origin: StmtId,
    ) -> Stmt {
        let mut indices: Vec<Option<IndexId>> = vec![None; self.order.len()];
        for (dim, index) in outer.iter().zip(loops) {
            indices[*dim] = Some(*index);
        }
        let around: Vec<String> = loops.iter().map(|index| self.program.indices[index.index()].clone()).collect();
        let mut taken = around;
        for dim in inner {
            let wanted = names[*dim].map(|index| self.program.indices[index.index()].clone());
            let name = match wanted.filter(|name| !taken.contains(name)) {
                Some(name) => name,
                None => {
                    let mut name = fresh(&self.program, &format!("i{dim}"));
                    while taken.contains(&name) {
                        name += "_";
                    }
                    name
                }
            };
            taken.push(name.clone());
            let index = IndexId(self.program.indices.len() as u32);
            self.program.indices.push(name);
            indices[*dim] = Some(index);
        }
        let subscripts: Vec<Subscript> = indices
            .iter()
            .flatten()
            .map(|index| {
                let expr = self.program.exprs.intern(Expr::Index(*index));
                Subscript { expr, protocol: None, permissive: false }
            })
            .collect();
        let read = Access { tensor: workspace, subscripts: kept.iter().map(|dim| subscripts[*dim]).collect() };
        let value = self.program.exprs.intern(Expr::Read(read));
        let target = Access { tensor: self.tensor, subscripts };
        let mut stmt = self.stmt(StmtKind::Assign { target, update: None, value }, origin);
        for dim in inner.iter().rev() {
            let Some(index) = indices[*dim] else { continue };
            stmt = self.stmt(
                StmtKind::For { index, extent: Extent::Infer, attributes: Attributes::default(), body: vec![stmt] },
                origin,
            );
        }
        stmt
    }

    /// Creates a statement with the source location of another one.
    fn stmt(&mut self, kind: StmtKind, origin: StmtId) -> Stmt {
        let id = StmtId(self.next_stmt);
        self.next_stmt += 1;
        let span = self.program.origin.stmt(origin);
        self.program.origin.stmts.insert(id, span);
        Stmt { id, kind }
    }

    fn writes(&self, stmt: &Stmt) -> bool {
        let mut found = false;
        visit(stmt, &mut |stmt| {
            found |= matches!(&stmt.kind, StmtKind::Assign { target, .. } if target.tensor == self.tensor);
        });
        found
    }

    fn reads(&self, stmt: &Stmt) -> bool {
        let mut found = false;
        visit(stmt, &mut |stmt| {
            self.program.visit_exprs(stmt, &mut |id| {
                found |= matches!(self.program.expr(id), Expr::Read(access) if access.tensor == self.tensor);
            });
        });
        found
    }
}

fn blocks(stmt: &mut Stmt) -> Vec<&mut Block> {
    match &mut stmt.kind {
        StmtKind::For { body, .. } => vec![body],
        StmtKind::If { then, otherwise, .. } => vec![then, otherwise],
        _ => Vec::new(),
    }
}

fn visit(stmt: &Stmt, visitor: &mut dyn FnMut(&Stmt)) {
    visitor(stmt);
    match &stmt.kind {
        StmtKind::For { body, .. } => body.iter().for_each(|stmt| visit(stmt, visitor)),
        StmtKind::If { then, otherwise, .. } => then.iter().chain(otherwise).for_each(|stmt| visit(stmt, visitor)),
        _ => {}
    }
}

/// An unused name.
fn fresh(program: &Program, name: &str) -> String {
    let taken = |name: &str| {
        program.tensors.iter().any(|info| info.name == name)
            || program.indices.iter().any(|index| index == name)
            || program.vars.iter().any(|var| var == name)
            || program.name == name
    };
    let mut fresh = name.to_string();
    let mut k = 2;
    while taken(&fresh) {
        fresh = format!("{name}{k}");
        k += 1;
    }
    fresh
}
