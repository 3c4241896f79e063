//! Prepared index notation: parsed once, with its schedules memoised by the formats and sizes of
//! the operands.

use super::{CompiledNotation, EinsumOptions, compile, plan};
use crate::compile::OutputSlice;
use crate::results::Results;
use crate::signature::CallArgument;
use crate::warnings::WarningQueue;
use std::borrow::Cow;
use std::sync::{Arc, RwLock};
use tamis_ir::algebra::Op;
use tamis_ir::notation::Notation;
use tamis_ir::{Code, DType, Diagnostic, Diagnostics, Format, FormatSpec};
use tamis_tensor::{LiteralRange, Tensor};

/// The maximum number of schedules of notation; the oldest is evicted first.
const KEPT: usize = 16;

/// Converts an operand, given by its position, to a format. The caller may memoise conversions.
///
/// ```
/// # use tamis::prelude::*;
/// let x = Tensor::from_dense(&[2], vec![3.0, 5.0].into(), &Format::dense(1), 0.0.into())?;
/// use tamis::notation::{ConvertOperand, PreparedNotation};
/// let total = PreparedNotation::new("s = x[i]", &["x"], &[], EinsumOptions::new())?;
/// let convert: &ConvertOperand = &|_, format| x.convert(format);
/// assert_eq!(total.call(&[&x], convert)?["s"].get(&[]), Some(Value::F64(8.0)));
/// # Ok::<(), Diagnostics>(())
/// ```
pub type ConvertOperand<'a> = dyn Fn(usize, &Format) -> Result<Tensor, Diagnostic> + 'a;

/// Parsed index notation, with its schedules memoised.
///
/// A schedule serves tensors of the same formats and types whose sizes and nnz have the same number
/// of binary digits, so they differ by less than a factor of two. Other tensors get a schedule of
/// their own.
///
/// ```
/// use tamis::prelude::*;
/// let dot = tamis::notation::PreparedNotation::new("s = x[i] * y[i]", &["x", "y"], &[], EinsumOptions::default())?;
/// let x = Tensor::from_dense(&[2], vec![3.0, 5.0].into(), &Format::dense(1), Value::F64(0.0))?;
/// let results = dot.call(&[&x, &x], &|_, format| x.convert(format))?;
/// assert_eq!(results[0].get(&[]), Some(Value::F64(34.0)));
/// # Ok::<(), Diagnostics>(())
/// ```
pub struct PreparedNotation {
    notation: Notation,
    params: Vec<String>,
    options: EinsumOptions,
    schedules: RwLock<Vec<Arc<MemoisedSchedule>>>,
    warnings: WarningQueue,
}

/// A schedule, and the scales of the operands that it serves.
struct MemoisedSchedule {
    operands: Vec<OperandScale>,
    /// For each parameter of the program, the position of its operand, and the format to convert
    /// to.
    sources: Vec<(usize, Option<Format>)>,
    compiled: CompiledNotation,
}

/// The properties of an operand that a schedule depends on; sizes and nnz up to a factor of two.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct OperandScale {
    format: Format,
    dtype: DType,
    /// The number of binary digits of each size.
    size_bits: Vec<u32>,
    nnz_bits: u32,
    literal: Option<LiteralRange>,
}

impl PreparedNotation {
    /// Parses notation. `operands` are the names of the given tensors: NumPy's spelling takes them
    /// in order, and calls its result `out`; otherwise, an update of a given tensor starts from its
    /// values.
    ///
    /// ```
    /// # use tamis::prelude::*;
    /// use tamis::notation::PreparedNotation;
    /// let prepare = |text| PreparedNotation::new(text, &["A", "x"], &[], EinsumOptions::new());
    /// let (named, numpy) = (prepare("y[i] = A[i,j] * x[j]")?, prepare("ij,j->i")?);
    /// assert_eq!(named.params(), numpy.params());
    /// # Ok::<(), Diagnostics>(())
    /// ```
    pub fn new(
        text: &str,
        operands: &[&str],
        ops: &[Op],
        options: EinsumOptions,
    ) -> Result<PreparedNotation, Diagnostics> {
        let notation = if is_numpy_spelling(text) {
            Notation::einsum(text, operands, "out")?
        } else {
            Notation::parse_given(&tamis_ir::Source::new("notation", text), ops, operands)?
        };
        let params = notation.params().into_iter().map(String::from).collect();
        Ok(PreparedNotation {
            notation,
            params,
            options,
            schedules: RwLock::default(),
            warnings: WarningQueue::default(),
        })
    }

