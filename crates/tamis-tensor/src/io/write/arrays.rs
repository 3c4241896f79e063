//! Writer of NumPy's `.npy` arrays and SciPy's `.npz` archives.

use super::super::npy::{header_bytes, value_bytes};
use super::super::tensor::does_not_fit;
use super::{WriteOptions, with_zero_fill};
use crate::{IndexArray, Tensor, ValueArray};
use std::io::{self, Write};
use tamis_ir::diag::Result;
use tamis_ir::format::{DimExpr, Format, Leaf, LevelKind};
use tamis_ir::{DType, Value};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

/// One dense array.
pub(super) struct NpyArray {
    shape: Vec<u64>,
    values: ValueArray,
}

impl NpyArray {
    pub(super) fn new(tensor: &Tensor) -> Result<NpyArray> {
        Ok(NpyArray { shape: tensor.shape().to_vec(), values: tensor.to_dense()? })
    }

    pub(super) fn emit(&self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(&header_bytes(self.values.dtype(), &self.shape, None))?;
        out.write_all(&value_bytes(&self.values))
    }
}

/// The arrays of a sparse matrix.
pub(super) struct SparseMatrixArchive {
    format: &'static [u8],
    shape: Vec<u64>,
    members: Vec<(&'static str, Vec<u64>, ValueArray)>,
    compress: bool,
}

impl SparseMatrixArchive {
    pub(super) fn new(tensor: &Tensor, options: &WriteOptions) -> Result<SparseMatrixArchive> {
        if tensor.rank() == 0 {
            return Err(does_not_fit("SciPy's archives do not hold scalars", "write .tns or .npy"));
        }
        // pydata/sparse supports another fill, but SciPy reads the same file with fill zero.
        let tensor = with_zero_fill(tensor)?;
        let (shape, compress) = (tensor.shape().to_vec(), options.compress);
        let (format, mut members) = match layout(tensor.format()) {
            Some(columns_first) => compressed(&tensor, columns_first)?,
            None => coordinates(&tensor)?,
        };
        members.push(("_is_array", vec![], ValueArray::from(vec![true])));
        Ok(SparseMatrixArchive { format, shape, members, compress })
    }

    pub(super) fn emit(&self, out: &mut dyn Write) -> io::Result<()> {
        archive(out, self.compress, |member| {
            for (name, shape, values) in &self.members {
                let header = header_bytes(values.dtype(), shape, None);
                member(&format!("{name}.npy"), &header, &value_bytes(values))?;
            }
            // Both libraries read characters of four bytes.
            let letters: Vec<u8> = self.format.iter().flat_map(|letter| [*letter, 0, 0, 0]).collect();
            member("format.npy", &header_bytes(DType::U8, &[], Some(self.format.len())), &letters)?;
            // Sizes are at most 2^63-1.
            let sizes = ValueArray::from(self.shape.iter().map(|n| *n as i64).collect::<Vec<i64>>());
            let header = header_bytes(DType::I64, &[self.shape.len() as u64], None);
            member("shape.npy", &header, &value_bytes(&sizes))
        })
    }
}

/// A callback for the name of a member, and its bytes in two parts.
type Member<'a> = dyn FnMut(&str, &[u8], &[u8]) -> io::Result<()> + 'a;

/// Writes an archive with these members.
pub(super) fn archive(
    out: &mut dyn Write,
    compress: bool,
    members: impl FnOnce(&mut Member) -> io::Result<()>,
) -> io::Result<()> {
    let mut out = FailOnce { out, error: None };
    let mut zip = ZipWriter::new_stream(&mut out);
    let method = if compress { CompressionMethod::Deflated } else { CompressionMethod::Stored };
    members(&mut |name, header, data| {
        // A constant timestamp makes files of equal tensors equal.
        let options = SimpleFileOptions::default()
            .compression_method(method)
            .large_file(header.len() + data.len() >= u32::MAX as usize / 2)
            .last_modified_time(zip::DateTime::default());
        zip.start_file(name, options)?;
        zip.write_all(header)?;
        zip.write_all(data)
    })?;
    zip.finish()?;
    out.error.map_or(Ok(()), Err)
}

/// A writer that fails once, and then discards its input: a dropped archive tries to finish after a
/// failure, and prints to standard error if it cannot.
struct FailOnce<'a> {
    out: &'a mut dyn Write,
    error: Option<io::Error>,
}

