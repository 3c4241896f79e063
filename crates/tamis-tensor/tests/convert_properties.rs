//! Property tests of conversion: random shapes, entries and formats.

use proptest::prelude::*;
use tamis_ir::format::{DimExpr, Leaf, LevelKind, LevelSpec};
use tamis_ir::{Format, Value};
use tamis_tensor::{Combine, Coordinates, LevelArrays, Tensor, finalize, written_as};

/// A format of the given rank: any order, any general level, and dimensions that are split or
/// subtracted.
fn any_format(rank: usize) -> impl Strategy<Value = Format> {
    use LevelKind::{Band, Blocks, Bytemap, Dense, Hash, Runs, Sparse, SparseRuns};
    let kinds = [Dense, Sparse, Hash, Bytemap, Runs, SparseRuns, Blocks, Band];
    let map = (Just((0..rank).collect::<Vec<usize>>()).prop_shuffle(), 0u8..8, 1u64..5, any::<bool>());
    let map = map.prop_map(move |(order, choice, k, swapped)| {
        let mut map: Vec<DimExpr> = order.iter().copied().map(DimExpr::Dim).collect();
        let (first, last) = (order[0], order[rank - 1]);
        match choice {
            // The outermost dimension is split in two levels, adjacent or not, in either order.
            0 | 1 => {
                let (quotient, remainder) = (DimExpr::Div(first, k), DimExpr::Mod(first, k));
                map[0] = if swapped { remainder } else { quotient };
                map.insert(if choice == 0 { 1 } else { rank }, if swapped { quotient } else { remainder });
            }
            2 if rank > 1 => map[0] = DimExpr::Diff(first, last),
            _ => {}
        }
        map
    });
    map.prop_flat_map(move |map| {
        let levels = proptest::collection::vec(0..kinds.len(), map.len());
        (Just(map), levels, any::<bool>()).prop_map(move |(map, levels, list)| {
            let count = levels.len();
            let mut levels: Vec<LevelSpec> = levels.into_iter().map(|k| LevelSpec::new(kinds[k])).collect();
            // Half of the formats end in a coordinate list.
            if list && count >= 2 {
                levels[count - 2] = LevelSpec { nonunique: true, ..LevelSpec::new(LevelKind::Sparse) };
                levels[count - 1] = LevelSpec::new(LevelKind::Singleton);
            }
            Format::new(rank, map, levels, Leaf::Element(None)).unwrap()
        })
    })
}

/// True if a level stores padding.
fn adds(format: &Format) -> bool {
    format.levels().iter().any(|l| matches!(l.kind, LevelKind::Dense | LevelKind::Runs | LevelKind::Band))
}

fn any_entries() -> impl Strategy<Value = Coordinates> {
    proptest::collection::vec(1u64..7, 1..4).prop_flat_map(|shape| {
        let point: Vec<_> = shape.iter().map(|n| 0..*n).collect();
        proptest::collection::vec((point, -3i32..4), 0..60).prop_map(move |entries| Coordinates {
            shape: shape.clone(),
            columns: (0..shape.len())
                .map(|d| entries.iter().map(|(p, _)| p[d] as u16).collect::<Vec<u16>>().into())
                .collect(),
            values: entries.iter().map(|(_, v)| *v).collect::<Vec<i32>>().into(),
        })
    })
}

fn entries_and_formats() -> impl Strategy<Value = (Coordinates, Format, Format)> {
    any_entries().prop_flat_map(|entries| {
        let rank = entries.shape.len();
        (Just(entries), any_format(rank), any_format(rank))
    })
}

fn arrays(tensor: &Tensor) -> Vec<LevelArrays> {
    (0..tensor.levels().len()).map(|k| tensor.level_arrays(k)).collect()
}

