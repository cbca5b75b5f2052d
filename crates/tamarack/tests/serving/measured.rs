//! What metrics and the live page tell of backends: connections, times and failures of each, and
//! that one is left alone and comes back.

use std::collections::BTreeMap;

use crate::backend::Backend;
use crate::free_port::free_port;
use crate::metrics::{browser, dom, metrics};
use crate::shapes::start;
use crate::site::Site;

/// A site with a worker at `/w/`, and a balancer at `/b/` of a member that is not there and `back`.
fn site(mpm: &str, back: &Backend, gone: u16) -> Site {
    let load = |name: &str| format!("LoadModule {name}_module modules/mod_{name}.so\n");
    let names =
        ["proxy", "proxy_http", "proxy_balancer", "slotmem_shm", "lbmethod_byrequests", "status"];
    let modules: String = names.map(load).concat();
    let port = back.port;
    // The limit of connections is each process's own.
    let processes = if mpm == "event" { "StartServers 1\nServerLimit 1\n" } else { "" };
    let more = format!(
        "{modules}{processes}LogLevel proxy:crit proxy_http:crit\n\
         ProxyPass /w/ http://127.0.0.1:{port}/ max=1\n\
         <Proxy balancer://b>\n  BalancerMember http://127.0.0.1:{gone} retry=1\n\
         BalancerMember http://127.0.0.1:{port}/member\n</Proxy>\nProxyPass /b/ balancer://b/\n\
         <Location /metrics>\n  SetHandler tamarack-metrics\n</Location>\n\
         <Location /live>\n  SetHandler tamarack-status\n</Location>\n"
    );
    start("measured", mpm, &more)
}

/// A sample of a worker, by the end of its labels.
fn sample(all: &BTreeMap<String, f64>, family: &str, worker: &str) -> Option<f64> {
    let start = format!("tamarack_proxy_worker_{family}{{");
    let end = format!("worker=\"{worker}\"}}");
    all.iter().find(|(key, _)| key.starts_with(&start) && key.ends_with(&end)).map(|(_, at)| *at)
}

#[test]
fn metrics_tell_of_each_worker() {
    for mpm in ["event", "worker", "prefork"] {
        let (back, gone) = (Backend::start(), free_port());
        let site = site(mpm, &back, gone);
        let own = format!("http://127.0.0.1:{}/", back.port);
        let dead = format!("http://127.0.0.1:{gone}");
        let mut client = site.client();
        (0..3).for_each(|_| assert_eq!(client.get("/w/late").unwrap().status, 200, "{mpm}"));
        assert_eq!(client.get("/w/dies").unwrap().status, 502, "{mpm}");
        (0..2).for_each(|_| assert_eq!(site.get("/b/1").status, 200, "{mpm}"));
        let all = metrics(&site);
        let of = |family: &str, worker: &str| sample(&all, family, worker);
        assert_eq!(of("requests_total", &own), Some(4.0), "{mpm}: {all:?}");
        assert_eq!(of("failures_total", &own), Some(1.0), "{mpm}: {all:?}");
        assert_eq!(of("failures_total", &dead), Some(1.0), "{mpm}: {all:?}");
        // On the kept connection, which ended, and on a new one.
        assert_eq!(of("repeats_total", &own), Some(1.0), "{mpm}: {all:?}");
        assert_eq!(of("connects_total", &dead), Some(0.0), "{mpm}");
        assert!(of("connects_total", &own).is_some_and(|count| count >= 1.0), "{mpm}: {all:?}");
        // A response that is late takes 20 ms.
        assert_eq!(of("responses_total", &own).map(|count| count >= 3.0), Some(true), "{mpm}");
        let seconds = of("response_seconds_total", &own);
        assert!(seconds.is_some_and(|seconds| seconds >= 0.045), "{mpm}: {seconds:?}");
    }
}

#[test]
fn metrics_tell_of_connections_and_of_requests_that_wait() {
    let (back, gone) = (Backend::start(), free_port());
    let site = site("event", &back, gone);
    let own = format!("http://127.0.0.1:{}/", back.port);
    let is = |state: &str, count: f64| {
        let key = format!("worker=\"{own}\",state=\"{state}\"}}");
        metrics(&site).iter().any(|(found, at)| found.ends_with(&key) && *at == count)
    };
    let mut first = site.client();
    first.ask("/w/waits").unwrap();
    site.wait_until("the request", || back.requests() == 1);
    let mut second = site.client();
    second.ask("/w/1").unwrap();
    let waits = || sample(&metrics(&site), "waiting", &own) == Some(1.0);
    site.wait_until("a request that waits", waits);
    site.wait_until("a busy connection", || is("busy", 1.0) && is("idle", 0.0));
    back.step();
    assert_eq!(first.answer().unwrap().text(), "waited");
    assert_eq!(second.answer().unwrap().status, 200);
    site.wait_until("an idle connection", || is("busy", 0.0) && is("idle", 1.0));
}

#[test]
fn the_page_shows_that_a_member_fails_and_comes_back() {
    let Some(browser) = browser() else {
        eprintln!("skipped: the live page is not tested, because chromium is not installed");
        return;
    };
    let (back, gone) = (Backend::start(), free_port());
    let site = site("event", &back, gone);
    let address = format!("http://localhost:{}/live", site.port);
    let state = |page: &str| {
        let row = page.split(&format!("<td>http://127.0.0.1:{gone} ")).nth(1).unwrap_or_default();
        row.split("</tr>").next().unwrap_or_default().to_owned()
    };
    assert_eq!(site.get("/b/1").status, 200);
    let failed = state(&dom(&browser, &site, &address));
    assert!(failed.contains("chip warn\">Init Err"), "{failed}");
    let _back = Backend::at(gone);
    site.wait_until("the member", || {
        site.get("/b/1");
        site.get("/live?json").text().contains(&format!("127.0.0.1:{gone}\",\"status\":\"Init Ok"))
    });
    let well = state(&dom(&browser, &site, &address));
    assert!(well.contains("chip good\">Init Ok"), "{well}");
}
