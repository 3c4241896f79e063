//! Executable cache: memoises executables by program, tensor layouts and options.
//!
//! A look-up costs a hash of the program's expressions and one comparison, under a shared lock. The
//! cache is bounded; the least recently used executable is evicted.

use crate::compile::{CompileOptions, Executable};
use crate::signature::CallArgument;
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{OnceLock, RwLock};
use tamis_ir::Program;

/// The capacity of the cache, in executables.
const CAPACITY: usize = 512;

/// A bounded cache of executables.
#[derive(Default)]
pub(crate) struct ExecutableCache {
    entries: RwLock<FxHashMap<u64, Vec<CachedExecutable>>>,
    /// Counts uses, for eviction of the least recently used.
    clock: AtomicU64,
}

struct CachedExecutable {
    executable: Executable,
    used: AtomicU64,
}

impl ExecutableCache {
    /// The cache of this process.
    pub(crate) fn global() -> &'static ExecutableCache {
        static GLOBAL: OnceLock<ExecutableCache> = OnceLock::new();
        GLOBAL.get_or_init(ExecutableCache::default)
    }

    /// The executable of a program for tensors of these layouts, if the cache has one.
    pub(crate) fn find(
        &self,
        key: u64,
        program: &Program,
        arguments: &[CallArgument],
        options: &CompileOptions,
    ) -> Option<Executable> {
        let entries = self.entries.read().ok()?;
        let fits = |entry: &&CachedExecutable| {
            let executable = &entry.executable;
            executable.options() == options && executable.takes(arguments) && executable.program() == program
        };
        let entry = entries.get(&key)?.iter().find(fits)?;
        entry.used.store(self.clock.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        Some(entry.executable.clone())
    }

    /// Adds an executable.
    pub(crate) fn insert(&self, key: u64, executable: Executable) {
        let mut evicted = None;
        if let Ok(mut entries) = self.entries.write() {
            if entries.values().map(Vec::len).sum::<usize>() >= CAPACITY {
                let all =
                    entries.iter().flat_map(|(key, list)| list.iter().enumerate().map(move |(k, e)| (*key, k, e)));
                let oldest =
                    all.min_by_key(|(_, _, entry)| entry.used.load(Ordering::Relaxed)).map(|(key, k, _)| (key, k));
                if let Some((key, k)) = oldest
                    && let Some(list) = entries.get_mut(&key)
                {
                    evicted = Some(list.swap_remove(k));
                    if list.is_empty() {
                        entries.remove(&key);
                    }
                }
            }
            let used = AtomicU64::new(self.clock.fetch_add(1, Ordering::Relaxed));
            entries.entry(key).or_default().push(CachedExecutable { executable, used });
        }
        // Machine code is freed after the lock is released.
        drop(evicted);
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.entries.read().unwrap().values().map(Vec::len).sum()
    }
}

/// A hash that equals for equal programs, options and tensor layouts.
pub(crate) fn key(program: &Program, arguments: &[CallArgument], options: &CompileOptions) -> u64 {
    let mut state = FxHasher::default();
    (&program.name, program.tensors.len(), program.body.len(), options).hash(&mut state);
    program.exprs.ids().for_each(|id| program.expr(id).hash(&mut state));
    arguments.iter().for_each(|argument| argument.hash(&mut state));
    state.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::{Signature, compile};
    use tamis_tensor::Tensor;

    fn program(k: usize) -> Program {
        Program::parse(&format!("def f(x):\n    y = scalar(0.0)\n    y += {k} * x\n    return y\n")).unwrap()
    }

    #[test]
    fn the_least_recently_used_is_evicted() {
        let cache = ExecutableCache::default();
        let x = Tensor::scalar(1.0.into());
        let options = CompileOptions { interpret: true, ..CompileOptions::default() };
        let arguments = CallArgument::all(&[&x]);
        for k in 0..CAPACITY + 10 {
            let program = program(k);
            let key = key(&program, &arguments, &options);
            assert!(cache.find(key, &program, &arguments, &options).is_none());
            cache.insert(key, compile(&program, &Signature::of(&[&x]), &options).unwrap());
            // The first one is used throughout.
            let first = super::tests::program(0);
            let at = super::key(&first, &arguments, &options);
            assert!(cache.find(at, &first, &arguments, &options).is_some(), "{k}");
        }
        assert_eq!(cache.len(), CAPACITY);
        let second = program(1);
        assert!(cache.find(key(&second, &arguments, &options), &second, &arguments, &options).is_none());
    }

    #[test]
    fn colliding_keys_do_not_mix_programs() {
        let cache = ExecutableCache::default();
        let (x, y) = (Tensor::scalar(1.0.into()), Tensor::scalar(2i64.into()));
        let options = CompileOptions { interpret: true, ..CompileOptions::default() };
        let arguments = CallArgument::all(&[&x]);
        let first = program(0);
        let at = key(&first, &arguments, &options);
        cache.insert(at, compile(&first, &Signature::of(&[&x]), &options).unwrap());
        // The whole key is compared, whatever the hash.
        assert!(cache.find(at, &program(0), &arguments, &options).is_some());
        assert!(cache.find(at, &program(1), &arguments, &options).is_none());
        assert!(cache.find(at, &first, &CallArgument::all(&[&y]), &options).is_none());
        assert!(cache.find(at, &first, &arguments, &CompileOptions::default()).is_none());
    }
}
