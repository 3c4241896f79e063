//! The timed product of format advice: a tensor contracted with a vector along its last dimension.

use tamis_ir::format::Leaf;
use tamis_ir::{DType, Format, Kind, Value};
use tamis_tensor::{Mirror, Proposal, Statistics, StoredPart, Tensor, ValueArray};

/// The longest vector.
const MAX_LENGTH: u64 = 1 << 28;

/// The contraction of a tensor's last dimension with a vector.
///
/// ```
/// # use tamis::prelude::*;
/// # let a = tamis::gallery::generate("banded(200, 4)")?;
/// # let a = Tensor::from_coordinates(&a, &Format::csr(), 0.0.into(), Combine::Error)?;
/// use tamis::advise::{AdviseOptions, advise_with};
/// let advice = advise_with(&a, &AdviseOptions::new().measure(false))?;
/// assert!(advice.task.is_some(), "only a scalar has no product with a vector");
/// # Ok::<(), Diagnostics>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ProductTask {
    rank: usize,
    /// The format of the result: dense, unless that is far larger than the stored elements.
    result: String,
    dense: bool,
    /// The type of the vector's elements.
    vector: DType,
    complex: bool,
}

impl ProductTask {
    /// The product for a tensor; none for a scalar.
    pub(super) fn of(tensor: &Tensor, statistics: &Statistics) -> Option<ProductTask> {
        let (_, before) = tensor.shape().split_last()?;
        let elements = before.iter().try_fold(1u64, |elements, n| elements.checked_mul(*n));
        let limit = (statistics.structure.entries as u64).saturating_mul(4).saturating_add(1 << 20);
        let dense = elements.is_some_and(|elements| elements <= limit);
        let lists = Format::uniform(tamis_ir::format::LevelKind::Sparse, before.len());
        let result = if dense { "dense".to_string() } else { lists.long_name() };
        let dtype = tensor.dtype();
        let vector = match dtype.kind() {
            Kind::Float | Kind::Complex => dtype,
            _ => DType::F64,
        };
        Some(ProductTask { rank: tensor.rank(), result, dense, vector, complex: dtype.kind() == Kind::Complex })
    }

    fn index(&self, k: usize) -> String {
        const NAMES: [&str; 6] = ["i", "j", "k", "l", "m", "n"];
        match NAMES.get(k) {
            Some(name) if self.rank <= NAMES.len() => name.to_string(),
            _ => format!("i{k}"),
        }
    }

    fn indices(&self, count: usize, between: &str) -> String {
        (0..count).map(|k| self.index(k)).collect::<Vec<_>>().join(between)
    }

    /// The innermost statement: `y[i] += A[i,j] * x[j]`.
    ///
    /// ```
    /// # use tamis::prelude::*;
    /// # let a = tamis::gallery::generate("banded(200, 4)")?;
    /// # let a = Tensor::from_coordinates(&a, &Format::csr(), 0.0.into(), Combine::Error)?;
    /// use tamis::advise::{AdviseOptions, advise_with};
    /// let advice = advise_with(&a, &AdviseOptions::new().measure(false))?;
    /// assert_eq!(advice.task.unwrap().statement(), "y[i] += A[i,j] * x[j]");
    /// # Ok::<(), Diagnostics>(())
    /// ```
    pub fn statement(&self) -> String {
        self.update("")
    }

    fn update(&self, factor: &str) -> String {
        let last = self.index(self.rank.saturating_sub(1));
        let product = format!("{factor}A[{}] * x[{last}]", self.indices(self.rank, ","));
        match self.rank {
            1 => format!("s += {product}"),
            _ => format!("y[{}] += {product}", self.indices(self.rank - 1, ",")),
        }
    }

    /// The program for a tensor that is stored as proposed; none if the proposal does not apply.
    pub(super) fn program(&self, proposal: &Proposal, constant: Option<Value>) -> Option<String> {
        let indices = self.indices(self.rank, ", ");
        if let StoredPart::Lower(mirror) = proposal.part {
            let other = match mirror {
                Mirror::Same => "a",
                Mirror::Minus => "-a",
                Mirror::Conjugate => "conj(a)",
            };
            return self.dense.then(|| {
                format!(
                    "def spmv_lower(A, x):\n    y = tensor(\"dense\")\n    for i, j in _:\n        a = A[i,j]\n        \
                     y[i] += a * x[j]\n        if j < i:\n            y[j] += {other} * x[i]\n    return y\n"
                )
            });
        }
        // A pattern has no values; the program has their constant.
        let factor = match (proposal.format.leaf(), constant) {
            (Leaf::Pattern, Some(value)) if !value.same_number(Value::one(value.dtype())) => format!("({value}) * "),
            _ => String::new(),
        };
        let update = self.update(&factor);
        Some(match self.rank {
            1 => {
                let zero = if self.complex { "0j" } else { "0.0" };
                format!(
                    "def dot(A, x):\n    s = scalar({zero})\n    for {indices} in _:\n        {update}\n    return s\n"
                )
            }
            rank => {
                let (name, result) = (if rank == 2 { "spmv" } else { "ttv" }, &self.result);
                format!(
                    "def {name}(A, x):\n    y = tensor(\"{result}\")\n    for {indices} in _:\n        {update}\n    return y\n"
                )
            }
        })
    }

    /// Why the product cannot be timed, if so.
    pub(super) fn obstacle(&self, tensor: &Tensor, entries: usize) -> Option<String> {
        let length = tensor.shape().last().copied().unwrap_or(0);
        if tensor.shape().contains(&0) || entries == 0 {
            Some("nothing was measured: there are no entries".to_string())
        } else if tensor.fill().is_truthy() {
            Some(format!(
                "nothing was measured: the fill value is {}, so a product visits every element",
                tensor.fill()
            ))
        } else if length > MAX_LENGTH {
            Some(format!("nothing was measured: a vector of {length} elements is needed"))
        } else {
            None
        }
    }

    /// A vector to multiply with.
    pub(super) fn vector(&self, tensor: &Tensor) -> Result<Tensor, tamis_ir::Diagnostic> {
        let length = tensor.shape().last().copied().unwrap_or(0);
        // Sums of these numbers are exact, so that the order of additions hardly matters.
        let values: Vec<f64> = (0..length).map(|k| 1.0 + (k % 7) as f64 * 0.25).collect();
        let values = ValueArray::from(values).to_dtype(self.vector);
        Tensor::from_dense(&[length], values, &Format::dense(1), Value::zero(self.vector))
    }
}

/// Extracts the lower triangle of a matrix.
pub(super) const LOWER: &str = "\
def lower(A):
    L = tensor(\"csr\")
    for i, j in _:
        if j <= i:
            L[i,j] = A[i,j]
    return L
";
