//! Backends that misbehave on connections that are kept: no request gets what belongs to another.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use crate::client::Client;
use crate::shapes::start;
use crate::site::Site;

/// Bytes of a body that no socket takes as a whole.
const LARGE: usize = 40_000_000;
/// Bytes that a proxy reads at once, with the head of a response.
const READ: usize = 16 * 1024;
/// How long a backend dawdles: longer than `timeout`.
const DAWDLES: Duration = Duration::from_secs(5);
/// How many fields of an interim response make it longer than the buffers of sockets.
const FIELDS: usize = 80;
/// How many members redirect to each other.
const REDIRECTING: usize = 12;

/// A backend, of whose connections `serve` takes care; returns its port.
fn backend(serve: impl Fn(TcpStream) -> io::Result<()> + Send + Sync + 'static) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let serve = Arc::new(serve);
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let serve = serve.clone();
            thread::spawn(move || serve(stream));
        }
    });
    port
}

fn site(name: &str, modules: &[&str], more: &str) -> Site {
    let modules: String = modules
        .iter()
        .map(|name| format!("LoadModule {name}_module modules/mod_{name}.so\n"))
        .collect();
    let more = format!("{modules}StartServers 1\nServerLimit 1\nThreadsPerChild 8\n{more}");
    start(name, "event", &more)
}

/// Reads up to the end of a head; `None` at the end of the connection.
fn head(stream: &mut TcpStream) -> io::Result<Option<String>> {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        if stream.read(&mut byte)? == 0 {
            return Ok(None);
        }
        bytes.push(byte[0]);
    }
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

/// Sends a request with a large body, as far as the server takes it.
fn upload(site: &Site, more: &str) -> Client {
    let mut client = site.client();
    let head = format!(
        "POST /upload HTTP/1.1\r\nHost: localhost\r\n{more}Content-Length: {LARGE}\r\n\r\n"
    );
    client.send(head.as_bytes()).unwrap();
    let mut socket = client.socket();
    thread::spawn(move || socket.write_all(&vec![b'x'; LARGE]));
    client
}

/// A backend that lets the body of a request wait, responds, and then takes all that comes.
fn dawdling(taken: Arc<Mutex<Vec<u8>>>, continues: bool) -> u16 {
    backend(move |mut stream| {
        while let Some(head) = head(&mut stream)? {
            if head.starts_with("GET") {
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\ngot")?;
                continue;
            }
            if continues {
                stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
            }
            thread::sleep(DAWDLES);
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nslow")?;
            let mut bytes = vec![0; 1 << 20];
            loop {
                let count = stream.read(&mut bytes)?;
                if count == 0 {
                    return Ok(());
                }
                let other = bytes[..count].iter().filter(|byte| **byte != b'x').copied();
                taken.lock().unwrap().extend(other);
            }
        }
        Ok(())
    })
}

#[test]
fn a_request_that_was_sent_in_part_ends_its_connection() {
    for (more, continues) in [("", false), ("Expect: 100-continue\r\n", true)] {
        let taken = Arc::new(Mutex::new(Vec::new()));
        let port = dawdling(taken.clone(), continues);
        let map = format!("ProxyPass / http://127.0.0.1:{port}/ timeout=1\n");
        let site = site("sent-in-part", &["proxy", "proxy_http"], &map);
        let mut client = upload(&site, more);
        let mut answer = client.head().unwrap();
        if answer.status == 100 {
            answer = client.head().unwrap();
        }
        assert_eq!(answer.status, 504, "{}", answer.head);
        thread::sleep(DAWDLES);
        for _ in 0..3 {
            assert_eq!(site.get("/other").text(), "got");
        }
        let taken = String::from_utf8_lossy(&taken.lock().unwrap()).into_owned();
        assert!(!taken.contains("/other"), "{taken}");
        site.wait_for_line("AH01084: pass request body failed to");
        site.wait_for_line("AH01097: pass request body failed to");
    }
}

