//! What servers report of themselves: a file with a line for each, read each second off the loops.
//! Source: `readfile_heartbeats`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use rustix::io::Errno;
use server::engine::Engine;
use server::host::Server;

use crate::atoi::atoi;
use crate::cluster::mod_heartmonitor::{self, Heartbeat, Slots};
use crate::proxy::mod_proxy::{Proxy, Settings};

/// The largest file, bytes.
const BYTES_MAX: u64 = 1 << 20;
/// Reports older than this do not count, seconds.
const AGE_MAX_S: i32 = 10;

/// What a server reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Report {
    /// Idle threads.
    pub ready: usize,
    /// Busy ones.
    busy: i32,
    /// Its age in seconds; negative if it is unknown.
    seen: i32,
}

impl Report {
    /// A server that is not busy has probably just started, and is not to be flooded.
    fn spared(mut self) -> Report {
        if self.busy == 0 {
            self.ready /= 4;
        }
        self
    }

    /// Whether the server is there.
    pub fn is_recent(&self) -> bool {
        self.seen < AGE_MAX_S
    }
}

/// Reports by the server's address.
pub(super) type Reports = HashMap<Vec<u8>, Report>;

/// What was read last, and why not.
type Read = Result<Arc<Reports>, (PathBuf, Errno)>;

/// Of this process, which serves one configuration.
static CURRENT: RwLock<Option<Read>> = RwLock::new(None);
/// The file; set if a balancer has the method.
static PATH: OnceLock<PathBuf> = OnceLock::new();
/// The second in which it was read.
static READ_AT_S: AtomicU64 = AtomicU64::new(0);

/// Reads the file when a child starts.
pub(super) fn start(server: &Arc<Server>) {
    if is_used(server) {
        let path = PATH.get_or_init(|| mod_heartmonitor::path(server));
        keep(read(path));
    }
}

/// Reads it again. Of the loops of the process one does so each second.
pub(super) fn refresh(engine: &Engine) {
    let Some(path) = PATH.get() else { return };
    let now_s = engine.handle.clock().wall_s();
    if READ_AT_S.swap(now_s, Ordering::Relaxed) == now_s {
        return;
    }
    let pool = engine.handle.blocking().clone();
    engine.handle.spawn_local(async move {
        if let Ok(found) = pool.run(rt::Work::File, move || read(path)).await {
            keep(found);
        }
    });
}

/// What servers have told mod_heartmonitor.
pub(super) fn of(slots: &Slots, now_s: u64) -> Arc<Reports> {
    let report = |one: Heartbeat| {
        let seen = i32::try_from(now_s.saturating_sub(one.seen_s)).unwrap_or(i32::MAX);
        let ready = usize::try_from(one.ready).unwrap_or(0);
        (one.ip, Report { ready, busy: one.busy, seen }.spared())
    };
    Arc::new(slots.all().map(report).collect())
}

/// What was read last.
pub(super) fn current() -> Read {
    let current = CURRENT.read().unwrap_or_else(PoisonError::into_inner);
    current.clone().unwrap_or_else(|| Ok(Arc::default()))
}

fn keep(found: Read) {
    *CURRENT.write().unwrap_or_else(PoisonError::into_inner) = Some(found);
}

/// Whether a balancer has the method.
fn is_used(server: &Server) -> bool {
    let Some(slot) = server.registry.slot_of::<Proxy>() else { return false };
    let settings = server.hosts.iter().filter_map(|host| host.server.get::<Settings>(slot));
    settings.flat_map(|settings| &settings.workers.0.balancers).any(|balancer| {
        balancer.methods.get(balancer.method).is_some_and(|(name, _)| *name == "heartbeat")
    })
}

fn read(path: &Path) -> Read {
    match regular::read(path, BYTES_MAX) {
        Ok(content) => Ok(Arc::new(parse(&content))),
        Err(error) => {
            let errno = Errno::from_io_error(&error).unwrap_or(Errno::FBIG);
            Err((path.to_owned(), errno))
        }
    }
}

/// Lines of an address and `name=value` words that `&` separates.
fn parse(content: &[u8]) -> Reports {
    let mut reports = Reports::new();
    let lines = content.split(|byte| *byte == b'\n').filter(|line| line.first() != Some(&b'#'));
    for line in lines {
        let Some(blank) = line.iter().position(|byte| *byte == b' ') else { continue };
        let (address, words) = line.split_at(blank);
        let mut report = Report { ready: 0, busy: 0, seen: -1 };
        for word in words.trim_ascii_start().split(|byte| *byte == b'&') {
            let Some(equals) = word.iter().position(|byte| *byte == b'=') else { continue };
            let (name, value) = word.split_at(equals);
            let value = atoi(value.get(1..).unwrap_or_default());
            match name.to_ascii_lowercase().as_slice() {
                b"busy" => report.busy = value,
                b"ready" => report.ready = usize::try_from(value).unwrap_or(0),
                b"lastseen" => report.seen = value,
                _ => {}
            }
        }
        reports.insert(address.to_vec(), report.spared());
    }
    reports
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read() {
        let reports = parse(
            b"# a comment\n10.0.0.1 &ready=8&busy=0&lastseen=1&port=80\n\
              10.0.0.2 busy=3&ready=5&lastseen=10\n10.0.0.3 \nnothing\n10.0.0.4 ready=-2&busy=1\n",
        );
        let of = |address: &str| reports.get(address.as_bytes()).copied().unwrap();
        assert_eq!(of("10.0.0.1"), Report { ready: 2, busy: 0, seen: 1 });
        assert_eq!(of("10.0.0.2"), Report { ready: 5, busy: 3, seen: 10 });
        assert!(of("10.0.0.1").is_recent() && !of("10.0.0.2").is_recent());
        assert_eq!(of("10.0.0.3"), Report { ready: 0, busy: 0, seen: -1 });
        assert_eq!(of("10.0.0.4").ready, 0);
        assert_eq!(reports.len(), 4);
    }
}
