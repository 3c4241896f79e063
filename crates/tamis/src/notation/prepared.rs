//! Notation and programs that are called again and again: read once, with what was compiled for them kept beside them.

use super::{EinsumOptions, Scale, Scheduled, plan, scale, schedule};
use crate::compile::{CompileOptions, Executable, compile};
use crate::signature::{Argument, Signature};
use crate::warnings::WarningQueue;
use std::borrow::Cow;
use std::sync::{Arc, RwLock};
use tamis_ir::algebra::Op;
use tamis_ir::notation::Notation;
use tamis_ir::{Code, Diagnostic, Diagnostics, Format, FormatSpec, Program};
use tamis_tensor::Tensor;

/// How many schedules notation keeps, and how many executables a program; the oldest goes first.
const KEPT: usize = 16;

/// How tensors are converted: which of the given ones, and to which format. Whoever calls may remember what came of it.
pub type Convert<'a> = dyn Fn(usize, &Format) -> Result<Tensor, Diagnostic> + 'a;

/// Index notation that was read, and what it was scheduled to for the tensors it was called with.
///
/// A schedule serves tensors of the same formats and types whose sizes and numbers of entries have as many binary digits: they
/// differ by less than a factor of two. Other tensors are scheduled for anew.
///
/// ```
/// use tamis::prelude::*;
/// let dot = tamis::Prepared::new("s = x[i] * y[i]", &["x", "y"], &[], EinsumOptions::default())?;
/// let x = Tensor::from_dense(&[2], vec![3.0, 5.0].into(), &Format::dense(1), Value::F64(0.0))?;
/// let results = dot.call(&[&x, &x], &|_, format| x.convert(format))?;
/// assert_eq!(results[0].1.get(&[]), Some(Value::F64(34.0)));
/// # Ok::<(), Diagnostics>(())
/// ```
pub struct Prepared {
    notation: Notation,
    params: Vec<String>,
    options: EinsumOptions,
    kept: RwLock<Vec<Arc<Kept>>>,
    warnings: WarningQueue,
}

/// A schedule, and the tensors that it is for.
struct Kept {
    operands: Vec<Scale>,
    /// For each parameter of the program, which tensor it is, and the format that it is converted to.
    sources: Vec<(usize, Option<Format>)>,
    scheduled: Scheduled,
}

impl Prepared {
    /// Reads notation. `operands` are the names of what is given: those of NumPy's spelling, which has none, and whose result is
    /// called `out`; elsewhere, updates of them start from them.
    pub fn new(text: &str, operands: &[&str], ops: &[Op], options: EinsumOptions) -> Result<Prepared, Diagnostics> {
        let notation = if is_spelled_by_letters(text) {
            Notation::einsum(text, operands, "out")?
        } else {
            Notation::parse_given(&tamis_ir::Source::new("notation", text), ops, operands)?
        };
        let params = notation.params().into_iter().map(String::from).collect();
        Ok(Prepared { notation, params, options, kept: RwLock::default(), warnings: WarningQueue::default() })
    }

    /// The names of the tensors that it reads, in the order in which they are given.
    pub fn params(&self) -> &[String] {
        &self.params
    }

    /// The notation.
    pub fn notation(&self) -> &Notation {
        &self.notation
    }

    /// How it is computed.
    pub fn options(&self) -> &EinsumOptions {
        &self.options
    }

    /// Says in which format a result or temporary shall be; `None` means every result.
    pub fn pin(&mut self, name: Option<&str>, spec: &FormatSpec) -> Result<(), Diagnostic> {
        let results = self.notation.results();
        let names: Vec<String> = match name {
            Some(name) => vec![name.to_string()],
            None => results.iter().map(|name| name.to_string()).collect(),
        };
        for name in names {
            let found = self.notation.assignments.iter().find(|a| a.target.text == name && !a.temporary);
            let Some(assignment) = found else {
                let known = results.join(", ");
                let d = Diagnostic::new(Code::E0903, format!("the notation does not compute `{name}`"));
                return Err(d.help(format!("give formats to {known}; convert the tensors that it reads before")));
            };
            let format = spec.with_rank(assignment.subscripts.len())?;
            self.options.pins.formats.push((name, format));
        }
        Ok(())
    }

