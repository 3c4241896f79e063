//! Derivatives of index notation on tensors: gradients (reverse mode) and tangents (forward mode).
//!
//! In: index notation, its operands, and cotangents of its results or tangents of its operands. Out:
//! gradients by operand, or tangents by result. [`Differentiate`] gives the statements themselves, as
//! text; here they are scheduled for the operands, compiled and called. The gradient of a sparse
//! operand lives on its pattern, whatever its format: nothing is computed or stored elsewhere.

pub use tamis_ir::notation::{Adjoint, Differentiate, Tangents};

use crate::notation::{EinsumOptions, einsum, parse};
use crate::results::Results;
use tamis_ir::algebra::Kind;
use tamis_ir::format::Leaf;
use tamis_ir::{Code, Diagnostic, Diagnostics, Notation};
use tamis_tensor::Tensor;

/// The gradients of a result without dimensions with respect to some operands, by operand.
///
/// ```
/// use tamis::prelude::*;
/// let a = Tensor::from_dense(&[2, 2], vec![1.0, 0.0, 0.0, 4.0].into(), &Format::csr(), Value::F64(0.0))?;
/// let x = Tensor::from_dense(&[2], vec![3.0, 5.0].into(), &Format::dense(1), Value::F64(0.0))?;
/// let gradients = tamis::grad("L = x[i] * A[i,j] * x[j]", &["A", "x"], &[("A", &a), ("x", &x)], &EinsumOptions::new())?;
/// assert_eq!(gradients["x"].get(&[1]), Some(Value::F64(40.0)));
/// // The gradient of a sparse operand has its pattern: nothing flows to what is not stored.
/// assert_eq!((gradients["A"].nnz(), gradients["A"].get(&[0, 1])), (2, Some(Value::F64(0.0))));
/// # Ok::<(), Diagnostics>(())
/// ```
pub fn grad(
    text: &str,
    wrt: &[&str],
    inputs: &[(&str, &Tensor)],
    options: &EinsumOptions,
) -> Result<Results, Diagnostics> {
    let notation = parse(text, inputs)?;
    let one = Tensor::literal(tamis_ir::Value::F64(1.0));
    let results = notation.results();
    let scalar =
        |result: &&str| notation.assignments.iter().all(|a| a.target.text != **result || a.subscripts.is_empty());
    if let Some(tensor) = results.iter().find(|result| !scalar(result)) {
        let d = Diagnostic::new(Code::E0116, format!("`{tensor}` is not a single number, so it has no gradient"));
        let d = d.help(format!("reduce it, as in `L = {tensor}[i] * {tensor}[i]`"));
        return Err(d.help("or call `vjp` with a cotangent for each result").into());
    }
    let cotangents: Vec<(&str, &Tensor)> = results.into_iter().map(|result| (result, &one)).collect();
    vjp(text, wrt, inputs, &cotangents, options)
}

/// Vector-Jacobian products: the gradients, by operand, for cotangents of the results, by result.
///
/// ```
/// use tamis::prelude::*;
/// let a = Tensor::from_dense(&[2, 2], vec![1.0, 0.0, 0.0, 4.0].into(), &Format::csr(), Value::F64(0.0))?;
/// let x = Tensor::from_dense(&[2], vec![3.0, 5.0].into(), &Format::dense(1), Value::F64(0.0))?;
/// let inputs = [("A", &a), ("x", &x)];
/// let g = tamis::grad::vjp("y[i] = A[i,j] * x[j]", &["A"], &inputs, &[("y", &x)], &EinsumOptions::new())?;
/// assert_eq!(g["A"].get(&[1, 1]), Some(Value::F64(25.0)));
/// # Ok::<(), Diagnostics>(())
/// ```
pub fn vjp(
    text: &str,
    wrt: &[&str],
    inputs: &[(&str, &Tensor)],
    cotangents: &[(&str, &Tensor)],
    options: &EinsumOptions,
) -> Result<Results, Diagnostics> {
    let notation = parse(text, inputs)?;
    let request = described(Differentiate::new(wrt.iter().copied()), inputs);
    let adjoint = request.results(cotangents.iter().map(|(name, _)| *name)).adjoint(&notation)?;
    let patterns = adjoint.patterns.iter().map(|(operand, name)| {
        let (_, tensor) = given(inputs, operand)?;
        Ok((name.as_str(), tensor.pattern()?))
    });
    let patterns: Vec<(&str, Tensor)> = patterns.collect::<Result<_, Diagnostic>>()?;
    let mut all: Vec<(&str, &Tensor)> = inputs.to_vec();
    all.extend(patterns.iter().map(|(name, tensor)| (*name, tensor)));
    for (result, name) in &adjoint.cotangents {
        all.push((name, given(cotangents, result)?.1));
    }
    let mut options = options.clone();
    for (operand, name) in &adjoint.gradients {
        let (_, tensor) = given(inputs, operand)?;
        // A gradient is stored as its operand is.
        if tensor.rank() > 0 {
            options = options.format(name, tensor.format().clone().with_leaf(Leaf::Element(None)));
        }
    }
    renamed(call(&adjoint.text, &all, &options)?, &adjoint.gradients)
}

