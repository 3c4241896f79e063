//! Generator of random programs with affine subscripts: convolutions, correlations, pooling, with
//! dilation and strides, over tensors of one to three dimensions.

use crate::generate::{Case, Input};
use crate::random::Random;
use std::fmt::Write;
use tamis_ir::{DType, Value};

/// Formats of inputs, by rank.
pub fn formats(rank: usize) -> &'static [&'static str] {
    match rank {
        0 => &["dense"],
        1 => &[
            "dense",
            "sparse",
            "hash",
            "bytemap",
            "runs",
            "sparse_runs",
            "blocks",
            "band",
            "(i) -> (i/2, i%2): sparse, dense",
            "(i) -> (i/3, i%3): dense, sparse",
        ],
        2 => &[
            "dense",
            "csr",
            "csc",
            "dcsr",
            "dcsc",
            "coo",
            "dense, hash",
            "bytemap, sparse",
            "sparse, dense",
            "dense, runs",
            "sparse, sparse_runs",
            "runs, sparse",
            "sparse_runs, blocks",
            "blocks, sparse",
            "dense, blocks",
            "sparse, band",
            "band, runs",
            "bsr(2,2)",
            "(i,j) -> (j,i): sparse(nonunique), singleton",
            "(i,j) -> (j-i, i): sparse, band",
        ],
        _ => &[
            "dense",
            "csf",
            "coo",
            "dense, dense, sparse",
            "dense, sparse, sparse",
            "dense, sparse, dense",
            "sparse, dense, sparse_runs",
            "runs, sparse, blocks",
            "(i,j,k) -> (k,i,j): sparse, sparse, sparse",
            "(i,j,k) -> (i/2, j, k/3, i%2, k%3): dense, sparse, sparse, dense, dense",
        ],
    }
}

/// Values in contiguous ranges, most of them zero.
fn input(random: &mut Random, shape: Vec<u64>) -> Input {
    let count: u64 = shape.iter().product();
    let mut values = Vec::new();
    let density = 1 + random.below(5);
    while values.len() < count as usize {
        let value = if random.one_in(density) { 1 + random.below(4) as i64 } else { 0 };
        let length = if random.one_in(3) { 1 + random.below(5) } else { 1 };
        values.extend(std::iter::repeat_n(Value::I64(value), length));
    }
    values.truncate(count as usize);
    Input { shape, values, dtype: DType::I64 }
}

/// One dimension of the tensor that is read, subscripted by `a*i + b*k + c`.
struct Axis {
    /// The loop index of the result.
    outer: String,
    /// Loop indices of the filter, with their sizes.
    inner: Vec<(String, u64)>,
    subscript: String,
    size: u64,
    /// The trip count of the outer loop, and the size, before padding.
    before: (u64, u64),
    permissive: bool,
    /// The subscript may be out of bounds, unless a condition keeps it inside.
    leaves: bool,
    bounds: Vec<(String, u64)>,
}

fn axis(random: &mut Random, dim: usize, padding: u64) -> Axis {
    let outer = ["i", "j", "m"][dim].to_string();
    let names = [["k", "p"], ["l", "r"], ["n", "q"]][dim];
    let inner: Vec<(String, u64)> = names
        .iter()
        .take(if random.one_in(4) { 2 } else { 1 })
        .map(|n| (n.to_string(), if random.one_in(20) { 0 } else { 1 + random.below(4) as u64 }))
        .collect();
    let inner = if random.one_in(8) { Vec::new() } else { inner };
    let permissive = random.one_in(4);
    let before = 1 + random.below(6) as u64;
    let length = before + padding;
    let mut terms: Vec<(String, i64, u64)> = Vec::new();
    let outer_by = *random.pick(&[1, 1, 1, 2, 3, -1]);
    terms.push((outer.clone(), outer_by, length));
    for (name, size) in &inner {
        terms.push((name.clone(), *random.pick(&[1, 1, 1, 2, -1]), *size));
    }
    // Reversed in half of the cases.
    if random.one_in(2) {
        terms.reverse();
    }
    let least: i64 = terms.iter().map(|(_, by, size)| (by * (*size as i64 - 1)).min(0)).sum();
    let greatest: i64 = terms.iter().map(|(_, by, size)| (by * (*size as i64 - 1)).max(0)).sum();
    let constant = if permissive { random.below(5) as i64 - 2 } else { -least + random.below(3) as i64 };
    let size = if permissive {
        (greatest + 1).max(1) as u64
    } else {
        (greatest + constant + 1 + random.below(3) as i64) as u64
    };
    // Reversed windows that may leave the tensor grow to the side of negative coordinates.
    let grown = if permissive && outer_by < 0 { 0 } else { padding * outer_by.unsigned_abs() };
    let before = (before, size - grown);
    let mut subscript = String::new();
    for (name, by, _) in &terms {
        match (*by, subscript.is_empty()) {
            (1, true) => subscript += name,
            (1, false) => subscript += &format!(" + {name}"),
            (-1, _) => subscript += &format!(" - {name}"),
            (by, true) => subscript += &format!("{by}*{name}"),
            (by, false) => subscript += &format!(" + {by}*{name}"),
        }
    }
    if subscript.starts_with(" - ") {
        subscript = format!("{constant}{subscript}");
    } else if constant != 0 {
        subscript += &if constant > 0 { format!(" + {constant}") } else { format!(" - {}", -constant) };
    }
    let bounds = terms.iter().map(|(name, _, size)| (name.clone(), *size)).collect();
    let leaves = !permissive && random.one_in(6);
    if leaves {
        let by = random.below(4);
        subscript += &if random.one_in(2) { format!(" - {by}") } else { format!(" + {by}") };
    }
    let subscript = if random.one_in(4) { mangled(random, &subscript) } else { subscript };
    Axis { outer, inner, subscript, size, before, permissive, leaves, bounds }
}

