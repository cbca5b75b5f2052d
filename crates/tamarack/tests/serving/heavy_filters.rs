//! Filters that compute for long hold no other clients up.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use crate::client::Client;
use crate::others::assert_serves_others;
use crate::site::Site;

/// Bytes of a text that compresses like prose, and of one that is a single line.
const TEXT_BYTES: usize = 2_000_000;
const LINE_BYTES: usize = 200_000;

/// How long a client waits for one response: much of it is enough.
const WAIT: Duration = Duration::from_secs(2);

fn text() -> String {
    let mut state = 1_u64;
    let mut text = String::with_capacity(TEXT_BYTES + 100);
    while text.len() < TEXT_BYTES {
        for _ in 0..12 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            write!(text, "{} ", state >> 50).unwrap();
        }
        text.push('\n');
    }
    text
}

fn site(name: &str, rules: &str) -> Site {
    let site = Site::new(name);
    let modules = [
        "mpm_loop",
        "authz_core",
        "dir",
        "filter",
        "deflate",
        "brotli",
        "zstd",
        "sed",
        "substitute",
        "charset_lite",
        "reflector",
    ];
    let modules =
        modules.map(|name| format!("LoadModule {name}_module modules/mod_{name}.so\n")).concat();
    site.configure(&format!("{modules}<Location /heavy>\n{rules}\n</Location>\n"));
    std::fs::create_dir(site.path("htdocs/heavy")).unwrap();
    site.write("htdocs/heavy/text.html", &text());
    site.write("htdocs/heavy/line.html", &"a".repeat(LINE_BYTES));
    let line = format!("{}\n", "a".repeat(999));
    site.write("htdocs/heavy/lines.html", &line.repeat(TEXT_BYTES / line.len()));
    site
}

fn client(site: &Site) -> Client {
    let client = site.client();
    client.give_up_after(WAIT);
    client
}

/// Asks for a resource, and reads until it is complete or [`WAIT`] is over.
fn ask(site: &Site, path: &str) {
    let mut client = client(site);
    let head = format!("GET {path} HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip, br, zstd\r\n\r\n");
    client.send(head.as_bytes()).unwrap();
    if let Ok(answer) = client.answer() {
        assert_eq!(answer.status, 200, "{path}");
    }
}

fn assert_delays_no_others(name: &str, rules: &str, path: &str) {
    let mut site = site(name, rules);
    site.start();
    let child = site.children();
    assert_serves_others(&site, || ask(&site, path));
    assert_eq!(site.children(), child, "{}", site.error_log());
    site.assert_serves();
}

#[test]
fn compressing_delays_no_other_client() {
    for (name, rules) in [
        ("heavy-deflate", "SetOutputFilter DEFLATE"),
        ("heavy-brotli", "SetOutputFilter BROTLI_COMPRESS"),
        ("heavy-zstd", "SetOutputFilter ZSTD"),
    ] {
        assert_delays_no_others(name, rules, "/heavy/text.html");
    }
}

#[test]
fn compressing_with_most_effort_delays_no_other_client() {
    for (name, host, filter) in [
        ("heavy-brotli-11", "BrotliCompressionQuality 11", "BROTLI_COMPRESS"),
        ("heavy-zstd-19", "ZstdCompressionLevel 19", "ZSTD"),
    ] {
        let rules = format!("SetOutputFilter {filter}\n</Location>\n{host}\n<Location /other>");
        assert_delays_no_others(name, &rules, "/heavy/text.html");
    }
}

#[test]
fn translating_delays_no_other_client() {
    let rules = "CharsetSourceEnc ISO-8859-1\nCharsetDefault UTF-8\nForceType text/plain";
    assert_delays_no_others("heavy-charset", rules, "/heavy/text.html");
}

#[test]
fn substituting_delays_no_other_client() {
    let slow = "SetOutputFilter SUBSTITUTE\nSubstitute \"s/a(?=[^b]*$)/x/\"";
    assert_delays_no_others("heavy-line", slow, "/heavy/line.html");
    assert_delays_no_others("heavy-lines", slow, "/heavy/lines.html");
    let caseless = "SetOutputFilter SUBSTITUTE\nSubstitute s/aaaaaaaaaaaaaaaaaaaaaaaaab/x/in";
    assert_delays_no_others("heavy-caseless", caseless, "/heavy/line.html");
}

#[test]
fn a_script_of_sed_with_many_matches_delays_no_other_client() {
    let rules = "SetOutputFilter Sed\nOutputSed s/a/x/g";
    assert_delays_no_others("heavy-sed", rules, "/heavy/line.html");
}

#[test]
fn a_body_for_sed_delays_no_other_client() {
    let rules = "SetHandler reflector\nSetInputFilter Sed\nInputSed s/a/x/g";
    let mut site = site("heavy-input", rules);
    site.start();
    let body = "a".repeat(500_000);
    assert_serves_others(&site, || {
        let began = Instant::now();
        let mut client = client(&site);
        let length = body.len();
        let head = format!("POST /heavy/ HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n");
        client.send(&[head.as_bytes(), body.as_bytes()].concat()).unwrap();
        if let Ok(answer) = client.answer() {
            assert_eq!(answer.status, 200, "{:?}", began.elapsed());
            assert!(answer.body.iter().filter(|byte| **byte == b'x').count() == length);
        }
    });
    site.assert_serves();
}
