//! Index notation called from Python: operands become tensors, and prepared notation is memoised.
//!
//! The key of the memo is the text, the names of the operands, the options, and the state of the
//! user-defined operators. A call releases the interpreter.

use crate::settings::{self, Settings};
use crate::tensor::{PyTensor, give, is_row_major, wrap};
use crate::{arrays, construct, errors, hooks, program, work};
use num_complex::Complex;
use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyComplex, PyComplexMethods, PyDict, PyFloat, PyInt, PyString, PyTuple};
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock, RwLock};
use tamis::diagnostic::Code;
use tamis::format::FormatSpec;
use tamis::notation::{EinsumOptions, Pins, PreparedNotation};
use tamis::schedule::Schedule;
use tamis::{Diagnostic, Diagnostics, Results, Tensor, Value};

/// The maximum number of memoised texts; beyond, all are evicted.
const KEPT: usize = 1024;

/// An operand: a Python tensor, or a tensor that was made for this call.
pub(crate) enum CallOperand<'py> {
    Given(Bound<'py, PyTensor>),
    Made(Tensor),
}

impl<'py> CallOperand<'py> {
    /// Makes an operand of any argument. Dense arrays are borrowed for the call.
    pub(crate) fn of(given: &Bound<'py, PyAny>) -> PyResult<CallOperand<'py>> {
        if let Ok(tensor) = given.cast::<PyTensor>() {
            return Ok(CallOperand::Given(tensor.clone()));
        }
        if let Ok(array) = given.cast_exact::<PyUntypedArray>()
            && arrays::is_plain(array)
            && arrays::dtype_of(&array.dtype()).is_some()
        {
            return Ok(CallOperand::Made(construct::dense(array, true)?.0));
        }
        if let Some(value) = number(given) {
            return Ok(CallOperand::Made(Tensor::literal(value)));
        }
        let Some(hooks) = hooks::get(given.py()) else {
            return Err(PyTypeError::new_err("a tensor was expected"));
        };
        let made = hooks.asarray.bind(given.py()).call1((given,))?;
        Ok(CallOperand::Given(made.cast_into::<PyTensor>()?))
    }

    pub(crate) fn tensor(&self) -> &Tensor {
        match self {
            CallOperand::Given(given) => &given.get().tensor,
            CallOperand::Made(tensor) => tensor,
        }
    }
}

/// A built-in Python number, a literal whose type adapts; none for booleans, integers beyond 64
/// bits, and numbers of other libraries.
fn number(given: &Bound<'_, PyAny>) -> Option<Value> {
    if let Ok(float) = given.cast_exact::<PyFloat>() {
        return Some(Value::F64(float.value()));
    }
    if given.is_exact_instance_of::<PyInt>() {
        let signed = given.extract::<i64>().ok().map(Value::I64);
        return signed.or_else(|| given.extract::<u64>().ok().map(Value::U64));
    }
    given.cast_exact::<PyComplex>().ok().map(|c| Value::C128(Complex::new(c.real(), c.imag())))
}

/// An operand that is usable while the interpreter is released.
pub(crate) enum DetachedOperand {
    Given(Py<PyTensor>),
    Made(Tensor),
}

impl DetachedOperand {
    pub(crate) fn tensor(&self) -> &Tensor {
        match self {
            DetachedOperand::Given(given) => &given.get().tensor,
            DetachedOperand::Made(tensor) => tensor,
        }
    }

    fn converted(&self, format: &tamis::Format) -> Result<Tensor, Diagnostic> {
        match self {
            DetachedOperand::Given(given) => given.get().converted(format),
            DetachedOperand::Made(tensor) => tensor.convert(format),
        }
    }
}

impl From<CallOperand<'_>> for DetachedOperand {
    fn from(operand: CallOperand<'_>) -> DetachedOperand {
        match operand {
            CallOperand::Given(given) => DetachedOperand::Given(given.unbind()),
            CallOperand::Made(tensor) => DetachedOperand::Made(tensor),
        }
    }
}

