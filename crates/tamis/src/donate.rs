//! Donated memory: results that a kernel writes to memory of the caller.
//!
//! In: places for results ([`OutputSlice`]) and the arguments of a call. Out: the places that the
//! kernel writes directly, and where an operand has the same memory, the kernel that updates it in
//! place. Every other result is a tensor as usual, which the caller may copy.

use crate::call::BoundKernel;
use crate::output::Output;
use crate::results::Results;
use crate::signature::CallArgument;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use tamis_backend::cache::Cache;
use tamis_backend::runtime::Element;
use tamis_backend::{CompiledKernel, RawStorage, llvm};
use tamis_compiler::{opt, schedule};
use tamis_ir::format::Format;
use tamis_ir::kernel::BufferId;
use tamis_ir::program::Program;
use tamis_ir::{Code, DType, Diagnostic};
use tamis_tensor::{Tensor, with_indices, with_values};

/// Memory of the caller for a dense result, in row-major order.
///
/// ```
/// use tamis::compile::OutputSlice;
/// let mut values = [0.0; 6];
/// assert!(OutputSlice::new(&mut values, &[2, 3]).is_ok());
/// assert!(OutputSlice::new(&mut values, &[2, 2]).is_err(), "6 elements are not 2 x 2");
/// ```
pub struct OutputSlice<'a> {
    data: *mut u8,
    dtype: DType,
    shape: Vec<u64>,
    written: bool,
    memory: PhantomData<&'a mut [u8]>,
}

// SAFETY: it is a unique reference to plain numbers.
unsafe impl Send for OutputSlice<'_> {}

impl<'a> OutputSlice<'a> {
    /// A slice that holds as many elements as the shape has.
    ///
    /// ```
    /// use tamis::compile::OutputSlice;
    /// assert!(OutputSlice::new(&mut [0i32; 4], &[4]).is_ok());
    /// ```
    pub fn new<T: Element>(values: &'a mut [T], shape: &[u64]) -> Result<OutputSlice<'a>, Diagnostic> {
        let elements = shape.iter().try_fold(1u64, |count, n| count.checked_mul(*n));
        if elements != Some(values.len() as u64) {
            let message = format!("{} elements are not a tensor of shape {shape:?}", values.len());
            return Err(Diagnostic::new(Code::E0402, message).help("give one element for each of the result"));
        }
        // SAFETY: the slice is borrowed uniquely, and has all elements of the shape.
        Ok(unsafe { OutputSlice::from_raw(values.as_mut_ptr().cast(), T::DTYPE, shape) })
    }

    /// Memory of another language.
    ///
    /// # Safety
    /// `data` points to the aligned elements of a row-major array of this type and shape, which live
    /// as long as `'a`. No other code writes them meanwhile, and none reads them, except through
    /// operands of the same call.
    ///
    /// ```
    /// use tamis::{DType, compile::OutputSlice};
    /// let mut values = [0.0f64; 6];
    /// // SAFETY: the array has 2 x 3 elements, and lives longer than the slice.
    /// let place = unsafe { OutputSlice::from_raw(values.as_mut_ptr().cast(), DType::F64, &[2, 3]) };
    /// assert!(!place.is_written());
    /// ```
    pub unsafe fn from_raw(data: *mut u8, dtype: DType, shape: &[u64]) -> OutputSlice<'a> {
        OutputSlice { data, dtype, shape: shape.to_vec(), written: false, memory: PhantomData }
    }

    /// True if a call has written its result here.
    ///
    /// ```
    /// use tamis::compile::OutputSlice;
    /// let mut values = [0.0; 4];
    /// let place = OutputSlice::new(&mut values, &[4])?;
    /// assert!(!place.is_written(), "before a call");
    /// # Ok::<(), tamis::Diagnostic>(())
    /// ```
    pub fn is_written(&self) -> bool {
        self.written
    }

    fn len(&self) -> u64 {
        self.shape.iter().product()
    }

    fn addresses(&self) -> Range<usize> {
        let first = self.data as usize;
        first..first + self.len() as usize * self.dtype.size()
    }
}

impl fmt::Debug for OutputSlice<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OutputSlice({} {:?})", self.dtype, self.shape)
    }
}

/// The kernels that update operands in place, by the pairs of parameters and results that share
/// memory; none for pairs that cannot.
pub(crate) type InPlaceKernels = Mutex<Vec<(Vec<(usize, usize)>, Option<Arc<CompiledKernel>>)>>;

/// The results of a call that are written to memory of the caller.
#[derive(Default)]
pub(crate) struct Donations {
    /// For each result, the first element and the number of elements.
    places: Vec<Option<(*mut u8, u64)>>,
    /// The kernel to call instead, where operands are updated in place.
    pub(crate) in_place: Option<Arc<CompiledKernel>>,
}

// SAFETY: each place is written by one call, through storages of its own.
unsafe impl Sync for Donations {}

