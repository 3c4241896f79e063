//! The instrumentation pass: adds counters to a kernel.

use super::{BasicBlock, Bulk, BulkKind, CountedLoop, Counting, SymbolicCount, Work};
use tamis_ir::Value;
use tamis_ir::algebra::{DType, Op};
use tamis_ir::kernel::{Block, BufferId, Builder, Expr, ExprId, Kernel, LabelId, Stmt, VarId};

/// Instruments a kernel. The counters are stored in the returned buffer, after the `indices` visit
/// counters.
///
/// Statements and their order stay as they are, and so do all results.
pub(crate) fn instrument(kernel: &Kernel, buffer: BufferId, indices: usize) -> (Kernel, Counting) {
    let (builder, _) = Builder::resume(kernel.clone());
    let mut pass = Instrument {
        kernel,
        b: builder,
        counters: Vec::new(),
        lengths: Vec::new(),
        statement: 0,
        counting: Counting {
            buffer,
            indices,
            len: indices,
            loops: Vec::new(),
            basic_blocks: Vec::new(),
            bulk: Vec::new(),
            lengths: Vec::new(),
        },
    };
    let mut body = Vec::new();
    let mut times = SymbolicCount::ONCE;
    let mut basic_block = pass.open(None, times);
    for (k, stmt) in kernel.body.iter().enumerate() {
        pass.statement = k;
        if k > 0 {
            basic_block = pass.open(None, times);
        }
        pass.stmt(stmt, None, &mut basic_block, &mut times, &mut body);
    }
    let (zero, mut whole) = (pass.b.int(0), Vec::new());
    whole.extend(pass.counters.iter().map(|var| Stmt::Let { var: *var, value: zero }));
    whole.append(&mut body);
    pass.counting.len = indices + pass.counters.len();
    let len = pass.b.int(pass.counting.len as i64);
    whole.push(Stmt::Grow { buffer, len, fill: Some(Value::I64(0)) });
    for (k, var) in pass.counters.clone().into_iter().enumerate() {
        let (index, value) = (pass.b.int((indices + k) as i64), pass.b.get(var));
        whole.push(Stmt::Store { buffer, index, value });
    }
    pass.counting.lengths = pass.lengths;
    (pass.b.finish_with(whole), pass.counting)
}

struct Instrument<'a> {
    kernel: &'a Kernel,
    b: Builder,
    counters: Vec<VarId>,
    lengths: Vec<(BufferId, usize)>,
    statement: usize,
    counting: Counting,
}

