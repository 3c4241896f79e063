//! Index notation called from Python: operands become tensors, and what was prepared for a text is found again.

use crate::settings::{self, Settings};
use crate::tensor::{PyTensor, wrap};
use crate::{arrays, construct, errors, hooks, program, work};
use num_complex::Complex;
use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyComplex, PyComplexMethods, PyDict, PyFloat, PyInt, PyString, PyTuple};
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock, RwLock};
use tamis::schedule::Schedule;
use tamis::{Code, Diagnostic, Diagnostics, EinsumOptions, FormatSpec, Pins, Prepared, Tensor, Value};

/// How many texts are kept.
const KEPT: usize = 1024;

/// An operand: a tensor of Python's, or one that was made for this call.
pub(crate) enum Operand<'py> {
    Given(Bound<'py, PyTensor>),
    Made(Tensor),
}

impl<'py> Operand<'py> {
    /// A tensor for whatever was given; dense arrays are borrowed for the call.
    pub(crate) fn of(given: &Bound<'py, PyAny>) -> PyResult<Operand<'py>> {
        if let Ok(tensor) = given.cast::<PyTensor>() {
            return Ok(Operand::Given(tensor.clone()));
        }
        if let Ok(array) = given.cast_exact::<PyUntypedArray>()
            && arrays::is_plain(array)
            && arrays::dtype_of(&array.dtype()).is_some()
        {
            return Ok(Operand::Made(construct::dense(array, true)?.0));
        }
        if let Some(value) = number(given) {
            return Ok(Operand::Made(Tensor::literal(value)));
        }
        let Some(hooks) = hooks::get(given.py()) else {
            return Err(PyTypeError::new_err("a tensor was expected"));
        };
        let made = hooks.asarray.bind(given.py()).call1((given,))?;
        Ok(Operand::Given(made.cast_into::<PyTensor>()?))
    }

    pub(crate) fn tensor(&self) -> &Tensor {
        match self {
            Operand::Given(given) => &given.get().tensor,
            Operand::Made(tensor) => tensor,
        }
    }
}

/// A number of Python's own, whose type adapts; none for booleans, integers beyond 64 bits, and numbers of other libraries.
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

/// An operand that can be used while the interpreter is released.
pub(crate) enum Free {
    Given(Py<PyTensor>),
    Made(Tensor),
}

impl Free {
    pub(crate) fn tensor(&self) -> &Tensor {
        match self {
            Free::Given(given) => &given.get().tensor,
            Free::Made(tensor) => tensor,
        }
    }

    fn converted(&self, format: &tamis::Format) -> Result<Tensor, Diagnostic> {
        match self {
            Free::Given(given) => given.get().converted(format),
            Free::Made(tensor) => tensor.convert(format),
        }
    }
}

impl From<Operand<'_>> for Free {
    fn from(operand: Operand<'_>) -> Free {
        match operand {
            Operand::Given(given) => Free::Given(given.unbind()),
            Operand::Made(tensor) => Free::Made(tensor),
        }
    }
}

/// How much a call looks at.
pub(crate) fn entries(operands: &[Free]) -> usize {
    operands.iter().map(|operand| operand.tensor().nnz()).fold(0, usize::saturating_add)
}

/// Results as Python gets them: one, or several with names.
pub(crate) fn give(py: Python<'_>, mut results: Vec<(String, Tensor)>) -> PyResult<Bound<'_, PyAny>> {
    if results.len() == 1
        && let Some((_, tensor)) = results.pop()
    {
        return wrap(py, tensor, false);
    }
    let names = PyTuple::new(py, results.iter().map(|(name, _)| name))?;
    let tensors = results.into_iter().map(|(_, tensor)| wrap(py, tensor, false)).collect::<PyResult<Vec<_>>>()?;
    match hooks::get(py) {
        Some(hooks) => hooks.results.bind(py).call1((names, PyTuple::new(py, tensors)?)),
        None => Ok(PyTuple::new(py, tensors)?.into_any()),
    }
}

/// What a text is prepared with; whatever differs here is prepared on its own.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Wish {
    pub(crate) format: Vec<(Option<String>, String)>,
    pub(crate) order: Vec<String>,
    pub(crate) schedule: String,
    pub(crate) settings: Settings,
}

