//! A process that is killed every second under load: who loses a request, and how soon there is
//! another.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::sync::atomic::Ordering;
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;

use crate::client::{Client, PATIENCE};
use crate::load::{Seen, at_once, under_load_by};
use crate::site::Site;

/// How often a process is killed, at least and at most.
const KILLS: usize = 5;
const KILLS_MAX: usize = 3 * KILLS;
const PAUSE: Duration = Duration::from_secs(1);
/// Clients that ask all the time.
const CONNECTIONS: usize = 10;
/// Clients that come at once when a process has just died.
const NEWCOMERS: usize = 32;
/// How long after a death another process is forked, at most.
const REPLACED_WITHIN: Duration = Duration::from_millis(100);
/// More between two looks at a server than this, and the machine has held the test up.
const LOOK: Duration = Duration::from_millis(10);

/// One death and what followed.
#[derive(Debug)]
struct Replacement {
    /// From the death to the fork of another process; forks are known to 10 ms.
    took: Duration,
    /// For how long the machine did not let this test, or the supervisor, go on meanwhile.
    held_up: Duration,
}

impl Replacement {
    fn is_late(&self) -> bool {
        self.took > REPLACED_WITHIN + self.held_up
    }
}

#[test]
fn a_process_killed_every_second_is_replaced_at_once() {
    let mut site = Site::new("killed");
    site.start();
    let mut replacements: Vec<Replacement> = Vec::new();
    // One in five may be late: on a machine with other things to do, a disk or a hypervisor may
    // hold the supervisor up where nobody sees it.
    let are_late = |all: &[Replacement]| {
        all.iter().filter(|replacement| replacement.is_late()).count() * KILLS > all.len()
    };
    let seen = under_load_by(&site, CONNECTIONS, connect, |seen| {
        while replacements.len() < KILLS
            || are_late(&replacements) && replacements.len() < KILLS_MAX
        {
            replacements.push(kill_the_busiest(&site, seen));
            sleep(PAUSE);
        }
    });
    println!("{replacements:?}");
    assert!(!are_late(&replacements), "{replacements:#?}\n{}", site.error_log());
    let failures = seen.failures.into_inner();
    assert!(failures > 0, "nobody was connected to those that were killed");
    assert!(seen.answers.into_inner() > failures);
    let killed = site.count_lines("exit signal Killed");
    assert_eq!(killed, replacements.len(), "{}", site.error_log());
    site.assert_serves();
}

/// A client that has time: a busy kernel may take long to reap a process, and its successor comes
/// then.
fn connect(port: u16) -> io::Result<Client> {
    let client = Client::connect(port)?;
    client.give_up_after(3 * PATIENCE);
    Ok(client)
}

/// Kills the process with most connections. They fail, and nobody else, not even who comes when it
/// is dead.
fn kill_the_busiest(site: &Site, seen: &Seen) -> Replacement {
    let (victim, connections) = busiest(site);
    let failures = || seen.failures.load(Ordering::Relaxed);
    let (failed, others) = (failures(), site.children());
    let waited = queued(site.supervisor());
    kill(victim, Signal::SIGKILL).unwrap();
    site.wait_until("its death", || is_dead(victim));
    let died = since_boot();
    let (mut looked, mut held_up, mut forked) = (Instant::now(), Duration::ZERO, None);
    scope(|scope| {
        // They wait in the queues of a process that is gone, and its successor serves them.
        let newcomers = scope.spawn(|| at_once(site.port, NEWCOMERS));
        site.wait_until("another process", || {
            held_up += looked.elapsed().saturating_sub(LOOK);
            looked = Instant::now();
            let new = site.children().into_iter().find(|child| !others.contains(child));
            forked = new.and_then(started);
            forked.is_some()
        });
        let failures = newcomers.join().unwrap();
        assert!(failures.is_empty(), "{failures:#?}");
    });
    // All have come back, and have counted what they lost before.
    busiest(site);
    let failed = failures() - failed;
    assert!(failed <= connections, "{failed} failures, {connections} connections were cut");
    Replacement {
        took: forked.unwrap_or_default().saturating_sub(died),
        held_up: held_up + queued(site.supervisor()).saturating_sub(waited),
    }
}

/// The process with most connections, and how many these are, once all clients are connected.
fn busiest(site: &Site) -> (Pid, u64) {
    let mut busiest = None;
    site.wait_until("all clients are connected", || {
        let children = site.children();
        let counts: Vec<_> =
            children.into_iter().map(|pid| (pid, connections(site, pid))).collect();
        busiest = counts.iter().max_by_key(|(_, count)| *count).copied();
        counts.iter().map(|(_, count)| count).sum::<usize>() == CONNECTIONS
    });
    let (pid, count) = busiest.unwrap();
    (pid, count as u64)
}

/// How many connections a process has: sockets of the site's port among its descriptors.
fn connections(site: &Site, pid: Pid) -> usize {
    /// `TCP_ESTABLISHED`, as /proc/net/tcp has it.
    const ESTABLISHED: &str = "01";
    let port = format!(":{:04X}", site.port);
    let shown = fs::read_to_string("/proc/net/tcp").unwrap();
    let lines = shown.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let ours = lines.filter(|words| words.len() > 9 && words[1].ends_with(&port));
    let sockets: HashSet<String> = ours
        .filter(|words| words[3] == ESTABLISHED)
        .map(|words| format!("socket:[{}]", words[9]))
        .collect();
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let links = descriptors.filter_map(|descriptor| fs::read_link(descriptor.path()).ok());
    links.filter(|link| link.to_str().is_some_and(|link| sockets.contains(link))).count()
}

/// Whether its parent has been told that it is dead: its other threads are gone, and the first is
/// left for that. A thread that ends is dead before it is gone, and may wait for a CPU meanwhile.
fn is_dead(pid: Pid) -> bool {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let stats: Vec<String> = threads
        .map(|thread| fs::read_to_string(thread.path().join("stat")).unwrap_or_default())
        .collect();
    let is_dead =
        |stat: &String| stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with('Z'));
    stats.len() <= 1 && stats.iter().all(is_dead)
}

fn since_boot() -> Duration {
    Duration::from(clock_gettime(ClockId::CLOCK_BOOTTIME).unwrap())
}

/// When a process was forked, by the same clock, in steps of 10 ms (proc_pid_stat(5): starttime).
fn started(pid: Pid) -> Option<Duration> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let ticks: u64 = text.rsplit_once(") ")?.1.split(' ').nth(19)?.parse().ok()?;
    Some(Duration::from_millis(ticks * 10))
}

/// How long a process has waited for a CPU; nothing where the kernel doesn't tell.
fn queued(pid: Pid) -> Duration {
    let text = fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap_or_default();
    let waited = text.split_whitespace().nth(1).and_then(|word| word.parse().ok());
    Duration::from_nanos(waited.unwrap_or(0))
}
