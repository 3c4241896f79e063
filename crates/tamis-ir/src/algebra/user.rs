//! User-defined operators: a body over built-in operators, and declared laws.
//!
//! A definition is interned, so that equal definitions are one operator, and never freed: an
//! [`Op`] stays a small value that can be copied, with a row like those of the operator table.
//! Bodies are in postfix order: flat lists of terms, operands before their users.

use super::laws::{self, LawViolation};
use super::{Constant, DType, Form, NanPolicy, Op, OpInfo, OpType, Ty, TypeError, Typing, Value, eval};
use rustc_hash::FxHashMap;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Mutex, OnceLock, PoisonError};

/// The maximum number of terms in the body of an operator.
///
/// ```
/// use tamis_ir::algebra::{BodyTerm, Laws, MAX_TERMS, Undefinable, UserOp};
/// let body = vec![BodyTerm::Param(0); MAX_TERMS + 1];
/// assert_eq!(UserOp::define("long", &["a"], body, Laws::default()), Err(Undefinable::TooLong));
/// ```
pub const MAX_TERMS: usize = 1000;

/// The maximum number of different operators that a process may define; they are never freed.
///
/// ```
/// use tamis_ir::algebra::MAX_DEFINITIONS;
/// println!("a process may define {MAX_DEFINITIONS} operators");
/// ```
pub const MAX_DEFINITIONS: usize = 1 << 16;

/// A term of the body of an operator. Operands are positions of earlier terms.
///
/// ```
/// use tamis_ir::algebra::{BodyTerm, Laws, Op, UserOp};
/// // a * a
/// let body = vec![BodyTerm::Param(0), BodyTerm::Call(Op::Mul, vec![0, 0])];
/// assert!(UserOp::define("square", &["a"], body, Laws::default()).is_ok());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum BodyTerm {
    /// An operand of the operator.
    Param(usize),
    /// A number from the user's text; takes the type of the other operand.
    Literal(Value),
    /// A built-in operator on terms.
    Call(Op, Vec<usize>),
}

/// The declared laws of an operator. Each law is tested on every type that the operator is used
/// with.
///
/// ```
/// use tamis_ir::algebra::Laws;
/// use tamis_ir::Value;
/// let least = Laws { commutative: true, associative: true, ..Laws::default() }.identity(Value::F64(f64::INFINITY));
/// assert!(least.any());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Laws {
    /// `op(a, b) = op(b, a)`.
    pub commutative: bool,
    /// `op(op(a, b), c) = op(a, op(b, c))`, for floats up to rounding.
    pub associative: bool,
    /// `op(a, a) = a`.
    pub idempotent: bool,
    /// `op(e, a) = a`.
    pub left_identity: Option<Value>,
    /// `op(a, e) = a`.
    pub right_identity: Option<Value>,
    /// `op(z, a) = z` and `op(a, z) = z` for every finite `a`.
    pub annihilator: Option<Value>,
}

impl Laws {
    /// With an identity on both sides.
    ///
    /// ```
    /// use tamis_ir::Value;
    /// use tamis_ir::algebra::Laws;
    /// let laws = Laws::default().identity(Value::I64(0));
    /// assert_eq!(laws.left_identity, laws.right_identity);
    /// ```
    pub fn identity(self, e: Value) -> Laws {
        Laws { left_identity: Some(e), right_identity: Some(e), ..self }
    }

    /// True if anything is declared.
    ///
    /// ```
    /// use tamis_ir::algebra::Laws;
    /// assert!(!Laws::default().any());
    /// ```
    pub fn any(&self) -> bool {
        *self != Laws::default()
    }
}

/// A user-defined operator.
///
/// ```
/// use tamis_ir::algebra::{Laws, Op};
/// # use tamis_ir::program::define;
/// let laws = Laws { commutative: true, ..Laws::default() };
/// let op = define("distance", &["a", "b"], "abs(a - b)", laws)?;
/// let Op::User(distance) = op else { unreachable!() };
/// assert_eq!((distance.name(), distance.params().len()), ("distance", 2));
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
#[derive(Clone, Copy)]
pub struct UserOp(&'static Definition);

/// The contents of a definition; equal contents are one operator.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Meaning {
    name: String,
    params: Vec<String>,
    body: Vec<BodyTerm>,
    laws: Laws,
    /// The declared derivative by each operand, in the form of the body; empty if none is declared.
    derivatives: Vec<Vec<BodyTerm>>,
}

