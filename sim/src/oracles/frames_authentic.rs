//! What a node believes was really sent: by that node, in that incarnation, under that number, in this cluster.
//!
//! Nodes tell how far they have numbered their frames; what is accepted has to lie below. A frame that was altered
//! on the way, made by a stranger, or sent by oneself does not.

use firedrill_core::id::{ClusterName, Incarnation, NodeId, Seq};
use firedrill_core::io::Event;

use super::sight::{Sight, Subject};
use super::world::{PeerIx, World};
use super::{Broken, Oracle, Rule};

/// How far one host has numbered its frames, over all its boots.
#[derive(Debug, Clone, Default)]
struct Sent {
    cluster: Option<ClusterName>,
    /// Each incarnation it ran at, with the number that the next frame takes; the present one last.
    minted: Vec<(Incarnation, Seq)>,
}

/// Holds every accepted frame against what its sender sent.
#[derive(Debug)]
pub(super) struct FramesAuthentic {
    hosts: Vec<Sent>,
}

impl FramesAuthentic {
    pub(super) fn new(world: &World) -> Self {
        Self { hosts: vec![Sent::default(); world.hosts().len()] }
    }
}

impl Oracle for FramesAuthentic {
    const RULE: Rule = Rule {
        name: "frames_authentic",
        invariant: "every frame that a node accepts was sent by that sender, another node of its cluster, in that incarnation and under that number",
        source: "docs/protocol.md, Wire and envelope; Receive path (steps 3 to 5)",
        liveness: false,
    };

    fn after<S: Subject>(&mut self, sight: &Sight<'_, S>) -> Result<(), Box<Broken>> {
        self.hosts[sight.look.host.0].note(sight);
        for (event, peer) in sight.events() {
            if let Event::Accepted { sender, incarnation, seq } = event {
                self.judge(sight, sender, peer, (*incarnation, *seq))?;
            }
        }
        Ok(())
    }
}

impl Sent {
    fn note<S: Subject>(&mut self, sight: &Sight<'_, S>) {
        let node = sight.look.node;
        let now = (node.incarnation(), node.next_seq());
        match self.minted.last_mut() {
            Some(last) if last.0 == now.0 && !sight.changed.boot => last.1 = now.1,
            Some(_) | None => {
                self.cluster = Some(node.cluster().clone());
                self.minted.push(now);
            }
        }
    }

    fn covers(&self, (incarnation, seq): (Incarnation, Seq)) -> bool {
        self.minted.iter().rev().any(|(minted, next)| *minted == incarnation && seq < *next)
    }
}

impl FramesAuthentic {
    fn judge<S: Subject>(
        &self,
        sight: &Sight<'_, S>,
        sender: &NodeId,
        peer: Option<PeerIx>,
        frame: (Incarnation, Seq),
    ) -> Result<(), Box<Broken>> {
        let ours = &self.hosts[sight.look.host.0].cluster;
        let bearers = peer.map_or(&[][..], |peer| sight.world.hosts_of(peer));
        let mut sent = bearers.iter().map(|host| &self.hosts[host.0]).filter(|sent| sent.covers(frame));
        let why = if sender == sight.look.node.id() {
            String::from("that is its own id, and no node hears itself")
        } else if let Some(source) = sent.next() {
            if source.cluster == *ours {
                return Ok(());
            }
            format!("{sender} belongs to another cluster")
        } else {
            format!("{sender} sent no such frame")
        };
        let (incarnation, Seq(seq)) = frame;
        Err(Broken::new(
            vec![sight.name(), sender.to_string()],
            format!("{} accepted a frame of {sender}: incarnation {incarnation}, number {seq}", sight.name()),
            why,
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;
    use super::*;

    /// b has sent frames 0 to 4.
    fn bench() -> Bench {
        let mut bench = Bench::strict(&["a", "b"]);
        bench.nodes[1].next_seq = Seq(5);
        bench.wake(1, 10).unwrap();
        bench
    }

    #[test]
    fn a_frame_that_was_sent_is_authentic_and_one_that_was_not_fires() {
        bench().hear(0, 20, 1, 4).unwrap();
        let broken = bench().hear(0, 20, 1, 5).unwrap_err();
        assert_eq!(broken.oracle, "frames_authentic");
        assert!(broken.contradiction.contains("no such frame"), "{broken:?}");
        let mut altered = bench();
        altered.nodes[1].incarnation = altered.nodes[1].incarnation.next();
        assert_eq!(altered.hear(0, 20, 1, 1).unwrap_err().oracle, "frames_authentic");
    }

    #[test]
    fn a_frame_of_an_earlier_boot_was_sent_too() {
        let mut bench = bench();
        let old = bench.accepted(1, 3);
        bench.boot(1, 15, 1015).unwrap();
        bench.events(0, 20, &[old]).unwrap();
    }

    #[test]
    fn a_frame_in_ones_own_name_and_one_of_another_cluster_fire() {
        let mut own = bench();
        own.nodes[0].next_seq = Seq(5);
        own.wake(0, 15).unwrap();
        let echo = own.accepted(0, 1);
        assert!(own.events(0, 20, &[echo]).unwrap_err().contradiction.contains("hears itself"));
        let mut foreign = bench();
        foreign.turn_off("incarnation_rises");
        foreign.turn_off("cell_follows_boot");
        foreign.nodes[1].cluster = ClusterName::new("other").unwrap();
        foreign.nodes[1].incarnation = Incarnation(1016);
        foreign.nodes[1].next_seq = Seq(1);
        foreign.wake(1, 16).unwrap();
        assert!(foreign.hear(0, 20, 1, 0).unwrap_err().contradiction.contains("another cluster"));
    }
}
