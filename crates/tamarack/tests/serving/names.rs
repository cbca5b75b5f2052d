//! A name server that does not respond.

use std::net::UdpSocket;
use std::process::Command;

use crate::site::{PROGRAM, Site, is_root};

/// An unused local address for the name server.
const NAME_SERVER: &str = "127.0.73.53";

/// Whether processes may have a mount namespace of their own.
fn may_mount(site: &Site) -> bool {
    let mount = format!("mount --bind {} /etc/resolv.conf", site.path("resolv.conf").display());
    let tried = Command::new("unshare").args(["-m", "sh", "-c", &mount]).output();
    is_root() && tried.is_ok_and(|output| output.status.success())
}

#[test]
fn who_waits_for_a_name_is_shown_so() {
    let mut site = Site::new("names");
    site.write(
        "resolv.conf",
        &format!("nameserver {NAME_SERVER}\noptions timeout:30 attempts:1\n"),
    );
    if !may_mount(&site) {
        eprintln!("skipped: mount(2) is not permitted");
        return;
    }
    let Ok(server) = UdpSocket::bind((NAME_SERVER, 53)) else {
        eprintln!("skipped: port 53 is in use");
        return;
    };
    let modules = ["dir", "authz_core", "authz_host", "status"];
    let modules = modules.map(|name| format!("LoadModule {name}_module modules/mod_{name}.so\n"));
    site.configure(&format!(
        "LoadModule mpm_worker_module modules/mod_mpm_worker.so\n{}StartServers 2\n\
         <Location /named>\nRequire forward-dns silent.example\n</Location>\n\
         <Location /status>\nSetHandler server-status\nRequire all granted\n</Location>\n",
        modules.concat()
    ));
    let resolv = site.path("resolv.conf");
    let script =
        format!("mount --bind {} /etc/resolv.conf && exec \"$0\" \"$@\"", resolv.display());
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", &script, PROGRAM]).arg("-d").arg(&site.root);
    command.args(["-f", "httpd.conf"]).env_remove("NOTIFY_SOCKET");
    site.start_by(command);
    let letters = || {
        let status = site.get("/status?auto").text();
        status
            .lines()
            .find_map(|line| line.strip_prefix("Scoreboard: ").map(str::to_owned))
            .unwrap()
    };
    assert!(!letters().contains('D'), "{}", letters());
    let mut named = site.client();
    named.ask("/named").unwrap();
    // It is queried, and does not respond.
    server.set_read_timeout(Some(crate::client::PATIENCE)).unwrap();
    server.recv(&mut [0; 512]).unwrap();
    let shown = letters();
    assert_eq!(shown.matches('D').count(), 1, "{shown}");
    drop((named, server));
}
