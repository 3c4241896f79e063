//! Index notation: scheduled for its operands, compiled, and called.
//!
//! In: text or a [`Notation`], tensors, options. Out: [`Results`], or the plan that the scheduler
//! chose. Notation is memoised by its text; schedules by the formats and approximate sizes of the
//! operands.

mod prepared;

pub use prepared::{ConvertOperand, PreparedNotation};
pub use tamis_compiler::auto::{NotationPlan, OperandStatistics, Pins};
pub use tamis_ir::notation::Notation;

use crate::calibrate::costs;
use crate::compile::{self, CallReport, CompileOptions, Executable, OutputSlice};
use crate::results::Results;
use crate::signature::Signature;
use rustc_hash::{FxHashMap, FxHasher};
use std::borrow::Cow;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock, RwLock};
use tamis_compiler::auto::{self, Costs};
use tamis_ir::program::ParamType;
use tamis_ir::{Code, Diagnostic, Diagnostics, Program, interp};
use tamis_tensor::{Tensor, with_values};

/// The options of scheduling and compiling index notation.
///
/// ```
/// use tamis::prelude::*;
/// let options = EinsumOptions::new().order(["j", "i"]).compile(CompileOptions::new().check(true));
/// assert_eq!(options.pins.order, ["j", "i"]);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EinsumOptions {
    /// The options of compiling the resulting program, and the scheduling commands that are applied
    /// to it.
    pub compile: CompileOptions,
    /// Fixed decisions, which the scheduler does not change: the order of loops, formats of
    /// results.
    pub pins: Pins,
}

/// Setters that chain: `EinsumOptions::new().order(["j", "i"])`.
impl EinsumOptions {
    /// The default options: every decision is the scheduler's.
    ///
    /// ```
    /// # use tamis::prelude::*;
    /// assert_eq!(EinsumOptions::new(), EinsumOptions::default());
    /// ```
    pub fn new() -> EinsumOptions {
        EinsumOptions::default()
    }

    /// Sets how the resulting program is compiled.
    ///
    /// ```
    /// # use tamis::prelude::*;
    /// let values = vec![1.0, 0.0, 0.0, 4.0].into();
    /// let a = Tensor::from_dense(&[2, 2], values, &Format::csr(), 0.0.into())?;
    /// let options = EinsumOptions::new().compile(CompileOptions::new().interpret(true));
    /// let s = tamis::einsum("s = A[i,j]", &[("A", &a)], &options)?.into_tensor()?;
    /// assert_eq!(s.get(&[]), Some(Value::F64(5.0)));
    /// # Ok::<(), Diagnostics>(())
    /// ```
    pub fn compile(self, compile: CompileOptions) -> EinsumOptions {
        EinsumOptions { compile, ..self }
    }

    /// Fixes the order of loops, outermost first; indices that are missing follow in the
    /// scheduler's order.
    ///
    /// ```
    /// # use tamis::prelude::*;
    /// # let values = vec![1.0, 0.0, 0.0, 4.0].into();
    /// # let a = Tensor::from_dense(&[2, 2], values, &Format::csr(), 0.0.into())?;
    /// # let x = Tensor::from_dense(&[2], vec![3.0, 5.0].into(), &Format::dense(1), 0.0.into())?;
    /// let notation = Notation::parse("y[i] = A[i,j] * x[j]")?;
    /// let options = EinsumOptions::new().order(["j", "i"]);
    /// let plan = tamis::notation::plan(&notation, &[&a, &x], &options.pins)?;
    /// assert!(plan.program.to_string().contains("for j, i in _:"));
    /// # Ok::<(), Diagnostics>(())
    /// ```
    pub fn order<S: Into<String>>(mut self, indices: impl IntoIterator<Item = S>) -> EinsumOptions {
        self.pins.order = indices.into_iter().map(Into::into).collect();
        self
    }

    /// Fixes the format of a result or temporary.
    ///
    /// ```
    /// # use tamis::prelude::*;
    /// # let values = vec![1.0, 0.0, 0.0, 4.0].into();
    /// # let a = Tensor::from_dense(&[2, 2], values, &Format::csr(), 0.0.into())?;
    /// let options = EinsumOptions::new().format("C", Format::csc());
    /// let c = tamis::einsum("C[i,j] = 2 * A[i,j]", &[("A", &a)], &options)?.into_tensor()?;
    /// assert_eq!(c.format(), &Format::csc());
    /// # Ok::<(), Diagnostics>(())
    /// ```
    pub fn format(mut self, name: &str, format: tamis_ir::Format) -> EinsumOptions {
        self.pins.formats.push((name.to_string(), format));
        self
    }
}

