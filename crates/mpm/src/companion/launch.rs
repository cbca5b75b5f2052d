//! Starts a program without copying the process that starts it.
//!
//! fork(2) copies the companion's page tables, which costs more than the program itself: some
//! 0.6 ms at 20 MB. The new process shares the companion's memory until it executes the program,
//! as that of vfork(2) does.
#![expect(unsafe_code, reason = "clone(2), and what the new process calls before execve(2)")]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

use nix::unistd::Pid;
use rustix::process::{WaitId, WaitIdOptions, waitid};

use super::order::{Limits, StartOrder};

/// The stack of the new process until it executes the program, bytes. It calls a dozen functions of
/// the C library that only make system calls.
const STACK_BYTES: usize = 64 * 1024;

/// The last of the signals that programs know by name; those behind it have no fixed meaning.
const SIGNAL_MAX: c_int = 31;

/// Starts programs.
#[derive(Debug)]
pub(super) struct Launcher {
    stack: Vec<u128>,
    ignored: Ignored,
}

/// The signals that this process ignores, bit `n` for signal `n`: those that the server ignores,
/// and those that it found ignored. An ignored signal stays ignored in an executed program.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ignored(u32);

/// The step that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// clone(2)
    Fork,
    /// What comes before the program: its limits, folder and descriptors.
    Prepare,
    /// execve(2)
    Execute,
}

/// What the new process needs, and where it leaves the reason why it could not start the program.
struct Plan {
    directory: *const c_char,
    program: *const c_char,
    words: *const *const c_char,
    environment: *const *const c_char,
    descriptors: [RawFd; 3],
    limits: [(c_int, Option<libc::rlimit>); 3],
    ignored: Ignored,
    failure: Option<(Step, c_int)>,
}

impl Launcher {
    /// With a stack of its own. What this process ignores must not change afterwards.
    pub fn new() -> Launcher {
        let stack = vec![0; STACK_BYTES / size_of::<u128>()];
        Launcher { stack, ignored: Ignored::now() }
    }

    /// Starts the program of `order` with these descriptors as its standard input, output and
    /// error. Returns a descriptor of the process, and its number. It has a process group of its
    /// own, the default signals and no other descriptor, and receives SIGTERM if this process ends.
    ///
    /// # Errors
    /// The step that failed, with its error.
    pub fn start(
        &mut self,
        order: &StartOrder<'_>,
        descriptors: [BorrowedFd<'_>; 3],
    ) -> Result<(OwnedFd, Pid), (Step, io::Error)> {
        let pointers = |list: &[&CStr]| -> Vec<*const c_char> {
            list.iter().map(|text| text.as_ptr()).chain(std::iter::once(ptr::null())).collect()
        };
        let (words, environment) = (pointers(&order.words), pointers(&order.environment));
        let mut plan = Plan {
            directory: order.directory.as_ptr(),
            program: order.program.as_ptr(),
            words: words.as_ptr(),
            environment: environment.as_ptr(),
            descriptors: descriptors.map(|descriptor| descriptor.as_raw_fd()),
            limits: resources(&order.limits),
            ignored: self.ignored,
            failure: None,
        };
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PIDFD | libc::SIGCHLD as c_int;
        let mut pidfd: c_int = -1;
        // SAFETY: the stack grows down from its end, which is aligned to 16. CLONE_VFORK stops
        // this thread, the only one, until the new process has executed the program or has ended,
        // so that `plan` and what it points at outlive their use, and nothing else uses the memory.
        let pid = unsafe {
            let top = self.stack.as_mut_ptr_range().end.cast::<c_void>();
            libc::clone(enter, top, flags, (&raw mut plan).cast(), &raw mut pidfd)
        };
        if pid < 0 {
            return Err((Step::Fork, io::Error::last_os_error()));
        }
        // SAFETY: the kernel has just opened it for this process.
        let process = unsafe { OwnedFd::from_raw_fd(pidfd) };
        match plan.failure {
            None => Ok((process, Pid::from_raw(pid))),
            Some((step, errno)) => {
                let _ = waitid(WaitId::PidFd(process.as_fd()), WaitIdOptions::EXITED);
                Err((step, io::Error::from_raw_os_error(errno)))
            }
        }
    }
}

/// The first function of the new process: never returns to the companion's code.
extern "C" fn enter(plan: *mut c_void) -> c_int {
    let plan = plan.cast::<Plan>();
    // SAFETY: `start` waits, with `plan` on its stack. All calls are safe in a process that shares
    // its memory: they neither allocate nor lock, and change nothing of the companion but `errno`.
    unsafe {
        let step = match prepare(&*plan) {
            true => {
                libc::execve((*plan).program, (*plan).words, (*plan).environment);
                Step::Execute
            }
            false => Step::Prepare,
        };
        (*plan).failure = Some((step, *libc::__errno_location()));
        libc::_exit(127)
    }
}

impl Ignored {
    /// Those of this moment.
    pub fn now() -> Ignored {
        let is_ignored = |signal: &c_int| {
            // SAFETY: all-zero bytes are a `sigaction`, which the call fills without changing what
            // the process does.
            unsafe {
                let mut action: libc::sigaction = std::mem::zeroed();
                libc::sigaction(*signal, ptr::null(), &raw mut action) == 0
                    && action.sa_sigaction == libc::SIG_IGN
            }
        };
        Ignored((1..=SIGNAL_MAX).filter(is_ignored).fold(0, |set, signal| set | 1 << signal))
    }

