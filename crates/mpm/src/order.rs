//! httpd's `-k`: orders to a running supervisor, by signal.

use std::fmt;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::pidfile::{self, Running};

/// An order to a running server, by `-k`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerOrder {
    /// `stop`: SIGTERM.
    Stop,
    /// `graceful-stop`: SIGWINCH.
    GracefulStop,
    /// `restart`: SIGHUP.
    Restart,
    /// `graceful`: SIGUSR1.
    Graceful,
    /// `upgrade`: SIGUSR2. An extension to httpd.
    Upgrade,
}

/// The outcome of an order.
#[derive(Debug, PartialEq, Eq)]
pub enum Sent {
    /// The signal was sent. Exit with 0.
    Done(i32),
    /// No server is running, and nothing was to do: print the text, exit with 0.
    NotRunning(String),
    /// No server is running: print the text and start, as httpd does for `restart` and `graceful`.
    StartInstead(String),
    /// The signal could not be sent: print the text, exit with 1.
    Failed(String),
    /// The pid file is corrupt: print the lines as they are, exit with 1.
    Corrupt(String),
}

impl ServerOrder {
    fn signal(self) -> Signal {
        match self {
            Self::Stop => Signal::SIGTERM,
            Self::GracefulStop => Signal::SIGWINCH,
            Self::Restart => Signal::SIGHUP,
            Self::Graceful => Signal::SIGUSR1,
            Self::Upgrade => Signal::SIGUSR2,
        }
    }

    fn starts_instead(self) -> bool {
        matches!(self, Self::Restart | Self::Graceful)
    }
}

impl fmt::Display for ServerOrder {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Stop => "stop",
            Self::GracefulStop => "graceful-stop",
            Self::Restart => "restart",
            Self::Graceful => "graceful",
            Self::Upgrade => "upgrade",
        })
    }
}

/// Sends `order` to the server whose pid file is at `path`, after checking that the process is a
/// Tamarack that wrote this file. Texts and outcomes are httpd's (`ap_signal_server`).
pub fn send_to_running(path: &Path, order: ServerOrder) -> Sent {
    let idle = |text: String| match order.starts_instead() {
        true => Sent::StartInstead("httpd not running, trying to start".to_owned()),
        false => Sent::NotRunning(text),
    };
    let pid = match pidfile::state(path) {
        Ok(Running::Running(pid)) => pid,
        Ok(Running::NoPidFile) => return idle("httpd (no pid file) not running".to_owned()),
        Ok(Running::Stale(pid)) => return idle(format!("httpd (pid {pid}?) not running")),
        Err(error) => return Sent::Corrupt(pidfile::unreadable(path, &error)),
    };
    match kill(Pid::from_raw(pid), order.signal()) {
        Ok(()) => Sent::Done(pid),
        Err(error) => Sent::Failed(format!("sending signal to server (pid {pid}): {error}")),
    }
}

/// For `-k start`: httpd's text if a server with this pid file is already running; httpd then exits
/// with 0. The error is its lines for a corrupt pid file.
pub fn already_running(path: &Path) -> Result<Option<String>, String> {
    match pidfile::state(path).map_err(|error| pidfile::unreadable(path, &error))? {
        Running::Running(pid) => Ok(Some(format!("httpd (pid {pid}) already running"))),
        Running::NoPidFile | Running::Stale(_) => Ok(None),
    }
}

/// Waits until no supervisor holds the pid file. False after `timeout`.
pub fn wait_until_stopped(path: &Path, timeout: Duration) -> bool {
    const STEP: Duration = Duration::from_millis(20);
    let deadline = Instant::now() + timeout;
    loop {
        if !matches!(pidfile::state(path), Ok(Running::Running(_))) {
            return true;
        }
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(STEP);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_running_is_said_in_httpds_words() {
        let path = std::env::temp_dir().join(format!("mpm-order-{}", std::process::id()));
        let not_running = |text: &str| Sent::NotRunning(text.to_owned());
        assert_eq!(
            send_to_running(&path, ServerOrder::Stop),
            not_running("httpd (no pid file) not running")
        );
        // Process 1 exists, but it is no Tamarack and must not be signalled.
        std::fs::write(&path, "1\n").unwrap();
        assert_eq!(
            send_to_running(&path, ServerOrder::GracefulStop),
            not_running("httpd (pid 1?) not running")
        );
        assert_eq!(
            send_to_running(&path, ServerOrder::Graceful),
            Sent::StartInstead("httpd not running, trying to start".to_owned())
        );
        assert_eq!(already_running(&path), Ok(None));
        std::fs::write(&path, "abc\n").unwrap();
        for order in [ServerOrder::Stop, ServerOrder::Graceful] {
            assert!(matches!(send_to_running(&path, order), Sent::Corrupt(_)), "{order}");
        }
        assert!(already_running(&path).is_err());
        assert!(wait_until_stopped(&path, Duration::ZERO));
        std::fs::remove_file(path).unwrap();
    }
}