/// The maximum number of memoised texts; beyond, all are evicted.
const KEPT: usize = 512;

/// Index notation with its schedule and executable.
///
/// ```
/// use tamis::prelude::*;
/// let x = Tensor::from_dense(&[2], vec![1.0, 2.0].into(), &Format::dense(1), 0.0.into())?;
/// let notation = Notation::parse("s = x[i] * x[i]")?;
/// let square = tamis::notation::compile(&notation, &[&x], &EinsumOptions::default())?;
/// println!("{}", square.plan.program);
/// assert_eq!(square.call(&[&x])?.into_tensor()?.get(&[]), Some(Value::F64(5.0)));
/// # Ok::<(), Diagnostics>(())
/// ```
#[derive(Clone)]
pub struct CompiledNotation {
    /// The plan that the scheduler chose.
    pub plan: Arc<NotationPlan>,
    /// For each parameter of the program, the operand of the notation that it is made of.
    sources: Vec<usize>,
    /// The compiled program.
    pub executable: Executable,
    /// The time of scheduling.
    pub scheduling: std::time::Duration,
}

/// Computes index notation on tensors given by name.
///
/// The scheduler chooses loops, their order, the formats of results, and conversions of operands
/// for these tensors. Tensors of the same formats and of about the same sizes reuse the schedule.
///
/// ```
/// use tamis::prelude::*;
/// let a = Tensor::from_dense(&[2, 2], vec![1.0, 0.0, 0.0, 4.0].into(), &Format::csr(), Value::F64(0.0))?;
/// let x = Tensor::from_dense(&[2], vec![3.0, 5.0].into(), &Format::dense(1), Value::F64(0.0))?;
/// let results = tamis::einsum("y[i] = A[i,j] * x[j]", &[("A", &a), ("x", &x)], &EinsumOptions::default())?;
/// assert_eq!(results[0].get(&[1]), Some(Value::F64(20.0)));
/// // NumPy's spelling takes operands in order:
/// let results = tamis::einsum("ij,j->i", &[("A", &a), ("x", &x)], &EinsumOptions::default())?;
/// assert_eq!(results[0].get(&[0]), Some(Value::F64(3.0)));
/// # Ok::<(), Diagnostics>(())
/// ```
pub fn einsum(text: &str, inputs: &[(&str, &Tensor)], options: &EinsumOptions) -> Result<Results, Diagnostics> {
    call_cached(text, inputs, options, &mut [])
}

/// [`einsum()`], with memory for results where there is some.
fn call_cached(
    text: &str,
    inputs: &[(&str, &Tensor)],
    options: &EinsumOptions,
    outputs: &mut [Option<OutputSlice>],
) -> Result<Results, Diagnostics> {
    let names: Vec<&str> = inputs.iter().map(|(name, _)| *name).collect();
    let key = key(text, &names, options);
    let cached = cache().read().ok().and_then(|kept| kept.get(&key).cloned());
    let entry = match cached.filter(|entry| entry.matches(text, &names, options)) {
        Some(entry) => entry,
        None => {
            let prepared = PreparedNotation::new(text, &names, &[], options.clone())?;
            let positions = positions(&prepared.notation().params(), &names)?;
            let names = names.iter().map(|name| name.to_string()).collect();
            let entry = Arc::new(CachedNotation { text: text.to_string(), names, positions, prepared });
            if let Ok(mut kept) = cache().write() {
                if kept.len() >= KEPT {
                    kept.clear();
                }
                kept.insert(key, entry.clone());
            }
            entry
        }
    };
    let tensors: Vec<&Tensor> =
        entry.positions.iter().filter_map(|position| inputs.get(*position)).map(|(_, t)| *t).collect();
    let convert = |at: usize, format: &tamis_ir::Format| match tensors.get(at) {
        Some(tensor) => tensor.convert(format),
        None => Err(Diagnostic::new(Code::E0902, "a tensor is missing").help("pass one tensor for each parameter")),
    };
    entry.prepared.call_into(&tensors, &convert, outputs)
}

