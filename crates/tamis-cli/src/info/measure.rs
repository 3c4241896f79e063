//! Measuring a tensor: what each level holds, and the structure of a matrix. Linear in what is stored.

use crate::plot::for_each_other;
use tamis_ir::Value;
use tamis_ir::diag::Result;
use tamis_tensor::{Coordinates, Index, Tensor, ValueArray, with_indices};

/// What one level holds.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LevelFacts {
    pub(super) kind: &'static str,
    /// The dimension that the level stores.
    pub(super) dimension: usize,
    pub(super) size: u64,
    pub(super) fibers: u64,
    pub(super) stored: u64,
    pub(super) bytes: u64,
    /// Coordinates per fiber (least, most) and fibers without any, where that is known without looking at each.
    pub(super) spread: Option<(u64, u64, u64)>,
}

/// The levels of a tensor, outermost first.
pub(super) fn levels(tensor: &Tensor) -> Vec<LevelFacts> {
    let mut fibers = 1usize;
    let mut facts = Vec::new();
    for (level, dimension) in tensor.levels().iter().zip(tensor.order()) {
        let (kind, arrays) = (level.level_type(), level.arrays());
        let size = tensor.shape().get(*dimension).copied().unwrap_or(0);
        let stored = level.stored(fibers).unwrap_or(usize::MAX);
        let spread = match arrays.get("pos") {
            _ if fibers == 0 => None,
            _ if kind.capabilities.full => Some((size, size, if size == 0 { fibers as u64 } else { 0 })),
            _ if kind.capabilities.one_per_fiber => Some((1, 1, 0)),
            Some(pos) if pos.len() == fibers + 1 => Some(with_indices!(pos, pos => lengths(pos))),
            _ => None,
        };
        facts.push(LevelFacts {
            kind: kind.kind.name(),
            dimension: *dimension,
            size,
            fibers: fibers as u64,
            stored: stored as u64,
            bytes: arrays.nbytes() as u64,
            spread,
        });
        fibers = stored;
    }
    facts
}

fn lengths<I: Index>(pos: &[I]) -> (u64, u64, u64) {
    let lengths = pos.windows(2).map(|w| w[1].to_u64() - w[0].to_u64());
    lengths.fold((u64::MAX, 0, 0), |(least, most, empty), n| (least.min(n), most.max(n), empty + u64::from(n == 0)))
}

/// How the transposed entries relate to the entries.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Mirror {
    /// The same places hold entries.
    pub(super) structural: bool,
    pub(super) symmetric: bool,
    pub(super) skew: bool,
    pub(super) hermitian: bool,
}

/// The structure of a matrix.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct MatrixFacts {
    /// How far below and above the diagonal the farthest entries are; 0 if there are none on that side.
    pub(super) lower: u64,
    pub(super) upper: u64,
    pub(super) empty_rows: u64,
    pub(super) empty_columns: u64,
    pub(super) most_in_row: u64,
    pub(super) mean_in_row: f64,
    pub(super) on_diagonal: u64,
    pub(super) mirror: Mirror,
    /// `diagonal`, `lower triangular`, `permutation`, …
    pub(super) name: Option<&'static str>,
}

/// What is stored, listed once for everything that is measured.
pub(super) enum Stored {
    /// Every cell: the values in row-major order.
    Everything(ValueArray),
    /// The stored entries, in row-major order.
    Entries(Coordinates),
}

impl Stored {
    pub(super) fn of(tensor: &Tensor) -> Result<Stored> {
        match tensor.values() {
            Some(_) if tensor.format().is_all_dense() => Ok(Stored::Everything(tensor.to_dense()?)),
            _ => Ok(Stored::Entries(tensor.try_to_coordinates()?)),
        }
    }

    /// How many stored entries are the same number as the fill.
    pub(super) fn fills(&self, fill: Value) -> u64 {
        let (Stored::Everything(values) | Stored::Entries(Coordinates { values, .. })) = self;
        let mut others = 0;
        for_each_other(values, fill, |_| others += 1);
        values.len() as u64 - others
    }
}

/// The structure of a matrix; `None` for other ranks. Of a matrix that stores every cell, only the entries that differ
/// from the fill count.
pub(super) fn matrix(tensor: &Tensor, stored: &Stored) -> Option<MatrixFacts> {
    let [rows, columns] = *tensor.shape() else { return None };
    Some(match stored {
        Stored::Everything(values) => {
            let mut kept: Vec<usize> = Vec::new();
            for_each_other(values, tensor.fill(), |k| kept.push(k));
            let n = columns.max(1);
            let (i, j): (Vec<u64>, Vec<u64>) = kept.iter().map(|k| (*k as u64 / n, *k as u64 % n)).unzip();
            structure([rows, columns], &i, &j, |k| values.get(kept[k]))
        }
        Stored::Entries(entries) => match entries.columns.as_slice() {
            [i, j] => with_indices!(i, i => with_indices!(j, j => {
                structure([rows, columns], i, j, |k| entries.values.get(k))
            })),
            _ => return None,
        },
    })
}

