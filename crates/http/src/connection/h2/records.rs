//! Records of TLS: small ones at first, so that a client can use what has come of a response before
//! the network's window has opened; full ones cost less.

use std::num::NonZeroUsize;

use rt::Stream;
use server::http2::WarmUp;

/// The plaintext of a small record: one that fits a packet of 1,500 bytes.
const SMALL_BYTES: Option<NonZeroUsize> = NonZeroUsize::new(1300);

/// How large a connection's records are.
pub(super) struct Records {
    warm_up: WarmUp,
    /// What is still to be sent in small records.
    left: u64,
    /// When something was sent last.
    last_ms: u64,
}

impl Records {
    /// The rules for a connection whose `stream` has TLS, and whose records are small from now on.
    pub(super) fn begin(warm_up: WarmUp, stream: &mut Stream, now_ms: u64) -> Option<Records> {
        stream.tls()?;
        stream.limit_records(SMALL_BYTES);
        Some(Records { warm_up, left: warm_up.bytes, last_ms: now_ms })
    }

    /// What of `bytes` may be sent at a time, which is in records of one kind.
    pub(super) fn next<'a>(
        &mut self,
        bytes: &'a [u8],
        stream: &mut Stream,
        now_ms: u64,
    ) -> &'a [u8] {
        let idle_ms = u128::from(now_ms.saturating_sub(self.last_ms));
        if idle_ms >= self.warm_up.cool_down.as_millis() {
            self.left = self.warm_up.bytes;
            stream.limit_records(SMALL_BYTES);
        }
        let most = usize::try_from(self.left).ok().filter(|left| *left > 0);
        most.and_then(|most| bytes.get(..most)).unwrap_or(bytes)
    }

    /// Notes that `count` bytes were sent.
    pub(super) fn sent(&mut self, count: usize, stream: &mut Stream, now_ms: u64) {
        self.last_ms = now_ms;
        if self.left > 0 {
            self.left = self.left.saturating_sub(count as u64);
            if self.left == 0 {
                stream.limit_records(None);
            }
        }
    }
}
