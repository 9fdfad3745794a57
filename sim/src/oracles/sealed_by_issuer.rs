//! Only an issuer seals: the holder of the lease at its epoch, whoever was promoted above it, or the configured
//! issuer where nobody ever held it. A node that stood down seals nothing until it is promoted, or learns that it
//! holds a later lease.
//!
//! The lease is the one that the rows add up to by this oracle's own account.

use firedrill_core::id::NodeId;
use firedrill_core::issuance::event::IssuanceEvent;
use firedrill_core::issuance::window::Epoch;

use super::books::epoch_told;
use super::sight::{Sight, Subject, Turn};
use super::world::World;
use super::{Broken, Oracle, Rule};

/// Keeps at which epoch each host stood down, until it may seal again.
#[derive(Debug)]
pub(super) struct SealedByIssuer {
    demoted: Vec<Option<Epoch>>,
}

impl SealedByIssuer {
    pub(super) fn new(world: &World) -> Self {
        Self { demoted: vec![None; world.hosts().len()] }
    }
}

impl Oracle for SealedByIssuer {
    const RULE: Rule = Rule {
        name: "sealed_by_issuer",
        invariant: "no node seals but the issuer, and none between standing down and its next promotion",
        source: "docs/issuance.md, Role; Seal",
        liveness: false,
    };

    fn after<S: Subject>(&mut self, sight: &Sight<'_, S>) -> Result<(), Box<Broken>> {
        let Some(turn) = sight.turn() else { return Ok(()) };
        let me = sight.look.node.id();
        let demoted = &mut self.demoted[sight.look.host.0];
        if sight.changed.boot {
            *demoted = None;
        }
        for event in turn.events() {
            *demoted = stands_down(me, event, *demoted);
            let IssuanceEvent::Sealing { window, epoch, .. } = event else { continue };
            let against = match demoted {
                Some(at) => Some(format!("it stood down at epoch {at} and was not promoted since")),
                None => forbidden(&turn, me, *epoch),
            };
            if let Some(contradiction) = against {
                let fact = format!("{} seals window {window} at {}", sight.name(), epoch_told(*epoch));
                return Err(Broken::new(vec![sight.name()], fact, contradiction));
            }
        }
        Ok(())
    }
}

/// At which epoch a node stands down after an event, when it stood so before.
fn stands_down(me: &NodeId, event: &IssuanceEvent, demoted: Option<Epoch>) -> Option<Epoch> {
    if let IssuanceEvent::Demoted { epoch, .. } = event {
        return Some(*epoch);
    }
    if let IssuanceEvent::Promoted { .. } = event {
        return None;
    }
    if let IssuanceEvent::LeaseMoved { epoch, holder } = event
        && holder == me
    {
        return demoted.filter(|demoted| epoch <= demoted);
    }
    demoted
}

/// What is against sealing at this epoch, by the rows that the node knows.
fn forbidden(turn: &Turn<'_>, me: &NodeId, epoch: Option<Epoch>) -> Option<String> {
    let config = turn.issuance.config();
    let configured = config.issuer == *me;
    if !config.failover {
        let plain = configured && epoch.is_none();
        return (!plain)
            .then(|| format!("without failover {} alone issues, and stamps no epoch", config.issuer));
    }
    let promoted = turn.issuance.promoted();
    match &turn.account.lease {
        Some(lease) if promoted.is_some() && promoted == epoch && promoted > Some(lease.epoch) => None,
        Some(lease) if lease.holder == *me && epoch == Some(lease.epoch) => None,
        Some(lease) => Some(format!("its rows say that {} holds epoch {}", lease.holder, lease.epoch)),
        None if promoted.is_some() && promoted == epoch => None,
        None if configured && epoch == Some(Epoch(0)) => None,
        None => Some(format!("nobody holds the lease, and {} is the configured issuer", config.issuer)),
    }
}

#[cfg(test)]
mod tests {
    use firedrill_core::io::Event;

    use super::super::testing::{Bench, mint, node_id, row, sealing, stamped};
    use super::*;

    fn bench(rows: Vec<firedrill_core::issuance::row::Stamped>) -> Bench {
        let mut bench = Bench::new(&["a", "b"]);
        bench.turn_off_all(&["seals_caught_up", "seals_one_by_one"]);
        bench.take(0, 2, mint("a", rows.clone())).unwrap();
        bench.take(1, 2, mint("b", rows)).unwrap();
        bench
    }

    #[test]
    fn the_configured_issuer_begins_and_nobody_else() {
        let mut bench = bench(vec![]);
        bench.events(0, 5, &[sealing(11, 0)]).unwrap();
        assert_eq!(bench.events(1, 6, &[sealing(11, 0)]).unwrap_err().oracle, "sealed_by_issuer");
    }

    #[test]
    fn the_holder_seals_at_its_epoch_and_nobody_else() {
        let rows = || vec![stamped("b.7", 1, row(9, 10, 1, 1, "b"))];
        bench(rows()).events(1, 5, &[sealing(11, 1)]).unwrap();
        assert_eq!(bench(rows()).events(1, 5, &[sealing(11, 0)]).unwrap_err().oracle, "sealed_by_issuer");
        assert_eq!(bench(rows()).events(0, 5, &[sealing(11, 0)]).unwrap_err().oracle, "sealed_by_issuer");
    }

    #[test]
    fn nothing_is_sealed_after_a_demotion_until_the_lease_comes_back() {
        let mut bench = bench(vec![stamped("a.7", 1, row(9, 10, 1, 2, "a"))]);
        let demoted = IssuanceEvent::Demoted { holder: node_id("b"), epoch: Epoch(1) };
        bench.events(0, 5, &[Event::Issuance(demoted)]).unwrap();
        let told = bench.events(0, 6, &[sealing(11, 2)]).unwrap_err();
        assert_eq!(told.oracle, "sealed_by_issuer");
        assert!(told.contradiction.contains("stood down"), "{}", told.contradiction);
        let moved = IssuanceEvent::LeaseMoved { holder: node_id("a"), epoch: Epoch(2) };
        bench.events(0, 7, &[Event::Issuance(moved), sealing(12, 2)]).unwrap();
    }
}
