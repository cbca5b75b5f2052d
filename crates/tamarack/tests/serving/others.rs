//! The delay of other clients during one client's or document's worst behaviour.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};

use crate::site::Site;

/// Clients that send requests meanwhile, each on its own connection.
const CLIENTS: usize = 16;
/// The shortest time of measurement; a longer fault is measured to its end.
const MEASURED: Duration = Duration::from_secs(2);
/// The pause between a client's requests, which are not meant to cause load: far less than
/// [`SLOWEST`], so that none of the clients misses a time in which the server is stalled.
const PAUSE: Duration = Duration::from_millis(20);
/// The limit for the slowest response, or [`TIMES`] the slowest without the fault.
const SLOWEST: Duration = Duration::from_millis(100);
const TIMES: u32 = 2;
/// Attempts: a busy machine may stall for longer at times, but not each time.
const TRIES: usize = 5;
/// The CPU time of the work by which [`slowness`] measures, and how often it does.
const WORK: Duration = Duration::from_millis(20);
const WORKS: usize = 5;

/// Asserts that the server serves others while `fault` runs repeatedly: the slowest response to one
/// of [`CLIENTS`] clients arrives within [`SLOWEST`], or if that is longer within [`TIMES`] the
/// slowest without the fault. Where other programs take CPU time, what takes less than [`SLOWEST`]
/// takes as many times longer.
pub fn assert_serves_others(site: &Site, mut fault: impl FnMut()) {
    let mut seen = Vec::new();
    while seen.len() < TRIES {
        let without = slowest_response(site, || thread::sleep(PAUSE));
        let with = slowest_response(site, &mut fault);
        if with <= SLOWEST.max(TIMES * without) {
            return;
        }
        let slowness = slowness();
        if with <= SLOWEST.mul_f64(slowness) {
            return;
        }
        seen.push((without, with, slowness));
    }
    panic!(
        "the slowest responses without the fault and with it, and how slow the machine is: \
         {seen:?}\n{}",
        site.error_log()
    );
}

/// How many times longer work takes now than its CPU time: 1 on a machine that does nothing else.
fn slowness() -> f64 {
    let used = || Duration::from(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap());
    let mut all: Vec<f64> = (0..WORKS)
        .map(|_| {
            let (began, before) = (Instant::now(), used());
            while used() - before < WORK {}
            began.elapsed().as_secs_f64() / WORK.as_secs_f64()
        })
        .collect();
    all.sort_by(f64::total_cmp);
    all[WORKS / 2]
}

/// The slowest response while `meanwhile` runs, repeatedly until enough has been measured.
pub fn slowest_response(site: &Site, mut meanwhile: impl FnMut()) -> Duration {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        // Even if `meanwhile` panics: the scope would wait for the clients forever.
        let over = Over(&is_over);
        let ask = || slowest_of_one(site, &is_over);
        let clients: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(ask)).collect();
        let end = Instant::now() + MEASURED;
        while Instant::now() < end {
            meanwhile();
        }
        drop(over);
        clients.into_iter().map(|client| client.join().unwrap()).max().unwrap()
    })
}

fn slowest_of_one(site: &Site, is_over: &AtomicBool) -> Duration {
    let mut client = site.client();
    let mut slowest = Duration::ZERO;
    loop {
        let began = Instant::now();
        assert_eq!(client.get("/").unwrap().status, 200);
        slowest = slowest.max(began.elapsed());
        if is_over.load(Ordering::Relaxed) {
            return slowest;
        }
        thread::sleep(PAUSE);
    }
}

struct Over<'f>(&'f AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_server_that_holds_others_up_is_noticed() {
    use nix::sys::signal::{Signal, kill};
    const HELD: Duration = Duration::from_millis(300);
    let mut site = Site::new("held");
    site.start();
    let slowest = slowest_response(&site, || {
        let children = site.children();
        children.iter().for_each(|pid| kill(*pid, Signal::SIGSTOP).unwrap());
        thread::sleep(HELD);
        children.iter().for_each(|pid| kill(*pid, Signal::SIGCONT).unwrap());
        thread::sleep(PAUSE);
    });
    // A client may have sent its request shortly before.
    assert!(slowest >= HELD / 2, "{slowest:?}");
    site.assert_serves();
}

#[test]
fn a_client_that_asks_for_what_is_not_there_holds_up_no_others() {
    let mut site = Site::new("not-there");
    site.start();
    assert_serves_others(&site, || assert_eq!(site.get("/not-there").status, 404));
    site.assert_serves();
}
