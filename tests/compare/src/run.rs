//! A run: rounds of sites on two threads, their findings, and the statistics.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use blackbox::compare::{Rule, difference};

use crate::generate;
use crate::kept;
use crate::pair::{Pair, Servers, Signature, Verdict};
use crate::rows::MODULES;
use crate::sample::Sample;
use crate::shrink::shrink;
use crate::site::Case;

/// Simultaneous rounds.
const WORKERS: usize = 2;
/// The interval of rounds in which a site is sampled for the directives that decided its responses.
const SAMPLE_EVERY: u64 = 8;
/// Most differences of a kind that are examined, and most of all kinds that are shrunk.
const KIND_MAX: usize = 20;
const SHRUNK_MAX: usize = 40;

/// The limit of a run.
#[derive(Debug, Clone, Copy)]
pub enum Limit {
    /// A time.
    Time(Duration),
    /// A number of rounds: the same on every machine.
    Rounds(u64),
}

/// A run of the program.
pub struct Run {
    seed: u64,
    limit: Limit,
    tests: PathBuf,
    pair: Pair,
    next: AtomicU64,
    requests: AtomicUsize,
    first: AtomicU64,
    results: Mutex<Results>,
}

#[derive(Default)]
struct Results {
    /// Responses by Apache's status.
    statuses: BTreeMap<String, usize>,
    /// Configurations that both refuse, by Apache's message.
    refused: BTreeMap<String, usize>,
    sample: Sample,
    /// Kinds of differences, and how often each occurred.
    kinds: BTreeMap<Signature, usize>,
    /// The kinds and directives already shrunk, so that each is reported once.
    told: BTreeSet<(Signature, Vec<String>)>,
    findings: usize,
    fleeting: usize,
}

impl Run {
    /// Uses the installed apache2 and the newest Tamarack.
    pub fn new(seed: u64, limit: Limit, tests: &Path) -> Result<Run, String> {
        let pair = Pair::new(tests, &MODULES)?;
        Ok(Run {
            seed,
            limit,
            tests: tests.to_owned(),
            pair,
            next: AtomicU64::new(0),
            requests: AtomicUsize::new(0),
            first: AtomicU64::new(u64::MAX),
            results: Mutex::default(),
        })
    }

    /// Runs all rounds, prints the results, and returns the number of differences.
    pub fn go(&self) -> Result<usize, String> {
        let began = Instant::now();
        println!("compare: seed {}, {:?}", self.seed, self.limit);
        std::thread::scope(|scope| {
            for _ in 0..WORKERS {
                scope.spawn(|| self.work(began));
            }
        });
        let results = self.results.lock().map_err(|_| "a worker panicked")?;
        let requests = self.requests.load(Ordering::Relaxed);
        let statuses: Vec<String> =
            results.statuses.iter().map(|(status, count)| format!("{status}: {count}")).collect();
        println!("statuses: {}", statuses.join(", "));
        for (reason, count) in &results.refused {
            println!("both refuse {count}: {reason}");
        }
        print!("{}", results.sample.text());
        let idle = results.sample.idle();
        if !idle.is_empty() {
            println!("never decided anything: {}", idle.join(", "));
        }
        for (signature, count) in &results.kinds {
            println!("{count} times: {signature}");
        }
        let first = self.first.load(Ordering::Relaxed);
        if first != u64::MAX {
            println!("the first difference is in round {first}");
        }
        println!(
            "seed {}: {} rounds, {requests} requests, {:.1} s; {} configurations both refuse; \
             {} differences of {} kinds, {} shrunk, {} not seen again",
            self.seed,
            self.next.load(Ordering::Relaxed).saturating_sub(WORKERS as u64),
            began.elapsed().as_secs_f64(),
            results.refused.values().sum::<usize>(),
            results.kinds.values().sum::<usize>(),
            results.kinds.len(),
            results.findings,
            results.fleeting,
        );
        Ok(results.findings)
    }