    /// The names of the tensors that it reads, in the order in which they are given.
    ///
    /// ```
    /// # use tamis::prelude::*;
    /// use tamis::notation::PreparedNotation;
    /// let options = EinsumOptions::new();
    /// let product = PreparedNotation::new("y[i] = A[i,j] * x[j]", &[], &[], options)?;
    /// assert_eq!(product.params(), ["A", "x"]);
    /// # Ok::<(), Diagnostics>(())
    /// ```
    pub fn params(&self) -> &[String] {
        &self.params
    }

    /// The notation.
    ///
    /// ```
    /// # use tamis::prelude::*;
    /// use tamis::notation::PreparedNotation;
    /// let product = PreparedNotation::new("ij,j->i", &["A", "x"], &[], EinsumOptions::new())?;
    /// assert_eq!(product.notation().results(), ["out"]);
    /// # Ok::<(), Diagnostics>(())
    /// ```
    pub fn notation(&self) -> &Notation {
        &self.notation
    }

    /// The options that it is computed with.
    ///
    /// ```
    /// # use tamis::prelude::*;
    /// use tamis::notation::PreparedNotation;
    /// let options = EinsumOptions::new().order(["j", "i"]);
    /// let product = PreparedNotation::new("y[i] = A[i,j] * x[j]", &[], &[], options.clone())?;
    /// assert_eq!(product.options(), &options);
    /// # Ok::<(), Diagnostics>(())
    /// ```
    pub fn options(&self) -> &EinsumOptions {
        &self.options
    }

    /// Fixes the format of a result or temporary; of every result, if `name` is none.
    ///
    /// ```
    /// # use tamis::prelude::*;
    /// # let values = vec![1.0, 0.0, 0.0, 4.0].into();
    /// # let a = Tensor::from_dense(&[2, 2], values, &Format::csr(), 0.0.into())?;
    /// use tamis::notation::PreparedNotation;
    /// let options = EinsumOptions::new();
    /// let mut double = PreparedNotation::new("C[i,j] = 2 * A[i,j]", &[], &[], options)?;
    /// double.pin(Some("C"), &"coo".parse()?)?;
    /// let c = double.call(&[&a], &|_, format| a.convert(format))?.into_tensor()?;
    /// assert_eq!(c.format(), &Format::coo(2));
    /// # Ok::<(), Diagnostics>(())
    /// ```
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

    /// Computes it on tensors, in the order of [`PreparedNotation::params`]. `convert` converts the
    /// operands that a schedule reads in another format.
    ///
    /// ```
    /// # use tamis::prelude::*;
    /// let values = vec![1.0, 0.0, 0.0, 4.0].into();
    /// let a = Tensor::from_dense(&[2, 2], values, &Format::csr(), 0.0.into())?;
    /// use tamis::notation::PreparedNotation;
    /// let sums = PreparedNotation::new("y[i] = A[i,j]", &[], &[], EinsumOptions::new())?;
    /// let results = sums.call(&[&a], &|_, format| a.convert(format))?;
    /// assert_eq!(results["y"].get(&[1]), Some(Value::F64(4.0)));
    /// # Ok::<(), Diagnostics>(())
    /// ```
    pub fn call(&self, tensors: &[&Tensor], convert: &ConvertOperand) -> Result<Results, Diagnostics> {
        self.call_into(tensors, convert, &mut [])
    }

