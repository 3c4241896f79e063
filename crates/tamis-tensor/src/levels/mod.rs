//! Level formats: one file for each, and the table of all levels.
//!
//! A level stores one fiber for each *parent position*: coordinates of one storage dimension, each
//! with a *child position*. The root has the single position 0; the child positions of the last
//! level index the value array. [`tree`] combines levels, and is the only code that knows their
//! order. No other code outside this folder asks for the kind of a level, except the direct routes
//! of [`crate::convert`].
//!
//! To add a level: write its file (struct, invariants, `from_arrays` that checks them in order,
//! `assemble`, [`Level`]), and add its row to [`LEVELS`].

mod arrays;
mod band;
mod blocks;
mod bytemap;
mod check;
mod compressed;
mod dense;
mod hash;
mod interval;
mod positions;
mod runs;
mod singleton;
mod sparse;
mod sparse_runs;
pub mod tree;
mod unfurl;
mod write;

pub use arrays::{ArrayLength, ArrayRole, ArraySpec, Children, WidthRule};
pub use positions::{Parent, Positions};
pub use write::{Placement, Write};

use crate::IndexArray;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use tamis_ir::format::{Format, LevelKind, LevelSpec, Width};
use tamis_ir::looplet::{Fiber, Located, Looplet};
use tamis_ir::{Code, Diagnostic, diag::Result};

/// The arrays of one level, by the names of INTERFACE section 1 (`pos`, `crd`, `end`, ...).
///
/// ```
/// use tamis_tensor::LevelArrays;
/// let arrays = LevelArrays::new([("pos", vec![0u32, 2].into()), ("crd", vec![0u32, 3].into())]);
/// assert_eq!(arrays.get("crd").unwrap().to_vec(), [0, 3]);
/// assert!(arrays.get("flags").is_none());
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LevelArrays {
    /// Each array with its name, in any order.
    pub arrays: Vec<(&'static str, IndexArray)>,
}

impl LevelArrays {
    /// These arrays.
    ///
    /// ```
    /// use tamis_tensor::LevelArrays;
    /// let list = LevelArrays::new([("pos", vec![0u32, 2].into()), ("crd", vec![1u32, 3].into())]);
    /// assert_eq!(list.arrays[1].0, "crd");
    /// ```
    pub fn new(arrays: impl IntoIterator<Item = (&'static str, IndexArray)>) -> LevelArrays {
        LevelArrays { arrays: arrays.into_iter().collect() }
    }

    /// The array of this name.
    ///
    /// ```
    /// use tamis_tensor::LevelArrays;
    /// let list = LevelArrays::new([("pos", vec![0u32, 2].into()), ("crd", vec![1u32, 3].into())]);
    /// assert_eq!(list.get("crd"), Some(&vec![1u32, 3].into()));
    /// ```
    pub fn get(&self, name: &str) -> Option<&IndexArray> {
        self.arrays.iter().find(|(n, _)| *n == name).map(|(_, array)| array)
    }

    /// Bytes in memory.
    ///
    /// ```
    /// use tamis_tensor::LevelArrays;
    /// let list = LevelArrays::new([("pos", vec![0u32, 2].into()), ("crd", vec![1u32, 3].into())]);
    /// assert_eq!(list.nbytes(), 16);
    /// ```
    pub fn nbytes(&self) -> usize {
        self.arrays.iter().map(|(_, array)| array.nbytes()).sum()
    }
}

/// The treatment of padding: coordinates that are stored without having been written.
///
/// ```
/// use tamis_ir::format::LevelKind;
/// use tamis_tensor::levels::{Padding, level_type};
/// assert_eq!(level_type(LevelKind::Dense)?.capabilities.padding, Padding::Adds);
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Padding {
    /// Stores every coordinate, written or not.
    Adds,
    /// Stores every coordinate between the first and the last written one.
    Between,
    /// Stores one coordinate for each parent, so padding above stays padding.
    Keeps,
    /// Stores only written coordinates, regardless of the parents.
    Removes,
}

/// The capabilities of a level, as data.
///
/// ```
/// use tamis_tensor::levels::LEVELS;
/// let random = LEVELS.iter().filter(|level| level.capabilities.random_access);
/// assert!(random.map(|level| level.kind.name()).any(|name| name == "bytemap"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Capabilities {
    /// Every coordinate of a fiber is stored.
    pub full: bool,
    /// The treatment of padding.
    pub padding: Padding,
    /// Some child positions are not stored; they are skipped, but the levels below have positions
    /// for them.
    pub holes: bool,
    /// A fiber holds exactly one coordinate.
    pub one_per_fiber: bool,
    /// Adjacent coordinates may share a child position: a run.
    pub shared: bool,
    /// A coordinate is located without search.
    pub random_access: bool,
    /// Coordinates may be written in any order.
    pub insert: bool,
    /// Coordinates may be written in increasing order.
    pub append: bool,
    /// Stored coordinates can be skipped by search (the protocol `gallop`).
    pub gallop: bool,
}

/// The output of [`Level::enumerate`], three arrays of one length.
///
/// ```
/// use tamis_tensor::levels::Enumeration;
/// # use tamis_ir::{Format, Value};
/// # use tamis_tensor::Tensor;
/// let values = vec![1.0, 0.0, 0.0, 4.0].into();
/// let a = Tensor::from_dense(&[2, 2], values, &Format::csr(), Value::F64(0.0))?;
/// let mut columns = Enumeration::default();
/// a.levels()[1].enumerate(&[0, 1], &mut columns);
/// assert_eq!((columns.parents, columns.coordinates), (vec![0, 1], vec![0, 1]));
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Enumeration {
    /// For each stored coordinate, the index of its parent in the list of parent positions.
    pub parents: Vec<usize>,
    /// The coordinate.
    pub coordinates: Vec<u64>,
    /// Its child position.
    pub positions: Vec<usize>,
}

impl Enumeration {
    fn push(&mut self, parent: usize, coordinate: u64, position: usize) {
        self.parents.push(parent);
        self.coordinates.push(coordinate);
        self.positions.push(position);
    }
}

/// The input of assembly: one node for each stored coordinate.
///
/// Nodes are sorted by parent position, then by coordinate. They are distinct, except for
/// `sparse(nonunique)`, which has one node for each distinct tuple of its own coordinate and those
/// of the singletons below it.
///
/// ```
/// use tamis_ir::format::{LevelKind, LevelSpec};
/// use tamis_tensor::levels::{Assemble, Nodes, level_type};
/// let nodes = Nodes { parents: &[0, 2], coordinates: &[1, 0], parent_count: 3, extent: 4 };
/// let Assemble::Coordinates(assemble) = level_type(LevelKind::Sparse)?.assemble else { panic!() };
/// let sparse = assemble(nodes, &LevelSpec::new(LevelKind::Sparse))?.level;
/// assert_eq!(sparse.arrays().get("pos").unwrap().to_vec(), [0, 1, 1, 2]);
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Nodes<'a> {
    /// The parent position of each node.
    pub parents: &'a [usize],
    /// The coordinate of each node, below `extent`.
    pub coordinates: &'a [u64],
    /// The number of parent positions, with or without nodes.
    pub parent_count: usize,
    /// The size of the dimension.
    pub extent: u64,
}

