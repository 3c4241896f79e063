//! The entries of a tensor as points of its plane, in one pass over its arrays.

use super::Plane;
use tamis_ir::Value;
use tamis_ir::diag::Result;
use tamis_tensor::{Index, Tensor, ValueArray, with_indices};

/// Calls `visit` with the row and column of every stored entry on the plane of the tensor's shape.
///
/// A tensor that stores every cell would be one dark square, so that of such a tensor only the
/// entries that differ from the fill are shown.
pub(crate) fn for_each_point(tensor: &Tensor, plane: &Plane, mut visit: impl FnMut(u64, u64)) -> Result<()> {
    if tensor.format().is_all_dense() && tensor.values().is_some() {
        let values = tensor.to_dense()?;
        // One cell of the plane for each run of the dimensions that are projected away.
        let hidden: u64 = tensor.shape().iter().skip(2).product();
        let columns = plane.columns;
        for_each_other(&values, tensor.fill(), |k| {
            let cell = k as u64 / hidden.max(1);
            visit(cell / columns, cell % columns);
        });
        return Ok(());
    }
    let entries = tensor.try_to_coordinates()?;
    match entries.columns.as_slice() {
        [] => {}
        [columns] => with_indices!(columns, columns => columns.iter().for_each(|j| visit(0, j.to_u64()))),
        [rows, columns, ..] => with_indices!(rows, rows => with_indices!(columns, columns => {
            rows.iter().zip(columns.iter()).for_each(|(i, j)| visit(i.to_u64(), j.to_u64()));
        })),
    }
    Ok(())
}

/// Calls `visit` with the index of every value that is not the same number as `fill`.
fn for_each_other(values: &ValueArray, fill: Value, mut visit: impl FnMut(usize)) {
    // NaNs are one number: a NaN differs from a NaN only as a float.
    macro_rules! scan {
        ($values:expr, $fill:expr) => {{
            let fill = $fill;
            #[allow(clippy::eq_op)]
            let fill_is_nan = fill != fill;
            for (k, value) in $values.iter().enumerate() {
                #[allow(clippy::eq_op)]
                if *value != fill && !(fill_is_nan && value != value) {
                    visit(k);
                }
            }
        }};
    }
    match (values, fill) {
        (ValueArray::Bool(values), Value::Bool(fill)) => scan!(values, u8::from(fill)),
        (ValueArray::I8(values), Value::I8(fill)) => scan!(values, fill),
        (ValueArray::I16(values), Value::I16(fill)) => scan!(values, fill),
        (ValueArray::I32(values), Value::I32(fill)) => scan!(values, fill),
        (ValueArray::I64(values), Value::I64(fill)) => scan!(values, fill),
        (ValueArray::U8(values), Value::U8(fill)) => scan!(values, fill),
        (ValueArray::U16(values), Value::U16(fill)) => scan!(values, fill),
        (ValueArray::U32(values), Value::U32(fill)) => scan!(values, fill),
        (ValueArray::U64(values), Value::U64(fill)) => scan!(values, fill),
        (ValueArray::F32(values), Value::F32(fill)) => scan!(values, fill),
        (ValueArray::F64(values), Value::F64(fill)) => scan!(values, fill),
        (ValueArray::C64(values), Value::C64(fill)) => scan!(values, fill),
        (ValueArray::C128(values), Value::C128(fill)) => scan!(values, fill),
        // The fill has the type of the values; if it had not, every value would differ from it.
        (values, _) => (0..values.len()).for_each(visit),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tamis_ir::Format;

    fn points(tensor: &Tensor) -> Vec<(u64, u64)> {
        let mut found = Vec::new();
        let plane = Plane::of(tensor.shape()).unwrap();
        for_each_point(tensor, &plane, |i, j| found.push((i, j))).unwrap();
        found.sort_unstable();
        found
    }

    #[test]
    fn the_same_points_in_every_format() {
        let values: Vec<f64> = (0..24).map(|k| if k % 5 == 0 { 1.0 } else { 0.0 }).collect();
        let dense = Tensor::from_dense(&[4, 6], values.clone().into(), &Format::dense(2), Value::F64(0.0)).unwrap();
        let expected = [(0, 0), (0, 5), (1, 4), (2, 3), (3, 2)];
        assert_eq!(points(&dense), expected);
        for format in ["csr", "csc", "coo", "(i,j) -> (j,i): dense, dense"] {
            assert_eq!(points(&dense.convert(&Format::parse(format, 2).unwrap()).unwrap()), expected, "{format}");
        }
        let cube = Tensor::from_dense(&[2, 3, 4], values.into(), &Format::dense(3), Value::F64(0.0)).unwrap();
        assert_eq!(points(&cube), [(0, 0), (0, 1), (0, 2), (1, 0), (1, 2)]);
    }

    #[test]
    fn fills_that_are_not_zero() {
        let values = vec![f64::NAN, 1.0, 0.0, f64::NAN];
        let vector = Tensor::from_dense(&[4], values.into(), &Format::dense(1), Value::F64(f64::NAN)).unwrap();
        assert_eq!(points(&vector), [(0, 1), (0, 2)]);
        let bits =
            Tensor::from_dense(&[3], vec![true, false, true].into(), &Format::dense(1), Value::Bool(true)).unwrap();
        assert_eq!(points(&bits), [(0, 1)]);
    }
}
