//! Running the command as a user would, in a clean environment.
#![allow(dead_code)]

use std::path::Path;
use std::process::{Command, Output, Stdio};

/// A matrix times a vector.
pub const SPMV: &str =
    "def spmv(A, x):\n    y = tensor(\"dense\")\n    for i, j in _:\n        y[i] += A[i,j] * x[j]\n    return y\n";

/// The command with an environment that does not depend on who runs the tests.
pub fn tamis(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tamis"));
    command.args(arguments).env_clear().env("LC_ALL", "C.UTF-8").stdin(Stdio::null());
    command
}

/// The outcome of a command, as text: status, standard output, standard error.
pub fn transcript(arguments: &[&str], folder: &Path) -> String {
    let output = tamis(arguments).current_dir(folder).output().expect("the command starts");
    show(arguments, &output)
}

pub fn show(arguments: &[&str], output: &Output) -> String {
    let quoted: Vec<String> = arguments
        .iter()
        .map(|a| if a.contains([' ', '(', ';', '*']) { format!("'{a}'") } else { a.to_string() })
        .collect();
    let mut text = format!("$ tamis {}\n[{}]\n", quoted.join(" "), output.status.code().unwrap_or(-1));
    for (name, bytes) in [("out", &output.stdout), ("err", &output.stderr)] {
        if !bytes.is_empty() {
            text += &format!("--- {name}\n{}", String::from_utf8_lossy(bytes));
        }
    }
    text
}

/// The exit status alone.
pub fn status(arguments: &[&str], folder: &Path) -> i32 {
    tamis(arguments).current_dir(folder).output().expect("the command starts").status.code().unwrap_or(-1)
}

/// A folder with a small matrix (V1 of the test vectors) and some broken files.
pub fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let files = [
        ("v1.mtx", "%%MatrixMarket matrix coordinate real general\n% three entries\n3 4 3\n1 1 1\n1 4 2\n3 1 3\n"),
        ("sym.mtx", "%%MatrixMarket matrix coordinate pattern symmetric\n4 4 4\n1 1\n2 1\n4 1\n4 4\n"),
        ("zeros.mtx", "%%MatrixMarket matrix coordinate integer general\n3 3 3\n1 1 0\n2 2 5\n3 3 0\n"),
        ("twice.mtx", "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1\n1 1 2\n"),
        ("range.mtx", "%%MatrixMarket matrix coordinate real general\n2 2 1\n3 1 1\n"),
        ("t3.tns", "1 1 1 1.5\n2 3 4 2.5\n"),
        ("list.tns", "1 1.5\n5 2.5\n9 1\n"),
        ("empty.mtx", "%%MatrixMarket matrix coordinate real general\n3 0 0\n"),
        ("x.unknown", "1 2 3\n"),
    ];
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).expect("a file");
    }
    folder
}
