//! Very many WebSockets through the proxy that say nothing.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use crate::client::Client;
use crate::idle::{anonymous_memory, connections_possible};
use crate::is_long;
use crate::shapes::start;
use crate::site::Site;

/// Idle tunnels.
const TUNNELS: usize = 10_000;
/// The same without long tests.
const TUNNELS_SHORT: usize = 3_000;
/// Tunnels that warm up pools.
const BEFORE: usize = 100;
/// Most bytes of memory for each, beside the kernel's for its two sockets.
const BYTES_EACH_MAX: usize = 4 * 1024;
/// Other growth of the process in bytes: its pools, and partly used pages.
const BYTES_BESIDE: usize = 2 * 1024 * 1024;
/// Every so many tunnels carry bytes in the end.
const USED: usize = 97;

/// A server that switches protocols, and sends back what comes then, on one thread: connections are
/// made one after the other, and so are bytes on them.
fn start_backend(use_after: usize) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || -> io::Result<()> {
        let mut streams = Vec::new();
        for stream in listener.incoming().take(use_after) {
            let mut stream = stream?;
            receive_head(&mut stream)?;
            stream.write_all(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n")?;
            streams.push(stream);
        }
        for stream in streams.iter_mut().step_by(USED) {
            let mut bytes = [0; 4];
            stream.read_exact(&mut bytes)?;
            stream.write_all(&bytes)?;
        }
        // The others stay open until the test ends.
        loop {
            thread::park();
        }
    });
    port
}

fn receive_head(stream: &mut TcpStream) -> io::Result<()> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte)?;
        head.extend_from_slice(&byte);
    }
    Ok(())
}

fn open(site: &Site, count: usize) -> Vec<Client> {
    let head = "GET /ws/ HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n\
                Upgrade: websocket\r\n\r\n";
    (0..count)
        .map(|_| {
            let mut client = site.client();
            client.send(head.as_bytes()).unwrap();
            assert_eq!(client.head().unwrap().status, 101);
            client
        })
        .collect()
}

#[test]
fn many_idle_tunnels_cost_little() {
    let wanted = if is_long() { TUNNELS } else { TUNNELS_SHORT };
    // Each takes twice the descriptors that a connection takes.
    let count = connections_possible(2 * wanted) / 2;
    let port = start_backend(count);
    let site = start(
        "tunnels",
        "event",
        &format!(
            "StartServers 1\nServerLimit 1\nThreadLimit 64\nThreadsPerChild 64\n\
             MaxRequestWorkers 64\nAsyncRequestWorkerFactor 400\nTimeout 300\n\
             LoadModule proxy_module modules/mod_proxy.so\n\
             LoadModule proxy_http_module modules/mod_proxy_http.so\n\
             ProxyPass /ws/ http://127.0.0.1:{port}/ upgrade=websocket\n"
        ),
    );
    let memory = || site.children().into_iter().map(anonymous_memory).sum::<usize>();
    let mut clients = open(&site, BEFORE);
    let before = memory();
    clients.extend(open(&site, count - BEFORE));
    let mut grown = 0;
    // Buffers are returned after a second of inactivity.
    site.wait_until("little memory for each", || {
        grown = memory().saturating_sub(before);
        grown <= count * BYTES_EACH_MAX + BYTES_BESIDE
    });
    println!("{count} tunnels: {} bytes each", grown / count);
    for client in clients.iter_mut().step_by(USED) {
        client.send(b"ping").unwrap();
        client.wait_for_bytes(4).unwrap();
    }
}
