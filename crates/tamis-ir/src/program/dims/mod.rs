//! Dimension inference: the extents of loops, and the shapes of declared tensors.
//!
//! 1. A bare subscript `A[i]` means that `i` iterates over that dimension of `A`: extents and
//!    dimensions that share an index are equal, and different sizes are a mistake. `range(a, b)`
//!    and `~` do not constrain an extent.
//! 2. An index that only occurs in affine subscripts (`A[2*i + k - 1]`) takes the values that keep
//!    all of them in bounds, from 0 or later: the `valid` extent of a convolution library. If no
//!    value does, the extent is empty.
//! 3. An index that only occurs in permissive subscripts iterates once over the tensor: the `same`
//!    extent.
//! 4. A declared tensor without bare subscripts is as large as its largest written coordinates.

mod affine;
mod bounds;
mod collect;
mod solve;

pub(crate) use bounds::permit;

use affine::IndexAffine;

use super::{Bound, ExprId, Extent, IndexId, ParamType, Program, Subscript, TensorId, VarId};
use crate::algebra::DType;
use crate::diag::{Code, Diagnostic, Diagnostics, Span, counted};
use rustc_hash::FxHashMap;

/// The largest size of a dimension.
pub(crate) const MAX_DIM: u64 = i64::MAX as u64;

/// The extent of a loop.
///
/// ```
/// use tamis_ir::program::LoopExtent;
/// let ten = LoopExtent::Static { start: 0, stop: 10 };
/// assert_ne!(ten, LoopExtent::Dynamic);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoopExtent {
    /// Static bounds.
    Static {
        /// The first value of the index.
        start: i64,
        /// One past the last value; not below `start`.
        stop: i64,
    },
    /// Bounds that are evaluated before the loop.
    Dynamic,
}

/// Extents of all loops and shapes of all tensors.
///
/// ```
/// use tamis_ir::program::LoopExtent;
/// use tamis_ir::{Notation, Value, interp};
/// let x = interp::Grid::from_values(&[3], &[1.0, 2.0, 3.0].map(Value::F64));
/// let checked = Notation::parse("s = x[i]")?.plain()?.check(&[interp::param_type(&x)])?;
/// assert_eq!(checked.extents.loops, [LoopExtent::Static { start: 0, stop: 3 }]);
/// assert_eq!(checked.extents.shapes[0], [3]);
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct InferredExtents {
    /// Indexed by [`IndexId`].
    pub loops: Vec<LoopExtent>,
    /// Indexed by [`TensorId`]; for parameters, with inferred sizes.
    pub shapes: Vec<Vec<u64>>,
    /// Guarded affine subscripts that are in bounds for all indices, regardless of the condition;
    /// sorted.
    pub inside: Vec<(TensorId, usize, ExprId)>,
}

impl InferredExtents {
    /// True if a guarded subscript is in bounds for all indices.
    ///
    /// ```
    /// use tamis_ir::program::{ExprId, TensorId};
    /// use tamis_ir::{Notation, Value, interp};
    /// let x = interp::Grid::from_values(&[3], &[1.0, 2.0, 3.0].map(Value::F64));
    /// let checked = Notation::parse("s = x[i]")?.plain()?.check(&[interp::param_type(&x)])?;
    /// assert!(!checked.extents.is_inside(TensorId(0), 0, ExprId(0)), "no access is guarded");
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn is_inside(&self, tensor: TensorId, dim: usize, subscript: ExprId) -> bool {
        self.inside.binary_search(&(tensor, dim, subscript)).is_ok()
    }
}

pub(super) fn infer(program: &Program, params: &[ParamType]) -> Result<InferredExtents, Diagnostics> {
    let mut inference = DimInference::new(program, params)?;
    inference.collect();
    inference.understand_lets();
    inference.unify();
    if inference.errors.is_empty() {
        inference.solve();
    }
    if inference.errors.is_empty() {
        inference.check_bounds();
        inference.check_trip_counts();
    }
    let extents = inference.finish();
    if inference.errors.is_empty() { Ok(extents) } else { Err(Diagnostics(inference.errors)) }
}

/// An occurrence of a subscripted tensor.
struct Site<'a> {
    tensor: TensorId,
    dim: usize,
    subscript: &'a Subscript,
    span: Span,
    write: bool,
    /// Under an `if`, or in a lazily evaluated operand: it may not be evaluated for all indices.
    guarded: bool,
    /// The enclosing loops.
    loops: Vec<IndexId>,
}

/// A size with the location that determines it.
#[derive(Clone)]
struct KnownSize {
    start: i64,
    size: u64,
    span: Span,
    reason: String,
}

