//! Programs that respond while the request's body still arrives, to clients that read meanwhile.

use std::io::Write;
use std::net::Shutdown;
use std::thread;

use crate::client::Client;
use crate::programs::{children, program, site, spawner};
use crate::site::Site;

/// Far more than all buffers hold.
const BODY_BYTES: usize = 24 << 20;

const SHAPES: [&str; 4] = ["event", "worker", "prefork", "loop"];

/// Copies its input, counts a part of it, or ends early.
const ECHO: &str = "#!/bin/sh
printf 'Content-Type: text/plain\\n\\n'
case \"$QUERY_STRING\" in
  part) head -c 3000000;;
  none) head -c 3000000 /dev/zero;;
  *) exec cat;;
esac
";
const RAW: &str = "#!/bin/sh
printf 'HTTP/1.1 200 Raw\\r\\nConnection: close\\r\\n\\r\\n'
exec cat
";

fn start(name: &str, mpm: &str) -> Site {
    let site = site(name, mpm, "");
    program(&site, "echo", ECHO);
    program(&site, "nph-echo", RAW);
    site
}

fn body() -> Vec<u8> {
    (0..BODY_BYTES / 8).flat_map(|number| (number as u64).to_le_bytes()).collect()
}

/// Sends a request with a body, in chunks or with its length, from a thread of its own; returns the
/// client, which must read meanwhile.
fn post(
    site: &Site,
    path: &str,
    body: &'static [u8],
    is_chunked: bool,
) -> (Client, thread::JoinHandle<bool>) {
    let client = site.client();
    let mut socket = client.socket();
    let framing = match is_chunked {
        true => "Transfer-Encoding: chunked".to_owned(),
        false => format!("Content-Length: {}", body.len()),
    };
    let head = format!("POST {path} HTTP/1.1\r\nHost: localhost\r\n{framing}\r\n\r\n");
    let sending = thread::spawn(move || {
        let mut send = |bytes: &[u8]| socket.write_all(bytes).is_ok();
        if !is_chunked {
            return send(head.as_bytes()) && send(body);
        }
        let chunk = |piece: &[u8]| [format!("{:x}\r\n", piece.len()).as_bytes(), piece].concat();
        send(head.as_bytes())
            && body.chunks(100_000).all(|piece| send(&chunk(piece)) && send(b"\r\n"))
            && send(b"0\r\n\r\n")
    });
    (client, sending)
}

#[test]
fn a_program_may_echo_a_large_body() {
    let body: &'static [u8] = body().leak();
    for mpm in SHAPES {
        let site = start("echoed", mpm);
        for is_chunked in [false, true] {
            let (mut client, sending) = post(&site, "/cgi-bin/echo", body, is_chunked);
            let answer = client.answer().unwrap();
            assert_eq!(answer.status, 200, "{mpm}");
            assert!(answer.body == body, "{mpm}: {} bytes", answer.body.len());
            assert!(sending.join().unwrap());
            assert_eq!(client.get("/cgi-bin/run").unwrap().status, 200, "{mpm}");
        }
        let (mut client, sending) = post(&site, "/cgi-bin/nph-echo", body, false);
        let answer = client.head().unwrap();
        assert!(answer.head.starts_with("HTTP/1.1 200 Raw"), "{mpm}: {}", answer.head);
        assert!(client.take(body.len()).unwrap() == body, "{mpm}");
        assert!(sending.join().unwrap());
    }
}

#[test]
fn a_program_may_end_before_the_body() {
    let body: &'static [u8] = body().leak();
    for mpm in SHAPES {
        let site = start("echoed-part", mpm);
        for query in ["part", "none"] {
            let path = format!("/cgi-bin/echo?{query}");
            let (mut client, sending) = post(&site, &path, body, false);
            let answer = client.answer().unwrap();
            assert_eq!((answer.status, answer.body.len()), (200, 3_000_000), "{mpm}");
            let expected = if query == "part" { &body[..3_000_000] } else { &[0; 3_000_000] };
            assert!(answer.body == expected, "{mpm}");
            // The rest of the body is read, and is no request.
            assert!(sending.join().unwrap());
            assert_eq!(client.get("/cgi-bin/run").unwrap().status, 200, "{mpm}");
        }
    }
}

#[test]
fn an_echo_ends_with_its_client() {
    let body: &'static [u8] = body().leak();
    for mpm in SHAPES {
        let site = start("echoed-gone", mpm);
        let spawner = spawner(&site).unwrap();
        for ends_at_once in [true, false] {
            let mut client = site.client();
            let head = "POST /cgi-bin/echo HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\n\r\n";
            client.send(head.as_bytes()).unwrap();
            client.send(&body[..300_000]).unwrap();
            client.wait_for_bytes(100_000).unwrap();
            assert_eq!(children(spawner), 1, "{mpm}");
            match ends_at_once {
                true => drop(client),
                false => {
                    // The body will not be complete: the response is not either.
                    client.socket().shutdown(Shutdown::Write).unwrap();
                    assert!(client.answer().is_err(), "{mpm}");
                }
            }
            site.wait_until("no program", || children(spawner) == 0);
        }
        assert_eq!(site.get("/cgi-bin/run").status, 200);
    }
}
