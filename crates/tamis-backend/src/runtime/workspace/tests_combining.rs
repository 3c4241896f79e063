//! Tests of combining against a reference model: many entries with the coordinate distributions of
//! kernels, every algorithm, and the transitions between them.

use super::*;
use std::collections::BTreeMap;
use std::num::NonZero;
use tamis_ir::algebra::Op;
use tamis_ir::{DType, Value};

/// A deterministic pseudo-random number.
fn number(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state >> 8
}

/// A coordinate distribution of a matrix: its sizes, and the coordinates of the k-th entry.
struct Distribution {
    name: &'static str,
    sizes: [u64; 2],
    coordinates: fn(u64, u64) -> [u64; 2],
}

const DISTRIBUTIONS: [Distribution; 9] = [
    Distribution { name: "few distinct entries", sizes: [300, 300], coordinates: |_, x| [x % 300, x / 300 % 300] },
    Distribution { name: "a window", sizes: [2000, 4000], coordinates: |_, x| [x % 2000, x / 2000 % 4000] },
    Distribution { name: "a band", sizes: [90_000, 90_000], coordinates: |k, x| [k % 89_000, k % 89_000 + x % 700] },
    Distribution {
        name: "two bands",
        sizes: [1 << 17, 1 << 17],
        coordinates: |k, x| [k % 9000, (x % 2) * 100_000 + x % 99],
    },
    Distribution {
        name: "spread out",
        sizes: [1 << 20, 1 << 20],
        coordinates: |_, x| [x % (1 << 20), x / 7 % (1 << 20)],
    },
    Distribution { name: "one row", sizes: [1 << 20, 1 << 31], coordinates: |_, x| [77, x % (1 << 31)] },
    Distribution { name: "one distinct entry", sizes: [1 << 31, 1 << 31], coordinates: |_, _| [1 << 30, 5] },
    Distribution {
        name: "mostly at the start",
        sizes: [1 << 14, 1 << 14],
        coordinates: |_, x| [(x % 128) * (x / 128 % 128), (x >> 14) % 128 * ((x >> 21) % 128)],
    },
    Distribution {
        name: "long keys",
        sizes: [1 << 62, 1 << 40],
        coordinates: |_, x| [(x % 500) << 50, (x / 500 % 300) << 20],
    },
];

/// Inserts entries as compiled code does, and compares with an ordered map. The values make sums
/// depend on their order.
fn compare(distribution: &Distribution, spec: &WorkspaceSpec, len: u64) -> WorkspaceReport {
    let spec = WorkspaceSpec { widths: vec![Width::U64; 2], ..spec.clone() };
    let merge = spec.merge.unwrap();
    let mut workspace = OwnedWorkspace::new(&spec).unwrap();
    workspace.reset(&distribution.sizes).unwrap();
    let mut model: BTreeMap<[u64; 2], Value> = BTreeMap::new();
    let mut state = 88172645463325252;
    for k in 0..len {
        let coordinates = (distribution.coordinates)(k, number(&mut state));
        let value = Value::F64(1.0 / (1 + number(&mut state) % 99) as f64).cast(spec.dtype);
        workspace.update(&coordinates, value).unwrap();
        let entry = model.entry(coordinates).or_insert(spec.init);
        *entry = merge.apply(*entry, value, spec.init);
    }
    let got = workspace.finalize().unwrap();
    let what = format!("{}, {spec:?}", distribution.name);
    assert_eq!(got.len(), model.len(), "{what}");
    for (got, expected) in got.iter().zip(&model) {
        assert!(got.0 == expected.0 && got.1 == *expected.1, "{what}: {got:?}, not {expected:?}");
    }
    workspace.report()
}

fn sum() -> WorkspaceSpec {
    WorkspaceSpec::new(2, DType::F64, Value::F64(0.0), Some(MergeOp::Op(Op::Add)))
}

#[test]
fn all_distributions_add_in_insertion_order() {
    for distribution in &DISTRIBUTIONS {
        for (capacity, pipelined) in [(None, false), (NonZero::new(1000), true), (NonZero::new(100_000), false)] {
            compare(distribution, &WorkspaceSpec { capacity, pipelined, ..sum() }, 250_000);
        }
        // The vector policy combines all entries at the end.
        compare(distribution, &WorkspaceSpec { policy: "vector".into(), ..sum() }, 250_000);
    }
}

/// Operators with and without an identity, and operators without specialised loops.
#[test]
fn all_distributions_and_operators() {
    let merges = [
        (DType::F64, MergeOp::Op(Op::Min), Value::F64(f64::INFINITY)),
        (DType::F32, MergeOp::Op(Op::Mul), Value::F32(1.0)),
        (DType::F64, MergeOp::KeepLast, Value::F64(0.0)),
        (DType::F64, MergeOp::Op(Op::Choose), Value::F64(0.5)),
        (DType::C128, MergeOp::Op(Op::Add), Value::zero(DType::C128)),
        (DType::C64, MergeOp::Op(Op::Mul), Value::one(DType::C64)),
    ];
    for distribution in &DISTRIBUTIONS {
        for (dtype, merge, init) in merges {
            compare(distribution, &WorkspaceSpec::new(2, dtype, init, Some(merge)), 100_000);
        }
    }
}

/// Each entry is combined a few times, whatever the capacity; memory is proportional to the
/// distinct entries where many are equal.
#[test]
fn work_and_memory_are_bounded() {
    let distribution = Distribution {
        name: "ten thousand distinct entries of a large matrix",
        sizes: [1 << 20, 1 << 20],
        coordinates: |_, x| [(x % 100) << 13, (x / 100 % 100) << 13],
    };
    for capacity in [NonZero::new(64), NonZero::new(4096), None] {
        let report = compare(&distribution, &WorkspaceSpec { capacity, ..sum() }, 1_500_000);
        assert!(report.merged < 3 * report.inserts, "{capacity:?}: {report:?}");
        assert!(report.flushed_bytes < 32 << 20, "{capacity:?}: {report:?}");
    }
    // A hash table with capacity for all distinct entries never flushes: memory is for distinct
    // entries alone.
    let hash = WorkspaceSpec { policy: "hash".into(), capacity: NonZero::new(20_000), ..sum() };
    let report = compare(&distribution, &hash, 1_500_000);
    assert!(report.flushes == 0 && report.peak_bytes < 4 << 20, "{report:?}");
}

/// Resetting a workspace discards all its entries.
#[test]
fn reset_discards_all_entries() {
    let mut workspace = OwnedWorkspace::new(&WorkspaceSpec { capacity: NonZero::new(500), ..sum() }).unwrap();
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
