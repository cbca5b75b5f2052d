//! `RewriteMap prg:`: programs that die, hang or write too much, and their fate when the server
//! restarts or ends.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::client::Client;
use crate::site::{PROGRAM, Site, is_root};
use crate::upgrade::{install, upgrade};

/// Answers with the key and its own process. Some keys cause faults.
const SCRIPT: &str = "#!/bin/sh
while IFS= read -r key; do
  case \"$key\" in
    hang) exec sleep 1000;;
    slow) : >\"$0.begun\"; sleep 1;;
    flood) exec cat /dev/zero;;
    long) printf '%03000000d\\n' 7; continue;;
    stubborn) trap '' TERM;;
  esac
  echo \"$key=$$\"
done
";

/// The server, with a map of two programs; `more` comes last.
fn site(name: &str, more: &str) -> Site {
    let site = Site::new(name);
    for map in ["one.sh", "other.sh"] {
        site.write(map, SCRIPT);
        fs::set_permissions(site.path(map), fs::Permissions::from_mode(0o755)).unwrap();
    }
    site.configure(&configuration(more));
    site
}

fn configuration(more: &str) -> String {
    format!(
        "RewriteEngine On\nRewriteMap one prg:one.sh\nRewriteMap other prg:other.sh\n\
         RewriteRule ^/one/(.*)$ http://x/${{one:$1}} [R]\n\
         RewriteRule ^/other/(.*)$ http://x/${{other:$1}} [R]\n{more}\n"
    )
}

/// The program that answers, if the answer is for this key.
fn program_of(client: &mut Client, map: &str, key: &str) -> Pid {
    let answer = client.get(&format!("/{map}/{key}")).unwrap();
    let place = answer.field("Location").unwrap_or_default().to_owned();
    let (found, pid) = place.trim_start_matches("http://x/").split_once('=').unwrap();
    assert_eq!(found, key, "{}", answer.head);
    Pid::from_raw(pid.parse().unwrap())
}

fn ask(site: &Site, map: &str, key: &str) -> Pid {
    program_of(&mut site.client(), map, key)
}

/// The program of the new generation, once requests reach it: a child of the old one may still
/// accept a connection.
fn ask_successor(site: &Site, old: Pid) -> Pid {
    let mut new = old;
    site.wait_until("a new program", || {
        new = ask(site, "one", "b");
        new != old
    });
    new
}

/// Whether a process runs; one that has ended and is not reaped counts as running.
fn exists(pid: Pid) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

fn wait_for_its_end(site: &Site, pid: Pid) {
    site.wait_until("the end of a program", || !exists(pid));
}

fn parent(pid: Pid) -> Pid {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let after_name = text.rsplit(") ").next().unwrap();
    Pid::from_raw(after_name.split(' ').nth(1).unwrap().parse().unwrap())
}

/// How many descriptors a process has, without those that measure its children: their number
/// varies.
fn descriptors(pid: Pid) -> usize {
    let all = fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    let links = all.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    links.filter(|link| !link.starts_with("/proc")).count()
}

/// How many sockets a process has.
fn sockets(pid: Pid) -> usize {
    let all = fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    let places = all.filter_map(|entry| fs::read_link(entry.unwrap().path()).ok());
    places.filter(|place| place.to_string_lossy().starts_with("socket:")).count()
}

/// The lines for an MPM.
fn shape(mpm: &str) -> String {
    format!(
        "LoadModule mpm_{mpm}_module modules/mod_mpm_{mpm}.so\n\
         LoadModule rewrite_module modules/mod_rewrite.so\n\
         LoadModule dir_module modules/mod_dir.so\n\
         LoadModule authz_core_module modules/mod_authz_core.so\n"
    )
}

#[test]
fn a_program_that_hangs_delays_only_its_own_questions() {
    std::thread::scope(|scope| {
        for mpm in ["event", "worker", "prefork", "loop"] {
            scope.spawn(move || others_are_not_delayed(mpm));
        }
    });
}

