//! Explicit vectorisation of inner loops: strip-mining, masked tails, and single-vector loops over
//! tiles.
//!
//! Most loops with a hint combine contiguous elements of one type by arithmetic. They are emitted
//! with vector instructions here, since LLVM's loop vectoriser takes more time than all other
//! stages together. A loop over a tile becomes a single vector as long as the tile. Any other loop
//! is strip-mined by the vector width of the target, with a remainder loop. The tail of a reduction
//! is a masked vector, because scalar additions would wait for each other. All other loops are
//! emitted as scalar code, and LLVM may vectorise them.

mod gather;
mod masked;
mod reductions;

pub(super) use reductions::LoopAccumulator;

use masked::ActiveLanes;

use super::super::TargetCpu;
use super::ops::has_vector_form;
use super::stmt::RELAXED;
use super::{Emitter, SHORT_TRIP_LANES, Val, stored, ty};
use rustc_hash::{FxHashMap, FxHashSet};
use tamis_ir::algebra::{Form, Op};
use tamis_ir::kernel::{BufferId, Elem, Expr, ExprId, Hint, Kernel, Role, Stmt, VarId};
use tamis_ir::{DType, Kind};

/// Vectors per iteration of a reduction: independent accumulators hide the latency of additions.
const ACCUMULATOR_VECTORS: usize = 4;

/// Maximum trip count of loops that are unrolled to scalar code, if they fill no vector or access
/// tiles in memory.
const MAX_SHORT_TRIP: i64 = 4;

/// Maximum bytes of a single-vector loop over a tile.
const MAX_SINGLE_VECTOR_BYTES: usize = 1024;

/// The change of a variable or an expression from one iteration to the next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stride {
    /// Loop-invariant.
    Invariant,
    /// An index with stride one.
    Unit,
    /// A vector of values.
    Vector,
    /// A vector of indices from a coordinate list: its accesses are gathers.
    Gathered,
}

/// The analysis of a loop that can be vectorised.
pub(super) struct VectorPlan<'a> {
    kernel: &'a Kernel,
    dtype: DType,
    /// True if loads may be gathers.
    gathers: bool,
    strides: FxHashMap<VarId, Stride>,
    /// Memoised strides of expressions; `None` if an expression cannot be vectorised.
    expr_strides: FxHashMap<ExprId, Option<Stride>>,
    /// The variables that the loop adds to, and whether it subtracts.
    reductions: Vec<(VarId, bool)>,
    /// The stores of the loop: buffers and indices.
    stores: Vec<(BufferId, ExprId)>,
}

