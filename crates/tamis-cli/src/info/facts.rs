//! The facts that `info` shows about a tensor, gathered once, as text or JSON.

use crate::load::{LoadedTensor, TensorOrigin};
use serde_json::{Value as Json, json};
use tamis_ir::diag::Result;
use tamis_ir::format::Leaf;
use tamis_ir::{Format, Value};
use tamis_tensor::io::{FileHeader, FileKind, Layout, Symmetry};
use tamis_tensor::{LevelStatistics, MatrixStatistics, Statistics, Structure};

/// Facts about a tensor.
pub(super) struct TensorReport {
    pub(super) name: String,
    /// The kind of file or generator, in words.
    pub(super) origin: String,
    /// The header of the file; `None` for a generator.
    pub(super) file: Option<FileHeader>,
    pub(super) shape: Vec<u64>,
    pub(super) dtype: String,
    pub(super) format: String,
    pub(super) fill: Value,
    /// The value of a tensor of rank 0.
    pub(super) value: Option<Value>,
    pub(super) stores_every_cell: bool,
    pub(super) statistics: Statistics,
}

impl TensorReport {
    pub(super) fn of(loaded: &LoadedTensor) -> Result<TensorReport> {
        let tensor = &loaded.tensor;
        let (origin, file) = match &loaded.origin {
            TensorOrigin::File(header) => (describe_file(header), Some(header.clone())),
            TensorOrigin::Generator(generator) => (format!("generated: {}", generator.description), None),
        };
        Ok(TensorReport {
            name: loaded.name.clone(),
            origin,
            file,
            shape: tensor.shape().to_vec(),
            dtype: tensor.dtype().to_string(),
            format: format_name(tensor.format()),
            fill: tensor.fill(),
            value: if tensor.rank() == 0 { tensor.get(&[]) } else { None },
            stores_every_cell: tensor.format().is_all_dense(),
            statistics: tensor.statistics()?,
        })
    }
}

impl TensorReport {
    /// The comments of the file, if any.
    pub(super) fn comments(&self) -> &[String] {
        self.file.as_ref().map_or(&[], |header| &header.comments)
    }

    /// Remarks about the structure of the entries.
    pub(super) fn remarks(&self) -> Vec<String> {
        self.statistics.structure.remarks(&self.shape, self.statistics.matrix.as_ref())
    }

    /// Everything as JSON; what does not apply is null.
    pub(super) fn as_json(&self) -> Json {
        json!({
            "name": self.name,
            "origin": self.origin,
            "kind": self.file.as_ref().map(|header| header.kind.extension()),
            "gzip": self.file.as_ref().map(|header| header.gzip),
            "entries": self.file.as_ref().map(|header| header.stored),
            "field": self.file.as_ref().map(|header| header.field.name()),
            "symmetry": self.file.as_ref().map(|header| header.symmetry.name()),
            "layout": self.file.as_ref().map(|header| layout_name(header.layout)),
            "comments": self.comments(),
            "shape": self.shape,
            "rank": self.shape.len(),
            "dtype": self.dtype,
            "format": self.format,
            "fill": number(self.fill),
            "value": self.value.map(number),
            "stored": self.statistics.stored,
            "explicit_zeros": self.statistics.explicit_zeros,
            "explicit_fills": self.statistics.explicit_fills,
            "density": self.statistics.density,
            "bytes": self.statistics.nbytes,
            "levels": self.statistics.levels.iter().map(level_as_json).collect::<Vec<_>>(),
            "matrix": self.statistics.matrix.as_ref().map(matrix_as_json),
            "structure": structure_as_json(&self.statistics.structure),
            "remarks": self.remarks(),
        })
    }
}

fn level_as_json(level: &LevelStatistics) -> Json {
    json!({
        "name": level.name,
        "dimension": level.dimension,
        "size": level.size,
        "fibers": level.fibers,
        "stored": level.coordinates,
        "min_per_fiber": level.least,
        "mean_per_fiber": level.mean,
        "max_per_fiber": level.most,
        "empty_fibers": level.empty_fibers,
        "bytes": level.nbytes,
    })
}

