//! Files that were compressed beforehand: which one is served, how, and how long.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::time::{Duration, SystemTime};

use crate::client::Answer;
use crate::site::Site;

const MODULES: [&str; 11] = [
    "mpm_event",
    "authz_core",
    "mime",
    "dir",
    "filter",
    "include",
    "headers",
    "deflate",
    "brotli",
    "precompressed",
    "setenvif",
];

/// A site in which all files have the same age.
fn site(name: &str, more: &str, files: &[(&str, &str)]) -> Site {
    let mut site = Site::new(name);
    let load = |name: &&str| format!("LoadModule {name}_module modules/mod_{name}.so\n");
    let modules: String = MODULES.iter().map(load).collect();
    site.configure(&format!("{modules}AddType text/css .css\nPrecompressedFiles On\n{more}"));
    fs::create_dir_all(site.path("htdocs/own")).unwrap();
    for (path, text) in files {
        site.write(&format!("htdocs/{path}"), text);
        age(&site, path, 100);
    }
    site.start();
    site
}

fn age(site: &Site, path: &str, seconds: u64) {
    let file = File::options().append(true).open(site.path(&format!("htdocs/{path}"))).unwrap();
    file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1_640_995_200 - seconds))
        .unwrap();
}

fn ask(site: &Site, path: &str, fields: &[(&str, &str)]) -> Answer {
    let fields: String =
        fields.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let mut client = site.client();
    client.send(format!("GET {path} HTTP/1.1\r\nHost: x\r\n{fields}\r\n").as_bytes()).unwrap();
    client.answer().unwrap()
}

/// Asks twice, since the second response may come from the cache.
fn accepts(site: &Site, path: &str, codings: &str) -> Answer {
    let first = ask(site, path, &[("Accept-Encoding", codings)]);
    let second = ask(site, path, &[("Accept-Encoding", codings)]);
    assert_eq!(first.body, second.body, "{path} {codings}");
    assert_eq!(first.field("Content-Encoding"), second.field("Content-Encoding"));
    assert_eq!(first.field("Vary"), second.field("Vary"));
    first
}

const FILES: [(&str, &str); 8] = [
    ("x.css", "the original"),
    ("x.css.br", "brotli"),
    ("x.css.zst", "zstandard"),
    ("x.css.gz", "gzip"),
    ("only.css", "the original"),
    ("only.css.gz", "gzip"),
    ("plain.css", "the original"),
    ("index.html", "index"),
];

#[test]
fn the_client_chooses() {
    let site = site("precompressed", "", &FILES);
    for (codings, expected) in [
        ("br, zstd, gzip", "brotli"),
        ("gzip, zstd", "zstandard"),
        ("gzip", "gzip"),
        ("x-gzip", "gzip"),
        ("GZIP;q=0.5, br;q=0.1", "gzip"),
        ("gzip;q=0, br;q=0.1", "brotli"),
        ("gzip;q=0, *", "brotli"),
        ("*;q=0", "the original"),
        ("identity, gzip;q=0.5", "the original"),
        ("identity;q=0.5, gzip;q=0.5", "gzip"),
        ("identity", "the original"),
        ("", "the original"),
        ("deflate", "the original"),
    ] {
        let answer = accepts(&site, "/x.css", codings);
        assert_eq!(answer.text(), expected, "{codings}");
        assert_eq!(answer.field("Vary"), Some("Accept-Encoding"), "{codings}");
        assert_eq!(answer.field("Content-Type"), Some("text/css"));
        let coding = match expected {
            "brotli" => Some("br"),
            "zstandard" => Some("zstd"),
            "gzip" => Some("gzip"),
            _ => None,
        };
        assert_eq!(answer.field("Content-Encoding"), coding, "{codings}");
        let tag = answer.field("ETag").unwrap();
        assert!(coding.is_none_or(|coding| tag.ends_with(&format!("-{coding}\""))), "{tag}");
    }
    assert_eq!(accepts(&site, "/only.css", "br, gzip").text(), "gzip");
    let original = accepts(&site, "/only.css", "br");
    assert_eq!(
        (original.text(), original.field("Vary")),
        ("the original".into(), Some("Accept-Encoding"))
    );
    assert_eq!(accepts(&site, "/plain.css", "br, gzip").field("Vary"), None);
    // Its own name is a resource like any other.
    assert_eq!(accepts(&site, "/x.css.br", "br").field("Content-Encoding"), None);
}

