//! Recently verified passwords, so that a login that comes with every request of a page is not
//! hashed each time: bcrypt of cost 5 takes 100 times as long as the rest of a request.
//!
//! Passwords are not stored, only tags of correct ones: an HMAC-SHA-256 of the password and the
//! hash that it matched, under a random key of this thread that is never stored. A tag means that
//! this password produced this hash, which remains true whatever happens to the file: each request
//! reads the user's hash first, and a new one has no tag. A wrong password leaves nothing behind,
//! so guessing costs the full hash each time.
//!
//! Each thread stores at most [`TAGS_MAX`] tags, each for [`LIFETIME_MS`] after its last full hash.

use std::cell::RefCell;
use std::collections::HashMap;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::hmac::{self, HMAC_SHA256, Key};
use aws_lc_rs::rand::SystemRandom;

/// Most tags; at the limit a thread clears them.
const TAGS_MAX: usize = 1024;

/// The lifetime of a tag in milliseconds. It limits how long the contents of this process's memory
/// help to find a password.
const LIFETIME_MS: u64 = 5 * 60 * 1000;

/// The longest hash with a tag in bytes. The longest of all, SHA-512-crypt's, has 123.
const KEPT_MAX: usize = 256;

const TAG_BYTES: usize = 32;

#[derive(Default)]
struct Verified {
    /// `None` until a password is verified, or if the system provides no random bytes.
    key: Option<Key>,
    by_hash: HashMap<Box<[u8]>, Tag>,
}

struct Tag {
    bytes: [u8; TAG_BYTES],
    until_ms: u64,
}

thread_local! {
    static VERIFIED: RefCell<Verified> = RefCell::default();
}

/// Whether `password` was recently found to match the hash `kept`.
pub fn is_known(password: &[u8], kept: &[u8], now_ms: u64) -> bool {
    VERIFIED.with_borrow(|verified| {
        let Some(known) = verified.by_hash.get(kept) else { return false };
        let Some(key) = verified.key.as_ref().filter(|_| now_ms < known.until_ms) else {
            return false;
        };
        verify_slices_are_equal(tag(key, password, kept).as_ref(), &known.bytes).is_ok()
    })
}

/// Notes that `password` matches the hash `kept`.
pub fn remember(password: &[u8], kept: &[u8], now_ms: u64) {
    if kept.len() > KEPT_MAX {
        return;
    }
    VERIFIED.with_borrow_mut(|verified| {
        if verified.key.is_none() {
            verified.key = Key::generate(HMAC_SHA256, &SystemRandom::new()).ok();
        }
        let Some(key) = &verified.key else { return };
        let Ok(bytes) = tag(key, password, kept).as_ref().try_into() else { return };
        if verified.by_hash.len() >= TAGS_MAX && !verified.by_hash.contains_key(kept) {
            verified.by_hash.clear();
        }
        let tag = Tag { bytes, until_ms: now_ms.saturating_add(LIFETIME_MS) };
        verified.by_hash.insert(kept.into(), tag);
    });
}

/// Removes expired tags, and the key with the last one.
pub fn forget_old(now_ms: u64) {
    VERIFIED.with_borrow_mut(|verified| {
        if verified.by_hash.is_empty() {
            return;
        }
        verified.by_hash.retain(|_, tag| now_ms < tag.until_ms);
        if verified.by_hash.is_empty() {
            *verified = Verified::default();
        }
    });
}

fn tag(key: &Key, password: &[u8], kept: &[u8]) -> hmac::Tag {
    let mut context = hmac::Context::with_key(key);
    // The length separates the password from the hash.
    context.update(&(password.len() as u64).to_le_bytes());
    context.update(password);
    context.update(kept);
    context.sign()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known() -> usize {
        VERIFIED.with_borrow(|verified| verified.by_hash.len())
    }

    #[test]
    fn a_password_is_known_with_its_hash_alone() {
        remember(b"secret", b"$2y$05$one", 0);
        assert!(is_known(b"secret", b"$2y$05$one", 1));
        for (password, kept) in [
            ("secret", "$2y$05$two"),
            ("Secret", "$2y$05$one"),
            ("", "$2y$05$one"),
            ("secret$", "2y$05$one"),
            ("secret", ""),
        ] {
            assert!(!is_known(password.as_bytes(), kept.as_bytes(), 1), "{password} {kept}");
        }
        remember(b"another", b"$2y$05$one", 1);
        assert!(!is_known(b"secret", b"$2y$05$one", 1));
        assert!(is_known(b"another", b"$2y$05$one", 1));
    }

    #[test]
    fn a_password_is_forgotten_in_time() {
        remember(b"secret", b"$2y$05$one", 1000);
        assert!(is_known(b"secret", b"$2y$05$one", 999 + LIFETIME_MS));
        assert!(!is_known(b"secret", b"$2y$05$one", 1000 + LIFETIME_MS));
        forget_old(999 + LIFETIME_MS);
        assert_eq!(known(), 1);
        forget_old(1000 + LIFETIME_MS);
        assert!(VERIFIED.with_borrow(|verified| verified.key.is_none()));
        remember(b"secret", b"$2y$05$one", 2000 + LIFETIME_MS);
        assert!(is_known(b"secret", b"$2y$05$one", 2000 + LIFETIME_MS));
    }

    #[test]
    fn hashes_are_remembered_up_to_a_limit() {
        for number in 0..3 * TAGS_MAX {
            remember(b"secret", format!("$2y$05${number}").as_bytes(), 0);
            assert!(known() <= TAGS_MAX);
        }
        remember(b"secret", &[b'x'; KEPT_MAX + 1], 0);
        assert!(!is_known(b"secret", &[b'x'; KEPT_MAX + 1], 0));
    }
}
