//! `tamis grad`: the statements, as text and as JSON, and mistakes.

use crate::common::tamis;

fn output(line: &[&str]) -> (bool, String) {
    let output = tamis(line).output().unwrap();
    let text = if output.status.success() { output.stdout } else { output.stderr };
    (output.status.success(), String::from_utf8(text).unwrap())
}

#[test]
fn statements_are_printed_and_run() {
    let spmv = "y[i] = A[i,j] * x[j]";
    let (done, text) = output(&["grad", spmv, "--wrt", "A,x", "-f", "A=csr"]);
    assert!(done);
    assert_eq!(text, "gA[i, j] = A_pattern[i, j] * gy[i] * x[j]\ngx[j] = gy[i] * A[i, j]\n");
    let (_, text) = output(&["grad", spmv, "--wrt", "x", "--forward"]);
    assert_eq!(text, "dy[i] = dx[j] * A[i, j]\n");
    let (done, _) = output(&["run", "gx[j] = gy[i] * A[i, j]", "A=laplacian(3)", "gy=ones"]);
    assert!(done);
}

#[test]
fn names_are_in_the_json() {
    let (_, text) = output(&["grad", "y[i] = exp(sum[j](A[i,j] * x[j]))", "--wrt", "x", "--save", "--json"]);
    let made: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(made["cotangents"]["y"], "gy");
    assert_eq!(made["gradients"]["x"], "gx");
    assert_eq!(made["saved"]["t0_saved"], "t0");
}

#[test]
fn mistakes() {
    for (line, code) in [
        (["grad", "y[i] = x[i]", "--wrt", "z"], "E0116"),
        (["grad", "y[i] = x[i] > 0", "--wrt", "x"], "E0116"),
        (["grad", "y[i] = x[i]", "-f", "z=csr"], "E0903"),
        (["grad", "y[i] = ", "--wrt", "x"], "E0101"),
    ] {
        let (done, text) = output(&line);
        assert!(!done && text.contains(code), "{text}");
    }
}
