//! A set of CPU numbers, and the kernel's formats for it.

use std::collections::BTreeSet;
use std::fmt;

use crate::scoreboard::MASK_WORDS;

/// The limit on CPU numbers: the size of the kernel's classic mask (`CPU_SETSIZE`).
pub const CPU_NUMBERS: usize = 1024;

/// CPU numbers, ascending.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CpuSet(BTreeSet<usize>);

impl CpuSet {
    /// Parses the kernel's list format (`0-3,8`), as used in sysfs. Skips anything that is not a
    /// number or is too large.
    pub fn from_kernel(text: &str) -> Self {
        let parts = text.trim().split(',').filter_map(range);
        Self(parts.flat_map(|(first, last)| first..=last.min(CPU_NUMBERS - 1)).collect())
    }

    /// Parses the kernel's mask format: 32-bit words in hexadecimal, highest first, separated by
    /// commas.
    pub fn from_kernel_mask(text: &str) -> Self {
        let words = text.trim().rsplit(',').map(|word| u32::from_str_radix(word, 16).unwrap_or(0));
        let bits = words.take(CPU_NUMBERS / 32).enumerate().flat_map(|(at, word)| {
            (0..32).filter(move |bit| word >> bit & 1 == 1).map(move |bit| at * 32 + bit)
        });
        bits.collect()
    }

    /// Parses user input in the format of [`CpuSet::from_kernel`]; `None` if any part is invalid,
    /// or if it is empty.
    pub fn parse(text: &str) -> Option<Self> {
        let mut set = BTreeSet::new();
        for part in text.split(',') {
            let (first, last) = range(part)?;
            if first > last || last >= CPU_NUMBERS {
                return None;
            }
            set.extend(first..=last);
        }
        (!set.is_empty()).then_some(Self(set))
    }

    /// Whether it contains `cpu`.
    pub fn contains(&self, cpu: usize) -> bool {
        self.0.contains(&cpu)
    }

    /// The number of CPUs.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// One bit per CPU, 64 in a word, as in the scoreboard.
    pub fn to_words(&self) -> [u64; MASK_WORDS] {
        let mut words = [0; MASK_WORDS];
        for cpu in self.iter() {
            words[cpu / 64] |= 1 << (cpu % 64);
        }
        words
    }

    /// The set with these bits.
    pub fn from_words(words: &[u64]) -> Self {
        let bits = words.iter().enumerate().flat_map(|(at, word)| {
            (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| at * 64 + bit)
        });
        bits.collect()
    }

    /// The CPUs in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().copied()
    }

    /// The lowest CPU.
    pub fn first(&self) -> Option<usize> {
        self.0.first().copied()
    }

    /// The intersection.
    pub fn and(&self, other: &Self) -> Self {
        Self(self.0.intersection(&other.0).copied().collect())
    }

    /// Whether it is a subset of `other`.
    pub fn is_within(&self, other: &Self) -> bool {
        self.0.is_subset(&other.0)
    }
}

impl FromIterator<usize> for CpuSet {
    fn from_iter<I: IntoIterator<Item = usize>>(cpus: I) -> Self {
        Self(cpus.into_iter().filter(|cpu| *cpu < CPU_NUMBERS).collect())
    }
}

impl fmt::Display for CpuSet {
    /// The format that [`CpuSet::from_kernel`] parses.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0.iter().copied().peekable();
        let mut comma = "";
        while let Some(first) = rest.next() {
            let mut last = first;
            while let Some(next) = rest.next_if_eq(&(last + 1)) {
                last = next;
            }
            match last - first {
                0 => write!(out, "{comma}{first}")?,
                _ => write!(out, "{comma}{first}-{last}")?,
            }
            comma = ",";
        }
        Ok(())
    }
}

/// `3` or `0-3`.
fn range(part: &str) -> Option<(usize, usize)> {
    let (first, last) = part.split_once('-').unwrap_or((part, part));
    Some((first.trim().parse().ok()?, last.trim().parse().ok()?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn nonsense_of_the_kernel_is_left_out_and_of_a_person_refused() {
        assert!(CpuSet::from_kernel("").is_empty());
        assert_eq!(CpuSet::from_kernel("x,3,5-,2-1\n"), [3].into_iter().collect());
        assert_eq!(CpuSet::from_kernel("0-99999999999999").len(), CPU_NUMBERS);
        for wrong in ["", "x", "1,,2", "5-", "2-1", "-1", "0-1024", "1;2"] {
            assert_eq!(CpuSet::parse(wrong), None, "{wrong}");
        }
        assert_eq!(CpuSet::parse("8,0-2").unwrap().to_string(), "0-2,8");
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(cpus in proptest::collection::btree_set(0..70usize, 1..40)) {
            let set: CpuSet = cpus.into_iter().collect();
            prop_assert_eq!(CpuSet::from_kernel(&set.to_string()), set.clone());
            prop_assert_eq!(CpuSet::from_words(&set.to_words()), set.clone());
            prop_assert_eq!(CpuSet::parse(&set.to_string()), Some(set));
        }
    }
}
