//! A promotion that the rules of an election forbid: in the grace of a boot, on an empty spine, without another
//! candidate, past a holder that answered, past a better candidate, behind an answer, or by a node that could not
//! seal.
//!
//! The answers are those that the node itself says it decided from; who is a candidate and how long the boot is ago,
//! the oracle knows by itself.

use std::collections::BTreeSet;

use firedrill_core::config::Fencing;
use firedrill_core::id::NodeId;
use firedrill_core::issuance::election::{Answer, Electorate};
use firedrill_core::issuance::event::IssuanceEvent;
use firedrill_core::issuance::window::Epoch;

use super::books::epoch_told;
use super::sight::{Sight, Subject, Turn};
use super::world::World;
use super::{Broken, Oracle, Rule, span};

/// Looks at every promotion.
#[derive(Debug)]
pub(super) struct PromotedByRule;

impl PromotedByRule {
    pub(super) const fn new(_world: &World) -> Self {
        Self
    }
}

impl Oracle for PromotedByRule {
    const RULE: Rule = Rule {
        name: "promoted_by_rule",
        invariant: "no node promotes itself that a guard of the election holds back",
        source: "docs/issuance.md, Election",
        liveness: false,
    };

    fn after<S: Subject>(&mut self, sight: &Sight<'_, S>) -> Result<(), Box<Broken>> {
        let Some(turn) = sight.turn() else { return Ok(()) };
        for event in turn.events() {
            let IssuanceEvent::Promoted { epoch } = event else { continue };
            let up = sight.look.now.instant.since(turn.account.booted_at);
            let grace = turn.issuance.config().boot_grace_z.duration();
            let against = if up < grace {
                Some(format!("it booted {} ago, within its grace of {}", span(up), span(grace)))
            } else {
                forbidden(&turn, sight.look.node.id(), *epoch)
            };
            if let Some(contradiction) = against {
                let fact = format!("{} promotes itself at epoch {epoch}", sight.name());
                return Err(Broken::new(vec![sight.name()], fact, contradiction));
            }
        }
        Ok(())
    }
}

/// What is against a promotion, besides time.
fn forbidden(turn: &Turn<'_>, me: &NodeId, epoch: Epoch) -> Option<String> {
    let (config, account) = (turn.issuance.config(), turn.account);
    let tip = account.tip;
    let held = account.lease.as_ref().map(|lease| lease.epoch);
    let includes = |id: &NodeId| config.eligible.is_empty() || config.eligible.contains(id);
    let field: BTreeSet<&NodeId> = account.heard.iter().chain([me]).filter(|id| includes(id)).collect();
    if tip.is_none() {
        return Some(String::from("its spine is empty"));
    }
    if Some(epoch) <= held {
        return Some(format!("its rows carry {} already", epoch_told(held)));
    }
    if !field.contains(me) {
        return Some(String::from("it is not eligible"));
    }
    if field.len() < 2 {
        return Some(String::from("it has heard of no other candidate since its boot"));
    }
    if let Err(unfit) = turn.issuance.able() {
        return Some(format!("it could not seal: {unfit}"));
    }
    let holder = account.lease.as_ref().map(|lease| &lease.holder);
    answers(turn, me).find_map(|(id, answer)| {
        if answer.tip > tip || answer.epoch > held {
            Some(format!(
                "{id} answered that it knows more: its tip is beyond, or its {}",
                epoch_told(answer.epoch)
            ))
        } else if answer.fit && Some(id) == holder {
            Some(format!("{id}, which holds the lease, answered that it can seal"))
        } else if answer.fit && id < me && field.contains(id) {
            Some(format!("{id}, a candidate before it, answered that it can seal"))
        } else {
            None
        }
    })
}

/// The answers that count: with a fence, only those of nodes with the same electorate.
fn answers<'a>(turn: &Turn<'a>, me: &NodeId) -> impl Iterator<Item = (&'a NodeId, &'a Answer)> {
    let fenced = turn.issuance.config().fencing == Fencing::Majority;
    let digest = Electorate::new(turn.issuance.config().eligible.clone()).digest();
    let counts = move |answer: &Answer| !fenced || answer.electorate == digest;
    turn.issuance.answers().iter().filter(move |(id, answer)| *id != me && counts(answer))
}

#[cfg(test)]
mod tests {
    use firedrill_core::id::Incarnation;
    use firedrill_core::io::Event;
    use firedrill_core::wire::message::Addr;

    use super::super::testing::{Bench, mint, node_id, promoted, row, stamped};

    fn bench(rows: bool, heard: bool) -> Bench {
        let rows = if rows { vec![stamped("a.1", 1, row(9, 10, 1, 0, "a"))] } else { vec![] };
        let mut bench = Bench::new(&["a", "b"]);
        bench.turn_off_all(&["promoted_in_silence", "late_round"]);
        bench.boot_with(1, 1, 2000, Some(mint("b", rows))).unwrap();
        if heard {
            let up =
                Event::MemberUp { id: node_id("a"), addr: Addr::default(), incarnation: Incarnation(1000) };
            bench.events(1, 2, &[up]).unwrap();
        }
        bench
    }

    #[test]
    fn each_guard_that_is_passed_over_is_named() {
        let told = |mut bench: Bench, at: u64, epoch: u64| {
            let told = bench.events(1, at, &[promoted(epoch)]).unwrap_err();
            assert_eq!(told.oracle, "promoted_by_rule");
            told.contradiction
        };
        assert!(told(bench(true, true), 31_000, 1).contains("within its grace"));
        assert!(told(bench(false, true), 60_000, 1).contains("spine is empty"));
        assert!(told(bench(true, false), 60_000, 1).contains("no other candidate"));
        assert!(told(bench(true, true), 60_000, 0).contains("carry epoch 0"));
    }
}
