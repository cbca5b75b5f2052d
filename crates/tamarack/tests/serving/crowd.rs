//! More logins with slow passwords than the pool has threads and queue for. Files that are not
//! cached are served nevertheless.

use std::fs::{self, File};
use std::time::Duration;

use crate::client::Client;
use crate::memory::Memory;
use crate::others::assert_serves_others;
use crate::site::Site;

/// More than the queue for one kind of work (1024) and the threads together.
const LOGINS: usize = 1200;
/// A file that is read in several steps if it is not in the page cache.
const COLD_BYTES: usize = 4 << 20;
/// Most additional memory of the process: its connections, and a few files that are being sent.
const MEMORY_MAX_KB: u64 = 64 << 10;

fn start() -> Site {
    let mut site = Site::new("crowd");
    site.configure(&format!(
        "LoadModule mpm_event_module x\nStartServers 1\nServerLimit 1\nThreadsPerChild 64\n\
         MaxRequestWorkers 64\nAsyncRequestWorkerFactor 40\nLoadModule dir_module x\n\
         LoadModule authz_core_module x\nLoadModule authn_core_module x\n\
         LoadModule auth_basic_module x\nLoadModule authn_file_module x\n\
         LoadModule authz_user_module x\n<Location /secret>\nAuthType Basic\nAuthName x\n\
         AuthUserFile {}/users\nRequire valid-user\n</Location>\n",
        site.root.display()
    ));
    let hash = format!("$2y$10${}{}", "abcdefghijklmnopqrstuu", "a".repeat(31));
    site.write("users", &format!("slow:{hash}\n"));
    site.write("htdocs/secret", "secret\n");
    fs::write(site.path("htdocs/cold"), vec![b'c'; COLD_BYTES]).unwrap();
    File::open(site.path("htdocs/cold")).unwrap().sync_all().unwrap();
    site.start();
    site
}

fn log_in(client: &mut Client) {
    let credentials = "Authorization: Basic c2xvdzpzZWNyZXQ=";
    let request = format!("GET /secret HTTP/1.1\r\nHost: localhost\r\n{credentials}\r\n\r\n");
    client.send(request.as_bytes()).unwrap();
}

#[test]
fn slow_logins_hold_up_no_files() {
    let mut site = start();
    let memory = Memory::of(&site);
    let mut crowd: Vec<Client> = (0..LOGINS).map(|_| site.client()).collect();
    crowd.iter_mut().for_each(log_in);
    site.wait_for_line("the pool's queue is full");
    let file = File::open(site.path("htdocs/cold")).unwrap();
    assert_serves_others(&site, || {
        nix::fcntl::posix_fadvise(&file, 0, 0, nix::fcntl::PosixFadviseAdvice::POSIX_FADV_DONTNEED)
            .unwrap();
        let response = site.get("/cold");
        assert_eq!((response.status, response.body.len()), (200, COLD_BYTES));
    });
    // The pool's refusal is a 500, a wrong password a 401.
    let (mut refused, mut judged) = (0, 0);
    site.wait_until("responses of both kinds", || {
        for client in &mut crowd {
            client.give_up_after(Duration::from_millis(1));
            match client.answer().map(|response| response.status) {
                Ok(500) => refused += 1,
                Ok(401) => judged += 1,
                Ok(status) => panic!("{status}"),
                Err(_) => {}
            }
        }
        refused > 0 && judged > 0
    });
    drop(crowd);
    memory.assert_peak_below(&site, MEMORY_MAX_KB);
    site.assert_serves();
}
