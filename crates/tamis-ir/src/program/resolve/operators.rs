//! Name resolution of user-defined operators: bodies, laws and uses.

use super::super::{Expr, ExprId};
use super::Resolver;
use super::expressions::{literal, unknown_function, wrong_count};
use crate::algebra::{BodyTerm, Laws, Op, Undefinable, UserOp, Value};
use crate::diag::{Code, Diagnostic, Source, Span, counted, did_you_mean};
use crate::text::parser::{self, MAX_OPERATORS};
use crate::text::syntax::{self, ExprKind, Name};
use rustc_hash::FxHashMap;

/// Operators by their names.
pub(in crate::program) type Operators = FxHashMap<String, UserOp>;

const LAWS: [&str; 7] =
    ["commutative", "associative", "idempotent", "identity", "left_identity", "right_identity", "annihilator"];

/// What declares derivatives beside the laws.
const DERIVATIVE: &str = "derivative";
const DERIVATIVE_FORM: &str = "write an expression for each operand, as in `@op(derivative=(b, a))` for `a * b`";

/// Names with another meaning in calls.
const TAKEN: [&str; 9] =
    ["tensor", "scalar", "sparse_scalar", "short_circuit_scalar", "range", "walk", "follow", "gallop", "op"];

/// Defines the operators of a file, in order; each may use earlier ones.
pub(in crate::program) fn define_all(
    operators: &[syntax::Operator],
    known: &mut Operators,
    errors: &mut Vec<Diagnostic>,
) {
    // The use of an operator whose definition has a mistake is not reported as well.
    let mut failed: Vec<String> = Vec::new();
    for (k, operator) in operators.iter().enumerate() {
        let later: Vec<&Name> = operators[k + 1..].iter().map(|o| &o.name).collect();
        let defined = read_derivatives(&operator.laws).and_then(|derivatives| {
            let laws = read_laws(&operator.laws)?;
            let parts = OperatorDefinition {
                name: &operator.name,
                params: &operator.params,
                body: &operator.body,
                derivatives: &derivatives,
            };
            define(&parts, laws, known, &later)
        });
        match defined {
            Ok(user) => match known.get(&operator.name.text) {
                Some(before) if *before != user => errors.push(
                    Diagnostic::new(Code::E0203, format!("`{}` is already defined", operator.name.text))
                        .label(operator.name.span, "defined again")
                        .help("choose another name"),
                ),
                _ => {
                    known.insert(operator.name.text.clone(), user);
                }
            },
            Err(d) => {
                failed.push(format!("there is no function `{}`", operator.name.text));
                if !failed.contains(&d.message) {
                    errors.push(d);
                }
            }
        }
    }
}

/// A definition before it is interned.
pub(in crate::program) struct OperatorDefinition<'a> {
    pub(in crate::program) name: &'a Name,
    pub(in crate::program) params: &'a [Name],
    pub(in crate::program) body: &'a syntax::Expr,
    /// The derivative by each operand; empty if none is declared.
    pub(in crate::program) derivatives: &'a [syntax::Expr],
}

/// The expressions of `derivative=(a, b)`: one for each operand, which may be strings, too.
fn read_derivatives(written: &[syntax::Law]) -> Result<Vec<syntax::Expr>, Diagnostic> {
    let Some(law) = written.iter().find(|law| law.name.text == DERIVATIVE) else { return Ok(Vec::new()) };
    let one = |expr: &syntax::Expr| match &expr.kind {
        ExprKind::Str(text) => parser::parse_expression(&Source::new("derivative", text.as_str())).map_err(|errors| {
            let message = errors.0.first().map_or(String::new(), |d| d.message.clone());
            Diagnostic::new(Code::E0110, format!("the derivative `{text}` is not an expression: {message}"))
                .label(expr.span, "here")
                .help(DERIVATIVE_FORM)
        }),
        _ => Ok(expr.clone()),
    };
    match &law.value {
        Some(syntax::Expr { kind: ExprKind::Tuple(all), .. }) => all.iter().map(one).collect(),
        Some(expr) => Ok(vec![one(expr)?]),
        None => Err(Diagnostic::new(Code::E0110, "`derivative` needs an expression for each operand")
            .label(law.name.span, "here")
            .help(DERIVATIVE_FORM)),
    }
}

