//! Array descriptions: the role, length, width and guarantees of each array of a level, as data.
//!
//! A level lists its arrays in its row. Everyone else asks for roles, lengths and guarantees: the
//! lowerer chooses widths and records assumptions, threads concatenate results, and calls count
//! elements without knowing the level or the name of an array. Names serve users and messages only.

use super::LevelType;
use tamis_ir::format::{LevelSpec, Width};

/// The meaning of an array's elements.
///
/// ```
/// use tamis_ir::format::LevelKind;
/// use tamis_tensor::levels::{ArrayRole, level_type};
/// let roles = level_type(LevelKind::Sparse)?.arrays.iter().map(|array| array.role);
/// assert!(roles.eq([ArrayRole::FiberOffsets, ArrayRole::Coordinates]));
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ArrayRole {
    /// For each parent position, the first stored element of its fiber; one more, for the end.
    FiberOffsets,
    /// The coordinate of each stored element.
    Coordinates,
    /// The last coordinate of each block.
    BlockEnds,
    /// For each block, the child position of its first coordinate; one more, for the end.
    BlockOffsets,
    /// The first coordinate of each run.
    RunStarts,
    /// One past the last coordinate of each run.
    RunEnds,
    /// For each coordinate of each fiber, 1 if it is stored and 0 otherwise.
    Flags,
}

impl ArrayRole {
    /// True if a coordinate or run appends one element.
    ///
    /// ```
    /// use tamis_tensor::levels::ArrayRole;
    /// assert!(ArrayRole::Coordinates.is_appended() && !ArrayRole::FiberOffsets.is_appended());
    /// ```
    pub fn is_appended(self) -> bool {
        matches!(self, ArrayRole::Coordinates | ArrayRole::BlockEnds | ArrayRole::RunStarts | ArrayRole::RunEnds)
    }

    /// True if the arrays of consecutive ranges of fibers concatenate: as they are, or, for fiber
    /// offsets, after the addition of the number of elements before.
    ///
    /// ```
    /// use tamis_tensor::levels::ArrayRole;
    /// assert!(ArrayRole::Coordinates.concatenates() && !ArrayRole::Flags.concatenates());
    /// ```
    pub fn concatenates(self) -> bool {
        match self {
            ArrayRole::FiberOffsets | ArrayRole::Coordinates | ArrayRole::RunStarts | ArrayRole::RunEnds => true,
            ArrayRole::BlockEnds | ArrayRole::BlockOffsets | ArrayRole::Flags => false,
        }
    }
}

/// The length of an array.
///
/// ```
/// use tamis_ir::format::LevelKind;
/// use tamis_tensor::levels::{ArrayLength, level_type};
/// let offsets = level_type(LevelKind::Sparse)?.array_named("pos").unwrap();
/// assert_eq!(offsets.length, ArrayLength::ParentsPlusOne);
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ArrayLength {
    /// One element for each parent position.
    Parents,
    /// One element for each parent position, and one more.
    ParentsPlusOne,
    /// One element for each stored element: as many as the last fiber offset says.
    Stored,
    /// One element for each stored element, and one more.
    StoredPlusOne,
    /// One element for each coordinate of each parent position.
    Cells,
}

/// The width of an array that the program writes, unless its format specifies one.
///
/// ```
/// use tamis_ir::format::{LevelKind, Width};
/// use tamis_tensor::levels::{WidthRule, level_type};
/// let flags = level_type(LevelKind::Bytemap)?.array_named("flags").unwrap();
/// assert_eq!(flags.width, WidthRule::Fixed(Width::U8));
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WidthRule {
    /// Positions: the width that the format specifies for positions, or wide enough for all of them.
    Positions,
    /// Coordinates: the width that the format specifies for coordinates, or wide enough for the
    /// greatest one.
    Coordinates,
    /// Exclusive ends: as coordinates, but the extent itself must fit, too.
    Ends,
    /// This width.
    Fixed(Width),
}

/// An array of a level.
///
/// ```
/// use tamis_ir::format::LevelKind;
/// use tamis_tensor::levels::level_type;
/// let coordinates = level_type(LevelKind::Sparse)?.array_named("crd").unwrap();
/// assert!(coordinates.below_extent && !coordinates.nondecreasing);
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArraySpec {
    /// The name that users and messages see.
    pub name: &'static str,
    /// The meaning of its elements.
    pub role: ArrayRole,
    /// Its length.
    pub length: ArrayLength,
    /// Its width.
    pub width: WidthRule,
    /// Guarantee: no element is less than the one before it.
    pub nondecreasing: bool,
    /// Guarantee: every element is below the extent of the level.
    pub below_extent: bool,
}

