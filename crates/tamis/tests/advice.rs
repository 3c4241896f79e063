//! Advice on gallery matrices and on tensors that there is little to say about.

use std::time::Duration;
use tamis::advise;
use tamis::advise::{Advice, AdviseOptions, Measurement, advise_with};
use tamis::prelude::*;
use tamis::tensor::StoredPart;

fn generated(call: &str) -> Tensor {
    let entries = tamis::gallery::generate(call).unwrap_or_else(|d| panic!("{call}: {d}"));
    let fill = Value::zero(entries.values.dtype());
    Tensor::from_coordinates(&entries, &Format::coo(entries.shape.len()), fill, Combine::Error).unwrap()
}

fn short() -> AdviseOptions<'static> {
    AdviseOptions { time_limit: Duration::from_secs(2), ..AdviseOptions::default() }
}

fn advised(tensor: &Tensor) -> Advice {
    advise_with(tensor, &short()).unwrap_or_else(|d| panic!("{}", d.render(false)))
}

/// Every proposal runs and gives what the usual format gives, for every value type.
#[test]
fn every_proposal_runs() {
    let calls = [
        "laplacian(7)",
        "banded(30, 2)",
        "blocked(24, 3, 0.3)",
        "triangular(12)",
        "permutation(20)",
        "identity(9)",
        "rmat(5, 4)",
        "rand(9, 300; 0.1)",
        "rand(400, 6; 0.001)",
        "ones(6, 7)",
        "rand(30; 0.4)",
        "ones(30)",
        "rand(5, 6, 7; 0.2)",
        "ones(3, 4, 5)",
        "rand(3, 4, 5, 6; 0.1)",
    ];
    for call in calls {
        let tensor = generated(call);
        let dtypes: &[DType] =
            if call.starts_with("laplacian") || call.starts_with("rand(30") || call.starts_with("identity") {
                &DType::ALL
            } else {
                &[DType::F64]
            };
        for dtype in dtypes {
            let advice = advised(&tensor.cast(*dtype));
            for candidate in &advice.candidates {
                let what = format!("{call} as {dtype}: {} {:?}", candidate.format, candidate.part);
                match &candidate.outcome {
                    Measurement::Measured(times) => assert!(times.least <= times.run && times.runs > 0, "{what}"),
                    Measurement::Failed(d) => panic!("{what}: {d}\n{}", candidate.program),
                    Measurement::Untried => panic!("{what} was not tried"),
                }
            }
            assert_eq!(advice.candidates.iter().filter(|candidate| candidate.usual).count(), 1, "{call}");
            let runs: Vec<_> = advice.candidates.iter().filter_map(|c| c.times().map(|times| times.run)).collect();
            assert!(runs.is_sorted(), "{call}: the fastest comes first");
            assert!(advice.best().is_some_and(|best| best.times().is_some()), "{call}");
        }
    }
}

/// Matrices of which one triangle says it all, with the sign or the conjugate that it takes.
#[test]
fn triangles_of_symmetric_matrices() {
    let complex = |re: f64, im: f64| Value::C128(num_complex(re, im));
    let (zero, i, minus_i) = (complex(0.0, 0.0), complex(1.0, 2.0), complex(1.0, -2.0));
    let real = |values: [f64; 4]| values.map(Value::F64);
    let cases = [
        (real([1.0, 2.0, 2.0, 3.0]), "+= a * x[i]"),
        (real([0.0, 2.0, -2.0, 0.0]), "+= -a * x[i]"),
        ([zero, i, minus_i, zero], "+= conj(a) * x[i]"),
    ];
    for (values, update) in cases {
        let dtype = values[0].dtype();
        let array = ValueArray::from_values(&values, dtype);
        let tensor = Tensor::from_dense(&[2, 2], array, &Format::csr(), Value::zero(dtype)).unwrap();
        let advice = advised(&tensor);
        let lower = advice.candidates.iter().find(|candidate| candidate.part != StoredPart::Whole).expect(update);
        assert!(lower.program.contains(update), "{}", lower.program);
        assert!(lower.times().is_some(), "{update}: {:?}", lower.outcome);
        assert!(lower.prepare.is_some_and(|program| program.contains("if j <= i")));
    }
}

fn num_complex(re: f64, im: f64) -> num_complex::Complex<f64> {
    num_complex::Complex::new(re, im)
}

#[test]
fn formats_that_cannot_be_timed_have_a_reason() {
    assert!(advise(&Tensor::scalar(Value::F64(1.0))).unwrap().candidates.is_empty());
    let none = Tensor::from_dense(&[0, 3], Vec::<f64>::new().into(), &Format::csr(), 0.0.into()).unwrap();
    let empty = Tensor::from_dense(&[2, 2], vec![0.0; 4].into(), &Format::csr(), 0.0.into()).unwrap();
    let far = Format::csr().with_leaf(tamis_ir::format::Leaf::Element(Some(f64::INFINITY.into())));
    let far = Tensor::from_dense(&[2, 2], vec![1.0; 4].into(), &far, f64::INFINITY.into()).unwrap();
    let huge = Coordinates {
        shape: vec![1 << 50, 1 << 50],
        columns: vec![vec![0u64, 1 << 49].into(), vec![7u64, 1 << 48].into()],
        values: vec![1.0, 2.0].into(),
    };
    let huge = Tensor::from_coordinates(&huge, &Format::coo(2), 0.0.into(), Combine::Error).unwrap();
    for (tensor, words) in [(none, "no entries"), (empty, "no entries"), (far, "is inf"), (huge, "a vector of")] {
        let advice = advised(&tensor);
        assert!(advice.unmeasured.as_ref().is_some_and(|why| why.contains(words)), "{:?}", advice.unmeasured);
        assert!(!advice.candidates.is_empty() && advice.best().is_none());
        assert!(advice.candidates.iter().all(|candidate| candidate.bytes < 1000), "{words}");
    }
    // Many rows, few columns: the result is a list.
    let tall = Coordinates {
        shape: vec![1 << 50, 4],
        columns: vec![vec![0u64, 1 << 49].into(), vec![0u64, 3].into()],
        values: vec![1.0, 2.0].into(),
    };
    let tall = Tensor::from_coordinates(&tall, &Format::coo(2), 0.0.into(), Combine::Error).unwrap();
    let advice = advised(&tall);
    assert!(advice.best().is_some_and(|best| best.program.contains("tensor(\"sparse\")")), "{advice:?}");
}

