//! Generator of random masks: comparisons of sums over loop indices, in every form.

use crate::random::Random;

const COMPARISONS: &[&str] = &["<", "<=", "==", "!=", ">=", ">"];

/// A condition over these indices, of which there is at least one.
pub fn mask(random: &mut Random, indices: &[String], depth: usize) -> String {
    if depth > 0 && random.one_in(3) {
        let (a, b) = (mask(random, indices, depth - 1), mask(random, indices, depth - 1));
        return match random.below(4) {
            0 | 1 => format!("({a}) and ({b})"),
            2 => format!("({a}) or ({b})"),
            _ => format!("not ({a})"),
        };
    }
    let (a, b) = (sum(random, indices), sum(random, indices));
    let (first, second) = (*random.pick(COMPARISONS), *random.pick(COMPARISONS));
    match random.below(6) {
        0 => format!("abs({a} - ({b})) {first} {}", random.below(4) as i64 - 1),
        1 => format!("{} {first} abs({a})", random.below(4)),
        2 => format!("{} {first} {a} {second} {b}", random.below(3)),
        3 => format!("{a} {first} {}", random.below(6) as i64 - 2),
        _ => format!("{a} {first} {b}"),
    }
}

fn sum(random: &mut Random, indices: &[String]) -> String {
    let (i, j) = (random.pick(indices).clone(), random.pick(indices).clone());
    let (a, b) = (random.below(4) as i64 - 1, random.below(5));
    match random.below(8) {
        0 | 1 => i,
        2 => format!("{i} + {b}"),
        3 => format!("{i} - {b}"),
        4 => format!("{a}*{i}"),
        5 => format!("{a}*{i} + {b}*{j} - 1"),
        6 => format!("{b} - {i}"),
        _ => format!("{i} - {j}"),
    }
}
