//! What a node counts, under the names an operator alerts on.
//!
//! Every series exists at 0 from boot, so a rate over it never starts with a gap.
//!
//! Spec: docs/protocol.md, Metrics; decision 15.

use serde::{Deserialize, Serialize};

use crate::issuance::election::Decision;
use crate::wire::Reject;

/// One exported series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Series {
    /// The Prometheus name.
    pub name: &'static str,
    /// What it counts.
    pub help: &'static str,
    /// Counter or gauge.
    pub kind: SeriesKind,
    /// At most one label, as name and value.
    pub label: Option<(&'static str, &'static str)>,
    /// The present value.
    pub value: u64,
}

/// The Prometheus type of a [`Series`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeriesKind {
    /// Only rises.
    Counter,
    /// Rises and falls.
    Gauge,
}

/// A table that refuses what exceeds its bound (decision 15).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Table {
    /// Member records.
    Members,
    /// Replay watermarks.
    Watermarks,
    /// Counter names.
    Counters,
}

impl Table {
    /// All tables, in the order of [`Metrics::admissions_refused`].
    pub const ALL: [Self; 3] = [Self::Members, Self::Watermarks, Self::Counters];

    /// The table as a metric label.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Members => "members",
            Self::Watermarks => "watermarks",
            Self::Counters => "counters",
        }
    }
}

/// The numbers of one boot. Counts saturate.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metrics {
    /// Members in the view, this node included.
    pub members: u64,
    /// State pushes handed to the links, one per target, farewells excluded.
    pub pushes_sent: u64,
    /// Messages that could not be framed under the cap.
    pub pushes_unsendable: u64,
    /// State pushes accepted.
    pub pushes_received: u64,
    /// Accepted messages that changed the document.
    pub merges_applied: u64,
    /// Frames dropped before they were written: a full queue, a full farewell lane, a link given up.
    pub frames_dropped: u64,
    /// Frames rejected, by [`Reject`].
    pub frames_rejected: [u64; Reject::ALL.len()],
    /// New entries refused because their table is full, by [`Table`].
    pub admissions_refused: [u64; Table::ALL.len()],
    /// Signs that another host uses this node's id, or that two hosts share a peer's.
    pub duplicate_node_id: u64,
    /// Refutations made.
    pub refutations: u64,
}

/// The numbers of the issuance of one boot. Counts saturate.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IssuanceMetrics {
    /// Rows of this node that became durable.
    pub seals: u64,
    /// Of these, the ones whose window another row had won.
    pub duplicates: u64,
    /// Rows of this node that the disk refused.
    pub seals_refused: u64,
    /// Windows given up by rows of this node, between where they resumed and what they cover.
    pub windows_forfeited: u64,
    /// Rows taken from peers.
    pub rows_replicated: u64,
    /// Rows of peers that contradicted the one held under their number.
    pub rows_conflicting: u64,
    /// Rows found on disk at boot that could not be used: an earlier one of their stream was missing.
    pub rows_unusable: u64,
    /// Messages dropped because no document had told of their sender's boot yet.
    pub messages_early: u64,
    /// Writes that the disk refused.
    pub writes_refused: u64,
    /// Elections decided, by [`Decision::index`].
    pub decisions: [u64; Decision::NAMES.len()],
    /// Elections won.
    pub promotions: u64,
    /// Times this node stood down.
    pub demotions: u64,
}

impl IssuanceMetrics {
    pub(crate) fn decided(&mut self, decision: &Decision) {
        let slot = &mut self.decisions[decision.index()];
        *slot = slot.saturating_add(1);
    }

    /// Every series, in the order they are exported.
    pub fn series(&self) -> impl Iterator<Item = Series> + '_ {
        let counter =
            |name, help, value| Series { name, help, kind: SeriesKind::Counter, label: None, value };
        let head = [
            counter("firedrill_issuance_seals_total", "Rows sealed here that are durable.", self.seals),
            counter(
                "firedrill_issuance_duplicates_total",
                "Rows sealed here whose window another row had won; they do not count.",
                self.duplicates,
            ),
            counter(
                "firedrill_issuance_seals_refused_total",
                "Rows sealed here that the disk refused.",
                self.seals_refused,
            ),
            counter(
                "firedrill_issuance_windows_forfeited_total",
                "Windows given up by rows sealed here; another node may have sealed them.",
                self.windows_forfeited,
            ),
            counter(
                "firedrill_issuance_rows_replicated_total",
                "Rows taken from peers.",
                self.rows_replicated,
            ),
            counter(
                "firedrill_issuance_rows_conflicting_total",
                "Rows of peers that contradict one held. Anything above 0 means that a node used a number twice.",
                self.rows_conflicting,
            ),
            counter(
                "firedrill_issuance_rows_unusable_total",
                "Rows found on disk at boot that follow a gap. They come again from peers.",
                self.rows_unusable,
            ),
            counter(
                "firedrill_issuance_messages_early_total",
                "Messages dropped because no document had told of their sender's boot yet.",
                self.messages_early,
            ),
            counter(
                "firedrill_issuance_writes_refused_total",
                "Writes the disk refused.",
                self.writes_refused,
            ),
            counter("firedrill_issuance_promotions_total", "Elections won.", self.promotions),
            counter("firedrill_issuance_demotions_total", "Times this node stood down.", self.demotions),
        ];
        let decisions = Decision::NAMES.into_iter().zip(self.decisions).map(move |(name, value)| Series {
            label: Some(("decision", name)),
            ..counter("firedrill_issuance_elections_total", "Elections held, by what they decided.", value)
        });
        head.into_iter().chain(decisions)
    }
}

