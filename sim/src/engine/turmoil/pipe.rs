//! The sending half of a host's kernel: what it does with frames between the driver's write and the wire.
//!
//! A pipe is one dialled connection. The driver's write completes when the kernel has the frame; the link model
//! says when it is due, and a task of the kernel (not of the process: it runs on while that is paused) hands it
//! to turmoil one tick ahead, which is the time that turmoil takes.
//!
//! Invariants: a frame is one segment; at most [`WINDOW_FRAMES`] frames are unanswered or waiting, then writes
//! wait, as they do on TCP whose peer neither reads nor acknowledges.

use std::collections::BTreeMap;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use firedrill_core::limits::{FRAME_PREFIX_BYTES, WRITE_TIMEOUT};
use firedrill_core::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::Notify;
use turmoil::net::TcpStream;

use super::fabric::{Fabric, Parcel, State, number};
use crate::engine::FaultId;
use crate::engine::event::network::Fate;
use crate::scenario::model::HostIx;

/// Frames that the kernels of both sides hold for one connection before a write waits.
const WINDOW_FRAMES: usize = 64;

/// A dialled connection of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PipeId(u64);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Open,
    /// The driver has closed it; what is due goes out first.
    Closing,
    /// The peer has reset it.
    Broken,
}

/// One dialled connection.
pub(super) struct Pipe {
    from: HostIx,
    to: HostIx,
    phase: Phase,
    /// Frames by the time at which they arrive, then in the order in which they were scheduled.
    due: BTreeMap<(Instant, u64), Bytes>,
    scheduled: u64,
    /// Frames that a hold keeps.
    held: usize,
    /// Frames in a row that nothing has acknowledged, because a fault keeps them or their acknowledgements.
    unanswered: usize,
    /// Since when; after [`WRITE_TIMEOUT`] the kernel gives the connection up, as in production.
    unanswered_since: Option<Instant>,
    /// The fault that made it carry nothing.
    black_hole: Option<FaultId>,
    /// The peer has closed its end, after which it reads nothing more.
    ended: bool,
    /// The write that waits for room.
    writer: Option<Waker>,
    /// The read that waits for the end.
    reader: Option<Waker>,
    /// The kernel's task has something to look at.
    work: Arc<Notify>,
}

impl Pipe {
    fn schedule(&mut self, at: Instant, frame: Bytes) {
        self.due.insert((at, self.scheduled), frame);
        self.scheduled += 1;
    }

    fn wake_writer(&mut self) {
        if let Some(writer) = self.writer.take() {
            writer.wake();
        }
    }

    /// One more frame that nothing acknowledges.
    fn count_unanswered(&mut self, now: Instant) {
        self.unanswered += 1;
        self.unanswered_since.get_or_insert(now);
        self.work.notify_one();
    }

    fn answered(&mut self) {
        self.unanswered = 0;
        self.unanswered_since = None;
    }

    fn wake_reader(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }
}

/// What the kernel's task does next.
enum Job {
    Write(Bytes),
    Wait(Option<Duration>),
    Close,
    GiveUp,
}

impl State {
    fn open_pipe(&mut self, from: HostIx, to: HostIx) -> (PipeId, Arc<Notify>) {
        let id = PipeId(self.next_pipe);
        self.next_pipe += 1;
        let work = Arc::new(Notify::new());
        let pipe = Pipe {
            from,
            to,
            phase: Phase::Open,
            due: BTreeMap::new(),
            scheduled: 0,
            held: 0,
            unanswered: 0,
            unanswered_since: None,
            black_hole: None,
            ended: false,
            writer: None,
            reader: None,
            work: Arc::clone(&work),
        };
        self.pipes.insert(id, pipe);
        (id, work)
    }

    /// Takes a frame from the driver, if there is room.
    fn poll_write(&mut self, id: PipeId, frame: &[u8], context: &Context<'_>) -> Poll<io::Result<usize>> {
        let now = self.now();
        let Some(pipe) = self.pipes.get_mut(&id).filter(|pipe| pipe.phase == Phase::Open) else {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        };
        if pipe.unanswered.max(pipe.due.len()) >= WINDOW_FRAMES {
            pipe.writer = Some(context.waker().clone());
            return Poll::Pending;
        }
        let (from, to, unanswered, since) = (pipe.from, pipe.to, pipe.unanswered, pipe.unanswered_since);
        if let Some(fault) = pipe.black_hole {
            pipe.count_unanswered(now);
            self.faults.mark(fault);
            self.stats.frames_lost += 1;
        } else {
            let copy = Bytes::copy_from_slice(frame);
            if let Some(capture) = &mut self.capture {
                capture.keep(now, from.0, to.0, &copy);
            }
            // Nothing is acknowledged while either way is cut.
            let cut = self.swallows(from, to) | self.swallows(to, from);
            self.launch(id, copy);
            if let Some(pipe) = self.pipes.get_mut(&id).filter(|_| cut) {
                (pipe.unanswered, pipe.unanswered_since) = (unanswered, since);
                pipe.count_unanswered(now);
            }
        }
        Poll::Ready(Ok(frame.len()))
    }

