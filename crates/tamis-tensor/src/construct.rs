//! Construction of tensors from coordinates, dense arrays and scalars, with all checks of user
//! input.

use crate::convert::{self, EntryColumns, axes, numbers, reorder, sort};
use crate::levels::tree;
use crate::memory::product;
use crate::{Combine, Coordinates, Index, IndexArray, Tensor, ValueArray, with_indices};
use tamis_ir::format::{DimExpr, Format, Leaf};
use tamis_ir::{Code, DType, Diagnostic, Value, diag::Result};

impl Tensor {
    /// A tensor of entries in any order.
    ///
    /// The value type is that of the entries (`bool` for leaf `pattern`, which keeps the nonzero
    /// entries). Entries are sorted, and duplicates are combined by `combine`; entries that equal
    /// the fill stay stored. `fill` must be a number of the value type.
    ///
    /// ```
    /// use tamis_ir::{Format, Value};
    /// use tamis_tensor::{Combine, Coordinates, Tensor};
    /// let entries = Coordinates {
    ///     shape: vec![2, 2],
    ///     columns: vec![vec![1u32, 0, 1].into(), vec![1u32, 0, 1].into()],
    ///     values: vec![4.0, 1.0, 0.5].into(),
    /// };
    /// let a = Tensor::from_coordinates(&entries, &Format::csr(), Value::F64(0.0), Combine::Sum)?;
    /// assert_eq!((a.nnz(), a.get(&[1, 1])), (2, Some(Value::F64(4.5))));
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn from_coordinates(entries: &Coordinates, format: &Format, fill: Value, combine: Combine) -> Result<Tensor> {
        let shape = &entries.shape;
        check_shape(shape, format)?;
        check_columns(entries)?;
        check_booleans(&entries.values)?;
        let dtype = entries.values.dtype();
        numbers::check_combine(combine, dtype)?;
        let fill = match format.leaf() {
            Leaf::Pattern => check_fill(Leaf::Pattern, DType::Bool, fill)?,
            leaf => check_fill(leaf, dtype, fill)?,
        };
        let axes = convert::build_axes(format);
        let columns = axes::store(&axes, &entries.columns, shape)?;
        let found = sort::order(&columns.iter().collect::<Vec<_>>(), entries.len());
        let given = EntryColumns::from_columns(axes, columns, Some(entries.values.clone()), entries.len());
        let (sorted, found) = match found {
            sort::Order::Unsorted => reorder::sort_unsorted(given, shape)?,
            found => (given, found),
        };
        let distinct = match found {
            sort::Order::Increasing => sorted,
            _ => combined(sorted, combine, entries)?,
        };
        convert::build(format, shape, fill, distinct)
    }

    /// A tensor of all values in row-major order; values that differ from the fill are stored.
    ///
    /// ```
    /// use tamis_ir::{Format, Value};
    /// use tamis_tensor::Tensor;
    /// let x = Tensor::from_dense(&[4], vec![7i64, 7, 1, 7].into(), &Format::parse("sparse", 1)?, Value::I64(7))?;
    /// assert_eq!(x.level_arrays(0).get("crd").unwrap().to_vec(), [2]);
    /// # Ok::<(), tamis_ir::Diagnostic>(())
    /// ```
    pub fn from_dense(shape: &[u64], values: ValueArray, format: &Format, fill: Value) -> Result<Tensor> {
        check_shape(shape, format)?;
        let count = shape.iter().try_fold(1, |count, n| product(count, *n))?;
        if values.len() != count {
            let message = format!("{} values are given for the {count} coordinates of shape {shape:?}", values.len());
            return Err(Diagnostic::new(Code::E0701, message).help(format!("give {count} values, row by row")));
        }
        check_booleans(&values)?;
        let fill = match format.leaf() {
            Leaf::Pattern => check_fill(Leaf::Pattern, DType::Bool, fill)?.cast(values.dtype()),
            leaf => check_fill(leaf, values.dtype(), fill)?,
        };
        let dense = Format::dense(shape.len());
        let levels = tree::from_arrays(dense.levels(), shape, vec![Default::default(); shape.len()])?;
        Tensor::new(dense, shape, fill, levels, Some(values))?.convert(format)
    }

    /// A tensor of rank 0, with fill zero.
    ///
    /// ```
    /// use tamis_ir::Value;
    /// use tamis_tensor::Tensor;
    /// let alpha = Tensor::scalar(Value::F64(0.85));
    /// assert_eq!(alpha.get(&[]), Some(Value::F64(0.85)));
    /// ```
    pub fn scalar(value: Value) -> Tensor {
        let values = ValueArray::from_values(&[value], value.dtype());
        match Tensor::new(Format::dense(0), &[], Value::zero(value.dtype()), Vec::new(), Some(values)) {
            Ok(tensor) => tensor,
            Err(d) => panic!("a scalar is always representable: {d}"),
        }
    }
}

/// Combines duplicates, which are adjacent.
fn combined(sorted: EntryColumns, combine: Combine, given: &Coordinates) -> Result<EntryColumns> {
    let columns = sorted.columns()?;
    let views: Vec<&IndexArray> = columns.iter().collect();
    let starts = numbers::group_starts(&views, sorted.len)?;
    if starts.len() == sorted.len {
        return Ok(sorted);
    }
    if combine == Combine::Error {
        return Err(duplicate(&sorted.axes, &columns, &starts, given));
    }
    let values = sorted.values.as_ref().map(|values| numbers::combine(values, &starts, combine)).transpose()?;
    let places: IndexArray = starts.iter().map(|s| *s as u64).collect::<Vec<u64>>().into();
    let columns = columns.iter().map(|c| sort::gather_indices(c, &places)).collect::<Result<Vec<_>>>()?;
    Ok(EntryColumns::from_columns(sorted.axes, columns, values, starts.len()))
}

