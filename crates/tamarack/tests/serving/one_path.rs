//! One path requested repeatedly on one connection, in prefork and worker: the response comes from
//! the cache as long as it is fresh.

use std::fs;
use std::os::unix::fs::symlink;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::client::{Answer, Client};
use crate::site::Site;

const SHAPES: [&str; 2] = ["prefork", "worker"];
/// More requests than it takes until the response comes from the cache.
const TIMES: usize = 12;
/// Files that changed less than a second ago are not cached.
const SETTLED: Duration = Duration::from_millis(1200);

fn head(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nUser-Agent: test\r\n\r\n")
}

fn ask(client: &mut Client, path: &str) -> Answer {
    client.send(head(path).as_bytes()).unwrap();
    client.answer().unwrap()
}

/// Requests a path until its response comes from the cache.
fn ask_often(client: &mut Client, path: &str) {
    for _ in 0..TIMES {
        assert_eq!(ask(client, path).text(), "first\n");
    }
}

/// A site with this MPM and a document in each of `folders`, old enough to be cached.
fn site(name: &str, mpm: &str, folders: &[&str], more: &str) -> Site {
    let mut site = Site::new(&format!("{name}-{mpm}"));
    for folder in folders {
        fs::create_dir_all(site.path(&format!("htdocs/{folder}"))).unwrap();
        write_document(&site, folder, "first\n");
    }
    let modules = [&format!("mpm_{mpm}"), "dir", "mime", "authz_core", "status"]
        .map(|name| format!("LoadModule {name}_module modules/mod_{name}.so\n"))
        .concat();
    site.configure(&format!(
        "{modules}{more}\n<Directory {root}>\n  Options FollowSymLinks\n</Directory>\n\
         <Location /status>\n  SetHandler server-status\n</Location>\n",
        root = site.root.display()
    ));
    site.start();
    sleep(SETTLED);
    site
}

/// Writes a document with the same modification time as the one before.
fn write_document(site: &Site, folder: &str, text: &str) {
    let path = site.path(&format!("htdocs/{folder}/a.txt"));
    fs::write(&path, text).unwrap();
    make_old(&path);
}

fn make_old(path: &std::path::Path) {
    let time = std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(1_640_995_200);
    fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
}

/// A change of a folder, with the status and body from then on.
type Change = (&'static str, fn(&Site), u16, &'static str);

const CHANGES: [Change; 10] = [
    ("written", |site| write_document(site, "written", "other\n"), 200, "other\n"),
    (
        "renamed",
        |site| {
            write_document(site, "spare", "other\n");
            let (spare, file) = ("htdocs/spare/a.txt", "htdocs/renamed/a.txt");
            fs::rename(site.path(spare), site.path(file)).unwrap();
        },
        200,
        "other\n",
    ),
    ("deleted", |site| fs::remove_file(site.path("htdocs/deleted/a.txt")).unwrap(), 404, ""),
    ("denied", |site| site.write("htdocs/denied/.htaccess", "Require all denied\n"), 403, ""),
    ("above/below", |site| site.write("htdocs/above/.htaccess", "Require all denied\n"), 403, ""),
    (
        "exchanged/below",
        |site| {
            let (old, new) = (site.path("htdocs/exchanged"), site.path("htdocs/other"));
            fs::rename(&old, site.path("aside")).unwrap();
            fs::rename(new, &old).unwrap();
        },
        200,
        "other\n",
    ),
    (
        "gone/below",
        |site| fs::rename(site.path("htdocs/gone"), site.path("gone")).unwrap(),
        404,
        "",
    ),
    (
        "linked",
        |site| {
            let (new, link) = (site.path("new-link"), site.path("htdocs/linked"));
            symlink(site.path("htdocs/other/below"), &new).unwrap();
            fs::rename(new, link).unwrap();
        },
        200,
        "other\n",
    ),
    ("ruled", |site| site.write("other-rules", "Require all denied\n"), 403, ""),
    (
        "named",
        |site| {
            // The directory of the other name is not watched.
            fs::write(site.path("another-name.txt"), "other\n").unwrap();
        },
        200,
        "other\n",
    ),
];