impl<'a> VectorPlan<'a> {
    fn new(kernel: &'a Kernel, counter: VarId, body: &[Stmt], gathers: bool) -> Option<VectorPlan<'a>> {
        let dtype = body.iter().find_map(|stmt| match stmt {
            Stmt::Store { buffer, .. } => match kernel.buffer(*buffer).elem {
                Elem::Value(dtype) => Some(dtype),
                Elem::Index(_) => None,
            },
            Stmt::Assign { var, .. } => Some(kernel.var(*var).dtype),
            _ => None,
        })?;
        if !matches!(dtype.kind(), Kind::Int | Kind::Float) {
            return None;
        }
        let strides = FxHashMap::from_iter([(counter, Stride::Unit)]);
        let stores = body.iter().filter_map(|stmt| match stmt {
            Stmt::Store { buffer, index, .. } => Some((*buffer, *index)),
            _ => None,
        });
        let stores: Vec<(BufferId, ExprId)> = stores.collect();
        if stores.iter().any(|(buffer, index)| stores.iter().any(|(b, i)| b == buffer && i != index)) {
            return None;
        }
        let mut plan = VectorPlan {
            kernel,
            dtype,
            gathers,
            strides,
            expr_strides: FxHashMap::default(),
            reductions: Vec::new(),
            stores,
        };
        for stmt in body {
            match stmt {
                Stmt::Let { var, value } if !kernel.var(*var).mutable => {
                    let stride = plan.stride(*value)?;
                    plan.strides.insert(*var, stride);
                }
                Stmt::Store { buffer, index, value } => {
                    let fits = kernel.buffer(*buffer).elem == Elem::Value(dtype)
                        && kernel.exprs.dtype(*value) == dtype
                        && plan.stride(*index)? == Stride::Unit;
                    (fits && matches!(plan.stride(*value)?, Stride::Invariant | Stride::Vector)).then_some(())?;
                }
                Stmt::Assign { var, value } => {
                    let (subtracts, added) = plan.added(*var, *value)?;
                    matches!(plan.stride(added)?, Stride::Invariant | Stride::Vector).then_some(())?;
                    plan.reductions.push((*var, subtracts));
                }
                _ => return None,
            }
        }
        // A reduction variable that the loop reads would have partial values.
        let reductions = &plan.reductions;
        let reads_reduction = |id: ExprId| {
            let mut found = false;
            kernel.visit_expr(id, &mut |expr| {
                found |= matches!(expr, Expr::Var(var) if reductions.iter().any(|(sum, _)| sum == var));
            });
            found
        };
        let independent = body.iter().all(|stmt| match stmt {
            Stmt::Let { value, .. } => !reads_reduction(*value),
            Stmt::Store { index, value, .. } => !reads_reduction(*index) && !reads_reduction(*value),
            Stmt::Assign { var, value } => plan.added(*var, *value).is_some_and(|(_, added)| !reads_reduction(added)),
            _ => false,
        });
        independent.then_some(plan)
    }

    /// The operand that an assignment adds to (or subtracts from) a variable.
    fn added(&self, var: VarId, value: ExprId) -> Option<(bool, ExprId)> {
        let Expr::Call(op, dtype, operands) = self.kernel.expr(value) else { return None };
        let [first, second] = operands[..] else { return None };
        let itself = |id: ExprId| *self.kernel.expr(id) == Expr::Var(var);
        let one_type = [first, second].iter().all(|id| self.kernel.exprs.dtype(*id) == self.dtype);
        let fits = *dtype == self.dtype && self.kernel.var(var).dtype == self.dtype && one_type;
        match op {
            Op::Add if fits && itself(first) => Some((false, second)),
            Op::Add if fits && itself(second) => Some((false, first)),
            Op::Sub if fits && itself(first) => Some((true, second)),
            _ => None,
        }
    }

    /// True if an expression is zero in lanes whose loads are masked.
    fn is_zero_when_masked(&self, id: ExprId) -> bool {
        let vector = |id: ExprId| self.expr_strides.get(&id) == Some(&Some(Stride::Vector));
        match self.kernel.expr(id) {
            Expr::Load(_, index) => vector(id) && self.expr_strides.get(index) == Some(&Some(Stride::Unit)),
            Expr::Call(Op::Mul, _, operands) => operands.iter().all(|id| vector(*id) && self.is_zero_when_masked(*id)),
            _ => false,
        }
    }

    /// True if the branches of a selection of values can be evaluated in all lanes: the condition is
    /// a comparison, and reads what they read.
    fn is_branch_free(&self, operands: &[ExprId]) -> bool {
        let kernel = self.kernel;
        let loads = |id: ExprId| {
            let mut found = Vec::new();
            kernel.visit_expr(id, &mut |expr| {
                if let Expr::Load(buffer, index) = expr {
                    found.push((*buffer, *index));
                }
            });
            found
        };
        let compares = matches!(
            kernel.expr(operands[0]),
            Expr::Call(op, ..) if matches!(op.info().form, Form::Comparison(_))
        );
        let of_type = operands[1..].iter().all(|id| kernel.exprs.dtype(*id) == self.dtype);
        let known = loads(operands[0]);
        compares && of_type && operands[1..].iter().all(|id| loads(*id).iter().all(|load| known.contains(load)))
    }

    /// The stride of an expression; `None` if it cannot be vectorised.
    fn stride(&mut self, id: ExprId) -> Option<Stride> {
        if let Some(stride) = self.expr_strides.get(&id) {
            return *stride;
        }
        // Declarations precede uses, so the result is final.
        let stride = self.compute_stride(id);
        self.expr_strides.insert(id, stride);
        stride
    }

    fn compute_stride(&mut self, id: ExprId) -> Option<Stride> {
        let kernel = self.kernel;
        match kernel.expr(id) {
            Expr::Const(_) => Some(Stride::Invariant),
            Expr::Vector(_) => None,
            Expr::Var(var) if kernel.var(*var).lanes > 1 => None,
            Expr::Var(var) => Some(self.strides.get(var).copied().unwrap_or(Stride::Invariant)),
            Expr::Load(buffer, index) => {
                let written = self.stores.iter().find(|(written, _)| written == buffer).map(|(_, index)| *index);
                match self.stride(*index)? {
                    Stride::Invariant => written.is_none().then_some(Stride::Invariant),
                    // Loads must not read what other iterations store.
                    Stride::Unit => {
                        let same_element = written.is_none_or(|stored| stored == *index);
                        match kernel.buffer(*buffer).elem {
                            Elem::Value(dtype) => (same_element && dtype == self.dtype).then_some(Stride::Vector),
                            Elem::Index(_) => (self.gathers && written.is_none()).then_some(Stride::Gathered),
                        }
                    }
                    Stride::Gathered => {
                        let fits = written.is_none() && kernel.buffer(*buffer).elem == Elem::Value(self.dtype);
                        fits.then_some(Stride::Vector)
                    }
                    Stride::Vector => None,
                }
            }
            Expr::Call(op, dtype, operands) => {
                let strides: Vec<Stride> = operands.iter().map(|id| self.stride(*id)).collect::<Option<_>>()?;
                if strides.iter().all(|stride| *stride == Stride::Invariant) {
                    return Some(Stride::Invariant);
                }
                let one_type = operands.iter().all(|id| kernel.exprs.dtype(*id) == *dtype);
                match (op, &strides[..]) {
                    (Op::Add, [Stride::Unit, Stride::Invariant] | [Stride::Invariant, Stride::Unit])
                    | (Op::Sub, [Stride::Unit, Stride::Invariant])
                        if *dtype == DType::I64 && one_type =>
                    {
                        Some(Stride::Unit)
                    }
                    (Op::Add | Op::Sub | Op::Mul, [_, _])
                        if strides.contains(&Stride::Gathered) && *dtype == DType::I64 && one_type =>
                    {
                        (!strides.contains(&Stride::Vector)).then_some(Stride::Gathered)
                    }
                    (Op::Select, [Stride::Vector, ..]) => {
                        let plain = |stride: &Stride| matches!(stride, Stride::Invariant | Stride::Vector);
                        let fits = *dtype == self.dtype && strides.iter().all(plain);
                        (fits && self.is_branch_free(operands)).then_some(Stride::Vector)
                    }
                    _ => {
                        let plain = |stride: &Stride| matches!(stride, Stride::Invariant | Stride::Vector);
                        let fits = one_type && strides.iter().all(plain);
                        let written = match op.info().form {
                            Form::Elementwise(_) => *dtype == self.dtype && has_vector_form(*op, *dtype),
                            Form::Comparison(_) => *dtype == self.dtype,
                            _ => false,
                        };
                        (fits && written).then_some(Stride::Vector)
                    }
                }
            }
        }
    }
}

/// A vector instruction.
enum Instruction {
    /// An LLVM instruction, with the fast-math flags of the loop for floats.
    Plain(&'static str),
    /// An LLVM intrinsic.
    Function(&'static str),
}

/// The vector instruction of a binary operator on floats or integers.
fn instruction(op: Op, dtype: DType) -> Option<Instruction> {
    let float = dtype.kind() == Kind::Float;
    let signed = dtype.is_signed_int();
    Some(match op {
        Op::Add => Instruction::Plain(if float { "fadd" } else { "add" }),
        Op::Sub => Instruction::Plain(if float { "fsub" } else { "sub" }),
        Op::Mul => Instruction::Plain(if float { "fmul" } else { "mul" }),
        Op::BitAnd if !float => Instruction::Plain("and"),
        Op::BitOr if !float => Instruction::Plain("or"),
        Op::BitXor if !float => Instruction::Plain("xor"),
        Op::Min => Instruction::Function(if float {
            "minimum"
        } else if signed {
            "smin"
        } else {
            "umin"
        }),
        Op::Max => Instruction::Function(if float {
            "maximum"
        } else if signed {
            "smax"
        } else {
            "umax"
        }),
        _ => return None,
    })
}

/// The type suffix of LLVM intrinsics on a vector.
fn suffix(dtype: DType, lanes: usize) -> String {
    format!("v{lanes}{}{}", if dtype.kind() == Kind::Float { "f" } else { "i" }, 8 * dtype.size())
}

/// The vector width of a CPU in bytes. Any width would be correct; this one is neither split nor
/// partly unused.
pub(super) fn vector_bytes(target: &TargetCpu) -> usize {
    let has = |feature: &str| target.features.split(',').any(|word| word == feature);
    match target.cpu.as_str() {
        _ if has("+avx512f") => 64,
        _ if has("+avx") => 32,
        "x86-64-v4" => 64,
        "x86-64" | "x86-64-v2" => 16,
        _ if target.triple.starts_with("x86_64") && target.features.is_empty() => 32,
        _ => 16,
    }
}

/// True if a CPU has vector blends, but no conditional move for floats.
pub(super) fn needs_blend(target: &TargetCpu) -> bool {
    let has = |feature: &str| target.features.split(',').any(|word| word == feature);
    let known = matches!(target.cpu.as_str(), "x86-64-v2" | "x86-64-v3");
    target.triple.starts_with("x86_64") && (known || has("+sse4.1")) && !has("+avx512f")
}

/// The tiles that are held in vector registers: those for which every loop over them is a single
/// vector. A tile with mixed accesses would stay in memory.
pub(super) fn vector_tiles(kernel: &Kernel, vector_bytes: usize) -> FxHashSet<BufferId> {
    let is_tile = |buffer: BufferId| matches!(kernel.buffer(buffer).role, Role::Tile(_));
    // The sets of tiles that are used together, and whether as vectors.
    let mut uses: Vec<(FxHashSet<BufferId>, bool)> = Vec::new();
    let mut worklist: Vec<&[Stmt]> = vec![&kernel.body];
    while let Some(block) = worklist.pop() {
        for stmt in block {
            let mut used = FxHashSet::default();
            let mut note = |stmt: &Stmt| {
                if let Stmt::Store { buffer, .. } | Stmt::Fill { buffer, .. } = stmt {
                    used.extend(is_tile(*buffer).then_some(*buffer));
                }
                stmt.each_expr(|id| {
                    kernel.visit_expr(id, &mut |expr| {
                        if let Expr::Load(buffer, _) = expr {
                            used.extend(is_tile(*buffer).then_some(*buffer));
                        }
                    });
                });
            };
            let single = match stmt {
                Stmt::For { var, start, stop, body, hint } if hint.vectorise => {
                    VectorPlan::new(kernel, *var, body, false)
                        .and_then(|plan| plan.single_vector(*start, *stop, vector_bytes))
                }
                _ => None,
            };
            note(stmt);
            if single.is_some() {
                stmt.blocks().flatten().for_each(note);
            } else {
                worklist.extend(stmt.blocks().map(|block| &block[..]));
            }
            if !used.is_empty() {
                uses.push((used, single.is_some()));
            }
        }
    }
    let all = (0..kernel.buffers.len()).map(|number| BufferId(number as u32));
    let mut tiles: FxHashSet<BufferId> = all.filter(|buffer| is_tile(*buffer)).collect();
    while let Some(at) = uses.iter().position(|(used, fit)| !fit || used.iter().any(|buffer| !tiles.contains(buffer))) {
        let (used, _) = uses.swap_remove(at);
        used.iter().for_each(|buffer| _ = tiles.remove(buffer));
    }
    tiles
}

/// A loop that is a single vector iteration.
#[derive(Clone, Copy)]
struct SingleVector {
    lanes: usize,
    /// True if its length is known at run time only: at most the lanes.
    masked: bool,
}

impl VectorPlan<'_> {
    /// The single vector of a loop of a constant length, or over a prefix of a tile.
    fn single_vector(&self, start: ExprId, stop: ExprId, vector_bytes: usize) -> Option<SingleVector> {
        let constant = |id: ExprId| match self.kernel.expr(id) {
            Expr::Const(value) => value.as_i64(),
            _ => None,
        };
        let start = constant(start).filter(|_| self.reductions.is_empty())?;
        let (length, masked) = match constant(stop) {
            Some(stop) => (stop.checked_sub(start)?, false),
            None => (self.tile().filter(|_| start == 0 && has_masks(self.dtype, vector_bytes))?, true),
        };
        let lanes = usize::try_from(length).ok()?;
        let fits = lanes.is_power_of_two() && lanes > 1 && lanes <= MAX_SINGLE_VECTOR_BYTES / self.dtype.size();
        fits.then_some(SingleVector { lanes, masked })
    }

    /// The loads of a loop at indices of this stride, except from tiles.
    fn loads(&self, body: &[Stmt], stride: Stride) -> Vec<(BufferId, ExprId)> {
        let mut found = Vec::new();
        for stmt in body {
            stmt.each_expr(|id| {
                self.kernel.visit_expr(id, &mut |expr| {
                    if let Expr::Load(buffer, index) = expr
                        && self.expr_strides.get(index) == Some(&Some(stride))
                        && !matches!(self.kernel.buffer(*buffer).role, Role::Tile(_))
                        && !found.contains(&(*buffer, *index))
                    {
                        found.push((*buffer, *index));
                    }
                });
            });
        }
        found
    }

    /// True if an index depends only on the counter and on values from before the loop.
    fn is_known_at_entry(&self, counter: VarId, index: ExprId) -> bool {
        let mut known = true;
        self.kernel.visit_expr(index, &mut |expr| {
            known &= !matches!(expr, Expr::Var(v) if *v != counter && self.strides.contains_key(v));
        });
        known
    }

    /// The tiles that the loop accesses.
    fn tiles(&self) -> impl Iterator<Item = BufferId> {
        let loads = self.expr_strides.keys().filter_map(|id| match self.kernel.expr(*id) {
            Expr::Load(buffer, _) => Some(*buffer),
            _ => None,
        });
        let buffers = loads.chain(self.stores.iter().map(|(buffer, _)| *buffer));
        buffers.filter(|buffer| matches!(self.kernel.buffer(*buffer).role, Role::Tile(_)))
    }

    /// Their length, if all are equal.
    fn tile(&self) -> Option<i64> {
        let mut lengths = self.tiles().filter_map(|buffer| match self.kernel.buffer(buffer).role {
            Role::Tile(length) => Some(i64::from(length)),
            _ => None,
        });
        let first = lengths.next()?;
        lengths.all(|length| length == first).then_some(first)
    }
}

/// True if masked loads are fast on the target.
fn has_masks(dtype: DType, vector_bytes: usize) -> bool {
    vector_bytes >= 32 && dtype.size() >= 4
}

/// The vector values in registers: of variables, and of expressions of one statement.
#[derive(Default)]
pub(super) struct VectorValues {
    vars: FxHashMap<VarId, String>,
    /// Gathered indices, one per lane.
    gathered: FxHashMap<VarId, Vec<String>>,
    exprs: FxHashMap<ExprId, String>,
    /// The active lanes.
    active: ActiveLanes,
}

impl Emitter<'_> {
    /// Emits a loop with vector instructions; returns `false`, with nothing emitted, if that is not
    /// possible.
    pub(super) fn vector_loop(&mut self, stmt: &Stmt) -> bool {
        let Stmt::For { var, start, stop, body, hint } = stmt else { return false };
        if self.check || !hint.vectorise {
            return false;
        }
        let Some(plan) = VectorPlan::new(self.kernel, *var, body, hint.short_trip) else { return false };
        let single =
            plan.single_vector(*start, *stop, self.vector_bytes).filter(|single| hint.is_unrolled() || single.masked);
        let in_memory = plan.tiles().any(|tile| !self.tiles.contains(&tile));
        let short = self.trip_count(*start, *stop).filter(|count| hint.is_unrolled() && *count <= MAX_SHORT_TRIP);
        if let Some(count) = short
            && (in_memory || single.is_none())
        {
            self.unroll_fully(*var, *start, count, body, *hint);
            return true;
        }
        // LLVM scalarises loops over tiles in memory.
        if in_memory || hint.is_unrolled() && single.is_none() {
            return false;
        }
        let outer = std::mem::replace(&mut self.flags, RELAXED);
        if single.is_none() && hint.short_trip && self.is_gathered_reduction(&plan) {
            self.gathered_reduction(&plan, *var, *start, *stop, body);
        } else if single.is_none() && !hint.short_trip && self.is_reduction_loop(&plan) {
            self.reduction_loop(&plan, *var, *start, *stop, body);
        } else {
            let (start, stop) = (self.index(*start), self.index(*stop));
            match single {
                Some(SingleVector { lanes, masked: false }) => {
                    self.vector_iteration(&plan, lanes, *var, &start, body, &[], ActiveLanes::All)
                }
                Some(SingleVector { lanes, masked: true }) => {
                    if !self.store_tile_prefix(&plan, lanes, (*var, &start, &stop), body) {
                        let mask = self.mask(plan.dtype, lanes, &stop);
                        self.vector_iteration(&plan, lanes, *var, &start, body, &[], ActiveLanes::Masked(mask));
                    }
                }
                None => self.strip_mine(&plan, *var, &start, &stop, body),
            }
        }
        self.flags = outer;
        true
    }

