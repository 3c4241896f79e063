//! Reader of FROSTT files: `.tns`, one entry per line, indices from 1, the value last.
//!
//! There is no header: the rank is that of the first line, and the shape is the largest index of
//! each dimension unless [`ReadOptions::shape`] is larger. Values are read as `i64` if all of them
//! are 64-bit integers, otherwise as `f64`. A line with only a value is a tensor of rank 0.
//!
//! MLIR's extended format is read as well: the first line is `RANK ENTRIES`, the second the size of
//! each dimension. A file has this header if its first line is two integers, its second line has as
//! many integers as the first one says, and its third line (if there is one) has one word more. All
//! lines of a plain file have the same number of words, so with three lines or more the formats are
//! distinguishable. With fewer, only `2 0` and a second line of two integers is ambiguous; it is
//! read as the header of an empty matrix, unless [`ReadOptions::shape`] is that of a vector.

use super::entries::{self, IntOrReal, MAX_EXTENT, ParsedEntries, Rules, integers_to_reals};
use super::fault::{Fault, Parsed, word};
use super::mtx::repetition;
use super::repeated::{entry_offset, first_repetition};
use super::{Content, FileData, FileHeader, FileKind, Layout, ReadOptions, Symmetry, ValueField, options, scan};
use crate::{Coordinates, Index, IndexArray, ValueArray, with_indices};
use rayon::prelude::*;
use tamis_ir::Code;
use tamis_ir::diag::Result;
use tamis_ir::format::MAX_RANK;

const COMMENT: u8 = b'#';

/// The header of the extended format.
struct TnsHeader {
    shape: Vec<u64>,
    stated: u64,
    /// Its offset.
    at: usize,
}

pub(super) fn read(name: &str, text: &[u8], options: &ReadOptions, check: bool) -> Result<FileData> {
    read_text(text, options, check).map_err(|fault| fault.diagnose(name, text))
}

fn read_text(text: &[u8], options: &ReadOptions, check: bool) -> Parsed<FileData> {
    let comments = comments(text);
    let (header, body) = header(text, options)?;
    let start = text.len() - body.len();
    if let Some(header) = &header {
        options::agree(options, &header.shape, header.at)?;
    }
    let known = header.as_ref().map(|h| &h.shape).or(options.shape.as_ref());
    let first = scan::skip_comments(body, COMMENT);
    if let (None, true) = (known, first.is_empty()) {
        return Err(Fault::new(Code::E0803, text.len(), "the file holds no entries, so its shape is unknown")
            .help("say the shape when reading it: `--shape 3,4,5` on the command line, `ReadOptions::shape` in Rust")
            .help("or put a header of two lines before the entries: rank and number of entries, then the sizes"));
    }
    let rank = known.map_or_else(|| words(first).saturating_sub(1), |shape| shape.len());
    if rank > MAX_RANK {
        let message = format!("a tensor has at most {MAX_RANK} dimensions, but this line has {rank} indices");
        return Err(Fault::new(Code::E0809, text.len() - first.len(), message)
            .help("combine dimensions before writing the file"));
    }
    let ParsedEntries { columns, mut values, chunks } =
        parse(body, known, rank, options).map_err(|f| f.shifted(start))?;
    let stored = values.len() as u64;
    let at = |entry: usize| start + entry_offset(body, COMMENT, entry);
    if let Some(header) = &header
        && header.stated != stored
    {
        return Err(wrong_count(header, stored, at));
    }
    let shape = known.cloned().unwrap_or_else(|| columns.iter().map(extent).collect());
    if check {
        let found = if rank == 0 && stored > 1 { Some((0, 1)) } else { first_repetition(&columns, &shape, false) };
        if let Some((first, second)) = found {
            return Err(repetition(text, at(first), at(second)));
        }
    }
    let real = chunks.iter().any(|(field, _)| field.real_from.is_some());
    let values = if real {
        let mut next = 0;
        for (field, count) in &chunks {
            if field.real_from.is_none() {
                integers_to_reals(&mut values[next..next + count]);
            }
            next += count;
        }
        ValueArray::F64(bytemuck::allocation::cast_vec::<u64, f64>(values).into())
    } else {
        ValueArray::I64(bytemuck::allocation::cast_vec::<u64, i64>(values).into())
    };
    let header = FileHeader {
        kind: FileKind::Frostt,
        gzip: false,
        field: if real { ValueField::Real } else { ValueField::Integer },
        symmetry: Symmetry::General,
        layout: Layout::Coordinates,
        stored,
        comments,
    };
    Ok(FileData { content: Content::Coordinates(Coordinates { shape, columns, values }), header, fill: None })
}

/// Entries in narrow columns; without a known shape, in wide ones if needed.
fn parse(
    body: &[u8],
    known: Option<&Vec<u64>>,
    rank: usize,
    options: &ReadOptions,
) -> Parsed<ParsedEntries<IntOrReal>> {
    let names = |d: usize| format!("index {}", d + 1);
    let attempt =
        |dims: &[u64]| entries::parse::<IntOrReal>(body, Rules { dims, comment: COMMENT, names }, options.progress());
    let parsed = match known {
        Some(shape) => attempt(shape),
        None => match attempt(&vec![1 << 32; rank]) {
            Err(fault) if fault.code() == Code::E0806 => attempt(&vec![MAX_EXTENT; rank]),
            result => result,
        },
    };
    parsed.map_err(|fault| ragged(fault, body, known, rank))
}

