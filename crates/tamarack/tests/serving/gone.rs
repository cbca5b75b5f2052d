//! Clients that disconnect early.

use std::time::{Duration, Instant};

use crate::site::Site;

/// The server's lingering close (SECONDS_TO_LINGER).
const LINGER: Duration = Duration::from_secs(2);
/// Attempts, since a busy machine may be slow at times.
const TRIES: usize = 5;

#[test]
fn what_a_client_left_is_not_seen_by_the_next() {
    let mut site = Site::new("gone");
    site.write("htdocs/one.txt", "one");
    site.write("htdocs/two.txt", "two");
    site.start();
    for _ in 0..4 {
        assert_eq!(site.client().get("/one.txt").unwrap().text(), "one");
    }
    for _ in 0..20 {
        let mut gone = site.client();
        gone.send(&b"GET /one.txt HTTP/1.1\r\nHost: gone\r\n\r\n".repeat(300)).unwrap();
        // Unread responses make the kernel send a reset.
        drop(gone);
    }
    for _ in 0..20 {
        assert_eq!(site.client().get("/two.txt").unwrap().text(), "two");
    }
}

#[test]
fn a_client_that_does_not_close_keeps_no_process_from_the_next() {
    const ASK: &[u8] = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let mut site = Site::new("seen-off");
    let modules = ["dir", "authz_core", "mpm_prefork"]
        .map(|name| format!("LoadModule {name}_module modules/mod_{name}.so\n"));
    let one = "StartServers 1\nServerLimit 1\nMaxRequestWorkers 1\nMinSpareServers 1\n\
               MaxSpareServers 1\n";
    site.configure(&(modules.concat() + one));
    site.start();
    let seen_off = || {
        let mut slow = site.client();
        slow.send(ASK).unwrap();
        assert_eq!(slow.answer().unwrap().status, 200);
        assert!(slow.is_closed(), "all has been sent");
        slow
    };
    let is_fast = (0..TRIES).any(|_| {
        let _slow = seen_off();
        let begin = Instant::now();
        let mut next = site.client();
        next.send(ASK).unwrap();
        assert_eq!(next.answer().unwrap().status, 200);
        begin.elapsed() < LINGER
    });
    assert!(is_fast, "the process waited for the first client");
    // It is closed when its time is over, even without further connections.
    let mut slow = seen_off();
    std::thread::sleep(LINGER + Duration::from_secs(1));
    site.wait_until("the end of the slow one", || slow.send(b"GET").is_err());
}
