//! Steers new connections: derives weights from the loops' loads, and changes them only if it pays.
//! By default the kernel distributes connections evenly, which is right most of the time.
//!
//! The weights are approached step by step: a loop that is busier than the others gets a little
//! less, until all are equally busy. Weights derived from a single sample would send all new
//! connections to the loop that happened to be idle, and reverse at the next one.

/// Loops whose loads differ by more than this are steered.
const APART: f64 = 0.30;
/// A smaller difference is as good as can be had; if the parts are nearly even too, steering ends.
const CLOSE: f64 = 0.15;
/// A part within this distance of an even one, as a share of it, is nearly even: without steering
/// the loads would differ slightly more, but not enough to resume it.
const NEARLY_EVEN: f64 = 0.25;
/// How much the part of a busier loop is reduced per step, relative to its excess load.
const GAIN: f64 = 0.5;
/// The weight of the current sample; the rest is history.
const FRESH: f64 = 0.5;
/// If even the busiest loop uses less than this share of a CPU, the sample is ignored.
const IDLE: f64 = 0.10;
/// The weight of an even part.
const WEIGHT_EVEN: f64 = 16.0;
/// The weight of a loop without time left: it is probed now and then.
const WEIGHT_LEAST: u32 = 1;
/// Weights that differ by at most this from the current ones do not justify a new program.
const WEIGHT_STEP: u32 = 1;

/// The load of a loop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Load {
    /// The share of a CPU that it uses or waits for.
    pub share: f64,
    /// It does not turn, or does not exist.
    pub is_stalled: bool,
}

/// The current distribution of connections.
#[derive(Clone, Debug, Default)]
pub(crate) struct Steering {
    /// The loops' smoothed loads.
    shares: Vec<f64>,
    /// Each loop's target part, as a multiple of an even one; empty while the parts are even.
    parts: Vec<f64>,
    /// The current weights, one per loop; empty if the kernel distributes evenly.
    weights: Vec<u32>,
}

impl Steering {
    /// The new weights, if they have changed: one per loop, 0 to exclude a loop; empty for an even
    /// distribution.
    ///
    /// Samples are ignored while loops `are_loose`: unpinned loops are equally busy wherever they
    /// run, which would erase what was learnt about their own CPUs.
    pub(crate) fn turn(&mut self, loads: &[Load], are_loose: bool) -> Option<&[u32]> {
        if !are_loose || self.shares.len() != loads.len() {
            self.learn(loads);
        }
        let weights = self.wanted(loads);
        let is_like = |(one, other): (&u32, &u32)| {
            (*one == 0) == (*other == 0) && one.abs_diff(*other) <= WEIGHT_STEP
        };
        let is_same = weights.len() == self.weights.len();
        if is_same && weights.iter().zip(&self.weights).all(is_like) {
            return None;
        }
        self.weights = weights;
        Some(&self.weights)
    }

    /// Stops steering: returns empty weights if there were any.
    pub(crate) fn stop(&mut self) -> Option<Vec<u32>> {
        let is_steering = !std::mem::take(self).weights.is_empty();
        is_steering.then(Vec::new)
    }

