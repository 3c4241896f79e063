//! Loop kinds and vectors: their text, what the verifier refuses, what the interpreter computes, and
//! races. Random kernels compute the same serially, by their kinds, and when they are legalised.

#[path = "common/kinds.rs"]
mod random_kinds;

use random_kinds::{HEADER, memory, random_body};
use tamis_ir::kernel::{Array, Failure, Kernel, Memory, Role, run, run_serially};

fn parse(body: &str) -> Kernel {
    let text = format!("{HEADER}{body}");
    let kernel = Kernel::parse(&text).unwrap_or_else(|d| panic!("{}", d.render(false)));
    assert_eq!(kernel.to_string(), text);
    kernel
}

fn refusal(body: &str) -> String {
    Kernel::parse(&format!("{HEADER}{body}")).expect_err(body).message.clone()
}

fn outputs(kernel: &Kernel, after: &Memory) -> Vec<Array> {
    let outputs = kernel.buffers.iter().zip(&after.arrays).filter(|(buffer, _)| buffer.role == Role::Output);
    outputs.map(|(_, array)| array.clone()).collect()
}

/// What a kernel leaves in `y`: by its kinds, serially, and legalised.
fn check(body: &str, n: i64) -> Vec<i64> {
    let kernel = parse(body);
    let plain = kernel.legalized();
    plain.verify().unwrap_or_else(|reason| panic!("{reason}\n{plain}"));
    let found = run(&kernel, memory(n), 100_000).unwrap_or_else(|failure| panic!("{failure:?}\n{kernel}"));
    let serial = run_serially(&kernel, memory(n), 100_000).unwrap();
    let mut inputs = memory(n);
    inputs.arrays.resize(plain.buffers.len(), Array::default());
    let legal = run(&plain, inputs, 100_000).unwrap_or_else(|failure| panic!("{failure:?}\n{plain}"));
    assert_eq!(outputs(&kernel, &found), outputs(&kernel, &serial), "{kernel}");
    assert_eq!(outputs(&kernel, &found), outputs(&plain, &legal), "{kernel}\n{plain}");
    outputs(&kernel, &found)[0].values().iter().filter_map(|value| value.as_i64()).collect()
}

fn race(body: &str) -> String {
    let kernel = parse(body);
    match run(&kernel, memory(8), 100_000) {
        Err(Failure::Wrong(reason)) => reason,
        other => panic!("{other:?}\n{kernel}"),
    }
}

#[test]
fn vectors_of_every_form() {
    let body = "    let lanes: i64x8 = ramp(0, 1, 8)
    let inside: boolx8 = lanes < n
    let contiguous: i64x8 = masked(x[lanes], inside, 0)
    let strided: i64x8 = x[ramp(1, 2, 8)]
    let gathered: i64x8 = x[at[lanes]]
    var sum: i64x8 = splat(0, 8)
    sum = sum + select(inside, contiguous * strided, gathered)
    y[lanes] = sum where inside
    y[ramp(8, 1, 8)] = gathered
    y[16 + at[ramp(0, 1, 2)]] = 7
    let total: i64 = reduce(add, sum)
    y[23] = total
    prefetch x[n] ahead 64 locality 3
    atomic h[lanes % 4] add sum
";
    let y = check(body, 5);
    let product = |k: i64| (10 + k) * (11 + 2 * k);
    let expected: Vec<i64> = (0..5).map(product).collect();
    assert_eq!(y[..8], [&expected[..], &[0, 0, 0]].concat());
    assert_eq!(y[8..16], [0, 5, 10, 15, 4, 9, 14, 3].map(|k| 10 + k));
    assert_eq!((y[16], y[21]), (7, 7));
    let gathered: i64 = [9, 14, 3].iter().map(|k| 10 + k).sum();
    assert_eq!(y[23], expected.iter().sum::<i64>() + gathered);
}

#[test]
fn a_store_reads_all_lanes_first() {
    let body = "    y[ramp(0, 1, 8)] = x[ramp(0, 1, 8)]\n    y[ramp(1, 1, 4)] = y[ramp(0, 1, 4)]\n";
    assert_eq!(check(body, 0)[..6], [10, 10, 11, 12, 13, 15]);
}

#[test]
fn vector_loops_with_every_tail() {
    for tail in ["masked", "overlapping", "remainder"] {
        for n in [0, 1, 3, 4, 5, 11] {
            let body = format!("    for i in 0..n vector(4 lanes, {tail})\n        y[i] = x[i] * 2\n");
            let expected: Vec<i64> = (0..24).map(|i| if i < n { 2 * (10 + i) } else { 0 }).collect();
            assert_eq!(check(&body, n), expected, "{tail} {n}");
        }
    }
    let body = "    var sum: i64 = 3
    var most: i64 = 0
    for i in 0..n vector(8 lanes, masked)
        let even: i64 = x[i] % 2
        if even == 0
            sum = sum + x[at[i]]
        else
            most = max(x[i], most)
    y[0] = sum
    y[1] = most
";
    for n in [0, 7, 8, 16] {
        check(body, n);
    }
}

