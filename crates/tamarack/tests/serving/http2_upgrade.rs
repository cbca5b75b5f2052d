//! HTTP/2 by a request of HTTP/1.1 that asks for it.

use std::fs;
use std::net::TcpStream;

use crate::client::PATIENCE;
use crate::http2::{GET, HEADERS, Http2, PROTOCOLS, SETTINGS};
use crate::site::Site;
use crate::tls::Tls;

fn ask(site: &Site, path: &str, host: &str) -> (String, Option<Http2>) {
    let socket = TcpStream::connect(("127.0.0.1", site.port)).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let head = format!(
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade, HTTP2-Settings\r\n\
         Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\nX-A: 1\r\n\r\n"
    );
    Http2::upgrade(socket, &head)
}

/// The first byte of the head with which a stream's response begins: an indexed status.
fn status(http2: &mut Http2, stream: u32) -> Option<u8> {
    let head = std::iter::from_fn(|| http2.frame())
        .find(|frame| frame.stream == stream && frame.kind == HEADERS);
    head.and_then(|head| head.payload.first().copied())
}

const OK: Option<u8> = Some(0x88);
const NOT_FOUND: Option<u8> = Some(0x8d);

#[test]
fn an_upgrade_needs_http_1_1_and_no_body() {
    let mut site = Site::new("h2-upgrade");
    site.configure(PROTOCOLS);
    site.start();
    let ask = |line: &str, more: &str| {
        let mut client = site.client();
        let head = format!(
            "{line}\r\nHost: localhost\r\nConnection: Upgrade, HTTP2-Settings\r\n\
             HTTP2-Settings: AAMAAABkAAQAAP__\r\n{more}\r\n"
        );
        client.send(head.as_bytes()).unwrap();
        client.answer().unwrap().status
    };
    assert_eq!(ask("GET / HTTP/1.1", "Upgrade: foo, h2c\r\n"), 101);
    assert_eq!(ask("POST / HTTP/1.1", "Upgrade: h2c\r\nContent-Length: 0\r\n"), 101);
    assert_eq!(ask("POST / HTTP/1.1", "Upgrade: h2c\r\nContent-Length: 1\r\n\r\nx"), 200);
    assert_eq!(ask("GET / HTTP/1.0", "Upgrade: h2c\r\n"), 200);
}

#[test]
fn a_directory_allows_an_upgrade_that_its_host_does_not() {
    let mut site = Site::new("h2-upgrade-directory");
    fs::create_dir_all(site.path("htdocs/on")).unwrap();
    fs::create_dir_all(site.path("htdocs/access")).unwrap();
    site.write("htdocs/on/a", "a");
    site.write("htdocs/access/.htaccess", "H2Upgrade on\n");
    site.write("htdocs/access/a", "a");
    let root = site.root.display();
    site.configure(&format!(
        "{PROTOCOLS}H2Upgrade off\n<Directory {root}/htdocs/on>\nH2Upgrade on\n</Directory>\n\
         <Directory {root}/htdocs/access>\nAllowOverride AuthConfig\n</Directory>\n"
    ));
    site.start();
    for path in ["/on/a", "/access/a"] {
        let (head, http2) = ask(&site, path, "localhost");
        let mut http2 = http2.expect(&head);
        assert_eq!(status(&mut http2, 1), OK, "{path}");
        http2.request(3, GET).unwrap();
        assert!(http2.is_answered(3), "{path}");
    }
    assert!(ask(&site, "/", "localhost").0.starts_with("HTTP/1.1 200 OK"));
    // What does not exist has the configuration of its directory.
    assert_eq!(
        ask(&site, "/on/b", "localhost").1.and_then(|mut http2| status(&mut http2, 1)),
        NOT_FOUND
    );
}

#[test]
fn the_named_host_decides_about_an_upgrade() {
    let mut site = Site::new("h2-upgrade-host");
    let hosts = |port: u16| {
        format!(
            "<VirtualHost *:{port}>\nServerName first.test\n</VirtualHost>\n\
             <VirtualHost *:{port}>\nServerName second.test\nProtocols h2c http/1.1\n\
             H2MaxSessionStreams 7\n</VirtualHost>\n"
        )
    };
    site.configure(&hosts(site.port));
    site.start();
    assert!(ask(&site, "/", "first.test").1.is_none());
    let (head, http2) = ask(&site, "/", "second.test");
    let mut http2 = http2.expect(&head);
    let settings = http2.frame().unwrap();
    assert_eq!(
        (settings.kind, settings.payload.get(..6)),
        (SETTINGS, Some(&[0, 3, 0, 0, 0, 7][..]))
    );
    assert_eq!(status(&mut http2, 1), OK);
}

#[test]
fn a_refusal_before_the_handler_is_no_upgrade() {
    let mut site = Site::new("h2-upgrade-refused");
    fs::create_dir_all(site.path("htdocs/denied")).unwrap();
    site.write("htdocs/denied/a", "a");
    site.write("htdocs/page", "page");
    let root = site.root.display();
    site.configure(&format!(
        "{PROTOCOLS}ErrorDocument 403 /page\n\
         <Directory {root}/htdocs/denied>\nRequire all denied\n</Directory>\n"
    ));
    site.start();
    let (head, http2) = ask(&site, "/denied/a", "localhost");
    assert!(head.starts_with("HTTP/1.1 403 Forbidden") && http2.is_none(), "{head}");
}

#[test]
fn both_responses_are_logged() {
    let mut site = Site::new("h2-upgrade-log");
    site.configure(&format!(
        "{PROTOCOLS}LogFormat \"%r %>s %B %X %{{X-A}}i %{{Upgrade}}o\" short\n\
         CustomLog logs/access.log short\n"
    ));
    site.start();
    let (head, http2) = ask(&site, "/", "localhost");
    let mut http2 = http2.expect(&head);
    assert_eq!(status(&mut http2, 1), OK);
    drop(http2);
    let log = || fs::read_to_string(site.path("logs/access.log")).unwrap_or_default();
    site.wait_until("the log", || log().lines().count() == 2);
    let log = log();
    let lines: Vec<_> = log.lines().collect();
    assert!(lines[0].starts_with("GET / HTTP/2.0 200 "), "{log}");
    assert_eq!(lines[1], "GET / HTTP/1.1 101 0 - 1 h2c");
}

#[test]
fn a_handshake_decides_about_settings() {
    let mut site = Site::new("h2-handshake-host");
    let (port, keys) = (site.port, Tls::configuration("server.key"));
    site.configure(&format!(
        "{keys}Protocols h2\n<VirtualHost *:{port}>\nServerName first.test\nSSLEngine on\n\
         H2MaxSessionStreams 5\n</VirtualHost>\n<VirtualHost *:{port}>\n\
         ServerName localhost\nSSLEngine on\nH2MaxSessionStreams 7\n</VirtualHost>\n"
    ));
    site.start();
    let socket = TcpStream::connect(("127.0.0.1", port)).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut http2 = Http2::over(Tls::new().speaking(b"h2").stream(socket).unwrap(), &[]);
    let settings = http2.frame().unwrap();
    assert_eq!(
        (settings.kind, settings.payload.get(..6)),
        (SETTINGS, Some(&[0, 3, 0, 0, 0, 7][..]))
    );
}
