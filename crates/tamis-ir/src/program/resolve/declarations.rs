//! Declarations: `X = tensor(...)` and the three kinds of scalars.

use super::super::{Declaration, ExprId, ScalarKind, Stmt, StmtId, StmtKind, Storage, TensorInfo};
use super::expressions::literal;
use super::{Binding, Resolver};
use crate::algebra::{DType, Value};
use crate::diag::{Code, Diagnostic, Span, did_you_mean};
use crate::format::{FormatSpec, Leaf};
use crate::text::syntax::{self, ExprKind, Name};

impl Resolver {
    pub(super) fn declare(
        &mut self,
        id: StmtId,
        name: &Name,
        span: Span,
        read: impl FnOnce(&mut Resolver) -> Option<Declaration>,
    ) -> Option<Stmt> {
        let declaration = read(self);
        let failed = declaration.is_none();
        // Declared even if it has a mistake, so that its uses are not reported as well.
        let declaration = declaration.unwrap_or(Declaration {
            storage: Storage::Tensor(FormatSpec::AnyRank(crate::format::ShortName::Dense, Leaf::Element(None))),
            fill: None,
            dtype: None,
            shape: None,
        });
        let info = TensorInfo { name: name.text.clone(), rank: 0, declaration: Some(declaration) };
        let tensor = self.new_tensor(info, span);
        self.bind(name, Binding::Tensor(tensor), "tensor");
        (!failed).then_some(Stmt { id, kind: StmtKind::Declare(tensor) })
    }

    pub(super) fn bad_declaration<T>(&mut self, message: String, span: Span, label: &str, help: &str) -> Option<T> {
        self.error(Diagnostic::new(Code::E0107, message).label(span, label).help(help))
    }

    pub(super) fn tensor_declaration(
        &mut self,
        span: Span,
        args: &[syntax::Expr],
        keywords: &[(Name, syntax::Expr)],
    ) -> Option<Declaration> {
        let mut format = args.first();
        let (mut fill, mut dtype, mut shape) = (None, None, None);
        if let Some(extra) = args.get(1) {
            let help = "write `tensor(\"csr\", fill=0, dtype=\"f64\", shape=(m, n))`";
            return self.bad_declaration("`tensor` takes one format".into(), extra.span, "too many arguments", help);
        }
        for (name, value) in keywords {
            match name.text.as_str() {
                "format" if format.is_none() => format = Some(value),
                "fill" => fill = Some((self.constant(value)?, value.span)),
                "dtype" => dtype = Some(self.dtype(value)?),
                "shape" => shape = Some(self.shape(value)?),
                other => {
                    let meant = did_you_mean(other, ["fill", "dtype", "shape", "format"]);
                    let help = match meant {
                        Some(meant) => format!("did you mean `{meant}=`?"),
                        None => "keywords are format, fill, dtype, shape".to_string(),
                    };
                    return self.bad_declaration(
                        format!("`tensor` has no `{other}`"),
                        name.span,
                        "unknown keyword",
                        &help,
                    );
                }
            }
        }
        let Some(format) = format else {
            let help = "write `tensor(\"dense\")`, or another format";
            return self.bad_declaration("`tensor` needs a format".into(), span, "no format", help);
        };
        let ExprKind::Str(text) = &format.kind else {
            let help = "write the format in quotes: `tensor(\"csr\")`";
            return self.bad_declaration("a format is a string".into(), format.span, "not a string", help);
        };
        let spec = match FormatSpec::parse(text) {
            Ok(spec) => spec,
            Err(mut d) => {
                // Spans of the format point into the string literal of the program.
                let quote = format.span.start + (format.span.end - format.span.start - text.len() as u32) / 2;
                d.source = None;
                for label in &mut d.labels {
                    label.span = Span { start: label.span.start + quote, end: label.span.end + quote };
                }
                return self.error(d);
            }
        };
        if let Some((value, at)) = fill {
            let clash = match spec.leaf() {
                Leaf::Pattern => value != Value::Bool(false),
                Leaf::Element(Some(written)) => {
                    // The type of the tensor is still unknown: 1 and 1.0 are equal.
                    let is = |a: Value, b: Value| a.cast_exact(b.dtype()).is_some_and(|a| a.same_number(b));
                    !is(written, value) && !is(value, written)
                }
                Leaf::Element(None) => false,
            };
            if clash {
                let message = format!("the format specifies `{}`, but fill is {value}", spec.leaf());
                return self.bad_declaration(message, at, "another fill", "specify the fill once");
            }
        }
        if let (Leaf::Pattern, Some(DType::Bool) | None) = (spec.leaf(), dtype) {
            dtype = Some(DType::Bool);
        } else if spec.leaf() == Leaf::Pattern {
            let help = "remove the dtype, or write `element(0)` instead of `pattern`";
            return self.bad_declaration("a pattern holds booleans".into(), span, "another dtype", help);
        }
        let leaf_fill = match spec.leaf() {
            Leaf::Element(fill) => fill,
            Leaf::Pattern => None,
        };
        // `fill=0` is the default, and does not determine the type.
        let fill = fill.map(|(value, _)| value).filter(|fill| spec.leaf() != Leaf::Pattern && *fill != Value::I64(0));
        let fill = fill.or(leaf_fill);
        Some(Declaration { storage: Storage::Tensor(spec), fill, dtype, shape })
    }

