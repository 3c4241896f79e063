//! `tamis convert`: from one kind of file or format to another.

use crate::args::ConvertArgs;
use crate::load::{self, Wish, load, wrong_argument};
use crate::progress::Progress;
use crate::shell::{Failure, Outcome, Shell};
use std::io::{self, Write};
use std::path::Path;
use tamis_tensor::Tensor;
use tamis_tensor::io::{FileKind, Symmetry, WriteOptions, write, write_to};

/// Reads or generates a tensor, converts it if a format is given, and writes it.
pub(crate) fn convert(args: &ConvertArgs, shell: &mut Shell) -> Outcome {
    // Everything that can be wrong with the command line is found before any work is done.
    let format = load::format(args.format.as_deref())?;
    load::named(&args.input)?;
    let kind = target_kind(args)?;
    check_options(args, kind)?;
    let symmetry = if args.symmetric { Symmetry::Symmetric } else { Symmetry::General };
    let options = WriteOptions { symmetry, header: args.header, ..WriteOptions::default() };
    let wish = Wish { duplicates: args.duplicates.into(), format: format.as_ref(), shape: args.shape.as_deref() };
    let loaded = load(&args.input, &wish)?;
    let _progress = Progress::start(format!("writing {}", args.output.display()));
    if to_standard_output(args) {
        return write_out(kind, &mut shell.out, &loaded.tensor, &options);
    }
    Ok(write(&args.output, &loaded.tensor, &options)?)
}

fn to_standard_output(args: &ConvertArgs) -> bool {
    args.output == Path::new("-")
}

/// The kind that `--to` names, or the extension of the file; both must agree if both are there.
fn target_kind(args: &ConvertArgs) -> Result<FileKind, Failure> {
    let wanted = args.to.as_deref().map(kind_named).transpose()?;
    match (wanted, to_standard_output(args)) {
        (Some(kind), true) => Ok(kind),
        (None, true) => {
            let message = "standard output has no extension to tell the kind of file";
            Err(wrong_argument("-", message, "which kind?", "say which, as in `tamis convert a.mtx - --to tns`"))
        }
        (wanted, false) => {
            let kind = FileKind::of(&args.output).map_err(|d| Failure::usage(vec![d]))?;
            match (wanted.filter(|wanted| *wanted != kind), &args.to) {
                (Some(wanted), Some(text)) => {
                    let message =
                        format!("`{}` is not the name of a .{} file", args.output.display(), wanted.extension());
                    Err(wrong_argument(
                        text,
                        message,
                        "differs from the extension",
                        "leave out --to, or rename the file",
                    ))
                }
                _ => Ok(kind),
            }
        }
    }
}

fn kind_named(text: &str) -> Result<FileKind, Failure> {
    let extension = text.trim_start_matches('.');
    // The name of a folder, or `.gz`, would be understood differently in a file's name.
    let plain = extension.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    FileKind::of(format!("x.{extension}")).ok().filter(|_| plain).ok_or_else(|| {
        let writable: Vec<&str> = FileKind::ALL.iter().filter(|k| k.is_writable()).map(|k| k.extension()).collect();
        let message = format!("`{text}` is not a kind of file");
        wrong_argument(text, message, "unknown", format!("kinds that can be written are {}", writable.join(" ")))
    })
}

/// Options that a kind of file has no use for are refused rather than ignored.
fn check_options(args: &ConvertArgs, kind: FileKind) -> Result<(), Failure> {
    let only = |option: &str, extension: &str| {
        let message = format!("{option} is for .{extension} files, and this is a .{} file", kind.extension());
        Err(wrong_argument(
            option,
            message,
            "has no meaning here",
            format!("leave it out, or write a .{extension} file"),
        ))
    };
    match kind {
        FileKind::MatrixMarket if args.header => only("--header", "tns"),
        FileKind::MatrixMarket => Ok(()),
        _ if args.symmetric => only("--symmetric", "mtx"),
        FileKind::Frostt => Ok(()),
        _ if args.header => only("--header", "tns"),
        _ => Ok(()),
    }
}

/// Writes to standard output; that nobody reads it to the end is not a mistake.
pub(crate) fn write_out(kind: FileKind, out: &mut dyn Write, tensor: &Tensor, options: &WriteOptions) -> Outcome {
    let mut watched = Watched { out, closed: false };
    match write_to(kind, &mut watched, tensor, options) {
        Err(_) if watched.closed => Err(Failure::ClosedPipe),
        written => Ok(written?),
    }
}

/// A writer that remembers whether its reader is gone, which a diagnostic does not tell.
struct Watched<'a> {
    out: &'a mut dyn Write,
    closed: bool,
}

impl Watched<'_> {
    fn watch<T>(&mut self, done: io::Result<T>) -> io::Result<T> {
        self.closed |= matches!(&done, Err(error) if error.kind() == io::ErrorKind::BrokenPipe);
        done
    }
}

impl Write for Watched<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let done = self.out.write(bytes);
        self.watch(done)
    }

    fn flush(&mut self) -> io::Result<()> {
        let done = self.out.flush();
        self.watch(done)
    }
}
