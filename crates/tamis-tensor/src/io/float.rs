//! Parser of decimal floating-point numbers, correctly rounded (Clinger; Eisel and Lemire).
//!
//! Short decimals are one exact multiplication or division of doubles (Clinger 1990). Up to
//! nineteen digits with a power of ten between -27 and 27 take one or two 64-bit multiplications
//! with a table of powers of five (Eisel and Lemire, "Number parsing at a gigabyte per second",
//! 2021), which decides the rounding in that range without exception. The caller parses all other
//! numbers.

/// The largest power of ten in range, and of five with a tabulated reciprocal.
const LIMIT: i64 = 27;

/// Exact powers of ten.
const TENS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20,
    1e21, 1e22,
];

/// The 128 leading bits of 5^q for q from -27 to 27: exact (shifted) from 0 on, rounded up below.
static FIVES: [u128; 2 * LIMIT as usize + 1] = fives();

const fn fives() -> [u128; 2 * LIMIT as usize + 1] {
    let mut table = [0u128; 2 * LIMIT as usize + 1];
    let mut power = 1u128;
    let mut q = 0;
    while q <= LIMIT as usize {
        table[LIMIT as usize + q] = power << power.leading_zeros();
        if q > 0 {
            table[LIMIT as usize - q] = reciprocal(power);
        }
        power *= 5;
        q += 1;
    }
    table
}

/// 2^b / power + 1 by long division, where b makes the quotient 128 bits long.
const fn reciprocal(power: u128) -> u128 {
    let bits = 128 - power.leading_zeros();
    let (mut quotient, mut remainder, mut step) = (0u128, 1u128, 0);
    while step < bits + 127 {
        remainder <<= 1;
        quotient <<= 1;
        if remainder >= power {
            remainder -= power;
            quotient |= 1;
        }
        step += 1;
    }
    quotient + 1
}

/// `mantissa * 10^exponent` as the nearest double (ties to even), or `None` out of range.
#[inline(always)]
pub(super) fn from_decimal(mantissa: u64, exponent: i64) -> Option<f64> {
    if mantissa <= 1 << 53 {
        let number = mantissa as f64;
        match exponent {
            0 => return Some(number),
            -22..=-1 => return Some(number / TENS[(-exponent) as usize]),
            1..=22 => return Some(number * TENS[exponent as usize]),
            _ if mantissa == 0 => return Some(0.0),
            _ => {}
        }
    }
    if (-LIMIT..=LIMIT).contains(&exponent) { Some(by_table(mantissa, exponent)) } else { None }
}

/// The mantissa is not zero, the exponent within the table: the result is a normal number.
#[inline]
fn by_table(mantissa: u64, exponent: i64) -> f64 {
    let shift = mantissa.leading_zeros();
    let normal = mantissa << shift;
    let five = FIVES[(exponent + LIMIT) as usize];
    let first = u128::from(normal) * (five >> 64);
    let (mut high, mut low) = ((first >> 64) as u64, first as u64);
    if high & 0x1ff == 0x1ff {
        // A carry into the nine bits below the mantissa is possible: use the low half of the power.
        let second = ((u128::from(normal) * u128::from(five as u64)) >> 64) as u64;
        let (sum, carry) = low.overflowing_add(second);
        low = sum;
        high += u64::from(carry);
    }
    let top = (high >> 63) as u32;
    // 54 bits: the mantissa and one rounding bit.
    let mut kept = high >> (top + 9);
    let power = ((exponent * (152_170 + 65_536)) >> 16) + 63 + i64::from(top) - i64::from(shift);
    // An exact tie is only possible if 5^q (or the mantissa over it) is small; then the even
    // neighbour wins.
    if low <= 1 && (-4..=23).contains(&exponent) && kept & 3 == 1 && kept << (top + 9) == high {
        kept &= !1;
    }
    kept += kept & 1;
    kept >>= 1;
    // A carry out of the mantissa gives the next power of two; the sum of bits below handles it.
    let exponent_bits = (power + 1023 - 1) as u64;
    f64::from_bits((exponent_bits << 52) + kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halfway_cases_and_edges() {
        let mantissas = [
            1u64,
            (1 << 53) - 1,
            1 << 53,
            (1 << 53) + 1,
            (1 << 54) - 1,
            (1 << 54) + 2,
            (1 << 54) + 6,
            u64::MAX,
            u64::MAX - 1,
            u64::MAX - 1023,
            u64::MAX - 1024,
            9_999_999_999_999_999_999,
            1_000_000_000_000_000_000,
        ];
        for mantissa in mantissas {
            for exponent in -30..=30 {
                let expected: f64 = format!("{mantissa}e{exponent}").parse().unwrap();
                if let Some(number) = from_decimal(mantissa, exponent) {
                    assert_eq!(number.to_bits(), expected.to_bits(), "{mantissa}e{exponent}");
                } else {
                    assert!(exponent.abs() > 22);
                }
            }
        }
    }

    #[test]
    fn exact_halves_go_to_even() {
        // (2m+1) * 2^k * 5^q as a decimal: exactly halfway between two doubles.
        for q in 0..=4u32 {
            for odd in [(1u64 << 53) + 1, (1 << 53) + 3, (1 << 54) - 1] {
                let Some(mantissa) = odd.checked_mul(5u64.pow(q)) else { continue };
                let expected: f64 = format!("{mantissa}e-{q}").parse().unwrap();
                assert_eq!(from_decimal(mantissa, -i64::from(q)).unwrap().to_bits(), expected.to_bits());
            }
        }
    }
}
