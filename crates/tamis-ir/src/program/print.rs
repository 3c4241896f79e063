//! Printer of programs, in the text form that [`Program::parse`] parses to the same program.

use super::{
    Access, Attributes, Block, Declaration, EntryPart, Expr, ExprId, Extent, Program, Stmt, StmtKind, Storage,
    Subscript, TensorId,
};
use crate::algebra::{Op, Value};
use std::fmt;

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names =
            |ids: &[TensorId]| ids.iter().map(|id| self.tensor(*id).name.as_str()).collect::<Vec<_>>().join(", ");
        for user in self.user_operators() {
            writeln!(f, "{}", super::operators::definition(user))?;
        }
        writeln!(f, "def {}({}):", self.name, names(&self.params))?;
        self.block(f, &self.body, 1)?;
        writeln!(f, "    return {}", names(&self.results))
    }
}

/// The precedence of an expression; operands of lower precedence get parentheses.
mod binding {
    pub(super) const TERNARY: u8 = 0;
    pub(super) const OR: u8 = 1;
    pub(super) const AND: u8 = 2;
    pub(super) const NOT: u8 = 3;
    pub(super) const COMPARISON: u8 = 4;
    pub(super) const BIT_OR: u8 = 5;
    pub(super) const BIT_XOR: u8 = 6;
    pub(super) const BIT_AND: u8 = 7;
    pub(super) const SHIFT: u8 = 8;
    pub(super) const SUM: u8 = 9;
    pub(super) const PRODUCT: u8 = 10;
    pub(super) const UNARY: u8 = 11;
    pub(super) const POWER: u8 = 12;
    pub(super) const ATOM: u8 = 13;
}

impl Program {
    fn block(&self, f: &mut fmt::Formatter<'_>, block: &Block, depth: usize) -> fmt::Result {
        if block.is_empty() && depth > 1 {
            return writeln!(f, "{:1$}pass", "", 4 * depth);
        }
        block.iter().try_for_each(|stmt| self.stmt(f, stmt, depth))
    }

    fn stmt(&self, f: &mut fmt::Formatter<'_>, stmt: &Stmt, depth: usize) -> fmt::Result {
        write!(f, "{:1$}", "", 4 * depth)?;
        match &stmt.kind {
            StmtKind::Declare(id) => {
                let info = self.tensor(*id);
                match &info.declaration {
                    Some(declaration) => writeln!(f, "{} = {}", info.name, self.declaration(declaration)),
                    None => writeln!(f, "pass"),
                }
            }
            StmtKind::Let { var, value } => writeln!(f, "{} = {}", self.vars[var.index()], self.show(*value)),
            StmtKind::For { .. } => self.loops(f, stmt, depth),
            StmtKind::If { cond, then, otherwise } => {
                writeln!(f, "if {}:", self.show(*cond))?;
                self.block(f, then, depth + 1)?;
                if !otherwise.is_empty() {
                    writeln!(f, "{:1$}else:", "", 4 * depth)?;
                    self.block(f, otherwise, depth + 1)?;
                }
                Ok(())
            }
            StmtKind::Assign { target, update, value } => {
                let shown = self.access(target);
                let value = self.show(*value);
                match update {
                    None => writeln!(f, "{shown} = {value}"),
                    Some(update) => match update.op.info().symbol {
                        Some(symbol) if update.extra.is_empty() && symbol.starts_with(|c: char| !c.is_alphabetic()) => {
                            writeln!(f, "{shown} {symbol}= {value}")
                        }
                        Some(symbol) if update.extra.is_empty() => writeln!(f, "{shown} {symbol}= {value}"),
                        _ => {
                            let extra: String = update.extra.iter().map(|e| format!(", {}", self.show(*e))).collect();
                            writeln!(f, "{shown} = {}({shown}, {value}{extra})", update.op.info().name)
                        }
                    },
                }
            }
        }
    }

