//! CGI: clients that go away, a spawner that is killed, many programs at a time, restarts.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::thread;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::client::Client;
use crate::shapes::shape;
use crate::site::Site;

/// The MPMs whose servers start programs.
pub const MPMS: [&str; 3] = ["event", "worker", "prefork"];

/// Tells its process, and what the query asks for.
const SCRIPT: &str = "#!/bin/sh
case \"$QUERY_STRING\" in
  hang=*) echo $$ >\"${QUERY_STRING#hang=}\"; exec sleep 1000;;
  head=*) printf 'Content-Type: text/plain\\n\\npart\\n'; echo $$ >\"${QUERY_STRING#head=}\"
    exec sleep 1000;;
esac
printf 'Content-Type: text/plain\\n\\n%s\\n' $PPID
";

/// Writes more than a pipe holds before it reads, and does something after its output has ended for
/// a client that wants only the head.
const TALKER: &str = "#!/bin/sh
printf 'Content-Type: text/plain\\n\\n'
head -c 100000 /dev/zero
wc -c
echo done >\"$QUERY_STRING\"
";

/// Writes a program.
pub fn program(site: &Site, name: &str, text: &str) {
    let path = format!("cgi-bin/{name}");
    site.write(&path, text);
    fs::set_permissions(site.path(&path), fs::Permissions::from_mode(0o755)).unwrap();
}

/// A running server with programs, and a folder into which they may write.
pub fn site(name: &str, mpm: &str, more: &str) -> Site {
    let mut site = Site::new(&format!("{name}-{mpm}"));
    for folder in ["cgi-bin", "told"] {
        fs::create_dir_all(site.path(folder)).unwrap();
    }
    fs::set_permissions(site.path("told"), fs::Permissions::from_mode(0o777)).unwrap();
    program(&site, "run", SCRIPT);
    program(&site, "talk", TALKER);
    let module = if mpm == "prefork" { "cgi" } else { "cgid" };
    let modules = ["alias", "unixd", module];
    let modules = modules.map(|name| format!("LoadModule {name}_module modules/mod_{name}.so\n"));
    let more = format!("{}ScriptAlias /cgi-bin/ cgi-bin/\n{more}\n", modules.concat());
    site.configure(&shape(mpm, &more));
    site.start();
    site
}

/// The process that starts programs, as a program reports it.
pub fn spawner(site: &Site) -> Option<Pid> {
    let answer = site.client().get("/cgi-bin/run").ok()?;
    (answer.status == 200).then(|| Pid::from_raw(answer.text().trim().parse().unwrap()))
}

fn exists(pid: Pid) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

/// The number of processes that a process has started and not reaped.
pub fn children(pid: Pid) -> usize {
    let list = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    list.split_whitespace().count()
}

pub fn descriptors(pid: Pid) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count)
}

#[test]
fn programs_end_with_their_clients() {
    // Each waits for a second per program.
    thread::scope(|scope| {
        for mpm in MPMS {
            scope.spawn(move || ends_programs_with_their_clients(mpm));
        }
    });
}

fn ends_programs_with_their_clients(mpm: &str) {
    // As in Apache, a client that has gone is not noticed while its program is silent.
    let module = if mpm == "prefork" { "CGI" } else { "CGID" };
    let site = site("leaving", mpm, &format!("{module}ScriptTimeout 1"));
    let spawner = spawner(&site).unwrap();
    site.wait_until("no program", || children(spawner) == 0);
    let before = descriptors(spawner);
    for (number, kind) in (0..12).zip(["hang", "head", "none"].into_iter().cycle()) {
        let told = site.path(&format!("told/{number}"));
        let mut client = site.client();
        client.ask(&format!("/cgi-bin/run?{kind}={}", told.display())).unwrap();
        if kind == "none" {
            // Before it is known whether the program runs.
            continue;
        }
        site.wait_until("a program", || {
            fs::read_to_string(&told).is_ok_and(|pid| pid.ends_with('\n'))
        });
        let pid = fs::read_to_string(&told).unwrap();
        drop(client);
        let pid = Pid::from_raw(pid.trim().parse().unwrap());
        site.wait_until("its end", || !exists(pid));
    }
    site.wait_until("no program", || children(spawner) == 0);
    site.wait_until("no descriptor", || descriptors(spawner) <= before);
    assert_eq!(site.get("/cgi-bin/run").status, 200);
}

#[test]
fn a_spawner_that_is_killed_is_replaced() {
    for mpm in MPMS {
        let site = site("killed-spawner", mpm, "");
        let told = site.path("told/one");
        let mut waiting = site.client();
        waiting.ask(&format!("/cgi-bin/run?hang={}", told.display())).unwrap();
        site.wait_until("a program", || {
            fs::read_to_string(&told).is_ok_and(|pid| pid.ends_with('\n'))
        });
        let program = Pid::from_raw(fs::read_to_string(&told).unwrap().trim().parse().unwrap());
        let first = spawner(&site).unwrap();
        kill(first, Signal::SIGKILL).unwrap();
        // Only the request in flight fails.
        assert_eq!(waiting.answer().unwrap().status, 500);
        site.wait_until("the program's end", || !exists(program));
        let mut second = first;
        site.wait_until("a new spawner", || {
            second = spawner(&site).unwrap_or(first);
            second != first
        });
        assert!(site.error_log().contains("ended unexpectedly"), "{}", site.error_log());
    }
}

#[test]
fn a_program_may_write_before_it_reads() {
    for mpm in MPMS {
        let site = site("talking", mpm, "");
        let (told, body) = (site.path("told/post"), vec![b'x'; 300_000]);
        let mut client = site.client();
        let head = format!(
            "POST /cgi-bin/talk?{} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n",
            told.display(),
            body.len()
        );
        client.send(&[head.as_bytes(), &body].concat()).unwrap();
        let answer = client.answer().unwrap();
        assert_eq!(answer.status, 200);
        assert!(answer.body.ends_with(b"\x00300000\n"), "{} bytes", answer.body.len());
        // HEAD ends no program in the middle of its work.
        let told = site.path("told/head");
        let head = format!("HEAD /cgi-bin/talk?{} HTTP/1.1\r\nHost: x\r\n\r\n", told.display());
        client.send(head.as_bytes()).unwrap();
        assert_eq!(client.head().unwrap().status, 200);
        site.wait_until("the end of its work", || told.exists());
    }
}

#[test]
fn many_programs_run_at_a_time() {
    let site = site("many-programs", "event", "");
    let clients: Vec<_> = (0..48)
        .map(|_| {
            let port = site.port;
            thread::spawn(move || {
                let mut client = Client::connect(port).unwrap();
                (0..4).all(|_| client.get("/cgi-bin/run").unwrap().status == 200)
            })
        })
        .collect();
    assert!(clients.into_iter().all(|client| client.join().unwrap()));
}

#[test]
fn restarts_do_not_disturb_programs() {
    for mpm in MPMS {
        let site = site("restarted-programs", mpm, "");
        let first = spawner(&site).unwrap();
        for _ in 0..3 {
            let port = site.port;
            let client = thread::spawn(move || {
                (0..20).all(|_| {
                    let mut client = Client::connect(port).unwrap();
                    client.get("/cgi-bin/run").unwrap().status == 200
                })
            });
            site.restart_gracefully();
            assert!(client.join().unwrap(), "{}", site.error_log());
        }
        let mut last = first;
        site.wait_until("a new spawner", || {
            last = spawner(&site).unwrap();
            last != first
        });
        site.wait_until("the end of the first spawner", || !exists(first));
    }
}
