//! What programs of the server find: the supervisor's mask of CPUs and umask, default signals, no
//! descriptor of the server, a process group of their own. And what the server reports of them.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::client::PATIENCE;
use crate::metrics::metrics;
use crate::programs::{MPMS, children, program, site, spawner};
use crate::site::{PROGRAM, Site};
use crate::upgrade::{install, upgrade};

/// The signals, without those of real time: the shell that runs the tests may ignore two of them.
const SIGNALS: u64 = 0x7fff_ffff;
/// Locations of the server's reports.
const PLACES: &str = "LoadModule status_module modules/mod_status.so\n\
    <Location /metrics>\n  SetHandler tamarack-metrics\n</Location>\n\
    <Location /live>\n  SetHandler tamarack-status\n</Location>\n\
    <Location /status>\n  SetHandler server-status\n</Location>\n";

/// Starts the server as a script's `&` does: with an ignored signal.
fn start_in_background(site: &mut Site) {
    let server = site.command();
    let mut command = Command::new("env");
    command.arg("--ignore-signal=QUIT").arg(server.get_program()).args(server.get_args());
    command.stdin(Stdio::null()).env_remove("NOTIFY_SOCKET");
    let _ = fs::remove_file(site.path("logs/error.log"));
    site.start_by(command);
}

/// Asks for a program that waits, by a path of `place`, and returns its process once it runs.
fn waiting(site: &Site, place: &str) -> (crate::client::Client, Pid) {
    let told = site.path("told/waiting");
    let _ = fs::remove_file(&told);
    let mut client = site.client();
    client.ask(&format!("{place}?hang={}", told.display())).unwrap();
    let read = || fs::read_to_string(&told).unwrap_or_default();
    site.wait_until("a program", || read().ends_with('\n'));
    (client, Pid::from_raw(read().trim().parse().unwrap()))
}

/// The lines of a process's `status`.
fn status(pid: Pid) -> BTreeMap<String, String> {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    lines.map(|(name, value)| (name.to_owned(), value.trim().to_owned())).collect()
}

/// The numbers of a process's descriptors, without those that the tests themselves have inherited.
fn descriptors(pid: Pid) -> Vec<i32> {
    let is_own = |number: &i32| {
        let link = |pid: &str| fs::read_link(format!("/proc/{pid}/fd/{number}")).ok();
        *number <= 2 || link("self") != link(&pid.to_string())
    };
    let all = fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    let mut all: Vec<i32> =
        all.map(|entry| entry.unwrap().file_name().to_str().unwrap().parse().unwrap()).collect();
    all.retain(is_own);
    all.sort_unstable();
    all
}

/// The process group of a process.
fn group(pid: Pid) -> i32 {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    text.rsplit(") ").next().unwrap().split(' ').nth(2).unwrap().parse().unwrap()
}

/// Asserts that a process has nothing of the one that started it but what it should have.
fn assert_clean(site: &Site, pid: Pid, what: &str) {
    // A shell that executes the program blocks signals for a moment.
    site.wait_until("the program", || ["sleep", "cat"].contains(&&*status(pid)["Name"]));
    let (own, supervisor) = (status(pid), status(site.supervisor()));
    for name in ["Umask", "Cpus_allowed", "NoNewPrivs"] {
        assert_eq!(own[name], supervisor[name], "{what}: {name}");
    }
    for name in ["SigBlk", "SigIgn"] {
        let signals = u64::from_str_radix(&own[name], 16).unwrap() & SIGNALS;
        assert_eq!(signals, 0, "{what}: {name} {}", own[name]);
    }
    // The dynamic loader has a library open for a moment.
    let end = Instant::now() + PATIENCE;
    let mut seen = descriptors(pid);
    while seen != [0, 1, 2] && Instant::now() < end {
        sleep(Duration::from_millis(5));
        seen = descriptors(pid);
    }
    assert_eq!(seen, [0, 1, 2], "{what}");
    assert_eq!(group(pid), pid.as_raw(), "{what}");
}

