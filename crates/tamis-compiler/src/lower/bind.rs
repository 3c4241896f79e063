//! Binding of tensors: the buffers, sizes and scalar variables that represent them in a kernel.
//!
//! In: a program, and the layouts of its parameters. Out: for each tensor, the buffers of its
//! levels with their widths, the expressions of its sizes, and the order of size parameters.
//! Parameters become inputs, results outputs, temporaries scratch buffers.

use super::shared_sparsity::SharedSparsity;
use tamis_ir::algebra::{DType, Op, Value};
use tamis_ir::diag::Result;
use tamis_ir::format::{DimExpr, Format, Leaf, LevelSpec, Width};
use tamis_ir::kernel::{BufferId, Builder, Elem, ExprId, Role, VarId};
use tamis_ir::program::{Checked, Declaration, Program, ScalarKind, Storage, TensorId};
use tamis_tensor::LiteralRange;
use tamis_tensor::levels::{ArraySpec, level_type};
use tamis_tensor::written_as;

/// The layout of a parameter: its format, type and fill value, and the widths of its arrays.
///
/// ```
/// use tamis_compiler::lower::ParamLayout;
/// use tamis_ir::{Format, Value, format::Width};
/// use tamis_tensor::Tensor;
/// let values = vec![0.0, 5.0, 0.0, 7.0].into();
/// let a = Tensor::from_dense(&[2, 2], values, &Format::csr(), Value::F64(0.0))?;
/// assert!(ParamLayout::of(&a).widths[1].iter().all(|(_, width)| *width == Width::U32));
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ParamLayout {
    /// The format.
    pub format: Format,
    /// The value type.
    pub dtype: DType,
    /// The fill.
    pub fill: Value,
    /// For each level, the width of each of its arrays.
    pub widths: Vec<Vec<(&'static str, Width)>>,
    /// The range of its value, if it is a literal; types were inferred for that range.
    pub literal: Option<LiteralRange>,
}

impl ParamLayout {
    /// The layout of a tensor.
    ///
    /// ```
    /// use tamis_compiler::lower::ParamLayout;
    /// use tamis_ir::{DType, Value};
    /// use tamis_tensor::Tensor;
    /// let layout = ParamLayout::of(&Tensor::literal(Value::I64(3)));
    /// assert!(layout.dtype == DType::I64 && layout.literal.is_some());
    /// ```
    pub fn of(tensor: &tamis_tensor::Tensor) -> ParamLayout {
        let arrays = |k| tensor.level_arrays(k).arrays.iter().map(|(name, a)| (*name, a.width())).collect();
        ParamLayout {
            format: tensor.format().clone(),
            dtype: tensor.dtype(),
            fill: tensor.fill(),
            widths: (0..tensor.levels().len()).map(arrays).collect(),
            literal: tensor.literal_range(),
        }
    }
}

/// A tensor in a kernel.
///
/// ```
/// # use tamis_compiler::{lower::ParamLayout, pipeline};
/// # use tamis_ir::{Format, Notation, Value, interp};
/// # use tamis_tensor::Tensor;
/// let program = Notation::parse("y[i] = A[i,j]")?.plain()?;
/// # let values = vec![0.0, 5.0, 0.0, 7.0].into();
/// let a = Tensor::from_dense(&[2, 2], values, &Format::csr(), Value::F64(0.0))?;
/// let (params, layouts) = ([interp::param_type(&a)], [ParamLayout::of(&a)]);
/// let compilation = pipeline::compile(&program, &params, &layouts, Default::default())?;
/// let matrix = &compilation.lowered.bound[0];
/// assert_eq!((matrix.dims.len(), matrix.fill), (2, Value::F64(0.0)));
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
#[derive(Clone, Debug)]
pub struct BoundTensor {
    /// The storage of its elements.
    pub storage: BoundStorage,
    /// The value type.
    pub dtype: DType,
    /// The fill value.
    pub fill: Value,
    /// The sizes of its dimensions.
    pub dims: Vec<ExprId>,
    /// The extent of each level.
    pub extents: Vec<ExprId>,
}

/// The arrays of a level.
type Arrays = Vec<(&'static str, BufferId)>;

/// The storage of a tensor's elements.
///
/// ```
/// # use tamis_compiler::lower::BoundStorage;
/// # use tamis_compiler::{lower::ParamLayout, pipeline};
/// # use tamis_ir::{Format, Notation, Value, interp};
/// # use tamis_tensor::Tensor;
/// let program = Notation::parse("y[i] = A[i,j]")?.plain()?;
/// # let values = vec![0.0, 5.0, 0.0, 7.0].into();
/// let a = Tensor::from_dense(&[2, 2], values, &Format::csr(), Value::F64(0.0))?;
/// let (params, layouts) = ([interp::param_type(&a)], [ParamLayout::of(&a)]);
/// let compilation = pipeline::compile(&program, &params, &layouts, Default::default())?;
/// let matrix = &compilation.lowered.bound[0].storage;
/// let BoundStorage::Levels { arrays, .. } = matrix else { panic!() };
/// assert_eq!((arrays[0].len(), arrays[1].len()), (0, 2), "positions and coordinates");
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
#[derive(Clone, Debug)]
pub enum BoundStorage {
    /// Levels with their arrays, and the values (none for a pattern).
    Levels {
        /// The format.
        format: Format,
        /// Arrays of each level.
        arrays: Vec<Vec<(&'static str, BufferId)>>,
        /// The values.
        values: Option<BufferId>,
    },
    /// A variable.
    Scalar {
        /// The variable; every declaration creates it anew.
        var: VarId,
        /// The flag that it was written, if its storage is sparse.
        written: Option<VarId>,
        /// The output buffer of one element, if it is a result.
        output: Option<BufferId>,
    },
}

/// A size parameter of a kernel: a dimension of a tensor.
///
/// ```
/// # use tamis_compiler::{lower::ParamLayout, pipeline};
/// # use tamis_ir::{Format, Notation, Value, interp};
/// # use tamis_tensor::Tensor;
/// let program = Notation::parse("y[i] = A[i,j]")?.plain()?;
/// # let values = vec![0.0, 5.0, 0.0, 7.0].into();
/// let a = Tensor::from_dense(&[2, 2], values, &Format::csr(), Value::F64(0.0))?;
/// let (params, layouts) = ([interp::param_type(&a)], [ParamLayout::of(&a)]);
/// let compilation = pipeline::compile(&program, &params, &layouts, Default::default())?;
/// let rows = (program.params[0], 0);
/// assert!(compilation.lowered.sizes.contains(&rows));
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
pub type SizeParam = (TensorId, usize);

/// Binds all tensors of a program: parameters with their layouts, results as outputs, temporaries
/// as scratch buffers. The first levels of a tensor with shared sparsity are those of its operand.
pub(super) fn bind(
    b: &mut Builder,
    program: &Program,
    checked: &Checked,
    layouts: &[ParamLayout],
    shared: &[Option<SharedSparsity>],
) -> Result<(Vec<BoundTensor>, Vec<SizeParam>)> {
    let mut bound: Vec<BoundTensor> = Vec::new();
    let mut sizes = Vec::new();
    for (k, info) in program.tensors.iter().enumerate() {
        let id = TensorId(k as u32);
        let shape = &checked.extents.shapes[k];
        let mut dims = Vec::new();
        for dim in 0..shape.len() {
            let var = b.param(format!("{}_n{dim}", info.name), DType::I64);
            sizes.push((id, dim));
            dims.push(b.get(var));
        }
        let param = program.params.iter().position(|p| *p == id).map(|p| &layouts[p]);
        let (dtype, fill) = match param {
            Some(layout) => (layout.dtype, layout.fill),
            None => (checked.types.tensors[k], checked.types.fills[k]),
        };
        let role = match (param, program.results.contains(&id)) {
            (Some(_), _) => Role::Input,
            (None, true) => Role::Output,
            (None, false) => Role::Scratch,
        };
        let storage = match (param, &info.declaration) {
            (Some(layout), _) => levels_of(b, &info.name, layout, role, &[]),
            (None, Some(Declaration { storage: Storage::Scalar(kind), .. })) => {
                let output =
                    (role == Role::Output).then(|| b.buffer(format!("{}_out", info.name), Elem::Value(dtype), role));
                let written = (*kind == ScalarKind::Sparse).then(|| b.new_var("_", DType::Bool, true));
                BoundStorage::Scalar { var: b.new_var("_", dtype, true), written, output }
            }
            _ => {
                // Levels that need whole fibers are written as simpler levels and converted at the
                // end.
                let format = checked.formats[k].as_ref().map(written_as).unwrap_or_else(|| Format::dense(shape.len()));
                let extents = check_levels(&format)
                    .and_then(|()| format.level_extents(shape))
                    .map_err(|d| program.origin.attach(d.label(program.origin.tensor(id), "declared here")))?;
                let widths = declared_widths(&format, &extents);
                let shared = match shared
                    .get(k)
                    .copied()
                    .flatten()
                    .map(|shared| (shared.levels, &bound[shared.of.index()].storage))
                {
                    Some((levels, BoundStorage::Levels { arrays, .. })) => arrays[..levels].to_vec(),
                    _ => Vec::new(),
                };
                levels_of(b, &info.name, &ParamLayout { format, dtype, fill, widths, literal: None }, role, &shared)
            }
        };
        let extents = match &storage {
            BoundStorage::Levels { format, .. } => {
                format.map().iter().map(|stored| extent(b, *stored, &dims, shape)).collect()
            }
            BoundStorage::Scalar { .. } => Vec::new(),
        };
        bound.push(BoundTensor { storage, dtype, fill, dims, extents });
    }
    Ok((bound, sizes))
}

/// Checks that tensors can be stored in all of these levels.
fn check_levels(format: &Format) -> Result<()> {
    format.levels().iter().try_for_each(|level| level_type(level.kind).map(|_| ()))
}

/// The extent of a level; see `DimExpr::extent`.
fn extent(b: &mut Builder, stored: DimExpr, dims: &[ExprId], shape: &[u64]) -> ExprId {
    match stored {
        DimExpr::Dim(dim) => dims[dim],
        DimExpr::Div(dim, by) => {
            let (one, less, by) = (b.int(1), b.int(by as i64 - 1), b.int(by as i64));
            if b.is_huge() {
                // Rounded up, without a sum that may overflow.
                let last = b.sub(dims[dim], one);
                let last = b.call_in(Op::FloorDiv, DType::I64, &[last, by]);
                return b.add(last, one);
            }
            let up = b.add(dims[dim], less);
            b.call_in(Op::FloorDiv, DType::I64, &[up, by])
        }
        // Kernels are specialised for blocks that exceed the dimension
        // (`pipeline::Specialisation`).
        DimExpr::Mod(dim, by) if shape.get(dim).is_some_and(|size| *size >= by) => b.int(by as i64),
        DimExpr::Mod(dim, by) => {
            let by = b.int(by as i64);
            b.call_in(Op::Min, DType::I64, &[dims[dim], by])
        }
        DimExpr::Diff(dim, other) => {
            let (zero, one) = (b.int(0), b.int(1));
            let sum = b.add(dims[dim], dims[other]);
            let all = b.sub(sum, one);
            let least = b.call_in(Op::Min, DType::I64, &[dims[dim], dims[other]]);
            let some = b.call_in(Op::Lt, DType::I64, &[zero, least]);
            b.call_in(Op::Select, DType::I64, &[some, all, zero])
        }
    }
}

/// The widths of the arrays of a tensor that the program writes: as its format specifies, or wide
/// enough for its shape.
fn declared_widths(format: &Format, extents: &[u64]) -> Vec<Vec<(&'static str, Width)>> {
    let mut cells = 1u64;
    let levels = format.levels().iter().zip(extents);
    levels
        .map(|(level, extent)| {
            cells = cells.saturating_mul(*extent);
            let width = |array: &ArraySpec| (array.name, array.width(level, *extent, cells));
            level_type(level.kind).map(|row| row.arrays.iter().map(width).collect()).unwrap_or_default()
        })
        .collect()
}

/// Creates the buffers of a tensor, except for its shared levels.
fn levels_of(b: &mut Builder, name: &str, layout: &ParamLayout, role: Role, shared: &[Arrays]) -> BoundStorage {
    let mut arrays = shared.to_vec();
    for (k, level) in layout.widths.iter().enumerate().skip(shared.len()) {
        let mut named = Vec::new();
        for (array, width) in level {
            let buffer = b.buffer(format!("{name}{k}_{array}"), Elem::Index(*width), role);
            named.push((*array, buffer));
        }
        arrays.push(named);
    }
    let values = match layout.format.leaf() {
        Leaf::Pattern => None,
        Leaf::Element(_) => Some(b.buffer(format!("{name}_values"), Elem::Value(layout.dtype), role)),
    };
    BoundStorage::Levels { format: layout.format.clone(), arrays, values }
}

/// True if coordinates of level `k` may repeat: it is nonunique, or lies between a nonunique level
/// and the last of the singletons below it, which distinguishes the elements.
pub(crate) fn is_grouped(format: &Format, k: usize) -> bool {
    let levels = format.levels();
    let head = chain_head(format, k);
    levels[head].nonunique && levels.get(k + 1).is_some_and(is_singleton)
}

/// The level above the chain of singletons that level `k` belongs to; `k` itself if it is no
/// singleton.
pub(super) fn chain_head(format: &Format, k: usize) -> usize {
    let in_chain = format.levels()[..=k].iter().rev().take_while(|l| is_singleton(l)).count();
    k - in_chain.min(k)
}

fn is_singleton(level: &LevelSpec) -> bool {
    level_type(level.kind).is_ok_and(|row| row.capabilities.one_per_fiber)
}
