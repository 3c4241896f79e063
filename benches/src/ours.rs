//! Our side: a program and tensors become something that can be called, timed, and asked for its results.

use std::time::{Duration, Instant};
use tamis::{DType, Diagnostics, Format, Program, Tensor, Value, ValueArray};
use tamis_backend::runtime::Element;
use tamis_backend::{Compiled, RawBuffer, Storage, llvm};
use tamis_compiler::lower::{Lowered, ParamLayout, Stored, lower};
use tamis_ir::interp;
use tamis_ir::kernel::Role;
use tamis_ir::program::{Checked, ParamType};
use tamis_tensor::{with_indices, with_values};

/// A compiled program with its tensors.
#[derive(Debug)]
pub struct Ours {
    program: Program,
    checked: Checked,
    lowered: Lowered,
    compiled: Compiled,
    /// Keeps the memory that inputs point to.
    _tensors: Vec<Tensor>,
    inputs: Vec<RawBuffer>,
    outputs: Vec<Option<Storage>>,
    scalars: Vec<Value>,
    time: Duration,
}

/// Compiles a program for tensors, in the order of its parameters. What the compiler cannot do yet is told as text.
pub fn ours(text: &str, tensors: &[Tensor]) -> Result<Ours, String> {
    let start = Instant::now();
    let told = |d: Diagnostics| d.render(false);
    let program = Program::parse(text).map_err(told)?;
    let types: Vec<ParamType> = tensors.iter().map(|t| interp::param_type(t)).collect();
    let checked = program.check(&types).map_err(told)?;
    for id in &program.results {
        match &checked.formats[id.index()] {
            Some(format) if *format == Format::dense(format.rank()) => {}
            Some(format) => return Err(format!("not yet: results in {format}")),
            None => return Err("not yet: results without dimensions".into()),
        }
    }
    let layouts: Vec<ParamLayout> = tensors.iter().map(ParamLayout::of).collect();
    let lowered = lower(&program, &checked, &layouts);
    lowered.kernel.verify()?;
    let options = llvm::Options::host().map_err(|d| d.render(false))?;
    let compiled = llvm::compile(&lowered.kernel, &options).map_err(|d| d.render(false))?;
    let time = start.elapsed();

    let kernel = &lowered.kernel;
    let mut inputs = vec![RawBuffer::empty(); kernel.buffers.len()];
    for (id, tensor) in program.params.iter().zip(tensors) {
        let Stored::Levels { arrays, values, .. } = &lowered.bound[id.index()].storage else { continue };
        for (k, level) in arrays.iter().enumerate() {
            for (name, buffer) in level {
                let arrays = tensor.level_arrays(k);
                let array = arrays.get(name).ok_or_else(|| format!("level {k} has no `{name}`"))?;
                inputs[buffer.index()] = with_indices!(array, x => RawBuffer::input(x));
            }
        }
        if let (Some(buffer), Some(values)) = (values, tensor.values()) {
            inputs[buffer.index()] = with_values!(values, x => RawBuffer::input(x));
        }
    }
    let output = |buffer: &tamis_ir::kernel::Buffer| (buffer.role == Role::Output).then(|| Storage::new(buffer.elem));
    let outputs = kernel.buffers.iter().map(output).collect();
    let sizes = lowered.sizes.iter();
    let scalars = sizes.map(|(id, dim)| Value::I64(checked.extents.shapes[id.index()][*dim] as i64)).collect();
    let _tensors = tensors.to_vec();
    Ok(Ours { program, checked, lowered, compiled, _tensors, inputs, outputs, scalars, time })
}

impl Ours {
    /// Runs the program; results take the memory that those of the last run had.
    pub fn call(&mut self) -> Result<(), String> {
        let mut raw: Vec<RawBuffer> = self.inputs.clone();
        for (raw, output) in raw.iter_mut().zip(&self.outputs) {
            if let Some(output) = output {
                *raw = output.raw();
            }
        }
        // SAFETY: inputs are the arrays of tensors that are kept, outputs are our own, both of the kernel's types.
        let outcome = unsafe { self.compiled.call(&mut raw, &self.scalars) };
        for (raw, output) in raw.iter().zip(&mut self.outputs) {
            if let Some(output) = output {
                // SAFETY: the descriptor is this storage's own, changed by the kernel alone.
                unsafe { output.set_raw(*raw) };
            }
        }
        outcome.map_err(|failure| failure.to_string())
    }

    /// Text to runnable.
    pub fn time(&self) -> Duration {
        self.time
    }

    /// The results of the last run.
    pub fn results(&self) -> Result<Vec<Tensor>, String> {
        let mut results = Vec::new();
        for id in &self.program.results {
            let Stored::Dense(buffer) = self.lowered.bound[id.index()].storage else { continue };
            let shape = &self.checked.extents.shapes[id.index()];
            let cells = shape.iter().product::<u64>() as usize;
            let storage = self.outputs[buffer.index()].as_ref().ok_or("a result is no output")?;
            let raw = storage.raw();
            let dtype = self.lowered.bound[id.index()].dtype;
            if storage.len() < cells {
                return Err("the result is not complete".into());
            }
            let values: ValueArray = match dtype {
                // SAFETY: the storage has so many elements, and its buffer is of this type.
                DType::F32 => unsafe { copy::<f32>(raw, cells) }.into(),
                // SAFETY: as above.
                DType::F64 => unsafe { copy::<f64>(raw, cells) }.into(),
                other => return Err(format!("results of type {other} are not looked at here")),
            };
            let tensor = Tensor::from_dense(shape, values, &Format::dense(shape.len()), Value::zero(dtype));
            results.push(tensor.map_err(|d| d.render(false))?);
        }
        Ok(results)
    }
}

/// # Safety
/// The buffer has at least so many elements of this type.
unsafe fn copy<T: Element>(raw: RawBuffer, cells: usize) -> Vec<T> {
    // SAFETY: promised by the caller; a buffer that has no memory is aligned, too.
    unsafe { std::slice::from_raw_parts(raw.data.cast::<T>(), cells) }.to_vec()
}
