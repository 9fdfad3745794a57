//! The network: what happens to one message between two hosts.
//!
//! Every directed pair of hosts has a link of its own with randomness of its own, so traffic on one link moves
//! nothing on another. Without reordering a link is a channel: what was sent first arrives first. Faults stand
//! beside the link in a box of their own; a link without any costs one branch.
//!
//! Order of the rules for one message: held (kept aside, untouched) · blocked · lost · corrupted · bandwidth ·
//! latency · reordered · duplicated. Only blocks, holds and latency touch a message that is not a frame.

use std::collections::VecDeque;
use std::time::Duration;

use firedrill_core::rng::{Rng, Seed};
use firedrill_core::time::{Instant, micros};

use super::faults::FaultLog;
use crate::engine::FaultId;
use crate::scenario::model::LinkSpec;

/// How much later than the longest latency a reordered frame may arrive, as a multiple of it.
const REORDER_LATENCIES_MAX: u64 = 10;

/// What becomes of one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine) enum Fate {
    /// It vanishes.
    Lost,
    /// It is to be kept with [`Network::keep`].
    Held,
    /// It arrives.
    Arrives {
        /// When.
        at: Instant,
        /// When a second copy does.
        again_at: Option<Instant>,
        /// The draw that selects the bit to flip, and the fault that flips it.
        flip: Option<(u64, FaultId)>,
    },
}

/// A [`LinkSpec`] in the form the hot path wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Rules {
    latency_min_us: u64,
    latency_max_us: u64,
    /// Picoseconds a byte takes; 0 is unlimited.
    byte_ps: u64,
    loss_ppm: u32,
    duplicate_ppm: u32,
    reorder_ppm: u32,
}

impl Rules {
    fn new(spec: &LinkSpec) -> Self {
        const PS_PER_SECOND: u64 = 1_000_000_000_000;
        Self {
            latency_min_us: micros(spec.latency_min).max(1),
            latency_max_us: micros(spec.latency_max).max(1),
            byte_ps: spec.bandwidth.map_or(0, |bytes| PS_PER_SECOND / bytes.clamp(1, PS_PER_SECOND)),
            loss_ppm: spec.loss_ppm,
            duplicate_ppm: spec.duplicate_ppm,
            reorder_ppm: spec.reorder_ppm,
        }
    }

    fn serialisation(&self, bytes: usize) -> Duration {
        Duration::from_nanos(self.byte_ps.saturating_mul(bytes as u64) / 1000)
    }

    /// Whether frames take another time under the other rules.
    fn times_differ(&self, other: &Self) -> bool {
        (self.latency_min_us, self.latency_max_us, self.byte_ps)
            != (other.latency_min_us, other.latency_max_us, other.byte_ps)
    }
}

/// What faults do to one link.
#[derive(Debug)]
struct LinkFaults<T> {
    /// Who blocks it, oldest first: it is open when nobody does.
    blockers: Vec<FaultId>,
    hold: Option<FaultId>,
    held: VecDeque<T>,
    /// Who set the present rules, and whether that alone changes how long a frame takes.
    rules: Option<(FaultId, bool)>,
    corrupt: Option<(FaultId, u32)>,
}

impl<T> Default for LinkFaults<T> {
    fn default() -> Self {
        Self { blockers: Vec::new(), hold: None, held: VecDeque::new(), rules: None, corrupt: None }
    }
}

/// One direction between two hosts.
#[derive(Debug)]
struct Link<T> {
    rules: Rules,
    /// The latest arrival so far on this channel, reordered frames excepted.
    last_arrival: Instant,
    /// When the last frame's bytes have left.
    busy_until: Instant,
    /// Made at first use: a run of 64 hosts has 4,032 links and seldom all of them.
    rng: Option<Box<Rng>>,
    faults: Option<Box<LinkFaults<T>>>,
}

/// All links between `hosts` hosts. `T` is what a hold keeps.
#[derive(Debug)]
pub(in crate::engine) struct Network<T> {
    hosts: usize,
    links: Vec<Link<T>>,
    seed: Seed,
    /// Directed pairs blocked at present: with none, a delivery need not look.
    blocked_pairs: usize,
}

impl<T> Network<T> {
    /// A network whose links all behave alike.
    pub(in crate::engine) fn new(hosts: usize, spec: &LinkSpec, seed: Seed) -> Self {
        let rules = Rules::new(spec);
        let link = || Link {
            rules,
            last_arrival: Instant::ZERO,
            busy_until: Instant::ZERO,
            rng: None,
            faults: None,
        };
        Self { hosts, links: (0..hosts * hosts).map(|_| link()).collect(), seed, blocked_pairs: 0 }
    }

