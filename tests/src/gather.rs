//! Generator of random programs with gathers: subscripts that are looked up or computed, such as
//! `A[r[i], j]`, `A[max(i - 1, 0), j]` or `A[r[q[i]], c[j]]`, bound to names or not, permissive or
//! not.

use crate::generate::{Case, Input, enlarged};
use crate::random::Random;
use std::fmt::Write;
use tamis_ir::{DType, Value};

/// The trip count of each loop.
struct Sizes {
    i: u64,
    j: u64,
    k: u64,
}

fn numbers(random: &mut Random, shape: Vec<u64>, density: usize) -> Input {
    let count: u64 = shape.iter().product();
    let mut value = || if random.one_in(density) { 1 + random.below(4) as i64 } else { 0 };
    Input { shape, values: (0..count).map(|_| Value::I64(value())).collect(), dtype: DType::I64 }
}

/// Index arrays: coordinates below a size, or occasionally out of bounds.
fn places(random: &mut Random, count: u64, size: u64, wrong: bool) -> Input {
    let mut value = || match wrong && random.one_in(12) {
        true => *random.pick(&[-1, size as i64, size as i64 + 3]),
        false => random.below(size.max(1) as usize) as i64,
    };
    Input { shape: vec![count], values: (0..count).map(|_| Value::I64(value())).collect(), dtype: DType::I64 }
}

/// A random program with inputs. With `wrong`, some of the indices are out of bounds. Dimensions
/// without indices are larger by `padding`.
fn make(seed: u64, wrong: bool, padding: u64) -> Case {
    let mut random = Random(seed ^ 0x6a74_6865_7200);
    let mut sizes = Sizes {
        i: random.below(5) as u64,
        j: if random.one_in(8) { 0 } else { 1 + random.below(4) as u64 },
        k: if random.one_in(8) { 0 } else { 1 + random.below(3) as u64 },
    };
    let rank = 2 + usize::from(random.one_in(3));
    let n: u64 = if random.one_in(10) { 0 } else { 1 + random.below(5) as u64 };
    // The tensor is subscripted by `lead` first, then by `j` and perhaps `k`.
    let mut shape = vec![n, sizes.j];
    if rank == 3 {
        shape.push(sizes.k);
    }
    let leading = if rank == 3 && random.one_in(3) { 1 } else { 0 };
    shape.swap(0, leading);
    let density = 1 + random.below(3);
    let before = numbers(&mut random, shape, density);
    let (r, q) = (places(&mut random, sizes.i, n, wrong), places(&mut random, sizes.i, sizes.i, wrong));
    let others = numbers(&mut random, vec![sizes.i, sizes.j], 2);
    (sizes.j, sizes.k) = (enlarged(sizes.j, padding), enlarged(sizes.k, padding));
    let mut shape = vec![n, sizes.j, sizes.k];
    shape.truncate(rank);
    shape.swap(0, leading);
    let inputs = vec![
        ("A".to_string(), before.padded(&shape)),
        ("r".to_string(), r),
        ("q".to_string(), q),
        ("B".to_string(), others.padded(&[sizes.i, sizes.j])),
    ];
    let permissive = random.one_in(5);
    let last = n as i64 - 1;
    let mut lead = match random.below(6) {
        0 | 1 => "r[i]".to_string(),
        2 => "r[q[i]]".to_string(),
        3 => format!("min(max(i - 1, 0), {last})"),
        4 => "s".to_string(),
        _ => format!("({} + i) % {}", if random.one_in(2) { "r[i]" } else { "3" }, n.max(1)),
    };
    let mut text = "def f(A, r, q, B):\n".to_string();
    let format = *random.pick(&["dense", "csr", "dense, sparse_runs", "dcsr"]);
    let _ = writeln!(text, "    O = tensor(\"{format}\", shape=({}, {}))", sizes.i, sizes.j);
    if lead == "s" {
        let _ = writeln!(text, "    s = scalar({})", if wrong { n } else { n.saturating_sub(1) });
    }
    let mut pad = "    ".to_string();
    let open = |text: &mut String, pad: &mut String, line: &str| {
        let _ = writeln!(text, "{pad}{line}");
        *pad += "    ";
    };
    let outermost = rank == 3 && random.one_in(4);
    if outermost {
        open(&mut text, &mut pad, "for k in _:");
    }
    open(&mut text, &mut pad, "for i in _:");
    if random.one_in(5) {
        open(&mut text, &mut pad, "if r[i] < 2:");
    }
    if random.one_in(3) {
        let _ = writeln!(text, "{pad}above = {lead}");
        lead = "above".to_string();
    }
    open(&mut text, &mut pad, "for j in _:");
    if random.one_in(6) && lead != "above" {
        let _ = writeln!(text, "{pad}inner = {lead}");
        lead = "inner".to_string();
    }
    if random.one_in(5) {
        let masks = ["B[i,j] > 1", "i <= j", "j < 2"];
        open(&mut text, &mut pad, &format!("if {}:", random.pick(&masks)));
    }
    if rank == 3 && !outermost {
        open(&mut text, &mut pad, if random.one_in(3) { "for k in range(1, A.shape[2]):" } else { "for k in _:" });
    }
    let lead = if permissive { format!("~({lead})") } else { lead };
    let mut subscripts = vec![lead, "j".to_string()];
    if rank == 3 {
        subscripts.push("k".to_string());
    }
    subscripts.swap(0, leading);
    let mut value = format!("A[{}]", subscripts.join(", "));
    if permissive {
        value = format!("coalesce({value}, {})", random.below(2));
    }
    match random.below(5) {
        0 => value += " * B[i,j]",
        1 => value += " + B[i,j]",
        2 => value = format!("select(B[i,j] > 1, {value}, 2)"),
        _ => {}
    }
    let update = *random.pick(&["+=", "+=", "max"]);
    let _ = match update {
        "max" => writeln!(text, "{pad}O[i,j] = max(O[i,j], {value})"),
        _ => writeln!(text, "{pad}O[i,j] += {value}"),
    };
    text += "    return O\n";
    Case { text, inputs }
}

/// A program whose indices are all in bounds.
pub fn case(seed: u64) -> Case {
    make(seed, false, 0)
}

/// [`case`], with larger dimensions: the same loops over the same stored elements.
pub fn padded(seed: u64, padding: u64) -> Case {
    make(seed, false, padding)
}

/// A program some of whose indices may be out of bounds.
pub fn hostile(seed: u64) -> Case {
    make(seed, true, 0)
}
