//! Elements that lie apart, at places that a list of coordinates names.
//!
//! They are loaded one by one and put side by side. On the one processor where both were measured (a Zen 4) that takes less time than
//! the instructions that gather, but for vectors that neither fit the second cache nor lie in memory.
//!
//! What is left of a row is one vector. Where masks have registers of their own (AVX-512) lanes are masked; elsewhere loading some lanes takes
//! longer than loading all (in C on a Zen 3, a million rows of three: 5.3 ms with masked loads, 2.6 with plain ones, 2.4 one by one), so that the vector takes
//! what comes after the row, too, and drops it. Rows that are as long as each other need no such thing: how many are left is foreseen, and they are added one by one.

use super::super::{Emitter, FEW, Val, stored, ty};
use super::some::Part;
use super::{Change, Known, Plan};
use tamis_ir::algebra::Op;
use tamis_ir::format::Width;
use tamis_ir::kernel::{BufferId, Elem, Expr, ExprId, Hint, Role, Stmt, VarId};

/// Lists that are longer, in bytes, come from memory. Those of short rows are asked for ahead: processors foresee the next lines of a
/// long row, and lose their way between short ones.
const FAR: i64 = 16 << 20;

/// How many elements ahead.
const AHEAD: i64 = 256;

/// What is a short row. In still shorter ones, many would ask for the same.
const SHORT: std::ops::Range<i64> = 4..32;

