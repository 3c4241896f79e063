//! `tamis info`, good and bad.

use crate::common::{folder, status, tamis, transcript};

fn all(lines: &[&[&str]], folder: &std::path::Path) -> String {
    lines.iter().map(|line| transcript(line, folder)).collect::<Vec<_>>().join("\n")
}

#[test]
fn files_of_several_kinds() {
    let folder = folder();
    let lines: [&[&str]; 7] = [
        &["info", "zeros.mtx"],
        &["info", "v1.mtx"],
        &["info", "sym.mtx"],
        &["info", "t3.tns"],
        &["info", "list.tns"],
        &["info", "empty.mtx"],
        &["info", "zeros.mtx", "-f", "dense"],
    ];
    insta::assert_snapshot!(all(&lines, folder.path()));
}

#[test]
fn generators() {
    let folder = folder();
    let lines: [&[&str]; 5] = [
        &["info", "laplacian(4)", "-f", "csr"],
        &["info", "banded(50, 3)"],
        &["info", "rmat(8, 4)", "-f", "csc; pattern"],
        &["info", "rand()", "-f", "dense"],
        &["info", "laplacian(1000)", "--no-plot"],
    ];
    insta::assert_snapshot!(all(&lines, folder.path()));
}

#[test]
fn ascii_where_the_locale_is_not_utf8() {
    for (name, input) in [("small", "triangular(5)"), ("large", "laplacian(12)"), ("vector", "rand(300; 0.4; 1)")] {
        let output = tamis(&["info", input]).env("LC_ALL", "C").output().unwrap();
        assert!(output.stdout.is_ascii(), "{name}");
        insta::assert_snapshot!(format!("ascii_{name}"), String::from_utf8_lossy(&output.stdout));
    }
}

#[test]
fn json_has_everything() {
    let folder = folder();
    insta::assert_snapshot!(transcript(&["info", "zeros.mtx", "--json"], folder.path()));
    let output = tamis(&["info", "rand(30,40; 0.1)", "--json"]).output().unwrap();
    let facts: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(facts["shape"], serde_json::json!([30, 40]));
    assert_eq!(facts["stored"], 120);
    for field in ["kind", "gzip", "entries", "field", "symmetry", "layout"] {
        assert!(facts[field].is_null(), "a generator has no {field}");
    }
    let output = tamis(&["info", "sym.mtx", "--json"]).current_dir(folder.path()).output().unwrap();
    let facts: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        ["kind", "gzip", "entries", "field", "symmetry", "layout"].map(|field| facts[field].clone()),
        ["mtx".into(), false.into(), 4.into(), "pattern".into(), "symmetric".into(), "coordinates".into()]
            as [serde_json::Value; 6]
    );
}

#[test]
fn errors_of_data_have_status_1() {
    let folder = folder();
    let lines: [&[&str]; 7] = [
        &["info", "missing.mtx"],
        &["info", "range.mtx"],
        &["info", "twice.mtx"],
        &["info", "v1.mtx", "-f", "dense, sparse, sparse"],
        &["info", "laplacian(4000000000)"],
        &["info", "twice.mtx", "--json"],
        &["info", "folder.mtx"],
    ];
    std::fs::create_dir(folder.path().join("folder.mtx")).unwrap();
    for line in lines {
        assert_eq!(status(line, folder.path()), 1, "{line:?}");
    }
    // The free memory in the message of a generator differs from machine to machine.
    let stable: Vec<&[&str]> = lines.into_iter().filter(|line| !line[1].starts_with("laplacian")).collect();
    insta::assert_snapshot!(all(&stable, folder.path()));
    assert_eq!(status(&["info", "twice.mtx", "--duplicates", "sum"], folder.path()), 0);
}

#[test]
fn images() {
    let folder = folder();
    let path = folder.path().join("plot.png");
    for input in ["v1.mtx", "laplacian(40)", "list.tns", "t3.tns"] {
        assert_eq!(status(&["info", input, "--png", "plot.png", "--no-plot"], folder.path()), 0, "{input}");
        let decoder = png::Decoder::new(std::io::BufReader::new(std::fs::File::open(&path).unwrap()));
        let mut reader = decoder.read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        reader.next_frame(&mut pixels).unwrap();
        assert_eq!(pixels[..3], [255, 255, 255], "{input}: paper at the corner");
        let ink = pixels.chunks(3).filter(|p| p[2] > p[0].saturating_add(30)).count();
        assert!(ink > 10, "{input}: {ink} pixels of ink");
        std::fs::remove_file(&path).unwrap();
    }
    assert_eq!(status(&["info", "v1.mtx", "--png", "no/folder/plot.png"], folder.path()), 1);
    assert_eq!(status(&["info", "empty.mtx", "--png", "plot.png"], folder.path()), 1);
    assert!(!path.exists());
}
