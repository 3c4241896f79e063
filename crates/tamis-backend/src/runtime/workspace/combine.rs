//! Combining: entries in any order become entries in order, each key once, those of one key folded in the order in which
//! they came.
//!
//! What is cheapest depends on how many entries there are for how many keys:
//!
//! - a range of keys that is small and well filled is a *window*: an array with a place for each key, and a bit that says
//!   whether there is something; no entry is moved or compared;
//! - entries that a core's own cache holds are sorted by digits: their keys and numbers are, entries stay where they are;
//! - more than that are dealt out by their highest bits first, until one of the others suits.

use super::blocks::{Entry, Piece};
use super::engine::prefetch;
use super::key::{Key, Pair};
use super::merge::Fold;
use super::places::Places;
use crate::runtime::sort::ids;
use crate::runtime::typed::{OutOfMemory, Room};

/// Windows have at most so many bits: what they hold stays in the cache of a core.
const WINDOW: u32 = 17;

/// A window is worth it if there is an entry for so many keys, which are two words of bits that say where to look.
const SPARSEST: usize = 2 * 64 * 64;

/// A window with an entry for so many places is looked through from end to end.
const WELL_FILLED: usize = 16;

/// A window has up to about so many places for each entry that is expected.
const PLACES: usize = 2;

/// So many entries are sorted at once.
const LEAF: usize = 1 << 14;

/// So few entries are not dealt out to windows.
const FEW: usize = 256;

/// Entries are dealt out by up to so many bits at a time.
const DEAL: u32 = 8;

/// The memory to combine in.
pub(super) struct Combiner<K: Key, T: Copy> {
    /// Entries that were dealt out go to and fro between these.
    dealt: [Room<Entry<K, T>>; 2],
    fused: [Room<u64>; 2],
    pairs: [Room<Pair<K>>; 2],
    window: Places<T>,
    /// Windows have up to so many bits: making one costs as much as it has places.
    widest: u32,
    /// How many bits the innermost coordinate has.
    inner: u32,
}

/// Where combined entries go; there is room for as many as are combined.
#[derive(Clone, Copy)]
pub(super) struct Out<K, T> {
    pub(super) keys: *mut K,
    pub(super) values: *mut T,
}

