//! Workspace policies: the trait that finds coordinates in an accumulation array, and the registry
//! of policies by name.

use super::{bucket, coord, hash, map_vector};
use crate::runtime::scratch::OutOfMemory;
use std::sync::RwLock;

/// A coordinate array of one dimension in memory.
#[derive(Clone, Copy, Debug)]
pub(super) enum CoordArray {
    U32(*mut u32),
    U64(*mut u64),
}

impl CoordArray {
    /// Reads an initialised element. Private to the workspace modules: [`AccumulationView`] checks
    /// positions.
    pub(super) fn get(&self, position: usize) -> u64 {
        // SAFETY: the holders of a coordinate array read initialised positions only.
        unsafe {
            match self {
                CoordArray::U32(data) => u64::from(data.add(position).read()),
                CoordArray::U64(data) => data.add(position).read(),
            }
        }
    }
}

/// A view of the entries in the accumulation array since it was last cleared, in insertion order.
///
/// ```
/// # use tamis_backend::runtime::OutOfMemory;
/// # use tamis_backend::runtime::workspace::{AccumulationView, InsertionPolicy, Lookup};
/// /// Finds the first entry only.
/// struct First;
/// impl InsertionPolicy for First {
///     # fn clear(&mut self, _: &AccumulationView<'_>) {}
///     fn lookup(
///         &mut self,
///         coordinates: &[u64],
///         entries: &AccumulationView<'_>,
///     ) -> Result<Lookup, OutOfMemory> {
///         Ok(match entries {
///             _ if entries.holds(0, coordinates) => Lookup::Found(0),
///             _ if entries.is_full() => Lookup::Full,
///             _ => Lookup::New,
///         })
///     }
/// }
/// assert!(!First.appends() && !First.unique());
/// ```
pub struct AccumulationView<'a> {
    pub(super) coord_arrays: &'a [CoordArray],
    pub(super) sizes: &'a [u64],
    pub(super) count: usize,
    pub(super) full: bool,
}

impl AccumulationView<'_> {
    /// The number of entries, which is the position of the next one.
    ///
    /// ```
    /// use tamis_backend::runtime::workspace::AccumulationView;
    /// fn next_position(entries: &AccumulationView<'_>) -> usize {
    ///     entries.len()
    /// }
    /// ```
    pub fn len(&self) -> usize {
        self.count
    }

    /// True if there are no entries.
    ///
    /// ```
    /// use tamis_backend::runtime::workspace::AccumulationView;
    /// fn is_first(entries: &AccumulationView<'_>) -> bool {
    ///     entries.is_empty()
    /// }
    /// ```
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// True if there is no capacity for another entry.
    ///
    /// ```
    /// use tamis_backend::runtime::workspace::AccumulationView;
    /// fn needs_flush(entries: &AccumulationView<'_>) -> bool {
    ///     entries.is_full()
    /// }
    /// ```
    pub fn is_full(&self) -> bool {
        self.full
    }

    /// The sizes of the dimensions, outermost first.
    ///
    /// ```
    /// use tamis_backend::runtime::workspace::AccumulationView;
    /// fn rows<'a>(entries: &'a AccumulationView<'_>) -> Option<&'a u64> {
    ///     entries.sizes().first()
    /// }
    /// ```
    pub fn sizes(&self) -> &[u64] {
        self.sizes
    }

    /// The coordinate of an entry in a dimension, or `None` if there is no such entry or dimension.
    ///
    /// ```
    /// use tamis_backend::runtime::workspace::AccumulationView;
    /// fn first_column(entries: &AccumulationView<'_>) -> Option<u64> {
    ///     entries.coordinate(0, 1)
    /// }
    /// ```
    #[inline]
    pub fn coordinate(&self, position: usize, dimension: usize) -> Option<u64> {
        let array = self.coord_arrays.get(dimension)?;
        (position < self.count).then(|| array.get(position))
    }

    /// True if the entry at a position has these coordinates.
    ///
    /// ```
    /// use tamis_backend::runtime::workspace::AccumulationView;
    /// fn starts_at_3_5(entries: &AccumulationView<'_>) -> bool {
    ///     entries.holds(0, &[3, 5])
    /// }
    /// ```
    #[inline]
    pub fn holds(&self, position: usize, coordinates: &[u64]) -> bool {
        position < self.count
            && coordinates.len() == self.coord_arrays.len()
            && self.coord_arrays.iter().zip(coordinates).all(|(array, coordinate)| array.get(position) == *coordinate)
    }
}

