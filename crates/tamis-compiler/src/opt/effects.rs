//! Side effects of statements (variables assigned, buffers written, exits), and versions of values
//! between them.

use rustc_hash::FxHashMap;
use tamis_ir::kernel::{Block, BufferId, Expr, ExprId, Kernel, LabelId, Stmt, VarId};

/// The side effects of a code fragment.
#[derive(Clone, Debug, Default)]
pub(super) struct Effects {
    /// Assigned variables, without declarations; duplicates are possible.
    pub(super) assigned: Vec<VarId>,
    /// Declared variables.
    pub(super) declared: Vec<VarId>,
    /// Buffers whose elements are written.
    pub(super) written: Vec<BufferId>,
    /// Buffers that are grown.
    pub(super) grown: Vec<BufferId>,
    /// Labels of blocks that a `break` exits.
    pub(super) left: Vec<LabelId>,
    /// True if the kernel may fail or return.
    pub(super) fails: bool,
}

impl Effects {
    /// The side effects of a block.
    pub(super) fn of(block: &[Stmt]) -> Effects {
        let mut effects = Effects::default();
        effects.add(block);
        effects.assigned.sort_unstable();
        effects.assigned.dedup();
        effects.written.sort_unstable();
        effects.written.dedup();
        effects.grown.sort_unstable();
        effects.grown.dedup();
        effects
    }

    fn add(&mut self, block: &[Stmt]) {
        for stmt in block {
            self.declared.extend(stmt.declares());
            match stmt {
                Stmt::Assign { var, .. } => self.assigned.push(*var),
                Stmt::Grow { buffer, .. } => {
                    self.grown.push(*buffer);
                    self.fails = true;
                }
                Stmt::Store { buffer, .. }
                | Stmt::MaskedStore { buffer, .. }
                | Stmt::Update { buffer, .. }
                | Stmt::Fill { buffer, .. }
                | Stmt::Sort { buffer, .. } => self.written.push(*buffer),
                Stmt::Reset { workspace, .. } | Stmt::Insert { workspace, .. } | Stmt::Finalize { workspace, .. } => {
                    self.written.extend(workspace.buffers());
                    self.grown.extend(workspace.buffers());
                    self.fails = true;
                }
                Stmt::Gemm(gemm) => self.written.push(gemm.c.buffer),
                Stmt::Break(label) => self.left.push(*label),
                Stmt::Require { .. } => self.fails = true,
                _ => {}
            }
            stmt.blocks().for_each(|inner| self.add(inner));
        }
    }

    /// Adds the side effects of subsequent code.
    pub(super) fn extend(&mut self, other: Effects) {
        self.assigned.extend(other.assigned);
        self.declared.extend(other.declared);
        self.written.extend(other.written);
        self.grown.extend(other.grown);
        self.left.extend(other.left);
        self.fails |= other.fails;
    }

    /// True if these effects may change the value of an expression or make it undefined.
    pub(super) fn touch(&self, kernel: &Kernel, id: ExprId) -> bool {
        let mut touched = false;
        kernel.visit_expr(id, &mut |expr| match expr {
            Expr::Var(var) => touched |= self.assigned.contains(var) || self.declared.contains(var),
            Expr::Load(buffer, _) => touched |= self.written.contains(buffer),
            _ => {}
        });
        touched
    }
}

/// Logical times of assignments to variables and of writes to buffers.
#[derive(Clone, Debug)]
pub(super) struct WriteTimes {
    pub(super) now: u64,
    pub(super) assigned: Vec<u64>,
    pub(super) written: Vec<u64>,
}

impl WriteTimes {
    /// The initial state, before any write.
    pub(super) fn new(kernel: &Kernel) -> WriteTimes {
        WriteTimes { now: 0, assigned: vec![0; kernel.vars.len()], written: vec![0; kernel.buffers.len()] }
    }

    /// Advances the logical clock.
    pub(super) fn tick(&mut self) -> u64 {
        self.now += 1;
        self.now
    }

