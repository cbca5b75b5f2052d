//! Requests that are forwarded to another server: its connections, large bodies, failures.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use crate::backend::Backend;
use crate::client::Client;
use crate::is_long;
use crate::load::SetWhenDropped;
use crate::memory::Memory;
use crate::shapes::{start, started};
use crate::site::Site;
use crate::system_calls::{assert_at_most, calls_of, quiet_site, wakes};

/// Bytes of a large body.
const LARGE: usize = 20_000_000;
/// Bytes of a huge one.
const HUGE: usize = 1 << 30;
/// The same without long tests.
const HUGE_SHORT: usize = 24 << 20;
/// How much memory it may take, KiB.
const HUGE_KB_MAX: usize = 1024;

fn site(mpm: &str, backend: &Backend, parameters: &str) -> Site {
    forwarding(Site::new("proxied"), mpm, backend, parameters)
}

fn forwarding(site: Site, mpm: &str, backend: &Backend, parameters: &str) -> Site {
    let port = backend.port;
    let more = format!(
        "StartServers 1\nServerLimit 1\nLoadModule proxy_module modules/mod_proxy.so\n\
         LoadModule proxy_http_module modules/mod_proxy_http.so\n\
         ProxyPass /b/ http://127.0.0.1:{port}/ {parameters}\n"
    );
    started(site, mpm, &more)
}

fn post(client: &mut Client, path: &str, fields: &str, body: &[u8]) -> crate::client::Answer {
    let head = format!("POST {path} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n");
    client.send(head.as_bytes()).unwrap();
    client.send(body).unwrap();
    client.answer().unwrap()
}

#[test]
fn a_connection_serves_one_request_after_the_other() {
    for mpm in ["event", "worker", "prefork"] {
        let backend = Backend::start();
        let site = site(mpm, &backend, "");
        let mut client = site.client();
        for number in 1..=5 {
            let answer = client.get("/b/some").unwrap();
            assert_eq!(answer.text(), format!("request {number}\n"), "{mpm}");
            assert_eq!(answer.field("Server"), Some("back"));
        }
        assert_eq!(backend.accepted(), 1, "{mpm}");
    }
}

#[test]
fn without_reuse_each_request_has_its_connection() {
    let backend = Backend::start();
    let site = site("event", &backend, "disablereuse=on");
    let mut client = site.client();
    let answer = client.get("/b/head").unwrap();
    assert!(answer.text().contains("Connection: close\r\n"), "{answer:?}");
    client.get("/b/some").unwrap();
    assert_eq!(backend.accepted(), 2);
    site.wait_until("no connection", || backend.open() == 0);
}

/// Two to receive, two to send, two waits, and one look at the file watch.
#[test]
fn a_request_costs_seven_system_calls() {
    let backend = Backend::start();
    let site = forwarding(quiet_site("proxied"), "event", &backend, "");
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
    let took = begun.elapsed();
    let of = |names: &[&str]| -> usize { names.iter().filter_map(|name| calls.get(*name)).sum() };
    // A timer of the loop may add a few.
    let most = 2 * count + count / 10;
    assert!(of(&["recvfrom"]) <= most, "{calls:?}");
    assert!(of(&["sendto", "sendmsg", "writev"]) <= most, "{calls:?}");
    let waits = of(&["epoll_wait", "epoll_pwait", "epoll_pwait2"]);
    assert!(waits <= most + wakes(took), "{took:?}: {calls:?}");
    assert_at_most(7, count, &calls, took);
}

#[test]
fn a_request_that_may_be_repeated_survives_the_end_of_a_kept_connection() {
    let backend = Backend::start();
    let site = site("event", &backend, "");
    let mut client = site.client();
    assert_eq!(client.get("/b/dies-reused").unwrap().status, 200);
    assert_eq!(client.get("/b/dies-reused").unwrap().status, 200);
    assert_eq!(backend.accepted(), 2);
    // A POST may have had an effect.
    let answer = post(&mut client, "/b/dies-reused", "Content-Length: 1\r\n", b"x");
    assert_eq!(answer.status, 502, "{answer:?}");
    // A new connection that ends is a failure at once.
    assert_eq!(client.get("/b/dies").unwrap().status, 502);
    assert_eq!(client.get("/b/some").unwrap().status, 200);
}

#[test]
fn large_bodies_pass_in_both_directions() {
    for mpm in ["event", "prefork"] {
        let backend = Backend::start();
        let site = site(mpm, &backend, "");
        let mut client = site.client();
        let body: Vec<u8> = (0..LARGE).map(|at| (at * 7 + at / 256) as u8).collect();
        let fields = format!("Content-Length: {LARGE}\r\n");
        let answer = post(&mut client, "/b/echo", &fields, &body);
        assert!(answer.body == body, "{mpm}: {}", answer.body.len());
        let mut chunked = Vec::new();
        for piece in body.chunks(100_000) {
            chunked.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
            chunked.extend_from_slice(piece);
            chunked.extend_from_slice(b"\r\n");
        }
        chunked.extend_from_slice(b"0\r\n\r\n");
        let answer = post(&mut client, "/b/echo", "Transfer-Encoding: chunked\r\n", &chunked);
        assert!(answer.body == body, "{mpm}: {}", answer.body.len());
    }
}

/// Sends a body of this length, and receives one.
fn exchange(client: &mut Client, length: usize) {
    let head =
        format!("POST /b/sink HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n");
    client.send(head.as_bytes()).unwrap();
    let piece = vec![b'y'; 256 * 1024];
    let mut left = length;
    while left > 0 {
        let count = left.min(piece.len());
        client.send(&piece[..count]).unwrap();
        left -= count;
    }
    assert_eq!(client.answer().unwrap().text(), length.to_string());
    client.ask(&format!("/b/stream-{length}")).unwrap();
    assert_eq!(client.head().unwrap().status, 200);
    while left < length {
        left += client.take((length - left).min(piece.len())).unwrap().len();
    }
}

