//! What loops have done in a window of time.

use mpm::affinity::rebalance::WindowSample;
use rt::Load;

use super::PeerLoops;

/// A window in progress: its start, and how busy the loop and two peers had been until then.
pub(super) struct Window {
    at_us: u64,
    busy_us: u64,
    /// The peers, and how busy they had been.
    others: Vec<(usize, u64)>,
    random: Random,
}

impl Window {
    /// The first window of loop `own` of its process.
    pub(super) fn new(own: usize) -> Window {
        Window { at_us: 0, busy_us: 0, others: Vec::new(), random: Random::new(own) }
    }

    /// Starts a window now.
    pub(super) fn begin(&mut self, peers: &PeerLoops, now_us: u64) {
        self.at_us = now_us;
        self.busy_us = peers.own().map_or(0, |own| own.load.busy_us());
        self.others.clear();
        let others = peers.all.len().saturating_sub(1);
        let one = self.random.below(others);
        // Any of the others except the first one, by its distance from it.
        let another = (others > 1).then(|| (one + 1 + self.random.below(others - 1)) % others);
        for at in [Some(one), another].into_iter().flatten() {
            let at = (peers.own + 1 + at) % peers.all.len();
            let busy_us = peers.all.get(at).map_or(0, |other| other.load.busy_us());
            self.others.push((at, busy_us));
        }
    }

    /// The share of the window so far in which the loop was busy.
    pub(super) fn own_share(&self, peers: &PeerLoops, now_us: u64) -> f64 {
        peers.own().map_or(0.0, |own| self.share(&own.load, self.busy_us, now_us))
    }

    /// The less busy of the sampled peers that could take something; if they are equally busy, the
    /// one with fewer connections.
    pub(super) fn other(&self, peers: &PeerLoops, now_us: u64) -> Option<(usize, WindowSample)> {
        let samples = self.others.iter().filter_map(|(at, before_us)| {
            let other = peers.all.get(*at).filter(|other| other.can_take())?;
            let share = self.share(&other.load, *before_us, now_us);
            Some((
                *at,
                WindowSample { share, connections: other.connections(), ..WindowSample::default() },
            ))
        });
        samples.min_by(|(_, one), (_, other)| {
            let shares = one.share.total_cmp(&other.share);
            shares.then(one.connections.cmp(&other.connections))
        })
    }

    fn share(&self, load: &Load, before_us: u64, now_us: u64) -> f64 {
        let passed_us = now_us.saturating_sub(self.at_us).max(1);
        (load.busy_us().saturating_sub(before_us) as f64 / passed_us as f64).min(1.0)
    }
}

/// Pseudo-random numbers (xorshift64), for choices that need not be unpredictable.
struct Random(u64);

impl Random {
    fn new(seed: usize) -> Random {
        Random(0x9e37_79b9_7f4a_7c15 ^ seed as u64)
    }

    /// A number below `bound`; 0 if that is 0.
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 16).unwrap_or(0).checked_rem(bound).unwrap_or(0)
    }
}
