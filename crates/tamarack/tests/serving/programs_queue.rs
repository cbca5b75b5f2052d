//! More programs than may run and wait at the same time.

use std::fs::{File, OpenOptions};
use std::io::Write;

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use crate::client::Client;
use crate::programs::{program, site};
use crate::site::Site;

/// Orders that wait at the spawner.
const WAITING: usize = 100;
/// Connections, and programs at a time.
const CLIENTS: usize = 105;

/// Begins its response when a line arrives in one pipe, and ends it with one of the other.
const SCRIPT: &str = "#!/bin/sh
: >../told/$QUERY_STRING
read line <../told/begin
printf 'Content-Type: text/plain\\n\\nfirst\\n'
read line <../told/end
echo second
";

/// A pipe that lets as many scripts go on as there are clients, once a line for each is written.
fn gate(site: &Site, name: &str) -> File {
    let path = site.path(&format!("told/{name}"));
    mkfifo(&path, Mode::from_bits_truncate(0o666)).unwrap();
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o666)).unwrap();
    OpenOptions::new().read(true).write(true).open(path).unwrap()
}

#[test]
fn a_request_for_a_program_too_many_is_refused() {
    let more = format!(
        "LoadModule ext_filter_module modules/mod_ext_filter.so\n\
         ServerLimit 5\nStartServers 5\nThreadsPerChild {0}\nMaxRequestWorkers {CLIENTS}\n\
         MaxSpareThreads {CLIENTS}\nMinSpareThreads {CLIENTS}\n\
         ExtFilterDefine copy cmd=/bin/cat\n\
         <Location /cgi-bin/gated>\n  SetOutputFilter copy\n</Location>\n",
        CLIENTS / 5
    );
    let site = site("queue", "worker", &more);
    program(&site, "gated", SCRIPT);
    let (mut begin, mut end) = (gate(&site, "begin"), gate(&site, "end"));
    let mut clients: Vec<Client> = (0..CLIENTS).map(|_| site.client()).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        client.ask(&format!("/cgi-bin/gated?{number}")).unwrap();
    }
    site.wait_until("all scripts", || {
        (0..CLIENTS).all(|number| site.path(&format!("told/{number}")).exists())
    });
    // Each response needs a second program, and none has ended. The script of a refused response
    // is ended, so that others may fit then.
    begin.write_all(&[b'\n'; CLIENTS]).unwrap();
    let refusals = || site.count_lines("too many programs wait");
    site.wait_until("a refusal", || refusals() > 0);
    end.write_all(&[b'\n'; CLIENTS]).unwrap();
    let mut refused = 0;
    for mut client in clients {
        let answer = client.answer().unwrap();
        match answer.status {
            200 => assert_eq!(answer.text(), "first\nsecond\n"),
            503 => refused += 1,
            _ => panic!("{}", answer.head),
        }
    }
    assert_eq!(refused, refusals(), "{}", site.error_log());
    assert!(refused <= CLIENTS - WAITING, "{refused}");
    assert_eq!(site.get("/cgi-bin/run").status, 200);
}
