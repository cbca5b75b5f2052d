//! A run: rounds of sites on two threads, then what they found, made small, and the statistics.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use blackbox::compare::{Rule, difference};
use blackbox::escape::escape;
use blackbox::http2;

use crate::generate;
use crate::identities;
use crate::includes;
use crate::kept::{self, Needs};
use crate::pair::{Pair, Servers};
use crate::proxies;
use crate::rows::MODULES;
use crate::sample::Sample;
use crate::scripts;
use crate::shrink::shrink;
use crate::site::{Case, Seat};
use crate::streams;
use crate::verdict::{Signature, Verdict};

/// Simultaneous rounds.
const WORKERS: usize = 2;
/// How many differences of one kind are kept, and how many of all kinds are made small.
const KIND_MAX: usize = 12;
const SHRUNK_MAX: usize = 40;
/// How long differences are made small after the rounds: as long as the rounds took, and at least
/// this time. What was begun then ends with the smallest case found, and its test file: on a busy
/// machine that takes up to 30 s more.
const SHRINK_LIMIT: Duration = Duration::from_secs(30);
/// How long a single difference is made small.
const PURSUIT_LIMIT: Duration = Duration::from_secs(30);

/// When the rounds of a run end.
#[derive(Debug, Clone, Copy)]
pub enum Limit {
    /// A time.
    Time(Duration),
    /// A number of rounds: the same on every machine.
    Rounds(u64),
}

/// What happens to differences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// They are made small after the rounds.
    Shrink,
    /// The first of each kind is printed as it was seen.
    Kinds,
    /// The same, and the first of all ends the run.
    First,
}

/// What is generated.
#[derive(Clone, Copy)]
pub struct Sites {
    /// The cases of a round, by seed and number.
    batch: fn(u64, u64) -> Vec<Case>,
    modules: &'static [&'static str],
    /// The servers behind them, as a test file declares them.
    backends: &'static [&'static str],
    /// The interval of rounds in which a site is sampled for the directives that decided its
    /// responses.
    sampled_every: Option<u64>,
}

impl Sites {
    /// What a test file of such a site declares.
    fn needs(&self) -> Needs<'static> {
        Needs { modules: self.modules, backends: self.backends }
    }
}

/// Sites of files.
pub const FILES: Sites =
    Sites { batch: generate::batch, modules: &MODULES, backends: &[], sampled_every: Some(8) };

/// Sites of CGI programs.
pub const SCRIPTS: Sites =
    Sites { batch: scripts::batch, modules: &scripts::MODULES, backends: &[], sampled_every: None };

/// Sites of pages with server-side includes.
pub const PAGES: Sites = Sites {
    batch: includes::batch,
    modules: &includes::MODULES,
    backends: &[],
    sampled_every: None,
};

/// Sites that ask for logins.
pub const LOGINS: Sites = Sites {
    batch: identities::batch,
    modules: &identities::MODULES,
    backends: &[],
    sampled_every: Some(3),
};

/// Sites of a proxy with servers behind it.
pub const PROXIES: Sites = Sites {
    batch: proxies::batch,
    modules: &proxies::MODULES,
    backends: &proxies::BACKENDS,
    sampled_every: None,
};

/// A run of the program.
pub struct Run {
    seed: u64,
    limit: Limit,
    manner: Manner,
    sites: Sites,
    tests: PathBuf,
    pair: Pair,
    began: Instant,
    from: u64,
    next: AtomicU64,
    requests: AtomicUsize,
    results: Mutex<Results>,
}

#[derive(Default)]
struct Results {
    /// Responses by Apache's status.
    statuses: BTreeMap<String, usize>,
    /// Configurations that both refuse, by Apache's message.
    refused: BTreeMap<String, usize>,
    sample: Sample,
    /// Kinds of differences.
    kinds: BTreeMap<Signature, Kind>,
    /// What is to be made small, in the order of its rounds.
    found: Vec<Found>,
    /// What was made small: kind and directives, so that the same is shown once.
    told: BTreeSet<(Signature, Vec<String>)>,
    findings: usize,
    fleeting: usize,
}

/// How often a kind of difference came up, and when first.
#[derive(Clone, Copy)]
struct Kind {
    count: usize,
    round: u64,
    after: Duration,
}

/// A difference in its case, whose last request shows it.
struct Found {
    round: u64,
    /// The number of its host in the round.
    host: usize,
    case: Case,
    signature: Signature,
    /// The lines that differ, if it is not seen again.
    lines: String,
}

impl Run {
    /// Uses the installed apache2 and the newest Tamarack.
    pub fn new(
        seed: u64,
        from: u64,
        limit: Limit,
        manner: Manner,
        sites: Sites,
        tests: &Path,
    ) -> Result<Run, String> {
        let pair = Pair::new(tests, sites.modules, sites.backends)?;
        Ok(Run {
            seed,
            limit,
            manner,
            sites,
            tests: tests.to_owned(),
            pair,
            began: Instant::now(),
            from,
            next: AtomicU64::new(from),
            requests: AtomicUsize::new(0),
            results: Mutex::default(),
        })
    }

