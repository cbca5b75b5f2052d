use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use super::*;
use crate::files::path::Entry;

mod churn;

/// A mirror and a watcher over a folder that is removed with the value.
struct Site {
    folder: PathBuf,
    watcher: Watcher,
    files: Files,
}

impl Site {
    fn new(name: &str) -> Site {
        let name = format!("files-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(folder.join("a/b")).unwrap();
        fs::write(folder.join("a/b/page"), "one").unwrap();
        Site { folder, watcher: Watcher::new().unwrap(), files: Files::default() }
    }

    fn path(&self, name: &str) -> Vec<u8> {
        self.folder.join(name).as_os_str().as_bytes().to_vec()
    }

    fn fact(&self, name: &str) -> Option<Arc<Fact>> {
        self.watcher.drain();
        self.files.fact(&self.watcher, &self.path(name))
    }

    /// The kind by the mirror, which must equal the file system's own.
    fn kind(&self, name: &str) -> Result<FileKind, StatError> {
        let told = self.fact(name).expect("a watched path").stat();
        assert_eq!(told, path::stat(&self.path(name)), "{name}");
        told.map(|info| info.kind)
    }

    /// Whether a second request gets the same fact.
    fn is_remembered(&self, name: &str) -> bool {
        match (self.fact(name), self.fact(name)) {
            (Some(one), Some(two)) => Arc::ptr_eq(&one, &two),
            _ => false,
        }
    }

    fn content(&self, name: &str) -> Option<Bytes> {
        self.watcher.drain();
        Some(self.files.content(&self.watcher, &self.path(name))?.1)
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn names_that_appear_change_and_vanish_are_seen() {
    let site = Site::new("names");
    assert_eq!(site.kind("a/b/page"), Ok(FileKind::Regular));
    assert_eq!(site.kind("a/b/none"), Err(StatError::Missing));
    assert_eq!(site.kind("a/b/none/below"), Err(StatError::Missing));
    assert_eq!(site.kind("a/b/page/below"), Err(StatError::Missing));
    assert!(site.is_remembered("a/b/page") && site.is_remembered("a/b/none"));
    fs::create_dir(site.folder.join("a/b/none")).unwrap();
    assert_eq!(site.kind("a/b/none"), Ok(FileKind::Directory));
    assert_eq!(site.kind("a/b/none/below"), Err(StatError::Missing));
    fs::write(site.folder.join("a/b/none/below"), "").unwrap();
    assert_eq!(site.kind("a/b/none/below"), Ok(FileKind::Regular));
    fs::write(site.folder.join("a/b/page"), "longer").unwrap();
    assert_eq!(site.fact("a/b/page").unwrap().stat().unwrap().size, 6);
    fs::remove_file(site.folder.join("a/b/page")).unwrap();
    assert_eq!(site.kind("a/b/page"), Err(StatError::Missing));
    fs::create_dir(site.folder.join("a/b/page")).unwrap();
    assert_eq!(site.kind("a/b/page"), Ok(FileKind::Directory));
    let mode = fs::Permissions::from_mode(0o700);
    fs::set_permissions(site.folder.join("a/b/page"), mode).unwrap();
    assert_eq!(site.fact("a/b/page").unwrap().stat().unwrap().mode, 0o700);
}

#[test]
fn a_directory_on_the_way_that_becomes_another_is_seen() {
    let site = Site::new("way");
    assert_eq!(site.kind("a/b/page"), Ok(FileKind::Regular));
    fs::rename(site.folder.join("a"), site.folder.join("z")).unwrap();
    assert_eq!(site.kind("a/b/page"), Err(StatError::Missing));
    assert_eq!(site.kind("z/b/page"), Ok(FileKind::Regular));
    fs::create_dir_all(site.folder.join("a/b/page")).unwrap();
    assert_eq!(site.kind("a/b/page"), Ok(FileKind::Directory));
    // The first directory again, whose old facts must not come back.
    fs::remove_file(site.folder.join("z/b/page")).unwrap();
    fs::rename(site.folder.join("a"), site.folder.join("y")).unwrap();
    fs::rename(site.folder.join("z"), site.folder.join("a")).unwrap();
    assert_eq!(site.kind("a/b/page"), Err(StatError::Missing));
}

#[test]
fn a_directory_has_the_times_of_its_last_change() {
    let site = Site::new("times");
    symlink("b", site.folder.join("a/link")).unwrap();
    for name in ["a/b", "a/link"] {
        assert_eq!(site.kind(name), Ok(FileKind::Directory));
        assert!(site.is_remembered(name));
        let page = site.fact("a/b/page").unwrap();
        // Another member changes the listing of the directory.
        fs::create_dir(site.folder.join("a/b").join(name.replace('/', "-"))).unwrap();
        assert_eq!(site.kind(name), Ok(FileKind::Directory));
        assert!(Arc::ptr_eq(&site.fact("a/b/page").unwrap(), &page));
    }
}

#[test]
fn links_and_all_that_they_lead_through_are_seen() {
    let site = Site::new("links");
    symlink("b", site.folder.join("a/link")).unwrap();
    symlink("nowhere", site.folder.join("a/dangling")).unwrap();
    fs::create_dir(site.folder.join("a/c")).unwrap();
    assert_eq!(site.kind("a/link/page"), Ok(FileKind::Regular));
    assert!(site.is_remembered("a/link/page"));
    assert!(site.fact("a/link").unwrap().lstat().unwrap().is_symlink);
    assert_eq!(site.kind("a/dangling"), Err(StatError::SymlinkForbidden));
    fs::write(site.folder.join("a/nowhere"), "").unwrap();
    assert_eq!(site.kind("a/dangling"), Ok(FileKind::Regular));
    fs::remove_file(site.folder.join("a/link")).unwrap();
    symlink("c", site.folder.join("a/link")).unwrap();
    assert_eq!(site.kind("a/link/page"), Err(StatError::Missing));
    fs::rename(site.folder.join("a/c"), site.folder.join("a/d")).unwrap();
    fs::rename(site.folder.join("a/b"), site.folder.join("a/c")).unwrap();
    assert_eq!(site.kind("a/link/page"), Ok(FileKind::Regular));
}

#[test]
fn a_directory_of_which_something_is_heard_keeps_what_is_below_it() {
    let site = Site::new("heard");
    let below = site.fact("a/b/page").unwrap();
    let b = site.fact("a/b").unwrap();
    let mode = fs::Permissions::from_mode(0o750);
    fs::set_permissions(site.folder.join("a"), mode).unwrap();
    let directory = site.fact("a").unwrap();
    assert_eq!(directory.stat().unwrap().mode, 0o750);
    // The event on the directory itself also invalidates its names, which are unchanged.
    assert_eq!(site.kind("a/b/page"), Ok(FileKind::Regular));
    assert!(Arc::ptr_eq(&site.fact("a/b/page").unwrap(), &below));
    assert!(below.is_below(&directory) && below.is_below(&b) && !b.is_below(&below));
    assert!(!Arc::ptr_eq(&site.fact("a/b").unwrap(), &b), "its own times may have changed");
    let none = site.fact("a/none").unwrap();
    let below = site.fact("a/none/x/y").unwrap();
    assert!(below.is_below(&none) && below.is_below(&directory));
    fs::create_dir(site.folder.join("a/none")).unwrap();
    site.watcher.drain();
    assert!(!site.files.holds(&site.watcher, &below));
}

#[test]
fn contents_are_those_of_the_last_write() {
    let site = Site::new("contents");
    assert_eq!(site.content("a/b/page").as_deref(), Some(&b"one"[..]));
    for round in 0..100 {
        // Within one tick of the clock that stamps files, and of the same length.
        fs::write(site.folder.join("a/b/page"), format!("{round:03}")).unwrap();
        assert_eq!(site.content("a/b/page").unwrap(), format!("{round:03}"));
    }
    fs::rename(site.folder.join("a/b/page"), site.folder.join("a/b/other")).unwrap();
    assert_eq!(site.content("a/b/page"), None);
    assert_eq!(site.content("a/b/other").as_deref(), Some(&b"099"[..]));
    assert_eq!(site.content("a/b"), None);
    let large = vec![0; usize::try_from(CONTENT_BYTES_LIMIT).unwrap() + 1];
    fs::write(site.folder.join("a/b/page"), large).unwrap();
    assert_eq!(site.content("a/b/page"), None);
}

#[test]
fn a_file_with_several_names_is_not_remembered() {
    let site = Site::new("several");
    fs::hard_link(site.folder.join("a/b/page"), site.folder.join("other")).unwrap();
    assert!(site.fact("a/b/page").is_none());
    symlink("b/page", site.folder.join("a/link")).unwrap();
    assert!(site.fact("a/link").is_none());
    assert!(site.content("a/b/page").is_none());
}

#[test]
fn what_is_no_plain_path_is_not_remembered() {
    let site = Site::new("plain");
    for name in ["a/b/", "a/./b", "a/../a/b", "a/b/.."] {
        let path = [site.path(""), name.as_bytes().to_vec()].concat();
        assert!(site.files.fact(&site.watcher, &path).is_none(), "{name}");
    }
    let long = [site.path("a/b/"), vec![b'x'; 4096]].concat();
    assert!(site.files.fact(&site.watcher, &long).is_none());
    let deep = [site.path("none"), b"/x".repeat(1000)].concat();
    assert!(site.files.fact(&site.watcher, &deep).is_none());
    assert!(site.files.fact(&site.watcher, b"a/b").is_none());
    assert!(site.files.fact(&site.watcher, b"/proc/self/stat").is_none());
}

#[test]
fn what_one_thread_has_learnt_all_know() {
    let site = Site::new("threads");
    let fact = site.fact("a/b/page").unwrap();
    let content = site.content("a/b/page").unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            assert!(Arc::ptr_eq(&site.fact("a/b/page").unwrap(), &fact));
            assert_eq!(site.content("a/b/page").unwrap().as_ptr(), content.as_ptr());
        });
    });
}

