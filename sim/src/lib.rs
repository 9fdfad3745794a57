//! The testbed of firedrill: scenario files, engines, oracles, verdicts.
//!
//! A [`scenario::Scenario`] is read from a file and is valid if it exists. An [`engine::Engine`] runs the
//! cluster core under its faults; [`drill`] conducts steps, workload and expectations over any engine;
//! [`oracles`] judge every event. [`run`](drill::run) ties them together and returns an [`outcome::Outcome`].
//! An [`artifact::Artifact`] keeps a run, and [`replay`] repeats it.

pub mod artifact;
pub mod digest;
pub mod drill;
pub mod engine;
pub mod explain;
pub mod fuzz;
pub mod oracles;
pub mod outcome;
pub mod replay;
pub mod scenario;
pub mod shrink;
