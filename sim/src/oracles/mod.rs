//! One invariant a file.
