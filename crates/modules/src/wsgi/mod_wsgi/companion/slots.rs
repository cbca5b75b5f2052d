//! The shared memory of an application group: the lanes of loops, and the places of processes.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use ::wsgi::{Geometry, Region};
use mpm::companion::Question;
use rustix::event::epoll;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::{GroupPlan, Tools};
use crate::wsgi::mod_wsgi::lane::{LOST, RETIRED};
use crate::wsgi::mod_wsgi::offer::GROWS;
use crate::wsgi::mod_wsgi::runtime::{BACKLOG, SLOTS};

/// Slots beyond what may wait and run: for what several loops put there at once, and for responses
/// whose worker is done.
const SLOTS_SPARE: usize = 64;

/// Places beyond the number of processes: their successors, and those that still end.
const PLACES_SPARE: usize = 8;

/// Lanes beyond the number of loops that work: those of children that end.
const LANES_SPARE: usize = 64;

/// The shared memory of an application group.
pub(super) struct Slots {
    region: Region,
    lanes: Vec<Option<Holder>>,
    places: Vec<bool>,
    flags: u32,
}

/// A loop that has a lane.
struct Holder {
    bell: OwnedFd,
    lease: OwnedFd,
    identifier: u64,
}

/// What a loop tells by its lease.
pub(super) enum Notice {
    /// Requests wait, and no thread is idle.
    Starving,
    /// It has ended; the number of its lane.
    Gone(u16),
}

impl Slots {
    /// Creates the memory of an application group.
    ///
    /// # Errors
    /// There is none.
    pub fn create(group: &GroupPlan, loops_max: usize) -> io::Result<Slots> {
        let backlog = group.daemon.as_ref().and_then(|daemon| daemon.number("listen-backlog"));
        let backlog = backlog.and_then(|most| usize::try_from(most).ok()).unwrap_or(BACKLOG);
        let slots = backlog + group.processes_max * group.threads.max(1) + SLOTS_SPARE;
        let places = group.processes_max * 2 + PLACES_SPARE;
        let region = Region::create(Geometry::new(slots, loops_max + LANES_SPARE, places))?;
        let geometry = region.geometry();
        Ok(Slots {
            lanes: (0..geometry.lanes()).map(|_| None).collect(),
            places: vec![false; geometry.processes() as usize],
            region,
            flags: if group.processes_max > group.processes { GROWS } else { 0 },
        })
    }

    /// What a worker needs to map it.
    pub fn geometry(&self) -> Geometry {
        self.region.geometry()
    }

    /// Gives the asking loop a lane; returns its number.
    pub fn assign(&mut self, tools: &mut Tools<'_>, mut question: Question) -> Option<u16> {
        let free = self.lanes.iter().position(Option::is_none);
        let ([_, lease], Some(lane)) = (question.descriptors.as_slice(), free) else {
            question.answer(&[b"too many loops"]);
            return None;
        };
        let identifier = tools.identifier();
        let data = epoll::EventData::new_u64(identifier);
        if epoll::add(tools.epoll, lease, data, epoll::EventFlags::IN).is_err() {
            return None;
        }
        let lease = question.descriptors.pop()?;
        let bell = question.descriptors.pop()?;
        let number = u16::try_from(lane).ok()?;
        let size = self.region.geometry();
        let numbers = [u32::from(number), self.flags, size.slots(), size.lanes(), size.processes()];
        let mut message = SLOTS.to_vec();
        message.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        question.answer_with(&message, self.region.as_fd());
        *self.lanes.get_mut(lane)? = Some(Holder { bell, lease, identifier });
        Some(number)
    }

    /// The bells of all loops.
    pub fn bells(&self) -> impl Iterator<Item = (u16, BorrowedFd<'_>)> {
        let bell = |(lane, holder): (u16, &'_ Option<Holder>)| holder.as_ref().map(|_| lane);
        (0..).zip(&self.lanes).filter_map(bell).filter_map(|lane| Some((lane, self.bell(lane)?)))
    }

    /// The bell of a loop.
    pub fn bell(&self, lane: u16) -> Option<BorrowedFd<'_>> {
        Some(self.lanes.get(usize::from(lane))?.as_ref()?.bell.as_fd())
    }

    /// What a loop tells, if the identifier is a lease's.
    pub fn notice(&mut self, identifier: u64) -> Option<Notice> {
        let is_it = |holder: &Option<Holder>| {
            holder.as_ref().is_some_and(|holder| holder.identifier == identifier)
        };
        let lane = self.lanes.iter().position(is_it)?;
        let place = self.lanes.get_mut(lane)?;
        let lease = &place.as_ref()?.lease;
        if matches!(recv(lease, &mut [0u8; 8][..], RecvFlags::DONTWAIT), Ok((_, 1..))) {
            return Some(Notice::Starving);
        }
        *place = None;
        let lane = u16::try_from(lane).ok()?;
        self.region.bury_lane(lane);
        if self.is_waiting() {
            self.region.wake_worker();
        }
        Some(Notice::Gone(lane))
    }

    /// Whether requests wait.
    pub fn is_waiting(&self) -> bool {
        self.waiting() > 0
    }

    /// How many requests wait.
    pub fn waiting(&self) -> usize {
        self.region.queued()
    }

    /// Whether a thread is idle: it will take a request that waits.
    pub fn has_idle(&self) -> bool {
        self.region.has_sleepers()
    }

    /// How many threads have a request.
    pub fn busy(&self) -> usize {
        self.region.busy()
    }

    /// Has loops tell again that requests wait.
    pub fn forget_starving(&self) {
        self.region.forget_starving();
    }

    /// A place for a process.
    pub fn take_place(&mut self) -> Option<u16> {
        let place = self.places.iter().position(|is_taken| !is_taken)?;
        *self.places.get_mut(place)? = true;
        u16::try_from(place).ok()
    }

    /// A process has ended: its requests are lost, which all loops look for.
    pub fn leave_place(&mut self, place: u16) {
        self.region.bury_worker(place);
        if let Some(is_taken) = self.places.get_mut(usize::from(place)) {
            *is_taken = false;
        }
        self.tell_all(LOST);
        if self.is_waiting() {
            self.region.wake_worker();
        }
    }

    /// Tells all loops that no more requests are taken.
    pub fn retire(&self) {
        self.tell_all(RETIRED);
    }

    /// Tells all loops something by their leases. Their bells are no way: workers have the same
    /// open files, and could make this wait.
    fn tell_all(&self, notice: u8) {
        for holder in self.lanes.iter().flatten() {
            let _ = send(&holder.lease, &[notice], SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
        }
    }
}

impl AsFd for Slots {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.region.as_fd()
    }
}
