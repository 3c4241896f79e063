//! Display of tensors: a one-line summary, and the arrays of small ones.

use super::Tensor;
use std::fmt;
use tamis_ir::format::Leaf;

/// The maximum length of displayed arrays.
const SMALL: usize = 24;

impl Tensor {
    /// One line: shape, type, format and nnz.
    ///
    /// ```
    /// # use tamis_ir::{Format, Value};
    /// # use tamis_tensor::Tensor;
    /// let values = vec![1.0, 0.0, 0.0, 4.0].into();
    /// let a = Tensor::from_dense(&[2, 2], values, &Format::csr(), Value::F64(0.0))?;
    /// assert_eq!(a.summary(), "2x2 f64 csr, 2 stored");
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn summary(&self) -> String {
        let shape: Vec<String> = self.shape().iter().map(u64::to_string).collect();
        let shape = if shape.is_empty() { "scalar".to_string() } else { shape.join("x") };
        let format = self.format();
        let mut name = match format.short_name() {
            Some(name) => name,
            None => format.clone().with_leaf(Leaf::Element(None)).to_string(),
        };
        if format.leaf() == Leaf::Pattern {
            name += "; pattern";
        }
        let fill = self.fill();
        let fill = if fill.is_truthy() { format!(", fill {fill}") } else { String::new() };
        format!("{shape} {} {name}, {} stored{fill}", self.dtype(), self.nnz())
    }
}

/// The summary, and for small tensors a line for each level with arrays and one for the values.
impl fmt::Display for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.summary())?;
        let arrays: Vec<_> = (0..self.levels().len()).map(|k| self.level_arrays(k)).collect();
        let lengths = arrays.iter().flat_map(|level| level.arrays.iter().map(|(_, array)| array.len()));
        if lengths.chain(self.values().map(|values| values.len())).any(|length| length > SMALL) {
            return Ok(());
        }
        for (k, level) in arrays.iter().enumerate().filter(|(_, level)| !level.arrays.is_empty()) {
            write!(f, "\n  level {k} {}:", self.format().levels()[k].kind.name())?;
            for (name, array) in &level.arrays {
                write!(f, " {name} {:?}", array.to_vec())?;
            }
        }
        if let Some(values) = self.values() {
            let values: Vec<String> = (0..values.len()).map(|k| values.get(k).to_string()).collect();
            write!(f, "\n  values [{}]", values.join(", "))?;
        }
        Ok(())
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
