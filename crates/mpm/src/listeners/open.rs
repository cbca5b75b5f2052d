//! Opening a listening socket.
#![expect(unsafe_code, reason = "socket options, and descriptors handed over by systemd")]

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::os::fd::{AsRawFd, FromRawFd};

use socket2::{Domain, Protocol, SockFilter, SockRef, Socket, Type};

use super::holder;
use crate::settings::{AcceptFilter, ListenAddress, Listener};

/// Seconds that the kernel waits for a connection's first bytes before it delivers the connection
/// anyway. Apache passes 30.
const DEFER_ACCEPT_S: u32 = 30;

/// A failure to listen on an address.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.text())]
pub struct BindFailure {
    /// The address of the `Listen` line.
    pub address: ListenAddress,
    /// The failed step in Apache's words: `make_sock: could not bind to address`.
    pub step: &'static str,
    /// Apache's message number.
    pub number: u32,
    /// The cause.
    pub source: io::Error,
    /// What is in the way, or what to do. May be empty.
    pub hint: String,
}

impl BindFailure {
    fn new(address: ListenAddress, step: &'static str, number: u32, source: io::Error) -> Self {
        let port = address.port();
        let hint = match source.raw_os_error() {
            Some(libc::EADDRINUSE) => match holder::of_port(port) {
                Some(holder) => {
                    format!("{holder} listens on port {port}: stop it, or change the Listen line")
                }
                None => format!(
                    "another process listens on port {port} (`ss -ltnp 'sport = :{port}'` as root \
                     shows which): stop it, or change the Listen line"
                ),
            },
            Some(libc::EACCES) => format!(
                "port {port} needs root or CAP_NET_BIND_SERVICE (or a lower \
                 net.ipv4.ip_unprivileged_port_start)"
            ),
            Some(libc::EADDRNOTAVAIL) => "this host has no such address".to_owned(),
            _ => String::new(),
        };
        Self { address, step, number, source, hint }
    }

    fn text(&self) -> String {
        let reason = self.source.to_string();
        let reason = reason.split(" (os error").next().unwrap_or_default();
        let code = self.source.raw_os_error().unwrap_or_default();
        let line =
            format!("({code}){reason}: AH{:05}: {} {}", self.number, self.step, self.address);
        if self.hint.is_empty() { line } else { format!("{line}\n{}", self.hint) }
    }
}

/// Opens the first socket of an address. It is bound before SO_REUSEPORT is set, so that a port in
/// use is an error; SO_REUSEPORT then lets the others of this process join. With `may_share` it is
/// set before, for the case that only our own sockets are in the way.
pub(super) fn first(listener: &Listener, may_share: bool) -> Result<TcpListener, BindFailure> {
    let address = listener.address;
    let (socket, socket_address) = socket_for(address).map_err(|error| {
        BindFailure::new(address, "make_sock: failed to get a socket for", 69, error)
    })?;
    let bound = prepare(&socket)
        .and_then(|()| if may_share { socket.set_reuse_port(true) } else { Ok(()) })
        .and_then(|()| socket.bind(&socket_address.into()))
        .and_then(|()| socket.set_reuse_port(true));
    bound.map_err(|error| {
        BindFailure::new(address, "make_sock: could not bind to address", 72, error)
    })?;
    listen(socket, listener)
}

/// Opens another socket of the group of `first`.
pub(super) fn another(
    first: &TcpListener,
    listener: &Listener,
) -> Result<TcpListener, BindFailure> {
    let failure = |error| {
        BindFailure::new(listener.address, "make_sock: could not bind to address", 72, error)
    };
    let address = first.local_addr().map_err(failure)?;
    let opened = || -> io::Result<Socket> {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        if address.is_ipv6() {
            socket.set_only_v6(SockRef::from(first).only_v6()?)?;
        }
        prepare(&socket)?;
        socket.set_reuse_port(true)?;
        socket.bind(&address.into())?;
        Ok(socket)
    };
    listen(opened().map_err(failure)?, listener)
}

fn socket_for(address: ListenAddress) -> io::Result<(Socket, SocketAddr)> {
    let stream = |domain| Socket::new(domain, Type::STREAM, Some(Protocol::TCP));
    match address {
        ListenAddress::Any { port } => {
            let both = stream(Domain::IPV6).and_then(|socket| {
                socket.set_only_v6(false)?;
                Ok(socket)
            });
            match both {
                Ok(socket) => Ok((socket, SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)))),
                // The host has no IPv6.
                Err(_) => {
                    Ok((stream(Domain::IPV4)?, SocketAddr::from((Ipv4Addr::UNSPECIFIED, port))))
                }
            }
        }
        ListenAddress::Socket(address) => {
            let socket = stream(Domain::for_address(address))?;
            if address.is_ipv6() {
                socket.set_only_v6(false)?;
            }
            Ok((socket, address))
        }
    }
}

/// Options that must be set before bind.
fn prepare(socket: &Socket) -> io::Result<()> {
    socket.set_reuse_address(true)?;
    socket.set_keepalive(true)?;
    socket.set_nonblocking(true)
}

