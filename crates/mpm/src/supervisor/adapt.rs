//! Affinity while the server runs: the supervisor's part in what `crate::affinity` decides.

use std::time::Instant;

use super::Supervisor;
use crate::affinity::Serving;
use crate::program::Level;

impl Supervisor<'_> {
    /// Looks at the serving children and their CPUs, when it is time to.
    pub(super) fn adapt(&mut self, now: Instant) {
        let Some(current) = self.current.as_ref().filter(|_| self.stopping.is_none()) else {
            return self.placement.rest();
        };
        let (generation, settings) = (current.number, current.settings.clone());
        let children = self
            .children
            .iter()
            .filter(|child| child.generation == generation && child.is_staying());
        let serving: Vec<Serving> = children
            .filter_map(|child| {
                let pid = u32::try_from(child.pid.as_raw()).ok()?;
                Some(Serving { pid, slot: child.slot, board_slot: child.board_slot })
            })
            .collect();
        let decided = self.placement.turn(now, (generation, &settings), &serving, &self.board);
        for child in &self.children {
            if decided.moved.contains(&child.board_slot) {
                child.line.send_places();
            }
        }
        if let Some(weights) = decided.weights
            && let Err(error) = self.listeners.steer(&weights)
        {
            let text = format!("new connections can't be steered: {error}");
            self.program.log(Level::Debug, 20107, &text);
        }
        for (number, line) in decided.lines {
            self.program.log(Level::Debug, number, &line);
        }
    }
}
