//! Words of the shared region.

use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;

use mpm::shared::SeqBytes;

/// Words of the region. A program that has none (`tamarack explain`) has words of its own.
pub(super) struct Words<const N: usize> {
    shared: OnceLock<&'static [AtomicU64; N]>,
    own: Box<[AtomicU64; N]>,
}

impl<const N: usize> Default for Words<N> {
    fn default() -> Words<N> {
        Words { shared: OnceLock::new(), own: Box::new([const { AtomicU64::new(0) }; N]) }
    }
}

impl<const N: usize> Words<N> {
    /// The words.
    pub fn all(&self) -> &[AtomicU64; N] {
        self.shared.get().copied().unwrap_or(&self.own)
    }

    /// A text in the words that begin with `AT`, in as many as [`words_of`] tells for `BYTES`.
    pub fn text<const AT: usize, const BYTES: usize>(&self) -> SeqBytes<'_> {
        let end = AT + words_of(BYTES);
        SeqBytes::new(self.all().get(AT..end).unwrap_or_default())
    }

    /// Uses these words from now on. Done once, before any request.
    pub fn share(&self, words: &'static [AtomicU64; N]) {
        let _ = self.shared.set(words);
    }
}

/// The words that a text of at most `bytes` takes.
pub(super) const fn words_of(bytes: usize) -> usize {
    2 + bytes.div_ceil(8)
}
