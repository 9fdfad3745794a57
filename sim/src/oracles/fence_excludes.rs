//! With fencing no two nodes are able to seal at one moment of true time, and nobody seals that is not able to.
//!
//! Between two steps a node can only lose the ability, when promises run out by its own clock; so from each step the
//! moment is known up to which it lasts. A clock that ever ran fast is taken to run fast, which makes that moment
//! the earliest: what fires did happen. The claim holds while clocks run within 1 % of true time.

use std::time::Duration;

use firedrill_core::config::Fencing;
use firedrill_core::issuance::event::IssuanceEvent;
use firedrill_core::time::{Instant, micros};

use super::sight::{Sight, Subject};
use super::world::{RATE_RIGHT_PPM, World};
use super::{Broken, Oracle, Rule, clock};
use crate::scenario::model::HostIx;

/// How far clock rates may be off, in millionths.
const RATE_OFF_MAX_PPM: u32 = 10_000;

/// Keeps since when and until when each host is able to seal, in true time.
#[derive(Debug)]
pub(super) struct FenceExcludes {
    able: Vec<Option<(Instant, Instant)>>,
}

impl FenceExcludes {
    pub(super) fn new(world: &World) -> Self {
        Self { able: vec![None; world.hosts().len()] }
    }

    /// A host is able to seal from now until then, or not; another one that is, too.
    fn note(&mut self, host: HostIx, at: Instant, until: Option<Instant>) -> Option<(HostIx, Instant)> {
        let since = self.able[host.0].filter(|(_, until)| *until > at).map_or(at, |(since, _)| since);
        self.able[host.0] = until.map(|until| (since, until));
        until?;
        let other = |(position, able): (usize, &Option<(Instant, Instant)>)| {
            let (since, until) = (*able)?;
            (position != host.0 && until > at).then_some((HostIx(position), since))
        };
        self.able.iter().enumerate().find_map(other)
    }
}

impl Oracle for FenceExcludes {
    const RULE: Rule = Rule {
        name: "fence_excludes",
        invariant: "with fencing no two nodes are able to seal at one moment while clocks run within 1 %, and none seals that is not able to",
        source: "docs/issuance.md, Fencing",
        liveness: false,
    };

    fn after<S: Subject>(&mut self, sight: &Sight<'_, S>) -> Result<(), Box<Broken>> {
        let Some(turn) = sight.turn() else { return Ok(()) };
        if turn.issuance.config().fencing != Fencing::Majority || !clocks_close(sight.world) {
            return Ok(());
        }
        let until = turn.issuance.could_seal_until();
        let sealing = turn.events().find_map(|event| {
            if let IssuanceEvent::Sealing { window, .. } = event { Some(window) } else { None }
        });
        if let Some(window) = sealing.filter(|_| until.is_none()) {
            return Err(Broken::new(
                vec![sight.name()],
                format!("{} seals window {window}", sight.name()),
                String::from("no majority supports it at that epoch"),
            ));
        }
        let at = sight.look.at;
        let until = until.map(|until| at.after(in_true_time(sight, until.since(sight.look.now.instant))));
        let Some((other, since)) = self.note(sight.look.host, at, until) else { return Ok(()) };
        Err(Broken::new(
            vec![sight.name(), sight.world.name(other).to_owned()],
            format!("{} is able to seal at {}", sight.name(), clock(at)),
            format!("{} is so since {} and has not ceased to be", sight.world.name(other), clock(since)),
        ))
    }

    fn down(&mut self, _world: &World, host: HostIx) {
        self.able[host.0] = None;
    }
}

/// How long a span of the host's own clock lasts at the least.
fn in_true_time<S: Subject>(sight: &Sight<'_, S>, own: Duration) -> Duration {
    let fastest = u64::from(sight.host().fastest_rate_ppm.max(1));
    Duration::from_micros(micros(own).saturating_mul(u64::from(RATE_RIGHT_PPM)) / fastest)
}

/// Whether the claim holds: every clock has run within 1 % of true time.
fn clocks_close(world: &World) -> bool {
    let close = |rate: u32| rate.abs_diff(RATE_RIGHT_PPM) <= RATE_OFF_MAX_PPM;
    world.hosts().iter().all(|host| close(host.slowest_rate_ppm) && close(host.fastest_rate_ppm))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bench, ms};
    use super::*;

    #[test]
    fn two_that_are_able_at_once_are_told_and_two_in_turn_are_not() {
        let bench = Bench::new(&["a", "b"]);
        let mut fence = FenceExcludes::new(&bench.world);
        assert_eq!(fence.note(HostIx(0), ms(5), Some(ms(50))), None);
        assert_eq!(fence.note(HostIx(1), ms(50), Some(ms(90))), None);
        assert_eq!(fence.note(HostIx(0), ms(89), Some(ms(99))), Some((HostIx(1), ms(50))));
        fence.down(&bench.world, HostIx(1));
        assert_eq!(fence.note(HostIx(0), ms(89), Some(ms(99))), None);
        assert_eq!(fence.note(HostIx(1), ms(90), None), None);
    }

    #[test]
    fn a_clock_beyond_one_percent_ends_the_claim() {
        let mut bench = Bench::new(&["a"]);
        assert!(clocks_close(&bench.world));
        let fault = crate::engine::Fault::ClockRate { host: HostIx(0), rate_ppm: 1_010_001 };
        bench.world.fault_applied(ms(1), &fault);
        assert!(!clocks_close(&bench.world));
    }
}
