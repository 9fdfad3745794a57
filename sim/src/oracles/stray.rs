//! Members that came back where nobody looks for them: outranked by their own old record, and at another address.
//!
//! Whoever still holds that record drops the member's frames as replays and tells it so where nobody lives, until
//! the record is pruned (finding 6). But when the record was pruned everywhere before the member returned, notes
//! stand in its place, and who returns below a note is answered (decision 11), within a far shorter bound. So it
//! matters how long before its return anybody could last have heard of the old boot.
//!
//! Whatever stirs the cluster up may carry the old record to somebody without a note, so the wait begins anew with
//! it, and after the return it counts as if the record were held. The member's own comings and goings do not count,
//! nor do old frames that meet a note everywhere: the cluster was at peace when the old boot ended, and they come
//! after every record is pruned and before any note expires.
//!
//! Spec: docs/protocol.md, Tombstones and reap memory; decisions 8 and 11; finding 6.

use std::time::Duration;

use firedrill_core::time::Instant;

use super::world::PeerIx;
use crate::engine::Fault;
use crate::scenario::model::HostIx;

/// How long nodes remember, in true time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Memory {
    /// The longest suspicion timeout.
    pub(super) longest: Duration,
    /// The shortest.
    pub(super) shortest: Duration,
    /// How long news takes to reach everybody.
    pub(super) news: Duration,
    /// How much later than its windows a record is pruned that everybody knew: the last frame was under way, and
    /// each window ends with a round.
    pub(super) rounds: Duration,
}

impl Memory {
    /// After so long without a word nobody holds a record: a window of silence, and one as a tombstone. Where not
    /// everybody knew it, it may first have spread.
    fn pruned_after(&self, all_knew: bool) -> Duration {
        let more = if all_knew { self.rounds } else { self.news.max(self.rounds) };
        self.longest.saturating_mul(20).saturating_add(more)
    }

    /// So long everybody holds a note who held a record: a window as a tombstone at least, and the note's own time.
    fn noted_for(&self) -> Duration {
        self.shortest.saturating_mul(30).saturating_sub(self.news)
    }
}

/// What may carry an old record to somebody, or keep it from being forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stir {
    /// A host of this id booted or went down.
    Of(PeerIx),
    /// Old frames were sent again.
    Replay,
    Other,
}

/// A boot that its own old record may outrank, at another address.
#[derive(Debug, Clone, Copy)]
struct Return {
    peer: PeerIx,
    /// The end of the last boot before; `None` while another host of that id runs.
    ended: Option<Instant>,
    at: Instant,
}

/// All returns of that kind, and all that could disturb their rest.
#[derive(Debug, Clone, Default)]
pub(super) struct Strays {
    stirs: Vec<(Instant, Stir)>,
    returns: Vec<Return>,
}

impl Strays {
    /// A fault was applied, or undone.
    pub(super) fn stirred(&mut self, at: Instant, fault: &Fault, peer: impl Fn(HostIx) -> PeerIx) {
        let stir = match fault {
            Fault::Kill(host) | Fault::Stop(host) | Fault::Start { host, .. } => Stir::Of(peer(*host)),
            Fault::Replay { .. } => Stir::Replay,
            // Wall clocks matter to boots alone, disks not to membership.
            Fault::ClockStep { .. } | Fault::ClockFreeze { .. } | Fault::Disk { .. } => return,
            Fault::Pause(_)
            | Fault::Resume(_)
            | Fault::Block(_)
            | Fault::Unblock(_)
            | Fault::Hold(_)
            | Fault::Release(_)
            | Fault::Link(..)
            | Fault::HalfOpen(_)
            | Fault::ClockRate { .. }
            | Fault::Corrupt(..)
            | Fault::Forge { .. }
            | Fault::Flood { .. } => Stir::Other,
        };
        self.stirs.push((at, stir));
    }

    /// A member returned at another address and may be outranked.
    pub(super) fn returned(&mut self, peer: PeerIx, ended: Option<Instant>, at: Instant) {
        self.returns.push(Return { peer, ended, at });
    }

