//! Getting a tensor from what the command line names: a file, or a generator.

use crate::input::almost_call;
use crate::progress::Progress;
use crate::shell::Failure;
use std::ffi::OsStr;
use std::path::Path;
use tamis_ir::{Code, Diagnostic, Format, FormatSpec, Source, Span, Value};
use tamis_tensor::gallery::{self, Generator};
use tamis_tensor::io::{FileHeader, ReadOptions, read_data};
use tamis_tensor::{Combine, Tensor};

/// A tensor, and where it comes from.
pub(crate) struct Loaded {
    pub(crate) name: String,
    pub(crate) origin: Origin,
    pub(crate) tensor: Tensor,
}

/// Where a tensor comes from.
pub(crate) enum Origin {
    File(FileHeader),
    Generator(&'static Generator),
}

/// What an argument names: a generator if it has the form of a call, else a file.
pub(crate) enum Named {
    File,
    Call(gallery::Call),
}

/// Reads an argument; a call that is malformed is a mistake of the command line.
pub(crate) fn named(argument: &OsStr) -> std::result::Result<Named, Failure> {
    match argument.to_str() {
        Some(text) if gallery::is_call(text) => {
            gallery::parse(text).map(Named::Call).map_err(|d| Failure::usage(vec![d]))
        }
        Some(text) => match almost_call(text) {
            Some(d) => Err(Failure::usage(vec![d])),
            None => Ok(Named::File),
        },
        None => Ok(Named::File),
    }
}

/// How a tensor is wanted.
pub(crate) struct Wish<'a> {
    /// What becomes of repeated entries.
    pub(crate) duplicates: Combine,
    /// The format to convert to.
    pub(crate) format: Option<&'a FormatSpec>,
    /// The shape of a file that does not state its own.
    pub(crate) shape: Option<&'a [u64]>,
}

/// Reads the file or runs the generator, and converts the tensor to the format asked for, if any.
pub(crate) fn load(argument: &OsStr, wish: &Wish) -> std::result::Result<Loaded, Failure> {
    let name = argument.to_string_lossy().into_owned();
    let (origin, tensor) = match named(argument)? {
        Named::Call(call) => {
            if wish.shape.is_some() {
                let message = "--shape is for files, and this is a generator";
                return Err(wrong_argument(&name, message, "has a shape of its own", "leave out --shape"));
            }
            let _progress = Progress::start(format!("generating {name}"));
            let entries = call.generate()?;
            let (format, fill) = (Format::coo(entries.shape.len()), Value::zero(entries.values.dtype()));
            let tensor = Tensor::from_coordinates(&entries, &format, fill, Combine::Error)?;
            (Origin::Generator(call.generator()), tensor)
        }
        Named::File => {
            let progress = Progress::start(format!("reading {name}"));
            let watch = |done: u64, total: u64| progress.update(done, total);
            let options = ReadOptions {
                duplicates: wish.duplicates,
                shape: wish.shape.map(<[u64]>::to_vec),
                progress: Some(&watch),
                ..ReadOptions::default()
            };
            let data = read_data(Path::new(argument), &options)?;
            let header = data.header.clone();
            let tensor = data.into_tensor(wish.duplicates).map_err(|d| d.in_file(&name))?;
            (Origin::File(header), tensor)
        }
    };
    let tensor = match wish.format {
        None => tensor,
        Some(format) => {
            let _progress = Progress::start(format!("converting {name}"));
            tensor.convert(&format.with_rank(tensor.rank())?).map_err(|d| d.in_file(&name))?
        }
    };
    Ok(Loaded { name, origin, tensor })
}

/// Reads the format of `-f FORMAT`; mistakes are mistakes of the command line.
pub(crate) fn format(text: Option<&str>) -> std::result::Result<Option<FormatSpec>, Failure> {
    text.map(FormatSpec::parse).transpose().map_err(|d| Failure::usage(vec![d]))
}

/// A mistake in one argument, which is shown with the part that is wrong.
pub(crate) fn wrong_argument(text: &str, message: impl Into<String>, label: &str, help: impl Into<String>) -> Failure {
    let d = Diagnostic::new(Code::E0905, message).label(Span::new(0..text.len()), label).help(help);
    Failure::usage(vec![d.with_source(&Source::new("argument", text))])
}
