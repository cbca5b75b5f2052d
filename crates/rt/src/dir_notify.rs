//! Directory changes reported to a single thread by a signal (dnotify). For processes with one
//! thread and one connection: a server has hundreds of them, and a user has few inotify instances.
//!
//! The kernel raises the signal before the call that made the change returns, and delivers it
//! before the recv(2) that brings a later request returns. A check after that recv therefore knows
//! of every change made before the request was sent, and needs no system call.
//!
//! Each directory reports one change only. After that nothing is trusted ([`DirNotify::stamp`] is
//! `None`) until all directories are armed again, at most once a second, so that a log file written
//! in one of them does not cost a signal per line.
//!
//! It misses the same changes that a [`Watcher`](crate::Watcher) misses. Source: fcntl(2),
//! `F_NOTIFY`.

use std::cell::{Cell, RefCell};
use std::ffi::c_int;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use nix::sys::resource::{Resource, getrlimit};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use nix::unistd::gettid;

use crate::clock;
use crate::watch::is_watchable;

/// Directories watched at most; when the limit is reached, all are dropped.
const DIRECTORIES_MAX: usize = 256;
/// Each watched directory holds a descriptor: use at most 1/8 of RLIMIT_NOFILE.
const SHARE_OF_FILES: u64 = 8;
/// The shortest time between two armings of all directories, in µs.
const REARM_US: u64 = 1_000_000;

// From <linux/fcntl.h>; the libc crate defines these for other systems only.
const DN_MODIFY: c_int = 0x02;
const DN_CREATE: c_int = 0x04;
const DN_DELETE: c_int = 0x08;
const DN_RENAME: c_int = 0x10;
const DN_ATTRIB: c_int = 0x20;
const EVENTS: c_int = DN_MODIFY | DN_CREATE | DN_DELETE | DN_RENAME | DN_ATTRIB;
const F_SETOWN_EX: c_int = 15;
const F_OWNER_TID: c_int = 0;

/// `struct f_owner_ex`
#[repr(C)]
struct Owner {
    kind: c_int,
    thread: libc::pid_t,
}

thread_local! {
    /// Signals received by this thread. Atomic and without a destructor, so that a signal handler
    /// may write it.
    static HEARD: AtomicU64 = const { AtomicU64::new(0) };
}

extern "C" fn hear(_: c_int) {
    HEARD.with(|heard| heard.fetch_add(1, Ordering::Relaxed));
}

#[inline]
fn heard() -> u64 {
    HEARD.with(|heard| heard.load(Ordering::Relaxed))
}

/// The directories that one thread watches.
pub struct DirNotify {
    directories: RefCell<Vec<Directory>>,
    directories_max: usize,
    /// The value of [`HEARD`] when all directories were last armed.
    armed: Cell<u64>,
    armed_us: Cell<u64>,
    epoch: Cell<u64>,
}

struct Directory {
    path: PathBuf,
    fd: OwnedFd,
    /// Device and inode.
    identity: (u64, u64),
}

impl DirNotify {
    /// Creates the set for the calling thread, without directories. Takes over `SIGIO`.
    ///
    /// Errors: those of sigaction(2) and pthread_sigmask(3).
    pub fn new() -> io::Result<Self> {
        let flags = SaFlags::SA_RESTART;
        let action = SigAction::new(SigHandler::Handler(hear), flags, SigSet::empty());
        // SAFETY: the handler only writes a thread-local integer.
        #[allow(unsafe_code)]
        unsafe { sigaction(Signal::SIGIO, &action) }?;
        let mut signals = SigSet::empty();
        signals.add(Signal::SIGIO);
        signals.thread_unblock()?;
        let files = getrlimit(Resource::RLIMIT_NOFILE).map_or(0, |(soft, _)| soft);
        let share = usize::try_from(files / SHARE_OF_FILES).unwrap_or(DIRECTORIES_MAX);
        Ok(Self {
            directories: RefCell::default(),
            directories_max: share.min(DIRECTORIES_MAX),
            armed: Cell::new(heard()),
            armed_us: Cell::new(0),
            epoch: Cell::new(0),
        })
    }

    /// Watches the directory that is at `path` now. False if it can't report every change: a
    /// network, overlay, FUSE or unknown file system, not a directory, or no permission.
    pub fn watch(&self, path: &Path) -> bool {
        let mut directories = self.directories.borrow_mut();
        let known = directories.iter().find(|directory| directory.path == path);
        let is_in_place = known.is_some_and(Directory::is_at_its_path);
        if is_in_place {
            return true;
        }
        if known.is_some() || directories.len() >= self.directories_max {
            directories.clear();
            self.begin_anew();
        }
        match Directory::open(path) {
            Some(directory) => {
                directories.push(directory);
                true
            }
            None => false,
        }
    }

