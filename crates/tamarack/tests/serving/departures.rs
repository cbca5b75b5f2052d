//! Clients of a proxy that go away at any moment: before their request ends, before the response
//! begins, in the middle of its body. Nothing of theirs stays behind.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::backend::Backend;
use crate::client::{Answer, Client, PATIENCE};
use crate::idle::anonymous_memory;
use crate::is_long;
use crate::programs::descriptors;
use crate::shapes::start;
use crate::site::Site;

/// Requests of a round.
const REQUESTS: usize = 50_000;
/// The same without long tests.
const REQUESTS_SHORT: usize = 600;
/// Clients at the same time.
const CLIENTS: usize = 16;
/// `max` of each member.
const MAX: usize = 4;
/// Bytes of a body that does not fit in the buffers of sockets.
const LARGE: usize = 1_500_000;
/// Bytes by which a round may let the processes grow: loops keep as many buffers as were in use at
/// the same time.
const GROWTH_MAX: usize = 4 * 1024 * 1024;
/// The same for a round that is repeated.
const GROWTH_REPEATED_MAX: usize = GROWTH_MAX / 2;
/// Rounds, of which the first ones may let them grow by more.
const ROUNDS: u64 = 4;

/// A sequence of numbers without an order (xorshift).
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, count: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % count as u64) as usize
    }
}

fn site(mpm: &str, backends: &[Backend]) -> Site {
    let names =
        ["proxy", "proxy_http", "proxy_balancer", "slotmem_shm", "lbmethod_byrequests", "status"];
    let modules = names.map(|name| format!("LoadModule {name}_module modules/mod_{name}.so\n"));
    let members: String = backends
        .iter()
        .map(|backend| {
            format!("  BalancerMember http://127.0.0.1:{} max={MAX} ttl=1\n", backend.port)
        })
        .collect();
    let shape = match mpm {
        "prefork" => {
            "StartServers 26\nServerLimit 26\nMaxRequestWorkers 26\nMinSpareServers 1\n\
             MaxSpareServers 26\n"
        }
        _ => {
            "StartServers 2\nServerLimit 2\nThreadsPerChild 12\nMaxRequestWorkers 24\n\
             MinSpareThreads 1\nMaxSpareThreads 24\n"
        }
    };
    let more = format!(
        "{}{shape}LogLevel proxy:crit proxy_http:crit\n<Proxy balancer://b>\n{members}</Proxy>\n\
         ProxyPass /b/ balancer://b/\n\
         <Location /metrics>\n  SetHandler tamarack-metrics\n</Location>\n",
        modules.concat()
    );
    start("departures", mpm, &more)
}

/// Sends a request and goes away at some moment.
fn depart(port: u16, random: &mut Random) -> std::io::Result<()> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let head = |method: &str, path: &str, fields: &str| {
        format!("{method} /b/{path} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n").into_bytes()
    };
    match random.below(5) {
        // In the middle of the head.
        0 => {
            let head = head("GET", "1000", "");
            stream.write_all(&head[..random.below(head.len())])
        }
        // In the middle of the request's body.
        1 => {
            stream.write_all(&head("POST", "echo", &format!("Content-Length: {LARGE}\r\n")))?;
            stream.write_all(&vec![b'x'; random.below(LARGE / 4)])
        }
        2 => {
            stream.write_all(&head("POST", "echo", "Transfer-Encoding: chunked\r\n"))?;
            let piece = [&b"ffff\r\n"[..], &vec![b'x'; random.below(65_000)]].concat();
            stream.write_all(&piece)
        }
        // Before the response.
        3 => stream.write_all(&head("GET", ["1000", "late"][random.below(2)], "")),
        // In the middle of its body.
        _ => {
            stream.write_all(&head("GET", &LARGE.to_string(), ""))?;
            let mut left = random.below(LARGE);
            let mut piece = vec![0; 64 * 1024];
            while left > 0 {
                let count = stream.read(&mut piece[..left.min(64 * 1024)])?;
                left = if count == 0 { 0 } else { left - count };
            }
            Ok(())
        }
    }
}

