//! The state space of a search: formats, widths of positions and coordinates, and schedules.
//!
//! Formats have a dense or compressed level for each dimension, in every order of the dimensions,
//! or are COO. For a matrix these are CSR, CSC, DCSR, DCSC, both orders with sparse rows or columns
//! of dense vectors, and both dense orders. Formats that take far more memory than the stored
//! elements are left out, and so are widths that are too narrow.

use std::collections::BTreeSet;
use tamis_compiler::schedule::Schedule;
use tamis_ir::diag::Result;
use tamis_ir::format::{DimExpr, Format, LevelKind, LevelSpec, Width};
use tamis_tensor::Tensor;

/// Formats that store more than this many values for each stored element, and more than [`SMALL`]
/// values, are not tried.
const MOST_VALUES: u128 = 8;
/// This many values are never too many.
const SMALL: u128 = 1 << 20;
/// Tensors of more dimensions are tried in their natural order only.
const MOST_ORDERED: usize = 3;
/// Tensors of more dimensions are tried with sparse levels alone, or below a dense first level.
const MOST_TYPED: usize = 4;

/// The formats to try for a tensor, its own first. A dense tensor stays as it is.
pub(super) fn formats(tensor: &Tensor) -> Result<Vec<Format>> {
    let mut all = vec![tensor.format().clone()];
    let rank = tensor.rank();
    if tensor.format().is_all_dense() || rank == 0 {
        return Ok(all);
    }
    let leaf = tensor.format().leaf();
    let mut add = |format: Format| {
        if !all.contains(&format) {
            all.push(format);
        }
    };
    add(Format::coo(rank).with_leaf(leaf));
    let natural: Vec<usize> = (0..rank).collect();
    let orders = if rank <= MOST_ORDERED { permutations(&natural) } else { vec![natural] };
    let most = MOST_VALUES.saturating_mul(tensor.nnz() as u128).max(SMALL);
    for order in orders {
        let map: Vec<DimExpr> = order.iter().map(|dim| DimExpr::Dim(*dim)).collect();
        let format = |types: usize| {
            let level = |k: usize| match types >> k & 1 {
                1 => LevelSpec::new(LevelKind::Dense),
                _ => LevelSpec::new(LevelKind::Sparse),
            };
            Format::new(rank, map.clone(), (0..rank).map(level).collect(), leaf)
        };
        let listed = format(0)?;
        // The number of distinct coordinate prefixes down to each level.
        let stored = tensor.convert(&listed)?;
        let prefixes: Vec<u128> = stored.levels().iter().map(|level| level.children() as u128).collect();
        let types: Vec<usize> = if rank <= MOST_TYPED { (0..1 << rank).collect() } else { vec![0, 1] };
        for types in types {
            let mut positions = 1u128;
            let mut largest = 0u128;
            for (k, dim) in order.iter().enumerate() {
                positions = match types >> k & 1 {
                    1 => positions.saturating_mul(u128::from(tensor.shape()[*dim])),
                    _ => prefixes.get(k).copied().unwrap_or(u128::MAX),
                };
                largest = largest.max(positions);
            }
            if largest <= most {
                add(format(types)?);
            }
        }
    }
    Ok(all)
}

/// The formats with every width of positions and coordinates that is wide enough, but for the
/// automatic one. All operands get the same widths.
pub(super) fn widths(formats: &[Format], tensors: &[&Tensor]) -> Vec<Vec<Format>> {
    let all = [Width::U8, Width::U16, Width::U32, Width::U64];
    let mut found: Vec<Vec<Format>> = Vec::new();
    for pos in all {
        for crd in all {
            let changed: Vec<Format> = formats.iter().map(|format| with_widths(format, pos, crd)).collect();
            let fits = changed.iter().zip(formats).zip(tensors).all(|((new, old), tensor)| {
                new == old || (holds(pos, tensor.nnz() as u64) && tensor.shape().iter().all(|n| holds(crd, *n)))
            });
            let automatic = || formats.iter().zip(&changed).all(|(old, new)| is_automatic(old, new, tensors));
            if fits && changed != formats && !automatic() && !found.contains(&changed) {
                found.push(changed);
            }
        }
    }
    found
}

fn holds(width: Width, largest: u64) -> bool {
    width == Width::U64 || largest < 1 << (8 * width.size())
}

/// True if explicit widths equal the automatic ones.
fn is_automatic(old: &Format, new: &Format, tensors: &[&Tensor]) -> bool {
    let wide = tensors
        .iter()
        .any(|tensor| !holds(Width::U32, tensor.nnz() as u64) || tensor.shape().iter().any(|n| !holds(Width::U32, *n)));
    let automatic = |width: Option<Width>| width.is_none_or(|width| width == Width::U32);
    old == new
        || (!wide
            && old.levels().iter().all(|level| level.pos.is_none() && level.crd.is_none())
            && new.levels().iter().all(|level| automatic(level.pos) && automatic(level.crd)))
}

