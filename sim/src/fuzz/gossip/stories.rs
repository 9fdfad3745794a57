//! Stories: faults in an order that chance hardly ever finds.
//!
//! Each is a shape with drawn times and hosts, around what the protocol remembers: a tombstone falls due after ten
//! suspicion timeouts of silence, is kept for ten, and leaves a note for twenty more. Nothing here knows what goes
//! wrong, only where things have gone wrong before.

use std::time::Duration;

use firedrill_core::id::NodeId;

use super::faults::one;
use super::{INTERVALS_MAX, Sketch, wire_stories};
use crate::fuzz::Venue;
use crate::scenario::hosts::{Seeds, plain};
use crate::scenario::model::{HostIx, Target, Verb};

/// A shape of a drill.
type Story = fn(&mut Sketch);

/// The stories, one drawn as often as the other.
const STORIES: &[Story] = &[
    return_while_noted,
    return_while_noted,
    return_while_noted,
    return_under_the_tombstone,
    deaf_return,
    deaf,
    long_pause,
    ever_further_back,
    two_back_before_a_deaf_peer,
    two_back_before_a_deaf_peer,
    long_partition,
    mass_restart,
    kill_in_a_partition,
    clock_step_in_a_restart,
    farewell_in_a_jam,
    two_counts_of_one_host,
    left_twice,
    deaf_and_half_mute,
    forgotten_and_restarted,
    forgotten_and_restarted,
    forgotten_and_restarted,
    leave_to_a_stranger,
    too_many_counters,
    oversized_document,
];

/// Plans one of them.
pub(super) fn tell(sketch: &mut Sketch) {
    // Where bytes travel, most stories are about them: one drill in sixteen has to tell them all.
    if sketch.venue == Venue::Full && !sketch.draw.one_in(4) {
        return wire_stories::tell(sketch);
    }
    // Counters by the dozen are dear to run: one drill in eight of those that would tell of them does.
    let mut story = sketch.draw.index(STORIES.len());
    if story >= STORIES.len() - 2 && !sketch.draw.one_in(8) {
        story = sketch.draw.index(STORIES.len() - 2);
    }
    STORIES[story](sketch);
}

impl Sketch {
    /// A moment after everybody knows everybody.
    pub(super) fn opening(&mut self) -> u64 {
        self.draw.between(4 * self.push_ms, 10 * self.push_ms)
    }

    /// So many suspicion timeouts, in tenths.
    pub(super) fn suspicions(&mut self, low_tenths: u64, high_tenths: u64) -> u64 {
        let tenths = self.draw.between(low_tenths, high_tenths);
        self.suspicion_ms * tenths / 10
    }

    /// Every host that runs from the start, but these.
    pub(super) fn others(&self, but: &[HostIx]) -> Target {
        let starts = |ix: &usize| self.hosts[*ix].from_start;
        let others = (0..self.hosts.len()).filter(starts).map(HostIx).filter(|host| !but.contains(host));
        Target::Hosts(others.collect())
    }

    /// A restart whose clock goes back further than any drill lasts.
    fn back(&mut self, host: HostIx, new_addr: bool) -> Verb {
        let hours = i64::try_from(self.draw.between(1, 3)).unwrap_or(1);
        let addr = new_addr.then(|| self.new_addr());
        Verb::Restart {
            target: one(host),
            wall_step_us: Some(-hours * 3_600_000_000),
            addr,
            lose_disk: false,
        }
    }
}