/// Runs a round, with a seed, and repeats it if it lets the memory grow by more than it may.
/// Returns by how much the last one did. On a busy machine a round may have more requests at the
/// same time than those before; what is lost is lost in each.
pub fn growth_of_rounds(memory: impl Fn() -> usize, mut again: impl FnMut(u64)) -> usize {
    let (mut grown, mut most) = (0, GROWTH_MAX);
    for seed in 2..2 + ROUNDS {
        let before = memory();
        again(seed);
        let end = Instant::now() + PATIENCE / 4;
        loop {
            grown = memory().saturating_sub(before);
            if grown <= most {
                return grown;
            }
            if Instant::now() > end {
                break;
            }
            thread::sleep(Duration::from_millis(50));
        }
        most = GROWTH_REPEATED_MAX;
    }
    panic!("each of {ROUNDS} rounds takes memory, the last one {grown} bytes");
}

/// Half of `count` requests are those of clients that go away; the others have to succeed, as `ask`
/// asserts.
pub fn round(
    site: &Site,
    (count, seed): (usize, u64),
    depart: impl Fn(u16, &mut Random) -> std::io::Result<()> + Sync,
    ask: impl Fn(&mut Client) -> Answer + Sync,
) {
    let (next, depart, ask) = (&AtomicUsize::new(0), &depart, &ask);
    thread::scope(|scope| {
        for number in 0..CLIENTS {
            scope.spawn(move || {
                let mut random = Random(seed * 1000 + number as u64 + 1);
                let mut client = None;
                while next.fetch_add(1, Ordering::SeqCst) < count {
                    if random.below(2) == 0 {
                        client = None;
                        // A reset is one of its ways to end.
                        let _ = depart(site.port, &mut random);
                        continue;
                    }
                    let mut held: Client = client.take().unwrap_or_else(|| site.client());
                    let closes = ask(&mut held).closes();
                    client = (!closes).then_some(held);
                }
            });
        }
    });
}

fn ask(client: &mut Client) -> Answer {
    let answer = client.get("/b/1000").unwrap();
    assert_eq!((answer.status, answer.body.len()), (200, 1000), "{answer:?}");
    answer
}

fn open_files(site: &Site) -> usize {
    site.children().into_iter().map(descriptors).sum()
}

/// Requests in progress of both members.
fn busy(site: &Site) -> Vec<u64> {
    let page = site.get("/metrics").text();
    let lines = page.lines().filter(|line| line.starts_with("tamarack_proxy_member_busy{"));
    lines.filter_map(|line| line.rsplit_once(' ')?.1.parse().ok()).collect()
}

fn memory(site: &Site) -> usize {
    site.children().into_iter().map(anonymous_memory).sum()
}

fn wait_for_rest(site: &Site, backends: &[Backend]) {
    site.wait_until("no request in progress", || busy(site) == [0, 0]);
    let open = || backends.iter().map(Backend::open).sum::<usize>();
    site.wait_until("no connection", || open() == 0);
}

#[test]
fn clients_that_go_away_leave_nothing_behind() {
    let count = if is_long() { REQUESTS } else { REQUESTS_SHORT };
    for mpm in ["event", "worker", "prefork"] {
        let backends = [Backend::start(), Backend::start()];
        let site = site(mpm, &backends);
        // Warms up pools.
        round(&site, (count, 1), depart, ask);
        wait_for_rest(&site, &backends);
        let files = open_files(&site);
        let again = |seed| {
            round(&site, (count, seed), depart, ask);
            wait_for_rest(&site, &backends);
            site.wait_until("no descriptor more", || open_files(&site) <= files);
        };
        let grown = growth_of_rounds(|| memory(&site), again);
        println!("{mpm}: {files} descriptors, {grown} bytes");
        // All places among the connections are free again.
        let mut clients: Vec<Client> = (0..2 * MAX).map(|_| site.client()).collect();
        clients.iter_mut().for_each(|client| client.ask("/b/waits").unwrap());
        let waiting = || backends.iter().map(Backend::open).sum::<usize>();
        site.wait_until("all at once", || waiting() == 2 * MAX);
        backends.iter().for_each(|backend| (0..MAX).for_each(|_| backend.step()));
        for client in &mut clients {
            assert_eq!(client.answer().unwrap().text(), "waited", "{mpm}");
        }
    }
}
