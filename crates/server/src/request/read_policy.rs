//! Limits on slow clients: `RequestReadTimeout` of mod_reqtimeout.

use std::time::Duration;

use rt::{Clock, Deadline};

/// The limits of a stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stage {
    /// Time for the stage; zero for no limit.
    pub initial: Duration,
    /// The limit of extensions; `None` for no limit.
    pub most: Option<Duration>,
    /// The number of received bytes that extends the time by a second; 0 for no extension.
    pub min_rate: u32,
}

/// The limits of a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadPolicy {
    /// The TLS handshake.
    pub handshake: Stage,
    /// A request's head.
    pub header: Stage,
    /// A request's body.
    pub body: Stage,
}

/// A stage in progress.
#[derive(Clone, Copy, Debug)]
pub struct Running {
    stage: Stage,
    began_ms: u64,
}

impl Stage {
    /// Begins the stage now.
    pub fn begin(self, clock: &Clock) -> Running {
        self.since(clock.now_ms())
    }

    /// Begins the stage at a time of the loop's clock.
    pub fn since(self, began_ms: u64) -> Running {
        Running { stage: self, began_ms }
    }
}

impl Running {
    /// The deadline of the stage after this many received bytes; never, without a limit.
    pub fn deadline(&self, received: usize) -> Deadline {
        let Stage { initial, most, min_rate } = self.stage;
        if initial.is_zero() {
            return Deadline::NEVER;
        }
        let earned = match min_rate {
            0 => Duration::ZERO,
            rate => Duration::from_secs(received as u64 / u64::from(rate)),
        };
        let allowed = initial + earned;
        let allowed = most.map_or(allowed, |most| allowed.min(most.max(initial)));
        let allowed_ms = u64::try_from(allowed.as_millis()).unwrap_or(u64::MAX);
        Deadline::at_ms(self.began_ms.saturating_add(allowed_ms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_earn_time_up_to_a_bound() {
        let stage = Stage {
            initial: Duration::from_secs(20),
            most: Some(Duration::from_secs(40)),
            min_rate: 500,
        };
        let running = Running { stage, began_ms: 0 };
        assert_eq!(running.deadline(0), Deadline::at_ms(20_000));
        assert_eq!(running.deadline(5000), Deadline::at_ms(30_000));
        assert_eq!(running.deadline(1 << 20), Deadline::at_ms(40_000));
        let off = Running { stage: Stage::default(), began_ms: 0 };
        assert_eq!(off.deadline(0), Deadline::NEVER);
    }
}
