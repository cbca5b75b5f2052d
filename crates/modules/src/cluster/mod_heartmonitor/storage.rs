//! What servers have said, in a file that is replaced as a whole.
//!
//! Source: `hm_file_update_stats`, `hm_file_update_stat`.

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::SystemTime;

use super::message::{DEFAULT_PORT, Heartbeat, Words};
use crate::atoi::atoi;
use crate::random;

/// The largest file, bytes.
const BYTES_MAX: u64 = 1 << 20;
/// The age of servers whose line does not tell it, seconds.
pub(super) const AGE_MAX_S: u64 = 30;
/// Attempts to find a name for a file that replaces another.
const NAMES: usize = 16;

/// Writes the lines of all servers.
///
/// # Errors
/// The file can't be written.
pub(super) fn replace(path: &Path, lines: &[u8]) -> io::Result<()> {
    let (temporary, mut file) = temporary(path)?;
    let written = file
        .write_all(lines)
        .and_then(|()| fs::set_permissions(&temporary, Permissions::from_mode(0o444)))
        .and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// Replaces the line of a server, or adds it; those of others get older.
///
/// # Errors
/// The file can't be written.
pub(super) fn update(path: &Path, server: &Heartbeat, now_s: u64) -> io::Result<()> {
    let old = regular::read(path, BYTES_MAX).unwrap_or_default();
    let changed = fs::metadata(path).and_then(|about| about.modified()).ok();
    let age = changed.and_then(|time| SystemTime::now().duration_since(time).ok());
    replace(path, &updated(&old, server, (now_s, age.unwrap_or_default().as_secs())))
}

fn updated(old: &[u8], server: &Heartbeat, (now_s, age_s): (u64, u64)) -> Vec<u8> {
    let own = server.line(now_s);
    let (mut lines, mut has_own) = (Vec::new(), false);
    for line in old.split_inclusive(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let end = line.iter().position(|byte| *byte == b' ');
        match end.and_then(|end| line.split_at_checked(end)) {
            Some((ip, words)) if line.first() != Some(&b'#') => {
                if ip == server.ip {
                    has_own = true;
                    lines.extend_from_slice(own.as_bytes());
                } else {
                    lines.extend_from_slice(other(ip, words, now_s, age_s).as_bytes());
                }
            }
            _ => lines.extend_from_slice(line),
        }
        lines.push(b'\n');
    }
    if !has_own {
        lines.extend_from_slice(own.as_bytes());
        lines.push(b'\n');
    }
    lines
}

/// The line of another server, in a file of this age.
fn other(ip: &[u8], words: &[u8], now_s: u64, age_s: u64) -> String {
    let words = Words::parse(words);
    let number = |name| words.get(name).map(atoi);
    let seen = number("lastseen").map_or(AGE_MAX_S, |seen| u64::try_from(seen).unwrap_or(0));
    let other = Heartbeat {
        ip: ip.to_vec(),
        ready: number("ready").unwrap_or(0),
        busy: number("busy").unwrap_or(0),
        port: number("port").map_or(DEFAULT_PORT, |port| port as u32),
        seen_s: now_s.saturating_sub(seen.saturating_add(age_s)),
    };
    other.line(now_s)
}

/// A new file beside `path`, with its path.
fn temporary(path: &Path) -> io::Result<(std::path::PathBuf, File)> {
    let mut found = Err(io::ErrorKind::AlreadyExists.into());
    for _ in 0..NAMES {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".tmp.{:06x}", random::below(1 << 24)));
        found = File::create_new(&name);
        match found {
            Ok(file) => return Ok((name.into(), file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => found = Err(error),
            Err(error) => return Err(error),
        }
    }
    found.map(|file| (path.to_owned(), file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_replaced() {
        let ip = b"127.0.0.1".to_vec();
        let server = Heartbeat { ip, ready: 5, busy: -1, port: 99, seen_s: 1000 };
        let old = b"# c\nnospace\n10.0.0.1 &ready=3&busy=1&lastseen=2&port=81\n10.0.0.2 foo\n";
        let lines = String::from_utf8(updated(old, &server, (1000, 5))).unwrap();
        let expected = "# c\nnospace\n10.0.0.1 &ready=3&busy=1&lastseen=7&port=81\n\
                        10.0.0.2 &ready=0&busy=0&lastseen=35&port=80\n\
                        127.0.0.1 &ready=5&busy=4294967295&lastseen=0&port=99\n";
        assert_eq!(lines, expected);
        let again = updated(lines.as_bytes(), &Heartbeat { ready: 6, ..server }, (1000, 0));
        assert_eq!(String::from_utf8(again).unwrap(), expected.replace("ready=5", "ready=6"));
    }
}
