//! The values that result from an MPM's directives: adjusted as in Apache, with its warnings.

use conf::Span;
use server::build::Build;
use server::host::Server;

use super::{Kind, Settings, active, listen};

/// Consistent numbers of processes, threads and spares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers {
    /// `ServerLimit`
    pub server_limit: usize,
    /// `StartServers`, limited by `MaxRequestWorkers`.
    pub start_servers: usize,
    /// Threads per process; 1 in prefork.
    pub threads_per_child: usize,
    /// `MaxRequestWorkers`
    pub max_request_workers: usize,
    /// The minimum of idle threads (in prefork: processes).
    pub min_spare: usize,
    /// The maximum of idle threads.
    pub max_spare: usize,
    /// `AsyncRequestWorkerFactor`, in thousandths.
    pub async_factor_thousandths: u32,
}

impl Numbers {
    /// The values for a server, and its MPM.
    pub fn of(server: &Server) -> Option<(Kind, Self)> {
        let (kind, settings) = active(&server.registry, &server.main().server)?;
        Some((kind, Self::settle(kind, settings).0))
    }

    /// Computes the values, and Apache's remarks on them.
    pub fn settle(kind: Kind, settings: &Settings) -> (Self, Vec<Remark>) {
        let limits = Limits::of(kind);
        let mut said = Said { first: limits.first_number, remarks: Vec::new() };
        let mut numbers = match kind {
            Kind::Prefork => prefork(settings, &limits, &mut said),
            Kind::Worker | Kind::Event | Kind::Loop => threaded(settings, &limits, &mut said),
        };
        let processes = numbers.max_request_workers / numbers.threads_per_child;
        numbers.start_servers = numbers.start_servers.min(processes.max(1));
        // Otherwise a process that is ended as surplus would be replaced at once.
        let least = numbers.min_spare + numbers.threads_per_child;
        numbers.max_spare = numbers.max_spare.max(least);
        (numbers, said.remarks)
    }

    /// The maximum of processes.
    pub fn processes_max(&self) -> usize {
        (self.max_request_workers / self.threads_per_child.max(1)).max(1)
    }

    /// The maximum of connections with a request in event: (`AsyncRequestWorkerFactor` + 1) ×
    /// `MaxRequestWorkers`.
    pub fn admitted(&self) -> usize {
        let factor = usize::try_from(self.async_factor_thousandths).unwrap_or(usize::MAX);
        let beside = self.max_request_workers.saturating_mul(factor) / 1000;
        self.max_request_workers.saturating_add(beside)
    }
}

/// Checks the active MPM's listeners and numbers (`*_check_config`).
pub(super) fn check(build: &mut Build) {
    listen::check(build);
    let Some((kind, settings)) = active(&build.registry, &build.main.server) else { return };
    for remark in Numbers::settle(kind, settings).1 {
        let text = if build.is_restart { remark.at_restart } else { remark.at_start };
        build.warn(Span::default(), text);
    }
}

/// The limits compiled into Apache's MPMs.
struct Limits {
    servers_most: i32,
    threads_most: i32,
    server_limit: i32,
    start_servers: i32,
    max_request_workers: i32,
    min_spare: i32,
    max_spare: i32,
    /// The number of the MPM's first message; the others follow in the same order.
    first_number: u32,
}

impl Limits {
    fn of(kind: Kind) -> Self {
        match kind {
            Kind::Prefork => Self {
                servers_most: 200_000,
                threads_most: 1,
                server_limit: 256,
                start_servers: 5,
                max_request_workers: 256,
                min_spare: 5,
                max_spare: 10,
                first_number: 175,
            },
            Kind::Worker => {
                Self { first_number: 300, threads_most: 20_000, ..Self::of(Kind::Event) }
            }
            Kind::Event | Kind::Loop => Self {
                servers_most: 20_000,
                threads_most: 100_000,
                server_limit: 16,
                start_servers: 3,
                max_request_workers: 400,
                min_spare: 75,
                max_spare: 250,
                first_number: 497,
            },
        }
    }
}

/// The default of `ThreadLimit`.
const THREAD_LIMIT: i32 = 64;
/// The default of `ThreadsPerChild`.
const THREADS_PER_CHILD: i32 = 25;
/// The default of `AsyncRequestWorkerFactor`.
const ASYNC_FACTOR_THOUSANDTHS: u32 = 2000;

/// Apache's remark on a number that it changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// The text at startup.
    pub at_start: String,
    /// The text in the error log at a restart.
    pub at_restart: String,
}

/// The remarks so far.
struct Said {
    first: u32,
    remarks: Vec<Remark>,
}

impl Said {
    /// Adds a remark: `what` is wrong; `start` and `restart` are Apache's reactions.
    fn add(&mut self, number: u32, what: &str, start: &str, restart: &str) {
        let number = self.first + number;
        self.remarks.push(Remark {
            at_start: format!("AH{number:05}: WARNING: {what}{start}"),
            at_restart: format!("AH{:05}: {what}{restart}", number + 1),
        });
    }

