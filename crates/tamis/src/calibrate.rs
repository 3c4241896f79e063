//! Calibration of the cost model: fits its constants to kernels measured on this machine.
//!
//! [`calibrate()`] measures kernels of every kind, fits the constants by least squares on
//! logarithms, and reports predictions before and after. [`costs`] reads the constants that a
//! previous calibration saved; schedules are made with them.

pub use tamis_compiler::auto::Costs;
pub use tamis_compiler::auto::fit::Fit;
pub use tamis_compiler::auto::model::FIELDS;

use crate::compile::CompileOptions;
use crate::notation::{EinsumOptions, compile_with_costs};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use tamis_compiler::auto::{self, Pins, fit};
use tamis_ir::notation::Notation;
use tamis_ir::{Code, DType, Diagnostic, Diagnostics, Format, FormatSpec, Value};
use tamis_tensor::{Combine, Tensor, gallery};

/// The environment variable that names the file of constants; `default` for the built-in ones.
///
/// ```
/// use tamis::calibrate::{VARIABLE, costs_file};
/// let named = std::env::var_os(VARIABLE).filter(|name| !name.is_empty() && name != "default");
/// assert!(named.is_none_or(|name| costs_file() == Some(name.into())));
/// ```
pub const VARIABLE: &str = "TAMIS_COSTS";

/// The file of this machine's constants: [`VARIABLE`], or a file in the user's configuration
/// folder.
///
/// ```
/// match tamis::calibrate::costs_file() {
///     Some(path) => println!("constants of this machine: {}", path.display()),
///     None => println!("the built-in constants are used"),
/// }
/// ```
pub fn costs_file() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    match set(VARIABLE) {
        Some(path) if path.as_os_str() == "default" => None,
        Some(path) => Some(path),
        None => {
            let settings = set("XDG_CONFIG_HOME").filter(|path| path.is_absolute());
            Some(settings.or_else(|| Some(set("HOME")?.join(".config")))?.join("tamis").join("costs"))
        }
    }
}

/// The constants of this machine, read once: those of the file, or the built-in ones.
///
/// ```
/// let costs = tamis::calibrate::costs()?;
/// assert!(costs.merge_step > 0.0);
/// # Ok::<(), tamis::Diagnostic>(())
/// ```
pub fn costs() -> Result<Costs, Diagnostic> {
    static COSTS: OnceLock<Result<Costs, Diagnostic>> = OnceLock::new();
    COSTS.get_or_init(read_costs).clone()
}

fn read_costs() -> Result<Costs, Diagnostic> {
    let Some(path) = costs_file() else { return Ok(Costs::default()) };
    match read_bounded(&path) {
        Ok(text) => Costs::parse(&text).map_err(|d| d.note(format!("they are in {}", path.display()))),
        // A file that the user names must exist.
        Err(_) if std::env::var_os(VARIABLE).is_none_or(|value| value.is_empty()) => Ok(Costs::default()),
        Err(error) => {
            Err(Diagnostic::new(Code::E0906, format!("{VARIABLE} names a file that cannot be read: {error}"))
                .help(format!("unset it, or write the file with `tamis calibrate --save`: {}", path.display())))
        }
    }
}

/// Reads a file of at most [`MAX_BYTES`].
fn read_bounded(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    let length = std::fs::File::open(path)?.take(MAX_BYTES + 1).read_to_string(&mut text)?;
    match length as u64 > MAX_BYTES {
        true => Err(std::io::Error::other(format!("it is longer than {MAX_BYTES} bytes"))),
        false => Ok(text),
    }
}

/// No file of constants is longer.
const MAX_BYTES: u64 = 1 << 20;

/// A kernel to measure: index notation, the order of its loops, and its tensors with formats.
struct Case(&'static str, &'static str, &'static [(&'static str, &'static str, &'static str)]);

const CSR: (&str, &str, &str) = ("A", "random(4000, 4000, density=0.005, seed=1)", "csr");
const CSC: (&str, &str, &str) = ("A", "random(4000, 4000, density=0.005, seed=1)", "csc");
const DCSR: (&str, &str, &str) = ("A", "random(4000, 4000, density=0.005, seed=1)", "dcsr");
const OTHER: (&str, &str, &str) = ("B", "random(4000, 4000, density=0.005, seed=2)", "csr");
const SMALL: (&str, &str, &str) = ("A", "random(1000, 1000, density=0.01, seed=1)", "csr");
const SMALL_CSC: (&str, &str, &str) = ("A", "random(1000, 1000, density=0.01, seed=1)", "csc");
const SMALL_B: (&str, &str, &str) = ("B", "random(1000, 1000, density=0.01, seed=2)", "csr");
const X: (&str, &str, &str) = ("x", "random(4000, density=1, seed=3)", "dense");
const WIDE: (&str, &str, &str) = ("D", "random(4000, 32, density=1, seed=4)", "dense, dense");
const TALL: (&str, &str, &str) = ("E", "random(4000, 32, density=1, seed=5)", "dense, dense");
const DENSE: (&str, &str, &str) = ("F", "random(200, 200, density=1, seed=6)", "dense, dense");
const DENSE_TOO: (&str, &str, &str) = ("G", "random(200, 200, density=1, seed=7)", "dense, dense");
const CUBE: (&str, &str, &str) = ("T", "random(300, 300, 300, density=0.002, seed=8)", "csf");

