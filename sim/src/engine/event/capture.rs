//! Frames kept for a later replay: the last ones of every directed pair, as they were sent.

use std::collections::VecDeque;
use std::time::Duration;

use firedrill_core::time::Instant;

/// Frames kept per directed pair; at default configuration 34 minutes of them.
pub(in crate::engine) const FRAMES_KEPT: usize = 4096;

/// What a listener on every wire has recorded.
#[derive(Debug)]
pub(in crate::engine) struct Capture<T> {
    hosts: usize,
    pairs: Vec<VecDeque<(Instant, T)>>,
}

impl<T: Clone> Capture<T> {
    /// An empty recording.
    pub(in crate::engine) fn new(hosts: usize) -> Self {
        Self { hosts, pairs: std::iter::repeat_with(VecDeque::new).take(hosts * hosts).collect() }
    }

    /// Records one frame.
    pub(in crate::engine) fn keep(&mut self, at: Instant, from: usize, to: usize, message: &T) {
        let pair = &mut self.pairs[from * self.hosts + to];
        if pair.len() == FRAMES_KEPT {
            pair.pop_front();
        }
        pair.push_back((at, message.clone()));
    }

    /// The frames of a pair in a span of the run, both ends included, in order.
    pub(in crate::engine) fn find(
        &self,
        from: usize,
        to: usize,
        (first, last): (Duration, Duration),
    ) -> impl Iterator<Item = &T> {
        let span = Instant::ZERO.after(first)..=Instant::ZERO.after(last);
        self.pairs[from * self.hosts + to]
            .iter()
            .filter(move |(at, _)| span.contains(at))
            .map(|(_, message)| message)
    }
}
