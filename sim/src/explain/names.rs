//! What an incarnation is called: a person knows a node's boots, not the milliseconds they began at.

use std::collections::BTreeMap;

use firedrill_core::id::{Incarnation, NodeId};
use firedrill_core::io::Event;
use firedrill_core::wire::message::RecordStatus;

use super::beliefs::Held;
use super::recorder::{Recorder, What};
use crate::scenario::Scenario;

/// How a node came by an incarnation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// A boot began with it: which, from 1.
    Boot(usize),
    /// It rose to it to outrank a record.
    Rise,
}

/// Names of incarnations and hosts.
#[derive(Debug)]
pub(super) struct Names {
    boots: BTreeMap<String, usize>,
    origins: BTreeMap<(String, Incarnation), Origin>,
}

impl Names {
    pub(super) fn new(scenario: &Scenario, recorder: &Recorder<'_>) -> Self {
        let mut names = Self { boots: BTreeMap::new(), origins: BTreeMap::new() };
        for note in &recorder.notes {
            if let What::Event(Event::Refuted { to, .. }) = note.what {
                names.origins.insert((scenario.hosts[note.host.0].id.to_string(), to), Origin::Rise);
            }
        }
        for (id, boots) in &recorder.boots {
            names.boots.insert(id.to_string(), boots.len());
            for (position, boot) in boots.iter().enumerate() {
                names.origins.entry((id.to_string(), *boot)).or_insert(Origin::Boot(position + 1));
            }
        }
        names
    }

    /// `boot 2 (1767218411050)`; the bare number where there was one boot only.
    pub(super) fn incarnation(&self, id: &str, incarnation: Incarnation) -> String {
        match self.origins.get(&(id.to_owned(), incarnation)) {
            Some(Origin::Boot(1)) if self.boots.get(id) == Some(&1) => format!("incarnation {incarnation}"),
            Some(Origin::Boot(number)) => format!("boot {number} ({incarnation})"),
            Some(Origin::Rise) => format!("incarnation {incarnation}, risen to refute"),
            None => format!("incarnation {incarnation}, which it never had"),
        }
    }

    /// A record in words.
    pub(super) fn held(&self, id: &str, held: Option<Held>) -> String {
        match held {
            None => "none".to_owned(),
            Some(Held { incarnation, status }) => {
                format!("{}, {}", status_word(status), self.incarnation(id, incarnation))
            }
        }
    }
}

/// A record's status in a word.
pub(super) const fn status_word(status: RecordStatus) -> &'static str {
    match status {
        RecordStatus::Alive => "alive",
        RecordStatus::Left => "left",
    }
}

/// Whether this is the id.
pub(super) fn is(id: &NodeId, text: &str) -> bool {
    id.as_str() == text
}
