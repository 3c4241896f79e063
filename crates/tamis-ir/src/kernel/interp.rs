//! Interpreting kernels: slow, checked in every access, and what backends are compared with.
//!
//! Loops run by their kinds: the iterations of a parallel loop in another order than the loop's, and
//! those of a vector loop in lockstep. A race of two iterations is a failure.

mod gemm;
mod kinds;
mod races;

use super::{BufferId, Elem, Expr, ExprId, Kernel, LabelId, LoopKind, Stmt, VectorExpr, Workspace};
use crate::algebra::{DType, Op, Value, eval};
use races::{Log, RecordedAccess};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// The elements of a buffer.
///
/// ```
/// use tamis_ir::Value;
/// use tamis_ir::kernel::Array;
/// let values = Array::from_values([Value::F64(1.0), Value::F64(2.5)]);
/// assert_eq!((values.len(), values.get(1)), (2, Some(Value::F64(2.5))));
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Array {
    values: Vec<Value>,
}

impl Array {
    /// An array of values, all of one type; coordinates and positions are `i64`.
    ///
    /// ```
    /// use tamis_ir::Value;
    /// use tamis_ir::kernel::Array;
    /// assert_eq!(Array::from_values([Value::I64(7)]).values(), [Value::I64(7)]);
    /// ```
    pub fn from_values(values: impl IntoIterator<Item = Value>) -> Array {
        Array { values: values.into_iter().collect() }
    }

    /// An array of coordinates or positions.
    ///
    /// ```
    /// use tamis_ir::Value;
    /// use tamis_ir::kernel::Array;
    /// assert_eq!(Array::from_indices(&[0, 2, 5]).get(2), Some(Value::I64(5)));
    /// ```
    pub fn from_indices(values: &[u64]) -> Array {
        Array::from_values(values.iter().map(|x| Value::I64(*x as i64)))
    }

    /// The element at `k`.
    ///
    /// ```
    /// use tamis_ir::Value;
    /// use tamis_ir::kernel::Array;
    /// let pos = Array::from_indices(&[0, 2]);
    /// assert_eq!((pos.get(1), pos.get(2)), (Some(Value::I64(2)), None));
    /// ```
    pub fn get(&self, k: usize) -> Option<Value> {
        self.values.get(k).copied()
    }

    /// All elements.
    ///
    /// ```
    /// use tamis_ir::Value;
    /// use tamis_ir::kernel::Array;
    /// assert_eq!(Array::from_indices(&[0, 2]).values(), [Value::I64(0), Value::I64(2)]);
    /// ```
    pub fn values(&self) -> &[Value] {
        &self.values
    }

    /// The number of elements.
    ///
    /// ```
    /// use tamis_ir::kernel::Array;
    /// assert_eq!(Array::from_indices(&[0, 2]).len(), 2);
    /// ```
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// True if there are none.
    ///
    /// ```
    /// assert!(tamis_ir::kernel::Array::default().is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }
}

/// The memory of a kernel: one array for each buffer (empty for scratch and tiles), and the
/// scalars.
///
/// ```
/// use tamis_ir::Value;
/// use tamis_ir::kernel::{Array, Memory};
/// let x = Array::from_values([Value::F64(1.0), Value::F64(2.5)]);
/// let memory = Memory { arrays: vec![x, Array::default()], scalars: vec![Value::I64(2)] };
/// assert_eq!(memory.arrays[0].len(), 2);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs)]
pub struct Memory {
    pub arrays: Vec<Array>,
    pub scalars: Vec<Value>,
}

