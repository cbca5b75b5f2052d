//! Yields during a listing, which may be long, so that other connections get their turn.

use std::time::{Duration, Instant};

/// The time after which a listing yields.
const TURN: Duration = Duration::from_millis(2);

/// When the turn began.
pub struct Turns(Instant);

impl Turns {
    /// Begins a turn.
    pub fn begin() -> Turns {
        Turns(Instant::now())
    }

    /// Yields if the turn has taken long enough. The cost of a name depends on the number of
    /// patterns, so counting names would not do.
    pub async fn give(&mut self) {
        if self.0.elapsed() > TURN {
            rt::after_sockets().await;
            self.0 = Instant::now();
        }
    }
}