fn others_are_not_delayed(mpm: &str) {
    let mut site = site("map-hangs", "");
    site.configure(&format!("{}{}", shape(mpm), configuration("Timeout 6")));
    site.start();
    let old = ask(&site, "one", "a");
    let mut hanging = site.client();
    let begun = Instant::now();
    hanging.ask("/one/hang").unwrap();
    // Waits for its turn behind it.
    let mut waiting = site.client();
    waiting.ask("/one/b").unwrap();
    ask(&site, "other", "c");
    assert_eq!(site.get("/").status, 200);
    assert!(begun.elapsed() < Duration::from_secs(6), "{mpm}: {:?}", begun.elapsed());
    assert_eq!(hanging.answer().unwrap().status, 500, "{mpm}");
    waiting.answer().unwrap();
    site.wait_for_line("AH20032");
    site.wait_for_line("AH20033");
    wait_for_its_end(&site, old);
    assert_ne!(ask(&site, "one", "d"), old);
}

#[test]
fn a_program_that_is_killed_is_started_again() {
    let mut site = site("map-killed", "");
    site.start();
    let mut client = site.client();
    let mut old = program_of(&mut client, "one", "a");
    let companion = parent(old);
    assert_eq!(parent(companion), site.supervisor());
    for _ in 0..3 {
        kill(old, Signal::SIGKILL).unwrap();
        wait_for_its_end(&site, old);
        site.wait_until("another one", || {
            let answer = client.get("/one/b").unwrap();
            answer.field("Location").is_some_and(|place| place.contains("b="))
        });
        let new = program_of(&mut client, "one", "b");
        assert_ne!(new, old);
        old = new;
    }
    assert!(site.count_lines("AH20031") >= 3, "{}", site.error_log());
    assert_eq!(parent(old), companion);
}

#[test]
fn a_companion_that_is_killed_takes_its_program_along_and_is_started_again() {
    let mut site = site("companion-killed", "");
    site.start();
    let old = ask(&site, "one", "a");
    let companion = parent(old);
    kill(companion, Signal::SIGKILL).unwrap();
    wait_for_its_end(&site, old);
    wait_for_its_end(&site, companion);
    site.wait_for_line("AH20030");
    let new = ask(&site, "one", "b");
    assert_eq!(parent(parent(new)), site.supervisor());
    // Ignores the signals of a service manager, but not its end of the line.
    kill(parent(new), Signal::SIGTERM).unwrap();
    kill(parent(new), Signal::SIGHUP).unwrap();
    assert_eq!(ask(&site, "one", "c"), new);
}

#[test]
fn a_companion_has_no_socket_but_its_line() {
    let mut site = site("companion-sockets", "");
    site.start();
    for round in 0..2 {
        let programs = ["one", "other"].map(|map| ask(&site, map, "a"));
        for program in programs {
            assert_eq!(sockets(parent(program)), 1, "round {round}");
            assert_eq!(sockets(program), 0, "round {round}");
        }
        site.restart_gracefully();
        wait_for_its_end(&site, programs[0]);
    }
}

#[test]
fn programs_end_with_their_generation() {
    let mut site = site("map-restarts", "");
    site.start();
    let first = ask(&site, "one", "a");
    site.restart_gracefully();
    let mut old = ask_successor(&site, first);
    wait_for_its_end(&site, first);
    let held = descriptors(site.supervisor());
    for _ in 0..3 {
        // Still answered by the program that it was asked of.
        let mut slow = site.client();
        slow.ask("/one/slow").unwrap();
        let begun = site.path("one.sh.begun");
        site.wait_until("the program has the question", || fs::remove_file(&begun).is_ok());
        site.restart_gracefully();
        let answer = slow.answer().unwrap();
        let place = format!("http://x/slow={old}");
        assert_eq!(answer.field("Location"), Some(place.as_str()), "{}", answer.head);
        let new = ask_successor(&site, old);
        wait_for_its_end(&site, old);
        old = new;
    }
    site.wait_until("its descriptors", || descriptors(site.supervisor()) <= held);
    // Without the engine nothing is started.
    site.configure(&configuration("RewriteEngine Off"));
    site.restart_gracefully();
    wait_for_its_end(&site, old);
    assert_eq!(site.get("/one/a").status, 404);
    // Nor by a configuration that is refused.
    site.configure(&configuration("RewriteMap none prg:httpd.conf"));
    site.restart_gracefully();
    site.wait_for_line("AH00654");
    site.assert_serves();
}

