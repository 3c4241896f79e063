//! Incomplete factorisations without fill-in, ILU(0) and IC(0), and triangular solution by
//! substitution, of square CSR matrices of `f64`.
//!
//! A factorisation keeps the pattern of its matrix. A pivot that is missing or zero, or not positive
//! in IC(0), is a diagnostic.

use crate::rows::Rows;
use crate::tensor::{PyTensor, wrap};
use crate::{arrays, errors, work};
use numpy::PyUntypedArray;
use pyo3::prelude::*;
use tamis::diagnostic::Code;
use tamis::tensor::{LevelArrays, ValueArray};
use tamis::{Diagnostic, Tensor};

/// A square matrix by rows, with the position of each row's diagonal element.
struct Matrix {
    pos: Vec<u64>,
    crd: Vec<u64>,
    values: Vec<f64>,
    diagonal: Vec<usize>,
}

impl Matrix {
    fn of(tensor: &Tensor) -> Result<Matrix, Diagnostic> {
        let rows = Rows::of(tensor)?;
        if tensor.shape()[0] != tensor.shape()[1] {
            let d = Diagnostic::new(Code::E0402, format!("a matrix of shape {:?} is not square", tensor.shape()));
            return Err(d.help("give a square matrix"));
        }
        let Some(ValueArray::F64(values)) = rows.values else {
            let d = Diagnostic::new(Code::E0308, format!("values of type {} are not factorised", tensor.dtype()));
            return Err(d.help("convert them first: `t.astype('f64')`"));
        };
        let (pos, crd) = (rows.pos.to_vec(), rows.crd.to_vec());
        let mut diagonal = Vec::with_capacity(pos.len());
        for row in 0..pos.len().saturating_sub(1) {
            let (first, last) = (pos[row] as usize, pos[row + 1] as usize);
            match crd[first..last].binary_search(&(row as u64)) {
                Ok(place) => diagonal.push(first + place),
                Err(_) => return Err(no_pivot(row, "is not stored")),
            }
        }
        Ok(Matrix { pos, crd, values: values.to_vec(), diagonal })
    }

    fn size(&self) -> usize {
        self.diagonal.len()
    }

    fn row(&self, k: usize) -> std::ops::Range<usize> {
        self.pos[k] as usize..self.pos[k + 1] as usize
    }

    /// ILU(0) in place: the strict lower triangle is L with a unit diagonal, the rest is U.
    fn incomplete_lu(&mut self) -> Result<(), Diagnostic> {
        // For each column, one more than the position of the element of the current row; 0 for none.
        let mut at = vec![0usize; self.size()];
        for row in 0..self.size() {
            self.row(row).for_each(|p| at[self.crd[p] as usize] = p + 1);
            for p in self.row(row).start..self.diagonal[row] {
                let k = self.crd[p] as usize;
                let factor = self.values[p] / self.values[self.diagonal[k]];
                self.values[p] = factor;
                for q in self.diagonal[k] + 1..self.row(k).end {
                    let place = at[self.crd[q] as usize];
                    if place > 0 {
                        self.values[place - 1] -= factor * self.values[q];
                    }
                }
            }
            self.row(row).for_each(|p| at[self.crd[p] as usize] = 0);
            let pivot = self.values[self.diagonal[row]];
            if pivot == 0.0 || !pivot.is_finite() {
                return Err(no_pivot(row, &format!("is {pivot}")));
            }
        }
        Ok(())
    }

