//! Files: Matrix Market, FROSTT, npz, Binsparse and others, read and written.
//!
//! A file is known by its extension ([`FileKind`]), and may be compressed by gzip. Readers give plain data
//! ([`FileData`], by [`read_data`]), of which [`read`] makes a tensor; [`write()`] is the way back. Text is parsed in parallel from a memory map; whatever a header claims, memory is
//! only taken for what the file really holds. Every mistake is a [`Diagnostic`](tamis_ir::Diagnostic) with the file,
//! the line and something that would work.
//!
//! Rooms: `source` (bytes of a file), `scan` and `float` (numbers), `entries` (parallel lines), one file per kind,
//! `repeated` and `symmetry` (what matrices of entries need), `write` (the other direction).

mod binsparse;
mod compressed;
mod entries;
mod fault;
mod float;
mod idx;
mod image;
mod kind;
mod mtx;
mod npy;
mod npz;
mod npz_sparse;
mod options;
mod repeated;
mod scan;
mod smtx;
mod source;
mod symmetry;
mod table;
mod tensor;
mod tns;
mod write;

pub use kind::FileKind;
pub use options::ReadOptions;
pub use symmetry::Symmetry;
pub use tensor::{read, read_from};
pub use write::{Body, WriteOptions, Written, write, write_as, write_file, write_to};

use crate::{Coordinates, IndexArray, ValueArray};
use std::path::Path;
use tamis_ir::diag::Result;

/// What a file holds.
#[derive(Clone, Debug, PartialEq)]
pub struct FileData {
    /// The entries.
    pub content: Content,
    /// What the file says about them.
    pub header: FileHeader,
    /// What is not stored, if that is not zero.
    pub fill: Option<tamis_ir::Value>,
}

/// The entries of a file, stored the way the file stores them.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// A list of entries, in the order of the file; both triangles of a symmetric matrix.
    Coordinates(Coordinates),
    /// The entries of each row (or column, if `columns_first`), sorted and without repetitions.
    Compressed {
        /// Whether columns, not rows, are compressed.
        columns_first: bool,
        /// Rows and columns.
        shape: [u64; 2],
        /// Where each row (or column) starts.
        pos: IndexArray,
        /// The column (or row) of each entry.
        crd: IndexArray,
        /// The value of each entry; all `true` where the file holds none.
        values: ValueArray,
    },
    /// Every value, the last dimension running fastest.
    Dense {
        /// The size of each dimension.
        shape: Vec<u64>,
        /// The values.
        values: ValueArray,
    },
}

impl Content {
    /// The size of each dimension.
    pub fn shape(&self) -> &[u64] {
        match self {
            Content::Coordinates(coordinates) => &coordinates.shape,
            Content::Compressed { shape, .. } => shape,
            Content::Dense { shape, .. } => shape,
        }
    }

    /// The values that are stored.
    pub fn values(&self) -> &ValueArray {
        match self {
            Content::Coordinates(coordinates) => &coordinates.values,
            Content::Compressed { values, .. } | Content::Dense { values, .. } => values,
        }
    }
}

/// What a file says about its entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileHeader {
    /// The kind of file.
    pub kind: FileKind,
    /// Whether it was compressed by gzip.
    pub gzip: bool,
    /// What its values are.
    pub field: ValueField,
    /// Which entries stand for others.
    pub symmetry: Symmetry,
    /// How the entries are laid out in the file.
    pub layout: Layout,
    /// How many entries stand in the file (symmetric ones once).
    pub stored: u64,
    /// The first comments of the file, shortened.
    pub comments: Vec<String>,
}

/// What the values of a file are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum ValueField {
    Real,
    Integer,
    Complex,
    Boolean,
    /// No values: an entry is there, or not.
    Pattern,
}