    /// Runs all rounds and prints what came; how many differences were found.
    pub fn go(&self) -> Result<usize, String> {
        println!("compare: seed {}, {:?}", self.seed, self.limit);
        self.on_all(Run::work);
        let took = self.began.elapsed();
        self.locked(|results| results.found.sort_by_key(|found| std::cmp::Reverse(found.round)))?;
        if self.manner == Manner::Shrink {
            self.on_all(Run::make_small);
        }
        self.locked(|results| self.report(results, took))
    }

    fn on_all(&self, work: fn(&Run)) {
        std::thread::scope(|scope| {
            for _ in 0..WORKERS {
                scope.spawn(|| work(self));
            }
        });
    }

    fn locked<T>(&self, with: impl FnOnce(&mut Results) -> T) -> Result<T, String> {
        let mut results = self.results.lock().map_err(|_| "a worker panicked")?;
        Ok(with(&mut results))
    }

    fn report(&self, results: &mut Results, took: Duration) -> usize {
        let list = |counts: &BTreeMap<String, usize>| {
            let items = counts.iter().map(|(name, count)| format!("{name}: {count}"));
            items.collect::<Vec<_>>().join(", ")
        };
        println!("statuses: {}", list(&results.statuses));
        for (reason, count) in &results.refused {
            println!("both refuse {count}: {reason}");
        }
        print!("{}", results.sample.text());
        let idle = results.sample.idle();
        if !idle.is_empty() {
            println!("never decided anything: {}", idle.join(", "));
        }
        for (signature, Kind { count, round, after }) in &results.kinds {
            let after = after.as_secs_f64();
            println!("{count} times, first in round {round} after {after:.1} s: {signature}");
        }
        println!(
            "seed {}: {} rounds, {} requests, {:.1} s; {} configurations both refuse; \
             {} differences of {} kinds, {} shrunk, {} not seen again, {} left",
            self.seed,
            self.next.load(Ordering::Relaxed).saturating_sub(self.from + WORKERS as u64),
            self.requests.load(Ordering::Relaxed),
            took.as_secs_f64(),
            results.refused.values().sum::<usize>(),
            results.kinds.values().map(|kind| kind.count).sum::<usize>(),
            results.kinds.len(),
            results.findings,
            results.fleeting,
            results.found.len(),
        );
        results.findings + results.found.len()
    }

