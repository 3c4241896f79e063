//! The request of `tamis run` as data: parsed and checked before anything is read or run.

use crate::args::RunArgs;
use crate::input::{self, InputSpec, Named};
use crate::shell::CommandError;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use tamis::schedule::Schedule;
use tamis_ir::FormatSpec;
use tamis_ir::diag::{Code, Diagnostic, Diagnostics, Source};
use tamis_tensor::Combine;
use tamis_tensor::io::FileKind;

/// The origin of a program's text.
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
    /// `-` is standard input; a path that exists or ends in `.py` is a file; everything else is a
    /// program.
    pub fn parse(argument: &OsStr) -> ProgramText {
        let path = Path::new(argument);
        match argument.to_str() {
            Some("-") => ProgramText::StandardInput,
            // A pipe, too, is a path that exists: shells pass the output of a command as one.
            Some(text) if text.contains('\n') || !(text.ends_with(".py") || path.exists()) => {
                ProgramText::Text(text.to_string())
            }
            _ => ProgramText::File(path.to_path_buf()),
        }
    }
}

/// The target of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutputTarget {
    /// A file, its kind known by its extension.
    File(PathBuf),
    /// Standard output.
    StandardOutput,
}

impl OutputTarget {
    /// The kind of file that is written; standard output is FROSTT.
    pub fn kind(&self) -> Option<FileKind> {
        match self {
            OutputTarget::File(path) => FileKind::of(path).ok(),
            OutputTarget::StandardOutput => Some(FileKind::Frostt),
        }
    }
}

/// A parsed command line of `tamis run`, checked as far as possible without the program.
#[derive(Clone, Debug, PartialEq)]
pub struct RunRequest {
    /// The program.
    pub program: ProgramText,
    /// Files with user-defined operators.
    pub operators: Vec<PathBuf>,
    /// The inputs of its parameters.
    pub inputs: Named<InputSpec>,
    /// Formats of inputs and results.
    pub formats: Named<FormatSpec>,
    /// Shapes of input files that do not state their own.
    pub shapes: Named<Vec<u64>>,
    /// The targets of results.
    pub outputs: Named<OutputTarget>,
    /// The reduction of duplicate coordinates of files.
    pub duplicates: Combine,
    /// Write a header with the shape to results that are `.tns`.
    pub header: bool,
    /// Show times.
    pub time: bool,
    /// Print JSON.
    pub json: bool,
    /// IEEE semantics throughout.
    pub strict: bool,
    /// Use the reference interpreter.
    pub interpret: bool,
    /// Check every access, and compare with the reference interpreter.
    pub check: bool,
    /// The maximum number of loop iterations of the interpreter.
    pub check_limit: u64,
    /// Show how long each pass of the compiler took.
    pub time_passes: bool,
    /// Scheduling commands.
    pub schedule: Schedule,
    /// The order of loops for index notation.
    pub order: Vec<String>,
    /// True if operands of index notation keep their formats.
    pub keep: bool,
}