impl ValueField {
    /// The word Matrix Market uses.
    pub const fn name(self) -> &'static str {
        match self {
            ValueField::Real => "real",
            ValueField::Integer => "integer",
            ValueField::Complex => "complex",
            ValueField::Boolean => "boolean",
            ValueField::Pattern => "pattern",
        }
    }

    fn of(dtype: tamis_ir::DType) -> ValueField {
        match dtype.kind() {
            tamis_ir::Kind::Bool => ValueField::Boolean,
            tamis_ir::Kind::Int => ValueField::Integer,
            tamis_ir::Kind::Float => ValueField::Real,
            tamis_ir::Kind::Complex => ValueField::Complex,
        }
    }
}

/// How a file lays out its entries, which is how they are best kept in memory, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Layout {
    /// Entry by entry, with all coordinates.
    Coordinates,
    /// Row by row.
    Rows,
    /// Column by column.
    Columns,
    /// Every value.
    Dense,
}

/// Reads what a file holds, as plain data.
///
/// With [`Combine::Error`](crate::Combine::Error) (the default) repeated entries are refused; otherwise they stay in
/// [`Content::Coordinates`] for whoever builds a tensor from it to combine.
///
/// ```
/// use tamis_tensor::io::{Content, ReadOptions, read_data};
/// let path = std::env::temp_dir().join(format!("tamis-doc-{}.mtx", std::process::id()));
/// std::fs::write(&path, "%%MatrixMarket matrix coordinate real symmetric\n2 2 2\n1 1 4\n2 1 -1\n").unwrap();
/// let data = read_data(&path, &ReadOptions::default()).unwrap();
/// assert_eq!(data.header.stored, 2);
/// assert_eq!(data.content.shape(), [2, 2]);
/// assert_eq!(data.content.values().len(), 3);
/// std::fs::remove_file(&path).unwrap();
/// ```
pub fn read_data(path: impl AsRef<Path>, options: &ReadOptions) -> Result<FileData> {
    load(path.as_ref(), options, true)
}

/// Reads the bytes of a file that is in memory; `name` tells its kind, and stands in diagnostics.
pub fn read_data_from(name: &str, bytes: &[u8], options: &ReadOptions) -> Result<FileData> {
    let kind = FileKind::of(name)?;
    let (bytes, gzip) = source::wrap(name, bytes)?;
    options.in_pool(|| parse(kind, name, &bytes, gzip, options, true))
}

/// `check`: refuse repetitions here if that is asked for, else leave them to the tensor that is built.
fn load(path: &Path, options: &ReadOptions, check: bool) -> Result<FileData> {
    let kind = FileKind::of(path)?;
    let (bytes, gzip) = source::open(path)?;
    options.in_pool(|| parse(kind, &path.display().to_string(), &bytes, gzip, options, check))
}

fn parse(kind: FileKind, name: &str, bytes: &[u8], gzip: bool, options: &ReadOptions, check: bool) -> Result<FileData> {
    let check = check && options.duplicates == crate::Combine::Error;
    let mut data = match kind {
        FileKind::MatrixMarket => mtx::read(name, bytes, options, check)?,
        FileKind::Frostt => tns::read(name, bytes, options, check)?,
        FileKind::ScipyArchive => npz::read(name, bytes, options, check)?,
        FileKind::Binsparse => binsparse::data(&binsparse::read(name, bytes, options)?).map_err(|d| d.in_file(name))?,
        FileKind::NumpyArray => npy::read(name, bytes, options)?,
        FileKind::Dlmc => smtx::read(name, bytes, options, check)?,
        FileKind::Image => image::read(name, bytes, options)?,
        FileKind::Idx => idx::read(name, bytes, options)?,
        FileKind::Table => table::read(name, bytes, options)?,
    };
    data.header.gzip = gzip;
    Ok(data)
}

/// The name without `.gz`, if it ends so.
fn gzip_name(lowercase: &str) -> Option<&str> {
    lowercase.strip_suffix(".gz")
}

/// Keeps a comment, unless there are many already; long ones are cut.
fn keep_comment(comments: &mut Vec<String>, text: &[u8]) {
    if comments.len() < 100 {
        let shown = String::from_utf8_lossy(&text[..text.len().min(400)]);
        comments.push(shown.trim().to_string());
    }
}
