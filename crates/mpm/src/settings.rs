//! What the supervisor needs to know of a configuration.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::affinity::Affinity;
use crate::shape::Shape;

/// Apache's `ListenBackLog` default.
pub const DEFAULT_BACKLOG: u32 = 511;

/// Everything that the supervisor takes from a configuration.
#[derive(Clone, Debug)]
pub struct Settings {
    /// One per `Listen` line, in the order of the file.
    pub listeners: Vec<Listener>,
    /// `User` and `Group`. `None` when the program was not started as root, or is to stay as it
    /// is; applied by children only when the supervisor runs as root.
    pub identity: Option<Identity>,
    /// `ChrootDir` of mod_unixd: children change their root to it before they drop privileges.
    pub chroot: Option<PathBuf>,
    /// `CoreDumpDirectory`: children may dump core, and run in this directory.
    pub core_dump_directory: Option<PathBuf>,
    /// `PidFile`, an absolute path.
    pub pid_file: PathBuf,
    /// How many processes the server starts with, and how many loops or threads each has.
    pub shape: Shape,
    /// How many idle threads there are, and how many processes at most; `None` where the number of
    /// processes is fixed (event, loop).
    pub spare: Option<Spare>,
    /// How many listening sockets an address has in shapes that share them
    /// (`ListenCoresBucketsRatio`); at least 1.
    pub listener_buckets: usize,
    /// How many connections with a request all loops have together before they take no more
    /// (event, loop).
    pub admitted: usize,
    /// With so many of them they are within `MinSpareThreads` of that.
    pub nearly_admitted: usize,
    /// Threads of one process for work that would hold a loop up (event, loop).
    pub blocking_threads: usize,
    /// `ThreadStackSize`, bytes; `None` for the default.
    pub thread_stack_bytes: Option<usize>,
    /// `ServerLimit`: the most processes there may be. The scoreboard grows where a restart raises
    /// it.
    pub server_limit: usize,
    /// `GracefulShutdownTimeout`; `None` (0 in the file) waits for ever.
    pub graceful_shutdown_timeout: Option<Duration>,
    /// `LoopStallTimeout`: a process with a loop that has not turned for so long is replaced;
    /// `None` never.
    pub stall_limit: Option<Duration>,
    /// `MaxConnectionsPerChild`, 0 for no limit. Handed on to children, which call
    /// [`Control::exhausted`](crate::child::Control::exhausted) when they have had enough.
    pub max_connections_per_child: u64,
    /// The virtual hosts whose answers are counted one by one, by their labels; none where no place
    /// of the configuration shows such counters.
    pub counted_hosts: Vec<Vec<u8>>,
    /// `ExtendedStatus`: whether loops note the request in the scoreboard.
    pub extended_status: bool,
    /// `CPUAffinity` and `CPUAffinityAdapt`.
    pub affinity: Affinity,
}

/// The reserve of idle threads in shapes whose threads have one connection each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spare {
    /// `MinSpareThreads` (`MinSpareServers`): more processes are started when fewer are idle.
    pub least: usize,
    /// `MaxSpareThreads` (`MaxSpareServers`): processes are ended when more are idle.
    pub most: usize,
    /// Processes at most, as `MaxRequestWorkers` says.
    pub processes_max: usize,
}

/// How the program was started; known from the command line before any configuration is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Leaves the terminal; the parent exits once the first generation is ready.
    Detach,
    /// `-DFOREGROUND`: stays, with children.
    Foreground,
    /// `-X`: stays, and serves in this one process without children.
    OneProcess,
}

/// A `Listen` line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// Where to listen.
    pub address: ListenAddress,
    /// The protocol named by the line (`https`), or what its port implies. Opaque here.
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
    /// `Listen 80`: every address of the host, IPv6 and IPv4 by one socket where there is IPv6.
    Any {
        /// The port.
        port: u16,
    },
    /// `Listen 192.0.2.1:80`, `Listen [::]:80`. An IPv6 socket takes IPv4 too when its address
    /// is `::`, as in Apache built with v4-mapped addresses (Debian's is).
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
    /// As Apache names it in messages: `[::]:80` is what `Listen 80` asks for.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any { port } => write!(out, "[::]:{port}"),
            Self::Socket(address) => write!(out, "{address}"),
        }
    }
}

/// `AcceptFilter`, as Linux has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum AcceptFilter {
    /// `none`: the kernel hands over a connection as soon as it is established.
    None,
    /// `data` (the default for http and https): `TCP_DEFER_ACCEPT`, the kernel waits for the
    /// first bytes.
    #[default]
    Data,
}

/// Who the children are: `User` and `Group`, looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// User id.
    pub user: u32,
    /// Group id.
    pub group: u32,
    /// All groups of the user, this one among them. Looked up when the configuration is read: a
    /// child that did it would load the libraries for it, each anew.
    pub groups: Vec<u32>,
}
