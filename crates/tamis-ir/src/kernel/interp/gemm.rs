//! GEMM in the interpreter: the sum in ascending order, each product rounded. A product counts as
//! a statement.

use super::super::{Gemm, MatrixView};
use super::{Failure, KernelInterpreter};
use crate::algebra::{Op, eval};

impl KernelInterpreter<'_> {
    /// Runs a matrix multiplication element by element.
    pub(super) fn gemm(&mut self, gemm: &Gemm) -> Result<(), Failure> {
        let Some(dtype) = gemm.dtype(self.kernel) else { return self.wrong("a product of coordinates".into()) };
        let [m, n, k] = gemm.sizes;
        let [m, n, k] = [self.int(m)?, self.int(n)?, self.int(k)?];
        let products = [m, n, k].iter().fold(1u64, |all, size| all.saturating_mul((*size).max(0) as u64));
        self.budget = self.budget.checked_sub(products).ok_or(Failure::Budget)?;
        if products == 0 {
            return Ok(());
        }
        let alpha = self.eval(gemm.alpha)?;
        let [c, a, b] = [self.view(gemm.c)?, self.view(gemm.a)?, self.view(gemm.b)?];
        let at = |[offset, rows, columns]: [i64; 3], i: i64, j: i64| {
            offset.wrapping_add(rows.wrapping_mul(i)).wrapping_add(columns.wrapping_mul(j))
        };
        for i in 0..m {
            for j in 0..n {
                for l in 0..k {
                    let place = at(c, i, j);
                    let before = self.load(gemm.c.buffer.index(), place)?;
                    let left = self.load(gemm.a.buffer.index(), at(a, i, l))?;
                    let right = self.load(gemm.b.buffer.index(), at(b, l, j))?;
                    let product = eval(Op::Mul, dtype, &[alpha, eval(Op::Mul, dtype, &[left, right])]);
                    self.store(gemm.c.buffer.index(), place, eval(Op::Add, dtype, &[before, product]))?;
                }
            }
        }
        Ok(())
    }

    /// The offset and the strides of a matrix.
    fn view(&mut self, view: MatrixView) -> Result<[i64; 3], Failure> {
        Ok([self.int(view.offset)?, self.int(view.strides[0])?, self.int(view.strides[1])?])
    }
}
