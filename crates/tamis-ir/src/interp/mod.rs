//! The reference interpreter: the definition of what programs mean.
//!
//! It is dense, slow and simple: the oracle that every other implementation is compared with.
//!
//! Loops visit every point of their extents in order. Tensors of any format come in through
//! [`Operand`], which only enumerates stored elements; results go out as [`Grid`]s.
//!
//! **A fill annihilates.** By default a product with a 0 *that is not stored* is 0, also when the
//! other factor is NaN or infinite (a sparse kernel never looks at it). The same holds for every
//! operator with an annihilator; a sum with an infinity that is not stored is that infinity. A
//! value is *structural* if it follows without looking at stored data: literals, elements that are
//! not stored, and expressions of only structural values. With [`Options::strict`], IEEE arithmetic
//! decides alone.

mod entries;
mod grid;

pub use grid::{Grid, Operand};

use crate::algebra::{DType, Kind, Op, Value, eval};
use crate::diag::{Code, Diagnostic, Diagnostics, Result};
use crate::format::MAX_RANK;
use crate::program::dims::permit;
use crate::program::{
    Access, Block, Checked, Declaration, Expr, ExprId, Extent, LoopExtent, Masks, ParamType, Program, ScalarKind, Stmt,
    StmtId, StmtKind, Storage, TensorId, Update,
};
use entries::StoredEntries;

/// The options of the interpreter.
///
/// ```
/// use tamis_ir::interp::Options;
/// let options = Options { budget: Some(1000), ..Options::default() };
/// assert!(!options.strict);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// IEEE arithmetic throughout: a 0 that is not stored times NaN is NaN.
    pub strict: bool,
    /// The maximum number of loop iterations; the interpreter reports a diagnostic beyond.
    pub budget: Option<u64>,
}

/// The results of a program.
///
/// ```
/// use tamis_ir::{Notation, Value, interp};
/// let sum = Notation::parse("s = x[i]")?.plain()?;
/// let x = interp::Grid::from_values(&[3], &[1.0, 2.0, 3.0].map(Value::F64));
/// let outcome = interp::run(&sum, &[&x], interp::Options::default())?;
/// assert_eq!(outcome.results[0].get(&[]), Some(Value::F64(6.0)));
/// assert_eq!(outcome.iterations, 3);
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Results in the order of `return`.
    pub results: Vec<Grid>,
    /// The inferred types, dimensions and formats.
    pub checked: Checked,
    /// The number of loop iterations executed.
    pub iterations: u64,
}

/// Runs a program on tensors, given in the order of its parameters.
///
/// ```
/// use tamis_ir::{Program, Value, interp};
/// let program = Program::parse("
/// def double(x):
///     y = tensor('dense')
///     for i in _:
///         y[i] = 2 * x[i]
///     return y
/// ").unwrap();
/// let x = interp::Grid::from_values(&[3], &[1.0, 2.0, 3.0].map(Value::F64));
/// let outcome = interp::run(&program, &[&x], interp::Options::default()).unwrap();
/// assert_eq!(outcome.results[0].get(&[2]), Some(Value::F64(6.0)));
/// ```
pub fn run(program: &Program, params: &[&dyn Operand], options: Options) -> std::result::Result<Outcome, Diagnostics> {
    let types: Vec<ParamType> = params.iter().map(|p| param_type(*p)).collect();
    let checked = program.check(&types)?;
    let mut machine = ProgramInterpreter::new(program, &checked, options)?;
    for (id, param) in program.params.iter().zip(params) {
        // A parameter that is never subscripted matters only by its shape.
        if program.tensor(*id).rank == param.shape().len() {
            machine.tensors[id.index()] = Grid::from_operand(*param);
        }
    }
    machine.entries = StoredEntries::of_all(program, params);
    machine.block(&program.body).map_err(|d| Diagnostics(vec![program.origin.attach(d)]))?;
    let iterations = machine.iterations;
    let mut tensors: Vec<Option<Grid>> = machine.tensors.into_iter().map(Some).collect();
    let results = program.results.iter().filter_map(|id| tensors[id.index()].take()).collect();
    Ok(Outcome { results, checked, iterations })
}

