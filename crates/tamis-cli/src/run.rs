//! `tamis run`: the request as data, read and checked before anything is done.

use crate::args::RunArgs;
use crate::input::{self, InputSpec, Named};
use crate::shell::Failure;
use std::path::{Path, PathBuf};
use tamis_ir::FormatSpec;
use tamis_ir::diag::{Code, Diagnostic};
use tamis_tensor::Combine;

/// Where the text of a program comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProgramText {
    /// A file.
    File(PathBuf),
    /// Standard input.
    StandardInput,
    /// The argument itself.
    Text(String),
}

impl ProgramText {
    /// `-` is standard input; what is a file, or is named like a Python file, is a file; everything else is a program.
    pub fn parse(text: &str) -> ProgramText {
        let one_line = !text.contains('\n');
        if text == "-" {
            ProgramText::StandardInput
        } else if one_line && (text.ends_with(".py") || Path::new(text).is_file()) {
            ProgramText::File(PathBuf::from(text))
        } else {
            ProgramText::Text(text.to_string())
        }
    }
}

/// Where a result goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutputTarget {
    /// A file, its kind known by its extension.
    File(PathBuf),
    /// Standard output.
    StandardOutput,
}

/// Everything that `tamis run` was asked to do, read and checked as far as that is possible without the program.
#[derive(Clone, Debug, PartialEq)]
pub struct RunRequest {
    /// The program.
    pub program: ProgramText,
    /// What its parameters are.
    pub inputs: Named<InputSpec>,
    /// Formats of inputs and results.
    pub formats: Named<FormatSpec>,
    /// Shapes of input files that do not state their own.
    pub shapes: Named<Vec<u64>>,
    /// Where results go.
    pub outputs: Named<OutputTarget>,
    /// How repeated entries of files are combined.
    pub duplicates: Combine,
    /// Show times.
    pub time: bool,
    /// Print JSON.
    pub json: bool,
    /// IEEE semantics throughout.
    pub strict: bool,
    /// Use the reference interpreter.
    pub interpret: bool,
}

impl RunRequest {
    /// Reads the arguments; mistakes are mistakes of the command line.
    pub fn parse(args: &RunArgs) -> Result<RunRequest, Failure> {
        let mut mistakes = Vec::new();
        let inputs = collect(input::inputs(&args.inputs), &mut mistakes);
        let formats = collect(input::formats(&args.formats), &mut mistakes);
        let shapes = collect(input::named(&args.shapes, "N,N,...", shape), &mut mistakes);
        let outputs = collect(input::named(&args.outputs, "PATH", target), &mut mistakes);
        let mut to_standard_output = outputs.iter().filter(|(_, to)| *to == OutputTarget::StandardOutput);
        if let (Some((first, _)), Some((second, _))) = (to_standard_output.next(), to_standard_output.next()) {
            let message = format!("`{first}` and `{second}` would both go to standard output");
            mistakes.push(
                Diagnostic::new(Code::E0901, message)
                    .help(format!("write one of them to a file: -o {second}={second}.tns")),
            );
        }
        if args.json && outputs.iter().any(|(_, to)| *to == OutputTarget::StandardOutput) {
            let d = Diagnostic::new(Code::E0901, "a tensor and JSON cannot both go to standard output");
            mistakes.push(d.help("write the tensor to a file, or leave out --json"));
        }
        if args.program.trim().is_empty() {
            let d = Diagnostic::new(Code::E0901, "the program is empty");
            mistakes.push(d.help("give a file, or a program such as \"y[i] = A[i,j] * x[j]\""));
        }
        if !mistakes.is_empty() {
            return Err(Failure::usage(mistakes));
        }
        Ok(RunRequest {
            program: ProgramText::parse(&args.program),
            inputs,
            formats,
            shapes,
            outputs,
            duplicates: Combine::from(args.duplicates),
            time: args.time,
            json: args.json,
            strict: args.strict,
            interpret: args.interpret,
        })
    }
}

