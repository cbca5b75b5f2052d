//! The limits of a match, and where they apply.
//!
//! A match is tried in up to three ways, each with more room than the one before:
//!
//! 1. as compiled, in machine code if possible, under [`quick_steps`];
//! 2. interpreted and counted ([`crate::counted`]) under [`LOOP_WORK`], for long but easy matches;
//! 3. interpreted and counted under Apache's limits, until a deadline.
//!
//! Loops use the first two ([`Regex::glance`](crate::Regex::glance)): these limits are counts, so
//! that outcomes do not depend on the machine's load. The third is for threads that may block.

/// Most steps from one place of the subject, in the third way: libpcre2's default, which httpd does
/// not change. A match that needs more is undecided.
pub const MATCH_LIMIT: u32 = 10_000_000;

/// Most memory for backtracking in the third way, in KiB. libpcre2's default of 20 GB would let one
/// request take all memory; this suffices for a subject of 300 KB with a step for each byte.
pub const HEAP_LIMIT_KIB: u32 = 128 * 1024;

/// Most memory for backtracking in the second way. More would keep a loop busy with allocation.
pub const LOOP_HEAP_LIMIT_KIB: u32 = 8 * 1024;

/// Most bytes of a matching thread's stack for machine code. The system provides pages as they are
/// used.
pub const JIT_STACK_BYTES: usize = 1024 * 1024;

/// Initial size of that stack in bytes: as much as machine code has without its own.
pub const JIT_STACK_FIRST_BYTES: usize = 32 * 1024;

/// Steps of machine code in the first way. Measured at 4 to 10 ns each (`examples/steps.rs`).
const QUICK_STEPS: u64 = 1_000_000;

/// The same for a pattern that is interpreted for lack of machine code, at 20 to 40 ns each.
const QUICK_STEPS_INTERPRETED: u64 = 200_000;

/// The fewest steps for each place with which the first way is worth trying.
const QUICK_STEPS_LEAST: u64 = 20;

/// Subjects up to this length, which are nearly all, share the limit for this length, which is
/// computed when the pattern is compiled.
pub(crate) const SHORT_BYTES: usize = 256;

/// A step may pass over the rest of the subject but is counted once. This many bytes take about as
/// long as a step.
pub(crate) const BYTES_PER_STEP: usize = 64;

/// Most work in the second way: steps, and the bytes that they pass over. Measured at 50 to 90 ns a
/// step.
pub const LOOP_WORK: u64 = 300_000;

/// Work between two looks at the clock in the third way: about a millisecond.
pub(crate) const WORK_BETWEEN_LOOKS: u64 = 16 * 1024;

/// Facts about a pattern that determine its cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Whether it can match at one place only.
    pub anchored: bool,
    /// Whether it can pass over any number of bytes from one place.
    pub unbounded: bool,
    /// Whether it has machine code.
    pub compiled: bool,
}

impl Shape {
    /// Most steps from each place of a subject of `length` bytes in the first way; `None` if that
    /// is too few to try. libpcre2 restarts its count at each place, so the limit shrinks as the
    /// number of places grows.
    pub(crate) fn quick_steps(self, length: usize) -> Option<u32> {
        let places = self.places(length);
        let weight = if self.unbounded { 1 + (length / BYTES_PER_STEP) as u64 } else { 1 };
        let all = if self.compiled { QUICK_STEPS } else { QUICK_STEPS_INTERPRETED };
        let steps = all / places.saturating_mul(weight);
        (steps >= QUICK_STEPS_LEAST).then_some(steps as u32)
    }

    /// Apache's limit, for all places of the subject together.
    pub(crate) fn steps_of_all(self, length: usize) -> u32 {
        (u64::from(MATCH_LIMIT) / self.places(length)).max(1) as u32
    }

    fn places(self, length: usize) -> u64 {
        if self.anchored { 1 } else { (length as u64).saturating_add(1) }
    }
}

/// Whether a pattern may pass over any number of bytes: it has an unbounded repeat, or recurses. A
/// false positive, such as for an escaped star, only costs a smaller limit.
pub(crate) fn is_unbounded(pattern: &[u8]) -> bool {
    let repeats = |byte: &u8| matches!(byte, b'*' | b'+' | b'{');
    let calls = |pair: &[u8]| {
        let (first, second) = (pair.first(), pair.get(1));
        let called = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'R' | b'&' | b'P' | b'-');
        match (first, second) {
            (Some(b'?'), Some(byte)) => called(byte),
            (Some(b'\\'), Some(byte)) => *byte == b'g',
            _ => false,
        }
    };
    pattern.iter().any(repeats) || pattern.windows(2).any(calls)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_repeats_without_a_bound() {
        for pattern in ["a*", "a+", "a{2,}", "(a(?1)?)", "(?R)", "(?<x>a)(?&x)", "(a)\\g<1>"] {
            assert!(is_unbounded(pattern.as_bytes()), "{pattern}");
        }
        for pattern in ["", "MSIE [2-6]", "^/a(b|c)?$", "(?i)x", "(?:a|b)\\.c", "a?b"] {
            assert!(!is_unbounded(pattern.as_bytes()), "{pattern}");
        }
    }

    #[test]
    fn the_longer_the_subject_the_fewer_steps_for_each_place() {
        let shape = Shape { anchored: false, unbounded: true, compiled: true };
        assert!(shape.quick_steps(100).unwrap() > 1000);
        assert!(shape.quick_steps(1000).unwrap() < 100);
        assert_eq!(shape.quick_steps(8000), None);
        assert_eq!(shape.quick_steps(usize::MAX), None);
        let literal = Shape { unbounded: false, ..shape };
        assert!(literal.quick_steps(8000).unwrap() > 100);
        let anchored = Shape { anchored: true, ..shape };
        assert!(anchored.quick_steps(8000).unwrap() > 5000);
        assert_eq!(Shape { unbounded: false, ..anchored }.quick_steps(8000), Some(1_000_000));
    }
}
