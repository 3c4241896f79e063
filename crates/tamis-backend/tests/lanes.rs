//! Explicit vectors in machine code: reductions across lanes, variables between outlined functions,
//! short-circuit evaluation by lane, and bounds of active lanes.

use crate::common::{run_llvm, run_outlined, same};
use tamis_backend::{CodegenOptions, KernelFailure};
use tamis_ir::algebra::{Op, TABLE, Ty};
use tamis_ir::kernel::{Array, Builder, Elem, Kernel, Memory, Role, Stmt, VectorExpr, run};
use tamis_ir::{DType, Value};

/// Every associative operator on every type, across 2 to 16 lanes, from a variable that is defined
/// in another function.
#[test]
fn reductions_across_lanes() {
    let mut reduced = 0;
    for dtype in DType::ALL {
        let mut b = Builder::new("reduce");
        let x = b.buffer("x", Elem::Value(dtype), Role::Input);
        let y = b.buffer("y", Elem::Value(dtype), Role::Output);
        let zero = b.int(0);
        let mut number = 0;
        for row in TABLE {
            let strong = [Ty::strong(dtype), Ty::strong(dtype)];
            let fits = row.op.type_of(&strong).is_ok_and(|t| (t.result.dtype, t.operand) == (dtype, dtype));
            if !(row.associative && row.commutative && fits) {
                continue;
            }
            for lanes in [2u16, 4, 16] {
                let ramp = b.vector(VectorExpr::Ramp { start: zero, step: 1, lanes });
                let value = b.load(x, ramp);
                let lanes_of_x = b.new_vector(format!("v{number}"), dtype, lanes, false);
                b.emit(Stmt::Let { var: lanes_of_x, value });
                let vector = b.get(lanes_of_x);
                let total = b.vector(VectorExpr::Reduce { op: row.op, value: vector });
                let total = b.name(format!("total{number}"), total);
                let at = b.int(number);
                b.store(y, at, total);
                number += 1;
            }
        }
        let kernel = b.finish();
        kernel.verify().unwrap_or_else(|wrong| panic!("{wrong}\n{kernel}"));
        let inputs = (0..16).map(|k| Value::I64([3, 1, 0, 2, 5, 1, 1, 4][k % 8]).cast(dtype));
        let results = vec![Value::zero(dtype); number as usize];
        let memory = Memory { arrays: vec![Array::from_values(inputs), Array::from_values(results)], scalars: vec![] };
        let expected = run(&kernel, memory.clone(), 100_000).unwrap();
        let host = CodegenOptions::host().unwrap();
        for size in [None, Some(1)] {
            let after = run_outlined(&kernel, memory.clone(), &host, size).unwrap();
            same(&expected, &after, &kernel).unwrap_or_else(|wrong| panic!("{dtype}: {wrong}\n{kernel}"));
        }
        reduced += number;
    }
    assert!(reduced > 200, "{reduced}");
}

fn parse(body: &str) -> Kernel {
    let header = "kernel f\n    in x: f64[]\n    in at: index u32[]\n    out y: f64[]\n    in n: i64\nbegin\n";
    Kernel::parse(&format!("{header}{body}")).unwrap_or_else(|d| panic!("{}", d.render(false)))
}

fn memory(n: i64) -> Memory {
    let floats = |values: Vec<f64>| Array::from_values(values.into_iter().map(Value::F64));
    let at = Array::from_values([5i64, 0, 3, 3, 2, 9, 1, 7].map(Value::I64));
    let arrays = vec![floats((0..10).map(f64::from).collect()), at, floats(vec![-1.0; 10])];
    Memory { arrays, scalars: vec![Value::I64(n)] }
}

/// Operands that a lane does not choose are not read: the elements may not exist.
#[test]
fn lanes_read_what_they_choose() {
    let bodies = [
        "    y[ramp(0, 1, 8)] = select(ramp(0, 1, 8) < n, x[(ramp(n - 8, 1, 8) + 8) - n], -2.0)\n",
        "    y[ramp(0, 1, 8)] = select(ramp(0, 1, 8) < n, x[ramp(0, 3, 8)], -2.0)\n",
        "    y[ramp(0, 1, 8)] = select((ramp(0, 1, 8) < n) and (x[ramp(0, 3, 8)] > 2.0), 1.0, x[ramp(2, 1, 8)])\n",
        "    y[ramp(0, 1, 8)] = select(ramp(0, 1, 8) >= n, 3.0, x[(n * 3) - 3] + x[ramp(0, 3, 8)])\n",
        "    y[at[ramp(0, 1, 8)]] = x[ramp(0, 1, 8)] where ramp(0, 1, 8) < n\n",
        "    y[at[ramp(0, 1, 8)]] = x[ramp(0, 3, 8)] where ramp(0, 1, 8) < n\n",
        "    y[ramp(5, 1, 8)] = x[at[ramp(0, 1, 8)]] where ramp(0, 1, 8) < (n + 1)\n",
    ];
    for body in bodies {
        let kernel = parse(body);
        let mut ran = 0;
        for n in 0..=8 {
            let Ok(expected) = run(&kernel, memory(n), 10_000) else { continue };
            ran += 1;
            for options in [CodegenOptions::host().unwrap(), CodegenOptions::host().unwrap().checked()] {
                let after = run_llvm(&kernel, memory(n), &options).unwrap_or_else(|f| panic!("{f:?}\n{kernel}"));
                same(&expected, &after, &kernel).unwrap_or_else(|wrong| panic!("n = {n}: {wrong}\n{kernel}"));
            }
        }
        assert!(ran > 2, "{body}");
    }
}

/// In check mode, the first lane out of bounds is a failure with its index.
#[test]
fn lanes_out_of_bounds_are_failures() {
    let cases = [
        ("    y[ramp(0, 1, 8)] = x[ramp(n, 1, 8)]\n", 10),
        ("    y[ramp(0, 1, 8)] = x[ramp(0, 2, 8)]\n", 10),
        ("    y[at[ramp(0, 1, 8)] + n] = 1.0\n", 12),
        ("    y[ramp(n, 1, 8)] = 1.0 where ramp(n, 1, 8) < 11\n", 10),
    ];
    for (body, first) in cases {
        let kernel = parse(body);
        assert!(run(&kernel, memory(7), 10_000).is_err(), "{body}");
        match run_llvm(&kernel, memory(7), &CodegenOptions::host().unwrap().checked()) {
            Err(KernelFailure::Bounds { index, .. }) => assert_eq!(index, first, "{body}"),
            other => panic!("{body}: {:?}", other.map(|_| ())),
        }
    }
}

/// Updates of one element by several lanes happen one after the other.
#[test]
fn lanes_update_one_element() {
    for op in [Op::Add, Op::Mul, Op::Max, Op::Min] {
        let name = op.info().name;
        let kernel = parse(&format!("    atomic y[at[ramp(0, 1, 8)] % 3] {name} x[ramp(1, 1, 8)]\n"));
        let expected = run(&kernel, memory(0), 10_000).unwrap();
        let after = run_llvm(&kernel, memory(0), &CodegenOptions::host().unwrap()).unwrap();
        same(&expected, &after, &kernel).unwrap();
    }
}
