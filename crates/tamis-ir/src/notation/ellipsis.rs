//! NumPy's einsum subscripts that depend on the operands: ellipses, dimensions of size 1 that are
//! broadcast, and products of booleans.
//!
//! In: subscripts such as `...ij,...jk->...ik`, and the shapes and kinds of the operands. Out: index
//! notation with the same letters as indices. An ellipsis stands for indices `e1`, `e0`, counted
//! from the last dimension, as NumPy broadcasts. Without `->`, the result has what the ellipses stand
//! for, and the letters that occur once, in alphabetical order.

use super::Notation;
use crate::diag::{Code, Diagnostic, Result, Source, Span, counted};
use std::ops::Range;

/// An operand of einsum subscripts.
///
/// ```
/// use tamis_ir::notation::EinsumOperand;
/// let matrix = EinsumOperand { name: "A".to_string(), shape: vec![2, 3], boolean: false };
/// assert_eq!(matrix.shape.len(), 2);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EinsumOperand {
    /// The name of the operand in the notation.
    pub name: String,
    /// The sizes of its dimensions.
    pub shape: Vec<u64>,
    /// Whether its elements are truth values.
    pub boolean: bool,
}

/// Index notation for einsum subscripts on some operands.
///
/// ```
/// use tamis_ir::Notation;
/// use tamis_ir::notation::{EinsumOperand, ExpandedEinsum};
/// let of = |name: &str, shape: &[u64]| EinsumOperand { name: name.to_string(), shape: shape.to_vec(), boolean: false };
/// let expanded = Notation::expand_einsum("...ij,...jk->...ik", &[of("A", &[5, 2, 3]), of("B", &[3, 4])], "C")?;
/// assert_eq!(expanded.text(), "C[e0,i,k] = A[e0,i,j] * B[j,k]");
/// # Ok::<(), tamis_ir::Diagnostic>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpandedEinsum {
    /// For each operand, its name and an index for each dimension; none where a dimension of size 1
    /// is broadcast.
    pub operands: Vec<(String, Vec<Option<String>>)>,
    /// The indices of the result.
    pub result: Vec<String>,
    /// The name of the result.
    name: String,
    /// The reduced indices of a product of truth values.
    any: Option<Vec<String>>,
}

/// The letters before and after an ellipsis, with their place in the text.
struct SubscriptTerm {
    before: String,
    after: String,
    ellipsis: bool,
    range: Range<usize>,
}

impl SubscriptTerm {
    fn new(text: &str, range: Range<usize>) -> Result<SubscriptTerm> {
        let part: String = text[range.clone()].chars().filter(|c| !c.is_whitespace()).collect();
        let (before, after, ellipsis) = match part.split_once("...") {
            Some((before, after)) => (before, after, true),
            None => (&part[..], "", false),
        };
        if let Some(c) = before.chars().chain(after.chars()).find(|c| !c.is_ascii_alphabetic()) {
            let what = match c {
                '.' => "a `.` that belongs to no `...`, which stands once in each operand".to_string(),
                c => format!("`{c}`, which is no letter"),
            };
            return Err(Diagnostic::new(Code::E0111, format!("the subscripts `{part}` have {what}"))
                .label(Span::new(range), "in these")
                .help("write `ij,jk->ik`, or `C[i,k] = A[i,j] * B[j,k]`")
                .help("`...` stands for all other dimensions"));
        }
        Ok(SubscriptTerm { before: before.to_string(), after: after.to_string(), ellipsis, range })
    }

    fn letters(&self) -> impl Iterator<Item = char> {
        self.before.chars().chain(self.after.chars())
    }

    fn span(&self) -> Span {
        Span::new(self.range.clone())
    }

    fn shown(&self) -> String {
        format!("{}{}{}", self.before, if self.ellipsis { "..." } else { "" }, self.after)
    }

    /// One index for each dimension; those of the ellipsis are counted from the last.
    fn indices(&self, place: usize, rank: usize) -> Result<Vec<String>> {
        let count = self.letters().count();
        let extra = rank.checked_sub(count).filter(|extra| *extra == 0 || self.ellipsis);
        let Some(extra) = extra else {
            let message = format!(
                "operand {place} has {}, but `{}` subscripts {count}",
                counted(rank, "dimension"),
                self.shown()
            );
            return Err(Diagnostic::new(Code::E0401, message)
                .label(self.span(), format!("for {}", counted(rank, "dimension")))
                .help("write a letter for each dimension, or `...` for the others"));
        };
        let one = |c: char| c.to_string();
        let others = (0..extra).rev().map(|k| format!("e{k}"));
        Ok(self.before.chars().map(one).chain(others).chain(self.after.chars().map(one)).collect())
    }
}