/// Defines one operator.
pub(in crate::program) fn define(
    parts: &OperatorDefinition,
    laws: Laws,
    known: &Operators,
    later: &[&Name],
) -> Result<UserOp, Diagnostic> {
    let OperatorDefinition { name, params, body, derivatives } = parts;
    if Op::named(&name.text).is_some() || TAKEN.contains(&name.text.as_str()) {
        return Err(Diagnostic::new(Code::E0203, format!("the name `{}` is reserved", name.text))
            .label(name.span, "a reserved word")
            .help("choose another name"));
    }
    if let Some(k) = (1..params.len()).find(|k| params[..*k].iter().any(|p| p.text == params[*k].text)) {
        return Err(Diagnostic::new(Code::E0203, format!("two operands have the name `{}`", params[k].text))
            .label(params[k].span, "named again")
            .help("choose another name"));
    }
    if params.is_empty() {
        return Err(Diagnostic::new(Code::E0110, format!("`{}` has no operands", name.text))
            .label(name.span, "an operator needs operands")
            .help("name its operands, as in `def f(a, b):`; bind a constant by `c = 0.5`"));
    }
    if laws.any() && params.len() != 2 {
        return Err(Diagnostic::new(
            Code::E0110,
            format!("only operators of two operands have laws, and `{}` has {}", name.text, params.len()),
        )
        .label(name.span, counted(params.len(), "operand"))
        .help("write `@op` without laws"));
    }
    if !derivatives.is_empty() && derivatives.len() != params.len() {
        let message = format!(
            "`{}` has {}, but {}",
            name.text,
            counted(params.len(), "operand"),
            counted(derivatives.len(), "derivative")
        );
        return Err(Diagnostic::new(Code::E0110, message)
            .label(name.span, "one derivative for each operand")
            .help(DERIVATIVE_FORM));
    }
    let read = |expr: &syntax::Expr| {
        let mut reader = OperatorBody {
            name,
            params,
            known,
            later,
            terms: Vec::new(),
            sizes: Vec::new(),
            numbers: FxHashMap::default(),
        };
        let root = reader.expr(expr)?;
        Ok(reader.up_to(root))
    };
    let terms = read(body)?;
    let derivatives = derivatives.iter().map(read).collect::<Result<Vec<_>, Diagnostic>>()?;
    let names: Vec<&str> = params.iter().map(|p| p.text.as_str()).collect();
    UserOp::define_with_derivatives(&name.text, &names, terms, laws, derivatives).map_err(|why| match why {
        Undefinable::TooMany => Diagnostic::new(Code::E0105, "this process has defined too many different operators")
            .label(name.span, "one more")
            .help("define the same operators again instead of new ones"),
        _ => too_long(body.span),
    })
}

fn too_long(span: Span) -> Diagnostic {
    Diagnostic::new(
        Code::E0105,
        format!("after inlining the operators that it uses, this has more than {MAX_OPERATORS} operators"),
    )
    .label(span, "too long")
    .help("bind subexpressions to names in the program, or use smaller operators")
}

/// Parses the laws in `@op(...)`.
fn read_laws(written: &[syntax::Law]) -> Result<Laws, Diagnostic> {
    let mut laws = Laws::default();
    for (k, law) in written.iter().enumerate() {
        let text = law.name.text.as_str();
        let wrong = |message: String, help: String| {
            Err(Diagnostic::new(Code::E0110, message).label(law.name.span, "here").help(help))
        };
        if written[..k].iter().any(|other| other.name.text == law.name.text) {
            return wrong(format!("`{text}` is declared twice"), "declare it once".to_string());
        }
        let value = law.value.as_ref().map(literal);
        let flag = match value {
            None => Some(true),
            Some(Some(Value::Bool(flag))) => Some(flag),
            _ => None,
        };
        match (text, flag, value) {
            ("commutative", Some(flag), _) => laws.commutative = flag,
            ("associative", Some(flag), _) => laws.associative = flag,
            ("idempotent", Some(flag), _) => laws.idempotent = flag,
            ("identity", _, Some(Some(value))) => laws = laws.identity(value),
            ("left_identity", _, Some(Some(value))) => laws.left_identity = Some(value),
            ("right_identity", _, Some(Some(value))) => laws.right_identity = Some(value),
            ("annihilator", _, Some(Some(value))) => laws.annihilator = Some(value),
            (DERIVATIVE, ..) => {}
            ("commutative" | "associative" | "idempotent", None, _) => {
                return wrong(format!("`{text}` takes no number"), format!("write `@op({text})`"));
            }
            ("identity" | "left_identity" | "right_identity" | "annihilator", ..) => {
                let help = format!("write `@op({text}=0)`, or another number: 1.0, inf, -inf, True");
                return wrong(format!("`{text}` needs a number"), help);
            }
            _ => {
                let help = match did_you_mean(text, LAWS) {
                    Some(meant) => format!("did you mean `{meant}`?"),
                    None => format!("laws are {}; `derivative` gives the derivative by each operand", LAWS.join(", ")),
                };
                return wrong(format!("there is no law `{text}`"), help);
            }
        }
    }
    Ok(laws)
}