/// Immutable, because operators are parts of hash keys.
struct Definition {
    meaning: Meaning,
    /// Initialised lazily, because it refers to the definition.
    info: OnceLock<OpInfo>,
    /// The types of the body for operands of each type.
    typed: Vec<(DType, Result<Vec<OpType>, TypeError>)>,
}

/// The reason why an operator cannot be defined.
///
/// ```
/// use tamis_ir::algebra::{BodyTerm, Laws, Undefinable, UserOp};
/// let laws = Laws { commutative: true, ..Laws::default() };
/// let outcome = UserOp::define("same", &["a"], vec![BodyTerm::Param(0)], laws);
/// assert_eq!(outcome, Err(Undefinable::LawsOfNonBinary));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Undefinable {
    /// The body has no terms, or a term refers to a later one.
    Malformed,
    /// The body has more than [`MAX_TERMS`] terms.
    TooLong,
    /// Laws are declared of an operator that is not binary.
    LawsOfNonBinary,
    /// There are derivatives, but not one for each operand.
    DerivativeCount,
    /// There are [`MAX_DEFINITIONS`] already.
    TooMany,
}

impl UserOp {
    /// Defines an operator, or returns the existing one with an equal definition.
    ///
    /// ```
    /// use tamis_ir::algebra::{DType, Laws, Op, BodyTerm, UserOp, Value, eval};
    /// let body = vec![BodyTerm::Param(0), BodyTerm::Param(1), BodyTerm::Call(Op::Sub, vec![0, 1]), BodyTerm::Call(Op::Abs, vec![2])];
    /// let laws = Laws { commutative: true, ..Laws::default() };
    /// let distance = UserOp::define("distance", &["a", "b"], body, laws).unwrap();
    /// assert_eq!(eval(Op::User(distance), DType::I64, &[Value::I64(2), Value::I64(5)]), Value::I64(3));
    /// ```
    pub fn define(name: &str, params: &[&str], body: Vec<BodyTerm>, laws: Laws) -> Result<UserOp, Undefinable> {
        UserOp::define_with_derivatives(name, params, body, laws, Vec::new())
    }

    /// [`UserOp::define`], with the partial derivative by each operand, which adjoints use instead of
    /// differentiating the body.
    ///
    /// ```
    /// use tamis_ir::algebra::{BodyTerm, Laws, Op, Undefinable, UserOp, Value};
    /// let round = vec![BodyTerm::Param(0), BodyTerm::Call(Op::Round, vec![0])];
    /// let one = vec![BodyTerm::Literal(Value::I64(1))];
    /// let define = |derivatives| {
    ///     UserOp::define_with_derivatives("through", &["a"], round.clone(), Laws::default(), derivatives)
    /// };
    /// assert_eq!(define(vec![one.clone()]).unwrap().derivatives(), [one.clone()]);
    /// assert_eq!(define(vec![one.clone(), one]), Err(Undefinable::DerivativeCount));
    /// ```
    pub fn define_with_derivatives(
        name: &str,
        params: &[&str],
        body: Vec<BodyTerm>,
        laws: Laws,
        derivatives: Vec<Vec<BodyTerm>>,
    ) -> Result<UserOp, Undefinable> {
        let fits = |(k, term): (usize, &BodyTerm)| match term {
            BodyTerm::Param(param) => *param < params.len(),
            BodyTerm::Literal(_) => true,
            BodyTerm::Call(Op::User(_), _) => false,
            BodyTerm::Call(op, operands) => {
                let (least, most) = op.info().arity;
                (least..=most).contains(&operands.len()) && operands.iter().all(|operand| *operand < k)
            }
        };
        let malformed = |terms: &Vec<BodyTerm>| terms.is_empty() || !terms.iter().enumerate().all(fits);
        if params.is_empty() || malformed(&body) || derivatives.iter().any(malformed) {
            return Err(Undefinable::Malformed);
        }
        if !derivatives.is_empty() && derivatives.len() != params.len() {
            return Err(Undefinable::DerivativeCount);
        }
        if body.len() > MAX_TERMS || derivatives.iter().any(|terms| terms.len() > MAX_TERMS) {
            return Err(Undefinable::TooLong);
        }
        if laws.any() && params.len() != 2 {
            return Err(Undefinable::LawsOfNonBinary);
        }
        let params = params.iter().map(|p| p.to_string()).collect();
        intern(Meaning { name: name.to_string(), params, body, laws, derivatives })
    }

