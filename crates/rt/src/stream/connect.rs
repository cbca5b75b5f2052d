//! Outgoing connections, by TCP or over a UNIX socket, and whether an idle one can be reused.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::task::{Context, Waker};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, sockopt};
use tokio::io::Interest;

use super::{Layer, LoopRef, Stream};
use crate::reactor::Handle;
use crate::socket::Socket;
use crate::timers::{Deadline, Sleep};

/// The pause before a UNIX socket with a full queue is tried again, at first; it doubles each time.
const RETRY_FIRST: Duration = Duration::from_millis(1);
/// The longest such pause.
const RETRY_LONGEST: Duration = Duration::from_millis(50);

/// The other end of an outgoing connection.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Remote {
    /// TCP.
    Tcp(SocketAddr),
    /// A UNIX stream socket.
    Unix(PathBuf),
}

/// How to connect.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ConnectOptions {
    /// The address to connect from. Default: the kernel's choice.
    pub source: Option<IpAddr>,
    /// Whether the kernel probes the idle connection (SO_KEEPALIVE). Default: no.
    pub keep_alive: bool,
    /// The size of the kernel's receive buffer, in bytes. Default: the kernel's choice.
    pub receive_buffer: Option<usize>,
}

impl Stream {
    /// Connects, with TCP_NODELAY, and registers the connection for its whole life with this
    /// thread's loop, also where that works in place.
    ///
    /// A UNIX socket whose queue is full is tried again until the deadline, since the kernel does
    /// not wait for it.
    ///
    /// Errors: `TimedOut` at the deadline, `NotConnected` outside a loop, and those of connect(2).
    /// Dropping the future closes the socket.
    pub async fn connect(
        remote: &Remote,
        options: &ConnectOptions,
        deadline: Deadline,
    ) -> io::Result<Self> {
        let handle = Handle::current().ok_or(io::ErrorKind::NotConnected)?;
        match remote {
            Remote::Tcp(address) => connect_tcp(handle, *address, options, deadline).await,
            Remote::Unix(path) => {
                let address = SocketAddrUnix::new(path.as_path())?;
                connect_unix(handle, &address, options, deadline).await
            }
        }
    }

    /// Whether an idle connection can carry another request: its peer has sent nothing since it was
    /// last read, and has not closed it. TLS may have sent session tickets.
    ///
    /// Makes no system call unless an event has been reported; in place, where the loop does not
    /// wait for events, one.
    pub fn is_reusable(&mut self) -> bool {
        if matches!(&self.layer, Layer::Tls(session) if session.has_failed()) {
            return false;
        }
        let mut cx = Context::from_waker(Waker::noop());
        self.look_again |= self.state.in_place;
        let may_have_bytes = self.look_again
            || self.tls_may_have_bytes()
            || self.io.poll_read_ready(&mut cx).is_ready();
        if !may_have_bytes {
            return true;
        }
        let received = self.try_read(&mut Vec::with_capacity(1));
        matches!(received, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }

    /// Whether TLS holds bytes, or the end: the peer's FIN may come later than its close_notify.
    fn tls_may_have_bytes(&self) -> bool {
        let Layer::Tls(session) = &self.layer else { return false };
        !session.is_settled() || session.peer_closed()
    }

    /// A connection of this loop whose connect(2) has begun.
    fn outgoing(handle: Handle, fd: OwnedFd) -> io::Result<Self> {
        Ok(Self {
            io: Socket::register(fd, Interest::READABLE | Interest::WRITABLE)?,
            state: LoopRef::new(handle.state),
            layer: Layer::Plain,
            received: 0,
            sent: 0,
            look_again: false,
            blocks: false,
        })
    }
}

async fn connect_tcp(
    handle: Handle,
    address: SocketAddr,
    options: &ConnectOptions,
    deadline: Deadline,
) -> io::Result<Stream> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let fd = open(family, options)?;
    sockopt::set_tcp_nodelay(&fd, true)?;
    if let Some(source) = options.source {
        // The kernel picks the port with the connection, so that ports are shared by destinations.
        // Older kernels pick it here.
        let _ = nix::sys::socket::setsockopt(
            &fd,
            nix::sys::socket::sockopt::IpBindAddressNoPort,
            &true,
        );
        rustix::net::bind(&fd, &SocketAddr::new(source, 0))?;
    }
    match rustix::net::connect(&fd, &address) {
        Ok(()) => return Stream::outgoing(handle, fd),
        // An interrupted connect(2) goes on.
        Err(Errno::INPROGRESS | Errno::INTR) => {}
        Err(errno) => return Err(errno.into()),
    }
    let mut stream = Stream::outgoing(handle, fd)?;
    stream.writable_until(deadline).await?;
    sockopt::socket_error(&stream)??;
    Ok(stream)
}

async fn connect_unix(
    handle: Handle,
    address: &SocketAddrUnix,
    options: &ConnectOptions,
    deadline: Deadline,
) -> io::Result<Stream> {
    let fd = open(AddressFamily::UNIX, options)?;
    let mut pause = RETRY_FIRST;
    loop {
        match rustix::net::connect(&fd, address) {
            Ok(()) => return Stream::outgoing(handle, fd),
            Err(Errno::INTR) => continue,
            Err(Errno::AGAIN) => {}
            Err(errno) => return Err(errno.into()),
        }
        if deadline.has_passed(handle.clock()) {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let next = handle.deadline(pause).min(deadline);
        Sleep::new(handle.state.clone(), next).await;
        pause = (pause * 2).min(RETRY_LONGEST);
    }
}

/// A non-blocking socket with its options.
fn open(family: AddressFamily, options: &ConnectOptions) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let fd = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
    if options.keep_alive {
        sockopt::set_socket_keepalive(&fd, true)?;
    }
    if let Some(bytes) = options.receive_buffer {
        sockopt::set_socket_recv_buffer_size(&fd, bytes)?;
    }
    Ok(fd)
}

impl fmt::Display for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => path.display().fmt(f),
        }
    }
}