fn is_seen_at_once(mpm: &str, change: &Change) {
    let (folder, make, status, text) = change;
    let name = folder.replace('/', "-");
    let folders = ["written", "renamed", "deleted", "denied", "above/below", "exchanged/below"];
    let folders = [&folders[..], &["gone/below", "target", "named", "ruled", "spare"]].concat();
    let site = site(&format!("path-{name}"), mpm, &folders, "StartServers 2\n");
    fs::create_dir_all(site.path("htdocs/other/below")).unwrap();
    write_document(&site, "other/below", "other\n");
    symlink(site.path("htdocs/target"), site.path("htdocs/linked")).unwrap();
    fs::hard_link(site.path("htdocs/named/a.txt"), site.path("another-name.txt")).unwrap();
    site.write("other-rules", "Require all granted\n");
    fs::hard_link(site.path("other-rules"), site.path("htdocs/ruled/.htaccess")).unwrap();
    sleep(SETTLED);
    let path = format!("/{folder}/a.txt");
    // Two clients, whose processes each have to see the change.
    let mut clients = [site.client(), site.client()];
    for client in &mut clients {
        ask_often(client, &path);
    }
    make(&site);
    for client in &mut clients {
        let answer = ask(client, &path);
        assert_eq!(answer.status, *status, "{mpm} {folder}: {answer:?}");
        if *status == 200 {
            for _ in 0..TIMES {
                assert_eq!(ask(client, &path).text(), *text, "{mpm} {folder}");
            }
        }
    }
}

#[test]
fn every_change_is_in_the_next_answer() {
    std::thread::scope(|scope| {
        for mpm in SHAPES {
            for change in &CHANGES {
                scope.spawn(move || is_seen_at_once(mpm, change));
            }
        }
    });
}

#[test]
fn the_second_change_is_seen_like_the_first() {
    for mpm in SHAPES {
        let site = site("path-second", mpm, &["one"], "");
        let mut client = site.client();
        for number in 0..3 {
            let text = format!("number {number}\n");
            write_document(&site, "one", &text);
            assert_eq!(ask(&mut client, "/one/a.txt").text(), text, "{mpm}");
            sleep(SETTLED);
            for _ in 0..TIMES {
                assert_eq!(ask(&mut client, "/one/a.txt").text(), text, "{mpm}");
            }
        }
        // A folder that takes another's place, with the very same file: what is watched is
        // the one that stands there now.
        fs::create_dir(site.path("htdocs/twin")).unwrap();
        let (one, twin) = (site.path("htdocs/one"), site.path("htdocs/twin"));
        fs::hard_link(one.join("a.txt"), twin.join("a.txt")).unwrap();
        ask(&mut client, "/one/a.txt");
        fs::rename(&one, site.path("aside")).unwrap();
        fs::rename(&twin, &one).unwrap();
        fs::remove_file(site.path("aside/a.txt")).unwrap();
        sleep(SETTLED);
        for _ in 0..TIMES {
            assert_eq!(ask(&mut client, "/one/a.txt").text(), "number 2\n", "{mpm}");
        }
        sleep(SETTLED);
        ask(&mut client, "/one/a.txt");
        write_document(&site, "one", "number 9\n");
        assert_eq!(ask(&mut client, "/one/a.txt").text(), "number 9\n", "{mpm}");
    }
}

#[test]
fn the_connection_ends_when_it_has_had_all_its_requests() {
    for mpm in SHAPES {
        let site = site("path-terms", mpm, &["one"], "MaxKeepAliveRequests 20\n");
        for _ in 0..3 {
            let mut client = site.client();
            for number in 0..20 {
                assert!(!ask(&mut client, "/one/a.txt").closes(), "{mpm} {number}");
            }
            assert!(ask(&mut client, "/one/a.txt").closes(), "{mpm}");
            assert!(client.is_closed(), "{mpm}");
        }
    }
}

#[test]
fn an_idle_connection_is_closed_in_time() {
    std::thread::scope(|scope| {
        for mpm in SHAPES {
            scope.spawn(move || is_closed_in_time(mpm));
        }
    });
}

