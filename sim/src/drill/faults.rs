//! Faults that stand, and what ending one of them leaves behind.
//!
//! A step that lasts is an [`Effect`] under a [`Token`]. Effects nest: a pair of hosts stays cut until every
//! effect that cuts it has ended, and where effects give different values (a clock rate, a link's loss) the one
//! begun last counts. Ending one therefore yields the faults that bring the engine to what still stands.
//!
//! Absent: the engine. Everything here turns effects into [`Fault`]s; the conductor applies them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::engine::Fault;
use crate::scenario::model::{DiskSpec, HostIx, LinkSpec};

/// One direction between two hosts: sender, receiver.
pub(super) type Pair = (HostIx, HostIx);

/// Names a standing effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Token(pub(super) usize);

/// What a link step changes; `None` stays.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct LinkChange {
    pub(super) latency: Option<(Duration, Duration)>,
    pub(super) loss_ppm: Option<u32>,
    pub(super) duplicate_ppm: Option<u32>,
    pub(super) reorder_ppm: Option<u32>,
    pub(super) bandwidth: Option<u64>,
}

impl LinkChange {
    fn over(&self, base: LinkSpec) -> LinkSpec {
        let (latency_min, latency_max) = self.latency.unwrap_or((base.latency_min, base.latency_max));
        LinkSpec {
            latency_min,
            latency_max,
            loss_ppm: self.loss_ppm.unwrap_or(base.loss_ppm),
            duplicate_ppm: self.duplicate_ppm.unwrap_or(base.duplicate_ppm),
            reorder_ppm: self.reorder_ppm.unwrap_or(base.reorder_ppm),
            bandwidth: self.bandwidth.or(base.bandwidth),
        }
    }
}

/// A fault that lasts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Effect {
    /// Partition, isolate, cut.
    Block(Vec<Pair>),
    Hold(Vec<Pair>),
    Link(Vec<Pair>, LinkChange),
    Corrupt(Vec<Pair>, u32),
    Pause(Vec<HostIx>),
    Rate(Vec<HostIx>, u32),
    Freeze(Vec<HostIx>),
    Disk(Vec<HostIx>, DiskSpec),
    /// A clock step that is taken back.
    Step(Vec<HostIx>, i64),
    /// Hosts that boot again when it ends. Outlives the drill: killed nodes stay down.
    Down(Vec<HostIx>),
    /// Nodes that the operator stopped from sealing. No fault: whoever ends it tells them.
    Hush(Vec<HostIx>),
}

/// Everything that stands.
#[derive(Debug)]
pub(super) struct Standing {
    net: LinkSpec,
    effects: BTreeMap<Token, Effect>,
    begun: usize,
}

impl Standing {
    pub(super) fn new(net: LinkSpec) -> Self {
        Self { net, effects: BTreeMap::new(), begun: 0 }
    }

    /// Lets an effect stand, and yields the faults that begin it.
    pub(super) fn begin(&mut self, effect: Effect) -> (Token, Vec<Fault>) {
        let token = Token(self.begun);
        self.begun += 1;
        let start = match &effect {
            Effect::Block(pairs) => some(pairs, |pairs| vec![Fault::Block(pairs)]),
            Effect::Hold(pairs) => some(pairs, |pairs| vec![Fault::Hold(pairs)]),
            Effect::Corrupt(pairs, rate_ppm) => some(pairs, |pairs| vec![Fault::Corrupt(pairs, *rate_ppm)]),
            Effect::Pause(hosts) => each(hosts, Fault::Pause),
            Effect::Rate(hosts, rate_ppm) => {
                each(hosts, |host| Fault::ClockRate { host, rate_ppm: *rate_ppm })
            }
            Effect::Freeze(hosts) => each(hosts, |host| Fault::ClockFreeze { host, frozen: true }),
            Effect::Disk(hosts, disk) => each(hosts, |host| Fault::Disk { host, disk: *disk }),
            Effect::Step(hosts, by_us) => each(hosts, |host| Fault::ClockStep { host, by_us: *by_us }),
            Effect::Link(..) | Effect::Down(_) | Effect::Hush(_) => Vec::new(),
        };
        let link = if let Effect::Link(pairs, _) = &effect { pairs.clone() } else { Vec::new() };
        self.effects.insert(token, effect);
        let faults = if link.is_empty() { start } else { self.links(&link) };
        (token, faults)
    }

