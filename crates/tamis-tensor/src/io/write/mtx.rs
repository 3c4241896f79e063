//! Writer of Matrix Market files.

use super::super::Symmetry;
use super::super::tensor::does_not_fit;
use super::text::{push_integer, push_value, write_comments, write_lines};
use super::{WriteOptions, kinds_for, with_zero_fill};
use crate::{IndexArray, Tensor, ValueArray, bisect};
use std::io::{self, Write};
use tamis_ir::diag::Result;
use tamis_ir::{DType, Kind, Value};

/// A matrix ready to be written.
pub(super) struct MtxJob {
    shape: [u64; 2],
    field: &'static str,
    symmetry: Symmetry,
    comments: Vec<String>,
    body: MtxBody,
}

enum MtxBody {
    /// Every value, by rows.
    Array(ValueArray),
    /// Entries in file order, by their coordinates.
    Entries { rows: IndexArray, columns: Option<IndexArray>, values: ValueArray, chosen: Option<Vec<usize>> },
}

impl MtxJob {
    pub(super) fn new(tensor: &Tensor, options: &WriteOptions) -> Result<MtxJob> {
        let shape = match tensor.shape() {
            [rows, columns] => [*rows, *columns],
            [length] => [*length, 1],
            _ => {
                let message = format!("Matrix Market holds matrices, not tensors of rank {}", tensor.rank());
                return Err(does_not_fit(message, format!("write {}", kinds_for(tensor))));
            }
        };
        let comments = options.comments.clone();
        let symmetry = options.symmetry;
        if tensor.format().is_all_dense() && tensor.values().is_some() && symmetry == Symmetry::General {
            let values = tensor.to_dense()?;
            let field = field_of(values.dtype());
            return Ok(MtxJob { shape, field, symmetry, comments, body: MtxBody::Array(values) });
        }
        let entries = with_zero_fill(tensor)?.try_to_coordinates()?;
        let values = entries.values;
        let field = match &values {
            ValueArray::Bool(v) if v.iter().all(|b| *b != 0) => "pattern",
            values => field_of(values.dtype()),
        };
        let mut columns = entries.columns.into_iter();
        let (Some(rows), columns) = (columns.next(), columns.next()) else {
            return Err(does_not_fit("the matrix has no coordinates", "report this"));
        };
        let chosen = match (symmetry, &columns) {
            (Symmetry::General, _) => None,
            (_, Some(columns)) if shape[0] == shape[1] => {
                Some(lower_triangle(&rows, columns, &values, symmetry, field)?)
            }
            _ => {
                let message = format!("a {} by {} matrix is not {}", shape[0], shape[1], symmetry.name());
                return Err(does_not_fit(message, "write it as `general`"));
            }
        };
        Ok(MtxJob { shape, field, symmetry, comments, body: MtxBody::Entries { rows, columns, values, chosen } })
    }

    pub(super) fn emit(&self, out: &mut dyn Write) -> io::Result<()> {
        let format = if matches!(self.body, MtxBody::Array(_)) { "array" } else { "coordinate" };
        writeln!(out, "%%MatrixMarket matrix {format} {} {}", self.field, self.symmetry.name())?;
        write_comments(out, "%", &self.comments)?;
        let [height, width] = self.shape;
        match &self.body {
            MtxBody::Array(values) => {
                writeln!(out, "{height} {width}")?;
                // The values are in memory, so both sizes fit, unless there are no values.
                let (height, width) = (height as usize, width as usize);
                write_lines(out, values.len(), |line, k| {
                    push_value(line, values, k % height * width + k / height);
                    line.push(b'\n');
                })
            }
            MtxBody::Entries { rows, columns, values, chosen } => {
                let count = chosen.as_ref().map_or(values.len(), Vec::len);
                writeln!(out, "{height} {width} {count}")?;
                write_lines(out, count, |line, k| {
                    let k = chosen.as_ref().map_or(k, |chosen| chosen[k]);
                    push_integer(line, rows.get(k) + 1);
                    line.push(b' ');
                    push_integer(line, columns.as_ref().map_or(1, |c| c.get(k) + 1));
                    if self.field != "pattern" {
                        line.push(b' ');
                        push_value(line, values, k);
                    }
                    line.push(b'\n');
                })
            }
        }
    }
}

