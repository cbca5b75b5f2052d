//! The settings of a process, as it reads them when it starts.

use std::time::Duration;

use ::wsgi::Geometry;

use super::{GroupPlan, Plan};
use crate::wsgi::mod_wsgi::python::Python;

/// `deadlock-timeout`
const DEADLOCK_TIMEOUT: Duration = Duration::from_secs(300);
/// `shutdown-timeout`
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);
/// `graceful-timeout`
const GRACEFUL_TIMEOUT: Duration = Duration::from_secs(15);

/// Options that a process uses by itself.
const NUMBERS: [&str; 11] = [
    "maximum-requests",
    "startup-timeout",
    "inactivity-timeout",
    "request-timeout",
    "interrupt-timeout",
    "graceful-timeout",
    "eviction-timeout",
    "response-socket-timeout",
    "shutdown-timeout",
    "restart-interval",
    "stack-size",
];

impl GroupPlan {
    /// How long a process may not answer; `None` if it may forever.
    pub fn deadlock_timeout(&self) -> Option<Duration> {
        let daemon = self.daemon.as_ref()?;
        let is_given = daemon.numbers.iter().any(|(name, _)| *name == "deadlock-timeout");
        match is_given {
            true => daemon.seconds("deadlock-timeout"),
            false => Some(DEADLOCK_TIMEOUT),
        }
    }

    pub fn shutdown_timeout(&self) -> Duration {
        let seconds = self.daemon.as_ref().and_then(|daemon| daemon.seconds("shutdown-timeout"));
        seconds.unwrap_or(SHUTDOWN_TIMEOUT)
    }

    /// How long a process may take that was asked by SIGUSR1 to be replaced.
    pub fn eviction_timeout(&self) -> Duration {
        let seconds = self.daemon.as_ref().and_then(|daemon| daemon.seconds("eviction-timeout"));
        seconds.unwrap_or_else(|| self.graceful_timeout())
    }

    pub fn graceful_timeout(&self) -> Duration {
        let seconds = self.daemon.as_ref().and_then(|daemon| daemon.seconds("graceful-timeout"));
        seconds.unwrap_or(GRACEFUL_TIMEOUT)
    }
}

/// Names and values, separated by NUL: no value contains one.
pub(super) fn settings(
    plan: &Plan,
    group: &GroupPlan,
    (application, place): (&[u8], Option<(Geometry, u16, &str)>),
    python: &Python,
) -> Vec<u8> {
    let mut out = Vec::new();
    let mut put = |name: &str, value: &[u8]| {
        if !value.contains(&0) {
            if !out.is_empty() {
                out.push(0);
            }
            out.extend_from_slice(&[name.as_bytes(), value].join(&0));
        }
    };
    if let Some((size, place, extensions)) = place {
        let numbers = [u32::from(place), size.slots(), size.lanes(), size.processes()];
        let numbers = numbers.map(|number| number.to_string()).join(" ");
        put("region", numbers.as_bytes());
        put("extensions", extensions.as_bytes());
    }
    let flag = |on: bool| if on { &b"1"[..] } else { b"" };
    put("group", group.name());
    put("application", application);
    put("software", plan.software.as_bytes());
    put("mpm", plan.mpm.as_bytes());
    put("threads", group.threads.to_string().as_bytes());
    put("processes", group.processes_max.to_string().as_bytes());
    put("multiprocess", flag(group.is_multiprocess));
    put("embedded", flag(group.daemon.is_none()));
    put("stdin", flag(python.no_stdin == Some(true)));
    put("stdout", flag(python.no_stdout == Some(true)));
    put("signal", flag(python.no_signal != Some(false)));
    put("free", flag(python.free_threading == Some(true)));
    put("destroy", flag(python.destroy != Some(false)));
    let text = |name| group.daemon.as_ref().and_then(|daemon| daemon.text(name));
    put("path", text("python-path").or(python.path.as_deref()).unwrap_or_default());
    put("locale", text("locale").unwrap_or_default());
    let interval = text("switch-interval").or(python.switch_interval.as_deref());
    put("switch-interval", interval.unwrap_or_default());
    put("slow", python.slow_requests.as_deref().unwrap_or_default());
    let name = match text("display-name") {
        Some(b"%{GROUP}") => [b"(wsgi:", group.name(), b")"].concat(),
        other => other.unwrap_or_default().to_vec(),
    };
    put("display-name", &name);
    for name in NUMBERS {
        let number = group.daemon.as_ref().and_then(|daemon| daemon.number(name));
        put(name, number.map(|number| number.to_string()).unwrap_or_default().as_bytes());
    }
    for (own, path) in &group.imports {
        if own == application {
            put("import", path);
        }
    }
    out
}
