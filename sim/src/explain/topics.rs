//! Beliefs by subject: what each node says of the same thing stands together, and those who say the same are named
//! together, so that a contradiction is two neighbouring lines.

use std::collections::BTreeSet;

use serde::Serialize;

use super::beliefs::{About, Belief, NodeState};
use super::names::Names;
use super::recorder::Picture;
use super::trouble::Concern;
use crate::drill::words;
use firedrill_core::time::Instant;

/// Counters told of at the most.
const COUNTERS_MAX: usize = 3;
/// Views longer than this are told by what they differ in.
const NAMED_MAX: usize = 10;

/// One thing, and who says what of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Topic {
    /// The thing.
    pub label: String,
    /// Who says what, in the order of the file.
    pub says: Vec<Says>,
}

/// What some nodes say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Says {
    /// Those who say it.
    pub nodes: Vec<String>,
    /// What.
    pub text: String,
}

/// Everything that a failure makes one ask.
pub(super) fn of(picture: &Picture, concern: &Concern, names: &Names) -> Vec<Topic> {
    let mut topics = vec![topic("runs", picture, |belief| state(belief.state))];
    topics.push(topic("view", picture, |belief| Some(view(belief, picture))));
    for subject in &concern.subjects {
        let about = |belief: &Belief| Some(belief.about.get(subject).cloned().unwrap_or_default());
        topics.push(topic(&format!("record of {subject}"), picture, |belief| {
            Some(names.held(subject, about(belief)?.record))
        }));
        topics.push(topic(&format!("note of {subject}"), picture, |belief| {
            let noted = about(belief)?.note?;
            Some(format!("refuses records at or below {}", names.incarnation(subject, noted)))
        }));
        topics.push(topic(&format!("hears {subject}"), picture, |belief| {
            (belief.id != *subject).then_some(())?;
            Some(heard(subject, &about(belief)?, names))
        }));
    }
    topics.extend(counters(picture, concern));
    topics.retain(|topic| !topic.says.is_empty());
    topics
}

/// What every node that runs says, those who say the same together. A node that has nothing to say is left out.
fn topic(label: &str, picture: &Picture, say: impl Fn(&Belief) -> Option<String>) -> Topic {
    let mut says: Vec<Says> = Vec::new();
    for belief in &picture.nodes {
        // Whether it runs can be said of a node that does not; everything else only of one that does.
        if belief.incarnation.is_none() && label != "runs" {
            continue;
        }
        let Some(text) = say(belief) else { continue };
        match says.iter_mut().find(|same| same.text == text) {
            Some(same) => same.nodes.push(belief.node.clone()),
            None => says.push(Says { nodes: vec![belief.node.clone()], text }),
        }
    }
    Topic { label: label.to_owned(), says }
}

/// What a node is doing, unless it simply runs.
fn state(state: NodeState) -> Option<String> {
    match state {
        NodeState::Up => None,
        NodeState::Paused => Some("is held".to_owned()),
        NodeState::NotStarted => Some("has not started".to_owned()),
        NodeState::Down { since_us, graceful } => {
            let how = if graceful { "has left" } else { "is down" };
            Some(format!("{how} since {}", moment(since_us)))
        }
    }
}

fn view(belief: &Belief, picture: &Picture) -> String {
    let suspects = match belief.suspects.is_empty() {
        true => String::new(),
        false => format!(" (suspect: {})", belief.suspects.join(", ")),
    };
    if belief.view.len() <= NAMED_MAX && picture.nodes.len() <= NAMED_MAX {
        return format!("{}{suspects}", belief.view.join(", "));
    }
    let runs = picture.nodes.iter().filter(|node| node.incarnation.is_some()).map(|node| node.id.as_str());
    let (runs, view): (BTreeSet<&str>, BTreeSet<&str>) =
        (runs.collect(), belief.view.iter().map(String::as_str).collect());
    let mut text = format!("{} of the {} that run", runs.intersection(&view).count(), runs.len());
    for (what, ids) in [("without", runs.difference(&view)), ("and", view.difference(&runs))] {
        let ids: Vec<String> = ids.map(|id| (*id).to_owned()).collect();
        if !ids.is_empty() {
            text.push_str(&format!(", {what} {}", super::acts::few(&ids)));
        }
    }
    text + &suspects
}

/// When a member was last heard, and why not since.
fn heard(subject: &str, about: &About, names: &Names) -> String {
    let mut text = match about.heard_at_us {
        Some(at_us) => format!("last at {}", moment(at_us)),
        None => "never since its own boot".to_owned(),
    };
    for (reason, frames) in &about.refused {
        text.push_str(&format!("; since then {}", refused(*frames, reason)));
    }
    if let Some((incarnation, _)) = about.watermark.filter(|_| about.refused.contains_key("replay")) {
        let mark = names.incarnation(subject, incarnation);
        text.push_str(&format!(", as its watermark stands at {mark}"));
    }
    if let Some(since_us) = about.cut_since_us {
        text.push_str(&format!("; cut off from it since {}", moment(since_us)));
    }
    text
}

/// Frames that did not count, in words.
pub(super) fn refused(frames: u64, reason: &str) -> String {
    let s = if frames == 1 { "" } else { "s" };
    match reason {
        super::recorder::BELOW_RECORD => format!("{frames} frame{s} below its record did not count"),
        "replay" => format!("{frames} frame{s} refused as replays"),
        _ => format!("{frames} frame{s} refused ({reason})"),
    }
}

/// Totals: all of the counters in question, or those that nodes differ about.
fn counters(picture: &Picture, concern: &Concern) -> Vec<Topic> {
    let names: BTreeSet<&String> =
        picture.nodes.iter().flat_map(|belief| belief.counters.keys()).chain(picture.added.keys()).collect();
    let total = |belief: &Belief, name: &String| belief.counters.get(name).copied().unwrap_or(0);
    let mut topics = Vec::new();
    for name in names {
        let mut topic = topic(name, picture, |belief| Some(total(belief, name).to_string()));
        if topic.says.len() < 2 && !concern.counters {
            continue;
        }
        if let Some(added) = picture.added.get(name) {
            topic
                .says
                .push(Says { nodes: vec!["clients".to_owned()], text: format!("added {added} in all") });
        }
        topics.push(topic);
    }
    topics.truncate(COUNTERS_MAX);
    topics
}

/// A moment to the millisecond: what happened within one happened together.
pub(super) fn moment(at_us: u64) -> String {
    words::moment(Instant::from_micros(at_us / 1_000 * 1_000))
}