    /// Whether the effect still stands (a `heal` or `resume` may have ended it already).
    pub(super) fn stands(&self, token: Token) -> Option<&Effect> {
        self.effects.get(&token)
    }

    /// Ends one effect; what others hold stays as it is.
    pub(super) fn end(&mut self, token: Token) -> Vec<Fault> {
        let Some(effect) = self.effects.remove(&token) else { return Vec::new() };
        match effect {
            Effect::Block(pairs) => {
                some(&self.free(&pairs, Self::blocks), |pairs| vec![Fault::Unblock(pairs)])
            }
            Effect::Hold(pairs) => some(&self.free(&pairs, Self::holds), |pairs| vec![Fault::Release(pairs)]),
            Effect::Link(pairs, _) => self.links(&pairs),
            Effect::Corrupt(pairs, _) => self.corruption(&pairs),
            Effect::Pause(hosts) => {
                let free: Vec<HostIx> = hosts.into_iter().filter(|&host| !self.pauses(host)).collect();
                each(&free, Fault::Resume)
            }
            Effect::Rate(hosts, _) => {
                each(&hosts, |host| Fault::ClockRate { host, rate_ppm: self.rate_ppm(host) })
            }
            Effect::Freeze(hosts) => {
                let free: Vec<HostIx> = hosts.into_iter().filter(|&host| !self.freezes(host)).collect();
                each(&free, |host| Fault::ClockFreeze { host, frozen: false })
            }
            Effect::Disk(hosts, _) => each(&hosts, |host| Fault::Disk { host, disk: self.disk(host) }),
            Effect::Step(hosts, by_us) => {
                each(&hosts, |host| Fault::ClockStep { host, by_us: by_us.saturating_neg() })
            }
            Effect::Down(_) | Effect::Hush(_) => Vec::new(),
        }
    }

    /// Ends every effect on the network, corruption excepted.
    pub(super) fn heal(&mut self) -> Vec<Fault> {
        self.end_where(|effect| matches!(effect, Effect::Block(_) | Effect::Hold(_) | Effect::Link(..)))
    }

    /// Ends everything but the down hosts, in the order it began.
    pub(super) fn end_all(&mut self) -> Vec<Fault> {
        let faults = self.end_where(|effect| !matches!(effect, Effect::Down(_)));
        self.effects.clear();
        faults
    }

    /// Delivers what is held on these pairs, whoever holds it.
    pub(super) fn release(&mut self, pairs: &[Pair]) -> Vec<Fault> {
        let mut held = BTreeSet::new();
        for effect in self.effects.values_mut() {
            if let Effect::Hold(of) = effect {
                held.extend(of.extract_if(.., |pair| pairs.contains(pair)));
            }
        }
        some(&held.into_iter().collect::<Vec<_>>(), |pairs| vec![Fault::Release(pairs)])
    }

    /// Lets these hosts go on, whoever paused them.
    pub(super) fn resume(&mut self, hosts: &[HostIx]) -> Vec<Fault> {
        self.forget_pause(hosts);
        each(hosts, Fault::Resume)
    }

    /// A host that went down is no longer paused, also when it comes back.
    pub(super) fn forget_pause(&mut self, hosts: &[HostIx]) {
        for effect in self.effects.values_mut() {
            if let Effect::Pause(of) = effect {
                of.retain(|host| !hosts.contains(host));
            }
        }
    }

    fn end_where(&mut self, which: impl Fn(&Effect) -> bool) -> Vec<Fault> {
        let tokens: Vec<Token> =
            self.effects.iter().filter(|(_, effect)| which(effect)).map(|(&token, _)| token).collect();
        tokens.into_iter().flat_map(|token| self.end(token)).collect()
    }

    fn blocks(effect: &Effect, pair: &Pair) -> bool {
        matches!(effect, Effect::Block(pairs) if pairs.contains(pair))
    }

    fn holds(effect: &Effect, pair: &Pair) -> bool {
        matches!(effect, Effect::Hold(pairs) if pairs.contains(pair))
    }

    /// Those of `pairs` that no standing effect touches.
    fn free(&self, pairs: &[Pair], touches: fn(&Effect, &Pair) -> bool) -> Vec<Pair> {
        let touched = |pair: &Pair| self.effects.values().any(|effect| touches(effect, pair));
        pairs.iter().filter(|pair| !touched(pair)).copied().collect()
    }

    fn pauses(&self, host: HostIx) -> bool {
        self.effects.values().any(|effect| matches!(effect, Effect::Pause(hosts) if hosts.contains(&host)))
    }

