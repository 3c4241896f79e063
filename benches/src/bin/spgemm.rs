//! The Tamis side of `benches/spgemm.py`: executes the commands on standard input, one per line,
//! and answers each with a line.
//!
//! - `load MATRIX`: a file or a gallery call, as CSR of f64; answers with its rows and nnz
//! - `matrix PATH`, `result PATH`: writes the matrix, or the last result
//! - `run`: squares the matrix; answers with the seconds of the whole call, of its kernel, and of
//!   CPU time

use std::io::{BufRead, Write};
use std::time::Instant;
use tamis::io::{ReadOptions, WriteOptions, read, write};
use tamis::tensor::Combine;
use tamis::{DType, Diagnostic, Format, Tensor, Value, gallery};
use tamis_benches::ours::{TamisCall, ours};

const GUSTAVSON: &str = include_str!("../../../examples/gustavson.py");

fn main() {
    let mut state = State::default();
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        match state.obey(&line) {
            Ok(answer) => println!("{answer}"),
            // Answers are single lines.
            Err(problem) => println!("error {}", problem.replace('\n', "; ")),
        }
        // The driver has exited.
        if std::io::stdout().flush().is_err() {
            return;
        }
    }
}

#[derive(Default)]
struct State {
    matrix: Option<Tensor>,
    compiled: Option<TamisCall>,
}

impl State {
    fn obey(&mut self, line: &str) -> Result<String, String> {
        let (command, argument) = line.split_once(' ').unwrap_or((line, ""));
        match command {
            "load" => {
                let matrix = load(argument).map_err(|d| d.render(false))?;
                self.compiled = Some(ours(GUSTAVSON, &[matrix.clone(), matrix.clone()])?);
                let answer = format!("{} {}", matrix.shape()[0], matrix.nnz());
                self.matrix = Some(matrix);
                Ok(answer)
            }
            "matrix" => save(argument, self.matrix.as_ref().ok_or("load a matrix first")?),
            "result" => {
                let results = self.compiled.as_ref().ok_or("load a matrix first")?.results()?;
                save(argument, results.first().ok_or("run first")?)
            }
            "run" => {
                let compiled = self.compiled.as_mut().ok_or("load a matrix first")?;
                compiled.forget();
                let (start, busy) = (Instant::now(), processor_time()?);
                compiled.call()?;
                let (elapsed, busy) = (start.elapsed().as_secs_f64(), processor_time()? - busy);
                Ok(format!("{elapsed} {} {busy}", compiled.kernel().as_secs_f64()))
            }
            _ => Err(format!("there is no command `{command}`; see the list at the top")),
        }
    }
}

/// The CPU seconds of this thread.
fn processor_time() -> Result<f64, String> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is valid for writes.
    match unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) } {
        0 => Ok(time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9),
        _ => Err(std::io::Error::last_os_error().to_string()),
    }
}

/// A square matrix; patterns get ones.
fn load(name: &str) -> Result<Tensor, Diagnostic> {
    let entries = if gallery::is_call(name) {
        gallery::generate(name)?
    } else {
        read(name, &ReadOptions::default())?.try_to_coordinates()?
    };
    let matrix = Tensor::from_coordinates(&entries, &Format::csr(), Value::F64(0.0), Combine::Error)?;
    Ok(matrix.cast(DType::F64))
}

fn save(path: &str, tensor: &Tensor) -> Result<String, String> {
    write(path, tensor, &WriteOptions::default()).map_err(|d| d.render(false))?;
    Ok("done".into())
}
