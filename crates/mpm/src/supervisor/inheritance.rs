//! What one executable hands over to the next (`-k upgrade`): descriptors that stay open across the
//! exec, and a manifest in a memfd that describes each of them.
//!
//! The manifest has one item per line: a key, words, a path in hexadecimal. A reader skips lines
//! that it does not know; a change that no reader of [`VERSION`] could ignore requires a new
//! version.
#![expect(unsafe_code, reason = "descriptors by number, and the environment of one thread")]

use std::ffi::{CString, OsStr, OsString};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::unistd::Pid;
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::{FdFlags, fcntl_setfd};

use crate::descriptors;
use crate::listeners::HandedGroup;
use crate::scoreboard::ProcessState;
use crate::settings::ListenAddress;
use crate::shared::HandedRegion;

/// The version of the manifest, and of what children and supervisors exchange.
pub(super) const VERSION: u32 = 1;
/// The variable that tells a new process its role.
const VARIABLE: &str = "TAMARACK_UPGRADE";
/// Variables that are not passed on: their sockets are in the manifest.
const OF_SYSTEMD: [&str; 3] = ["LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"];
/// The longest manifest accepted.
const TEXT_BYTES_MAX: u64 = 64 << 20;

/// The role of this process.
pub(super) enum Role {
    /// A server that starts.
    Starter,
    /// A trial: reports whether it could take over, and exits.
    Trial,
    /// The successor of another executable, in the same process.
    Successor(Inheritance),
}

/// What the predecessor has handed over.
#[derive(Default)]
pub(super) struct Inheritance {
    /// The predecessor's last generation.
    pub generation: u32,
    /// The path of the executable that the server was started with.
    pub executable: PathBuf,
    pub pid_file: Option<(PathBuf, OwnedFd)>,
    /// The previous executable, for a rollback.
    pub predecessor: Option<OwnedFd>,
    pub groups: Vec<HandedGroup<OwnedFd>>,
    /// Unused sockets from systemd.
    pub spare: Vec<OwnedFd>,
    pub regions: Vec<HandedRegion>,
    /// The pipe with the program's secrets.
    pub secrets: Option<OwnedFd>,
    pub children: Vec<HandedChild<OwnedFd>>,
}

/// A child of the predecessor.
pub(super) struct HandedChild<L> {
    pub pid: Pid,
    pub generation: u32,
    pub slot: usize,
    pub state: ProcessState,
    pub line: L,
}

/// Whether a running server has executed this process, as a trial or as its successor: it must
/// serve, whatever its arguments ask for.
pub fn is_executed_by_server() -> bool {
    variable().is_some()
}

/// The role and its argument, if they are meant for this process.
fn variable() -> Option<(String, Option<RawFd>)> {
    let text = std::env::var(VARIABLE).ok()?;
    let mut words = text.split(':');
    let (role, pid) = (words.next()?.to_owned(), words.next()?.parse::<i32>().ok()?);
    let expected = match role.as_str() {
        "trial" => Pid::parent(),
        _ => Pid::this(),
    };
    (pid == expected.as_raw()).then(|| (role, words.next().and_then(|word| word.parse().ok())))
}

/// The environment variable of a trial.
pub(super) fn trial_variable() -> (&'static str, String) {
    (VARIABLE, format!("trial:{}", Pid::this()))
}

/// Determines the role of this process. Must be called once, while the process has one thread.
///
/// Errors: an unreadable manifest.
pub(super) fn role() -> io::Result<Role> {
    let found = variable();
    // SAFETY: the process has one thread. Programs that it starts must not see the variable.
    unsafe { std::env::remove_var(VARIABLE) };
    match found {
        Some((role, _)) if role == "trial" => Ok(Role::Trial),
        Some((_, Some(number))) => {
            // SAFETY: the variable is read once.
            let file = unsafe { descriptors::take(number) };
            let mut file = File::from(file.ok_or(io::ErrorKind::NotFound)?);
            let mut text = String::new();
            file.rewind()?;
            file.take(TEXT_BYTES_MAX).read_to_string(&mut text)?;
            Ok(Role::Successor(Inheritance::parse(&text).ok_or(io::ErrorKind::InvalidData)?))
        }
        _ => Ok(Role::Starter),
    }
}