/// The same fault, unless its line is a well-formed entry of another rank: then the rank is the
/// mistake.
#[cold]
fn ragged(fault: Fault, body: &[u8], known: Option<&Vec<u64>>, rank: usize) -> Fault {
    let at = fault.offset().min(body.len());
    let start = body[..at].iter().rposition(|b| *b == b'\n').map_or(0, |p| p + 1);
    let line = scan::split_line(&body[start..]).0;
    let number = |word: &[u8]| matches!(scan::real(word), Some((_, [])));
    let entry = line.split(u8::is_ascii_whitespace).filter(|w| !w.is_empty()).all(number);
    let indices = words(line).saturating_sub(1);
    if !matches!(fault.code(), Code::E0805 | Code::E0806) || !entry || indices == rank {
        return fault;
    }
    let plural = if indices == 1 { "index" } else { "indices" };
    let (because, help) = match known {
        Some(shape) => (format!("the shape {} has {rank}", options::show(shape)), "correct the line, or the shape"),
        None => (format!("the first entry has {rank}"), "write the same number of indices in every line"),
    };
    Fault::new(Code::E0805, at, format!("this line has {indices} {plural}, but {because}")).help(help)
}

/// One past the largest coordinate.
pub(super) fn extent(column: &IndexArray) -> u64 {
    with_indices!(column, c => c.par_iter().with_min_len(1 << 14).max().map_or(0, |x| x.to_u64() + 1))
}

/// The number of words of the line.
fn words(text: &[u8]) -> usize {
    scan::split_line(text).0.split(u8::is_ascii_whitespace).filter(|w| !w.is_empty()).count()
}

/// The integers of the line, if it consists of integers, and at most as many as a tensor has
/// dimensions.
fn whole_numbers(text: &[u8]) -> Option<Vec<u64>> {
    let line = scan::split_line(text).0;
    let mut numbers = Vec::new();
    for word in line.split(u8::is_ascii_whitespace).filter(|w| !w.is_empty()) {
        match scan::unsigned(word) {
            Some((number, [])) if numbers.len() < MAX_RANK => numbers.push(number),
            _ => return None,
        }
    }
    Some(numbers)
}

/// The header of the extended format, if there is one, and the text after it.
fn header<'a>(text: &'a [u8], options: &ReadOptions) -> Parsed<(Option<TnsHeader>, &'a [u8])> {
    let text_start = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let first = scan::skip_comments(text_start, COMMENT);
    let plain = Ok((None, text_start));
    let Some([rank, stated]) = whole_numbers(first).and_then(|n| <[u64; 2]>::try_from(n).ok()) else {
        return plain;
    };
    let after_first = scan::split_line(first).1;
    let second = scan::skip_comments(after_first, COMMENT);
    let (shape, body) = match whole_numbers(second) {
        // A scalar has no sizes: the second line is blank, or missing.
        _ if rank == 0 && words(second) <= 1 => (Vec::new(), after_first),
        Some(shape) if !shape.is_empty() && shape.len() as u64 == rank => (shape, scan::split_line(second).1),
        _ => return plain,
    };
    let third = scan::skip_comments(body, COMMENT);
    if third.is_empty() {
        // All possible plain files of one or two entries of a vector.
        let vector = rank == 2 && (stated > 0 || options.shape.as_ref().is_some_and(|s| s.len() == 1));
        if vector {
            return plain;
        }
    } else if words(third) as u64 != rank + 1 {
        return plain;
    }
    let at = text.len() - first.len();
    if let Some(large) = shape.iter().find(|n| **n > MAX_EXTENT) {
        let message = format!("the size {large} is more than {MAX_EXTENT}");
        return Err(Fault::new(Code::E0803, text.len() - second.len(), message).help("correct the sizes in this line"));
    }
    Ok((Some(TnsHeader { shape, stated, at }), body))
}

fn wrong_count(header: &TnsHeader, stored: u64, at: impl Fn(usize) -> usize) -> Fault {
    let stated = header.stated;
    if stored < stated {
        return Fault::new(
            Code::E0804,
            header.at,
            format!("the header states {stated} entries, but the file contains {stored}"),
        )
        .help("fetch the file again if it was cut off, or correct the second number in this line");
    }
    let first = usize::try_from(stated).unwrap_or(usize::MAX);
    Fault::new(Code::E0804, at(first), format!("the file continues after the {stated} entries that its header states"))
        .help(format!("the first line should state {stored}, or lines from here on should be removed"))
}

/// The comments before the first entry.
fn comments(text: &[u8]) -> Vec<String> {
    let mut comments = Vec::new();
    let mut rest = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    while !rest.is_empty() {
        let (line, after) = scan::split_line(rest);
        match scan::skip_blanks(line) {
            [COMMENT, comment @ ..] => super::keep_comment(&mut comments, comment),
            [] => {}
            _ => break,
        }
        rest = after;
    }
    comments
}

/// The help for a malformed number, shared with the table reader.
pub(super) fn not_a_number(at: usize, found: &[u8]) -> Fault {
    Fault::new(Code::E0805, at, format!("`{}` is not a number", word(found)))
        .help("write numbers such as `1`, `-2.5`, `1e-3`, `inf` or `nan`, separated by blanks")
}
