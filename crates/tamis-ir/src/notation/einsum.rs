//! NumPy's einsum subscripts: `ij,jk->ik`, with operands in order.

use super::Notation;
use crate::diag::{Code, Diagnostic, Diagnostics, Source, Span, counted};
use crate::text::parser::MAX_ERRORS;
use crate::text::syntax::{Expr, ExprKind, Name, Stmt, StmtKind};
use crate::{algebra::Op, format::MAX_RANK};

impl Notation {
    /// True if a text is einsum subscripts: letters, commas, an arrow.
    ///
    /// ```
    /// use tamis_ir::Notation;
    /// assert!(Notation::is_einsum("ij,jk->ik"));
    /// assert!(!Notation::is_einsum("C[i,k] = A[i,j] * B[j,k]"));
    /// ```
    pub fn is_einsum(text: &str) -> bool {
        is_einsum(text)
    }
}

pub(super) fn is_einsum(text: &str) -> bool {
    let letters = |c: char| c.is_ascii_alphabetic() || c.is_whitespace() || c == ',' || c == '.';
    match text.split_once("->") {
        Some((left, right)) => left.chars().all(letters) && right.chars().all(letters),
        None => text.contains(',') && text.chars().all(letters),
    }
}

impl Notation {
    /// Parses einsum subscripts for operands of these names; the result is called `name`. Without
    /// `->` the result has the indices that occur once, in alphabetical order.
    ///
    /// ```
    /// use tamis_ir::Notation;
    /// let product = Notation::einsum("ij,jk->ik", &["A", "B"], "C")?;
    /// assert_eq!(product.assignments[0].to_string(), "C[i, k] += A[i, j] * B[j, k]");
    /// assert_eq!(Notation::einsum("ji", &["A"], "T")?.assignments[0].to_string(), "T[i, j] = A[j, i]");
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn einsum(text: &str, operands: &[&str], name: &str) -> Result<Notation, Diagnostics> {
        let source = Source::new("notation", text);
        let mut errors = Vec::new();
        let (left, right) = match text.find("->") {
            Some(at) => (&text[..at], Some((at + 2, &text[at + 2..]))),
            None => (text, None),
        };
        let mut letters = |start: usize, part: &str| -> Vec<Name> {
            let mut names = Vec::new();
            for (k, c) in part.char_indices().filter(|(_, c)| !c.is_whitespace()) {
                let span = Span::new(start + k..start + k + c.len_utf8());
                if c.is_ascii_alphabetic() {
                    names.push(Name { text: c.to_string(), span });
                } else if errors.len() < MAX_ERRORS {
                    let d = Diagnostic::new(Code::E0111, "an index is a single letter in this notation")
                        .label(span, "no letter");
                    errors.push(match c {
                        '.' => d.help("`...` stands for dimensions of operands whose ranks are not known here: write a letter for each"),
                        _ => d.help("write `ij,jk->ik`, or `C[i,k] = A[i,j] * B[j,k]`"),
                    });
                }
            }
            names
        };
        let (mut parts, mut start) = (Vec::new(), 0);
        for part in left.split(',') {
            parts.push(letters(start, part));
            start += part.len() + 1;
        }
        let out = right.map(|(start, part)| letters(start, part));
        let all = Span::new(0..text.len());
        if parts.len() != operands.len() {
            let d = Diagnostic::new(
                Code::E0111,
                format!(
                    "the text has {}, but {} given",
                    counted(parts.len(), "operand"),
                    match operands.len() {
                        1 => "1 is".to_string(),
                        n => format!("{n} are"),
                    }
                ),
            );
            errors.push(d.label(Span::new(0..left.len()), "separated by commas").help("give one tensor for each"));
        }
        if let Some(long) = parts.iter().chain(&out).find(|part| part.len() > MAX_RANK) {
            let d = Diagnostic::new(Code::E0111, format!("a tensor has at most {MAX_RANK} dimensions"));
            errors.push(d.label(long[0].span.to(long[long.len() - 1].span), "too many"));
        }
        let out = out.unwrap_or_else(|| {
            let mut once: Vec<Name> = parts.iter().flatten().cloned().collect();
            once.retain(|name| parts.iter().flatten().filter(|other| other.text == name.text).count() == 1);
            once.sort_by(|a, b| a.text.cmp(&b.text));
            once
        });
        for (k, index) in out.iter().enumerate() {
            if out[..k].iter().any(|other| other.text == index.text) {
                let d = Diagnostic::new(Code::E0111, format!("`{}` occurs twice in the result", index.text));
                errors.push(d.label(index.span, "again").help("write each index of the result once"));
            }
        }
        if !errors.is_empty() {
            errors.truncate(MAX_ERRORS);
            return Err(Diagnostics(errors.into_iter().map(|d| d.with_source(&source)).collect()));
        }
        let access = |name: &str, indices: &[Name]| {
            let span = match (indices.first(), indices.last()) {
                (Some(first), Some(last)) => first.span.to(last.span),
                _ => all,
            };
            let subscripts: Vec<Expr> =
                indices.iter().map(|i| Expr { kind: ExprKind::Name(i.text.clone()), span: i.span }).collect();
            let base = Name { text: name.to_string(), span };
            let kind = match subscripts.is_empty() {
                true => ExprKind::Name(base.text),
                false => ExprKind::Index { base, subscripts },
            };
            Expr { kind, span }
        };
        let factors = operands.iter().zip(&parts).map(|(name, indices)| access(name, indices));
        let product = factors.reduce(|a, b| {
            let span = a.span.to(b.span);
            Expr { kind: ExprKind::Operator(Op::Mul, vec![a, b]), span }
        });
        let Some(value) = product else {
            let d = Diagnostic::new(Code::E0111, "no operands in the text").help("write `ij,jk->ik`");
            return Err(Diagnostics(vec![d.with_source(&source)]));
        };
        let statement = Stmt { kind: StmtKind::Assign { target: access(name, &out), op: None, value }, span: all };
        Notation::of_statements(&source, Vec::new(), &[statement], &[])
            .map_err(|d| Diagnostics(vec![d.with_source(&source)]))
    }
}
