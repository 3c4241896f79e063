//! Index notation on the command line: run, explained, searched.

use crate::common::{SPMV, folder, tamis, transcript};

#[test]
fn notation_runs() {
    let folder = folder();
    std::fs::write(folder.path().join("spmv.py"), SPMV).unwrap();
    let lines: &[&[&str]] = &[
        &["run", "y[i] = A[i,j] * x[j]", "A=v1.mtx", "x=ones"],
        &["run", "y(j) = A(i,j)", "A=v1.mtx", "--check"],
        &["run", "ij,jk->ik", "A=laplacian(2)", "B=laplacian(2)", "-f", "out=csr"],
        &["run", "...ij,jk->...ik", "A=rand(2,4,4; 0.5; 1)", "B=laplacian(2)", "-f", "out=csf"],
        &["run", "...i->...", "A=v1.mtx", "--check"],
        &["run", "...ij,...ij->...i", "A=rand(2,1,4; 0.5; 1)", "B=laplacian(2)"],
        &["run", "s = A[i,j]; n = sqrt(sum[i,j](A[i,j] * A[i,j]))", "A=v1.mtx", "--interpret"],
        &["run", "y[i] = A[i,j] * x[j]", "A=v1.mtx", "x=ones", "--order", "j,i"],
        &["explain", "C[i,j] = A[i,j] + B[i,j]", "-f", "A=csr", "-f", "B=csc"],
        &["explain", "y[i] = A[i,j] * x[j]", "A=v1.mtx", "x=ones", "--emit", "program"],
        &["explain", "ij,j->i", "-f", "A=csr", "--emit", "program"],
        &["run", "s = 3 + 4"],
        // Mistakes.
        &["run", "...ij,jk->ik", "A=rand(2,4,4; 0.5; 1)", "B=laplacian(2)"],
        &["run", "...ij,jk->...ik", "A=rand", "B=laplacian(2)"],
        &["explain", "...ij,jk->...ik", "-f", "A=csr"],
        &["run", "y[i] = A[i,j] * x[j]", "A=laplacian(2)", "x=ones", "-f", "A=csr", "--keep", "--order", "j,i"],
        &["run", "spmv.py", "A=v1.mtx", "x=ones", "--keep"],
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

/// Operators from files are known in notation and in programs, and are tested like those of the
/// text itself.
#[test]
fn operators_come_from_files() {
    let folder = folder();
    let files = [
        (
            "nearer.py",
            "@op(commutative, associative, idempotent, identity=inf)\ndef nearer(a, b):\n    return min(a, b)\n",
        ),
        ("along.py", "@op\ndef along(edge, distance):\n    return nearer(abs(edge), 9) + distance\n"),
        ("wrong.py", "@op(commutative)\ndef minus(a, b):\n    return a - b\n"),
        ("unclear.py", "@op(comutative)\ndef minus(a, b):\n    return a - b\n"),
        ("again.py", "@op\ndef nearer(a, b):\n    return a\n"),
        ("none.py", SPMV),
        ("bytes.py", "@op\0"),
        (
            "step.py",
            "def step(A, d):\n    y = tensor(\"dense\", fill=inf)\n    for i, j in _:\n        y[i] = nearer(y[i], along(A[i,j], d[j]))\n    return y\n",
        ),
    ];
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let lines: &[&[&str]] = &[
        &["run", "step.py", "A=v1.mtx", "d=ones", "--ops", "nearer.py", "--ops", "along.py", "--check"],
        &["run", "y[i] = nearer(x[i], 0.5)", "x=rand(3)", "--ops", "nearer.py"],
        &["run", "B[i,j] = along(A[i,j], 1)", "A=v1.mtx", "-f", "A=csr", "--ops=nearer.py", "--ops=along.py"],
        &["explain", "y[i] = nearer(x[i], 0.5)", "-f", "x=sparse", "--ops", "nearer.py", "--emit", "program"],
        &["explain", "step.py", "--ops", "nearer.py", "--ops", "along.py"],
        // Mistakes.
        &["run", "step.py", "A=v1.mtx", "d=ones", "--ops", "nearer.py"],
        &["run", "step.py", "A=v1.mtx", "d=ones", "--ops", "along.py", "--ops", "nearer.py"],
        &["run", "B[i,j] = minus(A[i,j], A[i,j])", "A=v1.mtx", "--ops", "wrong.py"],
        &["run", "B[i,j] = minus(A[i,j], A[i,j])", "A=v1.mtx", "--ops", "unclear.py"],
        &["run", "B[i,j] = nearer(A[i,j], 1)", "A=v1.mtx", "--ops", "nearer.py", "--ops", "again.py"],
        &["run", "B[i,j] = nearer(A[i,j], 1)", "A=v1.mtx", "--ops", "none.py"],
        &["run", "B[i,j] = nearer(A[i,j], 1)", "A=v1.mtx", "--ops", "bytes.py"],
        &["search", "B[i,j] = nearer(A[i,j], 1)", "A=v1.mtx", "--ops", "missing.py"],
    ];
    let shown: Vec<String> = lines.iter().map(|line| transcript(line, folder.path())).collect();
    insta::assert_snapshot!(shown.join("\n"));
    let line = ["search", "y[i] = nearer(x[i], 0.5)", "x=rand(3)", "--ops", "nearer.py", "--time-limit", "1"];
    assert_eq!(crate::common::status(&line, folder.path()), 0);
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

/// Times differ; constants are written where they are looked for, and used from then on.
#[test]
fn constants_are_fitted() {
    let folder = folder();
    let path = folder.path().join("deep").join("costs");
    let run = |line: &[&str], costs: &std::path::Path| {
        tamis(line).current_dir(folder.path()).env("TAMIS_COSTS", costs).output().unwrap()
    };
    // There is no such file yet, which is a mistake only if it is used.
    let explain = ["explain", "y[i] = A[i,j] * x[j]", "A=v1.mtx", "x=ones"];
    assert!(!run(&explain, &path).status.success());
    assert!(run(&["calibrate", "--save"], &path).status.success() && run(&explain, &path).status.success());
    let template = folder.path().join("costs");
    std::fs::write(&template, "list_step = 1.5\n").unwrap();
    let output = run(&["calibrate"], &template);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && text.contains("merge_step") && text.contains("Nothing was changed"), "{text}");
    let output = run(&["calibrate", "--save", "--json"], &template);
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(found["error_after"].as_f64().unwrap() <= found["error_before"].as_f64().unwrap() * 1.5, "{found}");
    let saved = tamis::calibrate::Costs::parse(&std::fs::read_to_string(&template).unwrap()).unwrap();
    // The reader of JSON may lose the last bit.
    let shown = found["constants"]["merge_step"]["after"].as_f64().unwrap();
    assert!((shown - saved.merge_step).abs() <= 1e-12 * shown, "{shown} and {}", saved.merge_step);
    assert!(run(&explain, &template).status.success());
    // Unusable input is reported.
    std::fs::write(&template, "list_step = fast\n").unwrap();
    let output = run(&explain, &template);
    assert!(String::from_utf8_lossy(&output.stderr).contains("E0906"));
    std::fs::write(&template, "# ".repeat(1 << 20)).unwrap();
    let output = run(&explain, &template);
    assert!(String::from_utf8_lossy(&output.stderr).contains("it is longer than"));
    let output = tamis(&["calibrate", "--save"]).env("TAMIS_COSTS", "default").output().unwrap();
    assert!(!output.status.success());
}
