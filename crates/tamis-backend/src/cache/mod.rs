//! Cache of compiled kernels: in memory for this process, on disk across processes.
//!
//! The key holds everything that machine code depends on: the structure of the kernel (without
//! names and messages), the options with the target CPU, and the versions of this crate and of
//! LLVM. The cache compares keys in full, never by hash alone. Beyond its limits it evicts the
//! least recently used kernels.

mod disk;
mod key;

use crate::facts::KernelFacts;
use crate::llvm::{self, CodegenOptions, CompiledKernel, Timings};
use disk::DiskCache;
use key::CacheKey;
use rustc_hash::FxHashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use tamis_ir::Diagnostic;
use tamis_ir::kernel::Kernel;

/// Maximum number of kernels in memory; beyond it, the least recently used one is evicted.
const MAX_KERNELS_IN_MEMORY: usize = 1024;

/// Default limit of the bytes on disk.
const DEFAULT_DISK_BYTES: u64 = 256 << 20;

/// A cache of compiled kernels, for all threads.
///
/// ```
/// use tamis_backend::cache::Cache;
/// // Its own cache, in memory only; `Cache::global()` is the one that programs use.
/// let cache = Cache::new(None, 0);
/// assert_eq!(cache.statistics().compiled, 0);
/// ```
pub struct Cache {
    memory: Mutex<FxHashMap<CacheKey, CachedKernel>>,
    disk: Option<DiskCache>,
    counts: [AtomicU64; 3],
    /// Logical clock of uses, for eviction.
    clock: AtomicU64,
}

struct CachedKernel {
    compiled: Arc<CompiledKernel>,
    last_used: u64,
}

/// Counters of a cache.
///
/// ```
/// let counters = tamis_backend::cache::Cache::global().statistics();
/// println!("{} compiled, {} from disk", counters.compiled, counters.from_disk);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct CacheStatistics {
    pub compiled: u64,
    pub from_memory: u64,
    pub from_disk: u64,
}

/// The cache level that had the machine code.
///
/// ```
/// use tamis_backend::{cache::{Cache, CacheHit}, llvm::CodegenOptions};
/// # let kernel = tamis_ir::kernel::Builder::new("empty").finish();
/// let (cache, options) = (Cache::new(None, 0), CodegenOptions::host()?);
/// assert_eq!(cache.get_or_compile(&kernel, &options)?.1, CacheHit::Miss);
/// assert_eq!(cache.get_or_compile(&kernel, &options)?.1, CacheHit::InMemory);
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheHit {
    /// In memory: this process compiled or loaded it before.
    InMemory,
    /// On disk: another process compiled it.
    OnDisk,
    /// Cache miss: the kernel was compiled.
    Miss,
}

impl Cache {
    /// A cache in memory and, if `folder` is given, on disk with at most `bytes` bytes. A folder is
    /// ignored if it cannot be created, other users can write to it, or it is not writable.
    ///
    /// ```
    /// use tamis_backend::cache::Cache;
    /// let folder = std::env::temp_dir().join(format!("tamis-cache-{}", std::process::id()));
    /// let cache = Cache::new(Some(folder.clone()), 64 << 20);
    /// assert_eq!(cache.statistics().from_disk, 0);
    /// # let _ = std::fs::remove_dir_all(folder);
    /// ```
    pub fn new(folder: Option<PathBuf>, bytes: u64) -> Cache {
        Cache {
            memory: Mutex::default(),
            disk: folder.and_then(|folder| DiskCache::open(folder, bytes)),
            counts: Default::default(),
            clock: AtomicU64::new(0),
        }
    }