/// Threads read while one writes: a write before a drain is visible after it, whichever thread
/// created the fact.
#[test]
fn threads_see_what_was_written_before_they_drained() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    const ROUNDS: usize = 1_000;
    let site = Site::new("races");
    let written = AtomicUsize::new(0);
    let write = |number: usize| {
        let new = site.folder.join("new");
        fs::write(&new, number.to_string()).unwrap();
        match number % 3 {
            0 => fs::rename(&new, site.folder.join("a/b/page")).unwrap(),
            1 => fs::write(site.folder.join("a/b/page"), number.to_string()).unwrap(),
            _ => {
                let _ = fs::remove_dir_all(site.folder.join("a/old"));
                fs::create_dir(site.folder.join("a/c")).unwrap();
                fs::rename(&new, site.folder.join("a/c/page")).unwrap();
                fs::rename(site.folder.join("a/b"), site.folder.join("a/old")).unwrap();
                fs::rename(site.folder.join("a/c"), site.folder.join("a/b")).unwrap();
            }
        }
        written.store(number, Ordering::SeqCst);
    };
    write(0);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while written.load(Ordering::SeqCst) < ROUNDS {
                    let least = written.load(Ordering::SeqCst);
                    // Between two renames there is no file.
                    if let Some(content) = site.content("a/b/page") {
                        let seen = std::str::from_utf8(&content).unwrap().parse().unwrap_or(least);
                        assert!(seen >= least, "{seen} {least}");
                    }
                }
            });
        }
        scope.spawn(|| (1..=ROUNDS).for_each(write));
    });
}

