//! Printer of kernels: the text that the parser of this folder reads back.

use super::expressions::{constant_text, converted};
use super::{quoted, spelled};
use crate::algebra::{DType, Op};
use crate::kernel::{
    Assumption, Block, BufferId, Chunks, Elem, Expr, ExprId, Kernel, LoopKind, Merge, Role, Stmt, VarId, VectorExpr,
    Workspace,
};
use std::fmt;

impl fmt::Display for Elem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Elem::Value(dtype) => f.write_str(dtype.name()),
            Elem::Index(width) => f.write_str(width.name()),
        }
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "kernel {}", spelled(&self.name))?;
        for buffer in &self.buffers {
            let role = match buffer.role {
                Role::Input => "in".to_string(),
                Role::Output => "out".to_string(),
                Role::Scratch => "scratch".to_string(),
                Role::Tile(size) => format!("tile({size})"),
                Role::Shared(size) => format!("shared({size})"),
            };
            let index = if buffer.elem.is_index() { "index " } else { "" };
            writeln!(f, "    {role} {}: {index}{}[]", spelled(&buffer.name), buffer.elem)?;
        }
        for param in &self.params {
            let var = self.var(*param);
            let word = if var.mutable { "in var" } else { "in" };
            writeln!(f, "    {word} {}: {}", spelled(&var.name), var.dtype)?;
        }
        for assumption in &self.assumptions {
            writeln!(f, "    assume {}", self.show_assumption(*assumption))?;
        }
        for workspace in self.workspaces() {
            writeln!(f, "    {}", self.show_workspace(&workspace))?;
        }
        writeln!(f, "begin")?;
        self.print_block(f, &self.body, 1)
    }
}

impl Kernel {
    fn print_block(&self, f: &mut fmt::Formatter<'_>, block: &Block, depth: usize) -> fmt::Result {
        block.iter().try_for_each(|stmt| self.print_stmt(f, stmt, depth))
    }

    fn print_stmt(&self, f: &mut fmt::Formatter<'_>, stmt: &Stmt, depth: usize) -> fmt::Result {
        write!(f, "{:1$}", "", 4 * depth)?;
        let name = |id: &BufferId| spelled(&self.buffer(*id).name);
        match stmt {
            Stmt::Let { var, value } => {
                let info = self.var(*var);
                let word = if info.mutable { "var" } else { "let" };
                writeln!(
                    f,
                    "{word} {}: {}{} = {}",
                    self.declared(*var),
                    info.dtype,
                    lanes_text(info.lanes),
                    self.show(*value)
                )
            }
            Stmt::Assign { var, value } => writeln!(f, "{} = {}", spelled(&self.var(*var).name), self.show(*value)),
            Stmt::Store { buffer, index, value } => {
                writeln!(f, "{}[{}] = {}", name(buffer), self.show(*index), self.show(*value))
            }
            Stmt::MaskedStore { buffer, index, value, mask } => {
                let (index, value, mask) = (self.show(*index), self.show(*value), self.show(*mask));
                writeln!(f, "{}[{index}] = {value} where {mask}", name(buffer))
            }
            Stmt::Update { buffer, index, op, value } => {
                let (index, value) = (self.show(*index), self.show(*value));
                writeln!(f, "atomic {}[{index}] {} {value}", name(buffer), op.info().name)
            }
            Stmt::Prefetch { buffer, index, distance, locality } => {
                let index = self.show(*index);
                writeln!(f, "prefetch {}[{index}] ahead {distance} locality {locality}", name(buffer))
            }
            Stmt::Barrier => writeln!(f, "barrier"),
            Stmt::For { var, start, stop, body, hint } => {
                let vector = match (hint.vectorise, hint.short_trip) {
                    (false, _) => "",
                    (true, false) => " vector",
                    (true, true) => " vector(short_trip)",
                };
                let kind = self.show_kind(hint.kind);
                let range = format!("{}..{}", self.show(*start), self.show(*stop));
                let word = if self.var(*var).mutable { "var " } else { "" };
                writeln!(f, "for {word}{} in {range}{vector}{kind}", self.declared(*var))?;
                self.print_block(f, body, depth + 1)
            }
            Stmt::While { cond, body } => {
                writeln!(f, "while {}", self.show(*cond))?;
                self.print_block(f, body, depth + 1)
            }
            Stmt::If { cond, then, otherwise } => {
                writeln!(f, "if {}", self.show(*cond))?;
                self.print_block(f, then, depth + 1)?;
                if !otherwise.is_empty() {
                    writeln!(f, "{:1$}else", "", 4 * depth)?;
                    self.print_block(f, otherwise, depth + 1)?;
                }
                Ok(())
            }
            Stmt::Labelled { label, body } => {
                writeln!(f, "block l{}", label.0)?;
                self.print_block(f, body, depth + 1)
            }
            Stmt::Break(label) => writeln!(f, "break l{}", label.0),
            Stmt::Grow { buffer, len, fill: Some(fill) } => {
                writeln!(f, "grow {} to {} with {}", name(buffer), self.show(*len), constant_text(*fill))
            }
            Stmt::Grow { buffer, len, fill: None } => writeln!(f, "grow {} to {}", name(buffer), self.show(*len)),
            Stmt::Fill { buffer, start, len, value } => {
                let (start, len) = (self.show(*start), self.show(*len));
                writeln!(f, "fill {}[{start}; {len}] with {}", name(buffer), self.show(*value))
            }
            Stmt::Search { var, buffer, start, stop, key, back } => {
                let (start, stop, key) = (self.show(*start), self.show(*stop), self.show(*key));
                let back = if *back { " back" } else { "" };
                let found = format!("search{back} {}[{start}..{stop}] for {key}", name(buffer));
                self.print_position(f, *var, &found)
            }
            Stmt::Sort { buffer, start, stop, flags } => {
                let flags = flags.map(|flags| format!(" by {}", name(&flags))).unwrap_or_default();
                writeln!(f, "sort {}[{}..{}]{flags}", name(buffer), self.show(*start), self.show(*stop))
            }
            Stmt::Gemm(gemm) => {
                let [m, n, k] = gemm.sizes.map(|size| self.show(size));
                let [c, a, b] = gemm.views().map(|view| {
                    let [rows, columns] = view.strides.map(|stride| self.show(stride));
                    format!("{}[{}; {rows}, {columns}]", name(&view.buffer), self.show(view.offset))
                });
                writeln!(f, "gemm {c}, {a}, {b} of {m}, {n}, {k} times {}", self.show(gemm.alpha))
            }
            Stmt::Reset { workspace, sizes } => {
                writeln!(f, "reset {}[{}]", spelled(&workspace.name), self.show_list(sizes))
            }
            Stmt::Insert { var, workspace, coordinates } => {
                let place = format!("insert {}[{}]", spelled(&workspace.name), self.show_list(coordinates));
                self.print_position(f, *var, &place)
            }
            Stmt::Finalize { var, workspace } => {
                self.print_position(f, *var, &format!("finalize {}", spelled(&workspace.name)))
            }
            Stmt::Require { cond, message } => {
                writeln!(f, "require {} else {}", self.show(*cond), quoted(message, '"'))
            }
        }
    }

