//! What a service keeps of its node: a cheap handle, its counters, and a stream of membership events.
//!
//! Every method but [`ClusterHandle::leave`] and [`MemberEvents::next`] returns at once; the lock behind them
//! is held for one step of the core, never across an await.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use firedrill_core::id::{CounterName, Incarnation, NameError, NodeId};
use firedrill_core::io::{Command, Event, Refusal, Reply};
use firedrill_core::issuance::machine::Issuance;
use firedrill_core::metrics::Metrics;
use firedrill_core::node::{MemberView, NodeView};
use firedrill_core::wire::message::Addr;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use crate::shared::Shared;

/// A running node, as request handlers see it. Clones are cheap and mean the same node.
#[derive(Clone)]
pub struct ClusterHandle {
    shared: Arc<Shared>,
}

impl ClusterHandle {
    pub(crate) const fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// This node's id.
    pub fn node_id(&self) -> &NodeId {
        &self.shared.node_id
    }

    /// Where this node listens, with the port it was given.
    pub fn local_addr(&self) -> SocketAddr {
        self.shared.local_addr
    }

    /// Who is in this node's view: itself first, then the others by id. Never empty.
    pub fn members(&self) -> Vec<MemberView> {
        self.view().members
    }

    /// Everything this node believes, as of the last thing it handled.
    pub fn view(&self) -> NodeView {
        self.shared.look().endpoint.view()
    }

    /// The counts of this boot.
    pub fn metrics(&self) -> Metrics {
        self.shared.look().endpoint.metrics()
    }

    /// A cluster-wide counter; it comes into being with its first increment. Keep the names a small set from
    /// your code: cells are never dropped.
    ///
    /// # Errors
    /// [`NameError`] when the name is blank or longer than 64 bytes.
    pub fn counter(&self, name: &str) -> Result<Counter, NameError> {
        Ok(Counter { shared: Arc::clone(&self.shared), name: CounterName::new(name)? })
    }

    /// Membership events from here on. A subscriber that falls more than 256 events behind loses the oldest and
    /// is told so by [`MemberEvent::Missed`]; the node never waits for it.
    pub fn events(&self) -> MemberEvents {
        MemberEvents { receiver: self.shared.look().subscribe() }
    }

    /// Looks at the issuance, under the node's lock: return soon. `None` on a node without `[issuance]`.
    pub fn issuance<T>(&self, look: impl FnOnce(&Issuance) -> T) -> Option<T> {
        self.shared.look().endpoint.node().issuance().map(look)
    }

    /// Stops this node from sealing, or lets it go on. Not kept across a restart.
    ///
    /// # Errors
    /// [`CommandError`] when the node has no issuance, or has ended.
    pub fn pause_issuance(&self, paused: bool) -> Result<(), CommandError> {
        self.shared.command(Command::PauseIssuance { paused }).map(drop)
    }

    /// Departs gracefully and waits until that is over, 250 ms at most while the driver runs. A second call waits
    /// for the first.
    pub async fn leave(&self) -> Departure {
        self.begin_leave();
        self.shared.ended().await
    }

    /// Waits until the node has ended, for whatever reason.
    pub async fn ended(&self) -> Departure {
        self.shared.ended().await
    }

    pub(crate) fn begin_leave(&self) {
        // Refused means that it is leaving, or has left: then waiting is all there is to do.
        let _ = self.shared.command(Command::Leave);
    }
}

impl fmt::Debug for ClusterHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterHandle")
            .field("node_id", self.node_id())
            .field("local_addr", &self.shared.local_addr)
            .finish_non_exhaustive()
    }
}

/// How a node ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Departure {
    /// Every farewell was written; peers drop the node at once.
    Flushed,
    /// The 250 ms were over first; peers that heard nothing drop the node after the suspicion timeout.
    OutOfTime,
    /// The driver was dropped without a farewell, or the core panicked; peers see a crash.
    Cut,
}

/// Why a command was not applied. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CommandError {
    /// The node refused.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The node's driver has ended.
    #[error("the node has stopped; start it again to use it")]
    Stopped,
}

/// A grow-only counter that all members share.
#[derive(Clone)]
pub struct Counter {
    shared: Arc<Shared>,
    name: CounterName,
}

impl Counter {
    /// Its name.
    pub const fn name(&self) -> &CounterName {
        &self.name
    }

