//! Grids: dense tensors of the reference interpreter, with a value and a stored flag at every
//! coordinate.

use crate::algebra::{DType, Value};
use crate::diag::{Code, Diagnostic, Result};
use crate::format::{DimExpr, Format, LevelKind};
use rustc_hash::FxHashMap;

/// A tensor that can be interpreted: it enumerates its stored elements.
///
/// ```
/// use tamis_ir::{DType, Value};
/// use tamis_ir::interp::{Grid, Operand};
/// /// A vector with one stored element.
/// struct One;
/// impl Operand for One {
///     fn shape(&self) -> &[u64] {
///         &[1000]
///     }
///     fn dtype(&self) -> DType {
///         DType::F64
///     }
///     fn fill(&self) -> Value {
///         Value::F64(0.0)
///     }
///     fn for_each_stored(&self, visit: &mut dyn FnMut(&[u64], Value)) {
///         visit(&[7], Value::F64(1.0));
///     }
/// }
/// assert_eq!(Grid::from_operand(&One).get(&[7]), Some(Value::F64(1.0)));
/// assert_eq!(One.storage_order(), [0]);
/// ```
pub trait Operand {
    /// The size of each dimension.
    fn shape(&self) -> &[u64];
    /// The type of values.
    fn dtype(&self) -> DType;
    /// The value of coordinates that are not stored.
    fn fill(&self) -> Value;
    /// Calls `visit` once for each stored element, with its coordinates and value, in storage
    /// order.
    fn for_each_stored(&self, visit: &mut dyn FnMut(&[u64], Value));
    /// True if it stands for a literal: its type adapts to the types of other operands.
    fn is_literal(&self) -> bool {
        false
    }
    /// The dimensions in storage order, outermost first: entries are stored by their coordinates in
    /// this order.
    fn storage_order(&self) -> Vec<usize> {
        (0..self.shape().len()).collect()
    }
}

/// Grids up to this many cells are arrays, larger ones are hash maps.
const ARRAY_LIMIT: u64 = 1 << 22;

/// A tensor with random access to every coordinate.
///
/// ```
/// use tamis_ir::{Value, interp::Grid};
/// let grid = Grid::from_values(&[2, 2], &[1.0, 0.0, 0.0, 4.0].map(Value::F64));
/// assert_eq!(grid.get(&[1, 1]), Some(Value::F64(4.0)));
/// ```
#[derive(Clone, Debug)]
pub struct Grid {
    shape: Vec<u64>,
    fill: Value,
    cells: CellTable<Value>,
    /// The stored coordinates; `None` if all are stored.
    stored: Option<StoredSet>,
}

/// Coordinates are stored if a written coordinate agrees with them in these dimensions (the write
/// of one element stores its whole dense fiber).
#[derive(Clone, Debug)]
struct StoredSet {
    dims: Vec<usize>,
    written: CellTable<bool>,
}

/// A table with one value for every coordinate of a shape.
#[derive(Clone, Debug)]
enum CellTable<T> {
    /// Row-major, every cell.
    Array(Vec<T>),
    /// Written cells by their row-major offset; the others hold the default.
    Map(FxHashMap<u128, T>, T),
    /// The same for shapes whose row-major offsets overflow.
    Huge(FxHashMap<Vec<u64>, T>, T),
}

impl<T: Copy> CellTable<T> {
    fn new(shape: impl Iterator<Item = u64> + Clone, default: T) -> CellTable<T> {
        match shape.clone().try_fold(1u128, |cells, n| cells.checked_mul(n.into())) {
            Some(cells) if cells <= ARRAY_LIMIT.into() => CellTable::Array(vec![default; cells as usize]),
            Some(_) => CellTable::Map(FxHashMap::default(), default),
            None => CellTable::Huge(FxHashMap::default(), default),
        }
    }

    /// The value at a coordinate, given with the shape.
    fn get(&self, position: impl Iterator<Item = (u64, u64)>) -> T {
        match self {
            CellTable::Array(values) => values[array_offset(position)],
            CellTable::Map(values, default) => values.get(&map_offset(position)).copied().unwrap_or(*default),
            CellTable::Huge(values, default) => {
                values.get(&position.map(|(i, _)| i).collect::<Vec<_>>()).copied().unwrap_or(*default)
            }
        }
    }

    fn set(&mut self, position: impl Iterator<Item = (u64, u64)>, value: T) {
        match self {
            CellTable::Array(values) => values[array_offset(position)] = value,
            CellTable::Map(values, _) => {
                values.insert(map_offset(position), value);
            }
            CellTable::Huge(values, _) => {
                values.insert(position.map(|(i, _)| i).collect(), value);
            }
        }
    }

