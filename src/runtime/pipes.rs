//! The byte pipes: one task for the listener, one reader per inbound connection, one writer per link.
//!
//! All of them report through one bounded channel whose waiters are served in turn. So a flood on one
//! connection slows that connection's peer, not its neighbours and not the listener.
//!
//! Invariants: a task lives no longer than its entry here; a frame is written in one call.
//! Absent: any decision. Whatever takes too long is closed by the core.

use std::collections::BTreeMap;
use std::future::Future;
use std::net::SocketAddr;

use bytes::{Bytes, BytesMut};
use firedrill_core::io::{EndpointInput, InboundId, LinkId};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tracing::{debug, error, warn};

use crate::net::{Listener, Net};

/// Reports waiting for the driver; whoever has more to say waits, and stops reading meanwhile.
const REPORTS_WAITING: usize = 64;
/// The core has one write under way per link.
const FRAMES_WAITING: usize = 1;
/// Most bytes taken from a socket at once.
const READ_BYTES: usize = 16 * 1024;

/// What a task has to say.
pub(crate) enum Report<S> {
    /// A peer connected.
    Accepted(S),
    /// The listener failed; it tries again once the core has answered with a pause and its end.
    AcceptFailed,
    /// Anything that the core can be told as it is.
    Input(EndpointInput),
}

pub(crate) type Reports<S> = mpsc::Receiver<Report<S>>;

/// All tasks of one node.
pub(crate) struct Pipes<N: Net> {
    net: N,
    reports: mpsc::Sender<Report<N::Stream>>,
    accepting: watch::Sender<bool>,
    inbound: BTreeMap<InboundId, Task>,
    inbound_next: u64,
    links: BTreeMap<LinkId, Link>,
    acceptor: Task,
}

/// An outbound connection, dialled or dialling.
struct Link {
    frames: mpsc::Sender<Bytes>,
    task: Task,
}

/// A task that ends with its owner.
struct Task(JoinHandle<()>);

impl Task {
    fn spawn(future: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(tokio::spawn(future))
    }

    fn abort(&self) {
        self.0.abort();
    }

    /// Waits until everything that the task held is gone.
    async fn ended(mut self) {
        // Cancelled or done: either way it is over.
        let _ = (&mut self.0).await;
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.abort();
    }
}

impl<N: Net> Pipes<N> {
    /// Starts to accept. The reports come out of the second half.
    pub(crate) fn open(net: N, listener: N::Listener) -> (Self, Reports<N::Stream>) {
        let (reports, receiver) = mpsc::channel(REPORTS_WAITING);
        let accepting = watch::Sender::new(true);
        let acceptor = Task::spawn(accept(listener, accepting.subscribe(), reports.clone()));
        let (inbound, links) = (BTreeMap::new(), BTreeMap::new());
        let pipes = Self { net, reports, accepting, inbound, inbound_next: 0, links, acceptor };
        (pipes, receiver)
    }

    /// Turns a report into what the core is told, and forgets a pipe that has ended.
    pub(crate) fn take(&mut self, report: Report<N::Stream>) -> EndpointInput {
        match report {
            Report::Accepted(stream) => {
                let inbound = InboundId(self.inbound_next);
                self.inbound_next += 1;
                let reader = read(inbound, stream, self.reports.clone());
                self.inbound.insert(inbound, Task::spawn(reader));
                EndpointInput::Accepted { inbound }
            }
            Report::AcceptFailed => EndpointInput::AcceptFailed,
            Report::Input(input) => {
                self.forget_ended(&input);
                input
            }
        }
    }

    fn forget_ended(&mut self, input: &EndpointInput) {
        match input {
            EndpointInput::InboundClosed { inbound } => drop(self.inbound.remove(inbound)),
            EndpointInput::DialFailed { link } | EndpointInput::LinkClosed { link } => {
                drop(self.links.remove(link));
            }
            EndpointInput::Wake
            | EndpointInput::Command(_)
            | EndpointInput::Accepted { .. }
            | EndpointInput::AcceptFailed
            | EndpointInput::Received { .. }
            | EndpointInput::Connected { .. }
            | EndpointInput::Written { .. }
            | EndpointInput::Persisted { .. } => {}
        }
    }

    /// Dials in a task of its own, which then writes what [`Pipes::write`] hands it.
    pub(crate) fn dial(&mut self, link: LinkId, addr: SocketAddr) {
        let (frames, waiting) = mpsc::channel(FRAMES_WAITING);
        let task = Task::spawn(serve(self.net.clone(), link, addr, waiting, self.reports.clone()));
        self.links.insert(link, Link { frames, task });
    }

    /// Hands a whole frame to a link's writer.
    pub(crate) fn write(&self, link: LinkId, frame: Bytes) {
        // No entry, or a closed channel: the link has broken, and its report is on the way.
        let Some(Link { frames, .. }) = self.links.get(&link) else { return };
        if let Err(mpsc::error::TrySendError::Full(_)) = frames.try_send(frame) {
            error!(link = link.0, "a second write before the first was done: please report this as a bug");
        }
    }

    pub(crate) fn close_link(&mut self, link: LinkId) {
        self.links.remove(&link);
    }

