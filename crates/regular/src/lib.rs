//! Opens files by names that come from a configuration, a document or a client.
//!
//! Such a name may lead to a FIFO, a device or a socket: a plain open(2) would block until the
//! other end opens, and a read until bytes arrive. Every file that Tamarack reads is opened here,
//! except those of the system (/proc, /sys); `cargo xtask tidy` forbids other ways.

#![forbid(unsafe_code)]

pub mod looks;

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

/// The error for anything but a regular file, as in Apache (`ap_pcfg_openfile`).
pub const NOT_REGULAR: Errno = Errno::BADF;

/// The device number of `/dev/null` (Linux, admin-guide/devices.rst).
const NULL_DEVICE: (u32, u32) = (1, 3);

/// Opens a regular file for reading, non-blocking and close-on-exec. `/dev/null` counts as an empty
/// file.
///
/// # Errors
/// Those of open(2) and fstat(2), and [`NOT_REGULAR`].
pub fn open(path: impl AsRef<Path>) -> io::Result<File> {
    Ok(open_with_stat(path)?.0)
}

/// Like [`open`], and returns the file's status as well.
///
/// # Errors
/// Those of [`open`].
pub fn open_with_stat(path: impl AsRef<Path>) -> io::Result<(File, Stat)> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    looks::count_open();
    let file = match rustix::fs::open(path.as_ref(), flags, Mode::empty()) {
        Ok(file) => file,
        // A socket, or a device without a driver.
        Err(Errno::NXIO) => return Err(NOT_REGULAR.into()),
        Err(error) => return Err(error.into()),
    };
    let stat = rustix::fs::fstat(&file)?;
    if is_regular(&stat) { Ok((File::from(file), stat)) } else { Err(NOT_REGULAR.into()) }
}

/// Whether it is a regular file, or /dev/null.
fn is_regular(stat: &Stat) -> bool {
    let device = (rustix::fs::major(stat.st_rdev), rustix::fs::minor(stat.st_rdev));
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => true,
        FileType::CharacterDevice => device == NULL_DEVICE,
        _ => false,
    }
}

/// Opens a regular file for writing, from its beginning, and creates it if it does not exist.
///
/// # Errors
/// Those of [`open`].
pub fn create(path: impl AsRef<Path>) -> io::Result<File> {
    let flags =
        OFlags::WRONLY | OFlags::CREATE | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    looks::count_open();
    let file = match rustix::fs::open(path.as_ref(), flags, Mode::from_raw_mode(0o666)) {
        Ok(file) => file,
        Err(Errno::NXIO) => return Err(NOT_REGULAR.into()),
        Err(error) => return Err(error.into()),
    };
    if is_regular(&rustix::fs::fstat(&file)?) {
        Ok(File::from(file))
    } else {
        Err(NOT_REGULAR.into())
    }
}

/// Opens a directory for reading; anything else is an error at once.
///
/// # Errors
/// Those of open(2), `ENOTDIR` among them.
pub fn open_directory(path: impl rustix::path::Arg) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOCTTY;
    looks::count_open();
    Ok(rustix::fs::open(path, flags, Mode::empty())?)
}

/// Reads a regular file of at most `limit_bytes`.
///
/// # Errors
/// Those of [`open`] and read(2), and `FileTooLarge`.
pub fn read(path: impl AsRef<Path>, limit_bytes: u64) -> io::Result<Vec<u8>> {
    let (file, stat) = open_with_stat(path)?;
    let length = u64::try_from(stat.st_size).unwrap_or(0);
    let mut content = Vec::new();
    if length <= limit_bytes {
        content.reserve_exact(usize::try_from(length).unwrap_or(0) + 1);
        file.take(limit_bytes.saturating_add(1)).read_to_end(&mut content)?;
    }
    if length > limit_bytes || content.len() as u64 > limit_bytes {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("longer than {limit_bytes} bytes"),
        ));
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use nix::sys::stat::Mode;

    use super::*;

    fn error(path: &Path) -> Option<i32> {
        open(path).err().and_then(|error| error.raw_os_error())
    }

    #[test]
    fn what_is_no_regular_file_is_refused_at_once() {
        let folder = std::env::temp_dir().join(format!("tamarack-regular-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let refused = Some(NOT_REGULAR.raw_os_error());
        nix::unistd::mkfifo(&folder.join("fifo"), Mode::S_IRWXU).unwrap();
        // A plain open would wait for a writer here.
        assert_eq!(error(&folder.join("fifo")), refused);
        let _socket = UnixListener::bind(folder.join("socket")).unwrap();
        assert_eq!(error(&folder.join("socket")), refused);
        assert_eq!(error(&folder), refused);
        assert_eq!(error(Path::new("/dev/zero")), refused);
        assert_eq!(error(&folder.join("none")), Some(Errno::NOENT.raw_os_error()));
        assert_eq!(read("/dev/null", 5).unwrap(), b"");
        std::fs::write(folder.join("file"), "hello").unwrap();
        assert_eq!(read(folder.join("file"), 5).unwrap(), b"hello");
        let longer = read(folder.join("file"), 4).unwrap_err();
        assert_eq!(longer.kind(), io::ErrorKind::FileTooLarge);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