    /// Changes when directories are dropped: facts derived from them are no longer valid.
    pub fn epoch(&self) -> u64 {
        self.epoch.get()
    }

    /// A number that stays the same while nothing changes in any of the directories; `None` while
    /// they are not armed.
    #[inline]
    pub fn stamp(&self) -> Option<u64> {
        let heard = heard();
        if heard == self.armed.get() { Some(heard) } else { self.rearm() }
    }

    /// Arms all directories again if that is due.
    #[cold]
    fn rearm(&self) -> Option<u64> {
        let now_us = clock::monotonic_us();
        if now_us.saturating_sub(self.armed_us.get()) < REARM_US {
            return None;
        }
        self.armed_us.set(now_us);
        // Read before arming: a change that follows yields another number.
        let heard = heard();
        let mut directories = self.directories.borrow_mut();
        // A directory that was renamed away reports nothing about the one at its path.
        let is_whole = directories.iter().all(|directory| directory.ask().is_ok())
            && directories.iter().all(Directory::is_at_its_path);
        if !is_whole {
            directories.clear();
            self.begin_anew();
            return None;
        }
        self.armed.set(heard);
        Some(heard)
    }

    fn begin_anew(&self) {
        self.epoch.set(self.epoch.get() + 1);
        HEARD.with(|heard| heard.fetch_add(1, Ordering::Relaxed));
    }
}

impl Directory {
    /// Opens a directory and arms it.
    fn open(path: &Path) -> Option<Self> {
        if !is_watchable(path) {
            return None;
        }
        let mut options = File::options();
        let file = options.read(true).custom_flags(libc::O_DIRECTORY).open(path).ok()?;
        let found = file.metadata().ok()?;
        let identity = (found.dev(), found.ino());
        let directory = Self { path: path.to_owned(), fd: file.into(), identity };
        directory.tell_this_thread().ok()?;
        directory.ask().ok()?;
        Some(directory)
    }

    fn tell_this_thread(&self) -> nix::Result<()> {
        let owner = Owner { kind: F_OWNER_TID, thread: gettid().as_raw() };
        // SAFETY: the descriptor is open, and the kernel reads a struct of this layout.
        #[allow(unsafe_code)]
        let outcome = unsafe { libc::fcntl(self.fd.as_raw_fd(), F_SETOWN_EX, &raw const owner) };
        nix::errno::Errno::result(outcome).map(drop)
    }

    fn ask(&self) -> nix::Result<()> {
        // SAFETY: the descriptor is open, and the argument is a number.
        #[allow(unsafe_code)]
        let outcome = unsafe { libc::fcntl(self.fd.as_raw_fd(), libc::F_NOTIFY, EVENTS) };
        nix::errno::Errno::result(outcome).map(drop)
    }

