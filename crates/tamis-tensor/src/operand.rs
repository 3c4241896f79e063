//! Tensors as operands and results of the reference interpreter.

use crate::{Combine, Coordinates, Tensor, ValueArray};
use tamis_ir::diag::Result;
use tamis_ir::format::{Format, Width};
use tamis_ir::interp::{Grid, Operand};
use tamis_ir::{DType, Value};

impl Operand for Tensor {
    fn shape(&self) -> &[u64] {
        Tensor::shape(self)
    }

    fn dtype(&self) -> DType {
        Tensor::dtype(self)
    }

    fn fill(&self) -> Value {
        Tensor::fill(self)
    }

    fn for_each_stored(&self, visit: &mut dyn FnMut(&[u64], Value)) {
        self.for_each(visit);
    }

    fn is_literal(&self) -> bool {
        self.literal_range().is_some()
    }

    fn storage_order(&self) -> Vec<usize> {
        self.format().dim_order().unwrap_or_else(|| (0..self.shape().len()).collect())
    }
}

impl Tensor {
    /// A tensor of the elements of a grid that differ from the fill (of all elements, if the grid
    /// is dense).
    ///
    /// ```
    /// use tamis_ir::{Format, Value, interp::Grid};
    /// use tamis_tensor::Tensor;
    /// let grid = Grid::from_values(&[3], &[5.0, 0.0, 7.0].map(Value::F64));
    /// let x = Tensor::from_grid(&grid, &Format::parse("sparse", 1)?)?;
    /// assert_eq!((x.shape(), x.nnz()), (&[3][..], 2));
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn from_grid(grid: &Grid, format: &Format) -> Result<Tensor> {
        let shape = grid.shape().to_vec();
        let mut columns: Vec<Vec<u64>> = vec![Vec::new(); shape.len()];
        let mut values = Vec::new();
        grid.for_each_stored(&mut |coordinates, value| {
            if !value.same_number(Operand::fill(grid)) || format.is_all_dense() {
                columns.iter_mut().zip(coordinates).for_each(|(column, i)| column.push(*i));
                values.push(value);
            }
        });
        let narrow = |(column, size): (Vec<u64>, &u64)| {
            crate::IndexArray::with_width(&column, Width::automatic(size.saturating_sub(1)))
        };
        let columns = columns.into_iter().zip(&shape).map(narrow).collect::<Result<Vec<_>>>()?;
        let values = ValueArray::from_values(&values, grid.dtype());
        let entries = Coordinates { shape, columns, values };
        Tensor::from_coordinates(&entries, format, Operand::fill(grid), Combine::Error)
    }
}
