//! This node's copy of the replicated document.
//!
//! The copy is shared, not cloned, with every push that carries it; it is cloned only when it changes while a
//! push still holds it. Documents that are known to add nothing are remembered by address, so a push that
//! repeats one costs a comparison of pointers. Remembering holds the document alive, hence an address means
//! one document only.
//!
//! Invariant: a remembered document is below or equal to the copy. Whoever removes something from the copy, or
//! lifts a refusal, calls [`Replica::forget_known`].

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::wire::message::{Document, Measure, Message};

/// How many documents that add nothing are remembered.
const KNOWN_MAX: usize = 8;

/// The document with its version.
#[derive(Debug, Clone)]
pub(crate) struct Replica {
    document: Arc<Document>,
    version: u64,
    measured: Option<(u64, Measure)>,
    known: Vec<Arc<Document>>,
    oldest_known: usize,
}

impl Replica {
    pub(crate) fn new(document: Document) -> Self {
        Self { document: Arc::new(document), version: 0, measured: None, known: Vec::new(), oldest_known: 0 }
    }

    pub(crate) fn get(&self) -> &Document {
        &self.document
    }

    /// Rises with every change.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// The document, to be changed.
    pub(crate) fn edit(&mut self) -> &mut Document {
        self.version += 1;
        Arc::make_mut(&mut self.document)
    }

    /// Takes over a document that says at least as much.
    pub(crate) fn adopt(&mut self, document: &Arc<Document>) {
        self.version += 1;
        self.document = Arc::clone(document);
    }

    /// The document as the message that pushes it, and how long that message is.
    pub(crate) fn push(&mut self) -> (Message, Measure) {
        let message = Message::StatePush { state: Arc::clone(&self.document) };
        let measure = match self.measured {
            Some((version, measure)) if version == self.version => measure,
            _ => message.measure(),
        };
        self.measured = Some((self.version, measure));
        (message, measure)
    }

    /// Whether merging `document` is known to change nothing.
    pub(crate) fn knows(&self, document: &Arc<Document>) -> bool {
        Arc::ptr_eq(&self.document, document) || self.known.iter().any(|known| Arc::ptr_eq(known, document))
    }

    /// Remembers that merging `document` would change nothing from now on.
    pub(crate) fn learned(&mut self, document: &Arc<Document>) {
        if self.known.len() < KNOWN_MAX {
            self.known.push(Arc::clone(document));
        } else {
            self.known[self.oldest_known] = Arc::clone(document);
            self.oldest_known = (self.oldest_known + 1) % KNOWN_MAX;
        }
    }

    /// Something was removed, or a refusal lifted: known documents may teach again.
    pub(crate) fn forget_known(&mut self) {
        self.known.clear();
        self.oldest_known = 0;
    }
}

/// Calls `visit` for every key of either map, in order, with the values that each holds.
pub(crate) fn join<K: Ord, V>(
    ours: &BTreeMap<K, V>,
    theirs: &BTreeMap<K, V>,
    mut visit: impl FnMut(&K, Option<&V>, Option<&V>),
) {
    let (mut ours, mut theirs) = (ours.iter().peekable(), theirs.iter().peekable());
    loop {
        let order = match (ours.peek(), theirs.peek()) {
            (None, None) => return,
            (Some(_), None) => core::cmp::Ordering::Less,
            (None, Some(_)) => core::cmp::Ordering::Greater,
            (Some((our_key, _)), Some((their_key, _))) => our_key.cmp(their_key),
        };
        let our = if order.is_le() { ours.next() } else { None };
        let their = if order.is_ge() { theirs.next() } else { None };
        if let Some((key, _)) = our.or(their) {
            visit(key, our.map(|(_, value)| value), their.map(|(_, value)| value));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn join_visits_every_key_once_in_order() {
        let ours = BTreeMap::from([(1, 'a'), (3, 'b'), (4, 'c')]);
        let theirs = BTreeMap::from([(2, 'x'), (3, 'y'), (9, 'z')]);
        let mut seen = Vec::new();
        join(&ours, &theirs, |key, our, their| seen.push((*key, our.copied(), their.copied())));
        let expected = [
            (1, Some('a'), None),
            (2, None, Some('x')),
            (3, Some('b'), Some('y')),
            (4, Some('c'), None),
            (9, None, Some('z')),
        ];
        assert_eq!(seen, expected);
    }

    #[test]
    fn a_pushed_copy_is_not_changed_by_a_later_edit() {
        let mut replica = Replica::new(Document::default());
        let (Message::StatePush { state }, _) = replica.push() else { panic!("a push") };
        assert!(replica.knows(&state));
        replica.edit().counters.insert(crate::id::CounterName::new("c").unwrap(), BTreeMap::new());
        assert!(state.counters.is_empty() && !replica.knows(&state));
        replica.learned(&state);
        assert!(replica.knows(&state));
        replica.forget_known();
        assert!(!replica.knows(&state));
    }
}
