//! The cost model: its constants, and how many different coordinates to expect.

/// What things cost, in units of one step of a loop over a list of coordinates. `tamis` fits them to a machine on request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costs {
    /// A step of a loop over all coordinates.
    pub dense_step: f64,
    /// The same where neighbouring elements are computed together.
    pub vector_step: f64,
    /// A step of a loop over a list.
    pub list_step: f64,
    /// A step of merging several lists.
    pub merge_step: f64,
    /// A step of a loop over runs or blocks, over one of a list.
    pub pieces: f64,
    /// An operation on elements.
    pub operation: f64,
    /// An element that is added to where it lies in memory, rather than in a register.
    pub update: f64,
    /// Starting an inner loop.
    pub start: f64,
    /// An element that is appended to a result.
    pub append: f64,
    /// An element that goes through a dense workspace.
    pub dense_workspace: f64,
    /// Inserting an element into a sparse workspace.
    pub insert: f64,
    /// Sorting elements of a sparse workspace, for each and each doubling.
    pub sort: f64,
    /// Converting a stored entry to another order.
    pub convert: f64,
    /// Converting a stored entry to another format in the same order.
    pub relay: f64,
    /// Taking an element from memory that does not come in order.
    pub stride: f64,
    /// The same from a cache.
    pub hop: f64,
    /// What a stored entry of a sparse level costs over an element of a dense one.
    pub sparse_entry: f64,
    /// How full a sparse tensor is assumed to be of which nothing is known.
    pub density: f64,
    /// Elements that a core's own cache holds.
    pub cache: f64,
}

impl Default for Costs {
    fn default() -> Costs {
        Costs {
            dense_step: 0.7,
            vector_step: 0.2,
            list_step: 1.2,
            merge_step: 3.0,
            pieces: 2.0,
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
            sparse_entry: 3.0,
            density: 0.01,
            cache: 65536.0,
        }
    }
}

/// How many of `n` coordinates are met by so many entries that are anywhere.
///
/// ```
/// use tamis_compiler::auto::model::distinct;
/// assert_eq!((distinct(1000.0, 10_000.0) * 1000.0).round(), 999_955.0);
/// ```
pub fn distinct(n: f64, entries: f64) -> f64 {
    if n <= 0.0 {
        return 0.0;
    }
    // `exp_m1` keeps what `1 - exp(-x)` loses for small x.
    (-n * (-entries / n).exp_m1()).min(entries).min(n)
}

/// How many of `n` coordinates `v` are reached from one `u`, through `degree_u` coordinates with `degree_v` coordinates each.
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

/// How many pairs meet when so many entries on either side have one of `distinct` coordinates in common.
///
/// ```
/// use tamis_compiler::auto::model::{distinct, join};
/// let coordinates = distinct(1000.0, 10_000.0);
/// assert_eq!((join(10_000.0, 10_000.0, coordinates) * 10.0).round(), 1_000_045.0);
/// ```
pub fn join(left: f64, right: f64, distinct: f64) -> f64 {
    left * right / distinct.max(1.0)
}

/// Whether a level with so many coordinates is dense: of each `n` in so many fibers, `expected` are there in all.
pub fn is_dense(costs: &Costs, n: f64, fibers: f64, expected: f64) -> bool {
    expected * costs.sparse_entry >= n * fibers
}
