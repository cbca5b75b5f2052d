//! When a child starts, and when one has ended.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use server::host::Server;

use super::{lock, region};

/// Takes a row of the region for this process (`child_init`). If none is left, its requests in
/// progress are not subtracted when it is killed.
pub fn started(server: &Arc<Server>) {
    let pid = std::process::id();
    lock::note_process(pid);
    let all = region::All::of(server);
    let Some(region) = region::of(&all) else { return };
    let own = region.rows().find_map(|row| {
        let (owner, counts) = row.split_first()?;
        let taken = owner.compare_exchange(0, pid.into(), Relaxed, Relaxed);
        taken.is_ok().then_some(counts)
    });
    for worker in &all.workers {
        if let Some(own) = own.and_then(|own| region.counts(own, worker.number)) {
            worker.state.count_own(&own);
        }
    }
}

/// What a child that has ended left behind: the supervisor calls this.
pub fn ended(pid: u32) {
    region::forget(pid);
}
