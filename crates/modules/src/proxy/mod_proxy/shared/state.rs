//! The state of a worker. Source: `proxy_worker_shared`.

mod checks;
mod kept;
mod meters;
mod open;

pub use meters::Meters;

use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use mpm::shared::SeqBytes;

use super::gauges::OwnGauges;
use super::region::OwnCounts;
use super::words::{Words, words_of};
use crate::proxy::mod_proxy::pool::Queue;
use crate::proxy::mod_proxy::status::Status;
use crate::proxy::mod_proxy::worker::Parameters;

/// `loadfactor`, if it is not set.
const LOAD_FACTOR: u32 = 100;
/// The longest route, redirect, URI of a check and name of a condition, bytes.
const TEXT_BYTES: usize = 64;
/// The longest name of a worker, bytes.
pub const NAME_BYTES: usize = 384;

/// The numbers, by their places. The first eight change with requests, and share a cache line.
#[derive(Clone, Copy)]
enum At {
    Status,
    Failed,
    Busy,
    Elected,
    Transferred,
    Read,
    Retries,
    LbStatus,
    LbFactor,
    LbSet,
    /// Counts the changes of texts after start.
    Version,
    CheckMethod,
    CheckInterval,
    PassesNeeded,
    FailsNeeded,
    Passes,
    Fails,
    Checked,
    /// Open connections, if all processes share a limit.
    Open,
    /// Where and when a request last waited for such a connection: process, and ms.
    Wanted,
    /// Failures.
    Errors,
}

const NUMBERS: usize = 24;
/// Where the meters begin, which are no part of what BalancerPersist keeps, and how many there are.
const METERS_AT: usize = NUMBERS;
const METERS: usize = 8;
const ROUTE: usize = METERS_AT + METERS;
const REDIRECT: usize = ROUTE + words_of(TEXT_BYTES);
const CHECK_URI: usize = REDIRECT + words_of(TEXT_BYTES);
const CHECK_CONDITION: usize = CHECK_URI + words_of(TEXT_BYTES);
const NAME: usize = CHECK_CONDITION + words_of(TEXT_BYTES);
/// The words of a worker in the region: whole cache lines.
pub(super) const WORDS: usize = (NAME + words_of(NAME_BYTES)).next_multiple_of(8);

/// The state of a worker. What `words` hold is shared by all processes, the rest is the process's.
#[derive(Default)]
pub struct State {
    words: Words<WORDS>,
    /// Whether it is that of a balancer's member, whose requests in progress are counted.
    pub counts: bool,
    /// The requests in progress that are this process's.
    own_busy: OnceLock<&'static AtomicU64>,
    /// Those of the connections that all processes count together.
    own_open: OnceLock<&'static AtomicU64>,
    /// What this process tells of its connections.
    own_gauges: OnceLock<OwnGauges>,
    /// Open connections of this process, idle ones included (`max`).
    pub open: AtomicU64,
    /// Requests that wait for one of these connections.
    pub queue: Queue,
}

impl State {
    /// The state of a balancer's member that has served nothing.
    pub fn new(parameters: &Parameters) -> State {
        State { counts: true, ..State::of_worker(parameters) }
    }

    /// The state of a worker of no balancer: its requests in progress are not counted.
    pub fn of_worker(parameters: &Parameters) -> State {
        let state = State::default();
        state.reset(parameters);
        state
    }

    /// Uses words of the region. Without `parameters` they are kept as they are; with them the
    /// state is set, except that requests of the previous generation may still be in progress.
    pub(super) fn share(
        &self,
        words: &'static [AtomicU64; WORDS],
        parameters: Option<&Parameters>,
    ) {
        self.words.share(words);
        if let Some(parameters) = parameters {
            self.reset(parameters);
        }
    }

    /// Counts this process's requests and connections there, too.
    pub(super) fn count_own(&self, own: &OwnCounts) {
        let _ = self.own_busy.set(own.busy);
        let _ = self.own_open.set(own.open);
        let _ = self.own_gauges.set(own.gauges);
    }

    /// Where this process tells of its connections; `None` if it has no row of the region.
    pub fn own_gauges(&self) -> Option<&OwnGauges> {
        self.own_gauges.get()
    }

    /// Sets what the configuration says.
    fn reset(&self, parameters: &Parameters) {
        for (place, word) in self.words.all().iter().enumerate().take(NUMBERS + METERS) {
            if place != At::Busy as usize && place != At::Open as usize {
                word.store(0, Relaxed);
            }
        }
        self.set_status(parameters.status);
        self.set_load_factor(parameters.load_factor.unwrap_or(LOAD_FACTOR));
        self.set_lbset(parameters.lbset.unwrap_or(0));
        self.put_text(&self.route_text(), parameters.route.as_deref().unwrap_or_default());
        self.put_text(&self.redirect_text(), parameters.redirect.as_deref().unwrap_or_default());
        self.put_text(&self.name_text(), b"");
        self.set_configured_checks(&parameters.checks);
    }

