//! Random numbers.

use std::hash::{BuildHasher, Hasher, RandomState};

/// A number below `count`; 0 where there is none.
pub(crate) fn below(count: usize) -> usize {
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_usize(count);
    let bits = hasher.finish();
    let count = u64::try_from(count.max(1)).unwrap_or(u64::MAX);
    usize::try_from(bits % count).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::below;

    #[test]
    fn every_number_comes() {
        let mut seen = [false; 3];
        for _ in 0..1000 {
            seen[below(3)] = true;
        }
        assert_eq!(seen, [true; 3]);
        assert_eq!((below(0), below(1)), (0, 0));
    }
}