fn matrix_as_json(matrix: &MatrixStatistics) -> Json {
    json!({
        "lower_bandwidth": matrix.lower_bandwidth,
        "upper_bandwidth": matrix.upper_bandwidth,
        "empty_rows": matrix.empty_rows,
        "empty_columns": matrix.empty_columns,
        "min_per_row": matrix.least_per_row,
        "max_per_row": matrix.most_per_row,
        "mean_per_row": matrix.mean_per_row,
        "min_per_column": matrix.least_per_column,
        "max_per_column": matrix.most_per_column,
        "mean_per_column": matrix.mean_per_column,
        "rows_with_one": matrix.rows_with_one,
        "columns_with_one": matrix.columns_with_one,
        "diagonal_entries": matrix.diagonal_entries,
        "diagonal_nonzeros": matrix.diagonal_nonzeros,
        "structurally_symmetric": matrix.structurally_symmetric,
        "symmetric": matrix.symmetric,
        "skew_symmetric": matrix.skew_symmetric,
        "hermitian": matrix.hermitian,
        "lower_triangular": matrix.lower_triangular,
        "upper_triangular": matrix.upper_triangular,
        "strictly_triangular": matrix.strictly_triangular,
        "unit_diagonal": matrix.unit_diagonal,
        "diagonal": matrix.diagonal,
        "permutation": matrix.permutation,
    })
}

/// The recognised structure, as JSON.
pub(crate) fn structure_as_json(structure: &Structure) -> Json {
    let lines = structure.lines.iter().map(|lines| {
        json!({
            "dimension": lines.dimension,
            "lines": lines.lines,
            "ranges": lines.ranges,
            "mean_range": lines.mean_range(),
            "runs": lines.runs,
            "mean_run": lines.mean_run(),
            "span": lines.span,
            "filled": lines.filled(),
        })
    });
    let blocks = structure
        .blocks
        .iter()
        .map(|fit| json!({ "rows": fit.rows, "columns": fit.columns, "blocks": fit.blocks, "filled": fit.filled }));
    json!({
        "entries": structure.entries,
        "constant": structure.constant.map(number),
        "prefixes": structure.prefixes,
        "lines": lines.collect::<Vec<Json>>(),
        "slices": structure.slices.map(|slices| json!({ "equal": slices.equal, "runs": slices.runs })),
        "blocks": blocks.collect::<Vec<Json>>(),
        "diagonals": structure.diagonals.map(|d| json!({ "count": d.count, "filled": d.filled })),
    })
}

/// A number as JSON has it, else as the text that Tamis reads back: JSON has no infinities and no
/// complex numbers.
fn number(value: Value) -> Json {
    match value {
        Value::Bool(x) => json!(x),
        Value::F32(x) if x.is_finite() => json!(x),
        Value::F64(x) if x.is_finite() => json!(x),
        Value::U64(x) => json!(x),
        other => other.as_i64().map_or_else(|| json!(other.to_string()), |x| json!(x)),
    }
}

/// The short name where there is one, as users would write it.
pub(crate) fn format_name(format: &Format) -> String {
    let leaf = match format.leaf() {
        Leaf::Element(None) => String::new(),
        leaf => format!("; {leaf}"),
    };
    format.short_name().map_or_else(|| format.to_string(), |name| format!("{name}{leaf}"))
}

fn layout_name(layout: Layout) -> &'static str {
    match layout {
        Layout::Coordinates => "coordinates",
        Layout::Rows => "compressed rows",
        Layout::Columns => "compressed columns",
        Layout::Dense => "dense",
    }
}

/// The file in words: `Matrix Market, coordinates, real symmetric, 3 entries, gzip`.
fn describe_file(header: &FileHeader) -> String {
    let kind = match header.kind {
        FileKind::MatrixMarket => "Matrix Market",
        FileKind::Frostt => "FROSTT tensor",
        FileKind::ScipyArchive => "scipy.sparse archive",
        FileKind::Binsparse => "Binsparse",
        FileKind::NumpyArray => "NumPy array",
        FileKind::Dlmc => "DLMC matrix",
        FileKind::Image => "Netpbm image",
        FileKind::Idx => "IDX array",
        FileKind::Table => "table of numbers",
    };
    let layout = layout_name(header.layout);
    let symmetry = match header.symmetry {
        Symmetry::General => String::new(),
        other => format!(" {}", other.name()),
    };
    let entries = format!("{} {}", header.stored, if header.stored == 1 { "entry" } else { "entries" });
    let gzip = if header.gzip { ", gzip" } else { "" };
    format!("{kind}, {layout}, {}{symmetry}, {entries}{gzip}", header.field.name())
}
