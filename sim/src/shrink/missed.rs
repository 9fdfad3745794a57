//! What an expectation missed, so that a smaller drill does not miss it in another way.
//!
//! That an expectation does not hold is little to go by: an event that a kill should bring about in time is missed
//! without the kill just as well. So a smaller drill has to miss what it missed at first: members that lack, members
//! too many, a fact that came true too late or one that never did.
//!
//! Absent: which expectations there are to miss; see [`super::shrink`].

use std::collections::BTreeSet;

use crate::outcome::{ExpectationResult, Outcome};
use crate::scenario::Scenario;
use crate::scenario::model::{Expect, Window};

/// How an expectation was missed, whatever the hosts are called and the numbers are.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Missed {
    /// A host stands in what was expected and not in what was seen.
    lacks: bool,
    /// A host stands in what was seen and not in what was expected.
    exceeds: bool,
    /// The fact was true at some moment of the run.
    ever: bool,
    /// The other words of what was seen.
    words: BTreeSet<String>,
}

/// The scenario with every expectation once more, wanted at any moment at all.
pub(super) fn watched(scenario: &Scenario) -> Scenario {
    let mut watched = scenario.clone();
    let ever = |expect: &Expect| Expect { window: Window::Sometimes, ..expect.clone() };
    watched.expects.extend(scenario.expects.iter().map(ever));
    watched
}

/// What a run of the [`watched`] scenario missed.
pub(super) fn missed(watched: &Scenario, outcome: &Outcome) -> BTreeSet<Missed> {
    let names: BTreeSet<&str> =
        watched.hosts.iter().flat_map(|host| [host.name.as_str(), host.id.as_str()]).collect();
    let (wanted, ever) = outcome.expectations.split_at(outcome.expectations.len() / 2);
    let pairs = wanted.iter().zip(ever).filter(|(wanted, _)| !wanted.held);
    pairs.map(|(wanted, ever)| how(wanted, ever, &names)).collect()
}

fn how(wanted: &ExpectationResult, ever: &ExpectationResult, names: &BTreeSet<&str>) -> Missed {
    let seen = wanted.seen.as_deref().unwrap_or_default();
    let hosts = |text| words(text).filter(|word| names.contains(word)).collect::<BTreeSet<&str>>();
    let (expected, found) = (hosts(&wanted.text), hosts(seen));
    let is_number = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit());
    Missed {
        lacks: expected.difference(&found).next().is_some(),
        exceeds: found.difference(&expected).next().is_some(),
        ever: ever.held,
        words: words(seen)
            .filter(|word| !names.contains(word) && !is_number(word))
            .map(str::to_owned)
            .collect(),
    }
}

/// Words as host names are made of.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    text.split(move |c| !is_part(c)).map(|word| word.trim_matches('.')).filter(|word| !word.is_empty())
}
