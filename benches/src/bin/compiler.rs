//! Benchmark of compiled programs against hand-written C: one thread, interleaved, after a
//! comparison of results.
//!
//!     ./dev bench compiler [--rounds N] [KERNEL ... | zoo]
//!
//! `zoo` shows the compile time of each example instead, and the overhead of a call.

use std::path::Path;
use std::time::{Duration, Instant};
use tamis::{DType, Diagnostic, Tensor, gallery};
use tamis_benches::baseline::{Baseline, CsrOutput, FLAGS};
use tamis_benches::inputs::{BaselineValue, CsfArrays, CsrArrays, dense, random_rows, shifted, tensor, values};
use tamis_benches::measure::{Rounds, Row, Times, compare, difference, head, least, median};
use tamis_benches::ours::{CompileTime, compile_time, ours};
use tamis_tests::filetest::sections;

const SPMV: &str = include_str!("../../../examples/spmv.py");
const SPMM: &str = include_str!("../../../examples/spmm.py");
const ADD: &str = include_str!("../../../examples/add.py");
const MTTKRP: &str = include_str!("../../../examples/mttkrp.py");
const SDDMM: &str = include_str!("../../../examples/sddmm.py");
const GUSTAVSON: &str = include_str!("../../../examples/gustavson.py");

const KERNELS: [&str; 6] = ["spmv", "spmm", "add", "mttkrp", "sddmm", "spgemm"];

fn main() -> std::process::ExitCode {
    let mut rounds = Rounds { timed: 31, compilations: 11 };
    let mut chosen: Vec<String> = Vec::new();
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        if word == "--rounds" {
            match words.next().and_then(|n| n.parse().ok()) {
                Some(n) => rounds.timed = n,
                None => return usage("`--rounds` takes a number"),
            }
        } else if word == "zoo" {
            return zoo(rounds);
        } else if KERNELS.contains(&word.as_str()) {
            chosen.push(word);
        } else {
            return usage(&format!("there is no kernel `{word}`"));
        }
    }
    let baseline = match Baseline::compile() {
        Ok(baseline) => baseline,
        Err(problem) => {
            eprintln!("the C cannot be compiled: {problem}");
            return 1.into();
        }
    };
    println!("C: gcc {}; {} rounds, medians", FLAGS.join(" "), rounds.timed);
    println!("{}", head());
    let mut wrong = false;
    let bench = Bench { baseline, rounds };
    for kernel in KERNELS {
        if chosen.is_empty() || chosen.iter().any(|word| word == kernel) {
            bench.run(kernel, &mut |row| {
                wrong |= row.outcome.as_ref().is_err_and(|problem| !problem.starts_with("not yet"));
                println!("{row}");
            });
        }
    }
    u8::from(wrong).into()
}

fn usage(problem: &str) -> std::process::ExitCode {
    eprintln!("{problem}\n./dev bench compiler [--rounds N] [{} | zoo]", KERNELS.join(" | "));
    2.into()
}

/// Compiles every example, with the first formats of its inputs.
fn zoo(rounds: Rounds) -> std::process::ExitCode {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/filetests/zoo.md");
    let sections = match sections(&path) {
        Ok(sections) => sections,
        Err(problem) => {
            eprintln!("{problem}");
            return 1.into();
        }
    };
    println!(
        "Milliseconds: medians, but for `least`. `thread` does not count what else the machine did, `ours` is before LLVM."
    );
    let head = ["all", "least", "thread", "ours", "parse", "passes", "codegen", "link"];
    head.iter().for_each(|word| print!("{word:>7} "));
    println!(" program");
    for section in sections {
        let inputs = section.combinations.first().cloned().unwrap_or_default();
        let tensors: Vec<Tensor> = inputs.into_iter().map(|(_, tensor)| tensor).collect();
        let compile = |_| compile_time(&section.program, &tensors);
        match (0..rounds.timed.max(1)).map(compile).collect::<Result<Vec<CompileTime>, String>>() {
            Ok(times) => {
                let of = |part: fn(&CompileTime) -> Duration| -> Vec<f64> {
                    times.iter().map(|time| part(time).as_secs_f64() * 1e3).collect()
                };
                let stages = [
                    median(of(|t| t.total)),
                    least(&of(|t| t.total)),
                    median(of(|t| t.thread)),
                    median(of(|t| t.total.saturating_sub(t.backend.total()) + t.backend.emit)),
                    median(of(|t| t.backend.parse)),
                    median(of(|t| t.backend.optimise)),
                    median(of(|t| t.backend.generate)),
                    median(of(|t| t.backend.link)),
                ];
                stages.iter().for_each(|time| print!("{time:>7.2} "));
                println!(" {}", section.heading);
            }
            Err(problem) => println!("{:>63}  {}: {problem}", "", section.heading),
        }
    }
    match overhead() {
        Ok(time) => println!("a call that does nothing: {:.2} microseconds", time * 1e6),
        Err(problem) => println!("a call that does nothing: {problem}"),
    }
    0.into()
}

