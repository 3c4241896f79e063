//! Programs that are small as text and must not harm whoever checks or runs them.

use tamis_ir::program::ParamType;
use tamis_ir::{Code, DType, Program, Value, interp};

fn check_with(text: &str, value: i64) {
    let program = Program::parse(text).unwrap_or_else(|d| panic!("{}", d.render(false)));
    let param = ParamType { dtype: DType::I64, shape: vec![], value: Some(value) };
    let _ = program.check(&[param]);
}

/// A range at the lower end of the integers is empty, not an overflow.
#[test]
fn a_range_at_the_least_integer() {
    let text = "def f(s):\n    t = scalar(0)\n    for i in range(s, s):\n        t += 1\n    return t\n";
    check_with(text, i64::MIN);
    let program = Program::parse(text).unwrap();
    let s = interp::Grid::from_values(&[], &[Value::I64(i64::MIN)]);
    assert!(interp::run(&program, &[&s], interp::Options::default()).is_ok());
}

/// Each name is evaluated once, however often it is used: 30 lines that double take no longer than 30 others.
#[test]
fn names_that_double() {
    let mut text = String::from("def f(s):\n    x0 = s\n");
    for k in 1..=60 {
        text += &format!("    x{k} = x{} + x{}\n", k - 1, k - 1);
    }
    text += "    t = scalar(0)\n    for i in range(x60):\n        t += 1\n    return t\n";
    // Looked at once per use, this would take hours.
    check_with(&text, 0);
}

/// A long chain of names is a long list, not a deep recursion; and it is typed in a few rounds, not in as many as it is long.
#[test]
fn a_long_chain_of_names() {
    let mut text = String::from("def f(s):\n    x0 = s\n");
    for k in 1..=20000 {
        text += &format!("    x{k} = x{} + 1\n", k - 1);
    }
    text += "    t = scalar(0)\n    for i in range(x20000):\n        t += x19999\n    return t\n";
    check_with(&text, 0);
}

/// The nesting limit also counts loops that share a line.
#[test]
fn many_indices_in_one_line() {
    let indices: Vec<String> = (0..20000).map(|k| format!("i{k}")).collect();
    let text = format!(
        "def f(s):\n    t = scalar(0)\n    for {} in range(1):\n        t += 1\n    return t\n",
        indices.join(", ")
    );
    let errors = Program::parse(&text).expect_err("too deep");
    assert_eq!(errors.0[0].code, Code::E0105);
}

/// Operands after the first are evaluated only if they are needed, as in Python.
#[test]
fn lazy_operands() {
    let text = "
def f(A, I):
    x = tensor('dense')
    y = tensor('dense')
    z = tensor('dense', dtype='bool')
    for i in _:
        x[i] = A[i-1] if i > 0 else 0
        y[i] = select(i < 2, A[i+1], -1)
        z[i] = I[i] < 3 and A[I[i]] > 1 or I[i] == 7
    return x, y, z
";
    let program = Program::parse(text).unwrap_or_else(|d| panic!("{}", d.render(false)));
    let a = interp::Grid::from_values(&[3], &[1.0, 2.0, 3.0].map(Value::F64));
    let i = interp::Grid::from_values(&[3], &[2, 7, 9].map(Value::I64));
    let outcome =
        interp::run(&program, &[&a, &i], interp::Options::default()).unwrap_or_else(|d| panic!("{}", d.render(false)));
    let shown: Vec<String> = outcome.results.iter().map(|g| format!("{:?}", g.to_values().unwrap())).collect();
    assert_eq!(shown[0], "[F64(0.0), F64(1.0), F64(2.0)]");
    assert_eq!(shown[1], "[F64(2.0), F64(3.0), F64(-1.0)]");
    assert_eq!(shown[2], "[Bool(true), Bool(true), Bool(false)]");
}

/// An indented text is a program, too: strings in other programs are often indented as a whole.
#[test]
fn indented_as_a_whole() {
    let text = "\n        def f(A):\n            s = scalar(0)\n            for i in _:\n                s += A[i]\n            return s\n    ";
    Program::parse(text).unwrap_or_else(|d| panic!("{}", d.render(false)));
}

/// A scalar of a narrow type computes in that type, also where a bound depends on it.
#[test]
fn bounds_in_narrow_types() {
    let text = "def f(n):\n    t = scalar(0)\n    for i in range(n + 1):\n        t += 1\n    return t\n";
    let program = Program::parse(text).unwrap();
    for (n, expected) in [(Value::U8(255), 0), (Value::I64(255), 256)] {
        let n = interp::Grid::from_values(&[], &[n]);
        let outcome = interp::run(&program, &[&n], interp::Options::default()).unwrap();
        assert_eq!(outcome.results[0].get(&[]), Some(Value::I64(expected)));
    }
}
