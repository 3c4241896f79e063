//! Reader of Binsparse 0.1 archives (`.bsp.npz`): a JSON descriptor, and the arrays of each level.
//!
//! The archive holds `binsparse.json` and an `.npy` file for each array, as NumPy's archives do.
//! The reader accepts all predefined formats and custom ones of element, dense and sparse levels,
//! with `transpose`, `fill`, `index_base`, complex and boolean values, `iso` values (all equal) and
//! `structure` (matrices with one stored triangle).

use super::npz::{ArchiveReader, corrupt};
use super::symmetry::Symmetry;
use super::{Content, FileData, FileHeader, FileKind, Layout, ReadOptions, ValueField, npy, options};
use crate::convert::words;
use crate::{Combine, Coordinates, IndexArray, LevelArrays, Tensor, ValueArray};
use serde_json::Value as Json;
use tamis_ir::diag::Result;
use tamis_ir::format::{DimExpr, Format, Leaf, LevelKind, LevelSpec, MAX_RANK};
use tamis_ir::{Code, DType, Diagnostic, Value};

/// The member with the descriptor.
pub(super) const DESCRIPTOR: &str = "binsparse.json";

/// The maximum size of a descriptor, in bytes.
const LONGEST: u64 = 1 << 20;

/// The maximum number of equal (`iso`) values that are expanded, unless the file lists their
/// coordinates.
const MAX_SAME: u64 = 1 << 28;

/// True for a sparse level, and its number of dimensions.
pub(super) type LevelShape = (bool, usize);

/// A predefined format: its name, its levels, and a flag for column-major order.
pub(super) type Predefined = (&'static str, &'static [LevelShape], bool);

/// All predefined formats. The first of equivalent ones is written.
pub(super) const PREDEFINED: [Predefined; 13] = [
    ("DVEC", &[(false, 1)], false),
    ("DMATR", &[(false, 1), (false, 1)], false),
    ("DMAT", &[(false, 1), (false, 1)], false),
    ("DMATC", &[(false, 1), (false, 1)], true),
    ("CVEC", &[(true, 1)], false),
    ("CSR", &[(false, 1), (true, 1)], false),
    ("CSC", &[(false, 1), (true, 1)], true),
    ("DCSR", &[(true, 1), (true, 1)], false),
    ("DCSC", &[(true, 1), (true, 1)], true),
    ("COOR", &[(true, 2)], false),
    ("COO", &[(true, 2)], false),
    ("COOC", &[(true, 2)], true),
    ("VEC", &[(true, 1)], false),
];

/// The parsed descriptor.
struct Descriptor {
    shape: Vec<u64>,
    entries: u64,
    levels: Vec<LevelShape>,
    /// The dimension that each level stores.
    order: Vec<usize>,
    values: String,
    fill: bool,
    base: u64,
    structure: Option<(Symmetry, bool)>,
}

/// Reads a tensor in the format of the file.
pub(super) fn read(name: &str, bytes: &[u8], options: &ReadOptions) -> Result<Tensor> {
    let mut archive = ArchiveReader::open(name, bytes)?;
    let text = archive.bytes(DESCRIPTOR, LONGEST)?;
    let json: Json = serde_json::from_slice(&text)
        .map_err(|error| corrupt(name, format!("`{DESCRIPTOR}` is not JSON: {error}")).help("write the file again"))?;
    let descriptor = Descriptor::new(json.get("binsparse").unwrap_or(&json)).map_err(|d| d.in_file(name))?;
    options::agree(options, &descriptor.shape, 0).map_err(|fault| fault.in_file(name))?;
    descriptor.tensor(&mut archive).map_err(|d| d.in_file(name))
}

/// A tensor as plain file data, for inspection.
pub(super) fn data(tensor: &Tensor) -> Result<FileData> {
    let zero = Value::zero(tensor.dtype());
    if !tensor.fill().same_number(zero) && !tensor.format().is_all_dense() {
        let message =
            format!("what the file does not store is {}, which a coordinate list cannot represent", tensor.fill());
        return Err(Diagnostic::new(Code::E0809, message).help("read it as a tensor"));
    }
    let (content, layout) = if tensor.format().is_all_dense() {
        (Content::Dense { shape: tensor.shape().to_vec(), values: tensor.to_dense()? }, Layout::Dense)
    } else {
        let rows = *tensor.format() == Format::csr();
        let columns = *tensor.format() == Format::csc();
        let layout = if rows {
            Layout::Rows
        } else if columns {
            Layout::Columns
        } else {
            Layout::Coordinates
        };
        (Content::Coordinates(tensor.try_to_coordinates()?), layout)
    };
    let field = if tensor.values().is_none() { ValueField::Pattern } else { ValueField::of(tensor.dtype()) };
    let header = FileHeader {
        kind: FileKind::Binsparse,
        gzip: false,
        field,
        symmetry: Symmetry::General,
        layout,
        stored: tensor.nnz() as u64,
        comments: Vec::new(),
    };
    Ok(FileData { content, header, fill: None })
}

