//! Stories of bytes and connections, for the full wire: strangers, spoiled frames, full pipes, dead dials.

use std::net::SocketAddr;
use std::time::Duration;

use super::faults::one;
use super::{INTERVALS_MAX, Sketch};
use crate::scenario::model::{FloodKind, HostIx, Target, Verb};

/// The stories, one drawn as often as the other.
const STORIES: &[fn(&mut Sketch)] = &[
    strangers,
    strangers_that_wait,
    spoiled_frames,
    spoiled_frames,
    full_pipe,
    full_pipe,
    a_stop_beside_the_dead,
    another_port,
];

const FLOODS: [FloodKind; 4] =
    [FloodKind::Silent, FloodKind::Garbage, FloodKind::Oversize, FloodKind::HalfFrame];

/// Plans one of them.
pub(super) fn tell(sketch: &mut Sketch) {
    let story = sketch.draw.index(STORIES.len());
    STORIES[story](sketch);
}

/// Strangers of every kind, one after the other, while a member forges and a link corrupts.
fn strangers(sketch: &mut Sketch) {
    let mut at_ms = sketch.opening();
    for garbage in FLOODS {
        let ((from, to), connections) = (sketch.way(), sketch.draw.pick(&[5, 140]));
        let (from, to) = (one(from), one(to));
        let flood = Verb::Flood { to: to.clone(), connections, garbage };
        let forge = Verb::ForgeFrames { sender: from.clone(), to: to.clone(), count: 4 };
        let rate_ppm = sketch.draw.percent_ppm(5, 60);
        let corrupt = Verb::CorruptFrames { from: from.clone(), to: to.clone(), rate_ppm };
        let half_open = Verb::HalfOpen { from, to };
        for verb in [flood, forge, corrupt, half_open] {
            if sketch.draw.one_in(2) {
                let lasts_ms = matches!(verb, Verb::CorruptFrames { .. }).then(|| sketch.suspicions(5, 30));
                sketch.plan(at_ms, lasts_ms, verb);
                at_ms += sketch.draw.between(0, 2 * sketch.push_ms);
            }
        }
    }
}

/// Strangers who stay for longer than a connection may say nothing, which is ten seconds at least.
fn strangers_that_wait(sketch: &mut Sketch) {
    let push_ms = 100.max(sketch.push_ms);
    let suspicion_ms = push_ms * sketch.draw.pick(&[3, 4]);
    sketch.pace(push_ms, suspicion_ms);
    let (to, at_ms) = (sketch.host(), sketch.opening().min(1_000));
    let connections = sketch.draw.pick(&[1, 5, 140]);
    let garbage = sketch.draw.pick(&[FloodKind::HalfFrame, FloodKind::HalfFrame, FloodKind::Silent]);
    sketch.plan(at_ms, None, Verb::Flood { to: one(to), connections, garbage });
    sketch.limit_ms = INTERVALS_MAX * push_ms;
}

/// Bits flip on every link for most of the drill. One flip in a hundred hits what a frame says of its sender.
fn spoiled_frames(sketch: &mut Sketch) {
    let suspicion_ms = 20 * sketch.draw.pick(&[5, 8, 20]);
    sketch.pace(20, suspicion_ms);
    let at_ms = sketch.draw.between(1, 4 * sketch.push_ms);
    let rate_ppm = sketch.draw.percent_ppm(20, 60);
    sketch.limit_ms = INTERVALS_MAX * sketch.push_ms;
    let lasts_ms = sketch.limit_ms - at_ms - sketch.draw.between(1, 20 * sketch.push_ms);
    let verb = Verb::CorruptFrames { from: Target::All, to: Target::All, rate_ppm };
    sketch.plan(at_ms, Some(lasts_ms), verb);
}

/// More frames than a connection takes, on a link that lets some through; when the queue behind it has begun
/// to fill, a goodbye.
fn full_pipe(sketch: &mut Sketch) {
    // A push every ten milliseconds fills the pipe before the kernel gives up on its oldest frame.
    sketch.pace(10, 400);
    let ((host, peer), at_ms) = (sketch.way(), sketch.opening());
    // A frame grows with the members it tells of; a third of the frames gets through.
    let hosts = sketch.hosts.len() as u64;
    let bandwidth = sketch.draw.between(8 + 2 * hosts, 11 + 2 * hosts) * 1_000;
    let narrow = Verb::Link {
        from: one(host),
        to: one(peer),
        latency: None,
        loss_ppm: None,
        duplicate_ppm: None,
        reorder_ppm: None,
        bandwidth: Some(bandwidth),
    };
    sketch.plan(at_ms, None, narrow);
    sketch.limit_ms = INTERVALS_MAX * sketch.push_ms;
    let stop_ms = sketch.draw.between(95, INTERVALS_MAX - 4) * sketch.push_ms;
    sketch.plan(stop_ms, None, Verb::Stop(one(host)));
}

/// A goodbye that one of the others cannot take, because it is dead or cut off.
fn a_stop_beside_the_dead(sketch: &mut Sketch) {
    let ((host, dead), at_ms) = (sketch.way(), sketch.opening());
    let gone = if sketch.draw.one_in(2) { Verb::Kill(one(dead)) } else { Verb::Isolate(one(dead)) };
    sketch.plan(at_ms, None, gone);
    let stop_ms = at_ms + sketch.draw.between(1, 2 * sketch.suspicion_ms);
    sketch.plan(stop_ms, None, Verb::Stop(one(host)));
}

/// A host comes back at another port: its old one refuses every dial at once.
fn another_port(sketch: &mut Sketch) {
    let (host, at_ms) = (sketch.host(), sketch.opening());
    let HostIx(ix) = host;
    let own = sketch.hosts[ix].listens_at();
    let addr = Some(SocketAddr::new(own.ip(), own.port() + 1));
    let wall_step_us = sketch.draw.one_in(4).then_some(-3_600_000_000);
    sketch.plan(at_ms, None, Verb::Restart { target: one(host), wall_step_us, addr, lose_disk: false });
    sketch.net.latency_max =
        sketch.net.latency_max.min(Duration::from_millis(15)).max(sketch.net.latency_min);
}
