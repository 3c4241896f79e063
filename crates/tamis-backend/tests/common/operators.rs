//! Generator of operator tests: kernels that apply one operator to all combinations of edge values.

use num_complex::Complex;
use tamis_ir::algebra::{Op, TABLE, Ty, eval};
use tamis_ir::kernel::{Array, BufferId, Builder, Elem, ExprId, Hint, Kernel, Memory, Role, Stmt, VectorExpr};
use tamis_ir::{DType, Kind, Value};

/// Edge values of a type.
pub fn edge_values(dtype: DType) -> Vec<Value> {
    let ints = [
        0i64,
        1,
        2,
        3,
        5,
        7,
        8,
        63,
        64,
        100,
        127,
        128,
        255,
        256,
        32767,
        65535,
        1 << 31,
        i64::MAX,
        -1,
        -2,
        -7,
        -128,
        i64::MIN,
    ];
    let floats = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        -0.5,
        1.5,
        2.5,
        -2.5,
        3.0,
        7.3,
        -7.3,
        1e-3,
        1e10,
        -1e10,
        1e-310,
        1e300,
        -1e300,
        9.3e18,
        1.9e19,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
    ];
    let mut values: Vec<Value> = match dtype.kind() {
        Kind::Bool | Kind::Int => {
            ints.iter().map(|x| Value::I64(*x).cast(dtype)).chain([Value::U64(u64::MAX).cast(dtype)]).collect()
        }
        Kind::Float => floats.iter().map(|x| Value::F64(*x).cast(dtype)).collect(),
        Kind::Complex => {
            let parts = [0.0, -0.0, 1.0, -2.5, 0.7, 1e200, f64::INFINITY, f64::NAN];
            let pairs = parts.iter().flat_map(|re| parts.iter().map(move |im| Complex::new(*re, *im)));
            pairs.map(|c| Value::C128(c).cast(dtype)).collect()
        }
    };
    values.dedup();
    let mut seen = Vec::new();
    values.retain(|value| {
        !seen.contains(value) && {
            seen.push(*value);
            true
        }
    });
    values
}

/// A test case: an operator, its operand type, and the types of its operands.
#[derive(Clone, Debug)]
pub struct OperatorCase {
    pub op: Op,
    pub operand: DType,
    pub types: Vec<DType>,
}

/// Every operator on every type it takes, and conversions between every pair of types.
pub fn cases() -> Vec<OperatorCase> {
    let mut cases = Vec::new();
    for row in TABLE {
        let (least, most) = row.arity;
        for count in [least, most.min(3)] {
            for dtype in DType::ALL {
                let types = vec![dtype; count];
                let strong: Vec<Ty> = types.iter().map(|dtype| Ty::strong(*dtype)).collect();
                if let Ok(op_type) = row.op.type_of(&strong) {
                    cases.push(OperatorCase { op: row.op, operand: op_type.operand, types });
                }
            }
            if least == most {
                break;
            }
        }
    }
    for a in DType::ALL {
        cases.extend(DType::ALL.map(|to| OperatorCase { op: Op::Cast(to), operand: a, types: vec![a] }));
        for b in DType::ALL {
            for op in [Op::Add, Op::Min, Op::Eq, Op::Ne, Op::Lt, Op::Le, Op::Gt, Op::Ge, Op::And, Op::Or] {
                if let Ok(op_type) = op.type_of(&[Ty::strong(a), Ty::strong(b)])
                    && a != b
                {
                    cases.push(OperatorCase { op, operand: op_type.operand, types: vec![a, b] });
                }
            }
        }
    }
    cases
}

/// The operands of a case: all combinations, or a sample if there are too many.
pub fn operands(case: &OperatorCase) -> Vec<Vec<Value>> {
    let edges: Vec<Vec<Value>> = case.types.iter().map(|dtype| edge_values(*dtype)).collect();
    let total: usize = edges.iter().map(Vec::len).product();
    let step = total / 5000 + 1;
    (0..total)
        .step_by(step)
        .map(|mut k| {
            let mut pick = |values: &Vec<Value>| {
                let value = values[k % values.len()];
                k /= values.len();
                value
            };
            edges.iter().map(&mut pick).collect()
        })
        .collect()
}

/// How a kernel goes over its rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rows {
    /// One after the other.
    Serial,
    /// In a loop that may be vectorised.
    Vectorised,
    /// As explicit vectors of so many lanes, with a masked tail.
    Lanes(u16),
    /// The same from the last row to the first: elements are gathered and scattered.
    Backwards(u16),
}