impl Wish {
    pub(crate) fn new(
        py: Python<'_>,
        format: Option<&Bound<'_, PyAny>>,
        order: Option<&Bound<'_, PyAny>>,
        schedule: Option<&str>,
    ) -> PyResult<Wish> {
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
        Ok(Wish { format, order, schedule, settings: settings::current(py)? })
    }

    fn prepare(&self, text: &str, names: &[&str]) -> Result<Prepared, Diagnostics> {
        let schedule = Schedule::parse(&self.schedule)?;
        let options = EinsumOptions {
            compile: self.settings.compile_options(schedule),
            pins: Pins { order: self.order.clone(), ..Pins::default() },
        };
        let mut prepared = Prepared::new(text, names, &program::operators(), options)?;
        for (name, format) in &self.format {
            let source = tamis::Source::new("format", format.as_str());
            let spec = FormatSpec::parse(format).map_err(|d| d.with_source(&source))?;
            prepared.pin(name.as_deref(), &spec)?;
        }
        check_order(&self.order, &prepared)?;
        Ok(prepared)
    }
}

/// Every index that the order names is one of the notation's.
fn check_order(order: &[String], prepared: &Prepared) -> Result<(), Diagnostic> {
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

/// A text with what was prepared for it.
struct Entry {
    text: String,
    /// How many operands came by position, and the names of the others.
    positional: usize,
    names: Vec<String>,
    wish: Wish,
    /// How many operators there were: what a text means depends on them.
    operators: u64,
    prepared: Prepared,
    /// For each parameter, which of the operands it is.
    places: Vec<usize>,
    waited: work::Waited,
}

type Store = RwLock<FxHashMap<u64, Vec<Arc<Entry>>>>;

fn store() -> &'static Store {
    static STORE: OnceLock<Store> = OnceLock::new();
    STORE.get_or_init(RwLock::default)
}

