//! Notifications to systemd (`Type=notify`). Does nothing without `NOTIFY_SOCKET`.

use sd_notify::NotifyState;

/// Reports that the server is ready. `pid` is the supervisor's, which differs from the started
/// process's if the server detached.
pub fn ready(pid: u32, status: &str) {
    send(&[NotifyState::MainPid(pid), NotifyState::Ready, NotifyState::Status(status)]);
}

/// Reports that a restart begins. [`ready`] ends it, whether the new configuration serves or the
/// old one continues.
pub fn reloading() {
    // MONOTONIC_USEC must be in the same message (systemd 253 and later).
    match NotifyState::monotonic_usec_now() {
        Ok(now) => send(&[NotifyState::Reloading, now]),
        Err(_) => send(&[NotifyState::Reloading]),
    }
}

/// Reports that the server is stopping.
pub fn stopping(status: &str) {
    send(&[NotifyState::Stopping, NotifyState::Status(status)]);
}

/// Sets the status line of `systemctl status`.
pub fn status(text: &str) {
    send(&[NotifyState::Status(text)]);
}

fn send(states: &[NotifyState<'_>]) {
    // Without a service manager, which is the common case, this fails; serving does not depend on
    // it.
    let _ = sd_notify::notify(states);
}
