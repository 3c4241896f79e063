//! Benchmark of network layers, 3 x 3 with a padding of one, with a sparse input or filter: the
//! Tamis side of `benches/convolution.py`.

use super::variants::{LAYER, Layer, SPARSE_FILTERS, SPARSE_INPUTS};
use crate::ours::{TamisCall, ours};
use crate::structures::interleaved::TimingOptions;
use crate::structures::load::rendered;
use tamis::io::{ReadOptions, WriteOptions, read, write};
use tamis::notation::Pins;
use tamis::{Format, Notation, Tensor};

/// Compiled programs for one layer.
#[derive(Debug)]
pub struct LayerServer {
    clock: TimingOptions,
    sides: Vec<(&'static str, TamisCall)>,
}

impl LayerServer {
    /// No inputs are loaded yet.
    pub fn new(clock: TimingOptions) -> LayerServer {
        LayerServer { clock, sides: Vec::new() }
    }

    /// Executes a command: `inputs PATH PATH` and `filters PATH PATH` load an input and a filter,
    /// of which the first or the second is sparse, and answer with the names of the programs; `run
    /// NAME` answers with seconds; `result NAME PATH` writes the last result.
    pub fn obey(&mut self, line: &str) -> Result<String, String> {
        match line.split('\t').collect::<Vec<_>>()[..] {
            ["inputs", input, filter] => {
                self.load(input, filter, &SPARSE_INPUTS, ["dense, dense, sparse", "dense", "dense"])
            }
            ["filters", input, filter] => {
                let formats = [
                    "(h,w,c) -> (c,h,w): dense, dense, dense",
                    "(r,q,c,g) -> (g,c,r,q): dense, sparse, sparse, sparse",
                    "(h,w,g) -> (g,h,w): dense, dense, dense",
                ];
                self.load(input, filter, &SPARSE_FILTERS, formats)
            }
            ["run", name] => {
                let clock = self.clock;
                let program = self.side(name)?;
                program.forget();
                Ok(clock.time(|| program.call())?.to_string())
            }
            ["result", name, path] => {
                let result = self.side(name)?.results()?.into_iter().next().ok_or("there is no result")?;
                let result = rendered(result.convert(&Format::dense(result.shape().len())))?;
                rendered(write(path, &result, &WriteOptions::default()))?;
                Ok("written".to_string())
            }
            _ => Err(format!("`{line}` is not known")),
        }
    }

    fn side(&mut self, name: &str) -> Result<&mut TamisCall, String> {
        let found = self.sides.iter_mut().find(|(known, _)| *known == name);
        found.map(|(_, program)| program).ok_or_else(|| format!("there is no program `{name}`"))
    }

    fn load(&mut self, input: &str, filter: &str, variants: &[Layer], given: [&str; 3]) -> Result<String, String> {
        self.sides.clear();
        let (input, filter) = (load(input)?, load(filter)?);
        let both = |formats: [&str; 2]| Ok::<_, String>([stored(&input, formats[0])?, stored(&filter, formats[1])?]);
        let (text, tensors) = automatic(&both([given[0], given[1]])?, given[2])?;
        self.sides.push(("automatic", ours(&text, &tensors)?));
        for (name, first, second, text) in variants {
            self.sides.push((name, ours(text, &both([first, second])?)?));
        }
        Ok(self.sides.iter().map(|(name, _)| *name).collect::<Vec<_>>().join("\t"))
    }
}

fn load(path: &str) -> Result<Tensor, String> {
    rendered(read(path, &ReadOptions::default()))
}

/// Zeros are not stored.
fn stored(tensor: &Tensor, format: &str) -> Result<Tensor, String> {
    rendered(tensor.convert(&rendered(Format::parse(format, tensor.shape().len()))?))
}

/// The executable that Tamis derives from index notation, for tensors in their formats, and a
/// result in this format.
fn automatic(tensors: &[Tensor; 2], result: &str) -> Result<(String, Vec<Tensor>), String> {
    let rendered = |d: tamis::Diagnostics| d.render(false);
    let (notation, given) = (Notation::parse(LAYER).map_err(rendered)?, [&tensors[0], &tensors[1]]);
    let result = Format::parse(result, 3).map_err(|d| d.render(false))?;
    let pins = Pins { keep: true, formats: vec![("O".to_string(), result)], ..Pins::default() };
    let plan = tamis::notation::plan(&notation, &given, &pins).map_err(rendered)?;
    let operands = tamis::notation::converted_operands(&plan, &notation, &given).map_err(|d| d.render(false))?;
    Ok((plan.program.to_string(), operands.into_iter().map(|operand| operand.into_owned()).collect()))
}
