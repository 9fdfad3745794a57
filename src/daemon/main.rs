//! The production node.
fn main() {}
