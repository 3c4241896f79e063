//! Statistics of small matrices, counted by hand.

use tamis_ir::{Format, Value};
use tamis_tensor::{Combine, Coordinates, MatrixStatistics, Tensor, ValueArray};

fn format(text: &str, rank: usize) -> Format {
    Format::parse(text, rank).unwrap()
}

fn dense(n: u64, values: impl Into<ValueArray>, text: &str) -> Tensor {
    let values = values.into();
    Tensor::from_dense(&[n, n], values, &format(text, 2), Value::I64(0)).unwrap()
}

fn matrix(t: &Tensor) -> MatrixStatistics {
    t.statistics().unwrap().matrix.unwrap()
}

#[test]
fn counts() {
    let entries = Coordinates {
        shape: vec![3, 4],
        columns: vec![vec![0u8, 0, 2, 2].into(), vec![0u8, 3, 0, 2].into()],
        values: vec![1.0, 2.0, 3.0, 0.0].into(),
    };
    for text in ["csr", "dcsc", "coo", "bytemap, bytemap", "dense, bytemap"] {
        let t = Tensor::from_coordinates(&entries, &format(text, 2), Value::I64(0), Combine::Error).unwrap();
        let s = t.statistics().unwrap();
        assert_eq!((s.stored, s.explicit_zeros, s.explicit_fills), (4, 1, 1), "{text}");
        assert_eq!(s.density, 4.0 / 12.0);
        assert_eq!(s.levels.iter().map(|l| l.nbytes).sum::<usize>() + t.values().unwrap().nbytes(), s.nbytes, "{text}");
        let m = s.matrix.unwrap();
        assert_eq!((m.lower_bandwidth, m.upper_bandwidth), (2, 3), "{text}");
        assert_eq!((m.empty_rows, m.empty_columns), (1, 1));
        assert_eq!((m.most_per_row, m.most_per_column), (2, 2));
        assert_eq!((m.mean_per_row, m.mean_per_column), (4.0 / 3.0, 1.0));
        assert_eq!(m.diagonal_nonzeros, 1);
        assert!(!m.structurally_symmetric && !m.symmetric && !m.lower_triangular && !m.permutation);
    }
    let csr = Tensor::from_coordinates(&entries, &Format::csr(), Value::I64(0), Combine::Error).unwrap();
    let levels = csr.statistics().unwrap().levels;
    assert_eq!((levels[0].name.as_str(), levels[0].fibers, levels[0].coordinates, levels[0].most), ("dense", 1, 3, 3));
    let inner = &levels[1];
    assert_eq!((inner.fibers, inner.coordinates, inner.empty_fibers), (3, 4, 1));
    assert_eq!((inner.least, inner.mean, inner.most, inner.size, inner.dimension), (0, 4.0 / 3.0, 2, 4, 1));
    let holes = csr.convert(&format("bytemap, sparse", 2)).unwrap().statistics().unwrap().levels;
    assert_eq!((holes[1].fibers, holes[1].empty_fibers, holes[1].least), (2, 0, 2));
    assert!(csr.statistics().unwrap().to_string().contains("4 stored (1 zero)"));
}

#[test]
fn structures() {
    for text in ["csr", "csc", "dense", "dcsr", "(i,j) -> (j,i): sparse(nonunique), singleton"] {
        let symmetric = matrix(&dense(2, vec![1.0, 2.0, 2.0, 0.0], text));
        assert!(
            symmetric.symmetric && symmetric.hermitian && symmetric.structurally_symmetric && !symmetric.skew_symmetric
        );
        assert!(!symmetric.diagonal && !symmetric.lower_triangular);
        let structural = matrix(&dense(2, vec![1.0, 2.0, 3.0, 0.0], text));
        assert!(structural.structurally_symmetric && !structural.symmetric && !structural.hermitian);
        let skew = matrix(&dense(2, vec![0i32, 2, -2, 0], text));
        assert!(skew.skew_symmetric && !skew.symmetric, "{text}");
        let lower = matrix(&dense(2, vec![1u8, 0, 1, 1], text));
        assert!(lower.lower_triangular && !lower.upper_triangular && !lower.structurally_symmetric);
        let upper = matrix(&dense(2, vec![1u8, 1, 0, 1], text));
        assert!(upper.upper_triangular && !upper.lower_triangular);
        let diagonal = matrix(&dense(2, vec![1u8, 0, 0, 2], text));
        assert!(diagonal.diagonal && diagonal.symmetric && !diagonal.permutation && diagonal.diagonal_nonzeros == 2);
        let permutation = matrix(&dense(2, vec![false, true, true, false], text));
        assert!(permutation.permutation && permutation.symmetric && !permutation.skew_symmetric);
        let i = |im: f64| num_complex::Complex::new(0.0, im);
        let hermitian = matrix(&dense(2, vec![i(0.0), i(1.0), i(-1.0), i(0.0)], text));
        assert!(hermitian.hermitian && hermitian.skew_symmetric && !hermitian.symmetric);
        let complex_diagonal = matrix(&dense(2, vec![i(1.0), i(0.0), i(0.0), i(0.0)], text));
        assert!(!complex_diagonal.hermitian && complex_diagonal.symmetric);
    }
    let pattern = dense(2, vec![0.0, 1.0, 1.0, 0.0], "dense, singleton; pattern");
    assert!(matrix(&pattern).permutation && !matrix(&pattern).skew_symmetric);
    let filled =
        Tensor::from_dense(&[2, 2], vec![1.0, 5.0, -5.0, 1.0].into(), &Format::csr(), Value::F64(1.0)).unwrap();
    assert!(!matrix(&filled).skew_symmetric && matrix(&filled).structurally_symmetric);
}

#[test]
fn huge_and_empty() {
    let n = 1_000_000_000_000u64;
    let entries = Coordinates {
        shape: vec![n, n],
        columns: vec![vec![5u64, n - 1, 7].into(), vec![n - 1, 5u64, 7].into()],
        values: vec![2.0, 2.0, 1.0].into(),
    };
    let coo = Tensor::from_coordinates(&entries, &Format::coo(2), Value::I64(0), Combine::Error).unwrap();
    let m = matrix(&coo);
    assert!(m.symmetric && m.empty_rows == n - 3 && m.upper_bandwidth == n - 6 && m.diagonal_nonzeros == 1);
    for shape in [[0, 0], [0, 5], [1 << 40, 0]] {
        let none = Coordinates {
            shape: shape.to_vec(),
            columns: vec![Vec::<u8>::new().into(), Vec::<u8>::new().into()],
            values: Vec::<f64>::new().into(),
        };
        for text in ["dense", "coo", "csf"] {
            let t = Tensor::from_coordinates(&none, &format(text, 2), Value::I64(0), Combine::Error).unwrap();
            let s = t.statistics().unwrap();
            assert_eq!((s.stored, s.density), (0, 0.0));
            assert_eq!(s.matrix.unwrap().symmetric, shape[0] == shape[1]);
        }
    }
    let scalar = Tensor::scalar(Value::F64(0.0)).statistics().unwrap();
    assert_eq!((scalar.stored, scalar.explicit_zeros, scalar.density, scalar.levels.len()), (1, 1, 1.0, 0));
}
