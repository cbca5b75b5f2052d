//! The loops of a process as they see each other: who has too much work gives some of it away.
//!
//! What to give is decided in `mpm::affinity::relief`, by what a loop and one of its neighbours did
//! in a window of time. The neighbour is the one with less to do of two that are looked at by
//! chance: to look at all, and to all choose the same one, would be worse in a process of many.

mod giver;
mod window;

use std::sync::Arc;

use mpm::{LoopSeat, LoopSlot};
use rt::{Inbox, Load};
use server::connection::Gift;

pub(super) use giver::Giver;

use super::loops::Admission;

/// Connections on their way to one loop at most.
const INBOX_LIMIT: usize = 64;
/// A loop that is in the middle of a turn for longer than this, µs, is given nothing.
const STUCK_US: u64 = 100_000;

/// A loop, for others.
pub(super) struct Neighbour {
    /// Its number over all processes.
    number: usize,
    slot: LoopSlot,
    load: Arc<Load>,
    inbox: Arc<Inbox<Gift>>,
    limits: Limits,
}

/// What a loop of the process may hold.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    /// The most connections that it holds open.
    pub room: usize,
    /// How many connections have a request.
    pub admission: Admission,
}

impl Neighbour {
    /// The loops of a process, where there are several.
    pub(super) fn all_of(seats: &[LoopSeat], limits: Limits) -> Option<Arc<[Neighbour]>> {
        let of = |seat: &LoopSeat| Neighbour {
            number: seat.number,
            slot: seat.slot,
            load: Arc::default(),
            inbox: Arc::new(Inbox::new(INBOX_LIMIT)),
            limits,
        };
        (seats.len() > 1).then(|| seats.iter().map(of).collect())
    }

    /// Where the loop says how busy it is.
    pub(super) fn load(&self) -> Arc<Load> {
        self.load.clone()
    }

    /// Whether it would serve what it is given, and soon.
    fn is_willing(&self) -> bool {
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

/// All loops of a process, and which of them looks.
#[derive(Clone)]
struct Neighbours {
    all: Arc<[Neighbour]>,
    own: usize,
}

impl Neighbours {
    fn own(&self) -> Option<&Neighbour> {
        self.all.get(self.own)
    }

    /// What was given to others that stand still now, and that they have not taken.
    fn unclaimed(&self) -> impl Iterator<Item = Gift> + '_ {
        let others = self.all.iter().enumerate().filter(|(at, _)| *at != self.own);
        let stuck = others.filter(|(_, other)| other.inbox.waiting() > 0 && other.is_stuck());
        stuck.flat_map(|(_, other)| std::iter::from_fn(|| other.inbox.take_now()))
    }
}

#[cfg(test)]
mod tests;
