//! `tamis convert`: converts a tensor to another kind of file or another format.

use crate::args::ConvertArgs;
use crate::load::{self, LoadOptions, load, wrong_argument};
use crate::progress::Progress;
use crate::shell::{CommandError, CommandResult, Shell};
use serde_json::json;
use std::io::{self, Write};
use std::path::Path;
use tamis_ir::{Code, Diagnostic};
use tamis_tensor::Tensor;
use tamis_tensor::io::{FileKind, Symmetry, WriteOptions, WriteReport, write_as, write_to};

/// Reads or generates a tensor, converts it if a format is given, and writes it.
pub(crate) fn convert(args: &ConvertArgs, shell: &mut Shell) -> CommandResult {
    // Errors of the command line are found before any work is done.
    let format = load::format(args.format.as_deref())?;
    load::parse_argument(&args.input)?;
    let kind = target_kind(args)?;
    check_options(args, kind)?;
    if args.json && to_standard_output(args) {
        let message = "a tensor and JSON cannot both be written to standard output";
        let help = "write the tensor to a file, or leave out --json";
        return Err(wrong_argument("--json", message, "also goes to standard output", help));
    }
    let symmetry = if args.symmetric { Symmetry::Symmetric } else { Symmetry::General };
    let options = WriteOptions { symmetry, header: args.header, ..WriteOptions::default() };
    let load_options =
        LoadOptions { duplicates: args.duplicates.into(), format: format.as_ref(), shape: args.shape.as_deref() };
    let loaded = load(&args.input, &load_options)?;
    let shown = args.output.display().to_string();
    let progress = Progress::start(format!("writing {shown}"));
    let written = if to_standard_output(args) {
        write_out(kind, &mut shell.out, &loaded.tensor, &options)?
    } else {
        write_as(kind, &args.output, &loaded.tensor, &options)?
    };
    drop(progress);
    warn_of_shape(&shown, &loaded.tensor, &written, shell);
    if args.json {
        return shell.print_json(&json!({
            "path": shown,
            "kind": kind.extension(),
            "shape": loaded.tensor.shape(),
            "dtype": loaded.tensor.dtype().name(),
            "format": loaded.tensor.format().to_string(),
            "stored": loaded.tensor.nnz(),
            "bytes": written.bytes,
        }));
    }
    Ok(())
}

/// Warns if the file will be read back with another shape.
pub(crate) fn warn_of_shape(target: &str, tensor: &Tensor, written: &WriteReport, shell: &Shell) {
    let Some(read) = &written.reads_back_as else { return };
    let show = |shape: &[u64]| shape.iter().map(u64::to_string).collect::<Vec<_>>().join(" x ");
    let message = format!("the shape {} will read back as {}", show(tensor.shape()), show(read));
    let d = Diagnostic::warning(Code::E0814, message)
        .in_file(target)
        .note("a .tns file without a header ends at the last entry of each dimension")
        .help("add --header, which writes the shape into the file");
    shell.warn(&[d]);
}

/// True if the output is `-` or `/dev/stdout`.
fn to_standard_output(args: &ConvertArgs) -> bool {
    args.output == Path::new("-") || args.output == Path::new("/dev/stdout")
}

/// The kind that `--to` names, or the extension of the file; both must agree if both are known.
fn target_kind(args: &ConvertArgs) -> Result<FileKind, CommandError> {
    let wanted = args.to.as_deref().map(kind_named).transpose()?;
    let by_name = if to_standard_output(args) { None } else { Some(FileKind::of(&args.output)) };
    match (wanted, by_name, &args.to) {
        (None, None, _) => {
            let message = "standard output has no extension that identifies the file type";
            let help = "say which, as in `tamis convert a.mtx - --to tns`";
            Err(wrong_argument(&args.output.to_string_lossy(), message, "which kind?", help))
        }
        (Some(wanted), Some(Ok(kind)), Some(text)) if wanted != kind => {
            let message = format!("`{}` is not the name of a .{} file", args.output.display(), wanted.extension());
            Err(wrong_argument(text, message, "differs from the extension", "leave out --to, or rename the file"))
        }
        (Some(wanted), ..) => Ok(wanted),
        (None, Some(_), _) => FileKind::of_output(&args.output).map_err(|d| {
            let known = d.code != Code::E0802;
            CommandError::usage(vec![if known { d } else { d.help("or say which kind it is, as in `--to tns`") }])
        }),
    }
}

fn kind_named(text: &str) -> Result<FileKind, CommandError> {
    let extension = text.trim_start_matches('.');
    // A folder or `.gz` in a file name has another meaning.
    let plain = extension == FileKind::Binsparse.extension()
        || extension.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    let kind = FileKind::of(format!("x.{extension}")).ok().filter(|_| plain);
    kind.filter(|kind| kind.is_writable()).ok_or_else(|| {
        let writable: Vec<&str> = FileKind::ALL.iter().filter(|k| k.is_writable()).map(|k| k.extension()).collect();
        let (message, label) = match kind {
            Some(_) => (format!("`{text}` files are read, but not written"), "cannot be written"),
            None => (format!("`{text}` is not a kind of file"), "unknown"),
        };
        wrong_argument(text, message, label, format!("kinds that can be written are {}", writable.join(" ")))
    })
}

/// Refuses options that do not apply to a kind of file.
fn check_options(args: &ConvertArgs, kind: FileKind) -> Result<(), CommandError> {
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

/// Writes to standard output. A closed pipe is not an error.
pub(crate) fn write_out(
    kind: FileKind,
    out: &mut dyn Write,
    tensor: &Tensor,
    options: &WriteOptions,
) -> Result<WriteReport, CommandError> {
    let mut watched = PipeWriter { out, closed: false };
    match write_to(kind, &mut watched, tensor, options) {
        Err(_) if watched.closed => Err(CommandError::ClosedPipe),
        written => Ok(written?),
    }
}

/// A writer that records whether the pipe was closed.
struct PipeWriter<'a> {
    out: &'a mut dyn Write,
    closed: bool,
}

impl PipeWriter<'_> {
    fn watch<T>(&mut self, done: io::Result<T>) -> io::Result<T> {
        self.closed |= matches!(&done, Err(error) if error.kind() == io::ErrorKind::BrokenPipe);
        done
    }
}

impl Write for PipeWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let done = self.out.write(bytes);
        self.watch(done)
    }

    fn flush(&mut self) -> io::Result<()> {
        let done = self.out.flush();
        self.watch(done)
    }
}
