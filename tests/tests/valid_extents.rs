//! Tests of `valid` extents: loops that only affine subscripts bound run as far as the window fits,
//! and are empty if it fits nowhere.

use tamis_ir::algebra::DType;
use tamis_ir::{Program, Value};
use tamis_tensor::Tensor;
use tamis_tests::convolve::{check, expected, random};
use tamis_tests::generate::Input;
use tamis_tests::lowered::Engine;

const NAMES: [(&str, &str); 3] = [("i", "k"), ("j", "l"), ("m", "p")];

/// The number of positions of a window of `length` in `size`.
fn places(size: u64, length: u64) -> u64 {
    (size + 1).saturating_sub(length)
}

fn ones(shape: &[u64]) -> Tensor {
    let count: u64 = shape.iter().product();
    let values = (0..count).map(|k| Value::I64(1 + k as i64)).collect();
    Input { shape: shape.to_vec(), values, dtype: DType::I64 }.tensor("dense").unwrap()
}

/// Sizes and filters around the point where the filter no longer fits, in loop programs and in
/// notation.
#[test]
fn filters_larger_than_tensors_give_empty_results() {
    for rank in 1..=3usize {
        let names = &NAMES[..rank];
        let list = |names: Vec<&str>| names.join(",");
        let (outer, inner) = (list(names.iter().map(|n| n.0).collect()), list(names.iter().map(|n| n.1).collect()));
        let sums: Vec<String> = names.iter().map(|(i, k)| format!("{i}+{k}")).collect();
        let body = |update: &str| format!("O[{outer}] {update} I[{}] * F[{inner}]", sums.join(","));
        let text = format!(
            "def f(I, F):\n    O = tensor(\"dense\")\n    for {outer},{inner} in _:\n        {}\n    return O\n",
            body("+=")
        );
        let program = Program::parse(&text).unwrap();
        let notation = body("=");
        for size in 0..4u64 {
            for length in 1..5u64 {
                // One dimension in which the filter may not fit, and others in which it does.
                let mut shape = vec![4; rank];
                let mut filter = vec![2; rank];
                shape[rank - 1] = size;
                filter[rank - 1] = length;
                let wanted: Vec<u64> = shape.iter().zip(&filter).map(|(n, k)| places(*n, *k)).collect();
                for format in [["sparse", "dcsr", "csf"], ["dense"; 3], ["runs", "dense, runs", "coo"]] {
                    let input = random(size + 1, &shape, 2).tensor(format[rank - 1]).unwrap();
                    let tensors = [input, ones(&filter)];
                    check(&text, &tensors, Engine::Checked);
                    let outcome = expected(&program, &tensors);
                    assert_eq!(outcome[0].len() as u64, wanted.iter().product::<u64>(), "{text}");
                    let given = [("I", &tensors[0]), ("F", &tensors[1])];
                    let made = tamis::einsum(&notation, &given, &tamis::notation::EinsumOptions::default());
                    let made = made.unwrap_or_else(|d| panic!("{text}{shape:?} {filter:?}\n{d}"));
                    assert_eq!(made[0].shape(), wanted, "{text}");
                }
            }
        }
    }
}

/// Reads out of bounds by `range`, a bare subscript or a number remain errors.
#[test]
fn reads_out_of_bounds_remain_errors() {
    for body in [
        "for i in range(3):\n        for k in range(3):\n            O[i] += I[i+k] * F[k]",
        "for i, k in _:\n        O[i] += I[i+k] * F[k] * I[i]",
        "for i in _:\n        O[i] += I[i] * I[2]",
    ] {
        let text = format!("def f(I, F):\n    O = tensor(\"dense\")\n    {body}\n    return O\n");
        let program = Program::parse(&text).unwrap();
        for size in 1..3 {
            let (input, filter) = (ones(&[size]), ones(&[3]));
            let given = [("I", &input), ("F", &filter)];
            let errors = tamis::run(&program, &given, &tamis::run::RunOptions::default()).unwrap_err();
            assert_eq!(errors.0[0].code, tamis::diagnostic::Code::E0405, "{text}{errors}");
        }
    }
}
