//! An overlay file system in a mount namespace of its own.

use std::fs;
use std::path::{Path, PathBuf};

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};

/// A mounted overlay, which the calling thread alone sees.
pub struct Overlay(pub PathBuf);

impl Overlay {
    /// An overlay whose lower layer is what `fill` puts into a directory. Fails where mount
    /// namespaces or overlays can't be made, which takes root.
    pub fn new(name: &str, fill: impl FnOnce(&Path)) -> Result<Self, nix::Error> {
        let base = std::env::temp_dir().join(format!("overlay-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&base);
        fs::create_dir_all(&base).unwrap();
        let none = None::<&str>;
        unshare(CloneFlags::CLONE_NEWNS)?;
        mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)?;
        // The temporary directory may be on an overlay itself, which can't be an upper layer.
        mount(Some("tmpfs"), &base, Some("tmpfs"), MsFlags::empty(), none)?;
        for layer in ["lower", "upper", "work", "merged", "again"] {
            fs::create_dir(base.join(layer)).unwrap();
        }
        fill(&base.join("lower"));
        let layer = |name: &str| base.join(name).display().to_string();
        let options = format!(
            "lowerdir={},upperdir={},workdir={}",
            layer("lower"),
            layer("upper"),
            layer("work")
        );
        let options = Some(options.as_str());
        mount(Some("overlay"), &base.join("merged"), Some("overlay"), MsFlags::empty(), options)?;
        mount(Some(&base.join("merged")), &base.join("again"), none, MsFlags::MS_BIND, none)?;
        Ok(Self(base))
    }

    /// A path in the overlay.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join("merged").join(name)
    }
}

impl Drop for Overlay {
    fn drop(&mut self) {
        for mounted in ["again", "merged", ""] {
            let _ = umount2(&self.0.join(mounted), MntFlags::MNT_DETACH);
        }
        let _ = fs::remove_dir(&self.0);
    }
}