/// What was read, or nothing, with its mistakes added to the others so that all are told at once.
fn collect<T>(read: Result<Named<T>, Failure>, mistakes: &mut Vec<Diagnostic>) -> Named<T> {
    read.unwrap_or_else(|failure| {
        mistakes.extend_from_slice(failure.diagnostics());
        Vec::new()
    })
}

fn shape(text: &str) -> tamis_ir::diag::Result<Vec<u64>> {
    text.split(',').map(|n| n.trim().parse()).collect::<Result<_, _>>().map_err(|_| {
        Diagnostic::new(Code::E0901, format!("`{text}` is not a shape"))
            .help("write sizes, as in `--shape T=327,327,606`")
    })
}

fn target(text: &str) -> tamis_ir::diag::Result<OutputTarget> {
    match text.trim() {
        "" => Err(Diagnostic::new(Code::E0901, "there is no path after the `=`")
            .help("write `-o y=y.tns`, or `-o y=-` for standard output")),
        "-" => Ok(OutputTarget::StandardOutput),
        _ => Ok(OutputTarget::File(PathBuf::from(text))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command};
    use clap::Parser;

    fn request(line: &[&str]) -> Result<RunRequest, Failure> {
        match Cli::try_parse_from(["tamis", "run"].iter().chain(line)).map(|cli| cli.command) {
            Ok(Command::Run(args)) => RunRequest::parse(&args),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn everything_is_read() {
        let line = [
            "y[i] = A[i,j] * x[j]",
            "A=a.mtx",
            "x=rand",
            "s=2",
            "-f",
            "A=csr",
            "-f",
            "y=dense",
            "-o",
            "y=-",
            "--shape",
            "A=2,3",
            "--time",
            "--strict",
            "--duplicates",
            "sum",
            "--interpret",
        ];
        let expected = RunRequest {
            program: ProgramText::Text("y[i] = A[i,j] * x[j]".into()),
            inputs: vec![
                ("A".into(), InputSpec::Path("a.mtx".into())),
                ("x".into(), InputSpec::Rand { shape: None, density: None, seed: None }),
                ("s".into(), InputSpec::Number(tamis_ir::Value::I64(2))),
            ],
            formats: vec![
                ("A".into(), FormatSpec::parse("csr").unwrap()),
                ("y".into(), FormatSpec::parse("dense").unwrap()),
            ],
            shapes: vec![("A".into(), vec![2, 3])],
            outputs: vec![("y".into(), OutputTarget::StandardOutput)],
            duplicates: Combine::Sum,
            time: true,
            json: false,
            strict: true,
            interpret: true,
        };
        assert_eq!(request(&line).unwrap(), expected);
    }

    #[test]
    fn programs_and_files() {
        assert_eq!(ProgramText::parse("-"), ProgramText::StandardInput);
        assert_eq!(ProgramText::parse("missing.py"), ProgramText::File("missing.py".into()));
        assert_eq!(ProgramText::parse("Cargo.toml"), ProgramText::File("Cargo.toml".into()));
        assert!(matches!(ProgramText::parse("def f(A):\n  pass.py"), ProgramText::Text(_)));
    }

    #[test]
    fn all_mistakes_are_told_at_once() {
        let failure = request(&["p.py", "A", "-f", "B=cvs", "-o", "y=-", "-o", "z=-", "--json"]).unwrap_err();
        let codes: Vec<Code> = failure.diagnostics().iter().map(|d| d.code).collect();
        assert_eq!(codes, [Code::E0901, Code::E0602, Code::E0901, Code::E0901]);
        assert!(matches!(failure, Failure::Usage(_)));
        assert!(failure.diagnostics().iter().all(|d| !d.help.is_empty()));
        for line in [["", "A=ones"], ["p.py", "A="], ["p.py", "-oy="], ["p.py", "-fA="]] {
            assert!(matches!(request(&line), Err(Failure::Usage(_))), "{line:?}");
        }
    }
}
