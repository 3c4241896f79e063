//! Writers of files: a temporary file is written and renamed, so that a failure leaves the old file
//! unchanged.

mod arrays;
mod aside;
mod binsparse;
mod image;
mod mtx;
mod text;
mod tns;

use super::tensor::does_not_fit;
use super::{FileKind, Symmetry, gzip_name};
use crate::Tensor;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::{self, Write};
use std::path::Path;
use tamis_ir::Value;
use tamis_ir::diag::Result;

use aside::cannot_write;
pub use aside::{WriteContents, write_file};

/// The options of writing a file.
///
/// ```
/// use tamis_tensor::io::{Symmetry, WriteOptions};
/// let options = WriteOptions { symmetry: Symmetry::Symmetric, ..WriteOptions::default() };
/// assert!(options.compress);
/// ```
#[derive(Clone, Debug)]
pub struct WriteOptions {
    /// Matrix Market: write one triangle, and the symmetry in the header. A tensor without this
    /// symmetry is rejected.
    pub symmetry: Symmetry,
    /// FROSTT: write MLIR's header of rank, entries and sizes, without which trailing empty slices
    /// are lost. A tensor without entries always gets a header, because the file would be empty
    /// otherwise.
    pub header: bool,
    /// Archives (`.npz`): compress their members.
    pub compress: bool,
    /// Matrix Market and FROSTT: comments at the start of the file, one line each.
    pub comments: Vec<String>,
}

impl Default for WriteOptions {
    fn default() -> WriteOptions {
        WriteOptions { symmetry: Symmetry::General, header: false, compress: true, comments: Vec::new() }
    }
}

/// Writes a tensor; the extension determines the kind of file, and `.gz` compresses it.
///
/// | kind | tensors | how |
/// |---|---|---|
/// | `.mtx` | matrices, and vectors as one column | `array` if dense, else `coordinate`; `pattern`, `integer`, `unsigned-integer` (`u64`), `real`, `complex` |
/// | `.tns` | any rank, not complex | stored entries |
/// | `.npz` | rank 1 and up | as `scipy.sparse.load_npz` reads it: csr, csc or coo |
/// | `.bsp.npz` | any | Binsparse: dense and sparse levels as they are, others as lists; any fill |
/// | `.npy` | any | dense |
/// | `.pbm`, `.pgm` | matrices of `bool`; of `u8` or `u16` | P4; P5 |
///
/// Floats are written in the shortest form that reads back as the same number; `f32` as the double
/// it equals.
///
/// ```
/// use tamis_tensor::Tensor;
/// use tamis_tensor::io::{ReadOptions, WriteOptions, read, write};
/// # use tamis_ir::Format;
/// # let path = std::env::temp_dir().join(format!("tamis-write-{}.mtx.gz", std::process::id()));
/// let values = vec![4.0, 0.0, 1.5, 4.0].into();
/// let a = Tensor::from_dense(&[2, 2], values, &Format::csr(), 0.0.into())?;
/// write(&path, &a, &WriteOptions::default())?;
/// assert!(read(&path, &ReadOptions::default())?.same_values(&a));
/// # std::fs::remove_file(&path).unwrap();
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
pub fn write(path: impl AsRef<Path>, tensor: &Tensor, options: &WriteOptions) -> Result<WriteReport> {
    write_as(FileKind::of_output(path.as_ref())?, path, tensor, options)
}

/// Writes a tensor as this kind of file, under any name; `.gz` at the end still compresses it.
///
/// ```
/// use tamis_tensor::Tensor;
/// use tamis_tensor::io::{FileKind, WriteOptions, write_as};
/// # let path = std::env::temp_dir().join(format!("tamis-write-as-{}.part", std::process::id()));
/// let seven = Tensor::scalar(7i64.into());
/// write_as(FileKind::Frostt, &path, &seven, &WriteOptions::default())?;
/// assert_eq!(std::fs::read(&path).unwrap(), b"7\n");
/// # std::fs::remove_file(&path).unwrap();
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
pub fn write_as(
    kind: FileKind,
    path: impl AsRef<Path>,
    tensor: &Tensor,
    options: &WriteOptions,
) -> Result<WriteReport> {
    let path = path.as_ref();
    let name = path.display().to_string();
    image::check_extension(path, kind, tensor).map_err(|d| d.in_file(&name))?;
    let work = Prepared::new(kind, tensor, options).map_err(|d| d.in_file(&name))?;
    let gzip = gzip_name(&name.to_ascii_lowercase()).is_some();
    let bytes = write_file(path, &|file| {
        if gzip {
            let mut encoder = GzEncoder::new(file, Compression::default());
            work.emit(&mut encoder)?;
            encoder.finish()?;
            Ok(())
        } else {
            work.emit(file)
        }
    })?;
    Ok(WriteReport { bytes, reads_back_as: work.reads_back_as() })
}

