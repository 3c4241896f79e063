//! The bytes of a file: mapped into memory, or decompressed.

use super::gzip_name;
use flate2::read::MultiGzDecoder;
use memmap2::Mmap;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Deref;
use std::path::Path;
use tamis_ir::diag::Result;
use tamis_ir::{Code, Diagnostic};

/// All bytes of a file, decompressed.
pub(super) enum Bytes<'a> {
    Mapped(Mmap),
    Owned(Vec<u8>),
    Borrowed(&'a [u8]),
}

impl Deref for Bytes<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Bytes::Mapped(map) => map,
            Bytes::Owned(bytes) => bytes,
            Bytes::Borrowed(bytes) => bytes,
        }
    }
}

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// The content of a file, and whether it was compressed.
pub(super) fn open(path: &Path) -> Result<(Bytes<'static>, bool)> {
    let name = path.display().to_string();
    let refused = |error: io::Error| cannot_read(&name, &error);
    let mut file = File::open(path).map_err(refused)?;
    let metadata = file.metadata().map_err(refused)?;
    if metadata.is_dir() {
        return Err(Diagnostic::new(Code::E0801, format!("`{name}` is a directory"))
            .in_file(&name)
            .help("name one file in it"));
    }
    let bytes = if metadata.is_file() && metadata.len() > 0 {
        // SAFETY: the map is only read. If another process shortens the file meanwhile, the operating system stops
        // us; it is what every program that maps files accepts.
        unsafe { Mmap::map(&file) }.map(Bytes::Mapped)
    } else {
        Err(io::ErrorKind::Unsupported.into())
    };
    let bytes = match bytes {
        Ok(mapped) => mapped,
        // Pipes, devices and empty files cannot be mapped.
        Err(_) => {
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).map_err(refused)?;
            Bytes::Owned(bytes)
        }
    };
    if !is_gzip(&name, &bytes)? {
        return Ok((bytes, false));
    }
    Ok((Bytes::Owned(gunzip(&name, &bytes)?), true))
}

/// The content of bytes in memory that came from a file of this name.
pub(super) fn wrap<'a>(name: &str, bytes: &'a [u8]) -> Result<(Bytes<'a>, bool)> {
    if !is_gzip(name, bytes)? {
        return Ok((Bytes::Borrowed(bytes), false));
    }
    Ok((Bytes::Owned(gunzip(name, bytes)?), true))
}

/// Whether to decompress: the bytes say so. A name that promises it must not be wrong.
fn is_gzip(name: &str, bytes: &[u8]) -> Result<bool> {
    let compressed = bytes.starts_with(&GZIP_MAGIC);
    if !compressed && gzip_name(&name.to_ascii_lowercase()).is_some() {
        return Err(Diagnostic::new(Code::E0812, format!("`{name}` is not compressed by gzip, as its name says"))
            .in_file(name)
            .help("remove .gz from the name, or compress the file with `gzip`"));
    }
    Ok(compressed)
}

fn gunzip(name: &str, bytes: &[u8]) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    match MultiGzDecoder::new(bytes).read_to_end(&mut text) {
        Ok(_) => Ok(text),
        Err(error) if error.kind() == io::ErrorKind::OutOfMemory => {
            Err(Diagnostic::new(Code::E0706, format!("the decompressed content of `{name}` does not fit memory"))
                .in_file(name)
                .help("split the file, or use a machine with more memory"))
        }
        Err(error) => {
            let how = match error.kind() {
                io::ErrorKind::UnexpectedEof => "ends early".to_string(),
                _ => format!("is damaged ({error})"),
            };
            Err(Diagnostic::new(Code::E0812, format!("the gzip stream {how}, after {} decompressed bytes", text.len()))
                .in_file(name)
                .help("fetch the file again, and check it with `gzip -t`"))
        }
    }
}

fn cannot_read(name: &str, error: &io::Error) -> Diagnostic {
    let help = match error.kind() {
        io::ErrorKind::NotFound => "check the spelling of the name, and the directory it is looked for in",
        io::ErrorKind::PermissionDenied => "ask for permission to read it, or copy it to where you have it",
        _ => "check that the name is that of a file that other programs can read",
    };
    Diagnostic::new(Code::E0801, format!("`{name}` cannot be read: {error}")).in_file(name).help(help)
}
