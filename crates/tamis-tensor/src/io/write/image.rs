//! Writer of Netpbm images: bitmaps as P4, grey as P5.

use super::super::FileKind;
use super::super::tensor::does_not_fit;
use crate::{Tensor, ValueArray};
use std::io::{self, Write};
use std::path::Path;
use tamis_ir::DType;
use tamis_ir::diag::Result;

/// An image ready to be written.
pub(super) struct ImageJob {
    height: u64,
    width: u64,
    values: ValueArray,
}

/// `.pbm` holds bitmaps, `.pgm` grey images; `.pnm` either.
pub(super) fn check_extension(path: &Path, kind: FileKind, tensor: &Tensor) -> Result<()> {
    let name = path.to_string_lossy().to_ascii_lowercase();
    let name = super::gzip_name(&name).unwrap_or(&name);
    match (kind, tensor.dtype()) {
        (FileKind::Image, DType::Bool) if name.ends_with(".pgm") => {
            Err(does_not_fit("a .pgm image is grey, but the values are bool", "write .pbm"))
        }
        (FileKind::Image, DType::U8 | DType::U16) if name.ends_with(".pbm") => {
            let message = format!("a .pbm image is black-and-white, but the values are {}", tensor.dtype());
            Err(does_not_fit(message, "write .pgm"))
        }
        _ => Ok(()),
    }
}

impl ImageJob {
    pub(super) fn new(tensor: &Tensor) -> Result<ImageJob> {
        let (&[height, width], DType::Bool | DType::U8 | DType::U16) = (tensor.shape(), tensor.dtype()) else {
            let (rank, dtype) = (tensor.rank(), tensor.dtype());
            let message = format!("an image is a matrix of bool, u8 or u16, not a tensor of rank {rank} of {dtype}");
            return Err(does_not_fit(message, format!("write {}", super::kinds_for(tensor))));
        };
        Ok(ImageJob { height, width, values: tensor.to_dense()? })
    }

    pub(super) fn emit(&self, out: &mut dyn Write) -> io::Result<()> {
        let ImageJob { height, width, values } = self;
        match values {
            ValueArray::U8(v) => {
                write!(out, "P5\n{width} {height}\n255\n")?;
                out.write_all(v)
            }
            ValueArray::U16(v) => {
                write!(out, "P5\n{width} {height}\n65535\n")?;
                v.chunks(1 << 15)
                    .try_for_each(|part| out.write_all(&part.iter().flat_map(|x| x.to_be_bytes()).collect::<Vec<u8>>()))
            }
            ValueArray::Bool(v) if !v.is_empty() => {
                write!(out, "P4\n{width} {height}\n")?;
                // The values are in memory, so the width fits.
                for row in v.chunks(*width as usize) {
                    let packed =
                        |bits: &[u8]| bits.iter().enumerate().fold(0u8, |byte, (k, b)| byte | (b & 1) << (7 - k));
                    out.write_all(&row.chunks(8).map(packed).collect::<Vec<u8>>())?;
                }
                Ok(())
            }
            _ => write!(out, "P4\n{width} {height}\n"),
        }
    }
}
