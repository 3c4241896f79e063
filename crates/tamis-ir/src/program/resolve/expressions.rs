//! Name resolution of expressions: names, calls, accesses and their subscripts.

use super::super::{Access, Entry, EntryPart, Expr, ExprId, Subscript, TensorId};
use super::{Binding, Resolver};
use crate::algebra::{Op, TABLE, Value};
use crate::diag::{Code, Diagnostic, Span, counted, did_you_mean};
use crate::text::syntax::{self, ExprKind, Name};

impl Resolver {
    pub(super) fn intern(&mut self, expr: Expr, span: Span) -> ExprId {
        let id = self.program.exprs.intern(expr);
        self.program.origin.exprs.entry((self.stmt, id)).or_insert(span);
        id
    }

    pub(super) fn expr(&mut self, expr: &syntax::Expr) -> Option<ExprId> {
        if let Some(value) = literal(expr) {
            return Some(self.intern(Expr::Literal(value), expr.span));
        }
        let resolved = match &expr.kind {
            ExprKind::Number(value) => Expr::Literal(*value),
            ExprKind::Name(text) => {
                let name = Name { text: text.clone(), span: expr.span };
                match self.lookup(&name)? {
                    Binding::Index(index) => Expr::Index(index),
                    Binding::Var(var) => Expr::Var(var),
                    Binding::Tensor(tensor) => Expr::Read(self.access(tensor, &[], expr.span)?),
                }
            }
            ExprKind::Index { base, subscripts } => match self.lookup(base)? {
                Binding::Tensor(tensor) => Expr::Read(self.access(tensor, subscripts, expr.span)?),
                _ => {
                    return self.error(
                        Diagnostic::new(
                            Code::E0401,
                            format!("`{}` is a single value and has no subscripts", base.text),
                        )
                        .label(expr.span, "subscripted here")
                        .help(format!("write `{}`", base.text)),
                    );
                }
            },
            ExprKind::Size { base, dim } => match self.lookup(base)? {
                Binding::Tensor(tensor) => match usize::try_from(*dim) {
                    Ok(dim) if dim < crate::format::MAX_RANK => Expr::Size(tensor, dim),
                    _ => {
                        return self.error(
                            Diagnostic::new(Code::E0401, format!("`{}` has no dimension {dim}", base.text))
                                .label(expr.span, "no such dimension")
                                .help("dimensions are numbered from 0"),
                        );
                    }
                },
                _ => {
                    return self.error(
                        Diagnostic::new(Code::E0401, format!("`{}` is a single value and has no shape", base.text))
                            .label(expr.span, "not a tensor")
                            .help("take the shape of a tensor: `A.shape[0]`"),
                    );
                }
            },
            ExprKind::Entry { base, part, at } => Expr::Entry(self.entry(base, *part, at, expr.span)?),
            ExprKind::Operator(op, operands) => {
                let operands: Vec<Option<ExprId>> = operands.iter().map(|operand| self.expr(operand)).collect();
                Expr::Call(*op, operands.into_iter().collect::<Option<_>>()?)
            }
            ExprKind::Call { function, args, keywords } => self.call(function, args, keywords, expr.span)?,
            ExprKind::Str(_) | ExprKind::Tuple(_) => {
                return self.error(
                    Diagnostic::new(Code::E0101, "expected a number or a tensor element")
                        .label(expr.span, "not a value")
                        .help("for example `A[i,j] * x[j]`"),
                );
            }
            ExprKind::Reduce { .. } => {
                return self.error(
                    Diagnostic::new(Code::E0111, "reductions are part of index notation, not of loop programs")
                        .label(expr.span, "reduced here")
                        .help("declare `s = scalar(0.0)` and update it in a loop: `s += A[i,j]`, or `s min= A[i,j]`")
                        .help("or write the whole as index notation: `y[i] = min[j](A[i,j] + x[j])`"),
                );
            }
            // Reported by the parser.
            ExprKind::Error => return None,
        };
        let id = self.intern(resolved, expr.span);
        self.fits(id, expr.span).then_some(id)
    }

    fn entry(&mut self, base: &Name, part: EntryPart, at: &[syntax::Expr], span: Span) -> Option<Entry> {
        let found = self.lookup(base)?;
        let tensor = match found {
            Binding::Tensor(tensor) if self.program.tensor(tensor).declaration.is_none() => tensor,
            _ => {
                let message = format!("`{}` is not a parameter, so its stored elements have no positions", base.text);
                let d = Diagnostic::new(Code::E0401, message).label(span, "only parameters have positions");
                return self.error(match found {
                    Binding::Tensor(_) => d.help(format!("read its elements in a loop, as in `{}[i]`", base.text)),
                    _ => d.help("use a parameter, as in `A.nnz`"),
                });
            }
        };
        if matches!(part, EntryPart::Coordinate(dim) if dim >= crate::format::MAX_RANK)
            || at.len() > crate::format::MAX_RANK
        {
            return self.error(
                Diagnostic::new(
                    Code::E0401,
                    format!(
                        "`{}` has no such dimension: tensors have at most {} dimensions",
                        base.text,
                        crate::format::MAX_RANK
                    ),
                )
                .label(span, "no such dimension")
                .help("dimensions are numbered from 0"),
            );
        }
        let at: Vec<Option<ExprId>> = at.iter().map(|e| self.expr(e)).collect();
        Some(Entry { tensor, what: part, at: at.into_iter().collect::<Option<_>>()? })
    }

