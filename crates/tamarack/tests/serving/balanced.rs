//! Balancers: the sequence of their members is that of all processes, and what a killed process
//! counted is subtracted.

use std::time::Instant;

use nix::sys::signal::{Signal, kill};

use crate::backend::Backend;
use crate::client::Client;
use crate::free_port::free_port;
use crate::shapes::started;
use crate::site::Site;
use crate::system_calls::{assert_at_most, calls_of, quiet_site};

/// A site with a balancer of these members, at `/b/`.
pub fn site(mpm: &str, members: &[String], more: &str) -> Site {
    balancing(Site::new("balanced"), mpm, members, more)
}

fn balancing(site: Site, mpm: &str, members: &[String], more: &str) -> Site {
    let load = |name: &str| format!("LoadModule {name}_module modules/mod_{name}.so\n");
    let names = ["proxy", "proxy_http", "proxy_balancer", "slotmem_shm", "lbmethod_byrequests"];
    let modules: String = names.map(load).concat();
    let members: String =
        members.iter().map(|member| format!("  BalancerMember http://{member}\n")).collect();
    let more = format!(
        "{modules}{more}<Proxy balancer://b>\n{members}</Proxy>\nProxyPass /b/ balancer://b/\n"
    );
    started(site, mpm, &more)
}

/// The page of metrics.
const METRICS: &str = "LoadModule status_module modules/mod_status.so\n\
                       <Location /metrics>\n  SetHandler tamarack-metrics\n</Location>\n";

/// A client of each process, since a connection keeps its process from taking others.
const PROCESSES: &str = "StartServers 3\nMinSpareServers 3\nMaxSpareServers 3\n";
const OF_WORKER: &str = "StartServers 3\nThreadsPerChild 1\nMinSpareThreads 1\n\
                         MaxSpareThreads 3\nMaxRequestWorkers 3\nServerLimit 3\n";

#[test]
fn the_sequence_of_members_is_that_of_all_processes() {
    for (mpm, processes) in [("prefork", PROCESSES), ("worker", OF_WORKER)] {
        let backends = [Backend::start(), Backend::start()];
        let members = backends.each_ref().map(|backend| format!("127.0.0.1:{}", backend.port));
        let log = "CustomLog logs/access.log %P\n";
        let site = site(mpm, &members, &format!("{processes}{log}"));
        let mut clients: Vec<Client> = (0..3).map(|_| site.client()).collect();
        for number in 0..12 {
            // Two by two, which no process would distribute so by itself.
            let client = &mut clients[number / 2 % 3];
            assert_eq!(client.get("/b/some").unwrap().status, 200, "{mpm}");
            let counts = backends.each_ref().map(Backend::requests);
            assert_eq!(counts, [number / 2 + 1, number.div_ceil(2)], "{mpm}, request {number}");
        }
        drop(clients);
        let mut pids: Vec<String> = Vec::new();
        site.wait_until("the log", || {
            let text = std::fs::read_to_string(site.path("logs/access.log")).unwrap_or_default();
            pids = text.lines().map(str::to_owned).collect();
            pids.len() == 12
        });
        pids.sort();
        pids.dedup();
        assert_eq!(pids.len(), 3, "{mpm}");
    }
}

/// Those of a request without a balancer: see `proxied`.
#[test]
fn choosing_a_member_makes_no_system_call() {
    let backends = [Backend::start(), Backend::start()];
    let members = backends.each_ref().map(|backend| format!("127.0.0.1:{}", backend.port));
    let more = "StartServers 1\nServerLimit 1\n";
    let site = balancing(quiet_site("balanced"), "event", &members, more);
    let mut client = site.client();
    let count = 200;
    let mut ask = || {
        for _ in 0..count {
            assert_eq!(client.get("/b/1000").unwrap().body.len(), 1000);
        }
    };
    ask();
    let begun = Instant::now();
    let Some(calls) = calls_of(&site, ask) else { return };
    assert_at_most(7, count, &calls, begun.elapsed());
}

