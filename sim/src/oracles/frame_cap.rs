//! No frame body exceeds the cap, and a document is called unsendable only when it does.

use firedrill_core::io::Event;
use firedrill_core::limits::FRAME_BYTES_MAX;

use super::sight::{Sight, Subject};
use super::world::World;
use super::{Broken, Oracle, Rule};

/// Compares the bytes that leave with the cap.
#[derive(Debug)]
pub(super) struct FrameCap;

impl FrameCap {
    pub(super) const fn new(_world: &World) -> Self {
        Self
    }
}

impl Oracle for FrameCap {
    const RULE: Rule = Rule {
        name: "frame_cap",
        invariant: "no frame body is above 65,536 bytes, and a document is refused only when its frame would be",
        source: "docs/protocol.md, Wire and envelope (a sender holds the same cap)",
        liveness: false,
    };

    fn after<S: Subject>(&mut self, sight: &Sight<'_, S>) -> Result<(), Box<Broken>> {
        let (frames, bytes) = (sight.look.frames_sent, sight.look.bytes_sent);
        // The frames of a step carry one message or two of about its size, so their sum tells.
        if bytes > frames.saturating_mul(FRAME_BYTES_MAX as u64) {
            return Err(Broken::new(
                vec![sight.name()],
                format!("{} sent {frames} frames with {bytes} bytes of bodies in one step", sight.name()),
                format!(
                    "a body has at most {FRAME_BYTES_MAX} bytes: receivers close the connection above that"
                ),
            ));
        }
        for event in sight.look.events {
            if let Event::Unsendable { body_bytes } = event
                && *body_bytes <= FRAME_BYTES_MAX
            {
                return Err(Broken::new(
                    vec![sight.name()],
                    format!("{} stopped pushing: its frame would have {body_bytes} bytes", sight.name()),
                    format!("a body of up to {FRAME_BYTES_MAX} bytes is allowed"),
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;
    use firedrill_core::io::Event;

    #[test]
    fn a_body_above_the_cap_fires() {
        let mut bench = Bench::new(&["a"]);
        bench.sent = (2, 2 * 65_536);
        bench.wake(0, 10).unwrap();
        bench.sent = (2, 2 * 65_536 + 2);
        assert_eq!(bench.wake(0, 11).unwrap_err().oracle, "frame_cap");
    }

    #[test]
    fn refusing_what_fits_fires() {
        let mut bench = Bench::new(&["a"]);
        bench.events(0, 10, &[Event::Unsendable { body_bytes: 65_537 }]).unwrap();
        let broken = bench.events(0, 11, &[Event::Unsendable { body_bytes: 65_536 }]).unwrap_err();
        assert_eq!(broken.oracle, "frame_cap");
    }
}
