//! Lines about an `.htaccess`.

use conf::{Diagnostic, Severity};

use super::Verbatim;
use crate::log::Level;
use crate::request::Request;

/// Warnings that are lines of the host, without a client, with their modules and levels.
const OF_HOST: [(u32, &str, Level); 4] = [
    (113, "core.c", Level::Notice),
    (117, "core.c", Level::Warn),
    (1506, "mod_env.c", Level::Warn),
    (10032, "mod_env.c", Level::Warn),
];

/// Warnings about macros, which name the place themselves.
const OF_MACROS_FIRST: u32 = 2793;
const OF_MACROS_LAST: u32 = 2805;

impl Request {
    /// Logs an error or a warning in an `.htaccess` file, and the number of `more` of them.
    #[track_caller]
    pub fn log_htaccess(&self, file: &[u8], found: &Diagnostic, more: usize) {
        let (level, kind) = match found.severity {
            Severity::Error => (Level::Alert, "errors"),
            Severity::Warning => (Level::Warn, "warnings"),
        };
        let file = Verbatim::new(file);
        let message = &found.message;
        let number: Option<u32> = found.code.strip_prefix("AH").and_then(|code| code.parse().ok());
        let others = (more > 0).then(|| format!("and {more} more {kind}"));
        if let Some((number, module, level, said)) = of_host(found, number) {
            let others = others.map(|others| format!(" ({others})")).unwrap_or_default();
            let text = format_args!("{said}{others}");
            return self.log_of_host_as(module, level, number, text);
        }
        // Apache's line does not name the line in the file; ours does.
        let place = found.span.map(|span| format!("line {}", span.line));
        let added: Vec<String> = place.into_iter().chain(others).collect();
        let added = added.join(", ");
        match (found.severity, number) {
            // In Apache these lines don't even name the file.
            (Severity::Warning, Some(number)) if !added.is_empty() => {
                self.log_as("core.c", level, number, format_args!("{message} ({file}, {added})"));
            }
            _ if added.is_empty() => {
                self.log_as("core.c", level, 0, format_args!("{file}: {message}"));
            }
            _ => self.log_as("core.c", level, 0, format_args!("{file}: {message} ({added})")),
        }
    }
}

/// The number, module, level and text of a warning that is a line of the host.
fn of_host(found: &Diagnostic, number: Option<u32>) -> Option<(u32, &'static str, Level, &str)> {
    if found.severity == Severity::Warning
        && let Some(number @ OF_MACROS_FIRST..=OF_MACROS_LAST) = number
    {
        return Some((number, "mod_macro.c", Level::Warn, &found.message));
    }
    let (number, said) = found.message.strip_prefix("AH")?.split_once(": ")?;
    let number = number.parse().ok()?;
    let (_, module, level) = OF_HOST.into_iter().find(|(of, _, _)| *of == number)?;
    Some((number, module, level, said))
}
