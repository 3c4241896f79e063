//! Truncated and corrupted files: a diagnostic or a tensor, never a panic, with bounded memory.

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::{Cursor, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use tamis_ir::Code;
use tamis_tensor::Combine;
use tamis_tensor::io::{FileKind, ReadOptions, read_data_from, read_from};

/// An allocator that counts allocated bytes.
struct Counting;

static USED: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is forwarded to the system's allocator; the counters do not touch the memory.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = USED.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(now, Ordering::Relaxed);
        // SAFETY: the caller satisfies the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let now = USED.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(now, Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        USED.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn fixtures() -> Vec<(String, Vec<u8>)> {
    let directory: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let mut files: Vec<PathBuf> = std::fs::read_dir(directory).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    let known = files.into_iter().filter(|p| FileKind::of(p).is_ok());
    known.map(|p| (p.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read(&p).unwrap())).collect()
}

/// Reads, and checks general guarantees; returns true if reading succeeded.
fn attempt(name: &str, bytes: &[u8], what: &str) -> bool {
    let options = ReadOptions { threads: None, ..ReadOptions::default() };
    let before = USED.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let result = read_data_from(name, bytes, &options);
    let taken = PEAK.load(Ordering::Relaxed).saturating_sub(before);
    assert!(taken <= 100 * bytes.len() + (1 << 20), "{name} {what}: {taken} bytes for {}", bytes.len());
    match result {
        Err(d) => {
            assert!(!d.help.is_empty() && !d.message.is_empty() && d.place.is_some(), "{name} {what}: {d}");
            false
        }
        Ok(_) => {
            // The contents become a tensor or a diagnostic.
            for duplicates in [Combine::Error, Combine::Sum] {
                let options = ReadOptions { duplicates, ..ReadOptions::default() };
                if let Err(d) = read_from(name, bytes, &options) {
                    assert!(!d.help.is_empty(), "{name} {what}: {d}");
                }
            }
            true
        }
    }
}

/// One test, so that no other test allocates while memory is measured.
#[test]
fn hostile_files() {
    // Threads are started, and their memory allocated, before the measurement.
    for (name, bytes) in fixtures() {
        let _ = read_data_from(&name, &bytes, &ReadOptions::default());
    }
    let mut attempts = 0;
    for (name, bytes) in fixtures() {
        for length in 0..bytes.len() {
            attempts += 1;
            let whole = attempt(&name, &bytes[..length], &format!("cut to {length}"));
            // The first member of two is a file of its own.
            let compressed = (name.ends_with(".gz") && name != "members.tns.gz") || name.ends_with(".npz");
            assert!(!(whole && compressed), "{name} reads when cut to {length} of {}", bytes.len());
        }
    }
    let mut state = 0x2545_f491_4f6c_dd1du64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as usize
    };
    for (name, bytes) in fixtures() {
        for round in 0..300 {
            let mut changed = bytes.clone();
            for _ in 0..1 + random() % 3 {
                let at = random() % changed.len();
                match random() % 4 {
                    0 => changed[at] ^= 1 << (random() % 8),
                    1 => changed[at] = b"0123456789 \n-.e%#"[random() % 17],
                    2 => changed[at] = random() as u8,
                    _ => changed.insert(at, b"9 \n"[random() % 3]),
                }
            }
            attempts += 1;
            attempt(&name, &changed, &format!("changed, round {round}"));
        }
    }
    // Members changed before they are archived: their checksums are right, so only their contents
    // are wrong.
    for (name, bytes) in fixtures().into_iter().filter(|(name, _)| name.ends_with(".npz")) {
        let members = unpack(&bytes);
        for round in 0..400 {
            let mut changed = members.clone();
            let which = random() % changed.len();
            let content = &mut changed[which].1;
            match random() % 8 {
                0 => content.truncate(random() % content.len()),
                1 => content.extend([0; 8]),
                2 => drop(changed.remove(which)),
                k => {
                    // Most of a member is its padded header; the data is more interesting.
                    let start = if k > 4 { content.len().min(128) } else { 0 };
                    if start < content.len() {
                        let at = start + random() % (content.len() - start);
                        content[at] = [0, 1, 2, 3, 5, 127, 128, 255, b'9', random() as u8][random() % 10];
                    }
                }
            }
            attempts += 1;
            attempt(&name, &pack(&changed), &format!("repacked, round {round}"));
        }
    }
    assert!(attempts > 40_000, "{attempts}");

    claims();
}

fn unpack(bytes: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).unwrap();
    (0..archive.len())
        .map(|k| {
            let mut file = archive.by_index(k).unwrap();
            let mut content = Vec::new();
            file.read_to_end(&mut content).unwrap();
            let name = String::from_utf8(file.name_raw().to_vec()).unwrap();
            (name, content)
        })
        .collect()
}

fn pack(members: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let stored = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    for (name, content) in members {
        archive.start_file(name.clone(), stored).unwrap();
        archive.write_all(content).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

/// Headers that claim more than any machine has.
fn claims() {
    let many = 1_000_000_000_000_000_000u64;
    let texts = [
        (
            "a.mtx",
            format!("%%MatrixMarket matrix coordinate real general\n5 5 {many}\n1 1 1\n2 2 2\n3 3 3\n"),
            Code::E0804,
        ),
        ("a.mtx", format!("%%MatrixMarket matrix array real general\n{many} {many}\n1\n2\n3\n"), Code::E0804),
        ("a.mtx", format!("%%MatrixMarket matrix array real symmetric\n{many} {many}\n1\n2\n3\n"), Code::E0804),
        ("a.tns", format!("2 {many}\n{many} {many}\n1 1 1\n2 2 2\n"), Code::E0804),
        ("a.smtx", format!("{many}, {many}, {many}\n0 1\n"), Code::E0804),
        ("a.pbm", format!("P4\n{many} {many}\nxxx"), Code::E0804),
        ("a.pgm", format!("P2\n{many} {many} 255\n1 2 3"), Code::E0804),
        ("a.idx", "\0\0\x0e\x03\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7f123".to_string(), Code::E0804),
    ];
    for (name, text, code) in texts {
        let start = Instant::now();
        let before = USED.load(Ordering::Relaxed);
        PEAK.store(before, Ordering::Relaxed);
        let d = read_data_from(name, text.as_bytes(), &ReadOptions::default()).unwrap_err();
        assert_eq!(d.code, code, "{name} {text}");
        assert!(PEAK.load(Ordering::Relaxed) - before < 1 << 20, "{name} {text}");
        assert!(start.elapsed().as_millis() < 200, "{name} {text}");
    }
    // Large sizes with few entries are valid for sparse files.
    let text = format!("%%MatrixMarket matrix coordinate real general\n{many} {many} 1\n1 1 1\n");
    assert_eq!(read_from("a.mtx", text.as_bytes(), &ReadOptions::default()).unwrap().nnz(), 1);
}
