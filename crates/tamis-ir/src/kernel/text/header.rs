//! KernelParser of a kernel's header: its name, buffers, parameters, preconditions and workspaces.

use super::expressions::operator;
use super::{KernelParser, NamedEntries, TokenCursor, wrong};
use crate::algebra::{DType, Op};
use crate::diag::Diagnostic;
use crate::format::Width;
use crate::kernel::{Assumption, BufferId, BufferInfo, Elem, Merge, Role, Var, VarId, Workspace};
use std::sync::Arc;

/// The largest tile.
const MAX_TILE: u32 = 1 << 20;

impl KernelParser {
    pub(super) fn header(&mut self) -> Result<(), Diagnostic> {
        let Some(mut c) = self.line(0) else {
            let span = self.lines.first().map_or(self.end, |line| line.span);
            return Err(wrong("a kernel begins with its name", span, "write `kernel NAME` in the first column"));
        };
        self.first = c.line;
        c.expect_word("kernel")?;
        self.kernel.name = c.name()?.0;
        c.finish()?;
        while let Some(mut c) = self.line(4) {
            self.declaration(&mut c)?;
            c.finish()?;
        }
        let Some(mut c) = self.line(0) else {
            let span = self.lines.get(self.at).map_or(self.end, |line| line.span);
            return Err(wrong("the header ends with `begin`", span, "write `begin` in the first column"));
        };
        c.expect_word("begin")?;
        c.finish()
    }

    fn declaration(&mut self, c: &mut TokenCursor) -> Result<(), Diagnostic> {
        if c.eat_word("assume") {
            let assumption = self.assumption(c)?;
            self.kernel.assumptions.push(assumption);
            return Ok(());
        }
        if c.eat_word("workspace") {
            return self.workspace(c);
        }
        let input = c.is_word("in");
        let role = if c.eat_word("in") {
            Role::Input
        } else if c.eat_word("out") {
            Role::Output
        } else if c.eat_word("scratch") {
            Role::Scratch
        } else if c.is_word("tile") || c.is_word("shared") {
            let shared = c.is_word("shared");
            c.at += 1;
            c.expect("(")?;
            let span = c.span();
            let size = c.number()?;
            if size > MAX_TILE {
                return Err(wrong("the tile is too large", span, format!("a tile has at most {MAX_TILE} elements")));
            }
            c.expect(")")?;
            if shared { Role::Shared(size) } else { Role::Tile(size) }
        } else {
            return Err(c.expected("`in`, `out`, `scratch`, `tile`, `shared`, `assume` or `workspace`"));
        };
        let mutable = input && c.eat_word("var");
        let (name, span) = c.name()?;
        c.expect(":")?;
        let elem = if c.eat_word("index") { Elem::Index(width(c)?) } else { Elem::Value(dtype(c)?) };
        if c.eat("[") {
            c.expect("]")?;
            self.name(&name, span, NamedEntries::BufferInfo(BufferId(self.kernel.buffers.len() as u32)))?;
            self.kernel.buffers.push(BufferInfo { name, elem, role });
            return Ok(());
        }
        let Elem::Value(dtype) = elem else { return Err(c.expected("`[]`")) };
        if !input {
            return Err(c.expected("`[]`"));
        }
        let var = VarId(self.kernel.vars.len() as u32);
        self.name(&name, span, NamedEntries::Var(var))?;
        self.kernel.vars.push(Var { name, dtype, lanes: 1, mutable, origin: None });
        self.kernel.params.push(var);
        Ok(())
    }

    fn assumption(&mut self, c: &mut TokenCursor) -> Result<Assumption, Diagnostic> {
        if self.is_property(c, "length") {
            let buffer = self.property(c)?;
            c.expect(">=")?;
            if self.is_property(c, "length") {
                let other = self.property(c)?;
                let more = if c.eat("+") { c.number()? } else { 0 };
                return Ok(Assumption::Longer { buffer, other, more });
            }
            return Ok(Assumption::Length { buffer, least: self.expr(c)? });
        }
        if self.is_property(c, "nondecreasing") {
            return Ok(Assumption::Nondecreasing(self.property(c)?));
        }
        if self.is_property(c, "elements") {
            let buffer = self.property(c)?;
            c.expect("<")?;
            return Ok(Assumption::Below { buffer, bound: self.expr(c)? });
        }
        if self.is_property(c, "reserved") {
            return Ok(Assumption::SpareCapacity(self.property(c)?));
        }
        Ok(Assumption::Holds(self.expr(c)?))
    }

