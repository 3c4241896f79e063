//! Conversion of any format to any other.
