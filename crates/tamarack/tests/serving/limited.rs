//! `maxtotal`: a limit on connections to a backend that holds for all processes.

use std::thread;

use nix::sys::signal::{Signal, kill};

use crate::backend::Backend;
use crate::shapes::start;
use crate::site::Site;

/// `maxtotal`
const TOTAL: usize = 2;
/// Clients, each of which has a process to itself in prefork.
const CLIENTS: usize = 8;
/// Requests of each.
const REQUESTS: usize = 15;

fn site(mpm: &str, backend: &Backend, parameters: &str) -> Site {
    let shape = match mpm {
        "prefork" => "StartServers 9\nMinSpareServers 1\nServerLimit 12\nMaxRequestWorkers 12\n",
        _ => "StartServers 3\nThreadsPerChild 4\nMinSpareThreads 4\nMaxRequestWorkers 12\n",
    };
    let more = format!(
        "{shape}LoadModule proxy_module modules/mod_proxy.so\n\
         LoadModule proxy_http_module modules/mod_proxy_http.so\n\
         ProxyPass /b/ http://127.0.0.1:{}/ maxtotal={TOTAL} {parameters}\n",
        backend.port
    );
    start("limited", mpm, &more)
}

#[test]
fn a_limit_holds_for_all_processes() {
    for mpm in ["prefork", "worker", "event"] {
        let backend = Backend::start();
        let site = site(mpm, &backend, "");
        thread::scope(|scope| {
            for _ in 0..CLIENTS {
                scope.spawn(|| {
                    let mut client = site.client();
                    for _ in 0..REQUESTS {
                        assert_eq!(client.get("/b/late").unwrap().status, 200, "{mpm}");
                    }
                });
            }
        });
        assert_eq!(backend.most_late(), TOTAL, "{mpm}");
        assert_eq!(backend.requests(), CLIENTS * REQUESTS, "{mpm}");
    }
}

#[test]
fn a_killed_process_has_no_connections() {
    let backend = Backend::start();
    let site = site("prefork", &backend, "acquire=100");
    let children = site.children();
    let mut waiting: Vec<_> = (0..TOTAL).map(|_| site.client()).collect();
    waiting.iter_mut().for_each(|client| client.ask("/b/waits").unwrap());
    site.wait_until("the requests", || backend.requests() == TOTAL);
    assert_eq!(site.get("/b/1000").status, 503);
    children.iter().for_each(|child| kill(*child, Signal::SIGKILL).unwrap());
    site.wait_until("other processes", || {
        site.children().iter().all(|child| !children.contains(child))
    });
    site.wait_until("room", || site.get("/b/1000").status == 200);
}
