//! Programs through parser, checker and interpreter, on dense grids: the examples of the papers.

use tamis_ir::interp::{self, Grid, Options};
use tamis_ir::{Code, Program, Value};

fn vector(values: &[f64]) -> Grid {
    Grid::from_values(&[values.len() as u64], &values.iter().map(|x| Value::F64(*x)).collect::<Vec<_>>())
}

fn matrix(rows: &[&[f64]]) -> Grid {
    let columns = rows.first().map_or(0, |r| r.len());
    let values: Vec<Value> = rows.iter().flat_map(|r| r.iter().map(|x| Value::F64(*x))).collect();
    Grid::from_values(&[rows.len() as u64, columns as u64], &values)
}

fn run(text: &str, params: &[&Grid]) -> Vec<Vec<f64>> {
    let program = Program::parse(text).unwrap_or_else(|d| panic!("{}", d.render(false)));
    assert_eq!(Program::parse(&program.to_string()).unwrap(), program, "{program}");
    let operands: Vec<&dyn interp::Operand> = params.iter().map(|p| *p as &dyn interp::Operand).collect();
    let outcome =
        interp::run(&program, &operands, Options::default()).unwrap_or_else(|d| panic!("{}", d.render(false)));
    let numbers = |grid: &Grid| grid.to_values().unwrap().iter().map(|v| v.as_c128().re).collect();
    outcome.results.iter().map(numbers).collect()
}

fn code(text: &str, params: &[&Grid]) -> Vec<Code> {
    let operands: Vec<&dyn interp::Operand> = params.iter().map(|p| *p as &dyn interp::Operand).collect();
    let result = Program::parse(text).and_then(|p| interp::run(&p, &operands, Options::default()).map(|_| ()));
    match result {
        Ok(()) => panic!("accepted:\n{text}"),
        Err(errors) => {
            for d in &errors.0 {
                assert!(!d.help.is_empty(), "{d}");
                d.render(true);
                d.render(false);
            }
            errors.0.iter().map(|d| d.code).collect()
        }
    }
}

#[test]
fn upper_triangle() {
    let text = "
def upper(A):
    s = scalar(0.0)
    for i, j in _:
        if i <= j:
            s += A[i,j]
    return s
";
    assert_eq!(run(text, &[&matrix(&[&[1.0, 2.0], &[4.0, 3.0]])]), [[6.0]]);
}

