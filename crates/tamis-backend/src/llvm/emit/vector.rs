//! Loops over neighbours as explicit vectors.
//!
//! Most loops with a hint add and multiply elements of one type that lie side by side. These are written with vectors in
//! them right away, since having LLVM find out what is known here takes longer than all else in a compilation. A loop over
//! a tile is a single vector as long as the tile; any other is a loop over vectors of the processor's size, and one over
//! what is left. What is left of a sum is added up in vectors, too, whose last one is filled with zeros: one by one, each addition would
//! wait for the one before. Loops that hold anything else are written as they are, and LLVM's passes look at them.

mod gather;
mod some;
mod sums;

pub(super) use sums::Carried;

use some::Part;

use super::super::TargetCpu;
use super::stmt::RELAXED;
use super::{Emitter, FEW, Val, stored, ty};
use rustc_hash::{FxHashMap, FxHashSet};
use tamis_ir::algebra::Op;
use tamis_ir::kernel::{BufferId, Elem, Expr, ExprId, Hint, Kernel, Role, Stmt, VarId};
use tamis_ir::{DType, Kind};

/// Sums need several vectors: each addition waits for the one before.
const SUMS: usize = 4;

/// Loops of so few turns that fill no vector, or go over arrays that are none, are written turn by turn.
const SHORTEST: i64 = 4;

/// What a loop over a tile may hold in one vector, in bytes.
const LARGEST: usize = 1024;

/// How the value of a variable or an expression changes from one turn to the next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    /// Not at all.
    None,
    /// An index that grows by one.
    Next,
    /// Elements of a vector.
    Vector,
    /// An index that is computed for each turn from a list of coordinates.
    Apart,
}

/// A loop that can be written with vectors.
pub(super) struct Plan<'a> {
    kernel: &'a Kernel,
    dtype: DType,
    /// Whether elements may lie apart, at places that a list names.
    apart: bool,
    changes: FxHashMap<VarId, Change>,
    /// What is known of expressions: how they change, or that they cannot be written.
    known: FxHashMap<ExprId, Option<Change>>,
    /// What the loop adds to, and whether it subtracts.
    sums: Vec<(VarId, bool)>,
    /// What is written, and where.
    stores: Vec<(BufferId, ExprId)>,
}