    /// What the driver reads: nothing, until the connection ends.
    fn poll_end(&mut self, id: PipeId, context: &Context<'_>) -> Poll<io::Result<()>> {
        match self.pipes.get_mut(&id) {
            Some(pipe) if pipe.phase == Phase::Open && pipe.ended => Poll::Ready(Ok(())),
            Some(pipe) if pipe.phase == Phase::Open => {
                pipe.reader = Some(context.waker().clone());
                Poll::Pending
            }
            _ => Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
        }
    }

    /// The peer has closed its end.
    fn peer_closed(&mut self, id: PipeId) {
        if let Some(pipe) = self.pipes.get_mut(&id) {
            pipe.ended = true;
            pipe.wake_reader();
        }
    }

    /// Puts a frame on its link.
    fn launch(&mut self, id: PipeId, frame: Bytes) {
        let now = self.now();
        let Some(pipe) = self.pipes.get_mut(&id) else {
            self.stats.frames_lost += 1;
            return;
        };
        let (from, to) = (number(pipe.from), number(pipe.to));
        let body_bytes = frame.len().saturating_sub(FRAME_PREFIX_BYTES);
        match self.net.fate(now, from, to, Some(body_bytes), &mut self.faults) {
            Fate::Lost => self.stats.frames_lost += 1,
            Fate::Held => {
                pipe.held += 1;
                pipe.count_unanswered(now);
                self.net.keep(from, to, Parcel::Frame { pipe: id, frame });
            }
            Fate::Arrives { at, again_at, flip } => {
                if let Some(again_at) = again_at {
                    pipe.schedule(again_at, frame.clone());
                }
                let frame = match flip {
                    Some((draw, fault)) => {
                        self.faults.mark(fault);
                        flipped(&frame, draw)
                    }
                    None => frame,
                };
                pipe.schedule(at, frame);
                pipe.answered();
                pipe.wake_writer();
                pipe.work.notify_one();
            }
        }
    }

    /// Puts a frame on its link that a hold has kept.
    pub(super) fn relaunch(&mut self, id: PipeId, frame: Bytes) {
        if let Some(pipe) = self.pipes.get_mut(&id) {
            pipe.held = pipe.held.saturating_sub(1);
        }
        self.launch(id, frame);
        if let Some(pipe) = self.pipes.get(&id) {
            pipe.work.notify_one();
        }
    }

    fn next_job(&mut self, id: PipeId) -> Job {
        let now = self.now();
        let horizon = now.after(self.tick);
        let Some(pipe) = self.pipes.get_mut(&id) else { return Job::Close };
        let give_up_at = pipe.unanswered_since.map(|since| since.after(WRITE_TIMEOUT));
        if give_up_at.is_some_and(|at| at <= now) {
            return Job::GiveUp;
        }
        let give_up = give_up_at.map(|at| at.since(now));
        match pipe.due.first_entry() {
            Some(entry) if entry.key().0 <= horizon => {
                let frame = entry.remove();
                pipe.wake_writer();
                Job::Write(frame)
            }
            Some(entry) => {
                let due = entry.key().0.since(horizon);
                Job::Wait(Some(give_up.map_or(due, |span| span.min(due))))
            }
            None if pipe.phase == Phase::Open || pipe.held > 0 => Job::Wait(give_up),
            None => Job::Close,
        }
    }

    /// The peer has reset the connection, or refuses its bytes.
    fn break_pipe(&mut self, id: PipeId) {
        let Some(pipe) = self.pipes.get_mut(&id) else { return };
        self.stats.frames_lost += pipe.due.len() as u64;
        pipe.due.clear();
        pipe.wake_writer();
        pipe.wake_reader();
        if std::mem::replace(&mut pipe.phase, Phase::Broken) == Phase::Closing {
            self.pipes.remove(&id);
        }
    }

    /// The driver drops its end.
    fn close_pipe(&mut self, id: PipeId) {
        let Some(pipe) = self.pipes.get_mut(&id) else { return };
        match pipe.phase {
            Phase::Open => {
                pipe.phase = Phase::Closing;
                pipe.work.notify_one();
            }
            Phase::Closing => {}
            Phase::Broken => drop(self.pipes.remove(&id)),
        }
    }

