//! Rebalancing between the loops of a process: a loop with too much work hands some of it over.
//!
//! `mpm::affinity::rebalance` decides what migrates, from what a loop and one of its peers did in a
//! window of time. The peer is the less busy of two that are picked at random: looking at all of
//! them, and all loops choosing the same one, would be worse in a process of many loops.

mod rebalancer;
mod window;

use std::sync::Arc;

use http::connection::Migration;
use mpm::{LoopSlot, LoopSpec};
use rt::{Inbox, Load};

pub(super) use rebalancer::Rebalancer;

use super::loops::Admission;

/// Connections on their way to one loop at most.
const INBOX_LIMIT: usize = 64;
/// A loop whose current turn takes longer than this, µs, is handed nothing.
const STUCK_US: u64 = 100_000;

/// A loop as the others of its process see it.
pub(super) struct PeerLoop {
    /// Its number over all processes.
    number: usize,
    slot: LoopSlot,
    load: Arc<Load>,
    inbox: Arc<Inbox<Migration>>,
    limits: Limits,
}

/// What a loop of the process may hold.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    /// The most open connections.
    pub room: usize,
    /// The most connections with a request.
    pub admission: Admission,
}

impl PeerLoop {
    /// The loops of a process, if there are several.
    pub(super) fn all_of(specs: &[LoopSpec], limits: Limits) -> Option<Arc<[PeerLoop]>> {
        let of = |spec: &LoopSpec| PeerLoop {
            number: spec.number,
            slot: spec.slot,
            load: Arc::default(),
            inbox: Arc::new(Inbox::new(INBOX_LIMIT)),
            limits,
        };
        (specs.len() > 1).then(|| specs.iter().map(of).collect())
    }

    /// Where the loop publishes its load.
    pub(super) fn load(&self) -> Arc<Load> {
        self.load.clone()
    }

    /// Whether it would soon serve a connection handed to it.
    fn can_take(&self) -> bool {
        self.inbox.has_room() && !self.is_stuck() && !self.is_full()
    }

    fn is_stuck(&self) -> bool {
        self.load.turn_us() >= STUCK_US
    }

    fn is_full(&self) -> bool {
        let gauges = self.slot.connections();
        let busy = gauges.reading.now() + gauges.writing.now();
        let is_at = |count: u64, most: usize| count >= u64::try_from(most).unwrap_or(u64::MAX);
        is_at(gauges.open.now(), self.limits.room) || is_at(busy, self.limits.admission.most)
    }

    fn connections(&self) -> usize {
        usize::try_from(self.slot.connections().open.now()).unwrap_or(usize::MAX)
    }
}

/// All loops of a process, and which of them this is.
#[derive(Clone)]
struct PeerLoops {
    all: Arc<[PeerLoop]>,
    own: usize,
}

impl PeerLoops {
    fn own(&self) -> Option<&PeerLoop> {
        self.all.get(self.own)
    }

    /// Takes back connections handed to loops that are now stuck.
    fn unclaimed(&self) -> impl Iterator<Item = Migration> + '_ {
        let others = self.all.iter().enumerate().filter(|(at, _)| *at != self.own);
        let stuck = others.filter(|(_, other)| other.inbox.waiting() > 0 && other.is_stuck());
        stuck.flat_map(|(_, other)| std::iter::from_fn(|| other.inbox.take_now()))
    }
}

#[cfg(test)]
mod tests;
