//! Tensors as buffers and sizes of a kernel.

use tamis_ir::algebra::{DType, Value};
use tamis_ir::format::{Format, Leaf, LevelSpec, Width};
use tamis_ir::kernel::{BufferId, Builder, Elem, ExprId, Role, VarId};
use tamis_ir::program::{Checked, Program, Storage, TensorId};
use tamis_tensor::levels::level_type;

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
}

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
    /// A dense array in row-major order that the program writes.
    Dense(BufferId),
    /// A variable.
    Scalar(VarId),
}

/// Parameters of a kernel that are sizes: which dimension of which tensor.
pub type SizeParam = (TensorId, usize);

/// Binds all tensors of a program: parameters with their layouts, results as dense outputs, temporaries as scratch.
pub fn bind(
    b: &mut Builder,
    program: &Program,
    checked: &Checked,
    layouts: &[ParamLayout],
) -> (Vec<Bound>, Vec<SizeParam>) {
    let mut bound = Vec::new();
    let mut sizes = Vec::new();
    for (k, info) in program.tensors.iter().enumerate() {
        let id = TensorId(k as u32);
        let rank = checked.extents.shapes[k].len();
        let mut dims = Vec::new();
        for dim in 0..rank {
            let var = b.param(format!("{}_n{dim}", info.name), DType::I64);
            sizes.push((id, dim));
            dims.push(b.get(var));
        }
        let param = program.params.iter().position(|p| *p == id).map(|p| &layouts[p]);
        let (dtype, fill) = match param {
            Some(layout) => (layout.dtype, layout.fill),
            None => (checked.types.tensors[k], checked.types.fills[k]),
        };
        let storage = match (param, &info.declaration) {
            (Some(layout), _) => levels_of(b, &info.name, layout),
            (None, Some(d)) if matches!(d.storage, Storage::Scalar(_)) => {
                // Its declaration gives it a variable.
                Stored::Scalar(b.new_var("_", dtype, true))
            }
            _ => {
                let result = program.results.contains(&id);
                let role = if result { Role::Output } else { Role::Scratch };
                Stored::Dense(b.buffer(info.name.clone(), Elem::Value(dtype), role))
            }
        };
        bound.push(Bound { storage, dtype, fill, dims });
    }
    (bound, sizes)
}

fn levels_of(b: &mut Builder, name: &str, layout: &ParamLayout) -> Stored {
    let mut arrays = Vec::new();
    for (k, level) in layout.widths.iter().enumerate() {
        let mut named = Vec::new();
        for (array, width) in level {
            let buffer = b.buffer(format!("{name}{k}_{array}"), Elem::Index(*width), Role::Input);
            named.push((*array, buffer));
        }
        arrays.push(named);
    }
    let values = match layout.format.leaf() {
        Leaf::Pattern => None,
        Leaf::Element(_) => Some(b.buffer(format!("{name}_values"), Elem::Value(layout.dtype), Role::Input)),
    };
    Stored::Levels { format: layout.format.clone(), arrays, values }
}

/// Whether coordinates of level `k` may repeat: nonunique, or between a nonunique level and the last of the levels
/// below it that hold one coordinate per position, which tells the entries apart.
pub fn is_grouped(format: &Format, k: usize) -> bool {
    let levels = format.levels();
    let single = |level: &LevelSpec| level_type(level.kind).is_ok_and(|row| row.capabilities.one_per_fiber);
    let in_chain = levels[..=k].iter().rev().take_while(|l| single(l)).count();
    let head = k - in_chain.min(k);
    levels[head].nonunique && levels.get(k + 1).is_some_and(single)
}
