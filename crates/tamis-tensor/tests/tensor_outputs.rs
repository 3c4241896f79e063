//! Tensors from arrays that are longer than needed, and the first difference of two tensors.

use tamis_ir::format::Format;
use tamis_ir::{Code, Value};
use tamis_tensor::{IndexArray, LevelArrays, Tensor, ValueArray};

/// The arrays of a tensor, each with some meaningless elements appended.
fn longer(tensor: &Tensor, extra: usize) -> (Vec<LevelArrays>, Option<ValueArray>) {
    let extend = |array: &IndexArray| {
        let mut numbers = array.to_vec();
        numbers.extend(std::iter::repeat_n(200, extra));
        IndexArray::with_width(&numbers, array.width()).unwrap()
    };
    let level = |k| {
        let arrays = tensor.level_arrays(k).arrays;
        LevelArrays::new(arrays.iter().map(|(name, array)| (*name, extend(array))).collect::<Vec<_>>())
    };
    let values = tensor.values().map(|values| {
        let mut all: Vec<Value> = (0..values.len()).map(|k| values.get(k)).collect();
        all.extend(std::iter::repeat_n(Value::one(values.dtype()), extra));
        ValueArray::from_values(&all, values.dtype())
    });
    ((0..tensor.levels().len()).map(level).collect(), values)
}

const FORMATS: [&str; 12] = [
    "dense",
    "csr",
    "csc",
    "dcsr",
    "coo",
    "csr; pattern",
    "dense, bytemap",
    "bytemap, sparse",
    "hash, hash",
    "sparse, dense",
    "dense, singleton",
    "sparse[u8,u16], sparse[u64,u8]",
];

#[test]
fn arrays_are_cut_to_length() {
    for text in FORMATS {
        let format = Format::parse(text, 2).unwrap();
        // One entry in each row, which every format can store.
        let values = vec![0.0, 1.0, 0.0, 2.0, 0.0, 0.0, 0.0, 0.0, 3.0];
        let tensor = Tensor::from_dense(&[3, 3], values.into(), &format, Value::F64(0.0)).unwrap();
        for extra in [0, 1, 5000] {
            let (levels, values) = longer(&tensor, extra);
            let made =
                Tensor::from_longer_parts(&[3, 3], &format, levels.clone(), values.clone(), tensor.fill()).unwrap();
            // SAFETY: the arrays are those of a tensor.
            let trusted = unsafe {
                Tensor::from_longer_parts_unchecked(&[3, 3], &format, levels, values, tensor.fill()).unwrap()
            };
            for made in [made, trusted] {
                assert!(made.same_values(&tensor), "{text}");
                assert_eq!((made.nnz(), made.nbytes()), (tensor.nnz(), tensor.nbytes()), "{text} {extra}");
            }
        }
    }
}

#[test]
fn arrays_that_are_too_short_or_wrong_are_refused() {
    let csr = Format::csr();
    let tensor = Tensor::from_dense(&[2, 2], vec![1.0, 0.0, 0.0, 2.0].into(), &csr, Value::F64(0.0)).unwrap();
    let made = |pos: Vec<u32>, crd: Vec<u32>, values: Vec<f64>| {
        let list = LevelArrays::new([("pos", pos.into()), ("crd", crd.into())]);
        let levels = vec![LevelArrays::default(), list];
        Tensor::from_longer_parts(&[2, 2], &csr, levels, Some(values.into()), Value::F64(0.0))
    };
    assert!(made(vec![0, 1, 2, 9], vec![0, 1, 9], vec![1.0, 2.0, 9.0]).unwrap().same_values(&tensor));
    assert_eq!(made(vec![0, 1], vec![0, 1], vec![1.0, 2.0]).unwrap_err().code, Code::E0701);
    assert_eq!(made(vec![0, 1, 3], vec![0, 1], vec![1.0, 2.0]).unwrap_err().code, Code::E0701);
    assert_eq!(made(vec![0, 1, 2], vec![0, 1], vec![1.0]).unwrap_err().code, Code::E0701);
    assert_eq!(made(vec![0, 2, 1], vec![0, 1], vec![1.0, 2.0]).unwrap_err().code, Code::E0702);
    assert_eq!(made(vec![0, 1, 2], vec![0, 5], vec![1.0, 2.0]).unwrap_err().code, Code::E0703);
    let none = Tensor::from_longer_parts(&[2, 2], &csr, Vec::new(), None, Value::F64(0.0));
    assert_eq!(none.unwrap_err().code, Code::E0701);
}