    fn work(&self) {
        let mut pair = self.pair.clone();
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let is_over = match self.limit {
                Limit::Time(limit) => self.began.elapsed() >= limit,
                Limit::Rounds(rounds) => number >= self.from + rounds,
            };
            let is_found = || self.locked(|results| !results.kinds.is_empty()).unwrap_or(true);
            if is_over || self.manner == Manner::First && is_found() {
                return;
            }
            self.round(number, &mut pair);
        }
    }

    fn round(&self, number: u64, pair: &mut Pair) {
        let mut cases = (self.sites.batch)(self.seed, number);
        if http2::is_on() {
            streams::reduce(&mut cases);
        }
        if !rustix::process::geteuid().is_root() {
            cases.iter_mut().for_each(|case| case.site.without_owners());
        }
        let verdicts = pair.ask(&cases);
        for (host, (case, verdict)) in cases.iter().zip(&verdicts).enumerate() {
            self.count(verdict);
            let mut seen = BTreeSet::new();
            for at in 0..case.requests.len() {
                if let Some(signature) = verdict.at(at)
                    && seen.insert(signature.clone())
                {
                    let mut case = case.clone();
                    case.requests.truncate(at + 1);
                    let lines = differences(&case, verdict);
                    let lines = lines.or_else(|| verdict.difference_of_logs());
                    let lines = lines.unwrap_or_default();
                    self.keep(Found { round: number, host, case, signature, lines });
                }
                if verdict.refused.is_some() || verdict.end.is_some() {
                    break;
                }
            }
        }
        if let Some(every) = self.sites.sampled_every
            && (number + 1).is_multiple_of(every)
            && let Some(case) = cases.first()
        {
            let mut sample = Sample::default();
            sample.look(case, &mut pair.apache_alone());
            let _ = self.locked(|results| results.sample.add(sample));
        }
    }

    fn count(&self, verdict: &Verdict) {
        self.requests.fetch_add(verdict.exchanges.len(), Ordering::Relaxed);
        let _ = self.locked(|results| {
            if verdict.refused == Some((false, false)) {
                *results.refused.entry(reason(&verdict.reason)).or_default() += 1;
            }
            for exchange in &verdict.exchanges {
                let status = exchange.apache.first().and_then(|line| line.split(' ').nth(2));
                let status = status.unwrap_or("none").to_owned();
                *results.statuses.entry(status).or_default() += 1;
            }
        });
    }

    /// Keeps a difference for later, if there are not many of its kind.
    fn keep(&self, found: Found) {
        let after = self.began.elapsed();
        let _ = self.locked(|results| {
            let kind = Kind { count: 0, round: found.round, after };
            let kind = results.kinds.entry(found.signature.clone()).or_insert(kind);
            kind.count += 1;
            if kind.count == 1 && self.manner != Manner::Shrink {
                println!("==== round {}, s{:02}: {}", found.round, found.host, found.signature);
                found.print();
            }
            if kind.count <= KIND_MAX {
                results.found.push(found);
            }
        });
    }

    /// Makes small what was found, as long as there is time.
    fn make_small(&self) {
        let mut pair = self.pair.clone();
        let since = Instant::now();
        let end = since + SHRINK_LIMIT.max(since - self.began);
        while Instant::now() < end {
            let next = |results: &mut Results| {
                if results.findings >= SHRUNK_MAX {
                    return None;
                }
                results.found.pop().map(|found| (results.is_told(&found), found))
            };
            match self.locked(next) {
                Ok(Some((false, found))) => self.pursue(&found, &mut pair, end),
                Ok(Some((true, _))) => {}
                _ => return,
            }
        }
    }

    fn pursue(&self, found: &Found, pair: &mut Pair, end: Instant) {
        let Found { round, host, case, signature, .. } = found;
        let end = end.min(Instant::now() + PURSUIT_LIMIT);
        let Some(small) = shrink(case, signature, pair, end) else {
            // It may depend on what another site of the round did to the server.
            println!("round {round}, s{host:02}: does not show again alone: {signature}");
            found.print();
            let _ = self.locked(|results| results.fleeting += 1);
            return;
        };
        let Some(tamarack) = pair.tamarack.clone() else {
            return;
        };
        let note = if Instant::now() < end { "" } else { " (there was no time to shrink it more)" };
        let key = (signature.clone(), kept::directives(&small));
        if !self.locked(|results| results.told.insert(key)).unwrap_or_default() {
            return;
        }
        let file =
            kept::test_file(&small, signature, self.sites.needs(), &tamarack, &self.tests, end);
        let verdict = pair.ask(std::slice::from_ref(&small)).pop().unwrap_or_default();
        let _ = self.locked(|results| {
            results.findings += 1;
            println!("\n==== round {round}: {signature}{note}");
            match file {
                Ok(text) => println!("{text}"),
                Err(failure) => println!("no test file: {failure}"),
            }
            print_difference(&small, &verdict);
        });
    }
}

impl Results {
    /// A site that has all of what was found before shows the same again.
    fn is_told(&self, found: &Found) -> bool {
        let names = kept::directives(&found.case);
        self.told.iter().any(|(told, needed)| {
            told.covers(&found.signature) && needed.iter().all(|name| names.contains(name))
        })
    }
}

impl Found {
    /// Prints the request and what came, without the rest of the case.
    fn print(&self) {
        // A request that was sent with others may break off with them.
        for request in self.case.requests.iter().skip(begin_of_last(&self.case)) {
            println!("{}", escape(&request.bytes(Seat::Main)));
        }
        println!("{}", self.lines);
    }
}

/// Where the requests begin that were sent with the last one.
fn begin_of_last(case: &Case) -> usize {
    case.requests.iter().rposition(|request| !request.is_pipelined).unwrap_or_default()
}

/// What differs in the responses to the last requests that were sent together.
fn differences(case: &Case, verdict: &Verdict) -> Option<String> {
    let sent = verdict.exchanges.get(begin_of_last(case)..)?;
    let sent = sent.iter().take(case.requests.len() - begin_of_last(case));
    let shown: Vec<String> = sent
        .filter_map(|exchange| difference(&exchange.apache, &exchange.tamarack, Rule::Answer))
        .collect();
    (!shown.is_empty()).then(|| shown.join("\n"))
}

fn print_difference(case: &Case, verdict: &Verdict) {
    if let Some(end) = &verdict.end {
        println!("{end}");
    }
    if let Some(last) = verdict.exchanges.last() {
        println!("---- difference");
        println!("{}", differences(case, verdict).unwrap_or_default());
        if !last.errors.is_empty() {
            println!("---- Tamarack's error log\n{}", last.errors);
        }
    }
    if let Some(lines) = verdict.difference_of_logs() {
        println!("---- logs");
        println!("{lines}");
    }
}

/// The error in a server's startup message, without its location.
fn reason(said: &str) -> String {
    let is_warning = |line: &&str| line.starts_with("AH00558") || line.contains(":warn]");
    let mut lines = said.lines().skip(1).filter(|line| !is_warning(line));
    let first = lines.next().unwrap_or_default();
    if first.contains("Syntax error") { lines.next().unwrap_or(first) } else { first }.to_owned()
}
