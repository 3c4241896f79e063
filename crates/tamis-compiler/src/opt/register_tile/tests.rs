//! Register tiling of loop nests: the tiled kernel, and nests that the pass leaves unchanged.

use super::super::testing::{Make, after};
use super::*;
use tamis_ir::Value;

/// Variations of the product of a sparse and a dense matrix.
#[derive(Clone, Copy, PartialEq)]
enum Unlike {
    Nothing,
    /// The result is not grown before the nest.
    NotGrown,
    /// Each row is filled before the nest.
    Filled,
    /// The nest stores to a second result.
    Stores,
    /// The length of a row depends on the sparse element.
    Length,
    /// The row depends on the sparse element.
    Scatters,
    /// The update reads another element of the row.
    ReadsRow,
    /// The outer loop is over consecutive rows.
    Dense,
    /// The added value is expensive.
    Expensive,
    /// Rows have this length.
    Long(i64),
}

fn product(unlike: Unlike) -> Make {
    let mut make = Make::new();
    let (zero, one, n) = (make.int(0), make.int(1), make.n);
    let m = if let Unlike::Long(m) = unlike { make.int(m) } else { make.m };
    let len = make.call(Op::Mul, &[n, m]);
    if unlike != Unlike::NotGrown {
        make.b.emit(Stmt::Grow { buffer: make.y, len, fill: None });
    }
    make.count("i", zero, n, |make, i| {
        let row = make.call(Op::Mul, &[i, m]);
        if unlike == Unlike::Filled {
            let value = make.float(0.0);
            make.b.emit(Stmt::Fill { buffer: make.y, start: row, len: m, value });
        }
        let next = make.b.add(i, one);
        let (start, stop) = (make.load(make.pos, i), make.load(make.pos, next));
        let (start, stop) = if unlike == Unlike::Dense { (zero, n) } else { (start, stop) };
        make.count("q", start, stop, |make, q| {
            let j = if unlike == Unlike::Dense { q } else { make.load(make.crd, q) };
            let j = make.b.name("j", j);
            if unlike == Unlike::Stores {
                let value = make.float(1.0);
                make.b.store(make.w, j, value);
            }
            let length = if unlike == Unlike::Length { j } else { m };
            make.count("k", zero, length, |make, k| {
                let row = if unlike == Unlike::Scatters { make.call(Op::Mul, &[j, m]) } else { row };
                let place = make.b.add(row, k);
                let other = make.call(Op::Mul, &[j, m]);
                let other = make.b.add(other, k);
                let value = make.load(if unlike == Unlike::ReadsRow { make.y } else { make.x }, other);
                let value = if unlike == Unlike::Expensive { make.call(Op::Exp, &[value]) } else { value };
                make.add_to(make.y, place, value);
            });
        });
    });
    make
}

#[test]
fn rows_are_kept_in_tiles() {
    let expected = [
        "grow y to n * m",
        "for i in 0..n",
        "    let tiles: i64 = max(m, 0) // 32",
        "    for tile in 0..tiles",
        "        let first: i64 = tile * 32",
        "        for k in 0..32 unroll",
        "            y_tile[k] = y[((i * m) + first) + k]",
        "        for q in A_pos[i]..A_pos[i + 1]",
        "            let j: i64 = A_crd[q]",
        "            for k in 0..32 unroll",
        "                y_tile[k] = y_tile[k] + x[((j * m) + first) + k]",
        "        for k in 0..32 unroll",
        "            y[((i * m) + first) + k] = y_tile[k]",
        "    if (tiles * 32) < m",
        "        if (m - (tiles * 32)) <= 8",
        "            let first: i64 = tiles * 32",
        "            let width: i64 = min(m - first, 8)",
        "            for k in 0..width",
        "                y_few[k] = y[((i * m) + first) + k]",
        "            for q in A_pos[i]..A_pos[i + 1]",
        "                let j: i64 = A_crd[q]",
        "                for k in 0..width",
        "                    y_few[k] = y_few[k] + x[((j * m) + first) + k]",
        "            for k in 0..width",
        "                y[((i * m) + first) + k] = y_few[k]",
        "        else",
        "            for part in 0..((m - (tiles * 32)) + 15) // 16",
        "                let first: i64 = (tiles * 32) + (part * 16)",
        "                let width: i64 = min(m - first, 16)",
        "                for k in 0..width",
        "                    y_rest[k] = y[((i * m) + first) + k]",
        "                for q in A_pos[i]..A_pos[i + 1]",
        "                    let j: i64 = A_crd[q]",
        "                    for k in 0..width",
        "                        y_rest[k] = y_rest[k] + x[((j * m) + first) + k]",
        "                for k in 0..width",
        "                    y[((i * m) + first) + k] = y_rest[k]",
    ];
    assert_eq!(unnumbered(product(Unlike::Nothing)), expected);
}

/// The kernel after the pass, with number suffixes removed from names.
fn unnumbered(make: Make) -> Vec<String> {
    let mut lines = after(&[run], make);
    for line in &mut lines {
        for name in ["q", "j", "k", "first", "part", "width"] {
            // A copy of a copy has two suffixes.
            for number in (2..6).chain(2..6) {
                *line = line.replace(&format!("{name}_{number}"), name);
            }
        }
    }
    lines
}

