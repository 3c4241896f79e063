//! Parallel parser of coordinate lines (`index index … value`), directly into columns.
//!
//! The text is split at line ends into chunks. Counting the lines of each chunk gives the offset of
//! its entries, so every chunk writes its own range of the final columns. Memory is bounded by the
//! lines of the file, not by its header.

use super::fault::{Fault, Parsed, count_newlines, printable, word};
use super::scan::{self, Scanned};
use crate::memory;
use crate::{Index, IndexArray};
use bytemuck::Zeroable;
use num_complex::Complex;
use rayon::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering};
use tamis_ir::Code;

/// The largest dimension of a tensor.
pub(super) const MAX_EXTENT: u64 = i64::MAX as u64;

/// The last column of a line.
pub(super) trait ValueColumn: Clone + Send + Sync {
    /// The stored type of one value; its default is all zero bits.
    type Item: Copy + Default + Send + Sync + Zeroable;
    /// The name in messages.
    const NAME: &'static str;
    /// The help for a malformed value.
    const HELP: &'static str;
    /// True if a line has a value.
    const PRESENT: bool = true;
    /// True if values are reals, which a decimal may exceed.
    const REAL: bool = false;

    /// The value at the start of the text.
    fn scan<'a>(&mut self, text: &'a [u8], entry: usize) -> Scanned<'a, Self::Item>;

    /// Called once with the values of a chunk.
    fn finish(&mut self, _values: &mut [Self::Item]) {}
}

macro_rules! simple_field {
    ($name:ident, $item:ty, $real:literal, $word:literal, $help:literal, $scan:expr) => {
        #[derive(Clone, Default)]
        pub(super) struct $name;

        impl ValueColumn for $name {
            type Item = $item;
            const NAME: &'static str = $word;
            const HELP: &'static str = $help;
            const REAL: bool = $real;

            #[inline(always)]
            fn scan<'a>(&mut self, text: &'a [u8], _entry: usize) -> Scanned<'a, $item> {
                $scan(text)
            }
        }
    };
}
simple_field!(
    Real,
    f64,
    true,
    "a real number",
    "write a number such as `1`, `-2.5`, `1e-3`, `inf` or `nan`",
    scan::real
);
simple_field!(
    Integer,
    i64,
    false,
    "an integer of 64 bits",
    "write an integer, or say `real` instead of `integer` in the first line of the file",
    scan::signed
);
simple_field!(
    Unsigned,
    u64,
    false,
    "an unsigned integer of 64 bits",
    "write an unsigned integer, or say `real` instead of `unsigned-integer` in the first line of the file",
    scan::unsigned
);
simple_field!(
    ComplexField,
    Complex<f64>,
    true,
    "a real and an imaginary part",
    "write two numbers such as `1.0 -2.5`",
    complex
);

#[inline(always)]
fn complex(text: &[u8]) -> Scanned<'_, Complex<f64>> {
    let (re, rest) = scan::real(text)?;
    let (im, rest) = scan::real(scan::after_blank(rest)?)?;
    Some((Complex::new(re, im), rest))
}

/// No value: the existence of the entry counts.
#[derive(Clone, Default)]
pub(super) struct Pattern;

impl ValueColumn for Pattern {
    type Item = ();
    const NAME: &'static str = "no value";
    const HELP: &'static str = "leave the value out, or say `real` instead of `pattern` in the first line of the file";
    const PRESENT: bool = false;

    #[inline(always)]
    fn scan<'a>(&mut self, text: &'a [u8], _entry: usize) -> Scanned<'a, ()> {
        Some(((), text))
    }
}

/// Integers up to the first real: each item holds the bits of an `i64` or of an `f64`.
#[derive(Clone, Default)]
pub(super) struct IntOrReal {
    /// The first entry that is not an integer.
    pub real_from: Option<usize>,
}

impl ValueColumn for IntOrReal {
    type Item = u64;
    const NAME: &'static str = "a number";
    const HELP: &'static str = "write a number such as `1`, `-2.5`, `1e-3`, `inf` or `nan`";
    const REAL: bool = true;

    #[inline(always)]
    fn scan<'a>(&mut self, text: &'a [u8], entry: usize) -> Scanned<'a, u64> {
        if self.real_from.is_none() {
            match scan::signed(text) {
                Some((number, rest)) if matches!(rest, [] | [b' ' | b'\t' | b'\r' | b'\n', ..]) => {
                    return Some((number as u64, rest));
                }
                _ => {}
            }
        }
        let (number, rest) = scan::real(text)?;
        self.real_from.get_or_insert(entry);
        Some((number.to_bits(), rest))
    }

    fn finish(&mut self, values: &mut [u64]) {
        if let Some(first) = self.real_from {
            integers_to_reals(&mut values[..first]);
        }
    }
}