impl Donations {
    /// The places that a call may write directly.
    pub(crate) fn new(
        program: &Program,
        machine: &BoundKernel,
        kernels: &InPlaceKernels,
        (shapes, strict): (&[Vec<u64>], bool),
        arguments: &[CallArgument],
        outputs: &[Option<OutputSlice>],
    ) -> Donations {
        let mut places = vec![None; machine.outputs().len()];
        let mut pairs = Vec::new();
        if outputs.len() != places.len() {
            return Donations::default();
        }
        let used: Vec<Range<usize>> = outputs.iter().flatten().map(OutputSlice::addresses).collect();
        for (k, ((output, shape), slice)) in machine.outputs().iter().zip(shapes).zip(outputs).enumerate() {
            let Some(slice) = slice else { continue };
            let fits = output.is_row_major() && output.dtype() == slice.dtype && *shape == slice.shape;
            let own = slice.addresses();
            if !fits || used.iter().filter(|other| overlap(&own, other)).count() > usize::from(!own.is_empty()) {
                continue;
            }
            let mut sharing = arguments.iter().enumerate().filter(|(_, argument)| shares(argument, &own));
            match (sharing.next(), sharing.next()) {
                (None, _) => {}
                (Some((param, argument)), None) if is_same(argument.tensor, slice) => pairs.push((param, k)),
                _ => continue,
            }
            places[k] = Some((slice.data, slice.len()));
        }
        let in_place = match pairs.is_empty() {
            true => None,
            false => kernel_in_place(program, machine, kernels, &pairs, strict),
        };
        if in_place.is_none() {
            pairs.iter().for_each(|(_, k)| places[*k] = None);
        }
        Donations { places, in_place }
    }

    /// The place of the result whose values this buffer holds, as storage.
    pub(crate) fn storage(&self, machine: &BoundKernel, buffer: usize) -> Option<RawStorage> {
        let k = machine.outputs().iter().position(|output| output.values == Some(buffer))?;
        let (data, len) = (*self.places.get(k)?)?;
        if !machine.outputs()[k].is_row_major() {
            return None;
        }
        // SAFETY: the caller of `OutputSlice::from_raw` guarantees that the elements exist; places
        // overlap neither each other nor what the kernel reads.
        Some(unsafe { RawStorage::borrowed(machine.kernel().buffers[buffer].elem, data, len) })
    }

    /// Takes the values of a result that has a place. They are there already, or are copied there:
    /// private results of threads are combined elsewhere.
    pub(crate) fn receive(&self, k: usize, output: &Output, storages: &mut [Option<RawStorage>]) -> bool {
        let Some((data, len)) = self.places.get(k).copied().flatten().filter(|_| output.is_row_major()) else {
            return false;
        };
        let Some(storage) = output.values.and_then(|values| storages.get_mut(values)?.take()) else { return false };
        let raw = storage.raw();
        if raw.data != data {
            let bytes = len.min(raw.len) as usize * storage.element_size();
            // SAFETY: both have so many elements, and the storage is not the place.
            unsafe { data.copy_from_nonoverlapping(raw.data, bytes) };
        }
        true
    }

    /// Marks the places of results that are no tensors.
    pub(crate) fn mark(&self, machine: &BoundKernel, results: &Results, outputs: &mut [Option<OutputSlice>]) {
        let places = outputs.iter_mut().zip(&self.places).zip(machine.outputs());
        for ((slice, place), output) in places {
            if let Some(slice) = slice {
                slice.written = place.is_some() && results.get(&output.name).is_none();
            }
        }
    }
}

fn overlap(a: &Range<usize>, b: &Range<usize>) -> bool {
    a.start < b.end && b.start < a.end
}

/// True if an array of an argument lies in this memory.
fn shares(argument: &CallArgument, memory: &Range<usize>) -> bool {
    let range = |data: *const u8, bytes: usize| data as usize..data as usize + bytes;
    let values = argument
        .tensor
        .values()
        .map(|values| with_values!(values, x => range(x.as_ptr().cast(), std::mem::size_of_val(&x[..]))));
    let levels = argument.levels.iter().flat_map(|level| &level.arrays);
    let arrays =
        levels.map(|(_, array)| with_indices!(array, x => range(x.as_ptr().cast(), std::mem::size_of_val(&x[..]))));
    values.into_iter().chain(arrays).any(|other| overlap(&other, memory))
}

/// True if the values of a tensor are the elements of the place, in the same order.
fn is_same(tensor: &Tensor, slice: &OutputSlice) -> bool {
    *tensor.format() == Format::dense(tensor.rank())
        && tensor.shape() == slice.shape
        && tensor.dtype() == slice.dtype
        && tensor.values().is_some_and(|values| with_values!(values, x => x.as_ptr().cast::<u8>() == slice.data))
}

/// The kernel that updates these operands in place, from the cache or compiled.
fn kernel_in_place(
    program: &Program,
    machine: &BoundKernel,
    kernels: &InPlaceKernels,
    pairs: &[(usize, usize)],
    strict: bool,
) -> Option<Arc<CompiledKernel>> {
    let known = || kernels.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, kernel)) = known().iter().find(|(of, _)| of == pairs) {
        return kernel.clone();
    }
    let compile = || {
        let mut buffers = Vec::new();
        for (param, result) in pairs {
            if !schedule::is_elementwise_of(program, *program.params.get(*param)?, *program.results.get(*result)?) {
                return None;
            }
            let (input, output) = (machine.values_of_param(*param)?, machine.outputs()[*result].values?);
            buffers.push((BufferId(input as u32), BufferId(output as u32)));
        }
        let updated = opt::in_place(machine.kernel(), &opt::Options { strict, ..opt::Options::default() }, &buffers)?;
        let host = llvm::CodegenOptions::host().ok()?;
        Cache::global().get_or_compile(&updated, &host).ok().map(|(compiled, _)| compiled)
    };
    let kernel = compile();
    known().push((pairs.to_vec(), kernel.clone()));
    kernel
}