    /// Computes it on tensors, in the order of [`Prepared::params`]; gives its results by name. `convert` makes the
    /// tensors that a schedule wants in another format.
    pub fn call(&self, tensors: &[&Tensor], convert: &Convert) -> Result<Vec<(String, Tensor)>, Diagnostics> {
        self.check_count(tensors)?;
        let known = self.kept.read().ok().and_then(|kept| kept.iter().rev().find(|k| k.serves(tensors)).cloned());
        if let Some(kept) = known
            && let Some(outcome) = kept.call(tensors, convert)
        {
            // What does not fit is told in the words of the notation, not of the loops that it became.
            return outcome.map_err(|errors| plan(&self.notation, tensors, &self.options.pins).err().unwrap_or(errors));
        }
        let scheduled = schedule(&self.notation, tensors, &self.options)?;
        let names: Vec<&str> = self.params.iter().map(String::as_str).collect();
        self.warnings.push(&scheduled.executable.build().warnings, &names, tensors);
        let kept = Arc::new(Kept::new(scheduled.clone(), tensors));
        if let Ok(mut all) = self.kept.write() {
            if all.len() >= KEPT {
                all.remove(0);
            }
            all.push(kept);
        }
        scheduled.call(tensors)
    }

    /// Performance warnings of calls since the last time that this was asked; each is given once.
    pub fn take_warnings(&self) -> Vec<Diagnostic> {
        self.warnings.take()
    }

    /// What computing it on such tensors is expected to cost, in steps, if that was scheduled before.
    pub fn cost(&self, tensors: &[&Tensor]) -> Option<f64> {
        let kept = self.kept.read().ok()?;
        kept.iter().rev().find(|kept| kept.serves(tensors)).map(|kept| kept.scheduled.plan.cost)
    }

    fn check_count(&self, tensors: &[&Tensor]) -> Result<(), Diagnostic> {
        if tensors.len() == self.params.len() {
            return Ok(());
        }
        let message = format!("the notation reads {} tensors, not {}", self.params.len(), tensors.len());
        Err(Diagnostic::new(Code::E0902, message).help(format!("pass {}", self.params.join(", "))))
    }
}

/// Whether a text is NumPy's spelling, a single operand included.
fn is_spelled_by_letters(text: &str) -> bool {
    let letters = !text.trim().is_empty() && text.chars().all(|c| c.is_ascii_alphabetic() || c.is_whitespace());
    letters || Notation::is_einsum(text)
}

impl Kept {
    fn new(scheduled: Scheduled, tensors: &[&Tensor]) -> Kept {
        let program = &scheduled.plan.program;
        let format = |name: &str| {
            let conversion = scheduled.plan.conversions.iter().find(|c| c.name == name);
            conversion.map(|conversion| conversion.format.clone())
        };
        let params = program.params.iter().zip(&scheduled.sources);
        let sources = params.map(|(id, source)| (*source, format(&program.tensor(*id).name))).collect();
        Kept { operands: tensors.iter().map(|tensor| scale(tensor)).collect(), sources, scheduled }
    }

    fn serves(&self, tensors: &[&Tensor]) -> bool {
        self.operands.iter().zip(tensors).all(|(scale, tensor)| scale.is_of(tensor))
    }

