//! Property tests of the operator table: every declared law, on every type that the operator
//! accepts.
//!
//! Integers are compared exactly, over their whole range. Floats and complex numbers are compared
//! up to rounding if the table says so, with zeros of both signs, and with NaN and infinities if
//! the law covers them (an annihilator is for finite values; the sparse policy decides the others).

use tamis_ir::algebra::{Constant, Kind, NanPolicy, Op, OpInfo, TABLE, Ty, Typing, eval};
use tamis_ir::{DType, Value};

const ROUNDS: usize = 400;

/// A pseudorandom generator (splitmix) with a fixed seed, so that failures repeat.
struct Random(u64);

impl Random {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Any value of a type, NaN and infinities included.
    fn any(&mut self, dtype: DType) -> Value {
        if dtype.kind() < Kind::Float || !self.bits().is_multiple_of(4) {
            return self.value(dtype);
        }
        Value::F64([f64::NAN, f64::INFINITY, f64::NEG_INFINITY][self.bits() as usize % 3]).cast(dtype)
    }

    /// A value of a type, extremes included; finite for floats.
    fn value(&mut self, dtype: DType) -> Value {
        let choice = self.bits() % 8;
        let real = match choice {
            0 => Value::zero(dtype),
            1 => Value::one(dtype),
            2 if dtype.kind() == Kind::Int => Constant::Least.value(dtype).unwrap(),
            3 if dtype.kind() == Kind::Int => Constant::Greatest.value(dtype).unwrap(),
            4 if dtype.kind() == Kind::Float => Value::F64(-0.0).cast(dtype),
            _ if dtype.kind() == Kind::Int => Value::U64(self.bits()).cast(dtype),
            _ => return self.small(dtype),
        };
        real.cast(dtype)
    }

    /// A value around 0: no overflow in a few operations.
    fn small(&mut self, dtype: DType) -> Value {
        let real = |r: &mut Random| (r.bits() % 2001) as f64 / 250.0 - 4.0;
        match dtype.kind() {
            Kind::Bool => Value::Bool(self.bits() & 1 == 1),
            Kind::Int if dtype.is_unsigned_int() => Value::U64(self.bits() % 6).cast(dtype),
            Kind::Int => Value::I64((self.bits() % 11) as i64 - 5).cast(dtype),
            Kind::Float => Value::F64(real(self)).cast(dtype),
            Kind::Complex => Value::C128(num_complex::Complex::new(real(self), real(self))).cast(dtype),
        }
    }
}

fn operand_type(op: Op, dtype: DType, count: usize) -> Option<DType> {
    op.type_of(&vec![Ty::strong(dtype); count]).ok().map(|t| t.operand)
}

/// Types in which the operator computes.
fn types(row: &OpInfo) -> Vec<DType> {
    let mut types: Vec<DType> = DType::ALL.iter().filter_map(|t| operand_type(row.op, *t, 2)).collect();
    types.sort_unstable();
    types.dedup();
    types
}

fn apply(op: Op, dtype: DType, a: Value, b: Value) -> Value {
    eval(op, dtype, &[a, b])
}

/// Equal as numbers; floats up to rounding relative to the operands' size (which is around 10
/// here).
fn close(a: Value, b: Value) -> bool {
    let (x, y) = (a.as_c128(), b.as_c128());
    let tolerance = if matches!(a.dtype(), DType::F32 | DType::C64) { 1e-4 } else { 1e-10 };
    let scale = 1.0 + x.norm().max(y.norm());
    a.same_number(b) || (a.dtype().kind() >= Kind::Float && (x - y).norm() <= tolerance * scale)
}

fn binary_rows() -> impl Iterator<Item = &'static OpInfo> {
    TABLE.iter().filter(|row| row.arity.0 <= 2 && row.arity.1 >= 2)
}

#[test]
fn commutative() {
    let mut random = Random(1);
    for row in binary_rows().filter(|row| row.commutative) {
        for dtype in types(row) {
            for _ in 0..ROUNDS {
                let (a, b) = (random.any(dtype), random.any(dtype));
                let (ab, ba) = (apply(row.op, dtype, a, b), apply(row.op, dtype, b, a));
                assert!(ab.same_number(ba), "{} {dtype}: {a} {b}", row.name);
            }
        }
    }
}

#[test]
fn associative() {
    let mut random = Random(2);
    for row in binary_rows().filter(|row| row.associative) {
        for dtype in types(row) {
            for _ in 0..ROUNDS {
                let exact = dtype.kind() <= Kind::Int;
                let mut draw = || if exact { random.value(dtype) } else { random.small(dtype) };
                let (a, b, c) = (draw(), draw(), draw());
                let left = apply(row.op, dtype, apply(row.op, dtype, a, b), c);
                let right = apply(row.op, dtype, a, apply(row.op, dtype, b, c));
                assert!(close(left, right), "{} {dtype}: {a} {b} {c}", row.name);
            }
        }
    }
}