/// The child positions of a level.
///
/// ```
/// use tamis_ir::format::LevelKind;
/// use tamis_tensor::levels::{Children, level_type};
/// assert_eq!(level_type(LevelKind::Dense)?.children, Children::Cells);
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Children {
    /// One for each coordinate of each parent position.
    Cells,
    /// One for each element of the array with this role, whose index is the child position.
    Elements(ArrayRole),
    /// As many as the last element of the array with this role says.
    LastOffset(ArrayRole),
}

const fn spec(name: &'static str, role: ArrayRole, length: ArrayLength, width: WidthRule) -> ArraySpec {
    ArraySpec { name, role, length, width, nondecreasing: false, below_extent: false }
}

/// `pos`: the offsets of fibers in the arrays of stored elements.
pub(crate) const FIBER_OFFSETS: ArraySpec = ArraySpec {
    nondecreasing: true,
    ..spec("pos", ArrayRole::FiberOffsets, ArrayLength::ParentsPlusOne, WidthRule::Positions)
};

/// `crd`: the coordinates of stored elements.
pub(crate) const COORDINATES: ArraySpec = ArraySpec {
    below_extent: true,
    ..spec("crd", ArrayRole::Coordinates, ArrayLength::Stored, WidthRule::Coordinates)
};

/// `crd`: the last coordinates of blocks.
pub(crate) const BLOCK_ENDS: ArraySpec = ArraySpec { role: ArrayRole::BlockEnds, ..COORDINATES };

/// `ofs`: the offsets of blocks in the level below.
pub(crate) const BLOCK_OFFSETS: ArraySpec = ArraySpec {
    nondecreasing: true,
    ..spec("ofs", ArrayRole::BlockOffsets, ArrayLength::StoredPlusOne, WidthRule::Positions)
};

/// `start`: the first coordinates of runs. An empty run may start at the extent.
pub(crate) const RUN_STARTS: ArraySpec =
    spec("start", ArrayRole::RunStarts, ArrayLength::Stored, WidthRule::Coordinates);

/// `end`: the exclusive ends of runs.
pub(crate) const RUN_ENDS: ArraySpec = spec("end", ArrayRole::RunEnds, ArrayLength::Stored, WidthRule::Ends);

/// `flags`: one byte for each coordinate of each parent position.
pub(crate) const FLAGS: ArraySpec = spec("flags", ArrayRole::Flags, ArrayLength::Cells, WidthRule::Fixed(Width::U8));

impl ArraySpec {
    /// The array for a level with at most one element for each parent position: it has that length.
    ///
    /// ```
    /// use tamis_ir::format::LevelKind;
    /// use tamis_tensor::levels::{ArrayLength, level_type};
    /// let coordinates = level_type(LevelKind::Sparse)?.array_named("crd").unwrap();
    /// assert_eq!(coordinates.for_each_parent().length, ArrayLength::Parents);
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub const fn for_each_parent(self) -> ArraySpec {
        let length = match self.length {
            ArrayLength::Stored => ArrayLength::Parents,
            ArrayLength::StoredPlusOne => ArrayLength::ParentsPlusOne,
            other => other,
        };
        ArraySpec { length, ..self }
    }

    /// The width of the array in a level of this extent with at most `positions` positions.
    ///
    /// ```
    /// use tamis_ir::format::{LevelKind, LevelSpec, Width};
    /// use tamis_tensor::levels::level_type;
    /// let coordinates = level_type(LevelKind::Sparse)?.array_named("crd").unwrap();
    /// let columns = LevelSpec { crd: Some(Width::U16), ..LevelSpec::new(LevelKind::Sparse) };
    /// assert_eq!(coordinates.width(&columns, 1000, 5000), Width::U16);
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn width(&self, level: &LevelSpec, extent: u64, positions: u64) -> Width {
        match self.width {
            WidthRule::Positions => level.pos.unwrap_or(Width::automatic(positions)),
            WidthRule::Coordinates => level.crd.unwrap_or(Width::automatic(extent.saturating_sub(1))),
            WidthRule::Ends => level.crd.unwrap_or(Width::automatic(extent)),
            WidthRule::Fixed(width) => width,
        }
    }

