//! Signals: blocked in the supervisor and read from a descriptor, reset in children.
#![expect(unsafe_code, reason = "signal dispositions of a forked child")]

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::signal::{
    SaFlags, SigAction, SigHandler, SigSet, SigmaskHow, Signal, sigaction, sigprocmask,
};
use nix::sys::signalfd::{SfdFlags, SignalFd};

/// A request to the supervisor, by signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// SIGTERM, SIGINT.
    Stop,
    /// SIGWINCH.
    GracefulStop,
    /// SIGHUP.
    Restart,
    /// SIGUSR1.
    Graceful,
    /// SIGUSR2.
    Upgrade,
    /// SIGCHLD.
    Reap,
}

const WATCHED: [Signal; 7] = [
    Signal::SIGTERM,
    Signal::SIGINT,
    Signal::SIGHUP,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGWINCH,
    Signal::SIGCHLD,
];

/// The supervisor's signals.
pub(super) struct Signals {
    descriptor: SignalFd,
}

impl Signals {
    /// Blocks the handled signals and opens the descriptor. Signals are queued from now on.
    pub(super) fn block() -> io::Result<Self> {
        let set: SigSet = WATCHED.into_iter().collect();
        sigprocmask(SigmaskHow::SIG_SETMASK, Some(&set), None)?;
        // A log file that reaches RLIMIT_FSIZE must be a failed write, not a death (as in httpd).
        ignore(Signal::SIGXFSZ)?;
        ignore(Signal::SIGPIPE)?;
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        Ok(Self { descriptor: SignalFd::with_flags(&set, flags)? })
    }

    /// The signals received, in order.
    pub(super) fn read(&self) -> Vec<Request> {
        let mut requests = Vec::new();
        while let Ok(Some(info)) = self.descriptor.read_signal() {
            let Ok(number) = i32::try_from(info.ssi_signo) else { continue };
            match Signal::try_from(number) {
                Ok(Signal::SIGTERM | Signal::SIGINT) => requests.push(Request::Stop),
                Ok(Signal::SIGHUP) => requests.push(Request::Restart),
                Ok(Signal::SIGUSR1) => requests.push(Request::Graceful),
                Ok(Signal::SIGUSR2) => requests.push(Request::Upgrade),
                Ok(Signal::SIGCHLD) => requests.push(Request::Reap),
                // The kernel also sends it when a terminal's size changes, which is no order.
                Ok(Signal::SIGWINCH) if info.ssi_code == libc::SI_USER => {
                    requests.push(Request::GracefulStop);
                }
                _ => {}
            }
        }
        requests
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// Resets signals in a child. Those that a terminal or `killall` sends to the whole group are
/// ignored: the supervisor receives them too, and sends its orders on the control line. SIGTERM
/// ends the child. Programs that the child executes get the defaults.
pub(super) fn reset_in_child() -> io::Result<()> {
    let nothing =
        SigAction::new(SigHandler::Handler(do_nothing), SaFlags::SA_RESTART, SigSet::empty());
    for signal in [Signal::SIGINT, Signal::SIGHUP, Signal::SIGUSR1, Signal::SIGUSR2] {
        // SAFETY: the handler does nothing, so it may run at any time.
        unsafe { sigaction(signal, &nothing) }?;
    }
    sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None)?;
    Ok(())
}

/// Resets signals in a companion, which ends with its line: it ignores those that end a server, and
/// the programs that it executes do not.
pub(crate) fn reset_in_companion() -> io::Result<()> {
    reset_in_child()?;
    let nothing =
        SigAction::new(SigHandler::Handler(do_nothing), SaFlags::SA_RESTART, SigSet::empty());
    // SAFETY: the handler does nothing, so it may run at any time.
    unsafe { sigaction(Signal::SIGTERM, &nothing) }?;
    Ok(())
}

extern "C" fn do_nothing(_signal: libc::c_int) {}

fn ignore(signal: Signal) -> io::Result<()> {
    let ignored = SigAction::new(SigHandler::SigIgn, SaFlags::empty(), SigSet::empty());
    // SAFETY: ignoring a signal runs no code.
    unsafe { sigaction(signal, &ignored) }?;
    Ok(())
}
