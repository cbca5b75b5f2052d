//! The state of a balancer. Source: `proxy_balancer_shared`.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use mpm::shared::SeqBytes;

use super::lock::{Lock, Locked};
use super::words::{Words, words_of};
use crate::proxy::mod_proxy::balancer::Parameters;

/// The longest name of a cookie and of a path's parameter, bytes.
const STICKY_BYTES: usize = 64;
/// The longest nonce, bytes.
const NONCE_BYTES: usize = 40;

/// The numbers, by their places.
#[derive(Clone, Copy)]
enum At {
    Lock,
    /// Counts the changes by balancer-manager.
    Version,
    Method,
    NoFailover,
    TimeoutUs,
    MaxAttempts,
    /// Members that were added.
    Added,
}

const NUMBERS: usize = 8;
const NONCE: usize = NUMBERS;
const STICKY_COOKIE: usize = NONCE + words_of(NONCE_BYTES);
const STICKY_PATH: usize = STICKY_COOKIE + words_of(STICKY_BYTES);
/// The words of a balancer in the region: whole cache lines.
pub(super) const WORDS: usize = (STICKY_PATH + words_of(STICKY_BYTES)).next_multiple_of(8);

/// The state of a balancer, shared by all processes.
#[derive(Default)]
pub struct BalancerState {
    words: Words<WORDS>,
}

/// What balancer-manager may have changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changed {
    /// `lbmethod`, by its place among the loaded ones.
    pub method: usize,
    /// `timeout`
    pub timeout: Option<Duration>,
    /// `maxattempts`; `None`: the number of members less one.
    pub max_attempts: Option<u32>,
    /// `nofailover`
    pub no_failover: bool,
    /// `stickysession`: the names of the cookie and of the path parameter.
    pub sticky: Option<(Vec<u8>, Vec<u8>)>,
}

impl BalancerState {
    /// The state of a balancer that has served nothing; `method` is the place of its `lbmethod`.
    pub fn new(parameters: &Parameters, method: usize) -> BalancerState {
        let state = BalancerState::default();
        state.reset(parameters, method);
        state
    }

    /// Uses words of the region. The state is set if there are parameters for it.
    pub(super) fn share(
        &self,
        words: &'static [AtomicU64; WORDS],
        first: Option<(&Parameters, usize)>,
    ) {
        self.words.share(words);
        if let Some((parameters, method)) = first {
            self.reset(parameters, method);
        }
    }

    /// Sets what the configuration says. The lock may be held by the previous generation.
    fn reset(&self, parameters: &Parameters, method: usize) {
        self.change(&Changed {
            method,
            timeout: parameters.timeout,
            max_attempts: parameters.max_attempts,
            no_failover: parameters.no_failover.unwrap_or(false),
            sticky: parameters.sticky.clone(),
        });
        self.set_nonce(parameters.nonce.as_deref().unwrap_or_default());
        self.word(At::Added).store(0, Relaxed);
        self.word(At::Version).store(0, Relaxed);
    }

    fn word(&self, at: At) -> &AtomicU64 {
        let words = self.words.all();
        words.get(at as usize).unwrap_or(&words[0])
    }

    fn get(&self, at: At) -> u64 {
        self.word(at).load(Relaxed)
    }

    /// Waits for the balancer's lock. It is held for a choice among the members.
    pub fn lock(&self) -> Locked<'_> {
        Lock::of(self.word(At::Lock)).lock()
    }

    /// What is not as configured any more; `None` if nothing was changed.
    pub fn changed(&self) -> Option<Changed> {
        (self.get(At::Version) > 0).then(|| self.current())
    }

    /// What balancer-manager shows.
    pub fn current(&self) -> Changed {
        let text = |text: SeqBytes<'_>| text.read().unwrap_or_default();
        let cookie = text(self.words.text::<STICKY_COOKIE, STICKY_BYTES>());
        let path = text(self.words.text::<STICKY_PATH, STICKY_BYTES>());
        let timeout = self.get(At::TimeoutUs);
        Changed {
            method: self.get(At::Method) as usize,
            timeout: (timeout > 0).then(|| Duration::from_micros(timeout)),
            max_attempts: (self.get(At::MaxAttempts) as u32).checked_sub(1),
            no_failover: self.get(At::NoFailover) > 0,
            sticky: (!cookie.is_empty()).then_some((cookie, path)),
        }
    }

    /// Changes what balancer-manager can change.
    pub fn change(&self, changed: &Changed) {
        self.word(At::Method).store(changed.method as u64, Relaxed);
        let timeout = changed.timeout.map_or(0, |timeout| timeout.as_micros() as u64);
        self.word(At::TimeoutUs).store(timeout, Relaxed);
        let attempts = changed.max_attempts.map_or(0, |attempts| u64::from(attempts) + 1);
        self.word(At::MaxAttempts).store(attempts, Relaxed);
        self.word(At::NoFailover).store(changed.no_failover.into(), Relaxed);
        let (cookie, path) = changed
            .sticky
            .as_ref()
            .map_or((&[][..], &[][..]), |(cookie, path)| (cookie.as_slice(), path.as_slice()));
        put(&self.words.text::<STICKY_COOKIE, STICKY_BYTES>(), cookie);
        put(&self.words.text::<STICKY_PATH, STICKY_BYTES>(), path);
        self.word(At::Version).fetch_add(1, Relaxed);
    }

    /// `nonce`; empty: none.
    pub fn nonce(&self) -> Vec<u8> {
        self.words.text::<NONCE, NONCE_BYTES>().read().unwrap_or_default()
    }

    /// Sets it.
    pub fn set_nonce(&self, nonce: &[u8]) {
        put(&self.words.text::<NONCE, NONCE_BYTES>(), nonce);
    }

    /// How many of its spare places members were added in.
    pub fn added(&self) -> usize {
        self.get(At::Added) as usize
    }

    /// Sets it.
    pub fn set_added(&self, count: usize) {
        self.word(At::Added).store(count as u64, Relaxed);
    }
}

/// Frees the lock if a process that has ended holds it.
pub(super) fn release(words: &[AtomicU64], pid: u32) {
    if let Some(word) = words.get(At::Lock as usize) {
        Lock::of(word).release(pid);
    }
}

fn put(text: &SeqBytes<'_>, bytes: &[u8]) {
    if !text.write(bytes) {
        // Its writer has died.
        text.reset();
        text.write(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_read_again() {
        let parameters = Parameters {
            sticky: Some((b"C".to_vec(), b"p".to_vec())),
            nonce: Some(b"n".to_vec()),
            ..Parameters::default()
        };
        let state = BalancerState::new(&parameters, 2);
        assert_eq!((state.changed(), state.nonce()), (None, b"n".to_vec()));
        let mut current = state.current();
        assert_eq!((current.method, &current.sticky), (2, &parameters.sticky));
        assert_eq!((current.timeout, current.max_attempts), (None, None));
        current.max_attempts = Some(0);
        current.timeout = Some(Duration::from_secs(3));
        current.no_failover = true;
        current.sticky = None;
        state.change(&current);
        assert_eq!(state.changed(), Some(current));
    }
}
