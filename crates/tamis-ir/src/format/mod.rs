//! Storage formats: one level per storage dimension, outermost first, and a leaf.
//!
//! A [`Format`] has a fixed rank. A [`FormatSpec`] is the user's specification, which may take
//! the rank of its tensor (`dense`, `coo`, `csf`). [`FormatSpec::parse`] parses the text form,
//! `Display` prints it; a printed format parses to the same format.

pub mod map;
mod parse;
mod print;

use crate::algebra::Value;
use crate::diag::{Code, Diagnostic, Result};

/// The level formats of INTERFACE section 1.
///
/// ```
/// use tamis_ir::format::{Format, LevelKind};
/// assert_eq!(Format::csr().levels()[1].kind, LevelKind::Sparse);
/// assert_eq!(LevelKind::SparseRuns.name(), "sparse_runs");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum LevelKind {
    Dense,
    Sparse,
    Singleton,
    Runs,
    SparseRuns,
    Interval,
    Blocks,
    Band,
    Hash,
    Bytemap,
}

impl LevelKind {
    /// Every level, in the order of INTERFACE section 1.
    ///
    /// ```
    /// use tamis_ir::format::LevelKind;
    /// let words: Vec<&str> = LevelKind::ALL.into_iter().map(LevelKind::name).collect();
    /// assert!(words.contains(&"sparse") && words.contains(&"band"));
    /// ```
    pub const ALL: [LevelKind; 10] = [
        LevelKind::Dense,
        LevelKind::Sparse,
        LevelKind::Singleton,
        LevelKind::Runs,
        LevelKind::SparseRuns,
        LevelKind::Interval,
        LevelKind::Blocks,
        LevelKind::Band,
        LevelKind::Hash,
        LevelKind::Bytemap,
    ];

    /// The word users type.
    ///
    /// ```
    /// use tamis_ir::format::LevelKind;
    /// assert_eq!(LevelKind::SparseRuns.name(), "sparse_runs");
    /// ```
    pub const fn name(self) -> &'static str {
        match self {
            LevelKind::Dense => "dense",
            LevelKind::Sparse => "sparse",
            LevelKind::Singleton => "singleton",
            LevelKind::Runs => "runs",
            LevelKind::SparseRuns => "sparse_runs",
            LevelKind::Interval => "interval",
            LevelKind::Blocks => "blocks",
            LevelKind::Band => "band",
            LevelKind::Hash => "hash",
            LevelKind::Bytemap => "bytemap",
        }
    }

    /// True if it has an array of positions (`pos` or `ofs`), whose width may be specified.
    ///
    /// ```
    /// use tamis_ir::format::LevelKind;
    /// assert!(LevelKind::Sparse.has_positions() && !LevelKind::Dense.has_positions());
    /// ```
    pub const fn has_positions(self) -> bool {
        !matches!(self, LevelKind::Dense | LevelKind::Singleton | LevelKind::Interval)
    }
}

/// The number of bits of a stored position or coordinate.
///
/// ```
/// use tamis_ir::format::Width;
/// assert_eq!(Width::automatic(70_000), Width::U32);
/// assert_eq!((Width::U16.max(), Width::U16.size()), (65_535, 2));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Width {
    U8,
    U16,
    U32,
    U64,
}

impl Width {
    /// All widths, narrowest first.
    ///
    /// ```
    /// use tamis_ir::format::Width;
    /// assert_eq!(Width::ALL.map(Width::name), ["u8", "u16", "u32", "u64"]);
    /// ```
    pub const ALL: [Width; 4] = [Width::U8, Width::U16, Width::U32, Width::U64];

