//! The modelled disk of one host: an append-only list of records that become durable in order.
//!
//! A record is durable when its write is complete, and only then is its token reported. Power loss drops what is not
//! durable, except that of the writes under way the first few may have made it: how many is drawn, and the process
//! never hears of it. A process that ends by itself has flushed, so nothing is lost then. A disk that does not sync
//! reports what a power loss takes back.
//!
//! Absent: reads (a machine gets everything durable at boot), records cut in half (a write is a transaction).

use std::collections::VecDeque;
use std::time::Duration;

use firedrill_core::rng::Rng;
use firedrill_core::time::Instant;

use crate::engine::FaultId;

/// A write's name, chosen by the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Token(pub u64);

/// What became of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It is durable, or the disk says so.
    Durable,
    /// Nothing of it was written.
    Refused,
}

/// How a disk treats writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreHealth {
    /// Each write is durable after this long, never before the one ahead of it.
    Answers(Duration),
    /// Each write is refused after this long.
    Full(Duration),
    /// Each write is reported as durable after this long, but a power loss takes back what was written since this
    /// began.
    Unsynced(Duration),
    /// No write completes.
    Dead,
}

impl StoreHealth {
    /// As good as a disk can be.
    pub const GOOD: Self = Self::Answers(Duration::ZERO);

    const fn latency(self) -> Option<Duration> {
        match self {
            Self::Answers(latency) | Self::Full(latency) | Self::Unsynced(latency) => Some(latency),
            Self::Dead => None,
        }
    }
}

/// One host's disk.
#[derive(Debug)]
pub(in crate::engine) struct Store<R> {
    durable: Vec<R>,
    /// How many of `durable` survive a power loss.
    synced: usize,
    pending: VecDeque<(Token, R)>,
    /// How many of `pending`, from the front, have a completion under way.
    under_way: usize,
    last_completion: Instant,
    health: StoreHealth,
    /// Which fault made it so.
    fault: Option<FaultId>,
    rng: Rng,
}

impl<R> Store<R> {
    /// An empty, healthy disk.
    pub(in crate::engine) fn new(rng: Rng) -> Self {
        Self {
            durable: Vec::new(),
            synced: 0,
            pending: VecDeque::new(),
            under_way: 0,
            last_completion: Instant::ZERO,
            health: StoreHealth::GOOD,
            fault: None,
            rng,
        }
    }

    /// What a boot finds.
    pub(in crate::engine) fn durable(&self) -> &[R] {
        &self.durable
    }

    /// The disk is replaced by an empty one. True when there was anything on it.
    pub(in crate::engine) fn lose(&mut self) -> bool {
        self.synced = 0;
        !std::mem::take(&mut self.durable).is_empty()
    }

    /// Accepts a write; a completion is due at the moment returned, if at all. Names the fault that treats it
    /// otherwise than a good disk would.
    pub(in crate::engine) fn write(
        &mut self,
        now: Instant,
        token: Token,
        record: R,
    ) -> (Option<Instant>, Option<FaultId>) {
        self.pending.push_back((token, record));
        let felt = match self.health {
            StoreHealth::Answers(latency) => !latency.is_zero(),
            StoreHealth::Full(_) | StoreHealth::Dead => true,
            // Felt when a power loss takes it back.
            StoreHealth::Unsynced(_) => false,
        };
        (self.next_completion(now), self.fault.filter(|_| felt))
    }

    /// Changes the health; the completions now due of writes that waited.
    pub(in crate::engine) fn set_health(
        &mut self,
        now: Instant,
        health: StoreHealth,
        fault: Option<FaultId>,
    ) -> Vec<Instant> {
        (self.health, self.fault) = (health, fault);
        if !matches!(health, StoreHealth::Unsynced(_)) {
            self.synced = self.durable.len();
        }
        std::iter::from_fn(|| self.next_completion(now)).collect()
    }

    /// A completion came due for the oldest write, unless the disk died meanwhile.
    pub(in crate::engine) fn complete(&mut self) -> Option<(Token, Outcome)> {
        self.under_way = self.under_way.saturating_sub(1);
        if self.health == StoreHealth::Dead {
            return None;
        }
        let (token, record) = self.pending.pop_front()?;
        if matches!(self.health, StoreHealth::Full(_)) {
            return Some((token, Outcome::Refused));
        }
        self.keep(record);
        Some((token, Outcome::Durable))
    }

