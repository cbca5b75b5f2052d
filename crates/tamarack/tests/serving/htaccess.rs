//! An `.htaccess` that is large, constantly rewritten, and dated in the future, so that it never
//! counts as settled.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use crate::memory::resident_kb;
use crate::others::assert_serves_others;
use crate::site::Site;

/// The approximate length of the file in bytes.
const FILE_BYTES: usize = 880 * 1024;
/// Most growth of the server in KiB: the loops' caches, files that the pool's threads are parsing,
/// and memory that the allocator retains.
const GROWTH_MAX_KB: u64 = 192 << 10;
/// The number of requests for one that stays.
const REQUESTS: usize = 300;
/// How often it is written and asked for: a parsed one takes more than 10 MiB, so that all of them
/// would take more than the growth allowed.
const WRITES: usize = 30;

/// A text of [`FILE_BYTES`] that differs for each number.
fn text(number: usize) -> String {
    let line = "RedirectMatch 404 ^/no/such/place/at/all\n";
    format!("Header set X-Number {number}\n") + &line.repeat(FILE_BYTES / line.len())
}

/// Writes it atomically, with a time that is a year ahead.
fn write(site: &Site, number: usize) {
    let (new, name) = (site.path("new"), site.path("htdocs/folder/.htaccess"));
    fs::write(&new, text(number)).unwrap();
    let ahead = SystemTime::now() + Duration::from_secs(365 * 24 * 3600);
    fs::File::options().write(true).open(&new).unwrap().set_modified(ahead).unwrap();
    fs::rename(new, name).unwrap();
}

fn start(name: &str) -> Site {
    let mut site = Site::new(name);
    fs::create_dir(site.path("htdocs/folder")).unwrap();
    site.write("htdocs/folder/a.txt", "a\n");
    write(&site, 0);
    site.start();
    site
}

#[test]
fn one_from_the_future_holds_up_no_others() {
    let site = start("future");
    let number = AtomicUsize::new(0);
    assert_serves_others(&site, || {
        // A different target each time: the response for a known target is cached.
        let number = number.fetch_add(1, Ordering::Relaxed);
        assert_eq!(site.get(&format!("/folder/a.txt?{number}")).status, 200);
    });
}

#[test]
fn one_that_is_written_all_the_time_holds_up_no_others() {
    let site = start("written");
    let number = AtomicUsize::new(0);
    assert_serves_others(&site, || {
        let number = number.fetch_add(1, Ordering::Relaxed) + 1;
        write(&site, number);
        let answer = site.get("/folder/a.txt");
        assert_eq!(answer.field("X-Number"), Some(number.to_string().as_str()));
    });
}

#[test]
fn memory_has_a_bound_however_often_it_is_asked_or_written() {
    let mut site = start("bound");
    assert_eq!(site.get("/folder/a.txt").status, 200);
    let before = resident_kb(&site);
    for request in 0..REQUESTS {
        let answer = site.get(&format!("/folder/a.txt?unchanged{request}"));
        assert_eq!(answer.field("X-Number"), Some("0"));
    }
    for number in 1..=WRITES {
        write(&site, number);
        // Each target refers to the configuration of its response.
        let answer = site.get(&format!("/folder/a.txt?{number}"));
        assert_eq!(answer.field("X-Number"), Some(number.to_string().as_str()));
    }
    let growth = resident_kb(&site).saturating_sub(before);
    assert!(growth <= GROWTH_MAX_KB, "{growth} KiB");
    site.assert_serves();
}

/// Short patterns that take 32 KB each: together more than one file may take.
#[test]
fn one_that_takes_too_much_memory_is_an_error_with_its_line() {
    const PATTERNS: usize = 14_000;
    let mut site = Site::new("patterns");
    site.configure(
        &["alias", "authz_core", "dir"]
            .map(|name| format!("LoadModule {name}_module x\n"))
            .concat(),
    );
    fs::create_dir(site.path("htdocs/folder")).unwrap();
    site.write("htdocs/folder/a.txt", "a\n");
    let line = |number| format!("RedirectMatch 404 \"^(ab|c){{1,999}}{number}$\"\n");
    let lines: String = (0..PATTERNS).map(line).collect();
    site.write("htdocs/folder/.htaccess", &lines);
    site.start();
    assert_eq!(site.get("/folder/a.txt").status, 500);
    let text = "takes too much memory; this line and the rest are ignored (line ";
    assert_eq!(site.count_lines(text), 1, "{}", site.error_log());
    site.assert_serves();
}
