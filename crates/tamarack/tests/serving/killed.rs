//! A process is killed every second under load: which requests are lost, and when its replacement
//! comes.

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

/// The least and the largest number of kills.
const KILLS: usize = 5;
const KILLS_MAX: usize = 3 * KILLS;
const PAUSE: Duration = Duration::from_secs(1);
/// Clients that send requests constantly.
const CONNECTIONS: usize = 10;
/// Clients that connect just after a process has died.
const NEWCOMERS: usize = 32;
/// The longest time from a death to the fork of the replacement.
const REPLACED_WITHIN: Duration = Duration::from_millis(100);
/// A longer interval between two checks means that the machine delayed the test.
const LOOK: Duration = Duration::from_millis(10);

/// A death and its replacement.
#[derive(Debug)]
struct Replacement {
    /// From the death to the fork of the replacement; fork times have a resolution of 10 ms.
    took: Duration,
    /// How long the machine delayed this test or the supervisor meanwhile.
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
    // One in five may be late: on a busy machine, a disk or a hypervisor may delay the supervisor
    // unnoticed.
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
    assert!(failures > 0, "the killed processes had no connections");
    assert!(seen.answers.into_inner() > failures);
    let killed = site.count_lines("exit signal Killed");
    assert_eq!(killed, replacements.len(), "{}", site.error_log());
    site.assert_serves();
}

/// Connects patiently: a busy kernel may take long to reap a process, and its successor comes only
/// then.
fn connect(port: u16) -> io::Result<Client> {
    let client = Client::connect(port)?;
    client.give_up_after(3 * PATIENCE);
    Ok(client)
}

/// Kills the process with the most connections. Only those fail, and not even clients that connect
/// after its death.
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
        // They wait in the queues of the dead process, and its successor serves them.
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
    // All have reconnected, and have counted their losses.
    busiest(site);
    let failed = failures() - failed;
    assert!(failed <= connections, "{failed} failures, {connections} connections were cut");
    Replacement {
        took: forked.unwrap_or_default().saturating_sub(died),
        held_up: held_up + queued(site.supervisor()).saturating_sub(waited),
    }
}

/// The process with the most connections and their number, once all clients are connected.
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

/// The number of connections of a process: sockets of the site's port among its descriptors.
fn connections(site: &Site, pid: Pid) -> usize {
    /// `TCP_ESTABLISHED` in /proc/net/tcp.
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

/// Whether its parent has been notified of the death: only the first thread remains, as a zombie. A
/// thread that ends is dead before it is gone, and may wait for a CPU meanwhile.
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

/// How long a process has waited for a CPU; zero if the kernel does not report it.
fn queued(pid: Pid) -> Duration {
    let text = fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap_or_default();
    let waited = text.split_whitespace().nth(1).and_then(|word| word.parse().ok());
    Duration::from_nanos(waited.unwrap_or(0))
}
