//! File contents: memory-mapped, or decompressed.

use super::gzip_name;
use crate::memory;
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

/// The contents of a file, and a flag for compression.
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
    #[cfg(unix)]
    if is_device(&metadata.file_type(), &file) {
        return Err(Diagnostic::new(Code::E0801, format!("`{name}` is a device, not a file"))
            .in_file(&name)
            .help("copy what it holds to a file first"));
    }
    let bytes = if metadata.is_file() && metadata.len() > 0 {
        // SAFETY: the map is only read. If another process truncates the file meanwhile, the
        // operating system ends this process; every program that maps files accepts that.
        unsafe { Mmap::map(&file) }.map(Bytes::Mapped)
    } else {
        Err(io::ErrorKind::Unsupported.into())
    };
    let bytes = match bytes {
        Ok(mapped) => mapped,
        // Pipes, devices and empty files cannot be mapped.
        Err(_) => {
            let mut bytes = Vec::new();
            read_all(&mut file, u64::MAX, &mut bytes).map_err(|error| match error.kind() {
                io::ErrorKind::OutOfMemory => too_large(&name, &format!("the content of `{name}`")),
                _ => refused(error),
            })?;
            Bytes::Owned(bytes)
        }
    };
    if !is_gzip(&name, &bytes)? {
        return Ok((bytes, false));
    }
    Ok((Bytes::Owned(gunzip(&name, &bytes)?), true))
}

/// True for devices, which have no end or are whole disks; a terminal ends when its user ends it.
#[cfg(unix)]
fn is_device(kind: &std::fs::FileType, file: &File) -> bool {
    use std::io::IsTerminal;
    use std::os::unix::fs::FileTypeExt;
    kind.is_block_device() || (kind.is_char_device() && !file.is_terminal())
}

/// Appends the output of a reader, up to `limit` bytes in total. Memory grows with the actual
/// contents, and [`io::ErrorKind::OutOfMemory`] is returned before memory is exhausted.
pub(super) fn read_all(reader: &mut dyn Read, limit: u64, bytes: &mut Vec<u8>) -> io::Result<()> {
    const STEP: u64 = 1 << 26;
    let out_of_memory = |_| io::Error::from(io::ErrorKind::OutOfMemory);
    while (bytes.len() as u64) < limit {
        let spare = bytes.len().max(1 << 16);
        if bytes.capacity() - bytes.len() < 32 {
            // Growing copies, so the old and the new array coexist.
            if !memory::available(spare.saturating_mul(2)) {
                return Err(io::ErrorKind::OutOfMemory.into());
            }
            bytes.try_reserve(spare).map_err(out_of_memory)?;
        }
        let free = (bytes.capacity() - bytes.len()) as u64;
        let step = free.min(STEP).min(limit - bytes.len() as u64);
        if reader.take(step).read_to_end(bytes)? < step as usize {
            break;
        }
    }
    Ok(())
}

/// The diagnostic for contents that do not fit memory.
#[cold]
pub(super) fn too_large(name: &str, what: &str) -> Diagnostic {
    Diagnostic::new(Code::E0706, format!("{what} does not fit memory"))
        .in_file(name)
        .help("split the file, or use a machine with more memory")
}

/// The contents of bytes in memory, from a file of this name.
pub(super) fn wrap<'a>(name: &str, bytes: &'a [u8]) -> Result<(Bytes<'a>, bool)> {
    if !is_gzip(name, bytes)? {
        return Ok((Bytes::Borrowed(bytes), false));
    }
    Ok((Bytes::Owned(gunzip(name, bytes)?), true))
}

/// True if the bytes are compressed. A name with `.gz` must agree.
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
    match read_all(&mut MultiGzDecoder::new(bytes), u64::MAX, &mut text) {
        Ok(()) => Ok(text),
        Err(error) if error.kind() == io::ErrorKind::OutOfMemory => {
            Err(too_large(name, &format!("the decompressed content of `{name}`")))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_is_read_up_to_the_limit() {
        for limit in [0u64, 1, 31, 32, 65_535, 65_536, 65_537, 1 << 20] {
            let mut bytes = vec![7];
            read_all(&mut io::repeat(1), limit + 1, &mut bytes).unwrap();
            assert_eq!(bytes.len() as u64, limit + 1);
            let mut whole = Vec::new();
            read_all(&mut &bytes[..], u64::MAX, &mut whole).unwrap();
            assert_eq!(whole, bytes);
        }
    }
}
