//! Calls of loop programs with tensors by name, memoised by the layouts of the tensors.
//!
//! In: a program, tensors by name, options. Out: [`Results`]. The first call for tensors of a
//! layout compiles; later ones look the executable up.

use crate::compile::{CompileOptions, Executable, compile};
use crate::executable_cache::{ExecutableCache, key};
use crate::results::Results;
use crate::signature::{CallArgument, Signature};
use tamis_compiler::schedule::Schedule;
use tamis_ir::program::ParamType;
use tamis_ir::{Code, DType, Diagnostic, Diagnostics, Program, interp};
use tamis_tensor::Tensor;

/// The options of running a program.
///
/// ```
/// use tamis::prelude::*;
/// let options = RunOptions::new().check(true).check_limit(1_000_000);
/// assert_eq!(options.check_limit, Some(1_000_000));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunOptions {
    /// IEEE arithmetic throughout: a fill of 0 does not annihilate NaN, and nothing is
    /// reassociated.
    pub strict: bool,
    /// Run the reference interpreter, which visits every point of every loop.
    pub interpret: bool,
    /// Check every access of an array, and compare the results with the reference interpreter's.
    pub check: bool,
    /// The maximum number of loop iterations of the interpreter to check a call;
    /// [`CHECK_LIMIT`](crate::check::CHECK_LIMIT) by default.
    pub check_limit: Option<u64>,
}

/// Setters that chain: `RunOptions::new().check(true).strict(true)`.
impl RunOptions {
    /// The default options: fast arithmetic, no checks, machine code.
    ///
    /// ```
    /// # use tamis::prelude::*;
    /// assert_eq!(RunOptions::new(), RunOptions::default());
    /// ```
    pub fn new() -> RunOptions {
        RunOptions::default()
    }

    /// Sets [`strict`](RunOptions::strict).
    ///
    /// ```
    /// # use tamis::prelude::*;
    /// let options = RunOptions::new().strict(true);
    /// assert!(CompileOptions::from(options).strict);
    /// ```
    pub fn strict(self, strict: bool) -> RunOptions {
        RunOptions { strict, ..self }
    }

    /// Sets [`interpret`](RunOptions::interpret).
    ///
    /// ```
    /// # use tamis::prelude::*;
    /// let program = Notation::parse("s = x[i]")?.plain()?;
    /// let x = Tensor::from_dense(&[2], vec![3.0, 5.0].into(), &Format::dense(1), 0.0.into())?;
    /// let results = tamis::run(&program, &[("x", &x)], &RunOptions::new().interpret(true))?;
    /// assert_eq!(results["s"].get(&[]), Some(Value::F64(8.0)));
    /// # Ok::<(), Diagnostics>(())
    /// ```
    pub fn interpret(self, interpret: bool) -> RunOptions {
        RunOptions { interpret, ..self }
    }

    /// Sets [`check`](RunOptions::check).
    ///
    /// ```
    /// # use tamis::prelude::*;
    /// let program = Notation::parse("s = x[i]")?.plain()?;
    /// let x = Tensor::from_dense(&[2], vec![3.0, 5.0].into(), &Format::dense(1), 0.0.into())?;
    /// // Differences from the reference interpreter would be an error.
    /// let results = tamis::run(&program, &[("x", &x)], &RunOptions::new().check(true))?;
    /// assert_eq!(results["s"].get(&[]), Some(Value::F64(8.0)));
    /// # Ok::<(), Diagnostics>(())
    /// ```
    pub fn check(self, check: bool) -> RunOptions {
        RunOptions { check, ..self }
    }

    /// Sets [`check_limit`](RunOptions::check_limit).
    ///
    /// ```
    /// # use tamis::prelude::*;
    /// let program = Notation::parse("s = x[i]")?.plain()?;
    /// # let x = Tensor::from_dense(&[2], vec![3.0, 5.0].into(), &Format::dense(1), 0.0.into())?;
    /// let options = RunOptions::new().check(true).check_limit(1);
    /// let outcome = tamis::run(&program, &[("x", &x)], &options);
    /// assert!(outcome.is_err(), "the interpreter would visit 2 points");
    /// # Ok::<(), Diagnostics>(())
    /// ```
    pub fn check_limit(self, points: u64) -> RunOptions {
        RunOptions { check_limit: Some(points), ..self }
    }
}

impl From<RunOptions> for CompileOptions {
    fn from(options: RunOptions) -> CompileOptions {
        let RunOptions { strict, interpret, check, check_limit } = options;
        CompileOptions { strict, interpret, check, check_limit, schedule: Schedule::default() }
    }
}

