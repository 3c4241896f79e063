//! Cached conversions of sparsity patterns: a conversion of new values on a known pattern is one gather.
//!
//! Tensors that share a pattern ([`Tensor::with_values`], [`Tensor::pattern`]) share a cache. For each format that one of them was
//! converted to, it holds the converted levels and a permutation: entry `k` of the target is entry `p[k]` of the source. The arrays of
//! all caches together have a limit ([`set_pattern_cache_limit`]); what does not fit is converted as usual.

use super::convert_directly;
use crate::levels::tree;
use crate::{Tensor, ValueArray};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use tamis_ir::format::{Format, Leaf};
use tamis_ir::{Value, diag::Result};

/// The bytes that permutations may take: 1 GiB.
const DEFAULT_LIMIT: u64 = 1 << 30;

/// How many formats one pattern is kept in; the oldest is evicted first.
const KEPT: usize = 8;

static LIMIT: AtomicU64 = AtomicU64::new(DEFAULT_LIMIT);
static BYTES: AtomicU64 = AtomicU64::new(0);
static COUNT: AtomicU64 = AtomicU64::new(0);
static HITS: AtomicU64 = AtomicU64::new(0);
static MISSES: AtomicU64 = AtomicU64::new(0);

/// The state of all caches of patterns.
///
/// ```
/// let info = tamis_tensor::pattern_cache_info();
/// println!("{} of {} bytes are used", info.bytes, info.limit);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PatternCacheInfo {
    /// Conversions that were one gather.
    pub hits: u64,
    /// Conversions that made a permutation.
    pub misses: u64,
    /// How many permutations are kept.
    pub entries: u64,
    /// The bytes that they take.
    pub bytes: u64,
    /// The bytes that they may take.
    pub limit: u64,
}

/// The state of all caches of patterns.
///
/// ```
/// let info = tamis_tensor::pattern_cache_info();
/// println!("{} conversions were one gather, {} were sorted", info.hits, info.misses);
/// assert!(info.bytes <= info.limit);
/// ```
pub fn pattern_cache_info() -> PatternCacheInfo {
    PatternCacheInfo {
        hits: HITS.load(Relaxed),
        misses: MISSES.load(Relaxed),
        entries: COUNT.load(Relaxed),
        bytes: BYTES.load(Relaxed),
        limit: LIMIT.load(Relaxed),
    }
}

/// Sets the bytes that permutations may take. Those that are kept stay until their tensors are gone.
///
/// ```
/// tamis_tensor::set_pattern_cache_limit(1 << 20);
/// assert_eq!(tamis_tensor::pattern_cache_info().limit, 1 << 20);
/// ```
pub fn set_pattern_cache_limit(bytes: u64) {
    LIMIT.store(bytes, Relaxed);
}

/// The conversions of one pattern.
#[derive(Default)]
pub(crate) struct PatternCache {
    conversions: Mutex<Vec<Arc<CachedConversion>>>,
    /// The caches of views with the dimensions in another order.
    views: Mutex<Vec<(Vec<usize>, Arc<PatternCache>)>>,
}

impl PatternCache {
    /// The cache of a view with the dimensions in another order.
    pub(crate) fn of_permutation(self: &Arc<PatternCache>, axes: &[usize]) -> Arc<PatternCache> {
        // A pattern that nothing shares is not used again.
        if Arc::strong_count(self) == 1 {
            return Arc::default();
        }
        let Ok(mut views) = self.views.lock() else { return Arc::default() };
        if let Some((_, cache)) = views.iter().find(|(known, _)| known == axes) {
            return cache.clone();
        }
        let cache = Arc::<PatternCache>::default();
        if views.len() < KEPT {
            views.push((axes.to_vec(), cache.clone()));
        }
        cache
    }
}

/// A pattern in another format.
struct CachedConversion {
    format: Format,
    /// The converted levels; its values are not used.
    levels: Tensor,
    /// For each position of the target, that of the source, counted from 1; 0 is the fill.
    permutation: Vec<u32>,
}

