//! The check of the logs' folders, which ends a check of the configuration.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use conf::{Diagnostic, Sources};
use modules::loggers::mod_log_config;
use rustix::io::Errno;
use server::host::{Host, Server};
use server::sinks::Target;

use crate::startup;

/// Finds logs in missing folders: error logs (`core_check_config`), or if there are none, those of
/// requests (`log_check_config`).
pub fn unreachable(server: &Server, sources: &Sources) -> Vec<Diagnostic> {
    // httpd's list of hosts begins with the main server, and continues in reverse order.
    let hosts = || server.hosts.iter().take(1).chain(server.hosts.iter().skip(1).rev());
    let mut found: Vec<Diagnostic> = hosts().filter_map(|host| error_log(server, host)).collect();
    found.dedup();
    if found.is_empty() {
        // A host without logs of its own has the main server's.
        let mut seen = BTreeSet::new();
        let files = hosts().flat_map(|host| mod_log_config::files(server, host));
        let files = files.filter(|file| seen.insert(file.span));
        found.extend(files.filter_map(|file| log_file(&file, sources)));
    }
    if !found.is_empty() {
        let code = "AH00014";
        found.push(Diagnostic { code, ..Diagnostic::without_place("Configuration check failed") });
    }
    found
}

fn error_log(server: &Server, host: &Host) -> Option<Diagnostic> {
    let id = host.core.error_log.get()?;
    let Target::File(file) = server.sinks.target(*id)? else { return None };
    let (folder, cause) = missing_folder(&file)?;
    Some(finding(match &host.defined_at {
        None => format!("{cause}: AH02291: Cannot access directory '{folder}' for main error log"),
        Some((file, line)) => format!(
            "{cause}: AH02291: Cannot access directory '{folder}' for error log of vhost defined \
             at {file}:{line}"
        ),
    }))
}

fn log_file(file: &mod_log_config::LogFile, sources: &Sources) -> Option<Diagnostic> {
    let (folder, cause) = missing_folder(&file.path)?;
    let written = String::from_utf8_lossy(&file.written);
    let (place, line) = sources.place(file.span);
    Some(finding(format!(
        "{cause}: AH02297: Cannot access directory '{folder}' for log file '{written}' defined at \
         {place}:{line}"
    )))
}

fn finding(message: String) -> Diagnostic {
    Diagnostic { code: "", ..Diagnostic::without_place(message) }
}

/// The folder of `file`, with its slash, and the error if it can't be accessed.
fn missing_folder(file: &Path) -> Option<(String, String)> {
    let name = file.as_os_str().as_bytes();
    let slash = name.iter().rposition(|byte| *byte == b'/')?;
    let folder = Path::new(OsStr::from_bytes(name.get(..=slash)?));
    let error = match std::fs::metadata(folder) {
        Ok(found) if found.is_dir() => return None,
        Ok(_) => io::Error::from(Errno::NOTDIR),
        Err(error) => error,
    };
    Some((folder.display().to_string(), startup::cause(&error)))
}