impl Inheritance {
    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        if lines.next()? != format!("tamarack {VERSION}") {
            return None;
        }
        let mut left = Self::default();
        for line in lines {
            // A line that can't be parsed loses its item only.
            let _ = left.parse_line(line);
        }
        (left.generation > 0).then_some(left)
    }

    fn parse_line(&mut self, line: &str) -> Option<()> {
        let mut words = line.split(' ');
        let key = words.next()?;
        let mut next = || words.next();
        match key {
            "generation" => self.generation = next()?.parse().ok()?,
            "executable" => self.executable = path(next()?)?,
            "pidfile" => self.pid_file = Some((path(next()?)?, descriptor(next()?)?)),
            "predecessor" => self.predecessor = Some(descriptor(next()?)?),
            "listen" => {
                let (address, is_inherited) = (address(next()?)?, next()? == "1");
                let sockets = next()?.split(',').filter_map(descriptor).collect::<Vec<_>>();
                if !sockets.is_empty() {
                    self.groups.push(HandedGroup { address, is_inherited, sockets });
                }
            }
            "secrets" => self.secrets = Some(descriptor(next()?)?),
            "spare" => self.spare.push(descriptor(next()?)?),
            "region" => self.regions.push(HandedRegion {
                name: String::from_utf8(bytes(next()?)?).ok()?,
                is_words: next()? == "words",
                count: next()?.parse().ok()?,
                file: Arc::new(descriptor(next()?)?),
            }),
            "child" => self.children.push(HandedChild {
                pid: Pid::from_raw(next()?.parse().ok()?),
                generation: next()?.parse().ok()?,
                slot: next()?.parse().ok()?,
                state: match next()? {
                    "stopping" => ProcessState::Stopping,
                    "quiescing" => ProcessState::Quiescing,
                    _ => ProcessState::Serving,
                },
                line: descriptor(next()?)?,
            }),
            _ => {}
        }
        Some(())
    }
}

fn descriptor(word: &str) -> Option<OwnedFd> {
    // SAFETY: the manifest is read once, and names each descriptor once.
    unsafe { descriptors::take(word.parse().ok()?) }
}

fn path(word: &str) -> Option<PathBuf> {
    Some(OsString::from_vec(bytes(word)?).into())
}

fn bytes(word: &str) -> Option<Vec<u8>> {
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    word.len().is_multiple_of(2).then(|| word.as_bytes().chunks(2).map(pair).collect())?
}

fn address(word: &str) -> Option<ListenAddress> {
    match word.strip_prefix("any:") {
        Some(port) => Some(ListenAddress::Any { port: port.parse().ok()? }),
        None => Some(ListenAddress::Socket(word.parse::<SocketAddr>().ok()?)),
    }
}

/// The manifest for the next executable: its text, and the descriptors that the text names.
pub(super) struct HandoffManifest<'f> {
    text: String,
    descriptors: Vec<BorrowedFd<'f>>,
}

