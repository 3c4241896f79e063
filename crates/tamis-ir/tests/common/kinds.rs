//! Generator of random kernels with loops of every kind and vectors of every form, as text. They are
//! well-formed, and no two iterations race.

use tamis_ir::Value;
use tamis_ir::kernel::{Array, Memory};

/// The header of the kernels.
pub const HEADER: &str = "kernel f
    in x: i64[]
    in at: index u32[]
    out y: i64[]
    out h: i64[]
    shared(16) s: i64[]
    in n: i64
begin
";

fn ints(values: impl IntoIterator<Item = i64>) -> Array {
    Array::from_values(values.into_iter().map(Value::I64))
}

/// `x` counts from 10, `at` is a permutation of 0..16.
pub fn memory(n: i64) -> Memory {
    let arrays = vec![ints(10..34), ints((0..16).map(|k| k * 5 % 16)), ints([0; 24]), ints([0; 4]), Array::default()];
    Memory { arrays, scalars: vec![Value::I64(n)] }
}

/// A pseudo-random number below a bound.
fn below(state: &mut u64, n: usize) -> usize {
    *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    (*state >> 33) as usize % n
}

/// An integer expression of a loop's counter.
fn expr(state: &mut u64, depth: usize, names: &[&str]) -> String {
    if depth == 0 || below(state, 4) == 0 {
        return match below(state, 4) {
            0 => format!("{}", below(state, 9) as i64 - 3),
            1 => "x[i]".to_string(),
            2 => "x[at[i]]".to_string(),
            _ => names[below(state, names.len())].to_string(),
        };
    }
    let (a, b) = (expr(state, depth - 1, names), expr(state, depth - 1, names));
    match below(state, 7) {
        0 => format!("min({a}, {b})"),
        1 => format!("max({a}, {b})"),
        2 => format!("select({} < 3, {a}, {b})", names[below(state, names.len())]),
        3 => format!("({a}) * ({b})"),
        4 => format!("({a}) - ({b})"),
        _ => format!("({a}) + ({b})"),
    }
}

/// A random loop of a kind, or chunks of explicit vectors.
pub fn random_body(state: &mut u64) -> String {
    let kinds = ["parallel(extent, grain 4)", "parallel(work at, grain 1)", "grid", "block", "lane"];
    let tails = ["masked", "overlapping", "remainder"];
    let kind = below(state, 4);
    let lanes = [2, 4, 8][below(state, 3)];
    if kind == 3 {
        // Chunks of lanes with a masked tail, by hand.
        let value = expr(state, 2, &["i", "n"]);
        let place = ["i", "at[i]"][below(state, 2)];
        let body = format!(
            "    var sum: i64x{lanes} = splat(0, {lanes})
    for c in 0..(n + {}) // {lanes}
        let i: i64x{lanes} = ramp(c * {lanes}, 1, {lanes})
        let mask: boolx{lanes} = i < n
        let value: i64x{lanes} = (i * 0) + ({})
        y[{}] = value where mask
        sum = sum + select(mask, value, 0)
        atomic h[i % 4] {} select(mask, value, 0)
    let total: i64 = reduce(add, sum)
    y[23] = total
",
            lanes - 1,
            value
                .replace("x[at[i]]", "masked(x[masked(at[i], mask, 0)], mask, 1)")
                .replace("x[i]", "masked(x[i], mask, 1)"),
            place.replace("at[i]", "masked(at[i], mask, 0)"),
            ["add", "bitxor"][below(state, 2)],
        );
        return body;
    }
    let kind = match kind {
        0 => format!("vector({lanes} lanes, {})", tails[below(state, 3)]),
        _ => kinds[below(state, kinds.len())].to_string(),
    };
    let reduces = kind.starts_with("vector") && !kind.contains("overlapping") && below(state, 2) == 0;
    let mut body = String::new();
    if reduces {
        body += "    var sum: i64 = n\n";
    }
    body += &format!("    for i in 0..n {kind}\n        let a: i64 = {}\n", expr(state, 2, &["i", "n"]));
    if below(state, 2) == 0 {
        let other = expr(state, 2, &["i", "a"]);
        body += &format!("        if a < 12\n            y[i] = {other}\n        else\n            y[i] = a\n");
    } else {
        body += &format!("        y[at[i]] = {}\n", expr(state, 2, &["i", "a"]));
    }
    if reduces {
        body += &format!("        sum = {}\n", ["sum + a", "min(a, sum)", "sum * (a + a)"][below(state, 3)]);
    } else if !kind.contains("overlapping") && below(state, 2) == 0 {
        body += &format!("        atomic h[i % 4] {} a\n", ["add", "max", "bitxor", "mul"][below(state, 4)]);
    }
    if reduces {
        body += "    y[23] = sum\n";
    }
    body
}