/// The stored elements of all operands.
pub(crate) fn total_nnz(operands: &[DetachedOperand]) -> usize {
    operands.iter().map(|operand| operand.tensor().nnz()).fold(0, usize::saturating_add)
}

/// Results as Python objects: a tensor, or a named tuple of several.
pub(crate) fn to_python(py: Python<'_>, results: Results) -> PyResult<Bound<'_, PyAny>> {
    let names = PyTuple::new(py, results.names())?;
    let tensors = results.into_tensors().into_iter().map(|tensor| wrap(py, tensor, false));
    let mut tensors = tensors.collect::<PyResult<Vec<_>>>()?;
    if tensors.len() == 1 {
        return Ok(tensors.swap_remove(0));
    }
    match hooks::get(py) {
        Some(hooks) => hooks.results.bind(py).call1((names, PyTuple::new(py, tensors)?)),
        None => Ok(PyTuple::new(py, tensors)?.into_any()),
    }
}

/// The options of a call, a part of the memo's key.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct EinsumRequest {
    pub(crate) format: Vec<(Option<String>, String)>,
    pub(crate) order: Vec<String>,
    pub(crate) schedule: String,
    pub(crate) settings: Settings,
}

impl EinsumRequest {
    pub(crate) fn new(
        py: Python<'_>,
        format: Option<&Bound<'_, PyAny>>,
        order: Option<&Bound<'_, PyAny>>,
        schedule: Option<&str>,
    ) -> PyResult<EinsumRequest> {
        let format = match format.filter(|format| !format.is_none()) {
            None => Vec::new(),
            Some(one) if one.is_instance_of::<PyString>() => vec![(None, one.extract()?)],
            Some(several) => {
                let given: Vec<(String, String)> = several
                    .cast::<PyDict>()?
                    .iter()
                    .map(|(name, format)| Ok((name.extract()?, format.extract()?)))
                    .collect::<PyResult<_>>()?;
                given.into_iter().map(|(name, format)| (Some(name), format)).collect()
            }
        };
        let order = match order.filter(|order| !order.is_none()) {
            None => Vec::new(),
            Some(text) if text.is_instance_of::<PyString>() => {
                let text: String = text.extract()?;
                text.split([',', ' ']).filter(|part| !part.is_empty()).map(String::from).collect()
            }
            Some(names) => names.extract()?,
        };
        let schedule = schedule.unwrap_or_default().to_string();
        Ok(EinsumRequest { format, order, schedule, settings: settings::current(py)? })
    }

    fn prepare(&self, text: &str, names: &[&str]) -> Result<PreparedNotation, Diagnostics> {
        let schedule = Schedule::parse(&self.schedule)?;
        let options = EinsumOptions {
            compile: self.settings.compile_options(schedule),
            pins: Pins { order: self.order.clone(), ..Pins::default() },
        };
        let mut prepared = PreparedNotation::new(text, names, &program::operators(), options)?;
        for (name, format) in &self.format {
            let source = tamis::diagnostic::Source::new("format", format.as_str());
            let spec = FormatSpec::parse(format).map_err(|d| d.with_source(&source))?;
            prepared.pin(name.as_deref(), &spec)?;
        }
        check_order(&self.order, &prepared)?;
        Ok(prepared)
    }
}

/// Checks that every index of an order is one of the notation's.
fn check_order(order: &[String], prepared: &PreparedNotation) -> Result<(), Diagnostic> {
    let indices: Vec<String> = prepared.notation().assignments.iter().flat_map(|a| a.indices()).collect();
    match order.iter().find(|index| !indices.contains(index)) {
        None => Ok(()),
        Some(unknown) => {
            let mut known: Vec<&str> = Vec::new();
            indices.iter().for_each(|index| {
                if !known.contains(&index.as_str()) {
                    known.push(index)
                }
            });
            Err(Diagnostic::new(Code::E1202, format!("the notation has no index `{unknown}`"))
                .help(format!("its indices are {}", known.join(", "))))
        }
    }
}

