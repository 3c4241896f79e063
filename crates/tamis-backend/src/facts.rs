//! Kernel analysis shared by the LLVM and C backends: buffer uses, index arithmetic, messages.
//!
//! [`KernelFacts::new`] verifies a kernel and visits every statement once. It rejects kernels that
//! are nested too deeply for recursive code generation. It does not change the kernel.

use crate::failure::bug;
use rustc_hash::FxHashMap;
use tamis_ir::algebra::Op;
use tamis_ir::kernel::{Block, BufferId, BufferInfo, Elem, Expr, ExprId, Kernel, Role, Stmt, VarId, Workspace};
use tamis_ir::{DType, Diagnostic, Kind, Value};

/// Maximum nesting depth of expressions and blocks. Code generation is recursive, so deeper kernels
/// are rejected.
const MAX_DEPTH: usize = 400;

/// Maximum bytes of a tile that is allocated on the stack, where LLVM promotes it to registers.
const MAX_TILE_BYTES: usize = 16 << 10;

/// Maximum total bytes of all tiles on the stack.
const MAX_STACK_BYTES: usize = 128 << 10;

/// Facts about a verified kernel.
pub(crate) struct KernelFacts {
    /// True if a buffer grows, by buffer id.
    pub(crate) grows: Vec<bool>,
    /// True if a buffer is used at all, by buffer id.
    pub(crate) used: Vec<bool>,
    /// True if elements of a buffer are accessed (a buffer may only grow), by buffer id.
    pub(crate) accessed: Vec<bool>,
    /// True if elements of a buffer are loaded, by buffer id.
    pub(crate) loaded: Vec<bool>,
    /// True if a variable is read, by variable id.
    pub(crate) read: Vec<bool>,
    /// True if an `i64` expression is arithmetic on positions, coordinates and sizes, by expression
    /// id.
    index_arithmetic: Vec<bool>,
    /// The workspaces in order of first use.
    pub(crate) workspaces: Vec<std::sync::Arc<Workspace>>,
    /// The distinct messages of the `require` statements, in order of first use.
    pub(crate) messages: Vec<String>,
    /// The index of each message in `messages`.
    message_ids: FxHashMap<String, usize>,
}

/// The expressions that the statements of a kernel evaluate.
#[derive(Default)]
struct StmtExprs {
    definitions: Vec<(VarId, ExprId)>,
    roots: Vec<ExprId>,
}

impl KernelFacts {
    /// Verifies a kernel and visits every statement once.
    pub(crate) fn new(kernel: &Kernel) -> Result<KernelFacts, Diagnostic> {
        kernel.verify().map_err(bug)?;
        let mut facts = KernelFacts {
            grows: vec![false; kernel.buffers.len()],
            used: vec![false; kernel.buffers.len()],
            accessed: vec![false; kernel.buffers.len()],
            loaded: vec![false; kernel.buffers.len()],
            read: vec![false; kernel.vars.len()],
            index_arithmetic: Vec::new(),
            workspaces: kernel.workspaces(),
            messages: Vec::new(),
            message_ids: FxHashMap::default(),
        };
        check_expressions(kernel)?;
        let mut found = StmtExprs::default();
        facts.block(&kernel.body, 0, &mut found)?;
        facts.mark_reads(kernel, found.roots);
        facts.index_arithmetic = find_index_arithmetic(kernel, &found.definitions);
        Ok(facts)
    }

    /// Marks the variables and buffers that the expressions in `worklist` read.
    fn mark_reads(&mut self, kernel: &Kernel, mut worklist: Vec<ExprId>) {
        let mut seen = vec![false; kernel.exprs.len()];
        while let Some(id) = worklist.pop() {
            if std::mem::replace(&mut seen[id.index()], true) {
                continue;
            }
            match kernel.expr(id) {
                Expr::Var(var) => self.read[var.index()] = true,
                Expr::Load(buffer, index) => {
                    self.access(*buffer);
                    self.loaded[buffer.index()] = true;
                    worklist.push(*index);
                }
                // The first operand is the value: the lowerer has already replaced missing values
                // by a select.
                Expr::Call(Op::Coalesce, _, operands) => worklist.push(operands[0]),
                Expr::Call(_, _, operands) => worklist.extend(operands),
                Expr::Vector(vector) => {
                    if let Some(buffer) = vector.buffer() {
                        self.access(buffer);
                        self.loaded[buffer.index()] = true;
                    }
                    worklist.extend(vector.operands());
                }
                Expr::Const(_) => {}
            }
        }
    }

