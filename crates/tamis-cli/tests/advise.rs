//! `tamis advise`, good and bad. Times differ from run to run, so that snapshots are of proposals
//! alone.

use crate::common::{folder, status, tamis, transcript};

#[test]
fn proposals() {
    let folder = folder();
    let lines: [&[&str]; 8] = [
        &["advise", "laplacian(12)", "--no-measure"],
        &["advise", "banded(60, 3, 1)", "--no-measure"],
        &["advise", "blocked(48, 3, 0.2)", "--no-measure"],
        &["advise", "permutation(40)", "--no-measure"],
        &["advise", "rand(40, 500; 0.05)", "--no-measure"],
        &["advise", "list.tns", "--no-measure"],
        &["advise", "t3.tns", "--no-measure"],
        &["advise", "sym.mtx", "--no-measure"],
    ];
    let text: Vec<String> = lines.iter().map(|line| transcript(line, folder.path())).collect();
    insta::assert_snapshot!(text.join("\n"));
}

#[test]
fn little_to_say() {
    let folder = folder();
    std::fs::write(folder.path().join("it's.mtx"), "%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1 5\n")
        .unwrap();
    let lines: [&[&str]; 4] = [
        &["advise", "rand()"],
        &["advise", "empty.mtx"],
        &["advise", "rand(5, 5; 0)"],
        &["advise", "it's.mtx", "--no-measure"],
    ];
    let text: Vec<String> = lines.iter().map(|line| transcript(line, folder.path())).collect();
    insta::assert_snapshot!(text.join("\n"));
}

#[test]
fn only_ascii_where_the_locale_is_not_utf8() {
    let output = tamis(&["advise", "laplacian(12)", "--no-measure"]).env("LC_ALL", "C").output().unwrap();
    assert!(output.status.success() && output.stdout.is_ascii());
}

#[test]
fn measured() {
    let output = tamis(&["advise", "triangular(60)", "--time-limit", "2"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(text.lines().filter(|line| line.trim_start().starts_with('*')).count(), 1, "one is marked:\n{text}");
    for word in ["pays after", "dense, band", "tamis run spmv.py", "-f "] {
        assert!(text.contains(word), "{word}:\n{text}");
    }
    let output = tamis(&["advise", "laplacian(9)", "--time-limit", "2", "--json"]).output().unwrap();
    let advice: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let candidates = advice["candidates"].as_array().unwrap();
    assert!(candidates.len() >= 3);
    assert!(candidates.iter().all(|c| c["run_seconds"].as_f64().is_some_and(|s| s > 0.0)), "{candidates:?}");
    assert!(candidates.iter().any(|c| c["name"] == advice["best"]));
    assert_eq!(advice["task"], "y[i] += A[i,j] * x[j]");
    let lower = candidates.iter().find(|c| c["part"] == "lower triangle").unwrap();
    assert!(lower["prepare"].as_str().is_some_and(|p| p.contains("j <= i")));
}

/// Printed commands can be run.
#[test]
fn the_commands_work() {
    let folder = folder();
    let output = tamis(&["advise", "laplacian(9)", "--no-measure", "--json"]).output().unwrap();
    let advice: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    for candidate in advice["candidates"].as_array().unwrap() {
        let mut input = "A=laplacian(9)".to_string();
        if let Some(prepare) = candidate["prepare"].as_str() {
            std::fs::write(folder.path().join("lower.py"), prepare).unwrap();
            let line = ["run", "lower.py", &input, "-f", "A=csr", "-o", "L=lower.mtx"];
            assert_eq!(status(&line, folder.path()), 0);
            input = "A=lower.mtx".to_string();
        }
        std::fs::write(folder.path().join("p.py"), candidate["program"].as_str().unwrap()).unwrap();
        let format = format!("A={}", candidate["format"].as_str().unwrap());
        let line = ["run", "p.py", &input, "x=ones", "-f", &format, "-o", "y=-"];
        let output = tamis(&line).current_dir(folder.path()).output().unwrap();
        assert!(output.status.success(), "{line:?}: {}", String::from_utf8_lossy(&output.stderr));
        // The Laplacian of ones is 2 at the corners, and the first element is one.
        assert!(output.stdout.starts_with(b"1 2"), "{line:?}: {}", String::from_utf8_lossy(&output.stdout));
    }
}

#[test]
fn errors_of_advise() {
    let folder = folder();
    let lines: [(&[&str], i32); 8] = [
        (&["advise", "missing.mtx"], 1),
        (&["advise", "range.mtx"], 1),
        (&["advise", "twice.mtx"], 1),
        (&["advise", "x.unknown"], 2),
        (&["advise", "laplacian(-3)"], 2),
        (&["advise", "laplacian(3)", "--time-limit", "0"], 2),
        (&["advise", "laplacian(3)", "--time-limit", "1", "--no-measure"], 2),
        (&["advise", "laplacian(3)", "--shape", "9,9"], 2),
    ];
    for (line, expected) in lines {
        let output = tamis(line).current_dir(folder.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(expected), "{line:?}");
        assert!(output.stdout.is_empty() && !output.stderr.is_empty(), "{line:?}");
    }
    assert_eq!(status(&["advise", "twice.mtx", "--duplicates", "sum", "--no-measure"], folder.path()), 0);
}
