//! What a policy is (how an accumulation array finds a coordinate it has), and the table of policies by name.

use super::{bucket, coord, extremes, hash};
use crate::runtime::typed::OutOfMemory;
use std::sync::RwLock;

/// One array of coordinates as it lies in memory.
#[derive(Clone, Copy, Debug)]
pub(super) enum Lane {
    Narrow(*mut u32),
    Wide(*mut u64),
}

impl Lane {
    /// An element that is there (private to this room: places are checked by [`Entries`]).
    pub(super) fn get(&self, place: usize) -> u64 {
        // SAFETY: whoever holds a lane asks for places that are written only.
        unsafe {
            match self {
                Lane::Narrow(data) => u64::from(data.add(place).read()),
                Lane::Wide(data) => data.add(place).read(),
            }
        }
    }
}

/// The entries in the accumulation array since it was last emptied, in the order in which they came.
pub struct Entries<'a> {
    pub(super) lanes: &'a [Lane],
    pub(super) sizes: &'a [u64],
    pub(super) count: usize,
    pub(super) full: bool,
}

impl Entries<'_> {
    /// How many there are; the next one gets this place.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether there is no room for another one.
    pub fn is_full(&self) -> bool {
        self.full
    }

    /// The sizes of the dimensions, outermost first.
    pub fn sizes(&self) -> &[u64] {
        self.sizes
    }

    /// The coordinate of an entry in a dimension, or `None` if there is no such entry or dimension.
    #[inline]
    pub fn coordinate(&self, place: usize, dimension: usize) -> Option<u64> {
        let lane = self.lanes.get(dimension)?;
        (place < self.count).then(|| lane.get(place))
    }

    /// Whether the entry at a place has these coordinates.
    #[inline]
    pub fn holds(&self, place: usize, coordinates: &[u64]) -> bool {
        place < self.count
            && coordinates.len() == self.lanes.len()
            && self.lanes.iter().zip(coordinates).all(|(lane, coordinate)| lane.get(place) == *coordinate)
    }
}

/// Where an insertion goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The coordinates are those of the entry at this place.
    Found(usize),
    /// They are new: the entry gets the place `entries.len()`, which the policy remembers from now on.
    New,
    /// They are new, and there is no room: the workspace makes room (by growing, or by emptying the accumulation array,
    /// in which case [`Policy::clear`] comes first), and asks once again.
    Full,
}

/// How an accumulation array finds the entry of a coordinate: the one thing to write for a policy of one's own.
///
/// A workspace collects entries in an *accumulation array*. When that is full, its entries are put aside to be combined with
/// those before, and it starts anew. The policy decides what happens on insertion: it may find an entry
/// with the same coordinates (then the new value is combined with it at once), or call every entry new (then
/// equal ones are combined when they are merged). It keeps whatever tables it needs for that, and never the coordinates
/// themselves: those are in [`Entries`].
///
/// A policy that breaks its contract (finds what is not there, is full when all is empty, panics) fails the
/// kernel that uses it; an order that is none is noticed, and the shared sort is used.
///
/// ```
/// use tamis_backend::runtime::workspace::{Description, Entries, Merge, OwnedWorkspace, Place, Policy, register};
/// use tamis_backend::runtime::OutOfMemory;
/// use tamis_ir::{DType, Value, algebra::Op};
///
/// /// Remembers the last entry only: enough where equal coordinates come one after the other.
/// #[derive(Default)]
/// struct Last;
///
/// impl Policy for Last {
///     fn place(&mut self, coordinates: &[u64], entries: &Entries<'_>) -> Result<Place, OutOfMemory> {
///         Ok(match entries.len().checked_sub(1) {
///             Some(last) if entries.holds(last, coordinates) => Place::Found(last),
///             _ if entries.is_full() => Place::Full,
///             _ => Place::New,
///         })
///     }
///     fn clear(&mut self, _: &Entries<'_>) {}
/// }
///
/// register("last", || Box::new(Last));
/// let description = Description {
///     policy: "last".into(),
///     ..Description::new(2, DType::F64, Value::F64(0.0), Some(Merge::Op(Op::Add)))
/// };
/// let mut workspace = OwnedWorkspace::new(&description).unwrap();
/// workspace.reset(&[10, 10]).unwrap();
/// for (i, j, value) in [(2, 1, 4.0), (0, 1, 1.0), (0, 1, 8.0), (2, 1, 20.0)] {
///     workspace.update(&[i, j], Value::F64(value)).unwrap();
/// }
/// let entries = workspace.finalize().unwrap();
/// assert_eq!(entries, [(vec![0, 1], Value::F64(9.0)), (vec![2, 1], Value::F64(24.0))]);
/// ```
pub trait Policy: Send {
    /// Whether every insertion is [`Place::New`] while there is room. Then [`Policy::place`] is not called at all, and
    /// compiled code appends by itself.
    fn appends(&self) -> bool {
        false
    }

