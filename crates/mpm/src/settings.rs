//! What the supervisor needs from a configuration.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::affinity::Affinity;
use crate::companion::Companion;
use crate::shape::Shape;

/// Apache's `ListenBackLog` default.
pub const DEFAULT_BACKLOG: u32 = 511;

/// The part of a configuration that the supervisor uses.
#[derive(Clone, Debug)]
pub struct Settings {
    /// One per `Listen` line, in the order of the file.
    pub listeners: Vec<Listener>,
    /// `User` and `Group`. `None` if the program was not started as root or keeps its user; applied
    /// by children, and only if the supervisor runs as root.
    pub identity: Option<Identity>,
    /// `ChrootDir` of mod_unixd: children change their root directory to it before they drop
    /// privileges.
    pub chroot: Option<PathBuf>,
    /// `CoreDumpDirectory`: children may dump core, and run in this directory.
    pub core_dump_directory: Option<PathBuf>,
    /// `PidFile`, an absolute path.
    pub pid_file: PathBuf,
    /// How many processes the server starts with, and how many loops or threads each has.
    pub shape: Shape,
    /// The reserve of idle threads and the limit on processes; `None` if the number of processes is
    /// fixed (event, loop).
    pub spare: Option<Spare>,
    /// How many listening sockets an address has in shapes that share them
    /// (`ListenCoresBucketsRatio`); at least 1.
    pub listener_buckets: usize,
    /// How many connections with a request all loops may have together; at the limit they accept no
    /// more (event, loop).
    pub admitted: usize,
    /// With this many, they are within `MinSpareThreads` of the limit.
    pub nearly_admitted: usize,
    /// Threads of a process for work that would block a loop (event, loop).
    pub blocking_threads: usize,
    /// `ThreadStackSize`, bytes; `None` for the default.
    pub thread_stack_bytes: Option<usize>,
    /// `ServerLimit`: the most processes there may be. If a restart raises it, the scoreboard
    /// grows.
    pub server_limit: usize,
    /// `GracefulShutdownTimeout`; `None` (0 in the file) waits indefinitely.
    pub graceful_shutdown_timeout: Option<Duration>,
    /// `LoopStallTimeout`: a process with a loop that has not turned for this long is replaced;
    /// `None` disables it.
    pub stall_limit: Option<Duration>,
    /// `MaxConnectionsPerChild`, 0 for no limit. Children call
    /// [`Control::exhausted`](crate::child::Control::exhausted) when they reach it.
    pub max_connections_per_child: u64,
    /// The labels of the virtual hosts whose responses are counted individually; empty if nothing
    /// in the configuration shows such counters.
    pub counted_hosts: Vec<Vec<u8>>,
    /// `ExtendedStatus`: whether loops record the request in the scoreboard.
    pub extended_status: bool,
    /// `CPUAffinity` and `CPUAffinityAdapt`.
    pub affinity: Affinity,
    /// The companions, started before the children.
    pub companions: Vec<Companion>,
}

/// The reserve of idle threads in shapes whose threads have one connection each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spare {
    /// `MinSpareThreads` (`MinSpareServers`): if fewer are idle, processes are started.
    pub least: usize,
    /// `MaxSpareThreads` (`MaxSpareServers`): if more are idle, processes are ended.
    pub most: usize,
    /// The limit on processes that follows from `MaxRequestWorkers`.
    pub processes_max: usize,
}

/// How the program was started, known from the command line before any configuration is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Detaches from the terminal; the parent exits once the first generation is ready.
    Detach,
    /// `-DFOREGROUND`: stays in the foreground, with children.
    Foreground,
    /// `-X`: stays in the foreground and serves in this process, without children.
    OneProcess,
}

/// A `Listen` line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// Where to listen.
    pub address: ListenAddress,
    /// The protocol named by the line (`https`), or implied by its port. Opaque to this crate.
    pub protocol: Arc<str>,
    /// `ListenBackLog` ([`DEFAULT_BACKLOG`]).
    pub backlog: u32,
    /// `AcceptFilter` for the protocol.
    pub accept_filter: AcceptFilter,
    /// `SendBufferSize`, bytes; 0 for the system's.
    pub send_buffer_bytes: u32,
    /// `ReceiveBufferSize`, bytes; 0 for the system's.
    pub receive_buffer_bytes: u32,
}

/// The address of a `Listen` line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ListenAddress {
    /// `Listen 80`: every address of the host; one socket for IPv6 and IPv4 if the host has IPv6.
    Any {
        /// The port.
        port: u16,
    },
    /// `Listen 192.0.2.1:80`, `Listen [::]:80`. An IPv6 socket also accepts IPv4 if its address is
    /// `::`, as in Apache built with v4-mapped addresses (Debian's is).
    Socket(SocketAddr),
}

impl ListenAddress {
    /// The port.
    pub fn port(&self) -> u16 {
        match self {
            Self::Any { port } => *port,
            Self::Socket(address) => address.port(),
        }
    }
}

impl fmt::Display for ListenAddress {
    /// As Apache's messages name it: `Listen 80` is `[::]:80`.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any { port } => write!(out, "[::]:{port}"),
            Self::Socket(address) => write!(out, "{address}"),
        }
    }
}

/// `AcceptFilter` on Linux.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum AcceptFilter {
    /// `none`: the kernel hands over a connection as soon as it is established.
    None,
    /// `data` (the default for http and https): `TCP_DEFER_ACCEPT`, the kernel waits for the
    /// first bytes.
    #[default]
    Data,
}

/// The children's identity: `User` and `Group`, resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// User id.
    pub user: u32,
    /// Group id.
    pub group: u32,
    /// All groups of the user, the primary one included. Resolved when the configuration is read,
    /// so that no child has to load the libraries for it.
    pub groups: Vec<u32>,
}
