//! The production node: the cluster runtime behind an admin server, as the binary `firedrilld`.
//!
//! | request | answer |
//! |---|---|
//! | `POST /counters/{name}`, `?by=N` | adds 1 or N; `{"node","counter","value"}` |
//! | `GET /counters/{name}` | the same without adding; 0 for a counter nobody has touched |
//! | `GET /members` | who is in this node's view, itself first |
//! | `GET /health` | UP, with the component `cluster:membership` |
//! | `GET /health/ready` | 200, or 503 while shutting down; never gated by peers |
//! | `GET /metrics` | Prometheus text |
//! | `GET /issuance/at?z=N` | the row of the window of tick N: `{"key","amount",…}`; 404 when there is none |
//! | `GET /replication` | the present `zeqond`, and per origin the last durable row: `{"origins":[{"origin_node_id":"<origin>#fed","last_seq","updated_zeqond"}]}` |
//! | `GET /lease` | who holds it, at which epoch, the tip, this node's role |
//! | `GET /audit`, `?window=N` | what the rows add up to, and the digest of those up to N (the tip without) |
//! | `GET /election` | the last decision, and why |
//! | `POST /issuance/pause`, `/issuance/resume` | stops this node from sealing, lets it go on |
//!
//! Invariants: a request served during shutdown still counts, because the node departs only after the requests
//! have drained; the secret is never logged.
//!
//! Absent: authentication of the admin server. It binds to loopback unless told otherwise; keep it on a
//! trusted network.

pub mod admin;
pub mod args;
mod exposition;
mod health;
mod issuance;
pub mod serve;
pub mod settings;
pub mod store;
