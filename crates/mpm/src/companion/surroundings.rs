//! What a long-running program finds when a companion starts it: its user, folders and limits.
#![expect(unsafe_code, reason = "what a forked child does before it executes the program")]

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

use nix::unistd::{Gid, Uid, chdir, chroot, setgid, setgroups, setuid};
use rustix::pipe::{PipeFlags, pipe_with};

use crate::settings::Identity;

/// What a program finds. The default changes nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// The user and groups; `None` keeps those of the companion.
    pub identity: Option<Identity>,
    /// The root directory.
    pub root: Option<CString>,
    /// The working directory, below the root directory.
    pub directory: Option<CString>,
    /// The mask of file modes.
    pub umask: Option<u32>,
    /// The scheduling priority (nice(2)).
    pub priority: Option<i32>,
    /// Seconds of CPU time: a soft limit; SIGXCPU announces it.
    pub cpu_seconds: Option<u64>,
    /// Bytes of data (RLIMIT_DATA).
    pub data_bytes: Option<u64>,
    /// Bytes of address space (RLIMIT_AS).
    pub memory_bytes: Option<u64>,
}

/// The steps that may fail.
#[derive(Clone, Copy, Debug)]
enum Step {
    Root,
    Identity,
    Directory,
}

impl Surroundings {
    /// Starts a program with exactly these words and variables, as [`super::start`] does, and
    /// leaves it the descriptors `kept` under their numbers.
    ///
    /// # Errors
    /// Those of the step that failed, and of [`super::start`].
    pub fn start(
        &self,
        command: &mut Command,
        words: Vec<Vec<u8>>,
        environment: Vec<Vec<u8>>,
        kept: &[BorrowedFd<'_>],
    ) -> io::Result<Child> {
        // Where the new process tells which step has failed.
        let (failure, teller) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        let kept: Vec<RawFd> = kept.iter().map(AsRawFd::as_raw_fd).collect();
        let own = self.clone();
        // SAFETY: the companion has one thread, so what the closure does in its copy is
        // unrestricted.
        unsafe {
            command.pre_exec(move || {
                for descriptor in &kept {
                    if libc::fcntl(*descriptor, libc::F_SETFD, 0) != 0 {
                        return Err(io::Error::last_os_error());
                    }
                }
                own.enter().map_err(|(step, error)| {
                    let _ = rustix::io::write(&teller, &[step as u8]);
                    error
                })
            });
        }
        super::start(command, words, environment).map_err(|error| {
            let mut step = [u8::MAX];
            let _ = rustix::io::read(&failure, &mut step);
            self.explained(step, error)
        })
    }

    /// An error with the step that it comes from.
    fn explained(&self, [step]: [u8; 1], error: io::Error) -> io::Error {
        let text = |path: &Option<CString>| {
            path.as_ref().map(|path| path.to_string_lossy().into_owned()).unwrap_or_default()
        };
        let what = match step {
            step if step == Step::Root as u8 => {
                format!("can't make '{}' the root directory", text(&self.root))
            }
            step if step == Step::Identity as u8 => "can't become its user".to_owned(),
            step if step == Step::Directory as u8 => {
                format!("can't change to the folder '{}'", text(&self.directory))
            }
            _ => return error,
        };
        io::Error::new(error.kind(), format!("{what}: {error}"))
    }

    /// Makes this process what the program should find. Changes all that needs root first.
    fn enter(&self) -> Result<(), (Step, io::Error)> {
        limit(libc::RLIMIT_DATA as libc::c_int, self.data_bytes);
        limit(libc::RLIMIT_AS as libc::c_int, self.memory_bytes);
        if let Some(seconds) = self.cpu_seconds {
            soft_limit(libc::RLIMIT_CPU as libc::c_int, seconds);
        }
        if let Some(priority) = self.priority {
            // SAFETY: changes the calling process. As in mod_wsgi, a failure is no reason to stop.
            unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, priority) };
        }
        if let Some(root) = &self.root {
            let entered = chdir(root.as_c_str())
                .and_then(|()| chroot(root.as_c_str()))
                .and_then(|()| chdir(c"/"));
            entered.map_err(|errno| (Step::Root, errno.into()))?;
        }
        if let Some(identity) = &self.identity {
            let groups: Vec<Gid> = identity.groups.iter().copied().map(Gid::from_raw).collect();
            let changed = setgid(Gid::from_raw(identity.group))
                .and_then(|()| setgroups(&groups))
                .and_then(|()| setuid(Uid::from_raw(identity.user)));
            changed.map_err(|errno| (Step::Identity, errno.into()))?;
        }
        if let Some(mask) = self.umask {
            nix::sys::stat::umask(nix::sys::stat::Mode::from_bits_truncate(mask));
        }
        if let Some(directory) = &self.directory {
            chdir(directory.as_c_str()).map_err(|errno| (Step::Directory, errno.into()))?;
        }
        Ok(())
    }
}

/// Sets a limit that can't be raised again. As in mod_wsgi, one that can't be set stays as it is.
fn limit(resource: libc::c_int, value: Option<u64>) {
    if let Some(value) = value {
        let limit = libc::rlimit { rlim_cur: value, rlim_max: value };
        // SAFETY: reads `limit`.
        unsafe { libc::setrlimit(resource as _, &raw const limit) };
    }
}

/// Sets a soft limit; the kernel kills the process some seconds after it.
fn soft_limit(resource: libc::c_int, value: u64) {
    const GRACE_SECONDS: u64 = 5;
    let limit = libc::rlimit { rlim_cur: value, rlim_max: value + GRACE_SECONDS };
    // SAFETY: reads `limit`.
    unsafe { libc::setrlimit(resource as _, &raw const limit) };
}