    /// The trip count of a loop, if it is known: between constants, or up to the start plus a
    /// constant.
    pub(super) fn trip_count(&self, start: ExprId, stop: ExprId) -> Option<i64> {
        let constant = |id: ExprId| match self.kernel.expr(id) {
            Expr::Const(value) => value.as_i64(),
            _ => None,
        };
        let count = match self.kernel.expr(stop) {
            Expr::Call(Op::Add, _, sum) if sum.first() == Some(&start) => constant(*sum.get(1)?)?,
            _ => constant(stop)?.checked_sub(constant(start)?)?,
        };
        (count > 0).then_some(count)
    }

    /// Emits a few iterations as straight-line code. Elements of a short tile then stay in scalar
    /// registers, unlike with vector accesses.
    pub(super) fn unroll_fully(&mut self, var: VarId, start: ExprId, count: i64, body: &[Stmt], hint: Hint) {
        let start = self.index(start);
        let outer = self.flags;
        if hint.vectorise {
            self.flags = RELAXED;
        }
        for k in 0..count {
            self.forget();
            let index = self.op(format!("add nsw i64 {start}, {k}"));
            self.define(var, Val::One(index));
            self.stmts(body);
        }
        self.flags = outer;
    }

    /// Stores one value into all elements from `start` to `stop`.
    pub(super) fn fill_vectors(&mut self, buffer: BufferId, start: &str, stop: &str, value: &Val) {
        let elem = self.kernel.buffer(buffer).elem;
        let lanes = (self.vector_bytes / elem.size()).max(2);
        let vector = format!("<{lanes} x {}>", stored(elem));
        let stored_value = self.as_stored(buffer, value);
        let all = self.splat(stored(elem), lanes, &stored_value);
        let remainder = self.vector_end(start, stop, lanes);
        self.count("k", start, &remainder, lanes, Hint::default(), |e, k| {
            let (address, align) = e.element_address(buffer, k);
            let scope = e.scope(buffer);
            e.line(format!("store {vector} {all}, ptr {address}, align {align}{scope}"));
        });
        self.count("k", &remainder, stop, 1, Hint::default(), |e, k| e.store(buffer, k, value));
    }

