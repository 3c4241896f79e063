//! Filetests: Markdown files whose fenced blocks are programs, inputs and expected outputs.
//!
//! A section (a heading with the blocks below it) is one test:
//!
//! - `` ```program ``: a loop program;
//! - `` ```notation ``: index notation instead of a program, and `` ```order ``, the loops that
//!   come first (a line `keep`: nothing is converted);
//! - `` ```wrt ``: the operands that notation is differentiated with respect to; `` ```adjoint `` and
//!   `` ```tangents ``: the resulting statements, whose patterns are those of the inputs;
//! - `` ```planned ``: the decisions about notation for the first combination, and the resulting
//!   program;
//! - `` ```inputs ``: lines `NAME [: FORMAT [| FORMAT ...]] [DTYPE] = NESTED LIST`; each
//!   combination of formats is run;
//! - `` ```schedule ``: scheduling commands, which are applied to the program first;
//! - `` ```scheduled ``: the scheduled program, whose text parses back to itself;
//! - `` ```inserted ``: the output of `explain --emit schedule`: how each result is produced, and
//!   the program with its workspaces;
//! - `` ```result ``: the results as the runner prints them, for every combination and in check
//!   mode;
//! - `` ```storage ``: the arrays of the inputs (of the first combination);
//! - `` ```looplets ``, `` ```kernel ``, `` ```c ``: what the compiler makes of the program for the
//!   inputs of the first combination: the structure of each loop's accesses, the optimised kernel,
//!   and the function of its C file;
//! - `` ```error ``: the diagnostics, rendered without colour, which are the same in check mode.
//!
//! `TAMIS_BLESS=1` rewrites the expected blocks; review the diff before committing.

use std::fmt::Write;
use std::path::Path;
use tamis::compile::{CompileOptions, Signature};
use tamis::diagnostic::Source;
use tamis::grad::Differentiate;
use tamis::notation::{EinsumOptions, Pins};
use tamis::program::ParamType;
use tamis::run::RunOptions;
use tamis::schedule::Schedule;
use tamis::tensor::ValueArray;
use tamis::{DType, Diagnostics, Format, Notation, Program, Tensor, Value};
use tamis_compiler::lower::Policy;
use tamis_compiler::schedule::with_fill;

/// Blocks with expected output.
const EXPECTED: &[&str] = &[
    "adjoint",
    "tangents",
    "planned",
    "scheduled",
    "inserted",
    "result",
    "storage",
    "looplets",
    "kernel",
    "c",
    "error",
];

/// A fenced block: its kind and its lines.
struct BlockText {
    kind: String,
    text: String,
    /// The byte range of the text in the file.
    range: std::ops::Range<usize>,
}

/// Runs every section of a file; returns the failures.
pub fn run_file(path: &Path) -> Vec<String> {
    let Ok(text) = std::fs::read_to_string(path) else { return vec![format!("{} cannot be read", path.display())] };
    let bless = std::env::var_os("TAMIS_BLESS").is_some();
    let mut failures = Vec::new();
    let mut edits: Vec<(std::ops::Range<usize>, String)> = Vec::new();
    let mut sections = 0;
    for (heading, blocks) in parse_sections(&text) {
        if blocks.is_empty() {
            continue;
        }
        sections += 1;
        let mut expected = 0;
        for block in blocks.iter().filter(|b| EXPECTED.contains(&b.kind.as_str())) {
            expected += 1;
            let actual = match evaluate(&blocks, &block.kind) {
                Ok(actual) => actual,
                Err(problem) => {
                    failures.push(format!("{}: {heading}: {problem}", path.display()));
                    continue;
                }
            };
            if actual.trim_end() != block.text.trim_end() {
                if bless {
                    edits.push((block.range.clone(), actual.trim_end().to_string() + "\n"));
                } else {
                    let shown = format!("expected\n{}\nbut got\n{actual}", block.text);
                    failures.push(format!("{}: {heading}: {} differs: {shown}", path.display(), block.kind));
                }
            }
        }
        if expected == 0 {
            failures.push(format!("{}: {heading}: nothing is expected", path.display()));
        }
    }
    if sections == 0 {
        failures.push(format!("{} holds no test", path.display()));
    }
    if !edits.is_empty() {
        let mut updated = text.clone();
        for (range, replacement) in edits.into_iter().rev() {
            updated.replace_range(range, &replacement);
        }
        if let Err(error) = std::fs::write(path, updated) {
            failures.push(format!("{}: {error}", path.display()));
        }
    }
    failures
}

