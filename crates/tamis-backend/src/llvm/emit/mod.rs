//! LLVM IR of a kernel, as text.
//!
//! The text is handed to LLVM's own parser: what is wrong in it comes back as an error with a line, where the builder
//! interface would crash, and what `explain` shows is what is compiled.
//!
//! The function takes the table of buffers, the table of pointers to scalars, and a place to say what failed. Descriptors
//! are read once, at entry; where one that grows is, is kept in a variable. Every access carries its buffer's alias scope, since no two buffers overlap. Variables that change are stack slots, which the first pass
//! puts into registers.

mod cast;
mod expr;
mod float;
mod ops;
mod stmt;
mod vector;
mod workspace;

use super::CodegenOptions;
use super::pieces::{self, Piece};
use crate::facts::Facts;
use crate::failure::{Status, bug};
use crate::runtime::memory::{element_bytes, growth};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::fmt::Write;
use tamis_ir::kernel::{BufferId, Elem, ExprId, Hint, Kernel, LabelId, Role, Stmt, VarId};
use tamis_ir::{DType, Diagnostic, Value};

/// The name of the function that a kernel becomes; a number takes the place of the zeros when it is loaded.
pub(super) const FUNCTION: &str = "kernel_0000000000000000";

/// Kernels whose text is longer (in bytes) are refused: shared operands of nested choices can multiply without end.
const LARGEST: usize = 16 << 20;

/// How many turns LLVM makes one of in loops that are not written as vectors here.
const LANES: usize = 16;

/// ... and of sums along a list, which go over rows that are often short: what is left over is done one by one.
const FEW: usize = 4;

/// The size of a descriptor in the table of buffers.
const DESCRIPTOR: usize = size_of::<crate::runtime::RawBuffer>();

/// A value in registers: complex numbers are two.
#[derive(Clone, Debug)]
pub(super) enum Val {
    One(String),
    Two(String, String),
}

impl Val {
    /// The real number (or the real part).
    fn re(&self) -> &str {
        match self {
            Val::One(x) | Val::Two(x, _) => x,
        }
    }

    /// The imaginary part; of a real number, a zero of its type.
    fn im(&self) -> &str {
        match self {
            Val::One(_) => "0.0",
            Val::Two(_, im) => im,
        }
    }
}

/// Where a variable is.
#[derive(Clone)]
enum Slot {
    Value(Val),
    Memory(Val),
}

/// Where a buffer is: the names of its first element and its length, or, if it grows, of the places that hold them.
struct Place {
    data: String,
    len: String,
    in_slots: bool,
}

/// The text under construction.
struct Emitter<'a> {
    kernel: &'a Kernel,
    facts: &'a Facts,
    check: bool,
    /// Slots and what is read at entry, before everything else.
    entry: String,
    body: String,
    /// The label of the block that is written.
    block: String,
    next: usize,
    vars: Vec<Option<Slot>>,
    places: Vec<Place>,
    labels: Vec<(LabelId, String)>,
    /// The numbers of the workspaces whose pointers were read.
    handles: Vec<usize>,
    /// The turns that are written append to a workspace one after the other.
    stretch: Option<workspace::Stretch>,
    /// Expressions of this statement that are in registers, and in which order they came.
    memo: FxHashMap<ExprId, Val>,
    trail: Vec<ExprId>,
    /// Whether integer arithmetic is that of an index.
    index: bool,
    /// Fast-math flags of float operations at this place.
    flags: &'static str,
    /// Functions that are called, by name, and constants.
    declarations: BTreeMap<String, String>,
    /// Loops' metadata.
    loops: Vec<String>,
    /// Whether some loop may be vectorised or unrolled.
    hinted: bool,
    /// What each failure is and the block that it comes from: the status and the three numbers that tell more.
    failures: [String; 4],
    /// Whether some buffer grows.
    can_be_full: bool,
    /// The tiles that are vectors, not arrays.
    tiles: FxHashSet<BufferId>,
    /// Bytes of a vector.
    vector_bytes: usize,
    /// Whether numbers are chosen by instructions for vectors, since there is none for one.
    blends: bool,
    /// Sums that go on from one loop to the next.
    carried: Vec<vector::Carried>,
    /// How many loops are around this place.
    depth: usize,
}

