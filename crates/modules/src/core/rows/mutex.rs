//! `Mutex`, which is checked and shown.

use std::path::Path;

use conf::Arg;
use server::core::MutexSetting;
use server::directive::{Fault, Set};

use super::Here;

/// The name for all resources without a line of their own.
const DEFAULT: &str = "default";

/// Apache's names of mechanisms, and what they stand for.
const MECHANISMS: [(&str, &str); 11] = [
    ("none", "none"),
    ("no", "none"),
    ("default", "default"),
    ("yes", "default"),
    ("fcntl", "fcntl"),
    ("file", "fcntl"),
    ("flock", "flock"),
    ("posixsem", POSIX_SEMAPHORE),
    ("sem", POSIX_SEMAPHORE),
    ("sysvsem", "sysvsem"),
    ("pthread", "pthread"),
];

/// What follows it is not relative to ServerRoot.
const POSIX_SEMAPHORE: &str = "posixsem";

/// Source: `ap_parse_mutex`, `ap_set_mutex` (server/util_mutex.c).
pub(super) fn mutex(cx: &mut Here<'_, '_>, words: &[Arg]) -> Set {
    let Some((first, names)) = words.split_first() else { return Ok(()) };
    let text = first.text.to_string();
    let (name, file) = text.split_once(':').unwrap_or((&text, ""));
    let found = MECHANISMS.iter().find(|(known, _)| name.eq_ignore_ascii_case(known));
    let Some((_, mechanism)) = found else {
        let known = "(Mutex mechanisms are: 'none', 'default', 'flock:/path/to/file', \
                     'fcntl:/path/to/file', 'file:/path/to/file', 'pthread', 'sysvsem', \
                     'posixsem', 'sem')";
        return Err(Fault::new(format!("Invalid Mutex argument {text} {known}")).at(first));
    };
    let (omit_pid, names) = match names {
        [names @ .., last] if last.is("OmitPID") => (true, names),
        names => (false, names),
    };
    let is_none = *mechanism == "none";
    if is_none && (names.is_empty() || names.iter().any(|name| name.is(DEFAULT))) {
        return Err(Fault::new("None is not allowed for mutex type default").at(first));
    }
    let folder = if is_none { None } else { folder(cx, mechanism, file, first)? };
    let mutexes = &mut cx.server().globals_mut().mutexes;
    let mut set = |name: &[u8]| {
        let mut folder = folder.clone();
        if folder.is_none() && name == DEFAULT.as_bytes() {
            folder = mutexes.get(name).and_then(|before| before.folder.clone());
        }
        mutexes.insert(name.to_vec(), MutexSetting { mechanism, folder, omit_pid });
    };
    match names {
        [] => set(DEFAULT.as_bytes()),
        names => names.iter().for_each(|name| set(&name.text)),
    }
    Ok(())
}

/// The folder after a mechanism.
fn folder(
    cx: &mut Here<'_, '_>,
    mechanism: &str,
    file: &str,
    argument: &Arg,
) -> Result<Option<String>, Fault> {
    if file.is_empty() {
        return Ok(None);
    }
    let path = match mechanism {
        POSIX_SEMAPHORE => Path::new(file).to_owned(),
        _ => cx.build().path(file.as_bytes()),
    };
    if !path.is_dir() {
        let text = format!("Invalid Mutex directory in argument {}", argument.text);
        return Err(Fault::new(text).at(argument));
    }
    Ok(Some(path.display().to_string()))
}