impl<'a> Plan<'a> {
    fn new(kernel: &'a Kernel, counter: VarId, body: &[Stmt], apart: bool) -> Option<Plan<'a>> {
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
        let changes = FxHashMap::from_iter([(counter, Change::Next)]);
        let stores = body.iter().filter_map(|stmt| match stmt {
            Stmt::Store { buffer, index, .. } => Some((*buffer, *index)),
            _ => None,
        });
        let stores: Vec<(BufferId, ExprId)> = stores.collect();
        if stores.iter().any(|(buffer, index)| stores.iter().any(|(b, i)| b == buffer && i != index)) {
            return None;
        }
        let mut plan = Plan { kernel, dtype, apart, changes, known: FxHashMap::default(), sums: Vec::new(), stores };
        for stmt in body {
            match stmt {
                Stmt::Let { var, value } if !kernel.var(*var).mutable => {
                    let change = plan.change(*value)?;
                    plan.changes.insert(*var, change);
                }
                Stmt::Store { buffer, index, value } => {
                    let fits = kernel.buffer(*buffer).elem == Elem::Value(dtype)
                        && kernel.exprs.dtype(*value) == dtype
                        && plan.change(*index)? == Change::Next;
                    (fits && matches!(plan.change(*value)?, Change::None | Change::Vector)).then_some(())?;
                }
                Stmt::Assign { var, value } => {
                    let (subtracts, added) = plan.added(*var, *value)?;
                    matches!(plan.change(added)?, Change::None | Change::Vector).then_some(())?;
                    plan.sums.push((*var, subtracts));
                }
                _ => return None,
            }
        }
        // A sum that is read while it grows would be another number.
        let sums = &plan.sums;
        let reads_sum = |id: ExprId| {
            let mut found = false;
            kernel.visit_expr(id, &mut |expr| {
                found |= matches!(expr, Expr::Var(var) if sums.iter().any(|(sum, _)| sum == var));
            });
            found
        };
        let alone = body.iter().all(|stmt| match stmt {
            Stmt::Let { value, .. } => !reads_sum(*value),
            Stmt::Store { index, value, .. } => !reads_sum(*index) && !reads_sum(*value),
            Stmt::Assign { var, value } => plan.added(*var, *value).is_some_and(|(_, added)| !reads_sum(added)),
            _ => false,
        });
        alone.then_some(plan)
    }

    /// What an assignment adds to a variable (or subtracts from it).
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

    /// Whether an expression is zero where neighbours that it loads are.
    fn is_zero_without(&self, id: ExprId) -> bool {
        let vector = |id: ExprId| self.known.get(&id) == Some(&Some(Change::Vector));
        match self.kernel.expr(id) {
            Expr::Load(_, index) => vector(id) && self.known.get(index) == Some(&Some(Change::Next)),
            Expr::Call(Op::Mul, _, operands) => operands.iter().all(|id| vector(*id) && self.is_zero_without(*id)),
            _ => false,
        }
    }

    /// How an expression changes, if it can be written at all.
    fn change(&mut self, id: ExprId) -> Option<Change> {
        if let Some(change) = self.known.get(&id) {
            return *change;
        }
        // A variable is declared before it is used, so what is found stays.
        let change = self.find_change(id);
        self.known.insert(id, change);
        change
    }

    fn find_change(&mut self, id: ExprId) -> Option<Change> {
        let kernel = self.kernel;
        match kernel.expr(id) {
            Expr::Const(_) => Some(Change::None),
            Expr::Var(var) => Some(self.changes.get(var).copied().unwrap_or(Change::None)),
            Expr::Load(buffer, index) => {
                let written = self.stores.iter().find(|(written, _)| written == buffer).map(|(_, place)| *place);
                match self.change(*index)? {
                    Change::None => written.is_none().then_some(Change::None),
                    // What other turns write is not read.
                    Change::Next => {
                        let own = written.is_none_or(|place| place == *index);
                        match kernel.buffer(*buffer).elem {
                            Elem::Value(dtype) => (own && dtype == self.dtype).then_some(Change::Vector),
                            Elem::Index(_) => (self.apart && written.is_none()).then_some(Change::Apart),
                        }
                    }
                    Change::Apart => {
                        let fits = written.is_none() && kernel.buffer(*buffer).elem == Elem::Value(self.dtype);
                        fits.then_some(Change::Vector)
                    }
                    Change::Vector => None,
                }
            }
            Expr::Call(op, dtype, operands) => {
                let changes: Vec<Change> = operands.iter().map(|id| self.change(*id)).collect::<Option<_>>()?;
                if changes.iter().all(|change| *change == Change::None) {
                    return Some(Change::None);
                }
                let one_type = operands.iter().all(|id| kernel.exprs.dtype(*id) == *dtype);
                match (op, &changes[..]) {
                    (Op::Add, [Change::Next, Change::None] | [Change::None, Change::Next])
                    | (Op::Sub, [Change::Next, Change::None])
                        if *dtype == DType::I64 && one_type =>
                    {
                        Some(Change::Next)
                    }
                    (Op::Add | Op::Sub | Op::Mul, [_, _])
                        if changes.contains(&Change::Apart) && *dtype == DType::I64 && one_type =>
                    {
                        (!changes.contains(&Change::Vector)).then_some(Change::Apart)
                    }
                    _ => {
                        let plain = |change: &Change| matches!(change, Change::None | Change::Vector);
                        let fits = one_type && *dtype == self.dtype && changes.iter().all(plain);
                        let written = changes.len() > 1 && instruction(*op, *dtype).is_some();
                        (fits && written).then_some(Change::Vector)
                    }
                }
            }
        }
    }
}

/// An operator on vectors.
enum Instruction {
    /// With the flags of the loop, if its operands are floats.
    Plain(&'static str),
    /// A function of LLVM.
    Function(&'static str),
}

/// What an operator of two operands is on vectors of floats or integers.
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

/// What the names of LLVM's functions say of a vector.
fn suffix(dtype: DType, lanes: usize) -> String {
    format!("v{lanes}{}{}", if dtype.kind() == Kind::Float { "f" } else { "i" }, 8 * dtype.size())
}

/// The size of the processor's vectors. Any would do; this one is neither split nor left empty.
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

/// Whether a processor chooses among vectors by a mask in a vector, and has no other way for floating-point numbers.
pub(super) fn blends(target: &TargetCpu) -> bool {
    let has = |feature: &str| target.features.split(',').any(|word| word == feature);
    let known = matches!(target.cpu.as_str(), "x86-64-v2" | "x86-64-v3");
    target.triple.starts_with("x86_64") && (known || has("+sse4.1")) && !has("+avx512f")
}

/// The tiles that are vectors. A tile that is now a vector and now an array would stay in memory, so it is one that all
/// loops over it can be written for.
pub(super) fn tiles_as_vectors(kernel: &Kernel, vector_bytes: usize) -> FxHashSet<BufferId> {
    let is_tile = |buffer: BufferId| matches!(kernel.buffer(buffer).role, Role::Tile(_));
    // What is used together, and whether that is as a vector.
    let mut uses: Vec<(FxHashSet<BufferId>, bool)> = Vec::new();
    let mut open: Vec<&[Stmt]> = vec![&kernel.body];
    while let Some(block) = open.pop() {
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
            let turns = match stmt {
                Stmt::For { var, start, stop, body, hint } if hint.vectorise => {
                    Plan::new(kernel, *var, body, false).and_then(|plan| plan.whole(*start, *stop, vector_bytes))
                }
                _ => None,
            };
            note(stmt);
            if turns.is_some() {
                stmt.blocks().flatten().for_each(note);
            } else {
                open.extend(stmt.blocks().map(|block| &block[..]));
            }
            if !used.is_empty() {
                uses.push((used, turns.is_some()));
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

/// How a loop is one turn of a vector.
#[derive(Clone, Copy)]
struct Whole {
    lanes: usize,
    /// Whether its length is known only when it runs: at most the lanes.
    masked: bool,
}

impl Plan<'_> {
    /// The vector that a loop of a constant length, or over the first elements of a tile, is a single turn of.
    fn whole(&self, start: ExprId, stop: ExprId, vector_bytes: usize) -> Option<Whole> {
        let constant = |id: ExprId| match self.kernel.expr(id) {
            Expr::Const(value) => value.as_i64(),
            _ => None,
        };
        let start = constant(start).filter(|_| self.sums.is_empty())?;
        let (length, masked) = match constant(stop) {
            Some(stop) => (stop.checked_sub(start)?, false),
            None => (self.tile().filter(|_| start == 0 && has_masks(self.dtype, vector_bytes))?, true),
        };
        let lanes = usize::try_from(length).ok()?;
        let fits = lanes.is_power_of_two() && lanes > 1 && lanes <= LARGEST / self.dtype.size();
        fits.then_some(Whole { lanes, masked })
    }

    /// What a loop loads at indices that change in this way, but from tiles.
    fn loads(&self, body: &[Stmt], change: Change) -> Vec<(BufferId, ExprId)> {
        let mut found = Vec::new();
        for stmt in body {
            stmt.each_expr(|id| {
                self.kernel.visit_expr(id, &mut |expr| {
                    if let Expr::Load(buffer, index) = expr
                        && self.known.get(index) == Some(&Some(change))
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

    /// Whether an index is known before the loop, but for the loop's own: what the loop itself declares is not.
    fn is_known_before(&self, counter: VarId, index: ExprId) -> bool {
        let mut known = true;
        self.kernel.visit_expr(index, &mut |expr| {
            known &= !matches!(expr, Expr::Var(v) if *v != counter && self.changes.contains_key(v));
        });
        known
    }

    /// The tiles that are read or written.
    fn tiles(&self) -> impl Iterator<Item = BufferId> {
        let loads = self.known.keys().filter_map(|id| match self.kernel.expr(*id) {
            Expr::Load(buffer, _) => Some(*buffer),
            _ => None,
        });
        let buffers = loads.chain(self.stores.iter().map(|(buffer, _)| *buffer));
        buffers.filter(|buffer| matches!(self.kernel.buffer(*buffer).role, Role::Tile(_)))
    }

    /// How long they are, if they agree.
    fn tile(&self) -> Option<i64> {
        let mut lengths = self.tiles().filter_map(|buffer| match self.kernel.buffer(buffer).role {
            Role::Tile(length) => Some(i64::from(length)),
            _ => None,
        });
        let first = lengths.next()?;
        lengths.all(|length| length == first).then_some(first)
    }
}

/// Whether some of a vector's lanes can be loaded as fast as all of them.
fn has_masks(dtype: DType, vector_bytes: usize) -> bool {
    vector_bytes >= 32 && dtype.size() >= 4
}

/// Vectors in registers: those of variables, and of expressions of one statement.
#[derive(Default)]
pub(super) struct Known {
    vars: FxHashMap<VarId, String>,
    /// Indices, one for each lane.
    apart: FxHashMap<VarId, Vec<String>>,
    exprs: FxHashMap<ExprId, String>,
    /// Which lanes there is something for.
    part: Part,
}

impl Emitter<'_> {
    /// Writes a loop with vectors, or says that it cannot be.
    pub(super) fn vector_loop(&mut self, stmt: &Stmt) -> bool {
        let Stmt::For { var, start, stop, body, hint } = stmt else { return false };
        if self.check || !hint.vectorise {
            return false;
        }
        let Some(plan) = Plan::new(self.kernel, *var, body, hint.short_trip) else { return false };
        let whole = plan.whole(*start, *stop, self.vector_bytes).filter(|whole| hint.unroll || whole.masked);
        let in_memory = plan.tiles().any(|tile| !self.tiles.contains(&tile));
        let short = self.turns(*start, *stop).filter(|turns| hint.unroll && *turns <= SHORTEST);
        if let Some(turns) = short
            && (in_memory || whole.is_none())
        {
            self.one_by_one(*var, *start, turns, body, *hint);
            return true;
        }
        // A tile in memory is read and written by loops that LLVM takes apart.
        if in_memory || hint.unroll && whole.is_none() {
            return false;
        }
        let outer = std::mem::replace(&mut self.flags, RELAXED);
        if whole.is_none() && hint.short_trip && self.is_sum_apart(&plan) {
            self.sum_apart(&plan, *var, *start, *stop, body);
        } else if whole.is_none() && !hint.short_trip && self.is_sum(&plan) {
            self.sum_strips(&plan, *var, *start, *stop, body);
        } else {
            let (start, stop) = (self.index(*start), self.index(*stop));
            match whole {
                Some(Whole { lanes, masked: false }) => self.turn(&plan, lanes, *var, &start, body, &[], Part::All),
                Some(Whole { lanes, masked: true }) => {
                    if !self.stores_some(&plan, lanes, (*var, &start, &stop), body) {
                        let mask = self.mask(plan.dtype, lanes, &stop);
                        self.turn(&plan, lanes, *var, &start, body, &[], Part::Masked(mask));
                    }
                }
                None => self.strips(&plan, *var, &start, &stop, body),
            }
        }
        self.flags = outer;
        true
    }

    /// How many turns a loop has, if that is known: between constants, or up to a constant more than its start.
    pub(super) fn turns(&self, start: ExprId, stop: ExprId) -> Option<i64> {
        let constant = |id: ExprId| match self.kernel.expr(id) {
            Expr::Const(value) => value.as_i64(),
            _ => None,
        };
        let turns = match self.kernel.expr(stop) {
            Expr::Call(Op::Add, _, sum) if sum.first() == Some(&start) => constant(*sum.get(1)?)?,
            _ => constant(stop)?.checked_sub(constant(start)?)?,
        };
        (turns > 0).then_some(turns)
    }

    /// A few turns one after the other. Elements of a short array are in registers then, as they are not where some of them are a vector.
    pub(super) fn one_by_one(&mut self, var: VarId, start: ExprId, turns: i64, body: &[Stmt], hint: Hint) {
        let start = self.index(start);
        let outer = self.flags;
        if hint.vectorise {
            self.flags = RELAXED;
        }
        for turn in 0..turns {
            self.forget();
            let index = self.op(format!("add nsw i64 {start}, {turn}"));
            self.define(var, Val::One(index));
            self.stmts(body);
        }
        self.flags = outer;
    }

    /// Writes one number to all elements from `start` to `stop`.
    pub(super) fn fill_strips(&mut self, buffer: BufferId, start: &str, stop: &str, value: &Val) {
        let elem = self.kernel.buffer(buffer).elem;
        let lanes = (self.vector_bytes / elem.size()).max(2);
        let vector = format!("<{lanes} x {}>", stored(elem));
        let stored_value = self.as_stored(buffer, value);
        let all = self.splat(stored(elem), lanes, &stored_value);
        let rest = self.whole_strips(start, stop, lanes);
        self.count("k", start, &rest, lanes, Hint::default(), |e, k| {
            let (place, align) = e.neighbours(buffer, k);
            let scope = e.scope(buffer);
            e.line(format!("store {vector} {all}, ptr {place}, align {align}{scope}"));
        });
        self.count("k", &rest, stop, 1, Hint::default(), |e, k| e.store(buffer, k, value));
    }

    /// Where what is left begins after as many vectors as there are.
    fn whole_strips(&mut self, start: &str, stop: &str, lanes: usize) -> String {
        let length = self.op(format!("sub nsw i64 {stop}, {start}"));
        let length = self.intrinsic("smax", DType::I64, &[&length, "0"]);
        let strips = self.op(format!("and i64 {length}, {}", -(lanes as i64)));
        self.op(format!("add nsw i64 {start}, {strips}"))
    }

    /// A vector with the same number everywhere.
    fn splat(&mut self, scalar: &str, lanes: usize, value: &str) -> String {
        let vector = format!("<{lanes} x {scalar}>");
        let first = self.op(format!("insertelement {vector} poison, {scalar} {value}, i64 0"));
        self.op(format!("shufflevector {vector} {first}, {vector} poison, <{lanes} x i32> zeroinitializer"))
    }

    /// A loop over vectors, and one over what is left.
    fn strips(&mut self, plan: &Plan, var: VarId, start: &str, stop: &str, body: &[Stmt]) {
        let native = (self.vector_bytes / plan.dtype.size()).max(2);
        let lanes = match () {
            () if plan.apart => FEW,
            () if plan.sums.is_empty() => native,
            () => SUMS * native,
        };
        let name = self.kernel.var(var).name.clone();
        // Whoever has too few turns learns so at once: rows are often short.
        let (ahead, after, before) = (self.fresh("strips"), self.fresh("rest"), self.block.clone());
        let length = self.op(format!("sub nsw i64 {stop}, {start}"));
        let any = self.op(format!("icmp sge i64 {length}, {lanes}"));
        self.fork(&any, &ahead, &after);
        self.start(&ahead);
        let strips = self.op(format!("and i64 {length}, {}", -(lanes as i64)));
        let strips_end = self.op(format!("add nsw i64 {start}, {strips}"));
        let vector = format!("<{lanes} x {}>", ty(plan.dtype));
        let slots: Vec<String> = plan.sums.iter().map(|_| self.sums(&vector)).collect();
        self.count(&name, start, &strips_end, lanes, Hint::default(), |e, i| {
            e.turn(plan, lanes, var, i, body, &slots, Part::All);
        });
        for ((sum, subtracts), slot) in plan.sums.iter().zip(&slots) {
            self.add_up(plan.dtype, lanes, *sum, *subtracts, slot);
        }
        let last = self.block.clone();
        self.jump(&after);
        self.start(&after);
        let rest = self.op(format!("phi i64 [ {start}, %{before} ], [ {strips_end}, %{last} ]"));
        self.count(&name, &rest, stop, 1, Hint::default(), |e, i| {
            e.define(var, Val::One(i.to_string()));
            e.stmts(body);
        });
    }

    /// One turn for as many elements as there are lanes (that the mask leaves), from this index on.
    #[expect(clippy::too_many_arguments, reason = "a loop, where it is, and what it adds to")]
    fn turn(
        &mut self,
        plan: &Plan,
        lanes: usize,
        counter: VarId,
        first: &str,
        body: &[Stmt],
        slots: &[String],
        part: Part,
    ) {
        let vector = format!("<{lanes} x {}>", ty(plan.dtype));
        let mut known = Known { part, ..Known::default() };
        let mut sums = plan.sums.iter().zip(slots);
        self.define(counter, Val::One(first.to_string()));
        for stmt in body {
            self.forget();
            known.exprs.clear();
            match stmt {
                Stmt::Let { var, value } => match plan.changes.get(var) {
                    Some(Change::Vector) => {
                        let value = self.vector(plan, lanes, *value, &mut known);
                        known.vars.insert(*var, value);
                    }
                    Some(Change::Apart) => {
                        let places = self.places_of(plan, lanes, *value, &known);
                        known.apart.insert(*var, places);
                    }
                    _ => {
                        let value = self.value(*value);
                        self.define(*var, value);
                    }
                },
                Stmt::Store { buffer, index, value } => {
                    let index = self.index(*index);
                    let value = self.vector(plan, lanes, *value, &mut known);
                    let (place, align) = self.neighbours(*buffer, &index);
                    let scope = self.scope(*buffer);
                    match known.mask().filter(|_| !self.is_tile(*buffer)) {
                        None => self.line(format!("store {vector} {value}, ptr {place}, align {align}{scope}")),
                        Some(mask) => {
                            let name = format!("llvm.masked.store.{}.p0", suffix(plan.dtype, lanes));
                            let masks = format!("<{lanes} x i1>");
                            self.declare(&name, || format!("declare void @{name}({vector}, ptr, i32 immarg, {masks})"));
                            let (value, place) = (format!("{vector} {value}"), format!("ptr {place}"));
                            self.line(format!(
                                "call void @{name}({value}, {place}, i32 {align}, {masks} {mask}){scope}"
                            ));
                        }
                    }
                }
                Stmt::Assign { var, value } => {
                    let Some((_, added)) = plan.added(*var, *value) else { continue };
                    let Some((_, slot)) = sums.next() else { continue };
                    let so_far = self.op(format!("load {vector}, ptr {slot}, align 64"));
                    let zero = plan.is_zero_without(added);
                    let changes = plan.known.get(&added) == Some(&Some(Change::Vector));
                    let mut sum = match self.kernel.expr(added) {
                        // Once and for all: added to one by one, some products would be rounded and others not.
                        Expr::Call(Op::Mul, _, factors)
                            if changes && factors.len() == 2 && plan.dtype.kind() == Kind::Float =>
                        {
                            let [a, b] = [factors[0], factors[1]].map(|id| self.vector(plan, lanes, id, &mut known));
                            self.multiply_add(plan.dtype, lanes, &a, &b, &so_far)
                        }
                        _ => {
                            let added = self.vector(plan, lanes, added, &mut known);
                            self.vector_op(Op::Add, plan.dtype, lanes, &so_far, &added)
                        }
                    };
                    if let Some(mask) = known.kept(zero) {
                        let lanes_kept = format!("select <{lanes} x i1> {mask}, {vector} {sum}");
                        sum = self.op(format!("{lanes_kept}, {vector} {so_far}"));
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

    /// The place of the first of some elements side by side, and its alignment.
    fn neighbours(&mut self, buffer: BufferId, index: &str) -> (String, usize) {
        let elem = self.kernel.buffer(buffer).elem;
        let (ty, data) = (stored(elem), self.data(buffer));
        let place = self.op(format!("getelementptr inbounds {ty}, ptr {data}, i64 {index}"));
        (place, crate::runtime::memory::align(elem))
    }

    /// The value of an expression for all lanes.
    fn vector(&mut self, plan: &Plan, lanes: usize, id: ExprId, known: &mut Known) -> String {
        if let Some(value) = known.exprs.get(&id) {
            return value.clone();
        }
        let scalar = ty(plan.dtype);
        let vector = format!("<{lanes} x {scalar}>");
        let unchanged = plan.known.get(&id) == Some(&Some(Change::None));
        let value = match self.kernel.expr(id) {
            Expr::Const(value) => return format!("splat ({scalar} {})", self.constant(*value).re()),
            _ if unchanged => {
                let value = self.value(id);
                self.splat(scalar, lanes, value.re())
            }
            Expr::Load(buffer, index) if plan.known.get(index) == Some(&Some(Change::Apart)) => {
                self.gather(plan, lanes, *buffer, *index, known)
            }
            Expr::Load(buffer, index) => {
                let (buffer, index) = (*buffer, self.index(*index));
                match known.mask().filter(|_| !self.is_tile(buffer)) {
                    None => {
                        let (place, align) = self.neighbours(buffer, &index);
                        let metadata = self.load_metadata(buffer);
                        self.op(format!("load {vector}, ptr {place}, align {align}{metadata}"))
                    }
                    Some(mask) => {
                        // The first lanes may be those that are left out, and lie before the array.
                        let elem = self.kernel.buffer(buffer).elem;
                        let (data, align) = (self.data(buffer), crate::runtime::memory::align(elem));
                        let place = self.op(format!("getelementptr {}, ptr {data}, i64 {index}", stored(elem)));
                        let name = format!("llvm.masked.load.{}.p0", suffix(plan.dtype, lanes));
                        let masks = format!("<{lanes} x i1>");
                        self.declare(&name, || format!("declare {vector} @{name}(ptr, i32 immarg, {masks}, {vector})"));
                        self.op(format!(
                            "call {vector} @{name}(ptr {place}, i32 {align}, {masks} {mask}, {vector} zeroinitializer)"
                        ))
                    }
                }
            }
            Expr::Call(op, _, operands) => {
                let values: Vec<String> = operands.iter().map(|id| self.vector(plan, lanes, *id, known)).collect();
                let folded = values.into_iter().reduce(|a, b| self.vector_op(*op, plan.dtype, lanes, &a, &b));
                folded.unwrap_or_default()
            }
            // The plan has seen a declaration in the loop.
            Expr::Var(var) => known.vars.get(var).cloned().unwrap_or_else(|| "poison".into()),
        };
        known.exprs.insert(id, value.clone());
        value
    }

    /// `a * b + c`, rounded once if the processor does that in one go.
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
            None => "poison".into(),
        }
    }
}
