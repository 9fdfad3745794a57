//! The admin server's routes of the issuance.
//!
//! A node without `[issuance]` answers all of them with 404 and says what to set.

use axum::Router;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use firedrill_core::id::{NodeId, Seq};
use firedrill_core::issuance::audit::Audit;
use firedrill_core::issuance::election::Decision;
use firedrill_core::issuance::machine::Issuance;
use firedrill_core::issuance::row::{Lease, Origin, Row};
use firedrill_core::issuance::window::{Epoch, Window, Z};
use serde::{Deserialize, Serialize};

use crate::admin::{Admin, Json, Problem};

/// The routes.
pub(crate) fn routes() -> Router<Admin> {
    Router::new()
        .route("/issuance/at", get(at))
        .route("/issuance/pause", post(pause))
        .route("/issuance/resume", post(resume))
        .route("/replication", get(replication))
        .route("/lease", get(lease))
        .route("/audit", get(audit))
        .route("/election", get(election))
}

type Answer<T> = Result<Json<T>, Problem>;

/// Looks at the issuance, if there is one.
fn look<T>(admin: &Admin, look: impl FnOnce(&Issuance) -> Result<T, Problem>) -> Answer<T> {
    let found = admin.cluster.issuance(look).ok_or(Problem {
        status: StatusCode::NOT_FOUND,
        error: "this node has no issuance".to_owned(),
        hint: "set enabled and issuer under [issuance] on every node",
    })?;
    found.map(Json)
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct At {
    z: u64,
}

/// A row of the spine, and which of its origin it is.
#[derive(Debug, Serialize)]
struct Found {
    #[serde(flatten)]
    row: Row,
    origin: Origin,
    seq: Seq,
}

async fn at(State(admin): State<Admin>, at: Result<Query<At>, QueryRejection>) -> Answer<Found> {
    let Query(At { z }) = at.map_err(|why| Problem {
        status: why.status(),
        error: why.body_text(),
        hint: "ask for a tick, such as /issuance/at?z=2301676684",
    })?;
    look(&admin, |issuance| {
        let window = Window::of(Z(z), issuance.config().width);
        let entry = issuance.spine().at(window).ok_or_else(|| Problem {
            status: StatusCode::NOT_FOUND,
            error: format!("no row has the key {}", window.key()),
            hint: "it may lie ahead, have been covered by a later row, or be on its way: see /lease for the tip",
        })?;
        Ok(Found { row: Row::clone(entry.row), origin: entry.origin.clone(), seq: entry.seq })
    })
}

/// Cursors by origin.
#[derive(Debug, Serialize)]
struct Replication {
    zeqond: Option<Z>,
    origins: Vec<Cursor>,
}

#[derive(Debug, Serialize)]
struct Cursor {
    origin_node_id: String,
    last_seq: Seq,
    updated_zeqond: Option<Z>,
}

async fn replication(State(admin): State<Admin>) -> Answer<Replication> {
    look(&admin, |issuance| {
        let cursor = |(origin, seq): (Origin, Seq)| Cursor {
            origin_node_id: format!("{origin}#fed"),
            last_seq: seq,
            updated_zeqond: issuance.updated_z(&origin),
        };
        let origins = issuance.spine().durable_cursors().into_iter().map(cursor).collect();
        Ok(Replication { zeqond: issuance.z_at_last(), origins })
    })
}

#[derive(Debug, Serialize)]
struct LeaseAnswer {
    node: NodeId,
    role: &'static str,
    /// The holder and epoch, as this node's rows say.
    lease: Option<Lease>,
    tip: Option<Window>,
    promoted: Option<Epoch>,
    paused: bool,
    fenced_at: Option<Epoch>,
}

async fn lease(State(admin): State<Admin>) -> Answer<LeaseAnswer> {
    let node = admin.cluster.node_id().clone();
    look(&admin, |issuance| {
        Ok(LeaseAnswer {
            node,
            role: issuance.role_at_last().name(),
            lease: issuance.spine().fold().lease.clone(),
            tip: issuance.spine().fold().tip,
            promoted: issuance.promoted(),
            paused: issuance.is_paused(),
            fenced_at: issuance.fenced_at(),
        })
    })
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct UpTo {
    window: Option<u64>,
}

#[derive(Debug, Serialize)]
struct AuditAnswer {
    #[serde(flatten)]
    audit: Audit,
    /// The windows that the digest is of.
    digest_to: Option<Window>,
    /// SHA-256 of the rows that count, in hex: equal on two nodes exactly when these rows are.
    prefix_digest: Option<String>,
}

async fn audit(State(admin): State<Admin>, to: Result<Query<UpTo>, QueryRejection>) -> Answer<AuditAnswer> {
    let Query(UpTo { window }) = to.map_err(|why| Problem {
        status: why.status(),
        error: why.body_text(),
        hint: "the only parameter is window, such as /audit?window=2301676684",
    })?;
    look(&admin, |issuance| {
        let audit = issuance.audit().map_err(|why| Problem {
            status: StatusCode::INTERNAL_SERVER_ERROR,
            error: why.to_string(),
            hint: "look at the rows in the store: one of them is wrong",
        })?;
        let digest_to = window.map(Window).or(issuance.spine().durable_tip());
        let hex = |bytes: [u8; 32]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        Ok(AuditAnswer {
            audit,
            digest_to,
            prefix_digest: digest_to.map(|to| hex(issuance.spine().digest(to))),
        })
    })
}

#[derive(Debug, Serialize)]
struct Election {
    node: NodeId,
    /// The decision's name; none before the first.
    decision: Option<String>,
    /// The facts it turned on.
    facts: Option<Decision>,
    silence_ms: u64,
}

async fn election(State(admin): State<Admin>) -> Answer<Election> {
    let node = admin.cluster.node_id().clone();
    look(&admin, |issuance| {
        Ok(Election {
            node,
            decision: issuance.decision().map(ToString::to_string),
            facts: issuance.decision().cloned(),
            silence_ms: u64::try_from(issuance.silence().as_millis()).unwrap_or(u64::MAX),
        })
    })
}

#[derive(Debug, Serialize)]
struct Paused {
    node: NodeId,
    paused: bool,
}

async fn pause(State(admin): State<Admin>) -> Answer<Paused> {
    set_paused(&admin, true)
}

async fn resume(State(admin): State<Admin>) -> Answer<Paused> {
    set_paused(&admin, false)
}

fn set_paused(admin: &Admin, paused: bool) -> Answer<Paused> {
    admin.cluster.pause_issuance(paused)?;
    Ok(Json(Paused { node: admin.cluster.node_id().clone(), paused }))
}
