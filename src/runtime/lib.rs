//! The tokio driver.
