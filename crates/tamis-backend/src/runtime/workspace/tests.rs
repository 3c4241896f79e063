//! Differential tests of workspaces against a reference model: an ordered map that is updated entry
//! by entry.

use super::*;
use num_complex::Complex;
use std::collections::BTreeMap;
use std::num::NonZero;
use tamis_ir::algebra::Op;
use tamis_ir::{DType, Value};

type Stream = Vec<(Vec<u64>, Value)>;

/// A deterministic pseudo-random generator.
struct WorkspaceRng(u64);

impl WorkspaceRng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let x = self.0 ^ self.0 >> 29;
        x.wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 16
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// A value for which sums and products of a few are exact, with an occasional special value.
    fn value(&mut self, dtype: DType) -> Value {
        let (small, odd) = (self.below(5) as i64 - 2, self.below(40));
        match (dtype, odd) {
            (DType::F32, 0) => Value::F32(f32::NAN),
            (DType::F64, 0) => Value::F64(f64::NAN),
            (DType::F64 | DType::F32, 1) => Value::F64(-0.0).cast(dtype),
            (DType::F64 | DType::F32, 2) => Value::F64(f64::INFINITY).cast(dtype),
            (DType::C64 | DType::C128, _) => {
                Value::C128(Complex::new(small as f64, self.below(3) as f64 - 1.0)).cast(dtype)
            }
            (_, 3) => Value::I64(self.next() as i64).cast(dtype),
            _ => Value::I64(small).cast(dtype),
        }
    }
}

fn model(stream: &Stream, merge: Option<MergeOp>, init: Value) -> Stream {
    let mut entries: BTreeMap<Vec<u64>, Value> = BTreeMap::new();
    for (coordinates, value) in stream {
        let entry = entries.entry(coordinates.clone()).or_insert(init);
        *entry = merge.unwrap_or(MergeOp::KeepLast).apply(*entry, *value, init);
    }
    entries.into_iter().collect()
}

fn run(workspace: &mut OwnedWorkspace, sizes: &[u64], stream: &Stream) -> Result<Stream, WorkspaceError> {
    workspace.reset(sizes)?;
    for (coordinates, value) in stream {
        workspace.update(coordinates, *value)?;
    }
    workspace.finalize()
}

fn same(a: &Stream, b: &Stream) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.0 == b.0 && (a.1 == b.1 || a.1.is_nan() && b.1.is_nan()))
}

const POLICIES: [&str; 5] = ["coord", "hash", "bucket", "map", "vector"];

fn capacities() -> [Option<NonZero<u64>>; 4] {
    [NonZero::new(1), NonZero::new(2), NonZero::new(6), None]
}

fn sum(dimensions: usize) -> WorkspaceSpec {
    WorkspaceSpec::new(dimensions, DType::F64, Value::F64(0.0), Some(MergeOp::Op(Op::Add)))
}

/// The operators with specialised loops and some of the others, with their initial values.
fn merges(dtype: DType) -> Vec<(Option<MergeOp>, Value)> {
    let ops = [Op::Add, Op::Mul, Op::Min, Op::Max, Op::And, Op::Or, Op::BitAnd, Op::BitOr, Op::BitXor];
    let mut merges = vec![(None, Value::zero(dtype)), (Some(MergeOp::KeepLast), Value::one(dtype))];
    for init in [Value::zero(dtype), Value::I64(2).cast(dtype)] {
        merges.push((Some(MergeOp::Op(Op::Choose)), init));
    }
    for op in ops {
        let merge = MergeOp::Op(op);
        let identity = op.info().left_identity.and_then(|identity| identity.value(dtype));
        let identity = if op == Op::And { Some(Value::one(dtype)) } else { identity };
        if let (Some(_), Some(identity)) = (merge.operand_type(dtype), identity) {
            merges.push((Some(merge), identity));
        }
    }
    merges
}