#[cold]
fn wrong(message: impl Into<String>) -> Diagnostic {
    Diagnostic::new(Code::E0803, message)
        .help("the descriptor is explained at https://graphblas.org/binsparse-specification")
}

#[cold]
fn unsupported(message: impl Into<String>) -> Diagnostic {
    Diagnostic::new(Code::E0809, message).help("convert the file before, for example to CSR or COO")
}

impl Descriptor {
    fn new(json: &Json) -> Result<Descriptor> {
        let version = json.get("version").and_then(Json::as_str).unwrap_or_default();
        if !version.starts_with("0.") {
            return Err(unsupported(format!("the version of Binsparse is `{version}`, and 0.1 is read")));
        }
        let sizes = json.get("shape").and_then(Json::as_array).filter(|sizes| sizes.len() <= MAX_RANK);
        let shape: Option<Vec<u64>> = sizes.and_then(|sizes| sizes.iter().map(Json::as_u64).collect());
        let shape = shape.ok_or_else(|| wrong(format!("`shape` is not a list of at most {MAX_RANK} sizes")))?;
        let entries = json.get("number_of_stored_values").or_else(|| json.get("nnz")).and_then(Json::as_u64);
        let entries = entries.ok_or_else(|| wrong("`number_of_stored_values` is missing, or is not a number"))?;
        let (levels, order) = levels(json, shape.len())?;
        let values = json.get("data_types").and_then(|types| types.get("values")).and_then(Json::as_str);
        let values = values.ok_or_else(|| wrong("`data_types` lacks the type of `values`"))?.to_string();
        let fill = json.get("fill").and_then(Json::as_bool).unwrap_or(false);
        let base = json.get("index_base").map_or(Some(0), Json::as_u64).filter(|base| *base <= 1);
        let base = base.ok_or_else(|| wrong("`index_base` is neither 0 nor 1"))?;
        let structure = json.get("structure").map(|word| structure(word, &shape)).transpose()?.flatten();
        Ok(Descriptor { shape, entries, levels, order, values, fill, base, structure })
    }

    /// The equivalent format of Tamis.
    fn format(&self, leaf: Leaf) -> Result<Format> {
        let mut specs = Vec::new();
        for (sparse, rank) in &self.levels {
            let first = if *sparse { LevelKind::Sparse } else { LevelKind::Dense };
            let rest = if *sparse { LevelKind::Singleton } else { LevelKind::Dense };
            specs.push(LevelSpec { nonunique: *sparse && *rank > 1, ..LevelSpec::new(first) });
            specs.extend((1..*rank).map(|_| LevelSpec::new(rest)));
        }
        let map = self.order.iter().map(|d| DimExpr::Dim(*d)).collect();
        Format::new(self.shape.len(), map, specs, leaf)
            .map_err(|d| unsupported(format!("these levels are not read: {}", d.message)))
    }

    fn tensor(&self, archive: &mut ArchiveReader) -> Result<Tensor> {
        let arrays = self.arrays(archive)?;
        let values = self.values(archive, &arrays)?;
        let leaf = if values.is_none() { Leaf::Pattern } else { Leaf::Element(None) };
        let dtype = values.as_ref().map_or(DType::Bool, ValueArray::dtype);
        let fill = match self.fill {
            false => Value::zero(dtype),
            true => {
                let given = archive.vector("fill_value")?;
                let one = (given.len() == 1).then(|| given.get(0).cast_exact(dtype)).flatten();
                one.ok_or_else(|| corrupt(archive.name, format!("`fill_value` is not one number of type {dtype}")))?
            }
        };
        let format = self.format(leaf)?;
        let made = Tensor::from_parts(&self.shape, &format, arrays.clone(), values.clone(), fill);
        let tensor = match made {
            Err(d) if d.code == Code::E0704 => self.sorted(&format, arrays, values, fill).ok_or(d)??,
            other => other?,
        };
        match self.structure {
            Some((symmetry, lower)) => mirrored(&tensor, symmetry, lower),
            None => Ok(tensor),
        }
    }