/// Writes a tensor to any writer, such as standard output, as this kind of file.
///
/// ```
/// use tamis_ir::Value;
/// use tamis_tensor::{Tensor, io::{FileKind, WriteOptions, write_to}};
/// let mut out = Vec::new();
/// write_to(FileKind::Frostt, &mut out, &Tensor::scalar(Value::I64(7)), &WriteOptions::default()).unwrap();
/// assert_eq!(out, b"7\n");
/// ```
pub fn write_to(kind: FileKind, out: &mut dyn Write, tensor: &Tensor, options: &WriteOptions) -> Result<WriteReport> {
    let work = Prepared::new(kind, tensor, options)?;
    let mut counted = Counted { out, bytes: 0 };
    work.emit(&mut counted).and_then(|()| counted.flush()).map_err(|error| cannot_write("the output", &error))?;
    Ok(WriteReport { bytes: counted.bytes, reads_back_as: work.reads_back_as() })
}

/// The result of writing a tensor.
///
/// ```
/// use tamis_tensor::Tensor;
/// use tamis_tensor::io::{FileKind, WriteOptions, write_to};
/// # use tamis_ir::Format;
/// let x = Tensor::from_dense(&[3], vec![5.0, 0.0, 0.0].into(), &Format::coo(1), 0.0.into())?;
/// let report = write_to(FileKind::Frostt, &mut Vec::new(), &x, &WriteOptions::default())?;
/// assert_eq!(report.reads_back_as, Some(vec![1]), "the file ends at the last entry");
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteReport {
    /// The number of written bytes, compressed if the file is.
    pub bytes: u64,
    /// The shape of the tensor when the file is read, if it differs: a `.tns` file without a header
    /// ends at the last entry of each dimension. [`WriteOptions::header`] prevents that.
    pub reads_back_as: Option<Vec<u64>>,
}

/// A writer that counts bytes.
struct Counted<W> {
    out: W,
    bytes: u64,
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// A checked tensor, ready to be written: only the operating system can still fail.
enum Prepared {
    MatrixMarket(mtx::MtxJob),
    Frostt(tns::TnsJob),
    Archive(arrays::SparseMatrixArchive),
    Binsparse(binsparse::BinsparseJob),
    Array(arrays::NpyArray),
    Image(image::ImageJob),
}

impl Prepared {
    fn new(kind: FileKind, tensor: &Tensor, options: &WriteOptions) -> Result<Prepared> {
        if !kind.is_writable() {
            return Err(super::kind::only_read(kind).help(format!("write {} instead", kinds_for(tensor))));
        }
        Ok(match kind {
            FileKind::MatrixMarket => Prepared::MatrixMarket(mtx::MtxJob::new(tensor, options)?),
            FileKind::Frostt => Prepared::Frostt(tns::TnsJob::new(tensor, options)?),
            FileKind::ScipyArchive => Prepared::Archive(arrays::SparseMatrixArchive::new(tensor, options)?),
            FileKind::Binsparse => Prepared::Binsparse(binsparse::BinsparseJob::new(tensor, options)?),
            FileKind::Image => Prepared::Image(image::ImageJob::new(tensor)?),
            _ => Prepared::Array(arrays::NpyArray::new(tensor)?),
        })
    }

    fn reads_back_as(&self) -> Option<Vec<u64>> {
        match self {
            Prepared::Frostt(job) => job.reads_back_as(),
            _ => None,
        }
    }

    fn emit(&self, out: &mut dyn Write) -> io::Result<()> {
        match self {
            Prepared::MatrixMarket(job) => job.emit(out),
            Prepared::Frostt(job) => job.emit(out),
            Prepared::Archive(job) => job.emit(out),
            Prepared::Binsparse(job) => job.emit(out),
            Prepared::Array(job) => job.emit(out),
            Prepared::Image(job) => job.emit(out),
        }
    }
}

/// The kinds of file that can represent the tensor, for a help text.
fn kinds_for(tensor: &Tensor) -> &'static str {
    match (tensor.rank(), tensor.dtype().kind()) {
        (0, tamis_ir::Kind::Complex) => ".npy",
        (0, _) => ".tns or .npy",
        (1 | 2, _) => ".mtx, .npz or .npy",
        (_, tamis_ir::Kind::Complex) => ".npz or .npy",
        _ => ".tns, .npz or .npy",
    }
}

/// Converts to a zero fill, because files of entries omit zeros.
fn with_zero_fill(tensor: &Tensor) -> Result<Tensor> {
    let zero = Value::zero(tensor.dtype());
    if tensor.fill().same_number(zero) {
        return Ok(tensor.clone());
    }
    if tensor.format().is_all_dense() {
        // All values are stored, so the fill is never read.
        return Tensor::from_dense(tensor.shape(), tensor.to_dense()?, &tamis_ir::Format::dense(tensor.rank()), zero);
    }
    let message =
        format!("the entries that are not stored are {}, but this kind of file takes them for 0", tensor.fill());
    Err(does_not_fit(
        message,
        "write it as .bsp.npz, which says what is not stored, or convert the tensor to `dense` first",
    )
    .help("or write it as .npy, which holds every value"))
}