    fn reset(&mut self, default: T) {
        match self {
            CellTable::Array(values) => values.fill(default),
            CellTable::Map(values, _) => values.clear(),
            CellTable::Huge(values, _) => values.clear(),
        }
    }
}

fn array_offset(position: impl Iterator<Item = (u64, u64)>) -> usize {
    position.fold(0, |offset, (i, n)| offset * n as usize + i as usize)
}

fn map_offset(position: impl Iterator<Item = (u64, u64)>) -> u128 {
    position.fold(0, |offset, (i, n)| offset * u128::from(n) + u128::from(i))
}

impl Grid {
    /// A dense grid from row-major values.
    ///
    /// # Panics
    /// If the number of values differs from the number of cells.
    ///
    /// ```
    /// use tamis_ir::{Value, interp::Grid};
    /// let grid = Grid::from_values(&[3], &[1, 2, 3].map(Value::I64));
    /// assert_eq!(grid.shape(), [3]);
    /// ```
    pub fn from_values(shape: &[u64], values: &[Value]) -> Grid {
        assert_eq!(shape.iter().product::<u64>(), values.len() as u64, "one value per cell");
        let fill = values.first().map_or(Value::F64(0.0), |v| Value::zero(v.dtype()));
        Grid { shape: shape.to_vec(), fill, cells: CellTable::Array(values.to_vec()), stored: None }
    }

    /// A copy of any tensor.
    ///
    /// ```
    /// use tamis_ir::{Value, interp::Grid};
    /// let grid = Grid::from_values(&[3], &[1, 2, 3].map(Value::I64));
    /// assert_eq!(Grid::from_operand(&grid).to_values(), grid.to_values());
    /// ```
    pub fn from_operand(operand: &dyn Operand) -> Grid {
        let dims = (0..operand.shape().len()).collect();
        let mut grid = Grid::empty(operand.shape(), operand.fill(), Some(dims));
        let mut count = 0u64;
        operand.for_each_stored(&mut |coordinates, value| {
            count += 1;
            grid.set(coordinates, value);
        });
        if cell_count(&grid.shape) == Some(count) {
            grid.stored = None;
        }
        grid
    }

    /// A declared tensor: all fill.
    pub(super) fn declared(shape: &[u64], fill: Value, format: &Format) -> Result<Grid> {
        if format.is_all_dense() && cell_count(shape).is_none() {
            return Err(Diagnostic::new(
                Code::E0404,
                format!("a dense tensor of shape {shape:?} is too large to exist"),
            )
            .help("declare it with a sparse format"));
        }
        // Levels below the last sparse level are stored or absent together.
        let last = format.levels().iter().rposition(|l| l.kind != LevelKind::Dense);
        let dims = last.map(|last| {
            let mut dims: Vec<usize> = format.map()[..=last]
                .iter()
                .flat_map(|e| match e {
                    DimExpr::Dim(d) | DimExpr::Div(d, _) | DimExpr::Mod(d, _) => vec![*d],
                    DimExpr::Diff(a, b) => vec![*a, *b],
                })
                .collect();
            dims.sort_unstable();
            dims.dedup();
            dims
        });
        Ok(Grid::empty(shape, fill, dims))
    }

    /// A scalar that counts as stored after its first write.
    pub(super) fn sparse_scalar(fill: Value) -> Grid {
        Grid::empty(&[], fill, Some(Vec::new()))
    }

    fn empty(shape: &[u64], fill: Value, stored_by: Option<Vec<usize>>) -> Grid {
        let cells = CellTable::new(shape.iter().copied(), fill);
        let stored = stored_by.map(|dims| {
            let written = CellTable::new(dims.iter().map(|d| shape[*d]), false);
            StoredSet { dims, written }
        });
        Grid { shape: shape.to_vec(), fill, cells, stored }
    }

    /// The size of each dimension.
    ///
    /// ```
    /// use tamis_ir::{Value, interp::Grid};
    /// let grid = Grid::from_values(&[1, 2], &[1, 2].map(Value::I64));
    /// assert_eq!(grid.shape(), [1, 2]);
    /// ```
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// The type of values.
    ///
    /// ```
    /// use tamis_ir::{DType, Value, interp::Grid};
    /// let grid = Grid::from_values(&[2], &[1.0, 2.0].map(Value::F32));
    /// assert_eq!(grid.dtype(), DType::F32);
    /// ```
    pub fn dtype(&self) -> DType {
        self.fill.dtype()
    }

