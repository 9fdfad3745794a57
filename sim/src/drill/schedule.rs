//! What is due, and in which order.
//!
//! At equal times: expectations about events open, what a `for` gave ends, delayed boots happen, steps fire in
//! the order of the file, expectations about state open, clients increment, deadlines pass. So an expectation
//! `from` the moment of a step sees the events of that step, and the state after it.

use std::collections::BTreeMap;

use firedrill_core::time::Instant;

use super::faults::Token;
use crate::scenario::model::{HostIx, StepIx};

/// Something the conductor does at a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Due {
    /// An expectation about events counts from here.
    OpenEvents(usize),
    /// A standing fault ends.
    End(Token),
    /// A host boots that had to wait for its wall clock.
    Boot(HostIx),
    /// A step fires.
    Step(StepIx),
    /// An expectation about state counts from here.
    OpenState(usize),
    /// A workload increments.
    Tick(usize),
    /// The last moment of an expectation's `by` has passed.
    Deadline(usize),
}

impl Due {
    /// The place among what is due at the same moment: the kind, then the order of the file.
    const fn place(&self) -> (u8, usize) {
        match *self {
            Self::OpenEvents(expect) => (0, expect),
            Self::End(token) => (1, token.0),
            Self::Boot(host) => (2, host.0),
            Self::Step(step) => (3, step.0),
            Self::OpenState(expect) => (4, expect),
            Self::Tick(workload) => (5, workload),
            Self::Deadline(expect) => (6, expect),
        }
    }
}

/// The agenda of a run.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    /// By moment, place, and order of entry.
    items: BTreeMap<(Instant, (u8, usize), u64), Due>,
    entered: u64,
}

impl Schedule {
    pub(super) fn add(&mut self, at: Instant, due: Due) {
        self.items.insert((at, due.place(), self.entered), due);
        self.entered += 1;
    }

    /// When something is due next.
    pub(super) fn next_at(&self) -> Option<Instant> {
        self.items.first_key_value().map(|(key, _)| key.0)
    }

    /// Takes what is due by `now`, one at a time.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<(Instant, Due)> {
        let first = self.items.first_entry().filter(|entry| entry.key().0 <= now)?;
        let at = first.key().0;
        Some((at, first.remove()))
    }

    /// Drops everything that belongs to the drill proper; deadlines and openings stay.
    pub(super) fn end_drill(&mut self) {
        self.items.retain(|_, due| matches!(due, Due::OpenEvents(_) | Due::OpenState(_) | Due::Deadline(_)));
    }

    /// The last deadline that is still ahead.
    pub(super) fn last_deadline(&self) -> Option<Instant> {
        self.items.iter().rev().find(|(_, due)| matches!(due, Due::Deadline(_))).map(|(key, _)| key.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_moments_keep_the_order_of_the_file_whatever_the_order_of_entry() {
        let mut schedule = Schedule::default();
        let at = Instant::from_micros(5);
        schedule.add(at, Due::Deadline(0));
        schedule.add(at, Due::Step(StepIx(1)));
        schedule.add(at, Due::Step(StepIx(0)));
        schedule.add(at, Due::End(Token(9)));
        schedule.add(Instant::from_micros(4), Due::Tick(0));
        let order: Vec<Due> = std::iter::from_fn(|| schedule.pop_due(at)).map(|(_, due)| due).collect();
        assert_eq!(
            order,
            [Due::Tick(0), Due::End(Token(9)), Due::Step(StepIx(0)), Due::Step(StepIx(1)), Due::Deadline(0)]
        );
    }

    #[test]
    fn nothing_is_due_before_its_moment() {
        let mut schedule = Schedule::default();
        schedule.add(Instant::from_micros(5), Due::Tick(0));
        assert_eq!(schedule.pop_due(Instant::from_micros(4)), None);
        assert_eq!(schedule.next_at(), Some(Instant::from_micros(5)));
    }

    #[test]
    fn after_the_drill_only_expectations_are_due() {
        let mut schedule = Schedule::default();
        schedule.add(Instant::from_micros(5), Due::Step(StepIx(0)));
        schedule.add(Instant::from_micros(6), Due::Deadline(2));
        schedule.end_drill();
        assert_eq!(schedule.next_at(), Some(Instant::from_micros(6)));
        assert_eq!(schedule.last_deadline(), Some(Instant::from_micros(6)));
    }
}
