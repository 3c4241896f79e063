//! KernelParser of statements in kernel text: one line each, blocks by indentation.

use super::header::{lanes_type, merge_operator};
use super::{KernelParser, KernelTokenKind, MAX_DEPTH, NamedEntries, TokenCursor, wrong};
use crate::algebra::DType;
use crate::diag::{Diagnostic, Span};
use crate::kernel::{
    Block, Chunks, ExprId, Gemm, Hint, LabelId, LoopKind, MatrixView, Origin, Stmt, Tail, Var, VarId, Workspace,
};
use std::sync::Arc;

/// The largest number of a label.
const MAX_LABEL: u32 = 1 << 20;

/// A declared name, before its type is known.
struct DeclaredNames {
    name: String,
    span: Span,
    mutable: bool,
    origin: Option<Origin>,
}

impl KernelParser {
    /// The statements whose indentation is `depth` steps.
    pub(super) fn block(&mut self, depth: usize) -> Result<Block, Diagnostic> {
        let mut block = Block::new();
        while let Some(mut c) = self.line(4 * depth) {
            if depth > MAX_DEPTH {
                let message = format!("blocks are nested more than {MAX_DEPTH} deep");
                return Err(wrong(message, c.line, "take statements out of the block"));
            }
            self.spans.push(c.line);
            let stmt = self.stmt(&mut c, depth)?;
            block.push(stmt);
        }
        match self.lines.get(self.at) {
            Some(line) if line.indent > 4 * depth || line.indent % 4 != 0 => {
                let message = format!("the line is indented by {} spaces, not {}", line.indent, 4 * depth);
                Err(wrong(message, line.span, "indent blocks by four spaces, below a statement that has one"))
            }
            _ => Ok(block),
        }
    }

    fn stmt(&mut self, c: &mut TokenCursor, depth: usize) -> Result<Stmt, Diagnostic> {
        let word = match c.peek() {
            Some(KernelTokenKind::Word(word)) => word.clone(),
            _ => String::new(),
        };
        let stmt = match &*word {
            "let" | "var" => self.declaration_stmt(c)?,
            "for" => return self.count(c, depth),
            "while" => {
                c.at += 1;
                let cond = self.expr(c)?;
                c.finish()?;
                return Ok(Stmt::While { cond, body: self.block(depth + 1)? });
            }
            "if" => {
                c.at += 1;
                let cond = self.expr(c)?;
                c.finish()?;
                let then = self.block(depth + 1)?;
                let otherwise = self.otherwise(depth)?;
                return Ok(Stmt::If { cond, then, otherwise });
            }
            "block" => {
                c.at += 1;
                let label = self.label(c)?;
                c.finish()?;
                return Ok(Stmt::Labelled { label, body: self.block(depth + 1)? });
            }
            "break" => {
                c.at += 1;
                Stmt::Break(self.label(c)?)
            }
            "grow" => {
                c.at += 1;
                let buffer = self.buffer(c)?;
                c.expect_word("to")?;
                let len = self.expr(c)?;
                let fill = match c.eat_word("with") {
                    true => Some(self.literal(c)?.ok_or_else(|| c.expected("a constant"))?),
                    false => None,
                };
                Stmt::Grow { buffer, len, fill }
            }
            "fill" => {
                c.at += 1;
                let buffer = self.buffer(c)?;
                c.expect("[")?;
                let start = self.expr(c)?;
                c.expect(";")?;
                let len = self.expr(c)?;
                c.expect("]")?;
                c.expect_word("with")?;
                Stmt::Fill { buffer, start, len, value: self.expr(c)? }
            }
            "sort" => {
                c.at += 1;
                let buffer = self.buffer(c)?;
                let (start, stop) = self.range(c)?;
                let flags = if c.eat_word("by") { Some(self.buffer(c)?) } else { None };
                Stmt::Sort { buffer, start, stop, flags }
            }
            "gemm" => {
                c.at += 1;
                self.gemm(c)?
            }
            "reset" => {
                c.at += 1;
                let workspace = self.workspace_name(c)?;
                Stmt::Reset { workspace, sizes: self.coordinates(c)? }
            }
            "atomic" => {
                c.at += 1;
                self.update(c)?
            }
            "prefetch" => {
                c.at += 1;
                self.prefetch(c)?
            }
            "barrier" => {
                c.at += 1;
                Stmt::Barrier
            }
            "require" => {
                c.at += 1;
                let cond = self.expr(c)?;
                c.expect_word("else")?;
                let Some(KernelTokenKind::Str(message)) = c.peek().cloned() else {
                    return Err(c.expected("a message"));
                };
                c.at += 1;
                Stmt::Require { cond, message }
            }
            _ => self.assignment(c)?,
        };
        c.finish()?;
        Ok(stmt)
    }

