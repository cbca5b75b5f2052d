//! What metrics and the live page tell of a worker beyond what its balancer counts. Nothing is
//! counted unless the configuration has one of these pages.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use super::{METERS_AT, State};

/// The meters, by their places. They have a cache line of their own.
#[derive(Clone, Copy)]
enum At {
    Connects,
    ConnectUs,
    Responses,
    ResponseUs,
    Repeats,
    Failures,
}

/// What all processes have counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meters {
    /// Connections that were opened.
    pub connects: u64,
    /// How long that took, µs.
    pub connect_us: u64,
    /// Responses that began.
    pub responses: u64,
    /// How long they took to begin once the request was sent, µs.
    pub response_us: u64,
    /// Requests that were sent again on a new connection, since a kept one had ended.
    pub repeats: u64,
    /// Requests that got no response of the worker.
    pub failures: u64,
}

impl State {
    fn meter(&self, at: At) -> &AtomicU64 {
        let words = self.words.all();
        words.get(METERS_AT + at as usize).unwrap_or(&words[0])
    }

    /// Counts a connection that took this long to open.
    pub fn count_connect(&self, us: u64) {
        self.meter(At::Connects).fetch_add(1, Relaxed);
        self.meter(At::ConnectUs).fetch_add(us, Relaxed);
    }

    /// Counts a response that took this long to begin.
    pub fn count_response(&self, us: u64) {
        self.meter(At::Responses).fetch_add(1, Relaxed);
        self.meter(At::ResponseUs).fetch_add(us, Relaxed);
    }

    /// Counts a request that is sent again.
    pub fn count_repeat(&self) {
        self.meter(At::Repeats).fetch_add(1, Relaxed);
    }

    /// Counts a request that got no response.
    pub fn count_failure(&self) {
        self.meter(At::Failures).fetch_add(1, Relaxed);
    }

    /// What was counted.
    pub fn meters(&self) -> Meters {
        let of = |at| self.meter(at).load(Relaxed);
        Meters {
            connects: of(At::Connects),
            connect_us: of(At::ConnectUs),
            responses: of(At::Responses),
            response_us: of(At::ResponseUs),
            repeats: of(At::Repeats),
            failures: of(At::Failures),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::Meters;
    use crate::proxy::mod_proxy::worker::Parameters;

    #[test]
    fn each_meter_has_its_place_and_a_restart_clears_it() {
        let state = State::default();
        (0..3).for_each(|_| state.count_connect(5));
        (0..2).for_each(|_| state.count_response(7));
        state.count_repeat();
        state.count_failure();
        let counted = Meters {
            connects: 3,
            connect_us: 15,
            responses: 2,
            response_us: 14,
            repeats: 1,
            failures: 1,
        };
        assert_eq!((state.meters(), state.route()), (counted, Vec::new()));
        state.reset(&Parameters::default());
        assert_eq!(state.meters(), Meters::default());
    }
}