#[test]
fn metrics_show_members() {
    let backends = [Backend::start(), Backend::start()];
    let members = backends.each_ref().map(|backend| format!("127.0.0.1:{}", backend.port));
    let site = site("event", &members, METRICS);
    for _ in 0..3 {
        assert_eq!(site.get("/b/1000").status, 200);
    }
    let page = site.get("/metrics").text();
    let value = |family: &str, member: &str| value_of(&page, family, member);
    let [one, two] = &members;
    assert_eq!(value("requests_total", one), Some(2), "{page}");
    assert_eq!(value("requests_total", two), Some(1));
    assert_eq!(value("busy", one), Some(0));
    assert_eq!(value("usable", two), Some(1));
    assert!(value("received_bytes_total", two).is_some_and(|bytes| bytes >= 1000));
}

/// A sample of a member on the page of metrics.
fn value_of(page: &str, family: &str, member: &str) -> Option<u64> {
    let start = format!("tamarack_proxy_member_{family}{{");
    let of = format!("balancer=\"balancer://b\",member=\"http://{member}\"}} ");
    let mut lines = page.lines().filter(|line| line.starts_with(&start));
    lines.find_map(|line| line.split_once(&of)?.1.parse::<u64>().ok())
}

#[test]
fn metrics_count_failures_of_members() {
    let backend = Backend::start();
    let names = [format!("127.0.0.1:{}", free_port()), format!("127.0.0.1:{}", backend.port)];
    let members = [format!("{} retry=3600", names[0]), names[1].clone()];
    let site = site("prefork", &members, METRICS);
    (0..4).for_each(|_| assert_eq!(site.get("/b/x").status, 200));
    let page = site.get("/metrics").text();
    let values = |family: &str| names.each_ref().map(|name| value_of(&page, family, name));
    // It was left alone after the first failure.
    assert_eq!(values("errors_total"), [Some(1), Some(0)], "{page}");
    assert_eq!(values("usable"), [Some(0), Some(1)]);
}

#[test]
fn a_restart_forgets_errors_as_in_apache() {
    let backend = Backend::start();
    let members = [format!("127.0.0.1:{}", free_port()), format!("127.0.0.1:{}", backend.port)];
    let site = site("event", &members, "");
    let ask = || (0..4).for_each(|_| assert_eq!(site.get("/b/x").status, 200));
    ask();
    assert_eq!(site.count_lines("AH00959"), 1);
    site.restart_gracefully();
    ask();
    assert_eq!(site.count_lines("AH00959"), 2);
}

#[test]
fn requests_of_a_killed_process_are_not_in_progress_any_more() {
    let backends = [Backend::start(), Backend::start()];
    let members = backends.each_ref().map(|backend| format!("127.0.0.1:{}", backend.port));
    let name = "lbmethod_bybusyness";
    let more = format!(
        "{PROCESSES}LoadModule {name}_module modules/mod_{name}.so\n\
         <Proxy balancer://b>\n  ProxySet lbmethod=bybusyness\n</Proxy>\n"
    );
    let site = site("prefork", &members, &more);
    let mut waiting = site.client();
    waiting.ask("/b/waits").unwrap();
    site.wait_until("the request", || backends[0].requests() == 1);
    let ask = |count: usize| (0..count).for_each(|_| assert_eq!(site.get("/b/x").status, 200));
    ask(4);
    assert_eq!(backends.each_ref().map(Backend::requests), [1, 4]);
    // Only the one in progress has a connection to a member that another process does not share.
    let busy = site.children().into_iter().find(|pid| is_connected(*pid, backends[0].port));
    kill(busy.unwrap(), Signal::SIGKILL).unwrap();
    site.wait_for_line("exit signal Killed");
    backends[0].step();
    ask(4);
    let [one, two] = backends.each_ref().map(Backend::requests);
    assert!(one > 1 && one + two == 9, "{one} {two}");
}

/// Whether the process has a connection to a port of loopback.
fn is_connected(pid: nix::unistd::Pid, port: u16) -> bool {
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let remote = format!("0100007F:{port:04X}");
    let inodes: Vec<String> = table
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter(|words| words.get(2) == Some(&remote.as_str()))
        .filter_map(|words| words.get(9).map(|inode| format!("socket:[{inode}]")))
        .collect();
    let files = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    let mut links = files.flatten().filter_map(|file| std::fs::read_link(file.path()).ok());
    links.any(|link| inodes.iter().any(|inode| link.as_os_str() == inode.as_str()))
}
