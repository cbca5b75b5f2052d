//! Encrypted sessions in Apache's format: in base64 a tag, a salt, an initialisation vector, and
//! the encrypted text. The tag is SipHash-2-4 of all that follows, under the MD5 of the passphrase;
//! the key is PBKDF2 of passphrase and salt.
//!
//! A key takes a millisecond to derive. Each thread keeps the last ones, and writes sessions with
//! one salt for some time, so that a client that returns costs no derivation. The vector is random
//! for each session.
//!
//! Source: `encrypt_string`, `decrypt_string`, `apr_crypto_passphrase`.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::Hasher;
use std::num::NonZeroU32;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::pbkdf2::{self, PBKDF2_HMAC_SHA1};
use base64::Engine as _;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};
use md5::{Digest, Md5};

use super::cipher::Cipher;

/// Bytes of a tag.
const TAG_BYTES: usize = 8;
/// Bytes of a salt, which is a UUID in Apache.
const SALT_BYTES: usize = 16;
/// Rounds of PBKDF2.
const ROUNDS: NonZeroU32 = match NonZeroU32::new(4096) {
    Some(rounds) => rounds,
    None => NonZeroU32::MIN,
};

/// Most keys of a thread; at the limit it clears them.
const KEYS_MAX: usize = 256;

/// How many sessions a thread writes with one salt.
const SALT_USES: u32 = 10_000;

/// A passphrase.
pub struct Passphrase {
    secret: Box<[u8]>,
    /// The key of tags.
    tag_key: [u8; 16],
}

impl Passphrase {
    /// A passphrase.
    pub fn new(secret: &[u8]) -> Passphrase {
        Passphrase { secret: secret.into(), tag_key: Md5::digest(secret).into() }
    }

    fn tag(&self, text: &[u8]) -> [u8; TAG_BYTES] {
        let (low, high) = self.tag_key.split_at(8);
        let number =
            |bytes: &[u8]| bytes.iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte));
        #[allow(deprecated)]
        let mut hasher = std::hash::SipHasher::new_with_keys(number(low), number(high));
        hasher.write(text);
        hasher.finish().to_le_bytes()
    }
}

type Salt = [u8; SALT_BYTES];

#[derive(Default)]
struct Keys {
    /// By the key of tags, which belongs to one passphrase.
    derived: HashMap<([u8; 16], Salt, Cipher), Box<[u8]>>,
    salt: Salt,
    uses: u32,
}

thread_local! {
    static KEYS: RefCell<Keys> = RefCell::default();
}

/// The key of a passphrase and a salt.
fn key(cipher: Cipher, passphrase: &Passphrase, salt: &Salt) -> Box<[u8]> {
    KEYS.with_borrow_mut(|keys| {
        let name = (passphrase.tag_key, *salt, cipher);
        if let Some(key) = keys.derived.get(&name) {
            return key.clone();
        }
        let mut key = vec![0; cipher.key_bytes()].into_boxed_slice();
        pbkdf2::derive(PBKDF2_HMAC_SHA1, ROUNDS, salt, &passphrase.secret, &mut key);
        if keys.derived.len() >= KEYS_MAX {
            keys.derived.clear();
        }
        keys.derived.insert(name, key.clone());
        key
    })
}

fn fill(bytes: &mut [u8]) -> Option<()> {
    aws_lc_rs::rand::fill(bytes).ok()
}

/// The salt for the next session.
fn salt() -> Option<Salt> {
    KEYS.with_borrow_mut(|keys| {
        if keys.uses == 0 {
            fill(&mut keys.salt)?;
            keys.uses = SALT_USES;
        }
        keys.uses -= 1;
        Some(keys.salt)
    })
}

/// Encrypts a session; `None` if there are no random bytes.
pub(super) fn seal(cipher: Cipher, passphrase: &Passphrase, text: Vec<u8>) -> Option<Vec<u8>> {
    let salt = salt()?;
    let mut iv = vec![0; cipher.block_bytes()];
    fill(&mut iv)?;
    let encrypted = cipher.encrypt(&key(cipher, passphrase, &salt), &iv, text)?;
    let text = [&salt[..], &iv, &encrypted].concat();
    let tag = passphrase.tag(&text);
    Some(STANDARD.encode([&tag[..], &text].concat()).into_bytes())
}

