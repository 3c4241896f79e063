//! Benchmark of sparse workspaces: outer products against row products (Gustavson) on the same
//! matrices, interleaved.
//!
//!     ./dev bench workspaces [--rounds N] [--largest PRODUCTS] [WORKSPACE ...] [MATRIX ...]
//!
//! One line per matrix and workspace: nanoseconds per scalar product as elapsed time and as CPU
//! time, which excludes other load; the ratio of CPU time to that of the row product (the target is
//! at most 4, for all sizes); and the peak bytes of the workspace per scalar product.
//!
//! Matrices are of two kinds, with rare and with frequent collisions of scalar products in an
//! element, of 10^4 to 10^8 scalar products; and squares of real matrices (files are searched for
//! in `TAMIS_DATA`).

use std::time::Instant;
use tamis::compile::WorkspaceReport as Report;
use tamis::io::{ReadOptions, read};
use tamis::tensor::Combine;
use tamis::{DType, Diagnostic, Format, Tensor, Value, gallery};
use tamis_benches::inputs::{random_rows, tensor};
use tamis_benches::measure::{difference, least, median};
use tamis_benches::ours::{TamisCall, ours, process_time};

const ROWS: &str = include_str!("../../../examples/gustavson.py");

/// The measured workspaces; the first one is the compiler's choice, and the default.
const WORKSPACES: [&str; 10] = [
    "coord",
    "coord, pipelined",
    "coord, 4096",
    "coord, 65536",
    "coord, 65536, pipelined",
    "hash",
    "hash, 65536",
    "bucket",
    "vector",
    "map",
];

/// Ordered maps are a worked example, and take minutes beyond.
const MOST_IN_MAPS: u64 = 2_000_000;

/// The factors of a product.
enum Factors {
    /// Two random matrices: the number of rows, and of entries per row.
    Random(u64, u64),
    /// The square of a matrix: a gallery call, or a file.
    Named(&'static str),
}

/// Each with the name of its kind.
const INPUTS: [(&str, Factors); 15] = [
    ("few", Factors::Random(625, 4)),
    ("few", Factors::Random(6_250, 4)),
    ("few", Factors::Random(62_500, 4)),
    ("few", Factors::Random(625_000, 4)),
    ("few", Factors::Random(6_250_000, 4)),
    ("many", Factors::Random(32, 18)),
    ("many", Factors::Random(100, 32)),
    ("many", Factors::Random(316, 56)),
    ("many", Factors::Random(1_000, 100)),
    ("many", Factors::Random(1_000, 316)),
    ("cage10", Factors::Named("cage10.mtx.gz")),
    ("ca-CondMat", Factors::Named("ca-CondMat.mtx.gz")),
    ("laplacian", Factors::Named("laplacian(300)")),
    ("email-Enron", Factors::Named("email-Enron.mtx.gz")),
    ("rmat", Factors::Named("rmat(14,16)")),
];

impl Factors {
    fn name(&self) -> String {
        match self {
            Factors::Random(n, per_row) => format!("{n} x {per_row} per row"),
            Factors::Named(name) => name.to_string(),
        }
    }

    /// The approximate number of scalar products, as far as it is known.
    fn about(&self) -> u64 {
        match self {
            Factors::Random(n, per_row) => n * per_row * per_row,
            Factors::Named(_) => 0,
        }
    }

