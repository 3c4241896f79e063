//! Loading of tensors that the command line names: reads a file, or runs a generator.

use crate::input::almost_call;
use crate::progress::Progress;
use crate::shell::CommandError;
use std::ffi::OsStr;
use std::path::Path;
use tamis_ir::{Code, Diagnostic, Format, FormatSpec, Source, Span, Value};
use tamis_tensor::gallery::{self, Generator};
use tamis_tensor::io::{FileHeader, ReadOptions, read_data};
use tamis_tensor::{Combine, Tensor};

/// A tensor with its origin.
pub(crate) struct LoadedTensor {
    pub(crate) name: String,
    pub(crate) origin: TensorOrigin,
    pub(crate) tensor: Tensor,
}

/// The origin of a tensor.
pub(crate) enum TensorOrigin {
    File(FileHeader),
    Generator(&'static Generator),
}

/// A parsed argument: a generator if it has the form of a call, else a file.
pub(crate) enum InputArgument {
    File,
    Call(gallery::GeneratorCall),
}

/// Parses an argument. A malformed call is an error of the command line.
pub(crate) fn parse_argument(argument: &OsStr) -> std::result::Result<InputArgument, CommandError> {
    match argument.to_str() {
        Some(text) if gallery::is_call(text) => {
            gallery::parse(text).map(InputArgument::Call).map_err(|d| CommandError::usage(vec![d]))
        }
        Some(text) => match almost_call(text) {
            Some(d) => Err(CommandError::usage(vec![d])),
            None => Ok(InputArgument::File),
        },
        None => Ok(InputArgument::File),
    }
}

/// The options of loading a tensor.
pub(crate) struct LoadOptions<'a> {
    /// The reduction of duplicate coordinates.
    pub(crate) duplicates: Combine,
    /// The format to convert to.
    pub(crate) format: Option<&'a FormatSpec>,
    /// The shape of a file that does not state its own.
    pub(crate) shape: Option<&'a [u64]>,
}

/// Reads the file or runs the generator, and converts the tensor to the requested format.
pub(crate) fn load(argument: &OsStr, options: &LoadOptions) -> std::result::Result<LoadedTensor, CommandError> {
    let name = argument.to_string_lossy().into_owned();
    let (origin, tensor) = match parse_argument(argument)? {
        InputArgument::Call(call) => {
            if options.shape.is_some() {
                let message = "--shape is for files, and this is a generator";
                return Err(wrong_argument(&name, message, "has a shape of its own", "leave out --shape"));
            }
            let _progress = Progress::start(format!("generating {name}"));
            let coordinates = call.generate()?;
            let (format, fill) = (Format::coo(coordinates.shape.len()), Value::zero(coordinates.values.dtype()));
            let tensor = Tensor::from_coordinates(&coordinates, &format, fill, Combine::Error)?;
            (TensorOrigin::Generator(call.generator()), tensor)
        }
        InputArgument::File => {
            let progress = Progress::start(format!("reading {name}"));
            let watch = |done: u64, total: u64| progress.update(done, total);
            let read_options = ReadOptions {
                duplicates: options.duplicates,
                shape: options.shape.map(<[u64]>::to_vec),
                progress: Some(&watch),
                ..ReadOptions::default()
            };
            let data = read_data(Path::new(argument), &read_options)?;
            let header = data.header.clone();
            let tensor = data.into_tensor(options.duplicates).map_err(|d| d.in_file(&name))?;
            (TensorOrigin::File(header), tensor)
        }
    };
    let tensor = match options.format {
        None => tensor,
        Some(format) => {
            let _progress = Progress::start(format!("converting {name}"));
            tensor.convert(&format.with_rank(tensor.rank())?).map_err(|d| d.in_file(&name))?
        }
    };
    Ok(LoadedTensor { name, origin, tensor })
}

/// Parses the format of `-f FORMAT`.
pub(crate) fn format(text: Option<&str>) -> std::result::Result<Option<FormatSpec>, CommandError> {
    text.map(FormatSpec::parse).transpose().map_err(|d| CommandError::usage(vec![d]))
}

/// An error in one argument, which the diagnostic quotes.
pub(crate) fn wrong_argument(
    text: &str,
    message: impl Into<String>,
    label: &str,
    help: impl Into<String>,
) -> CommandError {
    let d = Diagnostic::new(Code::E0905, message).label(Span::new(0..text.len()), label).help(help);
    CommandError::usage(vec![d.with_source(&Source::new("argument", text))])
}
