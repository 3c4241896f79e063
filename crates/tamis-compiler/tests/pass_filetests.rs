//! Filetests of optimiser passes: `tests/filetests/opt/PASS.md`, one file for each pass.
//!
//! A section (a heading with the blocks below it) is one test. A heading `Must not fire: REASON` is
//! that of a kernel that the pass leaves alone:
//!
//! - `` ```kernel ``: the kernel before the pass;
//! - `` ```after ``: the kernel after it, or `unchanged`;
//! - `` ```inputs ``: lines `NAME = VALUES`, the scalars and the buffers on which both kernels are
//!   interpreted. They must do the same. A buffer without a line is empty;
//! - `` ```options ``: `strict`, for floats exactly as written, and the [`VectorTarget`] of vectors: `sse2`,
//!   `avx2` or `avx512`.
//!
//! Kernels are verified before and after. `TAMIS_BLESS=1` rewrites the `after` blocks; review the
//! diff before committing.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use tamis_compiler::opt::{Options, PASSES, VECTOR_PASSES, VectorTarget};
use tamis_ir::kernel::{Array, Elem, Failure, Kernel, Memory, Role, run};
use tamis_ir::{DType, Value};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/filetests/opt")
}

/// A fenced block, and where its text lies in the file.
struct Fence {
    kind: String,
    text: String,
    range: Range<usize>,
}

/// The sections of a file: heading, and blocks.
fn sections(text: &str) -> Vec<(String, Vec<Fence>)> {
    let mut found: Vec<(String, Vec<Fence>)> = Vec::new();
    let mut open: Option<(String, usize)> = None;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let trimmed = line.trim_end();
        match &open {
            None if trimmed.starts_with("```") => open = Some((trimmed[3..].to_string(), at + line.len())),
            None if trimmed.starts_with("## ") => found.push((trimmed[3..].to_string(), Vec::new())),
            Some((kind, start)) if trimmed == "```" => {
                let fence = Fence { kind: kind.clone(), text: text[*start..at].to_string(), range: *start..at };
                found.last_mut().expect("blocks stand below a `##` heading").1.push(fence);
                open = None;
            }
            _ => {}
        }
        at += line.len();
    }
    found
}

/// A value of a type, from its text.
fn value(text: &str, dtype: DType) -> Value {
    let number: f64 = text.trim().parse().unwrap_or_else(|_| panic!("`{text}` is no number"));
    Value::F64(number).cast(dtype)
}

/// The memory that the lines of an `inputs` block describe.
fn memory(kernel: &Kernel, lines: &str) -> Memory {
    let mut given: BTreeMap<&str, &str> = lines.lines().filter_map(|line| line.split_once(" = ")).collect();
    let arrays = kernel.buffers.iter().map(|buffer| {
        let values = given.remove(buffer.name.as_str()).unwrap_or("");
        let dtype = match buffer.elem {
            Elem::Value(dtype) => dtype,
            Elem::Index(_) => DType::I64,
        };
        Array::from_values(values.split_whitespace().map(|text| value(text, dtype)))
    });
    let arrays = arrays.collect();
    let scalars = kernel.params.iter().map(|param| {
        let info = kernel.var(*param);
        value(given.remove(info.name.as_str()).unwrap_or_else(|| panic!("no input `{}`", info.name)), info.dtype)
    });
    let scalars = scalars.collect();
    assert!(given.is_empty(), "there are no inputs {:?}", given.keys());
    Memory { arrays, scalars }
}

/// What a kernel leaves in its outputs, or its failure.
fn outcome(kernel: &Kernel, inputs: &Memory) -> Result<String, String> {
    // A pass may add tiles, which the caller does not give.
    let mut inputs = inputs.clone();
    inputs.arrays.resize(kernel.buffers.len(), Array::default());
    match run(kernel, inputs, 100_000) {
        Ok(after) => {
            let outputs = kernel.buffers.iter().zip(&after.arrays).filter(|(b, _)| b.role == Role::Output);
            Ok(outputs.map(|(b, array)| format!("{} = {:?}\n", b.name, array.values())).collect())
        }
        Err(Failure::Wrong(reason)) => Err(format!("the kernel does not run on the inputs: {reason}\n{kernel}")),
        Err(failure) => Ok(format!("{failure:?}")),
    }
}

