//! Times as reported by the kernel: for a thread, how long it ran, how long it waited to run and
//! how often it was moved; for a CPU, how busy it was. Meters keep their files open.
//!
//! Only the supervisor opens them. Files below /proc that a process has opened for its own threads
//! are cleaned up by these threads when they end; meanwhile the thread that reaps the process spins
//! in the kernel (`shrink_dcache_parent`), for seconds on a busy machine.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;

use super::cpus::Roots;

/// The part of a thread's `sched` that is read.
const SCHED_BYTES: usize = 4096;
/// The line of `sched` that counts migrations.
const MIGRATIONS: &str = "se.nr_migrations";
/// The longest `schedstat` of a thread: three numbers.
const THREAD_BYTES: usize = 96;
/// The part of `/proc/stat` that is read: its first lines are the CPUs'.
const STAT_BYTES: usize = 128 * 1024;

/// Time of a thread, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Times {
    /// On a CPU.
    pub run_us: u64,
    /// Ready to run, but not running.
    pub wait_us: u64,
}

/// `schedstat` and `sched` in `/proc/PID/task/TID`
#[derive(Debug)]
pub(crate) struct ThreadMeter {
    times: File,
    /// `None` if the kernel lacks `CONFIG_SCHED_DEBUG`.
    sched: Option<File>,
    last: Times,
}

impl ThreadMeter {
    /// Opens a thread's meter. `None` if the kernel reports nothing (no `CONFIG_SCHED_INFO`, no
    /// /proc, or no such thread).
    pub(crate) fn open(roots: &Roots, process: u32, thread: u32) -> Option<Self> {
        let folder = roots.proc.join(format!("{process}/task/{thread}"));
        let times = File::open(folder.join("schedstat")).ok()?;
        let sched = File::open(folder.join("sched")).ok();
        let mut meter = Self { times, sched, last: Times::default() };
        meter.elapsed()?;
        Some(meter)
    }

    /// How often the kernel has moved the thread to another CPU; `None` if not reported.
    pub(crate) fn migrations(&self) -> Option<u64> {
        let mut bytes = [0; SCHED_BYTES];
        let length = self.sched.as_ref()?.read_at(&mut bytes, 0).ok()?;
        let text = String::from_utf8_lossy(bytes.get(..length)?);
        let line = text.lines().find(|line| line.starts_with(MIGRATIONS))?;
        line.rsplit(':').next()?.trim().parse().ok()
    }

    /// The times since the thread began, as of the last call of [`ThreadMeter::elapsed`].
    pub(crate) fn total(&self) -> Times {
        self.last
    }

    /// The times since the last call; `None` if the thread is gone.
    pub(crate) fn elapsed(&mut self) -> Option<Times> {
        let mut bytes = [0; THREAD_BYTES];
        let length = self.times.read_at(&mut bytes, 0).ok()?;
        let text = std::str::from_utf8(bytes.get(..length)?).ok()?;
        let mut words = text.split_whitespace().map(|word| word.parse::<u64>().ok());
        let (run_ns, wait_ns) = (words.next()??, words.next()??);
        let now = Times { run_us: run_ns / 1000, wait_us: wait_ns / 1000 };
        let passed = Times {
            run_us: now.run_us.saturating_sub(self.last.run_us),
            wait_us: now.wait_us.saturating_sub(self.last.wait_us),
        };
        self.last = now;
        Some(passed)
    }
}

/// The use of a CPU's time, as shares of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct CpuTime {
    /// Programs ran.
    pub busy: f64,
    /// The CPU had nothing to run.
    pub idle: f64,
}

/// Ticks of a CPU since the machine started.
#[derive(Clone, Copy, Debug, Default)]
struct Ticks {
    busy: u64,
    idle: u64,
    all: u64,
}

/// `/proc/stat`
#[derive(Debug)]
pub(crate) struct CpuMeter {
    file: File,
    last: BTreeMap<usize, Ticks>,
}

impl CpuMeter {
    /// Opens the meter of the machine's CPUs.
    pub(crate) fn open(roots: &Roots) -> Option<Self> {
        let file = File::open(roots.proc.join("stat")).ok()?;
        let mut meter = Self { file, last: BTreeMap::new() };
        meter.times()?;
        Some(meter)
    }

