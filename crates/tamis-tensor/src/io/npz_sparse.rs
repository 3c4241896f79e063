//! Sparse formats of SciPy and of pydata/sparse, from the arrays of their archives.

use super::npz::{ArchiveReader, corrupt};
use super::repeated::first_repetition;
use super::{Content, FileData, FileHeader, FileKind, Layout, Symmetry, ValueField, compressed as canonical};
use crate::{Coordinates, Index, IndexArray, ValueArray, with_indices, with_values};
use tamis_ir::diag::Result;
use tamis_ir::{Code, Diagnostic, Value};

/// The common members: the shape of the matrix, and the array `data` with its own shape.
pub(super) struct SparseMembers {
    pub shape: Vec<u64>,
    pub values: (Vec<u64>, ValueArray),
}

/// Compressed rows or columns.
pub(super) fn compressed(
    archive: &mut ArchiveReader,
    stored: SparseMembers,
    columns_first: bool,
    check: bool,
) -> Result<FileData> {
    let name = archive.name;
    let (pos, crd) = (archive.vector("indptr")?, archive.vector("indices")?);
    let (data_shape, values) = stored.values;
    let shape = match stored.shape[..] {
        [rows, columns] => [rows, columns],
        // A sparse vector is stored as a matrix of one row.
        [length] if !columns_first => [1, length],
        _ => return Err(corrupt(name, format!("a compressed matrix has two sizes, not {}", stored.shape.len()))),
    };
    let (major, minor) = if columns_first { (shape[1], shape[0]) } else { (shape[0], shape[1]) };
    if data_shape.len() != 1 || values.len() != crd.len() {
        let message = format!("`data` holds {} values for {} `indices`", values.len(), crd.len());
        return Err(corrupt(name, message));
    }
    let pos = positions(name, pos, major, crd.len())?;
    let entries = pos.get(pos.len() - 1) as usize;
    // SciPy's arrays have unused capacity at the end while a matrix is being built.
    let (crd, values) = (first_values(crd, entries), first_values(values, entries));
    let crd = indices(name, crd, "indices", minor)?;
    let layout = if columns_first { Layout::Columns } else { Layout::Rows };
    let header = header(&values, layout);
    let sorted = with_indices!(&pos, p => with_indices!(&crd, c => canonical::is_canonical(p, c)));
    if sorted && stored.shape.len() == 2 {
        return Ok(FileData {
            content: Content::Compressed { columns_first, shape, pos, crd, values },
            header,
            fill: None,
        });
    }
    if stored.shape.len() == 1 {
        return entries_of(name, Coordinates { shape: stored.shape, columns: vec![crd], values }, header, check);
    }
    let outer = expand(&pos, major);
    let columns = if columns_first { vec![crd, outer] } else { vec![outer, crd] };
    entries_of(name, Coordinates { shape: shape.to_vec(), columns, values }, header, check)
}

/// A coordinate list of any rank.
pub(super) fn coordinates(archive: &mut ArchiveReader, stored: SparseMembers, check: bool) -> Result<FileData> {
    let name = archive.name;
    let (data_shape, values) = stored.values;
    let rank = stored.shape.len();
    let mut raw = Vec::with_capacity(rank);
    match archive.find_array("coords")? {
        Some((shape, all)) => {
            if shape.len() != 2 || shape[0] != rank as u64 {
                return Err(corrupt(name, "the member `coords` does not hold one row for each dimension"));
            }
            let count = all.len() / rank.max(1);
            raw.extend((0..rank).map(|d| slice(&all, d * count..(d + 1) * count)));
        }
        None if rank == 2 => raw.extend([archive.vector("row")?, archive.vector("col")?]),
        None => return Err(corrupt(name, "the archive has no member `coords`")),
    }
    let mut columns = Vec::with_capacity(rank);
    for (d, (raw, size)) in raw.into_iter().zip(&stored.shape).enumerate() {
        if data_shape.len() != 1 || raw.len() != values.len() {
            let message = format!("`data` holds {} values for {} coordinates", values.len(), raw.len());
            return Err(corrupt(name, message));
        }
        columns.push(indices(name, raw, &format!("coordinates of dimension {d}"), *size)?);
    }
    let header = header(&values, Layout::Coordinates);
    entries_of(name, Coordinates { shape: stored.shape, columns, values }, header, check)
}

