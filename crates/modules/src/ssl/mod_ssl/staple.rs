//! SSLUseStapling: a thread per process queries the responders and staples the responses, so that
//! no handshake waits for one.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use server::host::Server;
use server::log::Level;
use tls::resolver::HostCertificates;
use tls::stapling::{Outcome, Stapling};

use super::{all_built, fetch};

/// The longest sleep between two checks.
const MAX_SLEEP_SECONDS: u64 = 60;

struct Task {
    id: String,
    certificates: Arc<HostCertificates>,
    place: usize,
    stapling: Stapling,
    timeout: Duration,
}

/// Starts the thread if there is anything to staple.
pub fn start(server: &Arc<Server>) {
    let tasks: Vec<Task> = all_built(server)
        .flat_map(|(own, built)| {
            let timeout = Duration::from_secs(own.stapling.timeout_seconds.or(10));
            built.staplings.iter().map(move |(place, stapling)| Task {
                id: built.id.clone(),
                certificates: built.certificates.clone(),
                place: *place,
                stapling: stapling.clone(),
                timeout,
            })
        })
        .collect();
    if tasks.is_empty() {
        return;
    }
    let server = server.clone();
    let thread = std::thread::Builder::new().name("ssl-stapling".to_owned());
    // Without the thread, handshakes continue unstapled.
    let _ = thread.spawn(move || run(&server, tasks));
}

/// Never returns: the thread dies with its process.
fn run(server: &Server, mut tasks: Vec<Task>) {
    loop {
        for task in &mut tasks {
            task.turn(server);
        }
        let next = tasks.iter().map(|task| task.stapling.due_at()).min().unwrap_or(u64::MAX);
        let pause = next.saturating_sub(now()).clamp(1, MAX_SLEEP_SECONDS);
        std::thread::sleep(Duration::from_secs(pause));
    }
}

impl Task {
    fn turn(&mut self, server: &Server) {
        if let Some(question) = self.stapling.due(now()) {
            let answer = fetch::post(&question, self.timeout);
            let body = answer.as_deref().and_then(tls::ocsp::http_body);
            let outcome = self.stapling.answered(body, now());
            let id = &self.id;
            let (level, number, what) = match outcome {
                Outcome::Good => (Level::Debug, 0, "the responder says good".to_owned()),
                Outcome::Status(status) => {
                    (Level::Error, 2969, format!("response has certificate status {status:?}"))
                }
                Outcome::Unreachable => {
                    (Level::Error, 1942, "no response from the responder".to_owned())
                }
                Outcome::Faulty(fault) => (Level::Error, 1943, fault.to_string()),
            };
            let why = format_args!("stapling for {id}: {what}");
            server.log("mod_ssl.c", level, number, why);
        }
        let staple = self.stapling.current(now()).map(<[u8]>::to_vec);
        self.certificates.staple(self.place, staple);
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
