//! How long the cluster may take to agree once the last fault is over.
//!
//! The spec bounds each kind of fault; a drill mixes them, so [`liveness_bound`] takes the longest bound that may
//! apply to what happened, and adds what the way frames travel costs: dialling anew, a connection that died
//! silently, frames that the net still loses. It never reads a node.
//!
//! Spec: docs/protocol.md, Bounds after a heal; findings 3, 6 and 7.
//!
//! P is the longest push interval of the drill (on its host's slowest clock), p the longest jittered round 1.2 P,
//! S the longest suspicion timeout, L the longest frame delay, d the diameter of the graph of seeds.

use std::collections::VecDeque;
use std::time::Duration;

use firedrill_core::limits::{
    DEPARTURE, DIAL_BACKOFF_MAX, DIAL_JITTER_PERCENT, DIAL_TIMEOUT, PUSH_JITTER_PERCENT, WRITE_TIMEOUT,
};

use super::span;
use crate::scenario::model::Host;

/// What happened in a drill, as far as the bound depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a kind of fault that happened or did not")]
pub struct FaultHistory {
    /// P: the longest push interval, in true time.
    pub push_longest: Duration,
    /// S: the longest suspicion timeout, in true time.
    pub suspicion_longest: Duration,
    /// The shortest suspicion timeout, in true time: its node is the first to forget.
    pub suspicion_shortest: Duration,
    /// L: the longest any frame could take.
    pub frame_delay_max: Duration,
    /// d: the longest of the shortest ways between two hosts along seeds.
    pub seed_diameter: usize,
    /// The longest that one direction between two hosts was cut or held.
    pub partition_longest: Duration,
    /// The longest a host was held.
    pub pause_longest: Duration,
    /// The longest a host was down between two boots.
    pub downtime_longest: Duration,
    /// Boots after a host's first.
    pub restarts: u32,
    /// At some moment no host ran.
    pub all_down: bool,
    /// A wall clock went back, stood, ran slow, or a boot came at an incarnation not above an earlier one.
    pub backward_clock: bool,
    /// A host came back at another address, outranked by a record of its old boot that somebody may still have held.
    pub sought: bool,
    /// Somebody said goodbye to a fresh boot, which may not have known it and keeps a tombstone without an address.
    pub left: bool,
    /// Two boots may share an incarnation.
    pub same_millisecond: bool,
    /// Somebody is down at the end.
    pub down_at_end: bool,
    /// Somebody is still saying goodbye at the end.
    pub departs_at_end: bool,
    /// Old frames were sent again.
    pub replayed: bool,
    /// How long after the end old frames are still being sent.
    pub stale_for: Duration,
    /// Strangers connected or forged.
    pub strangers: bool,
    /// A connection died without telling.
    pub half_open: bool,
    /// The longest times of the issuance, where there is one.
    pub issuance: Option<IssuanceSpans>,
    /// Frames that links lose or spoil at the worst, per million.
    pub loss_ppm: u32,
}

/// The longest times of the issuance in a drill, in true time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct IssuanceSpans {
    /// `silence_z`.
    pub silence: Duration,
    /// `boot_grace_z`.
    pub grace: Duration,
    /// `check_z`.
    pub check: Duration,
    /// `pull_z`.
    pub pull: Duration,
    /// `probe_timeout_ms`.
    pub probe: Duration,
    /// `fence_z`, with fencing; zero without.
    pub fence: Duration,
}

impl IssuanceSpans {
    /// Each of them as `of` makes it.
    pub fn through(&self, of: impl Fn(Duration) -> Duration) -> Self {
        Self {
            silence: of(self.silence),
            grace: of(self.grace),
            check: of(self.check),
            pull: of(self.pull),
            probe: of(self.probe),
            fence: of(self.fence),
        }
    }

    /// The longer of each.
    pub fn longest(self, other: Self) -> Self {
        Self {
            silence: self.silence.max(other.silence),
            grace: self.grace.max(other.grace),
            check: self.check.max(other.check),
            pull: self.pull.max(other.pull),
            probe: self.probe.max(other.probe),
            fence: self.fence.max(other.fence),
        }
    }
}

