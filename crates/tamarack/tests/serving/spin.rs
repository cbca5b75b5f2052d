//! Makes a thread of the running program spin without special code in the program: a tracer stops
//! the thread that received a request, and points it to a jump to itself.

use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::libc;
use nix::sys::ptrace::{self, AddressType, Options};
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::client::PATIENCE;
use crate::site::Site;

/// `jmp` to itself, in the two lowest bytes of a word.
const SPIN: libc::c_long = 0xfeeb;
/// How long no thread has started when all have.
const SETTLED: Duration = Duration::from_millis(200);
/// The part of a word that [`SPIN`] replaces.
const SPIN_MASK: libc::c_long = 0xffff;

/// Makes the thread of `process` that receives the next request spin. The tracer detaches before
/// this function returns: the watchdog ignores a process that is being traced.
pub fn spin_on_request(site: &Site, process: Pid, ask: impl FnOnce()) {
    let threads = started_threads(site, process);
    for thread in &threads {
        ptrace::seize(*thread, Options::PTRACE_O_TRACESYSGOOD).unwrap();
        interrupt(*thread);
        ptrace::syscall(*thread, None).unwrap();
    }
    ask();
    let end = Instant::now() + PATIENCE;
    let receiver = loop {
        if let Some(receiver) = threads.iter().find(|thread| has_received(**thread)) {
            break *receiver;
        }
        assert!(Instant::now() < end, "no thread received it: {}", site.error_log());
        sleep(Duration::from_millis(1));
    };
    point_to_spin(receiver, entry_point(process));
    for thread in threads {
        if thread != receiver {
            interrupt(thread);
        }
        ptrace::detach(thread, None).unwrap();
    }
}

/// The serving threads of the process, once no further one starts: a new process listens before all
/// of them have their names.
fn started_threads(site: &Site, process: Pid) -> Vec<Pid> {
    let mut threads = serving_threads(process);
    let mut since = Instant::now();
    site.wait_until("serving threads", || {
        let found = serving_threads(process);
        if found != threads {
            (threads, since) = (found, Instant::now());
        }
        !threads.is_empty() && since.elapsed() >= SETTLED
    });
    threads
}

/// The serving threads of the process, by name.
fn serving_threads(process: Pid) -> Vec<Pid> {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let serves = |path: &std::path::Path| {
        let name = fs::read_to_string(path.join("comm")).unwrap_or_default();
        name.starts_with("loop-") || name.starts_with("thread-")
    };
    let tasks = tasks.flatten().filter(|task| serves(&task.path()));
    tasks.map(|task| Pid::from_raw(task.file_name().to_str().unwrap().parse().unwrap())).collect()
}

/// Stops a thread anywhere. If it has just reached a system call, it is stopped already.
fn interrupt(thread: Pid) {
    ptrace::interrupt(thread).unwrap();
    waitpid(thread, Some(WaitPidFlag::__WALL)).unwrap();
}

/// Whether the thread is stopped after a system call that has received bytes. From any other place
/// it continues to the next one.
fn has_received(thread: Pid) -> bool {
    let flags = WaitPidFlag::WNOHANG | WaitPidFlag::__WALL;
    let signal = match waitpid(thread, Some(flags)).unwrap() {
        WaitStatus::StillAlive => return false,
        WaitStatus::PtraceSyscall(_) => {
            let registers = ptrace::getregs(thread).unwrap();
            // Before the call the result is an error.
            let is_receive = registers.orig_rax == libc::SYS_recvfrom as u64;
            if is_receive && (registers.rax as i64) > 0 {
                return true;
            }
            None
        }
        WaitStatus::Stopped(_, signal) => Some(signal),
        WaitStatus::PtraceEvent(..) => None,
        other => panic!("{other:?}"),
    };
    ptrace::syscall::<Option<Signal>>(thread, signal).unwrap();
    false
}

/// Writes the jump over the program's entry point, which is never executed again, and lets the
/// thread continue there.
fn point_to_spin(thread: Pid, entry: u64) {
    let place = entry as AddressType;
    let word = ptrace::read(thread, place).unwrap();
    ptrace::write(thread, place, (word & !SPIN_MASK) | SPIN).unwrap();
    let mut registers = ptrace::getregs(thread).unwrap();
    registers.rip = entry;
    // Do not restart a system call there.
    registers.orig_rax = u64::MAX;
    ptrace::setregs(thread, registers).unwrap();
}

/// The address of the program's first instruction, from the auxiliary vector.
fn entry_point(process: Pid) -> u64 {
    let notes = fs::read(format!("/proc/{process}/auxv")).unwrap();
    let words: Vec<u64> =
        notes.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap())).collect();
    let note = words.chunks_exact(2).find(|note| note[0] == libc::AT_ENTRY);
    note.unwrap()[1]
}