impl RunRequest {
    /// Parses the arguments. Errors are those of the command line, all reported together.
    pub fn parse(args: &RunArgs) -> Result<RunRequest, CommandError> {
        let mut mistakes = Vec::new();
        let inputs = collect(input::inputs(&args.inputs), &mut mistakes);
        let formats = collect(input::formats(&args.formats), &mut mistakes);
        let shapes = collect(input::named(&args.shapes, "N,N,...", input::as_text(shape)), &mut mistakes);
        let outputs = collect(input::named(&args.outputs, "PATH", target), &mut mistakes);
        let mut to_standard_output = outputs.iter().filter(|(_, to)| *to == OutputTarget::StandardOutput);
        if let (Some((first, _)), Some((second, _))) = (to_standard_output.next(), to_standard_output.next()) {
            let message = format!("`{first}` and `{second}` would both be written to standard output");
            mistakes.push(
                Diagnostic::new(Code::E0905, message)
                    .help(format!("write one of them to a file: -o {second}={second}.tns")),
            );
        }
        mistakes.extend(written_twice(&outputs));
        let schedule = schedule(&args.schedule).unwrap_or_else(|errors| {
            mistakes.extend(errors.0);
            Schedule::default()
        });
        if args.header && !outputs.iter().any(|(_, to)| to.kind() == Some(FileKind::Frostt)) {
            let d = Diagnostic::new(Code::E0905, "--header is for results that are written as .tns, and there is none");
            mistakes.push(d.help("leave it out, or write a result as .tns: -o y=y.tns"));
        }
        if args.json && outputs.iter().any(|(_, to)| *to == OutputTarget::StandardOutput) {
            let d = Diagnostic::new(Code::E0905, "a tensor and JSON cannot both be written to standard output");
            mistakes.push(d.help("write the tensor to a file, or leave out --json"));
        }
        if args.program.to_str().is_some_and(|text| text.trim().is_empty()) {
            let d = Diagnostic::new(Code::E0905, "the program is empty");
            mistakes.push(d.help("give a file with a loop program, as in `tamis run spmv.py A=matrix.mtx x=rand`"));
        }
        if !mistakes.is_empty() {
            return Err(CommandError::usage(mistakes));
        }
        Ok(RunRequest {
            program: ProgramText::parse(&args.program),
            operators: args.operators.clone(),
            inputs,
            formats,
            shapes,
            outputs,
            duplicates: Combine::from(args.duplicates),
            header: args.header,
            time: args.time,
            json: args.json,
            strict: args.strict,
            interpret: args.interpret,
            check: args.check,
            check_limit: args.check_limit,
            time_passes: args.time_passes,
            schedule,
            order: args.order.clone(),
            keep: args.keep,
        })
    }
}

/// The parsed values; errors are added to `mistakes`, so that all are reported together.
fn collect<T>(read: Result<Named<T>, CommandError>, mistakes: &mut Vec<Diagnostic>) -> Named<T> {
    read.unwrap_or_else(|failure| {
        mistakes.extend_from_slice(failure.diagnostics());
        Vec::new()
    })
}

/// The schedule of one or several `--schedule` options, concatenated.
pub(crate) fn schedule(texts: &[String]) -> Result<Schedule, Diagnostics> {
    Schedule::parse_source(&Source::new("schedule", texts.join("; ")))
}

fn shape(text: &str) -> tamis_ir::diag::Result<Vec<u64>> {
    text.split(',').map(|n| n.trim().parse()).collect::<Result<_, _>>().map_err(|_| {
        Diagnostic::new(Code::E0905, format!("`{text}` is not a shape"))
            .help("write sizes, as in `--shape T=327,327,606`")
    })
}

/// Parses a target. The kind of a file is checked here, before anything is read or run.
fn target(argument: &OsStr) -> tamis_ir::diag::Result<OutputTarget> {
    match argument.to_str().map(str::trim) {
        Some("") => Err(Diagnostic::new(Code::E0905, "there is no path after the `=`")
            .help("write `-o y=y.tns`, or `-o y=-` for standard output")),
        Some("-" | "/dev/stdout") => Ok(OutputTarget::StandardOutput),
        _ => FileKind::of_output(argument).map(|_| OutputTarget::File(PathBuf::from(argument))),
    }
}

/// Errors for results with the same target.
fn written_twice(outputs: &Named<OutputTarget>) -> Vec<Diagnostic> {
    let mut seen: Vec<(&str, PathBuf)> = Vec::new();
    let mut mistakes = Vec::new();
    for (name, target) in outputs {
        let OutputTarget::File(path) = target else { continue };
        let path_key = normalised(path);
        if let Some((first, _)) = seen.iter().find(|(_, other)| *other == path_key) {
            let message = format!("`{first}` and `{name}` would both be written to `{}`", path.display());
            let help = format!("give each a file of its own, as in -o {name}={name}.tns");
            mistakes.push(Diagnostic::new(Code::E0905, message).help(help));
        }
        seen.push((name, path_key));
    }
    mistakes
}

