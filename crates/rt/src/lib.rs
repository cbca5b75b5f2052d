//! One thread, one event loop: listeners, sockets, timers, sendfile, TLS, file watches, and a
//! bounded pool for blocking work.
//!
//! Everything that belongs to a [`Loop`] stays on its thread (`Rc`, no locks). The loops of a
//! process share the [`Watcher`] and the [`BlockingPool`]. Each loop also has a [`Load`], which the
//! other loops read, and an [`Inbox`], which they fill. This crate knows nothing of HTTP or of the
//! configuration.
//!
//! A server that uses this crate must ignore `SIGPIPE`, as Rust programs do by default: sendfile(2)
//! has no flag that suppresses the signal.

pub mod addresses;
pub mod bell;
pub mod blocking;
pub mod blocking_acceptor;
pub mod clock;
pub mod file;
pub mod inbox;
mod lingering_close;
pub mod listener;
pub mod load;
pub mod memory;
pub mod names;
pub mod pipe;
pub mod pool;
pub mod reactor;
pub mod reply;
pub mod shared_cache;
mod socket;
pub mod stream;
pub mod timers;
pub mod tls;
pub mod turn;
pub mod watch;

pub use addresses::{Addresses, ConnectError};
pub use bell::{Alarm, Bell};
pub use blocking::{BlockingLimits, BlockingPool, PoolError, Work};
pub use blocking_acceptor::{BlockingAcceptor, WakeAll};
pub use clock::Clock;
pub use inbox::Inbox;
pub use listener::{AcceptError, Accepted, Acceptor};
pub use load::Load;
pub use pipe::Pipe;
pub use pool::{Pool, Pooled};
pub use reactor::{Counters, Handle, Loop};
pub use reply::{receive, receive_descriptor};
pub use shared_cache::{SHARED_CACHE_BYTES, SharedCache};
pub use stream::{Carried, ConnectOptions, Detached, Remote, Stream, tunnel};
pub use timers::{Deadline, Sleep};
pub use tls::{TlsError, TlsInfo};
pub use turn::{Drained, after_sockets, end_turn};
pub use watch::{ChangeSource, DirWatch, NAME_CLASSES, WatchId, Watcher, class_of};