    fn word(&self, at: At) -> &AtomicU64 {
        let words = self.words.all();
        words.get(at as usize).unwrap_or(&words[0])
    }

    fn get(&self, at: At) -> u64 {
        self.word(at).load(Relaxed)
    }

    fn add(&self, at: At, count: u64) {
        self.word(at).fetch_add(count, Relaxed);
    }
}

/// The status, and why a worker has it.
impl State {
    /// Its bits, those of the configuration at first. Outside of a balancer errors are ignored
    /// unless `status=-I`.
    pub fn status(&self) -> Status {
        Status::of_bits(self.get(At::Status) as u16)
    }

    /// Replaces all bits.
    pub fn set_status(&self, status: Status) {
        self.word(At::Status).store(status.bits().into(), Relaxed);
    }

    /// Sets bits.
    pub fn set(&self, bits: Status) {
        self.word(At::Status).fetch_or(bits.bits().into(), Relaxed);
    }

    /// Clears bits.
    pub fn clear(&self, bits: Status) {
        self.word(At::Status).fetch_and(!u64::from(bits.bits()), Relaxed);
    }

    /// When it failed last, µs since 1970.
    pub fn failed_at_us(&self) -> u64 {
        self.get(At::Failed)
    }

    /// Sets it.
    pub fn set_failed_at_us(&self, us: u64) {
        self.word(At::Failed).store(us, Relaxed);
    }

    /// How often it failed, so that it was left alone.
    pub fn errors(&self) -> u64 {
        self.get(At::Errors)
    }

    /// Counts a failure.
    pub fn count_error(&self) {
        self.add(At::Errors, 1);
    }

    /// How often it was tried again after a failure.
    pub fn retries(&self) -> u64 {
        self.get(At::Retries)
    }

    /// Counts such an attempt.
    pub fn count_retry(&self) {
        self.add(At::Retries, 1);
    }

    /// Forgets such attempts: it was reached.
    pub fn clear_retries(&self) {
        if self.retries() > 0 {
            self.word(At::Retries).store(0, Relaxed);
        }
    }
}

/// Counters of requests and bytes.
impl State {
    /// Requests in progress, of all processes.
    pub fn busy(&self) -> u64 {
        self.get(At::Busy)
    }

    /// Counts a request in progress.
    pub fn enter(&self) {
        self.add(At::Busy, 1);
        if let Some(own) = self.own_busy.get() {
            own.fetch_add(1, Relaxed);
        }
    }

    /// Counts it no longer.
    pub fn leave(&self) {
        self.take_busy(1);
        if let Some(own) = self.own_busy.get() {
            own.fetch_sub(1, Relaxed);
        }
    }

    /// Counts `count` requests no longer.
    fn take_busy(&self, count: u64) {
        take(self.word(At::Busy), count);
    }

    /// Requests that it was chosen for.
    pub fn elected(&self) -> u64 {
        self.get(At::Elected)
    }

    /// Counts a request that it was chosen for.
    pub fn count_elected(&self) {
        self.add(At::Elected, 1);
    }

    /// Bytes of bodies sent to it.
    pub fn transferred(&self) -> u64 {
        self.get(At::Transferred)
    }

    /// Counts bytes sent to it.
    pub fn count_transferred(&self, bytes: u64) {
        self.add(At::Transferred, bytes);
    }

    /// Bytes of bodies received from it.
    pub fn read(&self) -> u64 {
        self.get(At::Read)
    }

    /// Begins to count bytes at 0 again.
    pub fn clear_traffic(&self) {
        self.word(At::Transferred).store(0, Relaxed);
        self.word(At::Read).store(0, Relaxed);
    }

    /// Counts bytes received from it.
    pub fn count_read(&self, bytes: u64) {
        self.add(At::Read, bytes);
    }
}

/// Subtracts what a process that has ended counted: requests and connections.
pub(super) fn forget(words: &[AtomicU64], busy: u64, open: u64) {
    for (at, count) in [(At::Busy, busy), (At::Open, open)] {
        if let Some(word) = words.get(at as usize) {
            take(word, count);
        }
    }
}

/// A reset in between must not make it negative.
fn take(word: &AtomicU64, count: u64) {
    let less = |now: u64| Some(now.saturating_sub(count));
    let _ = word.fetch_update(Relaxed, Relaxed, less);
}

