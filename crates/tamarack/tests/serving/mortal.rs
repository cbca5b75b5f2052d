//! Members of a balancer die one after the other and come back: no GET fails whose response had not
//! begun.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::balanced::site;
use crate::client::Client;
use crate::is_long;
use crate::load::SetWhenDropped;

/// Bytes of a response's body.
const BODY_BYTES: usize = 1024;
/// Clients at the same time.
const CLIENTS: usize = 64;
/// Deaths.
const DEATHS: usize = 30;
/// The same without long tests.
const DEATHS_SHORT: usize = 4;

/// A server that can be killed, with all its connections, and revived at the same address.
pub struct Mortal {
    pub port: u16,
    requests: Arc<AtomicUsize>,
    life: Option<Life>,
}

struct Life {
    has_ended: Arc<AtomicBool>,
    connections: Arc<Mutex<Vec<TcpStream>>>,
    accepting: thread::JoinHandle<()>,
}

impl Mortal {
    pub fn start() -> Mortal {
        let mut mortal = Mortal { port: 0, requests: Arc::default(), life: None };
        mortal.revive();
        mortal
    }

    pub fn revive(&mut self) {
        let listener = TcpListener::bind(("127.0.0.1", self.port)).unwrap();
        self.port = listener.local_addr().unwrap().port();
        let has_ended = Arc::<AtomicBool>::default();
        let connections = Arc::<Mutex<Vec<TcpStream>>>::default();
        let (ended, list, requests) = (has_ended.clone(), connections.clone(), &self.requests);
        let requests = requests.clone();
        let accepting = thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if ended.load(Ordering::SeqCst) {
                    return;
                }
                let (requests, copy) = (requests.clone(), stream.try_clone().unwrap());
                list.lock().unwrap().push(copy);
                thread::spawn(move || respond(stream, &requests));
            }
        });
        self.life = Some(Life { has_ended, connections, accepting });
    }

    pub fn kill(&mut self) {
        let Some(life) = self.life.take() else { return };
        life.has_ended.store(true, Ordering::SeqCst);
        // Wakes the thread, which closes its listener.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
        life.accepting.join().unwrap();
        for connection in life.connections.lock().unwrap().drain(..) {
            let _ = connection.shutdown(Shutdown::Both);
        }
    }

    pub fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

fn respond(mut stream: TcpStream, requests: &AtomicUsize) {
    let (mut input, mut piece) = (Vec::new(), [0; 4096]);
    while let Ok(count @ 1..) = stream.read(&mut piece) {
        input.extend_from_slice(&piece[..count]);
        if !input.ends_with(b"\r\n\r\n") {
            continue;
        }
        input.clear();
        requests.fetch_add(1, Ordering::SeqCst);
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {BODY_BYTES}\r\n\r\n");
        let written = stream.write_all(head.as_bytes());
        if written.and_then(|()| stream.write_all(&[b'x'; BODY_BYTES])).is_err() {
            return;
        }
    }
}

/// What one client saw.
#[derive(Debug, Default)]
struct Seen {
    whole: usize,
    /// Responses that broke off: the member died while it sent them.
    broken: usize,
}

impl Seen {
    fn ask(&mut self, client: &mut Client) -> io::Result<()> {
        client.ask("/b/some")?;
        let head = client.head().unwrap();
        assert_eq!(head.status, 200, "{head:?}");
        match client.take(BODY_BYTES) {
            Ok(_) => self.whole += 1,
            Err(error) => {
                self.broken += 1;
                return Err(error);
            }
        }
        Ok(())
    }
}

#[test]
fn no_get_is_lost_while_members_die_and_come_back() {
    let deaths = if is_long() { DEATHS } else { DEATHS_SHORT };
    for mpm in ["event", "prefork"] {
        let mut members = [Mortal::start(), Mortal::start(), Mortal::start()];
        let names = members.each_ref().map(|one| format!("127.0.0.1:{} retry=1", one.port));
        let site = site(mpm, &names, "LogLevel proxy_http:crit\n");
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let _end = SetWhenDropped(&is_over);
            let asking: Vec<_> = (0..CLIENTS)
                .map(|_| {
                    scope.spawn(|| {
                        let (mut client, mut seen) = (site.client(), Seen::default());
                        while !is_over.load(Ordering::SeqCst) {
                            if seen.ask(&mut client).is_err() {
                                client = site.client();
                            }
                        }
                        seen
                    })
                })
                .collect();
            for number in 0..deaths {
                let member = &mut members[number % 3];
                let found_dead = site.count_lines("AH00959");
                member.kill();
                site.wait_until("it is found dead", || site.count_lines("AH00959") > found_dead);
                member.revive();
                let before = member.requests();
                site.wait_until("it serves again", || member.requests() > before);
            }
            is_over.store(true, Ordering::SeqCst);
            let seen: Vec<Seen> = asking.into_iter().map(|asked| asked.join().unwrap()).collect();
            let sum = |of: fn(&Seen) -> usize| seen.iter().map(of).sum::<usize>();
            let (whole, broken) = (sum(|seen| seen.whole), sum(|seen| seen.broken));
            println!("{mpm}: {whole} responses, {broken} broke off in {deaths} deaths");
            assert!(seen.iter().all(|seen| seen.whole > 0));
        });
    }
}
