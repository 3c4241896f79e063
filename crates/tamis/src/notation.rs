//! Index notation: scheduled for the tensors at hand, compiled, run.

mod prepared;

pub use prepared::{Convert, Prepared, PreparedProgram};

use crate::calibrate::costs;
use crate::compile::{CompileOptions, Executable, compile};
use crate::signature::Signature;
use rustc_hash::{FxHashMap, FxHasher};
use std::borrow::Cow;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock, RwLock};
use tamis_compiler::auto::{self, Costs, Operand, Pins, Plan};
use tamis_ir::notation::Notation;
use tamis_ir::program::ParamType;
use tamis_ir::{Code, Diagnostic, Diagnostics, Program, interp};
use tamis_tensor::Tensor;

/// How to compute index notation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EinsumOptions {
    /// How the program that it becomes is compiled; the schedule is applied to that program.
    pub compile: CompileOptions,
    /// What is so, whatever it costs: the order of loops, formats of results.
    pub pins: Pins,
}

/// So many schedules are kept.
const KEPT: usize = 512;

/// Index notation, scheduled and compiled for tensors.
#[derive(Clone)]
pub struct Scheduled {
    /// The schedule.
    pub plan: Arc<Plan>,
    /// For each parameter of the program, which of the given tensors it is made of.
    sources: Vec<usize>,
    /// The compiled program.
    pub executable: Executable,
    /// How long scheduling took.
    pub scheduling: std::time::Duration,
}

/// Computes index notation on tensors given by name. Gives its results by name.
///
/// Loops, their order, the formats of results and what is converted first are chosen for these tensors, once for tensors that are alike.
///
/// ```
/// use tamis::prelude::*;
/// let a = Tensor::from_dense(&[2, 2], vec![1.0, 0.0, 0.0, 4.0].into(), &Format::csr(), Value::F64(0.0))?;
/// let x = Tensor::from_dense(&[2], vec![3.0, 5.0].into(), &Format::dense(1), Value::F64(0.0))?;
/// let results = tamis::einsum("y[i] = A[i,j] * x[j]", &[("A", &a), ("x", &x)], &EinsumOptions::default())?;
/// assert_eq!(results[0].1.get(&[1]), Some(Value::F64(20.0)));
/// // NumPy's spelling takes operands in order:
/// let results = tamis::einsum("ij,j->i", &[("A", &a), ("x", &x)], &EinsumOptions::default())?;
/// assert_eq!(results[0].1.get(&[0]), Some(Value::F64(3.0)));
/// # Ok::<(), Diagnostics>(())
/// ```
pub fn einsum(
    text: &str,
    inputs: &[(&str, &Tensor)],
    options: &EinsumOptions,
) -> Result<Vec<(String, Tensor)>, Diagnostics> {
    let names: Vec<&str> = inputs.iter().map(|(name, _)| *name).collect();
    let key = key(text, &names, options);
    let known = store().read().ok().and_then(|kept| kept.get(&key).cloned());
    let entry = match known.filter(|entry| entry.serves(text, &names, options)) {
        Some(entry) => entry,
        None => {
            let prepared = Prepared::new(text, &names, &[], options.clone())?;
            let places = places(&prepared.notation().params(), &names)?;
            let names = names.iter().map(|name| name.to_string()).collect();
            let entry = Arc::new(Entry { text: text.to_string(), names, places, prepared });
            if let Ok(mut kept) = store().write() {
                if kept.len() >= KEPT {
                    kept.clear();
                }
                kept.insert(key, entry.clone());
            }
            entry
        }
    };
    let tensors: Vec<&Tensor> = entry.places.iter().filter_map(|place| inputs.get(*place)).map(|(_, t)| *t).collect();
    entry.prepared.call(&tensors, &|at, format| match tensors.get(at) {
        Some(tensor) => tensor.convert(format),
        None => Err(Diagnostic::new(Code::E0902, "a tensor is missing").help("pass one tensor for each parameter")),
    })
}

/// Reads index notation; operands of NumPy's spelling are those given, and its result is `out`.
pub fn parse(text: &str, inputs: &[(&str, &Tensor)]) -> Result<Notation, Diagnostics> {
    let names: Vec<&str> = inputs.iter().map(|(name, _)| *name).collect();
    match Notation::is_einsum(text) {
        true => Notation::einsum(text, &names, "out"),
        false => Notation::parse_given(&tamis_ir::Source::new("notation", text), &[], &names),
    }
}

/// Schedules index notation for tensors, given in the order of its parameters, without compiling anything.
pub fn plan(notation: &Notation, tensors: &[&Tensor], pins: &Pins) -> Result<Plan, Diagnostics> {
    let (types, operands) = auto::describe(tensors);
    auto::schedule(notation, &types, &operands, &costs()?, pins)
}

/// Schedules index notation for tensors of which only this is known.
pub fn plan_for(
    notation: &Notation,
    types: &[ParamType],
    operands: &[Operand],
    pins: &Pins,
) -> Result<Plan, Diagnostics> {
    auto::schedule(notation, types, operands, &costs()?, pins)
}

/// Schedules and compiles index notation for tensors, given in the order of its parameters.
pub fn schedule(notation: &Notation, tensors: &[&Tensor], options: &EinsumOptions) -> Result<Scheduled, Diagnostics> {
    schedule_by(&costs()?, notation, tensors, options)
}

