//! Courses of events that random faults hardly ever take, each of them known to break a rule that is left out.

use super::{Sketch, Verb, hosts, ms, one};
use crate::scenario::model::{DiskSpec, DiskState, HostIx, Target};

/// Plans one story.
pub(super) fn tell(sketch: &mut Sketch) {
    let tell = sketch.draw.pick(&[
        issuer_dies_and_returns,
        duel_at_one_epoch,
        lost_tail,
        full_disk,
        clock_ahead,
        slept_through,
        cold_start,
        lagging_catch_up,
    ]);
    tell(sketch);
}

impl Sketch {
    /// A moment when somebody issues and everybody has pulled.
    fn settled_ms(&mut self) -> u64 {
        let (grace, pull) = (self.config.boot_grace_z.0, self.config.pull_z.0);
        let more = self.draw.between(2, 2 * pull + 4);
        self.within(grace + pull + more)
    }

    /// From the death of an issuer to rows of its successor, and a little more.
    fn takeover_z(&self) -> u64 {
        let config = &self.config;
        config.silence_z.0 + config.check_z.0 + 2 * config.pull_z.0 + 4
    }

    fn others(&self) -> Vec<HostIx> {
        (0..self.hosts.len()).map(HostIx).filter(|host| *host != self.issuer).collect()
    }

    fn lengthen(&mut self, until_ms: u64) {
        let needed = until_ms * 1_287 / 1_000_000 + 2;
        self.limit_z = self.limit_z.max(needed).min(super::TICKS_MAX);
    }
}

/// The issuer dies at full speed, its successor takes over, it returns, perhaps without its disk or with a clock
/// that steps.
fn issuer_dies_and_returns(sketch: &mut Sketch) {
    let at_ms = sketch.settled_ms();
    let back_ms = at_ms + ms(sketch.takeover_z()) + sketch.draw.between(0, 4_000);
    let issuer = one(sketch.issuer);
    sketch.plan(at_ms, None, Verb::Kill(issuer.clone()));
    let back = sketch.restart(issuer);
    sketch.plan(back_ms, None, back);
    sketch.lengthen(back_ms + ms(sketch.config.boot_grace_z.0));
}

/// Two sides without the issuer promote at the same epoch, while one way of a third pair is cut.
fn duel_at_one_epoch(sketch: &mut Sketch) {
    let others = sketch.others();
    let at_ms = sketch.settled_ms();
    let lasts_ms = ms(sketch.takeover_z()) + sketch.draw.between(0, 3_000);
    let middle = sketch.draw.between(1, others.len() as u64 - u64::from(others.len() > 1));
    let (one_side, other_side) =
        others.split_at(usize::try_from(middle).unwrap_or(1).min(others.len() - 1).max(1).min(others.len()));
    let groups = [one_side.to_vec(), other_side.to_vec()];
    let groups: Vec<Target> = groups.into_iter().filter(|group| !group.is_empty()).map(hosts).collect();
    let issuer = one(sketch.issuer);
    sketch.plan(at_ms, Some(lasts_ms), Verb::Pause(issuer.clone()));
    sketch.plan(at_ms + 1, Some(lasts_ms), Verb::Partition(groups));
    if sketch.draw.one_in(2) {
        let (from, to) = sketch.way();
        sketch.plan(at_ms, Some(2 * lasts_ms), Verb::Cut { from: one(from), to: one(to) });
    }
    sketch.lengthen(at_ms + 2 * lasts_ms);
}