/// [`einsum()`] with one result, which is written to the memory of a tensor. The text may read and
/// update the tensor under the name of the result: `x[i] += A[i,j]`.
///
/// Nothing is copied where the tensor is dense in row-major order, no other tensor shares its
/// values, and the result has its type; and, if the tensor is read, where each element is computed
/// from itself alone. Otherwise the tensor is replaced by the result, in its format and type. The
/// result must have the tensor's shape. After an error, the values of the tensor are undefined.
///
/// ```
/// use tamis::prelude::*;
/// let a = Tensor::from_dense(&[2, 2], vec![1.0, 0.0, 3.0, 4.0].into(), &Format::csr(), 0.0.into())?;
/// let mut x = Tensor::from_dense(&[2], vec![10.0, 20.0].into(), &Format::dense(1), 0.0.into())?;
/// tamis::notation::einsum_into("x[i] += A[i,j]", &[("A", &a)], &mut x, &EinsumOptions::default())?;
/// assert_eq!(x.to_dense()?, vec![11.0, 27.0].into());
/// # Ok::<(), Diagnostics>(())
/// ```
pub fn einsum_into(
    text: &str,
    inputs: &[(&str, &Tensor)],
    out: &mut Tensor,
    options: &EinsumOptions,
) -> Result<(), Diagnostics> {
    let parsed = parse(text, inputs)?;
    let [target] = parsed.results()[..] else {
        let message = format!("the notation has {} results, and one tensor receives them", parsed.results().len());
        return Err(Diagnostic::new(Code::E0903, message).help("write one statement for each tensor").into());
    };
    let mut given: Vec<&str> = inputs.iter().map(|(name, _)| *name).collect();
    let mut reads = false;
    if !Notation::is_einsum(text) && !given.contains(&target) {
        given.push(target);
        let source = tamis_ir::Source::new("notation", text);
        reads = Notation::parse_given(&source, &[], &given)?.params().contains(&target);
    }
    let (shape, format, dtype, fill) = (out.shape().to_vec(), out.format().clone(), out.dtype(), out.fill());
    let options = options.clone().format(target, format.clone());
    let values = match format == tamis_ir::Format::dense(shape.len()) {
        true => std::mem::replace(out, Tensor::scalar(fill)).into_values(),
        false => None,
    };
    let outcome = match values {
        // The values have no other owner from here on, unless another tensor shares them.
        Some(mut values) => {
            let data = with_values!(&mut values, x => x.make_mut().as_mut_ptr().cast::<u8>());
            *out = Tensor::from_dense(&shape, values, &format, fill)?;
            let operand = out.clone();
            let operands = inputs.iter().copied().chain(reads.then_some((target, &operand)));
            // SAFETY: the elements are those of `out`, which is borrowed uniquely and keeps them
            // until it is replaced below; the operand is one of the same call.
            let place = unsafe { OutputSlice::from_raw(data, dtype, &shape) };
            call_cached(text, &operands.collect::<Vec<_>>(), &options, &mut [Some(place)])
        }
        None => {
            let operands = inputs.iter().copied().chain(reads.then_some((target, &*out)));
            call_cached(text, &operands.collect::<Vec<_>>(), &options, &mut [])
        }
    };
    let results = outcome?;
    if results.is_empty() {
        return Ok(());
    }
    let result = results.into_tensor()?;
    if result.shape() != shape {
        let message =
            format!("the result has the shape {:?}, and the tensor that receives it {shape:?}", result.shape());
        return Err(Diagnostic::new(Code::E0402, message).help("give a tensor of that shape").into());
    }
    *out = result;
    Ok(())
}

/// Parses index notation. NumPy's spelling takes the given operands in order, and calls its result
/// `out`.
///
/// ```
/// use tamis::prelude::*;
/// let x = Tensor::from_dense(&[2], vec![1.0, 2.0].into(), &Format::dense(1), 0.0.into())?;
/// assert_eq!(tamis::notation::parse("s = x[i]", &[("x", &x)])?.params(), ["x"]);
/// assert_eq!(tamis::notation::parse("i->", &[("x", &x)])?.params(), ["x"]);
/// # Ok::<(), Diagnostics>(())
/// ```
pub fn parse(text: &str, inputs: &[(&str, &Tensor)]) -> Result<Notation, Diagnostics> {
    let names: Vec<&str> = inputs.iter().map(|(name, _)| *name).collect();
    match Notation::is_einsum(text) {
        true => Notation::einsum(text, &names, "out"),
        false => Notation::parse_given(&tamis_ir::Source::new("notation", text), &[], &names),
    }
}

