//! Opening of log files and pipes, as root, by the supervisor.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::pipes::{PipeSpec, PipeWriter, PipedLogs};

/// Mode of a log file that is created, before the umask: Apache's (`APR_OS_DEFAULT`).
pub const LOG_FILE_MODE: u32 = 0o666;

/// Opens the logs of one generation; handed to [`Program::open_logs`](crate::Program::open_logs).
///
/// At a restart everything is opened anew, under whatever names the files have by then, so that
/// logrotate works: new children write to the new file, old ones finish into the old.
pub struct LogOpener<'a> {
    pub(crate) pipes: &'a mut PipedLogs,
    pub(crate) generation: u32,
}

impl LogOpener<'_> {
    /// Opens a file for appending and creates it where it isn't there.
    pub fn file(&self, path: &Path) -> io::Result<OwnedFd> {
        open_file(path)
    }

    /// Starts the reader of a piped log and returns the end to write to. The same command asked
    /// for twice in one generation is one reader.
    pub fn pipe(&mut self, spec: &PipeSpec) -> io::Result<PipeWriter> {
        self.pipes.open(spec, self.generation)
    }
}

/// Opens a log file for appending and creates it where it isn't there.
pub fn open_file(path: &Path) -> io::Result<OwnedFd> {
    // O_CLOEXEC is std's default; O_NOCTTY keeps a terminal from becoming ours.
    let file = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(LOG_FILE_MODE)
        .custom_flags(libc::O_NOCTTY)
        .open(path)?;
    Ok(file.into())
}
