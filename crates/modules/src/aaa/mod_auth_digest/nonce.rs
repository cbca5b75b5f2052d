//! Nonces: a number in base64, and a tag of it, the realm and the opaque value of the client under
//! a secret of this server. The number is the time, or counts if each nonce is for one request.

use std::sync::OnceLock;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::hmac::{self, HMAC_SHA256, Key};
use aws_lc_rs::rand::SystemRandom;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::aaa::password::hex;

/// Bytes of the number in base64.
const NUMBER_BYTES: usize = 12;
/// Bytes of the tag before it is written in digits, as many as SHA-1's in Apache.
const TAG_BYTES: usize = 20;

/// The secret: of all processes, since it is made before they are.
static SECRET: OnceLock<Option<Key>> = OnceLock::new();

/// Makes the secret; returns whether there are random bytes.
pub(super) fn prepare() -> bool {
    secret().is_some()
}

fn secret() -> Option<&'static Key> {
    SECRET.get_or_init(|| Key::generate(HMAC_SHA256, &SystemRandom::new()).ok()).as_ref()
}

fn tag(number: &[u8], realm: &[u8], opaque: &[u8]) -> Option<Vec<u8>> {
    let mut context = hmac::Context::with_key(secret()?);
    for part in [realm, b"\0", number, opaque] {
        context.update(part);
    }
    Some(hex(context.sign().as_ref().get(..TAG_BYTES)?))
}

/// The nonce of a number.
pub(super) fn make(number: u64, realm: &[u8], opaque: &[u8]) -> Option<Vec<u8>> {
    let number = STANDARD.encode(number.to_le_bytes()).into_bytes();
    let tag = tag(&number, realm, opaque)?;
    Some([number, tag].concat())
}

/// The number of a nonce that this server has made for this realm and client.
pub(super) fn number(nonce: &[u8], realm: &[u8], opaque: &[u8]) -> Option<u64> {
    let (number, sent) = nonce.split_at_checked(NUMBER_BYTES)?;
    verify_slices_are_equal(sent, &tag(number, realm, opaque)?).ok()?;
    let bytes: [u8; 8] = STANDARD.decode(number).ok()?.try_into().ok()?;
    Some(u64::from_le_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::super::field::NONCE_BYTES;
    use super::*;

    #[test]
    fn a_nonce_belongs_to_realm_and_client() {
        let nonce = make(7, b"realm", b"1").unwrap();
        assert_eq!(nonce.len(), NONCE_BYTES);
        assert_eq!(number(&nonce, b"realm", b"1"), Some(7));
        assert_eq!(number(&nonce, b"other", b"1"), None);
        assert_eq!(number(&nonce, b"realm", b""), None);
        for at in 0..nonce.len() * 8 {
            let mut changed = nonce.clone();
            changed[at / 8] ^= 1 << (at % 8);
            assert_eq!(number(&changed, b"realm", b"1"), None, "{at}");
        }
        for length in 0..nonce.len() {
            assert_eq!(number(&nonce[..length], b"realm", b"1"), None);
        }
    }
}
