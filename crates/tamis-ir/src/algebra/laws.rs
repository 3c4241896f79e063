//! Property tests of the laws that users declare of their operators.
//!
//! The operands are edge values of a type and random values. The operator table has to pass the
//! same tests (`tests/laws.rs`). Integers are compared exactly and over their whole range. Floats
//! are compared up to rounding if a law reassociates; NaN and infinities are included if the law
//! covers them. An annihilator is for finite values: the sparse policy decides the others.

use super::{DType, Kind, Op, UserOp, Value, eval};
use num_complex::Complex;

/// A law that does not hold.
///
/// ```
/// use tamis_ir::DType;
/// use tamis_ir::algebra::{Laws, Op};
/// # use tamis_ir::program::define;
/// let laws = Laws { commutative: true, ..Laws::default() };
/// let op = define("minus", &["a", "b"], "a - b", laws)?;
/// let Op::User(minus) = op else { unreachable!() };
/// let violation = minus.test_laws(DType::I64).unwrap_err();
/// println!("not {}: {}", violation.law, violation.counterexample);
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct LawViolation {
    /// The law, spelled as in its declaration: `commutative`.
    pub law: &'static str,
    /// The counterexample: `f(1, 2) is -1, but f(2, 1) is 1`.
    pub counterexample: String,
}

/// The number of random cases in addition to the edge cases.
const RANDOM: usize = 200;

/// The number of edge values that are combined in triples.
const IN_THREES: usize = 9;

pub(super) fn test(user: UserOp, dtype: DType) -> Option<LawViolation> {
    let laws = user.laws();
    if !laws.any() {
        return None;
    }
    let test = LawTest { user, op: Op::User(user), dtype };
    let info = user.info();
    let value = |c: Option<super::Constant>| c.and_then(|c| c.value(dtype));
    let mut random = Random(0x5eed);
    let edges = edges(dtype);
    let finite: Vec<Value> = edges.iter().copied().filter(|v| is_finite(*v)).collect();
    let mut pairs: Vec<(Value, Value)> = edges.iter().flat_map(|a| edges.iter().map(|b| (*a, *b))).collect();
    pairs.extend((0..RANDOM).map(|_| (random.value(dtype), random.value(dtype))));
    let singles: Vec<Value> = edges.iter().copied().chain((0..RANDOM).map(|_| random.value(dtype))).collect();
    if laws.commutative
        && let Some(failure) = pairs.iter().find_map(|(a, b)| test.commutative(*a, *b))
    {
        return Some(failure);
    }
    if laws.idempotent
        && let Some(failure) = singles.iter().find_map(|a| test.gives("idempotent", [*a, *a], *a))
    {
        return Some(failure);
    }
    for (law, e, left) in
        [("left_identity", value(info.left_identity), true), ("right_identity", value(info.right_identity), false)]
    {
        let law = if laws.left_identity == laws.right_identity { "identity" } else { law };
        let Some(e) = e else { continue };
        // A complex product with an infinite part is NaN in places, whatever the other factor.
        let fine = |a: &&Value| dtype.kind() != Kind::Complex || is_finite(**a);
        let operands = |a: Value| if left { [e, a] } else { [a, e] };
        if let Some(failure) = singles.iter().filter(fine).find_map(|a| test.gives(law, operands(*a), *a)) {
            return Some(failure);
        }
    }
    if let Some(zero) = value(info.annihilator) {
        let others = finite.iter().copied().chain((0..RANDOM).map(|_| random.value(dtype)));
        for a in others {
            for operands in [[zero, a], [a, zero]] {
                if let Some(failure) = test.gives("annihilator", operands, zero) {
                    return Some(failure);
                }
            }
        }
    }
    if laws.associative {
        let few = &finite[..finite.len().min(IN_THREES)];
        let in_threes = few.iter().flat_map(|a| few.iter().flat_map(move |b| few.iter().map(move |c| [*a, *b, *c])));
        let drawn: Vec<[Value; 3]> =
            (0..RANDOM).map(|_| [random.near(dtype), random.near(dtype), random.near(dtype)]).collect();
        return in_threes.chain(drawn).find_map(|[a, b, c]| test.associative(a, b, c));
    }
    None
}

struct LawTest {
    user: UserOp,
    op: Op,
    dtype: DType,
}

impl LawTest {
    fn apply(&self, a: Value, b: Value) -> Value {
        eval(self.op, self.dtype, &[a, b])
    }

    fn fail(&self, law: &'static str, counterexample: String) -> Option<LawViolation> {
        Some(LawViolation { law, counterexample })
    }

    fn commutative(&self, a: Value, b: Value) -> Option<LawViolation> {
        let (ab, ba) = (self.apply(a, b), self.apply(b, a));
        let name = self.user.name();
        match ab.same_number(ba) || (is_inexact(ab) && close(ab, ba)) {
            true => None,
            false => self.fail("commutative", format!("{name}({a}, {b}) is {ab}, but {name}({b}, {a}) is {ba}")),
        }
    }

