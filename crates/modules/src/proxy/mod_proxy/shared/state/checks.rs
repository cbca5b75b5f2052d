//! What mod_proxy_hcheck knows of a worker.

use std::sync::atomic::Ordering::Relaxed;

use crate::proxy::mod_proxy::checks::Checks;

use super::{At, CHECK_CONDITION, CHECK_URI, State, TEXT_BYTES};

impl State {
    /// Sets what the configuration says.
    pub(super) fn set_configured_checks(&self, checks: &Checks) {
        self.set_check_method(checks.method.number());
        self.set_check_interval_us(checks.interval.as_micros() as u64);
        self.set_checks_needed(checks.passes.into(), checks.fails.into());
        self.set_check_uri(&checks.uri);
        self.set_check_condition(&checks.condition);
    }

    /// The method, by its number there; 0: none.
    pub fn check_method(&self) -> u64 {
        self.get(At::CheckMethod)
    }

    /// Sets it.
    pub fn set_check_method(&self, method: u64) {
        self.word(At::CheckMethod).store(method, Relaxed);
    }

    /// The time between two checks, µs.
    pub fn check_interval_us(&self) -> u64 {
        self.get(At::CheckInterval)
    }

    /// Sets it.
    pub fn set_check_interval_us(&self, us: u64) {
        self.word(At::CheckInterval).store(us, Relaxed);
    }

    /// How many checks in a row have to pass, and to fail.
    pub fn checks_needed(&self) -> (u64, u64) {
        (self.get(At::PassesNeeded), self.get(At::FailsNeeded))
    }

    /// Sets them.
    pub fn set_checks_needed(&self, passes: u64, fails: u64) {
        self.word(At::PassesNeeded).store(passes, Relaxed);
        self.word(At::FailsNeeded).store(fails, Relaxed);
    }

    /// How many have passed, and failed.
    pub fn checks(&self) -> (u64, u64) {
        (self.get(At::Passes), self.get(At::Fails))
    }

    /// Sets them.
    pub fn set_checks(&self, passes: u64, fails: u64) {
        self.word(At::Passes).store(passes, Relaxed);
        self.word(At::Fails).store(fails, Relaxed);
    }

    /// When it was checked last, µs since 1970.
    pub fn checked_at_us(&self) -> u64 {
        self.get(At::Checked)
    }

    /// Sets it.
    pub fn set_checked_at_us(&self, us: u64) {
        self.word(At::Checked).store(us, Relaxed);
    }

    /// The URI that is asked for.
    pub fn check_uri(&self) -> Vec<u8> {
        self.words.text::<CHECK_URI, TEXT_BYTES>().read().unwrap_or_default()
    }

    /// Sets it.
    pub fn set_check_uri(&self, uri: &[u8]) {
        self.put_text(&self.words.text::<CHECK_URI, TEXT_BYTES>(), uri);
    }

    /// The name of the condition on the response.
    pub fn check_condition(&self) -> Vec<u8> {
        self.words.text::<CHECK_CONDITION, TEXT_BYTES>().read().unwrap_or_default()
    }

    /// Sets it.
    pub fn set_check_condition(&self, name: &[u8]) {
        self.put_text(&self.words.text::<CHECK_CONDITION, TEXT_BYTES>(), name);
    }
}