/// The same subscript, written with arithmetic that cancels.
fn mangled(random: &mut Random, sum: &str) -> String {
    let by = 1 + random.below(4);
    match random.below(9) {
        0 => format!("1*({sum})"),
        1 => format!("({sum})*1"),
        2 => format!("{sum} + 0"),
        3 => format!("0 + {sum}"),
        4 => format!("-(-({sum}))"),
        5 => format!("{sum} + {by} - {by}"),
        6 => format!("{by}*({sum}) - {}*({sum})", by - 1),
        7 => format!("{by} - ({by} - ({sum}))"),
        _ => format!("i64({sum})"),
    }
}

/// Conditions on loop indices and elements.
fn condition(random: &mut Random, loops: &[(String, u64)], elements: &[String]) -> String {
    let index = |random: &mut Random| loops[random.below(loops.len())].0.clone();
    let number = random.below(5);
    match random.below(9) {
        0 => format!("{} <= {}", index(random), index(random)),
        1 => format!("{} != {number}", index(random)),
        2 => format!("{} >= {}", index(random), 1 + number % 2),
        3 => format!("{} + {} < {}", index(random), index(random), 2 + number),
        4 => format!("{} % 2 == 0", index(random)),
        5 | 6 if !elements.is_empty() => format!("{} > {}", random.pick(elements), number % 3),
        7 if !elements.is_empty() => format!("{} != {number}", random.pick(elements)),
        5..=7 => format!("{} > 0", index(random)),
        _ => {
            let (a, b) = (condition(random, loops, elements), condition(random, loops, elements));
            format!("({a} {} {b})", random.pick(&["and", "or"]))
        }
    }
}

/// A random program with inputs.
pub fn case(seed: u64) -> Case {
    padded(seed, 0)
}

