//! Tests of the kernel cache: hits, misses, corrupted files, eviction, and concurrent use.

use crate::common::{floats, spmv};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tamis_backend::cache::{Cache, CacheStatistics};
use tamis_backend::llvm::{CompiledKernel, OptLevel, TargetCpu};
use tamis_backend::runtime::run_on_arrays;
use tamis_backend::{CodegenOptions, KernelFailure};
use tamis_ir::kernel::{Array, Builder, Elem, Kernel, Memory, Role, Stmt};
use tamis_ir::{DType, Value};

fn works(compiled: &CompiledKernel) {
    let memory = Memory {
        arrays: vec![
            Array::from_indices(&[0, 2, 2, 3]),
            Array::from_indices(&[0, 3, 0]),
            floats(&[1.0, 2.0, 3.0]),
            floats(&[1.0; 4]),
            floats(&[7.0; 3]),
        ],
        scalars: vec![Value::I64(3)],
    };
    // SAFETY: the arrays are those that the kernel takes.
    let after = run_on_arrays(compiled.kernel(), memory, |b, s| unsafe { compiled.call(b, s) }).unwrap();
    assert_eq!(after.arrays[4], floats(&[3.0, 0.0, 3.0]));
}

fn options() -> CodegenOptions {
    CodegenOptions::host().unwrap()
}

fn statistics(compiled: u64, from_memory: u64, from_disk: u64) -> CacheStatistics {
    CacheStatistics { compiled, from_memory, from_disk }
}

fn private() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn open(folder: &Path) -> Cache {
    Cache::new(Some(folder.to_path_buf()), 1 << 20)
}