/// Schedules index notation for tensors, given in the order of its parameters, without compiling
/// anything.
///
/// ```
/// use tamis::prelude::*;
/// let x = Tensor::from_dense(&[2], vec![1.0, 2.0].into(), &Format::dense(1), 0.0.into())?;
/// let notation = Notation::parse("s = x[i] * x[i]")?;
/// let plan = tamis::notation::plan(&notation, &[&x], &Default::default())?;
/// assert!(plan.conversions.is_empty() && plan.program.to_string().contains("for i in _:"));
/// # Ok::<(), Diagnostics>(())
/// ```
pub fn plan(notation: &Notation, tensors: &[&Tensor], pins: &Pins) -> Result<NotationPlan, Diagnostics> {
    let (types, operands) = auto::describe(tensors);
    auto::schedule(notation, &types, &operands, &costs()?, pins)
}

/// Schedules index notation for tensors of which only types and statistics are known.
///
/// ```
/// use tamis::prelude::*;
/// use tamis::notation::{OperandStatistics, plan_for};
/// use tamis::program::ParamType;
/// let notation = Notation::parse("y[i] = A[i,j] * x[j]")?;
/// let of = |shape: &[u64]| ParamType {
///     dtype: DType::F64,
///     shape: shape.iter().map(|n| Some(*n)).collect(),
///     value: None,
///     weak: false,
/// };
/// // A share of 0.01 of the elements is stored.
/// let operands = [
///     OperandStatistics::assumed(Format::csr(), DType::F64, 0.0.into(), &[1000, 1000], 0.01),
///     OperandStatistics::assumed(Format::dense(1), DType::F64, 0.0.into(), &[1000], 1.0),
/// ];
/// let plan = plan_for(&notation, &[of(&[1000, 1000]), of(&[1000])], &operands, &Default::default())?;
/// assert!(plan.program.to_string().contains("for i, j in _:"));
/// # Ok::<(), Diagnostics>(())
/// ```
pub fn plan_for(
    notation: &Notation,
    types: &[ParamType],
    operands: &[OperandStatistics],
    pins: &Pins,
) -> Result<NotationPlan, Diagnostics> {
    auto::schedule(notation, types, operands, &costs()?, pins)
}

/// Schedules and compiles index notation for tensors, given in the order of its parameters.
///
/// ```
/// use tamis::prelude::*;
/// let x = Tensor::from_dense(&[2], vec![1.0, 2.0].into(), &Format::dense(1), 0.0.into())?;
/// let notation = Notation::parse("s = x[i] * x[i]")?;
/// let options = EinsumOptions::new().compile(CompileOptions::new().strict(true));
/// let square = tamis::notation::compile(&notation, &[&x], &options)?;
/// assert_eq!(square.call(&[&x])?["s"].get(&[]), Some(Value::F64(5.0)));
/// # Ok::<(), Diagnostics>(())
/// ```
pub fn compile(
    notation: &Notation,
    tensors: &[&Tensor],
    options: &EinsumOptions,
) -> Result<CompiledNotation, Diagnostics> {
    compile_with_costs(&costs()?, notation, tensors, options)
}

/// [`compile()`], with these constants of the cost model.
pub(crate) fn compile_with_costs(
    costs: &Costs,
    notation: &Notation,
    tensors: &[&Tensor],
    options: &EinsumOptions,
) -> Result<CompiledNotation, Diagnostics> {
    let start = std::time::Instant::now();
    let (types, operands) = auto::describe(tensors);
    let plan = auto::schedule(notation, &types, &operands, costs, &options.pins)?;
    let scheduling = start.elapsed();
    let sources = sources(&plan, notation)?;
    let made = converted(&plan, &sources, tensors)?;
    let refs: Vec<&Tensor> = made.iter().map(|tensor| tensor.as_ref()).collect();
    let executable = compile::compile(&plan.program, &Signature::of(&refs), &options.compile)?;
    Ok(CompiledNotation { plan: Arc::new(plan), sources, executable, scheduling })
}

