//! The one piece of state that the driver and all handles share, behind a lock.
//!
//! Invariant: whoever calls [`State::handle`] holds the lock until its outputs are sorted, so effects stand in
//! the queue in the order in which the core pushed them, whether a command or the network caused them.
//!
//! The effect queue needs no bound of its own: the core has at most one dial and one write under way per link,
//! and every other effect answers an input that came through a bounded channel.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use firedrill_core::endpoint::Endpoint;
use firedrill_core::id::NodeId;
use firedrill_core::io::{
    Command, EndpointInput, EndpointOutput, Event, InboundId, LinkId, Outbox, Refusal, Reply,
};
use firedrill_core::issuance::writer::{Batch, Token};
use tokio::sync::{Notify, broadcast, watch};

use crate::clock::Clock;
use crate::driver::Observer;
use crate::handle::{CommandError, Departure, MemberEvent};
use crate::journal::Journal;

/// Membership events a slow subscriber may fall behind before it misses some.
const EVENTS_KEPT: usize = 256;
/// tokio's timer counts whole milliseconds; a shorter sleep would end at once, and the loop would spin.
const TIMER_GRAIN: Duration = Duration::from_millis(1);

/// What the core wants done on the network.
#[derive(Debug)]
pub(crate) enum Effect {
    Dial { link: LinkId, addr: SocketAddr },
    Write { link: LinkId, frame: Bytes },
    CloseLink { link: LinkId },
    CloseInbound { inbound: InboundId },
    Accept(bool),
    Departed { flushed: bool },
    Persist { token: Token, batch: Batch },
}

/// Shared by the driver and all handles.
pub(crate) struct Shared {
    pub(crate) node_id: NodeId,
    pub(crate) local_addr: SocketAddr,
    state: Mutex<State>,
    /// A command was handled outside the driver: there may be effects, and another next wake-up.
    pub(crate) changed: Notify,
    /// How the node ended, once it has.
    ended: watch::Sender<Option<Departure>>,
}

impl Shared {
    pub(crate) fn new(
        endpoint: Endpoint,
        clock: Box<dyn Clock>,
        observer: Box<dyn Observer>,
        local_addr: SocketAddr,
    ) -> Self {
        let node_id = endpoint.node().id().clone();
        let mut journal = Journal::new(node_id.clone());
        // No layer of the core reports its own boot; whoever boots it does.
        let incarnation = endpoint.node().boot_incarnation();
        journal.event(clock.now().instant, &Event::Started { incarnation });
        let state = State {
            journal,
            endpoint,
            clock,
            observer,
            outbox: Outbox::new(),
            effects: VecDeque::new(),
            events: Some(broadcast::Sender::new(EVENTS_KEPT)),
        };
        let ended = watch::Sender::new(None);
        Self { node_id, local_addr, state: Mutex::new(state), changed: Notify::new(), ended }
    }

    /// The state, to look at. After a panic in the core it is what the core last left behind.
    pub(crate) fn look(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state, to drive it; `None` once the node has ended or the core has panicked.
    pub(crate) fn drive(&self) -> Option<MutexGuard<'_, State>> {
        if self.ended.borrow().is_some() {
            return None;
        }
        self.state.lock().ok()
    }

    /// Applies a command at once and tells the driver.
    pub(crate) fn command(&self, command: Command) -> Result<Reply, CommandError> {
        let reply = self.drive().and_then(|mut state| state.handle(EndpointInput::Command(command)));
        self.changed.notify_one();
        Ok(reply.ok_or(CommandError::Stopped)??)
    }

    /// Marks the node as ended: handles are refused from here on, and event streams end.
    pub(crate) fn end(&self, how: Departure) {
        self.look().events = None;
        self.ended.send_replace(Some(how));
    }

    /// Waits until the node has ended.
    pub(crate) async fn ended(&self) -> Departure {
        let mut ended = self.ended.subscribe();
        // The sender lives in `self`, so waiting cannot fail.
        let how = ended.wait_for(Option::is_some).await.ok().and_then(|how| *how);
        how.unwrap_or(Departure::Cut)
    }
}

/// The core with what surrounds a call to it.
pub(crate) struct State {
    pub(crate) endpoint: Endpoint,
    clock: Box<dyn Clock>,
    observer: Box<dyn Observer>,
    journal: Journal,
    /// Empty between calls; kept for its allocation.
    outbox: Outbox<EndpointOutput>,
    /// What the driver has yet to carry out.
    effects: VecDeque<Effect>,
    /// `None` once the node has ended.
    events: Option<broadcast::Sender<MemberEvent>>,
}

impl State {
    /// Hands one input to the core and sorts what comes out; the reply, if it was a command.
    pub(crate) fn handle(&mut self, input: EndpointInput) -> Option<Result<Reply, Refusal>> {
        let now = self.clock.now();
        self.endpoint.handle(now, input.clone(), &mut self.outbox);
        self.observer.handled(&self.endpoint, now, &input, self.outbox.as_slice());
        let mut answer = None;
        for output in self.outbox.drain() {
            self.effects.push_back(match output {
                EndpointOutput::Dial { link, addr } => Effect::Dial { link, addr },
                EndpointOutput::Write { link, frame } => Effect::Write { link, frame },
                EndpointOutput::CloseLink { link } => Effect::CloseLink { link },
                EndpointOutput::CloseInbound { inbound } => Effect::CloseInbound { inbound },
                EndpointOutput::PauseAccept => Effect::Accept(false),
                EndpointOutput::ResumeAccept => Effect::Accept(true),
                EndpointOutput::Departed { flushed } => Effect::Departed { flushed },
                EndpointOutput::Persist { token, batch } => Effect::Persist { token, batch },
                EndpointOutput::Reply(reply) => {
                    answer = Some(reply);
                    continue;
                }
                EndpointOutput::Alarm(alarm) => {
                    self.journal.alarm(&alarm);
                    continue;
                }
                EndpointOutput::Event(event) => {
                    self.journal.event(now.instant, &event);
                    if let (Some(events), Some(event)) = (&self.events, MemberEvent::of(&event)) {
                        // Nobody subscribes: nobody misses it.
                        let _ = events.send(event);
                    }
                    continue;
                }
            });
        }
        answer
    }

    /// The oldest thing that the core wants done and the driver has not done.
    pub(crate) fn next_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// How long the driver may sleep, in whole milliseconds and at least one; `None` for ever.
    pub(crate) fn sleep(&self) -> Option<Duration> {
        let (wake, _) = self.endpoint.next_wake()?;
        let span = self.clock.timer(wake.since(self.clock.now().instant));
        Some(whole_grains(span))
    }

    /// A subscription to what happens from here on; already ended if the node has.
    pub(crate) fn subscribe(&self) -> Option<broadcast::Receiver<MemberEvent>> {
        self.events.as_ref().map(broadcast::Sender::subscribe)
    }
}

/// `span` rounded up to the timer's grain, and never zero.
fn whole_grains(span: Duration) -> Duration {
    let grains = span.as_nanos().div_ceil(TIMER_GRAIN.as_nanos()).max(1);
    TIMER_GRAIN.saturating_mul(u32::try_from(grains).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_is_whole_milliseconds_rounded_up_and_never_none() {
        let rounded = |micros| whole_grains(Duration::from_micros(micros)).as_micros();
        assert_eq!([0, 1, 1_000, 1_001].map(rounded), [1_000, 1_000, 1_000, 2_000]);
        assert!(whole_grains(Duration::MAX) >= Duration::from_secs(3600));
    }
}
