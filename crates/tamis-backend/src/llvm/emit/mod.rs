//! LLVM IR emission: prints a kernel as LLVM IR text.
//!
//! LLVM's parser reads the text. A mistake in it is an error with a line number, where the builder
//! interface would crash, and `explain` shows exactly what is compiled.
//!
//! The function takes the buffer table, the table of pointers to scalars, and a pointer for failure
//! operands. Descriptors are loaded once, at entry; the data pointer of a buffer that grows is in a
//! stack slot. Every access has the alias scope of its buffer, since buffers do not overlap.
//! Mutable variables are stack slots, which the first pass promotes to registers.

mod cast;
mod elementary;
mod expr;
mod float;
mod gemm;
mod lanes;
mod ops;
mod stmt;
mod vectorize;
mod workspace;

use self::lanes::parts;
use super::CodegenOptions;
use super::outline::{self, OutlinedFunction};
use crate::facts::KernelFacts;
use crate::failure::{Status, bug};
use crate::runtime::memory::{element_bytes, growth};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::fmt::Write;
use tamis_ir::kernel::{BufferId, Elem, ExprId, Hint, Kernel, LabelId, Role, Stmt, VarId};
use tamis_ir::{DType, Diagnostic, Value};

/// The function name of every kernel; a unique number replaces the zeros when it is loaded.
pub(super) const FUNCTION: &str = "kernel_0000000000000000";

/// Maximum bytes of the text: shared operands of nested selects can grow exponentially.
const MAX_TEXT_BYTES: usize = 16 << 20;

/// Maximum buffers of a function with an alias scope: each scope lists all others.
const MAX_SCOPES: usize = 256;

/// Vector width of loops that LLVM vectorises.
const DEFAULT_LANES: usize = 16;

/// Vector width of gathered reductions, whose rows are often short: the remainder is scalar.
const SHORT_TRIP_LANES: usize = 4;

/// The size of a descriptor in the buffer table.
const DESCRIPTOR: usize = size_of::<crate::runtime::RawBuffer>();

/// A value in registers: a complex number takes two.
#[derive(Clone, Debug)]
pub(super) enum Val {
    One(String),
    Two(String, String),
}

impl Val {
    /// The real number, or the real part.
    fn re(&self) -> &str {
        match self {
            Val::One(x) | Val::Two(x, _) => x,
        }
    }

    /// The imaginary part; for a real number, a zero of its type.
    fn im(&self) -> &str {
        match self {
            Val::One(_) => "0.0",
            Val::Two(_, im) => im,
        }
    }
}

/// The location of a variable: a value in a register, or a stack slot.
#[derive(Clone)]
enum VariableLocation {
    Value(Val),
    Memory(Val),
}

/// The location of a buffer: its data pointer and length, or, if it grows, the slots that hold
/// them.
struct BufferAddress {
    data: String,
    len: String,
    in_slots: bool,
}