/// Jacobian-vector products: the tangents of the results, by result, for tangents of some operands.
///
/// ```
/// use tamis::prelude::*;
/// let x = Tensor::from_dense(&[2], vec![3.0, 5.0].into(), &Format::dense(1), Value::F64(0.0))?;
/// let tangents = tamis::grad::jvp("y[i] = x[i] * x[i]", &[("x", &x)], &[("x", &x)], &EinsumOptions::new())?;
/// assert_eq!(tangents["y"].get(&[0]), Some(Value::F64(18.0)));
/// # Ok::<(), Diagnostics>(())
/// ```
pub fn jvp(
    text: &str,
    inputs: &[(&str, &Tensor)],
    tangents: &[(&str, &Tensor)],
    options: &EinsumOptions,
) -> Result<Results, Diagnostics> {
    let notation = parse(text, inputs)?;
    let request = described(Differentiate::new(tangents.iter().map(|(name, _)| *name)), inputs);
    let made = request.tangents(&notation)?;
    let mut all: Vec<(&str, &Tensor)> = inputs.to_vec();
    for (operand, name) in &made.operands {
        all.push((name, given(tangents, operand)?.1));
    }
    renamed(call(&made.text, &all, options)?, &made.results)
}

/// What differentiation may assume of operands: which have patterns, and which are complex.
///
/// ```
/// # use tamis::prelude::*;
/// # let values = vec![1.0, 0.0, 0.0, 4.0].into();
/// # let a = Tensor::from_dense(&[2, 2], values, &Format::csr(), 0.0.into())?;
/// let inputs = [("A", &a)];
/// let request = tamis::grad::described(tamis::grad::Differentiate::new(["A"]), &inputs);
/// let adjoint = request.adjoint(&Notation::parse("L = A[i,j] * A[i,j]")?)?;
/// assert_eq!(adjoint.patterns[0].0, "A", "the gradient of a sparse operand lives on its pattern");
/// # Ok::<(), Diagnostics>(())
/// ```
pub fn described(request: Differentiate, inputs: &[(&str, &Tensor)]) -> Differentiate {
    let named = |holds: &dyn Fn(&Tensor) -> bool| {
        inputs.iter().filter(|(_, tensor)| holds(tensor)).map(|(name, _)| *name).collect::<Vec<_>>()
    };
    request
        .patterns(named(&|tensor| !tensor.format().is_all_dense()))
        .zero_fills(named(&|tensor| !tensor.fill().is_truthy()))
        .complex(named(&|tensor| tensor.dtype().kind() == Kind::Complex))
}

/// Computes notation on those of the tensors that it reads.
fn call(text: &str, all: &[(&str, &Tensor)], options: &EinsumOptions) -> Result<Results, Diagnostics> {
    let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
    let notation = Notation::parse_given(&tamis_ir::Source::new("derivative", text), &[], &names)?;
    let params = notation.params();
    let read: Vec<(&str, &Tensor)> = all.iter().filter(|(name, _)| params.contains(name)).copied().collect();
    einsum(text, &read, options)
}

fn given<'a, 't>(all: &[(&'a str, &'t Tensor)], name: &str) -> Result<(&'a str, &'t Tensor), Diagnostic> {
    all.iter().find(|(known, _)| *known == name).copied().ok_or_else(|| {
        Diagnostic::new(Code::E0902, format!("`{name}` was given no tensor")).help("pass one tensor for each")
    })
}

/// Results under the names of what they are derivatives of.
fn renamed(results: Results, names: &[(String, String)]) -> Result<Results, Diagnostics> {
    let mut made: Vec<(String, Tensor)> = results.into_iter().collect();
    let own = |name: &String| names.iter().find(|(_, known)| known == name).map(|(of, _)| of.clone());
    for (name, _) in &mut made {
        if let Some(of) = own(name) {
            *name = of;
        }
    }
    made.sort_by_key(|(name, _)| names.iter().position(|(of, _)| of == name));
    Ok(Results::from(made))
}
