//! What loops did in a window of time.

use mpm::affinity::relief::Seen;
use rt::Load;

use super::Neighbours;

/// A window that has begun: when, and how busy the loop and two others had been until then.
pub(super) struct Window {
    at_us: u64,
    busy_us: u64,
    /// Who, and how busy they had been.
    others: Vec<(usize, u64)>,
    random: Random,
}

impl Window {
    /// The first window of loop `own` of its process.
    pub(super) fn new(own: usize) -> Window {
        Window { at_us: 0, busy_us: 0, others: Vec::new(), random: Random::new(own) }
    }

    /// Begins a window now.
    pub(super) fn begin(&mut self, neighbours: &Neighbours, now_us: u64) {
        self.at_us = now_us;
        self.busy_us = neighbours.own().map_or(0, |own| own.load.busy_us());
        self.others.clear();
        let others = neighbours.all.len().saturating_sub(1);
        let one = self.random.below(others);
        // Any of the others but that one, by how far it stands behind it.
        let another = (others > 1).then(|| (one + 1 + self.random.below(others - 1)) % others);
        for at in [Some(one), another].into_iter().flatten() {
            let at = (neighbours.own + 1 + at) % neighbours.all.len();
            let busy_us = neighbours.all.get(at).map_or(0, |other| other.load.busy_us());
            self.others.push((at, busy_us));
        }
    }

    /// The share of the window up to now that the loop itself was busy.
    pub(super) fn own_share(&self, neighbours: &Neighbours, now_us: u64) -> f64 {
        neighbours.own().map_or(0.0, |own| self.share(&own.load, self.busy_us, now_us))
    }

    /// Of the others that were looked at the one that was less busy, of those that would take
    /// something; where they were alike the one with fewer connections.
    pub(super) fn other(&self, neighbours: &Neighbours, now_us: u64) -> Option<(usize, Seen)> {
        let seen = self.others.iter().filter_map(|(at, before_us)| {
            let other = neighbours.all.get(*at).filter(|other| other.is_willing())?;
            let share = self.share(&other.load, *before_us, now_us);
            Some((*at, Seen { share, connections: other.connections(), ..Seen::default() }))
        });
        seen.min_by(|(_, one), (_, other)| {
            let shares = one.share.total_cmp(&other.share);
            shares.then(one.connections.cmp(&other.connections))
        })
    }

    fn share(&self, load: &Load, before_us: u64, now_us: u64) -> f64 {
        let passed_us = now_us.saturating_sub(self.at_us).max(1);
        (load.busy_us().saturating_sub(before_us) as f64 / passed_us as f64).min(1.0)
    }
}

/// Numbers that look like chance (xorshift64), for choices that nobody gains by foreseeing.
struct Random(u64);

impl Random {
    fn new(seed: usize) -> Random {
        Random(0x9e37_79b9_7f4a_7c15 ^ seed as u64)
    }

    /// A number below `bound`; 0 where there is none.
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 16).unwrap_or(0).checked_rem(bound).unwrap_or(0)
    }
}
