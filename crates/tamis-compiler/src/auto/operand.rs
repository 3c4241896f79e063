//! Operand statistics: sizes, format, and nnz per level, as the cost model sees them.

use tamis_ir::format::{Format, Leaf, LevelKind, LevelSpec};
use tamis_ir::{DType, Value};
use tamis_tensor::{Tensor, levels::tree};

/// The statistics of a tensor.
///
/// ```
/// use tamis_compiler::auto::OperandStatistics;
/// use tamis_ir::{DType, Format, Value};
/// let zero = Value::F64(0.0);
/// let a = OperandStatistics::assumed(Format::csr(), DType::F64, zero, &[1000, 1000], 0.01);
/// assert_eq!((a.entries, a.prefixes[0]), (10_000.0, 1000.0));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct OperandStatistics {
    /// Its format.
    pub format: Format,
    /// Its value type.
    pub dtype: DType,
    /// Its fill value.
    pub fill: Value,
    /// Its shape.
    pub shape: Vec<f64>,
    /// Its nnz.
    pub entries: f64,
    /// For each level, the number of positions: distinct coordinates of this level and all outer
    /// ones.
    pub prefixes: Vec<f64>,
    /// True if the statistics were measured rather than assumed.
    pub measured: bool,
}

impl OperandStatistics {
    /// The statistics of a given tensor.
    ///
    /// ```
    /// use tamis_compiler::auto::OperandStatistics;
    /// # use tamis_ir::{Format, Value};
    /// # use tamis_tensor::Tensor;
    /// let values = vec![1.0, 0.0, 0.0, 4.0].into();
    /// let a = Tensor::from_dense(&[2, 2], values, &Format::csr(), Value::F64(0.0))?;
    /// let statistics = OperandStatistics::of(&a);
    /// assert!(statistics.entries == 2.0 && statistics.measured);
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn of(tensor: &Tensor) -> OperandStatistics {
        let levels = tensor.levels();
        let shape: Vec<f64> = tensor.shape().iter().map(|n| *n as f64).collect();
        let entries = if tensor.format().is_all_dense() { shape.iter().product() } else { tensor.nnz() as f64 };
        // For non-unique levels, positions count duplicates.
        let repeats = tensor.format().levels().iter().position(|level| level.nonunique);
        let mut prefixes: Vec<f64> = (1..=levels.len()).map(|k| tree::positions(&levels[..k]) as f64).collect();
        if let Some(first) = repeats {
            let mut cells = 1.0;
            for (k, size) in tensor.extents().iter().enumerate() {
                cells *= *size as f64;
                if k >= first {
                    prefixes[k] = prefixes[k].min(super::model::distinct(cells, entries));
                }
            }
        }
        OperandStatistics {
            format: tensor.format().clone(),
            dtype: tensor.dtype(),
            fill: tensor.fill(),
            shape,
            entries,
            prefixes,
            measured: true,
        }
    }

    /// Assumed statistics of a tensor with known shape and format, at a given density.
    ///
    /// ```
    /// use tamis_compiler::auto::OperandStatistics;
    /// use tamis_ir::{DType, Format, Value};
    /// let zero = Value::F64(0.0);
    /// let a = OperandStatistics::assumed(Format::csr(), DType::F64, zero, &[1000, 1000], 0.01);
    /// assert!(a.entries == 10_000.0 && !a.measured);
    /// ```
    pub fn assumed(format: Format, dtype: DType, fill: Value, shape: &[u64], density: f64) -> OperandStatistics {
        let shape: Vec<f64> = shape.iter().map(|n| *n as f64).collect();
        let cells: f64 = shape.iter().product();
        let entries = if format.is_all_dense() { cells } else { (cells * density).max(1.0).min(cells) };
        let mut operand =
            OperandStatistics { format, dtype, fill, shape, entries, prefixes: Vec::new(), measured: false };
        operand.spread();
        operand
    }

