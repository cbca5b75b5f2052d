//! Which keys a table may have.

/// Marks of keys that were seen: a bit for each may be that of several.
#[derive(Clone, Copy, Default)]
pub(super) struct Seen([u64; 4]);

impl Seen {
    pub(super) const fn none() -> Seen {
        Seen([0; 4])
    }

    /// Notes a mark, and returns whether its bit was set before.
    #[inline]
    pub(super) fn note(&mut self, mark: u32) -> bool {
        let is_taken = self.may_have(mark);
        let (word, bit) = place(mark);
        self.0[word] |= 1 << bit;
        is_taken
    }

    /// Whether the mark may have been noted.
    #[inline]
    pub(super) fn may_have(&self, mark: u32) -> bool {
        let (word, bit) = place(mark);
        self.0[word] >> bit & 1 == 1
    }
}

/// The word of a mark, and the bit in it.
#[inline]
const fn place(mark: u32) -> (usize, u32) {
    let bit = mark.wrapping_mul(0x9e37_79b1) >> 24;
    ((bit >> 6) as usize & 3, bit & 63)
}
