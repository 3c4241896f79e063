//! Typed ids and hash consing: tables that hold each distinct item once.

use rustc_hash::FxHashMap;
use std::hash::Hash;

/// Declares id types of a public module: indices into one table each.
macro_rules! ids {
    ($module:literal: $($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub u32);

        impl $name {
            /// This id as an index into its table.
            ///
            /// ```
            #[doc = concat!("use tamis_ir::", $module, "::", stringify!($name), ";")]
            #[doc = concat!("assert_eq!(", stringify!($name), "(3).index(), 3);")]
            /// ```
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    )*};
}
pub(crate) use ids;

/// A table of distinct items, indexed in insertion order.
#[derive(Clone, Debug)]
pub(crate) struct Interner<T> {
    items: Vec<T>,
    numbers: FxHashMap<T, u32>,
}

impl<T> Default for Interner<T> {
    fn default() -> Interner<T> {
        Interner { items: Vec::new(), numbers: FxHashMap::default() }
    }
}

impl<T: Clone + Eq + Hash> Interner<T> {
    /// The index of an item, which is added if it is new.
    pub(crate) fn intern(&mut self, item: T) -> u32 {
        if let Some(number) = self.numbers.get(&item) {
            return *number;
        }
        let number = self.items.len() as u32;
        self.items.push(item.clone());
        self.numbers.insert(item, number);
        number
    }
}

impl<T> Interner<T> {
    /// The item at an index.
    pub(crate) fn get(&self, number: u32) -> &T {
        &self.items[number as usize]
    }

    /// The number of elements.
    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }
}

impl<T: PartialEq> PartialEq for Interner<T> {
    fn eq(&self, other: &Interner<T>) -> bool {
        self.items == other.items
    }
}
