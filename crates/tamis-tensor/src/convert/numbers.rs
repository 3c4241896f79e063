//! Numeric semantics of conversion: comparison with the fill, and reduction of duplicates.

use super::words::stored_form;
use crate::memory::{filled, reserve, zeroed};
use crate::{Combine, IndexArray, ValueArray, with_values};
use bytemuck::Pod;
use num_complex::Complex;
use tamis_ir::{Code, DType, Diagnostic, Kind, Value, diag::Result};

/// A bit mask of values, in words of 64.
#[derive(Debug)]
pub(crate) struct BitMask {
    words: Vec<u64>,
    len: usize,
}

impl BitMask {
    /// All bits set.
    pub fn full(len: usize) -> Result<BitMask> {
        let mut words = filled(len.div_ceil(64), u64::MAX, "a mask")?;
        if let (Some(last), true) = (words.last_mut(), !len.is_multiple_of(64)) {
            *last = (1 << (len % 64)) - 1;
        }
        Ok(BitMask { words, len })
    }

    /// The number of set bits.
    pub fn count(&self) -> usize {
        self.words.iter().map(|w| w.count_ones() as usize).sum()
    }

    /// True if this bit is set.
    #[inline(always)]
    pub fn is_set(&self, at: usize) -> bool {
        self.words[at / 64] >> (at % 64) & 1 == 1
    }

    /// True if every bit is set.
    pub fn is_full(&self) -> bool {
        self.count() == self.len
    }

    /// Calls `each` with the set bits of a range, in order.
    #[inline(always)]
    pub fn for_each(&self, range: std::ops::Range<usize>, mut each: impl FnMut(usize)) {
        let mut at = range.start;
        while at < range.end {
            let shift = at % 64;
            let mut word = self.words[at / 64] >> shift;
            let left = (64 - shift).min(range.end - at);
            if left < 64 {
                word &= (1 << left) - 1;
            }
            while word != 0 {
                each(at + word.trailing_zeros() as usize);
                word &= word - 1;
            }
            at += left;
        }
    }

    /// The positions of the set bits, for a gather.
    pub fn places(&self) -> Result<IndexArray> {
        let mut places: Vec<u64> = reserve(self.count(), "the places of entries")?;
        self.for_each(0..self.len, |at| places.push(at as u64));
        Ok(places.into())
    }
}

/// An element type in memory.
trait Number: Pod + PartialEq {
    /// Zeros of either sign are one number, and so are all NaNs; see [`Value::same_number`].
    fn same(self, other: Self) -> bool;
    fn add(self, other: Self) -> Self;
    fn multiply(self, other: Self) -> Self;
    fn least(self, other: Self) -> Self;
    fn greatest(self, other: Self) -> Self;
    fn truth(truth: bool) -> Self;
    fn is_zero(self) -> bool {
        self.same(Self::truth(false))
    }
}

macro_rules! integers {
    ($($rust:ty),*) => {$(
        impl Number for $rust {
            #[inline(always)]
            fn same(self, other: $rust) -> bool { self == other }
            fn add(self, other: $rust) -> $rust { self.wrapping_add(other) }
            fn multiply(self, other: $rust) -> $rust { self.wrapping_mul(other) }
            fn least(self, other: $rust) -> $rust { self.min(other) }
            fn greatest(self, other: $rust) -> $rust { self.max(other) }
            fn truth(truth: bool) -> $rust { truth as $rust }
        }
    )*};
}
integers!(i8, i16, i32, i64, u8, u16, u32, u64);

macro_rules! floats {
    ($($rust:ty),*) => {$(
        impl Number for $rust {
            #[inline(always)]
            fn same(self, other: $rust) -> bool { self == other || (self.is_nan() && other.is_nan()) }
            fn add(self, other: $rust) -> $rust { self + other }
            fn multiply(self, other: $rust) -> $rust { self * other }
            fn least(self, other: $rust) -> $rust { if self.is_nan() || self < other { self } else { other } }
            fn greatest(self, other: $rust) -> $rust { if self.is_nan() || self > other { self } else { other } }
            fn truth(truth: bool) -> $rust { truth as u8 as $rust }
        }

        impl Number for Complex<$rust> {
            #[inline(always)]
            fn same(self, other: Self) -> bool { self == other || (self.is_nan() && other.is_nan()) }
            fn add(self, other: Self) -> Self { self + other }
            fn multiply(self, other: Self) -> Self { self * other }
            // Complex numbers have no order; `combine` rejects these operators earlier.
            fn least(self, _: Self) -> Self { self }
            fn greatest(self, _: Self) -> Self { self }
            fn truth(truth: bool) -> Self { Complex::new(truth as u8 as $rust, 0.0) }
        }
    )*};
}
floats!(f32, f64);

/// A mask of the values that differ from `fill`, which is of their type.
pub(crate) fn differing(values: &ValueArray, fill: Value) -> Result<BitMask> {
    fn mask<T: Number>(values: &[T], fill: T) -> Result<Vec<u64>> {
        let mut words = reserve(values.len().div_ceil(64), "a mask")?;
        words.extend(values.chunks(64).map(|chunk| {
            chunk.iter().enumerate().fold(0u64, |word, (k, value)| word | (!value.same(fill) as u64) << k)
        }));
        Ok(words)
    }
    let words = with_values!(values, x => mask(x, stored_form(fill))?);
    Ok(BitMask { words, len: values.len() })
}