#[test]
fn the_papers_outer_product() {
    let stream: Stream = [(0, 1, 1.0), (2, 1, 4.0), (1, 0, 6.0), (1, 2, 9.0), (0, 1, 8.0), (2, 1, 20.0)]
        .map(|(i, j, value)| (vec![i, j], Value::F64(value)))
        .to_vec();
    let product: Stream =
        [(0, 1, 9.0), (1, 0, 6.0), (1, 2, 9.0), (2, 1, 24.0)].map(|(i, j, v)| (vec![i, j], Value::F64(v))).to_vec();
    for policy in POLICIES {
        for (capacity, flushes) in capacities().into_iter().zip([[5, 5], [2, 2], [0, 0], [0, 0]]) {
            let mut workspace =
                OwnedWorkspace::new(&WorkspaceSpec { policy: policy.into(), capacity, ..sum(2) }).unwrap();
            assert_eq!(run(&mut workspace, &[3, 3], &stream).unwrap(), product, "{policy} {capacity:?}");
            let report = workspace.report();
            assert_eq!(
                (report.inserts, report.flushes, report.finalizations),
                (6, flushes[0], 1),
                "{policy} {capacity:?}"
            );
            assert!(report.peak_bytes >= report.accumulation_bytes && report.accumulation_bytes > 0);
        }
    }
}