    /// Sets them to their defaults. Only makes system calls.
    pub fn reset(self) {
        for signal in (1..=SIGNAL_MAX).filter(|signal| self.0 >> signal & 1 == 1) {
            // SAFETY: the default action runs no code of this process.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
    }
}

/// Whether all is as the program should find it.
///
/// # Safety
/// The pointers of `plan` must be valid. Changes the calling process.
unsafe fn prepare(plan: &Plan) -> bool {
    // SAFETY: as the caller promises; system calls on values of this process.
    unsafe {
        plan.ignored.reset();
        if libc::setpgid(0, 0) != 0 || libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM) != 0 {
            return false;
        }
        for (resource, limit) in plan.limits {
            if let Some(limit) = limit {
                // As in Apache, a limit that can't be set stays as it is.
                libc::setrlimit(resource as _, &raw const limit);
            }
        }
        if libc::chdir(plan.directory) != 0 {
            return false;
        }
        for (own, given) in (0..).zip(plan.descriptors) {
            if libc::dup2(given, own) != own {
                return false;
            }
        }
        // All others are closed by execve(2), too, unless something has opened one without
        // CLOEXEC. A kernel before 5.9 does not have the call.
        libc::syscall(libc::SYS_close_range, 3, c_int::MAX, 0);
        true
    }
}

/// The limits to set, with what this process has where none is asked for.
///
/// Source: `unixd_set_rlimit`
fn resources(limits: &Limits) -> [(c_int, Option<libc::rlimit>); 3] {
    let of = |resource: c_int, (soft, hard): (Option<u64>, Option<u64>)| {
        if soft.is_none() && hard.is_none() {
            return (resource, None);
        }
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: writes to `limit`.
        if unsafe { libc::getrlimit(resource as _, &raw mut limit) } != 0 {
            return (resource, None);
        }
        limit.rlim_max = hard.unwrap_or(limit.rlim_max);
        limit.rlim_cur = soft.unwrap_or(limit.rlim_cur);
        (resource, Some(limit))
    };
    [
        of(libc::RLIMIT_CPU as c_int, limits.cpu_seconds),
        of(libc::RLIMIT_AS as c_int, limits.memory_bytes),
        of(libc::RLIMIT_NPROC as c_int, limits.processes),
    ]
}