fn objects(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

/// A kernel whose requirement always fails, with a name and a message.
fn fails(buffer: &str, message: &str) -> Kernel {
    let mut b = Builder::new(format!("about {buffer}"));
    b.buffer(buffer, Elem::Value(DType::F64), Role::Output);
    let cond = b.constant(Value::Bool(false));
    b.emit(Stmt::Require { cond, message: message.into() });
    b.finish()
}

#[test]
fn kernels_are_cached_by_structure() {
    let cache = Cache::new(None, 0);
    let first = cache.compile(&spmv(true), &options()).unwrap();
    let second = cache.compile(&spmv(true), &options()).unwrap();
    assert!(Arc::ptr_eq(&first, &second));
    works(&second);
    assert_eq!(cache.statistics(), statistics(1, 1, 0));
    // The key contains everything that machine code depends on.
    cache.compile(&spmv(false), &options()).unwrap();
    cache.compile(&spmv(true), &options().checked()).unwrap();
    cache.compile(&spmv(true), &CodegenOptions { opt_level: OptLevel::O2, ..options() }).unwrap();
    let other = TargetCpu::named(Some("generic")).unwrap();
    cache.compile(&spmv(true), &CodegenOptions { target: Arc::new(other), ..options() }).unwrap();
    assert_eq!(cache.statistics(), statistics(5, 1, 0));
}

#[test]
fn cache_hits_use_the_names_of_the_requested_kernel() {
    let cache = Cache::new(None, 0);
    for (name, message) in [("a", "first"), ("b", "second")] {
        let compiled = cache.compile(&fails(name, message), &options()).unwrap();
        let memory = Memory { arrays: vec![Array::default()], scalars: vec![] };
        // SAFETY: the kernel accesses no memory.
        let failure = run_on_arrays(compiled.kernel(), memory, |b, s| unsafe { compiled.call(b, s) }).unwrap_err();
        assert_eq!(failure, KernelFailure::Required(message.into()));
        assert_eq!(compiled.kernel().buffers[0].name, name);
    }
    assert_eq!(cache.statistics(), statistics(1, 1, 0));
}

#[test]
fn files_persist_across_caches() {
    let folder = private();
    open(folder.path()).compile(&spmv(true), &options()).unwrap();
    let cache = open(folder.path());
    works(&cache.compile(&spmv(true), &options()).unwrap());
    works(&cache.compile(&spmv(true), &options()).unwrap());
    assert_eq!(cache.statistics(), statistics(0, 1, 1));
}

#[test]
fn corrupted_files_are_ignored() {
    let folder = private();
    open(folder.path()).compile(&spmv(true), &options()).unwrap();
    let path = objects(folder.path()).pop().unwrap();
    let whole = fs::read(&path).unwrap();
    let mut corrupted: Vec<Vec<u8>> = vec![Vec::new(), b"something else".to_vec(), [&whole[..], b"x"].concat()];
    corrupted.extend([1, 7, 20, 39, 40, whole.len() / 2, whole.len() - 1].map(|len| whole[..len].to_vec()));
    for at in (0..whole.len()).step_by(97).chain([0, 8, 15, 16, 23, 24, 39]) {
        let mut changed = whole.clone();
        changed[at] ^= 0x80;
        corrupted.push(changed);
    }
    for bytes in corrupted {
        fs::write(&path, bytes).unwrap();
        let cache = open(folder.path());
        works(&cache.compile(&spmv(true), &options()).unwrap());
        assert_eq!(cache.statistics(), statistics(1, 0, 0));
        assert_eq!(fs::read(&path).unwrap().len(), whole.len(), "the file is rewritten");
    }
    // The file of another kernel under this kernel's name.
    let other = private();
    open(other.path()).compile(&spmv(false), &options()).unwrap();
    fs::copy(objects(other.path()).pop().unwrap(), &path).unwrap();
    let cache = open(folder.path());
    works(&cache.compile(&spmv(true), &options()).unwrap());
    assert_eq!(cache.statistics(), statistics(1, 0, 0));
}

#[test]
fn unsafe_or_unwritable_folders_are_ignored() {
    let folder = private();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let shared = folder.path().join("shared");
    fs::create_dir(&shared).unwrap();
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o777)).unwrap();
    for bad in [file.clone(), file.join("below"), shared.clone()] {
        let cache = open(&bad);
        works(&cache.compile(&spmv(true), &options()).unwrap());
        assert_eq!(cache.statistics(), statistics(1, 0, 0));
    }
    assert_eq!(objects(&shared), [] as [PathBuf; 0], "other users can write there");
    // A folder that is removed later.
    let gone = folder.path().join("gone");
    let cache = open(&gone);
    fs::remove_dir_all(&gone).unwrap();
    works(&cache.compile(&spmv(true), &options()).unwrap());
}

#[test]
fn least_recently_used_files_are_evicted() {
    let folder = private();
    let limit = 40_000;
    let cache = Cache::new(Some(folder.path().to_path_buf()), limit);
    let mut kernels = Vec::new();
    for k in 0..40 {
        let mut b = Builder::new("store");
        let y = b.buffer("y", Elem::Value(DType::I64), Role::Output);
        let (at, value) = (b.int(0), b.int(k));
        b.store(y, at, value);
        kernels.push(b.finish());
        cache.compile(&kernels[k as usize], &options()).unwrap();
    }
    let total: u64 = objects(folder.path()).iter().map(|path| fs::metadata(path).unwrap().len()).sum();
    assert!(total > limit / 4 && total <= limit + limit / 8, "{total} bytes");
    let again = Cache::new(Some(folder.path().to_path_buf()), limit);
    again.compile(&kernels[39], &options()).unwrap();
    again.compile(&kernels[0], &options()).unwrap();
    assert_eq!(again.statistics(), statistics(1, 0, 1));
}

#[test]
fn threads_share_a_cache_and_a_folder() {
    let folder = private();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..5 {
                    let cache = open(folder.path());
                    works(&cache.compile(&spmv(true), &options()).unwrap());
                    works(&cache.compile(&spmv(false), &options()).unwrap());
                }
            });
        }
    });
    let left = objects(folder.path());
    assert_eq!(left.len(), 2, "{left:?}");
}
