//! Two hosts with one id are told of: the node that finds out counts it in the step in which it does.
//!
//! Two of the four signs can be seen from outside without doubt: a frame in a node's own name at an incarnation that
//! it never ran at (where the frame's head is seen: on the fast wire), and a third refutation within one tombstone
//! window. Every report is counted, though it becomes an event at most once in S.

use firedrill_core::id::Incarnation;
use firedrill_core::io::Event;
use firedrill_core::limits::REFUTATIONS_BEFORE_SLOW;
use firedrill_core::time::Instant;

use super::sight::{Sight, Subject};
use super::world::World;
use super::{Broken, Oracle, Rule, span};
use crate::engine::Cause;

/// What one boot has shown so far.
#[derive(Debug, Clone, Default)]
struct Own {
    /// The incarnations it ran at.
    minted: Vec<Incarnation>,
    /// Its refutations on its own clock, the latest first.
    refuted: [Option<Instant>; REFUTATIONS_BEFORE_SLOW],
    /// Its reports so far.
    told: u64,
}

/// Watches for signs of a second host, and for the report that has to follow.
#[derive(Debug)]
pub(super) struct DuplicateTold {
    hosts: Vec<Own>,
}

impl DuplicateTold {
    pub(super) fn new(world: &World) -> Self {
        Self { hosts: vec![Own::default(); world.hosts().len()] }
    }
}

impl Oracle for DuplicateTold {
    const RULE: Rule = Rule {
        name: "duplicate_told",
        invariant: "a node reports a second host with its id when it hears it, or has to refute for the third time in one tombstone window",
        source: "docs/protocol.md, decision 12",
        liveness: false,
    };

    fn after<S: Subject>(&mut self, sight: &Sight<'_, S>) -> Result<(), Box<Broken>> {
        let node = sight.look.node;
        let own = &mut self.hosts[sight.look.host.0];
        if sight.changed.boot {
            *own = Own { minted: vec![node.incarnation()], ..Own::default() };
        }
        let told = node.metrics().duplicate_node_id;
        let reported = std::mem::replace(&mut own.told, told) != told;
        let heard = own.heard_another(sight);
        let third = own.refuted_again(sight);
        if reported {
            return Ok(());
        }
        let Some(sign) = heard.or(third) else { return Ok(()) };
        Err(Broken::new(
            vec![sight.name()],
            format!("{} {sign}", sight.name()),
            String::from("it reported no second host with its id in that step"),
        ))
    }
}

impl Own {
    /// A frame in this node's name that it cannot have sent.
    fn heard_another<S: Subject>(&self, sight: &Sight<'_, S>) -> Option<String> {
        let Cause::Frame(head) = sight.look.cause else { return None };
        let another = head.sender == *sight.look.node.id() && !self.minted.contains(&head.incarnation);
        another.then(|| {
            format!("heard itself at incarnation {}, at which it never ran in this boot", head.incarnation)
        })
    }

    fn refuted_again<S: Subject>(&mut self, sight: &Sight<'_, S>) -> Option<String> {
        let (now, window) = (sight.look.now.instant, sight.host().facts.timing.tombstone());
        let mut sign = None;
        for event in sight.look.events {
            let Event::Refuted { to, .. } = event else { continue };
            self.minted.push(*to);
            self.refuted.rotate_right(1);
            self.refuted[0] = Some(now);
            let first = self.refuted[REFUTATIONS_BEFORE_SLOW - 1];
            if first.is_some_and(|first| now.since(first) <= window) {
                sign =
                    Some(format!("refuted for the {REFUTATIONS_BEFORE_SLOW}rd time within {}", span(window)));
            }
        }
        sign
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bench, ms, node_id};
    use super::*;
    use crate::engine::Fault;
    use crate::scenario::model::HostIx;
    use firedrill_core::id::Seq;
    use firedrill_core::wire::{Header, Reject};

    #[test]
    fn a_frame_in_ones_own_name_has_to_be_told_unless_it_is_ones_own() {
        let hear = |incarnation, told| {
            let mut bench = Bench::new(&["a"]);
            let head = Header { sender: node_id("a"), incarnation: Incarnation(incarnation), seq: Seq(0) };
            let event =
                Event::Rejected { reason: Reject::SelfOrigin, sender: Some(node_id("a")), inbound: None };
            bench.nodes[0].metrics.duplicate_node_id = told;
            bench.frame(0, 10, &head, &[event]).err().map(|broken| broken.oracle)
        };
        assert_eq!(hear(1000, 0), None);
        assert_eq!(hear(7, 0), Some("duplicate_told"));
        assert_eq!(hear(7, 1), None);
    }

    #[test]
    fn a_third_refutation_in_a_window_has_to_be_told() {
        let run = |pause: u64| {
            let mut bench = Bench::new(&["a", "b"]);
            bench.world.fault_applied(ms(1), &Fault::Kill(HostIx(1)));
            ["incarnation_rises", "late_round"].iter().for_each(|other| bench.turn_off(other));
            (1..=3).find_map(|round| {
                let (from, to) = (Incarnation(1000 + round), Incarnation(1001 + round));
                bench.nodes[0].incarnation = to;
                bench.events(0, round * pause, &[Event::Refuted { told: from, from, to }]).err()
            })
        };
        assert_eq!(run(12_500).map(|broken| broken.oracle), Some("duplicate_told"));
        assert_eq!(run(12_501), None);
    }
}