#[test]
fn gustavson() {
    let a = matrix(&[&[1., 0., 2.], &[0., 3., 0.], &[4., 0., 5.]]);
    let b = matrix(&[&[0., 1., 0.], &[2., 0., 3.], &[0., 4., 0.]]);
    let text = "
@tm.kernel
def gustavson(A, B):
    '''Row by row.'''
    C = tm.tensor(\"csr\")                      # declare
    for i in _:
        w = tm.tensor(\"bytemap\")
        for j in _:
            for k in _:
                w[k] += A[i,j] * B[j,k]
        for k in _:
            C[i,k] = w[k]
    return C
";
    assert_eq!(run(text, &[&a, &b]), [[0., 9., 0., 6., 0., 9., 0., 24., 0.]]);
}

#[test]
fn bellman_ford() {
    let inf = f64::INFINITY;
    // 0→1:4, 0→2:1, 2→1:2, 1→3:5
    let mut rows = vec![vec![inf; 4]; 4];
    (rows[0][1], rows[0][2], rows[2][1], rows[1][3]) = (4., 1., 2., 5.);
    let a = matrix(&rows.iter().map(|r| &r[..]).collect::<Vec<_>>());
    let text = "
def bellman_ford_step(A, D0, F0):          # several outputs, let, if, a (min,+) update
    D = tensor(\"dense\", fill=inf)
    F = tensor(\"bytemap; pattern\")
    for j in _:
        D[j] = min(D[j], D0[j])
    for j in _:
        if F0[j]:
            for i in _:
                d = D0[j] + A[j,i]
                D[i] = min(D[i], d)        # X[idx] = op(X[idx], e) is an update by op
                if d < D0[i]:
                    F[i] |= True
    return D, F
";
    let mut distances = vec![0., inf, inf, inf];
    let mut frontier = vec![1., 0., 0., 0.];
    for _ in 0..4 {
        let flags = Grid::from_values(&[4], &frontier.iter().map(|x| Value::Bool(*x != 0.0)).collect::<Vec<_>>());
        let results = run(text, &[&a, &vector(&distances), &flags]);
        (distances, frontier) = (results[0].clone(), results[1].clone());
    }
    assert_eq!(distances, [0., 3., 1., 8.]);
    assert_eq!(frontier, [0., 0., 0., 0.]);
}

#[test]
fn offsets_windows_and_padding() {
    let shift = "
def shift(A):
    B = tensor(\"dense\")
    for i in _:
        B[i] = A[i+1]
    return B
";
    assert_eq!(run(shift, &[&vector(&[1., 2., 3., 4.])]), [[2., 3., 4.]]);
    let toeplitz = "
def toeplitz(A):
    B = tensor(\"dense\")
    for j, k in range(2):
        B[j,k] = A[j+k]
    return B
";
    assert_eq!(run(toeplitz, &[&vector(&[1., 2., 3.])]), [[1., 2., 2., 3.]]);
    let permissive = "
def permissive(A):
    B = tensor(\"dense\")
    for i in _:
        B[i] = coalesce(A[~(i+1)], 0)
    return B
";
    assert_eq!(run(permissive, &[&vector(&[1., 2., 3.])]), [[2., 3., 0.]]);
}

#[test]
fn convolutions() {
    // Non-zeros {2, 8, 9} of 10, filter [10, 100]: the extent needed is 9 (the paper says 8).
    let mut image = vec![0.0; 10];
    (image[2], image[8], image[9]) = (1., 2., 3.);
    let text = "
def conv(I, F):
    O = tensor(\"dense\")
    for i, j in _:
        O[i] += I[i+j] * F[j]
    return O
";
    assert_eq!(run(text, &[&vector(&image), &vector(&[10., 100.])]), [[0., 100., 10., 0., 0., 0., 0., 200., 320.]]);
    // C{1:1,4:2,7:3}, 2i+j+1
    let mut c = vec![0.0; 9];
    (c[1], c[4], c[7]) = (1., 2., 3.);
    let strided = "
def strided(C, F):
    O = tensor(\"dense\")
    for i, j in _:
        O[i] += C[2*i+j+1] * F[j]
    return O
";
    assert_eq!(run(strided, &[&vector(&c), &vector(&[10., 100.])]), [[10., 200., 0., 30.]]);
    // A_ij = B_i + C_{i+j}, B{0:10,2:20}, C{2:5}
    let disjunctive = "
def disjunctive(B, C):
    A = tensor(\"dense\")
    for i in _:
        for j in range(2):
            A[i,j] = B[i] + C[i+j]
    return A
";
    let b = vector(&[10., 0., 20., 0.]);
    let c = vector(&[0., 0., 5., 0., 0.]);
    assert_eq!(run(disjunctive, &[&b, &c]), [[10., 10., 0., 5., 25., 20., 0., 0.]]);
}

#[test]
fn dimension_rules() {
    let text = "
def product(A, B):
    C = tensor(\"dense\")
    for i, j, k in _:
        C[i,k] += A[i,j] * B[j,k]
    return C
";
    let zeros = |m: usize, n: usize| matrix(&vec![&vec![0.0; n][..]; m]);
    let program = Program::parse(text).unwrap();
    let (a, b) = (zeros(3, 4), zeros(4, 5));
    let outcome = interp::run(&program, &[&a, &b], Options::default()).unwrap();
    let static_loop = |stop| interp_extent(0, stop);
    assert_eq!(outcome.checked.extents.loops, [static_loop(3), static_loop(4), static_loop(5)]);
    assert_eq!(outcome.checked.extents.shapes[2], [3, 5]);
    assert_eq!(code(text, &[&zeros(3, 4), &zeros(5, 5)]), [Code::E0402]);
}

fn interp_extent(start: i64, stop: i64) -> tamis_ir::program::LoopExtent {
    tamis_ir::program::LoopExtent::Static { start, stop }
}

#[test]
fn scalars_and_products() {
    let text = "
def product(x):
    p = short_circuit_scalar(1)
    for i in _:
        p *= x[i]
    return p
";
    assert_eq!(run(text, &[&vector(&[2., 0., 5.])]), [[0.0]]);
}

#[test]
fn masked_histogram() {
    let text = "
def histogram(I, M):
    H = tensor(\"dense\", shape=(17,))
    for i in _:
        if M[i]:
            H[i64(I[i]) // 16 + 1] += 1
    return H
";
    let mask = Grid::from_values(&[4], &[true, true, false, true].map(Value::Bool));
    let image = Grid::from_values(&[4], &[0u8, 15, 16, 255].map(Value::U8));
    let result = run(text, &[&image, &mask]);
    assert_eq!((result[0][1], result[0][16]), (2.0, 1.0));
    assert_eq!(result[0].iter().sum::<f64>(), 3.0);
}

#[test]
fn gather_and_scatter() {
    let text = "
def reverse(A, I):
    B = tensor(\"dense\", shape=(A.shape[0],))
    C = tensor(\"dense\", shape=(A.shape[0],))
    for i in _:
        B[i] = A[I[i]]
        C[I[i]] += A[i]
    return B, C
";
    let i = Grid::from_values(&[3], &[2, 0, 1].map(Value::I64));
    assert_eq!(run(text, &[&vector(&[1., 2., 3.]), &i]), [[3., 1., 2.], [2., 3., 1.]]);
    let out = Grid::from_values(&[3], &[2, 0, 3].map(Value::I64));
    assert_eq!(code(text, &[&vector(&[1., 2., 3.]), &out]), [Code::E1001]);
}

#[test]
fn fill_annihilates_unless_strict() {
    let text = "
def product(x, y):
    z = tensor(\"dense\")
    for i in _:
        z[i] = x[i] * y[i]
    return z
";
    /// A vector whose only stored coordinate is 1.
    struct One;
    impl interp::Operand for One {
        fn shape(&self) -> &[u64] {
            &[2]
        }
        fn dtype(&self) -> tamis_ir::DType {
            tamis_ir::DType::F64
        }
        fn fill(&self) -> Value {
            Value::F64(0.0)
        }
        fn for_each_stored(&self, visit: &mut dyn FnMut(&[u64], Value)) {
            visit(&[1], Value::F64(0.0));
        }
    }
    let program = Program::parse(text).unwrap();
    let y = vector(&[f64::NAN, f64::NAN]);
    for (strict, first_is_nan) in [(false, false), (true, true)] {
        let outcome = interp::run(&program, &[&One, &y], Options { strict, budget: None }).unwrap();
        assert_eq!(outcome.results[0].get(&[0]).unwrap().is_nan(), first_is_nan);
        // A stored zero is an ordinary number.
        assert!(outcome.results[0].get(&[1]).unwrap().is_nan());
    }
}

#[test]
fn lifecycle() {
    let both = "
def f(A):
    B = tensor(\"sparse\")
    for i in _:
        B[i] = A[i]
        B[i] += B[i] * 2
    return B
";
    assert_eq!(code(both, &[&vector(&[1.0])]), [Code::E0501]);
    // Each element of a dense tensor has its own storage.
    let program = Program::parse(&both.replace("sparse", "dense")).unwrap();
    assert!(program.is_read_while_written(program.results[0]));
    let outcome = interp::run(&program, &[&vector(&[1.0])], interp::Options::default()).unwrap();
    assert_eq!(outcome.results[0].get(&[0]), Some(Value::F64(3.0)));
}
