//! `tamis convert`, good and bad.

use crate::common::{folder, status, tamis, transcript};
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
fn errors_leave_no_file() {
    let folder = folder();
    let lines: [&[&str]; 7] = [
        &["convert", "missing.mtx", "out.mtx"],
        &["convert", "twice.mtx", "out.mtx"],
        &["convert", "t3.tns", "out.mtx"],
        &["convert", "v1.mtx", "out.mtx", "--symmetric"],
        &["convert", "v1.mtx", "out.mtx", "-f", "dense, singleton"],
        &["convert", "v1.mtx", "no/folder/out.mtx"],
        &["convert", "v1.mtx", "out.pgm"],
    ];
    for line in lines {
        assert_eq!(status(line, folder.path()), 1, "{line:?}");
    }
    let usage: [&[&str]; 8] = [
        &["convert", "v1.mtx", "out.smtx"],
        &["convert", "v1.mtx", "-", "--to", "smtx"],
        &["convert", "v1.mtx", "out.dat"],
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
    // The operating system's message about a missing folder is not ours.
    let stable = lines.iter().chain(&usage).filter(|line| line[2] != "no/folder/out.mtx");
    let shown: Vec<String> = stable.map(|line| transcript(line, folder.path())).collect();
    insta::assert_snapshot!(shown.join("\n"));
}

#[test]
fn json_describes_the_written_file() {
    let folder = folder();
    let text = out(&["convert", "v1.mtx", "there.tns.gz", "--json", "-f", "csr"], folder.path());
    let shown: serde_json::Value = serde_json::from_str(&text).unwrap();
    let bytes = std::fs::metadata(folder.path().join("there.tns.gz")).unwrap().len();
    let expected = serde_json::json!({
        "path": "there.tns.gz", "kind": "tns", "shape": [3, 4], "dtype": "f64", "format": "csr",
        "stored": 3, "bytes": bytes,
    });
    assert_eq!(shown, expected);
    // So does a mistake, in the form of all mistakes.
    let output = tamis(&["convert", "twice.mtx", "out.mtx", "--json"]).current_dir(folder.path()).output().unwrap();
    let shown: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), &shown["error"]["code"]), (Some(1), &"E0807".into()));
}

#[test]
fn any_name_will_do_with_a_kind() {
    let folder = folder();
    assert_eq!(status(&["convert", "v1.mtx", "there.dat", "--to", "tns"], folder.path()), 0);
    assert_eq!(std::fs::read(folder.path().join("there.dat")).unwrap(), b"1 1 1.0\n1 4 2.0\n3 1 3.0\n");
    assert_eq!(status(&["convert", "v1.mtx", "there", "--to", "npy"], folder.path()), 0);
    assert!(std::fs::read(folder.path().join("there")).unwrap().starts_with(b"\x93NUMPY"));
    #[cfg(unix)]
    for name in ["/dev/stdout", "/dev/fd/1"] {
        assert_eq!(out(&["convert", "v1.mtx", name, "--to", "tns"], folder.path()), "1 1 1.0\n1 4 2.0\n3 1 3.0\n");
        // A file that output is appended to keeps what it had.
        let log = folder.path().join("log");
        std::fs::write(&log, "before\n").unwrap();
        let file = std::fs::File::options().append(true).open(&log).unwrap();
        let line = ["convert", "list.tns", name, "--to", "tns"];
        assert!(tamis(&line).current_dir(folder.path()).stdout(file).status().unwrap().success());
        assert_eq!(std::fs::read_to_string(&log).unwrap(), "before\n1 1.5\n5 2.5\n9 1.0\n", "{name}");
    }
}

/// Names in a folder, and whether files without a name can be made in it.
#[cfg(target_os = "linux")]
fn unnamed_files_work(folder: &std::path::Path) -> bool {
    use std::os::unix::fs::OpenOptionsExt;
    let works = std::fs::File::options().write(true).custom_flags(libc::O_TMPFILE).open(folder).is_ok();
    if !works {
        // Not `eprintln!`, which is only shown for tests that fail.
        let _ = std::io::Write::write_fmt(
            &mut std::io::stderr(),
            format_args!("SKIPPED: the file system has no files without a name\n"),
        );
    }
    works
}

/// A process that is killed while writing leaves the old file, and nothing else.
#[test]
#[cfg(target_os = "linux")]
fn a_writer_that_is_killed_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    if !unnamed_files_work(folder.path()) {
        return;
    }
    std::fs::write(folder.path().join("old.tns"), "1 1\n").unwrap();
    let names = || -> Vec<String> {
        let entries = std::fs::read_dir(folder.path()).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    };
    for target in ["new.tns", "old.tns", "new.tns.gz"] {
        let mut child = tamis(&["convert", "laplacian(700)", target]).current_dir(folder.path()).spawn().unwrap();
        // An open file in this folder is the one that is being written.
        let open = format!("/proc/{}/fd", child.id());
        let writing = || {
            let links = std::fs::read_dir(&open).into_iter().flatten().flatten();
            let mut places = links.filter_map(|link| std::fs::read_link(link.path()).ok());
            places.any(|place| place.starts_with(folder.path()))
        };
        while !writing() {
            assert!(child.try_wait().unwrap().is_none(), "{target}: it was done before it was killed");
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(names(), ["old.tns"], "{target}");
    }
    assert_eq!(std::fs::read(folder.path().join("old.tns")).unwrap(), b"1 1\n");
}

/// A limit on the size of files ends the process by a signal, at a place of its choice.
#[test]
#[cfg(target_os = "linux")]
fn a_limit_on_file_size_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    if !unnamed_files_work(folder.path()) {
        return;
    }
    for line in ["convert 'laplacian(100)' big.tns", "info 'laplacian(100)' --no-plot --png big.png"] {
        let script = format!("ulimit -c 0; ulimit -f 1; exec \"$0\" {line}");
        let mut command = std::process::Command::new("sh");
        command.args(["-c", &script, env!("CARGO_BIN_EXE_tamis")]).current_dir(folder.path());
        let output = command.output().unwrap();
        assert!(!output.status.success(), "{line}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "{line}");
    }
}

/// `tamis convert ... - | head` ends without a word, with much left to write.
#[test]
fn a_closed_pipe_is_quiet() {
    let line = ["convert", "laplacian(300)", "-", "--to", "tns"];
    let mut child = tamis(&line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = [0; 10];
    child.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
    drop(child.stdout.take());
    let mut shown = String::new();
    child.stderr.take().unwrap().read_to_string(&mut shown).unwrap();
    assert_eq!((child.wait().unwrap().code(), shown.as_str()), (Some(0), ""));
}