/// A disk does not sync, its node dies and returns within a pull: its numbers must not be used twice.
fn lost_tail(sketch: &mut Sketch) {
    let at_ms = sketch.settled_ms();
    let issuer = one(sketch.issuer);
    let disk = DiskSpec { state: DiskState::Unsynced, ..DiskSpec::GOOD };
    let written_ms = ms(sketch.config.pull_z.0 + 2) + sketch.draw.between(0, 3_000);
    sketch.plan(at_ms, None, Verb::Disk { target: issuer.clone(), disk });
    sketch.plan(at_ms + written_ms, None, Verb::Kill(issuer.clone()));
    let down_ms = sketch.draw.between(1, ms(sketch.config.silence_z.0));
    let restart = Verb::Restart { target: issuer, wall_step_us: None, addr: None, lose_disk: false };
    sketch.plan(at_ms + written_ms + down_ms, None, restart);
    sketch.lengthen(at_ms + written_ms + down_ms + ms(sketch.takeover_z()));
}

/// The issuer can be reached and cannot seal.
fn full_disk(sketch: &mut Sketch) {
    let at_ms = sketch.settled_ms();
    let state = sketch.draw.pick(&[DiskState::Full, DiskState::Stalled]);
    let disk = DiskSpec { state, ..DiskSpec::GOOD };
    let lasts_ms = ms(sketch.takeover_z()) + sketch.lasts();
    let target = one(sketch.issuer);
    sketch.plan(at_ms, Some(lasts_ms), Verb::Disk { target, disk });
    if sketch.draw.one_in(2) {
        let heir = sketch.others()[0];
        sketch.plan(at_ms, Some(lasts_ms), Verb::Disk { target: one(heir), disk });
    }
    sketch.lengthen(at_ms + lasts_ms);
}

/// The issuer's wall clock is an hour ahead, or was when it began.
fn clock_ahead(sketch: &mut Sketch) {
    let target = one(sketch.issuer);
    if sketch.draw.one_in(2) {
        let at_ms = sketch.settled_ms();
        sketch.plan(at_ms, None, Verb::ClockStep { target, by_us: 3_600_000_000 });
        sketch.lengthen(at_ms + ms(sketch.takeover_z()));
    } else {
        let by_us = sketch.offset_us();
        sketch.plan(1, None, Verb::ClockStep { target, by_us });
    }
}

/// The issuer sleeps past the silence and wakes while its successor takes over.
fn slept_through(sketch: &mut Sketch) {
    let at_ms = sketch.settled_ms();
    let silence_ms = ms(sketch.config.silence_z.0);
    let lasts_ms =
        silence_ms + sketch.draw.between(0, ms(sketch.config.check_z.0 + sketch.config.pull_z.0) + 3_000);
    let target = one(sketch.issuer);
    sketch.plan(at_ms, Some(lasts_ms), Verb::Pause(target));
    sketch.lengthen(at_ms + lasts_ms + ms(sketch.takeover_z()));
}

/// Everybody starts cut off from the issuer, or from everybody.
fn cold_start(sketch: &mut Sketch) {
    let lasts_ms = ms(sketch.takeover_z() + sketch.config.boot_grace_z.0);
    let groups = if sketch.draw.one_in(2) {
        vec![one(sketch.issuer)]
    } else {
        (0..sketch.hosts.len()).map(|host| one(HostIx(host))).collect()
    };
    sketch.plan(1, Some(lasts_ms), Verb::Partition(groups));
    sketch.lengthen(2 * lasts_ms);
}

/// The issuer's last rows reach nobody before it dies; they merge back after its successor caught up.
fn lagging_catch_up(sketch: &mut Sketch) {
    let at_ms = sketch.settled_ms();
    let lag_ms = ms(sketch.draw.between(1, sketch.config.silence_z.0));
    let issuer = one(sketch.issuer);
    sketch.plan(at_ms, Some(lag_ms + 1), Verb::Cut { from: issuer.clone(), to: Target::All });
    sketch.plan(at_ms + lag_ms, None, Verb::Kill(issuer.clone()));
    let back_ms = at_ms + lag_ms + ms(sketch.takeover_z());
    let restart = Verb::Restart { target: issuer, wall_step_us: None, addr: None, lose_disk: false };
    sketch.plan(back_ms, None, restart);
    sketch.lengthen(back_ms + ms(sketch.takeover_z()));
}
