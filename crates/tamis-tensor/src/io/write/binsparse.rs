//! Writer of Binsparse archives: the descriptor, and the arrays of dense and sparse levels.

use super::super::binsparse::{DESCRIPTOR, LevelShape, PREDEFINED, Predefined, dtype_name};
use super::super::npy::{header_bytes, value_bytes};
use super::super::tensor::does_not_fit;
use super::WriteOptions;
use super::arrays::archive;
use crate::{IndexArray, Tensor, ValueArray};
use serde_json::{Map, Value as Json, json};
use std::io::{self, Write};
use tamis_ir::diag::Result;
use tamis_ir::format::{Format, Leaf, LevelKind};
use tamis_ir::{DType, Value};

/// An archive ready to be written.
pub(super) struct BinsparseJob {
    descriptor: String,
    members: Vec<(String, ValueArray)>,
    compress: bool,
}

impl BinsparseJob {
    pub(super) fn new(tensor: &Tensor, options: &WriteOptions) -> Result<BinsparseJob> {
        let (tensor, levels) = match levels(tensor.format()) {
            Some(levels) => (tensor.clone(), levels),
            // Other levels are written as the closest coordinate lists.
            None => {
                let format =
                    if tensor.rank() == 2 { Format::csr() } else { Format::uniform(LevelKind::Sparse, tensor.rank()) };
                let leaf = if tensor.values().is_none() { Leaf::Pattern } else { Leaf::Element(None) };
                let tensor = tensor.convert(&format.with_leaf(leaf))?;
                let levels = levels_of(tensor.format())?;
                (tensor, levels)
            }
        };
        let mut types = Map::new();
        let mut members = Vec::new();
        let mut add = |name: String, values: ValueArray, members: &mut Vec<(String, ValueArray)>| {
            types.insert(name.clone(), json!(type_name(values.dtype())));
            members.push((name, values));
        };
        for k in 0..tensor.rank() {
            let arrays = tensor.level_arrays(k);
            if let (Some(pos), true) = (arrays.get("pos"), k > 0) {
                add(format!("pointers_to_{k}"), unsigned(pos), &mut members);
            }
            if let Some(crd) = arrays.get("crd") {
                add(format!("indices_{k}"), unsigned(crd), &mut members);
            }
        }
        let stored = tensor.values().map_or(tensor.nnz(), ValueArray::len);
        match tensor.values() {
            Some(values) => add("values".to_string(), values.clone(), &mut members),
            None => {
                add("values".to_string(), ValueArray::from(vec![true]), &mut members);
            }
        }
        let fill = !tensor.fill().same_number(Value::zero(tensor.dtype()));
        if fill {
            add("fill_value".to_string(), ValueArray::from_values(&[tensor.fill()], tensor.dtype()), &mut members);
        }
        if tensor.values().is_none() {
            types.insert("values".to_string(), json!("iso[bint8]"));
        }
        let order = tensor.format().dim_order().unwrap_or_default();
        let mut descriptor = Map::new();
        descriptor.insert("version".to_string(), json!("0.1"));
        descriptor.insert("shape".to_string(), json!(tensor.shape()));
        descriptor.insert("number_of_stored_values".to_string(), json!(stored));
        descriptor.insert("data_types".to_string(), Json::Object(types));
        if fill {
            descriptor.insert("fill".to_string(), json!(true));
        }
        match alias(&levels, &order) {
            Some(name) => {
                descriptor.insert("format".to_string(), json!(name));
            }
            None => {
                descriptor.insert("format".to_string(), json!("custom"));
                descriptor.insert("custom".to_string(), custom(&levels, &order));
            }
        }
        let mut whole = Map::new();
        whole.insert("binsparse".to_string(), Json::Object(descriptor));
        if !options.comments.is_empty() {
            whole.insert("comments".to_string(), json!(options.comments));
        }
        let descriptor = format!("{:#}\n", Json::Object(whole));
        Ok(BinsparseJob { descriptor, members, compress: options.compress })
    }

    pub(super) fn emit(&self, out: &mut dyn Write) -> io::Result<()> {
        archive(out, self.compress, |member| {
            member(DESCRIPTOR, self.descriptor.as_bytes(), &[])?;
            for (name, values) in &self.members {
                let header = header_bytes(values.dtype(), &[values.len() as u64], None);
                member(&format!("{name}.npy"), &header, &value_bytes(values))?;
            }
            Ok(())
        })
    }
}

fn type_name(dtype: DType) -> String {
    match dtype_name(dtype) {
        Some(name) => name.to_string(),
        None => format!("complex[{}]", dtype_name(dtype.real()).unwrap_or_default()),
    }
}

fn levels_of(format: &Format) -> Result<Vec<LevelShape>> {
    levels(format)
        .ok_or_else(|| does_not_fit("the tensor has levels that Binsparse has not", "convert it to `coo` first"))
}

/// True for each sparse level, and the number of dimensions it stores; `None` if there are other
/// levels.
fn levels(format: &Format) -> Option<Vec<LevelShape>> {
    format.dim_order()?;
    let mut found: Vec<LevelShape> = Vec::new();
    let mut open = false;
    for level in format.levels() {
        match level.kind {
            _ if level.nonordered => return None,
            LevelKind::Dense => found.push((false, 1)),
            LevelKind::Sparse => found.push((true, 1)),
            // Singletons extend the coordinate tuple of the level above.
            LevelKind::Singleton if open => found.last_mut()?.1 += 1,
            _ => return None,
        }
        open = level.nonunique || (open && level.kind == LevelKind::Singleton);
    }
    Some(found)
}

/// The predefined format of these levels, if there is one.
fn alias(levels: &[LevelShape], order: &[usize]) -> Option<&'static str> {
    let columns_first = order == [1, 0];
    let plain = order.iter().enumerate().all(|(k, d)| k == *d);
    let same = |row: &&Predefined| row.1 == levels && row.2 == columns_first;
    PREDEFINED.iter().filter(|_| plain || columns_first).find(same).map(|(name, _, _)| *name)
}

fn custom(levels: &[LevelShape], order: &[usize]) -> Json {
    let mut level = json!({ "level_desc": "element" });
    for (sparse, rank) in levels.iter().rev() {
        level = json!({ "level_desc": if *sparse { "sparse" } else { "dense" }, "rank": rank, "level": level });
    }
    json!({ "level": level, "transpose": order })
}

/// Positions or coordinates as values of unsigned type.
fn unsigned(array: &IndexArray) -> ValueArray {
    match array {
        IndexArray::U8(x) => ValueArray::U8(x.clone()),
        IndexArray::U16(x) => ValueArray::U16(x.clone()),
        IndexArray::U32(x) => ValueArray::U32(x.clone()),
        IndexArray::U64(x) => ValueArray::U64(x.clone()),
    }
}
