//! Getting a tensor from what the command line names: a file, or a generator.

use crate::progress::Progress;
use crate::shell::Failure;
use std::ffi::OsStr;
use std::path::Path;
use tamis_ir::diag::Result;
use tamis_ir::format::Leaf;
use tamis_ir::{Code, DType, Diagnostic, Format, FormatSpec, Source, Span, Value};
use tamis_tensor::gallery::{self, Generator};
use tamis_tensor::io::{Content, FileHeader, ReadOptions, ValueField, read_data};
use tamis_tensor::{Combine, Coordinates, LevelArrays, Tensor};

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
        _ => Ok(Named::File),
    }
}

/// Reads the file or runs the generator, and converts the tensor to the format asked for, if any.
pub(crate) fn load(
    argument: &OsStr,
    duplicates: Combine,
    format: Option<&FormatSpec>,
) -> std::result::Result<Loaded, Failure> {
    let name = argument.to_string_lossy().into_owned();
    let (origin, tensor) = match named(argument)? {
        Named::Call(call) => {
            let _progress = Progress::start(format!("generating {name}"));
            (Origin::Generator(call.generator()), from_entries(&call.generate()?, Leaf::Element(None), Combine::Error)?)
        }
        Named::File => {
            let progress = Progress::start(format!("reading {name}"));
            let watch = |done: u64, total: u64| progress.update(done, total);
            let options = ReadOptions { duplicates, progress: Some(&watch), ..ReadOptions::default() };
            let data = read_data(Path::new(argument), &options)?;
            let tensor = from_file(data.content, &data.header, duplicates)?;
            (Origin::File(data.header), tensor)
        }
    };
    let tensor = match format {
        None => tensor,
        Some(format) => {
            let _progress = Progress::start(format!("converting {name}"));
            tensor.convert(&format.with_rank(tensor.rank())?)?
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
    let d = Diagnostic::new(Code::E0901, message).label(Span::new(0..text.len()), label).help(help);
    Failure::usage(vec![d.with_source(&Source::new("argument", text))])
}

fn from_entries(entries: &Coordinates, leaf: Leaf, combine: Combine) -> Result<Tensor> {
    let format = Format::coo(entries.shape.len()).with_leaf(leaf);
    Tensor::from_coordinates(entries, &format, zero(entries.values.dtype()), combine)
}

fn zero(dtype: DType) -> Value {
    Value::zero(dtype)
}

/// Keeps the layout that the file has.
fn from_file(content: Content, header: &FileHeader, combine: Combine) -> Result<Tensor> {
    let leaf = if header.field == ValueField::Pattern { Leaf::Pattern } else { Leaf::Element(None) };
    match content {
        Content::Coordinates(entries) => from_entries(&entries, leaf, combine),
        Content::Dense { shape, values } => {
            let fill = zero(values.dtype());
            Tensor::from_dense(&shape, values, &Format::dense(shape.len()), fill)
        }
        Content::Compressed { columns_first, shape, pos, crd, values } => {
            let format = if columns_first { Format::csc() } else { Format::csr() }.with_leaf(leaf);
            let levels = vec![LevelArrays::default(), LevelArrays::new([("pos", pos), ("crd", crd)])];
            let fill = zero(values.dtype());
            Tensor::from_parts(&shape, &format, levels, (leaf != Leaf::Pattern).then_some(values), fill)
        }
    }
}
