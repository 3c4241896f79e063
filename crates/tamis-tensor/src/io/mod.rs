//! File formats: readers and writers of Matrix Market, FROSTT, npz, Binsparse and others.
//!
//! A file is recognised by its extension ([`FileKind`]), and may be compressed by gzip. Readers
//! return plain data ([`FileData`], by [`read_data`]), from which [`read`] makes a tensor;
//! [`write()`] is the inverse. Text is parsed in parallel from a memory map. Memory is bounded by
//! the contents of the file, not by its header. Every mistake is a
//! [`Diagnostic`](tamis_ir::Diagnostic) with the file, the line and an alternative that would work.
//!
//! Modules: `source` (bytes of a file), `scan` and `float` (numbers), `entries` (parallel lines),
//! one file per kind, `repeated` and `symmetry` (matrices of entries), `write` (writers).

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
pub use write::{WriteContents, WriteOptions, WriteReport, write, write_as, write_file, write_to};

use crate::{Coordinates, IndexArray, ValueArray};
use std::path::Path;
use tamis_ir::diag::Result;

/// The contents of a file.
///
/// ```
/// use tamis_tensor::Combine;
/// use tamis_tensor::io::{ReadOptions, read_data_from};
/// let data = read_data_from("a.tns", b"1 1 4.0\n2 3 -1.0\n", &ReadOptions::default())?;
/// println!("{} entries in a {} file", data.header.stored, data.header.kind.extension());
/// assert_eq!(data.into_tensor(Combine::Error)?.shape(), [2, 3]);
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct FileData {
    /// The entries.
    pub content: Content,
    /// The metadata of the file.
    pub header: FileHeader,
    /// The fill, if it is not zero.
    pub fill: Option<tamis_ir::Value>,
}

/// The entries of a file, in the layout of the file.
///
/// ```
/// use tamis_tensor::io::{Content, ReadOptions, read_data_from};
/// let data = read_data_from("a.tns", b"1 1 4.0\n2 3 -1.0\n", &ReadOptions::default())?;
/// let Content::Coordinates(entries) = data.content else { panic!("a .tns file lists entries") };
/// assert_eq!(entries.columns[1].to_vec(), [0, 2]);
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// A coordinate list, in the order of the file; both triangles of a symmetric matrix.
    Coordinates(Coordinates),
    /// The entries of each row (or column, if `columns_first`), sorted and without duplicates.
    Compressed {
        /// True if columns, not rows, are compressed.
        columns_first: bool,
        /// The numbers of rows and columns.
        shape: [u64; 2],
        /// The start of each row (or column).
        pos: IndexArray,
        /// The column (or row) of each entry.
        crd: IndexArray,
        /// The value of each entry; all `true` if the file has none.
        values: ValueArray,
    },
    /// Every value in row-major order.
    Dense {
        /// The size of each dimension.
        shape: Vec<u64>,
        /// The values.
        values: ValueArray,
    },
}

impl Content {
    /// The size of each dimension.
    ///
    /// ```
    /// use tamis_tensor::io::{ReadOptions, read_data_from};
    /// let data = read_data_from("table.txt", b"1 2 3\n4 5 6\n", &ReadOptions::default())?;
    /// assert_eq!(data.content.shape(), [2, 3]);
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn shape(&self) -> &[u64] {
        match self {
            Content::Coordinates(coordinates) => &coordinates.shape,
            Content::Compressed { shape, .. } => shape,
            Content::Dense { shape, .. } => shape,
        }
    }

    /// The stored values.
    ///
    /// ```
    /// use tamis_tensor::io::{ReadOptions, read_data_from};
    /// let data = read_data_from("table.txt", b"1 2 3\n4 5 6\n", &ReadOptions::default())?;
    /// assert_eq!(data.content.values().len(), 6);
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn values(&self) -> &ValueArray {
        match self {
            Content::Coordinates(coordinates) => &coordinates.values,
            Content::Compressed { values, .. } | Content::Dense { values, .. } => values,
        }
    }
}

/// The metadata of a file.
///
/// ```
/// use tamis_tensor::io::{ReadOptions, Symmetry, read_data_from};
/// let text = b"%%MatrixMarket matrix coordinate real symmetric\n% a spring\n2 2 1\n2 1 -1\n";
/// let header = read_data_from("a.mtx", text, &ReadOptions::default())?.header;
/// assert_eq!((header.symmetry, header.stored), (Symmetry::Symmetric, 1));
/// assert_eq!(header.comments, ["a spring"]);
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileHeader {
    /// The kind of file.
    pub kind: FileKind,
    /// True if it was compressed by gzip.
    pub gzip: bool,
    /// The type of its values.
    pub field: ValueField,
    /// The symmetry of the matrix.
    pub symmetry: Symmetry,
    /// The layout of the entries.
    pub layout: Layout,
    /// The number of entries in the file (symmetric ones once).
    pub stored: u64,
    /// The first comments of the file, shortened.
    pub comments: Vec<String>,
}

/// The type of the values of a file.
///
/// ```
/// use tamis_tensor::io::{ReadOptions, ValueField, read_data_from};
/// let text = b"%%MatrixMarket matrix coordinate pattern general\n2 2 1\n2 1\n";
/// let data = read_data_from("graph.mtx", text, &ReadOptions::default())?;
/// assert_eq!(data.header.field, ValueField::Pattern);
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum ValueField {
    Real,
    Integer,
    Complex,
    Boolean,
    /// No values: the existence of an entry counts.
    Pattern,
}

impl ValueField {
    /// The word of Matrix Market.
    ///
    /// ```
    /// use tamis_tensor::io::ValueField;
    /// assert_eq!(ValueField::Integer.name(), "integer");
    /// ```
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

/// The layout of the entries of a file, which is also the preferred layout in memory.
///
/// ```
/// use tamis_tensor::io::{Layout, ReadOptions, read_data_from};
/// let data = read_data_from("table.txt", b"1 2 3\n4 5 6\n", &ReadOptions::default())?;
/// assert_eq!(data.header.layout, Layout::Dense);
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
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

/// Reads the contents of a file as plain data.
///
/// With [`Combine::Error`](crate::Combine::Error) (the default) duplicates are rejected; otherwise
/// they stay in [`Content::Coordinates`], and the constructor of the tensor combines them.
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

/// Reads the bytes of a file in memory; `name` determines its kind, and appears in diagnostics.
///
/// ```
/// use tamis_tensor::io::{ReadOptions, read_data_from};
/// let data = read_data_from("a.tns", b"1 1 4.0\n2 3 -1.0\n", &ReadOptions::default())?;
/// assert_eq!((data.content.shape(), data.header.stored), (&[2, 3][..], 2));
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
pub fn read_data_from(name: &str, bytes: &[u8], options: &ReadOptions) -> Result<FileData> {
    let kind = FileKind::of(name)?;
    let (bytes, gzip) = source::wrap(name, bytes)?;
    options.in_pool(|| parse(kind, name, &bytes, gzip, options, true))
}

/// `check`: reject duplicates here if the options say so; otherwise the constructor of the tensor
/// does.
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

/// The name without `.gz`, if it has that extension.
fn gzip_name(lowercase: &str) -> Option<&str> {
    lowercase.strip_suffix(".gz")
}

/// Adds a comment, up to a maximum number; long ones are truncated.
fn keep_comment(comments: &mut Vec<String>, text: &[u8]) {
    if comments.len() < 100 {
        let shown = String::from_utf8_lossy(&text[..text.len().min(400)]);
        comments.push(shown.trim().to_string());
    }
}
