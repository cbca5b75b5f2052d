//! The memory of a virtual host: what its configuration takes, and what a loop adds that serves it.
#![allow(clippy::unwrap_used, clippy::panic, dead_code, unreachable_pub)]

#[path = "../src/cli.rs"]
mod cli;
#[path = "../src/load.rs"]
mod load;
#[path = "../src/loader.rs"]
mod loader;
#[path = "../src/logs.rs"]
mod logs;
#[path = "../src/startup.rs"]
mod startup;

use std::alloc::System;
use std::fmt::Write as _;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::service::Service;
use mpm::Scoreboard;
use rt::memory::{Counting, taken, taken_by};
use rt::{Acceptor, Loop, Watcher};
use server::engine::Engine;
use server::host::Server;

#[global_allocator]
static ALLOCATOR: Counting<System> = Counting(System);

/// Hosts, and of them those that are there or asked before the measurement begins.
const HOSTS: usize = 600;
const HOSTS_BEFORE: usize = 100;
/// Most bytes of heap that the configuration of a host takes.
const CONFIGURED_BYTES_MAX: usize = 6_400;
/// Most bytes that a loop adds for a host that it serves a file of 1 KiB of: 16 KiB with the above.
const SERVED_BYTES_MAX: usize = 9_920;
/// Bytes of a host's file.
const FILE_BYTES: usize = 1024;

/// In memory if there is such a place: there the file watch can be trusted on any machine.
fn folder() -> PathBuf {
    let memory = Path::new("/dev/shm");
    let base = if memory.is_dir() { memory.to_path_buf() } else { std::env::temp_dir() };
    let root = base.join(format!("tamarack-hosts-{}", std::process::id()));
    let _ = fs::remove_dir_all(&root);
    fs::create_dir_all(root.join("logs")).unwrap();
    for number in 0..HOSTS {
        let documents = root.join(format!("htdocs/h{number}.test"));
        fs::create_dir_all(&documents).unwrap();
        let path = documents.join("page.html");
        fs::write(&path, format!("{number:0FILE_BYTES$}")).unwrap();
        let file = fs::File::options().write(true).open(&path).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1_640_995_200)).unwrap();
    }
    root
}

/// A server of so many hosts of one address, each with its folder, two sections and three names.
fn server(root: &Path, hosts: usize) -> Arc<Server> {
    let shown = root.display();
    let mut text = format!(
        "ServerRoot {shown}\nServerName localhost\nListen 127.0.0.1:1\nMaxKeepAliveRequests 0\n\
         <Directory />\nAllowOverride None\nRequire all denied\n</Directory>\n\
         <Directory {shown}/htdocs>\nRequire all granted\n</Directory>\n"
    );
    for number in 0..hosts {
        let name = format!("h{number}.test");
        let _ = write!(
            text,
            "<VirtualHost *>\nServerName {name}\nServerAlias www.{name} *.{name}\n\
             DocumentRoot {shown}/htdocs/{name}\n<Directory {shown}/htdocs/{name}>\n\
             Options FollowSymLinks\nDirectoryIndex page.html\n</Directory>\n\
             <Location /private>\nRequire all denied\n</Location>\n</VirtualHost>\n"
        );
    }
    let file = root.join("httpd.conf");
    fs::write(&file, text).unwrap();
    let how = load::How { check_document_root: true, ..load::How::default() };
    let loaded = load::read("test", &file, &conf::Options::default(), how);
    loaded.server.unwrap_or_else(|| panic!("{:?}", loaded.diagnostics.first()))
}

/// Asks hosts in turn, by each of their names; the first wrong response. It must not panic, because
/// the loop waits for it.
fn ask(address: SocketAddr, hosts: std::ops::Range<usize>) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    let mut bytes = [0; 8192];
    for number in hosts {
        for (turn, name) in ["", "www.", "any."].into_iter().enumerate() {
            let head = format!(
                "GET /page.html HTTP/1.1\r\nHost: {name}h{number}.test\r\nX: {turn}\r\n\r\n"
            );
            let sent = stream.write_all(head.as_bytes());
            let mut length = 0;
            let body = format!("{number:0FILE_BYTES$}");
            while !bytes[..length].ends_with(body.as_bytes()) {
                let got = stream.read(&mut bytes[length..]).unwrap_or(0);
                length += got;
                if got == 0 || sent.is_err() || !bytes.starts_with(b"HTTP/1.1 200 ") {
                    return Some(String::from_utf8_lossy(&bytes[..length]).into_owned());
                }
            }
        }
    }
    None
}

/// What a loop takes for each of the hosts beyond the first ones.
fn served_bytes(server: Arc<Server>) -> usize {
    let (board, slot) = Scoreboard::of_one_loop().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let client = std::thread::spawn(move || {
        [ask(address, 0..HOSTS_BEFORE), ask(address, HOSTS_BEFORE..HOSTS)]
    });
    let watcher = Arc::new(Watcher::new().unwrap());
    let serving = Loop::new("test").watcher(watcher).start(async move |handle| {
        let service = Service::new(Engine::new(server, handle, slot, board));
        let acceptor = Acceptor::from_fd(OwnedFd::from(listener)).unwrap();
        let mut before = 0;
        for last in [false, true] {
            let accepted = acceptor.accept().await.unwrap();
            http::connection::serve(service.clone(), accepted).await;
            if last {
                return usize::try_from(taken() - before).unwrap();
            }
            before = taken();
        }
        0
    });
    assert_eq!(client.join().unwrap(), [None, None]);
    serving.unwrap() / (HOSTS - HOSTS_BEFORE)
}

#[test]
fn the_memory_of_a_host_is_bounded() {
    let root = folder();
    let (few, few_bytes) = taken_by(|| server(&root, HOSTS_BEFORE));
    drop(few);
    let (many, many_bytes) = taken_by(|| server(&root, HOSTS));
    let configured = many_bytes.saturating_sub(few_bytes) / (HOSTS - HOSTS_BEFORE);
    println!("the configuration of a host has {configured} bytes");
    let served = served_bytes(many);
    println!("a host that is served has {served} bytes more");
    fs::remove_dir_all(root).unwrap();
    assert!(configured <= CONFIGURED_BYTES_MAX, "{configured}");
    assert!(served <= SERVED_BYTES_MAX, "{served}");
}
