//! Execution attributes of loops: parallel, vectorised, unrolled, bounded. The meaning of a program
//! does not depend on them.

/// The execution attributes of a loop.
///
/// ```
/// use tamis_ir::Program;
/// let text = "\
/// def double(x):
///     y = tensor(\"dense\")
///     for i in parallel(unroll(_, 4)):
///         y[i] = 2 * x[i]
///     return y
/// ";
/// assert_eq!(Program::parse(text)?.to_string(), text);
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Attributes {
    /// Iterations may run concurrently, on several threads.
    pub parallel: bool,
    /// Iterations may run concurrently, in the lanes of a vector.
    pub vectorize: Option<Vectorize>,
    /// The unroll factor.
    pub unroll: Option<u32>,
    /// The trip count.
    pub bound: Option<Bound>,
}

/// The number of iterations per vector.
///
/// ```
/// use tamis_ir::program::{Attributes, Vectorize};
/// let mut attributes = Attributes::default();
/// attributes.add("vectorize", Some(8)).unwrap();
/// assert_eq!(attributes.vectorize, Some(Vectorize::Lanes(8)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Vectorize {
    /// The natural vector length of the machine.
    Natural,
    /// This number.
    Lanes(u32),
}

/// An assumption about a loop's trip count, checked before the program runs.
///
/// ```
/// use tamis_ir::program::{Attributes, Bound};
/// let mut attributes = Attributes::default();
/// attributes.add("at_most", Some(64)).unwrap();
/// assert_eq!(attributes.bound, Some(Bound::AtMost(64)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bound {
    /// The trip count is this number.
    Exactly(u64),
    /// The trip count is at most this number.
    AtMost(u64),
}

/// The maximum unroll factor and vector length.
const MOST: u64 = 1024;

impl Attributes {
    /// The words that users type.
    ///
    /// ```
    /// use tamis_ir::program::Attributes;
    /// assert!(Attributes::WORDS.contains(&"unroll"));
    /// ```
    pub const WORDS: [&str; 5] = ["parallel", "vectorize", "unroll", "exactly", "at_most"];

    /// Adds an attribute; the error describes the mistake.
    ///
    /// ```
    /// use tamis_ir::program::Attributes;
    /// let mut attributes = Attributes::default();
    /// assert!(attributes.add("unroll", Some(4)).is_ok());
    /// assert!(attributes.add("unroll", Some(8)).is_err(), "it is repeated");
    /// ```
    pub fn add(&mut self, word: &str, number: Option<u64>) -> Result<(), String> {
        let factor = |number: u64| match u32::try_from(number) {
            Ok(factor) if (1..=MOST).contains(&number) => Ok(factor),
            _ => Err(format!("`{word}` takes a number from 1 to {MOST}, not {number}")),
        };
        let twice = match (word, number) {
            ("parallel", None) => std::mem::replace(&mut self.parallel, true),
            ("vectorize", None) => self.vectorize.replace(Vectorize::Natural).is_some(),
            ("vectorize", Some(lanes)) => self.vectorize.replace(Vectorize::Lanes(factor(lanes)?)).is_some(),
            ("unroll", Some(count)) => self.unroll.replace(factor(count)?).is_some(),
            ("exactly", Some(n)) => self.bound.replace(Bound::Exactly(n)).is_some(),
            ("at_most", Some(n)) => self.bound.replace(Bound::AtMost(n)).is_some(),
            ("parallel", Some(_)) => return Err("`parallel` takes no number".to_string()),
            ("unroll" | "exactly" | "at_most", None) => return Err(format!("`{word}` needs a number")),
            _ => return Err(format!("`{word}` is not a loop attribute")),
        };
        if twice { Err(format!("`{word}` is repeated, or contradicts another bound")) } else { Ok(()) }
    }

    /// An extent as text, inside these attributes.
    ///
    /// ```
    /// use tamis_ir::program::Attributes;
    /// let attributes = Attributes { parallel: true, unroll: Some(4), ..Attributes::default() };
    /// assert_eq!(attributes.around("_".to_string()), "parallel(unroll(_, 4))");
    /// ```
    pub fn around(&self, extent: String) -> String {
        let mut text = extent;
        match self.bound {
            Some(Bound::Exactly(n)) => text = format!("exactly({text}, {n})"),
            Some(Bound::AtMost(n)) => text = format!("at_most({text}, {n})"),
            None => {}
        }
        if let Some(count) = self.unroll {
            text = format!("unroll({text}, {count})");
        }
        match self.vectorize {
            Some(Vectorize::Natural) => text = format!("vectorize({text})"),
            Some(Vectorize::Lanes(lanes)) => text = format!("vectorize({text}, {lanes})"),
            None => {}
        }
        if self.parallel { format!("parallel({text})") } else { text }
    }
}