    /// The kind of a loop, behind its range.
    fn show_kind(&self, kind: LoopKind) -> String {
        match kind {
            LoopKind::Serial => String::new(),
            LoopKind::Unrolled | LoopKind::Grid | LoopKind::Block | LoopKind::Lane => format!(" {}", kind.name()),
            LoopKind::Vector { lanes, tail } => format!(" vector({lanes} lanes, {})", tail.name()),
            LoopKind::Parallel { chunks: Chunks::Extent, grain } => format!(" parallel(extent, grain {grain})"),
            LoopKind::Parallel { chunks: Chunks::Work(positions), grain } => {
                format!(" parallel(work {}, grain {grain})", spelled(&self.buffer(positions).name))
            }
        }
    }

    /// The declaration of a position that a search or a workspace gives.
    fn print_position(&self, f: &mut fmt::Formatter<'_>, var: VarId, value: &str) -> fmt::Result {
        let word = if self.var(var).mutable { "var" } else { "let" };
        writeln!(f, "{word} {} = {value}", self.declared(var))
    }

    /// The name of a declared variable, and the loop of the program that it belongs to.
    fn declared(&self, var: VarId) -> String {
        let info = self.var(var);
        let origin = match info.origin {
            Some(origin) if origin.visits => format!(" @loop({}, visits)", origin.index),
            Some(origin) => format!(" @loop({})", origin.index),
            None => String::new(),
        };
        format!("{}{origin}", spelled(&info.name))
    }

    fn show_list(&self, exprs: &[ExprId]) -> String {
        exprs.iter().map(|e| self.show(*e)).collect::<Vec<_>>().join(", ")
    }