/// The measured kernels: loops of every kind, in good orders and in bad ones.
const CASES: [Case; 24] = [
    Case("y[i] = A[i,j] * x[j]", "i,j", &[CSR, X]),
    Case("y[i] = A[i,j] * x[j]", "j,i", &[CSC, X]),
    Case("y[i] = A[i,j] * x[j]", "i,j", &[DCSR, X]),
    Case("y[i] = A[i,j] * x[j]", "j,i", &[CSR, X]),
    Case("y[i] = A[i,j] * x[j]", "i,j", &[CSC, X]),
    Case("s = A[i,j]", "i,j", &[CSR]),
    Case("C[i,k] = A[i,j] * D[j,k]", "i,j,k", &[CSR, WIDE]),
    Case("C[i,k] = A[i,j] * D[j,k]", "i,k,j", &[CSR, WIDE]),
    Case("C[i,k] = A[i,j] * D[j,k]", "j,i,k", &[CSC, WIDE]),
    Case("C[i,j] = A[i,j] + B[i,j]", "i,j", &[CSR, OTHER]),
    Case("C[i,j] = A[i,j] * B[i,j]", "i,j", &[CSR, OTHER]),
    Case("s = A[i,j] * B[i,j]", "i,j", &[CSR, OTHER]),
    Case("C[i,j] = A[i,j] * 2", "i,j", &[CSR]),
    Case("C[i,k] = A[i,j] * B[j,k]", "i,j,k", &[SMALL, SMALL_B]),
    Case("C[i,k] = A[i,j] * B[j,k]", "j,i,k", &[SMALL_CSC, SMALL_B]),
    Case("C[i,k] = A[i,j] * B[j,k]", "i,k,j", &[SMALL, ("B", "random(1000, 1000, density=0.01, seed=2)", "csc")]),
    Case("S[i,j] = A[i,j] * D[i,k] * E[j,k]", "i,j,k", &[CSR, WIDE, TALL]),
    Case("H[i,k] = F[i,j] * G[j,k]", "i,j,k", &[DENSE, DENSE_TOO]),
    Case("H[i,k] = F[i,j] * G[j,k]", "i,k,j", &[DENSE, DENSE_TOO]),
    Case("H[i,j] = F[i,j] + G[i,j]", "i,j", &[DENSE, DENSE_TOO]),
    Case("H[i,j] = F[j,i]", "i,j", &[DENSE]),
    Case(
        "M[i,l] = T[i,j,k] * P[j,l] * Q[k,l]",
        "i,j,k,l",
        &[
            CUBE,
            ("P", "random(300, 16, density=1, seed=9)", "dense, dense"),
            ("Q", "random(300, 16, density=1, seed=10)", "dense, dense"),
        ],
    ),
    Case("y[i,j] = T[i,j,k] * z[k]", "i,j,k", &[CUBE, ("z", "random(300, density=1, seed=11)", "dense")]),
    Case("C[i,j] = A[i,j] + B[i,j]", "i,j", &[CSC, OTHER]),
];

/// A measured kernel, with the times that the cost model predicts.
///
/// ```no_run
/// # use tamis::prelude::*;
/// // Takes a second or two.
/// for kernel in tamis::calibrate(None)?.kernels {
///     println!("{}: {:?}, predicted {:?}", kernel.notation, kernel.time, kernel.after);
/// }
/// # Ok::<(), Diagnostics>(())
/// ```
#[derive(Clone, Debug)]
pub struct MeasuredKernel {
    /// The index notation that it computes.
    pub notation: String,
    /// The order of its loops.
    pub order: String,
    /// The formats of its tensors.
    pub formats: String,
    /// The measured time.
    pub time: Duration,
    /// The time that the previous constants predict, with the step length that fits them best.
    pub before: Duration,
    /// The time that the fitted constants predict.
    pub after: Duration,
}

