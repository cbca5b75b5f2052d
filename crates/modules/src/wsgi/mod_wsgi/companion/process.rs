//! A process of an application group.

use std::collections::VecDeque;
use std::ffi::CString;
use std::fs::File;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Instant;

use mpm::companion::Surroundings;
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, Uid, User};
use rustix::event::epoll;
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags,
    SocketType, recv, send, sendmsg, socketpair,
};
use rustix::process::{PidfdFlags, pidfd_open};

use super::settings::settings;
use super::slots::Slots;
use super::{GroupPlan, Tools};
use crate::wsgi::mod_wsgi::python::Python;

/// What a process executes.
const WORKER: &str = concat!(
    include_str!("../worker/wire.py"),
    include_str!("../worker/log.py"),
    include_str!("../worker/request.py"),
    include_str!("../worker/script.py"),
    include_str!("../worker/modules.py"),
    include_str!("../worker/life.py"),
);

/// Reads its settings and [`WORKER`] from a descriptor, after eight digits with the length of the
/// settings. Like mod_wsgi's, the process does not find modules in its working directory.
const LOADER: &str = "import sys;sys.path[:]=[p for p in sys.path if p];import posix;\
    _=posix.pread(int(sys.argv[1]),1<<24,0);\
    exec(compile(_[8+int(_[:8]):],'<mod_wsgi>','exec'))";

/// The longest description of a thread in /proc.
const STAT_BYTES: u64 = 4096;

/// The longest message of a process.
const MESSAGE_BYTES: usize = 16 << 10;

/// A process.
pub(super) struct Process {
    pub identifier: u64,
    /// Its place in shared memory.
    pub place: Option<u16>,
    /// The lanes that it has to be told of.
    untold: VecDeque<u16>,
    child: Child,
    life: OwnedFd,
    control: OwnedFd,
    pub started: Instant,
    pub state: State,
    /// When it last answered, and whether it is asked.
    pub answered: Instant,
    pub is_asked: bool,
    /// Whether it is killed because it has not answered.
    pub is_deadlocked: bool,
    /// When to ask it again; `None` if it never is.
    pub next_check: Option<Instant>,
    /// When to kill it.
    pub kill_at: Option<Instant>,
}

/// How far a process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Starting,
    Ready,
    /// A successor has been started; it ends once that is ready.
    Retiring,
    /// It takes no requests any more.
    Draining,
}

/// What a process reports.
#[derive(Debug)]
pub(super) enum Report {
    /// It takes requests.
    Ready,
    /// It wants to be replaced, for this reason.
    Retire(String),
    /// It takes no requests any more, for this reason.
    Drains(String),
    /// It is alive.
    Alive,
    /// It has had a request.
    Used,
    /// Whether it can use shared memory, or why not.
    Extension(Option<String>),
    /// A line for the log: a digit for the level, and the text.
    Line(Vec<u8>),
    /// It has closed its end.
    Closed,
}

/// What a process takes requests from.
pub(super) struct Start<'s> {
    pub application: &'s [u8],
    /// A queue of sockets.
    pub queue: BorrowedFd<'s>,
    /// Shared memory, and its place there.
    pub slots: Option<(&'s Slots, u16)>,
}

