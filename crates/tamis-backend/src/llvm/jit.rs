//! Object files in memory: linked with the runtime, callable, and removed when dropped.

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

/// The function of a kernel.
pub(super) type Entry = unsafe extern "C" fn(*mut RawBuffer, *const *const u8, *mut RawFailure) -> i32;

/// The linker of this process. It lives as long as the process, since code may run until then.
struct Linker(LLVMOrcLLJITRef);

// SAFETY: the functions of LLJIT that are used here take the session's lock.
unsafe impl Send for Linker {}
// SAFETY: as above.
unsafe impl Sync for Linker {}

/// An error of LLVM as text.
fn message(error: LLVMErrorRef) -> String {
    // SAFETY: the error is not null, and the text is copied before it is given back.
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
    // SAFETY: the reporter owns the error. What failed is also returned by the call that failed.
    unsafe { LLVMConsumeError(error) }
}

fn linker() -> Result<&'static Linker, Diagnostic> {
    static LINKER: OnceLock<Result<Linker, String>> = OnceLock::new();
    LINKER.get_or_init(new_linker).as_ref().map_err(bug)
}

fn new_linker() -> Result<Linker, String> {
    let mut jit = std::ptr::null_mut();
    // SAFETY: a null builder asks for the defaults; the result is written before it is used.
    check(unsafe { LLVMOrcCreateLLJIT(&mut jit, std::ptr::null_mut()) })?;
    // SAFETY: the linker was just made, and names are C strings that outlive the calls; ownership of the names,
    // the definitions and the generator passes to the linker.
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
        // Code generation calls the C library of its own accord (memset, memcpy).
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
    Ok(Linker(jit))
}

/// Machine code in memory.
pub(super) struct Loaded {
    pub(super) entry: Entry,
    tracker: LLVMOrcResourceTrackerRef,
}

// SAFETY: code does not change, and removing it takes the session's lock.
unsafe impl Send for Loaded {}
// SAFETY: as above.
unsafe impl Sync for Loaded {}

impl Loaded {
    /// Loads an object file made by [`super::machine::object`].
    ///
    /// # Safety
    /// The object was made from a kernel by this version of the backend, for this processor.
    pub(super) unsafe fn new(object: &[u8]) -> Result<Loaded, Diagnostic> {
        let linker = linker()?;
        let mut object = object.to_vec();
        let symbol = rename(&mut object).ok_or_else(|| bug("the object has no function"))?;
        let symbol = CString::new(symbol).map_err(bug)?;
        // SAFETY: the linker lives forever; the buffer is a copy that the linker owns from now on; the address is used
        // only if the look-up succeeded, and has the type of every kernel's function.
        unsafe {
            let tracker = LLVMOrcJITDylibCreateResourceTracker(LLVMOrcLLJITGetMainJITDylib(linker.0));
            let buffer =
                LLVMCreateMemoryBufferWithMemoryRangeCopy(object.as_ptr().cast(), object.len(), c"kernel".as_ptr());
            let mut loaded = Loaded { entry: never, tracker };
            check(LLVMOrcLLJITAddObjectFileWithRT(linker.0, tracker, buffer)).map_err(bug)?;
            let mut address = 0;
            check(LLVMOrcLLJITLookup(linker.0, &mut address, symbol.as_ptr())).map_err(bug)?;
            loaded.entry = std::mem::transmute::<usize, Entry>(address as usize);
            Ok(loaded)
        }
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        // SAFETY: the tracker is this code's own, and nobody can call the code any more. An error changes nothing here.
        unsafe {
            let error = LLVMOrcResourceTrackerRemove(self.tracker);
            if !error.is_null() {
                LLVMConsumeError(error);
            }
            LLVMOrcReleaseResourceTracker(self.tracker);
        }
    }
}

/// Stands for code that is not there yet.
unsafe extern "C" fn never(_: *mut RawBuffer, _: *const *const u8, _: *mut RawFailure) -> i32 {
    -1
}

/// Gives the function in an object a name of its own, by writing a number over the zeros in its name: all kernels are in
/// one library, and the same object may be loaded twice.
fn rename(object: &mut [u8]) -> Option<String> {
    static NUMBER: AtomicU64 = AtomicU64::new(1);
    let symbol = format!("kernel_{:016x}", NUMBER.fetch_add(1, Ordering::Relaxed));
    let places: Vec<usize> =
        object.windows(FUNCTION.len()).enumerate().filter(|(_, w)| *w == FUNCTION.as_bytes()).map(|(k, _)| k).collect();
    for place in &places {
        object.get_mut(*place..place + symbol.len())?.copy_from_slice(symbol.as_bytes());
    }
    (!places.is_empty()).then_some(symbol)
}
