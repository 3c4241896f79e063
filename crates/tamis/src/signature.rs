//! What a program is compiled for: the layouts of its parameters, and sizes to begin with.

use std::hash::{Hash, Hasher};
use tamis_compiler::auto::Operand;
use tamis_compiler::lower::ParamLayout;
use tamis_ir::format::{Format, Leaf};
use tamis_ir::program::{Expr, ExprId, ParamType, Program, StmtKind};
use tamis_ir::{Code, DType, Diagnostic, Diagnostics, FormatSpec, Value};
use tamis_tensor::{Combine, Coordinates, LevelArrays, Tensor, ValueArray};

/// The layouts of a program's parameters, in order, with the sizes of tensors to begin with.
///
/// Compiled code is made for the layouts: formats, value types, fills and the widths of arrays. Sizes may change
/// from call to call.
#[derive(Clone, Debug, PartialEq)]
pub struct Signature {
    pub(crate) layouts: Vec<ParamLayout>,
    pub(crate) types: Vec<ParamType>,
}

/// Sizes to try for a dimension of which only the format is known.
const SIZES: [u64; 4] = [1000, 3, 1_000_000, 1];

impl Signature {
    /// The signature of tensors, given in the order of a program's parameters.
    pub fn of(tensors: &[&Tensor]) -> Signature {
        Signature {
            layouts: tensors.iter().map(|tensor| ParamLayout::of(tensor)).collect(),
            types: tensors.iter().map(|tensor| param_type(tensor)).collect(),
        }
    }

    /// A signature for a program of whose tensors only the formats (`dense`, where none is given) and value types are known.
    /// What is not said is assumed: types so that the program has one (`f64`, if it does), and sizes that fit each other.
    ///
    /// ```
    /// use tamis::{FormatSpec, Program, Signature};
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
        for otherwise in [DType::F64, DType::I64, DType::Bool] {
            match Signature::assumed_of(program, formats, dtypes, otherwise) {
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

    /// [`Signature::assumed`], with one type for all tensors of which nothing is said.
    fn assumed_of(
        program: &Program,
        formats: &[(&str, FormatSpec)],
        dtypes: &[(&str, DType)],
        otherwise: DType,
    ) -> Result<Signature, Diagnostics> {
        let mut signature = Signature { layouts: Vec::new(), types: Vec::new() };
        for id in &program.params {
            let info = program.tensor(*id);
            let said = dtypes.iter().find(|(name, _)| *name == info.name).map(|(_, dtype)| *dtype);
            let spec = formats.iter().find(|(name, _)| *name == info.name).map(|(_, spec)| spec.clone());
            let spec = spec.unwrap_or_else(|| Format::dense(info.rank).into());
            let dtype = match spec.leaf() {
                Leaf::Pattern => DType::Bool,
                Leaf::Element(fill) => said.or(fill.map(|fill| fill.dtype())).unwrap_or(otherwise),
            };
            signature.layouts.push(ParamLayout::of(&smallest(&spec, info.rank, dtype)?));
            signature.types.push(ParamType { dtype, shape: vec![None; info.rank], value: None, weak: false });
        }
        signature.invent_sizes(program, dtypes)?;
        Ok(signature)
    }

    /// What programs need to know of the tensors.
    pub fn types(&self) -> &[ParamType] {
        &self.types
    }

    /// What a scheduler assumes of the tensors: of sparse ones, this share of elements is stored.
    pub fn operands(&self, density: f64) -> Vec<Operand> {
        let operand = |(layout, shape): (&ParamLayout, Vec<u64>)| {
            Operand::assumed(layout.format.clone(), layout.dtype, layout.fill, &shape, density)
        };
        self.layouts.iter().zip(self.shapes()).map(operand).collect()
    }

    /// The sizes of the tensors.
    pub fn shapes(&self) -> Vec<Vec<u64>> {
        self.types.iter().map(|t| t.shape.iter().map(|n| n.unwrap_or(0)).collect()).collect()
    }

    /// Gives sizes to dimensions, one after the other, as long as the program asks for more.
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
                && let Some(scalar) = self.scalar_to_count_with(program, dtypes)
            {
                // A number that bounds a loop or subscripts a tensor is an integer.
                let layout = ParamLayout::of(&Tensor::scalar(Value::I64(1)));
                (self.layouts[scalar], self.types[scalar].dtype) = (layout, DType::I64);
                self.types[scalar].value = Some(1);
                continue;
            }
            let Some((k, dim)) = unknown.filter(|_| errors.0.iter().any(|d| d.code == Code::E0403)) else {
                return Err(errors);
            };
            // A size that contradicts another one is not tried further; the last one decides what is told.
            for size in SIZES {
                self.types[k].shape[dim] = Some(size);
                match program.check(&self.types) {
                    Err(errors) if errors.0.iter().any(|d| d.code != Code::E0403) => {}
                    _ => break,
                }
            }
        }
    }

