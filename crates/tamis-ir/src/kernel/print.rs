//! Printer of kernels, for people and golden tests.

use super::{Block, Elem, Expr, ExprId, Kernel, Merge, Role, Stmt};
use crate::algebra::{DType, Op};
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
        writeln!(f, "kernel {}", self.name)?;
        for buffer in &self.buffers {
            let role = match buffer.role {
                Role::Input => "in".to_string(),
                Role::Output => "out".to_string(),
                Role::Scratch => "scratch".to_string(),
                Role::Tile(size) => format!("tile({size})"),
            };
            writeln!(f, "    {role} {}: {}[]", buffer.name, buffer.elem)?;
        }
        for param in &self.params {
            let var = self.var(*param);
            writeln!(f, "    in {}: {}", var.name, var.dtype)?;
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
        let name = |id: &super::BufferId| self.buffer(*id).name.as_str();
        match stmt {
            Stmt::Let { var, value } => {
                let info = self.var(*var);
                let word = if info.mutable { "var" } else { "let" };
                writeln!(f, "{word} {}: {} = {}", info.name, info.dtype, self.show(*value))
            }
            Stmt::Assign { var, value } => writeln!(f, "{} = {}", self.var(*var).name, self.show(*value)),
            Stmt::Store { buffer, index, value } => {
                writeln!(f, "{}[{}] = {}", name(buffer), self.show(*index), self.show(*value))
            }
            Stmt::For { var, start, stop, body, hint } => {
                let vector = match (hint.vectorise, hint.short_trip) {
                    (false, _) => "",
                    (true, false) => " vector",
                    (true, true) => " vector(short_trip)",
                };
                let unroll = if hint.unroll { " unroll" } else { "" };
                let range = format!("{}..{}", self.show(*start), self.show(*stop));
                writeln!(f, "for {} in {range}{vector}{unroll}", self.var(*var).name)?;
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
                writeln!(f, "grow {} to {} with {fill}", name(buffer), self.show(*len))
            }
            Stmt::Grow { buffer, len, fill: None } => writeln!(f, "grow {} to {}", name(buffer), self.show(*len)),
            Stmt::Fill { buffer, start, len, value } => {
                let (start, len) = (self.show(*start), self.show(*len));
                writeln!(f, "fill {}[{start}; {len}] with {}", name(buffer), self.show(*value))
            }
            Stmt::Search { var, buffer, start, stop, key, back } => {
                let (start, stop, key) = (self.show(*start), self.show(*stop), self.show(*key));
                let (var, back) = (&self.var(*var).name, if *back { " back" } else { "" });
                writeln!(f, "let {var} = search{back} {}[{start}..{stop}] for {key}", name(buffer))
            }
            Stmt::Sort { buffer, start, stop, flags } => {
                let flags = flags.map(|flags| format!(" by {}", name(&flags))).unwrap_or_default();
                writeln!(f, "sort {}[{}..{}]{flags}", name(buffer), self.show(*start), self.show(*stop))
            }
            Stmt::Reset { workspace, sizes } => {
                let capacity = workspace.capacity.map(|n| format!(", {n}")).unwrap_or_default();
                let pipelined = if workspace.pipelined { ", pipelined" } else { "" };
                let policy = match &workspace.policy {
                    Some(policy) => format!(" by {policy}{capacity}{pipelined}"),
                    None => String::new(),
                };
                let merge = match workspace.merge {
                    Merge::Never => String::new(),
                    Merge::Later => ", later entries replace".to_string(),
                    Merge::With(op) => format!(", merged by {}", op.info().name),
                };
                let sizes: Vec<String> = sizes.iter().map(|e| self.show(*e)).collect();
                writeln!(f, "reset {}[{}]{policy} with {}{merge}", workspace.name, sizes.join(", "), workspace.start)
            }
            Stmt::Insert { var, workspace, coordinates } => {
                let coordinates: Vec<String> = coordinates.iter().map(|e| self.show(*e)).collect();
                let var = &self.var(*var).name;
                writeln!(f, "let {var} = insert {}[{}]", workspace.name, coordinates.join(", "))
            }
            Stmt::Finalize { var, workspace } => {
                writeln!(f, "let {} = finalize {}", self.var(*var).name, workspace.name)
            }
            Stmt::Require { cond, message } => writeln!(f, "require {} else {message:?}", self.show(*cond)),
        }
    }

    /// An expression as text.
    pub fn show(&self, id: ExprId) -> String {
        match self.expr(id) {
            Expr::Const(value) => value.to_string(),
            Expr::Var(var) => self.var(*var).name.clone(),
            Expr::Load(buffer, index) => format!("{}[{}]", self.buffer(*buffer).name, self.show(*index)),
            Expr::Call(op, operand, operands) => self.show_call(*op, *operand, operands),
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
        // The operand type is printed if it differs from that of the operands.
        let converted =
            operands.iter().any(|e| self.exprs.dtype(*e) != operand) && !matches!(op, Op::Cast(_) | Op::Select);
        let suffix = if converted { format!(":{operand}") } else { String::new() };
        match (info.symbol, operands) {
            (Some(symbol), [a, b]) => format!("{} {symbol}{suffix} {}", parenthesised(a), parenthesised(b)),
            _ => {
                let operands: Vec<String> = operands.iter().map(|e| self.show(*e)).collect();
                format!("{}{suffix}({})", info.name, operands.join(", "))
            }
        }
    }
}
