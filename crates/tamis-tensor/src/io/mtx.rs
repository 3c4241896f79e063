//! Reader of Matrix Market files: `.mtx`, coordinate and array.
//!
//! The first line is `%%MatrixMarket matrix FORMAT FIELD SYMMETRY` in any letter case. Comments
//! (`%`), the line of sizes, and the entries follow, each on its own line. Blank lines and comments
//! are permitted anywhere after the first line. `integer` is read as `i64`, `unsigned-integer` as
//! `u64`, `real` (or `double`) as `f64`, `complex` as `c128`, `pattern` as `bool` without values.
//! The object may also be a `vector`, with one size.

use super::entries::{
    self, ComplexField, Integer, MAX_EXTENT, ParsedEntries, Pattern, Real, Rules, Unsigned, ValueColumn,
};
use super::fault::{Fault, Parsed, line_at, word};
use super::repeated::{entry_offset, first_repetition};
use super::symmetry::{MirroredValue, expand};
use super::{Content, FileData, FileHeader, FileKind, Layout, ReadOptions, Symmetry, ValueField, scan};
use crate::{Coordinates, ValueArray};
use num_complex::Complex;
use tamis_ir::Code;
use tamis_ir::diag::{Result, did_you_mean};

/// The banner and the sizes.
struct MtxHeader {
    array: bool,
    field: Word,
    symmetry: Symmetry,
    comments: Vec<String>,
    shape: Vec<u64>,
    /// The number of entries in the size line (for arrays, the size of the shape).
    stated: u128,
    /// The offset of the size line.
    size_line: usize,
}

#[derive(Clone, Copy, PartialEq)]
enum Word {
    Real,
    Integer,
    Unsigned,
    Complex,
    Pattern,
}

pub(super) fn read(name: &str, text: &[u8], options: &ReadOptions, check: bool) -> Result<FileData> {
    read_text(text, options, check).map_err(|fault| fault.diagnose(name, text))
}

fn read_text(text: &[u8], options: &ReadOptions, check: bool) -> Parsed<FileData> {
    let (header, body) = header(text)?;
    super::options::agree(options, &header.shape, header.size_line)?;
    match header.field {
        Word::Real => entries_of::<Real>(text, body, header, options, check),
        Word::Integer => entries_of::<Integer>(text, body, header, options, check),
        Word::Unsigned => entries_of::<Unsigned>(text, body, header, options, check),
        Word::Complex => entries_of::<ComplexField>(text, body, header, options, check),
        Word::Pattern => entries_of::<Pattern>(text, body, header, options, check),
    }
}

/// A vector of values, convertible to a value array.
trait IntoValues: Sized {
    fn into_values(values: Vec<Self>) -> ValueArray;
}

macro_rules! into_values {
    ($($type:ty),*) => {$(
        impl IntoValues for $type {
            fn into_values(values: Vec<$type>) -> ValueArray {
                values.into()
            }
        }
    )*};
}
into_values!(f64, i64, u64, Complex<f64>);

impl IntoValues for () {
    fn into_values(values: Vec<()>) -> ValueArray {
        ValueArray::Bool(vec![1; values.len()].into())
    }
}

fn entries_of<F>(text: &[u8], body: &[u8], header: MtxHeader, options: &ReadOptions, check: bool) -> Parsed<FileData>
where
    F: ValueColumn + Default,
    F::Item: MirroredValue + IntoValues,
{
    let start = text.len() - body.len();
    let dims: &[u64] = if header.array { &[] } else { &header.shape };
    let rules = Rules { dims, comment: b'%', names };
    let ParsedEntries { columns, mut values, .. } =
        entries::parse::<F>(body, rules, options.progress()).map_err(|fault| fault.shifted(start))?;
    let at = |entry: usize| start + entry_offset(body, b'%', entry);
    let stored = values.len() as u64;
    if u128::from(stored) != header.stated {
        return Err(wrong_count(&header, stored, at));
    }
    let shape = header.shape.clone();
    let content = if header.array {
        let values = dense(&header, values, at)?;
        Content::Dense { shape, values: F::Item::into_values(values) }
    } else {
        let mirrored = header.symmetry != Symmetry::General;
        if check && let Some((first, second)) = first_repetition(&columns, &shape, mirrored) {
            return Err(repetition(text, at(first), at(second)));
        }
        let columns = expand::<F>(header.symmetry, columns, &mut values, at)?;
        Content::Coordinates(Coordinates { shape, columns, values: F::Item::into_values(values) })
    };
    let field = match header.field {
        Word::Real => ValueField::Real,
        Word::Integer | Word::Unsigned => ValueField::Integer,
        Word::Complex => ValueField::Complex,
        Word::Pattern => ValueField::Pattern,
    };
    let header = FileHeader {
        kind: FileKind::MatrixMarket,
        gzip: false,
        field,
        symmetry: header.symmetry,
        layout: if header.array { Layout::Dense } else { Layout::Coordinates },
        stored,
        comments: header.comments,
    };
    Ok(FileData { content, header, fill: None })
}

