//! Benchmark of reading a file: `cargo run --release --example read_speed -- FILE [THREADS]`.
//!
//! The first column is the plain data ([`read_data`]), the second the tensor ([`read`]).

use std::time::Instant;
use tamis_tensor::io::{ReadOptions, read, read_data};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let Some(path) = arguments.next() else {
        eprintln!("usage: read_speed FILE [THREADS]");
        std::process::exit(2);
    };
    let threads = arguments.next().and_then(|t| t.parse().ok());
    let options = ReadOptions { threads, ..ReadOptions::default() };
    let bytes = std::fs::metadata(&path).map_or(0, |m| m.len());
    for _ in 0..5 {
        let start = Instant::now();
        let data = read_data(&path, &options);
        let plain = start.elapsed().as_secs_f64();
        let data = data.unwrap_or_else(|diagnostic| {
            eprint!("{}", diagnostic.render(false));
            std::process::exit(1)
        });
        let (shape, entries) = (data.content.shape().to_vec(), data.content.values().len());
        drop(data);
        let start = Instant::now();
        let tensor = read(&path, &options);
        let whole = start.elapsed().as_secs_f64();
        drop(tensor);
        let speed = bytes as f64 / plain / 1e6;
        println!("{plain:.4} s ({speed:.0} MB/s)  {whole:.4} s as a tensor  {shape:?} {entries} entries");
    }
}