/// Runs a program on tensors given by name, in any order. Gives its results in the order of
/// `return` and in the formats that the program declares.
///
/// The program is compiled for the layouts of the tensors. The next call with tensors of these
/// layouts, whatever their sizes, finds the executable in a cache; [`compile`](crate::compile())
/// gives it to the caller instead.
///
/// ```
/// use tamis::prelude::*;
/// let program = Program::parse("
/// def total(A):
///     s = scalar(0.0)
///     for i, j in _:
///         s += A[i,j]
///     return s
/// ")?;
/// let a = Tensor::from_dense(&[2, 2], vec![1.0, 0.0, 0.0, 4.0].into(), &Format::csr(), Value::F64(0.0))?;
/// let results = tamis::run(&program, &[("A", &a)], &RunOptions::default())?;
/// assert_eq!(results["s"].get(&[]), Some(Value::F64(5.0)));
/// // Compared with the reference interpreter:
/// tamis::run(&program, &[("A", &a)], &RunOptions::new().check(true))?;
/// # Ok::<(), Diagnostics>(())
/// ```
pub fn run(program: &Program, inputs: &[(&str, &Tensor)], options: &RunOptions) -> Result<Results, Diagnostics> {
    let tensors = by_position(program, inputs)?;
    let arguments = CallArgument::all(&tensors);
    let executable = executable(program, &tensors, &arguments, &CompileOptions::from(*options))?;
    executable.call_fitting(program, &tensors, &arguments).map(|report| report.results)
}

/// The executable for these tensors, from the cache or compiled.
fn executable(
    program: &Program,
    tensors: &[&Tensor],
    arguments: &[CallArgument],
    options: &CompileOptions,
) -> Result<Executable, Diagnostics> {
    let cache = ExecutableCache::global();
    let key = key(program, arguments, options);
    if let Some(cached) = cache.find(key, program, arguments, options) {
        return Ok(cached);
    }
    let executable = compile(program, &Signature::of(tensors), options)?;
    cache.insert(key, executable.clone());
    Ok(executable)
}

pub(crate) fn by_position<'a>(program: &Program, inputs: &[(&str, &'a Tensor)]) -> Result<Vec<&'a Tensor>, Diagnostic> {
    let names: Vec<&str> = program.params.iter().map(|id| program.tensor(*id).name.as_str()).collect();
    if let Some((unknown, _)) = inputs.iter().find(|(name, _)| !names.contains(name)) {
        return Err(Diagnostic::new(Code::E0903, format!("`{}` has no parameter `{unknown}`", program.name))
            .help(format!("its parameters are {}", names.join(", "))));
    }
    names
        .iter()
        .map(|name| {
            let found = inputs.iter().find(|(given, _)| given == name).map(|(_, tensor)| *tensor);
            found.ok_or_else(|| {
                Diagnostic::new(
                    Code::E0902,
                    format!("the parameter `{name}` of `{}` was given no tensor", program.name),
                )
                .help(format!("pass {}", names.join(", ")))
            })
        })
        .collect()
}

/// Infers the shapes of all parameters from the tensors that are known, through the program.
///
/// ```
/// use tamis::prelude::*;
/// let program = Program::parse("
/// def spmv(A, x):
///     y = tensor('dense')
///     for i, j in _:
///         y[i] += A[i,j] * x[j]
///     return y
/// ")?;
/// let a = Tensor::from_dense(&[3, 4], vec![1.0; 12].into(), &Format::csr(), 0.0.into())?;
/// assert_eq!(tamis::run::infer_shapes(&program, &[Some(&a), None])?, [vec![3, 4], vec![4]]);
/// # Ok::<(), Diagnostics>(())
/// ```
pub fn infer_shapes(program: &Program, known: &[Option<&Tensor>]) -> Result<Vec<Vec<u64>>, Diagnostics> {
    let param = |(k, known): (usize, &Option<&Tensor>)| match known {
        Some(tensor) => interp::param_type(*tensor),
        None => {
            let rank = program.params.get(k).map_or(0, |id| program.tensor(*id).rank);
            ParamType { dtype: DType::F64, shape: vec![None; rank], value: None, weak: false }
        }
    };
    let params: Vec<ParamType> = known.iter().enumerate().map(param).collect();
    let checked = program.check(&params)?;
    Ok(program.params.iter().map(|id| checked.extents.shapes[id.index()].clone()).collect())
}
