//! Reader of IDX arrays, the MNIST format: `.idx1-ubyte`, `.idx3-ubyte` and others; dense, of any
//! rank and type.
//!
//! Two zero bytes, a byte for the type, one for the rank, the sizes in 32 bits, the values; all
//! big-endian.

use super::{FileData, FileKind, ReadOptions, npy, options};
use tamis_ir::diag::Result;
use tamis_ir::format::MAX_RANK;
use tamis_ir::{Code, DType, Diagnostic};

pub(super) fn read(name: &str, bytes: &[u8], options: &ReadOptions) -> Result<FileData> {
    let bad = |code: Code, message: String, help: &str| Err(Diagnostic::new(code, message).in_file(name).help(help));
    let [0, 0, code, rank, rest @ ..] = bytes else {
        let help = "check that this is a file of the MNIST kind, and decompressed if its name does not end in .gz";
        return bad(Code::E0803, "the file does not start with two zero bytes, a type and a rank".to_string(), help);
    };
    let dtype = match code {
        0x08 => DType::U8,
        0x09 => DType::I8,
        0x0b => DType::I16,
        0x0c => DType::I32,
        0x0d => DType::F32,
        0x0e => DType::F64,
        other => {
            let help = "the third byte is 8 (u8), 9 (i8), 11 (i16), 12 (i32), 13 (f32) or 14 (f64)";
            return bad(Code::E0803, format!("the type {other} is unknown"), help);
        }
    };
    let rank = usize::from(*rank);
    if rank > MAX_RANK {
        let message = format!("a tensor has at most {MAX_RANK} dimensions, not {rank}");
        return bad(Code::E0809, message, "reshape the array first");
    }
    let Some((sizes, data)) = rest.split_at_checked(4 * rank) else {
        return bad(Code::E0803, "the file ends within its header".to_string(), "fetch the file again");
    };
    let shape: Vec<u64> = sizes.as_chunks::<4>().0.iter().map(|b| u64::from(u32::from_be_bytes(*b))).collect();
    options::agree(options, &shape, 0).map_err(|fault| fault.in_file(name))?;
    let length = shape.iter().try_fold(dtype.size() as u64, |length, n| length.checked_mul(*n));
    if length != Some(data.len() as u64) {
        let needed = length.map_or("more than any file can contain".to_string(), |l| format!("{l} bytes"));
        let message = format!("the array needs {needed}, but {} bytes follow the header", data.len());
        return bad(Code::E0804, message, "fetch the file again if it was cut off");
    }
    let values = npy::numbers(dtype, data, true).map_err(|d| d.in_file(name))?;
    Ok(npy::dense(FileKind::Idx, shape, values))
}
