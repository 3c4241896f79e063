//! Schedules as an option of compiling: other sizes, check mode, mistakes in the user's own text.

use tamis::diagnostic::Code;
use tamis::format::FormatSpec;
use tamis::prelude::*;

const MULTIPLY: &str = "
def multiply(A, B):
    C = tensor('csr')
    for i, j, k in _:
        C[i,k] += A[i,j] * B[j,k]
    return C
";

fn matrix(rows: u64, columns: u64, seed: u64) -> Tensor {
    let entries = tamis::gallery::random(&[rows, columns], 0.3, seed).unwrap();
    Tensor::from_coordinates(&entries, &Format::csr(), 0.0.into(), Combine::Error).unwrap()
}

fn options(schedule: &str) -> CompileOptions {
    CompileOptions { schedule: Schedule::parse(schedule).unwrap(), ..CompileOptions::default() }
}

/// One executable serves tensors of other sizes, and check mode compares it with the program as it
/// was written.
#[test]
fn other_sizes() {
    let program = Program::parse(MULTIPLY).unwrap();
    for schedule in [
        "precompute(A[i,j] * B[j,k], k, kw, bytemap)",
        "tile(i,j,i0,i1,j0,j1,4,2)",
        "split(k,k0,k1,3); reorder(k0,i,j,k1)",
        "convert(B,csc)",
        "fuse(i,j,f); parallelize(f)",
    ] {
        let (a, b) = (matrix(7, 5, 1), matrix(5, 9, 2));
        let checked = CompileOptions { check: true, ..options(schedule) };
        let executable = tamis::compile(&program, &Signature::of(&[&a, &b]), &checked).unwrap();
        executable.call(&[&a, &b]).unwrap_or_else(|d| panic!("{schedule}\n{}", d.render(false)));
        let (a, b) = (matrix(12, 30, 3), matrix(30, 4, 4));
        executable.call(&[&a, &b]).unwrap_or_else(|d| panic!("{schedule}\n{}", d.render(false)));
        assert_eq!(executable.program(), &program);
        assert_ne!(executable.scheduled(), &program);
    }
}

/// Sizes that do not fit give the same diagnostics as without a schedule, whatever the scheduled
/// loops check.
#[test]
fn sizes_that_do_not_fit() {
    let program = Program::parse(MULTIPLY).unwrap();
    let (a, b) = (matrix(7, 5, 1), matrix(5, 9, 2));
    let executable = tamis::compile(&program, &Signature::of(&[&a, &b]), &options("split(j,j0,j1,2)")).unwrap();
    let wrong = matrix(6, 9, 2);
    let errors = executable.call(&[&a, &wrong]).unwrap_err();
    assert_eq!(errors.0[0].code, Code::E0402);
    let errors = tamis::compile(&program, &Signature::of(&[&a, &wrong]), &options("split(j,j0,j1,2)")).unwrap_err();
    assert_eq!(errors.0[0].code, Code::E0402);
}

/// A bound is an assumption about every call.
#[test]
fn bounds_are_checked_at_every_call() {
    let program = Program::parse(MULTIPLY).unwrap();
    let (a, b) = (matrix(7, 5, 1), matrix(5, 9, 2));
    let executable = tamis::compile(&program, &Signature::of(&[&a, &b]), &options("bound(i,7)")).unwrap();
    assert!(executable.kernel().unwrap().to_string().contains("for i in 0..7"));
    executable.call(&[&a, &b]).unwrap();
    let errors = executable.call(&[&matrix(8, 5, 1), &b]).unwrap_err();
    assert_eq!(errors.0[0].code, Code::E0406);
}

#[test]
fn explained() {
    let program = Program::parse(MULTIPLY).unwrap();
    let csr = || FormatSpec::parse("csr").unwrap();
    let signature = Signature::assumed(&program, &[("A", csr()), ("B", csr())], &[]).unwrap();
    let explanation = tamis::explain(&program, &signature, &options("parallelize(i)")).unwrap();
    assert!(explanation.program().contains("for i in parallel(_):"));
    assert!(explanation.threads().contains("the loop over i is partitioned"), "{}", explanation.threads());
    assert!(explanation.warnings().is_empty());
    // Another one than the outermost is checked, but not shared.
    let explanation = tamis::explain(&program, &signature, &options("parallelize(j)")).unwrap();
    assert!(explanation.warnings().iter().any(|d| d.message.contains("outermost loops only")));
    let errors = tamis::explain(&program, &signature, &options("split(l,l0,l1,4)")).unwrap_err();
    assert_eq!(errors.0[0].code, Code::E1202);
    assert_eq!(errors.0[0].source.as_ref().unwrap().name, "schedule");
}
