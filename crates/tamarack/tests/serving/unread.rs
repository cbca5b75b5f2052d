//! Clients that do not read their responses: what they were sent waits in memory or in a file, and
//! the connections of a proxy's worker serve others.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, SocketType, sockopt};

use crate::backend::{Backend, pattern};
use crate::client::{Client, PATIENCE};
use crate::idle::anonymous_memory;
use crate::is_long;
use crate::php::Php;
use crate::shapes::start;
use crate::site::Site;

/// Slow clients.
const CLIENTS: usize = 1_000;
/// The same without long tests.
const CLIENTS_SHORT: usize = 150;
/// Connections to the backend.
const MAX: usize = 8;
/// Bytes of a response that is kept in memory.
const SMALL: usize = 32 * 1024;
/// Bytes of a response that is kept in a file.
const LARGE: usize = 3_000_000;
/// Clients that ask for it.
const CLIENTS_LARGE: usize = 24;
/// Bytes of memory for each of them.
const BYTES_EACH_MAX: usize = 640 * 1024;
/// Bytes of the client's buffer.
const BUFFER: usize = 4096;
/// Requests whose times are compared.
const REQUESTS: usize = 200;
/// Comparisons, since a busy machine may be slow at times.
const TRIES: usize = 8;

fn site(backend: &Backend, more: &str) -> Site {
    let port = backend.port;
    let modules = ["proxy", "proxy_http"]
        .map(|name| format!("LoadModule {name}_module modules/mod_{name}.so\n"))
        .concat();
    let more = format!(
        "{modules}StartServers 1\nServerLimit 1\nThreadLimit 64\nThreadsPerChild 64\n\
         MaxRequestWorkers 64\nAsyncRequestWorkerFactor 40\nSendBufferSize 8192\n{more}\
         ProxyPass /b/ http://127.0.0.1:{port}/ max={MAX}\n"
    );
    start("unread", "event", &more)
}

/// A client that reads only when it is asked to, with little room for what it has not read.
struct Slow {
    stream: TcpStream,
    received: Vec<u8>,
}

impl Slow {
    fn ask(port: u16, path: &str) -> Slow {
        let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        sockopt::set_socket_recv_buffer_size(&socket, BUFFER).unwrap();
        rustix::net::connect(&socket, &SocketAddr::from(([127, 0, 0, 1], port))).unwrap();
        let mut stream = TcpStream::from(socket);
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        Slow { stream, received: Vec::new() }
    }

