//! Conducts a drill over any engine.
