//! What hosts did within a tick, kept until the watch can be shown it.
//!
//! Hosts run inside turmoil, where nothing borrowed may go, so a step is kept whole: with a copy of the node,
//! whose documents are shared.

use std::collections::VecDeque;
use std::sync::Arc;

use firedrill_core::endpoint::LinkSizes;
use firedrill_core::io::{Alarm, Command, Event};
use firedrill_core::issuance::writer::Written;
use firedrill_core::metrics::Metrics;
use firedrill_core::node::Node;
use firedrill_core::time::{Instant, Now};

use crate::engine::{Cause, Counts, Flow, Step, Watch};
use crate::scenario::model::HostIx;

/// Why a node was called.
#[derive(Debug)]
pub(super) enum Why {
    Boot,
    Wake,
    Disk(Written),
    Wire,
    Command(Command),
}

/// One handled input.
#[derive(Debug)]
pub(super) struct Handled {
    pub(super) now: Now,
    pub(super) why: Why,
    pub(super) node: Arc<Node>,
    pub(super) metrics: Metrics,
    pub(super) events: Vec<Event>,
    pub(super) frames_sent: u64,
    pub(super) bytes_sent: u64,
    pub(super) links: LinkSizes,
    pub(super) alarms: Vec<Alarm>,
}

/// What happened.
#[derive(Debug)]
pub(super) enum What {
    Handled(Box<Handled>),
    /// The host departed by itself.
    Departed,
}

/// Something that happened on a host.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) at: Instant,
    pub(super) host: HostIx,
    pub(super) boot: u32,
    pub(super) what: What,
}

/// What the watch has yet to see, in order of time; what happened at one time, in the order in which it did.
#[derive(Debug, Default)]
pub(super) struct Unseen(VecDeque<Record>);

impl Unseen {
    /// Adds what happened since, none of it earlier than what is here.
    pub(super) fn add(&mut self, mut records: Vec<Record>) {
        records.sort_by_key(|record| record.at);
        self.0.extend(records);
    }

    /// Shows the watch one thing after another until it says stop.
    pub(super) fn show(&mut self, watch: &mut dyn Watch) -> Flow {
        while let Some(Record { at, host, boot, what }) = self.0.pop_front() {
            match what {
                What::Handled(handled) => {
                    if watch.observe(&handled.step(at, host, boot)) == Flow::Stop {
                        return Flow::Stop;
                    }
                }
                What::Departed => watch.down(at, host, boot, true),
            }
        }
        Flow::Continue
    }
}

impl Handled {
    fn step(&self, at: Instant, host: HostIx, boot: u32) -> Step<'_> {
        Step {
            at,
            now: self.now,
            host,
            boot,
            cause: match &self.why {
                Why::Boot => Cause::Boot,
                Why::Wake => Cause::Wake,
                Why::Disk(written) => Cause::Disk(*written),
                Why::Wire => Cause::Wire,
                Why::Command(command) => Cause::Command(command),
            },
            node: &self.node,
            counts: Counts::Taken(&self.metrics),
            events: &self.events,
            frames_sent: self.frames_sent,
            bytes_sent: self.bytes_sent,
            links: self.links,
            alarms: &self.alarms,
        }
    }
}
