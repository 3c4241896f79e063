//! The operator table for Python: the package makes its elementwise functions of these rows.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use tamis_ir::algebra::{Constant, OpInfo, TABLE, Typing};

/// One dictionary per operator: its name, its spelling, and what the package needs to know of it.
#[pyfunction]
pub(crate) fn operators(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    TABLE.iter().map(|row| describe(py, row)).collect()
}

fn describe<'py>(py: Python<'py>, row: &OpInfo) -> PyResult<Bound<'py, PyDict>> {
    let count = row.arity.0;
    let text = match (row.python.text, row.symbol) {
        (Some(text), _) => text.to_string(),
        (None, Some(symbol)) if count == 1 => format!("{symbol}{{0}}"),
        (None, Some(symbol)) => format!("{{0}} {symbol} {{1}}"),
        (None, None) => {
            let operands: Vec<String> = (0..count).map(|k| format!("{{{k}}}")).collect();
            format!("{}({})", row.name, operands.join(", "))
        }
    };
    let entry = PyDict::new(py);
    entry.set_item("name", row.name)?;
    entry.set_item("function", row.python.name)?;
    entry.set_item("ufuncs", row.python.ufuncs.to_vec())?;
    entry.set_item("aliases", row.aliases.to_vec())?;
    entry.set_item("symbol", row.symbol)?;
    entry.set_item("operands", count)?;
    entry.set_item("text", text)?;
    entry.set_item("booleans", if row.python.refuses_booleans { Some("") } else { row.python.booleans })?;
    entry.set_item("complexes", row.python.complexes)?;
    entry.set_item("annihilates", row.annihilator == Some(Constant::Zero))?;
    entry.set_item("compares", matches!(row.typing, Typing::Comparison { .. }))?;
    entry.set_item("summary", row.summary)?;
    Ok(entry)
}
