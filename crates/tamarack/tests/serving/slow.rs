//! Slow clients.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use crate::client::PATIENCE;
use crate::site::Site;

/// Attempts, since a busy machine may be slow at times.
const TRIES: usize = 5;
/// The least number of responses for another client beside those that do not read.
const SERVED_LEAST: usize = 40;

#[test]
fn a_client_that_sends_byte_by_byte_is_answered() {
    let mut site = Site::new("slow");
    site.start();
    let mut slow = site.client();
    let mut other = site.client();
    for byte in b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" {
        slow.send(&[*byte]).unwrap();
        thread::sleep(Duration::from_millis(20));
        assert_eq!(other.get("/").unwrap().status, 200);
    }
    assert_eq!(slow.answer().unwrap().status, 200);
}

#[test]
fn a_client_that_is_too_slow_is_told_so() {
    let mut site = Site::new("too-slow");
    site.configure("LogLevel info\nRequestReadTimeout header=4\n");
    site.start();
    let mut failures = Vec::new();
    while let Err(error) = are_told_that_they_are_slow(&site) {
        failures.push(error);
        assert!(failures.len() < TRIES, "{failures:?}");
    }
    site.wait_for_line("Request header read timeout");
    site.assert_serves();
}

/// Clients that are too slow, and one that is not. Also an error if the machine delayed them for
/// longer than their timeout.
fn are_told_that_they_are_slow(site: &Site) -> io::Result<()> {
    let began = Instant::now();
    let mut slow: Vec<_> = (0..20).map(|_| site.client()).collect();
    let mut silent = site.client();
    silent.send(b"GET /")?;
    let mut other = site.client();
    for client in &mut slow {
        client.send(b"GET / HTTP/1.1\r\n")?;
    }
    for byte in b"Accept: " {
        for client in &mut slow {
            let _ = client.send(&[*byte]);
        }
        thread::sleep(Duration::from_millis(250));
        assert_eq!(other.get("/")?.status, 200);
    }
    for client in &mut slow {
        assert_eq!(client.answer()?.status, 408);
    }
    // As in Apache, a client that has sent nothing gets no response.
    if !silent.is_closed() {
        return Err(io::Error::other("the silent one is not closed, or was told something"));
    }
    match began.elapsed() < PATIENCE {
        true => Ok(()),
        false => Err(io::ErrorKind::TimedOut.into()),
    }
}

#[test]
fn a_client_that_does_not_read_holds_nobody_up() {
    let mut site = Site::new("no-reader");
    let file = std::fs::File::create(site.path("htdocs/large")).unwrap();
    file.set_len(64 * 1024 * 1024).unwrap();
    site.configure("Timeout 2\n");
    site.start();
    let mut deaf: Vec<_> = (0..10).map(|_| site.client()).collect();
    for client in &mut deaf {
        client.ask("/large").unwrap();
    }
    let end = Instant::now() + Duration::from_secs(4);
    let mut other = site.client();
    // Timeout applies to its first request as well.
    site.wait_until("another client is served", || {
        let is_served = other.get("/").is_ok_and(|answer| answer.status == 200);
        if !is_served {
            other = site.client();
        }
        is_served
    });
    let mut waits = Vec::new();
    while Instant::now() < end || waits.len() < SERVED_LEAST {
        let began = Instant::now();
        assert_eq!(other.get("/").unwrap().status, 200);
        waits.push(began.elapsed());
        thread::sleep(Duration::from_millis(50));
    }
    // Most of them: a busy machine may delay some.
    waits.sort_unstable();
    assert!(waits[waits.len() / 2] < Duration::from_millis(500), "{waits:?}");
    // After Timeout, queued data arrives, followed by the end.
    for client in &mut deaf {
        let cut = client.answer();
        assert!(cut.is_err(), "{cut:?}");
    }
    site.assert_serves();
}
