//! Printer of schedules; the parser reads the text back to the same schedule.

use super::{BoundKind, Command, Races, Schedule};
use std::fmt;

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (k, command) in self.commands().enumerate() {
            write!(f, "{}{command}", if k > 0 { "; " } else { "" })?;
        }
        Ok(())
    }
}

impl Command {
    /// The command's keyword.
    ///
    /// ```
    /// use tamis_compiler::schedule::Command;
    /// let unroll = Command::Unroll { index: "i".to_string(), factor: 4 };
    /// assert_eq!(unroll.name(), "unroll");
    /// ```
    pub fn name(&self) -> &'static str {
        match self {
            Command::Reorder { .. } => "reorder",
            Command::Split { .. } => "split",
            Command::Tile { .. } => "tile",
            Command::Fuse { .. } => "fuse",
            Command::Bound { .. } => "bound",
            Command::Unroll { .. } => "unroll",
            Command::Vectorize { .. } => "vectorize",
            Command::Parallelize { .. } => "parallelize",
            Command::Precompute { .. } => "precompute",
            Command::Convert { .. } => "convert",
            Command::Pos { .. } => "pos",
            Command::InsertWorkspace { .. } => "insert_workspace",
        }
    }

    fn arguments(&self) -> Vec<String> {
        match self {
            Command::Reorder { loops } => loops.clone(),
            Command::Split { index, outer, inner, factor } => {
                vec![index.clone(), outer.clone(), inner.clone(), factor.to_string()]
            }
            Command::Tile { loops, first, second, factors } => {
                let names = loops.iter().chain(first).chain(second).cloned();
                names.chain(factors.iter().map(i64::to_string)).collect()
            }
            Command::Fuse { outer, inner, fused } => vec![outer.clone(), inner.clone(), fused.clone()],
            Command::Bound { index, renamed, length, kind } => {
                let kind = match kind {
                    BoundKind::Exactly => "exactly",
                    BoundKind::AtMost => "at_most",
                };
                let names = [Some(index), renamed.as_ref()].into_iter().flatten().cloned();
                names.chain([length.to_string(), kind.to_string()]).collect()
            }
            Command::Unroll { index, factor } => vec![index.clone(), factor.to_string()],
            Command::Vectorize { index, lanes } => {
                [index.clone()].into_iter().chain(lanes.map(|n| n.to_string())).collect()
            }
            Command::Parallelize { index, races } => match races {
                Races::Reductions => vec![index.clone()],
                Races::NoRaces => vec![index.clone(), "CPUThread".into(), "NoRaces".into()],
            },
            Command::Precompute { expression, indices, workspace, format } => {
                let list = |names: &[String]| match names {
                    [one] => one.clone(),
                    _ => format!("[{}]", names.join(", ")),
                };
                let format = format.as_ref().map(|format| format!("\"{format}\""));
                [expression.clone(), list(indices), list(workspace)].into_iter().chain(format).collect()
            }
            Command::Convert { tensor, format } => vec![tensor.clone(), format!("\"{format}\"")],
            Command::Pos { index, position, access } => vec![index.clone(), position.clone(), access.clone()],
            Command::InsertWorkspace { policy, capacity, pipelined } => {
                let word = pipelined.then(|| "pipelined".to_string());
                [policy.clone()].into_iter().chain(capacity.map(|n| n.to_string())).chain(word).collect()
            }
        }
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.name(), self.arguments().join(", "))
    }
}
