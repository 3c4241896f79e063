//! Reader of the Deep Learning Matrix Collection: `.smtx`, compressed rows in text, without values.
//!
//! First `rows, columns, entries` (with commas or blanks), then the `rows + 1` row offsets, then
//! the column of each entry; all count from 0. Lines that start with `%` or `#` are comments.

use super::fault::{Fault, Parsed, word};
use super::{
    Content, FileData, FileHeader, FileKind, Layout, ReadOptions, Symmetry, ValueField, compressed, options, scan,
};
use crate::ValueArray;
use tamis_ir::Code;
use tamis_ir::diag::Result;

pub(super) fn read(name: &str, text: &[u8], options: &ReadOptions, check: bool) -> Result<FileData> {
    read_text(text, options, check).map_err(|fault| fault.diagnose(name, text))
}

fn read_text(text: &[u8], options: &ReadOptions, check: bool) -> Parsed<FileData> {
    let rest = skip_space(text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text));
    let first = text.len() - rest.len();
    let (line, mut rest) = scan::split_line(rest);
    let [rows, columns, entries] = sizes(line, first)?;
    options::agree(options, &[rows, columns], first)?;
    let offsets_at = text.len() - skip_space(rest).len();
    let expected = rows.saturating_add(1);
    let pos = numbers(text, &mut rest, expected, "row offsets", u64::MAX)?;
    let last = pos.last().copied().unwrap_or(0);
    if pos.first() != Some(&0) || last != entries || pos.windows(2).any(|w| w[0] > w[1]) {
        let message = format!("the row offsets do not rise from 0 to {entries}");
        return Err(Fault::new(Code::E0805, offsets_at, message)
            .help("row offset k is the number of entries in the rows before k"));
    }
    let mut crd = numbers(text, &mut rest, entries, "column indices", columns)?;
    let left = skip_space(rest);
    if !left.is_empty() {
        let message = format!("`{}` follows after the {entries} column indices that the file announces", word(left));
        return Err(Fault::new(Code::E0804, text.len() - left.len(), message)
            .help("correct the number of entries in the first line, or remove what follows"));
    }
    if let Some(second) = compressed::sort_rows(&pos, &mut crd)
        && check
    {
        let message = format!("column {second} occurs twice in one row");
        return Err(Fault::new(Code::E0807, text.len() - 1, message).help("remove one of the two entries"));
    }
    // Duplicates in a pattern are equal: one is kept.
    let (pos, crd) = compressed::without_repetitions(pos, crd);
    let values = ValueArray::Bool(vec![1; crd.len()].into());
    let content = Content::Compressed {
        columns_first: false,
        shape: [rows, columns],
        pos: compressed::narrow(pos, entries),
        crd: compressed::narrow(crd, columns),
        values,
    };
    let header = FileHeader {
        kind: FileKind::Dlmc,
        gzip: false,
        field: ValueField::Pattern,
        symmetry: Symmetry::General,
        layout: Layout::Rows,
        stored: entries,
        comments: Vec::new(),
    };
    Ok(FileData { content, header, fill: None })
}

fn is_space(byte: &u8) -> bool {
    byte.is_ascii_whitespace()
}

/// The text after white space and comments.
fn skip_space(mut text: &[u8]) -> &[u8] {
    loop {
        text = text.trim_ascii_start();
        match text {
            [b'%' | b'#', ..] => text = scan::split_line(text).1,
            _ => return text,
        }
    }
}

fn sizes(line: &[u8], at: usize) -> Parsed<[u64; 3]> {
    let bad = || {
        Fault::new(Code::E0803, at, "the first line does not hold the number of rows, columns and entries")
            .help("the first line should look like `64, 256, 655`")
    };
    let mut sizes = Vec::new();
    for word in line.split(|b| is_space(b) || *b == b',').filter(|w| !w.is_empty()) {
        match scan::unsigned(word) {
            Some((size, [])) if size <= super::entries::MAX_EXTENT && sizes.len() < 3 => sizes.push(size),
            _ => return Err(bad()),
        }
    }
    sizes.try_into().map_err(|_| bad())
}

/// The expected number of integers below `limit`, over any number of lines.
fn numbers(text: &[u8], rest: &mut &[u8], expected: u64, what: &str, limit: u64) -> Parsed<Vec<u64>> {
    // Two bytes of text hold at most one number, regardless of the header.
    let most = rest.len() / 2 + 1;
    let mut numbers = Vec::with_capacity(usize::try_from(expected).unwrap_or(usize::MAX).min(most));
    while (numbers.len() as u64) < expected {
        *rest = skip_space(rest);
        let at = text.len() - rest.len();
        if rest.is_empty() {
            let message = format!("the file ends after {} of {expected} {what}", numbers.len());
            return Err(Fault::new(Code::E0804, at, message)
                .help("fetch the file again if it was cut off, or correct the first line"));
        }
        match scan::unsigned(rest) {
            Some((number, after)) if number < limit && after.first().is_none_or(is_space) => {
                numbers.push(number);
                *rest = after;
            }
            Some((number, after)) if after.first().is_none_or(is_space) => {
                let message = format!("{number} is outside of 0 to {} among the {what}", limit.saturating_sub(1));
                return Err(Fault::new(Code::E0806, at, message).help("indices in this kind of file count from 0"));
            }
            _ => {
                let message = format!("`{}` is not a number among the {what}", word(rest));
                return Err(Fault::new(Code::E0805, at, message).help("write whole numbers separated by blanks"));
            }
        }
    }
    Ok(numbers)
}