/// The reason for the end of a run.
///
/// ```
/// use tamis_ir::kernel::{Failure, run};
/// # use tamis_ir::DType;
/// # use tamis_ir::algebra::Op;
/// # use tamis_ir::kernel::{Builder, Elem, Role};
/// # let mut b = Builder::new("double");
/// # let x = b.buffer("x", Elem::Value(DType::F64), Role::Input);
/// # let y = b.buffer("y", Elem::Value(DType::F64), Role::Output);
/// # let n = b.param("n", DType::I64);
/// # let (zero, stop) = (b.int(0), b.get(n));
/// # b.count("i", zero, stop, |b, i| {
/// #     let value = b.load(x, i);
/// #     let twice = b.call(Op::Add, &[value, value]);
/// #     b.store(y, i, twice);
/// # });
/// # let kernel = b.finish();
/// # use tamis_ir::Value;
/// # use tamis_ir::kernel::{Array, Memory};
/// # let values = |values: &[f64]| Array::from_values(values.iter().map(|x| Value::F64(*x)));
/// # let arrays = vec![values(&[1.0, 2.5]), values(&[0.0, 0.0])];
/// # let memory = Memory { arrays, scalars: vec![Value::I64(2)] };
/// assert_eq!(run(&kernel, memory, 2), Err(Failure::Budget), "it needs three statements");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum Failure {
    /// A `require` did not hold.
    Required(String),
    /// The kernel violates an invariant: a bug of the compiler.
    Wrong(String),
    /// More steps than allowed.
    Budget,
}

enum Flow {
    Next,
    Break(LabelId),
}

/// Runs a kernel for at most `budget` statements; returns the memory.
///
/// ```
/// use tamis_ir::kernel::run;
/// # use tamis_ir::DType;
/// # use tamis_ir::algebra::Op;
/// # use tamis_ir::kernel::{Builder, Elem, Role};
/// # let mut b = Builder::new("double");
/// # let x = b.buffer("x", Elem::Value(DType::F64), Role::Input);
/// # let y = b.buffer("y", Elem::Value(DType::F64), Role::Output);
/// # let n = b.param("n", DType::I64);
/// # let (zero, stop) = (b.int(0), b.get(n));
/// # b.count("i", zero, stop, |b, i| {
/// #     let value = b.load(x, i);
/// #     let twice = b.call(Op::Add, &[value, value]);
/// #     b.store(y, i, twice);
/// # });
/// # let kernel = b.finish();
/// # use tamis_ir::Value;
/// # use tamis_ir::kernel::{Array, Memory};
/// # let values = |values: &[f64]| Array::from_values(values.iter().map(|x| Value::F64(*x)));
/// # let arrays = vec![values(&[1.0, 2.5]), values(&[0.0, 0.0])];
/// # let memory = Memory { arrays, scalars: vec![Value::I64(2)] };
/// // `kernel` doubles a vector, and `memory` holds 1 and 2.5.
/// let after = run(&kernel, memory, 1000).unwrap();
/// assert_eq!(after.arrays[1].values(), [Value::F64(2.0), Value::F64(5.0)]);
/// ```
pub fn run(kernel: &Kernel, memory: Memory, budget: u64) -> Result<Memory, Failure> {
    run_counted(kernel, memory, budget).map(|(memory, _)| memory)
}

/// The statistics of one run of a kernel.
///
/// ```
/// use tamis_ir::kernel::run_counted;
/// # use tamis_ir::DType;
/// # use tamis_ir::algebra::Op;
/// # use tamis_ir::kernel::{Builder, Elem, Role};
/// # let mut b = Builder::new("double");
/// # let x = b.buffer("x", Elem::Value(DType::F64), Role::Input);
/// # let y = b.buffer("y", Elem::Value(DType::F64), Role::Output);
/// # let n = b.param("n", DType::I64);
/// # let (zero, stop) = (b.int(0), b.get(n));
/// # b.count("i", zero, stop, |b, i| {
/// #     let value = b.load(x, i);
/// #     let twice = b.call(Op::Add, &[value, value]);
/// #     b.store(y, i, twice);
/// # });
/// # let kernel = b.finish();
/// # use tamis_ir::Value;
/// # use tamis_ir::kernel::{Array, Memory};
/// # let values = |values: &[f64]| Array::from_values(values.iter().map(|x| Value::F64(*x)));
/// # let arrays = vec![values(&[1.0, 2.5]), values(&[0.0, 0.0])];
/// # let memory = Memory { arrays, scalars: vec![Value::I64(2)] };
/// let (_, counts) = run_counted(&kernel, memory, 1000).unwrap();
/// assert!(counts.declared.contains(&2), "the counter of the loop over two elements");
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExecutionCounts {
    /// For each variable, how often it was declared.
    pub declared: Vec<u64>,
    /// The number of executed statements.
    pub statements: u64,
}

