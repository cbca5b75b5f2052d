//! A map that is a program: it reads keys, one per line, and writes a line with the value of each.
//!
//! The program runs beside a companion process, which asks it one question at a time and starts it
//! again when it dies. A request waits for its answer without delaying others.
//!
//! Source: `run_rewritemap_programs`, `lookup_map_program`.

mod companion;
mod running;

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use mpm::companion::{MESSAGE_BYTES_MAX, Task};
use mpm::scoreboard::ProgramCounts;
use mpm::{Companion, Line};
use nix::unistd::{Group, User};
use rustix::fs::{Access, access};
use rustix::io::Errno;
use server::build::Build;
use server::directive::Fault;
use server::errorlog::Verbatim;
use server::host::{Host, Server};
use server::request::Request;

use super::super::Rewrite;
use super::super::settings::Settings;
use super::Map;

/// The longest value of a key.
const VALUE_BYTES_MAX: usize = 1 << 20;

/// The delay before a question is sent again if too many wait.
const RETRY: Duration = Duration::from_millis(10);

/// The first byte of an answer that has a value.
const FOUND: u8 = b'=';
/// The first byte of an answer that has none.
const FAILED: u8 = b'!';

/// A map that is a program.
#[derive(Debug)]
pub(in super::super) struct MapProgram {
    path: PathBuf,
    arguments: Vec<Vec<u8>>,
    /// The names of the user and the group to run it as.
    identity: Option<(String, Option<String>)>,
    /// The line to its companion; unset if no enabled engine could use it.
    line: OnceLock<Arc<Line>>,
}

/// Why a key has no answer.
#[derive(Debug, thiserror::Error)]
pub(in super::super) enum Unanswered {
    /// The companion can't be asked.
    #[error("can't ask the program: {0}")]
    NotAsked(io::Error),
    /// The answer did not arrive in time.
    #[error("no answer from the program within {} s (Timeout)", .0.as_secs())]
    Silent(Duration),
    /// The program did not answer in time, or its answer was too long.
    #[error("no answer from the program")]
    None,
}

impl MapProgram {
    /// Parses the command of a map, and the user and group in a third argument.
    pub fn parse(build: &Build, command: &[u8], identity: Option<&[u8]>) -> Result<Self, Fault> {
        let mut words = mpm::pipes::split_words(command).into_iter();
        let path = build.path(&words.next().unwrap_or_default());
        let identity = match identity {
            Some(names) => {
                let mut names = names.split(|byte| *byte == b':').filter(|name| !name.is_empty());
                let mut name = || names.next().map(|name| String::from_utf8_lossy(name).into());
                let user = name().ok_or("RewriteMap: no user before the colon")?;
                Some((user, name()))
            }
            None => None,
        };
        Ok(MapProgram { path, arguments: words.collect(), identity, line: OnceLock::new() })
    }