/// Attempts of a claimant without a majority until it has one, each after a random wait of one to two fences: two
/// that collide draw anew.
const CLAIMS: u32 = 4;
/// What disks, frames and the window of a row add to an election.
const ISSUANCE_MARGIN: Duration = Duration::from_secs(5);

/// A bound and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bound {
    /// From the end of the last fault.
    pub within: Duration,
    /// The clause of the spec and its numbers, for people.
    pub because: String,
}

/// Chance, as a power of ten, that a run of lost frames is longer than the bound allows for.
const LOSS_CHANCE_EXPONENT: f64 = -9.0;
/// More retries than this are no longer a bound but a wish.
const RETRIES_MAX: u32 = 64;

/// The longest bound of the spec that may apply after such faults.
///
/// `connections` says whether frames travel over connections that have to be dialled (every engine but the fast
/// mode): then a dial that the fault swallowed has to time out first, and its back-off to pass.
pub fn liveness_bound(history: &FaultHistory, connections: bool) -> Bound {
    let round = round_longest(history);
    let in_words = |clause: &str, within: Duration| (within, clause.to_owned());
    let deaf = if connections { dead_links_for(history, round) } else { half_open_for(history, round) };
    let clauses = clauses(history, round, deaf).map(|(clause, within)| in_words(clause, within));
    let (mut within, mut because) = clauses
        .into_iter()
        .max_by_key(|(within, _)| *within)
        .unwrap_or_else(|| in_words("none", Duration::ZERO));
    let mut add = |what: &str, more: Duration| {
        if !more.is_zero() {
            within = within.saturating_add(more);
            because.push_str(&format!(" + {what} {}", span(more)));
        }
    };
    if history.departs_at_end {
        add("a departure", DEPARTURE);
    }
    add("old frames still being sent", history.stale_for);
    if connections {
        add("a dial that times out", DIAL_TIMEOUT);
        add("the longest dial back-off", dial_backoff_longest());
    }
    add("the write timeout that closes a half-open link", half_open_for(history, round));
    add("rounds whose frames are lost", lost_rounds(history, round));
    if let Some(spans) = &history.issuance {
        let lost = retries(history.loss_ppm);
        add("an election (silence or grace, check, pull, probe)", election_within(spans));
        add("a check and two pulls until spines are one", spines_within(spans));
        add("a fence of electors that start, and claims that collide", fence_within(spans));
        add("pulls and probes that are lost", spans.pull.saturating_add(spans.check).saturating_mul(lost));
    }
    because.push_str(&format!(
        ", where p = {}, S = {}, L = {}, d = {}",
        span(round),
        span(history.suspicion_longest),
        span(history.frame_delay_max),
        history.seed_diameter
    ));
    Bound { within, because }
}

/// From the moment at which nodes see each other: whoever holds the lease falls silent for everybody within a pull, and
/// is replaced at the first check after the silence, or after the grace of those who have just started.
fn election_within(spans: &IssuanceSpans) -> Duration {
    let waits = spans.silence.max(spans.grace);
    [spans.check, spans.pull, spans.probe, ISSUANCE_MARGIN].into_iter().fold(waits, Duration::saturating_add)
}

/// A holder that returned seals for a check and a pull at most; its rows are everywhere a pull later, and what is
/// compared is the tip of one more pull ago.
fn spines_within(spans: &IssuanceSpans) -> Duration {
    spans.check.saturating_add(spans.pull.saturating_mul(3))
}

fn fence_within(spans: &IssuanceSpans) -> Duration {
    spans.fence.saturating_mul(1 + 2 * CLAIMS)
}

/// How long news takes at the most to reach everybody while nothing is done to the cluster, on any wire.
pub(super) fn news_within(history: &FaultHistory) -> Duration {
    let round = round_longest(history);
    let hops = round.saturating_add(history.frame_delay_max).saturating_mul(hops(history));
    let links = dead_links_for(history, round).saturating_add(DEPARTURE);
    hops.saturating_add(links).saturating_add(lost_rounds(history, round))
}

