//! The Tamis side of `benches/convolution.py`.
//!
//! `convolution cubes [--rounds N] [--cpu] [1 | 2 | 3 ...]` measures sparse convolutions against
//! dense ones in C, interleaved. It prints a line per variant: size, percentage of zeros, nnz,
//! variant, milliseconds of compilation, and the milliseconds of each round. `convolution serve
//! [--cpu]` executes the commands on standard input, one per line, and answers each with a line:
//! see `tamis_benches::convolution::layers`.

use std::io::{BufRead, Write};
use tamis_benches::convolution::{cubes, layers::LayerServer};
use tamis_benches::structures::interleaved::TimingOptions;

fn main() -> std::process::ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let outcome = match &words[..] {
        ["serve"] => serve(false),
        ["serve", "--cpu"] => serve(true),
        ["cubes", rest @ ..] => measure(rest),
        _ => Err("convolution cubes [--rounds N] [--cpu] [1 | 2 | 3 ...] | serve [--cpu]".to_string()),
    };
    match outcome {
        Ok(fine) => u8::from(!fine).into(),
        Err(problem) => {
            eprintln!("{problem}");
            2.into()
        }
    }
}

fn measure(words: &[&str]) -> Result<bool, String> {
    let (mut clock, mut ranks) = (TimingOptions { rounds: 9, processor: false }, Vec::new());
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match (*word, word.parse::<usize>()) {
            ("--rounds", _) => {
                let given = words.next().and_then(|n| n.parse().ok()).filter(|n| *n > 0);
                clock.rounds = given.ok_or("`--rounds` takes a number")?;
            }
            ("--cpu", _) => clock.processor = true,
            (_, Ok(rank @ 1..=3)) => ranks.push(rank),
            _ => return Err(format!("`{word}` is not known")),
        }
    }
    cubes::measure(&ranks, clock, &mut |line| {
        println!("{line}");
        // Each line is flushed for the reader; a closed pipe is ignored.
        let _ = std::io::stdout().flush();
    })
}

/// Serves commands until the end of input.
fn serve(processor: bool) -> Result<bool, String> {
    let mut served = LayerServer::new(TimingOptions { rounds: 1, processor });
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        match served.obey(&line) {
            Ok(answer) => println!("{answer}"),
            // Answers are single lines.
            Err(problem) => println!("error {}", problem.replace('\n', "; ")),
        }
        std::io::stdout().flush().map_err(|e| e.to_string())?;
    }
    Ok(true)
}