    /// The name.
    ///
    /// ```
    /// use tamis_ir::algebra::{Laws, Op};
    /// # use tamis_ir::program::define;
    /// let laws = Laws { commutative: true, ..Laws::default() };
    /// let op = define("distance", &["a", "b"], "abs(a - b)", laws)?;
    /// let Op::User(distance) = op else { unreachable!() };
    /// assert_eq!(distance.name(), "distance");
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn name(self) -> &'static str {
        &self.0.meaning.name
    }

    /// The names of its operands.
    ///
    /// ```
    /// use tamis_ir::algebra::{Laws, Op};
    /// # use tamis_ir::program::define;
    /// let laws = Laws { commutative: true, ..Laws::default() };
    /// let op = define("distance", &["a", "b"], "abs(a - b)", laws)?;
    /// let Op::User(distance) = op else { unreachable!() };
    /// assert_eq!(distance.params(), ["a", "b"]);
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn params(self) -> &'static [String] {
        &self.0.meaning.params
    }

    /// Its body; the last term is the result.
    ///
    /// ```
    /// use tamis_ir::algebra::{Laws, Op};
    /// # use tamis_ir::program::define;
    /// let laws = Laws { commutative: true, ..Laws::default() };
    /// let op = define("distance", &["a", "b"], "abs(a - b)", laws)?;
    /// let Op::User(distance) = op else { unreachable!() };
    /// assert_eq!(distance.body().len(), 4, "a, b, their difference, its magnitude");
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn body(self) -> &'static [BodyTerm] {
        &self.0.meaning.body
    }

    /// The declared laws.
    ///
    /// ```
    /// use tamis_ir::algebra::{Laws, Op};
    /// # use tamis_ir::program::define;
    /// let laws = Laws { commutative: true, ..Laws::default() };
    /// let op = define("distance", &["a", "b"], "abs(a - b)", laws)?;
    /// let Op::User(distance) = op else { unreachable!() };
    /// assert!(distance.laws().commutative);
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn laws(self) -> Laws {
        self.0.meaning.laws
    }

    /// The declared derivative by each operand, in the form of the body; empty if none is declared.
    ///
    /// ```
    /// use tamis_ir::algebra::{Laws, Op};
    /// # use tamis_ir::program::define;
    /// let op = define("distance", &["a", "b"], "abs(a - b)", Laws::default())?;
    /// let Op::User(distance) = op else { unreachable!() };
    /// assert!(distance.derivatives().is_empty(), "the body is differentiated");
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn derivatives(self) -> &'static [Vec<BodyTerm>] {
        &self.0.meaning.derivatives
    }

    /// True if its body stands for it wherever it is called: it has neither laws nor derivatives.
    ///
    /// ```
    /// use tamis_ir::algebra::{Laws, Op};
    /// # use tamis_ir::program::define;
    /// let op = define("distance", &["a", "b"], "abs(a - b)", Laws::default())?;
    /// assert!(matches!(op, Op::User(distance) if distance.is_inlined()));
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn is_inlined(self) -> bool {
        !self.laws().any() && self.derivatives().is_empty()
    }

    pub(super) fn info(self) -> &'static OpInfo {
        self.0.info.get_or_init(|| row(self))
    }

    /// The types of all terms, where the operands have this type.
    ///
    /// ```
    /// # use tamis_ir::DType;
    /// use tamis_ir::algebra::{Laws, Op};
    /// # use tamis_ir::program::define;
    /// let laws = Laws { commutative: true, ..Laws::default() };
    /// let op = define("distance", &["a", "b"], "abs(a - b)", laws)?;
    /// let Op::User(distance) = op else { unreachable!() };
    /// assert_eq!(distance.types(DType::I32).unwrap()[3].result.dtype, DType::I32);
    /// assert!(distance.types(DType::C64).unwrap()[3].result.dtype == DType::F32);
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn types(self, dtype: DType) -> Result<&'static [OpType], TypeError> {
        match self.0.typed.iter().find(|(of, _)| *of == dtype) {
            Some((_, Ok(types))) => Ok(types),
            Some((_, Err(reason))) => Err(reason.clone()),
            None => Err(format!("does not take {dtype}")),
        }
    }

    /// The type rule: operands are converted to their common type, in which the body is computed.
    pub(super) fn type_of(self, common: Ty, nullable: bool) -> Result<OpType, TypeError> {
        let types = self.types(common.dtype)?;
        let result = types.last().map_or(common, |t| t.result);
        // A result of literals only is still a literal.
        let weak = common.weak && result.dtype != DType::Bool;
        Ok(OpType { operand: common.dtype, result: Ty { dtype: result.dtype, weak, nullable } })
    }

    pub(super) fn eval(self, operand: DType, operands: &[Value]) -> Value {
        let first = operands.first().map_or(Value::zero(operand), |v| v.cast(operand));
        // The caller has typed the call, and so the body.
        let Ok(types) = self.types(operand) else { return first };
        let mut values: Vec<Value> = Vec::with_capacity(types.len());
        let mut taken: Vec<Value> = Vec::new();
        for (term, op_type) in self.body().iter().zip(types) {
            values.push(match term {
                BodyTerm::Param(k) => operands.get(*k).map_or(first, |v| v.cast(operand)),
                BodyTerm::Literal(value) => *value,
                BodyTerm::Call(op, of) => {
                    taken.clear();
                    taken.extend(of.iter().map(|k| values[*k]));
                    eval(*op, op_type.operand, &taken)
                }
            });
        }
        values.last().copied().unwrap_or(first)
    }

    /// Tests the declared laws on edge values and random values of a type. Each type is tested
    /// once.
    ///
    /// ```
    /// use tamis_ir::algebra::{DType, Laws, Op, BodyTerm, UserOp};
    /// let body = vec![BodyTerm::Param(0), BodyTerm::Param(1), BodyTerm::Call(Op::Sub, vec![0, 1])];
    /// let laws = Laws { commutative: true, ..Laws::default() };
    /// let minus = UserOp::define("minus", &["a", "b"], body, laws).unwrap();
    /// assert_eq!(minus.test_laws(DType::F64).unwrap_err().law, "commutative");
    /// ```
    pub fn test_laws(self, dtype: DType) -> Result<(), LawViolation> {
        static TESTED: GlobalTable<(UserOp, DType), Result<(), LawViolation>> = OnceLock::new();
        let tested = || TESTED.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = tested().get(&(self, dtype)) {
            return known.clone();
        }
        let found = laws::test(self, dtype).map_or(Ok(()), Err);
        tested().insert((self, dtype), found.clone());
        found
    }
}