    /// The word users type.
    ///
    /// ```
    /// use tamis_ir::format::Width;
    /// assert_eq!(Width::U16.name(), "u16");
    /// ```
    pub const fn name(self) -> &'static str {
        match self {
            Width::U8 => "u8",
            Width::U16 => "u16",
            Width::U32 => "u32",
            Width::U64 => "u64",
        }
    }

    /// The largest number that fits.
    ///
    /// ```
    /// use tamis_ir::format::Width;
    /// assert_eq!(Width::U8.max(), 255);
    /// ```
    pub const fn max(self) -> u64 {
        match self {
            Width::U8 => u8::MAX as u64,
            Width::U16 => u16::MAX as u64,
            Width::U32 => u32::MAX as u64,
            Width::U64 => u64::MAX,
        }
    }

    /// Bytes of one number.
    ///
    /// ```
    /// use tamis_ir::format::Width;
    /// assert_eq!(Width::U32.size(), 4);
    /// ```
    pub const fn size(self) -> usize {
        match self {
            Width::U8 => 1,
            Width::U16 => 2,
            Width::U32 => 4,
            Width::U64 => 8,
        }
    }

    /// The default width: the smaller of 32 and 64 bits that holds `largest`.
    ///
    /// ```
    /// use tamis_ir::format::Width;
    /// assert_eq!(Width::automatic(1_000), Width::U32);
    /// assert_eq!(Width::automatic(5_000_000_000), Width::U64);
    /// ```
    pub const fn automatic(largest: u64) -> Width {
        if largest <= u32::MAX as u64 { Width::U32 } else { Width::U64 }
    }
}

/// One level: its kind, and its specified properties.
///
/// ```
/// use tamis_ir::format::{Format, Leaf, LevelKind, LevelSpec, Width};
/// let columns = LevelSpec { crd: Some(Width::U16), ..LevelSpec::new(LevelKind::Sparse) };
/// let format = Format::row_major(vec![LevelSpec::new(LevelKind::Dense), columns], Leaf::Pattern)?;
/// assert_eq!(format.levels()[1].crd, Some(Width::U16));
/// # Ok::<(), tamis_ir::Diagnostic>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub struct LevelSpec {
    pub kind: LevelKind,
    /// A coordinate may repeat, once for each entry below it (COO's outer level).
    pub nonunique: bool,
    /// The coordinates of a fiber are stored in any order, each once.
    pub nonordered: bool,
    /// The width of positions (`pos`, `ofs`), if specified.
    pub pos: Option<Width>,
    /// The width of coordinates (`crd`, `start`, `end`), if specified.
    pub crd: Option<Width>,
}

impl LevelSpec {
    /// A level without specified properties.
    ///
    /// ```
    /// use tamis_ir::format::{Format, LevelKind, LevelSpec};
    /// assert_eq!(Format::csr().levels()[1], LevelSpec::new(LevelKind::Sparse));
    /// ```
    pub const fn new(kind: LevelKind) -> LevelSpec {
        LevelSpec { kind, nonunique: false, nonordered: false, pos: None, crd: None }
    }
}

/// The contents below the last level.
///
/// ```
/// use tamis_ir::{Value, format::{FormatSpec, Leaf}};
/// assert_eq!(FormatSpec::parse("csr; pattern")?.leaf(), Leaf::Pattern);
/// assert_eq!(FormatSpec::parse("csr; element(1)")?.leaf(), Leaf::Element(Some(Value::I64(1))));
/// # Ok::<(), tamis_ir::Diagnostic>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Leaf {
    /// A value array; coordinates that are not stored hold the fill (0 by default).
    Element(Option<Value>),
    /// No values: stored coordinates are `true`, all others `false`.
    Pattern,
}

/// The coordinate that a level stores, as an expression of the tensor's dimensions (numbered from
/// 0).
///
/// ```
/// use tamis_ir::format::{DimExpr, Format};
/// let blocks = Format::parse("bsr(4,4)", 2)?;
/// assert_eq!(blocks.map()[..2], [DimExpr::Div(0, 4), DimExpr::Div(1, 4)]);
/// # Ok::<(), tamis_ir::Diagnostic>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DimExpr {
    /// The dimension itself.
    Dim(usize),
    /// The dimension divided by a constant, rounding down.
    Div(usize, u64),
    /// The dimension modulo a constant.
    Mod(usize, u64),
    /// The difference of two dimensions (DIA's `j-i`).
    Diff(usize, usize),
}

