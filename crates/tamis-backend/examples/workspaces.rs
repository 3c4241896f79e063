//! Benchmark of workspaces: `cargo run --release -p tamis-backend --example workspaces [POLICY...]
//! [LENGTH...]`.
//!
//! Each line shows the number of inserted entries, the bits of their coordinates, and the
//! nanoseconds per entry of inserting and finalizing. Times are CPU times of the inserting thread,
//! the best of a few runs. Entries are appended as in compiled code where the policy allows it.

use tamis_backend::RawBuffer;
use tamis_backend::runtime::workspace::{MergeOp, RuntimeWorkspace, WorkspaceSpec};
use tamis_ir::algebra::Op;
use tamis_ir::{DType, Value};

/// CPU seconds of this thread.
fn seconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is valid for writes.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

struct BenchRng(u64);

impl BenchRng {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// Inserts `len` random entries of a matrix with `1 << bits` rows and columns. Returns the seconds
/// of inserting and of finalizing, and the number of distinct entries.
fn run(
    workspace: &mut RuntimeWorkspace,
    buffers: *mut RawBuffer,
    appends: bool,
    bits: u32,
    len: usize,
) -> (f64, f64, u64) {
    let (size, mut rng) = (1u64 << bits, BenchRng(88172645463325252));
    let start = seconds();
    workspace.reset([size, size].into_iter()).unwrap();
    let raw: *mut RuntimeWorkspace = workspace;
    let fields = raw.cast::<u64>();
    for _ in 0..len {
        let x = rng.next();
        let (i, j) = (x & (size - 1), x >> 32 & (size - 1));
        // SAFETY: as in compiled code, the first two fields are `count` and `capacity`, and the
        // arrays have that capacity.
        unsafe {
            let position = if appends && fields.read() < fields.add(1).read() {
                let position = fields.read() as usize;
                (*buffers).data.cast::<u32>().add(position).write(i as u32);
                (*buffers.add(1)).data.cast::<u32>().add(position).write(j as u32);
                (*buffers.add(2)).data.cast::<f64>().add(position).write(0.0);
                fields.write(position as u64 + 1);
                position
            } else {
                (*raw).insert(&[i, j]).unwrap() as usize
            };
            *(*buffers.add(2)).data.cast::<f64>().add(position) += 1.0;
        }
    }
    let inserted = seconds() - start;
    // SAFETY: the workspace is not aliased.
    let count = unsafe { (*raw).finalize() }.unwrap();
    (inserted, seconds() - start - inserted, count)
}

fn main() {
    let (lengths, mut policies): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|word| word.parse::<usize>().is_ok());
    if policies.is_empty() {
        policies = ["coord", "hash", "bucket", "vector", "map"].map(String::from).to_vec();
    }
    for policy in policies {
        for pipelined in [false, true] {
            for (bits, len) in [
                (15, 10),
                (15, 100),
                (15, 1000),
                (15, 10_000),
                (15, 100_000),
                (15, 1_000_000),
                (15, 2_000_000),
                (15, 10_000_000),
                (10, 10_000_000),
                (20, 10_000_000),
                (15, 100_000_000),
            ] {
                if !lengths.is_empty() && !lengths.contains(&len.to_string()) {
                    continue;
                }
                let description = WorkspaceSpec {
                    policy: policy.clone(),
                    pipelined,
                    ..WorkspaceSpec::new(2, DType::F64, Value::F64(0.0), Some(MergeOp::Op(Op::Add)))
                };
                let mut buffers = [RawBuffer::empty(); 3];
                // SAFETY: the descriptors are empty, and outlive the workspace. (What they own at
                // the end leaks.)
                let mut workspace =
                    unsafe { RuntimeWorkspace::new(&description, buffers.as_mut_ptr(), &[0, 1, 2]) }.unwrap();
                let (mut best, mut insert, mut finalize, mut count) = (f64::MAX, 0.0, 0.0, 0);
                let runs = if len > 10_000_000 { 1 } else { (2_000_000 / len).clamp(3, 1000) };
                for _ in 0..runs {
                    let (a, b, c) = run(&mut workspace, buffers.as_mut_ptr(), description.appends(), bits, len);
                    if a + b < best {
                        (best, insert, finalize, count) = (a + b, a, b, c);
                    }
                }
                let per_entry = |seconds: f64| seconds * 1e9 / len as f64;
                let report = workspace.report();
                println!(
                    "{policy:7}{} {len:9} of {:2} bits -> {count:8}: insert {:6.1} finalize {:6.1} all {:6.1} ns; {} MB at most",
                    if pipelined { " ||" } else { "   " },
                    2 * bits,
                    per_entry(insert),
                    per_entry(finalize),
                    per_entry(best),
                    report.peak_bytes / 1_000_000,
                );
            }
        }
    }
}