    fn freezes(&self, host: HostIx) -> bool {
        self.effects.values().any(|effect| matches!(effect, Effect::Freeze(hosts) if hosts.contains(&host)))
    }

    fn rate_ppm(&self, host: HostIx) -> u32 {
        let mut rate_ppm = 1_000_000;
        for effect in self.effects.values() {
            if let Effect::Rate(hosts, rate) = effect
                && hosts.contains(&host)
            {
                rate_ppm = *rate;
            }
        }
        rate_ppm
    }

    fn disk(&self, host: HostIx) -> DiskSpec {
        let mut disk = DiskSpec::GOOD;
        for effect in self.effects.values() {
            if let Effect::Disk(hosts, spec) = effect
                && hosts.contains(&host)
            {
                disk = *spec;
            }
        }
        disk
    }

    /// The faults that give each pair the corruption that stands last.
    fn corruption(&self, pairs: &[Pair]) -> Vec<Fault> {
        let mut by_rate: BTreeMap<u32, Vec<Pair>> = BTreeMap::new();
        for &pair in pairs {
            let mut rate_ppm = 0;
            for effect in self.effects.values() {
                if let Effect::Corrupt(of, rate) = effect
                    && of.contains(&pair)
                {
                    rate_ppm = *rate;
                }
            }
            by_rate.entry(rate_ppm).or_default().push(pair);
        }
        by_rate.into_iter().map(|(rate_ppm, pairs)| Fault::Corrupt(pairs, rate_ppm)).collect()
    }

    /// The faults that give each pair the base network under every change that stands, oldest first.
    fn links(&self, pairs: &[Pair]) -> Vec<Fault> {
        let mut by_spec: Vec<(LinkSpec, Vec<Pair>)> = Vec::new();
        for &pair in pairs {
            let mut spec = self.net;
            for effect in self.effects.values() {
                if let Effect::Link(of, change) = effect
                    && of.contains(&pair)
                {
                    spec = change.over(spec);
                }
            }
            match by_spec.iter_mut().find(|(known, _)| *known == spec) {
                Some((_, pairs)) => pairs.push(pair),
                None => by_spec.push((spec, vec![pair])),
            }
        }
        by_spec.into_iter().map(|(spec, pairs)| Fault::Link(pairs, spec)).collect()
    }
}

/// Every direction from one of `from` to one of `to`, none from a host to itself.
pub(super) fn pairs(from: &[HostIx], to: &[HostIx]) -> Vec<Pair> {
    from.iter().flat_map(|&a| to.iter().filter(move |&&b| b != a).map(move |&b| (a, b))).collect()
}

/// Every direction between hosts of different groups; whoever is in none forms one more.
pub(super) fn partition(groups: &[Vec<HostIx>], hosts: usize) -> Vec<Pair> {
    let group_of = |host: HostIx| groups.iter().position(|group| group.contains(&host));
    let all: Vec<HostIx> = (0..hosts).map(HostIx).collect();
    pairs(&all, &all).into_iter().filter(|&(a, b)| group_of(a) != group_of(b)).collect()
}

/// Every direction that begins or ends at one of `targets`.
pub(super) fn isolation(targets: &[HostIx], hosts: usize) -> Vec<Pair> {
    let all: Vec<HostIx> = (0..hosts).map(HostIx).collect();
    pairs(&all, &all).into_iter().filter(|(a, b)| targets.contains(a) || targets.contains(b)).collect()
}

fn some(pairs: &[Pair], make: impl FnOnce(Vec<Pair>) -> Vec<Fault>) -> Vec<Fault> {
    if pairs.is_empty() { Vec::new() } else { make(pairs.to_vec()) }
}

