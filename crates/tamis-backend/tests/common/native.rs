//! C kernels, compiled by the system's C compiler and loaded.

use libloading::Library;
use std::process::Command;
use tamis_backend::{KernelFailure, RawBuffer, RawFailure, c, runtime::run_on_arrays};
use tamis_ir::kernel::{Kernel, Memory};
use tamis_ir::{DType, Value};

/// A kernel in a shared object.
pub struct NativeKernel {
    library: Library,
    entry: String,
    _folder: tempfile::TempDir,
}

type NativeFn = unsafe extern "C" fn(*mut RawBuffer, *const *const u8, *mut RawFailure) -> i32;

impl NativeKernel {
    /// Prints a kernel as C and compiles it, with all warnings as errors.
    pub fn new(kernel: &Kernel, flags: &[&str]) -> NativeKernel {
        let text = c::print(kernel).unwrap_or_else(|error| panic!("{}\n{kernel}", error.render(false)));
        let folder = tempfile::tempdir().unwrap();
        let (source, object) = (folder.path().join("kernel.c"), folder.path().join("kernel.so"));
        std::fs::write(&source, &text).unwrap();
        let compiler = Command::new("cc")
            .args(["-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"])
            .args(flags)
            .arg(&source)
            .arg("-o")
            .arg(&object)
            .arg("-lm")
            .output()
            .unwrap();
        assert!(compiler.status.success(), "{}\n{text}\n{kernel}", String::from_utf8_lossy(&compiler.stderr));
        // SAFETY: the object was just made from a kernel, and has no initialisers.
        let library = unsafe { Library::new(&object) }.unwrap();
        NativeKernel { library, entry: c::entry_name(kernel), _folder: folder }
    }

    /// Calls the entry point.
    pub fn call(&self, buffers: &mut [RawBuffer], scalars: &[Value]) -> Result<(), KernelFailure> {
        let mut words: Vec<[u64; 2]> = Vec::new();
        for value in scalars {
            words.push(match *value {
                Value::F32(x) => [u64::from(x.to_bits()), 0],
                Value::F64(x) => [x.to_bits(), 0],
                Value::C64(c) => [u64::from(c.re.to_bits()) | u64::from(c.im.to_bits()) << 32, 0],
                Value::C128(c) => [c.re.to_bits(), c.im.to_bits()],
                Value::U64(x) => [x, 0],
                other => match other.cast(DType::I64) {
                    Value::I64(x) => [x as u64, 0],
                    _ => [0, 0],
                },
            });
        }
        let pointers: Vec<*const u8> = words.iter().map(|word| word.as_ptr().cast()).collect();
        let mut failure = RawFailure::default();
        // SAFETY: the tables have the entries of the kernel.
        let status = unsafe {
            let entry = self.library.get::<NativeFn>(self.entry.as_bytes()).unwrap();
            entry(buffers.as_mut_ptr(), pointers.as_ptr(), &mut failure)
        };
        if status == 0 { Ok(()) } else { Err(KernelFailure::Call(format!("status {status}: {failure:?}"))) }
    }
}

/// Compiles the C of a kernel and runs it on the interpreter's arrays.
pub fn run_c(kernel: &Kernel, memory: Memory) -> Result<Memory, KernelFailure> {
    let native = NativeKernel::new(kernel, &["-O3"]);
    run_on_arrays(kernel, memory, |buffers, scalars| native.call(buffers, scalars))
}
