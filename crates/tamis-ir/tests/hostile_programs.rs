//! Hostile programs: small texts that must be checked and run in bounded time and memory.

use tamis_ir::program::ParamType;
use tamis_ir::{Code, DType, Program, Value, interp};

fn check_with(text: &str, value: i64) {
    let program = Program::parse(text).unwrap_or_else(|d| panic!("{}", d.render(false)));
    let param = ParamType { dtype: DType::I64, shape: vec![], value: Some(value), weak: false };
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

/// Bound names are evaluated once: 30 lines that each double the number of uses take linear time.
#[test]
fn names_that_double() {
    let mut text = String::from("def f(s):\n    x0 = s\n");
    for k in 1..=60 {
        text += &format!("    x{k} = x{} + x{}\n", k - 1, k - 1);
    }
    text += "    t = scalar(0)\n    for i in range(x60):\n        t += 1\n    return t\n";
    // Without memoisation, this would take hours.
    check_with(&text, 0);
}

/// A long chain of names causes no deep recursion, and its types converge in a few rounds.
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

/// A text may be indented as a whole: strings in other programs often are.
#[test]
fn indented_as_a_whole() {
    let text = "\n        def f(A):\n            s = scalar(0)\n            for i in _:\n                s += A[i]\n            return s\n    ";
    Program::parse(text).unwrap_or_else(|d| panic!("{}", d.render(false)));
}

/// A scalar of a narrow type computes in that type, also in bounds that depend on it.
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

/// A chain of comparisons repeats its middle operands; nesting chains must not grow the program
/// exponentially.
#[test]
fn nested_chains_of_comparisons() {
    let mut test = String::from("x[i]");
    for _ in 0..40 {
        test = format!("(0 < {test} < 2)");
    }
    let text = format!(
        "def f(x):\n    s = scalar(0)\n    for i in _:\n        if {test}:\n            s += 1\n    return s\n"
    );
    assert_eq!(Program::parse(&text).expect_err("too long").0[0].code, Code::E0105);
}

fn result_types(text: &str, params: &[(DType, usize)]) -> String {
    let program = Program::parse(text).unwrap_or_else(|d| panic!("{}", d.render(false)));
    assert!(Program::parse(&program.to_string()).as_ref() == Ok(&program), "{program}");
    let params: Vec<ParamType> = params
        .iter()
        .map(|(dtype, rank)| ParamType { dtype: *dtype, shape: vec![Some(3); *rank], value: None, weak: false })
        .collect();
    let checked = program.check(&params).unwrap_or_else(|d| panic!("{}", d.render(false)));
    let results = program.results.iter().map(|id| {
        let shape: Vec<String> = checked.extents.shapes[id.index()].iter().map(u64::to_string).collect();
        format!("{}[{}]", checked.types.tensors[id.index()], shape.join(","))
    });
    results.collect::<Vec<_>>().join(" ")
}

/// One row per rule of inference: program body, parameters, types and shapes of the results.
#[test]
fn inferred_types_and_shapes() {
    let f = |body: &str, returns: &str| {
        format!("def f(A):\n{}\n    return {returns}\n", body.lines().map(|l| format!("    {l}\n")).collect::<String>())
    };
    let vector = |dtype| [(dtype, 1)];
    let table = [
        ("R = tensor('dense')\nfor i in _:\n    d = A[i]\n    R[i] += d\n    R[i] += True", "R", DType::I8, "i8[3]"),
        ("R = tensor('dense')\nfor i in _:\n    R[i] += A[i]", "R", DType::Bool, "i64[3]"),
        ("R = tensor('dense', fill=0)\nfor i in _:\n    R[i] = A[i]", "R", DType::Bool, "bool[3]"),
        (
            "T = tensor('dense')\nR = tensor('dense')\nS = tensor('dense')\nfor i in _:\n    T[i] = A[i]\nfor i in _:\n    R[i] = 0.5\nfor i in _:\n    R[i] += T[i]\nfor i in _:\n    S[i] = R[i]",
            "R, S",
            DType::F32,
            "f32[3] f32[3]",
        ),
        ("s = scalar(0)\nfor i in _:\n    s = 0.5*s + A[i]", "s", DType::F32, "f32[]"),
        ("s = scalar(0.0)\nfor i in _:\n    s = 0.5*s + A[i]", "s", DType::F32, "f32[]"),
        ("R = tensor('dense', fill=inf)\nfor i in _:\n    R[i] min= A[i]", "R", DType::I32, "f64[3]"),
        ("b = scalar(False)\nfor i in _:\n    b or= A[i] > 1", "b", DType::F64, "bool[]"),
        ("R = tensor('dense')\nfor i in range(0):\n    R[i] = A[i]", "R", DType::F64, "f64[0]"),
        ("R = tensor('dense')\nfor i in range(3, 1):\n    R[i] = A[i]", "R", DType::F64, "f64[0]"),
        ("R = tensor('dense')\nfor i in range(A.shape[0]):\n    R[i] = A[i]", "R", DType::F64, "f64[3]"),
        ("R = tensor('dense')\nfor i in range(A.shape[0]):\n    R[2*i + 1] = i", "R", DType::F64, "i64[6]"),
        ("R = tensor('dense', shape=(0x10,))\nfor i in _: R[i] = i", "R", DType::F64, "i64[16]"),
        ("R = tensor('dense')\nfor i in _:\n    if A[i] < 300: R[i] = A[i]; R[i] += 1", "R", DType::U8, "u8[3]"),
    ];
    for (body, returns, dtype, expected) in table {
        assert_eq!(result_types(&f(body, returns), &vector(dtype)), expected, "{body}");
    }
}

/// A literal must fit the type of the other operand, also if it is computed.
#[test]
fn literals_that_do_not_fit() {
    for line in ["R[i] = A[i] + (100 + 200)", "R[i] = choose(R[i], A[i], -1)", "R[i] = max(A[i], 256)"] {
        let text = format!("def f(A):\n    R = tensor('dense')\n    for i in _:\n        {line}\n    return R\n");
        let program = Program::parse(&text).unwrap_or_else(|d| panic!("{}", d.render(false)));
        let param = ParamType { dtype: DType::U8, shape: vec![Some(3)], value: None, weak: false };
        let errors = program.check(&[param]).expect_err(line);
        assert_eq!(errors.0[0].code, Code::E0306, "{line}");
    }
}
