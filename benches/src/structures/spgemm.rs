//! SpGEMM case study: inner products, Gustavson, and outer products, into dense and sparse results;
//! and the asymptotic cost of outer products.

use super::interleaved::{TimedVariant, TimingOptions, agree, run};
use super::load::{matrix, rendered, tensor};
use crate::inputs::random_rows;
use tamis::tensor::Coordinates;

const INNER: &str = include_str!("../../../examples/spgemm_inner.py");
const ROWS: &str = include_str!("../../../examples/gustavson.py");
const OUTER: &str = include_str!("../../../examples/spgemm.py");

/// The same loops, with a dense result.
fn dense(order: &str) -> String {
    format!(
        "def product(A, B):\n    C = tensor(\"dense\")\n    for {order} in _:\n        C[i,k] += A[i,j] * B[j,k]\n    return C\n"
    )
}

/// Small enough for inner products, which visit every pair of a row and a column, and for dense
/// results.
const MATRICES: &[&str] =
    &["bcsstk04.mtx.gz", "bcspwr09.mtx.gz", "orani678.mtx.gz", "rmat(11,8)", "rand(4000,4000; 0.001)"];

/// Prints both tables.
pub fn tables(clock: TimingOptions, largest: u64) -> bool {
    println!("A times A, ms (least); ratios are to products by rows with a sparse result");
    println!("{:<26} {:>9} {:<28} {:>10} {:>10} {:>7}", "matrix", "entries", "variant", "ms", "(least)", "ratio");
    let mut fine = true;
    for name in MATRICES {
        if let Err(problem) = three_ways(name, clock) {
            println!("{name:<26} {problem}");
            fine = false;
        }
    }
    println!(
        "\nErdős–Rényi matrices with 4 per row: nanoseconds for each row; the target for outer products is that they stay the same"
    );
    println!("{:>9} {:>10} {:>12} {:>12} {:>7}  outer, for each row", "rows", "entries", "by rows", "outer", "growth");
    let mut first = None;
    let mut n = 1000;
    while n <= largest {
        match growth(n, clock, &mut first) {
            Ok(()) => {}
            Err(problem) => {
                println!("{n:>9} {problem}");
                fine = false;
            }
        }
        n *= 10;
    }
    fine
}

fn three_ways(name: &str, clock: TimingOptions) -> Result<(), String> {
    let a = matrix(name)?;
    let formats = |left: &str, right: &str| Ok::<_, String>([tensor(&a, left)?, tensor(&a, right)?]);
    let (by_rows, inner, outer) = (formats("csr", "csr")?, formats("csr", "csc")?, formats("csc", "csr")?);
    let mut sparse = vec![
        TimedVariant::new("by rows, csr", ROWS, &by_rows)?,
        TimedVariant::new("inner, csr", INNER, &inner)?,
        TimedVariant::new("outer, csr", OUTER, &outer)?,
    ];
    agree(&mut sparse)?;
    let mut full = vec![
        TimedVariant::new("by rows, dense", &dense("i, j, k"), &by_rows)?,
        TimedVariant::new("inner, dense", &dense("i, k, j"), &inner)?,
        TimedVariant::new("outer, dense", &dense("j, i, k"), &outer)?,
    ];
    agree(&mut full)?;
    let entries = sparse[0].result()?;
    if let Some(difference) = rendered(full[0].result()?.first_difference(&entries, &super::interleaved::close))? {
        return Err(format!("WRONG: dense and sparse results differ: {difference:?}"));
    }
    sparse.append(&mut full);
    run(&mut sparse, clock)?;
    let reference = sparse[0].median();
    for side in &sparse {
        println!(
            "{name:<26} {:>9} {:<28} {:>10.3} {:>10.3} {:>7.2}",
            entries.nnz(),
            side.name,
            side.median(),
            side.least(),
            side.median() / reference
        );
    }
    Ok(())
}

fn growth(n: u64, clock: TimingOptions, first: &mut Option<f64>) -> Result<(), String> {
    let a: Coordinates = rendered(random_rows(n, 4, 1))?;
    let b: Coordinates = rendered(random_rows(n, 4, 2))?;
    let mut sides = vec![
        TimedVariant::new("by rows", ROWS, &[tensor(&a, "csr")?, tensor(&b, "csr")?])?,
        TimedVariant::new("outer", OUTER, &[tensor(&a, "csc")?, tensor(&b, "csr")?])?,
    ];
    agree(&mut sides)?;
    let entries = sides[0].result()?.nnz();
    run(
        &mut sides,
        TimingOptions { rounds: if n >= 1_000_000 { clock.rounds.min(5) } else { clock.rounds }, ..clock },
    )?;
    let each = |side: &TimedVariant| side.median() * 1e6 / n as f64;
    let start = *first.get_or_insert(each(&sides[1]));
    println!(
        "{n:>9} {entries:>10} {:>12.1} {:>12.1} {:>7.2}  {}",
        each(&sides[0]),
        each(&sides[1]),
        each(&sides[1]) / start,
        // A constant cost per row: linear growth.
        "#".repeat((20.0 * each(&sides[1]) / start).round().clamp(0.0, 100.0) as usize)
    );
    Ok(())
}