    /// The start of the remainder after as many full vectors as fit.
    fn vector_end(&mut self, start: &str, stop: &str, lanes: usize) -> String {
        let length = self.op(format!("sub nsw i64 {stop}, {start}"));
        let length = self.intrinsic("smax", DType::I64, &[&length, "0"]);
        let vector_length = self.op(format!("and i64 {length}, {}", -(lanes as i64)));
        self.op(format!("add nsw i64 {start}, {vector_length}"))
    }

    /// Broadcasts a value to all lanes.
    fn splat(&mut self, scalar: &str, lanes: usize, value: &str) -> String {
        let vector = format!("<{lanes} x {scalar}>");
        let first = self.op(format!("insertelement {vector} poison, {scalar} {value}, i64 0"));
        self.op(format!("shufflevector {vector} {first}, {vector} poison, <{lanes} x i32> zeroinitializer"))
    }

    /// Strip-mines a loop: a vector loop, and a scalar remainder loop.
    fn strip_mine(&mut self, plan: &VectorPlan, var: VarId, start: &str, stop: &str, body: &[Stmt]) {
        let native = (self.vector_bytes / plan.dtype.size()).max(2);
        let lanes = match () {
            () if plan.gathers => SHORT_TRIP_LANES,
            () if plan.reductions.is_empty() => native,
            () => ACCUMULATOR_VECTORS * native,
        };
        let name = self.kernel.var(var).name.clone();
        // A short trip count skips the vector loop with one branch: rows are often short.
        let (preheader, after, before) = (self.fresh("vector"), self.fresh("remainder"), self.block.clone());
        let length = self.op(format!("sub nsw i64 {stop}, {start}"));
        let any = self.op(format!("icmp sge i64 {length}, {lanes}"));
        self.fork(&any, &preheader, &after);
        self.start(&preheader);
        let vector_length = self.op(format!("and i64 {length}, {}", -(lanes as i64)));
        let vector_end = self.op(format!("add nsw i64 {start}, {vector_length}"));
        let vector = format!("<{lanes} x {}>", ty(plan.dtype));
        let slots: Vec<String> = plan.reductions.iter().map(|_| self.new_accumulator(&vector)).collect();
        self.count(&name, start, &vector_end, lanes, Hint::default(), |e, i| {
            e.vector_iteration(plan, lanes, var, i, body, &slots, ActiveLanes::All);
        });
        for ((sum, subtracts), slot) in plan.reductions.iter().zip(&slots) {
            self.reduce_lanes(plan.dtype, lanes, *sum, *subtracts, slot);
        }
        let last = self.block.clone();
        self.jump(&after);
        self.start(&after);
        let remainder = self.op(format!("phi i64 [ {start}, %{before} ], [ {vector_end}, %{last} ]"));
        self.count(&name, &remainder, stop, 1, Hint::default(), |e, i| {
            e.define(var, Val::One(i.to_string()));
            e.stmts(body);
        });
    }

