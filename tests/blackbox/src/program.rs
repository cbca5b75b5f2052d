//! The two programs: the real Apache, the source of recordings, and Tamarack.

use std::ffi::OsString;
use std::fs::{self, DirEntry, File};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::place::Place;
use crate::stall::Deadline;

/// The folder of Debian's Apache modules. Tamarack knows them by name alone.
pub const MODULES: &str = "/usr/lib/apache2/modules";
/// APR's driver for SQLite, below the folder of libraries of the machine's kind.
const SQLITE_DRIVER: &str = "apr-util-1/apr_dbd_sqlite3.so";
const APACHE: &str = "/usr/sbin/apache2";
const START_LIMIT: Duration = Duration::from_secs(90);
const STOP_LIMIT: Duration = Duration::from_secs(30);
/// How long Apache may take. With one process it may deadlock at its end, in its handler of SIGTERM
/// or where mod_wsgi ends an interpreter with threads, and no recording is about that.
const APACHE_STOP_LIMIT: Duration = Duration::from_secs(3);
const COMMAND_LIMIT: Duration = Duration::from_secs(90);
/// How long to wait for the socket of mod_cgid, which may have another place.
const CGID_LIMIT: Duration = Duration::from_secs(2);
/// The beginning of its name.
const CGID_SOCKET: &[u8] = b"cgisock.";
const POLL: Duration = Duration::from_millis(4);

/// A server program.
#[derive(Debug, Clone)]
pub enum Program {
    /// The installed apache2.
    Apache,
    /// The program under test, by path.
    Tamarack(PathBuf),
}

impl Program {
    /// The program in `TAMARACK` of the environment, or the newer of target/release and
    /// target/debug.
    pub fn tamarack(tests: &Path) -> Result<Program, String> {
        if let Some(path) = std::env::var_os("TAMARACK") {
            return Ok(Program::Tamarack(path.into()));
        }
        let target = std::env::var_os("CARGO_TARGET_DIR")
            .unwrap_or_else(|| OsString::from(tests.join("../target")));
        let built = ["release", "debug"].map(|kind| Path::new(&target).join(kind).join("tamarack"));
        let age = |path: &PathBuf| path.metadata().and_then(|meta| meta.modified()).ok();
        let newest = built.into_iter().filter(|path| path.is_file()).max_by_key(age);
        newest.map(Program::Tamarack).ok_or_else(|| "no tamarack: build it or set TAMARACK".into())
    }

    /// Whether recordings are made from this program.
    pub fn is_apache(&self) -> bool {
        matches!(self, Program::Apache)
    }

    /// The executable.
    pub fn path(&self) -> &Path {
        match self {
            Program::Apache => Path::new(APACHE),
            Program::Tamarack(path) => path,
        }
    }

    /// The first line of `-v`.
    pub fn version(&self) -> Result<String, String> {
        let output = self.command().arg("-v").output();
        let output = output.map_err(|e| format!("{}: {e}", self.path().display()))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let line = text.lines().next().unwrap_or_default();
        Ok(line.trim_start_matches("Server version: ").to_owned())
    }

    /// The first of the modules that is not installed: some come in packages of their own.
    pub fn missing(&self, modules: &[String]) -> Option<String> {
        let path = |module: &String| format!("{MODULES}/mod_{module}.so");
        let paths = modules.iter().map(path).filter(|_| self.is_apache());
        let missing = paths.into_iter().find(|path| !Path::new(path).exists());
        missing.or_else(|| self.missing_driver(modules))
    }

    /// APR's driver of the databases in tests, which is in a package of its own.
    fn missing_driver(&self, modules: &[String]) -> Option<String> {
        let needs_it = self.is_apache() && modules.iter().any(|module| module == "dbd");
        let folders = fs::read_dir("/usr/lib").into_iter().flatten().flatten();
        let mut drivers = folders.map(|folder| folder.path().join(SQLITE_DRIVER));
        (needs_it && !drivers.any(|path| path.exists())).then(|| SQLITE_DRIVER.to_owned())
    }

    /// Whether it warns that it does not have a module.
    pub fn lacks(&self, module: &str) -> Result<bool, String> {
        let load = format!("LoadModule {module}_module {MODULES}/mod_{module}.so");
        let output = self.command().args(["-t", "-f", "/dev/null", "-C", &load]).output();
        let output = output.map_err(|e| format!("{}: {e}", self.path().display()))?;
        let said = String::from_utf8_lossy(&output.stderr);
        Ok(said.contains(&format!("does not have mod_{module} yet")))
    }

    fn command(&self) -> Command {
        let mut command = Command::new(self.path());
        command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("TZ", "UTC");
        command.env("LANG", "C.UTF-8").env("BLACKBOX", "from the environment");
        command.stdin(Stdio::null()).process_group(0);
        command
    }

    /// Runs it with arguments and waits for its end.
    pub fn run(&self, arguments: &[String], place: &Place) -> Result<Output, String> {
        let say = |e: std::io::Error| format!("{}: {e}", self.path().display());
        let mut command = self.command();
        command.args(arguments).current_dir(&place.root);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(say)?;
        let pid = Pid::from_child(&child);
        let status = wait(&mut child, COMMAND_LIMIT);
        if status.is_none() {
            let _ = kill_process_group(pid, Signal::KILL);
        }
        let mut output = child.wait_with_output().map_err(say)?;
        if status.is_none() {
            output.stderr.extend_from_slice(b"(still running, killed)\n");
        }
        Ok(output)
    }

