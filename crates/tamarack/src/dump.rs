//! `-t` and what `-D DUMP_…` asks for, in httpd's layouts.

use std::fmt::Write as _;
use std::io::IsTerminal;

use conf::Severity;
use server::host::Server;

use crate::cli::Arguments;
use crate::load::{self, Loaded};
use crate::settings;

/// `-t`, with its dumps; the exit status.
pub fn check(name: &str, arguments: &Arguments) -> i32 {
    let loaded = load::load(arguments, false);
    report(name, &loaded);
    let Some(server) = &loaded.server else { return 1 };
    let mut dumped = false;
    let mut dump = |define: &str, text: &dyn Fn() -> String| {
        if arguments.is_defined(define) {
            print!("{}", text());
            dumped = true;
        }
    };
    dump("DUMP_VHOSTS", &|| server.vhosts.dump());
    dump("DUMP_RUN_CFG", &|| settings::run_config(server, &loaded.tree));
    dump("DUMP_MODULES", &|| modules(&loaded));
    dump("DUMP_INCLUDES", &|| includes(&loaded));
    dump("DUMP_CONFIG", &|| config(&loaded));
    if !dumped || arguments.is_defined("DUMP_CONFIG") {
        eprintln!("Syntax OK");
    }
    0
}

/// Writes what was found to standard error.
pub fn report(name: &str, loaded: &Loaded) {
    let text = diagnostics(name, loaded);
    if !text.is_empty() {
        eprintln!("{text}");
    }
}

/// What was found: for a person at a terminal with the source line and a caret, else in httpd's
/// two lines, which scripts read.
pub fn diagnostics(name: &str, loaded: &Loaded) -> String {
    let drawn = std::io::stderr().is_terminal();
    let mut out = String::new();
    for found in &loaded.diagnostics {
        let text = if drawn {
            found.render(&loaded.sources, true)
        } else {
            let mut plain = found.render_plain(&loaded.sources);
            if let Some(help) = &found.help {
                let _ = write!(plain, "\n  help: {help}");
            }
            plain
        };
        let _ = writeln!(out, "{}", text.trim_end());
    }
    let failed = loaded.diagnostics.iter().filter(|one| one.severity == Severity::Error).count();
    if failed > 1 {
        let _ = writeln!(out, "{name}: {failed} errors");
    }
    out.truncate(out.trim_end().len());
    out
}

fn modules(loaded: &Loaded) -> String {
    let mut out = "Loaded Modules:\n".to_owned();
    for active in &loaded.modules {
        let how = if active.shared { "shared" } else { "static" };
        let _ = writeln!(out, " {} ({how})", active.module.name());
    }
    out
}

fn includes(loaded: &Loaded) -> String {
    loaded.tree.render_includes()
}

fn config(loaded: &Loaded) -> String {
    loaded.tree.render_config()
}

/// Whether a server answers on TLS anywhere, for messages of the start.
pub fn has_tls(server: &Server) -> bool {
    settings::listeners(server).iter().any(|listener| &*listener.protocol == "https")
}