    /// [`PreparedNotation::call`], with memory of the caller for results, as
    /// [`Executable::call_into`](crate::compile::Executable::call_into) takes it. Gives the results
    /// that were not written there.
    ///
    /// ```
    /// # use tamis::prelude::*;
    /// use tamis::compile::OutputSlice;
    /// use tamis::notation::PreparedNotation;
    /// let options = EinsumOptions::new().format("y", Format::dense(1));
    /// let twice = PreparedNotation::new("y[i] = 2 * x[i]", &[], &[], options)?;
    /// let x = Tensor::from_dense(&[2], vec![3.0, 5.0].into(), &Format::dense(1), 0.0.into())?;
    /// let mut y = [0.0; 2];
    /// let mut places = [Some(OutputSlice::new(&mut y, &[2])?)];
    /// assert!(twice.call_into(&[&x], &|_, format| x.convert(format), &mut places)?.is_empty());
    /// assert_eq!(y, [6.0, 10.0]);
    /// # Ok::<(), Diagnostics>(())
    /// ```
    pub fn call_into(
        &self,
        tensors: &[&Tensor],
        convert: &ConvertOperand,
        outputs: &mut [Option<OutputSlice>],
    ) -> Result<Results, Diagnostics> {
        self.check_count(tensors)?;
        let memoised =
            self.schedules.read().ok().and_then(|all| all.iter().rev().find(|one| one.serves(tensors)).cloned());
        if let Some(memoised) = memoised
            && let Some(outcome) = memoised.call(tensors, convert, outputs)
        {
            // Operands that do not fit each other are diagnosed in the notation, not in its loops.
            return outcome.map_err(|errors| plan(&self.notation, tensors, &self.options.pins).err().unwrap_or(errors));
        }
        let compiled = compile(&self.notation, tensors, &self.options)?;
        let names: Vec<&str> = self.params.iter().map(String::as_str).collect();
        self.warnings.push(&compiled.warnings(), &names, tensors);
        let memoised = Arc::new(MemoisedSchedule::new(compiled.clone(), tensors));
        if let Ok(mut all) = self.schedules.write() {
            if all.len() >= KEPT {
                all.remove(0);
            }
            all.push(memoised);
        }
        compiled.call_timed_into(tensors, outputs).map(|report| report.results)
    }

    /// Takes the performance warnings of the calls since the last time.
    ///
    /// ```
    /// # use tamis::prelude::*;
    /// use tamis::notation::PreparedNotation;
    /// let options = EinsumOptions::new();
    /// let product = PreparedNotation::new("y[i] = A[i,j] * x[j]", &[], &[], options)?;
    /// for warning in product.take_warnings() {
    ///     eprintln!("{warning}");
    /// }
    /// # Ok::<(), Diagnostics>(())
    /// ```
    pub fn take_warnings(&self) -> Vec<Diagnostic> {
        self.warnings.take()
    }

    /// The predicted cost for such tensors, in steps of the cost model, if they were scheduled
    /// before.
    ///
    /// ```
    /// # use tamis::prelude::*;
    /// # let values = vec![1.0, 0.0, 0.0, 4.0].into();
    /// # let a = Tensor::from_dense(&[2, 2], values, &Format::csr(), 0.0.into())?;
    /// use tamis::notation::PreparedNotation;
    /// let sums = PreparedNotation::new("y[i] = A[i,j]", &[], &[], EinsumOptions::new())?;
    /// assert!(sums.cost(&[&a]).is_none());
    /// sums.call(&[&a], &|_, format| a.convert(format))?;
    /// assert!(sums.cost(&[&a]).is_some_and(|steps| steps > 0.0));
    /// # Ok::<(), Diagnostics>(())
    /// ```
    pub fn cost(&self, tensors: &[&Tensor]) -> Option<f64> {
        let memoised = self.schedules.read().ok()?;
        memoised.iter().rev().find(|one| one.serves(tensors)).map(|one| one.compiled.plan.cost)
    }