/// The same tensor with each run of a last level of runs split in two, as a kernel may write it.
fn unmerged(tensor: &Tensor) -> Tensor {
    let last = tensor.levels().len() - 1;
    let mut levels = arrays(tensor);
    let (Some(pos), Some(start), Some(end)) =
        (levels[last].get("pos"), levels[last].get("start"), levels[last].get("end"))
    else {
        return tensor.clone();
    };
    let (mut new_pos, mut starts, mut ends, mut values) = (vec![0u32], Vec::new(), Vec::new(), Vec::new());
    for w in pos.to_vec().windows(2) {
        for q in w[0] as usize..w[1] as usize {
            let middle = (start.get(q) + end.get(q)) / 2;
            for (a, b) in [(start.get(q), middle), (middle, end.get(q))] {
                if a < b {
                    starts.push(a as u32);
                    ends.push(b as u32);
                    values.push(tensor.values().unwrap().get(q));
                }
            }
        }
        new_pos.push(starts.len() as u32);
    }
    levels[last] = LevelArrays::new([("pos", new_pos.into()), ("start", starts.into()), ("end", ends.into())]);
    let values = tamis_tensor::ValueArray::from_values(&values, tensor.dtype());
    Tensor::from_parts(tensor.shape(), tensor.format(), levels, Some(values), tensor.fill()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn there_and_back_is_identity((entries, from, to) in entries_and_formats(), fill in -1i32..2) {
        let source = Tensor::from_coordinates(&entries, &from, Value::I32(fill), Combine::Sum).unwrap();
        let there = source.convert(&to).unwrap();
        let back = there.convert(&from).unwrap();
        prop_assert!(there.same_values(&source));
        prop_assert!(back.same_values(&source));
        // A direct conversion gives the same as one through the other format, up to entries that
        // equal the fill.
        let direct = Tensor::from_coordinates(&entries, &to, Value::I32(fill), Combine::Sum).unwrap();
        prop_assert!(direct.same_values(&there));
        if !adds(&from) {
            prop_assert_eq!(arrays(&there), arrays(&direct));
            prop_assert_eq!(there.values(), direct.values());
        }
    }

    #[test]
    fn dense_there_and_back((entries, format, _) in entries_and_formats(), fill in -1i32..2) {
        let fill = Value::I32(fill);
        let dense = Tensor::from_coordinates(&entries, &Format::dense(entries.shape.len()), fill, Combine::Sum).unwrap();
        let values = dense.to_dense().unwrap();
        let stored = Tensor::from_dense(&entries.shape, values.clone(), &format, fill).unwrap();
        prop_assert_eq!(stored.to_dense().unwrap(), values);
        prop_assert!(stored.same_values(&dense));
    }

    #[test]
    fn finalized_results_equal_conversions((entries, format, _) in entries_and_formats(), fill in -1i32..2) {
        let fill = Value::I32(fill);
        let expected = Tensor::from_coordinates(&entries, &format, fill, Combine::Sum).unwrap();
        let written = Tensor::from_coordinates(&entries, &written_as(&format), fill, Combine::Sum).unwrap();
        let finalized = finalize(unmerged(&written), &format).unwrap();
        prop_assert_eq!(finalized.format(), &format);
        prop_assert_eq!(arrays(&finalized), arrays(&expected));
        prop_assert_eq!(finalized.values(), expected.values());
    }

    #[test]
    fn the_order_of_entries_does_not_matter((entries, format, _) in entries_and_formats()) {
        let build = |entries: &Coordinates| Tensor::from_coordinates(entries, &format, Value::I32(0), Combine::Sum).unwrap();
        let reversed = Coordinates {
            shape: entries.shape.clone(),
            columns: entries.columns.iter().map(|c| c.to_vec().into_iter().rev().collect::<Vec<u64>>().into()).collect(),
            values: (0..entries.len()).rev().map(|e| match entries.values.get(e) { Value::I32(v) => v, _ => 0 }).collect::<Vec<i32>>().into(),
        };
        let (a, b) = (build(&entries), build(&reversed));
        prop_assert_eq!(arrays(&a), arrays(&b));
        prop_assert_eq!(a.values(), b.values());
    }

    #[test]
    fn parts_are_accepted_exactly_as_made((entries, format, _) in entries_and_formats()) {
        let tensor = Tensor::from_coordinates(&entries, &format, Value::I32(0), Combine::Sum).unwrap();
        let again = Tensor::from_parts(tensor.shape(), &format, arrays(&tensor), tensor.values().cloned(), Value::I32(0)).unwrap();
        prop_assert_eq!(arrays(&again), arrays(&tensor));
        prop_assert_eq!(again.nnz(), tensor.nnz());
    }

    #[test]
    fn damaged_parts_never_panic((entries, format, _) in entries_and_formats(), level in 0usize..3, array in 0usize..3, at in 0usize..40, number in 0u64..9) {
        let tensor = Tensor::from_coordinates(&entries, &format, Value::I32(0), Combine::Sum).unwrap();
        let mut arrays = arrays(&tensor);
        if let Some((_, damaged)) = arrays.get_mut(level).and_then(|l| l.arrays.get_mut(array)) {
            let mut numbers = damaged.to_vec();
            if let Some(x) = numbers.get_mut(at) { *x = number } else { numbers.push(number) }
            if let Ok(array) = tamis_tensor::IndexArray::with_width(&numbers, damaged.width()) { *damaged = array }
        }
        // Either it is rejected, or it is a valid tensor.
        if let Ok(tensor) = Tensor::from_parts(tensor.shape(), &format, arrays, tensor.values().cloned(), Value::I32(0)) {
            prop_assert_eq!(tensor.to_coordinates().len(), tensor.nnz());
            prop_assert!(tensor.convert(&Format::coo(tensor.rank())).unwrap().same_values(&tensor));
            tensor.to_dense().unwrap();
        }
    }
}