/// Killed, converted, reaped; it returns with an old clock while the note is held, and its old frames may too.
fn return_while_noted(sketch: &mut Sketch) {
    // Half of them so slowly that everybody knows everybody on any wire, dials that time out included: then the
    // cluster has no excuse, and a short time to find the member again.
    let known = sketch.draw.one_in(2);
    let push_ms = if known { sketch.push_ms.max(500) } else { sketch.push_ms };
    sketch.pace(push_ms, 3 * push_ms);
    sketch.limit_ms = INTERVALS_MAX * push_ms;
    let (host, opening_ms) = (sketch.host(), sketch.opening());
    let down_ms = if known { opening_ms.max(8_000) } else { opening_ms };
    sketch.plan(down_ms, None, Verb::Kill(one(host)));
    let back_ms = down_ms + if known { sketch.suspicions(210, 270) } else { sketch.suspicions(195, 320) };
    if known || sketch.draw.one_in(2) {
        let count = sketch.draw.pick(&[1, 2, 4]);
        let captured_until = Some(Duration::from_millis(down_ms));
        let captured_from = Duration::from_millis(sketch.draw.between(0, down_ms / 2));
        let to = sketch.others(&[host]);
        let at_ms = back_ms.saturating_sub(sketch.draw.between(0, 4 * sketch.push_ms));
        let verb = Verb::ReplayFrames { from: one(host), to, captured_from, captured_until, count };
        sketch.plan(at_ms, None, verb);
    }
    let elsewhere = known || sketch.draw.one_in(2);
    let verb = sketch.back(host, elsewhere);
    sketch.plan(back_ms, None, verb);
}

/// Back with an old clock while its tombstone is still told.
fn return_under_the_tombstone(sketch: &mut Sketch) {
    let (host, down_ms) = (sketch.host(), sketch.opening());
    let goes = sketch.draw.pick(&[Verb::Kill as fn(Target) -> Verb, Verb::Stop]);
    sketch.plan(down_ms, None, goes(one(host)));
    let back_ms = down_ms + sketch.suspicions(5, 195);
    let elsewhere = sketch.draw.one_in(4);
    let verb = sketch.back(host, elsewhere);
    sketch.plan(back_ms, None, verb);
}

/// Back with an old clock and hearing nobody, while somebody else has just restarted and knows nothing.
fn deaf_return(sketch: &mut Sketch) {
    let (host, down_ms) = (sketch.host(), sketch.opening());
    let others = sketch.others(&[host]);
    sketch.plan(down_ms, None, Verb::Kill(one(host)));
    let cut = Verb::Cut { from: others, to: one(host) };
    let lasts_ms = sketch.suspicions(20, 180);
    sketch.plan(down_ms + sketch.push_ms, Some(lasts_ms), cut);
    let back_ms = down_ms + sketch.push_ms + sketch.draw.between(1, 4 * sketch.push_ms);
    let back = sketch.back(host, false);
    sketch.plan(back_ms, None, back);
    let fresh = HostIx((host.0 + 1) % sketch.starters());
    let restart = Verb::Restart { target: one(fresh), wall_step_us: None, addr: None, lose_disk: false };
    let fresh_ms = back_ms + sketch.draw.between(1, 4 * sketch.push_ms);
    sketch.plan(fresh_ms, None, restart);
}

/// One host hears nobody, or nobody hears it, for longer than a tombstone window.
fn deaf(sketch: &mut Sketch) {
    let (host, at_ms) = (sketch.host(), sketch.opening());
    let others = sketch.others(&[host]);
    let (from, to) = if sketch.draw.one_in(2) { (others, one(host)) } else { (one(host), others) };
    let lasts_ms = sketch.suspicions(90, 330);
    sketch.plan(at_ms, Some(lasts_ms), Verb::Cut { from, to });
}

/// A pause around one of the protocol's times.
fn long_pause(sketch: &mut Sketch) {
    let (host, at_ms) = (sketch.host(), sketch.opening());
    let (low, high) = sketch.draw.pick(&[(8, 14), (11, 40), (95, 130), (190, 240)]);
    let lasts_ms = sketch.suspicions(low, high);
    sketch.plan(at_ms, Some(lasts_ms), Verb::Pause(one(host)));
}