/// The result of looking up coordinates for an insertion.
///
/// ```
/// use tamis_backend::runtime::workspace::Lookup;
/// assert_ne!(Lookup::Found(0), Lookup::New);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// The entry at this position has these coordinates.
    Found(usize),
    /// They are new: the entry gets position `entries.len()`, and the policy has recorded it.
    New,
    /// They are new, and the accumulation array is full. The workspace grows or flushes it
    /// ([`InsertionPolicy::clear`] comes first), and looks them up once again.
    Full,
}

/// A workspace policy: finds the entry with given coordinates in the accumulation array. Custom
/// policies implement this trait.
///
/// A workspace collects entries in an *accumulation array*. When it is full, its entries are
/// flushed, to be combined with earlier ones, and it starts empty. The policy decides about each
/// insertion. It may find an entry with the same coordinates, whose value is then updated in place.
/// Or it may report a new entry; equal entries are then combined when they are merged. A policy
/// keeps its own tables, but never the coordinates: those are in the [`AccumulationView`].
///
/// A policy that violates its contract (returns an invalid position, reports a full array when it
/// is empty, panics) fails the kernel that uses it. An invalid sort order is detected, and the
/// default sort is used.
///
/// ```
/// use tamis_backend::runtime::workspace::{WorkspaceSpec, AccumulationView, MergeOp, OwnedWorkspace, Lookup, InsertionPolicy, register};
/// use tamis_backend::runtime::OutOfMemory;
/// use tamis_ir::{DType, Value, algebra::Op};
///
/// /// Finds only the last entry: enough where equal coordinates are adjacent.
/// #[derive(Default)]
/// struct LastEntry;
///
/// impl InsertionPolicy for LastEntry {
///     fn lookup(&mut self, coordinates: &[u64], entries: &AccumulationView<'_>) -> Result<Lookup, OutOfMemory> {
///         Ok(match entries.len().checked_sub(1) {
///             Some(last) if entries.holds(last, coordinates) => Lookup::Found(last),
///             _ if entries.is_full() => Lookup::Full,
///             _ => Lookup::New,
///         })
///     }
///     fn clear(&mut self, _: &AccumulationView<'_>) {}
/// }
///
/// register("last", || Box::new(LastEntry));
/// let description = WorkspaceSpec {
///     policy: "last".into(),
///     ..WorkspaceSpec::new(2, DType::F64, Value::F64(0.0), Some(MergeOp::Op(Op::Add)))
/// };
/// let mut workspace = OwnedWorkspace::new(&description).unwrap();
/// workspace.reset(&[10, 10]).unwrap();
/// for (i, j, value) in [(2, 1, 4.0), (0, 1, 1.0), (0, 1, 8.0), (2, 1, 20.0)] {
///     workspace.update(&[i, j], Value::F64(value)).unwrap();
/// }
/// let entries = workspace.finalize().unwrap();
/// assert_eq!(entries, [(vec![0, 1], Value::F64(9.0)), (vec![2, 1], Value::F64(24.0))]);
/// ```
pub trait InsertionPolicy: Send {
    /// True if every lookup is [`Lookup::New`] while there is capacity. Then
    /// [`InsertionPolicy::lookup`] is never called, and compiled code appends inline.
    fn appends(&self) -> bool {
        false
    }

    /// True if entries are unique: [`InsertionPolicy::lookup`] finds every entry since the last
    /// [`InsertionPolicy::clear`]. Required where equal entries cannot be combined later.
    fn unique(&self) -> bool {
        false
    }

    /// The number of entries after which an accumulation array without a capacity is flushed. The
    /// default fits the cache.
    fn flush_threshold(&self) -> usize {
        super::DEFAULT_FLUSH_THRESHOLD
    }

    /// Sets the sizes of the dimensions. There are no entries; earlier ones have been cleared.
    fn set_sizes(&mut self, _sizes: &[u64]) {}

