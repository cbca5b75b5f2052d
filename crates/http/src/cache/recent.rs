//! Paths that were requested recently, by their hashes.

/// Hashes of one set in no order; 0 is none.
type Set = [u32; SET_HASHES];

/// Hashes in a set. With a single one, of 5,000 paths that are requested in turn a quarter would
/// overwrite each other and never be found.
const SET_HASHES: usize = 4;

/// Hashes for each response that the cache may hold.
const HASHES_PER_RESPONSE: usize = 2;

/// The paths that were requested recently: a response is cached on the second request for its path.
pub(super) struct Recent {
    sets: Box<[Set]>,
    /// The place of the next hash in a full set. All sets share it, so that the paths of one set
    /// do not replace each other in a fixed order, in which none would ever be found.
    next: usize,
}

impl Recent {
    /// Returns an empty set for a cache of so many responses.
    pub fn new(responses: usize) -> Recent {
        let sets = (responses * HASHES_PER_RESPONSE / SET_HASHES).max(1);
        Recent { sets: vec![Set::default(); sets].into(), next: 0 }
    }

    /// Whether the path with this hash was requested recently; notes that it was.
    pub fn note(&mut self, hash: u64) -> bool {
        let count = self.sets.len() as u64;
        // The low half is the path's mark, the high half selects its set.
        let (index, mark) = ((hash >> 32) % count, (hash as u32).max(1));
        let Some(set) = self.sets.get_mut(index as usize) else { return false };
        if set.contains(&mark) {
            return true;
        }
        let free = set.iter().position(|known| *known == 0);
        set[free.unwrap_or(self.next % SET_HASHES)] = mark;
        self.next = self.next.wrapping_add(1);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::super::store::RESPONSE_LIMIT;
    use super::*;

    /// A hash as good as those of paths (the mixer of SplitMix64).
    fn hash(number: u64) -> u64 {
        let mixed = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// How many of `count` paths are still unknown after each time that they are requested in
    /// turn. One that is found is cached, and not looked for again.
    fn left(count: u64, times: usize) -> Vec<usize> {
        let mut recent = Recent::new(RESPONSE_LIMIT);
        let mut paths: Vec<u64> = (0..count).map(hash).collect();
        let mut time = || {
            paths.retain(|path| !recent.note(*path));
            paths.len()
        };
        (0..times).map(|_| time()).collect()
    }

    #[test]
    fn paths_that_are_requested_in_turn_are_all_found() {
        let left_of = left(5_000, 6);
        assert!(left_of[0] == 5_000 && left_of[1] < 50 && left_of[5] == 0, "{left_of:?}");
        let left_of = left(RESPONSE_LIMIT as u64 / 2, 8);
        assert!(left_of[1] < 400 && left_of[7] == 0, "{left_of:?}");
    }

    #[test]
    fn a_full_set_forgets_one() {
        let mut recent = Recent::new(1);
        let mut note = |marks: &[u64]| marks.iter().filter(|mark| recent.note(**mark)).count();
        assert_eq!(note(&[1, 2, 3, 4]), 0);
        assert_eq!(note(&[1, 2, 3, 4]), 4);
        assert_eq!(note(&[5]), 0);
        assert_eq!(note(&[5]), 1);
    }
}