fn is_closed_in_time(mpm: &str) {
    let site = site("path-idle", mpm, &["one"], "KeepAliveTimeout 4\n");
    let mut client = site.client();
    // For longer than that: the time is counted from the last of them.
    for _ in 0..50 {
        ask(&mut client, "/one/a.txt");
        sleep(Duration::from_millis(100));
    }
    // Longer than a thread waits in one call, and than a quiet connection keeps its buffers.
    sleep(Duration::from_millis(1500));
    let asked = Instant::now();
    ask_often(&mut client, "/one/a.txt");
    assert!(client.is_closed(), "{mpm}");
    assert!(asked.elapsed() >= Duration::from_millis(3900), "{mpm}: {:?}", asked.elapsed());
}

#[test]
fn the_date_goes_on() {
    for mpm in SHAPES {
        let site = site("path-date", mpm, &["one", "two"], "");
        let (mut client, mut other) = (site.client(), site.client());
        let date = |answer: Answer| answer.field("Date").unwrap().to_owned();
        let mut dates = std::collections::BTreeSet::new();
        let began = Instant::now();
        while began.elapsed() < Duration::from_millis(2500) {
            let before = date(other.get("/missing").unwrap());
            let shown = date(ask(&mut client, "/one/a.txt"));
            let after = date(other.get("/missing").unwrap());
            assert!(before != after || shown == before, "{mpm}: {before}, {shown}");
            dates.insert(shown);
        }
        assert!(dates.len() >= 2, "{mpm}: {dates:?}");
    }
}

