//! Tile selection: the loops that may be tiled, and the tile lengths. Tiling pays where data is
//! reused: an access without an index is reused along that loop. Loops over coordinate lists are
//! not tiled, nor are outer loops that select a list: each tile would traverse the lists again.

use super::model::Costs;
use super::order::Problem;
use tamis_ir::format::LevelKind;

/// The loops that may be tiled.
pub(super) fn tileable(problem: &Problem) -> Vec<usize> {
    let uses = |dims: &[u32], index: usize| dims.iter().any(|mask| mask & 1 << index != 0);
    let target: Vec<u32> = problem.target.iter().map(|t| t.map_or(0, |k| 1 << k)).collect();
    let candidate = |index: &usize| {
        let reused = problem.places.iter().any(|place| !uses(&place.dims, *index)) || !uses(&target, *index);
        reused && !selects(problem, *index)
    };
    (0..problem.indices.len()).filter(candidate).collect()
}

/// True if an index iterates over a coordinate list or selects one.
fn selects(problem: &Problem, index: usize) -> bool {
    problem.places.iter().any(|place| {
        let levels = place.operand.format.levels();
        let Some(last) = levels.iter().rposition(|level| level.kind != LevelKind::Dense) else { return false };
        let order = place.operand.order();
        let stored = order.iter().take(last + 1);
        stored.into_iter().any(|d| place.dims[*d] & 1 << index != 0)
    })
}

/// The tile length of a loop, if tiling pays: the loop is innermost, iterates over rows of a dense
/// operand with high reuse that exceed the cache, and a strip of them fits.
pub(super) fn length(problem: &Problem, order: &[usize], index: usize, costs: &Costs) -> Option<i64> {
    if order.last() != Some(&index) || order.len() < 3 {
        return None;
    }
    let outside = order[..order.len() - 1].iter().fold(0u32, |mask, k| mask | 1 << k);
    let visits = problem.points(outside);
    let panels = problem.places.iter().filter_map(|place| {
        let last = *place.operand.order().last()?;
        let fits =
            place.operand.is_dense() && place.dims[last] == 1 << index && place.operand.entries > 4.0 * costs.cache;
        let rows = place.operand.entries / place.operand.shape[last].max(1.0);
        (fits && visits >= REUSE * rows).then_some(rows)
    });
    let rows = panels.fold(0.0, f64::max);
    let length = (costs.cache / rows.max(1.0) / 64.0).floor() * 64.0;
    (rows > 0.0 && length >= 128.0 && problem.extents[index] >= 2.0 * length).then_some(length as i64)
}

/// The minimum reuse of a row for which tiling pays.
const REUSE: f64 = 12.0;

#[cfg(test)]
mod tests {
    use super::super::OperandStatistics;
    use super::super::sets::{OperandAccess, Set};
    use super::*;
    use tamis_ir::{DType, Format, Value};

    /// SpMM: only the loop over columns of the dense matrix.
    #[test]
    fn only_columns() {
        let place = |name: &str, format: Format, dims: [u32; 2]| OperandAccess {
            mask: false,
            tensor: name.into(),
            subscripts: Vec::new(),
            operand: OperandStatistics::assumed(format, DType::F64, Value::F64(0.0), &[100, 100], 0.01),
            dims: dims.to_vec(),
            relaid: false,
            kept: false,
            extents: Vec::new(),
        };
        let mut problem = Problem {
            indices: ["i", "j", "k"].map(String::from).to_vec(),
            extents: vec![100.0; 3],
            free: 0b101,
            places: vec![place("A", Format::csr(), [1, 2]), place("B", Format::dense(2), [2, 4])],
            set: Set::Stored(0),
            everywhere: false,
            operations: 1.0,
            target: vec![Some(0), Some(2)],
            dense: true,
            expected: 1e4,
            stored: None,
        };
        assert_eq!(tileable(&problem), [2]);
        let costs = Costs::default();
        assert_eq!(length(&problem, &[0, 1, 2], 2, &costs), None);
        // A wide matrix whose rows are reused 30 times each.
        problem.extents[2] = 1e6;
        let wide = OperandStatistics::assumed(Format::dense(2), DType::F64, Value::F64(0.0), &[100, 1_000_000], 1.0);
        problem.places[1].operand = wide;
        assert_eq!(length(&problem, &[0, 1, 2], 2, &costs), None);
        problem.places[0].operand =
            OperandStatistics::assumed(Format::csr(), DType::F64, Value::F64(0.0), &[100, 100], 0.3);
        assert_eq!(length(&problem, &[0, 1, 2], 2, &costs), Some(640));
        // Dense times dense: all operands are reused.
        problem.places[0] = place("A", Format::dense(2), [1, 2]);
        assert_eq!(tileable(&problem), [0, 1, 2]);
    }
}
