//! Digests of files that are too large to be hashed on a loop.

use std::fs::File;

use crate::memory::Memory;
use crate::others::assert_serves_others;
use crate::site::Site;

/// A sparse file, which has no blocks and is read at the speed of memory.
const LARGE_BYTES: u64 = 4 << 30;
/// Most additional memory of the process: a few slices, not the file.
const MEMORY_MAX_KB: u64 = 64 << 10;

fn hashing_holds_up_no_others(name: &str, lines: &str) {
    let mut site = Site::new(name);
    site.configure(&format!("StartServers 1\nServerLimit 1\nLoopStallTimeout 5\n{lines}"));
    for number in 0..3 {
        let file = File::create(site.path(&format!("htdocs/large{number}"))).unwrap();
        file.set_len(LARGE_BYTES).unwrap();
        let day = std::time::Duration::from_secs(86400);
        file.set_modified(std::time::SystemTime::now() - day).unwrap();
    }
    site.start();
    let children = site.children();
    let memory = Memory::of(&site);
    let mut askers: Vec<_> = (0..6).map(|_| site.client()).collect();
    for (number, asker) in askers.iter_mut().enumerate() {
        let path = format!("/large{}", number % 3);
        let head = format!("HEAD {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        asker.send(head.as_bytes()).unwrap();
    }
    assert_serves_others(&site, || std::thread::sleep(std::time::Duration::from_millis(5)));
    memory.assert_peak_below(&site, MEMORY_MAX_KB);
    assert_eq!(site.children(), children, "{}", site.error_log());
    site.assert_serves();
}

#[test]
fn an_etag_of_a_large_files_digest_holds_up_no_others() {
    hashing_holds_up_no_others("etag", "FileETag Digest\n");
}

#[test]
fn content_md5_of_a_large_file_holds_up_no_others() {
    hashing_holds_up_no_others("md5", "ContentDigest On\n");
}

#[test]
fn digests_that_are_remembered_follow_the_file() {
    let mut site = Site::new("remembered");
    site.configure("FileETag Digest\nContentDigest On\n");
    site.write("htdocs/page", "one\n");
    site.start();
    let tag = |text: &str| {
        site.write("htdocs/page", text);
        let mut last = String::new();
        // The digest is cached once the file has not changed for a second.
        for wait_ms in [0, 1500, 0] {
            std::thread::sleep(std::time::Duration::from_millis(wait_ms));
            let response = site.get("/page?");
            let own = response.field("ETag").unwrap().to_owned();
            assert_eq!(response.body, text.as_bytes());
            assert!(last.is_empty() || last == own, "{last} {own}");
            last = own;
        }
        last
    };
    let two = tag("two\n");
    assert_ne!(two, tag("six\n"));
    assert_eq!(two, tag("two\n"));
}
