//! Pairs of name and value (section 3.4): two lengths of 1 byte, or of 4 bytes with the top bit
//! set, then both texts.

/// Lengths below this take one byte.
const SHORT: usize = 128;

/// The longest text of a pair, bytes.
const TEXT_BYTES_MAX: usize = (1 << 31) - 1;

/// Bytes of a pair when written.
pub(super) fn pair_bytes(name: &[u8], value: &[u8]) -> usize {
    let of = |text: &[u8]| text.len() + if text.len() < SHORT { 1 } else { 4 };
    of(name) + of(value)
}

/// Appends a pair. A text is at most 2³¹ − 1 bytes long; the callers in this crate keep far below.
pub fn write_pair(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    debug_assert!(name.len().max(value.len()) <= TEXT_BYTES_MAX);
    match [name.len(), value.len()] {
        // Most are.
        [name, value] if name < SHORT && value < SHORT => {
            out.extend_from_slice(&[name as u8, value as u8]);
        }
        lengths => {
            for len in lengths {
                match len < SHORT {
                    true => out.push(len as u8),
                    false => out.extend_from_slice(&(len as u32 | 1 << 31).to_be_bytes()),
                }
            }
        }
    }
    out.extend_from_slice(name);
    out.extend_from_slice(value);
}

/// Iterates over the pairs of a content, and ends at the first that is cut short:
/// [`Pairs::is_whole`].
#[derive(Clone, Debug)]
pub struct Pairs<'a> {
    rest: &'a [u8],
}

impl<'a> Pairs<'a> {
    /// The pairs of `content`.
    pub const fn new(content: &'a [u8]) -> Self {
        Pairs { rest: content }
    }

    /// Whether all bytes were pairs, once the iteration has ended.
    pub const fn is_whole(&self) -> bool {
        self.rest.is_empty()
    }
}

impl<'a> Iterator for Pairs<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (name_len, after) = length(self.rest)?;
        let (value_len, after) = length(after)?;
        let (name, after) = after.split_at_checked(name_len)?;
        let (value, after) = after.split_at_checked(value_len)?;
        self.rest = after;
        Some((name, value))
    }
}

fn length(text: &[u8]) -> Option<(usize, &[u8])> {
    let (first, after) = text.split_first()?;
    if usize::from(*first) < SHORT {
        return Some((usize::from(*first), after));
    }
    let (long, after) = text.split_first_chunk::<4>()?;
    Some(((u32::from_be_bytes(*long) & !(1 << 31)) as usize, after))
}
