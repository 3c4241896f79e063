//! In-process linking: loads object files with ORC LLJIT, and unloads them when dropped.

use super::emit::FUNCTION;
use crate::failure::{RawFailure, bug};
use crate::runtime::{self, RawBuffer};
use inkwell::llvm_sys::core::LLVMCreateMemoryBufferWithMemoryRangeCopy;
use inkwell::llvm_sys::error::{LLVMConsumeError, LLVMDisposeErrorMessage, LLVMErrorRef, LLVMGetErrorMessage};
use inkwell::llvm_sys::orc2::lljit::*;
use inkwell::llvm_sys::orc2::*;
use std::ffi::{CStr, CString};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use tamis_ir::Diagnostic;

/// The signature of a kernel function.
pub(super) type KernelFn = unsafe extern "C" fn(*mut RawBuffer, *const *const u8, *mut RawFailure) -> i32;

/// The LLJIT of this process. It lives as long as the process, since code may run until then.
struct JitLinker(LLVMOrcLLJITRef);

// SAFETY: the functions of LLJIT that are used here take the session's lock.
unsafe impl Send for JitLinker {}
// SAFETY: as above.
unsafe impl Sync for JitLinker {}

/// An error of LLVM as text.
fn message(error: LLVMErrorRef) -> String {
    // SAFETY: the error is not null, and the text is copied before it is disposed.
    unsafe {
        let text = LLVMGetErrorMessage(error);
        let copy = CStr::from_ptr(text).to_string_lossy().into_owned();
        LLVMDisposeErrorMessage(text);
        copy
    }
}

fn check(error: LLVMErrorRef) -> Result<(), String> {
    if error.is_null() { Ok(()) } else { Err(message(error)) }
}

extern "C" fn ignore(_: *mut libc::c_void, error: LLVMErrorRef) {
    // SAFETY: the reporter owns the error. The call that failed also returns it.
    unsafe { LLVMConsumeError(error) }
}

fn linker() -> Result<&'static JitLinker, Diagnostic> {
    static LINKER: OnceLock<Result<JitLinker, String>> = OnceLock::new();
    LINKER.get_or_init(new_linker).as_ref().map_err(bug)
}

fn new_linker() -> Result<JitLinker, String> {
    let mut jit = std::ptr::null_mut();
    // SAFETY: a null builder selects the defaults; the result is written before it is used.
    check(unsafe { LLVMOrcCreateLLJIT(&mut jit, std::ptr::null_mut()) })?;
    // SAFETY: the linker was just made, and names are C strings that outlive the calls; ownership
    // of the names, the definitions and the generator passes to the linker.
    unsafe {
        let session = LLVMOrcLLJITGetExecutionSession(jit);
        LLVMOrcExecutionSessionSetErrorReporter(session, ignore, std::ptr::null_mut());
        let library = LLVMOrcLLJITGetMainJITDylib(jit);
        let mut symbols: Vec<LLVMOrcCSymbolMapPair> = Vec::new();
        for (name, address) in runtime::symbols() {
            let name = CString::new(name).map_err(|error| error.to_string())?;
            let flags = LLVMJITSymbolFlags {
                GenericFlags: LLVMJITSymbolGenericFlags::LLVMJITSymbolGenericFlagsExported as u8
                    | LLVMJITSymbolGenericFlags::LLVMJITSymbolGenericFlagsCallable as u8,
                TargetFlags: 0,
            };
            symbols.push(LLVMOrcCSymbolMapPair {
                Name: LLVMOrcLLJITMangleAndIntern(jit, name.as_ptr()),
                Sym: LLVMJITEvaluatedSymbol { Address: address as u64, Flags: flags },
            });
        }
        let definitions = LLVMOrcAbsoluteSymbols(symbols.as_mut_ptr(), symbols.len());
        check(LLVMOrcJITDylibDefine(library, definitions))?;
        // LLVM generates calls of C library functions (memset, memcpy).
        let mut generator = std::ptr::null_mut();
        let prefix = LLVMOrcLLJITGetGlobalPrefix(jit);
        check(LLVMOrcCreateDynamicLibrarySearchGeneratorForProcess(
            &mut generator,
            prefix,
            None,
            std::ptr::null_mut(),
        ))?;
        LLVMOrcJITDylibAddGenerator(library, generator);
    }
    Ok(JitLinker(jit))
}

/// LoadedCode machine code.
pub(super) struct LoadedCode {
    pub(super) entry: KernelFn,
    tracker: LLVMOrcResourceTrackerRef,
}

// SAFETY: code does not change, and removing it takes the session's lock.
unsafe impl Send for LoadedCode {}
// SAFETY: as above.
unsafe impl Sync for LoadedCode {}

impl LoadedCode {
    /// Loads an object file made by [`super::target_machine::object`].
    ///
    /// # Safety
    /// The object was made from a kernel by this version of the backend, for this processor.
    pub(super) unsafe fn new(object: &[u8]) -> Result<LoadedCode, Diagnostic> {
        let linker = linker()?;
        let mut object = object.to_vec();
        let symbol = make_symbol_unique(&mut object).ok_or_else(|| bug("the object has no function"))?;
        let symbol = CString::new(symbol).map_err(bug)?;
        // SAFETY: the linker lives forever, and owns the copy of the object from now on. The
        // address is used only if the lookup succeeded, and has the type of every kernel function.
        unsafe {
            let tracker = LLVMOrcJITDylibCreateResourceTracker(LLVMOrcLLJITGetMainJITDylib(linker.0));
            let buffer =
                LLVMCreateMemoryBufferWithMemoryRangeCopy(object.as_ptr().cast(), object.len(), c"kernel".as_ptr());
            let mut loaded = LoadedCode { entry: not_loaded, tracker };
            check(LLVMOrcLLJITAddObjectFileWithRT(linker.0, tracker, buffer)).map_err(bug)?;
            let mut address = 0;
            check(LLVMOrcLLJITLookup(linker.0, &mut address, symbol.as_ptr())).map_err(bug)?;
            loaded.entry = std::mem::transmute::<usize, KernelFn>(address as usize);
            Ok(loaded)
        }
    }
}

impl Drop for LoadedCode {
    fn drop(&mut self) {
        // SAFETY: this code owns the tracker, and no other code can call it any more. An error
        // changes nothing here.
        unsafe {
            let error = LLVMOrcResourceTrackerRemove(self.tracker);
            if !error.is_null() {
                LLVMConsumeError(error);
            }
            LLVMOrcReleaseResourceTracker(self.tracker);
        }
    }
}

/// A placeholder for code that is not loaded yet.
unsafe extern "C" fn not_loaded(_: *mut RawBuffer, _: *const *const u8, _: *mut RawFailure) -> i32 {
    -1
}

/// Gives the function in an object a unique name, by overwriting the zeros in its name with a
/// number. All kernels are in one dynamic library, and the same object may be loaded twice.
fn make_symbol_unique(object: &mut [u8]) -> Option<String> {
    static NUMBER: AtomicU64 = AtomicU64::new(1);
    let symbol = format!("kernel_{:016x}", NUMBER.fetch_add(1, Ordering::Relaxed));
    let offsets: Vec<usize> =
        object.windows(FUNCTION.len()).enumerate().filter(|(_, w)| *w == FUNCTION.as_bytes()).map(|(k, _)| k).collect();
    for offset in &offsets {
        object.get_mut(*offset..offset + symbol.len())?.copy_from_slice(symbol.as_bytes());
    }
    (!offsets.is_empty()).then_some(symbol)
}
