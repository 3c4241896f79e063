//! Build script: hashes the sources of this back end and of the kernel language into a version for
//! cache keys.

use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};

fn main() {
    let mut files = Vec::new();
    for folder in ["src", "../tamis-ir/src/kernel", "../tamis-ir/src/algebra"] {
        println!("cargo:rerun-if-changed={folder}");
        collect(Path::new(folder), &mut files);
    }
    files.sort();
    let mut hasher = DefaultHasher::new();
    for file in files {
        hasher.write(file.to_string_lossy().as_bytes());
        hasher.write(&std::fs::read(&file).unwrap_or_default());
    }
    println!("cargo:rustc-env=TAMIS_BACKEND_SOURCES={:016x}", hasher.finish());
}

/// Collects the Rust sources in a folder. A packaged crate has no sibling crates: missing folders
/// are skipped.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}