/// A section with a program: its heading, the program, and the inputs in each combination of
/// formats.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Section {
    pub heading: String,
    pub program: String,
    pub combinations: Vec<Vec<(String, Tensor)>>,
}

/// The sections of a file with a valid program, for tests that run them in other ways.
pub fn sections(path: &Path) -> Result<Vec<Section>, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut found = Vec::new();
    for (heading, blocks) in parse_sections(&text) {
        let find = |kind: &str| blocks.iter().find(|b| b.kind == kind).map(|b| b.text.as_str());
        let (Some(program), None) = (find("program"), find("error")) else { continue };
        let combinations = inputs(find("inputs").unwrap_or("")).map_err(|problem| match problem {
            SectionFailure::User(d) => d.render(false),
            SectionFailure::Test(problem) => problem,
        })?;
        found.push(Section { heading, program: program.to_string(), combinations });
    }
    Ok(found)
}

fn parse_sections(text: &str) -> Vec<(String, Vec<BlockText>)> {
    let mut sections: Vec<(String, Vec<BlockText>)> = vec![("start".into(), Vec::new())];
    let mut open: Option<(String, usize)> = None;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let trimmed = line.trim_end();
        match &open {
            None if trimmed.starts_with("```") && trimmed.len() > 3 => {
                open = Some((trimmed[3..].to_string(), at + line.len()));
            }
            None if trimmed.starts_with('#') => {
                sections.push((trimmed.trim_start_matches('#').trim().to_string(), Vec::new()));
            }
            Some((kind, start)) if trimmed == "```" => {
                let block = BlockText { kind: kind.clone(), text: text[*start..at].to_string(), range: *start..at };
                if let Some((_, blocks)) = sections.last_mut() {
                    blocks.push(block);
                }
                open = None;
            }
            _ => {}
        }
        at += line.len();
    }
    sections
}

fn evaluate(blocks: &[BlockText], kind: &str) -> Result<String, String> {
    let find = |kind: &str| blocks.iter().find(|b| b.kind == kind).map(|b| b.text.as_str());
    let combinations = match inputs(find("inputs").unwrap_or("")) {
        Ok(combinations) => combinations,
        Err(SectionFailure::User(d)) if kind == "error" => return Ok(d.render(false)),
        Err(SectionFailure::User(d)) => return Err(d.render(false)),
        Err(SectionFailure::Test(problem)) => return Err(problem),
    };
    if kind == "storage" {
        return Ok(combinations.first().map(|inputs| storage(inputs)).unwrap_or_default());
    }
    if let Some(notation) = find("notation") {
        let (mut order, mut keep) = (Vec::new(), false);
        for line in find("order").unwrap_or_default().lines() {
            match line.trim() {
                "keep" => keep = true,
                names => order.extend(names.split(',').map(|name| name.trim().to_string())),
            }
        }
        let pins = Pins { order, keep, ..Pins::default() };
        if let Some(wrt) = find("wrt") {
            let first = combinations.first().map(|inputs| &inputs[..]).unwrap_or_default();
            return derivative(notation.trim_end(), wrt, first, kind);
        }
        return of_notation(notation.trim_end(), &pins, &combinations, kind);
    }
    let Some(program) = find("program") else { return Err("there is no program".into()) };
    let text;
    let program = match find("schedule") {
        None => program,
        Some(schedule) => match scheduled(program, schedule.trim_end(), &combinations) {
            Ok(changed) if kind == "scheduled" => return Ok(changed),
            Ok(changed) => {
                text = changed;
                &text
            }
            Err(errors) if kind == "error" => return Ok(errors.render(false)),
            Err(errors) => return Err(errors.render(false)),
        },
    };
    if kind == "inserted" {
        let first = combinations.first().map(|inputs| &inputs[..]).unwrap_or_default();
        return inserted(program, first).map_err(|d| d.render(false));
    }
    if ["looplets", "kernel", "c"].contains(&kind) {
        let parsed = Program::parse(program).map_err(|d| d.render(false))?;
        let first: Vec<Tensor> =
            combinations.into_iter().next().unwrap_or_default().into_iter().map(|(_, t)| t).collect();
        return stage(&parsed, &first, kind);
    }
    let mut outcomes: Vec<String> = Vec::new();
    for inputs in combinations {
        let named: Vec<(&str, &Tensor)> = inputs.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
        let run = |check: bool| -> Result<String, Diagnostics> {
            let program = Program::parse_source(&Source::new("program", program))?;
            let results = tamis::run(&program, &named, &RunOptions { check, ..RunOptions::default() })?;
            Ok(results.iter().map(|(name, tensor)| show(name, tensor)).collect())
        };
        let judge = |check: bool| match (run(check), kind) {
            (Ok(text), "result") => Ok(text),
            (Err(d), "error") => Ok(d.render(false)),
            (Ok(text), _) => Err(format!("was accepted, and gave\n{text}")),
            (Err(d), _) => Err(d.render(false)),
        };
        // Check mode reports wrong accesses instead of executing them.
        let checked = judge(true).map_err(|problem| format!("in check mode: {problem}"))?;
        let outcome = judge(false)?;
        if checked != outcome {
            return Err(format!("in check mode:\n{checked}\nbut otherwise\n{outcome}"));
        }
        if outcomes.first().is_some_and(|first| *first != outcome) {
            let formats: Vec<String> = inputs.iter().map(|(n, t)| format!("{n}: {}", t.format())).collect();
            return Err(format!("with {}:\n{outcome}\nbut before\n{}", formats.join(", "), outcomes[0]));
        }
        outcomes.push(outcome);
    }
    Ok(outcomes.into_iter().next().unwrap_or_default())
}

