//! Generator of random legal schedules, from the loops and expressions of a program.

use crate::random::Random;
use tamis_compiler::lower::Policy;
use tamis_compiler::schedule::{BoundKind, Command, Races, Schedule};
use tamis_ir::program::{Checked, Expr, ExprId, LoopExtent, Program, StmtKind};
use tamis_ir::{Code, Format};

/// A schedule of up to `length` legal commands, and the scheduled program; `refused` receives the
/// diagnostics of illegal ones.
pub fn random(
    random: &mut Random,
    program: &Program,
    checked: &Checked,
    formats: &[Format],
    length: usize,
    refused: &mut dyn FnMut(&Schedule, &tamis_ir::Diagnostics),
) -> (Schedule, Program) {
    let (mut schedule, mut current) = (Schedule::new(), program.clone());
    for _ in 0..3 * length {
        if schedule.len() == length {
            break;
        }
        let Some(command) = command(random, program, &current, checked) else { break };
        let longer = schedule.clone().then(command);
        match longer.apply_to(program, checked, formats, Policy::default()) {
            Ok(changed) => (schedule, current) = (longer, changed),
            Err(errors) => refused(&longer, &errors),
        }
    }
    (schedule, current)
}

/// The error codes of illegal commands; any other code is a bug.
pub fn is_refusal(code: Code) -> bool {
    use Code::*;
    matches!(code, E0406 | E0605 | E0603 | E1202 | E1203 | E1204 | E1205 | E1206 | E1207 | E1208 | E1209 | E1210)
}

/// All loops, by a name that identifies them.
fn loops(program: &Program) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    program.visit(&mut |stmt| {
        if let StmtKind::For { index, .. } = &stmt.kind {
            names.push(program.indices[index.index()].clone());
        }
    });
    let total = |name: &String| names.iter().filter(|other| *other == name).count();
    let number = |k: usize| names[..=k].iter().filter(|other| **other == names[k]).count();
    let unique = names.iter().enumerate().map(|(k, name)| match total(name) {
        1 => name.clone(),
        _ => format!("{name}#{}", number(k)),
    });
    unique.collect()
}

/// The subexpressions of assigned values.
fn parts(program: &Program) -> Vec<(ExprId, bool)> {
    let mut found = Vec::new();
    program.visit(&mut |stmt| {
        if let StmtKind::Assign { value, .. } = &stmt.kind {
            found.push((*value, true));
            let mut open = vec![*value];
            while let Some(id) = open.pop() {
                if let Expr::Call(_, operands) = program.expr(id) {
                    open.extend(operands);
                }
                found.push((id, false));
            }
        }
    });
    found
}

/// A random command, legal or not. `original` is the unscheduled program.
fn command(random: &mut Random, original: &Program, program: &Program, checked: &Checked) -> Option<Command> {
    let loops = loops(program);
    if loops.is_empty() {
        return None;
    }
    let index = random.pick(&loops).clone();
    let other = random.pick(&loops).clone();
    let plain = |name: &str| name.split('#').next().unwrap_or(name).to_string();
    let fresh = |suffix: &str| format!("{}_{}{suffix}", plain(&index), program.indices.len());
    let factor = *random.pick(&[1, 2, 3, 4, 7, 32]);
    Some(match random.below(19) {
        0..=3 => {
            let mut order = loops.clone();
            for k in 0..order.len() {
                let with = random.below(order.len());
                order.swap(k, with);
            }
            // Two loops belong to one nest more often than three.
            order.truncate(2 + random.below(2));
            Command::Reorder { loops: order }
        }
        4 | 5 => Command::Split { index: index.clone(), outer: fresh("o"), inner: fresh("i"), factor },
        6 => Command::Tile {
            loops: [index.clone(), other],
            first: [fresh("a"), fresh("b")],
            second: [fresh("c"), fresh("d")],
            factors: [factor, *random.pick(&[1, 2, 5])],
        },
        7 | 8 => Command::Fuse { outer: index.clone(), inner: other, fused: fresh("f") },
        9 => Command::Unroll { index, factor },
        10 => match random.below(3) {
            0 => Command::Vectorize { index, lanes: None },
            1 => Command::Parallelize { index, races: Races::Reductions },
            _ => Command::Parallelize { index, races: Races::NoRaces },
        },
        11 => {
            let number = program.indices.iter().position(|name| *name == plain(&index));
            let length = match number.and_then(|k| checked.extents.loops.get(k)) {
                Some(LoopExtent::Static { start, stop }) => stop - start,
                _ => 3,
            };
            Command::Bound {
                index,
                renamed: None,
                length,
                kind: *random.pick(&[BoundKind::Exactly, BoundKind::AtMost]),
            }
        }
        14..=16 => {
            let params: Vec<&str> = program.params.iter().map(|id| program.tensor(*id).name.as_str()).collect();
            let access = (*params.get(random.below(params.len().max(1)))?).to_string();
            Command::Pos { index: index.clone(), position: fresh("p"), access }
        }
        12 => {
            let params: Vec<&str> = program.params.iter().map(|id| program.tensor(*id).name.as_str()).collect();
            let at = random.below(params.len().max(1));
            let tensor = (*params.get(at)?).to_string();
            let formats = crate::generate::formats(program.tensor(program.params[at]).rank);
            Command::Convert { tensor, format: (*random.pick(formats)).to_string() }
        }
        18 => Command::InsertWorkspace {
            policy: (*random.pick(&["coord", "hash", "bucket", "vector"])).to_string(),
            capacity: *random.pick(&[None, Some(1), Some(3), Some(64)]),
            pipelined: random.one_in(4),
        },
        _ => {
            // Expressions and index variables of the original loops remain valid names.
            let written = if random.one_in(3) { original } else { program };
            let parts = parts(written);
            let (part, whole) = if parts.is_empty() { return None } else { *random.pick(&parts) };
            let mut indices = vec![plain(&index)];
            if !program.vars.is_empty() && random.one_in(3) {
                indices[0] = random.pick(&program.vars).clone();
            }
            if random.one_in(3) && plain(&other) != indices[0] {
                indices.push(plain(&other));
            }
            let workspace = match random.one_in(2) {
                true => indices.clone(),
                false => indices.iter().map(|name| format!("{name}w{}", program.indices.len())).collect(),
            };
            let formats = match indices.len() {
                1 => ["dense", "bytemap", "hash", "sparse"],
                _ => ["dense", "dense, bytemap", "hash, hash", "dense, sparse"],
            };
            let format = if whole || random.one_in(2) { Some((*random.pick(&formats)).to_string()) } else { None };
            Command::Precompute { expression: written.show(part), indices, workspace, format }
        }
    })
}
