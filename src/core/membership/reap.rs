//! The reap memory: one note per pruned member, so that peers pruning at different times do not teach each other
//! a departed member for ever.
//!
//! A note refuses records of its member at its incarnation or below for 20 S. It is local, never gossiped, and
//! never applies to a higher incarnation. When the memory is full its oldest note makes room.
//!
//! Spec: docs/protocol.md, Tombstones and reap memory; decisions 7 and 11; finding 2.

use alloc::collections::BTreeMap;
use core::net::SocketAddr;

use crate::guards::Guards;
use crate::id::{Incarnation, NodeId};
use crate::limits::REAP_NOTES_MAX;
use crate::time::{Duration, Instant};

#[derive(Debug, Clone)]
struct Note {
    incarnation: Incarnation,
    taken_at: Instant,
    /// Where others last said that the member lives, while its note refused what they said.
    rumoured_at: Option<SocketAddr>,
}

/// The notes.
#[derive(Debug, Clone, Default)]
pub(super) struct ReapMemory(BTreeMap<NodeId, Note>);

impl ReapMemory {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The incarnation at which this member was pruned, while that is noted.
    pub(super) fn of(&self, id: &NodeId) -> Option<Incarnation> {
        self.0.get(id).map(|note| note.incarnation)
    }

    /// The noted incarnation when a record at `incarnation` is refused.
    pub(super) fn refuses(
        &self,
        id: &NodeId,
        incarnation: Incarnation,
        guards: Guards,
    ) -> Option<Incarnation> {
        let noted = self.of(id)?;
        (incarnation <= noted || !guards.notes_yield).then_some(noted)
    }

    /// Others say that a noted member lives at `addr`; true when that is news.
    pub(super) fn rumoured(&mut self, id: &NodeId, addr: Option<SocketAddr>) -> bool {
        let Some(note) = self.0.get_mut(id).filter(|note| addr.is_some() && note.rumoured_at != addr) else {
            return false;
        };
        note.rumoured_at = addr;
        true
    }

    /// Where noted members are said to live.
    pub(super) fn rumours(&self) -> impl Iterator<Item = (&NodeId, SocketAddr)> {
        self.0.iter().filter_map(|(id, note)| Some((id, note.rumoured_at?)))
    }

    /// Notes that a member was pruned at `incarnation`.
    pub(super) fn note(&mut self, now: Instant, id: &NodeId, incarnation: Incarnation) {
        if self.0.len() >= REAP_NOTES_MAX && !self.0.contains_key(id) {
            let oldest = self.0.iter().min_by_key(|(_, note)| note.taken_at).map(|(id, _)| id.clone());
            if let Some(oldest) = oldest {
                self.0.remove(&oldest);
            }
        }
        self.0.insert(id.clone(), Note { incarnation, taken_at: now, rumoured_at: None });
    }

    /// Drops notes older than `memory`; true when any went.
    pub(super) fn expire(&mut self, now: Instant, memory: Duration) -> bool {
        let before = self.0.len();
        self.0.retain(|_, note| now.since(note.taken_at) <= memory);
        self.0.len() < before
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    #[test]
    fn a_note_refuses_up_to_its_incarnation_until_it_lapses() {
        let id = NodeId::new("a").unwrap();
        let mut memory = ReapMemory::default();
        memory.note(Instant::ZERO, &id, Incarnation(5));
        assert_eq!(memory.refuses(&id, Incarnation(4), Guards::ON), Some(Incarnation(5)));
        assert_eq!(memory.refuses(&id, Incarnation(5), Guards::ON), Some(Incarnation(5)));
        assert_eq!(memory.refuses(&id, Incarnation(6), Guards::ON), None);
        assert!(!memory.expire(Instant::from_micros(10), Duration::from_micros(10)));
        assert!(memory.expire(Instant::from_micros(11), Duration::from_micros(10)));
        assert_eq!(memory.refuses(&id, Incarnation(1), Guards::ON), None);
    }

    #[test]
    fn a_rumour_is_kept_with_its_note_and_is_news_once() {
        let (id, stranger) = (NodeId::new("a").unwrap(), NodeId::new("b").unwrap());
        let addr = Some(SocketAddr::from(([192, 168, 0, 1], 7946)));
        let mut memory = ReapMemory::default();
        memory.note(Instant::ZERO, &id, Incarnation(5));
        assert!(!memory.rumoured(&id, None) && !memory.rumoured(&stranger, addr));
        assert!(memory.rumoured(&id, addr) && !memory.rumoured(&id, addr));
        assert_eq!(memory.rumours().map(|(id, addr)| (id.clone(), Some(addr))).next(), Some((id, addr)));
        memory.expire(Instant::from_micros(11), Duration::from_micros(10));
        assert_eq!(memory.rumours().count(), 0);
    }

    #[test]
    fn the_oldest_note_makes_room() {
        let id = |n: usize| NodeId::new(&format!("n{n}")).unwrap();
        let mut memory = ReapMemory::default();
        for n in 0..=REAP_NOTES_MAX {
            memory.note(Instant::from_micros(n as u64), &id(n), Incarnation(1));
        }
        assert_eq!(memory.len(), REAP_NOTES_MAX);
        assert_eq!(memory.refuses(&id(0), Incarnation(1), Guards::ON), None);
        assert!(memory.refuses(&id(1), Incarnation(1), Guards::ON).is_some());
    }
}
