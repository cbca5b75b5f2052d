//! A process without descriptors.

use std::process::Command;
use std::time::Duration;

use crate::client::Client;
use crate::site::{PROGRAM, Site};

/// Descriptors that the server may have.
const LIMIT: u32 = 64;

#[test]
fn it_recovers_when_descriptors_were_used_up() {
    let mut site = Site::new("descriptors");
    let limited = format!("ulimit -n {LIMIT}; exec \"$0\" \"$@\"");
    let mut command = Command::new("sh");
    command.args(["-c", &limited, PROGRAM]).arg("-d").arg(&site.root).args(["-f", "httpd.conf"]);
    site.start_by(command);
    let mut clients: Vec<Client> = (0..2 * LIMIT).map(|_| site.client()).collect();
    for client in &mut clients {
        client.ask("/").unwrap();
    }
    site.wait_for_line("Too many open files");
    // Those that were let in go on.
    let mut answered = 0;
    for client in clients.iter_mut().take(5) {
        answered += usize::from(client.answer().is_ok_and(|answer| answer.status == 200));
    }
    assert!(answered > 0);
    let lines = site.count_lines("Too many open files");
    std::thread::sleep(Duration::from_millis(500));
    // A line for every attempt, and the attempts are few.
    assert!(site.count_lines("Too many open files") < lines + 20);
    drop(clients);
    site.assert_serves();
    for _ in 0..20 {
        assert_eq!(site.get("/").status, 200);
    }
}
