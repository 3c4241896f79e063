//! Reader of NumPy arrays: `.npy`, one dense array of numbers; also the members of `.npz` archives.

use super::{Content, FileData, FileHeader, FileKind, Layout, ReadOptions, Symmetry, ValueField, options};
use crate::{Buffer, ValueArray, memory, with_values};
use bytemuck::{Pod, Zeroable};
use tamis_ir::diag::Result;
use tamis_ir::format::MAX_RANK;
use tamis_ir::{Code, DType, Diagnostic};

/// The header of an array file.
#[derive(Debug, PartialEq)]
pub(super) struct NpyHeader {
    pub scalar: NpyScalar,
    pub big_endian: bool,
    pub fortran: bool,
    pub shape: Vec<u64>,
}

/// The type of an element.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum NpyScalar {
    Number(DType),
    /// A float of 16 bits, read as `f32`.
    Half,
    /// Text of a fixed number of bytes, or of characters of four bytes.
    Text {
        unicode: bool,
        length: usize,
    },
}

impl NpyScalar {
    pub(super) fn size(self) -> usize {
        match self {
            NpyScalar::Number(dtype) => dtype.size(),
            NpyScalar::Half => 2,
            NpyScalar::Text { unicode, length } => length * if unicode { 4 } else { 1 },
        }
    }
}

/// A parse error of an array file, before the name of the file is known.
pub(super) struct Damage {
    pub code: Code,
    pub message: String,
    pub help: String,
}

impl Damage {
    fn header(message: impl Into<String>) -> Damage {
        let help = "write the file again with `numpy.save`".to_string();
        Damage { code: Code::E0803, message: message.into(), help }
    }

    fn unsupported(message: impl Into<String>) -> Damage {
        let help = "convert the array first, as in `a.astype(float)`".to_string();
        Damage { code: Code::E0809, message: message.into(), help }
    }
}

pub(super) fn read(name: &str, bytes: &[u8], options: &ReadOptions) -> Result<FileData> {
    let report = |d: Damage| Diagnostic::new(d.code, d.message).in_file(name).help(d.help);
    let (header, data) = parse_header(bytes).map_err(report)?;
    options::agree(options, &header.shape, 0).map_err(|fault| fault.in_file(name))?;
    let values = decode(&header, data).map_err(report)?;
    Ok(dense(FileKind::NumpyArray, header.shape, values))
}

/// A dense array as the content of a file.
pub(super) fn dense(kind: FileKind, shape: Vec<u64>, values: ValueArray) -> FileData {
    let header = FileHeader {
        kind,
        gzip: false,
        field: ValueField::of(values.dtype()),
        symmetry: Symmetry::General,
        layout: Layout::Dense,
        stored: values.len() as u64,
        comments: Vec::new(),
    };
    FileData { content: Content::Dense { shape, values }, header, fill: None }
}

const MAGIC: &[u8] = b"\x93NUMPY";

/// The length of the prelude and the header text, from the first twelve bytes.
pub(super) fn header_length(bytes: &[u8]) -> std::result::Result<usize, Damage> {
    let cut = || Damage::header("the file ends within the header of the array");
    let rest = bytes.strip_prefix(MAGIC).ok_or_else(|| Damage::header("this is not an array of NumPy"))?;
    let (version, rest) = rest.split_first().ok_or_else(cut)?;
    let rest = rest.get(1..).ok_or_else(cut)?;
    match version {
        1 => rest.first_chunk::<2>().map(|b| 10 + u16::from_le_bytes(*b) as usize).ok_or_else(cut),
        2 | 3 => rest.first_chunk::<4>().map(|b| (u32::from_le_bytes(*b) as usize).saturating_add(12)).ok_or_else(cut),
        _ => Err(Damage::unsupported(format!("version {version} of NumPy's array format is unknown"))),
    }
}

/// The header, and the data after it.
pub(super) fn parse_header(bytes: &[u8]) -> std::result::Result<(NpyHeader, &[u8]), Damage> {
    let length = header_length(bytes)?;
    let start = if bytes.get(6) == Some(&1) { 10 } else { 12 };
    let text =
        bytes.get(start..length).ok_or_else(|| Damage::header("the file ends within the header of the array"))?;
    Ok((parse_dictionary(&String::from_utf8_lossy(text))?, &bytes[length..]))
}