    /// The first scalar of a type that nobody asked for and that is not an integer yet.
    fn scalar_to_count_with(&self, program: &Program, dtypes: &[(&str, DType)]) -> Option<usize> {
        program.params.iter().zip(&self.types).position(|(id, param)| {
            let name = &program.tensor(*id).name;
            param.shape.is_empty() && param.value.is_none() && dtypes.iter().all(|(said, _)| said != name)
        })
    }
}

/// A tensor without entries, to see what its arrays are.
fn smallest(spec: &FormatSpec, rank: usize, dtype: DType) -> Result<Tensor, Diagnostic> {
    let format = spec.with_rank(rank)?;
    let fill = match format.leaf() {
        Leaf::Element(Some(fill)) => fill,
        _ => Value::zero(dtype),
    };
    let columns = vec![Vec::<u32>::new().into(); rank];
    let entries = Coordinates { shape: vec![1; rank], columns, values: ValueArray::from_values(&[], dtype) };
    Tensor::from_coordinates(&entries, &format, fill, Combine::Error)
}

/// What a program needs to know of a tensor.
pub(crate) fn param_type(tensor: &Tensor) -> ParamType {
    let shape = tensor.shape().iter().map(|n| Some(*n)).collect();
    ParamType { dtype: tensor.dtype(), shape, value: integer(tensor), weak: tensor.literal_range().is_some() }
}

/// The value of a tensor without dimensions that is an integer.
pub(crate) fn integer(tensor: &Tensor) -> Option<i64> {
    if tensor.rank() > 0 { None } else { tensor.get(&[]).and_then(Value::as_i64) }
}

/// A tensor that a program is called with, and its arrays.
pub(crate) struct Argument<'a> {
    pub(crate) tensor: &'a Tensor,
    pub(crate) levels: Vec<LevelArrays>,
}

impl<'a> Argument<'a> {
    pub(crate) fn all(tensors: &[&'a Tensor]) -> Vec<Argument<'a>> {
        let levels = |tensor: &Tensor| (0..tensor.levels().len()).map(|k| tensor.level_arrays(k)).collect();
        tensors.iter().map(|tensor| Argument { tensor, levels: levels(tensor) }).collect()
    }

    /// About how many entries there are: as many as its longest array has.
    pub(crate) fn entries(&self) -> u64 {
        let lists = self.levels.iter().flat_map(|level| &level.arrays).map(|(_, array)| array.len());
        lists.chain(self.tensor.values().map(|values| values.len())).max().unwrap_or(0) as u64
    }

    /// Whether code for this layout takes this tensor.
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

    /// What differs between tensors that one piece of code cannot serve; tensors that hash alike may still differ.
    pub(crate) fn hash(&self, state: &mut impl Hasher) {
        (self.tensor.dtype(), self.tensor.format(), self.tensor.literal_range()).hash(state);
    }
}

/// For each parameter, whether what is inferred of a program may depend on its value (if it is an integer without
/// dimensions): it occurs in a subscript, a bound, a shape or a bound name.
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
