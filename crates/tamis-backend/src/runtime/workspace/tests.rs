//! Workspaces against a model: an ordered map that is updated entry by entry.

use super::*;
use num_complex::Complex;
use std::collections::BTreeMap;
use tamis_ir::algebra::Op;

type Stream = Vec<(Vec<u64>, Value)>;

/// Numbers that look random.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let x = self.0 ^ self.0 >> 29;
        x.wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 16
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// A value with which sums and products of a few are exact, and now and then an odd one.
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

fn model(stream: &Stream, merge: Option<Merge>, init: Value) -> Stream {
    let mut entries: BTreeMap<Vec<u64>, Value> = BTreeMap::new();
    for (coordinates, value) in stream {
        let entry = entries.entry(coordinates.clone()).or_insert(init);
        *entry = merge.unwrap_or(Merge::Later).apply(*entry, *value, init);
    }
    entries.into_iter().collect()
}

fn run(workspace: &mut OwnedWorkspace, sizes: &[u64], stream: &Stream) -> Result<Stream, Stop> {
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

fn sum(dimensions: usize) -> Description {
    Description::new(dimensions, DType::F64, Value::F64(0.0), Some(Merge::Op(Op::Add)))
}

/// The operators of the fast loops and some of the others, with what new entries hold.
fn merges(dtype: DType) -> Vec<(Option<Merge>, Value)> {
    let ops = [Op::Add, Op::Mul, Op::Min, Op::Max, Op::And, Op::Or, Op::BitAnd, Op::BitOr, Op::BitXor];
    let mut merges = vec![(None, Value::zero(dtype)), (Some(Merge::Later), Value::one(dtype))];
    for init in [Value::zero(dtype), Value::I64(2).cast(dtype)] {
        merges.push((Some(Merge::Op(Op::Choose)), init));
    }
    for op in ops {
        let merge = Merge::Op(op);
        let identity = op.info().left_identity.and_then(|identity| identity.value(dtype));
        let identity = if op == Op::And { Some(Value::one(dtype)) } else { identity };
        if let (Some(_), Some(identity)) = (merge.operand(dtype), identity) {
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
                OwnedWorkspace::new(&Description { policy: policy.into(), capacity, ..sum(2) }).unwrap();
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

/// Settling says what is there, and ends nothing.
#[test]
fn settled_entries_stay() {
    let mut numbers = Numbers(7);
    for (dtype, op) in [(DType::F64, Op::Add), (DType::I32, Op::Max), (DType::C128, Op::Mul)] {
        let init = op.info().left_identity.and_then(|identity| identity.value(dtype)).unwrap();
        for merge in [Some(Merge::Op(op)), Some(Merge::Later), Some(Merge::Op(Op::Choose)), None] {
            for sizes in [&[40][..], &[7, 9], &[1, 30, 2], &[]] {
                let coordinates = |numbers: &mut Numbers| sizes.iter().map(|size| numbers.below(*size)).collect();
                // Ones only, since products and sums of others may be rounded in another order.
                let stream: Stream = (0..60).map(|_| (coordinates(&mut numbers), Value::one(dtype))).collect();
                for policy in POLICIES {
                    for (capacity, pipelined) in capacities().into_iter().zip([false, true, false, true]) {
                        let description = Description::new(sizes.len(), dtype, init, merge);
                        let description = Description { policy: policy.into(), capacity, pipelined, ..description };
                        let mut workspace = OwnedWorkspace::new(&description).unwrap();
                        for _ in 0..2 {
                            workspace.reset(sizes).unwrap();
                            // Nothing, much, nothing, little; after each of them, what is there.
                            for part in [0..0, 0..40, 40..40, 40..43, 43..60] {
                                for (coordinates, value) in &stream[part.clone()] {
                                    workspace.update(coordinates, *value).unwrap();
                                }
                                let expected = model(&stream[..part.end].to_vec(), merge, init);
                                let got = workspace.finalize().unwrap();
                                assert!(same(&got, &expected), "{policy} {description:?}: {got:?}, not {expected:?}");
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
    let mut numbers = Numbers(1);
    let shapes: [&[u64]; 5] = [&[40], &[7, 9], &[1, 30, 2], &[3, 4, 1, 5], &[]];
    for dtype in DType::ALL {
        for (merge, init) in merges(dtype) {
            for sizes in shapes {
                let coordinates = |numbers: &mut Numbers| sizes.iter().map(|size| numbers.below(*size)).collect();
                let stream: Stream = (0..50).map(|_| (coordinates(&mut numbers), numbers.value(dtype))).collect();
                let expected = model(&stream, merge, init);
                for policy in POLICIES {
                    for capacity in capacities() {
                        let mut description = Description {
                            policy: policy.into(),
                            capacity,
                            ..Description::new(sizes.len(), dtype, init, merge)
                        };
                        if let Some(width) = description.widths.first_mut() {
                            *width = Width::U64;
                        }
                        let mut workspace = OwnedWorkspace::new(&description).unwrap();
                        let got = run(&mut workspace, sizes, &stream).unwrap();
                        let what = format!("{policy} {capacity:?} {dtype} {merge:?} {sizes:?} {stream:?}");
                        assert!(same(&got, &expected), "{what}: {got:?}, not {expected:?}");
                    }
                }
            }
        }
    }
}

/// Long streams, with keys of every width, used again with other sizes.
#[test]
fn long_streams_and_all_widths_of_keys() {
    let mut numbers = Numbers(7);
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
            let description =
                Description { policy: policy.into(), widths: vec![Width::U64; 4], capacity, pipelined, ..sum(4) };
            let mut workspace = OwnedWorkspace::new(&description).unwrap();
            for sizes in shapes {
                for len in [0, 1, 30, 3000, 20_000] {
                    // Many come twice: only some coordinates of a large dimension are used.
                    let step = |size: u64| (size / 40).max(1);
                    let coordinates = |numbers: &mut Numbers| {
                        sizes.iter().map(|size| (numbers.below(40) * step(*size)) % size).collect::<Vec<_>>()
                    };
                    let value = |numbers: &mut Numbers| Value::F64(numbers.below(10) as f64);
                    let stream: Stream = (0..len).map(|_| (coordinates(&mut numbers), value(&mut numbers))).collect();
                    let expected = model(&stream, description.merge, description.init);
                    let got = run(&mut workspace, &sizes, &stream).unwrap();
                    assert!(got == expected, "{policy} {capacity:?} {sizes:?} {len}");
                }
            }
        }
    }
}

/// More entries than are collected before the first merge, twice; the sums are exact in no order but that of insertion.
#[test]
fn growing_workspaces_merge_now_and_then() {
    let mut numbers = Numbers(3);
    for size in [1 << 20, 300] {
        let sizes = [size, 300];
        let stream: Stream = (0..80 * CACHED as u64)
            .map(|_| {
                (
                    vec![numbers.below(sizes[0]), numbers.below(sizes[1])],
                    Value::F64(1.0 / (1 + numbers.below(99)) as f64),
                )
            })
            .collect();
        let expected = model(&stream, sum(2).merge, Value::F64(0.0));
        let mut workspace = OwnedWorkspace::new(&sum(2)).unwrap();
        assert!(run(&mut workspace, &sizes, &stream).unwrap() == expected, "appended entries are added in their order");
        let report = workspace.report();
        assert_eq!((report.inserts, report.flushes), (80 * CACHED as u64, 79), "{report:?}");
        assert!(report.merged < 3 * report.inserts, "{report:?}");
        let hash = Description { policy: "hash".into(), ..sum(2) };
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
    let mut numbers = Numbers(5);
    let stream: Stream = (0..200_000)
        .map(|_| (vec![numbers.below(300), numbers.below(300)], Value::F64(1.0 / (1 + numbers.below(99)) as f64)))
        .collect();
    for policy in POLICIES {
        for capacity in [NonZero::new(777), NonZero::new(50_000), None] {
            let serial = Description { policy: policy.into(), capacity, ..sum(2) };
            let pipelined = Description { pipelined: true, ..serial.clone() };
            let [mut a, mut b] = [serial, pipelined].map(|description| OwnedWorkspace::new(&description).unwrap());
            for part in [&stream[..1000].to_vec(), &stream] {
                let (got, expected) =
                    (run(&mut b, &[300, 300], part).unwrap(), run(&mut a, &[300, 300], part).unwrap());
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
    let description = Description { pipelined: true, capacity: NonZero::new(4), ..sum(1) };
    let mut workspace = OwnedWorkspace::new(&description).unwrap();
    workspace.reset(&[9]).unwrap();
    for i in 0..4 {
        workspace.update(&[i], Value::F64(1.0)).unwrap();
    }
    assert!(!workspace.workspace.pipeline.started());
    workspace.update(&[4], Value::F64(1.0)).unwrap();
    assert!(workspace.workspace.pipeline.started());
    // Dropped in the middle, and reset in the middle: nothing hangs, nothing is left.
    workspace.reset(&[9]).unwrap();
    assert_eq!(workspace.finalize().unwrap(), []);
}

#[test]
fn hostile_sizes_and_coordinates() {
    for policy in POLICIES {
        let description = Description { policy: policy.into(), ..sum(2) };
        let mut workspace = OwnedWorkspace::new(&description).unwrap();
        workspace.reset(&[0, 5]).unwrap();
        assert_eq!(workspace.workspace.insert(&[0, 0]), Err(Stop::Range { dimension: 0, coordinate: 0, size: 0 }));
        assert_eq!(workspace.finalize().unwrap(), []);
        let wide = Stop::Width { dimension: 1, size: 1 << 33 };
        assert_eq!(workspace.reset(&[5, 1 << 33]), Err(wide));
        // After a failure, too: nothing but an error.
        assert!(workspace.update(&[1, 1], Value::F64(1.0)).is_err());
        workspace.reset(&[1 << 32, 5]).unwrap();
        workspace.update(&[u64::from(u32::MAX), 4], Value::F64(1.0)).unwrap();
        let outside = Stop::Range { dimension: 1, coordinate: 5, size: 5 };
        assert_eq!(workspace.workspace.insert(&[3, 5]), Err(outside));
        assert!(workspace.workspace.insert(&[3]).is_err());
        assert_eq!(workspace.finalize().unwrap(), [(vec![u64::from(u32::MAX), 4], Value::F64(1.0))]);
    }
    let wide = Description { widths: vec![Width::U64; 70], ..sum(70) };
    let mut workspace = OwnedWorkspace::new(&wide).unwrap();
    assert!(matches!(workspace.reset(&[1 << 62; 70]), Err(Stop::Memory { .. })), "more bits than any key has");
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

/// Code that appends by itself is checked when its entries are sorted.
#[test]
fn appended_coordinates_are_checked() {
    let mut workspace = OwnedWorkspace::new(&sum(2)).unwrap();
    workspace.reset(&[10, 10]).unwrap();
    workspace.update(&[3, 4], Value::F64(1.0)).unwrap();
    let Lane::Narrow(data) = workspace.workspace.lanes[1] else { panic!("is wide") };
    // SAFETY: there is one entry.
    unsafe { data.write(10) };
    assert_eq!(workspace.finalize(), Err(Stop::Range { dimension: 1, coordinate: 10, size: 10 }));
    workspace.reset(&[10, 10]).unwrap();
    assert_eq!(workspace.finalize(), Ok(vec![]));
}

#[test]
fn what_cannot_be_is_refused() {
    let refused = |description: Description| OwnedWorkspace::new(&description).unwrap_err();
    assert!(refused(Description { policy: "none".into(), ..sum(1) }).contains("no policy `none`"));
    assert!(refused(Description { widths: vec![Width::U16], ..sum(1) }).contains("u32"));
    assert!(refused(Description { init: Value::I8(0), ..sum(1) }).contains("f64"));
    let smallest = Description::new(1, DType::C64, Value::zero(DType::C64), Some(Merge::Op(Op::Min)));
    assert!(refused(smallest).contains("cannot be merged"));
    assert!(refused(Description { merge: Some(Merge::Op(Op::Sin)), ..sum(1) }).contains("cannot be merged"));
    assert!(!register("coord", || Box::new(coord::Coord)));
}

/// Policies that break their contract.
struct Bad(fn(&Entries<'_>) -> Place, bool);

impl Policy for Bad {
    fn place(&mut self, _: &[u64], entries: &Entries<'_>) -> Result<Place, OutOfMemory> {
        Ok((self.0)(entries))
    }
    fn sort(&mut self, _: &Entries<'_>, ids: &mut [u32]) -> bool {
        // None of these is an order.
        ids.fill(u32::MAX);
        true
    }
    fn clear(&mut self, _: &Entries<'_>) {
        assert!(!self.1, "panics in the other thread");
    }
}

#[test]
fn bad_policies_fail_and_harm_nobody() {
    register("bad-lost", || Box::new(Bad(|entries| Place::Found(entries.len()), false)));
    register("bad-full", || Box::new(Bad(|_| Place::Full, false)));
    register("bad-new", || Box::new(Bad(|_| Place::New, false)));
    register("bad-panic", || Box::new(Bad(|_| Place::New, true)));
    assert!(policies().contains(&"bad-new".to_string()));
    let insert = |name: &str, pipelined: bool| {
        let description = Description { policy: name.into(), capacity: NonZero::new(5), pipelined, ..sum(1) };
        let stream: Stream = [9, 3, 7, 3, 1, 4, 2, 9].map(|i| (vec![i], Value::F64(1.0))).to_vec();
        run(&mut OwnedWorkspace::new(&description).unwrap(), &[10], &stream)
    };
    assert_eq!(insert("bad-lost", false), Err(Stop::Broken(Broken::Lost)));
    assert_eq!(insert("bad-full", false), Err(Stop::Broken(Broken::Full)));
    let sums = [(1, 1.0), (2, 1.0), (3, 2.0), (4, 1.0), (7, 1.0), (9, 2.0)];
    let sums = sums.map(|(i, value)| (vec![i], Value::F64(value))).to_vec();
    assert_eq!(insert("bad-new", false), Ok(sums.clone()), "an order that is none is not used");
    assert_eq!(insert("bad-new", true), Ok(sums));
    assert_eq!(insert("bad-panic", true), Err(Stop::Broken(Broken::Panicked)));
}
