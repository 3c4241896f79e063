//! Tests of the examples: every example is a filetest, and its kernel agrees with the interpreter
//! in every format.

use std::path::{Path, PathBuf};
use tamis_ir::interp::{self, Operand, Options};
use tamis_ir::{Program, Value};
use tamis_tensor::Tensor;
use tamis_tests::filetest::{Section, sections};
use tamis_tests::lowered::{self, Engine};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_path_buf()
}

fn zoo() -> Vec<Section> {
    let folder = root().join("tests/filetests");
    ["zoo.md", "papers.md", "papers-looplets.md", "case-studies.md", "convolutions.md"]
        .iter()
        .flat_map(|name| sections(&folder.join(name)).unwrap_or_else(|problem| panic!("{name}: {problem}")))
        .collect()
}

/// Examples and their filetests must be changed together.
#[test]
fn every_example_is_a_filetest_verbatim() {
    let programs: Vec<String> = zoo().into_iter().map(|section| section.program.trim().to_string()).collect();
    let mut examples = 0;
    for entry in std::fs::read_dir(root().join("examples")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "py") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let program = text[text.find("def ").unwrap()..].trim();
        assert!(programs.iter().any(|p| p == program), "{} is not in tests/filetests", path.display());
        examples += 1;
    }
    assert!(examples >= 40, "{examples} examples");
}

fn close(a: Value, b: Value) -> bool {
    let (x, y) = (a.as_c128(), b.as_c128());
    a.same_number(b) || (a.dtype() == b.dtype() && (x - y).norm() <= 1e-12 * (1.0 + x.norm()))
}

/// The mismatch of a kernel for a section's inputs in one combination of formats.
fn wrong(section: &Section, inputs: &[(String, Tensor)], engine: Engine) -> Option<String> {
    let program = Program::parse(&section.program).unwrap_or_else(|d| panic!("{}", d.render(false)));
    let tensors: Vec<Tensor> = inputs.iter().map(|(_, tensor)| tensor.clone()).collect();
    let operands: Vec<&dyn Operand> = tensors.iter().map(|t| t as &dyn Operand).collect();
    let expected =
        interp::run(&program, &operands, Options::default()).unwrap_or_else(|d| panic!("{}", d.render(false)));
    let formats: Vec<String> = inputs.iter().map(|(name, t)| format!("{name}: {}", t.format())).collect();
    let reported = |problem: String| Some(format!("{} with {}: {problem}", section.heading, formats.join(", ")));
    let (lowered, results) = match lowered::run(&program, &tensors, engine) {
        Ok(outcome) => outcome,
        Err(problem) => return reported(format!("{problem:?}")),
    };
    for (grid, values) in expected.results.iter().zip(&results) {
        let wanted = grid.to_values().unwrap();
        if wanted.len() != values.len() || !wanted.iter().zip(values).all(|(a, b)| close(*a, *b)) {
            return reported(format!("wanted {wanted:?}\ngot {values:?}\n{}", lowered.kernel));
        }
    }
    (expected.results.len() != results.len()).then(|| format!("{}: results are missing", section.heading))
}

/// All combinations, in the kernel interpreter.
#[test]
fn kernels_agree_with_the_interpreter() {
    let mut failures = Vec::new();
    for section in zoo() {
        let all = section.combinations.iter();
        failures.extend(all.filter_map(|inputs| wrong(&section, inputs, Engine::Interpreter(5_000_000))));
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

/// The first combination of each, as machine code in check mode and without.
#[test]
fn machine_code_agrees_with_the_interpreter() {
    let mut failures = Vec::new();
    for section in zoo() {
        for engine in [Engine::Checked, Engine::Native] {
            failures.extend(section.combinations.iter().take(1).filter_map(|inputs| wrong(&section, inputs, engine)));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}