    /// Emits one vector iteration from index `first` on, for the active lanes.
    #[expect(clippy::too_many_arguments, reason = "a loop, where it is, and what it adds to")]
    fn vector_iteration(
        &mut self,
        plan: &VectorPlan,
        lanes: usize,
        counter: VarId,
        first: &str,
        body: &[Stmt],
        slots: &[String],
        active: ActiveLanes,
    ) {
        let vector = format!("<{lanes} x {}>", ty(plan.dtype));
        let mut known = VectorValues { active, ..VectorValues::default() };
        let mut accumulators = plan.reductions.iter().zip(slots);
        self.define(counter, Val::One(first.to_string()));
        for stmt in body {
            self.forget();
            known.exprs.clear();
            match stmt {
                Stmt::Let { var, value } => match plan.strides.get(var) {
                    Some(Stride::Vector) => {
                        let value = self.vector(plan, lanes, *value, &mut known);
                        known.vars.insert(*var, value);
                    }
                    Some(Stride::Gathered) => {
                        let indices = self.lane_indices(plan, lanes, *value, &known);
                        known.gathered.insert(*var, indices);
                    }
                    _ => {
                        let value = self.value(*value);
                        self.define(*var, value);
                    }
                },
                Stmt::Store { buffer, index, value } => {
                    let index = self.index(*index);
                    let value = self.vector(plan, lanes, *value, &mut known);
                    let (address, align) = self.element_address(*buffer, &index);
                    let scope = self.scope(*buffer);
                    match known.mask().filter(|_| !self.is_tile(*buffer)) {
                        None => self.line(format!("store {vector} {value}, ptr {address}, align {align}{scope}")),
                        Some(mask) => {
                            let name = format!("llvm.masked.store.{}.p0", suffix(plan.dtype, lanes));
                            let masks = format!("<{lanes} x i1>");
                            self.declare(&name, || format!("declare void @{name}({vector}, ptr, i32 immarg, {masks})"));
                            let (value, address) = (format!("{vector} {value}"), format!("ptr {address}"));
                            self.line(format!(
                                "call void @{name}({value}, {address}, i32 {align}, {masks} {mask}){scope}"
                            ));
                        }
                    }
                }
                Stmt::Assign { var, value } => {
                    let Some((_, added)) = plan.added(*var, *value) else { continue };
                    let Some((_, slot)) = accumulators.next() else { continue };
                    let accumulated = self.op(format!("load {vector}, ptr {slot}, align 64"));
                    let zero = plan.is_zero_when_masked(added);
                    let varies = plan.expr_strides.get(&added) == Some(&Some(Stride::Vector));
                    let mut sum = match self.kernel.expr(added) {
                        // A single fused multiply-add per lane: otherwise LLVM could fuse some
                        // products but not others.
                        Expr::Call(Op::Mul, _, factors)
                            if varies && factors.len() == 2 && plan.dtype.kind() == Kind::Float =>
                        {
                            let [a, b] = [factors[0], factors[1]].map(|id| self.vector(plan, lanes, id, &mut known));
                            self.multiply_add(plan.dtype, lanes, &a, &b, &accumulated)
                        }
                        _ => {
                            let added = self.vector(plan, lanes, added, &mut known);
                            self.vector_op(Op::Add, plan.dtype, lanes, &accumulated, &added)
                        }
                    };
                    if let Some(mask) = known.kept(zero) {
                        let lanes_kept = format!("select <{lanes} x i1> {mask}, {vector} {sum}");
                        sum = self.op(format!("{lanes_kept}, {vector} {accumulated}"));
                    }
                    self.line(format!("store {vector} {sum}, ptr {slot}, align 64"));
                }
                _ => {}
            }
        }
    }