/// How long a boot may not know the others: in a drill's first boots no link is dead.
pub(super) fn strange_for(history: &FaultHistory, first: bool) -> Duration {
    let round = round_longest(history).saturating_add(history.frame_delay_max);
    if first { round.saturating_mul(hops(history)) } else { news_within(history) }
}

/// How long a link can stay dead after what killed it has ended: it is noticed by the write timeout, a dial that was
/// swallowed times out, and its back-off has to pass.
fn dead_links_for(history: &FaultHistory, round: Duration) -> Duration {
    let dial = DIAL_TIMEOUT.saturating_add(dial_backoff_longest());
    half_open_for(history, round).saturating_add(dial)
}

/// Who still hears its peer, over the peer's own connection, has no silence to go by: its link is closed when its
/// next push stays without an acknowledgement for the write timeout (finding 3).
fn half_open_for(history: &FaultHistory, round: Duration) -> Duration {
    if history.half_open { round.saturating_add(WRITE_TIMEOUT) } else { Duration::ZERO }
}

fn dial_backoff_longest() -> Duration {
    let (_, percent) = DIAL_JITTER_PERCENT;
    DIAL_BACKOFF_MAX.saturating_mul(u32::try_from(percent).unwrap_or(u32::MAX)) / 100
}

fn lost_rounds(history: &FaultHistory, round: Duration) -> Duration {
    round.saturating_mul(hops(history)).saturating_mul(retries(history.loss_ppm))
}

fn hops(history: &FaultHistory) -> u32 {
    u32::try_from(history.seed_diameter).unwrap_or(u32::MAX).saturating_add(2)
}

/// p: the longest jittered round of the drill.
pub(super) fn round_longest(history: &FaultHistory) -> Duration {
    history.push_longest.saturating_mul(PUSH_JITTER_PERCENT_MAX) / 100
}

const PUSH_JITTER_PERCENT_MAX: u32 = 120;
const _: () = assert!(PUSH_JITTER_PERCENT.1 == 120, "the bounds count rounds of 1.2 P");