/// The canonical form of a path: links and dots are resolved as far as they exist.
fn normalised(path: &Path) -> PathBuf {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let resolved = || Some(folder.canonicalize().ok()?.join(path.file_name()?));
    path.canonicalize().ok().or_else(resolved).unwrap_or_else(|| path.to_path_buf())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, CliCommand};
    use clap::Parser;

    fn request(line: &[&str]) -> Result<RunRequest, CommandError> {
        match Cli::try_parse_from(["tamis", "run"].iter().chain(line)).map(|cli| cli.command) {
            Ok(CliCommand::Run(args)) => RunRequest::parse(&args),
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
            "--header",
            "--time",
            "--strict",
            "--duplicates",
            "sum",
            "--interpret",
            "--time-passes",
            "-s=reorder(j,i)",
            "--ops=ours.py",
            "--ops=more.py",
        ];
        let expected = RunRequest {
            program: ProgramText::Text("y[i] = A[i,j] * x[j]".into()),
            operators: vec!["ours.py".into(), "more.py".into()],
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
            header: true,
            time: true,
            json: false,
            strict: true,
            interpret: true,
            check: false,
            check_limit: tamis::check::CHECK_LIMIT,
            time_passes: true,
            schedule: Schedule::new().reorder(["j", "i"]),
            order: Vec::new(),
            keep: false,
        };
        assert_eq!(request(&line).unwrap(), expected);
    }

    #[test]
    fn programs_and_files() {
        let parse = |text: &str| ProgramText::parse(OsStr::new(text));
        assert_eq!(parse("-"), ProgramText::StandardInput);
        assert_eq!(parse("missing.py"), ProgramText::File("missing.py".into()));
        assert_eq!(parse("Cargo.toml"), ProgramText::File("Cargo.toml".into()));
        assert_eq!(parse("."), ProgramText::File(".".into()));
        assert!(matches!(parse("def f(A):\n  pass.py"), ProgramText::Text(_)));
        assert!(matches!(parse("y[i] = x[i]"), ProgramText::Text(_)));
    }

    #[test]
    fn all_errors_are_reported_together() {
        let failure = request(&["p.py", "A", "-f", "B=cvs", "-o", "y=-", "-o", "z=-", "--json"]).unwrap_err();
        let codes: Vec<Code> = failure.diagnostics().iter().map(|d| d.code).collect();
        assert_eq!(codes, [Code::E0901, Code::E0602, Code::E0905, Code::E0905]);
        assert!(matches!(failure, CommandError::Usage(_)));
        assert!(failure.diagnostics().iter().all(|d| !d.help.is_empty()));
        for line in [["", "A=ones"], ["p.py", "A="], ["p.py", "-oy="], ["p.py", "-fA="]] {
            assert!(matches!(request(&line), Err(CommandError::Usage(_))), "{line:?}");
        }
    }

    #[test]
    fn outputs_are_checked_before_anything_is_read() {
        let codes = |line: &[&str]| -> Vec<Code> {
            request(line).map_or_else(|failure| failure.diagnostics().iter().map(|d| d.code).collect(), |_| Vec::new())
        };
        let table: &[(&[&str], &[Code])] = &[
            (&["-oD=d.tns", "-oF=f.tns"], &[]),
            (&["-oD=same.tns", "-oF=same.tns"], &[Code::E0905]),
            (&["-oD=same.tns", "-oF=./same.tns"], &[Code::E0905]),
            (&["-oD=src/same.tns", "-oF=src/../src/same.tns"], &[Code::E0905]),
            (&["-oD=none/same.tns", "-oF=none/same.tns", "-oG=none/same.tns"], &[Code::E0905, Code::E0905]),
            (&["-oy=y.xyz"], &[Code::E0802]),
            (&["-oy=y"], &[Code::E0802]),
            (&["-oy=y.smtx"], &[Code::E0813]),
            (&["-oy=/dev/stdout", "-oz=-"], &[Code::E0905]),
            (&["-oy=/dev/stdout", "--header"], &[]),
            (&["-oy=y.mtx", "--header"], &[Code::E0905]),
            (&["--header"], &[Code::E0905]),
        ];
        for (line, expected) in table {
            assert_eq!(codes(&[&["p.py"], *line].concat()), *expected, "{line:?}");
        }
    }
}