    /// Sorts unsorted coordinates: one coordinate list, or lists below dense levels.
    fn sorted(
        &self,
        format: &Format,
        mut arrays: Vec<LevelArrays>,
        values: Option<ValueArray>,
        fill: Value,
    ) -> Option<Result<Tensor>> {
        let rank = self.shape.len();
        if let [(true, all)] = self.levels[..]
            && all == rank
        {
            let mut columns = vec![IndexArray::from(Vec::<u32>::new()); rank];
            for (level, d) in arrays.iter().zip(&self.order) {
                *columns.get_mut(*d)? = level.get("crd")?.clone();
            }
            let count = columns.first().map_or(0, IndexArray::len);
            let values = values.map_or_else(|| words::repeat(Value::Bool(true), count), Ok);
            let entries = values.map(|values| Coordinates { shape: self.shape.clone(), columns, values });
            return Some(entries.and_then(|e| Tensor::from_coordinates(&e, format, fill, Combine::Error)));
        }
        let mut specs = format.levels().to_vec();
        let last = specs.last_mut().filter(|level| level.kind == LevelKind::Sparse)?;
        last.nonordered = true;
        let loose = Format::new(rank, format.map().to_vec(), specs, format.leaf());
        let arrays = std::mem::take(&mut arrays);
        let made = loose.and_then(|loose| Tensor::from_parts(&self.shape, &loose, arrays, values, fill));
        Some(made.and_then(|tensor| tensor.convert(format)))
    }

    /// The arrays of the equivalent levels.
    fn arrays(&self, archive: &mut ArchiveReader) -> Result<Vec<LevelArrays>> {
        let mut arrays = Vec::new();
        let mut depth = 0;
        for (sparse, rank) in &self.levels {
            for k in 0..*rank {
                let mut level = LevelArrays::default();
                if *sparse {
                    let crd = self.indices(archive, &format!("indices_{}", depth + k))?;
                    if k == 0 {
                        let pos = match depth {
                            // There is one fiber, with all coordinates.
                            0 => vec![0u64, crd.len() as u64].into(),
                            _ => self.indices(archive, &format!("pointers_to_{depth}"))?,
                        };
                        level.arrays.push(("pos", narrow(pos)?));
                    }
                    level.arrays.push(("crd", crd));
                }
                arrays.push(level);
            }
            depth += rank;
        }
        Ok(arrays)
    }

    /// Positions or coordinates, counted from 0.
    fn indices(&self, archive: &mut ArchiveReader, member: &str) -> Result<IndexArray> {
        let array = archive.vector(member)?;
        let name = archive.name;
        let number = |k: usize| {
            let found = match array.get(k) {
                Value::U64(x) => Some(x),
                other => other.as_i64().and_then(|x| u64::try_from(x).ok()),
            };
            let found = found.and_then(|x| x.checked_sub(self.base));
            found.ok_or_else(|| {
                corrupt(name, format!("entry {k} of `{member}` is {}, which is not an index", array.get(k)))
            })
        };
        if !matches!(array.dtype().kind(), tamis_ir::Kind::Int) {
            return Err(corrupt(name, format!("`{member}` holds {}, not integers", array.dtype())));
        }
        let numbers = (0..array.len()).map(number).collect::<Result<Vec<u64>>>()?;
        narrow(numbers.into())
    }

    /// The values; `None` if all are true.
    fn values(&self, archive: &mut ArchiveReader, arrays: &[LevelArrays]) -> Result<Option<ValueArray>> {
        let (inner, same) = modifier(&self.values, "iso");
        let (scalar, complex) = modifier(inner, "complex");
        let mut values = archive.vector("values")?;
        if scalar == "bint8" && values.dtype() == DType::U8 {
            values = values.to_dtype(DType::Bool);
        }
        if complex && !matches!(values.dtype(), DType::C64 | DType::C128) {
            values = paired(&values)
                .ok_or_else(|| corrupt(archive.name, "complex values are not pairs of float32 or float64"))?;
        }
        let known = named(scalar).is_some_and(|dtype| values.dtype() == if complex { dtype.complex() } else { dtype });
        if !known {
            let message = format!("`values` holds {}, but its descriptor states `{}`", values.dtype(), self.values);
            return Err(corrupt(archive.name, message));
        }
        let count = if same { self.positions(arrays)? } else { values.len() as u64 };
        if count != self.entries {
            let message = format!("{count} values are stored, but `number_of_stored_values` is {}", self.entries);
            return Err(Diagnostic::new(Code::E0804, message).help("correct the descriptor, or fetch the file again"));
        }
        match (same, values.len()) {
            (false, _) => Ok(Some(values)),
            (true, 1) if values.dtype() == DType::Bool && values.get(0).is_truthy() && !self.fill => Ok(None),
            (true, 1) => Ok(Some(words::repeat(values.get(0), usize::try_from(count).unwrap_or(usize::MAX))?)),
            (true, found) => Err(corrupt(archive.name, format!("one value stands for all, but there are {found}"))),
        }
    }