    /// The program.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Looks up a key; `None` if it has no value, or if the program was not started.
    ///
    /// # Errors
    /// There is no answer.
    pub async fn find(&self, request: &Request, key: &[u8]) -> Result<Option<Vec<u8>>, Unanswered> {
        let key = key.split(|byte| *byte == 0).next().unwrap_or_default();
        let Some(line) = self.line.get().filter(|_| !key.contains(&b'\n')) else {
            return Ok(None);
        };
        if request.depth.in_expression {
            // The request that evaluates the expression sends the question, and evaluates it again.
            std::future::pending::<()>().await;
        }
        let wait = request.host.core.timeout();
        let begun = Instant::now();
        let message = [b"?", key].concat();
        let answer = loop {
            match line.ask(&message) {
                Ok(answer) => break answer,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if begun.elapsed() > wait {
                        return Err(Unanswered::Silent(wait));
                    }
                    request.engine.handle.sleep(RETRY).await;
                }
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                    let why = format!("a key of more than {} bytes", MESSAGE_BYTES_MAX - 1);
                    return Err(Unanswered::NotAsked(io::Error::other(why)));
                }
                Err(error) => return Err(Unanswered::NotAsked(error)),
            }
        };
        let left = wait.saturating_sub(begun.elapsed());
        match rt::receive(answer, VALUE_BYTES_MAX + 1, left).await {
            Ok(answer) => value(&answer),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => Err(Unanswered::Silent(wait)),
            Err(error) => Err(Unanswered::NotAsked(error)),
        }
    }

    /// Checks whether it can be started, and returns the user and group to run it as
    /// (`rewritemap_program_child`).
    fn check(&self) -> Result<Option<(u32, u32)>, Errno> {
        access(&self.path, Access::READ_OK | Access::EXEC_OK)?;
        let Some((user, group)) = &self.identity else { return Ok(None) };
        let user = User::from_name(user).ok().flatten().ok_or(Errno::NOENT)?;
        let group = match group {
            Some(group) => Group::from_name(group).ok().flatten().ok_or(Errno::NOENT)?.gid,
            None => user.gid,
        };
        // As in Apache, only root runs it as another user.
        Ok(mpm::privileges::is_root().then(|| (user.uid.as_raw(), group.as_raw())))
    }

    fn could_not_start(&self, errno: Errno) -> String {
        let (number, path) =
            (errno.raw_os_error(), Verbatim::new(self.path.as_os_str().as_bytes()));
        let cause = nix::errno::Errno::from_raw(number).desc();
        format!(
            "({number}){cause}: AH00654: mod_rewrite: could not start RewriteMap program {path}"
        )
    }
}

/// The value in an answer. `NULL` means that there is none.
fn value(answer: &[u8]) -> Result<Option<Vec<u8>>, Unanswered> {
    let Some((&FOUND, line)) = answer.split_first() else { return Err(Unanswered::None) };
    if line.eq_ignore_ascii_case(b"NULL") {
        return Ok(None);
    }
    Ok(line.split(|byte| *byte == 0).next().map(<[u8]>::to_vec))
}

/// The companions of a configuration: one for each program that an engine may ask.
///
/// # Errors
/// Apache's message for a program that can't be started.
pub fn companions(server: &Arc<Server>) -> Result<Vec<Companion>, String> {
    let mut companions = Vec::new();
    let Some(slot) = server.registry.slot_of::<Rewrite>() else { return Ok(companions) };
    let wait = server.main().core.timeout();
    let settings = |host: &Arc<Host>| host.server.share::<Settings>(slot);
    for settings in server.hosts.iter().filter_map(settings) {
        if !settings.common.is_on() {
            continue;
        }
        for map in settings.maps.values() {
            let Map::Program(map) = map.as_ref() else { continue };
            // Hosts may share maps.
            if map.line.get().is_some() {
                continue;
            }
            let identity = map.check().map_err(|errno| map.could_not_start(errno))?;
            companions.push(companion(map, identity, wait)?);
        }
    }
    Ok(companions)
}

fn companion(
    map: &Arc<MapProgram>,
    identity: Option<(u32, u32)>,
    wait: Duration,
) -> Result<Companion, String> {
    let line = Line::new().map_err(|error| format!("no line to a companion: {error}"))?;
    let line = map.line.get_or_init(|| Arc::new(line)).clone();
    let name = format!("companion of RewriteMap program {}", map.path.display());
    let map = map.clone();
    let run = move |line: &Line, counts: ProgramCounts, log: &mut mpm::companion::Log<'_>| {
        companion::run(&map, identity, wait, line, (counts, log))
    };
    Ok(Companion { name, line, task: Task::Function(Arc::new(run)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn null_is_no_value() {
        let value = |answer: &str| value(answer.as_bytes());
        for none in ["=NULL", "=null", "=nUll"] {
            assert!(value(none).unwrap().is_none(), "{none}");
        }
        for (answer, expected) in
            [("=", ""), ("=a", "a"), ("=NULLx", "NULLx"), ("=a\0b", "a"), ("=NULL\0x", "NULL")]
        {
            assert_eq!(value(answer).unwrap().unwrap(), expected.as_bytes(), "{answer}");
        }
        assert!(value("").is_err());
        assert!(value("!").is_err());
    }
}