    /// The width that a format specifies for the array, if it does.
    ///
    /// ```
    /// use tamis_ir::format::{LevelKind, LevelSpec};
    /// use tamis_tensor::levels::level_type;
    /// let coordinates = level_type(LevelKind::Sparse)?.array_named("crd").unwrap();
    /// assert_eq!(coordinates.specified_width(&LevelSpec::new(LevelKind::Sparse)), None);
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn specified_width(&self, level: &LevelSpec) -> Option<Width> {
        match self.width {
            WidthRule::Positions => level.pos,
            WidthRule::Coordinates | WidthRule::Ends => level.crd,
            WidthRule::Fixed(width) => Some(width),
        }
    }

    /// The length of the array below `parents` positions, `stored` elements and `extent`
    /// coordinates for each parent.
    ///
    /// ```
    /// use tamis_ir::format::LevelKind;
    /// use tamis_tensor::levels::level_type;
    /// // Three rows with ten entries and 100 columns.
    /// let arrays = level_type(LevelKind::Sparse)?.arrays.iter();
    /// let lengths = arrays.map(|array| array.len(3, 10, 100));
    /// assert!(lengths.eq([Some(4), Some(10)]), "`pos` and `crd`");
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn len(&self, parents: usize, stored: usize, extent: u64) -> Option<usize> {
        match self.length {
            ArrayLength::Parents => Some(parents),
            ArrayLength::ParentsPlusOne => parents.checked_add(1),
            ArrayLength::Stored => Some(stored),
            ArrayLength::StoredPlusOne => stored.checked_add(1),
            ArrayLength::Cells => parents.checked_mul(usize::try_from(extent).ok()?),
        }
    }
}

impl LevelType {
    /// The array with a role, if the level has one.
    ///
    /// ```
    /// use tamis_ir::format::LevelKind;
    /// use tamis_tensor::levels::{ArrayRole, level_type};
    /// let sparse = level_type(LevelKind::Sparse).unwrap();
    /// assert_eq!(sparse.array(ArrayRole::Coordinates).map(|array| array.name), Some("crd"));
    /// assert!(sparse.array(ArrayRole::RunEnds).is_none());
    /// ```
    pub fn array(&self, role: ArrayRole) -> Option<&'static ArraySpec> {
        self.arrays.iter().find(|array| array.role == role)
    }

    /// The description of the array with a name.
    ///
    /// ```
    /// use tamis_ir::format::LevelKind;
    /// use tamis_tensor::levels::{ArrayRole, level_type};
    /// let crd = level_type(LevelKind::Sparse)?.array_named("crd");
    /// assert_eq!(crd.map(|array| array.role), Some(ArrayRole::Coordinates));
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn array_named(&self, name: &str) -> Option<&'static ArraySpec> {
        self.arrays.iter().find(|array| array.name == name)
    }

    /// The array with a role among named ones: buffers of a kernel, or widths.
    ///
    /// ```
    /// use tamis_ir::format::LevelKind;
    /// use tamis_tensor::levels::{ArrayRole, level_type};
    /// let lengths = [("pos", 4), ("crd", 10)];
    /// let sparse = level_type(LevelKind::Sparse)?;
    /// assert_eq!(sparse.find(ArrayRole::Coordinates, &lengths), Some(10));
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn find<T: Copy>(&self, role: ArrayRole, named: &[(&'static str, T)]) -> Option<T> {
        let array = self.array(role)?;
        named.iter().find(|(name, _)| *name == array.name).map(|(_, found)| *found)
    }

    /// True if the level is a list of single coordinates, which a binary search finds.
    ///
    /// ```
    /// use tamis_ir::format::LevelKind;
    /// use tamis_tensor::levels::level_type;
    /// assert!(level_type(LevelKind::Sparse)?.is_coordinate_list());
    /// assert!(!level_type(LevelKind::Dense)?.is_coordinate_list());
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn is_coordinate_list(&self) -> bool {
        self.array(ArrayRole::Coordinates).is_some()
            && self.arrays.iter().all(|array| matches!(array.role, ArrayRole::FiberOffsets | ArrayRole::Coordinates))
    }
}