/// The storage of a tensor of known rank.
///
/// ```
/// use tamis_ir::format::Format;
/// let csc = Format::parse("(i,j) -> (j,i): dense, sparse", 2).unwrap();
/// assert_eq!(csc, Format::parse("csc", 2).unwrap());
/// assert_eq!(csc.dim_order(), Some(vec![1, 0]));
/// assert_eq!(csc.to_string(), "csc");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Format {
    rank: usize,
    map: Vec<DimExpr>,
    levels: Vec<LevelSpec>,
    leaf: Leaf,
    ism: Option<Ism>,
}

/// Insert, sort, merge: the workspace of a tensor whose elements are written in any order.
///
/// ```
/// use tamis_ir::Format;
/// let workspace = Format::parse("ism(hash, 1024)", 2)?;
/// let ism = workspace.ism().unwrap();
/// assert_eq!((ism.policy.as_str(), ism.capacity), ("hash", Some(1024)));
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Ism {
    /// The insertion policy: `coord`, `hash`, `bucket`, or a user-defined one.
    pub policy: String,
    /// The number of insertions that are buffered before they are sorted and merged, if specified.
    pub capacity: Option<u64>,
    /// A worker thread sorts and merges while the kernel inserts.
    pub pipelined: bool,
}

/// The largest rank of a tensor.
///
/// ```
/// use tamis_ir::Format;
/// use tamis_ir::format::MAX_RANK;
/// assert!(Format::parse("coo", MAX_RANK).is_ok() && Format::parse("coo", MAX_RANK + 1).is_err());
/// ```
pub const MAX_RANK: usize = 32;

impl Format {
    /// A format from its components, verified.
    ///
    /// ```
    /// use tamis_ir::format::{DimExpr, Format, Leaf, LevelKind, LevelSpec};
    /// let levels = [LevelKind::Dense, LevelKind::Sparse].map(LevelSpec::new).to_vec();
    /// let columns_first = vec![DimExpr::Dim(1), DimExpr::Dim(0)];
    /// assert_eq!(Format::new(2, columns_first, levels, Leaf::Element(None))?, Format::csc());
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn new(rank: usize, map: Vec<DimExpr>, levels: Vec<LevelSpec>, leaf: Leaf) -> Result<Format> {
        let format = Format { rank, map, levels, leaf, ism: None };
        format.check()?;
        Ok(format)
    }

    /// A format whose levels store the dimensions in their order.
    ///
    /// ```
    /// use tamis_ir::format::{Format, Leaf, LevelKind, LevelSpec};
    /// let levels = [LevelKind::Sparse, LevelKind::Sparse].map(LevelSpec::new).to_vec();
    /// assert_eq!(Format::row_major(levels, Leaf::Element(None))?, Format::parse("dcsr", 2)?);
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn row_major(levels: Vec<LevelSpec>, leaf: Leaf) -> Result<Format> {
        let rank = levels.len();
        Format::new(rank, (0..rank).map(DimExpr::Dim).collect(), levels, leaf)
    }

    /// Reads a format for a tensor of the given rank.
    ///
    /// ```
    /// use tamis_ir::Format;
    /// assert_eq!(Format::parse("dense, sparse", 2)?, Format::csr());
    /// assert!(Format::parse("csr", 3).is_err());
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn parse(text: &str, rank: usize) -> Result<Format> {
        FormatSpec::parse(text)?.with_rank(rank)
    }

    /// The dense format of a rank.
    ///
    /// ```
    /// use tamis_ir::Format;
    /// assert_eq!(Format::dense(2), Format::parse("dense, dense", 2)?);
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn dense(rank: usize) -> Format {
        Format::uniform(LevelKind::Dense, rank)
    }