    fn is_tile(&self, buffer: BufferId) -> bool {
        matches!(self.kernel.buffer(buffer).role, Role::Tile(_))
    }

    /// The address of an element, and its alignment.
    fn element_address(&mut self, buffer: BufferId, index: &str) -> (String, usize) {
        let elem = self.kernel.buffer(buffer).elem;
        let (ty, data) = (stored(elem), self.data(buffer));
        let address = self.op(format!("getelementptr inbounds {ty}, ptr {data}, i64 {index}"));
        (address, crate::runtime::memory::align(elem))
    }

    /// Evaluates an expression for all lanes.
    fn vector(&mut self, plan: &VectorPlan, lanes: usize, id: ExprId, known: &mut VectorValues) -> String {
        if let Some(value) = known.exprs.get(&id) {
            return value.clone();
        }
        let scalar = ty(plan.dtype);
        let vector = format!("<{lanes} x {scalar}>");
        let unchanged = plan.expr_strides.get(&id) == Some(&Some(Stride::Invariant));
        let value = match self.kernel.expr(id) {
            Expr::Const(value) => return format!("splat ({scalar} {})", self.constant(*value).re()),
            _ if unchanged => {
                let value = self.value(id);
                self.splat(scalar, lanes, value.re())
            }
            Expr::Load(buffer, index) if plan.expr_strides.get(index) == Some(&Some(Stride::Gathered)) => {
                self.gather(plan, lanes, *buffer, *index, known)
            }
            Expr::Load(buffer, index) => {
                let (buffer, index) = (*buffer, self.index(*index));
                match known.mask().filter(|_| !self.is_tile(buffer)) {
                    None => {
                        let (address, align) = self.element_address(buffer, &index);
                        let metadata = self.load_metadata(buffer);
                        self.op(format!("load {vector}, ptr {address}, align {align}{metadata}"))
                    }
                    Some(mask) => {
                        // The first lanes may be inactive, with an address before the array.
                        let elem = self.kernel.buffer(buffer).elem;
                        let (data, align) = (self.data(buffer), crate::runtime::memory::align(elem));
                        let address = self.op(format!("getelementptr {}, ptr {data}, i64 {index}", stored(elem)));
                        let name = format!("llvm.masked.load.{}.p0", suffix(plan.dtype, lanes));
                        let masks = format!("<{lanes} x i1>");
                        self.declare(&name, || format!("declare {vector} @{name}(ptr, i32 immarg, {masks}, {vector})"));
                        self.op(format!(
                            "call {vector} @{name}(ptr {address}, i32 {align}, {masks} {mask}, {vector} zeroinitializer)"
                        ))
                    }
                }
            }
            Expr::Vector(_) => "poison".to_string(),
            Expr::Call(op, _, operands) => {
                let values: Vec<String> = operands.iter().map(|id| self.vector(plan, lanes, *id, known)).collect();
                match (&op.info().form, &values[..]) {
                    (Form::Comparison(comparison), [a, b]) => {
                        let [a, b] = [a, b].map(|value| Val::One(value.clone()));
                        let (op, dtype) = (*comparison, plan.dtype);
                        self.with_lanes(lanes as u16, |e| e.compare(op, dtype, (&a, dtype), (&b, dtype)))
                    }
                    (Form::Select, [mask, a, b]) => {
                        let [a, b] = [a, b].map(|value| Val::One(value.clone()));
                        let chosen = self.with_lanes(lanes as u16, |e| e.blend_lanes(mask, plan.dtype, &a, &b));
                        chosen.re().to_string()
                    }
                    (_, [a]) => {
                        let a = [Val::One(a.clone())];
                        let result = self.with_lanes(lanes as u16, |e| e.apply(*op, plan.dtype, &a, None));
                        result.re().to_string()
                    }
                    _ => {
                        let folded = values.into_iter().reduce(|a, b| self.vector_op(*op, plan.dtype, lanes, &a, &b));
                        folded.unwrap_or_default()
                    }
                }
            }
            // The plan has checked that the declaration is in the loop.
            Expr::Var(var) => known.vars.get(var).cloned().unwrap_or_else(|| "poison".into()),
        };
        known.exprs.insert(id, value.clone());
        value
    }

