//! Very many idle connections.

use std::fs;

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::unistd::Pid;

use crate::client::Client;
use crate::is_long;
use crate::site::Site;

/// Idle connections.
const CONNECTIONS: usize = 10_000;
/// The same without long tests.
const CONNECTIONS_SHORT: usize = 3_000;
/// Most bytes of memory for each.
const BYTES_EACH_MAX: usize = 1536;
/// Other growth of the process in bytes: its pools, and partly used pages.
const BYTES_BESIDE: usize = 2 * 1024 * 1024;
/// Descriptors that both sides need for other purposes.
const OTHER_DESCRIPTORS: u64 = 200;

/// The memory that a process has written to, in bytes. It includes pages that are still shared with
/// the supervisor: to copy one, on either side, is not to use more.
pub fn anonymous_memory(pid: Pid) -> usize {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("Anonymous:")).unwrap();
    line.split_whitespace().next().unwrap().parse::<usize>().unwrap() * 1024
}

/// The `wanted` number of connections, or fewer if descriptors are scarce; raises the limit as far
/// as possible. Each client takes two of them here, and two tests may run at the same time.
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
    let memory = || site.children().into_iter().map(anonymous_memory).sum::<usize>();
    // The first ones warm up pools and caches.
    let mut clients: Vec<Client> = open(&site, 100);
    std::thread::sleep(std::time::Duration::from_millis(1500));
    let before = memory();
    clients.extend(open(&site, count - 100));
    // Buffers are returned after a second of inactivity.
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

/// Connections that have had one response each.
fn open(site: &Site, count: usize) -> Vec<Client> {
    (0..count)
        .map(|_| {
            let mut client = site.client();
            assert_eq!(client.get("/").unwrap().status, 200);
            client
        })
        .collect()
}
