//! Responses that are made from what is kept of a path: with a query, of HEAD, 304, 206, and those
//! that say that nothing is there, that it is elsewhere, or that it may not be seen. The request
//! after a change sees it, in every shape.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, SystemTime};

use crate::client::{Answer, Client};
use crate::site::Site;

const SHAPES: [&str; 4] = ["event", "worker", "prefork", "loop"];
/// More than it takes until everything is kept that may be.
const TIMES: usize = 6;
/// Where there is no watch, what has changed less than a second ago is not kept.
const SETTLED: Duration = Duration::from_millis(1200);
/// Changes of a run.
const ROUNDS: usize = 200;

fn make_old(path: &Path) {
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_640_995_200);
    fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
}

/// Writes a document that claims to be as old as the one before.
fn write(site: &Site, path: &str, text: &str) {
    site.write(path, text);
    make_old(&site.path(path));
}

fn site(name: &str, mpm: &str, more: &str) -> Site {
    let mut site = Site::new(&format!("forms-{name}-{mpm}"));
    fs::create_dir_all(site.path("htdocs/folder/deep")).unwrap();
    write(&site, "htdocs/a.txt", "one\n");
    write(&site, "htdocs/folder/b.txt", "b\n");
    site.configure(&format!(
        "LoadModule mpm_{mpm}_module modules/mod_mpm_{mpm}.so\n\
         LoadModule dir_module modules/mod_dir.so\nLoadModule mime_module modules/mod_mime.so\n\
         LoadModule authz_core_module modules/mod_authz_core.so\n\
         LoadModule alias_module modules/mod_alias.so\n\
         LoadModule headers_module modules/mod_headers.so\n{more}"
    ));
    site.start();
    sleep(SETTLED);
    site
}

/// One request, of which no two have the same head.
fn ask(client: &mut Client, method: &str, target: &str, field: &str) -> Answer {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let target = target.replace('#', &number.to_string());
    let head =
        format!("{method} {target} HTTP/1.1\r\nHost: localhost\r\nX: {number}\r\n{field}\r\n");
    client.send(head.as_bytes()).unwrap();
    match method {
        "HEAD" => client.head().unwrap(),
        _ => client.answer().unwrap(),
    }
}

/// All that is made of a document, which is this text.
fn assert_forms(client: &mut Client, text: &str, about: &str) {
    let whole = ask(client, "GET", "/a.txt?v=#", "");
    assert_eq!((whole.status, whole.text()), (200, text.to_owned()), "{about}");
    let head = ask(client, "HEAD", "/a.txt?v=#", "");
    let length = text.len().to_string();
    assert_eq!(head.field("Content-Length"), Some(length.as_str()), "{about}");
    assert_eq!(head.field("ETag"), whole.field("ETag"), "{about}");
    let tag = whole.field("ETag").unwrap_or_default();
    let same = ask(client, "GET", "/a.txt", &format!("If-None-Match: {tag}\r\n"));
    assert_eq!((same.status, same.field("ETag")), (304, Some(tag)), "{about}");
    let part = ask(client, "GET", "/a.txt?v=#", "Range: bytes=1-2\r\n");
    assert_eq!((part.status, part.text().as_str()), (206, &text[1..3]), "{about}");
    let range = format!("bytes 1-2/{length}");
    assert_eq!(part.field("Content-Range"), Some(range.as_str()), "{about}");
}

#[test]
fn a_document_that_changes_is_another_in_every_form() {
    in_all_shapes(|mpm| {
        let site = site("change", mpm, "");
        let mut client = site.client();
        for _ in 0..TIMES {
            assert_forms(&mut client, "one\n", mpm);
        }
        let mut tag = ask(&mut client, "GET", "/a.txt", "").field("ETag").unwrap().to_owned();
        for number in 0..ROUNDS {
            let text = "x".repeat(3 + number % 7) + &format!(" {number}\n");
            write(&site, "htdocs/a.txt", &text);
            // Which form comes first is another each time.
            let about = format!("{mpm} {number}");
            let old = format!("If-None-Match: {tag}\r\n");
            let first = match number % 4 {
                0 => ask(&mut client, "GET", "/a.txt?v=#", &old),
                1 => ask(&mut client, "GET", "/a.txt", ""),
                2 => ask(&mut client, "GET", "/a.txt", "Range: bytes=0-99\r\n"),
                _ => ask(&mut client, "HEAD", "/a.txt", ""),
            };
            if number % 4 == 3 {
                let length = text.len().to_string();
                assert_eq!(first.field("Content-Length"), Some(length.as_str()), "{about}");
            } else {
                assert_eq!(first.text(), text, "{about}");
            }
            for _ in 0..1 + number % 3 {
                assert_forms(&mut client, &text, &about);
            }
            tag = first.field("ETag").unwrap().to_owned();
        }
    });
}

