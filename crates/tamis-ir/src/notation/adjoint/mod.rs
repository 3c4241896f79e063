//! Automatic differentiation of index notation: reverse mode (gradients) and forward mode (tangents), notation to notation.
//!
//! For `R[o] = sum e(A1[s1], ..., Ak[sk])` each occurrence of a tensor gives `gAk[sk] += gR[o] * de/dAk`: the same index space,
//! the same subscripts, reading and writing exchanged. So the adjoint of statements is again statements, and the scheduler and
//! the lowerer do the rest. The steps: [`normal`] gives every version one kind of assignment, [`reverse`] visits them last to
//! first, [`chain`] differentiates expressions, [`emit`] writes what flows to one tensor as statements, [`support`] keeps
//! cotangents of sparse values sparse, [`save`] decides which values the forward pass keeps, [`forward`] is forward mode.
//!
//! The gradient of an operand that is stored sparsely lives on its *pattern*: it is multiplied by the operand `A_pattern`,
//! which is true where `A` stores an element, so nothing is computed elsewhere. This module knows neither formats nor
//! schedules: the caller says which operands have a pattern ([`Differentiate::patterns`]).

mod chain;
mod emit;
mod forward;
mod normal;
mod reverse;
mod save;
mod support;
mod text;
mod tree;

pub(in crate::notation) use normal::combined;
pub(in crate::notation) use text::{clause as range_text, expression as expression_text};
pub(in crate::notation) use tree::{mentions, select as selected};

use super::{Notation, indices_in};
use crate::algebra::Op;
use crate::diag::{Code, Diagnostic, Diagnostics, Result, Source, did_you_mean};
use rustc_hash::FxHashSet;

/// What is differentiated, and what may be assumed of the tensors.
///
/// ```
/// use tamis_ir::Notation;
/// use tamis_ir::notation::Differentiate;
/// let spmv = Notation::parse("y[i] = A[i,j] * x[j]")?;
/// let adjoint = Differentiate::new(["A", "x"]).patterns(["A"]).adjoint(&spmv)?;
/// assert_eq!(adjoint.text, "gA[i, j] = A_pattern[i, j] * gy[i] * x[j]\ngx[j] = gy[i] * A[i, j]");
/// assert_eq!(adjoint.cotangents, [("y".to_string(), "gy".to_string())]);
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Differentiate {
    wrt: Vec<String>,
    results: Vec<String>,
    patterns: Vec<String>,
    zero_fills: Vec<String>,
    complex: Vec<String>,
    save: bool,
    allow_zero: bool,
}

fn names<S: Into<String>>(names: impl IntoIterator<Item = S>) -> Vec<String> {
    names.into_iter().map(Into::into).collect()
}

/// Setters that chain.
impl Differentiate {
    /// Differentiates with respect to these operands.
    ///
    /// ```
    /// use tamis_ir::notation::{Differentiate, Notation};
    /// let adjoint = Differentiate::new(["x"]).adjoint(&Notation::parse("L = x[i] * x[i]")?)?;
    /// assert_eq!(adjoint.gradients, [("x".to_string(), "gx".to_string())]);
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn new<S: Into<String>>(wrt: impl IntoIterator<Item = S>) -> Differentiate {
        Differentiate { wrt: names(wrt), ..Differentiate::default() }
    }

    /// Differentiates these results; by default all.
    ///
    /// ```
    /// use tamis_ir::notation::{Differentiate, Notation};
    /// let notation = Notation::parse("y[i] = 2 * x[i]; z[i] = 3 * x[i]")?;
    /// let adjoint = Differentiate::new(["x"]).results(["z"]).adjoint(&notation)?;
    /// assert_eq!(adjoint.cotangents, [("z".to_string(), "gz".to_string())]);
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn results<S: Into<String>>(self, results: impl IntoIterator<Item = S>) -> Differentiate {
        Differentiate { results: names(results), ..self }
    }

    /// These operands do not store every element: their gradients live on their patterns.
    ///
    /// ```
    /// use tamis_ir::notation::{Differentiate, Notation};
    /// let spmv = Notation::parse("y[i] = A[i,j] * x[j]")?;
    /// let adjoint = Differentiate::new(["A"]).patterns(["A"]).adjoint(&spmv)?;
    /// assert_eq!(adjoint.text, "gA[i, j] = A_pattern[i, j] * gy[i] * x[j]");
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn patterns<S: Into<String>>(self, patterns: impl IntoIterator<Item = S>) -> Differentiate {
        Differentiate { patterns: names(patterns), ..self }
    }