    /// IC(0) in place: the lower triangle becomes L; the upper one is not read.
    fn incomplete_cholesky(&mut self) -> Result<(), Diagnostic> {
        for row in 0..self.size() {
            for p in self.row(row).start..=self.diagonal[row] {
                let k = self.crd[p] as usize;
                let (mut a, mut b) = (self.row(row).start, self.row(k).start);
                let mut sum = self.values[p];
                while a < p && b < self.diagonal[k] {
                    match self.crd[a].cmp(&self.crd[b]) {
                        std::cmp::Ordering::Less => a += 1,
                        std::cmp::Ordering::Greater => b += 1,
                        std::cmp::Ordering::Equal => {
                            sum -= self.values[a] * self.values[b];
                            (a, b) = (a + 1, b + 1);
                        }
                    }
                }
                if k < row {
                    self.values[p] = sum / self.values[self.diagonal[k]];
                } else if sum > 0.0 {
                    self.values[p] = sum.sqrt();
                } else {
                    return Err(no_pivot(
                        row,
                        &format!("is the root of {sum}, so the matrix is not positive definite"),
                    ));
                }
            }
        }
        Ok(())
    }

    /// Solves with the lower or the upper triangle; the other one is not read.
    fn substitute(&self, x: &mut [f64], columns: usize, lower: bool, unit: bool) -> Result<(), Diagnostic> {
        let size = self.size();
        for step in 0..size {
            let row = if lower { step } else { size - 1 - step };
            let range =
                if lower { self.row(row).start..self.diagonal[row] } else { self.diagonal[row] + 1..self.row(row).end };
            for p in range {
                let (k, value) = (self.crd[p] as usize, self.values[p]);
                (0..columns).for_each(|c| x[row * columns + c] -= value * x[k * columns + c]);
            }
            if !unit {
                let pivot = self.values[self.diagonal[row]];
                if pivot == 0.0 {
                    return Err(no_pivot(row, "is 0"));
                }
                x[row * columns..(row + 1) * columns].iter_mut().for_each(|value| *value /= pivot);
            }
        }
        Ok(())
    }
}

fn no_pivot(row: usize, what: &str) -> Diagnostic {
    Diagnostic::new(Code::E0709, format!("the diagonal element of row {row} {what}"))
        .help("permute the rows so that the diagonal is not zero")
        .help("shift the matrix: `A + s * tamis.eye(n, format='csr')`")
}

/// ILU(0), or IC(0), of a matrix: a tensor of the same pattern.
#[pyfunction]
pub(crate) fn factorised<'py>(
    py: Python<'py>,
    tensor: &Bound<'py, PyTensor>,
    cholesky: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let given = tensor.get().tensor.clone();
    let made = work::run(py, || {
        let mut matrix = Matrix::of(&given)?;
        if cholesky {
            matrix.incomplete_cholesky()?
        } else {
            matrix.incomplete_lu()?
        }
        let level = LevelArrays::new([("pos", matrix.pos.into()), ("crd", matrix.crd.into())]);
        let levels = vec![LevelArrays::default(), level];
        Ok(Tensor::from_parts(given.shape(), given.format(), levels, Some(matrix.values.into()), given.fill())?)
    })?;
    wrap(py, made, false)
}

/// The solution with a triangle of a matrix, of one right-hand side or several as columns.
#[pyfunction]
pub(crate) fn substituted<'py>(
    py: Python<'py>,
    tensor: &Bound<'py, PyTensor>,
    right: &Bound<'py, PyUntypedArray>,
    lower: bool,
    unit: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let given = tensor.get().tensor.clone();
    let ValueArray::F64(right) = arrays::values(right, false)? else {
        let d = Diagnostic::new(Code::E0308, "a right-hand side has values of type f64");
        return Err(errors::raise_one(py, d.help("convert it first: `b.astype(float)`")));
    };
    let made = work::run(py, || {
        let matrix = Matrix::of(&given)?;
        let mut x = right.into_vec();
        if matrix.size() == 0 || x.len() % matrix.size() != 0 {
            let message = format!("a right-hand side of {} values does not fit {} rows", x.len(), matrix.size());
            return Err(Diagnostic::new(Code::E0402, message).help("give one value for each row").into());
        }
        let columns = x.len() / matrix.size();
        matrix.substitute(&mut x, columns, lower, unit)?;
        Ok(x)
    })?;
    let count = made.len() as u64;
    arrays::give_values(py, ValueArray::F64(made.into()), &[count])
}
