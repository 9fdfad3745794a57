//! Payload texts parsed lately.
//!
//! The documents of a converged cluster are equal, so most pushes repeat a text that was parsed before, often
//! from another sender. Comparing texts costs a fraction of parsing one, and the shared document that comes back
//! lets the replica skip the merge.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::wire::message::{Document, Message};

/// How many texts are kept: at most 4 × 64 KiB.
const RECENT_MAX: usize = 4;

/// The latest texts, with what they said.
#[derive(Debug, Clone, Default)]
pub(crate) struct Recent {
    entries: Vec<(Arc<str>, Arc<Document>)>,
    oldest: usize,
    /// Texts read so far, known ones included.
    read: u64,
}

impl Recent {
    /// How many texts were read.
    pub(crate) const fn read(&self) -> u64 {
        self.read
    }

    /// Reads a payload text (step 7).
    pub(crate) fn parse(&mut self, text: String) -> Result<Message, serde_json::Error> {
        self.read += 1;
        if let Some((_, state)) = self.entries.iter().find(|(known, _)| **known == *text) {
            return Ok(Message::StatePush { state: Arc::clone(state) });
        }
        let message = Message::parse(&text)?;
        if let Message::StatePush { state } = &message {
            let entry = (Arc::from(text), Arc::clone(state));
            if self.entries.len() < RECENT_MAX {
                self.entries.push(entry);
            } else {
                self.entries[self.oldest] = entry;
                self.oldest = (self.oldest + 1) % RECENT_MAX;
            }
        }
        Ok(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_text_yields_the_same_document() {
        let mut recent = Recent::default();
        let state = |recent: &mut Recent, n: u64| {
            let text =
                alloc::format!(r#"{{"type":"state_push","state":{{"counters":{{"c":{{"a#1":{n}}}}}}}}}"#);
            let Ok(Message::StatePush { state }) = recent.parse(text) else { panic!("a push") };
            state
        };
        let first = state(&mut recent, 0);
        assert!(Arc::ptr_eq(&first, &state(&mut recent, 0)));
        for n in 1..=4 {
            assert!(!Arc::ptr_eq(&first, &state(&mut recent, n)));
        }
        assert!(!Arc::ptr_eq(&first, &state(&mut recent, 0)), "the oldest made room");
        assert!(recent.parse(String::from("{")).is_err());
    }
}