/// [`case`], with longer outer loops: the same loops over the same stored elements.
pub fn padded(seed: u64, padding: u64) -> Case {
    let mut random = Random(seed ^ 0x5eed_aff1);
    let rank = 1 + random.below(3).min(random.below(3));
    let axes: Vec<Axis> = (0..rank).map(|dim| axis(&mut random, dim, padding)).collect();
    // Transposed: the affine subscripts are those of the result.
    let transposed = random.one_in(7);
    let length = |a: &Axis| a.bounds.iter().find(|(name, _)| *name == a.outer).map_or(1, |(_, size)| *size);
    let shape: Vec<u64> = axes.iter().map(|a| if transposed { length(a) } else { a.size }).collect();
    let before = axes.iter().map(|a| if transposed { a.before.0 } else { a.before.1 }).collect();
    let mut inputs = vec![("T".to_string(), input(&mut random, before).padded(&shape))];
    let inner: Vec<(String, u64)> = axes.iter().flat_map(|a| a.inner.clone()).take(3).collect();
    let filter = !inner.is_empty() && !random.one_in(3);
    if filter {
        inputs.push(("F".to_string(), input(&mut random, inner.iter().map(|(_, size)| *size).collect())));
    }
    let other = random.one_in(3);
    let along = random.below(rank);
    if other {
        let before = input(&mut random, vec![axes[along].before.0]);
        inputs.push(("B".to_string(), before.padded(&[length(&axes[along])])));
    }
    let mut axes = axes;
    let mut named: Vec<String> = Vec::new();
    for (dim, axis) in axes.iter_mut().enumerate() {
        if random.one_in(6) {
            named.push(format!("w{dim} = {}", axis.subscript));
            axis.subscript = format!("w{dim}");
        }
    }
    let axes = axes;
    let read: Vec<String> =
        axes.iter().map(|a| if a.permissive { format!("~({})", a.subscript) } else { a.subscript.clone() }).collect();
    let outers: Vec<&str> = axes.iter().map(|a| a.outer.as_str()).collect();
    let mut value = format!("T[{}]", if transposed { outers.join(",") } else { read.join(", ") });
    if axes.iter().any(|a| a.permissive) && !transposed {
        value = format!("coalesce({value}, {})", if random.one_in(4) { 2 } else { 0 });
    }
    let mut elements: Vec<String> = Vec::new();
    if axes.iter().all(|a| !a.permissive && !a.leaves) && !transposed {
        elements.push(value.clone());
    }
    if !transposed && random.one_in(6) {
        // The same tensor again, shifted in one dimension.
        let dim = random.below(rank);
        let moved = |k: usize| match k == dim {
            true => format!("~({} {} 1)", axes[k].subscript, if seed.is_multiple_of(2) { "+" } else { "-" }),
            false => read[k].clone(),
        };
        let again: Vec<String> = (0..rank).map(moved).collect();
        value = format!("({value} {} coalesce(T[{}], 0))", random.pick(&["*", "+"]), again.join(", "));
    }
    if filter {
        let names: Vec<&str> = inner.iter().map(|(name, _)| name.as_str()).collect();
        let element = format!("F[{}]", names.join(","));
        value = format!("{value} * {element}");
        elements.push(element);
    }
    if other {
        let element = format!("B[{}]", axes[along].outer);
        value = format!("{value} {} {element}", random.pick(&["*", "+"]));
        elements.push(element);
    }
    let mut loops: Vec<(String, u64)> = axes.iter().flat_map(|a| a.bounds.clone()).collect();
    for k in (1..loops.len()).rev() {
        loops.swap(k, random.below(k + 1));
    }
    // Half of the programs have the conventional loop order: the indices of the result first.
    if random.one_in(2) {
        loops.sort_by_key(|(name, _)| !axes.iter().any(|a| a.outer == *name));
    }
    let format = match rank {
        1 => *random.pick(&["dense", "sparse", "sparse_runs", "bytemap", "runs"]),
        2 => *random.pick(&["dense", "csr", "dcsr", "coo", "dense, sparse_runs"]),
        _ => *random.pick(&["dense", "csf", "coo"]),
    };
    let sizes: Vec<String> = axes.iter().map(|a| if transposed { a.size } else { length(a) }.to_string()).collect();
    let names: Vec<&str> = inputs.iter().map(|(name, _)| name.as_str()).collect();
    let mut text = format!("def f({}):\n", names.join(", "));
    let _ = writeln!(text, "    O = tensor(\"{format}\", shape=({},))", sizes.join(","));
    let mut pad = "    ".to_string();
    let ranges = random.one_in(3);
    for (name, size) in &loops {
        let bare = axes.iter().any(|a| a.outer == *name) || (filter && inner.iter().any(|(n, _)| n == name));
        let extent = if ranges || !bare { format!("range({size})") } else { "_".to_string() };
        let _ = writeln!(text, "{pad}for {name} in {extent}:");
        pad += "    ";
    }
    for name in &named {
        let _ = writeln!(text, "{pad}{name}");
    }
    let tensor = if transposed { "O" } else { "T" };
    let mut kept: Vec<String> = Vec::new();
    for (dim, a) in axes.iter().enumerate() {
        let tight = random.one_in(if a.leaves { 2 } else { 12 }).then(|| (random.below(4) as i64, random.below(4)));
        let (at, by_number) = (&a.subscript, random.one_in(2));
        kept.extend(match tight {
            None if a.leaves => Some(format!("{at} >= 0 and {at} < {tensor}.shape[{dim}]")),
            Some((low, less)) if by_number && !transposed => {
                Some(format!("{low} <= {at} < {}", a.before.1.saturating_sub(less as u64)))
            }
            Some((low, less)) => Some(format!("{at} > {} and {at} <= {tensor}.shape[{dim}] - {}", low - 1, less + 1)),
            None => None,
        });
    }
    if !kept.is_empty() {
        let _ = writeln!(text, "{pad}if {}:", kept.join(" and "));
        pad += "    ";
    }
    let guarded = random.one_in(3);
    if guarded && random.one_in(2) {
        let _ = writeln!(text, "{pad}if {}:", condition(&mut random, &loops, &elements));
        pad += "    ";
    } else if guarded {
        let cond = condition(&mut random, &loops, &elements);
        let other = if random.one_in(4) { 1 } else { 0 };
        value = match random.below(3) {
            0 => format!("select({cond}, {value}, {other})"),
            1 => format!("select(not {cond}, {other}, {value})"),
            _ => format!("({value} if {cond} else {other})"),
        };
    }
    let update = *random.pick(&["+=", "+=", "+=", "max"]);
    let target = format!("O[{}]", if transposed { read.join(", ") } else { outers.join(",") });
    match update {
        "max" => writeln!(text, "{pad}{target} = max({target}, {value})"),
        _ => writeln!(text, "{pad}{target} += {value}"),
    }
    .unwrap_or_default();
    text += "    return O\n";
    Case { text, inputs }
}
