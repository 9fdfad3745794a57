//! One fault: its kind, whom it hits, how long it lasts.

use std::net::SocketAddr;
use std::time::Duration;

use super::{Draw, Sketch, Venue};
use crate::scenario::catalog::VERBS;
use crate::scenario::model::{FloodKind, HostIx, Target, Verb};

/// What a swarm turns on or off as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Kill,
    Stop,
    Restart,
    Pause,
    Resume,
    Partition,
    Isolate,
    Heal,
    Cut,
    Hold,
    Link,
    HalfOpen,
    ClockStep,
    ClockRate,
    ClockFreeze,
    Replay,
    Corrupt,
    Forge,
    Flood,
    AddNode,
    RemoveNode,
}

use Kind::{
    AddNode, ClockFreeze, ClockRate, ClockStep, Corrupt, Cut, Flood, Forge, HalfOpen, Heal, Hold, Isolate,
    Kill, Link, Partition, Pause, RemoveNode, Replay, Restart, Resume, Stop,
};

/// Every kind and the verb it is named after. What users do most is listed first and drawn most.
const KINDS: &[(Kind, &str)] = &[
    (Kill, "kill"),
    (Partition, "partition"),
    (Pause, "pause"),
    (Restart, "restart"),
    (Stop, "stop"),
    (Cut, "cut"),
    (Hold, "hold"),
    (Isolate, "isolate"),
    (Link, "link"),
    (ClockStep, "clock_step"),
    (ClockRate, "clock_rate"),
    (ClockFreeze, "clock_freeze"),
    (Replay, "replay_frames"),
    (HalfOpen, "half_open"),
    (Corrupt, "corrupt_frames"),
    (Forge, "forge_frames"),
    (Flood, "flood"),
    (Heal, "heal"),
    (Resume, "resume"),
    (AddNode, "add_node"),
    (RemoveNode, "remove_node"),
];

impl Kind {
    /// The kinds of one drill: each that its venue can do is in or out, and at least one that hurts is in.
    pub(super) fn swarm(draw: &mut Draw, venue: Venue) -> Vec<Self> {
        let mut kinds = Vec::new();
        for &(kind, verb) in KINDS {
            let odds = match kind {
                Heal | Resume | AddNode | RemoveNode => 5,
                Kill | Partition | Pause | Restart | Stop | Cut | Hold | Isolate | Link | ClockStep
                | ClockRate | ClockFreeze | Replay | HalfOpen | Corrupt | Forge | Flood => 2,
            };
            if draw.one_in(odds) && can(verb, venue) {
                kinds.push(kind);
            }
        }
        if !kinds.iter().any(|kind| !matches!(kind, Heal | Resume | AddNode | RemoveNode)) {
            kinds.push(draw.pick(&[Kill, Partition, Pause, Restart, Cut]));
        }
        kinds
    }
}

/// Whether a venue can do a verb.
pub(super) fn can(verb: &str, venue: Venue) -> bool {
    VERBS.iter().find(|known| known.name == verb).is_some_and(|known| {
        known.engines.contains(&venue.engine()) && !(known.bytes && venue == Venue::Fast)
    })
}

/// Whether a verb acts on bytes.
pub(super) fn needs_bytes(verb: &Verb) -> bool {
    VERBS.iter().any(|known| known.name == verb.name() && known.bytes)
}

impl Sketch {
    /// Plans one fault of this kind, and what belongs to it.
    pub(super) fn fault(&mut self, kind: Kind, at_ms: u64) {
        let lasts_ms = self.lasts();
        let lasts = Some(lasts_ms);
        let some = self.some();
        let (from, to) = self.way();
        let (from, to) = (one(from), one(to));
        match kind {
            Kill | Stop => {
                // What goes down mostly comes back.
                if !self.draw.one_in(4) {
                    let back = self.restart(some.clone());
                    self.plan(at_ms + lasts_ms, None, back);
                }
                self.plan(at_ms, None, if kind == Kill { Verb::Kill(some) } else { Verb::Stop(some) });
            }
            Restart => {
                let verb = self.restart(some);
                self.plan(at_ms, None, verb);
            }
            Pause => self.plan(at_ms, lasts, Verb::Pause(some)),
            Resume => self.plan(at_ms, None, Verb::Resume(some)),
            Partition => {
                let groups = self.groups();
                self.plan(at_ms, lasts, Verb::Partition(groups));
            }
            Isolate => self.plan(at_ms, lasts, Verb::Isolate(some)),
            Heal => self.plan(at_ms, None, Verb::Heal),
            Cut => self.plan(at_ms, lasts, Verb::Cut { from, to }),
            Hold => {
                let to = if self.draw.one_in(2) { Target::All } else { to };
                self.plan(at_ms, lasts, Verb::Hold { from, to });
            }
            Link => {
                let verb = self.link(from, to);
                self.plan(at_ms, lasts, verb);
            }
            HalfOpen => self.plan(at_ms, None, Verb::HalfOpen { from, to }),
            ClockStep => {
                let by_us = self.offset_us();
                self.plan(at_ms, None, Verb::ClockStep { target: some, by_us });
            }
            ClockRate => {
                let rate_ppm = self.draw.pick(&[500_000, 800_000, 990_000, 1_010_000, 1_300_000, 2_000_000]);
                self.plan(at_ms, lasts, Verb::ClockRate { target: some, rate_ppm });
            }
            ClockFreeze => self.plan(at_ms, lasts, Verb::ClockFreeze(some)),
            Replay => {
                let verb = self.replay(from, to, at_ms);
                self.plan(at_ms, None, verb);
            }
            Corrupt => {
                let rate_ppm = self.draw.percent_ppm(1, 30);
                self.plan(at_ms, lasts, Verb::CorruptFrames { from, to, rate_ppm });
            }
            Forge => {
                let count = self.draw.pick(&[1, 3, 20]);
                self.plan(at_ms, None, Verb::ForgeFrames { sender: from, to, count });
            }
            Flood => {
                let garbage = self.draw.pick(&[
                    FloodKind::Silent,
                    FloodKind::Garbage,
                    FloodKind::Oversize,
                    FloodKind::HalfFrame,
                ]);
                let connections = self.draw.pick(&[1, 20, 130, 200]);
                self.plan(at_ms, None, Verb::Flood { to, connections, garbage });
            }
            // Latecomers are planned once, whatever else the drill does.
            AddNode => {}
            RemoveNode => {
                let host = self.host();
                self.plan(at_ms, None, Verb::RemoveNode(one(host)));
            }
        }
    }

