//! Whom a step acts on, settled at the moment it fires.
//!
//! Names and `all` take every host that the verb can act on. `any`, `minority` and `majority` draw from those
//! that are up (a restart: from those that are down, if any is), with a generator forked for this firing of
//! this step, so that another step more or less draws nothing else. `holder` and `successor` draw nothing: the
//! cluster itself says who they are.

use firedrill_core::rng::Rng;

use super::lease::Line;
use crate::engine::HostState;
use crate::scenario::model::{HostIx, Target};

/// What a verb needs of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    /// Nothing: links and clocks exist without a process.
    Nothing,
    /// It runs and is not held.
    Up,
    /// It runs, held or not.
    Running,
    /// It is held.
    Paused,
    /// It has run before; a draw prefers those that are down.
    Booted,
    /// It has never run.
    New,
}

/// The hosts at the moment a step fires.
#[derive(Debug)]
pub(super) struct Hosts {
    /// What each is doing, and whether it ever ran.
    pub(super) states: Vec<(HostState, bool)>,
    /// Whom `holder` and `successor` mean.
    pub(super) line: Line,
}

impl Hosts {
    fn meets(&self, host: HostIx, need: Need) -> bool {
        let Some(&(state, booted)) = self.states.get(host.0) else { return false };
        match need {
            Need::Nothing => true,
            Need::Up => state == HostState::Up,
            Need::Running => state != HostState::Down,
            Need::Paused => state == HostState::Paused,
            Need::Booted => booted,
            Need::New => !booted,
        }
    }

    fn all(&self) -> impl Iterator<Item = HostIx> {
        (0..self.states.len()).map(HostIx)
    }

    /// Whoever is meant, if the verb can act on it.
    fn one(&self, meant: Option<HostIx>, need: Need, taken: &[HostIx]) -> Vec<HostIx> {
        meant.into_iter().filter(|&host| self.meets(host, need) && !taken.contains(&host)).collect()
    }

    /// Whom a symbol may draw: those up, where the verb wants somebody who is down those that are.
    fn urn(&self, need: Need) -> Vec<HostIx> {
        let down = |host: &HostIx| self.states[host.0] == (HostState::Down, true);
        match need {
            Need::Nothing | Need::Up | Need::Running => {
                self.all().filter(|&h| self.meets(h, Need::Up)).collect()
            }
            Need::Paused | Need::New => self.all().filter(|&h| self.meets(h, need)).collect(),
            Need::Booted if self.all().any(|host| down(&host)) => self.all().filter(down).collect(),
            Need::Booted => self.all().filter(|&h| self.meets(h, Need::Up)).collect(),
        }
    }

    /// Settles a target. Symbols draw nobody of `taken`.
    pub(super) fn resolve(
        &self,
        target: &Target,
        need: Need,
        taken: &[HostIx],
        rng: &mut Rng,
    ) -> Vec<HostIx> {
        let draw = |rng: &mut Rng, share: fn(usize) -> usize| {
            let mut urn = self.urn(need);
            let count = share(urn.len());
            urn.retain(|host| !taken.contains(host));
            draw(urn, count, rng)
        };
        match target {
            Target::Hosts(hosts) => hosts.iter().copied().filter(|&host| self.meets(host, need)).collect(),
            Target::All => self.all().filter(|&host| self.meets(host, need)).collect(),
            Target::Holder => self.one(self.line.holder, need, taken),
            Target::Successor => self.one(self.line.successor, need, taken),
            Target::Any => draw(rng, |_| 1),
            Target::Minority => draw(rng, |up| up.saturating_sub(1) / 2),
            Target::Majority => draw(rng, |up| up / 2 + 1),
        }
    }
}

/// `count` of the urn (all of it, if it holds fewer), in the order of the file.
fn draw(mut urn: Vec<HostIx>, count: usize, rng: &mut Rng) -> Vec<HostIx> {
    let count = count.min(urn.len());
    for filled in 0..count {
        let last = urn.len() - 1;
        let pick = usize::try_from(rng.between(filled as u64, last as u64)).unwrap_or(filled);
        urn.swap(filled, pick);
    }
    urn.truncate(count);
    urn.sort_unstable();
    urn
}

#[cfg(test)]
mod tests {
    use super::*;
    use firedrill_core::rng::Seed;

    use HostState::{Down, Paused, Up};

    fn hosts(states: &[(HostState, bool)]) -> Hosts {
        Hosts { states: states.to_vec(), line: Line::default() }
    }

    fn resolve(hosts: &Hosts, target: &Target, need: Need, seed: u64) -> Vec<usize> {
        let mut rng = Seed::from_u64(seed).rng();
        hosts.resolve(target, need, &[], &mut rng).into_iter().map(|host| host.0).collect()
    }

    #[test]
    fn a_minority_is_fewer_than_half_and_a_majority_more() {
        for (up, minority, majority) in [(1, 0, 1), (2, 0, 2), (3, 1, 2), (4, 1, 3), (5, 2, 3)] {
            let hosts = hosts(&vec![(Up, true); up]);
            assert_eq!(resolve(&hosts, &Target::Minority, Need::Up, 7).len(), minority, "of {up}");
            assert_eq!(resolve(&hosts, &Target::Majority, Need::Up, 7).len(), majority, "of {up}");
        }
    }

    #[test]
    fn symbols_draw_only_those_that_are_up_and_every_one_of_them() {
        let hosts = hosts(&[(Up, true), (Down, true), (Paused, true), (Up, true), (Down, false)]);
        let drawn: Vec<usize> =
            (0..40).flat_map(|s| resolve(&hosts, &Target::Any, Need::Running, s)).collect();
        assert_eq!(drawn.len(), 40);
        assert!(drawn.iter().all(|host| [0, 3].contains(host)) && drawn.contains(&0) && drawn.contains(&3));
    }

    #[test]
    fn a_drawn_restart_takes_who_is_down() {
        let hosts = hosts(&[(Up, true), (Down, true), (Down, false)]);
        assert_eq!(resolve(&hosts, &Target::Any, Need::Booted, 1), [1]);
        assert_eq!(resolve(&hosts, &Target::All, Need::Booted, 1), [0, 1]);
        assert_eq!(resolve(&hosts, &Target::All, Need::New, 1), [2]);
    }

    #[test]
    fn a_named_host_that_the_verb_cannot_act_on_is_left_out() {
        let hosts = hosts(&[(Down, true), (Up, true)]);
        let both = Target::Hosts(vec![HostIx(0), HostIx(1)]);
        assert_eq!(resolve(&hosts, &both, Need::Up, 1), [1]);
        assert_eq!(resolve(&hosts, &both, Need::Paused, 1), [0; 0]);
        assert_eq!(resolve(&hosts, &both, Need::Nothing, 1), [0, 1]);
    }

    #[test]
    fn a_second_draw_leaves_out_the_first() {
        let hosts = hosts(&[(Up, true), (Up, true)]);
        let mut rng = Seed::from_u64(3).rng();
        let first = hosts.resolve(&Target::Any, Need::Nothing, &[], &mut rng);
        let second = hosts.resolve(&Target::Any, Need::Nothing, &first, &mut rng);
        assert_ne!(first, second);
        assert_eq!(second.len(), 1);
    }
}
