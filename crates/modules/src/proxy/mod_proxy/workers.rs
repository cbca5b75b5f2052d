//! The workers of a configuration: each a backend with its parameters and its state.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU64};

use super::pool::Queue;
use super::scheme::SchemeProvider;
use super::target::Target;
use super::worker::Parameters;

/// A backend (`proxy_worker`).
pub struct Worker {
    /// Its URL, as in logs.
    pub name: Vec<u8>,
    /// The same, in parts.
    pub target: Target,
    /// What the configuration says of it.
    pub parameters: Parameters,
    /// Its scheme; `None` if no loaded module handles it.
    pub scheme: Option<SchemeProvider>,
    /// Whether it stands for any URL without a worker (`proxy:reverse`, `proxy:forward`), of which
    /// no connection is kept.
    pub is_generic: bool,
    /// Its place among the workers of the configuration.
    pub number: usize,
    /// What changes while it serves. Connections outlive the request, and so refer to it.
    pub state: Arc<State>,
}

/// The state of a worker.
#[derive(Default)]
pub struct State {
    /// [`super::status::Status`] bits, those of the configuration at first. Outside of a balancer
    /// errors are ignored unless `status=-I`.
    pub status: AtomicU16,
    /// When it failed last, in seconds of the loop's clock.
    pub failed_at: AtomicU64,
    /// Open connections of this process, idle ones included (`max`).
    pub open: AtomicU64,
    /// Requests that wait for one of these connections.
    pub queue: Queue,
    /// Requests in progress.
    pub busy: AtomicU64,
    /// Requests it was chosen for.
    pub elected: AtomicU64,
    /// Bytes sent to it.
    pub transferred: AtomicU64,
    /// Bytes received from it.
    pub read: AtomicU64,
}