impl Process {
    /// Starts a process.
    ///
    /// # Errors
    /// There are no descriptors, or the program can't be executed.
    pub fn start(
        tools: &mut Tools<'_>,
        group: &GroupPlan,
        start: &Start<'_>,
    ) -> io::Result<Process> {
        let Start { application, queue, slots } = *start;
        let python = tools.plan.python.of(&tools.plan.interpreters, group.name(), application);
        let executable = python.executable(group.daemon.as_deref());
        let place = slots.map(|(slots, place)| (slots.geometry(), place));
        let place = place.map(|(geometry, place)| (geometry, place, &*tools.extensions.kinds));
        let settings = settings(tools.plan, group, (application, place), &python);
        let script = File::from(memfd_create(c"mod_wsgi", MemfdFlags::CLOEXEC)?);
        let length = format!("{:08}", settings.len());
        let parts = [length.as_bytes(), &settings, WORKER.as_bytes()];
        script.write_all_at(&parts.concat(), 0)?;
        let (control, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        rustix::io::ioctl_fionbio(&control, true)?;
        let mut kept = vec![script.as_fd(), queue, theirs.as_fd()];
        if let Some((slots, _)) = slots {
            kept.push(slots.as_fd());
            kept.extend(tools.extensions.files.iter().map(OwnedFd::as_fd));
        }
        let mut command = Command::new(&executable);
        let errors = io::stderr().as_fd().try_clone_to_owned()?;
        command.stdin(Stdio::null()).stdout(Stdio::from(errors));
        let words = words(&executable, &python, &kept);
        let surroundings = surroundings(group);
        let environment = environment(group, &python);
        let child = surroundings.start(&mut command, words, environment, &kept)?;
        let pid = rustix::process::Pid::from_child(&child);
        let life = pidfd_open(pid, PidfdFlags::empty())?;
        let identifier = tools.identifier();
        for descriptor in [life.as_fd(), control.as_fd()] {
            let data = epoll::EventData::new_u64(identifier);
            epoll::add(tools.epoll, descriptor, data, epoll::EventFlags::IN)?;
        }
        let now = Instant::now();
        let mut process = Process {
            identifier,
            place: place.map(|(_, place, _)| place),
            untold: VecDeque::new(),
            child,
            life,
            control,
            started: now,
            state: State::Starting,
            answered: now,
            is_asked: false,
            is_deadlocked: false,
            next_check: group.deadlock_timeout().map(|limit| now + limit),
            kill_at: None,
        };
        if let Some((slots, _)) = slots {
            process.untold.extend(slots.bells().map(|(lane, _)| lane));
            process.tell_of_lanes(slots);
        }
        Ok(process)
    }

    /// Gives it the bell of a lane, or tells it that there is none any more.
    pub fn tell_of_lane(&mut self, lane: u16, slots: &Slots) {
        self.untold.push_back(lane);
        self.tell_of_lanes(slots);
    }

    /// Tells it of all lanes that it does not know. What does not fit its socket waits.
    pub fn tell_of_lanes(&mut self, slots: &Slots) {
        while let Some(lane) = self.untold.front() {
            let bell = slots.bell(*lane);
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut rights = SendAncillaryBuffer::new(&mut space);
            let descriptors: Vec<BorrowedFd<'_>> = bell.into_iter().collect();
            if !descriptors.is_empty() {
                rights.push(SendAncillaryMessage::ScmRights(&descriptors));
            }
            let number = lane.to_le_bytes();
            let parts = [IoSlice::new(b"B"), IoSlice::new(&number)];
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            match sendmsg(&self.control, &parts, &mut rights, flags) {
                Err(Errno::AGAIN) => return,
                // One that has died is no reader any more.
                _ => drop(self.untold.pop_front()),
            }
        }
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether one of its threads runs, or waits for a CPU only.
    pub fn is_running(&self) -> bool {
        let tasks = format!("/proc/{}/task", self.pid());
        let Ok(tasks) = std::fs::read_dir(tasks) else { return false };
        tasks.flatten().any(|task| {
            let stat = regular::read(task.path().join("stat"), STAT_BYTES).unwrap_or_default();
            // The state follows the name, which may contain anything.
            let state =
                stat.iter().rposition(|byte| *byte == b')').and_then(|end| stat.get(end + 2));
            state == Some(&b'R')
        })
    }

    /// The next report; `None` if none has come.
    pub fn report(&self) -> Option<Report> {
        let mut bytes = vec![0; MESSAGE_BYTES];
        let (_, count) = recv(&self.control, &mut bytes[..], RecvFlags::DONTWAIT).ok()?;
        if count == 0 {
            return Some(Report::Closed);
        }
        let (kind, text) = bytes.get(..count)?.split_first()?;
        let reason = || String::from_utf8_lossy(text).into_owned();
        Some(match kind {
            b'S' => Report::Ready,
            b'R' => Report::Retire(reason()),
            b'D' => Report::Drains(reason()),
            b'L' => Report::Line(text.to_vec()),
            b'U' => Report::Used,
            b'N' => Report::Extension(None),
            b'O' => Report::Extension(Some(reason())),
            // Anything else is a sign of life.
            _ => Report::Alive,
        })
    }

    /// Asks it to answer.
    pub fn ask(&mut self) {
        self.is_asked = true;
        let _ = send(&self.control, b"P", SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
    }

    /// Asks it to end once its requests are done.
    pub fn quit(&self) {
        let _ = send(&self.control, b"Q", SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
    }

    /// Ends it now. As long as it has not been reaped, no other process has its number.
    pub fn kill(&mut self) {
        let _ = kill(Pid::from_raw(self.pid().cast_signed()), Signal::SIGKILL);
    }

    /// How it has ended; `None` while it runs.
    pub fn ended(&mut self) -> Option<String> {
        let status = self.child.try_wait().ok().flatten()?;
        Some(how(status))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = &self.life;
        if self.ended().is_none() {
            self.kill();
            let _ = self.child.wait();
        }
    }
}

fn how(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exited with status {code}"),
        (_, Some(signal)) => match Signal::try_from(signal) {
            Ok(signal) => format!("was ended by {signal}"),
            Err(_) => format!("was ended by signal {signal}"),
        },
        _ => "ended".to_owned(),
    }
}

fn words(executable: &std::path::Path, python: &Python, kept: &[BorrowedFd<'_>]) -> Vec<Vec<u8>> {
    use std::os::fd::AsRawFd;

    let mut words = vec![executable.as_os_str().as_bytes().to_vec()];
    match python.optimize {
        Some(1) => words.push(b"-O".to_vec()),
        Some(2) => words.push(b"-OO".to_vec()),
        _ => {}
    }
    if python.no_bytecode == Some(true) {
        words.push(b"-B".to_vec());
    }
    if python.free_threading != Some(true) {
        // A Python that can run without its lock would do so. Others ignore it.
        words.extend([b"-X".to_vec(), b"gil=1".to_vec()]);
    }
    for warning in &python.warnings {
        words.extend([b"-W".to_vec(), warning.clone()]);
    }
    words.extend([b"-c".to_vec(), LOADER.into()]);
    words.extend(kept.iter().map(|fd| fd.as_raw_fd().to_string().into_bytes()));
    words
}

/// `NAME=value`: the server's own variables, and those of the options. In processes of daemon
/// groups HOME is that of their user, as are other variables of a user that the server has.
fn environment(group: &GroupPlan, python: &Python) -> Vec<Vec<u8>> {
    let daemon = group.daemon.as_deref();
    let text = |name| daemon.and_then(|daemon| daemon.text(name)).map(<[u8]>::to_vec);
    let uid = group.identity.as_ref().map_or_else(Uid::effective, |own| Uid::from_raw(own.user));
    let user = daemon.and_then(|_| User::from_uid(uid).ok().flatten());
    let home = user.as_ref().map(|user| user.dir.as_os_str().as_bytes().to_vec());
    let named = |variable| {
        let user = user.as_ref().filter(|_| std::env::var_os(variable).is_some());
        user.map(|user| user.name.clone().into_bytes())
    };
    let own = [
        ("HOME", home),
        ("LANG", text("lang")),
        ("LC_ALL", text("locale")),
        ("LOGNAME", named("LOGNAME")),
        ("PYTHON_EGG_CACHE", text("python-eggs").or_else(|| python.eggs.clone())),
        ("PYTHONHASHSEED", python.hash_seed.clone()),
        ("USER", named("USER")),
        ("USERNAME", named("USERNAME")),
    ];
    let is_own = |name: &std::ffi::OsStr| {
        name == "NOTIFY_SOCKET" || own.iter().any(|(own, value)| value.is_some() && name == *own)
    };
    let inherited = std::env::vars_os()
        .filter(|(name, _)| !is_own(name))
        .map(|(name, value)| [name.into_vec(), value.into_vec()].join(&b'='));
    let given = own
        .iter()
        .filter_map(|(name, value)| Some([name.as_bytes(), value.as_deref()?].join(&b'=')));
    inherited.chain(given).collect()
}

fn surroundings(group: &GroupPlan) -> Surroundings {
    let daemon = group.daemon.as_deref();
    let text = |bytes: Vec<u8>| CString::new(bytes).ok();
    let home = daemon.and_then(|daemon| daemon.home.clone());
    // As in mod_wsgi, processes of a user that is named for them begin in the folder of that user,
    // others where the server has.
    let home = home.or_else(|| {
        daemon?.user.as_ref()?;
        let user = group.identity.as_ref()?.user;
        let found = User::from_uid(Uid::from_raw(user)).ok().flatten()?;
        found.dir.is_dir().then(|| found.dir.into_os_string().into_vec())
    });
    let number = |name| daemon.and_then(|daemon| daemon.number(name));
    Surroundings {
        identity: group.identity.clone(),
        root: daemon.and_then(|daemon| daemon.chroot.clone()).and_then(text),
        directory: home.and_then(text),
        umask: daemon.and_then(|daemon| daemon.umask),
        priority: daemon.and_then(|daemon| daemon.priority),
        cpu_seconds: number("cpu-time-limit"),
        data_bytes: number("memory-limit"),
        memory_bytes: number("virtual-memory-limit"),
    }
}
