//! The order of the fields of a response, which recordings do not compare.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;

use crate::http2::PROTOCOLS;
use crate::shapes::started;
use crate::site::Site;

/// The names of the fields, in their order.
fn names(head: &str) -> Vec<&str> {
    head.lines().skip(1).filter_map(|line| Some(line.split_once(':')?.0)).collect()
}

#[test]
fn protocols_precede_what_a_handler_sets() {
    let mut site = Site::new("order-protocols");
    site.configure(PROTOCOLS);
    site.write("htdocs/a", "a");
    site.start();
    // The first response is made, the second one comes from the cache.
    for _ in 0..2 {
        let answer = site.client().get("/a").unwrap();
        let names = names(&answer.head);
        let begin = ["Date", "Server", "Upgrade", "Connection", "Last-Modified", "ETag"];
        assert_eq!(names.get(..begin.len()), Some(&begin[..]), "{names:?}");
        assert_eq!(names.last(), Some(&"Content-Length"), "{names:?}");
    }
}

#[test]
fn a_backends_fields_keep_their_places_and_cookies_follow() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 4096]);
        let _ = stream.write_all(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nX-B: 1\r\nSet-Cookie: a=b\r\n\
              X-A: 1\r\nSet-Cookie: c=d\r\nContent-Length: 2\r\n\r\nok",
        );
    });
    let more = format!(
        "LoadModule proxy_module modules/mod_proxy.so\n\
         LoadModule proxy_http_module modules/mod_proxy_http.so\n\
         ProxyPass /b/ http://127.0.0.1:{port}/\n"
    );
    let site = started(Site::new("order-proxied"), "event", &more);
    let answer = site.client().get("/b/").unwrap();
    let names = names(&answer.head);
    let expected = ["Content-Type", "X-B", "X-A", "Content-Length", "Set-Cookie", "Set-Cookie"];
    assert_eq!(names.get(2..), Some(&expected[..]), "{names:?}");
    assert_eq!(answer.text(), "ok");
}