/// The outcome of a calibration.
///
/// ```no_run
/// # use tamis::prelude::*;
/// // Takes a second or two.
/// let calibration = tamis::calibrate(None)?;
/// assert!(calibration.fit.after <= calibration.fit.before, "predictions improve");
/// std::fs::write("costs", calibration.fit.costs.to_string())?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Calibration {
    /// The measured kernels.
    pub kernels: Vec<MeasuredKernel>,
    /// The previous constants.
    pub before: Costs,
    /// The fitted constants, the length of a step, and the remaining error.
    pub fit: Fit,
}

/// Measures kernels on this machine for a second or two, and fits the constants of the cost model
/// to them. `progress` receives the number of kernels that were measured, and of all.
///
/// ```no_run
/// // Takes a second or two.
/// let calibration = tamis::calibrate(Some(&|done, all| eprintln!("{done} of {all} kernels")))?;
/// println!("a step takes {:.2} ns", calibration.fit.step * 1e9);
/// # Ok::<(), tamis::Diagnostics>(())
/// ```
pub fn calibrate(progress: Option<&dyn Fn(u64, u64)>) -> Result<Calibration, Diagnostics> {
    // The named file may not exist yet: a calibration writes it.
    let exists = costs_file().is_some_and(|path| path.exists());
    let before = if exists { costs()? } else { Costs::default() };
    let (mut kernels, mut samples) = (Vec::new(), Vec::new());
    for (done, Case(text, order, inputs)) in CASES.iter().enumerate() {
        if let Some(progress) = progress {
            progress(done as u64, CASES.len() as u64);
        }
        let notation = Notation::parse(text)?;
        let tensors = inputs.iter().map(|(_, call, format)| tensor(call, format)).collect::<Result<Vec<_>, _>>()?;
        let refs: Vec<&Tensor> = notation
            .params()
            .iter()
            .filter_map(|name| inputs.iter().position(|(known, ..)| known == name).map(|at| &tensors[at]))
            .collect();
        let order_pinned: Vec<String> = order.split(',').map(String::from).collect();
        let pins = Pins { order: order_pinned, separate: true, ..Pins::default() };
        let options = EinsumOptions { compile: CompileOptions::default(), pins };
        let seconds = measured(&before, &notation, &refs, &options)?;
        let (types, operands) = auto::describe(&refs);
        let cost = |costs: &Costs| {
            auto::schedule(&notation, &types, &operands, costs, &options.pins).map_or(f64::NAN, |plan| plan.cost)
        };
        let sample = fit::sample(&before, seconds, cost);
        let formats: Vec<&str> = inputs.iter().map(|(_, _, format)| *format).collect();
        kernels.push(MeasuredKernel {
            notation: text.to_string(),
            order: order.to_string(),
            formats: formats.join("; "),
            time: Duration::from_secs_f64(seconds),
            before: Duration::ZERO,
            after: Duration::ZERO,
        });
        samples.push(sample);
    }
    let fit = fit::fit(&before, &samples);
    let ratios = samples.iter().map(|s| s.seconds / fit::predict(&before, s)).map(f64::ln);
    let step = (ratios.sum::<f64>() / samples.len().max(1) as f64).exp();
    let time = |seconds: f64| Duration::try_from_secs_f64(seconds).unwrap_or_default();
    for (kernel, sample) in kernels.iter_mut().zip(&samples) {
        kernel.before = time(fit::predict(&before, sample) * step);
        kernel.after = time(fit::predict(&fit.costs, sample) * fit.step);
    }
    Ok(Calibration { kernels, before, fit })
}

/// The least time of a few calls, conversions included.
fn measured(
    costs: &Costs,
    notation: &Notation,
    tensors: &[&Tensor],
    options: &EinsumOptions,
) -> Result<f64, Diagnostics> {
    const TIME: Duration = Duration::from_millis(40);
    let scheduled = compile_with_costs(costs, notation, tensors, options)?;
    let (start, mut least) = (Instant::now(), f64::INFINITY);
    for call in 0.. {
        if call >= 3 && start.elapsed() > TIME {
            break;
        }
        let before = Instant::now();
        std::hint::black_box(tamis_tensor::with_threads(1, || scheduled.call(tensors))?);
        least = least.min(before.elapsed().as_secs_f64());
    }
    Ok(least)
}

fn tensor(call: &str, format: &str) -> Result<Tensor, Diagnostic> {
    let entries = gallery::generate(call)?;
    let format: Format = FormatSpec::parse(format)?.with_rank(entries.shape.len())?;
    Tensor::from_coordinates(&entries, &format, Value::zero(DType::F64), Combine::Error)
}