    /// Raises the value to at least 1.
    fn positive(&mut self, number: u32, name: &str, value: i32, more: &str) -> i32 {
        if value < 1 {
            let what = format!("{name} of {value} not allowed, increasing to 1");
            self.add(number, &what, &format!("{more}."), "");
        }
        value.max(1)
    }

    /// Limits the value to Apache's compile-time limit, and raises it to at least 1.
    fn within(&mut self, number: u32, (name, what): (&str, &str), value: i32, most: i32) -> i32 {
        if value > most {
            let text = format!("{name} of {value} exceeds compile-time limit of {most}");
            self.add(number, &text, &format!(" {what}, decreasing to {most}."), MATCHING);
            return most;
        }
        self.positive(number + 2, name, value, "")
    }
}

/// The ending of Apache's short remarks.
const MATCHING: &str = ", decreasing to match";

/// Apache's ending for a spare number of 0.
const FAILURE: &str = " to avoid almost certain server failure. Please read the documentation";

/// Source: `prefork_check_config` (server/mpm/prefork/prefork.c).
fn prefork(settings: &Settings, limits: &Limits, said: &mut Said) -> Numbers {
    let wanted = settings.server_limit.0.or(limits.server_limit);
    let server_limit = said.within(0, ("ServerLimit", "servers"), wanted, limits.servers_most);
    let mut workers = settings.max_request_workers.0.or(limits.max_request_workers);
    if workers > server_limit {
        let what =
            format!("MaxRequestWorkers of {workers} exceeds ServerLimit value of {server_limit}");
        let start = format!(
            " servers, decreasing MaxRequestWorkers to {server_limit}. To increase, please see \
             the ServerLimit directive."
        );
        said.add(5, &what, &start, MATCHING);
        workers = server_limit;
    }
    workers = said.positive(7, "MaxRequestWorkers", workers, "");
    let start = settings.start_servers.0.or(limits.start_servers);
    let start = said.positive(9, "StartServers", start, "");
    let spare = settings.min_spare.0.or(limits.min_spare);
    let spare = said.positive(11, "MinSpareServers", spare, FAILURE);
    Numbers {
        server_limit: size(server_limit),
        start_servers: size(start),
        threads_per_child: 1,
        max_request_workers: size(workers),
        min_spare: size(spare),
        max_spare: size(settings.max_spare.0.or(limits.max_spare)),
        async_factor_thousandths: 0,
    }
}

/// Source: `worker_check_config`, `event_check_config` (server/mpm/worker/worker.c,
/// server/mpm/event/event.c), which differ only in their message numbers.
fn threaded(settings: &Settings, limits: &Limits, said: &mut Said) -> Numbers {
    let wanted = settings.server_limit.0.or(limits.server_limit);
    let server_limit = said.within(0, ("ServerLimit", "servers"), wanted, limits.servers_most);
    let wanted = settings.thread_limit.0.or(THREAD_LIMIT);
    let thread_limit = said.within(5, ("ThreadLimit", "threads"), wanted, limits.threads_most);
    let mut threads = settings.threads_per_child.0.or(THREADS_PER_CHILD);
    if threads > thread_limit {
        let what = format!("ThreadsPerChild of {threads} exceeds ThreadLimit of {thread_limit}");
        let start = format!(
            " threads, decreasing to {thread_limit}. To increase, please see the ThreadLimit \
             directive."
        );
        said.add(10, &what, &start, MATCHING);
        threads = thread_limit;
    }
    threads = said.positive(12, "ThreadsPerChild", threads, "");
    let workers = settings.max_request_workers.0.or(limits.max_request_workers);
    let workers = max_request_workers(workers, threads, server_limit, said);
    let start = settings.start_servers.0.or(limits.start_servers);
    let start = said.positive(20, "StartServers", start, "");
    let spare = settings.min_spare.0.or(limits.min_spare);
    let spare = said.positive(22, "MinSpareThreads", spare, FAILURE);
    Numbers {
        server_limit: size(server_limit),
        start_servers: size(start),
        threads_per_child: size(threads),
        max_request_workers: size(workers),
        min_spare: size(spare),
        max_spare: size(settings.max_spare.0.or(limits.max_spare)),
        async_factor_thousandths: settings.async_factor_thousandths.0.or(ASYNC_FACTOR_THOUSANDTHS),
    }
}

