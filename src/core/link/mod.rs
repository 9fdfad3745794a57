//! Connection policy: who is dialled, when a connection is closed, what is dropped.
//!
//! `outbound` holds one connection per push target (the machine of one is in `target`), `inbound` those that peers and strangers opened; a
//! cluster needs both, since replies never travel back over an accepted connection. No connection says anything
//! about liveness. The machines speak of connections by number and never touch one.
//!
//! Spec: docs/protocol.md, Connection policy; Limits; decisions 6, 14 and 16.

pub(crate) mod inbound;
pub(crate) mod outbound;
mod target;
