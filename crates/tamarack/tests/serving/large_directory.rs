//! A directory of 100,000 names: requests for names that are not in it do not delay others, while
//! it is listed and while it changes.

use std::fs::{self, File};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::scope;
use std::time::{Duration, Instant};

use crate::shapes::start;
use crate::site::Site;

/// Names in the directory.
const NAMES: usize = 100_000;
/// Requests for names that are not in it: a listing takes one for about a thousand names.
const REQUESTS: usize = 300;
/// A name appears after so many of them.
const CHANGE_AFTER: usize = 60;
/// The slowest response to others, unless it is as slow without the directory.
const SLOWEST: Duration = Duration::from_millis(20);
/// Attempts, if another program delayed the server.
const TRIES: usize = 5;

/// The slowest response to a client on the same loop, while another client asks for names that are
/// not in `folder`, of which no two are alike.
fn slowest_beside(site: &Site, folder: &str, round: usize) -> Duration {
    let is_over = AtomicBool::new(false);
    scope(|scope| {
        let other = scope.spawn(|| {
            let mut client = site.client();
            let mut slowest = Duration::ZERO;
            while !is_over.load(Ordering::Relaxed) {
                let began = Instant::now();
                assert_eq!(client.get("/index.html").unwrap().status, 200);
                slowest = slowest.max(began.elapsed());
            }
            slowest
        });
        let mut client = site.client();
        for number in 0..REQUESTS {
            if number % CHANGE_AFTER == 0 {
                let name = format!("htdocs/{folder}/new-{round}-{number}");
                File::create(site.path(&name)).unwrap();
            }
            let path = format!("/{folder}/unknown-{round}-{number}");
            assert_eq!(client.get(&path).unwrap().status, 404);
        }
        is_over.store(true, Ordering::Relaxed);
        other.join().unwrap()
    })
}

#[test]
fn a_directory_of_100_000_names_delays_no_others() {
    let site = start("large-directory", "loop", "");
    site.write("htdocs/index.html", "a page\n");
    for folder in ["small", "large"] {
        fs::create_dir(site.path(&format!("htdocs/{folder}"))).unwrap();
    }
    let large = site.path("htdocs/large");
    (0..NAMES).for_each(|number| drop(File::create(large.join(number.to_string())).unwrap()));
    let mut all = Vec::new();
    for round in 0..TRIES {
        let without = slowest_beside(&site, "small", round);
        let beside = slowest_beside(&site, "large", round);
        if beside < SLOWEST.max(without * 2) {
            return;
        }
        all.push((beside, without));
    }
    panic!("{all:?}");
}