#[test]
fn a_huge_body_costs_no_memory() {
    let length = if is_long() { HUGE } else { HUGE_SHORT };
    for mpm in ["event", "worker", "prefork"] {
        let backend = Backend::start();
        let site = site(mpm, &backend, "");
        let mut client = site.client();
        // Warms up pools.
        exchange(&mut client, HUGE_KB_MAX * 1024);
        let memory = Memory::of(&site);
        exchange(&mut client, length);
        memory.assert_peak_below(&site, HUGE_KB_MAX as u64);
    }
}

#[test]
fn a_body_whose_length_must_be_known_is_spooled() {
    let backend = Backend::start();
    let port = backend.port;
    let more = format!(
        "LoadModule proxy_module modules/mod_proxy.so\n\
         LoadModule proxy_http_module modules/mod_proxy_http.so\n\
         LoadModule env_module modules/mod_env.so\nSetEnv proxy-sendcl 1\n\
         ProxyPass /b/ http://127.0.0.1:{port}/\n"
    );
    let site = start("spooled", "event", &more);
    let mut client = site.client();
    let body = vec![b'y'; 300_000];
    let mut chunked = format!("{:x}\r\n", body.len()).into_bytes();
    chunked.extend_from_slice(&body);
    chunked.extend_from_slice(b"\r\n0\r\n\r\n");
    let answer = post(&mut client, "/b/head", "Transfer-Encoding: chunked\r\n", &chunked);
    assert!(answer.text().contains("Content-Length: 300000\r\n"), "{answer:?}");
    let answer = post(&mut client, "/b/echo", "Transfer-Encoding: chunked\r\n", &chunked);
    assert!(answer.body == body, "{}", answer.body.len());
}

#[test]
fn events_reach_the_client_one_by_one() {
    let backend = Backend::start();
    let site = site("event", &backend, "");
    let mut client = site.client();
    client.ask("/b/events").unwrap();
    let head = client.head().unwrap();
    assert_eq!(head.field("Transfer-Encoding"), Some("chunked"));
    for number in 1..=3 {
        // The next one is not made before this one has arrived.
        client.wait_for_bytes(number * "9\r\nevent 0\n\n\r\n".len()).unwrap();
        backend.step();
    }
    client.wait_for_bytes(3 * 14 + 5).unwrap();
    drop(client);
    assert_eq!(site.client().get("/b/some").unwrap().status, 200);
}

#[test]
fn a_response_that_breaks_off_closes_the_connection() {
    let backend = Backend::start();
    let site = site("event", &backend, "");
    for path in ["/b/breaks", "/b/breaks-chunked"] {
        let mut client = site.client();
        client.ask(path).unwrap();
        assert_eq!(client.head().unwrap().status, 200);
        let read = client.wait_for_bytes(100).unwrap_err();
        assert_eq!(read.kind(), std::io::ErrorKind::UnexpectedEof, "{path}");
    }
    site.wait_for_line("AH01110");
}

#[test]
fn a_client_that_goes_away_takes_its_backend_connection_along() {
    let backend = Backend::start();
    let site = site("event", &backend, "max=1");
    let mut client = site.client();
    client.ask(&format!("/b/{LARGE}")).unwrap();
    client.wait_for_bytes(100_000).unwrap();
    drop(client);
    site.wait_until("no connection", || backend.open() == 0);
    // Its place is free again.
    assert_eq!(site.client().get("/b/some").unwrap().status, 200);
}

#[test]
fn a_client_that_does_not_read_gets_everything_later() {
    let backend = Backend::start();
    let site = site("event", &backend, "");
    let mut slow = site.client();
    slow.ask(&format!("/b/{LARGE}")).unwrap();
    site.wait_until("the request", || backend.requests() == 1);
    for _ in 0..20 {
        assert_eq!(site.client().get("/b/some").unwrap().status, 200);
    }
    assert_eq!(slow.answer().unwrap().body.len(), LARGE);
}

#[test]
fn a_kept_connection_is_closed_after_its_ttl() {
    let backend = Backend::start();
    let site = site("event", &backend, "ttl=1");
    assert_eq!(site.client().get("/b/some").unwrap().status, 200);
    assert_eq!(backend.open(), 1);
    site.wait_until("no connection", || backend.open() == 0);
}

#[test]
fn at_max_requests_wait_for_a_connection() {
    let backend = Backend::start();
    let site = site("event", &backend, "max=1 acquire=200");
    let mut first = site.client();
    first.ask("/b/waits").unwrap();
    site.wait_until("the request", || backend.requests() == 1);
    assert_eq!(site.client().get("/b/some").unwrap().status, 503);
    site.wait_for_line("AH00941");
    backend.step();
    assert_eq!(first.answer().unwrap().text(), "waited");
    assert_eq!(backend.accepted(), 1);
}

#[test]
fn a_graceful_restart_fails_no_request() {
    let backend = Backend::start();
    let site = site("event", &backend, "");
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let mut served = 0;
                    while !is_over.load(Ordering::SeqCst) {
                        let mut client = site.client();
                        // The server may close it between two requests.
                        let answer = client.get("/b/1000").unwrap();
                        assert_eq!((answer.status, answer.body.len()), (200, 1000));
                        served += 1;
                    }
                    served
                })
            })
            .collect();
        let over = SetWhenDropped(&is_over);
        for _ in 0..3 {
            site.restart_gracefully();
        }
        drop(over);
        for thread in threads {
            assert!(thread.join().unwrap() > 0);
        }
    });
}