#[test]
fn what_is_not_there_appears_and_vanishes() {
    in_all_shapes(|mpm| {
        let site = site("appear", mpm, "");
        let mut client = site.client();
        let path = site.path("htdocs/folder/new.txt");
        for number in 0..ROUNDS {
            for _ in 0..1 + number % 5 {
                assert_eq!(ask(&mut client, "GET", "/folder/new.txt?#", "").status, 404, "{mpm}");
            }
            assert_eq!(ask(&mut client, "HEAD", "/folder/new.txt", "").status, 404, "{mpm}");
            write(&site, "htdocs/folder/new.txt", "new\n");
            for _ in 0..1 + number % 5 {
                let there = ask(&mut client, "GET", "/folder/new.txt?#", "");
                assert_eq!((there.status, there.text().as_str()), (200, "new\n"), "{mpm}");
            }
            fs::remove_file(&path).unwrap();
        }
    });
}

/// What is done, and what `/folder/deep` is from then on: its status and where it sends to.
type Step = (fn(&Site), u16, Option<&'static str>);

const STEPS: [Step; 8] = [
    (|_| {}, 301, Some("http://localhost/folder/deep/")),
    // Another kind.
    (
        |site| {
            fs::rename(site.path("htdocs/folder/deep"), site.path("aside")).unwrap();
            write(site, "htdocs/folder/deep", "a file\n");
        },
        200,
        None,
    ),
    (|site| fs::remove_file(site.path("htdocs/folder/deep")).unwrap(), 404, None),
    // A link to a folder, which is turned to nothing.
    (
        |site| symlink(site.path("aside"), site.path("htdocs/folder/deep")).unwrap(),
        301,
        Some("http://localhost/folder/deep/"),
    ),
    (|site| fs::rename(site.path("aside"), site.path("elsewhere")).unwrap(), 403, None),
    (
        |site| fs::rename(site.path("elsewhere"), site.path("aside")).unwrap(),
        301,
        Some("http://localhost/folder/deep/"),
    ),
    // Rules that appear on the path.
    (
        |site| site.write("htdocs/folder/.htaccess", "Redirect 302 /folder/deep /there\n"),
        302,
        Some("http://localhost/there"),
    ),
    (|site| site.write("htdocs/folder/.htaccess", "Require all denied\n"), 403, None),
];

#[test]
fn a_folder_becomes_other_things() {
    in_all_shapes(|mpm| {
        let site = site("kinds", mpm, "<Directory />\n  Options FollowSymLinks\n</Directory>\n");
        let mut client = site.client();
        let names = |mut url: String| {
            url = url.replace(&format!(":{}", site.port), "");
            url
        };
        for (number, (make, status, location)) in STEPS.iter().enumerate() {
            make(&site);
            for time in 0..TIMES {
                let method = if time % 3 == 1 { "HEAD" } else { "GET" };
                let answer = ask(&mut client, method, "/folder/deep", "");
                assert_eq!(answer.status, *status, "{mpm} {number} {time}: {answer:?}");
                let found = answer.field("Location").map(|url| names(url.to_owned()));
                assert_eq!(found.as_deref(), *location, "{mpm} {number} {time}");
            }
        }
        // The folder above goes, and comes back without rules.
        fs::rename(site.path("htdocs/folder"), site.path("gone")).unwrap();
        for _ in 0..TIMES {
            assert_eq!(ask(&mut client, "GET", "/folder/deep?#", "").status, 404, "{mpm}");
        }
        fs::remove_file(site.path("gone/.htaccess")).unwrap();
        fs::rename(site.path("gone"), site.path("htdocs/folder")).unwrap();
        for _ in 0..TIMES {
            assert_eq!(ask(&mut client, "GET", "/folder/b.txt?#", "").text(), "b\n", "{mpm}");
            assert_eq!(ask(&mut client, "GET", "/folder/deep", "").status, 301, "{mpm}");
        }
    });
}

#[test]
fn a_missing_name_is_logged_each_time_where_the_level_says_so() {
    in_all_shapes(|mpm| {
        let site = site("logged", mpm, "LogLevel info\n");
        let mut client = site.client();
        for _ in 0..TIMES {
            assert_eq!(ask(&mut client, "GET", "/missing?#", "").status, 404, "{mpm}");
        }
        let lines = || site.count_lines("File does not exist");
        site.wait_until("all lines", || lines() >= TIMES);
        assert_eq!(lines(), TIMES, "{mpm}");
    });
}

fn in_all_shapes(test: impl Fn(&str) + Sync) {
    std::thread::scope(|scope| {
        for mpm in SHAPES {
            scope.spawn(|| test(mpm));
        }
    });
}