/// The IR of a kernel.
pub(super) struct Emitted {
    pub(super) text: String,
    /// Whether some loop may be vectorised or unrolled, so that loop passes are worth their time.
    pub(super) hinted: bool,
    /// Whether the kernel is so large that not all of it can be worth much time.
    pub(super) large: bool,
}

/// Kernels with so many statements are large.
const LARGE: usize = 50;

/// Writes a kernel as IR, in pieces if it is large, or larger than this.
pub(super) fn emit(
    kernel: &Kernel,
    facts: &Facts,
    options: &CodegenOptions,
    size: Option<usize>,
) -> Result<Vec<Emitted>, Diagnostic> {
    pieces::cut(kernel, size).iter().map(|piece| emit_piece(kernel, facts, options, piece)).collect()
}

fn emit_piece(kernel: &Kernel, facts: &Facts, options: &CodegenOptions, piece: &Piece) -> Result<Emitted, Diagnostic> {
    let vector_bytes = vector::vector_bytes(&options.target);
    let mut emitter = Emitter {
        kernel,
        facts,
        check: options.check,
        entry: String::new(),
        body: String::new(),
        block: "entry".into(),
        next: 0,
        vars: vec![None; kernel.vars.len()],
        places: Vec::new(),
        labels: Vec::new(),
        handles: Vec::new(),
        stretch: None,
        memo: FxHashMap::default(),
        trail: Vec::new(),
        index: false,
        flags: "",
        declarations: BTreeMap::new(),
        loops: Vec::new(),
        hinted: false,
        failures: Default::default(),
        can_be_full: false,
        tiles: vector::tiles_as_vectors(kernel, vector_bytes),
        vector_bytes,
        blends: vector::blends(&options.target),
        carried: Vec::new(),
        depth: 0,
    };
    emitter.parameters();
    emitter.buffers();
    for k in 0..kernel.buffers.len() {
        emitter.large_tile(BufferId(k as u32));
    }
    emitter.take(&piece.takes);
    emitter.stmts(piece.stmts);
    emitter.give(&piece.gives);
    emitter.leave();
    if emitter.body.len() > LARGEST {
        return Err(bug("the kernel is too large"));
    }
    let hinted = emitter.hinted;
    Ok(Emitted { text: emitter.module(options), hinted, large: kernel.size() >= LARGE })
}

