//! Matrix times vector: the same program, and the format that fits the matrix, beside our own CSR.

use super::load::{matrix, ones, only, tensor, told};
use super::turns::{Clock, Side, agree, run};
use crate::inputs;
use tamis::tensor::Coordinates;
use tamis::{DType, Format, Tensor, Value};

const SPMV: &str = include_str!("../../../examples/spmv.py");
const TRIANGLE: &str = include_str!("../../../examples/spmv_triangle.py");

/// What a matrix is stored as, and which program reads it.
#[derive(Clone, Copy)]
enum Way {
    /// All of it, in this format.
    Format(&'static str),
    /// Its lower triangle in this format, each entry used twice.
    Triangle(&'static str),
}

/// A study of one matrix.
struct Study {
    structure: &'static str,
    matrix: &'static str,
    /// Whether only places count, all values being 1.
    ones: bool,
    /// What all others are compared with.
    reference: &'static str,
    /// The type of values.
    dtype: DType,
    ways: &'static [Way],
    /// How many times faster than CSR the best way is to be, if anything was said.
    target: Option<f64>,
}

const fn study(structure: &'static str, matrix: &'static str, ways: &'static [Way], target: Option<f64>) -> Study {
    Study { structure, matrix, ones: false, reference: "csr", dtype: DType::F64, ways, target }
}

/// CSR with coordinates of 64 bits, as SciPy has it for large matrices.
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
    pattern(study("pattern", matrix, &[Way::Format("csr; pattern")], Some(1.0)))
}

const RUNS: &[Way] = &[Way::Format("dense, runs"), Way::Format("dense, sparse_runs")];

const STUDIES: &[Study] = &[
    study("list", "rand(200000,200000; 0.00005)", &[Way::Format("dcsr"), Way::Format("coo")], None),
    graph("rmat(17,16)"),
    graph("soc-Slashdot0902.mtx.gz"),
    graph("cit-HepPh.mtx.gz"),
    graph("email-Enron.mtx.gz"),
    study("blocks", "blocked(16000,4; 0.002)", &[Way::Format("bsr(4,4)"), Way::Format("dense, blocks")], None),
    study("blocks", "blocked(16000,8; 0.002)", &[Way::Format("bsr(8,8)"), Way::Format("dense, blocks")], None),
    study("blocks", "bcsstk16.mtx.gz", &[Way::Format("bsr(3,3)"), Way::Format("dense, blocks")], None),
    study("blocks", "bcsstk32.mtx.gz", &[Way::Format("bsr(2,2)"), Way::Format("dense, blocks")], None),
    study("band", "banded(600,50)", &[Way::Format("dense, band")], Some(2.0)),
    study("band", "banded(3000,100)", &[Way::Format("dense, band")], Some(2.0)),
    study("band", "banded(10000,100)", &[Way::Format("dense, band")], Some(2.0)),
    study("band", "banded(100000,8)", &[Way::Format("dense, band")], Some(2.0)),
    single(study("band", "banded(3000,100)", &[Way::Format("dense, band")], Some(2.0))),
    single(study("band", "banded(100000,8)", &[Way::Format("dense, band")], Some(2.0))),
    wide(study("band", "banded(10000,100)", &[Way::Format("dense, band")], Some(2.0))),
    study("diagonals", "laplacian(700)", &[Way::Format("(i,j) -> (j-i, i): sparse, dense")], None),
    study("triangle", "triangular(350)", &[Way::Format("dense, band")], Some(2.5)),
    study("triangle", "triangular(1000)", &[Way::Format("dense, band")], Some(2.5)),
    study("triangle", "triangular(2000)", &[Way::Format("dense, band")], Some(2.5)),
    study("triangle", "triangular(4000)", &[Way::Format("dense, band")], Some(2.5)),
    study("runs", "skimage-phantom.pgm.gz", RUNS, None),
    pattern(study("runs", "mask-airplanes.pbm.gz", RUNS, None)),
    pattern(study("runs", "scan-feyn.pbm.gz", RUNS, None)),
    single(study("triangle", "triangular(1000)", &[Way::Format("dense, band")], Some(2.5))),
    single(study("triangle", "triangular(4000)", &[Way::Format("dense, band")], Some(2.5))),
    wide(study("triangle", "triangular(4000)", &[Way::Format("dense, band")], Some(2.5))),
    study("permutation", "permutation(1000000)", &[Way::Format("dense, singleton")], None),
    study("symmetric", "laplacian3(100)", &[Way::Triangle("csr")], Some(1.3)),
    study("symmetric", "bcsstk32.mtx.gz", &[Way::Triangle("csr")], Some(1.3)),
    study("symmetric", "bcsstk16.mtx.gz", &[Way::Triangle("csr")], None),
];

/// Prints the table; what is wrong with a row stands in it. `ratio` is how many times as fast as the first format of the matrix a format is, `bytes`
/// how many times smaller: what the ratio can be where both wait for memory.
pub fn table(chosen: &[String], clock: Clock) -> bool {
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

fn measure(study: &Study, clock: Clock) -> Result<(), String> {
    let entries = matrix(study.matrix)?;
    let entries = if study.ones { ones(&entries) } else { entries };
    let entries = Coordinates { values: entries.values.to_dtype(study.dtype), ..entries };
    let x = told(inputs::dense(&entries.shape[1..], study.dtype, "dense", 3))?;
    let mut sides = Vec::new();
    for way in [Way::Format(study.reference)].iter().chain(study.ways) {
        sides.push(side(*way, &entries, &x)?);
    }
    let bytes: Vec<usize> = sides.iter().map(|(_, bytes)| *bytes).collect();
    let mut sides: Vec<Side> = sides.into_iter().map(|(side, _)| side).collect();
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

/// A way to compute it, and the bytes of its matrix.
fn side(way: Way, entries: &Coordinates, x: &Tensor) -> Result<(Side, usize), String> {
    match way {
        Way::Format(format) => {
            let a = tensor(entries, format)?;
            let bytes = a.nbytes();
            Ok((Side::new(format, SPMV, &[a, x.clone()])?, bytes))
        }
        Way::Triangle(format) => {
            let lower = only(entries, |i, j| i > j);
            let diagonal = only(entries, |i, j| i == j);
            let mut values = vec![0.0; entries.shape[0] as usize];
            for k in 0..diagonal.len() {
                values[diagonal.columns[0].get(k) as usize] = diagonal.values.get(k).as_c128().re;
            }
            let diagonal = Tensor::from_dense(&entries.shape[..1], values.into(), &Format::dense(1), Value::F64(0.0));
            let tensors = [tensor(&lower, format)?, told(diagonal)?, x.clone()];
            let bytes = tensors[0].nbytes() + tensors[1].nbytes();
            Ok((Side::new(&format!("{format}, one triangle"), TRIANGLE, &tensors)?, bytes))
        }
    }
}