/// Memoised notation with its key.
struct CachedEinsum {
    text: String,
    /// The number of operands by position; the others have names.
    positional: usize,
    names: Vec<String>,
    request: EinsumRequest,
    /// The generation of the user-defined operators, which texts depend on.
    operators: u64,
    prepared: PreparedNotation,
    /// For each parameter, the position of its operand.
    positions: Vec<usize>,
    call_times: work::CallTimes,
}

type Memo = RwLock<FxHashMap<u64, Vec<Arc<CachedEinsum>>>>;

fn memo() -> &'static Memo {
    static MEMO: OnceLock<Memo> = OnceLock::new();
    MEMO.get_or_init(RwLock::default)
}

/// The prepared notation of a call, from the memo or parsed.
fn entry(
    text: &str,
    positional: usize,
    names: &[&str],
    request: EinsumRequest,
) -> Result<Arc<CachedEinsum>, Diagnostics> {
    let operators = program::generation();
    let mut state = FxHasher::default();
    (text, positional, names, &request, operators).hash(&mut state);
    let key = state.finish();
    let same = |entry: &&Arc<CachedEinsum>| {
        entry.text == text
            && entry.positional == positional
            && entry.names.len() == names.len()
            && entry.names.iter().zip(names).all(|(a, b)| a == b)
            && entry.operators == operators
            && entry.request == request
    };
    let memoised = memo().read().ok().and_then(|kept| kept.get(&key).and_then(|list| list.iter().find(same).cloned()));
    if let Some(entry) = memoised {
        return Ok(entry);
    }
    let letters: Vec<String> = (0..positional).map(letter).collect();
    let given: Vec<&str> = letters.iter().map(String::as_str).chain(names.iter().copied()).collect();
    let prepared = request.prepare(text, &given)?;
    let positions = positions(&prepared, positional, names)?;
    let names = names.iter().map(|name| name.to_string()).collect();
    let entry = Arc::new(CachedEinsum {
        text: text.to_string(),
        positional,
        names,
        request,
        operators,
        prepared,
        positions,
        call_times: work::CallTimes::default(),
    });
    if let Ok(mut kept) = memo().write() {
        if kept.len() >= KEPT {
            kept.clear();
        }
        kept.entry(key).or_default().push(entry.clone());
    }
    Ok(entry)
}

/// Names for operands that are given by position.
fn letter(k: usize) -> String {
    let letter = char::from(b'A' + (k % 26) as u8);
    if k < 26 { letter.to_string() } else { format!("{letter}{}", k / 26) }
}

/// For each parameter, the position of its operand. Operands by position come first.
fn positions(prepared: &PreparedNotation, positional: usize, names: &[&str]) -> Result<Vec<usize>, Diagnostic> {
    let params = prepared.params();
    if let Some(unknown) = names.iter().find(|name| !params.iter().any(|param| param == *name)) {
        let d = Diagnostic::new(Code::E0903, format!("the notation does not read `{unknown}`"));
        return Err(d.help(format!("it reads {}", params.join(", "))));
    }
    let mut free = 0..positional;
    let mut positions = Vec::new();
    for param in params {
        let named = names.iter().position(|name| name == param).map(|k| positional + k);
        positions.push(named.or_else(|| free.next()).ok_or_else(|| {
            Diagnostic::new(Code::E0902, format!("`{param}` was given no tensor"))
                .help(format!("pass {}", params.join(", ")))
        })?);
    }
    match free.next() {
        None => Ok(positions),
        Some(_) => {
            let message = format!("the notation reads {} tensors, not {}", params.len(), positional + names.len());
            Err(Diagnostic::new(Code::E0902, message).help(format!("pass {}", params.join(", "))))
        }
    }
}

/// Operands by position and by name.
pub(crate) struct CallArguments<'py> {
    pub(crate) names: Vec<Bound<'py, PyString>>,
    pub(crate) operands: Vec<CallOperand<'py>>,
}

