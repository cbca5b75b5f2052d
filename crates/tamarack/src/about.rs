//! Information about the program: `-v`, `-V`, `-l`, `-L`, `-h`. Only `-V` reads the configuration,
//! for the MPM's name.

use std::fmt::Write as _;

use modules::mpm::Kind;
use server::context::{Override, Places};
use server::directive::ErasedRow;

use crate::cli::{Arguments, DEFAULT_ROOT};

/// The version of Apache whose behaviour Tamarack follows.
pub const FOLLOWS: &str = "Apache/2.4.71";

/// `-v`, in httpd's layout.
pub fn version() -> String {
    format!(
        "Server version: Tamarack/{} ({FOLLOWS})\nServer built:   {}\n",
        env!("CARGO_PKG_VERSION"),
        built()
    )
}

/// The build time: the time stamp of the executable.
fn built() -> String {
    let stamp = std::env::current_exe().and_then(std::fs::metadata).and_then(|m| m.modified());
    let Ok(stamp) = stamp else { return "unknown".to_owned() };
    jiff::Timestamp::try_from(stamp).map_or_else(
        |_| "unknown".to_owned(),
        |time| time.strftime("%Y-%m-%dT%H:%M:%S").to_string(),
    )
}

/// `-V` in httpd's layout, which scripts parse. `kind` is the MPM of the configuration, if it can
/// be read.
pub fn settings(arguments: &Arguments, kind: Option<Kind>) -> String {
    let mut out = version();
    out.push_str("Server's Module Magic Number: 20120211:142\n");
    let _ = writeln!(out, "Architecture:   {}-bit", usize::BITS);
    let _ = writeln!(out, "Compiler:       {}", env!("TAMARACK_COMPILER"));
    let _ = writeln!(out, "Profile:        {}", env!("TAMARACK_PROFILE"));
    out.push_str(match kind {
        None => "Server MPM:     \n",
        Some(Kind::Event) => {
            "Server MPM:     event\n  threaded:     yes (fixed thread count)\n    \
             forked:     yes (variable process count)\n"
        }
        Some(Kind::Worker) => {
            "Server MPM:     worker\n  threaded:     yes (fixed thread count)\n    \
             forked:     yes (variable process count)\n"
        }
        Some(Kind::Prefork) => {
            "Server MPM:     prefork\n  threaded:     no\n    \
             forked:     yes (variable process count)\n"
        }
        Some(Kind::Loop) => "Server MPM:     loop\n  threaded:     no\n    forked:     no\n",
    });
    out.push_str("Server compiled with....\n");
    for word in ["APR_HAS_SENDFILE", "APR_HAVE_IPV6 (IPv4-mapped addresses enabled)"] {
        let _ = writeln!(out, " -D {word}");
    }
    out.push_str(" -D AP_HAVE_RELIABLE_PIPED_LOGS\n");
    let root = arguments
        .server_root
        .as_ref()
        .map_or_else(|| DEFAULT_ROOT.to_owned(), |root| root.display().to_string());
    let file = arguments
        .file
        .as_ref()
        .map_or_else(|| "apache2.conf".to_owned(), |file| file.display().to_string());
    for (key, value) in [
        ("HTTPD_ROOT", root.as_str()),
        ("DEFAULT_PIDLOG", "logs/httpd.pid"),
        ("DEFAULT_SCOREBOARD", "logs/apache_runtime_status"),
        ("DEFAULT_ERRORLOG", "logs/error_log"),
        ("AP_TYPES_CONFIG_FILE", "mime.types"),
        ("SERVER_CONFIG_FILE", file.as_str()),
    ] {
        let _ = writeln!(out, " -D {key}=\"{value}\"");
    }
    out
}

/// `-l`
pub fn compiled_in() -> String {
    let mut out = "Compiled in modules:\n".to_owned();
    for module in modules::all() {
        let _ = writeln!(out, "  {}", module.file());
    }
    out
}

/// `-L`: every directive with its arguments and contexts.
pub fn directives() -> String {
    let mut out = String::new();
    for module in modules::all() {
        for row in module.rows(0) {
            let bracket = if row.is_section { "<" } else { "" };
            let _ = writeln!(out, "{bracket}{} ({})", row.name, row.module);
            let _ = writeln!(out, "\t{}", row.doc);
            let _ = writeln!(out, "\t{}", allowed(&row));
        }
    }
    out
}

/// httpd's text for a directive's contexts.
fn allowed(row: &ErasedRow) -> String {
    let in_conf = match (row.places.contains(Places::DIRECTORY), outside(row)) {
        (true, true) => "Allowed in *.conf anywhere",
        (true, false) => "Allowed in *.conf only inside <Directory>, <Files>, <Location>, or <If>",
        _ => "Allowed in *.conf only outside <Directory>, <Files>, <Location>, or <If>",
    };
    if !row.places.contains(Places::HTACCESS) {
        return in_conf.to_owned();
    }
    if row.allow.is_none() {
        return format!("{in_conf} and in .htaccess");
    }
    if row.allow == Override::ALL {
        return format!("{in_conf} and in .htaccess\n\twhen AllowOverride isn't None");
    }
    format!("{in_conf} and in .htaccess\n\twhen AllowOverride includes {}", row.allow)
}

fn outside(row: &ErasedRow) -> bool {
    row.places.contains(Places::SERVER) || row.places.contains(Places::VHOST)
}

/// `-h`, in httpd's layout.
pub fn usage(name: &str) -> String {
    let indent = " ".repeat(name.len() + 7);
    format!(
        "Usage: {name} [-D name] [-d directory] [-f file]
{indent} [-C \"directive\"] [-c \"directive\"]
{indent} [-k start|restart|graceful|graceful-stop|stop|upgrade]
{indent} [-v] [-V] [-h] [-l] [-L] [-t] [-T] [-S] [-M] [-X]
       {name} serve DIRECTORY [ADDRESS:PORT]
       {name} explain [OPTIONS] URL
       {name} lint [OPTIONS]
Options:
  -D name            : define a name for <IfDefine name>
  -d directory       : the initial ServerRoot
  -f file            : the configuration file
  -C \"directive\"     : process a directive before the configuration files
  -c \"directive\"     : process a directive after the configuration files
  -k upgrade         : replace the running server by the current executable
  -e level           : show startup messages of this level (see LogLevel)
  -E file            : write startup messages to a file
  -v                 : show the version
  -V                 : show the version and compile settings
  -h                 : show this page
  -l                 : list the compiled-in modules
  -L                 : list the available directives
  -t -D DUMP_VHOSTS  : show the virtual hosts
  -t -D DUMP_RUN_CFG : show the run settings
  -S                 : show both
  -t -D DUMP_MODULES : show the active modules
  -M                 : show the active modules
  -t -D DUMP_INCLUDES: show the included configuration files
  -t -D DUMP_CONFIG  : show the configuration as read
  -t                 : check the configuration
  -T                 : skip the check of document roots
  -X                 : run one process in the foreground
  serve DIRECTORY    : serve a folder without a configuration
  lint               : show lines that do not do what they seem to do (lint --help)
  explain URL        : show what would be answered, and why (explain --help)
"
    )
}
