//! The tensor type: a format, a shape, one storage per level, values and a fill.

mod compare;
mod display;
mod elements;
mod permute;

use crate::convert::{self, PatternCache, numbers, reorder, words};
use crate::levels::tree::{self, Levels};
use crate::levels::{Level, LevelArrays};
use crate::{Coordinates, ValueArray};
use elements::Elements;
use std::sync::{Arc, OnceLock};
use tamis_ir::format::{Format, Leaf, map};
use tamis_ir::{Code, DType, Diagnostic, Kind, Value, diag::Result};

/// A tensor in some format: immutable, cheap to clone, and safe to share between threads.
///
/// In every format, a tensor *means* a dense grid of numbers: its stored values, and the fill at
/// all other coordinates.
///
/// Widths of positions and coordinates are those of the arrays ([`Tensor::level_arrays`]); a format
/// without explicit widths does not restrict those of [`Tensor::from_parts`].
///
/// ```
/// use tamis_ir::{Format, Value};
/// use tamis_tensor::{Combine, Coordinates, Tensor};
/// let entries = Coordinates {
///     shape: vec![3, 4],
///     columns: vec![vec![2u32, 0, 0].into(), vec![0u32, 3, 0].into()],
///     values: vec![3.0, 2.0, 1.0].into(),
/// };
/// let a = Tensor::from_coordinates(&entries, &Format::csr(), Value::F64(0.0), Combine::Error)?;
/// assert_eq!(a.level_arrays(1).get("pos").unwrap().to_vec(), [0, 2, 2, 3]);
/// assert_eq!(a.get(&[0, 3]), Some(Value::F64(2.0)));
/// assert_eq!(a.get(&[1, 1]), Some(Value::F64(0.0)));
/// assert_eq!(a.summary(), "3x4 f64 csr, 3 stored");
/// # Ok::<(), tamis_ir::Diagnostic>(())
/// ```
#[derive(Clone)]
pub struct Tensor {
    parts: Arc<TensorParts>,
}

/// The integer types that a literal fits, for type inference.
///
/// ```
/// use tamis_ir::Value;
/// use tamis_tensor::{LiteralRange, Tensor};
/// let range = |number: i64| Tensor::literal(Value::I64(number)).literal_range();
/// assert_eq!(range(3), range(100), "both fit every integer type");
/// assert!(matches!(range(300), Some(LiteralRange::Integers(_))) && range(300) != range(3));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LiteralRange {
    /// It is not an integer.
    Any,
    /// A bit for each type of [`DType::ALL`].
    Integers(u32),
}

struct TensorParts {
    format: Format,
    extents: Vec<u64>,
    shape: Vec<u64>,
    fill: Value,
    levels: Levels,
    values: Option<ValueArray>,
    nnz: OnceLock<usize>,
    /// True if it represents a literal, whose type adapts.
    literal: bool,
    /// Conversions of the pattern, shared by all tensors on it.
    pattern_cache: Arc<PatternCache>,
}

/// A pattern below `dense` stores nothing, for any number of entries; this is the maximum number.
const MAX_IMPLIED: usize = 1 << 32;

impl Tensor {
    /// A tensor of consistent components.
    pub(crate) fn new(
        format: Format,
        shape: &[u64],
        fill: Value,
        levels: Levels,
        values: Option<ValueArray>,
    ) -> Result<Tensor> {
        let format = format.without_workspace();
        let extents = format.level_extents(shape)?;
        let cells = extents.iter().try_fold(1u64, |cells, extent| cells.checked_mul(*extent));
        let nnz = if tree::shares(format.levels()) && cells.is_some_and(|cells| cells <= MAX_IMPLIED as u64) {
            // Their number is bounded, and counting them requires a pass over all runs.
            OnceLock::new()
        } else {
            let is_countable = |nnz: &usize| values.is_some() || *nnz <= MAX_IMPLIED || !tree::pads(format.levels());
            let Some(nnz) = tree::stored(&levels).filter(is_countable) else {
                let message = match values {
                    None => "the format makes more coordinates true than can be listed",
                    Some(_) => "the runs of the tensor hold more coordinates than can be counted",
                };
                return Err(Diagnostic::new(Code::E0706, message).help(
                    "store the large dimensions in levels that store only nonzeros, such as `sparse` or `sparse_runs`",
                ));
            };
            // If some stored coordinates are padding, elements are counted lazily.
            if format.is_onto(shape) { OnceLock::from(nnz) } else { OnceLock::new() }
        };
        let shape = shape.to_vec();
        let pattern_cache = Arc::default();
        let parts = TensorParts { format, extents, shape, fill, levels, values, nnz, literal: false, pattern_cache };
        Ok(Tensor { parts: Arc::new(parts) })
    }

