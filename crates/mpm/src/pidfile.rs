//! The pid file: written when the sockets are bound, locked for as long as the supervisor lives.
//!
//! The lock (fcntl, so that no child inherits it) distinguishes a running supervisor from a stale
//! number that now belongs to another process.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::fcntl::{FcntlArg, fcntl};
use nix::unistd::Pid;

use crate::cause;

/// The longest pid file accepted.
const PID_FILE_BYTES_MAX: usize = 64;

/// The state of a pid file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Running {
    /// There is no pid file.
    NoPidFile,
    /// The process is gone, or is not the Tamarack that wrote this file.
    Stale(i32),
    /// A supervisor is running.
    Running(i32),
}

/// Reads the pid file at `path` and checks that the process it names holds its lock. Fails if the
/// file exists but can't be read, or does not begin with a process's number.
pub fn state(path: &Path) -> io::Result<Running> {
    let file = match regular::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Running::NoPidFile),
        Err(_) if path.is_dir() => return Err(nix::errno::Errno::EISDIR.into()),
        Err(error) => return Err(error),
    };
    let mut text = Vec::new();
    (&file).take(PID_FILE_BYTES_MAX as u64).read_to_end(&mut text)?;
    let pid = number(&text).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, CORRUPT))?;
    // A holder in another pid namespace appears as 0; the number in the file is then meaningless
    // here.
    let holder = lock_holder(&file)?;
    Ok(if holder == Some(pid) { Running::Running(pid) } else { Running::Stale(pid) })
}

/// The number at the beginning of a pid file. Apache also takes 0 and numbers that overflow, and
/// then sends its signal to its own group, or to every process.
fn number(text: &[u8]) -> Option<i32> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let digits = std::str::from_utf8(text.get(..digits)?).ok()?;
    digits.parse().ok().filter(|pid| *pid > 0)
}

/// httpd's words for a pid file without a number (`APR_EGENERAL`).
const CORRUPT: &str = "(20014)Internal error (specific information not available)";

/// httpd's lines for a pid file that [`state`] can't take.
pub fn unreadable(path: &Path, error: &io::Error) -> String {
    format!(
        "{}: AH00058: Error retrieving pid file {}\n\
         AH00059: Remove it before continuing if it is corrupted.",
        cause(error),
        path.display()
    )
}

/// The process that holds the file's lock.
fn lock_holder(file: &File) -> io::Result<Option<i32>> {
    let mut lock = whole_file(libc::F_WRLCK);
    fcntl(file.as_fd(), FcntlArg::F_GETLK(&mut lock))?;
    Ok((i32::from(lock.l_type) != libc::F_UNLCK).then_some(lock.l_pid))
}

fn whole_file(kind: i32) -> libc::flock {
    libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    }
}

/// The pid file of this process. Only [`PidFile::remove`] removes it.
#[derive(Debug)]
pub struct PidFile {
    path: PathBuf,
    /// Kept open: closing it releases the lock.
    file: File,
}

/// What [`PidFile::write`] found in its place.
#[derive(Debug)]
pub enum Written {
    /// Written; there was none before.
    Fresh(PidFile),
    /// Written over a stale one (AH00098).
    OverStale(PidFile),
    /// Not written: a supervisor with this pid is running.
    AlreadyRunning(i32),
}

impl PidFile {
    /// Writes this process's pid, such that no reader sees an incomplete file.
    ///
    /// The error is httpd's line.
    pub fn write(path: &Path) -> Result<Written, String> {
        let before = state(path).map_err(|error| unreadable(path, &error))?;
        Self::replace(path, before).map_err(|error| {
            let path = path.display();
            format!(
                "AH00099: could not create {path}: {error}\n\
                 AH00100: httpd: could not log pid to file {path}"
            )
        })
    }