#[test]
fn idempotent() {
    let mut random = Random(3);
    for row in binary_rows().filter(|row| row.idempotent) {
        for dtype in types(row) {
            for _ in 0..ROUNDS {
                let a = random.any(dtype);
                assert!(apply(row.op, dtype, a, a).same_number(a), "{} {dtype}: {a}", row.name);
            }
        }
    }
}

#[test]
fn identities_and_annihilators() {
    let mut random = Random(4);
    let mut checked = 0;
    for row in binary_rows() {
        for dtype in types(row) {
            let value = |c: Option<Constant>| c.and_then(|c| c.value(dtype));
            let (left, right, zero) = (value(row.left_identity), value(row.right_identity), value(row.annihilator));
            for _ in 0..ROUNDS {
                let finite = random.value(dtype);
                // A complex product with an infinite part is NaN in places, whatever the other
                // factor.
                let a = if dtype.kind() == Kind::Complex { finite } else { random.any(dtype) };
                if let Some(e) = left {
                    assert!(apply(row.op, dtype, e, a).same_number(a), "{} {dtype}: {e} {a}", row.name);
                }
                if let Some(e) = right {
                    assert!(apply(row.op, dtype, a, e).same_number(a), "{} {dtype}: {a} {e}", row.name);
                }
                if let Some(z) = zero {
                    assert!(apply(row.op, dtype, z, finite).same_number(z), "{} {dtype}: {z} {finite}", row.name);
                    assert!(apply(row.op, dtype, finite, z).same_number(z), "{} {dtype}: {finite} {z}", row.name);
                }
                checked += usize::from(left.is_some()) + usize::from(right.is_some()) + usize::from(zero.is_some());
            }
        }
    }
    assert!(checked > 50 * ROUNDS);
}

/// The initial values of reductions are identities on every type, and equal NumPy's, which are
/// listed by hand.
#[test]
fn reductions_start_from_identities() {
    let mut random = Random(9);
    for row in binary_rows().filter(|row| row.commutative && row.associative) {
        for dtype in DType::ALL {
            let Some(start) = row.op.start(dtype) else { continue };
            assert_eq!(start.dtype(), dtype);
            let Ok(op_type) = row.op.type_of(&[Ty::strong(dtype); 2]) else { continue };
            for _ in 0..ROUNDS {
                let a = random.value(dtype);
                let got = apply(row.op, op_type.operand, start, a);
                // Truth values of numbers are 0 and 1.
                let wanted =
                    if row.typing == Typing::Logical { Value::Bool(a.is_truthy()) } else { a.cast(got.dtype()) };
                assert!(got.same_number(wanted), "{} {dtype}: {start} {a}", row.name);
            }
        }
    }
    use Value::{Bool, F32, F64, I8, I64, U8, U64};
    let vectors = [
        (Op::Add, DType::F64, Some(F64(0.0))),
        (Op::Sub, DType::F64, Some(F64(0.0))),
        (Op::Mul, DType::U8, Some(U8(1))),
        (Op::Min, DType::F32, Some(F32(f32::INFINITY))),
        (Op::Max, DType::F64, Some(F64(f64::NEG_INFINITY))),
        (Op::Min, DType::I8, Some(I8(127))),
        (Op::Max, DType::I64, Some(I64(i64::MIN))),
        (Op::Min, DType::U64, Some(U64(u64::MAX))),
        (Op::Max, DType::U8, Some(U8(0))),
        (Op::Min, DType::Bool, Some(Bool(true))),
        (Op::Min, DType::C128, None),
        (Op::And, DType::Bool, Some(Bool(true))),
        (Op::And, DType::F64, Some(F64(1.0))),
        (Op::And, DType::I8, Some(I8(1))),
        (Op::And, DType::U64, Some(U64(1))),
        (Op::Or, DType::F64, Some(F64(0.0))),
        (Op::BitAnd, DType::I8, Some(I8(-1))),
        (Op::BitAnd, DType::U8, Some(U8(255))),
        (Op::BitOr, DType::U8, Some(U8(0))),
        (Op::BitXor, DType::I64, Some(I64(0))),
        (Op::BitAnd, DType::F64, None),
    ];
    for (op, dtype, expected) in vectors {
        assert_eq!(op.start(dtype), expected, "{op:?} {dtype}");
    }
    assert_eq!(Op::And.start(DType::C64).map(|v| v.as_c128()), Some(num_complex::Complex::new(1.0, 0.0)));
}

/// Infinities that decide sums and differences for every finite other operand.
#[test]
fn absorbing_operands() {
    let mut random = Random(7);
    let mut checked = 0;
    for row in binary_rows().filter(|row| !row.absorbing.is_empty()) {
        for dtype in types(row).into_iter().filter(|dtype| dtype.kind() == Kind::Float) {
            for absorbing in row.absorbing {
                let (z, result) = (absorbing.value.value(dtype).unwrap(), absorbing.result.value(dtype).unwrap());
                for _ in 0..ROUNDS {
                    let a = random.value(dtype);
                    let got =
                        if absorbing.operand == 0 { apply(row.op, dtype, z, a) } else { apply(row.op, dtype, a, z) };
                    assert!(got.same_number(result), "{} {dtype}: {z} at {} with {a}", row.name, absorbing.operand);
                    assert_eq!(row.absorbed(dtype, absorbing.operand, z), Some(result));
                    checked += 1;
                }
            }
        }
    }
    assert!(checked >= 16 * ROUNDS);
}