    /// A tensor of foreign arrays, zero-copy.
    ///
    /// Every invariant is checked; the diagnostic is of the first violation. `levels` holds the
    /// arrays of each level, outermost first; `values` has one value for each position below the
    /// last level, and is `None` exactly if the leaf is `pattern`.
    ///
    /// ```
    /// use tamis_ir::{Format, Value};
    /// use tamis_tensor::{LevelArrays, Tensor};
    /// let rows = LevelArrays::default();
    /// let columns = LevelArrays::new([("pos", vec![0u32, 2, 2, 3].into()), ("crd", vec![0u32, 3, 0].into())]);
    /// let values = vec![1.0, 2.0, 3.0].into();
    /// let a = Tensor::from_parts(&[3, 4], &Format::csr(), vec![rows, columns], Some(values), Value::F64(0.0))?;
    /// assert_eq!(a.nnz(), 3);
    /// # Ok::<(), tamis_ir::Diagnostic>(())
    /// ```
    pub fn from_parts(
        shape: &[u64],
        format: &Format,
        levels: Vec<LevelArrays>,
        values: Option<ValueArray>,
        fill: Value,
    ) -> Result<Tensor> {
        let extents = crate::construct::check_shape(shape, format)?;
        let levels = tree::from_arrays(format.levels(), &extents, levels)?;
        let dtype = match (&values, format.leaf()) {
            (Some(values), Leaf::Element(_)) => {
                let count = tree::positions(&levels);
                if values.len() != count {
                    let message =
                        format!("there are {} values for {count} positions below the last level", values.len());
                    return Err(Diagnostic::new(Code::E0701, message).help(format!("give {count} values")));
                }
                crate::construct::check_booleans(values)?;
                values.dtype()
            }
            (None, Leaf::Pattern) => DType::Bool,
            (Some(_), Leaf::Pattern) => {
                return Err(Diagnostic::new(Code::E0701, "a pattern has no value array")
                    .help("leave the values out, or write the leaf `element(False)`"));
            }
            (None, Leaf::Element(_)) => {
                return Err(Diagnostic::new(Code::E0701, "the values are missing")
                    .help("give the values, or write the leaf `pattern`"));
            }
        };
        let fill = crate::construct::check_fill(format.leaf(), dtype, fill)?;
        let tensor = Tensor::new(format.clone(), shape, fill, levels, values)?;
        if let (Some(values), false) = (tensor.values(), format.is_onto(shape)) {
            tensor.elements().check_rest(values, fill)?;
        }
        Ok(tensor)
    }

    /// A tensor of arrays that a kernel wrote, which may be longer than needed: each is truncated
    /// to the length that the levels above determine, and unused memory is freed. Nothing is
    /// copied.
    ///
    /// Every invariant is checked, as by [`Tensor::from_parts`].
    ///
    /// ```
    /// use tamis_ir::{Format, Value};
    /// use tamis_tensor::{LevelArrays, Tensor};
    /// let list = LevelArrays::new([("pos", vec![0u32, 2, 9, 9].into()), ("crd", vec![1u32, 3, 7, 7].into())]);
    /// let values = vec![1.0, 2.0, 0.0, 0.0].into();
    /// let x = Tensor::from_longer_parts(&[4], &Format::parse("sparse", 1)?, vec![list], Some(values), Value::F64(0.0))?;
    /// assert_eq!((x.nnz(), x.get(&[3])), (2, Some(Value::F64(2.0))));
    /// # Ok::<(), tamis_ir::Diagnostic>(())
    /// ```
    pub fn from_longer_parts(
        shape: &[u64],
        format: &Format,
        levels: Vec<LevelArrays>,
        values: Option<ValueArray>,
        fill: Value,
    ) -> Result<Tensor> {
        let (levels, values) = cut(shape, format, levels, values)?;
        let arrays = levels.iter().map(|level| level.arrays()).collect();
        Tensor::from_parts(shape, format, arrays, values, fill)
    }

