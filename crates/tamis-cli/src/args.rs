//! The command line as clap reads it: names, help and defaults. What the texts mean is read in [`crate::input`].

use clap::{Args, ColorChoice, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use tamis_tensor::Combine;

/// Sparse and structured tensors, compiled.
#[derive(Debug, Parser)]
#[command(name = "tamis", version, propagate_version = true)]
#[command(after_help = "Exit status: 0 done, 1 the program or the data is wrong, 2 the command line is wrong.")]
pub struct Cli {
    /// When to colour the output; `auto` looks for a terminal, and respects NO_COLOR
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub color: ColorChoice,
    /// How many threads share the work; as many as TAMIS_NUM_THREADS says, or as there are cores
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a program on tensors
    Run(RunArgs),
    /// Explain a diagnostic's code, or how a program is compiled
    Explain(ExplainArgs),
    /// Describe a tensor in a file, or a generated one
    Info(InfoArgs),
    /// Propose formats for a tensor, and measure them on it
    Advise(AdviseArgs),
    /// Try formats and orders of loops for index notation, and rank them by time
    Search(SearchArgs),
    /// Fit the constants of the cost model to this machine, and say what changed
    Calibrate(CalibrateArgs),
    /// Convert a file to another kind or format
    Convert(ConvertArgs),
    /// List the generators of matrices and tensors
    Gallery {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print a script that completes this command in a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

impl Command {
    pub(crate) fn wants_json(&self) -> bool {
        match self {
            Command::Run(args) => args.json,
            Command::Explain(args) => args.json,
            Command::Info(args) => args.json,
            Command::Advise(args) => args.json,
            Command::Search(args) => args.json,
            Command::Calibrate(args) => args.json,
            Command::Convert(args) => args.json,
            Command::Gallery { json } => *json,
            Command::Completions { .. } => false,
        }
    }
}

const INPUT_HELP: &str = "Inputs, one for each parameter of the program:
  A=matrix.mtx.gz            a file (.mtx .tns .npz .npy .smtx .pbm .pgm .idx .txt, each also .gz)
  x=rand  x=ones             of the shape that the program needs
  A=rand(100,200; 0.1; 42)   shape; density; seed
  A=laplacian(1000)          a generator: see `tamis gallery`
  s=2.5                      a number

Examples:
  tamis run \"y[i] = A[i,j] * x[j]\" A=bcsstk16.mtx.gz x=rand --time
  tamis run ij,jk->ik A=laplacian(100) B=laplacian(100)
  tamis run spmv.py A=bcsstk16.mtx.gz x=rand -f A=csr -o y=y.tns --time
  tamis run bfs.py G=graph.mtx

A loop program, as in spmv.py:
  def spmv(A, x):
      y = tensor(\"dense\")
      for i, j in _:
          y[i] += A[i,j] * x[j]
      return y";

/// `tamis run`
#[derive(Args, Clone, Debug)]
#[command(after_help = INPUT_HELP)]
pub struct RunArgs {
    /// Index notation such as `y[i] = A[i,j] * x[j]`, a file with a loop program, `-` for standard input, or the program itself
    #[arg(value_name = "PROGRAM")]
    pub program: OsString,
    /// Inputs, as described below
    #[arg(value_name = "NAME=INPUT")]
    pub inputs: Vec<OsString>,
    /// A file with operators to use by name, each a function with `@op(laws)` above it; may be given several times
    #[arg(long = "ops", value_name = "FILE")]
    pub operators: Vec<PathBuf>,
    /// Store an input or result in this format, such as A=csr
    #[arg(short, long = "format", value_name = "NAME=FORMAT")]
    pub formats: Vec<String>,
    /// The shape of an input that does not state its own (.tns, rand, ones), such as T=327,327,606
    #[arg(long = "shape", value_name = "NAME=N,N,...")]
    pub shapes: Vec<String>,
    /// Write a result to a file; `-` is standard output
    #[arg(short, long = "output", value_name = "NAME=PATH")]
    pub outputs: Vec<OsString>,
    /// Write a header with the shape to results that are .tns
    #[arg(long)]
    pub header: bool,
    /// Show how long reading, compiling and running took
    #[arg(long)]
    pub time: bool,
    /// Show how long each pass of the compiler took, and whether machine code was in the cache
    #[arg(long)]
    pub time_passes: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Do not let a fill annihilate NaN, and do not reassociate reductions
    #[arg(long)]
    pub strict: bool,
    /// What becomes of entries that a file holds twice
    #[arg(long, value_name = "HOW", default_value = "error")]
    pub duplicates: Duplicates,
    /// Run the reference interpreter instead of compiled code; it visits every point of every loop
    #[arg(long)]
    pub interpret: bool,
    /// Change the program's loops first, as in "reorder(i,k,j); split(k,k0,k1,32)"
    #[arg(short, long, value_name = "COMMANDS", allow_hyphen_values = true)]
    pub schedule: Vec<String>,
    /// The loops of index notation in this order, as in i,k,j
    #[arg(long, value_name = "INDICES", value_delimiter = ',')]
    pub order: Vec<String>,
    /// Read tensors of index notation as they are stored: convert none
    #[arg(long)]
    pub keep: bool,
    /// Check every access of compiled code, and compare its results with the reference interpreter's
    #[arg(long, conflicts_with = "interpret")]
    pub check: bool,
    /// How many points of loops the interpreter may visit for --check, or `none` for no limit; it visits about three million
    /// in a second
    #[arg(long, value_name = "POINTS", requires = "check", default_value = "200000000", value_parser = check_limit)]
    pub check_limit: u64,
}

/// A number of points; what has no limit has the largest.
fn check_limit(text: &str) -> Result<u64, String> {
    match text {
        "none" => Ok(u64::MAX),
        _ => text.parse().map_err(|_| "expected a whole number, or `none`".to_string()),
    }
}

/// `tamis calibrate`
#[derive(Args, Clone, Debug)]
pub struct CalibrateArgs {
    /// Use the constants from now on: write them where schedules look for them, or where TAMIS_COSTS says
    #[arg(long)]
    pub save: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `tamis explain`
#[derive(Args, Clone, Debug)]
pub struct ExplainArgs {
    /// A code such as E0402, a program, or index notation; without it, all codes are listed
    #[arg(value_name = "CODE|PROGRAM")]
    pub subject: Option<OsString>,
    /// Tensors to schedule index notation for, as for `tamis run`; sizes and densities are assumed where there are none
    #[arg(value_name = "NAME=INPUT")]
    pub inputs: Vec<OsString>,
    /// The loops of index notation in this order, as in i,k,j
    #[arg(long, value_name = "INDICES", value_delimiter = ',')]
    pub order: Vec<String>,
    /// Read tensors of index notation as they are stored: convert none
    #[arg(long)]
    pub keep: bool,
    /// A file with operators to use by name, each a function with `@op(laws)` above it; may be given several times
    #[arg(long = "ops", value_name = "FILE")]
    pub operators: Vec<PathBuf>,
    /// Assume this format for a tensor of the program
    #[arg(short, long = "format", value_name = "NAME=FORMAT")]
    pub formats: Vec<String>,
    /// Assume this value type for a tensor of the program, such as A=f32; f64 if nothing is said
    #[arg(long = "dtype", value_name = "NAME=TYPE")]
    pub dtypes: Vec<String>,
    /// The stages of a program to show, with commas between them; if nothing is said the program, or the schedule of index notation
    #[arg(long, value_name = "STAGE", value_delimiter = ',')]
    pub emit: Vec<Stage>,
    /// Change the program's loops first, as in "reorder(i,k,j); split(k,k0,k1,32)"
    #[arg(short, long, value_name = "COMMANDS", allow_hyphen_values = true)]
    pub schedule: Vec<String>,
    /// Show code that checks every access
    #[arg(long, conflicts_with = "analyze")]
    pub check: bool,
    /// Run it on the inputs, and show what was counted: visits of loops beside those predicted, bytes by array, and time
    #[arg(long, conflicts_with = "dtypes")]
    pub analyze: bool,
    /// Show the loops of the kernel, too, that each loop of the program became
    #[arg(long, requires = "analyze")]
    pub parts: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// A stage of compilation that `explain` can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
#[allow(missing_docs)]
pub enum Stage {
    Schedule,
    Program,
    Looplets,
    Kernel,
    C,
    Llvm,
    Asm,
}

/// `tamis info`
#[derive(Args, Clone, Debug)]
pub struct InfoArgs {
    /// A file, or a generator such as "laplacian(1000)"
    #[arg(value_name = "FILE|GENERATOR")]
    pub input: OsString,
    /// Convert to this format first
    #[arg(short, long)]
    pub format: Option<String>,
    /// The shape of a file that does not state its own (.tns), such as 327,327,606
    #[arg(long, value_name = "N,N,...", value_delimiter = ',')]
    pub shape: Option<Vec<u64>>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Write the plot as an image
    #[arg(long, value_name = "OUT.png")]
    pub png: Option<PathBuf>,
    /// Do not plot where the entries are
    #[arg(long)]
    pub no_plot: bool,
    /// What becomes of entries that the file holds twice
    #[arg(long, value_name = "HOW", default_value = "error")]
    pub duplicates: Duplicates,
}

/// `tamis advise`
#[derive(Args, Clone, Debug)]
pub struct AdviseArgs {
    /// A file, or a generator such as "laplacian(1000)"
    #[arg(value_name = "FILE|GENERATOR")]
    pub input: OsString,
    /// The shape of a file that does not state its own (.tns), such as 327,327,606
    #[arg(long, value_name = "N,N,...", value_delimiter = ',')]
    pub shape: Option<Vec<u64>>,
    /// Only propose formats, with the bytes that they take
    #[arg(long)]
    pub no_measure: bool,
    /// How long measuring may take
    #[arg(long, value_name = "SECONDS", default_value = "10", conflicts_with = "no_measure", value_parser = seconds)]
    pub time_limit: Duration,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// What becomes of entries that the file holds twice
    #[arg(long, value_name = "HOW", default_value = "error")]
    pub duplicates: Duplicates,
}

/// `tamis search`
#[derive(Args, Clone, Debug)]
#[command(after_help = INPUT_HELP)]
pub struct SearchArgs {
    /// Index notation, one statement such as `C[i,k] = A[i,j] * B[j,k]`
    #[arg(value_name = "NOTATION")]
    pub notation: OsString,
    /// Inputs, as described below
    #[arg(value_name = "NAME=INPUT")]
    pub inputs: Vec<OsString>,
    /// A file with operators to use by name, each a function with `@op(laws)` above it; may be given several times
    #[arg(long = "ops", value_name = "FILE")]
    pub operators: Vec<PathBuf>,
    /// Store an input in this format before others are tried, such as A=csr
    #[arg(short, long = "format", value_name = "NAME=FORMAT")]
    pub formats: Vec<String>,
    /// The shape of an input that does not state its own (.tns, rand, ones), such as T=327,327,606
    #[arg(long = "shape", value_name = "NAME=N,N,...")]
    pub shapes: Vec<String>,
    /// How long the search may take
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = seconds)]
    pub time_limit: Duration,
    /// How many of the fastest are listed
    #[arg(long, value_name = "N", default_value = "12")]
    pub top: usize,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// What becomes of entries that a file holds twice
    #[arg(long, value_name = "HOW", default_value = "error")]
    pub duplicates: Duplicates,
}

/// A time of up to a month.
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
    /// The file to write, its kind known by its extension; `-` is standard output
    #[arg(value_name = "OUT")]
    pub output: PathBuf,
    /// The kind of file to write, by its extension; needed with `-`
    #[arg(long, value_name = "KIND")]
    pub to: Option<String>,
    /// Convert to this format before writing
    #[arg(short, long)]
    pub format: Option<String>,
    /// What becomes of entries that the file holds twice
    #[arg(long, value_name = "HOW", default_value = "error")]
    pub duplicates: Duplicates,
    /// The shape of a file that does not state its own (.tns), such as 327,327,606
    #[arg(long, value_name = "N,N,...", value_delimiter = ',')]
    pub shape: Option<Vec<u64>>,
    /// Write one triangle of a symmetric matrix (.mtx)
    #[arg(long)]
    pub symmetric: bool,
    /// Write a header with the shape (.tns)
    #[arg(long)]
    pub header: bool,
    /// Print what was written as JSON
    #[arg(long)]
    pub json: bool,
}

/// What becomes of entries with equal coordinates.
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

/// Whether `--json` is wished for, as far as that can be told when the arguments could not be read.
pub(crate) fn json_wish(arguments: &[OsString]) -> bool {
    arguments.iter().skip(1).take_while(|argument| *argument != "--").any(|argument| argument == "--json")
}

/// The wish in `--color`, as far as it can be told before the arguments are read.
pub(crate) fn colour_wish(arguments: &[OsString]) -> ColorChoice {
    let texts: Vec<&str> = arguments.iter().filter_map(|a| a.to_str()).take_while(|a| *a != "--").collect();
    let joined = texts.iter().find_map(|text| text.strip_prefix("--color="));
    let split = || texts.windows(2).find(|pair| pair[0] == "--color").map(|pair| pair[1]);
    joined.or_else(split).and_then(|wish| ColorChoice::from_str(wish, false).ok()).unwrap_or(ColorChoice::Auto)
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
        let Command::Run(args) = cli.command else { panic!("not a run") };
        assert_eq!(args.check_limit, tamis::CHECK_LIMIT, "the default is the library's");
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
        let wish = |line: &str| colour_wish(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        assert_eq!(wish("tamis --color never info x"), ColorChoice::Never);
        assert_eq!(wish("tamis info x --color=always"), ColorChoice::Always);
        assert_eq!(wish("tamis info x --color=pink"), ColorChoice::Auto);
        assert_eq!(wish("tamis info -- --color=always"), ColorChoice::Auto);
        assert_eq!(wish("tamis --color"), ColorChoice::Auto);
        let json = |line: &str| json_wish(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        assert!(json("tamis info --json") && json("tamis --json run"));
        assert!(!json("tamis info") && !json("tamis info -- --json") && !json("--json info"));
    }
}
