//! Our side of `benches/structures.py`.
//!
//! `structures spmv [WORD ...]` and `structures spgemm` print their tables: these studies compare our own formats and programs. `structures
//! compile` prints how long it takes to compile the programs of the others.
//! `structures serve` does what standard input says, a line each, and answers with a line:
//!
//! - `graph NAME`: loads a graph, of a file or the gallery; answers with its nodes and edges. `edges PATH` writes it
//! - `search WAY SOURCE`, `paths SOURCE`: seconds. `result PATH` writes the parents or distances
//! - `image PATH SCALE`, `count PATH MASK TILE SCALE`: an image to be eroded or counted; answers with its size and that of each format
//! - `run WAY`: seconds. `result PATH` writes pixels or counts

use std::io::{BufRead, Write};
use tamis::io::{WriteOptions, write};
use tamis_benches::structures::graphs::Graph;
use tamis_benches::structures::images::Image;
use tamis_benches::structures::turns::Clock;
use tamis_benches::structures::{compile, spgemm, spmv};

fn main() -> std::process::ExitCode {
    let mut clock = Clock { rounds: 21, processor: false };
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

/// Obeys until nobody speaks any more.
fn serve(clock: Clock) -> bool {
    let mut state = State { clock, graph: None, image: None };
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        match state.obey(&line) {
            Ok(answer) => println!("{answer}"),
            // One line, whatever it says.
            Err(problem) => println!("error {}", problem.replace('\n', "; ")),
        }
        if std::io::stdout().flush().is_err() {
            return false;
        }
    }
    true
}

struct State {
    clock: Clock,
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
            ["search", way, source] => {
                let (source, clock) = (number(source)?, self.clock);
                Ok(self.graph()?.search(way, source, clock)?.to_string())
            }
            ["paths", source] => {
                let (source, clock) = (number(source)?, self.clock);
                Ok(self.graph()?.paths(source, clock)?.to_string())
            }
            ["image", path, scale] => self.set_image(Image::to_erode(path, number(scale)? as usize)?),
            ["count", path, mask, tile, scale] => {
                self.set_image(Image::to_count(path, mask, number(tile)? as usize, number(scale)? as usize)?)
            }
            ["run", way] => {
                let clock = self.clock;
                Ok(self.image.as_mut().ok_or("load an image first")?.run(way, clock)?.to_string())
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
