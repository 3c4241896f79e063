//! The Rust of the README: `cargo run --release -p tamis --example quickstart`.

use tamis::prelude::*;

/// Multiplies a sparse matrix with itself element by element, and sums its rows.
pub fn main() -> Result<(), Diagnostics> {
    let entries = tamis::gallery::laplacian(100)?; // or tamis::io::read("matrix.mtx", ...)
    let a = Tensor::from_coordinates(&entries, &Format::csr(), 0.0.into(), Combine::Error)?;
    let y = tamis::einsum!("y[i] = A[i,j] * A[i,j]", A = &a)?.into_tensor()?;
    println!("{}", y.summary());
    Ok(())
}
