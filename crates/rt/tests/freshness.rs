//! What the watch reports, and when.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rt::{Loop, WatchId, Watcher};

/// A new directory, removed on drop.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name =
            format!("rt-watch-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Runs `change` and returns which of `ids` have advanced.
fn moved(watcher: &Watcher, ids: &[WatchId], change: impl FnOnce()) -> Vec<bool> {
    watcher.drain();
    let before: Vec<u64> = ids.iter().map(|id| watcher.generation(*id)).collect();
    let stamp = watcher.stamp();
    change();
    watcher.drain();
    let moved: Vec<bool> =
        ids.iter().zip(before).map(|(id, before)| watcher.generation(*id) != before).collect();
    assert_eq!(watcher.stamp() != stamp, moved.contains(&true));
    moved
}

#[test]
fn a_name_moves_by_its_own_events_alone() {
    let folder = Folder::new();
    let watcher = Watcher::new().unwrap();
    let [page, log] = [folder.0.join("page"), folder.0.join("log")];
    let name = watcher.watch_name(&folder.0, b"page").unwrap();
    let other = watcher.watch_name(&folder.0, b".htaccess").unwrap();
    let ids = [name, other];
    assert_eq!(watcher.watch_name(&folder.0, b"page"), Some(name));
    let only_name = vec![true, false];
    assert_eq!(moved(&watcher, &ids, || fs::write(&page, "1").unwrap()), only_name);
    assert_eq!(moved(&watcher, &ids, || fs::write(&page, "2").unwrap()), only_name);
    let mode = fs::Permissions::from_mode(0o600);
    assert_eq!(moved(&watcher, &ids, || fs::set_permissions(&page, mode).unwrap()), only_name);
    assert_eq!(moved(&watcher, &ids, || fs::write(&log, "x").unwrap()), vec![false, false]);
    assert_eq!(moved(&watcher, &ids, || fs::rename(&log, &page).unwrap()), only_name);
    assert_eq!(moved(&watcher, &ids, || fs::rename(&page, &log).unwrap()), only_name);
    assert_eq!(moved(&watcher, &ids, || fs::hard_link(&log, &page).unwrap()), only_name);
    assert_eq!(moved(&watcher, &ids, || fs::remove_file(&page).unwrap()), only_name);
    assert_eq!(moved(&watcher, &ids, || ()), vec![false, false]);
}

#[test]
fn a_directory_moves_by_all_events_in_it() {
    let folder = Folder::new();
    let watcher = Watcher::new().unwrap();
    let ids = [watcher.watch_dir(&folder.0).unwrap()];
    assert_eq!(moved(&watcher, &ids, || fs::write(folder.0.join("new"), "1").unwrap()), [true]);
    assert_eq!(moved(&watcher, &ids, || fs::create_dir(folder.0.join("sub")).unwrap()), [true]);
    assert_eq!(moved(&watcher, &ids, || fs::write(folder.0.join("sub/x"), "1").unwrap()), [false]);
}

#[test]
fn a_directory_that_changes_or_goes_moves_its_names() {
    let folder = Folder::new();
    let watcher = Watcher::new().unwrap();
    let path = folder.0.join("sub");
    fs::create_dir(&path).unwrap();
    let parent = watcher.watch_name(&folder.0, b"sub").unwrap();
    let ids = [watcher.watch_name(&path, b"page").unwrap(), parent];
    let mode = fs::Permissions::from_mode(0o711);
    assert_eq!(moved(&watcher, &ids, || fs::set_permissions(&path, mode).unwrap()), [true, true]);
    let away = folder.0.join("away");
    assert_eq!(moved(&watcher, &ids, || fs::rename(&path, &away).unwrap()), [true, true]);
    assert_eq!(moved(&watcher, &ids, || fs::create_dir(&path).unwrap()), [false, true]);
    // The same path is another directory now.
    let again = watcher.watch_name(&path, b"page").unwrap();
    assert_ne!(again, ids[0]);
    let write = || fs::write(path.join("page"), "1").unwrap();
    assert_eq!(moved(&watcher, &[again, ids[0]], write), [true, false]);
    assert_eq!(moved(&watcher, &ids, || fs::remove_dir(&away).unwrap()), [true, false]);
    assert_eq!(watcher.directories(), 2);
}

#[test]
fn a_renamed_ancestor_moves_the_pair_in_its_parent() {
    let folder = Folder::new();
    let watcher = Watcher::new().unwrap();
    let deep = folder.0.join("a/b/c");
    fs::create_dir_all(&deep).unwrap();
    let ids = [
        watcher.watch_name(&folder.0, b"a").unwrap(),
        watcher.watch_name(&folder.0.join("a"), b"b").unwrap(),
        watcher.watch_name(&deep, b"page").unwrap(),
    ];
    let rename = || fs::rename(folder.0.join("a/b"), folder.0.join("a/x")).unwrap();
    assert_eq!(moved(&watcher, &ids, rename), [false, true, false]);
}

#[test]
fn the_oldest_directories_go_at_the_limit_and_their_ids_move() {
    let folder = Folder::new();
    let watcher = Watcher::with_limit(4).unwrap();
    let (mut ids, mut directories) = (Vec::new(), Vec::new());
    let mut before = Vec::new();
    for number in 0..6 {
        let path = folder.0.join(number.to_string());
        fs::create_dir(&path).unwrap();
        let directory = watcher.watch(&path).unwrap();
        for name in [b"x", b"y"] {
            ids.push(watcher.name_in(directory, name).unwrap().0);
        }
        directories.push(directory);
        before = ids.iter().map(|id| watcher.generation(*id)).collect();
    }
    assert!(watcher.directories() <= 4);
    watcher.drain();
    let newest = *ids.last().unwrap();
    assert_eq!(watcher.generation(newest), *before.last().unwrap());
    assert!(watcher.generation(ids[0]) > 0);
    // Its counters may be another directory's by now.
    assert_eq!(watcher.name_in(directories[0], b"x"), None);
}

#[test]
fn what_can_not_be_trusted_is_refused() {
    let watcher = Watcher::new().unwrap();
    assert_eq!(watcher.watch_dir(Path::new("/proc/self")), None);
    assert_eq!(watcher.watch_dir(Path::new("/does/not/exist")), None);
    assert_eq!(watcher.watch_name(Path::new("/etc/passwd"), b"x"), None);
}

#[test]
fn names_without_end_move_nothing() {
    let folder = Folder::new();
    let watcher = Watcher::new().unwrap();
    let directory = watcher.watch(&folder.0).unwrap();
    let (first, before) = watcher.name_in(directory, b"first").unwrap();
    for number in 0..100_000 {
        assert!(watcher.name_in(directory, format!("{number}").as_bytes()).is_some());
    }
    watcher.drain();
    assert_eq!(watcher.generation(first), before);
    assert_eq!(watcher.directories(), 1);
}

#[test]
fn members_move_when_names_appear_or_vanish() {
    let folder = Folder::new();
    let watcher = Watcher::new().unwrap();
    let directory = watcher.watch(&folder.0).unwrap();
    let ids = [watcher.members_of(directory).unwrap().0];
    let [page, other] = [folder.0.join("page"), folder.0.join("other")];
    assert_eq!(moved(&watcher, &ids, || fs::write(&page, "1").unwrap()), [true]);
    assert_eq!(moved(&watcher, &ids, || fs::write(&page, "2").unwrap()), [false]);
    let mode = fs::Permissions::from_mode(0o600);
    assert_eq!(moved(&watcher, &ids, || fs::set_permissions(&page, mode).unwrap()), [false]);
    assert_eq!(moved(&watcher, &ids, || fs::rename(&page, &other).unwrap()), [true]);
    assert_eq!(moved(&watcher, &ids, || fs::remove_file(&other).unwrap()), [true]);
    let mode = fs::Permissions::from_mode(0o700);
    assert_eq!(moved(&watcher, &ids, || fs::set_permissions(&folder.0, mode).unwrap()), [true]);
}

#[test]
fn an_overflown_queue_moves_everything() {
    let folder = Folder::new();
    let watcher = Watcher::new().unwrap();
    let limit: u32 = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events")
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    if limit > 50_000 {
        return;
    }
    let quiet = Folder::new();
    let ids = [watcher.watch_name(&quiet.0, b"x").unwrap()];
    watcher.watch_dir(&folder.0).unwrap();
    let flood = || {
        let [one, two] = [folder.0.join("1"), folder.0.join("2")];
        fs::write(&one, "").unwrap();
        for _ in 0..limit / 4 + 10 {
            fs::rename(&one, &two).unwrap();
            fs::rename(&two, &one).unwrap();
        }
    };
    assert_eq!(moved(&watcher, &ids, flood), [true]);
}

/// The property that all caching rests on: once a drain has completed, a write that ended before
/// the drain was requested has advanced its generation.
#[test]
fn a_write_is_seen_by_the_next_drain_ten_thousand_times() {
    let folder = Folder::new();
    let watcher = Arc::new(Watcher::new().unwrap());
    // Kept open: ext4 flushes a file that is truncated and closed.
    let page = fs::File::create(folder.0.join("page")).unwrap();
    let id = watcher.watch_name(&folder.0, b"page").unwrap();
    Loop::new("test")
        .watcher(watcher.clone())
        .start(|handle| async move {
            // Two other tasks keep joining and finishing turns.
            for _ in 0..2 {
                let neighbour = handle.clone();
                handle.spawn_local(async move {
                    loop {
                        neighbour.drained().await;
                        tokio::task::yield_now().await;
                    }
                });
            }
            for round in 0..10_000_u32 {
                let before = watcher.generation(id);
                page.write_all_at(&round.to_be_bytes(), 0).unwrap();
                handle.drained().await;
                assert_ne!(watcher.generation(id), before, "round {round}");
            }
        })
        .unwrap();
}

/// A drain ends with the events that were queued when it began, however fast another thread writes.
#[test]
fn a_busy_writer_does_not_hold_the_drain() {
    let folder = Folder::new();
    let watcher = Watcher::new().unwrap();
    let id = watcher.watch_name(&folder.0, b"page").unwrap();
    let [one, two] = ["page", "other"].map(|name| fs::File::create(folder.0.join(name)).unwrap());
    let [done, rounds] = [(); 2].map(|()| Arc::new(AtomicU64::new(0)));
    let writer = std::thread::spawn({
        let (done, rounds) = (done.clone(), rounds.clone());
        move || {
            while done.load(Ordering::Relaxed) == 0 {
                // Alternates between two files, so that the events are not merged.
                one.write_all_at(b"x", 0).unwrap();
                two.write_all_at(b"x", 0).unwrap();
                rounds.fetch_add(1, Ordering::Relaxed);
            }
        }
    });
    // Starts after the writer has begun, and ends before its last write.
    let one_more = || {
        let seen = rounds.load(Ordering::Relaxed);
        while rounds.load(Ordering::Relaxed) < seen + 2 {
            std::thread::yield_now();
        }
    };
    one_more();
    let started = std::time::Instant::now();
    let before = watcher.generation(id);
    for _ in 0..200 {
        watcher.drain();
    }
    let took = started.elapsed();
    one_more();
    done.store(1, Ordering::Relaxed);
    writer.join().unwrap();
    watcher.drain();
    assert_ne!(watcher.generation(id), before);
    // A drain that followed the writer would never end; a busy machine takes seconds.
    assert!(took.as_secs() < 120, "{took:?}");
}

/// The same with two loops that take each other's events out of the queue.
#[test]
fn loops_that_share_a_watch_do_not_lose_each_others_events() {
    let folder = Folder::new();
    let watcher = Arc::new(Watcher::new().unwrap());
    let threads = ["one", "two"].map(|name| {
        let page = fs::File::create(folder.0.join(name)).unwrap();
        let (watcher, folder) = (watcher.clone(), folder.0.clone());
        std::thread::spawn(move || {
            let id = watcher.watch_name(&folder, name.as_bytes()).unwrap();
            let engine = Loop::new(name).watcher(watcher.clone());
            engine.start(|handle| async move {
                for round in 0..2_000_u32 {
                    let before = watcher.generation(id);
                    page.write_all_at(&round.to_be_bytes(), 0).unwrap();
                    handle.drained().await;
                    assert_ne!(watcher.generation(id), before, "{name}, round {round}");
                }
            })
        })
    });
    for thread in threads {
        thread.join().unwrap().unwrap();
    }
}

#[test]
fn without_a_watcher_a_drain_is_immediate() {
    Loop::run("test", |handle| async move { handle.drained().await }).unwrap();
}