    fn matrices(&self) -> Result<[Tensor; 2], Diagnostic> {
        match self {
            Factors::Random(n, per_row) => {
                let matrix = |seed| random_rows(*n, *per_row, seed).and_then(|entries| tensor(&entries, "csr"));
                Ok([matrix(1)?, matrix(2)?])
            }
            Factors::Named(name) => {
                let entries = if gallery::is_call(name) {
                    gallery::generate(name)?
                } else {
                    let data = std::env::var("TAMIS_DATA").unwrap_or_else(|_| "../shared/data/matrices".into());
                    read(format!("{data}/{name}"), &ReadOptions::default())?.try_to_coordinates()?
                };
                let matrix = Tensor::from_coordinates(&entries, &Format::csr(), Value::F64(0.0), Combine::Error)?;
                let matrix = matrix.cast(DType::F64);
                Ok([matrix.clone(), matrix])
            }
        }
    }
}

fn outer(workspace: &str) -> String {
    format!(
        "def outer(A, B):
    C = tensor(\"csr\")
    w = tensor(\"ism({workspace})\")
    for j, i, k in _:
        w[i,k] += A[i,j] * B[j,k]
    for i, k in _:
        C[i,k] = w[i,k]
    return C
"
    )
}

fn main() -> std::process::ExitCode {
    let (mut rounds, mut largest, mut workspaces, mut kinds) = (7, 110_000_000, Vec::new(), Vec::new());
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let number = |next: Option<String>| next.and_then(|n| n.parse::<f64>().ok()).filter(|n| *n >= 1.0);
        match word.as_str() {
            "--rounds" | "--largest" => match number(words.next()) {
                Some(n) if word == "--rounds" => rounds = n as usize,
                Some(n) => largest = n as u64,
                None => return usage(&format!("`{word}` takes a number")),
            },
            "all" => workspaces = WORKSPACES.to_vec(),
            word if INPUTS.iter().any(|(kind, _)| *kind == word) => kinds.push(word.to_string()),
            word => match WORKSPACES.iter().find(|workspace| **workspace == word) {
                Some(workspace) => workspaces.push(*workspace),
                None => return usage(&format!("there is no workspace and no matrix `{word}`")),
            },
        }
    }
    if workspaces.is_empty() {
        workspaces.push(WORKSPACES[0]);
    }
    println!(
        "{rounds} rounds; ns for each product: medians (and the least); the ratio of least processor times to products by rows"
    );
    println!(
        "{:<22} {:>10} {:>10} {:<28} {:>8} {:>8} {:>8} {:>8} {:>6} {:>8} {:>12}",
        "matrix",
        "products",
        "entries",
        "through",
        "wall",
        "(least)",
        "proc.",
        "(least)",
        "ratio",
        "flushes",
        "peak B/prod."
    );
    let mut wrong = false;
    for (kind, input) in &INPUTS {
        if input.about() > largest || !kinds.is_empty() && !kinds.iter().any(|word| word == kind) {
            continue;
        }
        if let Err(problem) = measure(input, &workspaces, rounds) {
            println!("{}: {problem}", input.name());
            wrong = true;
        }
    }
    u8::from(wrong).into()
}

fn usage(problem: &str) -> std::process::ExitCode {
    let kinds = "few | many | cage10 | ca-CondMat | laplacian | email-Enron | rmat";
    eprintln!("{problem}\n./dev bench workspaces [--rounds N] [--largest PRODUCTS] [{kinds}] [WORKSPACE | all]");
    eprintln!("workspaces: {WORKSPACES:?}");
    2.into()
}

/// A variant: its program, and the time of each round.
struct WorkspaceVariant {
    name: String,
    program: TamisCall,
    times: Vec<f64>,
    processor: Vec<f64>,
    report: Option<Report>,
}

impl WorkspaceVariant {
    fn new(name: &str, text: &str, tensors: &[Tensor]) -> Result<WorkspaceVariant, String> {
        Ok(WorkspaceVariant {
            name: name.to_string(),
            program: ours(text, tensors)?,
            times: Vec::new(),
            processor: Vec::new(),
            report: None,
        })
    }

    fn run(&mut self) -> Result<(), String> {
        let (start, processor) = (Instant::now(), process_time());
        self.program.call()?;
        self.processor.push(process_time().saturating_sub(processor).as_secs_f64());
        self.times.push(start.elapsed().as_secs_f64());
        self.report = self.program.report();
        Ok(())
    }
}

fn measure(input: &Factors, workspaces: &[&str], rounds: usize) -> Result<(), String> {
    let [a, b] = rendered(input.matrices())?;
    let products = products(&a, &b)?;
    let by_columns = rendered(tamis::Format::parse("dcsc", 2).and_then(|format| a.convert(&format)))?;
    let by_rows = rendered(tamis::Format::parse("dcsr", 2).and_then(|format| b.convert(&format)))?;
    let mut rows = WorkspaceVariant::new("by rows", ROWS, &[a, b])?;
    rows.program.call()?;
    let wanted = rows.program.results()?.into_iter().next().ok_or("there is no result")?;
    let numbers = |t: &Tensor| tamis_benches::inputs::values::<f64>(t);
    let mut sides = Vec::new();
    for workspace in workspaces {
        if *workspace == "map" && products > MOST_IN_MAPS {
            continue;
        }
        let mut side = WorkspaceVariant::new(
            &format!("ism({workspace})"),
            &outer(workspace),
            &[by_columns.clone(), by_rows.clone()],
        )?;
        side.program.call()?;
        let result = side.program.results()?.into_iter().next().ok_or("there is no result")?;
        let same = result.level_arrays(1) == wanted.level_arrays(1);
        let wrong = |d| format!("WRONG: {workspace}: {d}");
        if !same {
            return Err(wrong("entries at other places".into()));
        }
        difference(&numbers(&result)?, &numbers(&wanted)?, 1e-9).map_err(wrong)?;
        sides.push(side);
    }
    let entries = wanted.nnz();
    drop(wanted);
    // Large inputs are measured less often, and results are freed before the next variant runs.
    let rounds = rounds.min((400_000_000 / products.max(1)).max(2) as usize);
    for round in 0..rounds {
        rows.run()?;
        rows.program.forget();
        let count = sides.len();
        for k in 0..count {
            let side = &mut sides[(k + round) % count];
            side.run()?;
            side.program.forget();
        }
    }
    let name = input.name();
    let each = |time: f64| time * 1e9 / products as f64;
    let show = |side: &WorkspaceVariant| {
        let ratio = least(&side.processor) / least(&rows.processor);
        let report = side.report.unwrap_or_default();
        println!(
            "{name:<22} {products:>10} {entries:>10} {:<28} {:>8.2} {:>8.2} {:>8.2} {:>8.2} {ratio:>6.2} {:>8} {:>12.1}",
            side.name,
            each(median(side.times.clone())),
            each(least(&side.times)),
            each(median(side.processor.clone())),
            each(least(&side.processor)),
            report.flushes,
            report.peak_bytes as f64 / products as f64
        );
    };
    show(&rows);
    sides.iter().for_each(show);
    Ok(())
}

/// The number of scalar products.
fn products(a: &Tensor, b: &Tensor) -> Result<u64, String> {
    let array = |t: &Tensor, name| t.level_arrays(1).get(name).map(|array| array.to_vec()).ok_or("no array");
    let (columns, pos) = (array(a, "crd")?, array(b, "pos")?);
    debug_assert_eq!(a.dtype(), DType::F64);
    Ok(columns.iter().map(|j| pos[*j as usize + 1] - pos[*j as usize]).sum())
}

fn rendered<T>(result: Result<T, Diagnostic>) -> Result<T, String> {
    result.map_err(|d| d.render(false))
}
