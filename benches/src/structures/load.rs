//! Matrices of the case studies: files of the shared data, gallery calls, and parts of them.

use tamis::io::{ReadOptions, read};
use tamis::tensor::{Combine, Coordinates, IndexArray, ValueArray};
use tamis::{DType, Diagnostic, Format, Tensor, Value, gallery};

/// The data folder: `TAMIS_DATA`, or next to the project.
pub fn data(folder: &str, name: &str) -> std::path::PathBuf {
    let root = std::env::var_os("TAMIS_DATA").map_or_else(|| "../shared/data".into(), std::path::PathBuf::from);
    root.join(folder).join(name)
}

/// The entries of a file or of a gallery call, as f64. Pattern files get pseudo-random values, the
/// same for both triangles.
pub fn matrix(name: &str) -> Result<Coordinates, String> {
    let entries = if gallery::is_call(name) {
        rendered(gallery::generate(name))?
    } else {
        let places = [name.into(), data("matrices", name), data("images", name)];
        let path = places.into_iter().find(|path| path.exists()).unwrap_or_else(|| data("matrices", name));
        let entries = rendered(read(&path, &ReadOptions::default()).and_then(|tensor| tensor.try_to_coordinates()))?;
        // Images store every pixel; only ink is kept.
        match path.starts_with(data("images", "")) {
            true => kept(&entries, |k| entries.values.get(k).is_truthy()),
            false => entries,
        }
    };
    if entries.values.dtype() == DType::Bool {
        return Ok(weights(&entries));
    }
    Ok(Coordinates { values: entries.values.to_dtype(DType::F64), ..entries })
}

/// The same pattern, with all values 1.
pub fn ones(entries: &Coordinates) -> Coordinates {
    Coordinates { values: vec![1.0; entries.len()].into(), ..entries.clone() }
}

/// The entries whose coordinates satisfy a predicate.
pub fn only(entries: &Coordinates, wanted: impl Fn(u64, u64) -> bool) -> Coordinates {
    kept(entries, |k| wanted(entries.columns[0].get(k), entries.columns[1].get(k)))
}

/// The entries whose positions satisfy a predicate.
fn kept(entries: &Coordinates, wanted: impl Fn(usize) -> bool) -> Coordinates {
    let kept: Vec<usize> = (0..entries.len()).filter(|k| wanted(*k)).collect();
    let column = |dim: usize| -> IndexArray {
        kept.iter().map(|k| entries.columns[dim].get(*k) as u32).collect::<Vec<u32>>().into()
    };
    let values: Vec<Value> = kept.iter().map(|k| entries.values.get(*k)).collect();
    Coordinates {
        shape: entries.shape.clone(),
        columns: vec![column(0), column(1)],
        values: ValueArray::from_values(&values, entries.values.dtype()),
    }
}

/// A tensor of these entries in the named format; with the leaf `pattern`, of their pattern.
pub fn tensor(entries: &Coordinates, format: &str) -> Result<Tensor, String> {
    let format = rendered(Format::parse(format, entries.shape.len()))?;
    if matches!(format.leaf(), tamis_ir::format::Leaf::Pattern) {
        let places = Coordinates { values: vec![true; entries.len()].into(), ..entries.clone() };
        return rendered(Tensor::from_coordinates(&places, &format, Value::Bool(false), Combine::Error));
    }
    let fill = Value::zero(entries.values.dtype());
    rendered(Tensor::from_coordinates(entries, &format, fill, Combine::Error))
}

/// A diagnostic as text.
pub fn rendered<T>(result: Result<T, Diagnostic>) -> Result<T, String> {
    result.map_err(|d| d.render(false))
}

/// The same edges with weights between 1/2 and 3/2.
pub fn weights(entries: &Coordinates) -> Coordinates {
    let values: Vec<f64> =
        (0..entries.len()).map(|k| drawn(entries.columns[0].get(k), entries.columns[1].get(k))).collect();
    Coordinates { values: values.into(), ..entries.clone() }
}

/// A number between 1/2 and 3/2 for a coordinate pair, symmetric.
fn drawn(i: u64, j: u64) -> f64 {
    let (i, j) = (i.min(j), i.max(j));
    let mixed = (i.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ j).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 31)).wrapping_mul(0x94D0_49BB_1331_11EB);
    0.5 + (mixed >> 11) as f64 / (1u64 << 53) as f64
}