    /// [`Tensor::from_longer_parts`] with checks of the lengths of arrays only.
    ///
    /// # Safety
    /// Every invariant of every level holds up to the truncated lengths, booleans are 0 or 1,
    /// `values` exist unless the leaf is a pattern, and `fill` is of their type: compiled code
    /// relies on that.
    ///
    /// ```
    /// use tamis_ir::{Format, Value};
    /// use tamis_tensor::{LevelArrays, Tensor};
    /// let (levels, values) = (vec![LevelArrays::default()], Some(vec![1.0, 2.0, 0.0].into()));
    /// let (dense, fill) = (Format::dense(1), Value::F64(0.0));
    /// // SAFETY: a dense level has no arrays, and the values are of the type of the fill.
    /// let x = unsafe { Tensor::from_longer_parts_unchecked(&[2], &dense, levels, values, fill)? };
    /// assert_eq!(x.values().map(|values| values.len()), Some(2));
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub unsafe fn from_longer_parts_unchecked(
        shape: &[u64],
        format: &Format,
        levels: Vec<LevelArrays>,
        values: Option<ValueArray>,
        fill: Value,
    ) -> Result<Tensor> {
        let (levels, values) = cut(shape, format, levels, values)?;
        Tensor::new(format.clone(), shape, fill, levels, values)
    }

    /// The size of each dimension.
    ///
    /// ```
    /// # use {tamis_ir::{Format, Value}, tamis_tensor::Tensor};
    /// let values = vec![1.0, 0.0, 0.0, 4.0].into();
    /// let a = Tensor::from_dense(&[2, 2], values, &Format::csr(), Value::F64(0.0))?;
    /// assert_eq!(a.shape(), [2, 2]);
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn shape(&self) -> &[u64] {
        &self.parts.shape
    }

    /// The number of dimensions.
    ///
    /// ```
    /// # use {tamis_ir::{Format, Value}, tamis_tensor::Tensor};
    /// let values = vec![1.0, 0.0, 0.0, 4.0].into();
    /// let a = Tensor::from_dense(&[2, 2], values, &Format::csr(), Value::F64(0.0))?;
    /// assert_eq!(a.rank(), 2);
    /// assert_eq!(Tensor::scalar(Value::F64(1.0)).rank(), 0);
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn rank(&self) -> usize {
        self.parts.shape.len()
    }

    /// The type of the values; `bool` for a pattern.
    ///
    /// ```
    /// # use tamis_ir::Format;
    /// use tamis_ir::{DType, Value};
    /// # use tamis_tensor::Tensor;
    /// let x = Tensor::from_dense(&[2], vec![3i32, 4].into(), &Format::dense(1), Value::I32(0))?;
    /// assert_eq!(x.dtype(), DType::I32);
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn dtype(&self) -> DType {
        self.parts.fill.dtype()
    }

    /// The value of every coordinate that is not stored.
    ///
    /// ```
    /// # use {tamis_ir::{Format, Value}, tamis_tensor::Tensor};
    /// let distances = vec![0.0, f64::INFINITY, 2.0].into();
    /// let x = Tensor::from_dense(&[3], distances, &Format::coo(1), Value::F64(f64::INFINITY))?;
    /// assert_eq!((x.nnz(), x.fill()), (2, Value::F64(f64::INFINITY)));
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn fill(&self) -> Value {
        self.parts.fill
    }

    /// The storage format.
    ///
    /// ```
    /// # use {tamis_ir::{Format, Value}, tamis_tensor::Tensor};
    /// let values = vec![1.0, 0.0, 0.0, 4.0].into();
    /// let a = Tensor::from_dense(&[2, 2], values, &Format::csr(), Value::F64(0.0))?;
    /// assert_eq!(a.format(), &Format::csr());
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn format(&self) -> &Format {
        &self.parts.format
    }

    /// The size of each level, outermost first: that of its dimension, unless the format's map
    /// splits or combines dimensions.
    ///
    /// ```
    /// # use {tamis_ir::{Format, Value}, tamis_tensor::Tensor};
    /// let blocked = Format::parse("bsr(2,2)", 2)?;
    /// let a = Tensor::from_dense(&[4, 6], vec![1.0; 24].into(), &blocked, Value::F64(0.0))?;
    /// assert_eq!(a.extents(), [2, 3, 2, 2]);
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn extents(&self) -> &[u64] {
        &self.parts.extents
    }

    /// The number of stored entries (nnz), including those that equal the fill. A `dense` level
    /// stores every coordinate, so for an all-dense tensor this is the number of cells.
    ///
    /// ```
    /// # use {tamis_ir::{Format, Value}, tamis_tensor::Tensor};
    /// let values = vec![1.0, 0.0, 0.0, 4.0].into();
    /// let a = Tensor::from_dense(&[2, 2], values, &Format::csr(), Value::F64(0.0))?;
    /// assert_eq!(a.nnz(), 2);
    /// assert_eq!(a.convert(&Format::dense(2))?.nnz(), 4);
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn nnz(&self) -> usize {
        *self.parts.nnz.get_or_init(|| {
            let onto = self.format().is_onto(self.shape());
            let stored = if onto { tree::stored(self.levels()) } else { None };
            stored.unwrap_or_else(|| self.elements().count())
        })
    }

