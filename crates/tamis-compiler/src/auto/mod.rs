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
mod words;

pub use model::Costs;
pub use operand::OperandStatistics;
pub use predict::{Prediction, predict};

use tamis_ir::notation::Notation;
use tamis_ir::program::ParamType;
use tamis_ir::{Diagnostics, Format, Program, interp};

/// Choices that the user has fixed.
///
/// ```
/// use tamis_compiler::auto::Pins;
/// let pins = Pins { order: vec!["j".into(), "i".into()], keep: true, ..Pins::default() };
/// assert!(!pins.separate);
/// ```
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
///
/// ```
/// # use tamis_compiler::auto::{Costs, Pins, describe, schedule};
/// # use tamis_ir::{Format, Notation, Value};
/// # use tamis_tensor::Tensor;
/// # let values = vec![1.0, 0.0, 0.0, 4.0].into();
/// # let a = Tensor::from_dense(&[2, 2], values, &Format::csr(), Value::F64(0.0))?;
/// # let (types, operands) = describe(&[&a]);
/// # let sums = Notation::parse("y[i] = A[i,j]")?;
/// let plan = schedule(&sums, &types, &operands, &Costs::default(), &Pins::default())?;
/// for decision in &plan.decisions {
///     println!("{}: {}, because {}", decision.about, decision.choice, decision.why);
/// }
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
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
///
/// ```
/// # use tamis_compiler::auto::{Costs, Pins, describe, schedule};
/// # use tamis_ir::{Format, Notation, Value};
/// # use tamis_tensor::Tensor;
/// # let values = vec![1.0, 0.0, 0.0, 4.0].into();
/// # let a = Tensor::from_dense(&[2, 2], values, &Format::csr(), Value::F64(0.0))?;
/// # let (types, operands) = describe(&[&a]);
/// # let sums = Notation::parse("y[i] = A[i,j]")?;
/// let plan = schedule(&sums, &types, &operands, &Costs::default(), &Pins::default())?;
/// for conversion in &plan.conversions {
///     println!("{} is {} as `{}`", conversion.name, conversion.source, conversion.format);
/// }
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
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
///
/// ```
/// # use tamis_compiler::auto::{Costs, Pins, describe, schedule};
/// # use tamis_ir::{Format, Notation, Value};
/// # use tamis_tensor::Tensor;
/// # let values = vec![1.0, 0.0, 0.0, 4.0].into();
/// # let a = Tensor::from_dense(&[2, 2], values, &Format::csr(), Value::F64(0.0))?;
/// # let (types, operands) = describe(&[&a]);
/// # let sums = Notation::parse("y[i] = A[i,j]")?;
/// let plan = schedule(&sums, &types, &operands, &Costs::default(), &Pins::default())?;
/// assert!(plan.program.to_string().contains("for i, j in _:") && plan.cost > 0.0);
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
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
    ///
    /// ```
    /// # use tamis_compiler::auto::{Costs, Pins, describe, schedule};
    /// # use tamis_ir::{Format, Notation, Value};
    /// # use tamis_tensor::Tensor;
    /// # let values = vec![1.0, 0.0, 0.0, 4.0].into();
    /// # let a = Tensor::from_dense(&[2, 2], values, &Format::csr(), Value::F64(0.0))?;
    /// # let (types, operands) = describe(&[&a]);
    /// # let sums = Notation::parse("y[i] = A[i,j]")?;
    /// let plan = schedule(&sums, &types, &operands, &Costs::default(), &Pins::default())?;
    /// assert!(plan.comments().contains("# expected to cost"));
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
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
///
/// ```
/// use tamis_compiler::auto::{Costs, Pins, describe, schedule};
/// # use tamis_ir::{Format, Notation, Value};
/// # use tamis_tensor::Tensor;
/// # let values = vec![1.0, 0.0, 0.0, 4.0].into();
/// # let a = Tensor::from_dense(&[2, 2], values, &Format::csr(), Value::F64(0.0))?;
/// let (types, operands) = describe(&[&a]);
/// let sums = Notation::parse("y[i] = A[i,j]")?;
/// let plan = schedule(&sums, &types, &operands, &Costs::default(), &Pins::default())?;
/// assert!(plan.program.to_string().contains("y[i] += A[i, j]"));
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
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
///
/// ```
/// use tamis_compiler::auto::meaning;
/// use tamis_ir::{DType, Notation, program::ParamType};
/// let shape = vec![Some(2), Some(3)];
/// let matrix = ParamType { dtype: DType::F64, shape, value: None, weak: false };
/// let plain = meaning(&Notation::parse("y[i] = A[i,j]")?, &[matrix])?;
/// assert!(plain.to_string().contains("y[i] += A[i, j]"));
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
pub fn meaning(notation: &Notation, types: &[ParamType]) -> Result<Program, Diagnostics> {
    nest::plainest(notation, types)
}

/// The types and the statistics of tensors, for checking and for scheduling.
///
/// ```
/// # use tamis_ir::{Format, Value};
/// # use tamis_tensor::Tensor;
/// let x = Tensor::from_dense(&[2], vec![3.0, 5.0].into(), &Format::dense(1), Value::F64(0.0))?;
/// let (types, operands) = tamis_compiler::auto::describe(&[&x]);
/// assert_eq!((types[0].shape[0], operands[0].entries), (Some(2), 2.0));
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
pub fn describe(tensors: &[&tamis_tensor::Tensor]) -> (Vec<ParamType>, Vec<OperandStatistics>) {
    (
        tensors.iter().map(|t| interp::param_type(*t)).collect(),
        tensors.iter().map(|t| OperandStatistics::of(t)).collect(),
    )
}
