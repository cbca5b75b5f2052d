//! A watch that several processes share.

#![allow(unsafe_code)]

use std::fs;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use nix::sys::signal::{Signal, raise};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork};

use super::*;

/// A new directory, removed on drop.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("watch-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Runs `job` in a child process; its outcome becomes the exit status.
fn child(job: impl FnOnce() -> bool) -> Pid {
    // SAFETY: the child makes system calls and writes atomics, and ends without unwinding.
    match unsafe { fork() }.unwrap() {
        ForkResult::Parent { child } => child,
        // SAFETY: ends the process at once.
        ForkResult::Child => unsafe { libc::_exit(if job() { 0 } else { 1 }) },
    }
}

fn succeeds(child: Pid) -> bool {
    waitpid(child, None).unwrap() == WaitStatus::Exited(child, 0)
}

fn page(folder: &Path) -> std::ffi::CString {
    use std::os::unix::ffi::OsStrExt;
    std::ffi::CString::new(folder.join("page").as_os_str().as_bytes()).unwrap()
}

/// Writes without the standard library, which may allocate.
fn write(path: &std::ffi::CStr) -> bool {
    let file = rustix::fs::open(
        path,
        rustix::fs::OFlags::WRONLY | rustix::fs::OFlags::CREATE,
        rustix::fs::Mode::RWXU,
    );
    file.is_ok_and(|file| rustix::io::write(file.as_fd(), b"x").is_ok())
}

#[test]
fn what_one_process_drains_all_have_seen() {
    let folder = Folder::new("drain");
    let watcher = Watcher::new().unwrap();
    let id = watcher.watch_name(&folder.0, b"page").unwrap();
    let before = watcher.generation(id);
    let page = page(&folder.0);
    assert!(succeeds(child(|| write(&page) && {
        watcher.drain();
        watcher.generation(id) != before
    })));
    // The child took the events: nothing is left to read.
    assert_ne!(watcher.generation(id), before);
    assert_eq!(rustix::io::ioctl_fionread(&watcher.fd).unwrap(), 0);
}

#[test]
fn a_directory_that_one_process_watches_is_watched_for_all() {
    let folder = Folder::new("watch");
    let watcher = Watcher::new().unwrap();
    let stamp = watcher.stamp();
    assert!(succeeds(child(|| {
        let id = watcher.watch_name(&folder.0, b"page");
        id.is_some_and(|id| watcher.generation(id) == 0)
    })));
    assert_eq!((watcher.directories(), watcher.stamp()), (1, stamp));
    fs::write(folder.0.join("page"), "x").unwrap();
    watcher.drain();
    assert_ne!(watcher.stamp(), stamp, "a process depends on the name");
}

#[test]
fn a_process_that_dies_amid_a_drain_invalidates_everything() {
    let folder = Folder::new("death");
    let watcher = Watcher::new().unwrap();
    let directory = watcher.watch(&folder.0).unwrap();
    let (id, before) = watcher.name_in(directory, b"page").unwrap();
    let page = page(&folder.0);
    let dying = child(|| {
        let _held = watcher.lock();
        watcher.word(DRAINING).store(1, Ordering::SeqCst);
        write(&page);
        let mut buffer = [0; 4096];
        let _ = rustix::io::read(&watcher.fd, &mut buffer);
        raise(Signal::SIGKILL).is_ok()
    });
    assert!(matches!(waitpid(dying, None), Ok(WaitStatus::Signaled(..))));
    watcher.drain();
    assert_ne!(watcher.generation(id), before);
    assert_eq!(watcher.name_in(directory, b"page"), None);
    assert_eq!(watcher.directories(), 0);
    // It goes on.
    let directory = watcher.watch(&folder.0).unwrap();
    let (id, before) = watcher.name_in(directory, b"page").unwrap();
    assert!(write(&page));
    watcher.drain();
    assert_ne!(watcher.generation(id), before);
    watcher.drain();
    assert_eq!(watcher.word(DRAINING).load(Ordering::SeqCst), 0);
}

