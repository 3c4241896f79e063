//! Permutation of dimensions (transposition), zero-copy.

use super::{Tensor, TensorParts};
use std::sync::Arc;
use tamis_ir::format::{DimExpr, Format};
use tamis_ir::{Code, Diagnostic, diag::Result};

impl Tensor {
    /// The same entries with permuted dimensions: dimension `d` of the result is dimension
    /// `axes[d]` of this tensor. Arrays are shared; only the map of the format changes.
    ///
    /// ```
    /// use tamis_ir::{Format, Value};
    /// use tamis_tensor::Tensor;
    /// let a = Tensor::from_dense(&[2, 3], vec![1, 2, 3, 4, 5, 6].into(), &Format::csr(), Value::I32(0))?;
    /// let t = a.permuted(&[1, 0])?;
    /// assert_eq!((t.shape(), t.format()), (&[3, 2][..], &Format::csc()));
    /// assert_eq!(t.get(&[2, 0]), Some(Value::I32(3)));
    /// assert!(a.permuted(&[0, 0]).is_err());
    /// # Ok::<(), tamis_ir::Diagnostic>(())
    /// ```
    pub fn permuted(&self, axes: &[usize]) -> Result<Tensor> {
        let rank = self.rank();
        let mut place = vec![None; rank];
        for (d, axis) in axes.iter().enumerate() {
            if let Some(free @ None) = place.get_mut(*axis) {
                *free = Some(d);
            }
        }
        let place: Option<Vec<usize>> = place.into_iter().collect();
        let Some(place) = place.filter(|_| axes.len() == rank) else {
            let message = format!("{axes:?} is not a permutation of {rank} dimensions");
            return Err(Diagnostic::new(Code::E0701, message).help(format!("name each of 0..{rank} once")));
        };
        let moved = |e: &DimExpr| match *e {
            DimExpr::Dim(d) => DimExpr::Dim(place[d]),
            DimExpr::Div(d, k) => DimExpr::Div(place[d], k),
            DimExpr::Mod(d, k) => DimExpr::Mod(place[d], k),
            DimExpr::Diff(a, b) => DimExpr::Diff(place[a], place[b]),
        };
        let parts = &self.parts;
        let map = parts.format.map().iter().map(moved).collect();
        let format = Format::new(rank, map, parts.format.levels().to_vec(), parts.format.leaf())?;
        Ok(Tensor {
            parts: Arc::new(TensorParts {
                format,
                extents: parts.extents.clone(),
                shape: axes.iter().map(|axis| parts.shape[*axis]).collect(),
                fill: parts.fill,
                levels: parts.levels.clone(),
                values: parts.values.clone(),
                nnz: parts.nnz.clone(),
                literal: false,
                pattern_cache: parts.pattern_cache.of_permutation(axes),
            }),
        })
    }
}
