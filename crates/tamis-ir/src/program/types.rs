//! Type inference: the type of every expression, bound name and declared tensor, for given
//! parameters.
//!
//! A declared tensor without a `dtype` has the join of the types of its stored values (and of its
//! fill, if specified). The joins are the least fixed point over a finite lattice, computed by
//! iteration. Then every expression is checked once.

use super::{
    Declaration, EntryPart, Expr, ExprId, Extent, ParamType, Program, Stmt, StmtId, StmtKind, Storage, TensorId, Update,
};
use crate::algebra::{DType, Kind, Op, OpType, Ty, TypeError, Typing, Value, can_store, eval};
use crate::diag::{Code, Diagnostic, Diagnostics, Span, counted};
use crate::format::Leaf;
use rustc_hash::FxHashMap;

/// The types of a program.
///
/// ```
/// use tamis_ir::{DType, Notation, Value, interp};
/// let x = interp::Grid::from_values(&[3], &[1.0, 2.0, 3.0].map(Value::F32));
/// let program = Notation::parse("s = x[i]")?.plain()?;
/// let checked = program.check(&[interp::param_type(&x)])?;
/// assert_eq!(checked.types.tensors, [DType::F32, DType::F32]);
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Types {
    /// The value type of each tensor.
    pub tensors: Vec<DType>,
    /// The fill of each declared tensor (zero for parameters, whose operands have their own).
    pub fills: Vec<Value>,
    /// The type of each expression.
    pub exprs: Vec<Ty>,
    /// For each operator call, the type its operands are converted to.
    pub operands: Vec<DType>,
    /// For each update, the type that the old value and its operands are converted to.
    pub updates: FxHashMap<StmtId, DType>,
    /// True for each tensor that holds only truth values, of any type: true and false are 1 and 0.
    pub truths: Vec<bool>,
}

impl Types {
    /// True if an update of a tensor by the identity of its operator keeps the old value. A logical
    /// update does not, if the tensor holds other numbers than 0 and 1: `2 or 0` is 1.
    ///
    /// ```
    /// use tamis_ir::{DType, Notation, Value, interp};
    /// let x = interp::Grid::from_values(&[3], &[1.0, 2.0, 3.0].map(Value::F32));
    /// let program = Notation::parse("s = x[i]")?.plain()?;
    /// let types = program.check(&[interp::param_type(&x)])?.types;
    /// assert!(types.identity_keeps(program.results[0], DType::F32));
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn identity_keeps(&self, tensor: TensorId, operand: DType) -> bool {
        operand != DType::Bool || self.truths.get(tensor.index()).copied().unwrap_or(true)
    }
}

pub(super) fn infer(program: &Program, params: &[ParamType]) -> Result<Types, Diagnostics> {
    let mut inference = TypeInference::new(program, params)?;
    inference.fixed_point();
    inference.check();
    if inference.errors.is_empty() { Ok(inference.finish()) } else { Err(Diagnostics(inference.errors)) }
}

struct TypeInference<'a> {
    program: &'a Program,
    /// `None` while the type is unknown.
    tensors: Vec<Option<Ty>>,
    vars: Vec<Option<Ty>>,
    exprs: Vec<Option<Result<OpType, TypeError>>>,
    /// Tensors with the default type.
    defaulted: Vec<bool>,
    /// Unknown types are ignored.
    guessing: bool,
    /// The number of dimensions of each tensor.
    ranks: Vec<usize>,
    /// The values of parameters that are integer literals.
    literals: FxHashMap<TensorId, Value>,
    errors: Vec<Diagnostic>,
}

