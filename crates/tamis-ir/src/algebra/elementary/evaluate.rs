//! Evaluation of elementary functions on scalars: the builder of the reference interpreter.

use super::{BitOp, Elementary, FloatBuilder};
use std::marker::PhantomData;

/// Evaluates an elementary function.
pub(in crate::algebra) fn evaluate<T>(function: Elementary, operands: &[T]) -> T
where
    Evaluator<T>: FloatBuilder<Real = T>,
{
    function.build(&mut Evaluator(PhantomData), operands)
}

/// A builder whose values are numbers.
pub(in crate::algebra) struct Evaluator<T>(PhantomData<T>);

macro_rules! evaluator {
    ($float:ident, $int:ident, $bits:ident, $double:expr) => {
        impl FloatBuilder for Evaluator<$float> {
            type Real = $float;
            type Bits = $int;
            type Truth = bool;

            fn is_double(&self) -> bool {
                $double
            }
            fn real(&mut self, value: f64) -> $float {
                value as $float
            }
            fn int(&mut self, value: i64) -> $int {
                value as $int
            }
            fn add(&mut self, a: &$float, b: &$float) -> $float {
                a + b
            }
            fn sub(&mut self, a: &$float, b: &$float) -> $float {
                a - b
            }
            fn mul(&mut self, a: &$float, b: &$float) -> $float {
                a * b
            }
            fn div(&mut self, a: &$float, b: &$float) -> $float {
                a / b
            }
            fn neg(&mut self, a: &$float) -> $float {
                -a
            }
            fn fma(&mut self, a: &$float, b: &$float, c: &$float) -> $float {
                a.mul_add(*b, *c)
            }
            fn abs(&mut self, a: &$float) -> $float {
                a.abs()
            }
            fn copysign(&mut self, a: &$float, sign: &$float) -> $float {
                a.copysign(*sign)
            }
            fn bits_of(&mut self, a: &$float) -> $int {
                a.to_bits() as $int
            }
            fn float_of(&mut self, a: &$int) -> $float {
                $float::from_bits(*a as $bits)
            }
            fn bits(&mut self, op: BitOp, a: &$int, b: &$int) -> $int {
                match op {
                    BitOp::Add => a.wrapping_add(*b),
                    BitOp::Sub => a.wrapping_sub(*b),
                    BitOp::And => a & b,
                    BitOp::Xor => a ^ b,
                    BitOp::ShiftLeft => a.wrapping_shl(*b as u32),
                    BitOp::ShiftRight => a.wrapping_shr(*b as u32),
                }
            }
            fn less(&mut self, a: &$float, b: &$float) -> bool {
                a < b
            }
            fn equal(&mut self, a: &$float, b: &$float) -> bool {
                a == b
            }
            fn is_nonzero(&mut self, a: &$int) -> bool {
                *a != 0
            }
            fn select(&mut self, condition: &bool, a: &$float, b: &$float) -> $float {
                if *condition { *a } else { *b }
            }
            fn guarded(&mut self, condition: &bool, value: &$float, function: Elementary, x: &$float) -> $float {
                match function {
                    _ if *condition => *value,
                    Elementary::Sin => x.sin(),
                    Elementary::Cos => x.cos(),
                    Elementary::Tan => x.tan(),
                    // The others need no guard.
                    _ => *value,
                }
            }
        }
    };
}

evaluator!(f64, i64, u64, true);
evaluator!(f32, i32, u32, false);