/// The properties of an operand that a program depends on.
///
/// ```
/// use tamis_ir::{DType, Value, interp};
/// let x = interp::Grid::from_values(&[2], &[1.0, 2.0].map(Value::F64));
/// let param = interp::param_type(&x);
/// assert_eq!((param.dtype, param.shape), (DType::F64, vec![Some(2)]));
/// ```
pub fn param_type(operand: &dyn Operand) -> ParamType {
    let value =
        if operand.shape().is_empty() { Grid::from_operand(operand).get(&[]).and_then(Value::as_i64) } else { None };
    let shape = operand.shape().iter().map(|n| Some(*n)).collect();
    ParamType { dtype: operand.dtype(), shape, value, weak: operand.is_literal() }
}

/// The value of an expression during evaluation.
#[derive(Clone, Copy)]
struct Seen {
    /// `None` is missing: read out of bounds by a permissive access.
    value: Option<Value>,
    /// True if the value follows without looking at stored data.
    structural: bool,
}

struct ProgramInterpreter<'a> {
    program: &'a Program,
    checked: &'a Checked,
    options: Options,
    tensors: Vec<Grid>,
    /// The entries of the parameters that the program queries.
    entries: Vec<Option<StoredEntries>>,
    indices: Vec<i64>,
    vars: Vec<Seen>,
    stmt: StmtId,
    iterations: u64,
    /// True for each expression that is a mask.
    masks: Vec<bool>,
    /// For each operator call, the operands that decide its result, in the type it computes in.
    absorbing: Vec<Vec<Absorbs>>,
}

