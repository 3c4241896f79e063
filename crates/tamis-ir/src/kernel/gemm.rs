//! General matrix multiplication (GEMM): a dense contraction as one statement.

use super::{BufferId, Elem, ExprId, Kernel};
use crate::algebra::DType;

/// `C[m, n] += alpha * (sum over k of A[m, k] * B[k, n])` on strided matrices of floats.
///
/// `C` is another buffer than `A` and `B`, and its elements are distinct. The order of the sum, and
/// whether products are fused into it, are up to the back end.
///
/// ```
/// use tamis_ir::kernel::{Kernel, Stmt};
/// let text = "kernel f
///     in a: f64[]
///     in b: f64[]
///     out c: f64[]
///     in n: i64
/// begin
///     gemm c[0; n, 1], a[0; n, 1], b[0; n, 1] of n, n, n times 1.0
/// ";
/// let kernel = Kernel::parse(text)?;
/// assert!(matches!(&kernel.body[0], Stmt::Gemm(gemm) if gemm.sizes[0] == gemm.sizes[2]));
/// # Ok::<(), tamis_ir::Diagnostic>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Gemm {
    /// The sizes `m`, `n` and `k`; nothing happens if one is 0 or less.
    pub sizes: [ExprId; 3],
    /// The factor, of the type of the elements.
    pub alpha: ExprId,
    /// The matrix that is updated, of `m` rows and `n` columns.
    pub c: MatrixView,
    /// The left operand, of `m` rows and `k` columns.
    pub a: MatrixView,
    /// The right operand, of `k` rows and `n` columns.
    pub b: MatrixView,
}

/// A strided matrix in a buffer: element `(i, j)` is at `offset + i * strides[0] + j * strides[1]`.
///
/// ```
/// use tamis_ir::kernel::{BufferId, Builder, MatrixView};
/// let mut b = Builder::new("f");
/// let (zero, one, n) = (b.int(0), b.int(1), b.int(100));
/// let transposed = MatrixView { buffer: BufferId(0), offset: zero, strides: [one, n] };
/// assert_ne!(transposed, MatrixView { strides: [n, one], ..transposed });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub struct MatrixView {
    pub buffer: BufferId,
    pub offset: ExprId,
    pub strides: [ExprId; 2],
}

impl Gemm {
    /// The types that back ends multiply.
    ///
    /// ```
    /// use tamis_ir::{DType, kernel::Gemm};
    /// assert!(!Gemm::DTYPES.contains(&DType::I64), "products of integers are loops");
    /// ```
    pub const DTYPES: [DType; 2] = [DType::F32, DType::F64];

    /// The expressions, in the order of evaluation.
    ///
    /// ```
    /// use tamis_ir::kernel::{BufferId, ExprId, Gemm, MatrixView};
    /// let (offset, strides) = (ExprId(0), [ExprId(1); 2]);
    /// let [c, a, b] = [0, 1, 2].map(|k| MatrixView { buffer: BufferId(k), offset, strides });
    /// let gemm = Gemm { sizes: [ExprId(2); 3], alpha: ExprId(3), c, a, b };
    /// assert_eq!(gemm.exprs()[..5], [ExprId(2), ExprId(2), ExprId(2), ExprId(3), ExprId(0)]);
    /// ```
    pub fn exprs(&self) -> [ExprId; 13] {
        let [m, n, k] = self.sizes;
        let [c, a, b] = [self.c, self.a, self.b].map(|view| [view.offset, view.strides[0], view.strides[1]]);
        [m, n, k, self.alpha, c[0], c[1], c[2], a[0], a[1], a[2], b[0], b[1], b[2]]
    }

    /// The expressions, for changes.
    pub(super) fn exprs_mut(&mut self) -> impl Iterator<Item = &mut ExprId> {
        let views = [&mut self.c, &mut self.a, &mut self.b];
        self.sizes.iter_mut().chain([&mut self.alpha]).chain(views.into_iter().flat_map(|view| {
            let MatrixView { offset, strides: [first, second], .. } = view;
            [offset, first, second]
        }))
    }

    /// The views, the updated one first.
    ///
    /// ```
    /// use tamis_ir::kernel::{BufferId, ExprId, Gemm, MatrixView};
    /// let (offset, strides) = (ExprId(0), [ExprId(1); 2]);
    /// let [c, a, b] = [0, 1, 2].map(|k| MatrixView { buffer: BufferId(k), offset, strides });
    /// let gemm = Gemm { sizes: [ExprId(2); 3], alpha: ExprId(3), c, a, b };
    /// assert_eq!(gemm.views().map(|view| view.buffer.0), [0, 1, 2]);
    /// ```
    pub fn views(&self) -> [MatrixView; 3] {
        [self.c, self.a, self.b]
    }

    /// The element type.
    ///
    /// ```
    /// use tamis_ir::DType;
    /// use tamis_ir::kernel::{Builder, Elem, ExprId, Gemm, MatrixView, Role};
    /// let mut b = Builder::new("f");
    /// let buffer = b.buffer("c", Elem::Value(DType::F32), Role::Output);
    /// let c = MatrixView { buffer, offset: ExprId(0), strides: [ExprId(1); 2] };
    /// let gemm = Gemm { sizes: [ExprId(2); 3], alpha: ExprId(3), c, a: c, b: c };
    /// assert_eq!(gemm.dtype(b.kernel()), Some(DType::F32));
    /// ```
    pub fn dtype(&self, kernel: &Kernel) -> Option<DType> {
        match kernel.buffers.get(self.c.buffer.index())?.elem {
            Elem::Value(dtype) => Some(dtype),
            Elem::Index(_) => None,
        }
    }
}
