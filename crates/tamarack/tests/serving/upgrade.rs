//! `-k upgrade`: another executable takes over a running server.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::sys::signal::Signal;

use crate::load::{under_load, wait_for_their_end};
use crate::site::{PROGRAM, Site};
use crate::tls::Tls;

/// Simultaneous keep-alive connections.
const CONNECTIONS: usize = 50;
/// Bytes of a file that takes a while.
const LARGE: usize = 48 << 20;
/// A directive of the configuration, and its name in an executable that lacks it.
const RENAMED: [&[u8]; 2] = [b"MaxKeepAliveRequests", b"MaxKeepAliveRequestz"];

/// Installs a program over the server's executable like a package manager: under another name, then
/// renamed. A separate process writes it, so that no program started meanwhile holds it open for
/// writing.
pub fn install(site: &Site, program: &Path) {
    let (new, executable) = (site.path("tamarack.new"), site.path("tamarack"));
    if fs::hard_link(program, &new).is_err() {
        let copied = Command::new("cp").arg(program).arg(&new).status().unwrap();
        assert!(copied.success());
    }
    // A rename would leave both names of a hard-linked file.
    let _ = fs::remove_file(&executable);
    fs::rename(new, executable).unwrap();
}

/// Installs a script as the executable.
fn install_script(site: &Site, text: &str) {
    install(site, &program(site, "script", text.as_bytes()));
}

/// Installs a program for the site. As with [`install`], another process writes it.
fn program(site: &Site, name: &str, bytes: &[u8]) -> PathBuf {
    let (written, copy) = (site.path(&format!("{name}.written")), site.path(name));
    fs::write(&written, bytes).unwrap();
    fs::set_permissions(&written, fs::Permissions::from_mode(0o755)).unwrap();
    let copied = Command::new("cp").arg("-p").args([&written, &copy]).status().unwrap();
    assert!(copied.success());
    copy
}

/// Starts the site's own executable in the foreground.
pub fn start(site: &mut Site) {
    install(site, Path::new(PROGRAM));
    let command = site.as_program(site.path("tamarack"));
    site.start_by(command);
}

fn order(site: &Site, word: &str) {
    let output = site.run(&["-k", word]);
    assert!(output.status.success(), "{output:?}");
}

/// Orders an upgrade and waits for its end; returns whether the new executable took over.
pub fn upgrade(site: &Site) -> bool {
    const ENDS: [&str; 3] = ["has taken over", "AH20011", "AH20015"];
    let ends = || ENDS.iter().map(|end| site.count_lines(end)).sum::<usize>();
    let (before, taken) = (ends(), site.count_lines(ENDS[0]));
    site.signal(Signal::SIGUSR2);
    site.wait_until("an upgrade", || ends() > before);
    site.count_lines(ENDS[0]) > taken
}

fn executable(site: &Site) -> String {
    let link = fs::read_link(format!("/proc/{}/exe", site.supervisor())).unwrap();
    link.to_string_lossy().into_owned()
}

#[test]
fn another_executable_takes_over_without_a_failed_request() {
    let mut site = Site::new("upgrade");
    site.write("htdocs/large", &"x".repeat(LARGE));
    start(&mut site);
    let (supervisor, old) = (site.supervisor(), site.children());
    let mut download = site.client();
    download.ask("/large").unwrap();
    let seen = under_load(&site, CONNECTIONS, || {
        for _ in 0..3 {
            install(&site, Path::new(PROGRAM));
            assert!(executable(&site).ends_with(" (deleted)"));
            assert!(upgrade(&site), "{}", site.error_log());
            assert_eq!(executable(&site), site.path("tamarack").to_string_lossy());
        }
    });
    seen.assert_all_answered(&site);
    assert_eq!(site.supervisor(), supervisor);
    assert_eq!(download.answer().unwrap().body.len(), LARGE, "what was under way is finished");
    drop(download);
    wait_for_their_end(&site, &old);
    // It is an ordinary server: it restarts, refuses invalid configurations, and stops.
    site.restart_gracefully();
    site.configure("Frobnicate On");
    site.restart_gracefully();
    site.assert_serves();
    site.configure("");
    // By the command: `-k upgrade` finds the server by the pid file, which is locked as before.
    let before = site.count_lines("has taken over");
    order(&site, "upgrade");
    site.wait_until("an upgrade", || site.count_lines("has taken over") > before);
    order(&site, "stop");
    site.wait_until("its end", || !site.path("run.pid").exists());
    assert_eq!(site.count_lines("overwritten"), 0, "{}", site.error_log());
}

#[test]
fn sessions_outlive_an_upgrade() {
    let tls = Tls::new();
    let mut site = Site::new("upgrade-tls");
    site.configure(&Tls::configuration("server.key"));
    start(&mut site);
    assert!(!tls.get(site.port).1);
    let old = site.children();
    assert!(upgrade(&site), "{}", site.error_log());
    wait_for_their_end(&site, &old);
    assert!(tls.get(site.port).1, "by a ticket, or from the cache: both are in shared memory");
}