    /// How long a fault lasts: mostly near the protocol's own times, now and then beyond its memory.
    fn lasts(&mut self) -> u64 {
        let (p, s) = (self.push_ms, self.suspicion_ms);
        match self.draw.between(0, 19) {
            0..=4 => self.draw.between(1, 2 * p),
            5..=10 => self.draw.between(p, 2 * s),
            11..=14 => self.draw.between(s, 6 * s),
            15..=17 => self.draw.between(9 * s, 13 * s),
            18 => self.draw.between(19 * s, 23 * s),
            _ => self.draw.between(28 * s, 33 * s),
        }
    }

    /// Whom a fault hits: mostly one host, now and then a symbol.
    fn some(&mut self) -> Target {
        match self.draw.between(0, 9) {
            0 => Target::Any,
            1 => Target::Minority,
            2 => Target::All,
            _ => one(self.host()),
        }
    }

    pub(super) fn restart(&mut self, target: Target) -> Verb {
        let wall_step_us = self.draw.one_in(3).then(|| self.offset_us());
        let alone = matches!(&target, Target::Hosts(hosts) if hosts.len() == 1) || target == Target::Any;
        let addr = (alone && self.draw.one_in(5)).then(|| self.new_addr());
        Verb::Restart { target, wall_step_us, addr, lose_disk: false }
    }

    /// An address that no other host of this drill ever has.
    pub(super) fn new_addr(&mut self) -> SocketAddr {
        self.moves += 1;
        SocketAddr::from(([192, 168, 9, self.moves], 7946))
    }

    fn groups(&mut self) -> Vec<Target> {
        let mut groups: [Vec<HostIx>; 3] = Default::default();
        let last = if self.draw.one_in(4) { 3 } else { 2 };
        let starters = self.starters();
        for host in 0..starters {
            let group = self.draw.index(last);
            groups[group].push(HostIx(host));
        }
        let groups: Vec<Target> =
            groups.into_iter().filter(|group| !group.is_empty()).map(Target::Hosts).collect();
        // Who is in no group forms one more.
        if groups.len() < 2 { vec![one(HostIx(0))] } else { groups }
    }

    fn link(&mut self, from: Target, to: Target) -> Verb {
        let to = if self.draw.one_in(2) { Target::All } else { to };
        let (mut latency, mut loss_ppm, mut duplicate_ppm, mut reorder_ppm, mut bandwidth) =
            (None, None, None, None, None);
        match self.draw.between(0, 3) {
            0 => {
                let most = self.draw.millis(2, 2 * self.suspicion_ms);
                latency = Some((Duration::from_millis(1), most));
            }
            1 => loss_ppm = Some(self.draw.percent_ppm(1, 90)),
            2 => {
                reorder_ppm = Some(self.draw.percent_ppm(1, 50));
                duplicate_ppm = Some(self.draw.percent_ppm(1, 50));
            }
            _ => bandwidth = Some(self.draw.between(10, 1_000) * 1_000),
        }
        Verb::Link { from, to, latency, loss_ppm, duplicate_ppm, reorder_ppm, bandwidth }
    }

    fn replay(&mut self, from: Target, to: Target, at_ms: u64) -> Verb {
        let count = self.draw.pick(&[1, 2, 10, 100]);
        let captured_until = self.draw.one_in(2).then(|| self.draw.millis(1, at_ms.saturating_sub(1).max(1)));
        Verb::ReplayFrames { from, to, captured_from: Duration::ZERO, captured_until, count }
    }
}

/// This host.
pub(super) fn one(host: HostIx) -> Target {
    Target::Hosts(vec![host])
}
