//! Adapter from the interpreter's arrays to machine buffers, for differential tests of the
//! backends.

use super::memory::{RawStorage, element_bytes, grow};
use crate::failure::KernelFailure;
use crate::runtime::RawBuffer;
use num_complex::Complex;
use tamis_ir::kernel::{Array, Elem, Kernel, Memory, Role};
use tamis_ir::{DType, Value};

/// Runs `call` on the memory of a kernel in its machine representation; returns the memory
/// afterwards.
///
/// Arrays that do not match the kernel are rejected, and so are arrays that cannot be allocated.
/// After a failure no memory is returned.
///
/// ```
/// use tamis_backend::runtime::run_on_arrays;
/// # use tamis_ir::kernel::{Array, Kernel, Memory};
/// # use tamis_ir::Value;
/// # use tamis_backend::llvm::{self, CodegenOptions};
/// let text = "kernel f\n    in x: f64[]\n    out y: f64[]\nbegin\n    y[0] = x[1]\n";
/// let kernel = Kernel::parse(text)?;
/// let compiled = llvm::compile(&kernel, &CodegenOptions::host()?)?;
/// let memory = [vec![1.0, 2.0], vec![0.0]];
/// let arrays = memory.map(|x| Array::from_values(x.into_iter().map(Value::F64))).to_vec();
/// let memory = Memory { arrays, scalars: Vec::new() };
/// let after = run_on_arrays(&kernel, memory, |buffers, scalars| {
///     // SAFETY: the arrays have the kernel's types, and the elements that it accesses.
///     unsafe { compiled.call(buffers, scalars) }
/// });
/// assert_eq!(after.unwrap().arrays[1].get(0), Some(Value::F64(2.0)));
/// # Ok::<(), tamis_ir::Diagnostic>(())
/// ```
pub fn run_on_arrays(
    kernel: &Kernel,
    memory: Memory,
    call: impl FnOnce(&mut [RawBuffer], &[Value]) -> Result<(), KernelFailure>,
) -> Result<Memory, KernelFailure> {
    if memory.arrays.len() != kernel.buffers.len() {
        return Err(KernelFailure::Call("the kernel needs one array per buffer".into()));
    }
    let mut storages = Vec::new();
    for (buffer, array) in kernel.buffers.iter().zip(&memory.arrays) {
        storages.push(pack(buffer.elem, array).ok_or_else(|| {
            KernelFailure::Call(format!("the array for `{}` has elements of another type or out of range", buffer.name))
        })?);
    }
    let mut raw: Vec<RawBuffer> = storages.iter().map(RawStorage::raw).collect();
    // The kernel allocates scratch and tiles itself.
    for (raw, buffer) in raw.iter_mut().zip(&kernel.buffers) {
        if matches!(buffer.role, Role::Scratch | Role::Tile(_)) {
            *raw = RawBuffer::empty();
        }
    }
    let result = call(&mut raw, &memory.scalars);
    let mut arrays = memory.arrays;
    for (k, buffer) in kernel.buffers.iter().enumerate() {
        if buffer.role == Role::Output {
            // SAFETY: the descriptor is this storage's own, changed by the kernel only.
            unsafe { storages[k].set_raw(raw[k]) };
            arrays[k] = unpack(buffer.elem, &storages[k]);
        }
    }
    result.map(|()| Memory { arrays, scalars: memory.scalars })
}

/// The elements in their machine representation.
fn pack(elem: Elem, array: &Array) -> Option<RawStorage> {
    let mut storage = RawStorage::new(elem);
    let size = elem.size();
    let mut raw = storage.raw();
    let done = grow(&mut raw, array.len() as u64, size, super::memory::align(elem), Some(&[0; 16][..size]));
    // SAFETY: the descriptor is this storage's own, just grown.
    unsafe { storage.set_raw(raw) };
    if !done {
        return None;
    }
    for (k, value) in array.values().iter().enumerate() {
        let fits = match (elem, value) {
            (Elem::Index(width), Value::I64(x)) => u64::try_from(*x).is_ok_and(|x| x <= width.max()),
            (Elem::Value(dtype), value) => value.dtype() == dtype,
            _ => false,
        };
        if !fits {
            return None;
        }
        let (bytes, size) = element_bytes(elem, *value);
        // SAFETY: the capacity is as many elements as the array has.
        unsafe { raw.data.add(k * size).copy_from_nonoverlapping(bytes.as_ptr(), size) };
    }
    Some(storage)
}

/// The values of the elements.
fn unpack(elem: Elem, storage: &RawStorage) -> Array {
    let raw = storage.raw();
    let size = elem.size();
    Array::from_values((0..storage.len()).map(|k| {
        let mut bytes = [0; 16];
        // SAFETY: the storage has this element.
        unsafe { raw.data.add(k * size).copy_to_nonoverlapping(bytes.as_mut_ptr(), size) };
        value(elem, bytes)
    }))
}

/// Decodes an element from its low bytes.
pub(super) fn value(elem: Elem, bytes: [u8; 16]) -> Value {
    let low = u64::from_le_bytes(std::array::from_fn(|k| bytes[k]));
    let high = u64::from_le_bytes(std::array::from_fn(|k| bytes[8 + k]));
    match elem {
        Elem::Index(_) => Value::I64(low as i64),
        Elem::Value(dtype) => match dtype {
            DType::Bool => Value::Bool(low != 0),
            DType::I8 => Value::I8(low as i8),
            DType::I16 => Value::I16(low as i16),
            DType::I32 => Value::I32(low as i32),
            DType::I64 => Value::I64(low as i64),
            DType::U8 => Value::U8(low as u8),
            DType::U16 => Value::U16(low as u16),
            DType::U32 => Value::U32(low as u32),
            DType::U64 => Value::U64(low),
            DType::F32 => Value::F32(f32::from_bits(low as u32)),
            DType::F64 => Value::F64(f64::from_bits(low)),
            DType::C64 => Value::C64(Complex::new(f32::from_bits(low as u32), f32::from_bits((low >> 32) as u32))),
            DType::C128 => Value::C128(Complex::new(f64::from_bits(low), f64::from_bits(high))),
        },
    }
}