/// The body of an operator under construction.
struct OperatorBody<'a> {
    name: &'a Name,
    params: &'a [Name],
    known: &'a Operators,
    /// The names of later definitions.
    later: &'a [&'a Name],
    terms: Vec<BodyTerm>,
    /// The number of operators of each term after inlining.
    sizes: Vec<usize>,
    numbers: FxHashMap<BodyTerm, usize>,
}

impl OperatorBody<'_> {
    fn term(&mut self, term: BodyTerm, span: Span) -> Result<usize, Diagnostic> {
        if let Some(number) = self.numbers.get(&term) {
            return Ok(*number);
        }
        let size = match &term {
            BodyTerm::Call(_, operands) => operands.iter().fold(1, |sum: usize, k| sum.saturating_add(self.sizes[*k])),
            _ => 0,
        };
        if size > MAX_OPERATORS || self.terms.len() >= crate::algebra::MAX_TERMS {
            return Err(too_long(span));
        }
        let number = self.terms.len();
        self.terms.push(term.clone());
        self.sizes.push(size);
        self.numbers.insert(term, number);
        Ok(number)
    }

    /// The terms that a root depends on, in postfix order of first use, so that equal bodies have
    /// equal terms.
    fn up_to(&self, root: usize) -> Vec<BodyTerm> {
        let mut numbers: FxHashMap<usize, usize> = FxHashMap::default();
        let mut out: Vec<BodyTerm> = Vec::new();
        let mut open = vec![(root, 0)];
        while let Some((k, done)) = open.pop() {
            if numbers.contains_key(&k) {
                continue;
            }
            let operands: &[usize] = match &self.terms[k] {
                BodyTerm::Call(_, operands) => operands,
                _ => &[],
            };
            match operands.get(done) {
                Some(operand) => open.extend([(k, done + 1), (*operand, 0)]),
                None => {
                    numbers.insert(k, out.len());
                    out.push(match &self.terms[k] {
                        BodyTerm::Call(op, operands) => {
                            BodyTerm::Call(*op, operands.iter().map(|o| numbers[o]).collect())
                        }
                        other => other.clone(),
                    });
                }
            }
        }
        out
    }

    fn expr(&mut self, expr: &syntax::Expr) -> Result<usize, Diagnostic> {
        if let Some(value) = literal(expr) {
            return self.term(BodyTerm::Literal(value), expr.span);
        }
        let no_tensors = || {
            Diagnostic::new(Code::E0110, "the body of an operator may use its operands only")
                .label(expr.span, "not an operand")
                .help(format!(
                    "pass the element as an operand: `def {}(x, ...)`, used as `{}(A[i], ...)`",
                    self.name.text, self.name.text
                ))
        };
        match &expr.kind {
            ExprKind::Number(value) => self.term(BodyTerm::Literal(*value), expr.span),
            ExprKind::Name(text) => match self.params.iter().position(|p| p.text == *text) {
                Some(k) => self.term(BodyTerm::Param(k), expr.span),
                None => {
                    let names: Vec<&str> = self.params.iter().map(|p| p.text.as_str()).collect();
                    let mut d = Diagnostic::new(Code::E0201, format!("`{text}` is not defined"))
                        .label(expr.span, "unknown name");
                    if let Some(meant) = did_you_mean(text, names.iter().copied()) {
                        d = d.help(format!("did you mean `{meant}`?"));
                    }
                    Err(d.help(format!("the operands of `{}` are {}", self.name.text, names.join(", "))))
                }
            },
            ExprKind::Operator(op, operands) => {
                let operands = self.all(operands)?;
                self.term(BodyTerm::Call(*op, operands), expr.span)
            }
            ExprKind::Call { function, args, keywords } => self.call(function, args, keywords, expr.span),
            ExprKind::Index { .. } | ExprKind::Size { .. } | ExprKind::Entry { .. } => Err(no_tensors()),
            ExprKind::Str(_) | ExprKind::Tuple(_) | ExprKind::Reduce { .. } | ExprKind::Error => {
                Err(Diagnostic::new(Code::E0101, "expected a number")
                    .label(expr.span, "not a value")
                    .help("for example `select(a < b, a, b)`"))
            }
        }
    }

    fn all(&mut self, exprs: &[syntax::Expr]) -> Result<Vec<usize>, Diagnostic> {
        exprs.iter().map(|e| self.expr(e)).collect()
    }

    fn call(
        &mut self,
        function: &Name,
        args: &[syntax::Expr],
        keywords: &[(Name, syntax::Expr)],
        span: Span,
    ) -> Result<usize, Diagnostic> {
        let name = function.text.as_str();
        if name == self.name.text {
            return Err(Diagnostic::new(Code::E0110, format!("`{name}` uses itself"))
                .label(function.span, "used in its own body")
                .help("operators cannot be recursive: iterate in a loop of the program, or unroll the steps"));
        }
        let user = self.known.get(name).copied();
        let op = user.map(Op::User).or_else(|| Op::named(name));
        let Some(op) = op else {
            if let Some(later) = self.later.iter().find(|later| later.text == name) {
                return Err(Diagnostic::new(Code::E0202, format!("`{name}` is not in scope here"))
                    .label(function.span, "used here")
                    .label(later.span, "only defined here")
                    .help("move its definition up"));
            }
            return Err(unknown_function(function, self.known.keys().map(String::as_str)));
        };
        if let Some(d) = wrong_count(function, op, args.len(), keywords, span) {
            return Err(d);
        }
        let operands = self.all(args)?;
        match user {
            // Its body is inlined: bodies hold built-in operators only.
            Some(user) => {
                let mut numbers: Vec<usize> = Vec::new();
                for term in user.body() {
                    numbers.push(match term {
                        BodyTerm::Param(k) => operands[*k],
                        BodyTerm::Literal(value) => self.term(BodyTerm::Literal(*value), span)?,
                        BodyTerm::Call(op, of) => {
                            let of = of.iter().map(|k| numbers[*k]).collect();
                            self.term(BodyTerm::Call(*op, of), span)?
                        }
                    });
                }
                Ok(numbers.last().copied().unwrap_or_default())
            }
            None => self.term(BodyTerm::Call(op, operands), span),
        }
    }
}

