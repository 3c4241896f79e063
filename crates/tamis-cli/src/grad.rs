//! `tamis grad`: prints the adjoint statements of index notation, or those of its tangents.

use crate::args::GradArgs;
use crate::input::{self, Named};
use crate::operators;
use crate::request::ProgramText;
use crate::shell::{CommandError, CommandResult, Shell};
use crate::source::source;
use serde_json::{Value as Json, json};
use std::io::Write;
use tamis::algebra::Kind;
use tamis::format::FormatSpec;
use tamis::grad::Differentiate;
use tamis::{DType, Notation};
use tamis_ir::diag::{Code, Diagnostic};

/// Prints derivatives.
pub(crate) fn run(args: &GradArgs, shell: &mut Shell) -> CommandResult {
    let (formats, dtypes) = (input::formats(&args.formats)?, input::dtypes(&args.dtypes)?);
    let operators = operators::read(&args.operators)?;
    let source = source(&ProgramText::parse(&args.notation))?;
    let notation = match Notation::is_einsum(&source.text) {
        true => {
            let operands = source.text.split("->").next().unwrap_or_default().split(',').count();
            let names: Vec<String> = ('A'..='Z').take(operands).map(String::from).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            Notation::einsum(source.text.trim_end(), &names, "out")?
        }
        false => Notation::parse_source(&source, &operators)?,
    };
    let request = request(args, &notation, &formats, &dtypes)?;
    if args.forward {
        let made = request.tangents(&notation)?;
        if args.json {
            return shell.print_json(&json!({
                "text": made.text, "operands": pairs(&made.operands), "results": pairs(&made.results),
                "zeros": made.zeros,
            }));
        }
        return Ok(writeln!(shell.out, "{}", made.text)?);
    }
    let made = request.adjoint(&notation)?;
    if args.json {
        return shell.print_json(&json!({
            "text": made.text, "cotangents": pairs(&made.cotangents), "gradients": pairs(&made.gradients),
            "patterns": pairs(&made.patterns), "forward": made.forward, "saved": pairs(&made.saved),
            "recomputed": made.recomputed,
        }));
    }
    if !made.saved.is_empty() {
        writeln!(shell.out, "# forward\n{}\n\n# adjoint", made.forward)?;
    }
    Ok(writeln!(shell.out, "{}", made.text)?)
}

fn pairs(list: &[(String, String)]) -> Json {
    list.iter().map(|(of, name)| (of.clone(), json!(name))).collect::<serde_json::Map<_, _>>().into()
}

/// What is differentiated, with what the options tell of the operands.
fn request(
    args: &GradArgs,
    notation: &Notation,
    formats: &Named<FormatSpec>,
    dtypes: &Named<DType>,
) -> Result<Differentiate, CommandError> {
    let params = notation.params();
    let named = formats.iter().map(|(name, _)| name).chain(dtypes.iter().map(|(name, _)| name));
    if let Some(unknown) = named.into_iter().find(|name| !params.contains(&name.as_str())) {
        let d = Diagnostic::new(Code::E0903, format!("the notation does not read `{unknown}`"));
        return Err(CommandError::usage(vec![d.help(format!("it reads {}", params.join(", ")))]));
    }
    let mut patterns = Vec::new();
    for (name, spec) in formats {
        let rank = notation.assignments.iter().flat_map(|a| a.accesses()).find(|(read, _)| read == name);
        let format = spec.with_rank(rank.map_or(0, |(_, subscripts)| subscripts.len()))?;
        if !format.is_all_dense() {
            patterns.push(name.clone());
        }
    }
    let complex = dtypes.iter().filter(|(_, dtype)| dtype.kind() == Kind::Complex).map(|(name, _)| name.clone());
    let wrt: Vec<String> = match args.wrt.is_empty() {
        true => params.iter().map(|name| name.to_string()).collect(),
        false => args.wrt.iter().map(|name| name.trim().to_string()).collect(),
    };
    Ok(Differentiate::new(wrt)
        .allow_zero(args.wrt.is_empty())
        .results(args.of.iter().map(|name| name.trim()))
        .zero_fills(patterns.clone())
        .patterns(patterns)
        .complex(complex)
        .save(args.save))
}
