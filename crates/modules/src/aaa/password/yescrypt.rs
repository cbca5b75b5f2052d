//! yescrypt (`$y$`), Debian's current default.
//!
//! Source: crypt(5) "yescrypt".

use yescrypt::{Params, yescrypt};

use super::{LETTERS, letter};

/// Length of the hash itself.
const HASH_BYTES: usize = 32;
/// Most bytes of memory for a password: crypt(3)'s highest cost.
const MEMORY_LIMIT: u64 = 1 << 30;

/// Hashes `password` with the parameters and the salt of `kept`; `None` if they are invalid.
pub(super) fn hash(password: &[u8], kept: &[u8]) -> Option<Vec<u8>> {
    let mut fields = kept.strip_prefix(b"$y$")?.split(|byte| *byte == b'$');
    let (settings, salt) = (fields.next()?, fields.next()?);
    let params: Params = std::str::from_utf8(settings).ok()?.parse().ok()?;
    let memory = params.n().checked_mul(u64::from(params.r()))?.checked_mul(128)?;
    if memory > MEMORY_LIMIT {
        return None;
    }
    let mut made = [0; HASH_BYTES];
    yescrypt(password, &decoded(salt)?, &params, &mut made).ok()?;
    Some([b"$y$", settings, b"$", salt, b"$", &encoded(&made)].concat())
}

/// Decodes four letters into three bytes, the lowest bits first.
fn decoded(text: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    for letters in text.chunks(4) {
        let mut bits = 0u32;
        for (place, byte) in letters.iter().enumerate() {
            let value = LETTERS.iter().position(|known| known == byte)?;
            bits |= u32::try_from(value).ok()? << (6 * place);
        }
        let bytes = bits.to_le_bytes();
        out.extend_from_slice(bytes.get(..letters.len() * 6 / 8)?);
    }
    Some(out)
}

fn encoded(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len() * 4 / 3 + 1);
    for group in bytes.chunks(3) {
        let bits = group.iter().rev().fold(0u64, |bits, byte| bits << 8 | u64::from(*byte));
        out.extend((0..=group.len()).map(|place| letter(bits >> (6 * place))));
    }
    out
}