impl Emitter<'_> {
    // Text

    /// A fresh name.
    fn fresh(&mut self, hint: &str) -> String {
        self.next += 1;
        let hint: String = hint.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').take(40).collect();
        // A name that starts with a digit would be a number.
        let letter = if hint.starts_with(|c: char| c.is_ascii_digit()) { "v" } else { "" };
        format!("{letter}{hint}.{}", self.next)
    }

    /// Writes an instruction with a result, which gets a fresh name.
    fn op(&mut self, instruction: impl AsRef<str>) -> String {
        self.next += 1;
        let name = format!("%t{}", self.next);
        let _ = writeln!(self.body, "  {name} = {}", instruction.as_ref());
        name
    }

    /// Writes an instruction without a result.
    fn line(&mut self, instruction: impl AsRef<str>) {
        let _ = writeln!(self.body, "  {}", instruction.as_ref());
    }

    /// Writes a line of the entry block.
    fn at_entry(&mut self, instruction: impl AsRef<str>) {
        let _ = writeln!(self.entry, "  {}", instruction.as_ref());
    }

    /// Starts a block.
    fn start(&mut self, label: &str) {
        let _ = writeln!(self.body, "{label}:");
        self.block = label.to_string();
    }

    /// Goes on in another block.
    fn jump(&mut self, label: &str) {
        self.line(format!("br label %{label}"));
    }

    /// Goes on in one of two blocks.
    fn fork(&mut self, condition: &str, then: &str, otherwise: &str) {
        self.line(format!("br i1 {condition}, label %{then}, label %{otherwise}"));
    }

    /// Fails unless the condition holds. All failures leave through one block.
    fn guard(&mut self, condition: &str, status: Status, which: usize, index: &str, len: &str) {
        let fine = self.fresh("fine");
        self.line(format!("br i1 {condition}, label %{fine}, label %failed, !prof !0"));
        let what = [(status as i32).to_string(), which.to_string(), index.to_string(), len.to_string()];
        for (sources, value) in self.failures.iter_mut().zip(what) {
            let separator = if sources.is_empty() { "" } else { ", " };
            let _ = write!(sources, "{separator}[ {value}, %{} ]", self.block);
        }
        self.start(&fine);
    }

    /// The end of the function, and the blocks that failures leave through.
    fn leave(&mut self) {
        self.line("ret i32 0");
        if self.can_be_full {
            self.start("full");
            self.line(format!("ret i32 {}", Status::Memory as i32));
        }
        let failures = std::mem::take(&mut self.failures);
        let [status, which, index, len] = &failures;
        if status.is_empty() {
            return;
        }
        self.start("failed");
        self.line(format!("%status = phi i32 {status}"));
        let what: Vec<String> = [which, index, len].map(|sources| self.op(format!("phi i64 {sources}"))).into();
        for (k, value) in what.iter().enumerate() {
            let place = self.op(format!("getelementptr i8, ptr %failure, i64 {}", 8 * k));
            self.line(format!("store i64 {value}, ptr {place}, align 8"));
        }
        self.line("ret i32 %status");
    }

    /// Says that a function is called.
    fn declare(&mut self, name: &str, declaration: impl FnOnce() -> String) {
        if !self.declarations.contains_key(name) {
            self.declarations.insert(name.to_string(), declaration());
        }
    }

    fn declare_memset(&mut self) {
        let parameters = "ptr nocapture writeonly, i8, i64, i1 immarg";
        self.declare("llvm.memset.p0.i64", || format!("declare void @llvm.memset.p0.i64({parameters})"));
    }

    // Entry

    fn parameters(&mut self) {
        for (k, var) in self.kernel.params.iter().enumerate() {
            let info = self.kernel.var(*var);
            let dtype = info.dtype;
            let place = self.fresh("place");
            let given = self.fresh("given");
            self.at_entry(format!("%{place} = getelementptr ptr, ptr %scalars, i64 {k}"));
            self.at_entry(format!("%{given} = load ptr, ptr %{place}, align 8"));
            let stored = stored(Elem::Value(dtype));
            let mut parts = Vec::new();
            for part in 0..parts_of(dtype) {
                let at = self.fresh("part");
                let name = self.fresh(&info.name);
                self.at_entry(format!("%{at} = getelementptr {stored}, ptr %{given}, i64 {part}"));
                self.at_entry(format!("%{name} = load {stored}, ptr %{at}, align {}", dtype.real().size()));
                if dtype == DType::Bool {
                    self.at_entry(format!("%{name}.set = icmp ne i8 %{name}, 0"));
                    parts.push(format!("%{name}.set"));
                } else {
                    parts.push(format!("%{name}"));
                }
            }
            let value = from_parts(parts);
            self.vars[var.index()] = Some(Slot::Value(value.clone()));
            if info.mutable {
                let slot = self.slot(*var);
                let saved = std::mem::take(&mut self.body);
                self.write_slot(dtype, &slot, &value);
                let stores = std::mem::replace(&mut self.body, saved);
                self.entry.push_str(&stores);
                self.vars[var.index()] = Some(Slot::Memory(slot));
            }
        }
    }

    /// Where a variable is handed on from one piece to the next, or the second part of it.
    fn handed(&mut self, number: usize, dtype: DType, part: usize) -> String {
        let at = self.kernel.params.len() + self.facts.workspaces.len();
        let place = self.op(format!("getelementptr ptr, ptr %scalars, i64 {at}"));
        let all = self.op(format!("load ptr, ptr {place}, align 8"));
        let bytes = number * pieces::STRIDE + part * dtype.real().size();
        self.op(format!("getelementptr i8, ptr {all}, i64 {bytes}"))
    }

    /// Declares what earlier pieces have handed on.
    fn take(&mut self, vars: &[(usize, VarId)]) {
        for (number, var) in vars {
            let dtype = self.kernel.var(*var).dtype;
            let mut parts = Vec::new();
            for part in 0..parts_of(dtype) {
                let place = self.handed(*number, dtype, part);
                let stored = stored(Elem::Value(dtype));
                let value = self.op(format!("load {stored}, ptr {place}, align {}", dtype.real().size()));
                parts.push(if dtype == DType::Bool { self.op(format!("icmp ne i8 {value}, 0")) } else { value });
            }
            self.define(*var, from_parts(parts));
        }
    }

    /// Hands variables on to later pieces.
    fn give(&mut self, vars: &[(usize, VarId)]) {
        for (number, var) in vars {
            let dtype = self.kernel.var(*var).dtype;
            let value = self.variable(*var);
            let parts = match &value {
                Val::One(one) => vec![one.clone()],
                Val::Two(re, im) => vec![re.clone(), im.clone()],
            };
            for (part, value) in parts.into_iter().enumerate() {
                let place = self.handed(*number, dtype, part);
                let value = if dtype == DType::Bool { self.op(format!("zext i1 {value} to i8")) } else { value };
                let stored = stored(Elem::Value(dtype));
                self.line(format!("store {stored} {value}, ptr {place}, align {}", dtype.real().size()));
            }
        }
    }

    /// Makes the stack slots of a variable.
    fn slot(&mut self, var: VarId) -> Val {
        let info = self.kernel.var(var);
        let ty = ty(info.dtype);
        let parts: Vec<String> = (0..parts_of(info.dtype)).map(|_| self.fresh(&info.name)).collect();
        for name in &parts {
            self.at_entry(format!("%{name} = alloca {ty}"));
        }
        from_parts(parts.into_iter().map(|name| format!("%{name}")).collect())
    }

    fn write_slot(&mut self, dtype: DType, slot: &Val, value: &Val) {
        let ty = ty(dtype);
        self.line(format!("store {ty} {}, ptr {}", value.re(), slot.re()));
        if let (Val::Two(_, place), Val::Two(_, im)) = (slot, value) {
            self.line(format!("store {ty} {im}, ptr {place}"));
        }
    }

    fn buffers(&mut self) {
        for k in 0..self.kernel.buffers.len() {
            let place = self.place(BufferId(k as u32));
            self.places.push(place);
        }
    }

    fn place(&mut self, id: BufferId) -> Place {
        let info = self.kernel.buffer(id);
        let name = self.fresh(&info.name);
        if !self.facts.used[id.index()] {
            return Place { data: "null".into(), len: "0".into(), in_slots: false };
        }
        if let Role::Tile(size) = info.role
            && Facts::on_stack(self.kernel, id)
        {
            let array = format!("[{} x {}]", size as usize * parts_of(info.elem.dtype()), stored(info.elem));
            self.at_entry(format!("%{name} = alloca {array}, align 64"));
            self.declare_memset();
            let bytes = size as usize * info.elem.size();
            self.at_entry(format!("call void @llvm.memset.p0.i64(ptr align 64 %{name}, i8 0, i64 {bytes}, i1 false)"));
            return Place { data: format!("%{name}"), len: size.to_string(), in_slots: false };
        }
        let at = DESCRIPTOR * id.index();
        self.at_entry(format!("%{name}.at = getelementptr i8, ptr %buffers, i64 {at}"));
        self.at_entry(format!("%{name}.len.at = getelementptr i8, ptr %{name}.at, i64 8"));
        self.at_entry(format!("%{name}.start = load ptr, ptr %{name}.at, align 8"));
        if !self.facts.grows[id.index()] {
            self.at_entry(format!("%{name}.count = load i64, ptr %{name}.len.at, align 8"));
            return Place { data: format!("%{name}.start"), len: format!("%{name}.count"), in_slots: false };
        }
        // Lengths matter for growth only, which is too rare to spend a register on.
        self.at_entry(format!("%{name}.data = alloca ptr"));
        self.at_entry(format!("store ptr %{name}.start, ptr %{name}.data"));
        Place { data: format!("%{name}.data"), len: format!("%{name}.len.at"), in_slots: true }
    }

    /// The first element of a buffer.
    fn data(&mut self, id: BufferId) -> String {
        let Place { data, in_slots, .. } = &self.places[id.index()];
        let data = data.clone();
        if *in_slots { self.op(format!("load ptr, ptr {data}")) } else { data }
    }

    /// The length of a buffer.
    fn len(&mut self, id: BufferId) -> String {
        let Place { len, in_slots, .. } = &self.places[id.index()];
        let len = len.clone();
        if *in_slots { self.op(format!("load i64, ptr {len}, align 8")) } else { len }
    }

    // The module

    /// Metadata of an access to a buffer.
    fn scope(&self, id: BufferId) -> String {
        let base = 2 + self.kernel.buffers.len() + 2 * id.index();
        format!(", !alias.scope !{base}, !noalias !{}", base + 1)
    }

    /// Adds a loop's metadata and gives its number.
    fn loop_metadata(&mut self, Hint { vectorise, unroll, short_trip }: Hint) -> usize {
        let number = 2 + 3 * self.kernel.buffers.len() + self.loops.len();
        self.hinted |= vectorise || unroll;
        let mut node = format!("!{number} = distinct !{{!{number}");
        if !vectorise {
            node.push_str(", !{!\"llvm.loop.vectorize.enable\", i1 false}");
        }
        if unroll {
            node.push_str(", !{!\"llvm.loop.unroll.full\"}");
        } else if vectorise {
            // More would be faster by nothing that can be measured, and takes as many times longer to compile.
            let lanes = if short_trip { FEW } else { LANES };
            let _ = write!(node, ", !{{!\"llvm.loop.vectorize.width\", i32 {lanes}}}");
            node.push_str(", !{!\"llvm.loop.interleave.count\", i32 1}");
        }
        node.push('}');
        self.loops.push(node);
        number
    }

    fn module(mut self, options: &CodegenOptions) -> String {
        let mut text = String::with_capacity(self.entry.len() + self.body.len() + 4096);
        // Names are not part of a kernel's identity, and neither is anything that is only for reading.
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
        let buffers = self.kernel.buffers.len();
        for k in 0..buffers {
            let _ = writeln!(text, "!{} = distinct !{{!{}, !1}}", 2 + k, 2 + k);
        }
        for k in 0..buffers {
            let others: Vec<String> = (0..buffers).filter(|j| *j != k).map(|j| format!("!{}", 2 + j)).collect();
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

    /// Forgets what this statement has in registers.
    fn forget(&mut self) {
        self.memo.clear();
        self.trail.clear();
    }

    /// Makes a tile that is too large for the stack, like scratch.
    fn large_tile(&mut self, id: BufferId) {
        let info = self.kernel.buffer(id);
        if let Role::Tile(size) = info.role
            && self.facts.used[id.index()]
            && !Facts::on_stack(self.kernel, id)
        {
            let data = self.call_grow(id, &size.to_string(), Some(Value::zero(info.elem.dtype())));
            self.places[id.index()] = Place { data, len: size.to_string(), in_slots: false };
        }
    }

    /// Calls the runtime to make a buffer longer; gives its first element.
    fn call_grow(&mut self, id: BufferId, len: &str, fill: Option<Value>) -> String {
        let elem = self.kernel.buffer(id).elem;
        let parameters = "ptr nocapture, i64, i64, ptr nocapture readonly, ptr nocapture";
        self.declare("tamis_grow", || format!("declare ptr @tamis_grow({parameters}) nounwind cold"));
        // In check mode what is read before it is written is at least the same every time.
        let fill = fill.or_else(|| self.check.then(|| Value::zero(elem.dtype())));
        let fill = fill.map_or("null".to_string(), |fill| self.fill_constant(elem, fill));
        let growth = growth(id.index(), elem);
        let arguments = format!("ptr %buffers, i64 {len}, i64 {growth}, ptr {fill}, ptr %failure");
        let data = self.op(format!("call ptr @tamis_grow({arguments})"));
        let done = self.op(format!("icmp ne ptr {data}, null"));
        let fine = self.fresh("fine");
        self.can_be_full = true;
        self.line(format!("br i1 {done}, label %{fine}, label %full, !prof !0"));
        self.start(&fine);
        data
    }
}

/// How many registers a value takes.
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
