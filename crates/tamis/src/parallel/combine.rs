//! Privatised reductions (privatization): combines the private results of all chunks by the
//! reduction's operator.
//!
//! Dense results are combined element by element, in the order of the chunks, which fixes rounding
//! for a given number of chunks. Sparse results are combined by a generated element-wise program.

use crate::run::{RunOptions, run};
use num_complex::Complex;
use tamis_backend::RawStorage;
use tamis_ir::algebra::{Op, eval};
use tamis_ir::format::Leaf;
use tamis_ir::kernel::Elem;
use tamis_ir::{DType, Diagnostics, Format, Program, Value};
use tamis_tensor::Tensor;

/// Results of at least this many elements are combined in parallel.
const LONG: usize = 1 << 15;

/// Combines the arrays of all chunks by an operator; none if they are not of this type.
pub(crate) fn combine(elem: Elem, op: Op, chunks: Vec<RawStorage>, threads: usize) -> Option<RawStorage> {
    // Sums, the most frequent reductions, are evaluated natively.
    macro_rules! typed {
        ($rust:ty, $variant:ident, $sum:expr) => {{
            let one = |a: $rust, b: $rust| {
                // A logical operator gives `bool`, which is stored as 1 or 0 of any type.
                match eval(op, DType::$variant, &[Value::$variant(a), Value::$variant(b)]).cast(DType::$variant) {
                    Value::$variant(c) => c,
                    _ => a,
                }
            };
            let sum: fn($rust, $rust) -> $rust = $sum;
            match op {
                Op::Add => fold(chunks, threads, &sum),
                _ => fold(chunks, threads, &one),
            }
        }};
    }
    match elem.dtype() {
        // Stored as bytes that are 0 or 1.
        DType::Bool => {
            let one =
                |a: u8, b: u8| u8::from(eval(op, DType::Bool, &[Value::Bool(a != 0), Value::Bool(b != 0)]).is_truthy());
            fold(chunks, threads, &one)
        }
        DType::I8 => typed!(i8, I8, i8::wrapping_add),
        DType::I16 => typed!(i16, I16, i16::wrapping_add),
        DType::I32 => typed!(i32, I32, i32::wrapping_add),
        DType::I64 => typed!(i64, I64, i64::wrapping_add),
        DType::U8 => typed!(u8, U8, u8::wrapping_add),
        DType::U16 => typed!(u16, U16, u16::wrapping_add),
        DType::U32 => typed!(u32, U32, u32::wrapping_add),
        DType::U64 => typed!(u64, U64, u64::wrapping_add),
        DType::F32 => typed!(f32, F32, |a, b| a + b),
        DType::F64 => typed!(f64, F64, |a, b| a + b),
        DType::C64 => typed!(Complex<f32>, C64, |a, b| a + b),
        DType::C128 => typed!(Complex<f64>, C128, |a, b| a + b),
    }
}

fn fold<T: tamis_backend::runtime::Element + Send + Sync>(
    chunks: Vec<RawStorage>,
    threads: usize,
    one: &(impl Fn(T, T) -> T + Sync),
) -> Option<RawStorage> {
    let chunks: Option<Vec<Vec<T>>> = chunks.into_iter().map(|chunk| chunk.into_vec().ok()).collect();
    let mut chunks = chunks?.into_iter();
    let mut first = chunks.next()?;
    let rest: Vec<Vec<T>> = chunks.collect();
    let workers = if first.len() < LONG { 1 } else { threads.max(1) };
    let step = first.len().div_ceil(workers).max(1);
    let blocks: Vec<std::sync::Mutex<&mut [T]>> = first.chunks_mut(step).map(std::sync::Mutex::new).collect();
    tamis_tensor::threads::share(blocks.len().max(1), &|worker| {
        let Some(mut block) = blocks.get(worker).and_then(|block| block.lock().ok()) else { return };
        for other in &rest {
            let other = other.get(worker * step..).unwrap_or_default();
            block.iter_mut().zip(other).for_each(|(a, b)| *a = one(*a, *b));
        }
    });
    drop(blocks);
    Some(RawStorage::from_vec(first))
}

/// The program that combines two tensors of a format and type by an operator.
pub(crate) fn program(op: Op, format: &Format, dtype: DType) -> Result<Program, Diagnostics> {
    let indices: Vec<String> = (0..format.rank()).map(|k| format!("i{k}")).collect();
    let at = indices.join(",");
    let (a, b) = (format!("A[{at}]"), format!("B[{at}]"));
    let both = match op.info().symbol {
        Some(symbol) => format!("{a} {symbol} {b}"),
        None => format!("{}({a}, {b})", op.info().name),
    };
    let loops = indices.join(", ");
    // A pattern implies its value type.
    let typed = match format.leaf() {
        Leaf::Pattern => String::new(),
        Leaf::Element(_) => format!(", dtype='{dtype}'"),
    };
    Program::parse(&format!(
        "def combine(A, B):\n    C = tensor('{format}'{typed})\n    for {loops} in _:\n        C[{at}] = {both}\n    return C\n"
    ))
}

/// Combines the sparse results of all chunks by such a program.
pub(crate) fn tensors(program: &Program, chunks: Vec<Tensor>, strict: bool) -> Result<Option<Tensor>, Diagnostics> {
    let mut chunks = chunks.into_iter();
    let Some(mut all) = chunks.next() else { return Ok(None) };
    for chunk in chunks {
        let results = run(program, &[("A", &all), ("B", &chunk)], &RunOptions { strict, ..RunOptions::default() })?;
        all = results.into_tensor()?;
    }
    Ok(Some(all))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logical_reductions_of_numbers_give_ones_and_zeros() {
        let chunks = || vec![RawStorage::from_vec(vec![1.0, 1.0, 0.0]), RawStorage::from_vec(vec![1.0, 0.0, 1.0])];
        let combined = |op| combine(Elem::Value(DType::F64), op, chunks(), 1).unwrap().into_vec::<f64>().ok().unwrap();
        assert_eq!(combined(Op::And), [1.0, 0.0, 0.0]);
        assert_eq!(combined(Op::Or), [1.0, 1.0, 1.0]);
    }
}
