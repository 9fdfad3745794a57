//! What the issuance of a node looks like from outside, as plain data.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::Issuance;
use crate::config::IssuanceConfig;
use crate::id::{NodeId, Seq};
use crate::issuance::audit::{Audit, AuditError};
use crate::issuance::election::{Answer, Decision, Fitness};
use crate::issuance::row::{Lease, Origin, Row};
use crate::issuance::seal::Role;
use crate::issuance::spine::Spine;
use crate::issuance::window::{Epoch, Window, Z};
use crate::metrics::{IssuanceMetrics, Series, SeriesKind};
use crate::time::{Instant, Now, micros};

/// What a node believes of the issuance, at its last handled instant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IssuanceView {
    /// Whether it seals, and at which epoch.
    pub role: Role,
    /// Who holds the lease, as its spine says.
    pub lease: Option<Lease>,
    /// The highest window of its spine.
    pub tip: Option<Window>,
    /// A promotion that is not sealed yet.
    pub promoted: Option<Epoch>,
    /// Whether an operator paused it.
    pub paused: bool,
    /// How long its tip has not risen, in microseconds, since its boot at the earliest.
    pub silence_us: u64,
    /// What the last election decided, by name; none before the first.
    pub decision: Option<String>,
    /// With fencing: the epoch that a majority supports it at now.
    pub fenced_at: Option<Epoch>,
    /// Rows that are durable here, those that lost their window included.
    pub rows: u64,
    /// Of these, the ones that lost their window.
    pub superseded: u64,
    /// The last durable number of each stream.
    pub cursors: BTreeMap<Origin, Seq>,
}

impl Issuance {
    /// What it believes.
    pub fn view(&self) -> IssuanceView {
        IssuanceView {
            role: self.role_at_last(),
            lease: self.spine.fold().lease.clone(),
            tip: self.spine.fold().tip,
            promoted: self.promoted,
            paused: self.paused,
            silence_us: micros(self.silence()),
            decision: self.decision.as_ref().map(Decision::to_string),
            fenced_at: self.fenced_at(),
            rows: self.spine.durable_rows(),
            superseded: self.spine.superseded().count() as u64,
            cursors: self.spine.durable_cursors(),
        }
    }

    /// Its configuration.
    pub fn config(&self) -> &IssuanceConfig {
        &self.config
    }

    /// Its rows.
    pub fn spine(&self) -> &Spine {
        &self.spine
    }

    /// Its role, at the last handled instant.
    pub fn role_at_last(&self) -> Role {
        self.role(self.at)
    }

    /// The window that its wall clock showed last.
    pub fn window_at_last(&self) -> Option<Window> {
        self.window(self.at)
    }

    /// The tick that its wall clock showed last; none before the genesis.
    pub fn z_at_last(&self) -> Option<Z> {
        self.calendar.z(self.at.wall).ok()
    }

    /// The tick at which a row of `origin` became durable here last, in this boot.
    pub fn updated_z(&self, origin: &Origin) -> Option<Z> {
        self.updated.get(origin).copied()
    }

    /// The counts of this boot, and how it stands, under the names an operator alerts on.
    pub fn series(&self) -> Vec<Series> {
        let gauge = |name, help, value| Series { name, help, kind: SeriesKind::Gauge, label: None, value };
        let fold = self.spine.fold();
        let ticks = |micros: u64| micros.saturating_mul(1287) / 1_000_000_000;
        let gauges = [
            gauge(
                "firedrill_issuance_issuer",
                "1 on the node that seals, else 0.",
                self.role_at_last().is_issuer().into(),
            ),
            gauge(
                "firedrill_issuance_epoch",
                "The epoch of the lease, as this node's rows say.",
                fold.lease.as_ref().map_or(0, |lease| lease.epoch.0),
            ),
            gauge(
                "firedrill_issuance_tip_window",
                "The highest window of this node's rows.",
                fold.tip.map_or(0, |tip| tip.0),
            ),
            gauge("firedrill_issuance_silence_z", "Ticks since the tip rose.", ticks(micros(self.silence()))),
            gauge(
                "firedrill_issuance_superseded_rows",
                "Rows that lost their window to another.",
                self.spine.superseded().count() as u64,
            ),
        ];
        gauges.into_iter().chain(self.metrics.series()).collect()
    }