    fn block(&mut self, block: &Block, depth: usize, found: &mut StmtExprs) -> Result<(), Diagnostic> {
        if depth > MAX_DEPTH {
            return Err(bug(format!("blocks are nested more than {MAX_DEPTH} deep")));
        }
        for stmt in block {
            match stmt {
                Stmt::Let { var, value } | Stmt::Assign { var, value } => {
                    found.definitions.push((*var, *value));
                    found.roots.push(*value);
                }
                Stmt::Store { buffer, index, value } => {
                    self.access(*buffer);
                    found.roots.extend([*index, *value]);
                }
                Stmt::For { start, stop, body, .. } => {
                    found.roots.extend([*start, *stop]);
                    self.block(body, depth + 1, found)?;
                }
                Stmt::While { cond, body } => {
                    found.roots.push(*cond);
                    self.block(body, depth + 1, found)?;
                }
                Stmt::If { cond, then, otherwise } => {
                    found.roots.push(*cond);
                    self.block(then, depth + 1, found)?;
                    self.block(otherwise, depth + 1, found)?;
                }
                Stmt::Labelled { body, .. } => self.block(body, depth + 1, found)?,
                Stmt::Break(_) => {}
                Stmt::Prefetch { buffer, index, .. } => {
                    self.access(*buffer);
                    found.roots.push(*index);
                }
                Stmt::MaskedStore { buffer, index, value, mask } => {
                    self.access(*buffer);
                    found.roots.extend([*mask, *index, *value]);
                }
                Stmt::Update { buffer, index, value, .. } => {
                    self.access(*buffer);
                    self.loaded[buffer.index()] = true;
                    found.roots.extend([*index, *value]);
                }
                // Legalisation leaves no barriers.
                Stmt::Barrier => return Err(bug("the threads of a block are not legalised".to_string())),
                Stmt::Grow { buffer, len, .. } => {
                    self.grows[buffer.index()] = true;
                    self.used[buffer.index()] = true;
                    found.roots.push(*len);
                }
                Stmt::Fill { buffer, start, len, value } => {
                    self.access(*buffer);
                    found.roots.extend([*start, *len, *value]);
                }
                Stmt::Search { buffer, start, stop, key, .. } => {
                    self.access(*buffer);
                    found.roots.extend([*start, *stop, *key]);
                }
                Stmt::Sort { buffer, start, stop, flags } => {
                    self.access(*buffer);
                    flags.iter().for_each(|flags| self.access(*flags));
                    found.roots.extend([*start, *stop]);
                }
                Stmt::Gemm(gemm) => {
                    for view in gemm.views() {
                        self.access(view.buffer);
                        self.loaded[view.buffer.index()] = true;
                    }
                    found.roots.extend(gemm.exprs());
                }
                Stmt::Reset { workspace, sizes: exprs } | Stmt::Insert { workspace, coordinates: exprs, .. } => {
                    self.workspace(workspace);
                    found.roots.extend(exprs);
                }
                Stmt::Finalize { workspace, .. } => self.workspace(workspace),
                Stmt::Require { cond, message } => {
                    found.roots.push(*cond);
                    if !self.message_ids.contains_key(message) {
                        self.message_ids.insert(message.clone(), self.messages.len());
                        self.messages.push(message.clone());
                    }
                }
            }
        }
        Ok(())
    }

    fn workspace(&mut self, workspace: &Workspace) {
        for buffer in workspace.buffers() {
            self.used[buffer.index()] = true;
            self.grows[buffer.index()] = true;
        }
    }

    fn access(&mut self, buffer: BufferId) {
        self.used[buffer.index()] = true;
        self.accessed[buffer.index()] = true;
    }

    /// True if an expression is arithmetic on positions, coordinates and sizes, which cannot
    /// overflow.
    pub(crate) fn is_index(&self, id: ExprId) -> bool {
        self.index_arithmetic[id.index()]
    }