#[test]
fn other_heads_between_them_and_heads_in_parts() {
    for mpm in SHAPES {
        let site = site("path-parts", mpm, &["one", "two"], "");
        let mut client = site.client();
        write_document(&site, "two", "second\n");
        for _ in 0..5 {
            ask_often(&mut client, "/one/a.txt");
            assert_eq!(ask(&mut client, "/two/a.txt").text(), "second\n");
            ask_often(&mut client, "/one/a.txt");
            assert_eq!(client.get("/missing").unwrap().status, 404);
            ask_often(&mut client, "/one/a.txt");
            let head = head("/one/a.txt");
            client.send(head.repeat(3).as_bytes()).unwrap();
            for _ in 0..3 {
                assert_eq!(client.answer().unwrap().text(), "first\n");
            }
            ask_often(&mut client, "/one/a.txt");
            let (begin, end) = head.split_at(30);
            client.send(begin.as_bytes()).unwrap();
            sleep(Duration::from_millis(30));
            client.send(end.as_bytes()).unwrap();
            assert_eq!(client.answer().unwrap().text(), "first\n");
            ask_often(&mut client, "/one/a.txt");
            client.send(format!("{head}\r\n").as_bytes()).unwrap();
            assert_eq!(client.answer().unwrap().text(), "first\n");
            ask_often(&mut client, "/one/a.txt");
        }
        // A head that is wrong behind many that are right.
        client.send(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        assert_eq!(client.answer().unwrap().status, 400);
    }
}

#[test]
fn each_is_counted() {
    for mpm in SHAPES {
        let site = site("path-count", mpm, &["one"], "StartServers 1\n");
        let mut client = site.client();
        for _ in 0..6 {
            ask_often(&mut client, "/one/a.txt");
        }
        // Counted when it has left, and so are the looks at it.
        let mut looks = 0;
        site.wait_until("all are counted", || {
            let status = site.get("/status?auto").text();
            let line = status.lines().find_map(|line| line.strip_prefix("Total Accesses: "));
            let accesses = line.unwrap().parse::<usize>().unwrap();
            assert!(accesses <= 6 * TIMES + looks, "{mpm}: {accesses}");
            let are_all = accesses == 6 * TIMES + looks;
            looks += 1;
            are_all
        });
        let page = site.get("/status").text();
        let row = page.lines().any(|line| line.contains("GET /one/a.txt HTTP/1.1"));
        assert!(row, "{mpm}: {page}");
        assert!(page.contains(&format!("{}/", 6 * TIMES)), "{mpm}: {page}");
    }
}

#[test]
fn each_is_written_down() {
    for mpm in SHAPES {
        let format = "%{remote}p %k %>s %B %{User-Agent}i %{X}e %{Content-Length}o %r %t";
        let format = &format!("CustomLog logs/access.log \"{format}\"\n");
        let site = site("path-log", mpm, &["one"], format);
        let (mut one, mut other) = (site.client(), site.client());
        for _ in 0..3 {
            ask_often(&mut one, "/one/a.txt");
            ask_often(&mut other, "/one/a.txt");
            assert_eq!(one.get("/missing").unwrap().status, 404);
        }
        // In another second than those before.
        sleep(Duration::from_millis(1100));
        ask_often(&mut other, "/one/a.txt");
        let log = || fs::read_to_string(site.path("logs/access.log")).unwrap_or_default();
        let all = 3 * (2 * TIMES + 1) + TIMES;
        site.wait_until("all lines", || log().lines().count() >= all);
        assert_eq!(log().lines().count(), all, "{mpm}");
        let (mut lines, log) = (0, log());
        for (port, asked) in [(one.port(), 3 * (TIMES + 1)), (other.port(), 4 * TIMES)] {
            for number in 0..asked {
                let line = if port == one.port() && number % (TIMES + 1) == TIMES {
                    format!("{port} {number} 404 ")
                } else {
                    format!("{port} {number} 200 6 test - 6 GET /one/a.txt HTTP/1.1 [")
                };
                lines += log.lines().filter(|other| other.starts_with(&line)).count();
            }
        }
        assert_eq!(lines, all, "{mpm}: {log}");
        let times = log.lines().filter_map(|line| Some(line.rsplit_once('[')?.1));
        let times: std::collections::BTreeSet<&str> = times.collect();
        assert!(times.len() >= 2, "{mpm}: {log}");
    }
}

#[test]
fn a_graceful_restart_ends_them_with_an_answer() {
    for mpm in SHAPES {
        let site = site("path-restart", mpm, &["one"], "");
        let mut client = site.client();
        ask_often(&mut client, "/one/a.txt");
        site.restart_gracefully();
        site.wait_until("the last answer", || {
            let answer = ask(&mut client, "/one/a.txt");
            assert_eq!(answer.text(), "first\n", "{mpm}");
            answer.closes()
        });
        assert!(client.is_closed(), "{mpm}");
        ask_often(&mut site.client(), "/one/a.txt");
    }
}

#[test]
fn a_client_that_does_not_read_gets_all_of_them_later() {
    for mpm in SHAPES {
        let site = site("path-slow", mpm, &["one"], "");
        let text = "0123456789abcde\n".repeat(1900);
        write_document(&site, "one", &text);
        sleep(SETTLED);
        let mut client = site.client();
        for _ in 0..TIMES {
            assert_eq!(ask(&mut client, "/one/a.txt").text(), text, "{mpm}");
        }
        let asked = 600;
        for _ in 0..asked {
            client.send(head("/one/a.txt").as_bytes()).unwrap();
            std::thread::yield_now();
        }
        for number in 0..asked {
            assert!(client.answer().unwrap().text() == text, "{mpm} {number}");
        }
    }
}

#[test]
fn a_download_is_not_broken_off_by_a_change_elsewhere() {
    std::thread::scope(|scope| {
        for mpm in SHAPES {
            scope.spawn(move || finishes_a_download(mpm));
        }
    });
}

fn finishes_a_download(mpm: &str) {
    let site = site("path-download", mpm, &["one"], "StartServers 1\n");
    let text = "0123456789abcde\n".repeat(1 << 20);
    site.write("htdocs/one/large.txt", &text);
    sleep(SETTLED);
    let mut client = site.client();
    for number in 0..5 {
        ask_often(&mut client, "/one/a.txt");
        client.ask("/one/large.txt").unwrap();
        // Its thread waits for the client, in whichever call.
        sleep(Duration::from_millis(250 + number * 30));
        site.write("htdocs/one/other.txt", "");
        sleep(Duration::from_millis(50));
        assert!(client.answer().unwrap().text() == text, "{mpm} {number}");
        sleep(SETTLED);
    }
}
