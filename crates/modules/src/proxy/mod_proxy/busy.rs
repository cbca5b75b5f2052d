//! Requests in progress, by worker.

use std::sync::Arc;

use super::shared::State;

/// A request in progress; if its worker is a member of a balancer it is counted until this is
/// dropped.
pub struct Busy(Option<Arc<State>>);

impl Busy {
    /// Counts a request.
    pub fn new(state: &Arc<State>) -> Busy {
        Busy(state.counts.then(|| {
            state.enter();
            state.clone()
        }))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        if let Some(state) = &self.0 {
            state.leave();
        }
    }
}
