//! The time that phases take.

use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

/// The time of each phase that had a hook, in the order of the first run.
pub type Measured = Vec<(&'static str, Duration)>;

/// Measures phases, without those inside others: a subrequest's belong to its hook.
#[derive(Default)]
pub(super) struct Meter {
    is_on: Cell<bool>,
    depth: Cell<usize>,
    phases: RefCell<Measured>,
}

impl Meter {
    /// Begins.
    pub fn begin(&self) {
        self.is_on.set(true);
    }

    /// Ends, and returns what was measured since it began.
    pub fn end(&self) -> Measured {
        self.is_on.set(false);
        self.phases.take()
    }

    /// Whether it has begun.
    pub fn is_on(&self) -> bool {
        self.is_on.get()
    }

    /// Counts the time of a phase until the result is dropped.
    pub fn run(&self, phase: &'static str) -> Running<'_> {
        self.depth.set(self.depth.get() + 1);
        Running { meter: self, phase, began: Instant::now() }
    }
}

/// A phase that runs.
pub(super) struct Running<'m> {
    meter: &'m Meter,
    phase: &'static str,
    began: Instant,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let took = self.began.elapsed();
        self.meter.depth.set(self.meter.depth.get() - 1);
        if self.meter.depth.get() > 0 {
            return;
        }
        let mut phases = self.meter.phases.borrow_mut();
        match phases.iter_mut().find(|(known, _)| *known == self.phase) {
            Some((_, sum)) => *sum += took,
            None => phases.push((self.phase, took)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inner_phases_belong_to_outer_ones() {
        let meter = Meter::default();
        meter.begin();
        for _ in 0..2 {
            let _fixups = meter.run("fixups");
            let _inner = meter.run("type_checker");
        }
        drop(meter.run("handler"));
        let names: Vec<_> = meter.end().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["fixups", "handler"]);
        assert!(!meter.is_on() && meter.end().is_empty());
    }
}