/// Finalizing keeps the entries, and more can be inserted.
#[test]
fn finalized_entries_remain() {
    let mut rng = WorkspaceRng(7);
    for (dtype, op) in [(DType::F64, Op::Add), (DType::I32, Op::Max), (DType::C128, Op::Mul)] {
        let init = op.info().left_identity.and_then(|identity| identity.value(dtype)).unwrap();
        for merge in [Some(MergeOp::Op(op)), Some(MergeOp::KeepLast), Some(MergeOp::Op(Op::Choose)), None] {
            for sizes in [&[40][..], &[7, 9], &[1, 30, 2], &[]] {
                let coordinates = |rng: &mut WorkspaceRng| sizes.iter().map(|size| rng.below(*size)).collect();
                // Only ones, since sums and products of other values depend on the order of
                // rounding.
                let stream: Stream = (0..60).map(|_| (coordinates(&mut rng), Value::one(dtype))).collect();
                for policy in POLICIES {
                    for (capacity, pipelined) in capacities().into_iter().zip([false, true, false, true]) {
                        let spec = WorkspaceSpec::new(sizes.len(), dtype, init, merge);
                        let spec = WorkspaceSpec { policy: policy.into(), capacity, pipelined, ..spec };
                        let mut workspace = OwnedWorkspace::new(&spec).unwrap();
                        for _ in 0..2 {
                            workspace.reset(sizes).unwrap();
                            // No entries, many, none, a few; each finalized.
                            for range in [0..0, 0..40, 40..40, 40..43, 43..60] {
                                for (coordinates, value) in &stream[range.clone()] {
                                    workspace.update(coordinates, *value).unwrap();
                                }
                                let expected = model(&stream[..range.end].to_vec(), merge, init);
                                let got = workspace.finalize().unwrap();
                                assert!(same(&got, &expected), "{policy} {spec:?}: {got:?}, not {expected:?}");
                            }
                        }
                        assert_eq!(workspace.report().inserts, 120, "{policy} {capacity:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn every_policy_capacity_type_and_operator() {
    let mut rng = WorkspaceRng(1);
    let shapes: [&[u64]; 5] = [&[40], &[7, 9], &[1, 30, 2], &[3, 4, 1, 5], &[]];
    for dtype in DType::ALL {
        for (merge, init) in merges(dtype) {
            for sizes in shapes {
                let coordinates = |rng: &mut WorkspaceRng| sizes.iter().map(|size| rng.below(*size)).collect();
                let stream: Stream = (0..50).map(|_| (coordinates(&mut rng), rng.value(dtype))).collect();
                let expected = model(&stream, merge, init);
                for policy in POLICIES {
                    for capacity in capacities() {
                        let mut spec = WorkspaceSpec {
                            policy: policy.into(),
                            capacity,
                            ..WorkspaceSpec::new(sizes.len(), dtype, init, merge)
                        };
                        if let Some(width) = spec.widths.first_mut() {
                            *width = Width::U64;
                        }
                        let mut workspace = OwnedWorkspace::new(&spec).unwrap();
                        let got = run(&mut workspace, sizes, &stream).unwrap();
                        let what = format!("{policy} {capacity:?} {dtype} {merge:?} {sizes:?} {stream:?}");
                        assert!(same(&got, &expected), "{what}: {got:?}, not {expected:?}");
                    }
                }
            }
        }
    }
}

/// Long streams, with keys of every width, in workspaces that are reset to other sizes.
#[test]
fn long_streams_and_all_widths_of_keys() {
    let mut rng = WorkspaceRng(7);
    let huge = 1 << 62;
    let shapes: [[u64; 4]; 7] = [
        [50, 60, 1, 1],
        [1 << 20, 1 << 20, 1, 1],
        [1 << 30, 1 << 30, 16, 1],
        [huge, 2, 2, huge],
        [huge, huge, huge, 3],
        [1, 1, huge, 1],
        [2, 1 << 31, 1 << 31, 1],
    ];
    for policy in POLICIES {
        for (capacity, pipelined) in [(None, false), (NonZero::new(100), false), (NonZero::new(1000), true)] {
            let spec =
                WorkspaceSpec { policy: policy.into(), widths: vec![Width::U64; 4], capacity, pipelined, ..sum(4) };
            let mut workspace = OwnedWorkspace::new(&spec).unwrap();
            for sizes in shapes {
                for len in [0, 1, 30, 3000, 20_000] {
                    // Many coordinates repeat: only some coordinates of a large dimension occur.
                    let step = |size: u64| (size / 40).max(1);
                    let coordinates = |rng: &mut WorkspaceRng| {
                        sizes.iter().map(|size| (rng.below(40) * step(*size)) % size).collect::<Vec<_>>()
                    };
                    let value = |rng: &mut WorkspaceRng| Value::F64(rng.below(10) as f64);
                    let stream: Stream = (0..len).map(|_| (coordinates(&mut rng), value(&mut rng))).collect();
                    let expected = model(&stream, spec.merge, spec.init);
                    let got = run(&mut workspace, &sizes, &stream).unwrap();
                    assert!(got == expected, "{policy} {capacity:?} {sizes:?} {len}");
                }
            }
        }
    }
}

/// Many flushes; the sums are exact only in insertion order.
#[test]
fn growing_workspaces_flush() {
    let mut rng = WorkspaceRng(3);
    for size in [1 << 20, 300] {
        let sizes = [size, 300];
        let stream: Stream = (0..80 * DEFAULT_FLUSH_THRESHOLD as u64)
            .map(|_| (vec![rng.below(sizes[0]), rng.below(sizes[1])], Value::F64(1.0 / (1 + rng.below(99)) as f64)))
            .collect();
        let expected = model(&stream, sum(2).merge, Value::F64(0.0));
        let mut workspace = OwnedWorkspace::new(&sum(2)).unwrap();
        assert!(
            run(&mut workspace, &sizes, &stream).unwrap() == expected,
            "appended entries are added in insertion order"
        );
        let report = workspace.report();
        assert_eq!((report.inserts, report.flushes), (80 * DEFAULT_FLUSH_THRESHOLD as u64, 79), "{report:?}");
        assert!(report.merged < 3 * report.inserts, "{report:?}");
        let hash = WorkspaceSpec { policy: "hash".into(), ..sum(2) };
        let got = run(&mut OwnedWorkspace::new(&hash).unwrap(), &sizes, &stream).unwrap();
        assert_eq!(got.len(), expected.len());
        for (got, expected) in got.iter().zip(&expected) {
            let (Value::F64(a), Value::F64(b)) = (got.1, expected.1) else { panic!("not sums") };
            assert!(got.0 == expected.0 && (a - b).abs() <= 1e-12 * b);
        }
    }
}

#[test]
fn pipelined_is_serial_bit_by_bit() {
    let mut rng = WorkspaceRng(5);
    let stream: Stream = (0..200_000)
        .map(|_| (vec![rng.below(300), rng.below(300)], Value::F64(1.0 / (1 + rng.below(99)) as f64)))
        .collect();
    for policy in POLICIES {
        for capacity in [NonZero::new(777), NonZero::new(50_000), None] {
            let serial = WorkspaceSpec { policy: policy.into(), capacity, ..sum(2) };
            let pipelined = WorkspaceSpec { pipelined: true, ..serial.clone() };
            let [mut a, mut b] = [serial, pipelined].map(|spec| OwnedWorkspace::new(&spec).unwrap());
            for range in [&stream[..1000].to_vec(), &stream] {
                let (got, expected) =
                    (run(&mut b, &[300, 300], range).unwrap(), run(&mut a, &[300, 300], range).unwrap());
                assert!(got == expected, "{policy} {capacity:?}");
            }
            if capacity.is_some() {
                assert_eq!(a.report().flushes, b.report().flushes);
            }
        }
    }
}

#[test]
fn no_thread_before_the_first_flush() {
    let spec = WorkspaceSpec { pipelined: true, capacity: NonZero::new(4), ..sum(1) };
    let mut workspace = OwnedWorkspace::new(&spec).unwrap();
    workspace.reset(&[9]).unwrap();
    for i in 0..4 {
        workspace.update(&[i], Value::F64(1.0)).unwrap();
    }
    assert!(!workspace.workspace.pipeline.started());
    workspace.update(&[4], Value::F64(1.0)).unwrap();
    assert!(workspace.workspace.pipeline.started());
    // Dropped or reset while a flush runs: nothing hangs or leaks.
    workspace.reset(&[9]).unwrap();
    assert_eq!(workspace.finalize().unwrap(), []);
}

#[test]
fn hostile_sizes_and_coordinates() {
    for policy in POLICIES {
        let spec = WorkspaceSpec { policy: policy.into(), ..sum(2) };
        let mut workspace = OwnedWorkspace::new(&spec).unwrap();
        workspace.reset(&[0, 5]).unwrap();
        assert_eq!(
            workspace.workspace.insert(&[0, 0]),
            Err(WorkspaceError::Range { dimension: 0, coordinate: 0, size: 0 })
        );
        assert_eq!(workspace.finalize().unwrap(), []);
        let wide = WorkspaceError::Width { dimension: 1, size: 1 << 33 };
        assert_eq!(workspace.reset(&[5, 1 << 33]), Err(wide));
        // Insertions after a failure return an error.
        assert!(workspace.update(&[1, 1], Value::F64(1.0)).is_err());
        workspace.reset(&[1 << 32, 5]).unwrap();
        workspace.update(&[u64::from(u32::MAX), 4], Value::F64(1.0)).unwrap();
        let outside = WorkspaceError::Range { dimension: 1, coordinate: 5, size: 5 };
        assert_eq!(workspace.workspace.insert(&[3, 5]), Err(outside));
        assert!(workspace.workspace.insert(&[3]).is_err());
        assert_eq!(workspace.finalize().unwrap(), [(vec![u64::from(u32::MAX), 4], Value::F64(1.0))]);
    }
    let wide = WorkspaceSpec { widths: vec![Width::U64; 70], ..sum(70) };
    let mut workspace = OwnedWorkspace::new(&wide).unwrap();
    assert!(
        matches!(workspace.reset(&[1 << 62; 70]), Err(WorkspaceError::Memory { .. })),
        "more bits than the widest key"
    );
    let ends = vec![(1 << 62) - 1; 60];
    let mut sizes = [1 << 62; 70];
    sizes[60..].fill(1);
    let mut coordinates = ends;
    coordinates.resize(70, 0);
    workspace.reset(&sizes).unwrap();
    workspace.update(&coordinates, Value::F64(1.0)).unwrap();
    workspace.update(&[0; 70], Value::F64(1.0)).unwrap();
    assert_eq!(workspace.finalize().unwrap()[1].0, coordinates);
}

/// Coordinates that compiled code appended are checked when they are sorted.
#[test]
fn appended_coordinates_are_checked() {
    let mut workspace = OwnedWorkspace::new(&sum(2)).unwrap();
    workspace.reset(&[10, 10]).unwrap();
    workspace.update(&[3, 4], Value::F64(1.0)).unwrap();
    let CoordArray::U32(data) = workspace.workspace.coord_arrays[1] else { panic!("is wide") };
    // SAFETY: there is one entry.
    unsafe { data.write(10) };
    assert_eq!(workspace.finalize(), Err(WorkspaceError::Range { dimension: 1, coordinate: 10, size: 10 }));
    workspace.reset(&[10, 10]).unwrap();
    assert_eq!(workspace.finalize(), Ok(vec![]));
}

#[test]
fn invalid_specifications_are_rejected() {
    let refused = |spec: WorkspaceSpec| OwnedWorkspace::new(&spec).unwrap_err();
    assert!(refused(WorkspaceSpec { policy: "none".into(), ..sum(1) }).contains("unknown policy `none`"));
    assert!(refused(WorkspaceSpec { widths: vec![Width::U16], ..sum(1) }).contains("u32"));
    assert!(refused(WorkspaceSpec { init: Value::I8(0), ..sum(1) }).contains("f64"));
    let smallest = WorkspaceSpec::new(1, DType::C64, Value::zero(DType::C64), Some(MergeOp::Op(Op::Min)));
    assert!(refused(smallest).contains("cannot be merged"));
    assert!(refused(WorkspaceSpec { merge: Some(MergeOp::Op(Op::Sin)), ..sum(1) }).contains("cannot be merged"));
    assert!(!register("coord", || Box::new(coord::Coord)));
}

/// Policies that violate their contract.
struct ViolatingPolicy(fn(&AccumulationView<'_>) -> Lookup, bool);

impl InsertionPolicy for ViolatingPolicy {
    fn lookup(&mut self, _: &[u64], entries: &AccumulationView<'_>) -> Result<Lookup, OutOfMemory> {
        Ok((self.0)(entries))
    }
    fn sort(&mut self, _: &AccumulationView<'_>, ids: &mut [u32]) -> bool {
        // An invalid order.
        ids.fill(u32::MAX);
        true
    }
    fn clear(&mut self, _: &AccumulationView<'_>) {
        assert!(!self.1, "panics on the worker thread");
    }
}

#[test]
fn policy_violations_fail_cleanly() {
    register("bad-position", || Box::new(ViolatingPolicy(|entries| Lookup::Found(entries.len()), false)));
    register("bad-full", || Box::new(ViolatingPolicy(|_| Lookup::Full, false)));
    register("bad-new", || Box::new(ViolatingPolicy(|_| Lookup::New, false)));
    register("bad-panic", || Box::new(ViolatingPolicy(|_| Lookup::New, true)));
    assert!(policies().contains(&"bad-new".to_string()));
    let insert = |name: &str, pipelined: bool| {
        let spec = WorkspaceSpec { policy: name.into(), capacity: NonZero::new(5), pipelined, ..sum(1) };
        let stream: Stream = [9, 3, 7, 3, 1, 4, 2, 9].map(|i| (vec![i], Value::F64(1.0))).to_vec();
        run(&mut OwnedWorkspace::new(&spec).unwrap(), &[10], &stream)
    };
    assert_eq!(insert("bad-position", false), Err(WorkspaceError::PolicyViolation(PolicyViolation::InvalidPosition)));
    assert_eq!(insert("bad-full", false), Err(WorkspaceError::PolicyViolation(PolicyViolation::FullWhenEmpty)));
    let sums = [(1, 1.0), (2, 1.0), (3, 2.0), (4, 1.0), (7, 1.0), (9, 2.0)];
    let sums = sums.map(|(i, value)| (vec![i], Value::F64(value))).to_vec();
    assert_eq!(insert("bad-new", false), Ok(sums.clone()), "an invalid order is ignored");
    assert_eq!(insert("bad-new", true), Ok(sums));
    assert_eq!(insert("bad-panic", true), Err(WorkspaceError::PolicyViolation(PolicyViolation::Panicked)));
}
