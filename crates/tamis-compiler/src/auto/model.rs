//! The cost model: its constants and its estimators of distinct coordinates.

use tamis_ir::{Code, Diagnostic};

/// Cost constants, in units of one iteration over a coordinate list. `tamis calibrate` fits them to
/// a machine.
///
/// ```
/// use tamis_compiler::auto::Costs;
/// let slow_merges = Costs { merge_step: 9.0, ..Costs::default() };
/// assert!(slow_merges.to_string().contains("merge_step = 9"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costs {
    /// An iteration of a dense loop.
    pub dense_step: f64,
    /// An iteration of a vectorised dense loop.
    pub vector_step: f64,
    /// An iteration of a loop over a coordinate list.
    pub list_step: f64,
    /// A step of co-iterating several coordinate lists.
    pub merge_step: f64,
    /// The extra cost of a step over runs or blocks, relative to a coordinate list.
    pub pieces: f64,
    /// An arithmetic operation.
    pub operation: f64,
    /// An update of an element in memory instead of in a register.
    pub update: f64,
    /// The overhead of entering an inner loop.
    pub start: f64,
    /// An append to a sparse result.
    pub append: f64,
    /// An element that passes through a dense workspace.
    pub dense_workspace: f64,
    /// An insertion into a sparse workspace.
    pub insert: f64,
    /// Sorting a sparse workspace, per element and per doubling.
    pub sort: f64,
    /// Converting a stored element to another storage order.
    pub convert: f64,
    /// Converting a stored element to another format with the same storage order.
    pub relay: f64,
    /// A random access to memory.
    pub stride: f64,
    /// A random access to a cache.
    pub hop: f64,
    /// The extra cost of a stored element of a sparse level over one of a dense level.
    pub sparse_entry: f64,
    /// The assumed density of a sparse tensor without statistics.
    pub density: f64,
    /// The number of elements that fit a core's private cache.
    pub cache: f64,
}

impl Default for Costs {
    fn default() -> Costs {
        Costs {
            dense_step: 0.7,
            vector_step: 0.2,
            list_step: 1.2,
            merge_step: 3.0,
            pieces: 3.0,
            operation: 0.5,
            update: 0.6,
            start: 2.0,
            append: 1.5,
            dense_workspace: 2.5,
            insert: 8.0,
            sort: 0.5,
            convert: 4.0,
            relay: 0.5,
            stride: 2.0,
            hop: 0.2,
            sparse_entry: 4.0,
            density: 0.01,
            cache: 65536.0,
        }
    }
}

