//! CGI with clients that go away at any moment, and a spawner that is killed repeatedly: no
//! process, descriptor, place or memory stays behind, and only requests in flight fail.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::client::{Answer, Client, PATIENCE};
use crate::departures::{Random, growth_of_rounds, round};
use crate::idle::anonymous_memory;
use crate::is_long;
use crate::load::SetWhenDropped;
use crate::programs::{MPMS, children, descriptors, program, spawner};
use crate::shapes::shape;
use crate::site::Site;

/// Requests of a round.
const REQUESTS: usize = 10_000;
/// The same without long tests.
const REQUESTS_SHORT: usize = 800;
/// Programs at the same time.
const PROGRAMS: usize = 24;
/// Bytes of output that fit into no buffer.
const LARGE: usize = 1_000_000;
/// Responds at once, writes much, reads its input, or waits for its end.
const SCRIPT: &str = "#!/bin/sh
printf 'Content-Type: text/plain\\n\\n'
case \"$QUERY_STRING\" in
  large) exec head -c 1000000 /dev/zero;;
  read) exec wc -c;;
  wait) echo $PPID; exec sleep 1000;;
  stderr) echo one >&2; echo two >&2;;
  parts) echo one; sleep 20; echo two;;
esac
echo $PPID
";

fn site(mpm: &str) -> Site {
    let mut site = Site::new(&format!("programs-gone-{mpm}"));
    fs::create_dir_all(site.path("cgi-bin")).unwrap();
    program(&site, "run", SCRIPT);
    let module = if mpm == "prefork" { "cgi" } else { "cgid" };
    let modules = ["alias", "unixd", "status", module];
    let modules = modules.map(|name| format!("LoadModule {name}_module modules/mod_{name}.so\n"));
    let numbers = match mpm {
        "prefork" => format!(
            "StartServers {0}\nServerLimit {0}\nMaxRequestWorkers {0}\nMaxSpareServers {0}\n",
            PROGRAMS + 2
        ),
        _ => format!(
            "StartServers 2\nServerLimit 2\nThreadsPerChild {}\nMaxRequestWorkers {}\n\
             MaxSpareThreads {1}\n",
            PROGRAMS / 2 + 1,
            PROGRAMS + 2
        ),
    };
    let more = format!(
        "{}{numbers}LogLevel crit\nScriptAlias /cgi-bin/ cgi-bin/\n\
         <Location /status>\n  SetHandler server-status\n</Location>\n",
        modules.concat()
    );
    site.configure(&shape(mpm, &more));
    site.start();
    site
}

/// Sends a request and goes away at some moment.
fn depart(port: u16, random: &mut Random) -> std::io::Result<()> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let head = |method: &str, query: &str, fields: &str| {
        let path = format!("/cgi-bin/run?{query}");
        format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n").into_bytes()
    };
    match random.below(4) {
        // At once.
        0 => stream.write_all(&head("GET", ["", "stderr", "large"][random.below(3)], "")),
        // In the middle of the request's body.
        1 => {
            stream.write_all(&head("POST", "read", &format!("Content-Length: {LARGE}\r\n")))?;
            stream.write_all(&vec![b'x'; random.below(LARGE / 4)])
        }
        2 => {
            stream.write_all(&head("POST", "", "Transfer-Encoding: chunked\r\n"))?;
            stream.write_all(&[&b"ffff\r\n"[..], &vec![b'x'; random.below(65_000)]].concat())
        }
        // In the middle of the response.
        _ => {
            stream.write_all(&head("GET", "large", ""))?;
            let mut piece = vec![0; 1 + random.below(64 * 1024)];
            stream.read_exact(&mut piece)
        }
    }
}

fn ask(client: &mut Client) -> Answer {
    let answer = client.get("/cgi-bin/run").unwrap();
    assert_eq!(answer.status, 200, "{answer:?}");
    answer
}

/// Requests in progress besides the one that asks.
fn busy(site: &Site) -> usize {
    let page = site.get("/status?auto").text();
    let line = page.lines().find_map(|line| line.strip_prefix("BusyWorkers: ")).unwrap();
    line.parse::<usize>().unwrap() - 1
}

