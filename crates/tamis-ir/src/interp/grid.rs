//! Tensors as the interpreter sees them: a value at every coordinate, and whether it is stored.

use crate::algebra::{DType, Value};
use crate::diag::{Code, Diagnostic, Result};
use crate::format::{DimExpr, Format, LevelKind};
use rustc_hash::{FxHashMap, FxHashSet};

/// A tensor that can be interpreted: it lists what it stores.
pub trait Operand {
    /// The size of each dimension.
    fn shape(&self) -> &[u64];
    /// The type of values.
    fn dtype(&self) -> DType;
    /// The value of everything that is not stored.
    fn fill(&self) -> Value;
    /// Calls `visit` with the coordinates and the value of everything stored, each once.
    fn for_each_stored(&self, visit: &mut dyn FnMut(&[u64], Value));
}

/// Grids up to this many cells are arrays, larger ones are maps.
const ARRAY_LIMIT: u64 = 1 << 22;

/// A tensor with random access to every coordinate.
#[derive(Clone, Debug)]
pub struct Grid {
    shape: Vec<u64>,
    fill: Value,
    cells: Cells,
    stored: Stored,
}

#[derive(Clone, Debug)]
enum Cells {
    /// Row-major, every cell.
    Array(Vec<Value>),
    /// Cells that were written; the others hold the fill.
    Map(FxHashMap<Vec<u64>, Value>),
}

/// Which coordinates count as stored.
#[derive(Clone, Debug)]
enum Stored {
    Everything,
    /// Those whose coordinates in these dimensions were written (a whole dense fiber is stored at once).
    Written {
        dims: Vec<usize>,
        keys: FxHashSet<Vec<u64>>,
    },
}

impl Grid {
    /// A dense grid from row-major values.
    ///
    /// # Panics
    /// If there are not as many values as the shape has cells, or none at all and no way to know their type.
    pub fn from_values(shape: &[u64], values: &[Value]) -> Grid {
        assert_eq!(shape.iter().product::<u64>(), values.len() as u64, "one value per cell");
        let fill = values.first().map_or(Value::F64(0.0), |v| Value::zero(v.dtype()));
        Grid { shape: shape.to_vec(), fill, cells: Cells::Array(values.to_vec()), stored: Stored::Everything }
    }

    /// A copy of any tensor.
    pub fn from_operand(operand: &dyn Operand) -> Grid {
        let dims = (0..operand.shape().len()).collect();
        let stored = Stored::Written { dims, keys: FxHashSet::default() };
        let mut grid = Grid::empty(operand.shape(), operand.fill(), stored);
        operand.for_each_stored(&mut |coordinates, value| grid.set(coordinates, value));
        if let (Stored::Written { keys, .. }, Some(cells)) = (&grid.stored, grid.cell_count())
            && keys.len() as u64 == cells
        {
            grid.stored = Stored::Everything;
        }
        grid
    }

    /// A tensor that a program declares: all fill.
    pub(super) fn declared(shape: &[u64], fill: Value, format: &Format) -> Result<Grid> {
        if format.is_all_dense() && cell_count(shape).is_none() {
            return Err(Diagnostic::new(
                Code::E0404,
                format!("a dense tensor of shape {shape:?} is too large to exist"),
            )
            .help("declare it with a sparse format"));
        }
        let stored = if format.is_all_dense() {
            Stored::Everything
        } else {
            // Levels below the last one that is not dense come and go as a whole.
            let last = format.levels().iter().rposition(|l| l.kind != LevelKind::Dense).unwrap_or(0);
            let mut dims: Vec<usize> = format.map()[..=last]
                .iter()
                .flat_map(|e| match e {
                    DimExpr::Dim(d) | DimExpr::Div(d, _) | DimExpr::Mod(d, _) => vec![*d],
                    DimExpr::Diff(a, b) => vec![*a, *b],
                })
                .collect();
            dims.sort_unstable();
            dims.dedup();
            Stored::Written { dims, keys: FxHashSet::default() }
        };
        Ok(Grid::empty(shape, fill, stored))
    }

    fn empty(shape: &[u64], fill: Value, stored: Stored) -> Grid {
        let cells = match cell_count(shape) {
            Some(cells) if cells <= ARRAY_LIMIT => Cells::Array(vec![fill; cells as usize]),
            _ => Cells::Map(FxHashMap::default()),
        };
        Grid { shape: shape.to_vec(), fill, cells, stored }
    }

    /// The size of each dimension.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// The type of values.
    pub fn dtype(&self) -> DType {
        self.fill.dtype()
    }

    fn cell_count(&self) -> Option<u64> {
        cell_count(&self.shape)
    }

    /// The value at a coordinate; `None` outside.
    pub fn get(&self, position: &[u64]) -> Option<Value> {
        let inside = position.len() == self.shape.len() && position.iter().zip(&self.shape).all(|(i, n)| i < n);
        inside.then(|| self.value(position))
    }

    fn offset(&self, position: &[u64]) -> usize {
        position.iter().zip(&self.shape).fold(0, |offset, (i, n)| offset * n + i) as usize
    }

    fn value(&self, position: &[u64]) -> Value {
        match &self.cells {
            Cells::Array(values) => values[self.offset(position)],
            Cells::Map(values) => values.get(position).copied().unwrap_or(self.fill),
        }
    }

    /// The value at a coordinate inside the shape, and whether it is stored.
    pub(super) fn read(&self, position: &[u64]) -> (Value, bool) {
        let stored = match &self.stored {
            Stored::Everything => true,
            Stored::Written { dims, keys } if dims.len() == position.len() => keys.contains(position),
            Stored::Written { dims, keys } => keys.contains(&dims.iter().map(|d| position[*d]).collect::<Vec<_>>()),
        };
        (self.value(position), stored)
    }

    /// Stores a value at a coordinate inside the shape.
    pub(super) fn set(&mut self, position: &[u64], value: Value) {
        let offset = if matches!(self.cells, Cells::Array(_)) { self.offset(position) } else { 0 };
        match &mut self.cells {
            Cells::Array(values) => values[offset] = value,
            Cells::Map(values) => {
                values.insert(position.to_vec(), value);
            }
        }
        if let Stored::Written { dims, keys } = &mut self.stored {
            keys.insert(dims.iter().map(|d| position[*d]).collect());
        }
    }

    /// All fill again.
    pub(super) fn reset(&mut self) {
        match &mut self.cells {
            Cells::Array(values) => values.fill(self.fill),
            Cells::Map(values) => values.clear(),
        }
        if let Stored::Written { keys, .. } = &mut self.stored {
            keys.clear();
        }
    }

    /// All values, row-major; `None` if there are too many to list.
    pub fn to_values(&self) -> Option<Vec<Value>> {
        match &self.cells {
            Cells::Array(values) => Some(values.clone()),
            Cells::Map(_) => None,
        }
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

    /// Everything that differs from the fill, or everything at all for a dense grid, in row-major order.
    fn for_each_stored(&self, visit: &mut dyn FnMut(&[u64], Value)) {
        let dense = matches!(self.stored, Stored::Everything);
        match &self.cells {
            Cells::Array(values) => {
                let mut position = vec![0; self.shape.len()];
                for value in values {
                    if dense || !value.same_number(self.fill) {
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
            Cells::Map(values) => {
                let mut sorted: Vec<(&Vec<u64>, &Value)> =
                    values.iter().filter(|(_, v)| !v.same_number(self.fill)).collect();
                sorted.sort_unstable_by_key(|(position, _)| *position);
                for (position, value) in sorted {
                    visit(position, *value);
                }
            }
        }
    }
}
