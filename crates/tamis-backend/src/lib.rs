//! Code generation for kernels (LLVM and C), and the runtime library that compiled kernels call.
//!
//! Input: a kernel of `tamis_ir::kernel`. Output: machine code in memory, or C text. The crate sees
//! kernels only: no tensor, no looplet, no format. Its modules:
//! - [`llvm`]: machine code through LLVM;
//! - [`c`]: the same kernel as C text;
//! - [`cache`]: compiled kernels in memory and on disk;
//! - [`runtime`]: growable buffers, sorting, workspaces and math functions;
//! - [`KernelFailure`]: the reason why a kernel stopped.
//!
//! ```
//! use tamis_backend::{RawBuffer, llvm};
//! use tamis_ir::kernel::{Builder, Elem, Role};
//! use tamis_ir::{DType, Value, algebra::Op};
//! let mut b = Builder::new("double");
//! let x = b.buffer("x", Elem::Value(DType::F64), Role::Input);
//! let y = b.buffer("y", Elem::Value(DType::F64), Role::Output);
//! let n = b.param("n", DType::I64);
//! let (zero, stop) = (b.int(0), b.get(n));
//! b.count("i", zero, stop, |b, i| {
//!     let value = b.load(x, i);
//!     let twice = b.call(Op::Add, &[value, value]);
//!     b.store(y, i, twice);
//! });
//! let compiled = llvm::compile(&b.finish(), &llvm::CodegenOptions::host()?)?;
//! let (x, mut y) = ([1.0, 2.5], [0.0; 2]);
//! // SAFETY: the buffers have the kernel's types, and as many elements as it touches.
//! unsafe { compiled.call(&mut [RawBuffer::input(&x), RawBuffer::output(&mut y)], &[Value::I64(2)]) }.unwrap();
//! assert_eq!(y, [2.0, 5.0]);
//! # Ok::<(), tamis_ir::Diagnostic>(())
//! ```

pub mod c;
pub mod cache;
mod facts;
mod failure;
pub mod llvm;
pub mod runtime;

pub use failure::{KernelFailure, RawFailure};
pub use llvm::{CodegenOptions, CompiledKernel};
pub use runtime::{RawBuffer, RawStorage};
