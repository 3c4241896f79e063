//! The command line: help, errors, codes, standard output and exit status.

use crate::common::{SPMV, folder, show, status, tamis, transcript};
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
    std::fs::write(folder.path().join("spmv.py"), SPMV).unwrap();
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
        &["info", "laplacian"],
        &["info", "x.unknown"],
        &["info", "/dev/zero"],
        &["convert", "x.unknown", "out.tns"],
        &["convert", "v1.mtx", "out.smtx"],
        &["convert", "v1.mtx", "-", "--to", "smtx"],
        &["convert", "v1.mtx", "-", "--to", "tns", "--json"],
        &["run", "spmv.py", "A=v1.mtx"],
        &["run", "spmv.py", "A=v1.mtx", "x=ones", "B=ones"],
        &["run", "spmv.py", "A=v1.mtx", "x=ones", "-o", "z=z.tns"],
        &["run", "spmv.py", "A=v1.mtx", "x=ones", "-f", "q=csr"],
        &["run", "spmv.py", "A=v1.mtx", "x=ones", "--shape", "q=3"],
        &["run", "spmv.py", "A=x.unknown", "x=ones"],
        &["run", "spmv.py", "A=/dev/zero", "x=ones"],
        &["run", "spmv.py", "A=laplacian", "x=ones"],
        &["run", "spmv.py", "A=laplacian(3", "x=ones"],
        &["run", "spmv.py", "A=v1.mtx", "x=ones", "-o", "y=y.xyz"],
        &["run", "spmv.py", "A=v1.mtx", "x=ones", "-o", "y=y.txt"],
        &["run", "spmv.py", "A=v1.mtx", "x=ones", "--header"],
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
        assert_eq!(status(line, folder.path()), 2, "{line:?}");
        let output = tamis(line).current_dir(folder.path()).output().unwrap();
        assert!(!output.stderr.is_empty() || line.contains(&"--json"), "{line:?}");
    }
    assert!(!folder.path().join("out.tns").exists());
}

#[test]
fn mistakes_are_shown_at_their_place() {
    let folder = folder();
    let lines: [&[&str]; 9] = [
        &["info", "laplacian"],
        &["info", "laplacian(3"],
        &["run", "p.py", "A=laplacian(3", "s=1e400"],
        &["run", "p.py", "-o", "D=same.tns", "-o", "F=./same.tns", "-o", "y=y.idx"],
        &["run", ""],
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
fn colour_is_used_on_request() {
    let coloured = |arguments: &[&str]| tamis(arguments).output().unwrap().stderr.contains(&0x1b);
    assert!(coloured(&["info", "laplacien(3)", "--color", "always"]));
    assert!(!coloured(&["info", "laplacien(3)"]), "not on a pipe");
    assert!(!coloured(&["info", "laplacien(3)", "--color", "never"]));
    assert!(coloured(&["frobnicate", "--color=always"]));
    let output = tamis(&["info", "laplacien(3)", "--color", "always"]).env("NO_COLOR", "1").output().unwrap();
    assert!(output.stderr.contains(&0x1b), "the option is stronger than the environment");
}

/// Output into a closed pipe ends quietly, for any amount of output.
#[test]
fn a_closed_pipe_is_quiet() {
    let mut child = tamis(&["completions", "bash"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let mut text = String::new();
    child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
    assert_eq!((child.wait().unwrap().code(), text.as_str()), (Some(0), ""));
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
    let folder = folder();
    let named = |prefix: &[u8], name: &[u8]| std::ffi::OsStr::from_bytes(&[prefix, name].concat()).to_os_string();
    std::fs::copy(folder.path().join("v1.mtx"), folder.path().join(named(b"", b"\xff.mtx"))).unwrap();
    std::fs::write(folder.path().join(named(b"", b"\xfe.py")), SPMV).unwrap();
    let output = tamis(&["run"])
        .arg(named(b"", b"\xfe.py"))
        .arg(named(b"A=", b"\xff.mtx"))
        .args(["x=ones", "-o"])
        .arg(named(b"y=", b"\xff\xfd.tns"))
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", show(&["run"], &output));
    assert_eq!(std::fs::read(folder.path().join(named(b"", b"\xff\xfd.tns"))).unwrap(), b"1 3.0\n2 0.0\n3 3.0\n");
    // A missing program of such a name is a missing file, and `explain` reads one, too.
    let output = tamis(&["run"]).arg(named(b"", b"\xfb.py")).current_dir(folder.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", show(&["run"], &output));
    let output = tamis(&["explain"]).arg(named(b"", b"\xfe.py")).current_dir(folder.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", show(&["explain"], &output));
}

/// Machines that ask for JSON get JSON, whatever is wrong.
#[test]
fn wrong_arguments_are_json_on_request() {
    let lines: [&[&str]; 6] = [
        &["info", "--json"],
        &["info", "v1.mtx", "--json", "--no-such-option"],
        &["run", "--json", "p.py", "--duplicates", "maybe"],
        &["frobnicate", "--json"],
        &["convert", "--json", "a.mtx"],
        &["gallery", "--json", "--color", "pink"],
    ];
    for line in lines {
        let output = tamis(line).output().unwrap();
        assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(2), &b""[..]), "{line:?}");
        let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let error = &document["error"];
        assert_eq!(error["code"], "E0905", "{line:?}");
        let message = error["message"].as_str().unwrap();
        assert!(!message.is_empty() && !message.contains("error:") && !message.contains('\n'), "{line:?}: {message}");
        assert!(!error["help"].as_array().unwrap().is_empty(), "{line:?}");
    }
    let folder = folder();
    insta::assert_snapshot!(transcript(lines[2], folder.path()));
    // Help is help, and what follows `--` is not an option.
    let output = tamis(&["info", "--json", "--help"]).output().unwrap();
    assert!(output.status.success() && output.stdout.starts_with(b"Describe"));
    let output = tamis(&["info", "a", "--", "--json"]).output().unwrap();
    assert!(output.stdout.is_empty() && output.stderr.starts_with(b"error:"));
}

/// Options for tensors that do not exist, or that contradict the tensor, are not ignored.
#[test]
fn options_without_effect_are_refused() {
    let product = "y[i] = A[i,j] * x[j]";
    let lines: [(&[&str], &str); 6] = [
        (&["explain", "E0402", "E0401"], "E0905"),
        (&["explain", "E0402", "-f", "A=csr"], "E0905"),
        (&["explain", product, "--dtype", "B=f32"], "E0903"),
        (&["explain", product, "A=laplacian(3)", "x=ones", "--dtype", "A=f32"], "E0905"),
        (&["run", product, "A=laplacian(3)", "x=ones", "--shape", "A=9,9"], "E0905"),
        (&["run", product, "A=rand(3,4)", "x=ones", "--shape", "A=3,4"], "E0905"),
    ];
    for (line, code) in lines {
        let output = tamis(line).output().unwrap();
        let shown = show(line, &output);
        assert!(output.status.code() == Some(2) && shown.contains(&format!("[{code}]")), "{shown}");
    }
    let output = tamis(&["run", product, "A=rand", "x=ones", "--shape", "A=3,4"]).output().unwrap();
    assert!(output.status.success(), "{}", show(&[], &output));
}