/// Decrypts a session; `None` if it was not encrypted with this passphrase.
pub(super) fn open(cipher: Cipher, passphrase: &Passphrase, sealed: &[u8]) -> Option<Vec<u8>> {
    let sealed = LENIENT.decode(sealed).ok()?;
    let (tag, text) = sealed.split_at_checked(TAG_BYTES)?;
    verify_slices_are_equal(tag, &passphrase.tag(text)).ok()?;
    let (salt, rest) = text.split_first_chunk::<SALT_BYTES>()?;
    let (iv, encrypted) = rest.split_at_checked(cipher.block_bytes())?;
    cipher.decrypt(&key(cipher, passphrase, salt), iv, encrypted)
}

/// Base64 with or without padding.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(base64::engine::DecodePaddingMode::Indifferent),
);

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Cipher; 4] = [Cipher::Aes128, Cipher::Aes192, Cipher::Aes256, Cipher::TripleDes];

    #[test]
    fn sessions_of_apache_are_opened() {
        let secret = Passphrase::new(b"secret");
        for (cipher, sealed) in [
            (
                Cipher::Aes256,
                "imMRkG9h2tBMGedCEH1GgqjT0aZq+2rbHw9TfovhUeaBx3vNvDM6w7iRB2/H\
                 OgUekJ3SfIp1R3XKFAHtqfWJCxlSEgHnChmh",
            ),
            (
                Cipher::Aes128,
                "MzfWmEFyvk5sOfAgOuZC1KEN+sDJq0OSNSTrGHjvVI8r8hMW7wTj4JwA1vr2\
                 c1i+aAYYIlnsCIv8oWnnxCyvQeeq/JLWXbQI",
            ),
            (
                Cipher::TripleDes,
                "N8mGDeFDSaN6zH9ACE1J3IkUlnox0kFUXUVRSIEA/ytzCgrmJi1qwn1wpg6fARCCnsCGcplBV2k=",
            ),
        ] {
            let opened = open(cipher, &secret, sealed.as_bytes()).unwrap();
            assert_eq!(opened, b"user=alice&pw=x+y", "{cipher:?}");
            assert_eq!(open(cipher, &Passphrase::new(b"Secret"), sealed.as_bytes()), None);
        }
    }

    #[test]
    fn a_session_with_any_bit_changed_is_refused() {
        let secret = Passphrase::new(b"secret");
        for cipher in ALL {
            let sealed = seal(cipher, &secret, b"user=alice".to_vec()).unwrap();
            assert_eq!(open(cipher, &secret, &sealed).as_deref(), Some(&b"user=alice"[..]));
            let bytes = STANDARD.decode(&sealed).unwrap();
            for at in 0..bytes.len() * 8 {
                let mut changed = bytes.clone();
                changed[at / 8] ^= 1 << (at % 8);
                assert_eq!(
                    open(cipher, &secret, STANDARD.encode(changed).as_bytes()),
                    None,
                    "{at}"
                );
            }
            for length in 0..bytes.len() {
                assert_eq!(
                    open(cipher, &secret, STANDARD.encode(&bytes[..length]).as_bytes()),
                    None
                );
            }
        }
    }

    #[test]
    fn no_two_sessions_are_alike() {
        let secret = Passphrase::new(b"secret");
        let sealed = || seal(Cipher::Aes256, &secret, b"a=b".to_vec()).unwrap();
        assert_ne!(sealed(), sealed());
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]
        #[test]
        fn nothing_that_a_client_sends_panics(sent: Vec<u8>, name in "[a-z0-9]{0,8}") {
            let secret = Passphrase::new(name.as_bytes());
            for cipher in ALL {
                proptest::prop_assert_eq!(open(cipher, &secret, &sent), None);
                let sealed = STANDARD.encode(&sent);
                proptest::prop_assert_eq!(open(cipher, &secret, sealed.as_bytes()), None);
            }
        }
    }
}
