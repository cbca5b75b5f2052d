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

/// The longest pid file accepted.
const PID_FILE_BYTES_MAX: usize = 64;

/// The state of a pid file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Running {
    /// There is no pid file, or it holds no number.
    NoPidFile,
    /// The process is gone, or is not the Tamarack that wrote this file.
    Stale(i32),
    /// A supervisor is running.
    Running(i32),
}

/// Reads the pid file at `path` and checks that the process it names holds its lock. Fails if the
/// file exists but can't be read.
pub fn state(path: &Path) -> io::Result<Running> {
    let file = match regular::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Running::NoPidFile),
        Err(error) => return Err(error),
    };
    let mut text = String::new();
    match (&file).take(PID_FILE_BYTES_MAX as u64).read_to_string(&mut text) {
        Err(error) if error.kind() != io::ErrorKind::InvalidData => return Err(error),
        _ => {}
    }
    let Some(pid) = text.trim().parse::<i32>().ok().filter(|pid| *pid > 0) else {
        return Ok(Running::NoPidFile);
    };
    // A holder in another pid namespace appears as 0; the number in the file is then meaningless
    // here.
    let holder = lock_holder(&file)?;
    Ok(if holder == Some(pid) { Running::Running(pid) } else { Running::Stale(pid) })
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
    pub fn write(path: &Path) -> io::Result<Written> {
        let before = state(path)?;
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
        fs::write(&path, "what\n").unwrap();
        assert_eq!(state(&path).unwrap(), Running::NoPidFile);
        fs::write(&path, [0xff; 10]).unwrap();
        assert_eq!(state(&path).unwrap(), Running::NoPidFile);
        fs::write(&path, "-1").unwrap();
        assert_eq!(state(&path).unwrap(), Running::NoPidFile);
        fs::remove_file(path).unwrap();
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