    /// The coordinate format of a rank.
    ///
    /// ```
    /// use tamis_ir::Format;
    /// assert_eq!(Format::coo(3), Format::parse("coo", 3)?);
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn coo(rank: usize) -> Format {
        ShortName::Coo.levels(rank)
    }

    /// Compressed sparse rows.
    ///
    /// ```
    /// use tamis_ir::Format;
    /// assert_eq!(Format::csr().long_name(), "dense, sparse");
    /// ```
    pub fn csr() -> Format {
        Format {
            rank: 2,
            map: vec![DimExpr::Dim(0), DimExpr::Dim(1)],
            levels: vec![LevelSpec::new(LevelKind::Dense), LevelSpec::new(LevelKind::Sparse)],
            leaf: Leaf::Element(None),
            ism: None,
        }
    }

    /// Compressed sparse columns.
    ///
    /// ```
    /// use tamis_ir::Format;
    /// assert_eq!(Format::csc().long_name(), "(i,j) -> (j,i): dense, sparse");
    /// ```
    pub fn csc() -> Format {
        Format { map: vec![DimExpr::Dim(1), DimExpr::Dim(0)], ..Format::csr() }
    }

    /// The same level for each dimension, in order.
    ///
    /// ```
    /// use tamis_ir::format::{Format, LevelKind};
    /// assert_eq!(Format::uniform(LevelKind::Sparse, 3), Format::parse("csf", 3)?);
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn uniform(kind: LevelKind, rank: usize) -> Format {
        Format {
            rank,
            map: (0..rank).map(DimExpr::Dim).collect(),
            levels: vec![LevelSpec::new(kind); rank],
            leaf: Leaf::Element(None),
            ism: None,
        }
    }

    /// The number of dimensions of the tensor (the number of levels may be larger).
    ///
    /// ```
    /// use tamis_ir::Format;
    /// let blocks = Format::parse("bsr(4,4)", 2)?;
    /// assert_eq!((blocks.rank(), blocks.levels().len()), (2, 4));
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// The expression that each level stores, outermost first.
    ///
    /// ```
    /// use tamis_ir::format::{DimExpr, Format};
    /// assert_eq!(Format::csc().map(), [DimExpr::Dim(1), DimExpr::Dim(0)]);
    /// ```
    pub fn map(&self) -> &[DimExpr] {
        &self.map
    }

    /// The levels, outermost first.
    ///
    /// ```
    /// use tamis_ir::format::{Format, LevelKind};
    /// let kinds: Vec<LevelKind> = Format::csr().levels().iter().map(|level| level.kind).collect();
    /// assert_eq!(kinds, [LevelKind::Dense, LevelKind::Sparse]);
    /// ```
    pub fn levels(&self) -> &[LevelSpec] {
        &self.levels
    }

    /// The leaf below the last level.
    ///
    /// ```
    /// use tamis_ir::format::{Format, Leaf};
    /// assert_eq!(Format::parse("csr; pattern", 2)?.leaf(), Leaf::Pattern);
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn leaf(&self) -> Leaf {
        self.leaf
    }

    /// The same levels with another leaf.
    ///
    /// ```
    /// use tamis_ir::format::{Format, Leaf};
    /// assert_eq!(Format::csr().with_leaf(Leaf::Pattern), Format::parse("csr; pattern", 2)?);
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn with_leaf(mut self, leaf: Leaf) -> Format {
        self.leaf = leaf;
        self
    }

    /// The same format with coordinates of this width in all levels that store coordinates.
    ///
    /// ```
    /// use tamis_ir::format::{Format, Width};
    /// assert_eq!(Format::csr().with_coordinates(Width::U16).to_string(), "dense, sparse[_,u16]");
    /// ```
    pub fn with_coordinates(mut self, width: Width) -> Format {
        self.levels.iter_mut().filter(|level| level.kind != LevelKind::Dense).for_each(|level| level.crd = Some(width));
        self
    }

