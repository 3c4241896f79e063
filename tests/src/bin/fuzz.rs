//! Fuzzer: `fuzz [SECONDS] [SEED]` mutates inputs, and writes those that fail to a file.

use std::process::ExitCode;
use std::time::{Duration, Instant};
use tamis_tests::fuzz;
use tamis_tests::random::Random;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).map(|a| a.parse::<u64>());
    let (seconds, seed) = match (arguments.next().transpose(), arguments.next().transpose()) {
        (Ok(seconds), Ok(seed)) => (seconds.unwrap_or(60), seed.unwrap_or(1)),
        _ => {
            eprintln!("usage: fuzz [SECONDS] [SEED]");
            return ExitCode::from(2);
        }
    };
    std::panic::set_hook(Box::new(|_| {}));
    let targets = fuzz::targets();
    let mut random = Random(seed);
    let (start, mut tried, mut broken) = (Instant::now(), 0u64, 0);
    while start.elapsed() < Duration::from_secs(seconds) {
        for target in &targets {
            for _ in 0..50 {
                tried += 1;
                if let Err((bytes, message)) = fuzz::try_one(target, &mut random) {
                    broken += 1;
                    let path = format!("fuzz-{}-{broken}", target.name);
                    println!("{}: {message}\n  written to {path}", target.name);
                    if let Err(error) = std::fs::write(&path, bytes) {
                        eprintln!("{path}: {error}");
                    }
                    if broken >= 20 {
                        return ExitCode::FAILURE;
                    }
                }
            }
        }
    }
    println!("{tried} inputs tried, {broken} broke something");
    if broken == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