    pub(super) fn call(
        &mut self,
        function: &Name,
        args: &[syntax::Expr],
        keywords: &[(Name, syntax::Expr)],
        span: Span,
    ) -> Option<Expr> {
        let operands: Vec<Option<ExprId>> = args.iter().map(|arg| self.expr(arg)).collect();
        let user = self.operators.get(&function.text).copied();
        let Some(op) = user.map(Op::User).or_else(|| Op::named(&function.text)) else {
            let d = unknown_function(function, self.operators.keys().map(String::as_str));
            return self.error(d);
        };
        if let Some(d) = wrong_count(function, op, operands.len(), keywords, span) {
            return self.error(d);
        }
        let operands: Vec<ExprId> = operands.into_iter().collect::<Option<_>>()?;
        match user {
            Some(user) if user.is_inlined() => {
                let written = self.write_out(user, &operands, span)?;
                Some(self.program.expr(written).clone())
            }
            _ => Some(Expr::Call(op, operands)),
        }
    }

    pub(super) fn access(&mut self, tensor: TensorId, subscripts: &[syntax::Expr], span: Span) -> Option<Access> {
        let subscripts: Vec<Option<Subscript>> = subscripts.iter().map(|s| self.subscript(s)).collect();
        let rank = subscripts.len();
        let (first, first_span) = *self.ranks.entry(tensor).or_insert((rank, span));
        if first != rank {
            let name = self.program.tensor(tensor).name.clone();
            return self.error(
                Diagnostic::new(
                    Code::E0401,
                    format!("`{name}` has {} here, but {first} before", counted(rank, "subscript")),
                )
                .label(span, counted(rank, "subscript"))
                .label(first_span, counted(first, "subscript"))
                .help("use it with the same number of subscripts everywhere"),
            );
        }
        Some(Access { tensor, subscripts: subscripts.into_iter().collect::<Option<_>>()? })
    }
}

/// The diagnostic for calling an unknown function; `known` are functions besides those of the
/// table.
pub(super) fn unknown_function<'a>(function: &Name, known: impl Iterator<Item = &'a str>) -> Diagnostic {
    let name = function.text.as_str();
    let d =
        Diagnostic::new(Code::E0205, format!("there is no function `{name}`")).label(function.span, "unknown function");
    d.help(match name {
        "sum" | "prod" | "any" | "all" | "mean" => {
            format!("reduce in a loop: `s = scalar(0.0)`, then `s += ...`, instead of `{name}(...)`")
        }
        "walk" | "follow" | "gallop" => format!("a protocol belongs in a subscript: `A[{name}(i)]`"),
        "tensor" | "scalar" | "sparse_scalar" | "short_circuit_scalar" => {
            format!("a declaration is a separate statement: `x = {name}(...)`")
        }
        "len" | "size" | "shape" => "the size of a dimension is `A.shape[0]`".to_string(),
        "range" => "a range belongs in a loop header: `for i in range(n):`".to_string(),
        _ => match did_you_mean(name, TABLE.iter().map(|row| row.name).chain(known)) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => "functions are abs sqrt exp log sin cos tanh sigmoid relu min max floor ceil round sign select coalesce choose isnan and others, and those that `@op` defines".to_string(),
        },
    })
}

/// The diagnostic for a wrong number of operands, if the number is wrong.
pub(super) fn wrong_count(
    function: &Name,
    op: Op,
    count: usize,
    keywords: &[(Name, syntax::Expr)],
    span: Span,
) -> Option<Diagnostic> {
    if let Some((keyword, _)) = keywords.first() {
        let d = Diagnostic::new(Code::E0304, format!("`{}` takes no keywords", function.text));
        return Some(d.label(keyword.span, "unknown keyword").help("pass the operands by position"));
    }
    let (least, most) = op.info().arity;
    if (least..=most).contains(&count) {
        return None;
    }
    let expected = match (least, most) {
        (a, b) if a == b => counted(a, "operand"),
        (a, usize::MAX) => format!("at least {}", counted(a, "operand")),
        (a, b) => format!("{a} to {b} operands"),
    };
    let message = format!("`{}` takes {expected}, not {count}", function.text);
    let d = Diagnostic::new(Code::E0304, message).label(span, counted(count, "operand"));
    Some(d.help(format!("{}: {}", op.info().name, op.info().summary)))
}

/// The value of a literal expression, such as `1.0+2.0j`.
pub(super) fn literal(expr: &syntax::Expr) -> Option<Value> {
    match &expr.kind {
        ExprKind::Number(value) => Some(*value),
        ExprKind::Operator(op @ (Op::Add | Op::Sub), operands) => match (&operands[0].kind, &operands[1].kind) {
            (ExprKind::Number(Value::F64(re)), ExprKind::Number(Value::C128(im))) if im.re == 0.0 => {
                let im = if *op == Op::Sub { -im.im } else { im.im };
                Some(Value::C128(num_complex::Complex::new(*re, im)))
            }
            _ => None,
        },
        _ => None,
    }
}
