//! How much longer content may be than its compressed data (DeflateInflateRatioLimit).

/// A limit on the ratio of content to compressed data.
pub(in crate::filters) struct Ratio {
    limit: u64,
    burst: u32,
    hits: u32,
}

impl Ratio {
    /// Returns a limit of `limit`, which may be exceeded `burst` times in a row.
    pub(in crate::filters) fn new(limit: u64, burst: u32) -> Ratio {
        Ratio { limit, burst, hits: 0 }
    }

    /// Whether this ratio is tolerated.
    pub(in crate::filters) fn allows(&mut self, ratio: u64) -> bool {
        if ratio < self.limit {
            self.hits = 0;
            return true;
        }
        self.hits += 1;
        self.hits <= self.burst
    }
}
