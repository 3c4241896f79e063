//! User-defined operators: parsing and printing of their definitions.

use super::resolve::operators::{OperatorDefinition, Operators, define_all};
use super::{Expr, ExprPool, Program, ProgramSpans, VarId};
use crate::algebra::{BodyTerm, Laws, Op, UserOp, Value};
use crate::diag::{Code, Diagnostic, Diagnostics, Source, Span};
use crate::text::parser::{self, MAX_ERRORS, is_name};
use crate::text::syntax::{Function, Name};
use std::sync::Arc;

/// Defines an operator: the names of its operands, an expression of them, and its laws. Equivalent
/// to `@op(...)` above a function.
///
/// ```
/// use tamis_ir::algebra::{DType, Laws, Value, eval};
/// use tamis_ir::program::define;
/// let laws = Laws { commutative: true, associative: true, ..Laws::default() }.identity(Value::I64(0));
/// let either = define("either", &["a", "b"], "a + b - a * b", laws).unwrap();
/// assert_eq!(eval(either, DType::F64, &[Value::F64(0.5), Value::F64(0.5)]), Value::F64(0.75));
/// ```
pub fn define(name: &str, params: &[&str], body: &str, laws: Laws) -> Result<Op, Diagnostics> {
    define_with_derivatives(name, params, body, laws, &[])
}

/// [`define`], with an expression for the derivative by each operand. Equivalent to
/// `@op(derivative=(...))`: adjoints use it instead of differentiating the body.
///
/// ```
/// use tamis_ir::algebra::Laws;
/// use tamis_ir::notation::{Differentiate, Notation};
/// use tamis_ir::{Source, program::define_with_derivatives};
/// // A straight-through estimator: rounding, whose derivative counts as 1.
/// let through = define_with_derivatives("through", &["a"], "round(a)", Laws::default(), &["1"])?;
/// let rounded = Notation::parse_source(&Source::new("notation", "y[i] = through(x[i])"), &[through])?;
/// let adjoint = Differentiate::new(["x"]).adjoint(&rounded)?;
/// assert_eq!(adjoint.text, "gx[i] = gy[i]");
/// assert!(define_with_derivatives("f", &["a", "b"], "a * b", Laws::default(), &["b"]).is_err());
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
pub fn define_with_derivatives(
    name: &str,
    params: &[&str],
    body: &str,
    laws: Laws,
    derivatives: &[&str],
) -> Result<Op, Diagnostics> {
    for text in params.iter().chain([&name]) {
        if !is_name(text) {
            let d = Diagnostic::new(Code::E0101, format!("`{text}` is not a name"));
            let d = d.help("names are letters, digits and `_`, not starting with a digit, and no keywords");
            return Err(Diagnostics(vec![d]));
        }
    }
    let source = Source::new(name, body);
    let expr = parser::parse_expression(&source)?;
    let named = |text: &str| Name { text: text.to_string(), span: Span::default() };
    let names: Vec<Name> = params.iter().map(|p| named(p)).collect();
    let partial = |text: &&str| parser::parse_expression(&Source::new("derivative", *text));
    let derivatives = derivatives.iter().map(partial).collect::<Result<Vec<_>, Diagnostics>>()?;
    let parts = OperatorDefinition { name: &named(name), params: &names, body: &expr, derivatives: &derivatives };
    let defined = super::resolve::operators::define(&parts, laws, &Operators::default(), &[]);
    defined.map(Op::User).map_err(|d| Diagnostics(vec![d.with_source(&source)]))
}

/// The operators that a text defines; a program in it is ignored.
///
/// ```
/// use tamis_ir::diag::Source;
/// use tamis_ir::program::parse_operators;
/// let text = "@op(idempotent)\ndef first(a, b):\n    return a\n";
/// assert_eq!(parse_operators(&Source::new("operators", text)).unwrap().len(), 1);
/// ```
pub fn parse_operators(source: &Arc<Source>) -> Result<Vec<Op>, Diagnostics> {
    parse_operators_with(source, &[])
}

/// The operators that a text defines, which may use others; the result includes those.
///
/// ```
/// use tamis_ir::diag::Source;
/// use tamis_ir::program::{parse_operators, parse_operators_with};
/// let square = parse_operators(&Source::new("first", "@op\ndef square(a):\n    return a * a\n")).unwrap();
/// let text = "@op\ndef fourth(a):\n    return square(square(a))\n";
/// assert_eq!(parse_operators_with(&Source::new("second", text), &square).unwrap().len(), 2);
/// ```
pub fn parse_operators_with(source: &Arc<Source>, given: &[Op]) -> Result<Vec<Op>, Diagnostics> {
    let (_, operators) = parse(source, given)?;
    let mut operators: Vec<Op> = operators.into_values().map(Op::User).collect();
    operators.sort_unstable();
    Ok(operators)
}