#[test]
fn what_is_no_server_does_not_take_over() {
    let mut site = Site::new("upgrade-broken");
    start(&mut site);
    let (supervisor, children) = (site.supervisor(), site.children());
    let seen = under_load(&site, CONNECTIONS / 5, || {
        site.write("text", "no program\n");
        install(&site, &site.path("text"));
        assert!(!upgrade(&site));
        for program in ["/bin/false", "/bin/true"] {
            let copy = site.path("program");
            assert!(Command::new("cp").arg(program).arg(&copy).status().unwrap().success());
            install(&site, &copy);
            fs::remove_file(copy).unwrap();
            assert!(!upgrade(&site), "{program}");
        }
        fs::remove_file(site.path("tamarack")).unwrap();
        assert!(!upgrade(&site));
        // The executable is good, the configuration is not.
        install(&site, Path::new(PROGRAM));
        site.configure("Frobnicate On");
        assert!(!upgrade(&site));
        site.wait_for_line("Invalid command 'Frobnicate'");
    });
    seen.assert_all_answered(&site);
    assert_eq!((site.supervisor(), site.children()), (supervisor, children));
    site.configure("");
    assert!(upgrade(&site), "{}", site.error_log());
    site.assert_serves();
}

#[test]
fn what_was_not_tried_does_not_take_over() {
    let mut site = Site::new("upgrade-untried");
    start(&mut site);
    let (supervisor, children) = (site.supervisor(), site.children());
    let (next, executable) = (site.path("next"), site.path("tamarack"));
    site.write("next", "#!/bin/sh\nexit 1\n");
    fs::set_permissions(&next, fs::Permissions::from_mode(0o755)).unwrap();
    // While it is on trial, another executable replaces it.
    let (next, executable) = (next.display(), executable.display());
    install_script(&site, &format!("#!/bin/sh\nmv {next} {executable}\nexec {PROGRAM} \"$@\"\n"));
    assert!(!upgrade(&site), "{}", site.error_log());
    site.assert_serves();
    assert_eq!((site.supervisor(), site.children()), (supervisor, children));
}

#[test]
fn an_upgrade_that_is_asked_for_during_another_follows_it() {
    const ASKED: &str = "SIGUSR2 received";
    let mut site = Site::new("upgrade-again");
    start(&mut site);
    let root = site.root.display();
    install_script(
        &site,
        &format!(
            "#!/bin/sh\n: > {root}/tried\n\
             while [ -d {root} -a ! -e {root}/go ]; do sleep 0.05; done\nexit 1\n"
        ),
    );
    site.signal(Signal::SIGUSR2);
    // Any earlier, the shell might read the replacement of the script.
    site.wait_until("the first", || site.path("tried").exists());
    install(&site, Path::new(PROGRAM));
    site.signal(Signal::SIGUSR2);
    site.wait_until("the second", || site.count_lines(ASKED) == 2);
    site.write("go", "");
    site.wait_for_line("has taken over");
    assert_eq!(site.count_lines("AH20011"), 1, "the first: {}", site.error_log());
    site.assert_serves();
}

#[test]
fn an_executable_that_comes_to_nothing_gives_back() {
    let mut site = Site::new("upgrade-back");
    start(&mut site);
    // An executable that succeeds on trial, and lacks a directive as the successor.
    let mut bytes = fs::read(PROGRAM).unwrap();
    let places: Vec<usize> = bytes
        .windows(RENAMED[0].len())
        .enumerate()
        .filter_map(|(at, found)| (found == RENAMED[0]).then_some(at))
        .collect();
    assert!(!places.is_empty());
    for at in places {
        bytes[at..at + RENAMED[1].len()].copy_from_slice(RENAMED[1]);
    }
    let lacking = program(&site, "lacking", &bytes);
    let seen = under_load(&site, CONNECTIONS / 5, || {
        install_script(
            &site,
            &format!(
                "#!/bin/sh\ncase $TAMARACK_UPGRADE in successor*) exec {} \"$@\";; esac\n\
                 exec {PROGRAM} \"$@\"\n",
                lacking.display(),
            ),
        );
        assert!(upgrade(&site), "the executable before: {}", site.error_log());
    });
    seen.assert_all_answered(&site);
    site.wait_for_line("Invalid command 'MaxKeepAliveRequests'");
    site.wait_for_line("failed to start; rolling back");
    site.restart_gracefully();
    site.assert_serves();
}

#[test]
fn without_any_configuration_the_old_processes_serve() {
    let site = Site::new("upgrade-adrift");
    install(&site, Path::new(PROGRAM));
    // Started with the argument for a restart: the successor, which also has it, must serve.
    let mut command = site.as_program(site.path("tamarack"));
    assert!(command.args(["-k", "graceful"]).output().unwrap().status.success());
    site.wait_for_line("resuming normal operations");
    // The successor finds an invalid configuration, and so does its predecessor.
    install_script(
        &site,
        &format!(
            "#!/bin/sh\ncase $TAMARACK_UPGRADE in successor*) echo Frobnicate > {};; esac\n\
             exec {PROGRAM} \"$@\"\n",
            site.path("httpd.conf").display(),
        ),
    );
    let children = site.children();
    let seen = under_load(&site, CONNECTIONS / 5, || assert!(!upgrade(&site)));
    seen.assert_all_answered(&site);
    assert_eq!(site.children(), children);
    site.configure("");
    let seen = under_load(&site, CONNECTIONS / 5, || {
        site.signal(Signal::SIGUSR1);
        site.wait_for_line("has taken over");
    });
    seen.assert_all_answered(&site);
    wait_for_their_end(&site, &children);
    assert_eq!(site.get("/").status, 200);
    order(&site, "stop");
    site.wait_until("its end", || !site.path("run.pid").exists());
}