/// Every clause of the spec that may apply, with its bound; those that cannot are zero. Links may stay dead for `deaf`
/// after a fault has ended, which makes an absence longer than the fault was.
fn clauses(history: &FaultHistory, p: Duration, deaf: Duration) -> [(&'static str, Duration); 12] {
    let (s, l) = (history.suspicion_longest, history.frame_delay_max);
    let d = u32::try_from(history.seed_diameter).unwrap_or(u32::MAX);
    let sum = |suspicions: u32, rounds: u32, delays: u32| {
        let rounds = p.saturating_mul(rounds);
        s.saturating_mul(suspicions).saturating_add(rounds).saturating_add(l.saturating_mul(delays))
    };
    let given = |applies: bool, bound: Duration| if applies { bound } else { Duration::ZERO };
    // Absences of different kinds may follow one another without a break. Who forgets first has the shortest S.
    let absence = history
        .partition_longest
        .saturating_add(history.pause_longest)
        .saturating_add(history.downtime_longest);
    let apart = !absence.is_zero() || history.half_open;
    let absence = absence.saturating_add(deaf);
    let forgets = |windows: u32| apart && absence > history.suspicion_shortest.saturating_mul(windows);
    let (long, longest) = (forgets(20), forgets(40));
    // A record is pruned two tombstone windows after its member was last heard, or one after it said goodbye.
    let pruned = forgets(10);
    let restarted = history.restarts > 0;
    let back = history.backward_clock && restarted;
    [
        ("a boot with a later clock: 3p + 3L", sum(0, 3, 3)),
        (
            "a start of all, or a mass restart: (d + 2)(p + L)",
            sum(0, d.saturating_add(2), d.saturating_add(2)),
        ),
        ("a backward clock while the tombstone is held: 4p + 4L", given(back, sum(0, 4, 4))),
        ("a backward clock after the record was pruned: 2S + 6p + 4L", given(back && pruned, sum(2, 6, 4))),
        (
            // Nobody knows where to tell it that it is outranked, and its frames are refused as replays, until
            // its record is pruned: after a window of silence and one as a tombstone.
            "a backward clock at a new address, the old record held: 22S + 8p + 5L",
            given(history.sought, sum(22, 8, 5)),
        ),
        (
            // Nobody knows where to tell it that it is outranked, until the tombstone is pruned (finding 7).
            "a backward clock after a goodbye to a stranger: 10S + 6p + 4L",
            given(back && history.left, sum(10, 6, 4)),
        ),
        (
            "two boots in one millisecond: 10S + 6p + 4L",
            given(history.same_millisecond && restarted, sum(10, 6, 4)),
        ),
        ("a partition of at most 20 S: 4p + 4L", given(apart, sum(0, 4, 4))),
        (
            "a partition above 20 S: 2S + (d + 7)p + (d + 3)L",
            given(long, sum(2, d.saturating_add(7), d.saturating_add(3))),
        ),
        (
            "a partition above 40 S, with seeds only: (d + 3)(p + L)",
            given(longest, sum(0, d.saturating_add(3), d.saturating_add(3))),
        ),
        ("a dead member leaves a view: S + L", given(history.down_at_end, sum(1, 0, 1))),
        // The ghost of a replay is silent, or refuted by whom it names.
        ("a replay of old frames, as a backward clock: 2S + 6p + 4L", given(history.replayed, sum(2, 6, 4))),
    ]
}

/// How many more times a frame has to be sent until all of its copies are lost only once in 10⁹ runs.
fn retries(loss_ppm: u32) -> u32 {
    if loss_ppm == 0 {
        return 0;
    }
    let chance = f64::from(loss_ppm.min(999_999)) / 1e6;
    let mut lost = chance.log10();
    let mut retries = 0;
    while lost > LOSS_CHANCE_EXPONENT && retries < RETRIES_MAX {
        lost += chance.log10();
        retries += 1;
    }
    retries
}

/// The diameter of the graph in which two hosts are neighbours when one has the other among its seeds.
///
/// Hosts that no seed connects never meet, whatever the time, and count for nothing.
pub fn seed_diameter(hosts: &[Host]) -> usize {
    let dials = |from: &Host, to: &Host| from.config.seed_peers.contains(&to.config.advertised());
    let neighbours: Vec<Vec<usize>> = hosts
        .iter()
        .map(|host| {
            let near = hosts.iter().enumerate().filter(|(_, other)| dials(host, other) || dials(other, host));
            near.map(|(position, _)| position).collect()
        })
        .collect();
    (0..hosts.len()).map(|from| eccentricity(&neighbours, from)).max().unwrap_or(0)
}

/// The longest of the shortest ways from one host to those it can reach.
fn eccentricity(neighbours: &[Vec<usize>], from: usize) -> usize {
    let mut distance = vec![None; neighbours.len()];
    distance[from] = Some(0);
    let mut queue = VecDeque::from([(from, 0)]);
    let mut longest = 0;
    while let Some((host, so_far)) = queue.pop_front() {
        longest = longest.max(so_far);
        for &next in &neighbours[host] {
            if distance[next].is_none() {
                distance[next] = Some(so_far + 1);
                queue.push_back((next, so_far + 1));
            }
        }
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn secs(s: u64) -> Duration {
        Duration::from_secs(s)
    }

    /// P = 500 ms, S = 2.5 s, L = 20 ms, three hosts in a chain: p = 600 ms.
    fn quiet() -> FaultHistory {
        FaultHistory {
            push_longest: Duration::from_millis(500),
            suspicion_longest: Duration::from_millis(2500),
            suspicion_shortest: Duration::from_millis(2500),
            frame_delay_max: Duration::from_millis(20),
            seed_diameter: 2,
            ..FaultHistory::default()
        }
    }

    #[test]
    fn a_start_takes_a_round_a_hop() {
        let bound = liveness_bound(&quiet(), false);
        assert_eq!(bound.within, Duration::from_millis(4 * 620));
        assert!(bound.because.starts_with("a start of all"), "{}", bound.because);
    }

    #[test]
    fn the_longest_clause_that_may_apply_is_taken() {
        let p = Duration::from_millis(600);
        let l = Duration::from_millis(20);
        let s = Duration::from_millis(2500);
        let cases = [
            (FaultHistory { partition_longest: secs(49), ..quiet() }, 4 * (p + l)),
            (FaultHistory { partition_longest: secs(51), ..quiet() }, 2 * s + 9 * p + 5 * l),
            (
                FaultHistory { pause_longest: secs(30), downtime_longest: secs(30), restarts: 1, ..quiet() },
                2 * s + 9 * p + 5 * l,
            ),
            (
                FaultHistory { backward_clock: true, restarts: 1, downtime_longest: secs(26), ..quiet() },
                2 * s + 6 * p + 4 * l,
            ),
            (FaultHistory { backward_clock: true, downtime_longest: secs(1), ..quiet() }, 4 * (p + l)),
            (FaultHistory { sought: true, ..quiet() }, 22 * s + 8 * p + 5 * l),
            (
                FaultHistory { partition_longest: secs(26), suspicion_shortest: secs(1), ..quiet() },
                2 * s + 9 * p + 5 * l,
            ),
            (FaultHistory { same_millisecond: true, restarts: 1, ..quiet() }, 10 * s + 6 * p + 4 * l),
            (
                FaultHistory { left: true, backward_clock: true, restarts: 1, ..quiet() },
                10 * s + 6 * p + 4 * l,
            ),
            (FaultHistory { left: true, restarts: 1, ..quiet() }, 4 * (p + l)),
            (FaultHistory { down_at_end: true, ..quiet() }, s + l),
            (FaultHistory { partition_longest: secs(51), restarts: 1, ..quiet() }, 2 * s + 9 * p + 5 * l),
            (FaultHistory { replayed: true, ..quiet() }, 2 * s + 6 * p + 4 * l),
        ];
        for (history, within) in cases {
            let bound = liveness_bound(&history, false);
            assert_eq!(bound.within, within, "{}", bound.because);
        }
    }

    #[test]
    fn connections_half_open_links_and_loss_cost_extra() {
        let plain = liveness_bound(&quiet(), false).within;
        assert_eq!(liveness_bound(&quiet(), true).within - plain, Duration::from_millis(4400));
        let half_open = FaultHistory { half_open: true, ..quiet() };
        let apart = liveness_bound(&FaultHistory { pause_longest: secs(1), ..quiet() }, false).within;
        assert_eq!(liveness_bound(&half_open, false).within - apart, Duration::from_millis(600 + 2000));
        let lossy = FaultHistory { loss_ppm: 1000, ..quiet() };
        assert_eq!(liveness_bound(&lossy, false).within - plain, Duration::from_millis(600 * 4 * 2));
    }

    #[test]
    fn an_issuance_costs_an_election_and_what_makes_spines_one() {
        let plain = liveness_bound(&quiet(), false).within;
        let spans = IssuanceSpans {
            silence: secs(46),
            grace: secs(31),
            check: secs(12),
            pull: secs(15),
            probe: secs(2),
            fence: Duration::ZERO,
        };
        let with = |issuance| liveness_bound(&FaultHistory { issuance: Some(issuance), ..quiet() }, false);
        let bound = with(spans);
        assert_eq!(bound.within - plain, secs(46 + 12 + 15 + 2 + 5) + secs(12 + 3 * 15));
        assert!(bound.because.contains("+ an election"), "{}", bound.because);
        let fenced = with(IssuanceSpans { fence: secs(35), grace: secs(60), ..spans });
        assert_eq!(fenced.within - bound.within, secs(60 - 46) + secs(35 * 9));
    }

    #[test]
    fn retries_grow_with_loss_and_stop() {
        assert_eq!([0, 1, 1000, 100_000, 1_000_000].map(retries), [0, 1, 2, 8, RETRIES_MAX]);
    }

    #[test]
    fn the_diameter_follows_seeds_both_ways() {
        let chain = [vec![1], vec![0, 2], vec![1, 3], vec![2]];
        assert_eq!((0..4).map(|from| eccentricity(&chain, from)).max(), Some(3));
        assert_eq!(eccentricity(&[vec![1], vec![0], vec![]], 0), 1);
    }
}
