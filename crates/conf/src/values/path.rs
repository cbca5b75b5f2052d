//! File names and levels.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// The path of `file`, relative to `root` unless it is absolute, with `.` and `..` resolved.
///
/// As in Apache the file system is not consulted, so a symbolic link before `..` is not followed.
/// `..` at `/` stays there. Returns `None` if the name contains a NUL byte. Source:
/// `ap_server_root_relative`.
pub fn relative_to(root: &Path, file: &[u8]) -> Option<PathBuf> {
    if file.contains(&0) {
        return None;
    }
    let joined = root.join(Path::new(OsStr::from_bytes(file)));
    let mut out = PathBuf::new();
    for component in joined.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => {
                out.push(component);
            }
        }
    }
    // A slash at the end denotes a directory, and stays.
    if file.ends_with(b"/") && out.as_os_str().len() > 1 {
        out.as_mut_os_string().push("/");
    }
    Some(out)
}

/// The number of a level: `emerg` is 0 … `debug` 7, `trace1` 8 … `trace8` 15.
///
/// Names are case-insensitive. Returns `None` for others, for which Apache says "Log level keyword
/// must be one of emerg/alert/crit/error/warn/notice/info/debug/trace1/.../trace8". Source:
/// `ap_parse_log_level`.
pub fn log_level(name: &[u8]) -> Option<u8> {
    const NAMES: [&str; 16] = [
        "emerg", "alert", "crit", "error", "warn", "notice", "info", "debug", "trace1", "trace2",
        "trace3", "trace4", "trace5", "trace6", "trace7", "trace8",
    ];
    let found = NAMES.iter().position(|known| name.eq_ignore_ascii_case(known.as_bytes()))?;
    u8::try_from(found).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_joined_and_cleaned() {
        let root = Path::new("/etc/apache2");
        let path = |file: &str| relative_to(root, file.as_bytes()).unwrap();
        assert_eq!(path("conf.d/a.conf"), Path::new("/etc/apache2/conf.d/a.conf"));
        assert_eq!(path("/var/log/x"), Path::new("/var/log/x"));
        assert_eq!(path("./a/../b"), Path::new("/etc/apache2/b"));
        assert_eq!(path("mods/").as_os_str(), "/etc/apache2/mods/");
        assert_eq!(path("../../../x"), Path::new("/x"));
        assert_eq!(relative_to(root, b"a\0b"), None);
    }

    #[test]
    fn levels() {
        assert_eq!(log_level(b"Warn"), Some(4));
        assert_eq!(log_level(b"trace8"), Some(15));
        assert_eq!(log_level(b"loud"), None);
    }
}
