//! Tests of array descriptions: every array of every level has the length, the width and the
//! guarantees that the level declares.

use tamis_ir::format::{Format, LevelSpec};
use tamis_ir::{Code, Value};
use tamis_tensor::Tensor;
use tamis_tensor::levels::{ArrayRole, Children, LEVELS, level_type};

/// Formats of matrices in which every level appears, also below and above others.
const FORMATS: [&str; 17] = [
    "dense, dense",
    "csr",
    "dcsr",
    "dense, hash",
    "coo",
    "dense, singleton",
    "dense, runs",
    "runs, runs",
    "dense, sparse_runs",
    "sparse_runs, sparse",
    "dense, interval",
    "interval, dense",
    "dense, blocks",
    "blocks, sparse",
    "dense, band",
    "band, blocks",
    "bytemap, bytemap",
];

/// Matrices with an element in each row, with repeated rows, and without any coordinates.
fn matrices() -> Vec<(Vec<u64>, Vec<f64>)> {
    vec![
        (vec![3, 3], vec![0.0, 1.0, 0.0, 2.0, 0.0, 0.0, 0.0, 0.0, 3.0]),
        (vec![4, 2], vec![1.0, 0.0, 1.0, 0.0, 0.0, 5.0, 0.0, 5.0]),
        (vec![2, 2], vec![1.0, 2.0, 1.0, 2.0]),
        (vec![1, 1], vec![7.0]),
        (vec![3, 0], vec![]),
        (vec![0, 3], vec![]),
    ]
}

#[test]
fn arrays_are_as_declared() {
    let (mut seen, mut stored_in) = (Vec::new(), Vec::new());
    for text in FORMATS {
        let format = Format::parse(text, 2).unwrap();
        for (shape, values) in matrices() {
            let tensor = match Tensor::from_dense(&shape, values.clone().into(), &format, Value::F64(0.0)) {
                Ok(tensor) => tensor,
                // A singleton needs a coordinate in each fiber, an interval at most one run.
                Err(d) => {
                    assert_eq!(d.code, Code::E0707, "{text} {shape:?}");
                    continue;
                }
            };
            stored_in.push(text);
            let extents = tensor.format().level_extents(&shape).unwrap();
            let mut parents = 1;
            for (k, level) in tensor.levels().iter().enumerate() {
                let row = level_type(tensor.format().levels()[k].kind).unwrap();
                let (named, extent) = (tensor.level_arrays(k), extents[k]);
                let array = |role| named.get(row.array(role)?.name).map(|array| array.to_vec());
                let last = |role| array(role).and_then(|offsets| offsets.last().copied()).map(|n| n as usize);
                let stored = last(ArrayRole::FiberOffsets).unwrap_or(parents);
                assert_eq!(named.arrays.len(), row.arrays.len(), "{text} {k}");
                for spec in row.arrays {
                    let at = format!("{text}, shape {shape:?}, level {k}, `{}`", spec.name);
                    let elements = array(spec.role).unwrap();
                    assert_eq!(Some(elements.len()), spec.len(parents, stored, extent), "length: {at}");
                    assert!(!spec.nondecreasing || elements.is_sorted(), "nondecreasing: {at}");
                    assert!(!spec.below_extent || elements.iter().all(|n| *n < extent), "below the extent: {at}");
                    let width = spec.width(&LevelSpec::new(row.kind), extent, elements.iter().max().map_or(0, |n| *n));
                    assert!(elements.iter().all(|n| *n <= width.max()), "width: {at}");
                }
                let children = match row.children {
                    Children::Cells => parents * extent as usize,
                    Children::Elements(role) => array(role).unwrap().len(),
                    Children::LastOffset(role) => last(role).unwrap(),
                };
                assert_eq!(level.children(), children, "children: {text}, shape {shape:?}, level {k}");
                parents = children;
                seen.push(row.kind);
            }
        }
    }
    assert!(FORMATS.iter().all(|text| stored_in.contains(text)));
    assert!(LEVELS.iter().all(|level| seen.contains(&level.kind)), "add a format with the new level");
}

/// Names are for users: a role names one array of a level, and a name one role.
#[test]
fn roles_are_unique_in_a_level() {
    for level in LEVELS {
        for array in level.arrays {
            assert_eq!(level.arrays.iter().filter(|other| other.role == array.role).count(), 1, "{level:?}");
            assert_eq!(level.array_named(array.name), Some(array), "{level:?}");
        }
    }
}