/// `{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }`, the keys in any order.
fn parse_dictionary(text: &str) -> std::result::Result<NpyHeader, Damage> {
    let bad = || Damage::header("the header of the array is malformed");
    let mut rest = text.trim().strip_prefix('{').and_then(|t| t.strip_suffix('}')).ok_or_else(bad)?.trim();
    let (mut descr, mut fortran, mut shape) = (None, None, None);
    while !rest.is_empty() {
        let (key, after) = quoted(rest).ok_or_else(bad)?;
        rest = after.trim_start().strip_prefix(':').ok_or_else(bad)?.trim_start();
        match key {
            "descr" if rest.starts_with('[') => {
                return Err(Damage::unsupported("an array of records is not an array of numbers"));
            }
            "descr" => {
                let (word, after) = quoted(rest).ok_or_else(bad)?;
                (descr, rest) = (Some(word), after);
            }
            "fortran_order" => {
                let (value, after) = match (rest.strip_prefix("True"), rest.strip_prefix("False")) {
                    (Some(after), _) => (true, after),
                    (_, Some(after)) => (false, after),
                    _ => return Err(bad()),
                };
                (fortran, rest) = (Some(value), after);
            }
            "shape" => {
                let inner = rest.strip_prefix('(').ok_or_else(bad)?;
                let (list, after) = inner.split_once(')').ok_or_else(bad)?;
                (shape, rest) = (Some(parse_shape(list).ok_or_else(bad)?), after);
            }
            _ => return Err(bad()),
        }
        rest = rest.trim_start();
        rest = rest.strip_prefix(',').unwrap_or(rest).trim_start();
    }
    let (Some(descr), Some(fortran), Some(shape)) = (descr, fortran, shape) else { return Err(bad()) };
    if shape.len() > MAX_RANK {
        let message = format!("a tensor has at most {MAX_RANK} dimensions, not {}", shape.len());
        return Err(Damage { code: Code::E0809, message, help: "reshape the array first".to_string() });
    }
    let (scalar, big_endian) = parse_descr(descr)?;
    Ok(NpyHeader { scalar, big_endian, fortran, shape })
}

fn quoted(text: &str) -> Option<(&str, &str)> {
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    text[1..].split_once(quote)
}

fn parse_shape(list: &str) -> Option<Vec<u64>> {
    let list = list.trim();
    let list = list.strip_suffix(',').unwrap_or(list);
    if list.is_empty() {
        return Some(Vec::new());
    }
    // Python 2 wrote long integers with an L.
    let number = |word: &str| word.trim().trim_end_matches('L').parse::<u64>().ok().filter(|n| *n <= i64::MAX as u64);
    list.split(',').take(MAX_RANK + 1).map(number).collect()
}

fn parse_descr(descr: &str) -> std::result::Result<(NpyScalar, bool), Damage> {
    let unknown = || Damage::unsupported(format!("arrays of type `{}` are not read", descr.escape_debug()));
    let (big, kind) = match descr.as_bytes().first() {
        Some(b'<' | b'|' | b'=') => (false, &descr[1..]),
        Some(b'>') => (true, &descr[1..]),
        _ => (false, descr),
    };
    let scalar = match kind {
        "b1" | "?" => NpyScalar::Number(DType::Bool),
        "i1" => NpyScalar::Number(DType::I8),
        "i2" => NpyScalar::Number(DType::I16),
        "i4" => NpyScalar::Number(DType::I32),
        "i8" => NpyScalar::Number(DType::I64),
        "u1" => NpyScalar::Number(DType::U8),
        "u2" => NpyScalar::Number(DType::U16),
        "u4" => NpyScalar::Number(DType::U32),
        "u8" => NpyScalar::Number(DType::U64),
        "f2" => NpyScalar::Half,
        "f4" => NpyScalar::Number(DType::F32),
        "f8" => NpyScalar::Number(DType::F64),
        "c8" => NpyScalar::Number(DType::C64),
        "c16" => NpyScalar::Number(DType::C128),
        _ => {
            let length = kind.get(1..).and_then(|n| n.parse::<u16>().ok()).map(usize::from);
            match (kind.as_bytes().first(), length) {
                (Some(b'S' | b'a'), Some(length)) => NpyScalar::Text { unicode: false, length },
                (Some(b'U'), Some(length)) => NpyScalar::Text { unicode: true, length },
                _ => return Err(unknown()),
            }
        }
    };
    Ok((scalar, big))
}

/// The length of the data in bytes; `None` on overflow.
pub(super) fn data_length(header: &NpyHeader) -> Option<u64> {
    let count = header.shape.iter().try_fold(1u64, |count, n| count.checked_mul(*n));
    count?.checked_mul(header.scalar.size() as u64)
}