impl Instrument<'_> {
    /// Declares a counter: its index and its variable.
    fn counter(&mut self) -> (usize, VarId) {
        let var = self.b.new_var("n", DType::I64, true);
        self.counters.push(var);
        (self.counting.indices + self.counters.len() - 1, var)
    }

    fn by(&mut self, var: VarId, more: ExprId) -> Stmt {
        let so_far = self.b.get(var);
        let value = self.b.call_in(Op::Add, DType::I64, &[so_far, more]);
        Stmt::Assign { var, value }
    }

    /// The length of a possibly empty range.
    fn length(&mut self, start: ExprId, stop: ExprId) -> ExprId {
        let (zero, length) = (self.b.int(0), self.b.call_in(Op::Sub, DType::I64, &[stop, start]));
        self.b.call_in(Op::Max, DType::I64, &[length, zero])
    }

    fn open(&mut self, within: Option<usize>, times: SymbolicCount) -> usize {
        self.counting.basic_blocks.push(BasicBlock {
            within,
            statement: self.statement,
            times,
            work: Work::default(),
            statements: 0,
            declares: Vec::new(),
        });
        self.counting.basic_blocks.len() - 1
    }

    /// Instruments a block with a known execution count, or with a counter of its own.
    fn block(&mut self, block: &Block, within: Option<usize>, times: Option<SymbolicCount>) -> (Block, SymbolicCount) {
        let mut out = Vec::with_capacity(block.len() + 1);
        let times = match times {
            Some(times) => times,
            None => self.count_here(&mut out),
        };
        let (mut basic_block, mut now) = (self.open(within, times), times);
        for stmt in block {
            self.stmt(stmt, within, &mut basic_block, &mut now, &mut out);
        }
        (out, times)
    }

    fn count_here(&mut self, out: &mut Block) -> SymbolicCount {
        let (place, var) = self.counter();
        let one = self.b.int(1);
        let more = self.by(var, one);
        out.push(more);
        SymbolicCount::counted(place)
    }

    fn stmt(
        &mut self,
        stmt: &Stmt,
        within: Option<usize>,
        basic_block: &mut usize,
        times: &mut SymbolicCount,
        out: &mut Block,
    ) {
        let row = &mut self.counting.basic_blocks[*basic_block];
        row.statements += 1;
        row.work.add(self.kernel, stmt);
        if let Stmt::Let { var, .. } = stmt {
            row.declares.push(*var);
        }
        match stmt {
            Stmt::For { start, stop, body, hint, var } => {
                let number = self.enter(stmt, within, *times, self.origin(*var), false);
                let fixed = self.b.distance(*start, *stop).map(|n| times.scaled(n.max(0) as u64));
                let iterations = match fixed {
                    _ if leaves(body) => None,
                    Some(iterations) => Some(iterations),
                    None => {
                        let (place, counter) = self.counter();
                        let length = self.length(*start, *stop);
                        let more = self.by(counter, length);
                        out.push(more);
                        Some(SymbolicCount::counted(place))
                    }
                };
                let first = self.counting.basic_blocks.len();
                let (body, iterations) = self.block(body, Some(number), iterations);
                self.counting.loops[number].iterations = iterations;
                self.counting.basic_blocks[first].declares.push(*var);
                out.push(Stmt::For { var: *var, start: *start, stop: *stop, body, hint: *hint });
            }
            Stmt::While { cond, body } => {
                let (index, visits) = (self.walker(*cond, body), false);
                let number = self.enter(stmt, within, *times, (index, visits), true);
                let first = self.counting.basic_blocks.len();
                let (body, iterations) = self.block(body, Some(number), None);
                self.counting.loops[number].iterations = iterations;
                // The interpreter counts each iteration as a statement; the condition is evaluated
                // once more than it holds.
                self.counting.basic_blocks[first].statements += 1;
                self.counting.basic_blocks[first].work.evaluate(self.kernel, &[*cond]);
                let last = self.open(Some(number), *times);
                self.counting.basic_blocks[last].work.evaluate(self.kernel, &[*cond]);
                out.push(Stmt::While { cond: *cond, body });
            }
            Stmt::If { cond, then, otherwise } => {
                let mut branch = |block: &Block| match block.is_empty() {
                    true => Vec::new(),
                    false => self.block(block, within, None).0,
                };
                let (then, otherwise) = (branch(then), branch(otherwise));
                out.push(Stmt::If { cond: *cond, then, otherwise });
            }
            Stmt::Labelled { label, body } => {
                let (body, _) = self.block(body, within, Some(*times));
                out.push(Stmt::Labelled { label: *label, body });
            }
            Stmt::Fill { buffer, len, .. } => {
                let zero = self.b.int(0);
                self.bulk(BulkKind::Fill, *buffer, within, *times, (zero, *len), out);
                out.push(stmt.clone());
            }
            Stmt::Search { buffer, start, stop, .. } => {
                self.bulk(BulkKind::Search, *buffer, within, *times, (*start, *stop), out);
                out.push(stmt.clone());
            }
            Stmt::Sort { buffer, start, stop, .. } => {
                self.bulk(BulkKind::Sort, *buffer, within, *times, (*start, *stop), out);
                out.push(stmt.clone());
            }
            Stmt::Finalize { var, workspace } => {
                out.push(stmt.clone());
                let (zero, count) = (self.b.int(0), self.b.get(*var));
                self.bulk(BulkKind::Finalize, workspace.values, within, *times, (zero, count), out);
            }
            Stmt::Grow { buffer, len, .. } => {
                self.grown(*buffer, *len, out);
                out.push(stmt.clone());
            }
            other => out.push(other.clone()),
        }
        // Statements after a possible exit run less often, so a new basic block starts.
        if !matches!(stmt, Stmt::Break(_)) && escapes(stmt, &mut Vec::new()) {
            *times = self.count_here(out);
            *basic_block = self.open(within, *times);
        }
    }

    fn enter(
        &mut self,
        stmt: &Stmt,
        parent: Option<usize>,
        entered: SymbolicCount,
        (index, visits): (Option<u32>, bool),
        walks: bool,
    ) -> usize {
        let outer = parent.and_then(|parent| self.counting.loops[parent].index);
        let text = match stmt {
            Stmt::For { var, start, stop, .. } => {
                let (start, stop) = (self.kernel.show(*start), self.kernel.show(*stop));
                format!("for {} in {start}..{stop}", self.kernel.var(*var).name)
            }
            Stmt::While { cond, .. } => format!("while {}", self.kernel.show(*cond)),
            _ => String::new(),
        };
        self.counting.loops.push(CountedLoop {
            parent,
            index: index.or(outer),
            visits,
            walks,
            text,
            statement: self.statement,
            entered,
            iterations: SymbolicCount::ONCE,
        });
        self.counting.loops.len() - 1
    }

    fn origin(&self, var: VarId) -> (Option<u32>, bool) {
        self.kernel.var(var).origin.map_or((None, false), |origin| (Some(origin.index), origin.visits))
    }

    /// The loop of the program whose levels a `while` loop co-iterates: it advances the variables
    /// of its condition.
    fn walker(&self, cond: ExprId, body: &Block) -> Option<u32> {
        let mut moved: Vec<VarId> = Vec::new();
        body.iter().for_each(|stmt| {
            stmt.visit(&mut |stmt| {
                if let Stmt::Assign { var, .. } = stmt {
                    moved.push(*var);
                }
            });
        });
        let mut found = None;
        self.kernel.visit_expr(cond, &mut |expr| {
            if let Expr::Var(var) = expr
                && moved.contains(var)
            {
                found = found.or(self.origin(*var).0);
            }
        });
        found
    }

    fn bulk(
        &mut self,
        kind: BulkKind,
        buffer: BufferId,
        within: Option<usize>,
        times: SymbolicCount,
        (start, stop): (ExprId, ExprId),
        out: &mut Block,
    ) {
        let (counter, var) = self.counter();
        let length = self.length(start, stop);
        let more = self.by(var, length);
        out.push(more);
        self.counting.bulk.push(Bulk { within, statement: self.statement, buffer, kind, times, counter });
    }

    /// The maximum length requested for a buffer.
    fn grown(&mut self, buffer: BufferId, len: ExprId, out: &mut Block) {
        let known = self.lengths.iter().find(|(other, _)| *other == buffer).map(|(_, place)| *place);
        let place = match known {
            Some(place) => place,
            None => {
                let (place, _) = self.counter();
                self.lengths.push((buffer, place));
                place
            }
        };
        let var = self.counters[place - self.counting.indices];
        let so_far = self.b.get(var);
        let value = self.b.call_in(Op::Max, DType::I64, &[so_far, len]);
        out.push(Stmt::Assign { var, value });
    }
}

/// True if a loop has an early exit.
fn leaves(body: &Block) -> bool {
    body.iter().any(|stmt| escapes(stmt, &mut Vec::new()))
}

/// True if control may continue elsewhere than after a statement.
fn escapes(stmt: &Stmt, inside: &mut Vec<LabelId>) -> bool {
    match stmt {
        Stmt::Break(label) => !inside.contains(label),
        Stmt::Labelled { label, body } => {
            inside.push(*label);
            let found = body.iter().any(|stmt| escapes(stmt, inside));
            inside.pop();
            found
        }
        other => other.blocks().flatten().any(|stmt| escapes(stmt, inside)),
    }
}