/// Semirings: a reduction is unchanged by the inner operator on a fill, regardless of its other
/// operand.
#[test]
fn reductions_skip_what_is_absorbed() {
    let mut random = Random(8);
    let mut pairs = Vec::new();
    for reduction in binary_rows().filter(|row| row.commutative && row.associative) {
        for inner in binary_rows() {
            for dtype in types(reduction) {
                if operand_type(inner.op, dtype, 2) != Some(dtype) {
                    continue;
                }
                let ends = [Constant::Zero, Constant::One, Constant::Ones, Constant::Least, Constant::Greatest];
                for fill in ends.iter().filter_map(|c| c.value(dtype)) {
                    for position in 0..2 {
                        if !inner.idle_under(reduction.op, dtype, position, fill) {
                            continue;
                        }
                        pairs.push((reduction.name, inner.name, dtype, position));
                        for _ in 0..ROUNDS {
                            let (start, a) = (random.value(dtype), random.value(dtype));
                            let (x, y) = if position == 0 { (fill, a) } else { (a, fill) };
                            let got = apply(reduction.op, dtype, start, apply(inner.op, dtype, x, y));
                            assert!(
                                got.same_number(start),
                                "{} {} {dtype}: {start} {x} {y}",
                                reduction.name,
                                inner.name
                            );
                        }
                    }
                }
            }
        }
    }
    for pair in
        [("min", "add"), ("max", "add"), ("min", "sub"), ("add", "mul"), ("min", "max"), ("logical_or", "logical_and")]
    {
        assert!(pairs.iter().any(|(reduction, inner, ..)| (*reduction, *inner) == pair), "{pair:?}");
    }
    // Integers wrap around.
    assert!(!pairs.iter().any(|(r, i, dtype, _)| (*r, *i) == ("min", "add") && dtype.kind() != Kind::Float));
}

#[test]
fn distributive() {
    let mut random = Random(5);
    for row in binary_rows() {
        for (other, _) in row.distributes_over {
            for dtype in types(row) {
                if operand_type(*other, dtype, 2) != Some(dtype) || !row.distributes(*other, dtype) {
                    continue;
                }
                for _ in 0..ROUNDS {
                    let exact = dtype.kind() <= Kind::Int;
                    let mut draw = || if exact { random.value(dtype) } else { random.small(dtype) };
                    let (a, b, c) = (draw(), draw(), draw());
                    let left = apply(row.op, dtype, a, apply(*other, dtype, b, c));
                    let right = apply(*other, dtype, apply(row.op, dtype, a, b), apply(row.op, dtype, a, c));
                    assert!(close(left, right), "{} over {other:?} {dtype}: {a} {b} {c}", row.name);
                }
            }
        }
    }
}

#[test]
fn nan_policy() {
    for row in TABLE {
        let count = row.arity.0;
        for dtype in [DType::F32, DType::F64, DType::C64, DType::C128] {
            if operand_type(row.op, dtype, count) != Some(dtype) {
                continue;
            }
            for at in 0..count {
                let mut operands = vec![Value::one(dtype); count];
                operands[at] = Value::F64(f64::NAN).cast(dtype);
                let result = eval(row.op, dtype, &operands);
                match row.nan {
                    // IEEE has one exception: 1 to any power is 1.
                    NanPolicy::Propagates if row.op == Op::Pow => {}
                    NanPolicy::Propagates => assert!(result.is_nan(), "{} {dtype} at {at}: {result}", row.name),
                    NanPolicy::Unordered => assert_eq!(result, Value::Bool(row.op == Op::Ne), "{}", row.name),
                    NanPolicy::Ordinary => {}
                }
            }
        }
    }
}

/// The result of evaluation has the type of the type rule, for every pair of types.
#[test]
fn types_follow_the_type_rule() {
    let mut random = Random(6);
    for row in TABLE {
        for a in DType::ALL {
            for b in DType::ALL {
                let count = row.arity.0.clamp(1, 3);
                let types: Vec<DType> = [a, b, a][..count].to_vec();
                let tys: Vec<Ty> = types.iter().map(|t| Ty::strong(*t)).collect();
                let Ok(op_type) = row.op.type_of(&tys) else { continue };
                let operands: Vec<Value> = types.iter().map(|t| random.value(*t)).collect();
                let result = eval(row.op, op_type.operand, &operands);
                assert_eq!(result.dtype(), op_type.result.dtype, "{} {types:?}", row.name);
            }
        }
        assert!(!matches!(row.typing, Typing::Conversion(_)));
    }
    for to in DType::ALL {
        for from in DType::ALL {
            let op_type = Op::Cast(to).type_of(&[Ty::strong(from)]).unwrap();
            assert_eq!(eval(Op::Cast(to), op_type.operand, &[random.value(from)]).dtype(), to);
        }
    }
}
