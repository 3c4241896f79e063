//! Differential tests of all sorting algorithms against the standard library: all widths, lengths
//! and patterns.

use super::*;
use std::collections::BTreeSet;
use std::fmt::Debug;

/// A deterministic pseudo-random generator.
struct SortRng(u64);

impl SortRng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let x = self.0 ^ (self.0 >> 33);
        x.wrapping_mul(0xff51_afd7_ed55_8ccd) ^ (x >> 29)
    }
}

/// Lists of a length, by pattern.
fn patterns<T: Coordinate>(len: usize, rng: &mut SortRng) -> Vec<(String, Vec<T>)> {
    let width = 8 * size_of::<T>() as u32;
    let mut lists = Vec::new();
    let mut add = |name: String, list: Vec<u64>| lists.push((name, list.into_iter().map(T::narrow).collect()));
    for bits in [1, 4, 7, 8, 9, 12, 15, 16, 17, 22, 24, 31, 32, 33, 48, 63, 64] {
        if bits > width {
            continue;
        }
        let mask = u64::MAX >> (64 - bits);
        // Zeros below, and common bits above, the bits that differ.
        for low in [0, 3] {
            let common = rng.next() & !(mask << low);
            let any: Vec<u64> = (0..len).map(|_| common | (rng.next() & mask) << low).collect();
            if bits >= 63 || (1u64 << bits) >= len as u64 {
                let mut seen = BTreeSet::new();
                let mut distinct = Vec::new();
                let mut next = rng.next();
                while distinct.len() < len {
                    let x = if bits >= 63 || (len as u64) < (1 << bits) / 4 { rng.next() } else { next } & mask;
                    next = next.wrapping_add(1 + 2 * (len as u64 & 3));
                    if seen.insert(x) {
                        distinct.push(common | x << low);
                    } else {
                        next = next.wrapping_add(1);
                    }
                }
                add(format!("distinct, {bits} bits from {low}"), distinct);
            }
            add(format!("some equal, {bits} bits from {low}"), any);
        }
    }
    let up: Vec<u64> = (0..len as u64).collect();
    add("in order".into(), up.clone());
    add("reversed".into(), up.iter().rev().copied().collect());
    let mut swapped = up.clone();
    if len >= 2 {
        swapped.swap(len - 2, len - 1);
    }
    add("the last two swapped".into(), swapped);
    add("interleaved rows".into(), (0..len as u64).map(|k| (k % 10) * 977 + k / 10 * 3).collect());
    add("all equal".into(), vec![u64::MAX; len]);
    let ends = [0, u64::MAX];
    add("the ends of the range".into(), (0..len).map(|k| ends[k % 2]).collect());
    lists
}

fn agrees<T: Coordinate + Debug>(lengths: impl Iterator<Item = usize>) {
    let mut rng = SortRng(7);
    for len in lengths {
        for (name, list) in patterns::<T>(len, &mut rng) {
            // Guard elements on both sides must not change.
            let guard = T::narrow(0x5a5a_5a5a_5a5a_5a5a);
            let mut got = vec![guard; len + 2];
            got[1..=len].copy_from_slice(&list);
            // SAFETY: the list has `len` elements.
            assert!(unsafe { sort_range(got.as_mut_ptr(), got.len() as u64, 1, len as i64 + 1) });
            let mut expected = list.clone();
            expected.sort_unstable();
            assert_eq!((got[0], got[len + 1]), (guard, guard));
            assert!(got[1..=len] == expected, "{len} elements, {name}: {list:?}");
        }
    }
}

/// Every short length, lengths around every change of algorithm, and a sample of the others.
fn lengths() -> impl Iterator<Item = usize> {
    let changes = [255, 256, 257, 1023, 1024, 1025, 4095, 4096, 4097, 5000];
    (0..70).chain((70..300).step_by(13)).chain(changes).chain((301..5000).step_by(997))
}

#[test]
fn sorts_like_the_standard_library() {
    agrees::<u8>(lengths());
    agrees::<u16>(lengths());
    agrees::<u32>(lengths());
    agrees::<u64>(lengths());
}

#[test]
fn sorts_long_lists() {
    agrees::<u16>([70_000].into_iter());
    agrees::<u32>([70_000, 200_001].into_iter());
    agrees::<u64>([70_000].into_iter());
}

/// Each algorithm by itself, even where another would be selected.
#[test]
fn every_algorithm_sorts_every_list() {
    let mut rng = SortRng(11);
    for len in 2..400usize {
        for (name, list) in patterns::<u32>(len, &mut rng) {
            let varying = list.windows(2).fold(0, |bits, pair| bits | (pair[0] ^ pair[1]));
            if varying == 0 {
                continue;
            }
            let bits = BitRange { low: varying.trailing_zeros(), high: 32 - varying.leading_zeros() };
            let mut expected = list.clone();
            expected.sort_unstable();
            let check = |algorithm: &str, sort: fn(&mut [u32], BitRange)| {
                let mut got = list.clone();
                sort(&mut got, bits);
                assert!(got == expected, "{algorithm}, {len} elements, {name}: {list:?}");
            };
            check("rank", rank::sort);
            check("radix", radix::sort);
            if bits.count() <= 16 {
                check("bitmap", bitmap::sort);
            }
        }
    }
}

#[test]
fn ranges_out_of_bounds_are_rejected() {
    let mut list = [3u32, 2, 1];
    let len = list.len() as u64;
    let mut sort = |start, stop| {
        // SAFETY: the list has `len` elements.
        unsafe { sort_range(list.as_mut_ptr(), len, start, stop) }
    };
    assert!(!sort(0, 4) && !sort(1, i64::MAX) && !sort(4, 2));
    assert!(sort(2, 1) && sort(i64::MIN, 0) && sort(0, i64::MIN) && sort(3, 3));
    assert!(sort(-5, 2));
    assert_eq!(list, [2, 3, 1]);
}