#[test]
fn programs_find_a_clean_process() {
    for mpm in MPMS {
        let mut site = site("surroundings", mpm, "");
        let tells = |name: &str| {
            let told = site.path(&format!("told/{name}"));
            let text = "#!/bin/sh\necho $$ >@.new\nmv @.new @\nexec sleep 1000\n";
            program(&site, name, &text.replace('@', &told.display().to_string()));
            site.path(&format!("cgi-bin/{name}")).display().to_string()
        };
        let (filter, command) = (tells("filter"), tells("command"));
        site.write("htdocs/held.html", "held\n");
        site.write("htdocs/page.html", &format!("<!--#exec cmd=\"exec {command}\" -->\n"));
        let before = fs::read_to_string(site.path("httpd.conf")).unwrap();
        let more = format!(
            "LoadModule include_module modules/mod_include.so\n\
             LoadModule ext_filter_module modules/mod_ext_filter.so\n\
             ExtFilterDefine hold cmd={filter}\n\
             <Location /held.html>\n  SetOutputFilter hold\n</Location>\n\
             <Location /page.html>\n  Options +Includes\n  SetOutputFilter INCLUDES\n\
             </Location>\n"
        );
        site.write("httpd.conf", &format!("{before}{more}"));
        site.signal(Signal::SIGTERM);
        assert!(site.ended_within(Duration::from_secs(60)));
        start_in_background(&mut site);
        let (_client, pid) = waiting(&site, "/cgi-bin/run");
        assert_clean(&site, pid, &format!("{mpm}: a script"));
        for (place, name) in [("/held.html", "filter"), ("/page.html", "command")] {
            let told = site.path(&format!("told/{name}"));
            let mut client = site.client();
            client.ask(place).unwrap();
            site.wait_until("a program", || told.exists());
            let pid = Pid::from_raw(fs::read_to_string(&told).unwrap().trim().parse().unwrap());
            assert_clean(&site, pid, &format!("{mpm}: {name}"));
        }
        site.signal(Signal::SIGTERM);
        assert!(site.ended_within(Duration::from_secs(60)));
    }
}