impl<K: Key, T: Copy + Send + 'static> Combiner<K, T> {
    pub(super) fn new() -> Combiner<K, T> {
        Combiner {
            dealt: [Room::new(), Room::new()],
            fused: [Room::new(), Room::new()],
            pairs: [Room::new(), Room::new()],
            window: Places::new(),
            widest: 0,
            inner: 0,
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        let dealt: u64 = self.dealt.iter().map(Room::bytes).sum();
        let fused: u64 = self.fused.iter().map(Room::bytes).sum();
        let pairs: u64 = self.pairs.iter().map(Room::bytes).sum();
        dealt + fused + pairs + self.window.bytes()
    }

    /// Says that so many entries are there to be combined, at once or not, and how many bits the innermost coordinate has.
    pub(super) fn expect(&mut self, entries: usize, inner: u32) {
        self.inner = inner;
        let worth = usize::BITS - entries.saturating_mul(PLACES).leading_zeros();
        self.widest = self.widest.max(worth.min(WINDOW));
    }

    /// Combines entries whose keys agree in all but `bits` low bits; gives how many are left.
    ///
    /// # Safety
    /// The pieces are of entries that are written, and not of this; the output has room for all of them.
    pub(super) unsafe fn combine<F: Fold<T>>(
        &mut self,
        fold: F,
        pieces: &[Piece<Entry<K, T>>],
        bits: u32,
        out: Out<K, T>,
    ) -> Result<usize, OutOfMemory> {
        let count = pieces.iter().map(|piece| piece.len).sum();
        // SAFETY: promised by the caller.
        unsafe { self.part(fold, pieces, count, bits, 0, 0, out) }
    }

    /// Combines some of the entries, which lie where `side` says: 0 elsewhere, else in one of the rooms for what was dealt,
    /// from a place on, where the other room is free, too.
    ///
    /// # Safety
    /// As for [`Combiner::combine`].
    #[allow(clippy::too_many_arguments)]
    unsafe fn part<F: Fold<T>>(
        &mut self,
        fold: F,
        pieces: &[Piece<Entry<K, T>>],
        count: usize,
        bits: u32,
        side: usize,
        start: usize,
        out: Out<K, T>,
    ) -> Result<usize, OutOfMemory> {
        if count == 0 {
            return Ok(0);
        }
        let fills = |bits: u32| bits < usize::BITS && (1usize << bits) / SPARSEST <= count;
        let (mut bits, widest) = (bits, self.widest);
        // SAFETY: promised by the caller, here and below.
        unsafe {
            if K::DIGITS && side == 0 && count > FEW && bits > widest && self.inner < bits {
                let outer = bits - self.inner;
                let suits = |range: &Range| outer + range.stride <= widest && fills(outer + range.stride);
                // Entries come in some order, mostly: the first and the last say where the others are. If those do not,
                // all of them are looked at.
                let few = inner_range(&[pieces[0], pieces[pieces.len() - 1]], self.inner);
                if suits(&few) {
                    let places = outer + few.stride;
                    if let Some(left) =
                        self.through_window(fold, pieces, count, bits, places, Some(few.centred()), out)?
                    {
                        return Ok(left);
                    }
                    let range = inner_range(pieces, self.inner);
                    let places = outer + range.stride;
                    if suits(&range)
                        && let Some(left) = self.through_window(fold, pieces, count, bits, places, Some(range), out)?
                    {
                        return Ok(left);
                    }
                }
            }
            if K::DIGITS && !(fills(bits) && (bits <= widest || count > FEW)) {
                let (differing, disorder) = survey(pieces);
                if !disorder {
                    return Ok(gather(
                        fold,
                        pieces.iter().flat_map(|piece| (0..piece.len).map(|k| piece.first.add(k))),
                        out,
                    ));
                }
                bits = u128::BITS - differing.leading_zeros();
                if count <= if fills(bits) { FEW } else { LEAF } && !(bits <= widest && fills(bits)) {
                    return self.sort(fold, pieces, count, Some(differing), out);
                }
            }
            if K::DIGITS && bits <= widest && fills(bits) {
                let left = self.through_window(fold, pieces, count, bits, bits, None, out)?;
                return Ok(left.unwrap_or(0));
            }
            if !K::DIGITS {
                return self.sort(fold, pieces, count, None, out);
            }
            let ways = if fills(bits) { bits - widest } else { (count / LEAF).max(1).ilog2() + 2 };
            let ways = ways.clamp(1, DEAL).min(bits);
            let shift = bits - ways;
            let counts = self.deal(pieces, count, shift, ways, side, start)?;
            let (mut done, mut from) = (0, start);
            for len in &counts[..1 << ways] {
                let first = self.dealt[side % 2].pointer().add(from).cast_const();
                let rest = Out { keys: out.keys.add(done), values: out.values.add(done) };
                done += self.part(fold, &[Piece { first, len: *len }], *len, shift, side % 2 + 1, from, rest)?;
                from += len;
            }
            Ok(done)
        }
    }

    /// Deals entries out by `ways` bits from `shift` on, into the room that they do not lie in; gives how many there are of each.
    ///
    /// # Safety
    /// As for [`Combiner::combine`].
    #[allow(clippy::too_many_arguments)]
    unsafe fn deal(
        &mut self,
        pieces: &[Piece<Entry<K, T>>],
        count: usize,
        shift: u32,
        ways: u32,
        side: usize,
        start: usize,
    ) -> Result<[usize; 1 << DEAL], OutOfMemory> {
        let mask = (1usize << ways.min(DEAL)) - 1;
        let room = &mut self.dealt[side % 2];
        // Only entries from elsewhere can need more room: others lie at the same places of the other one.
        if room.capacity() < start + count {
            room.make(start + count)?;
        }
        let to = room.pointer();
        let (mut counts, mut others) = ([0usize; 1 << DEAL], [0usize; 1 << DEAL]);
        // SAFETY: promised by the caller; as many places are written as there are entries.
        unsafe {
            for (piece, next) in pieces.iter().zip(pieces.iter().skip(1).map(Some).chain([None])) {
                let next = next.map_or(piece.first, |next| next.first);
                let digit = |k: usize| (*piece.first.add(k)).key.digit(shift) & mask;
                // Counted by turns: neighbours often have the same digit, and would wait for each other.
                let whole = piece.len - piece.len % 4;
                for k in (0..whole).step_by(4) {
                    prefetch(next.wrapping_add(k));
                    counts[digit(k)] += 1;
                    others[digit(k + 1)] += 1;
                    counts[digit(k + 2)] += 1;
                    others[digit(k + 3)] += 1;
                }
                for k in whole..piece.len {
                    counts[digit(k)] += 1;
                }
            }
            for (count, other) in counts.iter_mut().zip(&others) {
                *count += other;
            }
            let (mut places, mut place) = ([0usize; 1 << DEAL], start);
            for (first, count) in places.iter_mut().zip(&counts) {
                *first = place;
                place += count;
            }
            for piece in pieces {
                let mut k = 0;
                while k < piece.len {
                    let mut entry = piece.first.add(k).read();
                    let digit = entry.key.digit(shift) & mask;
                    let mut place = places[digit];
                    // As for shelves: some in a row have the same digit.
                    loop {
                        to.add(place).write(entry);
                        place += 1;
                        k += 1;
                        if k == piece.len {
                            break;
                        }
                        entry = piece.first.add(k).read();
                        if entry.key.digit(shift) & mask != digit {
                            break;
                        }
                    }
                    places[digit] = place;
                }
            }
        }
        Ok(counts)
    }

    /// A place for each key, or for each whose innermost coordinate is in a range. Nothing if one is not.
    ///
    /// # Safety
    /// As for [`Combiner::combine`]; keys differ in no more than so many low bits.
    #[allow(clippy::too_many_arguments)]
    unsafe fn through_window<F: Fold<T>>(
        &mut self,
        fold: F,
        pieces: &[Piece<Entry<K, T>>],
        count: usize,
        bits: u32,
        places: u32,
        range: Option<Range>,
        out: Out<K, T>,
    ) -> Result<Option<usize>, OutOfMemory> {
        let size = 1usize << places;
        self.window.make(fold, size)?;
        // SAFETY: promised by the caller.
        unsafe {
            Ok(if count >= size / WELL_FILLED {
                self.through::<F, 1>(fold, pieces, bits, size, range, out)
            } else {
                self.through::<F, 2>(fold, pieces, bits, size, range, out)
            })
        }
    }

    /// The same for a window that is there, and has so many levels of flags.
    ///
    /// # Safety
    /// As for [`Combiner::through_window`].
    unsafe fn through<F: Fold<T>, const LEVELS: usize>(
        &mut self,
        fold: F,
        pieces: &[Piece<Entry<K, T>>],
        bits: u32,
        size: usize,
        range: Option<Range>,
        out: Out<K, T>,
    ) -> Option<usize> {
        // SAFETY: promised by the caller; places are below the size of the window.
        unsafe {
            let Some(base) = pieces.first().map(|piece| (*piece.first).key.pop(bits).1) else { return Some(0) };
            let mut done = 0;
            let Some(Range { inner, low, stride, .. }) = range else {
                for piece in pieces {
                    for k in 0..piece.len {
                        let Entry { key, value } = piece.first.add(k).read();
                        self.window.put::<F, LEVELS>(fold, key.digit(0) & (size - 1), value);
                    }
                }
                self.window.take::<F, LEVELS>(fold, size, |place, value| {
                    out.keys.add(done).write(base.push(bits, place as u64));
                    out.values.add(done).write(value);
                    done += 1;
                });
                return Some(done);
            };
            let (outer, mask) = ((1usize << (bits - inner)) - 1, (1usize << inner) - 1);
            for (piece, next) in pieces.iter().zip(pieces.iter().skip(1).map(Some).chain([None])) {
                let (next, mut beyond) = (next.map_or(piece.first, |next| next.first), 0);
                for k in 0..piece.len {
                    if k % 4 == 0 {
                        prefetch(next.wrapping_add(k));
                    }
                    let Entry { key, value } = piece.first.add(k).read();
                    let column = (key.digit(0) & mask).wrapping_sub(low);
                    beyond |= column >> stride;
                    let place = (key.digit(inner) & outer) << stride | column & ((1 << stride) - 1);
                    self.window.put::<F, LEVELS>(fold, place, value);
                }
                if beyond != 0 {
                    self.window.take::<F, LEVELS>(fold, size, |_, _| ());
                    return None;
                }
            }
            self.window.take::<F, LEVELS>(fold, size, |place, value| {
                let rest = (place >> stride) << inner | ((place & ((1 << stride) - 1)) + low);
                out.keys.add(done).write(base.push(bits, rest as u64));
                out.values.add(done).write(value);
                done += 1;
            });
            Some(done)
        }
    }

    /// Sorts by the bits that differ, or by comparison.
    ///
    /// # Safety
    /// As for [`Combiner::combine`].
    unsafe fn sort<F: Fold<T>>(
        &mut self,
        fold: F,
        pieces: &[Piece<Entry<K, T>>],
        count: usize,
        differing: Option<u128>,
        out: Out<K, T>,
    ) -> Result<usize, OutOfMemory> {
        // SAFETY: promised by the caller; as many items are written as there are entries.
        unsafe {
            let entries = match pieces {
                [piece] => piece.first,
                _ => {
                    self.dealt[0].make(count)?;
                    let (entries, mut done) = (self.dealt[0].pointer(), 0);
                    for piece in pieces {
                        entries.add(done).copy_from_nonoverlapping(piece.first, piece.len);
                        done += piece.len;
                    }
                    entries.cast_const()
                }
            };
            let numbers = usize::BITS - (count - 1).leading_zeros();
            let high = differing.map_or(u128::BITS, |differing| u128::BITS - differing.leading_zeros());
            if let Some(differing) = differing.filter(|_| high + numbers <= u64::BITS) {
                let [items, spare] = &mut self.fused;
                items.make(count)?;
                let mask = (1u64 << high) - 1;
                for k in 0..count {
                    let key = (*entries.add(k)).key.digit(0) as u64 & mask;
                    items.pointer().add(k).write(key << numbers | k as u64);
                }
                ids::sort(items, spare, count, Some(differing << numbers))?;
                let mask = (1u64 << numbers) - 1;
                let sorted = items.written(count).iter().map(|item| entries.add((item & mask) as usize));
                return Ok(gather(fold, sorted, out));
            }
            let [items, spare] = &mut self.pairs;
            items.make(count)?;
            for k in 0..count {
                items.pointer().add(k).write(Pair { key: (*entries.add(k)).key, id: k as u32 });
            }
            ids::sort(items, spare, count, differing)?;
            let sorted = items.written(count).iter().map(|item| entries.add(item.id as usize));
            Ok(gather(fold, sorted, out))
        }
    }
}