    /// The block of an `else` in this column, if there is one.
    fn otherwise(&mut self, depth: usize) -> Result<Block, Diagnostic> {
        let next = self.lines.get(self.at).filter(|line| line.indent == 4 * depth);
        if !next.is_some_and(
            |line| matches!(line.tokens.first().map(|t| &t.tok), Some(KernelTokenKind::Word(w)) if w == "else"),
        ) {
            return Ok(Block::new());
        }
        let Some(mut c) = self.line(4 * depth) else { return Ok(Block::new()) };
        c.expect_word("else")?;
        c.finish()?;
        self.block(depth + 1)
    }

    /// `c[offset; rows, columns], a[..], b[..] of m, n, k times alpha`.
    fn gemm(&mut self, c: &mut TokenCursor) -> Result<Stmt, Diagnostic> {
        let target = self.matrix_view(c)?;
        c.expect(",")?;
        let a = self.matrix_view(c)?;
        c.expect(",")?;
        let b = self.matrix_view(c)?;
        c.expect_word("of")?;
        let m = self.expr(c)?;
        c.expect(",")?;
        let n = self.expr(c)?;
        c.expect(",")?;
        let sizes = [m, n, self.expr(c)?];
        c.expect_word("times")?;
        let alpha = self.expr(c)?;
        Ok(Stmt::Gemm(Box::new(Gemm { sizes, alpha, c: target, a, b })))
    }

    /// `buffer[offset; row stride, column stride]`.
    fn matrix_view(&mut self, c: &mut TokenCursor) -> Result<MatrixView, Diagnostic> {
        let buffer = self.buffer(c)?;
        c.expect("[")?;
        let offset = self.expr(c)?;
        c.expect(";")?;
        let rows = self.expr(c)?;
        c.expect(",")?;
        let strides = [rows, self.expr(c)?];
        c.expect("]")?;
        Ok(MatrixView { buffer, offset, strides })
    }

    /// `let` and `var`: a variable with a value, or what a search or a workspace gives.
    fn declaration_stmt(&mut self, c: &mut TokenCursor) -> Result<Stmt, Diagnostic> {
        let mutable = c.is_word("var");
        c.at += 1;
        let declared = self.declared(c, mutable)?;
        if c.eat(":") {
            let span = c.span();
            let (expected, lanes) = lanes_type(c)?;
            c.expect("=")?;
            let value = self.expr(c)?;
            let found = self.kernel.exprs.dtype(value);
            if found != expected {
                let message = format!("`{}` is {expected}, but its value is {found}", declared.name);
                return Err(wrong(message, span, format!("convert the value: `{expected}(...)`")));
            }
            let var = self.declare(declared, expected)?;
            self.kernel.vars[var.index()].lanes = lanes;
            return Ok(Stmt::Let { var, value });
        }
        c.expect("=")?;
        if c.eat_word("search") {
            let back = c.is_word("back") && !matches!(c.peek_second(), Some(KernelTokenKind::Punct("[")));
            c.at += usize::from(back);
            let buffer = self.buffer(c)?;
            let (start, stop) = self.range(c)?;
            c.expect_word("for")?;
            let key = self.expr(c)?;
            return Ok(Stmt::Search { var: self.declare(declared, DType::I64)?, buffer, start, stop, key, back });
        }
        if c.eat_word("insert") {
            let workspace = self.workspace_name(c)?;
            let coordinates = self.coordinates(c)?;
            return Ok(Stmt::Insert { var: self.declare(declared, DType::I64)?, workspace, coordinates });
        }
        if c.eat_word("finalize") {
            let workspace = self.workspace_name(c)?;
            return Ok(Stmt::Finalize { var: self.declare(declared, DType::I64)?, workspace });
        }
        Err(c.expected("`search`, `insert` or `finalize` (other variables have a type)"))
    }