/// Each process writes to its own file, and takes the others' events out of the queue.
#[test]
fn processes_do_not_lose_each_others_events() {
    let folder = Folder::new("others");
    let watcher = Watcher::new().unwrap();
    let paths: Vec<_> = ["one", "two", "three"]
        .map(|name| {
            let path = folder.0.join(name);
            fs::create_dir(&path).unwrap();
            (watcher.watch_name(&path, b"page").unwrap(), page(&path))
        })
        .into();
    let sees_every_write = |(id, page): &(WatchId, std::ffi::CString)| {
        (0..2_000).all(|_| {
            let before = watcher.generation(*id);
            write(page) && {
                watcher.drain();
                watcher.generation(*id) != before
            }
        })
    };
    let children: Vec<_> = paths.iter().map(|path| child(|| sees_every_write(path))).collect();
    for child in children {
        assert!(succeeds(child));
    }
}

#[test]
fn a_class_moves_with_its_names() {
    let folder = Folder::new("class");
    let watcher = Watcher::new().unwrap();
    let directory = watcher.watch(&folder.0).unwrap();
    let before = watcher.classes_of(directory).unwrap();
    fs::write(folder.0.join("page"), "x").unwrap();
    watcher.drain();
    let now = watcher.classes_of(directory).unwrap();
    for (class, (before, now)) in before.iter().zip(now).enumerate() {
        assert_eq!(*before != now, class == class_of(b"page"), "{class}");
    }
    fs::set_permissions(&folder.0, fs::metadata(&folder.0).unwrap().permissions()).unwrap();
    watcher.drain();
    let now = watcher.classes_of(directory).unwrap();
    assert!(before.iter().zip(now).all(|(before, now)| *before != now));
    fs::remove_dir_all(&folder.0).unwrap();
    watcher.drain();
    assert_eq!((watcher.classes_of(directory), watcher.is_watched(directory)), (None, false));
}

/// Names of one class share a counter; another name's events advance it once a fact depends on it.
#[test]
fn a_name_that_no_fact_depends_on_moves_nothing() {
    let folder = Folder::new("alone");
    let watcher = Watcher::new().unwrap();
    let directory = watcher.watch(&folder.0).unwrap();
    let others = (0..).map(|number| format!("other-{number}"));
    let mut others = others.filter(|name| class_of(name.as_bytes()) == class_of(b"page"));
    let (other, third) = (others.next().unwrap(), others.next().unwrap());
    let (page, before) = watcher.name_in(directory, b"page").unwrap();
    let stamp = watcher.stamp();
    let moves = |name: &str| {
        let before = watcher.generation(page);
        fs::write(folder.0.join(name), "x").unwrap();
        watcher.drain();
        watcher.generation(page) != before
    };
    assert!(!moves(&other));
    assert_eq!((watcher.generation(page), watcher.stamp()), (before, stamp));
    assert!(moves("page"));
    let (shared, _) = watcher.name_in(directory, other.as_bytes()).unwrap();
    assert_eq!(shared, page);
    assert!(moves(&other));
    assert!(moves("page"));
    // All of the class, since which names they are is not known any more.
    assert!(moves(&third));
    // A listing depends on all names.
    let class = class_of(b"page");
    let before = watcher.classes_of(directory).unwrap()[class];
    assert!(moves(&third));
    assert_ne!(watcher.classes_of(directory).unwrap()[class], before);
}

/// A block that was another directory's knows none of its names.
#[test]
fn a_directory_takes_no_names_of_the_one_before() {
    let folder = Folder::new("before");
    let watcher = Watcher::new().unwrap();
    let path = |name: &str| folder.0.join(name);
    let others = (0..).map(|number| format!("other-{number}"));
    let mut others = others.filter(|name| class_of(name.as_bytes()) == class_of(b"page"));
    let (other, third) = (others.next().unwrap(), others.next().unwrap());
    for name in ["one", "two"] {
        fs::create_dir(path(name)).unwrap();
    }
    let one = watcher.watch(&path("one")).unwrap();
    watcher.name_in(one, other.as_bytes()).unwrap();
    fs::remove_dir(path("one")).unwrap();
    watcher.drain();
    let two = watcher.watch(&path("two")).unwrap();
    assert_eq!(one.block, two.block);
    let (page, before) = watcher.name_in(two, b"page").unwrap();
    fs::write(path("two").join(&third), "x").unwrap();
    watcher.drain();
    assert_eq!(watcher.generation(page), before);
    fs::write(path("two").join("page"), "x").unwrap();
    watcher.drain();
    assert_ne!(watcher.generation(page), before);
}