/// GCXS of pydata/sparse: some dimensions are the rows of a matrix, the others its columns, and the
/// matrix is stored in compressed rows.
pub(super) fn generalized(archive: &mut ArchiveReader, stored: SparseMembers, check: bool) -> Result<FileData> {
    let name = archive.name;
    let rank = stored.shape.len();
    let given = archive.vector("compressed_axes")?;
    let mut order = Vec::with_capacity(rank);
    for k in 0..given.len().min(rank + 1) {
        let axis = given.get(k).as_i64().and_then(|axis| usize::try_from(axis).ok());
        match axis.filter(|axis| *axis < rank && !order.contains(axis)) {
            Some(axis) => order.push(axis),
            None => return Err(corrupt(name, "`compressed_axes` does not hold dimensions, each once")),
        }
    }
    match order[..] {
        [0] if rank == 2 => return compressed(archive, stored, false, check),
        [1] if rank == 2 => return compressed(archive, stored, true, check),
        _ => {}
    }
    let outer = order.len();
    order.extend((0..rank).filter(|axis| !order[..outer].contains(axis)).collect::<Vec<_>>());
    let total = |axes: &[usize]| {
        let sizes = axes.iter().map(|axis| stored.shape[*axis]);
        let cells = sizes.clone().try_fold(1_u64, u64::checked_mul);
        cells.ok_or_else(|| corrupt(name, "the rows or columns that it is compressed to are too many to be counted"))
    };
    let (major, minor) = (total(&order[..outer])?, total(&order[outer..])?);
    let (data_shape, values) = stored.values;
    let crd = archive.vector("indices")?;
    if data_shape.len() != 1 || values.len() != crd.len() {
        let message = format!("`data` holds {} values for {} `indices`", values.len(), crd.len());
        return Err(corrupt(name, message));
    }
    // Without compressed dimensions, there are no positions.
    let (rows, entries) = if outer == 0 {
        (IndexArray::from(vec![0_u32; crd.len()]), crd.len())
    } else {
        let pos = positions(name, archive.vector("indptr")?, major, crd.len())?;
        (expand(&pos, major), pos.get(pos.len() - 1) as usize)
    };
    let crd = indices(name, first_values(crd, entries), "indices", minor)?;
    let values = first_values(values, entries);
    let mut columns = vec![IndexArray::from(Vec::<u32>::new()); rank];
    for (numbers, axes) in [(rows, &order[..outer]), (crd, &order[outer..])] {
        let mut left: Vec<u64> = (0..numbers.len()).map(|k| numbers.get(k)).collect();
        for axis in axes.iter().rev() {
            // An entry is in bounds, so no size is zero.
            let size = stored.shape[*axis].max(1);
            let column = left.iter().map(|number| number % size).collect();
            columns[*axis] = canonical::narrow(column, size);
            left.iter_mut().for_each(|number| *number /= size);
        }
    }
    let header = header(&values, Layout::Coordinates);
    entries_of(name, Coordinates { shape: stored.shape, columns, values }, header, check)
}