/// The diagnostic for a duplicate entry.
pub(super) fn repetition(text: &[u8], first: usize, second: usize) -> Fault {
    let (line, excerpt) = line_at(text, first);
    let shown: String = excerpt.trim().chars().take(80).collect();
    Fault::new(Code::E0807, second, format!("line {line} has the same coordinates"))
        .note(format!("line {line} is `{shown}`"))
        .help("remove one of the two lines")
        .help("or choose how to combine them: sum, min, max, first, last (`--duplicates sum`)")
}

fn names(dimension: usize) -> String {
    if dimension == 0 { "the row index" } else { "the column index" }.to_string()
}

fn wrong_count(header: &MtxHeader, stored: u64, at: impl Fn(usize) -> usize) -> Fault {
    let stated = header.stated;
    let what = if header.array { "values" } else { "entries" };
    if u128::from(stored) < stated {
        return Fault::new(
            Code::E0804,
            header.size_line,
            format!("the header states {stated} {what}, but the file contains {stored}"),
        )
        .help("fetch the file again if it was cut off, or correct the number in this line");
    }
    let first = usize::try_from(stated).unwrap_or(usize::MAX);
    Fault::new(Code::E0804, at(first), format!("the file continues after the {stated} {what} that its header states"))
        .help(format!("correct the size line to {stored}, or remove the lines from here on"))
}

/// The dense row-major matrix of column-major values (of the lower triangle, if symmetric).
fn dense<T: MirroredValue + Default>(
    header: &MtxHeader,
    values: Vec<T>,
    at: impl Fn(usize) -> usize,
) -> Parsed<Vec<T>> {
    let extent = |d: usize| header.shape.get(d).map_or(1, |n| *n as usize);
    let (rows, cols) = (extent(0), extent(1));
    if header.symmetry == Symmetry::General {
        return Ok(if rows <= 1 || cols <= 1 { values } else { by_rows(&values, rows, cols) });
    }
    let skew = header.symmetry == Symmetry::SkewSymmetric;
    // The number of values was checked: the matrix has about twice as many.
    let mut full = vec![T::default(); rows * cols];
    let mut next = values.iter().copied().enumerate();
    for j in 0..cols {
        for i in j + usize::from(skew)..rows {
            let Some((k, value)) = next.next() else { break };
            if i == j && !value.on_diagonal(header.symmetry) {
                return Err(super::symmetry::on_diagonal(header.symmetry, at(k)));
            }
            full[i * cols + j] = value;
            if i != j {
                full[j * cols + i] = value.mirror(header.symmetry).ok_or_else(|| super::symmetry::no_mirror(at(k)))?;
            }
        }
    }
    Ok(full)
}

/// Transposes column-major to row-major, in square tiles that fit the cache.
pub(super) fn by_rows<T: Copy>(values: &[T], rows: usize, cols: usize) -> Vec<T> {
    const TILE: usize = 32;
    let Some(first) = values.first() else { return Vec::new() };
    let mut out = vec![*first; values.len()];
    for i0 in (0..rows).step_by(TILE) {
        for j0 in (0..cols).step_by(TILE) {
            for i in i0..(i0 + TILE).min(rows) {
                for j in j0..(j0 + TILE).min(cols) {
                    out[i * cols + j] = values[j * rows + i];
                }
            }
        }
    }
    out
}

/// Parses the banner, the comments and the sizes; returns the lines after them.
fn header(text: &[u8]) -> Parsed<(MtxHeader, &[u8])> {
    let start = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let (line, mut rest) = scan::split_line(scan::skip_blanks(start));
    let (vector, array, field, symmetry) = banner(line)?;
    let mut comments = Vec::new();
    loop {
        rest = scan::skip_blanks(rest);
        let (line, after) = scan::split_line(rest);
        match line {
            [b'%', comment @ ..] => super::keep_comment(&mut comments, comment),
            _ if !line.trim_ascii().is_empty() => break,
            _ if after.is_empty() => {
                return Err(Fault::new(Code::E0803, text.len(), "the file ends before the line of sizes")
                    .help("after the comments comes a line such as `3 4 5`: rows, columns, entries"));
            }
            _ => {}
        }
        rest = after;
    }
    let size_line = text.len() - rest.len();
    let (line, body) = scan::split_line(rest);
    let sizes = sizes(line, vector, array, size_line)?;
    let dimensions = if vector { 1 } else { 2 };
    let shape = sizes[..dimensions].to_vec();
    if symmetry != Symmetry::General && shape.iter().any(|n| *n != shape[0]) {
        let message = format!("a {} matrix is square, not {} by {}", symmetry.name(), shape[0], shape[1]);
        return Err(Fault::new(Code::E0803, size_line, message)
            .help("correct the sizes, or say `general` in the first line of the file"));
    }
    let extent = |d: usize| shape.get(d).map_or(1, |n| u128::from(*n));
    let stated = match (array, symmetry) {
        (false, _) => u128::from(sizes[dimensions]),
        (true, Symmetry::General) => extent(0) * extent(1),
        (true, Symmetry::SkewSymmetric) => extent(0) * extent(0).saturating_sub(1) / 2,
        (true, _) => extent(0) * (extent(0) + 1) / 2,
    };
    Ok((MtxHeader { array, field, symmetry, comments, shape, stated, size_line }, body))
}

