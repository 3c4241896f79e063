//! Index notation that schedules itself: loops, their order, formats of results and temporaries, conversions.
//!
//! [`schedule`] takes what is to be computed ([`Notation`]) and what is known of its tensors ([`Operand`]), and gives a [`Plan`]: a
//! loop program, tensors to convert first, and every decision with its alternatives and their costs. Workspaces are inserted into the
//! program later, as for programs written by hand; their cost is part of the model (`order`).
//!
//! `model` holds the constants, `sets` says where an expression is not constant, `order` searches orders of loops, `formats`
//! chooses formats, `path` splits products and removes temporaries, `tile` cuts loops, `fuse` shares them, `nest` makes loops of it
//! all.

mod emit;
pub mod fit;
mod formats;
mod fuse;
pub mod model;
mod nest;
mod operand;
mod order;
mod path;
mod predict;
mod sets;
mod tile;

pub use model::Costs;
pub use operand::Operand;
pub use order::{Choice, Cost, Problem, Writing};
pub use predict::{Prediction, predict};

use tamis_ir::notation::Notation;
use tamis_ir::program::ParamType;
use tamis_ir::{Diagnostics, Format, Program, interp};

/// What a user wants to be so, whatever it costs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pins {
    /// The order of loops: indices that come first, in each statement that has them.
    pub order: Vec<String>,
    /// Formats of results and temporaries, by name.
    pub formats: Vec<(String, Format)>,
    /// Statements are taken as they are: nothing is split, inlined or fused.
    pub separate: bool,
    /// Tensors that are given are read as they are stored: none is converted.
    pub keep: bool,
}

/// What was decided, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// What it is about: a statement, a tensor.
    pub about: String,
    /// What was chosen.
    pub choice: String,
    /// Why.
    pub why: String,
    /// What else could have been, and its cost.
    pub alternatives: Vec<String>,
}

/// A parameter that is converted before the program runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Conversion {
    /// The tensor that is given.
    pub source: String,
    /// What the program calls it.
    pub name: String,
    /// The format it is converted to.
    pub format: Format,
}

/// A schedule: a program, and what to do before it.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The program. Its parameters are tensors that are given, or that conversions make.
    pub program: Program,
    /// What is to be computed, in the plainest loops: the meaning of the notation.
    pub meaning: Program,
    /// What is converted first.
    pub conversions: Vec<Conversion>,
    /// What was decided.
    pub decisions: Vec<Decision>,
    /// What it is expected to cost.
    pub cost: f64,
}

impl Plan {
    /// What was decided, as comments above the program.
    pub fn comments(&self) -> String {
        let mut lines = Vec::new();
        for decision in &self.decisions {
            lines.push(format!("# {}: {}; {}", decision.about, decision.choice, decision.why));
            lines.extend(decision.alternatives.iter().map(|other| format!("#     instead of {other}")));
        }
        for Conversion { source, name, format } in &self.conversions {
            lines.push(format!("# {name} = convert({source}, \"{format}\")"));
        }
        lines.push(format!("# expected to cost {:.3e} steps\n", self.cost));
        lines.join("\n")
    }
}

/// Schedules index notation for parameters of which this is known, in order.
pub fn schedule(
    notation: &Notation,
    types: &[ParamType],
    operands: &[Operand],
    costs: &Costs,
    pins: &Pins,
) -> Result<Plan, Diagnostics> {
    let meaning = nest::plainest(notation, types)?;
    let checked = meaning.check(types)?;
    nest::Scheduler::new(notation, &meaning, &checked, operands, costs, pins).plan(meaning.clone(), types)
}

/// What notation means: plain loops over everything, with dense results.
pub fn meaning(notation: &Notation, types: &[ParamType]) -> Result<Program, Diagnostics> {
    nest::plainest(notation, types)
}

/// What a program needs to know of tensors, and a scheduler.
pub fn describe(tensors: &[&tamis_tensor::Tensor]) -> (Vec<ParamType>, Vec<Operand>) {
    (tensors.iter().map(|t| interp::param_type(*t)).collect(), tensors.iter().map(|t| Operand::of(t)).collect())
}
