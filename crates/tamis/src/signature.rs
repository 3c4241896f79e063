//! Signatures: the layouts of a program's parameters, which code is specialised for, and initial
//! sizes.
//!
//! In: tensors, or formats and value types with the rest assumed. Out: layouts (format, value type,
//! fill, widths of arrays) and parameter types (shape, value of integer scalars).

use std::hash::{Hash, Hasher};
use tamis_compiler::auto::OperandStatistics;
use tamis_compiler::lower::ParamLayout;
use tamis_ir::format::{Format, Leaf};
use tamis_ir::program::{Expr, ExprId, ParamType, Program, StmtKind};
use tamis_ir::{Code, DType, Diagnostic, Diagnostics, FormatSpec, Value};
use tamis_tensor::levels::{ArrayRole, level_type};
use tamis_tensor::{Combine, Coordinates, IndexArray, LevelArrays, Tensor, ValueArray};

/// The layouts of a program's parameters, in order, with initial sizes.
///
/// Compiled code is specialised for the layouts: formats, value types, fills and the widths of
/// arrays. Sizes may change from call to call.
///
/// ```
/// use tamis::prelude::*;
/// let x = Tensor::from_dense(&[2], vec![1.0, 2.0].into(), &Format::dense(1), 0.0.into())?;
/// let signature = Signature::of(&[&x]);
/// assert_eq!((signature.types()[0].dtype, signature.shapes()), (DType::F64, vec![vec![2]]));
/// # Ok::<(), Diagnostic>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Signature {
    pub(crate) layouts: Vec<ParamLayout>,
    pub(crate) types: Vec<ParamType>,
}

/// Sizes to try for an unknown dimension.
const SIZES: [u64; 4] = [1000, 3, 1_000_000, 1];

impl Signature {
    /// The signature of tensors, given in the order of a program's parameters.
    ///
    /// ```
    /// # use tamis::prelude::*;
    /// # let values = vec![1.0, 0.0, 0.0, 4.0].into();
    /// # let a = Tensor::from_dense(&[2, 2], values, &Format::csr(), 0.0.into())?;
    /// # let x = Tensor::from_dense(&[2], vec![3.0, 5.0].into(), &Format::dense(1), 0.0.into())?;
    /// let signature = Signature::of(&[&a, &x]);
    /// assert_eq!(signature.shapes(), [vec![2, 2], vec![2]]);
    /// # Ok::<(), Diagnostics>(())
    /// ```
    pub fn of(tensors: &[&Tensor]) -> Signature {
        Signature {
            layouts: tensors.iter().map(|tensor| ParamLayout::of(tensor)).collect(),
            types: tensors.iter().map(|tensor| param_type(tensor)).collect(),
        }
    }

    /// A signature from formats (`dense` by default) and value types alone. Other value types are
    /// chosen such that the program type-checks (`f64` first), sizes such that dimensions agree.
    ///
    /// ```
    /// use tamis::Program;
    /// use tamis::compile::Signature;
    /// use tamis::format::FormatSpec;
    /// let program = Program::parse("
    /// def spmv(A, x):
    ///     y = tensor('dense')
    ///     for i, j in _:
    ///         y[i] += A[i,j] * x[j]
    ///     return y
    /// ")?;
    /// let signature = Signature::assumed(&program, &[("A", FormatSpec::parse("csr")?)], &[])?;
    /// assert_eq!(signature.shapes(), [vec![1000, 1000], vec![1000]]);
    /// # Ok::<(), tamis::Diagnostics>(())
    /// ```
    pub fn assumed(
        program: &Program,
        formats: &[(&str, FormatSpec)],
        dtypes: &[(&str, DType)],
    ) -> Result<Signature, Diagnostics> {
        let mut refused = None;
        for default in [DType::F64, DType::I64, DType::Bool] {
            match Signature::assumed_of(program, formats, dtypes, default) {
                Err(errors) if errors.0.iter().any(|d| d.code == Code::E0301 || d.code == Code::E0302) => {
                    refused.get_or_insert(errors);
                }
                other => return other,
            }
        }
        let mut errors = refused.unwrap_or(Diagnostics(Vec::new()));
        for d in &mut errors.0 {
            d.help.push("specify the types of the tensors, as in `--dtype A=bool`".to_string());
        }
        Err(errors)
    }