    /// Starts it as a server in the foreground and waits until it has its sockets.
    pub fn serve(&self, place: &Place) -> Result<Server, String> {
        let say = |e: std::io::Error| format!("{}: {e}", self.path().display());
        let log = |name: &str| File::create(place.root.join("logs").join(name)).map_err(say);
        let mut command = self.command();
        command.args(["-X", "-d"]).arg(&place.root).arg("-f").arg("conf/httpd.conf");
        command.current_dir(&place.root);
        command.stdout(log("stdout")?).stderr(log("stderr")?);
        let child = command.spawn().map_err(say)?;
        let mut server = Server { child, root: place.root.clone(), is_apache: self.is_apache() };
        let end = Deadline::after(START_LIMIT);
        while !place.root.join("run/httpd.pid").exists() {
            if let Ok(Some(status)) = server.child.try_wait() {
                return Err(format!("it did not start ({status}):\n{}", server.complaints()));
            }
            if end.left().is_none() {
                return Err(format!("no run/httpd.pid after {START_LIMIT:?}"));
            }
            std::thread::sleep(POLL);
        }
        let end = Deadline::after(CGID_LIMIT);
        while self.is_apache() && !is_cgid_ready(place) && end.left().is_some() {
            std::thread::sleep(POLL);
        }
        Ok(server)
    }
}

/// Whether Apache's mod_cgid, if it runs, can be asked: it binds its socket as root, and gives it
/// to the user of the children after that. A request in between is a 503.
fn is_cgid_ready(place: &Place) -> bool {
    let conf = std::fs::read_to_string(place.root.join("conf/httpd.conf")).unwrap_or_default();
    let files = std::fs::read_dir(place.root.join("run")).into_iter().flatten().flatten();
    let mut sockets = files.filter(|file| {
        file.file_type().is_ok_and(|kind| kind.is_socket())
            && file.file_name().as_encoded_bytes().starts_with(CGID_SOCKET)
    });
    let is_root = rustix::process::geteuid().is_root();
    let is_own = |file: DirEntry| !is_root || file.metadata().is_ok_and(|of| of.uid() != 0);
    !conf.contains("mod_cgid.so") || sockets.next().is_some_and(is_own)
}

/// A running server. Dropping it kills it.
#[derive(Debug)]
pub struct Server {
    child: Child,
    root: PathBuf,
    is_apache: bool,
}

impl Server {
    /// Stops it in order. An error means that it had died, does not stop, or has panicked;
    /// Apache is killed if it does not stop.
    pub fn stop(mut self) -> Result<(), String> {
        if let Ok(Some(status)) = self.child.try_wait() {
            return Err(format!("the server died ({status}):\n{}", self.complaints()));
        }
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        let limit = if self.is_apache { APACHE_STOP_LIMIT } else { STOP_LIMIT };
        let has_ended = wait(&mut self.child, limit).is_some();
        if !has_ended && !self.is_apache {
            return Err(format!("still running {limit:?} after SIGTERM"));
        }
        let said = self.complaints();
        match said.lines().find(|line| line.contains("panicked at")) {
            Some(line) => Err(format!("it panicked: {line}")),
            None => Ok(()),
        }
    }

    /// CPU time that its threads have had or waited for, which does not grow while all of them
    /// sleep.
    pub fn work(&self) -> Duration {
        let tasks = format!("/proc/{}/task", self.child.id());
        let nanoseconds = |task: std::fs::DirEntry| {
            let text = std::fs::read_to_string(task.path().join("schedstat")).unwrap_or_default();
            let numbers =
                text.split(' ').take(2).filter_map(|word| word.trim().parse::<u64>().ok());
            numbers.sum::<u64>()
        };
        let tasks = std::fs::read_dir(tasks).into_iter().flatten().flatten();
        Duration::from_nanos(tasks.map(nanoseconds).sum())
    }

    fn complaints(&self) -> String {
        ["stdout", "stderr", "error.log"]
            .iter()
            .filter_map(|name| std::fs::read(self.root.join("logs").join(name)).ok())
            .map(|text| String::from_utf8_lossy(&text).into_owned())
            .collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
            let _ = self.child.wait();
        }
    }
}

/// Stops a server that a command left behind, if its PidFile names a process of this place.
pub fn end_detached(place: &Place) {
    let Ok(text) = std::fs::read_to_string(place.root.join("run/httpd.pid")) else {
        return;
    };
    let Some(pid) = text.trim().parse().ok().and_then(Pid::from_raw) else {
        return;
    };
    let command = format!("/proc/{}/cmdline", pid.as_raw_nonzero());
    let command = std::fs::read(command).unwrap_or_default();
    if String::from_utf8_lossy(&command).contains(&place.root.display().to_string()) {
        let _ = kill_process(pid, Signal::TERM);
    }
}

fn wait(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let end = Deadline::after(limit);
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if end.left().is_some() => std::thread::sleep(POLL),
            _ => return None,
        }
    }
}