    /// The cache of this process. Its folder is `TAMIS_CACHE` (`off` disables the disk cache), or
    /// else `tamis/kernels` in the user's cache directory.
    ///
    /// ```
    /// use tamis_backend::cache::Cache;
    /// assert!(std::ptr::eq(Cache::global(), Cache::global()));
    /// ```
    pub fn global() -> &'static Cache {
        static GLOBAL: OnceLock<Cache> = OnceLock::new();
        GLOBAL.get_or_init(|| Cache::new(default_folder(), DEFAULT_DISK_BYTES))
    }

    /// The machine code of a kernel, compiled on a miss.
    ///
    /// ```
    /// use tamis_backend::{cache::Cache, llvm::CodegenOptions};
    /// # let kernel = tamis_ir::kernel::Builder::new("empty").finish();
    /// let cache = Cache::new(None, 0);
    /// let compiled = cache.compile(&kernel, &CodegenOptions::host()?)?;
    /// assert_eq!(compiled.kernel(), &kernel);
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn compile(&self, kernel: &Kernel, options: &CodegenOptions) -> Result<Arc<CompiledKernel>, Diagnostic> {
        self.get_or_compile(kernel, options).map(|(compiled, _)| compiled)
    }

    /// The machine code of a kernel, compiled on a miss, and the cache level that had it.
    ///
    /// ```
    /// use tamis_backend::{cache::{Cache, CacheHit}, llvm::CodegenOptions};
    /// # let kernel = tamis_ir::kernel::Builder::new("empty").finish();
    /// let cache = Cache::new(None, 0);
    /// let (_, hit) = cache.get_or_compile(&kernel, &CodegenOptions::host()?)?;
    /// assert_eq!(hit, CacheHit::Miss);
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn get_or_compile(
        &self,
        kernel: &Kernel,
        options: &CodegenOptions,
    ) -> Result<(Arc<CompiledKernel>, CacheHit), Diagnostic> {
        let Some(key) = CacheKey::new(kernel, options) else {
            return llvm::compile(kernel, options).map(|compiled| (Arc::new(compiled), CacheHit::Miss));
        };
        if let Some(cached) = self.look_up(&key) {
            self.count(1);
            if cached.kernel() == kernel {
                return Ok((cached, CacheHit::InMemory));
            }
            let renamed = cached.renamed(Arc::new(kernel.clone()), KernelFacts::new(kernel)?);
            return Ok((Arc::new(renamed), CacheHit::InMemory));
        }
        let facts = KernelFacts::new(kernel)?;
        let shared = Arc::new(kernel.clone());
        let stored = self.disk.as_ref().and_then(|disk| disk.read(&key));
        let mut hit = CacheHit::Miss;
        let compiled = match stored {
            // SAFETY: the file has this very key, is intact, and is in a folder to which only this
            // user can write.
            Some(object) => match unsafe { llvm::load(shared.clone(), &facts, &object, Timings::default()) } {
                Ok(compiled) => {
                    self.count(2);
                    hit = CacheHit::OnDisk;
                    compiled
                }
                Err(_) => self.compile_and_store(shared, &facts, options, &key)?,
            },
            None => self.compile_and_store(shared, &facts, options, &key)?,
        };
        let compiled = Arc::new(compiled);
        self.insert(key, compiled.clone());
        Ok((compiled, hit))
    }

    /// The counters so far.
    ///
    /// ```
    /// use tamis_backend::{cache::Cache, llvm::CodegenOptions};
    /// # let kernel = tamis_ir::kernel::Builder::new("empty").finish();
    /// let cache = Cache::new(None, 0);
    /// cache.compile(&kernel, &CodegenOptions::host()?)?;
    /// assert_eq!(cache.statistics().compiled, 1);
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn statistics(&self) -> CacheStatistics {
        let [compiled, from_memory, from_disk] = [0, 1, 2].map(|k| self.counts[k].load(Ordering::Relaxed));
        CacheStatistics { compiled, from_memory, from_disk }
    }

    fn count(&self, which: usize) {
        self.counts[which].fetch_add(1, Ordering::Relaxed);
    }

    fn compile_and_store(
        &self,
        kernel: Arc<Kernel>,
        facts: &KernelFacts,
        options: &CodegenOptions,
        key: &CacheKey,
    ) -> Result<CompiledKernel, Diagnostic> {
        let mut timings = Timings::default();
        let object = llvm::object(&kernel, facts, options, &mut timings)?;
        self.count(0);
        if let Some(disk) = &self.disk {
            disk.write(key, &object);
        }
        // SAFETY: the object was just made, for the processor that the options name.
        unsafe { llvm::load(kernel, facts, &object, timings) }
    }

    fn look_up(&self, key: &CacheKey) -> Option<Arc<CompiledKernel>> {
        let mut memory = self.memory.lock().ok()?;
        let entry = memory.get_mut(key)?;
        entry.last_used = self.clock.fetch_add(1, Ordering::Relaxed);
        Some(entry.compiled.clone())
    }

    fn insert(&self, key: CacheKey, compiled: Arc<CompiledKernel>) {
        // The evicted kernel is evicted after the lock is released.
        let mut evicted = None;
        if let Ok(mut memory) = self.memory.lock() {
            if memory.len() >= MAX_KERNELS_IN_MEMORY
                && let Some(least_recent) =
                    memory.iter().min_by_key(|(_, entry)| entry.last_used).map(|(key, _)| key.clone())
            {
                evicted = memory.remove(&least_recent);
            }
            let last_used = self.clock.fetch_add(1, Ordering::Relaxed);
            memory.insert(key, CachedKernel { compiled, last_used });
        }
        drop(evicted);
    }
}

fn default_folder() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    match std::env::var_os("TAMIS_CACHE") {
        Some(value) if value.is_empty() || value == "off" || value == "0" => None,
        Some(value) => Some(PathBuf::from(value)),
        None => {
            let caches = set("XDG_CACHE_HOME").filter(|path| path.is_absolute());
            Some(caches.or_else(|| Some(set("HOME")?.join(".cache")))?.join("tamis").join("kernels"))
        }
    }
}
