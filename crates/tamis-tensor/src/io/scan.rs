//! Scanner of numbers in text, zero-copy: eight digits at a time (SWAR).

use super::float;

/// A value and the remaining text.
pub(super) type Scanned<'a, T> = Option<(T, &'a [u8])>;

/// The text after spaces and tabs.
#[inline(always)]
pub(super) fn skip_blanks(mut text: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = text {
        text = rest;
    }
    text
}

/// The text after one or more spaces or tabs; `None` if there is none.
#[inline(always)]
pub(super) fn after_blank(text: &[u8]) -> Option<&[u8]> {
    match text {
        [b' ' | b'\t', rest @ ..] => Some(skip_blanks(rest)),
        _ => None,
    }
}

/// The text after the end of this line; `None` unless only blanks precede it.
#[inline(always)]
pub(super) fn end_of_line(text: &[u8]) -> Option<&[u8]> {
    match text {
        [b'\n', rest @ ..] => Some(rest),
        _ => match skip_blanks(text) {
            [b'\n', rest @ ..] | [b'\r', b'\n', rest @ ..] => Some(rest),
            [b'\r'] | [] => Some(&[]),
            _ => None,
        },
    }
}

/// The current line (without its end), and the text after it.
pub(super) fn split_line(text: &[u8]) -> (&[u8], &[u8]) {
    let (line, rest) = match text.iter().position(|b| *b == b'\n') {
        Some(end) => (&text[..end], &text[end + 1..]),
        None => (text, &text[text.len()..]),
    };
    (line.strip_suffix(b"\r").unwrap_or(line), rest)
}

/// The text from the first data on: blank lines and comments are skipped.
pub(super) fn skip_comments(mut text: &[u8], comment: u8) -> &[u8] {
    loop {
        let start = skip_blanks(text);
        match start {
            [] => return start,
            [b'\r'] => return &start[1..],
            [b'\n', rest @ ..] | [b'\r', b'\n', rest @ ..] => text = rest,
            [first, ..] if *first == comment => text = split_line(start).1,
            _ => return start,
        }
    }
}

/// The digits of a word as numbers 0 to 9 per byte, and the number of leading digits.
#[inline(always)]
fn leading_digits(word: u64) -> (u64, u32) {
    let digits = word ^ 0x3030_3030_3030_3030;
    // A byte above 9 carries into its top bit; the mask keeps the carry within the byte.
    let above = ((digits & 0x7f7f_7f7f_7f7f_7f7f) + 0x7676_7676_7676_7676) | digits;
    (digits, (above & 0x8080_8080_8080_8080).trailing_zeros() / 8)
}

/// The number of eight digits, first byte first.
#[inline(always)]
fn eight_digits(digits: u64) -> u64 {
    let pairs = digits.wrapping_mul(10).wrapping_add(digits >> 8);
    let even = (pairs & 0x0000_00ff_0000_00ff).wrapping_mul(100 + (1_000_000 << 32));
    let odd = ((pairs >> 16) & 0x0000_00ff_0000_00ff).wrapping_mul(1 + (10_000 << 32));
    even.wrapping_add(odd) >> 32
}

const POWERS: [u64; 8] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000];

/// Appends digits to `number`, wrapping around: the caller counts them by the consumed length.
#[inline(always)]
pub(super) fn digits(mut number: u64, mut text: &[u8]) -> (u64, &[u8]) {
    while let Some(bytes) = text.first_chunk::<8>() {
        let (word, count) = leading_digits(u64::from_le_bytes(*bytes));
        if count == 8 {
            number = number.wrapping_mul(100_000_000).wrapping_add(eight_digits(word));
            text = &text[8..];
            continue;
        }
        if count > 0 {
            let shifted = word << (64 - 8 * count);
            number = number.wrapping_mul(POWERS[count as usize & 7]).wrapping_add(eight_digits(shifted));
        }
        return (number, &text[count as usize..]);
    }
    while let [digit @ b'0'..=b'9', rest @ ..] = text {
        number = number.wrapping_mul(10).wrapping_add(u64::from(digit - b'0'));
        text = rest;
    }
    (number, text)
}

/// An unsigned number; `None` without digits, or on overflow.
#[inline(always)]
pub(super) fn unsigned(text: &[u8]) -> Scanned<'_, u64> {
    let (number, rest) = digits(0, text);
    match text.len() - rest.len() {
        1..=19 => Some((number, rest)),
        0 => None,
        _ => unsigned_long(text),
    }
}

/// A number of twenty digits or more: leading zeros, or close to 2^64.
#[cold]
fn unsigned_long(text: &[u8]) -> Scanned<'_, u64> {
    let mut number = 0u64;
    let mut rest = text;
    while let [digit @ b'0'..=b'9', after @ ..] = rest {
        number = number.checked_mul(10)?.checked_add(u64::from(digit - b'0'))?;
        rest = after;
    }
    Some((number, rest))
}

