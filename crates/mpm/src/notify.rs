//! What systemd is told (`Type=notify`). Does nothing without `NOTIFY_SOCKET`.

use sd_notify::NotifyState;

/// The server is ready; `pid` is the supervisor's, which is not the process that was started when
/// it detached.
pub fn ready(pid: u32, status: &str) {
    send(&[NotifyState::MainPid(pid), NotifyState::Ready, NotifyState::Status(status)]);
}

/// A restart begins. [`ready`] ends it, whether the new configuration serves or the old one goes
/// on.
pub fn reloading() {
    // MONOTONIC_USEC must go in the same message (systemd 253 and later).
    match NotifyState::monotonic_usec_now() {
        Ok(now) => send(&[NotifyState::Reloading, now]),
        Err(_) => send(&[NotifyState::Reloading]),
    }
}

/// The server stops.
pub fn stopping(status: &str) {
    send(&[NotifyState::Stopping, NotifyState::Status(status)]);
}

/// A line for `systemctl status`.
pub fn status(text: &str) {
    send(&[NotifyState::Status(text)]);
}

fn send(states: &[NotifyState<'_>]) {
    // Nobody to tell is the normal case, and a service manager that doesn't listen is no reason
    // to stop serving.
    let _ = sd_notify::notify(states);
}
