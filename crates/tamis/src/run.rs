//! Calling a program with tensors by name.

use tamis_ir::program::ParamType;
use tamis_ir::{Code, DType, Diagnostic, Diagnostics, Program, interp};
use tamis_tensor::Tensor;

/// How to run a program.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunOptions {
    /// IEEE arithmetic throughout: what is not stored does not annihilate NaN.
    pub strict: bool,
}

/// Runs a program on tensors given by name, in any order; gives its results, by name, in the order of `return` and
/// in the formats that the program declares.
pub fn run(
    program: &Program,
    inputs: &[(&str, &Tensor)],
    options: &RunOptions,
) -> Result<Vec<(String, Tensor)>, Diagnostics> {
    let params = by_position(program, inputs)?;
    let operands: Vec<&dyn interp::Operand> = params.iter().map(|t| *t as &dyn interp::Operand).collect();
    let options = interp::Options { strict: options.strict, budget: None };
    let outcome = interp::run(program, &operands, options)?;
    let mut results = Vec::new();
    for (id, grid) in program.results.iter().zip(&outcome.results) {
        let info = program.tensor(*id);
        let format = outcome.checked.formats[id.index()].clone();
        let format = format.unwrap_or_else(|| tamis_ir::Format::dense(info.rank));
        let tensor = Tensor::from_grid(grid, &format)
            .map_err(|d| program.origin.attach(d.label(program.origin.tensor(*id), "this result")))?;
        results.push((info.name.clone(), tensor));
    }
    Ok(results)
}

fn by_position<'a>(program: &Program, inputs: &[(&str, &'a Tensor)]) -> Result<Vec<&'a Tensor>, Diagnostic> {
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
            ParamType { dtype: DType::F64, shape: vec![None; rank], value: None }
        }
    };
    let params: Vec<ParamType> = known.iter().enumerate().map(param).collect();
    let checked = program.check(&params)?;
    Ok(program.params.iter().map(|id| checked.extents.shapes[id.index()].clone()).collect())
}
