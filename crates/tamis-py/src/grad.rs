//! Derivatives of index notation for Python: the statements, and what they read and compute.

use crate::einsum::or_raise;
use crate::program;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tamis::Notation;
use tamis::diagnostic::Source;
use tamis::grad::Differentiate;

/// The operands of index notation, and its results with their ranks.
type NotationNames = (Vec<String>, Vec<(String, usize)>);

/// Index notation whose operands have these names; NumPy's spelling calls its result `out`.
fn notation(text: &str, names: &[String]) -> Result<Notation, tamis::Diagnostics> {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    match Notation::is_einsum(text) {
        true => Notation::einsum(text, &names, "out"),
        false => Notation::parse_given(&Source::new("notation", text), &program::operators(), &names),
    }
}

/// The operands and the results of index notation, each result with its rank.
#[pyfunction]
pub(crate) fn notation_names(py: Python<'_>, text: &str, names: Vec<String>) -> PyResult<NotationNames> {
    let notation = or_raise(py, notation(text, &names))?;
    let rank = |result: &str| {
        let found = notation.assignments.iter().rev().find(|a| a.target.text == result);
        found.map_or(0, |a| a.subscripts.len())
    };
    let params = notation.params().into_iter().map(String::from).collect();
    let results = notation.results().into_iter().map(|result| (result.to_string(), rank(result))).collect();
    Ok((params, results))
}

/// The index notation of a loop program, and for each of its results that of the notation.
pub(crate) type LoopNotation = (String, Vec<(String, String)>);

/// The conversions of patterns: hits, misses, entries, bytes, and the limit in bytes.
#[pyfunction]
pub(crate) fn pattern_cache_info() -> (u64, u64, u64, u64, u64) {
    let info = tamis::cache::pattern_cache_info();
    (info.hits, info.misses, info.entries, info.bytes, info.limit)
}

/// Sets the bytes that conversions of patterns may take.
#[pyfunction]
pub(crate) fn set_pattern_cache_limit(bytes: u64) {
    tamis::cache::set_pattern_cache_limit(bytes);
}

/// The adjoint statements of index notation.
#[pyfunction]
#[pyo3(signature = (text, names, wrt, *, results, patterns, zero_fills, complex, save))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn adjoint<'py>(
    py: Python<'py>,
    text: &str,
    names: Vec<String>,
    wrt: Vec<String>,
    results: Vec<String>,
    patterns: Vec<String>,
    zero_fills: Vec<String>,
    complex: Vec<String>,
    save: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let request = Differentiate::new(wrt).results(results).patterns(patterns).zero_fills(zero_fills);
    let request = request.complex(complex).save(save).allow_zero(true);
    let made = or_raise(py, notation(text, &names).and_then(|notation| request.adjoint(&notation)))?;
    let out = PyDict::new(py);
    out.set_item("text", made.text)?;
    out.set_item("cotangents", made.cotangents)?;
    out.set_item("gradients", made.gradients)?;
    out.set_item("zeros", made.zeros)?;
    out.set_item("patterns", made.patterns)?;
    out.set_item("forward", made.forward)?;
    out.set_item("saved", made.saved)?;
    out.set_item("recomputed", made.recomputed)?;
    Ok(out)
}

/// The statements that compute the tangents of index notation.
#[pyfunction]
#[pyo3(signature = (text, names, wrt, *, complex))]
pub(crate) fn tangents<'py>(
    py: Python<'py>,
    text: &str,
    names: Vec<String>,
    wrt: Vec<String>,
    complex: Vec<String>,
) -> PyResult<Bound<'py, PyDict>> {
    let request = Differentiate::new(wrt).complex(complex).allow_zero(true);
    let made = or_raise(py, notation(text, &names).and_then(|notation| request.tangents(&notation)))?;
    let out = PyDict::new(py);
    out.set_item("text", made.text)?;
    out.set_item("operands", made.operands)?;
    out.set_item("results", made.results)?;
    out.set_item("zeros", made.zeros)?;
    Ok(out)
}
