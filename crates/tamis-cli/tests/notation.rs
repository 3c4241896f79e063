//! Index notation on the command line: run, explained, searched.

mod common;
use common::{SPMV, folder, tamis, transcript};

#[test]
fn notation_runs() {
    let folder = folder();
    std::fs::write(folder.path().join("spmv.py"), SPMV).unwrap();
    let lines: &[&[&str]] = &[
        &["run", "y[i] = A[i,j] * x[j]", "A=v1.mtx", "x=ones"],
        &["run", "y(j) = A(i,j)", "A=v1.mtx", "--check"],
        &["run", "ij,jk->ik", "A=laplacian(2)", "B=laplacian(2)", "-f", "out=csr"],
        &["run", "s = A[i,j]; n = sqrt(sum[i,j](A[i,j] * A[i,j]))", "A=v1.mtx", "--interpret"],
        &["run", "y[i] = A[i,j] * x[j]", "A=v1.mtx", "x=ones", "--order", "j,i"],
        &["explain", "C[i,j] = A[i,j] + B[i,j]", "-f", "A=csr", "-f", "B=csc"],
        &["explain", "y[i] = A[i,j] * x[j]", "A=v1.mtx", "x=ones", "--emit", "program"],
        &["explain", "ij,j->i", "-f", "A=csr", "--emit", "program"],
        // What is wrong.
        &["run", "y[i] = abs(A[i,j])", "A=v1.mtx"],
        &["run", "y[i] = A[i,j] * x[j]", "A=v1.mtx"],
        &["run", "y[i] = A[i,j]", "A=v1.mtx", "--order", "i,q"],
        &["run", "spmv.py", "A=v1.mtx", "x=ones", "--order", "j,i"],
        &["explain", "spmv.py", "A=v1.mtx"],
        &["search", "spmv.py", "A=v1.mtx", "x=ones"],
        &["search", "s = A[i,j]; t = A[i,j] * A[i,j]", "A=v1.mtx"],
    ];
    let shown: Vec<String> = lines.iter().map(|line| transcript(line, folder.path())).collect();
    insta::assert_snapshot!(shown.join("\n"));
}

/// Times differ from run to run; what is tried and what is chosen does not.
#[test]
fn orders_and_formats_are_searched() {
    let folder = folder();
    let line =
        ["search", "C[i,k] = A[i,j] * B[j,k]", "A=laplacian(5)", "B=laplacian(5)", "--time-limit", "60", "--json"];
    let run = |line: &[&str]| {
        let output = tamis(line).current_dir(folder.path()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let out = run(&line);
    let found: serde_json::Value = serde_json::from_str(&out).unwrap();
    let states = found["states"].as_array().unwrap();
    assert!(states.len() >= 10, "{out}");
    assert_eq!(states.iter().filter(|state| state["chosen"] == true).count(), 1, "{out}");
    assert_eq!(found["ended"], false);
    let out = run(&line[..6]);
    assert!(out.contains("<- chosen") && out.contains("times the best"), "{out}");
}