/// A constant: its name, whether it can be fitted to measured times, and its accessor.
///
/// ```
/// use tamis_compiler::auto::Costs;
/// use tamis_compiler::auto::model::{CostField, FIELDS};
/// let (name, _, value): CostField = FIELDS[0];
/// assert_eq!((name, *value(&mut Costs::default())), ("dense_step", Costs::default().dense_step));
/// ```
pub type CostField = (&'static str, bool, fn(&mut Costs) -> &mut f64);

/// All constants, in the order in which they are printed.
///
/// ```
/// use tamis_compiler::auto::model::FIELDS;
/// let fitted = FIELDS.iter().filter(|(_, fitted, _)| *fitted);
/// assert!(fitted.count() > 10);
/// ```
pub const FIELDS: [CostField; 19] = [
    ("dense_step", true, |costs| &mut costs.dense_step),
    ("vector_step", true, |costs| &mut costs.vector_step),
    ("list_step", true, |costs| &mut costs.list_step),
    ("merge_step", true, |costs| &mut costs.merge_step),
    ("pieces", true, |costs| &mut costs.pieces),
    ("operation", true, |costs| &mut costs.operation),
    ("update", true, |costs| &mut costs.update),
    ("start", true, |costs| &mut costs.start),
    ("append", true, |costs| &mut costs.append),
    ("dense_workspace", true, |costs| &mut costs.dense_workspace),
    ("insert", true, |costs| &mut costs.insert),
    ("sort", true, |costs| &mut costs.sort),
    ("convert", true, |costs| &mut costs.convert),
    ("relay", true, |costs| &mut costs.relay),
    ("stride", true, |costs| &mut costs.stride),
    ("hop", true, |costs| &mut costs.hop),
    ("sparse_entry", false, |costs| &mut costs.sparse_entry),
    ("density", false, |costs| &mut costs.density),
    ("cache", false, |costs| &mut costs.cache),
];

impl Costs {
    /// Parses lines such as `list_step = 1.2`; missing constants keep their defaults. `#` starts a
    /// comment.
    ///
    /// ```
    /// use tamis_compiler::auto::Costs;
    /// let costs = Costs { list_step: 1.5, ..Costs::default() };
    /// assert_eq!(Costs::parse(&costs.to_string()), Ok(costs));
    /// assert!(Costs::parse("list_step = -1").is_err() && Costs::parse("lists = 1").is_err());
    /// ```
    pub fn parse(text: &str) -> Result<Costs, Diagnostic> {
        let mut costs = Costs::default();
        for (number, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            let wrong = |what: &str| {
                let names: Vec<&str> = FIELDS.iter().map(|(name, ..)| *name).collect();
                Diagnostic::new(Code::E0906, format!("line {} of the cost constants {what}", number + 1))
                    .note(format!("the constants are {}", names.join(", ")))
                    .help("write lines such as `list_step = 1.2`, or run `tamis calibrate` again")
            };
            let (name, value) = line.split_once('=').ok_or_else(|| wrong("has no `=`"))?;
            let field = FIELDS.iter().find(|(known, ..)| *known == name.trim());
            let (_, _, place) = field.ok_or_else(|| wrong(&format!("has the unknown name `{}`", name.trim())))?;
            let value = value.trim().parse::<f64>().ok().filter(|value| (1e-6..=1e12).contains(value));
            *place(&mut costs) = value.ok_or_else(|| wrong("lacks a positive number"))?;
        }
        Ok(costs)
    }
}

impl std::fmt::Display for Costs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut costs = *self;
        FIELDS.iter().try_for_each(|(name, _, place)| writeln!(f, "{name} = {}", place(&mut costs)))
    }
}

/// The expected number of distinct coordinates, out of `n`, of uniformly distributed entries.
///
/// ```
/// use tamis_compiler::auto::model::distinct;
/// assert_eq!((distinct(1000.0, 10_000.0) * 1000.0).round(), 999_955.0);
/// ```
pub fn distinct(n: f64, entries: f64) -> f64 {
    if n <= 0.0 {
        return 0.0;
    }
    // `exp_m1` avoids the cancellation of `1 - exp(-x)` for small x.
    (-n * (-entries / n).exp_m1()).min(entries).min(n)
}

/// The expected number of distinct coordinates `v`, out of `n`, reached from one `u` through
/// `degree_u` coordinates with `degree_v` neighbours each.
///
/// ```
/// use tamis_compiler::auto::model::reached;
/// let rounded = |degree| (reached(1000.0, degree, degree) * 1000.0).round();
/// assert_eq!((rounded(10.0), rounded(100.0)), (95_618.0, 999_973.0));
/// ```
pub fn reached(n: f64, degree_u: f64, degree_v: f64) -> f64 {
    if n <= 0.0 {
        return 0.0;
    }
    n * (1.0 - (1.0 - (degree_v / n).min(1.0)).powf(degree_u))
}

/// The expected number of pairs in a join of two sides over `distinct` common coordinates.
///
/// ```
/// use tamis_compiler::auto::model::{distinct, join};
/// let coordinates = distinct(1000.0, 10_000.0);
/// assert_eq!((join(10_000.0, 10_000.0, coordinates) * 10.0).round(), 1_000_045.0);
/// ```
pub fn join(left: f64, right: f64, distinct: f64) -> f64 {
    left * right / distinct.max(1.0)
}

/// True if a level should be dense, given `expected` coordinates in total over fibers of extent
/// `n`.
///
/// ```
/// use tamis_compiler::auto::{Costs, model::is_dense};
/// // One fiber of 1000 coordinates, of which nearly all, or one, are expected.
/// assert!(is_dense(&Costs::default(), 1000.0, 1.0, 999.0));
/// assert!(!is_dense(&Costs::default(), 1000.0, 1.0, 1.0));
/// ```
pub fn is_dense(costs: &Costs, n: f64, fibers: f64, expected: f64) -> bool {
    expected * costs.sparse_entry >= n * fibers
}
