//! Syntax to program: names are bound, ranks fixed, updates recognised, declarations read.

use super::{
    Access, Block, Declaration, Expr, ExprId, ExprPool, Extent, IndexId, Origin, Program, Protocol, ScalarKind, Stmt,
    StmtId, StmtKind, Storage, Subscript, TensorId, TensorInfo, Update, VarId,
};
use crate::algebra::{DType, Op, TABLE, Value};
use crate::diag::{Code, Diagnostic, Diagnostics, Source, Span, did_you_mean};
use crate::format::{FormatSpec, Leaf};
use crate::text::parser::MAX_ERRORS;
use crate::text::syntax::{self, ExprKind, Function, Name};
use rustc_hash::FxHashMap;
use std::sync::Arc;

pub(super) fn resolve(function: &Function, source: &Arc<Source>) -> Result<Program, Diagnostics> {
    let mut resolver = Resolver::new(function, source);
    resolver.function(function);
    if resolver.errors.is_empty() {
        resolver.program.compact();
        return Ok(resolver.program);
    }
    resolver.errors.truncate(MAX_ERRORS);
    let errors = resolver.errors.into_iter().map(|d| d.with_source(source));
    Err(Diagnostics(errors.collect()))
}

/// What a name means.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Binding {
    Tensor(TensorId),
    Index(IndexId),
    Var(VarId),
}

struct Resolver {
    program: Program,
    /// Names in scope, innermost last.
    scopes: Vec<FxHashMap<String, (Binding, Span)>>,
    /// Every name the text declares somewhere, to tell "unknown" from "out of scope".
    declared: FxHashMap<String, Span>,
    /// The first use of each tensor, which fixes its rank.
    ranks: FxHashMap<TensorId, (usize, Span)>,
    /// The statement that spans are recorded for.
    stmt: StmtId,
    errors: Vec<Diagnostic>,
}

impl Resolver {
    fn new(function: &Function, source: &Arc<Source>) -> Resolver {
        let program = Program {
            name: function.name.text.clone(),
            params: Vec::new(),
            results: Vec::new(),
            tensors: Vec::new(),
            indices: Vec::new(),
            vars: Vec::new(),
            exprs: ExprPool::default(),
            body: Vec::new(),
            origin: Origin { source: Some(source.clone()), ..Origin::default() },
        };
        let mut declared = FxHashMap::default();
        collect_names(&function.body, &mut declared);
        Resolver {
            program,
            scopes: vec![FxHashMap::default()],
            declared,
            ranks: FxHashMap::default(),
            stmt: StmtId(0),
            errors: Vec::new(),
        }
    }

    fn error<T>(&mut self, d: Diagnostic) -> Option<T> {
        self.errors.push(d);
        None
    }

    fn function(&mut self, function: &Function) {
        for param in &function.params {
            let info = TensorInfo { name: param.text.clone(), rank: 0, declaration: None };
            let id = self.new_tensor(info, param.span);
            self.program.params.push(id);
            self.bind(param, Binding::Tensor(id), "parameter");
        }
        let (body, last) = match function.body.split_last() {
            Some((last, body)) if matches!(last.kind, syntax::StmtKind::Return(_)) => (body, Some(last)),
            _ => (&function.body[..], None),
        };
        self.program.body = self.block(body);
        match last.map(|stmt| &stmt.kind) {
            Some(syntax::StmtKind::Return(names)) => self.results(names),
            _ if self.errors.iter().any(|d| d.code == Code::E0108) => {}
            _ => {
                self.errors.push(
                    Diagnostic::new(Code::E0108, "the program returns nothing")
                        .label(function.span, "has no `return` at its end")
                        .help("end it with `return` and the names of its results"),
                );
            }
        }
        for (id, (rank, _)) in &self.ranks {
            self.program.tensors[id.index()].rank = *rank;
        }
        self.fixed_ranks();
    }