    /// The epoch of a promotion that is not sealed yet.
    pub fn promoted(&self) -> Option<Epoch> {
        self.promoted
    }

    /// What the last election decided.
    pub fn decision(&self) -> Option<&Decision> {
        self.decision.as_ref()
    }

    /// Whether an operator paused it.
    pub fn is_paused(&self) -> bool {
        self.paused
    }

    /// How long its tip has not risen.
    pub fn silence(&self) -> crate::time::Duration {
        self.at.instant.since(self.tip_at)
    }

    /// When its tip rose last; its boot at the earliest.
    pub fn tip_rose_at(&self) -> Instant {
        self.tip_at
    }

    /// With fencing: the epoch that a majority supports it at, at the last handled instant.
    pub fn fenced_at(&self) -> Option<Epoch> {
        self.fence.as_ref()?.claimant.held(self.at.instant).map(|held| held.epoch)
    }

    /// Whether a majority's promise would let it seal at `now`, for those who check that no two nodes could at once.
    /// Without fencing nothing holds anybody back.
    pub fn could_seal(&self, now: Now) -> bool {
        let view = self.seal_view(now);
        let fenced = self.fence.is_none() || view.fence_held;
        crate::issuance::seal::role(&view).is_issuer() && fenced && !self.paused
    }

    /// With fencing: until when a majority's promise would let it seal, by its own clock, if its role and its clocks
    /// stay as they are. `None` when it could not seal now, and without fencing.
    pub fn could_seal_until(&self) -> Option<Instant> {
        let fence = self.fence.as_ref().filter(|_| self.could_seal(self.at))?;
        fence.claimant.held(self.at.instant).map(|held| held.until)
    }

    /// With fencing: when it last asked the electors for anything.
    pub fn last_claim_at(&self) -> Option<Instant> {
        self.fence.as_ref()?.claimant.last_sent()
    }

    /// Whether it could seal, as far as it can tell, at the last handled instant.
    ///
    /// # Errors
    /// Why not.
    pub fn able(&self) -> Fitness {
        self.condition(self.at).able()
    }

    /// How far its wall clock was ahead of the others', at the last handled instant; zero when too few are known.
    pub fn ahead_of_others(&self) -> crate::time::Duration {
        self.clock_ahead(self.at)
    }

    /// The answers that the last election was decided from; none where nobody was asked.
    pub fn answers(&self) -> &BTreeMap<NodeId, Answer> {
        &self.answers
    }

    /// Rises whenever it did anything: what it shows is the same between two equal readings.
    pub fn turn(&self) -> u64 {
        self.turn
    }

    /// The row that this node sealed and that waits to become durable.
    pub fn sealing_row(&self) -> Option<&Row> {
        self.writer.sealing().map(|stamped| &*stamped.row)
    }

    /// The row that waits to become durable.
    pub fn sealing(&self) -> Option<Window> {
        self.writer.sealing().map(|stamped| stamped.row.window)
    }

    /// What its durable rows add up to.
    ///
    /// # Errors
    /// [`AuditError`] when they are not plausible.
    pub fn audit(&self) -> Result<Audit, AuditError> {
        let audit = Audit::of(self.spine.durable())?;
        if self.guards.audit_by_windows {
            return Ok(audit);
        }
        let under_issued = audit.span.saturating_sub(audit.elapsed_sum);
        Ok(Audit { overlap: 0, under_issued, supply: audit.amount_sum, ..audit })
    }

    /// The counts of this boot.
    pub fn metrics(&self) -> &IssuanceMetrics {
        &self.metrics
    }

    /// Whether peers in view, at least one, have told everything they had, or the grace is over: what a node waits
    /// for before it seals.
    pub fn is_caught_up(&self) -> bool {
        self.seal_view(self.at).caught_up
    }
}
