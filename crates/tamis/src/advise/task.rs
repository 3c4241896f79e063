//! What formats are measured by: the product of a tensor with a vector along its last dimension.

use tamis_ir::format::Leaf;
use tamis_ir::{DType, Format, Kind, Value};
use tamis_tensor::{Mirror, Part, Proposal, Statistics, Tensor, ValueArray};

/// The vector may have this many elements.
const LONGEST: u64 = 1 << 28;

/// A product with a vector along the last dimension.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    rank: usize,
    /// The format of the result: dense, unless that would be far larger than what is stored.
    result: String,
    dense: bool,
    /// The type of the vector's elements.
    vector: DType,
    complex: bool,
}

impl Task {
    /// What a tensor's formats are measured by; none for a scalar.
    pub(super) fn of(tensor: &Tensor, statistics: &Statistics) -> Option<Task> {
        let (_, before) = tensor.shape().split_last()?;
        let cells = before.iter().try_fold(1u64, |cells, n| cells.checked_mul(*n));
        let room = (statistics.structure.entries as u64).saturating_mul(4).saturating_add(1 << 20);
        let dense = cells.is_some_and(|cells| cells <= room);
        let lists = Format::uniform(tamis_ir::format::LevelKind::Sparse, before.len());
        let result = if dense { "dense".to_string() } else { lists.long_name() };
        let dtype = tensor.dtype();
        let vector = match dtype.kind() {
            Kind::Float | Kind::Complex => dtype,
            _ => DType::F64,
        };
        Some(Task { rank: tensor.rank(), result, dense, vector, complex: dtype.kind() == Kind::Complex })
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

    /// The update in the middle of the loops: `y[i] += A[i,j] * x[j]`.
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

    /// The program for a tensor that is stored as proposed; none if there is none that is worth it.
    pub(super) fn program(&self, proposal: &Proposal, constant: Option<Value>) -> Option<String> {
        let indices = self.indices(self.rank, ", ");
        if let Part::Lower(mirror) = proposal.part {
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
        // A pattern says where the entries are; their value is in the program.
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

    /// What stands in the way of measuring, in words.
    pub(super) fn obstacle(&self, tensor: &Tensor, entries: usize) -> Option<String> {
        let length = tensor.shape().last().copied().unwrap_or(0);
        if tensor.shape().contains(&0) || entries == 0 {
            Some("nothing was measured: there are no entries".to_string())
        } else if tensor.fill().is_truthy() {
            Some(format!(
                "nothing was measured: the fill value is {}, so a product visits every element",
                tensor.fill()
            ))
        } else if length > LONGEST {
            Some(format!("nothing was measured: a vector of {length} elements is needed"))
        } else {
            None
        }
    }

    /// A vector to multiply with.
    pub(super) fn vector(&self, tensor: &Tensor) -> Result<Tensor, tamis_ir::Diagnostic> {
        let length = tensor.shape().last().copied().unwrap_or(0);
        // Numbers that add up exactly, so that the order of additions is hardly seen.
        let values: Vec<f64> = (0..length).map(|k| 1.0 + (k % 7) as f64 * 0.25).collect();
        let values = ValueArray::from(values).to_dtype(self.vector);
        Tensor::from_dense(&[length], values, &Format::dense(1), Value::zero(self.vector))
    }
}

/// Stores the lower triangle of a matrix.
pub(super) const LOWER: &str = "\
def lower(A):
    L = tensor(\"csr\")
    for i, j in _:
        if j <= i:
            L[i,j] = A[i,j]
    return L
";