    fn is_at_its_path(&self) -> bool {
        let found = self.path.metadata();
        found.is_ok_and(|found| (found.dev(), found.ino()) == self.identity)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::{Duration, Instant};

    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let path =
                std::env::temp_dir().join(format!("dir-notify-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            fs::create_dir_all(path.join("a")).unwrap();
            fs::write(path.join("a/file"), "one").unwrap();
            Folder(path)
        }

        fn at(&self, name: &str) -> PathBuf {
            self.0.join(name)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn trusted(notify: &DirNotify) -> u64 {
        let end = Instant::now() + Duration::from_secs(60);
        while Instant::now() < end {
            if let Some(stamp) = notify.stamp() {
                return stamp;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("directories are not armed again");
    }

    #[test]
    fn every_change_is_heard_at_once() {
        let folder = Folder::new("every");
        let changes: [(&str, &dyn Fn()); 9] = [
            ("content", &|| fs::write(folder.at("a/file"), "other").unwrap()),
            ("a new name", &|| fs::write(folder.at("a/new"), "").unwrap()),
            ("a name that goes", &|| fs::remove_file(folder.at("a/new")).unwrap()),
            ("another name", &|| fs::rename(folder.at("a/file"), folder.at("a/other")).unwrap()),
            ("a file that leaves", &|| fs::rename(folder.at("a/other"), folder.at("b")).unwrap()),
            ("a file that comes", &|| fs::rename(folder.at("b"), folder.at("a/file")).unwrap()),
            ("permissions", &|| {
                let none = std::os::unix::fs::PermissionsExt::from_mode(0o000);
                fs::set_permissions(folder.at("a/file"), none).unwrap();
            }),
            ("a length", &|| {
                File::options().write(true).open(folder.at("a/file")).unwrap().set_len(1).unwrap();
            }),
            ("a directory", &|| fs::create_dir(folder.at("a/b")).unwrap()),
        ];
        for (what, change) in changes {
            let notify = DirNotify::new().unwrap();
            assert!(notify.watch(&folder.at("a")));
            let before = notify.stamp();
            assert!(before.is_some(), "{what}");
            assert_eq!(notify.stamp(), before, "{what}");
            change();
            assert_ne!(notify.stamp(), before, "{what}");
        }
    }

    #[test]
    fn another_process_is_heard_as_well() {
        let folder = Folder::new("process");
        let notify = DirNotify::new().unwrap();
        assert!(notify.watch(&folder.at("a")));
        let before = notify.stamp();
        let status = std::process::Command::new("touch").arg(folder.at("a/file")).status();
        assert!(status.unwrap().success());
        assert_ne!(notify.stamp(), before);
    }

    #[test]
    fn after_a_change_they_tell_again() {
        let folder = Folder::new("again");
        let notify = DirNotify::new().unwrap();
        assert!(notify.watch(&folder.at("a")));
        for round in 0..2 {
            let before = trusted(&notify);
            fs::write(folder.at("a/file"), "other").unwrap();
            assert_ne!(notify.stamp(), Some(before), "{round}");
            assert_ne!(trusted(&notify), before, "{round}");
        }
        assert_eq!(notify.epoch(), 0);
    }

    #[test]
    fn elsewhere_nothing_is_heard() {
        let folder = Folder::new("elsewhere");
        let notify = DirNotify::new().unwrap();
        assert!(notify.watch(&folder.at("a")));
        let before = notify.stamp();
        fs::write(folder.at("file"), "").unwrap();
        let other = std::thread::spawn(move || {
            let notify = DirNotify::new().unwrap();
            assert!(notify.watch(&folder.at("")));
            let before = notify.stamp();
            fs::write(folder.at("file"), "x").unwrap();
            assert_ne!(notify.stamp(), before);
            folder
        });
        let _folder = other.join().unwrap();
        assert_eq!(notify.stamp(), before, "what another thread hears of");
    }

    #[test]
    fn a_directory_that_was_exchanged_is_watched_no_more() {
        let folder = Folder::new("exchanged");
        let notify = DirNotify::new().unwrap();
        assert!(notify.watch(&folder.at("")));
        assert!(notify.watch(&folder.at("a")));
        let before = trusted(&notify);
        fs::rename(folder.at("a"), folder.at("old")).unwrap();
        fs::create_dir(folder.at("a")).unwrap();
        assert_ne!(trusted(&notify), before);
        assert_eq!(notify.epoch(), 1);
    }

    #[test]
    fn who_watches_again_watches_what_stands_there_now() {
        let folder = Folder::new("replaced");
        let notify = DirNotify::new().unwrap();
        assert!(notify.watch(&folder.at("a")));
        // The parent directory is not watched.
        fs::rename(folder.at("a"), folder.at("old")).unwrap();
        fs::create_dir(folder.at("a")).unwrap();
        assert!(notify.watch(&folder.at("a")));
        assert_eq!(notify.epoch(), 1);
        let before = trusted(&notify);
        fs::write(folder.at("a/file"), "").unwrap();
        assert_ne!(notify.stamp(), Some(before));
    }

    #[test]
    fn too_many_directories_begin_anew() {
        let folder = Folder::new("many");
        let notify = DirNotify::new().unwrap();
        let path = |number: usize| folder.at(&format!("{number}"));
        for number in 0..=notify.directories_max {
            fs::create_dir(path(number)).unwrap();
            assert!(notify.watch(&path(number)));
        }
        assert_eq!((notify.epoch(), notify.directories.borrow().len()), (1, 1));
    }

    #[test]
    fn what_is_no_directory_tells_nothing() {
        let folder = Folder::new("none");
        let notify = DirNotify::new().unwrap();
        assert!(!notify.watch(&folder.at("a/file")));
        assert!(!notify.watch(&folder.at("missing")));
        assert!(!notify.watch(Path::new("/proc")));
    }
}
