//! Results of a computation: named tensors, in the order of `return` or of the assignments.
//!
//! A result is reached by name (`results["y"]`), by position (`results[0]`), by destructuring into
//! an array, or, where there is one only, by [`Results::into_tensor`]. Indexing panics where there
//! is no such result, as slices and maps do; [`Results::get`], [`Results::into_tensor`] and the
//! conversions do not.

use std::fmt;
use std::ops::Index;
use tamis_ir::{Code, Diagnostic};
use tamis_tensor::Tensor;

/// The results of a program or of index notation.
///
/// ```
/// use tamis::prelude::*;
///
/// let a = Tensor::from_dense(&[2, 2], vec![1.0, 2.0, 0.0, 4.0].into(), &Format::csr(), 0.0.into())?;
/// let results = tamis::einsum!("rows[i] = A[i,j]; columns[j] = A[i,j]", A = &a)?;
///
/// assert_eq!(results["rows"].get(&[0]), Some(Value::F64(3.0)));
/// assert_eq!(results[1].get(&[1]), Some(Value::F64(6.0)));
/// assert_eq!(results.names().collect::<Vec<_>>(), ["rows", "columns"]);
///
/// let [rows, columns]: [Tensor; 2] = results.try_into()?;
/// assert_eq!(rows.shape(), columns.shape());
///
/// let total = tamis::einsum!("s = A[i,j]", A = &a)?.into_tensor()?;
/// assert_eq!(total.get(&[]), Some(Value::F64(7.0)));
/// # Ok::<(), Diagnostics>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Results {
    named: Vec<(String, Tensor)>,
}

impl Results {
    /// The number of results.
    ///
    /// ```
    /// # use tamis::prelude::*;
    /// let results = Results::from_iter([("y", Tensor::scalar(3.0.into()))]);
    /// assert_eq!(results.len(), 1);
    /// ```
    pub fn len(&self) -> usize {
        self.named.len()
    }

