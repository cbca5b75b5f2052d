//! Ends servers with their runner, however that ends. Destructors do not run in a process that is
//! killed, and its children would live on and write logs. So a separate process holds the read end
//! of a pipe that the runner only writes to at its orderly end: when the pipe closes, it ends all
//! processes that name a folder of the runner, and removes the folders.

use std::fs::read_dir;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, setrlimit};

use crate::place::{self, PARENTS, remove};

/// The first argument of the process that waits for the runner's end; the second is the prefix of
/// the runner's folders.
const WORD: &str = "--after-the-runner";
/// Most searches for remaining processes, and the interval.
const LOOKS_MAX: u32 = 500;
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Searches in a row without a result after which no process remains: one that has just been
/// executed shows its command line a moment after it has closed the pipe.
const CLEAN_LOOKS: u32 = 15;
/// Most bytes of a test's file, including logs: a server that reaches it gets an error or a signal.
const FILE_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// What a runner writes that has ended its servers itself.
const IN_ORDER: &[u8] = b".";

/// The waiting process. Dropping it ends it; by then all servers should have ended.
#[derive(Debug)]
pub struct Watcher(Child);

/// Starts it, and limits the size of files; returns `None` in the process itself, after its work.
pub fn start() -> Result<Option<Watcher>, String> {
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() == Some(WORD) {
        clean_up_after(&arguments.next().unwrap_or_default());
        return Ok(None);
    }
    let say = |e: std::io::Error| format!("watcher: {e}");
    let mut command = Command::new(std::env::current_exe().map_err(say)?);
    command.args([WORD, &place::prefix()]).current_dir("/");
    // A signal to the runner's process group must not end the watcher.
    command.process_group(0);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let watcher = Watcher(command.spawn().map_err(say)?);
    // Children inherit it.
    let limit = Rlimit { current: Some(FILE_BYTES_MAX), ..getrlimit(Resource::Fsize) };
    setrlimit(Resource::Fsize, limit).map_err(|e| say(e.into()))?;
    Ok(Some(watcher))
}

impl Drop for Watcher {
    fn drop(&mut self) {
        if let Some(mut pipe) = self.0.stdin.take() {
            let _ = pipe.write_all(IN_ORDER);
        }
        let _ = self.0.wait();
    }
}

/// Waits for the end of the runner with this prefix of folders, and ends the processes that it
/// left.
fn clean_up_after(prefix: &str) {
    if !prefix.starts_with(place::FOLDERS) {
        return;
    }
    // A child of the runner holds the pipe as well, until it is executed: none escapes.
    let mut said = Vec::new();
    let _ = std::io::stdin().read_to_end(&mut said);
    let clean_looks = if said == IN_ORDER { 1 } else { CLEAN_LOOKS };
    let mut clean = 0;
    for _ in 0..LOOKS_MAX {
        let left = processes(prefix);
        clean = if left.is_empty() { clean + 1 } else { 0 };
        if clean == clean_looks {
            break;
        }
        for pid in left {
            let _ = kill_process(pid, Signal::KILL);
        }
        std::thread::sleep(LOOK_EVERY);
    }
    if std::env::var_os("KEEP").is_some() {
        return;
    }
    for parent in PARENTS {
        let prefix = format!("{parent}{prefix}");
        for folder in read_dir(parent).into_iter().flatten().flatten() {
            if folder.path().to_string_lossy().starts_with(&prefix) {
                remove(&folder.path());
            }
        }
    }
}

/// Other processes with this text in their command line.
fn processes(text: &str) -> Vec<Pid> {
    let of = |entry: std::fs::DirEntry| {
        let pid = Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)?;
        let command = std::fs::read(entry.path().join("cmdline")).ok()?;
        let is_one = String::from_utf8_lossy(&command).contains(text);
        (is_one && pid != rustix::process::getpid()).then_some(pid)
    };
    read_dir("/proc").into_iter().flatten().flatten().filter_map(of).collect()
}
