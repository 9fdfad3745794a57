//! The event queue: what is due when, for which host, in the order it was scheduled.
//!
//! An entry is 32 bytes whatever it carries: payloads wait in a [`Slab`] and are named by their slot, so a
//! sift moves little memory and nothing is allocated once the buffers have grown.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use firedrill_core::time::Instant;

/// What an entry asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// The first input of a boot; void when the host has booted again since.
    Boot(u32),
    /// The wake-up of this generation; void when another has replaced it.
    Wake(u32),
    /// Hand over the parcel in this slot.
    Deliver(u32),
    /// Hand over the parcel in this slot, which arrived while the process was held.
    Kept(u32),
    /// Hand over the command in this slot.
    Command(u32),
    /// The oldest pending write of this boot is on disk.
    Persisted(u32),
}

/// One due thing.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    /// Time in the upper half, the scheduling number in the lower: one comparison orders entries.
    key: u128,
    /// For which host.
    pub(super) host: u32,
    /// What is due.
    pub(super) what: What,
}

impl Entry {
    /// When it is due.
    pub(super) fn at(&self) -> Instant {
        Instant::from_micros((self.key >> 64) as u64)
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}

/// Entries by time, then by the order they were scheduled in.
#[derive(Debug, Default)]
pub(super) struct Queue {
    heap: BinaryHeap<Reverse<Entry>>,
    scheduled: u64,
}

impl Queue {
    /// Schedules one thing.
    pub(super) fn push(&mut self, at: Instant, host: u32, what: What) {
        let key = (u128::from(at.as_micros()) << 64) | u128::from(self.scheduled);
        self.scheduled += 1;
        self.heap.push(Reverse(Entry { key, host, what }));
    }

    /// Takes the next thing due strictly before `until`.
    pub(super) fn pop_before(&mut self, until: Instant) -> Option<Entry> {
        let Reverse(next) = self.heap.peek()?;
        if next.at() >= until {
            return None;
        }
        self.heap.pop().map(|Reverse(entry)| entry)
    }
}

/// Values under small numbers, slots reused.
#[derive(Debug)]
pub(super) struct Slab<T> {
    slots: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { slots: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    /// Keeps a value until [`Slab::take`].
    pub(super) fn insert(&mut self, value: T) -> u32 {
        if let Some(slot) = self.free.pop() {
            self.slots[slot as usize] = Some(value);
            return slot;
        }
        let slot = u32::try_from(self.slots.len()).expect("memory ends before 2^32 parcels are in flight");
        self.slots.push(Some(value));
        slot
    }

    /// Gives the value back and frees its slot.
    pub(super) fn take(&mut self, slot: u32) -> Option<T> {
        let value = self.slots.get_mut(slot as usize)?.take()?;
        self.free.push(slot);
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_times_keep_the_order_of_scheduling_and_the_end_is_exclusive() {
        let mut queue = Queue::default();
        for (at, host) in [(7, 0), (5, 1), (7, 2), (5, 3)] {
            queue.push(Instant::from_micros(at), host, What::Wake(0));
        }
        let before = |queue: &mut Queue, until| {
            std::iter::from_fn(|| queue.pop_before(Instant::from_micros(until)))
                .map(|entry| entry.host)
                .collect::<Vec<_>>()
        };
        assert_eq!(before(&mut queue, 7), [1, 3]);
        assert_eq!(before(&mut queue, 8), [0, 2]);
    }

    #[test]
    fn a_freed_slot_is_used_again_and_gives_nothing_twice() {
        let mut slab = Slab::default();
        let (a, b) = (slab.insert('a'), slab.insert('b'));
        assert_eq!(slab.take(a), Some('a'));
        assert_eq!(slab.take(a), None);
        assert_eq!(slab.insert('c'), a);
        assert_eq!((slab.take(b), slab.take(a)), (Some('b'), Some('c')));
    }
}
