//! Processes and threads that share a file watch: whichever reads an event, all have seen it.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::scope;

use nix::sys::signal::{Signal, kill};

use crate::client::{Client, PATIENCE};
use crate::is_long;
use crate::shapes::start;
use crate::site::Site;

/// Shapes with several processes, threads or loops, and the lines that give them some.
const SHAPES: [(&str, &str); 4] = [
    ("prefork", "StartServers 4\nMinSpareServers 4\n"),
    ("worker", "StartServers 2\nThreadsPerChild 4\nMaxRequestWorkers 8\n"),
    ("event", "StartServers 2\n"),
    ("loop", ""),
];
const CLIENTS: usize = 4;

fn rounds() -> usize {
    if is_long() { 4_000 } else { 400 }
}

/// Clients that are served at the same time: in prefork each by a process of its own.
fn clients(site: &Site) -> Vec<Client> {
    let mut clients: Vec<Client> = (0..CLIENTS).map(|_| site.client()).collect();
    for client in &mut clients {
        assert_eq!(client.get("/").unwrap().status, 200);
    }
    clients
}

#[test]
fn a_change_is_seen_by_all_whoever_reads_the_event() {
    for (mpm, more) in SHAPES {
        let site = start("watch-all", mpm, more);
        let mut clients = clients(&site);
        let path = site.path("htdocs/a.txt");
        for number in 0..rounds() {
            let text = format!("{number:08}\n");
            match number % 4 {
                0 => fs::write(&path, &text).unwrap(),
                1 => {
                    fs::write(site.path("new"), &text).unwrap();
                    fs::rename(site.path("new"), &path).unwrap();
                }
                2 => fs::remove_file(&path).unwrap(),
                _ => {
                    fs::create_dir_all(site.path("htdocs/more")).unwrap();
                    fs::write(site.path("htdocs/more/b.txt"), &text).unwrap();
                }
            }
            for turn in 0..CLIENTS {
                let client = &mut clients[(number + turn) % CLIENTS];
                let answer = client.get("/a.txt").unwrap();
                match number % 4 {
                    2 | 3 => assert_eq!(answer.status, 404, "{mpm} {number}"),
                    _ => assert_eq!(answer.text(), text, "{mpm} {number}"),
                }
                let other = client.get("/more/b.txt").unwrap();
                if number % 4 == 3 {
                    assert_eq!(other.text(), text, "{mpm} {number}");
                }
            }
            if number % 8 == 7 {
                fs::rename(site.path("htdocs/more"), site.path(&format!("more-{number}"))).unwrap();
                for client in &mut clients {
                    assert_eq!(client.get("/more/b.txt").unwrap().status, 404, "{mpm} {number}");
                }
            }
        }
    }
}

/// Clients change their own files and see their own changes, while all processes take events of all
/// out of the queue, and others change thousands of files a second.
#[test]
fn clients_see_their_own_changes_beside_many_others() {
    for (mpm, more) in SHAPES {
        let site = start("watch-many", mpm, more);
        fs::create_dir(site.path("htdocs/noise")).unwrap();
        let is_over = AtomicBool::new(false);
        scope(|scope| {
            let noise = scope.spawn(|| {
                let file = |number: usize| site.path(&format!("htdocs/noise/{}", number % 100));
                let mut number = 0;
                while !is_over.load(Ordering::Relaxed) {
                    fs::write(file(number), "x").unwrap();
                    let _ = fs::remove_file(file(number + 50));
                    number += 1;
                }
            });
            let all: Vec<_> = (0..CLIENTS)
                .map(|own| {
                    let site = &site;
                    scope.spawn(move || {
                        let mut client = site.client();
                        let path = site.path(&format!("htdocs/{own}.txt"));
                        for number in 0..rounds() {
                            let text = format!("{own} {number}\n");
                            fs::write(&path, &text).unwrap();
                            let answer = client.get(&format!("/{own}.txt")).unwrap();
                            assert_eq!(answer.text(), text, "{mpm}");
                        }
                    })
                })
                .collect();
            let outcomes: Vec<_> = all.into_iter().map(|client| client.join()).collect();
            is_over.store(true, Ordering::Relaxed);
            noise.join().unwrap();
            assert!(outcomes.iter().all(Result::is_ok), "{mpm}");
        });
    }
}

/// Whatever a process is doing with the watch when it is killed, the others go on and are right.
#[test]
fn a_killed_process_leaves_a_watch_that_works() {
    let site = start("watch-killed", "prefork", SHAPES[0].1);
    let path = site.path("htdocs/a.txt");
    let get = |text: &str| {
        let end = std::time::Instant::now() + PATIENCE;
        loop {
            // A connection may be the killed process's.
            let answer = Client::connect(site.port).and_then(|mut client| client.get("/a.txt"));
            match answer {
                Ok(answer) => return assert_eq!(answer.text(), text),
                Err(_) => assert!(std::time::Instant::now() < end, "{}", site.error_log()),
            }
        }
    };
    for number in 0..rounds() / 20 {
        for round in 0..10 {
            let text = format!("{number} {round}\n");
            fs::write(&path, &text).unwrap();
            get(&text);
        }
        if let Some(child) = site.children().get(number % 4) {
            let _ = kill(*child, Signal::SIGKILL);
        }
    }
}