impl Notation {
    /// True if einsum subscripts have an ellipsis, so that they depend on the ranks of the operands.
    ///
    /// ```
    /// use tamis_ir::Notation;
    /// assert!(Notation::has_ellipsis("...ij,j->...i") && !Notation::has_ellipsis("ij,j->i"));
    /// ```
    pub fn has_ellipsis(text: &str) -> bool {
        super::einsum::is_einsum(text) && text.contains("...")
            || text.contains("...") && text.chars().all(|c| c.is_ascii_alphabetic() || c.is_whitespace() || c == '.')
    }

    /// Writes einsum subscripts for these operands as index notation.
    ///
    /// ```
    /// use tamis_ir::Notation;
    /// use tamis_ir::notation::EinsumOperand;
    /// let row = EinsumOperand { name: "x".to_string(), shape: vec![1, 4], boolean: false };
    /// let all = EinsumOperand { name: "y".to_string(), shape: vec![3, 4], boolean: false };
    /// let expanded = Notation::expand_einsum("ij,ij->ij", &[row, all], "z")?;
    /// assert_eq!(expanded.text(), "z[i,j] = x[0,j] * y[i,j]");
    /// # Ok::<(), tamis_ir::Diagnostic>(())
    /// ```
    pub fn expand_einsum(text: &str, operands: &[EinsumOperand], name: &str) -> Result<ExpandedEinsum> {
        expand(text, operands, name).map_err(|d| d.with_source(&Source::new("notation", text)))
    }
}

fn expand(text: &str, operands: &[EinsumOperand], name: &str) -> Result<ExpandedEinsum> {
    let left = text.find("->").unwrap_or(text.len());
    let mut terms = Vec::new();
    let mut start = 0;
    for part in text[..left].split(',') {
        terms.push(SubscriptTerm::new(text, start..start + part.len())?);
        start += part.len() + 1;
    }
    let right = text[left..].strip_prefix("->").map(|_| SubscriptTerm::new(text, left + 2..text.len())).transpose()?;
    if terms.len() != operands.len() {
        let message = format!("the text has {}, but {} are given", counted(terms.len(), "operand"), operands.len());
        return Err(Diagnostic::new(Code::E0111, message)
            .label(Span::new(0..left), "separated by commas")
            .help("give one tensor for each"));
    }
    let each = terms.iter().zip(operands).enumerate();
    let indices: Vec<Vec<String>> =
        each.map(|(k, (term, operand))| term.indices(k, operand.shape.len())).collect::<Result<_>>()?;
    let sizes = sizes(&indices, operands, &terms)?;
    let extra = indices.iter().map(|own| own.iter().filter(|i| i.len() > 1).count()).max().unwrap_or(0);
    let extra: Vec<String> = (0..extra).rev().map(|k| format!("e{k}")).collect();
    let result = match &right {
        Some(term) => result(term, &extra, &sizes)?,
        None => {
            let every: String = terms.iter().flat_map(SubscriptTerm::letters).collect();
            let mut once: Vec<char> = every.chars().filter(|c| every.matches(*c).count() == 1).collect();
            once.sort_unstable();
            extra.into_iter().chain(once.into_iter().map(String::from)).collect()
        }
    };
    let boolean = !operands.is_empty() && operands.iter().all(|operand| operand.boolean);
    let reduced = || sizes.iter().map(|(index, _)| index.clone()).filter(|index| !result.contains(index));
    let any = boolean.then(|| reduced().collect());
    let known = |index: &String| sizes.iter().find(|(other, _)| other == index).map(|(_, n)| *n);
    let kept = |own: Vec<String>, operand: &EinsumOperand| {
        let sized = own.into_iter().zip(&operand.shape);
        let kept = sized.map(|(index, n)| (known(&index) == Some(*n)).then_some(index)).collect();
        (operand.name.clone(), kept)
    };
    let accesses = indices.into_iter().zip(operands).map(|(own, operand)| kept(own, operand)).collect();
    Ok(ExpandedEinsum { operands: accesses, result, name: name.to_string(), any })
}

/// The size of each index, in the order of the text; 1 gives way to any other.
fn sizes(indices: &[Vec<String>], operands: &[EinsumOperand], terms: &[SubscriptTerm]) -> Result<Vec<(String, u64)>> {
    let mut sizes: Vec<(String, u64)> = Vec::new();
    for (place, ((own, operand), term)) in indices.iter().zip(operands).zip(terms).enumerate() {
        let mut inside: Vec<(&String, u64)> = Vec::new();
        for (index, n) in own.iter().zip(&operand.shape) {
            match inside.iter().find(|(other, _)| *other == index) {
                Some((_, known)) if known != n => {
                    let message = format!("`{index}` has two sizes in operand {place}, {known} and {n}");
                    return Err(Diagnostic::new(Code::E0402, message)
                        .label(term.span(), "in this operand")
                        .help("a diagonal needs dimensions of equal sizes"));
                }
                Some(_) => {}
                None => inside.push((index, *n)),
            }
        }
        for (index, n) in inside {
            match sizes.iter_mut().find(|(other, _)| other == index) {
                Some((_, known)) if *known == 1 => *known = n,
                Some((_, known)) if n != 1 && n != *known => {
                    let message = match index.len() {
                        1 => format!("`{index}` is {known} and {n} long"),
                        _ => format!("the ellipsis stands for dimensions of sizes {known} and {n}"),
                    };
                    return Err(Diagnostic::new(Code::E0402, message)
                        .label(term.span(), format!("{n} here"))
                        .help("sizes are equal, or 1, which is broadcast"));
                }
                Some(_) => {}
                None => sizes.push((index.clone(), n)),
            }
        }
    }
    Ok(sizes)
}