/// Three boots, each with an older clock, while one link is cut.
fn ever_further_back(sketch: &mut Sketch) {
    let ((host, peer), mut at_ms) = (sketch.way(), sketch.opening());
    let lasts_ms = sketch.suspicions(20, 150);
    let (from, to) = if sketch.draw.one_in(2) { (host, peer) } else { (peer, host) };
    sketch.plan(at_ms, Some(lasts_ms), Verb::Cut { from: one(from), to: one(to) });
    for _ in 0..3 {
        at_ms += sketch.draw.between(sketch.push_ms, 2 * sketch.suspicion_ms);
        let back = sketch.back(host, false);
        sketch.plan(at_ms, None, back);
    }
}

/// Two boots with an old clock, of which the first is heard for a while by all but one: that one tells the second of
/// what was before them.
fn two_back_before_a_deaf_peer(sketch: &mut Sketch) {
    if sketch.starters() < 3 {
        return ever_further_back(sketch);
    }
    let ((host, deaf), at_ms) = (sketch.way(), sketch.opening());
    let first = sketch.back(host, false);
    let down_ms = at_ms + sketch.draw.between(8, 24) * sketch.push_ms;
    let back_ms = down_ms + sketch.draw.between(1, 2 * sketch.push_ms);
    let heals_ms = back_ms + sketch.draw.between(0, sketch.push_ms / 4);
    let cut = Verb::Cut { from: sketch.others(&[deaf]), to: one(deaf) };
    sketch.plan(at_ms, Some(heals_ms - at_ms), cut);
    sketch.plan(at_ms, None, first);
    sketch.plan(down_ms, None, Verb::Kill(one(host)));
    sketch.plan(
        back_ms,
        None,
        Verb::Restart { target: one(host), wall_step_us: None, addr: None, lose_disk: false },
    );
    // What follows would hide it: the others forget the host, or it has pushed often enough to be heard again.
    sketch.limit_ms = heals_ms + sketch.push_ms;
}

/// Two halves that bury each other, and now and then forget that they did.
fn long_partition(sketch: &mut Sketch) {
    let at_ms = sketch.opening();
    let starters = sketch.starters();
    let split = 1 + sketch.draw.index(starters - 1);
    let half = |from: usize, to: usize| Target::Hosts((from..to).map(HostIx).collect());
    let lasts_ms = sketch.suspicions(90, 380);
    let groups = vec![half(0, split), half(split, starters)];
    sketch.plan(at_ms, Some(lasts_ms), Verb::Partition(groups));
}

/// Everybody at once, with clocks that may be older.
fn mass_restart(sketch: &mut Sketch) {
    let at_ms = sketch.opening();
    sketch.plan(at_ms, None, Verb::Kill(Target::All));
    let back_ms = at_ms + sketch.draw.between(1, 3 * sketch.suspicion_ms);
    let wall_step_us = sketch.draw.one_in(2).then_some(-3_600_000_000);
    sketch.plan(
        back_ms,
        None,
        Verb::Restart { target: Target::All, wall_step_us, addr: None, lose_disk: false },
    );
}

/// Somebody dies unseen, and comes back before or after the heal.
fn kill_in_a_partition(sketch: &mut Sketch) {
    let (host, at_ms) = (sketch.host(), sketch.opening());
    let lasts_ms = sketch.suspicions(5, 250);
    sketch.plan(at_ms, Some(lasts_ms), Verb::Isolate(one(host)));
    let down_ms = at_ms + sketch.draw.between(0, 3 * sketch.push_ms);
    sketch.plan(down_ms, None, Verb::Kill(one(host)));
    let back_ms = down_ms + sketch.suspicions(3, 250);
    let verb = sketch.restart(one(host));
    sketch.plan(back_ms, None, verb);
}

/// The clock steps while the host is down, or just as it comes back, and once more.
fn clock_step_in_a_restart(sketch: &mut Sketch) {
    let (host, mut at_ms) = (sketch.host(), sketch.opening());
    for _ in 0..sketch.draw.between(1, 3) {
        sketch.plan(at_ms, None, Verb::Kill(one(host)));
        let by_us = sketch.offset_us();
        at_ms += sketch.draw.between(0, 3 * sketch.push_ms);
        sketch.plan(at_ms, None, Verb::ClockStep { target: one(host), by_us });
        at_ms += sketch.draw.between(0, 3 * sketch.push_ms);
        sketch.plan(
            at_ms,
            None,
            Verb::Restart { target: one(host), wall_step_us: None, addr: None, lose_disk: false },
        );
        at_ms += sketch.draw.between(1, 3 * sketch.suspicion_ms);
    }
}