    /// Of the operands with patterns, those whose fill is 0: products with them are as sparse as they are.
    ///
    /// ```
    /// use tamis_ir::notation::{Differentiate, Notation};
    /// let product = Notation::parse("L = A[i,j] * A[i,j]")?;
    /// let request = Differentiate::new(["A"]).patterns(["A"]).zero_fills(["A"]);
    /// assert_eq!(request.adjoint(&product)?.gradients.len(), 1);
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn zero_fills<S: Into<String>>(self, operands: impl IntoIterator<Item = S>) -> Differentiate {
        Differentiate { zero_fills: names(operands), ..self }
    }

    /// These operands hold complex numbers.
    ///
    /// ```
    /// use tamis_ir::notation::{Differentiate, Notation};
    /// let product = Notation::parse("y[i] = w[i] * x[i]")?;
    /// let adjoint = Differentiate::new(["x"]).complex(["w", "x"]).adjoint(&product)?;
    /// assert!(adjoint.text.contains("conj(w[i])"));
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn complex<S: Into<String>>(self, operands: impl IntoIterator<Item = S>) -> Differentiate {
        Differentiate { complex: names(operands), ..self }
    }

    /// The forward pass may save values for the adjoint: those that cost more to recompute than to store.
    ///
    /// ```
    /// use tamis_ir::notation::{Differentiate, Notation};
    /// let notation = Notation::parse("t[i] = A[i,j] * x[j]; y[i] = exp(t[i])")?;
    /// let adjoint = Differentiate::new(["x"]).save(true).adjoint(&notation)?;
    /// println!("{}\nsaves {:?}", adjoint.forward, adjoint.saved);
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn save(self, save: bool) -> Differentiate {
        Differentiate { save, ..self }
    }

    /// Gradients that are zero everywhere are listed in [`Adjoint::zeros`], and are no mistake.
    ///
    /// ```
    /// use tamis_ir::notation::{Differentiate, Notation};
    /// let steps = Notation::parse("y[i] = floor(x[i])")?;
    /// assert!(Differentiate::new(["x"]).adjoint(&steps).is_err());
    /// assert_eq!(Differentiate::new(["x"]).allow_zero(true).adjoint(&steps)?.zeros, ["x"]);
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn allow_zero(self, allow_zero: bool) -> Differentiate {
        Differentiate { allow_zero, ..self }
    }

    /// Reverse mode: statements that compute the gradients from the cotangents of the results.
    ///
    /// ```
    /// use tamis_ir::notation::{Differentiate, Notation};
    /// let square = Notation::parse("L = x[i] * x[i]")?;
    /// let adjoint = Differentiate::new(["x"]).adjoint(&square)?;
    /// assert_eq!(Notation::parse(&adjoint.text)?.results(), ["gx"]);
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn adjoint(&self, notation: &Notation) -> std::result::Result<Adjoint, Diagnostics> {
        let checked = self.check(notation).and_then(|()| reverse::adjoint(self, notation));
        checked.map_err(|d| Diagnostics(vec![d.with_source(&notation.source)])).and_then(|adjoint| {
            // Where all gradients are zero, there is no statement.
            if !adjoint.gradients.is_empty() {
                parses(&adjoint.text, &notation.operators)?;
            }
            Ok(adjoint)
        })
    }

    /// Forward mode: statements that compute the tangents of the results from those of the operands.
    ///
    /// ```
    /// use tamis_ir::Notation;
    /// use tamis_ir::notation::Differentiate;
    /// let spmv = Notation::parse("y[i] = A[i,j] * sin(x[j])")?;
    /// let tangents = Differentiate::new(["x"]).tangents(&spmv)?;
    /// assert_eq!(tangents.text, "dy[i] = sum[j](dx[j] * cos(x[j]) * A[i, j])");
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn tangents(&self, notation: &Notation) -> std::result::Result<Tangents, Diagnostics> {
        let checked = self.check(notation).and_then(|()| forward::tangents(self, notation));
        checked.map_err(|d| Diagnostics(vec![d.with_source(&notation.source)])).and_then(|tangents| {
            if !tangents.results.is_empty() {
                parses(&tangents.text, &notation.operators)?;
            }
            Ok(tangents)
        })
    }

    /// Every name is an operand or a result.
    fn check(&self, notation: &Notation) -> Result<()> {
        let lists = [
            (&self.wrt, notation.params(), "operand", "reads"),
            (&self.results, notation.results(), "result", "computes"),
        ];
        for (given, known, what, verb) in lists {
            if let Some(name) = given.iter().find(|name| !known.contains(&name.as_str())) {
                let d = Diagnostic::new(Code::E0116, format!("the notation has no {what} `{name}`"));
                let d = match did_you_mean(name, known.iter().copied()) {
                    Some(meant) => d.help(format!("did you mean `{meant}`?")),
                    None => d,
                };
                return Err(d.help(format!("it {verb} {}", known.join(", "))));
            }
        }
        match self.wrt.is_empty() {
            true => Err(Diagnostic::new(Code::E0116, "there is no operand to differentiate with respect to")
                .help(format!("name one of {}", notation.params().join(", ")))),
            false => Ok(()),
        }
    }

