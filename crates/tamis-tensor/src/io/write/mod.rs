//! Files written: aside first, then renamed, so that a failure leaves the old file as it was.

mod arrays;
mod image;
mod mtx;
mod text;
mod tns;

use super::tensor::does_not_fit;
use super::{FileKind, Symmetry, gzip_name};
use crate::Tensor;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use tamis_ir::diag::Result;
use tamis_ir::{Code, Diagnostic, Value};

/// How a file is to be written.
///
/// ```
/// use tamis_tensor::io::{Symmetry, WriteOptions};
/// let options = WriteOptions { symmetry: Symmetry::Symmetric, ..WriteOptions::default() };
/// assert!(options.compress);
/// ```
#[derive(Clone, Debug)]
pub struct WriteOptions {
    /// Matrix Market: write one triangle, and say so in the header. A tensor that is not so is refused.
    pub symmetry: Symmetry,
    /// FROSTT: write MLIR's header of rank, entries and sizes, without which trailing empty slices are lost.
    /// It is written in any case if there are no entries, since nothing would be left otherwise.
    pub header: bool,
    /// Archives (`.npz`): compress their members.
    pub compress: bool,
    /// Matrix Market and FROSTT: comments for the beginning of the file, one line each.
    pub comments: Vec<String>,
}

impl Default for WriteOptions {
    fn default() -> WriteOptions {
        WriteOptions { symmetry: Symmetry::General, header: false, compress: true, comments: Vec::new() }
    }
}

/// Writes a tensor; the kind of file is known by its extension, and `.gz` compresses it.
///
/// | kind | tensors | how |
/// |---|---|---|
/// | `.mtx` | matrices, and vectors as one column | `array` if dense, else `coordinate`; `pattern`, `integer`, `unsigned-integer` (`u64`), `real`, `complex` |
/// | `.tns` | any rank, not complex | stored entries |
/// | `.npz` | rank 1 and up | as `scipy.sparse.load_npz` reads it: csr, csc or coo |
/// | `.npy` | any | dense |
/// | `.pbm`, `.pgm` | matrices of `bool`; of `u8` or `u16` | P4; P5 |
///
/// Floats are written in the shortest form that reads back as the same number; `f32` as the double it equals.
pub fn write(path: impl AsRef<Path>, tensor: &Tensor, options: &WriteOptions) -> Result<()> {
    let path = path.as_ref();
    let kind = FileKind::of(path)?;
    let name = path.display().to_string();
    image::check_extension(path, kind, tensor).map_err(|d| d.in_file(&name))?;
    let work = Prepared::new(kind, tensor, options).map_err(|d| d.in_file(&name))?;
    let failed = |error: io::Error| cannot_write(&name, &error);
    let gzip = gzip_name(&name.to_ascii_lowercase()).is_some();
    let body = |file: &mut dyn Write| -> io::Result<()> {
        if gzip {
            let mut encoder = GzEncoder::new(file, Compression::default());
            work.emit(&mut encoder)?;
            encoder.finish()?.flush()
        } else {
            work.emit(file)?;
            file.flush()
        }
    };
    // Renaming onto a link would replace the link, not the file that it names.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    match fs::metadata(&target) {
        Ok(metadata) if metadata.is_dir() => Err(Diagnostic::new(Code::E0811, format!("`{name}` is a directory"))
            .in_file(&name)
            .help("name a file in it")),
        // A pipe or a device is not to be replaced by a file.
        Ok(metadata) if !metadata.is_file() => {
            let file = File::options().write(true).open(&target).map_err(failed)?;
            body(&mut BufWriter::with_capacity(1 << 18, file)).map_err(failed)
        }
        existing => aside(&target, existing.ok().map(|m| m.permissions()), &body).map_err(failed),
    }
}

/// Writes a tensor to anything, such as standard output, as this kind of file.
///
/// ```
/// use tamis_ir::Value;
/// use tamis_tensor::{Tensor, io::{FileKind, WriteOptions, write_to}};
/// let mut out = Vec::new();
/// write_to(FileKind::Frostt, &mut out, &Tensor::scalar(Value::I64(7)), &WriteOptions::default()).unwrap();
/// assert_eq!(out, b"7\n");
/// ```
pub fn write_to(kind: FileKind, out: &mut dyn Write, tensor: &Tensor, options: &WriteOptions) -> Result<()> {
    let work = Prepared::new(kind, tensor, options)?;
    work.emit(out).and_then(|()| out.flush()).map_err(|error| cannot_write("the output", &error))
}