/// A graceful leave over links that are slow or held.
fn farewell_in_a_jam(sketch: &mut Sketch) {
    let (host, at_ms) = (sketch.host(), sketch.opening());
    let to = sketch.others(&[host]);
    if sketch.draw.one_in(2) {
        let latency = Some((Duration::from_millis(1), sketch.draw.millis(1, 2 * sketch.push_ms)));
        let bandwidth = sketch.draw.one_in(2).then_some(10_000);
        let jam = Verb::Link {
            from: one(host),
            to,
            latency,
            loss_ppm: None,
            duplicate_ppm: None,
            reorder_ppm: None,
            bandwidth,
        };
        sketch.plan(at_ms, None, jam);
    } else {
        let lasts_ms = sketch.draw.between(1, 2 * sketch.suspicion_ms);
        sketch.plan(at_ms, Some(lasts_ms), Verb::Hold { from: one(host), to });
    }
    let stop_ms = at_ms + sketch.draw.between(1, 5 * sketch.push_ms);
    sketch.plan(stop_ms, None, Verb::Stop(one(host)));
    if sketch.draw.one_in(2) {
        let back_ms = stop_ms + sketch.draw.between(1, 4 * sketch.suspicion_ms);
        let verb = sketch.restart(one(host));
        sketch.plan(back_ms, None, verb);
    }
}

/// One host counts on both sides of a restart, again and again.
fn two_counts_of_one_host(sketch: &mut Sketch) {
    let (host, mut at_ms) = (sketch.host(), sketch.opening());
    if sketch.workloads.is_empty() {
        sketch.counter("sightings", sketch.push_ms, Vec::new());
    }
    for _ in 0..sketch.draw.between(1, 4) {
        sketch.plan(at_ms, None, Verb::Kill(one(host)));
        at_ms += sketch.draw.between(1, 2 * sketch.suspicion_ms);
        let verb = sketch.restart(one(host));
        sketch.plan(at_ms, None, verb);
        at_ms += sketch.draw.between(sketch.push_ms, 2 * sketch.suspicion_ms);
    }
}

/// A leave, a return and a second leave before anybody could have seen the return.
fn left_twice(sketch: &mut Sketch) {
    let (host, at_ms) = (sketch.host(), sketch.opening());
    sketch.plan(at_ms, None, Verb::Stop(one(host)));
    let back_ms = at_ms + sketch.suspicions(10, 95);
    sketch.plan(
        back_ms,
        None,
        Verb::Restart { target: one(host), wall_step_us: None, addr: None, lose_disk: false },
    );
    let again_ms = back_ms + sketch.draw.between(1, sketch.push_ms / 2);
    sketch.plan(again_ms, None, Verb::Stop(one(host)));
    sketch.limit_ms = sketch.limit_ms.max(INTERVALS_MAX * sketch.push_ms);
}

/// One host hears nobody and is heard by some: those bury it, the others go on hearing what they are told is dead.
fn deaf_and_half_mute(sketch: &mut Sketch) {
    let ((host, mute_for), at_ms) = (sketch.way(), sketch.opening());
    let others = sketch.others(&[host]);
    let lasts_ms = sketch.suspicions(205, 330);
    sketch.plan(at_ms, Some(lasts_ms), Verb::Cut { from: others, to: one(host) });
    sketch.plan(at_ms, Some(lasts_ms), Verb::Cut { from: one(host), to: one(mute_for) });
    sketch.limit_ms = sketch.limit_ms.max(INTERVALS_MAX * sketch.push_ms);
}