/// The emitter of one function.
struct Emitter<'a> {
    kernel: &'a Kernel,
    facts: &'a KernelFacts,
    check: bool,
    /// The entry block: stack slots, and loads of descriptors and scalars.
    entry: String,
    body: String,
    /// The label of the current block.
    block: String,
    next: usize,
    vars: Vec<Option<VariableLocation>>,
    buffer_addresses: Vec<BufferAddress>,
    /// The number of each buffer among those that the function uses, by buffer id.
    local: Vec<Option<usize>>,
    /// How many buffers the function uses.
    locals: usize,
    labels: Vec<(LabelId, String)>,
    /// The ids of the workspaces whose pointers are loaded.
    handles: Vec<usize>,
    /// Set while a loop appends a run of entries to a workspace.
    append_run: Option<workspace::AppendRun>,
    /// The values of the expressions of this statement, and the order of their evaluation.
    memo: FxHashMap<ExprId, Val>,
    trail: Vec<ExprId>,
    /// The lanes of the expression that is evaluated.
    lanes: u16,
    /// In a branch of a vector `select`: the lanes that take it.
    active: Option<String>,
    /// The first lanes of variables that are ramps of step 1.
    ramps: FxHashMap<VarId, String>,
    /// True if integer arithmetic is index arithmetic, which does not overflow.
    index: bool,
    /// Current fast-math flags of float operations.
    flags: &'static str,
    /// Declarations of called functions and constants, by name.
    declarations: BTreeMap<String, String>,
    /// Loop metadata.
    loops: Vec<String>,
    /// True if some loop may be vectorised or unrolled.
    hinted: bool,
    /// The incoming values of the failure block: the status and the three operands.
    failures: [String; 4],
    /// True if the function has the out-of-memory exit.
    can_exhaust_memory: bool,
    /// The tiles that are held in vector registers.
    tiles: FxHashSet<BufferId>,
    /// The vector width of the target in bytes.
    vector_bytes: usize,
    /// True if float selects use vector blends, for lack of a scalar conditional move.
    needs_blend: bool,
    /// True if the target has fused multiply-adds.
    has_fma: bool,
    /// The accumulators that outlive a loop.
    accumulators: Vec<vectorize::LoopAccumulator>,
    /// The loop nesting depth.
    depth: usize,
}

/// The IR of a function.
pub(super) struct FunctionIr {
    pub(super) text: String,
    /// True if some loop may be vectorised or unrolled, so that loop passes pay.
    pub(super) hinted: bool,
    /// The effort of code generation.
    pub(super) effort: Effort,
}

/// The effort of code generation, by the size of the kernel: a cheaper fallback keeps compile times
/// within bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effort {
    /// For small kernels.
    Full,
    /// For large kernels, which are mostly code that runs once.
    Reduced,
    /// For huge kernels: few passes, and fast instruction selection.
    Least,
}

/// Minimum statements of a large kernel.
const LARGE_KERNEL: usize = 50;

/// Minimum statements of a huge kernel.
const HUGE_KERNEL: usize = 30_000;

impl Effort {
    fn of(kernel: &Kernel) -> Effort {
        match kernel.size() {
            0..LARGE_KERNEL => Effort::Full,
            LARGE_KERNEL..HUGE_KERNEL => Effort::Reduced,
            HUGE_KERNEL.. => Effort::Least,
        }
    }
}

/// Emits a kernel as one or more functions: it is split if it is large, or has at least `size`
/// statements.
pub(super) fn emit(
    kernel: &Kernel,
    facts: &KernelFacts,
    options: &CodegenOptions,
    size: Option<usize>,
) -> Result<Vec<FunctionIr>, Diagnostic> {
    let effort = Effort::of(kernel);
    let functions = outline::outline(kernel, size);
    functions.iter().map(|function| emit_function(kernel, facts, options, function, effort)).collect()
}

fn emit_function(
    kernel: &Kernel,
    facts: &KernelFacts,
    options: &CodegenOptions,
    function: &OutlinedFunction,
    effort: Effort,
) -> Result<FunctionIr, Diagnostic> {
    let vector_bytes = vectorize::vector_bytes(&options.target);
    let mut local = vec![None; kernel.buffers.len()];
    for (number, buffer) in function.buffers.iter().enumerate() {
        local[buffer.index()] = Some(number);
    }
    let mut emitter = Emitter {
        kernel,
        facts,
        check: options.check,
        entry: String::new(),
        body: String::new(),
        block: "entry".into(),
        next: 0,
        vars: vec![None; kernel.vars.len()],
        buffer_addresses: Vec::new(),
        local,
        locals: function.buffers.len(),
        labels: Vec::new(),
        handles: Vec::new(),
        append_run: None,
        memo: FxHashMap::default(),
        trail: Vec::new(),
        lanes: 1,
        active: None,
        ramps: FxHashMap::default(),
        index: false,
        flags: "",
        declarations: BTreeMap::new(),
        loops: Vec::new(),
        hinted: false,
        failures: Default::default(),
        can_exhaust_memory: false,
        tiles: vectorize::vector_tiles(kernel, vector_bytes),
        vector_bytes,
        needs_blend: vectorize::needs_blend(&options.target),
        has_fma: elementary::has_fma(&options.target),
        accumulators: Vec::new(),
        depth: 0,
    };
    emitter.parameters();
    emitter.buffers();
    for k in 0..kernel.buffers.len() {
        emitter.large_tile(BufferId(k as u32));
    }
    emitter.load_live_ins(&function.live_in);
    emitter.stmts(function.stmts);
    emitter.store_live_outs(&function.live_out);
    emitter.finish();
    if emitter.body.len() > MAX_TEXT_BYTES {
        return Err(bug("the kernel is too large"));
    }
    let hinted = emitter.hinted;
    Ok(FunctionIr { text: emitter.module(options), hinted, effort })
}