impl CachedConversion {
    fn bytes(&self) -> u64 {
        (self.permutation.len() * size_of::<u32>() + self.levels.nbytes()) as u64
    }
}

impl Drop for CachedConversion {
    fn drop(&mut self) {
        BYTES.fetch_sub(self.bytes(), Relaxed);
        COUNT.fetch_sub(1, Relaxed);
    }
}

/// The conversion of a tensor whose pattern others share; `None` where the cache does not serve.
pub(super) fn convert(tensor: &Tensor, format: &Format) -> Result<Option<Tensor>> {
    let cache = tensor.pattern_cache();
    let (Some(values), Leaf::Element(None)) = (tensor.values(), format.leaf()) else { return Ok(None) };
    let same_levels = format.levels() == tensor.format().levels() && format.map() == tensor.format().map();
    let serves = Arc::strong_count(cache) > 1
        && !same_levels
        && !values.is_empty()
        && u32::try_from(values.len()).is_ok_and(|count| count < u32::MAX)
        && format.rank() == tensor.rank()
        && !tensor.format().is_all_dense()
        // A permutation of every coordinate would be larger than the tensor.
        && !format.is_all_dense()
        && !tree::shares(tensor.format().levels())
        && !tree::shares(format.levels())
        && tensor.format().is_onto(tensor.shape())
        && format.is_onto(tensor.shape());
    if !serves {
        return Ok(None);
    }
    let Ok(mut known) = cache.conversions.lock() else { return Ok(None) };
    let found = known.iter().find(|conversion| conversion.format == *format).cloned();
    let conversion = match found {
        Some(conversion) => {
            HITS.fetch_add(1, Relaxed);
            conversion
        }
        None => {
            let Some(conversion) = permuted(tensor, format)? else { return Ok(None) };
            MISSES.fetch_add(1, Relaxed);
            if BYTES.load(Relaxed) > LIMIT.load(Relaxed) {
                known.clear();
            } else {
                if known.len() >= KEPT {
                    known.remove(0);
                }
                known.push(conversion.clone());
            }
            conversion
        }
    };
    drop(known);
    let gathered = gather(values, tensor.fill(), &conversion.permutation);
    Ok(Some(conversion.levels.with_leaf_values(format.leaf(), gathered, tensor.fill())))
}

/// The conversion of the positions of a pattern.
fn permuted(tensor: &Tensor, format: &Format) -> Result<Option<Arc<CachedConversion>>> {
    let count = tensor.values().map_or(0, ValueArray::len) as u32;
    let numbers: Vec<u32> = (1..=count).collect();
    let numbered = tensor.with_leaf_values(Leaf::Element(None), numbers.into(), Value::U32(0));
    let levels = convert_directly(&numbered, format)?;
    let Some(ValueArray::U32(positions)) = levels.values() else { return Ok(None) };
    let permutation = positions.to_vec();
    let conversion = CachedConversion { format: format.clone(), permutation, levels: levels.clone() };
    BYTES.fetch_add(conversion.bytes(), Relaxed);
    COUNT.fetch_add(1, Relaxed);
    Ok(Some(Arc::new(conversion)))
}

/// Values by their positions, counted from 1; 0 is the fill.
fn gather(values: &ValueArray, fill: Value, permutation: &[u32]) -> ValueArray {
    fn taken<T: Copy>(values: &[T], fill: T, permutation: &[u32]) -> Vec<T> {
        let at = |position: &u32| match position.checked_sub(1) {
            Some(position) => values.get(position as usize).copied().unwrap_or(fill),
            None => fill,
        };
        permutation.iter().map(at).collect()
    }
    let fills = ValueArray::from_values(&[fill.cast(values.dtype())], values.dtype());
    macro_rules! by_type {
        ($($kind:ident),*) => {
            match (values, &fills) {
                $((ValueArray::$kind(values), ValueArray::$kind(fill)) => {
                    ValueArray::$kind(taken(values, fill[0], permutation).into())
                })*
                // The fill has the type of the values.
                _ => values.clone(),
            }
        };
    }
    by_type!(Bool, I8, I16, I32, I64, U8, U16, U32, U64, F32, F64, C64, C128)
}