#[test]
fn log_readers_and_map_programs_find_a_clean_process() {
    let mut site = Site::new("surroundings-logs");
    for name in ["log.sh", "errors.sh", "map.sh"] {
        let to = if name == "map.sh" { "" } else { " >/dev/null" };
        site.write(name, &format!("#!/bin/sh\nexec cat -u - $0.more{to}\n"));
        site.write(&format!("{name}.more"), "");
        fs::set_permissions(site.path(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let root = site.path("");
    let at = |name: &str| root.join(name).display().to_string();
    site.configure(&format!(
        "LoadModule rewrite_module modules/mod_rewrite.so\nRewriteEngine On\n\
         RewriteMap one prg:{}\nRewriteRule ^/one/(.*)$ http://x/${{one:$1}} [R]\n\
         CustomLog \"|{}\" \"%U\"\n<VirtualHost *>\n  ServerName localhost\n  \
         RewriteEngine On\n  RewriteOptions Inherit\n  ErrorLog \"|{}\"\n</VirtualHost>\n",
        at("map.sh"),
        at("log.sh"),
        at("errors.sh"),
    ));
    start_in_background(&mut site);
    let named = |name: &str| {
        let all = fs::read_dir("/proc").unwrap().filter_map(|entry| {
            let pid: i32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
            let command = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
            let is_it = String::from_utf8_lossy(&command).contains(&at(name));
            is_it.then(|| Pid::from_raw(pid))
        });
        all.collect::<Vec<Pid>>()
    };
    for name in ["map.sh", "log.sh", "errors.sh"] {
        let mut found = Vec::new();
        site.wait_until("the program", || {
            found = named(name);
            found.len() == 1
        });
        assert_clean(&site, found[0], name);
    }
    assert_eq!(site.get("/one/a").field("Location"), Some("http://x/a"));
}

#[test]
fn companions_are_reported() {
    for mpm in MPMS {
        let mut site = site("reported", mpm, PLACES);
        program(&site, "none", "#!/no/such/interpreter\n");
        let of = |name: &str| metrics(&site)[name];
        let outcome =
            |name: &str| of(&format!("tamarack_program_starts_total{{outcome=\"{name}\"}}"));
        let running = || of("tamarack_programs{state=\"running\"}");
        assert_eq!((of("tamarack_companions"), outcome("failed")), (1.0, 0.0), "{mpm}");
        let old = spawner(&site).unwrap();
        site.wait_until("no program", || running() == 0.0);
        let before = outcome("started");
        assert!(before >= 1.0);
        let (client, pid) = waiting(&site, "/cgi-bin/run");
        site.wait_until("one program", || running() == 1.0);
        assert_eq!(outcome("started"), before + 1.0);
        let row = format!("<td>{old}</td><td>0</td><td>1</td><td>0</td></tr>");
        let page = site.get("/status").text();
        assert!(page.contains(&format!("<td>companion that starts programs</td>{row}")), "{page}");
        let auto = site.get("/status?auto").text();
        assert!(
            auto.contains("\nCompanions: 1\nProgramsRunning: 1\nProgramsWaiting: 0\n"),
            "{auto}"
        );
        let live = site.get("/live?json").text();
        let expected = format!(
            "\"companions\":[{{\"name\":\"companion that starts programs\",\"pid\":{old},\
             \"generation\":1,\"running\":1,\"waiting\":0}}]"
        );
        assert!(live.contains(&expected), "{live}");
        drop(client);
        kill(pid, Signal::SIGKILL).unwrap();
        site.wait_until("no program", || running() == 0.0);
        assert_eq!(site.get("/cgi-bin/none").status, 500);
        site.wait_until("the failure", || outcome("failed") == 1.0);
        // One that is killed with a program.
        let (_client, _) = waiting(&site, "/cgi-bin/run");
        site.wait_until("one program", || running() == 1.0);
        kill(old, Signal::SIGKILL).unwrap();
        let replaced = || of("tamarack_events_total{event=\"companion_replaced\"}");
        site.wait_until("another companion", || replaced() == 1.0);
        assert_eq!((of("tamarack_companions"), running()), (1.0, 0.0), "{mpm}");
        let before = outcome("started");
        site.restart_gracefully();
        site.wait_until("the old companion's end", || of("tamarack_companions") == 1.0);
        assert_eq!(outcome("started"), before, "{mpm}");
        site.signal(Signal::SIGTERM);
        assert!(site.ended_within(Duration::from_secs(60)));
    }
}

/// The companion that the supervisor runs.
fn companion(site: &Site) -> Option<Pid> {
    let all = metrics(site);
    (all["tamarack_companions"] == 1.0).then_some(())?;
    let auto = site.get("/live?json").text();
    let pid = auto.split("\"companions\":[{").nth(1)?.split("\"pid\":").nth(1)?;
    let pid = Pid::from_raw(pid.split(',').next()?.parse().ok()?);
    Path::new(&format!("/proc/{pid}")).exists().then_some(pid)
}

#[test]
fn a_companion_that_keeps_dying_is_restarted_after_growing_pauses() {
    let site = site("back-off", "event", PLACES);
    let mut old = companion(&site).unwrap();
    let mut pauses = Vec::new();
    for _ in 0..4 {
        let killed = Instant::now();
        kill(old, Signal::SIGKILL).unwrap();
        let mut new = old;
        site.wait_until("another companion", || {
            new = companion(&site).unwrap_or(old);
            new != old
        });
        pauses.push(killed.elapsed());
        old = new;
    }
    // The first ones at once, then after 0.4 s and more, if they died within a second.
    assert!(pauses[3] >= Duration::from_millis(400), "{pauses:?}");
    assert_eq!(site.get("/cgi-bin/run").status, 200);
}

#[test]
fn programs_end_when_the_server_is_killed() {
    for mpm in MPMS {
        // Children finish requests in flight.
        let module = if mpm == "prefork" { "CGI" } else { "CGID" };
        let mut site = site("killed-server", mpm, &format!("{module}ScriptTimeout 1"));
        let companion = spawner(&site).unwrap();
        let (_client, program) = waiting(&site, "/cgi-bin/run");
        site.signal(Signal::SIGKILL);
        assert!(site.ended_within(Duration::from_secs(60)));
        for pid in [companion, program] {
            site.wait_until("its end", || {
                // The init of a container may reap no orphans.
                let status = fs::read_to_string(format!("/proc/{pid}/stat"));
                !status.is_ok_and(|status| !status.contains(") Z "))
            });
        }
    }
}

#[test]
fn programs_outlive_an_upgrade_that_waits_for_them() {
    for mpm in MPMS {
        let mut site = site("upgraded-programs", mpm, "");
        site.signal(Signal::SIGTERM);
        assert!(site.ended_within(Duration::from_secs(60)));
        fs::remove_file(site.path("logs/error.log")).unwrap();
        install(&site, Path::new(PROGRAM));
        let command = site.as_program(site.path("tamarack"));
        site.start_by(command);
        program(
            &site,
            "slow",
            "#!/bin/sh\n: >\"$QUERY_STRING\"\nsleep 1\n\
                                printf 'Content-Type: text/plain\\n\\n%s\\n' $PPID\n",
        );
        let old = spawner(&site).unwrap();
        let told = site.path("told/begun");
        let mut slow = site.client();
        slow.ask(&format!("/cgi-bin/slow?{}", told.display())).unwrap();
        site.wait_until("the program", || told.exists());
        assert!(upgrade(&site), "{}", site.error_log());
        let answer = slow.answer().unwrap();
        assert_eq!((answer.status, answer.text()), (200, format!("{old}\n")), "{mpm}");
        let mut new = old;
        site.wait_until("another companion", || {
            new = spawner(&site).unwrap_or(old);
            new != old
        });
        site.wait_until("the end of the first", || !Path::new(&format!("/proc/{old}")).exists());
        assert_eq!(children(new), 0);
        site.signal(Signal::SIGTERM);
        assert!(site.ended_within(Duration::from_secs(60)));
    }
}

/// Whether a process has this text in memory that it can write.
fn remembers(pid: Pid, text: &str) -> bool {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let memory = fs::File::open(format!("/proc/{pid}/mem")).unwrap();
    let part = |line: &str| -> Option<Vec<u8>> {
        let (range, rest) = line.split_once(' ')?;
        let (start, end) = range.split_once('-')?;
        let [start, end] = [start, end].map(|number| u64::from_str_radix(number, 16).unwrap());
        let mut part = vec![0; (end - start) as usize];
        if !rest.starts_with("rw") || memory.read_at(&mut part, start).is_err() {
            return None;
        }
        Some(part.chunks(4096).filter(|page| *page != [0; 4096]).flatten().copied().collect())
    };
    maps.lines().filter_map(part).any(|part| String::from_utf8_lossy(&part).contains(text))
}

#[test]
fn what_starts_programs_knows_nothing_of_the_server() {
    const SECRET: &str = "a-word-of-the-configuration";
    for mpm in MPMS {
        let site = site("own-memory", mpm, &format!("ErrorDocument 404 \"{SECRET}\""));
        let spawner = spawner(&site).unwrap();
        let supervisor = site.supervisor();
        let link = |pid: Pid| fs::read_link(format!("/proc/{pid}/exe")).unwrap();
        assert_eq!(link(spawner), link(supervisor), "{mpm}");
        let [of_spawner, of_supervisor] = [spawner, supervisor].map(status);
        for name in ["Name", "Umask", "Cpus_allowed"] {
            assert_eq!(of_spawner[name], of_supervisor[name], "{mpm}: {name}");
        }
        // Besides the standard ones, its line and epoll.
        site.wait_until("no program", || descriptors(spawner).len() == 5);
        assert!(remembers(supervisor, SECRET), "{mpm}");
        assert!(!remembers(spawner, SECRET), "{mpm}");
    }
}
