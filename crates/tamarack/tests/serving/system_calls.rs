//! The system calls of a request for something that was asked for before: those of its socket, of
//! the loop's turn, and one look at the file watch.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::client::{Client, PATIENCE};
use crate::shapes::shape;
use crate::site::Site;
use crate::tls::Tls;

/// Requests that are counted.
const REQUESTS: usize = 200;
/// Requests before that: what is asked for again is cached.
const BEFORE: usize = 20;
/// Files that appear beside the site's folder: enough for each counter of names in the watch.
const NEIGHBOURS: usize = 400;
/// Where no other test writes: each change in a directory on the way to a file is read from the
/// watch.
const QUIET: &str = "/var/tmp";
/// A younger file may change again without a different time stamp.
const SETTLED: Duration = Duration::from_millis(1500);
/// Shapes with one process.
const SHAPES: [(&str, &str); 3] = [
    ("event", "StartServers 1\nServerLimit 1\n"),
    ("worker", "StartServers 1\nServerLimit 1\nThreadsPerChild 4\nMaxRequestWorkers 4\n"),
    ("prefork", "StartServers 1\nServerLimit 1\nMaxRequestWorkers 1\n"),
];
/// The field of a client that accepts gzip.
const GZIP: &str = "Accept-Encoding: gzip\r\n";
/// Prefork with two processes.
const PAIR: &str = "StartServers 2\nServerLimit 2\nMaxRequestWorkers 2\n";
/// What a request may make, each as often as it comes: receive, send, wait, look at the watch.
const ALLOWED: [&str; 8] =
    ["recvfrom", "sendto", "sendmsg", "writev", "sendfile", "epoll_wait", "epoll_pwait", "ioctl"];