    fn check_count(&self, tensors: &[&Tensor]) -> Result<(), Diagnostic> {
        if tensors.len() == self.params.len() {
            return Ok(());
        }
        let message = format!("the notation reads {} tensors, not {}", self.params.len(), tensors.len());
        Err(Diagnostic::new(Code::E0902, message).help(format!("pass {}", self.params.join(", "))))
    }
}

/// True if a text is NumPy's spelling, a single operand included.
fn is_numpy_spelling(text: &str) -> bool {
    let letters = !text.trim().is_empty() && text.chars().all(|c| c.is_ascii_alphabetic() || c.is_whitespace());
    letters || Notation::is_einsum(text)
}

impl MemoisedSchedule {
    fn new(compiled: CompiledNotation, tensors: &[&Tensor]) -> MemoisedSchedule {
        let program = &compiled.plan.program;
        let format = |name: &str| {
            let conversion = compiled.plan.conversions.iter().find(|c| c.name == name);
            conversion.map(|conversion| conversion.format.clone())
        };
        let params = program.params.iter().zip(&compiled.sources);
        let sources = params.map(|(id, source)| (*source, format(&program.tensor(*id).name))).collect();
        MemoisedSchedule {
            operands: tensors.iter().map(|tensor| OperandScale::of(tensor)).collect(),
            sources,
            compiled,
        }
    }

    fn serves(&self, tensors: &[&Tensor]) -> bool {
        self.operands.iter().zip(tensors).all(|(scale, tensor)| scale.matches(tensor))
    }

    /// Calls it; none if the executable was compiled for other widths or fills.
    fn call(
        &self,
        tensors: &[&Tensor],
        convert: &ConvertOperand,
        outputs: &mut [Option<OutputSlice>],
    ) -> Option<Result<Results, Diagnostics>> {
        let executable = &self.compiled.executable;
        let options = executable.options();
        if options.interpret || options.check {
            return Some(self.compiled.call(tensors));
        }
        let converted = self.sources.iter().map(|(source, format)| match (format, tensors.get(*source)) {
            (Some(format), _) => convert(*source, format).map(Cow::Owned),
            (None, Some(tensor)) => Ok(Cow::Borrowed(*tensor)),
            (None, None) => {
                Err(Diagnostic::new(Code::E0902, "a tensor is missing").help("pass one for each parameter"))
            }
        });
        let converted: Vec<Cow<Tensor>> = match converted.collect() {
            Ok(converted) => converted,
            Err(d) => return Some(Err(d.into())),
        };
        let refs: Vec<&Tensor> = converted.iter().map(|tensor| tensor.as_ref()).collect();
        let arguments = CallArgument::all(&refs);
        if !executable.takes(&arguments) {
            return None;
        }
        let outcome = executable.call_fitting_into(executable.program(), &refs, &arguments, outputs);
        Some(outcome.map(|report| report.results))
    }
}

impl OperandScale {
    fn of(tensor: &Tensor) -> OperandScale {
        OperandScale {
            format: tensor.format().clone(),
            dtype: tensor.dtype(),
            size_bits: tensor.shape().iter().map(|n| binary_digits(*n)).collect(),
            nnz_bits: binary_digits(tensor.nnz() as u64),
            literal: tensor.literal_range(),
        }
    }

    /// True if a tensor is of this scale; the same as `OperandScale::of(tensor) == *self`, without
    /// allocation.
    fn matches(&self, tensor: &Tensor) -> bool {
        let shape = tensor.shape();
        self.dtype == tensor.dtype()
            && self.size_bits.len() == shape.len()
            && self.size_bits.iter().zip(shape).all(|(bits, n)| *bits == binary_digits(*n))
            && self.nnz_bits == binary_digits(tensor.nnz() as u64)
            && self.format == *tensor.format()
            && self.literal == tensor.literal_range()
    }
}

fn binary_digits(n: u64) -> u32 {
    u64::BITS - n.leading_zeros()
}