    fn count(&mut self, c: &mut TokenCursor, depth: usize) -> Result<Stmt, Diagnostic> {
        c.at += 1;
        let mutable = c.eat_word("var");
        let declared = self.declared(c, mutable)?;
        c.expect_word("in")?;
        let start = self.expr(c)?;
        c.expect("..")?;
        let stop = self.expr(c)?;
        let mut hint = Hint::default();
        while c.peek().is_some() {
            self.loop_kind(c, &mut hint)?;
        }
        let var = self.declare(declared, DType::I64)?;
        Ok(Stmt::For { var, start, stop, body: self.block(depth + 1)?, hint })
    }

    /// What follows the range of a loop: that it may be vectorised, or its kind.
    fn loop_kind(&mut self, c: &mut TokenCursor, hint: &mut Hint) -> Result<(), Diagnostic> {
        if hint.kind != LoopKind::Serial {
            return Err(c.expected("the end of the line"));
        }
        if c.eat_word("vector") {
            if !c.eat("(") {
                hint.vectorise = true;
                return Ok(());
            }
            if c.eat_word("short_trip") {
                (hint.vectorise, hint.short_trip) = (true, true);
                return c.expect(")");
            }
            let lanes = c.number()?;
            c.expect_word("lanes")?;
            c.expect(",")?;
            let tail = Tail::ALL.into_iter().find(|tail| c.is_word(tail.name()));
            let tail = tail.ok_or_else(|| c.expected("`masked`, `overlapping` or `remainder`"))?;
            c.at += 1;
            hint.kind = LoopKind::Vector { lanes, tail };
            return c.expect(")");
        }
        if c.eat_word("parallel") {
            c.expect("(")?;
            let chunks = if c.eat_word("extent") {
                Chunks::Extent
            } else {
                c.expect_word("work")?;
                Chunks::Work(self.buffer(c)?)
            };
            c.expect(",")?;
            c.expect_word("grain")?;
            hint.kind = LoopKind::Parallel { chunks, grain: c.number()? };
            return c.expect(")");
        }
        let kinds = [LoopKind::Unrolled, LoopKind::Grid, LoopKind::Block, LoopKind::Lane];
        let kind = kinds.into_iter().find(|kind| c.is_word(kind.name()));
        hint.kind = kind.ok_or_else(|| c.expected("the kind of the loop"))?;
        c.at += 1;
        Ok(())
    }

    /// `atomic BUFFER[INDEX] OPERATOR VALUE`
    fn update(&mut self, c: &mut TokenCursor) -> Result<Stmt, Diagnostic> {
        let buffer = self.buffer(c)?;
        c.expect("[")?;
        let index = self.expr(c)?;
        c.expect("]")?;
        let op = merge_operator(c)?;
        Ok(Stmt::Update { buffer, index, op, value: self.expr(c)? })
    }

    /// `prefetch BUFFER[INDEX] ahead DISTANCE locality LOCALITY`
    fn prefetch(&mut self, c: &mut TokenCursor) -> Result<Stmt, Diagnostic> {
        let buffer = self.buffer(c)?;
        c.expect("[")?;
        let index = self.expr(c)?;
        c.expect("]")?;
        c.expect_word("ahead")?;
        let distance = c.number()?;
        c.expect_word("locality")?;
        Ok(Stmt::Prefetch { buffer, index, distance, locality: c.number()? })
    }

