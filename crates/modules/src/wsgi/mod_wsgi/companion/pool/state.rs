//! What a pool adds to the state of its process group.

use super::Pool;
use crate::wsgi::mod_wsgi::companion::Plan;
use crate::wsgi::mod_wsgi::companion::process::{Process, State as ProcessState};
use crate::wsgi::mod_wsgi::counts::State;

impl Pool {
    /// Adds its processes and requests to the state of its group.
    pub fn add_to(&self, states: &mut [State], plan: &Plan) {
        let Some((state, group)) = states.get_mut(self.index).zip(plan.groups.get(self.index))
        else {
            return;
        };
        let serves = |process: &&Process| {
            matches!(process.state, ProcessState::Ready | ProcessState::Retiring)
        };
        let serving = self.processes.iter().filter(serves).count();
        state.processes += self.processes.len() as u64;
        state.threads += (serving * group.threads) as u64;
        let waiting = match &self.slots {
            Some(slots) => {
                state.busy = Some(state.busy.unwrap_or(0) + slots.busy() as u64);
                slots.waiting()
            }
            None => self.channel.waiting(),
        };
        state.waiting += waiting as u64;
    }
}
