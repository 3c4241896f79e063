//! What `info` knows about a tensor, gathered once and shown as text or JSON.

use super::measure::{self, LevelFacts, MatrixFacts, Stored};
use crate::load::{Loaded, Origin};
use serde_json::{Value as Json, json};
use tamis_ir::diag::Result;
use tamis_ir::format::Leaf;
use tamis_ir::{Format, Value};
use tamis_tensor::io::{FileHeader, FileKind, Layout, Symmetry};

/// Facts about a tensor.
pub(super) struct Facts {
    pub(super) name: String,
    /// What kind of file or generator it comes from, in words.
    pub(super) origin: String,
    pub(super) comments: Vec<String>,
    pub(super) shape: Vec<u64>,
    pub(super) dtype: String,
    pub(super) format: String,
    pub(super) fill: Value,
    /// The value of a tensor of rank 0.
    pub(super) value: Option<Value>,
    pub(super) stored: u64,
    pub(super) stores_every_cell: bool,
    pub(super) density: Option<f64>,
    pub(super) bytes: u64,
    /// How many stored entries are the same number as the fill.
    pub(super) stored_fills: u64,
    pub(super) levels: Vec<LevelFacts>,
    pub(super) matrix: Option<MatrixFacts>,
}

impl Facts {
    pub(super) fn of(loaded: &Loaded) -> Result<Facts> {
        let tensor = &loaded.tensor;
        let (origin, comments) = match &loaded.origin {
            Origin::File(header) => (describe_file(header), header.comments.clone()),
            Origin::Generator(generator) => (format!("generated: {}", generator.description), Vec::new()),
        };
        let stored = Stored::of(tensor)?;
        let cells = tensor.shape().iter().fold(1.0, |cells, n| cells * *n as f64);
        Ok(Facts {
            name: loaded.name.clone(),
            origin,
            comments,
            shape: tensor.shape().to_vec(),
            dtype: tensor.dtype().to_string(),
            format: format_name(tensor.format()),
            fill: tensor.fill(),
            value: if tensor.rank() == 0 { tensor.get(&[]) } else { None },
            stored: tensor.nnz() as u64,
            stores_every_cell: tensor.format().is_all_dense(),
            density: (cells > 0.0).then(|| tensor.nnz() as f64 / cells),
            bytes: tensor.nbytes() as u64,
            stored_fills: stored.fills(tensor.fill()),
            levels: measure::levels(tensor),
            matrix: measure::matrix(tensor, &stored),
        })
    }
}

impl Facts {
    /// Everything as JSON; what does not apply is null.
    pub(super) fn as_json(&self) -> Json {
        json!({
            "name": self.name,
            "origin": self.origin,
            "comments": self.comments,
            "shape": self.shape,
            "rank": self.shape.len(),
            "dtype": self.dtype,
            "format": self.format,
            "fill": number(self.fill),
            "value": self.value.map(number),
            "stored": self.stored,
            "density": self.density,
            "bytes": self.bytes,
            "explicit_fills": self.stored_fills,
            "levels": self.levels.iter().map(level_as_json).collect::<Vec<_>>(),
            "matrix": self.matrix.as_ref().map(matrix_as_json),
        })
    }
}

fn level_as_json(level: &LevelFacts) -> Json {
    json!({
        "kind": level.kind,
        "dimension": level.dimension,
        "size": level.size,
        "fibers": level.fibers,
        "stored": level.stored,
        "bytes": level.bytes,
        "min_per_fiber": level.spread.map(|(least, _, _)| least),
        "max_per_fiber": level.spread.map(|(_, most, _)| most),
        "mean_per_fiber": (level.fibers > 0).then(|| level.stored as f64 / level.fibers as f64),
        "empty_fibers": level.spread.map(|(_, _, empty)| empty),
    })
}

fn matrix_as_json(matrix: &MatrixFacts) -> Json {
    json!({
        "lower_bandwidth": matrix.lower,
        "upper_bandwidth": matrix.upper,
        "empty_rows": matrix.empty_rows,
        "empty_columns": matrix.empty_columns,
        "max_per_row": matrix.most_in_row,
        "mean_per_row": matrix.mean_in_row,
        "on_diagonal": matrix.on_diagonal,
        "structurally_symmetric": matrix.mirror.structural,
        "symmetric": matrix.mirror.symmetric,
        "skew_symmetric": matrix.mirror.skew,
        "hermitian": matrix.mirror.hermitian,
        "name": matrix.name,
    })
}

/// A number as JSON has it, else as the text that Tamis reads back: JSON has no infinities and no complex numbers.
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
fn format_name(format: &Format) -> String {
    let leaf = match format.leaf() {
        Leaf::Element(None) => String::new(),
        leaf => format!("; {leaf}"),
    };
    format.short_name().map_or_else(|| format.to_string(), |name| format!("{name}{leaf}"))
}

/// The file in words: `Matrix Market, coordinates, real symmetric, 3 entries, gzip`.
fn describe_file(header: &FileHeader) -> String {
    let kind = match header.kind {
        FileKind::MatrixMarket => "Matrix Market",
        FileKind::Frostt => "FROSTT tensor",
        FileKind::ScipyArchive => "scipy.sparse archive",
        FileKind::NumpyArray => "NumPy array",
        FileKind::Dlmc => "DLMC matrix",
        FileKind::Image => "Netpbm image",
        FileKind::Idx => "IDX array",
        FileKind::Table => "table of numbers",
    };
    let layout = match header.layout {
        Layout::Coordinates => "coordinates",
        Layout::Rows => "compressed rows",
        Layout::Columns => "compressed columns",
        Layout::Dense => "dense",
    };
    let symmetry = match header.symmetry {
        Symmetry::General => String::new(),
        other => format!(" {}", other.name()),
    };
    let entries = format!("{} {}", header.stored, if header.stored == 1 { "entry" } else { "entries" });
    let gzip = if header.gzip { ", gzip" } else { "" };
    format!("{kind}, {layout}, {}{symmetry}, {entries}{gzip}", header.field.name())
}