#[test]
fn rows_that_may_not_be_there_are_loaded_under_a_condition() {
    let lines = unnumbered(product(Unlike::NotGrown));
    let expected = ["    if A_pos[i] < A_pos[i + 1]", "        let tiles: i64 = max(m, 0) // 32"];
    assert_eq!(lines[1..3], expected);
}

#[test]
fn rows_that_were_just_filled_are_not_loaded() {
    let lines = unnumbered(product(Unlike::Filled));
    assert_eq!(lines[2], "    let tiles: i64 = max(m, 0) // 32", "{lines:#?}");
    assert_eq!(lines[6], "            y_tile[k] = 0.0");
    assert_eq!(lines[13], "    if (tiles * 32) < m");
    assert!(lines.contains(&"                    y_rest[k] = 0.0".to_string()), "{lines:#?}");
    assert!(lines.contains(&"                y_few[k] = 0.0".to_string()), "{lines:#?}");
}

#[test]
fn rows_of_constant_length() {
    for (length, copies) in [(100, 2), (64, 1), (32, 1), (31, 0), (0, 0), (-5, 0)] {
        let lines = unnumbered(product(Unlike::Long(length)));
        let count = |words: &str| lines.iter().filter(|line| line.contains(words)).count();
        assert_eq!(count("_tile[") > 0, copies > 0, "{length}");
        assert_eq!(count("for tile in"), usize::from(copies > 0 && length != 32), "{length}: one tile needs no loop");
        assert_eq!(count("for q in"), copies.max(1), "{length}");
        assert_eq!(count("if "), 0, "{length}");
    }
}

#[test]
fn other_loops_stay() {
    let unlike = [Unlike::Stores, Unlike::Length, Unlike::Scatters, Unlike::ReadsRow, Unlike::Dense, Unlike::Expensive];
    for (k, unlike) in unlike.into_iter().enumerate() {
        let lines = after(&[run], product(unlike));
        assert!(!lines.concat().contains("tile"), "case {k}: {lines:#?}");
    }
}

/// A nest of two loops, of which the inner one may be empty.
#[test]
fn the_outermost_loop_is_taken_for_which_the_row_is_there() {
    for grown in [false, true] {
        let mut make = Make::new();
        let (zero, one, n, m) = (make.int(0), make.int(1), make.n, make.m);
        if grown {
            make.b.emit(Stmt::Grow { buffer: make.y, len: m, fill: None });
        }
        make.count("p", zero, n, |make, p| {
            let next = make.b.add(p, one);
            let (start, stop) = (make.load(make.pos, p), make.load(make.pos, next));
            make.count("q", start, stop, |make, q| {
                make.count("k", zero, m, |make, k| {
                    let j = make.load(make.crd, q);
                    let at = make.b.add(j, k);
                    let x = make.load(make.x, at);
                    make.add_to(make.y, k, x);
                });
            });
        });
        let lines = unnumbered(make);
        let expected: &[&str] = if grown {
            &["grow y to m", "let tiles: i64 = max(m, 0) // 32", "for tile in 0..tiles"]
        } else {
            &["for p in 0..n", "    if A_pos[p] < A_pos[p + 1]", "        let tiles: i64 = max(m, 0) // 32"]
        };
        assert_eq!(lines[..3], *expected);
    }
}

#[test]
fn each_tile_begins_where_the_loop_began() {
    let mut make = Make::new();
    let (zero, one, n, m) = (make.int(0), make.int(1), make.n, make.m);
    make.b.emit(Stmt::Grow { buffer: make.y, len: m, fill: None });
    let q = make.b.variable("q", Value::I64(0));
    let at = make.b.get(q);
    let cond = make.call(Op::Lt, &[at, n]);
    let (crd, x, y) = (make.crd, make.x, make.y);
    let body = make.b.block(|b| {
        b.count("k", zero, m, |b, k| {
            let j = b.load(crd, at);
            let place = b.add(j, k);
            let (before, more) = (b.load(y, k), b.load(x, place));
            let sum = b.call(Op::Add, &[before, more]);
            b.store(y, k, sum);
        });
        let next = b.add(at, one);
        b.assign(q, next);
    });
    make.b.emit(Stmt::While { cond, body });
    let lines = after(&[run], make);
    let expected = ["let q_before: i64 = q", "for tile in 0..tiles", "    q = q_before"];
    assert_eq!(lines[3..6], expected, "{lines:#?}");
    let rest = lines.iter().position(|line| line.starts_with("if "));
    let rest = rest.map(|at| lines[at..at + 3].join("\n"));
    let expected = ["if ((tiles * 32) < m) or (tiles < 1)", "    if (m - (tiles * 32)) <= 8", "        q = q_before"];
    assert_eq!(rest, Some(expected.join("\n")));
    let other = lines.iter().position(|line| line.starts_with("        for part in"));
    let other = other.map(|at| lines[at..at + 2].join("\n"));
    let expected = ["        for part in 0..max(((m - (tiles * 32)) + 15) // 16, 1)", "            q = q_before"];
    assert_eq!(other, Some(expected.join("\n")), "{lines:#?}");
}
