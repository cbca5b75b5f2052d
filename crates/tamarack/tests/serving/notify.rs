//! Notifications to systemd (`Type=notify`).

use std::io;
use std::os::unix::net::UnixDatagram;

use crate::client::PATIENCE;
use crate::site::Site;

/// The next message as lines.
fn message(socket: &UnixDatagram) -> io::Result<Vec<String>> {
    let mut bytes = [0; 4096];
    let count = socket.recv(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes[..count]).into_owned();
    Ok(text.lines().map(str::to_owned).collect())
}

/// Waits for a message with `line`.
fn wait_for(socket: &UnixDatagram, line: &str) -> Vec<String> {
    loop {
        let lines = message(socket).unwrap_or_else(|error| panic!("no {line}: {error}"));
        if lines.iter().any(|found| found == line) {
            return lines;
        }
    }
}

#[test]
fn systemd_is_told() {
    let mut site = Site::new("notify");
    let path = site.path("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(3 * PATIENCE)).unwrap();
    let mut command = site.command();
    command.env("NOTIFY_SOCKET", &path);
    site.start_by(command);
    let ready = wait_for(&socket, "READY=1");
    let main_pid = format!("MAINPID={}", site.supervisor());
    assert!(ready.contains(&main_pid), "{ready:?}");

    site.restart_gracefully();
    let reloading = wait_for(&socket, "RELOADING=1");
    assert!(reloading.iter().any(|line| line.starts_with("MONOTONIC_USEC=")), "{reloading:?}");
    let again = wait_for(&socket, "READY=1");
    assert!(again.contains(&main_pid), "{again:?}");

    // An invalid configuration ends the reload as well.
    site.configure("Frobnicate On");
    site.restart_gracefully();
    wait_for(&socket, "RELOADING=1");
    wait_for(&socket, "READY=1");
    site.configure("");
    site.signal(nix::sys::signal::SIGUSR2);
    wait_for(&socket, "RELOADING=1");
    let upgraded = wait_for(&socket, "READY=1");
    assert!(upgraded.contains(&main_pid), "{upgraded:?}");
    site.signal(nix::sys::signal::SIGTERM);
    wait_for(&socket, "STOPPING=1");
}