/// A global table.
type GlobalTable<K, V> = OnceLock<Mutex<FxHashMap<K, V>>>;

fn intern(meaning: Meaning) -> Result<UserOp, Undefinable> {
    static KNOWN: GlobalTable<Meaning, &'static Definition> = OnceLock::new();
    let mut known = KNOWN.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(definition) = known.get(&meaning) {
        return Ok(UserOp(definition));
    }
    if known.len() >= MAX_DEFINITIONS {
        return Err(Undefinable::TooMany);
    }
    let typed = DType::ALL.iter().map(|dtype| (*dtype, type_terms(&meaning.body, *dtype))).collect();
    let definition: &'static Definition =
        Box::leak(Box::new(Definition { meaning: meaning.clone(), info: OnceLock::new(), typed }));
    known.insert(meaning, definition);
    Ok(UserOp(definition))
}

/// The row of an operator, in the form of the operator table.
fn row(op: UserOp) -> OpInfo {
    let Meaning { name, params, laws, .. } = &op.0.meaning;
    let summary = String::leak(format!("defined with the operands {}", params.join(", ")));
    OpInfo {
        op: Op::User(op),
        arity: (params.len(), params.len()),
        commutative: laws.commutative,
        associative: laws.associative,
        idempotent: laws.idempotent,
        left_identity: laws.left_identity.map(Constant::of),
        right_identity: laws.right_identity.map(Constant::of),
        annihilator: laws.annihilator.map(Constant::of),
        nan: NanPolicy::Ordinary,
        ..OpInfo::new(name, Typing::Defined(op), summary, Form::Defined(op)).no_python()
    }
}