/// Innermost coordinates that are in a range: so many bits of a key, the least of them, how many bits there are for the
/// difference to that, and the greatest.
#[derive(Clone, Copy)]
struct Range {
    inner: u32,
    low: usize,
    stride: u32,
    high: usize,
}

impl Range {
    /// The same with as much room below the least as above the greatest.
    fn centred(self) -> Range {
        let spare = (1usize << self.stride) - 1 - (self.high - self.low);
        Range { low: self.low.saturating_sub(spare / 2), ..self }
    }
}

/// The range of the numbers in the low bits of keys.
///
/// # Safety
/// The pieces are of entries that are written.
unsafe fn inner_range<K: Key, T>(pieces: &[Piece<Entry<K, T>>], inner: u32) -> Range {
    let mask = if inner < usize::BITS { (1usize << inner) - 1 } else { usize::MAX };
    let (mut low, mut high) = (usize::MAX, 0);
    for (piece, next) in pieces.iter().zip(pieces.iter().skip(1).map(Some).chain([None])) {
        let next = next.map_or(piece.first, |next| next.first);
        for k in 0..piece.len {
            // SAFETY: promised by the caller.
            let number = unsafe { (*piece.first.add(k)).key.digit(0) & mask };
            if k % 4 == 0 {
                prefetch(next.wrapping_add(k));
            }
            (low, high) = (low.min(number), high.max(number));
        }
    }
    let low = low.min(high);
    Range { inner, low, stride: (usize::BITS - (high - low).leading_zeros()).max(1), high }
}

