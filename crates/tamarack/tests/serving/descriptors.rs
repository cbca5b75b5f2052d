//! A process that has run out of descriptors.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::client::Client;
use crate::site::{PROGRAM, Site};

/// The limit of descriptors.
const LIMIT: u32 = 64;
/// The interval at which each loop logs this (FULL_TOLD_EVERY).
const TOLD_EVERY: Duration = Duration::from_secs(10);

#[test]
fn it_recovers_when_descriptors_were_used_up() {
    let mut site = Site::new("descriptors");
    let limited = format!("ulimit -n {LIMIT}; exec \"$0\" \"$@\"");
    let mut command = Command::new("sh");
    command.args(["-c", &limited, PROGRAM]).arg("-d").arg(&site.root).args(["-f", "httpd.conf"]);
    site.start_by(command);
    let began = Instant::now();
    let mut clients: Vec<Client> = (0..2 * LIMIT).map(|_| site.client()).collect();
    for client in &mut clients {
        client.ask("/").unwrap();
    }
    const LINE: &str = "AH20003";
    site.wait_for_line(LINE);
    // Accepted connections are served: descriptors remain for files.
    site.write("htdocs/new.txt", "new\n");
    let mut answered = 0;
    site.wait_until("answers", || {
        for client in &mut clients {
            client.give_up_after(Duration::from_millis(10));
            if let Ok(answer) = client.answer() {
                assert_eq!(answer.status, 200);
                answered += 1;
            }
        }
        answered >= LIMIT / 4
    });
    assert!(!site.error_log().contains("Too many open files"), "{}", site.error_log());
    // The line is not repeated constantly; a busy machine takes longer.
    let times = 1 + began.elapsed().as_secs() / TOLD_EVERY.as_secs();
    assert!((site.count_lines(LINE) as u64) < 10 * times, "{times}: {}", site.error_log());
    drop(clients);
    site.assert_serves();
    for _ in 0..20 {
        assert_eq!(site.get("/").status, 200);
    }
}
