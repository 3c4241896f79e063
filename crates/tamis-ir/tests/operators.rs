//! User-defined operators: parsing and printing, equality, and hostile definitions.

use tamis_ir::algebra::{Laws, Op, UserOp, eval};
use tamis_ir::diag::Source;
use tamis_ir::program::{ParamType, StmtKind, define, parse_operators};
use tamis_ir::{Code, DType, Program, Value};

const PROGRAM: &str = "
def f(x):
    y = tensor('dense')
    for i in _:
        y[i] = g(y[i], x[i])
    return y
";

fn program(operators: &str) -> Program {
    Program::parse(&format!("{operators}{PROGRAM}")).unwrap_or_else(|d| panic!("{}", d.render(false)))
}

fn codes(text: &str) -> Vec<Code> {
    Program::parse(text).err().map(|d| d.0.iter().map(|d| d.code).collect()).unwrap_or_default()
}

fn update(program: &Program) -> Option<Op> {
    let mut found = None;
    program.visit(&mut |stmt| {
        if let StmtKind::Assign { update: Some(update), .. } = &stmt.kind {
            found = Some(update.op);
        }
    });
    found
}

#[test]
fn printed_and_read_back() {
    for operators in [
        "@op(commutative, associative, idempotent, identity=-inf, annihilator=inf)\ndef g(a, b): return max(a, b)\n",
        "@op(left_identity=0, right_identity=-1.5, annihilator=True)\ndef g(p, q):\n    return q - p if p < q else -(2) ** p\n",
        "@op\ndef h(a, b): return b - a\n\n@op\ndef g(a, b):\n    'a docstring'\n    return h(a, h(b, a)) * a // 3 % b\n",
        "@tm.op(commutative=True, associative=False)\ndef g(a, b): return 0 < a < b or not b & 1 == 1 and 1.0+2.0j == a\n",
        "@op\ndef g(a, b): return select(a < b, a, b)\n",
    ] {
        let first = program(operators);
        let text = first.to_string();
        let again = Program::parse(&text).unwrap_or_else(|d| panic!("{text}\n{}", d.render(false)));
        assert_eq!(again, first, "{text}");
        assert_eq!(again.to_string(), text);
    }
}

#[test]
fn one_definition_is_one_operator() {
    let text = "@op(commutative)\ndef g(a, b): return a * b + 1\n";
    let laws = Laws { commutative: true, ..Laws::default() };
    let defined = define("g", &["a", "b"], "a*b+1", laws).unwrap();
    assert_eq!(parse_operators(&Source::new("o", text)).unwrap(), [defined]);
    assert_eq!(update(&program(text)), Some(defined));
    assert_ne!(define("g", &["a", "b"], "a*b+2", laws).unwrap(), defined);
    assert_ne!(define("g", &["a", "b"], "a*b+1", Laws::default()).unwrap(), defined);
}

/// A function whose body updates by a built-in operator is an update by that operator; any other
/// function is an update by itself.
#[test]
fn updates_by_functions() {
    assert_eq!(update(&program("@op\ndef g(a, b): return a + 2 * b\n")), Some(Op::Add));
    assert!(matches!(update(&program("@op\ndef g(a, b): return a + a * b\n")), Some(Op::User(_))));
    assert!(matches!(update(&program("@op\ndef g(a, b): return 2 * a + b\n")), Some(Op::User(_))));
}

#[test]
fn laws_are_tested_on_the_types_in_use() {
    let p = program("@op(commutative)\ndef g(a, b): return abs(a - b)\n");
    let check = |dtype| {
        let p = Program::parse(&p.to_string().replace("\"dense\"", &format!("\"dense\", dtype=\"{dtype}\""))).unwrap();
        let errors = p.check(&[ParamType { dtype, shape: vec![Some(3)], value: None, weak: false }]).err();
        errors.map(|d| d.0.iter().map(|d| d.code).collect::<Vec<_>>()).unwrap_or_default()
    };
    for dtype in [DType::I8, DType::I64, DType::F32, DType::F64, DType::C128] {
        // The distance of complex numbers is real, and fits.
        assert_eq!(check(dtype), [], "{dtype}");
    }
    // Differences of unsigned numbers wrap around.
    for dtype in [DType::U8, DType::U64] {
        assert_eq!(check(dtype), [Code::E0309], "{dtype}");
    }
}

