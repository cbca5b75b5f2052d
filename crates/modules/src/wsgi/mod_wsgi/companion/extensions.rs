//! The extension for Python: a file for all versions with a lock, and one for each version that can
//! run without it.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::path::Path;

/// Where the file for all versions lies, from the folder of the executable. The last place is where
/// cargo leaves it for tests.
const USUAL: [&str; 3] =
    ["lib_tamarack_wsgi.so", "../lib/tamarack/_tamarack_wsgi.abi3.so", "deps/lib_tamarack_wsgi.so"];

/// Where the others lie, under the names that their versions give to modules.
const FOLDERS: [&str; 2] = [".", "../lib/tamarack"];
const MODULE: &str = "_tamarack_wsgi";

/// What the versions with a lock call a module for all of them.
const ABI3: &str = ".abi3.so";

/// How many files for other versions are opened.
const OTHERS_MAX: usize = 8;

/// The files. Workers get descriptors: their user need not be able to reach the files.
#[derive(Default)]
pub(super) struct Extensions {
    /// Which versions load them: the ends of their names, separated by spaces.
    pub kinds: String,
    pub files: Vec<OwnedFd>,
}

impl Extensions {
    /// Opens those that lie beside the executable.
    pub fn find() -> Extensions {
        let mut found = Extensions::default();
        let program = std::env::current_exe().ok();
        let Some(folder) = program.as_deref().and_then(Path::parent) else { return found };
        USUAL.iter().any(|place| found.open(&folder.join(place), ABI3));
        for place in FOLDERS.map(|place| folder.join(place)) {
            let entries = std::fs::read_dir(place).into_iter().flatten().flatten();
            for path in entries.map(|entry| entry.path()) {
                let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
                let kind = name.strip_prefix(MODULE).filter(|kind| is_other(kind));
                if let Some(kind) = kind
                    && found.files.len() <= OTHERS_MAX
                    && !found.kinds.split(' ').any(|known| known == kind)
                {
                    found.open(&path, kind);
                }
            }
        }
        found
    }

    fn open(&mut self, path: &Path, kind: &str) -> bool {
        let Ok(file) = regular::open(path) else { return false };
        if !self.kinds.is_empty() {
            self.kinds.push(' ');
        }
        self.kinds.push_str(kind);
        self.files.push(file.into());
        true
    }
}

/// Whether it is the end of a name that a version could give, but not that for all of them.
fn is_other(kind: &str) -> bool {
    let middle = kind.strip_prefix('.').and_then(|kind| kind.strip_suffix(".so"));
    middle.is_some_and(|middle| !middle.is_empty() && !middle.contains(['.', ' ', '\0']))
        && kind != ABI3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_the_versions() {
        for kind in [".cpython-314t-x86_64-linux-gnu.so", ".abi3t.so"] {
            assert!(is_other(kind), "{kind}");
        }
        for kind in [".so", "..so", ".abi3.so", ".new", ".a b.so", ".cpython-314t.so.new", ""] {
            assert!(!is_other(kind), "{kind}");
        }
    }
}
