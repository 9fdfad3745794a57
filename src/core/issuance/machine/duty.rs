//! The duty of an issuer: a row for every window, and standing down when the lease moved.

use alloc::sync::Arc;

use super::Issuance;
use crate::id::{Incarnation, Seq};
use crate::issuance::event::IssuanceEvent;
use crate::issuance::row::{Origin, Row, Stamped};
use crate::issuance::seal::{self, Hold, Role, SealDecision, SealView};
use crate::issuance::window::Window;
use crate::issuance::writer::Written;
use crate::time::{Duration, Instant, Now};

/// The next window is never looked for sooner than this, whatever the wall clock does.
const SEAL_PAUSE_MIN: Duration = Duration::from_millis(10);

impl Issuance {
    /// What the decision about a window depends on.
    pub(super) fn seal_view(&self, now: Now) -> SealView<'_> {
        let sealing = self.writer.sealing().map(|stamped| stamped.row.window);
        let grace_over = now.instant.since(self.awake_since) >= self.spans.grace;
        let mut view = SealView {
            me: &self.me,
            configured: &self.config.issuer,
            failover: self.config.failover,
            fold: self.spine.fold(),
            own_tip: self.spine.own_tip().max(sealing),
            promoted: self.promoted,
            issued_at: self.issued_at,
            window: self.window(now),
            caught_up: grace_over || self.pulls.complete(self.live.iter()),
            clock_ahead: self.clock_ahead(now),
            clock_ahead_max: self.spans.silence,
            in_flight: sealing.is_some(),
            paused: self.paused,
            fence_held: true,
            guards: self.guards,
        };
        if let Some(fence) = &self.fence {
            let Role::Issuer(epoch) = seal::role(&view) else { return view };
            let held = fence.claimant.held(now.instant);
            view.fence_held = held.is_some_and(|held| Some(held.epoch) == epoch);
        }
        view
    }

    /// This node's role.
    pub(super) fn role(&self, now: Now) -> Role {
        seal::role(&self.seal_view(now))
    }

    /// Whoever issued, or was promoted, and sees another hold the lease, is a replica from now on.
    pub(super) fn stand_down(&mut self, now: Now) {
        let view = self.seal_view(now);
        if let SealDecision::Demote { holder, epoch } = seal::decide(&view) {
            self.promoted = None;
            self.issued_at = None;
            self.metrics.demotions = self.metrics.demotions.saturating_add(1);
            self.tell(IssuanceEvent::Demoted { holder, epoch });
        }
        if self.promoted.is_some() && self.held_epoch() >= self.promoted {
            self.promoted = None;
        }
    }

    /// Seals the window of the wall clock, if that is this node's to do, and says when to look again.
    pub(super) fn seal(&mut self, now: Now) {
        let role = self.role(now);
        self.next_seal = role.is_issuer().then(|| self.next_window(now));
        if let Role::Issuer(epoch) = role {
            self.issued_at = epoch.or(self.issued_at);
        }
        let (elapsed_max, rate, phase) =
            (self.config.elapsed_max(), self.config.rate, self.calendar.phase(now.wall));
        let view = self.seal_view(now);
        match seal::decide(&view) {
            SealDecision::Seal(lease) => {
                // Neither fails: there is a window, and the configuration keeps amounts far from the end of their
                // range.
                let row = phase.ok().and_then(|phase| lease.row(elapsed_max, rate, phase, true).ok());
                if let Some(row) = row {
                    self.stamp(row);
                }
            }
            SealDecision::Hold(Hold::CatchingUp) => {
                let grace = self.awake_since.after(self.spans.grace);
                self.next_seal =
                    self.next_seal.map(|at| at.min(grace.max(now.instant.after(SEAL_PAUSE_MIN))));
            }
            SealDecision::Hold(_) | SealDecision::Never | SealDecision::Demote { .. } => {}
        }
    }

    /// Gives the row its place in this boot's stream and hands it to the disk.
    fn stamp(&mut self, row: Row) {
        let origin = self.origin.get_or_insert_with(|| {
            let known = self.spine.last_boot(&self.me).map(Incarnation::next);
            let boot = if self.guards.stream_per_boot {
                known.map_or(self.boot, |next| next.max(self.boot))
            } else {
                Incarnation(0)
            };
            Origin { node: self.me.clone(), boot }
        });
        let seq = Seq(self.spine.cursor(origin).0 + 1);
        let stamped = Stamped { origin: origin.clone(), seq, row: Arc::new(row) };
        let (window, elapsed, epoch) = (stamped.row.window, stamped.row.elapsed, stamped.row.epoch());
        self.tell(IssuanceEvent::Sealing { window, elapsed, epoch });
        self.writer.seal(stamped);
    }

    /// The disk answered for the row that this node sealed.
    pub(super) fn seal_written(&mut self, now: Instant, stamped: Stamped, written: Written) {
        let Stamped { origin, seq, row } = stamped.clone();
        let window = row.window;
        if written == Written::Refused {
            self.metrics.seals_refused = self.metrics.seals_refused.saturating_add(1);
            return self.tell(IssuanceEvent::SealRefused { window });
        }
        self.sealed_at = now;
        let _taken = self.spine.take([stamped]);
        self.spine.persisted(&origin, seq);
        let duplicate = self.spine.at(window).is_none_or(|entry| *entry.origin != origin || entry.seq != seq);
        let forfeited = window.0 - row.from_window.0 - row.elapsed;
        let metrics = &mut self.metrics;
        metrics.seals = metrics.seals.saturating_add(1);
        metrics.duplicates = metrics.duplicates.saturating_add(u64::from(duplicate));
        metrics.windows_forfeited = metrics.windows_forfeited.saturating_add(forfeited);
        let (from_window, elapsed, epoch) = (row.from_window, row.elapsed, row.epoch());
        self.tell(IssuanceEvent::Sealed { window, from_window, elapsed, epoch, duplicate });
    }

    /// When the next window begins, by this node's clocks as they stand.
    fn next_window(&self, now: Now) -> Instant {
        let next = match self.calendar.window(now.wall) {
            Ok(window) => self.calendar.starts_at(Window(window.0.saturating_add(1))),
            Err(_) => self.calendar.starts_at(Window(0)),
        };
        let wait = next.unix_micros().saturating_sub(now.wall.unix_micros());
        let wait = Duration::from_micros(u64::try_from(wait).unwrap_or(0)).max(SEAL_PAUSE_MIN);
        now.instant.after(wait)
    }
}
