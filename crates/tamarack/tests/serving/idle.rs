//! Very many connections that do nothing.

use std::fs;

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::unistd::Pid;

use crate::client::Client;
use crate::is_long;
use crate::site::Site;

/// Idle connections.
const CONNECTIONS: usize = 10_000;
/// The same where nobody asked for long tests.
const CONNECTIONS_SHORT: usize = 3_000;
/// The most memory that one may take, bytes.
const BYTES_EACH_MAX: usize = 1536;
/// What the process may grow by beside: its pools, and pages that are used in part.
const BYTES_BESIDE: usize = 2 * 1024 * 1024;
/// Descriptors that both sides need for other things.
const OTHER_DESCRIPTORS: u64 = 200;

/// What a process has for itself, bytes.
fn private_memory(pid: Pid) -> usize {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap();
    let lines = text.lines().filter(|line| line.starts_with("Private_"));
    let kib: usize =
        lines.map(|line| line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap()).sum();
    kib * 1024
}

/// As many connections as are `wanted`, or as there are descriptors for: the limit is raised as far
/// as that goes. A client here has two of them, and two tests may want as many at the same time.
pub fn connections_possible(wanted: usize) -> usize {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard).unwrap();
    let possible = hard.saturating_sub(OTHER_DESCRIPTORS) / 4;
    wanted.min(usize::try_from(possible).unwrap_or(wanted))
}

#[test]
fn many_idle_connections_cost_little() {
    let count = connections_possible(if is_long() { CONNECTIONS } else { CONNECTIONS_SHORT });
    let mut site = Site::new("idle");
    site.configure("KeepAliveTimeout 300\n");
    site.start();
    let memory = || site.children().into_iter().map(private_memory).sum::<usize>();
    // The first ones warm pools and caches up.
    let mut clients: Vec<Client> = open(&site, 100);
    std::thread::sleep(std::time::Duration::from_millis(1500));
    let before = memory();
    clients.extend(open(&site, count - 100));
    // Buffers go back after a second of silence.
    let mut grown = 0;
    site.wait_until("little memory for each", || {
        grown = memory().saturating_sub(before);
        grown <= count * BYTES_EACH_MAX + BYTES_BESIDE
    });
    println!("{count} connections: {} bytes each", grown / count);
    for client in clients.iter_mut().step_by(97) {
        assert_eq!(client.get("/").unwrap().status, 200);
    }
    drop(clients);
    site.assert_serves();
}

/// Connections that have had one answer each.
fn open(site: &Site, count: usize) -> Vec<Client> {
    (0..count)
        .map(|_| {
            let mut client = site.client();
            assert_eq!(client.get("/").unwrap().status, 200);
            client
        })
        .collect()
}
