//! `tamis run`, good and bad; and every example by the command line it states.

use crate::common::{SPMV, folder, status, tamis, transcript};
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

fn project() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().parent().unwrap()
}

#[test]
fn results_are_shown() {
    let folder = folder();
    std::fs::write(folder.path().join("spmv.py"), SPMV).unwrap();
    let lines: &[&[&str]] = &[
        &["run", "spmv.py", "A=v1.mtx", "x=ones"],
        &["run", "spmv.py", "A=v1.mtx", "x=rand", "-f", "A=dcsr", "-f", "y=sparse"],
        &["run", "spmv.py", "A=v1.mtx", "x=ones", "--json"],
        &["run", "spmv.py", "A=v1.mtx", "x=ones", "-o", "y=-"],
        &["run", "spmv.py", "A=twice.mtx", "x=ones", "--duplicates", "sum"],
        &["run", "spmv.py", "A=rand(3,4; 0.5; 7)", "x=ones(4)"],
        &["run", SPMV, "A=laplacian(2)", "x=ones"],
        &["explain", "spmv.py"],
    ];
    let shown: Vec<String> = lines.iter().map(|line| transcript(line, folder.path())).collect();
    insta::assert_snapshot!(shown.join("\n"));
}

/// Results that hold more elements than anybody can visit: the first ones are shown, and the others
/// are counted.
#[test]
fn first_elements_of_huge_results_are_shown() {
    let folder = folder();
    for format in ["sparse_runs, sparse", "runs, sparse"] {
        let stored = 3 * (2_199_023_255_554u64 - 3);
        let program = format!(
            "def f(A):\n    R = tensor(\"{format}\", shape=(4398046511104, 9))\n    for i in range(3, 2199023255554):\n        \
             for j in _:\n            R[i,j] = A[j]\n    return R\n"
        );
        let shown = transcript(&["run", &program, "A=list.tns", "-f", "A=sparse"], folder.path());
        let more = format!("  [6, 8] = 1.0\n  ... and {} more\n", stored - 12);
        assert!(shown.contains("  [3, 0] = 1.5\n  [3, 4] = 2.5\n") && shown.contains(&more), "{shown}");
        assert!(shown.contains(&format!("{stored} stored")), "{shown}");
    }
}

#[test]
fn errors_are_reported() {
    let folder = folder();
    std::fs::write(folder.path().join("spmv.py"), SPMV).unwrap();
    std::fs::write(folder.path().join("binary.py"), [0xff, 0xfe, 0x00]).unwrap();
    let lines: &[&[&str]] = &[
        &["run", "spmv.py", "A=v1.mtx"],
        &["run", "spmv.py", "A=v1.mtx", "x=ones", "B=ones"],
        &["run", "spmv.py", "A=v1.mtx", "x=ones", "-o", "z=z.tns"],
        &["run", "spmv.py", "A=v1.mtx", "x=ones", "-f", "q=csr"],
        &["run", "spmv.py", "A=v1.mtx", "x=ones(5)"],
        &["run", "spmv.py", "A=t3.tns", "x=ones"],
        &["run", "spmv.py", "A=rand", "x=rand"],
        &["run", "spmv.py", "A=missing.mtx", "x=ones"],
        &["run", "spmv.py", "A=range.mtx", "x=ones"],
        &["run", "spmv.py", "A=v1.mtx", "x=ones", "-f", "A=csf; pattern", "-f", "y=csr"],
        &["run", "spmv.py", "A=v1.mtx", "x=ones", "--shape", "A=7,7"],
        &["run", "spmv.py", "A=laplacian(2)", "x=ones", "--shape", "A=4,4"],
        &["run", "missing.py"],
        &["run", "binary.py"],
        &["run", "def f(A):\n    return A", "A=ones(2)"],
        &["run", "spmv.py", "A=v1.mtx", "x=ones(5)", "--json"],
    ];
    let shown: Vec<String> = lines.iter().map(|line| transcript(line, folder.path())).collect();
    insta::assert_snapshot!(shown.join("\n"));
}

#[test]
fn results_are_written() {
    let folder = folder();
    std::fs::write(folder.path().join("spmv.py"), SPMV).unwrap();
    for (target, magic) in
        [("y.tns", &b"1 3.0"[..]), ("y.mtx", b"%%Matrix"), ("y.npy", b"\x93NUMPY"), ("y.tns.gz", b"\x1f\x8b")]
    {
        let output = format!("y={target}");
        assert_eq!(status(&["run", "spmv.py", "A=v1.mtx", "x=ones", "-o", &output], folder.path()), 0, "{target}");
        let bytes = std::fs::read(folder.path().join(target)).unwrap();
        assert!(bytes.starts_with(magic), "{target}: {bytes:?}");
    }
    assert_eq!(status(&["run", "spmv.py", "A=v1.mtx", "x=ones", "-o", "y=nowhere/y.tns"], folder.path()), 1);
}

