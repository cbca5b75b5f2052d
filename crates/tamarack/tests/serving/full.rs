//! Shapes at or near their limit: new connections wait, and this is logged and counted.

use std::thread::sleep;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};

use crate::client::{Client, PATIENCE};
use crate::free_port::free_port;
use crate::metrics::metrics;
use crate::shapes::{ask_at_once, start};
use crate::site::Site;

/// A location with the count of times that a shape was full.
const METRICS: &str = "LoadModule status_module modules/mod_status.so\n\
    <Location /metrics>\n  SetHandler tamarack-metrics\n</Location>\n";
/// The number of requests that [`full_after`] admits.
const ADMITTED: usize = 2 * (1 + 2);

/// Whether the count says that the shape was full.
fn is_counted_as_full(site: &Site) -> bool {
    metrics(site)["tamarack_events_total{event=\"shape_full\"}"] >= 1.0
}

/// `mpm` allows two connections: a third waits until one of them ends.
fn is_full(name: &str, mpm: &str, limits: &str, number: &str) {
    let site = start(name, mpm, &format!("{limits}{METRICS}"));
    let mut busy = ask_at_once(&site, 2);
    let mut third = site.client();
    third.ask("/").unwrap();
    site.wait_for_line(number);
    third.give_up_after(Duration::from_millis(300));
    assert!(third.answer().is_err(), "there is no room for it");
    busy.pop();
    third.give_up_after(PATIENCE);
    assert_eq!(third.answer().unwrap().status, 200);
    // Once a minute, however often it happens.
    assert_eq!(site.count_lines(number), 1, "{}", site.error_log());
    drop((busy, third));
    // It is counted if a connection waits when the supervisor checks, once a second.
    site.wait_until("a count", || {
        is_counted_as_full(&site) || {
            let busy = ask_at_once(&site, 2);
            let mut third = site.client();
            third.ask("/").unwrap();
            sleep(Duration::from_millis(1500));
            drop(busy);
            assert_eq!(third.answer().unwrap().status, 200);
            false
        }
    });
}

#[test]
fn a_full_prefork_queues_and_says_so() {
    let limits = "StartServers 2\nServerLimit 2\nMaxRequestWorkers 2\nMinSpareServers 1\n";
    is_full("prefork-full", "prefork", limits, "AH00161: server reached MaxRequestWorkers");
}

#[test]
fn a_full_worker_queues_and_says_so() {
    let limits = "StartServers 1\nThreadsPerChild 2\nMaxRequestWorkers 2\nMinSpareThreads 1\n";
    is_full("worker-full", "worker", limits, "AH00286: server reached MaxRequestWorkers");
}

/// A client whose request is in progress, and remains so.
fn busy(site: &Site) -> Client {
    let mut client = site.client();
    client.send(b"GET / HTTP/1.1\r\nHost: local").unwrap();
    client
}

fn finish(clients: Vec<Client>) {
    for mut client in clients {
        client.send(b"host\r\n\r\n").unwrap();
        assert_eq!(client.answer().unwrap().status, 200);
    }
}

#[test]
fn a_nearly_full_worker_says_so() {
    let limits = "StartServers 1\nThreadsPerChild 4\nMaxRequestWorkers 4\nMinSpareThreads 2\n";
    let site = start("worker-near", "worker", limits);
    let mut clients = ask_at_once(&site, 2);
    sleep(Duration::from_millis(1500));
    assert_eq!(site.count_lines("AH00287"), 0, "two are left, as many as there are to be");
    clients.extend(ask_at_once(&site, 1));
    site.wait_for_line("AH00287: server is within MinSpareThreads of MaxRequestWorkers");
    clients.extend(ask_at_once(&site, 1));
    let mut fifth = site.client();
    fifth.ask("/").unwrap();
    // One message does not suppress the other.
    site.wait_for_line("AH00286");
    drop(clients);
    assert_eq!(fifth.answer().unwrap().status, 200);
    // Once a minute, however often it happens.
    let _clients = ask_at_once(&site, 3);
    assert_eq!(site.count_lines("AH00287"), 1, "{}", site.error_log());
}