    /// True if a property of a buffer comes next: a word that is no operator, and a bracket.
    fn is_property(&self, c: &TokenCursor, word: &str) -> bool {
        c.is_word(word) && matches!(c.peek_second(), Some(super::KernelTokenKind::Punct("(")))
    }

    /// The buffer in brackets after a word.
    fn property(&mut self, c: &mut TokenCursor) -> Result<BufferId, Diagnostic> {
        c.at += 1;
        c.expect("(")?;
        let buffer = self.buffer(c)?;
        c.expect(")")?;
        Ok(buffer)
    }

    fn workspace(&mut self, c: &mut TokenCursor) -> Result<(), Diagnostic> {
        let (name, span) = c.name()?;
        c.expect("(")?;
        let mut coordinates = Vec::new();
        while !c.is_punct(";") {
            coordinates.push(self.buffer(c)?);
            if !c.eat(",") {
                break;
            }
        }
        c.expect(";")?;
        let values = self.buffer(c)?;
        c.expect(")")?;
        c.expect_word("from")?;
        let start = self.literal(c)?.ok_or_else(|| c.expected("a constant"))?;
        let policy = if c.eat_word("by") { Some(c.name()?.0) } else { None };
        let capacity = if c.eat_word("capacity") { Some(c.number()?) } else { None };
        let pipelined = c.eat_word("pipelined");
        let merge = if c.eat_word("keeping") {
            c.expect_word("later")?;
            Merge::Later
        } else if c.eat_word("merging") {
            Merge::With(merge_operator(c)?)
        } else {
            Merge::Never
        };
        let workspace =
            Workspace { name: name.clone(), policy, capacity, pipelined, coordinates, values, start, merge };
        if self.workspaces.insert(name.clone(), Arc::new(workspace)).is_some() {
            let help = "every workspace is declared once";
            return Err(wrong(format!("the workspace `{name}` is declared twice"), span, help));
        }
        Ok(())
    }
}

/// The operator that combines two values.
pub(super) fn merge_operator(c: &mut TokenCursor) -> Result<Op, Diagnostic> {
    let span = c.span();
    let found = match c.peek() {
        Some(super::KernelTokenKind::Word(word)) => operator(word),
        _ => None,
    };
    let op =
        found.ok_or_else(|| wrong("there is no such operator", span, "write the name of an operator, as `add`"))?;
    c.at += 1;
    let (least, most) = op.info().arity;
    if !(least..=most).contains(&2) {
        return Err(wrong("two values are combined by an operator on two operands", span, "write `add`, for example"));
    }
    Ok(op)
}

/// A value type.
pub(super) fn dtype(c: &mut TokenCursor) -> Result<DType, Diagnostic> {
    let found = match c.peek() {
        Some(super::KernelTokenKind::Word(word)) => DType::ALL.into_iter().find(|dtype| dtype.name() == word),
        _ => None,
    };
    let dtype = found.ok_or_else(|| c.expected("a value type"))?;
    c.at += 1;
    Ok(dtype)
}

/// A value type, with the number of lanes behind it: `f64x8`.
pub(super) fn lanes_type(c: &mut TokenCursor) -> Result<(DType, u16), Diagnostic> {
    if let Some(super::KernelTokenKind::Word(word)) = c.peek()
        && let Some((name, lanes)) = word.split_once('x')
        && let Some(dtype) = DType::ALL.into_iter().find(|dtype| dtype.name() == name)
        && let Ok(lanes) = lanes.parse()
        && lanes > 1
    {
        c.at += 1;
        return Ok((dtype, lanes));
    }
    Ok((dtype(c)?, 1))
}

/// The width of positions or coordinates.
fn width(c: &mut TokenCursor) -> Result<Width, Diagnostic> {
    let found = match c.peek() {
        Some(super::KernelTokenKind::Word(word)) => Width::ALL.into_iter().find(|width| width.name() == word),
        _ => None,
    };
    let width = found.ok_or_else(|| c.expected("`u8`, `u16`, `u32` or `u64`"))?;
    c.at += 1;
    Ok(width)
}