fn each(hosts: &[HostIx], make: impl Fn(HostIx) -> Fault) -> Vec<Fault> {
    hosts.iter().map(|&host| make(host)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::model::DiskState;

    const A: HostIx = HostIx(0);
    const B: HostIx = HostIx(1);
    const C: HostIx = HostIx(2);

    fn net() -> LinkSpec {
        LinkSpec {
            latency_min: Duration::from_millis(1),
            latency_max: Duration::from_millis(2),
            loss_ppm: 0,
            duplicate_ppm: 0,
            reorder_ppm: 0,
            bandwidth: None,
        }
    }

    #[test]
    fn a_pair_stays_cut_until_every_cut_over_it_has_ended() {
        let mut standing = Standing::new(net());
        let (wide, _) = standing.begin(Effect::Block(vec![(A, B), (A, C)]));
        let (narrow, begun) = standing.begin(Effect::Block(vec![(A, B)]));
        assert_eq!(begun, [Fault::Block(vec![(A, B)])]);
        assert_eq!(standing.end(wide), [Fault::Unblock(vec![(A, C)])]);
        assert_eq!(standing.end(narrow), [Fault::Unblock(vec![(A, B)])]);
        assert_eq!(standing.end(narrow), []);
    }

    #[test]
    fn healing_ends_network_faults_and_nothing_else() {
        let mut standing = Standing::new(net());
        let (cut, _) = standing.begin(Effect::Block(vec![(A, B)]));
        let (_, _) = standing.begin(Effect::Hold(vec![(B, C)]));
        let (pause, _) = standing.begin(Effect::Pause(vec![C]));
        assert_eq!(standing.heal(), [Fault::Unblock(vec![(A, B)]), Fault::Release(vec![(B, C)])]);
        assert!(standing.stands(cut).is_none() && standing.stands(pause).is_some());
        assert_eq!(standing.end_all(), [Fault::Resume(C)]);
    }

    #[test]
    fn ending_a_link_change_brings_back_the_one_below_it() {
        let mut standing = Standing::new(net());
        let loss = LinkChange { loss_ppm: Some(500), ..LinkChange::default() };
        let slow =
            LinkChange { latency: Some((Duration::from_secs(1), Duration::from_secs(1))), ..loss.clone() };
        standing.begin(Effect::Link(vec![(A, B)], loss));
        let (slow, begun) = standing.begin(Effect::Link(vec![(A, B), (B, A)], slow));
        assert_eq!(begun.len(), 1, "both directions get the same spec: {begun:?}");
        let lossy = LinkSpec { loss_ppm: 500, ..net() };
        assert_eq!(standing.end(slow), [Fault::Link(vec![(A, B)], lossy), Fault::Link(vec![(B, A)], net())]);
    }

    #[test]
    fn of_nested_clock_rates_the_last_begun_counts() {
        let mut standing = Standing::new(net());
        let (first, _) = standing.begin(Effect::Rate(vec![A], 900_000));
        let (second, _) = standing.begin(Effect::Rate(vec![A], 2_000_000));
        assert_eq!(standing.end(first), [Fault::ClockRate { host: A, rate_ppm: 2_000_000 }]);
        assert_eq!(standing.end(second), [Fault::ClockRate { host: A, rate_ppm: 1_000_000 }]);
    }

    #[test]
    fn a_disk_is_good_again_when_nothing_ails_it_any_more() {
        let mut standing = Standing::new(net());
        let full = DiskSpec { state: DiskState::Full, ..DiskSpec::GOOD };
        let slow = DiskSpec { latency: Duration::from_secs(1), ..DiskSpec::GOOD };
        let (first, _) = standing.begin(Effect::Disk(vec![A], full));
        let (second, begun) = standing.begin(Effect::Disk(vec![A], slow));
        assert_eq!(begun, [Fault::Disk { host: A, disk: slow }]);
        assert_eq!(standing.end(second), [Fault::Disk { host: A, disk: full }]);
        assert_eq!(standing.end(first), [Fault::Disk { host: A, disk: DiskSpec::GOOD }]);
    }

    #[test]
    fn a_release_takes_its_pairs_out_of_every_hold() {
        let mut standing = Standing::new(net());
        let (hold, _) = standing.begin(Effect::Hold(vec![(A, B), (A, C)]));
        assert_eq!(standing.release(&[(A, B), (C, A)]), [Fault::Release(vec![(A, B)])]);
        assert_eq!(standing.end(hold), [Fault::Release(vec![(A, C)])]);
    }

    #[test]
    fn two_pauses_of_one_host_both_have_to_end() {
        let mut standing = Standing::new(net());
        let (long, _) = standing.begin(Effect::Pause(vec![A, B]));
        let (short, _) = standing.begin(Effect::Pause(vec![A]));
        assert_eq!(standing.end(short), []);
        standing.forget_pause(&[B]);
        assert_eq!(standing.end(long), [Fault::Resume(A)]);
    }

    #[test]
    fn groups_hear_only_themselves_and_the_rest_is_a_group() {
        assert_eq!(partition(&[vec![A]], 3), [(A, B), (A, C), (B, A), (C, A)]);
        assert_eq!(isolation(&[A, B], 3).len(), 6, "the isolated do not hear each other either");
    }
}