    /// The statistics of a diagonal matrix.
    ///
    /// ```
    /// use tamis_compiler::auto::OperandStatistics;
    /// assert_eq!(OperandStatistics::diagonal(vec![30.0, 20.0]).entries, 20.0);
    /// ```
    pub fn diagonal(shape: Vec<f64>) -> OperandStatistics {
        let entries = shape.iter().copied().fold(f64::INFINITY, f64::min);
        let prefixes = vec![shape.first().copied().unwrap_or(1.0), entries];
        let (dtype, fill) = (DType::Bool, Value::Bool(false));
        OperandStatistics { format: Format::csr(), dtype, fill, shape, entries, prefixes, measured: true }
    }

    /// Estimates positions for uniformly distributed entries.
    ///
    /// ```
    /// use tamis_compiler::auto::OperandStatistics;
    /// use tamis_ir::Format;
    /// let mut a = OperandStatistics::diagonal(vec![30.0, 30.0]);
    /// a.format = Format::dense(2);
    /// a.spread();
    /// assert_eq!(a.prefixes, [30.0, 900.0]);
    /// ```
    pub fn spread(&mut self) {
        let order = self.order();
        let (mut cells, mut above) = (1.0, 1.0);
        self.prefixes.clear();
        for (k, dim) in order.iter().enumerate() {
            let n = self.shape[*dim];
            cells *= n;
            let dense = self.format.levels().get(k).is_some_and(|level| level.kind == LevelKind::Dense);
            above = if dense { above * n } else { super::model::distinct(cells, self.entries).min(above * n) };
            self.prefixes.push(above);
        }
    }

    /// The dimensions in storage order; a divided dimension counts at its first level.
    ///
    /// ```
    /// use tamis_compiler::auto::OperandStatistics;
    /// use tamis_ir::{DType, Format, Value};
    /// let zero = Value::F64(0.0);
    /// let a = OperandStatistics::assumed(Format::csc(), DType::F64, zero, &[9, 9], 0.1);
    /// assert_eq!(a.order(), [1, 0]);
    /// ```
    pub fn order(&self) -> Vec<usize> {
        use tamis_ir::format::DimExpr::{Diff, Dim, Div, Mod};
        let mut order = Vec::new();
        for expr in self.format.map() {
            // A level of differences iterates along `d` once the other dimension is known, whose
            // own level then has random access.
            let (Dim(d) | Div(d, _) | Mod(d, _) | Diff(d, _)) = *expr;
            let first = if let Diff(_, other) = *expr { other } else { d };
            for dim in [first, d] {
                if !order.contains(&dim) {
                    order.push(dim);
                }
            }
        }
        order
    }

    /// True if every level stores coordinates of a dimension or of a quotient or remainder.
    fn counts_coordinates(&self) -> bool {
        !self.format.map().iter().any(|expr| matches!(expr, tamis_ir::format::DimExpr::Diff(..)))
    }

    /// True if each dimension has exactly one level, so that levels can be permuted.
    ///
    /// ```
    /// use tamis_compiler::auto::OperandStatistics;
    /// assert!(OperandStatistics::diagonal(vec![9.0, 9.0]).is_plain());
    /// ```
    pub fn is_plain(&self) -> bool {
        self.format.dim_order().is_some()
    }

    /// True if all levels are dense.
    ///
    /// ```
    /// use tamis_compiler::auto::OperandStatistics;
    /// assert!(!OperandStatistics::diagonal(vec![9.0, 9.0]).is_dense());
    /// ```
    pub fn is_dense(&self) -> bool {
        self.format.is_all_dense()
    }

    /// The number of distinct coordinates along a subset of the dimensions.
    ///
    /// ```
    /// use tamis_compiler::auto::OperandStatistics;
    /// // Bit 0 is the first dimension: the number of rows with entries.
    /// assert_eq!(OperandStatistics::diagonal(vec![9.0, 9.0]).distinct(0b01), 9.0);
    /// ```
    pub fn distinct(&self, dims: u32) -> f64 {
        if dims == 0 {
            return 1.0;
        }
        let (mut seen, order) = (0u32, self.order());
        for (k, dim) in order.iter().enumerate() {
            seen |= 1 << dim;
            if seen == dims && order.len() == self.prefixes.len() && self.counts_coordinates() {
                return self.prefixes[k];
            }
        }
        let cells: f64 = (0..self.shape.len()).filter(|d| dims & 1 << d != 0).map(|d| self.shape[d]).product();
        if self.is_dense() { cells } else { super::model::distinct(cells, self.entries) }
    }