    fn elements(&self) -> Elements<'_> {
        Elements::new(self.format(), self.shape(), self.extents(), self.levels())
    }

    /// Bytes of all arrays.
    ///
    /// ```
    /// # use {tamis_ir::{Format, Value}, tamis_tensor::Tensor};
    /// let values = vec![1.0, 0.0, 0.0, 4.0].into();
    /// let a = Tensor::from_dense(&[2, 2], values, &Format::csr(), Value::F64(0.0))?;
    /// assert_eq!(a.nbytes(), 3 * 4 + 2 * 4 + 2 * 8, "`pos`, `crd` and the values");
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn nbytes(&self) -> usize {
        let levels: usize = self.parts.levels.iter().map(|level| level.arrays().nbytes()).sum();
        levels + self.parts.values.as_ref().map_or(0, |values| values.nbytes())
    }

    /// The values, one for each position below the last level; `None` for a pattern.
    ///
    /// ```
    /// # use {tamis_ir::{Format, Value}, tamis_tensor::Tensor};
    /// let values = vec![1.0, 0.0, 0.0, 4.0].into();
    /// let a = Tensor::from_dense(&[2, 2], values, &Format::csr(), Value::F64(0.0))?;
    /// assert_eq!(a.values(), Some(&vec![1.0, 4.0].into()));
    /// assert_eq!(a.pattern()?.values(), None);
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn values(&self) -> Option<&ValueArray> {
        self.parts.values.as_ref()
    }

    /// The values, as the only owner if the tensor has no clone; none for patterns.
    ///
    /// ```
    /// # use {tamis_ir::{Format, Value}, tamis_tensor::Tensor};
    /// let x = Tensor::from_dense(&[2], vec![1.5, 4.0].into(), &Format::dense(1), Value::F64(0.0))?;
    /// assert_eq!(x.into_values(), Some(vec![1.5, 4.0].into()));
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn into_values(self) -> Option<ValueArray> {
        match Arc::try_unwrap(self.parts) {
            Ok(parts) => parts.values,
            Err(shared) => shared.values.clone(),
        }
    }

    /// The levels, outermost first.
    ///
    /// ```
    /// # use {tamis_ir::{Format, Value}, tamis_tensor::Tensor};
    /// let values = vec![1.0, 0.0, 0.0, 4.0].into();
    /// let a = Tensor::from_dense(&[2, 2], values, &Format::csr(), Value::F64(0.0))?;
    /// assert_eq!(a.levels().len(), 2);
    /// assert_eq!(a.levels()[1].arrays().arrays.len(), 2);
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn levels(&self) -> &[Arc<dyn Level>] {
        &self.parts.levels
    }

    /// The arrays of level `k` (the outermost is 0), shared; no arrays if there is no such level.
    ///
    /// ```
    /// # use {tamis_ir::{Format, Value}, tamis_tensor::Tensor};
    /// let values = vec![1.0, 0.0, 0.0, 4.0].into();
    /// let a = Tensor::from_dense(&[2, 2], values, &Format::csr(), Value::F64(0.0))?;
    /// let columns = a.level_arrays(1);
    /// assert_eq!(columns.get("pos").unwrap().to_vec(), [0, 1, 2]);
    /// assert_eq!(columns.get("crd").unwrap().to_vec(), [0, 1]);
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn level_arrays(&self, k: usize) -> LevelArrays {
        self.parts.levels.get(k).map(|level| level.arrays()).unwrap_or_default()
    }

    /// The number of coordinates, stored or not; `None` when it does not fit 64 bits.
    ///
    /// ```
    /// # use {tamis_ir::{Format, Value}, tamis_tensor::Tensor};
    /// let values = vec![1.0, 0.0, 0.0, 4.0].into();
    /// let a = Tensor::from_dense(&[2, 2], values, &Format::csr(), Value::F64(0.0))?;
    /// assert_eq!((a.cell_count(), a.nnz()), (Some(4), 2));
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn cell_count(&self) -> Option<u64> {
        if self.shape().contains(&0) {
            return Some(0);
        }
        self.shape().iter().try_fold(1u64, |count, n| count.checked_mul(*n))
    }

    /// The same tensor in another format; arrays are shared if the layouts agree.
    ///
    /// The fill stays. A target with another fill in its leaf is rejected (E0709), unless every
    /// coordinate is stored, so that the fill is irrelevant. Entries that equal the fill stay
    /// stored, except those of formats that store every coordinate (`dense`). Converting to
    /// `pattern` keeps the nonzero entries, as booleans; the values of a converted `pattern` are
    /// booleans, too.
    ///
    /// ```
    /// use tamis_ir::{Format, Value};
    /// use tamis_tensor::Tensor;
    /// let a = Tensor::from_dense(&[2, 2], vec![0.0, 5.0, 0.0, 7.0].into(), &Format::csr(), Value::F64(0.0))?;
    /// let b = a.convert(&Format::csc())?;
    /// assert_eq!(b.level_arrays(1).get("pos").unwrap().to_vec(), [0, 0, 2]);
    /// assert!(a.same_values(&b));
    /// # Ok::<(), tamis_ir::Diagnostic>(())
    /// ```
    pub fn convert(&self, format: &Format) -> Result<Tensor> {
        convert::convert(self, format)
    }

    /// The stored entries, sorted by their coordinates in the order of the dimensions (row-major).
    ///
    /// ```
    /// # use {tamis_ir::{Format, Value}, tamis_tensor::Tensor};
    /// let values = vec![1.0, 0.0, 0.0, 4.0].into();
    /// let a = Tensor::from_dense(&[2, 2], values, &Format::csr(), Value::F64(0.0))?;
    /// let entries = a.to_coordinates();
    /// assert_eq!(entries.columns[1].to_vec(), [0, 1]);
    /// assert_eq!(entries.values, vec![1.0, 4.0].into());
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn to_coordinates(&self) -> Coordinates {
        self.try_to_coordinates().unwrap_or_else(|d| {
            // The entries are in memory already; a failure to allocate a second copy is fatal, as
            // elsewhere in Rust.
            panic!("{d}")
        })
    }

    /// [`Tensor::to_coordinates`], with a diagnostic if memory is exhausted.
    ///
    /// ```
    /// # use {tamis_ir::{Format, Value}, tamis_tensor::Tensor};
    /// let values = vec![1.0, 0.0, 0.0, 4.0].into();
    /// let a = Tensor::from_dense(&[2, 2], values, &Format::csr(), Value::F64(0.0))?;
    /// assert_eq!(a.try_to_coordinates()?.len(), a.nnz());
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn try_to_coordinates(&self) -> Result<Coordinates> {
        let entries = if tree::pads(self.format().levels()) {
            convert::stored_entries(self)?
        } else {
            convert::entries(self, self.fill())?
        };
        let entries = reorder::reorder(entries, self.shape(), &convert::axes::whole(self.rank()))?;
        let values = match &entries.values {
            Some(values) => values.clone(),
            None => words::repeat(Value::Bool(true), entries.len)?,
        };
        Ok(Coordinates { shape: self.shape().to_vec(), columns: entries.columns()?, values })
    }

    /// Every value, in row-major order.
    ///
    /// ```
    /// # use {tamis_ir::{Format, Value}, tamis_tensor::Tensor};
    /// let values = vec![1.0, 0.0, 0.0, 4.0].into();
    /// let a = Tensor::from_dense(&[2, 2], values, &Format::csr(), Value::F64(0.0))?;
    /// assert_eq!(a.to_dense()?, vec![1.0, 0.0, 0.0, 4.0].into());
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn to_dense(&self) -> Result<ValueArray> {
        let dense = self.convert(&Format::dense(self.rank()))?;
        dense
            .values()
            .cloned()
            .ok_or_else(|| Diagnostic::new(Code::E0701, "a dense tensor has values").help("report this"))
    }

    /// The value at these coordinates: the stored one, or the fill; `None` out of bounds, or for a
    /// wrong number of coordinates.
    ///
    /// ```
    /// # use {tamis_ir::{Format, Value}, tamis_tensor::Tensor};
    /// let values = vec![1.0, 0.0, 0.0, 4.0].into();
    /// let a = Tensor::from_dense(&[2, 2], values, &Format::csr(), Value::F64(0.0))?;
    /// assert_eq!(a.get(&[1, 1]), Some(Value::F64(4.0)));
    /// assert_eq!(a.get(&[0, 1]), Some(Value::F64(0.0)));
    /// assert_eq!(a.get(&[2, 0]), None);
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn get(&self, coordinates: &[u64]) -> Option<Value> {
        if coordinates.len() != self.rank() || coordinates.iter().zip(self.shape()).any(|(c, n)| c >= n) {
            return None;
        }
        let stored = self.format().map().iter().map(|e| e.store(self.shape(), coordinates));
        let position = tree::locate(self.levels(), stored);
        Some(match (position, self.values()) {
            (None, _) => self.fill(),
            (Some(position), Some(values)) => values.get(position),
            (Some(_), None) => Value::Bool(true),
        })
    }

    /// Calls `visit` with the coordinates (in the order of the dimensions) and the value of every
    /// stored entry, in storage order.
    ///
    /// ```
    /// # use {tamis_ir::{Format, Value}, tamis_tensor::Tensor};
    /// let values = vec![1.0, 0.0, 0.0, 4.0].into();
    /// let a = Tensor::from_dense(&[2, 2], values, &Format::csr(), Value::F64(0.0))?;
    /// let mut entries = Vec::new();
    /// a.for_each(&mut |coordinates, value| entries.push((coordinates.to_vec(), value)));
    /// assert_eq!(entries[1], (vec![1, 1], Value::F64(4.0)));
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn for_each(&self, visit: &mut dyn FnMut(&[u64], Value)) {
        self.for_each_while(&mut |coordinates, value| {
            visit(coordinates, value);
            true
        });
    }

    /// [`Tensor::for_each`] until `visit` is false: the cost is proportional to the visited
    /// entries.
    ///
    /// ```
    /// # use {tamis_ir::{Format, Value}, tamis_tensor::Tensor};
    /// let values = vec![1.0, 0.0, 0.0, 4.0].into();
    /// let a = Tensor::from_dense(&[2, 2], values, &Format::csr(), Value::F64(0.0))?;
    /// let mut first = None;
    /// a.for_each_while(&mut |coordinates, _| {
    ///     first = Some(coordinates.to_vec());
    ///     false
    /// });
    /// assert_eq!(first, Some(vec![0, 0]));
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn for_each_while(&self, visit: &mut dyn FnMut(&[u64], Value) -> bool) {
        let mut coordinates = vec![0; self.rank()];
        tree::visit_while(self.levels(), &mut |stored, position| {
            !map::restore(self.format().map(), self.shape(), stored, &mut coordinates)
                || visit(&coordinates, self.values().map_or(Value::Bool(true), |values| values.get(position)))
        });
    }

    /// The same tensor with values (and fill) of another type, cast as [`Value::cast`] does.
    ///
    /// The levels are shared. A pattern that is cast to another type than `bool` gets values.
    ///
    /// ```
    /// # use tamis_ir::{DType, Format, Value};
    /// # use tamis_tensor::Tensor;
    /// let x = Tensor::from_dense(&[2], vec![1.5, 4.0].into(), &Format::dense(1), 0.0.into())?;
    /// assert_eq!(x.cast(DType::I64).get(&[0]), Some(Value::I64(1)));
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn cast(&self, dtype: DType) -> Tensor {
        if dtype == self.dtype() {
            return self.clone();
        }
        let fill = self.fill().cast(dtype);
        let values = match self.values() {
            Some(values) => values.to_dtype(dtype),
            None => {
                convert::values_of_pattern(self).map(|values| values.to_dtype(dtype)).unwrap_or_else(|d| panic!("{d}"))
            }
        };
        let written = matches!(self.format().leaf(), Leaf::Element(Some(_)));
        let leaf = Leaf::Element(Some(fill).filter(|fill| written && fill.is_truthy()));
        self.holding(leaf, values, fill)
    }

    /// The same coordinates with other values.
    fn holding(&self, leaf: Leaf, values: ValueArray, fill: Value) -> Tensor {
        self.on_pattern(leaf, Some(values), fill, Arc::default())
    }

    /// [`Tensor::holding`], for parts that fit each other.
    pub(crate) fn with_leaf_values(&self, leaf: Leaf, values: ValueArray, fill: Value) -> Tensor {
        self.holding(leaf, values, fill)
    }

    /// The conversions of the pattern.
    pub(crate) fn pattern_cache(&self) -> &Arc<PatternCache> {
        &self.parts.pattern_cache
    }

    fn on_pattern(&self, leaf: Leaf, values: Option<ValueArray>, fill: Value, cache: Arc<PatternCache>) -> Tensor {
        let parts = &self.parts;
        Tensor {
            parts: Arc::new(TensorParts {
                format: parts.format.clone().with_leaf(leaf),
                extents: parts.extents.clone(),
                shape: parts.shape.clone(),
                fill,
                levels: parts.levels.clone(),
                values,
                nnz: parts.nnz.clone(),
                literal: false,
                pattern_cache: cache,
            }),
        }
    }

    /// A tensor of rank 0 that represents a literal: its type is weak, as that of Python's numbers
    /// is in NumPy. It adapts to the types of other operands, within its kind: with `f32` it
    /// computes in `f32`, with `i32` a float computes in `f64`.
    ///
    /// ```
    /// use tamis_ir::Value;
    /// use tamis_tensor::{LiteralRange, Tensor};
    /// let three = Tensor::literal(Value::F64(3.0));
    /// assert_eq!(three.literal_range(), Some(LiteralRange::Any));
    /// assert_eq!(Tensor::scalar(Value::F64(3.0)).literal_range(), None);
    /// ```
    pub fn literal(value: Value) -> Tensor {
        let mut tensor = Tensor::scalar(value);
        if let Some(parts) = Arc::get_mut(&mut tensor.parts) {
            // Truth values have one type.
            parts.literal = value.dtype() != DType::Bool;
        }
        tensor
    }

    /// The integer types that a literal fits; `None` if the tensor is not a literal. Two literals
    /// of one type and range are interchangeable in type inference.
    ///
    /// ```
    /// # use tamis_ir::Value;
    /// # use tamis_tensor::Tensor;
    /// assert!(Tensor::literal(Value::I64(3)).literal_range().is_some());
    /// assert!(Tensor::scalar(Value::I64(3)).literal_range().is_none());
    /// ```
    pub fn literal_range(&self) -> Option<LiteralRange> {
        if !self.parts.literal {
            return None;
        }
        let value = self.get(&[])?;
        if value.dtype().kind() != Kind::Int {
            return Some(LiteralRange::Any);
        }
        let fits = DType::ALL.into_iter().enumerate();
        let fits = fits.filter(|(_, dtype)| dtype.kind() == Kind::Int && value.cast_exact(*dtype).is_some());
        Some(LiteralRange::Integers(fits.fold(0, |set, (k, _)| set | 1 << k)))
    }

    /// A tensor with the same pattern, these values and another fill; the levels are shared.
    ///
    /// ```
    /// use tamis_ir::{Format, Value};
    /// use tamis_tensor::Tensor;
    /// let a = Tensor::from_dense(&[2, 2], vec![1.0, 0.0, 0.0, 4.0].into(), &Format::csr(), Value::F64(0.0))?;
    /// let b = a.with_values(vec![10i64, 40].into(), Value::I64(7))?;
    /// assert_eq!((b.get(&[1, 1]), b.get(&[0, 1])), (Some(Value::I64(40)), Some(Value::I64(7))));
    /// # Ok::<(), tamis_ir::Diagnostic>(())
    /// ```
    pub fn with_values(&self, values: ValueArray, fill: Value) -> Result<Tensor> {
        let parts = &self.parts;
        let count = tree::positions(&parts.levels);
        if values.len() != count {
            let message = format!("there are {} values for {count} positions below the last level", values.len());
            return Err(Diagnostic::new(Code::E0701, message).help(format!("give {count} values")));
        }
        crate::construct::check_booleans(&values)?;
        let leaf = Leaf::Element(None);
        let fill = crate::construct::check_fill(leaf, values.dtype(), fill)?;
        // Tensors with the same coordinates share the conversions of these.
        let tensor = self.on_pattern(leaf, Some(values), fill, self.parts.pattern_cache.clone());
        let onto = tensor.format().is_onto(self.shape());
        if let (Some(values), false) = (tensor.values(), onto) {
            tensor.elements().check_rest(values, fill)?;
        }
        Ok(tensor)
    }

    /// The sparsity pattern: true where an element is stored, false elsewhere. It shares the levels; nothing is copied, unless
    /// the format stores more positions than the tensor has elements, as blocks beyond the edge do.
    ///
    /// ```
    /// use tamis_ir::{Format, Value};
    /// use tamis_tensor::Tensor;
    /// let a = Tensor::from_dense(&[2, 2], vec![1.0, 0.0, 0.0, 4.0].into(), &Format::csr(), Value::F64(0.0))?;
    /// let pattern = a.pattern()?;
    /// assert_eq!((pattern.get(&[1, 1]), pattern.get(&[0, 1])), (Some(Value::Bool(true)), Some(Value::Bool(false))));
    /// # Ok::<(), tamis_ir::Diagnostic>(())
    /// ```
    pub fn pattern(&self) -> Result<Tensor> {
        if self.values().is_none() {
            return Ok(self.clone());
        }
        if !self.format().is_onto(self.shape()) {
            let mut elements = self.try_to_coordinates()?;
            elements.values = vec![true; elements.values.len()].into();
            let format = self.format().clone().with_leaf(Leaf::Element(None));
            return Tensor::from_coordinates(&elements, &format, Value::Bool(false), crate::Combine::Error);
        }
        let cache = self.parts.pattern_cache.clone();
        Ok(self.on_pattern(Leaf::Pattern, None, Value::Bool(false), cache))
    }

    /// True if both have the same shape and format, apart from the leaf, and store the same coordinates. Shared arrays are
    /// recognised without a look at them.
    ///
    /// ```
    /// # use {tamis_ir::{Format, Value}, tamis_tensor::Tensor};
    /// let values = vec![1.0, 0.0, 0.0, 4.0].into();
    /// let a = Tensor::from_dense(&[2, 2], values, &Format::csr(), Value::F64(0.0))?;
    /// let b = a.with_values(vec![7i64, 8].into(), Value::I64(0))?;
    /// assert!(a.same_pattern(&b) && !a.same_values(&b));
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn same_pattern(&self, other: &Tensor) -> bool {
        let levels = |t: &Tensor| t.format().clone().with_leaf(Leaf::Element(None));
        let same = |(a, b): (&Arc<dyn Level>, &Arc<dyn Level>)| Arc::ptr_eq(a, b) || a.arrays() == b.arrays();
        self.shape() == other.shape()
            && levels(self) == levels(other)
            && self.levels().len() == other.levels().len()
            && self.levels().iter().zip(other.levels()).all(same)
    }

    /// True if both have the same shape and equal numbers at every coordinate, for any formats and
    /// value types: `1`, `1.0` and `True` are equal, zeros of either sign are, and all NaNs are.
    ///
    /// ```
    /// # use {tamis_ir::{Format, Value}, tamis_tensor::Tensor};
    /// let values = vec![1.0, 0.0, 0.0, 4.0].into();
    /// let a = Tensor::from_dense(&[2, 2], values, &Format::csr(), Value::F64(0.0))?;
    /// assert!(a.same_values(&a.convert(&Format::coo(2))?));
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn same_values(&self, other: &Tensor) -> bool {
        match compare::first_difference(self, other, &numbers::same_across_types) {
            Ok(difference) => self.shape() == other.shape() && difference.is_none(),
            // As for `to_coordinates`: both are in memory already, and a failure to allocate is
            // fatal.
            Err(d) => panic!("{d}"),
        }
    }

    /// The first coordinates, in row-major order, at which two tensors of one shape have values
    /// that are not the `same`, with both values. Neither is densified, unless the other one is
    /// dense. Tensors of different shapes have no coordinates in common, and so no difference.
    ///
    /// ```
    /// use tamis_ir::{Format, Value};
    /// use tamis_tensor::Tensor;
    /// let a = Tensor::from_dense(&[3], vec![1.0, 0.0, 2.0].into(), &Format::dense(1), Value::F64(0.0))?;
    /// let b = Tensor::from_dense(&[3], vec![1.0, 0.0, 5.0].into(), &Format::parse("sparse", 1)?, Value::F64(0.0))?;
    /// let difference = a.first_difference(&b, &|x, y| x == y)?;
    /// assert_eq!(difference, Some((vec![2], Value::F64(2.0), Value::F64(5.0))));
    /// # Ok::<(), tamis_ir::Diagnostic>(())
    /// ```
    pub fn first_difference(
        &self,
        other: &Tensor,
        same: &dyn Fn(Value, Value) -> bool,
    ) -> Result<Option<(Vec<u64>, Value, Value)>> {
        compare::first_difference(self, other, same)
    }
}

/// Truncates arrays and values to their final lengths.
fn cut(
    shape: &[u64],
    format: &Format,
    levels: Vec<LevelArrays>,
    values: Option<ValueArray>,
) -> Result<(Levels, Option<ValueArray>)> {
    let extents = crate::construct::check_shape(shape, format)?;
    if levels.len() != format.levels().len() {
        let message =
            format!("arrays are given for {} levels, but the format has {}", levels.len(), format.levels().len());
        return Err(Diagnostic::new(Code::E0701, message).help("give the arrays of each level, outermost first"));
    }
    let levels = tree::finish(format.levels(), &extents, levels)?;
    let count = tree::positions(&levels);
    match values {
        Some(values) if values.len() < count => {
            let message = format!("there are {} values for {count} positions below the last level", values.len());
            Err(Diagnostic::new(Code::E0701, message).help(format!("give {count} values")))
        }
        values => Ok((levels, values.map(|values| values.truncated(count)))),
    }
}