    /// Decides about one message that `from` sends to `to` now; `frame_bytes` is `None` for what is no frame.
    pub(in crate::engine) fn fate(
        &mut self,
        now: Instant,
        from: u32,
        to: u32,
        frame_bytes: Option<usize>,
        log: &mut FaultLog,
    ) -> Fate {
        let index = from as usize * self.hosts + to as usize;
        let link = &mut self.links[index];
        let rules = link.rules;
        if let Some(faults) = &link.faults {
            if let Some(hold) = faults.hold {
                log.mark(hold);
                return Fate::Held;
            }
            if faults.blocks(log) {
                return Fate::Lost;
            }
        }
        let seed = &self.seed;
        let rng = link.rng.get_or_insert_with(|| Box::new(seed.fork_index("link", index as u64).rng()));
        let faults = link.faults.as_deref();
        let latency =
            |rng: &mut Rng| Duration::from_micros(rng.between(rules.latency_min_us, rules.latency_max_us));
        let next = |last: Instant, at: Instant| at.max(last.after(Duration::from_micros(1)));

        let Some(bytes) = frame_bytes else {
            link.last_arrival = next(link.last_arrival, now.after(latency(rng)));
            return Fate::Arrives { at: link.last_arrival, again_at: None, flip: None };
        };
        let rules_fault = faults.and_then(|faults| faults.rules);
        let changed = |log: &mut FaultLog| {
            if let Some((fault, _)) = rules_fault {
                log.mark(fault);
            }
        };
        if rng.chance_ppm(rules.loss_ppm) {
            changed(log);
            return Fate::Lost;
        }
        if rules_fault.is_some_and(|(_, times_differ)| times_differ) {
            changed(log);
        }
        let corrupt = faults.and_then(|faults| faults.corrupt);
        let flip = corrupt.and_then(|(fault, rate_ppm)| rng.chance_ppm(rate_ppm).then(|| (rng.u64(), fault)));
        let leaves = if rules.byte_ps == 0 {
            now
        } else {
            link.busy_until = now.max(link.busy_until).after(rules.serialisation(bytes));
            link.busy_until
        };
        let mut at = leaves.after(latency(rng));
        if rng.chance_ppm(rules.reorder_ppm) {
            changed(log);
            let most = rules.latency_max_us.saturating_mul(REORDER_LATENCIES_MAX);
            at = at.after(Duration::from_micros(rng.between(0, most)));
        } else {
            at = next(link.last_arrival, at);
            link.last_arrival = at;
        }
        let again_at = rng.chance_ppm(rules.duplicate_ppm).then(|| {
            changed(log);
            link.last_arrival = next(link.last_arrival, leaves.after(latency(rng)));
            link.last_arrival
        });
        Fate::Arrives { at, again_at, flip }
    }

    /// Whether a cut that began after a message left swallows it on arrival.
    pub(in crate::engine) fn swallows_arrival(&self, from: u32, to: u32, log: &mut FaultLog) -> bool {
        self.blocked_pairs > 0
            && self.links[from as usize * self.hosts + to as usize]
                .faults
                .as_deref()
                .is_some_and(|faults| faults.blocks(log))
    }

    /// Keeps a message whose fate was [`Fate::Held`].
    pub(in crate::engine) fn keep(&mut self, from: u32, to: u32, message: T) {
        self.faults(from as usize, to as usize).held.push_back(message);
    }

    /// Blocks one direction once more.
    pub(in crate::engine) fn block(&mut self, from: usize, to: usize, fault: FaultId) {
        let blockers = &mut self.faults(from, to).blockers;
        blockers.push(fault);
        if blockers.len() == 1 {
            self.blocked_pairs += 1;
        }
    }

    /// Lets frames through again, however many blocks there were. True when there was one.
    pub(in crate::engine) fn unblock(&mut self, from: usize, to: usize) -> bool {
        let blockers = &mut self.faults(from, to).blockers;
        if blockers.is_empty() {
            return false;
        }
        blockers.clear();
        self.blocked_pairs -= 1;
        true
    }

    /// Keeps what is sent from now on.
    pub(in crate::engine) fn hold(&mut self, from: usize, to: usize, fault: FaultId) {
        self.faults(from, to).hold = Some(fault);
    }

    /// Ends a hold; gives back what was kept, or `None` when nothing was held.
    pub(in crate::engine) fn release(&mut self, from: usize, to: usize) -> Option<VecDeque<T>> {
        let faults = self.faults(from, to);
        faults.hold.take().map(|_| std::mem::take(&mut faults.held))
    }

    /// Sets new rules for one direction.
    pub(in crate::engine) fn set_rules(&mut self, from: usize, to: usize, spec: &LinkSpec, fault: FaultId) {
        let index = from * self.hosts + to;
        let rules = Rules::new(spec);
        let times_differ = rules.times_differ(&self.links[index].rules);
        self.links[index].rules = rules;
        self.faults(from, to).rules = Some((fault, times_differ));
    }

