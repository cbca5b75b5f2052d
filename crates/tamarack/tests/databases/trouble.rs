//! memcached and Redis that are full, slow and killed while logins go on; and memcached that is
//! full and refuses what comes, or drops the oldest.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::scope;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::caches::{add_user, remove_user, site, users_are_kept};
use crate::client::PATIENCE;
use crate::free_port::free_port;
use crate::services::{MEMCACHED, REDIS, Service, evicting_memcached, memcached, redis};
use crate::site::Site;
use crate::{ALICE, HASH, is_missing, log_in};

/// What is logged of an entry that is not stored.
const NOT_STORED: &str = "error setting key";
/// What is logged of a cache that does not answer.
const NO_ANSWER: &str = "AH01686: Error accessing authentication cache";

/// How long a request may take whose cache does not answer: it asks on an old connection and on a
/// new one, for a second each, and the machine is busy.
const DEADLINE: Duration = Duration::from_secs(10);

/// How many items are sent before their replies are read.
const BATCH: usize = 1000;
/// How long items are, of which one is as long as a user's entry.
const SIZES: Range<usize> = 8..256;

/// A connection to a service.
struct Peer {
    stream: BufReader<TcpStream>,
    /// How many items were stored.
    items: usize,
}

impl Peer {
    fn connect(service: &Service) -> Peer {
        let stream = TcpStream::connect(("127.0.0.1", service.port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Peer { stream: BufReader::new(stream), items: 0 }
    }

    fn send(&mut self, text: &[u8]) {
        self.stream.get_mut().write_all(text).unwrap();
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stream.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// The reply of one line to a command.
    fn ask(&mut self, command: &str) -> String {
        self.send(format!("{command}\r\n").as_bytes());
        self.line()
    }

    /// The number behind a name in the reply to a command, which is the last line to begin so.
    fn number(&mut self, command: &str, name: &str) -> u64 {
        self.send(format!("{command}\r\n").as_bytes());
        loop {
            let line = self.line();
            if let Some(number) = line.strip_prefix(name) {
                return number.trim().parse().unwrap();
            }
        }
    }

    /// Stores items of this size in memcached; whether it has refused one.
    fn store(&mut self, bytes: usize) -> bool {
        let value = "x".repeat(bytes);
        let items = self.items..self.items + BATCH;
        self.items = items.end;
        let text = items.map(|item| format!("set {item} 0 0 {bytes}\r\n{value}\r\n"));
        let text: String = text.collect();
        self.send(text.as_bytes());
        let replies: Vec<_> = (0..BATCH).map(|_| self.line()).collect();
        let is_stored = |reply: &String| reply == "STORED";
        let refused = replies.iter().find(|reply| !is_stored(reply));
        if let Some(reply) = refused {
            assert!(reply.starts_with("SERVER_ERROR out of memory"), "{reply}");
        }
        refused.is_some()
    }

    /// Fills memcached, which drops nothing, with items of all sizes that an entry may have.
    fn fill_up(&mut self) {
        SIZES.step_by(8).for_each(|bytes| while !self.store(bytes) {});
    }
}

/// How often a service has found an entry.
fn hits(service: &Service) -> u64 {
    let mut peer = Peer::connect(service);
    match service.program {
        MEMCACHED => peer.number("stats", "STAT get_hits "),
        _ => peer.number("INFO stats", "keyspace_hits:"),
    }
}

/// Clients log in and ask for another page all the time, while `trouble` happens. All get their
/// response in time.
fn logins_go_on(site: &Site, trouble: impl FnOnce()) {
    /// Ends the clients even if something fails.
    struct End<'e>(&'e AtomicBool);
    impl Drop for End<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let is_over = AtomicBool::new(false);
    let repeat = |what: &str, request: &dyn Fn()| {
        while !is_over.load(Ordering::Relaxed) {
            let begun = Instant::now();
            request();
            let took = begun.elapsed();
            assert!(took < DEADLINE, "{what} took {took:?}");
        }
    };
    scope(|scope| {
        let _end = End(&is_over);
        for _ in 0..3 {
            scope.spawn(|| {
                repeat("a login", &|| assert_eq!(log_in(site, "/kept.html", ALICE), 200));
            });
        }
        scope.spawn(|| repeat("a page", &|| assert_eq!(site.get("/index.html").status, 200)));
        trouble();
    });
}

/// The service is full at first, and then is not, stops, continues, ends and begins again.
fn logins_survive_trouble(
    site: &Site,
    service: Service,
    empty: impl Fn(&Service),
    start: impl Fn(u16) -> Service,
) {
    let wait_for_next = |line: &str, trouble: &dyn Fn()| {
        let before = site.count_lines(line);
        trouble();
        site.wait_until(line, || site.count_lines(line) > before);
    };
    let wait_for_hits = |service: &Service| {
        let before = hits(service);
        site.wait_until("a hit", || hits(service) > before);
    };
    let mut service = Some(service);
    logins_go_on(site, || {
        wait_for_next(NOT_STORED, &|| {});
        let running = service.take().unwrap();
        empty(&running);
        wait_for_hits(&running);
        wait_for_next(NO_ANSWER, &|| running.signal(Signal::SIGSTOP));
        running.signal(Signal::SIGCONT);
        wait_for_hits(&running);
        let port = running.port;
        let before = site.count_lines(NO_ANSWER);
        drop(running);
        site.wait_until("its end", || site.count_lines(NO_ANSWER) > before);
        wait_for_hits(&start(port));
    });
    assert!(!site.error_log().contains(HASH));
}

#[test]
fn logins_survive_trouble_of_memcached() {
    if is_missing("trouble of memcached", MEMCACHED) {
        return;
    }
    let service = memcached(free_port(), 2);
    Peer::connect(&service).fill_up();
    let servers = format!("127.0.0.1:{}", service.port);
    let site = site("trouble", "memcache", &servers, "");
    let empty = |service: &Service| assert_eq!(Peer::connect(service).ask("flush_all"), "OK");
    logins_survive_trouble(&site, service, empty, |port| memcached(port, 64));
}

#[test]
fn logins_survive_trouble_of_redis() {
    if is_missing("trouble of redis", REDIS) {
        return;
    }
    let service = redis(free_port(), "1");
    let servers = format!("127.0.0.1:{}", service.port);
    let site = site("trouble", "redis", &servers, "RedisTimeout 1s\n");
    let empty = |service: &Service| {
        assert_eq!(Peer::connect(service).ask("CONFIG SET maxmemory 64mb"), "+OK");
    };
    logins_survive_trouble(&site, service, empty, |port| redis(port, "64mb"));
}

/// With `-M`, what memcached has no room for costs a question to the provider, and a line.
#[test]
fn a_full_memcached_costs_nothing_but_a_line() {
    if is_missing("a full memcached", MEMCACHED) {
        return;
    }
    let service = memcached(free_port(), 2);
    Peer::connect(&service).fill_up();
    let site = site("full", "memcache", &format!("127.0.0.1:{}", service.port), "");
    for _ in 0..5 {
        assert_eq!(log_in(&site, "/kept.html", ALICE), 200);
    }
    remove_user(&site);
    assert_eq!(log_in(&site, "/kept.html", ALICE), 401);
    let log = site.error_log();
    let refusal = "33 bytes of data: SERVER_ERROR out of memory storing object";
    assert!(log.contains("AH00790: scache_mc: error setting key"), "{log}");
    assert!(log.contains(refusal), "{log}");
    assert!(log.contains("AH01682: Failed to cache authn credentials"), "{log}");
    assert!(!log.contains(NO_ANSWER), "it answers: {log}");
    assert!(!log.contains(HASH), "{log}");
    // It is asked again at once.
    assert_eq!(Peer::connect(&service).ask("flush_all"), "OK");
    add_user(&site);
    users_are_kept(&site);
}

/// Without `-M` it drops the oldest entries: the provider is asked again.
#[test]
fn memcached_drops_entries() {
    if is_missing("memcached that drops entries", MEMCACHED) {
        return;
    }
    let service = evicting_memcached(free_port(), 2);
    let site = site("evicting", "memcache", &format!("127.0.0.1:{}", service.port), "");
    users_are_kept(&site);
    let mut peer = Peer::connect(&service);
    site.wait_until("the entry is dropped", || {
        for bytes in SIZES.step_by(8) {
            for _ in 0..10 {
                peer.store(bytes);
            }
        }
        log_in(&site, "/kept.html", ALICE) == 401
    });
    assert!(Peer::connect(&service).number("stats", "STAT evictions ") > 0);
    add_user(&site);
    users_are_kept(&site);
    assert!(!site.error_log().contains(NOT_STORED));
}
