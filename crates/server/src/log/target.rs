//! `ErrorLog`: where a log goes.

use std::path::Path;

use mpm::pipes::PipeSpec;

use crate::log::sinks::Target;

/// The target of an `ErrorLog` argument; relative names are based on `root`. `None` if it is not a
/// valid path, or has no program.
pub fn parse_target(text: &[u8], root: &Path) -> Option<Target> {
    if text.first() == Some(&b'|') {
        return PipeSpec::parse(text).map(Target::Pipe);
    }
    if let Some(rest) = text.strip_prefix(b"syslog")
        && matches!(rest.first(), None | Some(b':'))
    {
        return Some(syslog(rest));
    }
    conf::values::relative_to(root, text).map(Target::File)
}

/// `local7`: Apache's default facility, also for unknown names.
const DEFAULT_FACILITY: u8 = 23;

/// Parses `syslog[:[facility][:tag]]` after the word.
fn syslog(rest: &[u8]) -> Target {
    const NAMES: [&str; 20] = [
        "kern", "user", "mail", "daemon", "auth", "syslog", "lpr", "news", "uucp", "cron",
        "authpriv", "ftp", "local0", "local1", "local2", "local3", "local4", "local5", "local6",
        "local7",
    ];
    const NUMBERS: [u8; 20] =
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 16, 17, 18, 19, 20, 21, 22, 23];
    let rest = String::from_utf8_lossy(rest);
    let mut parts = rest.splitn(3, ':').skip(1);
    let facility = parts.next().unwrap_or_default();
    let known = NAMES.iter().zip(NUMBERS).find(|(name, _)| facility.eq_ignore_ascii_case(name));
    let number = known.map_or(DEFAULT_FACILITY, |(_, number)| number);
    let tag = parts.next().filter(|tag| !tag.is_empty()).unwrap_or("tamarack");
    Target::Syslog(number, tag.to_owned())
}
