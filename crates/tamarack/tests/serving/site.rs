//! A folder with a configuration, documents and logs, and its server.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::client::{Client, PATIENCE};
use crate::free_port::free_port;

/// The program under test.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_tamarack");

/// A site with its own port. Dropping it stops its server and removes its folder.
pub struct Site {
    pub root: PathBuf,
    pub port: u16,
    child: Option<Child>,
}

impl Site {
    pub fn new(name: &str) -> Site {
        Site::new_in(&std::env::temp_dir(), name)
    }

    /// A site with its folder in `parent`.
    pub fn new_in(parent: &Path, name: &str) -> Site {
        // Two tests may use the same name at the same time.
        static MADE: AtomicUsize = AtomicUsize::new(0);
        let (made, process) = (MADE.fetch_add(1, Ordering::Relaxed), std::process::id());
        let root = parent.join(format!("tamarack-{name}-{process}-{made}"));
        let _ = fs::remove_dir_all(&root);
        for folder in ["htdocs", "logs"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        fs::set_permissions(&root, fs::Permissions::from_mode(0o755)).unwrap();
        let site = Site { root, port: free_port(), child: None };
        site.write("htdocs/index.html", "hello\n");
        site.configure("");
        site
    }

    /// Writes the configuration atomically.
    pub fn configure(&self, more: &str) {
        let (root, port) = (self.root.display(), self.port);
        // No client times out because a busy machine delays it.
        let patient = "Timeout 300\nKeepAliveTimeout 300\n<IfModule reqtimeout_module>\n  \
                       RequestReadTimeout header=0\n</IfModule>\n";
        let text = format!(
            "ServerRoot {root}\nServerName localhost\nListen 127.0.0.1:{port}\nPidFile run.pid\n\
             ErrorLog logs/error.log\nDocumentRoot {root}/htdocs\n{patient}\
             MaxKeepAliveRequests 0\n<Directory {root}/htdocs>\n  AllowOverride All\n\
             </Directory>\n{more}\n"
        );
        self.write("new.conf", &text);
        fs::rename(self.root.join("new.conf"), self.root.join("httpd.conf")).unwrap();
    }

    pub fn write(&self, path: &str, text: &str) {
        fs::write(self.root.join(path), text).unwrap();
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// The program with `-d` and `-f`.
    pub fn command(&self) -> Command {
        self.as_program(PROGRAM)
    }

    /// Likewise for a copy of the program, or a program that runs it.
    pub fn as_program(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.arg("-d").arg(&self.root).args(["-f", "httpd.conf"]).stdin(Stdio::null());
        command.env_remove("NOTIFY_SOCKET");
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Output {
        self.command().args(arguments).output().unwrap()
    }

    /// Starts the server in the foreground, with children, and waits until it serves.
    pub fn start(&mut self) {
        let command = self.command();
        self.start_by(command);
    }

    pub fn start_by(&mut self, mut command: Command) {
        let said = fs::File::create(self.path("logs/said")).unwrap();
        command.arg("-DFOREGROUND").stdout(Stdio::null()).stderr(said);
        self.child = Some(command.spawn().unwrap());
        // Not by a connection: a slow child would still have it when the test counts its own.
        self.wait_for_line("resuming normal operations");
    }

    /// Reads the supervisor's process from the pid file.
    pub fn supervisor(&self) -> Pid {
        let text = fs::read_to_string(self.path("run.pid")).unwrap();
        Pid::from_raw(text.trim().parse().unwrap())
    }

    pub fn signal(&self, signal: Signal) {
        kill(self.supervisor(), signal).unwrap();
    }

    /// The serving processes.
    pub fn children(&self) -> Vec<Pid> {
        let pid = self.supervisor();
        let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        let text = text.unwrap_or_default();
        text.split_whitespace().map(|word| Pid::from_raw(word.parse().unwrap())).collect()
    }

    pub fn error_log(&self) -> String {
        let bytes = fs::read(self.path("logs/error.log")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Waits for a line in the error log.
    pub fn wait_for_line(&self, text: &str) {
        self.wait_until(text, || self.error_log().contains(text));
    }

    /// The number of lines with `text` in the error log.
    pub fn count_lines(&self, text: &str) -> usize {
        self.error_log().lines().filter(|line| line.contains(text)).count()
    }

    /// Sends SIGUSR1 and waits until the restart is complete or refused.
    pub fn restart_gracefully(&self) {
        const ENDS: [&str; 2] = ["resuming normal operations", "still serving the old one"];
        let ends = || ENDS.iter().map(|end| self.count_lines(end)).sum::<usize>();
        let before = ends();
        self.signal(Signal::SIGUSR1);
        self.wait_until("a restart", || ends() > before);
    }

    pub fn wait_until(&self, what: &str, mut is_so: impl FnMut() -> bool) {
        // A busy kernel may take more than a minute until a supervisor can reap a dead child: its
        // work queues were seen to stand still for 81 s.
        let end = Instant::now() + 8 * PATIENCE;
        while !is_so() {
            if Instant::now() > end {
                let said = fs::read(self.path("logs/said")).unwrap_or_default();
                let said = String::from_utf8_lossy(&said);
                panic!("waited in vain: {what}\n{said}\n{}", self.error_log());
            }
            sleep(Duration::from_millis(5));
        }
    }

    pub fn client(&self) -> Client {
        Client::connect(self.port).unwrap()
    }

    /// Sends one request on its own connection.
    pub fn get(&self, path: &str) -> crate::client::Answer {
        self.client().get(path).unwrap()
    }

    /// Whether the server that was started in the foreground ends in time.
    pub fn ended_within(&mut self, time: Duration) -> bool {
        let end = Instant::now() + time;
        while Instant::now() < end {
            if self.child.as_mut().is_none_or(|child| !matches!(child.try_wait(), Ok(None))) {
                return true;
            }
            sleep(Duration::from_millis(5));
        }
        false
    }

    /// Asserts that the server runs and responds.
    pub fn assert_serves(&mut self) {
        if let Some(child) = &mut self.child {
            assert!(child.try_wait().unwrap().is_none(), "it ended:\n{}", self.error_log());
        }
        assert_eq!(self.get("/").status, 200);
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let text = fs::read_to_string(self.path("run.pid")).unwrap_or_default();
        if let Ok(pid) = text.trim().parse() {
            let _ = kill(Pid::from_raw(pid), Signal::SIGTERM);
        }
        if let Some(mut child) = self.child.take() {
            let end = Instant::now() + PATIENCE;
            while matches!(child.try_wait(), Ok(None)) && Instant::now() < end {
                sleep(Duration::from_millis(5));
            }
            let _ = child.kill();
            let _ = child.wait();
        }
        if std::thread::panicking() {
            eprintln!("error log of {}:\n{}", self.root.display(), self.error_log());
        }
        let _ = fs::remove_dir_all(&self.root);
    }
}

/// Whether the tests run as root.
pub fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

/// Copies the program to a place where another user may run it. A separate process writes it: a
/// program that another test starts meanwhile would hold it open for writing, so that it could not
/// be executed.
pub fn copy_program(to: &Path) {
    assert!(Command::new("cp").arg(PROGRAM).arg(to).status().unwrap().success());
    fs::set_permissions(to, fs::Permissions::from_mode(0o755)).unwrap();
}
