//! May this node seal this window, and what would the row cover: pure functions, asked anew for every window.
//!
//! A role is derived from the fold, never stored, so a restart neither loses nor invents one. Permission is a
//! value: only [`decide`] makes an [`ActiveLease`]; it is neither copied nor kept, so a row cannot be sealed on
//! a permission that was given earlier.
//!
//! Absent: who makes the row durable.
//!
//! Spec: docs/issuance.md, Seal.

use core::fmt;

use serde::{Deserialize, Serialize};

use super::decimal::Decimal;
use super::row::{Fields, Lease, Row, RowError};
use super::spine::Fold;
use super::window::{Epoch, Window, Z};
use crate::guards::Guards;
use crate::id::NodeId;
use crate::time::Duration;

/// Everything a decision to seal depends on.
#[derive(Debug, Clone, Copy)]
pub struct SealView<'a> {
    /// This node.
    pub me: &'a NodeId,
    /// The configured issuer.
    pub configured: &'a NodeId,
    /// False: the plain path, in which the configured issuer alone seals, without lease and by its own ledger.
    pub failover: bool,
    /// The spine as this node has it.
    pub fold: &'a Fold,
    /// The highest window that this node itself has sealed or is sealing.
    pub own_tip: Option<Window>,
    /// The epoch of a promotion that has not been sealed.
    pub promoted: Option<Epoch>,
    /// The epoch of this node's role when that was last issuer in this boot: what it may have to stand down from.
    pub issued_at: Option<Epoch>,
    /// The window of the wall clock; `None` before the genesis.
    pub window: Option<Window>,
    /// Whether the start is over: the boot grace has passed, or every live peer, and at least one, has answered a
    /// pull completely and its rows are folded.
    pub caught_up: bool,
    /// How far the wall clock is ahead of the others ([`clock_ahead`](super::election::clock_ahead)).
    pub clock_ahead: Duration,
    /// `silence_z`: how far ahead it may be.
    pub clock_ahead_max: Duration,
    /// Whether a row of this node waits to become durable.
    pub in_flight: bool,
    /// Whether an operator paused it.
    pub paused: bool,
    /// Whether a majority's promise at the epoch of [`role`] holds now; `true` without fencing.
    pub fence_held: bool,
    /// Which rules stand.
    pub guards: Guards,
}

/// What a node is to the spine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    /// Keeps rows, seals none.
    Replica,
    /// Seals, stamping this epoch; none on the plain path.
    Issuer(Option<Epoch>),
}

impl Role {
    /// As people read it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Replica => "replica",
            Self::Issuer(_) => "issuer",
        }
    }

    /// Whether this is an issuer's role.
    pub const fn is_issuer(self) -> bool {
        matches!(self, Self::Issuer(_))
    }
}

/// What to do about this window.
#[derive(Debug)]
pub enum SealDecision<'a> {
    /// A replica that never was anything else.
    Never,
    /// Another node holds the lease at this node's epoch or above: forget the promotion and seal nothing.
    Demote {
        /// Who holds it.
        holder: NodeId,
        /// At which epoch.
        epoch: Epoch,
    },
    /// The role is issuer, but not now.
    Hold(Hold),
    /// Seal.
    Seal(ActiveLease<'a>),
}

/// Why an issuer does not seal this window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hold {
    /// An operator paused it.
    Paused,
    /// It has just started and does not yet know what it missed.
    CatchingUp,
    /// The wall clock is before the genesis.
    BeforeGenesis,
    /// The window is sealed, or below the tip.
    NotPastTip {
        /// The window of the wall clock.
        window: Window,
        /// The tip.
        watermark: Window,
    },
    /// The wall clock is too far ahead of the others'.
    ClockAhead {
        /// By this much.
        by: Duration,
    },
    /// The row before is not durable yet.
    InFlight,
    /// A majority's promise is missing or has run out.
    FenceNotHeld,
}

impl fmt::Display for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Paused => "paused",
            Self::CatchingUp => "catching_up",
            Self::BeforeGenesis => "before_genesis",
            Self::NotPastTip { .. } => "not_past_tip",
            Self::ClockAhead { .. } => "clock_ahead",
            Self::InFlight => "in_flight",
            Self::FenceNotHeld => "fence_not_held",
        })
    }
}

/// The permission to seal one window, at the moment at which it was asked for.
///
/// It borrows from the view that it was decided on, so it cannot be kept; a row is all it can become.
#[derive(Debug)]
#[must_use = "a permission that is not used seals nothing"]
pub struct ActiveLease<'a> {
    window: Window,
    watermark: Option<Window>,
    epoch: Option<Epoch>,
    issuer: &'a NodeId,
}

impl<'a> ActiveLease<'a> {
    /// The window to seal.
    pub const fn window(&self) -> Window {
        self.window
    }

    /// The epoch to stamp; none on the plain path.
    pub const fn epoch(&self) -> Option<Epoch> {
        self.epoch
    }