/// [`run`], which also counts how often each variable is declared, by a statement of its own or as the counter of a loop:
/// the iterations of a loop are the declarations of its counter.
///
/// ```
/// use tamis_ir::kernel::run_counted;
/// # use tamis_ir::DType;
/// # use tamis_ir::algebra::Op;
/// # use tamis_ir::kernel::{Builder, Elem, Role};
/// # let mut b = Builder::new("double");
/// # let x = b.buffer("x", Elem::Value(DType::F64), Role::Input);
/// # let y = b.buffer("y", Elem::Value(DType::F64), Role::Output);
/// # let n = b.param("n", DType::I64);
/// # let (zero, stop) = (b.int(0), b.get(n));
/// # b.count("i", zero, stop, |b, i| {
/// #     let value = b.load(x, i);
/// #     let twice = b.call(Op::Add, &[value, value]);
/// #     b.store(y, i, twice);
/// # });
/// # let kernel = b.finish();
/// # use tamis_ir::Value;
/// # use tamis_ir::kernel::{Array, Memory};
/// # let values = |values: &[f64]| Array::from_values(values.iter().map(|x| Value::F64(*x)));
/// # let arrays = vec![values(&[1.0, 2.5]), values(&[0.0, 0.0])];
/// # let memory = Memory { arrays, scalars: vec![Value::I64(2)] };
/// let (after, counts) = run_counted(&kernel, memory, 1000).unwrap();
/// assert_eq!(after.arrays[1].get(1), Some(Value::F64(5.0)));
/// assert!(counts.statements > 2);
/// ```
pub fn run_counted(kernel: &Kernel, memory: Memory, budget: u64) -> Result<(Memory, ExecutionCounts), Failure> {
    run_as(kernel, memory, budget, false)
}

/// [`run`] with all loops but those over the threads of a block as if they were serial.
///
/// ```
/// use tamis_ir::kernel::{run, run_serially};
/// # use tamis_ir::DType;
/// # use tamis_ir::algebra::Op;
/// # use tamis_ir::kernel::{Builder, Elem, Role};
/// # let mut b = Builder::new("double");
/// # let x = b.buffer("x", Elem::Value(DType::F64), Role::Input);
/// # let y = b.buffer("y", Elem::Value(DType::F64), Role::Output);
/// # let n = b.param("n", DType::I64);
/// # let (zero, stop) = (b.int(0), b.get(n));
/// # b.count("i", zero, stop, |b, i| {
/// #     let value = b.load(x, i);
/// #     let twice = b.call(Op::Add, &[value, value]);
/// #     b.store(y, i, twice);
/// # });
/// # let kernel = b.finish();
/// # use tamis_ir::Value;
/// # use tamis_ir::kernel::{Array, Memory};
/// # let values = |values: &[f64]| Array::from_values(values.iter().map(|x| Value::F64(*x)));
/// # let arrays = vec![values(&[1.0, 2.5]), values(&[0.0, 0.0])];
/// # let memory = Memory { arrays, scalars: vec![Value::I64(2)] };
/// assert_eq!(run_serially(&kernel, memory.clone(), 1000), run(&kernel, memory, 1000));
/// ```
pub fn run_serially(kernel: &Kernel, memory: Memory, budget: u64) -> Result<Memory, Failure> {
    run_as(kernel, memory, budget, true).map(|(memory, _)| memory)
}

