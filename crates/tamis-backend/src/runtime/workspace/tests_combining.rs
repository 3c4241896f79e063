//! Many entries, as kernels of many shapes make them, against a model: every way of combining, and the seams between them.

use super::*;
use std::collections::BTreeMap;
use tamis_ir::algebra::Op;

/// Numbers that look random.
fn number(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state >> 8
}

/// Where entries of a matrix go: its sizes, and the coordinates of the k-th entry.
struct Shape {
    name: &'static str,
    sizes: [u64; 2],
    coordinates: fn(u64, u64) -> [u64; 2],
}

const SHAPES: [Shape; 9] = [
    Shape { name: "few elements", sizes: [300, 300], coordinates: |_, x| [x % 300, x / 300 % 300] },
    Shape { name: "a window", sizes: [2000, 4000], coordinates: |_, x| [x % 2000, x / 2000 % 4000] },
    Shape { name: "a band", sizes: [90_000, 90_000], coordinates: |k, x| [k % 89_000, k % 89_000 + x % 700] },
    Shape { name: "two bands", sizes: [1 << 17, 1 << 17], coordinates: |k, x| [k % 9000, (x % 2) * 100_000 + x % 99] },
    Shape { name: "far apart", sizes: [1 << 20, 1 << 20], coordinates: |_, x| [x % (1 << 20), x / 7 % (1 << 20)] },
    Shape { name: "one row", sizes: [1 << 20, 1 << 31], coordinates: |_, x| [77, x % (1 << 31)] },
    Shape { name: "one element", sizes: [1 << 31, 1 << 31], coordinates: |_, _| [1 << 30, 5] },
    Shape {
        name: "mostly at the start",
        sizes: [1 << 14, 1 << 14],
        coordinates: |_, x| [(x % 128) * (x / 128 % 128), (x >> 14) % 128 * ((x >> 21) % 128)],
    },
    Shape {
        name: "long keys",
        sizes: [1 << 62, 1 << 40],
        coordinates: |_, x| [(x % 500) << 50, (x / 500 % 300) << 20],
    },
];

/// Takes entries as compiled code does, and compares with a map; values are such that sums depend on their order.
fn compare(shape: &Shape, description: &Description, len: u64) -> WorkspaceReport {
    let description = Description { widths: vec![Width::U64; 2], ..description.clone() };
    let merge = description.merge.unwrap();
    let mut workspace = OwnedWorkspace::new(&description).unwrap();
    workspace.reset(&shape.sizes).unwrap();
    let mut model: BTreeMap<[u64; 2], Value> = BTreeMap::new();
    let mut state = 88172645463325252;
    for k in 0..len {
        let coordinates = (shape.coordinates)(k, number(&mut state));
        let value = Value::F64(1.0 / (1 + number(&mut state) % 99) as f64).cast(description.dtype);
        workspace.update(&coordinates, value).unwrap();
        let entry = model.entry(coordinates).or_insert(description.init);
        *entry = merge.apply(*entry, value, description.init);
    }
    let got = workspace.finalize().unwrap();
    let what = format!("{}, {description:?}", shape.name);
    assert_eq!(got.len(), model.len(), "{what}");
    for (got, expected) in got.iter().zip(&model) {
        assert!(got.0 == expected.0 && got.1 == *expected.1, "{what}: {got:?}, not {expected:?}");
    }
    workspace.report()
}

fn sum() -> Description {
    Description::new(2, DType::F64, Value::F64(0.0), Some(Merge::Op(Op::Add)))
}

#[test]
fn all_shapes_add_in_the_order_of_insertion() {
    for shape in &SHAPES {
        for (capacity, pipelined) in [(None, false), (NonZero::new(1000), true), (NonZero::new(100_000), false)] {
            compare(shape, &Description { capacity, pipelined, ..sum() }, 250_000);
        }
        // All that a vector has comes at once.
        compare(shape, &Description { policy: "vector".into(), ..sum() }, 250_000);
    }
}

/// Operators with and without a value that anything can be folded into, and those that are evaluated.
#[test]
fn all_shapes_and_operators() {
    let merges = [
        (DType::F64, Merge::Op(Op::Min), Value::F64(f64::INFINITY)),
        (DType::F32, Merge::Op(Op::Mul), Value::F32(1.0)),
        (DType::F64, Merge::Later, Value::F64(0.0)),
        (DType::F64, Merge::Op(Op::Choose), Value::F64(0.5)),
        (DType::C128, Merge::Op(Op::Add), Value::zero(DType::C128)),
        (DType::C64, Merge::Op(Op::Mul), Value::one(DType::C64)),
    ];
    for shape in &SHAPES {
        for (dtype, merge, init) in merges {
            compare(shape, &Description::new(2, dtype, init, Some(merge)), 100_000);
        }
    }
}

/// Each entry is combined a few times, whatever the capacity; memory is in proportion to elements where entries meet.
#[test]
fn work_and_memory_are_bounded() {
    let shape = Shape {
        name: "ten thousand elements of very many",
        sizes: [1 << 20, 1 << 20],
        coordinates: |_, x| [(x % 100) << 13, (x / 100 % 100) << 13],
    };
    for capacity in [NonZero::new(64), NonZero::new(4096), None] {
        let report = compare(&shape, &Description { capacity, ..sum() }, 1_500_000);
        assert!(report.merged < 3 * report.inserts, "{capacity:?}: {report:?}");
        assert!(report.flushed_bytes < 32 << 20, "{capacity:?}: {report:?}");
    }
    // A table with room for all elements is never emptied: memory is for elements alone.
    let hash = Description { policy: "hash".into(), capacity: NonZero::new(20_000), ..sum() };
    let report = compare(&shape, &hash, 1_500_000);
    assert!(report.flushes == 0 && report.peak_bytes < 4 << 20, "{report:?}");
}

/// A workspace that was left in the middle starts anew.
#[test]
fn what_was_left_in_the_middle_is_gone() {
    let mut workspace = OwnedWorkspace::new(&Description { capacity: NonZero::new(500), ..sum() }).unwrap();
    for (sizes, len) in [([100, 100], 9_000), ([1 << 20, 1 << 20], 90_000), ([2000, 2000], 200_000)] {
        workspace.reset(&sizes).unwrap();
        for k in 0..len {
            workspace.update(&[k * 7 % sizes[0], k * 13 % sizes[1]], Value::F64(1.0)).unwrap();
        }
        for sizes in [sizes, [50, 50]] {
            workspace.reset(&sizes).unwrap();
            workspace.update(&[3, 4], Value::F64(2.0)).unwrap();
            workspace.update(&[3, 2], Value::F64(1.0)).unwrap();
            let expected = [(vec![3, 2], Value::F64(1.0)), (vec![3, 4], Value::F64(2.0))];
            assert_eq!(workspace.finalize().unwrap(), expected);
        }
    }
}