    /// An assignment of a variable, or a store.
    fn assignment(&mut self, c: &mut TokenCursor) -> Result<Stmt, Diagnostic> {
        if !matches!(c.peek(), Some(KernelTokenKind::Word(_) | KernelTokenKind::Quoted(_))) {
            return Err(c.expected("a statement"));
        }
        let (name, span) = c.name()?;
        match self.names.get(&name).copied() {
            Some(NamedEntries::Var(var)) => {
                c.expect("=")?;
                Ok(Stmt::Assign { var, value: self.expr(c)? })
            }
            Some(NamedEntries::BufferInfo(buffer)) => {
                c.expect("[")?;
                let index = self.expr(c)?;
                c.expect("]")?;
                c.expect("=")?;
                let value = self.expr(c)?;
                if c.eat_word("where") {
                    return Ok(Stmt::MaskedStore { buffer, index, value, mask: self.expr(c)? });
                }
                Ok(Stmt::Store { buffer, index, value })
            }
            None => {
                let help = "declare it by `let` or `var`, or write a statement";
                Err(wrong(format!("there is no variable or buffer `{name}`"), span, help))
            }
        }
    }

    /// A name that is declared here, and the loop of the program that it belongs to.
    fn declared(&mut self, c: &mut TokenCursor, mutable: bool) -> Result<DeclaredNames, Diagnostic> {
        let (name, span) = c.name()?;
        let mut origin = None;
        if c.eat("@") {
            c.expect_word("loop")?;
            c.expect("(")?;
            let index = c.number()?;
            let visits = c.eat(",");
            if visits {
                c.expect_word("visits")?;
            }
            c.expect(")")?;
            origin = Some(Origin { index, visits });
        }
        Ok(DeclaredNames { name, span, mutable, origin })
    }

    fn declare(&mut self, declared: DeclaredNames, dtype: DType) -> Result<VarId, Diagnostic> {
        let DeclaredNames { name, span, mutable, origin } = declared;
        let var = VarId(self.kernel.vars.len() as u32);
        self.name(&name, span, NamedEntries::Var(var))?;
        self.kernel.vars.push(Var { name, dtype, lanes: 1, mutable, origin });
        Ok(var)
    }

    /// A label: `l` and its number.
    fn label(&mut self, c: &mut TokenCursor) -> Result<LabelId, Diagnostic> {
        let number = match c.peek() {
            Some(KernelTokenKind::Word(word)) => word.strip_prefix('l').and_then(|digits| digits.parse::<u32>().ok()),
            _ => None,
        };
        let number = number.filter(|n| *n <= MAX_LABEL).ok_or_else(|| c.expected("a label such as `l0`"))?;
        c.at += 1;
        self.kernel.labels = self.kernel.labels.max(number + 1);
        Ok(LabelId(number))
    }

    /// `[START..STOP]`
    fn range(&mut self, c: &mut TokenCursor) -> Result<(ExprId, ExprId), Diagnostic> {
        c.expect("[")?;
        let start = self.expr(c)?;
        c.expect("..")?;
        let stop = self.expr(c)?;
        c.expect("]")?;
        Ok((start, stop))
    }

    /// `[COORDINATE, ...]`
    fn coordinates(&mut self, c: &mut TokenCursor) -> Result<Vec<ExprId>, Diagnostic> {
        c.expect("[")?;
        let mut found = Vec::new();
        while !c.is_punct("]") {
            found.push(self.expr(c)?);
            if !c.eat(",") {
                break;
            }
        }
        c.expect("]")?;
        Ok(found)
    }

    fn workspace_name(&mut self, c: &mut TokenCursor) -> Result<Arc<Workspace>, Diagnostic> {
        let (name, span) = c.name()?;
        let help = "workspaces are declared before `begin`";
        self.workspaces.get(&name).cloned().ok_or_else(|| wrong(format!("there is no workspace `{name}`"), span, help))
    }
}
