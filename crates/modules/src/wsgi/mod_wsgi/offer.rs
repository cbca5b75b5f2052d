//! How a loop gets a lane: it offers a bell and a lease, and the companion answers with a region.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;

use ::wsgi::{Geometry, Region};
use rt::{Bell, Pipe};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use super::lane::Lane;

/// A flag of the companion's answer.
pub(super) const GROWS: u32 = 1;

/// What the companion needs for a lane of this loop.
pub(super) struct Offer {
    bell: Bell,
    own: OwnedFd,
    /// The companion's end.
    pub theirs: OwnedFd,
}

impl Offer {
    /// A bell and a lease of this loop.
    ///
    /// # Errors
    /// There are no descriptors.
    pub fn new() -> io::Result<Offer> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (own, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        Ok(Offer { bell: Bell::new()?, own, theirs })
    }

    /// What the companion is given.
    pub fn bell(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    /// The lane to an application group that the companion has assigned. `answer` is its number,
    /// flags, and the size of the region.
    ///
    /// # Errors
    /// The answer is none, or the region can't be mapped.
    pub fn accept(
        self,
        group: (usize, &[u8]),
        answer: &[u8],
        region: OwnedFd,
    ) -> io::Result<Rc<Lane>> {
        let number = |at: usize| {
            let bytes = answer.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
            bytes.map(u32::from_le_bytes).ok_or(io::ErrorKind::InvalidData)
        };
        let size = |at| number(at).map(|count| count as usize);
        let geometry = Geometry::new(size(8)?, size(12)?, size(16)?);
        let lane = number(0)?;
        if lane >= geometry.lanes() {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let grows = number(4)? & GROWS != 0;
        let region = Region::map(region, geometry)?;
        let number = u16::try_from(lane).map_err(|_| io::ErrorKind::InvalidData)?;
        let ends = (self.bell, Pipe::reader(self.own)?);
        Ok(Lane::open(group, (region, number), ends, grows))
    }
}
