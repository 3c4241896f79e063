//! Disk cache: object files in a folder that several processes share.
//!
//! A writer creates a temporary file and renames it, so that readers see the whole file or none. A
//! file holds its key in full, and a checksum; a reader ignores files that are truncated, corrupted
//! or of another kernel. When the files exceed the limit, the least recently used ones are evicted.

use super::key::CacheKey;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hasher};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

/// Magic number at the start of a file.
const MAGIC: &[u8; 8] = b"tamis.1\n";

/// Magic, length of the key, length of the object, checksum.
const HEADER: usize = 8 + 8 + 8 + 16;

/// Maximum bytes of a file; the cache ignores larger ones.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// Age from which a temporary file counts as abandoned by a process that died.
const ABANDONED: Duration = Duration::from_secs(3600);

pub(super) struct DiskCache {
    folder: PathBuf,
    limit: u64,
    /// Bytes written since the last scan of the folder.
    written: AtomicU64,
}

/// A 128-bit checksum: two hashes with different seeds.
fn checksum(parts: &[&[u8]]) -> [u8; 16] {
    let mut sum = [0; 16];
    for half in 0..2u8 {
        let mut hasher = DefaultHasher::new();
        hasher.write_u8(half);
        for part in parts {
            hasher.write_usize(part.len());
            hasher.write(part);
        }
        sum[8 * usize::from(half)..][..8].copy_from_slice(&hasher.finish().to_le_bytes());
    }
    sum
}

impl DiskCache {
    /// Opens the folder, and creates it if necessary. `None` if it is not writable, or other users
    /// can write to it: machine code is run from it.
    pub(super) fn open(folder: PathBuf, limit: u64) -> Option<DiskCache> {
        make_private(&folder)?;
        let disk = DiskCache { folder, limit, written: AtomicU64::new(0) };
        let probe = disk.temporary_name("probe");
        File::create_new(&probe).ok()?;
        let _ = fs::remove_file(&probe);
        Some(disk)
    }

    fn path(&self, key: &CacheKey) -> PathBuf {
        let name: String = checksum(&[key.bytes()]).iter().map(|byte| format!("{byte:02x}")).collect();
        self.folder.join(name + ".object")
    }

    /// A temporary file name that no other writer uses.
    fn temporary_name(&self, name: &str) -> PathBuf {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        self.folder.join(format!("{name}.{}.{number}.tmp", std::process::id()))
    }

    /// Reads the object with this key, if its file is present and intact.
    pub(super) fn read(&self, key: &CacheKey) -> Option<Vec<u8>> {
        let file = File::open(self.path(key)).ok()?;
        let size = file.metadata().ok().filter(|data| data.is_file() && data.len() <= MAX_FILE_BYTES)?.len();
        let mut bytes = Vec::new();
        (&file).take(size).read_to_end(&mut bytes).ok()?;
        let (header, rest) = bytes.split_at_checked(HEADER)?;
        let number = |at: usize| Some(u64::from_le_bytes(header.get(at..at + 8)?.try_into().ok()?));
        let (key_len, object_len) = (usize::try_from(number(8)?).ok()?, usize::try_from(number(16)?).ok()?);
        if &header[..8] != MAGIC || key_len.checked_add(object_len)? != rest.len() {
            return None;
        }
        let (found, object) = rest.split_at_checked(key_len)?;
        if found != key.bytes() || header[24..40] != checksum(&[found, object]) {
            return None;
        }
        // Eviction orders files by modification time.
        let _ = file.set_modified(SystemTime::now());
        Some(object.to_vec())
    }

    /// Stores an object. An I/O error (a full disk, a removed folder) is ignored.
    pub(super) fn write(&self, key: &CacheKey, object: &[u8]) {
        let size = (HEADER + key.bytes().len() + object.len()) as u64;
        if size > MAX_FILE_BYTES || size > self.limit {
            return;
        }
        let temporary = self.temporary_name("object");
        let written = File::create_new(&temporary).and_then(|mut file| {
            file.write_all(MAGIC)?;
            file.write_all(&(key.bytes().len() as u64).to_le_bytes())?;
            file.write_all(&(object.len() as u64).to_le_bytes())?;
            file.write_all(&checksum(&[key.bytes(), object]))?;
            file.write_all(key.bytes())?;
            file.write_all(object)?;
            file.flush()
        });
        if written.and_then(|()| fs::rename(&temporary, self.path(key))).is_err() {
            let _ = fs::remove_file(&temporary);
            return;
        }
        // Scanning the folder takes time: once at the first write, then after every sixteenth of
        // the limit.
        let before = self.written.fetch_add(size, Ordering::Relaxed);
        if before == 0 || before / (self.limit / 16 + 1) != (before + size) / (self.limit / 16 + 1) {
            self.evict();
        }
    }

    /// Evicts the least recently used files until the rest fits into three quarters of a full
    /// cache, and removes abandoned temporary files.
    fn evict(&self) {
        let mut files = Vec::new();
        let now = SystemTime::now();
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let Ok(data) = entry.metadata() else { continue };
            let used = data.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            match path.extension().and_then(|extension| extension.to_str()) {
                Some("object") => files.push((used, data.len(), path)),
                Some("tmp") if now.duration_since(used).is_ok_and(|age| age > ABANDONED) => {
                    let _ = fs::remove_file(path);
                }
                _ => {}
            }
        }
        let mut total: u64 = files.iter().map(|(_, size, _)| size).sum();
        if total <= self.limit {
            return;
        }
        files.sort();
        for (_, size, path) in files {
            if total <= self.limit / 4 * 3 {
                break;
            }
            let _ = fs::remove_file(path);
            total -= size;
        }
    }
}

/// Creates a folder that only this user can write to; `None` if that fails.
#[cfg(unix)]
fn make_private(folder: &Path) -> Option<()> {
    use std::os::unix::fs::{DirBuilderExt, MetadataExt};
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).ok()?;
    let data = fs::metadata(folder).ok()?;
    // SAFETY: the call has no arguments and cannot fail.
    let user = unsafe { libc::geteuid() };
    (data.is_dir() && data.uid() == user && data.mode() & 0o022 == 0).then_some(())
}

#[cfg(not(unix))]
fn make_private(folder: &Path) -> Option<()> {
    fs::create_dir_all(folder).ok()
}
