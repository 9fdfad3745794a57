//! Scenario files: one story each, in TOML.

pub mod model;

pub use model::Scenario;
