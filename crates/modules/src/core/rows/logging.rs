//! The error log.

use conf::Arg;
use server::context::{Override, Places};
use server::directive::{Fault, Row, Set, Takes};
use server::log::format::{FormatKind, parse_format};
use server::log::{Level, ModuleLevel};

use super::{Here, host};
use crate::core::Core;

pub(super) const ROWS: &[Row<Core>] = &[
    host(
        "ErrorLog",
        Takes::One(error_log),
        "file-path|syslog[:[facility][:tag]]",
        "logs/error_log",
        "Sets the file, pipe or syslog facility for errors.",
    ),
    host(
        "ErrorLogFormat",
        Takes::Some { least: 1, most: 2, set: error_log_format },
        "[connection|request] format",
        "",
        "Sets the format of error log lines, or of lines that describe each connection or request.",
    ),
    Row::<Core>::new(
        "LogLevel",
        Takes::Some { least: 1, most: usize::MAX, set: log_level },
        "[module:]level [module:level] ...",
        "Sets the least urgent level of messages to log, for all modules or single ones.",
    )
    .standing(Places::NOT_HTACCESS, Override::NONE)
    .default("warn"),
];

fn error_log(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let root = cx.build().server_root.clone();
    let target = server::log::target::parse_target(&arg.text, &root)
        .ok_or_else(|| Fault::new("Invalid error log path").at(arg))?;
    let sink = cx.build().sinks.register(target);
    cx.server().error_log.set(sink);
    Ok(())
}

/// Source: `set_errorlog_format` (server/core.c).
fn error_log_format(cx: &mut Here<'_, '_>, words: &[Arg]) -> Set {
    let (kind, format) = match words {
        [format] => (FormatKind::Message, format),
        [kind, format] if kind.is("connection") => (FormatKind::Connection, format),
        [kind, format] if kind.is("request") => (FormatKind::Request, format),
        [kind, ..] => {
            let fault = "ErrorLogFormat type must be one of request, connection";
            return Err(Fault::new(fault).at(kind));
        }
        [] => return Ok(()),
    };
    let parsed = parse_format(&format.text).map_err(|why| Fault::new(why).at(format))?;
    let fault = match kind {
        FormatKind::Message if parsed.has_required() => {
            Some("The '+' flag cannot be used in the main error log format")
        }
        FormatKind::Message if !parsed.has_message() => {
            Some("main ErrorLogFormat must contain message format string '%M'")
        }
        FormatKind::Connection | FormatKind::Request if parsed.has_message() => {
            Some("%M cannot be used in once-per-request or once-per-connection formats")
        }
        _ => None,
    };
    if let Some(fault) = fault {
        return Err(Fault::new(fault).at(format));
    }
    cx.server().error_log_formats.add(kind, parsed);
    Ok(())
}

const WORDS: &str = "Log level keyword must be one of \
                     emerg/alert/crit/error/warn/notice/info/debug/trace1/.../trace8";

/// Source: `set_loglevel` (server/core.c).
fn log_level(cx: &mut Here<'_, '_>, words: &[Arg]) -> Set {
    for word in words {
        let text = word.text.as_slice();
        match text.iter().position(|byte| *byte == b':') {
            None => {
                let level = Level::parse(text).ok_or_else(|| Fault::new(WORDS).at(word))?;
                set(cx, None, level);
            }
            Some(at) => {
                let (name, level) = (text.get(..at), text.get(at + 1..));
                let name = String::from_utf8_lossy(name.unwrap_or_default()).into_owned();
                let module = find_module(cx, &name, word)?;
                let level = level.unwrap_or_default();
                if level.is_empty() {
                    let fault = "must be followed by a log level keyword";
                    return Err(Fault::new(format!("Module specifier '{name}' {fault}")).at(word));
                }
                let level = Level::parse(level)
                    .ok_or_else(|| Fault::new(format!("{}: {WORDS}", word.text)).at(word))?;
                set(cx, Some(module), level);
            }
        }
    }
    Ok(())
}

/// Outside of sections, the level applies to the host's messages without a request, and initially
/// to requests.
fn set(cx: &mut Here<'_, '_>, module: Option<&'static str>, level: Level) {
    if cx.outside_sections() {
        add(&mut cx.server().log, module, level);
    }
    add(&mut cx.dir().log, module, level);
}

fn add(levels: &mut server::log::LogLevels, module: Option<&'static str>, level: Level) {
    match module {
        None => levels.set_all(level),
        Some(module) => levels.set_module(ModuleLevel { module, level }),
    }
}

fn find_module(cx: &mut Here<'_, '_>, name: &str, word: &Arg) -> Result<&'static str, Fault> {
    if name == server::log::MPM {
        return Ok(server::log::MPM);
    }
    let (symbol, file) = (format!("{name}_module"), format!("mod_{name}.c"));
    let registry = cx.build().registry.clone();
    let found = registry.modules().iter().find(|module| {
        module.name() == name
            || module.file() == name
            || module.name() == symbol
            || module.file() == file
    });
    let missing = || Fault::new(format!("Cannot find module {name}")).at(word);
    found.map(|module| module.file()).ok_or_else(missing)
}
