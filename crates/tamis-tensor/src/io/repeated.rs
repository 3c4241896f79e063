//! Detection of duplicate entries.

use super::scan;
use crate::{Index, IndexArray, with_indices};
use rayon::prelude::*;

/// The first entry whose coordinates duplicate those of an earlier one: both positions, the earlier
/// one first.
///
/// `mirrored`: (i,j) and (j,i) of a matrix are duplicates of each other. Entries that are sorted by
/// rows or by columns are checked in one pass; others are sorted separately.
pub(super) fn first_repetition(columns: &[IndexArray], shape: &[u64], mirrored: bool) -> Option<(usize, usize)> {
    let count = columns.first().map_or(0, IndexArray::len);
    if columns.is_empty() || count < 2 {
        return None;
    }
    let sorted = match columns {
        [IndexArray::U32(rows), IndexArray::U32(cols)] => {
            increasing_pairs(rows, cols, mirrored) || increasing_pairs(cols, rows, mirrored)
        }
        _ => !mirrored && increasing(columns),
    };
    if sorted {
        return None;
    }
    let size = shape.iter().try_fold(1u128, |size, n| size.checked_mul(u128::from(*n).max(1)));
    match size {
        Some(size) if size <= u128::from(u64::MAX) => by_keys(columns, shape, mirrored, |k| k as u64),
        Some(_) => by_keys(columns, shape, mirrored, |k| k),
        None => by_comparison(columns, count),
    }
}

/// True if pairs are strictly increasing; if mirrored, also in one triangle.
fn increasing_pairs(first: &[u32], second: &[u32], mirrored: bool) -> bool {
    const PART: usize = 1 << 16;
    (0..first.len().div_ceil(PART)).into_par_iter().all(|part| {
        // Chunks overlap by one entry, so that the step between them is checked as well.
        let range = part * PART..(part * PART + PART + 1).min(first.len());
        let (a, b) = (&first[range.clone()], &second[range]);
        let key = |(a, b): (&u32, &u32)| u64::from(*a) << 32 | u64::from(*b);
        let mut keys = a.iter().zip(b).map(key);
        let Some(mut last) = keys.next() else { return true };
        let mut fine = true;
        for key in keys {
            fine &= key > last;
            last = key;
        }
        fine
    }) && (!mirrored || {
        let below = first.par_iter().zip(second).all(|(a, b)| a >= b);
        below || first.par_iter().zip(second).all(|(a, b)| a <= b)
    })
}

fn increasing(columns: &[IndexArray]) -> bool {
    let count = columns.first().map_or(0, IndexArray::len);
    (1..count).into_par_iter().with_min_len(1 << 14).all(|k| {
        for column in columns {
            let (last, this) = with_indices!(column, c => (c[k - 1].to_u64(), c[k].to_u64()));
            if this != last {
                return this > last;
            }
        }
        false
    })
}

/// Sorts one key per entry; only if two are equal, locates their entries.
fn by_keys<K>(columns: &[IndexArray], shape: &[u64], mirrored: bool, narrow: fn(u128) -> K) -> Option<(usize, usize)>
where
    K: Copy + Ord + Send + Sync,
{
    let count = columns.first().map_or(0, IndexArray::len);
    let key = |k: usize| match columns {
        [rows, cols] if mirrored => {
            let (i, j) = (rows.get(k), cols.get(k));
            narrow(u128::from(i.max(j)) * u128::from(shape[1]) + u128::from(i.min(j)))
        }
        _ => narrow(columns.iter().zip(shape).fold(0, |key, (c, n)| key * u128::from(*n) + u128::from(c.get(k)))),
    };
    let mut keys: Vec<K> = (0..count).into_par_iter().with_min_len(1 << 14).map(key).collect();
    keys.par_sort_unstable();
    if !keys.par_windows(2).any(|w| w[0] == w[1]) {
        return None;
    }
    let mut entries: Vec<(K, usize)> = (0..count).map(|k| (key(k), k)).collect();
    entries.par_sort_unstable();
    entries.windows(2).filter(|w| w[0].0 == w[1].0).map(|w| (w[0].1, w[1].1)).min_by_key(|pair| pair.1)
}

/// For shapes whose size exceeds 128 bits.
fn by_comparison(columns: &[IndexArray], count: usize) -> Option<(usize, usize)> {
    let compare = |a: usize, b: usize| {
        columns.iter().map(|c| c.get(a).cmp(&c.get(b))).find(|order| order.is_ne()).unwrap_or(std::cmp::Ordering::Equal)
    };
    let mut entries: Vec<usize> = (0..count).collect();
    entries.par_sort_unstable_by(|a, b| compare(*a, *b).then(a.cmp(b)));
    entries.windows(2).filter(|w| compare(w[0], w[1]).is_eq()).map(|w| (w[0], w[1])).min_by_key(|pair| pair.1)
}

/// The start of the line of an entry (counted from 0).
pub(super) fn entry_offset(text: &[u8], comment: u8, entry: usize) -> usize {
    let mut rest = scan::skip_comments(text, comment);
    for _ in 0..entry {
        rest = scan::skip_comments(scan::split_line(rest).1, comment);
    }
    text.len() - rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(rows: &[u64], cols: &[u64], shape: [u64; 2], mirrored: bool) -> Option<(usize, usize)> {
        let narrow = |x: &[u64]| IndexArray::from(x.iter().map(|v| *v as u32).collect::<Vec<_>>());
        let found = first_repetition(&[narrow(rows), narrow(cols)], &shape, mirrored);
        let wide = first_repetition(&[rows.to_vec().into(), cols.to_vec().into()], &shape, mirrored);
        assert_eq!(found, wide);
        found
    }

    #[test]
    fn repetitions() {
        assert_eq!(check(&[], &[], [3, 3], false), None);
        assert_eq!(check(&[1], &[1], [3, 3], true), None);
        assert_eq!(check(&[0, 0, 1], &[0, 1, 0], [3, 3], false), None);
        assert_eq!(check(&[0, 0, 1], &[0, 1, 0], [3, 3], true), Some((1, 2)));
        assert_eq!(check(&[0, 1, 2, 0], &[0, 0, 0, 1], [3, 3], false), None);
        assert_eq!(check(&[2, 1, 2, 1], &[2, 1, 2, 1], [3, 3], false), Some((0, 2)));
        assert_eq!(check(&[0, 0], &[1, 1], [3, 3], false), Some((0, 1)));
        let huge = [1 << 60, 1 << 60];
        assert_eq!(check(&[2, 1, 2], &[5, 1, 5], huge, false), Some((0, 2)));
        let many = vec![u64::MAX; 5];
        let columns: Vec<IndexArray> = (0..5).map(|_| vec![7u64, 3, 7].into()).collect();
        assert_eq!(first_repetition(&columns, &many, false), Some((0, 2)));
    }

    #[test]
    fn repetition_across_parts() {
        let n = 200_000u64;
        let mut rows: Vec<u64> = (0..n).collect();
        assert_eq!(check(&rows, &rows, [n, n], false), None);
        rows[1 << 16] = (1 << 16) - 1;
        assert_eq!(check(&rows, &rows, [n, n], false), Some(((1 << 16) - 1, 1 << 16)));
    }

    #[test]
    fn offsets() {
        assert_eq!(entry_offset(b"1 1\n\n% c\n 2 2\n3 3", b'%', 0), 0);
        assert_eq!(entry_offset(b"1 1\n\n% c\n 2 2\n3 3", b'%', 1), 10);
        assert_eq!(entry_offset(b"1 1\n\n% c\n 2 2\n3 3", b'%', 2), 14);
    }
}
