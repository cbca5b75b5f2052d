//! What the outcome of a check means for a worker. Source: `hc_check`.

use crate::proxy::mod_proxy::shared::State;
use crate::proxy::mod_proxy::status::Status;

/// What a check has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// Requests may go to the worker again.
    Enabled,
    /// They may not any more.
    Disabled,
}

/// Counts a check that was made at `now_us`.
pub(super) fn count(state: &State, passed: bool, now_us: u64) -> Option<Change> {
    let (passes_needed, fails_needed) = state.checks_needed();
    let (passes, fails) = state.checks();
    let has_failed = state.status().has(Status::HC_FAIL);
    let mut change = None;
    if has_failed && passed {
        if passes + 1 >= passes_needed {
            state.clear(Status::HC_FAIL);
            state.clear(Status::IN_ERROR);
            state.set_checks(0, fails);
            change = Some(Change::Enabled);
        } else {
            state.set_checks(passes + 1, fails);
        }
    } else if !has_failed && !passed {
        state.set_failed_at_us(now_us);
        if fails + 1 >= fails_needed {
            state.set(Status::HC_FAIL);
            state.set_checks(passes, 0);
            change = Some(Change::Disabled);
        } else {
            state.set_checks(passes, fails + 1);
        }
    }
    state.set_checked_at_us(now_us);
    change
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_need_their_number_of_checks() {
        let state = State::default();
        state.set_checks_needed(2, 3);
        state.set(Status::IN_ERROR);
        let outcomes = [false, true, false, false, false, true, false, true];
        let changes = outcomes.map(|passed| count(&state, passed, 7));
        let disabled = Some(Change::Disabled);
        let enabled = Some(Change::Enabled);
        // A pass in between does not clear the failures, nor the other way round.
        assert_eq!(changes, [None, None, None, disabled, None, None, None, enabled]);
        assert_eq!((state.checks(), state.status()), ((0, 0), Status::default()));
        assert_eq!((state.failed_at_us(), state.checked_at_us()), (7, 7));
    }
}
