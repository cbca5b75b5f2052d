//! Health checks: members that fail get no requests, and get them again once they pass; another
//! process takes over when the one that makes the checks is killed.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};

use crate::shapes::start;
use crate::site::Site;

/// A backend that answers `HTTP/1.0` requests, well or not.
struct Member {
    port: u16,
    is_well: Arc<AtomicBool>,
    /// Whether its responses come byte by byte, and never to an end.
    drips: Arc<AtomicBool>,
    checks: Arc<AtomicUsize>,
}

impl Member {
    fn start() -> Member {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (is_well, checks) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicUsize::new(0)));
        let drips = Arc::new(AtomicBool::new(false));
        let (well, count, slow) = (is_well.clone(), checks.clone(), drips.clone());
        thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { break };
                let mut head = Vec::new();
                let mut byte = [0];
                while !head.ends_with(b"\r\n\r\n") && matches!(stream.read(&mut byte), Ok(1)) {
                    head.push(byte[0]);
                }
                if head.starts_with(b"GET /check") {
                    count.fetch_add(1, Ordering::SeqCst);
                }
                if slow.load(Ordering::SeqCst) {
                    thread::spawn(move || drip(stream));
                    continue;
                }
                let word = if well.load(Ordering::SeqCst) { "well" } else { "ill " };
                let text = format!(
                    "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\n{word}"
                );
                let _ = stream.write_all(text.as_bytes());
            }
        });
        Member { port, is_well, drips, checks }
    }

    fn checks(&self) -> usize {
        self.checks.load(Ordering::SeqCst)
    }
}

fn drip(mut stream: TcpStream) -> io::Result<()> {
    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")?;
    loop {
        stream.write_all(b"x")?;
        thread::sleep(Duration::from_millis(100));
    }
}

fn site(mpm: &str, member: &Member, more: &str) -> Site {
    let load = |name: &str| format!("LoadModule {name}_module modules/mod_{name}.so\n");
    let names = [
        "proxy",
        "proxy_http",
        "proxy_balancer",
        "slotmem_shm",
        "lbmethod_byrequests",
        "proxy_hcheck",
    ];
    let modules: String = names.map(load).concat();
    let port = member.port;
    let more = format!(
        "{modules}{more}ProxyHCExpr well {{hc('body') =~ /well/}}\n\
         ProxyHCTemplate t hcmethod=GET hcinterval=100ms hcfails=2 hcuri=/check hcexpr=well\n\
         <Proxy balancer://b>\nBalancerMember http://127.0.0.1:{port} hctemplate=t\n</Proxy>\n\
         ProxyPass /b/ balancer://b/\n\
         <Location /manager>\nSetHandler balancer-manager\n</Location>\n"
    );
    start("checked", mpm, &more)
}

fn shows(site: &Site, words: &str) -> bool {
    site.get("/manager").text().contains(&format!("<td>Init {words}</td>"))
}

#[test]
fn a_member_that_fails_gets_no_requests_until_it_passes() {
    thread::scope(|scope| {
        for mpm in ["event", "prefork", "worker"] {
            scope.spawn(move || gets_no_requests_until_it_passes(mpm));
        }
    });
}

fn gets_no_requests_until_it_passes(mpm: &str) {
    let member = Member::start();
    let site = site(mpm, &member, "");
    site.wait_until("a check", || member.checks() > 0);
    assert!(shows(&site, "Ok "), "{mpm}");
    assert_eq!(site.get("/b/x").status, 200, "{mpm}");
    member.is_well.store(false, Ordering::SeqCst);
    site.wait_until("the failure", || shows(&site, "HcFl "));
    assert_eq!(site.get("/b/x").status, 503, "{mpm}");
    member.is_well.store(true, Ordering::SeqCst);
    site.wait_until("the recovery", || shows(&site, "Ok "));
    assert_eq!(site.get("/b/x").status, 200, "{mpm}");
}

#[test]
fn a_check_ends_although_the_response_never_does() {
    let member = Member::start();
    let site = site("event", &member, "ProxyTimeout 1\nTimeout 1\n");
    site.wait_until("a check", || member.checks() > 0);
    member.drips.store(true, Ordering::SeqCst);
    site.wait_until("the failure", || shows(&site, "HcFl "));
}

#[test]
fn another_process_takes_over() {
    let member = Member::start();
    let site = site("event", &member, "StartServers 2\nMinSpareThreads 30\n");
    site.wait_until("a check", || member.checks() > 0);
    for child in site.children() {
        kill(child, Signal::SIGKILL).unwrap();
        let before = member.checks();
        // One may have been on its way.
        site.wait_until("further checks", || member.checks() > before + 2);
    }
}