fn field_of(dtype: DType) -> &'static str {
    match dtype.kind() {
        // Only these may exceed signed 64-bit integers.
        Kind::Int if dtype == DType::U64 => "unsigned-integer",
        Kind::Int | Kind::Bool => "integer",
        Kind::Float => "real",
        Kind::Complex => "complex",
    }
}

/// The entries on and below the diagonal, after a check that those above mirror them. Entries are
/// sorted by row, then column.
fn lower_triangle(
    rows: &IndexArray,
    columns: &IndexArray,
    values: &ValueArray,
    symmetry: Symmetry,
    field: &str,
) -> Result<Vec<usize>> {
    let broken = |i: u64, j: u64| {
        let message = format!("the matrix is not {}: see ({i}, {j}) and ({j}, {i})", symmetry.name());
        Err(does_not_fit(message, "write it as `general`"))
    };
    if symmetry == Symmetry::SkewSymmetric && matches!(field, "pattern" | "unsigned-integer") {
        let message = format!("a `{field}` matrix has no negative values, so it cannot be skew-symmetric");
        return Err(does_not_fit(message, "write it as `symmetric` or `general`"));
    }
    let symmetry_written = symmetry;
    let mirrored = |value: Value| -> Option<Value> {
        Some(match (symmetry_written, value) {
            (Symmetry::SkewSymmetric, Value::C64(c)) => Value::C64(-c),
            (Symmetry::SkewSymmetric, Value::C128(c)) => Value::C128(-c),
            (Symmetry::SkewSymmetric, Value::F32(x)) => Value::F32(-x),
            (Symmetry::SkewSymmetric, Value::F64(x)) => Value::F64(-x),
            (Symmetry::SkewSymmetric, value) => Value::I64(value.as_i64()?.checked_neg()?).cast_exact(value.dtype())?,
            (Symmetry::Hermitian, Value::C64(c)) => Value::C64(c.conj()),
            (Symmetry::Hermitian, Value::C128(c)) => Value::C128(c.conj()),
            (_, value) => value,
        })
    };
    let mut chosen = Vec::new();
    let mut above = 0usize;
    for k in 0..values.len() {
        let (i, j) = (rows.get(k), columns.get(k));
        if i < j {
            above += 1;
            continue;
        }
        let value = values.get(k);
        let partner = if i == j { Some(k) } else { find(rows, columns, j, i) };
        let fits = partner.is_some_and(|p| mirrored(value).is_some_and(|m| m.same_number(values.get(p))));
        if !fits || (i == j && symmetry == Symmetry::SkewSymmetric && value.is_truthy()) {
            return broken(i, j);
        }
        if i > j {
            above = above.wrapping_sub(1);
        }
        if !(i == j && symmetry == Symmetry::SkewSymmetric) {
            chosen.push(k);
        }
    }
    if above != 0 {
        // An entry above the diagonal has no counterpart below it.
        let lonely = (0..values.len()).find(|k| {
            let (i, j) = (rows.get(*k), columns.get(*k));
            i < j && find(rows, columns, j, i).is_none()
        });
        return lonely.map_or(Ok(chosen), |k| broken(rows.get(k), columns.get(k)));
    }
    Ok(chosen)
}

/// The entry at (i,j), by bisection.
fn find(rows: &IndexArray, columns: &IndexArray, i: u64, j: u64) -> Option<usize> {
    let at = |k: usize| (rows.get(k), columns.get(k));
    let found = bisect(rows.len() as u64, |k| at(k as usize) < (i, j)) as usize;
    (found < rows.len() && at(found) == (i, j)).then_some(found)
}