    fn replace(path: &Path, before: Running) -> io::Result<Written> {
        let own = Pid::this().as_raw();
        if let Running::Running(pid) = before
            && pid != own
        {
            return Ok(Written::AlreadyRunning(pid));
        }
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{own}"));
        let temporary = path.with_file_name(name);
        let _ = fs::remove_file(&temporary);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o644)
            .open(&temporary)?;
        let written = writeln!(file, "{own}")
            .and_then(|()| Ok(fcntl(file.as_fd(), FcntlArg::F_SETLK(&whole_file(libc::F_WRLCK)))?))
            .and_then(|_| fs::rename(&temporary, path));
        if let Err(error) = written {
            let _ = fs::remove_file(&temporary);
            return Err(error);
        }
        let pid_file = Self { path: path.to_owned(), file };
        Ok(match before {
            Running::Stale(_) => Written::OverStale(pid_file),
            _ => Written::Fresh(pid_file),
        })
    }

    /// The pid file that this process wrote before it executed the current program. It is still
    /// open, so the lock is held.
    pub(crate) fn adopt(path: PathBuf, file: OwnedFd) -> Self {
        Self { path, file: file.into() }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the file if it is still this process's.
    pub fn remove(self) -> io::Result<()> {
        // Not by opening the path: closing another descriptor of the file would release the lock
        // while the file still exists.
        let mut text = [0; PID_FILE_BYTES_MAX];
        let count = self.file.read_at(&mut text, 0)?;
        let text = String::from_utf8_lossy(text.get(..count).unwrap_or_default());
        let [own, there] = [self.file.metadata()?, fs::metadata(&self.path)?];
        let is_there = (own.dev(), own.ino()) == (there.dev(), there.ino());
        if is_there && text.trim() == Pid::this().to_string() {
            fs::remove_file(&self.path)?;
        }
        Ok(())
    }
}

impl AsFd for PidFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("mpm-pid-{name}-{}", std::process::id()))
    }

    #[test]
    fn a_number_without_a_lock_is_stale() {
        let path = path("stale");
        assert_eq!(state(&path).unwrap(), Running::NoPidFile);
        fs::write(&path, "1\n").unwrap();
        assert_eq!(state(&path).unwrap(), Running::Stale(1));
        fs::write(&path, "1 of 2\n").unwrap();
        assert_eq!(state(&path).unwrap(), Running::Stale(1));
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_file_without_a_number_is_corrupt() {
        let path = path("corrupt");
        let texts: [&[u8]; 8] =
            [b"", b"\n", b"what\n", b" 1\n", b"-1", b"0\n", b"4294967295\n", &[0xff; 10]];
        for text in texts {
            fs::write(&path, text).unwrap();
            let said = unreadable(&path, &state(&path).unwrap_err());
            assert!(said.starts_with("(20014)Internal error"), "{said}");
            assert!(PidFile::write(&path).is_err());
            assert_eq!(fs::read(&path).unwrap(), text);
        }
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        let said = unreadable(&path, &state(&path).unwrap_err());
        assert!(said.starts_with("(21)Is a directory: AH00058: "), "{said}");
        fs::remove_dir(path).unwrap();
    }

    #[test]
    fn it_replaces_what_was_left_behind_and_is_removed() {
        let path = path("write");
        fs::write(&path, "1\n").unwrap();
        let Written::OverStale(file) = PidFile::write(&path).unwrap() else { panic!() };
        assert_eq!(fs::read_to_string(&path).unwrap(), format!("{}\n", std::process::id()));
        file.remove().unwrap();
        assert!(!path.exists());
        let Written::Fresh(file) = PidFile::write(&path).unwrap() else { panic!() };
        fs::write(&path, "1\n").unwrap();
        file.remove().unwrap();
        assert!(path.exists(), "another server's file is kept");
        fs::remove_file(&path).unwrap();
        let Written::Fresh(file) = PidFile::write(&path).unwrap() else { panic!() };
        let other = path.with_extension("other");
        fs::write(&other, format!("{}\n", std::process::id())).unwrap();
        fs::rename(&other, &path).unwrap();
        file.remove().unwrap();
        assert!(path.exists(), "a file that replaced it is kept");
        fs::remove_file(path).unwrap();
    }
}