    /// The number of positions below the last level, which is bounded by the arrays of the file,
    /// except for trailing dense levels.
    fn positions(&self, arrays: &[LevelArrays]) -> Result<u64> {
        let mut count = 1u64;
        let mut listed = true;
        for (level, d) in arrays.iter().zip(&self.order) {
            let size = self.shape.get(*d).copied().unwrap_or(0);
            (count, listed) = match level.get("crd") {
                Some(crd) => (crd.len() as u64, true),
                None => (count.saturating_mul(size), false),
            };
        }
        if !listed && count > MAX_SAME {
            return Err(unsupported(format!("{count} equal values would have to be written out")));
        }
        Ok(count)
    }
}

/// The modifier in brackets after a word, and a flag for its presence.
fn modifier<'a>(text: &'a str, word: &str) -> (&'a str, bool) {
    let inner = text.strip_prefix(word).and_then(|rest| rest.strip_prefix('[')).and_then(|rest| rest.strip_suffix(']'));
    (inner.unwrap_or(text), inner.is_some())
}

/// The value type for Binsparse's name.
pub(super) fn named(name: &str) -> Option<DType> {
    DType::ALL.into_iter().find(|dtype| dtype_name(*dtype) == Some(name))
}

/// Binsparse's name of a type; `None` for complex ones, which are pairs.
pub(super) const fn dtype_name(dtype: DType) -> Option<&'static str> {
    Some(match dtype {
        DType::Bool => "bint8",
        DType::I8 => "int8",
        DType::I16 => "int16",
        DType::I32 => "int32",
        DType::I64 => "int64",
        DType::U8 => "uint8",
        DType::U16 => "uint16",
        DType::U32 => "uint32",
        DType::U64 => "uint64",
        DType::F32 => "float32",
        DType::F64 => "float64",
        DType::C64 | DType::C128 => return None,
    })
}

/// Alternating real and imaginary parts as complex numbers.
fn paired(values: &ValueArray) -> Option<ValueArray> {
    let dtype = match values.dtype() {
        DType::F32 => DType::C64,
        DType::F64 => DType::C128,
        _ => return None,
    };
    // Both have the memory layout of pairs.
    values.len().is_multiple_of(2).then(|| npy::numbers(dtype, &npy::value_bytes(values), false).ok()).flatten()
}

/// The narrower of 32 and 64 bits that fits all numbers.
fn narrow(numbers: IndexArray) -> Result<IndexArray> {
    let small = numbers.largest().is_none_or(|most| most <= u64::from(u32::MAX));
    if small { numbers.to_width(tamis_ir::format::Width::U32) } else { Ok(numbers) }
}

