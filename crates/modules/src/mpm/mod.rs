//! Apache's `server/mpm`: the modules that determine the server's shape.
//!
//! One is active at a time. They share one configuration type ([`Settings`]), the directives of
//! several of them are defined once (`rows`), and [`Numbers`] holds the resulting values.

pub mod mpm_event;
pub mod mpm_loop;
pub mod mpm_prefork;
pub mod mpm_worker;

mod listen;
pub(crate) mod numbers;
mod rows;

use server::merge::{Outermost, Setting};
use server::module::Module;
use server::registry::{Registry, Slots};

pub use listen::Listen;
pub use numbers::Numbers;

server::config! {
    /// The configuration of an MPM, which applies to the whole server. Numbers are as written; the
    /// resulting values are in [`Numbers`].
    pub struct Settings {
        /// `Listen`, in order.
        pub listen: Outermost<Vec<Listen>>,
        /// `ListenBacklog`
        pub backlog: Outermost<Setting<u32>>,
        /// `ListenCoresBucketsRatio`
        pub buckets_ratio: Outermost<Setting<u32>>,
        /// `SendBufferSize`, bytes; 0 for the system's default.
        pub send_buffer_bytes: Outermost<Setting<u32>>,
        /// `ReceiveBufferSize`, bytes; 0 for the system's default.
        pub receive_buffer_bytes: Outermost<Setting<u32>>,
        /// `GracefulShutdownTimeout`, seconds; 0 waits forever.
        pub graceful_shutdown_timeout_s: Outermost<Setting<u32>>,
        /// `StartServers`
        pub start_servers: Outermost<Setting<i32>>,
        /// `ServerLimit`
        pub server_limit: Outermost<Setting<i32>>,
        /// `MaxRequestWorkers`
        pub max_request_workers: Outermost<Setting<i32>>,
        /// `MinSpareServers` (prefork) or `MinSpareThreads`.
        pub min_spare: Outermost<Setting<i32>>,
        /// `MaxSpareServers` (prefork) or `MaxSpareThreads`.
        pub max_spare: Outermost<Setting<i32>>,
        /// `ThreadsPerChild`
        pub threads_per_child: Outermost<Setting<i32>>,
        /// `ThreadLimit`
        pub thread_limit: Outermost<Setting<i32>>,
        /// `AsyncRequestWorkerFactor`, in thousandths.
        pub async_factor_thousandths: Outermost<Setting<u32>>,
    }
}

/// The MPMs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Processes with several loops, many connections each.
    Event,
    /// Processes with threads, one connection each.
    Worker,
    /// Processes with one connection each.
    Prefork,
    /// One process with one loop.
    Loop,
}

/// A module that determines a shape.
pub trait Mpm: Module<Server = Settings, Dir = ()> {
    /// The MPM.
    const KIND: Kind;
}

/// The `Listen` lines of a server.
pub fn listens(server: &server::host::Server) -> &[Listen] {
    let active = active(&server.registry, &server.main().server);
    active.map_or(&[], |(_, settings)| settings.listen.0.as_slice())
}

/// The active MPM and its configuration.
pub fn active<'s>(registry: &Registry, slots: &'s Slots) -> Option<(Kind, &'s Settings)> {
    fn of<'s, M: Mpm>(registry: &Registry, slots: &'s Slots) -> Option<(Kind, &'s Settings)> {
        Some((M::KIND, slots.get::<Settings>(registry.slot_of::<M>()?)?))
    }
    of::<mpm_event::Event>(registry, slots)
        .or_else(|| of::<mpm_worker::Worker>(registry, slots))
        .or_else(|| of::<mpm_prefork::Prefork>(registry, slots))
        .or_else(|| of::<mpm_loop::Loop>(registry, slots))
}