    /// The id of a message.
    pub(crate) fn message_id(&self, message: &str) -> usize {
        self.message_ids.get(message).copied().unwrap_or(0)
    }

    /// True if a buffer is a tile on the stack: it fits there together with the tiles before it.
    pub(crate) fn on_stack(kernel: &Kernel, buffer: BufferId) -> bool {
        let bytes = |buffer: &BufferInfo| match buffer.role {
            Role::Tile(size) | Role::Shared(size) => (size as usize).saturating_mul(buffer.elem.size()),
            _ => 0,
        };
        let tiles = kernel.buffers.iter().take(buffer.index() + 1).map(bytes).filter(|bytes| *bytes <= MAX_TILE_BYTES);
        let own = bytes(kernel.buffer(buffer));
        matches!(kernel.buffer(buffer).role, Role::Tile(_))
            && own <= MAX_TILE_BYTES
            && tiles.sum::<usize>() <= MAX_STACK_BYTES
    }
}

/// Checks that operators have operands of the types they take, and that no expression is too deep.
fn check_expressions(kernel: &Kernel) -> Result<(), Diagnostic> {
    let mut depths: Vec<usize> = Vec::with_capacity(kernel.exprs.len());
    for id in kernel.exprs.ids() {
        let mut depth = 0;
        match kernel.expr(id) {
            Expr::Load(_, index) => depth = depths[index.index()] + 1,
            Expr::Call(op, operand, operands) => {
                depth = operands.iter().map(|e| depths[e.index()] + 1).max().unwrap_or(0);
                let types = vec![tamis_ir::algebra::Ty::strong(*operand); operands.len()];
                let fits = match op {
                    Op::Cast(dtype) => kernel.exprs.dtype(id) == *dtype,
                    _ => op.type_of(&types).is_ok_and(|t| {
                        t.result.dtype == kernel.exprs.dtype(id)
                            && (t.operand == *operand || matches!(op, Op::And | Op::Or | Op::Not))
                    }),
                };
                if !fits {
                    return Err(bug(format!("`{}` in {operand} is not an operator", kernel.show(id))));
                }
            }
            Expr::Vector(vector) => depth = vector.operands().map(|e| depths[e.index()] + 1).max().unwrap_or(0),
            Expr::Const(_) | Expr::Var(_) => {}
        }
        if depth > MAX_DEPTH {
            return Err(bug(format!("an expression is nested more than {MAX_DEPTH} deep")));
        }
        depths.push(depth);
    }
    Ok(())
}

/// Greatest fixed point: an expression is index arithmetic if its operands are, and a variable is
/// if all values assigned to it are.
fn find_index_arithmetic(kernel: &Kernel, definitions: &[(VarId, ExprId)]) -> Vec<bool> {
    let mut vars: Vec<bool> = kernel.vars.iter().map(|var| var.dtype == DType::I64).collect();
    loop {
        let mut exprs: Vec<bool> = Vec::with_capacity(kernel.exprs.len());
        for id in kernel.exprs.ids() {
            let like = |id: &ExprId| exprs[id.index()];
            exprs.push(match kernel.expr(id) {
                Expr::Const(Value::I64(x)) => x.unsigned_abs() <= 1 << 32,
                Expr::Const(_) => false,
                Expr::Var(var) => vars[var.index()],
                Expr::Load(buffer, _) => matches!(kernel.buffer(*buffer).elem, Elem::Index(_)),
                Expr::Call(Op::Cast(DType::I64), _, operands) => {
                    let dtype = kernel.exprs.dtype(operands[0]);
                    dtype.kind() <= Kind::Int && dtype.size() <= 4
                }
                Expr::Call(Op::Select, DType::I64, operands) => like(&operands[1]) && like(&operands[2]),
                Expr::Call(op, DType::I64, operands) => {
                    let arithmetic = [Op::Add, Op::Sub, Op::Mul, Op::FloorDiv, Op::Mod, Op::Min, Op::Max];
                    arithmetic.contains(op) && operands.iter().all(like)
                }
                Expr::Call(..) | Expr::Vector(_) => false,
            });
        }
        let mut changed = false;
        for (var, value) in definitions {
            if vars[var.index()] && !exprs[value.index()] {
                vars[var.index()] = false;
                changed = true;
            }
        }
        if !changed {
            return exprs;
        }
    }
}