/// A kind of request: what it is called, its first line, more fields, and the response's status.
type Kind = (&'static str, &'static str, &'static str, u16);

const KINDS: [Kind; 12] = [
    ("plain", "GET /one/a.txt", "", 200),
    ("query", "GET /one/a.txt?ver={n}", "", 200),
    ("range", "GET /one/a.txt", "Range: bytes=1-2\r\n", 206),
    ("If-Modified-Since", "GET /one/a.txt", "If-Modified-Since: {modified}\r\n", 304),
    ("If-None-Match", "GET /one/a.txt", "If-None-Match: {etag}\r\n", 304),
    ("HEAD", "HEAD /one/empty.txt", "", 200),
    ("slash", "GET /one", "", 301),
    ("gone", "GET /one/none.txt", "", 404),
    ("index", "GET /one/", "", 200),
    (".htaccess", "GET /two/b.txt", "", 200),
    (".htaccess, query", "GET /two/b.txt?ver={n}", "", 200),
    ("never asked for", "GET /one/{n}.txt", "", 404),
];

/// A site in [`QUIET`].
pub fn quiet_site(name: &str) -> Site {
    Site::new_in(Path::new(QUIET), name)
}

/// The most calls of a kind by which threads woke a loop meanwhile, or it woke itself: ten a second
/// or a few more, which count where a machine is so busy that the requests take seconds.
pub fn wakes(took: Duration) -> usize {
    15 * took.as_secs() as usize
}

/// Asserts that each of `count` requests made at most `each` calls.
pub fn assert_at_most(each: usize, count: usize, calls: &BTreeMap<String, usize>, took: Duration) {
    // A wake is a call of the one who wakes, and one of the loop.
    let most = each * count + count / 5 + 2 * wakes(took);
    assert!(calls.values().sum::<usize>() <= most, "{took:?}: {calls:?}");
}

/// A site with a folder, and another one with an `.htaccess`.
fn site(mpm: &str, more: &str) -> Site {
    let mut site = quiet_site("calls");
    site.configure(&shape(mpm, more));
    site.start();
    for folder in ["one", "two"] {
        fs::create_dir(site.path(&format!("htdocs/{folder}"))).unwrap();
    }
    site.write("htdocs/one/a.txt", "some text\n");
    site.write("htdocs/one/empty.txt", "");
    site.write("htdocs/one/index.html", "an index\n");
    // Short ones are not compressed.
    for name in ["long", "other"] {
        site.write(&format!("htdocs/one/{name}.txt"), &"some text\n".repeat(500));
    }
    site.write("htdocs/two/.htaccess", "ForceType text/x-two\n");
    site.write("htdocs/two/b.txt", "some text\n");
    // Until then each request compares the text of the `.htaccess`.
    sleep(SETTLED);
    site
}

#[test]
fn what_was_asked_for_before_needs_no_look_at_the_file_system() {
    for (mpm, more) in SHAPES {
        let site = site(mpm, more);
        let mut client = site.client();
        if !counts_all(&site, &mut client, mpm, &KINDS) {
            return;
        }
    }
}

/// A page whose elements depend on files alone is cached, with what it includes.
#[test]
fn a_page_of_files_needs_no_look_at_the_file_system() {
    const PAGE: &[Kind] =
        &[("page", "GET /one/page.shtml", "", 200), ("query", "GET /one/page.shtml?{n}", "", 200)];
    for (mpm, more) in SHAPES {
        let more = format!(
            "{more}LoadModule include_module modules/mod_include.so\n<Files *.shtml>\n  \
             ForceType text/html\n  SetOutputFilter INCLUDES\n  Options +Includes\n</Files>\n"
        );
        let site = site(mpm, &more);
        let page = "<!--#set var=\"a\" value=\"b\" --><!--#if expr=\"v('a') == 'b'\" -->\
                    <!--#include virtual=\"a.txt\" --><!--#endif -->\
                    <!--#flastmod virtual=\"/two/b.txt\" --><!--#echo var=\"DOCUMENT_NAME\" -->";
        site.write("htdocs/one/page.shtml", page);
        sleep(SETTLED);
        let mut client = site.client();
        let text = client.get("/one/page.shtml").unwrap().text();
        assert!(text.starts_with("some text\n") && text.ends_with("page.shtml"), "{text}");
        if !counts_all(&site, &mut client, mpm, PAGE) {
            return;
        }
    }
}

#[test]
fn tls_adds_no_calls_but_those_of_the_socket() {
    let (mpm, more) = SHAPES[0];
    let module = |name| format!("LoadModule {name}_module modules/mod_{name}.so\n");
    let modules = ["ssl", "socache_shmcb"].map(module).concat();
    let more = format!("{more}{modules}{}", Tls::configuration("server.key"));
    let site = site(mpm, &more);
    let mut client = Tls::new().connect(site.port).unwrap();
    counts_all(&site, &mut client, "TLS", &KINDS[..4]);
}

/// Processes share what one of them has cached: the first request for it in another does not look
/// at the file system, once that process has served anything under the same configuration.
#[test]
fn what_another_process_was_asked_for_needs_no_look_at_the_file_system() {
    let kinds = ["plain", "query", "range", "slash"];
    let is_one = |kind: &&Kind| kinds.contains(&kind.0);
    shares_all("", "", &KINDS.into_iter().filter(|kind| is_one(&kind)).collect::<Vec<_>>());
}

/// Nor if it is compressed for some clients, or says when it expires.
#[test]
fn what_another_process_compressed_needs_no_look_at_the_file_system() {
    let module = |name| format!("LoadModule {name}_module modules/mod_{name}.so\n");
    let more = ["deflate", "filter", "expires"].map(module).concat()
        + "SetOutputFilter DEFLATE\nExpiresActive On\nExpiresDefault \"access plus 1 hour\"\n";
    let kinds =
        [("plain", "GET /one/long.txt", "", 200), ("query", "GET /one/long.txt?ver={n}", "", 200)];
    let Some((site, mut clients)) = shares_all(&more, GZIP, &kinds) else { return };
    // Clients that do not accept gzip get the other variant, and all of them see a change.
    let mut ask = |fields| {
        let mut number = 0;
        clients.each_mut().map(|client| request(client, &kinds[0], &mut number, fields))
    };
    let before = ask(GZIP);
    for _ in 0..BEFORE {
        for plain in ask("") {
            assert_eq!(plain.field("Content-Encoding"), None, "{plain:?}");
        }
    }
    site.write("htdocs/one/long.txt", &"other text\n".repeat(500));
    for (before, after) in before.iter().zip(ask(GZIP)) {
        assert_eq!(after.field("Content-Encoding"), Some("gzip"), "{after:?}");
        assert_ne!(before.body, after.body);
    }
    for plain in ask("") {
        assert!(plain.body.starts_with(b"other text\n"));
    }
}

/// Requests all kinds of one process, then once each of another one, which must not look at the
/// file system. `None` if calls can't be traced here.
fn shares_all(more: &str, fields: &str, kinds: &[Kind]) -> Option<(Site, [Client; 2])> {
    let site = site("prefork", &format!("{PAIR}{more}"));
    let mut clients = [site.client(), site.client()];
    let mut number = 0;
    // Each connection has a process of its own.
    for client in &mut clients {
        for _ in 0..BEFORE {
            request(client, &("other", "GET /one/other.txt", "", 200), &mut number, fields);
        }
    }
    let fields_of = |kind: &Kind| format!("{fields}{}", kind.2);
    for kind in kinds {
        for _ in 0..BEFORE {
            request(&mut clients[0], kind, &mut number, &fields_of(kind));
        }
    }
    let children = site.children();
    let traces: Option<Vec<Trace>> =
        children.iter().map(|child| Trace::of(&site, &child.to_string())).collect();
    let Some(traces) = traces else {
        eprintln!("skipped: strace may not trace");
        return None;
    };
    // As other tests do, in a directory that all of them use.
    for number in 0..NEIGHBOURS {
        let path = site.root.with_extension(format!("beside-{number}"));
        fs::write(&path, "").unwrap();
        fs::remove_file(path).unwrap();
    }
    for kind in kinds {
        let answer = request(&mut clients[1], kind, &mut number, &fields_of(kind));
        assert_eq!(answer.field("Content-Encoding").is_some(), !fields.is_empty(), "{answer:?}");
        assert_eq!(answer.field("Expires").is_some(), !fields.is_empty(), "{answer:?}");
    }
    let looks = ["newfstatat", "openat", "open", "statx", "readlink", "readlinkat"];
    let calls = traces.into_iter().flat_map(|trace| trace.stop().into_keys());
    let found: Vec<_> = calls.filter(|name| looks.contains(&name.as_str())).collect();
    assert!(found.is_empty(), "{found:?}");
    Some((site, clients))
}

/// Counts and judges the calls of all kinds. False if calls can't be counted here.
fn counts_all(site: &Site, client: &mut Client, context: &str, kinds: &[Kind]) -> bool {
    let mut number = 0;
    let plain = request(client, &KINDS[0], &mut number, "");
    let modified = plain.field("Last-Modified").unwrap().to_owned();
    let etag = plain.field("ETag").unwrap().to_owned();
    for kind in kinds {
        let fields = kind.2.replace("{modified}", &modified).replace("{etag}", &etag);
        let kind: &Kind = &(kind.0, kind.1, "", kind.3);
        for _ in 0..BEFORE {
            request(client, kind, &mut number, &fields);
        }
        let Some(trace) = Trace::start(site) else {
            eprintln!("skipped: strace is not here, or may not trace");
            return false;
        };
        let begun = Instant::now();
        for _ in 0..REQUESTS {
            request(client, kind, &mut number, &fields);
        }
        let wakes = wakes(begun.elapsed());
        let calls = trace.stop();
        let received = calls.get("recvfrom").copied().unwrap_or(0);
        // The first one had begun when the tracer came.
        assert!(received + 1 >= REQUESTS, "{context}, {}: {calls:?}", kind.0);
        for (name, count) in &calls {
            // What the process does each second is not counted, be the machine slow.
            let most = if ALLOWED.contains(&name.as_str()) { 2 * REQUESTS } else { REQUESTS / 4 };
            assert!(*count <= most + wakes, "{context}, {}: {count} {name} in {calls:?}", kind.0);
        }
        // One look at the watch for each request at most.
        let looks = calls.get("ioctl").copied().unwrap_or(0);
        assert!(looks <= REQUESTS + REQUESTS / 4, "{context}, {}: {calls:?}", kind.0);
    }
    true
}

/// Sends a request whose head no other one has.
fn request(
    client: &mut Client,
    (name, line, _, status): &Kind,
    number: &mut usize,
    fields: &str,
) -> crate::client::Answer {
    *number += 1;
    let line = line.replace("{n}", &number.to_string());
    let head =
        format!("{line} HTTP/1.1\r\nHost: localhost\r\nCookie: visitor={number}\r\n{fields}\r\n");
    client.send(head.as_bytes()).unwrap();
    let answer = client.answer().unwrap();
    assert_eq!(answer.status, *status, "{name}: {answer:?}");
    answer
}

/// The calls of the serving process while `work` runs; `None` if they can't be traced here.
pub fn calls_of(site: &Site, work: impl FnOnce()) -> Option<BTreeMap<String, usize>> {
    let trace = Trace::start(site)?;
    work();
    Some(trace.stop())
}

/// A tracer that is attached to all threads of the process that serves.
struct Trace {
    tracer: Child,
    file: std::path::PathBuf,
}

impl Trace {
    /// `None` if there is no tracer, or it can't attach.
    fn start(site: &Site) -> Option<Trace> {
        Trace::of(site, &site.children().first()?.to_string())
    }

    fn of(site: &Site, process: &str) -> Option<Trace> {
        let path = |kind| site.path(&format!("logs/{kind}-{process}"));
        let (file, said) = (path("calls"), path("tracer"));
        let mut tracer = Command::new("strace")
            .args(["-f", "-o"])
            .arg(&file)
            .args(["-p", process])
            .stdin(Stdio::null())
            .stderr(fs::File::create(&said).unwrap())
            .spawn()
            .ok()?;
        let end = Instant::now() + PATIENCE;
        while !fs::read_to_string(&said).unwrap_or_default().contains(" attached") {
            if tracer.try_wait().unwrap().is_some() || Instant::now() > end {
                let _ = tracer.kill();
                let _ = tracer.wait();
                return None;
            }
            sleep(Duration::from_millis(5));
        }
        Some(Trace { tracer, file })
    }

    /// How often each call was made.
    fn stop(mut self) -> BTreeMap<String, usize> {
        kill(Pid::from_raw(self.tracer.id().cast_signed()), Signal::SIGINT).unwrap();
        self.tracer.wait().unwrap();
        let mut calls = BTreeMap::new();
        for line in fs::read_to_string(&self.file).unwrap().lines() {
            // "PID name(…", or "PID <... name resumed>…" for the rest of an earlier one.
            let call = line.split_once(' ').and_then(|(_, rest)| rest.trim_start().split_once('('));
            if let Some((name, _)) = call.filter(|(name, _)| !name.contains(['<', ' '])) {
                *calls.entry(name.to_owned()).or_insert(0) += 1;
            }
        }
        calls
    }
}