/// The input of assembly of runs: one node for each range of coordinates with equal sub-fibers.
///
/// They are sorted by parent position, then by coordinate, and do not overlap. Adjacent runs have
/// different sub-fibers.
///
/// ```
/// use tamis_ir::format::{LevelKind, LevelSpec};
/// use tamis_tensor::levels::{Assemble, Runs, level_type};
/// let runs = Runs { parents: &[0], starts: &[2], stops: &[7], parent_count: 1, extent: 10 };
/// let Assemble::Runs(assemble) = level_type(LevelKind::SparseRuns)?.assemble else { panic!() };
/// let level = assemble(runs, &LevelSpec::new(LevelKind::SparseRuns))?.level;
/// assert_eq!(level.stored(1), Some(5));
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Runs<'a> {
    /// The parent position of each run.
    pub parents: &'a [usize],
    /// The first coordinate of each run.
    pub starts: &'a [u64],
    /// One past the last coordinate of each run: above its start, and at most `extent`.
    pub stops: &'a [u64],
    /// The number of parent positions, with or without runs.
    pub parent_count: usize,
    /// The size of the dimension.
    pub extent: u64,
}

/// An assembled level, and the positions of its nodes.
///
/// ```
/// use tamis_ir::format::{LevelKind, LevelSpec};
/// use tamis_tensor::levels::{Assemble, Nodes, level_type};
/// let nodes = Nodes { parents: &[0, 2], coordinates: &[1, 0], parent_count: 3, extent: 4 };
/// let Assemble::Coordinates(assemble) = level_type(LevelKind::Sparse)?.assemble else { panic!() };
/// assert_eq!(assemble(nodes, &LevelSpec::new(LevelKind::Sparse))?.positions, [0, 1]);
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
#[derive(Debug)]
pub struct Assembled {
    /// The level.
    pub level: Arc<dyn Level>,
    /// The child position of each node; increasing, except in a singleton below a nonunique level.
    pub positions: Vec<usize>,
}