impl Resolver {
    /// Inlines the body of a function at its call: a function without laws means no more than its
    /// body.
    pub(super) fn write_out(&mut self, user: UserOp, operands: &[ExprId], span: Span) -> Option<ExprId> {
        let mut terms: Vec<ExprId> = Vec::new();
        for term in user.body() {
            let id = match term {
                BodyTerm::Param(k) => operands[*k],
                BodyTerm::Literal(value) => self.intern(Expr::Literal(*value), span),
                BodyTerm::Call(op, of) => {
                    let of = of.iter().map(|k| terms[*k]).collect();
                    self.intern(Expr::Call(*op, of), span)
                }
            };
            terms.push(id);
        }
        terms.last().copied()
    }

    /// True if an expression is not too large after inlining its functions: later passes visit
    /// expressions as trees.
    pub(super) fn fits(&mut self, id: ExprId, span: Span) -> bool {
        let fits = self.operators.is_empty() || self.size(id) <= MAX_OPERATORS;
        if !fits {
            self.errors.push(too_long(span));
        }
        fits
    }

    /// The number of operators of an expression after inlining.
    fn size(&mut self, id: ExprId) -> usize {
        if let Some(size) = self.sizes.get(&id) {
            return *size;
        }
        let expr = self.program.exprs.get(id);
        let own = usize::from(matches!(expr, Expr::Call(..)));
        let operands = expr.operands();
        let size = operands.into_iter().fold(own, |sum, operand| sum.saturating_add(self.size(operand)));
        self.sizes.insert(id, size);
        size
    }
}
