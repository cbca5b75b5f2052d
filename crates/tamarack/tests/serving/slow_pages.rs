//! Pages of mod_include whose programs take their time: the client gets what there is, in bounded
//! memory, and programs run one after the other.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;

use crate::client::PATIENCE;
use crate::memory::Memory;
use crate::programs::{MPMS, children, program, site, spawner};
use crate::site::Site;

/// The configuration of pages.
const PAGES: &str = "LoadModule include_module modules/mod_include.so\n\
    <Location />\n  Options +Includes\n</Location>\n\
    <LocationMatch \\.shtml$>\n  SetOutputFilter INCLUDES\n</LocationMatch>\n";

/// Writes, waits until a file exists, writes again.
const GATED: &str = "#!/bin/sh
: >../told/begun-$QUERY_STRING
printf 'Content-Type: text/plain\\n\\nfirst'
while ! [ -e ../told/open-$QUERY_STRING ]; do sleep 0.05; done
printf second
";

/// Writes without end.
const ENDLESS: &str = "#!/bin/sh
printf 'Content-Type: text/plain\\n\\n'
exec cat /dev/zero
";
/// How much of it a client reads, in bytes.
const READ_BYTES: usize = 200 << 20;
/// Most additional memory of the process.
const MEMORY_MAX_KB: u64 = 32 << 10;

fn pages(name: &str, mpm: &str) -> Site {
    let site = site(name, mpm, PAGES);
    program(&site, "gated", GATED);
    program(&site, "endless", ENDLESS);
    let page = "A<!--#include virtual=\"/cgi-bin/gated?1\" -->B\
                <!--#include virtual=\"inner.shtml\" -->C<!--#echo var=\"v\" -->D";
    site.write("htdocs/page.shtml", page);
    let inner = "[<!--#include virtual=\"/cgi-bin/gated?2\" --><!--#set var=\"v\" value=\"w\" -->]";
    site.write("htdocs/inner.shtml", inner);
    site.write("htdocs/endless.shtml", "A<!--#include virtual=\"/cgi-bin/endless\" -->B");
    site
}

fn ask(site: &Site, path: &str) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", site.port)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    // Without chunks.
    stream.write_all(format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes()).unwrap();
    stream
}

/// Reads until the response ends like this.
fn read_until(stream: &mut TcpStream, text: &mut String, end: &str) {
    while !text.ends_with(end) {
        let mut piece = [0; 4096];
        let count = stream.read(&mut piece).unwrap();
        assert!(count > 0, "{text}");
        text.push_str(std::str::from_utf8(&piece[..count]).unwrap());
    }
}

#[test]
fn a_client_gets_what_a_page_has_made_so_far() {
    for mpm in MPMS {
        let site = pages("slow-pages", mpm);
        let (mut stream, mut text) = (ask(&site, "/page.shtml"), String::new());
        read_until(&mut stream, &mut text, "\r\n\r\nAfirst");
        assert!(!site.path("told/begun-2").exists(), "{mpm}: not before the first has ended");
        fs::write(site.path("told/open-1"), "").unwrap();
        read_until(&mut stream, &mut text, "AfirstsecondB[first");
        fs::write(site.path("told/open-2"), "").unwrap();
        read_until(&mut stream, &mut text, "AfirstsecondB[firstsecond]CwD");
        assert_eq!(stream.read(&mut [0]).unwrap(), 0);
    }
}

#[test]
fn a_page_of_a_client_that_leaves_ends_with_its_program() {
    for mpm in MPMS {
        let site = pages("left-pages", mpm);
        let spawner = spawner(&site).unwrap();
        site.wait_until("no program", || children(spawner) == 0);
        let (mut stream, mut text) = (ask(&site, "/endless.shtml"), String::new());
        stream.read_exact(&mut [0; 100_000]).unwrap();
        drop(stream);
        site.wait_until("no program", || children(spawner) == 0);
        // The second one's does not begin.
        let mut stream = ask(&site, "/page.shtml");
        read_until(&mut stream, &mut text, "Afirst");
        drop(stream);
        fs::write(site.path("told/open-1"), "").unwrap();
        site.wait_until("no program", || children(spawner) == 0);
        assert_eq!(site.get("/cgi-bin/run").status, 200);
    }
}

#[test]
fn a_page_with_endless_output_takes_little_memory() {
    let site = site(
        "endless-pages",
        "event",
        &format!("StartServers 1\nServerLimit 1\nThreadsPerChild 4\nMaxRequestWorkers 4\n{PAGES}"),
    );
    program(&site, "endless", ENDLESS);
    site.write("htdocs/endless.shtml", "A<!--#include virtual=\"/cgi-bin/endless\" -->B");
    let memory = Memory::of(&site);
    let mut stream = ask(&site, "/endless.shtml");
    let (mut read, mut piece) = (0, vec![0; 1 << 20]);
    while read < READ_BYTES {
        let count = stream.read(&mut piece).unwrap();
        assert!(count > 0, "{read}");
        read += count;
    }
    memory.assert_peak_below(&site, MEMORY_MAX_KB);
}
