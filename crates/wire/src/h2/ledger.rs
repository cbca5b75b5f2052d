//! The budget for frames that cost work and bring no progress.
//!
//! Each such event has a price, whatever its kind: an attack that mixes kinds is bounded as one
//! that does not. Responses and payload earn some of it back, and so does time. Once all of it is
//! spent the connection ends with ENHANCE_YOUR_CALM.

/// The budget of a connection.
const CAPACITY: u32 = 2000;

/// What each second earns.
const PER_SECOND: u32 = 100;

/// What a complete response earns.
const PER_RESPONSE: u32 = 10;

/// Bytes of payload, in either direction, that earn 1.
const BYTES_PER_POINT: usize = 1024;

/// What has a price.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A frame without payload for a request: PING, SETTINGS, PRIORITY, WINDOW_UPDATE, unknown
    /// ones.
    Frame,
    /// A DATA frame without data that does not end its stream.
    Empty,
    /// A stream that either end resets, or that is refused.
    Reset,
}

impl Event {
    fn price(self) -> u32 {
        match self {
            Event::Frame => 1,
            Event::Empty => 2,
            Event::Reset => 10,
        }
    }
}

/// What is left of the budget.
#[derive(Debug)]
pub struct Ledger {
    left: u32,
    /// Bytes that have not yet earned a point.
    bytes: usize,
    /// When time last earned something, on the caller's clock.
    since_ms: u64,
}

impl Ledger {
    /// Returns a full budget.
    pub fn new(now_ms: u64) -> Ledger {
        Ledger { left: CAPACITY, bytes: 0, since_ms: now_ms }
    }

    /// Pays for an event; false if the budget does not suffice.
    pub fn pay(&mut self, event: Event) -> bool {
        let left = self.left.checked_sub(event.price());
        self.left = left.unwrap_or(0);
        left.is_some()
    }

    /// A response was sent completely.
    pub fn responded(&mut self) {
        self.earn(PER_RESPONSE);
    }

    /// Payload was received or sent.
    pub fn carried(&mut self, bytes: usize) {
        self.bytes += bytes;
        let points = self.bytes / BYTES_PER_POINT;
        self.bytes %= BYTES_PER_POINT;
        self.earn(u32::try_from(points).unwrap_or(CAPACITY));
    }

    /// Time has passed.
    pub fn tick(&mut self, now_ms: u64) {
        let seconds = now_ms.saturating_sub(self.since_ms) / 1000;
        if seconds > 0 {
            self.since_ms += seconds * 1000;
            let seconds = u32::try_from(seconds).unwrap_or(CAPACITY);
            self.earn(seconds.saturating_mul(PER_SECOND));
        }
    }

    fn earn(&mut self, points: u32) {
        self.left = self.left.saturating_add(points).min(CAPACITY);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resets_use_the_budget_up_and_time_restores_it() {
        let mut ledger = Ledger::new(0);
        assert!((0..200).all(|_| ledger.pay(Event::Reset)));
        assert!(!ledger.pay(Event::Frame));
        ledger.tick(999);
        assert!(!ledger.pay(Event::Frame));
        ledger.tick(1500);
        assert!((0..10).all(|_| ledger.pay(Event::Reset)));
        assert!(!ledger.pay(Event::Frame));
        ledger.tick(2000);
        assert!(ledger.pay(Event::Reset));
    }

    #[test]
    fn responses_and_payload_pay_for_frames() {
        let mut ledger = Ledger::new(0);
        while ledger.pay(Event::Frame) {}
        ledger.carried(1023);
        assert!(!ledger.pay(Event::Frame));
        ledger.carried(1);
        assert!(ledger.pay(Event::Frame));
        ledger.responded();
        assert!(ledger.pay(Event::Reset));
        ledger.carried(usize::MAX / 2);
        ledger.tick(u64::MAX);
        assert_eq!(ledger.left, CAPACITY);
    }
}