/// `(AsyncRequestWorkerFactor + 1) × MaxRequestWorkers` simultaneous requests.
#[test]
fn event_admits_so_many_requests_and_any_number_of_idle_connections() {
    let limits = "ThreadsPerChild 2\nMaxRequestWorkers 2\nAsyncRequestWorkerFactor 2\n\
                  MinSpareThreads 2\n";
    let site = start("admission", "loop", &format!("{limits}{METRICS}"));
    // Sequentially: a delayed loop would see many requests at the same time.
    let idle: Vec<Client> = (0..3 * ADMITTED).flat_map(|_| ask_at_once(&site, 1)).collect();
    assert_eq!(site.count_lines("MaxRequestWorkers"), 0, "{}", site.error_log());
    let mut clients: Vec<Client> = (0..ADMITTED - 2).map(|_| busy(&site)).collect();
    // The next connection sees them, once they have been read, and the one after it is served.
    site.wait_until("a word", || {
        assert_eq!(site.get("/").status, 200);
        site.count_lines("AH10159: server is within MinSpareThreads of MaxRequestWorkers") == 1
    });
    assert_eq!(site.count_lines("AH00484"), 0, "{}", site.error_log());
    assert!(!is_counted_as_full(&site));
    clients.extend([busy(&site), busy(&site)]);
    // A new connection triggers the check; one that comes before the others have been read is
    // served.
    site.wait_until("a full loop", || {
        let mut next = site.client();
        next.ask("/").unwrap();
        next.give_up_after(Duration::from_millis(20));
        let _ = next.answer();
        site.count_lines("AH00484: server reached MaxRequestWorkers") == 1
    });
    let mut late = site.client();
    late.ask("/").unwrap();
    late.give_up_after(Duration::from_millis(500));
    assert!(late.answer().is_err(), "all that may be are busy");
    late.give_up_after(PATIENCE);
    finish(clients);
    assert_eq!(late.answer().unwrap().status, 200);
    assert!(is_counted_as_full(&site));
    drop(idle);
}

/// A loop that admits [`ADMITTED`] simultaneous requests, and listens on `addresses` in addition to
/// its own; and a client that is already connected.
fn full_after(name: &str, addresses: &[u16]) -> (Site, Client) {
    let listen: String =
        addresses.iter().map(|port| format!("Listen 127.0.0.1:{port}\n")).collect();
    let limits = "ThreadsPerChild 2\nMaxRequestWorkers 2\nAsyncRequestWorkerFactor 2\n\
                  MinSpareThreads 1\n";
    let site = start(name, "loop", &format!("{limits}{METRICS}{listen}"));
    let mut known = site.client();
    assert_eq!(reading(&mut known), 0);
    (site, known)
}

/// The number of connections that have sent a part of a request, as reported to a connected client.
fn reading(known: &mut Client) -> usize {
    let text = known.get("/metrics").unwrap().text();
    let mut lines = text.lines();
    let name = "tamarack_connections{state=\"reading\"} ";
    lines.find_map(|line| line.strip_prefix(name)).unwrap().parse().unwrap()
}

#[test]
fn a_full_loop_takes_no_more_at_any_address() {
    let addresses: Vec<u16> = (0..4).map(|_| free_port()).collect();
    let (site, mut known) = full_after("full-addresses", &addresses);
    // Each address waits for a connection since it had one.
    let mut idle: Vec<Client> =
        addresses.iter().map(|port| Client::connect(*port).unwrap()).collect();
    idle.iter_mut().for_each(|client| assert_eq!(client.get("/").unwrap().status, 200));
    let clients: Vec<Client> = (0..ADMITTED).map(|_| busy(&site)).collect();
    site.wait_until("all are read", || reading(&mut known) == ADMITTED);
    let mut late: Vec<Client> =
        addresses.iter().map(|port| Client::connect(*port).unwrap()).collect();
    for client in &mut late {
        client.ask("/").unwrap();
        client.give_up_after(Duration::from_millis(100));
    }
    for client in &mut late {
        assert!(client.answer().is_err(), "it is one more than may be");
        client.give_up_after(PATIENCE);
    }
    // Existing connections are served.
    assert_eq!(reading(&mut known), ADMITTED);
    finish(clients);
    late.iter_mut().for_each(|client| assert_eq!(client.answer().unwrap().status, 200));
}

#[test]
fn of_many_that_come_at_once_no_more_are_taken_than_may_be() {
    let (site, mut known) = full_after("full-at-once", &[]);
    let child = site.children()[0];
    kill(child, Signal::SIGSTOP).unwrap();
    let clients: Vec<Client> = (0..4 * ADMITTED).map(|_| busy(&site)).collect();
    kill(child, Signal::SIGCONT).unwrap();
    site.wait_until("as many as may be", || reading(&mut known) >= ADMITTED);
    for _ in 0..20 {
        assert_eq!(reading(&mut known), ADMITTED);
        sleep(Duration::from_millis(5));
    }
    finish(clients);
}

#[test]
fn threads_that_wait_count_as_idle_all_the_time() {
    // All of them count as spare: one that does not would be noticed.
    let limits = "StartServers 1\nThreadsPerChild 64\nMaxRequestWorkers 64\nMinSpareThreads 64\n";
    let site = start("worker-idle", "worker", limits);
    sleep(Duration::from_millis(3500));
    assert_eq!(site.count_lines("MaxRequestWorkers"), 0, "{}", site.error_log());
}
