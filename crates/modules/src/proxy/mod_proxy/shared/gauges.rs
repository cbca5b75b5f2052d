//! Connections of all processes to a worker, and the requests that wait for one: each process
//! writes its own once a second, and they are added up for a page that shows them.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use server::host::Server;

use super::region::{self, All, Region};

/// The numbers of a process for a worker, in its row of the region.
#[derive(Clone, Copy)]
pub struct OwnGauges {
    /// Connections, those in use included.
    pub(super) open: &'static AtomicU64,
    /// Connections that no request uses. Each loop adds its own.
    pub(super) idle: &'static AtomicU64,
    /// Requests that wait.
    pub(super) waiting: &'static AtomicU64,
}

impl OwnGauges {
    /// Sets what the process knows as a whole.
    pub fn set(&self, open: u64, waiting: u64) {
        self.open.store(open, Relaxed);
        self.waiting.store(waiting, Relaxed);
    }

    /// The process has ended.
    pub(super) fn clear(&self) {
        [self.open, self.idle, self.waiting].iter().for_each(|gauge| gauge.store(0, Relaxed));
    }

    /// Replaces what a loop has told before.
    pub fn replace_idle(&self, before: usize, now: usize) {
        // Wraps in between, if there are fewer.
        self.idle.fetch_add((now as u64).wrapping_sub(before as u64), Relaxed);
    }
}

/// The sum of all processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gauges {
    /// Connections, those in use included.
    pub open: u64,
    /// Connections that no request uses.
    pub idle: u64,
    /// Requests that wait for a connection.
    pub waiting: u64,
}

/// Where the gauges of all workers are.
pub struct AllGauges(Option<Region>);

impl AllGauges {
    /// Those of a configuration.
    pub fn of(server: &Server) -> AllGauges {
        AllGauges(region::of(&All::of(server)))
    }

    /// The sum for the worker of this number.
    pub fn of_worker(&self, number: usize) -> Gauges {
        let mut sum = Gauges::default();
        let Some(region) = &self.0 else { return sum };
        for counts in region.rows().filter_map(<[AtomicU64]>::split_first).map(|(_, counts)| counts)
        {
            let Some(own) = region.counts(counts, number) else { continue };
            sum.open += own.gauges.open.load(Relaxed);
            sum.idle += own.gauges.idle.load(Relaxed);
            sum.waiting += own.gauges.waiting.load(Relaxed);
        }
        sum
    }
}