    /// The value at a coordinate; `None` outside of the shape.
    ///
    /// ```
    /// use tamis_ir::{Value, interp::Grid};
    /// let grid = Grid::from_values(&[2], &[1, 2].map(Value::I64));
    /// assert_eq!((grid.get(&[1]), grid.get(&[2])), (Some(Value::I64(2)), None));
    /// ```
    pub fn get(&self, position: &[u64]) -> Option<Value> {
        let inside = position.len() == self.shape.len() && position.iter().zip(&self.shape).all(|(i, n)| i < n);
        inside.then(|| self.read(position).0)
    }

    /// The value at a coordinate inside the shape, and whether it is stored.
    pub(super) fn read(&self, position: &[u64]) -> (Value, bool) {
        let value = self.cells.get(position.iter().copied().zip(self.shape.iter().copied()));
        let stored = match &self.stored {
            None => true,
            Some(stored) => stored.written.get(stored.dims.iter().map(|d| (position[*d], self.shape[*d]))),
        };
        (value, stored)
    }

    /// Stores a value at a coordinate inside the shape.
    pub(super) fn set(&mut self, position: &[u64], value: Value) {
        self.cells.set(position.iter().copied().zip(self.shape.iter().copied()), value);
        if let Some(stored) = &mut self.stored {
            stored.written.set(stored.dims.iter().map(|d| (position[*d], self.shape[*d])), true);
        }
    }

    /// Resets every coordinate to the fill.
    pub(super) fn reset(&mut self) {
        self.cells.reset(self.fill);
        if let Some(stored) = &mut self.stored {
            stored.written.reset(false);
        }
    }

    /// All values, row-major; `None` if there are too many to list.
    ///
    /// ```
    /// use tamis_ir::{Value, interp::Grid};
    /// let grid = Grid::from_values(&[2], &[1, 2].map(Value::I64));
    /// assert_eq!(grid.to_values(), Some(vec![Value::I64(1), Value::I64(2)]));
    /// ```
    pub fn to_values(&self) -> Option<Vec<Value>> {
        match &self.cells {
            CellTable::Array(values) => Some(values.clone()),
            _ => None,
        }
    }

    /// The coordinates of a row-major offset.
    fn position_of(&self, mut number: u128) -> Vec<u64> {
        let mut position = vec![0; self.shape.len()];
        for (i, n) in position.iter_mut().zip(&self.shape).rev() {
            *i = (number % u128::from(*n)) as u64;
            number /= u128::from(*n);
        }
        position
    }
}

fn cell_count(shape: &[u64]) -> Option<u64> {
    shape.iter().try_fold(1u64, |cells, n| cells.checked_mul(*n)).filter(|cells| *cells <= i64::MAX as u64)
}

impl Operand for Grid {
    fn shape(&self) -> &[u64] {
        &self.shape
    }

    fn dtype(&self) -> DType {
        self.fill.dtype()
    }

    fn fill(&self) -> Value {
        self.fill
    }

    /// Every element that differs from the fill, or every element of a dense grid, in row-major
    /// order.
    fn for_each_stored(&self, visit: &mut dyn FnMut(&[u64], Value)) {
        let differs = |value: &Value| !value.same_number(self.fill);
        match &self.cells {
            CellTable::Array(values) => {
                let mut position = vec![0; self.shape.len()];
                for value in values {
                    if self.stored.is_none() || differs(value) {
                        visit(&position, *value);
                    }
                    for (i, n) in position.iter_mut().zip(&self.shape).rev() {
                        *i += 1;
                        if *i < *n {
                            break;
                        }
                        *i = 0;
                    }
                }
            }
            CellTable::Map(values, _) => {
                let mut sorted: Vec<(u128, Value)> =
                    values.iter().map(|(k, v)| (*k, *v)).filter(|(_, v)| differs(v)).collect();
                sorted.sort_unstable_by_key(|(number, _)| *number);
                sorted.iter().for_each(|(number, value)| visit(&self.position_of(*number), *value));
            }
            CellTable::Huge(values, _) => {
                let mut sorted: Vec<(&Vec<u64>, &Value)> = values.iter().filter(|(_, v)| differs(v)).collect();
                sorted.sort_unstable_by_key(|(position, _)| *position);
                sorted.iter().for_each(|(position, value)| visit(position, **value));
            }
        }
    }
}
