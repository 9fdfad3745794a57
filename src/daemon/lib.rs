//! The production node.
