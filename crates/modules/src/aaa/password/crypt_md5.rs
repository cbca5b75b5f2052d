//! The MD5-based hashes `$1$` (crypt(3)) and `$apr1$` (htpasswd).
//!
//! Source: `apr_md5_encode`, crypt(5) "md5crypt".

use md5::{Digest, Md5};

use super::letter;

/// Most bytes of a salt.
const SALT_LIMIT: usize = 8;
/// The number of rounds.
const ROUNDS: usize = 1000;

/// Hashes `password` with the salt of `kept`, which begins with `magic`.
pub(super) fn hash(password: &[u8], kept: &[u8], magic: &[u8]) -> Vec<u8> {
    let rest = kept.strip_prefix(magic).unwrap_or(kept);
    let salt = rest.split(|byte| *byte == b'$').next().unwrap_or_default();
    let salt = salt.get(..SALT_LIMIT).unwrap_or(salt);
    let mut digest = first(password, salt, magic);
    for round in 0..ROUNDS {
        let mut next = Md5::new();
        next.update(if round & 1 != 0 { password } else { &digest });
        if round % 3 != 0 {
            next.update(salt);
        }
        if round % 7 != 0 {
            next.update(password);
        }
        next.update(if round & 1 != 0 { &digest } else { password });
        digest = next.finalize().into();
    }
    [magic, salt, b"$", &letters(&digest)].concat()
}

/// The digest that the first round starts from.
fn first(password: &[u8], salt: &[u8], magic: &[u8]) -> [u8; 16] {
    let inner = Md5::new().chain_update(password).chain_update(salt).chain_update(password);
    let inner: [u8; 16] = inner.finalize().into();
    let mut digest = Md5::new().chain_update(password).chain_update(magic).chain_update(salt);
    let mut left = password.len();
    while left > 0 {
        let part = left.min(inner.len());
        digest.update(inner.get(..part).unwrap_or_default());
        left -= part;
    }
    let mut bits = password.len();
    while bits > 0 {
        digest.update(if bits & 1 != 0 { &[0] } else { password.get(..1).unwrap_or_default() });
        bits >>= 1;
    }
    digest.finalize().into()
}

fn letters(digest: &[u8; 16]) -> Vec<u8> {
    const ORDER: [[usize; 3]; 5] = [[0, 6, 12], [1, 7, 13], [2, 8, 14], [3, 9, 15], [4, 10, 5]];
    let at = |index: usize| u64::from(digest.get(index).copied().unwrap_or(0));
    let mut out = Vec::with_capacity(22);
    for [high, middle, low] in ORDER {
        let bits = at(high) << 16 | at(middle) << 8 | at(low);
        out.extend((0..4).map(|place| letter(bits >> (6 * place))));
    }
    out.extend((0..2).map(|place| letter(at(11) >> (6 * place))));
    out
}
