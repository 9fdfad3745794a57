//! An election decides by the answers that count: whoever is left in its place, waited for or believed to know more
//! did answer, with the same electorate where promises count, and could seal if it is to.
//!
//! The answers are those that the node itself says it decided from.

use std::collections::BTreeMap;

use firedrill_core::config::{Fencing, IssuanceConfig};
use firedrill_core::id::NodeId;
use firedrill_core::issuance::election::{Answer, Decision, Electorate};

use super::sight::{Sight, Subject};
use super::world::World;
use super::{Broken, Oracle, Rule};

/// Looks whenever an issuance did something.
#[derive(Debug)]
pub(super) struct DecidedByAnswers;

impl DecidedByAnswers {
    pub(super) const fn new(_world: &World) -> Self {
        Self
    }
}

impl Oracle for DecidedByAnswers {
    const RULE: Rule = Rule {
        name: "decided_by_answers",
        invariant: "no election leaves an issuer in place, or waits for a successor, that did not answer that it can seal",
        source: "docs/issuance.md, Election",
        liveness: false,
    };

    fn after<S: Subject>(&mut self, sight: &Sight<'_, S>) -> Result<(), Box<Broken>> {
        let Some(turn) = sight.turn() else { return Ok(()) };
        let Some(decision) = turn.issuance.decision() else { return Ok(()) };
        let (config, answers) = (turn.issuance.config(), turn.issuance.answers());
        let Some(contradiction) = unfounded(config, answers, decision) else { return Ok(()) };
        Err(Broken::new(vec![sight.name()], format!("{} decides {decision}", sight.name()), contradiction))
    }
}

/// Why the answers do not admit a decision.
fn unfounded(
    config: &IssuanceConfig,
    answers: &BTreeMap<NodeId, Answer>,
    decision: &Decision,
) -> Option<String> {
    let (who, must_be_fit) = match decision {
        Decision::HolderReachable { holder } => (holder, true),
        Decision::SuccessorIs { successor } => (successor, true),
        Decision::SpineBehind { peer, .. } => (peer, false),
        Decision::Disabled
        | Decision::IsHolder
        | Decision::BootGrace
        | Decision::SpineEmptyBootstrapOnly
        | Decision::FieldOfOne { .. }
        | Decision::TipAdvancing { .. }
        | Decision::NoFitCandidate { .. }
        | Decision::NoMajority { .. }
        | Decision::Promote { .. } => return None,
    };
    let Some(answer) = answers.get(who) else {
        return Some(format!("{who} did not answer"));
    };
    if must_be_fit && !answer.fit {
        return Some(format!("{who} answered that it cannot seal"));
    }
    let other = answer.electorate != Electorate::new(config.eligible.clone()).digest();
    (config.fencing == Fencing::Majority && other).then(|| format!("{who} answered with another electorate"))
}

#[cfg(test)]
mod tests {
    use firedrill_core::time::WallTime;

    use super::super::testing::{mint, node_id};
    use super::*;

    #[test]
    fn a_holder_stands_by_its_own_word_that_it_can_seal() {
        let config = mint("b", vec![]).config().clone();
        let decision = Decision::HolderReachable { holder: node_id("a") };
        let electorate = |config: &IssuanceConfig| Electorate::new(config.eligible.clone()).digest();
        let answer = |fit| Answer {
            fit,
            tip: None,
            epoch: None,
            wall: WallTime::from_unix_ms(0),
            electorate: electorate(&config),
        };
        let told = |config: &IssuanceConfig, answer: Option<Answer>| {
            let answers = answer.map(|answer| (node_id("a"), answer)).into_iter().collect();
            unfounded(config, &answers, &decision)
        };
        assert_eq!(told(&config, Some(answer(true))), None);
        assert_eq!(told(&config, Some(answer(false))), Some(String::from("a answered that it cannot seal")));
        assert_eq!(told(&config, None), Some(String::from("a did not answer")));
        let eligible = ["a", "b", "c"].map(node_id).into();
        let other = IssuanceConfig { eligible, fencing: Fencing::Majority, ..config.clone() };
        assert!(told(&other, Some(answer(true))).is_some(), "another electorate said nothing");
    }
}
