//! The region: its layout, and who uses which part of it.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};

use server::host::Server;

use super::gauges::OwnGauges;
use super::{balancer_state, persist, state};
use crate::lease;
use crate::proxy::mod_proxy::workers::{Balancer, Worker, Workers};
use crate::proxy::mod_proxy::{Proxy, Settings};

/// Raised when the layout changes: regions outlive the executable.
const LAYOUT: u32 = 3;
/// The processes whose requests in progress are counted apart.
const ROWS: usize = 512;
/// The words before the balancers; the first tells whether the region has been filled.
const HEAD: usize = 8;

/// The counts that a process has of a worker.
const KINDS: usize = 5;

/// The word of the lease.
const LEASE: usize = 1;

/// The regions of this process, for what is to be done when a child ends.
static REGIONS: Mutex<Vec<Region>> = Mutex::new(Vec::new());

/// The words of a configuration: a head, its balancers, its workers, and a row for each process.
#[derive(Clone, Copy)]
pub(super) struct Region {
    /// [`All::identity`]
    identity: u64,
    words: &'static [AtomicU64],
    balancers: usize,
    workers: usize,
}

/// The counts of a process for a worker.
pub(super) struct OwnCounts {
    /// Requests in progress.
    pub busy: &'static AtomicU64,
    /// Connections, if all processes share a limit (`maxtotal`).
    pub open: &'static AtomicU64,
    pub gauges: OwnGauges,
}

impl Region {
    fn balancer(&self, number: usize) -> Option<&'static [AtomicU64; balancer_state::WORDS]> {
        let at = HEAD + number * balancer_state::WORDS;
        self.words.get(at..)?.first_chunk().filter(|_| number < self.balancers)
    }

    fn worker(&self, number: usize) -> Option<&'static [AtomicU64; state::WORDS]> {
        let at = HEAD + self.balancers * balancer_state::WORDS + number * state::WORDS;
        self.words.get(at..)?.first_chunk().filter(|_| number < self.workers)
    }

    /// The counts of one worker in the row of a process.
    pub(super) fn counts(&self, counts: &'static [AtomicU64], number: usize) -> Option<OwnCounts> {
        let of = |kind: usize| counts.get(kind * self.workers + number);
        let gauges = OwnGauges { open: of(2)?, idle: of(3)?, waiting: of(4)? };
        Some(OwnCounts { busy: of(0)?, open: of(1)?, gauges })
    }

    /// The rows of processes: each the id of its process, and [`KINDS`] counts by worker.
    pub(super) fn rows(&self) -> impl Iterator<Item = &'static [AtomicU64]> {
        let at = words_before_rows(self.balancers, self.workers);
        self.words.get(at..).unwrap_or_default().chunks_exact(row_words(self.workers))
    }

    /// Subtracts what a process that has ended counted, and frees the locks that it held.
    fn forget(&self, pid: u32) {
        for row in self.rows() {
            let Some((owner, counts)) = row.split_first() else { continue };
            if owner.load(Relaxed) != u64::from(pid) {
                continue;
            }
            for number in 0..self.workers {
                if let (Some(words), Some(own)) = (self.worker(number), self.counts(counts, number))
                {
                    state::forget(words, own.busy.swap(0, Relaxed), own.open.swap(0, Relaxed));
                    own.gauges.clear();
                }
            }
            owner.store(0, Relaxed);
        }
        for number in 0..self.balancers {
            if let Some(words) = self.balancer(number) {
                balancer_state::release(words, pid);
            }
        }
    }
}

const fn row_words(workers: usize) -> usize {
    // Rows begin with a cache line: each is another process's.
    (1 + KINDS * workers).next_multiple_of(8)
}

const fn words_before_rows(balancers: usize, workers: usize) -> usize {
    HEAD + balancers * balancer_state::WORDS + workers * state::WORDS
}

