//! Python bindings: the compiled module `tamis._tamis` below the Python package `tamis`.
//!
//! This crate holds what Python cannot do: zero-copy arrays (`arrays`), the tensor class
//! (`tensor`), calls that release the interpreter (`work`), and exceptions (`errors`). It also holds
//! what loops over tensors cannot say in their own language: rows copied as they are (`rows`),
//! incomplete factorisations (`factor`), and traversals of graphs (`graph`). Names, defaults and
//! documentation belong to the package.
#![allow(missing_docs)] // The Python package holds the users' documentation.

mod arrays;
mod construct;
mod einsum;
mod errors;
mod explain;
mod factor;
mod files;
mod grad;
mod graph;
mod hooks;
mod operators;
mod program;
mod rows;
mod settings;
mod tensor;
mod work;

use pyo3::prelude::*;

#[pymodule]
fn _tamis(module: &Bound<'_, PyModule>) -> PyResult<()> {
    work::catch_panics();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<tensor::PyTensor>()?;
    module.add_class::<program::PyProgram>()?;
    module.add_class::<program::PyOperator>()?;
    module.add_class::<explain::PyExplanation>()?;
    module.add_function(wrap_pyfunction!(hooks::install, module)?)?;
    module.add_function(wrap_pyfunction!(settings::set_settings, module)?)?;
    module.add_function(wrap_pyfunction!(settings::threads_mistaken, module)?)?;
    module.add_function(wrap_pyfunction!(settings::count_scopes, module)?)?;
    module.add_function(wrap_pyfunction!(work::forked, module)?)?;
    module.add_function(wrap_pyfunction!(construct::from_dense, module)?)?;
    module.add_function(wrap_pyfunction!(construct::from_coordinates, module)?)?;
    module.add_function(wrap_pyfunction!(construct::from_parts, module)?)?;
    module.add_function(wrap_pyfunction!(factor::factorised, module)?)?;
    module.add_function(wrap_pyfunction!(factor::substituted, module)?)?;
    module.add_function(wrap_pyfunction!(graph::components, module)?)?;
    module.add_function(wrap_pyfunction!(graph::breadth_first, module)?)?;
    module.add_function(wrap_pyfunction!(graph::dijkstra, module)?)?;
    module.add_function(wrap_pyfunction!(graph::core_numbers, module)?)?;
    module.add_function(wrap_pyfunction!(rows::join_rows, module)?)?;
    module.add_function(wrap_pyfunction!(rows::take_rows, module)?)?;
    module.add_function(wrap_pyfunction!(rows::flip_rows, module)?)?;
    module.add_function(wrap_pyfunction!(einsum::einsum, module)?)?;
    module.add_function(wrap_pyfunction!(einsum::einsum_into, module)?)?;
    module.add_function(wrap_pyfunction!(einsum::einsum_array, module)?)?;
    module.add_function(wrap_pyfunction!(einsum::einsum_parts, module)?)?;
    module.add_function(wrap_pyfunction!(einsum::abstract_einsum, module)?)?;
    module.add_function(wrap_pyfunction!(einsum::expand_subscripts, module)?)?;
    module.add_function(wrap_pyfunction!(program::define, module)?)?;
    module.add_function(wrap_pyfunction!(explain::explain_notation, module)?)?;
    module.add_function(wrap_pyfunction!(explain::explain_program, module)?)?;
    module.add_function(wrap_pyfunction!(grad::notation_names, module)?)?;
    module.add_function(wrap_pyfunction!(grad::adjoint, module)?)?;
    module.add_function(wrap_pyfunction!(grad::pattern_cache_info, module)?)?;
    module.add_function(wrap_pyfunction!(grad::set_pattern_cache_limit, module)?)?;
    module.add_function(wrap_pyfunction!(grad::tangents, module)?)?;
    module.add_function(wrap_pyfunction!(files::read, module)?)?;
    module.add_function(wrap_pyfunction!(files::write, module)?)?;
    module.add_function(wrap_pyfunction!(files::generate, module)?)?;
    module.add_function(wrap_pyfunction!(files::generators, module)?)?;
    module.add_function(wrap_pyfunction!(files::advise, module)?)?;
    module.add_function(wrap_pyfunction!(errors::raise_error, module)?)?;
    module.add_function(wrap_pyfunction!(operators::operators, module)?)?;
    module.add_function(wrap_pyfunction!(errors::codes, module)?)?;
    Ok(())
}