impl<'py> CallArguments<'py> {
    pub(crate) fn new(
        operands: &Bound<'py, PyTuple>,
        tensors: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<CallArguments<'py>> {
        let mut given = CallArguments { names: Vec::new(), operands: Vec::with_capacity(operands.len() + 2) };
        for operand in operands.iter_borrowed() {
            given.operands.push(CallOperand::of(&operand)?);
        }
        for (name, operand) in tensors.into_iter().flat_map(|tensors| tensors.iter()) {
            given.operands.push(CallOperand::of(&operand)?);
            given.names.push(name.cast_into::<PyString>()?);
        }
        Ok(given)
    }
}

/// Computes index notation.
#[pyfunction]
#[pyo3(signature = (text, /, *operands, format=None, order=None, schedule=None, **tensors))]
pub(crate) fn einsum<'py>(
    py: Python<'py>,
    text: &str,
    operands: &Bound<'py, PyTuple>,
    format: Option<&Bound<'py, PyAny>>,
    order: Option<&Bound<'py, PyAny>>,
    schedule: Option<&str>,
    tensors: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let request = EinsumRequest::new(py, format, order, schedule)?;
    to_python(py, computed(py, text, operands, tensors, request, Vec::new())?.results)
}

/// Computes index notation into arrays, one for each result. Gives a tensor for each result that
/// was not written to its array, and none for the others. If there are not as many results as
/// arrays, all of them are tensors.
#[pyfunction]
#[pyo3(signature = (text, outputs, /, *operands, format=None, order=None, schedule=None, **tensors))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn einsum_into<'py>(
    py: Python<'py>,
    text: &str,
    outputs: Vec<Bound<'py, PyAny>>,
    operands: &Bound<'py, PyTuple>,
    format: Option<&Bound<'py, PyAny>>,
    order: Option<&Bound<'py, PyAny>>,
    schedule: Option<&str>,
    tensors: Option<&Bound<'py, PyDict>>,
) -> PyResult<Vec<Option<Bound<'py, PyAny>>>> {
    let request = EinsumRequest::new(py, format, order, schedule)?;
    let places = outputs.iter().map(arrays::Place::of).collect();
    let computed = computed(py, text, operands, tensors, request, places)?;
    let mut tensors = computed.results.into_tensors().into_iter();
    let mut made = Vec::new();
    for written in computed.written {
        if written {
            made.push(None);
        } else if let Some(tensor) = tensors.next() {
            made.push(Some(wrap(py, tensor, false)?));
        }
    }
    made.extend(tensors.map(|tensor| wrap(py, tensor, false).map(Some)).collect::<PyResult<Vec<_>>>()?);
    Ok(made)
}

/// Computes index notation with one result: a writable array if it is dense, else a tensor.
#[pyfunction]
#[pyo3(signature = (text, /, *operands, format=None))]
pub(crate) fn einsum_array<'py>(
    py: Python<'py>,
    text: &str,
    operands: &Bound<'py, PyTuple>,
    format: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let request = EinsumRequest::new(py, format, None, None)?;
    let results = computed(py, text, operands, None, request, Vec::new())?.results;
    let tensor = results.into_tensor().map_err(|d| errors::raise_one(py, d))?;
    if is_row_major(&tensor) { give(py, tensor) } else { wrap(py, tensor, false) }
}

/// Computes index notation for another library's tensors: each result as a writable array if it is
/// dense, else as its sparsity pattern, a writable array of its values, and its fill. Nothing is
/// copied unless an operand shares the memory.
#[pyfunction]
#[pyo3(signature = (text, /, *, format=None, order=None, schedule=None, **tensors))]
pub(crate) fn einsum_parts<'py>(
    py: Python<'py>,
    text: &str,
    format: Option<&Bound<'py, PyAny>>,
    order: Option<&Bound<'py, PyAny>>,
    schedule: Option<&str>,
    tensors: Option<&Bound<'py, PyDict>>,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let request = EinsumRequest::new(py, format, order, schedule)?;
    let results = computed(py, text, &PyTuple::empty(py), tensors, request, Vec::new())?.results;
    results.into_tensors().into_iter().map(|tensor| parts(py, tensor)).collect()
}

