//! Level formats, one file each.
