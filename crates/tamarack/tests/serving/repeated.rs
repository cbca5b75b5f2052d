//! Heads that come again, byte for byte, are answered without being parsed again. What belongs to
//! the connection, or has changed meanwhile, is as it would be.

use std::fs;

use crate::client::{Answer, Client};
use crate::free_port::free_port;
use crate::site::Site;
use crate::tls::Tls;

/// More than it takes until a head is known.
const TIMES: usize = 12;
const HEAD: &str =
    "GET /a.txt HTTP/1.1\r\nHost: localhost\r\nUser-Agent: test\r\nConnection: keep-alive\r\n\r\n";

fn ask(client: &mut Client) -> Answer {
    client.send(HEAD.as_bytes()).unwrap();
    client.answer().unwrap()
}

/// A site of one document, old enough to be relied upon.
fn site(name: &str, more: &str) -> Site {
    let mut site = Site::new(name);
    site.write("htdocs/a.txt", "first\n");
    let long_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
    let file = fs::File::options().write(true).open(site.path("htdocs/a.txt")).unwrap();
    file.set_modified(long_ago).unwrap();
    site.configure(more);
    site.start();
    site
}

#[test]
fn each_line_of_the_log_is_of_its_own_request() {
    let site = site(
        "again-log",
        "CustomLog logs/access.log \"%{remote}p %k %>s %B %{User-Agent}i %r\"\nStartServers 1\n",
    );
    let (mut one, mut other) = (site.client(), site.client());
    for _ in 0..TIMES {
        assert_eq!(ask(&mut one).text(), "first\n");
        assert_eq!(ask(&mut other).text(), "first\n");
    }
    let log = || fs::read_to_string(site.path("logs/access.log")).unwrap_or_default();
    site.wait_until("all lines", || log().lines().count() == 2 * TIMES);
    for port in [one.port(), other.port()] {
        for number in 0..TIMES {
            let line = format!("{port} {number} 200 6 test GET /a.txt HTTP/1.1");
            assert_eq!(log().lines().filter(|other| **other == line).count(), 1, "{line}");
        }
    }
}

#[test]
fn on_tls_too() {
    let format = "CustomLog logs/access.log \"%k %{HTTPS}e %r\"\nStartServers 1\n";
    let site = site("again-tls", &(Tls::configuration("server.key") + format));
    let tls = Tls::new();
    for _ in 0..3 {
        let mut client = tls.connect(site.port).unwrap();
        for _ in 0..TIMES {
            assert_eq!(ask(&mut client).text(), "first\n");
        }
    }
    let log = || fs::read_to_string(site.path("logs/access.log")).unwrap_or_default();
    site.wait_until("all lines", || log().lines().count() == 3 * TIMES);
    for number in 0..TIMES {
        let line = format!("{number} on GET /a.txt HTTP/1.1");
        assert_eq!(log().lines().filter(|other| **other == line).count(), 3, "{line}");
    }
}

#[test]
fn two_heads_at_once_and_one_in_parts() {
    let site = site("again-parts", "");
    let mut client = site.client();
    for _ in 0..TIMES {
        ask(&mut client);
    }
    client.send([HEAD, HEAD, HEAD].concat().as_bytes()).unwrap();
    for _ in 0..3 {
        assert_eq!(client.answer().unwrap().text(), "first\n");
    }
    let (begin, end) = HEAD.split_at(30);
    client.send(begin.as_bytes()).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(50));
    client.send(end.as_bytes()).unwrap();
    assert_eq!(client.answer().unwrap().text(), "first\n");
    // A line end that is left of a request is none of the next.
    client.send(format!("\r\n{HEAD}").as_bytes()).unwrap();
    assert_eq!(client.answer().unwrap().text(), "first\n");
    assert_eq!(ask(&mut client).text(), "first\n");
    // As is one before a connection's first.
    let mut second = site.client();
    second.send(format!("\r\n{HEAD}").as_bytes()).unwrap();
    assert_eq!(second.answer().unwrap().text(), "first\n");
}

#[test]
fn a_connection_has_its_own_terms() {
    let site = site("again-terms", "MaxKeepAliveRequests 20\nKeepAliveTimeout 77\n");
    for _ in 0..3 {
        let mut client = site.client();
        for number in 0..20 {
            let answer = ask(&mut client);
            let left = format!("timeout=77, max={}", 20 - number);
            assert_eq!(answer.field("Keep-Alive"), Some(left.as_str()));
        }
        assert!(ask(&mut client).closes());
        assert!(client.is_closed());
    }
}

#[test]
fn the_address_selects_the_host() {
    let other = free_port();
    let mut site = Site::new("again-address");
    site.write("htdocs/a.txt", "one\n");
    fs::create_dir(site.path("other")).unwrap();
    site.write("other/a.txt", "other\n");
    let root = site.root.display().to_string();
    site.configure(&format!(
        "Listen 127.0.0.1:{other}\n<VirtualHost *:{other}>\nDocumentRoot {root}/other\n\
         </VirtualHost>\n<Directory {root}/other>\nRequire all granted\n</Directory>\n"
    ));
    site.start();
    let (mut first, mut second) = (site.client(), Client::connect(other).unwrap());
    for _ in 0..TIMES {
        assert_eq!(ask(&mut first).text(), "one\n");
        assert_eq!(ask(&mut second).text(), "other\n");
    }
}

#[test]
fn what_has_changed_counts() {
    let site = site("again-changed", "");
    let mut client = site.client();
    for number in 0..TIMES {
        for _ in 0..TIMES {
            ask(&mut client);
        }
        let text = format!("another {number}\n");
        site.write("htdocs/a.txt", &text);
        assert_eq!(ask(&mut client).text(), text);
    }
    for _ in 0..TIMES {
        ask(&mut client);
    }
    site.write("htdocs/.htaccess", "Require all denied\n");
    assert_eq!(ask(&mut client).status, 403);
    fs::remove_file(site.path("htdocs/.htaccess")).unwrap();
    assert_eq!(ask(&mut client).status, 200);
    fs::remove_file(site.path("htdocs/a.txt")).unwrap();
    assert_eq!(ask(&mut client).status, 404);
}

#[test]
fn more_heads_than_are_kept() {
    let site = site("again-many", "StartServers 1\n");
    let mut client = site.client();
    for _ in 0..3 {
        for number in 0..1500 {
            let head = format!("GET /a.txt HTTP/1.1\r\nHost: localhost\r\nX: {number}\r\n\r\n");
            for _ in 0..2 {
                client.send(head.as_bytes()).unwrap();
                assert_eq!(client.answer().unwrap().text(), "first\n");
            }
        }
    }
}