    /// `a * b + c`, fused if the target has such an instruction.
    fn multiply_add(&mut self, dtype: DType, lanes: usize, a: &str, b: &str, c: &str) -> String {
        let vector = format!("<{lanes} x {}>", ty(dtype));
        let name = format!("llvm.fmuladd.{}", suffix(dtype, lanes));
        self.declare(&name, || format!("declare {vector} @{name}({vector}, {vector}, {vector})"));
        let flags = self.flags;
        self.op(format!("call {flags}{vector} @{name}({vector} {a}, {vector} {b}, {vector} {c})"))
    }

    fn vector_op(&mut self, op: Op, dtype: DType, lanes: usize, a: &str, b: &str) -> String {
        let vector = format!("<{lanes} x {}>", ty(dtype));
        let float = dtype.kind() == Kind::Float;
        match instruction(op, dtype) {
            Some(Instruction::Function(function)) => {
                let name = format!("llvm.{function}.{}", suffix(dtype, lanes));
                self.declare(&name, || format!("declare {vector} @{name}({vector}, {vector})"));
                self.op(format!("call {vector} @{name}({vector} {a}, {vector} {b})"))
            }
            Some(Instruction::Plain(name)) => {
                let flags = if float { self.flags } else { "" };
                self.op(format!("{name} {flags}{vector} {a}, {b}"))
            }
            None => {
                let values = [a, b].map(|value| Val::One(value.to_string()));
                let result = self.with_lanes(lanes as u16, |e| e.apply(op, dtype, &values, None));
                result.re().to_string()
            }
        }
    }
}
