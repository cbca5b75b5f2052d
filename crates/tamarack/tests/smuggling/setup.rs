//! The server, and the clients that send their payloads at the same time.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use blackbox::place::Place;
use blackbox::program::{Program, Server};
use blackbox::testfile::TestFile;

use crate::backend::Seen;

/// Connections at a time.
const CLIENTS: usize = 16;

/// A running server.
pub struct Setup {
    server: Server,
    place: Place,
}

impl Setup {
    /// Starts the installed Apache or Tamarack.
    pub fn start(is_apache: bool, config: &str) -> Setup {
        let program = match is_apache {
            true => Program::Apache,
            false => Program::Tamarack(env!("CARGO_BIN_EXE_tamarack").into()),
        };
        let modules = ["authz_core", "proxy", "proxy_http"].map(str::to_owned).to_vec();
        let config = format!("Timeout 60\nKeepAliveTimeout 60\n{config}");
        let file = TestFile { modules, ports: 1, config, ..TestFile::default() };
        let place = Place::build(&file, Path::new("")).unwrap();
        let server = program.serve(&place).unwrap();
        Setup { server, place }
    }

    pub fn port(&self) -> u16 {
        self.place.ports[0]
    }

    /// Stops the server, so that all that it sent has been received.
    pub fn stop_server(self) {
        self.server.stop().unwrap();
    }

    /// Stops the server and waits until the backend has seen the end of all connections.
    pub fn stop(self, seen: &Arc<Mutex<Seen>>) {
        self.server.stop().unwrap();
        let end = Instant::now() + Duration::from_secs(30);
        while seen.lock().unwrap().open > 0 {
            assert!(Instant::now() < end, "connections to the backend are left");
            thread::sleep(Duration::from_millis(2));
        }
    }
}

/// Does the work for each item, some at a time, and returns the results in order.
pub fn at_once<T: Sync, R: Send>(items: &[T], work: impl Fn(usize, &T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(number) else { return };
                    let result = work(number, item);
                    results.lock().unwrap().push((number, result));
                }
            });
        }
    });
    let mut results = results.into_inner().unwrap();
    results.sort_by_key(|(number, _)| *number);
    results.into_iter().map(|(_, result)| result).collect()
}