    /// Who seals.
    pub const fn issuer(&self) -> &'a NodeId {
        self.issuer
    }

    /// What the row covers, of at most `elapsed_max` windows.
    pub fn span(&self, elapsed_max: u64) -> Span {
        compose(self.window, self.watermark, elapsed_max)
    }

    /// Uses the permission up: the row to append.
    ///
    /// # Errors
    /// [`RowError`] when the amount is out of range or the phase is not below 1.
    pub fn row(
        self,
        elapsed_max: u64,
        rate: Decimal,
        phase: Decimal,
        genesis_pegged: bool,
    ) -> Result<Row, RowError> {
        let Span { window, from_window, elapsed } = self.span(elapsed_max);
        let lease = self.epoch.map(|epoch| Lease { epoch, holder: self.issuer.clone() });
        Row::new(Fields { window, from_window, elapsed, rate, phase, genesis_pegged, lease })
    }
}

/// This node's role, from the fold, its configuration and a promotion that is not sealed yet.
pub fn role(view: &SealView<'_>) -> Role {
    if !view.failover {
        return if view.me == view.configured { Role::Issuer(None) } else { Role::Replica };
    }
    match (view.promoted, &view.fold.lease) {
        (Some(promoted), None) => Role::Issuer(Some(promoted)),
        (Some(promoted), Some(lease)) if promoted > lease.epoch => Role::Issuer(Some(promoted)),
        (_, Some(lease)) if lease.holder == *view.me => Role::Issuer(Some(lease.epoch)),
        (_, Some(_)) if view.issued_at.is_some() && !view.guards.demotion => Role::Issuer(view.issued_at),
        (None, None) if view.me == view.configured => Role::Issuer(Some(Epoch(0))),
        (_, Some(_)) | (None, None) => Role::Replica,
    }
}

/// Decides about the window of the wall clock.
pub fn decide<'a>(view: &'a SealView<'a>) -> SealDecision<'a> {
    let Role::Issuer(epoch) = role(view) else { return stand_down(view) };
    match allowed(view) {
        Ok((window, watermark)) => {
            SealDecision::Seal(ActiveLease { window, watermark, epoch, issuer: view.me })
        }
        Err(hold) => SealDecision::Hold(hold),
    }
}

/// A replica's decision: whoever was promoted or issued is told who holds the lease now.
fn stand_down<'a>(view: &SealView<'_>) -> SealDecision<'a> {
    match &view.fold.lease {
        Some(Lease { holder, epoch }) if view.issued_at.is_some() || view.promoted.is_some() => {
            SealDecision::Demote { holder: holder.clone(), epoch: *epoch }
        }
        _ => SealDecision::Never,
    }
}

/// The window to seal and the watermark to resume from, or what is against it.
fn allowed(view: &SealView<'_>) -> Result<(Window, Option<Window>), Hold> {
    let guards = view.guards;
    if view.paused {
        return Err(Hold::Paused);
    }
    if !view.caught_up && guards.seal_after_catch_up {
        return Err(Hold::CatchingUp);
    }
    let window = view.window.ok_or(Hold::BeforeGenesis)?;
    let watermark = watermark(view);
    // Before the first window there is nothing that its row could resume from.
    let lowest = watermark.unwrap_or(Window(0));
    if window <= lowest {
        return Err(Hold::NotPastTip { window, watermark: lowest });
    }
    if view.clock_ahead > view.clock_ahead_max && guards.clock_checked {
        return Err(Hold::ClockAhead { by: view.clock_ahead });
    }
    if view.in_flight && guards.one_seal_in_flight {
        return Err(Hold::InFlight);
    }
    if !view.fence_held && guards.fence_before_seal {
        return Err(Hold::FenceNotHeld);
    }
    Ok((window, watermark))
}

/// Where sealing resumes: never below the shared tip; on the plain path the own ledger is all there is.
fn watermark(view: &SealView<'_>) -> Option<Window> {
    if view.failover && view.guards.resume_from_shared_tip {
        view.own_tip.max(view.fold.tip)
    } else {
        view.own_tip
    }
}

/// What a row covers: the windows `window - elapsed + 1 ..= window`; `from_window + 1 ..= window - elapsed` are
/// forfeited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// The window that the row is keyed by.
    pub window: Window,
    /// Where it resumed from.
    pub from_window: Window,
    /// How many windows it issues, at least 1.
    pub elapsed: u64,
}

/// What a row at `window` covers when the spine ends at `watermark`: the gap, but at most `elapsed_max` windows
/// ([`IssuanceConfig::elapsed_max`](crate::config::IssuanceConfig::elapsed_max)). The first row of all covers
/// its own window alone.
///
/// `window` must be past the watermark, and past 0 without one; [`decide`] sees to it.
pub fn compose(window: Window, watermark: Option<Window>, elapsed_max: u64) -> Span {
    let from_window = watermark.unwrap_or(Window(window.0.saturating_sub(1)));
    let gap = window.0.saturating_sub(from_window.0);
    Span { window, from_window, elapsed: gap.min(elapsed_max) }
}

/// How many ticks the clock, at tick `z`, must still advance before a window past the tip begins, when that is
/// more than `silence`: until then nobody can seal, and people should know.
pub fn tip_ahead_of_clock(tip: Window, z: Z, width: u64, silence: Z) -> Option<Z> {
    let first = tip.0.saturating_add(1).saturating_mul(width.max(1));
    let wait = first.saturating_sub(z.0);
    (wait > silence.0).then_some(Z(wait))
}

#[cfg(test)]
mod tests;