    pub(super) fn scalar_declaration(
        &mut self,
        kind: ScalarKind,
        span: Span,
        args: &[syntax::Expr],
        keywords: &[(Name, syntax::Expr)],
    ) -> Option<Declaration> {
        if args.len() > 1 {
            let help = format!("write `{}(0.0)`", kind.name());
            return self.bad_declaration("a scalar takes one value".into(), span, "too many arguments", &help);
        }
        let mut dtype = None;
        for (name, value) in keywords {
            if name.text != "dtype" {
                let help = format!("write `{}(0.0)` or `{}(0.0, dtype=\"f32\")`", kind.name(), kind.name());
                return self.bad_declaration(
                    format!("a scalar has no `{}`", name.text),
                    name.span,
                    "unknown keyword",
                    &help,
                );
            }
            dtype = Some(self.dtype(value)?);
        }
        let fill = match args.first() {
            Some(value) => Some(self.constant(value)?),
            None => None,
        };
        Some(Declaration { storage: Storage::Scalar(kind), fill, dtype, shape: None })
    }

    pub(super) fn constant(&mut self, expr: &syntax::Expr) -> Option<Value> {
        match literal(expr) {
            Some(value) => Some(value),
            None => self.bad_declaration(
                "a fill is a number".into(),
                expr.span,
                "not a literal",
                "write a literal such as 0, 1.0, inf, -inf, nan, True",
            ),
        }
    }

    pub(super) fn dtype(&mut self, expr: &syntax::Expr) -> Option<DType> {
        let text = match &expr.kind {
            ExprKind::Str(text) | ExprKind::Name(text) => text.clone(),
            _ => String::new(),
        };
        match text.parse() {
            Ok(dtype) => Some(dtype),
            Err(_) => {
                let message = match text.as_str() {
                    "" => "a value type is a name in quotes, such as \"f64\"".to_string(),
                    name => format!("there is no value type `{name}`"),
                };
                let mut d = Diagnostic::new(Code::E0308, message).label(expr.span, "not a value type");
                if let Some(meant) = did_you_mean(&text, DType::ALL.iter().map(|t| t.name())) {
                    d = d.help(format!("did you mean \"{meant}\"?"));
                }
                self.error(d.help("value types are bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 c64 c128"))
            }
        }
    }

    pub(super) fn shape(&mut self, expr: &syntax::Expr) -> Option<Vec<ExprId>> {
        match &expr.kind {
            ExprKind::Tuple(dims) => {
                let dims: Vec<Option<ExprId>> = dims.iter().map(|dim| self.expr(dim)).collect();
                dims.into_iter().collect()
            }
            _ => Some(vec![self.expr(expr)?]),
        }
    }
}