fn structure<I: Index, J: Index>(
    [rows, columns]: [u64; 2],
    i: &[I],
    j: &[J],
    value: impl Fn(usize) -> Value,
) -> MatrixFacts {
    let (mut lower, mut upper, mut on_diagonal) = (0, 0, 0);
    for (i, j) in i.iter().zip(j) {
        let (i, j) = (i.to_u64(), j.to_u64());
        lower = lower.max(i.saturating_sub(j));
        upper = upper.max(j.saturating_sub(i));
        on_diagonal += u64::from(i == j);
    }
    let row_lengths = i.chunk_by(|a, b| a == b).map(|row| row.len() as u64);
    let (full_rows, most_in_row) = row_lengths.fold((0, 0), |(full, most), n| (full + 1u64, n.max(most)));
    let full_columns = distinct(j, columns);
    let stored = i.len() as u64;
    let mirror = if rows == columns { mirror(i, j, &value) } else { Mirror::default() };
    let ones = || (0..i.len()).all(|k| value(k).same_number(Value::one(value(k).dtype())));
    let permutation = rows == columns && [stored, full_rows, full_columns] == [rows; 3] && ones();
    let name = match (lower, upper) {
        _ if stored == 0 => None,
        (0, 0) if permutation => Some("identity"),
        (0, 0) => Some("diagonal"),
        _ if permutation => Some("permutation"),
        (0, _) => Some("upper triangular"),
        (_, 0) => Some("lower triangular"),
        _ => None,
    };
    MatrixFacts {
        lower,
        upper,
        empty_rows: rows - full_rows,
        empty_columns: columns - full_columns,
        most_in_row,
        mean_in_row: if rows == 0 { 0.0 } else { stored as f64 / rows as f64 },
        on_diagonal,
        mirror,
        name,
    }
}

/// How many different coordinates there are, with a bitmap if that is small beside the entries.
fn distinct<I: Index>(coordinates: &[I], size: u64) -> u64 {
    if size / 64 <= coordinates.len() as u64 + 1024 {
        let mut seen = vec![0u64; (size / 64) as usize + 1];
        coordinates.iter().for_each(|c| seen[c.to_usize() / 64] |= 1 << (c.to_u64() % 64));
        return seen.iter().map(|word| u64::from(word.count_ones())).sum();
    }
    let mut sorted = coordinates.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    sorted.len() as u64
}

/// Meets each entry's mirror image with one cursor per row: as the rows go by in order, the mirror images in each
/// row come up in order, too.
fn mirror<I: Index, J: Index>(i: &[I], j: &[J], value: impl Fn(usize) -> Value) -> Mirror {
    // Rows by their rank among the rows that have entries, so that sizes of dimensions do not matter.
    let (mut names, mut cursors): (Vec<u64>, Vec<usize>) = (Vec::new(), Vec::new());
    for (k, row) in i.iter().enumerate() {
        if names.last() != Some(&row.to_u64()) {
            names.push(row.to_u64());
            cursors.push(k);
        }
    }
    let mut found = Mirror { structural: true, symmetric: true, skew: !i.is_empty(), hermitian: true };
    for (k, (row, column)) in i.iter().zip(j).enumerate() {
        let (row, column) = (row.to_u64(), column.to_u64());
        // Rows are mostly numbered without gaps; then the rank is the row itself.
        let rank = match names.get(usize::try_from(column).unwrap_or(usize::MAX)) {
            Some(name) if *name == column => Some(column as usize),
            _ => names.binary_search(&column).ok(),
        };
        let image = rank.and_then(|rank| {
            let at = cursors[rank];
            cursors[rank] += 1;
            let met = i.get(at).map(|x| x.to_u64()) == Some(column) && j.get(at).map(|x| x.to_u64()) == Some(row);
            met.then_some(at)
        });
        let Some(at) = image else { return Mirror::default() };
        let (a, b) = (value(k), value(at));
        found.symmetric = found.symmetric && a.same_number(b);
        found.skew = found.skew && opposite(a, b);
        found.hermitian = found.hermitian && conjugate(a, b);
    }
    found
}

fn opposite(a: Value, b: Value) -> bool {
    match (a.as_i64(), b.as_i64()) {
        (Some(a), Some(b)) => a.checked_neg() == Some(b),
        _ => a.as_c128() == -b.as_c128(),
    }
}