/// For each parameter of the program, the parameter of the notation that it is made of.
fn sources(plan: &NotationPlan, notation: &Notation) -> Result<Vec<usize>, Diagnostic> {
    let (names, program) = (notation.operands(), &plan.program);
    let source = |name: &String| {
        let source = plan.conversions.iter().find(|c| c.name == *name).map_or(name.as_str(), |c| c.source.as_str());
        names.iter().position(|known| *known == source).ok_or_else(|| {
            Diagnostic::new(Code::E1101, format!("the schedule reads `{name}`, which nothing makes"))
                .note("this is a bug in Tamis")
                .help("please report it")
        })
    };
    program.params.iter().map(|id| source(&program.tensor(*id).name)).collect()
}

/// Converts operands, given in the order of the notation's parameters, to the parameters of a
/// plan's program.
///
/// ```
/// # use tamis::prelude::*;
/// # let values = vec![1.0, 0.0, 0.0, 4.0].into();
/// # let a = Tensor::from_dense(&[2, 2], values, &Format::csr(), 0.0.into())?;
/// use tamis::notation::{converted_operands, plan};
/// let notation = Notation::parse("y[i] = A[i,j]")?;
/// let plan = plan(&notation, &[&a], &Default::default())?;
/// let operands = converted_operands(&plan, &notation, &[&a])?;
/// assert_eq!(operands.len(), plan.program.params.len());
/// # Ok::<(), Diagnostics>(())
/// ```
pub fn converted_operands<'a>(
    plan: &NotationPlan,
    notation: &Notation,
    tensors: &[&'a Tensor],
) -> Result<Vec<Cow<'a, Tensor>>, Diagnostic> {
    converted(plan, &sources(plan, notation)?, tensors)
}

/// The parameters of a plan's program, converted where the plan says so.
fn converted<'a>(
    plan: &NotationPlan,
    sources: &[usize],
    tensors: &[&'a Tensor],
) -> Result<Vec<Cow<'a, Tensor>>, Diagnostic> {
    let program = &plan.program;
    let params = program.params.iter().zip(sources);
    params
        .map(|(id, source)| {
            let name = &program.tensor(*id).name;
            let conversion = plan.conversions.iter().find(|c| c.name == *name);
            match (conversion, tensors.get(*source)) {
                (Some(conversion), Some(tensor)) => tensor.convert(&conversion.format).map(Cow::Owned),
                (None, Some(tensor)) => Ok(Cow::Borrowed(*tensor)),
                (_, None) => Err(Diagnostic::new(Code::E0902, format!("`{name}` was given no tensor"))
                    .help("pass one tensor for each parameter")),
            }
        })
        .collect()
}

impl CompiledNotation {
    /// The performance warnings of its compilation, in the words of the notation.
    ///
    /// ```
    /// use tamis::prelude::*;
    /// let x = Tensor::from_dense(&[2], vec![3.0, 5.0].into(), &Format::dense(1), 0.0.into())?;
    /// let square = Notation::parse("y[i] = x[i] * x[i]")?;
    /// let square = tamis::notation::compile(&square, &[&x], &EinsumOptions::new())?;
    /// assert!(square.warnings().is_empty());
    /// # Ok::<(), Diagnostics>(())
    /// ```
    pub fn warnings(&self) -> Vec<Diagnostic> {
        self.executable.build().warnings.iter().map(|d| self.plan.in_notation(d)).collect()
    }

    /// Computes it on tensors, given in the order of the notation's parameters.
    ///
    /// ```
    /// # use tamis::prelude::*;
    /// let x = Tensor::from_dense(&[2], vec![3.0, 5.0].into(), &Format::dense(1), 0.0.into())?;
    /// let square = Notation::parse("y[i] = x[i] * x[i]")?;
    /// let square = tamis::notation::compile(&square, &[&x], &EinsumOptions::new())?;
    /// assert_eq!(square.call(&[&x])?["y"].get(&[1]), Some(Value::F64(25.0)));
    /// # Ok::<(), Diagnostics>(())
    /// ```
    pub fn call(&self, tensors: &[&Tensor]) -> Result<Results, Diagnostics> {
        self.call_timed(tensors).map(|report| report.results)
    }

    /// [`CompiledNotation::call`], with the time that the kernel took.
    ///
    /// ```
    /// # use tamis::prelude::*;
    /// let x = Tensor::from_dense(&[2], vec![3.0, 5.0].into(), &Format::dense(1), 0.0.into())?;
    /// let square = Notation::parse("y[i] = x[i] * x[i]")?;
    /// let square = tamis::notation::compile(&square, &[&x], &EinsumOptions::new())?;
    /// let report = square.call_timed(&[&x])?;
    /// println!("{:?} on {} threads", report.kernel, report.chunks);
    /// assert_eq!(report.results["y"].get(&[0]), Some(Value::F64(9.0)));
    /// # Ok::<(), Diagnostics>(())
    /// ```
    pub fn call_timed(&self, tensors: &[&Tensor]) -> Result<CallReport, Diagnostics> {
        self.call_timed_into(tensors, &mut [])
    }