/// The executable to hand over to.
pub(super) enum NextExecutable<'a> {
    /// The file currently at this path.
    Path(&'a Path),
    /// An open file.
    File(BorrowedFd<'a>),
}

impl<'f> HandoffManifest<'f> {
    pub(super) fn new(generation: u32, executable: &Path) -> Self {
        let text = format!("tamarack {VERSION}\ngeneration {generation}\n");
        let mut manifest = Self { text, descriptors: Vec::new() };
        manifest.line("executable", &[&hex(executable.as_os_str().as_bytes())]);
        manifest
    }

    pub(super) fn pid_file(&mut self, path: &Path, file: BorrowedFd<'f>) {
        let file = self.descriptor(file);
        self.line("pidfile", &[&hex(path.as_os_str().as_bytes()), &file]);
    }

    pub(super) fn predecessor(&mut self, file: BorrowedFd<'f>) {
        let file = self.descriptor(file);
        self.line("predecessor", &[&file]);
    }

    pub(super) fn group<S: AsFd>(&mut self, group: &HandedGroup<&'f S>) {
        let address = match group.address {
            ListenAddress::Any { port } => format!("any:{port}"),
            ListenAddress::Socket(address) => address.to_string(),
        };
        let sockets: Vec<String> =
            group.sockets.iter().map(|socket: &&'f S| self.descriptor(S::as_fd(socket))).collect();
        let is_inherited = if group.is_inherited { "1" } else { "0" };
        self.line("listen", &[&address, is_inherited, &sockets.join(",")]);
    }

    pub(super) fn spare(&mut self, socket: BorrowedFd<'f>) {
        let socket = self.descriptor(socket);
        self.line("spare", &[&socket]);
    }

    /// Only for readers that know this line: others would leave the pipe open, for their children
    /// too.
    pub(super) fn secrets(&mut self, pipe: BorrowedFd<'f>) {
        let pipe = self.descriptor(pipe);
        self.line("secrets", &[&pipe]);
    }

    pub(super) fn region(&mut self, region: &'f HandedRegion) {
        let file = self.descriptor(region.as_fd());
        let kind = if region.is_words { "words" } else { "bytes" };
        let name = hex(region.name.as_bytes());
        self.line("region", &[&name, kind, &region.count.to_string(), &file]);
    }

    pub(super) fn child(&mut self, child: &HandedChild<BorrowedFd<'f>>) {
        let line = self.descriptor(child.line);
        let state = match child.state {
            ProcessState::Stopping => "stopping",
            ProcessState::Quiescing => "quiescing",
            _ => "serving",
        };
        let numbers = [
            child.pid.to_string(),
            child.generation.to_string(),
            child.slot.to_string(),
            state.to_owned(),
            line,
        ];
        self.line("child", &numbers.each_ref().map(String::as_str));
    }

    /// Executes the successor in this process. Returns only on failure, with everything unchanged.
    pub(super) fn execute(self, successor: &NextExecutable<'_>) -> io::Error {
        let executed = || -> io::Result<()> {
            let mut file = File::from(memfd_create("tamarack", MemfdFlags::CLOEXEC)?);
            file.write_all(self.text.as_bytes())?;
            let variable = format!("{VARIABLE}=successor:{}:{}", Pid::this(), file.as_raw_fd());
            let (arguments, environment) = (arguments()?, environment(&variable)?);
            for descriptor in self.descriptors.iter().copied().chain([file.as_fd()]) {
                descriptors::keep_open(descriptor)?;
            }
            match successor {
                NextExecutable::Path(path) => {
                    let path = CString::new(path.as_os_str().as_bytes())?;
                    nix::unistd::execve(&path, &arguments, &environment)?;
                }
                NextExecutable::File(file) => {
                    nix::unistd::fexecve(file, &arguments, &environment)?;
                }
            }
            Ok(())
        };
        let error = executed().err().unwrap_or_else(|| io::ErrorKind::Other.into());
        for descriptor in self.descriptors {
            let _ = fcntl_setfd(descriptor, FdFlags::CLOEXEC);
        }
        error
    }

    fn descriptor(&mut self, descriptor: BorrowedFd<'f>) -> String {
        self.descriptors.push(descriptor);
        descriptor.as_raw_fd().to_string()
    }

    fn line(&mut self, key: &str, words: &[&str]) {
        let _ = writeln!(self.text, "{key} {}", words.join(" "));
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn arguments() -> io::Result<Vec<CString>> {
    Ok(std::env::args_os().map(|word| CString::new(word.into_vec())).collect::<Result<_, _>>()?)
}

fn environment(more: &str) -> io::Result<Vec<CString>> {
    let is_kept = |name: &OsStr| OF_SYSTEMD.iter().all(|other| name != *other);
    let mut variables = vec![CString::new(more)?];
    for (name, value) in std::env::vars_os().filter(|(name, _)| is_kept(name)) {
        let variable = [name.as_bytes(), b"=", value.as_bytes()].concat();
        variables.push(CString::new(variable)?);
    }
    Ok(variables)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn what_is_left_is_what_is_read() {
        let sockets = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let null = || OwnedFd::from(File::open("/dev/null").unwrap());
        let (pid_file, line, secrets, file) = (null(), null(), null(), Arc::new(null()));
        let name = "a b".to_owned();
        let region = HandedRegion { name, is_words: true, count: 3, file };
        let mut manifest = HandoffManifest::new(7, Path::new("/usr/sbin/a b"));
        manifest.pid_file(Path::new("/run/\u{e4}.pid"), pid_file.as_fd());
        manifest.group(&HandedGroup {
            address: ListenAddress::Any { port: 80 },
            is_inherited: true,
            sockets: sockets.iter().collect(),
        });
        manifest.secrets(secrets.as_fd());
        manifest.region(&region);
        let state = ProcessState::Quiescing;
        let pid = Pid::from_raw(41);
        let (generation, slot) = (6, 1);
        manifest.child(&HandedChild { pid, generation, slot, state, line: line.as_fd() });
        let text = format!("{}something new\nlisten nonsense\n", manifest.text);
        let left = Inheritance::parse(&text).unwrap();
        assert_eq!((left.generation, left.executable.as_path()), (7, Path::new("/usr/sbin/a b")));
        assert_eq!(left.pid_file.unwrap().0, Path::new("/run/\u{e4}.pid"));
        assert!(left.predecessor.is_none() && left.secrets.is_some());
        let group = &left.groups[0];
        assert_eq!((group.is_inherited, group.sockets.len()), (true, 2));
        assert_eq!(group.address, ListenAddress::Any { port: 80 });
        assert_eq!((left.regions[0].name.as_str(), left.regions[0].count), ("a b", 3));
        let child = &left.children[0];
        assert_eq!((child.pid, child.generation, child.slot, child.state), (pid, 6, 1, state));
        // The parsed manifest owns the descriptors now.
        std::mem::forget((sockets, pid_file, secrets, region, line));
        assert!(Inheritance::parse("tamarack 0\ngeneration 7\n").is_none());
        assert!(Inheritance::parse("").is_none());
    }

    #[test]
    fn a_word_that_is_no_descriptor_is_not_taken() {
        assert!(descriptor("-1").is_none());
        assert!(descriptor("x").is_none());
        assert_eq!(bytes("616"), None);
        assert_eq!(bytes("6162").unwrap(), b"ab");
    }
}