/// A table of operators by name.
pub(super) fn by_name(given: &[Op]) -> Operators {
    let mut operators = Operators::default();
    for op in given {
        if let Op::User(user) = op {
            operators.insert(user.name().to_string(), *user);
        }
    }
    operators
}

/// The program of a text, and all operators in scope.
pub(super) fn parse(source: &Arc<Source>, given: &[Op]) -> Result<(Option<Function>, Operators), Diagnostics> {
    let file = parser::parse_file(source)?;
    let mut operators = by_name(given);
    let mut errors = Vec::new();
    define_all(&file.operators, &mut operators, &mut errors);
    if errors.is_empty() {
        return Ok((file.function, operators));
    }
    errors.truncate(MAX_ERRORS);
    Err(Diagnostics(errors.into_iter().map(|d| d.with_source(source)).collect()))
}

/// A definition as text that parses to the same operator.
pub(crate) fn definition(user: UserOp) -> String {
    let laws = user.laws();
    let mut declared: Vec<String> = Vec::new();
    for (name, holds) in
        [("commutative", laws.commutative), ("associative", laws.associative), ("idempotent", laws.idempotent)]
    {
        declared.extend(holds.then(|| name.to_string()));
    }
    let number = |name: &str, value: Option<Value>| value.map(|value| format!("{name}={value}"));
    if laws.left_identity == laws.right_identity {
        declared.extend(number("identity", laws.left_identity));
    } else {
        declared.extend(number("left_identity", laws.left_identity));
        declared.extend(number("right_identity", laws.right_identity));
    }
    declared.extend(number("annihilator", laws.annihilator));
    let partial: Vec<String> = user.derivatives().iter().map(|terms| shown(user, terms)).collect();
    match &partial[..] {
        [] => {}
        [one] => declared.push(format!("derivative={one}")),
        several => declared.push(format!("derivative=({})", several.join(", "))),
    }
    let declared = if declared.is_empty() { String::new() } else { format!("({})", declared.join(", ")) };
    let (name, params) = (user.name(), user.params());
    format!("@op{declared}\ndef {name}({}):\n    return {}\n", params.join(", "), shown(user, user.body()))
}

/// The body of an operator, or a derivative, as text.
fn shown(user: UserOp, terms: &[BodyTerm]) -> String {
    let mut exprs = ExprPool::default();
    let mut ids = Vec::new();
    for term in terms {
        let expr = match term {
            BodyTerm::Param(k) => Expr::Var(VarId(*k as u32)),
            BodyTerm::Literal(value) => Expr::Literal(*value),
            BodyTerm::Call(op, operands) => Expr::Call(*op, operands.iter().map(|k| ids[*k]).collect()),
        };
        ids.push(exprs.intern(expr));
    }
    let program = Program {
        name: String::new(),
        params: Vec::new(),
        results: Vec::new(),
        tensors: Vec::new(),
        indices: Vec::new(),
        vars: user.params().to_vec(),
        exprs,
        body: Vec::new(),
        origin: ProgramSpans::default(),
    };
    ids.last().map(|root| program.show(*root)).unwrap_or_default()
}

impl Program {
    /// The user-defined operators in use, in the order of their first use.
    ///
    /// ```
    /// use tamis_ir::Program;
    /// let program = Program::parse("
    /// @op(commutative, associative, identity=0)
    /// def either(a, b):
    ///     return a + b - a * b
    /// def any(x):
    ///     s = scalar(0.0)
    ///     for i in _:
    ///         s = either(s, x[i])
    ///     return s
    /// ")?;
    /// assert_eq!(program.user_operators()[0].name(), "either");
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn user_operators(&self) -> Vec<UserOp> {
        let mut found = Vec::new();
        let mut note = |op: Op| {
            if let Op::User(user) = op
                && !found.contains(&user)
            {
                found.push(user);
            }
        };
        self.visit(&mut |stmt| {
            if let super::StmtKind::Assign { update: Some(update), .. } = &stmt.kind {
                note(update.op);
            }
            self.visit_exprs(stmt, &mut |id| {
                if let Expr::Call(op, _) = self.expr(id) {
                    note(*op);
                }
            });
        });
        found
    }
}
