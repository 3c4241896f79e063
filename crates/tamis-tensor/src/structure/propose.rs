//! Proposal of formats for the recognised structure of a tensor, with their sizes in bytes.

use super::remarks::percent;
use super::{MatrixStatistics, Structure};
use crate::{Statistics, Tensor};
use std::fmt;
use tamis_ir::format::{DimExpr, Format, Leaf, LevelKind, LevelSpec, Width};
use tamis_ir::{DType, Value, diag::Result};

/// A candidate format.
///
/// ```
/// use tamis_ir::Format;
/// use tamis_tensor::{Combine, Tensor, gallery, propose};
/// let entries = gallery::banded(200, 4)?;
/// let a = Tensor::from_coordinates(&entries, &Format::csr(), 0.0.into(), Combine::Error)?;
/// for proposal in propose(&a, &a.statistics()?)? {
///     println!("{}: {} bytes, {}", proposal.format, proposal.bytes, proposal.why);
/// }
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Proposal {
    /// The format.
    pub format: Format,
    /// The stored part of the tensor.
    pub part: StoredPart,
    /// The reason for the proposal, in a few words.
    pub why: String,
    /// Bytes of all arrays.
    pub bytes: u64,
    /// True if `bytes` is exact, false if it is an estimate.
    pub exact: bool,
}

/// The stored part of a tensor.
///
/// ```
/// use tamis_ir::Format;
/// use tamis_tensor::{Combine, Mirror, StoredPart, Tensor, gallery, propose};
/// let entries = gallery::laplacian(10)?;
/// let a = Tensor::from_coordinates(&entries, &Format::csr(), 0.0.into(), Combine::Error)?;
/// let proposals = propose(&a, &a.statistics()?)?;
/// assert!(proposals.iter().any(|p| p.part == StoredPart::Lower(Mirror::Same)), "symmetric");
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoredPart {
    /// Everything.
    Whole,
    /// The lower triangle of a symmetric matrix, with the diagonal.
    Lower(Mirror),
}

/// The value below the diagonal, in terms of the one above it.
///
/// ```
/// use tamis_ir::{Format, Value};
/// use tamis_tensor::{Mirror, StoredPart, Tensor, propose};
/// let n = 16;
/// let skew = (0..n * n).map(|at| (at / n) as f64 - (at % n) as f64).collect();
/// let a = Tensor::from_dense(&[n, n], skew, &Format::csr(), Value::F64(0.0))?;
/// let proposals = propose(&a, &a.statistics()?)?;
/// assert!(proposals.iter().any(|p| p.part == StoredPart::Lower(Mirror::Minus)));
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mirror {
    /// The same number.
    Same,
    /// Minus that number.
    Minus,
    /// Its complex conjugate.
    Conjugate,
}

/// The maximum size of a proposal, relative to the coordinate list.
const MOST: u128 = 2;
/// The minimum mean length of contiguous ranges and runs, which pays for their bounds.
const LONG: f64 = 1.8;
/// The minimum fill ratio of bands and diagonals.
const FILLED: f64 = 0.5;
/// The maximum number of proposed block sizes.
const BLOCKS: usize = 2;

/// Proposes formats for a tensor with these statistics. The first is the baseline: a coordinate
/// list for each row (CSR), CSF, or coordinate lists in all levels if most rows are empty. A scalar
/// has no alternatives.
///
/// ```
/// use tamis_ir::{Format, Value};
/// use tamis_tensor::{Combine, Tensor, gallery};
/// let a = Tensor::from_coordinates(&gallery::generate("banded(100, 3)")?, &Format::csr(), 0.0.into(), Combine::Error)?;
/// let proposals = tamis_tensor::propose(&a, &a.statistics()?)?;
/// assert_eq!(proposals[0].format.to_string(), "csr");
/// assert!(proposals.iter().any(|p| p.format.to_string() == "dense, band"));
/// # Ok::<(), tamis_ir::Diagnostic>(())
/// ```
pub fn propose(tensor: &Tensor, statistics: &Statistics) -> Result<Vec<Proposal>> {
    if tensor.rank() == 0 {
        return Ok(Vec::new());
    }
    let shape = tensor.shape();
    let structure = &statistics.structure;
    let mut makers = Makers {
        shape,
        dtype: tensor.dtype(),
        structure,
        fills: statistics.explicit_fills > 0 && !tensor.format().is_all_dense(),
        found: Vec::new(),
    };
    makers.lists();
    makers.last_levels()?;
    if let Some(matrix) = &statistics.matrix {
        makers.matrix(matrix)?;
    }
    makers.patterns(tensor.fill().is_truthy())?;
    Ok(makers.finish())
}

