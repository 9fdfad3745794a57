//! What one event of a run was: for a replay that wants to name the first event that differs.
//!
//! A run is deterministic, so whoever learns the number of an event afterwards runs it again and asks.

use firedrill_core::io::Command;
use firedrill_core::issuance::writer::Written;

use super::timeline::told;
use super::words;
use crate::engine::{Cause, Step};
use crate::outcome::Happening;
use crate::scenario::model::Scenario;

/// Counts events and keeps a description of the one that was asked about.
#[derive(Debug, Default)]
pub(super) struct Lookout {
    wanted: Option<usize>,
    seen: usize,
    happening: Option<Happening>,
}

impl Lookout {
    pub(super) fn new(wanted: Option<usize>) -> Self {
        Self { wanted, ..Self::default() }
    }

    /// An event was handled. Costs a comparison unless it is the one.
    pub(super) fn observe(&mut self, step: &Step<'_>, scenario: &Scenario) {
        if self.wanted == Some(self.seen) {
            self.happening = Some(Happening {
                event: self.seen,
                at_us: step.at.as_micros(),
                node: words::host_name(scenario, step.host).to_owned(),
                text: describe(step, scenario),
            });
        }
        self.seen += 1;
    }

    pub(super) fn into_happening(self) -> Option<Happening> {
        self.happening
    }
}

/// What came in, what the node saw in it, what it sent.
fn describe(step: &Step<'_>, scenario: &Scenario) -> String {
    let mut parts = vec![cause(&step.cause)];
    parts.extend(step.events.iter().filter_map(|event| told(scenario, step.host, event)));
    parts.extend(step.alarms.iter().map(|alarm| format!("raises the alarm {alarm}")));
    match step.frames_sent {
        0 => {}
        1 => parts.push("sends a frame".to_owned()),
        many => parts.push(format!("sends {many} frames")),
    }
    parts.join("; ")
}

fn cause(cause: &Cause<'_>) -> String {
    match cause {
        Cause::Boot => "boots".to_owned(),
        Cause::Wake => "a timer is due".to_owned(),
        Cause::Disk(Written::Durable) => "its disk has written".to_owned(),
        Cause::Disk(Written::Refused) => "its disk refuses to write".to_owned(),
        Cause::Frame(header) => {
            format!("frame {} of {} arrives, incarnation {}", header.seq.0, header.sender, header.incarnation)
        }
        Cause::Wire => "bytes or news of a connection arrive".to_owned(),
        Cause::Command(Command::Increment { counter, by }) => {
            format!("a client increments {counter} by {by}")
        }
        Cause::Command(Command::Leave) => "is told to leave".to_owned(),
        Cause::Command(Command::PauseIssuance { paused: true }) => "is told to stop sealing".to_owned(),
        Cause::Command(Command::PauseIssuance { paused: false }) => {
            "is told that it may seal again".to_owned()
        }
    }
}
