//! What runs on a host: the production driver with injected clock, seed and observer.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use firedrill_core::endpoint::Endpoint;
use firedrill_core::guards::Guards;
use firedrill_core::io::{Alarm, EndpointInput, EndpointOutput, Event};
use firedrill_core::issuance::machine::Recovered as Rows;
use firedrill_core::issuance::writer::{Batch, Written};
use firedrill_core::limits::FRAME_PREFIX_BYTES;
use firedrill_core::time::{Duration, Now};
use firedrill_runtime::{Clock, Departure, Driver, Observer, Store, StoreError, StoreFuture};

use super::fabric::{Fabric, State};
use super::net::HostNet;
use super::record::{Handled, Record, What, Why};
use crate::engine::event::cluster::{recovered, written};
use crate::engine::event::store::Token;
use crate::scenario::model::HostIx;

/// How often a departed process's kernel looks whether it has sent everything.
const DRAIN_STEP: Duration = Duration::from_millis(1);

/// One boot of a host, from its start until the engine ends it.
pub(super) async fn run(fabric: Fabric, host: HostIx, guards: Guards) -> turmoil::Result {
    let (config, seed, boot, stop) = {
        let state = fabric.lock();
        let place = &state.hosts[host.0];
        (place.config.clone(), state.seed(host), place.boot, Arc::clone(&place.stop))
    };
    let disk = HostDisk { fabric: fabric.clone(), host };
    let driver = Driver {
        net: HostNet { fabric: fabric.clone(), host },
        clock: HostTime { fabric: fabric.clone(), host },
        seed,
        observer: Recorder { fabric: fabric.clone(), host, boot, handled: 0 },
        store: Some(Box::new(disk)),
    };
    let bound = driver
        .bind_with(&config, |config, seed, recovered, now| {
            Endpoint::with_guards(config, seed, recovered, now, guards)
        })
        .await?;
    fabric.lock().hosts[host.0].handle = Some(bound.handle());
    let process = bound.run_until(async move { stop.notified().await });
    let how = caught(&fabric, fabric.process(host, process)).await;
    if how == Departure::Cut {
        // The core has panicked inside a command: the panic is on its way through the engine.
        return std::future::pending().await;
    }
    fabric.lock().departed(host, boot);
    // At least once, for what the kernel's tasks take over last.
    loop {
        tokio::time::sleep(DRAIN_STEP).await;
        if fabric.lock().drained(host) {
            break;
        }
    }
    fabric.lock().hosts[host.0].finished = true;
    std::future::pending().await
}

/// Keeps what a future panics with for the engine, and then waits for the end of the run.
async fn caught<F: Future>(fabric: &Fabric, future: F) -> F::Output {
    let mut future = pin!(future);
    let mut over = false;
    std::future::poll_fn(|context| {
        if over {
            return Poll::Pending;
        }
        catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))).unwrap_or_else(|payload| {
            over = true;
            fabric.lock().panic = Some(payload);
            Poll::Pending
        })
    })
    .await
}

impl State {
    fn departed(&mut self, host: HostIx, boot: u32) {
        let at = self.now();
        self.ended(host);
        self.records.push(Record { at, host, boot, what: What::Departed });
    }
}

/// The disk of a host: the same model as in the event engine, answered on turmoil's time.
struct HostDisk {
    fabric: Fabric,
    host: HostIx,
}

impl Store for HostDisk {
    fn load(&mut self) -> StoreFuture<'_, Result<Rows, StoreError>> {
        let rows = recovered(self.fabric.lock().hosts[self.host.0].disk.durable()).issuance;
        Box::pin(async move { Ok(rows) })
    }

    fn persist(&mut self, batch: Batch) -> StoreFuture<'_, Written> {
        let Self { fabric, host } = self;
        Box::pin(async move {
            let changed = {
                let state = &mut *fabric.lock();
                let now = state.now();
                let place = &mut state.hosts[host.0];
                let (due, fault) = place.disk.write(now, Token(0), batch);
                place.disk_due = due;
                if let Some(fault) = fault {
                    state.faults.mark(fault);
                }
                Arc::clone(&state.hosts[host.0].disk_changed)
            };
            loop {
                let wait = {
                    let state = &mut *fabric.lock();
                    let now = state.now();
                    let place = &mut state.hosts[host.0];
                    match place.disk_due {
                        Some(due) if due <= now => {
                            place.disk_due = None;
                            if let Some((_, outcome)) = place.disk.complete() {
                                return written(outcome);
                            }
                            None
                        }
                        due => due.map(|due| due.since(now)),
                    }
                };
                match wait {
                    // Woken early by a disk that was mended or broke meanwhile.
                    Some(wait) => tokio::select! {
                        biased;
                        () = changed.notified() => {}
                        () = tokio::time::sleep(wait) => {}
                    },
                    None => changed.notified().await,
                }
            }
        })
    }
}

