//! `-t` and what `-D DUMP_…` asks for, in httpd's layouts.

use std::fmt::Write as _;
use std::io::IsTerminal;

use crate::cli::Arguments;
use crate::load::{self, Loaded};
use crate::settings;
use conf::Severity;

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
    String::from_utf8_lossy(&loaded.tree.dump_includes()).into_owned()
}

/// The configuration as it was read: conditions decided, files included, macros used.
fn config(loaded: &Loaded) -> String {
    let mut out = String::new();
    let mut last = None;
    for node in &loaded.tree.nodes {
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
    let _ = writeln!(out, "{indent}# {:>3}:", node.span.line);
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