    /// Whether no two entries ever have the same coordinates: [`Policy::place`] finds every entry since the last
    /// [`Policy::clear`]. Needed where equal entries cannot be combined later.
    fn unique(&self) -> bool {
        false
    }

    /// Without a capacity: how many entries are collected before they are put aside. The default is what caches hold.
    fn patience(&self) -> usize {
        super::CACHED
    }

    /// New sizes of the dimensions. There are no entries; what is remembered of earlier ones has been cleared.
    fn start(&mut self, _sizes: &[u64]) {}

    /// Finds the place of coordinates among the entries, or remembers them as those of the next entry.
    fn place(&mut self, coordinates: &[u64], entries: &Entries<'_>) -> Result<Place, OutOfMemory>;

    /// Writes the places of all entries in the order of their coordinates, those of equal ones in the order in which they
    /// came; there are as many `ids` as entries. `false`: the shared sort shall do it, which is the default, and
    /// hard to beat. This is asked only if all entries are still there at the end: others are put in order with those before.
    fn sort(&mut self, _entries: &Entries<'_>, _ids: &mut [u32]) -> bool {
        false
    }

    /// Forgets all entries, which are about to go. This should cost what was touched, not what there is room for.
    fn clear(&mut self, entries: &Entries<'_>);

    /// How many bytes the tables of the policy have.
    fn bytes(&self) -> u64 {
        0
    }
}

/// Makes a policy.
pub type Constructor = fn() -> Box<dyn Policy>;

struct Row {
    name: String,
    constructor: Constructor,
    /// Ours do not panic.
    trusted: bool,
}

/// The policies that come with Tamis.
const SHIPPED: &[(&str, Constructor)] = &[
    ("coord", || Box::new(coord::Coord)),
    ("hash", || Box::<hash::Hash>::default()),
    ("bucket", || Box::<bucket::Bucket>::default()),
    ("map", || Box::<extremes::Map>::default()),
    ("vector", || Box::new(extremes::Vector)),
];

static REGISTERED: RwLock<Vec<Row>> = RwLock::new(Vec::new());

/// Makes a policy known by a name, from now on and in all threads. `false`, and nothing done, if the name is one of those
/// that come with Tamis; a name that was registered before gets the new constructor.
pub fn register(name: &str, constructor: Constructor) -> bool {
    if SHIPPED.iter().any(|row| row.0 == name) {
        return false;
    }
    // A thread that panics here has not left the table half-written.
    let mut rows = REGISTERED.write().unwrap_or_else(|poisoned| poisoned.into_inner());
    rows.retain(|row| row.name != name);
    rows.push(Row { name: name.to_string(), constructor, trusted: false });
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
    SHIPPED.iter().map(|row| row.0.to_string()).chain(rows.iter().map(|row| row.name.clone())).collect()
}

/// Whether insertions into a policy of this name always append, so that compiled code may do so by itself; `None` if there
/// is no such policy.
pub fn appends(name: &str) -> Option<bool> {
    find(name).map(|(constructor, _)| constructor().appends())
}

/// The constructor of a policy, and whether it is ours.
pub(super) fn find(name: &str) -> Option<(Constructor, bool)> {
    if let Some(row) = SHIPPED.iter().find(|row| row.0 == name) {
        return Some((row.1, true));
    }
    let rows = REGISTERED.read().unwrap_or_else(|poisoned| poisoned.into_inner());
    rows.iter().find(|row| row.name == name).map(|row| (row.constructor, row.trusted))
}