    /// The statistics of the same tensor with permuted levels.
    ///
    /// ```
    /// use tamis_compiler::auto::OperandStatistics;
    /// use tamis_ir::{DType, Format, Value};
    /// let zero = Value::F64(0.0);
    /// let a = OperandStatistics::assumed(Format::csr(), DType::F64, zero, &[1000, 1000], 0.01);
    /// assert_eq!(a.reordered(&[1, 0]).map(|other| other.format), Some(Format::csc()));
    /// ```
    pub fn reordered(&self, order: &[usize]) -> Option<OperandStatistics> {
        self.format.dim_order()?;
        // Level types keep their place in the hierarchy, as CSC is CSR of the transpose; structured
        // levels become lists.
        let map = order.iter().map(|d| tamis_ir::format::DimExpr::Dim(*d)).collect();
        let (levels, list) = (self.format.levels(), LevelSpec::new(LevelKind::Sparse));
        let kept = |k: usize| match levels[k].kind {
            LevelKind::Dense | LevelKind::Sparse => true,
            // A singleton level depends on the order of the levels above it; coordinate lists stay
            // singleton in any order.
            LevelKind::Singleton => {
                let above = levels[..k].iter().rev().find(|level| level.kind != LevelKind::Singleton);
                above.is_some_and(|level| level.nonunique)
            }
            _ => false,
        };
        let levels: Vec<LevelSpec> = (0..levels.len()).map(|k| if kept(k) { levels[k] } else { list }).collect();
        let format = Format::new(self.format.rank(), map, levels, self.format.leaf()).ok()?;
        let mut operand = OperandStatistics { format, ..self.clone() };
        operand.spread();
        Some(operand)
    }

    /// The statistics of the same tensor with a dense outermost level, for random access to the
    /// levels below: CSR for COO. None if it is dense already or would be mostly empty.
    ///
    /// ```
    /// use tamis_compiler::auto::OperandStatistics;
    /// use tamis_ir::{DType, Format, Value};
    /// let zero = Value::F64(0.0);
    /// let a = OperandStatistics::assumed(Format::coo(2), DType::F64, zero, &[1000, 1000], 0.01);
    /// assert_eq!(a.with_dense_outside().map(|other| other.format), Some(Format::csr()));
    /// ```
    pub fn with_dense_outside(&self) -> Option<OperandStatistics> {
        let order = self.format.dim_order()?;
        let levels = self.format.levels();
        if levels.len() < 2 || levels[0].kind == LevelKind::Dense || self.shape[order[0]] > SPARSEST * self.entries {
            return None;
        }
        let lists = levels.iter().skip(1).map(|_| LevelSpec::new(LevelKind::Sparse));
        let levels = [LevelSpec::new(LevelKind::Dense)].into_iter().chain(lists).collect();
        let map = self.format.map().to_vec();
        let format = Format::new(self.format.rank(), map, levels, self.format.leaf()).ok()?;
        let mut operand = OperandStatistics { format, ..self.clone() };
        operand.spread();
        Some(operand)
    }

    /// The value of unstored elements; none if all elements are stored.
    ///
    /// ```
    /// use tamis_compiler::auto::OperandStatistics;
    /// use tamis_ir::Value;
    /// let diagonal = OperandStatistics::diagonal(vec![9.0, 9.0]);
    /// assert_eq!(diagonal.background(), Some(Value::Bool(false)));
    /// ```
    pub fn background(&self) -> Option<Value> {
        match self.format.leaf() {
            _ if self.is_dense() => None,
            Leaf::Pattern => Some(Value::Bool(false)),
            Leaf::Element(_) => Some(self.fill),
        }
    }
}

/// The maximum extent per entry of a dense level.
const SPARSEST: f64 = 8.0;