/// The indices of a written result.
fn result(term: &SubscriptTerm, extra: &[String], sizes: &[(String, u64)]) -> Result<Vec<String>> {
    let letters: String = term.letters().collect();
    if !extra.is_empty() && !term.ellipsis {
        let message = format!(
            "the ellipsis stands for {}, which the result `{letters}` lacks",
            counted(extra.len(), "dimension")
        );
        return Err(Diagnostic::new(Code::E0111, message)
            .label(term.span(), "the result")
            .help(format!("write `->...{letters}` to keep them"))
            .help("give them letters to sum over them"));
    }
    for (k, c) in letters.chars().enumerate() {
        if letters.chars().take(k).any(|other| other == c) {
            return Err(Diagnostic::new(Code::E0111, format!("`{c}` occurs twice in the result"))
                .label(term.span(), "the result")
                .help("write each index of the result once"));
        }
        if !sizes.iter().any(|(index, _)| *index == c.to_string()) {
            return Err(Diagnostic::new(Code::E0113, format!("index `{c}` has no extent"))
                .label(term.span(), "the result")
                .help("an index of the result must subscript an operand"));
        }
    }
    let one = |c: char| c.to_string();
    let others = extra.iter().filter(|_| term.ellipsis).cloned();
    Ok(term.before.chars().map(one).chain(others).chain(term.after.chars().map(one)).collect())
}

impl ExpandedEinsum {
    /// The notation, with the subscript 0 where a dimension of size 1 is broadcast.
    ///
    /// ```
    /// use tamis_ir::Notation;
    /// use tamis_ir::notation::EinsumOperand;
    /// let mask = |name: &str| EinsumOperand { name: name.to_string(), shape: vec![3], boolean: true };
    /// let expanded = Notation::expand_einsum("i,i", &[mask("A"), mask("B")], "s")?;
    /// assert_eq!(expanded.text(), "s = any[i](A[i] and B[i])");
    /// # Ok::<(), tamis_ir::Diagnostic>(())
    /// ```
    pub fn text(&self) -> String {
        self.text_of(|index| Some(index.unwrap_or("0")))
    }

    /// The notation for operands without the dimensions of size 1 that are broadcast.
    ///
    /// ```
    /// use tamis_ir::Notation;
    /// use tamis_ir::notation::EinsumOperand;
    /// let row = EinsumOperand { name: "x".to_string(), shape: vec![1, 4], boolean: false };
    /// let all = EinsumOperand { name: "y".to_string(), shape: vec![3, 4], boolean: false };
    /// let expanded = Notation::expand_einsum("ij,ij->ij", &[row, all], "z")?;
    /// assert_eq!(expanded.text_of_squeezed(), "z[i,j] = x[j] * y[i,j]");
    /// # Ok::<(), tamis_ir::Diagnostic>(())
    /// ```
    pub fn text_of_squeezed(&self) -> String {
        self.text_of(|index| index)
    }

    fn text_of<'a>(&'a self, shown: impl Fn(Option<&'a str>) -> Option<&'a str>) -> String {
        // Names of operands may be letters, too.
        let taken = |text: &str| self.name == text || self.operands.iter().any(|(name, _)| name == text);
        let renamed = |index: &str| match taken(index) {
            true => format!("{index}_{index}"),
            false => index.to_string(),
        };
        let access = |name: &str, indices: Vec<String>| match indices.is_empty() {
            true => name.to_string(),
            false => format!("{name}[{}]", indices.join(",")),
        };
        let accesses = self.operands.iter().map(|(name, own)| {
            access(name, own.iter().filter_map(|index| shown(index.as_deref())).map(renamed).collect())
        });
        let operator = if self.any.is_some() { " and " } else { " * " };
        let product = accesses.collect::<Vec<_>>().join(operator);
        let body = match &self.any {
            Some(any) if !any.is_empty() => {
                let over: Vec<String> = any.iter().map(|index| renamed(index)).collect();
                format!("any[{}]({product})", over.join(","))
            }
            _ => product,
        };
        format!("{} = {body}", access(&self.name, self.result.iter().map(|index| renamed(index)).collect()))
    }
}
