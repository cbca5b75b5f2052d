//! CoreDumpDirectory: the working directory of children, and whether the kernel may dump their
//! memory.

use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::process::Command;

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, User};

use crate::load::wait_for_their_end;
use crate::site::{PROGRAM, Site, is_root};

/// The user that children become.
const USER: &str = "www-data";

/// Whether the kernel may dump its memory; otherwise its files in /proc belong to root (proc(5)).
fn is_dumpable(pid: Pid, user: u32) -> bool {
    fs::metadata(format!("/proc/{pid}/stat")).is_ok_and(|stat| stat.uid() == user)
}

/// Starts a server whose limit on core dumps is a small size if allowed, and whose children are not
/// root. Without root, children run as the user of the tests.
fn start(name: &str) -> (Site, String, u32) {
    let mut site = Site::new(name);
    let (mut lines, mut user) = (String::new(), nix::unistd::geteuid().as_raw());
    fs::create_dir(site.path("dumps")).unwrap();
    if is_root() {
        lines = format!("User {USER}\nGroup {USER}\n");
        user = User::from_name(USER).unwrap().unwrap().uid.as_raw();
        chown(site.path("dumps"), Some(user), None).unwrap();
    }
    site.configure(&lines);
    let limited = "ulimit -c 2000 2>/dev/null; exec \"$0\" \"$@\"";
    let mut command = Command::new("sh");
    command.args(["-c", limited, PROGRAM]).arg("-d").arg(&site.root).args(["-f", "httpd.conf"]);
    site.start_by(command);
    (site, lines, user)
}

#[test]
fn children_live_in_the_directory_for_dumps() {
    let (mut site, lines, user) = start("dumps");
    let dumps = fs::canonicalize(site.path("dumps")).unwrap();
    let lives_there =
        |pid: &Pid| fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|at| at == dumps);
    assert!(!site.children().iter().any(lives_there));
    let of_changed_users = fs::read_to_string("/proc/sys/fs/suid_dumpable").unwrap_or_default();
    if is_root() && of_changed_users.trim() != "1" {
        // A child that was forked a moment ago is not ready yet.
        site.wait_until("no dumps without the directive", || {
            site.children().into_iter().all(|pid| !is_dumpable(pid, user))
        });
    }
    site.configure(&format!("{lines}CoreDumpDirectory dumps\n"));
    let old = site.children();
    site.restart_gracefully();
    wait_for_their_end(&site, &old);
    site.wait_until("children in the directory", || {
        let all = site.children();
        !all.is_empty() && all.iter().all(|pid| lives_there(pid) && is_dumpable(*pid, user))
    });
    site.assert_serves();

    let victim = site.children()[0];
    kill(victim, Signal::SIGABRT).unwrap();
    let said = format!("child pid {victim} exit signal Abort (6)");
    site.wait_for_line(&said);
    let full = format!("AH00051: {said}, possible coredump in {}", site.path("dumps").display());
    let is_dumped = site.count_lines(&full) == 1;
    assert_eq!(site.count_lines(&format!("AH00052: {said}")), usize::from(!is_dumped));
    // If dumps go to a program or another folder, there is none here.
    let pattern = fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap_or_default();
    if is_dumped && !pattern.starts_with(['|', '/', '@']) {
        assert!(fs::read_dir(&dumps).unwrap().next().is_some(), "{}", site.error_log());
    }
    site.assert_serves();
}