    /// [`CompiledNotation::call_timed`], with memory for results where there is some.
    fn call_timed_into(
        &self,
        tensors: &[&Tensor],
        outputs: &mut [Option<OutputSlice>],
    ) -> Result<CallReport, Diagnostics> {
        let options = self.executable.options();
        if options.interpret {
            let start = std::time::Instant::now();
            let results = crate::interpret::run(&self.plan.meaning, tensors, options.strict)?;
            return Ok(CallReport { results, kernel: start.elapsed(), workspaces: Vec::new(), chunks: 1 });
        }
        let made = converted(&self.plan, &self.sources, tensors)?;
        let refs: Vec<&Tensor> = made.iter().map(|tensor| tensor.as_ref()).collect();
        let report = self.executable.call_into(&refs, outputs)?;
        if options.check {
            // The call has compared the loops with the interpreter; this compares them with the
            // notation.
            let (strict, limit) = (options.strict, options.check_limit);
            let dense = |(name, tensor): (&str, &Tensor)| {
                Ok((name.to_string(), tensor.convert(&tamis_ir::Format::dense(tensor.rank()))?))
            };
            let results = Results::from(report.results.iter().map(dense).collect::<Result<Vec<_>, Diagnostic>>()?);
            crate::check::compare(&self.plan.meaning, tensors, &results, strict, limit)?;
        }
        Ok(report)
    }
}

/// Prepared notation, with the text, names and options that it was prepared for.
struct CachedNotation {
    text: String,
    names: Vec<String>,
    /// For each parameter, the position of its tensor among the inputs.
    positions: Vec<usize>,
    prepared: PreparedNotation,
}

impl CachedNotation {
    fn matches(&self, text: &str, names: &[&str], options: &EinsumOptions) -> bool {
        self.text == text && self.names.iter().eq(names) && self.prepared.options() == options
    }
}

/// The notation that this process has memoised.
fn cache() -> &'static RwLock<FxHashMap<u64, Arc<CachedNotation>>> {
    static CACHE: OnceLock<RwLock<FxHashMap<u64, Arc<CachedNotation>>>> = OnceLock::new();
    CACHE.get_or_init(RwLock::default)
}

fn key(text: &str, names: &[&str], options: &EinsumOptions) -> u64 {
    let mut state = FxHasher::default();
    (text, names, &options.compile, &options.pins.order, options.pins.keep).hash(&mut state);
    state.finish()
}

/// For each parameter, the position of its tensor among the inputs.
pub(crate) fn positions(params: &[&str], names: &[&str]) -> Result<Vec<usize>, Diagnostic> {
    if let Some(unknown) = names.iter().find(|name| !params.contains(name)) {
        return Err(Diagnostic::new(Code::E0903, format!("the notation does not read `{unknown}`"))
            .help(format!("it reads {}", params.join(", "))));
    }
    let find = |param: &&str| {
        names.iter().position(|name| name == param).ok_or_else(|| {
            Diagnostic::new(Code::E0902, format!("`{param}` was given no tensor"))
                .help(format!("pass {}", params.join(", ")))
        })
    };
    params.iter().map(find).collect()
}

/// The reference program of notation: plain loops over dense tensors, without any scheduling.
///
/// ```
/// use tamis::prelude::*;
/// let x = Tensor::from_dense(&[2], vec![1.0, 2.0].into(), &Format::dense(1), 0.0.into())?;
/// let notation = Notation::parse("s = x[i] * x[i]")?;
/// let program = tamis::notation::reference_program(&notation, &[&x])?;
/// assert_eq!(tamis::run(&program, &[("x", &x)], &RunOptions::new().interpret(true))?.len(), 1);
/// # Ok::<(), Diagnostics>(())
/// ```
pub fn reference_program(notation: &Notation, tensors: &[&Tensor]) -> Result<Program, Diagnostics> {
    let types: Vec<ParamType> = tensors.iter().map(|tensor| interp::param_type(*tensor)).collect();
    auto::meaning(notation, &types)
}
