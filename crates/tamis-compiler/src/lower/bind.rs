//! Tensors as buffers and sizes of a kernel.

use super::shared_sparsity::Alike;
use tamis_ir::algebra::{DType, Op, Value};
use tamis_ir::diag::Result;
use tamis_ir::format::{DimExpr, Format, Leaf, LevelSpec, Width};
use tamis_ir::kernel::{BufferId, Builder, Elem, ExprId, Role, VarId};
use tamis_ir::program::{Checked, Declaration, Program, ScalarKind, Storage, TensorId};
use tamis_tensor::LiteralRange;
use tamis_tensor::levels::level_type;
use tamis_tensor::written_as;

/// A parameter as the kernel sees it: its format, type and fill, and the widths of its arrays.
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
    /// Whether it is a literal, and of which range: types were inferred for that.
    pub literal: Option<LiteralRange>,
}

impl ParamLayout {
    /// The layout of a tensor.
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
#[derive(Clone, Debug)]
pub struct Bound {
    /// How it is stored.
    pub storage: Stored,
    /// The value type.
    pub dtype: DType,
    /// What is not stored.
    pub fill: Value,
    /// Sizes of its dimensions.
    pub dims: Vec<ExprId>,
    /// How many coordinates each level has.
    pub extents: Vec<ExprId>,
}

/// The arrays of a level.
type Arrays = Vec<(&'static str, BufferId)>;

/// Where the elements are.
#[derive(Clone, Debug)]
pub enum Stored {
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
        /// The variable, which its declaration renews.
        var: VarId,
        /// Whether it was written, if that is remembered.
        written: Option<VarId>,
        /// Where it goes in the end, if it is a result: a buffer of one element.
        output: Option<BufferId>,
    },
}

/// Parameters of a kernel that are sizes: which dimension of which tensor.
pub type SizeParam = (TensorId, usize);

/// Binds all tensors of a program: parameters with their layouts, results as outputs, temporaries as scratch. Of those that are `alike`, the
/// first levels are those of a parameter.
pub fn bind(
    b: &mut Builder,
    program: &Program,
    checked: &Checked,
    layouts: &[ParamLayout],
    alike: &[Option<Alike>],
) -> Result<(Vec<Bound>, Vec<SizeParam>)> {
    let mut bound: Vec<Bound> = Vec::new();
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
                Stored::Scalar { var: b.new_var("_", dtype, true), written, output }
            }
            _ => {
                // Levels that need to know all of a fiber are written as others, and made of these in the end.
                let format = checked.formats[k].as_ref().map(written_as).unwrap_or_else(|| Format::dense(shape.len()));
                let extents = check_levels(&format)
                    .and_then(|()| format.level_extents(shape))
                    .map_err(|d| program.origin.attach(d.label(program.origin.tensor(id), "declared here")))?;
                let widths = declared_widths(&format, &extents);
                let shared =
                    match alike.get(k).copied().flatten().map(|alike| (alike.levels, &bound[alike.of.index()].storage))
                    {
                        Some((levels, Stored::Levels { arrays, .. })) => arrays[..levels].to_vec(),
                        _ => Vec::new(),
                    };
                levels_of(b, &info.name, &ParamLayout { format, dtype, fill, widths, literal: None }, role, &shared)
            }
        };
        let extents = match &storage {
            Stored::Levels { format, .. } => {
                format.map().iter().map(|stored| extent(b, *stored, &dims, shape)).collect()
            }
            Stored::Scalar { .. } => Vec::new(),
        };
        bound.push(Bound { storage, dtype, fill, dims, extents });
    }
    Ok((bound, sizes))
}

/// Tensors can be stored in all of these levels.
fn check_levels(format: &Format) -> Result<()> {
    format.levels().iter().try_for_each(|level| level_type(level.kind).map(|_| ()))
}

/// How many coordinates a level has; see `DimExpr::extent`.
fn extent(b: &mut Builder, stored: DimExpr, dims: &[ExprId], shape: &[u64]) -> ExprId {
    match stored {
        DimExpr::Dim(dim) => dims[dim],
        DimExpr::Div(dim, by) => {
            let (one, less, by) = (b.int(1), b.int(by as i64 - 1), b.int(by as i64));
            if b.is_huge() {
                // Rounded up, without a sum that may be too large.
                let last = b.sub(dims[dim], one);
                let last = b.call_in(Op::FloorDiv, DType::I64, &[last, by]);
                return b.add(last, one);
            }
            let up = b.add(dims[dim], less);
            b.call_in(Op::FloorDiv, DType::I64, &[up, by])
        }
        // Whether there is a whole block is part of what a kernel is (`pipeline::Specialisation`).
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

/// The widths of the arrays of a tensor that the program writes: as its format says, or wide enough for anything that
/// its shape permits.
fn declared_widths(format: &Format, extents: &[u64]) -> Vec<Vec<(&'static str, Width)>> {
    let mut cells = 1u64;
    let levels = format.levels().iter().zip(extents);
    levels
        .map(|(level, extent)| {
            cells = cells.saturating_mul(*extent);
            let width = |name: &&'static str| match *name {
                "pos" | "ofs" => (*name, level.pos.unwrap_or(Width::automatic(cells))),
                "flags" => (*name, Width::U8),
                // Where a run ends may be the size itself.
                "end" => (*name, level.crd.unwrap_or(Width::automatic(*extent))),
                _ => (*name, level.crd.unwrap_or(Width::automatic(extent.saturating_sub(1)))),
            };
            level_type(level.kind).map(|row| row.arrays.iter().map(width).collect()).unwrap_or_default()
        })
        .collect()
}

/// Buffers of a tensor, but for those of its first levels that are shared.
fn levels_of(b: &mut Builder, name: &str, layout: &ParamLayout, role: Role, shared: &[Arrays]) -> Stored {
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
    Stored::Levels { format: layout.format.clone(), arrays, values }
}

/// Whether coordinates of level `k` may repeat: nonunique, or between a nonunique level and the last of the levels
/// below it that hold one coordinate per position, which tells the entries apart.
pub fn is_grouped(format: &Format, k: usize) -> bool {
    let levels = format.levels();
    let head = chain_head(format, k);
    levels[head].nonunique && levels.get(k + 1).is_some_and(is_single)
}

/// The level above the levels of one coordinate per position that level `k` belongs to (`k` itself, if it is none).
pub fn chain_head(format: &Format, k: usize) -> usize {
    let in_chain = format.levels()[..=k].iter().rev().take_while(|l| is_single(l)).count();
    k - in_chain.min(k)
}

fn is_single(level: &LevelSpec) -> bool {
    level_type(level.kind).is_ok_and(|row| row.capabilities.one_per_fiber)
}