/// The text after a pass, and what is wrong with the section.
fn after(pass: &str, blocks: &[Fence]) -> Result<String, String> {
    let find = |kind: &str| blocks.iter().find(|block| block.kind == kind).map(|block| block.text.as_str());
    let text = find("kernel").ok_or("there is no kernel")?;
    let before = Kernel::parse(text).map_err(|d| d.render(false))?;
    if before.to_string() != text {
        return Err(format!("the kernel prints as\n{before}"));
    }
    let pass = PASSES.iter().chain(VECTOR_PASSES).find(|row| row.name == pass).ok_or("there is no such pass")?;
    let words: Vec<&str> = find("options").unwrap_or("").split_whitespace().collect();
    let target = words.iter().find_map(|word| VectorTarget::named(word)).unwrap_or_default();
    let options = Options { strict: words.contains(&"strict"), target, count: false };
    let after = (pass.run)(before.clone(), &options);
    after.verify()?;
    if let Some(lines) = find("inputs") {
        let inputs = memory(&before, lines);
        let (expected, found) = (outcome(&before, &inputs)?, outcome(&after, &inputs)?);
        if expected != found {
            return Err(format!("{expected}became\n{found}\n{after}"));
        }
    }
    let printed = after.to_string();
    let again = Kernel::parse(&printed).map_err(|d| d.render(false))?;
    assert_eq!(again.to_string(), printed);
    Ok(if printed == text { "unchanged\n".to_string() } else { printed })
}

fn run_file(pass: &str, path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut failures = Vec::new();
    let (mut fired, mut idle) = (0, 0);
    let mut edited = text.clone();
    let all = sections(&text);
    for (heading, blocks) in all.iter().rev() {
        let actual = match after(pass, blocks) {
            Ok(actual) => actual,
            Err(problem) => {
                failures.push(format!("{pass}: {heading}: {problem}"));
                continue;
            }
        };
        let unchanged = actual == "unchanged\n";
        if unchanged {
            idle += 1
        } else {
            fired += 1
        }
        if unchanged != heading.starts_with("Must not fire: ") {
            failures.push(format!("{pass}: {heading}: the heading says otherwise, but the kernel becomes\n{actual}"));
            continue;
        }
        let Some(block) = blocks.iter().find(|block| block.kind == "after") else {
            failures.push(format!("{pass}: {heading}: there is no `after`"));
            continue;
        };
        if block.text == actual {
            continue;
        }
        if std::env::var_os("TAMIS_BLESS").is_some() {
            edited.replace_range(block.range.clone(), &actual);
        } else {
            failures.push(format!("{pass}: {heading}: expected\n{}but got\n{actual}", block.text));
        }
    }
    if edited != text {
        std::fs::write(path, edited).unwrap();
    }
    if fired == 0 || idle == 0 || fired + idle < 3 {
        failures.push(format!("{pass}: three tests are needed, and one where the pass must not fire"));
    }
    failures
}

#[test]
fn every_pass_does_what_its_file_says() {
    let mut failures = Vec::new();
    let mut names: Vec<&str> = PASSES.iter().chain(VECTOR_PASSES).map(|pass| pass.name).collect();
    names.sort_unstable();
    names.dedup();
    for name in &names {
        failures.extend(run_file(name, &folder().join(format!("{name}.md"))));
    }
    for entry in std::fs::read_dir(folder()).unwrap() {
        let file = entry.unwrap().file_name().to_string_lossy().to_string();
        if !names.iter().any(|name| file == format!("{name}.md")) {
            failures.push(format!("{file}: there is no such pass"));
        }
    }
    assert!(failures.is_empty(), "{}\nTAMIS_BLESS=1 rewrites `after`, if this is meant", failures.join("\n\n"));
}