fn type_terms(body: &[BodyTerm], dtype: DType) -> Result<Vec<OpType>, TypeError> {
    let mut types: Vec<OpType> = Vec::with_capacity(body.len());
    for term in body {
        let plain = |ty: Ty| OpType { operand: ty.dtype, result: ty };
        types.push(match term {
            BodyTerm::Param(_) => plain(Ty::strong(dtype)),
            BodyTerm::Literal(value @ Value::Bool(_)) => plain(Ty::strong(value.dtype())),
            BodyTerm::Literal(value) => plain(Ty::weak(value.dtype())),
            BodyTerm::Call(op, operands) => {
                let operands: Vec<Ty> = operands.iter().map(|k| types[*k].result).collect();
                let info = op.info();
                op.type_of(&operands).map_err(|reason| {
                    format!("does not take {dtype}: in its body, `{}` {reason}", info.symbol.unwrap_or(info.name))
                })?
            }
        });
    }
    Ok(types)
}

// Definitions are interned, so equal ones have one address.

impl PartialEq for UserOp {
    fn eq(&self, other: &UserOp) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}

impl Eq for UserOp {}

/// Hashes the contents, not the address: the hash is part of keys that outlive the process.
impl Hash for UserOp {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.meaning.hash(state);
    }
}

impl Ord for UserOp {
    fn cmp(&self, other: &UserOp) -> Ordering {
        let address = |op: &UserOp| std::ptr::from_ref(op.0) as usize;
        self.name().cmp(other.name()).then_with(|| address(self).cmp(&address(other)))
    }
}

impl PartialOrd for UserOp {
    fn partial_cmp(&self, other: &UserOp) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Debug for UserOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn least(laws: Laws) -> UserOp {
        let body = vec![
            BodyTerm::Param(0),
            BodyTerm::Param(1),
            BodyTerm::Call(Op::Lt, vec![0, 1]),
            BodyTerm::Call(Op::Select, vec![2, 0, 1]),
        ];
        UserOp::define("least", &["a", "b"], body, laws).unwrap()
    }

    #[test]
    fn equal_definitions_are_one() {
        let laws = Laws { associative: true, ..Laws::default() };
        assert_eq!(least(laws), least(laws));
        assert_ne!(least(laws), least(Laws::default()));
    }

    #[test]
    fn malformed_bodies_are_refused() {
        let define = |params: &[&str], body: Vec<BodyTerm>| UserOp::define("f", params, body, Laws::default());
        let malformed = Err(Undefinable::Malformed);
        assert_eq!(define(&["a"], vec![]), malformed);
        assert_eq!(define(&[], vec![BodyTerm::Literal(Value::I64(1))]), malformed);
        assert_eq!(define(&["a"], vec![BodyTerm::Param(1)]), malformed);
        assert_eq!(define(&["a"], vec![BodyTerm::Call(Op::Neg, vec![0])]), malformed);
        assert_eq!(define(&["a"], vec![BodyTerm::Param(0), BodyTerm::Call(Op::Add, vec![0])]), malformed);
        let inner = Op::User(least(Laws::default()));
        assert_eq!(define(&["a"], vec![BodyTerm::Param(0), BodyTerm::Call(inner, vec![0, 0])]), malformed);
        let long = std::iter::once(BodyTerm::Param(0)).chain((0..MAX_TERMS).map(|k| BodyTerm::Call(Op::Neg, vec![k])));
        assert_eq!(define(&["a"], long.collect()), Err(Undefinable::TooLong));
        let laws = Laws { idempotent: true, ..Laws::default() };
        let unary = UserOp::define("f", &["a"], vec![BodyTerm::Param(0)], laws);
        assert_eq!(unary, Err(Undefinable::LawsOfNonBinary));
    }

    #[test]
    fn types_come_from_the_body() {
        let (int, float) = (Ty::strong(DType::I32), Ty::strong(DType::F32));
        let op = Op::User(least(Laws::default()));
        assert_eq!(op.type_of(&[int, int]).unwrap().result.dtype, DType::I32);
        assert_eq!(op.type_of(&[int, float]).unwrap().result.dtype, DType::F64);
        assert_eq!(op.type_of(&[Ty::weak(DType::I64), float]).unwrap().result.dtype, DType::F32);
        let reason = op.type_of(&[Ty::strong(DType::C64), int]).unwrap_err();
        assert!(reason.contains("in its body, `<` needs an order"), "{reason}");
    }
}