    fn results(&mut self, names: &[Name]) {
        for name in names {
            match self.lookup(name) {
                Some(Binding::Tensor(id)) if self.program.tensor(id).declaration.is_some() => {
                    if self.program.results.contains(&id) {
                        self.errors.push(
                            Diagnostic::new(Code::E0203, format!("`{}` is returned twice", name.text))
                                .label(name.span, "returned before")
                                .help("name each result once"),
                        );
                    }
                    self.program.results.push(id);
                }
                Some(_) => {
                    self.errors.push(
                        Diagnostic::new(Code::E0206, format!("`{}` is not a result", name.text))
                            .label(name.span, "neither a declared tensor nor a scalar")
                            .help(format!(
                                "declare it, as in `{0} = tensor(\"dense\")` or `{0} = scalar(0.0)`, and assign to it",
                                name.text
                            )),
                    );
                }
                None => {}
            }
        }
    }

    /// Declared tensors whose format or shape fixes the rank must be used with that rank.
    fn fixed_ranks(&mut self) {
        for k in 0..self.program.tensors.len() {
            let id = TensorId(k as u32);
            let info = &self.program.tensors[k];
            let Some(declaration) = &info.declaration else { continue };
            let declared = match (&declaration.storage, &declaration.shape) {
                (_, Some(shape)) => Some(shape.len()),
                (Storage::Tensor(spec), None) => spec.rank(),
                (Storage::Scalar(_), None) => Some(0),
            };
            let rank = match self.ranks.get(&id) {
                Some((rank, _)) => *rank,
                None => declared.unwrap_or(0),
            };
            let name = info.name.clone();
            let span = self.program.origin.tensor(id);
            if let Some(declared) = declared
                && declared != rank
            {
                let use_span = self.ranks[&id].1;
                self.errors.push(
                    Diagnostic::new(
                        Code::E0401,
                        format!("`{name}` is declared with {declared} dimensions and used with {rank}"),
                    )
                    .label(use_span, format!("{rank} subscripts"))
                    .label(span, format!("{declared} dimensions"))
                    .help("`dense`, `coo` and `csf` take any number of dimensions"),
                );
            } else if let Storage::Tensor(spec) = &declaration.storage
                && let Err(d) = spec.with_rank(rank)
            {
                self.errors.push(d.label(span, "declared here"));
            }
            self.program.tensors[k].rank = rank;
        }
    }

    // Names

    fn new_tensor(&mut self, info: TensorInfo, span: Span) -> TensorId {
        let id = TensorId(self.program.tensors.len() as u32);
        self.program.tensors.push(info);
        self.program.origin.tensors.insert(id, span);
        id
    }

    fn visible(&self, name: &str) -> Option<(Binding, Span)> {
        self.scopes.iter().rev().find_map(|scope| scope.get(name)).copied()
    }

    /// Binds a name that must not be visible yet; if it is, the first meaning stays.
    fn bind(&mut self, name: &Name, binding: Binding, what: &str) {
        match self.visible(&name.text) {
            Some((_, before)) => self.errors.push(
                Diagnostic::new(Code::E0203, format!("`{}` already means something here", name.text))
                    .label(name.span, format!("declared again, as a {what}"))
                    .label(before, "first declared here")
                    .help("choose another name"),
            ),
            None => self.rebind(name, binding),
        }
    }