    pub(crate) fn close_inbound(&mut self, inbound: InboundId) {
        self.inbound.remove(&inbound);
    }

    /// Closes everything and waits until it is closed: the listener's port is free afterwards.
    pub(crate) async fn close(self) {
        let Self { acceptor, inbound, links, .. } = self;
        let links = links.into_values().map(|link| link.task);
        let tasks: Vec<Task> = links.chain(inbound.into_values()).chain([acceptor]).collect();
        tasks.iter().for_each(Task::abort);
        for task in tasks {
            task.ended().await;
        }
    }

    pub(crate) fn set_accepting(&self, accepting: bool) {
        self.accepting.send_replace(accepting);
    }
}

/// Accepts until the driver is gone.
async fn accept<L: Listener>(
    mut listener: L,
    mut accepting: watch::Receiver<bool>,
    reports: mpsc::Sender<Report<L::Stream>>,
) {
    let mut failing = false;
    while accepting.wait_for(|accepting| *accepting).await.is_ok() {
        let accepted = listener.accept().await;
        let failed = accepted.is_err();
        let report = match accepted {
            Ok(stream) => Report::Accepted(stream),
            Err(error) if failing => {
                debug!(%error, "the listener still fails to accept");
                Report::AcceptFailed
            }
            Err(error) => {
                warn!(%error, "the listener fails to accept; it tries again until it succeeds");
                Report::AcceptFailed
            }
        };
        failing = failed;
        if reports.send(report).await.is_err() {
            return;
        }
        // Wait for the core's answer, or the next attempt would be made before the pause begins.
        if failed && accepting.changed().await.is_err() {
            return;
        }
    }
}

/// Reads until the peer or the core closes.
async fn read<S: tokio::io::AsyncRead + Unpin>(
    inbound: InboundId,
    mut stream: S,
    reports: mpsc::Sender<Report<S>>,
) {
    let mut buffer = BytesMut::new();
    loop {
        buffer.reserve(READ_BYTES);
        let input = match stream.read_buf(&mut buffer).await {
            Ok(1..) => EndpointInput::Received { inbound, bytes: buffer.split().freeze() },
            Ok(0) => EndpointInput::InboundClosed { inbound },
            Err(error) => {
                debug!(inbound = inbound.0, %error, "inbound connection broke");
                EndpointInput::InboundClosed { inbound }
            }
        };
        let ended = matches!(input, EndpointInput::InboundClosed { .. });
        if reports.send(Report::Input(input)).await.is_err() || ended {
            return;
        }
    }
}

/// Dials, then writes frame after frame until one fails.
async fn serve<N: Net>(
    net: N,
    link: LinkId,
    addr: SocketAddr,
    mut frames: mpsc::Receiver<Bytes>,
    reports: mpsc::Sender<Report<N::Stream>>,
) {
    let report = async |input| reports.send(Report::Input(input)).await.is_ok();
    let mut stream = match net.dial(addr).await {
        Ok(stream) => stream,
        Err(error) => {
            debug!(link = link.0, %addr, %error, "dial failed");
            report(EndpointInput::DialFailed { link }).await;
            return;
        }
    };
    if !report(EndpointInput::Connected { link }).await {
        return;
    }
    // A peer says nothing on a connection that it accepted. What a read is for is its end, which is noticed at
    // once this way instead of at the second write after it.
    let mut ignored = [0; 64];
    loop {
        let broken = tokio::select! {
            biased;
            frame = frames.recv() => match frame {
                None => return,
                Some(frame) => stream.write_all(&frame).await.err(),
            },
            read = stream.read(&mut ignored) => match read {
                Ok(1..) => continue,
                Ok(0) => Some(std::io::ErrorKind::ConnectionReset.into()),
                Err(error) => Some(error),
            },
        };
        if let Some(error) = broken {
            debug!(link = link.0, %addr, %error, "link broke");
            report(EndpointInput::LinkClosed { link }).await;
            return;
        }
        if !report(EndpointInput::Written { link }).await {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::net::TcpStream;
    use tokio::time::timeout;

    use super::*;
    use crate::net::TokioNet;

    /// More than all buffers between two sockets and in the report channel.
    const FLOOD_BYTES: usize = 256 << 20;

    #[tokio::test]
    async fn a_driver_that_is_held_up_makes_senders_wait_instead_of_buffering() {
        let net = TokioNet;
        let listener = net.bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
        let addr = Listener::local_addr(&listener).unwrap();
        let (mut pipes, mut reports) = Pipes::open(net, listener);
        let mut flooder = TcpStream::connect(addr).await.unwrap();
        let accepted = reports.recv().await.unwrap();
        assert_eq!(pipes.take(accepted), EndpointInput::Accepted { inbound: InboundId(0) });

        // From here on the driver takes no report.
        let chunk = vec![0; 1 << 20];
        let mut sent = 0;
        while sent < FLOOD_BYTES {
            let Ok(written) = timeout(Duration::from_millis(500), flooder.write(&chunk)).await else { break };
            sent += written.unwrap();
        }
        assert!(sent < FLOOD_BYTES / 4, "{sent} bytes were taken in although nothing was handled");
        assert_eq!(reports.len(), REPORTS_WAITING);
        pipes.close().await;
    }
}
