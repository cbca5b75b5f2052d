//! Which loops new connections go to: weights from the loops' loads, changed only where it is worth
//! it. The kernel spreads connections evenly by itself, which is right most of the time.

/// Loops whose loads are further apart than this are steered to unevenly.
const APART: f64 = 0.30;
/// Steering ends when they are closer than this.
const CLOSE: f64 = 0.15;
/// The weight of a loop that has all its time free.
const WEIGHT_FULL: u32 = 16;
/// The weight of a loop that has no time left: somebody has to ask it now and then.
const WEIGHT_LEAST: u32 = 1;

/// What is known of a loop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Load {
    /// The share of a CPU that it uses or waits for.
    pub share: f64,
    /// It does not turn, or is not there.
    pub is_stalled: bool,
}

/// How connections are spread now.
#[derive(Clone, Debug, Default)]
pub(crate) struct Steering {
    /// A weight for each loop; empty where the kernel spreads evenly.
    weights: Vec<u32>,
}

impl Steering {
    /// How connections are to be spread from now on, if that is another way than before: a weight
    /// for each loop, 0 for who is to get none; nothing where all are alike.
    pub(crate) fn turn(&mut self, loads: &[Load]) -> Option<&[u32]> {
        let weights = self.wanted(loads);
        if weights == self.weights {
            return None;
        }
        self.weights = weights;
        Some(&self.weights)
    }

    /// Ends steering: no weights, if there were any.
    pub(crate) fn stop(&mut self) -> Option<Vec<u32>> {
        let is_steering = !std::mem::take(&mut self.weights).is_empty();
        is_steering.then(Vec::new)
    }

    /// The loops that get nothing now.
    pub(crate) fn avoided(&self) -> impl Iterator<Item = usize> + '_ {
        self.weights.iter().enumerate().filter(|(_, weight)| **weight == 0).map(|(at, _)| at)
    }

    fn wanted(&self, loads: &[Load]) -> Vec<u32> {
        let turning = || loads.iter().filter(|load| !load.is_stalled);
        let count = turning().count();
        // With nobody to send them to they may as well wait at any.
        if loads.len() < 2 || count == 0 {
            return Vec::new();
        }
        let shares = || turning().map(|load| load.share.clamp(0.0, 1.0));
        let apart = shares().fold(0.0, f64::max) - shares().fold(1.0, f64::min);
        let bound = if self.weights.is_empty() { APART } else { CLOSE };
        let is_even = apart < bound;
        if is_even && count == loads.len() {
            return Vec::new();
        }
        let weight = |load: &Load| match load.is_stalled {
            true => 0,
            false if is_even => WEIGHT_FULL,
            false => {
                let free = 1.0 - load.share.clamp(0.0, 1.0);
                // Rounded to a few steps, so that a little more or less is no other program.
                let quarter = f64::from(WEIGHT_FULL) / 4.0;
                ((free * 4.0).round() * quarter).max(f64::from(WEIGHT_LEAST)) as u32
            }
        };
        loads.iter().map(weight).collect()
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
        assert_eq!(steering.turn(&loads(&[0.5, 0.6, 0.7])), None);
        assert_eq!(steering.turn(&loads(&[1.0])), None);
        assert_eq!(steering.turn(&[]), None);
        assert_eq!(steering.stop(), None);
    }

    #[test]
    fn uneven_loads_are_steered_until_they_are_close() {
        let mut steering = Steering::default();
        assert_eq!(steering.turn(&loads(&[0.9, 0.2])), Some(&[1, 12][..]));
        assert_eq!(steering.turn(&loads(&[0.92, 0.22])), None);
        // Neither far apart nor close: it stays.
        assert_eq!(steering.turn(&loads(&[0.70, 0.50])), Some(&[4, 8][..]));
        assert_eq!(steering.turn(&loads(&[0.62, 0.55])), Some(&[][..]));
        assert_eq!(steering.turn(&loads(&[0.70, 0.50])), None);
    }

    #[test]
    fn who_stands_still_gets_nothing() {
        let mut steering = Steering::default();
        let mut three = loads(&[0.1, 0.1, 0.1]);
        three[1].is_stalled = true;
        assert_eq!(steering.turn(&three), Some(&[16, 0, 16][..]));
        assert_eq!(steering.avoided().collect::<Vec<_>>(), [1]);
        assert_eq!(steering.clone().stop(), Some(Vec::new()));
        assert_eq!(steering.turn(&loads(&[0.1, 0.1, 0.1])), Some(&[][..]));
        assert_eq!(steering.avoided().count(), 0);
        // Nobody turns: nothing is gained by choosing.
        three.iter_mut().for_each(|load| load.is_stalled = true);
        assert_eq!(steering.turn(&three), None);
    }

    proptest! {
        #[test]
        fn somebody_always_gets_connections(
            loads in proptest::collection::vec((0.0..2.0f64, any::<bool>()), 0..20),
        ) {
            let loads: Vec<Load> =
                loads.into_iter().map(|(share, is_stalled)| Load { share, is_stalled }).collect();
            let mut steering = Steering::default();
            if let Some(weights) = steering.turn(&loads) {
                prop_assert_eq!(weights.len(), loads.len());
                prop_assert!(weights.iter().any(|weight| *weight > 0));
                for (weight, load) in weights.iter().zip(&loads) {
                    prop_assert_eq!(*weight == 0, load.is_stalled);
                }
            }
        }
    }
}