    fn assign(&mut self, var: VarId, now: u64) {
        // Passes may have added variables.
        if var.index() >= self.assigned.len() {
            self.assigned.resize(var.index() + 1, 0);
        }
        self.assigned[var.index()] = now;
    }

    fn write(&mut self, buffer: BufferId, now: u64) {
        // Passes may have added buffers.
        if buffer.index() >= self.written.len() {
            self.written.resize(buffer.index() + 1, 0);
        }
        self.written[buffer.index()] = now;
    }

    /// Records the effects of a statement at the current time, without nested blocks.
    pub(super) fn pass(&mut self, stmt: &Stmt) {
        let now = self.tick();
        let assigned = match stmt {
            Stmt::Assign { var, .. } => Some(*var),
            _ => stmt.declares(),
        };
        assigned.into_iter().for_each(|var| self.assign(var, now));
        if !matches!(stmt, Stmt::Grow { .. }) {
            stmt.writes().for_each(|buffer| self.write(buffer, now));
        }
    }

    /// Records the effects of a code fragment at the current time.
    pub(super) fn forget(&mut self, effects: &Effects) {
        let now = self.tick();
        effects.assigned.iter().for_each(|var| self.assign(*var, now));
        effects.written.iter().for_each(|buffer| self.write(*buffer, now));
    }

    /// True if an expression has kept its value since a time.
    pub(super) fn unchanged(&self, kernel: &Kernel, id: ExprId, since: u64) -> bool {
        let assigned = |var: &VarId| self.assigned.get(var.index()).copied().unwrap_or(0);
        match kernel.expr(id) {
            Expr::Const(_) => return true,
            Expr::Var(var) => return assigned(var) <= since,
            _ => {}
        }
        let mut same = true;
        kernel.visit_expr(id, &mut |expr| match expr {
            Expr::Var(var) => same &= assigned(var) <= since,
            Expr::Load(buffer, _) => same &= self.written.get(buffer.index()).copied().unwrap_or(0) <= since,
            _ => {}
        });
        same
    }
}

/// True if control never reaches the end of a block.
pub(super) fn diverges(block: &[Stmt]) -> bool {
    match block.last() {
        Some(Stmt::Break(_)) => true,
        Some(Stmt::If { then, otherwise, .. }) => diverges(then) && diverges(otherwise),
        _ => false,
    }
}

/// The number of uses of each variable; each occurrence in an expression counts.
pub(super) fn reads(kernel: &Kernel, body: &Block) -> Vec<u32> {
    let mut counts = vec![0; kernel.vars.len()];
    let mut within = FxHashMap::default();
    let mut visit = |stmt: &Stmt| {
        stmt.each_expr(|id| {
            for (var, count) in variables(kernel, id, &mut within) {
                let total: &mut u32 = &mut counts[var.index()];
                *total = total.saturating_add(count);
            }
        });
    };
    body.iter().for_each(|stmt| stmt.visit(&mut visit));
    counts
}

/// The variables of an expression with their numbers of occurrences, saturated at two.
fn variables(kernel: &Kernel, id: ExprId, known: &mut FxHashMap<ExprId, Vec<(VarId, u32)>>) -> Vec<(VarId, u32)> {
    match kernel.expr(id) {
        Expr::Const(_) => Vec::new(),
        Expr::Var(var) => vec![(*var, 1)],
        Expr::Load(_, index) => variables(kernel, *index, known),
        Expr::Call(..) | Expr::Vector(_) => {
            if let Some(found) = known.get(&id) {
                return found.clone();
            }
            let mut found: Vec<(VarId, u32)> = Vec::new();
            for operand in kernel.expr(id).operands() {
                for (var, count) in variables(kernel, operand, known) {
                    match found.iter_mut().find(|(other, _)| *other == var) {
                        Some((_, total)) => *total = (*total + count).min(4),
                        None => found.push((var, count)),
                    }
                }
            }
            known.insert(id, found.clone());
            found
        }
    }
}