/// The bits in which keys differ, and whether some are out of order.
///
/// # Safety
/// The pieces are of entries that are written.
unsafe fn survey<K: Key, T>(pieces: &[Piece<Entry<K, T>>]) -> (u128, bool) {
    let (mut differing, mut disorder) = (0, false);
    // SAFETY: promised by the caller.
    unsafe {
        let Some(mut before) = pieces.first().map(|piece| (*piece.first).key) else { return (0, false) };
        for piece in pieces {
            for k in 0..piece.len {
                let key = (*piece.first.add(k)).key;
                differing |= before.differing(key);
                disorder |= before > key;
                before = key;
            }
        }
    }
    (differing, disorder)
}

/// Folds entries that come in the order of their keys; gives how many are left.
///
/// # Safety
/// The entries are written, and the output has room for them.
#[inline(always)]
unsafe fn gather<K: Key, T: Copy, F: Fold<T>>(
    fold: F,
    mut entries: impl Iterator<Item = *const Entry<K, T>>,
    out: Out<K, T>,
) -> usize {
    // SAFETY: promised by the caller.
    unsafe {
        let Some(Entry { mut key, mut value }) = entries.next().map(|entry| entry.read()) else { return 0 };
        let mut last = 0;
        // The entry that is being made is written each time, and left behind when the next one has another key: no
        // branch depends on that.
        for entry in entries {
            let next = entry.read();
            let same = next.key == key;
            if F::CHEAP {
                out.keys.add(last).write(key);
                out.values.add(last).write(value);
                let folded = fold.fold(value, next.value);
                value = if same { folded } else { next.value };
                last += usize::from(!same);
            } else if same {
                value = fold.fold(value, next.value);
            } else {
                out.keys.add(last).write(key);
                out.values.add(last).write(value);
                value = next.value;
                last += 1;
            }
            key = next.key;
        }
        out.keys.add(last).write(key);
        out.values.add(last).write(value);
        last + 1
    }
}