    /// A workspace whose levels store these dimensions, each once.
    ///
    /// ```
    /// use tamis_ir::format::{DimExpr, Format, Ism, Leaf};
    /// let ism = Ism { policy: "hash".to_string(), capacity: None, pipelined: false };
    /// let columns_first = vec![DimExpr::Dim(1), DimExpr::Dim(0)];
    /// let workspace = Format::workspace(columns_first, ism, Leaf::Element(None));
    /// assert_eq!(workspace.dim_order(), Some(vec![1, 0]));
    /// ```
    pub fn workspace(map: Vec<DimExpr>, ism: Ism, leaf: Leaf) -> Format {
        let rank = map.len();
        Format { map, ism: Some(ism), ..ShortName::Coo.levels(rank).with_leaf(leaf) }
    }

    /// The workspace, if results are inserted, sorted and merged; the levels are then coordinate
    /// levels.
    ///
    /// ```
    /// use tamis_ir::Format;
    /// assert!(Format::parse("ism(coord)", 2)?.ism().is_some() && Format::coo(2).ism().is_none());
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn ism(&self) -> Option<&Ism> {
        self.ism.as_ref()
    }

    /// The format of the finished tensor: its levels, without the workspace.
    ///
    /// ```
    /// use tamis_ir::format::Format;
    /// let workspace = Format::parse("ism(coord, 1024)", 2).unwrap();
    /// assert_eq!(workspace.without_workspace(), Format::coo(2));
    /// ```
    pub fn without_workspace(mut self) -> Format {
        self.ism = None;
        self
    }

    /// The dimension that each level stores, if the map is a permutation.
    ///
    /// ```
    /// use tamis_ir::Format;
    /// assert_eq!(Format::csc().dim_order(), Some(vec![1, 0]));
    /// assert_eq!(Format::parse("bsr(4,4)", 2)?.dim_order(), None);
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn dim_order(&self) -> Option<Vec<usize>> {
        self.map
            .iter()
            .map(|e| match e {
                DimExpr::Dim(d) => Some(*d),
                _ => None,
            })
            .collect()
    }

    /// True if every coordinate is stored.
    ///
    /// ```
    /// use tamis_ir::Format;
    /// assert!(Format::dense(2).is_all_dense() && !Format::csr().is_all_dense());
    /// ```
    pub fn is_all_dense(&self) -> bool {
        self.levels.iter().all(|l| l.kind == LevelKind::Dense)
    }

    fn check(&self) -> Result<()> {
        if self.rank > MAX_RANK {
            return Err(Diagnostic::new(
                Code::E0603,
                format!("a tensor has at most {MAX_RANK} dimensions, not {}", self.rank),
            )
            .help("combine dimensions, as in `A[4*i + j]`"));
        }
        if self.map.len() != self.levels.len() {
            let message = format!("the map has {} coordinates for {} levels", self.map.len(), self.levels.len());
            return Err(Diagnostic::new(Code::E0603, message).help("write one level for each coordinate of the map"));
        }
        self.check_map()?;
        self.check_levels()
    }

    /// Every dimension is stored as itself, as quotient and remainder of one divisor, or (once) as
    /// a difference.
    fn check_map(&self) -> Result<()> {
        let bad = |message: String| {
            Err(Diagnostic::new(Code::E0606, message)
                .help("name each dimension once, as in `(i,j) -> (j,i)`, or once divided and once modulo, as in `(i,j) -> (i/4, j/4, i%4, j%4)`"))
        };
        for d in 0..self.rank {
            let uses: Vec<&DimExpr> = self
                .map
                .iter()
                .filter(|e| match e {
                    DimExpr::Dim(x) | DimExpr::Div(x, _) | DimExpr::Mod(x, _) | DimExpr::Diff(x, _) => *x == d,
                })
                .collect();
            let name = print::dim_name(d);
            match uses[..] {
                [DimExpr::Dim(_) | DimExpr::Diff(..)] => {}
                [DimExpr::Div(_, a), DimExpr::Mod(_, b)] | [DimExpr::Mod(_, a), DimExpr::Div(_, b)]
                    if a == b && *a > 0 => {}
                [] => return bad(format!("no level stores dimension {name}")),
                _ => return bad(format!("dimension {name} is not stored exactly once")),
            }
        }
        for e in &self.map {
            if let DimExpr::Diff(a, b) = e
                && (a == b || *b >= self.rank || !self.map.contains(&DimExpr::Dim(*b)))
            {
                return bad("a difference needs another level that stores its second dimension".to_string());
            }
        }
        Ok(())
    }

