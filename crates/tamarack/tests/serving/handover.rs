//! Two loops in one process: excess work migrates from one to the other.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::sched::{CpuSet, sched_getaffinity};
use nix::unistd::Pid;

use crate::client::Client;
use crate::load::SetWhenDropped;
use crate::site::Site;
use crate::tls::Tls;

/// One process with status pages. Its CPUs are those of the tests.
const ONE_PROCESS: &str = "StartServers 1\nLogLevel warn mpm:debug\nTimeout 60\n\
    <Location /metrics>\n  SetHandler tamarack-metrics\n</Location>\n";
/// Connections that begin on one loop.
const TOGETHER: usize = 16;
/// The same, and the control connection.
const ALL: f64 = TOGETHER as f64 + 1.0;
/// The most attempts to get them there; half of all connections go to each loop.
const TRIED_MOST: usize = 400;
/// The longest time for the loops to balance.
const PATIENCE: Duration = Duration::from_secs(180);

/// Whether two loops are planned; on one CPU there is only one.
fn has_two_loops() -> bool {
    let set = sched_getaffinity(Pid::from_raw(0)).unwrap();
    let cpus = (0..CpuSet::count()).filter(|cpu| set.is_set(*cpu).unwrap()).count();
    if cpus < 2 {
        println!("one CPU: nothing to be seen (1 skipped)");
    }
    cpus >= 2
}

fn start(name: &str, more: &str) -> Site {
    let mut site = Site::new(name);
    // With more than two loops, the load would be spread over all of them.
    let set = sched_getaffinity(Pid::from_raw(0)).unwrap();
    let cpus = (0..CpuSet::count()).filter(|cpu| set.is_set(*cpu).unwrap());
    let two: Vec<String> = cpus.take(2).map(|cpu| cpu.to_string()).collect();
    site.configure(&format!("CPUAffinity {}\n{ONE_PROCESS}{more}", two.join(",")));
    for number in 0..TOGETHER {
        site.write(&format!("htdocs/{number}.txt"), &text(number));
    }
    site.start();
    site
}

/// The contents of a file: different for each connection.
fn text(number: usize) -> String {
    format!("the text of {number}\n").repeat(number + 1)
}

fn metrics(client: &mut Client) -> BTreeMap<String, f64> {
    let text = client.get("/metrics").unwrap().text();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let samples = lines.filter_map(|line| line.rsplit_once(' '));
    samples.map(|(key, value)| (key.to_owned(), value.parse().unwrap())).collect()
}

/// The number of connections of each loop.
fn spread(client: &mut Client) -> [f64; 2] {
    spread_of(&metrics(client))
}

fn spread_of(metrics: &BTreeMap<String, f64>) -> [f64; 2] {
    let of =
        |at: usize| metrics[&format!("tamarack_loop_connections{{process=\"0\",loop=\"{at}\"}}")];
    [of(0), of(1)]
}

/// Connections that migrated, that arrived from another loop, and that were handed over.
fn gone(metrics: &BTreeMap<String, f64>) -> [f64; 3] {
    let total = |what: &str| metrics[&format!("tamarack_connections_{what}_total")];
    ["moved", "taken_over", "handed_over"].map(total)
}

/// Connections that are all on one loop, and its number.
fn together(
    control: &mut Client,
    connect: impl Fn() -> Client,
    count: usize,
) -> (usize, Vec<Client>) {
    let mut found = [Vec::new(), Vec::new()];
    let mut before = spread(control);
    for _ in 0..TRIED_MOST {
        let mut client = connect();
        // Once it has a response, it was accepted.
        assert_eq!(client.get("/0.txt").unwrap().text(), text(0));
        let now = spread(control);
        let at = usize::from(now[1] > before[1]);
        before = now;
        found[at].push(client);
        if found[at].len() == count {
            let [zero, one] = found;
            return (at, if at == 0 { zero } else { one });
        }
    }
    panic!("{} and {} connections", found[0].len(), found[1].len());
}

