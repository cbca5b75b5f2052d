//! Compares the mirror with the real file system, under random changes.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use nix::unistd::{Uid, setfsuid};

use super::*;

#[path = "../../../../../rt/tests/support/overlay.rs"]
mod overlay;

use overlay::Overlay;

/// Rounds of changes per seed.
const ROUNDS: usize = 400;
const SEEDS: u64 = 4;

/// A xorshift generator: the same changes in every run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 16).unwrap() % limit
    }

    fn of<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.below(list.len())]
    }

    /// A path of one to four names.
    fn path(&mut self) -> String {
        let names: Vec<&str> =
            (0..=self.below(4)).map(|_| self.of(&["a", "b", "c", "d"])).collect();
        names.join("/")
    }
}

/// Lets this thread access files as a user who may not search every directory, unlike root.
pub(super) struct OtherUser(Uid);

impl OtherUser {
    pub fn new() -> OtherUser {
        OtherUser(setfsuid(Uid::from_raw(65534)))
    }

    /// Switches back to the process's user, temporarily.
    pub fn root() -> OtherUser {
        OtherUser(setfsuid(Uid::current()))
    }
}

impl Drop for OtherUser {
    fn drop(&mut self) {
        setfsuid(self.0);
    }
}

/// Makes one change; most fail, since their paths are random.
fn change(folder: &Path, chance: &mut Chance) -> String {
    let (one, two) = (chance.path(), chance.path());
    let (here, there) = (folder.join(&one), folder.join(&two));
    let kind = chance.below(12);
    let done = match kind {
        0 | 1 => fs::create_dir_all(&here),
        2 | 3 => fs::write(&here, chance.of(&["one", "two", "longer"])),
        4 | 5 => fs::rename(&here, &there),
        6 => {
            let target = match chance.below(4) {
                0 => folder.join(&two),
                1 => PathBuf::from("..").join(&two),
                2 => PathBuf::from(chance.of(&["a/../b", "b/../../c", "../a/../d", "a"])),
                _ => PathBuf::from(&two),
            };
            symlink(target, &here)
        }
        // No watch reports a second name that a file gets after it was stat'ed.
        7 => fs::File::create_new(&here).and_then(|_| fs::hard_link(&here, &there)),
        8 => fs::remove_file(&here),
        9 => fs::remove_dir_all(&here),
        _ => {
            let mode = [0o755, 0o700, 0o600, 0o500, 0o300, 0o000][chance.below(6)];
            fs::set_permissions(&here, fs::Permissions::from_mode(mode))
        }
    };
    format!("{kind} {one} {two}: {}", done.is_ok())
}

#[test]
fn the_mirror_is_the_file_system_whatever_changes() {
    let _searches_what_it_may = OtherUser::new();
    for seed in 1..=SEEDS {
        let mut site = Site::new(&format!("churn-{seed}"));
        if seed % 2 == 0 {
            site.watcher = Watcher::with_limit(10).unwrap();
        }
        let remembered = churn(&site, seed, false);
        assert!(remembered > ROUNDS, "{remembered}");
    }
}

/// On the file system of containers, over files that were there before.
#[test]
fn the_mirror_of_an_overlay_is_the_file_system_whatever_changes() {
    for seed in 1..=SEEDS {
        let mut chance = Chance(seed);
        let fill = |lower: &Path| (0..60).for_each(|_| drop(change(lower, &mut chance)));
        let overlay = match Overlay::new(&format!("churn-{seed}"), fill) {
            Ok(overlay) => overlay,
            Err(error) => return eprintln!("skipped: no overlay can be mounted here: {error}"),
        };
        let site = Site {
            folder: overlay.path(""),
            watcher: Watcher::new().unwrap(),
            files: Files::default(),
        };
        let remembered = churn(&site, seed, true);
        assert!(remembered > ROUNDS, "{remembered}");
    }
}

/// Changes a folder at random and holds the mirror against it; how often it knew something.
fn churn(site: &Site, seed: u64, is_overlay: bool) -> usize {
    let other = Files::default();
    other.limit(40_000, 40_000, 0);
    let mut chance = Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut remembered = 0;
    let mut history = Vec::new();
    for _ in 0..ROUNDS {
        for _ in 0..=chance.below(3) {
            history.push(change(&site.folder, &mut chance));
        }
        site.watcher.drain();
        for look in 0..6 {
            let files = if look % 3 == 2 { &other } else { &site.files };
            let path = site.path(&chance.path());
            remembered += usize::from(check(files, &site.watcher, &path, &history, is_overlay));
        }
    }
    open_up(&site.folder);
    remembered
}

/// Restores permissions, so that the folder can be removed.
fn open_up(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            let _ = fs::set_permissions(entry.path(), fs::Permissions::from_mode(0o755));
            open_up(&entry.path());
        }
    }
}

/// Compares the mirror with the file system for a path; returns whether the mirror has a fact.
fn check(
    files: &Files,
    watcher: &Watcher,
    path: &[u8],
    history: &[String],
    is_overlay: bool,
) -> bool {
    let Some(fact) = files.fact(watcher, path) else { return false };
    let context = || {
        let last = &history[history.len().saturating_sub(15)..];
        format!("{}\n{}", bstr::BStr::new(path), last.join("\n"))
    };
    // A directory that is copied up, because something in it is, has another time of change, size
    // and number of links. No response depends on these.
    let shown = |info: FileInfo| match info.kind {
        FileKind::Directory if is_overlay => FileInfo { ctime_us: 0, size: 0, links: 0, ..info },
        _ => info,
    };
    assert_eq!(fact.stat().map(shown), path::stat(path).map(shown), "stat {}", context());
    let parts =
        |found: Result<Entry, _>| found.map(|Entry { info, is_symlink }| (shown(info), is_symlink));
    assert_eq!(parts(fact.lstat()), parts(path::lstat(path)), "lstat {}", context());
    if let Some((_, content)) = files.content(watcher, path) {
        let real = fs::read(path::as_path(path)).ok();
        assert_eq!(Some(&content[..]), real.as_deref(), "content {}", context());
    }
    true
}