    fn check_levels(&self) -> Result<()> {
        for (k, level) in self.levels.iter().enumerate() {
            let below = self.levels.get(k + 1);
            if level.nonunique && level.kind != LevelKind::Sparse {
                let message = format!("`{}` cannot be nonunique", level.kind.name());
                return Err(
                    Diagnostic::new(Code::E0604, message).help("only `sparse(nonunique)` may repeat coordinates")
                );
            }
            if level.nonunique && below.is_some_and(|b| b.kind != LevelKind::Singleton) {
                let message = format!("`{}` cannot be below `sparse(nonunique)`", self.levels[k + 1].kind.name());
                return Err(Diagnostic::new(Code::E0604, message)
                    .note("a nonunique level stores one coordinate per element, so the level below stores exactly one")
                    .help("write `sparse(nonunique), singleton`, or make the outer level `sparse`"));
            }
            if level.nonordered {
                self.check_nonordered(k)?;
            }
            let has_pos = level.kind.has_positions();
            if (level.pos.is_some() && !has_pos) || (level.crd.is_some() && level.kind == LevelKind::Dense) {
                let message = format!("`{}` has no such arrays, so it takes no width", level.kind.name());
                return Err(
                    Diagnostic::new(Code::E0604, message).help("leave the widths out, or write `singleton[u32]`")
                );
            }
        }
        Ok(())
    }

    /// Unordered coordinate lists: coordinates must be unique, and no level below may depend on
    /// their order.
    fn check_nonordered(&self, k: usize) -> Result<()> {
        let level = self.levels[k];
        let wrong = |message: String| Diagnostic::new(Code::E0604, message);
        if level.kind != LevelKind::Sparse {
            return Err(wrong(format!("`{}` cannot be nonordered", level.kind.name()))
                .help("only `sparse(nonordered)` may store unsorted coordinates"));
        }
        if level.nonunique {
            return Err(wrong("a level cannot be both nonunique and nonordered".to_string())
                .note("equal coordinates form one fiber only if they are adjacent")
                .help("write `sparse(nonordered)`, whose coordinates are unique, or `sparse(nonunique)`"));
        }
        if k + 1 < self.levels.len() {
            return Err(wrong(format!("`{}` is below `sparse(nonordered)`", self.levels[k + 1].kind.name()))
                .note("only the last level of a format can be nonordered")
                .help("write `sparse` there, and `sparse(nonordered)` for the last level, as in `dense, sparse(nonordered)`"));
        }
        Ok(())
    }
}

/// A short name that takes the rank of the tensor.
///
/// ```
/// use tamis_ir::format::{FormatSpec, Leaf, ShortName};
/// let csf = FormatSpec::AnyRank(ShortName::Csf, Leaf::Element(None));
/// assert_eq!(FormatSpec::parse("csf")?, csf);
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum ShortName {
    Dense,
    Coo,
    Csf,
}

impl ShortName {
    fn name(self) -> &'static str {
        match self {
            ShortName::Dense => "dense",
            ShortName::Coo => "coo",
            ShortName::Csf => "csf",
        }
    }

    fn levels(self, rank: usize) -> Format {
        match self {
            ShortName::Dense => Format::uniform(LevelKind::Dense, rank),
            ShortName::Csf => Format::uniform(LevelKind::Sparse, rank),
            ShortName::Coo => {
                let mut format = Format::uniform(LevelKind::Singleton, rank);
                if let Some(first) = format.levels.first_mut() {
                    // With one dimension, no level below could distinguish equal coordinates.
                    *first = LevelSpec { nonunique: rank > 1, ..LevelSpec::new(LevelKind::Sparse) };
                }
                format
            }
        }
    }
}

