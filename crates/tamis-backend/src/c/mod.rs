//! C back end: prints a kernel as a C file, to be read and to be used without Tamis.
//!
//! A file holds one function with the kernel's arrays and scalars as parameters, the helpers it
//! calls, and an entry point that takes the same tables as machine code. A kernel prints the same
//! text on every machine.

mod expr;
mod helpers;
mod names;
mod ops;
mod stmt;
mod workspace;

use crate::facts::KernelFacts;
use crate::failure::bug;
use names::CNames;
use std::collections::{BTreeSet, HashSet};
use std::fmt::Write;
use tamis_ir::kernel::{BufferId, Elem, Kernel, LabelId, Role};
use tamis_ir::{DType, Diagnostic};

/// Maximum number of expressions in a file: shared operands are printed repeatedly, and can grow
/// exponentially.
const MAX_EXPRESSIONS: usize = 1 << 20;

/// The name of the entry point in the C file of a kernel.
///
/// ```
/// use tamis_backend::c;
/// let kernel = tamis_ir::kernel::Builder::new("first").finish();
/// assert_eq!(c::entry_name(&kernel), "first_call");
/// assert!(c::print(&kernel)?.contains("first_call("));
/// # Ok::<(), tamis_ir::Diagnostic>(())
/// ```
pub fn entry_name(kernel: &Kernel) -> String {
    format!("{}_call", CNames::new().fresh(&kernel.name))
}

/// Prints a kernel as a C file.
///
/// ```
/// # use tamis_ir::kernel::{Builder, Elem, Role};
/// # use tamis_ir::DType;
/// let mut b = Builder::new("first");
/// let x = b.buffer("x", Elem::Value(DType::F64), Role::Input);
/// let y = b.buffer("y", Elem::Value(DType::F64), Role::Output);
/// let zero = b.int(0);
/// let value = b.load(x, zero);
/// b.store(y, zero, value);
/// let text = tamis_backend::c::print(&b.finish())?;
/// assert!(text.contains("void first(const double *restrict x, double *restrict y)"));
/// assert!(text.contains("y[0] = x[0];"));
/// # Ok::<(), tamis_ir::Diagnostic>(())
/// ```
///
/// Vectors are printed as arrays, and operations on them as loops over their lanes, of which C
/// compilers make vector instructions.
pub fn print(kernel: &Kernel) -> Result<String, Diagnostic> {
    let kernel = &*kernel.legalized();
    let facts = KernelFacts::new(kernel)?;
    let mut printer = Printer {
        kernel,
        facts: &facts,
        names: CNames::new(),
        text: String::new(),
        depth: 1,
        vars: vec![String::new(); kernel.vars.len()],
        buffers: Vec::new(),
        tables: Vec::new(),
        helpers: Vec::new(),
        loops: Vec::new(),
        goto_labels: HashSet::new(),
        written: 0,
        fails: false,
    };
    let text = printer.file();
    if printer.written > MAX_EXPRESSIONS {
        return Err(bug("the kernel is too large"));
    }
    Ok(text)
}

/// The file under construction.
struct Printer<'a> {
    kernel: &'a Kernel,
    facts: &'a KernelFacts,
    names: CNames,
    /// The body of the function.
    text: String,
    depth: usize,
    vars: Vec<String>,
    buffers: Vec<BufferNames>,
    /// The hash tables of workspaces, by the buffers of their values.
    tables: Vec<(BufferId, String)>,
    /// Helper functions in order of definition.
    helpers: Vec<(String, String)>,
    /// The label that a C `break` exits, for each enclosing loop.
    loops: Vec<Option<LabelId>>,
    goto_labels: HashSet<LabelId>,
    /// The number of printed expressions.
    written: usize,
    fails: bool,
}

/// The C names of a buffer: its elements, and its descriptor if needed.
struct BufferNames {
    data: String,
    descriptor: Option<String>,
}