/// Rounds to whole processes, up to the limit.
fn max_request_workers(mut workers: i32, threads: i32, server_limit: i32, said: &mut Said) -> i32 {
    if workers < threads {
        let what =
            format!("MaxRequestWorkers of {workers} is less than ThreadsPerChild of {threads}");
        let start = format!(
            ", increasing to {threads}. MaxRequestWorkers must be at least as large as the number \
             of threads in a single server."
        );
        said.add(14, &what, &start, ", increasing to match");
        workers = threads;
    }
    let processes = workers / threads;
    if workers % threads != 0 {
        let nearest = processes * threads;
        let what = format!(
            "MaxRequestWorkers of {workers} is not an integer multiple of ThreadsPerChild of \
             {threads}, decreasing to nearest multiple {nearest}"
        );
        said.add(16, &what, &format!(", for a maximum of {processes} servers."), "");
        workers = nearest;
    }
    if processes > server_limit {
        let most = server_limit.saturating_mul(threads);
        let what = format!("MaxRequestWorkers of {workers} would require {processes} servers and ");
        let exceed = format!("exceed ServerLimit of {server_limit}, decreasing to {most}");
        let start = format!("would {exceed}. To increase, please see the ServerLimit directive.");
        said.add(18, &what, &start, &exceed);
        workers = most;
    }
    workers
}

fn size(number: i32) -> usize {
    usize::try_from(number).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settled(kind: Kind, change: impl FnOnce(&mut Settings)) -> (Numbers, Vec<Remark>) {
        let mut settings = Settings::default();
        change(&mut settings);
        Numbers::settle(kind, &settings)
    }

    #[test]
    fn what_is_built_in_is_apaches() {
        let (numbers, said) = settled(Kind::Prefork, |_| {});
        assert!(said.is_empty());
        assert_eq!((numbers.start_servers, numbers.processes_max()), (5, 256));
        assert_eq!((numbers.min_spare, numbers.max_spare), (5, 10));
        let (numbers, said) = settled(Kind::Worker, |_| {});
        assert!(said.is_empty());
        assert_eq!((numbers.start_servers, numbers.processes_max()), (3, 16));
        assert_eq!((numbers.min_spare, numbers.max_spare), (75, 250));
        assert_eq!(settled(Kind::Event, |_| {}).0.admitted(), 1200);
    }

    #[test]
    fn numbers_that_do_not_fit_are_made_to() {
        let (numbers, said) = settled(Kind::Worker, |settings| {
            settings.threads_per_child.0.set(100);
        });
        assert_eq!((numbers.threads_per_child, numbers.max_request_workers), (64, 384));
        assert_eq!(said.len(), 2);
        assert!(said[0].at_start.starts_with("AH00310: WARNING: ThreadsPerChild of 100 exceeds"));
        assert!(
            said[1].at_start.starts_with("AH00316: WARNING: MaxRequestWorkers of 400 is not an")
        );
        let (numbers, said) = settled(Kind::Event, |settings| settings.server_limit.0.set(2));
        assert_eq!((numbers.max_request_workers, numbers.start_servers), (50, 2));
        assert!(
            said[0]
                .at_start
                .starts_with("AH00515: WARNING: MaxRequestWorkers of 400 would require 16")
        );
    }

    #[test]
    fn a_restart_has_shorter_texts() {
        // As logged by Apache 2.4.71 after SIGUSR1.
        let (_, said) = settled(Kind::Worker, |settings| {
            settings.server_limit.0.set(0);
            settings.thread_limit.0.set(30_000);
            settings.threads_per_child.0.set(40_000);
            settings.max_request_workers.0.set(20_001);
        });
        let texts: Vec<&str> = said.iter().map(|remark| remark.at_restart.as_str()).collect();
        let all = [
            "AH00303: ServerLimit of 0 not allowed, increasing to 1",
            "AH00306: ThreadLimit of 30000 exceeds compile-time limit of 20000, decreasing to \
             match",
            "AH00311: ThreadsPerChild of 40000 exceeds ThreadLimit of 20000, decreasing to match",
            "AH00317: MaxRequestWorkers of 20001 is not an integer multiple of ThreadsPerChild of \
             20000, decreasing to nearest multiple 20000",
        ];
        assert_eq!(texts, all);
        let (_, said) = settled(Kind::Worker, |settings| settings.server_limit.0.set(1));
        let text = "AH00319: MaxRequestWorkers of 400 would require 16 servers and exceed \
                    ServerLimit of 1, decreasing to 25";
        assert_eq!(said[0].at_restart, text);
        let (_, said) = settled(Kind::Prefork, |settings| {
            settings.max_request_workers.0.set(400_000);
        });
        let text = "AH00181: MaxRequestWorkers of 400000 exceeds ServerLimit value of 256, \
                    decreasing to match";
        assert_eq!(said[0].at_restart, text);
    }

    #[test]
    fn a_reserve_is_never_smaller_than_what_one_process_brings() {
        let (numbers, _) = settled(Kind::Worker, |settings| settings.max_spare.0.set(10));
        assert_eq!(numbers.max_spare, 100);
        let (numbers, _) = settled(Kind::Prefork, |settings| settings.max_spare.0.set(-4));
        assert_eq!(numbers.max_spare, 6);
    }
}
