//! The server behind the proxy: it reads each connection with the strict parser, answers each
//! request with its tag, and notes what it has received.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::payload::tag_in;
use crate::strict::{Parsed, Reader, request};

/// What came, by tag.
#[derive(Default)]
pub struct Seen {
    /// The targets of whole requests.
    pub targets: HashMap<String, Vec<Vec<u8>>>,
    /// What is not a request, with the tag of the last request of its connection.
    pub faults: Vec<String>,
    /// Tags of requests that were not complete.
    pub parts: Vec<String>,
    /// Connections.
    pub connections: usize,
    /// Connections that are open.
    pub open: usize,
}

/// The backend.
pub struct Backend {
    pub port: u16,
    pub seen: Arc<Mutex<Seen>>,
}

impl Backend {
    pub fn start() -> Backend {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::new(Mutex::new(Seen::default()));
        let own = seen.clone();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let own = own.clone();
                own.lock().unwrap().connections += 1;
                own.lock().unwrap().open += 1;
                thread::spawn(move || {
                    serve(stream, &own);
                    own.lock().unwrap().open -= 1;
                });
            }
        });
        Backend { port, seen }
    }
}

fn serve(mut stream: TcpStream, seen: &Mutex<Seen>) {
    let (mut input, mut last) = (Vec::new(), "-".to_owned());
    let mut is_asked = false;
    loop {
        match request(&input, Reader::Backend) {
            Parsed::Whole(target, length) => {
                last = tag_in(&target).unwrap_or_else(|| "-".to_owned());
                if length < input.len() {
                    fault(seen, &last, "more than a request", &input);
                }
                let is_head = input.starts_with(b"HEAD ");
                input.drain(..length);
                is_asked = false;
                seen.lock().unwrap().targets.entry(last.clone()).or_default().push(target);
                if stream.write_all(answer(&last, is_head).as_bytes()).is_err() {
                    return;
                }
            }
            Parsed::Part => {
                if !is_asked && is_waiting(&input) {
                    is_asked = true;
                    let _ = stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n");
                }
                let mut bytes = [0; 16 * 1024];
                let count = stream.read(&mut bytes).unwrap_or(0);
                if count == 0 {
                    if !input.is_empty() {
                        let tag = tag_in(&input).unwrap_or_else(|| "-".to_owned());
                        seen.lock().unwrap().parts.push(tag);
                    }
                    return;
                }
                input.extend_from_slice(&bytes[..count]);
            }
            Parsed::Broken(rule) => return fault(seen, &last, rule, &input),
        }
    }
}

/// Whether the sender waits for 100 before it sends a body.
fn is_waiting(input: &[u8]) -> bool {
    let head = input.to_ascii_lowercase();
    let end = head.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or(0);
    let field = b"\r\nexpect: 100-continue\r\n";
    head[..(end + 2).min(head.len())].windows(field.len()).any(|line| line == field)
}

fn answer(tag: &str, is_head: bool) -> String {
    let body = if is_head { "" } else { tag };
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nTag: {tag}\r\n\r\n{body}", tag.len())
}

fn fault(seen: &Mutex<Seen>, last: &str, rule: &str, input: &[u8]) {
    let fault = format!("after {last}, {rule}: {}", input.escape_ascii());
    seen.lock().unwrap().faults.push(fault);
}