/// Parses levels from the outermost on, and the order of their dimensions.
fn levels(json: &Json, rank: usize) -> Result<(Vec<LevelShape>, Vec<usize>)> {
    let format = json.get("format");
    let custom = json.get("custom").or_else(|| format.and_then(|f| f.get("custom")));
    if let (Some(word), None) = (format.and_then(Json::as_str), custom) {
        let found = PREDEFINED.iter().find(|(name, _, _)| *name == word);
        let (_, levels, columns_first) =
            found.ok_or_else(|| unsupported(format!("the format `{word}` is not defined")))?;
        let stored: usize = levels.iter().map(|(_, rank)| rank).sum();
        if stored != rank {
            return Err(wrong(format!("`{word}` stores {stored} dimensions, but the shape has {rank}")));
        }
        return Ok((levels.to_vec(), if *columns_first { vec![1, 0] } else { (0..rank).collect() }));
    }
    let custom = custom.ok_or_else(|| wrong("`format` is missing"))?;
    let mut levels = Vec::new();
    let mut level = custom.get("level");
    loop {
        let Some(descriptor) = level else { return Err(wrong("a level is missing: the last one is `element`")) };
        let kind = descriptor
            .get("level_desc")
            .or_else(|| descriptor.get("level_kind"))
            .and_then(Json::as_str)
            .unwrap_or_default();
        let sparse = match kind {
            "element" => break,
            "dense" => false,
            "sparse" => true,
            other => return Err(unsupported(format!("levels are element, dense or sparse, not `{other}`"))),
        };
        let dims = descriptor.get("rank").map_or(Some(1), Json::as_u64).filter(|r| (1..=MAX_RANK as u64).contains(r));
        levels.push((sparse, dims.ok_or_else(|| wrong("the rank of a level is not a positive number"))? as usize));
        if levels.len() > MAX_RANK {
            return Err(wrong(format!("there are more than {MAX_RANK} levels")));
        }
        level = descriptor.get("level");
    }
    let stored: usize = levels.iter().map(|(_, rank)| rank).sum();
    let order: Option<Vec<usize>> = match custom.get("transpose") {
        None => Some((0..rank).collect()),
        Some(order) => {
            order.as_array().and_then(|order| order.iter().map(|d| d.as_u64().map(|d| d as usize)).collect())
        }
    };
    let order = order.filter(|order| order.len() == rank && (0..rank).all(|d| order.contains(&d)));
    let order = order.ok_or_else(|| wrong("`transpose` does not name each dimension once"))?;
    if stored != rank {
        return Err(wrong(format!("the levels store {stored} dimensions, but the shape has {rank}")));
    }
    Ok((levels, order))
}

/// Parses the symmetry of a matrix, with a flag for a stored lower triangle.
fn structure(word: &Json, shape: &[u64]) -> Result<Option<(Symmetry, bool)>> {
    let word = word.as_str().unwrap_or_default();
    let (symmetry, triangle) = match word.rsplit_once('_') {
        _ if word == "general" => return Ok(None),
        Some(("symmetric", triangle)) => (Symmetry::Symmetric, triangle),
        Some(("skew_symmetric", triangle)) => (Symmetry::SkewSymmetric, triangle),
        Some(("hermitian", triangle)) => (Symmetry::Hermitian, triangle),
        _ => return Err(unsupported(format!("the structure `{word}` is not defined"))),
    };
    if !matches!(triangle, "lower" | "upper") {
        return Err(unsupported(format!("the structure `{word}` is not defined")));
    }
    match shape {
        [rows, columns] if rows == columns => Ok(Some((symmetry, triangle == "lower"))),
        _ => Err(wrong(format!("the structure `{word}` is one of square matrices"))),
    }
}

/// Expands a matrix with one stored triangle.
fn mirrored(tensor: &Tensor, symmetry: Symmetry, lower: bool) -> Result<Tensor> {
    let entries = tensor.try_to_coordinates()?;
    let signed = !matches!(tensor.dtype(), DType::Bool) && !tensor.dtype().is_unsigned_int();
    if symmetry == Symmetry::SkewSymmetric && !signed {
        return Err(wrong(format!("values of type {} have no sign that could change", tensor.dtype())));
    }
    let [rows, columns] = &entries.columns[..] else { return Err(wrong("the structure is one of matrices")) };
    let (mut i, mut j, mut values) = (rows.to_vec(), columns.to_vec(), Vec::new());
    for k in 0..entries.len() {
        let (row, column, value) = (rows.get(k), columns.get(k), entries.values.get(k));
        if (row < column) == lower && row != column {
            let message = format!("the entry ({row}, {column}) is not in the triangle that the structure stores");
            return Err(Diagnostic::new(Code::E0808, message).help("correct the structure, or leave it out"));
        }
        if row != column {
            i.push(column);
            j.push(row);
            values.push(mirror(value, symmetry));
        }
    }
    let all = (0..entries.len()).map(|k| entries.values.get(k)).chain(values).collect::<Vec<_>>();
    let values = ValueArray::from_values(&all, tensor.dtype());
    let entries = Coordinates { shape: entries.shape, columns: vec![narrow(i.into())?, narrow(j.into())?], values };
    Tensor::from_coordinates(&entries, tensor.format(), tensor.fill(), Combine::Error)
}

/// The value at the mirrored position.
fn mirror(value: Value, symmetry: Symmetry) -> Value {
    match (symmetry, value) {
        (Symmetry::Hermitian, Value::C64(x)) => Value::C64(x.conj()),
        (Symmetry::Hermitian, Value::C128(x)) => Value::C128(x.conj()),
        (Symmetry::SkewSymmetric, value) => {
            tamis_ir::algebra::eval(tamis_ir::algebra::Op::Neg, value.dtype(), &[value])
        }
        (_, value) => value,
    }
}
