//! Mathematical functions of the runtime library: the definitions of operators, exported to
//! compiled code.
//!
//! The operator table has a function for each operator and type; those that a back end calls
//! ([`Lowering::Call`], and the power of integers) get a symbol `tamis_OPERATOR_TYPE`. Complex
//! numbers are passed as two reals and returned through a pointer, so that no platform's rules for
//! passing structures matter.

use std::sync::LazyLock;
use tamis_ir::DType;
use tamis_ir::algebra::{Elementwise, Evaluation, FloatExpansion, Form, IntExpansion, Lowering, Op, TABLE};

/// The symbol of the function that computes an operator in a type.
pub(crate) fn name(op: Op, dtype: DType) -> String {
    format!("tamis_{}_{dtype}", op.info().name)
}

/// The symbols with their addresses.
pub(super) fn symbols() -> impl Iterator<Item = (&'static str, usize)> {
    static SYMBOLS: LazyLock<Vec<(String, usize)>> = LazyLock::new(|| {
        let mut symbols = Vec::new();
        for row in TABLE {
            let Form::Elementwise(function) = &row.form else { continue };
            let addresses = exported(function);
            symbols.extend(addresses.into_iter().map(|(dtype, address)| (name(row.op, dtype), address)));
        }
        symbols
    });
    SYMBOLS.iter().map(|(name, address)| (name.as_str(), *address))
}

/// The functions of an operator that compiled code calls, by type.
fn exported(function: &Elementwise) -> Vec<(DType, usize)> {
    let mut addresses: Vec<(DType, Option<usize>)> = Vec::new();
    macro_rules! export {
        ($($dtype:ident $field:ident),*) => {
            addresses.extend(match &function.evaluation {
                Evaluation::Unary(f) => [$((DType::$dtype, f.$field.map(|f| f as usize))),*],
                Evaluation::Binary(f) => [$((DType::$dtype, f.$field.map(|f| f as usize))),*],
            })
        };
    }
    // Narrower integers are extended: the low bits of a power are a power of the low bits.
    if function.int == Lowering::Expansion(IntExpansion::Power) {
        export!(I64 i64, U64 u64);
    }
    // A target without fused multiply-adds calls elementary functions, too.
    if matches!(function.float, Lowering::Call { .. } | Lowering::Expansion(FloatExpansion::Elementary(_))) {
        export!(F32 f32, F64 f64);
    }
    if matches!(function.complex, Lowering::Call { .. }) {
        export!(C64 c64, C128 c128);
    }
    addresses.into_iter().filter_map(|(dtype, address)| Some((dtype, address?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every call that the back ends emit has a function.
    #[test]
    fn calls_have_symbols() {
        let names: Vec<&str> = symbols().map(|(name, _)| name).collect();
        for row in TABLE {
            let Form::Elementwise(function) = &row.form else { continue };
            if matches!(function.float, Lowering::Call { .. }) {
                assert!(names.contains(&name(row.op, DType::F32).as_str()), "{}", row.name);
            }
            if matches!(function.complex, Lowering::Call { .. }) {
                assert!(names.contains(&name(row.op, DType::C128).as_str()), "{}", row.name);
            }
            // Integers and booleans are computed in place.
            assert!(!matches!(function.int, Lowering::Call { .. }), "{}", row.name);
            assert!(!matches!(function.bool, Lowering::Call { .. }), "{}", row.name);
        }
        for name in ["tamis_exp_f64", "tamis_pow_i64", "tamis_hypot_f32", "tamis_div_c64"] {
            assert!(names.contains(&name), "{name}");
        }
    }
}