    /// Calls it, unless the code is for arrays of other widths, or another fill.
    fn call(&self, tensors: &[&Tensor], convert: &Convert) -> Option<Result<Vec<(String, Tensor)>, Diagnostics>> {
        let executable = &self.scheduled.executable;
        let options = executable.options();
        if options.interpret || options.check {
            return Some(self.scheduled.call(tensors));
        }
        let made = self.sources.iter().map(|(source, format)| match (format, tensors.get(*source)) {
            (Some(format), _) => convert(*source, format).map(Cow::Owned),
            (None, Some(tensor)) => Ok(Cow::Borrowed(*tensor)),
            (None, None) => {
                Err(Diagnostic::new(Code::E0902, "a tensor is missing").help("pass one for each parameter"))
            }
        });
        let made: Vec<Cow<Tensor>> = match made.collect() {
            Ok(made) => made,
            Err(d) => return Some(Err(d.into())),
        };
        let refs: Vec<&Tensor> = made.iter().map(|tensor| tensor.as_ref()).collect();
        let arguments = Argument::all(&refs);
        if !executable.takes(&arguments) {
            return None;
        }
        Some(executable.call_fitting(executable.program(), &refs, &arguments).map(|timed| timed.results))
    }
}

impl Scale {
    /// Whether a tensor is of this scale.
    fn is_of(&self, tensor: &Tensor) -> bool {
        let bits = |n: u64| u64::BITS - n.leading_zeros();
        let shape = tensor.shape();
        self.dtype == tensor.dtype()
            && self.sizes.len() == shape.len()
            && self.sizes.iter().zip(shape).all(|(size, n)| *size == bits(*n))
            && self.entries == bits(tensor.nnz() as u64)
            && self.format == *tensor.format()
            && self.literal == tensor.literal_range()
    }
}

/// A loop program, and what it was compiled to for the tensors it was called with.
///
/// ```
/// use tamis::prelude::*;
/// let program = Program::parse("def f(x):\n    y = scalar(0.0)\n    for i in _:\n        y += x[i]\n    return y\n")?;
/// let total = tamis::PreparedProgram::new(program);
/// let x = Tensor::from_dense(&[2], vec![3.0, 5.0].into(), &Format::dense(1), Value::F64(0.0))?;
/// assert_eq!(total.call(&[&x], &CompileOptions::default())?[0].1.get(&[]), Some(Value::F64(8.0)));
/// # Ok::<(), Diagnostics>(())
/// ```
pub struct PreparedProgram {
    program: Program,
    kept: RwLock<Vec<Executable>>,
    warnings: WarningQueue,
}

impl PreparedProgram {
    /// A program to be called.
    pub fn new(program: Program) -> PreparedProgram {
        PreparedProgram { program, kept: RwLock::default(), warnings: WarningQueue::default() }
    }

    /// The program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Runs it on tensors, in the order of its parameters; gives its results by name.
    pub fn call(&self, tensors: &[&Tensor], options: &CompileOptions) -> Result<Vec<(String, Tensor)>, Diagnostics> {
        let program = &self.program;
        if tensors.len() != program.params.len() {
            let names: Vec<&str> = program.params.iter().map(|id| program.tensor(*id).name.as_str()).collect();
            let message = format!("`{}` takes {} tensors, not {}", program.name, names.len(), tensors.len());
            return Err(Diagnostic::new(Code::E0902, message).help(format!("pass {}", names.join(", "))).into());
        }
        let arguments = Argument::all(tensors);
        let fits = |kept: &&Executable| kept.options() == options && kept.takes(&arguments);
        let known = self.kept.read().ok().and_then(|kept| kept.iter().rev().find(fits).cloned());
        let executable = match known {
            Some(executable) => executable,
            None => {
                let executable = compile(program, &Signature::of(tensors), options)?;
                if let Ok(mut all) = self.kept.write() {
                    if all.len() >= KEPT {
                        all.remove(0);
                    }
                    all.push(executable.clone());
                }
                executable
            }
        };
        if !executable.build().warnings.is_empty() {
            let names: Vec<&str> = program.params.iter().map(|id| program.tensor(*id).name.as_str()).collect();
            self.warnings.push(&executable.build().warnings, &names, tensors);
        }
        executable.call_fitting(program, tensors, &arguments).map(|timed| timed.results)
    }

    /// Performance warnings of calls since the last time that this was asked; each is given once.
    pub fn take_warnings(&self) -> Vec<Diagnostic> {
        self.warnings.take()
    }
}
