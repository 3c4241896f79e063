//! User-defined operators in Rust: the counterpart of `@op` in the text of a program.

use tamis_ir::algebra::{Laws, Op};
use tamis_ir::diag::Diagnostics;
use tamis_ir::program;

/// Defines an operator by its name, the names of its operands, an expression of them, and its laws.
/// Each law is tested when a program that uses the operator is compiled, on the types that it is
/// used with.
///
/// ```
/// use tamis::prelude::*;
///
/// let laws = Laws { commutative: true, associative: true, ..Laws::default() }.identity(Value::I64(0));
/// let either = tamis::algebra::define("either", &["p", "q"], "max(p, q)", laws)?;
/// let program = Program::parse_with("
/// def likeliest(A):
///     y = tensor('dense', dtype='u8')
///     for i, j in _:
///         y[i] = either(y[i], A[i,j])
///     return y
/// ", &[either])?;
/// let a = Tensor::from_dense(&[2, 2], vec![1u8, 5, 0, 3].into(), &Format::csr(), Value::U8(0))?;
/// let results = tamis::run(&program, &[("A", &a)], &RunOptions::default())?;
/// assert_eq!(results[0].get(&[0]), Some(Value::U8(5)));
///
/// // On signed numbers, 0 is not an identity of `max`: the test finds a counterexample.
/// let a = Tensor::from_dense(&[1, 1], vec![-1.0].into(), &Format::csr(), Value::F64(0.0))?;
/// let program = Program::parse_with(&program.to_string().replace(", dtype=\"u8\"", ""), &[])?;
/// let errors = tamis::run(&program, &[("A", &a)], &RunOptions::default()).unwrap_err();
/// assert_eq!(errors.0[0].code.name(), "E0309");
/// # Ok::<(), Diagnostics>(())
/// ```
pub fn define(name: &str, params: &[&str], body: &str, laws: Laws) -> Result<Op, Diagnostics> {
    program::define(name, params, body, laws)
}

/// [`define`], with an expression for the derivative by each operand, which gradients use instead of
/// differentiating the body.
///
/// ```
/// use tamis::prelude::*;
/// use tamis::algebra::{Laws, define_with_derivatives};
///
/// // log(exp(a) + exp(b)), whose derivative by `a` is 1 / (1 + exp(b - a)).
/// let by = ["sigmoid(a - b)", "sigmoid(b - a)"];
/// let body = "max(a, b) + log1p(exp(-abs(a - b)))";
/// assert!(define_with_derivatives("softmax2", &["a", "b"], body, Laws::default(), &by).is_ok());
/// assert!(define_with_derivatives("softmax2", &["a", "b"], body, Laws::default(), &by[..1]).is_err());
/// # Ok::<(), Diagnostics>(())
/// ```
pub fn define_with_derivatives(
    name: &str,
    params: &[&str],
    body: &str,
    laws: Laws,
    derivatives: &[&str],
) -> Result<Op, Diagnostics> {
    program::define_with_derivatives(name, params, body, laws, derivatives)
}
