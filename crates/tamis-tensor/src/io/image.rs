//! Reader of Netpbm images: `.pbm` (black-and-white, 1 is ink) and `.pgm` (grey), binary (P4, P5)
//! and in text (P1, P2).
//!
//! A bitmap is a dense matrix of `bool`, a grey image one of `u8`, or `u16` if its largest value is
//! above 255.

use super::fault::{Fault, Parsed, word};
use super::{FileData, FileKind, ReadOptions, npy, options};
use crate::ValueArray;
use tamis_ir::diag::Result;
use tamis_ir::{Code, DType};

pub(super) fn read(name: &str, bytes: &[u8], options: &ReadOptions) -> Result<FileData> {
    read_bytes(bytes, options).map_err(|fault| fault.diagnose(name, bytes))
}

/// The bytes, and the read offset.
struct NetpbmReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

fn read_bytes(bytes: &[u8], options: &ReadOptions) -> Parsed<FileData> {
    let mut reader = NetpbmReader { bytes, at: 0 };
    let (grey, binary) = match bytes {
        [b'P', b'1', ..] => (false, false),
        [b'P', b'2', ..] => (true, false),
        [b'P', b'4', ..] => (false, true),
        [b'P', b'5', ..] => (true, true),
        [b'P', b'3' | b'6' | b'7' | b'F' | b'f', ..] => {
            return Err(Fault::new(Code::E0809, 0, "images in colour are not read")
                .help("make it grey first, as in `ppmtopgm image.ppm > image.pgm`"));
        }
        _ => {
            return Err(Fault::new(Code::E0803, 0, "an image starts with `P1`, `P2`, `P4` or `P5`")
                .help("check that this is a .pbm or .pgm image, and convert it to one if it is not"));
        }
    };
    reader.at = 2;
    let width = reader.number("width")?;
    let height = reader.number("height")?;
    let shape = vec![height, width];
    options::agree(options, &shape, 0)?;
    let largest = if grey { reader.number("largest grey value")? } else { 1 };
    if largest == 0 || largest > 65_535 {
        let message = format!("the largest grey value is {largest}, which is outside of 1 to 65535");
        return Err(Fault::new(Code::E0803, reader.at, message).help("write 255 there, if the values are bytes"));
    }
    let values = match (binary, grey) {
        (true, false) => reader.bits(width, height)?,
        (true, true) => reader.binary_grey(width, height, largest)?,
        (false, _) => reader.text(width, height, grey, largest)?,
    };
    Ok(npy::dense(FileKind::Image, shape, values))
}