/// What a balancer decides by, and balancer-manager changes.
impl State {
    /// The balance of a method (`lbstatus`).
    pub fn lbstatus(&self) -> i64 {
        self.get(At::LbStatus) as i64
    }

    /// Sets it. Only under the balancer's lock.
    pub fn set_lbstatus(&self, value: i64) {
        self.word(At::LbStatus).store(value as u64, Relaxed);
    }

    /// `loadfactor` × 100
    pub fn load_factor(&self) -> u32 {
        self.get(At::LbFactor) as u32
    }

    /// Sets it.
    pub fn set_load_factor(&self, hundredths: u32) {
        self.word(At::LbFactor).store(hundredths.into(), Relaxed);
    }

    /// `lbset`
    pub fn lbset(&self) -> u8 {
        self.get(At::LbSet) as u8
    }

    /// Sets it.
    pub fn set_lbset(&self, set: u8) {
        self.word(At::LbSet).store(set.into(), Relaxed);
    }

    /// Whether `route` or `redirect` are not those of the configuration any more.
    pub fn is_changed(&self) -> bool {
        self.get(At::Version) > 0
    }

    /// `route`
    pub fn route(&self) -> Vec<u8> {
        self.route_text().read().unwrap_or_default()
    }

    /// Changes it.
    pub fn set_route(&self, route: &[u8]) {
        self.put_text(&self.route_text(), route);
        self.add(At::Version, 1);
    }

    /// `redirect`
    pub fn redirect(&self) -> Vec<u8> {
        self.redirect_text().read().unwrap_or_default()
    }

    /// Changes it.
    pub fn set_redirect(&self, route: &[u8]) {
        self.put_text(&self.redirect_text(), route);
        self.add(At::Version, 1);
    }

    /// The URL of a member that was added after start; empty if there is none here.
    pub fn name(&self) -> Vec<u8> {
        self.name_text().read().unwrap_or_default()
    }

    /// Sets it.
    pub fn set_name(&self, url: &[u8]) {
        self.put_text(&self.name_text(), url);
    }

    fn put_text(&self, text: &SeqBytes<'_>, bytes: &[u8]) {
        if !text.write(bytes) {
            // Its writer has died.
            text.reset();
            text.write(bytes);
        }
    }

    fn route_text(&self) -> SeqBytes<'_> {
        self.words.text::<ROUTE, TEXT_BYTES>()
    }

    fn redirect_text(&self) -> SeqBytes<'_> {
        self.words.text::<REDIRECT, TEXT_BYTES>()
    }

    fn name_text(&self) -> SeqBytes<'_> {
        self.words.text::<NAME, NAME_BYTES>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_is_the_first_state() {
        let parameters = Parameters {
            status: Status::DRAIN,
            route: Some(b"a".to_vec()),
            lbset: Some(3),
            ..Parameters::default()
        };
        let state = State::new(&parameters);
        assert_eq!((state.status(), state.load_factor(), state.lbset()), (Status::DRAIN, 100, 3));
        assert_eq!((state.route(), state.redirect()), (b"a".to_vec(), Vec::new()));
        assert!(!state.is_changed());
        state.set_route(b"b");
        assert!(state.is_changed());
        assert_eq!(state.route(), b"b");
    }

    #[test]
    fn bits_are_set_and_cleared() {
        let state = State::default();
        state.set(Status::IN_ERROR);
        state.set(Status::HOT_SPARE);
        state.clear(Status::IN_ERROR);
        assert_eq!(state.status(), Status::HOT_SPARE);
        state.set_lbstatus(-7);
        assert_eq!(state.lbstatus(), -7);
    }

    #[test]
    fn connections_of_all_processes_have_a_limit() {
        let state = State::default();
        assert!(state.open_one(2) && state.open_one(2) && !state.open_one(2));
        state.reset(&Parameters::default());
        assert!(!state.open_one(2));
        state.close_one();
        assert!(state.open_one(2));
        forget(state.words.all(), 0, 2);
        assert!(state.open_one(1));
    }

    #[test]
    fn only_another_process_wants_a_connection() {
        let state = State::default();
        assert!(!state.is_wanted(50));
        state.want(1000);
        assert!(!state.is_wanted(1000));
        let now = u64::from(u32::MAX) + 1000;
        state.word(At::Wanted).store(7 << 32 | 990, Relaxed);
        assert!(state.is_wanted(1000) && !state.is_wanted(2000) && state.is_wanted(now));
    }

    #[test]
    fn requests_in_progress_outlive_a_reset() {
        let state = State::default();
        state.enter();
        state.count_elected();
        state.reset(&Parameters::default());
        assert_eq!((state.busy(), state.elected()), (1, 0));
        state.leave();
        state.leave();
        assert_eq!(state.busy(), 0);
    }
}
