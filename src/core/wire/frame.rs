//! Step 1 of the receive path: a byte stream cut into frame bodies.
//!
//! A frame is a 4-byte big-endian length and as many bytes of body. The length is judged before anything is
//! stored, and what is stored grows with what arrived, never with what was announced: a stranger who promises
//! 64 KiB and goes silent holds four bytes. A body that lies in one chunk is a slice of that chunk.
//!
//! A bad length ends the stream for good, since nobody can say where the next frame starts.
//!
//! Absent: the end of the stream. A frame that was cut short is simply never handed out.
//!
//! Spec: docs/protocol.md, Wire and envelope; Receive path (step 1).

use bytes::{Buf as _, Bytes, BytesMut};

use crate::limits::{FRAME_BYTES_MAX, FRAME_PREFIX_BYTES};

/// A length of 0 or above [`FRAME_BYTES_MAX`]: the connection has to close.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a frame announces {announced} bytes; 1 to {FRAME_BYTES_MAX} are allowed")]
pub struct Oversize {
    /// What the prefix said.
    pub announced: u32,
}

/// The framing of one connection.
#[derive(Debug, Default)]
pub struct Decoder {
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    /// Collecting a length.
    Prefix { bytes: [u8; FRAME_PREFIX_BYTES], held: usize },
    /// Collecting a body of `wanted` bytes; `held` stays empty until a chunk ends within the body.
    Body { wanted: usize, held: BytesMut },
    /// A bad length was seen.
    Broken(Oversize),
}

impl Default for Stage {
    fn default() -> Self {
        Self::Prefix { bytes: [0; FRAME_PREFIX_BYTES], held: 0 }
    }
}

impl Decoder {
    /// A decoder at the start of a stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether part of a frame has come and the rest is awaited.
    pub const fn is_midway(&self) -> bool {
        match self.stage {
            Stage::Prefix { held, .. } => held > 0,
            Stage::Body { .. } => true,
            Stage::Broken(_) => false,
        }
    }

    /// Takes from the front of `chunk` what the next body needs. `None`: the chunk is used up. Call it again
    /// with the same chunk until then.
    ///
    /// # Errors
    /// [`Oversize`] for a bad length, and on every later call; the chunk is then left as it is.
    pub fn next_body(&mut self, chunk: &mut Bytes) -> Result<Option<Bytes>, Oversize> {
        if let Stage::Prefix { bytes, held } = &mut self.stage {
            let taken = chunk.len().min(FRAME_PREFIX_BYTES - *held);
            chunk.copy_to_slice(&mut bytes[*held..*held + taken]);
            *held += taken;
            if *held < FRAME_PREFIX_BYTES {
                return Ok(None);
            }
            self.stage = Stage::after_prefix(u32::from_be_bytes(*bytes));
        }
        match &mut self.stage {
            Stage::Broken(oversize) => Err(*oversize),
            Stage::Prefix { .. } => Ok(None),
            Stage::Body { wanted, held } => {
                let body = take_body(*wanted, held, chunk);
                if body.is_some() {
                    self.stage = Stage::default();
                }
                Ok(body)
            }
        }
    }
}

impl Stage {
    fn after_prefix(announced: u32) -> Self {
        match usize::try_from(announced) {
            Ok(wanted @ 1..=FRAME_BYTES_MAX) => Self::Body { wanted, held: BytesMut::new() },
            _ => Self::Broken(Oversize { announced }),
        }
    }
}

/// The body, once `held` and the front of `chunk` make it whole.
fn take_body(wanted: usize, held: &mut BytesMut, chunk: &mut Bytes) -> Option<Bytes> {
    if held.is_empty() && chunk.len() >= wanted {
        return Some(chunk.split_to(wanted));
    }
    let taken = chunk.len().min(wanted - held.len());
    held.extend_from_slice(&chunk.split_to(taken));
    (held.len() == wanted).then(|| core::mem::take(held).freeze())
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    fn frame(body: &[u8]) -> Vec<u8> {
        let mut bytes = u32::try_from(body.len()).unwrap().to_be_bytes().to_vec();
        bytes.extend_from_slice(body);
        bytes
    }

    fn feed(decoder: &mut Decoder, chunk: &[u8]) -> Result<Vec<Bytes>, Oversize> {
        let mut chunk = Bytes::copy_from_slice(chunk);
        let mut bodies = Vec::new();
        while let Some(body) = decoder.next_body(&mut chunk)? {
            bodies.push(body);
        }
        assert!(chunk.is_empty(), "None means that the chunk is used up");
        Ok(bodies)
    }

    #[test]
    fn a_body_within_one_chunk_is_a_slice_of_it() {
        let mut chunk = Bytes::from(frame(b"hello"));
        let inside = chunk.as_ptr_range();
        let body = Decoder::new().next_body(&mut chunk).unwrap().unwrap();
        assert_eq!(&body[..], b"hello");
        assert!(inside.contains(&body.as_ptr()));
    }

    #[test]
    fn a_bad_length_breaks_the_stream_for_good() {
        for (prefix, announced) in [([0, 0, 0, 0], 0), ([0, 1, 0, 1], 65_537), ([255; 4], u32::MAX)] {
            let mut decoder = Decoder::new();
            assert_eq!(feed(&mut decoder, &prefix[..3]), Ok(Vec::new()));
            assert_eq!(feed(&mut decoder, &prefix[3..]), Err(Oversize { announced }));
            assert_eq!(feed(&mut decoder, &frame(b"late")), Err(Oversize { announced }));
        }
    }

    #[test]
    fn the_largest_length_allocates_nothing_until_bytes_arrive() {
        let mut decoder = Decoder::new();
        assert_eq!(feed(&mut decoder, &[0, 1, 0, 0]), Ok(Vec::new()));
        assert!(
            matches!(&decoder.stage, Stage::Body { wanted: FRAME_BYTES_MAX, held } if held.capacity() == 0)
        );
        let body = alloc::vec![7; FRAME_BYTES_MAX];
        assert_eq!(feed(&mut decoder, &body[..1]), Ok(Vec::new()));
        assert!(matches!(&decoder.stage, Stage::Body { held, .. } if held.capacity() < 1024));
        assert_eq!(feed(&mut decoder, &body[1..]).unwrap(), [&body[..]]);
    }

    proptest! {
        #[test]
        fn bodies_do_not_depend_on_how_the_stream_is_cut(
            bodies in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..40), 0..6),
            cuts in prop::collection::vec(1usize..20, 0..60),
        ) {
            let stream: Vec<u8> = bodies.iter().flat_map(|body| frame(body)).collect();
            let mut decoder = Decoder::new();
            let (mut got, mut rest) = (Vec::new(), &stream[..]);
            for cut in cuts {
                let (chunk, after) = rest.split_at(cut.min(rest.len()));
                got.extend(feed(&mut decoder, chunk).unwrap());
                rest = after;
            }
            got.extend(feed(&mut decoder, rest).unwrap());
            prop_assert_eq!(got, bodies);
        }

        #[test]
        fn no_bytes_panic(chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..12), 0..20)) {
            let mut decoder = Decoder::new();
            for chunk in chunks {
                let _ = decoder.next_body(&mut Bytes::from(chunk));
            }
        }
    }
}