    /// True if there is no result.
    ///
    /// ```
    /// # use tamis::prelude::*;
    /// assert!(Results::default().is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.named.is_empty()
    }

    /// The result of this name.
    ///
    /// ```
    /// # use tamis::prelude::*;
    /// let results = Results::from_iter([("y", Tensor::scalar(3.0.into()))]);
    /// assert!(results.get("y").is_some() && results.get("z").is_none());
    /// ```
    pub fn get(&self, name: &str) -> Option<&Tensor> {
        self.named.iter().find(|(known, _)| known == name).map(|(_, tensor)| tensor)
    }

    /// The names, in order.
    ///
    /// ```
    /// # use tamis::prelude::*;
    /// # let values = vec![1.0, 0.0, 0.0, 4.0].into();
    /// # let a = Tensor::from_dense(&[2, 2], values, &Format::csr(), 0.0.into())?;
    /// let results = tamis::einsum!("rows[i] = A[i,j]; columns[j] = A[i,j]", A = &a)?;
    /// assert_eq!(results.names().collect::<Vec<_>>(), ["rows", "columns"]);
    /// # Ok::<(), Diagnostics>(())
    /// ```
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.named.iter().map(|(name, _)| name.as_str())
    }

    /// The tensors, in order.
    ///
    /// ```
    /// # use tamis::prelude::*;
    /// # let values = vec![1.0, 0.0, 0.0, 4.0].into();
    /// # let a = Tensor::from_dense(&[2, 2], values, &Format::csr(), 0.0.into())?;
    /// let results = tamis::einsum!("rows[i] = A[i,j]; columns[j] = A[i,j]", A = &a)?;
    /// assert!(results.tensors().all(|tensor| tensor.shape() == [2]));
    /// # Ok::<(), Diagnostics>(())
    /// ```
    pub fn tensors(&self) -> impl ExactSizeIterator<Item = &Tensor> {
        self.named.iter().map(|(_, tensor)| tensor)
    }

    /// Names and tensors, in order.
    ///
    /// ```
    /// # use tamis::prelude::*;
    /// # let values = vec![1.0, 0.0, 0.0, 4.0].into();
    /// # let a = Tensor::from_dense(&[2, 2], values, &Format::csr(), 0.0.into())?;
    /// let results = tamis::einsum!("rows[i] = A[i,j]; columns[j] = A[i,j]", A = &a)?;
    /// for (name, tensor) in results.iter() {
    ///     println!("{name}: {}", tensor.summary());
    /// }
    /// # Ok::<(), Diagnostics>(())
    /// ```
    pub fn iter(&self) -> Iter<'_> {
        Iter(self.named.iter())
    }

    /// The tensor of a single result. Several results, or none, are an error (E0903).
    ///
    /// ```
    /// # use tamis::prelude::*;
    /// let one = Results::from_iter([("y", Tensor::scalar(3.0.into()))]);
    /// assert_eq!(one.into_tensor()?.get(&[]), Some(Value::F64(3.0)));
    /// let two = Results::from_iter([("y", Tensor::scalar(3.0.into())), ("z", Tensor::scalar(4.0.into()))]);
    /// assert!(two.into_tensor().unwrap_err().message.contains("2 results"));
    /// # Ok::<(), Diagnostics>(())
    /// ```
    pub fn into_tensor(self) -> Result<Tensor, Diagnostic> {
        let [tensor] = self.try_into()?;
        Ok(tensor)
    }

    /// The tensors, in order, without their names.
    ///
    /// ```
    /// # use tamis::prelude::*;
    /// # let values = vec![1.0, 0.0, 0.0, 4.0].into();
    /// # let a = Tensor::from_dense(&[2, 2], values, &Format::csr(), 0.0.into())?;
    /// let results = tamis::einsum!("rows[i] = A[i,j]; s = A[i,j]", A = &a)?;
    /// let ranks: Vec<usize> = results.into_tensors().iter().map(Tensor::rank).collect();
    /// assert_eq!(ranks, [1, 0]);
    /// # Ok::<(), Diagnostics>(())
    /// ```
    pub fn into_tensors(self) -> Vec<Tensor> {
        self.named.into_iter().map(|(_, tensor)| tensor).collect()
    }

    /// The names as a sentence may list them.
    fn listed(&self) -> String {
        self.named.iter().map(|(name, _)| format!("`{name}`")).collect::<Vec<_>>().join(", ")
    }
}

impl Index<usize> for Results {
    type Output = Tensor;

    fn index(&self, position: usize) -> &Tensor {
        match self.named.get(position) {
            Some((_, tensor)) => tensor,
            None => panic!("there is no result {position}: there are {} ({})", self.len(), self.listed()),
        }
    }
}

impl Index<&str> for Results {
    type Output = Tensor;

    fn index(&self, name: &str) -> &Tensor {
        self.get(name).unwrap_or_else(|| panic!("there is no result `{name}`: results are {}", self.listed()))
    }
}

/// Destructures all results: `let [y, z]: [Tensor; 2] = results.try_into()?`.
impl<const N: usize> TryFrom<Results> for [Tensor; N] {
    type Error = Diagnostic;

    fn try_from(results: Results) -> Result<[Tensor; N], Diagnostic> {
        let (count, listed) = (results.len(), results.listed());
        results.into_tensors().try_into().map_err(|_| {
            let plural = |n: usize| if n == 1 { "1 result".to_string() } else { format!("{n} results") };
            let d = Diagnostic::new(Code::E0903, format!("the computation has {}, not {}", plural(count), plural(N)));
            match count {
                0 => d.help("return a tensor from the program"),
                _ => d.help(format!("take one by its name or position; the names are {listed}")),
            }
        })
    }
}

/// The tensor of a single result; the same as [`Results::into_tensor`].
impl TryFrom<Results> for Tensor {
    type Error = Diagnostic;