/// Rewrites the bits of integers as those of the nearest doubles.
pub(super) fn integers_to_reals(values: &mut [u64]) {
    for value in values {
        *value = (*value as i64 as f64).to_bits();
    }
}

/// The grammar of lines.
#[derive(Clone, Copy)]
pub(super) struct Rules<'a> {
    /// The size of each dimension: indices run from 1 to it.
    pub dims: &'a [u64],
    /// The first byte of comment lines.
    pub comment: u8,
    /// The name of a dimension in messages.
    pub names: fn(usize) -> String,
}

/// All entries of a text, in order.
pub(super) struct ParsedEntries<F: ValueColumn> {
    pub columns: Vec<IndexArray>,
    pub values: Vec<F::Item>,
    /// The state of each chunk after its last line, and its number of entries.
    pub chunks: Vec<(F, usize)>,
}

/// A callback that reports progress.
pub(super) type ProgressFn<'a> = Option<&'a (dyn Fn(u64, u64) + Sync)>;

/// Parses all lines of `text`. Columns are 32 bits wide if every dimension fits, else 64.
pub(super) fn parse<F: ValueColumn + Default>(
    text: &[u8],
    rules: Rules,
    progress: ProgressFn,
) -> Parsed<ParsedEntries<F>> {
    let narrow = rules.dims.iter().all(|d| *d <= 1 << 32);
    match (rules.dims.len(), narrow) {
        (2, true) => parse_as::<F, u32, 2>(text, rules, progress),
        (3, true) => parse_as::<F, u32, 3>(text, rules, progress),
        (_, true) => parse_as::<F, u32, 0>(text, rules, progress),
        (_, false) => parse_as::<F, u64, 0>(text, rules, progress),
    }
}

/// `R` is the number of dimensions if it is a compile-time constant, else 0.
fn parse_as<F, I, const R: usize>(text: &[u8], rules: Rules, progress: ProgressFn) -> Parsed<ParsedEntries<F>>
where
    F: ValueColumn + Default,
    I: Index,
    IndexArray: From<Vec<I>>,
{
    let chunks = cut_lines(text);
    let counts: Vec<usize> = chunks.par_iter().map(|chunk| lines_in(chunk)).collect();
    let total: usize = counts.iter().sum();
    let rank = rules.dims.len();
    let mut columns: Vec<Vec<I>> = (0..rank).map(|_| zeroed_vec(total)).collect::<Parsed<_>>()?;
    let mut values: Vec<F::Item> = zeroed_vec(total)?;

    let mut jobs = Vec::with_capacity(chunks.len());
    {
        let mut rests: Vec<&mut [I]> = columns.iter_mut().map(|c| &mut c[..]).collect();
        let mut values = &mut values[..];
        for (chunk, count) in chunks.iter().zip(&counts) {
            let own: Vec<&mut [I]> =
                rests.iter_mut().map(|rest| rest.split_off_mut(..*count).unwrap_or_default()).collect();
            let own_values = values.split_off_mut(..*count).unwrap_or_default();
            jobs.push((*chunk, own, own_values));
        }
    }
    let done = AtomicU64::new(0);
    let results: Vec<Parsed<(F, usize)>> = jobs
        .into_par_iter()
        .map(|(chunk, mut own, own_values)| {
            let mut field = F::default();
            let count = match <&mut [&mut [I]; R]>::try_from(&mut own[..]) {
                Ok(fixed) if R > 0 => parse_chunk(chunk, rules, &mut fixed[..], own_values, &mut field),
                _ => parse_chunk(chunk, rules, &mut own, own_values, &mut field),
            }
            .map_err(|fault| fault.shifted(chunk.as_ptr().addr() - text.as_ptr().addr()))?;
            field.finish(&mut own_values[..count]);
            if let Some(progress) = progress {
                let now = done.fetch_add(chunk.len() as u64, Ordering::Relaxed) + chunk.len() as u64;
                progress(now, text.len() as u64);
            }
            Ok((field, count))
        })
        .collect();

    let mut chunks = Vec::with_capacity(results.len());
    for result in results {
        chunks.push(result?);
    }
    close_gaps(&mut columns, &mut values, &counts, &chunks);
    Ok(ParsedEntries { columns: columns.into_iter().map(IndexArray::from).collect(), values, chunks })
}

/// Zeroed memory that is cheap to touch for the first time.
pub(super) fn zeroed_vec<T: Zeroable + Copy>(count: usize) -> Parsed<Vec<T>> {
    if size_of::<T>() == 0 {
        return Ok(vec![T::zeroed(); count]);
    }
    memory::zeroed(count, "the entries of the file").map_err(|refusal| Fault::refused(&refusal))
}

