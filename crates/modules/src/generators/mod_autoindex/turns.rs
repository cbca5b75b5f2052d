//! Turns of a loop: a listing is as long as its directory, and others wait meanwhile.

use std::time::{Duration, Instant};

/// How long a listing is worked on before others have their turn.
const TURN: Duration = Duration::from_millis(2);

/// When the turn began.
pub struct Turns(Instant);

impl Turns {
    /// A turn that begins now.
    pub fn begin() -> Turns {
        Turns(Instant::now())
    }

    /// Gives others their turn when this one has taken long enough. A name costs as much as there
    /// are patterns, so names can't be counted instead.
    pub async fn give(&mut self) {
        if self.0.elapsed() > TURN {
            tokio::task::yield_now().await;
            self.0 = Instant::now();
        }
    }
}