impl<'a> ProgramInterpreter<'a> {
    fn new(program: &'a Program, checked: &'a Checked, options: Options) -> Result<ProgramInterpreter<'a>> {
        let mut tensors = Vec::new();
        for (k, info) in program.tensors.iter().enumerate() {
            let shape = &checked.extents.shapes[k];
            let grid = match (&checked.formats[k], &info.declaration) {
                (_, Some(Declaration { storage: Storage::Scalar(ScalarKind::Sparse), .. })) => {
                    Grid::sparse_scalar(checked.types.fills[k])
                }
                (Some(format), Some(_)) => {
                    let declared = program.origin.tensor(TensorId(k as u32));
                    Grid::declared(shape, checked.types.fills[k], format)
                        .map_err(|d| program.origin.attach(d.label(declared, "declared here")))?
                }
                _ => Grid::from_values(&[], &[checked.types.fills[k]]),
            };
            tensors.push(grid);
        }
        let mut masks = Masks::new(program);
        Ok(ProgramInterpreter {
            program,
            checked,
            options,
            tensors,
            entries: Vec::new(),
            indices: vec![0; program.indices.len()],
            vars: vec![Seen { value: None, structural: false }; program.vars.len()],
            stmt: StmtId(0),
            iterations: 0,
            masks: program.exprs.ids().map(|id| masks.is_mask(id)).collect(),
            absorbing: program
                .exprs
                .ids()
                .map(|id| match program.expr(id) {
                    Expr::Call(op, _) => absorbing(*op, checked.types.operands[id.index()]),
                    _ => Vec::new(),
                })
                .collect(),
        })
    }

    fn block(&mut self, block: &Block) -> Result<()> {
        block.iter().try_for_each(|stmt| self.execute(stmt))
    }

    fn execute(&mut self, stmt: &Stmt) -> Result<()> {
        self.stmt = stmt.id;
        match &stmt.kind {
            StmtKind::Declare(tensor) => self.tensors[tensor.index()].reset(),
            StmtKind::Let { var, value } => self.vars[var.index()] = self.evaluate(*value)?,
            StmtKind::For { index, extent, body, .. } => {
                let (start, stop) = self.bounds(index.index(), *extent)?;
                for i in start..stop {
                    self.iterations += 1;
                    if self.options.budget.is_some_and(|budget| self.iterations > budget) {
                        return Err(Diagnostic::new(Code::E1003, "the program exceeds the limit of loop iterations")
                            .label(self.program.origin.stmt(stmt.id), "stopped in this loop")
                            .help("use smaller tensors"));
                    }
                    self.indices[index.index()] = i;
                    self.block(body)?;
                }
            }
            StmtKind::If { cond, then, otherwise } => {
                let holds = self.evaluate(*cond)?.value.is_some_and(Value::is_truthy);
                self.block(if holds { then } else { otherwise })?;
            }
            StmtKind::Assign { target, update, value } => {
                let value = self.evaluate(*value)?;
                let mut position = [0; MAX_RANK];
                let position = &mut position[..target.subscripts.len()];
                if !self.locate(target, true, position)? || self.changes_nothing(target, position, update, value) {
                    return Ok(());
                }
                let stored = match update {
                    None => value,
                    Some(update) => self.update(target, position, update, value)?,
                };
                let dtype = self.checked.types.tensors[target.tensor.index()];
                if let Some(stored) = stored.value {
                    self.tensors[target.tensor.index()].set(position, stored.cast(dtype));
                }
            }
        }
        Ok(())
    }

    fn bounds(&mut self, index: usize, extent: Extent) -> Result<(i64, i64)> {
        match (self.checked.extents.loops[index], extent) {
            (LoopExtent::Static { start, stop }, _) => Ok((start, stop)),
            (LoopExtent::Dynamic, Extent::Range(start, stop)) => {
                let start = self.integer(start)?;
                let stop = self.integer(stop)?;
                Ok((start, stop.max(start)))
            }
            // Inference gives every loop of inferred extent a static extent.
            (LoopExtent::Dynamic, Extent::Infer) => Ok((0, 0)),
        }
    }

    /// An update by a structural identity, or by the fill of an element that is not stored, is not
    /// a write.
    fn changes_nothing(&self, target: &Access, position: &[u64], update: &Option<Update>, value: Seen) -> bool {
        let Seen { value: Some(value), structural: true } = value else { return false };
        let grid = &self.tensors[target.tensor.index()];
        match update {
            Some(Update { op, extra }) => {
                let operand = self.checked.types.updates.get(&self.stmt).copied().unwrap_or(grid.dtype());
                let identity = op.info().right_identity.and_then(|e| e.value(operand));
                extra.is_empty()
                    && self.checked.types.identity_keeps(target.tensor, operand)
                    && identity.is_some_and(|e| value.cast(operand).same_number(e))
            }
            None => {
                let (old, stored) = grid.read(position);
                !stored && value.cast(old.dtype()).same_number(old)
            }
        }
    }

    fn update(&mut self, target: &Access, position: &[u64], update: &Update, value: Seen) -> Result<Seen> {
        let (old, stored) = self.tensors[target.tensor.index()].read(position);
        let operand = self.checked.types.updates.get(&self.stmt).copied().unwrap_or(old.dtype());
        // An update of an element that is not stored reads no stored data.
        let mut operands = vec![Seen { value: Some(old), structural: !stored }, value];
        for extra in &update.extra {
            operands.push(self.evaluate(*extra)?);
        }
        // Only an annihilator decides an update: an infinite sum takes part in later updates.
        let annihilator: Vec<Absorbs> = annihilator(update.op, operand).into_iter().collect();
        Ok(self.apply(update.op, operand, &annihilator, &operands))
    }

    /// Locates an access; false for a permissive one out of bounds.
    fn locate(&mut self, access: &Access, write: bool, position: &mut [u64]) -> Result<bool> {
        let mut inside = true;
        for (dim, subscript) in access.subscripts.iter().enumerate() {
            let i = self.coordinate(subscript.expr)?;
            let size = self.tensors[access.tensor.index()].shape()[dim];
            match u64::try_from(i) {
                Ok(i) if i < size => position[dim] = i,
                _ if subscript.permissive => inside = false,
                _ => {
                    let name = &self.program.tensor(access.tensor).name;
                    let shown = self.program.show(subscript.expr);
                    return Err(Diagnostic::new(
                        Code::E1001,
                        format!("`{shown}` is {i}, but dimension {dim} of `{name}` has size {size}"),
                    )
                    .label(self.program.origin.expr(self.stmt, subscript.expr), format!("is {i} here"))
                    .note(self.where_loops_stand())
                    .help("bound the loop with `range(a, b)`")
                    .help(permit(name, &shown, write)));
                }
            }
        }
        Ok(inside)
    }

    fn where_loops_stand(&self) -> String {
        let at: Vec<String> =
            self.program.indices.iter().zip(&self.indices).map(|(name, i)| format!("{name} = {i}")).collect();
        format!("with {}", at.join(", "))
    }

    /// A subscript. Its sums and products do not wrap around: an overflow is out of bounds of every
    /// tensor.
    fn coordinate(&mut self, id: ExprId) -> Result<i64> {
        let program = self.program;
        let Expr::Call(op, operands) = program.expr(id) else { return self.integer(id) };
        if self.checked.types.operands[id.index()] != DType::I64 {
            return self.integer(id);
        }
        Ok(match (op, &operands[..]) {
            (Op::Add, [a, b]) => self.coordinate(*a)?.saturating_add(self.coordinate(*b)?),
            (Op::Sub, [a, b]) => self.coordinate(*a)?.saturating_sub(self.coordinate(*b)?),
            (Op::Mul, [a, b]) => self.coordinate(*a)?.saturating_mul(self.coordinate(*b)?),
            (Op::Neg, [a]) => 0i64.saturating_sub(self.coordinate(*a)?),
            _ => self.integer(id)?,
        })
    }

    fn integer(&mut self, id: ExprId) -> Result<i64> {
        // By far the most common subscript.
        if let Expr::Index(index) = self.program.expr(id) {
            return Ok(self.indices[index.index()]);
        }
        let value = self.evaluate(id)?.value;
        value.and_then(Value::as_i64).ok_or_else(|| {
            let shown = value.map_or("missing".to_string(), |v| v.to_string());
            Diagnostic::new(Code::E1002, format!("`{}` is {shown}, which is not a valid index", self.program.show(id)))
                .label(self.program.origin.expr(self.stmt, id), "here")
                .help("indices are integers below 2^63")
        })
    }

    fn evaluate(&mut self, id: ExprId) -> Result<Seen> {
        let program = self.program;
        Ok(match program.expr(id) {
            Expr::Literal(value) => Seen { value: Some(*value), structural: true },
            Expr::Index(index) => Seen { value: Some(Value::I64(self.indices[index.index()])), structural: false },
            Expr::Var(var) => self.vars[var.index()],
            Expr::Size(tensor, dim) => {
                let size = self.checked.extents.shapes[tensor.index()][*dim];
                Seen { value: Some(Value::I64(size as i64)), structural: false }
            }
            Expr::Entry(entry) => self.entry(entry)?,
            Expr::Read(access) => {
                let mut position = [0; MAX_RANK];
                let position = &mut position[..access.subscripts.len()];
                if self.locate(access, false, position)? {
                    let (value, stored) = self.tensors[access.tensor.index()].read(position);
                    Seen { value: Some(value), structural: !stored }
                } else {
                    Seen { value: None, structural: true }
                }
            }
            Expr::Call(op, operands) => {
                let operand = self.checked.types.operands[id.index()];
                let seen = match operands[..] {
                    _ if op.is_lazy() => self.evaluate_lazily(id, *op, operand, operands)?,
                    [a] => {
                        let seen = [self.evaluate(a)?];
                        self.apply(*op, operand, &self.absorbing[id.index()], &seen)
                    }
                    [a, b] => {
                        let seen = [self.evaluate(a)?, self.evaluate(b)?];
                        self.apply(*op, operand, &self.absorbing[id.index()], &seen)
                    }
                    _ => {
                        let mut seen = Vec::with_capacity(operands.len());
                        for operand in operands {
                            seen.push(self.evaluate(*operand)?);
                        }
                        self.apply(*op, operand, &self.absorbing[id.index()], &seen)
                    }
                };
                // A mask is structure, too.
                Seen { structural: seen.structural || self.masks[id.index()], ..seen }
            }
        })
    }

    /// Evaluates operands one after the other until the result is decided.
    fn evaluate_lazily(&mut self, id: ExprId, op: Op, operand: DType, operands: &[ExprId]) -> Result<Seen> {
        let first = self.evaluate(operands[0])?;
        match op {
            Op::Select => {
                let Some(cond) = first.value else { return Ok(first) };
                let chosen = self.evaluate(operands[if cond.is_truthy() { 1 } else { 2 }])?;
                let structural = first.structural && chosen.structural;
                Ok(Seen { value: chosen.value.map(|v| v.cast(operand)), structural })
            }
            Op::Coalesce => {
                let mut found = first;
                for other in &operands[1..] {
                    if found.value.is_some() {
                        break;
                    }
                    found = self.evaluate(*other)?;
                }
                Ok(Seen { value: found.value.map(|v| v.cast(operand)), ..found })
            }
            // A false operand decides `and`, a true one `or`.
            _ => match first.value {
                Some(value) if value.is_truthy() == (op == Op::Or) => {
                    Ok(Seen { value: Some(Value::Bool(op == Op::Or)), structural: first.structural })
                }
                _ => {
                    let second = self.evaluate(operands[1])?;
                    Ok(self.apply(op, operand, &self.absorbing[id.index()], &[first, second]))
                }
            },
        }
    }

    fn apply(&self, op: Op, operand: DType, absorbing: &[Absorbs], operands: &[Seen]) -> Seen {
        let structural = operands.iter().all(|o| o.structural);
        if operands.iter().any(|o| o.value.is_none()) {
            return Seen { value: None, structural };
        }
        let known = |o: &Seen| o.value.unwrap_or(Value::Bool(false));
        if !self.options.strict && !absorbing.is_empty() {
            // If several operands decide, the first one wins.
            for (k, seen) in operands.iter().enumerate().filter(|(_, o)| o.structural) {
                let value = known(seen).cast(operand);
                let decides = |row: &&Absorbs| row.operand.is_none_or(|at| at == k) && row.value.same_number(value);
                if let Some(row) = absorbing.iter().find(decides) {
                    return Seen { value: Some(row.result), structural: true };
                }
            }
        }
        let value = match operands {
            [a] => eval(op, operand, &[known(a)]),
            [a, b] => eval(op, operand, &[known(a), known(b)]),
            _ => eval(op, operand, &operands.iter().map(known).collect::<Vec<_>>()),
        };
        Seen { value: Some(value), structural }
    }
}

/// An operand that decides a result, if it is structural.
struct Absorbs {
    /// The position of the operand; `None` for any.
    operand: Option<usize>,
    value: Value,
    result: Value,
}

fn annihilator(op: Op, operand: DType) -> Option<Absorbs> {
    let zero = op.info().annihilator.and_then(|a| a.value(operand))?;
    Some(Absorbs { operand: None, value: zero, result: zero })
}

/// An operand value that decides the result: an annihilator, or an infinity in a sum of floats.
fn absorbing(op: Op, operand: DType) -> Vec<Absorbs> {
    let rows = if operand.kind() == Kind::Float { op.info().absorbing } else { &[] };
    let rows = rows.iter().filter_map(|row| {
        let (value, result) = (row.value.value(operand)?, row.result.value(operand)?);
        Some(Absorbs { operand: Some(row.operand), value, result })
    });
    annihilator(op, operand).into_iter().chain(rows).collect()
}