impl Printer<'_> {
    fn file(&mut self) -> String {
        let function = self.names.fresh(&self.kernel.name);
        let parameters = self.declare_parameters();
        let mut start = String::new();
        std::mem::swap(&mut start, &mut self.text);
        self.stmts(&self.kernel.body);
        let own = self.owns_memory();
        let result = if self.fails { "int32_t" } else { "void" };
        let mut list: Vec<String> = parameters.iter().map(|(declaration, _)| declaration.clone()).collect();
        if self.fails {
            list.push("tamis_failure *failure".into());
        }
        let list = if list.is_empty() { "void".to_string() } else { list.join(", ") };
        let mut file = String::new();
        file.push_str(TYPES);
        for (_, code) in &self.helpers {
            let _ = write!(file, "\n{code}");
        }
        let _ = writeln!(file, "\n{result} {function}({list})\n{{");
        if own && self.fails {
            file.push_str("    int32_t status = 0;\n");
        }
        for (_, table) in &self.tables {
            let _ = writeln!(file, "    tamis_table {table} = {{0}};");
        }
        file.push_str(&start);
        file.push_str(&self.text);
        if own {
            if self.fails {
                file.push_str("done:\n");
            }
            for (_, table) in &self.tables {
                let _ = writeln!(file, "    free({table}.slots);");
            }
            for (k, buffer) in self.buffers.iter().enumerate() {
                if let (Role::Scratch | Role::Tile(_), Some(descriptor)) =
                    (self.kernel.buffers[k].role, &buffer.descriptor)
                {
                    let _ = writeln!(file, "    free({descriptor}.data);");
                }
            }
        }
        if self.fails {
            let _ = writeln!(file, "    return {};", if own { "status" } else { "0" });
        }
        file.push_str("}\n");
        let arguments: Vec<&str> = parameters.iter().map(|(_, argument)| argument.as_str()).collect();
        file.push_str(&self.entry(&function, &arguments));
        format!("/* Kernel `{function}`, generated by Tamis. */\n{}{file}", includes(&file))
    }

    /// CNames all buffers and scalars; returns the parameter declarations, and the arguments that
    /// the entry point passes.
    fn declare_parameters(&mut self) -> Vec<(String, String)> {
        let mut parameters = Vec::new();
        for (k, buffer) in self.kernel.buffers.iter().enumerate() {
            let data = self.names.fresh(&buffer.name);
            let ty = stored(buffer.elem);
            let id = BufferId(k as u32);
            if !self.facts.used[k] {
                self.buffers.push(BufferNames { data, descriptor: None });
                continue;
            }
            let mut descriptor = None;
            match buffer.role {
                Role::Input => {
                    parameters.push((format!("const {ty} *restrict {data}"), format!("buffers[{k}].data")));
                }
                Role::Output if !self.facts.grows[k] => {
                    parameters.push((format!("{ty} *restrict {data}"), format!("buffers[{k}].data")));
                }
                Role::Output => {
                    let name = self.names.fresh(&format!("{data}_buffer"));
                    parameters.push((format!("tamis_buffer *{name}"), format!("&buffers[{k}]")));
                    if self.facts.accessed[k] {
                        let _ = writeln!(self.text, "    {ty} *restrict {data} = {name}->data;");
                    }
                    descriptor = Some(name);
                }
                Role::Tile(size) if KernelFacts::on_stack(self.kernel, id) => {
                    let _ = writeln!(self.text, "    {ty} {data}[{}] = {{0}};", size.max(1));
                    if !self.facts.loaded[k] {
                        let _ = writeln!(self.text, "    (void){data};");
                    }
                }
                // Legalisation leaves no shared buffers.
                Role::Scratch | Role::Tile(_) | Role::Shared(_) => {
                    let name = self.names.fresh(&format!("{data}_buffer"));
                    let _ = writeln!(self.text, "    tamis_buffer {name} = {{0}};");
                    if self.facts.accessed[k] {
                        let _ = writeln!(self.text, "    {ty} *restrict {data} = NULL;");
                    }
                    descriptor = Some(name);
                }
            }
            self.buffers.push(BufferNames { data, descriptor });
        }
        for (k, var) in self.kernel.params.iter().enumerate() {
            let info = self.kernel.var(*var);
            let (name, ty) = (self.names.fresh(&info.name), self.ty(info.dtype));
            self.vars[var.index()] = name.clone();
            if self.facts.read[var.index()] {
                let argument = match info.dtype {
                    DType::Bool => format!("*(const uint8_t *)scalars[{k}] != 0"),
                    _ => format!("*(const {ty} *)scalars[{k}]"),
                };
                parameters.push((format!("{ty} {name}"), argument));
            }
        }
        // Tiles that are too large for the stack are allocated once, like scratch.
        let body = std::mem::take(&mut self.text);
        let mut grown = String::new();
        for k in 0..self.kernel.buffers.len() {
            if let (Role::Tile(size), Some(_)) = (self.kernel.buffers[k].role, &self.buffers[k].descriptor) {
                let zero = tamis_ir::Value::zero(self.kernel.buffers[k].elem.dtype());
                self.grow_to(BufferId(k as u32), &size.to_string(), Some(zero));
                grown.push_str(&std::mem::take(&mut self.text));
            }
        }
        self.text = body;
        self.text.push_str(&grown);
        parameters
    }

    /// True if the function owns memory that it frees at the end.
    fn owns_memory(&self) -> bool {
        self.kernel
            .buffers
            .iter()
            .zip(&self.buffers)
            .any(|(buffer, names)| matches!(buffer.role, Role::Scratch | Role::Tile(_)) && names.descriptor.is_some())
            || !self.facts.workspaces.is_empty()
    }

    fn entry(&self, function: &str, arguments: &[&str]) -> String {
        let mut arguments = arguments.to_vec();
        let mut text = format!(
            "\n/* Entry point: the buffer table, the scalar pointers, and the failure operands. */\n\
             int32_t {function}_call(tamis_buffer *buffers, const void *const *scalars, tamis_failure *failure)\n{{\n"
        );
        for unused in ["buffers", "scalars"] {
            if !arguments.iter().any(|argument| argument.contains(unused)) {
                let _ = writeln!(text, "    (void){unused};");
            }
        }
        if self.fails {
            arguments.push("failure");
            let _ = writeln!(text, "    return {function}({});", arguments.join(", "));
        } else {
            let _ = writeln!(text, "    (void)failure;\n    {function}({});\n    return 0;", arguments.join(", "));
        }
        text.push_str("}\n");
        text
    }

    /// Writes a line of the body.
    fn line(&mut self, text: impl AsRef<str>) {
        let _ = writeln!(self.text, "{:1$}{2}", "", 4 * self.depth, text.as_ref());
    }

    /// The C type of a value.
    fn ty(&self, dtype: DType) -> &'static str {
        value_type(dtype)
    }
}

