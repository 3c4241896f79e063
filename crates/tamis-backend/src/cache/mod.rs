//! CompiledKernel kernels, kept: in memory for this process, on disk for the next.
//!
//! The key is everything that machine code depends on: the structure of the kernel (names and messages are not part of
//! it), the options with the processor, the versions of this crate and of LLVM. Keys are compared in full,
//! never by hash alone.

mod disk;
mod key;

use crate::facts::Facts;
use crate::llvm::{self, CodegenOptions, CompiledKernel, Timings};
use disk::Disk;
use key::Key;
use rustc_hash::FxHashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use tamis_ir::Diagnostic;
use tamis_ir::kernel::Kernel;

/// How many kernels are kept in memory; beyond, the one not used for longest goes.
const IN_MEMORY: usize = 1024;

/// How many bytes the files may take, unless said otherwise.
const ON_DISK: u64 = 256 << 20;

/// A cache of compiled kernels, for all threads.
pub struct Cache {
    memory: Mutex<FxHashMap<Key, Entry>>,
    disk: Option<Disk>,
    counts: [AtomicU64; 3],
    /// Counts uses: who was used last.
    clock: AtomicU64,
}

struct Entry {
    compiled: Arc<CompiledKernel>,
    used: u64,
}

/// What a cache has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Statistics {
    pub compiled: u64,
    pub from_memory: u64,
    pub from_disk: u64,
}

/// Where machine code was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheHit {
    /// In memory: this process compiled or loaded it before.
    InMemory,
    /// On disk: another process compiled it.
    OnDisk,
    /// Nowhere: it was compiled.
    Miss,
}

impl Cache {
    /// A cache in memory, and in a folder if one is given, of at most so many bytes. A folder that cannot be made, is not
    /// ours alone or is not writable is not used.
    pub fn new(folder: Option<PathBuf>, bytes: u64) -> Cache {
        Cache {
            memory: Mutex::default(),
            disk: folder.and_then(|folder| Disk::open(folder, bytes)),
            counts: Default::default(),
            clock: AtomicU64::new(0),
        }
    }

    /// The cache of this process. Its folder is `TAMIS_CACHE` (`off` for none), else `tamis/kernels` in the user's
    /// folder for caches.
    pub fn global() -> &'static Cache {
        static GLOBAL: OnceLock<Cache> = OnceLock::new();
        GLOBAL.get_or_init(|| Cache::new(default_folder(), ON_DISK))
    }

    /// The machine code of a kernel, compiled if it is not there.
    pub fn compile(&self, kernel: &Kernel, options: &CodegenOptions) -> Result<Arc<CompiledKernel>, Diagnostic> {
        self.get_or_compile(kernel, options).map(|(compiled, _)| compiled)
    }

    /// The machine code of a kernel, compiled if it is not there, and where it was found.
    pub fn get_or_compile(
        &self,
        kernel: &Kernel,
        options: &CodegenOptions,
    ) -> Result<(Arc<CompiledKernel>, CacheHit), Diagnostic> {
        let Some(key) = Key::new(kernel, options) else {
            return llvm::compile(kernel, options).map(|compiled| (Arc::new(compiled), CacheHit::Miss));
        };
        if let Some(known) = self.look_up(&key) {
            self.count(1);
            if known.kernel() == kernel {
                return Ok((known, CacheHit::InMemory));
            }
            let renamed = known.renamed(Arc::new(kernel.clone()), Facts::new(kernel)?);
            return Ok((Arc::new(renamed), CacheHit::InMemory));
        }
        let facts = Facts::new(kernel)?;
        let shared = Arc::new(kernel.clone());
        let stored = self.disk.as_ref().and_then(|disk| disk.read(&key));
        let mut found = CacheHit::Miss;
        let compiled = match stored {
            // SAFETY: the file has this very key and is whole, and lies where only this user writes.
            Some(object) => match unsafe { llvm::load(shared.clone(), &facts, &object, Timings::default()) } {
                Ok(compiled) => {
                    self.count(2);
                    found = CacheHit::OnDisk;
                    compiled
                }
                Err(_) => self.make(shared, &facts, options, &key)?,
            },
            None => self.make(shared, &facts, options, &key)?,
        };
        let compiled = Arc::new(compiled);
        self.keep(key, compiled.clone());
        Ok((compiled, found))
    }

    /// What was done so far.
    pub fn statistics(&self) -> Statistics {
        let [compiled, from_memory, from_disk] = [0, 1, 2].map(|k| self.counts[k].load(Ordering::Relaxed));
        Statistics { compiled, from_memory, from_disk }
    }

    fn count(&self, which: usize) {
        self.counts[which].fetch_add(1, Ordering::Relaxed);
    }

    fn make(
        &self,
        kernel: Arc<Kernel>,
        facts: &Facts,
        options: &CodegenOptions,
        key: &Key,
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

    fn look_up(&self, key: &Key) -> Option<Arc<CompiledKernel>> {
        let mut memory = self.memory.lock().ok()?;
        let entry = memory.get_mut(key)?;
        entry.used = self.clock.fetch_add(1, Ordering::Relaxed);
        Some(entry.compiled.clone())
    }

    fn keep(&self, key: Key, compiled: Arc<CompiledKernel>) {
        // What is dropped is dropped after the lock is gone.
        let mut dropped = None;
        if let Ok(mut memory) = self.memory.lock() {
            if memory.len() >= IN_MEMORY
                && let Some(oldest) = memory.iter().min_by_key(|(_, entry)| entry.used).map(|(key, _)| key.clone())
            {
                dropped = memory.remove(&oldest);
            }
            let used = self.clock.fetch_add(1, Ordering::Relaxed);
            memory.insert(key, Entry { compiled, used });
        }
        drop(dropped);
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