    fn rebind(&mut self, name: &Name, binding: Binding) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name.text.clone(), (binding, name.span));
        }
    }

    fn lookup(&mut self, name: &Name) -> Option<Binding> {
        if let Some((binding, _)) = self.visible(&name.text) {
            return Some(binding);
        }
        if let Some(declared) = self.declared.get(&name.text).copied() {
            let place = if declared.start > name.span.start {
                "only declared here"
            } else {
                "declared in a block that has ended"
            };
            return self.error(
                Diagnostic::new(Code::E0202, format!("`{}` is not in scope here", name.text))
                    .label(name.span, "used here")
                    .label(declared, place)
                    .help("declare it before, in a block that encloses its use"),
            );
        }
        let known: Vec<String> = self.scopes.iter().flat_map(|scope| scope.keys().cloned()).collect();
        let mut d =
            Diagnostic::new(Code::E0201, format!("`{}` is not known", name.text)).label(name.span, "unknown name");
        if let Some(meant) = did_you_mean(&name.text, known.iter().map(String::as_str)) {
            d = d.help(format!("did you mean `{meant}`?"));
        }
        d = d.help(format!("make it a parameter, or declare it: `{} = tensor(\"dense\")`", name.text));
        self.error(d)
    }

    // Statements

    fn block(&mut self, stmts: &[syntax::Stmt]) -> Block {
        self.scopes.push(FxHashMap::default());
        let mut block = Block::new();
        for stmt in stmts {
            block.extend(self.statement(stmt));
        }
        // The outermost block stays open: `return` sees it.
        if self.scopes.len() > 2 {
            self.scopes.pop();
        }
        block
    }

    fn start(&mut self, span: Span) -> StmtId {
        let id = StmtId(self.program.origin.stmts.len() as u32);
        self.program.origin.stmts.insert(id, span);
        self.stmt = id;
        id
    }

    fn statement(&mut self, stmt: &syntax::Stmt) -> Option<Stmt> {
        match &stmt.kind {
            syntax::StmtKind::Assign { target, op, value } => self.assignment(stmt.span, target, *op, value),
            syntax::StmtKind::For { indices, extent, body } => self.loops(stmt.span, indices, extent, body),
            syntax::StmtKind::If { cond, then, otherwise } => {
                let id = self.start(stmt.span);
                let cond = self.expr(cond);
                let (then, otherwise) = (self.block(then), self.block(otherwise));
                Some(Stmt { id, kind: StmtKind::If { cond: cond?, then, otherwise } })
            }
            syntax::StmtKind::Return(_) => self.error(
                Diagnostic::new(Code::E0108, "`return` stands once, at the end of the program")
                    .label(stmt.span, "not the last statement of the program")
                    .help("collect the results in tensors or scalars, and return them at the end"),
            ),
        }
    }

    fn loops(&mut self, span: Span, indices: &[Name], extent: &syntax::Extent, body: &[syntax::Stmt]) -> Option<Stmt> {
        let (name, inner) = indices.split_first()?;
        let id = self.start(span);
        let extent_id = match extent {
            syntax::Extent::Infer => Some(Extent::Infer),
            syntax::Extent::Range(start, stop) => {
                let start = match start {
                    Some(start) => self.expr(start),
                    None => Some(self.program.exprs.intern(Expr::Literal(Value::I64(0)))),
                };
                let stop = self.expr(stop);
                start.zip(stop).map(|(start, stop)| Extent::Range(start, stop))
            }
        };
        let index = IndexId(self.program.indices.len() as u32);
        self.program.indices.push(name.text.clone());
        self.program.origin.indices.insert(index, name.span);
        self.scopes.push(FxHashMap::default());
        self.bind(name, Binding::Index(index), "loop index");
        let body = if inner.is_empty() {
            self.block(body)
        } else {
            self.loops(span, inner, extent, body).into_iter().collect()
        };
        self.scopes.pop();
        Some(Stmt { id, kind: StmtKind::For { index, extent: extent_id?, body } })
    }

    fn assignment(&mut self, span: Span, target: &syntax::Expr, op: Option<Op>, value: &syntax::Expr) -> Option<Stmt> {
        let id = self.start(span);
        let (name, subscripts) = match &target.kind {
            ExprKind::Name(text) => (Name { text: text.clone(), span: target.span }, None),
            ExprKind::Index { base, subscripts } => (base.clone(), Some(subscripts)),
            // The parser lets nothing else through.
            _ => return None,
        };
        if let (None, None, ExprKind::Call { function, args, keywords }) = (subscripts, op, &value.kind) {
            if function.text == "tensor" {
                return self.declare(id, &name, span, |r| r.tensor_declaration(value.span, args, keywords));
            }
            if let Some(kind) = ScalarKind::ALL.into_iter().find(|kind| kind.name() == function.text) {
                return self.declare(id, &name, span, |r| r.scalar_declaration(kind, value.span, args, keywords));
            }
        }
        let binding = self.visible(&name.text);
        let tensor = match binding {
            Some((Binding::Tensor(tensor), declared)) => {
                if self.program.tensor(tensor).declaration.is_none() {
                    return self.error(
                        Diagnostic::new(Code::E0502, format!("the parameter `{}` cannot be written", name.text))
                            .label(target.span, "written here")
                            .label(declared, "a parameter")
                            .help(format!("declare a result: `R = tensor(\"dense\")`, write to it, and `return R` instead of changing `{}`", name.text)),
                    );
                }
                tensor
            }
            _ if subscripts.is_none() => return self.let_binding(id, &name, binding, op, value),
            Some((_, declared)) => {
                return self.error(
                    Diagnostic::new(Code::E0204, format!("`{}` is not a tensor", name.text))
                        .label(target.span, "subscripted here")
                        .label(declared, "a single value")
                        .help("declare a tensor: `X = tensor(\"dense\")`"),
                );
            }
            None => {
                self.lookup(&name);
                return None;
            }
        };
        let subscripts = subscripts.map(|s| &s[..]).unwrap_or(&[]);
        let access = self.access(tensor, subscripts, target.span);
        let value = self.expr(value);
        let (target_access, value) = access.zip(value)?;
        self.program.origin.targets.insert(id, target.span);
        let kind = match op {
            Some(op) => {
                StmtKind::Assign { target: target_access, update: Some(Update { op, extra: Vec::new() }), value }
            }
            None => self.recognise_update(target_access, value),
        };
        Some(Stmt { id, kind })
    }

    /// `X[i] = op(X[i], e)` is an update by `op`.
    fn recognise_update(&mut self, target: Access, value: ExprId) -> StmtKind {
        let read = self.program.exprs.intern(Expr::Read(target.clone()));
        if let Expr::Call(op, operands) = self.program.exprs.get(value).clone()
            && op.can_update()
            && let Some(at) = operands.iter().position(|operand| *operand == read)
        {
            let info = op.info();
            let mut others = operands.clone();
            others.remove(at);
            if at == 0 || (info.commutative && info.associative) {
                match others[..] {
                    [value] => {
                        return StmtKind::Assign { target, update: Some(Update { op, extra: Vec::new() }), value };
                    }
                    [value, ref extra @ ..] if op == Op::Choose => {
                        return StmtKind::Assign { target, update: Some(Update { op, extra: extra.to_vec() }), value };
                    }
                    // min(X, a, b) = min(X, min(a, b))
                    [_, _, ..] if info.associative => {
                        let value = self.program.exprs.intern(Expr::Call(op, others));
                        return StmtKind::Assign { target, update: Some(Update { op, extra: Vec::new() }), value };
                    }
                    _ => {}
                }
            }
        }
        StmtKind::Assign { target, update: None, value }
    }

    fn let_binding(
        &mut self,
        id: StmtId,
        name: &Name,
        binding: Option<(Binding, Span)>,
        op: Option<Op>,
        value: &syntax::Expr,
    ) -> Option<Stmt> {
        let value = self.expr(value);
        let in_this_block = self.scopes.last().is_some_and(|scope| scope.contains_key(&name.text));
        match binding {
            Some((Binding::Index(_), declared)) => {
                self.error::<()>(
                    Diagnostic::new(Code::E0204, format!("the loop index `{}` cannot be assigned", name.text))
                        .label(name.span, "assigned here")
                        .label(declared, "a loop index")
                        .help("choose another name"),
                );
                return None;
            }
            Some((Binding::Var(_), declared)) if op.is_some() || !in_this_block => {
                self.error::<()>(
                    Diagnostic::new(Code::E0204, format!("`{}` is bound once and cannot change", name.text))
                        .label(name.span, "changed here")
                        .label(declared, "bound here")
                        .help(format!("to change it, declare `{} = scalar(0.0)` and assign to it", name.text)),
                );
                return None;
            }
            None if op.is_some() => {
                if self.declared.get(&name.text).is_some_and(|span| *span != name.span) {
                    self.lookup(name);
                } else {
                    self.error::<()>(
                        Diagnostic::new(Code::E0201, format!("`{}` is not known", name.text))
                            .label(name.span, "updated before it is declared")
                            .help(format!("declare it before the loop: `{} = scalar(0.0)`", name.text)),
                    );
                }
                return None;
            }
            _ => {}
        }
        let var = VarId(self.program.vars.len() as u32);
        self.program.vars.push(name.text.clone());
        // Bound even if the value is wrong, so that its uses are not reported, too.
        self.rebind(name, Binding::Var(var));
        Some(Stmt { id, kind: StmtKind::Let { var, value: value? } })
    }

    // Declarations

    fn declare(
        &mut self,
        id: StmtId,
        name: &Name,
        span: Span,
        read: impl FnOnce(&mut Resolver) -> Option<Declaration>,
    ) -> Option<Stmt> {
        let declaration = read(self);
        let failed = declaration.is_none();
        // Declared even if something about it is wrong, so that its uses are not reported, too.
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

    fn bad_declaration<T>(&mut self, message: String, span: Span, label: &str, help: &str) -> Option<T> {
        self.error(Diagnostic::new(Code::E0107, message).label(span, label).help(help))
    }

    fn tensor_declaration(
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
                // Point into the string where it stands in the program.
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
                Leaf::Element(Some(written)) => !written.same_number(value),
                Leaf::Element(None) => false,
            };
            if clash {
                let message = format!("the format says `{}`, but fill is {value}", spec.leaf());
                return self.bad_declaration(message, at, "another fill", "say the fill once");
            }
        }
        if let (Leaf::Pattern, Some(DType::Bool) | None) = (spec.leaf(), dtype) {
            dtype = Some(DType::Bool);
        } else if spec.leaf() == Leaf::Pattern {
            let help = "leave the dtype out, or write `element(0)` instead of `pattern`";
            return self.bad_declaration("a pattern holds booleans".into(), span, "another dtype", help);
        }
        let leaf_fill = match spec.leaf() {
            Leaf::Element(fill) => fill,
            Leaf::Pattern => None,
        };
        let fill = fill.map(|(value, _)| value).filter(|_| spec.leaf() != Leaf::Pattern).or(leaf_fill);
        Some(Declaration { storage: Storage::Tensor(spec), fill, dtype, shape })
    }

    fn scalar_declaration(
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

    fn constant(&mut self, expr: &syntax::Expr) -> Option<Value> {
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

    fn dtype(&mut self, expr: &syntax::Expr) -> Option<DType> {
        let text = match &expr.kind {
            ExprKind::Str(text) | ExprKind::Name(text) => text.clone(),
            _ => String::new(),
        };
        match text.parse() {
            Ok(dtype) => Some(dtype),
            Err(_) => {
                let mut d = Diagnostic::new(Code::E0308, "unknown value type").label(expr.span, "not a value type");
                if let Some(meant) = did_you_mean(&text, DType::ALL.iter().map(|t| t.name())) {
                    d = d.help(format!("did you mean \"{meant}\"?"));
                }
                self.error(d.help("value types are bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 c64 c128"))
            }
        }
    }

    fn shape(&mut self, expr: &syntax::Expr) -> Option<Vec<ExprId>> {
        match &expr.kind {
            ExprKind::Tuple(dims) => {
                let dims: Vec<Option<ExprId>> = dims.iter().map(|dim| self.expr(dim)).collect();
                dims.into_iter().collect()
            }
            _ => Some(vec![self.expr(expr)?]),
        }
    }

    // Expressions

    fn intern(&mut self, expr: Expr, span: Span) -> ExprId {
        let id = self.program.exprs.intern(expr);
        self.program.origin.exprs.entry((self.stmt, id)).or_insert(span);
        id
    }

    fn expr(&mut self, expr: &syntax::Expr) -> Option<ExprId> {
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
            // Reported by the parser.
            ExprKind::Error => return None,
        };
        Some(self.intern(resolved, expr.span))
    }

    fn call(
        &mut self,
        function: &Name,
        args: &[syntax::Expr],
        keywords: &[(Name, syntax::Expr)],
        span: Span,
    ) -> Option<Expr> {
        let operands: Vec<Option<ExprId>> = args.iter().map(|arg| self.expr(arg)).collect();
        let Some(op) = Op::named(&function.text) else {
            let name = function.text.as_str();
            let d = Diagnostic::new(Code::E0205, format!("there is no function `{name}`"))
                .label(function.span, "unknown function");
            let help = match name {
                "sum" | "prod" | "any" | "all" | "mean" => {
                    format!("reduce in a loop: `s = scalar(0.0)`, then `s += ...`, instead of `{name}(...)`")
                }
                "walk" | "follow" | "gallop" => format!("a protocol stands in a subscript: `A[{name}(i)]`"),
                "tensor" | "scalar" | "sparse_scalar" | "short_circuit_scalar" => {
                    format!("a declaration is a statement of its own: `x = {name}(...)`")
                }
                "range" => "a range stands in a loop: `for i in range(n):`".to_string(),
                _ => match did_you_mean(name, TABLE.iter().map(|row| row.name)) {
                    Some(meant) => format!("did you mean `{meant}`?"),
                    None => "functions are abs sqrt exp log sin cos tanh sigmoid relu min max floor ceil round sign select coalesce choose isnan and others".to_string(),
                },
            };
            return self.error(d.help(help));
        };
        if let Some((keyword, _)) = keywords.first() {
            return self.error(
                Diagnostic::new(Code::E0304, format!("`{}` takes no keywords", function.text))
                    .label(keyword.span, "unknown keyword")
                    .help("pass the operands by position"),
            );
        }
        let (least, most) = op.info().arity;
        if operands.len() < least || operands.len() > most {
            let expected = match (least, most) {
                (a, b) if a == b => format!("{a}"),
                (a, usize::MAX) => format!("at least {a}"),
                (a, b) => format!("{a} to {b}"),
            };
            return self.error(
                Diagnostic::new(
                    Code::E0304,
                    format!("`{}` takes {expected} operands, not {}", function.text, operands.len()),
                )
                .label(span, format!("{} operands", operands.len()))
                .help(format!("{}: {}", op.info().name, op.info().summary)),
            );
        }
        Some(Expr::Call(op, operands.into_iter().collect::<Option<_>>()?))
    }

    fn access(&mut self, tensor: TensorId, subscripts: &[syntax::Expr], span: Span) -> Option<Access> {
        let subscripts: Vec<Option<Subscript>> = subscripts.iter().map(|s| self.subscript(s)).collect();
        let rank = subscripts.len();
        let (first, first_span) = *self.ranks.entry(tensor).or_insert((rank, span));
        if first != rank {
            let name = self.program.tensor(tensor).name.clone();
            return self.error(
                Diagnostic::new(
                    Code::E0401,
                    format!("`{name}` is used with {rank} subscripts here, and with {first} before"),
                )
                .label(span, format!("{rank} subscripts"))
                .label(first_span, format!("{first} subscripts"))
                .help("use it with the same number of subscripts everywhere"),
            );
        }
        Some(Access { tensor, subscripts: subscripts.into_iter().collect::<Option<_>>()? })
    }

    /// `e`, `~e`, `follow(e)`, or both.
    fn subscript(&mut self, expr: &syntax::Expr) -> Option<Subscript> {
        match &expr.kind {
            ExprKind::Operator(Op::BitNot, operands) => {
                let inner = self.subscript(&operands[0])?;
                Some(Subscript { permissive: true, ..inner })
            }
            ExprKind::Call { function, args, keywords } if keywords.is_empty() && args.len() == 1 => {
                match Protocol::ALL.into_iter().find(|p| p.name() == function.text) {
                    Some(protocol) => {
                        let inner = self.subscript(&args[0])?;
                        if inner.protocol.is_some() {
                            return self.error(
                                Diagnostic::new(Code::E0101, "a subscript has one protocol")
                                    .label(expr.span, "two protocols")
                                    .help("write one of walk, follow, gallop"),
                            );
                        }
                        Some(Subscript { protocol: Some(protocol), ..inner })
                    }
                    None => Some(Subscript { expr: self.expr(expr)?, protocol: None, permissive: false }),
                }
            }
            _ => Some(Subscript { expr: self.expr(expr)?, protocol: None, permissive: false }),
        }
    }
}

/// The number that an expression is, as written: also `1.0+2.0j`.
fn literal(expr: &syntax::Expr) -> Option<Value> {
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

fn collect_names(stmts: &[syntax::Stmt], names: &mut FxHashMap<String, Span>) {
    for stmt in stmts {
        match &stmt.kind {
            syntax::StmtKind::Assign { target, op: None, .. } => {
                if let ExprKind::Name(name) = &target.kind {
                    names.entry(name.clone()).or_insert(target.span);
                }
            }
            syntax::StmtKind::For { indices, body, .. } => {
                for index in indices {
                    names.entry(index.text.clone()).or_insert(index.span);
                }
                collect_names(body, names);
            }
            syntax::StmtKind::If { then, otherwise, .. } => {
                collect_names(then, names);
                collect_names(otherwise, names);
            }
            _ => {}
        }
    }
}
