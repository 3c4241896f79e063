//! Architecture tests: the invariants of docs/ARCHITECTURE.md that a test can check.

use std::path::{Path, PathBuf};

/// The crates in dependency order: each may depend only on those before it.
const ORDER: &[&str] =
    &["tamis-ir", "tamis-tensor", "tamis-compiler", "tamis-backend", "tamis-macros", "tamis", "tamis-py", "tamis-cli"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn dependencies_point_down() {
    for (k, name) in ORDER.iter().enumerate() {
        let manifest = std::fs::read_to_string(root().join(format!("crates/{name}/Cargo.toml"))).unwrap();
        let (_, dependencies) = manifest.split_once("[dependencies]").unwrap();
        for (other_k, other) in ORDER.iter().enumerate() {
            let named = dependencies
                .lines()
                .any(|line| line.starts_with(&format!("{other}.")) || line.starts_with(&format!("{other} ")));
            assert!(!named || other_k < k, "{name} must not depend on {other}");
        }
    }
}

#[test]
fn the_interpreter_and_the_program_name_no_tensor_crate() {
    let mut found = Vec::new();
    sources(&root().join("crates/tamis-ir/src"), &mut found);
    for path in found {
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(!text.contains("tamis_tensor"), "{}", path.display());
    }
}

/// The tests of a crate are modules of one binary: a file that no module names would never run.
#[test]
fn every_file_of_tests_runs() {
    let crates = std::fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().path());
    for folder in crates.chain([root().join("tests")]) {
        let Ok(suite) = std::fs::read_to_string(folder.join("tests/suite.rs")) else { continue };
        let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        for entry in std::fs::read_dir(folder.join("tests")).unwrap() {
            let path = entry.unwrap().path();
            let Some(name) = path.file_stem().and_then(|name| name.to_str()) else { continue };
            if path.extension().is_some_and(|kind| kind == "rs") {
                let named = suite.lines().any(|line| line == format!("mod {name};"));
                assert!(named || manifest.contains(&format!("path = \"tests/{name}.rs\"")), "{}", path.display());
            }
        }
    }
}

/// The lowerer sees looplets; the set of levels is data.
#[test]
fn the_lowerer_names_no_level() {
    let mut found = Vec::new();
    sources(&root().join("crates/tamis-compiler/src/lower"), &mut found);
    assert!(found.len() > 5);
    for path in found {
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(!text.contains("LevelKind"), "{}", path.display());
    }
}

/// The how-to page says that an operator takes two files by hand and three that are generated.
#[test]
fn an_operator_takes_two_files() {
    let output = std::process::Command::new("git")
        .args(["grep", "--untracked", "-lwi", "logaddexp2", "--", "crates/*/src/*", "docs/reference", "python/tamis"])
        .current_dir(root())
        .output();
    // A source archive has no repository.
    let Ok(output) = output.map(|output| String::from_utf8(output.stdout).unwrap()) else { return };
    let found: Vec<&str> = output.lines().collect();
    let expected = [
        "crates/tamis-ir/src/algebra/scalar.rs",
        "crates/tamis-ir/src/algebra/table.rs",
        "docs/reference/api.md",
        "docs/reference/operators.md",
        "python/tamis/_functions.pyi",
    ];
    assert_eq!(found, expected, "docs/how-to/add-an-operator.md says otherwise");
    let page = std::fs::read_to_string(root().join("docs/how-to/add-an-operator.md")).unwrap();
    assert!(expected.iter().all(|file| page.contains(file)), "the page names all of {expected:?}");
}

/// Files are rooms: one subject each. Past 800 lines, split by subject.
#[test]
fn files_have_one_subject() {
    let mut found = Vec::new();
    for folder in ["crates", "tests", "benches"] {
        sources(&root().join(folder), &mut found);
    }
    assert!(found.len() > 50);
    for path in found {
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.lines().count() <= 800, "{} has more than 800 lines", path.display());
        assert!(text.starts_with("//!"), "{} does not say what belongs there", path.display());
    }
}

/// Every diagnostic code is raised somewhere, by a crate or by the Python package.
#[test]
fn codes_are_used() {
    let mut found = Vec::new();
    sources(&root().join("crates"), &mut found);
    let text: String = found
        .iter()
        .filter(|path| !path.ends_with("diag/codes.rs"))
        .map(|path| std::fs::read_to_string(path).unwrap())
        .collect();
    let package: String = std::fs::read_dir(root().join("python/tamis"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "py") && !path.ends_with("_errors.py"))
        .map(|path| std::fs::read_to_string(path).unwrap())
        .collect();
    for code in tamis_ir::Code::ALL {
        let raised = text.contains(&format!("Code::{code}")) || package.contains(&format!("\"{code}\""));
        assert!(raised, "{code} is never raised");
    }
}
