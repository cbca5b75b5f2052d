//! The supervisor's part of affinity at run time: carries out what `crate::affinity` decides.

use std::time::Instant;

use messages::Message;

use super::Supervisor;
use crate::affinity::Serving;
use crate::program::Level;
use crate::scoreboard::Decision;

impl Supervisor<'_> {
    /// Samples the serving children and their CPUs, if that is due.
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
            // A new plan also concerns children that are starting or finishing. Children forked by
            // another executable don't know this scoreboard.
            let is_meant = decided.is_replanned && child.is_on_board();
            if is_meant || decided.moved.contains(&child.board_slot) {
                child.line.send_places();
            }
        }
        if let Some(weights) = decided.weights
            && let Err(error) = self.listeners.steer(weights)
        {
            self.not_steered(&error);
        }
        if let Some(cpus) = decided.receivers {
            self.receive_by_cpu(cpus);
        }
        for (number, line) in decided.lines {
            self.program.log(Level::Debug, number, &line);
        }
    }

    /// Directs connections to the loop of the receiving CPU, on addresses whose connections arrive
    /// on the CPUs of all loops.
    fn receive_by_cpu(&mut self, cpus: Vec<usize>) {
        let (placement, all) = (&self.placement, cpus.clone());
        let is_spread = |address| placement.is_spread(address, &all);
        match self.listeners.receive_by_cpu(cpus, is_spread) {
            Ok([]) => {}
            Ok(addresses) => {
                let text =
                    format!("new connections to {addresses:?} go to the loop of the receiving CPU");
                self.board.count_decision(Decision::Steered);
                self.program.log(Level::Debug, Message::SteeredByCpu.number(), &text);
            }
            Err(error) => self.not_steered(&error),
        }
    }

    fn not_steered(&mut self, error: &std::io::Error) {
        let text = format!("can't set how new connections are distributed: {error}");
        self.program.log(Level::Debug, Message::NotSteered.number(), &text);
    }
}