/// The adjoint statements of notation, those of its tangents, or the diagnostics of both.
fn derivative(text: &str, wrt: &str, inputs: &[(String, Tensor)], kind: &str) -> Result<String, String> {
    let named: Vec<(&str, &Tensor)> = inputs.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
    let notation = Notation::parse_source(&Source::new("notation", text), &[]);
    let notation = notation.map_err(|d| d.render(false))?;
    let names = wrt.split([',', '\n']).map(str::trim).filter(|name| !name.is_empty());
    let request = tamis::grad::described(Differentiate::new(names), &named);
    let made = match kind {
        "tangents" => request.tangents(&notation).map(|made| made.text),
        _ => request.adjoint(&notation).map(|made| made.text),
    };
    match (made, kind) {
        (Ok(text), "adjoint" | "tangents") => Ok(text + "\n"),
        (Err(d), "error") => Ok(d.render(false)),
        (Ok(text), _) => Err(format!("was accepted, and gave\n{text}")),
        (Err(d), _) => Err(d.render(false)),
    }
}

/// Runs the blocks about index notation.
fn of_notation(text: &str, pins: &Pins, combinations: &[Inputs], kind: &str) -> Result<String, String> {
    let mut outcomes: Vec<String> = Vec::new();
    for inputs in combinations {
        let named: Vec<(&str, &Tensor)> = inputs.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
        if kind == "planned" {
            return planned(text, &named, pins).map_err(|d| d.render(false));
        }
        let run = |check: bool| -> Result<String, Diagnostics> {
            let compile = CompileOptions { check, ..CompileOptions::default() };
            let results = tamis::einsum(text, &named, &EinsumOptions { compile, pins: pins.clone() })?;
            let dense = |tensor: &Tensor| tensor.convert(&Format::dense(tensor.rank()));
            results.iter().map(|(name, tensor)| Ok(show(name, &dense(tensor)?))).collect()
        };
        let outcome = match (run(true), run(false), kind) {
            (Ok(checked), Ok(text), "result") if checked == text => text,
            (Err(checked), Err(d), "error") if checked.render(false) == d.render(false) => d.render(false),
            (Err(d), _, _) | (_, Err(d), _) => return Err(d.render(false)),
            (Ok(checked), Ok(text), _) => {
                return Err(format!("was accepted, and gave\n{text}\nin check mode\n{checked}"));
            }
        };
        if outcomes.first().is_some_and(|first| *first != outcome) {
            let formats: Vec<String> = inputs.iter().map(|(n, t)| format!("{n}: {}", t.format())).collect();
            return Err(format!("with {}:\n{outcome}\nbut before\n{}", formats.join(", "), outcomes[0]));
        }
        outcomes.push(outcome);
    }
    Ok(outcomes.into_iter().next().unwrap_or_default())
}

