//! Generator of programs of several statements in index notation over a few names, so that
//! reassignments, updates and self-references are frequent.

use crate::generate::{Case, Input, enlarged};
use crate::random::Random;
use std::fmt::Write;
use tamis::Notation;
use tamis::notation::Pins;
use tamis_ir::{DType, Value};

/// The size of all dimensions.
pub const N: usize = 4;

/// A term of a right-hand side: a number for each `i`.
pub enum Term {
    /// `c * x[i]`
    Scaled(f64, String),
    /// `x[i] * y[i]`
    Product(String, String),
    /// `A[i,j] * x[j]`, or with `A[j,i]`
    MatVec(String, bool, String),
    /// `sum[k](x[k])`
    Total(String),
}

/// The form of a statement.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// `t[i] = ...`, of a new name.
    First,
    /// `t[i] += ...`
    Add,
    /// `t[i] -= ...`
    Subtract,
    /// `t[i] = t[i] + ...`
    Reads,
}

/// A statement whose right-hand side is a sum of terms.
pub struct Statement {
    /// The name of the target.
    pub target: String,
    /// The form.
    pub form: Form,
    /// The terms.
    pub terms: Vec<Term>,
}

/// A program with its operands: vectors `a` and `b`, and a matrix `M`.
pub struct Statements {
    /// The statements, in order.
    pub statements: Vec<Statement>,
    /// The operands, by name.
    pub operands: Vec<(&'static str, Vec<f64>)>,
}

fn text_of(term: &Term) -> String {
    match term {
        Term::Scaled(c, x) => format!("{c:?} * {x}[i]"),
        Term::Product(a, b) => format!("{a}[i] * {b}[i]"),
        Term::MatVec(m, false, v) => format!("{m}[i,j] * {v}[j]"),
        Term::MatVec(m, true, v) => format!("{m}[j,i] * {v}[j]"),
        Term::Total(x) => format!("sum[k]({x}[k])"),
    }
}

impl Statements {
    /// A random program, from a seed.
    pub fn new(seed: u64) -> Statements {
        let mut random = Random(seed + 1);
        let number = |random: &mut Random| random.below(5) as f64 - 2.0;
        let mut operands = Vec::new();
        for name in ["a", "b"] {
            operands.push((name, (0..N).map(|_| number(&mut random)).collect()));
        }
        let element = |random: &mut Random| if random.one_in(2) { number(random) } else { 0.0 };
        operands.push(("M", (0..N * N).map(|_| element(&mut random)).collect()));
        let mut known: Vec<String> = vec!["a".into(), "b".into()];
        let mut statements = Vec::new();
        for _ in 0..2 + random.below(5) {
            let target = random.pick(&["a", "t", "u", "v"]).to_string();
            // The first term determines the extent of `i`.
            let term = |random: &mut Random, kinds: usize| match random.below(kinds) {
                0 => Term::Scaled(number(random), random.pick(&known).clone()),
                1 => Term::Product(random.pick(&known).clone(), random.pick(&known).clone()),
                2 => Term::MatVec("M".to_string(), random.one_in(2), random.pick(&known).clone()),
                _ => Term::Total(random.pick(&known).clone()),
            };
            let terms = (0..1 + random.below(2)).map(|k| term(&mut random, if k == 0 { 3 } else { 4 })).collect();
            // Every first assignment of an operand, and every second one of a temporary, reads its
            // target.
            let form = match (known.contains(&target), random.below(4)) {
                (false, _) => Form::First,
                (true, 0) => Form::Add,
                (true, 1) => Form::Subtract,
                (true, _) => Form::Reads,
            };
            if form == Form::First {
                known.push(target.clone());
                known.sort();
            }
            statements.push(Statement { target, form, terms });
        }
        Statements { statements, operands }
    }

    /// The program as text.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for Statement { target, form, terms } in &self.statements {
            let sum = terms.iter().map(text_of).collect::<Vec<_>>().join(" + ");
            let _ = match form {
                Form::First => writeln!(text, "{target}[i] = {sum}"),
                Form::Add => writeln!(text, "{target}[i] += {sum}"),
                Form::Subtract => writeln!(text, "{target}[i] -= {sum}"),
                Form::Reads => writeln!(text, "{target}[i] = {target}[i] + {sum}"),
            };
        }
        text
    }

    /// The program in index notation.
    ///
    /// # Panics
    /// If it is refused.
    pub fn notation(&self) -> Notation {
        let text = self.text();
        let source = tamis::diagnostic::Source::new("notation", text.as_str());
        match Notation::parse_given(&source, &[], &["a", "b", "M"]) {
            Ok(notation) => notation,
            Err(d) => panic!("{text}\n{}", d.render(false)),
        }
    }
}

/// How much larger the dimensions are that programs are scheduled for.
const SCHEDULED: u64 = 48;

/// The loop program that is chosen for a random program, with every dimension larger by `padding`.
/// The same loop program for every padding.
///
/// # Panics
/// If the program is refused.
pub fn padded(seed: u64, padding: u64) -> Case {
    let made = Statements::new(seed);
    let notation = made.notation();
    let inputs = |padding: u64| -> Vec<(String, Input)> {
        let size = enlarged(N as u64, padding);
        let input = |name: &str| {
            let (_, values) = made.operands.iter().find(|(operand, _)| *operand == name)?;
            let rank = if values.len() == N { 1 } else { 2 };
            let values = values.iter().map(|value| Value::F64(*value)).collect();
            let input = Input { shape: vec![N as u64; rank], values, dtype: DType::F64 };
            Some((name.to_string(), input.padded(&vec![size; rank])))
        };
        notation.params().into_iter().filter_map(input).collect()
    };
    let tensors: Vec<tamis::Tensor> = inputs(SCHEDULED)
        .iter()
        .map(|(_, input)| {
            let format = if input.shape.len() == 1 { "sparse" } else { "dcsr" };
            input.tensor(format).unwrap_or_else(|d| panic!("{d}"))
        })
        .collect();
    let operands: Vec<&tamis::Tensor> = tensors.iter().collect();
    let plan = tamis::notation::plan(&notation, &operands, &Pins::default());
    let plan = plan.unwrap_or_else(|d| panic!("{}\n{}", made.text(), d.render(false)));
    Case { text: plan.program.to_string(), inputs: inputs(padding) }
}