#[test]
fn names_without_end_do_not_fill_the_memory() {
    const LIMIT: usize = 256 * 1024;
    let site = Site::new("memory");
    site.files.limit(LIMIT, LIMIT, LIMIT);
    for number in 0..5_000 {
        // Separate files, since missing names are known from the listing.
        let name = format!("a/b/{number}");
        fs::write(site.folder.join(&name), "x").unwrap();
        assert!(site.fact(&name).is_some());
        assert!(site.is_remembered("a/b/page"), "what is asked for often stays");
    }
    let all = site.files.shards.iter().map(|shard| shard.lock().unwrap().bytes().0);
    let bytes: usize = all.sum();
    assert!(bytes <= LIMIT && bytes > LIMIT / 4, "{bytes}");
}

#[test]
fn coded_contents_end_with_their_file_and_have_a_limit() {
    const LIMIT: usize = 64 * 1024;
    let site = Site::new("coded");
    site.files.limit(FACTS_BYTES_LIMIT, CONTENTS_BYTES_LIMIT, LIMIT);
    let of = |text: &str| CodedContent { bytes: Bytes::from(text.to_owned()), has_length: true };
    let put = |name: &str, coding: u64, text: &str| {
        let fact = site.fact(name).unwrap();
        site.files.keep_coded(&site.watcher, fact, coding, of(text));
    };
    let get = |name: &str, coding: u64| {
        let coded = site.files.coded(&site.fact(name).unwrap(), coding)?;
        Some(String::from_utf8_lossy(&coded.bytes).into_owned())
    };
    put("a/b/page", 1, "one");
    put("a/b/page", 2, "two");
    assert_eq!(get("a/b/page", 1).as_deref(), Some("one"));
    assert_eq!(get("a/b/page", 2).as_deref(), Some("two"));
    let old = site.fact("a/b/page").unwrap();
    fs::write(site.folder.join("a/b/page"), "other").unwrap();
    assert_eq!(get("a/b/page", 1), None);
    // Made from the content before the change.
    site.files.keep_coded(&site.watcher, old.clone(), 1, of("late"));
    assert!(site.files.coded(&old, 1).is_none_or(|coded| coded.bytes != "late"));
    for number in 0..1_000 {
        put("a/b/page", number, &"x".repeat(1_000));
        assert!(site.files.coded.bytes() <= LIMIT, "{number}");
    }
    assert!(get("a/b/page", 999).is_some() && get("a/b/page", 1).is_none());
    put("a/b/page", 1, &"x".repeat(LIMIT));
    assert_eq!(get("a/b/page", 1), None, "larger than the limit");
}