/// Compaction: blank lines and comments leave gaps at the end of their chunk, which are closed.
fn close_gaps<I: Copy, F: ValueColumn>(
    columns: &mut [Vec<I>],
    values: &mut Vec<F::Item>,
    counts: &[usize],
    chunks: &[(F, usize)],
) {
    let (mut from, mut to) = (0, 0);
    for (count, (_, used)) in counts.iter().zip(chunks) {
        if from != to {
            for column in columns.iter_mut() {
                column.copy_within(from..from + used, to);
            }
            values.copy_within(from..from + used, to);
        }
        from += count;
        to += used;
    }
    for column in columns {
        column.truncate(to);
    }
    values.truncate(to);
}

/// The number of lines of a chunk, the last of which may have no line end.
fn lines_in(chunk: &[u8]) -> usize {
    count_newlines(chunk) + usize::from(!chunk.ends_with(b"\n"))
}

/// Chunks of whole lines: small enough for load balancing, large enough to amortise a task.
pub(super) fn cut_lines(text: &[u8]) -> Vec<&[u8]> {
    let target = (text.len() / (rayon::current_num_threads() * 8)).clamp(1 << 16, 1 << 21);
    let mut chunks = Vec::new();
    let mut rest = text;
    while rest.len() > target {
        match rest[target..].iter().position(|b| *b == b'\n') {
            Some(end) => {
                let (chunk, after) = rest.split_at(target + end + 1);
                chunks.push(chunk);
                rest = after;
            }
            None => break,
        }
    }
    if !rest.is_empty() {
        chunks.push(rest);
    }
    chunks
}

#[inline(always)]
fn parse_chunk<F: ValueColumn, I: Index>(
    text: &[u8],
    rules: Rules,
    columns: &mut [&mut [I]],
    values: &mut [F::Item],
    field: &mut F,
) -> Parsed<usize> {
    let mut rest = text;
    let mut entry = 0;
    loop {
        if !matches!(rest, [b'0'..=b'9', ..]) {
            rest = scan::skip_comments(rest, rules.comment);
            if rest.is_empty() {
                return Ok(entry);
            }
        }
        for (d, (column, size)) in columns.iter_mut().zip(rules.dims).enumerate() {
            if d > 0 {
                rest = scan::after_blank(rest).ok_or_else(|| no_blank(text, rest, d, rules))?;
            }
            let (index, after) = scan::unsigned(rest).ok_or_else(|| bad_index(text, rest, d, rules))?;
            let index = index.wrapping_sub(1);
            if index >= *size {
                return Err(out_of_range(text, rest, d, rules));
            }
            column[entry] = I::from_u64(index);
            rest = after;
        }
        if F::PRESENT {
            if !columns.is_empty() {
                rest = scan::after_blank(rest).ok_or_else(|| match ends(rest) {
                    true => bad_value::<F>(text, rest),
                    false => no_blank(text, rest, rules.dims.len(), rules),
                })?;
            }
            let (value, after) = field.scan(rest, entry).ok_or_else(|| bad_value::<F>(text, rest))?;
            values[entry] = value;
            rest = after;
        }
        rest = scan::end_of_line(rest).ok_or_else(|| match (F::PRESENT, rest) {
            (true, _) | (false, [b' ' | b'\t', ..]) => too_much::<F>(text, rest),
            (false, _) => no_blank(text, rest, rules.dims.len(), rules),
        })?;
        entry += 1;
    }
}

/// The fault for a decimal number beyond the doubles; the parser must not return infinity.
#[cold]
pub(super) fn too_large(at: usize, found: &[u8]) -> Fault {
    let message = format!("`{}` exceeds the largest number of 64 bits, 1.8e308", word(found));
    Fault::new(Code::E0805, at, message)
        .help("write `inf` (or `-inf`) if infinity is intended")
        .help("or scale the values, so that they fit")
}

fn ends(rest: &[u8]) -> bool {
    matches!(scan::skip_blanks(rest), [] | [b'\n', ..] | [b'\r', b'\n', ..] | [b'\r'])
}

/// The start of the token that `rest` points at (or into).
fn token<'a>(text: &'a [u8], rest: &'a [u8]) -> &'a [u8] {
    if matches!(rest, [b' ' | b'\t', ..]) {
        return scan::skip_blanks(rest);
    }
    let end = text.len() - rest.len();
    let start = text[..end].iter().rposition(|b| b.is_ascii_whitespace()).map_or(0, |p| p + 1);
    &text[start..]
}

/// The fault if no blank follows the digits of an index: the line ends before index `next`, or the
/// previous index continues as another token, such as a float.
#[cold]
fn no_blank(text: &[u8], rest: &[u8], next: usize, rules: Rules) -> Fault {
    let dimension = if ends(rest) { next } else { next.saturating_sub(1) };
    bad_index(text, rest, dimension, rules)
}