/// Everything that can be refused has been when this exists: only the operating system can still fail.
enum Prepared {
    MatrixMarket(mtx::Job),
    Frostt(tns::Job),
    Archive(arrays::Archive),
    Array(arrays::Array),
    Image(image::Job),
}

impl Prepared {
    fn new(kind: FileKind, tensor: &Tensor, options: &WriteOptions) -> Result<Prepared> {
        if !kind.is_writable() {
            let message = format!(".{} files are read, but not written", kind.extension());
            return Err(does_not_fit(message, format!("write {} instead", kinds_for(tensor))));
        }
        Ok(match kind {
            FileKind::MatrixMarket => Prepared::MatrixMarket(mtx::Job::new(tensor, options)?),
            FileKind::Frostt => Prepared::Frostt(tns::Job::new(tensor, options)?),
            FileKind::ScipyArchive => Prepared::Archive(arrays::Archive::new(tensor, options)?),
            FileKind::Image => Prepared::Image(image::Job::new(tensor)?),
            _ => Prepared::Array(arrays::Array::new(tensor)?),
        })
    }

    fn emit(&self, out: &mut dyn Write) -> io::Result<()> {
        match self {
            Prepared::MatrixMarket(job) => job.emit(out),
            Prepared::Frostt(job) => job.emit(out),
            Prepared::Archive(job) => job.emit(out),
            Prepared::Array(job) => job.emit(out),
            Prepared::Image(job) => job.emit(out),
        }
    }
}

/// The kinds that hold such a tensor, for a help text.
fn kinds_for(tensor: &Tensor) -> &'static str {
    match (tensor.rank(), tensor.dtype().kind()) {
        (0, tamis_ir::Kind::Complex) => ".npy",
        (0, _) => ".tns or .npy",
        (1 | 2, _) => ".mtx, .npz or .npy",
        (_, tamis_ir::Kind::Complex) => ".npz or .npy",
        _ => ".tns, .npz or .npy",
    }
}

/// Files of entries leave zeros out, so what is not stored must be zero.
fn with_zero_fill(tensor: &Tensor) -> Result<Tensor> {
    let zero = Value::zero(tensor.dtype());
    if tensor.fill().same_number(zero) {
        return Ok(tensor.clone());
    }
    if tensor.format().is_all_dense() {
        // Nothing is left out, so nothing reads the fill.
        return Tensor::from_dense(tensor.shape(), tensor.to_dense()?, &tamis_ir::Format::dense(tensor.rank()), zero);
    }
    let message =
        format!("the entries that are not stored are {}, but this kind of file takes them for 0", tensor.fill());
    Err(does_not_fit(message, "convert the tensor to `dense` first")
        .help("or write it as .npy, which holds every value"))
}

/// Writes to a new file beside the target, and renames it when all is safely on disk.
fn aside(
    target: &Path,
    permissions: Option<fs::Permissions>,
    body: &dyn Fn(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let directory = match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_path_buf(),
        _ => PathBuf::from("."),
    };
    let mut builder = tempfile::Builder::new();
    builder.prefix(".tamis-").suffix(".part");
    #[cfg(unix)]
    if permissions.is_none() {
        use std::os::unix::fs::PermissionsExt;
        // What any new file has; the user's mask is taken off by the system.
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    let mut file = builder.tempfile_in(directory)?;
    let mut buffered = BufWriter::with_capacity(1 << 18, file.as_file_mut());
    body(&mut buffered)?;
    buffered.flush()?;
    drop(buffered);
    if let Some(permissions) = permissions {
        file.as_file().set_permissions(permissions)?;
    }
    file.as_file().sync_all()?;
    file.persist(target).map_err(|error| error.error)?;
    Ok(())
}

fn cannot_write(name: &str, error: &io::Error) -> Diagnostic {
    let help = match error.kind() {
        io::ErrorKind::NotFound => "create the directory first",
        io::ErrorKind::PermissionDenied => "choose a directory that you may write to",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "make room, or choose another disk",
        _ => "check that the directory exists, may be written to, and has room",
    };
    // The error's own text may name the file aside, which means nothing to the user.
    let reason = error.kind();
    Diagnostic::new(Code::E0811, format!("`{name}` cannot be written: {reason}"))
        .in_file(name)
        .note("if the file existed before, it is unchanged")
        .help(help)
}