#[test]
fn ranges_conditions_and_heads_are_those_of_the_compressed_file() {
    let site = site("precompressed-fields", "", &FILES);
    let gzip = ("Accept-Encoding", "gzip");
    let whole = ask(&site, "/x.css", &[gzip]);
    let part = ask(&site, "/x.css", &[gzip, ("Range", "bytes=1-2")]);
    assert_eq!((part.status, part.text()), (206, "zi".into()));
    assert_eq!(part.field("Content-Range"), Some("bytes 1-2/4"));
    assert_eq!(part.field("Content-Encoding"), Some("gzip"));
    let tag = whole.field("ETag").unwrap().to_owned();
    let known = ask(&site, "/x.css", &[gzip, ("If-None-Match", &tag)]);
    assert_eq!((known.status, known.field("ETag")), (304, Some(tag.as_str())));
    assert_eq!(known.field("Vary"), Some("Accept-Encoding"));
    let other = ask(&site, "/x.css", &[("Accept-Encoding", "br"), ("If-None-Match", &tag)]);
    assert_eq!(other.text(), "brotli");
    assert_eq!(ask(&site, "/x.css", &[("If-None-Match", &tag)]).text(), "the original");
    let mut client = site.client();
    client.send(b"HEAD /x.css HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip\r\n\r\n").unwrap();
    let head = client.head().unwrap();
    assert_eq!(head.field("Content-Length"), Some("4"));
    assert_eq!(head.field("ETag"), Some(tag.as_str()));
}

#[test]
fn siblings_come_and_go() {
    let site = site("precompressed-fresh", "", &FILES);
    let gzip = |expected: &str| {
        assert_eq!(accepts(&site, "/plain.css", "gzip").text(), expected);
        assert_eq!(accepts(&site, "/plain.css", "identity").text(), "the original");
    };
    let sibling = site.path("htdocs/plain.css.gz");
    for _ in 0..20 {
        gzip("the original");
        fs::write(site.path("new"), "gzip").unwrap();
        fs::rename(site.path("new"), &sibling).unwrap();
        gzip("gzip");
        age(&site, "plain.css.gz", 101);
        gzip("the original");
        age(&site, "plain.css.gz", 100);
        gzip("gzip");
        age(&site, "plain.css", 99);
        gzip("the original");
        age(&site, "plain.css", 100);
        gzip("gzip");
        fs::remove_file(&sibling).unwrap();
    }
    fs::create_dir(&sibling).unwrap();
    gzip("the original");
}

#[test]
fn a_sibling_needs_rights_of_its_own() {
    let more = "<Files *.gz>\n Require all denied\n</Files>\n\
                <Files secret.css>\n Require all denied\n</Files>\n\
                <Location /own>\n PrecompressedFiles gzip zstd\n</Location>\n\
                <Location /own/off.css>\n PrecompressedFiles Off\n</Location>\n";
    let files = [
        ("x.css", "the original"),
        ("x.css.gz", "gzip"),
        ("secret.css", "secret"),
        ("secret.css.br", "brotli"),
        ("l.css", "the original"),
        ("own/x.css", "the original"),
        ("own/x.css.br", "brotli"),
        ("own/x.css.zst", "zstandard"),
        ("own/off.css", "the original"),
        ("own/off.css.zst", "zstandard"),
    ];
    let site = site("precompressed-rights", more, &files);
    let denied = accepts(&site, "/x.css", "gzip");
    assert_eq!((denied.text(), denied.field("Content-Encoding")), ("the original".into(), None));
    assert_eq!(ask(&site, "/secret.css", &[("Accept-Encoding", "br")]).status, 403);
    assert_eq!(accepts(&site, "/own/x.css", "gzip, br, zstd").text(), "zstandard");
    assert_eq!(accepts(&site, "/own/x.css", "br").text(), "the original");
    assert_eq!(accepts(&site, "/own/off.css", "zstd").text(), "the original");
    // A link that is not to be followed.
    site.write("outside", "brotli");
    symlink(site.path("outside"), site.path("htdocs/l.css.br")).unwrap();
    assert_eq!(accepts(&site, "/l.css", "br").text(), "brotli");
    site.write("htdocs/.htaccess", "Options -FollowSymLinks\n");
    assert_eq!(accepts(&site, "/l.css", "br").text(), "the original");
}

#[test]
fn filters_compress_what_has_no_sibling() {
    let text = "body { color: black }\n".repeat(100);
    let more = "AddOutputFilterByType BROTLI_COMPRESS;DEFLATE text/css\nAddType text/html .shtml\n\
                AddOutputFilter INCLUDES shtml\nOptions +Includes\n";
    let files = [
        ("x.css", text.as_str()),
        ("x.css.gz", "gzip"),
        ("page.shtml", "<!--#echo var=\"REQUEST_URI\" -->"),
        ("page.shtml.gz", "gzip"),
    ];
    let site = site("precompressed-filters", more, &files);
    let gzip = accepts(&site, "/x.css", "gzip");
    assert_eq!((gzip.text(), gzip.field("Content-Encoding")), ("gzip".into(), Some("gzip")));
    assert_eq!(gzip.field("Vary"), Some("Accept-Encoding"));
    let brotli = accepts(&site, "/x.css", "br");
    assert_eq!(brotli.field("Content-Encoding"), Some("br"));
    assert!(brotli.body.len() < 200);
    assert_eq!(brotli.field("Vary"), Some("Accept-Encoding"));
    assert_eq!(accepts(&site, "/x.css", "identity").text(), text);
    assert_eq!(accepts(&site, "/page.shtml", "gzip").text(), "/page.shtml");
}