impl Emitter<'_> {
    /// The value of an index for each lane.
    pub(super) fn places_of(&mut self, plan: &Plan, lanes: usize, id: ExprId, known: &Known) -> Vec<String> {
        let change = plan.known.get(&id).copied().flatten();
        match self.kernel.expr(id) {
            Expr::Var(var) if change == Some(Change::Apart) => known.apart.get(var).cloned().unwrap_or_default(),
            Expr::Load(buffer, index) if change == Some(Change::Apart) => {
                let (buffer, first) = (*buffer, self.index(*index));
                match &known.part {
                    Part::All | Part::Beyond(_) => self.coordinates(buffer, &first, lanes),
                    Part::Masked(mask) => self.some_coordinates(buffer, &first, lanes, mask),
                }
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

    /// Neighbours of a list of coordinates, of which the mask leaves the first, at least one; the others are the first one again, so that
    /// there is something to load for them.
    fn some_coordinates(&mut self, buffer: BufferId, first: &str, lanes: usize, mask: &str) -> Vec<String> {
        let elem = self.kernel.buffer(buffer).elem;
        let (place, align) = self.neighbours(buffer, first);
        let metadata = self.load_metadata(buffer);
        let scalar = stored(elem);
        let (vector, masks) = (format!("<{lanes} x {scalar}>"), format!("<{lanes} x i1>"));
        let one = self.op(format!("load {scalar}, ptr {place}, align {align}{metadata}"));
        let same = self.splat(scalar, lanes, &one);
        let name = format!("llvm.masked.load.v{lanes}{scalar}.p0");
        self.declare(&name, || format!("declare {vector} @{name}(ptr, i32 immarg, {masks}, {vector})"));
        let (place, masks) = (format!("ptr {place}, i32 {align}"), format!("{masks} {mask}"));
        let all = self.op(format!("call {vector} @{name}({place}, {masks}, {vector} {same})"));
        let half = lanes / 2;
        if elem.size() == 8 || !cfg!(target_endian = "little") {
            let each = (0..lanes).map(|k| self.op(format!("extractelement {vector} {all}, i64 {k}")));
            let each: Vec<String> = each.collect();
            let wide = |number: &String| match elem.size() {
                8 => number.clone(),
                _ => self.op(format!("zext {scalar} {number} to i64")),
            };
            return each.iter().map(wide).collect();
        }
        // Out of a vector, too, two at a time.
        let pairs = self.op(format!("bitcast {vector} {all} to <{half} x i64>"));
        let mut found = Vec::with_capacity(lanes);
        for k in 0..half {
            let pair = self.op(format!("extractelement <{half} x i64> {pairs}, i64 {k}"));
            found.push(self.op(format!("and i64 {pair}, {}", u32::MAX)));
            found.push(self.op(format!("lshr i64 {pair}, 32")));
        }
        found
    }

    /// Whether a loop is nothing but sums of elements that lie apart, and some of its list can be loaded as fast as all that a vector takes.
    pub(super) fn is_sum_apart(&self, plan: &Plan) -> bool {
        let change = |id: &ExprId| plan.known.get(id).copied().flatten();
        let loads = |id: &ExprId| match self.kernel.expr(*id) {
            Expr::Load(buffer, _) if change(id) == Some(Change::Apart) => self.kernel.buffer(*buffer).elem.size() >= 4,
            // What grows from lane to lane has no first one to take instead.
            Expr::Call(_, _, operands) if change(id) == Some(Change::Apart) => {
                operands.iter().all(|id| change(id) != Some(Change::Next))
            }
            _ => true,
        };
        self.is_sum(plan) && plan.known.keys().all(loads)
    }

    /// A loop over vectors, and one vector for what is left: from one element to all of its lanes. Rows are often short, and whether one has two
    /// elements or three is not foreseen: what is done for one has to be done for the other.
    pub(super) fn sum_apart(&mut self, plan: &Plan, var: VarId, start: ExprId, stop: ExprId, body: &[Stmt]) {
        let regular = if self.has_mask_registers() { None } else { self.regular(var, start, stop, body) };
        let (start, stop) = (self.index(start), self.index(stop));
        let name = self.kernel.var(var).name.clone();
        let (some, after) = (self.fresh("some"), self.fresh("after"));
        let any = self.op(format!("icmp slt i64 {start}, {stop}"));
        self.fork(&any, &some, &after);
        self.start(&some);
        let vector = format!("<{FEW} x {}>", ty(plan.dtype));
        let slots: Vec<String> = plan.sums.iter().map(|_| self.sums(&vector)).collect();
        let last = self.op(format!("sub nsw i64 {stop}, 1"));
        let length = self.op(format!("sub nsw i64 {last}, {start}"));
        let strips = self.op(format!("and i64 {length}, {}", -(FEW as i64)));
        let rest = self.op(format!("add nsw i64 {start}, {strips}"));
        self.count(&name, &start, &rest, FEW, Hint::default(), |e, i| {
            e.turn(plan, FEW, var, i, body, &slots, Part::All);
        });
        match self.has_mask_registers() {
            true => {
                let left = self.op(format!("sub nsw i64 {stop}, {rest}"));
                let mask = self.lower_lanes(plan.dtype, FEW, &left);
                self.turn(plan, FEW, var, &rest, body, &slots, Part::Masked(mask));
            }
            false => self.rest_apart(plan, (var, &rest, &stop), body, &slots, regular.as_deref()),
        }
        for ((sum, subtracts), slot) in plan.sums.iter().zip(&slots) {
            self.add_up(plan.dtype, FEW, *sum, *subtracts, slot);
        }
        self.jump(&after);
        self.start(&after);
    }

    /// What is left of a row, from one element to all lanes, where processors have no masks for that. In one vector with whatever comes after the
    /// row, of which nothing is kept; or, if rows are regular, so that how many are left is foreseen, or nothing comes after, one by one.
    fn rest_apart(
        &mut self,
        plan: &Plan,
        (var, rest, stop): (VarId, &str, &str),
        body: &[Stmt],
        slots: &[String],
        regular: Option<&str>,
    ) {
        let after = self.fresh("turned");
        if let Some(room) = self.room(plan, var, rest, FEW, body) {
            let (beyond, within) = (self.fresh("beyond"), self.fresh("within"));
            let always = match (regular, room.always) {
                (Some(regular), before) => {
                    let varies = self.op(format!("xor i1 {regular}, true"));
                    Some(self.all_of(before, varies))
                }
                (None, before) => before,
            };
            if let Some(always) = always {
                let perhaps = self.fresh("perhaps");
                self.fork(&always, &perhaps, &within);
                self.start(&perhaps);
            }
            self.fork(&room.here, &beyond, &within);
            self.start(&beyond);
            let left = self.op(format!("sub nsw i64 {stop}, {rest}"));
            let mask = self.mask(plan.dtype, FEW, &left);
            self.turn(plan, FEW, var, rest, body, slots, Part::Beyond(mask));
            self.jump(&after);
            self.start(&within);
        }
        let name = self.kernel.var(var).name.clone();
        self.count(&name, rest, stop, 1, Hint::default(), |e, i| {
            e.define(var, Val::One(i.to_string()));
            e.stmts(body);
        });
        self.jump(&after);
        self.start(&after);
    }

    /// Whether rows seem to be as long as each other, which two of them and the mean tell; none if it is not known what rows are. That does not
    /// change while a kernel runs.
    fn regular(&mut self, counter: VarId, start: ExprId, stop: ExprId, body: &[Stmt]) -> Option<String> {
        let (Expr::Load(pos, row), Expr::Load(other, next)) = (self.kernel.expr(start), self.kernel.expr(stop)) else {
            return None;
        };
        let one = |id: &ExprId| matches!(self.kernel.expr(*id), Expr::Const(value) if value.as_i64() == Some(1));
        let follows = match self.kernel.expr(*next) {
            Expr::Call(Op::Add, _, sum) => sum.len() == 2 && sum.contains(row) && sum.iter().any(one),
            _ => false,
        };
        let input = self.kernel.buffer(*pos).role == Role::Input;
        let lists = self.lists(counter, body).into_iter();
        let (pos, (list, _)) = (*pos, lists.take(1).find(|_| pos == other && follows && input)?);
        let (ends, entries) = (self.len(pos), self.len(list));
        let rows = self.op(format!("sub nsw i64 {ends}, 1"));
        let first = self.op(format!("udiv i64 {rows}, 3"));
        let second = self.op(format!("shl nuw nsw i64 {first}, 1"));
        let [a, b] = [first, second].map(|row| {
            let next = self.op(format!("add nuw nsw i64 {row}, 1"));
            let (start, stop) = (self.load(pos, &row), self.load(pos, &next));
            self.op(format!("sub nsw i64 {}, {}", stop.re(), start.re()))
        });
        let same = self.op(format!("icmp eq i64 {a}, {b}"));
        let all = self.op(format!("mul i64 {a}, {rows}"));
        let off = self.op(format!("sub i64 {all}, {entries}"));
        let some = self.op(format!("lshr i64 {entries}, 4"));
        let above = self.op(format!("add i64 {off}, {some}"));
        let twice = self.op(format!("shl i64 {some}, 1"));
        let near = self.op(format!("icmp ule i64 {above}, {twice}"));
        Some(self.op(format!("and i1 {same}, {near}")))
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
    /// coordinates, and what it reads beside them; or of one over neighbours that have no coordinates, as those of a band.
    pub(in super::super) fn prefetch(&mut self, counter: VarId, start: ExprId, stop: ExprId, body: &[Stmt]) {
        let constant = matches!(self.kernel.expr(start), Expr::Const(_));
        let counts = !self.kernel.var(counter).mutable;
        if constant || !counts || body.iter().any(|stmt| stmt.blocks().next().is_some()) {
            return;
        }
        let mut read = self.lists(counter, body);
        let listed = |(buffer, _): &(BufferId, ExprId)| matches!(self.kernel.buffer(*buffer).elem, Elem::Index(_));
        if !read.iter().any(listed) {
            read = self.stretches(counter, body);
        }
        let size = |(buffer, _): &(BufferId, ExprId)| self.kernel.buffer(*buffer).elem.size() as i64;
        let Some(largest) = read.iter().copied().max_by_key(size) else { return };
        let far = FAR / size(&largest);
        let (start, stop) = (self.index(start), self.index(stop));
        self.define(counter, Val::One(start.clone()));
        self.forget();
        let first: Vec<(BufferId, String)> = read.iter().map(|(buffer, index)| (*buffer, self.index(*index))).collect();
        self.forget();
        let (ahead, after) = (self.fresh("ahead"), self.fresh("asked"));
        let len = self.len(largest.0);
        let far = self.op(format!("icmp sgt i64 {len}, {far}"));
        let turns = self.op(format!("sub nsw i64 {stop}, {start}"));
        let beyond = self.op(format!("sub i64 {turns}, {}", SHORT.start));
        let short = self.op(format!("icmp ult i64 {beyond}, {}", SHORT.end - SHORT.start));
        let both = self.op(format!("and i1 {far}, {short}"));
        self.fork(&both, &ahead, &after);
        self.start(&ahead);
        let name = "llvm.prefetch.p0";
        self.declare(name, || format!("declare void @{name}(ptr, i32 immarg, i32 immarg, i32 immarg)"));
        for (buffer, first) in first {
            let elem = self.kernel.buffer(buffer).elem;
            let ty = format!("[{} x i8]", elem.size());
            let data = self.data(buffer);
            let later = self.op(format!("add nsw i64 {first}, {AHEAD}"));
            // Past the end of a list there is nothing to be had, and nothing happens.
            let place = self.op(format!("getelementptr {ty}, ptr {data}, i64 {later}"));
            self.line(format!("call void @{name}(ptr {place}, i32 0, i32 3, i32 1)"));
        }
        self.jump(&after);
        self.start(&after);
    }

    /// The inputs that statements read from one element to the next, each counted as the loop counts.
    fn lists(&self, counter: VarId, body: &[Stmt]) -> Vec<(BufferId, ExprId)> {
        self.inputs(body, |index| *index == Expr::Var(counter))
    }

    /// The inputs that statements read from one element to the next, counted from elsewhere.
    fn stretches(&self, counter: VarId, body: &[Stmt]) -> Vec<(BufferId, ExprId)> {
        let declared = |var: VarId| {
            body.iter().any(|stmt| matches!(stmt, Stmt::Let { var: v, .. } | Stmt::Search { var: v, .. } if *v == var))
        };
        let fixed = |id: ExprId| {
            let mut fixed = true;
            self.kernel.visit_expr(id, &mut |expr| {
                fixed &= match expr {
                    Expr::Var(var) => *var != counter && !declared(*var) && !self.kernel.var(*var).mutable,
                    Expr::Load(..) => false,
                    _ => true,
                };
            });
            fixed
        };
        let counts = |id: ExprId| *self.kernel.expr(id) == Expr::Var(counter);
        self.inputs(body, |index| match index {
            Expr::Call(Op::Add, _, sum) => match sum[..] {
                [a, b] => counts(a) && fixed(b) || counts(b) && fixed(a),
                _ => false,
            },
            _ => false,
        })
    }

    /// The inputs that statements read at certain indices, in the order in which a kernel has them.
    fn inputs(&self, body: &[Stmt], wanted: impl Fn(&Expr) -> bool) -> Vec<(BufferId, ExprId)> {
        let mut found = Vec::new();
        for stmt in body {
            stmt.each_expr(|id| {
                self.kernel.visit_expr(id, &mut |expr| {
                    if let Expr::Load(buffer, index) = expr
                        && self.kernel.buffer(*buffer).role == Role::Input
                        && wanted(self.kernel.expr(*index))
                    {
                        found.push((*buffer, *index));
                    }
                });
            });
        }
        found.sort_unstable_by_key(|(buffer, index)| (buffer.index(), index.index()));
        found.dedup();
        found
    }
}