/// A signed number.
#[inline(always)]
pub(super) fn signed(text: &[u8]) -> Scanned<'_, i64> {
    match text {
        [b'-', after @ ..] => {
            let (number, rest) = unsigned(after)?;
            Some((0i64.checked_sub_unsigned(number)?, rest))
        }
        [b'+', after @ ..] => unsigned(after).and_then(|(n, rest)| Some((i64::try_from(n).ok()?, rest))),
        _ => unsigned(text).and_then(|(n, rest)| Some((i64::try_from(n).ok()?, rest))),
    }
}

/// A decimal number, `inf` or `nan`, rounded to the nearest double; `None` if it [`overflows`].
///
/// Exponents may be written with `e`, `E`, or Fortran's `d` and `D`.
#[inline(always)]
pub(super) fn real(text: &[u8]) -> Scanned<'_, f64> {
    let (negative, unsigned_text) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    let (mut mantissa, mut rest) = digits(0, unsigned_text);
    let mut count = unsigned_text.len() - rest.len();
    let mut exponent = 0i64;
    if let [b'.', fraction @ ..] = rest {
        (mantissa, rest) = digits(mantissa, fraction);
        let length = fraction.len() - rest.len();
        count += length;
        exponent = -(length as i64);
    }
    if count == 0 || count > 19 {
        return real_slow(text);
    }
    if let [b'e' | b'E' | b'd' | b'D', after @ ..] = rest {
        let (sign, power_text) = match after {
            [b'-', rest @ ..] => (-1, rest),
            [b'+', rest @ ..] => (1, rest),
            _ => (1, after),
        };
        let (power, after_power) = digits(0, power_text);
        match power_text.len() - after_power.len() {
            1..=9 => exponent += sign * power as i64,
            _ => return real_slow(text),
        }
        rest = after_power;
    }
    match float::from_decimal(mantissa, exponent) {
        Some(number) => Some((if negative { -number } else { number }, rest)),
        None => real_slow(text),
    }
}

/// The slow path: many digits, extreme exponents, `inf`, `nan`.
#[cold]
fn real_slow(text: &[u8]) -> Scanned<'_, f64> {
    // Only an explicit `inf` is infinite; a decimal that rounds to infinity is not accepted.
    rounded(text).filter(|(number, _)| number.is_finite() || !starts_with_digit(text))
}

/// True if the text starts with a decimal number beyond the largest double.
#[cold]
pub(super) fn overflows(text: &[u8]) -> bool {
    let word = |rest: &[u8]| !matches!(rest, [b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'+' | b'-' | b'.', ..]);
    rounded(text).is_some_and(|(number, rest)| number.is_infinite() && starts_with_digit(text) && word(rest))
}

fn starts_with_digit(text: &[u8]) -> bool {
    text.iter().find(|b| !b"+-.".contains(b)).is_some_and(u8::is_ascii_digit)
}

