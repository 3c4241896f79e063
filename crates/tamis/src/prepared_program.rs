//! Prepared loop programs: parsed once, with their executables memoised by the layouts of the
//! tensors.

use crate::compile::{CompileOptions, Executable, compile};
use crate::results::Results;
use crate::signature::{CallArgument, Signature};
use crate::warnings::WarningQueue;
use std::sync::RwLock;
use tamis_ir::{Code, Diagnostic, Diagnostics, Program};
use tamis_tensor::Tensor;

/// The maximum number of executables of a program; the oldest is evicted first.
const KEPT: usize = 16;

/// A loop program, with its executables memoised.
///
/// ```
/// use tamis::prelude::*;
/// let program = Program::parse("def f(x):\n    y = scalar(0.0)\n    for i in _:\n        y += x[i]\n    return y\n")?;
/// let total = tamis::compile::PreparedProgram::new(program);
/// let x = Tensor::from_dense(&[2], vec![3.0, 5.0].into(), &Format::dense(1), Value::F64(0.0))?;
/// assert_eq!(total.call(&[&x], &CompileOptions::default())?["y"].get(&[]), Some(Value::F64(8.0)));
/// # Ok::<(), Diagnostics>(())
/// ```
pub struct PreparedProgram {
    program: Program,
    executables: RwLock<Vec<Executable>>,
    warnings: WarningQueue,
}

impl PreparedProgram {
    /// Prepares a program; the first call compiles it.
    ///
    /// ```
    /// # use tamis::prelude::*;
    /// use tamis::compile::PreparedProgram;
    /// let program = Notation::parse("y[i] = 2 * x[i]")?.plain()?;
    /// let double = PreparedProgram::new(program);
    /// assert!(double.program().to_string().contains("y[i] = 2 * x[i]"));
    /// # Ok::<(), Diagnostics>(())
    /// ```
    pub fn new(program: Program) -> PreparedProgram {
        PreparedProgram { program, executables: RwLock::default(), warnings: WarningQueue::default() }
    }

    /// The program.
    ///
    /// ```
    /// # use tamis::prelude::*;
    /// use tamis::compile::PreparedProgram;
    /// let program = Notation::parse("y[i] = 2 * x[i]")?.plain()?;
    /// let double = PreparedProgram::new(program);
    /// assert_eq!(double.program().params.len(), 1);
    /// # Ok::<(), Diagnostics>(())
    /// ```
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Runs it on tensors, in the order of its parameters.
    ///
    /// ```
    /// # use tamis::prelude::*;
    /// use tamis::compile::PreparedProgram;
    /// let program = Notation::parse("y[i] = 2 * x[i]")?.plain()?;
    /// let x = Tensor::from_dense(&[2], vec![3.0, 5.0].into(), &Format::dense(1), 0.0.into())?;
    /// let double = PreparedProgram::new(program);
    /// let y = double.call(&[&x], &CompileOptions::new())?.into_tensor()?;
    /// assert_eq!(y.get(&[1]), Some(Value::F64(10.0)));
    /// # Ok::<(), Diagnostics>(())
    /// ```
    pub fn call(&self, tensors: &[&Tensor], options: &CompileOptions) -> Result<Results, Diagnostics> {
        let program = &self.program;
        if tensors.len() != program.params.len() {
            let names: Vec<&str> = program.params.iter().map(|id| program.tensor(*id).name.as_str()).collect();
            let message = format!("`{}` takes {} tensors, not {}", program.name, names.len(), tensors.len());
            return Err(Diagnostic::new(Code::E0902, message).help(format!("pass {}", names.join(", "))).into());
        }
        let arguments = CallArgument::all(tensors);
        let fits = |executable: &&Executable| executable.options() == options && executable.takes(&arguments);
        let memoised = self.executables.read().ok().and_then(|all| all.iter().rev().find(fits).cloned());
        let executable = match memoised {
            Some(executable) => executable,
            None => {
                let executable = compile(program, &Signature::of(tensors), options)?;
                if let Ok(mut all) = self.executables.write() {
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
        executable.call_fitting(program, tensors, &arguments).map(|report| report.results)
    }

    /// Takes the performance warnings of the calls since the last time.
    ///
    /// ```
    /// # use tamis::prelude::*;
    /// use tamis::compile::PreparedProgram;
    /// let program = Notation::parse("y[i] = 2 * x[i]")?.plain()?;
    /// # let x = Tensor::from_dense(&[2], vec![3.0, 5.0].into(), &Format::dense(1), 0.0.into())?;
    /// let double = PreparedProgram::new(program);
    /// double.call(&[&x], &CompileOptions::new())?;
    /// assert!(double.take_warnings().is_empty());
    /// # Ok::<(), Diagnostics>(())
    /// ```
    pub fn take_warnings(&self) -> Vec<Diagnostic> {
        self.warnings.take()
    }
}
