//! mod_ident: the client's host is asked for the user, and no other request waits meanwhile.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrIn, bind, connect, socket};

use crate::site::Site;

/// The port of identity servers.
const PORT: u16 = 113;

/// A site that listens at `address` as well.
fn site(name: &str, mpm: &str, address: &str, timeout: u64) -> Site {
    let mut site = Site::new(name);
    let port = site.port;
    site.configure(&format!(
        "LoadModule mpm_{mpm}_module modules/mod_mpm_{mpm}.so\n\
         LoadModule authz_core_module modules/mod_authz_core.so\n\
         LoadModule ident_module modules/mod_ident.so\nListen {address}:{port}\n\
         IdentityCheck On\nIdentityCheckTimeout {timeout}\n\
         CustomLog logs/ident.log \"%U %l\"\n"
    ));
    site.start();
    site
}

/// Asks from `address`, where the site listens.
fn get(site: &Site, address: &str, path: &str) {
    let flags = SockFlag::SOCK_CLOEXEC;
    let socket = socket(AddressFamily::Inet, SockType::Stream, flags, None).unwrap();
    let place = |port| SockaddrIn::from(SocketAddrV4::new(address.parse().unwrap(), port));
    bind(socket.as_raw_fd(), &place(0)).unwrap();
    connect(socket.as_raw_fd(), &place(site.port)).unwrap();
    let mut client = TcpStream::from(socket);
    write!(client, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

fn wait_for_lines(site: &Site, count: usize) -> Vec<String> {
    let began = Instant::now();
    loop {
        let text = std::fs::read_to_string(site.path("logs/ident.log")).unwrap_or_default();
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        if lines.len() >= count || began.elapsed() > Duration::from_secs(60) {
            return lines;
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// An identity server; `None` without the right to be one.
fn identity_server(address: &str) -> Option<TcpListener> {
    TcpListener::bind((address, PORT)).inspect_err(|why| eprintln!("skipped: {why}")).ok()
}

#[test]
fn the_hosts_answer_is_logged() {
    for (number, mpm) in ["event", "worker", "prefork", "loop"].into_iter().enumerate() {
        let address = format!("127.113.{}.{}", std::process::id() % 250 + 1, number + 1);
        let Some(server) = identity_server(&address) else { return };
        thread::spawn(move || {
            for asked in server.incoming() {
                let mut asked = asked.unwrap();
                let mut line = String::new();
                BufReader::new(asked.try_clone().unwrap()).read_line(&mut line).unwrap();
                // In two pieces, with blanks.
                let ports = line.trim_end().to_owned();
                write!(asked, "{ports} : USER").unwrap();
                thread::sleep(Duration::from_millis(50));
                write!(asked, "ID : UNIX : anna-\"x\r\n").unwrap();
            }
        });
        let site = site(&format!("ident-{mpm}"), mpm, &address, 30);
        get(&site, &address, "/index.html");
        assert_eq!(wait_for_lines(&site, 1), ["/index.html anna-\\\"x"], "{mpm}");
        // No host answers there.
        get(&site, "127.0.0.1", "/index.html");
        assert_eq!(wait_for_lines(&site, 2)[1], "/index.html unknown", "{mpm}");
    }
}

#[test]
fn a_silent_host_delays_its_own_clients_only() {
    let address = format!("127.113.{}.99", std::process::id() % 250 + 1);
    let Some(server) = identity_server(&address) else { return };
    let site = site("ident-silent", "loop", &address, 2);
    let began = Instant::now();
    get(&site, &address, "/index.html");
    // The other's host refuses at once, while this one is still waited for.
    get(&site, "127.0.0.1", "/index.html");
    let lines = wait_for_lines(&site, 2);
    assert_eq!(lines, ["/index.html unknown", "/index.html unknown"]);
    assert!(began.elapsed() >= Duration::from_secs(2), "{:?}", began.elapsed());
    drop(server);
}