/// The overhead of a call, in seconds: a kernel with no work.
fn overhead() -> Result<f64, String> {
    let a = rendered(gallery::identity(1).and_then(|e| tensor(&e, "csr")))?;
    let x = rendered(dense(&[1], DType::F64, "dense", 3))?;
    let mut compiled = ours(SPMV, &[a, x])?;
    let mut times = Vec::new();
    for _ in 0..10_000 {
        let start = Instant::now();
        compiled.call()?;
        times.push(start.elapsed().as_secs_f64());
    }
    Ok(median(times))
}

struct Bench {
    baseline: Baseline,
    rounds: Rounds,
}

impl Bench {
    fn run(&self, kernel: &'static str, show: &mut dyn FnMut(Row)) {
        let mut row = |input: &str, outcome: Result<Times, String>| {
            show(Row { kernel, input: input.to_string(), outcome });
        };
        let n = 200_000;
        match kernel {
            "spmv" => {
                row("laplacian(1000)", self.spmv(gallery::laplacian(1000)));
                row("random 200k, 10 per row", self.spmv(random_rows(n, 10, 1)));
            }
            "spmm" => {
                row("random 20k, 20 per row; 64 columns", self.spmm(64));
                row("random 20k, 20 per row; 128 columns", self.spmm(128));
            }
            "add" => {
                row("random 200k, 10 per row, two", self.add(random_rows(n, 10, 1), random_rows(n, 10, 2)));
                let laplacian = gallery::laplacian(1000);
                row("laplacian(1000), and shifted", self.add(laplacian.clone(), laplacian.map(|l| shifted(&l))));
            }
            "mttkrp" => row("1000 x 2000 x 3000, 2M; rank 32", self.mttkrp()),
            "sddmm" => row("random 20k, 20 per row; K = 64", self.sddmm()),
            _ => row("random 20k, 10 per row, two", self.spgemm()),
        }
    }

    /// Checks a dense result against C, then measures.
    fn against<T: BaselineValue>(
        &self,
        text: &str,
        tensors: &[Tensor],
        theirs: &mut dyn FnMut(&mut [T]),
        out: &mut [T],
        rounding: f64,
    ) -> Result<Times, String> {
        theirs(out);
        let mut compiled = ours(text, tensors)?;
        compiled.call()?;
        let results = compiled.results()?;
        let result = results.first().ok_or("there is no result")?;
        difference(&wide(&values::<T>(result)?), &wide(out), rounding).map_err(|d| format!("WRONG: {d}"))?;
        compare(&mut compiled, &mut || theirs(out), || ours(text, tensors), self.rounds)
    }

    /// Checks a CSR result against C, which returns its nnz, then measures.
    fn against_rows(
        &self,
        text: &str,
        tensors: &[Tensor],
        theirs: &mut dyn FnMut(&mut CsrOutput) -> usize,
        out: &mut CsrOutput,
    ) -> Result<Times, String> {
        let entries = theirs(out);
        let mut compiled = ours(text, tensors)?;
        compiled.call()?;
        let results = compiled.results()?;
        let result = results.first().ok_or("there is no result")?;
        // The compiler chooses their widths.
        let arrays = result.level_arrays(1);
        let array = |name| arrays.get(name).map(|array| array.to_vec()).unwrap_or_default();
        let same = |ours: Vec<u64>, theirs: &[u32]| ours.into_iter().eq(theirs.iter().map(|x| u64::from(*x)));
        if !same(array("pos"), &out.pos) || !same(array("crd"), &out.crd[..entries]) {
            return Err("WRONG: entries at other places".into());
        }
        difference(&values::<f64>(result)?, &out.val[..entries], 1e-9).map_err(|d| format!("WRONG: {d}"))?;
        let mut theirs = || {
            theirs(out);
        };
        compare(&mut compiled, &mut theirs, || ours(text, tensors), self.rounds)
    }

    fn spmv(&self, entries: Result<tamis::tensor::Coordinates, Diagnostic>) -> Result<Times, String> {
        let a = rendered(entries.and_then(|e| tensor(&e, "csr")))?;
        let x = rendered(dense(&a.shape()[1..], DType::F64, "dense", 3))?;
        let (rows, vector) = (CsrArrays::of(&a)?, values::<f64>(&x)?);
        let mut y = vec![1.0; rows.pos.len() - 1];
        self.against(SPMV, &[a, x], &mut |y: &mut [f64]| self.baseline.spmv(&rows, &vector, y), &mut y, 1e-9)
    }

