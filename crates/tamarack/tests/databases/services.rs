//! PostgreSQL, memcached and Redis, each in a folder of its own.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::client::PATIENCE;
use crate::free_port::free_port;
use crate::site::is_root;

pub const MEMCACHED: &str = "/usr/bin/memcached";
pub const REDIS: &str = "/usr/bin/redis-server";
pub const POSTGRES: &str = "/usr/lib/postgresql/15/bin/postgres";
const INITDB: &str = "/usr/lib/postgresql/15/bin/initdb";
const PSQL: &str = "/usr/bin/psql";

/// Certificates and keys of the black-box tests.
pub const KEYS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/tls");

/// The user of services that refuse to run as root.
const UNPRIVILEGED: u32 = 65_534;

/// A program that runs until it is dropped.
pub struct Service {
    child: Child,
    pub port: u16,
    /// The path of the program.
    pub program: &'static str,
}

impl Drop for Service {
    fn drop(&mut self) {
        self.signal(Signal::SIGCONT);
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Service {
    fn start(program: &'static str, command: &mut Command, port: u16) -> Service {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().unwrap();
        Service { child, port, program }
    }

    pub fn signal(&self, signal: Signal) {
        let _ = kill(Pid::from_raw(i32::try_from(self.child.id()).unwrap()), signal);
    }

    fn wait_for_port(mut self) -> Service {
        assert!(self.listens(), "the service has ended");
        self
    }

    /// Whether it listens at last; otherwise it has ended.
    fn listens(&mut self) -> bool {
        let end = Instant::now() + PATIENCE;
        while std::net::TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(Instant::now() < end, "the service does not listen");
            if self.child.try_wait().unwrap().is_some() {
                return false;
            }
            sleep(Duration::from_millis(20));
        }
        true
    }
}

/// Starts memcached on a port, with so much memory; what it has no room for is refused.
pub fn memcached(port: u16, megabytes: u32) -> Service {
    memcached_with(port, megabytes, &["-M"])
}

/// Like [`memcached`], but the oldest entries make room.
pub fn evicting_memcached(port: u16, megabytes: u32) -> Service {
    memcached_with(port, megabytes, &[])
}

fn memcached_with(port: u16, megabytes: u32, more: &[&str]) -> Service {
    let mut command = Command::new(MEMCACHED);
    command.args(["-l", "127.0.0.1", "-U", "0", "-m", &megabytes.to_string()]).args(more);
    command.args(["-p", &port.to_string()]);
    if is_root() {
        command.args(["-u", "daemon"]);
    }
    Service::start(MEMCACHED, &mut command, port).wait_for_port()
}

/// Starts Redis on a port, without files, with so much memory.
pub fn redis(port: u16, memory: &str) -> Service {
    let mut command = Command::new(REDIS);
    command.args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]);
    command.args(["--port", &port.to_string(), "--maxmemory", memory]);
    command.args(["--maxmemory-policy", "noeviction"]).current_dir("/");
    Service::start(REDIS, &mut command, port).wait_for_port()
}

/// A cluster of PostgreSQL, in a folder of its own.
pub struct Cluster {
    folder: PathBuf,
    pub port: u16,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl Cluster {
    /// Makes a cluster, whose users log in over TCP by `way`.
    pub fn new(name: &str, way: &str) -> Cluster {
        let folder = std::env::temp_dir().join(format!("pg-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        let cluster = Cluster { folder, port: free_port() };
        if is_root() {
            chown(&cluster.folder, Some(UNPRIVILEGED), Some(UNPRIVILEGED)).unwrap();
        }
        let mut init = cluster.command(INITDB);
        init.args(["-A", "trust", "-U", "boss", "-E", "UTF8", "--locale=C", "-N", "-D"]);
        let made = init.arg(cluster.data()).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        cluster.allow(&format!("host all all all {way}"));
        cluster
    }

    /// Decides how users log in over TCP, by a line of pg_hba.conf, which a server that runs reads.
    pub fn allow(&self, rule: &str) {
        let rules = format!("local all boss trust\nlocal all all trust\n{rule}\n");
        fs::write(self.data().join("pg_hba.conf"), rules).unwrap();
        let _ = self.sql("SELECT pg_reload_conf()");
    }

    /// A file for PostgreSQL's user alone.
    fn secret(&self, name: &str, text: &[u8]) -> PathBuf {
        let path = self.folder.join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        if is_root() {
            chown(&path, Some(UNPRIVILEGED), Some(UNPRIVILEGED)).unwrap();
        }
        path
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// The folder of the socket.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.folder).env_remove("PGDATA").env("LC_ALL", "C");
        if is_root() {
            command.uid(UNPRIVILEGED).gid(UNPRIVILEGED);
        }
        command
    }

    /// Starts the server with TLS, and the tests' authority for clients.
    pub fn start_with_tls(&self) -> Service {
        let file = |name: &str| self.secret(name, &fs::read(format!("{KEYS}/{name}")).unwrap());
        let files = [("cert", "server.pem"), ("key", "server.key"), ("ca", "ca.pem")];
        let options = files.map(|(kind, name)| format!("ssl_{kind}_file={}", file(name).display()));
        let mut arguments = vec!["ssl=on"];
        arguments.extend(options.iter().map(String::as_str));
        self.start_with(&arguments)
    }

    /// Starts the server.
    pub fn start(&self) -> Service {
        self.start_with(&[])
    }

    fn start_with(&self, settings: &[&str]) -> Service {
        let mut command = self.command(POSTGRES);
        command.arg("-D").arg(self.data()).arg("-k").arg(&self.folder);
        command.args(["-h", "127.0.0.1", "-p", &self.port.to_string(), "-F"]);
        for setting in settings {
            command.args(["-c", setting]);
        }
        let end = Instant::now() + PATIENCE;
        // It refuses to start while processes of the one before, which was killed, still end.
        let service = loop {
            let mut service = Service::start(POSTGRES, &mut command, self.port);
            if service.listens() {
                break service;
            }
            assert!(Instant::now() < end, "PostgreSQL does not start");
            sleep(Duration::from_millis(50));
        };
        while self.sql("SELECT 1").is_none_or(|found| found.trim() != "1") {
            assert!(Instant::now() < end, "PostgreSQL does not answer");
            sleep(Duration::from_millis(50));
        }
        service
    }

    /// Executes statements as the owner; what they say.
    pub fn sql(&self, text: &str) -> Option<String> {
        let mut command = self.command(PSQL);
        command.args(["-XAtq", "-U", "boss", "-d", "postgres", "-h"]).arg(&self.folder);
        command.args(["-p", &self.port.to_string(), "-c", text]);
        let said = command.output().unwrap();
        said.status.success().then(|| String::from_utf8_lossy(&said.stdout).into_owned())
    }
}