impl Write for FailOnce<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.error.is_none() {
            self.error = self.out.write_all(bytes).err();
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

type Members = (&'static [u8], Vec<(&'static str, Vec<u64>, ValueArray)>);

/// True for compressed columns, false for compressed rows; `None` if the format is written as a
/// coordinate list.
fn layout(format: &Format) -> Option<bool> {
    let dense_or_sparse = |k: usize| {
        format.levels().get(k).is_some_and(|l| matches!(l.kind, LevelKind::Dense | LevelKind::Sparse) && !l.nonunique)
    };
    match format.map() {
        [DimExpr::Dim(0), DimExpr::Dim(1)] if dense_or_sparse(0) && dense_or_sparse(1) => Some(false),
        [DimExpr::Dim(1), DimExpr::Dim(0)] if dense_or_sparse(0) && dense_or_sparse(1) => Some(true),
        _ => None,
    }
}

fn compressed(tensor: &Tensor, columns_first: bool) -> Result<Members> {
    let format = if columns_first { Format::csc() } else { Format::csr() };
    let leaf = if tensor.values().is_none() { Leaf::Pattern } else { Leaf::Element(None) };
    let outer = tensor.shape()[usize::from(columns_first)];
    // A matrix with very many mostly empty rows would need an array of the number of rows.
    if outer > 16 * (tensor.nnz() as u64 + (1 << 16)) {
        return coordinates(tensor);
    }
    let tensor = tensor.convert(&format.with_leaf(leaf))?;
    let arrays = tensor.level_arrays(1);
    let (Some(pos), Some(crd)) = (arrays.get("pos"), arrays.get("crd")) else {
        return Err(does_not_fit("the matrix has no compressed level", "report this"));
    };
    let entries = crd.len();
    let values = tensor.values().cloned().unwrap_or_else(|| truths(entries));
    let largest = tensor.shape().iter().copied().max().unwrap_or(0).max(entries as u64);
    let members = vec![
        ("indices", vec![entries as u64], signed(crd, largest)),
        ("indptr", vec![pos.len() as u64], signed(pos, largest)),
        ("data", vec![entries as u64], values),
    ];
    Ok((if columns_first { b"csc" } else { b"csr" }, members))
}

fn coordinates(tensor: &Tensor) -> Result<Members> {
    let entries = tensor.try_to_coordinates()?;
    let count = entries.len() as u64;
    let largest = entries.shape.iter().copied().max().unwrap_or(0);
    let columns: Vec<ValueArray> = entries.columns.iter().map(|c| signed(c, largest)).collect();
    let mut members = vec![("data", vec![count], entries.values)];
    // pydata/sparse reads these members, and SciPy for other ranks than 2.
    let all: Vec<Value> = columns.iter().flat_map(|c| (0..c.len()).map(|k| c.get(k))).collect();
    let dtype = columns.first().map_or(DType::I64, ValueArray::dtype);
    members.push(("coords", vec![columns.len() as u64, count], ValueArray::from_values(&all, dtype)));
    members.push(("fill_value", vec![], ValueArray::from_values(&[tensor.fill()], tensor.dtype())));
    if let [row, col] = &columns[..] {
        members.push(("row", vec![count], row.clone()));
        members.push(("col", vec![count], col.clone()));
    }
    Ok((b"coo", members))
}

/// The numbers as signed integers, as in SciPy, in 32 bits if `largest` fits.
fn signed(numbers: &IndexArray, largest: u64) -> ValueArray {
    if largest <= i32::MAX as u64 {
        return match numbers {
            IndexArray::U32(v) => v.iter().map(|x| *x as i32).collect::<Vec<_>>().into(),
            other => (0..other.len()).map(|k| other.get(k) as i32).collect::<Vec<_>>().into(),
        };
    }
    (0..numbers.len()).map(|k| numbers.get(k) as i64).collect::<Vec<_>>().into()
}

fn truths(count: usize) -> ValueArray {
    ValueArray::Bool(vec![1; count].into())
}