fn listen(socket: Socket, listener: &Listener) -> Result<TcpListener, BindFailure> {
    // Set before it listens, because the kernel then chooses the window that it offers to clients.
    set_buffers(SockRef::from(&socket), listener);
    // Accepted sockets inherit it: small responses must not wait for an acknowledgement.
    let _ = socket.set_tcp_nodelay(true);
    socket.listen(backlog(listener)).map_err(|error| {
        BindFailure::new(
            listener.address,
            "make_sock: unable to listen for connections on address",
            77,
            error,
        )
    })?;
    let socket = TcpListener::from(socket);
    set_options(&socket, listener);
    Ok(socket)
}

fn backlog(listener: &Listener) -> i32 {
    i32::try_from(listener.backlog).unwrap_or(i32::MAX)
}

/// Sets what a restart may change on an open socket: ListenBackLog, AcceptFilter.
pub(super) fn set_options(socket: &TcpListener, listener: &Listener) {
    let reference = SockRef::from(socket);
    // A failure of either only makes serving slower.
    let _ = reference.listen(backlog(listener));
    let wait_s = match listener.accept_filter {
        AcceptFilter::Data => DEFER_ACCEPT_S,
        AcceptFilter::None => 0,
    };
    let _ = defer_accept(socket, wait_s);
    set_buffers(reference, listener);
}

/// SendBufferSize and ReceiveBufferSize, inherited by connections. The kernel's own, adaptive sizes
/// can't be restored on a socket; a restart that removes the lines keeps the values.
fn set_buffers(socket: SockRef<'_>, listener: &Listener) {
    let size = |bytes: u32| usize::try_from(bytes).ok().filter(|bytes| *bytes > 0);
    if let Some(bytes) = size(listener.send_buffer_bytes) {
        let _ = socket.set_send_buffer_size(bytes);
    }
    if let Some(bytes) = size(listener.receive_buffer_bytes) {
        let _ = socket.set_recv_buffer_size(bytes);
    }
}

/// The number of connections queued on a listening socket; 0 if the kernel does not report it.
pub(super) fn queued(socket: &TcpListener) -> usize {
    // SAFETY: the structure consists of integers, for which zero is valid.
    let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
    let mut length = size_of_val(&info) as libc::socklen_t;
    // SAFETY: the descriptor is open; the kernel writes at most `length` bytes, which is the size
    // of `info`, and both outlive the call.
    let done = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut info).cast(),
            &raw mut length,
        )
    };
    // On a listening socket the field is the length of its queue (`tcp_get_info`).
    if done == 0 { usize::try_from(info.tcpi_unacked).unwrap_or(0) } else { 0 }
}

fn defer_accept(socket: &TcpListener, wait_s: u32) -> io::Result<()> {
    let wait_s = libc::c_int::try_from(wait_s).unwrap_or(libc::c_int::MAX);
    set_integer(socket, libc::IPPROTO_TCP, libc::TCP_DEFER_ACCEPT, wait_s)
}

/// Sets an integer socket option that the libraries in use don't provide.
pub(super) fn set_integer(
    socket: &TcpListener,
    level: libc::c_int,
    option: libc::c_int,
    value: libc::c_int,
) -> io::Result<()> {
    // SAFETY: the descriptor is open for the life of the borrow; the option's value is an int that
    // outlives the call, and its length is passed.
    let done = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            (&raw const value).cast(),
            size_of_val(&value) as libc::socklen_t,
        )
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Makes the kernel drop the segments that open a connection (SYN) and nothing else. The queue can
/// then be emptied before the socket is closed, and a late client repeats its SYN and is refused,
/// instead of being reset after its connection was established.
pub(super) fn refuse_new_connections(socket: &TcpListener) -> io::Result<()> {
    const FLAGS_OFFSET: u32 = 13;
    const SYN: u32 = 0x02;
    let instruction = |code: u32, k: u32, jt: u8, jf: u8| SockFilter::new(code as u16, jt, jf, k);
    SockRef::from(socket).attach_filter(&[
        instruction(libc::BPF_LD | libc::BPF_B | libc::BPF_ABS, FLAGS_OFFSET, 0, 0),
        instruction(libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K, SYN, 0, 1),
        instruction(libc::BPF_RET | libc::BPF_K, 0, 0, 0),
        instruction(libc::BPF_RET | libc::BPF_K, u32::MAX, 0, 0),
    ])
}

/// The listening TCP sockets passed by systemd (sd_listen_fds).
pub(super) fn inherited() -> Vec<TcpListener> {
    let Ok(descriptors) = sd_notify::listen_fds() else { return Vec::new() };
    descriptors
        .filter_map(|descriptor| {
            // SAFETY: LISTEN_FDS with our LISTEN_PID states that this descriptor was opened for
            // this process, which takes it here and nowhere else.
            let socket = unsafe { Socket::from_raw_fd(descriptor) };
            let is_listener = socket.is_listener().unwrap_or(false);
            let is_tcp = socket.protocol().ok().flatten() == Some(Protocol::TCP);
            (is_listener && is_tcp && socket.set_nonblocking(true).is_ok())
                .then(|| TcpListener::from(socket))
        })
        .collect()
}

/// Whether an inherited socket matches a `Listen` line.
pub(super) fn is_at(socket: &TcpListener, address: ListenAddress) -> bool {
    let Ok(bound) = socket.local_addr() else { return false };
    match address {
        ListenAddress::Any { port } => bound.port() == port && bound.ip().is_unspecified(),
        ListenAddress::Socket(wanted) => bound == wanted,
    }
}