    fn associative(&self, a: Value, b: Value, c: Value) -> Option<LawViolation> {
        let name = self.user.name();
        let (ab, bc) = (self.apply(a, b), self.apply(b, c));
        if let Some(failure) = self.other_type("associative", ab) {
            return Some(failure);
        }
        let (left, right) = (self.apply(ab, c), self.apply(a, bc));
        match close(left, right) {
            true => None,
            false => {
                let left = format!("{name}({name}({a}, {b}), {c}) is {left}");
                self.fail("associative", format!("{left}, but {name}({a}, {name}({b}, {c})) is {right}"))
            }
        }
    }

    fn gives(&self, law: &'static str, [a, b]: [Value; 2], expected: Value) -> Option<LawViolation> {
        let result = self.apply(a, b);
        let name = self.user.name();
        match result.same_number(expected) {
            true => None,
            false => self
                .other_type(law, result)
                .or_else(|| self.fail(law, format!("{name}({a}, {b}) is {result}, not {expected}"))),
        }
    }

    /// A law applies an operator to its own result, so operands and result must have one type.
    fn other_type(&self, law: &'static str, result: Value) -> Option<LawViolation> {
        let (name, dtype) = (self.user.name(), self.dtype);
        match result.dtype() == dtype {
            true => None,
            false => self.fail(law, format!("{name} of {dtype} is {}, which the law cannot hold of", result.dtype())),
        }
    }
}

fn is_inexact(value: Value) -> bool {
    value.dtype().kind() >= Kind::Float
}

fn is_finite(value: Value) -> bool {
    let c = value.as_c128();
    c.re.is_finite() && c.im.is_finite()
}

/// Equal as numbers; floats up to rounding, relative to their size.
fn close(a: Value, b: Value) -> bool {
    let (x, y) = (a.as_c128(), b.as_c128());
    let tolerance = if matches!(a.dtype(), DType::F32 | DType::C64) { 1e-4 } else { 1e-10 };
    let scale = 1.0 + x.norm().max(y.norm());
    // If both overflowed or became NaN, rounding decided.
    let lost = |c: Complex<f64>| !c.re.is_finite() || !c.im.is_finite();
    a.same_number(b) || (is_inexact(a) && ((x - y).norm() <= tolerance * scale || (lost(x) && lost(y))))
}

/// Edge values of a type, the most relevant ones first.
fn edges(dtype: DType) -> Vec<Value> {
    let ints = |values: &[i64]| values.iter().map(|v| Value::I64(*v).cast(dtype)).collect::<Vec<_>>();
    let end = |sign: f64| Value::F64(sign * f64::INFINITY).cast(dtype);
    let mut edges = match dtype.kind() {
        Kind::Bool => vec![Value::Bool(false), Value::Bool(true)],
        Kind::Int if dtype.is_unsigned_int() => [ints(&[0, 1, 2, 3, 5, 7]), vec![end(1.0)]].concat(),
        Kind::Int => [ints(&[0, 1, -1, 2, -3, 5]), vec![end(1.0), end(-1.0)]].concat(),
        Kind::Float => {
            let finite = [0.0, 1.0, -1.0, 2.0, -3.5, 0.5, -0.0];
            let rest = [f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
            finite.iter().chain(&rest).map(|v| Value::F64(*v).cast(dtype)).collect()
        }
        Kind::Complex => {
            let finite = [(0.0, 0.0), (1.0, 0.0), (-1.0, 0.0), (0.0, 1.0), (2.0, -3.0), (0.5, 0.25)];
            finite.iter().map(|(re, im)| Value::C128(Complex::new(*re, *im)).cast(dtype)).collect()
        }
    };
    edges.dedup();
    edges
}

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

    /// A finite value; integers from their whole range.
    fn value(&mut self, dtype: DType) -> Value {
        match dtype.kind() {
            Kind::Int if self.bits() & 1 == 0 => Value::U64(self.bits()).cast(dtype),
            _ => self.near(dtype),
        }
    }

    /// A value around 0; integers now and then from their whole range.
    fn near(&mut self, dtype: DType) -> Value {
        let real = |r: &mut Random| (r.bits() % 2001) as f64 / 250.0 - 4.0;
        match dtype.kind() {
            Kind::Bool => Value::Bool(self.bits() & 1 == 1),
            Kind::Int if self.bits().is_multiple_of(4) => Value::U64(self.bits()).cast(dtype),
            Kind::Int if dtype.is_unsigned_int() => Value::U64(self.bits() % 20).cast(dtype),
            Kind::Int => Value::I64((self.bits() % 41) as i64 - 20).cast(dtype),
            Kind::Float => Value::F64(real(self)).cast(dtype),
            Kind::Complex => Value::C128(Complex::new(real(self), real(self))).cast(dtype),
        }
    }
}