    /// Whether some member returned like that while its old record may have been held.
    pub(super) fn any_sought(&self, memory: &Memory) -> bool {
        self.returns.iter().any(|stray| self.is_sought(stray, memory))
    }

    fn is_sought(&self, stray: &Return, memory: &Memory) -> bool {
        let Some(ended) = stray.ended else { return true };
        let latest = |wanted: &dyn Fn(Instant, Stir) -> bool| {
            let wanted = self.stirs.iter().filter(|(at, stir)| wanted(*at, *stir));
            wanted.map(|(at, _)| *at).max().unwrap_or(Instant::ZERO)
        };
        let unrest = latest(&|_, stir| stir != Stir::Replay && stir != Stir::Of(stray.peer));
        let all_knew = unrest.after(memory.news) <= ended;
        let noted = ended.after(memory.pruned_after(true))..=ended.after(memory.noted_for());
        let replay = latest(&|at, stir| stir == Stir::Replay && !(all_knew && noted.contains(&at)));
        let last = ended.max(unrest).max(replay);
        stray.at <= last.after(memory.pruned_after(all_knew && replay <= ended))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::ms;
    use super::*;

    /// Pruned after 50 s and 1 s, or 2 s where not all knew; noted for 75 s less 2 s.
    const MEMORY: Memory = Memory {
        longest: Duration::from_millis(2500),
        shortest: Duration::from_millis(2500),
        news: Duration::from_secs(2),
        rounds: Duration::from_secs(1),
    };

    fn replay() -> Fault {
        Fault::Replay { from: HostIx(1), to: HostIx(0), captured: Default::default(), count: 2 }
    }

    /// Host 1 ends at 8 s and returns at this moment; all this happens besides.
    fn sought(return_ms: u64, stirs: &[(u64, Fault)]) -> bool {
        let mut strays = Strays::default();
        let own = [(8_000, Fault::Kill(HostIx(1)))];
        for (at, fault) in own.iter().chain(stirs) {
            strays.stirred(ms(*at), fault, |host| PeerIx(host.0));
        }
        assert!(!strays.any_sought(&MEMORY), "nobody has returned");
        strays.returned(PeerIx(1), Some(ms(8_000)), ms(return_ms));
        strays.any_sought(&MEMORY)
    }

    #[test]
    fn the_record_is_gone_two_windows_after_the_old_boot_or_what_stirred_later() {
        assert!(sought(59_000, &[]) && !sought(59_001, &[]));
        let stirs = [
            (9_000, Fault::Start { host: HostIx(1), wall_step_us: None, addr: None, lose_disk: false }),
            (9_000, Fault::ClockStep { host: HostIx(0), by_us: -1 }),
        ];
        assert!(!sought(59_001, &stirs), "neither its own boots nor wall clocks matter");
        let resumed = [(9_000, Fault::Resume(HostIx(0)))];
        assert!(sought(61_000, &resumed) && !sought(61_001, &resumed));
        assert!(sought(99_000, &[(99_001, Fault::Kill(HostIx(0)))]), "stirred after the return");
    }

    #[test]
    fn old_frames_disturb_nobody_while_everybody_holds_a_note() {
        assert!(!sought(63_000, &[(59_000, replay())]));
        assert!(!sought(63_000, &[(81_000, replay())]));
        assert!(sought(63_000, &[(58_999, replay())]), "somebody may still have held the record");
        assert!(sought(63_000, &[(81_001, replay())]), "the first note may have expired");
        let restless = [(6_001, Fault::Resume(HostIx(0))), (62_000, replay())];
        assert!(sought(63_000, &restless), "somebody may never have known it");
    }

    #[test]
    fn who_returns_while_a_namesake_runs_is_outranked_for_sure() {
        let mut strays = Strays::default();
        strays.returned(PeerIx(1), None, ms(63_000));
        assert!(strays.any_sought(&MEMORY));
    }
}