/// The diagnostic for duplicate coordinates, with their location.
fn duplicate(axes: &[DimExpr], columns: &[IndexArray], starts: &[usize], given: &Coordinates) -> Diagnostic {
    let at = starts.iter().enumerate().find(|(k, start)| k != *start).map_or(starts.len(), |(k, _)| k);
    let stored: Vec<u64> = columns.iter().map(|column| column.get(at)).collect();
    let mut tuple = vec![0; given.shape.len()];
    tamis_ir::format::map::restore(axes, &given.shape, &stored, &mut tuple);
    let equal = |e: &usize| given.columns.iter().zip(&tuple).all(|(column, c)| column.get(*e) == *c);
    let places: Vec<String> = (0..given.len()).filter(equal).take(2).map(|e| e.to_string()).collect();
    let coordinates: Vec<String> = tuple.iter().map(u64::to_string).collect();
    let message = format!("entries {} have the same coordinates ({})", places.join(" and "), coordinates.join(", "));
    Diagnostic::new(Code::E0708, message)
        .help("choose how to combine them: sum, prod, min, max, any, all, first or last; for example `Combine::Sum`")
}

/// Checks the rank and every size; returns the size of each level.
pub(crate) fn check_shape(shape: &[u64], format: &Format) -> Result<Vec<u64>> {
    if format.rank() != shape.len() {
        return Err(convert::wrong_rank(format, shape.len()));
    }
    match shape.iter().position(|n| *n > i64::MAX as u64) {
        Some(d) => Err(Diagnostic::new(Code::E0404, format!("dimension {d} has size {}, more than 2^63-1", shape[d]))
            .help("a dimension has at most 9223372036854775807 coordinates")),
        None => format.level_extents(shape),
    }
}

fn check_columns(entries: &Coordinates) -> Result<()> {
    let (rank, len) = (entries.shape.len(), entries.len());
    if entries.columns.len() != rank {
        let message = format!("{} columns of coordinates are given for {rank} dimensions", entries.columns.len());
        return Err(Diagnostic::new(Code::E0701, message).help(format!("give {rank} columns, one for each dimension")));
    }
    for (d, (column, extent)) in entries.columns.iter().zip(&entries.shape).enumerate() {
        if column.len() != len {
            let message = format!("{} coordinates are given in dimension {d} for {len} values", column.len());
            return Err(Diagnostic::new(Code::E0701, message).help("give one coordinate per dimension for each value"));
        }
        let outside = (column.largest() >= Some(*extent)).then(|| {
            with_indices!(column, column => {
                column.iter().position(|c| c.to_u64() >= *extent).map(|e| (e, column[e].to_u64()))
            })
        });
        if let Some((e, c)) = outside.flatten() {
            let message = format!("entry {e} has coordinate {c} in dimension {d}, whose size is {extent}");
            return Err(Diagnostic::new(Code::E0703, message)
                .help(format!("coordinates in dimension {d} are in 0..{extent}; correct it, or enlarge the shape")));
        }
    }
    Ok(())
}

/// Checks that booleans are stored as 0 and 1, on which compiled code relies.
pub(crate) fn check_booleans(values: &ValueArray) -> Result<()> {
    match values {
        ValueArray::Bool(bytes) if bytes.iter().any(|byte| *byte > 1) => {
            let at = bytes.iter().position(|byte| *byte > 1).unwrap_or(0);
            Err(Diagnostic::new(Code::E0709, format!("value {at} is the byte {}, which is not a boolean", bytes[at]))
                .help("store booleans as the bytes 0 and 1, or give the values as u8"))
        }
        _ => Ok(()),
    }
}

/// Checks the fill: a value of the tensor's type that agrees with the leaf.
pub(crate) fn check_fill(leaf: Leaf, dtype: DType, fill: Value) -> Result<Value> {
    if leaf == Leaf::Pattern {
        return if fill.is_truthy() {
            Err(Diagnostic::new(
                Code::E0709,
                format!("a pattern is false at unstored elements, so its fill cannot be {fill}"),
            )
            .help("use the fill `False`, or the leaf `element`"))
        } else {
            Ok(Value::Bool(false))
        };
    }
    let Some(exact) = fill.cast_exact(dtype) else {
        return Err(Diagnostic::new(Code::E0709, format!("the fill {fill} is not a number of type {dtype}")).help(
            format!(
                "use a fill that {dtype} holds exactly, such as {}, or values of type {}",
                fill.cast(dtype),
                fill.dtype()
            ),
        ));
    };
    match leaf {
        Leaf::Element(Some(written)) if !written.cast_exact(dtype).is_some_and(|w| w.same_number(exact)) => {
            Err(another_fill(written, fill))
        }
        _ => Ok(exact),
    }
}

/// The diagnostic for a format with another fill than the tensor's.
pub(crate) fn another_fill(written: Value, fill: Value) -> Diagnostic {
    Diagnostic::new(Code::E0709, format!("the format specifies the fill {written}, but the tensor's fill is {fill}"))
        .note("changing the fill would change every unstored value")
        .help("remove the fill from the format to keep the tensor's own")
        .help(format!("or write `element({fill})`"))
}
