//! How long it takes to read a file: `cargo run --release --example read_speed -- FILE [THREADS]`.

use std::time::Instant;
use tamis_tensor::io::{ReadOptions, read_data};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let Some(path) = arguments.next() else {
        eprintln!("usage: read_speed FILE [THREADS]");
        std::process::exit(2);
    };
    let threads = arguments.next().and_then(|t| t.parse().ok());
    let options = ReadOptions { threads, ..ReadOptions::default() };
    for _ in 0..5 {
        let start = Instant::now();
        match read_data(&path, &options) {
            Ok(data) => {
                let seconds = start.elapsed().as_secs_f64();
                let bytes = std::fs::metadata(&path).map_or(0, |m| m.len());
                println!(
                    "{:.4} s  {:.0} MB/s  {:?} {} entries",
                    seconds,
                    bytes as f64 / seconds / 1e6,
                    data.content.shape(),
                    data.content.values().len()
                );
            }
            Err(diagnostic) => {
                eprint!("{}", diagnostic.render(false));
                std::process::exit(1);
            }
        }
    }
}
