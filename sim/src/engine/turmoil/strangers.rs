//! Strangers: one more machine on turmoil's network, whose visitors act out the scripts of the event engine.
//!
//! A visitor knows the port and nothing else, and acts blindly. No link rule applies to it.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use bytes::Bytes;
use firedrill_core::time::Duration;
use tokio::io::AsyncWriteExt as _;

use super::fabric::Fabric;
use super::net::connect;
use crate::engine::FaultId;
use crate::engine::event::cluster::Script;
use crate::engine::event::full::FullNode;
use crate::engine::event::tcp::Segment;
use crate::scenario::model::HostIx;

/// turmoil's address of the strangers' machine.
pub(super) const STRANGERS: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 255, 0, 1));

/// One connection of a stranger.
#[derive(Debug)]
pub(super) struct Visit {
    to: HostIx,
    /// The fault that brought it; has an effect once the host takes the connection.
    fault: FaultId,
    /// When it dials, from now.
    dial: Duration,
    /// What it sends, and when from now.
    sends: Vec<(Duration, Bytes)>,
    /// When it closes, from now; stays when `None`.
    close: Option<Duration>,
}

/// The visits that a script describes, in the order of their dials.
pub(super) fn visits(to: HostIx, fault: FaultId, script: Script<FullNode>) -> Vec<Visit> {
    let mut visits = BTreeMap::new();
    for (station, at, packet) in script.0 {
        let visit = visits.entry(station).or_insert_with(|| Visit {
            to,
            fault,
            dial: at,
            sends: Vec::new(),
            close: None,
        });
        match packet.segment {
            Segment::Data { bytes, .. } => visit.sends.push((at, bytes)),
            Segment::Close => visit.close = Some(at),
            Segment::Syn
            | Segment::Probe { .. }
            | Segment::Accepted
            | Segment::Ack(_)
            | Segment::Reset
            | Segment::Established
            | Segment::Readable(_) => {}
        }
    }
    visits.into_values().collect()
}

/// The strangers' machine.
pub(super) async fn run(fabric: Fabric) -> turmoil::Result {
    loop {
        let (visits, wanted) = {
            let mut state = fabric.lock();
            (std::mem::take(&mut state.visits), std::sync::Arc::clone(&state.visits_wanted))
        };
        for visit in visits {
            tokio::spawn(visit.act(fabric.clone()));
        }
        wanted.notified().await;
    }
}

impl Visit {
    async fn act(self, fabric: Fabric) {
        let begin = tokio::time::Instant::now();
        tokio::time::sleep_until(begin + self.dial).await;
        let Ok(mut stream) = connect(&fabric, self.to, false).await else { return };
        fabric.lock().faults.mark(self.fault);
        for (at, bytes) in self.sends {
            tokio::time::sleep_until(begin + at).await;
            if stream.write_all(&bytes).await.is_err() {
                return;
            }
        }
        match self.close {
            Some(at) => tokio::time::sleep_until(begin + at).await,
            None => std::future::pending().await,
        }
    }
}