    /// Present connections from one host to another carry nothing any more.
    pub(super) fn half_open(&mut self, from: HostIx, to: HostIx, fault: FaultId) {
        let between = |pipe: &&mut Pipe| pipe.from == from && pipe.to == to;
        for pipe in self.pipes.values_mut().filter(between) {
            pipe.black_hole = Some(fault);
        }
    }

    /// The power of a host is gone, and with it what its kernel had yet to send.
    pub(super) fn drop_pipes(&mut self, host: HostIx) {
        let lost = &mut self.stats.frames_lost;
        self.pipes.retain(|_, pipe| {
            if pipe.from == host {
                *lost += pipe.due.len() as u64;
            }
            pipe.from != host
        });
    }

    /// Whether a host's kernel has sent everything. What a hold keeps is not sent.
    pub(super) fn drained(&self, host: HostIx) -> bool {
        self.pipes.values().all(|pipe| pipe.from != host || (pipe.due.is_empty() && pipe.held == 0))
    }
}

/// `frame` with the bit that `draw` selects flipped.
fn flipped(frame: &Bytes, draw: u64) -> Bytes {
    let mut altered = frame.to_vec();
    let bits = (altered.len() as u64 * 8).max(1);
    let bit = usize::try_from(draw % bits).unwrap_or(0);
    if let Some(byte) = altered.get_mut(bit / 8) {
        *byte ^= 1 << (bit % 8);
    }
    Bytes::from(altered)
}

/// The driver's end of a pipe. Dropping it closes the connection once everything written has gone out.
pub(super) struct Outbound {
    fabric: Fabric,
    host: HostIx,
    id: PipeId,
}

impl Outbound {
    /// Puts a pipe on a connection that was just made, with a kernel task to serve it.
    pub(super) fn open(fabric: Fabric, from: HostIx, to: HostIx, stream: TcpStream) -> Self {
        let (id, work) = fabric.lock().open_pipe(from, to);
        tokio::spawn(serve(fabric.clone(), id, (from, to), work, stream));
        Self { fabric, host: from, id }
    }

    pub(super) fn poll_write(&self, context: &Context<'_>, frame: &[u8]) -> Poll<io::Result<usize>> {
        std::task::ready!(self.fabric.poll_running(self.host, context));
        self.fabric.lock().poll_write(self.id, frame, context)
    }

    pub(super) fn poll_read(&self, context: &Context<'_>) -> Poll<io::Result<()>> {
        std::task::ready!(self.fabric.poll_running(self.host, context));
        self.fabric.lock().poll_end(self.id, context)
    }
}

impl Drop for Outbound {
    fn drop(&mut self) {
        self.fabric.lock().close_pipe(self.id);
    }
}

/// The kernel's task: sends what is due and notices a reset.
async fn serve(
    fabric: Fabric,
    id: PipeId,
    (from, to): (HostIx, HostIx),
    work: Arc<Notify>,
    stream: TcpStream,
) {
    let (mut answers, mut stream) = stream.into_split();
    let mut scratch = [0; 64];
    let mut peer_closed = false;
    let mut writing: Option<Bytes> = None;
    loop {
        let mut wait = None;
        if writing.is_none() {
            let job = fabric.lock().next_job(id);
            match job {
                Job::Write(frame) => writing = Some(frame),
                Job::Wait(span) => wait = span,
                Job::Close => break,
                // The peer is told nothing: whatever could be sent would not reach it either.
                Job::GiveUp => {
                    fabric.lock().break_pipe(id);
                    return std::future::pending().await;
                }
            }
        }
        tokio::select! {
            biased;
            read = answers.read(&mut scratch), if !peer_closed => match read {
                Ok(0) => {
                    peer_closed = true;
                    fabric.lock().peer_closed(id);
                }
                Ok(_) => {}
                Err(_) => return fabric.lock().break_pipe(id),
            },
            written = write(&mut stream, writing.as_deref()), if writing.is_some() => {
                writing = None;
                if written.is_err() {
                    return fabric.lock().break_pipe(id);
                }
            }
            () = work.notified(), if writing.is_none() => {}
            () = sleep(wait), if wait.is_some() => {}
        }
    }
    let pipe = fabric.lock().pipes.remove(&id);
    if pipe.is_none_or(|pipe| pipe.black_hole.is_some()) {
        return std::future::pending().await;
    }
    let tick = fabric.lock().tick;
    fabric.crosses(from, to, tick).await;
}

async fn write(stream: &mut (impl AsyncWrite + Unpin), frame: Option<&[u8]>) -> io::Result<()> {
    match frame {
        Some(frame) => Pin::new(stream).write_all(frame).await,
        None => Ok(()),
    }
}

async fn sleep(span: Option<Duration>) {
    tokio::time::sleep(span.unwrap_or_default()).await;
}
