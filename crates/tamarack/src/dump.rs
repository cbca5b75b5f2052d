//! `-t` and the dumps of `-D DUMP_…`, in httpd's layouts.

use std::fmt::Write as _;
use std::io::{IsTerminal, Write as _};

use conf::{Diagnostic, Severity, Sources};
use server::log::Level;

use crate::cli::Arguments;
use crate::load::{self, Loaded};
use crate::{settings, startup};

/// Runs `-t` with its dumps, and returns the exit status.
pub fn check(name: &str, arguments: &Arguments) -> i32 {
    let loaded = load::load(name, arguments);
    report(name, arguments.least_level(), &loaded);
    let Some(server) = &loaded.server else { return 1 };
    let mut dumped = false;
    let mut dump = |define: &str, text: &dyn Fn() -> String| {
        if arguments.is_defined(define) {
            print(&text());
            dumped = true;
        }
    };
    // In httpd's order.
    dump("DUMP_INCLUDES", &|| includes(&loaded));
    dump("DUMP_VHOSTS", &|| server.vhosts.dump());
    dump("DUMP_RUN_CFG", &|| settings::run_config(server, &loaded.tree));
    if arguments.is_defined("DUMP_CERTS") && server.registry.is_active("ssl_module") {
        print(&settings::certificates(server));
    }
    // Not in httpd.
    dump("DUMP_CPU", &|| settings::cpu_report(server).unwrap_or_else(|why| why + "\n"));
    dump("DUMP_CONFIG", &|| config(&loaded));
    dump("DUMP_MODULES", &|| modules(&loaded));
    let with_config = ["DUMP_INCLUDES", "DUMP_VHOSTS", "DUMP_RUN_CFG", "DUMP_MODULES", "DUMP_CPU"];
    let only_config = !with_config.iter().any(|define| arguments.is_defined(define));
    if !dumped || only_config {
        eprintln!("Syntax OK");
    }
    0
}

/// Writes to standard output; a closed pipe is not an error (`tamarack -M | head`).
pub fn print(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}

/// Writes the findings to standard error.
pub fn report(name: &str, least: Level, loaded: &Loaded) {
    let text = diagnostics(name, least, loaded, std::io::stderr().is_terminal());
    if !text.is_empty() {
        eprintln!("{text}");
    }
}

/// Formats the findings: for a terminal (`drawn`) with the source line and a caret, otherwise as
/// httpd's lines, which scripts parse. Warnings less urgent than `least` are omitted.
pub fn diagnostics(name: &str, least: Level, loaded: &Loaded, drawn: bool) -> String {
    let mut out = String::new();
    for found in &loaded.diagnostics {
        let text = match found.severity {
            Severity::Warning => {
                let Some(plain) = startup::warning(found, &loaded.sources, least) else { continue };
                if drawn && found.span.is_some_and(|span| span != conf::Span::default()) {
                    found.render(&loaded.sources, true)
                } else {
                    plain
                }
            }
            Severity::Error if drawn => found.render(&loaded.sources, true),
            Severity::Error => plain(name, found, &loaded.sources),
        };
        let _ = writeln!(out, "{}", text.trim_end());
    }
    let failed = loaded.diagnostics.iter().filter(|one| is_fault(one)).count();
    if failed > 1 {
        let _ = writeln!(out, "{name}: {failed} errors");
    }
    out.truncate(out.trim_end().len());
    out
}

fn is_fault(found: &Diagnostic) -> bool {
    found.severity == Severity::Error && found.code != "AH00014"
}

/// Formats an error like httpd: an error found while files are read has no number, and the
/// program's name in front.
fn plain(name: &str, found: &Diagnostic, sources: &Sources) -> String {
    let mut text = found.render_plain(sources);
    if found.code.is_empty() && !text.starts_with('(') && !text.starts_with("AH") {
        text.insert_str(0, &format!("{name}: "));
    }
    if let Some(help) = &found.help {
        let _ = write!(text, "\n  help: {help}");
    }
    text
}

fn modules(loaded: &Loaded) -> String {
    let mut out = "Loaded Modules:\n".to_owned();
    // For scripts, a module that is not implemented yet is not loaded.
    for active in loaded.modules.iter().filter(|active| active.module.missing().is_none()) {
        let how = if active.shared { "shared" } else { "static" };
        let _ = writeln!(out, " {} ({how})", active.module.name());
    }
    out
}

fn includes(loaded: &Loaded) -> String {
    String::from_utf8_lossy(&loaded.tree.dump_includes()).into_owned()
}

/// The configuration as read: conditions evaluated, files included, macros expanded.
fn config(loaded: &Loaded) -> String {
    let mut out = String::new();
    let mut last = None;
    // httpd executes ServerRoot while reading and does not show it.
    let is_shown = |node: &&conf::Node| !node.name.eq_ignore_ascii_case(b"ServerRoot");
    for node in loaded.tree.nodes.iter().filter(is_shown) {
        write_node(&mut out, loaded, node, 0, &mut last);
    }
    out
}

fn write_node(
    out: &mut String,
    loaded: &Loaded,
    node: &conf::Node,
    depth: usize,
    last: &mut Option<conf::FileId>,
) {
    if *last != Some(node.span.file) {
        *last = Some(node.span.file);
        let _ = writeln!(out, "# In file: {}", loaded.sources.name(node.span.file));
    }
    let indent = "  ".repeat(depth);
    let _ = writeln!(out, "{indent}# {:>3}:", loaded.sources.last_line(node.span));
    let args = node.args.bytes();
    let Some(children) = &node.children else {
        let _ = writeln!(out, "{indent}{} {args}", node.name);
        return;
    };
    let _ = writeln!(out, "{indent}<{} {args}>", node.name);
    for child in children {
        write_node(out, loaded, child, depth + 1, last);
    }
    let _ = writeln!(out, "{indent}</{}>", node.name);
}