/// Compressed rows of dense blocks, as a coordinate list of all their entries.
pub(super) fn blocks(archive: &mut ArchiveReader, stored: SparseMembers, check: bool) -> Result<FileData> {
    let name = archive.name;
    let (pos, crd) = (archive.vector("indptr")?, archive.vector("indices")?);
    let (data_shape, values) = stored.values;
    let ([rows, columns], [count, height, width]) = (&stored.shape[..], &data_shape[..]) else {
        return Err(corrupt(name, "a blocked matrix has two sizes, and its `data` has three"));
    };
    let (rows, columns, height, width) = (*rows, *columns, *height, *width);
    let fits = height > 0 && width > 0 && rows.is_multiple_of(height) && columns.is_multiple_of(width);
    if !fits || *count != crd.len() as u64 {
        let message = format!("{count} blocks of {height} by {width} do not fit a matrix of {rows} by {columns}");
        return Err(corrupt(name, message));
    }
    let pos = positions(name, pos, rows / height, crd.len())?;
    let stored_blocks = pos.get(pos.len() - 1) as usize;
    let crd = indices(name, first_values(crd, stored_blocks), "indices", columns / width)?;
    let outer = expand(&pos, rows / height);
    // Both products are at most the number of values, which are in memory.
    let block = (height * width) as usize;
    let values = first_values(values, stored_blocks * block);
    let (mut is, mut js) = (Vec::with_capacity(values.len()), Vec::with_capacity(values.len()));
    for k in 0..stored_blocks {
        let (i0, j0) = (outer.get(k) * height, crd.get(k) * width);
        for i in 0..height {
            for j in 0..width {
                is.push(i0 + i);
                js.push(j0 + j);
            }
        }
    }
    let columns_of = vec![canonical::narrow(is, rows), canonical::narrow(js, columns)];
    let header = header(&values, Layout::Coordinates);
    entries_of(name, Coordinates { shape: vec![rows, columns], columns: columns_of, values }, header, check)
}

/// Diagonals, as a coordinate list of the nonzero entries.
pub(super) fn diagonals(archive: &mut ArchiveReader, stored: SparseMembers, check: bool) -> Result<FileData> {
    let name = archive.name;
    let offsets = archive.vector("offsets")?;
    let (data_shape, values) = stored.values;
    let ([rows, columns], [count, length]) = (&stored.shape[..], &data_shape[..]) else {
        return Err(corrupt(name, "a matrix of diagonals has two sizes, and so has its `data`"));
    };
    if *count != offsets.len() as u64 {
        return Err(corrupt(name, format!("`data` holds {count} diagonals for {} `offsets`", offsets.len())));
    }
    let (mut is, mut js, mut kept) = (Vec::new(), Vec::new(), Vec::new());
    for k in 0..offsets.len() {
        let Some(offset) = offsets.get(k).as_i64() else {
            return Err(corrupt(name, "the member `offsets` does not hold integers"));
        };
        for j in 0..(*length).min(*columns) {
            let i = i128::from(j) - i128::from(offset);
            let at = k * *length as usize + j as usize;
            if i >= 0 && i < i128::from(*rows) && values.get(at).is_truthy() {
                is.push(i as u64);
                js.push(j);
                kept.push(at);
            }
        }
    }
    let picked: Vec<Value> = kept.into_iter().map(|at| values.get(at)).collect();
    let values = ValueArray::from_values(&picked, values.dtype());
    let columns_of = vec![canonical::narrow(is, *rows), canonical::narrow(js, *columns)];
    let header = header(&values, Layout::Coordinates);
    entries_of(name, Coordinates { shape: vec![*rows, *columns], columns: columns_of, values }, header, check)
}

fn header(values: &ValueArray, layout: Layout) -> FileHeader {
    FileHeader {
        kind: FileKind::ScipyArchive,
        gzip: false,
        field: ValueField::of(values.dtype()),
        symmetry: Symmetry::General,
        layout,
        stored: values.len() as u64,
        comments: Vec::new(),
    }
}

fn entries_of(name: &str, coordinates: Coordinates, header: FileHeader, check: bool) -> Result<FileData> {
    let repeated = match coordinates.columns.len() {
        _ if !check => None,
        0 if coordinates.len() > 1 => Some((0, 1)),
        _ => first_repetition(&coordinates.columns, &coordinates.shape, false),
    };
    if let Some((first, second)) = repeated {
        let place: Vec<String> = coordinates.columns.iter().map(|c| c.get(second).to_string()).collect();
        let message = format!("the coordinates ({}) occur twice in the file", place.join(", "));
        return Err(Diagnostic::new(Code::E0807, message)
            .in_file(name)
            .note(format!("they are those of the entries {first} and {second}; SciPy adds up such entries"))
            .help("read the file with `--duplicates sum`, or save it after `matrix.sum_duplicates()`"));
    }
    Ok(FileData { content: Content::Coordinates(coordinates), header, fill: None })
}

