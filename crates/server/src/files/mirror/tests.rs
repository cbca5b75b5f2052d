use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use super::*;

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
        let files = Files::new(FACTS_BYTES_LIMIT);
        Site { folder, watcher: Watcher::new().unwrap(), files }
    }

    fn path(&self, name: &str) -> Vec<u8> {
        self.folder.join(name).as_os_str().as_bytes().to_vec()
    }

    fn fact(&self, name: &str) -> Option<Rc<Fact>> {
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
            (Some(one), Some(two)) => Rc::ptr_eq(&one, &two),
            _ => false,
        }
    }

    fn content(&self, name: &str) -> Option<Bytes> {
        self.watcher.drain();
        let contents = Contents::default();
        Some(self.files.content(&self.watcher, &self.path(name), &contents)?.1)
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
    assert!(site.is_remembered("a/b/page") && site.is_remembered("a/b/none/below"));
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
        // A member more changes what a listing says of the directory.
        fs::create_dir(site.folder.join("a/b").join(name.replace('/', "-"))).unwrap();
        assert_eq!(site.kind(name), Ok(FileKind::Directory));
        assert!(Rc::ptr_eq(&site.fact("a/b/page").unwrap(), &page));
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
    let mode = fs::Permissions::from_mode(0o750);
    fs::set_permissions(site.folder.join("a"), mode).unwrap();
    let directory = site.fact("a").unwrap();
    assert_eq!(directory.stat().unwrap().mode, 0o750);
    // The event on the directory itself also invalidates its names, which are the same still.
    assert_eq!(site.kind("a/b/page"), Ok(FileKind::Regular));
    assert!(Rc::ptr_eq(&site.fact("a").unwrap(), &directory));
    assert!(Rc::ptr_eq(&site.fact("a/b/page").unwrap(), &below));
}

#[test]
fn contents_are_those_of_the_last_write() {
    let site = Site::new("contents");
    assert_eq!(site.content("a/b/page").as_deref(), Some(&b"one"[..]));
    for round in 0..100 {
        // Within one tick of the clock that stamps files, and of one length.
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
    assert!(site.files.fact(&site.watcher, b"/").is_none());
    assert!(site.files.fact(&site.watcher, b"a/b").is_none());
    assert!(site.files.fact(&site.watcher, b"/proc/self/stat").is_none());
}

#[test]
fn names_without_end_do_not_fill_the_memory() {
    const LIMIT: usize = 64 * 1024;
    let mut site = Site::new("memory");
    site.files = Files::new(LIMIT);
    site.watcher.drain();
    for number in 0..5_000 {
        let path = site.path(&format!("a/b/{number}"));
        assert!(site.files.fact(&site.watcher, &path).is_some());
        assert!(site.is_remembered("a/b/page"), "what is asked for often stays");
    }
    let known = site.files.known.borrow();
    let all = known.young.iter().chain(&known.old);
    let bytes: usize = all.map(|(path, fact)| fact.bytes(path)).sum();
    assert!(bytes <= LIMIT && bytes > LIMIT / 4, "{bytes}");
}
