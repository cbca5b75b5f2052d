//! Responses that lie about their end or are none: the client gets Apache's status, and the next
//! request another connection.

use std::collections::HashSet;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::client::exchange;
use crate::expected::Expected;
use crate::join;
use crate::payload::{List, ODD, Payload, tag, tag_in, tagged};
use crate::setup::{Setup, at_once};

/// Fewer payloads mean that a class is lost.
const LEAST: usize = 150;
/// A second response, which belongs to no request.
const SMUGGLED: &str = "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nsmuggled";
/// The class of payloads after which the backend keeps the connection.
const KEPT: &str = "kept.";

const LINES: &[&str] = &[
    "HTTP/1.1 200 OK",
    "HTTP/1.0 200 OK",
    "HTTP/1.2 200 OK",
    "HTTP/2.0 200 OK",
    "HTTP/0.9 200 OK",
    "HTTP/1.1 200",
    "HTTP/1.1 200 ",
    "HTTP/1.1  200 OK",
    "HTTP/1.1\t200 OK",
    "HTTP/1.1 20 OK",
    "HTTP/1.1 2000 OK",
    "HTTP/1.1 abc OK",
    "HTTP/1.1 -200 OK",
    "HTTP/1.1 099 OK",
    "HTTP/1.1 000 OK",
    "HTTP/1.1 600 OK",
    "HTTP/1.1 999 OK",
    "HTTP/1.1",
    "HTTP/1 200 OK",
    "HTTP/11.1 200 OK",
    "http/1.1 200 OK",
    "HTTPS/1.1 200 OK",
    " HTTP/1.1 200 OK",
    "\r\nHTTP/1.1 200 OK",
    "ICY 200 OK",
    "HTTP/1.1 200 O\rK",
    "HTTP/1.1 200 O\0K",
    "hello",
    "HTTP/1.1 204 No",
    "HTTP/1.1 304 No",
    "HTTP/1.1 101 Switching Protocols",
    "HTTP/1.1 100 Continue",
    "HTTP/1.1 199 x",
    "HTTP/1.1 205 x",
];

const FIELDS: &[&str] = &[
    "Content-Length: 5",
    "Content-Length: +5",
    "Content-Length: -5",
    "Content-Length: 5, 5",
    "Content-Length: 5, 6",
    "Content-Length: 5\r\nContent-Length: 5",
    "Content-Length: x",
    "Content-Length: 5\r\nContent-Length: 6",
    "Content-Length:",
    "Content-Length: 0x5",
    "Content-Length: 99999999999999999999",
    "Content-Length : 5",
    "Content-Length: 9",
    "Content-Length: 5\r\n 0",
    "Content-Length:\r\n 5",
    "Transfer-Encoding: identity",
    "Transfer-Encoding: xchunked",
    "Transfer-Encoding: gzip",
    "Transfer-Encoding: chunked, gzip",
    "Transfer-Encoding : chunked",
    "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
    "X-A: b\r\n c",
    " X-A: b",
    "X-A",
    ": b",
    "X A: b",
    "X-A : b",
    "X-A: b\rc",
    "X-A: b\0c",
    "X-A: b\nX-B: c",
    "Upgrade: websocket\r\nConnection: Upgrade",
    "Connection: Content-Length",
];

const BODIES: &[&str] = &[
    "5\r\nhello\r\n0\r\n\r\n",
    "",
    "5",
    "5\r\nhel",
    "5\r\nhello",
    "5\r\nhello\r\n",
    "0\r\n",
    "x\r\n",
    "5\r\nhello\r\n0\r\n",
    "-5\r\nhello\r\n0\r\n\r\n",
    "0x5\r\nhello\r\n0\r\n\r\n",
    "\r\n",
    "5\r\nhelloXX0\r\n\r\n",
    "5;a=b\r\nhello\r\n0\r\n\r\n",
    "ffffffffffffffff\r\nhello\r\n0\r\n\r\n",
    "5\nhello\n0\n\n",
    "5 \r\nhello\r\n0\r\n\r\n",
    "5\r\nhello\r\n0\r\nX-A: b\r\n\r\n",
    "5\r\nhello\r\n0\r\nX-A\r\n\r\n",
    "5\r\nhello\r\n0\r\nContent-Length: 3\r\n\r\n",
];

