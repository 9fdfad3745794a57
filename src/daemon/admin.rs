//! The admin server's routes.
//!
//! Every answer but the metrics is JSON, errors included: `{"error": what is wrong, "hint": what to do}`.

use std::num::NonZeroU64;

use axum::Router;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::{Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use firedrill_core::id::{CounterName, NodeId};
use firedrill_core::io::Refusal;
use firedrill_runtime::{ClusterHandle, CommandError, Counter};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::health::{Health, Member, Ready, Status};
use crate::{exposition, issuance};

/// An answer as one line of JSON: a shell's prompt, or the next answer, begins on a line of its own.
pub(crate) struct Json<T>(pub(crate) T);

impl<T: Serialize> IntoResponse for Json<T> {
    fn into_response(self) -> Response {
        match serde_json::to_string(&self.0) {
            Ok(text) => ([(header::CONTENT_TYPE, "application/json")], text + "\n").into_response(),
            Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
        }
    }
}

/// What the handlers share.
#[derive(Debug, Clone)]
pub struct Admin {
    /// The node.
    pub cluster: ClusterHandle,
    /// Whether the process is shutting down.
    pub stopping: watch::Receiver<bool>,
}

/// All routes.
pub fn router(admin: Admin) -> Router {
    Router::new()
        .route("/counters/{name}", get(read_counter).post(add_to_counter))
        .route("/members", get(members))
        .route("/health", get(health))
        .route("/health/ready", get(ready))
        .route("/metrics", get(metrics))
        .merge(issuance::routes())
        .fallback(unknown_path)
        .method_not_allowed_fallback(wrong_method)
        .with_state(admin)
}

#[derive(Debug, Serialize)]
struct CounterAnswer {
    node: NodeId,
    counter: CounterName,
    value: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Add {
    by: Option<NonZeroU64>,
}

#[derive(Debug, Serialize)]
struct Members {
    node: NodeId,
    members: Vec<Member>,
}

async fn read_counter(
    State(admin): State<Admin>,
    name: Result<Path<String>, PathRejection>,
) -> Result<Json<CounterAnswer>, Problem> {
    let counter = counter(&admin, name)?;
    Ok(answer(&admin, &counter, counter.get()))
}

async fn add_to_counter(
    State(admin): State<Admin>,
    name: Result<Path<String>, PathRejection>,
    add: Result<Query<Add>, QueryRejection>,
) -> Result<Json<CounterAnswer>, Problem> {
    let counter = counter(&admin, name)?;
    let Query(add) = add?;
    let value = counter.add(add.by.map_or(1, NonZeroU64::get))?;
    Ok(answer(&admin, &counter, value))
}

fn counter(admin: &Admin, name: Result<Path<String>, PathRejection>) -> Result<Counter, Problem> {
    let Path(name) = name?;
    admin.cluster.counter(&name).map_err(|why| Problem {
        status: StatusCode::BAD_REQUEST,
        error: format!("the counter name {name:?} {why}"),
        hint: "use a small fixed set of names, such as /counters/sightings",
    })
}

fn answer(admin: &Admin, counter: &Counter, value: u64) -> Json<CounterAnswer> {
    Json(CounterAnswer { node: admin.cluster.node_id().clone(), counter: counter.name().clone(), value })
}

async fn members(State(admin): State<Admin>) -> Json<Members> {
    let members = admin.cluster.members().into_iter().map(Member::from).collect();
    Json(Members { node: admin.cluster.node_id().clone(), members })
}

async fn health(State(admin): State<Admin>) -> Json<Health> {
    Json(Health::of(admin.cluster.view()))
}

async fn ready(State(admin): State<Admin>) -> (StatusCode, Json<Ready>) {
    if *admin.stopping.borrow() {
        (StatusCode::SERVICE_UNAVAILABLE, Json(Ready { status: Status::OutOfService }))
    } else {
        (StatusCode::OK, Json(Ready { status: Status::Up }))
    }
}

async fn metrics(State(admin): State<Admin>) -> impl IntoResponse {
    let mut text = exposition::render(admin.cluster.metrics().series());
    if let Some(of_issuance) =
        admin.cluster.issuance(|issuance| exposition::render(issuance.series().into_iter()))
    {
        text.push_str(&of_issuance);
    }
    ([(header::CONTENT_TYPE, exposition::CONTENT_TYPE)], text)
}

async fn unknown_path(uri: Uri) -> Problem {
    Problem {
        status: StatusCode::NOT_FOUND,
        error: format!("there is nothing at {}", uri.path()),
        hint: "try /counters/NAME, /members, /health, /health/ready, /metrics, /issuance/at?z=N, /replication, /lease, /audit or /election",
    }
}

async fn wrong_method(method: Method, uri: Uri) -> Problem {
    Problem {
        status: StatusCode::METHOD_NOT_ALLOWED,
        error: format!("{} does not take {method}", uri.path()),
        hint: "GET reads everything; POST adds to /counters/NAME, or goes to /issuance/pause or /issuance/resume",
    }
}

/// Why a request was refused.
#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) status: StatusCode,
    pub(crate) error: String,
    pub(crate) hint: &'static str,
}

impl From<PathRejection> for Problem {
    fn from(why: PathRejection) -> Self {
        Self {
            status: why.status(),
            error: why.body_text(),
            hint: "percent-encode the counter name as UTF-8",
        }
    }
}

impl From<QueryRejection> for Problem {
    fn from(why: QueryRejection) -> Self {
        let hint = "the only parameter is by, a whole number from 1 to 18446744073709551615, such as ?by=5";
        Self { status: why.status(), error: why.body_text(), hint }
    }
}

impl From<CommandError> for Problem {
    fn from(why: CommandError) -> Self {
        let (status, hint) = match &why {
            CommandError::Refused(Refusal::TooManyCounters) => {
                (StatusCode::CONFLICT, "nothing was counted; GET works for the names in use")
            }
            // What a later runtime may add is no fault of the request either.
            CommandError::Refused(Refusal::NoIssuance) => {
                (StatusCode::NOT_FOUND, "set enabled and issuer under [issuance] on every node")
            }
            CommandError::Refused(Refusal::Departed) | CommandError::Stopped | _ => {
                (StatusCode::SERVICE_UNAVAILABLE, "nothing was counted; try another node")
            }
        };
        Self { status, error: why.to_string(), hint }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        #[derive(Serialize)]
        struct Body {
            error: String,
            hint: &'static str,
        }
        (self.status, Json(Body { error: self.error, hint: self.hint })).into_response()
    }
}
