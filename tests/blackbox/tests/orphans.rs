//! A killed runner leaves neither servers nor folders.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

/// A server that has started, does not respond, and ignores SIGTERM.
const SERVER: &str = "#!/bin/sh
[ \"$1\" = -v ] && { echo 'Server version: none'; exit; }
trap '' TERM
echo $$ >run/httpd.new
mv run/httpd.new run/httpd.pid
while :; do sleep 0.1; done
";

/// Far more than usual, for busy machines.
const LIMIT: Duration = Duration::from_secs(120);

#[test]
fn a_killed_runner_leaves_nothing() {
    let server = std::env::temp_dir().join(format!("orphans.{}.sh", std::process::id()));
    fs::write(&server, SERVER).expect("the script can be written");
    fs::set_permissions(&server, fs::Permissions::from_mode(0o755)).expect("it is ours");
    let mut command = Command::new(env!("CARGO_BIN_EXE_blackbox"));
    command.args(["run", "mod_alias/redirect.test"]).env("TAMARACK", &server).env_remove("KEEP");
    command.process_group(0).stdout(Stdio::null()).stderr(Stdio::null());
    let mut runner = command.spawn().expect("the runner starts");
    let root = PathBuf::from(format!("/tmp/blackbox.{:07}.00000", runner.id() % 10_000_000));
    let pid = wait_for(|| fs::read_to_string(root.join("run/httpd.pid")).ok());

    kill_process_group(Pid::from_child(&runner), Signal::KILL).expect("it runs");
    runner.wait().expect("it was killed");

    // The command line of an ended process is empty, or the process is gone.
    let command = Path::new("/proc").join(pid.trim()).join("cmdline");
    let is_there = || fs::read(&command).is_ok_and(|words| !words.is_empty());
    wait_for(|| (!is_there()).then_some(()));
    wait_for(|| (!root.exists()).then_some(()));
    fs::remove_file(&server).expect("it is there");
}

fn wait_for<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(began.elapsed() < LIMIT, "not in {LIMIT:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
