//! Leases: work that one process of the server does, until it ends.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// How long a lease lasts, seconds.
const LEASE_S: u64 = 3;

/// Renews this process's lease, or takes that of a process which has not renewed its own for
/// [`LEASE_S`]; returns whether this process has it. `word` is shared: it holds the process id, and
/// the second of the renewal.
pub(crate) fn take(word: &AtomicU64, now_s: u64) -> bool {
    let (pid, now) = (u64::from(std::process::id()), now_s & u64::from(u32::MAX));
    let old = word.load(Relaxed);
    let (holder, renewed) = (old >> 32, old & u64::from(u32::MAX));
    if holder == pid && renewed == now {
        return true;
    }
    let is_over = now.saturating_sub(renewed) > LEASE_S || renewed > now;
    (holder == pid || is_over)
        && word.compare_exchange(old, pid << 32 | now, Relaxed, Relaxed).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leases_end() {
        let word = AtomicU64::new(0);
        assert!(take(&word, 100) && take(&word, 100) && take(&word, 103));
        let other = 1u64 << 32;
        word.store(other | 103, Relaxed);
        assert!(!take(&word, 104) && !take(&word, 106));
        assert!(take(&word, 107));
    }
}
