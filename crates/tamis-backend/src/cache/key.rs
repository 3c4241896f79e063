//! Cache keys: everything that the machine code of a kernel depends on, serialised to bytes.

use crate::llvm::CodegenOptions;
use rustc_hash::FxHashMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use tamis_ir::kernel::{Block, Kernel, Stmt};

/// Kernels nested deeper are neither compiled nor cached.
const MAX_DEPTH: usize = 400;

/// Everything that the machine code of a kernel depends on.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct CacheKey(Arc<[u8]>);

/// A hasher that records its input byte by byte instead of mixing it.
struct RecordingHasher(Vec<u8>);

impl Hasher for RecordingHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    fn finish(&self) -> u64 {
        0
    }
}

impl CacheKey {
    /// The key of a kernel; `None` if it is nested too deeply to be compiled.
    pub(super) fn new(kernel: &Kernel, options: &CodegenOptions) -> Option<CacheKey> {
        let mut bytes = RecordingHasher(Vec::with_capacity(2048));
        (env!("CARGO_PKG_VERSION"), env!("TAMIS_BACKEND_SOURCES")).hash(&mut bytes);
        inkwell::support::get_llvm_version().hash(&mut bytes);
        options.hash(&mut bytes);
        kernel.buffers.len().hash(&mut bytes);
        for buffer in &kernel.buffers {
            (buffer.elem, buffer.role).hash(&mut bytes);
        }
        kernel.vars.len().hash(&mut bytes);
        for var in &kernel.vars {
            (var.dtype, var.lanes, var.mutable).hash(&mut bytes);
        }
        kernel.params.hash(&mut bytes);
        kernel.exprs.len().hash(&mut bytes);
        for id in kernel.exprs.ids() {
            (kernel.expr(id), kernel.exprs.dtype(id)).hash(&mut bytes);
        }
        kernel.labels.hash(&mut bytes);
        KernelSerializer { bytes: &mut bytes, messages: FxHashMap::default() }.block(&kernel.body, 0)?;
        Some(CacheKey(bytes.0.into()))
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

struct KernelSerializer<'a> {
    bytes: &'a mut RecordingHasher,
    /// Messages by id: keys ignore their texts, but record which of them are equal.
    messages: FxHashMap<&'a str, usize>,
}

impl<'a> KernelSerializer<'a> {
    fn block(&mut self, block: &'a Block, depth: usize) -> Option<()> {
        if depth > MAX_DEPTH {
            return None;
        }
        block.len().hash(self.bytes);
        for stmt in block {
            std::mem::discriminant(stmt).hash(self.bytes);
            let bytes = &mut *self.bytes;
            match stmt {
                Stmt::Let { var, value } | Stmt::Assign { var, value } => (var, value).hash(bytes),
                Stmt::Store { buffer, index, value } => (buffer, index, value).hash(bytes),
                Stmt::MaskedStore { buffer, index, value, mask } => (buffer, index, value, mask).hash(bytes),
                Stmt::Update { buffer, index, op, value } => (buffer, index, op, value).hash(bytes),
                Stmt::Prefetch { buffer, index, distance, locality } => {
                    (buffer, index, distance, locality).hash(bytes);
                }
                Stmt::Barrier => {}
                Stmt::For { var, start, stop, body, hint } => {
                    (var, start, stop, hint).hash(bytes);
                    self.block(body, depth + 1)?;
                }
                Stmt::While { cond, body } => {
                    cond.hash(bytes);
                    self.block(body, depth + 1)?;
                }
                Stmt::If { cond, then, otherwise } => {
                    cond.hash(bytes);
                    self.block(then, depth + 1)?;
                    self.block(otherwise, depth + 1)?;
                }
                Stmt::Labelled { label, body } => {
                    label.hash(bytes);
                    self.block(body, depth + 1)?;
                }
                Stmt::Break(label) => label.hash(bytes),
                Stmt::Grow { buffer, len, fill } => (buffer, len, fill).hash(bytes),
                Stmt::Fill { buffer, start, len, value } => (buffer, start, len, value).hash(bytes),
                Stmt::Search { var, buffer, start, stop, key, back } => {
                    (var, buffer, start, stop, key, back).hash(bytes)
                }
                Stmt::Sort { buffer, start, stop, flags } => (buffer, start, stop, flags).hash(bytes),
                Stmt::Gemm(gemm) => gemm.hash(bytes),
                Stmt::Reset { workspace, sizes } => (workspace, sizes).hash(bytes),
                Stmt::Insert { var, workspace, coordinates } => (var, workspace, coordinates).hash(bytes),
                Stmt::Finalize { var, workspace } => (var, workspace).hash(bytes),
                Stmt::Require { cond, message } => {
                    let next = self.messages.len();
                    let number = *self.messages.entry(message).or_insert(next);
                    (cond, number).hash(bytes);
                }
            }
        }
        Some(())
    }
}