    fn work(&self, began: Instant) {
        let mut pair = self.pair.clone();
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let is_over = match self.limit {
                Limit::Time(limit) => began.elapsed() >= limit,
                Limit::Rounds(rounds) => number >= rounds,
            };
            if is_over {
                return;
            }
            self.round(number, &mut pair);
        }
    }

    fn round(&self, number: u64, pair: &mut Pair) {
        let mut cases = generate::batch(self.seed, number);
        if !rustix::process::geteuid().is_root() {
            cases.iter_mut().for_each(|case| case.site.without_owners());
        }
        let verdicts = pair.ask(&cases);
        for (case, verdict) in cases.iter().zip(&verdicts) {
            self.count(verdict);
            let mut seen = BTreeSet::new();
            for at in 0..case.requests.len() {
                if let Some(signature) = verdict.at(at)
                    && self.note(number)
                    && seen.insert(signature.clone())
                    && self.is_new(case, &signature)
                {
                    self.pursue(number, &cases, case, at, &signature, pair);
                }
                if verdict.refused.is_some() || verdict.end.is_some() {
                    break;
                }
            }
        }
        if number.is_multiple_of(SAMPLE_EVERY)
            && let Some(case) = cases.first()
        {
            let mut sample = Sample::default();
            sample.look(case, &mut pair.apache_alone());
            if let Ok(mut results) = self.results.lock() {
                results.sample.add(sample);
            }
        }
    }

    /// Records the first round with a difference.
    fn note(&self, number: u64) -> bool {
        self.first.fetch_min(number, Ordering::Relaxed);
        true
    }

    fn count(&self, verdict: &Verdict) {
        self.requests.fetch_add(verdict.exchanges.len(), Ordering::Relaxed);
        let Ok(mut results) = self.results.lock() else {
            return;
        };
        if verdict.refused == Some((false, false)) {
            *results.refused.entry(reason(&verdict.reason)).or_default() += 1;
        }
        for exchange in &verdict.exchanges {
            let status = exchange.apache.first().and_then(|line| line.split(' ').nth(2));
            let status = status.unwrap_or("none").to_owned();
            *results.statuses.entry(status).or_default() += 1;
        }
    }

    /// Whether a difference of this kind is still to be shrunk.
    fn is_new(&self, case: &Case, signature: &Signature) -> bool {
        let Ok(mut results) = self.results.lock() else {
            return false;
        };
        let count = results.kinds.entry(signature.clone()).or_default();
        *count += 1;
        if *count > KIND_MAX || results.findings >= SHRUNK_MAX {
            return false;
        }
        // A site with all directives of an earlier finding shows the same again.
        let names = kept::directives(case);
        let has_all = |(told, needed): &(Signature, Vec<String>)| {
            told.covers(signature) && needed.iter().all(|name| names.contains(name))
        };
        !results.told.iter().any(has_all)
    }

    fn pursue(
        &self,
        number: u64,
        cases: &[Case],
        case: &Case,
        at: usize,
        signature: &Signature,
        pair: &mut Pair,
    ) {
        let mut shown = case.clone();
        shown.requests.truncate(at + 1);
        let Some(small) = shrink(&shown, signature, pair) else {
            // It may depend on what another site of the round did to the server.
            let again = pair.ask(cases).iter().any(|verdict| verdict.at(at).is_some());
            let word = if again { "with all sites of the round alone" } else { "not again" };
            println!("round {number}: a difference that shows {word}: {signature}");
            if let Ok(mut results) = self.results.lock() {
                results.fleeting += 1;
            }
            return;
        };
        let Some(tamarack) = pair.tamarack.clone() else {
            return;
        };
        let key = (signature.clone(), kept::directives(&small));
        let is_told = self.results.lock().is_ok_and(|mut results| !results.told.insert(key));
        if is_told {
            return;
        }
        let file = kept::test_file(&small, signature, &MODULES, &tamarack, &self.tests);
        let verdict = pair.ask(std::slice::from_ref(&small)).pop().unwrap_or_default();
        let Ok(mut results) = self.results.lock() else {
            return;
        };
        results.findings += 1;
        println!("\n==== round {number}: {signature}");
        match file {
            Ok(text) => println!("{text}"),
            Err(failure) => println!("no test file: {failure}"),
        }
        if let Some(end) = &verdict.end {
            println!("{end}");
        }
        if let Some(last) = verdict.exchanges.last() {
            println!("---- difference");
            let shown = difference(&last.apache, &last.tamarack, Rule::Answer);
            println!("{}", shown.unwrap_or_default());
        }
    }
}

/// The error in a server's startup message, without its location.
fn reason(said: &str) -> String {
    let mut lines = said.lines().skip(1).filter(|line| !line.starts_with("AH00558"));
    let first = lines.next().unwrap_or_default();
    if first.contains("Syntax error") { lines.next().unwrap_or(first) } else { first }.to_owned()
}
