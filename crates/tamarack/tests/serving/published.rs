//! The pools of a published study of Apache, verbatim, under its thousand connections.

use std::time::{Duration, Instant};

use crate::client::{Client, PATIENCE};
use crate::idle::connections_possible;
use crate::metrics::metrics;
use crate::site::Site;

/// The study's configuration of event (Apache 2.4.37 on 8 CPUs, 2022). The lab measures it:
/// `lab/experiments/p1-keepalive.toml`.
const STUDY: &str = "StartServers 8\n\
    ServerLimit 100\n\
    ThreadsPerChild 125\n\
    ThreadLimit 2000\n\
    MaxRequestWorkers 2000\n\
    MaxSpareThreads 1000\n\
    MinSpareThreads 75\n\
    KeepAlive On\n\
    MaxKeepAliveRequests 0\n\
    KeepAliveTimeout 50\n";
/// The study's number of clients.
const CONNECTIONS: usize = 1000;
/// Requests of each of them.
const ROUNDS: usize = 5;
/// Half of the server's keep-alive timeout: if the machine stalls for longer, a client reconnects.
const IDLE_MAX: Duration = Duration::from_secs(25);

/// The message of each child that stays root without `User`: the study names no user.
const STAYS_ROOT: &str = "AH02155";

/// A connection, and the time of its last response.
struct Kept {
    client: Client,
    answered: Instant,
}

impl Kept {
    fn new(site: &Site) -> Kept {
        Kept { client: site.client(), answered: Instant::now() }
    }
}

/// All send their requests before the first response is read.
fn ask_all(site: &Site, all: &mut [Kept]) {
    for kept in all.iter_mut() {
        if kept.answered.elapsed() > IDLE_MAX {
            *kept = Kept::new(site);
        }
        kept.client.give_up_after(2 * PATIENCE);
        kept.client.ask("/").unwrap();
    }
    for kept in all.iter_mut() {
        let answer = kept.client.answer().unwrap();
        assert_eq!(answer.status, 200);
        assert!(!answer.closes(), "{answer:?}");
        kept.answered = Instant::now();
    }
}

#[test]
fn a_thousand_kept_connections_see_no_error() {
    let count = connections_possible(CONNECTIONS);
    let modules = ["mpm_event", "dir", "mime", "authz_core", "status"]
        .map(|name| format!("LoadModule {name}_module modules/mod_{name}.so\n"));
    let shown = "<Location /metrics>\n  SetHandler tamarack-metrics\n</Location>\n";
    let mut site = Site::new("published");
    site.configure(&format!("{}{STUDY}{shown}", modules.concat()));
    site.start();
    let mut all: Vec<Kept> = (0..count).map(|_| Kept::new(&site)).collect();
    for _ in 0..ROUNDS {
        ask_all(&site, &mut all);
    }
    site.wait_until("all are there at the same time", || {
        ask_all(&site, &mut all);
        metrics(&site)["tamarack_connections{state=\"keep_alive\"}"] >= count as f64
    });
    drop(all);
    site.assert_serves();
    let log = site.error_log();
    let mut lines = log.lines().filter(|line| !line.contains(STAYS_ROOT));
    let faults = ["AH00484", "AH03490", ":error]", ":crit]", ":alert]", ":emerg]"];
    let fault = lines.find(|line| faults.iter().any(|text| line.contains(text)));
    assert_eq!(fault, None, "{log}");
}