fn all() -> Vec<Payload> {
    let mut list = List::default();
    for (number, line) in LINES.iter().enumerate() {
        let rest = "\r\nTag: tTTTT\r\nContent-Length: 5\r\n\r\nhello";
        list.add(format!("line.{number}"), join!(line, rest));
    }
    for (number, field) in FIELDS.iter().enumerate() {
        let head = join!("HTTP/1.1 200 OK\r\nTag: tTTTT\r\nX-B: b\r\n", field);
        list.add(format!("field.{number}.alone"), join!(head, "\r\n\r\nhello"));
        let coding = "\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
        list.add(format!("field.{number}.chunked"), join!(head, coding));
    }
    for (number, body) in BODIES.iter().enumerate() {
        let head = "HTTP/1.1 200 OK\r\nTag: tTTTT\r\nTransfer-Encoding: chunked\r\n\r\n";
        list.add(format!("chunks.{number}"), join!(head, body));
    }
    for &odd in ODD {
        let head = "HTTP/1.1 200 OK\r\nTag: tTTTT\r\nX";
        let rest = "A: b\r\nContent-Length: 5\r\n\r\nhello";
        list.add(format!("odd.name.x{odd:02x}"), join!(head, [odd], rest));
    }
    for count in [1, 9, 10, 11, 12] {
        let rest = "HTTP/1.1 200 OK\r\nTag: tTTTT\r\nContent-Length: 5\r\n\r\nhello";
        let interim = "HTTP/1.1 100 Continue\r\n\r\n".repeat(count);
        list.add(format!("interim.{count}"), join!(interim, rest));
    }
    let whole = "HTTP/1.1 200 OK\r\nTag: tTTTT\r\nContent-Length: 5\r\n\r\nhello";
    for end in [0, 4, 9, 15, 17, 22, 50, 51, 52] {
        list.add(format!("cut.{end}"), &whole.as_bytes()[..end]);
    }
    kept(&mut list, whole);
    assert!(list.payloads.len() >= LEAST, "only {} payloads", list.payloads.len());
    list.payloads
}

/// Responses whose end is known, with more behind it; `kept.good` has nothing.
fn kept(list: &mut List, whole: &str) {
    for number in 0..20 {
        list.add(format!("{KEPT}good.{number}"), whole);
        let more = join!(whole, SMUGGLED);
        list.add(format!("{KEPT}more.{number}"), more);
        let both = whole.replace("Content", "Transfer-Encoding: chunked\r\nContent");
        let both = both.replace("hello", "5\r\nhello\r\n0\r\n\r\n");
        list.add(format!("{KEPT}both.{number}"), both.clone());
        list.add(format!("{KEPT}both-more.{number}"), join!(both, SMUGGLED));
    }
}

/// Sends a request for each, and compares or records.
pub fn run(is_recording: bool, faults: &mut Vec<String>) {
    let payloads = Arc::new(all());
    let followed = Arc::new(Mutex::new(HashSet::new()));
    let ports = [(); 2].map(|()| listen(&payloads, &followed));
    let config = format!(
        "ProxyPass /k/ http://127.0.0.1:{}/ retry=0\n\
         ProxyPass / http://127.0.0.1:{}/ retry=0 disablereuse=on\n",
        ports[0], ports[1]
    );
    let setup = Setup::start(is_recording, &config);
    let port = setup.port();
    let answers = at_once(&payloads, |number, payload| {
        let path = if payload.name.starts_with(KEPT) { "/k" } else { "" };
        let head = format!("GET {path}/{} HTTP/1.1\r\nHost: localhost\r\n\r\n", tag(number));
        exchange(port, head.as_bytes())
    });
    setup.stop_server();
    let statuses: Vec<(String, String)> = payloads
        .iter()
        .zip(&answers)
        .map(|(payload, answers)| (payload.name.clone(), answers.statuses.join(" ")))
        .collect();
    let expected = Expected::load("responses_expected");
    match is_recording {
        true => expected.record(&statuses),
        false => expected.compare(&statuses, faults),
    }
    let followed = followed.lock().unwrap();
    for (number, (payload, answers)) in payloads.iter().zip(&answers).enumerate() {
        if answers.tags.iter().any(|given| *given != tag(number)) {
            faults.push(format!("{}: the response of another", payload.name));
        }
        if followed.contains(&number) && !payload.name.starts_with("kept.good") {
            faults.push(format!("{}: its connection was used again", payload.name));
        }
    }
    if followed.is_empty() {
        faults.push("no connection was used again".to_owned());
    }
    println!("{} responses, {} connections used again", payloads.len(), followed.len());
}

fn listen(payloads: &Arc<Vec<Payload>>, followed: &Arc<Mutex<HashSet<usize>>>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (payloads, followed) = (payloads.clone(), followed.clone());
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let (payloads, followed) = (payloads.clone(), followed.clone());
            thread::spawn(move || serve(stream, &payloads, &followed));
        }
    });
    port
}

fn serve(mut stream: TcpStream, payloads: &[Payload], followed: &Mutex<HashSet<usize>>) {
    let (mut input, mut last) = (Vec::new(), None);
    loop {
        let mut bytes = [0; 4096];
        match stream.read(&mut bytes) {
            Ok(count) if count > 0 => input.extend_from_slice(&bytes[..count]),
            _ => return,
        }
        if !input.ends_with(b"\r\n\r\n") {
            continue;
        }
        followed.lock().unwrap().extend(last);
        let Some(tag) = tag_in(&input) else { return };
        let number: usize = tag[1..].parse().unwrap();
        input.clear();
        let _ = stream.write_all(&tagged(&payloads[number].bytes, &tag));
        last = Some(number);
        if !payloads[number].name.starts_with(KEPT) {
            let _ = stream.shutdown(Shutdown::Write);
        }
    }
}