impl Emitter<'_> {
    // Text of the function

    /// A fresh name.
    fn fresh(&mut self, hint: &str) -> String {
        self.next += 1;
        let hint: String = hint.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').take(40).collect();
        // A name that starts with a digit would be a number.
        let letter = if hint.starts_with(|c: char| c.is_ascii_digit()) { "v" } else { "" };
        format!("{letter}{hint}.{}", self.next)
    }

    /// Emits an instruction with a result, which gets a fresh name.
    fn op(&mut self, instruction: impl AsRef<str>) -> String {
        self.next += 1;
        let name = format!("%t{}", self.next);
        let _ = writeln!(self.body, "  {name} = {}", instruction.as_ref());
        name
    }

    /// Emits an instruction without a result.
    fn line(&mut self, instruction: impl AsRef<str>) {
        let _ = writeln!(self.body, "  {}", instruction.as_ref());
    }

    /// Emits an instruction into the entry block.
    fn at_entry(&mut self, instruction: impl AsRef<str>) {
        let _ = writeln!(self.entry, "  {}", instruction.as_ref());
    }

    /// Starts a basic block.
    fn start(&mut self, label: &str) {
        let _ = writeln!(self.body, "{label}:");
        self.block = label.to_string();
    }

    /// Emits a branch.
    fn jump(&mut self, label: &str) {
        self.line(format!("br label %{label}"));
    }

    /// Emits a conditional branch.
    fn fork(&mut self, condition: &str, then: &str, otherwise: &str) {
        self.line(format!("br i1 {condition}, label %{then}, label %{otherwise}"));
    }

    /// Emits a conditional branch that is nearly always taken.
    fn fork_likely(&mut self, condition: &str, then: &str, otherwise: &str) {
        self.line(format!("br i1 {condition}, label %{then}, label %{otherwise}, !prof !0"));
    }

    /// Emits a check that fails unless the condition holds. All failures exit through one block.
    fn guard(&mut self, condition: &str, status: Status, id: usize, index: &str, len: &str) {
        let ok = self.fresh("ok");
        self.line(format!("br i1 {condition}, label %{ok}, label %failed, !prof !0"));
        let operands = [(status as i32).to_string(), id.to_string(), index.to_string(), len.to_string()];
        for (sources, value) in self.failures.iter_mut().zip(operands) {
            let separator = if sources.is_empty() { "" } else { ", " };
            let _ = write!(sources, "{separator}[ {value}, %{} ]", self.block);
        }
        self.start(&ok);
    }

    /// Emits the return and the failure exits.
    fn finish(&mut self) {
        self.line("ret i32 0");
        if self.can_exhaust_memory {
            self.start("full");
            self.line(format!("ret i32 {}", Status::Memory as i32));
        }
        let failures = std::mem::take(&mut self.failures);
        let [status, id, index, len] = &failures;
        if status.is_empty() {
            return;
        }
        self.start("failed");
        self.line(format!("%status = phi i32 {status}"));
        let operands: Vec<String> = [id, index, len].map(|sources| self.op(format!("phi i64 {sources}"))).into();
        for (k, value) in operands.iter().enumerate() {
            let address = self.op(format!("getelementptr i8, ptr %failure, i64 {}", 8 * k));
            self.line(format!("store i64 {value}, ptr {address}, align 8"));
        }
        self.line("ret i32 %status");
    }

    /// Declares a called function.
    fn declare(&mut self, name: &str, declaration: impl FnOnce() -> String) {
        if !self.declarations.contains_key(name) {
            self.declarations.insert(name.to_string(), declaration());
        }
    }

    fn declare_memset(&mut self) {
        let parameters = "ptr nocapture writeonly, i8, i64, i1 immarg";
        self.declare("llvm.memset.p0.i64", || format!("declare void @llvm.memset.p0.i64({parameters})"));
    }

    // Entry block

    fn parameters(&mut self) {
        for (k, var) in self.kernel.params.iter().enumerate() {
            let info = self.kernel.var(*var);
            let dtype = info.dtype;
            let address = self.fresh("address");
            let argument = self.fresh("argument");
            self.at_entry(format!("%{address} = getelementptr ptr, ptr %scalars, i64 {k}"));
            self.at_entry(format!("%{argument} = load ptr, ptr %{address}, align 8"));
            let stored = stored(Elem::Value(dtype));
            let mut parts = Vec::new();
            for part in 0..parts_of(dtype) {
                let at = self.fresh("part");
                let name = self.fresh(&info.name);
                self.at_entry(format!("%{at} = getelementptr {stored}, ptr %{argument}, i64 {part}"));
                self.at_entry(format!("%{name} = load {stored}, ptr %{at}, align {}", dtype.real().size()));
                if dtype == DType::Bool {
                    self.at_entry(format!("%{name}.set = icmp ne i8 %{name}, 0"));
                    parts.push(format!("%{name}.set"));
                } else {
                    parts.push(format!("%{name}"));
                }
            }
            let value = from_parts(parts);
            self.vars[var.index()] = Some(VariableLocation::Value(value.clone()));
            if info.mutable {
                let slot = self.slot(*var);
                let saved = std::mem::take(&mut self.body);
                self.write_slot(dtype, &slot, &value);
                let stores = std::mem::replace(&mut self.body, saved);
                self.entry.push_str(&stores);
                self.vars[var.index()] = Some(VariableLocation::Memory(slot));
            }
        }
    }

    /// The address of a live variable between outlined functions, or of the second part of it.
    fn live_var_slot(&mut self, slot: usize, dtype: DType, part: usize) -> String {
        let at = self.kernel.params.len() + self.facts.workspaces.len();
        let address = self.op(format!("getelementptr ptr, ptr %scalars, i64 {at}"));
        let all = self.op(format!("load ptr, ptr {address}, align 8"));
        let bytes = slot * outline::LIVE_VAR_BYTES + part * dtype.real().size() * usize::from(self.lanes);
        self.op(format!("getelementptr i8, ptr {all}, i64 {bytes}"))
    }

    /// Defines the variables that earlier functions have stored.
    fn load_live_ins(&mut self, vars: &[(usize, VarId)]) {
        for (slot, var) in vars {
            let (dtype, lanes) = (self.kernel.var(*var).dtype, self.kernel.var(*var).lanes);
            let value = self.with_lanes(lanes, |e| {
                let stored = e.ty_of(stored(Elem::Value(dtype)));
                let parts = (0..parts_of(dtype)).map(|part| {
                    let address = e.live_var_slot(*slot, dtype, part);
                    e.op(format!("load {stored}, ptr {address}, align {}", dtype.real().size()))
                });
                let value = from_parts(parts.collect());
                e.loaded(Elem::Value(dtype), value)
            });
            self.define(*var, value);
        }
    }

    /// Stores the variables that later functions need.
    fn store_live_outs(&mut self, vars: &[(usize, VarId)]) {
        for (slot, var) in vars {
            let (dtype, lanes) = (self.kernel.var(*var).dtype, self.kernel.var(*var).lanes);
            let value = self.variable(*var);
            self.with_lanes(lanes, |e| {
                let stored = e.ty_of(stored(Elem::Value(dtype)));
                let bits = e.ty(DType::Bool);
                for (part, value) in parts(&value).enumerate() {
                    let address = e.live_var_slot(*slot, dtype, part);
                    let value = match dtype {
                        DType::Bool => e.op(format!("zext {bits} {value} to {stored}")),
                        _ => value.to_string(),
                    };
                    e.line(format!("store {stored} {value}, ptr {address}, align {}", dtype.real().size()));
                }
            });
        }
    }

    /// Allocates the stack slots of a variable.
    fn slot(&mut self, var: VarId) -> Val {
        let info = self.kernel.var(var);
        let ty = self.with_lanes(info.lanes, |e| e.ty(info.dtype));
        let parts: Vec<String> = (0..parts_of(info.dtype)).map(|_| self.fresh(&info.name)).collect();
        for name in &parts {
            self.at_entry(format!("%{name} = alloca {ty}"));
        }
        from_parts(parts.into_iter().map(|name| format!("%{name}")).collect())
    }

    /// Writes a variable of the current lanes.
    fn write_slot(&mut self, dtype: DType, slot: &Val, value: &Val) {
        let ty = self.ty(dtype);
        self.line(format!("store {ty} {}, ptr {}", value.re(), slot.re()));
        if let (Val::Two(_, address), Val::Two(_, im)) = (slot, value) {
            self.line(format!("store {ty} {im}, ptr {address}"));
        }
    }

    fn buffers(&mut self) {
        for k in 0..self.kernel.buffers.len() {
            let address = self.buffer_address(BufferId(k as u32));
            self.buffer_addresses.push(address);
        }
    }

    fn buffer_address(&mut self, id: BufferId) -> BufferAddress {
        let info = self.kernel.buffer(id);
        let name = self.fresh(&info.name);
        if !self.facts.used[id.index()] || self.local[id.index()].is_none() {
            return BufferAddress { data: "null".into(), len: "0".into(), in_slots: false };
        }
        if let Role::Tile(size) = info.role
            && KernelFacts::on_stack(self.kernel, id)
        {
            let array = format!("[{} x {}]", size as usize * parts_of(info.elem.dtype()), stored(info.elem));
            self.at_entry(format!("%{name} = alloca {array}, align 64"));
            self.declare_memset();
            let bytes = size as usize * info.elem.size();
            self.at_entry(format!("call void @llvm.memset.p0.i64(ptr align 64 %{name}, i8 0, i64 {bytes}, i1 false)"));
            return BufferAddress { data: format!("%{name}"), len: size.to_string(), in_slots: false };
        }
        let at = DESCRIPTOR * id.index();
        self.at_entry(format!("%{name}.at = getelementptr i8, ptr %buffers, i64 {at}"));
        self.at_entry(format!("%{name}.len.at = getelementptr i8, ptr %{name}.at, i64 8"));
        self.at_entry(format!("%{name}.start = load ptr, ptr %{name}.at, align 8"));
        if !self.facts.grows[id.index()] {
            self.at_entry(format!("%{name}.count = load i64, ptr %{name}.len.at, align 8"));
            return BufferAddress { data: format!("%{name}.start"), len: format!("%{name}.count"), in_slots: false };
        }
        // Lengths are needed for growth only, which is too rare to spend a register on.
        self.at_entry(format!("%{name}.data = alloca ptr"));
        self.at_entry(format!("store ptr %{name}.start, ptr %{name}.data"));
        BufferAddress { data: format!("%{name}.data"), len: format!("%{name}.len.at"), in_slots: true }
    }

    /// The data pointer of a buffer.
    fn data(&mut self, id: BufferId) -> String {
        let BufferAddress { data, in_slots, .. } = &self.buffer_addresses[id.index()];
        let data = data.clone();
        if *in_slots { self.op(format!("load ptr, ptr {data}")) } else { data }
    }

    /// The length of a buffer.
    fn len(&mut self, id: BufferId) -> String {
        let BufferAddress { len, in_slots, .. } = &self.buffer_addresses[id.index()];
        let len = len.clone();
        if *in_slots { self.op(format!("load i64, ptr {len}, align 8")) } else { len }
    }

    // Module

    /// The alias metadata of an access to a buffer.
    fn scope(&self, id: BufferId) -> String {
        let Some(number) = self.local[id.index()].filter(|number| *number < MAX_SCOPES) else { return String::new() };
        let base = 2 + self.locals + 2 * number;
        format!(", !alias.scope !{base}, !noalias !{}", base + 1)
    }

    /// Adds the metadata of a loop and returns its id.
    fn loop_metadata(&mut self, hint: Hint) -> usize {
        let (vectorise, unroll, short_trip) = (hint.vectorise, hint.is_unrolled(), hint.short_trip);
        let number = 2 + 3 * self.locals + self.loops.len();
        self.hinted |= vectorise || unroll;
        let mut node = format!("!{number} = distinct !{{!{number}");
        if !vectorise {
            node.push_str(", !{!\"llvm.loop.vectorize.enable\", i1 false}");
        }
        if unroll {
            node.push_str(", !{!\"llvm.loop.unroll.full\"}");
        } else if vectorise {
            // Larger widths showed no measurable gain, and compile time grows with the width.
            let lanes = if short_trip { SHORT_TRIP_LANES } else { DEFAULT_LANES };
            let _ = write!(node, ", !{{!\"llvm.loop.vectorize.width\", i32 {lanes}}}");
            node.push_str(", !{!\"llvm.loop.interleave.count\", i32 1}");
        }
        node.push('}');
        self.loops.push(node);
        number
    }

    fn module(mut self, options: &CodegenOptions) -> String {
        let mut text = String::with_capacity(self.entry.len() + self.body.len() + 4096);
        // Names and other readable text are no part of a kernel's cache key, so they must not
        // appear here.
        let _ = writeln!(text, "target triple = \"{}\"\n", options.target.triple);
        for declaration in self.declarations.values() {
            let _ = writeln!(text, "{declaration}");
        }
        let parameters =
            "ptr noalias nocapture %buffers, ptr noalias nocapture %scalars, ptr noalias nocapture %failure";
        let _ = writeln!(text, "\ndefine i32 @{FUNCTION}({parameters}) #0 {{\nentry:");
        text.push_str(&self.entry);
        text.push_str(&self.body);
        text.push_str("}\n\n");
        let (cpu, features) = (&options.target.cpu, &options.target.features);
        let _ = writeln!(
            text,
            "attributes #0 = {{ nounwind \"target-cpu\"=\"{cpu}\" \"target-features\"=\"{features}\" }}\n"
        );
        text.push_str("!0 = !{!\"branch_weights\", i32 2000, i32 1}\n!1 = distinct !{!1}\n");
        let buffers = self.locals;
        for k in 0..buffers.min(MAX_SCOPES) {
            let _ = writeln!(text, "!{} = distinct !{{!{}, !1}}", 2 + k, 2 + k);
        }
        for k in 0..buffers.min(MAX_SCOPES) {
            let others: Vec<String> =
                (0..buffers.min(MAX_SCOPES)).filter(|j| *j != k).map(|j| format!("!{}", 2 + j)).collect();
            let base = 2 + buffers + 2 * k;
            let _ = writeln!(text, "!{base} = !{{!{}}}\n!{} = !{{{}}}", 2 + k, base + 1, others.join(", "));
        }
        for node in std::mem::take(&mut self.loops) {
            let _ = writeln!(text, "{node}");
        }
        text
    }

    /// A constant with the bytes of an element.
    fn fill_constant(&mut self, elem: Elem, value: Value) -> String {
        let (bytes, size) = element_bytes(elem, value);
        let bytes: String = bytes[..size].iter().map(|byte| format!("\\{byte:02x}")).collect();
        let name = format!("@fill.{}", bytes.replace('\\', ""));
        let constant = format!("{name} = private constant [{size} x i8] c\"{bytes}\"");
        self.declare(&name, || constant);
        name
    }

    fn stmts(&mut self, mut block: &[Stmt]) {
        while let Some((stmt, rest)) = block.split_first() {
            self.forget();
            block = rest;
            match (stmt, rest.first()) {
                (
                    Stmt::Grow { buffer: first, len, fill: None },
                    Some(Stmt::Grow { buffer: second, len: same, fill: None }),
                ) if len == same && first != second && self.depth > 0 && !self.check => {
                    self.grow_both([*first, *second], *len);
                    block = &rest[1..];
                }
                _ => self.stmt(stmt),
            }
        }
    }

    /// Forgets the values of the current statement.
    fn forget(&mut self) {
        self.memo.clear();
        self.trail.clear();
    }

    /// Allocates a tile that is too large for the stack, like scratch.
    fn large_tile(&mut self, id: BufferId) {
        let info = self.kernel.buffer(id);
        if let Role::Tile(size) = info.role
            && self.facts.used[id.index()]
            && self.local[id.index()].is_some()
            && !KernelFacts::on_stack(self.kernel, id)
        {
            let data = self.call_grow(id, &size.to_string(), Some(Value::zero(info.elem.dtype())));
            self.buffer_addresses[id.index()] = BufferAddress { data, len: size.to_string(), in_slots: false };
        }
    }

    /// Calls the runtime to grow a buffer; returns its data pointer.
    fn call_grow(&mut self, id: BufferId, len: &str, fill: Option<Value>) -> String {
        let elem = self.kernel.buffer(id).elem;
        let parameters = "ptr nocapture, i64, i64, ptr nocapture readonly, ptr nocapture";
        self.declare("tamis_grow", || format!("declare ptr @tamis_grow({parameters}) nounwind cold"));
        // In check mode uninitialised reads are at least deterministic.
        let fill = fill.or_else(|| self.check.then(|| Value::zero(elem.dtype())));
        let fill = fill.map_or("null".to_string(), |fill| self.fill_constant(elem, fill));
        let growth = growth(id.index(), elem);
        let arguments = format!("ptr %buffers, i64 {len}, i64 {growth}, ptr {fill}, ptr %failure");
        let data = self.op(format!("call ptr @tamis_grow({arguments})"));
        let done = self.op(format!("icmp ne ptr {data}, null"));
        let ok = self.fresh("ok");
        self.can_exhaust_memory = true;
        self.line(format!("br i1 {done}, label %{ok}, label %full, !prof !0"));
        self.start(&ok);
        data
    }
}

/// The number of registers of a value.
fn parts_of(dtype: DType) -> usize {
    if dtype.real() == dtype { 1 } else { 2 }
}

fn from_parts(parts: Vec<String>) -> Val {
    let mut parts = parts.into_iter();
    match (parts.next(), parts.next()) {
        (Some(re), Some(im)) => Val::Two(re, im),
        (one, _) => Val::One(one.unwrap_or_default()),
    }
}

/// The LLVM type of a value in a register, or of each of its parts.
fn ty(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool => "i1",
        DType::I8 | DType::U8 => "i8",
        DType::I16 | DType::U16 => "i16",
        DType::I32 | DType::U32 => "i32",
        DType::I64 | DType::U64 => "i64",
        DType::F32 | DType::C64 => "float",
        DType::F64 | DType::C128 => "double",
    }
}

/// The LLVM type of an element in memory, or of each of its parts.
fn stored(elem: Elem) -> &'static str {
    match elem {
        Elem::Value(DType::Bool) => "i8",
        Elem::Value(dtype) => ty(dtype),
        Elem::Index(width) => match width.size() {
            1 => "i8",
            2 => "i16",
            4 => "i32",
            _ => "i64",
        },
    }
}