    /// The loops that get no connections now.
    pub(crate) fn avoided(&self) -> impl Iterator<Item = usize> + '_ {
        self.weights.iter().enumerate().filter(|(_, weight)| **weight == 0).map(|(at, _)| at)
    }

    /// Moves the parts one step towards equal loads of all turning loops.
    fn learn(&mut self, loads: &[Load]) {
        if self.shares.len() != loads.len() {
            self.parts.clear();
            self.shares = loads.iter().map(|load| load.share.clamp(0.0, 1.0)).collect();
        }
        for (share, load) in self.shares.iter_mut().zip(loads) {
            *share += FRESH * (load.share.clamp(0.0, 1.0) - *share);
        }
        let seen = self.shares.iter().zip(loads);
        let turning: Vec<f64> =
            seen.filter(|(_, load)| !load.is_stalled).map(|(share, _)| *share).collect();
        let busiest = turning.iter().copied().fold(0.0, f64::max);
        let apart = busiest - turning.iter().copied().fold(1.0, f64::min);
        if turning.len() < 2 || self.parts.is_empty() && apart < APART {
            self.parts.clear();
            return;
        }
        self.parts.resize(loads.len(), 1.0);
        if apart < CLOSE && self.parts.iter().all(|part| (part - 1.0).abs() <= NEARLY_EVEN) {
            self.parts.clear();
        }
        if self.parts.is_empty() || apart < CLOSE && busiest >= IDLE {
            return;
        }
        let mean = turning.iter().sum::<f64>() / turning.len() as f64;
        for ((part, share), load) in self.parts.iter_mut().zip(&self.shares).zip(loads) {
            *part = match load.is_stalled || busiest < IDLE {
                // The part is outdated: drift towards even.
                true => *part + GAIN * (1.0 - *part),
                false => *part * (1.0 - GAIN * (share - mean)),
            };
        }
        let sum: f64 = self.parts.iter().sum();
        let scale = self.parts.len() as f64 / sum.max(f64::MIN_POSITIVE);
        self.parts.iter_mut().for_each(|part| *part *= scale);
    }

    fn wanted(&self, loads: &[Load]) -> Vec<u32> {
        let count = loads.iter().filter(|load| !load.is_stalled).count();
        // If no loop turns, any of them may hold the queue.
        if loads.len() < 2 || count == 0 || self.parts.is_empty() && count == loads.len() {
            return Vec::new();
        }
        let weight = |(at, load): (usize, &Load)| match load.is_stalled {
            true => 0,
            false => {
                let part = self.parts.get(at).copied().unwrap_or(1.0);
                ((part * WEIGHT_EVEN).round() as u32).max(WEIGHT_LEAST)
            }
        };
        let weights: Vec<u32> = loads.iter().enumerate().map(weight).collect();
        let is_even = |weight: &u32| weight.abs_diff(WEIGHT_EVEN as u32) <= WEIGHT_STEP;
        if weights.iter().all(is_even) { Vec::new() } else { weights }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn loads(shares: &[f64]) -> Vec<Load> {
        shares.iter().map(|share| Load { share: *share, is_stalled: false }).collect()
    }

    #[test]
    fn even_loads_are_the_kernels_business() {
        let mut steering = Steering::default();
        assert_eq!(steering.turn(&loads(&[0.5, 0.6, 0.7]), false), None);
        assert_eq!(steering.turn(&loads(&[1.0]), false), None);
        assert_eq!(steering.turn(&[], false), None);
        assert_eq!(steering.stop(), None);
    }

    /// Two loops, the second of which is half as fast: how busy each is, if the arriving work would
    /// occupy the first for `come` of its time.
    fn half_as_fast(weights: &[u32], come: f64) -> Vec<Load> {
        let parts = match weights {
            [one, other] => {
                [f64::from(*one), f64::from(*other)].map(|w| w / f64::from(one + other))
            }
            _ => [0.5; 2],
        };
        loads(&[parts[0] * come, parts[1] * come * 2.0])
    }

    #[test]
    fn uneven_loads_are_steered_until_all_are_as_busy() {
        let mut steering = Steering::default();
        let mut weights = Vec::new();
        let mut firsts = Vec::new();
        for _ in 0..60 {
            if let Some(new) = steering.turn(&half_as_fast(&weights, 1.2), false) {
                weights = new.to_vec();
                firsts.push(weights[0]);
            }
        }
        let [one, other] = weights[..] else { panic!("{weights:?}") };
        let ratio = f64::from(one) / f64::from(other);
        assert!((1.5..2.5).contains(&ratio), "it gets half of what the other gets: {weights:?}");
        assert!(firsts.is_sorted(), "a way there, and no swinging: {firsts:?}");
        // Both are equally fast again: back to even parts, and then to the kernel's distribution.
        let alike = |weights: &[u32]| match weights {
            [one, other] => {
                let sum = f64::from(one + other);
                loads(&[f64::from(*one) / sum * 1.2, f64::from(*other) / sum * 1.2])
            }
            _ => loads(&[0.6, 0.6]),
        };
        for _ in 0..60 {
            if let Some(new) = steering.turn(&alike(&weights), false) {
                weights = new.to_vec();
            }
        }
        assert!(weights.is_empty(), "{weights:?}");
        assert_eq!(steering.turn(&alike(&[]), false), None);
    }

    #[test]
    fn one_turn_is_chance_and_idle_loops_teach_nothing() {
        let mut steering = Steering::default();
        assert_eq!(steering.turn(&loads(&[0.5, 0.5]), false), None);
        assert_eq!(steering.turn(&loads(&[0.8, 0.4]), false), None, "seen once");
        assert_eq!(steering.turn(&loads(&[0.5, 0.5]), false), None);
        for _ in 0..8 {
            steering.turn(&loads(&[0.9, 0.1]), false);
        }
        assert!(!steering.weights.is_empty());
        for _ in 0..20 {
            steering.turn(&loads(&[0.05, 0.0]), false);
        }
        assert!(steering.weights.is_empty(), "{:?}", steering.weights);
    }

    #[test]
    fn a_stalled_loop_gets_nothing() {
        let mut steering = Steering::default();
        let mut three = loads(&[0.1, 0.1, 0.1]);
        three[1].is_stalled = true;
        assert_eq!(steering.turn(&three, false), Some(&[16, 0, 16][..]));
        assert_eq!(steering.avoided().collect::<Vec<_>>(), [1]);
        assert_eq!(steering.clone().stop(), Some(Vec::new()));
        assert_eq!(steering.turn(&loads(&[0.1, 0.1, 0.1]), false), Some(&[][..]));
        assert_eq!(steering.avoided().count(), 0);
        // No loop turns: there is no better choice.
        three.iter_mut().for_each(|load| load.is_stalled = true);
        assert_eq!(steering.turn(&three, false), None);
    }

    proptest! {
        #[test]
        fn some_loop_always_gets_connections(
            loads in proptest::collection::vec((0.0..2.0f64, any::<bool>()), 0..20),
        ) {
            let loads: Vec<Load> =
                loads.into_iter().map(|(share, is_stalled)| Load { share, is_stalled }).collect();
            let mut steering = Steering::default();
            if let Some(weights) = steering.turn(&loads, false) {
                prop_assert_eq!(weights.len(), loads.len());
                prop_assert!(weights.iter().any(|weight| *weight > 0));
                for (weight, load) in weights.iter().zip(&loads) {
                    prop_assert_eq!(*weight == 0, load.is_stalled);
                }
            }
        }
    }
}