#[cold]
fn bad_index(text: &[u8], rest: &[u8], dimension: usize, rules: Rules) -> Fault {
    let name = (rules.names)(dimension);
    let at = text.len() - rest.len();
    if ends(rest) {
        return Fault::new(Code::E0805, at, format!("the line ends where {name} was expected"))
            .help(format!("a line holds {} indices, then the value, separated by blanks", rules.dims.len()));
    }
    let token = token(text, rest);
    let digits = token.strip_prefix(b"-").unwrap_or(token);
    let length = digits.iter().take_while(|b| b.is_ascii_digit()).count();
    if length > 0 && matches!(digits[length..], [] | [b' ' | b'\t' | b'\r' | b'\n', ..]) {
        return out_of_range(text, token, dimension, rules);
    }
    Fault::new(Code::E0805, at, format!("`{}` is not an index, where {name} was expected", word(token)))
        .help("indices are written in decimal digits, and count from 1")
}

#[cold]
fn out_of_range(text: &[u8], rest: &[u8], dimension: usize, rules: Rules) -> Fault {
    let name = (rules.names)(dimension);
    let size = rules.dims[dimension];
    let fault = Fault::new(Code::E0806, text.len() - rest.len(), {
        format!("{name} is {}, which is outside of 1 to {size}", word(rest))
    });
    match word(rest).as_str() {
        "0" => fault.help("indices in this kind of file count from 1: add 1 to each"),
        _ => fault.help("correct the entry, or the size that the file states"),
    }
}

#[cold]
fn bad_value<F: ValueColumn>(text: &[u8], rest: &[u8]) -> Fault {
    let at = text.len() - rest.len();
    let message = if ends(rest) {
        format!("the line ends where {} was expected", F::NAME)
    } else {
        let start = token(text, rest);
        let line = scan::split_line(start).0;
        // A complex value has two parts, either of which may be too large.
        let mut words = line.split(|b| matches!(b, b' ' | b'\t')).filter(|word| !word.is_empty()).take(2);
        if let (true, Some(huge)) = (F::REAL, words.find(|word| scan::overflows(word))) {
            return too_large(at, huge);
        }
        let shown = printable(&line[..line.len().min(40)]);
        let shown = shown.trim_end();
        format!("`{shown}` is not {}", F::NAME)
    };
    Fault::new(Code::E0805, at, message).help(F::HELP)
}

#[cold]
fn too_much<F: ValueColumn>(text: &[u8], rest: &[u8]) -> Fault {
    let at = text.len() - rest.len();
    if matches!(rest, [b' ' | b'\t', ..]) {
        let message = format!("`{}` follows where the line should end", word(scan::skip_blanks(rest)));
        return Fault::new(Code::E0805, at, message).help(if F::PRESENT {
            "write one entry per line"
        } else {
            F::HELP
        });
    }
    bad_value::<F>(text, rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(dims: &[u64]) -> Rules<'_> {
        Rules { dims, comment: b'%', names: |d| format!("index {}", d + 1) }
    }

    #[test]
    fn gaps_between_pieces_are_closed() {
        let mut text = String::new();
        for k in 1..=60_000u64 {
            text += &format!("{} {} {}\n", k, k % 7 + 1, k);
            if k % 1000 == 0 {
                text += "\n  % a comment\n\r\n";
            }
        }
        let entries = parse::<Integer>(text.as_bytes(), rules(&[60_000, 7]), None).unwrap_or_else(|_| panic!());
        assert!(entries.chunks.len() > 3);
        assert_eq!(entries.values, (1..=60_000).collect::<Vec<i64>>());
        assert_eq!(entries.columns[0].to_vec(), (0..60_000).collect::<Vec<u64>>());
    }

    #[test]
    fn wide_dimensions_use_wide_columns() {
        let dims = [1 << 40, 5, 5, 5];
        let entries = parse::<Real>(b"1099511627776 5 1 2 0.5", rules(&dims), None).unwrap_or_else(|_| panic!());
        assert_eq!(entries.columns[0], vec![(1u64 << 40) - 1].into());
        assert_eq!(entries.values, [0.5]);
    }

    #[test]
    fn numbers_become_reals_from_the_first_real_on() {
        let entries = parse::<IntOrReal>(b"1 1\n2 2\n3 2.5\n4 3\n", rules(&[9]), None).unwrap_or_else(|_| panic!());
        let values: Vec<f64> = entries.values.iter().map(|b| f64::from_bits(*b)).collect();
        assert_eq!(values, [1.0, 2.0, 2.5, 3.0]);
        assert_eq!(entries.chunks[0].0.real_from, Some(2));
    }
}