#[test]
fn a_request_that_waits_for_a_connection_gets_its_own_response() {
    let port = backend(|mut stream| {
        while let Some(head) = head(&mut stream)? {
            if !head.starts_with("GET /first ") {
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nown")?;
                continue;
            }
            thread::sleep(Duration::from_millis(600));
            let mut bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 16342\r\n\r\n".to_vec();
            bytes.resize(bytes.len() + 16342, b'a');
            assert_eq!(bytes.len(), READ);
            bytes.extend_from_slice(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nother");
            stream.write_all(&bytes)?;
        }
        Ok(())
    });
    let map = format!("ProxyPass / http://127.0.0.1:{port}/ max=1\n");
    let site = site("waits-for-one", &["proxy", "proxy_http"], &map);
    let mut first = site.client();
    first.ask("/first").unwrap();
    thread::sleep(Duration::from_millis(200));
    let mut second = site.client();
    second.ask("/second").unwrap();
    assert_eq!(first.answer().unwrap().status, 200);
    assert_eq!(second.answer().unwrap().text(), "own");
}

/// A record of FastCGI.
fn record(kind: u8, content: &[u8]) -> Vec<u8> {
    let [high, low] = u16::try_from(content.len()).unwrap().to_be_bytes();
    let mut record = vec![1, kind, 0, 1, high, low, 0, 0];
    record.extend_from_slice(content);
    record
}

#[test]
fn a_record_that_was_sent_in_part_ends_its_connection() {
    let taken = Arc::new(Mutex::new(Vec::new()));
    let others = taken.clone();
    let port = backend(move |mut stream| {
        let mut bytes = Vec::new();
        let has = |bytes: &[u8], path: &[u8]| bytes.windows(path.len()).any(|some| some == path);
        while !has(&bytes, b"/upload") && !has(&bytes, b"/other") {
            let mut some = [0; 1000];
            match stream.read(&mut some)? {
                0 => return Ok(()),
                count => bytes.extend_from_slice(&some[..count]),
            }
        }
        let is_upload = has(&bytes, b"/upload");
        stream.write_all(&record(6, b"Content-Type: text/plain\r\n\r\n"))?;
        for _ in 0..if is_upload { 40 } else { 1 } {
            stream.write_all(&record(6, &[b'r'; 60_000]))?;
        }
        stream.write_all(&record(6, b""))?;
        stream.write_all(&record(3, &[0; 8]))?;
        thread::sleep(Duration::from_millis(500));
        let mut bytes = vec![0; 1 << 20];
        loop {
            let count = stream.read(&mut bytes)?;
            if count == 0 || !is_upload {
                return Ok(());
            }
            let other = bytes[..count].iter().filter(|byte| **byte != b'x').copied();
            others.lock().unwrap().extend(other);
        }
    });
    let map = format!("ProxyPass / fcgi://127.0.0.1:{port}/ enablereuse=on\n");
    let site = site("record-in-part", &["proxy", "proxy_fcgi"], &map);
    let mut client = upload(&site, "");
    assert_eq!(client.answer().unwrap().body.len(), 40 * 60_000);
    for _ in 0..3 {
        assert_eq!(site.get("/other").body.len(), 60_000);
    }
    let taken = String::from_utf8_lossy(&taken.lock().unwrap()).into_owned();
    assert!(!taken.contains("/other"), "{taken}");
}

#[test]
fn members_that_redirect_to_each_other_are_looked_at_once() {
    let port = backend(|mut stream| {
        while head(&mut stream)?.is_some() {
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\ngot")?;
        }
        Ok(())
    });
    let members: String = (0..REDIRECTING)
        .flat_map(|number| [(number, 'a', 'b'), (number + REDIRECTING, 'b', 'a')])
        .map(|(number, route, redirect)| {
            let port = 10_000 + number;
            format!(
                "BalancerMember http://127.0.0.1:{port} route={route} redirect={redirect} \
                 status=+D\n"
            )
        })
        .collect();
    let map = format!(
        "<Proxy balancer://b>\n{members}BalancerMember http://127.0.0.1:{port} route=c\n\
         ProxySet stickysession=SID\n</Proxy>\nProxyPass / balancer://b/\n"
    );
    let modules = ["proxy", "proxy_http", "proxy_balancer", "slotmem_shm", "lbmethod_byrequests"];
    let site = site("redirecting", &modules, &map);
    let mut client = site.client();
    let begin = Instant::now();
    client.send(b"GET /x HTTP/1.1\r\nHost: localhost\r\nCookie: SID=x.a\r\n\r\n").unwrap();
    assert_eq!(client.answer().unwrap().text(), "got");
    assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
}

#[test]
fn a_large_interim_response_precedes_100_continue() {
    let field = format!("Link: {}\r\n", "a".repeat(8000)).repeat(FIELDS);
    let port = backend(move |mut stream| {
        while head(&mut stream)?.is_some() {
            let interim = format!("HTTP/1.1 103 Early Hints\r\n{field}\r\n");
            stream.write_all(interim.as_bytes())?;
            stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
            stream.read_exact(&mut [0; 3])?;
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\ngot")?;
        }
        Ok(())
    });
    let map = format!("SendBufferSize 8192\nProxyPass / http://127.0.0.1:{port}/\n");
    let site = site("interim", &["proxy", "proxy_http"], &map);
    let mut client = site.client();
    let head = b"POST /x HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n\
                 Content-Length: 3\r\n\r\n";
    client.send(head).unwrap();
    thread::sleep(Duration::from_millis(500));
    let early = client.head().unwrap();
    assert_eq!(early.status, 103);
    assert_eq!(early.head.matches("\r\nLink: aaa").count(), FIELDS);
    assert_eq!(client.head().unwrap().status, 100);
    client.send(b"abc").unwrap();
    assert_eq!(client.answer().unwrap().text(), "got");
}
