//! Texts of generator calls: valid ones, and diagnostics of invalid ones.

use tamis_ir::Code;
use tamis_tensor::gallery::{self, GENERATORS, generate, is_call, parse};

#[test]
fn text_and_functions_agree() {
    let table = [
        ("laplacian(3)", gallery::laplacian(3)),
        (" laplacian ( 3 , 4 ) ", gallery::laplacian_grid(&[3, 4])),
        ("laplacian3(2)", gallery::laplacian3(2)),
        ("laplacian3(2,3,4)", gallery::laplacian_grid(&[2, 3, 4])),
        ("rand(10,20; 0.1; 42)", gallery::random(&[10, 20], 0.1, 42)),
        ("rand(10,20; 0.1)", gallery::random(&[10, 20], 0.1, 0)),
        ("rand(10,20)", gallery::random(&[10, 20], 1.0, 0)),
        ("rand(10,20; seed=3)", gallery::random(&[10, 20], 1.0, 3)),
        ("random((10,20), 0.1, 42)", gallery::random(&[10, 20], 0.1, 42)),
        ("random(shape=(10,20), density=0.5, seed=1)", gallery::random(&[10, 20], 0.5, 1)),
        ("rand(1_000; 1)", gallery::random(&[1000], 1.0, 0)),
        ("rand(; 1; 5)", gallery::random(&[], 1.0, 5)),
        ("rand(10;; 5)", gallery::random(&[10], 1.0, 5)),
        ("rand()", gallery::random(&[], 1.0, 0)),
        ("ones(2,3)", gallery::ones(&[2, 3])),
        ("ones((2,3,))", gallery::ones(&[2, 3])),
        ("banded(10, 2)", gallery::banded(10, 2)),
        ("banded(10, 2, 1)", gallery::banded_between(10, 2, 1, 0)),
        ("banded(10, 2, seed=4)", gallery::banded_between(10, 2, 2, 4)),
        ("blocked(12, 3)", gallery::blocked(12, 3, 0.1, 0)),
        ("blocked(12, 3, 0.5, 9)", gallery::blocked(12, 3, 0.5, 9)),
        ("triangular(4)", gallery::triangular(4, gallery::Triangle::Lower, 0)),
        ("triangular(4, \"upper\")", gallery::triangular(4, gallery::Triangle::Upper, 0)),
        ("triangular(4, upper, 3)", gallery::triangular(4, gallery::Triangle::Upper, 3)),
        ("diagonal(4, 1)", gallery::diagonal(4, 1)),
        ("identity(4)", gallery::identity(4)),
        ("permutation(9, 2)", gallery::permutation(9, 2)),
        ("rmat(4, 3)", gallery::rmat(4, 3, 0)),
        ("rmat(4, 3, 8)", gallery::rmat(4, 3, 8)),
    ];
    for (text, made) in table {
        assert!(is_call(text), "{text}");
        assert_eq!(generate(text).unwrap_or_else(|d| panic!("{text}: {d}")), made.unwrap(), "{text}");
    }
}

#[test]
fn mistakes_point_at_their_place() {
    // The text, and the range of the first label.
    let table = [
        ("laplacien(3)", "laplacien"),
        ("laplacian()", ")"),
        ("laplacian(-3)", "-3"),
        ("laplacian(2.5)", "2.5"),
        ("laplacian(3,4,5)", "5"),
        ("laplacian(n=3, m=4, n=5)", "n"),
        ("laplacian(3, depth=2)", "depth"),
        ("laplacian3(2,3)", ")"),
        ("rand(10,20,0.1)", "0.1"),
        ("rand(10,20; 2)", "2"),
        ("rand(10,20; 0.1; -1)", "-1"),
        ("rand(10,20; 0.1; 1; 2)", "2"),
        ("triangular(4, \"left\")", "\"left\""),
        ("triangular(4, 5)", "5"),
        ("rmat(4)", ")"),
        ("rmat(4 5)", "5"),
        ("rmat(4, 5) + 1", "+"),
        ("rmat(4, *)", "*"),
        ("rmat(4, - )", ")"),
        ("blocked(10, 0)", "blocked(10, 0)"),
        ("rmat(99, 16)", "rmat(99, 16)"),
        ("ones((2,(3)))", "("),
        ("laplacian(99999999999999999999)", "99999999999999999999"),
        ("3(4)", "3"),
        ("", ""),
        ("laplacian", ""),
        ("laplacian(", ""),
        ("laplacian(3", ""),
        ("ones((2,", ""),
    ];
    for (text, marked) in table {
        let d = generate(text).expect_err(text);
        assert!(matches!(d.code, Code::E0904 | Code::E0103), "{text}: {d}");
        assert!(!d.help.is_empty(), "{text}");
        let source = d.source.as_ref().expect(text);
        assert_eq!(&source.text[d.labels[0].span.range()], marked, "{text}: {d}");
        assert!(d.render(false).contains(d.code.name()), "{text}");
    }
}

#[test]
fn parse_reports_what_needs_no_generation() {
    assert!(parse("laplacian(-3)").is_err());
    assert!(parse("rand(3; 2)").is_err());
    // Sizes are checked when the tensor is generated, because they depend on the machine.
    assert!(parse("laplacian(4000000000)").is_ok());
    assert!(generate("laplacian(4000000000)").is_err());
}

#[test]
fn files_are_not_calls() {
    for text in ["a.mtx", "laplacian", "dir/x(1)", "a (1).mtx", "(3)", "x-y(3)", "", "2x(1)"] {
        assert!(!is_call(text), "{text}");
    }
}

#[test]
fn the_table_is_in_order() {
    for generator in GENERATORS {
        assert!(generator.signature.starts_with(&format!("{}(", generator.name)), "{}", generator.name);
        assert!((10..90).contains(&generator.description.len()), "{}", generator.name);
    }
    let names: std::collections::BTreeSet<_> = GENERATORS.iter().map(|g| g.name).collect();
    assert_eq!(names.len(), GENERATORS.len());
}

/// Deterministic fuzzing with the tokens of the language: no panics, and every mistake has help.
#[test]
fn garbage_is_refused_politely() {
    let tokens =
        ["rand", "ones", "(", ")", ",", ";", "3", "0.5", "-", "=", "seed", "\"upper\"", "é", "((", "))", " ", "1e999"];
    let mut state = 1u64;
    let mut next = move |bound: usize| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as usize % bound
    };
    let mut understood = 0;
    for _ in 0..20_000 {
        let text: String = (0..next(9)).map(|_| tokens[next(tokens.len())]).collect();
        match parse(&text) {
            Ok(_) => understood += 1,
            Err(d) => {
                assert!(!d.help.is_empty(), "{text}: {d}");
                assert!(!d.labels.is_empty(), "{text}: {d}");
                d.render(false);
            }
        }
    }
    assert!(understood > 5, "{understood}");
}