/// The values, in row-major order of the file.
pub(super) fn decode(header: &NpyHeader, data: &[u8]) -> std::result::Result<ValueArray, Damage> {
    let wrong = |message: String| Damage {
        code: Code::E0804,
        message,
        help: "fetch the file again if it was cut off, or write it again with `numpy.save`".to_string(),
    };
    match data_length(header) {
        Some(length) if length == data.len() as u64 => {}
        Some(length) => {
            return Err(wrong(format!("the array takes {length} bytes, but {} bytes follow its header", data.len())));
        }
        None => return Err(wrong("the array is larger than any file".to_string())),
    }
    let refused = |d: Diagnostic| Damage { code: d.code, message: d.message.clone(), help: d.help.join("; ") };
    let values = match header.scalar {
        NpyScalar::Number(dtype) => numbers(dtype, data, header.big_endian).map_err(refused)?,
        NpyScalar::Half => {
            let halves: Vec<u16> = copied(data, 2, header.big_endian).map_err(refused)?;
            ValueArray::from(halves.into_iter().map(half_to_f32).collect::<Vec<f32>>())
        }
        NpyScalar::Text { .. } => return Err(Damage::unsupported("an array of text is not an array of numbers")),
    };
    Ok(if header.fortran { to_c_order(values, &header.shape) } else { values })
}

/// Numbers of a type from their bytes; the caller has checked the length.
pub(super) fn numbers(dtype: DType, data: &[u8], big_endian: bool) -> Result<ValueArray> {
    macro_rules! as_type {
        ($variant:ident, $part:expr) => {
            ValueArray::$variant(copied(data, $part, big_endian)?.into())
        };
    }
    Ok(match dtype {
        DType::Bool => {
            let mut truths: Vec<u8> = copied(data, 1, big_endian)?;
            truths.iter_mut().for_each(|b| *b = u8::from(*b != 0));
            ValueArray::Bool(truths.into())
        }
        DType::I8 => as_type!(I8, 1),
        DType::I16 => as_type!(I16, 2),
        DType::I32 => as_type!(I32, 4),
        DType::I64 => as_type!(I64, 8),
        DType::U8 => as_type!(U8, 1),
        DType::U16 => as_type!(U16, 2),
        DType::U32 => as_type!(U32, 4),
        DType::U64 => as_type!(U64, 8),
        DType::F32 => as_type!(F32, 4),
        DType::F64 => as_type!(F64, 8),
        DType::C64 => as_type!(C64, 4),
        DType::C128 => as_type!(C128, 8),
    })
}

/// The bytes as values, each of parts of `part` bytes.
fn copied<T: Pod + Zeroable>(data: &[u8], part: usize, big_endian: bool) -> Result<Vec<T>> {
    let mut values: Vec<T> = memory::zeroed(data.len() / size_of::<T>(), "the values of the array")?;
    let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut values);
    let whole = bytes.len();
    bytes.copy_from_slice(&data[..whole]);
    if big_endian != cfg!(target_endian = "big") && part > 1 {
        for bytes in bytes.chunks_exact_mut(part) {
            bytes.reverse();
        }
    }
    Ok(values)
}

/// Converts 16-bit to 32-bit floats.
fn half_to_f32(half: u16) -> f32 {
    let sign = if half >> 15 == 1 { -1.0 } else { 1.0 };
    let (exponent, fraction) = (i32::from(half >> 10 & 0x1f), f32::from(half & 0x3ff));
    match exponent {
        0 => sign * fraction * 2f32.powi(-24),
        31 if fraction == 0.0 => sign * f32::INFINITY,
        31 => f32::NAN,
        _ => sign * (1024.0 + fraction) * 2f32.powi(exponent - 25),
    }
}

/// Converts column-major (Fortran) order to row-major (C) order.
pub(super) fn to_c_order(values: ValueArray, shape: &[u64]) -> ValueArray {
    fn rearranged<T: Copy>(values: &[T], shape: &[usize]) -> Buffer<T> {
        match shape {
            [rows, cols] => super::mtx::by_rows(values, *rows, *cols).into(),
            _ => {
                // The last dimension has the largest stride in the file.
                let mut strides = vec![1usize; shape.len()];
                for d in 1..shape.len() {
                    strides[d] = strides[d - 1] * shape[d - 1];
                }
                let mut index = vec![0usize; shape.len()];
                let mut at = 0;
                let mut out = Vec::with_capacity(values.len());
                for _ in 0..values.len() {
                    out.push(values[at]);
                    for d in (0..shape.len()).rev() {
                        index[d] += 1;
                        at += strides[d];
                        if index[d] < shape[d] {
                            break;
                        }
                        at -= strides[d] * shape[d];
                        index[d] = 0;
                    }
                }
                out.into()
            }
        }
    }
    if shape.len() < 2 || values.is_empty() {
        return values;
    }
    // The values exist, so every dimension fits memory.
    let shape: Vec<usize> = shape.iter().map(|n| *n as usize).collect();
    macro_rules! each {
        ($($variant:ident)*) => {
            match &values {
                $(ValueArray::$variant(v) => ValueArray::$variant(rearranged(v, &shape)),)*
            }
        };
    }
    each!(Bool I8 I16 I32 I64 U8 U16 U32 U64 F32 F64 C64 C128)
}

