//! Random numbers from a seed: the same seed gives the same sites and requests everywhere.

/// SplitMix64: small, fast, and good enough to choose test cases.
#[derive(Debug, Clone)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The sequence of a seed.
    pub fn new(seed: u64) -> Random {
        Random { state: seed }
    }

    /// A sequence for a part of the work, so that parts are independent.
    pub fn part(seed: u64, number: u64) -> Random {
        let mut parent = Random::new(seed ^ number.wrapping_mul(0xd134_2543_de82_ef95));
        Random::new(parent.next())
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`; 0 if `end` is 0.
    pub fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end).unwrap_or(u64::MAX).max(1);
        usize::try_from(self.next() % end).unwrap_or(0)
    }

    /// True with a chance in per cent.
    pub fn percent(&mut self, chance: usize) -> bool {
        self.below(100) < chance
    }

    /// One of the choices, or the default if there is none.
    pub fn pick<T: Clone + Default>(&mut self, choices: &[T]) -> T {
        let at = self.below(choices.len());
        choices.get(at).cloned().unwrap_or_default()
    }

    /// The index of a weight, chosen in proportion to it.
    pub fn weighted(&mut self, weights: impl Iterator<Item = usize> + Clone) -> usize {
        let mut left = self.below(weights.clone().sum());
        for (at, weight) in weights.enumerate() {
            if left < weight {
                return at;
            }
            left -= weight;
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::Random;

    #[test]
    fn a_seed_fixes_the_sequence() {
        let draw = |seed| {
            let mut random = Random::part(seed, 3);
            (0..20).map(|_| random.below(1000)).collect::<Vec<_>>()
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }

    #[test]
    fn weights_are_kept() {
        let mut random = Random::new(1);
        let mut counts = [0; 3];
        for _ in 0..4000 {
            counts[random.weighted([1, 0, 3].into_iter())] += 1;
        }
        assert!(counts[1] == 0 && counts[2] > 2 * counts[0], "{counts:?}");
    }
}