fn run_as(
    kernel: &Kernel,
    mut memory: Memory,
    budget: u64,
    serially: bool,
) -> Result<(Memory, ExecutionCounts), Failure> {
    if memory.arrays.len() != kernel.buffers.len() || memory.scalars.len() != kernel.params.len() {
        return Err(Failure::Wrong("as many arrays and scalars as the kernel has are needed".into()));
    }
    for (buffer, array) in kernel.buffers.iter().zip(&mut memory.arrays) {
        if let Some(size) = buffer.role.size() {
            array.values = vec![Value::zero(buffer.elem.dtype()); size as usize];
        }
    }
    super::assumptions::check(kernel, &memory, budget)?;
    let mut machine = KernelInterpreter {
        kernel,
        vars: vec![None; kernel.vars.len()],
        arrays: memory.arrays,
        entries: BTreeMap::new(),
        counts: vec![0; kernel.vars.len()],
        wide: vec![Vec::new(); kernel.vars.len()],
        logs: RefCell::new(Vec::new()),
        serially,
        budget,
    };
    for (param, value) in kernel.params.iter().zip(&memory.scalars) {
        machine.vars[param.index()] = Some(*value);
    }
    machine.block(&kernel.body)?;
    let counts = ExecutionCounts { declared: machine.counts, statements: budget - machine.budget };
    Ok((Memory { arrays: machine.arrays, scalars: memory.scalars }, counts))
}

/// The positions of the entries of a workspace, by coordinates.
type Places = BTreeMap<Vec<i64>, usize>;

struct KernelInterpreter<'a> {
    kernel: &'a Kernel,
    vars: Vec<Option<Value>>,
    arrays: Vec<Array>,
    /// For each workspace, by the buffer of its values: the positions of entries, and the sizes.
    entries: BTreeMap<BufferId, (Places, Vec<i64>)>,
    /// The number of declarations of each variable.
    counts: Vec<u64>,
    /// The lanes of each vector variable.
    wide: Vec<Vec<Value>>,
    /// The accesses of the parallel loops that are running, outer ones first.
    logs: RefCell<Vec<Log>>,
    /// Loops run as if they were serial.
    serially: bool,
    budget: u64,
}

