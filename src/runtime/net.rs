//! The network as the driver sees it: listen, dial, and byte streams.
//!
//! Kept to what both a real and a simulated network can do. A stream is either read (accepted) or written
//! (dialled), never both.
//!
//! Absent: names (addresses are IP literals), time limits (the core's), any option of a socket.

use std::future::Future;
use std::io;
use std::net::SocketAddr;

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
        Ok(stream)
    }
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
