//! What a response costs: it is made repeatedly, and its phases are measured.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use regular::looks::Looks;
use server::explain::{Kind, Measured};

use super::report::Report;
use super::rows::{self, Group, Row};

/// The number of times that a response is made.
const RUNS: usize = 100;

/// The least number of times, even of an expensive response.
const LEAST_RUNS: usize = 5;

/// The time after which an expensive response is not made again.
const BUDGET: Duration = Duration::from_millis(20);

/// The time after which a very expensive one is not made again.
const LAST_BUDGET: Duration = Duration::from_millis(500);

/// Median times, without a client and with warm caches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// The number of times that the response was made.
    pub runs: usize,
    /// From the request's head to the response's head.
    pub response: Duration,
    /// The hooks of each phase, and the filters, in their order.
    pub phases: Measured,
    /// The memory allocations of the loop.
    pub allocations: u64,
}

/// One making of a response.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// From the request's head to the response's head.
    pub response: Duration,
    /// The hooks of each phase.
    pub phases: Measured,
    /// The memory allocations of the loop.
    pub allocations: u64,
}

/// The times of all runs.
pub struct Samples {
    began: Instant,
    responses: Vec<Duration>,
    phases: Vec<(&'static str, Vec<Duration>)>,
    /// Of the last run: by then every cache is warm.
    allocations: u64,
}

impl Samples {
    /// Begins.
    pub fn new() -> Samples {
        let began = Instant::now();
        Samples { began, responses: Vec::new(), phases: Vec::new(), allocations: 0 }
    }

    /// Whether the response is to be made once more.
    pub fn wants_more(&self) -> bool {
        let runs = self.responses.len();
        match self.began.elapsed() {
            took if took >= LAST_BUDGET => runs < 1,
            took if took >= BUDGET => runs < LEAST_RUNS,
            _ => runs < RUNS,
        }
    }

    /// Adds a run.
    pub fn add(&mut self, run: Run) {
        self.responses.push(run.response);
        self.allocations = run.allocations;
        for (name, took) in run.phases {
            match self.phases.iter_mut().find(|(known, _)| *known == name) {
                Some((_, all)) => all.push(took),
                None => self.phases.push((name, vec![took])),
            }
        }
    }

    /// The medians, and the allocations of the last run.
    pub fn medians(mut self) -> Cost {
        let of_phase = |(name, all): &mut (&'static str, Vec<Duration>)| (*name, median(all));
        Cost {
            runs: self.responses.len(),
            response: median(&mut self.responses),
            phases: self.phases.iter_mut().map(of_phase).collect(),
            allocations: self.allocations,
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

/// The time of a group's phases; empty if it has none.
pub fn time_of(group: &Group, cost: &Cost) -> String {
    let is_of_group = |phase: &str| rows::stage_of_phase(phase) == group.name;
    cost.of_phases(is_of_group).map(shown).unwrap_or_default()
}

/// What the whole response costs, and the work in it.
pub fn group(report: &Report, cost: &Cost) -> Group {
    let row = |label: &str, text: String| Row { label: label.to_owned(), text, ..Row::default() };
    let runs = cost.runs;
    let took = shown(cost.response);
    let mut rows = vec![row("response", format!("{took}, median of {runs} runs without a client"))];
    rows.push(row("file system", looks(report.looks)));
    let allocations = many_of(cost.allocations, "allocation");
    rows.push(row("memory", format!("{allocations}, those of a new connection included")));
    if report.cached.is_ok() {
        rows.push(row("cached", "these phases run once; later requests skip them".to_owned()));
    }
    let (mut rules, mut passed_over, mut conditions, mut files) = (0, 0, 0, Vec::new());
    report.event.each(&mut |event| match event.kind {
        Kind::Rule if event.fact("passed over").is_some() => passed_over += 1,
        Kind::Rule => rules += 1,
        Kind::Condition => conditions += 1,
        Kind::Section if event.fact("htaccess").is_some() => files.push(event.name.as_str()),
        _ => {}
    });
    if rules + passed_over > 0 {
        let mut text = format!("{} tried", many(rules, "rule"));
        if conditions > 0 {
            let _ = write!(text, ", {}", many(conditions, "condition"));
        }
        if passed_over > 0 {
            let _ = write!(text, "; {passed_over} passed over: the path begins otherwise");
        }
        rows.push(row("mod_rewrite", text));
    }
    files.sort_unstable();
    files.dedup();
    if !files.is_empty() {
        let object = if files.len() == 1 { "it" } else { "them" };
        let count = many(files.len(), "file");
        let text = format!("{count} parsed once; Apache httpd parses {object} for each request");
        rows.push(row(".htaccess", text));
    }
    Group { name: "cost".to_owned(), about: String::new(), rows }
}

/// What is asked of the file system without a file watch.
fn looks(looks: Looks) -> String {
    let (stats, opens) = (many_of(looks.stats, "stat"), many_of(looks.opens, "open"));
    format!("{stats}, {opens}; a server with a file watch does not repeat the stats")
}

fn many_of(count: u64, noun: &str) -> String {
    many(usize::try_from(count).unwrap_or(usize::MAX), noun)
}

fn many(count: usize, noun: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{ending}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_ignore_outliers() {
        let mut samples = Samples::new();
        for micros in [4, 5, 900] {
            let took = Duration::from_micros(micros);
            samples.add(Run {
                response: took * 2,
                phases: vec![("fixups", took)],
                allocations: micros,
            });
        }
        assert!(samples.wants_more());
        let cost = samples.medians();
        assert_eq!((cost.runs, cost.response), (3, Duration::from_micros(10)));
        assert_eq!(cost.allocations, 900);
        let fixups = cost.of_phases(|name| name == "fixups");
        assert_eq!(fixups.map(shown), Some("5.0 µs".to_owned()));
        assert_eq!(cost.of_phases(|name| name == "handler"), None);
    }
}
