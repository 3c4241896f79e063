//! Canonicalization of compressed rows or columns from files: sorted, without duplicates.

use crate::{Index, IndexArray};
use tamis_ir::format::Width;

/// The numbers in the narrower of 32 and 64 bits that fits `largest`.
pub(super) fn narrow(numbers: Vec<u64>, largest: u64) -> IndexArray {
    match Width::automatic(largest) {
        Width::U32 => numbers.into_iter().map(|n| n as u32).collect::<Vec<_>>().into(),
        _ => numbers.into(),
    }
}

/// Sorts the coordinates of each row if needed; returns a duplicate, if there is one. `pos`
/// increases from 0 to the number of coordinates.
pub(super) fn sort_rows(pos: &[u64], crd: &mut [u64]) -> Option<u64> {
    let mut repeated = None;
    for row in pos.windows(2) {
        let row = &mut crd[row[0] as usize..row[1] as usize];
        if !row.windows(2).all(|w| w[0] < w[1]) {
            row.sort_unstable();
            if repeated.is_none() {
                repeated = row.windows(2).find(|w| w[0] == w[1]).map(|w| w[0]);
            }
        }
    }
    repeated
}

/// Drops duplicate coordinates of sorted rows.
pub(super) fn without_repetitions(mut pos: Vec<u64>, mut crd: Vec<u64>) -> (Vec<u64>, Vec<u64>) {
    let mut kept = 0;
    let mut start = 0;
    for pos in pos.iter_mut().skip(1) {
        let end = *pos as usize;
        let row_start = kept;
        for k in start..end {
            if kept == row_start || crd[kept - 1] != crd[k] {
                crd[kept] = crd[k];
                kept += 1;
            }
        }
        start = end;
        *pos = kept as u64;
    }
    crd.truncate(kept);
    (pos, crd)
}

/// True if the coordinates of every row are strictly increasing.
pub(super) fn is_canonical<P: Index, C: Index>(pos: &[P], crd: &[C]) -> bool {
    pos.windows(2).all(|row| crd[row[0].to_usize()..row[1].to_usize()].windows(2).all(|w| w[0] < w[1]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_sorted_and_repetitions_dropped() {
        let pos = vec![0, 3, 3, 6];
        let mut crd = vec![2, 0, 2, 5, 4, 1];
        assert_eq!(sort_rows(&pos, &mut crd), Some(2));
        assert_eq!(crd, [0, 2, 2, 1, 4, 5]);
        assert_eq!(without_repetitions(pos, crd), (vec![0, 2, 2, 5], vec![0, 2, 1, 4, 5]));
        assert!(is_canonical(&[0u32, 2, 3], &[0u32, 3, 1]));
        assert!(!is_canonical(&[0u32, 2, 3], &[3u32, 3, 1]));
    }
}
