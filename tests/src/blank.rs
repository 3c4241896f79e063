//! Generator of programs that read a declared tensor before the first statement that writes it:
//! every format of every rank, several fill values, results and temporaries, and several forms of
//! writes.

use crate::generate::{Case, Input, formats};
use crate::random::Random;
use std::fmt::Write;
use tamis_ir::{DType, Value};

/// Formats of results by rank: those of other random programs, and a few more levels.
fn targets(rank: usize) -> Vec<&'static str> {
    let more: &[&str] = match rank {
        1 => &["interval"],
        2 => &["coo", "dense, interval", "sparse, interval"],
        _ => &["dense, sparse_runs, band", "hash, hash, hash"],
    };
    formats(rank).iter().chain(more).copied().collect()
}

const FILLS: &[&str] = &["0", "1", "inf"];

/// Forms of writes: in order, updates, mirrored, and conditional.
const WRITES: &[&str] = &["X[@] = A[@]", "X[@] += A[@] * 2", "X[!] = A[@] - 1", "if A[@] > 0:\n    X[@] = A[@]"];

/// The number of programs.
pub fn count() -> u64 {
    (1..=3).map(|rank| targets(rank).len() * FILLS.len() * WRITES.len() * 2).sum::<usize>() as u64
}

/// The program with this index.
pub fn case(seed: u64) -> Case {
    make(seed, 0, "s += A[@] * min(X[@], 2) + 1")
}

/// [`case`], with every dimension larger by `padding`, and a first statement without a constant
/// term: the same loops over the same stored elements.
pub fn padded(seed: u64, padding: u64) -> Case {
    // Consecutive programs differ in one choice only.
    make(seed.wrapping_mul(0x9e37) % count(), padding, "s += A[@] * min(X[@], 2)")
}

fn make(seed: u64, padding: u64, first: &str) -> Case {
    let mut number = seed as usize;
    let mut take = |choices: usize| {
        let choice = number % choices;
        number /= choices;
        choice
    };
    let (temporary, write, fill) = (take(2) == 1, WRITES[take(WRITES.len())], FILLS[take(FILLS.len())]);
    let all: Vec<(usize, &str)> = (1..=3).flat_map(|rank| targets(rank).into_iter().map(move |f| (rank, f))).collect();
    let (rank, format) = all[take(all.len())];
    let before = &[4u64, 3, 5][..rank];
    let sizes: Vec<u64> = before.iter().map(|size| size + padding).collect();
    let names = &["i", "j", "k"][..rank];
    let shape: Vec<String> = sizes.iter().map(u64::to_string).collect();
    let shape = if rank == 1 { format!("({},)", shape[0]) } else { format!("({})", shape.join(", ")) };
    let element = names.join(", ");
    let mirrored: Vec<String> = names.iter().zip(&sizes).map(|(name, size)| format!("{} - {name}", size - 1)).collect();
    let outside = element.replacen('i', "~(i - 1)", 1);
    let mut text = String::from("def program(A):\n    s = scalar(0.0)\n    t = scalar(0.0)\n    u = scalar(0.0)\n");
    let mut depth = 1;
    if !temporary {
        let _ = writeln!(text, "    X = tensor(\"{format}\", fill={fill}, dtype=\"f64\", shape={shape})");
    } else {
        let _ = writeln!(text, "    for r in range(2):");
        let _ = writeln!(text, "        X = tensor(\"{format}\", fill={fill}, dtype=\"f64\", shape={shape})");
        depth = 2;
    }
    let mut nest = |body: &str| {
        for (k, (name, size)) in names.iter().zip(&sizes).enumerate() {
            let _ = writeln!(text, "{:1$}for {name} in range({size}):", "", 4 * (depth + k));
        }
        for line in body.replace('@', &element).replace('!', &mirrored.join(", ")).lines() {
            let _ = writeln!(text, "{:1$}{line}", "", 4 * (depth + rank));
        }
    };
    nest(first);
    nest(&format!("t += coalesce(min(X[{outside}], 3), 5) * A[@]"));
    nest(write);
    nest("u += min(X[@], 7)");
    text += if temporary { "    return s, t, u\n" } else { "    return s, t, u, X\n" };
    let mut random = Random(seed);
    let cells: u64 = before.iter().product();
    let number = |random: &mut Random| Value::F64(if random.one_in(2) { random.below(5) as f64 - 1.0 } else { 0.0 });
    let values = (0..cells).map(|_| number(&mut random)).collect();
    let input = Input { shape: before.to_vec(), values, dtype: DType::F64 };
    Case { text, inputs: vec![("A".into(), input.padded(&sizes))] }
}
