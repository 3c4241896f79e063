//! The command line in clap's terms: names, help texts and defaults; [`crate::input`] parses the
//! values.

use clap::{Args, ColorChoice, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use tamis_tensor::Combine;

/// A compiler for sparse and structured tensors.
#[derive(Debug, Parser)]
#[command(name = "tamis", version, propagate_version = true)]
#[command(after_help = "Exit status: 0 done, 1 the program or the data is wrong, 2 the command line is wrong.")]
pub struct Cli {
    /// When to colour the output; `auto` colours terminals, and respects NO_COLOR
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub color: ColorChoice,
    /// The number of threads [default: TAMIS_NUM_THREADS, or the number of cores]
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// The command.
    #[command(subcommand)]
    pub command: CliCommand,
}

/// The command.
#[derive(Debug, Subcommand)]
pub enum CliCommand {
    /// Run a loop program or index notation on tensors
    Run(RunArgs),
    /// Explain an error code, or show the stages of compiling a program
    Explain(ExplainArgs),
    /// Print the derivative of index notation: the adjoint statements, or those of tangents
    Grad(GradArgs),
    /// Describe a tensor: shape, nnz, structure, and a spy plot
    Info(InfoArgs),
    /// Recommend storage formats for a tensor, timed on this machine
    Advise(AdviseArgs),
    /// Time every format and loop order of index notation, and rank them
    Search(SearchArgs),
    /// Fit the constants of the cost model to this machine
    Calibrate(CalibrateArgs),
    /// Convert a tensor to another file type or storage format
    Convert(ConvertArgs),
    /// List the generators of matrices and tensors
    Gallery {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

impl CliCommand {
    pub(crate) fn wants_json(&self) -> bool {
        match self {
            CliCommand::Run(args) => args.json,
            CliCommand::Explain(args) => args.json,
            CliCommand::Grad(args) => args.json,
            CliCommand::Info(args) => args.json,
            CliCommand::Advise(args) => args.json,
            CliCommand::Search(args) => args.json,
            CliCommand::Calibrate(args) => args.json,
            CliCommand::Convert(args) => args.json,
            CliCommand::Gallery { json } => *json,
            CliCommand::Completions { .. } => false,
        }
    }
}

/// Inputs, as `run`, `explain` and `search` take them.
macro_rules! inputs {
    () => {
        "Inputs, one for each parameter of the program; quote those with parentheses:
  A=matrix.mtx.gz              a file (.mtx .tns .npz .npy .smtx .pbm .pgm .idx .txt, each also .gz)
  x=rand  x=ones               random, or ones, of the inferred shape
  \"A=rand(100,200; 0.1; 42)\"   random, of a shape; density; seed
  \"A=laplacian(1000)\"          a generator; `tamis gallery` lists them
  s=2.5                        a number
"
    };
}

const RUN_HELP: &str = concat!(
    inputs!(),
    "
Examples:
  tamis run \"y[i] = A[i,j] * x[j]\" A=bcsstk16.mtx.gz x=rand --time
  tamis run \"ij,jk->ik\" \"A=laplacian(100)\" \"B=laplacian(100)\"
  tamis run spmv.py A=bcsstk16.mtx.gz x=rand -f A=csr -o y=y.tns --time
  tamis run bfs.py G=graph.mtx source=0

A loop program, as in spmv.py:
  def spmv(A, x):
      y = tensor(\"dense\")
      for i, j in _:
          y[i] += A[i,j] * x[j]
      return y"
);

const EXPLAIN_HELP: &str = concat!(
    inputs!(),
    "
Examples:
  tamis explain E0402
  tamis explain \"C[i,k] = A[i,j] * B[j,k]\" -f A=csr -f B=csr
  tamis explain spmv.py -f A=csr --emit kernel,asm
  tamis explain \"y[i] = A[i,j] * x[j]\" A=bcsstk16.mtx.gz x=rand --analyze"
);

const SEARCH_HELP: &str = concat!(
    inputs!(),
    "
Examples:
  tamis search \"y[i] = A[i,j] * x[j]\" A=bcsstk16.mtx.gz x=rand
  tamis search \"C[i,k] = A[i,j] * B[j,k]\" \"A=laplacian(30)\" \"B=laplacian(30)\" --time-limit 5"
);

/// `tamis run`
#[derive(Args, Clone, Debug)]
#[command(after_help = RUN_HELP)]
pub struct RunArgs {
    /// Index notation such as `y[i] = A[i,j] * x[j]`, a file with a loop program, `-` for standard
    /// input, or the text of a loop program
    #[arg(value_name = "PROGRAM")]
    pub program: OsString,
    /// The inputs; see below
    #[arg(value_name = "NAME=INPUT")]
    pub inputs: Vec<OsString>,
    /// A file of user-defined operators, each a function with `@op(laws)` above it; may be repeated
    #[arg(long = "ops", value_name = "FILE")]
    pub operators: Vec<PathBuf>,
    /// The storage format of an input or result, such as A=csr; may be repeated
    #[arg(short, long = "format", value_name = "NAME=FORMAT")]
    pub formats: Vec<String>,
    /// The shape of an input that has none of its own (.tns, rand, ones), such as T=327,327,606
    #[arg(long = "shape", value_name = "NAME=N,N,...")]
    pub shapes: Vec<String>,
    /// Write a result to a file, or to standard output (`-`)
    #[arg(short, long = "output", value_name = "NAME=PATH")]
    pub outputs: Vec<OsString>,
    /// Begin .tns files with a header that has the shape
    #[arg(long)]
    pub header: bool,
    /// Print the time of each phase: reading, compiling, running, writing
    #[arg(long)]
    pub time: bool,
    /// Print the time of each compiler pass, and whether machine code was cached
    #[arg(long)]
    pub time_passes: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// IEEE arithmetic: a fill does not annihilate NaN, and reductions are not reassociated
    #[arg(long)]
    pub strict: bool,
    /// How to combine elements of a file with equal coordinates
    #[arg(long, value_name = "HOW", default_value = "error")]
    pub duplicates: Duplicates,
    /// Run the reference interpreter instead of compiled code; it visits every point of every loop
    #[arg(long)]
    pub interpret: bool,
    /// Scheduling commands to apply first, such as "reorder(i,k,j); split(k,k0,k1,32)"
    #[arg(short, long, value_name = "COMMANDS", allow_hyphen_values = true)]
    pub schedule: Vec<String>,
    /// The loop order of index notation, outermost first, such as i,k,j
    #[arg(long, value_name = "INDICES", value_delimiter = ',')]
    pub order: Vec<String>,
    /// Convert no operand of index notation: keep the formats as they are
    #[arg(long)]
    pub keep: bool,
    /// Check every array access, and compare the results with the reference interpreter's
    #[arg(long, conflicts_with = "interpret")]
    pub check: bool,
    /// The most loop points that the interpreter may visit for --check, or `none`; it visits about
    /// three million per second
    #[arg(long, value_name = "POINTS", requires = "check", default_value = "200000000", value_parser = check_limit)]
    pub check_limit: u64,
}

/// Parses a number of points; `none` is the largest.
fn check_limit(text: &str) -> Result<u64, String> {
    match text {
        "none" => Ok(u64::MAX),
        _ => text.parse().map_err(|_| "expected a whole number, or `none`".to_string()),
    }
}

/// `tamis calibrate`
#[derive(Args, Clone, Debug)]
pub struct CalibrateArgs {
    /// Save the constants, so that later schedules use them; to the file that TAMIS_COSTS names, if
    /// set
    #[arg(long)]
    pub save: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `tamis explain`
#[derive(Args, Clone, Debug)]
#[command(after_help = EXPLAIN_HELP)]
pub struct ExplainArgs {
    /// An error code such as E0402, a loop program, or index notation [default: list all codes]
    #[arg(value_name = "CODE|PROGRAM")]
    pub subject: Option<OsString>,
    /// Inputs, as for `tamis run`; without them, sizes and densities are assumed
    #[arg(value_name = "NAME=INPUT")]
    pub inputs: Vec<OsString>,
    /// The loop order of index notation, outermost first, such as i,k,j
    #[arg(long, value_name = "INDICES", value_delimiter = ',')]
    pub order: Vec<String>,
    /// Convert no operand of index notation: keep the formats as they are
    #[arg(long)]
    pub keep: bool,
    /// A file of user-defined operators, each a function with `@op(laws)` above it; may be repeated
    #[arg(long = "ops", value_name = "FILE")]
    pub operators: Vec<PathBuf>,
    /// The storage format of a tensor of the program, such as A=csr; may be repeated
    #[arg(short, long = "format", value_name = "NAME=FORMAT")]
    pub formats: Vec<String>,
    /// The value type of a tensor of the program, such as A=f32 [default: f64]
    #[arg(long = "dtype", value_name = "NAME=TYPE")]
    pub dtypes: Vec<String>,
    /// The stages to show, comma-separated [default: program, or schedule for index notation]
    #[arg(long, value_name = "STAGE", value_delimiter = ',')]
    pub emit: Vec<Stage>,
    /// Scheduling commands to apply first, such as "reorder(i,k,j); split(k,k0,k1,32)"
    #[arg(short, long, value_name = "COMMANDS", allow_hyphen_values = true)]
    pub schedule: Vec<String>,
    /// Show the kernel after each run of a pass, such as cse, or lower for the kernel before all
    /// passes; may be repeated
    #[arg(long, value_name = "PASS", conflicts_with = "analyze")]
    pub print_after: Vec<String>,
    /// Leave out the passes after the first run of this one
    #[arg(long, value_name = "PASS", conflicts_with = "analyze")]
    pub stop_after: Option<String>,
    /// Show the code with checks of every array access
    #[arg(long, conflicts_with = "analyze")]
    pub check: bool,
    /// Run on the inputs, and show the iterations of each loop beside predictions, bytes by array,
    /// and time
    #[arg(long, conflicts_with = "dtypes")]
    pub analyze: bool,
    /// With --analyze, also list the kernel loops that each program loop was lowered to
    #[arg(long, requires = "analyze")]
    pub parts: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// A stage of compilation that `explain` can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Stage {
    /// The decisions of the scheduler, and the program with its workspaces
    Schedule,
    /// The loop program
    Program,
    /// The structure of each access along each loop
    Looplets,
    /// The kernel after optimisation: typed scalars, buffers and loops
    Kernel,
    /// The kernel as C, which compiles on its own
    C,
    /// LLVM IR after all passes
    Llvm,
    /// Assembly for this machine
    Asm,
}

const GRAD_HELP: &str = "The statements are index notation: they can be run, explained, and differentiated again.
They read the cotangent of each result (`gy` for `y`); `A_pattern` is true where `A` stores an element.

Examples:
  tamis grad \"y[i] = A[i,j] * x[j]\" --wrt A,x -f A=csr
  tamis grad \"d[i] = min[j](A[i,j] + x[j])\" --wrt x --forward";

/// `tamis grad`
#[derive(Args, Clone, Debug)]
#[command(after_help = GRAD_HELP)]
pub struct GradArgs {
    /// Index notation such as `y[i] = A[i,j] * x[j]`, a file with it, or `-` for standard input
    #[arg(value_name = "NOTATION")]
    pub notation: OsString,
    /// The operands to differentiate with respect to [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub wrt: Vec<String>,
    /// The results to differentiate [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub of: Vec<String>,
    /// Forward mode: the tangents of the results, from those of the operands
    #[arg(long)]
    pub forward: bool,
    /// Let the forward pass save values that cost more to recompute than to store
    #[arg(long, conflicts_with = "forward")]
    pub save: bool,
    /// The storage format of an operand, such as A=csr; may be repeated
    #[arg(short, long = "format", value_name = "NAME=FORMAT")]
    pub formats: Vec<String>,
    /// The value type of an operand, such as A=c128 [default: f64]
    #[arg(long = "dtype", value_name = "NAME=TYPE")]
    pub dtypes: Vec<String>,
    /// A file of user-defined operators, each a function with `@op(laws)` above it; may be repeated
    #[arg(long = "ops", value_name = "FILE")]
    pub operators: Vec<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `tamis info`
#[derive(Args, Clone, Debug)]
pub struct InfoArgs {
    /// A file, or a generator such as "laplacian(1000)"
    #[arg(value_name = "FILE|GENERATOR")]
    pub input: OsString,
    /// Convert to this storage format first
    #[arg(short, long)]
    pub format: Option<String>,
    /// The shape of a file that has none of its own (.tns), such as 327,327,606
    #[arg(long, value_name = "N,N,...", value_delimiter = ',')]
    pub shape: Option<Vec<u64>>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Write the spy plot as an image
    #[arg(long, value_name = "OUT.png")]
    pub png: Option<PathBuf>,
    /// Omit the spy plot
    #[arg(long)]
    pub no_plot: bool,
    /// How to combine elements of the file with equal coordinates
    #[arg(long, value_name = "HOW", default_value = "error")]
    pub duplicates: Duplicates,
}

/// `tamis advise`
#[derive(Args, Clone, Debug)]
pub struct AdviseArgs {
    /// A file, or a generator such as "laplacian(1000)"
    #[arg(value_name = "FILE|GENERATOR")]
    pub input: OsString,
    /// The shape of a file that has none of its own (.tns), such as 327,327,606
    #[arg(long, value_name = "N,N,...", value_delimiter = ',')]
    pub shape: Option<Vec<u64>>,
    /// Propose formats with their sizes, without timing them
    #[arg(long)]
    pub no_measure: bool,
    /// The time limit for measurements
    #[arg(long, value_name = "SECONDS", default_value = "10", conflicts_with = "no_measure", value_parser = seconds)]
    pub time_limit: Duration,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// How to combine elements of the file with equal coordinates
    #[arg(long, value_name = "HOW", default_value = "error")]
    pub duplicates: Duplicates,
}

/// `tamis search`
#[derive(Args, Clone, Debug)]
#[command(after_help = SEARCH_HELP)]
pub struct SearchArgs {
    /// Index notation, one statement such as `C[i,k] = A[i,j] * B[j,k]`
    #[arg(value_name = "NOTATION")]
    pub notation: OsString,
    /// The inputs; see below
    #[arg(value_name = "NAME=INPUT")]
    pub inputs: Vec<OsString>,
    /// A file of user-defined operators, each a function with `@op(laws)` above it; may be repeated
    #[arg(long = "ops", value_name = "FILE")]
    pub operators: Vec<PathBuf>,
    /// The initial storage format of an input, such as A=csr; may be repeated
    #[arg(short, long = "format", value_name = "NAME=FORMAT")]
    pub formats: Vec<String>,
    /// The shape of an input that has none of its own (.tns, rand, ones), such as T=327,327,606
    #[arg(long = "shape", value_name = "NAME=N,N,...")]
    pub shapes: Vec<String>,
    /// The time limit of the search
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = seconds)]
    pub time_limit: Duration,
    /// The number of states to list, fastest first
    #[arg(long, value_name = "N", default_value = "12")]
    pub top: usize,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// How to combine elements of a file with equal coordinates
    #[arg(long, value_name = "HOW", default_value = "error")]
    pub duplicates: Duplicates,
}

/// Parses a duration in seconds, of up to a month.
fn seconds(text: &str) -> Result<Duration, String> {
    const MONTH: f64 = 31.0 * 86_400.0;
    let wrong = || format!("expected a number of seconds, above 0 and at most {MONTH}");
    let seconds: f64 = text.parse().map_err(|_| wrong())?;
    if seconds > 0.0 && seconds <= MONTH { Ok(Duration::from_secs_f64(seconds)) } else { Err(wrong()) }
}

/// `tamis convert`
#[derive(Args, Clone, Debug)]
pub struct ConvertArgs {
    /// A file, or a generator such as "laplacian(1000)"
    #[arg(value_name = "IN|GENERATOR")]
    pub input: OsString,
    /// The file to write, its type given by its extension; `-` is standard output
    #[arg(value_name = "OUT")]
    pub output: PathBuf,
    /// The type of file to write, by its extension; required with `-`
    #[arg(long, value_name = "KIND")]
    pub to: Option<String>,
    /// Convert to this storage format before writing
    #[arg(short, long)]
    pub format: Option<String>,
    /// How to combine elements of the file with equal coordinates
    #[arg(long, value_name = "HOW", default_value = "error")]
    pub duplicates: Duplicates,
    /// The shape of a file that has none of its own (.tns), such as 327,327,606
    #[arg(long, value_name = "N,N,...", value_delimiter = ',')]
    pub shape: Option<Vec<u64>>,
    /// Store one triangle of a symmetric matrix (.mtx)
    #[arg(long)]
    pub symmetric: bool,
    /// Begin the file with a header that has the shape (.tns)
    #[arg(long)]
    pub header: bool,
    /// Print a JSON summary of the written file
    #[arg(long)]
    pub json: bool,
}

/// How to combine elements with equal coordinates. The words need no help of their own, which would
/// make that of every command twice as long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs)]
pub enum Duplicates {
    Error,
    Sum,
    #[value(alias = "product")]
    Prod,
    Min,
    Max,
    Any,
    All,
    First,
    Last,
}

impl From<Duplicates> for Combine {
    fn from(duplicates: Duplicates) -> Combine {
        match duplicates {
            Duplicates::Error => Combine::Error,
            Duplicates::Sum => Combine::Sum,
            Duplicates::Prod => Combine::Product,
            Duplicates::Min => Combine::Min,
            Duplicates::Max => Combine::Max,
            Duplicates::Any => Combine::Any,
            Duplicates::All => Combine::All,
            Duplicates::First => Combine::First,
            Duplicates::Last => Combine::Last,
        }
    }
}

/// True if `--json` is among arguments that could not be parsed.
pub(crate) fn requests_json(arguments: &[OsString]) -> bool {
    arguments.iter().skip(1).take_while(|argument| *argument != "--").any(|argument| argument == "--json")
}

/// The choice of `--color`, before the arguments are parsed.
pub(crate) fn requested_colour(arguments: &[OsString]) -> ColorChoice {
    let texts: Vec<&str> = arguments.iter().filter_map(|a| a.to_str()).take_while(|a| *a != "--").collect();
    let joined = texts.iter().find_map(|text| text.strip_prefix("--color="));
    let split = || texts.windows(2).find(|pair| pair[0] == "--color").map(|pair| pair[1]);
    joined.or_else(split).and_then(|text| ColorChoice::from_str(text, false).ok()).unwrap_or(ColorChoice::Auto)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn clap_accepts_the_definition() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_limit_of_checks() {
        assert_eq!(check_limit("none"), Ok(u64::MAX));
        assert_eq!(check_limit("500"), Ok(500));
        assert!(check_limit("-1").is_err() && check_limit("1e9").is_err() && check_limit("").is_err());
        let cli = Cli::try_parse_from(["tamis", "run", "p.py", "--check"]).unwrap();
        let CliCommand::Run(args) = cli.command else { panic!("not a run") };
        assert_eq!(args.check_limit, tamis::check::CHECK_LIMIT, "the default is the library's");
    }

    #[test]
    fn time_limits() {
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        for wrong in ["0", "-1", "nan", "inf", "1e9", "", "ten"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn colour_is_found_before_parsing() {
        let requested = |line: &str| requested_colour(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        assert_eq!(requested("tamis --color never info x"), ColorChoice::Never);
        assert_eq!(requested("tamis info x --color=always"), ColorChoice::Always);
        assert_eq!(requested("tamis info x --color=pink"), ColorChoice::Auto);
        assert_eq!(requested("tamis info -- --color=always"), ColorChoice::Auto);
        assert_eq!(requested("tamis --color"), ColorChoice::Auto);
        let json = |line: &str| requests_json(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        assert!(json("tamis info --json") && json("tamis --json run"));
        assert!(!json("tamis info") && !json("tamis info -- --json") && !json("--json info"));
    }
}
