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

/// WINDOW_UPDATE frames for which each DATA frame pays: those of its stream and of the connection,
/// twice.
const UPDATES_PER_FRAME: u32 = 4;

/// The most of them that are paid for in advance.
const UPDATES_MOST: u32 = 1000;

/// What has a price.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A frame without payload for a request: PING, SETTINGS, PRIORITY, unknown ones.
    Frame,
    /// WINDOW_UPDATE, unless a DATA frame has paid for it.
    Update,
    /// A DATA frame without data that does not end its stream.
    Empty,
    /// A stream that either end resets, or that is refused.
    Reset,
}

impl Event {
    fn price(self) -> u32 {
        match self {
            Event::Frame | Event::Update => 1,
            Event::Empty => 2,
            Event::Reset => 10,
        }
    }
}

/// What is left of the budget.
#[derive(Debug)]
pub struct Ledger {
    left: u32,
    /// WINDOW_UPDATE frames that are paid for.
    updates: u32,
    /// Bytes that have not yet earned a point.
    bytes: usize,
    /// When time last earned something, on the caller's clock.
    since_ms: u64,
}

impl Ledger {
    /// Returns a full budget.
    pub fn new(now_ms: u64) -> Ledger {
        Ledger { left: CAPACITY, updates: 0, bytes: 0, since_ms: now_ms }
    }

    /// Pays for an event; false if the budget does not suffice.
    pub fn pay(&mut self, event: Event) -> bool {
        if event == Event::Update && self.updates > 0 {
            self.updates -= 1;
            return true;
        }
        let left = self.left.checked_sub(event.price());
        self.left = left.unwrap_or(0);
        left.is_some()
    }

    /// A response was sent completely.
    pub fn responded(&mut self) {
        self.earn(PER_RESPONSE);
    }

    /// A DATA frame was sent that is not short because of the peer's window: the peer may say that
    /// it has taken it, however short it is.
    pub fn sent_data(&mut self) {
        self.updates = (self.updates + UPDATES_PER_FRAME).min(UPDATES_MOST);
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
