//! The key of an anonymous session: a random UUID (RFC 9562, version 4).

use aws_lc_rs::rand::{SecureRandom, SystemRandom};

use crate::aaa::password::hex;

/// Bytes of a UUID.
const BYTES: usize = 16;
/// The numbers of digits between its hyphens.
const GROUPS: [usize; 5] = [8, 4, 4, 4, 12];

/// A new key; `None` if the system has no random bytes.
pub(super) fn random() -> Option<Vec<u8>> {
    let mut bytes = [0; BYTES];
    SystemRandom::new().fill(&mut bytes).ok()?;
    // Version and variant.
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let digits = hex(&bytes);
    let mut rest = digits.as_slice();
    let mut groups = Vec::with_capacity(GROUPS.len());
    for count in GROUPS {
        let (group, after) = rest.split_at_checked(count)?;
        groups.push(group);
        rest = after;
    }
    Some(groups.join(&b'-'))
}

/// A key as a client has sent it, in small letters; `None` if it is none (`apr_uuid_parse`).
pub(super) fn parse(text: &[u8]) -> Option<Vec<u8>> {
    let groups: Vec<&[u8]> = text.split(|byte| *byte == b'-').collect();
    let is_key = groups.len() == GROUPS.len()
        && groups
            .iter()
            .zip(GROUPS)
            .all(|(group, count)| group.len() == count && group.iter().all(u8::is_ascii_hexdigit));
    is_key.then(|| text.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_uuids() {
        let (one, two) = (random().unwrap(), random().unwrap());
        assert_ne!(one, two);
        assert_eq!(parse(&one).as_ref(), Some(&one));
        assert_eq!((one[14], one.len()), (b'4', 36));
        assert_eq!(parse(&one.to_ascii_uppercase()), Some(one));
        for wrong in ["", "x", "0123", "01234567-0123-0123-0123-0123456789ag", "a-b-c-d-e"] {
            assert_eq!(parse(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
