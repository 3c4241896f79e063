//! Reader of number tables: `.txt`, one row per line, separated by blanks (or commas); `#` starts a
//! comment line.
//!
//! All rows have the same length; one column gives a vector. Values that are all integers of 64
//! bits are read as `i64`, otherwise all of them are `f64`.

use super::entries::{integers_to_reals, too_large};
use super::fault::{Fault, Parsed};
use super::tns::not_a_number;
use super::{Content, FileData, FileHeader, FileKind, Layout, ReadOptions, Symmetry, ValueField, options, scan};
use crate::ValueArray;
use rayon::prelude::*;
use tamis_ir::Code;
use tamis_ir::diag::Result;

pub(super) fn read(name: &str, text: &[u8], options: &ReadOptions) -> Result<FileData> {
    read_text(text, options).map_err(|fault| fault.diagnose(name, text))
}

/// The rows of one chunk of the text.
struct TextChunk {
    values: Vec<u64>,
    real: bool,
    rows: u64,
    columns: u64,
    /// The offset of its first row.
    start: usize,
}

fn read_text(text: &[u8], options: &ReadOptions) -> Parsed<FileData> {
    let body = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let offset = |chunk: &[u8]| chunk.as_ptr().addr() - text.as_ptr().addr();
    let chunks: Vec<Parsed<TextChunk>> = super::entries::cut_lines(body)
        .into_par_iter()
        .map(|chunk| {
            parse_chunk(chunk).map_err(|fault| fault.shifted(offset(chunk))).map(|mut parsed| {
                parsed.start += offset(chunk);
                parsed
            })
        })
        .collect();
    let chunks: Vec<TextChunk> = chunks.into_iter().collect::<Parsed<_>>()?;
    let filled: Vec<&TextChunk> = chunks.iter().filter(|p| p.rows > 0).collect();
    let columns = filled.first().map_or(1, |p| p.columns);
    if let Some(other) = filled.iter().find(|p| p.columns != columns) {
        return Err(ragged(other.start, other.columns, columns));
    }
    let rows: u64 = chunks.iter().map(|p| p.rows).sum();
    let real = chunks.iter().any(|p| p.real);
    let mut values = Vec::with_capacity(chunks.iter().map(|p| p.values.len()).sum());
    for mut chunk in chunks {
        if real && !chunk.real {
            integers_to_reals(&mut chunk.values);
        }
        values.append(&mut chunk.values);
    }
    let shape = if columns == 1 { vec![rows] } else { vec![rows, columns] };
    options::agree(options, &shape, 0)?;
    let header = FileHeader {
        kind: FileKind::Table,
        gzip: false,
        field: if real { ValueField::Real } else { ValueField::Integer },
        symmetry: Symmetry::General,
        layout: Layout::Dense,
        stored: values.len() as u64,
        comments: Vec::new(),
    };
    let values = if real {
        ValueArray::F64(bytemuck::allocation::cast_vec::<u64, f64>(values).into())
    } else {
        ValueArray::I64(bytemuck::allocation::cast_vec::<u64, i64>(values).into())
    };
    Ok(FileData { content: Content::Dense { shape, values }, header, fill: None })
}

fn ragged(at: usize, found: u64, expected: u64) -> Fault {
    Fault::new(Code::E0805, at, format!("this row has {found} numbers, where the rows before have {expected}"))
        .help("make all rows equally long")
}

fn parse_chunk(text: &[u8]) -> Parsed<TextChunk> {
    let mut chunk = TextChunk { values: Vec::new(), real: false, rows: 0, columns: 0, start: 0 };
    let mut rest = scan::skip_comments(text, b'#');
    chunk.start = text.len() - rest.len();
    while !rest.is_empty() {
        let at = text.len() - rest.len();
        let before = chunk.values.len();
        rest = row(text, rest, &mut chunk)?;
        let columns = (chunk.values.len() - before) as u64;
        if chunk.rows > 0 && columns != chunk.columns {
            return Err(ragged(at, columns, chunk.columns));
        }
        chunk.columns = columns;
        chunk.rows += 1;
        rest = scan::skip_comments(rest, b'#');
    }
    Ok(chunk)
}

/// Parses the numbers of one line; returns the text after it.
fn row<'a>(text: &[u8], mut rest: &'a [u8], chunk: &mut TextChunk) -> Parsed<&'a [u8]> {
    loop {
        let word = rest;
        let integer = if chunk.real { None } else { scan::signed(word).filter(|(_, after)| ends_word(after)) };
        let (bits, after) = match integer {
            Some((number, after)) => (number as u64, after),
            None => match scan::real(word).filter(|(_, after)| ends_word(after)) {
                Some((number, after)) => {
                    if !chunk.real {
                        integers_to_reals(&mut chunk.values);
                        chunk.real = true;
                    }
                    (number.to_bits(), after)
                }
                None if scan::overflows(word) => {
                    let number = word.split(|b| *b == b',').next().unwrap_or(word);
                    return Err(too_large(text.len() - word.len(), number));
                }
                None => return Err(not_a_number(text.len() - word.len(), word)),
            },
        };
        chunk.values.push(bits);
        if let Some(next) = scan::end_of_line(after) {
            return Ok(next);
        }
        rest = scan::skip_blanks(after);
        if let [b',', after_comma @ ..] = rest {
            rest = scan::skip_blanks(after_comma);
        }
    }
}

fn ends_word(rest: &[u8]) -> bool {
    matches!(rest, [] | [b' ' | b'\t' | b'\r' | b'\n' | b',', ..])
}
