//! The network as a host's driver sees it: turmoil's sockets, with the link model and the host's pause around
//! them.
//!
//! A dial costs a round trip of the link: refused where nobody listens, silent where nobody runs or a cut
//! swallows it. A segment read is one whole frame, since one write is one segment and reads never merge.

use std::cell::RefCell;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes};
use firedrill_core::limits::{FRAME_BYTES_MAX, FRAME_PREFIX_BYTES};
use firedrill_core::time::Duration;
use firedrill_runtime::{Listener, Net};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf};
use turmoil::net::{TcpListener, TcpStream};

use super::fabric::{Fabric, host_of, ip_of};
use super::pipe::Outbound;
use crate::engine::event::directory::Hop;
use crate::scenario::model::HostIx;

thread_local! {
    /// Where segments are read to, before they are copied at their true size.
    static SCRATCH: RefCell<Vec<u8>> = RefCell::new(vec![0; FRAME_PREFIX_BYTES + FRAME_BYTES_MAX]);
}

/// The network of one host.
#[derive(Clone)]
pub(super) struct HostNet {
    pub(super) fabric: Fabric,
    pub(super) host: HostIx,
}

impl Net for HostNet {
    type Stream = Stream;
    type Listener = HostListener;

    async fn bind(&self, addr: SocketAddr) -> io::Result<HostListener> {
        let inner = TcpListener::bind((Ipv4Addr::UNSPECIFIED, addr.port())).await?;
        let port = inner.local_addr()?.port();
        let mut state = self.fabric.lock();
        state.hosts[self.host.0].port = Some(port);
        state.wake(self.host);
        drop(state);
        let addr = SocketAddr::new(addr.ip(), port);
        Ok(HostListener { fabric: self.fabric.clone(), host: self.host, inner, addr })
    }

    async fn dial(&self, addr: SocketAddr) -> io::Result<Stream> {
        let stream = self.fabric.process(self.host, self.connect(addr)).await?;
        Ok(Stream::Outbound(stream))
    }
}

impl HostNet {
    async fn connect(&self, addr: SocketAddr) -> io::Result<Outbound> {
        let Self { fabric, host: from } = self;
        let (hop, tick) = {
            let state = fabric.lock();
            (state.directory.resolve(addr), state.tick)
        };
        let (to, refused) = match hop {
            Hop::Host(to) => (HostIx(to as usize), false),
            Hop::Refused(to) => (HostIx(to as usize), true),
            Hop::Nobody => return std::future::pending().await,
        };
        fabric.crosses(*from, to, tick).await;
        let connected = connect(fabric, to, refused).await;
        fabric.crosses(to, *from, Duration::ZERO).await;
        Ok(Outbound::open(fabric.clone(), *from, to, connected?))
    }
}

/// Connects from where this runs, once the packet that asks for it has arrived. Of a host that goes down
/// meanwhile nothing is heard.
pub(super) async fn connect(fabric: &Fabric, to: HostIx, refused: bool) -> io::Result<TcpStream> {
    let port = fabric.accepting(to).await;
    if refused {
        return Err(io::ErrorKind::ConnectionRefused.into());
    }
    let (boot, connects) = {
        let place = &fabric.lock().hosts[to.0];
        (place.boot, std::sync::Arc::clone(&place.connects))
    };
    let permit = connects.acquire_owned().await.map_err(io::Error::other)?;
    let connected = TcpStream::connect((ip_of(to), port)).await;
    drop(permit);
    let silent = {
        let place = &fabric.lock().hosts[to.0];
        !place.up && place.boot == boot
    };
    if silent && connected.is_err() { std::future::pending().await } else { connected }
}

/// Where a host's connections arrive.
pub(super) struct HostListener {
    fabric: Fabric,
    host: HostIx,
    inner: TcpListener,
    /// The address in the scenario's terms.
    addr: SocketAddr,
}

impl Listener for HostListener {
    type Stream = Stream;

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.addr)
    }

    async fn accept(&mut self) -> io::Result<Stream> {
        let (stream, origin) = self.fabric.process(self.host, self.inner.accept()).await?;
        let hosts = self.fabric.lock().hosts.len();
        let peer = host_of(origin.ip(), hosts);
        let fabric = self.fabric.clone();
        Ok(Stream::Inbound(Inbound {
            fabric,
            host: self.host,
            peer,
            stream: Some(stream),
            frame: Bytes::new(),
        }))
    }
}

/// A connection: written if this host dialled it, read if it accepted it.
pub(super) enum Stream {
    Outbound(Outbound),
    Inbound(Inbound),
}

/// An accepted connection.
pub(super) struct Inbound {
    fabric: Fabric,
    host: HostIx,
    /// `None` is a stranger, whom no link rule concerns.
    peer: Option<HostIx>,
    /// `None` only while it is dropped.
    stream: Option<TcpStream>,
    /// What is left of the frame being read.
    frame: Bytes,
}

impl Inbound {
    fn poll_read(&mut self, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        ready!(self.fabric.poll_running(self.host, context));
        while self.frame.is_empty() {
            let Some(segment) = ready!(self.poll_segment(context))? else { return Poll::Ready(Ok(())) };
            let mut state = self.fabric.lock();
            if self.peer.is_some_and(|peer| state.swallows(peer, self.host)) {
                state.stats.frames_lost += 1;
            } else {
                state.stats.frames_delivered += 1;
                self.frame = segment;
            }
        }
        let taken = self.frame.len().min(buffer.remaining());
        buffer.put_slice(&self.frame[..taken]);
        self.frame.advance(taken);
        Poll::Ready(Ok(()))
    }

    /// The next segment; `None` when the peer has closed.
    fn poll_segment(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Option<Bytes>>> {
        let Some(stream) = &mut self.stream else { return Poll::Ready(Ok(None)) };
        SCRATCH.with_borrow_mut(|scratch| {
            let mut buffer = ReadBuf::new(scratch);
            ready!(Pin::new(stream).poll_read(context, &mut buffer))?;
            let filled = buffer.filled();
            Poll::Ready(Ok((!filled.is_empty()).then(|| Bytes::copy_from_slice(filled))))
        })
    }
}

impl Drop for Inbound {
    /// The reset that tells the peer is subject to cuts like everything else: behind one the kernel keeps the
    /// connection until the peer sends something, and answers that.
    fn drop(&mut self) {
        let Some((stream, peer)) = self.stream.take().zip(self.peer) else { return };
        let mut state = self.fabric.lock();
        let cut = state.hosts[self.host.0].up && state.swallows(self.host, peer);
        drop(state);
        if cut && tokio::runtime::Handle::try_current().is_ok() {
            tokio::spawn(linger(self.fabric.clone(), self.host, peer, stream));
        }
    }
}

async fn linger(fabric: Fabric, host: HostIx, peer: HostIx, mut stream: TcpStream) {
    let mut scratch = vec![0; FRAME_PREFIX_BYTES + FRAME_BYTES_MAX];
    while let Ok(1..) = stream.read(&mut scratch).await {
        let cut = {
            let mut state = fabric.lock();
            state.stats.frames_lost += 1;
            state.swallows(host, peer)
        };
        if !cut {
            return;
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            // What this side dialled is never answered; only its end is read.
            Self::Outbound(outbound) => outbound.poll_read(context),
            Self::Inbound(inbound) => inbound.poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, frame: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Outbound(outbound) => outbound.poll_write(context, frame),
            Self::Inbound(_) => Poll::Ready(Err(io::ErrorKind::Unsupported.into())),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
