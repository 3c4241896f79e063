//! `explain --analyze` on the command line.

use crate::common::{SPMV, folder, tamis, transcript};

const GUSTAVSON: &str = "\
def gustavson(A, B):
    C = tensor(\"csr\")
    for i in _:
        w = tensor(\"bytemap\")
        for j in _:
            for k in _:
                w[k] += A[i,j] * B[j,k]
        for k in _:
            C[i,k] = w[k]
    return C
";

/// Times differ from run to run, and so does how wide their column is.
fn masked(text: &str) -> String {
    let is_time = |number: &str, unit: &str| {
        ["ns", "us", "ms", "s"].contains(&unit.trim_end_matches(','))
            && number.trim_start_matches('~').parse::<f64>().is_ok()
    };
    let mut out = String::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let mut shown: Vec<String> = Vec::new();
        let mut k = 0;
        while k < words.len() {
            match words.get(k + 1) {
                Some(unit) if is_time(words[k], unit) => {
                    let about = if words[k].starts_with('~') { "~" } else { "" };
                    // The column is as wide as the longest time.
                    while shown.last().is_some_and(String::is_empty) {
                        shown.pop();
                    }
                    shown.push(format!("{about}TIME"));
                    k += 2;
                }
                _ => {
                    shown.push(words[k].to_string());
                    k += 1;
                }
            }
        }
        let line = shown.join(" ");
        // So is that of its heading.
        let line = match line.strip_suffix(" time") {
            Some(rest) => format!("{} time", rest.trim_end()),
            None => line,
        };
        out += line.as_str();
        out.push('\n');
    }
    out
}

#[test]
fn runs_are_analysed() {
    let folder = folder();
    std::fs::write(folder.path().join("spmv.py"), SPMV).unwrap();
    std::fs::write(folder.path().join("gustavson.py"), GUSTAVSON).unwrap();
    let lines: &[&[&str]] = &[
        &["explain", "y[i] = A[i,j] * x[j]", "A=laplacian(20)", "x=ones", "-f", "A=csr", "--analyze"],
        &[
            "explain",
            "C[i,k] = A[i,j] * B[j,k]",
            "A=rmat(6,8)",
            "B=rmat(6,8)",
            "-f",
            "A=csr",
            "-f",
            "B=csr",
            "--analyze",
            "--parts",
        ],
        &[
            "explain",
            "s = A[i,j] * B[i,j]",
            "A=rand(50,60;0.1;1)",
            "B=rand(50,60;0.1;2)",
            "-f",
            "A=csr",
            "-f",
            "B=dcsr",
            "--analyze",
            "--parts",
        ],
        &["explain", "gustavson.py", "A=laplacian(9)", "B=laplacian(9)", "-f", "A=csr", "-f", "B=csr", "--analyze"],
        // Mistakes.
        &["explain", "y[i] = A[i,j] * x[j]", "--analyze"],
        &["explain", "spmv.py", "--analyze"],
        &["explain", "spmv.py", "A=v1.mtx", "--analyze"],
        &["explain", "spmv.py", "A=v1.mtx", "x=ones", "--analyze", "--check"],
        &["explain", "spmv.py", "A=v1.mtx", "x=ones", "--parts"],
    ];
    let shown: Vec<String> = lines.iter().map(|line| masked(&transcript(line, folder.path()))).collect();
    insta::assert_snapshot!(shown.join("\n"));
}

/// The loop over windows runs as often as there are windows with entries, not as far as the tensor
/// goes.
#[test]
fn windows_are_counted() {
    let folder = folder();
    let text =
        "def f(x, w):\n    y = tensor(\"dense\")\n    for i, k in _:\n        y[i] += x[i+k] * w[k]\n    return y\n";
    std::fs::write(folder.path().join("conv.py"), text).unwrap();
    // Three entries of twenty, at 2, 9 and 10.
    std::fs::write(folder.path().join("x.tns"), "3 1.5\n10 2.5\n11 1\n").unwrap();
    let line = ["explain", "conv.py", "x=x.tns", "w=rand(3)", "-f", "x=sparse", "--analyze", "--json"];
    let output = tamis(&line).current_dir(folder.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let loops = &found["analysis"]["loops"];
    // The shape ends with the last entry: windows start at 0 to 8.
    let windows = (0..9u64).filter(|i| [2u64, 9, 10].iter().any(|x| (*i..i + 3).contains(x))).count();
    assert_eq!(loops[0]["index"], "i");
    assert_eq!(loops[0]["visits"], windows);
    assert_eq!(loops[0]["line"], 3);
    assert_eq!(loops[0]["predicted"], serde_json::Value::Null);
    assert!(found["analysis"]["seconds"].as_f64().unwrap() > 0.0);
}
