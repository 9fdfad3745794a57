//! What was done to the cluster, in order, with what nodes saw of it before the next was done.
//!
//! Acts that say the same follow one another as one line with a count; so do the things that several nodes saw
//! alike.

use std::collections::BTreeMap;

use serde::Serialize;

use super::recorder::{Done, Note, Recorder, What};
use crate::drill::words;
use firedrill_core::io::Event;

/// Sentences about what nodes saw after one act, at the most.
const SEEN_MAX: usize = 3;

/// Something done to the cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Act {
    /// When first, in microseconds of the run.
    pub at_us: u64,
    /// When last.
    pub last_us: u64,
    /// How often in a row.
    pub times: usize,
    /// What, in the words of the timeline.
    pub text: String,
    /// What nodes saw of it, until the next act.
    pub seen: Vec<String>,
    /// Whether it changed nothing.
    pub without_effect: bool,
}

/// All acts up to a moment in microseconds of the run.
pub(super) fn of(recorder: &Recorder<'_>, ineffective: &[String], until_us: Option<u64>) -> Vec<Act> {
    let until_us = until_us.unwrap_or(u64::MAX);
    let mut acts: Vec<Act> = Vec::new();
    for (position, done) in recorder.done.iter().enumerate() {
        let at_us = done.at.as_micros();
        if at_us > until_us {
            break;
        }
        let notes_end =
            recorder.done.get(position + 1).map_or(recorder.notes.len(), |next| next.notes_before);
        let notes = &recorder.notes[done.notes_before..notes_end];
        let seen = seen(recorder, notes, until_us);
        match acts.last_mut().filter(|last| last.text == done.text && last.seen.is_empty()) {
            Some(last) => {
                last.times += 1;
                (last.last_us, last.seen) = (at_us, seen);
            }
            None => acts.push(Act {
                at_us,
                last_us: at_us,
                times: 1,
                text: done.text.clone(),
                seen,
                without_effect: is_without_effect(done, ineffective),
            }),
        }
    }
    acts
}

/// Whether the outcome says of this very act that it changed nothing.
fn is_without_effect(done: &Done, ineffective: &[String]) -> bool {
    let at = words::moment(done.at);
    ineffective.iter().any(|text| text.contains(&format!("({} at {at})", done.text)))
}

/// What nodes did about it, merged: who did the same to whom.
fn seen(recorder: &Recorder<'_>, notes: &[Note], until_us: u64) -> Vec<String> {
    // By what was done, in order of appearance: to whom, and by whom.
    let mut done: Vec<(Deed, BTreeMap<String, Vec<String>>)> = Vec::new();
    for note in notes.iter().filter(|note| note.at.as_micros() <= until_us) {
        let Some((deed, object)) = deed(note) else { continue };
        let node = words::host_name(recorder.scenario, note.host).to_owned();
        let position = done.iter().position(|(known, _)| *known == deed).unwrap_or_else(|| {
            done.push((deed, BTreeMap::new()));
            done.len() - 1
        });
        let by = done[position].1.entry(object).or_default();
        if !by.contains(&node) {
            by.push(node);
        }
    }
    let mut sentences = Vec::new();
    for (deed, objects) in done {
        // Those to whom the same nodes did it are named together.
        let mut together: BTreeMap<Vec<String>, Vec<String>> = BTreeMap::new();
        for (object, mut by) in objects {
            by.sort_unstable();
            together.entry(by).or_default().push(object);
        }
        for (by, objects) in together {
            let verb = if by.len() == 1 { deed.one } else { deed.many };
            let objects = match objects.concat().is_empty() {
                true => String::new(),
                false => format!(" {}", few(&objects)),
            };
            sentences.push(format!("{} {verb}{objects}{}", few(&by), deed.tail));
        }
    }
    let more = sentences.len().saturating_sub(SEEN_MAX);
    if more > 1 {
        sentences.truncate(SEEN_MAX);
        sentences.push(format!("… and {more} things more"));
    }
    sentences
}

/// What a node does: the verb for one and for many, and what follows its object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Deed {
    one: &'static str,
    many: &'static str,
    tail: &'static str,
}

/// What a note says that its node did, and to whom; `None` for what is no news after an act.
fn deed(note: &Note) -> Option<(Deed, String)> {
    let deed = |one, many, tail| Deed { one, many, tail };
    let What::Event(event) = &note.what else { return None };
    let (deed, object) = match event {
        Event::MemberUp { id, .. } => (deed("sees", "see", ""), Some(id)),
        Event::MemberRecovered { id } => (deed("hears", "hear", " again"), Some(id)),
        Event::MemberDown { id } => (deed("drops", "drop", ": silent"), Some(id)),
        Event::MemberLeft { id } => (deed("drops", "drop", ": departed"), Some(id)),
        Event::MemberConverted { id, .. } => {
            (deed("records", "record", " as left after a long silence"), Some(id))
        }
        Event::MemberReaped { id, .. } => (deed("forgets", "forget", ""), Some(id)),
        Event::ReturnAnswered { id, .. } => {
            (deed("tells", "tell", " that it has to outrank its old self"), Some(id))
        }
        Event::Refuted { .. } => {
            (deed("refutes a record about itself", "refute records about themselves", ""), None)
        }
        Event::DuplicateNodeId { id } => (deed("suspects", "suspect", " of being two hosts"), Some(id)),
        Event::RoundLate { .. } => (deed("runs a round late", "run a round late", ""), None),
        Event::Unsendable { .. } => {
            (deed("cannot send its document any more", "cannot send their documents any more", ""), None)
        }
        Event::MemberSuspect { .. }
        | Event::Started { .. }
        | Event::Accepted { .. }
        | Event::Rejected { .. }
        | Event::NotAdmitted { .. }
        | Event::InboundClosed { .. }
        | Event::LinkReset { .. }
        | Event::Issuance(_) => return None,
    };
    Some((deed, object.map(ToString::to_string).unwrap_or_default()))
}

/// Names, the middle left out where there are many.
pub(super) fn few(names: &[String]) -> String {
    match names {
        [first, second, .., last] if names.len() > 8 => {
            format!("{first}, {second} … {last} ({} in all)", names.len())
        }
        _ => names.join(", "),
    }
}