    /// Flips a bit in so many frames of a million from now on.
    pub(in crate::engine) fn corrupt(&mut self, from: usize, to: usize, rate_ppm: u32, fault: FaultId) {
        self.faults(from, to).corrupt = (rate_ppm > 0).then_some((fault, rate_ppm));
    }

    fn faults(&mut self, from: usize, to: usize) -> &mut LinkFaults<T> {
        self.links[from * self.hosts + to].faults.get_or_insert_with(Box::default)
    }
}

impl<T> LinkFaults<T> {
    /// Whether the link is blocked; if so, every blocker had an effect.
    fn blocks(&self, log: &mut FaultLog) -> bool {
        for fault in &self.blockers {
            log.mark(*fault);
        }
        !self.blockers.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn spec() -> LinkSpec {
        LinkSpec {
            latency_min: MS,
            latency_max: MS * 20,
            loss_ppm: 0,
            duplicate_ppm: 0,
            reorder_ppm: 0,
            bandwidth: None,
        }
    }

    fn arrivals(spec: &LinkSpec, frames: u64) -> Vec<Fate> {
        let mut net = Network::<()>::new(2, spec, Seed::from_u64(1));
        let mut log = FaultLog::default();
        (0..frames).map(|i| net.fate(Instant::from_micros(i * 1000), 0, 1, Some(1000), &mut log)).collect()
    }

    fn at(fate: &Fate) -> Instant {
        match fate {
            Fate::Arrives { at, .. } => *at,
            Fate::Lost | Fate::Held => panic!("{fate:?}"),
        }
    }

    #[test]
    fn a_link_is_first_in_first_out_until_it_reorders() {
        let in_order = |fates: &[Fate]| fates.windows(2).all(|pair| at(&pair[0]) < at(&pair[1]));
        assert!(in_order(&arrivals(&spec(), 500)));
        let reordered = arrivals(&LinkSpec { reorder_ppm: 100_000, ..spec() }, 500);
        assert!(!in_order(&reordered));
        let latest = (0..).zip(&reordered).map(|(i, fate)| at(fate).as_micros() - i * 1000).max();
        assert!(latest.is_some_and(|us| us > 60_000 && us <= 220_000), "{latest:?}");
    }

    #[test]
    fn loss_and_duplication_come_at_their_rates() {
        let fates = arrivals(&LinkSpec { loss_ppm: 100_000, duplicate_ppm: 50_000, ..spec() }, 10_000);
        let lost = fates.iter().filter(|fate| **fate == Fate::Lost).count();
        let twice =
            fates.iter().filter(|fate| matches!(fate, Fate::Arrives { again_at: Some(_), .. })).count();
        assert!((900..1100).contains(&lost) && (380..520).contains(&twice), "{lost} {twice}");
    }

    #[test]
    fn bandwidth_makes_frames_wait_for_those_ahead() {
        let slow = LinkSpec { latency_max: MS, bandwidth: Some(100_000), ..spec() };
        let last = at(&arrivals(&slow, 10)[9]);
        assert_eq!(last, Instant::ZERO.after(MS * 101), "ten frames of 10 ms each, then the latency");
    }

    #[test]
    fn traffic_on_one_link_moves_nothing_on_another() {
        let run = |noise: bool| {
            let mut net = Network::<()>::new(3, &spec(), Seed::from_u64(1));
            let mut log = FaultLog::default();
            if noise {
                net.fate(Instant::ZERO, 0, 2, Some(1), &mut log);
                net.fate(Instant::ZERO, 1, 0, Some(1), &mut log);
            }
            net.fate(Instant::ZERO, 0, 1, Some(1), &mut log)
        };
        assert_eq!(run(true), run(false));
    }

    #[test]
    fn every_block_of_a_pair_is_marked_when_it_swallows_and_all_end_together() {
        let mut net = Network::<()>::new(2, &spec(), Seed::from_u64(1));
        let mut log = FaultLog::default();
        let (a, b, c) = (log.add(), log.add(), log.add());
        net.block(0, 1, a);
        net.block(0, 1, b);
        assert!(!log.had_effect(a));
        assert_eq!(net.fate(Instant::ZERO, 0, 1, None, &mut log), Fate::Lost);
        assert!(log.had_effect(a) && log.had_effect(b));
        assert!(net.unblock(0, 1) && !net.swallows_arrival(0, 1, &mut log) && !net.unblock(0, 1));
        net.set_rules(0, 1, &spec(), c);
        net.fate(Instant::ZERO, 0, 1, Some(1), &mut log);
        assert!(!log.had_effect(c), "the same rules again change nothing");
        net.set_rules(0, 1, &LinkSpec { latency_max: MS * 30, ..spec() }, c);
        net.fate(Instant::ZERO, 0, 1, Some(1), &mut log);
        assert!(log.had_effect(c));
    }
}