impl KernelInterpreter<'_> {
    fn wrong<T>(&self, message: String) -> Result<T, Failure> {
        Err(Failure::Wrong(message))
    }

    fn block(&mut self, block: &[Stmt]) -> Result<Flow, Failure> {
        for stmt in block {
            if let Flow::Break(label) = self.stmt(stmt)? {
                return Ok(Flow::Break(label));
            }
        }
        Ok(Flow::Next)
    }

    fn stmt(&mut self, stmt: &Stmt) -> Result<Flow, Failure> {
        self.budget = self.budget.checked_sub(1).ok_or(Failure::Budget)?;
        match stmt {
            Stmt::Let { var, value } | Stmt::Assign { var, value } => {
                if self.kernel.var(*var).lanes > 1 {
                    self.wide[var.index()] = self.all_lanes(*value, *value)?;
                } else {
                    self.vars[var.index()] = Some(self.eval(*value)?);
                }
                self.counts[var.index()] += u64::from(matches!(stmt, Stmt::Let { .. }));
            }
            Stmt::Store { buffer, index, value } => {
                // All lanes are read before one is written.
                let (places, values) = (self.all_lanes(*index, *index)?, self.all_lanes(*value, *index)?);
                for (place, value) in places.into_iter().zip(values) {
                    self.store(buffer.index(), place.as_i64().unwrap_or(-1), value)?;
                }
            }
            Stmt::MaskedStore { buffer, index, value, mask } => {
                let mut stores = Vec::new();
                for lane in 0..self.kernel.exprs.lanes(*index) {
                    if self.eval_at(*mask, lane)?.is_truthy() {
                        stores.push((self.eval_at(*index, lane)?, self.eval_at(*value, lane)?));
                    }
                }
                for (place, value) in stores {
                    self.store(buffer.index(), place.as_i64().unwrap_or(-1), value)?;
                }
            }
            Stmt::Update { buffer, index, op, value } => {
                let (places, values) = (self.all_lanes(*index, *index)?, self.all_lanes(*value, *index)?);
                for (place, value) in places.into_iter().zip(values) {
                    self.update(buffer.index(), place.as_i64().unwrap_or(-1), *op, value)?;
                }
            }
            // Only time depends on it, and only the loop over threads knows where barriers are.
            Stmt::Prefetch { .. } | Stmt::Barrier => {}
            Stmt::For { var, start, stop, body, hint } => {
                let (start, stop) = (self.int(*start)?, self.int(*stop)?);
                match hint.kind {
                    kind if kind == LoopKind::Block || (kind.is_concurrent() && !self.serially) => {
                        return self.concurrent(*var, (start, stop), kind, body).map(|()| Flow::Next);
                    }
                    LoopKind::Vector { lanes, tail } if !self.serially => {
                        return self.vector_loop(*var, (start, stop), (lanes, tail), body).map(|()| Flow::Next);
                    }
                    _ => {}
                }
                for i in start..stop.max(start) {
                    self.vars[var.index()] = Some(Value::I64(i));
                    self.counts[var.index()] += 1;
                    if let Flow::Break(label) = self.block(body)? {
                        return Ok(Flow::Break(label));
                    }
                }
            }
            Stmt::While { cond, body } => {
                while self.eval(*cond)?.is_truthy() {
                    self.budget = self.budget.checked_sub(1).ok_or(Failure::Budget)?;
                    if let Flow::Break(label) = self.block(body)? {
                        return Ok(Flow::Break(label));
                    }
                }
            }
            Stmt::If { cond, then, otherwise } => {
                let holds = self.eval(*cond)?.is_truthy();
                return self.block(if holds { then } else { otherwise });
            }
            Stmt::Labelled { label, body } => {
                return match self.block(body)? {
                    Flow::Break(left) if left != *label => Ok(Flow::Break(left)),
                    _ => Ok(Flow::Next),
                };
            }
            Stmt::Break(label) => return Ok(Flow::Break(*label)),
            Stmt::Grow { buffer, len, fill } => {
                let len = self.int(*len)?.max(0) as usize;
                let fill = fill.unwrap_or_else(|| Value::zero(self.kernel.buffer(*buffer).elem.dtype()));
                let values = &mut self.arrays[buffer.index()].values;
                if values.len() < len {
                    values.resize(len.max(2 * values.len()), fill);
                }
            }
            Stmt::Fill { buffer, start, len, value } => {
                let (start, len, value) = (self.int(*start)?, self.int(*len)?, self.eval(*value)?);
                for k in start..start.saturating_add(len) {
                    self.store(buffer.index(), k, value)?;
                }
            }
            Stmt::Search { var, buffer, start, stop, key, back: _ } => {
                let (start, stop, key) = (self.int(*start)?, self.int(*stop)?, self.int(*key)?);
                let mut at = start;
                while at < stop && self.load(buffer.index(), at)?.as_i64().is_some_and(|x| x < key) {
                    at += 1;
                }
                self.vars[var.index()] = Some(Value::I64(at));
            }
            Stmt::Sort { buffer, start, stop, flags } => {
                let (start, stop) = (self.int(*start)?, self.int(*stop)?);
                if let Some(flags) = flags {
                    self.check_flags(buffer.index(), flags.index(), start, stop)?;
                }
                let array = &mut self.arrays[buffer.index()].values;
                match array.get_mut(start.max(0) as usize..stop.max(start).max(0) as usize) {
                    Some(part) => part.sort_by_key(|v| v.as_i64()),
                    None => return self.wrong(format!("sort of {start}..{stop} out of bounds")),
                }
                (start..stop).try_for_each(|k| self.record(buffer.index(), k, RecordedAccess::Write))?;
            }
            Stmt::Gemm(gemm) => self.gemm(gemm)?,
            Stmt::Reset { workspace, sizes } => {
                let sizes: Result<Vec<i64>, Failure> = sizes.iter().map(|e| self.int(*e)).collect();
                self.entries.insert(workspace.values, (BTreeMap::new(), sizes?));
            }
            Stmt::Insert { var, workspace, coordinates } => {
                let tuple: Result<Vec<i64>, Failure> = coordinates.iter().map(|e| self.int(*e)).collect();
                let place = self.insert(workspace, tuple?)?;
                self.vars[var.index()] = Some(Value::I64(place as i64));
            }
            Stmt::Finalize { var, workspace } => {
                let count = self.finalize(workspace)?;
                self.vars[var.index()] = Some(Value::I64(count as i64));
            }
            Stmt::Require { cond, message } => {
                if !self.eval(*cond)?.is_truthy() {
                    return Err(Failure::Required(message.clone()));
                }
            }
        }
        Ok(Flow::Next)
    }

    fn insert(&mut self, workspace: &Workspace, tuple: Vec<i64>) -> Result<usize, Failure> {
        let Some((entries, sizes)) = self.entries.get_mut(&workspace.values) else {
            return self.wrong(format!("`{}` is written before it is reset", workspace.name));
        };
        if tuple.iter().zip(sizes.iter()).any(|(c, n)| c < &0 || c >= n) {
            return self.wrong(format!("{tuple:?} is not in `{}`", workspace.name));
        }
        let next = entries.len();
        if let Some(place) = entries.get(&tuple) {
            return Ok(*place);
        }
        entries.insert(tuple.clone(), next);
        let coordinates = tuple.into_iter().map(Value::I64);
        for (buffer, value) in workspace.buffers().zip(coordinates.chain([workspace.start])) {
            let array = &mut self.arrays[buffer.index()].values;
            array.resize(array.len().max(next + 1), value);
            self.store(buffer.index(), next as i64, value)?;
        }
        Ok(next)
    }

    fn finalize(&mut self, workspace: &Workspace) -> Result<usize, Failure> {
        let Some((entries, sizes)) = self.entries.remove(&workspace.values) else {
            return self.wrong(format!("`{}` is finalized before it is reset", workspace.name));
        };
        for buffer in workspace.buffers() {
            let array = &mut self.arrays[buffer.index()].values;
            let ordered: Vec<Value> = entries.values().map(|place| array[*place]).collect();
            array.splice(..ordered.len(), ordered);
        }
        let count = entries.len();
        let moved = entries.into_keys().enumerate().map(|(place, tuple)| (tuple, place)).collect();
        self.entries.insert(workspace.values, (moved, sizes));
        Ok(count)
    }

    /// Flags must be set at the listed coordinates, and nowhere else.
    fn check_flags(&self, list: usize, flags: usize, start: i64, stop: i64) -> Result<(), Failure> {
        let mut listed = 0;
        for k in start..stop {
            let at = self.load(list, k)?.as_i64().unwrap_or(-1);
            if self.load(flags, at)?.as_i64() != Some(1) {
                return self.wrong(format!("{at} is listed, but its flag is not set"));
            }
            listed += 1;
        }
        let set = self.arrays[flags].values.iter().filter(|flag| flag.as_i64() != Some(0)).count();
        if set != listed {
            return self.wrong(format!("{set} flags are set, but {listed} are listed"));
        }
        Ok(())
    }

    /// Tells the parallel loops that are running of an access; a race is a failure.
    fn record(&self, buffer: usize, index: i64, access: RecordedAccess) -> Result<(), Failure> {
        let space = self.kernel.buffers[buffer].role.space();
        for log in self.logs.borrow_mut().iter_mut() {
            if let Some(other) = log.record(buffer, space, index, access) {
                let (name, now) = (&self.kernel.buffers[buffer].name, log.iteration);
                let loop_name = &log.name;
                return self.wrong(format!("iterations {now} and {other} of `{loop_name}` race on {name}[{index}]"));
            }
        }
        Ok(())
    }

    /// Combines an element with a value, atomically.
    fn update(&mut self, buffer: usize, index: i64, op: Op, value: Value) -> Result<(), Failure> {
        let dtype = self.kernel.buffers[buffer].elem.dtype();
        match usize::try_from(index).ok().and_then(|k| self.arrays[buffer].values.get_mut(k)) {
            Some(place) => *place = eval(op, dtype, &[*place, value]),
            None => {
                let (name, len) = (&self.kernel.buffers[buffer].name, self.arrays[buffer].len());
                return self.wrong(format!("{name}[{index}] is updated, but it has {len} elements"));
            }
        }
        self.record(buffer, index, RecordedAccess::Update)
    }

    fn load(&self, buffer: usize, index: i64) -> Result<Value, Failure> {
        self.record(buffer, index, RecordedAccess::Read)?;
        let found = usize::try_from(index).ok().and_then(|k| self.arrays[buffer].get(k));
        match found {
            Some(value) => Ok(value),
            None => {
                let (name, len) = (&self.kernel.buffers[buffer].name, self.arrays[buffer].len());
                self.wrong(format!("{name}[{index}] is read, but {name} has {len} elements"))
            }
        }
    }

    fn store(&mut self, buffer: usize, index: i64, value: Value) -> Result<(), Failure> {
        let info = &self.kernel.buffers[buffer];
        if let (Elem::Index(width), Value::I64(x)) = (info.elem, value)
            && u64::try_from(x).map_or(true, |x| x > width.max())
        {
            return self.wrong(format!("{x} does not fit {} of {}", width.name(), info.name));
        }
        let len = self.arrays[buffer].len();
        match usize::try_from(index).ok().and_then(|k| self.arrays[buffer].values.get_mut(k)) {
            Some(place) => {
                *place = value;
                self.record(buffer, index, RecordedAccess::Write)
            }
            None => self.wrong(format!("{}[{index}] is written, but it has {len} elements", info.name)),
        }
    }

    fn int(&self, id: ExprId) -> Result<i64, Failure> {
        self.int_at(id, 0)
    }

    fn int_at(&self, id: ExprId, lane: u16) -> Result<i64, Failure> {
        match self.eval_at(id, lane)? {
            Value::I64(x) => Ok(x),
            other => self.wrong(format!("`{}` is {other}, not an i64", self.kernel.show(id))),
        }
    }

    /// The value of an expression that is a single value.
    fn eval(&self, id: ExprId) -> Result<Value, Failure> {
        self.eval_at(id, 0)
    }

    /// The value of an expression in a lane; a single value is the same in every lane.
    fn eval_at(&self, id: ExprId, lane: u16) -> Result<Value, Failure> {
        match self.kernel.expr(id) {
            Expr::Const(value) => Ok(*value),
            Expr::Var(var) => {
                let wide = self.wide[var.index()].get(usize::from(lane)).copied();
                let value = if self.kernel.var(*var).lanes > 1 { wide } else { self.vars[var.index()] };
                match value {
                    Some(value) => Ok(value),
                    None => self.wrong(format!("`{}` is used before it is declared", self.kernel.var(*var).name)),
                }
            }
            Expr::Load(buffer, index) => {
                let index = self.int_at(*index, lane)?;
                self.load(buffer.index(), index)
            }
            // Only the chosen operand is evaluated: the other may be a load out of bounds.
            Expr::Call(Op::Select, operand, operands) => {
                let chosen = if self.eval_at(operands[0], lane)?.is_truthy() { operands[1] } else { operands[2] };
                Ok(self.eval_at(chosen, lane)?.cast(*operand))
            }
            Expr::Call(Op::And, DType::Bool, operands) => {
                for operand in operands {
                    if !self.eval_at(*operand, lane)?.is_truthy() {
                        return Ok(Value::Bool(false));
                    }
                }
                Ok(Value::Bool(true))
            }
            Expr::Call(op, operand, operands) => {
                let values: Result<Vec<Value>, Failure> = operands.iter().map(|e| self.eval_at(*e, lane)).collect();
                Ok(eval(*op, *operand, &values?))
            }
            Expr::Vector(VectorExpr::Ramp { start, step, .. }) => {
                let start = self.int(*start)?;
                Ok(Value::I64(start.wrapping_add(step.wrapping_mul(i64::from(lane)))))
            }
            Expr::Vector(VectorExpr::Splat { value, .. }) => self.eval(*value),
            Expr::Vector(VectorExpr::Masked { buffer, index, mask, otherwise }) => {
                if !self.eval_at(*mask, lane)?.is_truthy() {
                    return self.eval_at(*otherwise, lane);
                }
                let index = self.int_at(*index, lane)?;
                self.load(buffer.index(), index)
            }
            Expr::Vector(VectorExpr::Reduce { op, value }) => self.reduced(*op, *value),
        }
    }
}
