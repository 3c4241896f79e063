//! Kernel prefixes: the time of a loop nest is the time of the kernel up to and including it, minus
//! that of the kernel before it.
//!
//! No kernel reads a clock: that would need a statement in every back end and would disturb the
//! measurement.

use tamis_ir::Value;
use tamis_ir::kernel::{Builder, Elem, Expr, Kernel, Role, Stmt, VarId};

/// The top-level statements of a kernel that form one loop nest.
///
/// ```
/// use tamis_ir::kernel::Kernel;
/// let kernel = Kernel::parse("kernel f
///     out y: f64[]
///     in n: i64
/// begin
///     for i in 0..n
///         y[i] = 0.0
///     for j in 0..n
///         y[j] = y[j] + 1.0
/// ")?;
/// assert_eq!(tamis_compiler::counts::nests(&kernel)[1].stop, kernel.body.len());
/// # Ok::<(), tamis_ir::Diagnostic>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NestRange {
    /// The statement with loops.
    pub first: usize,
    /// The start of the next nest, or the end of the kernel.
    pub stop: usize,
}

/// The loop nests of a kernel, in order. Statements before the first loop belong to the first nest.
///
/// ```
/// use tamis_ir::kernel::Kernel;
/// let kernel = Kernel::parse("kernel f
///     out y: f64[]
///     in n: i64
/// begin
///     for i in 0..n
///         y[i] = 0.0
///     for j in 0..n
///         y[j] = y[j] + 1.0
/// ")?;
/// assert_eq!(tamis_compiler::counts::nests(&kernel).len(), 2);
/// # Ok::<(), tamis_ir::Diagnostic>(())
/// ```
pub fn nests(kernel: &Kernel) -> Vec<NestRange> {
    let loops = |stmt: &Stmt| {
        let mut found = false;
        stmt.visit(&mut |stmt| found |= matches!(stmt, Stmt::For { .. } | Stmt::While { .. }));
        // These statements are loops in the runtime.
        found || matches!(stmt, Stmt::Fill { .. } | Stmt::Sort { .. } | Stmt::Gemm(_) | Stmt::Finalize { .. })
    };
    let starts: Vec<usize> = (0..kernel.body.len()).filter(|k| loops(&kernel.body[*k])).collect();
    let stop = |k: usize| starts.get(k + 1).copied().unwrap_or(kernel.body.len());
    starts.iter().enumerate().map(|(k, first)| NestRange { first: *first, stop: stop(k) }).collect()
}

/// A prefix of a kernel. Values that later statements use are stored, so that they are not
/// eliminated as dead.
///
/// ```
/// use tamis_ir::kernel::Kernel;
/// let kernel = Kernel::parse("kernel f
///     out y: f64[]
///     in n: i64
/// begin
///     for i in 0..n
///         y[i] = 0.0
///     for j in 0..n
///         y[j] = y[j] + 1.0
/// ")?;
/// let first = tamis_compiler::counts::nests(&kernel)[0];
/// let before = tamis_compiler::counts::prefix(&kernel, first.stop);
/// assert_eq!(before.size(), 2, "a loop and its body");
/// # Ok::<(), tamis_ir::Diagnostic>(())
/// ```
pub fn prefix(kernel: &Kernel, statements: usize) -> Kernel {
    let (mut b, mut body) = Builder::resume(kernel.clone());
    let rest = body.split_off(statements.min(body.len()));
    let declared: Vec<VarId> = body.iter().filter_map(Stmt::declares).collect();
    let mut needed: Vec<VarId> = Vec::new();
    for stmt in &rest {
        stmt.visit(&mut |stmt| {
            stmt.each_expr(|expr| {
                kernel.visit_expr(expr, &mut |expr| {
                    if let Expr::Var(var) = expr
                        && declared.contains(var)
                        && !needed.contains(var)
                    {
                        needed.push(*var);
                    }
                });
            });
        });
    }
    let (zero, one) = (b.int(0), b.int(1));
    for var in needed {
        let dtype = kernel.var(var).dtype;
        let buffer = b.buffer("kept", Elem::Value(dtype), Role::Output);
        body.push(Stmt::Grow { buffer, len: one, fill: Some(Value::zero(dtype)) });
        let value = b.get(var);
        body.push(Stmt::Store { buffer, index: zero, value });
    }
    b.finish_with(body)
}