/// [`schedule`], by these constants of the cost model.
pub(crate) fn schedule_by(
    costs: &Costs,
    notation: &Notation,
    tensors: &[&Tensor],
    options: &EinsumOptions,
) -> Result<Scheduled, Diagnostics> {
    let start = std::time::Instant::now();
    let (types, operands) = auto::describe(tensors);
    let plan = auto::schedule(notation, &types, &operands, costs, &options.pins)?;
    let scheduling = start.elapsed();
    let sources = sources(&plan, notation)?;
    let made = converted(&plan, &sources, tensors)?;
    let refs: Vec<&Tensor> = made.iter().map(|tensor| tensor.as_ref()).collect();
    let executable = compile(&plan.program, &Signature::of(&refs), &options.compile)?;
    Ok(Scheduled { plan: Arc::new(plan), sources, executable, scheduling })
}

/// For each parameter of the program, which of the notation's it is made of.
fn sources(plan: &Plan, notation: &Notation) -> Result<Vec<usize>, Diagnostic> {
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

/// The tensors that the program of a plan takes, made of those that are given in the order of the notation's parameters.
pub fn operands_of<'a>(
    plan: &Plan,
    notation: &Notation,
    tensors: &[&'a Tensor],
) -> Result<Vec<Cow<'a, Tensor>>, Diagnostic> {
    converted(plan, &sources(plan, notation)?, tensors)
}

/// The tensors that the program takes.
fn converted<'a>(plan: &Plan, sources: &[usize], tensors: &[&'a Tensor]) -> Result<Vec<Cow<'a, Tensor>>, Diagnostic> {
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

impl Scheduled {
    /// Runs it on tensors, given in the order of the notation's parameters.
    pub fn call(&self, tensors: &[&Tensor]) -> Result<Vec<(String, Tensor)>, Diagnostics> {
        self.call_timed(tensors).map(|timed| timed.results)
    }

    /// [`Scheduled::call`], with the time that the kernel took.
    pub fn call_timed(&self, tensors: &[&Tensor]) -> Result<crate::Timed, Diagnostics> {
        let options = self.executable.options();
        if options.interpret {
            let start = std::time::Instant::now();
            let results = crate::interpret::run(&self.plan.meaning, tensors, options.strict)?;
            return Ok(crate::Timed { results, kernel: start.elapsed(), workspaces: Vec::new(), parts: 1 });
        }
        let made = converted(&self.plan, &self.sources, tensors)?;
        let refs: Vec<&Tensor> = made.iter().map(|tensor| tensor.as_ref()).collect();
        let timed = self.executable.call_timed(&refs)?;
        if options.check {
            // The loops were compared with the interpreter already; this compares them with what they were made of.
            let (strict, limit) = (options.strict, options.check_limit);
            let dense = |(name, tensor): &(String, Tensor)| {
                Ok((name.clone(), tensor.convert(&tamis_ir::Format::dense(tensor.rank()))?))
            };
            let results = timed.results.iter().map(dense).collect::<Result<Vec<_>, Diagnostic>>()?;
            crate::check::compare(&self.plan.meaning, tensors, &results, strict, limit)?;
        }
        Ok(timed)
    }
}

/// Notation that was read before.
struct Entry {
    text: String,
    names: Vec<String>,
    /// For each parameter, which of the inputs it is.
    places: Vec<usize>,
    prepared: Prepared,
}

impl Entry {
    fn serves(&self, text: &str, names: &[&str], options: &EinsumOptions) -> bool {
        self.text == text && self.names.iter().eq(names) && self.prepared.options() == options
    }
}

/// A tensor as far as schedules differ by it: sizes and entries up to a factor of two.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Scale {
    format: tamis_ir::Format,
    dtype: tamis_ir::DType,
    sizes: Vec<u32>,
    entries: u32,
    literal: Option<tamis_tensor::LiteralRange>,
}

fn scale(tensor: &Tensor) -> Scale {
    let bits = |n: u64| u64::BITS - n.leading_zeros();
    Scale {
        format: tensor.format().clone(),
        dtype: tensor.dtype(),
        sizes: tensor.shape().iter().map(|n| bits(*n)).collect(),
        entries: bits(tensor.nnz() as u64),
        literal: tensor.literal_range(),
    }
}

fn store() -> &'static RwLock<FxHashMap<u64, Arc<Entry>>> {
    static STORE: OnceLock<RwLock<FxHashMap<u64, Arc<Entry>>>> = OnceLock::new();
    STORE.get_or_init(RwLock::default)
}

fn key(text: &str, names: &[&str], options: &EinsumOptions) -> u64 {
    let mut state = FxHasher::default();
    (text, names, &options.compile, &options.pins.order, options.pins.keep).hash(&mut state);
    state.finish()
}

/// For each parameter, which of the inputs it is.
pub(crate) fn places(params: &[&str], names: &[&str]) -> Result<Vec<usize>, Diagnostic> {
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

/// What the notation means, as a program of plain loops over dense tensors; types are assumed where nothing else says them.
pub fn meaning(notation: &Notation, tensors: &[&Tensor]) -> Result<Program, Diagnostics> {
    let types: Vec<ParamType> = tensors.iter().map(|tensor| interp::param_type(*tensor)).collect();
    auto::meaning(notation, &types)
}