    /// Adds 1 and returns the total as this node sees it. Visible here at once, at peers after a push.
    ///
    /// # Errors
    /// [`CommandError`] when the node has departed, or 64 other names are in use.
    pub fn increment(&self) -> Result<u64, CommandError> {
        self.add(1)
    }

    /// Adds `by` and returns the total as this node sees it; totals stop at `u64::MAX`.
    ///
    /// # Errors
    /// As [`Counter::increment`].
    pub fn add(&self, by: u64) -> Result<u64, CommandError> {
        match self.shared.command(Command::Increment { counter: self.name.clone(), by })? {
            Reply::Incremented { total } => Ok(total),
            // The core answers an increment with its total; to read it is as good.
            Reply::Leaving | Reply::IssuancePaused { .. } => Ok(self.get()),
        }
    }

    /// The total as this node sees it: a lower bound of the true one that never falls; 0 before any increment.
    pub fn get(&self) -> u64 {
        self.shared.look().endpoint.node().counter(&self.name)
    }
}

impl fmt::Debug for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Counter").field(&self.name).finish()
    }
}

/// A change of the local view.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum MemberEvent {
    /// A member entered the view.
    Up {
        /// Who.
        id: NodeId,
        /// At which address.
        addr: Addr,
        /// In which boot.
        incarnation: Incarnation,
    },
    /// A member missed two pushes; it is still in the view.
    Suspect {
        /// Who.
        id: NodeId,
    },
    /// A suspect was heard again.
    Recovered {
        /// Who.
        id: NodeId,
    },
    /// A member left the view after a suspicion timeout of silence.
    Down {
        /// Who.
        id: NodeId,
    },
    /// A member left the view because it said so.
    Left {
        /// Who.
        id: NodeId,
    },
    /// This subscriber was too slow and lost events: read [`ClusterHandle::members`] for the present view.
    Missed {
        /// How many.
        count: u64,
    },
}

impl MemberEvent {
    /// The change of the view that `event` is, if it is one.
    pub(crate) fn of(event: &Event) -> Option<Self> {
        Some(match event {
            Event::MemberUp { id, addr, incarnation } => {
                Self::Up { id: id.clone(), addr: addr.clone(), incarnation: *incarnation }
            }
            Event::MemberSuspect { id } => Self::Suspect { id: id.clone() },
            Event::MemberRecovered { id } => Self::Recovered { id: id.clone() },
            Event::MemberDown { id } => Self::Down { id: id.clone() },
            Event::MemberLeft { id } => Self::Left { id: id.clone() },
            Event::Started { .. }
            | Event::Accepted { .. }
            | Event::Rejected { .. }
            | Event::NotAdmitted { .. }
            | Event::MemberConverted { .. }
            | Event::MemberReaped { .. }
            | Event::ReturnAnswered { .. }
            | Event::Refuted { .. }
            | Event::DuplicateNodeId { .. }
            | Event::Unsendable { .. }
            | Event::RoundLate { .. }
            | Event::InboundClosed { .. }
            | Event::LinkReset { .. }
            | Event::Issuance(_) => return None,
        })
    }
}

/// A subscription to membership events.
#[derive(Debug)]
pub struct MemberEvents {
    /// `None` when the node had ended before the subscription.
    receiver: Option<broadcast::Receiver<MemberEvent>>,
}

impl MemberEvents {
    /// The next event, in order; `None` once the node has ended and all were read. Safe to drop while waiting.
    pub async fn next(&mut self) -> Option<MemberEvent> {
        match self.receiver.as_mut()?.recv().await {
            Ok(event) => Some(event),
            Err(RecvError::Lagged(count)) => Some(MemberEvent::Missed { count }),
            Err(RecvError::Closed) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_slow_subscriber_is_told_how_many_events_it_missed() {
        let sender = broadcast::Sender::new(2);
        let mut events = MemberEvents { receiver: Some(sender.subscribe()) };
        let down = |id: &str| MemberEvent::Down { id: NodeId::new(id).unwrap() };
        for id in ["a", "b", "c", "d", "e"] {
            sender.send(down(id)).unwrap();
        }
        drop(sender);
        assert_eq!(events.next().await, Some(MemberEvent::Missed { count: 3 }));
        assert_eq!(events.next().await, Some(down("d")));
        assert_eq!(events.next().await, Some(down("e")));
        assert_eq!(events.next().await, None);
    }
}