#[test]
fn time_limits_hold_and_progress_is_reported() {
    let reported = std::cell::RefCell::new(Vec::new());
    let tell = |done, total| reported.borrow_mut().push((done, total));
    let options = AdviseOptions { time_limit: Duration::from_nanos(1), progress: Some(&tell), measure: true };
    let advice = advise_with(&generated("banded(50, 3)"), &options).unwrap();
    // The usual format is always measured, or there would be nothing to compare with.
    let measured: Vec<bool> = advice.candidates.iter().map(|candidate| candidate.times().is_some()).collect();
    assert_eq!(measured.iter().filter(|measured| **measured).count(), 1, "{measured:?}");
    assert!(advice.candidates[0].usual && advice.candidates.len() > 1);
    assert!(advice.candidates[1..].iter().all(|candidate| matches!(candidate.outcome, Measurement::Untried)));
    let reported = reported.borrow();
    assert!(reported.iter().all(|(done, total)| done <= total) && reported.is_sorted());
}

/// Some rows of a matrix, each of them whole.
fn whole_rows(n: u32, rows: std::ops::Range<u32>) -> Tensor {
    let cells: Vec<(u32, u32)> = rows.flat_map(|i| (0..n).map(move |j| (i, j))).collect();
    let column = |of: fn(&(u32, u32)) -> u32| cells.iter().map(of).collect::<Vec<u32>>().into();
    let values: Vec<f64> = (0..cells.len()).map(|k| 1.0 + (k % 5) as f64).collect();
    let shape = vec![u64::from(n), u64::from(n)];
    let entries = Coordinates { shape, columns: vec![column(|e| e.0), column(|e| e.1)], values: values.into() };
    Tensor::from_coordinates(&entries, &Format::csr(), Value::F64(0.0), Combine::Error).unwrap()
}

/// Rows that are whole where there are any are proposed as listed rows with a dense level below.
#[test]
fn listed_rows_are_proposed() {
    let advice = advised(&whole_rows(60, 20..26));
    let format = Format::parse("sparse, dense", 2).unwrap();
    let found = advice.candidates.iter().find(|candidate| candidate.format == format);
    let found =
        found.unwrap_or_else(|| panic!("{:?}", advice.candidates.iter().map(|c| &c.format).collect::<Vec<_>>()));
    assert!(found.times().is_some());
    assert_eq!(found.bytes, whole_rows(60, 20..26).convert(&format).unwrap().nbytes() as u64);
    // A matrix without empty rows is the same in dense rows.
    let all = advised(&whole_rows(12, 0..12));
    assert!(all.candidates.iter().all(|candidate| candidate.format != format));
}

/// A search tries level types, orders, widths and schedules, each once, and stops when time is up.
#[test]
fn searches_cover_the_state_space() {
    use tamis::search::{SearchOptions, search};
    let (a, x) =
        (whole_rows(60, 20..24), Tensor::from_dense(&[60], vec![1.0; 60].into(), &Format::dense(1), Value::F64(0.0)));
    let x = x.unwrap();
    let notation = tamis::Notation::parse("y[i] = A[i,j] * x[j]").unwrap();
    let reported = std::cell::Cell::new(0);
    let tell = |done: u64, total: u64| {
        assert!(done <= total);
        reported.set(reported.get() + 1);
    };
    let options = SearchOptions { time_limit: Duration::from_secs(120), repeats: 1, progress: Some(&tell) };
    let found = search(&notation, &[&a, &x], &options).unwrap_or_else(|d| panic!("{}", d.render(false)));
    let formats: Vec<String> = found.states.iter().map(|state| state.formats[0].to_string()).collect();
    for format in ["csr", "csc", "dcsr", "dense, dense", "sparse, dense", "sparse(nonunique), singleton"] {
        assert!(formats.iter().any(|known| known == format), "{format} is not among {formats:?}");
    }
    assert!(formats.iter().any(|format| format.contains("u8")), "{formats:?}");
    assert!(formats.iter().any(|format| format.contains("u64")), "{formats:?}");
    assert!(found.states.iter().any(|state| state.schedule.contains("vectorize")));
    assert!(reported.get() > 0 && found.states.windows(2).all(|pair| pair[0].kernel <= pair[1].kernel));
    let keys: Vec<_> =
        found.states.iter().map(|s| (format!("{:?}", s.formats), s.order.clone(), s.schedule.clone())).collect();
    assert!((1..keys.len()).all(|k| !keys[..k].contains(&keys[k])));
    // The choice of Tamis may be none of them.
    assert!((found.total..=found.total + 1).contains(&(found.states.len() + found.skipped)));
    let hurried = SearchOptions { time_limit: Duration::ZERO, repeats: 1, progress: None };
    let found = search(&notation, &[&a, &x], &hurried).unwrap();
    assert!(found.ended && !found.states.is_empty());
}