    /// Reads a little.
    fn read_some(&mut self) -> io::Result<()> {
        let mut bytes = [0; 1024];
        let count = self.stream.read(&mut bytes)?;
        self.received.extend_from_slice(&bytes[..count]);
        if count == 0 { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
    }

    /// Reads chunks up to the last one, as they come.
    fn rest(mut self) -> Vec<u8> {
        sockopt::set_socket_recv_buffer_size(&self.stream, LARGE).unwrap();
        while !self.received.ends_with(b"\r\n0\r\n\r\n") {
            self.read_some().unwrap();
        }
        self.received
    }

    /// Reads everything.
    fn body(mut self, length: usize) -> Vec<u8> {
        sockopt::set_socket_recv_buffer_size(&self.stream, LARGE).unwrap();
        loop {
            let head = self.received.windows(4).position(|four| four == b"\r\n\r\n");
            if let Some(at) = head.filter(|at| self.received.len() >= at + 4 + length) {
                return self.received.split_off(at + 4);
            }
            self.read_some().unwrap();
        }
    }
}

/// The time that all but a hundredth of the requests take at most.
fn p99(client: &mut Client) -> Duration {
    let mut times: Vec<Duration> = (0..REQUESTS)
        .map(|_| {
            let begin = Instant::now();
            assert_eq!(client.get("/b/1000").unwrap().body.len(), 1000);
            begin.elapsed()
        })
        .collect();
    times.sort();
    times[REQUESTS * 99 / 100]
}

#[test]
fn slow_clients_keep_no_connection_from_others() {
    let count = if is_long() { CLIENTS } else { CLIENTS_SHORT };
    let backends = [Backend::start(), Backend::start()];
    let sites = backends.each_ref().map(|backend| site(backend, ""));
    let [mut client, mut alone] = sites.each_ref().map(Site::client);
    let path = format!("/b/pattern-{SMALL}");
    let mut slow: Vec<Slow> = (0..count).map(|_| Slow::ask(sites[0].port, &path)).collect();
    sites[0].wait_until("all requests", || backends[0].requests() == count);
    let mut times = Vec::new();
    let is_fast = (0..TRIES).any(|_| {
        slow.iter_mut().for_each(|slow| slow.read_some().unwrap());
        // The same without slow clients, on the same machine.
        let (one, other) = (p99(&mut client), p99(&mut alone));
        times.push((one, other));
        one < 2 * other
    });
    assert!(is_fast, "among slow clients, and without: {times:?}");
    assert!(backends[0].accepted() <= MAX, "{}", backends[0].accepted());
    let expected = pattern(SMALL);
    assert!(slow.into_iter().all(|slow| slow.body(SMALL) == expected));
}

#[test]
fn large_responses_of_slow_clients_wait_in_files() {
    let backend = Backend::start();
    let site = site(&backend, "ProxySpool 4M 128M\n");
    let mut client = site.client();
    assert_eq!(client.get("/b/1000").unwrap().status, 200);
    let memory = || site.children().into_iter().map(anonymous_memory).sum::<usize>();
    let before = memory();
    let slow: Vec<Slow> =
        (0..CLIENTS_LARGE).map(|_| Slow::ask(site.port, &format!("/b/pattern-{LARGE}"))).collect();
    site.wait_until("all requests", || backend.requests() > CLIENTS_LARGE);
    // Only MAX of them have a connection unless the others gave theirs back.
    for _ in 0..REQUESTS {
        assert_eq!(client.get("/b/1000").unwrap().status, 200);
    }
    let grown = memory().saturating_sub(before);
    println!("{} bytes each", grown / CLIENTS_LARGE);
    assert!(grown <= CLIENTS_LARGE * BYTES_EACH_MAX, "{grown}");
    let expected = pattern(LARGE);
    assert!(slow.into_iter().all(|slow| slow.body(LARGE) == expected));
    assert!(backend.accepted() <= MAX);
}

#[test]
fn files_of_responses_have_limits() {
    let backend = Backend::start();
    let site = site(&backend, "ProxySpool 1M 4M\n");
    let slow: Vec<Slow> =
        (0..MAX).map(|_| Slow::ask(site.port, &format!("/b/pattern-{LARGE}"))).collect();
    site.wait_until("all requests", || backend.requests() == MAX);
    // They keep their connections.
    let mut other = site.client();
    other.ask("/b/1000").unwrap();
    let expected = pattern(LARGE);
    assert!(slow.into_iter().all(|slow| slow.body(LARGE) == expected));
    assert_eq!(other.answer().unwrap().status, 200);
    assert!(backend.accepted() <= MAX);
}

#[test]
fn a_slow_client_does_not_keep_php() {
    let Some(php) = Php::start_with("php-unread", 1, "") else {
        println!("no PHP-FPM (1 skipped)");
        return;
    };
    let (port, htdocs) = (php.port, php.root.join("htdocs"));
    let modules = ["proxy", "proxy_fcgi"]
        .map(|name| format!("LoadModule {name}_module modules/mod_{name}.so\n"))
        .concat();
    let more = format!(
        "{modules}SendBufferSize 8192\nProxySpool 4M\n\
         ProxyPass /php/ fcgi://127.0.0.1:{port}{}/\n",
        htdocs.display()
    );
    let site = start("php-unread", "event", &more);
    site.wait_until("PHP-FPM", || TcpStream::connect(("127.0.0.1", port)).is_ok());
    let whole = site.get("/php/large.php").body;
    let mut slow = Slow::ask(site.port, "/php/large.php");
    slow.read_some().unwrap();
    // PHP has one process.
    assert_eq!(site.get("/php/hello.php").text(), "hello\n");
    let framing = whole.len() / 16;
    let rest = slow.rest();
    assert!(rest.len() > whole.len() && rest.len() < whole.len() + framing, "{}", rest.len());
}