    /// Looks up coordinates among the entries, or records them as those of the next
    /// entry.
    fn lookup(&mut self, coordinates: &[u64], entries: &AccumulationView<'_>) -> Result<Lookup, OutOfMemory>;

    /// Writes the positions of all entries in the order of their coordinates, and of equal
    /// coordinates in insertion order; `ids` has one element per entry. Returns `false`, the
    /// default, to use the shared sort, which is hard to beat. It is called only if no entry was
    /// flushed before.
    fn sort(&mut self, _entries: &AccumulationView<'_>, _ids: &mut [u32]) -> bool {
        false
    }

    /// Forgets all entries, which are about to be removed. The cost should be proportional to the
    /// entries, not to the capacity.
    fn clear(&mut self, entries: &AccumulationView<'_>);

    /// The allocated bytes of the policy's tables.
    fn bytes(&self) -> u64 {
        0
    }
}

/// Creates a policy.
///
/// ```
/// use tamis_backend::runtime::workspace::PolicyConstructor;
/// # use tamis_backend::runtime::OutOfMemory;
/// # use tamis_backend::runtime::workspace::{AccumulationView, InsertionPolicy, Lookup};
/// /// Every entry is a new one.
/// struct Append;
/// impl InsertionPolicy for Append {
///     # fn clear(&mut self, _: &AccumulationView<'_>) {}
///     fn lookup(
///         &mut self,
///         _: &[u64],
///         entries: &AccumulationView<'_>,
///     ) -> Result<Lookup, OutOfMemory> {
///         Ok(if entries.is_full() { Lookup::Full } else { Lookup::New })
///     }
/// }
/// let constructor: PolicyConstructor = || Box::new(Append);
/// assert_eq!(constructor().bytes(), 0);
/// ```
pub type PolicyConstructor = fn() -> Box<dyn InsertionPolicy>;

struct RegisteredPolicy {
    name: String,
    constructor: PolicyConstructor,
    /// Built-in policies never panic.
    built_in: bool,
}

/// The built-in policies.
const BUILT_IN: &[(&str, PolicyConstructor)] = &[
    ("coord", || Box::new(coord::Coord)),
    ("hash", || Box::<hash::Hash>::default()),
    ("bucket", || Box::<bucket::Bucket>::default()),
    ("map", || Box::<map_vector::Map>::default()),
    ("vector", || Box::new(map_vector::Vector)),
];

static REGISTERED: RwLock<Vec<RegisteredPolicy>> = RwLock::new(Vec::new());

/// Registers a policy under a name, for all threads. Returns `false`, with nothing changed, if the
/// name is a built-in policy. A name that is already registered gets the new constructor.
///
/// ```
/// use tamis_backend::runtime::workspace::{policies, register};
/// # use tamis_backend::runtime::OutOfMemory;
/// # use tamis_backend::runtime::workspace::{AccumulationView, InsertionPolicy, Lookup};
/// /// Every entry is a new one.
/// struct Append;
/// impl InsertionPolicy for Append {
///     # fn clear(&mut self, _: &AccumulationView<'_>) {}
///     fn lookup(
///         &mut self,
///         _: &[u64],
///         entries: &AccumulationView<'_>,
///     ) -> Result<Lookup, OutOfMemory> {
///         Ok(if entries.is_full() { Lookup::Full } else { Lookup::New })
///     }
/// }
/// assert!(register("append", || Box::new(Append)) && policies().contains(&"append".to_string()));
/// assert!(!register("hash", || Box::new(Append)), "built-in policies stay");
/// ```
pub fn register(name: &str, constructor: PolicyConstructor) -> bool {
    if BUILT_IN.iter().any(|row| row.0 == name) {
        return false;
    }
    // A thread that panics here leaves the registry consistent.
    let mut rows = REGISTERED.write().unwrap_or_else(|poisoned| poisoned.into_inner());
    rows.retain(|row| row.name != name);
    rows.push(RegisteredPolicy { name: name.to_string(), constructor, built_in: false });
    true
}

/// The names of all policies.
///
/// ```
/// use tamis_backend::runtime::workspace::policies;
/// assert_eq!(policies()[..5], ["coord", "hash", "bucket", "map", "vector"]);
/// ```
pub fn policies() -> Vec<String> {
    let rows = REGISTERED.read().unwrap_or_else(|poisoned| poisoned.into_inner());
    BUILT_IN.iter().map(|row| row.0.to_string()).chain(rows.iter().map(|row| row.name.clone())).collect()
}

/// True if insertions by the policy of this name always append, so that compiled code can append
/// inline; `None` if there is no such policy.
///
/// ```
/// use tamis_backend::runtime::workspace::appends;
/// assert_eq!((appends("coord"), appends("hash")), (Some(true), Some(false)));
/// assert_eq!(appends("no such policy"), None);
/// ```
pub fn appends(name: &str) -> Option<bool> {
    find(name).map(|(constructor, _)| constructor().appends())
}

/// The constructor of a policy, and whether it is built-in.
pub(super) fn find(name: &str) -> Option<(PolicyConstructor, bool)> {
    if let Some(row) = BUILT_IN.iter().find(|row| row.0 == name) {
        return Some((row.1, true));
    }
    let rows = REGISTERED.read().unwrap_or_else(|poisoned| poisoned.into_inner());
    rows.iter().find(|row| row.name == name).map(|row| (row.constructor, row.built_in))
}
