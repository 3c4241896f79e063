//! Type-erased moves of values: words of their size.

use crate::memory::{filled, reserve};
use crate::{Index, IndexArray, ValueArray, with_indices, with_values};
use bytemuck::Pod;
use tamis_ir::{Value, diag::Result};

/// Runs `$body` with `$x` bound to the values as a slice of plain words (six types for thirteen),
/// and converts its vector of words to an array of the same value type.
macro_rules! map_words {
    ($values:expr, $x:ident => $body:expr) => {{
        macro_rules! arm {
            ($variant:ident, $buffer:ident, $word:ty) => {{
                let $x: &[$word] = bytemuck::must_cast_slice(&$buffer[..]);
                let words: Vec<$word> = $body;
                $crate::ValueArray::$variant(bytemuck::allocation::cast_vec(words).into())
            }};
        }
        match $values {
            $crate::ValueArray::Bool(b) => arm!(Bool, b, u8),
            $crate::ValueArray::I8(b) => arm!(I8, b, u8),
            $crate::ValueArray::I16(b) => arm!(I16, b, u16),
            $crate::ValueArray::I32(b) => arm!(I32, b, u32),
            $crate::ValueArray::I64(b) => arm!(I64, b, u64),
            $crate::ValueArray::U8(b) => arm!(U8, b, u8),
            $crate::ValueArray::U16(b) => arm!(U16, b, u16),
            $crate::ValueArray::U32(b) => arm!(U32, b, u32),
            $crate::ValueArray::U64(b) => arm!(U64, b, u64),
            $crate::ValueArray::F32(b) => arm!(F32, b, u32),
            $crate::ValueArray::F64(b) => arm!(F64, b, u64),
            // Complex numbers are aligned as their parts are.
            $crate::ValueArray::C64(b) => arm!(C64, b, [u32; 2]),
            $crate::ValueArray::C128(b) => arm!(C128, b, [u64; 2]),
        }
    }};
}
pub(crate) use map_words;

/// Runs `$body` with `$x` bound to the values as a slice of plain words.
macro_rules! with_words {
    ($values:expr, $x:ident => $body:expr) => {{
        macro_rules! arm {
            ($buffer:ident, $word:ty) => {{
                let $x: &[$word] = bytemuck::must_cast_slice(&$buffer[..]);
                $body
            }};
        }
        match $values {
            $crate::ValueArray::Bool(b) => arm!(b, u8),
            $crate::ValueArray::I8(b) => arm!(b, u8),
            $crate::ValueArray::I16(b) => arm!(b, u16),
            $crate::ValueArray::I32(b) => arm!(b, u32),
            $crate::ValueArray::I64(b) => arm!(b, u64),
            $crate::ValueArray::U8(b) => arm!(b, u8),
            $crate::ValueArray::U16(b) => arm!(b, u16),
            $crate::ValueArray::U32(b) => arm!(b, u32),
            $crate::ValueArray::U64(b) => arm!(b, u64),
            $crate::ValueArray::F32(b) => arm!(b, u32),
            $crate::ValueArray::F64(b) => arm!(b, u64),
            $crate::ValueArray::C64(b) => arm!(b, [u32; 2]),
            $crate::ValueArray::C128(b) => arm!(b, [u64; 2]),
        }
    }};
}
pub(crate) use with_words;

/// A scalar as a plain type of its size.
pub(crate) fn stored_form<T: Pod>(value: Value) -> T {
    let one = ValueArray::from_values(&[value], value.dtype());
    with_values!(&one, x => bytemuck::pod_read_unaligned(bytemuck::cast_slice(&x[..])))
}

/// Gathers the values at these positions.
pub(crate) fn gather(values: &ValueArray, places: &IndexArray) -> Result<ValueArray> {
    fn gather<W: Pod, P: Index>(words: &[W], places: &[P]) -> Result<Vec<W>> {
        let mut out = reserve(places.len(), "values")?;
        out.extend(places.iter().map(|p| words[p.to_usize()]));
        Ok(out)
    }
    Ok(map_words!(values, words => with_indices!(places, places => gather(words, places)?)))
}

/// Gathers the values at these positions; zero-copy if these are all of them in order.
pub(crate) fn gather_positions(values: &ValueArray, positions: &[usize]) -> Result<ValueArray> {
    fn gather<W: Pod>(words: &[W], positions: &[usize]) -> Result<Vec<W>> {
        let mut out = reserve(positions.len(), "values")?;
        out.extend(positions.iter().map(|p| words[*p]));
        Ok(out)
    }
    if is_identity(positions, values.len()) {
        return Ok(values.clone());
    }
    Ok(map_words!(values, words => gather(words, positions)?))
}

/// Scatters values to these positions of an array of `count` elements, with the fill elsewhere;
/// zero-copy if nothing moves.
pub(crate) fn scatter(values: &ValueArray, positions: &[usize], count: usize, fill: Value) -> Result<ValueArray> {
    fn scatter<W: Pod>(words: &[W], positions: &[usize], count: usize, fill: Value) -> Result<Vec<W>> {
        let mut out = filled(count, stored_form(fill), "the values of a tensor")?;
        for (word, position) in words.iter().zip(positions) {
            out[*position] = *word;
        }
        Ok(out)
    }
    if is_identity(positions, count) {
        return Ok(values.clone());
    }
    Ok(map_words!(values, words => scatter(words, positions, count, fill)?))
}

/// `count` copies of a value.
pub(crate) fn repeat(value: Value, count: usize) -> Result<ValueArray> {
    let one = ValueArray::from_values(&[value], value.dtype());
    Ok(map_words!(&one, words => match words.first() {
        Some(word) => filled(count, *word, "values")?,
        None => Vec::new(),
    }))
}

fn is_identity(positions: &[usize], count: usize) -> bool {
    positions.len() == count && positions.iter().enumerate().all(|(k, p)| k == *p)
}
