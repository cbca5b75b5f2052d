//! The configurations of distributions (tests/layouts): they start with only paths, addresses and
//! the user edited.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Gid, Group, Pid, Uid, User};

use crate::client::{Answer, Client, PATIENCE};
use crate::free_port::free_port;
use crate::site::PROGRAM;
use crate::tls::{KEYS, Tls};

const LAYOUTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/layouts");

/// A layout in its own folder, and its server.
struct Layout {
    root: PathBuf,
    server_root: PathBuf,
    port: u16,
    tls_port: u16,
    child: Option<Child>,
}

impl Layout {
    fn new(name: &str, server_root: &str) -> Layout {
        let root = std::env::temp_dir().join(format!("tamarack-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        let server_root = root.join(server_root);
        let (port, tls_port) = (free_port(), free_port());
        let layout = Layout { root, server_root, port, tls_port, child: None };
        layout.copy(&Path::new(LAYOUTS).join(name), &layout.root);
        layout
    }

    fn copy(&self, from: &Path, to: &Path) {
        fs::create_dir_all(to).unwrap();
        fs::set_permissions(to, fs::Permissions::from_mode(0o755)).unwrap();
        for entry in fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            let (from, to) = (entry.path(), to.join(entry.file_name()));
            if from.is_dir() {
                self.copy(&from, &to);
            } else {
                fs::write(&to, self.edited(&fs::read_to_string(&from).unwrap())).unwrap();
                fs::set_permissions(&to, fs::Permissions::from_mode(0o755)).unwrap();
            }
        }
    }

    fn edited(&self, text: &str) -> String {
        let (user, group) = who();
        let edits = [
            ("@ROOT@", self.root.display().to_string()),
            ("@PORT@", format!("127.0.0.1:{}", self.port)),
            ("_default_:@TLSPORT@", format!("_default_:{}", self.tls_port)),
            ("@TLSPORT@", format!("127.0.0.1:{}", self.tls_port)),
            ("@KEYS@", KEYS.to_owned()),
            ("@USER@", user),
            ("@GROUP@", group),
        ];
        edits.iter().fold(text.to_owned(), |text, (mark, value)| text.replace(mark, value))
    }

    fn command(&self) -> Command {
        let mut command = Command::new(PROGRAM);
        command.arg("-d").arg(&self.server_root).stdin(Stdio::null()).env_remove("NOTIFY_SOCKET");
        command
    }

    /// The output of `-t`, which must find no error.
    fn check(&self) -> String {
        let output = self.command().arg("-t").output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() && said.ends_with("Syntax OK\n"), "{said}");
        said
    }

    fn start(&mut self) {
        let said = |name: &str| fs::File::create(self.root.join(name)).unwrap();
        let (out, err) = (said("out"), said("err"));
        let mut command = self.command();
        command.arg("-DFOREGROUND").stdout(out).stderr(err);
        self.child = Some(command.spawn().unwrap());
        let end = Instant::now() + 3 * PATIENCE;
        while Client::connect(self.port).is_err() {
            assert!(Instant::now() < end, "{}", self.read("err"));
            sleep(Duration::from_millis(5));
        }
    }

    /// Waits for a text in a log, which is written after the response.
    fn wait_for(&self, log: &str, text: &str) {
        let end = Instant::now() + PATIENCE;
        while !self.read(log).contains(text) {
            assert!(Instant::now() < end, "no {text} in {log}:\n{}", self.read(log));
            sleep(Duration::from_millis(5));
        }
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.root.join(path)).unwrap_or_default()
    }

    fn get(&self, path: &str) -> Answer {
        Client::connect(self.port).unwrap().get(path).unwrap()
    }

    /// The checks that every layout must pass.
    fn assert_serves(&self, page: &str) {
        let answer = self.get(page);
        assert_eq!(answer.status, 200);
        assert!(answer.text().contains("The page of the layout."), "{}", answer.text());
        assert_eq!(self.get("/.htpasswd").status, 403);
    }

    /// A program of its folder for programs runs.
    fn assert_runs_programs(&self) {
        let program = self.get("/cgi-bin/test-cgi");
        assert_eq!(program.status, 200);
        assert_eq!(program.text(), "The program of the layout.\n");
    }

    /// Without a module for programs their source is not sent.
    fn assert_hides_programs(&self) {
        let program = self.get("/cgi-bin/test-cgi");
        assert_eq!(program.status, 500);
        assert!(!program.text().contains("source"), "{}", program.text());
    }
}

impl Drop for Layout {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM);
            let _ = child.wait();
        }
        let _ = fs::remove_dir_all(&self.root);
    }
}

/// The values of `User` and `Group`: if the supervisor is root, its children change the user.
fn who() -> (String, String) {
    if Uid::effective().is_root() {
        return ("www-data".to_owned(), "www-data".to_owned());
    }
    let user = User::from_uid(Uid::effective()).unwrap().unwrap();
    let group = Group::from_gid(Gid::effective()).unwrap().unwrap();
    (user.name, group.name)
}

/// The number of lines that report a missing feature.
fn count(said: &str, number: &str) -> usize {
    said.lines().filter(|line| line.contains(number)).count()
}

#[test]
fn the_layout_of_the_source_distribution_starts_with_every_module() {
    let mut layout = Layout::new("upstream", "");
    let said = layout.check();
    let missing = modules::missing::all().filter(|module| {
        let name = server::module::ErasedModule::name(*module);
        layout.read("conf/httpd.conf").contains(&format!("\nLoadModule {name} "))
    });
    assert_eq!(count(&said, "AH20120"), missing.count(), "{said}");
    let loads = count(&layout.read("conf/httpd.conf"), "LoadModule ");
    assert!(loads > 120, "{loads} modules are loaded");
    assert_eq!(count(&said, "AH20122"), 0, "{said}");
    layout.start();
    layout.assert_serves("/");
    layout.assert_runs_programs();
    layout.wait_for("logs/access_log", "GET / HTTP/1.1\" 200");
}

#[test]
fn the_layout_of_the_container_image_starts() {
    let mut layout = Layout::new("container", "");
    let said = layout.check();
    assert_eq!(count(&said, "AH2012"), 1, "{said}");
    assert!(said.contains("no active module has the handler 'cgi-script'"), "{said}");
    layout.start();
    layout.assert_serves("/");
    layout.assert_hides_programs();
    layout.wait_for("out", "GET / HTTP/1.1\" 200");
    layout.wait_for("err", "AH20123");
}

#[test]
fn the_layout_of_fedora_starts() {
    let mut layout = Layout::new("fedora", "etc/httpd");
    let said = layout.check();
    assert!(!said.contains("MimeMagicFile"), "{said}");
    assert!(!said.contains("mod_systemd"), "{said}");
    layout.start();
    layout.assert_serves("/page.html");
    layout.assert_runs_programs();
    assert_eq!(layout.get("/part.shtml").status, 200, "Options do not have Includes");
    let welcome = layout.get("/");
    assert_eq!(welcome.status, 403);
    assert!(welcome.text().contains("Nothing is here yet."), "{}", welcome.text());
    assert!(layout.get("/icons/").text().contains("Index of /icons"));
    let answer = Tls::new().connect(layout.tls_port).unwrap().get("/page.html").unwrap();
    assert_eq!(answer.status, 200);
    layout.wait_for("etc/httpd/logs/ssl_request_log", "TLSv1.3");
}
