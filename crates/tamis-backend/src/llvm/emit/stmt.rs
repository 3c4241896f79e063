//! LLVM IR of statements: control flow, counting loops, buffer growth, searches and sorts.

use super::{DESCRIPTOR, Emitter, Val, VariableLocation, parts_of, stored};
use crate::failure::Status;
use crate::runtime::memory::{element_bytes, growth};
use tamis_ir::kernel::{BufferId, Elem, Expr, ExprId, Hint, LoopKind, Role, Stmt, VarId};
use tamis_ir::{DType, Value};

/// Fast-math flags in loops that may be vectorised: reassociation, and contraction to fused
/// multiply-add.
pub(super) const RELAXED: &str = "reassoc contract ";

/// Maximum trip count of loops that are fully unrolled here, which is faster than LLVM's unroller.
const MAX_UNROLLED: i64 = 8;

impl Emitter<'_> {
    pub(super) fn stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Let { var, value: id } => {
                let value = self.value(*id);
                self.define(*var, value);
                self.define_ramp(*var, *id);
            }
            Stmt::Assign { var, value } => {
                let value = self.value(*value);
                self.assign(*var, &value);
            }
            Stmt::Store { buffer, index, value } if self.kernel.exprs.lanes(*index) > 1 => {
                self.store_lanes(*buffer, *index, *value, None);
            }
            Stmt::MaskedStore { buffer, index, value, mask } => {
                self.store_lanes(*buffer, *index, *value, Some(*mask));
            }
            Stmt::Update { buffer, index, op, value } => self.update(*buffer, *index, *op, *value),
            Stmt::Store { buffer, index, value } => {
                let index = self.index(*index);
                let value = self.value(*value);
                self.in_bounds(*buffer, &index);
                self.store(*buffer, &index, &value);
            }
            // Threads of a block are legalised; a single thread never waits.
            Stmt::Barrier => {}
            Stmt::Prefetch { buffer, index, distance, locality } => {
                let index = self.index(*index);
                self.prefetch_element(*buffer, &index, i64::from(*distance), *locality);
            }
            Stmt::For { var, start, stop, body, hint } => {
                // One thread runs all iterations of a concurrent loop.
                let vectorise = hint.vectorise || matches!(hint.kind, LoopKind::Vector { .. });
                let hint = &Hint { vectorise, ..*hint };
                if !self.check {
                    self.prefetch(*var, *start, *stop, body);
                }
                let trip_count =
                    self.trip_count(*start, *stop).filter(|count| hint.is_unrolled() && *count <= MAX_UNROLLED);
                match trip_count {
                    Some(count) if !hint.vectorise => self.unroll_fully(*var, *start, count, body, *hint),
                    _ if self.vector_loop(stmt) || self.append_loop(stmt) => {}
                    _ => {
                        let (start, stop) = (self.index(*start), self.index(*stop));
                        let name = self.kernel.var(*var).name.clone();
                        let accumulators = self.accumulators_in(None, body);
                        self.count(&name, &start, &stop, 1, *hint, |e, i| {
                            e.define(*var, Val::One(i.to_string()));
                            e.stmts(body);
                        });
                        self.accumulators_out(accumulators);
                    }
                }
            }
            Stmt::While { cond, body } => {
                let (head, inside, after) = (self.fresh("while"), self.fresh("do"), self.fresh("done"));
                let accumulators = self.accumulators_in(Some(*cond), body);
                self.jump(&head);
                self.start(&head);
                let condition = self.value(*cond);
                self.fork(condition.re(), &inside, &after);
                self.start(&inside);
                self.depth += 1;
                self.stmts(body);
                self.depth -= 1;
                let metadata = self.loop_metadata(Hint::default());
                self.line(format!("br label %{head}, !llvm.loop !{metadata}"));
                self.start(&after);
                self.accumulators_out(accumulators);
            }
            Stmt::If { cond, then, otherwise } => {
                let condition = self.value(*cond);
                let (yes, no, after) = (self.fresh("then"), self.fresh("else"), self.fresh("end"));
                self.fork(condition.re(), &yes, if otherwise.is_empty() { &after } else { &no });
                self.start(&yes);
                self.stmts(then);
                self.jump(&after);
                if !otherwise.is_empty() {
                    self.start(&no);
                    self.stmts(otherwise);
                    self.jump(&after);
                }
                self.start(&after);
            }
            Stmt::Labelled { label, body } => {
                let after = self.fresh("after");
                self.labels.push((*label, after.clone()));
                self.stmts(body);
                self.labels.pop();
                self.jump(&after);
                self.start(&after);
            }
            Stmt::Break(label) => {
                let target = self.labels.iter().rfind(|(known, _)| known == label).map(|(_, after)| after.clone());
                if let Some(after) = target {
                    self.jump(&after);
                    // The rest of this block is unreachable.
                    let dead = self.fresh("dead");
                    self.start(&dead);
                }
            }
            Stmt::Grow { buffer, len, fill } => self.grow(*buffer, *len, *fill),
            Stmt::Fill { buffer, start, len, value } => self.fill(*buffer, *start, *len, *value),
            Stmt::Search { var, buffer, start, stop, key, back } => {
                self.search(*var, *buffer, [*start, *stop, *key], *back);
            }
            Stmt::Sort { buffer, start, stop, flags } => self.sort(*buffer, *start, *stop, *flags),
            Stmt::Gemm(gemm) => self.gemm(gemm),
            Stmt::Reset { .. } | Stmt::Insert { .. } | Stmt::Finalize { .. } => self.workspace(stmt),
            Stmt::Require { cond, message } => {
                let condition = self.value(*cond);
                let id = self.facts.message_id(message);
                self.guard(condition.re(), Status::Required, id, "0", "0");
            }
        }
    }

    /// Reads a variable.
    pub(super) fn variable(&mut self, var: VarId) -> Val {
        match self.vars[var.index()].clone() {
            Some(location) => self.read_location(var, &location),
            // The verifier has checked that a declaration dominates every use.
            None => self.constant(Value::zero(self.kernel.var(var).dtype)),
        }
    }

    /// Assigns a variable.
    pub(super) fn assign(&mut self, var: VarId, value: &Val) {
        if let Some(VariableLocation::Memory(slot)) = self.vars[var.index()].clone() {
            let info = self.kernel.var(var);
            self.with_lanes(info.lanes, |e| e.write_slot(info.dtype, &slot, value));
        }
    }

    /// Defines a variable.
    pub(super) fn define(&mut self, var: VarId, value: Val) {
        let info = self.kernel.var(var);
        let (mutable, dtype, lanes) = (info.mutable, info.dtype, info.lanes);
        self.vars[var.index()] = Some(if mutable {
            let slot = self.slot(var);
            self.with_lanes(lanes, |e| e.write_slot(dtype, &slot, &value));
            VariableLocation::Memory(slot)
        } else {
            VariableLocation::Value(value)
        });
    }

    /// A counting loop in rotated form, as loop passes expect: tested before entry and at its end.
    /// The length is a multiple of the step.
    pub(super) fn count(
        &mut self,
        name: &str,
        start: &str,
        stop: &str,
        step: usize,
        hint: Hint,
        body: impl FnOnce(&mut Self, &str),
    ) {
        let (head, next, after) = (self.fresh("loop"), self.fresh("next"), self.fresh("done"));
        let (ahead, index) = (self.fresh("preheader"), format!("%{}", self.fresh(name)));
        let enter = self.op(format!("icmp slt i64 {start}, {stop}"));
        self.fork(&enter, &ahead, &after);
        self.start(&ahead);
        self.jump(&head);
        self.start(&head);
        self.line(format!("{index} = phi i64 [ {start}, %{ahead} ], [ {index}.next, %{next} ]"));
        let outer = self.flags;
        if hint.vectorise {
            self.flags = RELAXED;
        }
        self.forget();
        self.depth += 1;
        body(self, &index);
        self.depth -= 1;
        self.flags = outer;
        self.jump(&next);
        self.start(&next);
        self.line(format!("{index}.next = add nsw i64 {index}, {step}"));
        let again = self.op(format!("icmp slt i64 {index}.next, {stop}"));
        let metadata = self.loop_metadata(hint);
        self.line(format!("br i1 {again}, label %{head}, label %{after}, !llvm.loop !{metadata}"));
        self.start(&after);
    }

    fn grow(&mut self, buffer: BufferId, len: ExprId, fill: Option<Value>) {
        let len = self.index(len);
        if self.depth == 0 {
            let data = self.call_grow(buffer, &len, fill);
            let slot = self.buffer_addresses[buffer.index()].data.clone();
            self.line(format!("store ptr {data}, ptr {slot}"));
            return;
        }
        let current = self.len(buffer);
        let enough = self.op(format!("icmp sle i64 {len}, {current}"));
        let (grow, after) = (self.fresh("grow"), self.fresh("grown"));
        self.line(format!("br i1 {enough}, label %{after}, label %{grow}, !prof !0"));
        self.start(&grow);
        let data = self.call_grow(buffer, &len, fill);
        let slot = self.buffer_addresses[buffer.index()].data.clone();
        self.line(format!("store ptr {data}, ptr {slot}"));
        self.jump(&after);
        self.start(&after);
    }

    /// Grows two buffers with one check on the fast path.
    pub(super) fn grow_both(&mut self, buffers: [BufferId; 2], len: ExprId) {
        let len = self.index(len);
        let current = buffers.map(|buffer| self.len(buffer));
        let current = self.intrinsic("smin", DType::I64, &[&current[0], &current[1]]);
        let enough = self.op(format!("icmp sle i64 {len}, {current}"));
        let (grow, fine, after) = (self.fresh("grow"), self.fresh("ok"), self.fresh("grown"));
        self.line(format!("br i1 {enough}, label %{after}, label %{grow}, !prof !0"));
        self.start(&grow);
        let parameters = "ptr nocapture, i64, i64, i64, ptr nocapture";
        self.declare("tamis_grow_both", || format!("declare i8 @tamis_grow_both({parameters}) nounwind cold"));
        let [first, second] = buffers.map(|buffer| growth(buffer.index(), self.kernel.buffer(buffer).elem));
        let arguments = format!("ptr %buffers, i64 {len}, i64 {first}, i64 {second}, ptr %failure");
        let done = self.op(format!("call i8 @tamis_grow_both({arguments})"));
        let done = self.op(format!("icmp ne i8 {done}, 0"));
        self.can_exhaust_memory = true;
        self.line(format!("br i1 {done}, label %{fine}, label %full, !prof !0"));
        self.start(&fine);
        buffers.into_iter().for_each(|buffer| self.reload_data(buffer));
        self.jump(&after);
        self.start(&after);
    }

    /// Reloads the data pointer of a buffer that the runtime may have moved.
    pub(super) fn reload_data(&mut self, buffer: BufferId) {
        let at = self.op(format!("getelementptr i8, ptr %buffers, i64 {}", DESCRIPTOR * buffer.index()));
        let data = self.op(format!("load ptr, ptr {at}, align 8"));
        let slot = self.buffer_addresses[buffer.index()].data.clone();
        self.line(format!("store ptr {data}, ptr {slot}"));
    }

    fn fill(&mut self, buffer: BufferId, start: ExprId, len: ExprId, value: ExprId) {
        let elem = self.kernel.buffer(buffer).elem;
        let constant = match self.kernel.expr(value) {
            Expr::Const(value) => Some(element_bytes(elem, *value)),
            _ => None,
        };
        let (start, len, value) = (self.index(start), self.index(len), self.value(value));
        let stop = self.op(format!("call i64 @llvm.sadd.sat.i64(i64 {start}, i64 {len})"));
        self.declare("llvm.sadd.sat.i64", || "declare i64 @llvm.sadd.sat.i64(i64, i64)".into());
        self.range_in_bounds(buffer, &start, &stop);
        match constant {
            Some((bytes, size)) if bytes[..size].iter().all(|byte| *byte == bytes[0]) => {
                self.declare_memset();
                self.declare("llvm.smax.i64", || "declare i64 @llvm.smax.i64(i64, i64)".into());
                let len = self.op(format!("call i64 @llvm.smax.i64(i64 {len}, i64 0)"));
                let bytes_long = self.op(format!("mul i64 {len}, {size}"));
                let data = self.data(buffer);
                let address = self.op(format!("getelementptr [{size} x i8], ptr {data}, i64 {start}"));
                let scope = self.scope(buffer);
                let arguments = format!("ptr {address}, i8 {}, i64 {bytes_long}, i1 false", bytes[0]);
                self.line(format!("call void @llvm.memset.p0.i64({arguments}){scope}"));
            }
            _ if !self.check && parts_of(elem.dtype()) == 1 => self.fill_vectors(buffer, &start, &stop, &value),
            _ => {
                let hint = Hint { vectorise: true, ..Hint::default() };
                self.count("k", &start, &stop, 1, hint, |e, k| e.store(buffer, k, &value));
            }
        }
    }

    fn search(&mut self, var: VarId, buffer: BufferId, [start, stop, key]: [ExprId; 3], back: bool) {
        let (start, stop, key) = (self.index(start), self.index(stop), self.index(key));
        self.range_in_bounds(buffer, &start, &stop);
        let elem = self.kernel.buffer(buffer).elem;
        let (ty, data, scope) = (stored(elem), self.data(buffer), self.scope(buffer));
        let name = format!("tamis_search_{}{ty}", if back { "back_" } else { "" });
        let attributes = "nounwind willreturn memory(argmem: read)";
        self.declare(&name, || format!("declare i64 @{name}(ptr nocapture readonly, i64, i64, i64) {attributes}"));
        if self.depth == 0 {
            // Outside of loops an inline fast path does not pay.
            let arguments = format!("ptr {data}, i64 {start}, i64 {stop}, i64 {key}");
            let position = self.op(format!("call i64 @{name}({arguments}){scope}"));
            self.define(var, Val::One(position));
            return;
        }
        // The key is often at the start of the search, so the first element is probed inline; the
        // runtime searches the rest.
        let (probe, gallop, found) = (self.fresh("probe"), self.fresh("gallop"), self.fresh("found"));
        let nothing = self.block.clone();
        let any = self.op(format!("icmp slt i64 {start}, {stop}"));
        self.fork(&any, &probe, &found);
        self.start(&probe);
        let last = if back { self.op(format!("sub nsw i64 {stop}, 1")) } else { start.clone() };
        let element = self.load(buffer, &last);
        let below = self.op(format!("icmp slt i64 {}, {key}", element.re()));
        let [on, off] = if back { [&found, &gallop] } else { [&gallop, &found] };
        self.fork(&below, on, off);
        self.start(&gallop);
        let (from, to, probed) = if back {
            (start.clone(), last, &stop)
        } else {
            (self.op(format!("add nsw i64 {start}, 1")), stop.clone(), &start)
        };
        let arguments = format!("ptr {data}, i64 {from}, i64 {to}, i64 {key}");
        let galloped = self.op(format!("call i64 @{name}({arguments}){scope}"));
        self.jump(&found);
        self.start(&found);
        let sources = format!("[ {start}, %{nothing} ], [ {probed}, %{probe} ], [ {galloped}, %{gallop} ]");
        let position = self.op(format!("phi i64 {sources}"));
        self.define(var, Val::One(position));
    }

    fn sort(&mut self, buffer: BufferId, start: ExprId, stop: ExprId, flags: Option<BufferId>) {
        let (start, stop) = (self.index(start), self.index(stop));
        let Elem::Index(width) = self.kernel.buffer(buffer).elem else { return };
        let (data, len) = (self.data(buffer), self.len(buffer));
        let list = format!("ptr {data}, i64 {len}, i64 {start}, i64 {stop}");
        let call = if let Some(flags) = flags {
            let name = format!("tamis_sort_by_flags_{}", width.name());
            // The call accesses two buffers, so it has no alias scope.
            let effects = "nounwind memory(argmem: readwrite, inaccessiblemem: readwrite)";
            let types = "ptr nocapture, i64, i64, i64, ptr nocapture readonly, i64";
            self.declare(&name, || format!("declare i8 @{name}({types}) {effects}"));
            let (data, len) = (self.data(flags), self.len(flags));
            format!("call i8 @{name}({list}, ptr {data}, i64 {len})")
        } else {
            let name = format!("tamis_sort_{}", width.name());
            self.declare(&name, || format!("declare i8 @{name}(ptr nocapture, i64, i64, i64) nounwind"));
            format!("call i8 @{name}({list}){}", self.scope(buffer))
        };
        let done = self.op(call);
        let done = self.op(format!("icmp ne i8 {done}, 0"));
        self.guard(&done, Status::Bounds, buffer.index(), &stop, &len);
    }

    /// Stores an element.
    pub(super) fn store(&mut self, buffer: BufferId, index: &str, value: &Val) {
        let elem = self.kernel.buffer(buffer).elem;
        let (ty, scope, data) = (stored(elem), self.scope(buffer), self.data(buffer));
        let align = crate::runtime::memory::align(elem);
        if let Val::Two(re, im) = value {
            let address = self.op(format!("getelementptr inbounds [2 x {ty}], ptr {data}, i64 {index}"));
            self.line(format!("store {ty} {re}, ptr {address}, align {align}{scope}"));
            let address = self.op(format!("getelementptr inbounds [2 x {ty}], ptr {data}, i64 {index}, i64 1"));
            self.line(format!("store {ty} {im}, ptr {address}, align {align}{scope}"));
            return;
        }
        let value = self.as_stored(buffer, value);
        let address = self.op(format!("getelementptr inbounds {ty}, ptr {data}, i64 {index}"));
        self.line(format!("store {ty} {value}, ptr {address}, align {align}{scope}"));
    }

    /// Converts a real number to its memory representation.
    pub(super) fn as_stored(&mut self, buffer: BufferId, value: &Val) -> String {
        let elem = self.kernel.buffer(buffer).elem;
        match elem {
            Elem::Value(DType::Bool) => self.op(format!("zext i1 {} to i8", value.re())),
            Elem::Index(width) if width.size() < 8 => {
                if self.check {
                    let fits = self.op(format!("icmp ule i64 {}, {}", value.re(), width.max()));
                    self.guard(&fits, Status::Width, buffer.index(), value.re(), "0");
                }
                self.op(format!("trunc i64 {} to {}", value.re(), stored(elem)))
            }
            Elem::Index(_) => {
                if self.check {
                    let fits = self.op(format!("icmp sge i64 {}, 0", value.re()));
                    self.guard(&fits, Status::Width, buffer.index(), value.re(), "0");
                }
                value.re().to_string()
            }
            Elem::Value(_) => value.re().to_string(),
        }
    }

    /// In check mode: fails unless the index is in bounds.
    pub(super) fn in_bounds(&mut self, buffer: BufferId, index: &str) {
        if self.check {
            let len = self.len(buffer);
            let fine = self.op(format!("icmp ult i64 {index}, {len}"));
            self.guard(&fine, Status::Bounds, buffer.index(), index, &len);
        }
    }

    /// In check mode: fails unless the range `start..stop` is in bounds.
    fn range_in_bounds(&mut self, buffer: BufferId, start: &str, stop: &str) {
        if self.check {
            let len = self.len(buffer);
            let none = self.op(format!("icmp sge i64 {start}, {stop}"));
            let first = self.op(format!("icmp sge i64 {start}, 0"));
            let last = self.op(format!("icmp sle i64 {stop}, {len}"));
            let starts = self.op(format!("or i1 {none}, {first}"));
            self.guard(&starts, Status::Bounds, buffer.index(), start, &len);
            let ends = self.op(format!("or i1 {none}, {last}"));
            let index = self.op(format!("sub i64 {stop}, 1"));
            self.guard(&ends, Status::Bounds, buffer.index(), &index, &len);
        }
    }

    /// The metadata of a load from a buffer: inputs are invariant.
    pub(super) fn load_metadata(&self, buffer: BufferId) -> String {
        let invariant = match self.kernel.buffer(buffer).role {
            Role::Input => ", !invariant.load !{}",
            _ => "",
        };
        format!("{}{invariant}", self.scope(buffer))
    }
}
