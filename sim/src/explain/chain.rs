//! How it came to this: what the notes hold about the nodes of the failure, the last of it, in order.
//!
//! Three kinds of links are joined: what nodes reported, what was done to them, and the last frame that one heard
//! of another that it lost, with why none came after it.

use std::collections::BTreeMap;

use firedrill_core::id::NodeId;
use firedrill_core::io::Event;
use firedrill_core::time::{Instant, micros};
use firedrill_core::wire::message::RecordStatus;

use super::beliefs::{About, Belief, NodeState};
use super::names::{Names, is};
use super::recorder::{Change, Note, Picture, Recorder, What};
use super::topics::{moment, refused};
use super::trouble::{Concern, Trouble};
use crate::drill::timeline::sentence;
use crate::drill::words;
use crate::outcome::{Entry, EntryKind};
use crate::scenario::model::HostIx;

/// Links of each kind that are told, the last ones.
const ACTS_MAX: usize = 4;
const EVENTS_MAX: usize = 7;
const SILENCES_MAX: usize = 3;
const CHANGES_MAX: usize = 5;

/// The chain, the failure at its end.
pub(super) fn of(
    recorder: &Recorder<'_>,
    picture: Option<&Picture>,
    trouble: &Trouble,
    concern: &Concern,
    names: &Names,
) -> Vec<Entry> {
    let Some(at_us) = trouble.at_us() else { return Vec::new() };
    let until = Instant::from_micros(at_us);
    let mut links = acts(recorder, concern, until);
    links.extend(events(recorder, concern, names, until));
    if let Some(picture) = picture {
        links.extend(silences(recorder, picture, concern, names));
    }
    if concern.counters {
        links.extend(changes(recorder, concern, until));
    }
    // Stable: what was done at a moment comes before what was seen of it.
    links.sort_by_key(|link| link.at_us);
    let mut links = together(links);
    links.push(end(trouble, at_us));
    links
}

/// Whether a host is one of those concerned; everybody is where nobody is named.
fn concerns(recorder: &Recorder<'_>, concern: &Concern, host: HostIx) -> bool {
    concern.ids.is_empty() || concern.ids.contains(recorder.scenario.hosts[host.0].id.as_str())
}

fn acts(recorder: &Recorder<'_>, concern: &Concern, until: Instant) -> Vec<Entry> {
    let touching = recorder
        .done
        .iter()
        .filter(|done| done.at <= until && done.hosts.iter().any(|&host| concerns(recorder, concern, host)));
    let entry = |done: &super::recorder::Done| Entry {
        at_us: done.at.as_micros(),
        node: None,
        kind: EntryKind::Fault,
        text: done.text.clone(),
    };
    last(touching.map(entry).collect(), ACTS_MAX)
}

fn events(recorder: &Recorder<'_>, concern: &Concern, names: &Names, until: Instant) -> Vec<Entry> {
    let mut links: Vec<Entry> = Vec::new();
    let mut repeats: BTreeMap<usize, (String, usize)> = BTreeMap::new();
    for note in recorder.notes.iter().filter(|note| note.at <= until) {
        if !belongs(recorder, note, concern) || is_of_the_start(recorder, note) {
            continue;
        }
        let Some(text) = text_of(recorder, note, names) else { continue };
        let node = words::host_name(recorder.scenario, note.host);
        // What repeats itself is told once, with a count and its last moment.
        let same = links.iter().rposition(|link| link.node.as_deref() == Some(node));
        if let Some(position) = same {
            let (plain, times) = repeats.get(&position).cloned().unwrap_or((links[position].text.clone(), 1));
            if plain == text {
                links[position].text = format!("{text} ({} times so far)", times + 1);
                links[position].at_us = note.at.as_micros();
                repeats.insert(position, (plain, times + 1));
                continue;
            }
        }
        let (at_us, node) = (note.at.as_micros(), Some(node.to_owned()));
        links.push(Entry { at_us, node, kind: EntryKind::Event, text });
    }
    links.sort_by_key(|link| link.at_us);
    last(links, EVENTS_MAX)
}