#[test]
fn a_scan_of_more_contents_than_fit_evicts_none() {
    const FILES: usize = 2_000;
    const BYTES: usize = 1_000;
    let site = Site::new("scan");
    site.files.limit(FACTS_BYTES_LIMIT, FILES * BYTES / 4, 0);
    let name = |number: usize| format!("a/b/{number}");
    for number in 0..FILES {
        fs::write(site.folder.join(name(number)), vec![b'x'; BYTES]).unwrap();
    }
    site.watcher.drain();
    let paths: Vec<Vec<u8>> = (0..FILES).map(|number| site.path(&name(number))).collect();
    let ask = |path: &Vec<u8>| site.files.content(&site.watcher, path).unwrap().1;
    let mut before: Vec<Bytes> = paths.iter().map(ask).collect();
    for _ in 0..20 {
        let now: Vec<Bytes> = paths.iter().map(ask).collect();
        let same = before.iter().zip(&now).filter(|(one, two)| one.as_ptr() == two.as_ptr());
        assert!(same.count() > FILES / 6, "from memory");
        before = now;
    }
    let all = site.files.shards.iter().map(|shard| shard.lock().unwrap().bytes().1);
    assert!(all.sum::<usize>() <= FILES * BYTES / 4);
    // A file that is requested more often replaces it.
    let hot = paths.last().unwrap();
    (0..60).for_each(|_| drop(ask(hot)));
    assert_eq!(ask(hot).as_ptr(), ask(hot).as_ptr());
}