#[test]
fn parallel_loops_and_blocks() {
    check("    for i in 0..n parallel(extent, grain 16)\n        y[i] = x[i]\n        atomic h[i % 4] add x[i]\n", 16);
    check("    for i in 0..n parallel(work at, grain 1)\n        y[at[i]] = x[i]\n", 16);
    let body = "    for b in 0..2 grid
        for t in 0..8 block
            let from: i64 = x[(b * 8) + t]
            s[t] = from
            barrier
            y[(b * 8) + t] = s[7 - t]
            barrier
            for l in 0..1 lane
                y[16 + t] = s[t] + l
";
    // Each block has its own shared memory; what both write is a race.
    assert_eq!(race(body), "iterations 0 and 1 of `b` race on y[23]");
    let body = body.replace("y[16 + t] = s[t] + l", "atomic h[0] add s[t] + l");
    let y = check(&body, 8);
    assert_eq!((&y[..4], &y[8..12]), (&[17, 16, 15, 14][..], &[25, 24, 23, 22][..]));
}

#[test]
fn races_are_failures() {
    let parallel = |stmt: &str| race(&format!("    for i in 0..n parallel(extent, grain 1)\n        {stmt}\n"));
    assert_eq!(parallel("y[0] = x[i]"), "iterations 6 and 7 of `i` race on y[0]");
    assert_eq!(parallel("y[i] = y[i + 1]"), "iterations 6 and 7 of `i` race on y[7]");
    assert_eq!(parallel("y[x[i] % 3] = i"), "iterations 4 and 7 of `i` race on y[2]");
    assert_eq!(
        race("    for i in 0..n parallel(extent, grain 1)\n        atomic h[0] add i\n        y[i] = h[0]\n"),
        "iterations 6 and 7 of `i` race on h[0]"
    );
    let block = "    for t in 0..8 block\n        s[t] = t\n        y[t] = s[7 - t]\n";
    assert_eq!(race(block), "iterations 3 and 4 of `t` race on s[3]");
    // What a block leaves in its shared memory is not seen by another one.
    let grid = "    for b in 0..2 grid\n        y[b] = s[0]\n        s[0] = b\n";
    assert_eq!(race(grid), "iterations 0 and 1 of `b` race on s[0]");
}

#[test]
fn kinds_that_are_refused() {
    let table = [
        ("    for i in 0..n vector(6 lanes, masked)\n        y[i] = 1\n", "a vector loop cannot have 6 lanes"),
        (
            "    var k: i64 = 0\n    for i in 0..n parallel(extent, grain 1)\n        k = k + 1\n",
            "the loop over `i` cannot be parallel, because of `an assignment`",
        ),
        ("    for i in 0..n grid\n        grow y to n\n", "the loop over `i` cannot be grid, because of `grow`"),
        (
            "    for i in 0..n vector(4 lanes, masked)\n        for j in 0..n\n            y[j] = 1\n",
            "the loop over `i` cannot be vector, because of `for`",
        ),
        (
            "    var k: i64 = 0\n    for i in 0..n vector(4 lanes, masked)\n        k = i\n",
            "`k` is assigned by a vector loop, but is no reduction",
        ),
        (
            "    var k: i64 = 0\n    for i in 0..n vector(4 lanes, masked)\n        k = k + i\n        y[i] = k\n",
            "`k` is read before its reduction is complete",
        ),
        (
            "    for i in 0..n vector(4 lanes, overlapping)\n        y[i] = y[i] + 1\n",
            "the iterations of the loop over `i` cannot be repeated by its tail",
        ),
        ("    for var i in 0..n lane\n        y[i] = 1\n", "the counter `i` changes, so its loop must be serial"),
        ("    barrier\n", "a barrier is not in the body of a loop over the threads of a block"),
        (
            "    for t in 0..n block\n        let k: i64 = x[t]\n        barrier\n        y[t] = k\n",
            "`k` is used out of scope",
        ),
        (
            "    for i in 0..n parallel(work x, grain 1)\n        y[i] = 1\n",
            "the work of the loop over `i` is not that of positions",
        ),
        ("    if ramp(0, 1, 4) < n\n        y[0] = 1\n", "`ramp(0, 1, 4) < n` has 4 lanes, not 1"),
        ("    y[0] = ramp(0, 1, 4)\n", "`ramp(0, 1, 4)` has 4 lanes, not 1"),
        ("    let v: i64x8 = ramp(0, 1, 4)\n", "`v` has 8 lanes, but starts with 4"),
        ("    let v: i64x4 = ramp(0, 1, 4) + ramp(0, 1, 8)\n", "the operands of `add` have different numbers of lanes"),
        (
            "    y[0] = 1 + reduce(add, ramp(0, 1, 4))\n",
            "`reduce(add, ramp(0, 1, 4))` is not the whole value of a variable",
        ),
        ("    atomic y[0] sub 1\n", "`y` cannot be updated atomically by `sub`"),
        ("    prefetch y[0] ahead 8 locality 4\n", "`y` is prefetched with locality 4, more than 3"),
        ("    let v: i64x3 = ramp(0, 1, 3)\n", "the operands of `ramp` do not fit"),
    ];
    for (body, message) in table {
        assert_eq!(refusal(body), message, "{body}");
    }
}

#[test]
fn random_loops_by_kind_are_the_serial_loops() {
    let mut state = 7;
    for _ in 0..400 {
        let body = random_body(&mut state);
        // What is printed has no more parentheses than it needs.
        let kernel = Kernel::parse(&format!("{HEADER}{body}")).unwrap_or_else(|d| panic!("{}", d.render(false)));
        let text = kernel.to_string();
        let (_, printed) = text.split_once("begin\n").unwrap();
        for n in [0, 1, 7, 16] {
            check(printed, n);
        }
    }
}
