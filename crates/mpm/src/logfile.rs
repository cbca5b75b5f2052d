//! Opening of log files and pipes by the supervisor, as root.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::pipes::{PipeSpec, PipeWriter, PipedLogs};

/// Mode of a log file that is created, before the umask: Apache's (`APR_OS_DEFAULT`).
pub const LOG_FILE_MODE: u32 = 0o666;

/// Opens the logs of one generation; passed to [`Program::open_logs`](crate::Program::open_logs).
///
/// A restart reopens every log by its path, so that logrotate works: new children write to the new
/// file, old ones finish writing to the old.
pub struct LogOpener<'a> {
    pub(crate) pipes: &'a mut PipedLogs,
    pub(crate) generation: u32,
}

impl<'a> LogOpener<'a> {
    /// The opener of a process without a supervisor.
    pub fn alone(pipes: &'a mut PipedLogs) -> Self {
        Self { pipes, generation: 0 }
    }

    /// Opens a file for appending; creates it if it doesn't exist.
    pub fn file(&self, path: &Path) -> io::Result<OwnedFd> {
        open_file(path)
    }

    /// Starts the reader of a piped log and returns the write end. Within a generation, equal
    /// commands share one reader.
    pub fn pipe(&mut self, spec: &PipeSpec) -> io::Result<PipeWriter> {
        self.pipes.open(spec, self.generation)
    }
}

/// Opens a log file for appending; creates it if it doesn't exist.
pub fn open_file(path: &Path) -> io::Result<OwnedFd> {
    // std sets O_CLOEXEC; O_NOCTTY keeps a terminal from becoming the controlling one.
    let file = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(LOG_FILE_MODE)
        .custom_flags(libc::O_NOCTTY)
        .open(path)?;
    Ok(file.into())
}