/// A scalar integer parameter.
#[derive(Clone, Copy)]
struct ScalarParam {
    value: i64,
    dtype: DType,
}

struct DimInference<'a> {
    program: &'a Program,
    sites: Vec<Site<'a>>,
    extents: FxHashMap<IndexId, (Extent, Span)>,
    /// The extents that loops specify.
    bounds: Vec<(IndexId, Bound, Span)>,
    /// Bound names with their values, in program order.
    lets: Vec<(VarId, ExprId)>,
    /// The affine forms of bound names.
    understood: FxHashMap<VarId, IndexAffine>,
    /// Union-find over loop indices, then tensor dimensions.
    parent: Vec<usize>,
    known: Vec<Option<KnownSize>>,
    /// The first dimension of each tensor in `parent`.
    offsets: Vec<usize>,
    /// The number of dimensions of each tensor.
    ranks: Vec<usize>,
    /// Scalar integer parameters.
    scalars: FxHashMap<TensorId, ScalarParam>,
    /// The shape of some parameter is to be inferred.
    open_inputs: bool,
    errors: Vec<Diagnostic>,
}

impl<'a> DimInference<'a> {
    fn new(program: &'a Program, params: &[ParamType]) -> Result<DimInference<'a>, Diagnostics> {
        let mut offsets = Vec::new();
        let mut nodes = program.indices.len();
        let ranks = program.ranks(params);
        for rank in &ranks {
            offsets.push(nodes);
            nodes += rank;
        }
        let mut inference = DimInference {
            program,
            sites: Vec::new(),
            extents: FxHashMap::default(),
            bounds: Vec::new(),
            lets: Vec::new(),
            understood: FxHashMap::default(),
            parent: (0..nodes).collect(),
            known: vec![None; nodes],
            offsets,
            ranks,
            scalars: FxHashMap::default(),
            open_inputs: params.iter().any(|p| p.shape.iter().any(Option::is_none)),
            errors: Vec::new(),
        };
        for (id, param) in program.params.iter().zip(params) {
            inference.param(*id, param);
        }
        if inference.errors.is_empty() { Ok(inference) } else { Err(Diagnostics(inference.errors)) }
    }

    fn param(&mut self, id: TensorId, param: &ParamType) {
        let info = self.program.tensor(id);
        let span = self.program.origin.tensor(id);
        let rank = self.ranks[id.index()];
        if rank != param.shape.len() {
            let d = Diagnostic::new(
                Code::E0401,
                format!(
                    "`{}` has {}, but is used with {}",
                    info.name,
                    counted(param.shape.len(), "dimension"),
                    counted(info.rank, "subscript")
                ),
            );
            let d = d.label(span, format!("called with {}", counted(param.shape.len(), "dimension")));
            return self.error(d.help(format!(
                "pass a tensor with {}, or write as many subscripts as it has",
                counted(info.rank, "dimension")
            )));
        }
        for (dim, size) in param.shape.iter().enumerate().take(rank) {
            if let Some(size) = size {
                if *size > MAX_DIM {
                    let d = Diagnostic::new(
                        Code::E0404,
                        format!("dimension {dim} of `{}` is larger than 2^63-1", info.name),
                    );
                    return self.error(d.label(span, "too large").help("use a smaller dimension"));
                }
                let reason = format!("dimension {dim} of `{}` is {size}", info.name);
                self.known[self.offsets[id.index()] + dim] = Some(KnownSize { start: 0, size: *size, span, reason });
            }
        }
        if let Some(value) = param.value {
            self.scalars.insert(id, ScalarParam { value, dtype: param.dtype });
        }
    }

    fn error(&mut self, d: Diagnostic) {
        let d = self.program.origin.attach(d);
        if !self.errors.contains(&d) {
            self.errors.push(d);
        }
    }

    fn finish(&mut self) -> InferredExtents {
        let loops = (0..self.program.indices.len())
            .map(|k| match self.index_range(IndexId(k as u32)) {
                Some((start, stop)) => LoopExtent::Static { start, stop },
                None => LoopExtent::Dynamic,
            })
            .collect();
        let shapes = (0..self.program.tensors.len())
            .map(|t| {
                let dims = 0..self.ranks[t];
                dims.map(|dim| {
                    let node = self.find(self.offsets[t] + dim);
                    self.known[node].as_ref().map_or(0, |known| known.size)
                })
                .collect()
            })
            .collect();
        InferredExtents { loops, shapes, inside: self.guarded_inside() }
    }
}
