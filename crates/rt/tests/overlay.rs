//! What the watch reports of an overlay file system, on which containers live: every change through
//! the mount. Changes of the directories below it are not reported, and undefined by the kernel
//! (Documentation/filesystems/overlayfs.rst, "Changes to underlying filesystems").

#![allow(clippy::unwrap_used)]

use std::fs::{self, File, Permissions};
use std::io::Write;
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::Path;

use rt::Watcher;

#[path = "support/overlay.rs"]
mod support;

use support::Overlay;

fn append(path: &Path) {
    File::options().append(true).open(path).unwrap().write_all(b"more").unwrap();
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

#[test]
fn every_change_through_an_overlay_is_reported() {
    let fill = |lower: &Path| {
        fs::create_dir_all(lower.join("dir/deep")).unwrap();
        for page in ["page", "dir/page", "dir/deep/page"] {
            fs::write(lower.join(page), "lower").unwrap();
        }
    };
    let overlay = match Overlay::new("changes", fill) {
        Ok(overlay) => overlay,
        Err(error) => return eprintln!("skipped: no overlay can be mounted here: {error}"),
    };
    let at = |name: &str| overlay.path(name);
    let watcher = Watcher::new().unwrap();
    // Watched before anything is copied up.
    for directory in ["", "dir", "dir/deep"] {
        assert!(watcher.watch(&at(directory)).is_some(), "{directory}");
    }
    let open = File::options().write(true).open(at("dir/deep/page")).unwrap();
    type Change<'c> = (&'c str, &'c str, Box<dyn Fn() + 'c>);
    let changes: Vec<Change<'_>> = vec![
        ("dir", "page", Box::new(|| append(&at("dir/page")))),
        ("", "page", Box::new(|| mode(&at("page"), 0o600))),
        ("", "page", Box::new(|| fs::write(at("page"), "over").unwrap())),
        ("", "dir", Box::new(|| mode(&at("dir"), 0o711))),
        ("dir/deep", "page", Box::new(|| open.write_all_at(b"x", 0).unwrap())),
        ("dir/deep", "page", Box::new(|| open.set_len(1).unwrap())),
        ("dir", "new", Box::new(|| fs::write(at("dir/new"), "").unwrap())),
        ("dir", "page", Box::new(|| fs::rename(at("dir/new"), at("dir/page")).unwrap())),
        ("dir", "page", Box::new(|| fs::remove_file(at("dir/page")).unwrap())),
        ("dir", "page", Box::new(|| fs::write(at("dir/page"), "again").unwrap())),
        ("", "page", Box::new(|| fs::rename(at("page"), at("moved")).unwrap())),
        ("", "moved", Box::new(|| append(&overlay.0.join("again/moved")))),
        ("", "link", Box::new(|| symlink("moved", at("link")).unwrap())),
        ("", "hard", Box::new(|| fs::hard_link(at("moved"), at("hard")).unwrap())),
        ("", "more", Box::new(|| fs::create_dir(at("more")).unwrap())),
        ("", "more", Box::new(|| fs::rename(at("more"), at("less")).unwrap())),
        ("dir/deep", "page", Box::new(|| fs::remove_file(at("dir/deep/page")).unwrap())),
        ("dir", "deep", Box::new(|| fs::remove_dir(at("dir/deep")).unwrap())),
        ("dir", "deep", Box::new(|| fs::create_dir(at("dir/deep")).unwrap())),
    ];
    for (number, (directory, name, change)) in changes.iter().enumerate() {
        let id = watcher.watch_name(&at(directory), name.as_bytes()).unwrap();
        watcher.drain();
        let before = watcher.generation(id);
        change();
        watcher.drain();
        assert_ne!(watcher.generation(id), before, "change {number} of {directory}/{name}");
    }
}
