//! The autoscheduler of index notation: loop orders, formats of results and temporaries,
//! conversions, tiling, fusion. [`schedule`] takes [`Notation`] and facts about its tensors
//! ([`OperandStatistics`]) and returns a [`NotationPlan`]: a loop program, conversions to run
//! first, and every decision with its alternatives and costs. Workspaces are inserted into the
//! program later, as for hand-written programs; the model includes their cost (`order`). `model`
//! holds the cost constants, `sets` estimates iteration spaces, `order` searches loop orders,
//! `formats` selects formats, `path` contracts products and substitutes temporaries, `tile` selects
//! tiles, `fuse` fuses loops, `nest` builds the loop nests.

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
pub use operand::OperandStatistics;
pub use order::{Choice, Cost, Problem, Writing};
pub use predict::{Prediction, predict};

use tamis_ir::notation::Notation;
use tamis_ir::program::ParamType;
use tamis_ir::{Diagnostics, Format, Program, interp};

/// Choices that the user has fixed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pins {
    /// The loop order: indices that come first in each statement that has them.
    pub order: Vec<String>,
    /// Formats of results and temporaries, by name.
    pub formats: Vec<(String, Format)>,
    /// Keeps statements as written: no splitting, substitution or fusion.
    pub separate: bool,
    /// Forbids conversions of operands.
    pub keep: bool,
}

/// A scheduling decision and its reason.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// Its subject: a statement or a tensor.
    pub about: String,
    /// The choice.
    pub choice: String,
    /// The reason.
    pub why: String,
    /// The alternatives with their costs.
    pub alternatives: Vec<String>,
}

/// An operand that is converted before the program runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Conversion {
    /// The given tensor.
    pub source: String,
    /// Its name in the program.
    pub name: String,
    /// The target format.
    pub format: Format,
}

/// The result of scheduling: a program and the conversions before it.
#[derive(Clone, Debug)]
pub struct NotationPlan {
    /// The program. Its parameters are given tensors or results of conversions.
    pub program: Program,
    /// The meaning of the notation: naive dense loops.
    pub meaning: Program,
    /// The conversions that run first.
    pub conversions: Vec<Conversion>,
    /// The decisions.
    pub decisions: Vec<Decision>,
    /// The predicted cost.
    pub cost: f64,
}

impl NotationPlan {
    /// The decisions as comments above the program.
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

/// Schedules index notation for parameters with these properties, in order.
pub fn schedule(
    notation: &Notation,
    types: &[ParamType],
    operands: &[OperandStatistics],
    costs: &Costs,
    pins: &Pins,
) -> Result<NotationPlan, Diagnostics> {
    let meaning = nest::plainest(notation, types)?;
    let checked = meaning.check(types)?;
    nest::Scheduler::new(notation, &meaning, &checked, operands, costs, pins).plan(meaning.clone(), types)
}

/// The meaning of notation: naive loops over all coordinates, with dense results.
pub fn meaning(notation: &Notation, types: &[ParamType]) -> Result<Program, Diagnostics> {
    nest::plainest(notation, types)
}

/// The types and the statistics of tensors, for checking and for scheduling.
pub fn describe(tensors: &[&tamis_tensor::Tensor]) -> (Vec<ParamType>, Vec<OperandStatistics>) {
    (
        tensors.iter().map(|t| interp::param_type(*t)).collect(),
        tensors.iter().map(|t| OperandStatistics::of(t)).collect(),
    )
}