#[test]
fn nothing_of_programs_whose_clients_leave_stays_behind() {
    let count = if is_long() { REQUESTS } else { REQUESTS_SHORT };
    let mpms = if is_long() { &MPMS[..] } else { &MPMS[..1] };
    for mpm in mpms {
        let site = site(mpm);
        let spawner = spawner(&site).unwrap();
        let all = || [site.children(), vec![spawner]].concat();
        let open = || all().into_iter().map(descriptors).sum::<usize>();
        let memory = || all().into_iter().map(anonymous_memory).sum::<usize>();
        let rest = || {
            site.wait_until("no program, not even a zombie", || children(spawner) == 0);
            site.wait_until("no request in progress", || busy(&site) == 0);
        };
        // Warms up pools.
        round(&site, (count, 1), depart, ask);
        rest();
        let files = open();
        let again = |seed| {
            round(&site, (count, seed), depart, ask);
            rest();
            site.wait_until("no descriptor more", || open() <= files);
        };
        let grown = growth_of_rounds(memory, again);
        println!("{mpm}: {files} descriptors, {grown} bytes");
        // All places for programs are free again.
        let mut clients: Vec<Client> = (0..PROGRAMS).map(|_| site.client()).collect();
        clients.iter_mut().for_each(|client| client.ask("/cgi-bin/run?wait").unwrap());
        for client in &mut clients {
            assert_eq!(client.head().unwrap().status, 200, "{mpm}");
        }
    }
}

/// A request that failed: when it began and ended.
type Failed = (Instant, Instant, String);

/// Requests until `is_over`; those that failed.
fn ask_until(site: &Site, is_over: &AtomicBool, failed: &Mutex<Vec<Failed>>) -> usize {
    let (mut succeeded, mut client) = (0, site.client());
    while !is_over.load(Ordering::Relaxed) {
        let begun = Instant::now();
        let answer = client.get("/cgi-bin/run");
        if answer.as_ref().is_ok_and(|answer| answer.status == 200 && answer.body.len() > 1) {
            succeeded += 1;
        } else {
            failed.lock().unwrap().push((begun, Instant::now(), format!("{answer:?}")));
        }
        if !answer.is_ok_and(|answer| !answer.closes()) {
            client = site.client();
        }
    }
    succeeded
}

#[test]
fn only_requests_in_flight_fail_when_the_spawner_is_killed() {
    let (kills, pause) = if is_long() { (60, 1000) } else { (4, 500) };
    let mpms = if is_long() { &MPMS[..] } else { &MPMS[..1] };
    for mpm in mpms {
        let site = site(mpm);
        let (failed, is_over) = (Mutex::new(Vec::new()), AtomicBool::new(false));
        let mut killed = Vec::new();
        let succeeded = thread::scope(|scope| {
            let clients: Vec<_> =
                (0..4).map(|_| scope.spawn(|| ask_until(&site, &is_over, &failed))).collect();
            let over = SetWhenDropped(&is_over);
            for _ in 0..kills {
                thread::sleep(Duration::from_millis(pause));
                let mut victim = None;
                // The request that asks may be in flight itself.
                site.wait_until("a spawner", || {
                    victim = spawner(&site).filter(|pid| *pid != Pid::from_raw(1));
                    victim.is_some()
                });
                let begun = Instant::now();
                kill(victim.unwrap(), Signal::SIGKILL).unwrap();
                killed.push((begun, Instant::now()));
            }
            thread::sleep(Duration::from_millis(pause));
            drop(over);
            clients.into_iter().map(|client| client.join().unwrap()).sum::<usize>()
        });
        assert!(succeeded > 0);
        for (begun, ended, answer) in failed.into_inner().unwrap() {
            let is_in_flight = killed.iter().any(|(from, to)| begun <= *to && *from <= ended);
            assert!(is_in_flight, "{mpm}: {answer}\n{}", site.error_log());
        }
        site.wait_until("no request in progress", || busy(&site) == 0);
        assert!(spawner(&site).is_some());
    }
}

#[test]
fn what_a_spawner_leaves_behind_is_not_taken_for_complete() {
    let site = site("event");
    program(&site, "silent", "#!/bin/sh\nsleep 20\n");
    let kill_spawner = || kill(spawner(&site).unwrap(), Signal::SIGKILL).unwrap();
    // The shell ends with the spawner; what it waits for has the pipes, and ends later.
    let mut client = site.client();
    client.ask("/cgi-bin/run?parts").unwrap();
    client.wait_for_bytes(1).unwrap();
    kill_spawner();
    let error = client.answer().unwrap_err();
    let cut = [ErrorKind::UnexpectedEof, ErrorKind::ConnectionReset];
    assert!(cut.contains(&error.kind()), "{error}");
    site.wait_until("another spawner", || spawner(&site).is_some());
    let (begun, mut client) = (Instant::now(), site.client());
    client.ask("/cgi-bin/silent").unwrap();
    site.wait_until("its program", || children(spawner(&site).unwrap()) == 1);
    kill_spawner();
    assert_eq!(client.answer().unwrap().status, 500);
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
}

#[test]
fn a_program_that_closes_its_output_is_not_awaited() {
    // mod_cgi, whose responses otherwise end with the standard error of the program.
    let site = site("prefork");
    program(&site, "closed", "#!/bin/sh\nexec >&-\nsleep 20\n");
    let begun = Instant::now();
    assert_eq!(site.get("/cgi-bin/closed").status, 500);
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
}
