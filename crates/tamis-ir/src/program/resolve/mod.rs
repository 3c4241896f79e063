//! Name resolution, from syntax trees to programs: names, ranks, updates and declarations.

mod declarations;
mod expressions;
pub(super) mod operators;
mod statements;
mod subscripts;

use operators::Operators;

use super::{ExprId, ExprPool, IndexId, Program, ProgramSpans, StmtId, Storage, TensorId, TensorInfo, VarId};
use crate::affine::Affine;
use crate::diag::{Code, Diagnostic, Diagnostics, Source, Span, counted, did_you_mean};
use crate::text::parser::MAX_ERRORS;
use crate::text::syntax::{self, ExprKind, Function, Name};
use rustc_hash::FxHashMap;
use std::sync::Arc;

pub(super) fn resolve(function: &Function, operators: Operators, source: &Arc<Source>) -> Result<Program, Diagnostics> {
    let mut resolver = Resolver::new(function, operators, source);
    resolver.function(function);
    if resolver.errors.is_empty() {
        resolver.program.compact();
        resolver.program.infer_queried_ranks();
        return Ok(resolver.program);
    }
    resolver.errors.truncate(MAX_ERRORS);
    let errors = resolver.errors.into_iter().map(|d| d.with_source(source));
    Err(Diagnostics(errors.collect()))
}

/// The meaning of a name.
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
    /// Every declared name of the text, to distinguish "unknown" from "out of scope".
    declared: FxHashMap<String, Span>,
    /// The first use of each tensor, which fixes its rank.
    ranks: FxHashMap<TensorId, (usize, Span)>,
    /// The user-defined operators.
    operators: Operators,
    /// The memoised numbers of operators of expressions.
    sizes: FxHashMap<ExprId, usize>,
    /// The values of bound names.
    lets: FxHashMap<VarId, ExprId>,
    /// The memoised affine forms of expressions.
    forms: FxHashMap<ExprId, Option<Affine<ExprId>>>,
    /// The statement of recorded spans.
    stmt: StmtId,
    errors: Vec<Diagnostic>,
}

impl Resolver {
    fn new(function: &Function, operators: Operators, source: &Arc<Source>) -> Resolver {
        let program = Program {
            name: function.name.text.clone(),
            params: Vec::new(),
            results: Vec::new(),
            tensors: Vec::new(),
            indices: Vec::new(),
            vars: Vec::new(),
            exprs: ExprPool::default(),
            body: Vec::new(),
            origin: ProgramSpans { source: Some(source.clone()), ..ProgramSpans::default() },
        };
        let mut declared = FxHashMap::default();
        collect_names(&function.body, &mut declared);
        Resolver {
            program,
            scopes: vec![FxHashMap::default()],
            declared,
            ranks: FxHashMap::default(),
            operators,
            sizes: FxHashMap::default(),
            lets: FxHashMap::default(),
            forms: FxHashMap::default(),
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
        self.updates_are_returned();
        for (id, (rank, _)) in &self.ranks {
            self.program.tensors[id.index()].rank = *rank;
        }
        self.fixed_ranks();
    }

    /// True if the program computes a tensor: a declared one, or an updated parameter.
    fn is_result(&self, id: TensorId) -> bool {
        self.program.tensor(id).declaration.is_some() || self.program.first_write(id).is_some()
    }

    /// Checks that updated parameters are returned: an update makes a new tensor, and does not
    /// change the operand.
    fn updates_are_returned(&mut self) {
        for id in self.program.params.clone() {
            if self.program.results.contains(&id) {
                continue;
            }
            let Some(stmt) = self.program.first_write(id) else { continue };
            let name = &self.program.tensor(id).name;
            let d = Diagnostic::new(Code::E0502, format!("the parameter `{name}` is updated, but not returned"))
                .label(self.program.origin.target(stmt), "updated here")
                .label(self.program.origin.tensor(id), "a parameter")
                .note("the arguments of a program never change: an updated parameter is a new tensor")
                .help(format!("return it: `return {name}`"))
                .help("or declare a tensor for intermediate values: `T = tensor(\"dense\")`");
            self.errors.push(d);
        }
    }

    fn results(&mut self, names: &[Name]) {
        for name in names {
            match self.lookup(name) {
                Some(Binding::Tensor(id)) if self.is_result(id) => {
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
                            .label(name.span, "neither declared nor updated by the program")
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

    /// Checks that tensors whose declared format or shape fixes the rank are used with that rank.
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
                        format!("`{name}` is declared with {}, but used with {rank}", counted(declared, "dimension")),
                    )
                    .label(use_span, counted(rank, "subscript"))
                    .label(span, counted(declared, "dimension"))
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

    fn new_tensor(&mut self, info: TensorInfo, span: Span) -> TensorId {
        let id = TensorId(self.program.tensors.len() as u32);
        self.program.tensors.push(info);
        self.program.origin.tensors.insert(id, span);
        id
    }

    fn visible(&self, name: &str) -> Option<(Binding, Span)> {
        self.scopes.iter().rev().find_map(|scope| scope.get(name)).copied()
    }

    /// Binds a name that must not be visible yet; if it is, the first binding stays.
    fn bind(&mut self, name: &Name, binding: Binding, what: &str) {
        match self.visible(&name.text) {
            Some((_, before)) => self.errors.push(
                Diagnostic::new(Code::E0203, format!("the name `{}` is already in use here", name.text))
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
            Diagnostic::new(Code::E0201, format!("`{}` is not defined", name.text)).label(name.span, "unknown name");
        if let Some(meant) = did_you_mean(&name.text, known.iter().map(String::as_str)) {
            d = d.help(format!("did you mean `{meant}`?"));
        }
        d = d.help(format!("make it a parameter, or declare it: `{} = tensor(\"dense\")`", name.text));
        self.error(d)
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