#[test]
fn programs_end_with_the_server() {
    for signal in [Signal::SIGTERM, Signal::SIGWINCH, Signal::SIGKILL] {
        let mut site = site("map-end", "");
        site.start();
        let (one, other) = (ask(&site, "one", "stubborn"), ask(&site, "other", "a"));
        let companions = [parent(one), parent(other)];
        site.signal(signal);
        assert!(site.ended_within(Duration::from_secs(60)));
        for pid in [one, other].iter().chain(&companions) {
            site.wait_until("its end", || {
                // The init of a container may reap no orphans.
                let status = fs::read_to_string(format!("/proc/{pid}/stat"));
                !status.is_ok_and(|status| !status.contains(") Z "))
            });
        }
    }
}

#[test]
fn programs_end_with_the_executable() {
    let mut site = site("map-upgrade", "");
    install(&site, Path::new(PROGRAM));
    let command = site.as_program(site.path("tamarack"));
    site.start_by(command);
    for _ in 0..2 {
        let old = ask(&site, "one", "a");
        let mut slow = site.client();
        slow.ask("/one/slow").unwrap();
        let begun = site.path("one.sh.begun");
        site.wait_until("the program has the question", || fs::remove_file(&begun).is_ok());
        assert!(upgrade(&site), "{}", site.error_log());
        let answer = slow.answer().unwrap();
        let place = format!("http://x/slow={old}");
        assert_eq!(answer.field("Location"), Some(place.as_str()), "{}", answer.head);
        ask_successor(&site, old);
        wait_for_its_end(&site, old);
    }
    let held = descriptors(site.supervisor());
    assert!(upgrade(&site), "{}", site.error_log());
    site.wait_until("its descriptors", || descriptors(site.supervisor()) <= held);
}

#[test]
fn a_single_process_has_programs_too() {
    let site = site("map-alone", "");
    let mut command = site.command();
    let said = fs::File::create(site.path("logs/said")).unwrap();
    command.arg("-X").stdout(Stdio::null()).stderr(said);
    let mut server = command.spawn().unwrap();
    site.wait_for_line("resuming normal operations");
    let old = ask(&site, "one", "a");
    kill(old, Signal::SIGKILL).unwrap();
    wait_for_its_end(&site, old);
    let new = ask(&site, "one", "b");
    assert_ne!(new, old);
    kill(Pid::from_raw(i32::try_from(server.id()).unwrap()), Signal::SIGTERM).unwrap();
    server.wait().unwrap();
    wait_for_its_end(&site, new);
}

#[test]
fn an_endless_line_ends_the_program() {
    let mut site = site("map-floods", "LimitRequestLine 100000");
    site.start();
    for key in ["flood", "long"] {
        let old = ask(&site, "one", "a");
        assert_eq!(site.get(&format!("/one/{key}")).status, 500);
        wait_for_its_end(&site, old);
        ask(&site, "one", "b");
    }
    assert_eq!(site.count_lines("AH20032"), 2, "{}", site.error_log());
    // A key that is too long is not asked.
    let old = ask(&site, "one", "c");
    assert_eq!(site.get(&format!("/one/{}", "k".repeat(70_000))).status, 500);
    assert_eq!(ask(&site, "one", "d"), old);
}

#[test]
fn a_crowd_gets_its_own_answers() {
    let mut site = site("map-crowd", "");
    site.start();
    let mut clients: Vec<(String, Client)> =
        (0..400).map(|number| (format!("key{number}"), site.client())).collect();
    for (key, client) in &mut clients {
        client.ask(&format!("/one/{key}")).unwrap();
    }
    // Clients that leave do not disturb others.
    clients.retain(|(key, _)| !key.ends_with('7'));
    for (key, client) in &mut clients {
        let answer = client.answer().unwrap();
        let place = answer.field("Location").unwrap_or_default();
        assert!(place.starts_with(&format!("http://x/{key}=")), "{}", answer.head);
    }
}

/// `RewriteMap`'s third argument.
#[test]
fn a_program_runs_as_the_user_of_its_map() {
    if !is_root() {
        return;
    }
    let mut site = Site::new("map-of-user");
    let script = "#!/bin/sh\nwhile IFS= read -r key; do echo \"$key=$(id -un):$(id -gn)\"; done\n";
    site.write("who.sh", script);
    fs::set_permissions(site.path("who.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    site.configure(
        "RewriteEngine On\nRewriteMap who prg:who.sh www-data:daemon\n\
         RewriteRule ^/who/(.*)$ http://x/${who:$1} [R]\n",
    );
    site.start();
    let answer = site.client().get("/who/a").unwrap();
    assert_eq!(answer.field("Location"), Some("http://x/a=www-data:daemon"), "{}", answer.head);
}
