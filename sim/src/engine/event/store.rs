//! The modelled disk of one host: an append-only list of records that become durable in order.
//!
//! A record is durable when its write is complete, and only then is its token reported. Power loss drops what
//! is not durable; a process that ends by itself has flushed, so nothing is lost then. A dead store completes
//! nothing until it is healthy again.
//!
//! Absent: reads (a machine gets everything durable at boot), torn records, a full disk.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use firedrill_core::time::Instant;

/// A write's name, chosen by the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Token(pub u64);

/// How a store treats writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreHealth {
    /// Each write is durable after this long, never before the one ahead of it.
    Answers(Duration),
    /// No write completes.
    Dead,
}

/// One host's disk.
#[derive(Debug)]
pub(super) struct Store {
    durable: Vec<Bytes>,
    pending: VecDeque<(Token, Bytes)>,
    /// How many of `pending`, from the front, have a completion under way.
    under_way: usize,
    last_completion: Instant,
    health: StoreHealth,
}

impl Default for Store {
    fn default() -> Self {
        Self {
            durable: Vec::new(),
            pending: VecDeque::new(),
            under_way: 0,
            last_completion: Instant::ZERO,
            health: StoreHealth::Answers(Duration::ZERO),
        }
    }
}

impl Store {
    /// What a boot finds.
    pub(super) fn durable(&self) -> &[Bytes] {
        &self.durable
    }

    /// Accepts a write; a completion is due at the moment returned, if at all.
    pub(super) fn write(&mut self, now: Instant, token: Token, record: Bytes) -> Option<Instant> {
        self.pending.push_back((token, record));
        self.next_completion(now)
    }

    /// Changes the health; the completions now due of writes that waited.
    pub(super) fn set_health(&mut self, now: Instant, health: StoreHealth) -> Vec<Instant> {
        self.health = health;
        std::iter::from_fn(|| self.next_completion(now)).collect()
    }

    /// A completion came due: the oldest write is durable, unless the store died meanwhile.
    pub(super) fn complete(&mut self) -> Option<Token> {
        self.under_way = self.under_way.saturating_sub(1);
        if self.health == StoreHealth::Dead {
            return None;
        }
        let (token, record) = self.pending.pop_front()?;
        self.durable.push(record);
        Some(token)
    }

    /// The process is gone; with `flush` what was written is kept.
    pub(super) fn end(&mut self, flush: bool) {
        let pending = self.pending.drain(..).map(|(_, record)| record);
        if flush && self.health != StoreHealth::Dead {
            self.durable.extend(pending);
        }
        self.under_way = 0;
    }

    fn next_completion(&mut self, now: Instant) -> Option<Instant> {
        let StoreHealth::Answers(latency) = self.health else { return None };
        if self.under_way == self.pending.len() {
            return None;
        }
        self.under_way += 1;
        self.last_completion = now.after(latency).max(self.last_completion);
        Some(self.last_completion)
    }
}