/// The decisions about notation, without costs, and the program; asserts that its text parses back
/// to itself.
fn planned(text: &str, inputs: &[(&str, &Tensor)], pins: &Pins) -> Result<String, Diagnostics> {
    let notation = tamis::notation::parse(text, inputs)?;
    let tensors: Vec<&Tensor> = notation
        .params()
        .iter()
        .filter_map(|name| inputs.iter().find(|(given, _)| given == name))
        .map(|(_, tensor)| *tensor)
        .collect();
    let plan = tamis::notation::plan(&notation, &tensors, pins)?;
    let mut out: String = plan.decisions.iter().map(|d| format!("# {}: {}\n", d.about, d.choice)).collect();
    for conversion in &plan.conversions {
        let _ = writeln!(out, "# {} = convert({}, \"{}\")", conversion.name, conversion.source, conversion.format);
    }
    let program = plan.program.to_string();
    assert!(Program::parse(&program)? == plan.program, "the program does not read back to itself:\n{program}");
    Ok(out + &program)
}

/// A scheduled program as text; asserts that the text parses back to the program.
fn scheduled(program: &str, schedule: &str, combinations: &[Inputs]) -> Result<String, Diagnostics> {
    let program = Program::parse(program)?;
    let first = combinations.first().map(|inputs| &inputs[..]).unwrap_or_default();
    let params: Vec<ParamType> = first.iter().map(|(_, tensor)| tamis_ir::interp::param_type(tensor)).collect();
    let formats: Vec<Format> = first.iter().map(|(_, tensor)| with_fill(tensor.format(), tensor.fill())).collect();
    let checked = program.check(&params)?;
    let changed = Schedule::parse(schedule)?.apply_to(&program, &checked, &formats, Policy::default())?;
    let text = changed.to_string();
    let again = Program::parse(&text)?;
    assert!(again == changed, "the scheduled program does not read back to itself:\n{text}");
    again.check(&params)?;
    Ok(text)
}

/// A program with the workspaces that the compiler inserts, and the reasons; asserts that its text
/// parses back to itself, and that a second insertion changes nothing.
fn inserted(program: &str, inputs: &[(String, Tensor)]) -> Result<String, Diagnostics> {
    let tensors: Vec<&Tensor> = inputs.iter().map(|(_, tensor)| tensor).collect();
    let schedule = |program: &str| -> Result<String, Diagnostics> {
        let explanation = tamis::explain(&Program::parse(program)?, &Signature::of(&tensors), &Default::default())?;
        Ok(explanation.schedule())
    };
    let without_notes = |text: &str| -> String {
        text.lines().filter(|line| !line.starts_with('#')).map(|line| format!("{line}\n")).collect()
    };
    let text = schedule(program)?;
    let again = schedule(&text)?;
    assert_eq!(without_notes(&again), without_notes(&text), "a program that has its workspaces gets others");
    Ok(text)
}

/// The text of a compiler stage.
pub fn stage(program: &Program, tensors: &[Tensor], kind: &str) -> Result<String, String> {
    let compiled = crate::lowered::compile(program, tensors, crate::lowered::Stage::Optimised);
    let (lowered, _) = compiled.map_err(|problem| format!("{problem:?}"))?;
    match kind {
        "looplets" => Ok(lowered.looplets.join("\n")),
        "kernel" => Ok(lowered.kernel.to_string()),
        _ => {
            let text = tamis_backend::c::print(&lowered.kernel).map_err(|d| d.render(false))?;
            Ok(function(&text, &lowered.kernel.name).unwrap_or(&text).to_string())
        }
    }
}

/// The kernel function, without the helpers before it and the entry point after it.
fn function<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let at = text.find(&format!(" {name}("))?;
    let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let stop = start + text[start..].find("\n}\n")? + 3;
    Some(&text[start..stop])
}

/// A failure of the tested program, or of the test.
enum SectionFailure {
    User(Diagnostics),
    Test(String),
}

type Inputs = Vec<(String, Tensor)>;

