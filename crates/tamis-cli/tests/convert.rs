//! `tamis convert`, good and bad.

mod common;
use common::{folder, status, tamis, transcript};
use std::io::Read;
use std::process::Stdio;

fn out(line: &[&str], folder: &std::path::Path) -> String {
    let output = tamis(line).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{line:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn standard_output() {
    let folder = folder();
    assert_eq!(out(&["convert", "v1.mtx", "-", "--to", "tns"], folder.path()), "1 1 1.0\n1 4 2.0\n3 1 3.0\n");
    let csc = out(&["convert", "v1.mtx", "-", "--to", ".mtx", "-f", "csc"], folder.path());
    assert!(csc.starts_with("%%MatrixMarket matrix coordinate real general"), "{csc}");
    assert!(csc.contains("3 4 3"), "{csc}");
    let header = out(&["convert", "v1.mtx", "-", "--to", "tns", "--header"], folder.path());
    assert!(header.contains("2 3\n3 4\n"), "{header}");
    let symmetric = out(&["convert", "laplacian(2)", "-", "--to", "mtx", "--symmetric"], folder.path());
    assert!(symmetric.contains("symmetric\n4 4 8\n"), "{symmetric}");
}

#[test]
fn there_and_back() {
    let folder = folder();
    let kinds = ["mtx", "mtx.gz", "tns", "npz", "npy"];
    let first = out(&["convert", "v1.mtx", "-", "--to", "mtx", "-f", "coo"], folder.path());
    for kind in kinds {
        let file = format!("there.{kind}");
        assert_eq!(status(&["convert", "v1.mtx", &file], folder.path()), 0, "{kind}");
        assert!(folder.path().join(&file).exists());
        let format = if kind == "npy" { "dense" } else { "coo" };
        let back = out(&["convert", &file, "-", "--to", "mtx", "-f", format], folder.path());
        if kind != "npy" {
            assert_eq!(back, first, "{kind}");
        } else {
            assert!(back.contains("array real general"), "{back}");
        }
    }
}

#[test]
fn generators_become_files() {
    let folder = folder();
    assert_eq!(status(&["convert", "rmat(6, 4)", "g.mtx"], folder.path()), 0);
    let facts = out(&["info", "g.mtx", "--json"], folder.path());
    let made: serde_json::Value = serde_json::from_str(&facts).unwrap();
    let expected = tamis_tensor::gallery::rmat(6, 4, 0).unwrap().len();
    assert_eq!(made["stored"], expected);
}

#[test]
fn what_is_wrong_leaves_no_file() {
    let folder = folder();
    let lines: [&[&str]; 8] = [
        &["convert", "missing.mtx", "out.mtx"],
        &["convert", "twice.mtx", "out.mtx"],
        &["convert", "t3.tns", "out.mtx"],
        &["convert", "v1.mtx", "out.mtx", "--symmetric"],
        &["convert", "v1.mtx", "out.mtx", "-f", "dense, singleton"],
        &["convert", "v1.mtx", "no/folder/out.mtx"],
        &["convert", "v1.mtx", "out.smtx"],
        &["convert", "v1.mtx", "out.pgm"],
    ];
    for line in lines {
        assert_eq!(status(line, folder.path()), 1, "{line:?}");
    }
    let usage: [&[&str]; 5] = [
        &["convert", "v1.mtx", "out.xyz"],
        &["convert", "v1.mtx", "out.mtx", "--to", "tns"],
        &["convert", "v1.mtx", "out.mtx", "--header"],
        &["convert", "v1.mtx", "out.tns", "--symmetric"],
        &["convert", "v1.mtx", "-", "--to", "../x.mtx"],
    ];
    for line in usage {
        assert_eq!(status(line, folder.path()), 2, "{line:?}");
    }
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let name = entry.unwrap().file_name();
        assert!(!name.to_string_lossy().starts_with("out"), "{name:?}");
    }
    // What the operating system says about a folder that is missing is not ours to fix.
    let stable = lines.iter().chain(&usage).filter(|line| line[2] != "no/folder/out.mtx");
    let shown: Vec<String> = stable.map(|line| transcript(line, folder.path())).collect();
    insta::assert_snapshot!(shown.join("\n"));
}

/// `tamis convert ... - | head` ends without a word, with much left to write.
#[test]
fn a_closed_pipe_is_quiet() {
    let line = ["convert", "laplacian(300)", "-", "--to", "tns"];
    let mut child = tamis(&line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = [0; 10];
    child.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
    drop(child.stdout.take());
    let mut told = String::new();
    child.stderr.take().unwrap().read_to_string(&mut told).unwrap();
    assert_eq!((child.wait().unwrap().code(), told.as_str()), (Some(0), ""));
}
