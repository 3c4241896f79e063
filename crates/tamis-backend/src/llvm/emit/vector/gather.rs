//! Elements that lie apart, at places that a list of coordinates names.
//!
//! They are loaded one by one and put side by side. On the one processor where both were measured (a Zen 4) that takes less time than
//! the instructions that gather, but for vectors that neither fit the second cache nor lie in memory.

use super::super::{Emitter, Val, ty};
use super::{Change, Known, Plan};
use tamis_ir::format::Width;
use tamis_ir::kernel::{BufferId, Elem, Expr, ExprId, Role, Stmt, VarId};

/// Lists that are longer, in bytes, come from memory. Those of short rows are asked for ahead: processors foresee the next lines of a
/// long row, and lose their way between short ones.
const FAR: i64 = 16 << 20;

/// How many elements ahead.
const AHEAD: i64 = 256;

/// What is a short row. In still shorter ones, many would ask for the same.
const SHORT: std::ops::Range<i64> = 3..32;

impl Emitter<'_> {
    /// The value of an index for each lane.
    pub(super) fn places_of(&mut self, plan: &Plan, lanes: usize, id: ExprId, known: &Known) -> Vec<String> {
        let change = plan.known.get(&id).copied().flatten();
        match self.kernel.expr(id) {
            Expr::Var(var) if change == Some(Change::Apart) => known.apart.get(var).cloned().unwrap_or_default(),
            Expr::Load(buffer, index) if change == Some(Change::Apart) => {
                let (buffer, first) = (*buffer, self.index(*index));
                self.coordinates(buffer, &first, lanes)
            }
            Expr::Call(op, _, operands) if change == Some(Change::Apart) => {
                let operands: Vec<Vec<String>> =
                    operands.iter().map(|id| self.places_of(plan, lanes, *id, known)).collect();
                let (op, dtype) = (*op, tamis_ir::DType::I64);
                let lane = |lane: usize| operands.iter().map(move |operand| Val::One(operand[lane].clone())).collect();
                let values: Vec<Vec<Val>> = (0..lanes).map(lane).collect();
                values.iter().map(|values| self.apply(op, dtype, values, None).re().to_string()).collect()
            }
            _ => {
                let first = self.index(id);
                let next = change == Some(Change::Next);
                let lane = |k: usize| match k {
                    k if next && k > 0 => self.op(format!("add nsw i64 {first}, {k}")),
                    _ => first.clone(),
                };
                (0..lanes).map(lane).collect()
            }
        }
    }

    /// Neighbours of a list of coordinates. Two of 32 bits are one load, since loads are what there is most of.
    fn coordinates(&mut self, buffer: BufferId, first: &str, lanes: usize) -> Vec<String> {
        let mut found = Vec::with_capacity(lanes);
        let in_pairs = self.kernel.buffer(buffer).elem == Elem::Index(Width::U32) && cfg!(target_endian = "little");
        let step = if in_pairs { 2 } else { 1 };
        for k in (0..lanes).step_by(step) {
            let index = if k == 0 { first.to_string() } else { self.op(format!("add nsw i64 {first}, {k}")) };
            if !in_pairs {
                found.push(self.load(buffer, &index).re().to_string());
                continue;
            }
            let (place, align) = self.neighbours(buffer, &index);
            let metadata = self.load_metadata(buffer);
            let pair = self.op(format!("load i64, ptr {place}, align {align}{metadata}"));
            found.push(self.op(format!("and i64 {pair}, {}", u32::MAX)));
            found.push(self.op(format!("lshr i64 {pair}, 32")));
        }
        found
    }

    /// A vector of elements at the places of an index.
    pub(super) fn gather(
        &mut self,
        plan: &Plan,
        lanes: usize,
        buffer: BufferId,
        index: ExprId,
        known: &Known,
    ) -> String {
        let vector = format!("<{lanes} x {}>", ty(plan.dtype));
        let places = self.places_of(plan, lanes, index, known);
        let mut all = "poison".to_string();
        for (lane, place) in places.iter().enumerate() {
            let value = self.load(buffer, place);
            all = self.op(format!("insertelement {vector} {all}, {} {}, i64 {lane}", ty(plan.dtype), value.re()));
        }
        all
    }

    /// Asks for what a later row reads, where rows are short and all of them are more than caches hold: of a loop over a list of
    /// coordinates, and what it reads beside them.
    pub(in super::super) fn prefetch(&mut self, counter: VarId, start: ExprId, stop: ExprId, body: &[Stmt]) {
        let mut lists = Vec::new();
        self.lists(counter, body, &mut lists);
        lists.sort_unstable_by_key(|buffer: &BufferId| buffer.index());
        lists.dedup();
        let listed = lists.iter().any(|buffer| matches!(self.kernel.buffer(*buffer).elem, Elem::Index(_)));
        let constant = matches!(self.kernel.expr(start), Expr::Const(_));
        let inner = body.iter().any(|stmt| stmt.blocks().next().is_some());
        let size = |buffer: &BufferId| self.kernel.buffer(*buffer).elem.size() as i64;
        let Some(largest) = lists.iter().copied().max_by_key(size).filter(|_| listed && !constant && !inner) else {
            return;
        };
        let far = FAR / size(&largest);
        let (start, stop) = (self.index(start), self.index(stop));
        let (ahead, after) = (self.fresh("ahead"), self.fresh("asked"));
        let len = self.len(largest);
        let far = self.op(format!("icmp sgt i64 {len}, {far}"));
        let turns = self.op(format!("sub nsw i64 {stop}, {start}"));
        let beyond = self.op(format!("sub i64 {turns}, {}", SHORT.start));
        let short = self.op(format!("icmp ult i64 {beyond}, {}", SHORT.end - SHORT.start));
        let both = self.op(format!("and i1 {far}, {short}"));
        self.fork(&both, &ahead, &after);
        self.start(&ahead);
        let name = "llvm.prefetch.p0";
        self.declare(name, || format!("declare void @{name}(ptr, i32 immarg, i32 immarg, i32 immarg)"));
        let later = self.op(format!("add nsw i64 {start}, {AHEAD}"));
        for buffer in lists {
            let elem = self.kernel.buffer(buffer).elem;
            let ty = format!("[{} x i8]", elem.size());
            let data = self.data(buffer);
            // Past the end of a list there is nothing to be had, and nothing happens.
            let place = self.op(format!("getelementptr {ty}, ptr {data}, i64 {later}"));
            self.line(format!("call void @{name}(ptr {place}, i32 0, i32 3, i32 1)"));
        }
        self.jump(&after);
        self.start(&after);
    }

    /// The inputs that statements read from one element to the next.
    fn lists(&self, counter: VarId, body: &[Stmt], found: &mut Vec<BufferId>) {
        for stmt in body {
            stmt.each_expr(|id| {
                self.kernel.visit_expr(id, &mut |expr| {
                    if let Expr::Load(buffer, index) = expr
                        && *self.kernel.expr(*index) == Expr::Var(counter)
                        && self.kernel.buffer(*buffer).role == Role::Input
                    {
                        found.push(*buffer);
                    }
                });
            });
        }
    }
}
