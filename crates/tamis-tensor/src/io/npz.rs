//! Reader of the `.npz` archives of SciPy and of pydata/sparse, as their `save_npz` writes them.
//!
//! Formats csr, csc, coo (of any rank), gcxs, bsr and dia; the last two become a coordinate list
//! (dia without the zeros that pad its diagonals, as in SciPy), and so does gcxs unless it is a
//! matrix. An archive with one plain array is read as that dense array.
//! that dense array.

use super::npy::{self, Damage, NpyHeader, NpyScalar};
use super::npz_sparse::{self, SparseMembers};
use super::{FileData, FileKind, ReadOptions, options, source};
use crate::ValueArray;
use std::io::{self, Cursor, Read};
use tamis_ir::diag::Result;
use tamis_ir::{Code, DType, Diagnostic, Value};
use zip::ZipArchive;
use zip::result::ZipError;

/// An archive in memory, with its name for diagnostics.
pub(super) struct ArchiveReader<'a> {
    pub name: &'a str,
    zip: ZipArchive<Cursor<&'a [u8]>>,
}

pub(super) fn read(name: &str, bytes: &[u8], options: &ReadOptions, check: bool) -> Result<FileData> {
    let mut archive = ArchiveReader::open(name, bytes)?;
    let mut data = match archive.text("format")? {
        None => archive.plain_array()?,
        Some(format) => {
            let stored = SparseMembers { shape: archive.shape()?, values: archive.array("data")? };
            match format.as_str() {
                "csr" => npz_sparse::compressed(&mut archive, stored, false, check)?,
                "csc" => npz_sparse::compressed(&mut archive, stored, true, check)?,
                "coo" => npz_sparse::coordinates(&mut archive, stored, check)?,
                "gcxs" => npz_sparse::generalized(&mut archive, stored, check)?,
                "bsr" => npz_sparse::blocks(&mut archive, stored, check)?,
                "dia" => npz_sparse::diagonals(&mut archive, stored, check)?,
                other => {
                    let shown: String = other.chars().take(20).collect();
                    let message = format!("the sparse format `{}` is not read", shown.escape_debug());
                    return Err(Diagnostic::new(Code::E0809, message)
                        .in_file(name)
                        .help("convert it first, as in `matrix.tocsr()`"));
                }
            }
        }
    };
    data.fill = archive.fill(data.content.values().dtype())?;
    options::agree(options, data.content.shape(), 0).map_err(|fault| fault.in_file(name))?;
    Ok(data)
}

/// The diagnostic for a malformed archive.
#[cold]
pub(super) fn corrupt(name: &str, message: impl Into<String>) -> Diagnostic {
    Diagnostic::new(Code::E0810, message)
        .in_file(name)
        .help("write the file again with `save_npz` of SciPy or pydata/sparse, or fetch it again if it was damaged on its way")
}

/// The diagnostic for a malformed member.
#[cold]
fn in_member(name: &str, member: &str, damage: Damage) -> Diagnostic {
    let code = if matches!(damage.code, Code::E0809 | Code::E0706) { damage.code } else { Code::E0810 };
    Diagnostic::new(code, format!("the member `{member}` of the archive: {}", damage.message))
        .in_file(name)
        .help(damage.help)
}

