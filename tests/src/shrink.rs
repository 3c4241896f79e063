//! Test-case reduction: shrinks a failing program to its relevant parts.
//!
//! The text of a program is shrunk: statements are deleted with their blocks, blocks lose their
//! headers, subexpressions become numbers, inputs lose values. A candidate is kept if it still
//! fails, whatever its meaning.

use crate::generate::Case;
use tamis_ir::Value;

/// The maximum number of candidates.
const PATIENCE: usize = 4000;

/// The smallest failing case found.
pub fn shrink(case: &Case, fails: &dyn Fn(&Case) -> bool) -> Case {
    let mut best = case.clone();
    let mut tried = 0;
    'again: loop {
        for candidate in candidates(&best) {
            tried += 1;
            if tried > PATIENCE {
                return best;
            }
            if fails(&candidate) {
                best = candidate;
                continue 'again;
            }
        }
        return best;
    }
}

/// Smaller cases, the largest reductions first.
fn candidates(case: &Case) -> Vec<Case> {
    let lines: Vec<&str> = case.text.lines().collect();
    let mut texts = Vec::new();
    for (at, line) in lines.iter().enumerate().skip(1) {
        let depth = indent(line);
        let inside = lines[at + 1..].iter().take_while(|l| indent(l) > depth).count();
        let stop = at + 1 + inside;
        if let Some(results) = line.trim().strip_prefix("return ") {
            let names: Vec<&str> = results.split(", ").collect();
            for k in 0..names.len() {
                let mut kept = names.clone();
                kept.remove(k);
                if !kept.is_empty() {
                    texts.push(replaced(&lines, at, stop, vec![format!("    return {}", kept.join(", "))]));
                }
            }
            continue;
        }
        texts.push(replaced(&lines, at, stop, Vec::new()));
        if inside > 0 {
            let body = lines[at + 1..stop].iter().map(|l| l[4.min(indent(l))..].to_string()).collect();
            texts.push(replaced(&lines, at, stop, body));
        }
    }
    for (at, line) in lines.iter().enumerate().skip(1) {
        for simpler in simpler(line) {
            texts.push(replaced(&lines, at, at + 1, vec![simpler]));
        }
    }
    let mut found: Vec<Case> = texts.into_iter().map(|text| Case { text, inputs: case.inputs.clone() }).collect();
    for (k, (_, input)) in case.inputs.iter().enumerate() {
        for cell in 0..input.values.len() {
            let zero = Value::zero(input.dtype);
            if !input.values[cell].same_number(zero) {
                let mut smaller = case.clone();
                smaller.inputs[k].1.values[cell] = zero;
                found.push(smaller);
            }
        }
    }
    found
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

fn replaced(lines: &[&str], start: usize, stop: usize, by: Vec<String>) -> String {
    let before = lines[..start].iter().map(|l| (*l).to_string());
    let after = lines[stop..].iter().map(|l| (*l).to_string());
    let mut text = before.chain(by).chain(after).collect::<Vec<String>>().join("\n");
    text.push('\n');
    text
}

/// The line without a parenthesised subexpression, or one side of an operator.
fn simpler(line: &str) -> Vec<String> {
    let mut found = Vec::new();
    let bytes = line.as_bytes();
    if line.contains("tensor(") || line.trim_start().starts_with("for ") {
        return found;
    }
    for (start, byte) in bytes.iter().enumerate() {
        if *byte != b'(' {
            continue;
        }
        let Some(stop) = closing(bytes, start) else { continue };
        // A call with its name, or a parenthesised group.
        let name = bytes[..start].iter().rev().take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count();
        let (from, inside) = (start - name, &line[start + 1..stop]);
        for by in ["1", "0"].into_iter().chain(arguments(inside)) {
            found.push(format!("{}{by}{}", &line[..from], &line[stop + 1..]));
        }
    }
    for operator in [" * ", " + ", " - ", " and ", " or "] {
        for (at, _) in line.match_indices(operator) {
            let left = bytes[..at].iter().rev().take_while(|b| !b" (".contains(b)).count();
            let right = bytes[at + operator.len()..].iter().take_while(|b| !b" ),:".contains(b)).count();
            let end = at + operator.len() + right;
            found.push(format!("{}{}", &line[..at], &line[end..]));
            found.push(format!("{}{}", &line[..at - left], &line[at + operator.len()..]));
        }
    }
    found
}

fn closing(bytes: &[u8], open: usize) -> Option<usize> {
    let mut depth = 0usize;
    for (k, byte) in bytes.iter().enumerate().skip(open) {
        match byte {
            b'(' => depth += 1,
            b')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(k);
        }
    }
    None
}

/// The arguments of a call, split at its own commas.
fn arguments(text: &str) -> Vec<&str> {
    let (mut depth, mut start, mut parts) = (0i32, 0, Vec::new());
    for (k, c) in text.char_indices() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(text[start..k].trim());
                start = k + 1;
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The parts that the failure needs remain; all others are removed.
    #[test]
    fn what_does_not_matter_is_cut() {
        let text = "def program(A):\n    R1 = tensor(\"dense\", shape=(3,))\n    for i in range(3):\n        if i > 1:\n            R1[i] += max(2 * A, (A - 1)) + 3\n    s2 = scalar(0)\n    s2 += A\n    return R1, s2\n";
        let input = crate::generate::Input { shape: vec![], values: vec![Value::I64(7)], dtype: tamis_ir::DType::I64 };
        let case = Case { text: text.into(), inputs: vec![("A".into(), input)] };
        let fails = |case: &Case| tamis_ir::Program::parse(&case.text).is_ok() && case.text.contains("max(");
        let small = shrink(&case, &fails);
        assert!(fails(&small));
        let wanted = "def program(A):\n    R1 = tensor(\"dense\", shape=(3,))\n    for i in range(3):\n        R1[i] += max(2, 1)\n    s2 = scalar(0)\n    return s2\n";
        assert_eq!(small.text, wanted);
        assert!(small.inputs[0].1.values[0].same_number(Value::I64(0)));
    }
}
