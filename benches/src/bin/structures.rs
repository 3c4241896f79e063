//! The Tamis side of `benches/structures.py`.
//!
//! `structures spmv [WORD ...]` and `structures spgemm` print their tables: these studies compare
//! formats and programs of Tamis. `structures compile` prints the compile times of the programs of
//! the other studies. `structures serve` executes the commands on standard input, one per line, and
//! answers each with a line:
//!
//! - `graph NAME`: loads a graph from a file or the gallery; answers with its nodes and edges.
//!   `edges PATH` writes it
//! - `search VARIANT SOURCE`, `paths SOURCE`: answers with seconds. `result PATH` writes the
//!   parents or distances
//! - `image PATH SCALE`, `count PATH MASK TILE SCALE`: loads an image to be eroded or counted;
//!   answers with its size and that of each format
//! - `run VARIANT`: answers with seconds. `result PATH` writes pixels or counts

use std::io::{BufRead, Write};
use tamis::io::{WriteOptions, write};
use tamis_benches::structures::graphs::Graph;
use tamis_benches::structures::images::Image;
use tamis_benches::structures::interleaved::TimingOptions;
use tamis_benches::structures::{compile, spgemm, spmv};

fn main() -> std::process::ExitCode {
    let mut clock = TimingOptions { rounds: 21, processor: false };
    let (mut words, mut largest) = (Vec::new(), 1_000_000);
    let mut given = std::env::args().skip(1);
    while let Some(word) = given.next() {
        match word.as_str() {
            "--cpu" => clock.processor = true,
            "--rounds" | "--largest" => {
                let Some(number) = given.next().and_then(|n| n.parse::<u64>().ok()).filter(|n| *n > 0) else {
                    eprintln!("`{word}` takes a number");
                    return 2.into();
                };
                if word == "--rounds" { clock.rounds = number as usize } else { largest = number }
            }
            _ => words.push(word),
        }
    }
    let fine = match words.split_first() {
        Some((study, rest)) if study == "spmv" => spmv::table(rest, clock),
        Some((study, [])) if study == "spgemm" => spgemm::tables(clock, largest),
        Some((study, [])) if study == "compile" => compile::table(clock),
        Some((study, [])) if study == "serve" => serve(clock),
        _ => {
            eprintln!(
                "structures spmv [WORD ...] | spgemm | compile | serve; with [--cpu] [--rounds N] [--largest ROWS]"
            );
            return 2.into();
        }
    };
    u8::from(!fine).into()
}

/// Serves commands until the end of input.
fn serve(clock: TimingOptions) -> bool {
    let mut state = State { clock, graph: None, image: None };
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        match state.obey(&line) {
            Ok(answer) => println!("{answer}"),
            // Answers are single lines.
            Err(problem) => println!("error {}", problem.replace('\n', "; ")),
        }
        if std::io::stdout().flush().is_err() {
            return false;
        }
    }
    true
}

struct State {
    clock: TimingOptions,
    graph: Option<Graph>,
    image: Option<Image>,
}

impl State {
    fn obey(&mut self, line: &str) -> Result<String, String> {
        let words: Vec<&str> = line.split('\t').collect();
        let number = |text: &str| text.parse::<u64>().map_err(|_| format!("`{text}` is not a number"));
        match words[..] {
            ["graph", name] => {
                (self.graph, self.image) = (None, None);
                let graph = Graph::load(name)?;
                let answer = format!("{} {}", graph.weighted.shape()[0], graph.weighted.nnz());
                self.graph = Some(graph);
                Ok(answer)
            }
            ["edges", path] => save(path, &self.graph()?.weighted),
            ["search", variant, source] => {
                let (source, clock) = (number(source)?, self.clock);
                Ok(self.graph()?.search(variant, source, clock)?.to_string())
            }
            ["paths", source] => {
                let (source, clock) = (number(source)?, self.clock);
                Ok(self.graph()?.paths(source, clock)?.to_string())
            }
            ["image", path, scale] => self.set_image(Image::to_erode(path, number(scale)? as usize)?),
            ["count", path, mask, tile, scale] => {
                self.set_image(Image::to_count(path, mask, number(tile)? as usize, number(scale)? as usize)?)
            }
            ["run", variant] => {
                let clock = self.clock;
                Ok(self.image.as_mut().ok_or("load an image first")?.run(variant, clock)?.to_string())
            }
            ["result", path] => match (&self.image, &self.graph) {
                (Some(image), _) => save(path, &image.result()?),
                (None, Some(graph)) => save(path, graph.result.as_ref().ok_or("run something first")?),
                (None, None) => Err("load something first".into()),
            },
            _ => Err(format!("`{line}` is no command; see the list at the top")),
        }
    }

    fn graph(&mut self) -> Result<&mut Graph, String> {
        self.graph.as_mut().ok_or_else(|| "load a graph first".into())
    }

    fn set_image(&mut self, image: Image) -> Result<String, String> {
        let answer = image.describe();
        (self.graph, self.image) = (None, Some(image));
        Ok(answer)
    }
}

fn save(path: &str, tensor: &tamis::Tensor) -> Result<String, String> {
    write(path, tensor, &WriteOptions::default()).map_err(|d| d.render(false))?;
    Ok("done".into())
}
