//! Pages that mod_include parses, and that are very long.

use std::fs::File;

use crate::memory::Memory;
use crate::others::assert_serves_others;
use crate::shapes::start;

/// The longest page that is parsed, in bytes.
const PAGE_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Most additional memory of the process: the page, as it is read and as a vector that grows.
const MEMORY_MAX_KB: u64 = 256 << 10;

#[test]
fn a_page_that_is_too_long_is_not_sent() {
    let site = start(
        "long-pages",
        "event",
        "StartServers 1\nServerLimit 1\nLoadModule include_module x\n\
         <Directory />\nOptions +Includes\nSetOutputFilter INCLUDES\n</Directory>\n",
    );
    let make = |name: &str, length| {
        File::create(site.path(&format!("htdocs/{name}"))).unwrap().set_len(length).unwrap();
    };
    make("long", PAGE_BYTES_MAX);
    make("too-long", PAGE_BYTES_MAX + 1);
    let memory = Memory::of(&site);
    assert_serves_others(&site, || assert_eq!(site.get("/too-long").status, 500));
    site.wait_for_line("AH20203");
    let long = site.get("/long");
    assert_eq!((long.status, long.body.len() as u64), (200, PAGE_BYTES_MAX));
    memory.assert_peak_below(&site, MEMORY_MAX_KB);
}
