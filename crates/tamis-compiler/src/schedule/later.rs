//! Commands that are understood, but not available yet.

use super::Command;
use super::edit::Work;
use tamis_ir::diag::{Code, Result};

pub(super) fn run(work: &mut Work) -> Result<()> {
    let name = work.step.command.name();
    let d = work.fault(Code::E0605, format!("`{name}` is not available yet"), None, "understood, but not done");
    Err(match &work.step.command {
        Command::Pos { index, .. } => d
            .note("a loop over an index that walks a sparse level already goes over its positions")
            .help(format!("leave the command out, or cut the loop by coordinates: `split({index}, ..., ..., 32)`")),
        _ => d.help("leave the command out"),
    })
}