    /// Directly nested loops with the same kind of extent share a line: `for i, j in _:`.
    fn loops(&self, f: &mut fmt::Formatter<'_>, stmt: &Stmt, depth: usize) -> fmt::Result {
        let mut names = Vec::new();
        let mut innermost = stmt;
        let body = loop {
            let StmtKind::For { index, extent, attributes, body } = &innermost.kind else { return Ok(()) };
            names.push(self.indices[index.index()].as_str());
            match (extent, &body[..]) {
                (
                    Extent::Infer,
                    [only @ Stmt { kind: StmtKind::For { extent: Extent::Infer, attributes: inner, .. }, .. }],
                ) if *attributes == Attributes::default() && *inner == Attributes::default() => innermost = only,
                _ => break body,
            }
        };
        let extent = match &innermost.kind {
            StmtKind::For { extent: Extent::Range(start, stop), .. } => match self.expr(*start) {
                Expr::Literal(Value::I64(0)) => format!("range({})", self.show(*stop)),
                _ => format!("range({}, {})", self.show(*start), self.show(*stop)),
            },
            _ => "_".to_string(),
        };
        let extent = match &innermost.kind {
            StmtKind::For { attributes, .. } => attributes.around(extent),
            _ => extent,
        };
        writeln!(f, "for {} in {extent}:", names.join(", "))?;
        self.block(f, body, depth + 1)
    }

    fn declaration(&self, declaration: &Declaration) -> String {
        let mut out = match &declaration.storage {
            Storage::Tensor(spec) => format!("tensor(\"{spec}\""),
            Storage::Scalar(kind) => format!("{}(", kind.name()),
        };
        match (&declaration.storage, declaration.fill) {
            (Storage::Scalar(_), Some(fill)) => out += &fill.to_string(),
            (Storage::Tensor(spec), Some(fill)) if spec.leaf() != crate::format::Leaf::Element(Some(fill)) => {
                out += &format!(", fill={fill}");
            }
            _ => {}
        }
        let pattern = matches!(&declaration.storage, Storage::Tensor(s) if s.leaf() == crate::format::Leaf::Pattern);
        if let Some(dtype) = declaration.dtype.filter(|_| !pattern) {
            let comma = if out.ends_with('(') { "" } else { ", " };
            out += &format!("{comma}dtype=\"{dtype}\"");
        }
        if let Some(shape) = &declaration.shape {
            let dims: Vec<String> = shape.iter().map(|e| self.show(*e)).collect();
            out += &format!(", shape=({}{})", dims.join(", "), if dims.len() == 1 { "," } else { "" });
        }
        out + ")"
    }

    /// An access as text, `A[i, j]`.
    ///
    /// ```
    /// use tamis_ir::{Notation, program::{Expr, ExprId}};
    /// let program = Notation::parse("s = A[i,j]")?.plain()?;
    /// let all = (0..program.exprs.len() as u32).map(|k| program.expr(ExprId(k)));
    /// let reads = all.filter_map(|expr| match expr {
    ///     Expr::Read(access) => Some(program.access(access)),
    ///     _ => None,
    /// });
    /// assert_eq!(reads.collect::<Vec<_>>(), ["A[i, j]"]);
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn access(&self, access: &Access) -> String {
        let name = &self.tensor(access.tensor).name;
        if access.subscripts.is_empty() {
            return name.clone();
        }
        let subscripts: Vec<String> = access.subscripts.iter().map(|s| self.subscript(s)).collect();
        format!("{name}[{}]", subscripts.join(", "))
    }

    fn subscript(&self, subscript: &Subscript) -> String {
        let mut out = match (subscript.permissive, subscript.protocol) {
            (true, None) => self.operand(subscript.expr, binding::ATOM),
            _ => self.show(subscript.expr),
        };
        if let Some(protocol) = subscript.protocol {
            out = format!("{}({out})", protocol.name());
        }
        if subscript.permissive { format!("~{out}") } else { out }
    }

    /// An expression as text.
    ///
    /// ```
    /// use tamis_ir::{Notation, Value, program::Expr};
    /// let mut program = Notation::parse("s = x[i]")?.plain()?;
    /// let seven = program.exprs.intern(Expr::Literal(Value::I64(7)));
    /// assert_eq!(program.show(seven), "7");
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn show(&self, id: ExprId) -> String {
        self.operand(id, binding::TERNARY)
    }

