//! Differential tests of workspaces in kernels: machine code with every policy and capacity, and C,
//! against the interpreter.

use crate::common::native::run_c;
use crate::common::random::KernelRng;
use crate::common::{run_llvm, same};
use std::sync::Arc;
use tamis_backend::runtime::run_on_arrays;
use tamis_backend::{CodegenOptions, llvm};
use tamis_ir::algebra::Op;
use tamis_ir::format::Width;
use tamis_ir::kernel::{Array, Builder, Elem, Kernel, Memory, Merge, Role, Stmt, Workspace, run};
use tamis_ir::{DType, Value};

/// A test case.
#[derive(Clone, Debug)]
struct WorkspaceCase {
    widths: Vec<Width>,
    dtype: DType,
    /// The update operator; `None` replaces the value.
    op: Option<Op>,
    start: Value,
    merge: Merge,
    policy: Option<&'static str>,
    capacity: Option<u64>,
    pipelined: bool,
    /// The number of rounds; the workspace is reset in each.
    iterations: i64,
    /// True if all entries are inserted again after finalizing.
    again: bool,
}

/// Inserts all entries of its inputs, finalizes the workspace, and returns the number of entries.
fn kernel(case: &WorkspaceCase) -> Kernel {
    let mut b = Builder::new("scatter");
    let n = case.widths.len();
    let keys: Vec<_> = (0..n).map(|k| b.buffer(format!("k{k}"), Elem::Index(Width::U64), Role::Input)).collect();
    let given = b.buffer("given", Elem::Value(case.dtype), Role::Input);
    let coordinates =
        case.widths.iter().enumerate().map(|(k, w)| b.buffer(format!("c{k}"), Elem::Index(*w), Role::Output)).collect();
    let values = b.buffer("values", Elem::Value(case.dtype), Role::Output);
    let counts = b.buffer("counts", Elem::Index(Width::U64), Role::Output);
    let len = b.param("n", DType::I64);
    let sizes: Vec<_> = (0..n).map(|k| b.param(format!("size{k}"), DType::I64)).collect();
    let sizes: Vec<_> = sizes.into_iter().map(|size| b.get(size)).collect();
    let len = b.get(len);
    let workspace = Arc::new(Workspace {
        name: "w".into(),
        policy: case.policy.map(str::to_string),
        capacity: case.capacity,
        pipelined: case.pipelined,
        coordinates,
        values,
        start: case.start,
        merge: case.merge,
    });
    let (zero, one, iterations) = (b.int(0), b.int(1), b.int(case.iterations));
    b.emit(Stmt::Grow { buffer: counts, len: one, fill: None });
    b.store(counts, zero, zero);
    b.count("iteration", zero, iterations, |b, iteration| {
        b.emit(Stmt::Reset { workspace: workspace.clone(), sizes: sizes.clone() });
        // Finalized entries remain, and can be updated.
        for _ in 0..if case.again { 2 } else { 1 } {
            // Later rounds insert fewer entries.
            b.count("e", iteration, len, |b, e| {
                let tuple = keys.iter().map(|key| b.load(*key, e)).collect();
                let place = b.insert(&workspace, tuple);
                let value = b.load(given, e);
                let new = match case.op {
                    Some(op) => {
                        let before = b.load(values, place);
                        b.call_in(op, case.dtype, &[before, value])
                    }
                    None => value,
                };
                b.store(values, place, new);
            });
            let count = b.finalize(&workspace);
            b.store(counts, zero, count);
        }
    });
    b.finish()
}

fn memory(case: &WorkspaceCase, random: &mut KernelRng, len: usize, sizes: &[i64]) -> Memory {
    let mut arrays = Vec::new();
    for size in sizes {
        let all: Vec<u64> = (0..len).map(|_| random.below(*size as usize) as u64).collect();
        arrays.push(Array::from_values(all.into_iter().map(|x| Value::I64(x as i64))));
    }
    let numbers = (0..len).map(|_| Value::I64(random.below(7) as i64 - 3).cast(case.dtype));
    arrays.push(Array::from_values(numbers.collect::<Vec<_>>()));
    arrays.extend((0..case.widths.len() + 2).map(|_| Array::from_values([])));
    let scalars = std::iter::once(len as i64).chain(sizes.iter().copied()).map(Value::I64).collect();
    Memory { arrays, scalars }
}

/// Truncates the arrays of a workspace to its entries; the rest is uninitialised.
fn cut(mut memory: Memory, dimensions: usize) -> Memory {
    let at = memory.arrays.len() - 1;
    let count = memory.arrays[at].values()[0].as_i64().unwrap() as usize;
    memory.arrays[at] = Array::from_values([Value::I64(count as i64)]);
    for k in at - dimensions - 1..at {
        let kept: Vec<Value> = memory.arrays[k].values()[..count].to_vec();
        memory.arrays[k] = Array::from_values(kept);
    }
    memory
}