/// The bytes of a header for an array of this type and shape, padded as NumPy pads it.
pub(super) fn header_bytes(dtype: DType, shape: &[u64], text_length: Option<usize>) -> Vec<u8> {
    let code = match (text_length, dtype) {
        (Some(length), _) => format!("<U{length}"),
        (None, DType::Bool) => "|b1".to_string(),
        (None, DType::I8) => "|i1".to_string(),
        (None, DType::U8) => "|u1".to_string(),
        (None, other) => {
            let letter = match other {
                _ if other.is_signed_int() => 'i',
                _ if other.is_unsigned_int() => 'u',
                DType::F32 | DType::F64 => 'f',
                _ => 'c',
            };
            format!("<{letter}{}", other.size())
        }
    };
    let shape = match shape {
        [n] => format!("({n},)"),
        _ => format!("({})", shape.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")),
    };
    let mut text = format!("{{'descr': '{code}', 'fortran_order': False, 'shape': {shape}, }}");
    let padding = 63 - (text.len() + 10) % 64;
    text.extend(std::iter::repeat_n(' ', padding));
    text.push('\n');
    let mut bytes = MAGIC.to_vec();
    bytes.extend([1, 0]);
    // At most 32 dimensions of 20 digits: far below 65,536.
    bytes.extend((text.len() as u16).to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes
}

/// The values as little-endian bytes.
pub(super) fn value_bytes(values: &ValueArray) -> std::borrow::Cow<'_, [u8]> {
    let bytes: &[u8] = with_values!(values, v => bytemuck::cast_slice(v));
    if cfg!(target_endian = "little") {
        return bytes.into();
    }
    let part = values.dtype().real().size();
    bytes.chunks_exact(part).flat_map(|b| b.iter().rev().copied()).collect::<Vec<u8>>().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dictionaries() {
        let parse = |text: &str| parse_dictionary(text).ok();
        let expected =
            NpyHeader { scalar: NpyScalar::Number(DType::F64), big_endian: false, fortran: false, shape: vec![3, 4] };
        assert_eq!(parse("{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }  \n"), Some(expected));
        let scalar = parse("{\"shape\": (), 'fortran_order':True,'descr':'>c16'}").unwrap();
        assert!(scalar.big_endian && scalar.fortran && scalar.shape.is_empty());
        assert_eq!(parse("{'descr': '|b1', 'fortran_order': False, 'shape': (5L,)}").unwrap().shape, [5]);
        for bad in [
            "",
            "{",
            "{}",
            "{'descr': '<f8'}",
            "{'descr': '<f8', 'fortran_order': Maybe, 'shape': ()}",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (-1,)}",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999999999,)}",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (1,)",
            "{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (1,)}",
            "{'descr': '|O', 'fortran_order': False, 'shape': (1,)}",
            "{'descr': '<é8', 'fortran_order': False, 'shape': (1,)}",
        ] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn headers_round_trip() {
        for dtype in DType::ALL {
            for shape in [vec![], vec![7], vec![0, 3], vec![2, 3, 4]] {
                let bytes = header_bytes(dtype, &shape, None);
                assert_eq!(bytes.len() % 64, 0);
                let Ok((header, rest)) = parse_header(&bytes) else { panic!("{dtype} {shape:?}") };
                assert!(rest.is_empty());
                let expected = NpyHeader { scalar: NpyScalar::Number(dtype), big_endian: false, fortran: false, shape };
                assert_eq!(header, expected);
            }
        }
    }

    #[test]
    fn halves() {
        for (bits, number) in [
            (0x0000, 0.0),
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x7bff, 65504.0),
            (0x0001, 5.960_464_5e-8),
            (0x0400, 6.103_515_6e-5),
            (0x7c00, f32::INFINITY),
        ] {
            assert_eq!(half_to_f32(bits), number, "{bits:x}");
        }
        assert!(half_to_f32(0x7e00).is_nan());
    }

    #[test]
    fn fortran_order() {
        let values: ValueArray = (0..24).collect::<Vec<i32>>().into();
        let out = to_c_order(values, &[2, 3, 4]);
        let mut expected = Vec::new();
        for i in 0..2 {
            for j in 0..3 {
                for k in 0..4 {
                    expected.push(i + 2 * j + 6 * k);
                }
            }
        }
        assert_eq!(out, expected.into());
    }
}
