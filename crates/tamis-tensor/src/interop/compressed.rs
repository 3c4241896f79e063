//! Conversions from and to `sprs`: compressed sparse matrices, by rows (CSR) or by columns (CSC).

use super::another_type;
use crate::levels::LevelArrays;
use crate::{IndexArray, Tensor, ValueType};
use sprs::{CsMat, CsMatBase, CsMatI, SpIndex};
use std::ops::Deref;
use tamis_ir::{Code, Diagnostic, Format, Value};

/// A tensor in the format of a matrix: CSR or CSC. The values are moved; indices are narrowed to 32
/// bits if they fit.
///
/// ```
/// use sprs::CsMat;
/// use tamis_tensor::Tensor;
/// let identity: CsMat<f64> = CsMat::eye(3);
/// let a = Tensor::try_from(identity)?;
/// assert_eq!((a.format().to_string().as_str(), a.nnz()), ("csr", 3));
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
impl<T: ValueType, I: SpIndex, P: SpIndex> TryFrom<CsMatI<T, I, P>> for Tensor {
    type Error = Diagnostic;

    fn try_from(matrix: CsMatI<T, I, P>) -> Result<Tensor, Diagnostic> {
        let (shape, is_csr) = (shape_of(&matrix), matrix.is_csr());
        let positions = narrowed(&matrix.proper_indptr());
        let (_, coordinates, values) = matrix.into_raw_storage();
        compressed(&shape, is_csr, positions, narrowed(&coordinates), T::array(values))
    }
}

/// A tensor of a copy of a matrix or view, in its format.
impl<T, I, P, PStorage, IStorage, DStorage> TryFrom<&CsMatBase<T, I, PStorage, IStorage, DStorage, P>> for Tensor
where
    T: ValueType,
    I: SpIndex,
    P: SpIndex,
    PStorage: Deref<Target = [P]>,
    IStorage: Deref<Target = [I]>,
    DStorage: Deref<Target = [T]>,
{
    type Error = Diagnostic;

    fn try_from(matrix: &CsMatBase<T, I, PStorage, IStorage, DStorage, P>) -> Result<Tensor, Diagnostic> {
        let shape = [matrix.rows() as u64, matrix.cols() as u64];
        let positions = matrix.proper_indptr();
        let values = T::array(matrix.data().to_vec());
        compressed(&shape, matrix.is_csr(), narrowed(&positions), narrowed(matrix.indices()), values)
    }
}

/// A matrix of the stored elements of a tensor: by columns if the tensor is CSC, else by rows.
///
/// ```
/// use sprs::CsMat;
/// use tamis_ir::Format;
/// use tamis_tensor::Tensor;
/// let a = Tensor::from_dense(&[2, 2], vec![1.0, 0.0, 0.0, 4.0].into(), &Format::csr(), 0.0.into())?;
/// let matrix = CsMat::<f64>::try_from(&a)?;
/// assert_eq!((matrix.nnz(), matrix.get(1, 1)), (2, Some(&4.0)));
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
impl<T: ValueType> TryFrom<&Tensor> for CsMat<T> {
    type Error = Diagnostic;

    fn try_from(tensor: &Tensor) -> Result<CsMat<T>, Diagnostic> {
        let [rows, columns] = *tensor.shape() else {
            let d = Diagnostic::new(Code::E0707, format!("a tensor of {} dimensions is not a matrix", tensor.rank()));
            return Err(d.help("convert a tensor of two dimensions"));
        };
        if tensor.fill().is_truthy() {
            let d = Diagnostic::new(Code::E0707, format!("a sparse matrix has the fill 0, not {}", tensor.fill()));
            return Err(d.help("compute a tensor with the fill 0 first"));
        }
        let csc = Format::csc();
        let by_columns = *tensor.format() == csc;
        let compressed = tensor.convert(&if by_columns { csc } else { Format::csr() })?;
        let values = compressed.as_slice::<T>().ok_or_else(|| another_type::<T>(tensor))?.to_vec();
        let arrays = compressed.level_arrays(1);
        let array = |name: &str| -> Vec<usize> {
            arrays.get(name).map(|array| array.to_vec().into_iter().map(|x| x as usize).collect()).unwrap_or_default()
        };
        let (shape, positions, coordinates) = ((rows as usize, columns as usize), array("pos"), array("crd"));
        let made = match by_columns {
            true => CsMat::try_new_csc(shape, positions, coordinates, values),
            false => CsMat::try_new(shape, positions, coordinates, values),
        };
        made.map_err(|(.., error)| {
            Diagnostic::new(Code::E1101, format!("the arrays of a matrix are refused: {error}"))
                .note("this is a bug of Tamis")
                .help("please report the tensor")
        })
    }
}

fn shape_of<T, I: SpIndex, P: SpIndex>(matrix: &CsMatI<T, I, P>) -> [u64; 2] {
    [matrix.rows() as u64, matrix.cols() as u64]
}

/// Indices in the narrower of 32 and 64 bits that fits them.
fn narrowed<I: SpIndex>(indices: &[I]) -> IndexArray {
    let numbers = || indices.iter().map(|index| index.index());
    match numbers().all(|x| u32::try_from(x).is_ok()) {
        true => numbers().map(|x| x as u32).collect(),
        false => numbers().map(|x| x as u64).collect(),
    }
}

fn compressed(
    shape: &[u64; 2],
    is_csr: bool,
    positions: IndexArray,
    coordinates: IndexArray,
    values: crate::ValueArray,
) -> Result<Tensor, Diagnostic> {
    let format = if is_csr { Format::csr() } else { Format::csc() };
    let fill = Value::zero(values.dtype());
    let levels = vec![LevelArrays::default(), LevelArrays::new([("pos", positions), ("crd", coordinates)])];
    Tensor::from_parts(shape, &format, levels, Some(values), fill)
}