/// Everybody is alone until everybody is forgotten; then those in the middle of the seeds forget even that.
fn forgotten_and_restarted(sketch: &mut Sketch) {
    let starters = sketch.starters();
    let names: Vec<String> = sketch.hosts.iter().map(|host| host.name.clone()).collect();
    let chain = plain(&names, starters, Seeds::Chain, sketch.push_ms, sketch.suspicion_ms);
    for (host, linked) in sketch.hosts.iter_mut().zip(chain) {
        host.config.seed_peers = linked.config.seed_peers;
    }
    sketch.pace(sketch.push_ms, 3 * sketch.push_ms);
    let at_ms = sketch.opening();
    let lasts_ms = sketch.suspicions(205, 330);
    let alone = (0..starters).map(|ix| one(HostIx(ix))).collect();
    sketch.plan(at_ms, Some(lasts_ms), Verb::Partition(alone));
    let middle = HostIx(1);
    let fresh_ms = at_ms + lasts_ms - sketch.draw.between(1, 4 * sketch.push_ms);
    sketch.plan(
        fresh_ms,
        None,
        Verb::Restart { target: one(middle), wall_step_us: None, addr: None, lose_disk: false },
    );
    sketch.limit_ms = INTERVALS_MAX * sketch.push_ms;
}

/// A host leaves while a peer that has just restarted does not know it, over links that overtake.
fn leave_to_a_stranger(sketch: &mut Sketch) {
    let ((host, fresh), at_ms) = (sketch.way(), sketch.opening());
    let overtaking = Verb::Link {
        from: one(host),
        to: one(fresh),
        latency: None,
        loss_ppm: None,
        duplicate_ppm: None,
        reorder_ppm: Some(sketch.draw.percent_ppm(30, 90)),
        bandwidth: None,
    };
    sketch.plan(at_ms, None, overtaking);
    let fresh_ms = at_ms + sketch.draw.between(0, 2 * sketch.push_ms);
    sketch.plan(
        fresh_ms,
        None,
        Verb::Restart { target: one(fresh), wall_step_us: None, addr: None, lose_disk: false },
    );
    let leave_ms = fresh_ms + sketch.draw.between(1, sketch.push_ms);
    sketch.plan(leave_ms, None, Verb::Stop(one(host)));
}

/// Two hosts begin more counters together than a document may hold.
fn too_many_counters(sketch: &mut Sketch) {
    let (one, other) = sketch.way();
    for n in 0..40 {
        sketch.counter(&format!("one-{n:02}"), 2 * sketch.push_ms, vec![one]);
        sketch.counter(&format!("other-{n:02}"), 2 * sketch.push_ms, vec![other]);
    }
    sketch.limit_ms = sketch.limit_ms.min(30 * sketch.push_ms);
    sketch.off(&["counters_exact"], "counters beyond the bound are refused");
}

/// Boot after boot leaves a cell in every counter until the document outgrows the frame.
fn oversized_document(sketch: &mut Sketch) {
    let host = sketch.host();
    for host in &mut sketch.hosts {
        let id = format!("{:-<62}{}", "a-node-id-as-long-as-the-rule-allows", host.name);
        let id = NodeId::new(&id).expect("63 bytes of letters and dashes keep the rule");
        host.config.node_id = Some(id.clone());
        host.id = id;
    }
    let names = (0..48).map(|n| format!("{:-<60}{n:02}", "a-counter-name-as-long-as-the-rule-allows"));
    for name in names.collect::<Vec<_>>() {
        sketch.counter(&name, sketch.push_ms, vec![host]);
    }
    sketch.limit_ms = sketch.limit_ms.max(60 * sketch.push_ms);
    let mut at_ms = 4 * sketch.push_ms;
    for _ in 0..16 {
        let verb = Verb::Restart { target: one(host), wall_step_us: None, addr: None, lose_disk: false };
        sketch.plan(at_ms, None, verb);
        at_ms += 2 * sketch.push_ms;
    }
    sketch.off(
        &["views_agree", "documents_agree", "counters_exact"],
        "a document that cannot be sent is neither a heartbeat nor merged",
    );
}