/// A result that a list of entries would cut is written, with a warning; `--header` is the remedy.
#[test]
fn a_shape_that_would_shrink_is_a_warning() {
    let folder = folder();
    let program = "def f(A):\n    B = tensor(\"csr\")\n    for i, j in _:\n        B[i,j] = A[i,j]\n    return B\n";
    std::fs::write(folder.path().join("copy.py"), program).unwrap();
    std::fs::write(folder.path().join("wide.mtx"), "%%MatrixMarket matrix coordinate real general\n3 4 1\n2 2 5\n")
        .unwrap();
    let lines: [&[&str]; 5] = [
        &["run", "copy.py", "A=wide.mtx", "-o", "B=-"],
        &["run", "copy.py", "A=wide.mtx", "-o", "B=-", "--header"],
        &["run", "copy.py", "A=wide.mtx", "-o", "B=b.tns"],
        &["convert", "wide.mtx", "c.tns"],
        &["convert", "wide.mtx", "d.tns", "--header"],
    ];
    let shown: Vec<String> = lines.iter().map(|line| transcript(line, folder.path())).collect();
    insta::assert_snapshot!(shown.join("\n"));
    assert_eq!(std::fs::read_to_string(folder.path().join("c.tns")).unwrap(), "2 2 5.0\n");
    let output = tamis(&["info", "d.tns", "--json"]).current_dir(folder.path()).output().unwrap();
    let facts: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(facts["shape"], serde_json::json!([3, 4]));
}

/// Two results in one file would leave one: nothing is read, run or written.
#[test]
fn two_results_do_not_go_to_one_file() {
    let folder = folder();
    std::fs::write(folder.path().join("spmv.py"), SPMV).unwrap();
    let line = ["run", "spmv.py", "A=missing.mtx", "x=ones", "-o", "y=same.tns", "-o", "z=same.tns"];
    let shown = transcript(&line, folder.path());
    assert!(shown.contains("[2]") && shown.contains("E0905") && !shown.contains("E0801"), "{shown}");
    assert!(!folder.path().join("same.tns").exists());
}

/// The output for a program that comes through a pipe.
fn fed_with_the_program(line: &[&str], folder: &Path) -> String {
    let mut command = tamis(line);
    let mut child =
        command.current_dir(folder).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the command starts");
    child.stdin.take().unwrap().write_all(SPMV.as_bytes()).unwrap();
    String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()
}

/// Input without a program is reported, and an endless device ends.
#[test]
#[cfg(target_os = "linux")]
fn devices_and_pipes_as_programs() {
    let folder = folder();
    let shown = transcript(&["run", "/dev/zero"], folder.path());
    assert!(shown.contains("[1]") && shown.contains("E0801") && shown.contains("not text"), "{shown}");
    let shown = transcript(&["run", "."], folder.path());
    assert!(shown.contains("[1]") && shown.contains("E0801"), "{shown}");
    let line = ["run", "/dev/stdin", "A=v1.mtx", "x=ones", "-o", "y=/dev/stdout"];
    assert_eq!(fed_with_the_program(&line, folder.path()), "1 3.0\n2 0.0\n3 3.0\n");
}

#[test]
fn a_program_from_standard_input() {
    let folder = folder();
    let line = ["run", "-", "A=v1.mtx", "x=ones", "-o", "y=-"];
    assert_eq!(fed_with_the_program(&line, folder.path()), "1 3.0\n2 0.0\n3 3.0\n");
}

/// The words of a shell command, quotes removed.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            c => words.last_mut().unwrap().push(c),
        }
    }
    words.into_iter().filter(|word| !word.is_empty()).collect()
}

#[test]
fn examples_run_as_they_say() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("image.pbm"), "P1\n5 5\n00000\n01110\n01110\n01110\n00000\n").unwrap();
    std::fs::write(folder.path().join("grey.pgm"), format!("P2\n5 5\n255\n{}", "0 15 16 255 255\n".repeat(5))).unwrap();
    // Five rows of two words each, all set but one.
    let header = format!("{:<117}\n", "{'descr': '<u8', 'fortran_order': False, 'shape': (5, 2), }");
    let mut packed = [b"\x93NUMPY\x01\x00\x76\x00".as_slice(), header.as_bytes()].concat();
    packed.extend((0..10u64).flat_map(|k| if k == 5 { 0u64 } else { u64::MAX }.to_le_bytes()));
    std::fs::write(folder.path().join("words.npy"), packed).unwrap();
    std::fs::create_dir(folder.path().join("examples")).unwrap();
    let mut count = 0;
    for entry in std::fs::read_dir(project().join("examples")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "py") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(folder.path().join("examples").join(path.file_name().unwrap()), &text).unwrap();
        let command =
            text.lines().nth(1).and_then(|line| line.strip_prefix("#   tamis ")).expect("a command in the second line");
        let words = words(command);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let output = tamis(&words).current_dir(folder.path()).output().unwrap();
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
        count += 1;
    }
    assert!(count >= 8);
    assert!(folder.path().join("eroded.pbm").exists() && folder.path().join("product.mtx").exists());
}
