//! Outputs: the buffers of a kernel that hold each result, and the tensors that are made of them.
//!
//! In: a lowered program, and the storages that its kernel wrote. Out: tensors in the declared
//! formats. Arrays are moved, not copied. In check mode every invariant of the levels is checked;
//! otherwise only lengths are.

use crate::signature::CallArgument;
use tamis_backend::RawStorage;
use tamis_backend::runtime::Element;
use tamis_compiler::lower::{BoundStorage, Lowered};
use tamis_ir::format::{Format, Width};
use tamis_ir::kernel::{Elem, Kernel};
use tamis_ir::program::{Checked, Program, TensorId};
use tamis_ir::{Code, DType, Diagnostic, Value, diag::Result};
use tamis_tensor::levels::{ArrayRole, level_type};
use tamis_tensor::{Index, IndexArray, LevelArrays, Tensor, ValueArray, with_indices};

/// A result of a program.
pub(crate) struct Output {
    pub(crate) name: String,
    pub(crate) tensor: TensorId,
    /// The format that the kernel writes.
    format: Format,
    /// For each level, the buffer of each of its arrays.
    pub(crate) arrays: Vec<Vec<(&'static str, usize)>>,
    pub(crate) values: Option<usize>,
    /// The parameter whose outer levels it shares, and how many; the kernel does not write their
    /// arrays.
    shared_levels: Option<(usize, usize)>,
    fill: Value,
    /// The declared format, where it differs from the written one, or needs finalisation.
    declared: Option<Format>,
}

/// The outputs of a lowered program.
pub(crate) fn plan(program: &Program, checked: &Checked, lowered: &Lowered) -> Result<Vec<Output>> {
    let mut outputs = Vec::new();
    for id in &program.results {
        let info = program.tensor(*id);
        let bound = &lowered.bound[id.index()];
        let declared =
            checked.formats[id.index()].clone().unwrap_or_else(|| Format::dense(info.rank)).without_workspace();
        let (format, arrays, values) = match &bound.storage {
            BoundStorage::Levels { format, arrays, values } => {
                let of_level = |level: &Vec<(&'static str, tamis_ir::kernel::BufferId)>| {
                    level.iter().map(|(name, buffer)| (*name, buffer.index())).collect()
                };
                (
                    format.clone().without_workspace(),
                    arrays.iter().map(of_level).collect(),
                    values.map(|buffer| buffer.index()),
                )
            }
            BoundStorage::Scalar { output, .. } => {
                let buffer = output.ok_or_else(|| missing_buffer(&info.name))?;
                (Format::dense(0), Vec::new(), Some(buffer.index()))
            }
        };
        let shared = lowered.plans[id.index()].as_ref().and_then(|plan| plan.shared_sparsity);
        let param = |of: TensorId| {
            program.params.iter().position(|param| *param == of).ok_or_else(|| missing_buffer(&info.name))
        };
        let shared_levels = shared.map(|shared| Ok((param(shared.of)?, shared.levels))).transpose()?;
        outputs.push(Output {
            name: info.name.clone(),
            tensor: *id,
            declared: Some(declared).filter(|declared| *declared != format || has_runs(&format)),
            format,
            arrays,
            values,
            shared_levels,
            fill: bound.fill,
        });
    }
    Ok(outputs)
}

/// Kernels append runs as they occur; finalisation merges equal neighbours.
fn has_runs(format: &Format) -> bool {
    format.levels().iter().any(|level| level_type(level.kind).is_ok_and(|row| row.write.takes_runs()))
}

fn missing_buffer(name: &str) -> Diagnostic {
    bug(format!("the kernel has no buffer for the result `{name}`"))
}

fn bug(message: String) -> Diagnostic {
    Diagnostic::new(Code::E1101, message)
        .note("this is a bug in Tamis")
        .help("please report the program that was run; `--interpret` runs it without the compiler")
}

impl Output {
    /// True if its values are its only array.
    pub(crate) fn is_dense(&self) -> bool {
        self.arrays.iter().all(Vec::is_empty)
    }

    /// True if the kernel writes all its elements in row-major order, and nothing is done afterwards.
    pub(crate) fn is_row_major(&self) -> bool {
        self.declared.is_none() && self.format == Format::dense(self.format.levels().len())
    }

    /// The format of the tensor that is made of it, with its fill.
    pub(crate) fn format_with_fill(&self) -> Format {
        tamis_compiler::schedule::with_fill(self.declared_format(), self.fill)
    }

    /// The format of the result, as it is declared.
    pub(crate) fn declared_format(&self) -> &Format {
        self.declared.as_ref().unwrap_or(&self.format)
    }

    /// The type of its values.
    pub(crate) fn dtype(&self) -> DType {
        self.fill.dtype()
    }

    /// The extents of its levels for a shape.
    pub(crate) fn level_extents(&self, shape: &[u64]) -> Vec<u64> {
        self.format.level_extents(shape).unwrap_or_default()
    }

    /// The buffer of the array with a role in one of its levels.
    pub(crate) fn array(&self, level: usize, role: ArrayRole) -> Option<usize> {
        let row = level_type(self.format.levels().get(level)?.kind).ok()?;
        row.find(role, self.arrays.get(level)?)
    }

