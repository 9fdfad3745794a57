//! What a run tells of its issuance: every takeover, and what the rows add up to in the end.
//!
//! Built from what nodes reported, whatever the drill: who was promoted after how much silence, its first row, what
//! the others had decided meanwhile, and how the one it replaced came back. Kept only where somebody will read it,
//! like the timeline.

use std::collections::BTreeMap;

use firedrill_core::id::NodeId;
use firedrill_core::io::Event;
use firedrill_core::issuance::audit::Audit;
use firedrill_core::issuance::event::IssuanceEvent;
use firedrill_core::issuance::machine::Issuance;
use firedrill_core::issuance::window::{Epoch, Window};
use firedrill_core::time::{Duration, Instant};

use super::lease::Line;
use super::words;
use crate::engine::{Engine, HostState, Step};
use crate::outcome::{FirstRow, IssuanceReport, NodeRows, Prefix, Takeover};
use crate::scenario::model::{HostIx, Scenario};

/// A takeover that is under way or over.
#[derive(Debug)]
struct Open {
    told: Takeover,
    by: HostIx,
    epoch: Epoch,
    /// Whoever held the lease before, where it is a host of the drill.
    from: Option<HostIx>,
    /// Others that see the new lease: what they decide from then on is another story.
    informed: Vec<HostIx>,
}

/// Looks on and remembers.
#[derive(Debug)]
pub(super) struct Takeovers<'s> {
    scenario: &'s Scenario,
    on: bool,
    open: Vec<Open>,
    /// By host: when it went down last, until it is back.
    down: BTreeMap<HostIx, Instant>,
    /// By host: what its last election decided.
    decided: BTreeMap<HostIx, String>,
}

impl<'s> Takeovers<'s> {
    pub(super) fn new(scenario: &'s Scenario, on: bool) -> Self {
        let issues = scenario.hosts.iter().any(|host| host.issuance.is_some());
        let on = on && issues;
        Self { scenario, on, open: Vec::new(), down: BTreeMap::new(), decided: BTreeMap::new() }
    }

    /// A host went down.
    pub(super) fn down(&mut self, at: Instant, host: HostIx) {
        if self.on {
            self.down.insert(host, at);
            self.decided.remove(&host);
        }
    }

    /// A host runs again.
    pub(super) fn booted(&mut self, at: Instant, host: HostIx) {
        self.down.remove(&host);
        for open in self.open.iter_mut().filter(|open| open.from == Some(host)) {
            open.told.returned_at_us.get_or_insert(at.as_micros());
        }
    }

    /// A node reported something.
    pub(super) fn event(&mut self, step: &Step<'_>, event: &Event) {
        let Event::Issuance(event) = event else { return };
        if !self.on {
            return;
        }
        match event {
            IssuanceEvent::Promoted { epoch } => self.promoted(step, *epoch),
            IssuanceEvent::Sealed { window, from_window, elapsed, epoch, .. } => {
                let row = FirstRow {
                    at_us: step.at.as_micros(),
                    window: window.0,
                    from_window: from_window.0,
                    elapsed: *elapsed,
                    epoch: epoch.map(|epoch| epoch.0),
                };
                self.sealed(step.host, *epoch, row);
            }
            IssuanceEvent::Decided { decision } => {
                let decision = decision.to_string();
                for open in &mut self.open {
                    if open.by != step.host && !open.informed.contains(&step.host) {
                        let name = words::host_name(self.scenario, step.host).to_owned();
                        open.told.decisions.insert(name, decision.clone());
                    }
                }
                self.decided.insert(step.host, decision);
            }
            IssuanceEvent::LeaseMoved { epoch, .. } => {
                for open in self.open.iter_mut().filter(|open| *epoch >= open.epoch) {
                    open.informed.push(step.host);
                }
            }
            IssuanceEvent::Demoted { epoch, .. } => {
                let of = |open: &&mut Open| open.from == Some(step.host) && *epoch >= open.epoch;
                for open in self.open.iter_mut().filter(of) {
                    open.told.demoted_at_us.get_or_insert(step.at.as_micros());
                }
            }
            IssuanceEvent::Sealing { .. }
            | IssuanceEvent::SealRefused { .. }
            | IssuanceEvent::DiskRefused {}
            | IssuanceEvent::Early { .. }
            | IssuanceEvent::Replicated { .. }
            | IssuanceEvent::RowsConflict { .. }
            | IssuanceEvent::TipSilent {}
            | IssuanceEvent::PromotionLapsed { .. }
            | IssuanceEvent::FenceHeld { .. }
            | IssuanceEvent::FenceLost {}
            | IssuanceEvent::TipAheadOfClock { .. }
            | IssuanceEvent::ClockAhead { .. }
            | IssuanceEvent::ClockBeforeGenesis {}
            | IssuanceEvent::Paused {}
            | IssuanceEvent::Resumed {} => {}
        }
    }