/// `indptr`, checked: non-decreasing from 0 to at most the number of entries.
fn positions(name: &str, pos: ValueArray, major: u64, entries: usize) -> Result<IndexArray> {
    if pos.len() as u64 != major.saturating_add(1) {
        let message = format!("`indptr` holds {} numbers where {} are needed", pos.len(), major.saturating_add(1));
        return Err(corrupt(name, message));
    }
    let bad = || corrupt(name, format!("`indptr` does not rise from 0 to at most {entries}"));
    let pos = indices(name, pos, "indptr", (entries as u64).saturating_add(1)).map_err(|_| bad())?;
    let rises = with_indices!(&pos, p => p.windows(2).all(|w| w[0] <= w[1]));
    if pos.get(0) != 0 || !rises { Err(bad()) } else { Ok(pos) }
}

/// Integers, checked to be below `limit`, in 32 bits if they fit.
fn indices(name: &str, array: ValueArray, what: &str, limit: u64) -> Result<IndexArray> {
    let outside = |number: i128| {
        let most = limit.saturating_sub(1);
        Diagnostic::new(Code::E0806, format!("{number} among the {what} is outside of 0 to {most}"))
            .in_file(name)
            .help("write the file again with `save_npz` of the library that made it; SciPy finds what is wrong by `matrix.check_format()`")
    };
    macro_rules! checked {
        ($values:expr) => {{
            if let Some(bad) = $values.iter().find(|x| **x as i128 >= i128::from(limit) || (**x as i128) < 0) {
                return Err(outside(*bad as i128));
            }
        }};
    }
    Ok(match array {
        ValueArray::I32(values) => {
            checked!(values);
            bytemuck::allocation::cast_vec::<i32, u32>(values.into_vec()).into()
        }
        ValueArray::U32(values) => {
            checked!(values);
            values.into()
        }
        ValueArray::I64(values) => {
            checked!(values);
            canonical::narrow(bytemuck::allocation::cast_vec::<i64, u64>(values.into_vec()), limit)
        }
        other => {
            let number = |k: usize| match other.get(k) {
                Value::U64(x) => Some(i128::from(x)),
                value => value.as_i64().map(i128::from),
            };
            let mut numbers = Vec::with_capacity(other.len());
            for k in 0..other.len() {
                match number(k) {
                    Some(x) if x >= 0 && x < i128::from(limit) => numbers.push(x as u64),
                    Some(x) => return Err(outside(x)),
                    None => return Err(corrupt(name, format!("the {what} are not integers"))),
                }
            }
            canonical::narrow(numbers, limit)
        }
    })
}

/// The row of each entry.
fn expand(pos: &IndexArray, major: u64) -> IndexArray {
    let entries = pos.get(pos.len() - 1);
    let mut rows = Vec::with_capacity(entries as usize);
    with_indices!(pos, p => for (row, w) in p.windows(2).enumerate() {
        rows.resize(rows.len() + (w[1].to_usize() - w[0].to_usize()), row as u64);
    });
    canonical::narrow(rows, major)
}

/// The values of a range inside the array.
fn slice(values: &ValueArray, range: std::ops::Range<usize>) -> ValueArray {
    macro_rules! each {
        ($($variant:ident)*) => {
            match values {
                $(ValueArray::$variant(v) => ValueArray::$variant(v[range].to_vec().into()),)*
            }
        };
    }
    each!(Bool I8 I16 I32 I64 U8 U16 U32 U64 F32 F64 C64 C128)
}

fn first_values(values: ValueArray, count: usize) -> ValueArray {
    if with_values!(&values, v => v.len()) == count { values } else { slice(&values, 0..count) }
}
