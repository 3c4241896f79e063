//! SpMV case study: the same program with the format that suits the matrix, against Tamis' CSR.

use super::interleaved::{TimedVariant, TimingOptions, agree, run};
use super::load::{matrix, ones, only, rendered, tensor};
use crate::inputs;
use tamis::tensor::Coordinates;
use tamis::{DType, Format, Tensor, Value};

const SPMV: &str = include_str!("../../../examples/spmv.py");
const TRIANGLE: &str = include_str!("../../../examples/spmv_triangle.py");

/// A storage variant of a matrix, with its program.
#[derive(Clone, Copy)]
enum StorageVariant {
    /// The whole matrix in this format.
    Format(&'static str),
    /// Its lower triangle in this format, each entry used twice.
    Triangle(&'static str),
}

/// A study of one matrix.
struct Study {
    structure: &'static str,
    matrix: &'static str,
    /// True if only the pattern matters, with all values 1.
    ones: bool,
    /// The reference variant.
    reference: &'static str,
    /// The type of values.
    dtype: DType,
    variants: &'static [StorageVariant],
    /// The target speed-up of the best variant over CSR, if there is one.
    target: Option<f64>,
}

const fn study(
    structure: &'static str,
    matrix: &'static str,
    variants: &'static [StorageVariant],
    target: Option<f64>,
) -> Study {
    Study { structure, matrix, ones: false, reference: "csr", dtype: DType::F64, variants, target }
}

/// CSR with 64-bit coordinates, as SciPy uses for large matrices.
const fn wide(study: Study) -> Study {
    Study { reference: "dense, sparse[u64,u64]", ..study }
}

/// Values of single precision.
const fn single(study: Study) -> Study {
    Study { dtype: DType::F32, ..study }
}

/// All values 1.
const fn pattern(study: Study) -> Study {
    Study { ones: true, ..study }
}

const fn graph(matrix: &'static str) -> Study {
    pattern(study("pattern", matrix, &[StorageVariant::Format("csr; pattern")], Some(1.0)))
}

const RUNS: &[StorageVariant] = &[StorageVariant::Format("dense, runs"), StorageVariant::Format("dense, sparse_runs")];

const STUDIES: &[Study] = &[
    study(
        "list",
        "rand(200000,200000; 0.00005)",
        &[StorageVariant::Format("dcsr"), StorageVariant::Format("coo")],
        None,
    ),
    graph("rmat(17,16)"),
    graph("soc-Slashdot0902.mtx.gz"),
    graph("cit-HepPh.mtx.gz"),
    graph("email-Enron.mtx.gz"),
    study(
        "blocks",
        "blocked(16000,4; 0.002)",
        &[StorageVariant::Format("bsr(4,4)"), StorageVariant::Format("dense, blocks")],
        None,
    ),
    study(
        "blocks",
        "blocked(16000,8; 0.002)",
        &[StorageVariant::Format("bsr(8,8)"), StorageVariant::Format("dense, blocks")],
        None,
    ),
    study(
        "blocks",
        "bcsstk16.mtx.gz",
        &[StorageVariant::Format("bsr(3,3)"), StorageVariant::Format("dense, blocks")],
        None,
    ),
    study(
        "blocks",
        "bcsstk32.mtx.gz",
        &[StorageVariant::Format("bsr(2,2)"), StorageVariant::Format("dense, blocks")],
        None,
    ),
    study("band", "banded(600,50)", &[StorageVariant::Format("dense, band")], Some(2.0)),
    study("band", "banded(3000,100)", &[StorageVariant::Format("dense, band")], Some(2.0)),
    study("band", "banded(10000,100)", &[StorageVariant::Format("dense, band")], Some(2.0)),
    study("band", "banded(100000,8)", &[StorageVariant::Format("dense, band")], Some(2.0)),
    single(study("band", "banded(3000,100)", &[StorageVariant::Format("dense, band")], Some(2.0))),
    single(study("band", "banded(100000,8)", &[StorageVariant::Format("dense, band")], Some(2.0))),
    wide(study("band", "banded(10000,100)", &[StorageVariant::Format("dense, band")], Some(2.0))),
    study("diagonals", "laplacian(700)", &[StorageVariant::Format("(i,j) -> (j-i, i): sparse, dense")], None),
    study("triangle", "triangular(350)", &[StorageVariant::Format("dense, band")], Some(2.5)),
    study("triangle", "triangular(1000)", &[StorageVariant::Format("dense, band")], Some(2.5)),
    study("triangle", "triangular(2000)", &[StorageVariant::Format("dense, band")], Some(2.5)),
    study("triangle", "triangular(4000)", &[StorageVariant::Format("dense, band")], Some(2.5)),
    study("runs", "skimage-phantom.pgm.gz", RUNS, None),
    pattern(study("runs", "mask-airplanes.pbm.gz", RUNS, None)),
    pattern(study("runs", "scan-feyn.pbm.gz", RUNS, None)),
    single(study("triangle", "triangular(1000)", &[StorageVariant::Format("dense, band")], Some(2.5))),
    single(study("triangle", "triangular(4000)", &[StorageVariant::Format("dense, band")], Some(2.5))),
    wide(study("triangle", "triangular(4000)", &[StorageVariant::Format("dense, band")], Some(2.5))),
    study("permutation", "permutation(1000000)", &[StorageVariant::Format("dense, singleton")], None),
    study("symmetric", "laplacian3(100)", &[StorageVariant::Triangle("csr")], Some(1.3)),
    study("symmetric", "bcsstk32.mtx.gz", &[StorageVariant::Triangle("csr")], Some(1.3)),
    study("symmetric", "bcsstk16.mtx.gz", &[StorageVariant::Triangle("csr")], None),
];

/// Prints the table, with errors in their rows. `ratio` is the speed-up of a format over the first
/// one of the matrix, `bytes` the ratio of their sizes: the attainable speed-up where both are
/// memory-bound.
pub fn table(chosen: &[String], clock: TimingOptions) -> bool {
    println!(
        "{:<12} {:<30} {:>4} {:>9} {:<36} {:>9} {:>9} {:>9} {:>7} {:>7} {:>7}",
        "structure", "matrix", "type", "entries", "format", "kB", "ms", "(least)", "ratio", "bytes", "target"
    );
    let mut fine = true;
    for study in STUDIES {
        if !chosen.is_empty()
            && !chosen.iter().any(|word| study.structure == word || study.matrix.contains(word.as_str()))
        {
            continue;
        }
        if let Err(problem) = measure(study, clock) {
            println!("{:<12} {:<30} {problem}", study.structure, study.matrix);
            fine = false;
        }
    }
    fine
}

fn measure(study: &Study, clock: TimingOptions) -> Result<(), String> {
    let entries = matrix(study.matrix)?;
    let entries = if study.ones { ones(&entries) } else { entries };
    let entries = Coordinates { values: entries.values.to_dtype(study.dtype), ..entries };
    let x = rendered(inputs::dense(&entries.shape[1..], study.dtype, "dense", 3))?;
    let mut sides = Vec::new();
    for variant in [StorageVariant::Format(study.reference)].iter().chain(study.variants) {
        sides.push(side(*variant, &entries, &x)?);
    }
    let bytes: Vec<usize> = sides.iter().map(|(_, bytes)| *bytes).collect();
    let mut sides: Vec<TimedVariant> = sides.into_iter().map(|(side, _)| side).collect();
    agree(&mut sides)?;
    run(&mut sides, clock)?;
    let (first, largest) = (sides[0].median(), bytes[0] as f64);
    for (k, (side, bytes)) in sides.iter().zip(&bytes).enumerate() {
        let target = study.target.filter(|_| k > 0).map_or(String::new(), |target| format!("{target:.1}"));
        println!(
            "{:<12} {:<30} {:>4} {:>9} {:<36} {:>9} {:>9.3} {:>9.3} {:>7.2} {:>7.2} {:>7}",
            study.structure,
            study.matrix,
            study.dtype.name(),
            entries.len(),
            side.name,
            bytes / 1000,
            side.median(),
            side.least(),
            first / side.median(),
            largest / (*bytes).max(1) as f64,
            target
        );
    }
    Ok(())
}

/// A storage variant, and the bytes of its matrix.
fn side(variant: StorageVariant, entries: &Coordinates, x: &Tensor) -> Result<(TimedVariant, usize), String> {
    match variant {
        StorageVariant::Format(format) => {
            let a = tensor(entries, format)?;
            let bytes = a.nbytes();
            Ok((TimedVariant::new(format, SPMV, &[a, x.clone()])?, bytes))
        }
        StorageVariant::Triangle(format) => {
            let lower = only(entries, |i, j| i > j);
            let diagonal = only(entries, |i, j| i == j);
            let mut values = vec![0.0; entries.shape[0] as usize];
            for k in 0..diagonal.len() {
                values[diagonal.columns[0].get(k) as usize] = diagonal.values.get(k).as_c128().re;
            }
            let diagonal = Tensor::from_dense(&entries.shape[..1], values.into(), &Format::dense(1), Value::F64(0.0));
            let tensors = [tensor(&lower, format)?, rendered(diagonal)?, x.clone()];
            let bytes = tensors[0].nbytes() + tensors[1].nbytes();
            Ok((TimedVariant::new(&format!("{format}, one triangle"), TRIANGLE, &tensors)?, bytes))
        }
    }
}
