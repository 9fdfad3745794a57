//! The network as the driver sees it: listen, dial, and byte streams.
//!
//! Kept to what both a real and a simulated network can do. Frames go one way over a stream, from the side that
//! dialled; that side reads only to notice the end.
//!
//! Absent: names (addresses are IP literals), and time limits (the core's) but for one that only a kernel can
//! keep: how long what was written may stay unacknowledged.

use std::future::Future;
use std::io;
use std::net::SocketAddr;

use firedrill_core::limits::WRITE_TIMEOUT;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};

/// A network to run a node on.
pub trait Net: Clone + Send + Sync + 'static {
    /// An established connection.
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;
    /// Where connections arrive.
    type Listener: Listener<Stream = Self::Stream>;

    /// Listens on `addr`; port 0 takes any free port.
    ///
    /// # Errors
    /// What the network says, such as an address in use.
    fn bind(&self, addr: SocketAddr) -> impl Future<Output = io::Result<Self::Listener>> + Send;

    /// Connects to `addr`. Dropping the future gives the attempt up.
    ///
    /// # Errors
    /// What the network says, such as a refused connection.
    fn dial(&self, addr: SocketAddr) -> impl Future<Output = io::Result<Self::Stream>> + Send;
}

/// Where connections arrive.
pub trait Listener: Send + 'static {
    /// An established connection.
    type Stream;

    /// The bound address, with the port that was actually taken.
    ///
    /// # Errors
    /// What the network says.
    fn local_addr(&self) -> io::Result<SocketAddr>;

    /// Waits for the next connection.
    ///
    /// # Errors
    /// What the network says, such as too many open files. The listener stays usable.
    fn accept(&mut self) -> impl Future<Output = io::Result<Self::Stream>> + Send;
}

/// Real TCP, through tokio.
#[derive(Debug, Clone, Copy, Default)]
pub struct TokioNet;

impl Net for TokioNet {
    type Stream = TcpStream;
    type Listener = TcpListener;

    async fn bind(&self, addr: SocketAddr) -> io::Result<TcpListener> {
        TcpListener::bind(addr).await
    }

    async fn dial(&self, addr: SocketAddr) -> io::Result<TcpStream> {
        let stream = TcpStream::connect(addr).await?;
        // A frame is written whole and nothing follows it for a while: waiting to fill a segment only delays it.
        stream.set_nodelay(true)?;
        limit_unacknowledged(&stream)?;
        Ok(stream)
    }
}

/// Breaks the connection when the peer's kernel has not acknowledged something for [`WRITE_TIMEOUT`].
///
/// A write is done for us once our own kernel has the bytes, so the core's limit on writes begins to bite only
/// when the send buffer is full: hundreds of pushes later. Until then a connection that the peer has lost
/// (half-open, in one direction of the pair) would swallow every push, and the kernel alone would retransmit
/// for a quarter of an hour before it gave up. Where the option does not exist, the core's watch over silent
/// peers and full buffers remains.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn limit_unacknowledged(stream: &TcpStream) -> io::Result<()> {
    socket2::SockRef::from(stream).set_tcp_user_timeout(Some(WRITE_TIMEOUT))
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
const fn limit_unacknowledged(_stream: &TcpStream) -> io::Result<()> {
    Ok(())
}

impl Listener for TcpListener {
    type Stream = TcpStream;

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Self::local_addr(self)
    }

    async fn accept(&mut self) -> io::Result<TcpStream> {
        let (stream, _) = Self::accept(self).await?;
        Ok(stream)
    }
}

#[cfg(all(test, any(target_os = "linux", target_os = "android")))]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_dialled_connection_breaks_when_nothing_is_acknowledged_for_the_write_timeout() {
        let listener = TokioNet.bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
        let addr = Listener::local_addr(&listener).unwrap();
        let stream = TokioNet.dial(addr).await.unwrap();
        let limit = socket2::SockRef::from(&stream).tcp_user_timeout().unwrap();
        assert_eq!(limit, Some(WRITE_TIMEOUT));
    }
}
