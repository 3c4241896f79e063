//! Golden tests: the text of every stage for every example in `tests/goldens/NAME.md`, rewritten by
//! `TAMIS_BLESS=1`; and properties that the text of important kernels must show.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use tamis::compile::{CompileOptions, Signature};
use tamis_ir::Program;
use tamis_ir::kernel::Kernel;
use tamis_ir::looplet::Looplet;
use tamis_tensor::Tensor;
use tamis_tests::filetest::{Section, sections, stage};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_path_buf()
}

fn sections_of(names: &[&str]) -> Vec<Section> {
    let folder = root().join("tests/filetests");
    names.iter().flat_map(|name| sections(&folder.join(name)).unwrap()).collect()
}

/// Each example with the first section that tests it.
fn examples() -> Vec<(String, Section)> {
    let all = sections_of(&["zoo.md", "papers.md", "papers-looplets.md", "case-studies.md", "convolutions.md"]);
    let mut found = Vec::new();
    for entry in std::fs::read_dir(root().join("examples")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "py") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let program = text[text.find("def ").unwrap()..].trim();
        let section = all.iter().find(|section| section.program.trim() == program);
        let name = path.file_stem().unwrap().to_string_lossy().to_string();
        found.push((name.clone(), section.unwrap_or_else(|| panic!("{name} has no filetest")).clone()));
    }
    found.sort_by(|(a, _), (b, _)| a.cmp(b));
    found
}

fn stage_of(section: &Section, kind: &str) -> String {
    let program = Program::parse(&section.program).unwrap_or_else(|d| panic!("{}", d.render(false)));
    let tensors: Vec<Tensor> = section.combinations[0].iter().map(|(_, tensor)| tensor.clone()).collect();
    stage(&program, &tensors, kind).unwrap_or_else(|problem| panic!("{}: {problem}", section.heading))
}

fn golden(name: &str, section: &Section) -> String {
    let mut text = format!("# {name}\n\n```program\n{}\n```\n\nInputs:\n\n", section.program.trim());
    for (input, tensor) in &section.combinations[0] {
        text += &format!("- `{input}`: {} {}\n", tensor.format(), tensor.dtype());
    }
    for kind in ["looplets", "kernel", "c"] {
        text += &format!("\n```{kind}\n{}\n```\n", stage_of(section, kind).trim_end());
    }
    text
}

#[test]
fn every_stage_of_every_example() {
    let folder = root().join("tests/goldens");
    let bless = std::env::var_os("TAMIS_BLESS").is_some();
    let mut failures = Vec::new();
    let mut names = BTreeSet::new();
    for (name, section) in examples() {
        let path = folder.join(format!("{name}.md"));
        let actual = golden(&name, &section);
        let expected = std::fs::read_to_string(&path).unwrap_or_default();
        names.insert(format!("{name}.md"));
        if actual == expected {
            continue;
        }
        if bless {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(&path, actual).unwrap();
        } else {
            let line = actual.lines().zip(expected.lines()).find(|(a, b)| a != b);
            failures.push(format!("{name}: first difference {line:?}"));
        }
    }
    for entry in std::fs::read_dir(&folder).unwrap() {
        let file = entry.unwrap().file_name().to_string_lossy().to_string();
        if !names.contains(&file) {
            failures.push(format!("{file}: there is no such example"));
        }
    }
    assert!(names.len() >= 40, "{names:?}");
    assert!(failures.is_empty(), "{}\nTAMIS_BLESS=1 rewrites them, if this is meant", failures.join("\n"));
}

/// The kernels of goldens and filetests parse back to their text.
#[test]
fn kernels_read_back() {
    let mut read = 0;
    for folder in ["tests/goldens", "tests/filetests"] {
        for entry in std::fs::read_dir(root().join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let Ok(text) = std::fs::read_to_string(&path) else { continue };
            for block in text.split("```kernel\n").skip(1) {
                let (block, _) = block.split_once("```").unwrap();
                let kernel = Kernel::parse(block).unwrap_or_else(|d| panic!("{}: {}", path.display(), d.render(false)));
                assert_eq!(kernel.to_string().trim_end(), block.trim_end(), "{}", path.display());
                read += 1;
            }
        }
    }
    assert!(read > 80, "{read}");
}

/// The looplets of all examples parse back to their text, with the names of the kernel before the
/// optimiser.
#[test]
fn looplets_read_back() {
    let mut read = 0;
    for (name, section) in examples() {
        let program = Program::parse(&section.program).unwrap();
        let tensors: Vec<&Tensor> = section.combinations[0].iter().map(|(_, tensor)| tensor).collect();
        let explanation = tamis::explain(&program, &Signature::of(&tensors), &CompileOptions::default()).unwrap();
        let mut kernel = explanation.after("lower").unwrap()[0].clone();
        for line in explanation.looplets().iter().flat_map(|text| text.lines()) {
            let Some((_, text)) = line.split_once(": ") else { continue };
            let looplet = Looplet::parse(&mut kernel, text);
            let looplet = looplet.unwrap_or_else(|d| panic!("{name}: {}\n{kernel}", d.render(false)));
            assert_eq!(looplet.show(&kernel), text, "{name}");
            read += 1;
        }
    }
    assert!(read > 150, "{read}");
}

/// The text of a stage for a section of `kernels.md`.
fn kernel_section(heading: &str, kind: &str) -> String {
    let all = sections_of(&["kernels.md"]);
    let section = all.iter().find(|s| s.heading == heading).unwrap_or_else(|| panic!("no section {heading}"));
    stage_of(section, kind)
}

fn count(text: &str, word: &str) -> usize {
    text.match_indices(word).count()
}

/// Two loops, one sum in a register, and nothing else.
#[test]
fn csr_spmv_c_matches_hand_written_code() {
    let text = kernel_section("SpMV, csr", "c");
    assert_eq!(count(&text, "for ("), 2, "{text}");
    assert_eq!(count(&text, "while"), 0, "{text}");
    assert_eq!(count(&text, "search"), 0, "{text}");
    assert_eq!(count(&text, "+="), 1, "{text}");
    assert_eq!(count(&text, "y_values["), 1, "the sum is stored once, after the inner loop\n{text}");
    let accumulators = text.lines().filter(|line| line.trim_start().starts_with("double ") && line.contains('='));
    assert_eq!(accumulators.filter(|line| !line.contains("*restrict")).count(), 1, "{text}");
}

/// A merge, and the tail of either operand; each body once.
#[test]
fn a_plus_b_is_one_merge_and_two_tails() {
    let text = kernel_section("A + B, csr: one merge, two tails", "c");
    assert_eq!(count(&text, "while ("), 1, "{text}");
    assert_eq!(count(&text, "for ("), 3, "rows, and two tails\n{text}");
    assert_eq!(count(&text, "search"), 0, "{text}");
    let stores = text.lines().filter(|line| line.trim_start().starts_with("C_values[")).count();
    assert!(stores <= 5, "three cases of the merge and two tails at most, not {stores}\n{text}");
}

/// No loop of Gustavson's rows covers all columns.
#[test]
fn gustavson_visits_only_stored_columns() {
    let text = kernel_section("Gustavson: what a row costs is what it holds", "kernel");
    let rows = text.find("for i in").unwrap_or_else(|| panic!("no loop over rows\n{text}"));
    let in_rows = &text[rows..];
    for size in ["B_n1", "C_n1", "w_n0"] {
        let loops = in_rows.lines().filter(|l| (l.contains("for ") || l.contains("fill ")) && l.contains(size));
        assert_eq!(loops.count(), 0, "{size}\n{text}");
    }
}
