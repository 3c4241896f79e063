//! The `tamis` command: parses the command line, calls the crates below, and shows their results.
//!
//! Exit status: 0 done, 1 the program or the data is wrong, 2 the command line is wrong. Errors are
//! [`tamis_ir::Diagnostic`]s, shown on standard error, or as JSON on standard output with `--json`.

mod advise;
mod analyze;
mod args;
mod calibrate;
mod convert;
mod execute;
mod explain;
mod grad;
mod info;
pub mod input;
mod load;
mod operands;
mod operators;
mod panic;
mod planned;
mod plot;
mod progress;
mod request;
mod results;
mod search;
mod shell;
mod source;
mod stages;
mod times;

pub use args::{AdviseArgs, Cli, CliCommand, ConvertArgs, Duplicates, ExplainArgs, GradArgs, InfoArgs, RunArgs};
pub use request::{OutputTarget, ProgramText, RunRequest};
pub use shell::{CommandError, CommandResult, Shell};

use clap::{CommandFactory, FromArgMatches};
use std::ffi::OsString;
use std::process::ExitCode;

/// Runs the command with the arguments of the process.
pub fn main() -> ExitCode {
    panic::install_hook();
    let arguments: Vec<OsString> = std::env::args_os().collect();
    // Clap needs the colour before it has read the arguments, for its own messages.
    let command = Cli::command().color(args::requested_colour(&arguments));
    let cli = match command.try_get_matches_from(&arguments).and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() && args::requests_json(&arguments) => {
            let failure = CommandError::usage(vec![shell::clap_diagnostic(&error)]);
            return Shell::new(clap::ColorChoice::Never, true).finish(Err(failure));
        }
        Err(error) => {
            // Help and version come this way, too, with status 0. A closed pipe is not an error.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    let mut shell = Shell::new(cli.color, cli.command.wants_json());
    let outcome = match (cli.threads, tamis_tensor::threads::threads_from_environment()) {
        (None, Err(d)) => Err(CommandError::usage(vec![d])),
        (threads, _) => {
            tamis_tensor::set_threads(threads.map(usize::from));
            dispatch(&cli.command, &mut shell)
        }
    };
    shell.finish(outcome)
}

fn dispatch(command: &CliCommand, shell: &mut Shell) -> CommandResult {
    match command {
        CliCommand::Run(args) => execute::run(&RunRequest::parse(args)?, shell),
        CliCommand::Explain(args) => explain::explain(args, shell),
        CliCommand::Grad(args) => grad::run(args, shell),
        CliCommand::Info(args) => info::info(args, shell),
        CliCommand::Advise(args) => advise::advise(args, shell),
        CliCommand::Search(args) => search::run(args, shell),
        CliCommand::Calibrate(args) => calibrate::run(args, shell),
        CliCommand::Convert(args) => convert::convert(args, shell),
        CliCommand::Gallery { json } => explain::gallery(*json, shell),
        CliCommand::Completions { shell: kind } => explain::completions(*kind, shell),
    }
}