/// The notation of a call, prepared.
fn entry(text: &str, positional: usize, names: &[&str], wish: Wish) -> Result<Arc<Entry>, Diagnostics> {
    let operators = program::generation();
    let mut state = FxHasher::default();
    (text, positional, names, &wish, operators).hash(&mut state);
    let key = state.finish();
    let same = |entry: &&Arc<Entry>| {
        entry.text == text
            && entry.positional == positional
            && entry.names.len() == names.len()
            && entry.names.iter().zip(names).all(|(a, b)| a == b)
            && entry.operators == operators
            && entry.wish == wish
    };
    let known = store().read().ok().and_then(|kept| kept.get(&key).and_then(|list| list.iter().find(same).cloned()));
    if let Some(entry) = known {
        return Ok(entry);
    }
    let letters: Vec<String> = (0..positional).map(letter).collect();
    let given: Vec<&str> = letters.iter().map(String::as_str).chain(names.iter().copied()).collect();
    let prepared = wish.prepare(text, &given)?;
    let places = places(&prepared, positional, names)?;
    let names = names.iter().map(|name| name.to_string()).collect();
    let entry = Arc::new(Entry {
        text: text.to_string(),
        positional,
        names,
        wish,
        operators,
        prepared,
        places,
        waited: work::Waited::default(),
    });
    if let Ok(mut kept) = store().write() {
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

/// For each parameter, which of the operands it is: those by position come first.
fn places(prepared: &Prepared, positional: usize, names: &[&str]) -> Result<Vec<usize>, Diagnostic> {
    let params = prepared.params();
    if let Some(unknown) = names.iter().find(|name| !params.iter().any(|param| param == *name)) {
        let d = Diagnostic::new(Code::E0903, format!("the notation does not read `{unknown}`"));
        return Err(d.help(format!("it reads {}", params.join(", "))));
    }
    let mut free = 0..positional;
    let mut places = Vec::new();
    for param in params {
        let named = names.iter().position(|name| name == param).map(|k| positional + k);
        places.push(named.or_else(|| free.next()).ok_or_else(|| {
            Diagnostic::new(Code::E0902, format!("`{param}` was given no tensor"))
                .help(format!("pass {}", params.join(", ")))
        })?);
    }
    match free.next() {
        None => Ok(places),
        Some(_) => {
            let message = format!("the notation reads {} tensors, not {}", params.len(), positional + names.len());
            Err(Diagnostic::new(Code::E0902, message).help(format!("pass {}", params.join(", "))))
        }
    }
}

/// Operands by position and by name.
pub(crate) struct Given<'py> {
    pub(crate) names: Vec<Bound<'py, PyString>>,
    pub(crate) operands: Vec<Operand<'py>>,
}

impl<'py> Given<'py> {
    pub(crate) fn new(operands: &Bound<'py, PyTuple>, tensors: Option<&Bound<'py, PyDict>>) -> PyResult<Given<'py>> {
        let mut given = Given { names: Vec::new(), operands: Vec::with_capacity(operands.len() + 2) };
        for operand in operands.iter_borrowed() {
            given.operands.push(Operand::of(&operand)?);
        }
        for (name, operand) in tensors.into_iter().flat_map(|tensors| tensors.iter()) {
            given.operands.push(Operand::of(&operand)?);
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
    let given = Given::new(operands, tensors)?;
    let names = given.names.iter().map(|name| name.to_str()).collect::<PyResult<Vec<_>>>()?;
    let wish = Wish::new(py, format, order, schedule)?;
    let entry = work::here(py, || entry(text, operands.len(), &names, wish))?;
    drop(names);
    let free: Vec<Free> = given.operands.into_iter().map(Free::from).collect();
    let looked_at = entries(&free);
    let long = (looked_at > work::LONG || entry.is_costly(&free)) && !entry.waited.is_short(looked_at);
    let called = entry.clone();
    let compute = move || entry.waited.time(looked_at, || entry.compute(&free));
    let results = match long {
        false => work::run(py, compute)?,
        true => work::run_long(py, compute)?,
    };
    errors::warn(py, &called.prepared.take_warnings())?;
    give(py, results)
}

impl Entry {
    fn ordered<'a>(&self, operands: &'a [Free]) -> Vec<&'a Free> {
        self.places.iter().filter_map(|place| operands.get(*place)).collect()
    }

    /// Whether it is known to take long.
    fn is_costly(&self, operands: &[Free]) -> bool {
        let refs: Vec<&Tensor> = self.ordered(operands).iter().map(|operand| operand.tensor()).collect();
        self.prepared.cost(&refs).is_some_and(|cost| cost > COSTLY)
    }

    fn compute(&self, operands: &[Free]) -> Result<Vec<(String, Tensor)>, Diagnostics> {
        let ordered = self.ordered(operands);
        let refs: Vec<&Tensor> = ordered.iter().map(|operand| operand.tensor()).collect();
        let convert = |k: usize, format: &tamis::Format| match ordered.get(k) {
            Some(operand) => operand.converted(format),
            None => {
                Err(Diagnostic::new(Code::E1101, "a schedule converts what was not given").help("please report it"))
            }
        };
        self.prepared.call(&refs, &convert)
    }
}

/// A schedule that is expected to take so many steps takes some hundredths of a second.
const COSTLY: f64 = 5e7;

/// The notation of a call and its tensors in order, for explaining it.
pub(crate) fn prepared(
    text: &str,
    positional: usize,
    names: &[&str],
    wish: &Wish,
) -> Result<(Prepared, Vec<usize>), Diagnostics> {
    let letters: Vec<String> = (0..positional).map(letter).collect();
    let given: Vec<&str> = letters.iter().map(String::as_str).chain(names.iter().copied()).collect();
    let prepared = wish.prepare(text, &given)?;
    let places = places(&prepared, positional, names)?;
    Ok((prepared, places))
}

/// Raises what was found.
pub(crate) fn told<T>(py: Python<'_>, result: Result<T, Diagnostics>) -> PyResult<T> {
    result.map_err(|diagnostics| errors::raise(py, &diagnostics))
}
