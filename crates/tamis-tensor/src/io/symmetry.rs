//! Which entries of a matrix stand for others, and how those are added.

use super::entries::Field;
use super::fault::Fault;
use crate::{Index, IndexArray};
use num_complex::Complex;
use tamis_ir::Code;

/// Which entries of a matrix stand for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Symmetry {
    /// Every entry stands for itself.
    General,
    /// (j,i) has the value of (i,j).
    Symmetric,
    /// (j,i) has the value of (i,j) with the sign changed, and the diagonal is zero.
    SkewSymmetric,
    /// (j,i) has the conjugate of (i,j), and the diagonal is real.
    Hermitian,
}

impl Symmetry {
    /// Every symmetry.
    pub const ALL: [Symmetry; 4] =
        [Symmetry::General, Symmetry::Symmetric, Symmetry::SkewSymmetric, Symmetry::Hermitian];

    /// The word Matrix Market uses.
    pub const fn name(self) -> &'static str {
        match self {
            Symmetry::General => "general",
            Symmetry::Symmetric => "symmetric",
            Symmetry::SkewSymmetric => "skew-symmetric",
            Symmetry::Hermitian => "hermitian",
        }
    }
}

/// A value that has a mirror image.
pub(super) trait Mirror: Copy {
    /// The value at (j,i) of one at (i,j); `None` if it does not fit the type.
    fn mirror(self, symmetry: Symmetry) -> Option<Self>;

    /// Whether it may stand on the diagonal.
    fn on_diagonal(self, symmetry: Symmetry) -> bool {
        symmetry != Symmetry::SkewSymmetric
    }
}

impl Mirror for () {
    fn mirror(self, _: Symmetry) -> Option<()> {
        Some(())
    }
}

impl Mirror for f64 {
    fn mirror(self, symmetry: Symmetry) -> Option<f64> {
        Some(if symmetry == Symmetry::SkewSymmetric { -self } else { self })
    }
}

impl Mirror for i64 {
    fn mirror(self, symmetry: Symmetry) -> Option<i64> {
        if symmetry == Symmetry::SkewSymmetric { self.checked_neg() } else { Some(self) }
    }
}

impl Mirror for u64 {
    fn mirror(self, symmetry: Symmetry) -> Option<u64> {
        if symmetry == Symmetry::SkewSymmetric { self.checked_neg() } else { Some(self) }
    }
}

impl Mirror for Complex<f64> {
    fn mirror(self, symmetry: Symmetry) -> Option<Complex<f64>> {
        Some(match symmetry {
            Symmetry::SkewSymmetric => -self,
            Symmetry::Hermitian => self.conj(),
            _ => self,
        })
    }

    fn on_diagonal(self, symmetry: Symmetry) -> bool {
        match symmetry {
            Symmetry::SkewSymmetric => false,
            Symmetry::Hermitian => self.im == 0.0,
            _ => true,
        }
    }
}

/// Adds the mirror image of each entry off the diagonal, after all entries of the file.
/// `at` tells where in the text an entry stands.
pub(super) fn expand<F: Field>(
    symmetry: Symmetry,
    columns: Vec<IndexArray>,
    values: &mut Vec<F::Item>,
    at: impl Fn(usize) -> usize,
) -> Result<Vec<IndexArray>, Fault>
where
    F::Item: Mirror,
{
    let mut columns = columns.into_iter();
    Ok(match (columns.next(), columns.next()) {
        (Some(rows), Some(cols)) if symmetry != Symmetry::General => match (rows, cols) {
            (IndexArray::U32(rows), IndexArray::U32(cols)) => {
                expand_as(symmetry, rows.into_vec(), cols.into_vec(), values, at)?
            }
            (rows, cols) => expand_as(symmetry, rows.to_vec(), cols.to_vec(), values, at)?,
        },
        (rows, cols) => rows.into_iter().chain(cols).chain(columns).collect(),
    })
}

fn expand_as<I: Index, T: Mirror>(
    symmetry: Symmetry,
    mut rows: Vec<I>,
    mut cols: Vec<I>,
    values: &mut Vec<T>,
    at: impl Fn(usize) -> usize,
) -> Result<Vec<IndexArray>, Fault>
where
    IndexArray: From<Vec<I>>,
{
    let count = values.len();
    let off_diagonal = rows.iter().zip(&cols).filter(|(i, j)| i != j).count();
    rows.reserve_exact(off_diagonal);
    cols.reserve_exact(off_diagonal);
    values.reserve_exact(off_diagonal);
    for k in 0..count {
        let (i, j, value) = (rows[k], cols[k], values[k]);
        if i == j {
            if !value.on_diagonal(symmetry) {
                return Err(on_diagonal(symmetry, at(k)));
            }
            continue;
        }
        let Some(mirrored) = value.mirror(symmetry) else { return Err(no_mirror(at(k))) };
        rows.push(j);
        cols.push(i);
        values.push(mirrored);
    }
    Ok(vec![rows.into(), cols.into()])
}

#[cold]
pub(super) fn on_diagonal(symmetry: Symmetry, at: usize) -> Fault {
    match symmetry {
        Symmetry::Hermitian => {
            Fault::new(Code::E0808, at, "a hermitian matrix has real numbers on its diagonal, and this one is not")
                .help("make the imaginary part 0, or say `symmetric` or `general` in the first line of the file")
        }
        _ => Fault::new(Code::E0808, at, "a skew-symmetric matrix has no entries on its diagonal")
            .help("remove the entry, or say `symmetric` or `general` in the first line of the file"),
    }
}

#[cold]
pub(super) fn no_mirror(at: usize) -> Fault {
    Fault::new(Code::E0805, at, "this number with its sign changed does not fit 64 bits")
        .help("say `real` instead of `integer` in the first line of the file")
}
