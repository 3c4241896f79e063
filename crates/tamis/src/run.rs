//! Calling a program with tensors by name.

use crate::compile::{CompileOptions, Executable, compile};
use crate::remember::{Remembered, key};
use crate::signature::{Argument, Signature};
use tamis_compiler::schedule::Schedule;
use tamis_ir::program::ParamType;
use tamis_ir::{Code, DType, Diagnostic, Diagnostics, Program, interp};
use tamis_tensor::Tensor;

/// How to run a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunOptions {
    /// IEEE arithmetic throughout: what is not stored does not annihilate NaN, and nothing is reassociated.
    pub strict: bool,
    /// Run the reference interpreter, which visits every point of every loop.
    pub interpret: bool,
    /// Run code that checks every access, and compare the results with the reference interpreter's.
    pub check: bool,
    /// How many points of loops the interpreter may visit for that; [`CHECK_LIMIT`](crate::CHECK_LIMIT) if nothing is said.
    pub check_limit: Option<u64>,
}

impl From<RunOptions> for CompileOptions {
    fn from(options: RunOptions) -> CompileOptions {
        let RunOptions { strict, interpret, check, check_limit } = options;
        CompileOptions { strict, interpret, check, check_limit, schedule: Schedule::default() }
    }
}

/// Runs a program on tensors given by name, in any order; gives its results, by name, in the order of `return` and
/// in the formats that the program declares.
///
/// The program is compiled for the layouts of the tensors. When it was before, for tensors of whatever sizes, calling it
/// again costs a look-up; see [`compile`](crate::compile()) for doing that by hand.
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
/// assert_eq!(results[0].1.get(&[]), Some(Value::F64(5.0)));
/// // Compared with the reference interpreter:
/// tamis::run(&program, &[("A", &a)], &RunOptions { check: true, ..RunOptions::default() })?;
/// # Ok::<(), Diagnostics>(())
/// ```
pub fn run(
    program: &Program,
    inputs: &[(&str, &Tensor)],
    options: &RunOptions,
) -> Result<Vec<(String, Tensor)>, Diagnostics> {
    let tensors = by_position(program, inputs)?;
    let arguments = Argument::all(&tensors);
    let executable = executable(program, &tensors, &arguments, &CompileOptions::from(*options))?;
    executable.call_fitting(program, &tensors, &arguments).map(|timed| timed.results)
}

/// The executable for these tensors, compiled unless that was done before.
fn executable(
    program: &Program,
    tensors: &[&Tensor],
    arguments: &[Argument],
    options: &CompileOptions,
) -> Result<Executable, Diagnostics> {
    let remembered = Remembered::global();
    let key = key(program, arguments, options);
    if let Some(known) = remembered.find(key, program, arguments, options) {
        return Ok(known);
    }
    let executable = compile(program, &Signature::of(tensors), options)?;
    remembered.keep(key, executable.clone());
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

/// The shapes of all parameters, where some tensors are known and the shapes of the others follow from the program.
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
/// assert_eq!(tamis::infer_shapes(&program, &[Some(&a), None])?, [vec![3, 4], vec![4]]);
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
