//! Startup messages, to standard error or to the file of `-E`.

use std::fs::OpenOptions;
use std::path::Path;

use conf::{Diagnostic, Sources};
pub use mpm::cause;
use server::log::Level;

/// Events that httpd writes as log lines even at startup, with time and process; it writes all
/// others verbatim.
const LOGGED: [(&str, &str, Level); 35] = [
    ("AH00111", "core", Level::Warn),
    ("AH00113", "core", Level::Notice),
    ("AH00114", "core", Level::Warn),
    ("AH00116", "core", Level::Warn),
    ("AH00117", "core", Level::Warn),
    ("AH00119", "core", Level::Warn),
    ("AH00120", "core", Level::Warn),
    ("AH00188", "mpm_prefork", Level::Info),
    ("AH00324", "mpm_worker", Level::Info),
    ("AH00521", "mpm_event", Level::Info),
    ("AH00547", "core", Level::Error),
    ("AH00664", "rewrite", Level::Warn),
    ("AH00665", "rewrite", Level::Warn),
    ("AH00671", "alias", Level::Warn),
    ("AH01506", "env", Level::Warn),
    ("AH01574", "so", Level::Warn),
    ("AH01575", "so", Level::Debug),
    ("AH02304", "core", Level::Warn),
    ("AH02793", "macro", Level::Warn),
    ("AH02795", "macro", Level::Warn),
    ("AH02796", "macro", Level::Warn),
    ("AH02797", "macro", Level::Warn),
    ("AH02798", "macro", Level::Warn),
    ("AH02799", "macro", Level::Warn),
    ("AH02800", "macro", Level::Warn),
    ("AH02802", "macro", Level::Warn),
    ("AH01146", "proxy", Level::Warn),
    ("AH01150", "proxy", Level::Warn),
    ("AH02803", "macro", Level::Warn),
    ("AH02805", "macro", Level::Warn),
    ("AH02989", "macro", Level::Warn),
    ("AH00549", "core", Level::Error),
    ("AH00554", "core", Level::Error),
    ("AH03491", "remoteip", Level::Notice),
    ("AH10032", "env", Level::Warn),
];

/// Numbers of an MPM's remarks. At startup httpd writes them verbatim; at a restart the next number
/// has a shorter text, as a log line.
const AT_RESTART: [(std::ops::RangeInclusive<u32>, &str); 3] =
    [(175..=187, "mpm_prefork"), (300..=323, "mpm_worker"), (497..=520, "mpm_event")];

/// Messages that httpd writes only once, before its log is open.
const GIVEN_UP: [&str; 2] = ["AH00545", "AH00548"];

/// Whether a line is omitted from the error log.
pub fn is_for_the_terminal(line: &str) -> bool {
    GIVEN_UP.iter().any(|number| line.starts_with(number))
}

/// Redirects standard error to a file (`-E`), which may be relative to `root`.
///
/// The error is httpd's line for a file that can't be opened.
pub fn log_to(name: &str, root: &Path, file: &Path) -> Result<(), String> {
    let opened = OpenOptions::new().append(true).create(true).open(root.join(file));
    opened.and_then(|file| Ok(rustix::stdio::dup2_stderr(&file)?)).map_err(|error| {
        let shown = file.display();
        format!("{}: AH00086: {name}: could not open error log file {shown}.", cause(&error))
    })
}

/// The prefix of our own numbers, which are shown with the line, unlike httpd's remarks.
const OWN_NUMBERS: &str = "AH20";

/// A warning in httpd's format; `None` if `least` (`-e`) hides it.
pub fn warning(found: &Diagnostic, sources: &Sources, least: Level) -> Option<String> {
    if let (true, Some(span)) = (found.code.starts_with(OWN_NUMBERS), found.span) {
        let ((file, number), code, said) = (sources.place(span), found.code, &found.message);
        let text = format!("{code}: {said} (line {number} of {file})");
        return (Level::Warn <= least).then(|| line("core", Level::Warn, &text));
    }
    let text = match found.code {
        "" | "AH00526" => found.message.clone(),
        code => format!("{code}: {}", found.message),
    };
    // The reason of a failed operation precedes the number.
    let said =
        if text.starts_with('(') { text.split_once(": ").map(|(_, said)| said) } else { None };
    let number = said.unwrap_or(&text).split(':').next().unwrap_or_default();
    let known = LOGGED.iter().find(|(known, _, _)| *known == number);
    let known = known.map(|(_, module, level)| (*module, *level));
    let Some((module, level)) = known.or_else(|| at_restart(&text)) else { return Some(text) };
    // httpd hides no notices, whatever the level.
    (level <= least || level == Level::Notice).then(|| line(module, level, &text))
}

/// The module of an MPM's remark at a restart.
fn at_restart(text: &str) -> Option<(&'static str, Level)> {
    let (number, said) = text.strip_prefix("AH")?.split_once(": ")?;
    let number: u32 = number.parse().ok()?;
    let (_, module) = AT_RESTART.iter().find(|(numbers, _)| numbers.contains(&number))?;
    (!said.starts_with("WARNING: ")).then_some((module, Level::Warn))
}

/// A line in the error log's standard format.
fn line(module: &str, level: Level, text: &str) -> String {
    let time = jiff::Zoned::now().strftime("%a %b %d %H:%M:%S%.6f %Y").to_string();
    let pid = std::process::id();
    format!("[{time}] [{module}:{}] [pid {pid}:tid {pid}] {text}", level.name())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn warn(code: &'static str, message: &str) -> Diagnostic {
        Diagnostic::warning(conf::Span::default(), code, message)
    }

    #[test]
    fn some_warnings_are_lines_of_a_log() {
        let found = warn("AH01574", "module x_module is already loaded, skipping");
        let sources = Sources::new();
        let text = warning(&found, &sources, Level::Warn).unwrap();
        assert!(text.contains("] [so:warn] [pid "), "{text}");
        assert!(text.ends_with("] AH01574: module x_module is already loaded, skipping"));
        assert_eq!(warning(&found, &sources, Level::Error), None);
    }

    #[test]
    fn others_stand_alone() {
        let found = warn("", "AH00112: Warning: DocumentRoot [/x] does not exist");
        let text = warning(&found, &Sources::new(), Level::Emerg);
        assert_eq!(text.unwrap(), found.message);
    }

    #[test]
    fn system_errors_have_a_number() {
        assert_eq!(cause(&std::io::Error::from_raw_os_error(2)), "(2)No such file or directory");
    }
}
