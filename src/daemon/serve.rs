//! The life of the process: listen, serve, drain, depart.
//!
//! The order is the point. Both ports are taken before the node says a word, so a failed start is invisible to
//! peers. On shutdown the requests drain first and the node departs after them: an increment that was answered
//! is in the farewell.

use std::future::IntoFuture as _;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::pin;
use std::time::Duration;

use firedrill_core::config::Config;
use firedrill_runtime::{Cluster, Departure, MemoryStore, StartError};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tracing::{info, warn};

use crate::admin::{self, Admin};
use crate::store::Sqlite;

/// How long requests under way may take once shutdown has begun; then they are cut.
pub const DRAIN_LIMIT: Duration = Duration::from_secs(5);

/// Why the node did not start, or stopped unasked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The cluster side did not start.
    #[error(transparent)]
    Cluster(#[from] StartError),
    /// The admin server could not listen.
    #[error(
        "cannot listen on [server] bind_addr {addr}: {source}; stop what holds the port, or choose another (0 takes any)"
    )]
    Admin {
        /// Where.
        addr: SocketAddr,
        /// What the operating system said.
        source: io::Error,
    },
    /// The admin server broke.
    #[error("the admin server broke: {0}")]
    Broken(io::Error),
    /// The handlers for signals could not be installed.
    #[error("cannot listen for SIGTERM and SIGINT: {0}")]
    Signals(io::Error),
    /// The node ended without having been asked to.
    #[error("the cluster node stopped unasked ({0:?}); its log tells why")]
    NodeEnded(Departure),
}

/// Runs a node with its admin server until a signal, then stops gracefully. The rows of an issuance are kept in
/// `store`.
///
/// # Errors
/// [`ServeError`]; on a failed start nothing has reached a peer.
pub async fn serve(config: &Config, store: &Path) -> Result<(), ServeError> {
    let mut signals = Signals::install().map_err(ServeError::Signals)?;
    let addr = config.server.bind_addr;
    let in_admin = |source| ServeError::Admin { addr, source };
    let listener = TcpListener::bind(addr).await.map_err(in_admin)?;
    let admin_addr = listener.local_addr().map_err(in_admin)?;
    let cluster = match &config.issuance {
        None => Cluster::start(config).await?,
        Some(_) if store == Path::new(":memory:") => {
            Cluster::start_with(config, MemoryStore::default()).await?
        }
        Some(_) => Cluster::start_with(config, Sqlite::open(store).await.map_err(StartError::Store)?).await?,
    };
    let cluster_addr = cluster.local_addr();
    // Tests and supervisors read the addresses from this line.
    info!(node_id = %cluster.node_id(), %cluster_addr, %admin_addr, "listening");

    let (stop, stopping) = watch::channel(false);
    let admin = Admin { cluster: cluster.handle().clone(), stopping: stopping.clone() };
    let server = axum::serve(listener, admin::router(admin)).with_graceful_shutdown(until_true(stopping));
    let mut server = pin!(server.into_future());
    tokio::select! {
        biased;
        signal = signals.next() => info!(signal, "stopping: requests drain, then the node departs"),
        broken = &mut server => return Err(ServeError::Broken(broken.err().unwrap_or_else(ended))),
        how = cluster.ended() => return Err(ServeError::NodeEnded(how)),
    }
    stop.send_replace(true);
    tokio::select! {
        biased;
        _ = &mut server => {}
        signal = signals.next() => warn!(signal, "draining cut short"),
        () = tokio::time::sleep(DRAIN_LIMIT) => warn!(limit = ?DRAIN_LIMIT, "requests still running are cut"),
    }
    // Nobody in view, nobody to tell: what was not written was for addresses where nobody answers.
    let alone = cluster.members().len() <= 1;
    match cluster.leave().await {
        Departure::Flushed => info!("departed"),
        Departure::OutOfTime if alone => info!("departed; there was no member to tell"),
        how @ (Departure::OutOfTime | Departure::Cut) => {
            warn!(
                ?how,
                "departed, but not every farewell was written: a peer that is up drops this node after its suspicion timeout"
            );
        }
    }
    Ok(())
}

async fn until_true(mut flag: watch::Receiver<bool>) {
    // An error means that the sender is gone, and with it whoever could wait for this.
    let _ = flag.wait_for(|set| *set).await;
}

/// A server that ends without an error and without being asked.
fn ended() -> io::Error {
    io::Error::other("it ended unasked")
}

/// SIGTERM and SIGINT.
#[cfg(unix)]
struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn install() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    /// The name of the next signal.
    async fn next(&mut self) -> &'static str {
        tokio::select! {
            biased;
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}

/// Ctrl-C.
#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn install() -> io::Result<Self> {
        Ok(Self)
    }

    /// The name of the next signal.
    async fn next(&mut self) -> &'static str {
        match tokio::signal::ctrl_c().await {
            Ok(()) => "Ctrl-C",
            // No handler: wait for the supervisor to end the process.
            Err(_) => std::future::pending().await,
        }
    }
}