/// A user's specification of a format, of one rank or of any.
///
/// ```
/// use tamis_ir::format::FormatSpec;
/// let coo = FormatSpec::parse("coo").unwrap();
/// assert_eq!(coo.with_rank(3).unwrap().to_string(), "sparse(nonunique), singleton, singleton");
/// assert!(FormatSpec::parse("csr").unwrap().with_rank(3).is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum FormatSpec {
    /// `dense`, `coo` or `csf`, with a leaf.
    AnyRank(ShortName, Leaf),
    /// A workspace, which takes the rank of the tensor unless it names dimensions.
    Ism(Ism, Leaf),
    /// A format of a fixed rank.
    Fixed(Format),
}

impl FormatSpec {
    /// Reads a format. The diagnostic's labels point into `text`.
    ///
    /// ```
    /// use tamis_ir::FormatSpec;
    /// assert_eq!(FormatSpec::parse("csr")?.rank(), Some(2));
    /// let mistake = FormatSpec::parse("dense, sparce").unwrap_err();
    /// assert!(mistake.help.iter().any(|help| help.contains("sparse")));
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn parse(text: &str) -> Result<FormatSpec> {
        parse::parse(text)
    }

    /// The specified leaf.
    ///
    /// ```
    /// use tamis_ir::format::{FormatSpec, Leaf};
    /// assert_eq!(FormatSpec::parse("csf; pattern")?.leaf(), Leaf::Pattern);
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn leaf(&self) -> Leaf {
        match self {
            FormatSpec::AnyRank(_, leaf) | FormatSpec::Ism(_, leaf) => *leaf,
            FormatSpec::Fixed(format) => format.leaf,
        }
    }

    /// The rank, if only one is possible.
    ///
    /// ```
    /// use tamis_ir::FormatSpec;
    /// assert_eq!(FormatSpec::parse("csr")?.rank(), Some(2));
    /// assert_eq!(FormatSpec::parse("coo")?.rank(), None);
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn rank(&self) -> Option<usize> {
        match self {
            FormatSpec::AnyRank(..) | FormatSpec::Ism(..) => None,
            FormatSpec::Fixed(format) => Some(format.rank),
        }
    }

    /// The format for a tensor of this rank.
    ///
    /// ```
    /// use tamis_ir::{Format, FormatSpec};
    /// assert_eq!(FormatSpec::parse("coo")?.with_rank(3)?, Format::coo(3));
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn with_rank(&self, rank: usize) -> Result<Format> {
        match self {
            _ if rank > MAX_RANK => {
                Err(Diagnostic::new(Code::E0603, format!("a tensor has at most {MAX_RANK} dimensions, not {rank}"))
                    .help("combine dimensions, as in `A[4*i + j]`"))
            }
            FormatSpec::AnyRank(name, leaf) => Ok(name.levels(rank).with_leaf(*leaf)),
            FormatSpec::Ism(ism, leaf) => {
                Ok(Format { ism: Some(ism.clone()), ..ShortName::Coo.levels(rank).with_leaf(*leaf) })
            }
            FormatSpec::Fixed(format) if format.rank == rank => Ok(format.clone()),
            FormatSpec::Fixed(format) => {
                let message =
                    format!("the format `{format}` is for rank {}, but the tensor has rank {rank}", format.rank);
                let example = match rank {
                    0 => "`dense`".to_string(),
                    1 => "`dense` or `sparse`".to_string(),
                    2 => "`csr`, `coo` or `dense`".to_string(),
                    _ => format!("`csf`, `coo`, `dense` or {rank} levels"),
                };
                Err(Diagnostic::new(Code::E0603, message).help(format!("for rank {rank} write {example}")))
            }
        }
    }
}

impl From<Format> for FormatSpec {
    fn from(format: Format) -> FormatSpec {
        FormatSpec::Fixed(format)
    }
}
