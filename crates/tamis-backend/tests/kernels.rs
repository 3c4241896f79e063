//! Kernels written by hand.

mod common;

use common::{floats, run_llvm, same, spmv};
use tamis_backend::Options;
use tamis_ir::Value;
use tamis_ir::kernel::{Array, Memory, run};

fn small() -> Memory {
    Memory {
        arrays: vec![
            Array::from_indices(&[0, 2, 2, 3]),
            Array::from_indices(&[0, 3, 0]),
            floats(&[1.0, 2.0, 3.0]),
            floats(&[1.0; 4]),
            floats(&[7.0; 3]),
        ],
        scalars: vec![Value::I64(3)],
    }
}

#[test]
fn spmv_runs() {
    for vectorise in [false, true] {
        let kernel = spmv(vectorise);
        let after = run_llvm(&kernel, small(), &Options::host().unwrap()).unwrap();
        same(&run(&kernel, small(), 1000).unwrap(), &after, &kernel).unwrap();
        assert_eq!(after.arrays[4], floats(&[3.0, 0.0, 3.0]));
    }
}