    /// The buffers that the kernel writes for it.
    pub(crate) fn buffers(&self) -> impl Iterator<Item = usize> {
        let written = self.arrays.iter().skip(self.shared_levels.map_or(0, |(_, levels)| levels));
        written.flatten().map(|(_, buffer)| *buffer).chain(self.values)
    }

    /// The number of its values, if it shares the levels of an argument; `extents` are those of its
    /// levels.
    pub(crate) fn shared_value_count(&self, arguments: &[CallArgument], extents: &[u64]) -> Option<u64> {
        let (param, shared) = self.shared_levels?;
        let mut count = 1u64;
        for (level, extent) in extents.iter().enumerate().take(shared) {
            count = match arguments[param].array(level, ArrayRole::FiberOffsets) {
                Some(pos) => with_indices!(pos, x => x.get(usize::try_from(count).ok()?)?.to_u64()),
                None => count.checked_mul(*extent)?,
            };
        }
        extents[shared..].iter().try_fold(count, |count, extent| count.checked_mul(*extent))
    }

    /// The tensor that the kernel wrote for these arguments, in the declared format.
    pub(crate) fn tensor(
        &self,
        shape: &[u64],
        kernel: &Kernel,
        storages: &mut [Option<RawStorage>],
        arguments: &[CallArgument],
        check: bool,
    ) -> Result<Tensor> {
        let mut take = |buffer: usize| {
            let storage = storages.get_mut(buffer).and_then(Option::take);
            storage.map(|storage| (kernel.buffers[buffer].elem, storage)).ok_or_else(|| missing_buffer(&self.name))
        };
        let mut levels = Vec::with_capacity(self.arrays.len());
        if let Some((param, shared)) = self.shared_levels {
            levels.extend(arguments[param].levels[..shared].iter().cloned());
        }
        for arrays in self.arrays.iter().skip(levels.len()) {
            let mut level = LevelArrays::default();
            for (name, buffer) in arrays {
                let (elem, storage) = take(*buffer)?;
                level.arrays.push((*name, index_array(elem, storage)?));
            }
            levels.push(level);
        }
        let values = match self.values {
            Some(buffer) => {
                let (elem, storage) = take(buffer)?;
                Some(value_array(elem, storage)?)
            }
            None => None,
        };
        let made = if check {
            Tensor::from_longer_parts(shape, &self.format, levels, values, self.fill)
        } else {
            // SAFETY: the kernel has written these arrays, which keep the invariants of their
            // levels when it ends.
            unsafe { Tensor::from_longer_parts_unchecked(shape, &self.format, levels, values, self.fill) }
        };
        // A broken invariant is a bug of the compiler. Arrays that are too large, or elements that
        // the format cannot hold, are diagnostics for the user.
        let tensor = made.map_err(|d| match d.code {
            Code::E0404 | Code::E0706 | Code::E0707 => d,
            _ => bug(format!("the kernel wrote `{}` as no `{}` is: {}", self.name, self.format, d.message)),
        })?;
        match &self.declared {
            Some(declared) => tamis_tensor::finalize(tensor, declared),
            None => Ok(tensor),
        }
    }
}

fn vector<T: Element>(storage: RawStorage) -> Result<Vec<T>> {
    storage.into_vec().map_err(|_| bug("a kernel's array has elements of another type".to_string()))
}

fn index_array(elem: Elem, storage: RawStorage) -> Result<IndexArray> {
    Ok(match elem {
        Elem::Index(Width::U8) => vector::<u8>(storage)?.into(),
        Elem::Index(Width::U16) => vector::<u16>(storage)?.into(),
        Elem::Index(Width::U32) => vector::<u32>(storage)?.into(),
        Elem::Index(Width::U64) => vector::<u64>(storage)?.into(),
        Elem::Value(dtype) => return Err(bug(format!("a kernel's array of positions holds {dtype}"))),
    })
}

fn value_array(elem: Elem, storage: RawStorage) -> Result<ValueArray> {
    Ok(match elem.dtype() {
        _ if matches!(elem, Elem::Index(_)) => return Err(bug("a kernel's values are positions".to_string())),
        DType::Bool => ValueArray::Bool(vector::<u8>(storage)?.into()),
        DType::I8 => vector::<i8>(storage)?.into(),
        DType::I16 => vector::<i16>(storage)?.into(),
        DType::I32 => vector::<i32>(storage)?.into(),
        DType::I64 => vector::<i64>(storage)?.into(),
        DType::U8 => vector::<u8>(storage)?.into(),
        DType::U16 => vector::<u16>(storage)?.into(),
        DType::U32 => vector::<u32>(storage)?.into(),
        DType::U64 => vector::<u64>(storage)?.into(),
        DType::F32 => vector::<f32>(storage)?.into(),
        DType::F64 => vector::<f64>(storage)?.into(),
        DType::C64 => vector::<num_complex::Complex<f32>>(storage)?.into(),
        DType::C128 => vector::<num_complex::Complex<f64>>(storage)?.into(),
    })
}