    /// A precondition as text.
    ///
    /// ```
    /// use tamis_ir::kernel::{Assumption, BufferId, Kernel};
    /// let kernel = Kernel::parse("kernel f\n    in pos: index u32[]\nbegin\n")?;
    /// let fact = Assumption::Nondecreasing(BufferId(0));
    /// assert_eq!(kernel.show_assumption(fact), "nondecreasing(pos)");
    /// # Ok::<(), tamis_ir::Diagnostic>(())
    /// ```
    pub fn show_assumption(&self, assumption: Assumption) -> String {
        let name = |buffer: BufferId| spelled(&self.buffer(buffer).name);
        match assumption {
            Assumption::Holds(cond) => self.show(cond),
            Assumption::Length { buffer, least } => format!("length({}) >= {}", name(buffer), self.show(least)),
            Assumption::Longer { buffer, other, more } => {
                let more = if more == 0 { String::new() } else { format!(" + {more}") };
                format!("length({}) >= length({}){more}", name(buffer), name(other))
            }
            Assumption::Nondecreasing(buffer) => format!("nondecreasing({})", name(buffer)),
            Assumption::Below { buffer, bound } => format!("elements({}) < {}", name(buffer), self.show(bound)),
            Assumption::SpareCapacity(buffer) => format!("reserved({})", name(buffer)),
        }
    }

    fn show_workspace(&self, workspace: &Workspace) -> String {
        let name = |buffer: &BufferId| spelled(&self.buffer(*buffer).name);
        let coordinates: Vec<_> = workspace.coordinates.iter().map(name).collect();
        let policy = workspace.policy.as_ref().map(|policy| format!(" by {}", spelled(policy))).unwrap_or_default();
        let capacity = workspace.capacity.map(|n| format!(" capacity {n}")).unwrap_or_default();
        let pipelined = if workspace.pipelined { " pipelined" } else { "" };
        let merge = match workspace.merge {
            Merge::Never => String::new(),
            Merge::Later => " keeping later".to_string(),
            Merge::With(op) => format!(" merging {}", op.info().name),
        };
        let arrays = format!("{}; {}", coordinates.join(", "), name(&workspace.values));
        let start = constant_text(workspace.start);
        format!("workspace {}({arrays}) from {start}{policy}{capacity}{pipelined}{merge}", spelled(&workspace.name))
    }

    /// An expression as text.
    ///
    /// ```
    /// use tamis_ir::{DType, kernel::Builder};
    /// let mut b = Builder::new("f");
    /// let n = b.param("n", DType::I64);
    /// let (n, one) = (b.get(n), b.int(1));
    /// let next = b.add(n, one);
    /// assert_eq!(b.finish().show(next), "n + 1");
    /// ```
    pub fn show(&self, id: ExprId) -> String {
        match self.expr(id) {
            Expr::Const(value) => constant_text(*value),
            Expr::Var(var) => spelled(&self.var(*var).name).into_owned(),
            Expr::Load(buffer, index) => format!("{}[{}]", spelled(&self.buffer(*buffer).name), self.show(*index)),
            Expr::Call(op, operand, operands) => self.show_call(*op, *operand, operands),
            Expr::Vector(vector) => self.show_vector(*vector),
        }
    }

    fn show_vector(&self, vector: VectorExpr) -> String {
        match vector {
            VectorExpr::Ramp { start, step, lanes } => format!("ramp({}, {step}, {lanes})", self.show(start)),
            VectorExpr::Splat { value, lanes } => format!("splat({}, {lanes})", self.show(value)),
            VectorExpr::Masked { buffer, index, mask, otherwise } => {
                let element = format!("{}[{}]", spelled(&self.buffer(buffer).name), self.show(index));
                format!("masked({element}, {}, {})", self.show(mask), self.show(otherwise))
            }
            VectorExpr::Reduce { op, value } => format!("reduce({}, {})", op.info().name, self.show(value)),
        }
    }

    fn show_call(&self, op: Op, operand: DType, operands: &[ExprId]) -> String {
        let info = op.info();
        let parenthesised = |id: &ExprId| match self.expr(*id) {
            Expr::Call(inner, _, operands) if inner.info().symbol.is_some() && operands.len() == 2 => {
                format!("({})", self.show(*id))
            }
            _ => self.show(*id),
        };
        // The operand type is written where it is not that of the operands.
        let differs = converted(op, operands).iter().any(|e| self.exprs.dtype(*e) != operand);
        let suffix = if differs { format!(":{operand}") } else { String::new() };
        match (info.symbol, operands) {
            (Some(symbol), [a, b]) => format!("{} {symbol}{suffix} {}", parenthesised(a), parenthesised(b)),
            _ => {
                let operands: Vec<String> = operands.iter().map(|e| self.show(*e)).collect();
                format!("{}{suffix}({})", info.name, operands.join(", "))
            }
        }
    }
}

/// `x8` for eight lanes, nothing for one.
fn lanes_text(lanes: u16) -> String {
    if lanes == 1 { String::new() } else { format!("x{lanes}") }
}