/// The nearest double, or infinity on overflow.
fn rounded(text: &[u8]) -> Scanned<'_, f64> {
    let text = match text {
        [b'+', b'+' | b'-', ..] => return None,
        [b'+', rest @ ..] => rest,
        _ => text,
    };
    let end = text.iter().position(|b| !b.is_ascii_alphanumeric() && !b"+-.".contains(b)).unwrap_or(text.len());
    let token = &text[..end];
    if starts_with_digit(token) && token.iter().any(|b| b"dD".contains(b)) {
        let spelled: Vec<u8> = token.iter().map(|b| if b"dD".contains(b) { b'e' } else { *b }).collect();
        let (number, length) = fast_float2::parse_partial::<f64, _>(&spelled).ok()?;
        return Some((number, &text[length..]));
    }
    let (number, length) = fast_float2::parse_partial::<f64, _>(token).ok()?;
    (length > 0).then(|| (number, &text[length..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsigned_numbers() {
        for n in [0u64, 1, 9, 10, 12345678, 123456789, 1 << 32, u64::MAX / 10, u64::MAX] {
            for tail in ["", " ", "\n", " 12345678901234567890", "x"] {
                let text = format!("{n}{tail}");
                assert_eq!(unsigned(text.as_bytes()), Some((n, tail.as_bytes())), "{text}");
                let text = format!("000{n}{tail}");
                assert_eq!(unsigned(text.as_bytes()), Some((n, tail.as_bytes())), "{text}");
            }
        }
        for bad in ["", "x", "-1", "+1", " 1", "18446744073709551616", "99999999999999999999999", ".5", "\u{b2}"] {
            assert_eq!(unsigned(bad.as_bytes()), None, "{bad}");
        }
        for length in 1..=30usize {
            let text = "7".repeat(length);
            assert_eq!(unsigned(text.as_bytes()).map(|x| x.0), text.parse().ok(), "{text}");
        }
    }

    #[test]
    fn signed_numbers() {
        for n in [0i64, -1, 1, i64::MIN, i64::MAX, -123456789] {
            assert_eq!(signed(n.to_string().as_bytes()), Some((n, &b""[..])));
        }
        assert_eq!(signed(b"+5 x"), Some((5, &b" x"[..])));
        for bad in ["9223372036854775808", "-9223372036854775809", "-", "+", "--1", "+-1", "- 1"] {
            assert_eq!(signed(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn real_numbers() {
        let table = [
            ("0", "0"),
            ("-0", "-0"),
            ("1", "1"),
            ("+1.5", "1.5"),
            ("1.", "1"),
            (".5", "0.5"),
            ("-.5e1", "-5"),
            ("1e5", "1e5"),
            ("1E+05", "1e5"),
            ("1d-05", "1e-5"),
            ("1.25D+300", "1.25e300"),
            ("123456789012345678901234567890", "123456789012345678901234567890"),
            ("4.9e-324", "4.9e-324"),
            ("1e-400", "0"),
            ("9007199254740993", "9007199254740993"),
            ("inf", "inf"),
            ("-Infinity", "-inf"),
            ("1e-99999999999", "0"),
            ("1.7976931348623157e308", "1.7976931348623157e308"),
        ];
        for (text, expected) in table {
            let expected: f64 = expected.parse().unwrap();
            for tail in ["", " ", "\n", "\r\n1 2 3"] {
                let whole = format!("{text}{tail}");
                let (number, rest) = real(whole.as_bytes()).unwrap_or_else(|| panic!("{whole:?}"));
                assert_eq!(number.to_bits(), expected.to_bits(), "{whole:?}");
                assert_eq!(rest, tail.as_bytes(), "{whole:?}");
            }
        }
        assert!(real(b"NaN").unwrap().0.is_nan());
        for huge in ["1e400", "-1e400", "+1D309", "1e99999999999", "1.8e308", &"9".repeat(310)] {
            assert_eq!(real(huge.as_bytes()), None, "{huge}");
            assert!(overflows(huge.as_bytes()) && overflows(format!("{huge},1").as_bytes()), "{huge}");
            assert!(!overflows(format!("{huge}x").as_bytes()), "{huge}");
        }
        assert!(!overflows(b"inf") && !overflows(b"1e308") && !overflows(b"x"));
        for bad in ["", "-", "+", ".", "e5", "x", "+-1", "++1", "--1", "-.e1"] {
            assert_eq!(real(bad.as_bytes()), None, "{bad}");
        }
        // The caller rejects the remaining text.
        for (text, left) in [("1e", "e"), ("1e+", "e+"), ("1.2.3", ".3"), ("1x", "x"), ("1d", "d")] {
            assert_eq!(real(text.as_bytes()).unwrap().1, left.as_bytes(), "{text}");
        }
    }

    #[test]
    fn reals_round_as_the_standard_library_does() {
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        let mut random = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        for k in 0..400_000u32 {
            let bits = random();
            let text = match k % 5 {
                0 => format!("{:e}", f64::from_bits(bits)),
                1 => format!("{}.{}", bits % 1000, random() % 100_000_000_000_000_000),
                2 => format!("{}e-{}", bits, random() % 30),
                3 => format!("{}.{}e{}", bits % 10, random() % 100_000_000_000_000_000, (random() % 60) as i64 - 30),
                _ => format!("{:.17e}", (bits >> 11) as f64 / (1u64 << 53) as f64 * 10.0 - 5.0),
            };
            let Some(expected) = text.parse::<f64>().ok().filter(|x| !x.is_infinite()) else { continue };
            let (number, rest) = real(text.as_bytes()).unwrap();
            assert!(rest.is_empty(), "{text}");
            assert!(number.to_bits() == expected.to_bits() || expected.is_nan() && number.is_nan(), "{text}");
        }
    }

    #[test]
    fn lines() {
        assert_eq!(end_of_line(b" \t\r\nx"), Some(&b"x"[..]));
        assert_eq!(end_of_line(b"\r"), Some(&b""[..]));
        assert_eq!(end_of_line(b" 1\n"), None);
        assert_eq!(end_of_line(b"\rx"), None);
        assert_eq!(skip_comments(b"\n  \r\n% a\n\t%b\n 7", b'%'), b"7");
        assert_eq!(skip_comments(b"% only", b'%'), b"");
        assert_eq!(split_line(b"ab\r\ncd"), (&b"ab"[..], &b"cd"[..]));
    }
}