    /// [`Signature::assumed`], with one default value type.
    fn assumed_of(
        program: &Program,
        formats: &[(&str, FormatSpec)],
        dtypes: &[(&str, DType)],
        default: DType,
    ) -> Result<Signature, Diagnostics> {
        let mut signature = Signature { layouts: Vec::new(), types: Vec::new() };
        for id in &program.params {
            let info = program.tensor(*id);
            let given = dtypes.iter().find(|(name, _)| *name == info.name).map(|(_, dtype)| *dtype);
            let spec = formats.iter().find(|(name, _)| *name == info.name).map(|(_, spec)| spec.clone());
            let spec = spec.unwrap_or_else(|| Format::dense(info.rank).into());
            let dtype = match spec.leaf() {
                Leaf::Pattern => DType::Bool,
                Leaf::Element(fill) => given.or(fill.map(|fill| fill.dtype())).unwrap_or(default),
            };
            signature.layouts.push(ParamLayout::of(&empty_tensor(&spec, info.rank, dtype)?));
            signature.types.push(ParamType { dtype, shape: vec![None; info.rank], value: None, weak: false });
        }
        signature.invent_sizes(program, dtypes)?;
        Ok(signature)
    }

    /// The types of the parameters.
    ///
    /// ```
    /// # use tamis::prelude::*;
    /// # let x = Tensor::from_dense(&[2], vec![3.0, 5.0].into(), &Format::dense(1), 0.0.into())?;
    /// assert_eq!(Signature::of(&[&x]).types()[0].dtype, DType::F64);
    /// # Ok::<(), Diagnostics>(())
    /// ```
    pub fn types(&self) -> &[ParamType] {
        &self.types
    }

    /// The operands as the scheduler sees them; sparse ones are assumed to store this share of
    /// elements.
    ///
    /// ```
    /// # use tamis::prelude::*;
    /// let program = Notation::parse("y[i] = A[i,j] * x[j]")?.plain()?;
    /// let signature = Signature::assumed(&program, &[("A", "csr".parse()?)], &[])?;
    /// assert_eq!(signature.operands(0.01)[0].entries, 10_000.0);
    /// # Ok::<(), Diagnostics>(())
    /// ```
    pub fn operands(&self, density: f64) -> Vec<OperandStatistics> {
        let operand = |(layout, shape): (&ParamLayout, Vec<u64>)| {
            OperandStatistics::assumed(layout.format.clone(), layout.dtype, layout.fill, &shape, density)
        };
        self.layouts.iter().zip(self.shapes()).map(operand).collect()
    }

    /// The sizes of the tensors.
    ///
    /// ```
    /// # use tamis::prelude::*;
    /// let program = Notation::parse("y[i] = A[i,j] * x[j]")?.plain()?;
    /// let signature = Signature::assumed(&program, &[], &[])?;
    /// assert_eq!(signature.shapes(), [vec![1000, 1000], vec![1000]]);
    /// # Ok::<(), Diagnostics>(())
    /// ```
    pub fn shapes(&self) -> Vec<Vec<u64>> {
        self.types.iter().map(|t| t.shape.iter().map(|n| n.unwrap_or(0)).collect()).collect()
    }

    /// Assumes sizes of dimensions until dimension inference succeeds.
    fn invent_sizes(&mut self, program: &Program, dtypes: &[(&str, DType)]) -> Result<(), Diagnostics> {
        loop {
            let errors = match program.check(&self.types) {
                Ok(checked) => {
                    for (id, param) in program.params.iter().zip(&mut self.types) {
                        param.shape = checked.extents.shapes[id.index()].iter().map(|n| Some(*n)).collect();
                    }
                    return Ok(());
                }
                Err(errors) => errors,
            };
            let unknown = self.types.iter().enumerate().find_map(|(k, param)| {
                let dim = param.shape.iter().position(Option::is_none)?;
                Some((k, dim))
            });
            if errors.0.iter().any(|d| d.code == Code::E0305)
                && let Some(scalar) = self.scalar_to_make_integer(program, dtypes)
            {
                // A scalar that bounds a loop or subscripts a tensor is an integer.
                let layout = ParamLayout::of(&Tensor::scalar(Value::I64(1)));
                (self.layouts[scalar], self.types[scalar].dtype) = (layout, DType::I64);
                self.types[scalar].value = Some(1);
                continue;
            }
            let Some((k, dim)) = unknown.filter(|_| errors.0.iter().any(|d| d.code == Code::E0403)) else {
                return Err(errors);
            };
            // Sizes that contradict others are skipped; the diagnostics of the last one are
            // reported.
            for size in SIZES {
                self.types[k].shape[dim] = Some(size);
                match program.check(&self.types) {
                    Err(errors) if errors.0.iter().any(|d| d.code != Code::E0403) => {}
                    _ => break,
                }
            }
        }
    }

    /// The first scalar whose type was assumed and is not an integer yet.
    fn scalar_to_make_integer(&self, program: &Program, dtypes: &[(&str, DType)]) -> Option<usize> {
        program.params.iter().zip(&self.types).position(|(id, param)| {
            let name = &program.tensor(*id).name;
            param.shape.is_empty() && param.value.is_none() && dtypes.iter().all(|(given, _)| given != name)
        })
    }
}

