//! LZW as compress(1) writes it.
//!
//! Source: `unlzw` (gzip). Codes of growing length, lowest bit first; when the length grows, the
//! rest of a group of eight codes is skipped.

/// The code that empties the table, in block mode.
const CLEAR: usize = 256;

/// Bits of the first codes, and most bits that a file may ask for.
const BITS_MIN: u32 = 9;
const BITS_MAX: u32 = 16;

/// Decompresses at most `limit` bytes and a word, up to the first code that can't be; nothing if
/// that begins the data.
pub(super) fn unpack(packed: &[u8], limit: usize) -> Vec<u8> {
    let [_, _, flags, data @ ..] = packed else { return Vec::new() };
    let (most_bits, is_block_mode) = (u32::from(flags & 0x1f), flags & 0x80 != 0);
    if !(BITS_MIN..=BITS_MAX).contains(&most_bits) {
        return Vec::new();
    }
    let mut codes = Codes { data, at: 0, group: 0, bits: BITS_MIN, most_bits };
    let first_free = if is_block_mode { CLEAR + 1 } else { CLEAR };
    // Prefix and last byte of each code from `first_free` on.
    let mut table: Vec<(usize, u8)> = Vec::new();
    let (mut out, mut before) = (Vec::new(), None::<(usize, u8)>);
    while out.len() < limit {
        codes.fit(first_free + table.len());
        let Some(code) = codes.next() else { break };
        if is_block_mode && code == CLEAR {
            table.clear();
            before = None;
            codes.set_bits(BITS_MIN);
            continue;
        }
        let Some((previous, first)) = before else {
            let Ok(byte) = u8::try_from(code) else { return Vec::new() };
            out.push(byte);
            before = Some((code, byte));
            continue;
        };
        let free = first_free + table.len();
        let is_new = code == free;
        if code > free {
            // gzip(1) writes what precedes the fault.
            return out;
        }
        // A code that is not in the table yet is the word before and its own first byte.
        let mut word = expand(if is_new { previous } else { code }, first_free, &table);
        let head = word.first().copied().unwrap_or(first);
        if is_new {
            word.push(head);
        }
        out.extend_from_slice(&word);
        if free < 1 << most_bits {
            table.push((previous, head));
        }
        before = Some((code, head));
    }
    out
}

/// The word of a code. A prefix is smaller than its code, so this ends.
fn expand(mut code: usize, first_free: usize, table: &[(usize, u8)]) -> Vec<u8> {
    let mut word = Vec::new();
    while let Some((prefix, last)) = code.checked_sub(first_free).and_then(|at| table.get(at)) {
        word.push(*last);
        code = *prefix;
    }
    word.push(code as u8);
    word.reverse();
    word
}

/// The codes of a file.
struct Codes<'d> {
    data: &'d [u8],
    /// The position, in bits, and that of the group of eight codes.
    at: usize,
    group: usize,
    bits: u32,
    most_bits: u32,
}

impl Codes<'_> {
    /// Makes codes longer if `free`, the next code to be used, needs it.
    fn fit(&mut self, free: usize) {
        if self.bits < self.most_bits && free > (1 << self.bits) - 1 {
            self.set_bits(self.bits + 1);
        }
    }

    fn set_bits(&mut self, bits: u32) {
        let group_bits = self.bits as usize * 8;
        let groups = (self.at - self.group).div_ceil(group_bits);
        self.at = self.group + groups * group_bits;
        self.group = self.at;
        self.bits = bits;
    }

    fn next(&mut self) -> Option<usize> {
        let bits = self.bits as usize;
        let start = self.at / 8;
        let byte = |at: usize| self.data.get(at).map_or(0, |byte| usize::from(*byte));
        if (self.at + bits).div_ceil(8) > self.data.len() {
            return None;
        }
        let word = byte(start) | byte(start + 1) << 8 | byte(start + 2) << 16;
        let code = word >> (self.at % 8) & ((1 << bits) - 1);
        self.at += bits;
        Some(code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compresses with codes of nine bits: as many bytes as fit before they grow.
    fn pack(text: &[u8]) -> Vec<u8> {
        let mut out = vec![0x1f, 0x9d, 0x90];
        let (mut word, mut count) = (0u64, 0);
        for byte in text {
            word |= u64::from(*byte) << count;
            count += 9;
            while count >= 8 {
                out.push(word as u8);
                (word, count) = (word >> 8, count - 8);
            }
        }
        out.push(word as u8);
        out
    }

    #[test]
    fn words_are_unpacked() {
        assert_eq!(unpack(&pack(b"hello"), 100), b"hello");
        assert_eq!(unpack(b"\x1f\x9d\x90", 100), b"");
        assert_eq!(unpack(b"\x1f\x9d\xff\0\0\0", 100), b"");
        assert_eq!(unpack(b"\x1f\x9d\x90\xff\xff\xff", 100), b"");
        assert_eq!(unpack(b"\x1f\x9d\x90abc", 100), b"a");
        // As compress(1) packs "aaaaaaaa": a, 257, 258, and what is left.
        let packed = b"\x1f\x9d\x90\x61\x02\x0a\x0c";
        assert_eq!(unpack(packed, 100), b"aaaaaa");
    }
}