/// Sends requests on all `clients` without pause until `is_over`; every response must be the
/// client's own.
fn ask_all(clients: &mut [Client], first: usize, is_over: &AtomicBool, answers: &AtomicU64) {
    while !is_over.load(Ordering::Relaxed) {
        for (number, client) in (first..).zip(clients.iter_mut()) {
            client.ask(&format!("/{number}.txt")).unwrap();
        }
        for (number, client) in (first..).zip(clients.iter_mut()) {
            assert_eq!(client.answer().unwrap().text(), text(number));
            answers.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Waits, with busy clients, until `is_so`.
fn wait_until(site: &Site, what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "waited in vain: {what}\n{}", site.error_log());
        thread::sleep(Duration::from_millis(20));
    }
}

/// Connections that all began on one loop use both in the end, without an effect on clients.
fn connections_in_use_move(site: &Site, connect: impl Fn() -> Client) {
    let mut control = connect();
    control.give_up_after(PATIENCE);
    let (at, mut clients) = together(&mut control, connect, TOGETHER);
    // Those on the other loop are closed as soon as that notices it.
    site.wait_until("the others are closed", || spread(&mut control).iter().sum::<f64>() == ALL);
    let (is_over, answers) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        let _end = SetWhenDropped(&is_over);
        for (group, clients) in clients.chunks_mut(TOGETHER / 4).enumerate() {
            let (is_over, answers) = (&is_over, &answers);
            scope.spawn(move || ask_all(clients, group * (TOGETHER / 4), is_over, answers));
        }
        // Both conditions, since a connection may have been counted for the other loop while the
        // counts were collected.
        wait_until(site, "a fourth of them have moved", || {
            let now = metrics(&mut control);
            let fourth = (TOGETHER / 4) as f64;
            gone(&now)[0] >= fourth && spread_of(&now)[1 - at] >= fourth
        });
    });
    assert!(answers.load(Ordering::Relaxed) > 0);
    for (number, client) in clients.iter_mut().enumerate() {
        assert_eq!(client.get(&format!("/{number}.txt")).unwrap().text(), text(number));
    }
    // A connection in transit is counted by one side only.
    site.wait_until("what has left has arrived", || {
        let now = metrics(&mut control);
        let [moved, taken, handed] = gone(&now);
        let is_many = moved >= (TOGETHER / 4) as f64;
        is_many && taken == moved + handed && spread_of(&now).iter().sum::<f64>() == ALL
    });
    let now = metrics(&mut control);
    assert!(now["tamarack_affinity_decisions_total{decision=\"moving\"}"] >= 1.0);
    assert!(site.count_lines("AH20109") >= 1, "{}", site.error_log());
    drop(clients);
    site.wait_until("all are closed", || spread(&mut control).iter().sum::<f64>() == 1.0);
}

#[test]
fn connections_move_to_the_loop_that_has_time() {
    if has_two_loops() {
        let site = start("moving", "");
        connections_in_use_move(&site, || site.client());
    }
}

#[test]
fn tls_connections_move_as_well() {
    if has_two_loops() {
        let site = start("moving-tls", &Tls::configuration("server.key"));
        let tls = Tls::new();
        connections_in_use_move(&site, || tls.connect(site.port).unwrap());
    }
}

/// Sends sequential requests on one connection without a pause, until `is_over`: the loop never
/// finishes with it.
fn pipeline(client: &mut Client, is_over: &AtomicBool) {
    const AT_ONCE: usize = 64;
    let request = "GET /0.txt HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(AT_ONCE);
    client.give_up_after(PATIENCE);
    client.send(request.as_bytes()).unwrap();
    while !is_over.load(Ordering::Relaxed) {
        // Send the next requests before the last responses have arrived.
        client.send(request.as_bytes()).unwrap();
        for _ in 0..AT_ONCE {
            assert_eq!(client.answer().unwrap().text(), text(0));
        }
    }
}

#[test]
fn a_busy_loop_hands_over_what_it_accepts() {
    if !has_two_loops() {
        return;
    }
    let site = start("handing", "");
    let mut control = site.client();
    control.give_up_after(PATIENCE);
    let mut busy = site.client();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let _end = SetWhenDropped(&is_over);
        scope.spawn(|| pipeline(&mut busy, &is_over));
        wait_until(&site, "some were handed over", || {
            let mut client = site.client();
            client.give_up_after(PATIENCE);
            assert_eq!(client.get("/1.txt").unwrap().text(), text(1));
            metrics(&mut control)["tamarack_connections_handed_over_total"] >= 4.0
        });
    });
    site.wait_until("what has left has arrived", || {
        let [moved, taken, handed] = gone(&metrics(&mut control));
        taken == moved + handed
    });
    let now = metrics(&mut control);
    assert!(site.count_lines("AH20108") >= 1, "{}", site.error_log());
    assert!(now["tamarack_affinity_decisions_total{decision=\"handing\"}"] >= 1.0);
}