fn conjugate(a: Value, b: Value) -> bool {
    a.same_number(b) && a.as_c128().im == 0.0 || a.as_c128() == b.as_c128().conj()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tamis_ir::Format;

    fn measured(tensor: &Tensor) -> MatrixFacts {
        matrix(tensor, &Stored::of(tensor).unwrap()).unwrap()
    }

    fn facts(shape: [u64; 2], values: Vec<f64>, format: &str) -> MatrixFacts {
        let dense = Tensor::from_dense(&shape, values.into(), &Format::dense(2), Value::F64(0.0)).unwrap();
        measured(&dense.convert(&Format::parse(format, 2).unwrap()).unwrap())
    }

    #[test]
    fn structures_are_found_in_every_format() {
        // The values, and: names, symmetric, skew, structural, lower, upper.
        type Row = ([f64; 9], Option<&'static str>, bool, bool, bool, u64, u64);
        let table: [Row; 8] = [
            ([1., 0., 0., 0., 1., 0., 0., 0., 1.], Some("identity"), true, false, true, 0, 0),
            ([2., 0., 0., 0., 0., 0., 0., 0., 1.], Some("diagonal"), true, false, true, 0, 0),
            ([0., 1., 0., 0., 0., 1., 1., 0., 0.], Some("permutation"), false, false, false, 2, 1),
            ([1., 0., 0., 4., 5., 0., 0., 8., 9.], Some("lower triangular"), false, false, false, 1, 0),
            ([1., 2., 3., 0., 5., 0., 0., 0., 9.], Some("upper triangular"), false, false, false, 0, 2),
            ([1., 2., 3., 2., 5., 0., 3., 0., 9.], None, true, false, true, 2, 2),
            ([0., 2., -3., -2., 0., 0., 3., 0., 0.], None, false, true, true, 2, 2),
            ([1., 2., 0., 7., 5., 0., 0., 0., 9.], None, false, false, true, 1, 1),
        ];
        for (values, names, symmetric, skew, structural, lower, upper) in table {
            for format in ["dense", "csr", "csc", "coo", "dcsr"] {
                let found = facts([3, 3], values.to_vec(), format);
                assert_eq!(found.name, names, "{values:?} {format}");
                assert_eq!((found.lower, found.upper), (lower, upper), "{values:?} {format}");
                let Mirror { structural: s, symmetric: y, skew: k, hermitian: h } = found.mirror;
                assert_eq!((s, y, k, h), (structural, symmetric, skew, symmetric), "{values:?} {format}");
            }
        }
    }

    #[test]
    fn rows_columns_and_the_diagonal() {
        let found = facts([3, 4], vec![1., 0., 0., 2., 0., 0., 0., 0., 3., 0., 0., 0.], "csr");
        assert_eq!((found.empty_rows, found.empty_columns, found.most_in_row, found.on_diagonal), (1, 2, 2, 1));
        assert_eq!((found.lower, found.upper, found.mean_in_row), (2, 3, 1.0));
        assert_eq!(found.mirror, Mirror::default());
    }

    #[test]
    fn sizes_do_not_matter() {
        let n = 1u64 << 62;
        let entries = tamis_tensor::Coordinates {
            shape: vec![n, n],
            columns: vec![vec![5u64, n - 1].into(), vec![n - 1, 5].into()],
            values: vec![3.0, 3.0].into(),
        };
        let combine = tamis_tensor::Combine::Error;
        let tensor = Tensor::from_coordinates(&entries, &Format::coo(2), Value::F64(0.0), combine).unwrap();
        let found = measured(&tensor);
        assert!(found.mirror.symmetric && found.mirror.hermitian && !found.mirror.skew);
        assert_eq!(found.empty_rows, n - 2);
    }

    #[test]
    fn complex_matrices_may_be_hermitian() {
        use num_complex::Complex;
        let (z, zero) = (Complex::new(1.0, 2.0), Complex::new(0.0, 0.0));
        let values = vec![Complex::new(4.0, 0.0), z, z.conj(), zero];
        let tensor = Tensor::from_dense(&[2, 2], values.into(), &Format::csr(), Value::C128(zero)).unwrap();
        let mirror = measured(&tensor).mirror;
        assert!(mirror.hermitian && mirror.structural && !mirror.symmetric && !mirror.skew);
    }

    #[test]
    fn levels_tell_their_fibers() {
        let values = vec![1., 0., 0., 2., 0., 0., 0., 0., 3., 0., 0., 0.];
        let csr = Tensor::from_dense(&[3, 4], values.into(), &Format::csr(), Value::F64(0.0)).unwrap();
        let found = levels(&csr);
        assert_eq!(
            (found[0].kind, found[0].fibers, found[0].stored, found[0].spread),
            ("dense", 1, 3, Some((3, 3, 0)))
        );
        assert_eq!(
            (found[1].kind, found[1].fibers, found[1].stored, found[1].spread),
            ("sparse", 3, 3, Some((0, 2, 1)))
        );
        let csc = levels(&csr.convert(&Format::csc()).unwrap());
        assert_eq!((csc[0].dimension, csc[1].dimension, csc[1].spread), (1, 0, Some((0, 2, 2))));
        let fills = |tensor: &Tensor| Stored::of(tensor).unwrap().fills(tensor.fill());
        assert_eq!(fills(&csr), 0);
        assert_eq!(fills(&csr.convert(&Format::dense(2)).unwrap()), 9);
    }
}
