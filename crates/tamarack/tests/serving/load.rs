//! Many clients at once.

use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use nix::unistd::Pid;

use crate::client::{Client, PATIENCE};
use crate::site::Site;

/// Most failures that are shown.
const REASONS_MAX: usize = 5;

/// The outcome of the clients of [`under_load`].
#[derive(Default)]
pub struct Seen {
    pub answers: AtomicU64,
    pub failures: AtomicU64,
    /// The first failures.
    reasons: Mutex<Vec<String>>,
}

impl Seen {
    fn failed(&self, reason: String) {
        self.failures.fetch_add(1, Ordering::Relaxed);
        let mut reasons = self.reasons.lock().unwrap();
        if reasons.len() < REASONS_MAX {
            reasons.push(reason);
        }
    }

    /// Asserts that requests were answered, and none failed.
    pub fn assert_all_answered(&self, site: &Site) {
        let reasons = self.reasons.lock().unwrap();
        assert!(reasons.is_empty(), "{reasons:#?}\n{}", site.error_log());
        assert!(self.answers.load(Ordering::Relaxed) > 0);
    }
}

/// Runs `what` while clients send requests over keep-alive connections, each as soon as it has its
/// response. A connection that the server closes after a response is opened again; every other end
/// is a failure.
pub fn under_load(site: &Site, connections: usize, what: impl FnOnce()) -> Seen {
    under_load_by(site, connections, Client::connect, |_| what())
}

/// The same for another kind of client. The outcome so far is available meanwhile.
pub fn under_load_by(
    site: &Site,
    connections: usize,
    connect: impl Fn(u16) -> io::Result<Client> + Sync,
    what: impl FnOnce(&Seen),
) -> Seen {
    let seen = Seen::default();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        // Even if `what` panics: the scope would wait for the clients forever.
        let _end = SetWhenDropped(&is_over);
        for _ in 0..connections {
            scope.spawn(|| ask_until(site.port, &connect, &seen, &is_over));
        }
        let is_any = |count: &AtomicU64| count.load(Ordering::Relaxed) > 0;
        site.wait_until("load", || is_any(&seen.answers) || is_any(&seen.failures));
        what(&seen);
    });
    seen
}

/// Ends concurrent work, even if a test fails meanwhile.
pub struct SetWhenDropped<'a>(pub &'a AtomicBool);

impl Drop for SetWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn ask_until(
    port: u16,
    connect: impl Fn(u16) -> io::Result<Client>,
    seen: &Seen,
    is_over: &AtomicBool,
) {
    let mut client = None;
    while !is_over.load(Ordering::Relaxed) {
        let mut held = match client.take() {
            Some(held) => held,
            None => match connect(port) {
                Ok(new) => new,
                Err(error) => {
                    seen.failed(format!("connect: {error}"));
                    continue;
                }
            },
        };
        match held.get("/") {
            Ok(answer) if answer.status == 200 && answer.text() == "hello\n" => {
                seen.answers.fetch_add(1, Ordering::Relaxed);
                client = (!answer.closes()).then_some(held);
            }
            other => seen.failed(format!("{other:?}")),
        }
        // Leaves the CPUs to the server: what fails does so at the change, however few requests.
        thread::sleep(Duration::from_millis(10));
    }
}

/// `count` clients connect at once, and send a request on a connection each. Returns the failures.
pub fn at_once(port: u16, count: usize) -> Vec<String> {
    let ask = || {
        let answer = Client::connect(port).and_then(|mut client| {
            // If the only process has died, its successor comes when the kernel has reaped it.
            client.give_up_after(3 * PATIENCE);
            client.get("/")
        });
        match answer {
            Ok(answer) if answer.status == 200 => None,
            other => Some(format!("{other:?}")),
        }
    };
    thread::scope(|scope| {
        let clients: Vec<_> = (0..count).map(|_| scope.spawn(ask)).collect();
        clients.into_iter().filter_map(|client| client.join().unwrap()).collect()
    })
}

/// Waits until children of the old generation have ended, which accept for a moment longer.
pub fn wait_for_their_end(site: &Site, old: &[Pid]) {
    let have_gone = || site.children().iter().all(|child| !old.contains(child));
    site.wait_until("the old children have gone", have_gone);
}