impl<'a> ArchiveReader<'a> {
    /// Opens an archive in memory.
    pub(super) fn open(name: &'a str, bytes: &'a [u8]) -> Result<ArchiveReader<'a>> {
        let zip = ZipArchive::new(Cursor::new(bytes))
            .map_err(|error| corrupt(name, format!("this is not an archive that `numpy.savez` writes: {error}")))?;
        Ok(ArchiveReader { name, zip })
    }

    /// The bytes of a required member, up to a maximum length.
    pub(super) fn bytes(&mut self, member: &str, longest: u64) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let read = match self.zip.by_name(member) {
            Ok(mut file) => file.by_ref().take(longest + 1).read_to_end(&mut bytes).map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        read.map_err(|error| corrupt(self.name, format!("the member `{member}` of the archive: {error}")))?;
        if bytes.len() as u64 > longest {
            return Err(corrupt(self.name, format!("the member `{member}` has more than {longest} bytes")));
        }
        Ok(bytes)
    }

    /// The header and the data of a member; `None` if it does not exist.
    fn member(&mut self, member: &str) -> Result<Option<(NpyHeader, Vec<u8>)>> {
        let name = self.name;
        let damaged = |error: &dyn std::fmt::Display| {
            corrupt(name, format!("the member `{member}` of the archive is damaged: {error}"))
        };
        let unreadable = |error: io::Error| match error.kind() {
            io::ErrorKind::OutOfMemory => source::too_large(name, &format!("the member `{member}` of the archive")),
            _ => damaged(&error),
        };
        let mut file = match self.zip.by_name(&format!("{member}.npy")) {
            Ok(file) => file,
            Err(ZipError::FileNotFound) => return Ok(None),
            Err(error) => return Err(damaged(&error)),
        };
        let report = |d: Damage| in_member(name, member, d);
        let mut bytes = Vec::new();
        file.by_ref().take(12).read_to_end(&mut bytes).map_err(unreadable)?;
        let length = npy::header_length(&bytes).map_err(report)? as u64;
        file.by_ref().take(length.saturating_sub(12)).read_to_end(&mut bytes).map_err(unreadable)?;
        let (header, _) = npy::parse_header(&bytes).map_err(report)?;
        let expected = npy::data_length(&header).unwrap_or(u64::MAX);
        let mut data = Vec::new();
        // One byte more than expected: reading to the end verifies the checksum, and detects excess
        // data.
        source::read_all(&mut file, expected.saturating_add(1), &mut data).map_err(unreadable)?;
        Ok(Some((header, data)))
    }

    /// A required array of numbers, with its shape.
    pub(super) fn array(&mut self, member: &str) -> Result<(Vec<u64>, ValueArray)> {
        match self.find_array(member)? {
            Some(found) => Ok(found),
            None => Err(corrupt(self.name, format!("the archive has no member `{member}`"))),
        }
    }

    /// An optional array of numbers, with its shape.
    pub(super) fn find_array(&mut self, member: &str) -> Result<Option<(Vec<u64>, ValueArray)>> {
        let Some((header, data)) = self.member(member)? else { return Ok(None) };
        let values = npy::decode(&header, &data).map_err(|d| in_member(self.name, member, d))?;
        Ok(Some((header.shape, values)))
    }

    /// A required vector of numbers.
    pub(super) fn vector(&mut self, member: &str) -> Result<ValueArray> {
        let (shape, values) = self.array(member)?;
        match shape.len() {
            1 => Ok(values),
            rank => Err(corrupt(self.name, format!("the member `{member}` has rank {rank}, not 1"))),
        }
    }

    /// The member `format`, as bytes or as characters.
    fn text(&mut self, member: &str) -> Result<Option<String>> {
        let Some((header, data)) = self.member(member)? else { return Ok(None) };
        let NpyScalar::Text { unicode, .. } = header.scalar else {
            return Err(corrupt(self.name, format!("the member `{member}` is not text")));
        };
        let letters: Vec<u8> = if unicode {
            let letter = |four: &[u8]| if header.big_endian { four[3] } else { four[0] };
            data.chunks_exact(4).map(letter).collect()
        } else {
            data
        };
        Ok(Some(String::from_utf8_lossy(&letters).trim_end_matches('\0').to_string()))
    }

    fn shape(&mut self) -> Result<Vec<u64>> {
        let values = self.vector("shape")?;
        let bad = || corrupt(self.name, "the member `shape` does not hold the sizes of a tensor");
        if values.len() > tamis_ir::format::MAX_RANK {
            return Err(bad());
        }
        (0..values.len()).map(|k| values.get(k).as_i64().and_then(|n| u64::try_from(n).ok()).ok_or_else(bad)).collect()
    }

    /// The fill, if it is specified and not zero.
    fn fill(&mut self, dtype: DType) -> Result<Option<Value>> {
        let Some((_, given)) = self.find_array("fill_value")? else { return Ok(None) };
        if given.len() != 1 {
            return Err(corrupt(self.name, format!("`fill_value` holds {} numbers, not one", given.len())));
        }
        let fill = given.get(0).cast(dtype);
        Ok((!fill.same_number(Value::zero(dtype))).then_some(fill))
    }

    /// The only array of an archive that is not a sparse matrix.
    fn plain_array(&mut self) -> Result<FileData> {
        let names: Vec<String> =
            self.zip.file_names_raw().map(|n| String::from_utf8_lossy(n).into_owned()).take(2).collect();
        match names.first().and_then(|n| n.strip_suffix(".npy")) {
            Some(member) if names.len() == 1 => {
                let (shape, values) = self.array(member)?;
                Ok(npy::dense(FileKind::ScipyArchive, shape, values))
            }
            _ => Err(corrupt(self.name, "the archive has no member `format`, so it is not a sparse matrix of SciPy")),
        }
    }
}
