//! The outer shape of the command: help, mistakes on the command line, codes, and what becomes of output.

mod common;
use common::{folder, show, status, tamis, transcript};
use std::io::Read;
use std::process::Stdio;

#[test]
fn help_lists_the_commands() {
    let folder = folder();
    insta::assert_snapshot!(transcript(&["--help"], folder.path()));
    insta::assert_snapshot!(transcript(&["run", "--help"], folder.path()));
}

#[test]
fn version() {
    let output = tamis(&["--version"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), format!("tamis {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn mistakes_on_the_command_line_are_status_2() {
    let folder = folder();
    let table: &[&[&str]] = &[
        &[],
        &["frobnicate"],
        &["--color", "pink", "gallery"],
        &["run"],
        &["run", ""],
        &["run", "p.py", "A"],
        &["run", "p.py", "=x"],
        &["run", "p.py", "A="],
        &["run", "p.py", "2A=rand"],
        &["run", "p.py", "A=rand", "A=ones"],
        &["run", "p.py", "A=laplacien(3)"],
        &["run", "p.py", "A=rand(3; 2)"],
        &["run", "p.py", "-f", "A"],
        &["run", "p.py", "-f", "A=sparce"],
        &["run", "p.py", "-f", "A=csr", "-f", "A=csc"],
        &["run", "p.py", "-o", "y"],
        &["run", "p.py", "-o", "y="],
        &["run", "p.py", "-o", "y=-", "-o", "z=-"],
        &["run", "p.py", "-o", "y=-", "--json"],
        &["run", "p.py", "--duplicates", "maybe"],
        &["run", "p.py", "--no-such-option"],
        &["explain", "E9999"],
        &["explain", "y[i] = x[i]", "-f", "x"],
        &["explain", "y[i] = x[i]", "--emit", "poetry"],
        &["info"],
        &["info", "v1.mtx", "-f", "csrr"],
        &["info", "laplacien(3)"],
        &["info", "laplacian(3"],
        &["info", "v1.mtx", "--png"],
        &["convert", "v1.mtx"],
        &["convert", "v1.mtx", "-"],
        &["convert", "v1.mtx", "-", "--to", "docx"],
        &["convert", "v1.mtx", "out.tns", "-f", "cvs"],
        &["convert", "banded(3)", "out.tns"],
        &["completions", "basic"],
        &["completions"],
        &["gallery", "extra"],
    ];
    for line in table {
        // A parenthesis that is not closed reads as a file, which is not there.
        let expected = if *line == ["info", "laplacian(3"] { 1 } else { 2 };
        assert_eq!(status(line, folder.path()), expected, "{line:?}");
        let output = tamis(line).current_dir(folder.path()).output().unwrap();
        assert!(!output.stderr.is_empty() || line.contains(&"--json"), "{line:?}");
    }
    assert!(!folder.path().join("out.tns").exists());
}

#[test]
fn mistakes_are_shown_at_their_place() {
    let folder = folder();
    let lines: [&[&str]; 4] = [
        &["run", "p.py", "A=laplacien(1000)", "-f", "A=sparce", "x"],
        &["info", "rand(100,200,0.1)"],
        &["convert", "v1.mtx", "-"],
        &["run", "p.py", "A=rand(3; 2)", "--json"],
    ];
    let shown: Vec<String> = lines.iter().map(|line| transcript(line, folder.path())).collect();
    insta::assert_snapshot!(shown.join("\n"));
}

#[test]
fn codes_are_explained() {
    let folder = folder();
    let lines: [&[&str]; 6] = [
        &["explain", "E0904"],
        &["explain", "e0904", "--json"],
        &["explain", "E0944"],
        &["explain", "0904"],
        &["explain", "E0944", "--json"],
        &["explain", "E0601", "--color", "always"],
    ];
    let shown: Vec<String> = lines.iter().map(|line| transcript(line, folder.path())).collect();
    insta::assert_snapshot!(shown.join("\n"));
    let list = tamis(&["explain"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&list.stdout).lines().count(), tamis_ir::Code::ALL.len());
}

#[test]
fn the_gallery_is_listed() {
    let folder = folder();
    insta::assert_snapshot!(transcript(&["gallery"], folder.path()));
    let json = tamis(&["gallery", "--json"]).output().unwrap();
    let rows: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(rows.as_array().unwrap().len(), tamis_tensor::gallery::GENERATORS.len());
}

#[test]
fn completions_for_every_shell() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let output = tamis(&["completions", shell]).output().unwrap();
        assert!(output.status.success(), "{shell}");
        assert!(String::from_utf8_lossy(&output.stdout).contains("convert"), "{shell}");
    }
}

#[test]
fn colour_is_used_when_asked_for() {
    let coloured = |arguments: &[&str]| tamis(arguments).output().unwrap().stderr.contains(&0x1b);
    assert!(coloured(&["info", "laplacien(3)", "--color", "always"]));
    assert!(!coloured(&["info", "laplacien(3)"]), "not on a pipe");
    assert!(!coloured(&["info", "laplacien(3)", "--color", "never"]));
    assert!(coloured(&["frobnicate", "--color=always"]));
    let output = tamis(&["info", "laplacien(3)", "--color", "always"]).env("NO_COLOR", "1").output().unwrap();
    assert!(output.stderr.contains(&0x1b), "the option is stronger than the environment");
}

/// Output that nobody reads ends quietly, however much of it there is.
#[test]
fn a_closed_pipe_is_quiet() {
    let mut child = tamis(&["completions", "bash"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let mut told = String::new();
    child.stderr.take().unwrap().read_to_string(&mut told).unwrap();
    assert_eq!((child.wait().unwrap().code(), told.as_str()), (Some(0), ""));
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_device_is_reported() {
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let output = tamis(&["gallery"]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("E0811"));
}

#[test]
#[cfg(unix)]
fn names_that_are_not_text() {
    use std::os::unix::ffi::OsStrExt;
    let name = std::ffi::OsStr::from_bytes(b"\xff\xfe.mtx");
    let output = tamis(&["info"]).arg(name).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", show(&["info"], &output));
    let output = tamis(&["run", "p.py"]).arg(name).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", show(&["run"], &output));
}
