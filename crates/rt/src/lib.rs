//! One core, one loop: listeners, sockets, timers, sendfile, TLS bytes, file watches and a bounded
//! pool for work that blocks.
//!
//! Everything that belongs to a [`Loop`] stays on its thread (`Rc`, no locks). Shared by the loops
//! of one process are the [`Watcher`], the [`BlockingPool`], and of each loop its [`Load`], for the
//! others to read, and its [`Inbox`], for them to fill. Nothing here knows of HTTP or of the
//! configuration.
//!
//! A server that uses this crate ignores `SIGPIPE` (as Rust programs do from the start), because
//! sendfile(2) has no flag that would hold the signal back.

pub mod blocking;
pub mod boxes;
pub mod clock;
pub mod dir_notify;
pub mod door;
mod farewell;
pub mod file;
pub mod inbox;
pub mod listener;
pub mod load;
pub mod names;
pub mod reactor;
mod socket;
pub mod stream;
pub mod timers;
pub mod tls;
pub mod turn;
pub mod watch;

pub use blocking::{BlockingLimits, BlockingPool, PoolError};
pub use boxes::{Pool, Pooled};
pub use clock::Clock;
pub use dir_notify::DirNotify;
pub use door::{Bell, Door};
pub use inbox::Inbox;
pub use listener::{AcceptError, Accepted, Acceptor};
pub use load::Load;
pub use reactor::{Counters, Handle, Loop};
pub use stream::{Detached, Stream};
pub use timers::{Deadline, Sleep};
pub use tls::{TlsError, TlsInfo};
pub use turn::Drained;
pub use watch::{WatchId, Watcher, Witness};
