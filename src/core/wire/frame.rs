//! Step 1: frames.
