//! The Tamis side of `benches/ground_floor.py`: executes the commands on standard input, one per
//! line, and answers with the seconds.
//!
//! Commands: `load PATH`, `read PATH`, `csr_to_csc`, `coo_to_csr`, `shuffled_to_csr`,
//! `dense_to_csr`.

use std::hint::black_box;
use std::io::{BufRead, Write};
use std::time::Instant;
use tamis::io::{ReadOptions, read};
use tamis::tensor::{Combine, Coordinates, IndexArray, ValueArray};
use tamis::{Diagnostic, Format, Tensor, Value};

fn main() {
    let mut state = State::default();
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        match state.obey(&line) {
            Ok(answer) => println!("{answer}"),
            Err(d) => println!("error {d}"),
        }
        // The driver has exited.
        if std::io::stdout().flush().is_err() {
            return;
        }
    }
}

#[derive(Default)]
struct State {
    coo: Option<Tensor>,
    csr: Option<Tensor>,
    shuffled: Option<Coordinates>,
    dense: Option<Tensor>,
}

impl State {
    fn obey(&mut self, line: &str) -> Result<String, Diagnostic> {
        let (command, argument) = line.split_once(' ').unwrap_or((line, ""));
        let missing = || Diagnostic::new(tamis::diagnostic::Code::E0902, "load a matrix first").help("load PATH");
        match command {
            "load" => self.load(argument),
            "read" => timed(|| read(argument, &ReadOptions::default())),
            "csr_to_csc" => {
                let csr = self.csr.as_ref().ok_or_else(missing)?;
                timed(|| csr.convert(&Format::csc()))
            }
            "coo_to_csr" => {
                let coo = self.coo.as_ref().ok_or_else(missing)?;
                timed(|| coo.convert(&Format::csr()))
            }
            "shuffled_to_csr" => {
                let entries = self.shuffled.as_ref().ok_or_else(missing)?;
                timed(|| Tensor::from_coordinates(entries, &Format::csr(), Value::F64(0.0), Combine::Sum))
            }
            "dense_to_csr" => {
                let dense = self.dense.as_ref().ok_or_else(missing)?;
                timed(|| dense.convert(&Format::csr()))
            }
            _ => Err(Diagnostic::new(tamis::diagnostic::Code::E0901, format!("unknown command {command}"))
                .help("see the list at the top")),
        }
    }

    /// Prepares the matrix in all formats that are converted.
    fn load(&mut self, path: &str) -> Result<String, Diagnostic> {
        let coo = read(path, &ReadOptions::default())?;
        self.csr = Some(coo.convert(&Format::csr())?);
        self.shuffled = Some(shuffle(coo.to_coordinates()));
        let answer = format!("{}", coo.nnz());
        self.coo = Some(coo);
        let n = 2000u64;
        let values: Vec<f64> = (0..n * n).map(|k| if k % 100 == 0 { 1.0 } else { 0.0 }).collect();
        self.dense = Some(Tensor::from_dense(&[n, n], values.into(), &Format::dense(2), Value::F64(0.0))?);
        Ok(answer)
    }
}

fn timed(work: impl FnOnce() -> Result<Tensor, Diagnostic>) -> Result<String, Diagnostic> {
    let start = Instant::now();
    let result = black_box(work()?);
    let seconds = start.elapsed().as_secs_f64();
    // Freeing the result is not timed, as on the other side.
    drop(result);
    Ok(seconds.to_string())
}

/// The same entries in a permutation that the driver can reproduce: entry `k` moves to `k * step
/// mod n`.
fn shuffle(entries: Coordinates) -> Coordinates {
    let n = entries.len();
    let step = 7_368_787 % n.max(1);
    let order: Vec<usize> = (0..n).map(|k| k * step % n).collect();
    let column = |column: &IndexArray| -> IndexArray {
        order.iter().map(|k| column.get(*k) as u32).collect::<Vec<u32>>().into()
    };
    let values: Vec<Value> = order.iter().map(|k| entries.values.get(*k)).collect();
    let values = ValueArray::from_values(&values, entries.values.dtype());
    Coordinates { columns: entries.columns.iter().map(column).collect(), values, shape: entries.shape }
}