/// Makes the region of a configuration, before the fork. A configuration with the same workers gets
/// the same region, so that requests of two generations are counted together. The rest of its state
/// is set to what the configuration says, unless BalancerPersist is on.
pub fn share(server: &Server, shared: &mpm::Shared) -> Result<(), String> {
    let all = All::of(server);
    if all.workers.is_empty() {
        return Ok(());
    }
    let balancers = all.balancers.iter().map(|one| one.number + 1).max().unwrap_or(0);
    let last = |worker: &Arc<Worker>| worker.number + 1;
    let workers = all.workers.iter().map(last).max().unwrap_or(0);
    let count = words_before_rows(balancers, workers) + ROWS * row_words(workers);
    let identity = all.identity();
    let words = shared.words(&format!("proxy-{identity:016x}"), count);
    let words = words.map_err(|error| format!("mod_proxy: no shared memory: {error}"))?;
    let region = Region { identity, words, balancers, workers };
    let is_new = words.first().is_none_or(|word| word.swap(1, Relaxed) == 0);
    all.fill(&region, is_new || !all.persists);
    if is_new && all.persists {
        persist::restore(server, &all);
    }
    let mut regions = REGIONS.lock().unwrap_or_else(PoisonError::into_inner);
    regions.retain(|other| !std::ptr::eq(other.words, words));
    regions.push(region);
    Ok(())
}

/// Whether this process does the work that one process does, from now on or still.
pub fn take_lease(now_s: u64) -> bool {
    let regions = REGIONS.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(word) = regions.last().and_then(|region| region.words.get(LEASE)) else {
        return false;
    };
    lease::take(word, now_s)
}

/// A child has ended: what it counted as in progress is not any more.
pub(super) fn forget(pid: u32) {
    let regions = REGIONS.lock().unwrap_or_else(PoisonError::into_inner).clone();
    for region in regions {
        region.forget(pid);
    }
}

/// The region of these workers.
pub(super) fn of(all: &All) -> Option<Region> {
    let identity = all.identity();
    let regions = REGIONS.lock().unwrap_or_else(PoisonError::into_inner);
    regions.iter().find(|region| region.identity == identity).copied()
}

/// The workers and balancers of all hosts, each once or more.
#[derive(Default)]
pub(super) struct All {
    pub workers: Vec<Arc<Worker>>,
    pub balancers: Vec<Arc<Balancer>>,
    pub persists: bool,
}

impl All {
    pub(super) fn of(server: &Server) -> All {
        let mut all = All::default();
        let Some(slot) = server.registry.slot_of::<Proxy>() else { return all };
        for host in &server.hosts {
            let Some(settings) = host.server.get::<Settings>(slot) else {
                continue;
            };
            all.add(&settings.workers.0);
            all.persists |= settings.persists.or(false);
        }
        all.workers.sort_by_key(|worker| worker.number);
        all.workers.dedup_by_key(|worker| worker.number);
        all.balancers.sort_by_key(|balancer| balancer.number);
        all.balancers.dedup_by_key(|balancer| balancer.number);
        all
    }

    fn add(&mut self, workers: &Workers) {
        self.workers.extend_from_slice(&workers.own);
        for balancer in &workers.balancers {
            self.workers.extend(balancer.configured.iter().cloned());
            self.workers.extend(balancer.spares.iter().map(|spare| spare.blank.clone()));
            self.balancers.push(balancer.clone());
        }
    }

    /// What makes another configuration another one.
    fn identity(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (LAYOUT, ROWS, env!("CARGO_PKG_VERSION")).hash(&mut hasher);
        for worker in &self.workers {
            (worker.number, &worker.name).hash(&mut hasher);
        }
        for balancer in &self.balancers {
            let methods = balancer.methods.iter().map(|(name, _)| *name);
            (balancer.number, &balancer.name, methods.collect::<Vec<_>>()).hash(&mut hasher);
        }
        hasher.finish()
    }

    fn fill(&self, region: &Region, resets: bool) {
        for worker in &self.workers {
            if let Some(words) = region.worker(worker.number) {
                worker.state.share(words, resets.then_some(&worker.parameters));
            }
        }
        for balancer in &self.balancers {
            if let Some(words) = region.balancer(balancer.number) {
                let first = (&balancer.parameters, balancer.method);
                balancer.state.share(words, resets.then_some(first));
            }
        }
    }
}