/// A [`Diagnostic`] unless duplicates of this type can be combined by this operator.
pub(crate) fn check_combine(combine: Combine, dtype: DType) -> Result<()> {
    if matches!(combine, Combine::Min | Combine::Max) && dtype.kind() == Kind::Complex {
        return Err(Diagnostic::new(
            Code::E0301,
            "complex numbers have no order, so duplicates have no least or greatest",
        )
        .help("combine them by sum, prod, any, all, first or last"));
    }
    Ok(())
}

/// One value for each group of equal coordinates; group g holds the values from `starts[g]` to the
/// next start.
pub(crate) fn combine(values: &ValueArray, starts: &[usize], combine: Combine) -> Result<ValueArray> {
    fn groups<T: Number>(values: &[T], starts: &[usize], merge: impl Fn(&[T]) -> T) -> Result<Vec<T>> {
        let mut out = reserve(starts.len(), "values")?;
        let ends = starts.iter().skip(1).copied().chain([values.len()]);
        out.extend(starts.iter().zip(ends).map(|(start, end)| match &values[*start..end] {
            // A single entry keeps its value, for every operator.
            [one] => *one,
            several => merge(several),
        }));
        Ok(out)
    }
    fn fold<T: Number>(values: &[T], starts: &[usize], op: impl Fn(T, T) -> T) -> Result<Vec<T>> {
        groups(values, starts, |group| group.iter().copied().reduce(&op).unwrap_or(T::truth(false)))
    }
    fn typed<T: Number>(values: &[T], starts: &[usize], combine: Combine) -> Result<Vec<T>> {
        match combine {
            Combine::Sum => fold(values, starts, T::add),
            Combine::Product => fold(values, starts, T::multiply),
            Combine::Min => fold(values, starts, T::least),
            Combine::Max => fold(values, starts, T::greatest),
            Combine::Any => groups(values, starts, |group| T::truth(group.iter().any(|x| !x.is_zero()))),
            Combine::All => groups(values, starts, |group| T::truth(group.iter().all(|x| !x.is_zero()))),
            Combine::First | Combine::Error => fold(values, starts, |first, _| first),
            Combine::Last => fold(values, starts, |_, last| last),
        }
    }
    check_combine(combine, values.dtype())?;
    // On the bytes 0 and 1, `or` is the maximum and `and` the minimum.
    let for_booleans = match combine {
        Combine::Sum => Combine::Max,
        Combine::Product => Combine::Min,
        other => other,
    };
    Ok(match values {
        ValueArray::Bool(x) => ValueArray::Bool(typed(x, starts, for_booleans)?.into()),
        ValueArray::I8(x) => typed(x, starts, combine)?.into(),
        ValueArray::I16(x) => typed(x, starts, combine)?.into(),
        ValueArray::I32(x) => typed(x, starts, combine)?.into(),
        ValueArray::I64(x) => typed(x, starts, combine)?.into(),
        ValueArray::U8(x) => typed(x, starts, combine)?.into(),
        ValueArray::U16(x) => typed(x, starts, combine)?.into(),
        ValueArray::U32(x) => typed(x, starts, combine)?.into(),
        ValueArray::U64(x) => typed(x, starts, combine)?.into(),
        ValueArray::F32(x) => typed(x, starts, combine)?.into(),
        ValueArray::F64(x) => typed(x, starts, combine)?.into(),
        ValueArray::C64(x) => typed(x, starts, combine)?.into(),
        ValueArray::C128(x) => typed(x, starts, combine)?.into(),
    })
}

/// True if two scalars are the same number, of any types: `1`, `1.0` and `True` are.
pub(crate) fn same_across_types(a: Value, b: Value) -> bool {
    if a.dtype() == b.dtype() {
        return a.same_number(b);
    }
    match (exact_integer(a), exact_integer(b)) {
        (Some(a), Some(b)) => a == b,
        (None, None) => a.as_c128() == b.as_c128() || (a.is_nan() && b.is_nan()),
        _ => false,
    }
}

/// The value of an integral number. Every integer type lies below 1e30; larger floats are compared
/// as floats.
fn exact_integer(value: Value) -> Option<i128> {
    match value {
        Value::U64(x) => Some(x as i128),
        Value::F32(x) => exact_integer(Value::F64(x as f64)),
        Value::F64(x) => (x.trunc() == x && x.abs() < 1e30).then_some(x as i128),
        Value::C64(x) => (x.im == 0.0).then_some(x.re as f64).and_then(|re| exact_integer(Value::F64(re))),
        Value::C128(x) => (x.im == 0.0).then_some(x.re).and_then(|re| exact_integer(Value::F64(re))),
        other => other.as_i64().map(i128::from),
    }
}

/// The starts of groups of equal tuples in sorted columns.
pub(crate) fn group_starts(columns: &[&IndexArray], entries: usize) -> Result<Vec<usize>> {
    let mut starts: Vec<usize> = reserve(entries, "groups of entries")?;
    if columns.is_empty() {
        starts.extend((0..entries).take(1));
        return Ok(starts);
    }
    let mut repeats: Vec<u8> = zeroed(entries, "groups of entries")?;
    super::sort::visit_descents(columns, &mut |entry, _| {
        repeats[entry] = 1;
        true
    });
    starts.extend(repeats.iter().enumerate().filter(|(_, repeats)| **repeats == 0).map(|(entry, _)| entry));
    Ok(starts)
}
