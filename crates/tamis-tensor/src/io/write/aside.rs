//! Atomic replacement of files: written under a temporary name, then renamed.
//!
//! On Linux the temporary file has no name, so a killed process leaves nothing behind. If the file
//! system does not support that, the file is named `.tamis-XXXX.part` beside the target until it is
//! complete.

use super::Counted;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use tamis_ir::diag::Result;
use tamis_ir::{Code, Diagnostic};

/// A function that writes the contents of a file. It may be called twice, if the first way to
/// create the file fails.
///
/// ```
/// use tamis_tensor::io::{WriteContents, write_file};
/// # let path = std::env::temp_dir().join(format!("tamis-contents-{}.txt", std::process::id()));
/// let body: &WriteContents = &|out| writeln!(out, "1 2 3");
/// assert_eq!(write_file(&path, body)?, 6);
/// # std::fs::remove_file(&path).unwrap();
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
pub type WriteContents<'a> = dyn Fn(&mut dyn Write) -> io::Result<()> + 'a;

/// Writes the output of `body` to a file, and returns its size in bytes. A failure leaves the old
/// file unchanged; links are followed, pipes and devices are written to, and the permissions of an
/// existing file are kept.
///
/// ```
/// use tamis_tensor::io::write_file;
/// let path = std::env::temp_dir().join(format!("tamis-doc-aside-{}.txt", std::process::id()));
/// assert_eq!(write_file(&path, &|out| out.write_all(b"1 2 3\n")).unwrap(), 6);
/// assert!(write_file(&path, &|_| Err(std::io::ErrorKind::StorageFull.into())).is_err());
/// assert_eq!(std::fs::read(&path).unwrap(), b"1 2 3\n");
/// std::fs::remove_file(&path).unwrap();
/// ```
pub fn write_file(path: impl AsRef<Path>, body: &WriteContents) -> Result<u64> {
    let path = path.as_ref();
    let name = path.display().to_string();
    let failed = |error: io::Error| cannot_write(&name, &error);
    if is_descriptor(path) {
        // The file of the descriptor may have contents already, which must not be replaced.
        return emit(File::options().append(true).open(path).map_err(failed)?, body).map(|(_, n)| n).map_err(failed);
    }
    // Renaming onto a link would replace the link, not its target.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    match fs::metadata(&target) {
        Ok(metadata) if metadata.is_dir() => Err(Diagnostic::new(Code::E0811, format!("`{name}` is a directory"))
            .in_file(&name)
            .help("name a file in it")),
        // A pipe or a device must not be replaced by a file.
        Ok(metadata) if !metadata.is_file() => {
            let file = File::options().write(true).open(&target).map_err(failed)?;
            emit(file, body).map(|(_, bytes)| bytes).map_err(failed)
        }
        existing => aside(&target, existing.ok().map(|m| m.permissions()), body).map_err(failed),
    }
}

/// True if a path names an open file of this process, such as standard error.
fn is_descriptor(path: &Path) -> bool {
    let folders = ["/dev/fd", "/proc/self/fd"];
    cfg!(unix)
        && (folders.iter().any(|folder| path.starts_with(folder))
            || path == Path::new("/dev/stdout")
            || path == Path::new("/dev/stderr"))
}

/// Writes through a buffer, and counts bytes.
fn emit(file: File, body: &WriteContents) -> io::Result<(File, u64)> {
    let mut counted = Counted { out: BufWriter::with_capacity(1 << 18, file), bytes: 0 };
    body(&mut counted)?;
    counted.out.flush()?;
    let bytes = counted.bytes;
    Ok((counted.out.into_inner().map_err(io::IntoInnerError::into_error)?, bytes))
}

fn aside(target: &Path, permissions: Option<fs::Permissions>, body: &WriteContents) -> io::Result<u64> {
    let directory = match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_path_buf(),
        _ => PathBuf::from("."),
    };
    #[cfg(target_os = "linux")]
    if let Some(file) = unnamed::create(&directory) {
        let (file, bytes) = finish(file, permissions.clone(), body)?;
        if unnamed::give_name(&file, &directory, target)? {
            return Ok(bytes);
        }
    }
    let mut builder = part();
    #[cfg(unix)]
    if permissions.is_none() {
        use std::os::unix::fs::PermissionsExt;
        // The default permissions; the system applies the user's mask.
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    let (file, path) = builder.tempfile_in(directory)?.into_parts();
    let (_, bytes) = finish(file, permissions, body)?;
    path.persist(target).map_err(|error| error.error)?;
    Ok(bytes)
}

fn part<'a>() -> tempfile::Builder<'a, 'a> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".tamis-").suffix(".part");
    builder
}

/// Writes the whole file, and waits until it is on disk.
fn finish(file: File, permissions: Option<fs::Permissions>, body: &WriteContents) -> io::Result<(File, u64)> {
    let (file, bytes) = emit(file, body)?;
    if let Some(permissions) = permissions {
        file.set_permissions(permissions)?;
    }
    file.sync_all()?;
    Ok((file, bytes))
}

/// Files without a name, which vanish with their process.
#[cfg(target_os = "linux")]
mod unnamed {
    use super::part;
    use std::ffi::CString;
    use std::fs::File;
    use std::io;
    use std::os::fd::AsRawFd;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::OpenOptionsExt;
    use std::path::Path;

    /// A file without a name in a directory; `None` if the file system does not support them, or
    /// could not name them later.
    pub(super) fn create(directory: &Path) -> Option<File> {
        let file = File::options().read(true).write(true).custom_flags(libc::O_TMPFILE).mode(0o666).open(directory);
        file.ok().filter(|file| Path::new(&place(file)).exists())
    }

    /// Renames the complete file to its target; `false` if the system does not support that.
    pub(super) fn give_name(file: &File, directory: &Path, target: &Path) -> io::Result<bool> {
        match link(file, target) {
            Ok(()) => return Ok(true),
            // No system call links onto an existing name: a temporary second name is needed.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(_) => return Ok(false),
        }
        match part().make_in(directory, |path| link(file, path)) {
            Ok(named) => named.into_temp_path().persist(target).map(|()| true).map_err(|error| error.error),
            Err(_) => Ok(false),
        }
    }

    fn place(file: &File) -> String {
        format!("/proc/self/fd/{}", file.as_raw_fd())
    }

    fn link(file: &File, path: &Path) -> io::Result<()> {
        let (from, to) = (CString::new(place(file))?, CString::new(path.as_os_str().as_bytes())?);
        // SAFETY: both texts are null-terminated and live until the call returns; it keeps neither.
        let done = unsafe {
            libc::linkat(libc::AT_FDCWD, from.as_ptr(), libc::AT_FDCWD, to.as_ptr(), libc::AT_SYMLINK_FOLLOW)
        };
        if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

pub(super) fn cannot_write(name: &str, error: &io::Error) -> Diagnostic {
    let help = match error.kind() {
        io::ErrorKind::NotFound => "create the directory first",
        io::ErrorKind::PermissionDenied => "choose a directory that you may write to",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "free some space, or choose another disk",
        _ => "check that the directory exists, may be written to, and has room",
    };
    // The error's own text may name the temporary file, which is meaningless to users.
    let reason = error.kind();
    Diagnostic::new(Code::E0811, format!("`{name}` cannot be written: {reason}"))
        .in_file(name)
        .note("if the file existed before, it is unchanged")
        .help(help)
}
