//! Differential fuzzing of the compiler: random programs against the interpreter, with kernels as
//! lowered and as optimised, interpreted and as machine code. Failing programs are shrunk before
//! they are reported.

use tamis_tests::affine;
use tamis_tests::blank;
use tamis_tests::compare::{INTERPRETED, compared};
use tamis_tests::early_exit;
use tamis_tests::generate::{case, formats};
use tamis_tests::lowered::{Engine, Stage};
use tamis_tests::wide;

/// The kernel interpreter checks every access and assumption, so each program runs in it, as
/// lowered and as optimised. Every seventh is compiled to machine code in check mode, too
/// ([`checked`]), every sixth without checks ([`native`]); compiling all would take minutes.
fn all(_: u64) -> bool {
    true
}

fn checked(seed: u64) -> bool {
    seed.is_multiple_of(7)
}

fn native(seed: u64) -> bool {
    seed % 6 == 1
}

#[test]
fn random_programs() {
    let ways = [(Stage::Lowered, INTERPRETED), (Stage::Optimised, INTERPRETED)];
    let compared = compared(0..1500, all, case, formats, &ways);
    assert!(compared > 500, "{compared}");
}

#[test]
fn wide_programs() {
    let ways = [(Stage::Lowered, INTERPRETED), (Stage::Optimised, INTERPRETED)];
    let compared = compared(0..1500, all, wide::case, formats, &ways);
    assert!(compared > 300, "{compared}");
}

/// Independently of the sparse policy, IEEE arithmetic gives the same results.
#[test]
fn strict_programs() {
    let compared = compared(1500..2000, all, wide::case, formats, &[(Stage::Strict, INTERPRETED)]);
    assert!(compared > 100, "{compared}");
}

#[test]
fn machine_code() {
    let compared = compared(0..1500, native, case, formats, &[(Stage::Optimised, Engine::Native)]);
    assert!(compared > 80, "{compared}");
}

#[test]
fn machine_code_of_wide_programs() {
    let compared = compared(0..1500, native, wide::case, formats, &[(Stage::Optimised, Engine::Native)]);
    assert!(compared > 50, "{compared}");
}

#[test]
fn checked_machine_code() {
    let compared = compared(0..1500, checked, case, formats, &[(Stage::Optimised, Engine::Checked)]);
    assert!(compared > 70, "{compared}");
}

#[test]
fn checked_machine_code_of_wide_programs() {
    let compared = compared(0..1500, checked, wide::case, formats, &[(Stage::Optimised, Engine::Checked)]);
    assert!(compared > 40, "{compared}");
}

#[test]
fn checked_machine_code_of_strict_programs() {
    let compared = compared(1500..2000, checked, wide::case, formats, &[(Stage::Strict, Engine::Checked)]);
    assert!(compared > 15, "{compared}");
}

/// Affine subscripts, in every loop order.
#[test]
fn affine_programs() {
    let ways = [(Stage::Lowered, INTERPRETED), (Stage::Optimised, INTERPRETED)];
    let compared = compared(0..3000, all, affine::case, affine::formats, &ways);
    assert!(compared > 2000, "{compared}");
}

#[test]
fn machine_code_of_affine_programs() {
    let compared = compared(0..1500, native, affine::case, affine::formats, &[(Stage::Optimised, Engine::Native)]);
    assert!(compared > 100, "{compared}");
}

#[test]
fn checked_machine_code_of_affine_programs() {
    let compared = compared(0..1500, checked, affine::case, affine::formats, &[(Stage::Optimised, Engine::Checked)]);
    assert!(compared > 80, "{compared}");
}

/// Loops that end early, or are specialised, when a reduction is final.
#[test]
fn early_exits() {
    let ways = [(Stage::Lowered, INTERPRETED), (Stage::Optimised, INTERPRETED)];
    let compared = compared(0..1500, all, early_exit::case, formats, &ways);
    assert!(compared > 1000, "{compared}");
}

#[test]
fn machine_code_of_early_exits() {
    let compared = compared(0..1500, native, early_exit::case, formats, &[(Stage::Optimised, Engine::Native)]);
    assert!(compared > 100, "{compared}");
}

/// A declared tensor reads as its fill value before the first write.
#[test]
fn reads_before_the_first_write() {
    let ways = [(Stage::Lowered, INTERPRETED), (Stage::Optimised, INTERPRETED)];
    let count = blank::count();
    assert_eq!(compared(0..count, all, blank::case, formats, &ways) as u64, count);
}

#[test]
fn machine_code_of_reads_before_the_first_write() {
    let run = |seed: u64| seed.is_multiple_of(11);
    let ways = [(Stage::Optimised, Engine::Native), (Stage::Optimised, Engine::Checked)];
    let compared = compared(0..blank::count(), run, blank::case, formats, &ways);
    assert!(compared > 60, "{compared}");
}
