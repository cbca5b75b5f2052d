//! Finds bytes of a class, 16 at a time.

/// Bytes that are examined at once.
const CHUNK: usize = 16;

/// The same of a shorter text.
const SHORT: usize = 8;

const ONES: u64 = 0x0101_0101_0101_0101;

/// Whether a byte of the chunk is of `class`. Without branches the compiler examines all with a few
/// instructions.
#[inline]
fn has<const N: usize>(chunk: &[u8; N], class: impl Fn(u8) -> bool) -> bool {
    chunk.iter().fold(false, |any, byte| any | class(*byte))
}

/// Whether a byte of `text` is of `class`, which is best written without branches.
#[inline]
pub(crate) fn contains(text: &[u8], class: impl Fn(u8) -> bool) -> bool {
    let Some(last) = text.last_chunk::<CHUNK>() else {
        return match (text.first_chunk::<SHORT>(), text.last_chunk::<SHORT>()) {
            (Some(first), Some(last)) => has(first, &class) || has(last, &class),
            _ => text.iter().any(|byte| class(*byte)),
        };
    };
    // The last chunk overlaps the one before it.
    text.as_chunks::<CHUNK>().0.iter().any(|chunk| has(chunk, &class)) || has(last, &class)
}

/// The position of the first byte of `class`, which is best written without branches.
#[inline]
pub(crate) fn position(text: &[u8], class: impl Fn(u8) -> bool) -> Option<usize> {
    let chunks = text.as_chunks::<CHUNK>().0;
    let clean = chunks.iter().take_while(|chunk| !has(chunk, &class)).count() * CHUNK;
    let rest = text.get(clean..)?.iter().position(|byte| class(*byte))?;
    Some(clean + rest)
}

/// The position of the first control byte: one below the space, or DEL.
pub(crate) fn control(text: &[u8]) -> Option<usize> {
    let is_control = |byte: u8| (byte < b' ') | (byte == 0x7f);
    let (chunks, _) = text.as_chunks::<CHUNK>();
    let clean = chunks.iter().take_while(|chunk| !has(chunk, is_control)).count() * CHUNK;
    let (words, last) = text.get(clean..)?.as_chunks::<8>();
    let mut at = clean;
    for word in words {
        let found = controls(u64::from_le_bytes(*word));
        if found != 0 {
            return Some(at + found.trailing_zeros() as usize / 8);
        }
        at += 8;
    }
    last.iter().position(|byte| is_control(*byte)).map(|last| at + last)
}

/// The highest bit of the first byte that is a control byte; those above it are arbitrary.
#[inline]
const fn controls(word: u64) -> u64 {
    let del = word ^ (ONES * 0x7f);
    let low = word.wrapping_sub(ONES * 0x20) & !word;
    (low | (del.wrapping_sub(ONES) & !del)) & (ONES << 7)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn byte() -> impl Strategy<Value = u8> {
        prop_oneof![30 => 0x20..=0xffu8, 1 => any::<u8>()]
    }

    proptest! {
        #[test]
        fn the_first_is_found(
            text in prop::collection::vec(byte(), 0..90),
        ) {
            let expected = text.iter().position(u8::is_ascii_control);
            prop_assert_eq!(control(&text), expected);
            prop_assert_eq!(contains(&text, |byte| byte.is_ascii_control()), expected.is_some());
            prop_assert_eq!(position(&text, |byte| byte.is_ascii_control()), expected);
        }
    }

    #[test]
    fn every_byte_has_its_class() {
        for before in [b' ', 0x80, 0xff, b'~'] {
            for byte in 0..=255u8 {
                for at in 0..20 {
                    let mut text = [before; 20];
                    text[at] = byte;
                    assert_eq!(control(&text), byte.is_ascii_control().then_some(at), "{byte}");
                    assert!(contains(&text, |other| other == byte), "{byte}");
                }
            }
        }
    }
}
