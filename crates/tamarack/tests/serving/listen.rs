//! The effect of a `Listen` line's protocol in the kernel: whether a silent connection reaches a
//! process.

use std::fs;
use std::time::{Duration, Instant};

use crate::client::Client;
use crate::free_port::free_port;
use crate::load::wait_for_their_end;
use crate::site::Site;

/// One process with one loop: it accepts in the order of connections.
const ONE_LOOP: &str = "LoadModule mpm_loop_module modules/mod_mpm_loop.so\n\
    LoadModule dir_module modules/mod_dir.so\n\
    LoadModule authz_core_module modules/mod_authz_core.so\n";
/// The kernel passes a silent connection on after 31 seconds anyway. A check that took longer than
/// this is inconclusive.
const LOOK_MAX: Duration = Duration::from_secs(20);
/// Attempts, if checks take too long.
const LOOKS: usize = 10;

#[test]
fn silent_connections_wait_in_the_kernel_where_accept_filter_says_so() {
    let mut site = Site::new("accept-filter");
    let ports = [site.port, free_port(), free_port()];
    let [_, tls, other] = ports;
    let listen = format!("Listen 127.0.0.1:{tls} https\nListen 127.0.0.1:{other} Nntp\n");
    site.configure(&format!("{ONE_LOOP}{listen}"));
    site.start();
    // By protocol, http, https and another: whether silent connections are deferred.
    for (lines, held_back) in [
        ("", [true, true, false]),
        ("AcceptFilter http none\n", [false, true, false]),
        ("AcceptFilter nntp data\n", [true, true, true]),
        ("AcceptFilter HTTPS none\nAcceptFilter NNTP connect\n", [true, false, true]),
        ("AcceptFilter http httpready\nAcceptFilter http None\n", [false, true, false]),
        ("", [true, true, false]),
    ] {
        site.configure(&format!("{ONE_LOOP}{listen}{lines}"));
        let old = site.children();
        site.restart_gracefully();
        wait_for_their_end(&site, &old);
        assert_eq!(ports.map(is_held_back), held_back, "{lines}");
    }
    site.assert_serves();
}

/// Whether a connection waits for its first bytes before a process gets it.
fn is_held_back(port: u16) -> bool {
    for _ in 0..LOOKS {
        let begun = Instant::now();
        let mut silent = Client::connect(port).unwrap();
        // Once a later connection has its response, the earlier one has been accepted.
        assert_eq!(Client::connect(port).unwrap().get("/").unwrap().status, 200);
        let is_held_back = !is_accepted(port, silent.port());
        let took = begun.elapsed();
        assert_eq!(silent.get("/").unwrap().status, 200);
        if took < LOOK_MAX {
            return is_held_back;
        }
    }
    panic!("the machine is too busy");
}

/// Whether the server has a descriptor of a client's connection: only then the kernel gives its
/// socket an inode.
fn is_accepted(port: u16, client: u16) -> bool {
    let ends = format!(" 0100007F:{port:04X} 0100007F:{client:04X} ");
    let shown = fs::read_to_string("/proc/net/tcp").unwrap();
    let lines = shown.lines().filter(|line| line.contains(&ends));
    let mut inodes = lines.filter_map(|line| line.split_whitespace().nth(9));
    inodes.any(|inode| inode != "0")
}