struct Makers<'a> {
    shape: &'a [u64],
    dtype: DType,
    structure: &'a Structure,
    /// Some entries equal the fill, so runs may extend over coordinates that are not stored.
    fills: bool,
    found: Vec<(Proposal, u128)>,
}

/// A candidate for the last level.
#[derive(Clone, Copy)]
struct Last {
    level: LevelSpec,
    /// The bytes of its arrays, and the number of its values.
    bytes: u128,
    values: u128,
}

fn level(kind: LevelKind) -> LevelSpec {
    LevelSpec::new(kind)
}

fn automatic(largest: u128) -> u128 {
    Width::automatic(u64::try_from(largest).unwrap_or(u64::MAX)).size() as u128
}

impl Makers<'_> {
    fn rank(&self) -> usize {
        self.shape.len()
    }

    fn extent(&self) -> u64 {
        self.shape.last().copied().unwrap_or(0)
    }

    fn entries(&self) -> u128 {
        self.structure.entries as u128
    }

    fn add(&mut self, format: Format, bytes: u128, why: impl fmt::Display) {
        self.add_part(format, StoredPart::Whole, bytes, true, why);
    }

    fn add_part(&mut self, format: Format, part: StoredPart, bytes: u128, exact: bool, why: impl fmt::Display) {
        let small = u64::try_from(bytes).unwrap_or(u64::MAX);
        self.found.push((Proposal { format, part, why: why.to_string(), bytes: small, exact }, bytes));
    }

    /// The levels before the last: the first one dense, or all of them coordinate lists. Returns
    /// the bytes of their arrays, and the number of positions below them.
    fn above(&self, first_dense: bool) -> (Vec<LevelSpec>, u128, u128) {
        let (mut bytes, mut parents) = (0u128, 1u128);
        let mut levels = Vec::new();
        for (k, extent) in self.shape.iter().enumerate().take(self.rank() - 1) {
            if k == 0 && first_dense {
                levels.push(level(LevelKind::Dense));
                parents = *extent as u128;
            } else {
                levels.push(level(LevelKind::Sparse));
                let children = self.structure.prefixes.get(k).copied().unwrap_or(0) as u128;
                bytes += (parents + 1) * automatic(children) + children * automatic(extent.saturating_sub(1) as u128);
                parents = children;
            }
        }
        (levels, bytes, parents)
    }

    fn sparse(&self, parents: u128, entries: u128, spec: LevelSpec) -> Last {
        let wide = |written: Option<Width>, largest: u128| written.map_or(automatic(largest), |w| w.size() as u128);
        let crd = wide(spec.crd, self.extent().saturating_sub(1) as u128);
        Last { level: spec, bytes: (parents + 1) * wide(spec.pos, entries) + entries * crd, values: entries }
    }

    fn value(&self) -> u128 {
        self.dtype.size() as u128
    }

    fn format(&self, mut levels: Vec<LevelSpec>, last: LevelSpec) -> Result<Format> {
        levels.push(last);
        Format::row_major(levels, Leaf::Element(None))
    }

    /// Coordinate lists: the baseline, and the variant without positions of empty rows.
    fn lists(&mut self) {
        let rank = self.rank();
        for first_dense in [true, false] {
            if rank == 1 && first_dense {
                continue;
            }
            let (levels, bytes, parents) = self.above(first_dense);
            let last = self.sparse(parents, self.entries(), level(LevelKind::Sparse));
            let bytes = bytes + last.bytes + last.values * self.value();
            let why = match (rank, first_dense) {
                (2, true) => "a coordinate list for each row".to_string(),
                (_, true) => "a coordinate list for each slice, and for each fiber below".to_string(),
                (2, false) => match self.shape[0].saturating_sub(self.structure.prefixes[0] as u64) {
                    0 => "a coordinate list of rows, and one for each row".to_string(),
                    empty => format!("rows are listed, of which {empty} are empty"),
                },
                (1, false) => "a coordinate list and values".to_string(),
                (_, false) => "lists throughout".to_string(),
            };
            if let Ok(format) = self.format(levels, last.level) {
                self.add(format, bytes, why);
            }
        }
        // The baseline comes first: CSR for matrices unless most rows are empty, CSF above.
        let of = |k: usize| self.found.get(k).map_or(u128::MAX, |(_, bytes)| *bytes);
        if rank > 2 || of(0) > of(1).saturating_mul(2) {
            self.found.reverse();
        }
        // The larger of the two is dropped, unless it is the usual format.
        if let [(_, first), (_, second)] = &self.found[..]
            && second >= first
        {
            self.found.truncate(1);
        }
    }

    fn baseline(&self) -> u128 {
        self.found.first().map_or(u128::MAX, |(_, bytes)| *bytes)
    }

    /// Other last levels, below the levels of the baseline.
    fn last_levels(&mut self) -> Result<()> {
        let Some(lines) = self.structure.lines.last().copied() else { return Ok(()) };
        let Some((first, _)) = self.found.first() else { return Ok(()) };
        let first_dense = first.format.levels().first().is_some_and(|l| l.kind == LevelKind::Dense);
        let (levels, above, parents) = self.above(first_dense);
        let (entries, extent, value) = (self.entries(), self.extent() as u128, self.value());
        let crd = automatic(extent.saturating_sub(1));
        let end = automatic(extent);
        let (filled, rows) = (percent(lines.filled()), if self.rank() == 2 { "rows" } else { "lines" });
        let (ranges, runs, span) = (lines.ranges as u128, lines.runs as u128, lines.span as u128);
        let length = lines.mean_range();
        let run = lines.mean_run();
        let gapless = (lines.gapless as u128) + (parents - (lines.lines as u128).min(parents)) * u128::from(extent > 0);
        let mut tried: Vec<(bool, LevelKind, u128, u128, String)> = Vec::new();
        let dense = match share(entries, parents.saturating_mul(extent)) {
            all if all >= 1.0 => "all cells are entries".to_string(),
            some => format!("{} of the cells are entries", percent(some)),
        };
        tried.push((entries > 0, LevelKind::Dense, 0, parents.saturating_mul(extent), dense));
        tried.push((
            length >= LONG,
            LevelKind::Blocks,
            (parents + 1) * automatic(ranges) + ranges * crd + (ranges + 1) * automatic(entries),
            entries,
            format!("{rows} hold contiguous ranges of {length:.1} entries on average"),
        ));
        tried.push((
            lines.filled() >= FILLED && entries as f64 >= LONG * lines.lines as f64,
            LevelKind::Band,
            parents * crd + (parents + 1) * automatic(span),
            span,
            format!("{rows} are {filled} full between their ends"),
        ));
        let pattern = self.structure.constant.is_some();
        let equal = format!("{rows} hold runs of {run:.1} equal entries on average");
        tried.push((
            run >= LONG,
            LevelKind::SparseRuns,
            (parents + 1) * automatic(runs) + 2 * runs * end,
            runs,
            equal.clone(),
        ));
        tried.push((
            run >= LONG && gapless < 2 * runs,
            LevelKind::Runs,
            (parents + 1) * automatic(gapless) + gapless * end,
            gapless,
            equal,
        ));
        let one_run = lines.runs == lines.lines && run >= LONG;
        tried.push((one_run, LevelKind::Interval, 2 * parents * end, parents, format!("{rows} hold one run each")));
        let single = lines.lines == lines.entries && entries > 0 && self.rank() > 1;
        let singleton = format!("{rows} hold one entry each");
        tried.push((single, LevelKind::Singleton, parents * crd, parents, singleton));
        let limit = MOST.saturating_mul(self.baseline());
        self.listed_rows(first_dense)?;
        for (suits, kind, arrays, values, why) in tried {
            let bytes = above.saturating_add(arrays).saturating_add(values.saturating_mul(value));
            let without = above.saturating_add(arrays);
            if !suits || bytes > limit && !(pattern && without <= limit) {
                continue;
            }
            let format = self.format(levels.clone(), level(kind))?;
            let exact = kind != LevelKind::Runs || !self.fills;
            self.add_part(format, StoredPart::Whole, bytes, exact, why);
        }
        self.narrow(levels, above, parents)
    }

    /// A list of nonempty rows, each dense (CDR): for matrices with some dense rows.
    fn listed_rows(&mut self, first_dense: bool) -> Result<()> {
        let (levels, bytes, rows) = self.above(false);
        let values = rows.saturating_mul(u128::from(self.extent()));
        let full = share(self.entries(), values);
        // If the first level is a list, a dense last level is among the other candidates.
        if self.rank() < 2 || !first_dense || full < FILLED || u128::from(self.shape[0]) == rows {
            return Ok(());
        }
        let bytes = bytes.saturating_add(values.saturating_mul(self.value()));
        let rows = if self.rank() == 2 { "rows" } else { "lines" };
        let format = self.format(levels, level(LevelKind::Dense))?;
        self.add(format, bytes, format!("{rows} that are not empty are {} full", percent(full)));
        Ok(())
    }

    /// Narrower coordinates.
    fn narrow(&mut self, levels: Vec<LevelSpec>, above: u128, parents: u128) -> Result<()> {
        let (entries, extent) = (self.entries(), self.extent());
        let width = match extent {
            0 => return Ok(()),
            1..=0x100 => Width::U8,
            0x101..=0x1_0000 => Width::U16,
            _ => return Ok(()),
        };
        let pos = match entries {
            0..=0xff => Width::U8,
            0x100..=0xffff => Width::U16,
            _ => Width::automatic(entries as u64),
        };
        let spec = LevelSpec { pos: Some(pos), crd: Some(width), ..level(LevelKind::Sparse) };
        let last = self.sparse(parents, entries, spec);
        let bytes = above + last.bytes + last.values * self.value();
        let why = format!("coordinates below {extent} fit in {} bits", 8 * width.size());
        let format = self.format(levels, spec)?;
        self.add(format, bytes, why);
        Ok(())
    }

    /// Candidates for matrices only: blocks, diagonals, equal rows, symmetry.
    fn matrix(&mut self, matrix: &MatrixStatistics) -> Result<()> {
        let &[height, width] = self.shape else { return Ok(()) };
        let (value, limit) = (self.value(), MOST.saturating_mul(self.baseline()));
        let structure = self.structure;
        for fit in structure.blocks.iter().take(BLOCKS) {
            let (r, c) = (fit.rows, fit.columns);
            let (down, across) = (height.div_ceil(r) as u128, width.div_ceil(c));
            let blocks = fit.blocks as u128;
            let arrays = (down + 1) * automatic(blocks) + blocks * automatic(across.saturating_sub(1) as u128);
            let bytes = arrays + blocks * (r * c) as u128 * value;
            let format = Format::parse(&format!("bsr({r},{c})"), 2)?;
            if bytes <= limit {
                self.add(format, bytes, format!("blocks of {r} x {c} are {} full", percent(fit.filled)));
            }
        }
        if let Some(diagonals) = structure.diagonals.filter(|diagonals| diagonals.filled >= FILLED) {
            let count = diagonals.count as u128;
            let all = height as u128 + width as u128;
            let bytes =
                2 * automatic(count) + count * automatic(all.saturating_sub(2)) + count * height as u128 * value;
            if bytes <= limit {
                let map = vec![DimExpr::Diff(1, 0), DimExpr::Dim(0)];
                let levels = vec![level(LevelKind::Sparse), level(LevelKind::Dense)];
                let format = Format::new(2, map, levels, Leaf::Element(None))?;
                let word = if diagonals.count == 1 { "diagonal is" } else { "diagonals are" };
                self.add(format, bytes, format!("{count} {word} {} full", percent(diagonals.filled)));
            }
        }
        if let Some(slices) = structure.slices.filter(|slices| 4 * u128::from(slices.equal) >= height as u128) {
            let (runs, entries) = (slices.runs as u128, slices.entries as u128);
            let last = self.sparse(runs, entries, level(LevelKind::Sparse));
            let bytes = 2 * automatic(runs) + runs * automatic(height as u128) + last.bytes + entries * value;
            let format = self.format(vec![level(LevelKind::Runs)], last.level)?;
            self.add(format, bytes, format!("{} of {height} rows equal the row above", slices.equal));
        }
        let off_diagonal = structure.entries - matrix.diagonal_entries.min(structure.entries);
        let mirror = match () {
            _ if off_diagonal == 0 => None,
            _ if matrix.symmetric => Some((Mirror::Same, "symmetric")),
            _ if matrix.hermitian => Some((Mirror::Conjugate, "hermitian")),
            _ if matrix.skew_symmetric => Some((Mirror::Minus, "skew-symmetric")),
            _ => None,
        };
        if let Some((mirror, word)) = mirror {
            let entries = (matrix.diagonal_entries + off_diagonal / 2) as u128;
            let last = self.sparse(height as u128, entries, level(LevelKind::Sparse));
            // An undirected graph without weights needs no values.
            let ones = self.structure.constant.is_some_and(|one| one.same_number(Value::one(self.dtype)));
            let bytes = last.bytes + if ones { 0 } else { entries * value };
            let format = if ones { Format::csr().with_leaf(Leaf::Pattern) } else { Format::csr() };
            let why = format!("{word}: the lower triangle is enough, each entry is used twice");
            self.add_part(format, StoredPart::Lower(mirror), bytes, true, why);
        }
        Ok(())
    }

    /// The same formats as patterns, if all values are equal.
    fn patterns(&mut self, fill_is_true: bool) -> Result<()> {
        let Some(constant) = self.structure.constant.filter(|constant| constant.is_truthy() && !fill_is_true) else {
            return Ok(());
        };
        let mut more = Vec::new();
        let mut replaced = Vec::new();
        for (k, (proposal, bytes)) in self.found.iter().enumerate() {
            let Proposal { format, part, why, exact, .. } = proposal;
            // These levels pad, and a pattern would make padding true.
            let lines = self.structure.lines.last();
            let full = lines.is_some_and(|lines| lines.entries as u64 == lines.span);
            let every_row = |lines: &super::Lines| lines.lines as u64 == self.shape[0];
            let fits = format.levels().iter().all(|level| match level.kind {
                LevelKind::Dense => format.levels().first() == Some(level) && format.map().len() == self.rank(),
                LevelKind::Band => full,
                LevelKind::Singleton => lines.is_some_and(every_row),
                LevelKind::Runs => false,
                _ => true,
            });
            if *part != StoredPart::Whole || !fits || self.rank() == 1 && format.is_all_dense() {
                continue;
            }
            let values = self.values_below(format);
            let Some(bytes) = values.and_then(|values| bytes.checked_sub(values * self.value())) else { continue };
            let small = u64::try_from(bytes).unwrap_or(u64::MAX);
            let why = format!("every entry is {constant}; {why}");
            let format = format.clone().with_leaf(Leaf::Pattern);
            more.push((Proposal { format, part: *part, why, bytes: small, exact: *exact }, bytes));
            replaced.push(k);
        }
        // Redundant values only cost; the baseline stays.
        replaced.iter().rev().filter(|k| **k > 0).for_each(|k| drop(self.found.remove(*k)));
        self.found.extend(more);
        Ok(())
    }

    /// The number of values that a proposed format stores.
    fn values_below(&self, format: &Format) -> Option<u128> {
        let lines = self.structure.lines.last()?;
        match format.levels().last()?.kind {
            LevelKind::Sparse | LevelKind::Blocks => Some(self.entries()),
            LevelKind::Band => Some(lines.span as u128),
            LevelKind::SparseRuns => Some(lines.runs as u128),
            LevelKind::Interval | LevelKind::Singleton => {
                let first_dense = format.levels().first().is_some_and(|l| l.kind == LevelKind::Dense);
                Some(self.above(first_dense).2)
            }
            _ => None,
        }
    }

    /// Drops proposals that need far more memory than the baseline; the baseline stays.
    fn finish(self) -> Vec<Proposal> {
        let limit = MOST.saturating_mul(self.baseline());
        let kept = self.found.into_iter().enumerate().filter(|(k, (_, bytes))| *k == 0 || *bytes <= limit);
        kept.map(|(_, (proposal, _))| proposal).collect()
    }
}

fn share(part: u128, whole: u128) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