/// Counts look-ups of new names: each leaves a fact.
fn looked_at(site: &Site, names: std::ops::Range<usize>) -> usize {
    site.watcher.drain();
    let ask = |number: usize| {
        let path = site.path(&format!("a/b/unknown-{number}"));
        let fact = site.files.fact(&site.watcher, &path).unwrap();
        assert_eq!(fact.stat(), Err(StatError::Missing));
        let hash = site.files.hasher.hash_one(&path[..]);
        site.files.shard(hash).fact(hash, &path).is_some()
    };
    names.filter(|number| ask(*number)).count()
}

#[test]
fn names_never_asked_for_cost_one_look_at_the_directory() {
    let site = Site::new("unknown");
    let first = looked_at(&site, 0..1_000);
    assert!(first < 10, "{first}");
    assert_eq!(looked_at(&site, 1_000..2_000), 0);
    assert_eq!(site.kind("a/b/page"), Ok(FileKind::Regular));
    // A new name is visible, and invalidates the listing for a few others.
    fs::write(site.folder.join("a/b/unknown-2500"), "x").unwrap();
    assert_eq!(site.kind("a/b/unknown-2500"), Ok(FileKind::Regular));
    let again = looked_at(&site, 3_000..4_000);
    assert!(again < 20, "{again}");
    fs::remove_file(site.folder.join("a/b/unknown-2500")).unwrap();
    assert_eq!(site.kind("a/b/unknown-2500"), Err(StatError::Missing));
    // Another directory at the path.
    fs::rename(site.folder.join("a/b"), site.folder.join("a/c")).unwrap();
    fs::create_dir(site.folder.join("a/b")).unwrap();
    fs::write(site.folder.join("a/b/other"), "x").unwrap();
    assert_eq!(site.kind("a/b/other"), Ok(FileKind::Regular));
    assert_eq!(site.kind("a/b/page"), Err(StatError::Missing));
    assert!(looked_at(&site, 4_000..5_000) < 10);
    // A name that is too long is a different error from a missing one.
    let long = site.path(&format!("a/b/{}", "x".repeat(300)));
    assert!(site.files.fact(&site.watcher, &long).is_none());
}

#[test]
fn a_directory_that_may_not_be_searched_any_more_has_no_missing_names() {
    let site = Site::new("search");
    assert!(looked_at(&site, 0..100) < 10);
    let _other = churn::OtherUser::new();
    let mode = |mode| {
        let _root = churn::OtherUser::root();
        fs::set_permissions(site.folder.join("a/b"), fs::Permissions::from_mode(mode)).unwrap();
    };
    mode(0o600);
    let path = site.path("a/b/unknown-200");
    site.watcher.drain();
    if path::stat(&path) != Err(StatError::Missing) {
        assert!(site.files.fact(&site.watcher, &path).is_none());
    }
    mode(0o700);
}

/// A large directory is listed in parts, within the memory limit of listings.
#[test]
fn a_large_directory_is_listed_within_limits() {
    const NAMES: usize = 100_000;
    let mut site = Site::new("large");
    for number in 0..NAMES {
        let name = site.folder.join(format!("a/b/file-{number}"));
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &name,
            rustix::fs::FileType::RegularFile,
            rustix::fs::Mode::RUSR,
            0,
        )
        .unwrap();
    }
    let first = looked_at(&site, 0..2_000);
    assert!(first > 10 && first < 1_000, "in parts: {first}");
    assert_eq!(looked_at(&site, 2_000..4_000), 0);
    let bytes = site.files.listings.bytes();
    assert!(bytes > NAMES * 4 && bytes < NAMES * 12, "{bytes}");
    assert_eq!(site.kind("a/b/file-77"), Ok(FileKind::Regular));
    // Another change does not list it again at once.
    fs::remove_file(site.folder.join("a/b/file-77")).unwrap();
    let again = looked_at(&site, 4_000..6_000);
    assert!(again < 200, "{again}");
    assert_eq!(site.files.listings.bytes(), bytes);
    site.files = Files { listings: Listings::new(100_000), ..Files::default() };
    assert_eq!(looked_at(&site, 0..2_000), 2_000);
    assert!(site.files.listings.bytes() <= 100_000);
}