/// A tensor as a writable array, or as a sparsity pattern, its values and its fill.
fn parts(py: Python<'_>, tensor: Tensor) -> PyResult<Bound<'_, PyAny>> {
    if is_row_major(&tensor) {
        return give(py, tensor);
    }
    let pattern = tensor.pattern().map_err(|d| errors::raise_one(py, d))?;
    let (values, fill) = (tensor.values().cloned(), tensor.fill());
    let Some(values) = values else { return wrap(py, tensor, false) };
    drop(tensor);
    let count = values.len() as u64;
    let values = arrays::give_values(py, values, &[count])?;
    let parts = (wrap(py, pattern, false)?, values, arrays::scalar(py, fill)?);
    Ok(parts.into_pyobject(py)?.into_any())
}

/// The results of a call: tensors, and for each place whether its result was written there.
struct Computed {
    results: Results,
    written: Vec<bool>,
}

fn computed<'py>(
    py: Python<'py>,
    text: &str,
    operands: &Bound<'py, PyTuple>,
    tensors: Option<&Bound<'py, PyDict>>,
    request: EinsumRequest,
    places: Vec<Option<arrays::Place>>,
) -> PyResult<Computed> {
    let given = CallArguments::new(operands, tensors)?;
    let names = given.names.iter().map(|name| name.to_str()).collect::<PyResult<Vec<_>>>()?;
    let entry = work::run_attached(py, || entry(text, operands.len(), &names, request))?;
    drop(names);
    let detached: Vec<DetachedOperand> = given.operands.into_iter().map(DetachedOperand::from).collect();
    let nnz = total_nnz(&detached);
    let long = (nnz > work::LONG || entry.is_costly(&detached)) && !entry.call_times.is_short(nnz);
    let called = entry.clone();
    let compute = move || entry.call_times.time(nnz, || entry.compute(&detached, &places));
    let results = match long {
        false => work::run(py, compute)?,
        true => work::run_long(py, compute)?,
    };
    errors::warn(py, &called.prepared.take_warnings())?;
    Ok(results)
}

impl CachedEinsum {
    fn ordered<'a>(&self, operands: &'a [DetachedOperand]) -> Vec<&'a DetachedOperand> {
        self.positions.iter().filter_map(|position| operands.get(*position)).collect()
    }

    /// True if its predicted cost is high.
    fn is_costly(&self, operands: &[DetachedOperand]) -> bool {
        let refs: Vec<&Tensor> = self.ordered(operands).iter().map(|operand| operand.tensor()).collect();
        self.prepared.cost(&refs).is_some_and(|cost| cost > COSTLY)
    }

    fn compute(&self, operands: &[DetachedOperand], places: &[Option<arrays::Place>]) -> Result<Computed, Diagnostics> {
        let ordered = self.ordered(operands);
        let refs: Vec<&Tensor> = ordered.iter().map(|operand| operand.tensor()).collect();
        let convert = |k: usize, format: &tamis::Format| match ordered.get(k) {
            Some(operand) => operand.converted(format),
            None => {
                Err(Diagnostic::new(Code::E1101, "a schedule converts what was not given").help("please report it"))
            }
        };
        // SAFETY: the arrays live as long as their places. As with every function of NumPy's that
        // writes, no other thread of the caller uses them meanwhile.
        let slices = places.iter().map(|place| place.as_ref().map(|place| unsafe { place.slice() }));
        let mut slices: Vec<_> = slices.collect();
        let results = self.prepared.call_into(&refs, &convert, &mut slices)?;
        let written = slices.iter().map(|slice| slice.as_ref().is_some_and(|slice| slice.is_written())).collect();
        Ok(Computed { results, written })
    }
}