    fn promoted(&mut self, step: &Step<'_>, epoch: Epoch) {
        let Some(issuance) = step.node.issuance() else { return };
        let held = issuance.spine().fold().lease.as_ref();
        let from = held.and_then(|lease| self.host_of(&lease.holder));
        let down = from.and_then(|from| self.down.get(&from)).copied();
        let name = |host: HostIx| words::host_name(self.scenario, host).to_owned();
        let others = self.decided.iter().filter(|(host, _)| **host != step.host);
        let told = Takeover {
            from: held.map(|lease| from.map_or_else(|| lease.holder.to_string(), name)),
            by: name(step.host),
            epoch: epoch.0,
            epoch_before: held.map(|lease| lease.epoch.0),
            down_at_us: down.map(Instant::as_micros),
            promoted_at_us: step.at.as_micros(),
            silence_z: ticks(issuance.silence()),
            first_row: None,
            decisions: others.map(|(host, decision)| (name(*host), decision.clone())).collect(),
            returned_at_us: None,
            demoted_at_us: None,
            seals_after_return: 0,
        };
        self.open.push(Open { told, by: step.host, epoch, from, informed: Vec::new() });
    }

    fn sealed(&mut self, host: HostIx, epoch: Option<Epoch>, row: FirstRow) {
        for open in &mut self.open {
            if open.by == host && epoch == Some(open.epoch) {
                open.told.first_row.get_or_insert_with(|| row.clone());
            }
            let is_back = open.told.returned_at_us.is_some();
            if is_back && open.from == Some(host) && epoch.is_none_or(|epoch| epoch < open.epoch) {
                open.told.seals_after_return += 1;
            }
        }
    }

    fn host_of(&self, id: &NodeId) -> Option<HostIx> {
        self.scenario.hosts.iter().position(|host| host.id == *id).map(HostIx)
    }

    /// What there is to tell when the run is over; `None` where nobody issues, or nobody reads it.
    pub(super) fn report(self, engine: &dyn Engine) -> Option<IssuanceReport> {
        if !self.on {
            return None;
        }
        let line = Line::of(self.scenario, engine);
        let mut report = IssuanceReport {
            holder: line.holder.map(|host| words::host_name(self.scenario, host).to_owned()),
            epoch: line.epoch.map(|epoch| epoch.0),
            takeovers: self.open.into_iter().map(|open| open.told).collect(),
            ..IssuanceReport::default()
        };
        let prefix = shared_tip(self.scenario, engine);
        let mut digests = Vec::new();
        let mut longest = 0;
        look(self.scenario, engine, &mut |name, issuance| {
            let Ok(audit) = issuance.audit() else { return };
            if let Some(to) = prefix {
                digests.push(issuance.spine().digest(to));
            }
            report.nodes.insert(name.to_owned(), NodeRows::of(&audit));
            if audit.rows + audit.superseded > longest {
                longest = audit.rows + audit.superseded;
                report.elapsed_by = elapsed_by(issuance);
                report.audit = Some(audit);
            }
        });
        if let (Some(to), Some(first)) = (prefix, digests.first()) {
            let digest = first.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
            let equal = digests.iter().all(|digest| digest == first);
            report.prefix = Some(Prefix { to_window: to.0, digest, equal });
        }
        Some(report)
    }
}

impl NodeRows {
    const fn of(audit: &Audit) -> Self {
        Self {
            rows: audit.rows,
            distinct_keys: audit.distinct_keys,
            duplicates: audit.duplicates,
            superseded: audit.superseded,
            rows_below_tip: audit.rows_below_tip,
        }
    }
}

/// The highest window that every running node has durable rows up to.
fn shared_tip(scenario: &Scenario, engine: &dyn Engine) -> Option<Window> {
    let mut tips = Vec::new();
    look(scenario, engine, &mut |_, issuance| tips.push(issuance.spine().durable_tip()));
    tips.into_iter().min().flatten()
}

/// Windows that rows of each issuer cover, those that count.
fn elapsed_by(issuance: &Issuance) -> BTreeMap<String, u64> {
    let mut elapsed = BTreeMap::new();
    for entry in issuance.spine().winners() {
        *elapsed.entry(entry.origin.node.to_string()).or_default() += entry.row.elapsed;
    }
    elapsed
}

fn look(scenario: &Scenario, engine: &dyn Engine, at: &mut dyn FnMut(&str, &Issuance)) {
    for ix in (0..scenario.hosts.len()).map(HostIx) {
        if engine.state(ix) != HostState::Down {
            engine.with_node(ix, &mut |node| {
                if let Some(issuance) = node.issuance() {
                    at(words::host_name(scenario, ix), issuance);
                }
            });
        }
    }
}

/// Whole ticks of 1.287 a second.
fn ticks(time: Duration) -> u64 {
    u64::try_from(time.as_micros().saturating_mul(1_287) / 1_000_000_000).unwrap_or(u64::MAX)
}