    fn try_from(results: Results) -> Result<Tensor, Diagnostic> {
        results.into_tensor()
    }
}

impl<N: Into<String>> FromIterator<(N, Tensor)> for Results {
    fn from_iter<I: IntoIterator<Item = (N, Tensor)>>(named: I) -> Results {
        Results { named: named.into_iter().map(|(name, tensor)| (name.into(), tensor)).collect() }
    }
}

impl From<Vec<(String, Tensor)>> for Results {
    fn from(named: Vec<(String, Tensor)>) -> Results {
        Results { named }
    }
}

impl From<Results> for Vec<(String, Tensor)> {
    fn from(results: Results) -> Vec<(String, Tensor)> {
        results.named
    }
}

impl IntoIterator for Results {
    type Item = (String, Tensor);
    type IntoIter = std::vec::IntoIter<(String, Tensor)>;

    fn into_iter(self) -> Self::IntoIter {
        self.named.into_iter()
    }
}

impl<'a> IntoIterator for &'a Results {
    type Item = (&'a str, &'a Tensor);
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

/// Names and tensors of [`Results`], in order.
///
/// ```
/// # use tamis::prelude::*;
/// let scalar = |value: f64| Tensor::scalar(value.into());
/// let results = Results::from_iter([("y", scalar(3.0)), ("z", scalar(4.0))]);
/// let (last, _) = results.iter().next_back().unwrap();
/// assert_eq!(last, "z");
/// ```
#[derive(Clone, Debug)]
pub struct Iter<'a>(std::slice::Iter<'a, (String, Tensor)>);

impl<'a> Iterator for Iter<'a> {
    type Item = (&'a str, &'a Tensor);

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|(name, tensor)| (name.as_str(), tensor))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl DoubleEndedIterator for Iter<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.0.next_back().map(|(name, tensor)| (name.as_str(), tensor))
    }
}

impl ExactSizeIterator for Iter<'_> {}

/// One line for each result: its name and a summary of its tensor.
impl fmt::Display for Results {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (k, (name, tensor)) in self.iter().enumerate() {
            write!(f, "{}{name}: {}", if k > 0 { "\n" } else { "" }, tensor.summary())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results(names: &[&str]) -> Results {
        names.iter().enumerate().map(|(k, name)| (*name, Tensor::scalar((k as f64).into()))).collect()
    }

    #[test]
    fn counts_that_differ_are_diagnostics() {
        for names in [&[][..], &["x", "y"]] {
            let d = results(names).into_tensor().unwrap_err();
            assert!(d.code == Code::E0903 && !d.help.is_empty(), "{d}");
        }
        let d = <[Tensor; 2]>::try_from(results(&["x"])).unwrap_err();
        assert_eq!(d.message, "the computation has 1 result, not 2 results");
    }

    #[test]
    #[should_panic(expected = "there is no result `z`: results are `x`, `y`")]
    fn a_missing_name_panics_with_the_names_that_exist() {
        let _ = &results(&["x", "y"])["z"];
    }

    #[test]
    #[should_panic(expected = "there is no result 2: there are 2 (`x`, `y`)")]
    fn a_missing_position_panics_with_the_count() {
        let _ = &results(&["x", "y"])[2];
    }

    #[test]
    fn every_way_in_and_out_keeps_the_order() {
        let all = results(&["b", "a"]);
        assert_eq!(all.iter().rev().map(|(name, _)| name).collect::<Vec<_>>(), ["a", "b"]);
        let pairs: Vec<(String, Tensor)> = all.clone().into();
        assert_eq!(Results::from(pairs).names().collect::<Vec<_>>(), ["b", "a"]);
        assert_eq!(all.into_tensors().len(), 2);
    }

    #[test]
    fn a_summary_is_a_line_each() {
        let text = results(&["x", "y"]).to_string();
        assert_eq!(text.lines().map(|line| line.split(':').next().unwrap()).collect::<Vec<_>>(), ["x", "y"]);
    }
}