    fn wants(&self, result: &str) -> bool {
        self.results.is_empty() || self.results.iter().any(|name| name == result)
    }
}

/// Statements that compute gradients. They read the operands of the notation, the cotangents of its results, patterns of
/// operands, and what the forward pass saved.
///
/// ```
/// use tamis_ir::notation::{Differentiate, Notation};
/// let spmv = Notation::parse("y[i] = A[i,j] * x[j]")?;
/// let adjoint = Differentiate::new(["x"]).adjoint(&spmv)?;
/// assert_eq!(adjoint.text, "gx[j] = gy[i] * A[i, j]");
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Adjoint {
    /// Index notation; its results are the gradients.
    pub text: String,
    /// The results that are differentiated, with the operands of [`Adjoint::text`] that hold their cotangents.
    pub cotangents: Vec<(String, String)>,
    /// The operands, with the results of [`Adjoint::text`] that are their gradients.
    pub gradients: Vec<(String, String)>,
    /// The operands whose gradients are zero everywhere; empty unless that is allowed.
    pub zeros: Vec<String>,
    /// The operands whose patterns [`Adjoint::text`] reads, with the names of the patterns.
    pub patterns: Vec<(String, String)>,
    /// The notation of the forward pass: it computes the results, and the values that are saved.
    pub forward: String,
    /// The values that the forward pass saves: results of [`Adjoint::forward`], with the operands of [`Adjoint::text`] that they
    /// are.
    pub saved: Vec<(String, String)>,
    /// The values of the forward pass that [`Adjoint::text`] computes again.
    pub recomputed: Vec<String>,
}

/// Statements that compute tangents.
///
/// ```
/// use tamis_ir::notation::{Differentiate, Notation};
/// let spmv = Notation::parse("y[i] = A[i,j] * x[j]")?;
/// let tangents = Differentiate::new(["x"]).tangents(&spmv)?;
/// assert_eq!(tangents.operands, [("x".to_string(), "dx".to_string())]);
/// assert_eq!(tangents.results, [("y".to_string(), "dy".to_string())]);
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Tangents {
    /// Index notation; its results are the tangents of the results.
    pub text: String,
    /// The operands, with the operands of [`Tangents::text`] that hold their tangents.
    pub operands: Vec<(String, String)>,
    /// The results, with the results of [`Tangents::text`] that are their tangents.
    pub results: Vec<(String, String)>,
    /// The results whose tangents are zero everywhere.
    pub zeros: Vec<String>,
}

/// Names that nothing has yet.
#[derive(Default)]
pub(in crate::notation) struct Fresh {
    taken: FxHashSet<String>,
}

impl Fresh {
    fn of(notation: &Notation) -> Fresh {
        let mut fresh = Fresh::default();
        fresh.taken.extend(notation.params().into_iter().chain(notation.operands()).map(String::from));
        for assignment in &notation.assignments {
            fresh.taken.insert(assignment.target.text.clone());
            fresh.taken.extend(assignment.indices());
            let mut bound = Vec::new();
            indices_in(&assignment.body, false, &mut bound);
            fresh.taken.extend(bound.into_iter().map(|name| name.text));
        }
        fresh
    }

    /// A name, or the name with a number.
    fn exactly(&mut self, name: &str) -> String {
        if self.taken.insert(name.to_string()) { name.to_string() } else { self.name(name) }
    }

    /// A name with a number.
    fn name(&mut self, base: &str) -> String {
        (1..).map(|k| format!("{base}_{k}")).find(|name| self.taken.insert(name.clone())).unwrap_or_default()
    }

    /// A name with a word.
    fn suffixed(&mut self, base: &str, word: &str) -> String {
        self.exactly(&format!("{base}_{word}"))
    }
}

/// Checks that what was made is notation; a statement may have become too long.
fn parses(text: &str, operators: &[Op]) -> std::result::Result<(), Diagnostics> {
    let source = Source::new("derivative", text);
    let Err(errors) = Notation::parse_source(&source, operators) else { return Ok(()) };
    let first = errors.0.first().map(|d| (d.code, d.message.clone()));
    Err(match first {
        Some((Code::E0105, message)) => {
            let d = Diagnostic::new(Code::E0105, format!("the derivative is too long: {message}"));
            Diagnostics(vec![d.help("bind subexpressions to names in statements of their own")])
        }
        _ => errors,
    })
}

/// The definitions of the user-defined operators that statements call, as text.
fn definitions(text: &str, operators: &[Op]) -> String {
    let called = operators.iter().filter_map(|op| match op {
        Op::User(user) if text.contains(&format!("{}(", user.name())) => Some(*user),
        _ => None,
    });
    called.map(crate::program::definition_text).collect()
}