/// Both clocks of a host.
struct HostTime {
    fabric: Fabric,
    host: HostIx,
}

impl Clock for HostTime {
    fn now(&self) -> Now {
        self.fabric.lock().clocks(self.host)
    }

    fn timer(&self, span: Duration) -> Duration {
        let state = self.fabric.lock();
        let deadline = state.clocks(self.host).instant.after(span);
        state.hosts[self.host.0].clock.when(deadline).since(state.now())
    }
}

/// Keeps every step for the watch.
struct Recorder {
    fabric: Fabric,
    host: HostIx,
    boot: u32,
    handled: u64,
}

impl Observer for Recorder {
    fn handled(&mut self, endpoint: &Endpoint, now: Now, input: &EndpointInput, outputs: &[EndpointOutput]) {
        let first = self.handled == 0;
        self.handled += 1;
        let mut step = Handled {
            now,
            why: if first { Why::Boot } else { why(input) },
            node: Arc::new(endpoint.node().clone()),
            metrics: endpoint.metrics(),
            events: Vec::new(),
            frames_sent: 0,
            bytes_sent: 0,
            links: endpoint.sizes(),
            alarms: Vec::<Alarm>::new(),
        };
        if first {
            step.events.push(Event::Started { incarnation: endpoint.node().boot_incarnation() });
        }
        let mut reply = None;
        for output in outputs {
            match output {
                EndpointOutput::Event(event) => step.events.push(event.clone()),
                EndpointOutput::Alarm(alarm) => step.alarms.push(alarm.clone()),
                EndpointOutput::Reply(answer) => reply = Some(answer.clone()),
                EndpointOutput::Write { frame, .. } => {
                    step.frames_sent += 1;
                    step.bytes_sent += frame.len().saturating_sub(FRAME_PREFIX_BYTES) as u64;
                }
                EndpointOutput::Dial { .. }
                | EndpointOutput::CloseLink { .. }
                | EndpointOutput::CloseInbound { .. }
                | EndpointOutput::PauseAccept
                | EndpointOutput::ResumeAccept
                | EndpointOutput::Persist { .. }
                | EndpointOutput::Departed { .. } => {}
            }
        }
        let mut state = self.fabric.lock();
        #[cfg(test)]
        assert!(state.bomb.take_if(|host| *host == self.host).is_none(), "a bug on purpose");
        let at = state.now();
        state.stats.events += 1;
        state.stats.bytes_sent += step.bytes_sent;
        state.feel_clock_faults(self.host, at);
        state.hosts[self.host.0].node = Some(Arc::clone(&step.node));
        state.hosts[self.host.0].metrics = Some(step.metrics.clone());
        if reply.is_some() {
            state.reply = reply;
        }
        let what = What::Handled(Box::new(step));
        state.records.push(Record { at, host: self.host, boot: self.boot, what });
    }
}

fn why(input: &EndpointInput) -> Why {
    match input {
        EndpointInput::Wake => Why::Wake,
        EndpointInput::Persisted { written, .. } => Why::Disk(*written),
        EndpointInput::Command(command) => Why::Command(command.clone()),
        EndpointInput::Accepted { .. }
        | EndpointInput::AcceptFailed
        | EndpointInput::Received { .. }
        | EndpointInput::InboundClosed { .. }
        | EndpointInput::Connected { .. }
        | EndpointInput::DialFailed { .. }
        | EndpointInput::Written { .. }
        | EndpointInput::LinkClosed { .. } => Why::Wire,
    }
}