impl<'a> NetpbmReader<'a> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// Skips white space and comments, which extend to the end of their line.
    fn skip_space(&mut self) {
        while let Some(byte) = self.peek() {
            match byte {
                b'#' => {
                    while self.peek().is_some_and(|b| b != b'\n') {
                        self.at += 1;
                    }
                }
                _ if byte.is_ascii_whitespace() => self.at += 1,
                _ => break,
            }
        }
    }

    fn digits(&mut self) -> Option<u64> {
        let (number, rest) = super::scan::unsigned(&self.bytes[self.at..])?;
        self.at = self.bytes.len() - rest.len();
        Some(number)
    }

    /// A number of the header.
    fn number(&mut self, what: &str) -> Parsed<u64> {
        self.skip_space();
        let at = self.at;
        self.digits().filter(|n| *n <= super::entries::MAX_EXTENT).ok_or_else(|| {
            let found = word(&self.bytes[at..]);
            Fault::new(Code::E0803, at, format!("`{found}` is not the {what} of an image"))
                .help("a header looks like `P5 640 480 255`: width, height, largest value")
        })
    }

    /// The data after the header and one byte of white space: exactly `length` bytes.
    fn data(&mut self, length: Option<u64>) -> Parsed<&'a [u8]> {
        if !self.peek().is_some_and(|b| b.is_ascii_whitespace()) {
            return Err(Fault::new(Code::E0803, self.at, "the header of the image does not end in white space")
                .help("a header looks like `P5 640 480 255`, then one line end, then the bytes"));
        }
        let data = &self.bytes[self.at + 1..];
        match length {
            Some(length) if length == data.len() as u64 => Ok(data),
            _ => {
                let needed = length.map_or("more than any file can contain".to_string(), |l| format!("{l} bytes"));
                let message = format!("the image needs {needed}, but {} bytes follow the header", data.len());
                Err(Fault::new(Code::E0804, 0, message)
                    .help("fetch the file again if it was cut off, or correct the size in its header"))
            }
        }
    }

    fn bits(&mut self, width: u64, height: u64) -> Parsed<ValueArray> {
        let row = width.div_ceil(8);
        let data = self.data(row.checked_mul(height))?;
        let mut values = Vec::with_capacity(data.len() * 8);
        if row > 0 {
            for row in data.chunks_exact(row as usize) {
                let bits = row.iter().flat_map(|byte| (0..8).rev().map(move |k| byte >> k & 1));
                values.extend(bits.take(width as usize));
            }
        }
        Ok(ValueArray::Bool(values.into()))
    }

    fn binary_grey(&mut self, width: u64, height: u64, largest: u64) -> Parsed<ValueArray> {
        let size = if largest > 255 { 2 } else { 1 };
        let length = width.checked_mul(height).and_then(|n| n.checked_mul(size));
        let data = self.data(length)?;
        let start = self.at + 1;
        let dtype = if size == 2 { DType::U16 } else { DType::U8 };
        let values = npy::numbers(dtype, data, true).map_err(|refusal| Fault::refused(&refusal))?;
        let above = match &values {
            ValueArray::U8(v) => v.iter().position(|x| u64::from(*x) > largest),
            ValueArray::U16(v) => v.iter().position(|x| u64::from(*x) > largest),
            _ => None,
        };
        match above {
            Some(k) => Err(too_bright(start + k * size as usize, largest)),
            None => Ok(values),
        }
    }

    /// Numbers in text; the digits of a bitmap need no space between them.
    fn text(&mut self, width: u64, height: u64, grey: bool, largest: u64) -> Parsed<ValueArray> {
        let mut values: Vec<u16> = Vec::new();
        let expected = u128::from(width) * u128::from(height);
        loop {
            self.skip_space();
            let at = self.at;
            if at == self.bytes.len() {
                break;
            }
            if values.len() as u128 == expected {
                return Err(Fault::new(Code::E0804, at, format!("the image continues after its {expected} values"))
                    .help("correct the size in the header, or remove what follows"));
            }
            let value = match (grey, self.bytes[at]) {
                (false, digit @ (b'0' | b'1')) => {
                    self.at += 1;
                    u64::from(digit - b'0')
                }
                (false, _) => return Err(super::tns::not_a_number(at, &self.bytes[at..])),
                (true, _) => self.digits().ok_or_else(|| super::tns::not_a_number(at, &self.bytes[at..]))?,
            };
            if value > largest {
                return Err(too_bright(at, largest));
            }
            values.push(value as u16);
        }
        if (values.len() as u128) < expected {
            let message = format!("the image ends after {} of {expected} values", values.len());
            return Err(Fault::new(Code::E0804, self.bytes.len(), message)
                .help("fetch the file again if it was cut off, or correct the size in its header"));
        }
        let bytes = || values.iter().map(|v| *v as u8).collect::<Vec<u8>>();
        Ok(match (grey, largest) {
            (false, _) => ValueArray::Bool(bytes().into()),
            (true, ..=255) => bytes().into(),
            _ => values.into(),
        })
    }
}

fn too_bright(at: usize, largest: u64) -> Fault {
    Fault::new(Code::E0806, at, format!("a value is above {largest}, the largest that the header allows"))
        .help("correct the largest value in the header")
}
