//! Graph case studies, breadth-first search and shortest paths: one program for the whole
//! algorithm, or steps that a driver selects.

use super::interleaved::TimingOptions;
use super::load::{rendered, weights};
use tamis::prelude::*;
use tamis::tensor::{IndexArray, LevelArrays};

const QUEUE: &str = include_str!("../../../examples/bfs.py");
const BOTH_WAYS: &str = include_str!("../../../examples/bfs_both_ways.py");
const EXPAND: &str = include_str!("../../../examples/bfs_expand.py");
const GATHER: &str = include_str!("../../../examples/bfs_gather.py");
const PATHS: &str = include_str!("../../../examples/shortest_paths.py");

/// A graph in the formats of the programs, and the programs.
#[derive(Debug)]
pub struct Graph {
    /// Weighted edges by source.
    pub weighted: Tensor,
    /// Unweighted edges by source.
    out_of: Tensor,
    /// Edges by target: row `j` lists the predecessors of `j`.
    into: Tensor,
    queue: Executable,
    both_ways: Executable,
    steps: StepPrograms,
    paths: Executable,
    /// The last result.
    pub result: Option<Tensor>,
}

/// The push and pull variants of a step.
#[derive(Debug)]
struct StepPrograms {
    expand: Executable,
    gather: Executable,
    into: Tensor,
    out_degree: Vec<u64>,
}

/// A set of nodes as a list and as flags.
fn listed(nodes: Vec<u32>, n: u64) -> Result<Tensor, String> {
    let format = rendered(Format::parse("sparse; pattern", 1))?;
    let pos: IndexArray = vec![0u32, nodes.len() as u32].into();
    let level = LevelArrays::new([("pos", pos), ("crd", nodes.into())]);
    rendered(Tensor::from_parts(&[n], &format, vec![level], None, Value::Bool(false)))
}

fn flags(flags: &[bool]) -> Result<Tensor, String> {
    rendered(Tensor::from_dense(&[flags.len() as u64], flags.to_vec().into(), &Format::dense(1), Value::Bool(false)))
}

fn compile(text: &str, tensors: &[&Tensor]) -> Result<Executable, String> {
    let program = Program::parse(text).map_err(|d| d.render(false))?;
    tamis::compile(&program, &Signature::of(tensors), &CompileOptions::default()).map_err(|d| d.render(false))
}

fn call(program: &Executable, tensors: &[&Tensor]) -> Result<Tensor, String> {
    let results = program.call(tensors).map_err(|d| d.render(false))?;
    results.into_tensor().map_err(|d| d.render(false))
}

fn number(node: u64) -> Tensor {
    Tensor::scalar(Value::I64(node as i64))
}

impl Graph {
    /// A file or a gallery call.
    pub fn load(name: &str) -> Result<Graph, String> {
        let entries = weights(&super::load::matrix(name)?);
        let swapped =
            Coordinates { columns: vec![entries.columns[1].clone(), entries.columns[0].clone()], ..entries.clone() };
        let weighted = super::load::tensor(&entries, "csr")?;
        let out_of = super::load::tensor(&entries, "csr; pattern")?;
        let into = super::load::tensor(&swapped, "csr; pattern")?;
        let by_column = super::load::tensor(&entries, "csc; pattern")?;
        let n = entries.shape[0];
        let source = number(0);
        let (list, few) = (listed(vec![0], n)?, flags(&vec![false; n as usize])?);
        let pos = out_of.level_arrays(1).get("pos").map(IndexArray::to_vec).ok_or("CSR has positions")?;
        let steps = StepPrograms {
            expand: compile(EXPAND, &[&out_of, &list, &few])?,
            gather: compile(GATHER, &[&by_column, &few, &few])?,
            into: by_column,
            out_degree: pos.windows(2).map(|w| w[1] - w[0]).collect(),
        };
        Ok(Graph {
            queue: compile(QUEUE, &[&out_of, &source])?,
            both_ways: compile(BOTH_WAYS, &[&out_of, &into, &source])?,
            paths: compile(PATHS, &[&weighted, &source])?,
            steps,
            weighted,
            out_of,
            into,
            result: None,
        })
    }

    /// Computes a parent for each reachable node, by one of three variants; returns the seconds.
    pub fn search(&mut self, variant: &str, source: u64, clock: TimingOptions) -> Result<f64, String> {
        let start = number(source);
        self.result = None;
        let mut result = None;
        let seconds = clock.time(|| {
            result = Some(match variant {
                "queue" => call(&self.queue, &[&self.out_of, &start])?,
                "both_ways" => call(&self.both_ways, &[&self.out_of, &self.into, &start])?,
                "steps" => self.steps.search(&self.out_of, source)?,
                _ => return Err(format!("unknown variant `{variant}`: queue, both_ways or steps")),
            });
            Ok(())
        })?;
        self.result = result;
        Ok(seconds)
    }

    /// Computes the distance and a parent of each node; returns the seconds.
    pub fn paths(&mut self, source: u64, clock: TimingOptions) -> Result<f64, String> {
        let start = number(source);
        self.result = None;
        let mut result = None;
        let seconds = clock.time(|| {
            result = Some(call(&self.paths, &[&self.weighted, &start])?);
            Ok(())
        })?;
        self.result = result;
        Ok(seconds)
    }
}

impl StepPrograms {
    /// Pushes while the frontier has few edges, and pulls into unvisited nodes while it has many.
    fn search(&self, out_of: &Tensor, source: u64) -> Result<Tensor, String> {
        let n = self.out_degree.len();
        let mut parents = vec![-1i32; n];
        let mut visited = vec![false; n];
        let mut frontier = vec![source as u32];
        let place = usize::try_from(source).ok().filter(|s| *s < n).ok_or("there is no such node")?;
        (parents[place], visited[place]) = (source as i32, true);
        let mut unseen: u64 = self.out_degree.iter().sum();
        while !frontier.is_empty() {
            let edges: u64 = frontier.iter().map(|i| self.out_degree[*i as usize]).sum();
            unseen = unseen.saturating_sub(edges);
            let found = if 14 * edges < unseen || frontier.len() * 24 < n {
                call(&self.expand, &[out_of, &listed(frontier, n as u64)?, &flags(&visited)?])?
            } else {
                let mut now = vec![false; n];
                frontier.iter().for_each(|i| now[*i as usize] = true);
                call(&self.gather, &[&self.into, &flags(&now)?, &flags(&visited)?])?
            };
            frontier = Vec::new();
            let arrays = found.level_arrays(0);
            let nodes = arrays.get("crd").ok_or("a list of nodes")?;
            let Some(ValueArray::I32(values)) = found.values() else { return Err("parents are i32".into()) };
            // A bytemap has a value per node, a list one per entry.
            let direct = values.len() == n;
            for k in 0..nodes.len() {
                let node = nodes.get(k) as usize;
                parents[node] = values[if direct { node } else { k }];
                visited[node] = true;
                frontier.push(node as u32);
            }
        }
        rendered(Tensor::from_dense(&[n as u64], parents.into(), &Format::dense(1), Value::I32(0)))
    }
}