/// User-defined copies of the table's operators pass the tests of declared laws, and fail those of
/// laws that the table does not declare, on every type.
#[test]
fn the_table_passes_the_same_tests() {
    let all = Laws { commutative: true, associative: true, idempotent: true, ..Laws::default() };
    for (body, laws) in [
        ("a + b", Laws { idempotent: false, ..all }.identity(Value::I64(0))),
        ("a * b", Laws { idempotent: false, annihilator: Some(Value::I64(0)), ..all }.identity(Value::I64(1))),
        (
            "min(a, b)",
            Laws { annihilator: Some(Value::F64(f64::NEG_INFINITY)), ..all }.identity(Value::F64(f64::INFINITY)),
        ),
        (
            "max(a, b)",
            Laws { annihilator: Some(Value::F64(f64::INFINITY)), ..all }.identity(Value::F64(f64::NEG_INFINITY)),
        ),
        ("a & b", all),
        ("a | b", all.identity(Value::I64(0))),
        ("a ^ b", Laws { idempotent: false, ..all }.identity(Value::I64(0))),
        ("choose(a, b)", Laws { commutative: false, ..all }.identity(Value::I64(0))),
    ] {
        let Ok(Op::User(user)) = define("g", &["a", "b"], body, laws) else { panic!("{body}") };
        let types = DType::ALL
            .into_iter()
            .filter(|t| user.types(*t).is_ok_and(|types| types.last().unwrap().result.dtype == *t));
        for dtype in types {
            assert_eq!(user.test_laws(dtype), Ok(()), "{body} {dtype}");
        }
    }
    for (body, law) in [
        ("a - b", "commutative"),
        ("a ** b", "commutative"),
        ("a // b", "commutative"),
        ("a - b", "associative"),
        ("a + b", "idempotent"),
    ] {
        let laws = Laws {
            commutative: law == "commutative",
            associative: law == "associative",
            idempotent: law == "idempotent",
            ..Laws::default()
        };
        let Ok(Op::User(user)) = define("g", &["a", "b"], body, laws) else { panic!("{body}") };
        for dtype in DType::ALL.into_iter().filter(|t| *t != DType::Bool && user.types(*t).is_ok()) {
            assert_eq!(user.test_laws(dtype).unwrap_err().law, law, "{body} {dtype}");
        }
    }
}

#[test]
fn values_of_every_type() {
    let Ok(Op::User(user)) = define("g", &["a", "b"], "select(a == 0, b, a) * 2 - a / 4", Laws::default()) else {
        panic!()
    };
    for dtype in DType::ALL {
        let types = user.types(dtype).unwrap();
        let got = eval(Op::User(user), dtype, &[Value::I64(1).cast(dtype), Value::I64(3).cast(dtype)]);
        assert_eq!(got.dtype(), types.last().unwrap().result.dtype);
        assert_eq!(got.as_c128().re, 1.75, "{dtype}");
    }
}

#[test]
fn hostile_definitions() {
    let doubling: String = (1..40).fold("@op\ndef g0(a): return a + a\n".to_string(), |text, k| {
        format!("{text}@op\ndef g{k}(a): return g{0}(a) * g{0}(a + 1)\n", k - 1)
    });
    assert_eq!(codes(&format!("{doubling}{PROGRAM}"))[0], Code::E0105);
    // Large ones side by side.
    let large = format!("@op\ndef h(a): return {}\n", vec!["a"; 900].join(" + "));
    let uses = vec!["h(x[i])"; 100].join(" * ");
    let text =
        format!("{large}def f(x):\n    y = tensor('dense')\n    for i in _:\n        y[i] = {uses}\n    return y\n");
    assert_eq!(codes(&text), [Code::E0105]);
    let deep = format!("@op\ndef g(a, b): return {}a{}\n", "(".repeat(5000), ")".repeat(5000));
    assert_eq!(codes(&format!("{deep}{PROGRAM}")), [Code::E0105]);
    for broken in [
        "@op",
        "@op(",
        "@op()",
        "@op(,)",
        "@op(identity=",
        "@op\ndef",
        "@op\ndef g(",
        "@op\ndef g(a):",
        "@op\ndef g(a): return",
        "@op\n@op\n@op",
        "@op\ndef g(a):\n    return a\n        b",
        "@op\n\tdef g(a): return a",
        "@op def g(a): return a",
    ] {
        assert!(!codes(&format!("{broken}\n{PROGRAM}")).is_empty(), "{broken}");
        assert!(!codes(broken).is_empty(), "{broken}");
    }
    // Many names, each with the previous one as its operand.
    let chain: String = (1..20000).map(|k| format!("        c{k} = c{} + 1\n", k - 1)).collect();
    let text = format!(
        "def f(A):\n    s = scalar(0.0)\n    for i, j in _:\n        c0 = i\n{chain}        if c19999 <= j:\n            s += A[i,j]\n    return s\n"
    );
    let program = Program::parse(&text).unwrap();
    let mut masks = tamis_ir::program::Masks::new(&program);
    assert!(program.exprs.ids().any(|id| masks.is_mask(id)));
    assert!(define("for", &["a"], "a", Laws::default()).is_err() && define("f", &["0"], "a", Laws::default()).is_err());
    assert!(
        define("f", &["a"], "a)", Laws::default()).is_err() && define("f", &["a"], "a\nb", Laws::default()).is_err()
    );
    let _: fn(UserOp) -> &'static str = UserOp::name;
}
