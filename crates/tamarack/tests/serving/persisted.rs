//! BalancerPersist: what balancer-manager changed stays over a restart with other members, and over
//! a stop.

use std::fs;
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::site::Site;

/// What the manager's page shows of members, as Apache 2.4.71 does in the same steps.
const CHANGED: [&str; 3] = [
    "<td>zz</td><td></td><td>5.00</td><td>0</td><td>Init Drn Ok </td>",
    "<td>b</td><td></td><td>2.00</td><td>0</td><td>Init Ok </td>",
    "<td></td><td></td><td>3.00</td><td>0</td><td>Init Ok </td>",
];
/// The member that takes the second one's place.
const OTHER: &str = "<td>c</td><td></td><td>4.00</td><td>0</td><td>Init Ok </td>";

fn configuration(mpm: &str, second: &str) -> String {
    let names = ["proxy", "proxy_http", "proxy_balancer", "slotmem_shm", "lbmethod_byrequests"];
    let load = |name: &str| format!("LoadModule {name}_module modules/mod_{name}.so\n");
    format!(
        "LoadModule mpm_{mpm}_module modules/mod_mpm_{mpm}.so\n{}\
         LoadModule authz_core_module modules/mod_authz_core.so\n\
         DefaultRuntimeDir logs\nBalancerPersist On\n\
         <Proxy balancer://b>\n  BalancerMember http://127.0.0.1:1 route=a\n  {second}\n  \
         ProxySet growth=3 nonce=n\n</Proxy>\nProxyPass /b/ balancer://b/\n\
         <Location /m>\n  SetHandler balancer-manager\n</Location>\n",
        names.map(load).concat()
    )
}

fn change(site: &Site, form: &str) {
    let mut client = site.client();
    let (port, length) = (client.port(), form.len());
    let text = format!(
        "POST /m HTTP/1.1\r\nHost: localhost:{port}\r\nReferer: http://localhost:{port}/m\r\n\
         Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {length}\r\n\r\n{form}"
    );
    client.send(text.as_bytes()).unwrap();
    assert_eq!(client.answer().unwrap().status, 200, "{form}");
}

/// A child of the previous generation may still take a connection.
fn assert_shows(site: &Site, members: [&str; 3], when: &str) {
    site.wait_until(when, || {
        let page = site.get("/m").text();
        page.contains("<td>SID</td>") && members.iter().all(|member| page.contains(member))
    });
}

fn stop(site: &mut Site) {
    site.signal(Signal::SIGTERM);
    assert!(site.ended_within(Duration::from_secs(60)));
    // Its lines tell when the server has started.
    fs::remove_file(site.path("logs/error.log")).unwrap();
}

fn restart(site: &mut Site) {
    stop(site);
    site.start();
}

#[test]
fn changes_outlive_restarts_and_stops() {
    for mpm in ["event", "worker", "prefork"] {
        let mut site = Site::new(&format!("persisted-{mpm}"));
        let second = "BalancerMember http://127.0.0.1:2 route=b loadfactor=2";
        site.configure(&configuration(mpm, second));
        site.start();
        change(&site, "b=b&nonce=n&w=http://127.0.0.1:1&w_lf=5&w_wr=zz&w_status_N=1");
        change(&site, "b=b&nonce=n&b_lbm=byrequests&b_tmo=7&b_max=9&b_sforce=1&b_ss=SID");
        change(&site, "b=b&nonce=n&b_wyes=1&b_nwrkr=http%3A%2F%2F127.0.0.1%3A3");
        change(&site, "b=b&nonce=n&w=http://127.0.0.1:3&w_status_D=0&w_lf=3");
        assert_shows(&site, CHANGED, mpm);
        site.restart_gracefully();
        assert_shows(&site, CHANGED, "restarted");
        restart(&mut site);
        assert_shows(&site, CHANGED, "stopped and started");
        // What is kept counts instead of what the configuration says.
        site.configure(&configuration(mpm, &second.replace("loadfactor=2", "loadfactor=9")));
        site.restart_gracefully();
        assert_shows(&site, CHANGED, "with another configuration");
        let other = "BalancerMember http://127.0.0.1:4 route=c loadfactor=4";
        site.configure(&configuration(mpm, other));
        site.restart_gracefully();
        assert_shows(&site, [CHANGED[0], OTHER, CHANGED[2]], "with another member");
        restart(&mut site);
        assert_shows(&site, [CHANGED[0], OTHER, CHANGED[2]], "and stopped");
        // A file that is no such file changes nothing.
        stop(&mut site);
        fs::write(site.path("logs/balancers.persist"), "balancers-1 00\nnothing").unwrap();
        site.start();
        assert!(site.get("/m").text().contains("<td>a</td>"), "{mpm}");
    }
}