const EXAMPLE: &str = "the first line should look like `%%MatrixMarket matrix coordinate real general`";

/// A flag for a vector, a flag for an array, the field, the symmetry.
fn banner(line: &[u8]) -> Parsed<(bool, bool, Word, Symmetry)> {
    let bad = |message: String| Fault::new(Code::E0803, 0, message).help(EXAMPLE);
    let lowercase = String::from_utf8_lossy(&line[..line.len().min(1024)]).to_ascii_lowercase();
    let words: Vec<&str> = lowercase.split_ascii_whitespace().take(6).collect();
    if words.first() != Some(&"%%matrixmarket") {
        return Err(bad("the first line does not start with `%%MatrixMarket`".to_string()));
    }
    let choose = |k: usize, what: &str, choices: &[&str]| -> Parsed<usize> {
        let list = choices.join(", ");
        let Some(found) = words.get(k) else {
            return Err(bad(format!("the first line ends where the {what} was expected: one of {list}")));
        };
        if let Some(choice) = choices.iter().position(|c| c == found) {
            return Ok(choice);
        }
        let fault = bad(format!("`{}` is not a {what}; it is one of {list}", word(found.as_bytes())));
        Err(match did_you_mean(found, choices.iter().copied()) {
            Some(close) => fault.help(format!("did you mean `{close}`?")),
            None => fault,
        })
    };
    let vector = choose(1, "kind of object", &["matrix", "vector"])? == 1;
    let array = choose(2, "format", &["coordinate", "array"])? == 1;
    let field = match choose(3, "field", &["real", "double", "integer", "unsigned-integer", "complex", "pattern"])? {
        0 | 1 => Word::Real,
        2 => Word::Integer,
        3 => Word::Unsigned,
        4 => Word::Complex,
        _ => Word::Pattern,
    };
    let symmetry = match words.len() {
        // A vector has no symmetry.
        4 if vector => Symmetry::General,
        _ => Symmetry::ALL[choose(4, "symmetry", &Symmetry::ALL.map(Symmetry::name))?],
    };
    if let Some(more) = words.get(5) {
        return Err(bad(format!("`{}` follows where the first line should end", word(more.as_bytes()))));
    }
    let refused = match (array, field, symmetry) {
        (true, Word::Pattern, _) => "an array has a value at every place, so it cannot be a `pattern`",
        (_, Word::Pattern, Symmetry::SkewSymmetric | Symmetry::Hermitian) => {
            "a `pattern` has no values whose sign could change, so it is `general` or `symmetric`"
        }
        (_, Word::Unsigned, Symmetry::SkewSymmetric) => "unsigned numbers have no sign to change across the diagonal",
        (_, _, s) if vector && s != Symmetry::General => "a vector is `general`",
        _ => return Ok((vector, array, field, symmetry)),
    };
    Err(bad(refused.to_string()))
}

/// The numbers of the size line.
fn sizes(line: &[u8], vector: bool, array: bool, at: usize) -> Parsed<Vec<u64>> {
    let names: &[&str] = match (vector, array) {
        (false, false) => &["rows", "columns", "entries"],
        (false, true) => &["rows", "columns"],
        (true, false) => &["the length", "entries"],
        (true, true) => &["the length"],
    };
    let bad = |message: String| {
        let example = ["3", "3 4", "3 4 5"][names.len() - 1];
        Fault::new(Code::E0803, at, message)
            .help(format!("write {} as whole numbers separated by blanks, as in `{example}`", names.join(", ")))
    };
    let mut sizes = Vec::with_capacity(names.len());
    for found in line.split(u8::is_ascii_whitespace).filter(|w| !w.is_empty()) {
        let Some(name) = names.get(sizes.len()) else {
            return Err(bad(format!("`{}` follows where the line of sizes should end", word(found))));
        };
        match scan::unsigned(found) {
            Some((size, [])) if size <= MAX_EXTENT => sizes.push(size),
            Some((_, [])) => return Err(bad(format!("{} is more than {MAX_EXTENT}", word(found)))),
            _ => return Err(bad(format!("`{}` is not a number of {name}", word(found)))),
        }
    }
    if sizes.len() < names.len() {
        return Err(bad(format!("the line of sizes holds {} numbers, not {}", sizes.len(), names.len())));
    }
    Ok(sizes)
}