/// Whether a note belongs into the chain: its node is concerned, and so is whom it is about. Where one member alone
/// is concerned, what anybody thinks of it belongs there too.
fn belongs(recorder: &Recorder<'_>, note: &Note, concern: &Concern) -> bool {
    let among = |id: &NodeId| concern.ids.is_empty() || concern.ids.contains(id.as_str());
    let about = match &note.what {
        What::Down { .. } => None,
        What::Record { id, .. } => Some(id),
        What::Event(event) => subject(event),
    };
    let by_concerned = concerns(recorder, concern, note.host);
    match about {
        Some(id) => among(id) && (by_concerned || concern.ids.len() == 1),
        None => by_concerned,
    }
}

/// Whether a note tells of the start alone: boots at the first moment, and meetings before anything was done.
fn is_of_the_start(recorder: &Recorder<'_>, note: &Note) -> bool {
    match &note.what {
        What::Event(Event::Started { .. }) => note.at == Instant::ZERO,
        What::Event(Event::MemberUp { .. }) | What::Record { .. } => {
            recorder.done.first().is_some_and(|first| note.at < first.at)
        }
        What::Event(_) | What::Down { .. } => false,
    }
}

fn text_of(recorder: &Recorder<'_>, note: &Note, names: &Names) -> Option<String> {
    match &note.what {
        What::Event(event) => sentence(recorder.scenario, note.host, event),
        What::Down { graceful: true } => Some("has departed".to_owned()),
        What::Down { graceful: false } => Some("is down".to_owned()),
        What::Record { id, before, after, told_by } => {
            let own = is(id, recorder.scenario.hosts[note.host.0].id.as_str());
            let (after, teller) = ((*after)?, told_by.as_ref()?);
            // What a member says of itself shows as an event, and so does what a node concludes by itself.
            if own || teller == id {
                return None;
            }
            let incarnation = names.incarnation(id.as_str(), after.incarnation);
            Some(match (after.status, before) {
                (RecordStatus::Left, _) => format!("hears from {teller} that {id} has left, {incarnation}"),
                (RecordStatus::Alive, None) => format!("hears from {teller} of {id}, {incarnation}"),
                (RecordStatus::Alive, Some(_)) => {
                    format!("hears from {teller} that {id} is alive, {incarnation}")
                }
            })
        }
    }
}

/// Who lost whom: the last frame heard, and why none came after it.
fn silences(recorder: &Recorder<'_>, picture: &Picture, concern: &Concern, names: &Names) -> Vec<Entry> {
    let mut links = Vec::new();
    for (belief, host) in picture.nodes.iter().zip(&recorder.scenario.hosts) {
        // Somebody else's boot is no loss before two pushes are missed.
        let patience = micros(host.config.timing().suspect());
        let asked = concern.ids.len() < 2 || concern.ids.contains(&belief.id);
        if belief.incarnation.is_none() || !asked {
            continue;
        }
        for subject in concern.subjects.iter().filter(|subject| **subject != belief.id) {
            let about = belief.about.get(subject).cloned().unwrap_or_default();
            let Some(at_us) = about.heard_at_us else { continue };
            if at_us.saturating_add(patience) >= picture.at.as_micros() {
                continue;
            }
            let why = why_silent(subject, &about, picture, names);
            let text = format!("hears {subject} for the last time{why}");
            let node = Some(belief.node.clone());
            links.push(Entry { at_us, node, kind: EntryKind::Event, text });
        }
    }
    last(links, SILENCES_MAX)
}

