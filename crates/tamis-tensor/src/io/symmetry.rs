//! Symmetry of matrices in files, and expansion of stored triangles.

use super::entries::{ValueColumn, zeroed_vec};
use super::fault::Fault;
use crate::{Index, IndexArray};
use bytemuck::Zeroable;
use num_complex::Complex;
use rayon::prelude::*;
use tamis_ir::Code;

/// The symmetry of a stored triangle.
///
/// ```
/// use tamis_tensor::Tensor;
/// use tamis_tensor::io::{FileKind, Symmetry, WriteOptions, write_to};
/// # use tamis_ir::Format;
/// let values = vec![4.0, 1.0, 1.0, 4.0].into();
/// let a = Tensor::from_dense(&[2, 2], values, &Format::csr(), 0.0.into())?;
/// let options = WriteOptions { symmetry: Symmetry::Symmetric, ..WriteOptions::default() };
/// let mut file = Vec::new();
/// write_to(FileKind::MatrixMarket, &mut file, &a, &options)?;
/// assert!(file.starts_with(b"%%MatrixMarket matrix coordinate real symmetric\n2 2 3\n"));
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Symmetry {
    /// No symmetry: every entry is stored.
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
    ///
    /// ```
    /// use tamis_tensor::io::Symmetry;
    /// let words: Vec<&str> = Symmetry::ALL.into_iter().map(Symmetry::name).collect();
    /// assert!(words.contains(&"hermitian"));
    /// ```
    pub const ALL: [Symmetry; 4] =
        [Symmetry::General, Symmetry::Symmetric, Symmetry::SkewSymmetric, Symmetry::Hermitian];

    /// The word of Matrix Market.
    ///
    /// ```
    /// use tamis_tensor::io::Symmetry;
    /// assert_eq!(Symmetry::SkewSymmetric.name(), "skew-symmetric");
    /// ```
    pub const fn name(self) -> &'static str {
        match self {
            Symmetry::General => "general",
            Symmetry::Symmetric => "symmetric",
            Symmetry::SkewSymmetric => "skew-symmetric",
            Symmetry::Hermitian => "hermitian",
        }
    }
}

/// A value with a mirrored counterpart.
pub(super) trait MirroredValue: Copy {
    /// The value at (j,i) for a value at (i,j); `None` if it does not fit the type.
    fn mirror(self, symmetry: Symmetry) -> Option<Self>;

    /// True if it is valid on the diagonal.
    fn on_diagonal(self, symmetry: Symmetry) -> bool {
        symmetry != Symmetry::SkewSymmetric
    }
}

impl MirroredValue for () {
    fn mirror(self, _: Symmetry) -> Option<()> {
        Some(())
    }
}

impl MirroredValue for f64 {
    fn mirror(self, symmetry: Symmetry) -> Option<f64> {
        Some(if symmetry == Symmetry::SkewSymmetric { -self } else { self })
    }
}

impl MirroredValue for i64 {
    fn mirror(self, symmetry: Symmetry) -> Option<i64> {
        if symmetry == Symmetry::SkewSymmetric { self.checked_neg() } else { Some(self) }
    }
}

impl MirroredValue for u64 {
    fn mirror(self, symmetry: Symmetry) -> Option<u64> {
        if symmetry == Symmetry::SkewSymmetric { self.checked_neg() } else { Some(self) }
    }
}

impl MirroredValue for Complex<f64> {
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

/// Adds the mirrored entry of each off-diagonal entry, directly after it, so that the first of
/// duplicates stays the first in both triangles. `at` is the offset of an entry in the text.
pub(super) fn expand<F: ValueColumn>(
    symmetry: Symmetry,
    columns: Vec<IndexArray>,
    values: &mut Vec<F::Item>,
    at: impl Fn(usize) -> usize,
) -> Result<Vec<IndexArray>, Fault>
where
    F::Item: MirroredValue,
{
    let expanded = match &columns[..] {
        _ if symmetry == Symmetry::General => return Ok(columns),
        [IndexArray::U32(rows), IndexArray::U32(cols)] => expand_as(symmetry, rows, cols, values),
        [IndexArray::U64(rows), IndexArray::U64(cols)] => expand_as(symmetry, rows, cols, values),
        _ => return Ok(columns),
    };
    expanded.map_err(|bad| match bad {
        Bad::OnDiagonal(entry) => on_diagonal(symmetry, at(entry)),
        Bad::NoMirror(entry) => no_mirror(at(entry)),
        Bad::NoRoom(fault) => fault,
    })
}

/// The mistake of an entry that violates the symmetry, or the reason for its absence.
enum Bad {
    OnDiagonal(usize),
    NoMirror(usize),
    NoRoom(Fault),
}

fn expand_as<I: Index, T: MirroredValue + Zeroable + Send + Sync>(
    symmetry: Symmetry,
    rows: &[I],
    cols: &[I],
    values: &mut Vec<T>,
) -> Result<Vec<IndexArray>, Bad>
where
    IndexArray: From<Vec<I>>,
{
    const CHUNK: usize = 1 << 16;
    let chunks = || rows.par_chunks(CHUNK).zip(cols.par_chunks(CHUNK)).zip(values.par_chunks(CHUNK));
    let counts: Vec<usize> =
        chunks().map(|((i, j), _)| i.len() + i.iter().zip(j).filter(|(i, j)| i != j).count()).collect();
    let total = counts.iter().sum();
    let mut out_rows: Vec<I> = zeroed_vec(total).map_err(Bad::NoRoom)?;
    let mut out_cols: Vec<I> = zeroed_vec(total).map_err(Bad::NoRoom)?;
    let mut out_values: Vec<T> = zeroed_vec(total).map_err(Bad::NoRoom)?;
    let mut jobs = Vec::with_capacity(counts.len());
    {
        let (mut i, mut j, mut v) = (&mut out_rows[..], &mut out_cols[..], &mut out_values[..]);
        for count in counts {
            let mut own = || -> Option<_> {
                Some((i.split_off_mut(..count)?, j.split_off_mut(..count)?, v.split_off_mut(..count)?))
            };
            jobs.extend(own());
        }
    }
    let results: Vec<Result<(), Bad>> = chunks()
        .zip(jobs)
        .enumerate()
        .map(|(chunk, (((rows, cols), values), (out_rows, out_cols, out_values)))| {
            let mut out = out_rows.iter_mut().zip(out_cols).zip(out_values);
            let mut put = |i: I, j: I, value: T| {
                if let Some(((row, col), slot)) = out.next() {
                    (*row, *col, *slot) = (i, j, value);
                }
            };
            for (k, ((i, j), value)) in rows.iter().zip(cols).zip(values).enumerate() {
                put(*i, *j, *value);
                if i != j {
                    let mirrored = value.mirror(symmetry).ok_or(Bad::NoMirror(chunk * CHUNK + k))?;
                    put(*j, *i, mirrored);
                } else if !value.on_diagonal(symmetry) {
                    return Err(Bad::OnDiagonal(chunk * CHUNK + k));
                }
            }
            Ok(())
        })
        .collect();
    results.into_iter().collect::<Result<(), Bad>>()?;
    *values = out_values;
    Ok(vec![out_rows.into(), out_cols.into()])
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
