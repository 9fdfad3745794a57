//! What faults and links are by their nature, whatever a cluster makes of them.
//!
//! Absent: anything that happened. [`super::world`] keeps that.

use std::time::Duration;

use firedrill_core::limits::{FAREWELL_FRAMES, FRAME_BYTES_MAX, PUSH_JITTER_PERCENT, SEND_QUEUE_FRAMES};
use firedrill_core::time::micros;

use super::world::{Host, RATE_RIGHT_PPM};
use crate::engine::Fault;
use crate::scenario::model::{self, HostIx, LinkSpec};

/// How much later than the longest latency a reordered frame may arrive, as a multiple of it.
const REORDER_FACTOR: u32 = 10;

/// Between the first and the last frame of a full queue that is written at one moment.
const BURST: Duration = Duration::from_micros((SEND_QUEUE_FRAMES + FAREWELL_FRAMES) as u64);

/// Whether two hosts share an id and not their clock: their boots may come to one incarnation.
pub(super) fn twins_differ(hosts: &[model::Host]) -> bool {
    let twins = |one: &model::Host, other: &model::Host| {
        one.id == other.id && one.wall_offset_us != other.wall_offset_us
    };
    hosts.iter().enumerate().any(|(ix, host)| hosts[..ix].iter().any(|other| twins(host, other)))
}

/// Whose boots a fault can give the wall clock that an earlier one had.
pub(super) fn turned_back(fault: &Fault) -> Option<HostIx> {
    match fault {
        Fault::Start { host, wall_step_us: Some(by_us), .. } | Fault::ClockStep { host, by_us } => {
            (*by_us < 0).then_some(*host)
        }
        Fault::ClockRate { host, rate_ppm } => (*rate_ppm < RATE_RIGHT_PPM).then_some(*host),
        Fault::ClockFreeze { host, .. } => Some(*host),
        Fault::Start { wall_step_us: None, .. }
        | Fault::Kill(_)
        | Fault::Stop(_)
        | Fault::Pause(_)
        | Fault::Resume(_)
        | Fault::Block(_)
        | Fault::Unblock(_)
        | Fault::Hold(_)
        | Fault::Release(_)
        | Fault::Link(..)
        | Fault::HalfOpen(_)
        | Fault::Replay { .. }
        | Fault::Disk { .. }
        | Fault::Corrupt(..)
        | Fault::Forge { .. }
        | Fault::Flood { .. } => None,
    }
}

/// Whether a fault leaves last words their way, and the incarnations in their order.
pub(super) fn is_departure_or_return(fault: &Fault) -> bool {
    if let Fault::Start { wall_step_us, .. } = fault {
        wall_step_us.is_none_or(|step| step >= 0)
    } else {
        matches!(fault, Fault::Stop(_))
    }
}

/// The longest a frame can take over such a link.
///
/// With a bandwidth it may wait behind a full send queue of the largest frames. Without one what is written at the
/// same moment still arrives in order, a microsecond apart.
pub(super) fn delay_max(spec: &LinkSpec) -> Duration {
    let late = if spec.reorder_ppm > 0 { REORDER_FACTOR } else { 0 };
    let queue_bytes = u64::try_from((SEND_QUEUE_FRAMES + 1) * FRAME_BYTES_MAX).unwrap_or(u64::MAX);
    let queued = spec.bandwidth.map_or(BURST, |bytes_per_s| {
        Duration::from_micros(queue_bytes.saturating_mul(1_000_000) / bytes_per_s.max(1))
    });
    spec.latency_max.saturating_mul(1 + late) + queued
}

/// Whether two frames of one sender always arrive less than two of any receiver's push intervals apart: the
/// longest jittered interval and the latency fit, with latency up to half an interval (the spec's steady state).
pub(super) fn is_calm(hosts: &[Host], spec: &LinkSpec) -> bool {
    let pushes = || hosts.iter().map(|host| micros(host.facts.timing.push));
    let (Some(shortest), Some(longest)) = (pushes().min(), pushes().max()) else { return true };
    let latency = micros(spec.latency_max);
    let gap = (longest / 100).saturating_mul(PUSH_JITTER_PERCENT.1).saturating_add(latency);
    spec.loss_ppm == 0
        && spec.reorder_ppm == 0
        && spec.bandwidth.is_none()
        && latency <= shortest / 2
        && gap < shortest.saturating_mul(2)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::engine::EngineKind;
    use crate::oracles::World;
    use crate::scenario::{LoadOptions, Scenario};

    /// Whether boots of three hosts may come to one incarnation, of which a and c have these ids and clocks.
    fn may_meet(c_id: &str, walls: &str) -> bool {
        let text = format!(
            "name = \"x\"\nabout = \"X.\"\ntime_limit = \"5s\"\n\
             [nodes]\nnames = [\"a\", \"b\", \"c\"]\nwall = {{ {walls} }}\n\
             [config_for.c.cluster]\nnode_id = \"{c_id}\"\n"
        );
        let none = |_: &Path| Err(std::io::ErrorKind::NotFound.into());
        let options = LoadOptions::for_engine(EngineKind::Event);
        let scenario = Scenario::parse(&text, Path::new("x.toml"), &none, options).unwrap();
        assert_eq!(World::new(&scenario).reuse_allowed(), twins_differ(&scenario.hosts));
        twins_differ(&scenario.hosts)
    }

    #[test]
    fn twins_may_come_to_one_incarnation_only_where_their_clocks_start_unlike() {
        assert!(may_meet("a", "c = \"+1ms\""));
        assert!(may_meet("a", "a = \"-1h\""));
        assert!(!may_meet("a", "b = \"+1h\""), "the clock of another id");
        assert!(!may_meet("a", "a = \"-1h\", c = \"-1h\""), "both off alike");
        assert!(!may_meet("c", "c = \"+1ms\""), "no twins");
    }
}
