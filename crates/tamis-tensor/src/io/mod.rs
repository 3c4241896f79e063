//! Files: Matrix Market, FROSTT, npz and others, read and written.