    fn operand(&self, id: ExprId, context: u8) -> String {
        let (text, tightness) = self.expr_text(id);
        if tightness < context { format!("({text})") } else { text }
    }

    fn expr_text(&self, id: ExprId) -> (String, u8) {
        match self.expr(id) {
            Expr::Literal(value) => {
                let text = value.to_string();
                // A sign or a sum has the precedence of its operator.
                let tightness = match value {
                    Value::C64(_) | Value::C128(_) => binding::SUM,
                    _ if text.starts_with('-') => binding::UNARY,
                    _ => binding::ATOM,
                };
                (text, tightness)
            }
            Expr::Index(index) => (self.indices[index.index()].clone(), binding::ATOM),
            Expr::Var(var) => (self.vars[var.index()].clone(), binding::ATOM),
            Expr::Read(access) => (self.access(access), binding::ATOM),
            Expr::Size(tensor, dim) => (format!("{}.shape[{dim}]", self.tensor(*tensor).name), binding::ATOM),
            Expr::Entry(entry) => {
                let name = &self.tensor(entry.tensor).name;
                let at: Vec<String> = entry.at.iter().map(|e| self.show(*e)).collect();
                let dim = match entry.what {
                    EntryPart::Coordinate(dim) => format!("{dim}, "),
                    _ => String::new(),
                };
                let subscripts = if at.is_empty() { String::new() } else { format!("[{dim}{}]", at.join(", ")) };
                (format!("{name}.{}{subscripts}", entry.what.name()), binding::ATOM)
            }
            Expr::Call(op, operands) => self.call_text(*op, operands),
        }
    }

    fn call_text(&self, op: Op, operands: &[ExprId]) -> (String, u8) {
        let info = op.info();
        let tightness = match op {
            Op::Or => binding::OR,
            Op::And => binding::AND,
            Op::Not => binding::NOT,
            Op::Eq | Op::Ne | Op::Lt | Op::Le | Op::Gt | Op::Ge => binding::COMPARISON,
            Op::BitOr => binding::BIT_OR,
            Op::BitXor => binding::BIT_XOR,
            Op::BitAnd => binding::BIT_AND,
            Op::Shl | Op::Shr => binding::SHIFT,
            Op::Add | Op::Sub => binding::SUM,
            Op::Mul | Op::Div | Op::FloorDiv | Op::Mod => binding::PRODUCT,
            Op::Neg | Op::BitNot => binding::UNARY,
            Op::Pow => binding::POWER,
            _ => binding::ATOM,
        };
        let text = match (info.symbol, operands) {
            (Some(symbol), [a]) => {
                let space = if symbol.starts_with(char::is_alphabetic) { " " } else { "" };
                // A negated literal would parse as a negative literal.
                let context = match self.expr(*a) {
                    Expr::Literal(_) if op == Op::Neg => binding::ATOM + 1,
                    _ => tightness,
                };
                format!("{symbol}{space}{}", self.operand(*a, context))
            }
            (Some(symbol), [a, b]) => {
                let (left, right) = match op {
                    Op::Pow => (tightness + 1, binding::UNARY),
                    // Comparisons do not chain here; a sum of a float and an imaginary would parse
                    // as a literal.
                    Op::Add | Op::Sub if self.reads_as_complex(*a, *b) => (binding::ATOM + 1, tightness + 1),
                    _ if tightness == binding::COMPARISON => (tightness + 1, tightness + 1),
                    _ => (tightness, tightness + 1),
                };
                format!("{} {symbol} {}", self.operand(*a, left), self.operand(*b, right))
            }
            _ => {
                let operands: Vec<String> = operands.iter().map(|e| self.show(*e)).collect();
                format!("{}({})", info.name, operands.join(", "))
            }
        };
        (text, tightness)
    }

    fn reads_as_complex(&self, a: ExprId, b: ExprId) -> bool {
        matches!((self.expr(a), self.expr(b)), (Expr::Literal(Value::F64(_)), Expr::Literal(Value::C128(_))))
    }
}
