//! Where a node keeps its rows.
//!
//! One contract, whatever the database (`contract` in the tests): a batch is durable whole or not at all, a row that is
//! there already changes nothing, and of the rows with one key the one that [`Row::precedence`] puts first counts.
//!
//! [`Row::precedence`]: firedrill_core::issuance::row::Row::precedence

mod sqlite;

pub use sqlite::Sqlite;