/// An empty tensor of a format, which shows its layout.
fn empty_tensor(spec: &FormatSpec, rank: usize, dtype: DType) -> Result<Tensor, Diagnostic> {
    let format = spec.with_rank(rank)?;
    let fill = match format.leaf() {
        Leaf::Element(Some(fill)) => fill,
        _ => Value::zero(dtype),
    };
    let columns = vec![Vec::<u32>::new().into(); rank];
    let coordinates = Coordinates { shape: vec![1; rank], columns, values: ValueArray::from_values(&[], dtype) };
    Tensor::from_coordinates(&coordinates, &format, fill, Combine::Error)
}

/// The parameter type of a tensor.
pub(crate) fn param_type(tensor: &Tensor) -> ParamType {
    let shape = tensor.shape().iter().map(|n| Some(*n)).collect();
    ParamType { dtype: tensor.dtype(), shape, value: integer(tensor), weak: tensor.literal_range().is_some() }
}

/// The value of an integer scalar.
pub(crate) fn integer(tensor: &Tensor) -> Option<i64> {
    if tensor.rank() > 0 { None } else { tensor.get(&[]).and_then(Value::as_i64) }
}

/// A tensor that a program is called with, and the arrays of its levels.
pub(crate) struct CallArgument<'a> {
    pub(crate) tensor: &'a Tensor,
    pub(crate) levels: Vec<LevelArrays>,
}

impl<'a> CallArgument<'a> {
    pub(crate) fn all(tensors: &[&'a Tensor]) -> Vec<CallArgument<'a>> {
        let levels = |tensor: &Tensor| (0..tensor.levels().len()).map(|k| tensor.level_arrays(k)).collect();
        tensors.iter().map(|tensor| CallArgument { tensor, levels: levels(tensor) }).collect()
    }

    /// The array with a role in one of its levels.
    pub(crate) fn array(&self, level: usize, role: ArrayRole) -> Option<&IndexArray> {
        let row = level_type(self.tensor.format().levels().get(level)?.kind).ok()?;
        self.levels.get(level)?.get(row.array(role)?.name)
    }

    /// About how many elements it stores: the length of its longest array.
    pub(crate) fn nnz(&self) -> u64 {
        let lists = self.levels.iter().flat_map(|level| &level.arrays).map(|(_, array)| array.len());
        lists.chain(self.tensor.values().map(|values| values.len())).max().unwrap_or(0) as u64
    }

    /// True if code for this layout takes this tensor.
    pub(crate) fn fits(&self, layout: &ParamLayout) -> bool {
        let same_widths = |arrays: &LevelArrays, widths: &Vec<_>| {
            let found = arrays.arrays.iter().map(|(name, array)| (*name, array.width()));
            found.eq(widths.iter().copied())
        };
        layout.dtype == self.tensor.dtype()
            && layout.fill == self.tensor.fill()
            && layout.format == *self.tensor.format()
            && layout.literal == self.tensor.literal_range()
            && self.levels.len() == layout.widths.len()
            && self.levels.iter().zip(&layout.widths).all(|(arrays, widths)| same_widths(arrays, widths))
    }

    /// Hashes the cheap parts of the layout; tensors of equal hashes may have different layouts.
    pub(crate) fn hash(&self, state: &mut impl Hasher) {
        (self.tensor.dtype(), self.tensor.format(), self.tensor.literal_range()).hash(state);
    }
}

/// For each parameter, whether inference may depend on its value, if it is an integer scalar:
/// whether it occurs in a subscript, a bound, a shape or a `let`.
pub(crate) fn values_matter(program: &Program) -> Vec<bool> {
    let mut roots: Vec<ExprId> = Vec::new();
    program.visit(&mut |stmt| match &stmt.kind {
        StmtKind::Assign { target, .. } => roots.extend(target.subscripts.iter().map(|s| s.expr)),
        StmtKind::If { .. } => {}
        _ => roots.extend(program.roots(stmt)),
    });
    for id in program.exprs.ids() {
        if let Expr::Read(access) = program.expr(id) {
            roots.extend(access.subscripts.iter().map(|s| s.expr));
        }
    }
    let mut matters = vec![false; program.tensors.len()];
    let mut seen = vec![false; program.exprs.len()];
    while let Some(id) = roots.pop() {
        if std::mem::replace(&mut seen[id.index()], true) {
            continue;
        }
        match program.expr(id) {
            Expr::Read(access) if access.subscripts.is_empty() => matters[access.tensor.index()] = true,
            other => roots.extend(other.operands()),
        }
    }
    program.params.iter().map(|id| matters[id.index()]).collect()
}