/// The assembly function of a level.
///
/// ```
/// use tamis_ir::format::LevelKind;
/// use tamis_tensor::levels::{Assemble, level_type};
/// assert!(matches!(level_type(LevelKind::Runs)?.assemble, Assemble::Runs(_)));
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
#[derive(Clone, Copy)]
pub enum Assemble {
    /// From coordinates, each with a sub-fiber of its own.
    Coordinates(fn(Nodes<'_>, &LevelSpec) -> Result<Assembled>),
    /// From runs of coordinates, each with one sub-fiber.
    Runs(fn(Runs<'_>, &LevelSpec) -> Result<Assembled>),
}

/// A contiguous range of coordinates of a fiber, and its child positions.
///
/// ```
/// use tamis_tensor::levels::FiberRange;
/// let run = FiberRange { start: 2, stop: 7, child: 3, shared: true };
/// assert_eq!(run.children(), 3..4);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FiberRange {
    /// The first coordinate.
    pub start: u64,
    /// One past the last coordinate.
    pub stop: u64,
    /// The child position of the first coordinate.
    pub child: usize,
    /// All coordinates share that child position; otherwise child positions are consecutive.
    pub shared: bool,
}

impl FiberRange {
    /// The child positions.
    ///
    /// ```
    /// use tamis_tensor::levels::FiberRange;
    /// let block = FiberRange { start: 2, stop: 7, child: 3, shared: false };
    /// assert_eq!(block.children(), 3..8);
    /// ```
    pub fn children(&self) -> Range<usize> {
        self.child..self.child + if self.shared { 1 } else { (self.stop - self.start) as usize }
    }

    /// Calls `each` with every coordinate and its child position.
    fn expand(&self, each: &mut dyn FnMut(u64, usize)) {
        for (k, coordinate) in (self.start..self.stop).enumerate() {
            each(coordinate, if self.shared { self.child } else { self.child + k });
        }
    }
}

/// The storage of one level. Its invariants (listed in its file) hold, so no method can fail for
/// parent positions below the count of the constructor.
///
/// ```
/// # use tamis_ir::{Format, Value};
/// # use tamis_tensor::Tensor;
/// let values = vec![1.0, 0.0, 0.0, 4.0].into();
/// let a = Tensor::from_dense(&[2, 2], values, &Format::csr(), Value::F64(0.0))?;
/// let columns = &a.levels()[1];
/// assert_eq!((columns.children(), columns.fiber_length(0)), (2, 1));
/// assert_eq!(columns.locate(0..1, 0), 0..1);
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
pub trait Level: fmt::Debug + Send + Sync {
    /// The row of [`LEVELS`] this level belongs to.
    ///
    /// ```
    /// # use tamis_ir::{Format, Value};
    /// # use tamis_tensor::Tensor;
    /// # let values = vec![1.0, 0.0, 0.0, 4.0].into();
    /// let a = Tensor::from_dense(&[2, 2], values, &Format::csr(), Value::F64(0.0))?;
    /// let columns = &a.levels()[1];
    /// assert_eq!(columns.level_type().kind, tamis_ir::format::LevelKind::Sparse);
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    fn level_type(&self) -> &'static LevelType;

    /// The number of child positions, stored or not.
    ///
    /// ```
    /// # use tamis_ir::{Format, Value};
    /// # use tamis_tensor::Tensor;
    /// # let values = vec![1.0, 0.0, 0.0, 4.0].into();
    /// let a = Tensor::from_dense(&[2, 2], values, &Format::csr(), Value::F64(0.0))?;
    /// let columns = &a.levels()[1];
    /// assert_eq!(columns.children(), 2);
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    fn children(&self) -> usize;

    /// The number of stored coordinates below `parents` stored parent positions, each the child of
    /// one coordinate above; `None` on overflow.
    ///
    /// ```
    /// # use tamis_ir::{Format, Value};
    /// # use tamis_tensor::Tensor;
    /// # let values = vec![1.0, 0.0, 0.0, 4.0].into();
    /// let a = Tensor::from_dense(&[2, 2], values, &Format::csr(), Value::F64(0.0))?;
    /// let columns = &a.levels()[1];
    /// assert_eq!(columns.stored(2), Some(2));
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    fn stored(&self, parents: usize) -> Option<usize>;

    /// The number of stored child positions below `parents` stored parent positions; `None` on
    /// overflow.
    ///
    /// ```
    /// # use tamis_ir::{Format, Value};
    /// # use tamis_tensor::Tensor;
    /// # let values = vec![1.0, 0.0, 0.0, 4.0].into();
    /// let a = Tensor::from_dense(&[2, 2], values, &Format::csr(), Value::F64(0.0))?;
    /// let columns = &a.levels()[1];
    /// assert_eq!(columns.occupied(2), Some(2), "positions are not shared");
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    fn occupied(&self, parents: usize) -> Option<usize> {
        self.stored(parents)
    }

    /// The number of stored coordinates below one parent position.
    ///
    /// ```
    /// # use tamis_ir::{Format, Value};
    /// # use tamis_tensor::Tensor;
    /// # let values = vec![1.0, 0.0, 0.0, 4.0].into();
    /// let a = Tensor::from_dense(&[2, 2], values, &Format::csr(), Value::F64(0.0))?;
    /// let columns = &a.levels()[1];
    /// assert_eq!(columns.fiber_length(1), 1);
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    fn fiber_length(&self, parent: usize) -> usize;

    /// Calls `each` with the segments below one parent position, in order (nonordered levels: in
    /// storage order).
    ///
    /// ```
    /// # use tamis_ir::{Format, Value};
    /// # use tamis_tensor::Tensor;
    /// # let values = vec![1.0, 0.0, 0.0, 4.0].into();
    /// let a = Tensor::from_dense(&[2, 2], values, &Format::csr(), Value::F64(0.0))?;
    /// let columns = &a.levels()[1];
    /// columns.ranges(1, &mut |range| assert_eq!((range.start, range.stop), (1, 2)));
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    fn ranges(&self, parent: usize, each: &mut dyn FnMut(FiberRange)) {
        self.visit(parent, &mut |coordinate, child| {
            each(FiberRange { start: coordinate, stop: coordinate + 1, child, shared: false });
        });
    }

    /// Calls `each` with every coordinate below one parent position, in the same order, and its
    /// child position; the coordinates of a run share one. Each level implements this method or
    /// [`Level::ranges`]; the other has a default.
    ///
    /// ```
    /// # use tamis_ir::{Format, Value};
    /// # use tamis_tensor::Tensor;
    /// # let values = vec![1.0, 0.0, 0.0, 4.0].into();
    /// let a = Tensor::from_dense(&[2, 2], values, &Format::csr(), Value::F64(0.0))?;
    /// let columns = &a.levels()[1];
    /// columns.visit(1, &mut |coordinate, child| assert_eq!((coordinate, child), (1, 1)));
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    fn visit(&self, parent: usize, each: &mut dyn FnMut(u64, usize)) {
        self.ranges(parent, &mut |range| range.expand(each));
    }

    /// Appends every coordinate below each of these parent positions.
    ///
    /// ```
    /// # use tamis_ir::{Format, Value};
    /// # use tamis_tensor::Tensor;
    /// # let values = vec![1.0, 0.0, 0.0, 4.0].into();
    /// let a = Tensor::from_dense(&[2, 2], values, &Format::csr(), Value::F64(0.0))?;
    /// let columns = &a.levels()[1];
    /// let mut entries = tamis_tensor::levels::Enumeration::default();
    /// columns.enumerate(&[0, 1], &mut entries);
    /// assert_eq!(entries.coordinates, [0, 1]);
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    fn enumerate(&self, parents: &[usize], out: &mut Enumeration) {
        for (k, parent) in parents.iter().enumerate() {
            self.visit(*parent, &mut |coordinate, position| out.push(k, coordinate, position));
        }
    }

    /// The child positions of a coordinate below `parents`: at most one, except for nonunique
    /// levels, whose several positions are the `parents` of the `singleton` below.
    ///
    /// ```
    /// # use tamis_ir::{Format, Value};
    /// # use tamis_tensor::Tensor;
    /// # let values = vec![1.0, 0.0, 0.0, 4.0].into();
    /// let a = Tensor::from_dense(&[2, 2], values, &Format::csr(), Value::F64(0.0))?;
    /// let columns = &a.levels()[1];
    /// assert!(columns.locate(1..2, 0).is_empty());
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    fn locate(&self, parents: Range<usize>, coordinate: u64) -> Range<usize>;

    /// The arrays, shared.
    ///
    /// ```
    /// # use tamis_ir::{Format, Value};
    /// # use tamis_tensor::Tensor;
    /// # let values = vec![1.0, 0.0, 0.0, 4.0].into();
    /// let a = Tensor::from_dense(&[2, 2], values, &Format::csr(), Value::F64(0.0))?;
    /// let columns = &a.levels()[1];
    /// assert_eq!(columns.arrays().get("crd").unwrap().to_vec(), [0, 1]);
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    fn arrays(&self) -> LevelArrays;
}

/// A row of [`LEVELS`]: the properties of a kind of level.
///
/// ```
/// use tamis_ir::format::LevelKind;
/// use tamis_tensor::levels::level_type;
/// let sparse = level_type(LevelKind::Sparse)?;
/// assert!(sparse.arrays.len() == 2 && sparse.capabilities.append);
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
pub struct LevelType {
    /// The kind in formats.
    pub kind: LevelKind,
    /// The arrays it takes, with the role, length, width and guarantees of each.
    pub arrays: &'static [ArraySpec],
    /// Its child positions.
    pub children: Children,
    /// Its capabilities.
    pub capabilities: Capabilities,
    /// Assembles a level from sorted nodes.
    pub assemble: Assemble,
    /// Constructs a level from foreign arrays, after checking every invariant of the level.
    pub from_arrays: fn(LevelArrays, &LevelSpec, Shape) -> Result<Arc<dyn Level>>,
    /// Constructs a level from arrays that a kernel wrote, truncated to their final length. Other
    /// invariants are trusted, not checked.
    pub finish: fn(LevelArrays, &LevelSpec, Shape) -> Result<Arc<dyn Level>>,
    /// Describes a fiber along a loop, for kernels that read it.
    pub unfurl: fn(&mut Fiber<'_>) -> Looplet,
    /// Locates one coordinate of a fiber, for kernels that do not loop over it.
    pub locate: fn(&mut Fiber<'_>) -> Located,
    /// Iteration over its positions in kernels; `None` if some are not stored, or are in another
    /// order.
    pub positions: Option<&'static dyn Positions>,
    /// The way kernels write it.
    pub write: &'static dyn Write,
}

impl fmt::Debug for LevelType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LevelType").field("kind", &self.kind).field("capabilities", &self.capabilities).finish()
    }
}

/// The size of a level: of its dimension, and of the level above.
///
/// ```
/// use tamis_ir::format::{LevelKind, LevelSpec};
/// use tamis_tensor::{LevelArrays, levels::{Shape, level_type}};
/// let (rows, shape) = (LevelSpec::new(LevelKind::Dense), Shape { parents: 1, extent: 5 });
/// let level = (level_type(LevelKind::Dense)?.from_arrays)(LevelArrays::default(), &rows, shape)?;
/// assert_eq!(level.children(), 5);
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The number of parent positions.
    pub parents: usize,
    /// The size of the dimension.
    pub extent: u64,
}

/// Every kind of level.
///
/// ```
/// use tamis_ir::format::LevelKind;
/// use tamis_tensor::levels::LEVELS;
/// assert_eq!(LEVELS.len(), LevelKind::ALL.len());
/// ```
pub static LEVELS: &[&LevelType] = &[
    &dense::TYPE,
    &sparse::TYPE,
    &singleton::TYPE,
    &runs::TYPE,
    &sparse_runs::TYPE,
    &interval::TYPE,
    &blocks::TYPE,
    &band::TYPE,
    &hash::TYPE,
    &bytemap::TYPE,
];

/// The row of a kind, or a diagnostic that names the supported kinds.
///
/// ```
/// use tamis_ir::format::LevelKind;
/// use tamis_tensor::levels::level_type;
/// assert_eq!(level_type(LevelKind::Band)?.kind, LevelKind::Band);
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
pub fn level_type(kind: LevelKind) -> Result<&'static LevelType> {
    LEVELS.iter().find(|row| row.kind == kind).copied().ok_or_else(|| {
        let names: Vec<String> = LEVELS.iter().map(|row| format!("`{}`", row.kind.name())).collect();
        Diagnostic::new(Code::E0605, format!("tensors cannot be stored in `{}` levels yet", kind.name()))
            .help(format!("use one of {}", names.join(", ")))
    })
}

/// The dimension that each level of a format stores; a diagnostic if the format splits or combines
/// dimensions.
///
/// ```
/// use tamis_ir::Format;
/// use tamis_tensor::levels::storage_order;
/// assert_eq!(storage_order(&Format::csc())?, [1, 0]);
/// assert!(storage_order(&Format::parse("bsr(4,4)", 2)?).is_err());
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
pub fn storage_order(format: &Format) -> Result<Vec<usize>> {
    for level in format.levels() {
        level_type(level.kind)?;
    }
    format.dim_order().ok_or_else(|| {
        Diagnostic::new(Code::E0605, format!("`{format}` cannot be used here yet: its map cuts or combines dimensions"))
            .help("use a format that only reorders dimensions, such as `csr`, `coo` or `(i,j) -> (j,i): dense, sparse`")
    })
}

/// A compressed level (`sparse` or `hash`) of arrays whose invariants are guaranteed by a direct
/// route: checking them again would cost as much as the conversion.
pub(crate) fn trusted_compressed(pos: IndexArray, crd: IndexArray, spec: &LevelSpec) -> Arc<dyn Level> {
    let row = if spec.kind == LevelKind::Hash { &hash::TYPE } else { &sparse::TYPE };
    sparse::trusted(row, pos, crd, spec)
}

/// A singleton level of coordinates that are in range, one for each parent.
pub(crate) fn trusted_singleton(crd: IndexArray) -> Arc<dyn Level> {
    singleton::trusted(crd)
}

pub(crate) use interval::second_run;

/// A level of runs (`runs`, `sparse_runs`, `interval`) whose invariants are guaranteed: those of
/// fiber p are from `pos[p]` to `pos[p+1]`.
pub(crate) fn trusted_runs(
    pos: &[u64],
    starts: &[u64],
    stops: &[u64],
    spec: &LevelSpec,
    shape: Shape,
) -> Result<Arc<dyn Level>> {
    let width = spec.crd.unwrap_or(Width::automatic(shape.extent));
    let end = IndexArray::with_width(stops, width)?;
    let pos = || IndexArray::with_width(pos, spec.pos.unwrap_or(Width::automatic(starts.len() as u64)));
    let start = || IndexArray::with_width(starts, width);
    Ok(match spec.kind {
        LevelKind::Runs => runs::trusted(pos()?, end, shape.extent),
        LevelKind::Interval => interval::trusted(start()?, end),
        _ => sparse_runs::trusted(pos()?, start()?, end),
    })
}

/// A coordinate list, or a list of blocks by their last coordinates, whose invariants are
/// guaranteed.
pub(crate) fn trusted_list(
    pos: &[u64],
    crd: &[u64],
    ofs: &[u64],
    spec: &LevelSpec,
    shape: Shape,
) -> Result<Arc<dyn Level>> {
    let pos = IndexArray::with_width(pos, spec.pos.unwrap_or(Width::automatic(crd.len() as u64)))?;
    let crd = IndexArray::with_width(crd, spec.crd.unwrap_or(Width::automatic(shape.extent.saturating_sub(1))))?;
    if spec.kind != LevelKind::Blocks {
        return Ok(trusted_compressed(pos, crd, spec));
    }
    let children = ofs.last().copied().unwrap_or(0);
    let ofs = IndexArray::with_width(ofs, spec.pos.unwrap_or(Width::automatic(children)))?;
    Ok(blocks::trusted(pos, crd, ofs))
}

/// A band of blocks, by their last coordinates, whose invariants are guaranteed.
pub(crate) fn trusted_band(last: &[u64], ofs: &[u64], spec: &LevelSpec, shape: Shape) -> Result<Arc<dyn Level>> {
    band::narrowed(last, ofs, shape.extent, spec)
}

/// A dense level.
pub(crate) fn dense_level(parents: usize, extent: u64) -> Result<Arc<dyn Level>> {
    (dense::TYPE.from_arrays)(LevelArrays::default(), &LevelSpec::new(LevelKind::Dense), Shape { parents, extent })
}
