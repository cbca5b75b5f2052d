//! What a response costs: it is made repeatedly, and its phases are measured.

use std::time::{Duration, Instant};

use server::explain::Measured;

/// The number of times that a response is made.
const RUNS: usize = 100;

/// The least number of times, even of an expensive response.
const LEAST_RUNS: usize = 5;

/// The time after which an expensive response is not made again.
const BUDGET: Duration = Duration::from_millis(20);

/// Median times, without a client and with warm caches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// The number of times that the response was made.
    pub runs: usize,
    /// From the request's head to the response's head.
    pub response: Duration,
    /// The hooks of each phase, and the filters, in their order.
    pub phases: Measured,
}

/// The times of all runs.
pub struct Samples {
    began: Instant,
    responses: Vec<Duration>,
    phases: Vec<(&'static str, Vec<Duration>)>,
}

impl Samples {
    /// Begins.
    pub fn new() -> Samples {
        Samples { began: Instant::now(), responses: Vec::new(), phases: Vec::new() }
    }

    /// Whether the response is to be made once more.
    pub fn wants_more(&self) -> bool {
        let runs = self.responses.len();
        runs < LEAST_RUNS || (runs < RUNS && self.began.elapsed() < BUDGET)
    }

    /// Adds a run.
    pub fn add(&mut self, response: Duration, phases: Measured) {
        self.responses.push(response);
        for (name, took) in phases {
            match self.phases.iter_mut().find(|(known, _)| *known == name) {
                Some((_, all)) => all.push(took),
                None => self.phases.push((name, vec![took])),
            }
        }
    }

    /// The medians.
    pub fn medians(mut self) -> Cost {
        let of_phase = |(name, all): &mut (&'static str, Vec<Duration>)| (*name, median(all));
        Cost {
            runs: self.responses.len(),
            response: median(&mut self.responses),
            phases: self.phases.iter_mut().map(of_phase).collect(),
        }
    }
}

fn median(all: &mut [Duration]) -> Duration {
    all.sort_unstable();
    all.get(all.len() / 2).copied().unwrap_or_default()
}

impl Cost {
    /// The time of the phases that `is_one` accepts.
    pub fn of_phases(&self, is_one: impl Fn(&str) -> bool) -> Option<Duration> {
        let times: Vec<Duration> =
            self.phases.iter().filter(|(name, _)| is_one(name)).map(|(_, took)| *took).collect();
        (!times.is_empty()).then(|| times.iter().sum())
    }
}

/// A time as shown.
pub fn shown(took: Duration) -> String {
    let micros = took.as_nanos() as f64 / 1000.0;
    match micros {
        ..1000.0 => format!("{micros:.1} µs"),
        _ => format!("{:.1} ms", micros / 1000.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_ignore_outliers() {
        let mut samples = Samples::new();
        for micros in [4, 5, 900] {
            let took = Duration::from_micros(micros);
            samples.add(took * 2, vec![("fixups", took)]);
        }
        assert!(samples.wants_more());
        let cost = samples.medians();
        assert_eq!((cost.runs, cost.response), (3, Duration::from_micros(10)));
        let fixups = cost.of_phases(|name| name == "fixups");
        assert_eq!(fixups.map(shown), Some("5.0 µs".to_owned()));
        assert_eq!(cost.of_phases(|name| name == "handler"), None);
    }
}