/// The format with explicit widths of all positions and coordinates.
fn with_widths(format: &Format, pos: Width, crd: Width) -> Format {
    let level = |spec: &LevelSpec| match spec.kind {
        LevelKind::Dense => *spec,
        LevelKind::Singleton => LevelSpec { crd: Some(crd), ..*spec },
        _ => LevelSpec { pos: Some(pos), crd: Some(crd), ..*spec },
    };
    let levels: Vec<LevelSpec> = format.levels().iter().map(level).collect();
    Format::new(format.rank(), format.map().to_vec(), levels, format.leaf()).unwrap_or_else(|_| format.clone())
}

/// Schedules for loops in this order: vectorised, unrolled, tiled.
pub(super) fn schedules(order: &[String], formats: &[Format], tensors: &[&Tensor]) -> Vec<Schedule> {
    let none = Schedule::new();
    let Some(last) = order.last() else { return Vec::new() };
    // The compiler vectorises by itself where its cost model says so; the command forces it.
    let mut all = vec![none.clone().vectorize(last), none.clone().unroll(last, 4)];
    // Tiles of the innermost loop, whose outer loop becomes outermost, so that parts of rows stay
    // in the cache.
    let dense = tensors.iter().zip(formats).any(|(tensor, format)| format.is_all_dense() && tensor.rank() > 1);
    if dense && order.len() > 1 {
        for length in [32, 256] {
            let (outer, inner) = (format!("{last}_tile"), format!("{last}_in"));
            let mut tiled = vec![outer.clone()];
            tiled.extend(order[..order.len() - 1].iter().cloned());
            tiled.push(inner.clone());
            all.push(none.clone().split(last, &outer, &inner, length).reorder(tiled));
        }
    }
    all
}

/// Every order of some items.
pub(super) fn permutations<T: Clone>(items: &[T]) -> Vec<Vec<T>> {
    if items.is_empty() {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for k in 0..items.len() {
        let mut rest = items.to_vec();
        let first = rest.remove(k);
        all.extend(permutations(&rest).into_iter().map(|mut order| {
            order.insert(0, first.clone());
            order
        }));
    }
    all
}

/// The set of visited states.
#[derive(Default)]
pub(super) struct VisitedStates(BTreeSet<(Vec<String>, Vec<String>, String)>);

impl VisitedStates {
    /// Adds a state; false if it was visited before.
    pub(super) fn insert(&mut self, formats: &[Format], order: &[String], schedule: &Schedule) -> bool {
        self.0.insert((formats.iter().map(Format::to_string).collect(), order.to_vec(), schedule.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tamis_tensor::{Combine, Coordinates};

    fn rows(stored: &[u32], n: u64, format: &str) -> Tensor {
        let columns = 0..n as u32;
        let entries: Vec<(u32, u32)> = stored.iter().flat_map(|i| columns.clone().map(move |j| (*i, j))).collect();
        let column = |of: fn(&(u32, u32)) -> u32| entries.iter().map(of).collect::<Vec<u32>>().into();
        let values = vec![1.0; entries.len()].into();
        let entries = Coordinates { shape: vec![n, n], columns: vec![column(|e| e.0), column(|e| e.1)], values };
        Tensor::from_coordinates(&entries, &Format::parse(format, 2).unwrap(), 0.0.into(), Combine::Error).unwrap()
    }

    #[test]
    fn every_level_type_in_every_order() {
        let a = rows(&[3, 4, 5], 40, "csr");
        let found: Vec<String> = formats(&a).unwrap().iter().map(Format::to_string).collect();
        for format in ["csr", "csc", "dcsr", "dcsc", "sparse, dense", "dense, dense", "sparse(nonunique), singleton"] {
            let format = Format::parse(format, 2).unwrap().to_string();
            assert!(found.contains(&format), "{format} is not among {found:?}");
        }
        assert_eq!(found.len(), 9);
        // A dense tensor stays as it is; formats that are far larger are left out.
        assert_eq!(formats(&rows(&[3], 4, "dense")).unwrap().len(), 1);
        let wide = rows(&[7], 3000, "csr");
        let found: Vec<String> = formats(&wide).unwrap().iter().map(Format::to_string).collect();
        assert!(
            found.contains(&"sparse, dense".to_string()) && !found.contains(&"dense, dense".to_string()),
            "{found:?}"
        );
    }

    #[test]
    fn widths_that_fit() {
        let a = rows(&[3, 4], 40, "csr");
        let found = widths(&[Format::csr()], &[&a]);
        // 80 elements and 40 columns fit in 8 bits: all pairs but the automatic one.
        assert_eq!(found.len(), 15);
        let b = rows(&(0..30).collect::<Vec<u32>>(), 300, "csr");
        let found: Vec<String> = widths(&[Format::csr()], &[&b]).iter().map(|f| f[0].to_string()).collect();
        assert!(found.iter().all(|format| !format.contains("u8")), "{found:?}");
        assert!(found.iter().any(|format| format.contains("[u16,u16]")), "{found:?}");
    }
}