impl<'a> TypeInference<'a> {
    fn new(program: &'a Program, params: &[ParamType]) -> Result<TypeInference<'a>, Diagnostic> {
        if params.len() != program.params.len() {
            let message = format!("`{}` takes {} tensors, not {}", program.name, program.params.len(), params.len());
            let names: Vec<&str> = program.params.iter().map(|id| program.tensor(*id).name.as_str()).collect();
            return Err(Diagnostic::new(Code::E0902, message).help(format!("pass {}", names.join(", "))));
        }
        let mut tensors: Vec<Option<Ty>> = program
            .tensors
            .iter()
            .map(|info| info.declaration.as_ref().and_then(|d| d.dtype).map(Ty::strong))
            .collect();
        for (id, param) in program.params.iter().zip(params) {
            tensors[id.index()] = Some(Ty { weak: param.weak, ..Ty::strong(param.dtype) });
        }
        let literals = program.params.iter().zip(params).filter(|(_, param)| param.weak);
        let literals = literals.filter_map(|(id, param)| Some((*id, Value::I64(param.value?)))).collect();
        Ok(TypeInference {
            program,
            tensors,
            vars: vec![None; program.vars.len()],
            exprs: vec![None; program.exprs.len()],
            defaulted: vec![false; program.tensors.len()],
            guessing: false,
            ranks: program.ranks(params),
            literals,
            errors: Vec::new(),
        })
    }

    /// Joins are recomputed in each round, so that an early guess does not persist. Expressions are
    /// typed in program order: one round sees the type of every earlier name.
    fn fixed_point(&mut self) {
        let program = self.program;
        // Types only rise, except for booleans that are used as numbers; the bound guarantees
        // termination.
        for _ in 0..4 * program.tensors.len() + 8 {
            let before = self.tensors.clone();
            self.round();
            if before == self.tensors && !self.guess() && !self.apply_default() {
                break;
            }
        }
        // Declared names get a strong type; parameters that are literals stay weak.
        for (ty, info) in self.tensors.iter_mut().zip(&program.tensors) {
            if let Some(ty) = ty
                && info.declaration.is_some()
            {
                ty.weak = false;
            }
        }
        program.visit(&mut |stmt| {
            self.type_stmt(stmt);
            self.bind(stmt);
        });
    }

    fn round(&mut self) {
        let program = self.program;
        let open = |inference: &TypeInference, t: usize| {
            program.tensors[t].declaration.as_ref().is_some_and(|d| d.dtype.is_none()) && !inference.defaulted[t]
        };
        let fill = |t: usize| program.tensors[t].declaration.as_ref().and_then(|d| d.fill).map(literal_type);
        // The types of stored values and of the fill value.
        let mut joined: Vec<Option<Ty>> = (0..program.tensors.len()).map(fill).collect();
        let mut updates: Vec<(usize, &Update, Ty)> = Vec::new();
        program.visit(&mut |stmt| {
            self.type_stmt(stmt);
            self.bind(stmt);
            if let StmtKind::Assign { target, update, value } = &stmt.kind
                && let Some(stored) = self.ty(*value)
            {
                let t = target.tensor.index();
                let stored = Ty { nullable: false, ..stored };
                // A logical update stores a truth value, regardless of its operands.
                let logical = update.as_ref().is_some_and(|update| update.op.info().typing == Typing::Logical);
                let stored = if logical { Ty::strong(DType::Bool) } else { stored };
                joined[t] = Some(joined[t].map_or(stored, |ty| ty.join(stored)));
                updates.extend(update.as_ref().map(|update| (t, update, stored)));
            }
        });
        // The types that result from updates.
        let base = joined.clone();
        for (t, update, stored) in updates {
            if let Some(ty) = base[t]
                && let Ok(result) = self.update_type(update, ty, stored)
            {
                let result = Ty { nullable: false, ..result.result };
                joined[t] = Some(joined[t].map_or(result, |ty| ty.join(result)));
            }
        }
        for (t, ty) in joined.into_iter().enumerate() {
            if open(self, t) {
                self.tensors[t] = ty;
            }
        }
    }

    /// Types a tensor that depends on itself, as in `x[i] = a[i] + x[i-1]`, from its other
    /// operands; false if they do not determine a type. Further rounds raise a guess that was too
    /// low.
    fn guess(&mut self) -> bool {
        let before = self.tensors.clone();
        self.guessing = true;
        self.round();
        self.guessing = false;
        before != self.tensors
    }

    /// Gives one tensor without stored values the default type; false if there is none.
    fn apply_default(&mut self) -> bool {
        let Some(t) = self.tensors.iter().position(Option::is_none) else { return false };
        self.tensors[t] = Some(Ty::strong(DType::F64));
        self.defaulted[t] = true;
        true
    }

    fn bind(&mut self, stmt: &Stmt) {
        if let StmtKind::Let { var, value } = &stmt.kind {
            self.vars[var.index()] = self.ty(*value);
        }
    }

    fn type_stmt(&mut self, stmt: &Stmt) {
        let mut ids = Vec::new();
        self.program.visit_exprs(stmt, &mut |id| ids.push(id));
        // Operands have smaller ids than their users.
        ids.sort_unstable();
        ids.dedup();
        for id in ids {
            self.exprs[id.index()] = self.type_expr(id);
        }
    }

    fn type_expr(&self, id: ExprId) -> Option<Result<OpType, TypeError>> {
        let plain = |ty: Ty| Some(Ok(OpType { operand: ty.dtype, result: ty }));
        match self.program.expr(id) {
            Expr::Literal(value @ Value::Bool(_)) => plain(Ty::strong(value.dtype())),
            Expr::Literal(value) => plain(Ty::weak(value.dtype())),
            Expr::Index(_) | Expr::Size(..) => plain(Ty::strong(DType::I64)),
            Expr::Var(var) => self.vars[var.index()].and_then(plain),
            Expr::Entry(entry) => match entry.what {
                EntryPart::Value => self.tensors[entry.tensor.index()].and_then(plain),
                _ => plain(Ty::strong(DType::I64)),
            },
            Expr::Read(access) => self.tensors[access.tensor.index()].and_then(|ty| {
                let nullable = access.subscripts.iter().any(|s| s.permissive);
                plain(Ty { nullable, ..ty })
            }),
            Expr::Call(op, operands) => {
                let mut types: Vec<Option<Ty>> = operands.iter().map(|operand| self.ty(*operand)).collect();
                if self.guessing {
                    // The condition of a choice does not affect the type of its values.
                    let values = usize::from(*op == Op::Select);
                    let known = types.iter().skip(values).flatten().next().copied();
                    types.iter_mut().for_each(|ty| *ty = ty.or(known));
                }
                types.into_iter().collect::<Option<Vec<Ty>>>().map(|types| op.type_of(&types))
            }
        }
    }

    fn ty(&self, id: ExprId) -> Option<Ty> {
        match &self.exprs[id.index()] {
            Some(Ok(op_type)) => Some(op_type.result),
            _ => None,
        }
    }

    fn update_type(&self, update: &Update, tensor: Ty, value: Ty) -> Result<OpType, TypeError> {
        let extra = update.extra.iter().map(|e| self.ty(*e).unwrap_or(tensor));
        let operands: Vec<Ty> = [tensor, value].into_iter().chain(extra).collect();
        update.op.type_of(&operands)
    }

    // Checking

    fn error(&mut self, d: Diagnostic) {
        let d = self.program.origin.attach(d);
        if !self.errors.contains(&d) {
            self.errors.push(d);
        }
    }

    fn check(&mut self) {
        let program = self.program;
        program.visit(&mut |stmt| {
            let mut ids = Vec::new();
            program.visit_exprs(stmt, &mut |id| ids.push(id));
            for id in ids {
                self.check_expr(stmt, id);
            }
            self.check_stmt(stmt);
        });
    }

    fn check_expr(&mut self, stmt: &Stmt, id: ExprId) {
        let span = self.program.origin.expr(stmt.id, id);
        match self.program.expr(id) {
            Expr::Call(op, operands) => match self.exprs[id.index()].clone() {
                Some(Ok(op_type)) if matches!(op, Op::User(_)) => {
                    for operand in operands {
                        self.check_literal(stmt, *operand, op_type.operand);
                    }
                    self.check_laws(*op, op_type.operand, span);
                }
                Some(Err(reason)) => {
                    let name = op.info().symbol.unwrap_or(op.info().name);
                    let mut d =
                        Diagnostic::new(Code::E0301, format!("`{name}` {reason}")).label(span, "in this expression");
                    for operand in operands {
                        if let Some(ty) = self.ty(*operand) {
                            d = d.label(self.program.origin.expr(stmt.id, *operand), ty.dtype.name());
                        }
                    }
                    self.error(d.help("convert the operands, as in `real(x)`, `abs(x)` or `i64(x)`"));
                }
                // Integers are compared exactly, regardless of their types.
                Some(Ok(op_type)) if !matches!(op.info().typing, Typing::Conversion(_) | Typing::Comparison { .. }) => {
                    for operand in operands {
                        self.check_literal(stmt, *operand, op_type.operand);
                    }
                }
                _ => {}
            },
            Expr::Read(access) => {
                for subscript in &access.subscripts {
                    self.check_integer(stmt, subscript.expr, "a subscript");
                }
            }
            Expr::Size(tensor, dim) => self.check_dim(*tensor, *dim, span),
            Expr::Entry(entry) => {
                match entry.what {
                    EntryPart::Coordinate(dim) => self.check_dim(entry.tensor, dim, span),
                    EntryPart::First => self.check_dim(entry.tensor, entry.at.len().saturating_sub(1), span),
                    EntryPart::Count | EntryPart::Value => {}
                }
                for at in &entry.at {
                    self.check_integer(stmt, *at, "the position of an element");
                }
            }
            _ => {}
        }
    }

    /// Checks the declared laws of an operator on the type of its operands.
    fn check_laws(&mut self, op: Op, dtype: DType, span: Span) {
        let Op::User(user) = op else { return };
        let Err(failure) = user.test_laws(dtype) else { return };
        let law = failure.law;
        let (name, laws) = (user.name(), user.laws());
        let message = |what: &str, value: Option<Value>| match value {
            Some(value) => format!("{value} is not {what} of `{name}` on {dtype}"),
            None => format!("`{name}` is not {law} on {dtype}"),
        };
        let message = match law {
            "identity" => message("an identity", laws.left_identity),
            "left_identity" => message("a left identity", laws.left_identity),
            "right_identity" => message("a right identity", laws.right_identity),
            "annihilator" => message("an annihilator", laws.annihilator),
            _ => message(law, None),
        };
        let nan = failure.counterexample.contains("nan");
        let mut d = Diagnostic::new(Code::E0309, message)
            .label(span, format!("used with {dtype} here"))
            .note(failure.counterexample)
            .help(format!(
                "remove `{law}` from `@op(...)`: no law is required, each one only allows more optimisations"
            ));
        if nan {
            d = d.help("or handle NaN in the body; `min(a, b)` and `max(a, b)` propagate it");
        }
        self.error(d);
    }

    fn check_dim(&mut self, tensor: TensorId, dim: usize, span: Span) {
        let (name, rank) = (&self.program.tensor(tensor).name, self.ranks[tensor.index()]);
        if dim >= rank {
            let d = Diagnostic::new(
                Code::E0401,
                format!("`{name}` has no dimension {dim}: it has {}", counted(rank, "dimension")),
            );
            self.error(d.label(span, "no such dimension").help("dimensions are numbered from 0"));
        }
    }

    /// Checks that an integer literal, or an expression of literals, fits the integer type of the
    /// other operand.
    fn check_literal(&mut self, stmt: &Stmt, id: ExprId, dtype: DType) {
        if dtype.kind() == Kind::Int
            && let Some(value) = self.literal_value(id)
            && value.dtype().kind() == Kind::Int
            && value.cast_exact(dtype).is_none()
        {
            let span = self.program.origin.expr(stmt.id, id);
            let d =
                Diagnostic::new(Code::E0306, format!("{value} does not fit {dtype}, the type of the other operands"));
            self.error(d.label(span, format!("not a {dtype}")).help("convert the tensor, as in `i64(A[i])`"));
        }
    }

    /// The value of an expression of literals.
    fn literal_value(&self, id: ExprId) -> Option<Value> {
        match (self.program.expr(id), &self.exprs[id.index()]) {
            (Expr::Literal(value), _) => Some(*value),
            (Expr::Read(access), _) => self.literals.get(&access.tensor).copied(),
            (Expr::Call(op, operands), Some(Ok(op_type))) if op_type.result.weak => {
                let values: Option<Vec<Value>> = operands.iter().map(|operand| self.literal_value(*operand)).collect();
                Some(eval(*op, op_type.operand, &values?))
            }
            _ => None,
        }
    }

    fn check_integer(&mut self, stmt: &Stmt, id: ExprId, what: &str) {
        let Some(ty) = self.ty(id) else { return };
        let span = self.program.origin.expr(stmt.id, id);
        if ty.dtype.kind() != Kind::Int {
            let d = Diagnostic::new(Code::E0305, format!("{what} is an integer, not {}", ty.dtype));
            self.error(d.label(span, ty.dtype.name()).help("convert it, as in `i64(x)`; divide integers with `//`"));
        }
        self.check_present(stmt, id, what);
    }

    fn check_present(&mut self, stmt: &Stmt, id: ExprId, what: &str) {
        if self.ty(id).is_some_and(|ty| ty.nullable) {
            let span = self.program.origin.expr(stmt.id, id);
            let d = Diagnostic::new(
                Code::E0303,
                format!("{what} may be missing: a permissive access has no value out of bounds"),
            );
            let shown = self.program.show(id);
            self.error(d.label(span, "may be missing").help(format!("supply a value outside: `coalesce({shown}, 0)`")));
        }
    }

    fn check_stmt(&mut self, stmt: &Stmt) {
        match &stmt.kind {
            StmtKind::Declare(tensor) => self.check_declaration(stmt, *tensor),
            StmtKind::For { extent: Extent::Range(start, stop), .. } => {
                self.check_integer(stmt, *start, "a bound of `range`");
                self.check_integer(stmt, *stop, "a bound of `range`");
            }
            StmtKind::If { cond, .. } => self.check_present(stmt, *cond, "a condition"),
            StmtKind::Assign { target, update, value } => {
                for subscript in &target.subscripts {
                    self.check_integer(stmt, subscript.expr, "a subscript");
                }
                self.check_present(stmt, *value, "a stored value");
                for extra in update.iter().flat_map(|u| &u.extra) {
                    self.check_present(stmt, *extra, "an operand of an update");
                    if let Some(to) = self.tensors[target.tensor.index()] {
                        self.check_literal(stmt, *extra, to.dtype);
                    }
                }
                self.check_store(stmt, target.tensor, update.as_ref(), *value);
            }
            _ => {}
        }
    }

    fn check_store(&mut self, stmt: &Stmt, tensor: TensorId, update: Option<&Update>, value: ExprId) {
        let (Some(to), Some(from)) = (self.tensors[tensor.index()], self.ty(value)) else { return };
        let name = self.program.tensor(tensor).name.clone();
        let span = self.program.origin.expr(stmt.id, value);
        let result = match update {
            None => from,
            Some(update) => match self.update_type(update, Ty::strong(to.dtype), from) {
                Ok(op_type) => {
                    self.check_laws(update.op, op_type.operand, span);
                    op_type.result
                }
                Err(reason) => {
                    let symbol = update.op.info().symbol.unwrap_or(update.op.info().name);
                    let d = Diagnostic::new(Code::E0301, format!("the update `{symbol}` {reason}"));
                    let label = format!("{} into {}", from.dtype, to.dtype);
                    return self.error(
                        d.label(span, label).help("convert the value, or declare the tensor with another dtype"),
                    );
                }
            },
        };
        if !can_store(result, to.dtype) {
            let declared = self.program.origin.tensor(tensor);
            let d = Diagnostic::new(
                Code::E0302,
                format!("{} cannot be stored in `{name}`, which holds {}", result.dtype, to.dtype),
            );
            let d = d.label(span, result.dtype.name()).label(declared, to.dtype.name());
            let convert = match (result.dtype.kind(), to.dtype) {
                (_, DType::Bool) => "`x != 0`".to_string(),
                (Kind::Complex, _) => "`real(...)` or `abs(...)`".to_string(),
                (_, dtype) => format!("`{dtype}(...)`"),
            };
            return self.error(
                d.help(format!("convert it: {convert}")).help("or declare the tensor with a dtype that holds it"),
            );
        }
        self.check_literal(stmt, value, to.dtype);
    }

    fn check_declaration(&mut self, stmt: &Stmt, tensor: TensorId) {
        let Some(declaration) = &self.program.tensor(tensor).declaration else { return };
        for dim in declaration.shape.iter().flatten() {
            self.check_integer(stmt, *dim, "a dimension");
        }
        let (Some(fill), Some(ty)) = (declaration.fill, self.tensors[tensor.index()]) else { return };
        let fits = match ty.dtype.kind() {
            Kind::Bool | Kind::Int => fill.cast_exact(ty.dtype).is_some(),
            kind => fill.dtype().kind() <= kind,
        };
        if !fits {
            let d = Diagnostic::new(Code::E0302, format!("the fill {fill} is not a value of type {}", ty.dtype));
            let d = d.label(self.program.origin.stmt(stmt.id), "declared here");
            self.error(d.help("write another fill, or another dtype"));
        }
    }

    fn finish(self) -> Types {
        let tensors: Vec<DType> = self.tensors.iter().map(|ty| ty.map_or(DType::F64, |ty| ty.dtype)).collect();
        let fill = |(info, dtype): (&super::TensorInfo, &DType)| match &info.declaration {
            Some(Declaration { storage: Storage::Tensor(spec), .. }) if spec.leaf() == Leaf::Pattern => {
                Value::Bool(false)
            }
            Some(Declaration { fill: Some(fill), .. }) => fill.cast(*dtype),
            _ => Value::zero(*dtype),
        };
        let fills: Vec<Value> = self.program.tensors.iter().zip(&tensors).map(fill).collect();
        let known = |k: usize| match &self.exprs[k] {
            Some(Ok(op_type)) => *op_type,
            // Part of no statement: never evaluated.
            _ => OpType { operand: DType::F64, result: Ty::strong(DType::F64) },
        };
        let exprs = (0..self.exprs.len()).map(|k| known(k).result).collect();
        let operands = (0..self.exprs.len()).map(|k| known(k).operand).collect();
        let mut updates = FxHashMap::default();
        self.program.visit(&mut |stmt| {
            if let StmtKind::Assign { target, update: Some(update), value } = &stmt.kind
                && let Some(value) = self.ty(*value)
                && let Ok(op_type) = self.update_type(update, Ty::strong(tensors[target.tensor.index()]), value)
            {
                updates.insert(stmt.id, op_type.operand);
            }
        });
        let truths = self.truths(&tensors, &fills);
        Types { tensors, fills, exprs, operands, updates, truths }
    }

    /// True for tensors that start at 0 or 1 and only store truth values.
    fn truths(&self, tensors: &[DType], fills: &[Value]) -> Vec<bool> {
        let is_truth =
            |fill: &Value| [Value::zero(fill.dtype()), Value::one(fill.dtype())].iter().any(|t| t.same_number(*fill));
        let declared = self.program.tensors.iter().map(|info| info.declaration.is_some());
        let mut truths: Vec<bool> = declared.zip(fills).map(|(declared, fill)| declared && is_truth(fill)).collect();
        self.program.visit(&mut |stmt| {
            if let StmtKind::Assign { target, update, value } = &stmt.kind {
                let stored = match update {
                    Some(update) => update.op.info().typing == Typing::Logical,
                    None => self.ty(*value).is_some_and(|ty| ty.dtype == DType::Bool),
                };
                truths[target.tensor.index()] &= stored;
            }
        });
        truths.iter().zip(tensors).map(|(truth, dtype)| *truth || *dtype == DType::Bool).collect()
    }
}

fn literal_type(value: Value) -> Ty {
    match value {
        Value::Bool(_) => Ty::strong(DType::Bool),
        other => Ty::weak(other.dtype()),
    }
}