    fn keep(&mut self, record: R) {
        self.durable.push(record);
        if !matches!(self.health, StoreHealth::Unsynced(_)) {
            self.synced = self.durable.len();
        }
    }

    /// The process is gone; with `flush` what was written is kept. Names the fault that took something back.
    pub(in crate::engine) fn end(&mut self, flush: bool) -> Option<FaultId> {
        let under_way = std::mem::take(&mut self.under_way);
        let mut pending = std::mem::take(&mut self.pending);
        match self.health {
            StoreHealth::Answers(_) | StoreHealth::Unsynced(_) if flush => {
                pending.drain(..).for_each(|(_, record)| self.keep(record));
            }
            StoreHealth::Answers(_) if under_way > 0 => {
                let made_it = self.rng.between(0, under_way as u64);
                let made_it = usize::try_from(made_it).unwrap_or(0);
                pending.drain(..made_it.min(pending.len())).for_each(|(_, record)| self.keep(record));
            }
            StoreHealth::Unsynced(_) => {
                let torn = self.durable.len() > self.synced;
                self.durable.truncate(self.synced);
                return self.fault.filter(|_| torn);
            }
            StoreHealth::Answers(_) | StoreHealth::Full(_) | StoreHealth::Dead => {}
        }
        None
    }

    fn next_completion(&mut self, now: Instant) -> Option<Instant> {
        let latency = self.health.latency()?;
        if self.under_way == self.pending.len() {
            return None;
        }
        self.under_way += 1;
        self.last_completion = now.after(latency).max(self.last_completion);
        Some(self.last_completion)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use firedrill_core::rng::Seed;

    const MS: Duration = Duration::from_millis(1);

    fn store(seed: u64) -> Store<u64> {
        Store::new(Seed::from_u64(seed).rng())
    }

    fn write(store: &mut Store<u64>, number: u64) -> (Option<Instant>, Option<FaultId>) {
        store.write(Instant::ZERO, Token(number), number)
    }

    #[test]
    fn a_write_is_durable_when_it_completes_and_not_before() {
        let mut store = store(1);
        store.set_health(Instant::ZERO, StoreHealth::Answers(MS), Some(FaultId(7)));
        assert_eq!(write(&mut store, 1), (Some(Instant::ZERO.after(MS)), Some(FaultId(7))));
        assert!(store.durable().is_empty());
        assert_eq!(store.complete(), Some((Token(1), Outcome::Durable)));
        assert_eq!(store.durable(), [1]);
    }

    #[test]
    fn a_full_disk_refuses_and_keeps_nothing() {
        let mut store = store(1);
        store.set_health(Instant::ZERO, StoreHealth::Full(MS), Some(FaultId(0)));
        assert_eq!(write(&mut store, 1).1, Some(FaultId(0)));
        assert_eq!(store.complete(), Some((Token(1), Outcome::Refused)));
        assert_eq!(store.end(false), None);
        assert!(store.durable().is_empty());
    }

    #[test]
    fn power_loss_keeps_some_of_the_writes_under_way_in_order() {
        let left = |seed| {
            let mut store = store(seed);
            (1..=3).for_each(|number| {
                write(&mut store, number);
            });
            store.end(false);
            store.durable().to_vec()
        };
        let seen: std::collections::BTreeSet<Vec<u64>> = (0..64).map(left).collect();
        assert_eq!(seen, [vec![], vec![1], vec![1, 2], vec![1, 2, 3]].into());
    }

    #[test]
    fn power_loss_takes_back_what_was_reported_but_not_synced() {
        let mut store = store(1);
        write(&mut store, 1);
        store.complete();
        store.set_health(Instant::ZERO, StoreHealth::Unsynced(Duration::ZERO), Some(FaultId(3)));
        assert_eq!(write(&mut store, 2).1, None);
        assert_eq!(store.complete(), Some((Token(2), Outcome::Durable)));
        assert_eq!(store.end(false), Some(FaultId(3)));
        assert_eq!(store.durable(), [1]);
        assert_eq!(store.end(false), None, "there is nothing left to take");
    }

    #[test]
    fn a_graceful_end_keeps_everything_and_a_lost_disk_nothing() {
        let mut store = store(1);
        (1..=3).for_each(|number| {
            write(&mut store, number);
        });
        store.end(true);
        assert_eq!(store.durable(), [1, 2, 3]);
        assert!(store.lose());
        assert!(!store.lose());
        assert!(store.durable().is_empty());
    }
}