fn cases() -> Vec<WorkspaceCase> {
    let base = WorkspaceCase {
        widths: vec![Width::U32, Width::U64],
        dtype: DType::F64,
        op: Some(Op::Add),
        start: Value::F64(0.0),
        merge: Merge::With(Op::Add),
        policy: None,
        capacity: None,
        pipelined: false,
        iterations: 2,
        again: false,
    };
    let mut cases = Vec::new();
    for policy in [None, Some("coord"), Some("hash"), Some("bucket"), Some("map"), Some("vector")] {
        for capacity in [None, Some(1), Some(2), Some(6)] {
            for pipelined in [false, true] {
                cases.push(WorkspaceCase { policy, capacity, pipelined, ..base.clone() });
            }
            cases.push(WorkspaceCase { policy, capacity, merge: Merge::Never, ..base.clone() });
            cases.push(WorkspaceCase { policy, capacity, op: None, merge: Merge::Later, ..base.clone() });
            let start = Value::I32(i32::MAX);
            let min = WorkspaceCase {
                op: Some(Op::Min),
                merge: Merge::With(Op::Min),
                dtype: DType::I32,
                start,
                ..base.clone()
            };
            cases.push(WorkspaceCase { policy, capacity, ..min });
        }
    }
    for dtype in DType::ALL {
        let op = if dtype == DType::Bool { Op::Or } else { Op::Add };
        let start = Value::zero(dtype);
        let case = WorkspaceCase { dtype, op: Some(op), start, merge: Merge::With(op), ..base.clone() };
        for policy in [Some("coord"), Some("hash")] {
            for rank in 1..=4 {
                let widths = (0..rank).map(|k| if k % 2 == 0 { Width::U32 } else { Width::U64 }).collect();
                cases.push(WorkspaceCase { widths, policy, capacity: Some(5), ..case.clone() });
            }
        }
    }
    for k in (0..cases.len()).step_by(2) {
        cases[k].again = true;
    }
    cases
}

#[test]
fn machine_code_of_every_policy() {
    let mut random = KernelRng(1);
    for (k, case) in cases().into_iter().enumerate() {
        let kernel = kernel(&case);
        kernel.verify().unwrap_or_else(|reason| panic!("{reason}\n{kernel}"));
        let n = case.widths.len();
        let options = CodegenOptions::host().unwrap();
        let options = if k % 2 == 0 { options } else { options.checked() };
        let compiled = llvm::compile(&kernel, &options).unwrap();
        for (len, size) in [(0, 3), (1, 1), (40, 4), (300, 9)] {
            let sizes = vec![size; n];
            let memory = memory(&case, &mut random, len, &sizes);
            let expected = cut(run(&kernel, memory.clone(), 1 << 24).unwrap(), n);
            // SAFETY: the arrays are of the kernel's types, and the kernel stays within them.
            let call = |buffers: &mut [_], scalars: &[_]| unsafe { compiled.call(buffers, scalars) };
            let found = run_on_arrays(&kernel, memory, call).unwrap_or_else(|e| panic!("{case:?}: {e:?}\n{kernel}"));
            same(&expected, &cut(found, n), &kernel).unwrap_or_else(|reason| panic!("{case:?}, {len}: {reason}"));
        }
    }
}

#[test]
fn c_generates_its_own_workspaces() {
    let mut random = KernelRng(2);
    for case in cases().into_iter().filter(|case| case.policy.is_none() || case.capacity == Some(5)).step_by(3) {
        let kernel = kernel(&case);
        let n = case.widths.len();
        let memory = memory(&case, &mut random, 300, &vec![6; n]);
        let expected = cut(run(&kernel, memory.clone(), 1 << 24).unwrap(), n);
        let found = run_c(&kernel, memory).unwrap_or_else(|e| panic!("{case:?}: {e:?}"));
        same(&expected, &cut(found, n), &kernel).unwrap_or_else(|reason| panic!("{case:?}: {reason}"));
    }
}

#[test]
fn coordinates_out_of_range_fail_in_check_mode() {
    let case = WorkspaceCase { widths: vec![Width::U32], policy: Some("hash"), iterations: 1, ..cases()[0].clone() };
    let kernel = kernel(&case);
    let arrays = vec![Array::from_indices(&[3]), crate::common::floats(&[1.0])];
    let arrays = arrays.into_iter().chain((0..3).map(|_| Array::from_values([]))).collect();
    let memory = Memory { arrays, scalars: vec![Value::I64(1), Value::I64(3)] };
    assert!(run(&kernel, memory.clone(), 1000).is_err());
    assert!(run_llvm(&kernel, memory, &CodegenOptions::host().unwrap().checked()).is_err());
}