    fn spmm(&self, columns: u64) -> Result<Times, String> {
        let a = rendered(random_rows(20_000, 20, 1).and_then(|e| tensor(&e, "csr")))?.cast(DType::F32);
        let b = rendered(dense(&[20_000, columns], DType::F32, "dense", 3))?;
        let (rows, matrix) = (CsrArrays::of(&a)?, values::<f32>(&b)?);
        let columns = columns as usize;
        let mut c = vec![1.0; 20_000 * columns];
        let mut theirs = |c: &mut [f32]| self.baseline.spmm(&rows, columns, &matrix, c);
        self.against(SPMM, &[a, b], &mut theirs, &mut c, 1e-4)
    }

    fn add(
        &self,
        a: Result<tamis::tensor::Coordinates, Diagnostic>,
        b: Result<tamis::tensor::Coordinates, Diagnostic>,
    ) -> Result<Times, String> {
        let a = rendered(a.and_then(|e| tensor(&e, "csr")))?;
        let b = rendered(b.and_then(|e| tensor(&e, "csr")))?;
        let (left, right) = (CsrArrays::of(&a)?, CsrArrays::of(&b)?);
        let mut c = CsrOutput::with_capacity(left.pos.len() - 1, left.crd.len() + right.crd.len());
        self.against_rows(ADD, &[a, b], &mut |c| self.baseline.add(&left, &right, c), &mut c)
    }

    fn mttkrp(&self) -> Result<Times, String> {
        let rank = 32;
        let b = rendered(gallery::random_nnz(&[1000, 2000, 3000], 2_000_000, 1).and_then(|e| tensor(&e, "csf")))?;
        let c = rendered(dense(&[2000, rank], DType::F64, "dense", 3))?;
        let d = rendered(dense(&[3000, rank], DType::F64, "dense", 4))?;
        let (fibers, left, right) = (CsfArrays::of(&b)?, values::<f64>(&c)?, values::<f64>(&d)?);
        let mut a = vec![1.0; 1000 * rank as usize];
        let mut theirs = |a: &mut [f64]| self.baseline.mttkrp(&fibers, rank as usize, &left, &right, a);
        self.against(MTTKRP, &[b, c, d], &mut theirs, &mut a, 1e-9)
    }

    fn sddmm(&self) -> Result<Times, String> {
        let inner = 64;
        let s = rendered(random_rows(20_000, 20, 1).and_then(|e| tensor(&e, "csr")))?;
        let a = rendered(dense(&[20_000, inner], DType::F64, "dense", 3))?;
        // In column-major order, so that both operands of the inner product are contiguous.
        let b = rendered(dense(&[inner, 20_000], DType::F64, "(i,j) -> (j,i): dense, dense", 4))?;
        let (mask, left, right) = (CsrArrays::of(&s)?, values::<f64>(&a)?, values::<f64>(&b)?);
        let mut x = CsrOutput::with_capacity(20_000, mask.crd.len());
        let mut theirs = |x: &mut CsrOutput| {
            self.baseline.sddmm(&mask, inner as usize, &left, &right, x);
            mask.crd.len()
        };
        self.against_rows(SDDMM, &[s, a, b], &mut theirs, &mut x)
    }

    fn spgemm(&self) -> Result<Times, String> {
        let n = 20_000;
        let a = rendered(random_rows(n, 10, 1).and_then(|e| tensor(&e, "csr")))?;
        let b = rendered(random_rows(n, 10, 2).and_then(|e| tensor(&e, "csr")))?;
        let (left, right) = (CsrArrays::<f64>::of(&a)?, CsrArrays::of(&b)?);
        let of_row = |j: &u32| right.pos[*j as usize + 1] as usize - right.pos[*j as usize] as usize;
        let mut c = CsrOutput::with_capacity(n as usize, left.crd.iter().map(of_row).sum());
        let mut theirs = |c: &mut CsrOutput| self.baseline.spgemm(&left, &right, n as usize, c).unwrap_or(0);
        self.against_rows(GUSTAVSON, &[a, b], &mut theirs, &mut c)
    }
}

fn wide<T: BaselineValue>(numbers: &[T]) -> Vec<f64> {
    numbers.iter().map(|x| x.wide()).collect()
}

fn rendered<T>(result: Result<T, Diagnostic>) -> Result<T, String> {
    result.map_err(|d| d.render(false))
}
