//! Construction of tensors from file contents.

use super::{Content, FileData, FileKind, Layout, ReadOptions, ValueField, binsparse, load, read_data_from, source};
use crate::{Combine, LevelArrays, Tensor};
use std::path::Path;
use tamis_ir::diag::Result;
use tamis_ir::format::{Format, Leaf};
use tamis_ir::{Code, Diagnostic, Value};

/// Reads a tensor in the layout of the file: COO for coordinate lists, CSR or CSC for compressed
/// matrices, dense for arrays and images; with the leaf `pattern` if the file has no values.
/// Binsparse specifies its levels.
///
/// ```
/// use tamis_tensor::io::{ReadOptions, read};
/// let path = std::env::temp_dir().join(format!("tamis-doc-read-{}.tns", std::process::id()));
/// std::fs::write(&path, "1 1 1 2.5\n2 3 4 -1\n").unwrap();
/// let tensor = read(&path, &ReadOptions::default()).unwrap();
/// assert_eq!(tensor.shape(), [2, 3, 4]);
/// assert_eq!(tensor.nnz(), 2);
/// std::fs::remove_file(&path).unwrap();
/// ```
pub fn read(path: impl AsRef<Path>, options: &ReadOptions) -> Result<Tensor> {
    let path = path.as_ref();
    if FileKind::of(path)? == FileKind::Binsparse {
        // Plain data cannot represent its levels.
        let (bytes, _) = source::open(path)?;
        return options.in_pool(|| binsparse::read(&path.display().to_string(), &bytes, options));
    }
    let data = load(path, options, false)?;
    data.into_tensor(options.duplicates).map_err(|diagnostic| {
        if diagnostic.code == Code::E0708
            && let Err(with_line) = load(path, options, true)
        {
            return with_line;
        }
        diagnostic.in_file(path.display().to_string())
    })
}

/// Reads a tensor from the bytes of a file in memory; `name` determines its kind, and appears in
/// diagnostics.
///
/// ```
/// use tamis_ir::Value;
/// use tamis_tensor::io::{ReadOptions, read_from};
/// let a = read_from("a.tns", b"1 1 4.0\n2 3 -1.0\n", &ReadOptions::default())?;
/// assert_eq!((a.nnz(), a.get(&[1, 2])), (2, Some(Value::F64(-1.0))));
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
pub fn read_from(name: &str, bytes: &[u8], options: &ReadOptions) -> Result<Tensor> {
    if FileKind::of(name)? == FileKind::Binsparse {
        let (bytes, _) = source::wrap(name, bytes)?;
        return options.in_pool(|| binsparse::read(name, &bytes, options));
    }
    let data = read_data_from(name, bytes, options)?;
    data.into_tensor(options.duplicates).map_err(|diagnostic| diagnostic.in_file(name))
}

impl FileData {
    /// The format that corresponds to the layout of the file.
    ///
    /// ```
    /// use tamis_ir::Format;
    /// use tamis_tensor::io::{ReadOptions, read_data_from};
    /// let data = read_data_from("a.tns", b"1 1 4.0\n2 3 -1.0\n", &ReadOptions::default())?;
    /// assert_eq!(data.natural_format(), Format::coo(2));
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn natural_format(&self) -> Format {
        let rank = self.content.shape().len();
        let format = match (&self.content, self.header.layout) {
            (Content::Dense { .. }, _) => Format::dense(rank),
            (_, Layout::Rows) if rank == 2 => Format::csr(),
            (_, Layout::Columns) if rank == 2 => Format::csc(),
            _ => Format::coo(rank),
        };
        match self.header.field {
            ValueField::Pattern => format.with_leaf(Leaf::Pattern),
            _ => format,
        }
    }

    /// The tensor in its natural format; duplicates are combined by `duplicates`.
    ///
    /// ```
    /// use tamis_ir::Value;
    /// use tamis_tensor::Combine;
    /// use tamis_tensor::io::{ReadOptions, read_data_from};
    /// # let options = ReadOptions { duplicates: Combine::Sum, ..ReadOptions::default() };
    /// let data = read_data_from("a.tns", b"1 1 4.0\n1 1 0.5\n", &options)?;
    /// assert_eq!(data.into_tensor(Combine::Sum)?.get(&[0, 0]), Some(Value::F64(4.5)));
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn into_tensor(self, duplicates: Combine) -> Result<Tensor> {
        let format = self.natural_format();
        let fill = self.fill.unwrap_or(Value::zero(self.content.values().dtype()));
        match self.content {
            Content::Coordinates(coordinates) if coordinates.shape.is_empty() && coordinates.is_empty() => {
                Ok(Tensor::scalar(fill))
            }
            Content::Coordinates(coordinates) => {
                let combine = match (duplicates, format.leaf()) {
                    // Duplicates in a pattern are equal: one is kept.
                    (Combine::Error, _) | (_, Leaf::Element(_)) => duplicates,
                    _ => Combine::Any,
                };
                Tensor::from_coordinates(&coordinates, &format, fill, combine)
            }
            Content::Compressed { shape, pos, crd, values, .. } => {
                let inner = LevelArrays::new([("pos", pos), ("crd", crd)]);
                let values = (format.leaf() != Leaf::Pattern).then_some(values);
                Tensor::from_parts(&shape, &format, vec![LevelArrays::default(), inner], values, fill)
            }
            Content::Dense { shape, values } => Tensor::from_dense(&shape, values, &format, fill),
        }
    }
}

/// The diagnostic for a tensor that a kind of file cannot represent.
#[cold]
pub(super) fn does_not_fit(message: impl Into<String>, help: impl Into<String>) -> Diagnostic {
    Diagnostic::new(Code::E0813, message).help(help)
}