fn inputs(text: &str) -> Result<Vec<Inputs>, SectionFailure> {
    let mut combinations: Vec<Inputs> = vec![Vec::new()];
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let bad = || SectionFailure::Test(format!("cannot read the input {line:?}"));
        let (head, data) = line.split_once(" = ").ok_or_else(bad)?;
        let (name, formats) = head.split_once(':').unwrap_or((head, "dense"));
        let (shape, values) = nested(data).ok_or_else(bad)?;
        let mut alternatives = Vec::new();
        for format in formats.split('|') {
            let mut format = format.trim();
            let mut dtype = natural_dtype(&values);
            if let Some((before, last)) = format.rsplit_once(' ')
                && let Ok(named) = last.parse()
            {
                (format, dtype) = (before, named);
            }
            let fill = match Format::parse(format, shape.len()).map_err(|d| SectionFailure::User(d.into()))? {
                f if f.leaf() == tamis_ir::format::Leaf::Pattern => Value::Bool(false),
                f => match f.leaf() {
                    tamis_ir::format::Leaf::Element(Some(fill)) => fill.cast(dtype),
                    _ => Value::zero(dtype),
                },
            };
            let parsed = Format::parse(format, shape.len()).map_err(|d| SectionFailure::User(d.into()))?;
            let array = ValueArray::from_values(&values, dtype);
            let tensor =
                Tensor::from_dense(&shape, array, &parsed, fill).map_err(|d| SectionFailure::User(d.into()))?;
            alternatives.push((name.trim().to_string(), tensor));
        }
        combinations = combinations
            .iter()
            .flat_map(|before| alternatives.iter().map(|input| [before.clone(), vec![input.clone()]].concat()))
            .collect();
    }
    Ok(combinations)
}

fn natural_dtype(values: &[Value]) -> DType {
    values.iter().map(|v| v.dtype()).reduce(DType::promote).unwrap_or(DType::F64)
}

/// A nested list as a shape and row-major values.
fn nested(text: &str) -> Option<(Vec<u64>, Vec<Value>)> {
    let mut values = Vec::new();
    let mut shape: Vec<u64> = Vec::new();
    let mut counts: Vec<u64> = Vec::new();
    let mut word = String::new();
    for c in text.trim().chars() {
        if matches!(c, ',' | ']') && !word.trim().is_empty() {
            values.push(number(word.trim())?);
            *counts.last_mut()? += 1;
            word.clear();
        }
        match c {
            '[' => {
                counts.push(0);
                if shape.len() < counts.len() {
                    shape.push(0);
                }
            }
            ']' => {
                let depth = counts.len();
                shape[depth - 1] = counts.pop()?;
                if let Some(outer) = counts.last_mut() {
                    *outer += 1;
                }
                word.clear();
            }
            ',' => word.clear(),
            c => word.push(c),
        }
    }
    if shape.is_empty() {
        values.push(number(text.trim())?);
    }
    (counts.is_empty() && shape.iter().product::<u64>() == values.len() as u64).then_some((shape, values))
}

fn number(word: &str) -> Option<Value> {
    match word {
        "True" => Some(Value::Bool(true)),
        "False" => Some(Value::Bool(false)),
        "inf" => Some(Value::F64(f64::INFINITY)),
        "-inf" => Some(Value::F64(f64::NEG_INFINITY)),
        "nan" => Some(Value::F64(f64::NAN)),
        _ => word.parse().map(Value::I64).ok().or_else(|| word.parse().map(Value::F64).ok()),
    }
}

fn show(name: &str, tensor: &Tensor) -> String {
    let values = match tensor.to_dense() {
        Ok(values) => values,
        Err(d) => return d.render(false),
    };
    let mut at = 0;
    let text = show_nested(tensor.shape(), &values, &mut at);
    format!("{name}: {} {} = {text}\n", tensor.format(), tensor.dtype())
}

fn show_nested(shape: &[u64], values: &ValueArray, at: &mut usize) -> String {
    match shape.split_first() {
        None => {
            *at += 1;
            values.get(*at - 1).to_string()
        }
        Some((n, inner)) => {
            let items: Vec<String> = (0..*n).map(|_| show_nested(inner, values, at)).collect();
            format!("[{}]", items.join(", "))
        }
    }
}

fn storage(inputs: &[(String, Tensor)]) -> String {
    let mut out = String::new();
    for (name, tensor) in inputs {
        let _ = writeln!(out, "{name}: {} {}", tensor.format().long_name(), tensor.dtype());
        for k in 0..tensor.levels().len() {
            for (array, numbers) in tensor.level_arrays(k).arrays {
                let numbers_shown: Vec<String> = numbers.to_vec().iter().map(u64::to_string).collect();
                let _ = writeln!(out, "  {k} {array} {}: {}", numbers.width().name(), numbers_shown.join(" "));
            }
        }
        if let Some(values) = tensor.values() {
            let shown: Vec<String> = (0..values.len()).map(|k| values.get(k).to_string()).collect();
            let _ = writeln!(out, "  values: {}", shown.join(" "));
        }
    }
    out
}