/// A schedule of this predicted cost, in steps, runs for tens of milliseconds.
const COSTLY: f64 = 5e7;

/// The notation of a call and its tensors in order, for explaining it.
pub(crate) fn prepared(
    text: &str,
    positional: usize,
    names: &[&str],
    request: &EinsumRequest,
) -> Result<(PreparedNotation, Vec<usize>), Diagnostics> {
    let letters: Vec<String> = (0..positional).map(letter).collect();
    let given: Vec<&str> = letters.iter().map(String::as_str).chain(names.iter().copied()).collect();
    let prepared = request.prepare(text, &given)?;
    let positions = positions(&prepared, positional, names)?;
    Ok((prepared, positions))
}

/// The abstract evaluation of index notation: its statements in static single assignment form, each
/// operand's name with its place among the arguments, and the name, sizes and type of each result.
type AbstractEinsum = (Vec<String>, Vec<(String, usize)>, Vec<(String, Vec<u64>, String)>);

/// Checks index notation for operands of these sizes and types; computes nothing.
#[pyfunction]
#[pyo3(signature = (text, /, *operands, **tensors))]
pub(crate) fn abstract_einsum<'py>(
    py: Python<'py>,
    text: &str,
    operands: &Bound<'py, PyTuple>,
    tensors: Option<&Bound<'py, PyDict>>,
) -> PyResult<AbstractEinsum> {
    let given = CallArguments::new(operands, tensors)?;
    let names = given.names.iter().map(|name| name.to_str()).collect::<PyResult<Vec<_>>>()?;
    let request = EinsumRequest::new(py, None, None, None)?;
    let (prepared, positions) = or_raise(py, prepared(text, operands.len(), &names, &request))?;
    let notation = prepared.notation();
    let refs: Vec<&Tensor> = positions.iter().map(|position| given.operands[*position].tensor()).collect();
    let checked = || -> Result<_, Diagnostics> {
        let program = tamis::notation::reference_program(notation, &refs)?;
        let types: Vec<_> = refs.iter().map(|tensor| tamis_ir::interp::param_type(*tensor)).collect();
        let checked = program.check(&types)?;
        Ok((program, checked))
    };
    let (program, checked) = or_raise(py, checked())?;
    let result = |id: &tamis_ir::program::TensorId| {
        let (name, shape) = (program.tensor(*id).name.clone(), checked.extents.shapes[id.index()].clone());
        (name, shape, checked.types.tensors[id.index()].to_string())
    };
    let operands = notation.operands().into_iter().map(String::from).zip(positions).collect();
    let statements = notation.assignments.iter().map(ToString::to_string).collect();
    Ok((statements, operands, program.results.iter().map(result).collect()))
}

/// Einsum subscripts as index notation for operands with these shapes, which may be truth values;
/// and for each operand, the dimensions of size 1 to squeeze.
#[pyfunction]
pub(crate) fn expand_subscripts(
    py: Python<'_>,
    text: &str,
    operands: Vec<(Vec<u64>, bool)>,
) -> PyResult<(String, Vec<Vec<usize>>)> {
    let operand = |(k, (shape, boolean))| tamis_ir::notation::EinsumOperand { name: format!("x{k}"), shape, boolean };
    let operands: Vec<_> = operands.into_iter().enumerate().map(operand).collect();
    let expanded = tamis::Notation::expand_einsum(text, &operands, "out");
    let expanded = expanded.map_err(|d| errors::raise_one(py, d))?;
    let squeezed = |(_, own): &(String, Vec<Option<String>>)| {
        own.iter().enumerate().filter(|(_, index)| index.is_none()).map(|(d, _)| d).collect()
    };
    Ok((expanded.text_of_squeezed(), expanded.operands.iter().map(squeezed).collect()))
}

/// The value of a result, or its diagnostics as an exception.
pub(crate) fn or_raise<T>(py: Python<'_>, result: Result<T, Diagnostics>) -> PyResult<T> {
    result.map_err(|diagnostics| errors::raise(py, &diagnostics))
}