fn why_silent(subject: &str, about: &About, picture: &Picture, names: &Names) -> String {
    let theirs: Option<&Belief> = picture.nodes.iter().find(|belief| belief.id == subject);
    let mut parts = Vec::new();
    for (reason, frames) in &about.refused {
        parts.push(format!("since then {}", refused(*frames, reason)));
    }
    if let Some((mark, _)) = about.watermark.filter(|_| about.refused.contains_key("replay")) {
        let own = theirs.and_then(|belief| belief.incarnation);
        if let Some(own) = own.filter(|own| *own < mark) {
            let (own, mark) = (names.incarnation(subject, own), names.incarnation(subject, mark));
            parts.push(format!("for {subject} sends at {own}, which is below the watermark, {mark}"));
        }
    }
    if let Some(since_us) = about.cut_since_us {
        parts.push(format!("its frames are cut off since {}", moment(since_us)));
    }
    if let Some(NodeState::Down { since_us, .. }) = theirs.map(|belief| belief.state) {
        parts.push(format!("{subject} is down since {}", moment(since_us)));
    }
    if let Some(NodeState::Paused) = theirs.map(|belief| belief.state) {
        parts.push(format!("{subject} is held"));
    }
    if parts.is_empty() {
        ": none of its frames came since".to_owned()
    } else {
        format!(": {}", parts.join(", "))
    }
}

/// Those who do the same at the same time, within a millisecond, are named together.
fn together(links: Vec<Entry>) -> Vec<Entry> {
    let mut joined: Vec<Entry> = Vec::new();
    for link in links {
        let same =
            joined.iter_mut().rev().take_while(|other| other.at_us / 1_000 == link.at_us / 1_000).find(
                |other| other.kind == EntryKind::Event && other.kind == link.kind && other.text == link.text,
            );
        match (same.and_then(|same| same.node.as_mut()), &link.node) {
            (Some(nodes), Some(node)) => {
                nodes.push_str(", ");
                nodes.push_str(node);
            }
            _ => joined.push(link),
        }
    }
    joined
}

/// The last changes of the counters in question.
fn changes(recorder: &Recorder<'_>, concern: &Concern, until: Instant) -> Vec<Entry> {
    let mut links = Vec::new();
    for ((host, name), changes) in &recorder.changes {
        if !concerns(recorder, concern, *host) {
            continue;
        }
        let node = words::host_name(recorder.scenario, *host);
        for Change { at, from, to, told_by } in changes.iter().filter(|change| change.at <= until) {
            let text = match told_by {
                Some(teller) => format!("hears from {teller}: {name} goes from {from} to {to}"),
                None => format!("counts: {name} goes from {from} to {to}"),
            };
            let (at_us, node) = (at.as_micros(), Some(node.to_owned()));
            links.push(Entry { at_us, node, kind: EntryKind::Event, text });
        }
    }
    links.sort_by_key(|link| link.at_us);
    last(links, CHANGES_MAX)
}

/// The failure itself.
fn end(trouble: &Trouble, at_us: u64) -> Entry {
    let (kind, text) = match trouble {
        Trouble::Invariant { oracle, .. } => (EntryKind::Violation, format!("{oracle} is broken")),
        Trouble::Expectation { .. } => {
            (EntryKind::Expectation, "the expectation is decided: it does not hold".to_owned())
        }
        Trouble::StepNeverFired { .. } => (EntryKind::Phase, "the drill is over".to_owned()),
    };
    Entry { at_us, node: None, kind, text }
}

fn last(mut links: Vec<Entry>, max: usize) -> Vec<Entry> {
    links.split_off(links.len().saturating_sub(max))
}

/// Whom an event is about, other than its node.
fn subject(event: &Event) -> Option<&NodeId> {
    match event {
        Event::MemberUp { id, .. }
        | Event::MemberSuspect { id }
        | Event::MemberRecovered { id }
        | Event::MemberDown { id }
        | Event::MemberLeft { id }
        | Event::MemberConverted { id, .. }
        | Event::MemberReaped { id, .. }
        | Event::ReturnAnswered { id, .. }
        | Event::DuplicateNodeId { id } => Some(id),
        Event::Accepted { .. }
        | Event::NotAdmitted { .. }
        | Event::Rejected { .. }
        | Event::Started { .. }
        | Event::Refuted { .. }
        | Event::Unsendable { .. }
        | Event::RoundLate { .. }
        | Event::InboundClosed { .. }
        | Event::LinkReset { .. }
        | Event::Issuance(_) => None,
    }
}