impl Metrics {
    pub(crate) fn rejected(&mut self, reason: Reject) {
        let slot = &mut self.frames_rejected[reason as usize];
        *slot = slot.saturating_add(1);
    }

    pub(crate) fn refused(&mut self, table: Table) {
        let slot = &mut self.admissions_refused[table as usize];
        *slot = slot.saturating_add(1);
    }

    /// Every series, in the order they are exported.
    pub fn series(&self) -> impl Iterator<Item = Series> + '_ {
        let counter =
            |name, help, value| Series { name, help, kind: SeriesKind::Counter, label: None, value };
        let head = [
            Series {
                name: "firedrill_cluster_members",
                help: "Members in this node's view, itself included.",
                kind: SeriesKind::Gauge,
                label: None,
                value: self.members,
            },
            counter(
                "firedrill_cluster_pushes_sent_total",
                "State pushes sent, one per target, farewells excluded.",
                self.pushes_sent,
            ),
            counter(
                "firedrill_cluster_pushes_unsendable_total",
                "Messages too large for a frame. Anything above 0 means that peers are about to evict this node.",
                self.pushes_unsendable,
            ),
            counter(
                "firedrill_cluster_pushes_received_total",
                "State pushes accepted.",
                self.pushes_received,
            ),
            counter(
                "firedrill_cluster_merges_applied_total",
                "Accepted messages that changed the document.",
                self.merges_applied,
            ),
            counter(
                "firedrill_cluster_frames_dropped_total",
                "Frames dropped before they were written.",
                self.frames_dropped,
            ),
            counter(
                "firedrill_cluster_duplicate_node_id_total",
                "Signs that two hosts use one node id.",
                self.duplicate_node_id,
            ),
            counter(
                "firedrill_cluster_refutations_total",
                "Records about this node that it refuted.",
                self.refutations,
            ),
        ];
        let rejected = Reject::ALL.into_iter().map(move |reason| Series {
            label: Some(("reason", reason.name())),
            ..counter(
                "firedrill_cluster_frames_rejected_total",
                "Frames rejected, by the check that rejected them.",
                self.frames_rejected[reason as usize],
            )
        });
        let refused = Table::ALL.into_iter().map(move |table| Series {
            label: Some(("table", table.name())),
            ..counter(
                "firedrill_cluster_admissions_refused_total",
                "Entries refused because a table is full.",
                self.admissions_refused[table as usize],
            )
        });
        head.into_iter().chain(rejected).chain(refused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use alloc::string::String;
    use alloc::vec::Vec;

    /// Dashboards and alerts depend on these names: a change here breaks them.
    #[test]
    fn the_names_that_operators_alert_on_are_all_there_and_at_0() {
        let metrics = Metrics::default();
        let mut series: Vec<String> = metrics
            .series()
            .map(|series| {
                let label =
                    series.label.map(|(name, value)| format!("{{{name}={value}}}")).unwrap_or_default();
                format!("{}{label} {}", series.name.strip_prefix("firedrill_cluster_").unwrap(), series.value)
            })
            .collect();
        series.sort_unstable();
        let expected = [
            "admissions_refused_total{table=counters} 0",
            "admissions_refused_total{table=members} 0",
            "admissions_refused_total{table=watermarks} 0",
            "duplicate_node_id_total 0",
            "frames_dropped_total 0",
            "frames_rejected_total{reason=cluster} 0",
            "frames_rejected_total{reason=key_id} 0",
            "frames_rejected_total{reason=mac} 0",
            "frames_rejected_total{reason=malformed} 0",
            "frames_rejected_total{reason=oversize} 0",
            "frames_rejected_total{reason=payload} 0",
            "frames_rejected_total{reason=replay} 0",
            "frames_rejected_total{reason=self_origin} 0",
            "frames_rejected_total{reason=version} 0",
            "members 0",
            "merges_applied_total 0",
            "pushes_received_total 0",
            "pushes_sent_total 0",
            "pushes_unsendable_total 0",
            "refutations_total 0",
        ];
        assert_eq!(series, expected);
    }

    #[test]
    fn a_count_lands_in_the_series_that_bears_its_label() {
        let mut metrics = Metrics::default();
        Reject::ALL.into_iter().for_each(|reason| (0..=reason as u8).for_each(|_| metrics.rejected(reason)));
        Table::ALL.into_iter().for_each(|table| (0..=table as u8).for_each(|_| metrics.refused(table)));
        let labelled = |label: &str| -> Vec<(&str, u64)> {
            let series = metrics.series().filter_map(|series| Some((series.label?, series.value)));
            series.filter(|((name, _), _)| *name == label).map(|((_, of), value)| (of, value)).collect()
        };
        let reasons: Vec<_> = Reject::ALL.iter().map(|reason| reason.name()).zip(1..).collect();
        let tables: Vec<_> = Table::ALL.iter().map(|table| table.name()).zip(1..).collect();
        assert_eq!((labelled("reason"), labelled("table")), (reasons, tables));
    }
}