/// A kernel that applies the operators of several cases, each to all its rows; with its initial
/// memory and the expected results.
pub fn kernel(cases: &[&OperatorCase], over: Rows) -> (Kernel, Memory, Vec<Array>) {
    let mut b = Builder::new("apply");
    let (mut arrays, mut scalars, mut expected) = (Vec::new(), Vec::new(), Vec::new());
    for (number, case) in cases.iter().enumerate() {
        let rows = operands(case);
        let results: Vec<Value> = rows.iter().map(|row| eval(case.op, case.operand, row)).collect();
        let mut inputs = Vec::new();
        for (k, dtype) in case.types.iter().enumerate() {
            inputs.push(b.buffer(format!("x{k}_{number}"), Elem::Value(*dtype), Role::Input));
            arrays.push(Array::from_values(rows.iter().map(|row| row[k])));
        }
        let out = b.buffer(format!("out_{number}"), Elem::Value(results[0].dtype()), Role::Output);
        arrays.push(Array::from_values(vec![Value::zero(results[0].dtype()); rows.len()]));
        let (start, stop) = (b.int(0), b.param(format!("n_{number}"), DType::I64));
        scalars.push(Value::I64(rows.len() as i64));
        let stop = b.get(stop);
        if let Rows::Lanes(lanes) | Rows::Backwards(lanes) = over {
            in_lanes(&mut b, (lanes, matches!(over, Rows::Backwards(_))), case, (&inputs, out), stop);
            expected.push(Array::from_values(results));
            continue;
        }
        let vectorise = over == Rows::Vectorised;
        let var = b.new_var("i", DType::I64, false);
        let i = b.get(var);
        let body = b.block(|b| {
            let operands: Vec<_> = inputs.iter().map(|x| b.load(*x, i)).collect();
            let value = b.call_in(case.op, case.operand, &operands);
            b.store(out, i, value);
        });
        b.emit(Stmt::For { var, start, stop, body, hint: Hint { vectorise, ..Hint::default() } });
        expected.push(Array::from_values(results));
    }
    (b.finish(), Memory { arrays, scalars }, expected)
}

/// A loop over vectors of rows.
fn in_lanes(
    b: &mut Builder,
    (lanes, backwards): (u16, bool),
    case: &OperatorCase,
    (inputs, out): (&[BufferId], BufferId),
    rows: ExprId,
) {
    let (zero, one, width) = (b.int(0), b.int(1), b.int(i64::from(lanes)));
    let last = b.sub(rows, one);
    let more = b.add(last, width);
    let chunks = b.call(Op::FloorDiv, &[more, width]);
    b.count("chunk", zero, chunks, |b, chunk| {
        let start = b.call(Op::Mul, &[chunk, width]);
        let ramp = b.vector(VectorExpr::Ramp { start, step: 1, lanes });
        let mask = b.call(Op::Lt, &[ramp, rows]);
        let index = if backwards { b.call(Op::Sub, &[last, ramp]) } else { ramp };
        let load = |b: &mut Builder, (x, dtype): (&BufferId, &DType)| {
            let otherwise = b.constant(Value::zero(*dtype));
            b.vector(VectorExpr::Masked { buffer: *x, index, mask, otherwise })
        };
        let operands: Vec<_> = inputs.iter().zip(&case.types).map(|pair| load(b, pair)).collect();
        let value = b.call_in(case.op, case.operand, &operands);
        b.emit(Stmt::MaskedStore { buffer: out, index, value, mask });
    });
}

/// Describes the mismatches in the memory after [`kernel`]; `same` compares two values.
pub fn wrong(
    cases: &[&OperatorCase],
    after: &Memory,
    expected: &[Array],
    same: impl Fn(&OperatorCase, &[Value], Value, Value) -> bool,
) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut at = 0;
    for (case, expected) in cases.iter().zip(expected) {
        let rows = operands(case);
        at += case.types.len();
        let got = &after.arrays[at];
        at += 1;
        let pairs = rows.iter().zip(expected.values().iter().zip(got.values()));
        for (row, (expected, got)) in pairs.filter(|(row, (a, b))| !same(case, row, **a, **b)).take(2) {
            wrong.push(format!("{:?} in {}: {row:?} gives {got:?}, not {expected:?}", case.op, case.operand));
        }
    }
    wrong
}