/// Arrays that grow by doubling do not retain twice the needed memory.
#[test]
fn memory_is_given_back() {
    let mut crd: Vec<u32> = Vec::with_capacity(1 << 20);
    crd.extend(0..1000);
    let kept = IndexArray::from(crd).truncated(900);
    let IndexArray::U32(kept) = kept else { panic!("another width") };
    let vector = kept.into_vec();
    assert!(vector.len() == 900 && vector.capacity() < 2000, "{}", vector.capacity());
    // A little unused memory is kept, and shared arrays are copied.
    let shared: IndexArray = vec![1u16, 2, 3].into();
    assert_eq!((shared.clone().truncated(2).to_vec(), shared.to_vec()), (vec![1, 2], vec![1, 2, 3]));
    assert_eq!(ValueArray::from(vec![true, false]).truncated(1), ValueArray::from(vec![true]));
}

#[test]
fn the_first_difference_in_every_pair_of_formats() {
    let formats = ["dense", "csr", "csc", "coo", "dense, bytemap", "(i,j) -> (j,i): dense, dense"];
    let make = |values: &[f64], format: &str, fill: f64| {
        let format = Format::parse(format, 2).unwrap();
        Tensor::from_dense(&[2, 3], values.to_vec().into(), &format, Value::F64(fill)).unwrap()
    };
    let exact = |a: Value, b: Value| a == b;
    let (a, b) = ([0.0, 1.0, 0.0, 0.0, 5.0, 0.0], [0.0, 1.0, 0.0, 7.0, 4.0, 0.0]);
    for first in formats {
        for second in formats {
            let difference = |x: &[f64], fx, y: &[f64], fy| {
                make(x, first, fx).first_difference(&make(y, second, fy), &exact).unwrap()
            };
            let both = format!("{first} and {second}");
            assert_eq!(difference(&a, 0.0, &a, 0.0), None, "{both}");
            assert_eq!(difference(&a, 0.0, &b, 0.0), Some((vec![1, 0], Value::F64(0.0), Value::F64(7.0))), "{both}");
            // Equal values with different fills are equal.
            assert_eq!(difference(&a, 0.0, &a, 1.0), None, "{both}");
            assert_eq!(difference(&a, 1.0, &b, 7.0), Some((vec![1, 0], Value::F64(0.0), Value::F64(7.0))), "{both}");
        }
    }
}

/// Coordinates that neither tensor stores compare the fills.
#[test]
fn fills_that_differ() {
    let format = Format::parse("csr", 2).unwrap();
    let make = |stored: &[f64], fill: f64| {
        Tensor::from_dense(&[2, 2], stored.to_vec().into(), &format, Value::F64(fill)).unwrap()
    };
    let exact = |a: Value, b: Value| a == b;
    let difference =
        make(&[5.0, 0.0, 0.0, 0.0], 0.0).first_difference(&make(&[5.0, 1.0, 1.0, 1.0], 1.0), &exact).unwrap();
    assert_eq!(difference, Some((vec![0, 1], Value::F64(0.0), Value::F64(1.0))));
    let full = make(&[5.0, 6.0, 7.0, 8.0], 0.0);
    assert_eq!(full.first_difference(&make(&[5.0, 6.0, 7.0, 8.0], 1.0), &exact).unwrap(), None);
    // Shapes that are too large to enumerate are supported.
    let huge = |fill: f64| {
        let parts = vec![
            LevelArrays::new([("pos", vec![0u32, 0].into()), ("crd", Vec::<u32>::new().into())]),
            LevelArrays::new([("pos", vec![0u32].into()), ("crd", Vec::<u32>::new().into())]),
        ];
        let shape = [1 << 40, 1 << 40];
        Tensor::from_parts(
            &shape,
            &Format::parse("dcsr", 2).unwrap(),
            parts,
            Some(Vec::<f64>::new().into()),
            Value::F64(fill),
        )
        .unwrap()
    };
    assert_eq!(huge(0.0).first_difference(&huge(0.0), &exact).unwrap(), None);
    assert_eq!(
        huge(0.0).first_difference(&huge(2.0), &exact).unwrap(),
        Some((vec![0, 0], Value::F64(0.0), Value::F64(2.0)))
    );
}