/// The `#include` lines for what a text uses.
fn includes(text: &str) -> String {
    let library = "NAN INFINITY isnan isinf isfinite signbit copysign fabs rint fmod";
    let operators = tamis_ir::algebra::TABLE.iter().map(|row| row.name);
    let math: HashSet<&str> = library.split(' ').chain(operators).collect();
    let mut found: BTreeSet<&str> = BTreeSet::from(["stdint"]);
    for word in text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
        found.extend(match word {
            "complex" | "CMPLX" | "CMPLXF" => Some("complex"),
            "bool" | "true" | "false" => Some("stdbool"),
            "NULL" | "size_t" => Some("stddef"),
            "realloc" | "malloc" | "calloc" | "free" | "qsort" => Some("stdlib"),
            "memcpy" => Some("string"),
            word if math.contains(word) || math.contains(word.strip_suffix('f').unwrap_or(word)) => Some("math"),
            _ => None,
        });
    }
    found.iter().map(|header| format!("#include <{header}.h>\n")).collect()
}

const TYPES: &str = "
typedef struct {
    void *data;
    int64_t len, cap;
} tamis_buffer;

typedef struct {
    int64_t id, index, len;
} tamis_failure;
";

fn value_type(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool => "bool",
        DType::I8 => "int8_t",
        DType::I16 => "int16_t",
        DType::I32 => "int32_t",
        DType::I64 => "int64_t",
        DType::U8 => "uint8_t",
        DType::U16 => "uint16_t",
        DType::U32 => "uint32_t",
        DType::U64 => "uint64_t",
        DType::F32 => "float",
        DType::F64 => "double",
        DType::C64 => "float complex",
        DType::C128 => "double complex",
    }
}

/// The C type of an element in memory. A byte other than 0 and 1 must not be read as a `bool`.
fn stored(elem: Elem) -> &'static str {
    match elem {
        Elem::Value(DType::Bool) => "uint8_t",
        Elem::Value(dtype) => value_type(dtype),
        Elem::Index(width) => match width.size() {
            1 => "uint8_t",
            2 => "uint16_t",
            4 => "uint32_t",
            _ => "uint64_t",
        },
    }
}
