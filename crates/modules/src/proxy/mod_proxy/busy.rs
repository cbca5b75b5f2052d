//! Requests in progress, by worker.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::workers::State;

/// A request in progress; it is counted until this is dropped.
pub struct Busy(Arc<State>);

impl Busy {
    /// Counts a request.
    pub fn new(state: &Arc<State>) -> Busy {
        state.busy.fetch_add(1, Ordering::Relaxed);
        Busy(state.clone())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.busy.fetch_sub(1, Ordering::Relaxed);
    }
}
