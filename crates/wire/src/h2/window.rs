//! Flow control (RFC 9113 section 5.2).

/// The largest window.
pub(super) const LARGEST: i64 = 0x7fff_ffff;

/// The window of a stream or connection before any setting.
pub(super) const INITIAL_BYTES: u32 = 65_535;

/// How much may be received, and how much of it has been used up.
#[derive(Debug)]
pub(super) struct ReceiveWindow {
    size: u32,
    /// What the peer may still send.
    left: i64,
    /// What was received and is no longer needed, but not yet granted again.
    credit: u32,
    /// How often it was opened again.
    openings: u32,
}

impl ReceiveWindow {
    pub fn new(size: u32) -> ReceiveWindow {
        ReceiveWindow { size, left: i64::from(size), credit: 0, openings: 0 }
    }

    /// Takes received bytes; false if the peer has sent more than it may. No bytes are never too
    /// many, also where a setting has made the window negative.
    pub fn take(&mut self, bytes: usize) -> bool {
        self.left -= bytes as i64;
        bytes == 0 || self.left >= 0
    }

    /// Changes what the peer may send: by a setting that it does not know yet, or comes to know.
    pub fn change(&mut self, bytes: i64) {
        self.left += bytes;
    }

    /// Gives bytes back; returns what to grant the peer now. Small amounts gather until they are
    /// half of the window.
    pub fn give_back(&mut self, bytes: usize) -> Option<u32> {
        self.credit += bytes as u32;
        if self.credit < self.size / 2 {
            return None;
        }
        self.openings = self.openings.wrapping_add(u32::from(!self.is_open()));
        self.left += i64::from(self.credit);
        Some(std::mem::take(&mut self.credit))
    }

    /// Whether the peer may send anything.
    pub fn is_open(&self) -> bool {
        self.left > 0
    }

    pub fn openings(&self) -> u32 {
        self.openings
    }
}

/// How much may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SendWindow(i64);

impl SendWindow {
    pub fn new(size: u32) -> SendWindow {
        SendWindow(i64::from(size))
    }

    /// The bytes that may be sent now. The window is negative after a setting has lowered it.
    pub fn available(self) -> usize {
        usize::try_from(self.0).unwrap_or(0)
    }

    pub fn take(&mut self, bytes: usize) {
        self.0 -= bytes as i64;
    }

    /// Adds what the peer grants; false if the window becomes too large.
    pub fn grant(&mut self, bytes: i64) -> bool {
        self.0 += bytes;
        self.0 <= LARGEST
    }
}