    /// The use of each CPU's time since the last call. Omits CPUs without a tick since.
    pub(crate) fn times(&mut self) -> Option<BTreeMap<usize, CpuTime>> {
        let mut bytes = vec![0; STAT_BYTES];
        let length = self.file.read_at(&mut bytes, 0).ok()?;
        let text = String::from_utf8_lossy(bytes.get(..length)?);
        let now: BTreeMap<usize, Ticks> = text.lines().filter_map(ticks).collect();
        let since = |(cpu, now): (&usize, &Ticks)| {
            let last = self.last.get(cpu)?;
            let passed = now.all.saturating_sub(last.all);
            let share =
                |now: u64, last: u64| (now.saturating_sub(last) as f64 / passed as f64).min(1.0);
            let time =
                CpuTime { busy: share(now.busy, last.busy), idle: share(now.idle, last.idle) };
            (passed > 0).then_some((*cpu, time))
        };
        let times = now.iter().filter_map(since).collect();
        self.last = now;
        Some(times)
    }
}

/// `cpu1 user nice system idle iowait irq softirq steal guest guest_nice` (proc(5)); the guests'
/// time is included in user. Busy is the time of programs: interrupts are mostly due to this
/// server's own connections, and stolen time is not available on another CPU either.
fn ticks(line: &str) -> Option<(usize, Ticks)> {
    let mut words = line.strip_prefix("cpu")?.split(' ');
    let cpu = words.next()?.parse().ok()?;
    let ticks: Vec<u64> = words.take(8).filter_map(|word| word.parse().ok()).collect();
    let busy = ticks.iter().take(3).sum();
    let idle = ticks.iter().skip(3).take(2).sum();
    Some((cpu, Ticks { busy, idle, all: ticks.iter().sum() }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::affinity::tests::Tree;

    #[test]
    fn a_threads_time_passes() {
        let tree = Tree::new("meter", &[("proc/7/task/8/schedstat", "1000000 2000000 3\n")]);
        let mut meter = ThreadMeter::open(&tree.roots(), 7, 8).unwrap();
        assert_eq!(meter.elapsed().unwrap(), Times::default());
        // Written in place, as the kernel's file changes.
        tree.write("proc/7/task/8/schedstat", "4000000 2500000 9\n");
        assert_eq!(meter.elapsed().unwrap(), Times { run_us: 3000, wait_us: 500 });
        tree.write("proc/7/task/8/schedstat", "");
        assert_eq!(meter.elapsed(), None);
        assert!(ThreadMeter::open(&tree.roots(), 7, 9).is_none());
    }

    #[test]
    fn migrations_are_found_in_the_kernels_text() {
        let times = ("proc/7/task/8/schedstat", "1000000 2000000 3\n");
        let text = "loop (1, #threads: 2)\nse.exec_start   :  1.5\nse.nr_migrations  :     17\n";
        let tree = Tree::new("sched", &[times, ("proc/7/task/8/sched", text)]);
        let meter = ThreadMeter::open(&tree.roots(), 7, 8).unwrap();
        assert_eq!(meter.migrations(), Some(17));
        tree.write("proc/7/task/8/sched", "nothing\n");
        assert_eq!(meter.migrations(), None);
        let without = Tree::new("no-sched", &[times]);
        assert_eq!(ThreadMeter::open(&without.roots(), 7, 8).unwrap().migrations(), None);
    }

    #[test]
    fn busy_shares_are_of_the_time_between() {
        let before = "cpu  9 9 9 9\ncpu0 10 0 10 100 5 0 0 0 0 0\ncpu1 0 0 0 50 0 0 0 0 0 0\n";
        let after = "cpu  9 9 9 9\ncpu0 40 0 20 150 10 3 2 0 9 9\ncpu1 0 0 0 50 0 0 0 0 0 0\n\
                     cpu2 1 1 1 1 1 1 1 1 1 1\nintr 5\n";
        let tree = Tree::new("stat", &[("proc/stat", before)]);
        let mut meter = CpuMeter::open(&tree.roots()).unwrap();
        tree.write("proc/stat", after);
        let passed = CpuTime { busy: 0.4, idle: 0.55 };
        assert_eq!(meter.times().unwrap(), BTreeMap::from([(0, passed)]));
    }

    #[test]
    fn this_thread_is_measured() {
        let (process, thread) = (std::process::id(), nix::unistd::gettid().as_raw());
        let thread = u32::try_from(thread).unwrap();
        // Not every kernel reports times; one that does keeps counting.
        if let Some(mut meter) = ThreadMeter::open(&Roots::default(), process, thread) {
            assert!(meter.elapsed().is_some());
        }
        assert!(CpuMeter::open(&Roots::default()).is_some());
    }
}
