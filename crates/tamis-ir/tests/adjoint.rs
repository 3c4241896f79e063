//! Derivatives of index notation, as text: what each form of statement becomes.

use tamis_ir::notation::{Adjoint, Differentiate};
use tamis_ir::{Code, Diagnostics, Notation, Program};

fn request(wrt: &[&str], patterns: &[&str]) -> Differentiate {
    let request = Differentiate::new(wrt.iter().copied());
    request.patterns(patterns.iter().copied()).zero_fills(patterns.iter().copied())
}

fn notation(text: &str) -> Notation {
    Notation::parse(text).unwrap_or_else(|d| panic!("{text}: {}", d.render(false)))
}

fn adjoint(text: &str, wrt: &[&str], patterns: &[&str]) -> Result<Adjoint, Diagnostics> {
    request(wrt, patterns).adjoint(&notation(text))
}

#[test]
fn statements_become_statements() {
    // A text, the operands, those with patterns, and the adjoint statements.
    type Case = (&'static str, &'static [&'static str], &'static [&'static str], &'static [&'static str]);
    let cases: &[Case] = &[
        (
            "C[i,k] = A[i,j] * B[j,k]",
            &["A", "B"],
            &["A", "B"],
            &["gA[i, j] = A_pattern[i, j] * gC[i, k] * B[j, k]", "gB[j, k] = B_pattern[j, k] * gC[i, k] * A[i, j]"],
        ),
        (
            "D[i] = A[i,j] + B[i,j] + C[i]",
            &["A", "B", "C"],
            &["A"],
            &["gA[i, j] = A_pattern[i, j] * gD[i]", "gB[i, j] = gD[i] for j in range(B.shape[1])", "gC[i] = gD[i]"],
        ),
        ("t = A[i,i] * x[i]", &["A"], &["A"], &["gA[i, u] = A_pattern[i, u] * gt * x[i] * (i == u)"]),
        ("y[j] = A[0,j]", &["A"], &[], &["gA[u, j] = gy[j] * (u == 0) for u in range(A.shape[0])"]),
        ("O[i] = I[i+k] * F[k]", &["I"], &[], &["gI[u] = 0 for u in range(I.shape[0])", "gI[i + k] += gO[i] * F[k]"]),
        ("y[i] = x[p[i]]", &["x"], &[], &["gx[u] = 0 for u in range(x.shape[0])", "gx[p[i]] += gy[i]"]),
        ("y[p[i]] += x[i]", &["x"], &[], &["gx[i] = gy[p[i]]"]),
        ("y[i] = sum[j](x[i] + b[j])", &["x"], &[], &["gx[i] = gy[i] * b.shape[0]"]),
        (
            "p[i] = prod[j](A[i,j])",
            &["A"],
            &[],
            &["gA[i, j] = gp[i] * prod[j_1](select(j_1 == j, 1, A[i, j_1])) for j in range(A.shape[1])"],
        ),
        ("x[i] = 2*x[i]", &["x"], &[], &["gx[i] = gx_new[i] * 2"]),
        ("y[i] = x[i] ** 3", &["x"], &[], &["gx[i] = gy[i] * 3 * x[i] ** 2"]),
    ];
    for (text, wrt, patterns, expected) in cases {
        let made = adjoint(text, wrt, patterns).unwrap_or_else(|d| panic!("{text}: {}", d.render(false)));
        assert_eq!(made.text.lines().collect::<Vec<_>>(), *expected, "{text}");
    }
}

/// The cotangent of a value that is sampled by a pattern is sampled, too, and never dense.
#[test]
fn sampled_values_have_sampled_cotangents() {
    let text = "S[i,j] = M[i,j] * Q[i,k] * K[j,k]; P[i,j] = tanh(S[i,j]) * M[i,j]; O[i,d] = P[i,j] * V[j,d]";
    let made = adjoint(text, &["Q"], &["M"]).unwrap();
    assert!(made.text.contains("gP[i, j] = M_pattern[i, j] * gO[i, d] * V[j, d]"), "{}", made.text);
    assert_eq!(made.patterns, [("M".to_string(), "M_pattern".to_string())]);
}

/// Reductions and expensive functions are saved, everything else is computed again.
#[test]
fn values_are_saved_by_cost() {
    let text = "t[i] = A[i,j] * x[j]; u[i] = t[i] * t[i] + 1; y[i] = exp(u[i])";
    let made = request(&["x"], &[]).save(true).adjoint(&notation(text)).unwrap();
    assert_eq!(made.saved, [("t_saved".to_string(), "t".to_string())]);
    assert_eq!(made.recomputed, ["u"]);
    assert!(made.forward.ends_with("= t[d_1]"), "{}", made.forward);
    assert_eq!(adjoint(text, &["x"], &[]).unwrap().recomputed, ["t", "u"]);
}

#[test]
fn derivatives_of_derivatives() {
    let first = adjoint("L = sum[i](sin(x[i]) * x[i])", &["x"], &[]).unwrap();
    let second = adjoint(&format!("{}; H = gx[k] * v[k]", first.text), &["x"], &[]).unwrap();
    assert_eq!(second.gradients, [("x".to_string(), "gx_1".to_string())]);
}

/// Where several values are one element, their tangents and recomputed values are updates.
#[test]
fn affine_updates_stay_updates() {
    let scattered = notation("O[i+k] += I[i] * F[k]; L = O[i] * O[i]");
    let tangents = Differentiate::new(["I"]).tangents(&scattered).unwrap().text;
    assert!(
        tangents.contains("O[i + k] += I[i] * F[k]") && tangents.contains("dO[i + k] += dI[i] * F[k]"),
        "{tangents}"
    );
    let gradients = Differentiate::new(["I"]).adjoint(&scattered).unwrap().text;
    assert!(gradients.contains("O[i + k] += I[i] * F[k]"), "{gradients}");
}

#[test]
fn mistakes_have_codes() {
    let code = |text: &str, wrt: &str| match adjoint(text, &[wrt], &[]) {
        Ok(made) => panic!("{text} was differentiated: {}", made.text),
        Err(errors) => errors.0[0].code,
    };
    assert_eq!(code("y[i] = x[i]", "z"), Code::E0116);
    assert_eq!(code("y[i] = x[i] > 0", "x"), Code::E0116);
    assert_eq!(code("y[i] = x[p[i]]", "p"), Code::E0116);
    assert_eq!(code("y[i+j] = x[i] * z[j]", "x"), Code::E0117);
    assert_eq!(code("s = A.data[p] * 2 for p in range(A.nnz)", "A"), Code::E0115);
}

#[test]
fn loops_become_statements() {
    let read = |body: &str| {
        let program =
            Program::parse(&format!("def f(A, x):\n{body}")).unwrap_or_else(|d| panic!("{}", d.render(false)));
        Notation::of_loops(&program).map(|(text, _)| text)
    };
    let mask = "    y = tensor('dense')\n    for i, j in _:\n        if j <= i:\n            y[i] += A[i,j] * x[j]\n    return y\n";
    assert_eq!(read(mask).unwrap(), "y[i] += sum[j](A[i, j] * x[j] * (j <= i))");
    let least =
        "    y = tensor('dense', fill=inf)\n    for i, j in _:\n        y[i] min= A[i,j] + x[j]\n    return y\n";
    assert_eq!(read(least).unwrap(), "y[i] min= min[j](A[i, j] + x[j])");
    let carried = "    y = tensor('dense')\n    s = scalar(0.0)\n    for i in _:\n        s += x[i]\n        y[i] = s * A[i,i]\n    return y\n";
    assert_eq!(read(carried).unwrap_err().0[0].code, Code::E0118);
    let overwritten = "    y = tensor('dense')\n    for i, j in _:\n        y[i] = A[i,j] * x[j]\n    return y\n";
    assert_eq!(read(overwritten).unwrap_err().0[0].code, Code::E0118);
}
