//! Programs that were compiled before, found again by what they say and by the layouts of their tensors.
//!
//! Looking up costs a hash of the program's expressions and one comparison, and no lock that others wait for.
//! There are at most so many; the one not used for longest goes.

use crate::compile::{CompileOptions, Executable};
use crate::signature::Argument;
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{OnceLock, RwLock};
use tamis_ir::Program;

/// How many executables are kept.
const KEPT: usize = 512;

/// What was compiled before.
#[derive(Default)]
pub(crate) struct Remembered {
    entries: RwLock<FxHashMap<u64, Vec<Entry>>>,
    /// Counts uses: who was used last.
    clock: AtomicU64,
}

struct Entry {
    executable: Executable,
    used: AtomicU64,
}

impl Remembered {
    /// What this process remembers.
    pub(crate) fn global() -> &'static Remembered {
        static GLOBAL: OnceLock<Remembered> = OnceLock::new();
        GLOBAL.get_or_init(Remembered::default)
    }

    /// The executable of a program for tensors like these, if there is one.
    pub(crate) fn find(
        &self,
        key: u64,
        program: &Program,
        arguments: &[Argument],
        options: &CompileOptions,
    ) -> Option<Executable> {
        let entries = self.entries.read().ok()?;
        let fits = |entry: &&Entry| {
            let executable = &entry.executable;
            executable.options() == options && executable.takes(arguments) && executable.program() == program
        };
        let entry = entries.get(&key)?.iter().find(fits)?;
        entry.used.store(self.clock.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        Some(entry.executable.clone())
    }

    /// Keeps an executable.
    pub(crate) fn keep(&self, key: u64, executable: Executable) {
        let mut dropped = None;
        if let Ok(mut entries) = self.entries.write() {
            if entries.values().map(Vec::len).sum::<usize>() >= KEPT {
                let all =
                    entries.iter().flat_map(|(key, list)| list.iter().enumerate().map(move |(k, e)| (*key, k, e)));
                let oldest =
                    all.min_by_key(|(_, _, entry)| entry.used.load(Ordering::Relaxed)).map(|(key, k, _)| (key, k));
                if let Some((key, k)) = oldest
                    && let Some(list) = entries.get_mut(&key)
                {
                    dropped = Some(list.swap_remove(k));
                    if list.is_empty() {
                        entries.remove(&key);
                    }
                }
            }
            let used = AtomicU64::new(self.clock.fetch_add(1, Ordering::Relaxed));
            entries.entry(key).or_default().push(Entry { executable, used });
        }
        // Freeing machine code takes time that others need not wait for.
        drop(dropped);
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.entries.read().unwrap().values().map(Vec::len).sum()
    }
}

/// A number that is the same for programs that say the same and tensors of the same layouts.
pub(crate) fn key(program: &Program, arguments: &[Argument], options: &CompileOptions) -> u64 {
    let mut state = FxHasher::default();
    (&program.name, program.tensors.len(), program.body.len(), options).hash(&mut state);
    program.exprs.ids().for_each(|id| program.expr(id).hash(&mut state));
    arguments.iter().for_each(|argument| argument.hash(&mut state));
    state.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Signature, compile};
    use tamis_tensor::Tensor;

    fn program(k: usize) -> Program {
        Program::parse(&format!("def f(x):\n    y = scalar(0.0)\n    y += {k} * x\n    return y\n")).unwrap()
    }

    #[test]
    fn the_oldest_goes() {
        let remembered = Remembered::default();
        let x = Tensor::scalar(1.0.into());
        let options = CompileOptions { interpret: true, ..CompileOptions::default() };
        let arguments = Argument::all(&[&x]);
        for k in 0..KEPT + 10 {
            let program = program(k);
            let key = key(&program, &arguments, &options);
            assert!(remembered.find(key, &program, &arguments, &options).is_none());
            remembered.keep(key, compile(&program, &Signature::of(&[&x]), &options).unwrap());
            // The first one is used all the time.
            let first = super::tests::program(0);
            let at = super::key(&first, &arguments, &options);
            assert!(remembered.find(at, &first, &arguments, &options).is_some(), "{k}");
        }
        assert_eq!(remembered.len(), KEPT);
        let second = program(1);
        assert!(remembered.find(key(&second, &arguments, &options), &second, &arguments, &options).is_none());
    }

    #[test]
    fn what_differs_is_not_found() {
        let remembered = Remembered::default();
        let (x, y) = (Tensor::scalar(1.0.into()), Tensor::scalar(2i64.into()));
        let options = CompileOptions { interpret: true, ..CompileOptions::default() };
        let arguments = Argument::all(&[&x]);
        let first = program(0);
        let at = key(&first, &arguments, &options);
        remembered.keep(at, compile(&first, &Signature::of(&[&x]), &options).unwrap());
        // Whatever the hash says, all is compared.
        assert!(remembered.find(at, &program(0), &arguments, &options).is_some());
        assert!(remembered.find(at, &program(1), &arguments, &options).is_none());
        assert!(remembered.find(at, &first, &Argument::all(&[&y]), &options).is_none());
        assert!(remembered.find(at, &first, &arguments, &CompileOptions::default()).is_none());
    }
}
