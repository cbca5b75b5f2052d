//! A proxy is restarted and upgraded while it forwards: requests over kept connections succeed, and
//! tunnels go on.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::thread;

use crate::client::Client;
use crate::load::under_load;
use crate::shapes::start;
use crate::site::{PROGRAM, Site};
use crate::upgrade::{self, install, upgrade};

/// Clients over kept connections.
const CLIENTS: usize = 16;
/// Tunnels at the same time.
const TUNNELS: usize = 4;

/// A server that switches protocols and sends back what it gets; returns its port.
fn start_echo() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || echo(stream));
        }
    });
    port
}

fn echo(mut stream: TcpStream) -> io::Result<()> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte)?;
        head.extend_from_slice(&byte);
    }
    stream.write_all(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n")?;
    let mut bytes = [0; 4096];
    loop {
        match stream.read(&mut bytes)? {
            0 => return Ok(()),
            count => stream.write_all(&bytes[..count])?,
        }
    }
}

fn open_tunnel(site: &Site) -> Client {
    let head = "GET /ws/ HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n\
                Upgrade: websocket\r\n\r\n";
    let mut client = site.client();
    client.send(head.as_bytes()).unwrap();
    assert_eq!(client.head().unwrap().status, 101);
    client
}

fn say(tunnels: &mut [Client], what: &str) {
    for client in tunnels.iter_mut() {
        client.send(what.as_bytes()).unwrap();
    }
    for client in tunnels.iter_mut() {
        assert_eq!(client.take(what.len()).unwrap(), what.as_bytes());
    }
}

#[test]
fn a_proxy_is_replaced_under_load() {
    let back = start("replaced-back", "event", "");
    let echo = start_echo();
    for mpm in ["event", "worker", "prefork"] {
        let mut site = Site::new("replaced");
        let modules = [&format!("mpm_{mpm}"), "authz_core", "proxy", "proxy_http"]
            .map(|name| format!("LoadModule {name}_module modules/mod_{name}.so\n"))
            .concat();
        site.configure(&format!(
            "{modules}ProxyPass /ws/ http://127.0.0.1:{echo}/ upgrade=websocket\n\
             ProxyPass / http://127.0.0.1:{}/\n",
            back.port
        ));
        upgrade::start(&mut site);
        let mut tunnels: Vec<Client> = (0..TUNNELS).map(|_| open_tunnel(&site)).collect();
        let seen = under_load(&site, CLIENTS, || {
            for number in 0..2 {
                site.restart_gracefully();
                say(&mut tunnels, "restarted");
                tunnels.push(open_tunnel(&site));
                install(&site, Path::new(PROGRAM));
                assert!(upgrade(&site), "{}", site.error_log());
                say(&mut tunnels, &format!("upgraded {number}"));
                tunnels.push(open_tunnel(&site));
            }
        });
        seen.assert_all_answered(&site);
        say(&mut tunnels, "end");
        for number in ["AH01102", "AH01114", "AH00957", "AH00941"] {
            assert_eq!(site.count_lines(number), 0, "{mpm}: {}", site.error_log());
        }
    }
}
